/* compat/registry_transport.c - a request, from the first try to the last.
 *
 * An exchange is one HTTP request with one host. Redirects of GET and HEAD are followed from exchange to
 * exchange; the authorization stays behind when the origin changes, and TLS is not left. What fails for a
 * reason that may pass (no answer, 5xx, 429) is tried again, twice, after a wait that doubles and has a
 * random half, or that the reply asks for; never beyond the deadline. */
#include "compat/registry_inner.h"

#include "codec/duration.h"
#include "codec/json.h"

#include <stdio.h>

#define WAIT_FIRST_NS (200 * (int64_t)1000000)

void registry_answer_done(struct registry_answer *answer)
{
    http_call_free(answer->call);
    buf_done(&answer->url);
    *answer = (struct registry_answer){ 0 };
}

/* --- one exchange --- */

static int begin_flight(struct registry *r, const struct http_request *request,
                        struct registry_flight *flight, struct err *err)
{
    pthread_mutex_lock(&r->lock);
    bool cancelled = r->cancelled;
    if (!cancelled) {
        flight->call = http_start(r->http, request);
        flight->next = r->flights;
        if (flight->next)
            flight->next->previous = flight;
        r->flights = flight;
    }
    pthread_mutex_unlock(&r->lock);
    return cancelled ? err_set(err, ERR_CANCELLED, "cancelled") : 0;
}

static void end_flight(struct registry *r, struct registry_flight *flight)
{
    pthread_mutex_lock(&r->lock);
    *(flight->previous ? &flight->previous->next : &r->flights) = flight->next;
    if (flight->next)
        flight->next->previous = flight->previous;
    pthread_mutex_unlock(&r->lock);
}

static void count(const struct registry *r, int status)
{
    char code[16];
    if (!r->maybe_requests)
        return;
    if (status > 0)
        snprintf(code, sizeof code, "%d", status);
    else
        snprintf(code, sizeof code, "none");
    AUTO(metric) series = metric_get(r->maybe_requests, &(struct str){ code, strlen(code) });
    metric_inc(series);
}

static int check_host(const struct registry *r, struct str url, struct err *err)
{
    struct http_url parts;
    if (http_url_parse(url, &parts, err) < 0)
        return -1;
    if (!registry_is_allowed(r, &parts))
        return err_set(err, ERR_DENIED, "%s is not among the hosts that are allowed",
                       STR_SHOWN(parts.authority));
    return 0;
}

static uint32_t add_header(struct http_header *headers, uint32_t n, struct str name,
                           struct str value)
{
    if (!value.p)
        return n;
    headers[n] = (struct http_header){ name, value };
    return n + 1;
}

static int exchange(struct registry *r, const struct registry_request *request, struct str url,
                    struct str authorization, int64_t deadline_ns, struct registry_answer *out,
                    struct err *err)
{
    struct http_header headers[3];
    struct registry_flight flight = { 0 };
    struct http_reply reply = { 0 };
    uint32_t n = 0;
    int64_t left_ns = deadline_ns - clock_mono_ns(r->clock);
    if (check_host(r, url, err) < 0)
        return -1;
    if (left_ns <= 0)
        return err_set(err, ERR_UNAVAILABLE, "there is no time left for it");
    n = add_header(headers, n, STR("Accept"), request->accept);
    n = add_header(headers, n, STR("Content-Type"), request->content_type);
    n = add_header(headers, n, STR("Authorization"), authorization);
    struct http_request asked = {
        .method = request->method,
        .url = url,
        .headers = headers,
        .header_count = n,
        .body = request->body,
        .timeout_ns = left_ns < r->timeout_ns ? left_ns : r->timeout_ns,
        .body_bytes_max = request->bytes_max,
    };
    if (begin_flight(r, &asked, &flight, err) < 0)
        return -1;
    int rc = http_finish(flight.call, &reply, err);
    end_flight(r, &flight);
    count(r, rc == 0 ? reply.status : 0);
    registry_answer_done(out);
    out->call = flight.call;
    out->status = reply.status;
    out->body = reply.body;
    return rc;
}

/* --- redirects --- */

static bool is_redirect(const struct registry_request *request, int status)
{
    bool reads = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    return reads &&
           (status == 301 || status == 302 || status == 303 || status == 307 || status == 308);
}

static int next_hop(const struct registry *r, const struct registry_answer *answer, struct buf *url,
                    struct err *err)
{
    struct http_url from = { 0 }, to = { 0 };
    AUTO_BUF next = { 0 };
    struct str location = http_reply_header(answer->call, STR("Location"));
    if (!location.p)
        return err_set(err, ERR_INVALID, "a redirect (%d) that does not say where to",
                       answer->status);
    if (url_join(buf_str(url), location, &next, err) < 0)
        return err_wrap(err, "redirect");
    http_url_parse(buf_str(url), &from, NULL);
    http_url_parse(buf_str(&next), &to, NULL);
    if (from.tls && !to.tls && !registry_is_plain(r, to.authority))
        return err_set(err, ERR_DENIED, "a redirect to %s, which is without TLS",
                       STR_SHOWN(to.authority));
    buf_clear(url);
    buf_add(url, buf_str(&next));
    return 0;
}

static int follow(struct registry *r, const struct registry_request *request, int64_t deadline_ns,
                  struct registry_answer *out, struct err *err)
{
    AUTO_BUF url = { 0 };
    buf_add(&url, request->url);
    for (uint32_t hop = 0; hop <= REGISTRY_REDIRECTS_MAX; hop++) {
        bool home = url_same_origin(buf_str(&url), request->url);
        if (exchange(r, request, buf_str(&url), home ? request->authorization : STR_NONE,
                     deadline_ns, out, err) < 0)
            return hop > 0 ? err_wrap(err, "redirected") : -1;
        if (!is_redirect(request, out->status)) {
            buf_add(&out->url, buf_str(&url));
            return 0;
        }
        if (next_hop(r, out, &url, err) < 0)
            return -1;
    }
    return err_set(err, ERR_INVALID, "more than %d redirects", REGISTRY_REDIRECTS_MAX);
}

/* --- tries --- */

/* -1: cancelled meanwhile. */
static int wait_until(struct registry *r, int64_t until_ns, struct err *err)
{
    pthread_mutex_lock(&r->lock);
    while (!r->cancelled && clock_mono_ns(r->clock) < until_ns)
        clock_wait(r->clock, &r->moved, &r->lock, until_ns);
    bool cancelled = r->cancelled;
    pthread_mutex_unlock(&r->lock);
    return cancelled ? err_set(err, ERR_CANCELLED, "cancelled") : 0;
}

static int64_t back_off_ns(struct registry *r, uint32_t tried)
{
    int64_t whole_ns = WAIT_FIRST_NS << tried;
    pthread_mutex_lock(&r->lock);
    int64_t half_ns = (int64_t)rng_below(&r->rng, (uint64_t)whole_ns / 2 + 1);
    pthread_mutex_unlock(&r->lock);
    return whole_ns / 2 + half_ns;
}

/* How long to wait before the next try; -1: another try would not help. */
static int64_t wait_ns(struct registry *r, int rc, const struct err *err,
                       const struct registry_answer *answer, uint32_t tried)
{
    if (rc < 0)
        return err->kind == ERR_UNAVAILABLE ? back_off_ns(r, tried) : -1;
    if (answer->status != 429 && answer->status < 500)
        return -1;
    if (answer->status == 501)
        return -1;
    int64_t asked_ns = http_retry_after_ns(answer->call, clock_wall_us(r->clock));
    int64_t ours_ns = back_off_ns(r, tried);
    return asked_ns > ours_ns ? asked_ns : ours_ns;
}

int registry_send(struct registry *r, const struct registry_request *request, int64_t deadline_ns,
                  struct registry_answer *out, struct err *err)
{
    for (uint32_t tried = 0;; tried++) {
        struct err why = { 0 };
        int rc = follow(r, request, deadline_ns, out, &why);
        int64_t wait =
            request->once || tried == REGISTRY_RETRIES_MAX ? -1 : wait_ns(r, rc, &why, out, tried);
        int64_t now_ns = clock_mono_ns(r->clock);
        if (wait < 0 || wait >= deadline_ns - now_ns) {
            if (rc < 0 && err)
                *err = why;
            return rc;
        }
        if (wait_until(r, now_ns + wait, err) < 0)
            return -1;
    }
}

/* --- what an unwanted answer means --- */

static struct str first_error(const struct doc *doc, struct str *code)
{
    const json_val *first = json_at(json_get(doc->root, STR("errors")), 0);
    *code = json_str(json_get(first, STR("code")));
    return json_str(json_get(first, STR("message")));
}

static bool read_errors(const struct registry_answer *answer, struct doc *doc)
{
    return answer->body.len > 0 && answer->body.len <= REGISTRY_ERROR_BYTES_MAX &&
           json_read(answer->body, doc, NULL) == 0;
}

bool registry_answer_has_code(const struct registry_answer *answer, const char *code)
{
    struct doc doc = { 0 };
    bool has = false;
    if (!read_errors(answer, &doc))
        return false;
    json_each_item(json_get(doc.root, STR("errors")), error)
        has |= str_eqz(json_str(json_get(error, STR("code"))), code);
    doc_done(&doc);
    return has;
}

static enum err_kind kind_of(int status)
{
    if (status == 404)
        return ERR_NOT_FOUND;
    if (status == 401 || status == 403)
        return ERR_DENIED;
    if (status == 429)
        return ERR_THROTTLED;
    return status >= 500 || status == 408 ? ERR_UNAVAILABLE : ERR_INVALID;
}

int registry_refusal(const struct registry *r, const struct registry_answer *answer,
                     struct err *err)
{
    struct doc doc = { 0 };
    struct str code = STR_NONE, message = STR_NONE;
    char later[DURATION_TEXT_MAX] = "";
    enum err_kind kind = kind_of(answer->status);
    bool has = read_errors(answer, &doc);
    if (has)
        message = first_error(&doc, &code);
    int64_t wait = http_retry_after_ns(answer->call, clock_wall_us(r->clock));
    if (wait >= 0 && (kind == ERR_THROTTLED || kind == ERR_UNAVAILABLE))
        duration_format_short(wait, later);
    err_set(err, kind, "the registry answers %d%s%s%s%s%s%s", answer->status, code.p ? " " : "",
            code.p ? STR_SHOWN(code) : "", message.p ? ": " : "",
            message.p ? STR_SHOWN(message) : "", later[0] ? "; to be asked again after " : "",
            later);
    if (has)
        doc_done(&doc);
    return -1;
}
