/* Readiness, validation and hash of NodePools. */
#include "api/hash.h"
#include "control/controllers.h"
#include "control/testing.h"

static const struct controller *const under_test[] = { &nodepool_readiness, &nodepool_validation,
                                                       &nodepool_hash_controller };

static struct stage *start(void)
{
    return stage_new(
        (struct stage_options){ .controllers = under_test, .count = KV_COUNT_OF(under_test) });
}

/* A pool as a user makes it: no status. `template` adds to the template, `spec` to its spec. */
static void make_plain_pool(struct stage *s, const char *name, const char *class_,
                            const char *template, const char *spec)
{
    object_unref(make(s->w->store, &nodepool_kind,
                      js("{'metadata':{'name':'%s'},'spec':{'template':{%s'spec':{%s"
                         "'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
                         "'name':'%s'}}}}}",
                         name, template, spec, class_)));
}

#define NO_REQUIREMENTS "'requirements':[],"

static const struct condition *pool_condition_of(const struct object *pool, struct str type)
{
    const struct nodepool *p = nodepool_of(pool);
    return condition_find(p->status.conditions.items, p->status.conditions.count, type);
}

static const char *status_words(const struct condition *condition)
{
    static const char *const words[] = { "unset", "True", "False", "Unknown" };
    return condition ? words[condition->status] : "absent";
}

static void expect_condition(struct stage *s, const char *pool, struct str type, const char *status,
                             const char *reason, const char *message)
{
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, pool);
    const struct condition *condition = pool_condition_of(object, type);
    EXPECT_Z(status_words(condition), status);
    EXPECT_STR(condition->reason, reason);
    EXPECT_HAS(condition->message, message);
    EXPECT_EQ(condition->observed_generation, object->meta.generation);
}

static uint64_t version_of(struct stage *s, const struct kind *kind, const char *name)
{
    AUTO_OBJECT object = get(s->w->store, kind, name);
    return object->meta.resource_version;
}

static void set_class_ready(struct stage *s, const char *status, const char *reason,
                            const char *message)
{
    object_unref(merge_status(s->w->store, &kwoknodeclass_kind, "default",
                              js("{'status':{'conditions':[{'type':'Ready','status':'%s',"
                                 "'reason':'%s','message':'%s',"
                                 "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}",
                                 status, reason, message)));
}

/* --- readiness --- */

TEST(a_pool_whose_class_is_missing_is_not_ready_until_it_comes)
{
    AUTO(stage) s = start();
    make_plain_pool(s, "a", "later", "", NO_REQUIREMENTS);
    settle(s);
    expect_condition(s, "a", CONDITION_NODE_CLASS_READY, "False", "NodeClassNotFound",
                     "NodeClass not found on cluster");
    expect_condition(s, "a", CONDITION_READY, "False", "UnhealthyDependents",
                     "NodeClassReady=False");

    object_unref(make(s->w->store, &kwoknodeclass_kind, js("{'metadata':{'name':'later'}}")));
    settle(s);
    expect_condition(s, "a", CONDITION_NODE_CLASS_READY, "True", "NodeClassReady", "");
    expect_condition(s, "a", CONDITION_READY, "True", "Ready", "");
}

TEST(a_pool_carries_what_its_class_says_of_itself)
{
    AUTO(stage) s = start();
    make_plain_pool(s, "a", "default", "", NO_REQUIREMENTS);
    settle(s);
    expect_condition(s, "a", CONDITION_NODE_CLASS_READY, "True", "NodeClassReady", "");

    set_class_ready(s, "False", "SubnetsNotFound", "no subnets");
    settle(s);
    expect_condition(s, "a", CONDITION_NODE_CLASS_READY, "False", "SubnetsNotFound", "no subnets");
    set_class_ready(s, "Unknown", "AwaitingReconciliation", "");
    settle(s);
    expect_condition(s, "a", CONDITION_NODE_CLASS_READY, "False", "NodeClassReadinessUnknown",
                     "Node Class Readiness Unknown");
    set_class_ready(s, "True", "Ready", "");
    settle(s);
    expect_condition(s, "a", CONDITION_NODE_CLASS_READY, "True", "NodeClassReady", "");
}

TEST(a_class_that_is_being_deleted_is_terminating)
{
    AUTO(stage) s = start();
    object_unref(merge(s->w->store, &kwoknodeclass_kind, "default",
                       js("{'metadata':{'finalizers':['example.com/hold']}}")));
    make_plain_pool(s, "a", "default", "", NO_REQUIREMENTS);
    settle(s);
    remove_it(s->w->store, &kwoknodeclass_kind, "default");
    settle(s);
    expect_condition(s, "a", CONDITION_NODE_CLASS_READY, "False", "NodeClassTerminating",
                     "NodeClass is Terminating");
}

TEST(a_pool_of_another_providers_class_is_left_alone)
{
    AUTO(stage) s = start();
    object_unref(make(s->w->store, &nodepool_kind,
                      js("{'metadata':{'name':'other'},'spec':{'template':{'spec':{"
                         "'requirements':[],'nodeClassRef':{'group':'example.com','kind':'Rack',"
                         "'name':'default'}}}}}")));
    uint64_t before = version_of(s, &nodepool_kind, "other");
    stage_pass(s, 60);
    EXPECT_EQ(version_of(s, &nodepool_kind, "other"), before);
}

/* --- validation --- */

TEST(what_no_api_server_refuses_is_told_with_its_place)
{
    AUTO(stage) s = start();
    make_plain_pool(s, "a", "default", "",
                    "'requirements':[{'key':'kubernetes.io/arch','operator':'In','values':"
                    "['amd64']},{'key':'kubernetes.io/arch','operator':'In','values':['arm64']}],");
    settle(s);
    expect_condition(s, "a", CONDITION_VALIDATION_SUCCEEDED, "False", "NodePoolValidationFailed",
                     "spec.template.spec.requirements[1]: contradicts another requirement");
    expect_condition(s, "a", CONDITION_READY, "False", "UnhealthyDependents",
                     "ValidationSucceeded=False");
}

TEST(each_rule_of_run_time_validation_fails_the_pool)
{
    static const struct {
        const char *template, *spec, *words;
    } cases[] = {
        { "",
          "'requirements':[],'taints':[{'key':'a','effect':'NoSchedule'}],"
          "'startupTaints':[{'key':'a','effect':'NoSchedule'}],",
          "spec.template.spec.startupTaints[0]: duplicate" },
        { "",
          "'requirements':[{'key':'karpenter.sh/capacity-type','operator':'In','values':"
          "['sopt']}],",
          "requirements[0].values: has none of on-demand, spot and reserved" },
        { "", "'requirements':[{'key':'a','operator':'In','values':['-no-']}],",
          "requirements[0].values[0]" },
        { "'metadata':{'labels':{'karpenter.kwok.sh/mine':'x'}},", NO_REQUIREMENTS,
          "labels of the domain karpenter.kwok.sh are restricted" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(stage) s = start();
        make_plain_pool(s, "a", "default", cases[i].template, cases[i].spec);
        settle(s);
        expect_condition(s, "a", CONDITION_VALIDATION_SUCCEEDED, "False",
                         "NodePoolValidationFailed", cases[i].words);
    }
}

TEST(an_annotation_of_ours_that_makes_no_sense_fails_the_pool_and_its_correction_helps)
{
    AUTO(stage) s = start();
    make_plain_pool(s, "a", "default", "", NO_REQUIREMENTS);
    object_unref(merge(s->w->store, &nodepool_kind, "a",
                       js("{'metadata':{'annotations':{'karve.io/launch-timeout':'soon'}}}")));
    settle(s);
    expect_condition(s, "a", CONDITION_VALIDATION_SUCCEEDED, "False", "NodePoolValidationFailed",
                     "karve.io/launch-timeout");
    object_unref(merge(s->w->store, &nodepool_kind, "a",
                       js("{'metadata':{'annotations':{'karve.io/launch-timeout':'2m'}}}")));
    settle(s);
    expect_condition(s, "a", CONDITION_VALIDATION_SUCCEEDED, "True", "ValidationSucceeded", "");
    expect_condition(s, "a", CONDITION_READY, "True", "Ready", "");
}

TEST(a_pool_with_many_mistakes_shows_the_first_and_counts_the_rest)
{
    AUTO(stage) s = start();
    make_plain_pool(s, "a", "default", "",
                    "'requirements':[{'key':'a','operator':'In','values':"
                    "['-1','-2','-3','-4','-5','-6','-7']}],");
    settle(s);
    expect_condition(s, "a", CONDITION_VALIDATION_SUCCEEDED, "False", "NodePoolValidationFailed",
                     "; and 2 more");
}

/* --- hash --- */

static void make_claim(struct stage *s, const char *name, const char *pool, const char *annotations,
                       bool drifted)
{
    object_unref(make(s->w->store, &nodeclaim_kind,
                      js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'%s'},"
                         "'annotations':{%s}},'spec':{'requirements':[],'nodeClassRef':{"
                         "'group':'karpenter.kwok.sh','kind':'KWOKNodeClass','name':'default'}}}",
                         name, pool, annotations)));
    if (drifted)
        object_unref(merge_status(s->w->store, &nodeclaim_kind, name,
                                  js("{'status':{'conditions':[{'type':'Drifted','status':'True',"
                                     "'reason':'NodePoolDrifted','message':'',"
                                     "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}")));
}

static void expect_annotation(struct stage *s, const struct kind *kind, const char *name,
                              const char *key, const char *want)
{
    AUTO_OBJECT object = get(s->w->store, kind, name);
    EXPECT_STR(str_map_get(&object->meta.annotations, str_of(key)), want);
}

static void expect_pool_hash(struct stage *s, const char *name)
{
    AUTO_OBJECT pool = get(s->w->store, &nodepool_kind, name);
    char text[HASH_TEXT_MAX];
    hash_format(nodepool_hash(nodepool_of(pool)), text);
    expect_annotation(s, &nodepool_kind, name, ANNOTATION_NODEPOOL_HASH, text);
    expect_annotation(s, &nodepool_kind, name, ANNOTATION_NODEPOOL_HASH_VERSION, "v3");
}

TEST(a_pool_carries_the_hash_of_its_template)
{
    AUTO(stage) s = start();
    make_plain_pool(s, "a", "default", "", NO_REQUIREMENTS);
    settle(s);
    expect_pool_hash(s, "a");
    object_unref(merge(s->w->store, &nodepool_kind, "a",
                       js("{'spec':{'template':{'metadata':{'labels':{'team':'b'}}}}}")));
    settle(s);
    expect_pool_hash(s, "a");
}

TEST(a_change_of_the_template_leaves_the_hashes_of_claims)
{
    AUTO(stage) s = start();
    make_plain_pool(s, "a", "default", "", NO_REQUIREMENTS);
    settle(s);
    make_claim(s, "c", "a",
               "'karpenter.sh/nodepool-hash':'1','karpenter.sh/nodepool-hash-version':'v3'", false);
    uint64_t before = version_of(s, &nodeclaim_kind, "c");
    object_unref(merge(s->w->store, &nodepool_kind, "a",
                       js("{'spec':{'template':{'metadata':{'labels':{'team':'b'}}}}}")));
    settle(s);
    EXPECT_EQ(version_of(s, &nodeclaim_kind, "c"), before);
}

TEST(claims_of_another_hash_version_are_stamped_anew_and_drifted_ones_keep_their_hash)
{
    AUTO(stage) s = start();
    make_plain_pool(s, "a", "default", "", NO_REQUIREMENTS);
    object_unref(merge(s->w->store, &nodepool_kind, "a",
                       js("{'metadata':{'annotations':{'karpenter.sh/nodepool-hash':'7',"
                          "'karpenter.sh/nodepool-hash-version':'v2'}}}")));
    static const char old[] =
        "'karpenter.sh/nodepool-hash':'1','karpenter.sh/nodepool-hash-version':'v2'";
    make_claim(s, "plain", "a", old, false);
    make_claim(s, "drifted", "a", old, true);
    make_claim(s, "current", "a",
               "'karpenter.sh/nodepool-hash':'2','karpenter.sh/nodepool-hash-version':'v3'", false);
    make_claim(s, "stranger", "b", old, false);
    settle(s);

    AUTO_OBJECT pool = get(s->w->store, &nodepool_kind, "a");
    char hash[HASH_TEXT_MAX];
    hash_format(nodepool_hash(nodepool_of(pool)), hash);
    expect_pool_hash(s, "a");
    expect_annotation(s, &nodeclaim_kind, "plain", ANNOTATION_NODEPOOL_HASH, hash);
    expect_annotation(s, &nodeclaim_kind, "plain", ANNOTATION_NODEPOOL_HASH_VERSION, "v3");
    expect_annotation(s, &nodeclaim_kind, "drifted", ANNOTATION_NODEPOOL_HASH, "1");
    expect_annotation(s, &nodeclaim_kind, "drifted", ANNOTATION_NODEPOOL_HASH_VERSION, "v3");
    expect_annotation(s, &nodeclaim_kind, "current", ANNOTATION_NODEPOOL_HASH, "2");
    expect_annotation(s, &nodeclaim_kind, "stranger", ANNOTATION_NODEPOOL_HASH_VERSION, "v2");
}

/* --- at rest --- */

TEST(a_settled_pool_is_not_written_again_not_even_by_a_new_process)
{
    AUTO(stage) s = start();
    make_plain_pool(s, "a", "default", "", NO_REQUIREMENTS);
    make_plain_pool(s, "b", "nowhere", "",
                    "'requirements':[{'key':'a','operator':'In','values':['-no-']}],");
    settle(s);
    uint64_t a = version_of(s, &nodepool_kind, "a"), b = version_of(s, &nodepool_kind, "b");
    control_resync(s->c);
    stage_pass(s, 3600);
    stage_restart(s);
    stage_pass(s, 3600);
    EXPECT_EQ(version_of(s, &nodepool_kind, "a"), a);
    EXPECT_EQ(version_of(s, &nodepool_kind, "b"), b);
    EXPECT_EQ(control_next_due(s->c), INT64_MAX);
}
