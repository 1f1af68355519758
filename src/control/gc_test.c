#include "control/controllers.h"
#include "control/provider_testing.h"

static const struct controller *const cast[] = { &nodeclaim_lifecycle,
                                                 &nodeclaim_garbage_collection };

static struct paper_stage *scene(void)
{
    return paper_stage_new(cast, KV_COUNT_OF(cast));
}

TEST(a_claim_whose_instance_is_gone_goes_within_two_minutes)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    p->cloud.instances.items[0]->gone = true;
    paper_node_ready(p, "paper-0", false);
    stage_pass(p->s, 120);
    EXPECT_TRUE(paper_is_ending(p, "a"));
    EXPECT_Z(paper_metric(p, "karpenter_nodeclaims_disrupted_total{reason=\"garbage_collected\","
                             "nodepool=\"web\",capacity_type=\"spot\",consolidation_policy=\"\","
                             "termination_mode=\"graceful\"}"),
             " 1");
}

TEST(a_claim_whose_node_still_reports_stays)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    p->cloud.instances.items[0]->gone = true;
    stage_pass(p->s, 3600);
    EXPECT_FALSE(paper_is_ending(p, "a"));
    paper_node_ready(p, "paper-0", false);
    stage_pass(p->s, 120);
    EXPECT_TRUE(paper_is_ending(p, "a"));
}

TEST(an_instance_that_is_ending_counts_as_gone)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    p->cloud.instances.items[0]->instance.terminating = true;
    paper_node_ready(p, "paper-0", false);
    stage_pass(p->s, 120);
    EXPECT_TRUE(paper_is_ending(p, "a"));
}

TEST(an_instance_that_dies_while_it_boots_is_noticed_and_is_no_failure_of_its_pool)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "");
    stage_pass(p->s, 70);
    p->cloud.instances.items[0]->gone = true;
    stage_pass(p->s, 120);
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_Z(paper_metric(p, "karpenter_nodeclaims_disrupted_total{reason=\"garbage_collected\","
                             "nodepool=\"web\",capacity_type=\"spot\",consolidation_policy=\"\","
                             "termination_mode=\"graceful\"}"),
             " 1");
}

TEST(what_a_list_leaves_out_is_asked_for_before_a_claim_is_given_up)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    p->cloud.instances.items[0]->gone = true;
    paper_node_ready(p, "paper-0", false);
    p->cloud.fails[PAPER_GET] = ERR_UNAVAILABLE;
    stage_pass(p->s, 3600);
    EXPECT_FALSE(paper_is_ending(p, "a"));
    p->cloud.fails[PAPER_GET] = ERR_NONE;
    stage_pass(p->s, 120);
    EXPECT_TRUE(paper_is_ending(p, "a"));
}

TEST(an_instance_whose_claim_is_gone_is_deleted_with_its_node)
{
    AUTO(paper_stage) p = scene();
    paper_launch(&p->cloud, STR("vanished"), STR("uid-of-vanished"));
    object_unref(make(p->store, &node_kind,
                      js("{'metadata':{'name':'paper-0'},'spec':{'providerID':'paper://0000'}}")));
    stage_pass(p->s, 59);
    EXPECT_EQ(paper_running(&p->cloud), 1); /* its claim may be on its way to us */
    stage_pass(p->s, 120);
    EXPECT_EQ(paper_running(&p->cloud), 0);
    EXPECT_EQ(count_of(p->s, &node_kind), 0);
}

TEST(an_instance_of_a_claim_that_is_being_launched_is_left_alone)
{
    AUTO(paper_stage) p = scene();
    p->cloud.fails[PAPER_CREATE] = ERR_UNAVAILABLE;
    paper_claim(p, "a", "");
    settle(p->s);
    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, "a");
    paper_launch(&p->cloud, claim->meta.name, claim->meta.uid);
    paper_launch(&p->cloud, STR(""), STR("")); /* one that is not tagged yet: perhaps that one */
    stage_pass(p->s, 280);
    EXPECT_EQ(paper_running(&p->cloud), 2);
    p->cloud.fails[PAPER_CREATE] = ERR_NONE;
    stage_pass(p->s, 180);
    EXPECT_EQ(paper_running(&p->cloud), 1);
    EXPECT_FALSE(p->cloud.instances.items[0]->gone);
}

TEST(a_second_instance_under_the_name_of_a_claim_is_deleted_and_the_claim_stays)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    paper_launch(&p->cloud, STR("a"), STR("another-uid"));
    stage_pass(p->s, 240);
    EXPECT_TRUE(p->cloud.instances.items[1]->gone);
    EXPECT_FALSE(p->cloud.instances.items[0]->gone);
    EXPECT_FALSE(paper_is_ending(p, "a"));
}

TEST(a_claim_that_only_the_store_knows_of_saves_its_instance)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    stage_pass(p->s, 110);
    /* Made behind our back, in the moment of the look: the copy here does not have it. */
    paper_launch(&p->cloud, STR("b"), STR("uid-b"))->instance.created_us -= 3600 * SECOND_US;
    virtual_clock_advance(p->s->w->time, 10 * SECOND_NS);
    paper_claim(p, "b", "");
    struct outcome outcome = nodeclaim_garbage_collection.reconcile(p->s->c, STR(""));
    EXPECT_EQ(outcome.kind, OUTCOME_REQUEUE);
    EXPECT_EQ(paper_running(&p->cloud), 2);
}

/* kwok deletes the claim of an instance along with it. */
TEST(with_kwok_an_orphan_goes_and_a_claim_that_took_its_name_does_not)
{
    AUTO(stage) s = stage_new((struct stage_options){ .controllers = cast, .count = 2 });
    object_unref(make(s->w->store, &nodeclaim_kind,
                      js("{'metadata':{'name':'a'},'spec':{'nodeClassRef':{'group':"
                         "'karpenter.kwok.sh','kind':'KWOKNodeClass','name':'default'},"
                         "'requirements':[]}}")));
    object_unref(make(s->w->store, &node_kind,
                      js("{'metadata':{'name':'old','annotations':{'karve.io/kwok-claim':'a'}},"
                         "'spec':{'providerID':'kwok://old'}}")));
    stage_pass(s, 300);
    EXPECT_FALSE(is_there(s->w->store, &node_kind, "old"));
    AUTO_OBJECT claim = get(s->w->store, &nodeclaim_kind, "a");
    EXPECT_EQ(claim->meta.deleted_us, 0);
    EXPECT_TRUE(claim_condition_true(nodeclaim_of(claim), CONDITION_REGISTERED));
}

TEST(when_the_cloud_does_not_answer_nothing_is_collected_and_it_is_asked_again_soon)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    p->cloud.fails[PAPER_LIST] = ERR_UNAVAILABLE;
    p->cloud.instances.items[0]->gone = true;
    paper_node_ready(p, "paper-0", false);
    uint32_t asked = p->cloud.calls[PAPER_LIST];
    stage_pass(p->s, 3600);
    EXPECT_FALSE(paper_is_ending(p, "a"));
    EXPECT_TRUE(p->cloud.calls[PAPER_LIST] - asked >= 30);
    EXPECT_TRUE(p->cloud.calls[PAPER_LIST] - asked <= 80);
}
