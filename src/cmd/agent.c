/* karve agent: the node agent, and its local API on a unix socket. */
#include "node/agent.h"
#include "base/footprint.h"
#include "cmd/agent_api.h"
#include "cmd/local_api.h"
#include "codec/duration.h"
#include "net/http_server.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define NEWER_THAN_WAIT_NS (10 * DURATION_SECOND) /* then the client asks again */

struct running {
    const struct invocation *inv;
    const struct clock *clock;
    struct log *log;
    struct metrics *metrics;
    struct agent *agent;
    struct agent_api api;
    struct http_server *server;
    struct http_server *maybe_metrics_server;
};

static int complain(int code, const struct err *err)
{
    return print_complaint("agent", code, "%s", err->text);
}

/* --- the local API --- */

static void reply_error(struct served_reply *reply, int status, const char *text)
{
    reply->status = status;
    buf_addf(&reply->body, "%s\n", text);
}

static void serve_pods(void *ctx, const struct served_request *request KV_UNUSED,
                       struct served_reply *reply)
{
    struct running *r = ctx;
    reply->content_type = "application/json";
    agent_pods_json(r->agent, &reply->body);
    buf_addc(&reply->body, '\n');
}

/* The value of `name` in "a=1&b=2"; numbers need no decoding. */
static struct str query_get(struct str query, struct str name)
{
    while (query.len) {
        struct str pair, key, value, rest = STR("");
        str_cut(query, '&', &pair, &rest);
        if (str_cut(pair, '=', &key, &value) && str_eq(key, name))
            return value;
        query = rest;
    }
    return STR_NONE;
}

static void serve_pod(void *ctx, const struct served_request *request, struct served_reply *reply)
{
    struct running *r = ctx;
    struct str uid = str_sub(request->path, strlen("/pods/"), request->path.len);
    struct str text = query_get(request->query, STR("newerThan"));
    int64_t newer_than_ns = -1;
    struct err err;
    if (text.p && (!str_to_i64(text, &newer_than_ns) || newer_than_ns < 0)) {
        reply_error(reply, 400, "newerThan: expected a `time` that an earlier answer gave");
        return;
    }
    int64_t until_ns = clock_mono_ns(r->clock) + NEWER_THAN_WAIT_NS;
    if (agent_pod_json(r->agent, uid, newer_than_ns, until_ns, &reply->body, &err)) {
        reply->content_type = "application/json";
        buf_addc(&reply->body, '\n');
    } else {
        reply_error(reply, err.kind == ERR_NOT_FOUND ? 404 : 503, err.text);
    }
}

struct event_stream {
    struct running *r;
    struct event_sub *sub;
    bool follow;
};

/* A line for each event, and for those that were lost because the reader is slow. */
static int next_events(void *ctx, struct buf *piece)
{
    struct event_stream *stream = ctx;
    struct event_hub *hub = agent_events(stream->r->agent);
    int64_t now_ns = clock_mono_ns(stream->r->clock);
    int64_t until_ns = stream->follow ? now_ns + DURATION_SECOND / 2 : 0;
    struct pod_event event;
    uint64_t lost = 0;
    while (event_sub_next(stream->sub, until_ns, &event, &lost) == 1) {
        if (lost)
            buf_addf(piece, "{\"lost\":%llu}\n", (unsigned long long)lost);
        lost = 0;
        pod_event_json(&event, piece);
        buf_addc(piece, '\n');
        until_ns = 0; /* and what else is there, without waiting */
    }
    return stream->follow && !event_hub_closed(hub) ? 1 : 0;
}

static void end_events(void *ctx)
{
    struct event_stream *stream = ctx;
    event_sub_free(stream->sub);
    free(stream);
}

/* From now on; with ?since=NUMBER first those after it that are kept; with &follow=false no others. */
static void serve_events(void *ctx, const struct served_request *request,
                         struct served_reply *reply)
{
    struct running *r = ctx;
    struct str since_text = query_get(request->query, STR("since"));
    struct str follow = query_get(request->query, STR("follow"));
    int64_t since = INT64_MAX; /* none has such a number */
    if (since_text.p && (!str_to_i64(since_text, &since) || since < 0)) {
        reply_error(reply, 400, "since: expected the `number` of an event, or 0");
        return;
    }
    if (follow.p && !str_eqz(follow, "true") && !str_eqz(follow, "false")) {
        reply_error(reply, 400, "follow: expected true or false");
        return;
    }
    struct event_stream *stream = kv_calloc(1, sizeof *stream);
    stream->r = r;
    stream->sub = event_sub_new_since(agent_events(r->agent), (uint64_t)since, NULL, NULL);
    stream->follow = !str_eqz(follow, "false");
    reply->content_type = "application/x-ndjson";
    reply->stream =
        (struct served_stream){ .next = next_events, .done = end_events, .ctx = stream };
}

static void serve_metrics(void *ctx, const struct served_request *request KV_UNUSED,
                          struct served_reply *reply)
{
    struct running *r = ctx;
    reply->content_type = METRICS_CONTENT_TYPE;
    metrics_write(r->metrics, &reply->body);
}

static void serve_health(void *ctx, const struct served_request *request KV_UNUSED,
                         struct served_reply *reply)
{
    struct running *r = ctx;
    struct err why;
    if (agent_healthy(r->agent, &why))
        buf_addz(&reply->body, "ok\n");
    else
        reply_error(reply, 503, why.text);
}

static int start_server(struct running *r)
{
    const struct http_route routes[] = {
        { .path = "/pods", .handle = serve_pods, .ctx = r },
        { .path = "/pods/", .handle = serve_pod, .ctx = r },
        { .path = "/events", .handle = serve_events, .ctx = r },
        { .path = "/metrics", .handle = serve_metrics, .ctx = r },
        { .path = "/healthz", .handle = serve_health, .ctx = r },
    };
    struct err err;
    AUTO_BUF path = { 0 };
    if (local_api_path(flag_value(r->inv, "listen"), &path, &err) < 0)
        return complain(EXIT_USAGE, &err);
    if (local_api_is_default(flag_value(r->inv, "listen")) && mkdir(LOCAL_API_FOLDER, 0700) < 0 &&
        errno != EEXIST)
        log_warn(r->log, "no folder for the socket", LOG_Z("folder", LOCAL_API_FOLDER));
    struct http_server_options options = { .unix_path = path.p,
                                           .routes = routes,
                                           .route_count = KV_COUNT_OF(routes) };
    if (http_server_start(options, &r->server, &err) < 0)
        return complain(err.kind == ERR_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT, &err);
    log_info(r->log, "the local API listens", LOG_STR("socket", buf_str(&path)));
    return EXIT_DONE;
}

/* For those who scrape: over TCP there is nothing of pods beyond names and numbers. */
static int start_metrics_server(struct running *r, uint16_t port)
{
    const struct http_route routes[] = {
        { .path = "/metrics", .handle = serve_metrics, .ctx = r },
        { .path = "/healthz", .handle = serve_health, .ctx = r },
    };
    struct http_server_options options = { .address = flag_value(r->inv, "bind-address"),
                                           .port = port,
                                           .routes = routes,
                                           .route_count = KV_COUNT_OF(routes) };
    struct err err;
    if (port != 0 && http_server_start(options, &r->maybe_metrics_server, &err) < 0)
        return complain(err.kind == ERR_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT, &err);
    return EXIT_DONE;
}

/* --- flags --- */

static int read_duration(const struct running *r, const char *flag, int64_t *out)
{
    const char *text = flag_value(r->inv, flag);
    struct err err;
    if (duration_parse(str_of(text), out, &err) == 0 && *out > 0)
        return EXIT_DONE;
    return print_complaint("agent", EXIT_USAGE, "--%s %s: expected a duration such as 1s", flag,
                           STR_SHOWN(str_of(text)));
}

static int read_port(const struct running *r, const char *flag, uint16_t *out)
{
    struct str text = str_of(flag_value(r->inv, flag));
    int64_t port;
    if (!str_to_i64(text, &port) || port < 0 || port > UINT16_MAX)
        return print_complaint("agent", EXIT_USAGE, "--%s %s: expected a port, or 0 for none", flag,
                               STR_SHOWN(text));
    *out = (uint16_t)port;
    return EXIT_DONE;
}

static int start(struct running *r)
{
    const struct invocation *inv = r->inv;
    struct agent_options options = {
        .endpoint = flag_value(inv, "runtime-endpoint"),
        .manifests = flag_value(inv, "manifests"),
        .node_name = flag_value(inv, "node-name"),
        .root = flag_value(inv, "root-dir"),
        .log_root = flag_value(inv, "pod-logs-dir"),
        .container_log_root = flag_value(inv, "container-logs-dir"),
        .run_pods = flag_given(inv, "run-pods"),
        .no_hints = flag_given(inv, "no-events"),
        .cgroup_driver = strcmp(flag_value(inv, "cgroup-driver"), "systemd") == 0 ? CGROUP_SYSTEMD
                         : strcmp(flag_value(inv, "cgroup-driver"), "cgroupfs") == 0 ? CGROUP_FS
                                                                                     : CGROUP_ASK,
        .seed = (uint64_t)clock_wall_us(r->clock),
        .clock = r->clock,
        .log = r->log,
        .metrics = r->metrics,
    };
    struct err err;
    uint16_t metrics_port = 0;
    int code;
    if ((code = read_port(r, "metrics-port", &metrics_port)) != EXIT_DONE ||
        (code = read_duration(r, "relist-period", &options.relist_period_ns)) != EXIT_DONE ||
        (code = read_duration(r, "backoff-initial", &options.backoff_initial_ns)) != EXIT_DONE ||
        (code = read_duration(r, "backoff-max", &options.backoff_max_ns)) != EXIT_DONE)
        return code;
    if (options.manifests && !options.run_pods)
        return print_complaint("agent", EXIT_USAGE,
                               "--manifests needs --run-pods: without it the agent only observes");
    if (agent_api_wanted(inv) && !options.run_pods)
        return print_complaint("agent", EXIT_USAGE,
                               "--kubeconfig needs --run-pods: an agent that only observes has no "
                               "Node, and nothing to do with an API server");
    if (agent_api_wanted(inv) &&
        (code = agent_api_open(&r->api, inv, r->clock, r->log, r->metrics, &options)) != EXIT_DONE)
        return code;
    if (agent_start(options, &r->agent, &err) < 0 ||
        (r->api.node && node_api_start(r->api.node, r->agent, &err) < 0))
        return complain(err.kind == ERR_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT, &err);
    log_info(r->log, "started", LOG_Z("runtime", options.endpoint),
             LOG_BOOL("runsPods", options.run_pods));
    code = start_metrics_server(r, metrics_port);
    return code != EXIT_DONE ? code : start_server(r);
}

/* After a moment the first relist is over, which inspects every pod and takes more than any other. */
static void wait_for_end(const sigset_t *signals)
{
    int number;
    if (sigtimedwait(signals, NULL, &(struct timespec){ .tv_sec = 1 }) >= 0)
        return;
    footprint_trim();
    sigwait(signals, &number);
}

static int run_agent(const struct invocation *inv)
{
    if (inv->args.count)
        return print_complaint("agent", EXIT_USAGE, "unexpected argument %s",
                               STR_SHOWN(str_of(inv->args.items[0])));
    footprint_begin();
    struct running r = { .inv = inv, .clock = clock_real() };
    enum log_level level = LOG_LEVEL_INFO;
    log_level_parse(str_of(flag_value(inv, "log-level")), &level);
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* before any thread starts */
    signal(SIGPIPE, SIG_IGN);
    r.log = log_new((struct log_options){ .clock = r.clock, .fd = STDERR_FILENO, .level = level });
    r.metrics = metrics_new(r.clock);
    int code = start(&r);
    if (code == EXIT_DONE) {
        wait_for_end(&signals);
        log_info(r.log, "stopping; pods go on running");
    }
    if (r.agent)
        event_hub_close(agent_events(r.agent)); /* streams end, so that the server can */
    http_server_stop(r.server);
    http_server_stop(r.maybe_metrics_server);
    agent_api_stop(&r.api);
    agent_stop(r.agent);
    agent_api_close(&r.api);
    metrics_free(r.metrics);
    log_free(r.log);
    return code;
}

static const char *const driver_choices[] = { "auto", "cgroupfs", "systemd", NULL };
static const char *const level_choices[] = { "error", "warn", "info", "debug", NULL };

static const struct flag flags[] = {
    { .name = "runtime-endpoint",
      .value = "unix://PATH",
      .help = "the container runtime's socket",
      .dflt = "unix:///run/containerd/containerd.sock" },
    { .name = "listen",
      .value = "unix://PATH",
      .help = "the local API's socket, for root alone",
      .dflt = LOCAL_API_DEFAULT },
    { .name = "metrics-port",
      .value = "PORT",
      .help = "where /metrics and /healthz are served over TCP; 0: nowhere",
      .dflt = "0" },
    { .name = "bind-address",
      .value = "ADDRESS",
      .help = "the address of that port; \"\" for all of them",
      .dflt = "127.0.0.1" },
    { .name = "run-pods", .help = "run pods; without it the agent changes nothing" },
    { .name = "manifests",
      .value = "DIR",
      .help = "folder of static pods, one manifest a file; watched",
      .files = true },
    { .name = "node-name", .value = "NAME", .help = "this node's name; the host's if not given" },
    { .name = "kubeconfig",
      .value = "PATH",
      .help = "be a node of the cluster that this file names",
      .files = true },
    { .name = "context", .value = "NAME", .help = "which of its contexts; else the current one" },
    AGENT_API_FLAGS,
    { .name = "relist-period",
      .value = "DURATION",
      .help = "how often the runtime is asked for all its pods",
      .dflt = "1s" },
    { .name = "no-events", .help = "do not listen to the runtime's own events" },
    { .name = "backoff-initial",
      .value = "DURATION",
      .help = "first wait before a container that failed twice is started again; it doubles",
      .dflt = "10s" },
    { .name = "backoff-max", .value = "DURATION", .help = "the longest such wait", .dflt = "5m" },
    { .name = "root-dir",
      .value = "DIR",
      .help = "where the volumes of pods are",
      .dflt = "/var/lib/karve",
      .files = true },
    { .name = "pod-logs-dir",
      .value = "DIR",
      .help = "where the runtime writes the logs of containers",
      .dflt = "/var/log/pods",
      .files = true },
    { .name = "container-logs-dir",
      .value = "DIR",
      .help = "where links to the logs are made, as log collectors expect",
      .dflt = "/var/log/containers",
      .files = true },
    { .name = "cgroup-driver",
      .value = "DRIVER",
      .help = "how the runtime makes control groups; auto asks it",
      .dflt = "auto",
      .choices = driver_choices },
    { .name = "log-level",
      .value = "LEVEL",
      .help = "what is logged",
      .dflt = "info",
      .choices = level_choices },
};

const struct command agent_command = {
    .name = "agent",
    .summary = "run the node agent: what runs on this node, and static pods",
    .args = "",
    .about =
        "Keeps the status of every pod that the container runtime knows in a cache, current by a\n"
        "relist every second and by the runtime's own events in between, and tells what changed.\n"
        "`karve pods` and `karve events` show it, and so does any HTTP client on the socket: /pods,\n"
        "/pods/UID (with ?newerThan=TIME it waits for news), /events (with ?since=NUMBER also what\n"
        "happened after that event, as far as it is kept), /metrics, /healthz.\n"
        "\n"
        "By default it only observes: it never changes anything, and is safe beside a kubelet. With\n"
        "--run-pods it runs the pods of --manifests itself: sandboxes, init containers, sidecars,\n"
        "restarts with back-off, probes, hooks, termination. Pods that another agent runs on the\n"
        "same runtime are left alone. When the agent ends, pods go on running; when it comes back,\n"
        "it takes them up again.\n"
        "\n"
        "With --kubeconfig as well it is a node of a cluster: it registers a Node, renews its Lease,\n"
        "runs the pods that are bound to it and tells their statuses. While the API server is away\n"
        "pods go on running.",
    .examples =
        "  karve agent\n"
        "      observe containerd on this node\n"
        "  karve agent --run-pods --manifests /etc/karve/manifests\n"
        "      run the static pods of a folder\n"
        "  karve agent --run-pods --kubeconfig /etc/karve/kubeconfig --node-labels disk=ssd\n"
        "      be a node of a cluster\n"
        "  curl --unix-socket /run/karve/agent.sock http://localhost/pods\n"
        "      ask the local API\n",
    .flags = flags,
    .flag_count = KV_COUNT_OF(flags),
    .run = run_agent,
};
