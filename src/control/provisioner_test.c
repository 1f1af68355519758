/* From pods that are called unschedulable to NodeClaims. */
#include "control/provisioner.h"

#include "api/hash.h"
#include "control/controllers.h"
#include "control/provider_testing.h"

/* Overlays are published before anything is planned. */
static const struct controller *const some[] = { &nodeoverlay_status, &provisioner_controller };

static struct stage *stage(void)
{
    return stage_new((struct stage_options){ .controllers = some, .count = 2 });
}

static const struct object *only(struct stage *s, const struct kind *kind)
{
    struct object_list all = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(s->w->store, kind, NULL, &all, &err), err);
    EXPECT_EQ(all.count, 1);
    const struct object *object = object_ref(all.items[0]);
    object_list_done(&all);
    return object;
}

static uint32_t event_count(struct stage *s, const char *reason)
{
    struct object_list all = { 0 };
    struct err err = { 0 };
    uint32_t count = 0;
    EXPECT_OK(store_list(s->w->store, &event_kind, NULL, &all, &err), err);
    for (size_t i = 0; i < all.count; i++)
        count += str_eqz(event_of(all.items[i])->reason, reason);
    object_list_done(&all);
    return count;
}

/* --- batches --- */

TEST(a_pass_begins_when_no_further_pod_has_come_for_a_second)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    stage_pass(s, 20);
    make_pending(s, "a", "1");
    for (int i = 0; i < 4; i++) {
        stage_pass(s, 0);
        virtual_clock_advance(s->w->time, 900 * 1000000);
        char name[8];
        snprintf(name, sizeof name, "b%d", i);
        make_pending(s, name, "1");
        settle(s);
        EXPECT_EQ(count_of(s, &nodeclaim_kind), 0);
    }
    virtual_clock_advance(s->w->time, SECOND_NS);
    settle(s);
    EXPECT_TRUE(count_of(s, &nodeclaim_kind) > 0);
    EXPECT_EQ(control_stats(s->c).passes, 1);
}

TEST(a_pass_begins_ten_seconds_after_the_first_pod_however_many_still_come)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    stage_pass(s, 20);
    for (int i = 0; i < 25; i++) {
        char name[8];
        snprintf(name, sizeof name, "p%d", i);
        make_pending(s, name, "1");
        settle(s);
        EXPECT_EQ(control_stats(s->c).passes, i >= 20 ? 1 : 0);
        virtual_clock_advance(s->w->time, 500 * 1000000);
        settle(s);
    }
}

TEST(pods_that_the_scheduler_has_not_given_up_on_are_left_to_it)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    make_pod(s->w->store, "fresh", "");
    stage_pass(s, 60);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 0);
}

/* --- claims --- */

TEST(a_claim_says_where_it_comes_from_and_is_born_with_its_finalizer)
{
    AUTO(stage) s = stage();
    AUTO_OBJECT pool = make_pool(s, "web",
                                 "'expireAfter':'36h','terminationGracePeriod':'5m',"
                                 "'taints':[{'key':'team','value':'shop','effect':'NoSchedule'}],"
                                 "'startupTaints':[{'key':'cni','effect':'NoExecute'}],");
    object_unref(make(s->w->store, &pod_kind,
                      js("{'metadata':{'name':'a'},'spec':{'tolerations':[{'operator':'Exists'}],"
                         "'containers':[{'name':'c','image':'i','resources':"
                         "{'requests':{'cpu':'1'}}}]}}")));
    object_unref(merge_status(s->w->store, &pod_kind, "a",
                              js("{'status':{'conditions':[{'type':'PodScheduled',"
                                 "'status':'False','reason':'Unschedulable'}]}}")));
    stage_pass(s, 5);
    AUTO_OBJECT object = only(s, &nodeclaim_kind);
    const struct nodeclaim *claim = nodeclaim_of(object);
    const struct meta *meta = &object->meta;
    char hash[HASH_TEXT_MAX];
    hash_format(nodepool_hash(nodepool_of(pool)), hash);

    EXPECT_TRUE(str_starts(meta->name, STR("web-")));
    EXPECT_EQ(meta->name.len, 9);
    EXPECT_TRUE(object_has_finalizer(object, STR(FINALIZER_TERMINATION)));
    EXPECT_STR(str_map_get(&meta->labels, STR(LABEL_NODEPOOL)), "web");
    EXPECT_STR(str_map_get(&meta->labels, STR("karpenter.kwok.sh/kwoknodeclass")), "default");
    EXPECT_STR(str_map_get(&meta->annotations, STR(ANNOTATION_NODEPOOL_HASH)), hash);
    EXPECT_STR(str_map_get(&meta->annotations, STR(ANNOTATION_NODEPOOL_HASH_VERSION)), "v3");
    EXPECT_EQ(meta->owners.count, 1);
    EXPECT_TRUE(str_eq(meta->owners.items[0].uid, pool->meta.uid));
    EXPECT_TRUE(meta->owners.items[0].block_owner_deletion);
    EXPECT_STR(claim->spec.node.expire_after, "36h");
    EXPECT_EQ(claim->spec.node.termination_grace_period.ns, 300 * SECOND_NS);
    EXPECT_EQ(claim->spec.node.taints.count, 1);
    EXPECT_STR(claim->spec.node.taints.items[0].value, "shop");
    EXPECT_EQ(claim->spec.node.startup_taints.count, 1);
    EXPECT_TRUE(claim->spec.node.requirements.count >= 3);
    EXPECT_TRUE(claim->spec.resources.requests.count >= 2);
}

TEST(a_claim_on_its_way_is_capacity_even_if_it_is_never_launched)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "a", "1");
    stage_pass(s, 120);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 1);
    make_pending(s, "b", "30");
    stage_pass(s, 120);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 2);
}

TEST(claims_that_have_not_come_back_as_events_are_not_made_again)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "a", "1");
    settle(s);
    virtual_clock_advance(s->w->time, SECOND_NS);
    control_step(s->c, NULL);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 1);
    make_pending(s, "b", "100m");
    stage_pass(s, 5);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 1);
}

static enum err_kind lose_first_claim(void *ctx, const struct embedded_call *call)
{
    int *left = ctx;
    if (call->verb != EMBEDDED_CREATE || call->kind != &nodeclaim_kind || *left == 0)
        return ERR_NONE;
    (*left)--;
    return ERR_UNAVAILABLE;
}

TEST(a_claim_whose_creation_got_no_answer_is_not_made_twice)
{
    AUTO(stage) s = stage();
    int left = 1;
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "a", "1");
    embedded_set_faults(s->w->e,
                        &(struct embedded_faults){ .after = lose_first_claim, .ctx = &left });
    stage_pass(s, 60);
    EXPECT_EQ(left, 0);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 1);
}

TEST(a_claim_that_cannot_be_created_is_tried_again)
{
    AUTO(stage) s = stage();
    int left = 10;
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "a", "1");
    embedded_set_faults(s->w->e,
                        &(struct embedded_faults){ .before = lose_first_claim, .ctx = &left });
    stage_pass(s, 60);
    EXPECT_EQ(left, 0);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 1);
}

TEST(a_claim_that_goes_before_it_became_a_node_is_replaced_without_waiting_for_a_batch)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "a", "1");
    stage_pass(s, 30);
    AUTO_OBJECT first = only(s, &nodeclaim_kind);
    char name[64];
    snprintf(name, sizeof name, "%.*s", STR_ARG(first->meta.name));
    object_unref(merge(s->w->store, &nodeclaim_kind, name, js("{'metadata':{'finalizers':null}}")));
    remove_it(s->w->store, &nodeclaim_kind, name);
    settle(s);
    AUTO_OBJECT second = only(s, &nodeclaim_kind);
    EXPECT_FALSE(str_eq(first->meta.uid, second->meta.uid));
}

/* --- nodes that go --- */

TEST(pods_of_a_node_that_is_leaving_get_another_one_before_they_are_evicted)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    object_unref(make(s->w->store, &node_kind,
                      js("{'metadata':{'name':'old','labels':{'karpenter.sh/nodepool':'web'}},"
                         "'spec':{'providerID':'kwok://old','taints':[{'key':"
                         "'karpenter.sh/disrupted','effect':'NoSchedule'}]},"
                         "'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':'10'}}}")));
    make_pod(s->w->store, "a", "");
    bind_pod(s->w->store, "a", "old");
    set_pod(s->w->store, "a", "Running", true);
    stage_pass(s, 5);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 1);
}

TEST(a_pod_that_must_not_be_disrupted_or_is_held_by_a_budget_for_ever_is_not_replaced)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    object_unref(make(s->w->store, &node_kind,
                      js("{'metadata':{'name':'old'},'spec':{'taints':[{'key':"
                         "'karpenter.sh/disrupted','effect':'NoSchedule'}]},"
                         "'status':{'allocatable':{'cpu':'4','memory':'8Gi','pods':'10'}}}")));
    object_unref(make(s->w->store, &pdb_kind,
                      js("{'metadata':{'name':'none'},'spec':{'maxUnavailable':0,"
                         "'selector':{'matchLabels':{'app':'db'}}}}")));
    run_pod(s->w->store, "held", "'app':'db'");
    object_unref(make(s->w->store, &pod_kind,
                      js("{'metadata':{'name':'b','annotations':{'karpenter.sh/do-not-disrupt':"
                         "'true'}},'spec':{'containers':[{'name':'c','image':'i'}]}}")));
    bind_pod(s->w->store, "b", "old");
    stage_pass(s, 5);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 0);
}

/* --- what is told --- */

TEST(a_pod_that_has_a_place_is_told_which)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "a", "1");
    stage_pass(s, 5);
    AUTO_OBJECT claim = only(s, &nodeclaim_kind);
    EXPECT_EQ(event_count(s, "Nominated"), 1);
    AUTO_OBJECT event = only(s, &event_kind);
    EXPECT_HAS(event_of(event)->message, "nodeclaim/web-");
    EXPECT_TRUE(control_is_nominated(s->c, claim->meta.name));
    stage_pass(s, 25);
    EXPECT_TRUE(control_is_nominated(s->c, claim->meta.name) || control_stats(s->c).passes == 1);
}

TEST(a_pod_that_fits_nowhere_is_told_why_by_an_event_and_a_condition_that_is_taken_back)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "huge", "5000");
    stage_pass(s, 60);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 0);
    EXPECT_EQ(event_count(s, "FailedScheduling"), 1);
    AUTO_OBJECT object = get(s->w->store, &pod_kind, "huge");
    const struct pod_condition *told = pod_condition(pod_of(object), CONDITION_POD_PLANNED);
    EXPECT_TRUE(told != NULL);
    EXPECT_EQ(told->status, CONDITION_FALSE);
    EXPECT_STR(told->reason, "Resources");
    /* The scheduler's own condition is still there. */
    EXPECT_TRUE(pod_condition(pod_of(object), STR("PodScheduled")) != NULL);

    object_unref(make(s->w->store, &node_kind,
                      js("{'metadata':{'name':'big'},'status':{'capacity':{'cpu':'6000'}}}")));
    bind_pod(s->w->store, "huge", "big");
    stage_pass(s, 60);
    AUTO_OBJECT bound = get(s->w->store, &pod_kind, "huge");
    told = pod_condition(pod_of(bound), CONDITION_POD_PLANNED);
    EXPECT_EQ(told->status, CONDITION_TRUE);
    EXPECT_STR(told->reason, "Scheduled");
    uint64_t version = embedded_version(s->w->e);
    stage_pass(s, 600);
    EXPECT_EQ(embedded_version(s->w->e), version);
}

TEST(a_pod_that_fits_after_all_is_told_so)
{
    AUTO(stage) s = stage();
    make_pending(s, "a", "1");
    stage_pass(s, 20);
    AUTO_OBJECT before = get(s->w->store, &pod_kind, "a");
    EXPECT_EQ(pod_condition(pod_of(before), CONDITION_POD_PLANNED)->status, CONDITION_FALSE);
    object_unref(make_pool(s, "web", ""));
    stage_pass(s, 20);
    AUTO_OBJECT after = get(s->w->store, &pod_kind, "a");
    EXPECT_EQ(pod_condition(pod_of(after), CONDITION_POD_PLANNED)->status, CONDITION_TRUE);
}

static void expect_metric(struct stage *s, const char *line, bool there)
{
    AUTO_BUF text = { 0 };
    metrics_write(s->metrics, &text);
    if (there)
        EXPECT_HAS(buf_str(&text), line);
    else
        EXPECT_TRUE(strstr(text.p, line) == NULL);
}

#define IN_ZONE(zone)                                                                                  \
    "karpenter_scheduler_pending_pods_by_effective_zone_count{controller=\"provisioner\",zone=\"" zone \
    "\"}"
#define UNSCHEDULABLE "karpenter_scheduler_unschedulable_pods_count{controller=\"provisioner\"}"

TEST(pending_pods_are_counted_by_the_zone_that_is_left_to_them_and_not_for_longer)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "anywhere", "100");
    make_pending(s, "huge", "5000");
    object_unref(make(s->w->store, &pod_kind,
                      js("{'metadata':{'name':'here'},'spec':{'nodeSelector':{"
                         "'topology.kubernetes.io/zone':'test-zone-b'},'containers':[{'name':'c',"
                         "'image':'i','resources':{'requests':{'cpu':'200'}}}]}}")));
    object_unref(merge_status(s->w->store, &pod_kind, "here",
                              js("{'status':{'conditions':[{'type':'PodScheduled','status':'False',"
                                 "'reason':'Unschedulable','message':'no nodes'}]}}")));
    stage_pass(s, 5);
    expect_metric(s, IN_ZONE("flexible") " 1\n", true);
    expect_metric(s, IN_ZONE("test-zone-b") " 1\n", true);
    expect_metric(s, IN_ZONE("none") " 1\n", true);
    expect_metric(s, UNSCHEDULABLE " 1\n", true);
    stage_pass(s, 30); /* to claims on their way, which keep their zones */
    expect_metric(s, IN_ZONE("test-zone-b") " 1\n", true);
    static const char *const names[] = { "anywhere", "huge", "here" };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++)
        remove_it(s->w->store, &pod_kind, names[i]);
    stage_pass(s, 30);
    expect_metric(s, "zone=\"flexible\"", false);
    expect_metric(s, "zone=\"none\"", false);
    expect_metric(s, "zone=\"test-zone-b\"} 1", false);
    expect_metric(s, UNSCHEDULABLE " 0\n", true);
}

TEST(a_pool_with_a_long_name_gets_claims_with_names_that_are_names)
{
    AUTO(stage) s = stage();
    /* The dots are where the name is cut. */
    object_unref(make_pool(s, "a23456789-123456789-123456789-123456789-123456789-12345.7.99", ""));
    make_pending(s, "a", "1");
    stage_pass(s, 5);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 1);
}

TEST(however_many_pods_fit_nowhere_all_are_told)
{
    AUTO(stage) s = stage();
    const int count = 450; /* more than two passes tell */
    char name[16];
    object_unref(make_pool(s, "web", ""));
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "huge-%d", i);
        make_pending(s, name, "5000");
    }
    stage_pass(s, 120);
    for (int i = 0; i < count; i++) {
        snprintf(name, sizeof name, "huge-%d", i);
        AUTO_OBJECT object = get(s->w->store, &pod_kind, name);
        EXPECT_TRUE(pod_condition(pod_of(object), CONDITION_POD_PLANNED) != NULL);
    }
}

TEST(without_a_change_nothing_is_planned_again)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "huge", "5000");
    stage_pass(s, 60);
    uint64_t before = control_stats(s->c).passes;
    uint64_t version = embedded_version(s->w->e);
    stage_pass(s, 3600);
    EXPECT_EQ(control_stats(s->c).passes, before);
    EXPECT_EQ(embedded_version(s->w->e), version);
}

/* --- a pass that was not whole --- */

/* That the cloud answers again changes nothing that a look compares. */
TEST(a_pod_gets_its_node_once_the_cloud_tells_its_types_again)
{
    AUTO(paper_stage) paper = paper_stage_new(some, 2);
    struct stage *s = paper->s;
    paper->cloud.fails[PAPER_TYPES] = ERR_UNAVAILABLE;
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "a", "1");
    stage_pass(s, 60);
    EXPECT_EQ(event_count(s, "FailedScheduling"), 1);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 0);
    uint64_t passes = control_stats(s->c).passes, version = embedded_version(s->w->e);
    stage_pass(s, 60);
    EXPECT_EQ(control_stats(s->c).passes, passes + 6);
    EXPECT_EQ(embedded_version(s->w->e), version); /* what has been told is not told again */
    paper->cloud.fails[PAPER_TYPES] = ERR_NONE;
    stage_pass(s, 10);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 1);
}

TEST(a_pool_without_its_node_class_is_not_planned_for_again_and_again)
{
    AUTO(paper_stage) paper = paper_stage_new(some, 2);
    struct stage *s = paper->s;
    paper->cloud.fails[PAPER_TYPES] = ERR_NOT_FOUND;
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "a", "1");
    stage_pass(s, 60);
    uint64_t passes = control_stats(s->c).passes;
    stage_pass(s, 3600);
    EXPECT_EQ(control_stats(s->c).passes, passes);
}

struct deaf { /* pods that cannot be told */
    enum err_kind with;
    int left;
};

static enum err_kind deafen(void *ctx, const struct embedded_call *call)
{
    struct deaf *deaf = ctx;
    if (call->verb != EMBEDDED_PATCH || call->kind != &pod_kind || deaf->left == 0)
        return ERR_NONE;
    deaf->left--;
    return deaf->with;
}

TEST(a_pod_that_could_not_be_told_is_told_at_the_next_look)
{
    AUTO(stage) s = stage();
    struct deaf deaf = { ERR_UNAVAILABLE, 1 };
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "huge", "5000");
    embedded_set_faults(s->w->e, &(struct embedded_faults){ .before = deafen, .ctx = &deaf });
    stage_pass(s, 60);
    EXPECT_EQ(deaf.left, 0);
    AUTO_OBJECT pending = get(s->w->store, &pod_kind, "huge");
    EXPECT_TRUE(pod_condition(pod_of(pending), CONDITION_POD_PLANNED) != NULL);

    /* Nothing is pending any more, and taking it back fails too. */
    deaf.left = 1;
    object_unref(make(s->w->store, &node_kind,
                      js("{'metadata':{'name':'big'},'status':{'capacity':{'cpu':'6000'}}}")));
    bind_pod(s->w->store, "huge", "big");
    stage_pass(s, 60);
    EXPECT_EQ(deaf.left, 0);
    AUTO_OBJECT bound = get(s->w->store, &pod_kind, "huge");
    EXPECT_EQ(pod_condition(pod_of(bound), CONDITION_POD_PLANNED)->status, CONDITION_TRUE);
}

TEST(who_may_not_tell_pods_does_not_plan_again_and_again_for_it)
{
    AUTO(stage) s = stage();
    struct deaf deaf = { ERR_DENIED, 1000 };
    object_unref(make_pool(s, "web", ""));
    make_pending(s, "huge", "5000");
    embedded_set_faults(s->w->e, &(struct embedded_faults){ .before = deafen, .ctx = &deaf });
    stage_pass(s, 60);
    EXPECT_TRUE(deaf.left < 1000);
    uint64_t passes = control_stats(s->c).passes;
    stage_pass(s, 3600);
    EXPECT_EQ(control_stats(s->c).passes, passes);
}

/* --- pools --- */

TEST(a_pool_that_is_not_ready_launches_nothing_until_it_is)
{
    AUTO(stage) s = stage();
    object_unref(make(s->w->store, &nodepool_kind,
                      js("{'metadata':{'name':'web'},'spec':{'template':{'spec':{"
                         "'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
                         "'name':'default'},'requirements':[]}}}}")));
    make_pending(s, "a", "1");
    stage_pass(s, 60);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 0);
    object_unref(merge_status(s->w->store, &nodepool_kind, "web",
                              js("{'status':{'conditions':[{'type':'Ready','status':'True',"
                                 "'reason':'Ready','message':'','observedGeneration':1,"
                                 "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}")));
    stage_pass(s, 5);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 1);
}

TEST(a_pool_of_somebody_elses_class_is_ignored)
{
    AUTO(stage) s = stage();
    object_unref(make(s->w->store, &nodepool_kind,
                      js("{'metadata':{'name':'theirs'},'spec':{'template':{'spec':{"
                         "'nodeClassRef':{'group':'karpenter.k8s.aws','kind':'EC2NodeClass',"
                         "'name':'default'},'requirements':[]}}}}")));
    make_pending(s, "a", "1");
    stage_pass(s, 30);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 0);
    EXPECT_EQ(event_count(s, "FailedScheduling"), 1);
}

TEST(a_restart_between_any_two_writes_makes_no_claim_twice)
{
    AUTO(stage) s = stage();
    object_unref(make_pool(s, "web", ""));
    for (int i = 0; i < 5; i++) {
        char name[8];
        snprintf(name, sizeof name, "p%d", i);
        make_pending(s, name, "200");
    }
    int left = 3; /* the first two are made, then the process dies */
    embedded_set_faults(s->w->e,
                        &(struct embedded_faults){ .before = lose_first_claim, .ctx = &left });
    stage_pass(s, 2);
    stage_restart(s);
    stage_pass(s, 60);
    EXPECT_EQ(count_of(s, &nodeclaim_kind), 5);
}
