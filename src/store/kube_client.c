/* store/kube_client.c - a request, again if that makes sense, and what it came to.
 *
 *     credential --> rate limit --> net/http --> 2xx: the answer
 *         ^                            |
 *         +--- 401, once --------------+-----> again after a pause, or an error
 *
 * What is tried again: a read, whenever no whole reply came or the server is in trouble (5xx, 429);
 * a write only if it cannot have been carried out: it never left us, or the server turned it away
 * at the door (429, or 503 with a Retry-After). The budget that refuses an eviction answers 429,
 * too, but will not change its mind in a minute: that is the caller's to know. Pauses double, with
 * jitter, unless the server says how long; all of it ends when the patience does.
 */
#include "store/kube_client.h"

#include "base/rng.h"
#include "base/vec.h"
#include "net/rate_limit.h"
#include "store/kube_told.h"

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define TIMEOUT_NS (30 * SECOND_NS)
#define PATIENCE_NS (60 * SECOND_NS)
#define PAUSE_MIN_NS (SECOND_NS / 5)
#define PAUSE_MAX_NS (10 * SECOND_NS)
#define ATTEMPTS_MAX 4         /* when the server does not say that it will be back */
#define ATTEMPTS_ASKED_MAX 10  /* when it does */
#define REFUSAL_BYTES_MAX 8192 /* of a stream that was refused: enough for its message */
#define HEADERS_MAX 4          /* and those of impersonation */

struct kube_client {
    struct kubeconfig *access;
    const struct clock *clock;
    struct log *maybe_log;
    struct http *http;
    struct rate_limit *rate;
    char *server, *host;
    int64_t timeout_ns, write_timeout_ns, patience_ns;
    bool (*may_write)(void *ctx); /* NULL: always */
    void *may_write_ctx;
    struct metric_family *maybe_requests, *maybe_seconds;
    struct told warned;

    pthread_mutex_t lock; /* a leaf; guards: */
    pthread_cond_t stop;  /* `cancelled` was set */
    bool cancelled;
    VEC(struct http_call *) calls; /* under way, for whoever cancels */
    struct rng rng;

    pthread_mutex_t tls_lock; /* guards the next, and the order of http_set_tls */
    uint64_t tls_generation;  /* that net/http has */
};

/* --- the client --- */

static char *host_of(const char *url)
{
    struct str rest = str_of(url), scheme, host;
    const char *slashes = strstr(url, "://");

    if (slashes)
        rest = str_of(slashes + 3);
    str_cut(rest, '/', &host, &scheme);
    return str_dup(host);
}

static void add_metrics(struct kube_client *c, struct metrics *m)
{
    static const char *const request_labels[] = { "code", "host", "method", NULL };
    static const char *const seconds_labels[] = { "host", "verb", NULL };
    static const double buckets[] = { 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60 };

    c->maybe_requests = metrics_family(
        m, &(struct metric_desc){ .name = "rest_client_requests_total",
                                  .help = "Requests to the API server, by status code, method and "
                                          "host.",
                                  .type = METRIC_COUNTER,
                                  .labels = request_labels });
    c->maybe_seconds = metrics_family(
        m, &(struct metric_desc){ .name = "rest_client_request_duration_seconds",
                                  .help = "Seconds until the API server's reply, by verb and host.",
                                  .type = METRIC_HISTOGRAM,
                                  .labels = seconds_labels,
                                  .buckets = buckets,
                                  .bucket_count = KV_COUNT_OF(buckets) });
}

int kube_client_new(struct kube_client_options options, struct kube_client **out, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct http_options http = {
        .user_agent = options.user_agent,
        .proxy = kubeconfig_proxy(options.access),
        .log = options.maybe_log,
    };
    struct http *made = NULL;

    uint64_t tls_generation = kubeconfig_tls(options.access, &arena, &http.tls);
    if (http_new(http, &made, err) < 0)
        return err_wrap(err, "%s", kubeconfig_server(options.access));

    struct kube_client *c = kv_calloc(1, sizeof *c);
    c->access = options.access;
    c->clock = options.clock;
    c->maybe_log = options.maybe_log;
    c->http = made;
    c->rate = rate_limit_new(options.clock, options.qps, options.burst);
    c->server = kv_strdup(kubeconfig_server(options.access));
    c->host = host_of(c->server);
    c->timeout_ns = options.timeout_ns > 0 ? options.timeout_ns : TIMEOUT_NS;
    c->write_timeout_ns = options.write_timeout_ns > 0 ? options.write_timeout_ns : c->timeout_ns;
    c->patience_ns = options.patience_ns > 0 ? options.patience_ns : PATIENCE_NS;
    c->may_write = options.may_write;
    c->may_write_ctx = options.may_write_ctx;
    c->tls_generation = tls_generation;
    if (options.maybe_metrics)
        add_metrics(c, options.maybe_metrics);
    told_init(&c->warned);
    rng_init(&c->rng, options.seed);
    pthread_mutex_init(&c->lock, NULL);
    pthread_mutex_init(&c->tls_lock, NULL);
    clock_cond_init(&c->stop);
    *out = c;
    return 0;
}

void kube_client_free(struct kube_client *c)
{
    if (!c)
        return;
    KV_ASSERT(c->calls.count == 0);
    vec_done(&c->calls);
    http_free(c->http);
    rate_limit_free(c->rate);
    told_done(&c->warned);
    free(c->server);
    free(c->host);
    pthread_cond_destroy(&c->stop);
    pthread_mutex_destroy(&c->tls_lock);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

uint64_t kube_client_random(struct kube_client *c, uint64_t below)
{
    pthread_mutex_lock(&c->lock);
    uint64_t n = rng_below(&c->rng, below);
    pthread_mutex_unlock(&c->lock);
    return n;
}

/* --- cancelling --- */

void kube_client_cancel(struct kube_client *c)
{
    pthread_mutex_lock(&c->lock);
    c->cancelled = true;
    vec_each(&c->calls, struct http_call *, call)
        http_cancel(*call);
    pthread_cond_broadcast(&c->stop);
    pthread_mutex_unlock(&c->lock);
}

static struct http_call *call_start(struct kube_client *c, const struct http_request *request)
{
    struct http_call *call = http_start(c->http, request);

    pthread_mutex_lock(&c->lock);
    vec_push(&c->calls, call);
    if (c->cancelled)
        http_cancel(call);
    pthread_mutex_unlock(&c->lock);
    return call;
}

/* Nobody cancels it any more. */
static void call_forget(struct kube_client *c, const struct http_call *call)
{
    size_t ix = 0;

    pthread_mutex_lock(&c->lock);
    while (c->calls.items[ix] != call)
        ix++;
    c->calls.items[ix] = vec_last(&c->calls);
    c->calls.count--;
    pthread_mutex_unlock(&c->lock);
}

/* False: it was cancelled. */
static bool wait_ns(struct kube_client *c, int64_t ns)
{
    int64_t until_ns = clock_mono_ns(c->clock) + ns;

    pthread_mutex_lock(&c->lock);
    while (!c->cancelled && clock_mono_ns(c->clock) < until_ns)
        clock_wait(c->clock, &c->stop, &c->lock, until_ns);
    bool cancelled = c->cancelled;
    pthread_mutex_unlock(&c->lock);
    return !cancelled;
}

/* --- one attempt --- */

/* What one attempt came to, beside its error. */
struct outcome {
    int status; /* 0: no whole reply came */
    bool sent;
    bool budget;
    int64_t retry_after_ns; /* -1: it does not say */
};

/* A request as net/http wants it. */
struct attempt {
    struct arena arena;
    struct kube_credential credential;
    struct http_header *headers;
    struct http_request http;
};

static void attempt_done(struct attempt *a)
{
    arena_done(&a->arena);
}

static int set_tls(struct kube_client *c, uint64_t generation, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct http_tls tls = { 0 };
    int rc = 0;

    pthread_mutex_lock(&c->tls_lock);
    if (generation > c->tls_generation) {
        generation = kubeconfig_tls(c->access, &arena, &tls);
        rc = http_set_tls(c->http, tls, err);
        if (rc == 0)
            c->tls_generation = generation;
    }
    pthread_mutex_unlock(&c->tls_lock);
    return rc;
}

static void add_header(struct attempt *a, struct str name, struct str value)
{
    a->headers[a->http.header_count++] = (struct http_header){ name, value };
}

static bool is_read(const struct kube_request *request)
{
    return strcmp(request->method, "GET") == 0;
}

static int attempt_prepare(struct kube_client *c, const struct kube_request *request,
                           struct attempt *a, struct err *err)
{
    const char *type = request->content_type ? request->content_type : "application/json";

    if (kubeconfig_credential(c->access, &a->arena, &a->credential, err) < 0 ||
        set_tls(c, a->credential.tls_generation, err) < 0)
        return err_wrap(err, "credential for %s", c->server);
    a->headers =
        arena_array(&a->arena, struct http_header, HEADERS_MAX + a->credential.impersonate_count);
    a->http = (struct http_request){
        .method = request->method,
        .url = arena_strf(&a->arena, "%s%.*s", c->server, STR_ARG(request->path)),
        .headers = a->headers,
        .body = request->body,
        .timeout_ns = is_read(request) ? c->timeout_ns : c->write_timeout_ns,
    };
    add_header(a, STR("Accept"), STR("application/json"));
    if (a->credential.authorization.len > 0)
        add_header(a, STR("Authorization"), a->credential.authorization);
    if (request->body.p)
        add_header(a, STR("Content-Type"), str_of(type));
    if (!kubeconfig_compression(c->access))
        add_header(a, STR("Accept-Encoding"), STR("identity"));
    for (uint32_t i = 0; i < a->credential.impersonate_count; i++)
        add_header(a, a->credential.impersonate[i].name, a->credential.impersonate[i].value);

    if (!wait_ns(c, rate_limit_take(c->rate))) {
        rate_limit_give_back(c->rate);
        return err_set(err, ERR_CANCELLED, "cancelled");
    }
    return 0;
}

static void measure(struct kube_client *c, const char *method, int status, int64_t ns)
{
    char code[16];
    struct str host = str_of(c->host), verb = str_of(method);

    if (!c->maybe_requests)
        return;
    if (status)
        snprintf(code, sizeof code, "%d", status);
    struct str coded = status ? str_of(code) : STR("<error>");
    AUTO(metric) requests = metric_get(c->maybe_requests, (struct str[]){ coded, host, verb });
    AUTO(metric) seconds = metric_get(c->maybe_seconds, (struct str[]){ host, verb });
    metric_inc(requests);
    metric_observe(seconds, (double)ns / 1e9);
}

/* A deprecated API says so in a header: Warning: 299 - "text". */
static void pass_on_warning(struct kube_client *c, struct http_call *call)
{
    struct str warning = http_reply_header(call, STR("Warning"));

    if (str_starts(warning, STR("299")) && told_first(&c->warned, warning))
        log_warn(c->maybe_log, "the API server warns", LOG_STR("warning", warning));
}

/* The reply's head has come. Negative: it says no, `body` why. */
static int judge(struct kube_client *c, const struct attempt *a, struct http_call *call,
                 struct str body, struct outcome *out, struct err *err)
{
    out->sent = true;
    out->retry_after_ns = http_retry_after_ns(call, clock_wall_us(c->clock));
    pass_on_warning(c, call);
    if (out->status / 100 == 2)
        return 0;
    if (out->status == 401)
        kubeconfig_refused(c->access, a->credential.authorization);
    if (out->status / 100 == 3)
        return err_set(err, ERR_INVALID, "%s: redirected to %s, which is not followed", c->server,
                       STR_SHOWN(http_reply_header(call, STR("Location"))));
    kube_refusal(out->status, body, &out->budget, err);
    return out->status == 401 ? err_wrap(err, "%s does not take our credential", c->host) : -1;
}

static int try_once(struct kube_client *c, const struct kube_request *request, int64_t end_ns,
                    struct outcome *out, struct kube_answer *answer, struct err *err)
{
    __attribute__((cleanup(attempt_done))) struct attempt a = { 0 };
    struct http_reply reply = { 0 };

    *out = (struct outcome){ .retry_after_ns = -1 };
    if (attempt_prepare(c, request, &a, err) < 0)
        return -1;
    if (!is_read(request) && c->may_write && !c->may_write(c->may_write_ctx))
        return err_set(err, ERR_CANCELLED, "writing is no longer allowed");
    int64_t start_ns = clock_mono_ns(c->clock), left_ns = end_ns - start_ns;
    if (left_ns < a.http.timeout_ns)
        a.http.timeout_ns = left_ns > SECOND_NS ? left_ns : SECOND_NS;

    AUTO(http_call) call = call_start(c, &a.http);
    int rc = http_finish(call, &reply, err);
    call_forget(c, call);
    out->status = rc == 0 ? reply.status : 0;
    out->sent = http_call_sent(call);
    measure(c, request->method, out->status, clock_mono_ns(c->clock) - start_ns);
    if (rc < 0 || judge(c, &a, call, reply.body, out, err) < 0)
        return -1;
    *answer = (struct kube_answer){ reply.body, take(&call) };
    return 0;
}

/* --- again? --- */

static bool is_transient(const struct kube_request *request, const struct outcome *o,
                         const struct err *err)
{
    bool reads = is_read(request);

    if (o->status == 0)
        return err->kind == ERR_UNAVAILABLE && (reads || !o->sent);
    if (o->status == 429)
        return !o->budget;
    if (o->status >= 500)
        return reads || (o->status == 503 && o->retry_after_ns >= 0);
    return false;
}

/* How long to wait before the next attempt; -1: there is none. */
static int64_t pause_before(struct kube_client *c, const struct kube_request *request,
                            const struct outcome *o, uint32_t failures, const struct err *err)
{
    bool asked = o->retry_after_ns >= 0;
    int64_t pause_ns = PAUSE_MIN_NS;

    if (request->once || !is_transient(request, o, err) ||
        failures >= (asked ? ATTEMPTS_ASKED_MAX : ATTEMPTS_MAX))
        return -1;
    for (uint32_t i = 1; i < failures && pause_ns < PAUSE_MAX_NS; i++)
        pause_ns *= 2;
    pause_ns = pause_ns / 2 + (int64_t)kube_client_random(c, (uint64_t)pause_ns / 2 + 1);
    /* At least as long as asked: a little more keeps those apart who were turned away together. */
    return asked ? o->retry_after_ns + pause_ns / 4 : pause_ns;
}

int kube_client_do(struct kube_client *c, const struct kube_request *request,
                   struct kube_answer *out, struct err *err)
{
    int64_t end_ns = clock_mono_ns(c->clock) + c->patience_ns;
    uint32_t failures = 0;
    bool renewed = false;
    struct outcome o;

    while (try_once(c, request, end_ns, &o, out, err) < 0) {
        if (o.status == 401 && !renewed) {
            renewed = true;
            continue;
        }
        int64_t pause_ns = pause_before(c, request, &o, ++failures, err);
        if (pause_ns < 0 || pause_ns >= end_ns - clock_mono_ns(c->clock))
            return -1;
        log_debug(c->maybe_log, "asking the API server again", LOG_Z("method", request->method),
                  LOG_STR("path", request->path), LOG_DURATION("pause", pause_ns), LOG_ERR(err));
        if (!wait_ns(c, pause_ns))
            return err_set(err, ERR_CANCELLED, "cancelled");
    }
    return 0;
}

void kube_answer_done(struct kube_answer *answer)
{
    http_call_free(answer->call);
    *answer = (struct kube_answer){ 0 };
}

/* --- streams --- */

struct kube_stream {
    struct kube_client *c;
    struct http_call *call;
    void (*wake)(void *ctx);
    void *ctx;

    pthread_mutex_t lock; /* guards the next */
    bool opening, woken;  /* while it opens, its wakes are for the one who opens it */
    pthread_cond_t moved;
};

static void stream_wake(void *ctx)
{
    struct kube_stream *s = ctx;

    pthread_mutex_lock(&s->lock);
    bool opening = s->opening;
    s->woken = true;
    pthread_cond_signal(&s->moved);
    pthread_mutex_unlock(&s->lock);
    if (!opening && s->wake)
        s->wake(s->ctx);
}

enum http_took kube_stream_take(struct kube_stream *stream, struct buf *out, struct err *err)
{
    return http_take(stream->call, out, err);
}

void kube_stream_free(struct kube_stream *s)
{
    if (!s)
        return;
    if (s->call) {
        call_forget(s->c, s->call);
        http_call_free(s->call);
    }
    pthread_cond_destroy(&s->moved);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
KV_AUTO_TYPE(kube_stream, kube_stream_free)

static struct kube_stream *stream_new(struct kube_client *c)
{
    struct kube_stream *s = kv_calloc(1, sizeof *s);
    s->c = c;
    s->opening = true;
    pthread_mutex_init(&s->lock, NULL);
    clock_cond_init(&s->moved);
    return s;
}

/* What a stream that was refused says, as far as it comes in time. */
static void read_refusal(struct kube_stream *s, struct buf *body)
{
    int64_t until_ns = clock_mono_ns(clock_real()) + s->c->timeout_ns;
    enum http_took took;
    struct err ignored;

    do {
        pthread_mutex_lock(&s->lock);
        s->woken = false;
        pthread_mutex_unlock(&s->lock);
        took = http_take(s->call, body, &ignored);
        pthread_mutex_lock(&s->lock);
        while (took == HTTP_NOTHING && !s->woken && clock_mono_ns(clock_real()) < until_ns)
            clock_wait(clock_real(), &s->moved, &s->lock, until_ns);
        pthread_mutex_unlock(&s->lock);
    } while ((took == HTTP_BYTES || took == HTTP_NOTHING) && body->len < REFUSAL_BYTES_MAX &&
             clock_mono_ns(clock_real()) < until_ns);
}

static int stream_try(struct kube_stream *s, const struct kube_request *request,
                      int64_t idle_timeout_ns, struct outcome *out, struct err *err)
{
    struct kube_client *c = s->c;
    __attribute__((cleanup(attempt_done))) struct attempt a = { 0 };
    AUTO_BUF body = { 0 };

    *out = (struct outcome){ .retry_after_ns = -1 };
    if (attempt_prepare(c, request, &a, err) < 0)
        return -1;
    a.http.stream = true;
    a.http.idle_timeout_ns = idle_timeout_ns;
    a.http.wake = stream_wake;
    a.http.ctx = s;
    int64_t start_ns = clock_mono_ns(c->clock);
    s->call = call_start(c, &a.http);
    int rc = http_head(s->call, &out->status, err);
    measure(c, request->method, out->status, clock_mono_ns(c->clock) - start_ns);
    if (rc < 0)
        return -1;
    if (out->status / 100 != 2)
        read_refusal(s, &body);
    return judge(c, &a, s->call, buf_str(&body), out, err);
}

int kube_client_stream(struct kube_client *c, const struct kube_request *request,
                       int64_t idle_timeout_ns, void (*wake)(void *ctx), void *ctx,
                       struct kube_stream **out, struct err *err)
{
    struct outcome o = { 0 };

    for (int tries = 0; tries < 2 && (tries == 0 || o.status == 401); tries++) {
        AUTO(kube_stream) s = stream_new(c);
        s->wake = wake;
        s->ctx = ctx;
        if (stream_try(s, request, idle_timeout_ns, &o, err) < 0)
            continue;
        pthread_mutex_lock(&s->lock);
        s->opening = false;
        pthread_mutex_unlock(&s->lock);
        *out = take(&s);
        return 0;
    }
    return -1;
}
