#include "codec/duration.h"
#include "control/termination_testing.h"

static const struct controller *const repairers[] = { &node_health };

/* `count` nodes of the pool web, each with a claim: node-1, node-2, ... */
static struct scene *ward_new(int count)
{
    struct scene *x = kv_calloc(1, sizeof *x);
    char node[16], claim[16], id[32];
    fake_cloud_init(&x->cloud);
    struct stage_options options = { .controllers = repairers,
                                     .count = 1,
                                     .maybe_provider = &x->cloud.port,
                                     .settings = control_settings_default };
    options.settings.node_repair = true;
    x->s = stage_new_idle(options);
    x->cloud.clock = virtual_clock_port(x->s->w->time);
    object_unref(make_pool(x->s, "web", ""));
    for (int i = 1; i <= count; i++) {
        snprintf(node, sizeof node, "node-%d", i);
        snprintf(claim, sizeof claim, "claim-%d", i);
        snprintf(id, sizeof id, "fake://i-%d", i);
        add_claim(x, claim, id, "");
        add_node(x, node, id);
    }
    stage_restart(x->s);
    return x;
}

static bool is_replaced(struct scene *x, const char *claim)
{
    AUTO_OBJECT object = get(x->s->w->store, &nodeclaim_kind, claim);
    return object->meta.deleted_us != 0;
}

TEST(an_ill_node_is_replaced_when_its_time_is_over_and_ends_at_once)
{
    AUTO(scene) x = ward_new(5);
    stage_pass(x->s, 100);
    EXPECT_FALSE(is_replaced(x, "claim-1"));
    set_node_condition(x, "node-1", "Ready", "Unknown");
    stage_pass(x->s, 1799);
    EXPECT_FALSE(is_replaced(x, "claim-1"));
    stage_pass(x->s, 1);
    EXPECT_TRUE(is_replaced(x, "claim-1"));
    EXPECT_FALSE(is_replaced(x, "claim-2"));

    AUTO_OBJECT claim = get(x->s->w->store, &nodeclaim_kind, "claim-1");
    EXPECT_STR(
        str_map_get(&claim->meta.annotations, STR("karpenter.sh/nodeclaim-termination-timestamp")),
        "2026-01-02T03:31:40Z");
    EXPECT_TRUE(metrics_have(x,
                             "karpenter_nodeclaims_unhealthy_disrupted_total{condition=\"ready\","
                             "nodepool=\"web\",capacity_type=\"spot\",image_id=\"ami-1\"} 1"));
    EXPECT_TRUE(metrics_have(x, "karpenter_nodeclaims_disrupted_total{reason=\"unhealthy\""));
}

TEST(a_node_that_recovers_in_time_is_kept)
{
    AUTO(scene) x = ward_new(5);
    set_node_condition(x, "node-1", "Ready", "False");
    stage_pass(x->s, 1700);
    set_node_condition(x, "node-1", "Ready", "True");
    stage_pass(x->s, 3600);
    EXPECT_FALSE(is_replaced(x, "claim-1"));
    EXPECT_EQ(control_next_due(x->s->c), INT64_MAX);
}

TEST(of_two_illnesses_the_one_that_is_tolerated_less_decides)
{
    AUTO(scene) x = ward_new(5);
    object_unref(merge_status(
        x->s->w->store, &node_kind, "node-1",
        js("{'status':{'conditions':[{'type':'Ready','status':'False',"
           "'lastTransitionTime':'2026-01-02T03:00:00Z'},{'type':'BadNode','status':'False',"
           "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}")));
    stage_pass(x->s, 599);
    EXPECT_FALSE(is_replaced(x, "claim-1"));
    stage_pass(x->s, 1);
    EXPECT_TRUE(is_replaced(x, "claim-1"));
    EXPECT_TRUE(metrics_have(x, "condition=\"bad_node\""));
}

TEST(beyond_a_fifth_of_the_pool_nothing_is_replaced)
{
    for (int nodes = 1; nodes <= 11; nodes++) {
        for (int ill = 1; ill <= nodes && ill <= 4; ill++) {
            AUTO(scene) x = ward_new(nodes);
            char node[16];
            for (int i = 1; i <= ill; i++) {
                snprintf(node, sizeof node, "node-%d", i);
                set_node_condition(x, node, "Ready", "False");
            }
            stage_pass(x->s, 1800);
            /* One that is replaced stays ill here, so the first decides for all. */
            bool allowed = ill <= (nodes + 4) / 5;
            EXPECT_EQ(is_replaced(x, "claim-1"), allowed);
            EXPECT_EQ(events(x, "NodeRepairBlocked", "node-1"), !allowed);
            EXPECT_EQ(events(x, "NodeRepairBlocked", "claim-1"), !allowed);
        }
    }
}

TEST(a_blocked_repair_is_tried_again_after_five_minutes)
{
    AUTO(scene) x = ward_new(5);
    set_node_condition(x, "node-1", "Ready", "False");
    set_node_condition(x, "node-2", "Ready", "False");
    stage_pass(x->s, 1801);
    EXPECT_FALSE(is_replaced(x, "claim-1"));
    set_node_condition(x, "node-2", "Ready", "True");
    stage_pass(x->s, 298);
    EXPECT_FALSE(is_replaced(x, "claim-1"));
    stage_pass(x->s, 1);
    EXPECT_TRUE(is_replaced(x, "claim-1"));
}

TEST(a_deadline_that_has_passed_already_is_kept)
{
    AUTO(scene) x = ward_new(1);
    object_unref(merge(x->s->w->store, &nodeclaim_kind, "claim-1",
                       js("{'metadata':{'annotations':{"
                          "'karpenter.sh/nodeclaim-termination-timestamp':"
                          "'2026-01-01T00:00:00Z'}}}")));
    set_node_condition(x, "node-1", "Ready", "False");
    stage_pass(x->s, 1800);
    AUTO_OBJECT claim = get(x->s->w->store, &nodeclaim_kind, "claim-1");
    EXPECT_TRUE(claim->meta.deleted_us != 0);
    EXPECT_STR(
        str_map_get(&claim->meta.annotations, STR("karpenter.sh/nodeclaim-termination-timestamp")),
        "2026-01-01T00:00:00Z");
}

TEST(without_the_gate_nothing_is_repaired)
{
    AUTO(scene) x = ward_new(1);
    x->s->options.settings.node_repair = false;
    stage_restart(x->s);
    set_node_condition(x, "node-1", "Ready", "False");
    stage_pass(x->s, 7200);
    EXPECT_FALSE(is_replaced(x, "claim-1"));
}
