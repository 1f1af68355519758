/* karve controller: the control plane in real time. With --embedded, on an embedded store and a
 * simulated cloud.
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
#include "control/settings.h"
#include "net/http_server.h"

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
    const struct invocation *inv;
    const struct clock *clock;
    const char *maybe_state;
    struct control_settings settings;
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
    struct metrics *metrics;
    struct log *log;
    struct control *control;
    struct http_server *metrics_server, *probe_server; /* one, the first, if they share a port */
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

static int complain(int code, const struct err *err)
{
    return print_complaint("controller", code, "%s", err->text);
}

/* --- options --- */

static int read_settings(struct running *r)
{
    r->settings = control_settings_default;
    for (uint32_t i = 0; i < control_setting_count; i++) {
        const char *name = control_setting_table[i].name, *value = flag_value(r->inv, name);
        struct err err;
        if (value && control_setting_parse(&r->settings, str_of(name), str_of(value), &err) < 0)
            return print_complaint("controller", EXIT_USAGE, "--%s: %s", name, err.text);
    }
    return EXIT_DONE;
}

/* "30s", or "20s..45s". */
static int read_boot_delay(struct running *r)
{
    struct str text = str_of(flag_value(r->inv, "boot-delay")), first = text, last = text;
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

static int read_port(struct running *r, const char *flag, uint16_t *out)
{
    const char *text = flag_value(r->inv, flag);
    int64_t number;
    if (!str_to_i64(str_of(text), &number) || number < 0 || number > UINT16_MAX)
        return print_complaint("controller", EXIT_USAGE, "--%s %s: expected a port, or 0 for none",
                               flag, STR_SHOWN(str_of(text)));
    *out = (uint16_t)number;
    return EXIT_DONE;
}

/* --- HTTP --- */

static void serve_health(void *ctx KV_UNUSED, const struct http_request *request KV_UNUSED,
                         struct http_reply *reply)
{
    buf_addz(&reply->body, "ok\n");
}

static void serve_ready(void *ctx, const struct http_request *request KV_UNUSED,
                        struct http_reply *reply)
{
    struct running *r = ctx;
    bool ready = control_synced(r->control);
    reply->status = ready ? 200 : 503;
    buf_addz(&reply->body, ready ? "ok\n" : "the store has not been read yet\n");
}

static void serve_metrics(void *ctx, const struct http_request *request KV_UNUSED,
                          struct http_reply *reply)
{
    struct running *r = ctx;
    reply->content_type = METRICS_CONTENT_TYPE;
    metrics_write(r->metrics, &reply->body);
}

static int serve(struct running *r, uint16_t port, const struct http_route *routes, uint32_t count,
                 struct http_server **out)
{
    struct http_server_options options = { .address = flag_value(r->inv, "bind-address"),
                                           .port = port,
                                           .routes = routes,
                                           .route_count = count };
    struct err err;
    if (!port || http_server_start(options, out, &err) == 0)
        return EXIT_DONE;
    return complain(err.kind == ERR_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT, &err);
}

static int start_servers(struct running *r)
{
    const struct http_route routes[] = {
        { .path = "/metrics", .handle = serve_metrics, .ctx = r },
        { .path = "/healthz", .handle = serve_health, .ctx = r },
        { .path = "/readyz", .handle = serve_ready, .ctx = r },
    };
    uint16_t metrics_port, probe_port;
    int code;
    if ((code = read_port(r, "metrics-port", &metrics_port)) != EXIT_DONE ||
        (code = read_port(r, "health-probe-port", &probe_port)) != EXIT_DONE)
        return code;
    if (metrics_port == probe_port)
        return serve(r, metrics_port, routes, 3, &r->metrics_server);
    if ((code = serve(r, metrics_port, routes, 1, &r->metrics_server)) != EXIT_DONE)
        return code;
    return serve(r, probe_port, routes + 1, 2, &r->probe_server);
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
        int64_t wait_ns = sooner(due_ns - clock_mono_ns(r->clock), PHYSICS_EVERY_NS);
        if (wait_ns > 0)
            nanosleep(&(struct timespec){ .tv_nsec = wait_ns }, NULL);
    }
    return NULL;
}

static int open_catalogue(struct running *r)
{
    const char *region = flag_value(r->inv, "region");
    struct catalogue_options options = { .region = str_of(region),
                                         .maybe_path = flag_value(r->inv, "catalogue") };
    struct err err;
    if (catalogue_new(options, &r->catalogue, &err) == 0)
        return EXIT_DONE;
    if (err.kind != ERR_INVALID)
        return complain(EXIT_ENVIRONMENT, &err);
    return complain(catalogue_region_find(str_of(region)) ? EXIT_NO : EXIT_USAGE, &err);
}

static void open_world(struct running *r)
{
    const struct store *store = embedded_store(r->embedded);
    const uint64_t seed = (uint64_t)clock_wall_us(r->clock);
    r->cloud = sim_cloud_new(
        (struct sim_cloud_options){ .clock = r->clock,
                                    .store = store,
                                    .types = catalogue_provider(r->catalogue),
                                    .seed = seed,
                                    .boot = r->boot,
                                    .ready = { r->boot.min_ns / 5, r->boot.max_ns / 5 },
                                    .terminate = { 2 * DURATION_SECOND, 6 * DURATION_SECOND } });
    r->kubelet = kubelet_new(
        (struct kubelet_options){ .clock = r->clock,
                                  .store = store,
                                  .cloud = r->cloud,
                                  .seed = seed,
                                  .pod_start = { DURATION_SECOND, 3 * DURATION_SECOND },
                                  .pod_stop = { DURATION_SECOND, 3 * DURATION_SECOND },
                                  .job_run = { DURATION_MINUTE, 3 * DURATION_MINUTE },
                                  .startup_taints = { 2 * DURATION_SECOND, 5 * DURATION_SECOND } });
    r->workloads = workloads_new(store, r->clock, seed);
    r->binder =
        binder_new((struct binder_options){ .clock = r->clock, .store = store, .seed = seed });
    locked_provider_init(&r->provider, sim_cloud_provider(r->cloud), &r->cloud_mutex);
}

static void open_control(struct running *r)
{
    const struct store *store = embedded_store(r->embedded);
    r->metrics = metrics_new(r->clock);
    control_metrics_build_info(r->metrics, STR(KARVE_VERSION), STR(KARVE_COMMIT));
    r->control = control_new((struct control_options){ .store = store,
                                                       .provider = &r->provider.port,
                                                       .clock = r->clock,
                                                       .maybe_metrics = r->metrics,
                                                       .maybe_log = r->log,
                                                       .seed = (uint64_t)clock_wall_us(r->clock),
                                                       .settings = r->settings });
    r->parts = (struct world_parts){ .clock = r->clock,
                                     .embedded = r->embedded,
                                     .store = store,
                                     .cloud = r->cloud,
                                     .control = r->control,
                                     .metrics = r->metrics,
                                     .start_us = clock_wall_us(r->clock) };
}

/* What was there when it ended last, then what the folder says now. */
static int load_first(struct running *r)
{
    struct manifests m;
    struct apply_counts counts;
    struct err err;
    bool found = false;
    if (r->maybe_state && state_load(r->embedded, r->maybe_state, &found, &err) < 0)
        return complain(err.kind == ERR_UNAVAILABLE ? EXIT_ENVIRONMENT : EXIT_NO, &err);
    manifests_init(&m);
    int rc = applied_folder_apply(&r->folder, &m, &counts, &err);
    print_problems(&m, false, colour_wanted(r->inv, stderr));
    bool empty = !m.items.count;
    manifests_done(&m);
    if (rc < 0)
        return complain(err.kind == ERR_INVALID ? EXIT_NO : EXIT_ENVIRONMENT, &err);
    if (empty && !found)
        return complain_empty("controller", r->folder.path);
    if (found && sim_cloud_recover(r->cloud, &err) < 0)
        return complain(EXIT_ENVIRONMENT, &err);
    if (counts.failed)
        return print_complaint("controller", EXIT_NO, "%u of the manifests cannot be applied",
                               counts.failed);
    log_info(r->log, "manifests applied", LOG_Z("folder", r->folder.path),
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
        log_error(r->log, "invalid manifest", LOG_STR("problem", buf_str(&line)));
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
        log_error(r->log, "the folder was not applied", LOG_ERR(&err));
    } else {
        AUTO_BUF words = { 0 };
        buf_addf(&words, "the folder changed: %u created, %u changed, %u removed, %u failed",
                 counts.created, counts.changed, counts.removed, counts.failed);
        record_action(&r->record, clock_mono_ns(r->clock) - r->start_ns, buf_str(&words));
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
            log_warn(r->log, "happened", LOG_Z("kind", record_kind_names[e->kind]),
                     LOG_STR("what", e->what));
        else
            log_info(r->log, "happened", LOG_Z("kind", record_kind_names[e->kind]),
                     LOG_STR("what", e->what));
    }
}

static void save_state(struct running *r)
{
    struct err err;
    r->saved_ns = clock_mono_ns(r->clock);
    if (r->maybe_state && state_save(r->embedded, r->maybe_state, &err) < 0)
        log_error(r->log, "the state cannot be saved", LOG_ERR(&err));
}

static void tick(struct running *r)
{
    AUTO_ARENA arena = { 0 };
    int64_t now_ns = clock_mono_ns(r->clock);
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
    log_info(r->log, "stopping");
}

/* --- life --- */

static int start(struct running *r)
{
    struct err err;
    int code;
    if ((code = read_settings(r)) != EXIT_DONE || (code = read_boot_delay(r)) != EXIT_DONE ||
        (code = open_catalogue(r)) != EXIT_DONE)
        return code;
    r->pool = object_pool_new();
    r->embedded = embedded_new((struct embedded_options){ .clock = r->clock,
                                                          .pool = r->pool,
                                                          .seed = (uint64_t)clock_wall_us(r->clock),
                                                          .auto_namespaces = true });
    r->folder.store = embedded_store(r->embedded);
    r->folder.maybe_log = r->log;
    open_world(r);
    if ((code = load_first(r)) != EXIT_DONE)
        return code;
    open_control(r);
    if ((code = start_servers(r)) != EXIT_DONE)
        return code;
    if (control_start(r->control, &err) < 0)
        return complain(EXIT_ENVIRONMENT, &err);
    if (pthread_create(&r->physics, NULL, run_physics, r) != 0)
        return print_complaint("controller", EXIT_ENVIRONMENT, "no thread can be started");
    r->has_physics = true;
    return EXIT_DONE;
}

/* Probes first, so that nobody is told that we are well; then those who write; then what they wrote. */
static void stop(struct running *r, bool save)
{
    http_server_stop(r->probe_server);
    http_server_stop(r->metrics_server);
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
    if (r->metrics)
        metrics_free(r->metrics);
    if (r->pool)
        object_pool_free(r->pool);
    log_free(r->log);
    pthread_mutex_destroy(&r->cloud_mutex);
}

static struct log *open_log(struct running *r)
{
    enum log_level level = LOG_LEVEL_INFO;
    log_level_parse(str_of(flag_value(r->inv, "log-level")), &level);
    /* Log lines in the middle of the table help nobody; into a file they do. */
    if (r->live && isatty(STDERR_FILENO))
        return NULL;
    return log_new((struct log_options){ .clock = r->clock, .fd = STDERR_FILENO, .level = level });
}

static int run_embedded(const struct invocation *inv, const char *folder)
{
    struct running r = { .inv = inv,
                         .clock = clock_real(),
                         .maybe_state = flag_value(inv, "state"),
                         .folder = { .path = folder },
                         .live = isatty(STDOUT_FILENO) && !flag_given(inv, "quiet"),
                         .view = { .colour = colour_wanted(inv, stdout) } };
    sigset_t signals;
    /* Blocked before any thread starts: only the main thread takes them, when it asks for them. */
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    pthread_mutex_init(&r.cloud_mutex, NULL);
    r.log = open_log(&r);
    r.start_ns = r.saved_ns = r.collected_ns = clock_mono_ns(r.clock);
    record_init(&r.record);
    r.record.limits = (struct record_limits){ .events = EVENTS_KEPT, .waits = WAITS_KEPT };
    int code = start(&r);
    if (code == EXIT_DONE)
        wait_for_signal(&r, &signals);
    live_view_done(&r.view);
    stop(&r, code == EXIT_DONE);
    return code;
}

static int run_controller(const struct invocation *inv)
{
    const char *folder = flag_value(inv, "embedded");
    if (inv->args.count)
        return print_complaint("controller", EXIT_USAGE, "unexpected argument %s",
                               STR_SHOWN(str_of(inv->args.items[0])));
    if (!folder)
        return print_complaint("controller", EXIT_ENVIRONMENT,
                               "a real API server is not supported yet; --embedded DIR runs the "
                               "control plane on the manifests of a folder and a simulated cloud");
    return run_embedded(inv, folder);
}

/* --- the table --- */

static const char *const level_choices[] = { "error", "warn", "info", "debug", NULL };
static const char *const preference_choices[] = { "Respect", "Ignore", NULL };
static const char *const min_values_choices[] = { "Strict", "BestEffort", NULL };
static const char *const health_choices[] = { "first-success", "window", NULL };

static const struct flag flags[] = {
    { .name = "embedded",
      .value = "DIR",
      .help = "run on the manifests of this folder, an embedded store and a simulated cloud",
      .files = true },
    { .name = "state",
      .value = "PATH",
      .help = "keep the embedded store in this file, so that a restart goes on",
      .files = true },
    { .name = "boot-delay",
      .value = "DURATION[..DURATION]",
      .help = "how long a simulated instance takes to join",
      .dflt = "20s..40s" },
    CATALOGUE_FLAGS,
    { .name = "metrics-port",
      .value = "PORT",
      .help = "where /metrics is served; 0: nowhere",
      .dflt = "8080" },
    { .name = "health-probe-port",
      .value = "PORT",
      .help = "where /healthz and /readyz are served; 0: nowhere",
      .dflt = "8081" },
    { .name = "bind-address",
      .value = "ADDRESS",
      .help = "the address of both",
      .dflt = "127.0.0.1" },
    /* The names of control/settings.h. */
    { .name = "batch-idle-duration",
      .value = "DURATION",
      .help = "plan once no new pod has come for so long",
      .dflt = "1s" },
    { .name = "batch-max-duration",
      .value = "DURATION",
      .help = "plan after so long even if pods keep coming",
      .dflt = "10s" },
    { .name = "preference-policy",
      .value = "POLICY",
      .help = "whether preferred terms count for as long as they can be met, or not at all",
      .dflt = "Respect",
      .choices = preference_choices },
    { .name = "min-values-policy",
      .value = "POLICY",
      .help = "whether minValues that cannot be met stand in the way",
      .dflt = "Strict",
      .choices = min_values_choices },
    { .name = "registration-health-policy",
      .value = "POLICY",
      .help = "how NodeRegistrationHealthy is judged for pools that do not say",
      .dflt = "first-success",
      .choices = health_choices },
    { .name = "registration-health-window",
      .value = "COUNT",
      .help = "with window: how many results are remembered",
      .dflt = "10" },
    { .name = "registration-health-threshold",
      .value = "COUNT",
      .help = "with window: so many failures are unhealthy",
      .dflt = "2" },
    { .name = "registration-cooldown",
      .value = "DURATION",
      .help = "first wait before a pool whose nodes do not join is tried again; 0s: no wait",
      .dflt = "0s" },
    { .name = "feature-gates",
      .value = "NAME=BOOL,...",
      .help = "optional features: NodeRepair, NodeOverlay",
      .dflt = "NodeRepair=false,NodeOverlay=true" },
    { .name = "plan-effort",
      .value = "STEPS",
      .help = "work spent on making a plan cheaper; auto: what suits its size",
      .dflt = "auto" },
    { .name = "threads",
      .value = "COUNT",
      .help = "threads of one controller, at most",
      .dflt = "16" },
    { .name = "quiet", .letter = 'q', .help = "log lines instead of a table on a terminal" },
    { .name = "log-level",
      .value = "LEVEL",
      .help = "what is logged, on stderr",
      .dflt = "info",
      .choices = level_choices },
};

const struct command controller_command = {
    .name = "controller",
    .summary = "run the control plane",
    .args = "",
    .about =
        "Runs the control plane: launches nodes for pending pods, watches over them, takes them\n"
        "down. A real API server is not supported yet.\n\n"
        "With --embedded it needs no cluster: the manifests of a folder (workloads, NodePools, node\n"
        "classes, ...) are put into a store in memory, a simulated cloud boots nodes in real time,\n"
        "and a small scheduler binds pods. Files are looked at once a second: what is new in them is\n"
        "applied, what is gone from them is deleted. On a terminal a table shows how things are;\n"
        "otherwise log lines say what happens.\n\n"
        "It serves Prometheus metrics and probes, and ends cleanly on SIGINT and SIGTERM. With\n"
        "--state the store is saved every ten seconds and at the end, and loaded at the start.",
    .examples = "  karve controller --embedded examples/shop\n"
                "      a shop, with nodes that take half a minute to come\n"
                "  karve controller --embedded shop --state shop.state --boot-delay 2s\n"
                "      quicker, and where it ended the next start goes on\n"
                "  curl -s localhost:8080/metrics | grep karpenter_nodeclaims\n"
                "      what it counts\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_controller,
};
