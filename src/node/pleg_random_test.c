/* Random histories of a runtime, seen through random trouble. What must hold:
 *
 *  - at all times, for a reader: an entry without an error is not older than the global time that
 *    was read before it: what it says of each container was so at that time or later;
 *  - of each id the events come in order: started at most once, then died, then removed;
 *  - when the trouble is over, one relist makes the cache what the runtime is, and the events of
 *    each id that exists end with its state, and of each that was told of and is gone with its
 *    removal.
 */
#include "node/pleg_testing.h"

#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"

#include <inttypes.h>
#include <pthread.h>

#define PODS_MAX 12
#define ITEMS_MAX 2000

/* --- the world: what was done to the runtime, and when --- */

struct thing {
    const char *id;
    const char *sandbox_id; /* NULL: it is a sandbox */
    char uid[16];
    bool exists;
    uint8_t state; /* enum runtime_state */
    /* Monotonic times just after it left each state, for the reader; INT64_MAX: it has not. */
    _Atomic int64_t left_ns[4], removed_ns;
    enum { TOLD_NOTHING, TOLD_STARTED, TOLD_DIED, TOLD_REMOVED } told;
};

struct world {
    struct rig *r;
    struct rng rng;
    struct thing things[ITEMS_MAX];
    _Atomic uint32_t thing_count;
    uint32_t attempt;
    atomic_bool over;
    _Atomic uint32_t read_count, stale_count;
};

static struct thing *thing_add(struct world *w, const char *id, const char *sandbox_id,
                               const char *uid, uint8_t state)
{
    uint32_t i = atomic_load(&w->thing_count);
    struct thing *t = &w->things[i];
    *t = (struct thing){ .id = id, .sandbox_id = sandbox_id, .exists = true, .state = state };
    snprintf(t->uid, sizeof t->uid, "%s", uid);
    for (int s = 0; s < 4; s++)
        atomic_init(&t->left_ns[s], INT64_MAX);
    atomic_init(&t->removed_ns, INT64_MAX);
    atomic_store(&w->thing_count, i + 1);
    return t;
}

static void thing_becomes(struct world *w, struct thing *t, uint8_t state)
{
    atomic_store(&t->left_ns[t->state], clock_mono_ns(w->r->clock));
    t->state = state;
}

static void thing_goes(struct world *w, struct thing *t)
{
    t->exists = false;
    atomic_store(&t->removed_ns, clock_mono_ns(w->r->clock));
}

/* A random one that exists, or NULL. */
static struct thing *any_thing(struct world *w, bool sandbox)
{
    uint32_t count = atomic_load(&w->thing_count),
             from = count ? (uint32_t)rng_below(&w->rng, count) : 0;
    for (uint32_t i = 0; i < count; i++) {
        struct thing *t = &w->things[(from + i) % count];
        if (t->exists && !t->sandbox_id == sandbox)
            return t;
    }
    return NULL;
}

static void remove_thing(struct world *w, struct thing *t)
{
    fake_cri_remove(w->r->fake, t->id);
    for (uint32_t i = 0; i < w->thing_count; i++) {
        struct thing *other = &w->things[i];
        if (other == t || (other->exists && other->sandbox_id && same_z(other->sandbox_id, t->id)))
            thing_goes(w, other);
    }
}

static void act(struct world *w)
{
    struct fake_cri *fake = w->r->fake;
    struct thing *t;
    if (atomic_load(&w->thing_count) + 2 > ITEMS_MAX)
        return;
    switch (rng_below(&w->rng, 10)) {
    case 0: {
        char uid[16];
        snprintf(uid, sizeof uid, "uid-%d", (int)rng_below(&w->rng, PODS_MAX));
        const char *id = fake_cri_sandbox(fake, uid, uid, w->attempt++);
        thing_add(w, id, NULL, uid, RUNTIME_RUNNING);
        return;
    }
    case 1:
    case 2:
    case 3:
        if (!(t = any_thing(w, true)) || t->state != RUNTIME_RUNNING)
            return;
        thing_add(w, fake_cri_container(fake, t->id, "c", w->attempt++), t->id, t->uid,
                  RUNTIME_CREATED);
        return;
    case 4:
    case 5:
        if (!(t = any_thing(w, false)) || t->state != RUNTIME_CREATED)
            return;
        fake_cri_start(fake, t->id);
        thing_becomes(w, t, RUNTIME_RUNNING);
        return;
    case 6:
    case 7:
        if (!(t = any_thing(w, false)) || t->state != RUNTIME_RUNNING)
            return;
        fake_cri_exit(fake, t->id, (int32_t)rng_below(&w->rng, 3));
        thing_becomes(w, t, RUNTIME_EXITED);
        return;
    case 8:
        if ((t = any_thing(w, false)) && t->state != RUNTIME_RUNNING)
            remove_thing(w, t);
        return;
    case 9:
        if (!(t = any_thing(w, true)) || rng_below(&w->rng, 3))
            return;
        if (rng_below(&w->rng, 2))
            remove_thing(w, t);
        return;
    }
}

/* --- trouble --- */

static const enum cri_method read_methods[] = { CRI_LIST_POD_SANDBOX, CRI_LIST_CONTAINERS,
                                                CRI_POD_SANDBOX_STATUS, CRI_CONTAINER_STATUS };

static void trouble(struct world *w)
{
    struct fake_cri *fake = w->r->fake;
    struct fake_fault fault = { .method = read_methods[rng_below(&w->rng, 4)],
                                .times = 1 + (uint32_t)rng_below(&w->rng, 3) };
    switch (rng_below(&w->rng, 12)) {
    case 0:
    case 1:
        fault.status = rng_below(&w->rng, 2) ? GRPC_UNKNOWN : GRPC_UNAVAILABLE;
        break;
    case 2:
    case 3:
        fault.delay_ns = (int64_t)rng_below(&w->rng, 30) * MS;
        break;
    case 4:
        fault.delay_ns = (int64_t)rng_below(&w->rng, 30) * MS;
        fault.after = true; /* an old answer */
        break;
    case 5:
        fault.garbage = true;
        break;
    case 6:
        fault.method = rng_below(&w->rng, 2) ? CRI_CONTAINER_STATUS : CRI_POD_SANDBOX_STATUS;
        fault.hang = true;
        fault.after = rng_below(&w->rng, 2);
        break;
    case 7:
        fake_cri_drop_connections(fake);
        return;
    case 8:
        fake_cri_events_replay(fake);
        return;
    case 9:
        fake_cri_event_faults(
            fake, (struct fake_event_faults){ .seed = rng_next(&w->rng),
                                              .lost_percent = (uint8_t)rng_below(&w->rng, 60),
                                              .twice_percent = (uint8_t)rng_below(&w->rng, 40),
                                              .late_percent = (uint8_t)rng_below(&w->rng, 40) });
        return;
    case 10:
        fake_cri_events_end(fake, GRPC_UNAVAILABLE);
        return;
    case 11:
        fake_cri_heal(fake); /* what hangs goes on: late answers */
        return;
    }
    fake_cri_fault(fake, fault);
}

/* --- the reader --- */

static const struct thing *thing_of(struct world *w, struct str id)
{
    uint32_t count = atomic_load(&w->thing_count);
    for (uint32_t i = count; i-- > 0;) {
        if (str_eqz(id, w->things[i].id))
            return &w->things[i];
    }
    return NULL; /* the fake has it and we are about to write it down */
}

/* Was it in that state at time_ns or later? */
static bool still_so(const struct thing *t, uint8_t state, int64_t time_ns)
{
    return atomic_load(&t->left_ns[state]) >= time_ns && atomic_load(&t->removed_ns) >= time_ns;
}

static void check_entry(struct world *w, const struct runtime_status *status, int64_t time_ns)
{
    if (status->error_kind != ERR_NONE)
        return;
    for (uint32_t i = 0; i < status->containers.count; i++) {
        const struct runtime_container *c = &status->containers.items[i];
        const struct thing *t = thing_of(w, c->id);
        if (t && !still_so(t, c->state, time_ns))
            atomic_fetch_add(&w->stale_count, 1);
    }
}

static void *reader_main(void *arg)
{
    struct world *w = arg;
    while (!atomic_load(&w->over)) {
        struct pod_cache_all all = pod_cache_all(w->r->cache);
        for (uint32_t i = 0; i < all.count; i++)
            check_entry(w, all.items[i], all.time_ns);
        pod_cache_all_done(&all);
        atomic_fetch_add(&w->read_count, 1);
        nap();
    }
    return NULL;
}

/* --- what must be so at the end --- */

static void hear_all(struct world *w)
{
    struct pod_event event;
    uint64_t lost = 0;
    while (event_sub_next(w->r->sub, 0, &event, &lost)) {
        if (event.type == POD_EVENT_SYNC)
            continue;
        struct thing *t = (struct thing *)thing_of(w, str_of(event.id));
        EXPECT_TRUE(t != NULL);
        if (!t) /* for the compiler */
            return;
        EXPECT_Z(event.uid, t->uid);
        EXPECT_EQ(event.sandbox, !t->sandbox_id);
        switch (event.type) {
        case POD_EVENT_STARTED:
            EXPECT_EQ(t->told, TOLD_NOTHING);
            t->told = TOLD_STARTED;
            break;
        case POD_EVENT_DIED:
            EXPECT_TRUE(t->told == TOLD_NOTHING || t->told == TOLD_STARTED);
            t->told = TOLD_DIED;
            break;
        case POD_EVENT_REMOVED:
            EXPECT_EQ(t->told, TOLD_DIED);
            t->told = TOLD_REMOVED;
            break;
        case POD_EVENT_SYNC:
            break;
        }
    }
    EXPECT_EQ(lost, 0);
}

static uint32_t count_of(struct world *w, const char *uid, bool sandboxes)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < w->thing_count; i++) {
        const struct thing *t = &w->things[i];
        count += t->exists && same_z(t->uid, uid) && !t->sandbox_id == sandboxes;
    }
    return count;
}

static bool pod_is_true(struct world *w, const char *uid)
{
    AUTO_STATUS status = pod_cache_get(w->r->cache, str_of(uid));
    if (status->error_kind != ERR_NONE || status->sandboxes.count != count_of(w, uid, true) ||
        status->containers.count != count_of(w, uid, false))
        return false;
    for (uint32_t i = 0; i < status->containers.count; i++) {
        const struct runtime_container *c = &status->containers.items[i];
        const struct thing *t = thing_of(w, c->id);
        if (!t || !t->exists || t->state != c->state || !str_eqz(c->sandbox_id, t->sandbox_id))
            return false;
    }
    for (uint32_t i = 0; i < status->sandboxes.count; i++) {
        const struct thing *t = thing_of(w, status->sandboxes.items[i].id);
        if (!t || !t->exists || (t->state == RUNTIME_RUNNING) != status->sandboxes.items[i].ready)
            return false;
    }
    return true;
}

static bool cache_is_true(struct world *w)
{
    for (int i = 0; i < PODS_MAX; i++) {
        char uid[16];
        snprintf(uid, sizeof uid, "uid-%d", i);
        if (!pod_is_true(w, uid))
            return false;
    }
    return true;
}

static void expect_events_complete(struct world *w)
{
    for (uint32_t i = 0; i < w->thing_count; i++) {
        const struct thing *t = &w->things[i];
        if (!t->exists) { /* seen or not; if seen then to its end */
            EXPECT_TRUE(t->told == TOLD_NOTHING || t->told == TOLD_REMOVED);
        } else {
            EXPECT_EQ(t->told, t->state == RUNTIME_CREATED   ? TOLD_NOTHING
                               : t->state == RUNTIME_RUNNING ? TOLD_STARTED
                                                             : TOLD_DIED);
        }
    }
}

/* --- the histories --- */

/* Not while something is listed or inspected: however slow this machine is, nothing becomes late. */
static void pass_if_idle(struct rig *r)
{
    struct pleg_stats stats = pleg_stats(r->pleg);
    if (stats.relist_running_ns == 0 && stats.inspecting == 0)
        pass(r, 100 * MS);
}

static void run_history(uint64_t seed, uint32_t steps, struct rig_options options)
{
    printf("# seed %" PRIu64 "\n", seed); /* the runtime's history; threads have their own */
    AUTO(rig) r = rig_new(options);
    struct world *w = kv_calloc(1, sizeof *w);
    w->r = r;
    rng_init(&w->rng, seed);
    pthread_t reader;
    EXPECT_EQ(pthread_create(&reader, NULL, reader_main, w), 0);
    rig_start(r);

    for (uint32_t i = 0; i < steps; i++) {
        act(w);
        if (rng_below(&w->rng, 6) == 0)
            trouble(w);
        if (rng_below(&w->rng, 8) == 0) {
            char uid[16];
            snprintf(uid, sizeof uid, "uid-%d", (int)rng_below(&w->rng, PODS_MAX));
            if (rng_below(&w->rng, 3) == 0)
                pleg_request_inspection(r->pleg, str_of(uid));
            else
                pleg_request(r->pleg, str_of(uid));
        }
        pass(r, 1 + (int64_t)rng_below(&w->rng, 120) * MS);
        if (rng_below(&w->rng, 3) == 0)
            nap();
        hear_all(w);
    }
    fake_cri_event_faults(r->fake, (struct fake_event_faults){ 0 });
    fake_cri_heal(r->fake);
    UNTIL((pass(r, 100 * MS), cache_is_true(w)));
    uint64_t relists = pleg_stats(r->pleg).relist_count;
    UNTIL((pass_if_idle(r), pleg_stats(r->pleg).relist_count >= relists + 2));
    EXPECT_TRUE(cache_is_true(w)); /* and it stays so */
    pleg_stop(r->pleg);
    atomic_store(&w->over, true);
    pthread_join(reader, NULL);
    hear_all(w);
    expect_events_complete(w);
    EXPECT_TRUE(atomic_load(&w->read_count) > 0);
    EXPECT_EQ(atomic_load(&w->stale_count), 0);
    free(w);
}

TEST(with_relists_alone_the_cache_becomes_what_the_runtime_is_and_no_event_is_lost)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        run_history(seed, 400, (struct rig_options){ 0 });
}

TEST(with_hints_that_lie_it_is_the_same)
{
    for (uint64_t seed = 101; seed <= 106; seed++)
        run_history(seed, 400, (struct rig_options){ .hints = true });
}

TEST(with_a_runtime_that_keeps_events_for_later_it_is_the_same)
{
    for (uint64_t seed = 201; seed <= 203; seed++)
        run_history(seed, 400,
                    (struct rig_options){ .fake = { .keep_events = true, .equal_times = true },
                                          .hints = true });
}

TEST(a_huge_runtime_is_read_whole)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    fake_cri_flood(r->fake, 1000, 3);
    relist(r);
    EXPECT_EQ(pod_cache_stats(r->cache).entry_count, 1000);
    struct pod_cache_all all = pod_cache_all(r->cache);
    for (uint32_t i = 0; i < all.count; i++) {
        EXPECT_EQ(all.items[i]->error_kind, ERR_NONE);
        EXPECT_EQ(all.items[i]->containers.count, 3);
    }
    pod_cache_all_done(&all);
    uint64_t calls = fake_cri_calls_all(r->fake);
    relist(r);
    EXPECT_EQ(fake_cri_calls_all(r->fake) - calls, 2);
}
