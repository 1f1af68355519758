/* net/http.c - a client begins and ends; certificates are replaced.
 *
 * All of libcurl happens in one thread (http_io.c). Others hand it calls: a call is posted when it is
 * new, and again when nobody wants it any more. The thread is woken once for all that is posted while
 * it has not looked yet, so a small request costs two hand-overs: to the thread, and back. */
#include "base/thread.h"
#include "net/http_inner.h"

#define CONNECTIONS_MAX_DEFAULT 64
#define CONNECTIONS_KEPT_MAX 16

static void nudge_locked(struct http *http)
{
    if (http->nudged)
        return;
    http->nudged = true;
    libcurl.multi_wakeup(http->multi);
}

void http_post(struct http_call *call)
{
    struct http *http = call->http;
    pthread_mutex_lock(&http->lock);
    if (!call->posted) {
        rc_ref(&call->rc);
        call->posted = true;
        call->post_next = NULL;
        *(http->post_last ? &http->post_last->post_next : &http->post_first) = call;
        http->post_last = call;
        nudge_locked(http);
    }
    pthread_mutex_unlock(&http->lock);
}

static void warn_if_insecure(struct http *http, const struct http_trust *trust)
{
    if (trust->insecure)
        log_warn(http->log, "servers are believed without verifying their certificates: whoever "
                            "is in between can read and change everything");
}

static void http_done(struct http *http)
{
    while (http->slots) {
        struct http_slot *slot = http->slots;
        http->slots = slot->next;
        http_slot_free(slot);
    }
    if (http->multi)
        libcurl.multi_cleanup(http->multi);
    http_trust_unref(http->trust);
    pthread_mutex_destroy(&http->lock);
    free(http->user_agent);
    free(http->maybe_proxy);
    free(http);
}

int http_new(struct http_options options, struct http **out, struct err *err)
{
    if (curl_load(err) < 0)
        return -1;
    struct http *http = kv_calloc(1, sizeof *http);
    pthread_mutex_init(&http->lock, NULL);
    http->user_agent = kv_strdup(options.user_agent ? options.user_agent : "karve");
    http->maybe_proxy = options.proxy ? kv_strdup(options.proxy) : NULL;
    http->http1 = options.http1;
    http->may_connect = options.may_connect;
    http->may_connect_ctx = options.may_connect_ctx;
    http->log = options.log;
    http->earliest_ns = HTTP_NEVER;
    http->multi = libcurl.multi_init();
    uint32_t connections_max =
        options.connections_max > 0 ? options.connections_max : CONNECTIONS_MAX_DEFAULT;
    if (!http->multi) {
        err_set(err, ERR_UNAVAILABLE, "HTTP client: no file descriptors");
        goto fail;
    }
    libcurl.multi_setopt(http->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)connections_max);
    libcurl.multi_setopt(
        http->multi, CURLMOPT_MAXCONNECTS,
        (long)(connections_max < CONNECTIONS_KEPT_MAX ? connections_max : CONNECTIONS_KEPT_MAX));
    libcurl.multi_setopt(http->multi, CURLMOPT_PIPELINING, CURLPIPE_MULTIPLEX);
    if (http_trust_new(options.tls, &http->trust, err) < 0)
        goto fail;
    if (thread_start(&http->thread, "http", http_io_main, http, err) < 0)
        goto fail;
    warn_if_insecure(http, http->trust);
    *out = http;
    return 0;
fail:
    http_done(http);
    return -1;
}

void http_free(struct http *http)
{
    if (!http)
        return;
    pthread_mutex_lock(&http->lock);
    http->stopping = true;
    nudge_locked(http);
    pthread_mutex_unlock(&http->lock);
    pthread_join(http->thread, NULL);
    http_done(http);
}

int http_set_tls(struct http *http, struct http_tls tls, struct err *err)
{
    struct http_trust *trust;
    if (http_trust_new(tls, &trust, err) < 0)
        return -1;
    warn_if_insecure(http, trust);
    pthread_mutex_lock(&http->lock);
    struct http_trust *before = http->trust;
    http->trust = trust;
    pthread_mutex_unlock(&http->lock);
    http_trust_unref(before);
    return 0;
}
