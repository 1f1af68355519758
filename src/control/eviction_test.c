#include "codec/duration.h"
#include "control/termination_testing.h"

static void add_budget(struct scene *x, const char *name, const char *min_available)
{
    object_unref(make(x->s->w->store, &pdb_kind,
                      js("{'metadata':{'name':'%s'},'spec':{'minAvailable':%s,"
                         "'selector':{'matchLabels':{'app':'web'}}}}",
                         name, min_available)));
}

static double counted(struct scene *x, const char *series)
{
    AUTO_BUF out = { 0 };
    metrics_write(x->s->metrics, &out);
    const char *at = strstr(out.p, series);
    return at ? strtod(at + strlen(series), NULL) : 0;
}

#define REFUSED "karpenter_pods_eviction_requests_total{code=\"429\"} "
#define ACCEPTED "karpenter_pods_eviction_requests_total{code=\"200\"} "

TEST(an_eviction_is_asked_for_once_and_told_of)
{
    AUTO(scene) x = scene_new("", false);
    x->kubelet_is_slow = true;
    add_pod(x, "a", "", "");
    delete_node(x);
    pass(x, 25);
    EXPECT_TRUE(is_going(x, "a"));
    EXPECT_EQ(events(x, "Evicted", "a"), 1);
    EXPECT_EQ(counted(x, ACCEPTED), 1);
    EXPECT_EQ(counted(x, "karpenter_pods_drained_total{reason=\"Forceful Termination\"} "), 1);
}

TEST(the_reason_for_which_the_claim_is_disrupted_is_the_reason_of_the_drain)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", "", "");
    object_unref(merge_status(
        x->s->w->store, &nodeclaim_kind, "claim-1",
        js("{'status':{'conditions':[{'type':'DisruptionReason','status':'True','reason':'Empty',"
           "'message':'Empty','lastTransitionTime':'2026-01-02T03:00:00Z'}]}}")));
    delete_node(x);
    EXPECT_EQ(counted(x, "karpenter_pods_drained_total{reason=\"Empty\"} "), 1);
}

TEST(a_budget_lets_pods_go_one_by_one)
{
    AUTO(scene) x = scene_new("", false);
    add_budget(x, "b", "2");
    add_pod(x, "a", "", "");
    add_pod(x, "b", "", "");
    add_pod(x, "c", "", "");
    delete_node(x);
    EXPECT_EQ(is_going(x, "a") + is_going(x, "b") + is_going(x, "c"), 1);
    kubelet(x);
    EXPECT_EQ(count_of(x->s, &pod_kind), 2);
    pass(x, 60); /* nobody makes another elsewhere: the budget stands */
    EXPECT_EQ(count_of(x->s, &pod_kind), 2);

    make_pod(x->s->w->store, "elsewhere", "'app':'web'");
    bind_pod(x->s->w->store, "elsewhere", "node-2");
    set_pod(x->s->w->store, "elsewhere", "Running", true);
    pass(x, 15);
    EXPECT_EQ(count_of(x->s, &pod_kind), 2);
}

TEST(a_budget_that_refuses_for_hours_costs_an_attempt_in_ten_seconds_and_an_event_in_two_minutes)
{
    AUTO(scene) x = scene_new("", false);
    add_budget(x, "b", "2");
    add_pod(x, "a", "", "");
    add_pod(x, "b", "", "");
    delete_node(x);
    stage_pass(x->s, 60);
    double before = counted(x, REFUSED);
    uint64_t version = embedded_version(x->s->w->e);
    uint64_t reconciles = control_stats(x->s->c).reconciles;

    stage_pass(x->s, 2 * 3600);
    double attempts = counted(x, REFUSED) - before;
    EXPECT_TRUE(attempts >= 2 * 720 &&
                attempts <= 2 * 1440); /* up to half is taken off each wait */
    EXPECT_TRUE(embedded_version(x->s->w->e) - version <= 61); /* those events, nothing else */
    EXPECT_TRUE(control_stats(x->s->c).reconciles - reconciles <= 2 * 1440 + 800);
    EXPECT_TRUE(events(x, "FailedDraining", NODE) >= 50);

    remove_it(x->s->w->store, &pdb_kind, "b");
    pass(x, 40);
    EXPECT_EQ(count_of(x->s, &pod_kind), 0);
    EXPECT_FALSE(has(x, &node_kind, NODE));
}

TEST(a_pod_with_two_budgets_is_refused_and_told_of)
{
    AUTO(scene) x = scene_new("", false);
    add_budget(x, "b1", "0");
    add_budget(x, "b2", "0");
    add_pod(x, "a", "", "");
    delete_node(x);
    EXPECT_FALSE(is_going(x, "a"));
    EXPECT_EQ(events(x, "FailedDraining", NODE), 1);
    remove_it(x->s->w->store, &pdb_kind, "b2");
    pass(x, 15);
    EXPECT_FALSE(has(x, &pod_kind, "a"));
}

TEST(a_deadline_ends_a_back_off_early)
{
    AUTO(scene) x = scene_new("'terminationGracePeriod':'5m3s',", false);
    x->kubelet_is_slow = true;
    add_budget(x, "b", "1");
    add_pod(x, "a", "", "");
    delete_node(x);
    stage_pass(x->s, 272);
    EXPECT_FALSE(is_going(x, "a"));
    stage_pass(x->s, 1); /* not up to ten seconds later */
    AUTO_OBJECT pod = get(x->s->w->store, &pod_kind, "a");
    EXPECT_EQ(pod->meta.deletion_grace_s.value, 30);
    EXPECT_EQ(events(x, "Disrupted", "a"), 1);
}

TEST(a_pod_that_is_protected_while_it_is_queued_is_not_evicted)
{
    AUTO(scene) x = scene_new("", false);
    add_budget(x, "b", "1");
    add_pod(x, "a", "", "");
    delete_node(x);
    pass(x, 30);
    object_unref(merge(x->s->w->store, &pod_kind, "a",
                       js("{'metadata':{'annotations':{'karpenter.sh/do-not-disrupt':'true'}}}")));
    remove_it(x->s->w->store, &pdb_kind, "b");
    pass(x, 60);
    EXPECT_FALSE(is_going(x, "a"));
    object_unref(merge(x->s->w->store, &pod_kind, "a",
                       js("{'metadata':{'annotations':{'karpenter.sh/do-not-disrupt':null}}}")));
    settle(x->s);
    EXPECT_TRUE(is_going(x, "a"));
}

static int64_t all_is_late(void *ctx KV_UNUSED, const struct kind *kind KV_UNUSED,
                           uint64_t version KV_UNUSED)
{
    return 5 * SECOND_NS;
}

/* Something about the node itself changes, and termination looks again. */
static void touch_node(struct scene *x, int i)
{
    object_unref(
        merge(x->s->w->store, &node_kind, NODE, js("{'metadata':{'labels':{'touched':'%d'}}}", i)));
    settle(x->s);
}

TEST(a_busy_node_does_not_shorten_the_back_off)
{
    AUTO(scene) x = scene_new("", false);
    add_budget(x, "b", "1");
    add_pod(x, "a", "", "");
    delete_node(x);
    stage_pass(x->s, 60);
    double before = counted(x, REFUSED);
    for (int i = 0; i < 100; i++) {
        touch_node(x, i);
        stage_pass(x->s, 1);
    }
    EXPECT_TRUE(counted(x, REFUSED) - before <= 20);
}

TEST(an_eviction_whose_effect_is_seen_late_is_not_repeated_meanwhile)
{
    AUTO(scene) x = scene_new("", false);
    add_pod(x, "a", DO_NOT_DISRUPT("true"), "");
    delete_node(x);
    object_unref(merge(x->s->w->store, &pod_kind, "a",
                       js("{'metadata':{'annotations':{'karpenter.sh/do-not-disrupt':null}}}")));
    embedded_set_faults(x->s->w->e, &(struct embedded_faults){ .event_delay_ns = all_is_late });
    stage_pass(x->s, 6);
    EXPECT_TRUE(is_going(x, "a"));
    for (int i = 0; i < 8; i++) {
        control_resync(x->s->c);
        stage_pass(x->s, 1);
    }
    EXPECT_EQ(counted(x, ACCEPTED), 1);
}

TEST(many_pods_are_each_evicted_once)
{
    AUTO(scene) x = scene_new("", false);
    char name[16];
    for (int i = 0; i < 110; i++) {
        snprintf(name, sizeof name, "p%d", i);
        add_pod(x, name, "", "");
    }
    delete_node(x);
    EXPECT_EQ(counted(x, ACCEPTED), 110);
    pass(x, 30);
    EXPECT_EQ(counted(x, ACCEPTED), 110);
    EXPECT_EQ(count_of(x->s, &pod_kind), 0);
}
