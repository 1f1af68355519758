/* Several replicas, one Lease, and everything that goes wrong: requests and answers that take long, fail
 * or get lost, reads that are stale, processes that freeze, machines that are suspended, wall clocks
 * that are set, processes that die. At no moment may two of them act; when the trouble is over, one
 * does.
 *
 * Each replica runs on a thread of its own, but only ever one thread runs: who waits hands the baton
 * back, and the test hands it to the one whose moment comes first. So calls of several replicas are in
 * flight at once, in virtual time, and everything follows from the seed.
 *
 * A fence opens at an event and closes by itself. So to look after each event is to look always.
 */
#include "control/leader.h"

#include "api/kinds.h"
#include "base/thread.h"
#include "store/testing.h"

#include <stdlib.h>

#define REPLICAS_MAX 5
#define HISTORY 8
#define LEASE "lead"
#define HOME "kube-system"

/* client-go's jitter: a candidate looks again after at most so long. */
#define LOOK_NS ((int64_t)(2.2 * (double)LEADER_RETRY_NS))

struct trouble { /* probabilities of each call, or of each event */
    double slow, error, lost_reply, stale;
    double freeze, suspend, jump, kill, release;
    int64_t delay_max_ns;
};

struct sim;

struct replica {
    struct sim *sim;
    uint32_t number; /* of all that ever were; its name */
    struct leader *leader;
    const struct store *fenced;
    struct store port; /* its way to the Lease, with trouble */
    struct clock clock;
    int64_t suspended_ns; /* what its monotonic clock has not counted */
    int64_t wall_offset_us;
    pthread_t thread;
    int64_t wake_ns;
    bool turn, dead, ended, release;
};

struct sim {
    struct world *w;
    struct rng rng;
    struct trouble trouble;
    struct replica *replicas[REPLICAS_MAX];
    uint32_t replica_count, ever;
    const struct object *history[HISTORY]; /* of the Lease, newest first */
    pthread_mutex_t lock;                  /* of every `turn` */
    pthread_cond_t turned;
    uint64_t acts, handovers;
    int64_t led_ns; /* the last moment at which somebody could act */
    uint32_t last_actor;
    char broken[200]; /* the first violation */
};

static int64_t sim_now(const struct sim *sim)
{
    return clock_mono_ns(virtual_clock_port(sim->w->time));
}

static bool chance(struct sim *sim, double p)
{
    return rng_unit(&sim->rng) < p;
}

static int64_t up_to(struct sim *sim, int64_t ns)
{
    return (int64_t)(rng_unit(&sim->rng) * (double)ns);
}

/* --- the baton --- */

static void hand_over(struct sim *sim, struct replica *r, bool to_replica)
{
    pthread_mutex_lock(&sim->lock);
    r->turn = to_replica;
    pthread_cond_broadcast(&sim->turned);
    while (r->turn == to_replica)
        pthread_cond_wait(&sim->turned, &sim->lock);
    pthread_mutex_unlock(&sim->lock);
}

/* By a replica: go on at that moment. */
static void sleep_until(struct replica *r, int64_t at_ns)
{
    r->wake_ns = at_ns;
    hand_over(r->sim, r, false);
}

/* --- a replica's clock --- */

static int64_t replica_wall_us(void *ctx)
{
    const struct replica *r = ctx;
    return clock_wall_us(virtual_clock_port(r->sim->w->time)) + r->wall_offset_us;
}

static int64_t replica_mono_ns(void *ctx)
{
    const struct replica *r = ctx;
    return sim_now(r->sim) - r->suspended_ns;
}

/* --- a replica's way to the Lease --- */

static void delay(struct replica *r)
{
    struct sim *sim = r->sim;
    if (chance(sim, sim->trouble.slow))
        sleep_until(r, sim_now(sim) + up_to(sim, sim->trouble.delay_max_ns));
}

static int request(struct replica *r, struct err *err)
{
    delay(r);
    if (r->dead && chance(r->sim, 0.5)) /* else it had left already */
        return err_set(err, ERR_CANCELLED, "dead");
    if (chance(r->sim, r->sim->trouble.error))
        return err_set(err, chance(r->sim, 0.5) ? ERR_UNAVAILABLE : ERR_THROTTLED, "no server");
    return 0;
}

/* The writer may not hear of it. */
static int answer(struct replica *r, int rc, const struct object **out, struct err *err)
{
    bool lost = chance(r->sim, r->sim->trouble.lost_reply);
    delay(r);
    if (rc == 0 && (lost || r->dead)) {
        object_unref(take(out));
        return err_set(err, ERR_UNAVAILABLE, "the answer was lost");
    }
    return rc;
}

static void remember(struct sim *sim, const struct object *written)
{
    object_unref(sim->history[HISTORY - 1]);
    memmove(sim->history + 1, sim->history, (HISTORY - 1) * sizeof *sim->history);
    sim->history[0] = object_ref(written);
}

static int lease_get(void *ctx, struct object_ref ref, const struct object **out, struct err *err)
{
    struct replica *r = ctx;
    struct sim *sim = r->sim;
    if (request(r, err) < 0)
        return -1;
    const struct object *old = sim->history[rng_below(&sim->rng, HISTORY)];
    if (old && chance(sim, sim->trouble.stale)) {
        *out = object_ref(old);
        return answer(r, 0, out, err);
    }
    return answer(r, store_get(sim->w->store, ref, out, err), out, err);
}

static int lease_create(void *ctx, const struct kind *kind, struct str namespace_, struct str json,
                        const struct object **out, struct err *err)
{
    struct replica *r = ctx;
    if (request(r, err) < 0)
        return -1;
    int rc = store_create(r->sim->w->store, kind, namespace_, json, out, err);
    if (rc == 0)
        remember(r->sim, *out);
    return answer(r, rc, out, err);
}

static int lease_patch(void *ctx, struct object_ref ref, struct patch_options opts,
                       struct str patch, const struct object **out, struct err *err)
{
    struct replica *r = ctx;
    if (request(r, err) < 0)
        return -1;
    int rc = store_patch(r->sim->w->store, ref, opts, patch, out, err);
    if (rc == 0)
        remember(r->sim, *out);
    return answer(r, rc, out, err);
}

static const struct store_ops lease_ops = { .get = lease_get,
                                            .create = lease_create,
                                            .patch = lease_patch };

/* --- a replica's life --- */

/* Acts whenever it may: the Node "work" bears the name of who wrote last. */
static void act(struct replica *r)
{
    struct err err = { 0 };
    if (store_patch(r->fenced, at(&node_kind, "work"), (struct patch_options){ 0 },
                    js("{'metadata':{'labels':{'by':'r%u'}}}", r->number), NULL, &err) < 0)
        return;
    r->sim->acts++;
    r->sim->handovers += r->sim->last_actor != r->number;
    r->sim->last_actor = r->number;
}

static void *replica_main(void *arg)
{
    struct replica *r = arg;
    pthread_mutex_lock(&r->sim->lock);
    while (!r->turn)
        pthread_cond_wait(&r->sim->turned, &r->sim->lock);
    pthread_mutex_unlock(&r->sim->lock);
    while (!r->dead) {
        int64_t due_ns = leader_step(r->leader);
        if (due_ns == INT64_MAX)
            break; /* it has lost: the program ends */
        act(r);
        if (r->release && leader_holds(r->leader)) {
            leader_release(r->leader);
            break;
        }
        if (!r->dead)
            sleep_until(r, due_ns + r->suspended_ns);
    }
    pthread_mutex_lock(&r->sim->lock);
    r->ended = true;
    r->turn = false;
    pthread_cond_broadcast(&r->sim->turned);
    pthread_mutex_unlock(&r->sim->lock);
    return NULL;
}

static struct replica *replica_new(struct sim *sim)
{
    struct replica *r = kv_calloc(1, sizeof *r);
    struct err err = { 0 };
    char identity[16];
    r->sim = sim;
    r->number = ++sim->ever;
    r->port = (struct store){ &lease_ops, r };
    r->clock = (struct clock){ .wall_us = replica_wall_us, .mono_ns = replica_mono_ns, .ctx = r };
    r->wake_ns = sim_now(sim);
    r->wall_offset_us = up_to(sim, 7200 * SECOND_US) - 3600 * SECOND_US; /* nobody's agree */
    snprintf(identity, sizeof identity, "r%u", r->number);
    EXPECT_OK(leader_new((struct leader_options){ .store = &r->port,
                                                  .clock = &r->clock,
                                                  .namespace_ = HOME,
                                                  .name = LEASE,
                                                  .identity = identity,
                                                  .seed = rng_next(&sim->rng) },
                         &r->leader, &err),
              err);
    r->fenced = leader_store(r->leader, sim->w->store);
    EXPECT_OK(thread_start(&r->thread, "replica", replica_main, r, &err), err);
    return r;
}

static void replica_free(struct replica *r)
{
    r->dead = true;
    while (!r->ended)
        hand_over(r->sim, r, true);
    pthread_join(r->thread, NULL);
    leader_free(r->leader);
    free(r);
}

/* --- the world --- */

static struct sim *sim_new(uint64_t seed, uint32_t replica_count, struct trouble trouble)
{
    struct sim *sim = kv_calloc(1, sizeof *sim);
    sim->w = world_new((struct embedded_options){ .seed = seed, .history_max = 64 });
    sim->trouble = trouble;
    sim->replica_count = replica_count;
    rng_init(&sim->rng, seed);
    pthread_mutex_init(&sim->lock, NULL);
    pthread_cond_init(&sim->turned, NULL);
    make_node(sim->w->store, "work");
    for (uint32_t i = 0; i < replica_count; i++)
        sim->replicas[i] = replica_new(sim);
    return sim;
}

static void sim_free(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->replica_count; i++)
        replica_free(sim->replicas[i]);
    for (size_t i = 0; i < HISTORY; i++)
        object_unref(sim->history[i]);
    pthread_cond_destroy(&sim->turned);
    pthread_mutex_destroy(&sim->lock);
    world_free(sim->w);
    free(sim);
}
KV_AUTO_TYPE(sim, sim_free)

static struct replica *holder(struct sim *sim)
{
    struct replica *found = NULL;
    for (uint32_t i = 0; i < sim->replica_count; i++) {
        struct replica *r = sim->replicas[i];
        if (r->dead || !leader_holds(r->leader))
            continue;
        if (found && !sim->broken[0])
            snprintf(sim->broken, sizeof sim->broken, "r%u and r%u may both act at %lld ns",
                     found->number, r->number, (long long)sim_now(sim));
        found = r;
    }
    if (found)
        sim->led_ns = sim_now(sim);
    return found;
}

static void make_trouble(struct sim *sim)
{
    struct replica *r = sim->replicas[rng_below(&sim->rng, sim->replica_count)];
    const struct trouble *t = &sim->trouble;
    int64_t nap_ns = up_to(sim, 3 * LEADER_LEASE_NS);
    if (chance(sim, t->freeze) && r->wake_ns < sim_now(sim) + nap_ns)
        r->wake_ns = sim_now(sim) + nap_ns;
    if (chance(sim, t->suspend) && r->wake_ns < sim_now(sim) + nap_ns) {
        /* The moment it wakes up its monotonic clock says what it said: here, for the whole nap. */
        r->suspended_ns += nap_ns;
        r->wake_ns = sim_now(sim) + nap_ns;
    }
    if (chance(sim, t->jump))
        r->wall_offset_us += up_to(sim, 120 * SECOND_US) - 60 * SECOND_US;
    if (chance(sim, t->jump))
        virtual_clock_jump(sim->w->time, START_US + up_to(sim, 7200 * SECOND_US));
    r->release |= chance(sim, t->release);
    r->dead |= chance(sim, t->kill);
}

/* What restarts processes. */
static void replace_ended(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->replica_count; i++) {
        struct replica *r = sim->replicas[i];
        if (!r->ended && !r->dead)
            continue;
        replica_free(r);
        sim->replicas[i] = replica_new(sim);
        sim->replicas[i]->wake_ns = sim_now(sim) + up_to(sim, LEADER_LEASE_NS);
    }
}

/* The next event. False: it would be after `end_ns`. */
static bool sim_step(struct sim *sim, int64_t end_ns)
{
    struct replica *next = sim->replicas[0];
    for (uint32_t i = 1; i < sim->replica_count; i++) {
        if (sim->replicas[i]->wake_ns < next->wake_ns)
            next = sim->replicas[i];
    }
    if (next->wake_ns > end_ns)
        return false;
    if (next->wake_ns > sim_now(sim))
        virtual_clock_advance(sim->w->time, next->wake_ns - sim_now(sim));
    holder(sim);
    hand_over(sim, next, true);
    holder(sim);
    make_trouble(sim);
    replace_ended(sim);
    return true;
}

static void sim_run(struct sim *sim, int64_t ns)
{
    int64_t end = sim_now(sim) + ns;
    while (!sim->broken[0] && sim_step(sim, end))
        ;
    if (end > sim_now(sim))
        virtual_clock_advance(sim->w->time, end - sim_now(sim));
}

static uint64_t seed_count(uint64_t usual)
{
    const char *asked = getenv("KARVE_TEST_SEEDS");
    return asked ? strtoull(asked, NULL, 10) : TEST_ROUNDS(usual);
}

static void expect_whole(const struct sim *sim, uint64_t seed)
{
    if (sim->broken[0])
        print_message("# seed %llu: %s\n", (unsigned long long)seed, sim->broken);
    EXPECT_FALSE(sim->broken[0]);
}

/* --- tests --- */

/* Trouble of a random kind and size, two minutes of it, then none. */
static struct trouble some_trouble(struct rng *rng)
{
    static const double sizes[] = { 0, 0.02, 0.1, 0.4 };
#define SOME(most) (sizes[rng_below(rng, KV_COUNT_OF(sizes))] * (most))
    struct trouble t = { .slow = SOME(1.5),
                         .error = SOME(1),
                         .lost_reply = SOME(1),
                         .stale = SOME(1),
                         .freeze = SOME(0.3),
                         .suspend = SOME(0.3),
                         .jump = SOME(0.5),
                         .kill = SOME(0.2),
                         .release = SOME(0.2),
                         .delay_max_ns = (int64_t)(1 + rng_below(rng, 20)) * SECOND_NS };
    /* A machine that was suspended and whose clock was set back meanwhile cannot know. */
    if (t.suspend > 0)
        t.jump = 0;
    return t;
#undef SOME
}

TEST(at_no_moment_may_two_replicas_act_and_after_the_trouble_one_does)
{
    uint64_t count = seed_count(1500), acts = 0, handovers = 0;
    for (uint64_t seed = 1; seed <= count; seed++) {
        struct rng rng;
        rng_init(&rng, seed * 77);
        uint32_t replica_count = 2 + (uint32_t)rng_below(&rng, REPLICAS_MAX - 1);
        AUTO(sim) sim = sim_new(seed, replica_count, some_trouble(&rng));
        sim_run(sim, 120 * SECOND_NS);
        expect_whole(sim, seed);
        /* Naps of up to three leases were begun, and a start may be that late. */
        sim->trouble = (struct trouble){ 0 };
        sim_run(sim, 5 * LEADER_LEASE_NS + 2 * LOOK_NS);
        expect_whole(sim, seed);
        if (!holder(sim))
            print_message("# seed %llu: nobody leads\n", (unsigned long long)seed);
        EXPECT_TRUE(holder(sim) != NULL);
        acts += sim->acts;
        handovers += sim->handovers;
    }
    print_message("# %llu seeds: %llu writes, the lead changed hands %llu times\n",
                  (unsigned long long)count, (unsigned long long)acts,
                  (unsigned long long)handovers);
}

TEST(when_the_leader_dies_another_acts_within_a_lease_and_a_look)
{
    int64_t longest_ns = 0;
    uint64_t count = seed_count(300);
    for (uint64_t seed = 1; seed <= count; seed++) {
        AUTO(sim) sim = sim_new(seed, 3, (struct trouble){ 0 });
        sim_run(sim, 20 * SECOND_NS + up_to(sim, 20 * SECOND_NS));
        struct replica *first = holder(sim);
        EXPECT_TRUE(first != NULL);
        first->dead = true;
        int64_t died_ns = sim_now(sim);
        while (!holder(sim) && sim_step(sim, died_ns + LEADER_LEASE_NS + LOOK_NS))
            ;
        expect_whole(sim, seed);
        EXPECT_TRUE(holder(sim) != NULL);
        int64_t took_ns = sim_now(sim) - died_ns;
        longest_ns = took_ns > longest_ns ? took_ns : longest_ns;
    }
    print_message("# %llu seeds: within %.1f s\n", (unsigned long long)count,
                  (double)longest_ns / 1e9);
}

TEST(a_leader_that_ends_hands_over_at_the_next_look)
{
    uint64_t count = seed_count(100);
    for (uint64_t seed = 1; seed <= count; seed++) {
        AUTO(sim) sim = sim_new(seed, 3, (struct trouble){ 0 });
        sim_run(sim, 30 * SECOND_NS);
        struct replica *first = holder(sim);
        EXPECT_TRUE(first != NULL);
        first->release = true;
        uint32_t number = first->number;
        sim_run(sim, LEADER_RETRY_NS + LOOK_NS);
        expect_whole(sim, seed);
        EXPECT_TRUE(holder(sim) != NULL);
        EXPECT_TRUE(holder(sim)->number != number);
    }
}
