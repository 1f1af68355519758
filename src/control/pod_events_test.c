#include "control/controllers.h"
#include "control/provider_testing.h"

static const struct controller *const cast[] = { &nodeclaim_lifecycle, &nodeclaim_pod_events };

static struct paper_stage *scene(void)
{
    struct paper_stage *p = paper_stage_new(cast, KV_COUNT_OF(cast));
    paper_claim_lives(p, "a", "");
    return p;
}

/* Seconds since the start of the test; -1: never. */
static int64_t last_event(struct paper_stage *p)
{
    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, "a");
    int64_t at = nodeclaim_of(claim)->status.last_pod_event_us;
    return at ? (at - START_US) / SECOND_US : -1;
}

static void bound(struct paper_stage *p, const char *name)
{
    make_pod(p->store, name, "");
    settle(p->s);
    bind_pod(p->store, name, "paper-0");
    settle(p->s);
}

TEST(a_pod_that_is_bound_ends_or_is_deleted_is_an_event)
{
    AUTO(paper_stage) p = scene();
    EXPECT_EQ(last_event(p), -1);
    stage_pass(p->s, 100);
    bound(p, "x");
    EXPECT_EQ(last_event(p), 100);
    stage_pass(p->s, 100);
    set_pod(p->store, "x", "Running", true); /* which is none */
    settle(p->s);
    EXPECT_EQ(last_event(p), 100);
    set_pod(p->store, "x", "Succeeded", false);
    settle(p->s);
    EXPECT_EQ(last_event(p), 200);
    stage_pass(p->s, 100);
    bound(p, "y");
    stage_pass(p->s, 100);
    remove_it(p->store, &pod_kind, "y"); /* with a grace of 30 s */
    settle(p->s);
    EXPECT_EQ(last_event(p), 400);
}

TEST(events_within_ten_seconds_are_one)
{
    AUTO(paper_stage) p = scene();
    stage_pass(p->s, 100);
    bound(p, "x");
    stage_pass(p->s, 9);
    bound(p, "y");
    EXPECT_EQ(last_event(p), 100);
    stage_pass(p->s, 1);
    bound(p, "z");
    EXPECT_EQ(last_event(p), 110);
}

TEST(pods_of_daemons_are_on_every_node_and_do_not_count)
{
    AUTO(paper_stage) p = scene();
    stage_pass(p->s, 100);
    object_unref(
        make(p->store, &pod_kind,
             js("{'metadata':{'name':'d','ownerReferences':[{'apiVersion':'apps/v1','kind':"
                "'DaemonSet','name':'d','uid':'u-1','controller':true}]},"
                "'spec':{'containers':[{'name':'c','image':'i'}]}}")));
    bind_pod(p->store, "d", "paper-0");
    settle(p->s);
    EXPECT_EQ(last_event(p), -1);
}

TEST(what_happened_while_nobody_watched_is_told_by_the_pods)
{
    AUTO(paper_stage) p = scene();
    stage_pass(p->s, 100);
    make_pod(p->store, "x", "");
    bind_pod(p->store, "x", "paper-0");
    virtual_clock_advance(p->s->w->time, 50 * SECOND_NS);
    remove_it(p->store, &pod_kind, "x");
    virtual_clock_advance(p->s->w->time, 50 * SECOND_NS);
    stage_restart(p->s);
    settle(p->s);
    EXPECT_EQ(last_event(p), 150);

    uint64_t version = embedded_version(p->s->w->e);
    stage_restart(p->s);
    settle(p->s);
    control_resync(p->s->c);
    settle(p->s);
    EXPECT_EQ(embedded_version(p->s->w->e), version);
}
