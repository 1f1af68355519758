#include "api/policy.h"
#include "control/controllers.h"
#include "control/testing.h"

static const struct controller *const under_test[] = { &nodepool_launchable };

static struct stage *start(void)
{
    return stage_new(
        (struct stage_options){ .controllers = under_test, .count = KV_COUNT_OF(under_test) });
}

static void make_pool_asking(struct stage *s, const char *labels, const char *requirements)
{
    object_unref(make(s->w->store, &nodepool_kind,
                      js("{'metadata':{'name':'a'},'spec':{'template':{'metadata':{'labels':{%s}},"
                         "'spec':{'nodeClassRef':{'group':'karpenter.kwok.sh',"
                         "'kind':'KWOKNodeClass','name':'default'},'requirements':[%s]}}}}",
                         labels, requirements)));
}

static void ask(struct stage *s, const char *requirements)
{
    object_unref(merge(s->w->store, &nodepool_kind, "a",
                       js("{'spec':{'template':{'spec':{'requirements':[%s]}}}}", requirements)));
}

static void expect_launch(struct stage *s, enum condition_status status, const char *reason,
                          const char *message)
{
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, "a");
    const struct nodepool *pool = nodepool_of(object);
    const struct condition *condition = condition_find(
        pool->status.conditions.items, pool->status.conditions.count, CONDITION_LAUNCH_POSSIBLE);
    EXPECT_TRUE(condition);
    EXPECT_STR(condition->reason, reason);
    EXPECT_EQ(condition->status, status);
    EXPECT_STR(condition->message, message);
}

/* The message of the newest event, or "". */
static struct str event_message(struct stage *s, struct buf *out)
{
    struct object_list all = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(s->w->store, &event_kind, NULL, &all, &err), err);
    buf_clear(out);
    for (size_t i = 0; i < all.count; i++) {
        const struct event *event = event_of(all.items[i]);
        buf_addf(out, "%.*s: %.*s\n", STR_ARG(event->reason), STR_ARG(event->message));
    }
    object_list_done(&all);
    return buf_str(out);
}

#define ZONE(value) "{'key':'topology.kubernetes.io/zone','operator':'In','values':['" value "']}"
#define CAPACITY(value)                                                                            \
    "{'key':'karpenter.sh/capacity-type','operator':'In','values':['" value "']}"
#define ARCH(value) "{'key':'kubernetes.io/arch','operator':'In','values':['" value "']}"

TEST(a_pool_that_something_can_be_launched_for_says_so)
{
    AUTO(stage) s = start();
    AUTO_BUF text = { 0 };
    make_pool_asking(s, "'team':'shop'", ARCH("arm64") "," CAPACITY("spot"));
    settle(s);
    expect_launch(s, CONDITION_TRUE, "LaunchPossible", "");
    EXPECT_STR(event_message(s, &text), "");
}

TEST(a_zone_that_no_type_is_in_is_named_together_with_those_there_are)
{
    AUTO(stage) s = start();
    AUTO_BUF text = { 0 };
    make_pool_asking(s, "", ARCH("arm64") "," ZONE("us-east-9z"));
    settle(s);
    expect_launch(s, CONDITION_FALSE, "NoCompatibleInstanceTypes",
                  "topology.kubernetes.io/zone In [us-east-9z] leaves no instance type: the types "
                  "of its node class have test-zone-a, test-zone-b, test-zone-c, test-zone-d");
    EXPECT_HAS(event_message(s, &text), "NoCompatibleInstanceTypes: topology.kubernetes.io/zone");
}

TEST(requirements_that_only_together_leave_nothing_are_told_so)
{
    AUTO(stage) s = start();
    make_pool_asking(s, "",
                     "{'key':'karpenter.kwok.sh/instance-cpu','operator':'In','values':['2']},"
                     "{'key':'node.kubernetes.io/instance-type','operator':'In',"
                     "'values':['c-4x-amd64-linux']}");
    settle(s);
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, "a");
    const struct nodepool *pool = nodepool_of(object);
    const struct condition *condition = condition_find(
        pool->status.conditions.items, pool->status.conditions.count, CONDITION_LAUNCH_POSSIBLE);
    EXPECT_STR(condition->reason, "NoCompatibleInstanceTypes");
    EXPECT_HAS(condition->message, "node.kubernetes.io/instance-type In [c-4x-amd64-linux] leaves "
                                   "no instance type: the types that meet the other requirements "
                                   "have c-2x-amd64-linux");
}

TEST(a_label_of_the_template_counts_as_a_requirement)
{
    AUTO(stage) s = start();
    make_pool_asking(s, "'kubernetes.io/arch':'s390x'", "");
    settle(s);
    expect_launch(s, CONDITION_FALSE, "NoCompatibleInstanceTypes",
                  "kubernetes.io/arch In [s390x] leaves no instance type: the types of its node "
                  "class have amd64, arm64");
}

TEST(fewer_values_than_minvalues_asks_for_are_told)
{
    AUTO(stage) s = start();
    make_pool_asking(s, "", "{'key':'kubernetes.io/arch','operator':'Exists','minValues':3}");
    settle(s);
    expect_launch(
        s, CONDITION_FALSE, "NoCompatibleInstanceTypes",
        "kubernetes.io/arch Exists minValues 3 asks for 3 different values, and the types "
        "that are left have 2: amd64, arm64");
}

/* A provider with one type that is sold as spot in zone-a and on demand in zone-b. */
struct shop {
    struct cloud_provider port;
    struct arena arena;
    const struct instance_types *types;
    struct err trouble; /* what asking for types gives instead */
    bool spot_available;
};

static void shop_stock(struct shop *shop)
{
    struct offering_draft offerings[2] = {
        { .price = 1, .available = shop->spot_available },
        { .price = 2, .available = false },
    };
    static const char *const where[2][2] = { { "zone-a", "spot" }, { "zone-b", "on-demand" } };
    for (int i = 0; i < 2; i++) {
        struct str zone = str_of(where[i][0]), capacity = str_of(where[i][1]);
        struct requirements set = { 0 };
        struct requirement r =
            requirement_in(&shop->arena, STR(LABEL_ZONE), (struct str_list){ &zone, 1 });
        set = requirements_add(&shop->arena, &set, &r);
        r = requirement_in(&shop->arena, STR(LABEL_CAPACITY_TYPE),
                           (struct str_list){ &capacity, 1 });
        offerings[i].requirements = requirements_add(&shop->arena, &set, &r);
    }
    struct instance_type_draft draft = { .name = STR("small"),
                                         .offerings = offerings,
                                         .offering_count = 2 };
    struct err err = { 0 };
    instance_types_unref(shop->types);
    EXPECT_OK(
        instance_types_build(&draft, 1, (struct instance_types_options){ 0 }, &shop->types, &err),
        err);
}

static int shop_types(void *ctx, const struct nodepool *pool KV_UNUSED,
                      const struct instance_types **out, struct err *err)
{
    struct shop *shop = ctx;
    if (shop->trouble.kind) {
        *err = shop->trouble;
        return -1;
    }
    *out = instance_types_ref(shop->types);
    return 0;
}

/* Never the same twice: nothing is answered from the cache. */
static int shop_generation(void *ctx KV_UNUSED, const struct nodepool *pool KV_UNUSED,
                           struct generation *out, struct err *err KV_UNUSED)
{
    static uint64_t calls;
    *out = (struct generation){ .member = { [0] = ++calls } };
    return 0;
}

static const struct node_class_kind shop_classes[] = { { "karpenter.kwok.sh", "KWOKNodeClass" } };

static struct stage *start_shop(struct shop *shop)
{
    shop->port = (struct cloud_provider){ .get_instance_types = shop_types,
                                          .get_generation = shop_generation,
                                          .name = "shop",
                                          .node_classes = shop_classes,
                                          .node_class_count = 1,
                                          .ctx = shop };
    shop_stock(shop);
    return stage_new((struct stage_options){ .controllers = under_test,
                                             .count = KV_COUNT_OF(under_test),
                                             .maybe_provider = &shop->port });
}

static void shop_done(struct shop *shop)
{
    instance_types_unref(shop->types);
    arena_done(&shop->arena);
}

TEST(what_is_offered_elsewhere_or_otherwise_is_no_offering)
{
    struct shop shop = { .spot_available = true };
    struct stage *s = start_shop(&shop);
    make_pool_asking(s, "", ZONE("zone-b") "," CAPACITY("spot"));
    settle(s);
    expect_launch(s, CONDITION_FALSE, "NoOfferings",
                  "none of the 1 instance types that meet the requirements is offered with "
                  "karpenter.sh/capacity-type In [spot] and topology.kubernetes.io/zone In "
                  "[zone-b]; they are offered as spot in zone-a, on-demand in zone-b");
    ask(s, CAPACITY("spot"));
    settle(s);
    expect_launch(s, CONDITION_TRUE, "LaunchPossible", "");
    stage_free(s);
    shop_done(&shop);
}

TEST(want_of_capacity_is_not_a_mistake_and_passes_by_itself)
{
    struct shop shop = { .spot_available = false };
    struct stage *s = start_shop(&shop);
    AUTO_BUF text = { 0 };
    make_pool_asking(s, "", "");
    settle(s);
    expect_launch(s, CONDITION_FALSE, "InstanceTypesUnavailable",
                  "nothing can be had at the moment: all 2 offerings of the instance types that "
                  "meet the requirements are unavailable");
    EXPECT_STR(event_message(s, &text), "");

    shop.spot_available = true;
    shop_stock(&shop);
    stage_pass(s, 61);
    expect_launch(s, CONDITION_TRUE, "LaunchPossible", "");
    stage_free(s);
    shop_done(&shop);
}

TEST(it_is_not_part_of_ready)
{
    AUTO(stage) s = start();
    object_unref(make_pool(s, "a", ""));
    ask(s, ZONE("nowhere"));
    settle(s);
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, "a");
    const struct nodepool *pool = nodepool_of(object);
    const struct condition *ready = condition_find(pool->status.conditions.items,
                                                   pool->status.conditions.count, CONDITION_READY);
    /* The others' are of the generation before: nothing here is False. */
    EXPECT_EQ(ready->status, CONDITION_UNKNOWN);
}

TEST(trouble_with_the_cloud_leaves_the_condition_and_a_missing_class_is_unknown)
{
    struct shop shop = { .spot_available = true };
    struct stage *s = start_shop(&shop);
    make_pool_asking(s, "", "");
    settle(s);
    err_set(&shop.trouble, ERR_UNAVAILABLE, "the cloud is away");
    ask(s, CAPACITY("spot"));
    stage_pass(s, 10);
    expect_launch(s, CONDITION_TRUE, "LaunchPossible", "");
    err_set(&shop.trouble, ERR_NOT_FOUND, "no such class");
    ask(s, CAPACITY("on-demand"));
    settle(s);
    expect_launch(s, CONDITION_UNKNOWN, "NodeClassNotFound", "no such class");
    stage_free(s);
    shop_done(&shop);
}

TEST(nothing_is_written_while_nothing_changes_and_it_is_looked_at_every_five_minutes)
{
    AUTO(stage) s = start();
    make_pool_asking(s, "", ZONE("nowhere"));
    settle(s);
    AUTO_OBJECT before = get(s->w->store, &nodepool_kind, "a");
    uint32_t events = count_of(s, &event_kind);
    uint64_t reconciles = control_stats(s->c).reconciles;
    stage_pass(s, 3600);
    AUTO_OBJECT after = get(s->w->store, &nodepool_kind, "a");
    EXPECT_EQ(after->meta.resource_version, before->meta.resource_version);
    EXPECT_EQ(count_of(s, &event_kind), events);
    EXPECT_EQ(control_stats(s->c).reconciles - reconciles, 12);
}
