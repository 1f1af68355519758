/* Registration health on a store: what is written when, and what survives. */
#include "control/health.h"

#include "codec/duration.h"
#include "control/controllers.h"
#include "control/health_record.h"
#include "control/testing.h"

static const struct controller *const some[] = { &nodepool_registration_health };
static const struct stage_options plain = { .controllers = some, .count = 1 };

static struct stage *stage_with(struct health_settings health, int64_t cooldown_ns)
{
    struct stage_options options = plain;
    options.settings = control_settings_default;
    options.settings.health = health;
    options.settings.registration_cooldown_ns = cooldown_ns;
    return stage_new(options);
}
#define WINDOW_OF(size) ((struct health_settings){ HEALTH_WINDOW, (size), 2 })

static struct stage *stage_with_pool(struct health_settings health, int64_t cooldown_ns)
{
    struct stage *s = stage_with(health, cooldown_ns);
    object_unref(make_pool(s, "default", ""));
    settle(s);
    return s;
}

/* A claim of the pool, launched, whose node does not come. */
static void make_claim(struct stage *s, const char *name)
{
    AUTO_OBJECT pool = get(s->w->store, &nodepool_kind, "default");
    char when[TIME_TEXT_MAX];
    time_format(clock_wall_us(virtual_clock_port(s->w->time)), when);
    object_unref(make(s->w->store, &nodeclaim_kind,
                      js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'default'},"
                         "'ownerReferences':[{'apiVersion':'karpenter.sh/v1','kind':'NodePool',"
                         "'name':'default','uid':'%.*s'}]},'spec':{'requirements':[],"
                         "'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
                         "'name':'default'}}}",
                         name, STR_ARG(pool->meta.uid))));
    object_unref(merge_status(
        s->w->store, &nodeclaim_kind, name,
        js("{'status':{'providerID':'kwok://%s','conditions':["
           "{'type':'Launched','status':'True','reason':'Launched','message':'',"
           "'lastTransitionTime':'%s'},"
           "{'type':'Registered','status':'Unknown','reason':'NodeNotFound',"
           "'message':'Node not registered with cluster','lastTransitionTime':'%s'}]}}",
           name, when, when)));
    settle(s);
}

static int tell(struct stage *s, const char *name, bool success, struct err *err)
{
    AUTO_OBJECT claim = get(s->w->store, &nodeclaim_kind, name);
    return success ? health_succeeded(s->c, nodeclaim_of(claim), err)
                   : health_failed(s->c, nodeclaim_of(claim), err);
}

static void tell_ok(struct stage *s, const char *name, bool success)
{
    struct err err = { 0 };
    EXPECT_OK(tell(s, name, success, &err), err);
    settle(s);
}

/* A claim comes, and its result is told; then it is gone. */
static void try_one(struct stage *s, const char *name, bool success)
{
    make_claim(s, name);
    tell_ok(s, name, success);
    remove_it(s->w->store, &nodeclaim_kind, name);
    settle(s);
}

static const char *status_of(struct stage *s)
{
    static const char *const words[] = { "unset", "True", "False", "Unknown" };
    AUTO_OBJECT pool = get(s->w->store, &nodepool_kind, "default");
    const struct condition *condition = health_condition(nodepool_of(pool));
    return condition ? words[condition->status] : "absent";
}

static void edit_pool(struct stage *s, int weight)
{
    object_unref(
        merge(s->w->store, &nodepool_kind, "default", js("{'spec':{'weight':%d}}", weight)));
    settle(s);
}

static void edit_class(struct stage *s, int seconds)
{
    object_unref(merge(s->w->store, &kwoknodeclass_kind, "default",
                       js("{'spec':{'nodeRegistrationDelay':'%ds'}}", seconds)));
    settle(s);
}

static void annotate(struct stage *s, const char *key, const char *value)
{
    object_unref(merge(s->w->store, &nodepool_kind, "default",
                       js("{'metadata':{'annotations':{'%s':'%s'}}}", key, value)));
    settle(s);
}

/* --- the condition --- */

TEST(a_new_pool_is_unknown_of_its_generation_and_of_its_class)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, "default");
    const struct condition *condition = health_condition(nodepool_of(object));
    EXPECT_Z(status_of(s), "Unknown");
    EXPECT_STR(condition->reason, "AwaitingReconciliation");
    EXPECT_EQ(condition->observed_generation, 1);
    EXPECT_EQ(nodepool_of(object)->status.node_class_observed_generation, 1);
}

TEST(a_failed_registration_makes_it_false_and_says_why)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    make_claim(s, "default-x7k2p");
    stage_pass(s, 15 * 60);
    tell_ok(s, "default-x7k2p", false);
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, "default");
    const struct condition *condition = health_condition(nodepool_of(object));
    EXPECT_Z(status_of(s), "False");
    EXPECT_STR(condition->reason, "RegistrationFailed");
    EXPECT_STR(condition->message,
               "claim default-x7k2p: NodeNotFound: Node not registered with cluster after 15m "
               "(instance kwok://default-x7k2p)");
    EXPECT_EQ(condition->transition_us, START_US + 15 * 60 * SECOND_US);
    EXPECT_EQ(condition->observed_generation, 1);
    EXPECT_FALSE(health_is_true(nodepool_of(object)));
}

TEST(a_registration_makes_it_true_as_the_document_prints_it)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    try_one(s, "a", false);
    try_one(s, "b", true);
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, "default");
    const struct condition *condition = health_condition(nodepool_of(object));
    EXPECT_Z(status_of(s), "True");
    EXPECT_STR(condition->reason, "NodeRegistrationHealthy");
    EXPECT_STR(condition->message, "");
    EXPECT_TRUE(health_is_true(nodepool_of(object)));
}

TEST(true_is_not_taken_back_by_a_failure)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    try_one(s, "a", true);
    try_one(s, "b", false);
    EXPECT_Z(status_of(s), "True");
}

TEST(it_is_no_part_of_ready)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    try_one(s, "a", false);
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, "default");
    const struct nodepool *pool = nodepool_of(object);
    EXPECT_EQ(condition_find(pool->status.conditions.items, pool->status.conditions.count,
                             CONDITION_READY)
                  ->status,
              CONDITION_TRUE);
}

TEST(a_further_failure_is_told_in_its_own_words_without_a_transition)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    try_one(s, "a", false);
    stage_pass(s, 60);
    try_one(s, "b", false);
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, "default");
    const struct condition *condition = health_condition(nodepool_of(object));
    EXPECT_HAS(condition->message, "claim b:");
    EXPECT_EQ(condition->transition_us, START_US);
}

TEST(a_changed_pool_or_class_is_unknown_again)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    try_one(s, "a", true);
    edit_pool(s, 7);
    EXPECT_Z(status_of(s), "Unknown");
    try_one(s, "b", true);
    edit_class(s, 30);
    EXPECT_Z(status_of(s), "Unknown");
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, "default");
    EXPECT_EQ(nodepool_of(object)->status.node_class_observed_generation, 2);
    EXPECT_EQ(health_condition(nodepool_of(object))->observed_generation, 2);
}

TEST(annotations_and_labels_are_no_change)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    try_one(s, "a", true);
    annotate(s, "team", "shop");
    EXPECT_Z(status_of(s), "True");
}

TEST(reconciling_again_and_restarting_write_nothing)
{
    static const bool results[] = { true, false };
    for (size_t i = 0; i < KV_COUNT_OF(results); i++) {
        AUTO(stage) s = stage_with_pool(WINDOW_OF(10), 0);
        try_one(s, "a", results[i]);
        try_one(s, "b", results[i]);
        uint64_t version = embedded_version(s->w->e);
        control_resync(s->c);
        settle(s);
        stage_restart(s);
        settle(s);
        EXPECT_EQ(embedded_version(s->w->e), version);
        EXPECT_Z(status_of(s), results[i] ? "True" : "False");
    }
}

/* --- results --- */

TEST(a_result_told_twice_counts_once)
{
    AUTO(stage) s = stage_with_pool(WINDOW_OF(10), 0);
    make_claim(s, "a");
    tell_ok(s, "a", false);
    tell_ok(s, "a", false);
    EXPECT_Z(status_of(s), "Unknown");
    try_one(s, "b", false);
    EXPECT_Z(status_of(s), "False");
}

TEST(a_result_told_again_after_a_restart_leaves_the_condition_right)
{
    AUTO(stage) s = stage_with_pool(WINDOW_OF(10), 0);
    make_claim(s, "a");
    make_claim(s, "b");
    tell_ok(s, "a", false);
    stage_restart(s); /* it died before the claim was deleted */
    settle(s);
    tell_ok(s, "a", false);
    EXPECT_Z(status_of(s), "Unknown");
    tell_ok(s, "b", false);
    stage_restart(s);
    settle(s);
    tell_ok(s, "b", false);
    EXPECT_Z(status_of(s), "False");
}

TEST(a_conflict_is_an_error_and_does_not_count)
{
    AUTO(stage) s = stage_with_pool(WINDOW_OF(10), 0);
    struct err err = { 0 };
    try_one(s, "a", false);
    make_claim(s, "b");
    /* Somebody else writes, and we have not seen it. */
    object_unref(merge(s->w->store, &nodepool_kind, "default",
                       js("{'metadata':{'annotations':{'x':'y'}}}")));
    EXPECT_ERR(tell(s, "b", false, &err), err, ERR_CONFLICT);
    settle(s);
    EXPECT_Z(status_of(s), "Unknown");
    tell_ok(s, "b", false);
    EXPECT_Z(status_of(s), "False");
}

TEST(claims_of_another_pool_of_that_name_are_ignored)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    make_claim(s, "a");
    AUTO_OBJECT old = get(s->w->store, &nodeclaim_kind, "a");
    remove_it(s->w->store, &nodepool_kind, "default");
    struct err err = { 0 };
    settle(s);
    EXPECT_OK(health_failed(s->c, nodeclaim_of(old), &err), err); /* there is no pool */
    object_unref(make_pool(s, "default", ""));
    settle(s);
    EXPECT_OK(health_failed(s->c, nodeclaim_of(old), &err), err);
    EXPECT_Z(status_of(s), "Unknown");
}

TEST(a_claim_from_before_an_edit_does_not_poison_the_new_unknown)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    make_claim(s, "old");
    stage_pass(s, 5 * 60);
    edit_class(s, 30);
    stage_pass(s, 10 * 60);
    tell_ok(s, "old", false);
    EXPECT_Z(status_of(s), "Unknown");
    try_one(s, "new", false);
    EXPECT_Z(status_of(s), "False");
}

TEST(a_result_that_comes_before_the_edit_was_noticed_does_not_hide_it)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    try_one(s, "a", true);
    make_claim(s, "b");
    stage_pass(s, 60);
    object_unref(merge(s->w->store, &nodepool_kind, "default", js("{'spec':{'weight':9}}")));
    cluster_pump(s->c->cluster); /* it is read, and the controller has not come to it */
    struct err err = { 0 };
    EXPECT_OK(tell(s, "b", true, &err), err);
    EXPECT_Z(status_of(s), "Unknown");
    settle(s);
    EXPECT_Z(status_of(s), "Unknown");
}

struct teller {
    struct stage *s;
    const struct object *const *claims; /* every fourth, from the first */
    int count;
    pthread_barrier_t *start;
    pthread_t thread;
};

static void *tell_some(void *ctx)
{
    const struct teller *teller = ctx;
    pthread_barrier_wait(teller->start);
    for (int i = 0; i < teller->count; i += 4) {
        struct err err = { 0 };
        while (health_failed(teller->s->c, nodeclaim_of(teller->claims[i]), &err) < 0)
            EXPECT_EQ(err.kind, ERR_CONFLICT);
    }
    return NULL;
}

TEST(of_results_that_are_told_at_once_none_is_lost_and_none_counts_twice)
{
    enum { N = HEALTH_WINDOW_MAX };
    AUTO(stage) s = stage_with_pool((struct health_settings){ HEALTH_WINDOW, N, N }, 0);
    const struct object *claims[N];
    struct teller tellers[4];
    pthread_barrier_t start;
    for (int i = 0; i < N; i++) {
        const char *name = js("claim-%d", i).p;
        make_claim(s, name);
        claims[i] = get(s->w->store, &nodeclaim_kind, name);
    }
    for (int round = 0; round < 10; round++) {
        edit_pool(s, 1 + round); /* an empty window */
        stage_restart(s);        /* and nothing counted */
        settle(s);
        pthread_barrier_init(&start, NULL, 4);
        for (int i = 0; i < 4; i++) { /* all but the last one */
            tellers[i] = (struct teller){
                .s = s, .claims = claims + i, .count = N - 1 - i, .start = &start
            };
            pthread_create(&tellers[i].thread, NULL, tell_some, &tellers[i]);
        }
        for (int i = 0; i < 4; i++)
            pthread_join(tellers[i].thread, NULL);
        settle(s);
        EXPECT_Z(status_of(s), "Unknown");
        struct err err = { 0 };
        EXPECT_OK(health_failed(s->c, nodeclaim_of(claims[N - 1]), &err), err);
        EXPECT_Z(status_of(s), "False");
    }
    pthread_barrier_destroy(&start);
    for (int i = 0; i < N; i++)
        object_unref(claims[i]);
}

TEST(a_pool_that_is_gone_and_not_yet_missed_is_no_trouble)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    make_claim(s, "a");
    AUTO_OBJECT claim = get(s->w->store, &nodeclaim_kind, "a");
    remove_it(s->w->store, &nodepool_kind, "default");
    struct err err = { 0 };
    EXPECT_OK(health_failed(s->c, nodeclaim_of(claim), &err), err);
    EXPECT_EQ(err.kind, ERR_NONE);
    settle(s);
}

/* --- policies --- */

TEST(the_pools_annotation_chooses_the_policy)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    annotate(s, ANNOTATION_HEALTH_POLICY, "window");
    try_one(s, "a", false);
    EXPECT_Z(status_of(s), "Unknown"); /* a transient error is tolerated */
    try_one(s, "b", true);
    EXPECT_Z(status_of(s), "True");
    annotate(s, ANNOTATION_HEALTH_POLICY, "nonsense"); /* the default */
    try_one(s, "c", false);
    try_one(s, "d", false);
    EXPECT_Z(status_of(s), "True");
}

TEST(an_external_fix_turns_it_true_without_a_restart)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    for (int i = 0; i < 5; i++)
        try_one(s, js("broken-%d", i).p, false);
    EXPECT_Z(status_of(s), "False");
    try_one(s, "fixed", true);
    EXPECT_Z(status_of(s), "True");
}

TEST(with_a_window_false_is_reconsidered_after_two_of_the_pools_own_timeouts)
{
    AUTO(stage) s = stage_with_pool(WINDOW_OF(10), 0);
    annotate(s, ANNOTATION_REGISTRATION_TIMEOUT, "5m");
    try_one(s, "a", false);
    try_one(s, "b", false);
    stage_pass(s, 10 * 60 - 1);
    EXPECT_Z(status_of(s), "False");
    stage_pass(s, 1);
    EXPECT_Z(status_of(s), "Unknown");
    AUTO_OBJECT object = get(s->w->store, &nodepool_kind, "default");
    EXPECT_STR(health_condition(nodepool_of(object))->message,
               "no result for 10m: failures are forgotten");
    EXPECT_EQ(control_next_due(s->c), INT64_MAX);
}

/* --- the cooldown --- */

static enum cooldown cooldown(struct stage *s, int64_t *left_s)
{
    AUTO_OBJECT pool = get(s->w->store, &nodepool_kind, "default");
    int64_t until_ns;
    enum cooldown answer = health_cooldown(s->c, nodepool_of(pool), &until_ns);
    *left_s = until_ns == INT64_MAX ? -1 : (until_ns - stage_now_ns(s)) / SECOND_NS;
    return answer;
}

#define EXPECT_COOLDOWN(s, answer, left)                                                           \
    do {                                                                                           \
        int64_t left_s_;                                                                           \
        EXPECT_EQ(cooldown((s), &left_s_), (answer));                                              \
        EXPECT_EQ(left_s_, (left));                                                                \
    } while (0)

TEST(without_a_cooldown_a_false_pool_launches_as_it_likes)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    try_one(s, "a", false);
    EXPECT_COOLDOWN(s, COOLDOWN_NONE, -1);
}

TEST(with_a_cooldown_a_false_pool_waits_longer_after_each_probe)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, DURATION_MINUTE);
    EXPECT_COOLDOWN(s, COOLDOWN_NONE, -1);
    try_one(s, "a", false);
    EXPECT_COOLDOWN(s, COOLDOWN_WAIT, 60);
    stage_pass(s, 60);
    EXPECT_COOLDOWN(s, COOLDOWN_PROBE, -1);
    make_claim(s, "stranger"); /* has the pool's label, and is not of the pool */
    object_unref(merge(s->w->store, &nodeclaim_kind, "stranger",
                       js("{'metadata':{'ownerReferences':null}}")));
    settle(s);
    EXPECT_COOLDOWN(s, COOLDOWN_PROBE, -1);
    make_claim(s, "probe");
    EXPECT_COOLDOWN(s, COOLDOWN_WAIT, 20 * 60); /* until it must have told */
    stage_pass(s, 15 * 60);
    tell_ok(s, "probe", false);
    remove_it(s->w->store, &nodeclaim_kind, "probe");
    settle(s);
    EXPECT_COOLDOWN(s, COOLDOWN_WAIT, 2 * 60);
    stage_pass(s, 2 * 60);
    try_one(s, "fixed", true);
    EXPECT_COOLDOWN(s, COOLDOWN_NONE, -1);
}

TEST(a_restart_does_not_cut_the_cooldown_short)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, DURATION_MINUTE);
    try_one(s, "a", false);
    stage_pass(s, 20);
    stage_restart(s);
    settle(s);
    EXPECT_COOLDOWN(s, COOLDOWN_WAIT, 40);
    make_claim(s, "probe");
    stage_restart(s);
    settle(s);
    EXPECT_COOLDOWN(s, COOLDOWN_WAIT, 20 * 60);
}

TEST(an_edit_ends_the_cooldown)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, DURATION_HOUR);
    try_one(s, "a", false);
    EXPECT_COOLDOWN(s, COOLDOWN_WAIT, 3600);
    edit_class(s, 30);
    EXPECT_COOLDOWN(s, COOLDOWN_NONE, -1);
}

TEST(the_cooldown_has_words)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 4 * DURATION_MINUTE);
    AUTO_ARENA arena = { 0 };
    try_one(s, "a", false);
    AUTO_OBJECT pool = get(s->w->store, &nodepool_kind, "default");
    struct str words = health_cooldown_words(s->c, nodepool_of(pool), &arena);
    EXPECT_HAS(words, "its nodes do not join the cluster (RegistrationFailed: claim a: Node");
    EXPECT_HAS(words, "); next try in 4m");
    make_claim(s, "probe");
    EXPECT_HAS(health_cooldown_words(s->c, nodepool_of(pool), &arena),
               "); a node is being tried now");
}

/* --- metrics --- */

static void scrape(struct stage *s, struct buf *out)
{
    buf_clear(out);
    metrics_write(s->metrics, out);
}

#define REASON "\"RegistrationFailed\""

TEST(metrics_tell_status_results_and_time_to_register_and_go_with_the_pool)
{
    AUTO(stage) s = stage_with_pool(HEALTH_SETTINGS_DEFAULT, 0);
    AUTO_BUF text = { 0 };
    scrape(s, &text);
    EXPECT_HAS(buf_str(&text),
               "karve_nodepools_registration_healthy{nodepool=\"default\",status=\"Unknown\"} 1\n");
    make_claim(s, "a");
    stage_pass(s, 45);
    tell_ok(s, "a", true);
    tell_ok(s, "a", true);
    try_one(s, "b", false);
    scrape(s, &text);
    static const char *const lines[] = {
        "karve_nodepools_registration_healthy{nodepool=\"default\",status=\"Unknown\"} 0\n",
        "karve_nodepools_registration_healthy{nodepool=\"default\",status=\"True\"} 1\n",
        "karve_nodepools_registrations_total{nodepool=\"default\"} 1\n",
        "karve_nodepools_registration_failures_total{nodepool=\"default\",reason=" REASON "} 1\n",
        "karve_nodepools_registration_duration_seconds_sum{nodepool=\"default\"} 45\n",
    };
    for (size_t i = 0; i < KV_COUNT_OF(lines); i++)
        EXPECT_HAS(buf_str(&text), lines[i]);
    remove_it(s->w->store, &nodepool_kind, "default");
    settle(s);
    scrape(s, &text);
    EXPECT_TRUE(strstr(text.p, "karve_nodepools_") == NULL);
}

/* --- any interleaving, against a model --- */

struct model { /* of one pool: the rules as they are written, and nothing else */
    bool first_success;
    char window[200]; /* T and F, oldest first; after a restart what the status stands for */
    char status;
    uint32_t size;
};

static void model_result(struct model *m, char result)
{
    size_t n = strlen(m->window), failures = 0;
    if (m->first_success) {
        if (result == 'T' || m->status != 'T')
            m->status = result;
        return;
    }
    m->window[n++] = result;
    m->window[n] = '\0';
    if (n > m->size)
        memmove(m->window, m->window + 1, n--);
    for (size_t i = 0; i < n; i++)
        failures += m->window[i] == 'F';
    if (result == (failures >= 2 ? 'F' : 'T'))
        m->status = result;
}

static void model_restart(struct model *m)
{
    strcpy(m->window, m->status == 'T' ? "T" : m->status == 'F' ? "FF" : "");
}

static void random_rounds(struct health_settings settings, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    printf("# seed %llu\n", (unsigned long long)seed);
    AUTO(stage) s = stage_with_pool(settings, 0);
    struct model m = { .first_success = settings.policy == HEALTH_FIRST_SUCCESS,
                       .status = '?',
                       .size = settings.window };
    for (int step = 0; step < 400; step++) {
        char name[16], result = rng_below(&rng, 2) ? 'T' : 'F';
        snprintf(name, sizeof name, "claim-%d", step);
        switch (rng_below(&rng, 8)) {
        case 0:
            stage_restart(s);
            settle(s);
            if (!m.first_success)
                model_restart(&m);
            break;
        case 1:
            stage_pass(s, 1); /* so that older claims can be told from newer ones */
            if (rng_below(&rng, 2))
                edit_pool(s, 1 + step % 50 * 2 + (int)rng_below(&rng, 2));
            else
                edit_class(s, step);
            m.status = '?';
            m.window[0] = '\0';
            break;
        case 2: /* told, and told again because what followed failed */
            make_claim(s, name);
            tell_ok(s, name, result == 'T');
            tell_ok(s, name, result == 'T');
            model_result(&m, result);
            break;
        default:
            try_one(s, name, result == 'T');
            model_result(&m, result);
            break;
        }
        EXPECT_EQ(status_of(s)[0] == 'U' ? '?' : status_of(s)[0], m.status);
    }
}

TEST(results_edits_and_restarts_in_any_order_agree_with_a_model)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        random_rounds(HEALTH_SETTINGS_DEFAULT, seed);
        random_rounds(WINDOW_OF(10), seed);
        random_rounds(WINDOW_OF(4), seed);
    }
}
