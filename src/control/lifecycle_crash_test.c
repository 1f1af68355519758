/* One whole life of a claim (launch, registration, initialization, deletion), once for every call
 * that the control plane makes to the store or the cloud in it, with that call gone wrong:
 *
 *     it fails and has no effect             it took effect and its caller is told that it failed
 *     the process dies just before it        the process dies just after it
 *
 * And lives of several claims at once, where calls fail and the process dies at random, events are
 * late, and the controllers take turns as a seed says.
 *
 * Whatever it was, the end is the same: the node was there, exactly one instance ever was, the pool
 * knows that its nodes join, and nothing is left.
 */
#include "control/controllers.h"
#include "control/provider_testing.h"

static const struct controller *const cast[] = { &nodeclaim_lifecycle,
                                                 &nodeclaim_garbage_collection,
                                                 &nodeclaim_hydration, &node_hydration,
                                                 &nodeclaim_disruption };

enum fault {
    FAULT_NONE,
    FAULT_BEFORE,
    FAULT_AFTER,
    FAULT_DIE_BEFORE,
    FAULT_DIE_AFTER,
    FAULT_COUNT
};

struct life_test {
    struct paper_stage *p;
    enum fault fault;        /* of the call that is under way, if that is `at` */
    uint32_t at;             /* the call that goes wrong, from 1 */
    struct rng *maybe_rng;   /* draws the fault of each call instead */
    struct rng *maybe_order; /* of the controllers */
    uint32_t calls;          /* so far */
    uint32_t reads;          /* of these, without an effect that one could die after */
    bool running;            /* the control plane is: calls of the test itself do not count */
    bool dead;               /* nothing it does has an effect any more */
    bool cut_short;          /* who dies finds the claim deleted when it is back */
    uint32_t deaths;
};

static enum fault draw(struct rng *rng)
{
    return rng_below(rng, 12) ? FAULT_NONE : (enum fault)(1 + rng_below(rng, FAULT_COUNT - 1));
}

/* Each call is seen twice; it is counted when it begins. */
static enum err_kind begin(struct life_test *t)
{
    if (!t->running)
        return ERR_NONE;
    if (t->dead)
        return ERR_UNAVAILABLE;
    t->calls++;
    if (t->maybe_rng) {
        t->fault = draw(t->maybe_rng);
        t->at = t->calls;
    }
    if (t->calls != t->at || (t->fault != FAULT_BEFORE && t->fault != FAULT_DIE_BEFORE))
        return ERR_NONE;
    t->dead = t->fault == FAULT_DIE_BEFORE;
    return ERR_UNAVAILABLE;
}

static enum err_kind end(struct life_test *t)
{
    if (!t->running || t->dead || t->calls != t->at ||
        (t->fault != FAULT_AFTER && t->fault != FAULT_DIE_AFTER))
        return ERR_NONE;
    t->dead = t->fault == FAULT_DIE_AFTER;
    return ERR_UNAVAILABLE;
}

/* Watches are the informers' own business, and have tests of their own. */
static bool is_counted(const struct embedded_call *call)
{
    return call->verb != EMBEDDED_LIST && call->verb != EMBEDDED_WATCH;
}
static enum err_kind before_store(void *ctx, const struct embedded_call *call)
{
    struct life_test *t = ctx;
    t->reads += call->verb == EMBEDDED_GET && t->running && !t->dead;
    return is_counted(call) ? begin(ctx) : ERR_NONE;
}
static enum err_kind after_store(void *ctx, const struct embedded_call *call)
{
    return is_counted(call) ? end(ctx) : ERR_NONE;
}
static enum err_kind before_cloud(void *ctx, enum paper_call call KV_UNUSED)
{
    return begin(ctx);
}
static enum err_kind after_cloud(void *ctx, enum paper_call call KV_UNUSED)
{
    return end(ctx);
}

/* --- the world around it: a kubelet, a daemon that takes the startup taint away, a drain --- */

static void play_node(struct life_test *t, const char *name)
{
    AUTO_OBJECT object = get(t->p->store, &node_kind, name);
    const struct node *node = node_of(object);
    if (object->meta.deleted_us) {
        if (object->meta.finalizers.count)
            object_unref(
                merge(t->p->store, &node_kind, name, js("{'metadata':{'finalizers':null}}")));
        return;
    }
    if (!str_map_get(&object->meta.labels, STR(LABEL_REGISTERED)).p)
        return;
    if (!node_is_ready(node))
        paper_node_ready(t->p, name, true);
    if (node->spec.taints.count)
        object_unref(merge(t->p->store, &node_kind, name, js("{'spec':{'taints':null}}")));
}

static void play(struct life_test *t)
{
    const struct store *store = t->p->store;
    vec_each(&t->p->cloud.instances, struct paper_instance *, it) {
        const struct instance *i = &(*it)->instance;
        const char *claim = i->claim_name.p, *node = i->node_name.p;
        if (!(*it)->gone && !i->terminating && !is_there(store, &node_kind, node) &&
            !paper_is_ending(t->p, claim))
            paper_node_joins(t->p, claim);
        if (is_there(store, &node_kind, node))
            play_node(t, node);
    }
}

/* As a cloud controller does: the Node of a machine that is gone, and that nobody holds, goes. */
static void play_cloud_controller(struct life_test *t)
{
    vec_each(&t->p->cloud.instances, struct paper_instance *, it) {
        const char *node = (*it)->instance.node_name.p;
        if ((*it)->gone && is_there(t->p->store, &node_kind, node))
            remove_it(t->p->store, &node_kind, node);
    }
}

/* False: it has nothing to do. Who dies is started anew. */
static bool step(struct life_test *t)
{
    struct stage *s = t->p->s;
    t->running = true;
    bool busy = control_step(s->c, t->maybe_order);
    t->running = false;
    if (!t->dead)
        return busy;
    t->dead = false;
    t->deaths++;
    if (t->cut_short && is_there(t->p->store, &nodeclaim_kind, "a")) {
        play(t); /* the machine goes on without us */
        remove_it(t->p->store, &nodeclaim_kind, "a");
    }
    stage_restart(s);
    return true;
}

/* Let the time go by. */
static void run(struct life_test *t, int64_t seconds)
{
    struct stage *s = t->p->s;
    int64_t until = stage_now_ns(s) + seconds * SECOND_NS;
    for (uint32_t steps = 0; steps < SETTLE_STEPS_MAX; steps++) {
        if (step(t))
            continue;
        play(t);
        if (step(t))
            continue;
        if (stage_now_ns(s) >= until)
            return;
        int64_t due = control_next_due(s->c), late = embedded_event_due_ns(s->w->e);
        due = late < due ? late : due;
        due = due < until ? due : until;
        if (due > stage_now_ns(s))
            virtual_clock_advance(s->w->time, due - stage_now_ns(s));
    }
    bool at_rest = false;
    EXPECT_TRUE(at_rest);
}

static void expect_alive(struct life_test *t)
{
    struct paper_stage *p = t->p;
    EXPECT_Z(paper_condition(p, "a", "Ready"), "True Ready");
    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, "a");
    EXPECT_STR(nodeclaim_of(claim)->status.provider_id, "paper://0000");
    EXPECT_STR(nodeclaim_of(claim)->status.node_name, "paper-0");
    AUTO_OBJECT node = get(p->store, &node_kind, "paper-0");
    EXPECT_STR(str_map_get(&node->meta.labels, STR(LABEL_INITIALIZED)), "true");
    EXPECT_STR(str_map_get(&node->meta.labels, STR("karpenter.kwok.sh/kwoknodeclass")), "default");
    EXPECT_EQ(node->meta.owners.count, 1);
    EXPECT_EQ(node_of(node)->spec.taints.count, 0);
    EXPECT_EQ(paper_running(&p->cloud), 1);
    AUTO_OBJECT pool = get(p->store, &nodepool_kind, "web");
    const struct nodepool *np = nodepool_of(pool);
    EXPECT_EQ(
        condition_status_of(condition_find(np->status.conditions.items, np->status.conditions.count,
                                           CONDITION_NODE_REGISTRATION_HEALTHY)),
        CONDITION_TRUE);
}

static void expect_nothing_left(struct life_test *t)
{
    struct paper_stage *p = t->p;
    EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
    EXPECT_EQ(count_of(p->s, &node_kind), 0);
    EXPECT_EQ(paper_running(&p->cloud), 0);
    EXPECT_EQ(p->cloud.instances.count, 1);
}

static void start(struct life_test *t)
{
    struct paper_stage *p = t->p;
    p->cloud.polls = 1;
    p->cloud.before = before_cloud;
    p->cloud.after = after_cloud;
    p->cloud.ctx = t;
    embedded_set_faults(p->s->w->e, &(struct embedded_faults){
                                        .before = before_store, .after = after_store, .ctx = t });
    paper_claim(
        p, "a",
        "'startupTaints':[{'key':'cni','effect':'NoExecute'}],'terminationGracePeriod':'1h',");
    run(t, 240);
}

/* How many calls there were. */
static uint32_t live_once(enum fault fault, uint32_t at, uint32_t *deaths, uint32_t *reads)
{
    AUTO(paper_stage) p = paper_stage_new(cast, KV_COUNT_OF(cast));
    struct life_test t = { .p = p, .fault = fault, .at = at };
    start(&t);
    expect_alive(&t);
    remove_it(p->store, &nodeclaim_kind, "a");
    run(&t, 400);
    expect_nothing_left(&t);
    *deaths += t.deaths;
    *reads = t.reads;
    embedded_set_faults(p->s->w->e, NULL);
    return t.calls;
}

TEST(a_life_ends_the_same_whichever_call_goes_wrong_in_it)
{
    uint32_t deaths = 0, lives = 0, reads, ignored;
    uint32_t calls = live_once(FAULT_NONE, 0, &deaths, &reads);
    EXPECT_TRUE(calls > 15);
    EXPECT_EQ(deaths, 0);
    for (enum fault fault = FAULT_BEFORE; fault < FAULT_COUNT; fault++) {
        for (uint32_t at = 1; at <= calls; at++, lives++)
            live_once(fault, at, &deaths, &ignored);
    }
    EXPECT_EQ(deaths, 2 * calls - reads);
    printf("# %u lives, each of about %u calls\n", lives, calls);
}

static void die_young(enum fault fault, uint32_t at)
{
    AUTO(paper_stage) p = paper_stage_new(cast, KV_COUNT_OF(cast));
    struct life_test t = { .p = p, .fault = fault, .at = at, .cut_short = true };
    start(&t);
    run(&t, 400);
    play_cloud_controller(&t);
    if (t.deaths) { /* it came that far before the claim was at rest */
        EXPECT_FALSE(is_there(p->store, &nodeclaim_kind, "a"));
        EXPECT_EQ(count_of(p->s, &node_kind), 0);
        EXPECT_EQ(paper_running(&p->cloud), 0);
        EXPECT_TRUE(p->cloud.instances.count <= 1);
    }
    embedded_set_faults(p->s->w->e, NULL);
}

TEST(nothing_is_left_of_a_claim_that_is_deleted_while_nobody_looks)
{
    uint32_t deaths = 0, reads;
    uint32_t calls = live_once(FAULT_NONE, 0, &deaths, &reads);
    for (uint32_t at = 1; at <= calls; at++) {
        die_young(FAULT_DIE_BEFORE, at);
        die_young(FAULT_DIE_AFTER, at);
    }
}

/* --- at random --- */

#define RANDOM_CLAIMS 4
#define SEEDS 150

static int64_t late(void *ctx, const struct kind *kind, uint64_t version)
{
    const struct life_test *t = ctx;
    return t->maybe_rng ? (int64_t)(kv_mix64(version + (uint64_t)kind->plural[0]) % 3000) * 1000000
                        : 0;
}

static void live_wildly(uint64_t seed)
{
    static const char *const names[RANDOM_CLAIMS] = { "a", "b", "c", "d" };
    AUTO(paper_stage) p = paper_stage_new(cast, KV_COUNT_OF(cast));
    struct rng faults, order;
    rng_init(&faults, seed);
    rng_init(&order, seed + 1);
    struct life_test t = { .p = p, .maybe_rng = &faults, .maybe_order = &order };
    p->cloud.polls = 1;
    p->cloud.before = before_cloud;
    p->cloud.after = after_cloud;
    p->cloud.ctx = &t;
    embedded_set_faults(p->s->w->e, &(struct embedded_faults){ .before = before_store,
                                                               .after = after_store,
                                                               .event_delay_ns = late,
                                                               .ctx = &t });
    for (size_t i = 0; i < RANDOM_CLAIMS; i++)
        paper_claim(p, names[i], "'startupTaints':[{'key':'cni','effect':'NoExecute'}],");
    run(&t, 120);
    t.maybe_rng = NULL;
    t.at = 0;
    run(&t, 180);
    for (size_t i = 0; i < RANDOM_CLAIMS; i++)
        EXPECT_Z(paper_condition(p, names[i], "Ready"), "True Ready");
    EXPECT_EQ(p->cloud.instances.count, RANDOM_CLAIMS);
    EXPECT_EQ(paper_running(&p->cloud), RANDOM_CLAIMS);
    uint64_t version = embedded_version(p->s->w->e);
    control_resync(p->s->c);
    run(&t, 600);
    EXPECT_EQ(embedded_version(p->s->w->e), version); /* at rest nothing is written */

    t.maybe_rng = &faults;
    for (size_t i = 0; i < RANDOM_CLAIMS; i++)
        remove_it(p->store, &nodeclaim_kind, names[i]);
    run(&t, 60);
    t.maybe_rng = NULL;
    t.at = 0;
    run(&t, 300);
    EXPECT_EQ(count_of(p->s, &nodeclaim_kind), 0);
    EXPECT_EQ(count_of(p->s, &node_kind), 0);
    EXPECT_EQ(paper_running(&p->cloud), 0);
    EXPECT_EQ(p->cloud.instances.count, RANDOM_CLAIMS);
    embedded_set_faults(p->s->w->e, NULL);
}

TEST(lives_end_the_same_whatever_fails_at_random_however_late_events_are)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        printf("# seed %llu\n", (unsigned long long)seed);
        live_wildly(seed);
    }
}
