#include "control/controllers.h"
#include "control/provider_testing.h"

static const struct controller *const cast[] = { &nodeclaim_lifecycle, &nodeclaim_consistency };

static struct paper_stage *scene(void)
{
    return paper_stage_new(cast, KV_COUNT_OF(cast));
}

static void set_capacity(struct paper_stage *p, const char *capacity)
{
    object_unref(merge_status(p->store, &node_kind, "paper-0",
                              js("{'status':{'capacity':{%s}}}", capacity)));
}

TEST(a_node_as_large_as_expected_is_consistent_from_the_start)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    EXPECT_Z(paper_condition(p, "a", "ConsistentStateFound"), "True ConsistentStateFound");
}

TEST(a_node_with_less_than_nine_tenths_of_what_was_asked_for_is_not)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    set_capacity(p, "'cpu':'1800m'"); /* nine tenths */
    stage_pass(p->s, 600);
    EXPECT_Z(paper_condition(p, "a", "ConsistentStateFound"), "True ConsistentStateFound");
    set_capacity(p, "'cpu':'1799m'");
    stage_pass(p->s, 600);
    EXPECT_Z(paper_condition(p, "a", "ConsistentStateFound"), "False ConsistencyCheckFailed");
    EXPECT_EQ(count_of(p->s, &event_kind), 1);
    set_capacity(p, "'cpu':'2'");
    stage_pass(p->s, 600);
    EXPECT_Z(paper_condition(p, "a", "ConsistentStateFound"), "True ConsistentStateFound");
}

TEST(what_the_claim_did_not_ask_for_does_not_count)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    set_capacity(p, "'memory':'1Gi'");
    stage_pass(p->s, 600);
    EXPECT_Z(paper_condition(p, "a", "ConsistentStateFound"), "True ConsistentStateFound");
}

TEST(a_claim_is_judged_only_once_it_is_initialized)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "");
    settle(p->s);
    paper_node_joins(p, "a");
    set_capacity(p, "'cpu':'1'");
    stage_pass(p->s, 1200);
    EXPECT_Z(paper_condition(p, "a", "ConsistentStateFound"), "");
}
