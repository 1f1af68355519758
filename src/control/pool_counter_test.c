#include "control/controllers.h"
#include "control/testing.h"

static const struct controller *const under_test[] = { &nodepool_counter };

static struct stage *start(void)
{
    struct stage *s = stage_new(
        (struct stage_options){ .controllers = under_test, .count = KV_COUNT_OF(under_test) });
    object_unref(make_pool(s, "a", ""));
    return s;
}

static void make_claim(struct stage *s, const char *name, const char *pool)
{
    object_unref(make(s->w->store, &nodeclaim_kind,
                      js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'%s'}},"
                         "'spec':{'requirements':[],'nodeClassRef':{'group':'karpenter.kwok.sh',"
                         "'kind':'KWOKNodeClass','name':'default'}}}",
                         name, pool)));
}

static void launch_claim(struct stage *s, const char *name, const char *cpu, const char *memory)
{
    object_unref(merge_status(s->w->store, &nodeclaim_kind, name,
                              js("{'status':{'providerID':'x://%s','capacity':{'cpu':'%s',"
                                 "'memory':'%s','pods':'10'}}}",
                                 name, cpu, memory)));
}

static void make_launched(struct stage *s, const char *name, const char *pool, const char *cpu,
                          const char *memory)
{
    make_claim(s, name, pool);
    launch_claim(s, name, cpu, memory);
}

static void make_pool_node(struct stage *s, const char *name, const char *pool,
                           const char *more_labels, const char *provider_id, const char *capacity)
{
    object_unref(make(s->w->store, &node_kind,
                      js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'%s'%s}},"
                         "'spec':{'providerID':'%s'}}",
                         name, pool, more_labels, provider_id)));
    object_unref(
        merge_status(s->w->store, &node_kind, name, js("{'status':{'capacity':{%s}}}", capacity)));
}

/* "2 cpu=8 memory=16Gi ..." */
static struct str usage(struct stage *s, const char *pool, struct buf *out)
{
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, pool);
    const struct nodepool_status *status = &nodepool_of(object)->status;
    buf_clear(out);
    buf_addf(out, "%d", (int)status->nodes);
    for (uint32_t i = 0; i < status->resources.count; i++) {
        char text[QUANTITY_TEXT_MAX];
        quantity_format(status->resources.items[i].amount, text);
        buf_addf(out, " %.*s=%s", STR_ARG(status->resources.items[i].name), text);
    }
    return buf_str(out);
}

static uint64_t version_of(struct stage *s, const char *pool)
{
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, pool);
    return object->meta.resource_version;
}

/* How much has been written, by anybody. */
static uint64_t written_so_far(struct stage *s)
{
    struct object_list all = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(s->w->store, &nodepool_kind, NULL, &all, &err), err);
    uint64_t version = all.resource_version;
    object_list_done(&all);
    return version;
}

TEST(a_new_pool_shows_zero_of_what_every_pool_shows)
{
    AUTO(stage) s = start();
    AUTO_BUF text = { 0 };
    stage_pass(s, 2);
    EXPECT_STR(usage(s, "a", &text), "0 cpu=0 ephemeral-storage=0 memory=0 nodes=0 pods=0");
}

TEST(a_node_counts_from_its_launch_to_its_end_and_only_for_its_pool)
{
    AUTO(stage) s = start();
    AUTO_BUF text = { 0 };
    make_claim(s, "waiting", "a");
    make_launched(s, "one", "a", "4", "8Gi");
    make_launched(s, "two", "a", "2500m", "8Gi");
    make_launched(s, "other", "b", "100", "8Gi");
    stage_pass(s, 2);
    EXPECT_STR(usage(s, "a", &text), "2 cpu=6500m ephemeral-storage=0 memory=16Gi nodes=2 pods=20");

    object_unref(merge(s->w->store, &nodeclaim_kind, "one",
                       js("{'metadata':{'finalizers':['karpenter.sh/termination']}}")));
    remove_it(s->w->store, &nodeclaim_kind, "one"); /* on its way out */
    stage_pass(s, 2);
    EXPECT_STR(usage(s, "a", &text), "2 cpu=6500m ephemeral-storage=0 memory=16Gi nodes=2 pods=20");
    object_unref(
        merge(s->w->store, &nodeclaim_kind, "one", js("{'metadata':{'finalizers':null}}")));
    stage_pass(s, 2);
    EXPECT_STR(usage(s, "a", &text), "1 cpu=2500m ephemeral-storage=0 memory=8Gi nodes=1 pods=10");
}

TEST(a_claim_and_its_node_count_once_and_the_node_fills_in_what_it_knows)
{
    AUTO(stage) s = start();
    AUTO_BUF text = { 0 };
    make_launched(s, "one", "a", "4", "8Gi");
    make_pool_node(s, "n", "a", "", "x://one", "'cpu':'4','memory':'0','example.com/gpu':'2'");
    stage_pass(s, 2);
    EXPECT_STR(usage(s, "a", &text),
               "1 cpu=4 ephemeral-storage=0 example.com/gpu=2 memory=8Gi nodes=1 pods=10");

    object_unref(merge(s->w->store, &node_kind, "n",
                       js("{'metadata':{'labels':{'karpenter.sh/initialized':'true'}}}")));
    object_unref(merge_status(s->w->store, &node_kind, "n",
                              js("{'status':{'capacity':{'cpu':'3','memory':'7Gi',"
                                 "'example.com/gpu':null}}}")));
    stage_pass(s, 2);
    EXPECT_STR(usage(s, "a", &text), "1 cpu=3 ephemeral-storage=0 memory=7Gi nodes=1 pods=0");
}

TEST(nodes_that_lost_their_claim_count)
{
    AUTO(stage) s = start();
    AUTO_BUF text = { 0 };
    make_pool_node(s, "orphan", "a", "", "x://orphan", "'cpu':'4'");
    make_pool_node(s, "nameless", "a", "", "", "'cpu':'1'");
    stage_pass(s, 2);
    EXPECT_STR(usage(s, "a", &text), "2 cpu=5 ephemeral-storage=0 memory=0 nodes=2 pods=0");
}

TEST(a_thousand_claims_at_once_are_one_patch)
{
    AUTO(stage) s = start();
    AUTO_BUF text = { 0 };
    stage_pass(s, 2);
    uint64_t writes_before = written_so_far(s), others = 0;
    for (int i = 0; i < 1000; i++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", i);
        make_launched(s, name, "a", "1", "1Gi");
        others += 2;
        settle(s);
    }
    stage_pass(s, 5);
    EXPECT_STR(usage(s, "a", &text),
               "1000 cpu=1k ephemeral-storage=0 memory=1000Gi nodes=1k pods=10k");
    EXPECT_EQ(written_so_far(s) - writes_before, others + 1);
}

TEST(nothing_is_written_at_rest_and_heartbeats_are_not_counted)
{
    AUTO(stage) s = start();
    make_launched(s, "one", "a", "4", "8Gi");
    make_pool_node(s, "n", "a", "", "x://one", "'cpu':'4'");
    stage_pass(s, 5);
    uint64_t before = version_of(s, "a"), reconciles = control_stats(s->c).reconciles;
    object_unref(merge_status(s->w->store, &node_kind, "n",
                              js("{'status':{'conditions':[{'type':'Ready','status':'True'}]}}")));
    stage_pass(s, 60);
    EXPECT_EQ(control_stats(s->c).reconciles, reconciles);
    stage_restart(s);
    stage_pass(s, 3600);
    EXPECT_EQ(version_of(s, "a"), before);
    EXPECT_EQ(control_next_due(s->c), INT64_MAX);
}

TEST(the_metrics_of_a_pool_go_with_its_last_claim)
{
    AUTO(stage) s = start();
    AUTO_BUF text = { 0 };
    make_launched(s, "one", "a", "4", "8Gi");
    stage_pass(s, 2);
    metric_count(s->c->metrics.nodes_drained, STR("a"));
    metric_count(s->c->metrics.nodes_drained, STR("b"));
    remove_it(s->w->store, &nodepool_kind, "a");
    stage_pass(s, 2);
    metrics_write(s->metrics, &text);
    EXPECT_HAS(buf_str(&text), "karpenter_nodes_drained_total{nodepool=\"a\"} 1");

    remove_it(s->w->store, &nodeclaim_kind, "one");
    stage_pass(s, 2);
    buf_clear(&text);
    metrics_write(s->metrics, &text);
    EXPECT_HAS(buf_str(&text), "karpenter_nodes_drained_total{nodepool=\"b\"} 1");
    EXPECT_FALSE(strstr(text.p, "nodepool=\"a\""));
}
