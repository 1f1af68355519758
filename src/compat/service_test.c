/* Pods in, demands out: what is remembered, what is asked, who may decide. */
#include "compat/service_testing.h"

static bool until(bool (*holds)(struct service_rig *rig, void *arg), struct service_rig *rig,
                  void *arg)
{
    for (int i = 0; i < 3000; i++) {
        if (holds(rig, arg))
            return true;
        usleep(10000);
    }
    return false;
}

static enum match verdict(struct service_rig *rig, const struct pod *pod, const char *node)
{
    return rig_judge(rig, pod, node).match;
}

TEST(a_pod_goes_where_all_of_its_images_run)
{
    SERVICE_RIG rig = { 0 };
    service_rig_start(&rig, (struct compat_settings){ 0 });
    rig_image(&rig, "both:1", "amd64,arm64", NULL);
    rig_image(&rig, "arm:1", "arm64", NULL);
    rig_node(&rig, "intel", "amd64", NULL);
    rig_node(&rig, "ampere", "arm64", NULL);
    const struct object *object =
        rig_decode(&rig, &pod_kind,
                   js("{'metadata':{'name':'p','namespace':'default','uid':'u'},'spec':{"
                      "'initContainers':[{'name':'i','image':'arm:1'}],"
                      "'containers':[{'name':'c','image':'both:1'}]}}"));
    compat_service_observe(rig.service, NULL, object);
    EXPECT_EQ(verdict(&rig, pod_of(object), "intel"), MATCH_NO);
    EXPECT_EQ(verdict(&rig, pod_of(object), "ampere"), MATCH_YES);
    EXPECT_EQ(verdict(&rig, rig_pod(&rig, "q", "both:1"), "intel"), MATCH_YES);
}

TEST(what_a_pod_asks_for_is_looked_up_when_it_is_seen_and_once_for_many)
{
    SERVICE_RIG rig = { 0 };
    char name[16];
    service_rig_start(&rig, (struct compat_settings){ 0 });
    rig_image(&rig, "app:1", "amd64", NULL);
    rig_node(&rig, "n", "amd64", NULL);
    for (int i = 0; i < 50; i++) {
        snprintf(name, sizeof name, "p%d", i);
        rig_settle(&rig, rig_pod(&rig, name, "app:1"));
    }
    EXPECT_EQ(rig.asks, 1);
}

TEST(demands_of_pods_with_the_same_images_are_the_same)
{
    SERVICE_RIG rig = { 0 };
    struct pod_demand a, b;
    service_rig_start(&rig, (struct compat_settings){ 0 });
    rig_image(&rig, "app:1", "amd64", NEEDS_FLAG("AVX2"));
    const struct pod *one = rig_pod(&rig, "one", "app:1"), *two = rig_pod(&rig, "two", "app:1");
    rig_settle(&rig, one);
    compat_service_demand(rig.service, one, DEMAND_PLACE, &a);
    EXPECT_TRUE(compat_service_demand_of(rig.service, STR("uid-two"), DEMAND_PLACE, &b));
    EXPECT_TRUE(a.maybe_demand != NULL);
    EXPECT_TRUE(a.maybe_demand == b.maybe_demand);
    pod_demand_done(&a);
    pod_demand_done(&b);
    EXPECT_TRUE(two != NULL);
}

TEST(a_pod_that_is_bound_or_gone_is_forgotten)
{
    SERVICE_RIG rig = { 0 };
    struct pod_demand demand;
    service_rig_start(&rig, (struct compat_settings){ 0 });
    const struct pod *gone = rig_pod(&rig, "gone", "app:1");
    rig_pod(&rig, "bound", "app:1");
    compat_service_observe(rig.service, &gone->object, NULL);
    compat_service_observe(
        rig.service, NULL,
        rig_decode(&rig, &pod_kind,
                   js("{'metadata':{'name':'bound','namespace':'default','uid':'uid-bound'},"
                      "'spec':{'nodeName':'n','containers':[{'name':'c','image':'app:1'}]}}")));
    EXPECT_FALSE(compat_service_demand_of(rig.service, STR("uid-gone"), DEMAND_PLACE, &demand));
    EXPECT_FALSE(compat_service_demand_of(rig.service, STR("uid-bound"), DEMAND_PLACE, &demand));
}

TEST(a_pod_whose_image_is_replaced_asks_for_what_the_new_one_needs)
{
    SERVICE_RIG rig = { 0 };
    service_rig_start(&rig, (struct compat_settings){ 0 });
    rig_image(&rig, "app:1", "amd64", NULL);
    rig_image(&rig, "app:2", "arm64", NULL);
    rig_node(&rig, "intel", "amd64", NULL);
    EXPECT_EQ(verdict(&rig, rig_pod(&rig, "web", "app:1"), "intel"), MATCH_YES);
    EXPECT_EQ(verdict(&rig, rig_pod(&rig, "web", "app:2"), "intel"), MATCH_NO);
}

TEST(artifacts_decide_what_is_launched_only_from_repositories_that_may)
{
    static const struct str trusted[] = { { "registry.example/team", 21 } };
    SERVICE_RIG rig = { 0 };
    struct machine_kind machine = { .instance_type = STR("m7i.large"),
                                    .architecture = STR("amd64"),
                                    .os = STR("linux") };
    service_rig_start(&rig, (struct compat_settings){ .launch_repositories = { trusted, 1 } });
    rig_image(&rig, "registry.example/team/app:1", "amd64", NEEDS_FLAG("AVX512F"));
    rig_image(&rig, "registry.example/other/app:1", "amd64", NEEDS_FLAG("AVX512F"));
    rig_image(&rig, "registry.example/other/plain:1", "amd64", NULL);
    struct {
        const char *image;
        enum match place, launch;
    } cases[] = {
        { "registry.example/team/app:1", MATCH_YES, MATCH_YES },
        { "registry.example/other/app:1", MATCH_YES, MATCH_ERROR },
        { "registry.example/other/plain:1", MATCH_YES, MATCH_YES },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        const struct pod *pod = rig_pod(&rig, "p", cases[i].image);
        for (int what = DEMAND_PLACE; what <= DEMAND_LAUNCH; what++) {
            struct pod_demand demand;
            AUTO_BUF words = { 0 };
            rig_settle(&rig, pod);
            compat_service_demand(rig.service, pod, (enum demand_for)what, &demand);
            struct fleet *fleet = compat_service_fleet(rig.service);
            EXPECT_EQ(fleet_judge_machine(fleet, demand.maybe_demand, &machine).match,
                      what == DEMAND_PLACE ? cases[i].place : cases[i].launch);
            fleet_explain_machine(fleet, demand.maybe_demand, &machine, &words);
            if (what == DEMAND_LAUNCH && cases[i].launch == MATCH_ERROR)
                EXPECT_HAS(buf_str(&words), "--launch-repositories");
            pod_demand_done(&demand);
        }
    }
}

TEST(an_image_that_is_still_asked_for_is_pending_and_named)
{
    SERVICE_RIG rig = { 0 };
    struct pod_demand demand;
    service_rig_start(&rig, (struct compat_settings){ 0 });
    service_rig_hold(&rig, true);
    const struct pod *pod = rig_pod(&rig, "p", "slow:1");
    compat_service_demand(rig.service, pod, DEMAND_PLACE, &demand);
    EXPECT_TRUE(demand.maybe_demand == NULL);
    EXPECT_EQ(demand.pending.count, 1);
    EXPECT_STR(demand.pending.items[0], "slow:1");
    pod_demand_done(&demand);
}

/* --- groups --- */

static bool group_is_there(struct service_rig *rig, void *arg)
{
    struct object_list list;
    struct err err = { 0 };
    EXPECT_OK(store_list(rig->store, &node_feature_group_kind, NULL, &list, &err), err);
    bool there = list.count == *(uint32_t *)arg;
    object_list_done(&list);
    return there;
}

TEST(groups_of_an_image_are_published_when_its_pod_is_seen)
{
    SERVICE_RIG rig = { 0 };
    uint32_t two = 2;
    service_rig_start(
        &rig, (struct compat_settings){ .nfg_mode = NFG_PUBLISH, .nfd_namespace = STR("nfd") });
    rig_image(&rig, "app:1", "amd64",
              "[{rules: [{name: a, matchFeatures: [{feature: cpu.cpuid, matchExpressions: {AVX2: "
              "{op: Exists}}}]}]}, {rules: [{name: b, matchFeatures: [{feature: cpu.cpuid, "
              "matchExpressions: {AVX: {op: Exists}}}]}]}]");
    const struct pod *pod = rig_pod(&rig, "p", "app:1");
    rig_settle(&rig, pod);
    EXPECT_TRUE(until(group_is_there, &rig, &two));
}

TEST(nothing_is_published_when_groups_are_off)
{
    SERVICE_RIG rig = { 0 };
    uint32_t none = 0;
    service_rig_start(&rig, (struct compat_settings){ 0 });
    rig_image(&rig, "app:1", "amd64", NEEDS_FLAG("AVX2"));
    rig_settle(&rig, rig_pod(&rig, "p", "app:1"));
    usleep(100000);
    EXPECT_TRUE(group_is_there(&rig, &none));
}

/* Before it is there groups are made nowhere, and so evaluated by nobody. */
static void nfd_appears(struct service_rig *rig, const char *namespace_)
{
    compat_service_observe(
        rig->service, NULL,
        rig_decode(rig, &pod_kind,
                   js("{'metadata':{'name':'nfd-master-0','namespace':'%s','uid':'m',"
                      "'labels':{'app':'nfd-master'}},"
                      "'spec':{'nodeName':'n','containers':[{'name':'c','image':'nfd'}]}}",
                      namespace_)));
}

/* The group of a set of an image, by the name with so many digits. */
struct set_group {
    struct str rules;
    char name[NFG_NAME_MAX];
};

static struct set_group group_of_set(struct service_rig *rig, const char *image, uint32_t set,
                                     uint32_t digits)
{
    AUTO_BUF full = { 0 };
    struct set_group group;
    struct err err = { 0 };
    buf_addf(&full, "docker.io/library/%s", image);
    const struct image_facts *facts = str_table_get(&rig->images, buf_str(&full));
    group.rules = facts->spec.maybe_spec->sets[set].rules_json;
    EXPECT_OK(nfg_name(group.rules, digits, group.name, &err), err);
    return group;
}

static bool object_is_there(struct service_rig *rig, void *name)
{
    const struct object *object = NULL;
    struct object_ref ref = { &node_feature_group_kind, STR("nfd"), str_of(name) };
    bool there = store_get(rig->store, ref, &object, NULL) == 0;
    object_unref(object);
    return there;
}

/* NFD has evaluated it. */
static void evaluate(struct service_rig *rig, struct set_group group, const char *nodes)
{
    struct err err = { 0 };
    const struct object *before = NULL, *after = NULL;
    struct object_ref ref = { &node_feature_group_kind, STR("nfd"), str_of(group.name) };
    EXPECT_TRUE(until(object_is_there, rig, group.name));
    EXPECT_OK(store_get(rig->store, ref, &before, &err), err);
    EXPECT_OK(store_patch(rig->store, ref, (struct patch_options){ .status = true },
                          js("{'status':{'nodes':[%s]}}", nodes), &after, &err),
              err);
    compat_service_observe(rig->service, before, after);
    vec_push(&rig->objects, before);
    vec_push(&rig->objects, after);
}

TEST(in_authoritative_mode_a_node_must_be_in_the_group_too)
{
    SERVICE_RIG rig = { 0 };
    service_rig_start(&rig, (struct compat_settings){ .nfg_mode = NFG_AUTHORITATIVE });
    rig_image(&rig, "app:1", "amd64", NEEDS_FLAG("AVX2"));
    rig_node(&rig, "in", "amd64", CPU_FLAGS("'AVX2':{}"));
    rig_node(&rig, "out", "amd64", CPU_FLAGS("'AVX2':{}"));
    rig_node(&rig, "lacks", "amd64", CPU_FLAGS("'AVX':{}"));
    const struct pod *pod = rig_pod(&rig, "p", "app:1");
    /* Nobody has evaluated it yet: what is known here stands. */
    EXPECT_EQ(verdict(&rig, pod, "out"), MATCH_YES);
    EXPECT_EQ(verdict(&rig, pod, "lacks"), MATCH_NO);
    nfd_appears(&rig, "nfd");
    evaluate(&rig, group_of_set(&rig, "app:1", 0, 12), "{'name':'in'},{'name':'lacks'}");
    EXPECT_EQ(verdict(&rig, pod, "in"), MATCH_YES);
    EXPECT_EQ(verdict(&rig, pod, "out"), MATCH_NO);
    EXPECT_EQ(verdict(&rig, pod, "lacks"), MATCH_NO); /* a group never widens */
}

TEST(a_group_that_is_lost_lets_nobody_in_whom_it_kept_out)
{
    SERVICE_RIG rig = { 0 };
    struct err err = { 0 };
    service_rig_start(&rig, (struct compat_settings){ .nfg_mode = NFG_AUTHORITATIVE,
                                                      .nfd_namespace = STR("nfd") });
    rig_image(&rig, "app:1", "amd64", NEEDS_FLAG("AVX2"));
    rig_node(&rig, "in", "amd64", CPU_FLAGS("'AVX2':{}"));
    rig_node(&rig, "out", "amd64", CPU_FLAGS("'AVX2':{}"));
    const struct pod *pod = rig_pod(&rig, "p", "app:1");
    rig_settle(&rig, pod);
    struct set_group group = group_of_set(&rig, "app:1", 0, 12);
    evaluate(&rig, group, "{'name':'in'}");
    EXPECT_EQ(verdict(&rig, pod, "out"), MATCH_NO);

    /* Somebody deletes it. It is made again, and nobody has evaluated it yet. */
    uint64_t generation = compat_service_generation(rig.service);
    const struct object *lost = rig.objects.items[rig.objects.count - 1];
    struct object_ref ref = { &node_feature_group_kind, STR("nfd"), str_of(group.name) };
    EXPECT_OK(store_remove(rig.store, ref, NULL, &err), err);
    compat_service_observe(rig.service, lost, NULL);
    EXPECT_TRUE(compat_service_generation(rig.service) != generation);
    EXPECT_EQ(verdict(&rig, pod, "out"), MATCH_NO);
    EXPECT_TRUE(until(object_is_there, &rig, group.name));
    EXPECT_EQ(verdict(&rig, pod, "out"), MATCH_NO);

    evaluate(&rig, group, "{'name':'out'}");
    EXPECT_EQ(verdict(&rig, pod, "out"), MATCH_YES);
    EXPECT_EQ(verdict(&rig, pod, "in"), MATCH_NO);
}

TEST(a_group_of_somebody_elses_rules_has_no_say)
{
    SERVICE_RIG rig = { 0 };
    struct err err = { 0 };
    const struct object *theirs = NULL;
    service_rig_start(&rig, (struct compat_settings){ .nfg_mode = NFG_AUTHORITATIVE,
                                                      .nfd_namespace = STR("nfd") });
    rig_image(&rig, "app:1", "amd64", NEEDS_FLAG("AVX2"));
    rig_node(&rig, "in", "amd64", CPU_FLAGS("'AVX2':{}"));
    rig_node(&rig, "lacks", "amd64", CPU_FLAGS("'AVX':{}"));
    struct set_group taken = group_of_set(&rig, "app:1", 0, 12);
    EXPECT_OK(store_create(rig.store, &node_feature_group_kind, STR("nfd"),
                           js("{'metadata':{'name':'%s'},'spec':{'featureGroupRules':[{'name':'x',"
                              "'matchFeatures':[{'feature':'cpu.cpuid'}]}]}}",
                              taken.name),
                           &theirs, &err),
              err);
    vec_push(&rig.objects, theirs);
    compat_service_observe(rig.service, NULL, theirs);
    evaluate(&rig, taken, "{'name':'lacks'}");
    const struct pod *pod = rig_pod(&rig, "p", "app:1");
    rig_settle(&rig, pod);
    /* Ours has a longer name, and that one counts. */
    evaluate(&rig, group_of_set(&rig, "app:1", 0, 20), "{'name':'in'}");
    EXPECT_EQ(verdict(&rig, pod, "in"), MATCH_YES);
    EXPECT_EQ(verdict(&rig, pod, "lacks"), MATCH_NO);
}

#define TEMPLATED(flag)                                                                            \
    "{rules: [{name: r, varsTemplate: '{{ .x }}', matchFeatures: [{feature: cpu.cpuid, "           \
    "matchExpressions: {" flag ": {op: Exists}}}]}]}"

TEST(what_nfd_says_of_one_image_does_not_answer_for_another)
{
    SERVICE_RIG rig = { 0 };
    service_rig_start(
        &rig, (struct compat_settings){ .nfg_mode = NFG_PUBLISH, .nfd_namespace = STR("nfd") });
    rig_image(&rig, "one:1", "amd64", "[" TEMPLATED("AVX2") "]");
    rig_image(&rig, "two:1", "amd64", "[" TEMPLATED("AVX") "]");
    rig_node(&rig, "n", "amd64", CPU_FLAGS("'AVX':{},'AVX2':{}"));
    const struct object *pod = rig_decode(
        &rig, &pod_kind,
        js("{'metadata':{'name':'p','namespace':'default','uid':'u'},'spec':{"
           "'containers':[{'name':'a','image':'one:1'},{'name':'b','image':'two:1'}]}}"));
    compat_service_observe(rig.service, NULL, pod);
    rig_settle(&rig, pod_of(pod));
    evaluate(&rig, group_of_set(&rig, "one:1", 0, 12), "{'name':'n'}");
    EXPECT_TRUE(verdict(&rig, pod_of(pod), "n") != MATCH_YES);
    evaluate(&rig, group_of_set(&rig, "two:1", 0, 12), "{'name':'n'}");
    EXPECT_EQ(verdict(&rig, pod_of(pod), "n"), MATCH_YES);
    evaluate(&rig, group_of_set(&rig, "one:1", 0, 12), "{'name':'other'}");
    EXPECT_EQ(verdict(&rig, pod_of(pod), "n"), MATCH_NO);
}

TEST(where_one_set_suffices_a_group_takes_no_yes_of_another_set_away)
{
    SERVICE_RIG rig = { 0 };
    service_rig_start(&rig, (struct compat_settings){ .nfg_mode = NFG_PUBLISH,
                                                      .nfd_namespace = STR("nfd"),
                                                      .rules = { .sets = SETS_ANY } });
    rig_image(&rig, "app:1", "amd64",
              "[" TEMPLATED("AVX2") ", {rules: [{name: a, matchFeatures: [{feature: cpu.cpuid, "
                                    "matchExpressions: {AVX: {op: Exists}}}]}]}]");
    rig_node(&rig, "n", "amd64", CPU_FLAGS("'AVX':{},'AVX2':{}"));
    const struct pod *pod = rig_pod(&rig, "p", "app:1");
    rig_settle(&rig, pod);
    evaluate(&rig, group_of_set(&rig, "app:1", 0, 12), "{'name':'other'}");
    EXPECT_EQ(verdict(&rig, pod, "n"), MATCH_YES);
}

TEST(a_rule_that_only_nfd_can_evaluate_is_left_to_its_group)
{
    SERVICE_RIG rig = { 0 };
    service_rig_start(&rig, (struct compat_settings){ .nfg_mode = NFG_PUBLISH });
    rig_image(&rig, "app:1", "amd64", "[" TEMPLATED("AVX2") "]");
    rig_node(&rig, "in", "amd64", CPU_FLAGS("'AVX2':{}"));
    rig_node(&rig, "out", "amd64", CPU_FLAGS("'AVX2':{}"));
    const struct pod *pod = rig_pod(&rig, "p", "app:1");
    EXPECT_EQ(verdict(&rig, pod, "in"), MATCH_UNKNOWN);
    nfd_appears(&rig, "nfd");
    evaluate(&rig, group_of_set(&rig, "app:1", 0, 12), "{'name':'in'}");
    EXPECT_EQ(verdict(&rig, pod, "in"), MATCH_YES);
    EXPECT_EQ(verdict(&rig, pod, "out"), MATCH_NO);
}

TEST(nfd_master_is_found_by_its_pods)
{
    SERVICE_RIG rig = { 0 };
    uint32_t one = 1;
    service_rig_start(&rig, (struct compat_settings){ .nfg_mode = NFG_PUBLISH });
    rig_image(&rig, "app:1", "amd64", NEEDS_FLAG("AVX2"));
    nfd_appears(&rig, "discovery");
    rig_settle(&rig, rig_pod(&rig, "p", "app:1"));
    EXPECT_TRUE(until(group_is_there, &rig, &one));
    struct object_list list;
    struct err err = { 0 };
    EXPECT_OK(store_list(rig.store, &node_feature_group_kind, NULL, &list, &err), err);
    EXPECT_STR(list.items[0]->meta.namespace_, "discovery");
    object_list_done(&list);
}

/* --- pull secrets --- */

TEST(an_image_is_asked_for_with_the_pull_secrets_of_its_pod)
{
    SERVICE_RIG rig = { 0 };
    service_rig_start(&rig, (struct compat_settings){ .pull_secrets = true });
    rig_image(&rig, "registry.example/app:1", "amd64", NULL);
    AUTO_OBJECT secret = NULL;
    struct err err = { 0 };
    struct str json = js(
        "{'metadata':{'name':'door'},'type':'kubernetes.io/dockerconfigjson','data':{"
        "'.dockerconfigjson':'eyJhdXRocyI6eyJyZWdpc3RyeS5leGFtcGxlIjp7InVzZXJuYW1lIjoidSIsInBhc3N3b3JkIjoicCJ9fX0='}}");
    EXPECT_OK(store_create(rig.store, &secret_kind, STR("default"), json, &secret, &err), err);
    const struct object *pod =
        rig_decode(&rig, &pod_kind,
                   js("{'metadata':{'name':'p','namespace':'default','uid':'u'},'spec':{"
                      "'imagePullSecrets':[{'name':'door'},{'name':'not-there'}],"
                      "'containers':[{'name':'c','image':'registry.example/app:1'}]}}"));
    compat_service_observe(rig.service, NULL, pod);
    rig_settle(&rig, pod_of(pod));
    EXPECT_EQ(rig.asks, 1);
    EXPECT_TRUE(rig.keys_last != 0);
    EXPECT_TRUE(secret != NULL);
}
