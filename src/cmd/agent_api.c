#include "cmd/agent_api.h"

#include "codec/duration.h"

#include <arpa/inet.h>

/* Requests a second, as kubelets have them. Heartbeats are not limited and have a connection of their
 * own: nothing may hold them up. */
#define KUBE_QPS 50
#define KUBE_BURST 100
#define HEARTBEAT_TIMEOUT_NS                                                                       \
    (8 * DURATION_SECOND) /* a Lease lasts forty, and is renewed every ten */

#define PODS_MAX_MAX 100000

const char *const agent_api_bools[] = { "true", "false", NULL };

bool agent_api_wanted(const struct invocation *inv)
{
    return flag_given(inv, "kubeconfig") || flag_given(inv, "context");
}

static int complain(int code, const struct err *err)
{
    return print_complaint("agent", code, "%s", err->text);
}

/* --- flags --- */

/* `max` addresses with commas between them; of one_of_each family one. */
static int read_ips(struct agent_api *api, const struct invocation *inv, const char *flag,
                    uint32_t max, bool one_of_each, struct str_list *out)
{
    const char *text = flag_value(inv, flag);
    struct str *ips = arena_array(&api->arena, struct str, max);
    struct str rest = str_of(text), ip;
    uint32_t count = 0, six = 0;
    bool more = text != NULL, good = true;
    while (more && good) {
        unsigned char bytes[16];
        struct str tail = STR("");
        more = str_cut(rest, ',', &ip, &tail);
        rest = tail;
        struct str kept = arena_str(&api->arena, str_trim(ip));
        bool is_six = inet_pton(AF_INET6, kept.p, bytes) == 1;
        good = count < max && (is_six || inet_pton(AF_INET, kept.p, bytes) == 1);
        six += is_six;
        if (good)
            ips[count++] = kept;
    }
    if (!good || (one_of_each && count == 2 && six != 1))
        return print_complaint("agent", EXIT_USAGE, "--%s %s: expected %s", flag,
                               STR_SHOWN(str_of(text)),
                               one_of_each ? "an address, or one of each family"
                                           : "addresses, with commas between them");
    *out = (struct str_list){ ips, count };
    return EXIT_DONE;
}

static int read_max_pods(const struct invocation *inv, int64_t *out)
{
    struct str text = str_of(flag_value(inv, "max-pods"));
    if (str_to_i64(text, out) && *out >= 1 && *out <= PODS_MAX_MAX)
        return EXIT_DONE;
    return print_complaint("agent", EXIT_USAGE, "--max-pods %s: expected a number from 1 to %d",
                           STR_SHOWN(text), PODS_MAX_MAX);
}

/* --- clients --- */

static int open_clients(struct agent_api *api, const struct clock *clock, struct log *log,
                        struct metrics *metrics)
{
    struct kube_options options = { .access = api->access,
                                    .pool = api->pool,
                                    .clock = clock,
                                    .maybe_metrics = metrics,
                                    .maybe_log = log,
                                    .user_agent = "karve-agent/" KARVE_VERSION,
                                    .qps = KUBE_QPS,
                                    .burst = KUBE_BURST,
                                    .seed = (uint64_t)clock_wall_us(clock) };
    struct err err;
    if (kube_new(options, &api->kube, &err) < 0)
        return complain(EXIT_ENVIRONMENT, &err);
    options.maybe_metrics = NULL;
    options.qps = 0;
    options.timeout_ns = HEARTBEAT_TIMEOUT_NS;
    options.patience_ns = HEARTBEAT_TIMEOUT_NS;
    if (kube_new(options, &api->heartbeats, &err) < 0)
        return complain(EXIT_ENVIRONMENT, &err);
    return EXIT_DONE;
}

int agent_api_open(struct agent_api *api, const struct invocation *inv, const struct clock *clock,
                   struct log *log, struct metrics *metrics, struct agent_options *options)
{
    struct node_api_options node = {
        .clock = clock,
        .log = log,
        .seed = (uint64_t)clock_wall_us(clock),
        .register_node = strcmp(flag_value(inv, "register-node"), "true") == 0,
        .labels = flag_value(inv, "node-labels"),
        .taints = flag_value(inv, "register-with-taints"),
        .provider_id = flag_value(inv, "provider-id"),
        .version = KARVE_VERSION,
        .root = options->root,
        .reserved = { flag_value(inv, "system-reserved"), flag_value(inv, "kube-reserved") },
    };
    struct err err;
    int code;
    if ((code = read_max_pods(inv, &node.pods_max)) != EXIT_DONE ||
        (code = read_ips(api, inv, "node-ip", 2, true, &options->node_ips)) != EXIT_DONE ||
        (code = read_ips(api, inv, "cluster-dns", 3, false, &options->dns_servers)) != EXIT_DONE)
        return code;
    options->dns_domain = flag_value(inv, "cluster-domain");
    code = kube_access_open(inv, clock, log, &api->access, &err);
    if (code != EXIT_DONE)
        return complain(code, &err);
    api->pool = object_pool_new();
    if ((code = open_clients(api, clock, log, metrics)) != EXIT_DONE)
        return code;
    node.store = kube_store(api->kube);
    node.maybe_heartbeats = kube_store(api->heartbeats);
    if (node_api_new(node, &api->node, &err) < 0)
        return complain(err.kind == ERR_INVALID ? EXIT_USAGE : EXIT_ENVIRONMENT, &err);
    node_api_wire(api->node, options);
    log_info(log, "the API server", LOG_Z("server", kubeconfig_server(api->access)),
             LOG_Z("context", kubeconfig_context(api->access)));
    return EXIT_DONE;
}

/* --- the end --- */

void agent_api_stop(struct agent_api *api)
{
    if (api->kube)
        kube_cancel(api->kube);
    if (api->heartbeats)
        kube_cancel(api->heartbeats);
    if (api->node)
        node_api_stop(api->node);
}

void agent_api_close(struct agent_api *api)
{
    node_api_free(api->node);
    kube_free(api->heartbeats);
    kube_free(api->kube);
    if (api->pool)
        object_pool_free(api->pool);
    kubeconfig_free(api->access);
    arena_done(&api->arena);
}
