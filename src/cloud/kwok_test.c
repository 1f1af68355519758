#include "cloud/kwok_impl.h"
#include "cloud/kwok_testing.h"

/* --- what is launched --- */

TEST(the_cheapest_offering_that_the_claim_allows_is_launched)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX "," AMD64, SMALL);
    struct instance i = launch(c, claim);
    EXPECT_STR(i.instance_type, "c-1x-amd64-linux");
    EXPECT_STR(i.capacity_type, "spot");
    EXPECT_STR(i.claim_name, "a");
    EXPECT_STR(i.nodepool, "web");
}

TEST(a_type_must_be_large_enough_for_the_requests_after_overhead)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT just = claim_of(c, "just", LINUX "," AMD64, "'cpu':'900m'");
    AUTO_OBJECT over = claim_of(c, "over", LINUX "," AMD64, "'cpu':'901m'");
    AUTO_OBJECT fat = claim_of(c, "fat", LINUX "," AMD64, "'cpu':'1','memory':'7Gi'");
    EXPECT_STR(launch(c, just).instance_type, "c-1x-amd64-linux");
    EXPECT_STR(launch(c, over).instance_type, "c-2x-amd64-linux");
    EXPECT_STR(launch(c, fat).instance_type, "s-2x-amd64-linux");
}

TEST(requirements_on_labels_of_types_and_offerings_are_obeyed)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(
        c, "a",
        AMD64 "," ZONE_A ",{'key':'kubernetes.io/os','operator':'In','values':['windows']},"
              "{'key':'karpenter.sh/capacity-type','operator':'NotIn','values':['spot']},"
              "{'key':'karpenter.kwok.sh/instance-cpu','operator':'Gt','values':['8']},"
              "{'key':'karpenter.kwok.sh/instance-family','operator':'In','values':['s','m']}",
        SMALL);
    struct instance i = launch(c, claim);
    EXPECT_STR(i.instance_type, "s-16x-amd64-windows");
    EXPECT_STR(i.zone, "test-zone-a");
    EXPECT_STR(i.capacity_type, "on-demand");
}

TEST(a_label_of_the_users_own_excludes_no_type)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(
        c, "a", LINUX "," AMD64 ",{'key':'tier','operator':'In','values':['gold']}", SMALL);
    struct instance i = launch(c, claim);
    EXPECT_STR(str_map_get(&i.labels, STR("tier")), "gold");
}

TEST(offerings_of_equal_price_are_all_used_and_the_seed_decides)
{
    AUTO(cloud) c = cloud_new();
    struct str_table zones = { 0 };
    for (int n = 0; n < 40; n++) {
        char name[16];
        snprintf(name, sizeof name, "claim-%d", n);
        AUTO_OBJECT claim = claim_of(c, name, LINUX "," AMD64, SMALL);
        struct instance i = launch(c, claim);
        EXPECT_STR(i.capacity_type, "spot");
        str_table_put(&zones, i.zone, c);
        AUTO(kwok) same_seed = kwok_new((struct kwok_options){
            .store = c->w->store, .clock = virtual_clock_port(c->w->time), .seed = c->seed });
        const struct cloud_provider *p = kwok_provider(same_seed);
        struct instance again;
        struct launch_failure why;
        struct err err = { 0 };
        EXPECT_OK(p->create(p->ctx, nodeclaim_of(claim), &c->arena, &again, &why, &err), err);
        EXPECT_TRUE(str_eq(again.zone, i.zone));
    }
    EXPECT_EQ(zones.live_count, 4);
    str_table_done(&zones);
}

TEST(resources_that_an_overlay_added_are_not_asked_of_the_providers_types)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT plain = claim_of(c, "plain", LINUX "," AMD64, SMALL ",'example.com/fpga':'1'");
    expect_refused(c, plain, LAUNCH_INSUFFICIENT_CAPACITY, "none is large enough");
    AUTO_OBJECT overlaid =
        merge(c->w->store, &nodeclaim_kind, "plain",
              js("{'metadata':{'annotations':{'" ANNOTATION_CAPACITY_OVERLAY "':'true'}}}"));
    struct instance i = launch(c, overlaid);
    EXPECT_EQ(resources_get(&i.allocatable, STR("example.com/fpga")).units, 1);
    EXPECT_EQ(resources_get(&i.capacity, STR("example.com/fpga")).units, 1);
}

/* --- what is refused, and how --- */

TEST(a_missing_node_class_is_insufficient_capacity)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim =
        make(c->w->store, &nodeclaim_kind, claim_json("a", "no-such-class", LINUX, SMALL));
    expect_refused(c, claim, LAUNCH_INSUFFICIENT_CAPACITY, "no-such-class");
}

TEST(a_class_of_another_provider_is_insufficient_capacity)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim =
        make(c->w->store, &nodeclaim_kind,
             js("{'metadata':{'name':'a'},'spec':{'nodeClassRef':{'group':'karpenter.k8s.aws',"
                "'kind':'EC2NodeClass','name':'default'},'requirements':[]}}"));
    expect_refused(c, claim, LAUNCH_INSUFFICIENT_CAPACITY, "not a node class of this provider");
}

TEST(a_class_that_is_not_ready_refuses_and_one_of_which_nothing_is_known_does_not)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    object_unref(merge_status(c->w->store, &kwoknodeclass_kind, "default",
                              js("{'status':{'conditions':[{'type':'Ready','status':'False',"
                                 "'reason':'Broken','message':'it is broken',"
                                 "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}")));
    expect_refused(c, claim, LAUNCH_CLASS_NOT_READY, "it is broken");
    object_unref(merge_status(c->w->store, &kwoknodeclass_kind, "default",
                              js("{'status':{'conditions':[{'type':'Ready','status':'Unknown',"
                                 "'reason':'X','message':'',"
                                 "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}")));
    launch(c, claim);
}

TEST(nothing_that_fits_is_insufficient_capacity_and_the_message_says_what_was_missing)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT huge = claim_of(c, "huge", LINUX, "'cpu':'300'");
    expect_refused(c, huge, LAUNCH_INSUFFICIENT_CAPACITY,
                   "72 instance types meet the requirements, "
                   "and none is large enough");
    AUTO_OBJECT odd =
        claim_of(c, "odd", "{'key':'kubernetes.io/os','operator':'In','values':['plan9']}", SMALL);
    expect_refused(c, odd, LAUNCH_INSUFFICIENT_CAPACITY,
                   "none of 144 instance types meets "
                   "kubernetes.io/os In [plan9]");
    AUTO_OBJECT nowhere = claim_of(
        c, "nowhere",
        "{'key':'topology.kubernetes.io/zone','operator':'In','values':['test-zone-a','mars']},"
        "{'key':'karpenter.sh/capacity-type','operator':'In','values':['reserved','spot']}",
        SMALL);
    EXPECT_STR(launch(c, nowhere).zone, "test-zone-a");
}

TEST(a_marked_offering_is_refused_and_the_next_cheapest_is_taken)
{
    AUTO(cloud) c = cloud_new();
    struct unavailable *marks = kwok_unavailable(c->k);
    AUTO_OBJECT first = claim_of(c, "first", LINUX "," AMD64, SMALL);
    AUTO_OBJECT second = claim_of(c, "second", LINUX "," AMD64 "," SPOT, SMALL);
    unavailable_mark(marks, STR("c-1x-amd64-linux"), STR(""), STR("spot"), STR(""));
    struct instance i = launch(c, first);
    EXPECT_STR(i.instance_type, "s-1x-amd64-linux"); /* spot 0.0205 is below 0.0271 on demand */
    EXPECT_STR(i.capacity_type, "spot");
    unavailable_mark(marks, STR(""), STR(""), STR("spot"), STR(""));
    expect_refused(c, second, LAUNCH_INSUFFICIENT_CAPACITY, "no capacity in any of");
    virtual_clock_advance(c->w->time, UNAVAILABLE_TTL_NS);
    EXPECT_STR(launch(c, second).instance_type, "c-1x-amd64-linux");
}

/* --- types and their generation --- */

static struct nodepool pool_of(const char *class_name)
{
    struct nodepool pool = { 0 };
    pool.object.meta.name = STR("web");
    pool.spec.template.spec.node_class_ref =
        (struct node_class_ref){ STR("karpenter.kwok.sh"), STR("KWOKNodeClass"),
                                 str_of(class_name) };
    return pool;
}

static struct generation generation_of(struct cloud *c, const struct nodepool *pool)
{
    struct generation g;
    struct err err = { 0 };
    EXPECT_OK(c->p->get_generation(c->p->ctx, pool, &g, &err), err);
    return g;
}

static uint32_t available_count(struct cloud *c, const struct nodepool *pool)
{
    AUTO_INSTANCE_TYPES types = NULL;
    struct err err = { 0 };
    EXPECT_OK(c->p->get_instance_types(c->p->ctx, pool, &types, &err), err);
    return bitset_popcount(&types->available);
}

TEST(a_mark_and_its_end_are_changes_of_the_generation_and_of_the_types)
{
    AUTO(cloud) c = cloud_new();
    struct nodepool pool = pool_of("default");
    struct generation before = generation_of(c, &pool);
    EXPECT_EQ(available_count(c, &pool), 1152);

    unavailable_mark(kwok_unavailable(c->k), STR("c-1x-amd64-linux"), STR("test-zone-a"),
                     STR("spot"), STR(""));
    struct generation marked = generation_of(c, &pool);
    EXPECT_EQ(generation_difference(&before, &marked), GENERATION_UNAVAILABLE);
    EXPECT_EQ(available_count(c, &pool), 1151);

    virtual_clock_advance(c->w->time, UNAVAILABLE_TTL_NS);
    struct generation after = generation_of(c, &pool);
    EXPECT_EQ(generation_difference(&marked, &after), GENERATION_UNAVAILABLE);
    EXPECT_EQ(generation_difference(&before, &after), GENERATION_UNAVAILABLE);
    EXPECT_EQ(available_count(c, &pool), 1152);
}

TEST(pools_of_different_classes_have_different_generations)
{
    AUTO(cloud) c = cloud_new();
    struct nodepool a = pool_of("a"), b = pool_of("b");
    struct generation of_a = generation_of(c, &a), of_b = generation_of(c, &b);
    EXPECT_EQ(generation_difference(&of_a, &of_b), GENERATION_INPUTS);
    struct generation again = generation_of(c, &a);
    EXPECT_TRUE(generation_equal(&of_a, &again));
}

/* --- the node --- */

TEST(the_node_appears_when_the_registration_delay_is_over)
{
    AUTO(cloud) c = cloud_new();
    EXPECT_EQ(kwok_step(c->k), INT64_MAX);
    AUTO_OBJECT claim = claim_of(c, "a", LINUX "," AMD64 "," ZONE_A, SMALL);
    struct instance i = launch(c, claim);
    EXPECT_EQ(kwok_step(c->k), 30 * SECOND_NS);
    pass(c, 29);
    EXPECT_EQ(node_count(c), 0);
    pass(c, 1);
    EXPECT_EQ(node_count(c), 1);
    EXPECT_TRUE(is_there(c->w->store, &node_kind, i.node_name.p));
    EXPECT_EQ(kwok_step(c->k), INT64_MAX);
}

TEST(without_a_delay_the_node_appears_at_the_next_step)
{
    AUTO(cloud) c = cloud_new();
    object_unref(
        make(c->w->store, &kwoknodeclass_kind, js("{'metadata':{'name':'quick'},'spec':{}}")));
    AUTO_OBJECT claim = make(c->w->store, &nodeclaim_kind, claim_json("a", "quick", LINUX, SMALL));
    launch(c, claim);
    EXPECT_EQ(kwok_step(c->k), INT64_MAX);
    EXPECT_EQ(node_count(c), 1);
}

TEST(the_node_has_the_taint_labels_annotations_and_amounts_of_its_instance)
{
    AUTO(cloud) c = cloud_new();
    AUTO_OBJECT claim = claim_of(c, "web-7", LINUX "," AMD64 "," ZONE_A "," SPOT, SMALL);
    struct instance i = launch(c, claim);
    pass(c, 30);
    AUTO_OBJECT object = get(c->w->store, &node_kind, i.node_name.p);
    const struct node *node = node_of(object);
    const struct {
        const char *key, *value;
    } want[] = {
        { "karpenter.sh/nodepool", "web" },
        { "team", "shop" },
        { "node.kubernetes.io/instance-type", "c-1x-amd64-linux" },
        { "topology.kubernetes.io/zone", "test-zone-a" },
        { "karpenter.sh/capacity-type", "spot" },
        { "kubernetes.io/arch", "amd64" },
        { "kubernetes.io/os", "linux" },
        { "kubernetes.io/hostname", "web-7" },
        { "karpenter.kwok.sh/instance-cpu", "1" },
        { "karpenter.kwok.sh/instance-family", "c" },
        { "kwok.x-k8s.io/node", "fake" },
        { "kwok-partition", "a" },
        { "eks-node-viewer/instance-price", "0.019003" },
    };
    for (size_t n = 0; n < KV_COUNT_OF(want); n++) {
        EXPECT_STR(str_map_get(&object->meta.labels, str_of(want[n].key)), want[n].value);
        EXPECT_STR(str_map_get(&i.labels, str_of(want[n].key)), want[n].value);
    }
    EXPECT_STR(str_map_get(&object->meta.annotations, STR("note")), "x");
    EXPECT_STR(str_map_get(&object->meta.annotations, STR("kwok.x-k8s.io/node")), "fake");
    EXPECT_EQ(node->spec.taints.count, 1);
    EXPECT_TRUE(node_taint(node, STR(TAINT_UNREGISTERED), EFFECT_NO_EXECUTE) != NULL);
    EXPECT_TRUE(str_eq(node->spec.provider_id, i.provider_id));
    EXPECT_EQ(quantity_milli(resources_get(&node->status.capacity, STR("cpu"))), 1000);
    EXPECT_EQ(quantity_milli(resources_get(&node->status.allocatable, STR("cpu"))), 900);
    EXPECT_EQ(resources_get(&node->status.allocatable, STR("pods")).units, 16);
}

TEST(a_claim_with_a_very_long_name_gets_a_node_all_the_same)
{
    AUTO(cloud) c = cloud_new();
    char name[254];
    memset(name, 'a', sizeof name - 1);
    memset(name + 190, '.', 1);
    name[199] = '-';
    name[253] = '\0';
    AUTO_OBJECT claim = claim_of(c, name, LINUX, SMALL);
    struct instance i = launch(c, claim);
    pass(c, 30);
    EXPECT_TRUE(is_there(c->w->store, &node_kind, i.node_name.p));
    struct instance from_node;
    struct err err = { 0 };
    EXPECT_OK(get_instance(c, i.provider_id, &from_node, &err), err);
    EXPECT_STR(from_node.claim_name, name);
}

TEST(nodes_appear_in_the_order_in_which_they_are_due)
{
    AUTO(cloud) c = cloud_new();
    object_unref(make(c->w->store, &kwoknodeclass_kind,
                      js("{'metadata':{'name':'quick'},'spec':{'nodeRegistrationDelay':'5s'}}")));
    AUTO_OBJECT slow = claim_of(c, "slow", LINUX, SMALL);
    AUTO_OBJECT quick =
        make(c->w->store, &nodeclaim_kind, claim_json("quick", "quick", LINUX, SMALL));
    struct instance first = launch(c, slow), second = launch(c, quick);
    EXPECT_EQ(kwok_step(c->k), 5 * SECOND_NS);
    pass(c, 60);
    AUTO_OBJECT a = get(c->w->store, &node_kind, first.node_name.p);
    AUTO_OBJECT b = get(c->w->store, &node_kind, second.node_name.p);
    EXPECT_TRUE(b->meta.resource_version < a->meta.resource_version);
}

/* --- constants of the provider --- */

TEST(it_names_itself_its_class_and_its_repair_policies_and_never_drifts)
{
    AUTO(cloud) c = cloud_new();
    EXPECT_Z(c->p->name, "kwok");
    EXPECT_EQ(c->p->node_class_count, 1);
    EXPECT_Z(c->p->node_classes[0].kind, "KWOKNodeClass");
    EXPECT_EQ(c->p->repair_policy_count, 2);
    for (uint32_t i = 0; i < 2; i++) {
        EXPECT_Z(c->p->repair_policies[i].condition, "Ready");
        EXPECT_EQ(c->p->repair_policies[i].toleration_ns, 600 * SECOND_NS);
    }
    AUTO_OBJECT claim = claim_of(c, "a", LINUX, SMALL);
    const char *reason = NULL;
    struct err err = { 0 };
    EXPECT_OK(c->p->is_drifted(c->p->ctx, nodeclaim_of(claim), &reason, &err), err);
    EXPECT_Z(reason, "");
}

/* --- types of another provider --- */

struct other { /* a provider of one type, for EC2NodeClasses */
    const struct instance_types *types;
    struct generation generation;
    struct str asked_class;
};

static int other_types(void *ctx, const struct nodepool *pool, const struct instance_types **out,
                       struct err *err KV_UNUSED)
{
    struct other *o = ctx;
    o->asked_class = pool->spec.template.spec.node_class_ref.name;
    *out = instance_types_ref(o->types);
    return 0;
}

static int other_generation(void *ctx, const struct nodepool *pool KV_UNUSED,
                            struct generation *out, struct err *err KV_UNUSED)
{
    *out = ((struct other *)ctx)->generation;
    return 0;
}

static const struct node_class_kind ec2_class = { "karpenter.k8s.aws", "EC2NodeClass" };

TEST(types_of_another_provider_are_launched_for_its_node_classes)
{
    AUTO(cloud) c = cloud_new();
    struct other o = { 0 };
    struct err err = { 0 };
    o.types = instance_types_ref(kwok_types());
    struct cloud_provider theirs = { .get_instance_types = other_types,
                                     .get_generation = other_generation,
                                     .node_classes = &ec2_class,
                                     .node_class_count = 1,
                                     .ctx = &o };
    AUTO(kwok) k = kwok_new((struct kwok_options){ .store = c->w->store,
                                                   .clock = virtual_clock_port(c->w->time),
                                                   .maybe_types = &theirs,
                                                   .registration_delay_ns = 45 * SECOND_NS });
    const struct cloud_provider *p = kwok_provider(k);
    EXPECT_EQ(p->node_class_count, 2);
    object_unref(make(c->w->store, &ec2nodeclass_kind,
                      js("{'metadata':{'name':'standard'},'spec':{'role':'r',"
                         "'amiSelectorTerms':[{'alias':'al2023@latest'}],"
                         "'subnetSelectorTerms':[{'id':'subnet-1'}],"
                         "'securityGroupSelectorTerms':[{'id':'sg-1'}]}}")));
    AUTO_OBJECT claim =
        make(c->w->store, &nodeclaim_kind,
             js("{'metadata':{'name':'a'},'spec':{'nodeClassRef':{'group':'karpenter.k8s.aws',"
                "'kind':'EC2NodeClass','name':'standard'},'requirements':[" LINUX "]}}"));
    struct instance i;
    struct launch_failure why;
    EXPECT_OK(p->create(p->ctx, nodeclaim_of(claim), &c->arena, &i, &why, &err), err);
    EXPECT_STR(o.asked_class, "standard");
    EXPECT_EQ(kwok_step(k), 45 * SECOND_NS);

    /* Marks of theirs and marks of ours both move the generation, and never undo one another. */
    struct nodepool pool = pool_of("default");
    struct generation seen[4];
    EXPECT_OK(p->get_generation(p->ctx, &pool, &seen[0], &err), err);
    o.generation.member[GENERATION_UNAVAILABLE]++;
    EXPECT_OK(p->get_generation(p->ctx, &pool, &seen[1], &err), err);
    unavailable_mark(kwok_unavailable(k), STR("x"), STR("y"), STR("spot"), STR(""));
    EXPECT_OK(p->get_generation(p->ctx, &pool, &seen[2], &err), err);
    o.generation.member[GENERATION_UNAVAILABLE]--;
    EXPECT_OK(p->get_generation(p->ctx, &pool, &seen[3], &err), err);
    for (int a = 0; a < 4; a++)
        for (int b = 0; b < a; b++)
            EXPECT_EQ(generation_difference(&seen[a], &seen[b]), GENERATION_UNAVAILABLE);
    instance_types_unref(o.types);
}
