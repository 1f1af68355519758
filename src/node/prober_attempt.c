/* An attempt is a small state machine that ends in a verdict:
 *
 *     command:    EXEC ----------------------------------------------> ENDED
 *     sleep:      SLEEP ---------------------------------------------> ENDED
 *     tcp:        [LOOKUP ->] CONNECT -------------------------------> ENDED
 *     http:       [LOOKUP ->] CONNECT -> SEND -> READ ---------------> ENDED
 *     https:      TLS -----------------------------------------------> ENDED
 *                 ^------------ redirect to the same host ----------'
 *
 * Failure is for what the container did: refused, answered wrongly, not in time. What we could not
 * even try is unknown, and a probe forgets it: a container must not be killed because its agent, or the
 * runtime, is in trouble. So also for gRPC, which this agent does not speak: with such a probe a
 * container never becomes ready, and is never killed.
 *
 * Of an answer only the head counts. As kubelets do, redirects are followed on the same host, also
 * between http and https, at most HOPS_MAX of them; one that leads elsewhere is an answer like any
 * other, and a good one. Certificates are not verified: pods make them up.
 *
 * What is in the clear is done here, on a socket that costs nothing. TLS is net/http's, whose library
 * takes megabytes: its client is made for the first attempt that needs it.
 */
#include "node/prober_attempt.h"

#include "node/prober_http.h"
#include "node/prober_lookup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES_MAX ((size_t)10 << 10) /* as much as kubelets read of an answer */
#define HOPS_MAX 10
#define RUNTIME_SLACK_NS ((int64_t)5 * 1000000000) /* to end a command that ran out of time */
#define NS_PER_S ((int64_t)1000000000)

enum attempt_state { LOOKUP, CONNECT, SEND, READ, TLS, EXEC, SLEEP, ENDED };

struct attempt {
    struct attempt_options opts; /* handler, container and texts only during the start */
    uint8_t kind;                /* enum handler_kind */
    uint8_t state;               /* enum attempt_state */
    uint8_t verdict;             /* enum probe_verdict, of ENDED */
    struct err err;
    int64_t deadline_ns; /* INT64_MAX: none */
    int64_t sleep_until_ns;
    struct cri_pending *exec;
    /* http and tcp */
    struct lookup *lookup;
    struct probe_target to; /* in `text`; the host as it was named */
    int fd;                 /* -1: none */
    uint32_t hops;
    struct probe_request http; /* in `text` */
    struct arena text;
    struct http_call *maybe_call; /* of TLS */
    atomic_bool has_head;         /* or has failed */
    struct buf request, answer;
    size_t sent;
};

/* --- ends --- */

static void end(struct attempt *a, enum probe_verdict verdict)
{
    a->verdict = (uint8_t)verdict;
    a->state = ENDED;
}

#define END_WITH(a, verdict, kind, ...) (err_set(&(a)->err, kind, __VA_ARGS__), end(a, verdict))
#define FAILED(a, ...) END_WITH(a, PROBE_FAILURE, ERR_UNAVAILABLE, __VA_ARGS__)
#define NOT_TRIED(a, kind, ...) END_WITH(a, PROBE_UNKNOWN, kind, __VA_ARGS__)

static void close_connection(struct attempt *a)
{
    if (a->fd >= 0)
        close(a->fd);
    a->fd = -1;
    http_call_free(a->maybe_call);
    a->maybe_call = NULL;
}

/* --- commands --- */

static void start_exec(struct attempt *a, struct str container_id, const struct handler *handler)
{
    AUTO_ARENA arena = { 0 };
    Cri__ExecSyncRequest request = CRI__EXEC_SYNC_REQUEST__INIT;
    request.container_id = (char *)(uintptr_t)arena_str(&arena, container_id).p;
    request.n_cmd = handler->command.count;
    request.cmd = arena_array(&arena, char *, handler->command.count + 1);
    for (uint32_t i = 0; i < handler->command.count; i++)
        request.cmd[i] = (char *)(uintptr_t)arena_str(&arena, handler->command.items[i]).p;
    /* The runtime ends the command; that it has is what we wait for. */
    int64_t timeout_ns = a->opts.timeout_ns;
    request.timeout = (timeout_ns + NS_PER_S - 1) / NS_PER_S;
    if (timeout_ns > 0) {
        timeout_ns = request.timeout * NS_PER_S + RUNTIME_SLACK_NS;
        a->deadline_ns = INT64_MAX;
    }
    a->state = EXEC;
    a->exec =
        cri_start(a->opts.cri, CRI_EXEC_SYNC, &request, timeout_ns, a->opts.wake, a->opts.ctx);
}

static void step_exec(struct attempt *a)
{
    if (!cri_ready(a->exec))
        return;
    AUTO_ARENA arena = { 0 };
    Cri__ExecSyncResponse *reply = NULL;
    struct err err;
    if (cri_take(a->exec, &arena, &reply, &err) < 0) {
        if (cri_pending_status(a->exec) == GRPC_DEADLINE_EXCEEDED)
            FAILED(a, "the command did not end in time");
        else
            NOT_TRIED(a, err.kind, "%s", err.text);
    } else if (reply->exit_code != 0) {
        struct str said = { (const char *)reply->stdout.data, reply->stdout.len };
        if (said.len == 0)
            said = (struct str){ (const char *)reply->stderr.data, reply->stderr.len };
        FAILED(a, "the command ended with exit code %d: %s", reply->exit_code,
               STR_SHOWN(str_trim(said)));
    } else {
        end(a, PROBE_SUCCESS);
    }
}

/* --- addresses and connections --- */

static void begin_connect(struct attempt *a, const struct sockaddr_storage *address)
{
    struct sockaddr_storage to = *address;
    socklen_t len;
    if (to.ss_family == AF_INET6) {
        ((struct sockaddr_in6 *)&to)->sin6_port = htons(a->to.port);
        len = sizeof(struct sockaddr_in6);
    } else {
        ((struct sockaddr_in *)&to)->sin_port = htons(a->to.port);
        len = sizeof(struct sockaddr_in);
    }
    a->fd = socket(to.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (a->fd < 0) {
        NOT_TRIED(a, ERR_UNAVAILABLE, "no socket: %s", strerror(errno));
        return;
    }
    a->state = CONNECT;
    if (connect(a->fd, (struct sockaddr *)&to, len) < 0 && errno != EINPROGRESS && errno != EINTR)
        FAILED(a, "%.*s port %u: %s", STR_ARG(a->to.host), a->to.port, strerror(errno));
}

static void find_address(struct attempt *a)
{
    struct sockaddr_storage address = { 0 };
    const char *host = a->to.host.p;
    if (str_eqz(a->to.host, "localhost"))
        host = "127.0.0.1";
    if (inet_pton(AF_INET, host, &((struct sockaddr_in *)&address)->sin_addr) == 1) {
        address.ss_family = AF_INET;
        begin_connect(a, &address);
    } else if (inet_pton(AF_INET6, host, &((struct sockaddr_in6 *)&address)->sin6_addr) == 1) {
        address.ss_family = AF_INET6;
        begin_connect(a, &address);
    } else if (!a->lookup) {
        a->state = LOOKUP;
        a->lookup = lookup_start(host, &a->err);
        if (!a->lookup)
            end(a, PROBE_UNKNOWN);
    } else { /* a redirect: the host is the same */
        a->state = LOOKUP;
    }
}

static void step_lookup(struct attempt *a)
{
    struct sockaddr_storage address;
    switch (lookup_take(a->lookup, &address)) {
    case LOOKUP_RUNS:
        return;
    case LOOKUP_FOUND:
        begin_connect(a, &address);
        return;
    case LOOKUP_FAILED:
        FAILED(a, "no address is known for %s", STR_SHOWN(a->to.host));
        return;
    }
    KV_UNREACHABLE();
}

/* --- HTTP --- */

static void on_head(void *ctx)
{
    struct attempt *a = ctx;
    atomic_store(&a->has_head, true);
    a->opts.wake(a->opts.ctx);
}

static void start_tls(struct attempt *a)
{
    struct str url = probe_url(&a->text, &a->to);
    if (!url.p) {
        NOT_TRIED(a, ERR_INVALID, "%s is no host", STR_SHOWN(a->to.host));
        return;
    }
    struct http_options options = { .proxy = "", .tls = { .insecure = true }, .http1 = true };
    if (!*a->opts.tls && http_new(options, a->opts.tls, &a->err) < 0) {
        end(a, PROBE_UNKNOWN);
        return;
    }
    a->state = TLS;
    atomic_store(&a->has_head, false);
    struct http_request request = { .method = "GET",
                                    .url = url,
                                    .headers = a->http.headers.items,
                                    .header_count = a->http.headers.count,
                                    .stream = true, /* the body is not waited for */
                                    .wake = on_head,
                                    .ctx = a };
    a->maybe_call = http_start(*a->opts.tls, &request);
}

static void start_http(struct attempt *a)
{
    if (a->to.https) {
        start_tls(a);
        return;
    }
    buf_clear(&a->request);
    buf_clear(&a->answer);
    a->sent = 0;
    probe_request_write(&a->http, &a->to, &a->request);
    find_address(a);
}

/* True: it went on, or ended. False: the redirect is an answer like any other. */
static bool follow(struct attempt *a, struct str location)
{
    if (!probe_redirect(&a->text, location, &a->to))
        return false;
    if (++a->hops > HOPS_MAX) {
        FAILED(a, "stopped after %d redirects", HOPS_MAX);
        return true;
    }
    close_connection(a);
    start_http(a);
    return true;
}

static void judge(struct attempt *a, const struct probe_answer *answer)
{
    if (answer->code == 0)
        FAILED(a, "the answer is not HTTP: %s", STR_SHOWN(buf_str(&a->answer)));
    else if (answer->location.p && follow(a, answer->location))
        return;
    else if (a->opts.any_answer || (answer->code >= 200 && answer->code < 400))
        end(a, PROBE_SUCCESS);
    else
        FAILED(a, "HTTP probe failed with statuscode: %d", answer->code);
}

/* --- steps on the socket --- */

static void step_connect(struct attempt *a)
{
    struct pollfd ready = { .fd = a->fd, .events = POLLOUT };
    if (poll(&ready, 1, 0) <= 0)
        return;
    int failed = 0;
    socklen_t len = sizeof failed;
    getsockopt(a->fd, SOL_SOCKET, SO_ERROR, &failed, &len);
    if (failed)
        FAILED(a, "%.*s port %u: %s", STR_ARG(a->to.host), a->to.port, strerror(failed));
    else if (a->kind == HANDLER_TCP)
        end(a, PROBE_SUCCESS);
    else
        a->state = SEND;
}

static void step_send(struct attempt *a)
{
    while (a->sent < a->request.len) {
        ssize_t n = send(a->fd, a->request.p + a->sent, a->request.len - a->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0)
            break; /* an answer may be there all the same */
        a->sent += (size_t)n;
    }
    a->state = READ;
}

static void step_read(struct attempt *a)
{
    for (;;) {
        char chunk[2048];
        ssize_t n = recv(a->fd, chunk, sizeof chunk, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n < 0) {
            FAILED(a, "%.*s port %u: %s", STR_ARG(a->to.host), a->to.port, strerror(errno));
            return;
        }
        buf_add(&a->answer, (struct str){ chunk, (size_t)n });
        struct probe_answer answer;
        if (probe_answer_read(buf_str(&a->answer), &answer)) {
            judge(a, &answer);
            return;
        }
        if (n == 0) {
            FAILED(a, "%.*s port %u: closed without an answer", STR_ARG(a->to.host), a->to.port);
            return;
        }
        if (a->answer.len > HEAD_BYTES_MAX) {
            FAILED(a, "the head of the answer is longer than %zu bytes", HEAD_BYTES_MAX);
            return;
        }
    }
}

static void step_tls(struct attempt *a)
{
    struct probe_answer answer = { 0 };
    struct err err;
    if (!atomic_load(&a->has_head))
        return;
    if (http_head(a->maybe_call, &answer.code, &err) < 0) {
        FAILED(a, "%s", err.text);
        return;
    }
    if (probe_is_redirect(answer.code))
        answer.location = http_reply_header(a->maybe_call, STR("Location"));
    judge(a, &answer);
}

/* --- the door --- */

static bool is_host(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] <= ' ' || s.p[i] > '~')
            return false;
    }
    return true;
}

static void start_socket(struct attempt *a, const struct attempt_options *opts)
{
    const struct handler *handler = opts->handler;
    struct str host = handler->host.len > 0 ? handler->host : opts->ip;
    int64_t port = handler_port(handler, opts->container);
    if (host.len == 0) {
        NOT_TRIED(a, ERR_UNAVAILABLE, "the pod has no address yet");
    } else if (!is_host(host)) {
        NOT_TRIED(a, ERR_INVALID, "%s is no host", STR_SHOWN(host));
    } else if (port < 1 || port > 65535) {
        if (handler->port_name.len > 0)
            NOT_TRIED(a, ERR_INVALID, "no port is named %s", STR_SHOWN(handler->port_name));
        else
            NOT_TRIED(a, ERR_INVALID, "port %lld: not from 1 to 65535", (long long)port);
    } else {
        a->to = (struct probe_target){ .host = arena_str(&a->text, host),
                                       .port = (uint16_t)port,
                                       .path = probe_path(&a->text, handler->path),
                                       .https = handler->https };
        if (a->kind == HANDLER_TCP)
            find_address(a);
        else if (probe_request_make(&a->text, handler, &a->http, &a->err) < 0)
            end(a, PROBE_UNKNOWN);
        else
            start_http(a);
    }
}

struct attempt *attempt_start(struct attempt_options options)
{
    struct attempt *a = kv_calloc(1, sizeof *a);
    a->opts = options;
    a->kind = options.handler->kind;
    a->fd = -1;
    int64_t now = clock_mono_ns(options.clock);
    a->deadline_ns = options.timeout_ns > 0 ? now + options.timeout_ns : INT64_MAX;
    switch ((enum handler_kind)a->kind) {
    case HANDLER_EXEC:
        start_exec(a, options.container_id, options.handler);
        break;
    case HANDLER_HTTP:
    case HANDLER_TCP:
        start_socket(a, &options);
        break;
    case HANDLER_SLEEP:
        a->state = SLEEP;
        a->sleep_until_ns = now + options.handler->sleep_s * NS_PER_S;
        break;
    case HANDLER_GRPC:
        NOT_TRIED(a, ERR_INVALID, "gRPC health checks are not spoken by this agent");
        break;
    case HANDLER_NONE:
        end(a, PROBE_SUCCESS);
        break;
    }
    a->opts.handler = NULL; /* borrowed for the call */
    a->opts.container = NULL;
    a->opts.container_id = a->opts.ip = STR_NONE;
    return a;
}

void attempt_free(struct attempt *a)
{
    if (!a)
        return;
    cri_pending_free(a->exec);
    lookup_free(a->lookup);
    close_connection(a);
    buf_done(&a->request);
    buf_done(&a->answer);
    arena_done(&a->text);
    free(a);
}

bool attempt_step(struct attempt *a)
{
    enum attempt_state before;
    do {
        before = a->state;
        switch (before) {
        case LOOKUP:
            step_lookup(a);
            break;
        case CONNECT:
            step_connect(a);
            break;
        case SEND:
            step_send(a);
            break;
        case READ:
            step_read(a);
            break;
        case TLS:
            step_tls(a);
            break;
        case EXEC:
            step_exec(a);
            break;
        case SLEEP:
            if (clock_mono_ns(a->opts.clock) >= a->sleep_until_ns)
                end(a, PROBE_SUCCESS);
            break;
        case ENDED:
            break;
        }
    } while (a->state != before && a->state != ENDED);
    if (a->state != ENDED && clock_mono_ns(a->opts.clock) >= a->deadline_ns)
        FAILED(a, "no answer within %.3g s", (double)a->opts.timeout_ns / 1e9);
    return a->state == ENDED;
}

struct pollfd attempt_poll(const struct attempt *a)
{
    switch ((enum attempt_state)a->state) {
    case LOOKUP:
        return (struct pollfd){ .fd = lookup_fd(a->lookup), .events = POLLIN };
    case CONNECT:
    case SEND:
        return (struct pollfd){ .fd = a->fd, .events = POLLOUT };
    case READ:
        return (struct pollfd){ .fd = a->fd, .events = POLLIN };
    case TLS:
    case EXEC:
    case SLEEP:
    case ENDED:
        break;
    }
    return (struct pollfd){ .fd = -1 };
}

int64_t attempt_until_ns(const struct attempt *a)
{
    if (a->state == ENDED)
        return 0;
    if (a->state == SLEEP && a->sleep_until_ns < a->deadline_ns)
        return a->sleep_until_ns;
    return a->deadline_ns;
}

enum probe_verdict attempt_verdict(const struct attempt *a)
{
    return a->verdict;
}

const struct err *attempt_error(const struct attempt *a)
{
    return &a->err;
}
