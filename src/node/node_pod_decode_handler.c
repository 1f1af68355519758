/* Decoding of probes and hooks. Both hold one handler of several kinds; the tables of all kinds are
 * over the one struct handler, and which kind it is shows in the JSON. */
#include "node/node_pod_inner.h"

#define T struct handler_header
static const struct field header_fields[] = {
    FIELD(STR, name, "name", NULL),
    FIELD(STR, value, "value", NULL),
};
#undef T
static const struct schema header_schema =
    SCHEMA("HTTPHeader", struct handler_header, header_fields);

/* Ports, names or numbers, are settled. */
#define T struct handler
static const struct field exec_fields[] = { FIELD(STRS, command, "command", NULL) };
static const struct schema exec_schema = SCHEMA("ExecAction", T, exec_fields);

static const struct field http_fields[] = {
    FIELD(STR, path, "path", NULL),
    FIELD(STR, host, "host", NULL),
    FIELD(ENUM, https, "scheme", NULL, RULE(ENUMS("HTTPS"))),
    FIELD(LIST, headers, "httpHeaders", NULL, .sub = &header_schema),
};
static const struct schema http_schema = SCHEMA("HTTPGetAction", T, http_fields);

static const struct field tcp_fields[] = { FIELD(STR, host, "host", NULL) };
static const struct schema tcp_schema = SCHEMA("TCPSocketAction", T, tcp_fields);

static const struct field grpc_fields[] = { FIELD(STR, service, "service", NULL) };
static const struct schema grpc_schema = SCHEMA("GRPCAction", T, grpc_fields);

static const struct field sleep_fields[] = { FIELD(INT, sleep_s, "seconds", NULL) };
static const struct schema sleep_schema = SCHEMA("SleepAction", T, sleep_fields);

static const struct field handler_fields[] = {
    FLAT("exec", exec_schema), FLAT("httpGet", http_schema), FLAT("tcpSocket", tcp_schema),
    FLAT("grpc", grpc_schema), FLAT("sleep", sleep_schema),
};
#undef T
const struct schema node_handler_schema =
    SCHEMA("LifecycleHandler", struct handler, handler_fields);

#define T struct probe
static const struct field probe_fields[] = {
    FIELD(STRUCT, handler, "exec", NULL, .sub = &exec_schema),
    FIELD(STRUCT, handler, "httpGet", NULL, .sub = &http_schema),
    FIELD(STRUCT, handler, "tcpSocket", NULL, .sub = &tcp_schema),
    FIELD(STRUCT, handler, "grpc", NULL, .sub = &grpc_schema),
    FIELD(INT, initial_delay_s, "initialDelaySeconds", NULL),
    FIELD(INT, timeout_s, "timeoutSeconds", NULL),
    FIELD(INT, period_s, "periodSeconds", NULL),
    FIELD(INT, success_threshold, "successThreshold", NULL),
    FIELD(INT, failure_threshold, "failureThreshold", NULL),
    FIELD(MAYBE_INT, termination_grace_s, "terminationGracePeriodSeconds", NULL),
};
#undef T
const struct schema node_probe_schema = SCHEMA("Probe", struct probe, probe_fields);

/* --- settling --- */

/* In the order of enum handler_kind, from HANDLER_EXEC. */
static const char *const handler_names[] = {
    "exec", "httpGet", "tcpSocket", "grpc", "sleep", NULL
};

static int settle_port(const struct settling *at, struct handler *handler)
{
    struct settling port = settling_in(at, "port");
    if (json_is_string(port.json)) {
        handler->port_name = json_str(port.json);
        return handler->port_name.len ? 0 : settling_refuse(&port, "is empty");
    }
    if (!json_i64(port.json, &handler->port) || handler->port < 1 || handler->port > 65535)
        return settling_refuse(&port, "is not a port, expected 1 to 65535 or a port's name");
    return 0;
}

int settle_handler(const struct settling *at, struct handler *handler)
{
    handler->kind = json_which(at->json, handler_names);
    if (handler->kind == HANDLER_NONE)
        return 0;
    struct settling kind = settling_in(at, handler_names[handler->kind - 1]);
    switch ((enum handler_kind)handler->kind) {
    case HANDLER_NONE:
        break;
    case HANDLER_EXEC:
        return handler->command.count ? 0 : settling_refuse(&kind, "has no command");
    case HANDLER_SLEEP:
        return handler->sleep_s >= 0 ? 0 : settling_refuse(&kind, "is of less than no seconds");
    case HANDLER_HTTP:
        if (!handler->path.len)
            handler->path = STR("/");
        return settle_port(&kind, handler);
    case HANDLER_TCP:
    case HANDLER_GRPC:
        return settle_port(&kind, handler);
    }
    KV_UNREACHABLE();
}

static void default_to(int64_t *n, int64_t dflt)
{
    if (*n <= 0)
        *n = dflt;
}

int settle_probe(const struct settling *at, struct probe *probe)
{
    default_to(&probe->period_s, 10);
    default_to(&probe->timeout_s, 1);
    default_to(&probe->success_threshold, 1);
    default_to(&probe->failure_threshold, 3);
    return settle_handler(at, &probe->handler);
}
