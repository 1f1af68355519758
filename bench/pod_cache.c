/* The runtime pod cache, beside what a plain one does: one lock, one table, a deep copy for every reader,
 * and one condition that wakes everybody.
 *
 *     get      read a pod's status and let go of it, on so many threads at once, without and with a writer
 *              that sets statuses and moves the global time without a pause. `ns` is the processor's
 *              time for one; `growth` is `ns` over that of the smallest number of pods.
 *     release  so many threads wait, each for a pod of its own; one move of the global time releases
 *              them all. `us` for one waiter, from the call until the last has returned.
 *     set_one  so many wait, and pods are set one after the other. `us` for one: here one waiter wakes,
 *              there all do.
 *
 * Times are of the processor, so that what else runs on the machine matters less; only `mgets_per_s`,
 * over all threads, is by the wall clock. The best of several rounds counts. `ratio` is the baseline's
 * time over ours, in the same run. The hash is of every status, read through the cache.
 */
#include "base/map.h"
#include "base/rng.h"
#include "node/pod_cache.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

#define SEED 42
#define ROUNDS 3
#define THREADS 64
#define STACK_BYTES (64 << 10)

static void fail(const char *what)
{
    fprintf(stderr, "pod_cache: %s\n", what);
    exit(1);
}

static int64_t ns_of(clockid_t clock)
{
    struct timespec ts;
    clock_gettime(clock, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_real());
}

static long peak_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static pthread_t start_thread(void *(*run)(void *), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    if (pthread_create(&thread, &attr, run, arg) != 0)
        fail("the system gives no more threads");
    pthread_attr_destroy(&attr);
    return thread;
}

/* --- statuses: a sandbox and two containers --- */

static struct str some_id(struct arena *a, struct rng *rng)
{
    return arena_strf(a, "%016" PRIx64 "%016" PRIx64 "%016" PRIx64 "%016" PRIx64, rng_next(rng),
                      rng_next(rng), rng_next(rng), rng_next(rng));
}

/* Equal uids give equal statuses, but for the time. */
static const struct runtime_status *make_status(struct str uid, int64_t ts_ns)
{
    struct runtime_status *s = runtime_status_new(uid);
    struct arena *a = &s->arena;
    struct rng rng;
    rng_init(&rng, kv_hash(uid.p, uid.len));
    s->name = arena_strf(a, "web-%.8s", uid.p);
    s->namespace_ = arena_str(a, STR("default"));
    s->timestamp_ns = ts_ns;
    struct runtime_sandbox *sandbox = arena_array(a, struct runtime_sandbox, 1);
    sandbox->id = some_id(a, &rng);
    sandbox->ready = true;
    struct runtime_container *containers = arena_array(a, struct runtime_container, 2);
    for (int i = 0; i < 2; i++) {
        containers[i].id = some_id(a, &rng);
        containers[i].name = arena_strf(a, "main-%d", i);
        containers[i].sandbox_id = sandbox->id;
        containers[i].state = RUNTIME_RUNNING;
        containers[i].image = arena_str(a, STR("registry.example/team/web:1.2.3"));
        containers[i].image_id = arena_strf(a, "sha256:%.*s", STR_ARG(some_id(a, &rng)));
        containers[i].log_path = arena_strf(a, "/var/log/pods/default_web/main-%d/0.log", i);
    }
    s->sandboxes.items = sandbox;
    s->sandboxes.count = 1;
    s->containers.items = containers;
    s->containers.count = 2;
    return s;
}

static const struct runtime_status *copy_status(const struct runtime_status *from)
{
    struct runtime_status *s = runtime_status_new(from->uid);
    struct arena *a = &s->arena;
    s->name = arena_str(a, from->name);
    s->namespace_ = arena_str(a, from->namespace_);
    s->timestamp_ns = from->timestamp_ns;
    struct runtime_sandbox *sandboxes =
        arena_array(a, struct runtime_sandbox, from->sandboxes.count);
    for (uint32_t i = 0; i < from->sandboxes.count; i++) {
        sandboxes[i] = from->sandboxes.items[i];
        sandboxes[i].id = arena_str(a, sandboxes[i].id);
    }
    struct runtime_container *containers =
        arena_array(a, struct runtime_container, from->containers.count);
    for (uint32_t i = 0; i < from->containers.count; i++) {
        struct runtime_container *c = &containers[i];
        *c = from->containers.items[i];
        struct str *texts[] = { &c->id,    &c->name,     &c->sandbox_id,
                                &c->image, &c->image_id, &c->log_path };
        for (size_t t = 0; t < KV_COUNT_OF(texts); t++)
            *texts[t] = arena_str(a, *texts[t]);
    }
    s->sandboxes.items = sandboxes;
    s->sandboxes.count = from->sandboxes.count;
    s->containers.items = containers;
    s->containers.count = from->containers.count;
    return s;
}

/* --- the plain cache --- */

struct plain {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct str_table statuses;
    int64_t time_ns;
    uint64_t look_count; /* waiters that were woken and looked */
};

static const struct runtime_status *plain_get(struct plain *p, struct str uid)
{
    pthread_mutex_lock(&p->lock);
    const struct runtime_status *status = copy_status(str_table_get(&p->statuses, uid));
    pthread_mutex_unlock(&p->lock);
    return status;
}

static void plain_set(struct plain *p, const struct runtime_status *status)
{
    pthread_mutex_lock(&p->lock);
    const struct runtime_status *old = str_table_get(&p->statuses, status->uid);
    str_table_put(&p->statuses, status->uid, (void *)runtime_status_ref(status));
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
    runtime_status_unref(old);
}

static void plain_update_time(struct plain *p, int64_t ts_ns)
{
    pthread_mutex_lock(&p->lock);
    p->time_ns = ts_ns;
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static const struct runtime_status *plain_wait(struct plain *p, struct str uid, int64_t min_ns)
{
    pthread_mutex_lock(&p->lock);
    const struct runtime_status *status = str_table_get(&p->statuses, uid);
    p->look_count++;
    while (p->time_ns < min_ns && status->timestamp_ns < min_ns) {
        pthread_cond_wait(&p->changed, &p->lock);
        p->look_count++;
        status = str_table_get(&p->statuses, uid);
    }
    status = copy_status(status);
    pthread_mutex_unlock(&p->lock);
    return status;
}

/* --- both, behind one face --- */

struct world {
    char (*uids)[37];
    uint32_t pod_count;
    struct pod_cache *ours; /* one of the two is not NULL */
    struct plain *base;
    atomic_bool stop; /* the writer */
};

static struct str uid_of(const struct world *w, uint64_t i)
{
    return (struct str){ w->uids[i % w->pod_count], 36 };
}

static void world_set(struct world *w, uint64_t i, int64_t ts_ns)
{
    AUTO_STATUS status = make_status(uid_of(w, i), ts_ns);
    if (w->ours)
        pod_cache_set(w->ours, status);
    else
        plain_set(w->base, status);
}

static void world_update_time(struct world *w, int64_t ts_ns)
{
    if (w->ours)
        pod_cache_update_time(w->ours, ts_ns);
    else
        plain_update_time(w->base, ts_ns);
}

static void world_init(struct world *w, uint32_t pod_count, bool ours)
{
    struct rng rng;
    rng_init(&rng, SEED);
    *w = (struct world){ .pod_count = pod_count, .uids = kv_calloc(pod_count, sizeof *w->uids) };
    if (ours) {
        w->ours = pod_cache_new(clock_real());
    } else {
        w->base = kv_calloc(1, sizeof *w->base);
        pthread_mutex_init(&w->base->lock, NULL);
        pthread_cond_init(&w->base->changed, NULL);
    }
    for (uint32_t i = 0; i < pod_count; i++) {
        rng_uuid(&rng, w->uids[i]);
        world_set(w, i, 1);
    }
    world_update_time(w, 1);
}

static void world_done(struct world *w)
{
    pod_cache_free(w->ours);
    if (w->base) {
        str_table_each(&w->base->statuses, it)
            runtime_status_unref(it->value);
        str_table_done(&w->base->statuses);
        pthread_cond_destroy(&w->base->changed);
        pthread_mutex_destroy(&w->base->lock);
        free(w->base);
    }
    free(w->uids);
}

static uint64_t status_hash(const struct runtime_status *s)
{
    uint64_t hash = kv_hash(s->uid.p, s->uid.len);
    for (uint32_t i = 0; i < s->containers.count; i++)
        hash ^= kv_hash(s->containers.items[i].id.p, s->containers.items[i].id.len);
    return kv_mix64(hash);
}

static const struct runtime_status *world_get(struct world *w, struct str uid)
{
    return w->ours ? pod_cache_get(w->ours, uid) : plain_get(w->base, uid);
}

static uint64_t world_hash(struct world *w)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < w->pod_count; i++) {
        AUTO_STATUS status = world_get(w, uid_of(w, i));
        hash = kv_mix64(hash ^ status_hash(status));
    }
    return hash;
}

/* --- get --- */

struct getter {
    struct world *w;
    uint32_t number, count;
    int64_t cpu_ns;
    pthread_t thread;
};

static void *get_main(void *arg)
{
    struct getter *g = arg;
    struct world *w = g->w;
    uint64_t at = g->number;
    int64_t start_ns = ns_of(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t i = 0; i < g->count; i++) {
        at = at * 6364136223846793005u + 1442695040888963407u;
        runtime_status_unref(world_get(w, uid_of(w, at >> 33)));
    }
    g->cpu_ns = ns_of(CLOCK_THREAD_CPUTIME_ID) - start_ns;
    return NULL;
}

static void *write_main(void *arg)
{
    struct world *w = arg;
    for (uint64_t i = 0; !atomic_load(&w->stop); i++) {
        world_set(w, kv_mix64(i), (int64_t)i + 2);
        if (i % 16 == 0)
            world_update_time(w, (int64_t)i + 2);
    }
    return NULL;
}

struct get_result {
    double ns;    /* of the processor, for one */
    double per_s; /* by the wall clock, all threads */
    uint64_t hash;
};

static struct get_result run_get(uint32_t pod_count, uint32_t thread_count, bool writer,
                                 uint32_t get_count, bool ours)
{
    struct world w;
    struct getter getters[THREADS];
    struct get_result best = { .ns = 1e18 };
    world_init(&w, pod_count, ours);
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t write_thread = 0;
        int64_t cpu_ns = 0, start_ns = now_ns();
        atomic_store(&w.stop, false);
        if (writer)
            write_thread = start_thread(write_main, &w);
        for (uint32_t i = 0; i < thread_count; i++) {
            getters[i] = (struct getter){ .w = &w, .number = i, .count = get_count / thread_count };
            getters[i].thread = start_thread(get_main, &getters[i]);
        }
        for (uint32_t i = 0; i < thread_count; i++) {
            pthread_join(getters[i].thread, NULL);
            cpu_ns += getters[i].cpu_ns;
        }
        double done = (double)(get_count / thread_count * thread_count);
        double wall_s = (double)(now_ns() - start_ns) / 1e9;
        atomic_store(&w.stop, true);
        if (writer)
            pthread_join(write_thread, NULL);
        if ((double)cpu_ns / done < best.ns)
            best = (struct get_result){ .ns = (double)cpu_ns / done, .per_s = done / wall_s };
    }
    best.hash = world_hash(&w);
    world_done(&w);
    return best;
}

static void report_get(uint32_t get_count, uint32_t pods_max)
{
    static const uint32_t thread_counts[] = { 1, THREADS };
    for (size_t t = 0; t < KV_COUNT_OF(thread_counts); t++) {
        for (int writer = 0; writer < 2; writer++) {
            double smallest_ns = 0;
            for (uint32_t pods = 10; pods <= pods_max; pods *= 10) {
                struct get_result ours = run_get(pods, thread_counts[t], writer, get_count, true);
                struct get_result base =
                    run_get(pods, thread_counts[t], writer, get_count / 10, false);
                if (ours.hash != base.hash)
                    fail("the two caches differ");
                if (pods == 10)
                    smallest_ns = ours.ns;
                printf("get pods=%u threads=%u writer=%d ns=%.1f base_ns=%.0f ratio=%.1f "
                       "growth=%.2f mgets_per_s=%.1f peak_kb=%ld hash=%016" PRIx64 "\n",
                       pods, thread_counts[t], writer, ours.ns, base.ns, base.ns / ours.ns,
                       ours.ns / smallest_ns, ours.per_s / 1e6, peak_kb(), ours.hash);
                fflush(stdout);
            }
        }
    }
}

/* --- waiters --- */

struct waiter {
    struct world *w;
    uint32_t number;
    int64_t min_ns;
    uint64_t hash;
    atomic_uint *returned;
    pthread_mutex_t *gate; /* closed until all is measured: the end of a thread is none of it */
    pthread_t thread;
};

static void *waiter_main(void *arg)
{
    struct waiter *me = arg;
    struct str uid = uid_of(me->w, me->number);
    AUTO_STATUS status = NULL;
    struct err err;
    if (!me->w->ours)
        status = plain_wait(me->w->base, uid, me->min_ns);
    else if (pod_cache_get_newer_than(me->w->ours, uid, me->min_ns, INT64_MAX, NULL, &status,
                                      &err) < 0)
        fail(err.text);
    me->hash = status_hash(status);
    atomic_fetch_add(me->returned, 1);
    pthread_mutex_lock(me->gate);
    pthread_mutex_unlock(me->gate);
    return NULL;
}

static void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

/* How many are in their wait and have looked since the last change. */
static uint64_t settled_count(struct world *w)
{
    if (w->ours)
        return pod_cache_stats(w->ours).waiter_count;
    pthread_mutex_lock(&w->base->lock);
    uint64_t count = w->base->look_count;
    pthread_mutex_unlock(&w->base->lock);
    return count;
}

struct wait_result {
    double release_us, set_one_us;
    uint64_t hash;
};

static struct wait_result run_waiters(uint32_t waiter_count, uint32_t set_count, bool ours)
{
    struct world w;
    struct waiter *waiters = kv_calloc(waiter_count, sizeof *waiters);
    struct wait_result result = { 0 };
    atomic_uint returned = 0;
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    const int64_t ts_ns = 100;
    pthread_mutex_lock(&gate);
    world_init(&w, waiter_count, ours);
    for (uint32_t i = 0; i < waiter_count; i++) {
        waiters[i] = (struct waiter){
            .w = &w, .number = i, .min_ns = ts_ns, .returned = &returned, .gate = &gate
        };
        waiters[i].thread = start_thread(waiter_main, &waiters[i]);
    }
    while (settled_count(&w) < waiter_count)
        nap();

    uint64_t looks = waiter_count;
    int64_t start_ns = ns_of(CLOCK_PROCESS_CPUTIME_ID);
    for (uint32_t i = 0; i < set_count; i++) {
        world_set(&w, i, ts_ns);
        looks += waiter_count - i; /* of the plain one: everybody who is still there */
        while (atomic_load(&returned) <= i || (!ours && settled_count(&w) < looks))
            nap();
    }
    result.set_one_us =
        (double)(ns_of(CLOCK_PROCESS_CPUTIME_ID) - start_ns) / 1e3 / (double)set_count;

    start_ns = ns_of(CLOCK_PROCESS_CPUTIME_ID);
    world_update_time(&w, ts_ns);
    while (atomic_load(&returned) < waiter_count)
        nap();
    result.release_us = (double)(ns_of(CLOCK_PROCESS_CPUTIME_ID) - start_ns) / 1e3 /
                        (double)(waiter_count - set_count);
    pthread_mutex_unlock(&gate);
    for (uint32_t i = 0; i < waiter_count; i++) {
        pthread_join(waiters[i].thread, NULL);
        result.hash += waiters[i].hash;
    }
    world_done(&w);
    free(waiters);
    return result;
}

static struct wait_result best_waiters(uint32_t waiter_count, uint32_t set_count, bool ours)
{
    struct wait_result best = { .release_us = 1e18, .set_one_us = 1e18 };
    int rounds = waiter_count > 1000 ? 1 : ROUNDS; /* so many threads are hard on the machine */
    for (int round = 0; round < rounds; round++) {
        struct wait_result r = run_waiters(waiter_count, set_count, ours);
        KV_ASSERT(round == 0 || r.hash == best.hash);
        best.hash = r.hash;
        if (r.release_us < best.release_us)
            best.release_us = r.release_us;
        if (r.set_one_us < best.set_one_us)
            best.set_one_us = r.set_one_us;
    }
    return best;
}

static void report_waiters(uint32_t waiters_max)
{
    for (uint32_t count = 100; count <= waiters_max; count *= 10) {
        uint32_t set_count = 20;
        struct wait_result ours = best_waiters(count, set_count, true);
        struct wait_result base = best_waiters(count, set_count, false);
        if (ours.hash != base.hash)
            fail("the two caches differ");
        printf("release waiters=%u us=%.2f base_us=%.2f ratio=%.1f peak_kb=%ld hash=%016" PRIx64
               "\n",
               count, ours.release_us, base.release_us, base.release_us / ours.release_us,
               peak_kb(), ours.hash);
        printf("set_one waiters=%u us=%.1f base_us=%.1f ratio=%.1f\n", count, ours.set_one_us,
               base.set_one_us, base.set_one_us / ours.set_one_us);
        fflush(stdout);
    }
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    report_get(small ? 6400 : 3200000, small ? 1000 : 10000);
    report_waiters(small ? 100 : 10000);
    return 0;
}
