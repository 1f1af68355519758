/* The life of a NodeClaim, one rule at a time. What happens when calls fail in the middle of it is
 * in lifecycle_crash_test.c. */
#include "control/controllers.h"
#include "control/provider_testing.h"

static const struct controller *const only_lifecycle[] = { &nodeclaim_lifecycle };

static struct paper_stage *scene(void)
{
    return paper_stage_new(only_lifecycle, KV_COUNT_OF(only_lifecycle));
}

/* A claim that is launched, unless the cloud refuses. */
static void claim_settled(struct paper_stage *p, const char *name, const char *spec)
{
    paper_claim(p, name, spec);
    settle(p->s);
}

/* A claim whose node is registered, and not ready yet. */
static void claim_with_node(struct paper_stage *p, const char *name, const char *spec)
{
    claim_settled(p, name, spec);
    paper_node_joins(p, name);
    settle(p->s);
}

/* A claim with a second node, "other", of its instance: neither is registered. */
static void claim_with_two_nodes(struct paper_stage *p, const char *name)
{
    claim_settled(p, name, "");
    object_unref(make(p->store, &node_kind,
                      js("{'metadata':{'name':'other'},'spec':{'providerID':'paper://0000'}}")));
    paper_node_joins(p, name);
    settle(p->s);
}

/* Of the first instance. */
static void patch_node(struct paper_stage *p, struct str patch)
{
    object_unref(merge(p->store, &node_kind, "paper-0", patch));
}

static void annotate_pool(struct paper_stage *p, const char *annotation)
{
    object_unref(merge(p->store, &nodepool_kind, "web",
                       js("{'metadata':{'annotations':{%s}}}", annotation)));
}

/* As if the process had died before the claim said Registered. */
static void forget_registration(struct paper_stage *p)
{
    object_unref(merge_status(p->store, &nodeclaim_kind, "a",
                              js("{'status':{'nodeName':null,'conditions':[{'type':'Launched',"
                                 "'status':'True','reason':'Launched','message':'',"
                                 "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}")));
}

#define DISRUPTED(reason)                                                                          \
    "karpenter_nodeclaims_disrupted_total{reason=\"" reason                                        \
    "\",nodepool=\"web\",capacity_type=\"\",consolidation_policy=\"\","                            \
    "termination_mode=\"graceful\"}"
#define DISRUPTED_SPOT(reason)                                                                     \
    "karpenter_nodeclaims_disrupted_total{reason=\"" reason                                        \
    "\",nodepool=\"web\",capacity_type=\"spot\",consolidation_policy=\"\","                        \
    "termination_mode=\"graceful\"}"

static struct str label(const struct object *object, const char *key)
{
    return str_map_get(&object->meta.labels, str_of(key));
}

static const char *pool_health(struct paper_stage *p)
{
    static char text[100];
    static const char *const words[] = { "", "True", "False", "Unknown" };
    AUTO_OBJECT pool = get(p->store, &nodepool_kind, "web");
    const struct nodepool *np = nodepool_of(pool);
    const struct condition *health =
        condition_find(np->status.conditions.items, np->status.conditions.count,
                       CONDITION_NODE_REGISTRATION_HEALTHY);
    if (!health)
        return "";
    snprintf(text, sizeof text, "%s %.*s", words[health->status], STR_ARG(health->reason));
    return text;
}

/* How many Events have that reason. */
static uint32_t event_count(struct paper_stage *p, const char *reason)
{
    struct object_list events = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(p->store, &event_kind, NULL, &events, &err), err);
    uint32_t count = 0;
    for (size_t i = 0; i < events.count; i++)
        count += str_eqz(object_field(events.items[i], STR("reason")), reason);
    object_list_done(&events);
    return count;
}

/* --- launch --- */

TEST(a_claim_has_its_finalizer_before_its_instance)
{
    AUTO(paper_stage) p = scene();
    p->cloud.fails[PAPER_CREATE] = ERR_UNAVAILABLE;
    claim_settled(p, "a", "");
    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, "a");
    EXPECT_TRUE(object_has_finalizer(claim, STR(FINALIZER_TERMINATION)));
    EXPECT_EQ(p->cloud.instances.count, 0);
}

TEST(a_launched_claim_says_what_it_got_and_waits_for_its_node)
{
    AUTO(paper_stage) p = scene();
    static const struct str_pair annotations[] = { { STR("note"), STR("y") },
                                                   { STR("price"), STR("1") } };
    p->cloud.annotations = (struct str_map){ annotations, 2 };
    static const struct str_pair labels[] = { { STR("team"), STR("bank") } };
    p->cloud.labels = (struct str_map){ labels, 1 };
    claim_settled(p, "a", "");

    AUTO_OBJECT object = get(p->store, &nodeclaim_kind, "a");
    const struct nodeclaim *claim = nodeclaim_of(object);
    EXPECT_STR(claim->status.provider_id, "paper://0000");
    EXPECT_STR(claim->status.image_id, "image-1");
    EXPECT_EQ(claim->status.capacity.count, 3);
    EXPECT_EQ(claim->status.allocatable.count, 3);
    EXPECT_STR(label(object, LABEL_ZONE), "test-zone-a");
    EXPECT_STR(label(object, "team"), "shop"); /* the claim's own label wins */
    EXPECT_STR(str_map_get(&object->meta.annotations, STR("note")), "y");
    EXPECT_STR(str_map_get(&object->meta.annotations, STR("price")), "1");
    EXPECT_Z(paper_condition(p, "a", "Launched"), "True Launched");
    EXPECT_Z(paper_condition(p, "a", "Registered"), "Unknown NodeNotFound");
    EXPECT_Z(paper_condition(p, "a", "Initialized"), "Unknown AwaitingReconciliation");
    EXPECT_EQ(p->cloud.calls[PAPER_CREATE], 1);
}

TEST(without_capacity_a_claim_goes_at_once_and_an_event_says_why)
{
    AUTO(paper_stage) p = scene();
    p->cloud.failure.kind = LAUNCH_INSUFFICIENT_CAPACITY;
    p->cloud.fails[PAPER_CREATE] = ERR_CAPACITY;
    claim_settled(p, "a", "");
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_EQ(event_count(p, "InsufficientCapacityError"), 1);
    EXPECT_Z(paper_metric(p, DISRUPTED("insufficient_capacity")), " 1");
    EXPECT_Z(pool_health(p), ""); /* it says nothing about the pool */
}

TEST(a_claim_whose_class_is_not_ready_goes_at_once)
{
    AUTO(paper_stage) p = scene();
    p->cloud.failure.kind = LAUNCH_CLASS_NOT_READY;
    p->cloud.fails[PAPER_CREATE] = ERR_UNAVAILABLE;
    claim_settled(p, "a", "");
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_Z(paper_metric(p, DISRUPTED("nodeclass_not_ready")), " 1");
    EXPECT_Z(pool_health(p), "");
}

TEST(a_refused_launch_shows_its_reason_and_is_tried_again_until_it_works)
{
    AUTO(paper_stage) p = scene();
    p->cloud.failure = (struct launch_failure){ LAUNCH_CREATE_ERROR, "Unauthorized" };
    p->cloud.fails[PAPER_CREATE] = ERR_NOT_FOUND; /* whatever the kind: the claim is there */
    claim_settled(p, "a", "");
    EXPECT_Z(paper_condition(p, "a", "Launched"), "Unknown Unauthorized");
    stage_pass(p->s, 2);
    p->cloud.fails[PAPER_CREATE] = ERR_NONE;
    stage_pass(p->s, 60);
    EXPECT_Z(paper_condition(p, "a", "Launched"), "True Launched");
    EXPECT_EQ(p->cloud.instances.count, 1);
}

TEST(a_launch_that_fails_without_a_reason_is_called_so_and_its_words_are_cut)
{
    AUTO(paper_stage) p = scene();
    char words[450];
    memset(words, 'x', sizeof words);
    memcpy(words + 297, "\xe2\x82\xac\xe2\x82\xac", 6); /* 297 bytes, then characters of three */
    words[sizeof words - 1] = '\0';
    p->cloud.words = words;
    p->cloud.fails[PAPER_CREATE] = ERR_INTERNAL;
    claim_settled(p, "a", "");
    AUTO_OBJECT object = get(p->store, &nodeclaim_kind, "a");
    const struct condition *launched = claim_condition(nodeclaim_of(object), CONDITION_LAUNCHED);
    EXPECT_STR(launched->reason, "LaunchFailed");
    EXPECT_EQ(launched->message.len, 300);
    EXPECT_TRUE(str_is_utf8(launched->message));
}

static enum err_kind other_words_each_time(void *ctx, enum paper_call call)
{
    static char words[32];
    struct paper_cloud *cloud = ctx;
    if (call != PAPER_CREATE)
        return ERR_NONE;
    snprintf(words, sizeof words, "request %u failed", cloud->calls[PAPER_CREATE]);
    cloud->words = words;
    return ERR_UNAVAILABLE;
}

TEST(a_launch_that_fails_in_ever_other_words_still_backs_off)
{
    AUTO(paper_stage) p = scene();
    p->cloud.before = other_words_each_time;
    p->cloud.ctx = &p->cloud;
    claim_settled(p, "a", "");
    EXPECT_EQ(p->cloud.calls[PAPER_CREATE], 1);
    stage_pass(p->s, 240); /* 1, 2, 4, ... 60 s, each less up to a half */
    EXPECT_TRUE(p->cloud.calls[PAPER_CREATE] >= 7);
    EXPECT_TRUE(p->cloud.calls[PAPER_CREATE] <= 16);
}

TEST(claims_of_other_providers_are_left_alone)
{
    AUTO(paper_stage) p = scene();
    object_unref(make(p->store, &nodeclaim_kind,
                      js("{'metadata':{'name':'b'},'spec':{'nodeClassRef':{'group':'other.io',"
                         "'kind':'Class','name':'x'},'requirements':[]}}")));
    stage_pass(p->s, 3600);
    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, "b");
    EXPECT_EQ(claim->meta.finalizers.count, 0);
    EXPECT_EQ(p->cloud.calls[PAPER_CREATE], 0);
    remove_it(p->store, &nodeclaim_kind, "b");
    settle(p->s);
    EXPECT_EQ(p->cloud.calls[PAPER_DELETE], 0);
}

/* --- registration --- */

#define TAINTED                                                                                    \
    "'taints':[{'key':'dedicated','value':'gpu','effect':'NoSchedule'}],"                          \
    "'startupTaints':[{'key':'cni','effect':'NoExecute'}],"

TEST(a_node_that_joins_becomes_the_claims_in_all_respects)
{
    AUTO(paper_stage) p = scene();
    claim_with_node(p, "a", TAINTED);

    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, "a");
    AUTO_OBJECT object = get(p->store, &node_kind, "paper-0");
    const struct node *node = node_of(object);
    EXPECT_TRUE(object_has_finalizer(object, STR(FINALIZER_TERMINATION)));
    EXPECT_EQ(object->meta.owners.count, 1);
    EXPECT_TRUE(str_eq(object->meta.owners.items[0].uid, claim->meta.uid));
    EXPECT_TRUE(object->meta.owners.items[0].block_owner_deletion);
    EXPECT_STR(label(object, LABEL_REGISTERED), "true");
    EXPECT_STR(label(object, "team"), "shop");
    EXPECT_STR(label(object, LABEL_ZONE), "test-zone-a");
    EXPECT_STR(str_map_get(&object->meta.annotations, STR("note")), "x");
    EXPECT_FALSE(node_taint(node, STR(TAINT_UNREGISTERED), EFFECT_ANY));
    EXPECT_TRUE(node_taint(node, STR("dedicated"), EFFECT_NO_SCHEDULE));
    EXPECT_TRUE(node_taint(node, STR("cni"), EFFECT_NO_EXECUTE));
    EXPECT_STR(nodeclaim_of(claim)->status.node_name, "paper-0");
    EXPECT_Z(paper_condition(p, "a", "Registered"), "True Registered");
    EXPECT_Z(pool_health(p), "True NodeRegistrationHealthy");
    EXPECT_Z(
        paper_metric(p, "karpenter_nodes_created_total{nodepool=\"web\",zone=\"test-zone-a\"}"),
        " 1");
    EXPECT_EQ(event_count(p, "UnregisteredTaintMissing"), 0);
}

TEST(a_taint_that_the_node_has_is_not_added_again)
{
    AUTO(paper_stage) p = scene();
    claim_settled(p, "a", TAINTED);
    paper_node_joins(p, "a");
    patch_node(p, js("{'spec':{'taints':[{'key':'dedicated','value':'own',"
                     "'effect':'NoSchedule'}]}}"));
    settle(p->s);
    AUTO_OBJECT object = get(p->store, &node_kind, "paper-0");
    const struct node *node = node_of(object);
    EXPECT_EQ(node->spec.taints.count, 2);
    EXPECT_STR(node_taint(node, STR("dedicated"), EFFECT_NO_SCHEDULE)->value, "own");
    EXPECT_EQ(event_count(p, "UnregisteredTaintMissing"), 1); /* pods could have come too early */
}

TEST(a_node_that_says_so_keeps_its_taints_to_itself)
{
    AUTO(paper_stage) p = scene();
    claim_settled(p, "a", TAINTED);
    paper_node_joins(p, "a");
    patch_node(p, js("{'metadata':{'labels':{'karpenter.sh/do-not-sync-taints':'true'}}}"));
    settle(p->s);
    AUTO_OBJECT object = get(p->store, &node_kind, "paper-0");
    EXPECT_EQ(node_of(object)->spec.taints.count, 0);
    EXPECT_Z(paper_condition(p, "a", "Registered"), "True Registered");
}

TEST(a_startup_taint_that_was_removed_does_not_come_back)
{
    AUTO(paper_stage) p = scene();
    claim_with_node(p, "a", TAINTED);
    forget_registration(p); /* and the taint went meanwhile */
    patch_node(p, js("{'spec':{'taints':[]}}"));
    paper_node_ready(p, "paper-0", true);
    stage_restart(p->s);
    settle(p->s);
    AUTO_OBJECT object = get(p->store, &node_kind, "paper-0");
    EXPECT_EQ(node_of(object)->spec.taints.count, 0);
    EXPECT_Z(paper_condition(p, "a", "Initialized"), "True Initialized");
}

TEST(two_nodes_of_one_instance_are_a_contradiction_until_one_goes)
{
    AUTO(paper_stage) p = scene();
    claim_with_two_nodes(p, "a");
    EXPECT_Z(paper_condition(p, "a", "Registered"), "False MultipleNodesFound");
    remove_it(p->store, &node_kind, "other");
    settle(p->s);
    EXPECT_Z(paper_condition(p, "a", "Registered"), "True Registered");
}

/* --- initialization --- */

TEST(a_claim_is_initialized_when_its_node_is_ready_untainted_and_complete)
{
    AUTO(paper_stage) p = scene();
    claim_with_node(p, "a", TAINTED);
    EXPECT_Z(paper_condition(p, "a", "Initialized"), "Unknown NodeNotReady");

    paper_node_ready(p, "paper-0", true);
    settle(p->s);
    EXPECT_Z(paper_condition(p, "a", "Initialized"), "Unknown StartupTaintsExist");

    patch_node(p, js("{'spec':{'taints':[{'key':'readiness.k8s.io/gpu',"
                     "'effect':'NoSchedule'}]}}"));
    settle(p->s);
    EXPECT_Z(paper_condition(p, "a", "Initialized"), "Unknown KnownEphemeralTaintsExist");

    patch_node(p, js("{'spec':{'taints':null}}"));
    object_unref(merge_status(p->store, &node_kind, "paper-0",
                              js("{'status':{'allocatable':{'pods':'0'}}}")));
    settle(p->s);
    EXPECT_Z(paper_condition(p, "a", "Initialized"), "Unknown ResourceNotRegistered");

    object_unref(merge_status(p->store, &node_kind, "paper-0",
                              js("{'status':{'allocatable':{'pods':'8'}}}")));
    settle(p->s);
    EXPECT_Z(paper_condition(p, "a", "Initialized"), "True Initialized");
    EXPECT_Z(paper_condition(p, "a", "Ready"), "True Ready");
    AUTO_OBJECT node = get(p->store, &node_kind, "paper-0");
    EXPECT_STR(label(node, LABEL_INITIALIZED), "true");
}

TEST(each_taint_of_a_young_node_holds_its_claim_back)
{
    static const char *const young[] = {
        "'key':'node.kubernetes.io/not-ready','effect':'NoSchedule'",
        "'key':'node.kubernetes.io/not-ready','effect':'NoExecute'",
        "'key':'node.kubernetes.io/unreachable','effect':'NoSchedule'",
        "'key':'node.cloudprovider.kubernetes.io/uninitialized','value':'true','effect':'NoSchedule'",
        "'key':'readiness.k8s.io/x','effect':'NoExecute'",
    };
    AUTO(paper_stage) p = scene();
    claim_with_node(p, "a", "");
    for (size_t i = 0; i < KV_COUNT_OF(young); i++) {
        patch_node(p, js("{'spec':{'taints':[{%s}]}}", young[i]));
        paper_node_ready(p, "paper-0", true);
        settle(p->s);
        EXPECT_Z(paper_condition(p, "a", "Initialized"), "Unknown KnownEphemeralTaintsExist");
    }
    patch_node(p, js("{'spec':{'taints':[{'key':'own','effect':'NoSchedule'}]}}"));
    settle(p->s);
    EXPECT_Z(paper_condition(p, "a", "Initialized"), "True Initialized");
}

/* --- liveness --- */

TEST(a_claim_that_is_not_launched_in_five_minutes_goes_and_its_pool_is_told_why)
{
    AUTO(paper_stage) p = scene();
    p->cloud.failure = (struct launch_failure){ LAUNCH_CREATE_ERROR, "Unauthorized" };
    p->cloud.fails[PAPER_CREATE] = ERR_DENIED;
    paper_claim(p, "a", "");
    stage_pass(p->s, 298);
    EXPECT_FALSE(paper_is_ending(p, "a"));
    stage_pass(p->s, 62); /* the next try after that is at most a minute away */
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_Z(pool_health(p), "False Unauthorized");
    EXPECT_Z(paper_metric(p, DISRUPTED("launch_timeout")), " 1");
    EXPECT_EQ(p->cloud.calls[PAPER_DELETE], 1); /* it may have been launched all the same */
}

TEST(a_claim_that_does_not_register_in_fifteen_minutes_goes_and_its_pool_is_told)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "");
    stage_pass(p->s, 15 * 60 - 1);
    EXPECT_FALSE(paper_is_ending(p, "a"));
    EXPECT_EQ(paper_running(&p->cloud), 1);
    stage_pass(p->s, 1);
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_EQ(paper_running(&p->cloud), 0);
    EXPECT_Z(pool_health(p), "False RegistrationFailed");
    EXPECT_Z(paper_metric(p, DISRUPTED_SPOT("registration_timeout")), " 1");
}

TEST(a_pool_may_have_other_timeouts_and_they_count_at_once)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "");
    stage_pass(p->s, 120);
    annotate_pool(p, "'karve.io/registration-timeout':'3m'");
    stage_pass(p->s, 59);
    EXPECT_FALSE(paper_is_ending(p, "a"));
    stage_pass(p->s, 1);
    EXPECT_TRUE(paper_is_ending(p, "a"));

    annotate_pool(p, "'karve.io/launch-timeout':'30s'");
    p->cloud.fails[PAPER_CREATE] = ERR_UNAVAILABLE;
    paper_claim(p, "b", "");
    stage_pass(p->s, 62);
    EXPECT_TRUE(paper_is_ending(p, "b"));
}

TEST(a_node_that_registers_and_never_gets_ready_is_kept_unless_the_pool_says_for_how_long)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "");
    stage_pass(p->s, 100);
    paper_node_joins(p, "a");
    stage_pass(p->s, 24 * 3600);
    EXPECT_FALSE(paper_is_ending(p, "a"));

    annotate_pool(p, "'karve.io/initialization-timeout':'10m'");
    settle(p->s);
    EXPECT_TRUE(paper_is_ending(p, "a"));
    EXPECT_Z(paper_metric(p, DISRUPTED_SPOT("initialization_timeout")), " 1");
    EXPECT_Z(pool_health(p), "True NodeRegistrationHealthy"); /* for it did join */
}

TEST(the_initialization_timeout_counts_from_registration)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "");
    annotate_pool(p, "'karve.io/initialization-timeout':'10m'");
    stage_pass(p->s, 500);
    paper_node_joins(p, "a");
    stage_pass(p->s, 599);
    EXPECT_FALSE(paper_is_ending(p, "a"));
    stage_pass(p->s, 1);
    EXPECT_TRUE(paper_is_ending(p, "a"));
}

TEST(a_claim_that_waited_for_the_control_plane_is_launched_and_has_its_time_to_register)
{
    AUTO(paper_stage) p = scene();
    paper_claim(p, "a", "");
    virtual_clock_advance(p->s->w->time, 3600 * SECOND_NS);
    stage_restart(p->s);
    stage_pass(p->s, 14 * 60);
    EXPECT_FALSE(paper_is_ending(p, "a"));
    paper_node_joins(p, "a");
    settle(p->s);
    EXPECT_Z(paper_condition(p, "a", "Registered"), "True Registered");
}

TEST(a_claim_of_no_pool_lives_and_times_out_too)
{
    AUTO(paper_stage) p = scene();
    object_unref(make(p->store, &nodeclaim_kind,
                      js("{'metadata':{'name':'a'},'spec':{'nodeClassRef':{'group':"
                         "'karpenter.kwok.sh','kind':'KWOKNodeClass','name':'default'},"
                         "'requirements':[]}}")));
    settle(p->s);
    EXPECT_Z(paper_condition(p, "a", "Launched"), "True Launched");
    stage_pass(p->s, 15 * 60);
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_EQ(paper_running(&p->cloud), 0);
}

/* --- the end --- */

TEST(a_claims_nodes_go_before_its_instance_and_the_finalizer_last)
{
    AUTO(paper_stage) p = scene();
    p->cloud.polls = 2;
    paper_claim_lives(p, "a", "");
    remove_it(p->store, &nodeclaim_kind, "a");
    settle(p->s);
    AUTO_OBJECT node = get(p->store, &node_kind, "paper-0");
    EXPECT_TRUE(node->meta.deleted_us != 0);
    EXPECT_EQ(p->cloud.calls[PAPER_DELETE], 0); /* it is still being drained */
    stage_pass(p->s, 600);
    EXPECT_EQ(p->cloud.calls[PAPER_DELETE], 0);

    patch_node(p, js("{'metadata':{'finalizers':null}}"));
    settle(p->s);
    EXPECT_EQ(p->cloud.calls[PAPER_DELETE], 1);
    EXPECT_Z(paper_condition(p, "a", "InstanceTerminating"), "True InstanceTerminating");
    stage_pass(p->s, 9);
    EXPECT_EQ(p->cloud.calls[PAPER_DELETE], 2); /* asked every five seconds */
    stage_pass(p->s, 1);
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_EQ(p->cloud.calls[PAPER_DELETE], 3);
    EXPECT_Z(paper_metric(p, "karpenter_nodeclaims_terminated_total{nodepool=\"web\","
                             "capacity_type=\"spot\",zone=\"test-zone-a\"}"),
             " 1");
    EXPECT_Z(
        paper_metric(
            p, "karpenter_nodeclaims_instance_termination_duration_seconds_sum{nodepool=\"web\"}"),
        " 10");
    EXPECT_Z(
        paper_metric(p, "karpenter_nodeclaims_termination_duration_seconds_sum{nodepool=\"web\"}"),
        " 610");
}

TEST(a_claim_that_never_said_launched_still_has_its_instance_deleted)
{
    AUTO(paper_stage) p = scene();
    p->cloud.fails[PAPER_CREATE] = ERR_UNAVAILABLE;
    claim_settled(p, "a", "");
    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, "a");
    paper_launch(&p->cloud, claim->meta.name, claim->meta.uid); /* the answer got lost */
    remove_it(p->store, &nodeclaim_kind, "a");
    settle(p->s);
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_EQ(paper_running(&p->cloud), 0);
}

TEST(a_claim_without_the_finalizer_is_none_of_our_business_at_its_end)
{
    AUTO(paper_stage) p = scene();
    p->cloud.fails[PAPER_CREATE] = ERR_UNAVAILABLE;
    claim_settled(p, "a", "");
    object_unref(merge(p->store, &nodeclaim_kind, "a",
                       js("{'metadata':{'finalizers':['example.com/other']}}")));
    remove_it(p->store, &nodeclaim_kind, "a");
    stage_pass(p->s, 60);
    EXPECT_EQ(p->cloud.calls[PAPER_DELETE], 0);
}

TEST(a_node_that_never_registered_goes_with_its_instance_and_is_not_drained)
{
    AUTO(paper_stage) p = scene();
    claim_with_two_nodes(p, "a");
    remove_it(p->store, &nodeclaim_kind, "a");
    settle(p->s);
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_EQ(count_of(p->s, &node_kind), 0);
    EXPECT_EQ(paper_running(&p->cloud), 0);
}

TEST(a_node_that_is_ours_is_drained_though_the_claim_does_not_say_registered_yet)
{
    AUTO(paper_stage) p = scene();
    claim_with_node(p, "a", "");
    forget_registration(p);
    remove_it(p->store, &nodeclaim_kind, "a");
    stage_restart(p->s);
    settle(p->s);
    EXPECT_EQ(p->cloud.calls[PAPER_DELETE], 0);
    patch_node(p, js("{'metadata':{'finalizers':null}}"));
    settle(p->s);
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_EQ(paper_running(&p->cloud), 0);
}

static int64_t an_hour_after(void *ctx, const struct kind *kind KV_UNUSED, uint64_t version)
{
    return version > *(uint64_t *)ctx ? 3600 * SECOND_NS : 0;
}

TEST(a_node_that_became_ours_without_our_knowing_is_drained_before_its_machine_goes)
{
    AUTO(paper_stage) p = scene();
    claim_with_two_nodes(p, "a");
    remove_it(p->store, &nodeclaim_kind, "a");
    uint64_t seen = embedded_version(p->s->w->e);
    embedded_set_faults(p->s->w->e,
                        &(struct embedded_faults){ .event_delay_ns = an_hour_after, .ctx = &seen });
    /* A patch of ours that took effect: its answer was lost, and its event is on its way. */
    patch_node(p, js("{'metadata':{'finalizers':['karpenter.sh/termination']}}"));
    settle(p->s);
    EXPECT_EQ(p->cloud.calls[PAPER_DELETE], 0);
    AUTO_OBJECT node = get(p->store, &node_kind, "paper-0");
    EXPECT_TRUE(node->meta.deleted_us != 0);
}

TEST(a_termination_grace_period_becomes_a_deadline_once)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", "'terminationGracePeriod':'1h',");
    stage_pass(p->s, 60);
    remove_it(p->store, &nodeclaim_kind, "a");
    settle(p->s);
    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, "a");
    EXPECT_STR(str_map_get(&claim->meta.annotations, STR(ANNOTATION_TERMINATION_TIMESTAMP)),
               "2026-01-02T04:01:00Z");
    object_unref(merge(p->store, &nodeclaim_kind, "a",
                       js("{'metadata':{'annotations':{"
                          "'karpenter.sh/nodeclaim-termination-timestamp':"
                          "'2026-01-02T03:30:00Z'}}}")));
    stage_restart(p->s);
    settle(p->s);
    AUTO_OBJECT later = get(p->store, &nodeclaim_kind, "a");
    EXPECT_STR(str_map_get(&later->meta.annotations, STR(ANNOTATION_TERMINATION_TIMESTAMP)),
               "2026-01-02T03:30:00Z");
}

TEST(an_instance_that_cannot_be_deleted_keeps_its_claim)
{
    AUTO(paper_stage) p = scene();
    claim_settled(p, "a", "");
    p->cloud.fails[PAPER_DELETE] = ERR_UNAVAILABLE;
    remove_it(p->store, &nodeclaim_kind, "a");
    stage_pass(p->s, 600);
    EXPECT_TRUE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_TRUE(p->cloud.calls[PAPER_DELETE] >= 10);
    EXPECT_TRUE(p->cloud.calls[PAPER_DELETE] <= 30);
    p->cloud.fails[PAPER_DELETE] = ERR_NONE;
    stage_pass(p->s, 60);
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
}

/* --- at rest --- */

TEST(a_claim_at_rest_is_not_written_and_nothing_is_due)
{
    AUTO(paper_stage) p = scene();
    paper_claim_lives(p, "a", TAINTED);
    patch_node(p, js("{'spec':{'taints':null}}"));
    settle(p->s);
    EXPECT_Z(paper_condition(p, "a", "Ready"), "True Ready");
    stage_pass(p->s, 3600);
    uint64_t version = embedded_version(p->s->w->e);
    control_resync(p->s->c);
    settle(p->s);
    stage_restart(p->s);
    settle(p->s);
    EXPECT_EQ(embedded_version(p->s->w->e), version);
    EXPECT_TRUE(control_next_due(p->s->c) == INT64_MAX);
    EXPECT_EQ(p->cloud.calls[PAPER_CREATE], 1);
}
