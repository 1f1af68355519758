/* karve extender: kube-scheduler asks it which nodes can run a pod's images.
 *
 *     API server --> pods that wait, Nodes, NodeFeatures, NodeFeatureGroups --> compat service
 *     kube-scheduler --> HTTP(S) --> extender --> compat service
 *
 * Any number of replicas may run: none of them leads, and what they write (groups) is the same whoever writes it.
 * The scheduler's port is opened when the cluster has been read: an extender that knows half of the nodes would
 * give wrong answers, one that is not there gives none.
 */
#include "cmd/controller_inner.h"
#include "cmd/image_setup.h"
#include "cmd/kube_access.h"
#include "cmd/version.h"

#include "base/file.h"
#include "codec/duration.h"
#include "compat/extender.h"
#include "control/control_metrics.h"

#include <errno.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

#define LOOK_S 1 /* the first sync is not told */
#define CERTIFICATE_LOOKS 5
#define TROUBLE_LOOKS 3
#define IDLE_SECONDS 120 /* longer than kube-scheduler keeps a connection that it may use again */
#define PEM_BYTES_MAX ((size_t)1 << 20)

struct extending {
    struct controller base;
    sigset_t signals;
    struct object_pool *pool;
    struct kubeconfig *access;
    struct kube *kube;
    struct image_setup images;
    struct extender *extender;
    struct http_server *server;
    atomic_bool serving;
    bool opened;                     /* once */
    struct buf cert, key, client_ca; /* as the server has them */
};

static int complain(int code, const struct err *err)
{
    return print_complaint("extender", code, "%s", err->text);
}

/* --- certificates --- */

static int read_pem(const struct invocation *inv, const char *flag, struct buf *out,
                    struct err *err)
{
    const char *path = flag_value(inv, flag);
    if (!path)
        return 0;
    if (file_read(path, PEM_BYTES_MAX, out, err) < 0)
        return err_wrap(err, "--%s", flag);
    if (!out->len) /* without a certificate it would be plain HTTP, which nobody has asked for */
        return err_set(err, ERR_INVALID, "--%s: %s is empty", flag, STR_SHOWN(str_of(path)));
    return 0;
}

static int read_pems(struct extending *x, struct buf *cert, struct buf *key, struct buf *ca,
                     struct err *err)
{
    if (read_pem(x->base.inv, "tls-cert", cert, err) < 0 ||
        read_pem(x->base.inv, "tls-key", key, err) < 0 ||
        read_pem(x->base.inv, "client-ca", ca, err) < 0)
        return -1;
    return 0;
}

static void keep_pem(struct buf *kept, struct buf *new)
{
    if (kept->p)
        explicit_bzero(kept->p, kept->len);
    buf_done(kept);
    *kept = *new;
    *new = (struct buf){ 0 };
}

/* --- the scheduler's port --- */

static int open_server(struct extending *x, struct err *err)
{
    const struct invocation *inv = x->base.inv;
    const char *address = flag_value(inv, "bind-address");
    struct http_route routes[EXTENDER_ROUTES];
    int64_t port;
    if (!str_to_i64(str_of(flag_value(inv, "port")), &port) || port < 1 || port > UINT16_MAX)
        return err_set(err, ERR_INVALID, "--port %s: expected a port",
                       STR_SHOWN(str_of(flag_value(inv, "port"))));
    extender_routes(x->extender, routes);
    struct http_server_options options = {
        .address = address          ? address
                   : x->base.in_pod ? ""
                                    : "127.0.0.1",
        .port = (uint16_t)port,
        .routes = routes,
        .route_count = EXTENDER_ROUTES,
        .tls = { buf_str(&x->cert), buf_str(&x->key), buf_str(&x->client_ca) },
        .body_bytes_max = EXTENDER_BODY_BYTES_MAX,
        .idle_seconds = IDLE_SECONDS,
    };
    if (http_server_start(options, &x->server, err) < 0)
        return -1;
    atomic_store(&x->serving, true);
    log_info(x->base.log, "answering kube-scheduler", LOG_INT("port", port),
             LOG_BOOL("tls", x->cert.len != 0),
             LOG_BOOL("client_certificates", x->client_ca.len != 0));
    return 0;
}

/* Renewed certificates: the port is opened anew. The scheduler repeats what falls in between. What cannot be used
 * is half written, perhaps: the old ones stay, and the next look finds the rest. */
static void look_at_certificates(struct extending *x)
{
    AUTO_BUF cert = { 0 }, key = { 0 }, ca = { 0 };
    struct err err = { 0 };
    if (!x->cert.len)
        return;
    int rc = read_pems(x, &cert, &key, &ca, &err);
    struct http_server_tls new = { buf_str(&cert), buf_str(&key), buf_str(&ca) };
    bool same = str_eq(new.cert_pem, buf_str(&x->cert)) && str_eq(new.key_pem, buf_str(&x->key)) &&
                str_eq(new.client_ca_pem, buf_str(&x->client_ca));
    if (rc < 0 || (!same && http_server_tls_check(&new, &err) < 0)) {
        log_warn(x->base.log, "the new certificate cannot be used", LOG_ERR(&err));
        return;
    }
    if (same && x->server)
        return;
    keep_pem(&x->cert, &cert);
    keep_pem(&x->key, &key);
    keep_pem(&x->client_ca, &ca);
    atomic_store(&x->serving, false);
    http_server_stop(take(&x->server));
    if (open_server(x, &err) < 0) /* tried again at the next look */
        log_error(x->base.log, "the port cannot be opened again", LOG_ERR(&err));
}

/* --- life --- */

static bool is_ready(void *ctx, struct err *why)
{
    struct extending *x = ctx;
    if (atomic_load(&x->serving))
        return true;
    err_set(why, ERR_UNAVAILABLE, "the cluster has not been read yet");
    return false;
}

static int open_kube(struct extending *x, struct err *err)
{
    struct kube_options options = { .access = x->access,
                                    .pool = x->pool,
                                    .clock = x->base.clock,
                                    .maybe_metrics = x->base.metrics,
                                    .maybe_log = x->base.log,
                                    .user_agent = "karve-extender/" KARVE_VERSION,
                                    .qps = 50,
                                    .burst = 100,
                                    .seed = (uint64_t)clock_wall_us(x->base.clock) };
    return kube_new(options, &x->kube, err);
}

/* Only pods that wait for a node are of interest, and nfd-master's, for the namespace it is in. */
static int open_service(struct extending *x, struct err *err)
{
    static const struct image_feed feeds[] = {
        { .kind = &node_kind },
        { .kind = &node_feature_kind },
        { .kind = &pod_kind, .fields = "spec.nodeName=" },
        { .kind = &node_feature_group_kind },
        { .kind = &pod_kind,
          .labels = "app.kubernetes.io/name=node-feature-discovery,role=master" },
        { .kind = &pod_kind, .labels = "app=nfd-master" },
    };
    struct image_service_options options = { .store = kube_store(x->kube),
                                             .clock = x->base.clock,
                                             .maybe_metrics = x->base.metrics,
                                             .maybe_log = x->base.log };
    if (image_setup_service(&x->images, options, err) < 0)
        return -1;
    bool groups = x->images.settings.nfg_mode != NFG_OFF;
    image_setup_feed(&x->images, &options, feeds, groups ? KV_COUNT_OF(feeds) : 3);
    return 0;
}

static int start(struct extending *x)
{
    const struct invocation *inv = x->base.inv;
    struct err err;
    int code;
    if ((code = image_setup_read(&x->images, inv)) != EXIT_DONE)
        return code;
    if (!image_setup_wanted(inv))
        return print_complaint("extender", EXIT_USAGE,
                               "--image-compatibility off: then there is nothing to do");
    if (read_pems(x, &x->cert, &x->key, &x->client_ca, &err) < 0)
        return complain(EXIT_ENVIRONMENT, &err);
    if ((code = kube_access_open(inv, x->base.clock, x->base.log, &x->access, &err)) != EXIT_DONE)
        return complain(code, &err);
    x->base.in_pod = kubeconfig_in_cluster(x->access);
    x->pool = object_pool_new();
    x->base.metrics = metrics_new(x->base.clock);
    control_metrics_build_info(x->base.metrics, STR(KARVE_VERSION), STR(KARVE_COMMIT));
    if ((code = image_setup_registry(&x->images, inv, x->base.clock, x->base.metrics,
                                     x->base.log)) != EXIT_DONE)
        return code;
    if (open_kube(x, &err) < 0 || open_service(x, &err) < 0)
        return complain(EXIT_ENVIRONMENT, &err);
    x->extender = extender_new((struct extender_options){ .service = x->images.maybe_service,
                                                          .pool = x->pool,
                                                          .maybe_metrics = x->base.metrics,
                                                          .maybe_log = x->base.log,
                                                          .clock = x->base.clock });
    return controller_serve(&x->base);
}

static int run(struct extending *x)
{
    const struct timespec pause = { .tv_sec = LOOK_S };
    for (uint32_t look = 1;; look++) {
        struct err err;
        if (!x->opened && image_setup_synced(&x->images)) {
            if (open_server(x, &err) < 0)
                return complain(err.kind == ERR_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT, &err);
            x->opened = true;
        } else if (!x->opened && look % TROUBLE_LOOKS == 0 &&
                   image_setup_trouble(&x->images, &err)) {
            log_warn(x->base.log, "the cluster cannot be read yet", LOG_ERR(&err));
        } else if (x->opened && look % CERTIFICATE_LOOKS == 0) {
            look_at_certificates(x);
        }
        int number = sigtimedwait(&x->signals, NULL, &pause);
        if (number == SIGINT || number == SIGTERM) {
            log_info(x->base.log, "stopping");
            return EXIT_DONE;
        }
    }
}

static void stop(struct extending *x)
{
    http_server_stop(x->server);
    controller_stop_serving(&x->base);
    if (x->kube)
        kube_cancel(x->kube);
    extender_free(x->extender);
    image_setup_done(&x->images);
    kube_free(x->kube);
    kubeconfig_free(x->access);
    if (x->base.metrics)
        metrics_free(x->base.metrics);
    if (x->pool)
        object_pool_free(x->pool);
    log_free(x->base.log);
    keep_pem(&x->cert, &(struct buf){ 0 });
    keep_pem(&x->key, &(struct buf){ 0 });
    keep_pem(&x->client_ca, &(struct buf){ 0 });
}

/* --- the scheduler's side --- */

static int print_configuration(const struct invocation *inv)
{
    AUTO_BUF out = { 0 };
    bool tls = flag_value(inv, "tls-cert") != NULL, client = flag_value(inv, "client-ca") != NULL;
    bool open = strcmp(flag_value(inv, "on-resolve-error"), "ignore") == 0;
    buf_addz(&out,
             "apiVersion: kubescheduler.config.k8s.io/v1\n"
             "kind: KubeSchedulerConfiguration\n"
             "# With --config the scheduler passes over its flag --kubeconfig: this is kubeadm's.\n"
             "clientConnection:\n"
             "  kubeconfig: /etc/kubernetes/scheduler.conf\n"
             "# Look at all nodes: those that suit an image may be few.\n"
             "percentageOfNodesToScore: 100\n"
             "extenders:\n");
    buf_addf(&out, "- urlPrefix: %s://%s:%s/scheduler\n", tls ? "https" : "http",
             flag_value(inv, "service"), flag_value(inv, "port"));
    buf_addz(&out, "  filterVerb: filter\n"
                   "  prioritizeVerb: prioritize\n"
                   "  preemptVerb: preempt\n"
                   "  weight: 1\n"
                   "  nodeCacheCapable: true\n"
                   "  httpTimeout: 500ms\n");
    buf_addf(&out, "  # %s\n  ignorable: %s\n",
             open ? "Without an answer pods are scheduled as if images asked for nothing."
                  : "Without an answer no pod is scheduled.",
             open ? "true" : "false");
    if (tls)
        buf_addf(&out,
                 "  enableHTTPS: true\n"
                 "  tlsConfig:\n"
                 "    caFile: /etc/karve/ca.crt\n%s",
                 client ? "    certFile: /etc/karve/client.crt\n"
                          "    keyFile: /etc/karve/client.key\n"
                        : "");
    return print_out(&out, "extender", EXIT_DONE);
}

static int run_extender(const struct invocation *inv)
{
    if (inv->args.count)
        return print_complaint("extender", EXIT_USAGE, "unexpected argument %s",
                               STR_SHOWN(str_of(inv->args.items[0])));
    if (flag_given(inv, "print-config"))
        return print_configuration(inv);
    struct extending x = { .base = {
                               .inv = inv, .clock = clock_real(), .ready = is_ready, .ctx = &x } };
    x.signals = controller_block_signals();
    controller_open_log(&x.base);
    int code = start(&x);
    if (code == EXIT_DONE)
        code = run(&x);
    stop(&x);
    return code;
}

static const char *const level_choices[] = { "error", "warn", "info", "debug", NULL };

static const struct flag flags[] = {
    KUBE_ACCESS_FLAGS,
    { .name = "port", .value = "PORT", .help = "where kube-scheduler asks", .dflt = "8443" },
    { .name = "bind-address",
      .value = "ADDRESS",
      .help = "the address of all ports; else 127.0.0.1, in a pod all of them" },
    { .name = "tls-cert",
      .value = "PATH",
      .help = "certificate of that port (PEM); without it it is plain HTTP",
      .files = true },
    { .name = "tls-key", .value = "PATH", .help = "and its key (PEM)", .files = true },
    { .name = "client-ca",
      .value = "PATH",
      .help = "who asks must show a certificate of this authority (PEM)",
      .files = true },
    IMAGE_SERVICE_FLAGS("on", "fail"),
    { .name = "print-config",
      .help = "print a KubeSchedulerConfiguration for these flags, and end" },
    { .name = "service",
      .value = "HOST",
      .help = "with --print-config: the name kube-scheduler reaches it by",
      .dflt = "karve-extender.karve.svc" },
    { .name = "metrics-port",
      .value = "PORT",
      .help = "where /metrics is served; 0: nowhere",
      .dflt = "8080" },
    { .name = "health-probe-port",
      .value = "PORT",
      .help = "where /healthz and /readyz are served; 0: nowhere",
      .dflt = "8081" },
    { .name = "log-level",
      .value = "LEVEL",
      .help = "what is logged, on stderr",
      .dflt = "info",
      .choices = level_choices },
};

const struct command extender_command = {
    .name = "extender",
    .summary = "keep pods off nodes that their images cannot run on",
    .args = "",
    .about =
        "Answers kube-scheduler (as an HTTP extender): of these nodes, which can run the pod's\n"
        "images? By the architectures they are built for, and by the compatibility artifacts that\n"
        "are attached to them in the registry: rules over what Node Feature Discovery says of\n"
        "nodes. Images are looked up when a pod appears, and remembered; a call of the scheduler\n"
        "waits for nobody. A node that does not fit is refused with the rule that says so.\n\n"
        "With --print-config it prints the scheduler's side of it.",
    .examples = "  karve extender --kubeconfig ~/.kube/config\n"
                "      on port 8443 of this machine, for a scheduler on it\n"
                "  karve extender --tls-cert tls.crt --tls-key tls.key --client-ca ca.crt\n"
                "      only for those with a certificate\n"
                "  karve extender --print-config --tls-cert x --service karve-extender.karve.svc\n"
                "      what to give to kube-scheduler --config\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_extender,
};
