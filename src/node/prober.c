/* Every running container that has probes is watched: by pod, by id, with up to three probes.
 *
 * A probe is due first when its initial delay is over, counted from the start of the container, and
 * then a period after each attempt began. While a startup probe has not succeeded, the other two
 * rest; once it has, it rests. A verdict changes when as many attempts in a row as its threshold
 * agreed. When liveness or startup have failed, they rest as well: the container will be killed, and
 * its next instance is watched anew.
 *
 * Attempts belong to the thread alone. They name what they are about by id and number, and what has
 * gone meanwhile is not found: so pods come and go without waiting for what is in flight.
 */
#include "node/prober.h"

#include "base/rng.h"
#include "base/thread.h"
#include "base/vec.h"
#include "net/http.h"
#include "node/prober_attempt.h"

#include <poll.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define NS_PER_S ((int64_t)1000000000)
#define FOREIGN_CLOCK_MS 20 /* a clock that is not the system's may move while we poll */

enum probe_kind { LIVENESS, READINESS, STARTUP, PROBE_KINDS };

static const char *const kind_names[PROBE_KINDS] = { "Liveness", "Readiness", "Startup" };

struct probe_run {
    uint8_t verdict; /* enum probe_verdict: what the world is told */
    uint8_t last;    /* of the newest attempt, */
    int64_t row;     /* and of so many in a row before it */
    bool held;       /* failed for good */
    uint64_t flight; /* the number of the attempt that runs; 0: none */
    int64_t due_ns;
};

struct watched { /* an instance of a container */
    struct watched_pod *pod;
    const struct node_container *spec; /* in pod->spec */
    char *id;
    bool seen; /* by the update that runs */
    struct probe_run runs[PROBE_KINDS];
};

struct watched_pod {
    const struct node_pod *spec; /* one reference */
    char *ip;
    bool stopping; /* only readiness goes on */
    VEC(struct watched *) containers;
};

struct flight {
    uint64_t number;
    char *id; /* of the container */
    enum probe_kind kind;
    int64_t begun_ns;
    struct attempt *attempt;
};

struct prober {
    struct prober_options opts;
    char *host_ip;
    int64_t begun_ns;
    struct metric_family *maybe_total;

    pthread_mutex_t lock;   /* guards what follows; a leaf, but for starting attempts */
    struct str_table pods;  /* by uid: struct watched_pod */
    struct str_table by_id; /* struct watched, owned by their pods */
    struct rng rng;

    VEC(struct flight) flights; /* these are the thread's */
    VEC(struct pollfd) fds;
    uint64_t flight_number;
    struct http *maybe_tls; /* for HTTPS probes, once there is one */

    pthread_t thread;
    bool started;
    atomic_bool stopped;
    int wake_fd; /* -1: the system gave none */
};

static const struct probe *probe_of(const struct node_container *spec, enum probe_kind kind)
{
    switch (kind) {
    case LIVENESS:
        return &spec->liveness;
    case READINESS:
        return &spec->readiness;
    case STARTUP:
        return &spec->startup;
    case PROBE_KINDS:
        break;
    }
    KV_UNREACHABLE();
}

static bool has_probe(const struct node_container *spec, enum probe_kind kind)
{
    return probe_of(spec, kind)->handler.kind != HANDLER_NONE;
}

/* Before the first attempt has spoken. */
static uint8_t first_verdict(const struct node_container *spec, enum probe_kind kind)
{
    static const uint8_t first[PROBE_KINDS] = { PROBE_SUCCESS, PROBE_FAILURE, PROBE_UNKNOWN };
    return has_probe(spec, kind) ? first[kind] : PROBE_SUCCESS;
}

static void wake(void *ctx)
{
    struct prober *p = ctx;
    if (p->wake_fd >= 0)
        eventfd_write(p->wake_fd, 1);
}

/* --- what is watched; with the lock held --- */

static void watched_free(struct prober *p, struct watched *w)
{
    str_table_remove(&p->by_id, str_of(w->id));
    free(w->id);
    free(w);
}

static void pod_free(struct prober *p, struct watched_pod *pod)
{
    vec_each(&pod->containers, struct watched *, it)
        watched_free(p, *it);
    vec_done(&pod->containers);
    node_pod_unref(pod->spec);
    free(pod->ip);
    free(pod);
}

/* When the container was started, by our clock. The runtime tells it by the wall's, which may since
 * have jumped: not before the start of time, and not in the future. */
static int64_t started_mono_ns(struct prober *p, int64_t started_wall_ns)
{
    int64_t age_ns = clock_wall_us(p->opts.clock) * 1000 - started_wall_ns;
    return clock_mono_ns(p->opts.clock) - (age_ns > 0 ? age_ns : 0);
}

static void watch(struct prober *p, struct watched_pod *pod, const struct node_container *spec,
                  const struct runtime_container *container)
{
    struct watched *w = kv_calloc(1, sizeof *w);
    *w = (struct watched){ .pod = pod, .spec = spec, .id = str_dup(container->id), .seen = true };
    int64_t now = clock_mono_ns(p->opts.clock);
    int64_t started = started_mono_ns(p, container->started_ns);
    for (enum probe_kind kind = 0; kind < PROBE_KINDS; kind++) {
        const struct probe *probe = probe_of(spec, kind);
        struct probe_run *run = &w->runs[kind];
        run->verdict = first_verdict(spec, kind);
        run->due_ns = started + probe->initial_delay_s * NS_PER_S;
        if (run->due_ns < now)
            run->due_ns = now;
        /* A restart of the agent finds all containers at once: their probes are spread out. */
        int64_t period_ns = probe->period_s * NS_PER_S;
        if (now - p->begun_ns < period_ns)
            run->due_ns += (int64_t)rng_below(&p->rng, (uint64_t)period_ns);
    }
    str_table_put(&p->by_id, container->id, w);
    vec_push(&pod->containers, w);
}

static bool probed(const struct node_container *spec)
{
    return has_probe(spec, LIVENESS) || has_probe(spec, READINESS) || has_probe(spec, STARTUP);
}

/* A new instance is watched from now on; one that is known goes on, by what the spec says now. */
static bool follow(struct prober *p, struct watched_pod *pod, const struct node_container *spec,
                   const struct runtime_status *status)
{
    const struct runtime_container *container = runtime_container_find(status, spec->name);
    if (!probed(spec) || !container || container->state != RUNTIME_RUNNING)
        return false;
    struct watched *w = str_table_get(&p->by_id, container->id);
    if (!w) {
        watch(p, pod, spec, container);
        return true;
    }
    if (w->pod == pod) {
        w->spec = spec;
        w->seen = true;
    }
    return false;
}

static bool pod_update(struct prober *p, struct watched_pod *pod, const struct node_pod *spec,
                       const struct runtime_status *status)
{
    node_pod_ref(spec);
    node_pod_unref(pod->spec);
    pod->spec = spec;
    free(pod->ip);
    pod->ip = str_dup(!spec->host_network && status->ips.count ? status->ips.items[0]
                                                               : str_of(p->host_ip));
    vec_each(&pod->containers, struct watched *, it)
        (*it)->seen = false;
    bool news = false;
    for (uint32_t i = 0; i < spec->inits.count; i++)
        news |= follow(p, pod, &spec->inits.items[i], status);
    for (uint32_t i = 0; i < spec->containers.count; i++)
        news |= follow(p, pod, &spec->containers.items[i], status);
    size_t count = 0;
    vec_each(&pod->containers, struct watched *, it) {
        if ((*it)->seen)
            pod->containers.items[count++] = *it;
        else
            watched_free(p, *it);
    }
    pod->containers.count = count;
    return news;
}

static bool any_probed(const struct node_pod *spec)
{
    for (uint32_t i = 0; i < spec->inits.count; i++) {
        if (probed(&spec->inits.items[i]))
            return true;
    }
    for (uint32_t i = 0; i < spec->containers.count; i++) {
        if (probed(&spec->containers.items[i]))
            return true;
    }
    return false;
}

void prober_update(struct prober *p, const struct node_pod *spec,
                   const struct runtime_status *status)
{
    if (!any_probed(spec))
        return;
    pthread_mutex_lock(&p->lock);
    struct watched_pod *pod = str_table_get(&p->pods, spec->uid);
    if (!pod) {
        pod = kv_calloc(1, sizeof *pod);
        str_table_put(&p->pods, spec->uid, pod);
    }
    bool news = pod_update(p, pod, spec, status);
    pthread_mutex_unlock(&p->lock);
    if (news)
        wake(p);
}

void prober_stop_liveness(struct prober *p, struct str uid)
{
    pthread_mutex_lock(&p->lock);
    struct watched_pod *pod = str_table_get(&p->pods, uid);
    if (pod)
        pod->stopping = true;
    pthread_mutex_unlock(&p->lock);
}

void prober_remove(struct prober *p, struct str uid)
{
    pthread_mutex_lock(&p->lock);
    struct watched_pod *pod = str_table_remove(&p->pods, uid);
    if (pod)
        pod_free(p, pod);
    pthread_mutex_unlock(&p->lock);
    if (pod && p->maybe_total)
        metric_family_remove(p->maybe_total, "pod_uid", uid);
}

static struct container_probes verdicts(void *ctx, struct str container_id,
                                        const struct node_container *spec)
{
    struct prober *p = ctx;
    uint8_t now[PROBE_KINDS];
    pthread_mutex_lock(&p->lock);
    const struct watched *w = str_table_get(&p->by_id, container_id);
    for (enum probe_kind kind = 0; kind < PROBE_KINDS; kind++)
        now[kind] = w && has_probe(spec, kind) ? w->runs[kind].verdict : first_verdict(spec, kind);
    pthread_mutex_unlock(&p->lock);
    return (struct container_probes){ .liveness = now[LIVENESS],
                                      .readiness = now[READINESS],
                                      .startup = now[STARTUP] };
}

struct probe_source prober_source(struct prober *p)
{
    return (struct probe_source){ .get = verdicts, .ctx = p };
}

/* --- attempts --- */

static bool may_run(const struct watched *w, enum probe_kind kind)
{
    const struct probe_run *run = &w->runs[kind];
    if (!has_probe(w->spec, kind) || run->held || run->flight)
        return false;
    if (w->pod->stopping && kind != READINESS)
        return false;
    bool up = w->runs[STARTUP].verdict == PROBE_SUCCESS || !has_probe(w->spec, STARTUP);
    return kind == STARTUP ? !up : up;
}

static void launch(struct prober *p, struct watched *w, enum probe_kind kind, int64_t now)
{
    const struct probe *probe = probe_of(w->spec, kind);
    struct attempt_options options = {
        .cri = p->opts.cri,
        .clock = p->opts.clock,
        .handler = &probe->handler,
        .container = w->spec,
        .container_id = str_of(w->id),
        .ip = str_of(w->pod->ip),
        .timeout_ns = probe->timeout_s * NS_PER_S,
        .tls = &p->maybe_tls,
        .wake = wake,
        .ctx = p,
    };
    struct flight flight = { .number = ++p->flight_number,
                             .id = str_dup(str_of(w->id)),
                             .kind = kind,
                             .begun_ns = now,
                             .attempt = attempt_start(options) };
    w->runs[kind].flight = flight.number;
    vec_push(&p->flights, flight);
}

/* Start what is due; when is the next? */
static int64_t launch_due(struct prober *p)
{
    int64_t now = clock_mono_ns(p->opts.clock), next = INT64_MAX;
    pthread_mutex_lock(&p->lock);
    str_table_each(&p->pods, slot) {
        struct watched_pod *pod = slot->value;
        vec_each(&pod->containers, struct watched *, it) {
            for (enum probe_kind kind = 0; kind < PROBE_KINDS; kind++) {
                if (!may_run(*it, kind))
                    continue;
                int64_t due = (*it)->runs[kind].due_ns;
                if (due <= now)
                    launch(p, *it, kind, now);
                else if (due < next)
                    next = due;
            }
        }
    }
    pthread_mutex_unlock(&p->lock);
    return next;
}

static void count(struct prober *p, const struct watched *w, enum probe_kind kind,
                  enum probe_verdict verdict)
{
    static const char *const results[] = {
        [PROBE_UNKNOWN] = "unknown", [PROBE_SUCCESS] = "successful", [PROBE_FAILURE] = "failed"
    };
    if (!p->maybe_total)
        return;
    const struct node_pod *pod = w->pod->spec;
    AUTO(metric) metric =
        metric_get(p->maybe_total,
                   (const struct str[]){ str_of(kind_names[kind]), str_of(results[verdict]),
                                         w->spec->name, pod->name, pod->namespace_, pod->uid });
    metric_inc(metric);
}

/* Take in what an attempt says. True: the verdict changed, and somebody should look. */
static bool judge(struct watched *w, enum probe_kind kind, enum probe_verdict verdict)
{
    const struct probe *probe = probe_of(w->spec, kind);
    struct probe_run *run = &w->runs[kind];
    if (verdict == PROBE_UNKNOWN)
        return false;
    run->row = run->last == verdict ? run->row + 1 : 1;
    run->last = (uint8_t)verdict;
    bool failure = verdict == PROBE_FAILURE;
    if (run->row < (failure ? probe->failure_threshold : probe->success_threshold))
        return false;
    run->held = failure && kind != READINESS;
    bool changed = run->verdict != verdict;
    run->verdict = (uint8_t)verdict;
    return changed;
}

static void tell(struct prober *p, const struct node_pod *pod, const struct node_container *spec,
                 enum probe_kind kind, const struct attempt *attempt)
{
    if (attempt_verdict(attempt) == PROBE_SUCCESS)
        return;
    log_warn(p->opts.log, "probe failed", LOG_Z("probe", kind_names[kind]),
             LOG_STR("namespace", pod->namespace_), LOG_STR("pod", pod->name),
             LOG_STR("container", spec->name),
             LOG_BOOL("tried", attempt_verdict(attempt) == PROBE_FAILURE),
             LOG_ERR(attempt_error(attempt)));
}

/* The probe that the attempt is of, if it is still wanted: the instance may have gone, the spec have
 * changed, the pod be stopping. */
static struct watched *landing_place(struct prober *p, const struct flight *flight)
{
    struct watched *w = str_table_get(&p->by_id, str_of(flight->id));
    struct probe_run *run = w ? &w->runs[flight->kind] : NULL;
    if (!run || run->flight != flight->number)
        return NULL;
    run->flight = 0;
    run->due_ns = flight->begun_ns + probe_of(w->spec, flight->kind)->period_s * NS_PER_S;
    bool wanted =
        has_probe(w->spec, flight->kind) && (flight->kind == READINESS || !w->pod->stopping);
    return wanted ? w : NULL;
}

/* The attempt has ended. */
static void land(struct prober *p, const struct flight *flight)
{
    enum probe_verdict verdict = attempt_verdict(flight->attempt);
    AUTO_NODE_POD pod = NULL;
    const struct node_container *spec = NULL;
    bool changed = false;
    pthread_mutex_lock(&p->lock);
    struct watched *w = landing_place(p, flight);
    if (w) {
        pod = node_pod_ref(w->pod->spec);
        spec = w->spec;
        changed = judge(w, flight->kind, verdict);
        count(p, w, flight->kind, verdict); /* under the lock, so that prober_remove comes after */
    }
    pthread_mutex_unlock(&p->lock);
    if (!pod)
        return;
    tell(p, pod, spec, flight->kind, flight->attempt);
    if (changed && p->opts.changed)
        p->opts.changed(p->opts.ctx, pod->uid);
}

static void flight_done(struct flight *flight)
{
    attempt_free(flight->attempt);
    free(flight->id);
}

static void step_flights(struct prober *p)
{
    size_t count_left = 0;
    for (size_t i = 0; i < p->flights.count; i++) {
        struct flight *flight = &p->flights.items[i];
        if (attempt_step(flight->attempt)) {
            land(p, flight);
            flight_done(flight);
        } else {
            p->flights.items[count_left++] = *flight;
        }
    }
    p->flights.count = count_left;
}

/* --- waiting --- */

/* For poll: until `until_ns` (INT64_MAX: no limit), rounded up, and at most `most_ms` if not -1. */
static int wait_ms(const struct clock *clock, int64_t until_ns, int most_ms)
{
    if (clock != clock_real() && (most_ms < 0 || most_ms > FOREIGN_CLOCK_MS))
        most_ms = FOREIGN_CLOCK_MS;
    if (until_ns == INT64_MAX)
        return most_ms;
    int64_t left_ns = until_ns - clock_mono_ns(clock);
    int64_t left_ms = left_ns <= 0 ? 0 : (left_ns + 999999) / 1000000;
    int64_t limit_ms = most_ms < 0 ? 3600 * 1000 : most_ms;
    return (int)(left_ms < limit_ms ? left_ms : limit_ms);
}

void prober_step(struct prober *p, int most_ms)
{
    step_flights(p);
    int64_t next = launch_due(p);
    vec_clear(&p->fds);
    vec_push(&p->fds, (struct pollfd){ .fd = p->wake_fd, .events = POLLIN });
    vec_each(&p->flights, struct flight, flight) {
        int64_t until = attempt_until_ns(flight->attempt);
        next = until < next ? until : next;
        vec_push(&p->fds, attempt_poll(flight->attempt));
    }
    poll(p->fds.items, p->fds.count, wait_ms(p->opts.clock, next, most_ms));
    eventfd_t rings;
    if (p->fds.items[0].revents)
        eventfd_read(p->wake_fd, &rings);
}

static void *prober_main(void *arg)
{
    struct prober *p = arg;
    while (!atomic_load(&p->stopped))
        prober_step(p, -1);
    return NULL;
}

/* --- the prober --- */

struct prober *prober_new(struct prober_options options)
{
    static const char *const labels[] = { "probe_type", "result",  "container", "pod",
                                          "namespace",  "pod_uid", NULL };
    struct prober *p = kv_calloc(1, sizeof *p);
    p->opts = options;
    p->host_ip = str_dup(options.host_ip);
    p->opts.host_ip = str_of(p->host_ip);
    p->begun_ns = clock_mono_ns(options.clock);
    p->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    rng_init(&p->rng, options.seed);
    pthread_mutex_init(&p->lock, NULL);
    if (options.metrics)
        p->maybe_total = metrics_family(
            options.metrics,
            &(struct metric_desc){ .name = "prober_probe_total",
                                   .help = "Attempts of liveness, readiness and startup probes, by "
                                           "result.",
                                   .type = METRIC_COUNTER,
                                   .labels = labels });
    return p;
}

int prober_start(struct prober *p, struct err *err)
{
    if (p->wake_fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "prober: the system gives no eventfd");
    if (thread_start(&p->thread, "prober", prober_main, p, err) < 0)
        return -1;
    p->started = true;
    return 0;
}

void prober_stop(struct prober *p)
{
    if (!p || !p->started)
        return;
    atomic_store(&p->stopped, true);
    wake(p);
    pthread_join(p->thread, NULL);
    p->started = false;
}

void prober_free(struct prober *p)
{
    if (!p)
        return;
    prober_stop(p);
    vec_each(&p->flights, struct flight, flight)
        flight_done(flight);
    http_free(p->maybe_tls);
    vec_done(&p->flights);
    vec_done(&p->fds);
    str_table_each(&p->pods, slot)
        pod_free(p, slot->value);
    str_table_done(&p->pods);
    str_table_done(&p->by_id);
    pthread_mutex_destroy(&p->lock);
    if (p->wake_fd >= 0)
        close(p->wake_fd);
    free(p->host_ip);
    free(p);
}

/* --- hooks --- */

#define HOOK_LOOK_MS 100 /* how late a cancel may be noticed */

static void ring(void *ctx)
{
    eventfd_write(*(const int *)ctx, 1);
}

int handler_run(struct cri *cri, const struct clock *clock, const struct handler *handler,
                const struct node_container *container, struct str container_id, struct str pod_ip,
                int64_t timeout_ns, struct cri_cancel *maybe_cancel, struct err *err)
{
    int bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (bell < 0)
        return err_set(err, ERR_UNAVAILABLE, "the system gives no eventfd");
    struct http *tls = NULL; /* hooks are rare: none is kept */
    struct attempt *attempt = attempt_start((struct attempt_options){
        .cri = cri,
        .clock = clock,
        .handler = handler,
        .container = container,
        .container_id = container_id,
        .ip = pod_ip,
        .timeout_ns = timeout_ns,
        .any_answer = true,
        .tls = &tls,
        .wake = ring,
        .ctx = &bell,
    });
    bool cancelled = false;
    while (!(cancelled = maybe_cancel && cri_cancelled(maybe_cancel)) && !attempt_step(attempt)) {
        struct pollfd fds[] = { { .fd = bell, .events = POLLIN }, attempt_poll(attempt) };
        int ms = wait_ms(clock, attempt_until_ns(attempt), HOOK_LOOK_MS);
        poll(fds, 2, ms < HOOK_LOOK_MS ? ms : HOOK_LOOK_MS);
        eventfd_t rings;
        if (fds[0].revents)
            eventfd_read(bell, &rings);
    }
    int status = 0;
    if (cancelled)
        status = err_set(err, ERR_CANCELLED, "given up");
    else if (attempt_verdict(attempt) != PROBE_SUCCESS)
        status = err_set(err, attempt_error(attempt)->kind, "%s", attempt_error(attempt)->text);
    attempt_free(attempt); /* nobody rings after this */
    http_free(tls);
    close(bell);
    return status;
}
