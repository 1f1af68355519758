/* karve controller --embedded: the control plane in real time, on an embedded store and a simulated
 * cloud.
 *
 *     control plane (its threads) --> store <-- physics (one thread): cloud, kubelets, workloads, binder
 *     main thread: signals; once a second the folder, the table or log, the state file
 */
#include "cmd/controller_inner.h"

#include "cmd/inputs.h"
#include "cmd/types_load.h"
#include "cmd/version.h"
#include "codec/duration.h"
#include "control/control_metrics.h"

#include <signal.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define STATE_EVERY_NS (10 * DURATION_SECOND)
#define COLLECT_EVERY_NS DURATION_MINUTE        /* objects that came after their owner had gone */
#define PHYSICS_EVERY_NS (DURATION_SECOND / 20) /* how late it may notice a change */
#define EVENTS_KEPT 200
#define WAITS_KEPT 10000

struct running {
    struct controller base;
    const char *maybe_state;
    struct span boot;
    struct object_pool *pool;
    struct embedded *embedded;
    struct catalogue *catalogue;
    pthread_mutex_t cloud_mutex; /* guards the cloud, and what steps with it */
    struct sim_cloud *cloud;
    struct locked_provider provider;
    struct kubelet *kubelet;
    struct workloads *workloads;
    struct binder *binder;
    struct control *control;
    struct applied_folder folder;
    struct record record;
    struct world_parts parts;
    struct live_view view;
    bool live;     /* a table instead of log lines */
    uint64_t told; /* events that were logged, or forgotten before */
    pthread_t physics;
    bool has_physics;
    atomic_bool stopping;
    int64_t start_ns, saved_ns, collected_ns;
    char trouble[ERR_TEXT_MAX]; /* of the folder, for the table */
};

/* "30s", or "20s..45s". */
static int read_boot_delay(struct running *r)
{
    struct str text = str_of(flag_value(r->base.inv, "boot-delay")), first = text, last = text;
    for (size_t i = 0; i + 1 < text.len; i++) {
        if (text.p[i] == '.' && text.p[i + 1] == '.') {
            first = str_sub(text, 0, i);
            last = str_sub(text, i + 2, text.len);
        }
    }
    if (duration_parse(first, &r->boot.min_ns, NULL) < 0 ||
        duration_parse(last, &r->boot.max_ns, NULL) < 0 || r->boot.min_ns < 0 ||
        r->boot.max_ns < r->boot.min_ns)
        return print_complaint("controller", EXIT_USAGE,
                               "--boot-delay %s: expected a duration such as 30s, or two: 20s..45s",
                               STR_SHOWN(text));
    return EXIT_DONE;
}

/* --- the world --- */

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void *run_physics(void *ctx)
{
    struct running *r = ctx;
    while (!atomic_load(&r->stopping)) {
        pthread_mutex_lock(&r->cloud_mutex);
        int64_t due_ns = sim_cloud_step(r->cloud);
        due_ns = sooner(due_ns, kubelet_step(r->kubelet));
        pthread_mutex_unlock(&r->cloud_mutex);
        due_ns = sooner(due_ns, workloads_step(r->workloads));
        due_ns = sooner(due_ns, binder_step(r->binder));
        int64_t wait_ns = sooner(due_ns - clock_mono_ns(r->base.clock), PHYSICS_EVERY_NS);
        if (wait_ns > 0)
            nanosleep(&(struct timespec){ .tv_nsec = wait_ns }, NULL);
    }
    return NULL;
}

static int open_catalogue(struct running *r)
{
    const char *region = flag_value(r->base.inv, "region");
    struct catalogue_options options = { .region = str_of(region),
                                         .maybe_path = flag_value(r->base.inv, "catalogue") };
    struct err err;
    if (catalogue_new(options, &r->catalogue, &err) == 0)
        return EXIT_DONE;
    if (err.kind != ERR_INVALID)
        return controller_complain(EXIT_ENVIRONMENT, &err);
    return controller_complain(catalogue_region_find(str_of(region)) ? EXIT_NO : EXIT_USAGE, &err);
}

static void open_world(struct running *r)
{
    const struct store *store = embedded_store(r->embedded);
    const uint64_t seed = (uint64_t)clock_wall_us(r->base.clock);
    r->cloud = sim_cloud_new(
        (struct sim_cloud_options){ .clock = r->base.clock,
                                    .store = store,
                                    .types = catalogue_provider(r->catalogue),
                                    .seed = seed,
                                    .boot = r->boot,
                                    .ready = { r->boot.min_ns / 5, r->boot.max_ns / 5 },
                                    .terminate = { 2 * DURATION_SECOND, 6 * DURATION_SECOND } });
    r->kubelet = kubelet_new(
        (struct kubelet_options){ .clock = r->base.clock,
                                  .store = store,
                                  .cloud = r->cloud,
                                  .seed = seed,
                                  .pod_start = { DURATION_SECOND, 3 * DURATION_SECOND },
                                  .pod_stop = { DURATION_SECOND, 3 * DURATION_SECOND },
                                  .job_run = { DURATION_MINUTE, 3 * DURATION_MINUTE },
                                  .startup_taints = { 2 * DURATION_SECOND, 5 * DURATION_SECOND } });
    r->workloads = workloads_new(store, r->base.clock, seed);
    r->binder =
        binder_new((struct binder_options){ .clock = r->base.clock, .store = store, .seed = seed });
    locked_provider_init(&r->provider, sim_cloud_provider(r->cloud), &r->cloud_mutex);
}

static void open_control(struct running *r)
{
    const struct store *store = embedded_store(r->embedded);
    r->base.metrics = metrics_new(r->base.clock);
    control_metrics_build_info(r->base.metrics, STR(KARVE_VERSION), STR(KARVE_COMMIT));
    r->control =
        control_new((struct control_options){ .store = store,
                                              .provider = &r->provider.port,
                                              .clock = r->base.clock,
                                              .maybe_metrics = r->base.metrics,
                                              .maybe_log = r->base.log,
                                              .seed = (uint64_t)clock_wall_us(r->base.clock),
                                              .settings = r->base.settings });
    r->parts = (struct world_parts){ .clock = r->base.clock,
                                     .embedded = r->embedded,
                                     .store = store,
                                     .cloud = r->cloud,
                                     .control = r->control,
                                     .metrics = r->base.metrics,
                                     .start_us = clock_wall_us(r->base.clock) };
}

/* What was there when it ended last, then what the folder says now. */
static int load_first(struct running *r)
{
    struct manifests m;
    struct apply_counts counts;
    struct err err;
    bool found = false;
    if (r->maybe_state && state_load(r->embedded, r->maybe_state, &found, &err) < 0)
        return controller_complain(err.kind == ERR_UNAVAILABLE ? EXIT_ENVIRONMENT : EXIT_NO, &err);
    manifests_init(&m);
    int rc = applied_folder_apply(&r->folder, &m, &counts, &err);
    print_problems(&m, false, colour_wanted(r->base.inv, stderr));
    bool empty = !m.items.count;
    manifests_done(&m);
    if (rc < 0)
        return controller_complain(err.kind == ERR_INVALID ? EXIT_NO : EXIT_ENVIRONMENT, &err);
    if (empty && !found)
        return complain_empty("controller", r->folder.path);
    if (found && sim_cloud_recover(r->cloud, &err) < 0)
        return controller_complain(EXIT_ENVIRONMENT, &err);
    if (counts.failed)
        return print_complaint("controller", EXIT_NO, "%u of the manifests cannot be applied",
                               counts.failed);
    log_info(r->base.log, "manifests applied", LOG_Z("folder", r->folder.path),
             LOG_INT("created", counts.created), LOG_INT("changed", counts.changed),
             LOG_INT("removed", counts.removed), LOG_BOOL("continued", found));
    return EXIT_DONE;
}

/* --- once a second --- */

static void note_problems(struct running *r, const struct manifests *m)
{
    vec_each(&m->problems, struct manifest_problem, p) {
        AUTO_BUF line = { 0 };
        if (p->severity != PROBLEM_ERROR)
            continue;
        manifest_problem_format(p, &line);
        log_error(r->base.log, "invalid manifest", LOG_STR("problem", buf_str(&line)));
        if (!r->trouble[0])
            snprintf(r->trouble, sizeof r->trouble, "%s", line.p);
    }
}

static void apply_changes(struct running *r)
{
    struct manifests m;
    struct apply_counts counts;
    struct err err;
    if (!applied_folder_changed(&r->folder))
        return;
    r->trouble[0] = '\0';
    manifests_init(&m);
    if (applied_folder_apply(&r->folder, &m, &counts, &err) < 0) {
        note_problems(r, &m);
        if (!r->trouble[0])
            snprintf(r->trouble, sizeof r->trouble, "%s", err.text);
        log_error(r->base.log, "the folder was not applied", LOG_ERR(&err));
    } else {
        AUTO_BUF words = { 0 };
        buf_addf(&words, "the folder changed: %u created, %u changed, %u removed, %u failed",
                 counts.created, counts.changed, counts.removed, counts.failed);
        record_action(&r->record, clock_mono_ns(r->base.clock) - r->start_ns, buf_str(&words));
    }
    manifests_done(&m);
}

/* What the control plane does not log itself: events and health, a line each. */
static void tell_events(struct running *r)
{
    const struct record *record = &r->record;
    if (r->told < record->events_forgotten)
        r->told = record->events_forgotten;
    for (; r->told < record->events_forgotten + record->events.count; r->told++) {
        const struct record_event *e = &record->events.items[r->told - record->events_forgotten];
        if (e->warning)
            log_warn(r->base.log, "happened", LOG_Z("kind", record_kind_names[e->kind]),
                     LOG_STR("what", e->what));
        else
            log_info(r->base.log, "happened", LOG_Z("kind", record_kind_names[e->kind]),
                     LOG_STR("what", e->what));
    }
}

static void save_state(struct running *r)
{
    struct err err;
    r->saved_ns = clock_mono_ns(r->base.clock);
    if (r->maybe_state && state_save(r->embedded, r->maybe_state, &err) < 0)
        log_error(r->base.log, "the state cannot be saved", LOG_ERR(&err));
}

static void tick(struct running *r)
{
    AUTO_ARENA arena = { 0 };
    int64_t now_ns = clock_mono_ns(r->base.clock);
    apply_changes(r);
    pthread_mutex_lock(&r->cloud_mutex);
    struct record_sample now = record_now(&r->record, &r->parts, &arena);
    pthread_mutex_unlock(&r->cloud_mutex);
    if (r->live) {
        struct live_facts facts = { .record = &r->record,
                                    .now = &now,
                                    .store = r->parts.store,
                                    .up_ns = now_ns - r->start_ns,
                                    .folder = r->folder.path,
                                    .trouble = r->trouble };
        controller_view_draw(&r->view, &facts);
    } else {
        tell_events(r);
    }
    if (now_ns - r->saved_ns >= STATE_EVERY_NS)
        save_state(r);
    if (now_ns - r->collected_ns >= COLLECT_EVERY_NS) {
        r->collected_ns = now_ns;
        embedded_gc(r->embedded);
    }
}

static void wait_for_signal(struct running *r, const sigset_t *signals)
{
    const struct timespec second = { .tv_sec = 1 };
    for (int number = 0; number <= 0; number = sigtimedwait(signals, NULL, &second))
        tick(r);
    log_info(r->base.log, "stopping");
}

/* --- life --- */

static bool is_ready(void *ctx, struct err *why)
{
    const struct running *r = ctx;
    if (control_synced(r->control))
        return true;
    err_set(why, ERR_UNAVAILABLE, "the store has not been read yet");
    return false;
}

static int start(struct running *r)
{
    struct err err;
    int code;
    if ((code = controller_read_settings(&r->base)) != EXIT_DONE ||
        (code = read_boot_delay(r)) != EXIT_DONE || (code = open_catalogue(r)) != EXIT_DONE)
        return code;
    r->pool = object_pool_new();
    r->embedded =
        embedded_new((struct embedded_options){ .clock = r->base.clock,
                                                .pool = r->pool,
                                                .seed = (uint64_t)clock_wall_us(r->base.clock),
                                                .auto_namespaces = true });
    r->folder.store = embedded_store(r->embedded);
    r->folder.maybe_log = r->base.log;
    open_world(r);
    if ((code = load_first(r)) != EXIT_DONE)
        return code;
    open_control(r);
    if ((code = controller_serve(&r->base)) != EXIT_DONE)
        return code;
    if (control_start(r->control, &err) < 0)
        return controller_complain(EXIT_ENVIRONMENT, &err);
    if (pthread_create(&r->physics, NULL, run_physics, r) != 0)
        return print_complaint("controller", EXIT_ENVIRONMENT, "no thread can be started");
    r->has_physics = true;
    return EXIT_DONE;
}

/* Probes first, so that nobody is told that we are well; then those who write; then what they wrote. */
static void stop(struct running *r, bool save)
{
    controller_stop_serving(&r->base);
    if (r->control)
        control_stop(r->control);
    atomic_store(&r->stopping, true);
    if (r->has_physics)
        pthread_join(r->physics, NULL);
    if (save)
        save_state(r);
    record_done(&r->record);
    control_free(r->control);
    binder_free(r->binder);
    workloads_free(r->workloads);
    kubelet_free(r->kubelet);
    sim_cloud_free(r->cloud);
    catalogue_free(r->catalogue);
    if (r->embedded)
        embedded_free(r->embedded);
    if (r->base.metrics)
        metrics_free(r->base.metrics);
    if (r->pool)
        object_pool_free(r->pool);
    log_free(r->base.log);
    pthread_mutex_destroy(&r->cloud_mutex);
}

int controller_run_embedded(const struct invocation *inv, const char *folder)
{
    struct running r = {
        .base = { .inv = inv, .clock = clock_real(), .ready = is_ready, .ctx = &r },
        .maybe_state = flag_value(inv, "state"),
        .folder = { .path = folder },
        .live = isatty(STDOUT_FILENO) && !flag_given(inv, "quiet"),
        .view = { .colour = colour_wanted(inv, stdout) }
    };
    sigset_t signals = controller_block_signals();
    pthread_mutex_init(&r.cloud_mutex, NULL);
    /* Log lines in the middle of the table help nobody; into a file they do. */
    if (!r.live || !isatty(STDERR_FILENO))
        controller_open_log(&r.base);
    r.start_ns = r.saved_ns = r.collected_ns = clock_mono_ns(r.base.clock);
    record_init(&r.record);
    r.record.limits = (struct record_limits){ .events = EVENTS_KEPT, .waits = WAITS_KEPT };
    int code = start(&r);
    if (code == EXIT_DONE)
        wait_for_signal(&r, &signals);
    live_view_done(&r.view);
    stop(&r, code == EXIT_DONE);
    return code;
}
