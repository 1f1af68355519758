#include "control/controllers.h"
#include "control/provider_testing.h"

static const struct controller *const cast[] = { &nodeclaim_expiration };

static struct paper_stage *scene(void)
{
    return paper_stage_new(cast, KV_COUNT_OF(cast));
}

TEST(a_claim_goes_when_it_has_lived_as_long_as_it_may)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "'expireAfter':'24h',");
    stage_pass(p->s, 24 * 3600 - 1);
    EXPECT_FALSE(paper_is_ending(p, "a"));
    stage_pass(p->s, 1);
    EXPECT_TRUE(paper_is_ending(p, "a"));
    EXPECT_Z(
        paper_metric(p, "karpenter_nodeclaims_disrupted_total{reason=\"expired\",nodepool=\"web\","
                        "capacity_type=\"\",consolidation_policy=\"\","
                        "termination_mode=\"graceful\"}"),
        " 1");
}

static int64_t ten_seconds(void *ctx KV_UNUSED, const struct kind *kind KV_UNUSED,
                           uint64_t version KV_UNUSED)
{
    return 10 * SECOND_NS;
}

TEST(it_is_counted_once_however_late_the_event_of_its_deletion_is)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "'expireAfter':'24h',");
    object_unref(merge(p->store, &nodeclaim_kind, "a",
                       js("{'metadata':{'finalizers':['karpenter.sh/termination']}}")));
    settle(p->s);
    embedded_set_faults(p->s->w->e, &(struct embedded_faults){ .event_delay_ns = ten_seconds });
    stage_pass(p->s, 24 * 3600);
    EXPECT_TRUE(paper_is_ending(p, "a"));
    control_resync(p->s->c);
    settle(p->s);
    EXPECT_Z(
        paper_metric(p, "karpenter_nodeclaims_disrupted_total{reason=\"expired\",nodepool=\"web\","
                        "capacity_type=\"\",consolidation_policy=\"\","
                        "termination_mode=\"graceful\"}"),
        " 1");
}

TEST(a_claim_that_may_live_for_ever_does)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "'expireAfter':'Never',");
    settle(p->s);
    EXPECT_TRUE(control_next_due(p->s->c) == INT64_MAX);
    stage_pass(p->s, (int64_t)10 * 365 * 24 * 3600);
    EXPECT_FALSE(paper_is_ending(p, "a"));
}

TEST(a_claim_that_expired_while_nobody_looked_goes_at_the_start)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "'expireAfter':'1h',");
    settle(p->s);
    virtual_clock_advance(p->s->w->time, 7200 * SECOND_NS);
    stage_restart(p->s);
    settle(p->s);
    EXPECT_TRUE(paper_is_ending(p, "a"));
}

TEST(a_claim_with_an_hour_beyond_counting_does_not_expire)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "'expireAfter':'2562047h',");
    stage_pass(p->s, 3600);
    EXPECT_FALSE(paper_is_ending(p, "a"));
}
