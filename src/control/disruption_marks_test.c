#include "cloud/instance_types_testing.h"
#include "control/controllers.h"
#include "control/provider_testing.h"

static const struct controller *const cast[] = { &nodeclaim_lifecycle, &nodeclaim_disruption };

static struct paper_stage *scene(void)
{
    return paper_stage_new(cast, KV_COUNT_OF(cast));
}

static const char *drifted(struct paper_stage *p)
{
    return paper_condition(p, "a", "Drifted");
}

static void annotate(struct paper_stage *p, const struct kind *kind, const char *name,
                     const char *hash, const char *version)
{
    object_unref(merge(p->store, kind, name,
                       js("{'metadata':{'annotations':{'karpenter.sh/nodepool-hash':'%s',"
                          "'karpenter.sh/nodepool-hash-version':'%s'}}}",
                          hash, version)));
}

/* --- Drifted --- */

TEST(a_claim_of_an_older_template_is_drifted_until_it_is_the_same_again)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    annotate(p, &nodeclaim_kind, "a", "1", "v3");
    settle(p->s);
    EXPECT_Z(drifted(p), "");
    annotate(p, &nodepool_kind, "web", "2", "v3");
    settle(p->s);
    EXPECT_Z(drifted(p), "True NodePoolDrifted");
    annotate(p, &nodepool_kind, "web", "1", "v3");
    settle(p->s);
    EXPECT_Z(drifted(p), "");
}

TEST(hashes_of_different_versions_say_nothing)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    annotate(p, &nodeclaim_kind, "a", "1", "v2");
    annotate(p, &nodepool_kind, "web", "2", "v3");
    settle(p->s);
    EXPECT_Z(drifted(p), "");
}

static void require(struct paper_stage *p, const char *requirement)
{
    object_unref(merge(p->store, &nodepool_kind, "web",
                       js("{'spec':{'template':{'spec':{'requirements':[{%s}]}}}}", requirement)));
    settle(p->s);
}

TEST(a_claim_outside_its_pools_requirements_is_drifted)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    require(p, "'key':'topology.kubernetes.io/zone','operator':'In','values':['test-zone-a']");
    EXPECT_Z(drifted(p), "");
    require(p, "'key':'topology.kubernetes.io/zone','operator':'NotIn','values':['test-zone-a']");
    EXPECT_Z(drifted(p), "True RequirementsDrifted");
    require(p, "'key':'kubernetes.io/arch','operator':'In','values':['amd64','arm64']");
    EXPECT_Z(drifted(p), "");
    require(p, "'key':'example.com/rack','operator':'Exists'"); /* a label that it does not have */
    EXPECT_Z(drifted(p), "True RequirementsDrifted");
}

static const struct instance_types *types_of(struct draft_list *drafts, const char *type,
                                             const char *offerings)
{
    draft_type(drafts, type, "kubernetes.io/arch=amd64", offerings);
    return drafts_build(drafts);
}

TEST(a_type_that_is_not_sold_any_more_is_noticed_within_half_an_hour_on_claims_of_an_hour)
{
    AUTO(paper_stage) p = scene();
    DRAFTS drafts = { 0 };
    AUTO_INSTANCE_TYPES others = types_of(&drafts, "m-1x", "test-zone-a/spot=1");
    p->cloud.types = others;
    paper_claim_lives(p, "a", "");
    stage_pass(p->s, 3590);
    EXPECT_Z(drifted(p), ""); /* too young */
    stage_pass(p->s, 310);
    EXPECT_Z(drifted(p), "True InstanceTypeNotFound");

    p->cloud.types = NULL; /* it is back, and found: not asked again before half an hour is over */
    stage_pass(p->s, 300);
    EXPECT_Z(drifted(p), "");
    p->cloud.types = others;
    stage_pass(p->s, 1700);
    EXPECT_Z(drifted(p), "");
    stage_pass(p->s, 400);
    EXPECT_Z(drifted(p), "True InstanceTypeNotFound");
}

static const char *drift_of_offer(const char *offerings, bool reserved)
{
    static char text[200];
    AUTO(paper_stage) p = scene();
    DRAFTS drafts = { 0 };
    AUTO_INSTANCE_TYPES types = types_of(&drafts, "c-2x-amd64-linux", offerings);
    p->cloud.types = types;
    paper_claim_lives(p, "a", "");
    if (reserved)
        object_unref(merge(p->store, &nodeclaim_kind, "a",
                           js("{'metadata':{'labels':{'karpenter.sh/capacity-type':'reserved',"
                              "'karpenter.k8s.aws/capacity-reservation-id':'cr-1'}}}")));
    stage_pass(p->s, 4000);
    snprintf(text, sizeof text, "%s", drifted(p));
    return text;
}

TEST(an_offering_that_cannot_be_had_just_now_still_exists)
{
    EXPECT_Z(drift_of_offer("test-zone-a/spot=1!", false), "");
    EXPECT_Z(drift_of_offer("test-zone-b/spot=1 test-zone-a/on-demand=2", false),
             "True InstanceTypeNotFound");
}

TEST(a_reserved_claim_may_have_become_on_demand)
{
    EXPECT_Z(drift_of_offer("test-zone-a/on-demand=1", true), "");
    EXPECT_Z(drift_of_offer("test-zone-a/reserved=1+karpenter.k8s.aws/capacity-reservation-id=cr-2",
                            true),
             "");
    EXPECT_Z(drift_of_offer("test-zone-a/spot=1", true), "True InstanceTypeNotFound");
}

TEST(what_the_provider_says_comes_last_and_is_asked_every_five_minutes)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    stage_pass(p->s, 10);
    p->cloud.drift = "AMIDrift";
    stage_pass(p->s, 300);
    EXPECT_Z(drifted(p), "True AMIDrift");
    annotate(p, &nodeclaim_kind, "a", "1", "v3");
    annotate(p, &nodepool_kind, "web", "2", "v3");
    settle(p->s);
    EXPECT_Z(drifted(p), "True NodePoolDrifted");
}

TEST(a_provider_that_does_not_answer_leaves_the_mark_as_it_is)
{
    AUTO(paper_stage) p = scene();
    p->cloud.drift = "AMIDrift";
    paper_claim_lives(p, "a", "");
    EXPECT_Z(drifted(p), "True AMIDrift");
    p->cloud.fails[PAPER_DRIFT] = ERR_UNAVAILABLE;
    stage_pass(p->s, 600);
    EXPECT_Z(drifted(p), "True AMIDrift");
    p->cloud.fails[PAPER_DRIFT] = ERR_NOT_FOUND; /* no instance: nothing to be drifted */
    stage_pass(p->s, 600);
    EXPECT_Z(drifted(p), "");
}

TEST(a_claim_that_is_not_launched_has_no_marks_and_asks_nothing)
{
    AUTO(paper_stage) p = scene();
    p->cloud.drift = "AMIDrift";
    p->cloud.fails[PAPER_CREATE] = ERR_UNAVAILABLE;
    paper_claim(p, "a", "");
    stage_pass(p->s, 200);
    EXPECT_Z(drifted(p), "");
    EXPECT_EQ(p->cloud.calls[PAPER_DRIFT], 0);
}

TEST(a_change_of_the_class_has_its_claims_looked_at)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "");
    p->cloud.drift = "NodeClassDrift";
    object_unref(merge(p->store, &kwoknodeclass_kind, "default",
                       js("{'spec':{'nodeRegistrationDelay':'7s'}}")));
    settle(p->s);
    EXPECT_Z(drifted(p), "True NodeClassDrift");
}

/* --- Consolidatable --- */

static void consolidate_after(struct paper_stage *p, const char *after)
{
    object_unref(merge(p->store, &nodepool_kind, "web",
                       js("{'spec':{'disruption':{'consolidateAfter':'%s'}}}", after)));
    settle(p->s);
}

static const char *consolidatable(struct paper_stage *p)
{
    return paper_condition(p, "a", "Consolidatable");
}

TEST(a_claim_is_consolidatable_when_nothing_came_or_went_for_long_enough)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "");
    consolidate_after(p, "10m");
    paper_node_joins(p, "a");
    settle(p->s);
    stage_pass(p->s, 700);
    EXPECT_Z(consolidatable(p), ""); /* not initialized */
    paper_node_ready(p, "paper-0", true);
    stage_pass(p->s, 599);
    EXPECT_Z(consolidatable(p), "");
    stage_pass(p->s, 1);
    EXPECT_Z(consolidatable(p), "True Consolidatable");

    object_unref(merge_status(p->store, &nodeclaim_kind, "a", /* 1300 s after the start */
                              js("{'status':{'lastPodEventTime':'2026-01-02T03:21:40Z'}}")));
    settle(p->s);
    EXPECT_Z(consolidatable(p), "");
    stage_pass(p->s, 599);
    EXPECT_Z(consolidatable(p), "");
    stage_pass(p->s, 1);
    EXPECT_Z(consolidatable(p), "True Consolidatable");
    consolidate_after(p, "Never");
    EXPECT_Z(consolidatable(p), "");
    consolidate_after(p, "0s");
    EXPECT_Z(consolidatable(p), "True Consolidatable");
}

TEST(marks_at_rest_are_not_written)
{
    AUTO(paper_stage) p = scene();
    p->cloud.drift = "AMIDrift";
    paper_claim_lives(p, "a", "");
    stage_pass(p->s, 10);
    uint64_t version = embedded_version(p->s->w->e);
    control_resync(p->s->c);
    stage_pass(p->s, 3 * 3600);
    stage_restart(p->s);
    stage_pass(p->s, 3600);
    EXPECT_EQ(embedded_version(p->s->w->e), version);
}
