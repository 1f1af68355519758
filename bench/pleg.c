/* The PLEG and the agent on a real containerd, beside what they replace.
 *
 *     relist   nothing has changed. Beside it `poll`, which inspects everything each time, and `workers`,
 *              where every pod's worker lists and inspects its own pod. For each: calls to the runtime, the
 *              processor's time in this process (all threads) and in containerd, and by the wall.
 *              `ratio` is theirs over ours, of the processor's time of both sides together; `growth` is our
 *              time per pod over that of the size before.
 *     changed  one container was killed in each of k pods: a relist then inspects these and no others.
 *     latency  from the death of a container, by the runtime's `finished_at`, until a subscriber has the event:
 *              with `hints`, and with only the `period` of a second. Most of the first is the runtime's: it
 *              cleans up after the container before it tells anybody. So there are also both halves: until the
 *              `runtime` sends its own event, and from there to the event of the `pleg`.
 *     agent    `karve agent`, an observer, in a process of its own: the processor's time of a relist, and memory
 *              as the system counts it. At 0 pods it shows what the program and its libraries take.
 *
 * Times of relists are the best of several rounds. The hash is of all statuses, in the cache and
 * as polled. It needs root, and what tests/node/containerd.sh needs; otherwise it says so and ends.
 */
#include "bench/pleg_node.h"

#include "base/rng.h"
#include "node/pleg.h"

#include <inttypes.h>
#include <libgen.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SEED 42
#define ROUNDS 9
#define MS ((int64_t)1000000)
#define EVENT_WAIT_NS (60 * (int64_t)1000000000)

static void give_up(const char *what, const struct err *maybe_err)
{
    fprintf(stderr, "pleg: %s%s%s\n", what, maybe_err ? ": " : "",
            maybe_err ? maybe_err->text : "");
    exit(1);
}

static int64_t now_ns(void)
{
    return clock_mono_ns(clock_real());
}

/* --- a PLEG with what it needs --- */

struct world {
    struct bench_node *node;
    struct cri *cri;
    struct pod_cache *cache;
    struct event_hub *hub;
    struct event_sub *sub;
    struct pleg *pleg;
};

static struct cri *connect_to(const struct bench_node *node)
{
    struct cri *cri;
    struct err err = { 0 };
    if (cri_new((struct cri_options){ .endpoint = node->f->endpoint, .clock = clock_real() }, &cri,
                &err) < 0)
        give_up("connect", &err);
    return cri;
}

static void world_init(struct world *w, struct bench_node *node, bool hints, int64_t period_ns)
{
    *w = (struct world){ .node = node,
                         .cri = connect_to(node),
                         .cache = pod_cache_new(clock_real()),
                         .hub = event_hub_new(clock_real()) };
    w->sub = event_sub_new(w->hub, NULL, NULL);
    w->pleg = pleg_new((struct pleg_options){ .cri = w->cri,
                                              .cache = w->cache,
                                              .events = w->hub,
                                              .clock = clock_real(),
                                              .period_ns = period_ns,
                                              .no_hints = !hints });
}

static void world_done(struct world *w)
{
    pleg_stop(w->pleg);
    pleg_free(w->pleg);
    event_sub_free(w->sub);
    event_hub_free(w->hub);
    pod_cache_free(w->cache);
    cri_free(w->cri);
}

static uint64_t call_count(const struct world *w)
{
    uint64_t count = 0;
    for (int method = 0; method < CRI_METHOD_COUNT; method++)
        count += cri_call_count(w->cri, (enum cri_method)method);
    return count;
}

/* Ids and times differ from run to run; the rest does not. */
static uint64_t status_hash(const struct runtime_status *s)
{
    uint64_t hash = kv_hash(s->uid.p, s->uid.len);
    for (uint32_t i = 0; i < s->sandboxes.count; i++)
        hash = kv_mix64(hash ^ s->sandboxes.items[i].ready ^ s->sandboxes.items[i].attempt << 1);
    for (uint32_t i = 0; i < s->containers.count; i++) {
        const struct runtime_container *c = &s->containers.items[i];
        hash = kv_mix64(hash ^ kv_hash(c->name.p, c->name.len) ^ c->state);
        hash = kv_mix64(hash ^ (uint64_t)(uint32_t)c->exit_code);
    }
    return hash;
}

static uint64_t cache_hash(struct world *w)
{
    struct pod_cache_all all = pod_cache_all(w->cache);
    uint64_t hash = 0;
    for (uint32_t i = 0; i < all.count; i++)
        hash += status_hash(all.items[i]);
    pod_cache_all_done(&all);
    return hash;
}

/* --- a tick, in three ways; the sum of the hashes of what it saw --- */

static uint64_t tick_relist(struct world *w)
{
    struct err err = { 0 };
    if (pleg_relist(w->pleg, &err) < 0)
        give_up("relist", &err);
    return 0; /* the cache is read afterwards */
}

static void on_answer(void *ctx)
{
    sem_post(ctx);
}

static uint64_t tick_poll(struct world *w)
{
    AUTO_ARENA arena = { 0 };
    struct runtime_listing listing;
    struct err err = { 0 };
    uint64_t hash = 0;
    sem_t answered;
    sem_init(&answered, 0, 0);
    if (cri_list(w->cri, STR_NONE, &arena, &listing, &err) < 0)
        give_up("list", &err);
    for (uint32_t i = 0; i < listing.pod_count; i++) {
        AUTO_STATUS status = NULL;
        struct cri_inspection *inspection =
            cri_inspect_start(w->cri, &listing.pods[i], listing.timestamp_ns, on_answer, &answered);
        while (!cri_inspection_step(inspection))
            sem_wait(&answered);
        if (cri_inspection_take(inspection, &status, &err) < 0)
            give_up("inspect", &err);
        cri_inspection_free(inspection);
        hash += status_hash(status);
    }
    sem_destroy(&answered);
    return hash;
}

static uint64_t tick_workers(struct world *w)
{
    uint64_t hash = 0;
    for (uint32_t i = 0; i < w->node->pod_count; i++) {
        AUTO_STATUS status = NULL;
        struct err err = { 0 };
        if (cri_inspect_now(w->cri, str_of(w->node->pods[i].uid), &status, &err) < 0)
            give_up("inspect", &err);
        hash += status_hash(status);
    }
    return hash;
}

struct cost { /* of one tick, in microseconds */
    double calls, cpu, containerd, wall;
    uint64_t hash;
};

static struct cost measure(struct world *w, uint64_t (*tick)(struct world *w), uint32_t times)
{
    struct cost best = { .cpu = 1e18, .containerd = 1e18, .wall = 1e18 };
    tick(w); /* buffers grow, caches warm up */
    for (int round = 0; round < ROUNDS; round++) {
        struct cost cost = { 0 };
        uint64_t calls = call_count(w);
        int64_t cpu_ns = process_cpu_ns(getpid()), wall_ns = now_ns();
        int64_t containerd_ns = process_cpu_ns(w->node->containerd);
        for (uint32_t i = 0; i < times; i++)
            cost.hash = tick(w);
        double per = 1e3 * (double)times;
        cost.cpu = (double)(process_cpu_ns(getpid()) - cpu_ns) / per;
        cost.wall = (double)(now_ns() - wall_ns) / per;
        cost.containerd = (double)(process_cpu_ns(w->node->containerd) - containerd_ns) / per;
        cost.calls = (double)(call_count(w) - calls) / (double)times;
        best.calls = cost.calls;
        best.hash = cost.hash;
        best.cpu = cost.cpu < best.cpu ? cost.cpu : best.cpu;
        best.wall = cost.wall < best.wall ? cost.wall : best.wall;
        best.containerd = cost.containerd < best.containerd ? cost.containerd : best.containerd;
    }
    return best;
}

static void print_base(const char *name, uint32_t pods, struct cost base, struct cost ours)
{
    printf("relist_base %s pods=%u calls=%.0f cpu_us=%.0f containerd_us=%.0f wall_us=%.0f "
           "cpu_ratio=%.1f containerd_ratio=%.1f ratio=%.1f hash=%016" PRIx64 "\n",
           name, pods, base.calls, base.cpu, base.containerd, base.wall, base.cpu / ours.cpu,
           base.containerd / ours.containerd,
           (base.cpu + base.containerd) / (ours.cpu + ours.containerd), base.hash);
}

static long peak_kb(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss;
}

static void report_relist(struct bench_node *node, uint32_t relists)
{
    static double before_us;
    struct world w;
    struct process_memory empty = process_memory(getpid());
    world_init(&w, node, false, PLEG_PERIOD_NS);
    struct cost ours = measure(&w, tick_relist, relists);
    long grown_kb = process_memory(getpid()).anon - empty.anon;
    struct cost poll = measure(&w, tick_poll, relists / 10 + 1);
    struct cost workers = measure(&w, tick_workers, relists / 10 + 1);
    ours.hash = cache_hash(&w);
    if (ours.hash != poll.hash || ours.hash != workers.hash)
        give_up("what was polled is not what the cache has", NULL);
    if (ours.calls != 2)
        give_up("a relist in which nothing changed takes two calls", NULL);
    double per_pod_us = ours.cpu / node->pod_count;
    printf("relist pods=%u containers=%u calls=%.0f cpu_us=%.0f containerd_us=%.0f wall_us=%.0f "
           "growth=%.2f cache_kb=%" PRIu64 " grown_kb=%ld peak_kb=%ld hash=%016" PRIx64 "\n",
           node->pod_count, node->pod_count * POD_CONTAINERS, ours.calls, ours.cpu, ours.containerd,
           ours.wall, before_us > 0 ? per_pod_us / before_us : 1.0,
           pod_cache_stats(w.cache).bytes / 1024, grown_kb, peak_kb(), ours.hash);
    before_us = per_pod_us;
    print_base("poll", node->pod_count, poll, ours);
    print_base("workers", node->pod_count, workers, ours);
    fflush(stdout);
    world_done(&w);
}

/* --- k pods have changed --- */

/* A second after a container was killed its pod is inspected once more: that is over. */
static void settle(struct world *w)
{
    tick_relist(w);
    nanosleep(&(struct timespec){ .tv_sec = 1, .tv_nsec = 100 * MS }, NULL);
    tick_relist(w);
}

static void report_changed(struct world *w, uint32_t k)
{
    const struct bench_container **victims = kv_calloc(k, sizeof *victims);
    settle(w);
    for (uint32_t i = 0; i < k; i++)
        victims[i] = bench_node_kill(w->node);
    for (uint32_t i = 0; i < k; i++)
        bench_node_wait_exited(w->node, victims[i]);
    free(victims);
    uint64_t calls = call_count(w);
    int64_t cpu_ns = process_cpu_ns(getpid());
    tick_relist(w);
    double cpu_us = (double)(process_cpu_ns(getpid()) - cpu_ns) / 1e3;
    calls = call_count(w) - calls;
    uint64_t all = 2 + w->node->pod_count * (1 + POD_CONTAINERS);
    printf("changed k=%u calls=%" PRIu64 " poll_calls=%" PRIu64 " cpu_us=%.0f hash=%016" PRIx64
           "\n",
           k, calls, all, cpu_us, cache_hash(w));
    fflush(stdout);
    if (calls != 2 + (uint64_t)k * (1 + POD_CONTAINERS))
        give_up("a relist asks for more than the pods that changed", NULL);
}

/* --- latency --- */

struct delays {
    double *ms; /* owned until they are printed */
    uint32_t count;
};

static struct delays delays_new(uint32_t count)
{
    return (struct delays){ kv_calloc(count, sizeof(double)), count };
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void print_delays(const char *name, struct delays d)
{
    qsort(d.ms, d.count, sizeof *d.ms, by_value);
    printf("latency %s samples=%u p50_ms=%.2f p99_ms=%.2f\n", name, d.count,
           d.ms[(d.count - 1) / 2], d.ms[(d.count - 1) * 99 / 100]);
    fflush(stdout);
    free(d.ms);
}

static int64_t wall_ns(void)
{
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int64_t finished_ns(struct bench_node *node, const struct bench_container *container)
{
    bench_node_wait_exited(node, container);
    const Cri__ContainerStatus *status = fixture_inspect(node->f, str_of(container->id));
    int64_t at_ns = status->finished_at;
    arena_reset(&node->f->arena);
    return at_ns;
}

/* Deaths come at any moment of a period. */
static void wait_a_while(struct rng *rng, int64_t most_ns)
{
    int64_t ns = (int64_t)(rng_next(rng) % (uint64_t)most_ns);
    nanosleep(&(struct timespec){ .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 }, NULL);
}

static void world_start(struct world *w)
{
    struct err err = { 0 };
    if (pleg_start(w->pleg, &err) < 0)
        give_up("start", &err);
    while (pod_cache_time(w->cache) == 0)
        nanosleep(&(struct timespec){ .tv_nsec = 10 * MS }, NULL);
}

static int64_t wait_for_death(struct world *w, const char *id)
{
    struct pod_event event;
    uint64_t lost = 0;
    int64_t until_ns = now_ns() + EVENT_WAIT_NS;
    do {
        if (event_sub_next(w->sub, until_ns, &event, &lost) != 1)
            give_up("a death was not told", NULL);
    } while (event.type != POD_EVENT_DIED || strcmp(event.id, id) != 0);
    return wall_ns();
}

static void report_latency(struct bench_node *node, bool hints, uint32_t count)
{
    struct world w;
    struct rng rng;
    struct delays delays = delays_new(count);
    rng_init(&rng, SEED);
    world_init(&w, node, hints, PLEG_PERIOD_NS);
    world_start(&w);
    for (uint32_t i = 0; i < count; i++) {
        wait_a_while(&rng, hints ? 100 * MS : PLEG_PERIOD_NS);
        const struct bench_container *victim = bench_node_kill(node);
        int64_t told_ns = wait_for_death(&w, victim->id);
        delays.ms[i] = (double)(told_ns - finished_ns(node, victim)) / 1e6;
    }
    print_delays(hints ? "hints" : "period", delays);
    world_done(&w);
}

/* The runtime's own event of the death: its pod. */
static struct str next_stop(struct cri_pending *stream, const char *id, struct arena *arena)
{
    Cri__ContainerEventResponse *event;
    struct err err = { 0 };
    do {
        if (cri_take_next(stream, arena, &event, &err) != 1)
            give_up("the runtime's events ended", &err);
    } while (event->container_event_type != CRI__CONTAINER_EVENT_TYPE__EVENT_STOPPED ||
             strcmp(event->container_id, id) != 0);
    return str_of(event->pod_sandbox_status->metadata->uid);
}

/* Here the program listens itself, and hands the hint on: a second listener would take events away
 * from the first. */
static void report_halves(struct bench_node *node, uint32_t count)
{
    struct world w;
    struct rng rng;
    struct delays runtime = delays_new(count), pleg = delays_new(count);
    Cri__GetEventsRequest request = CRI__GET_EVENTS_REQUEST__INIT;
    rng_init(&rng, SEED);
    world_init(&w, node, false, 3600 * PLEG_PERIOD_NS);
    world_start(&w);
    struct cri_pending *stream =
        cri_start(w.cri, CRI_GET_CONTAINER_EVENTS, &request, 0, NULL, NULL);
    for (uint32_t i = 0; i < count; i++) {
        AUTO_ARENA arena = { 0 };
        wait_a_while(&rng, 100 * MS);
        const struct bench_container *victim = bench_node_kill(node);
        struct str uid = next_stop(stream, victim->id, &arena);
        int64_t stopped_ns = wall_ns();
        pleg_request(w.pleg, uid);
        pleg.ms[i] = (double)(wait_for_death(&w, victim->id) - stopped_ns) / 1e6;
        runtime.ms[i] = (double)(stopped_ns - finished_ns(node, victim)) / 1e6;
    }
    cri_pending_free(stream);
    print_delays("runtime", runtime);
    print_delays("pleg", pleg);
    world_done(&w);
}

/* --- the agent --- */

static uint64_t agent_relists(struct node_fixture *f)
{
    static const char name[] = "\nkubelet_pleg_relist_duration_seconds_count ";
    AUTO_BUF body = { 0 };
    if (fixture_agent_get(f, "/metrics", &body) != 200)
        give_up("the agent does not tell its metrics", NULL);
    const char *at = strstr(body.p, name);
    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

static void report_agent(struct bench_node *node, uint32_t relists)
{
    struct node_fixture *f = node->f;
    fixture_agent_start(
        f, (const char *[]){ "--relist-period", "100ms", "--log-level", "warn", NULL });
    WITHIN_LIMIT(f, agent_relists(f) >= 20);  /* two seconds: it has settled */
    uint64_t from = agent_relists(f) + 1, to; /* one more while what that request took is over */
    nanosleep(&(struct timespec){ .tv_nsec = 100 * MS }, NULL);
    int64_t cpu_ns = process_cpu_ns(f->agent);
    nanosleep(&(struct timespec){ .tv_sec = relists / 10, .tv_nsec = relists % 10 * 100 * MS },
              NULL);
    cpu_ns = process_cpu_ns(f->agent) - cpu_ns;
    struct process_memory memory = process_memory(f->agent);
    to = agent_relists(f);
    printf("agent pods=%u relists=%" PRIu64 " cpu_us=%.0f rss_kb=%ld anon_kb=%ld file_kb=%ld "
           "peak_kb=%ld\n",
           node->pod_count, to - from, (double)cpu_ns / 1e3 / (double)(to - from), memory.rss,
           memory.anon, memory.file, memory.peak);
    fflush(stdout);
    fixture_agent_stop(f);
}

/* The agent that was built beside this program, unless KARVE names another. */
static void find_agent(void)
{
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - sizeof "/karve");
    if (len <= 0)
        give_up("/proc/self/exe", NULL);
    path[len] = '\0';
    dirname(dirname(path));
    strcat(path, "/karve");
    setenv("KARVE", path, 0);
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    static const uint32_t sizes[] = { 10, 50, 100 };
    static const uint32_t changes[] = { 1, 5, 20 };
    size_t size_count = small ? 1 : KV_COUNT_OF(sizes);
    size_t change_count = small ? 2 : KV_COUNT_OF(changes);
    struct bench_node node;
    struct world w;

    find_agent();
    bench_node_init(&node, sizes[size_count - 1]);
    report_agent(&node, small ? 5 : 30);
    for (size_t i = 0; i < size_count; i++) {
        bench_node_grow(&node, sizes[i]);
        report_relist(&node, small ? 5 : 50);
    }
    report_agent(&node, small ? 5 : 30);
    world_init(&w, &node, false, PLEG_PERIOD_NS);
    for (size_t i = 0; i < change_count; i++)
        report_changed(&w, changes[i]);
    world_done(&w);
    report_halves(&node, small ? 3 : 40);
    report_latency(&node, true, small ? 6 : 70);
    report_latency(&node, false, small ? 3 : 20);
    bench_node_done(&node);
    return 0;
}
