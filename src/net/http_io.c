/* net/http_io.c - the thread that talks to libcurl.
 *
 * A turn of its loop: look at what was posted (start what is new, drop what is unwanted), let libcurl
 * work, end the calls that are done or late, tell those who wait, sleep until something happens.
 *
 * Telling comes after libcurl has worked off all that had arrived: a reader is woken once for a
 * burst, and not for each piece of it. A reader that has not come back to find nothing left is not
 * woken at all.
 *
 * A call is ended here and nowhere else, outside of libcurl's callbacks: those only note what is wrong
 * and let libcurl stop the transfer.
 *
 * Deadlines are ours, since libcurl times no transfer that waits for a connection. `earliest_ns` is
 * never after a deadline, and may be of a call that has ended or was given more time: the calls are
 * looked through when it has come. */
#include "net/http_inner.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define SLOTS_KEPT_MAX 8
#define RESERVE_BYTES_MAX ((curl_off_t)16 << 20) /* of what a reply only claims to hold */
#define CONNECT_TIMEOUT_MS 30000L
/* A peer that is gone without a word: first question after 15 s of silence, given up when nothing was
 * acknowledged for 30 s. */
#define KEEPALIVE_IDLE_S 15
#define KEEPALIVE_INTERVAL_S 5
#define UNACKNOWLEDGED_MS_MAX 30000

/* --- telling --- */

static void tell(struct http_call *call)
{
    struct http *http = call->http;
    if (call->told)
        return;
    call->told = true;
    call->told_next = NULL;
    *(http->told_last ? &http->told_last->told_next : &http->told_first) = call;
    http->told_last = call;
}

static void wake_owner(struct http_call *call)
{
    pthread_mutex_lock(&call->lock);
    pthread_cond_broadcast(&call->moved);
    bool wakes = call->wake && !call->disowned;
    call->waking = wakes;
    pthread_mutex_unlock(&call->lock);
    if (!wakes)
        return;
    call->wake(call->ctx);
    pthread_mutex_lock(&call->lock);
    call->waking = false;
    pthread_cond_broadcast(&call->moved); /* who frees it may be waiting */
    pthread_mutex_unlock(&call->lock);
}

static void tell_all(struct http *http)
{
    while (http->told_first) {
        struct http_call *call = http->told_first;
        http->told_first = call->told_next;
        if (!http->told_first)
            http->told_last = NULL;
        call->told = false;
        wake_owner(call);
        if (call->finished)
            http_call_unref(call);
    }
}

/* --- what libcurl calls; `ctx` is the slot --- */

static bool may_connect(struct http_call *call, const struct sockaddr *address)
{
    struct http *http = call->http;
    struct http_url url = { 0 };
    if (!http->may_connect)
        return true;
    http_url_parse(str_of(call->url), &url, NULL); /* it was fine when the call began */
    if (http->may_connect(http->may_connect_ctx, url.host, address))
        return true;
    call->address_refused = true;
    return false;
}

static curl_socket_t on_open_socket(void *ctx, curlsocktype purpose KV_UNUSED,
                                    struct curl_sockaddr *address)
{
    if (!may_connect(((struct http_slot *)ctx)->call, &address->addr))
        return CURL_SOCKET_BAD;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    if (fd < 0)
        return CURL_SOCKET_BAD;
    unsigned timeout_ms = UNACKNOWLEDGED_MS_MAX;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    return fd;
}

/* libcurl sends a request again when a kept connection turns out to be closed before the first byte
 * of an answer. The server may have acted all the same. */
static int on_before_send(void *ctx, char *ip KV_UNUSED, char *local_ip KV_UNUSED,
                          int port KV_UNUSED, int local_port KV_UNUSED)
{
    struct http_call *call = ((struct http_slot *)ctx)->call;
    bool harmless = strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0;
    if (call->send_count++ == 0 || harmless)
        return CURL_PREREQFUNC_OK;
    http_call_fail(call, ERR_UNAVAILABLE,
                   "the server closed the connection without an answer: it may have acted");
    return CURL_PREREQFUNC_ABORT;
}

static void on_head_end(struct http_call *call)
{
    long status = 0;
    libcurl.easy_getinfo(call->slot->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status >= 100 && status < 200) { /* interim: the real one follows */
        buf_clear(&call->head);
        return;
    }
    pthread_mutex_lock(&call->lock);
    call->status = (int)status;
    call->head_done = true;
    pthread_mutex_unlock(&call->lock);
    if (!call->stream)
        return;
    call->deadline_ns =
        call->idle_timeout_ns > 0 ? call->http->now_ns + call->idle_timeout_ns : HTTP_NEVER;
    if (call->deadline_ns < call->http->earliest_ns)
        call->http->earliest_ns = call->deadline_ns;
    tell(call);
}

static size_t on_header(char *p, size_t size, size_t count, void *ctx)
{
    struct http_call *call = ((struct http_slot *)ctx)->call;
    struct str line = { p, size * count };

    call->head_bytes += line.len;
    if (call->head_bytes > HTTP_HEAD_BYTES_MAX) {
        http_call_fail(call, ERR_CAPACITY, "the head of the reply has more than %zu bytes",
                       HTTP_HEAD_BYTES_MAX);
        return 0;
    }
    if (call->head_done) /* trailers: nobody asked for them */
        return line.len;
    if (str_trim(line).len == 0)
        on_head_end(call);
    else
        buf_add(&call->head, line);
    return line.len;
}

static bool add_whole(struct http_call *call, struct str piece)
{
    struct buf *body = &call->body_in; /* ours until the call has ended */
    curl_off_t claimed = 0;
    if (piece.len > call->body_bytes_max - body->len) {
        http_call_fail(call, ERR_CAPACITY, "the reply has more than %zu bytes",
                       call->body_bytes_max);
        return false;
    }
    if (body->len == 0)
        libcurl.easy_getinfo(call->slot->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &claimed);
    if (claimed > (curl_off_t)piece.len)
        buf_reserve(body, (size_t)(claimed < RESERVE_BYTES_MAX ? claimed : RESERVE_BYTES_MAX));
    buf_add(body, piece);
    return true;
}

static bool add_to_stream(struct http_call *call, struct str piece)
{
    pthread_mutex_lock(&call->lock);
    bool fits = piece.len <= call->stream_bytes_max - call->body_in.len;
    bool hungry = call->hungry;
    if (fits) {
        buf_add(&call->body_in, piece);
        call->hungry = false;
    }
    pthread_mutex_unlock(&call->lock);

    if (!fits)
        http_call_fail(call, ERR_CAPACITY, "more than %zu bytes of the stream wait to be read",
                       call->stream_bytes_max);
    else if (hungry)
        tell(call);
    if (call->idle_timeout_ns > 0)
        call->deadline_ns = call->http->now_ns + call->idle_timeout_ns;
    return fits;
}

static size_t on_body(char *p, size_t size, size_t count, void *ctx)
{
    struct http_call *call = ((struct http_slot *)ctx)->call;
    struct str piece = { p, size * count };
    bool taken = call->stream ? add_to_stream(call, piece) : add_whole(call, piece);
    return taken ? piece.len : CURL_WRITEFUNC_ERROR;
}

/* --- slots --- */

#define SET(easy, option, value) KV_ASSERT(libcurl.easy_setopt(easy, option, value) == CURLE_OK)

static void set_pem(CURL *easy, CURLoption option, struct str pem)
{
    struct curl_blob blob = { (void *)pem.p, pem.len, CURL_BLOB_NOCOPY };
    SET(easy, option, &blob);
}

/* libcurl compares these with what a kept connection was made with, and makes a new one if they
 * differ. */
static void set_trust(struct http_slot *slot, struct http_trust *trust)
{
    CURL *easy = slot->easy;
    slot->trust = http_trust_ref(trust);
    if (trust->ca_pem.p) { /* those and no others: the system's would be added */
        set_pem(easy, CURLOPT_CAINFO_BLOB, trust->ca_pem);
        SET(easy, CURLOPT_CAINFO, NULL);
        SET(easy, CURLOPT_CAPATH, NULL);
    }
    if (trust->cert_pem.p) {
        set_pem(easy, CURLOPT_SSLCERT_BLOB, trust->cert_pem);
        set_pem(easy, CURLOPT_SSLKEY_BLOB, trust->key_pem);
    }
    SET(easy, CURLOPT_SSL_VERIFYPEER, trust->insecure ? 0L : 1L);
    SET(easy, CURLOPT_SSL_VERIFYHOST, trust->insecure ? 0L : 2L);
}

static struct http_slot *slot_new(struct http *http, struct http_trust *trust)
{
    struct http_slot *slot = kv_calloc(1, sizeof *slot);
    CURL *easy = slot->easy = libcurl.easy_init();
    KV_ASSERT(easy);
    SET(easy, CURLOPT_PRIVATE, slot);
    SET(easy, CURLOPT_ERRORBUFFER, slot->error);
    SET(easy, CURLOPT_NOSIGNAL, 1L);
    /* A name is looked up in a thread, which nobody can stop. One whose call has ended is left to
     * itself: to wait for it here would be to stop everybody. */
    SET(easy, CURLOPT_QUICK_EXIT, 1L);
    SET(easy, CURLOPT_NOPROGRESS, 1L);
    SET(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    SET(easy, CURLOPT_FOLLOWLOCATION, 0L);
    SET(easy, CURLOPT_PATH_AS_IS, 1L);
    SET(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    SET(easy, CURLOPT_HTTP09_ALLOWED, 0L);
    SET(easy, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(easy, CURLOPT_USERAGENT, http->user_agent);
    SET(easy, CURLOPT_PROXY, http->maybe_proxy); /* NULL: as the environment says */
    SET(easy, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    SET(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    SET(easy, CURLOPT_TCP_KEEPIDLE, (long)KEEPALIVE_IDLE_S);
    SET(easy, CURLOPT_TCP_KEEPINTVL, (long)KEEPALIVE_INTERVAL_S);
    SET(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(easy, CURLOPT_HTTP_VERSION,
        (long)(http->http1 ? CURL_HTTP_VERSION_1_1 : CURL_HTTP_VERSION_2TLS));
    SET(easy, CURLOPT_OPENSOCKETFUNCTION, on_open_socket);
    SET(easy, CURLOPT_OPENSOCKETDATA, slot);
    SET(easy, CURLOPT_PREREQFUNCTION, on_before_send);
    SET(easy, CURLOPT_PREREQDATA, slot);
    SET(easy, CURLOPT_HEADERFUNCTION, on_header);
    SET(easy, CURLOPT_HEADERDATA, slot);
    SET(easy, CURLOPT_WRITEFUNCTION, on_body);
    SET(easy, CURLOPT_WRITEDATA, slot);
    set_trust(slot, trust);
    return slot;
}

void http_slot_free(struct http_slot *slot)
{
    libcurl.easy_cleanup(slot->easy);
    http_trust_unref(slot->trust);
    free(slot);
}

static struct http_slot *slot_get(struct http *http, struct http_trust *trust)
{
    while (http->slots) {
        struct http_slot *slot = http->slots;
        http->slots = slot->next;
        http->slot_count--;
        if (slot->trust == trust)
            return slot;
        http_slot_free(slot); /* certificates were replaced since */
    }
    return slot_new(http, trust);
}

static void slot_put(struct http *http, struct http_slot *slot)
{
    slot->call = NULL;
    if (http->slot_count >= SLOTS_KEPT_MAX) {
        http_slot_free(slot);
        return;
    }
    slot->next = http->slots;
    http->slots = slot;
    http->slot_count++;
}

static void set_method(CURL *easy, const struct http_call *call)
{
    bool has_body = call->body.p || strcmp(call->method, "POST") == 0 ||
                    strcmp(call->method, "PUT") == 0 || strcmp(call->method, "PATCH") == 0;
    SET(easy, CURLOPT_HTTPGET, 1L); /* undoes what the last call wanted */
    if (has_body) {
        SET(easy, CURLOPT_POST, 1L);
        SET(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.len);
        SET(easy, CURLOPT_POSTFIELDS, call->body.p ? call->body.p : "");
    } else if (strcmp(call->method, "HEAD") == 0) {
        SET(easy, CURLOPT_NOBODY, 1L);
    }
    SET(easy, CURLOPT_CUSTOMREQUEST, call->method);
}

static void slot_prepare(struct http_slot *slot, struct http_call *call)
{
    CURL *easy = slot->easy;
    slot->call = call;
    slot->error[0] = '\0';
    set_method(easy, call);
    SET(easy, CURLOPT_URL, call->maybe_renamed ? call->maybe_renamed : call->url);
    SET(easy, CURLOPT_CONNECT_TO, call->connect_to);
    SET(easy, CURLOPT_HTTPHEADER, call->headers);
    /* A stream that is compressed comes late: the other side collects before it sends. */
    SET(easy, CURLOPT_ACCEPT_ENCODING, call->stream ? NULL : "gzip");
    SET(easy, CURLOPT_MAXFILESIZE_LARGE,
        call->stream || strcmp(call->method, "HEAD") == 0 ? 0 : (curl_off_t)call->body_bytes_max);
    /* Share a connection that is being made; without TLS nobody knows whether it can be shared. */
    SET(easy, CURLOPT_PIPEWAIT, call->tls && !call->http->http1 ? 1L : 0L);
}

/* --- calls --- */

static void call_end(struct http_call *call)
{
    struct http *http = call->http;
    struct http_slot *slot = take(&call->slot);
    if (slot) {
        libcurl.multi_remove_handle(http->multi, slot->easy);
        slot_put(http, slot);
        *(call->previous ? &call->previous->next : &http->active) = call->next;
        if (call->next)
            call->next->previous = call->previous;
    }
    pthread_mutex_lock(&call->lock);
    call->ended = true;
    call->maybe_error = call->maybe_failure;
    pthread_mutex_unlock(&call->lock);
    call->finished = true;
    tell(call);
}

static void call_start(struct http *http, struct http_call *call)
{
    call->deadline_ns = call->timeout_ns > 0 && call->timeout_ns < HTTP_NEVER - http->now_ns
                            ? http->now_ns + call->timeout_ns
                            : HTTP_NEVER;
    if (call->deadline_ns < http->earliest_ns)
        http->earliest_ns = call->deadline_ns;
    call->slot = slot_get(http, call->trust);
    slot_prepare(call->slot, call);
    call->next = http->active;
    if (call->next)
        call->next->previous = call;
    http->active = call;
    KV_ASSERT(libcurl.multi_add_handle(http->multi, call->slot->easy) == CURLM_OK);
}

static void look_at(struct http *http, struct http_call *call)
{
    pthread_mutex_lock(&call->lock);
    bool unwanted = call->cancelled || call->disowned;
    pthread_mutex_unlock(&call->lock);

    bool is_new = !call->started;
    call->started = true;
    if (!call->finished && (unwanted || call->maybe_failure))
        call_end(call);
    else if (is_new)
        call_start(http, call);
}

static bool look_at_posts(struct http *http)
{
    pthread_mutex_lock(&http->lock);
    http->nudged = false;
    bool stopping = http->stopping;
    struct http_call *first = http->post_first;
    http->post_first = http->post_last = NULL;
    pthread_mutex_unlock(&http->lock);

    while (first) {
        struct http_call *call = first;
        pthread_mutex_lock(&http->lock); /* from here on it can be posted again */
        first = call->post_next;
        call->posted = false;
        pthread_mutex_unlock(&http->lock);
        look_at(http, call);
        http_call_unref(call);
    }
    return !stopping;
}

static void end_late(struct http *http)
{
    if (http->now_ns < http->earliest_ns)
        return;
    struct http_call *next;
    http->earliest_ns = HTTP_NEVER;
    for (struct http_call *call = http->active; call; call = next) {
        next = call->next;
        if (call->deadline_ns <= http->now_ns) {
            http_call_explain_late(call);
            call_end(call);
        } else if (call->deadline_ns < http->earliest_ns) {
            http->earliest_ns = call->deadline_ns;
        }
    }
}

static void end_done(struct http *http)
{
    CURLMsg *message;
    int more;
    while ((message = libcurl.multi_info_read(http->multi, &more))) {
        struct http_slot *slot = NULL;
        CURLcode code = message->data.result;
        libcurl.easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&slot);
        if (code != CURLE_OK || !slot->call->head_done)
            http_call_explain(slot->call, code);
        call_end(slot->call);
    }
}

static int poll_ms(const struct http *http)
{
    int64_t wait_ns = http->earliest_ns - http->now_ns;
    int64_t wait_ms = wait_ns > 0 ? (wait_ns - 1) / 1000000 + 1 : 0;
    return wait_ms < 3600000 ? (int)wait_ms : 3600000;
}

void *http_io_main(void *arg)
{
    struct http *http = arg;
    int running;
    for (;;) {
        http->now_ns = clock_mono_ns(clock_real());
        bool goes_on = look_at_posts(http);
        libcurl.multi_perform(http->multi, &running);
        end_done(http);
        end_late(http);
        tell_all(http);
        if (!goes_on)
            break;
        libcurl.multi_poll(http->multi, NULL, 0, poll_ms(http), NULL);
    }
    KV_ASSERT(!http->active); /* every call has been freed */
    return NULL;
}
