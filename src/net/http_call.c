/* net/http_call.c - the caller's side of a call: what is asked for, waiting, taking.
 *
 * What is wrong with a request is found here, and travels with the call to the I/O thread like any
 * other failure, so that there is one way in which a call ends. */
#include "net/http_inner.h"

#include <stdio.h>

#define SPARE_BYTES_MAX ((size_t)64 << 10) /* a burst's memory is not kept */

void http_call_fail(struct http_call *call, enum err_kind kind, const char *fmt, ...)
{
    if (call->maybe_failure)
        return;
    char text[ERR_TEXT_MAX];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    call->maybe_failure = kv_calloc(1, sizeof *call->maybe_failure);
    err_set(call->maybe_failure, kind, "%s", text);
}

/* --- asking --- */

static void add_header(struct http_call *call, const char *line)
{
    struct curl_slist *longer = libcurl.slist_append(call->headers, line);
    KV_ASSERT(longer);
    call->headers = longer;
}

static bool has_header(const struct http_request *request, const char *name)
{
    for (uint32_t i = 0; i < request->header_count; i++) {
        struct str it = request->headers[i].name;
        if (it.len == strlen(name) && strncasecmp(it.p, name, it.len) == 0)
            return true;
    }
    return false;
}

static void copy_headers(struct http_call *call, const struct http_request *request)
{
    AUTO_BUF line = { 0 };
    for (uint32_t i = 0; i < request->header_count; i++) {
        const struct http_header *header = &request->headers[i];
        buf_clear(&line);
        buf_add(&line, header->name);
        if (!header->value.p) {
            buf_addc(&line, ':'); /* libcurl's way to leave out one of its own */
        } else if (str_trim(header->value).len > 0) {
            buf_addz(&line, ": ");
            buf_add(&line, header->value);
        } else {
            buf_addc(&line, ';'); /* libcurl's way to write an empty value */
        }
        add_header(call, line.p);
    }
    /* libcurl would ask before it sends a long body, and call a body a form. */
    add_header(call, "Expect:");
    if (!has_header(request, "Content-Type"))
        add_header(call, "Content-Type:");
}

/* libcurl verifies the name in the URL: so that one is replaced, and led to where it was. */
static void rename_server(struct http_call *call, const struct http_request *request,
                          const struct http_url *url)
{
    struct str name = call->trust->server_name;
    AUTO_BUF host = { 0 };
    AUTO_BUF text = { 0 };
    buf_addf(&host, str_find(name, ':') >= 0 ? "[%.*s]:%u" : "%.*s:%u", STR_ARG(name), url->port);

    buf_addf(&text, "https://%s%.*s", host.p, STR_ARG(url->rest));
    call->maybe_renamed = buf_take(&text);
    buf_addf(&text, "%s:%.*s:%u", host.p, STR_ARG(url->host), url->port);
    call->connect_to = libcurl.slist_append(NULL, text.p);
    KV_ASSERT(call->connect_to);
    if (!has_header(request, "Host")) {
        buf_clear(&text);
        buf_addf(&text, "Host: %.*s", STR_ARG(url->authority));
        add_header(call, text.p);
    }
}

static struct str copy_body(struct str body)
{
    return body.p ? (struct str){ str_dup(body), body.len } : STR_NONE;
}

static int prepare(struct http_call *call, const struct http_request *request, struct err *err)
{
    struct http_url url;
    if (http_request_check(request, err) < 0 || http_url_parse(request->url, &url, err) < 0)
        return -1;
    call->tls = url.tls;
    call->method = kv_strdup(request->method);
    call->url = str_dup(request->url);
    call->body = copy_body(request->body);
    copy_headers(call, request);
    if (url.tls && call->trust->server_name.p)
        rename_server(call, request, &url);
    return 0;
}

struct http_call *http_start(struct http *http, const struct http_request *request)
{
    struct http_call *call = kv_calloc(1, sizeof *call);
    call->http = http;
    rc_init(&call->rc);
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->moved, NULL);
    call->timeout_ns = request->timeout_ns;
    call->idle_timeout_ns = request->idle_timeout_ns;
    call->body_bytes_max = request->body_bytes_max ? request->body_bytes_max : HTTP_BODY_BYTES_MAX;
    call->stream_bytes_max =
        request->stream_bytes_max ? request->stream_bytes_max : HTTP_STREAM_BYTES_MAX;
    call->stream = request->stream;
    call->wake = request->wake;
    call->ctx = request->ctx;

    pthread_mutex_lock(&http->lock);
    call->trust = http_trust_ref(http->trust);
    pthread_mutex_unlock(&http->lock);

    struct err err = { 0 };
    if (prepare(call, request, &err) < 0)
        http_call_fail(call, err.kind, "%s", err.text);
    rc_ref(&call->rc); /* the I/O thread's */
    http_post(call);
    return call;
}

/* --- waiting and taking --- */

static int result_locked(struct http_call *call, struct err *err)
{
    if (call->cancelled)
        return err_set(err, ERR_CANCELLED, "the call was cancelled");
    if (call->maybe_error) {
        if (err)
            *err = *call->maybe_error;
        return -1;
    }
    return 0;
}

int http_finish(struct http_call *call, struct http_reply *reply, struct err *err)
{
    KV_ASSERT(!call->stream);
    pthread_mutex_lock(&call->lock);
    while (!call->ended && !call->cancelled)
        pthread_cond_wait(&call->moved, &call->lock);
    int rc = result_locked(call, err);
    if (rc == 0)
        *reply = (struct http_reply){ .status = call->status, .body = buf_str(&call->body_in) };
    pthread_mutex_unlock(&call->lock);
    return rc;
}

int http_head(struct http_call *call, int *status, struct err *err)
{
    pthread_mutex_lock(&call->lock);
    while (!call->head_done && !call->ended && !call->cancelled)
        pthread_cond_wait(&call->moved, &call->lock);
    int rc = call->head_done && !call->cancelled ? 0 : result_locked(call, err);
    if (rc == 0)
        *status = call->status;
    pthread_mutex_unlock(&call->lock);
    return rc;
}

enum http_took http_take(struct http_call *call, struct buf *out, struct err *err)
{
    KV_ASSERT(call->stream);
    pthread_mutex_lock(&call->lock);
    if (call->body_in.len == 0 || call->cancelled) {
        enum http_took took = result_locked(call, err) < 0 ? HTTP_FAILED
                              : call->ended                ? HTTP_ENDED
                                                           : HTTP_NOTHING;
        call->hungry = took == HTTP_NOTHING;
        pthread_mutex_unlock(&call->lock);
        return took;
    }
    struct buf got = call->body_in;
    call->body_in = call->spare;
    pthread_mutex_unlock(&call->lock);

    if (out->len == 0) { /* the usual case: no byte is copied */
        struct buf empty = *out;
        *out = got;
        got = empty;
    } else {
        buf_add(out, buf_str(&got));
    }
    if (got.cap > SPARE_BYTES_MAX)
        buf_done(&got);
    else
        buf_clear(&got);
    call->spare = got;
    return HTTP_BYTES;
}

struct str http_reply_header(struct http_call *call, struct str name)
{
    return http_reply_header_at(call, name, 0);
}

struct str http_reply_header_at(struct http_call *call, struct str name, uint32_t ix)
{
    pthread_mutex_lock(&call->lock);
    struct str head = call->head_done ? buf_str(&call->head) : STR_NONE;
    pthread_mutex_unlock(&call->lock);
    return http_head_find_at(head, name, ix);
}

int64_t http_retry_after_ns(struct http_call *call, int64_t wall_us)
{
    return http_retry_after_parse(http_reply_header(call, STR("Retry-After")), wall_us);
}

bool http_call_sent(struct http_call *call)
{
    pthread_mutex_lock(&call->lock);
    bool sent = !call->ended || call->send_count > 0;
    pthread_mutex_unlock(&call->lock);
    return sent;
}

/* --- ending --- */

void http_cancel(struct http_call *call)
{
    pthread_mutex_lock(&call->lock);
    bool runs = !call->ended && !call->cancelled;
    if (runs) {
        call->cancelled = true;
        pthread_cond_broadcast(&call->moved);
    }
    pthread_mutex_unlock(&call->lock);
    if (runs)
        http_post(call);
}

void http_call_unref(struct http_call *call)
{
    if (!rc_unref(&call->rc))
        return;
    http_trust_unref(call->trust);
    libcurl.slist_free_all(call->headers);
    libcurl.slist_free_all(call->connect_to);
    pthread_mutex_destroy(&call->lock);
    pthread_cond_destroy(&call->moved);
    buf_done(&call->head);
    buf_done(&call->body_in);
    buf_done(&call->spare);
    free(call->method);
    free(call->url);
    free(call->maybe_renamed);
    free((char *)call->body.p);
    free(call->maybe_failure);
    free(call);
}

void http_call_free(struct http_call *call)
{
    if (!call)
        return;
    pthread_mutex_lock(&call->lock);
    call->disowned = true;
    while (call->waking)
        pthread_cond_wait(&call->moved, &call->lock);
    bool runs = !call->ended;
    pthread_mutex_unlock(&call->lock);
    if (runs)
        http_post(call);
    http_call_unref(call);
}

int http_do(struct http *http, const struct http_request *request, int *status, struct buf *out,
            struct err *err)
{
    struct http_reply reply;
    AUTO(http_call) call = http_start(http, request);
    if (http_finish(call, &reply, err) < 0)
        return -1;
    *status = reply.status;
    buf_add(out, reply.body);
    return 0;
}
