/* karve controller: the control plane in real time, against a real API server (controller_kube.c) or
 * with --embedded on a store and a cloud of its own (controller_embedded.c). Here is what both have:
 * settings, metrics and probes, the log, the flags.
 */
#include "cmd/controller_inner.h"

#include "cmd/image_setup.h"
#include "cmd/kube_access.h"
#include "cmd/types_load.h"
#include "control/settings.h"

#include <unistd.h>

int controller_complain(int code, const struct err *err)
{
    return print_complaint("controller", code, "%s", err->text);
}

int controller_read_settings(struct controller *c)
{
    c->settings = control_settings_default;
    for (uint32_t i = 0; i < control_setting_count; i++) {
        const char *name = control_setting_table[i].name, *value = flag_value(c->inv, name);
        struct err err;
        if (value && control_setting_parse(&c->settings, str_of(name), str_of(value), &err) < 0)
            return print_complaint("controller", EXIT_USAGE, "--%s: %s", name, err.text);
    }
    return EXIT_DONE;
}

void controller_open_log(struct controller *c)
{
    enum log_level level = LOG_LEVEL_INFO;
    log_level_parse(str_of(flag_value(c->inv, "log-level")), &level);
    c->log =
        log_new((struct log_options){ .clock = c->clock, .fd = STDERR_FILENO, .level = level });
}

sigset_t controller_block_signals(void)
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    return signals;
}

static int read_port(struct controller *c, const char *flag, uint16_t *out)
{
    const char *text = flag_value(c->inv, flag);
    int64_t number;
    if (!str_to_i64(str_of(text), &number) || number < 0 || number > UINT16_MAX)
        return print_complaint(c->inv->command->name, EXIT_USAGE,
                               "--%s %s: expected a port, or 0 for none", flag,
                               STR_SHOWN(str_of(text)));
    *out = (uint16_t)number;
    return EXIT_DONE;
}

/* --- HTTP --- */

static void serve_health(void *ctx KV_UNUSED, const struct served_request *request KV_UNUSED,
                         struct served_reply *reply)
{
    buf_addz(&reply->body, "ok\n");
}

static void serve_ready(void *ctx, const struct served_request *request KV_UNUSED,
                        struct served_reply *reply)
{
    struct controller *c = ctx;
    struct err why;
    if (c->ready(c->ctx, &why)) {
        buf_addz(&reply->body, "ok\n");
        return;
    }
    reply->status = 503;
    buf_addf(&reply->body, "%s\n", why.text);
}

static void serve_metrics(void *ctx, const struct served_request *request KV_UNUSED,
                          struct served_reply *reply)
{
    struct controller *c = ctx;
    reply->content_type = METRICS_CONTENT_TYPE;
    metrics_write(c->metrics, &reply->body);
}

static int serve(struct controller *c, uint16_t port, const struct http_route *routes,
                 uint32_t count, struct http_server **out)
{
    const char *address = flag_value(c->inv, "bind-address");
    struct http_server_options options = { .address = address     ? address
                                                      : c->in_pod ? ""
                                                                  : "127.0.0.1",
                                           .port = port,
                                           .routes = routes,
                                           .route_count = count };
    struct err err;
    if (!port || http_server_start(options, out, &err) == 0)
        return EXIT_DONE;
    return print_complaint(c->inv->command->name,
                           err.kind == ERR_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT, "%s", err.text);
}

int controller_serve(struct controller *c)
{
    const struct http_route routes[] = {
        { .path = "/metrics", .handle = serve_metrics, .ctx = c },
        { .path = "/healthz", .handle = serve_health, .ctx = c },
        { .path = "/readyz", .handle = serve_ready, .ctx = c },
    };
    uint16_t metrics_port, probe_port;
    int code;
    if ((code = read_port(c, "metrics-port", &metrics_port)) != EXIT_DONE ||
        (code = read_port(c, "health-probe-port", &probe_port)) != EXIT_DONE)
        return code;
    if (metrics_port == probe_port)
        return serve(c, metrics_port, routes, 3, &c->metrics_server);
    if ((code = serve(c, metrics_port, routes, 1, &c->metrics_server)) != EXIT_DONE)
        return code;
    return serve(c, probe_port, routes + 1, 2, &c->probe_server);
}

void controller_stop_serving(struct controller *c)
{
    http_server_stop(take(&c->probe_server));
    http_server_stop(take(&c->metrics_server));
}

static int run_controller(const struct invocation *inv)
{
    const char *folder = flag_value(inv, "embedded");
    if (inv->args.count)
        return print_complaint("controller", EXIT_USAGE, "unexpected argument %s",
                               STR_SHOWN(str_of(inv->args.items[0])));
    return folder ? controller_run_embedded(inv, folder) : controller_run_kube(inv);
}

/* --- the table --- */

static const char *const provider_choices[] = { "kwok", NULL };
static const char *const level_choices[] = { "error", "warn", "info", "debug", NULL };
static const char *const preference_choices[] = { "Respect", "Ignore", NULL };
static const char *const min_values_choices[] = { "Strict", "BestEffort", NULL };
static const char *const health_choices[] = { "first-success", "window", NULL };

static const struct flag flags[] = {
    KUBE_ACCESS_FLAGS,
    { .name = "provider",
      .value = "NAME",
      .help = "what launches nodes; kwok: Node objects without machines",
      .dflt = "kwok",
      .choices = provider_choices },
    { .name = "dry-run", .help = "decide and explain in the log, write nothing" },
    { .name = "leader-elect",
      .value = "BOOL",
      .help = "of several replicas only one acts: the one that holds the lease",
      .dflt = "true",
      .choices = bool_choices },
    { .name = "disable-leader-election",
      .help = "the same as --leader-elect=false",
      .karpenter_env = true },
    { .name = "leader-election-name",
      .value = "NAME",
      .help = "of the Lease; Karpenter's own, so that the two never act side by side",
      .dflt = "karpenter-leader-election",
      .karpenter_env = true },
    { .name = "leader-election-namespace",
      .value = "NAME",
      .help = "of the Lease; else the pod's own, or kube-system",
      .dflt = "",
      .karpenter_env = true },
    { .name = "kube-client-qps",
      .value = "COUNT",
      .help = "requests a second to the API server, on average",
      .dflt = "200",
      .karpenter_env = true },
    { .name = "kube-client-burst",
      .value = "COUNT",
      .help = "and at once",
      .dflt = "300",
      .karpenter_env = true },
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
    IMAGE_SERVICE_FLAGS("on", "ignore"),
    IMAGE_LAUNCH_FLAGS,
    { .name = "metrics-port",
      .value = "PORT",
      .help = "where /metrics is served; 0: nowhere",
      .dflt = "8080",
      .karpenter_env = true },
    { .name = "health-probe-port",
      .value = "PORT",
      .help = "where /healthz and /readyz are served; 0: nowhere",
      .dflt = "8081",
      .karpenter_env = true },
    { .name = "bind-address",
      .value = "ADDRESS",
      .help = "the address of both; else 127.0.0.1, in a pod all of them" },
    /* The names of control/settings.h. */
    { .name = "batch-idle-duration",
      .value = "DURATION",
      .help = "plan once no new pod has come for so long",
      .dflt = "1s",
      .karpenter_env = true },
    { .name = "batch-max-duration",
      .value = "DURATION",
      .help = "plan after so long even if pods keep coming",
      .dflt = "10s",
      .karpenter_env = true },
    { .name = "preference-policy",
      .value = "POLICY",
      .help = "whether preferred terms count for as long as they can be met, or not at all",
      .dflt = "Respect",
      .choices = preference_choices,
      .karpenter_env = true },
    { .name = "min-values-policy",
      .value = "POLICY",
      .help = "whether minValues that cannot be met stand in the way",
      .dflt = "Strict",
      .choices = min_values_choices,
      .karpenter_env = true },
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
      .dflt = "NodeRepair=false,NodeOverlay=true",
      .karpenter_env = true },
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
      .choices = level_choices,
      .karpenter_env = true },
};

const struct command controller_command = {
    .name = "controller",
    .summary = "run the control plane",
    .args = "",
    .about =
        "Runs the control plane: launches nodes for pending pods, watches over them, takes them\n"
        "down. It talks to the API server of the kubeconfig's context or, in a pod, of its cluster.\n"
        "Of several replicas one acts, the one that holds the lease. With --dry-run it reads the\n"
        "cluster, logs what it would do, and writes nothing.\n\n"
        "Images of pending pods are looked up in their registries: what is launched has an\n"
        "architecture that they are built for and, for images of --launch-repositories, what their\n"
        "compatibility artifacts ask for.\n\n"
        "With --embedded it needs no cluster: the manifests of a folder (workloads, NodePools, node\n"
        "classes, ...) are put into a store in memory, a simulated cloud boots nodes in real time,\n"
        "and a small scheduler binds pods. Files are looked at once a second: what is new in them is\n"
        "applied, what is gone from them is deleted. On a terminal a table shows how things are;\n"
        "otherwise log lines say what happens. With --state the store is saved every ten seconds and\n"
        "at the end, and loaded at the start.\n\n"
        "It serves Prometheus metrics and probes, and ends cleanly on SIGINT and SIGTERM. Flags that\n"
        "Karpenter has too can be set by Karpenter's environment variables: METRICS_PORT.",
    .examples = "  karve controller --context staging --dry-run\n"
                "      what it would do in that cluster, without doing it\n"
                "  karve controller --provider kwok\n"
                "      in the current cluster, with nodes that are only objects\n"
                "  karve controller --embedded examples/shop\n"
                "      a shop, with nodes that take half a minute to come\n"
                "  karve controller --embedded shop --state shop.state --boot-delay 2s\n"
                "      quicker, and where it ended the next start goes on\n"
                "  curl -s localhost:8080/metrics | grep karpenter_nodeclaims\n"
                "      what it counts\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_controller,
};
