/* karve controller on a real API server.
 *
 *     kubeconfig --> kube (requests of the control plane) --> fence or dry run --> control plane, kwok
 *                --> kube (requests of the election)      --> leader
 *
 * The election has a connection and a rate limit of its own: a control plane that is busy never costs
 * us the lease. Whoever waits for the lease reads nothing and writes nothing. Who loses it is done:
 * the process ends, and what restarts it begins anew.
 *
 * The main thread waits for signals, so that it can be told to end at any time. The threads that find
 * the server and hold the lease send it SIGUSR1 when something has changed.
 */
#include "cmd/controller_inner.h"

#include "cloud/dry_run_provider.h"
#include "cloud/kwok.h"
#include "cmd/image_setup.h"
#include "cmd/kube_access.h"
#include "cmd/version.h"
#include "codec/duration.h"
#include "control/control_metrics.h"
#include "control/leader.h"
#include "control/settings.h"
#include "store/dry_run.h"

#include <errno.h>
#include <stdatomic.h>
#include <sys/random.h>
#include <unistd.h>

#define RECONNECT_NS (5 * DURATION_SECOND)
#define ELECTION_TIMEOUT_NS (5 * DURATION_SECOND) /* half of the renew deadline, as client-go */
#define STOP_PATIENCE_NS                                                                           \
    (10 * DURATION_SECOND) /* then a server that does not answer is left alone */

struct serving {
    struct controller base;
    sigset_t signals;
    pthread_t main_thread;
    bool dry;
    struct object_pool *pool;
    struct kubeconfig *access;
    struct kube *kube, *election_kube;
    pthread_t connector;
    bool has_connector;
    int connect_code; /* an enum exit_code, once `connected` */
    atomic_bool connected;
    struct dry_run *maybe_dry_run;
    struct dry_run_provider *maybe_dry_provider;
    struct leader *maybe_leader;
    atomic_bool gained, lost;
    struct kwok *kwok;
    struct image_setup images;
    pthread_mutex_t lock;    /* of `control` being set, against probes */
    struct control *control; /* NULL: somebody else leads */

    /* Of stopping: guarded by the lock. */
    bool stopping;               /* nothing is begun any more */
    bool stopped;                /* what acted has ended */
    pthread_cond_t stopped_cond; /* either is so */
};

/* --- options --- */

static int read_count(const struct serving *s, const char *flag, uint32_t *out)
{
    struct str text = str_of(flag_value(s->base.inv, flag));
    int64_t number;
    if (!str_to_i64(text, &number) || number < 1 || number > 100000)
        return print_complaint("controller", EXIT_USAGE,
                               "--%s %s: expected a number from 1 to 100000", flag,
                               STR_SHOWN(text));
    *out = (uint32_t)number;
    return EXIT_DONE;
}

static bool wants_election(const struct serving *s)
{
    const struct invocation *inv = s->base.inv;
    return !s->dry && !flag_given(inv, "disable-leader-election") &&
           strcmp(flag_value(inv, "leader-elect"), "true") == 0;
}

/* Variables of Karpenter's that are set where it ran before: one that asks for something else than
 * happens here should not go unnoticed. */
static void note_foreign_settings(const struct serving *s)
{
    for (uint32_t i = 0; i < karpenter_only_count; i++) {
        AUTO_BUF name = { 0 };
        struct err err;
        control_variable(karpenter_only_table[i].name, &name);
        const char *value = getenv(name.p);
        if (value && karpenter_only_check(i, str_of(value), &err) < 0)
            log_warn(s->base.log, "a setting of Karpenter's is not followed",
                     LOG_STR("variable", buf_str(&name)), LOG_ERR(&err));
    }
}

/* --- the server --- */

/* Asked with the request about to be sent: it may have waited for its turn since the fence let it in. */
static bool may_write(void *ctx)
{
    struct serving *s = ctx;
    return !s->maybe_leader || leader_holds(s->maybe_leader);
}

static int open_clients(struct serving *s)
{
    struct kube_options options = { .access = s->access,
                                    .pool = s->pool,
                                    .clock = s->base.clock,
                                    .maybe_metrics = s->base.metrics,
                                    .maybe_log = s->base.log,
                                    .user_agent = "karve/" KARVE_VERSION,
                                    .write_timeout_ns = LEADER_LEASE_NS - LEADER_RENEW_NS,
                                    .seed = (uint64_t)clock_wall_us(s->base.clock),
                                    .may_write = may_write,
                                    .may_write_ctx = s };
    struct err err;
    uint32_t qps;
    int code;
    if ((code = read_count(s, "kube-client-qps", &qps)) != EXIT_DONE ||
        (code = read_count(s, "kube-client-burst", &options.burst)) != EXIT_DONE)
        return code;
    options.qps = qps;
    if (kube_new(options, &s->kube, &err) < 0)
        return controller_complain(EXIT_ENVIRONMENT, &err);
    options.maybe_metrics = NULL;
    options.may_write = NULL; /* it is the election that decides */
    options.timeout_ns = ELECTION_TIMEOUT_NS;
    options.patience_ns = ELECTION_TIMEOUT_NS;
    options.write_timeout_ns = 0;
    options.qps = 0;
    if (kube_new(options, &s->election_kube, &err) < 0)
        return controller_complain(EXIT_ENVIRONMENT, &err);
    return EXIT_DONE;
}

/* What must be there before anything makes sense. */
static int greet(struct serving *s, struct err *err)
{
    static const struct kind *const needed[] = { &nodepool_kind, &nodeclaim_kind };
    AUTO_BUF version = { 0 };
    if (kube_server_version(s->election_kube, &version, err) < 0)
        return -1;
    for (size_t i = 0; i < KV_COUNT_OF(needed); i++) {
        if (kube_serves(s->election_kube, needed[i], err) == 0)
            continue;
        if (err->kind == ERR_NOT_FOUND)
            return err_set(err, ERR_NOT_FOUND,
                           "the server has no %s.%s: install the definitions with "
                           "\"karve crds | kubectl apply --server-side -f -\"",
                           needed[i]->plural, needed[i]->group);
        return -1;
    }
    log_info(s->base.log, "connected", LOG_Z("context", kubeconfig_context(s->access)),
             LOG_Z("server", kubeconfig_server(s->access)), LOG_STR("version", buf_str(&version)));
    return 0;
}

static bool pause_to_reconnect(struct serving *s)
{
    int64_t until_ns = clock_mono_ns(s->base.clock) + RECONNECT_NS;
    pthread_mutex_lock(&s->lock);
    while (!s->stopping && clock_mono_ns(s->base.clock) < until_ns)
        clock_wait(s->base.clock, &s->stopped_cond, &s->lock, until_ns);
    bool goes_on = !s->stopping;
    pthread_mutex_unlock(&s->lock);
    return goes_on;
}

/* A server that is not there yet, or has not been given its CRDs yet, is waited for: in a cluster that
 * comes up, things start in any order. What no waiting mends ends the program. */
static int connect_first(struct serving *s)
{
    struct err err = { 0 };
    while (greet(s, &err) < 0) {
        if (err.kind == ERR_CANCELLED)
            return EXIT_DONE;
        if (err.kind == ERR_DENIED || err.kind == ERR_INVALID)
            return print_complaint("controller", EXIT_ENVIRONMENT, "context %s: %s",
                                   kubeconfig_context(s->access), err.text);
        log_warn(s->base.log, "the API server cannot be used yet", LOG_ERR(&err));
        if (!pause_to_reconnect(s))
            return EXIT_DONE;
    }
    return EXIT_DONE;
}

static void *connect_main(void *ctx)
{
    struct serving *s = ctx;
    s->connect_code = connect_first(s);
    atomic_store(&s->connected, true);
    pthread_kill(s->main_thread, SIGUSR1);
    return NULL;
}

static void stop_connecting(struct serving *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    pthread_cond_broadcast(&s->stopped_cond);
    pthread_mutex_unlock(&s->lock);
    if (!s->has_connector)
        return;
    if (!atomic_load(&s->connected)) /* else the election uses it */
        kube_cancel(s->election_kube);
    pthread_join(s->connector, NULL);
}

/* --- acting --- */

/* The store and the provider, behind what keeps us from acting when we must not. */
static const struct store *guarded_store(struct serving *s)
{
    if (s->maybe_dry_run)
        return dry_run_store(s->maybe_dry_run);
    const struct store *store = kube_store(s->kube);
    return s->maybe_leader ? leader_store(s->maybe_leader, store) : store;
}

static const struct cloud_provider *guarded_provider(struct serving *s)
{
    const struct cloud_provider *provider = kwok_provider(s->kwok);
    if (s->maybe_dry_provider)
        return dry_run_provider_port(s->maybe_dry_provider);
    return s->maybe_leader ? leader_provider(s->maybe_leader, provider) : provider;
}

static void open_provider(struct serving *s, uint64_t seed)
{
    if (s->dry)
        s->maybe_dry_run = dry_run_new((struct dry_run_options){ .inner = kube_store(s->kube),
                                                                 .pool = s->pool,
                                                                 .clock = s->base.clock,
                                                                 .log = s->base.log });
    s->kwok = kwok_new((struct kwok_options){ .store = guarded_store(s),
                                              .clock = s->base.clock,
                                              .maybe_log = s->base.log,
                                              .seed = seed });
    if (s->dry)
        s->maybe_dry_provider =
            dry_run_provider_new((struct dry_run_provider_options){ .inner = kwok_provider(s->kwok),
                                                                    .dry_run = s->maybe_dry_run,
                                                                    .clock = s->base.clock,
                                                                    .log = s->base.log });
}

static void on_images_changed(void *ctx)
{
    struct serving *s = ctx;
    pthread_mutex_lock(&s->lock);
    if (s->control)
        control_images_changed(s->control);
    pthread_mutex_unlock(&s->lock);
}

static int begin_with_images(struct serving *s, struct err *err)
{
    static const struct image_feed feeds[] = { { .kind = &node_feature_kind },
                                               { .kind = &node_feature_group_kind } };
    struct image_service_options options = { .store = guarded_store(s),
                                             .clock = s->base.clock,
                                             .maybe_metrics = s->base.metrics,
                                             .maybe_log = s->base.log,
                                             .on_change = on_images_changed,
                                             .ctx = s };
    if (!s->images.maybe_registry)
        return 0;
    if (image_setup_service(&s->images, options, err) < 0)
        return -1;
    image_setup_feed(&s->images, &options, feeds, s->images.settings.nfg_mode == NFG_OFF ? 1 : 2);
    return 0;
}

static int begin_to_act(struct serving *s)
{
    const uint64_t seed = (uint64_t)clock_wall_us(s->base.clock);
    struct err err;
    s->base.settings.dry_run = s->dry;
    open_provider(s, seed);
    if (begin_with_images(s, &err) < 0)
        return controller_complain(EXIT_ENVIRONMENT, &err);
    struct control *control =
        control_new((struct control_options){ .store = guarded_store(s),
                                              .provider = guarded_provider(s),
                                              .clock = s->base.clock,
                                              .maybe_images = s->images.maybe_service,
                                              .maybe_metrics = s->base.metrics,
                                              .maybe_log = s->base.log,
                                              .seed = seed,
                                              .settings = s->base.settings });
    pthread_mutex_lock(&s->lock);
    s->control = control;
    pthread_mutex_unlock(&s->lock);
    if ((!s->dry && kwok_start(s->kwok, &err) < 0) || control_start(control, &err) < 0)
        return controller_complain(EXIT_ENVIRONMENT, &err);
    log_info(s->base.log, "acting", LOG_Z("provider", kwok_provider(s->kwok)->name),
             LOG_BOOL("dry_run", s->dry));
    return EXIT_DONE;
}

static bool is_ready(void *ctx, struct err *why)
{
    struct serving *s = ctx;
    pthread_mutex_lock(&s->lock);
    /* Who waits for the lease is as ready as can be: a rolling update waits for that. */
    bool connected = atomic_load(&s->connected);
    bool ready = connected && (!s->control || control_synced(s->control));
    pthread_mutex_unlock(&s->lock);
    if (!ready)
        err_set(why, ERR_UNAVAILABLE,
                connected ? "the cluster has not been read yet"
                          : "the API server cannot be used yet");
    return ready;
}

/* --- the election --- */

static void on_gained(void *ctx)
{
    struct serving *s = ctx;
    atomic_store(&s->gained, true);
    pthread_kill(s->main_thread, SIGUSR1);
}

static void on_lost(void *ctx)
{
    struct serving *s = ctx;
    atomic_store(&s->lost, true);
    pthread_kill(s->main_thread, SIGUSR1);
}

/* Unique among processes that ever ask for the lease: after a restart it is somebody else. */
static void own_identity(char *out, size_t size)
{
    char host[128] = "karve";
    uint64_t random = 0;
    gethostname(host, sizeof host - 1);
    if (getrandom(&random, sizeof random, 0) != sizeof random)
        random = (uint64_t)getpid();
    snprintf(out, size, "%s_%016llx", host, (unsigned long long)random);
}

static int enter_election(struct serving *s)
{
    const char *namespace_ = flag_value(s->base.inv, "leader-election-namespace");
    char identity[192];
    struct err err;
    own_identity(identity, sizeof identity);
    if (!*namespace_)
        namespace_ =
            kubeconfig_in_cluster(s->access) ? kubeconfig_namespace(s->access) : "kube-system";
    struct leader_options options = { .store = kube_store(s->election_kube),
                                      .clock = s->base.clock,
                                      .maybe_metrics = s->base.metrics,
                                      .maybe_log = s->base.log,
                                      .namespace_ = namespace_,
                                      .name = flag_value(s->base.inv, "leader-election-name"),
                                      .identity = identity,
                                      .seed = (uint64_t)clock_wall_us(s->base.clock),
                                      .gained = on_gained,
                                      .lost = on_lost,
                                      .ctx = s };
    if (leader_new(options, &s->maybe_leader, &err) < 0 || leader_start(s->maybe_leader, &err) < 0)
        return controller_complain(EXIT_ENVIRONMENT, &err);
    return EXIT_DONE;
}

/* --- life --- */

static int start(struct serving *s)
{
    struct err err;
    int code;
    if ((code = controller_read_settings(&s->base)) != EXIT_DONE ||
        (code = image_setup_read(&s->images, s->base.inv)) != EXIT_DONE)
        return code;
    if (wants_election(s) && !*flag_value(s->base.inv, "leader-election-name"))
        return print_complaint("controller", EXIT_USAGE,
                               "--leader-election-name: expected a name, found none");
    note_foreign_settings(s);
    if ((code = kube_access_open(s->base.inv, s->base.clock, s->base.log, &s->access, &err)) !=
        EXIT_DONE)
        return print_complaint("controller", code, "%s%s", err.text,
                               err.kind == ERR_NOT_FOUND ? "; --embedded DIR needs no cluster"
                                                         : "");
    s->base.in_pod = kubeconfig_in_cluster(s->access);
    s->pool = object_pool_new();
    s->base.metrics = metrics_new(s->base.clock);
    control_metrics_build_info(s->base.metrics, STR(KARVE_VERSION), STR(KARVE_COMMIT));
    if (image_setup_wanted(s->base.inv) &&
        (code = image_setup_registry(&s->images, s->base.inv, s->base.clock, s->base.metrics,
                                     s->base.log)) != EXIT_DONE)
        return code;
    if ((code = open_clients(s)) != EXIT_DONE || (code = controller_serve(&s->base)) != EXIT_DONE)
        return code;
    if (thread_start(&s->connector, "connect", connect_main, s, &err) < 0)
        return controller_complain(EXIT_ENVIRONMENT, &err);
    s->has_connector = true;
    return EXIT_DONE;
}

static int on_connected(struct serving *s)
{
    if (s->connect_code != EXIT_DONE)
        return s->connect_code;
    return wants_election(s) ? enter_election(s) : begin_to_act(s);
}

/* An enum exit_code: we were told to end, or cannot go on. */
static int run(struct serving *s)
{
    bool entered = false;
    for (;;) {
        int number = sigwaitinfo(&s->signals, NULL), code = EXIT_DONE;
        if (number == SIGINT || number == SIGTERM) {
            log_info(s->base.log, "stopping");
            return EXIT_DONE;
        }
        if (atomic_load(&s->lost)) {
            log_error(s->base.log, "somebody else leads: ending");
            return EXIT_ENVIRONMENT;
        }
        if (atomic_load(&s->connected) && !entered) {
            entered = true;
            code = on_connected(s);
        } else if (atomic_load(&s->gained) && !s->control) {
            code = begin_to_act(s);
        }
        if (code != EXIT_DONE)
            return code;
    }
}

/* Reconcilers finish what they are doing; a server that does not answer must not hold them for ever. */
static void *lose_patience(void *ctx)
{
    struct serving *s = ctx;
    int64_t until_ns = clock_mono_ns(s->base.clock) + STOP_PATIENCE_NS;
    pthread_mutex_lock(&s->lock);
    while (!s->stopped && clock_mono_ns(s->base.clock) < until_ns)
        clock_wait(s->base.clock, &s->stopped_cond, &s->lock, until_ns);
    bool stopped = s->stopped;
    pthread_mutex_unlock(&s->lock);
    if (!stopped)
        kube_cancel(s->kube);
    return NULL;
}

static void stop_acting(struct serving *s)
{
    pthread_t watch;
    struct err err;
    if (!s->control)
        return;
    bool watched = thread_start(&watch, "stopping", lose_patience, s, &err) == 0;
    if (!watched)
        kube_cancel(s->kube);
    control_stop(s->control);
    pthread_mutex_lock(&s->lock);
    s->stopped = true;
    pthread_cond_broadcast(&s->stopped_cond);
    pthread_mutex_unlock(&s->lock);
    if (watched)
        pthread_join(watch, NULL);
}

/* Who presses ctrl-C again does not want to wait. The lease is left to run out then, as in a crash. */
static void let_signal_kill(void)
{
    sigset_t interrupt;
    sigemptyset(&interrupt);
    sigaddset(&interrupt, SIGINT);
    pthread_sigmask(SIG_UNBLOCK, &interrupt, NULL);
}

/* Probes first, so that nobody is told that we are well; then those who write; then the lease, so that
 * the next one need not wait for it to run out. */
static void stop(struct serving *s)
{
    let_signal_kill();
    controller_stop_serving(&s->base);
    stop_connecting(s);
    stop_acting(s);
    if (s->kube) /* nobody has anything to write any more, kwok's thread neither */
        kube_cancel(s->kube);
    image_setup_cancel(&s->images);
    pthread_mutex_lock(&s->lock);
    struct control *control = take(&s->control);
    pthread_mutex_unlock(&s->lock);
    control_free(control);
    image_setup_done(&s->images);
    dry_run_provider_free(s->maybe_dry_provider);
    kwok_free(s->kwok);
    if (s->maybe_leader)
        leader_release(s->maybe_leader);
    leader_free(s->maybe_leader);
    dry_run_free(s->maybe_dry_run);
    kube_free(s->kube);
    kube_free(s->election_kube);
    kubeconfig_free(s->access);
    if (s->base.metrics)
        metrics_free(s->base.metrics);
    if (s->pool)
        object_pool_free(s->pool);
    log_free(s->base.log);
    pthread_cond_destroy(&s->stopped_cond);
    pthread_mutex_destroy(&s->lock);
}

int controller_run_kube(const struct invocation *inv)
{
    struct serving s = {
        .base = { .inv = inv, .clock = clock_real(), .ready = is_ready, .ctx = &s },
        .main_thread = pthread_self(),
        .dry = flag_given(inv, "dry-run")
    };
    s.signals = controller_block_signals();
    sigaddset(&s.signals, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &s.signals, NULL);
    pthread_mutex_init(&s.lock, NULL);
    clock_cond_init(&s.stopped_cond);
    controller_open_log(&s.base);
    int code = start(&s);
    if (code == EXIT_DONE)
        code = run(&s);
    stop(&s);
    return code;
}
