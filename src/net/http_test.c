#include "net/http.h"

#include "codec/duration.h"
#include "net/http_peer_testing.h"
#include "net/http_testing.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>

static struct str ask(struct http *http, struct buf *out, const struct http_request *request,
                      int *status)
{
    struct err err = { 0 };
    buf_clear(out);
    EXPECT_OK(http_do(http, request, status, out, &err), err);
    return buf_str(out);
}

TEST(a_request_arrives_as_it_was_asked_for_whatever_its_method_and_body)
{
    static const struct {
        const char *method;
        struct str body;
    } rows[] = {
        { "GET", { NULL, 0 } },    { "DELETE", { NULL, 0 } },        { "POST", { NULL, 0 } },
        { "POST", { "", 0 } },     { "POST", { "{}", 2 } },          { "PUT", { "a\0b", 3 } },
        { "PATCH", { "[1]", 3 } }, { "DELETE", { "{\"x\":1}", 7 } }, { "GET", { "why", 3 } },
        { "PATCH", { NULL, 0 } },  { "GET", { NULL, 0 } },
    };
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ .user_agent = "karve/1.2 (test)" });
    AUTO_BUF out = { 0 };
    AUTO_BUF line = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        int status;
        struct http_header headers[] = { { STR("X-Word"), STR("a  b;c") },
                                         { STR("X-Empty"), STR("") },
                                         { STR("Accept"), STR("application/json") } };
        struct str got = ask(http, &out,
                             &(struct http_request){
                                 .method = rows[i].method,
                                 .url = URL("http", http_peer_port(peer), "/echo/../x"),
                                 .headers = headers,
                                 .header_count = KV_COUNT_OF(headers),
                                 .body = rows[i].body,
                             },
                             &status);
        EXPECT_EQ(status, 200);
        buf_clear(&line);
        buf_addf(&line, "%s /echo/../x\n", rows[i].method);
        EXPECT_TRUE(str_starts(got, buf_str(&line)));
        EXPECT_HAS(got, "\nX-Word: a  b;c\n");
        EXPECT_HAS(got, "\nX-Empty: \n");
        EXPECT_HAS(got, "\nAccept: application/json\n");
        EXPECT_HAS(got, "\nUser-Agent: karve/1.2 (test)\n");
        EXPECT_HAS(got, "\nAccept-Encoding: gzip\n");
        EXPECT_TRUE(str_ends(got, rows[i].body));
        EXPECT_FALSE(memmem(got.p, got.len, "Expect", 6));
        EXPECT_FALSE(
            memmem(got.p, got.len, "Content-Type", 12)); /* of a form, by libcurl's habit */
    }
}

TEST(a_header_without_a_value_is_left_out_also_where_it_is_usual)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ .user_agent = "karve/1.2" });
    const struct http_header headers[] = { { STR("Accept"), STR_NONE },
                                           { STR("user-agent"), STR_NONE },
                                           { STR("X-Word"), STR_NONE } };
    AUTO_BUF out = { 0 };
    int status;
    struct str got = ask(http, &out,
                         &(struct http_request){ .method = "GET",
                                                 .url = URL("http", http_peer_port(peer), "/echo"),
                                                 .headers = headers,
                                                 .header_count = KV_COUNT_OF(headers) },
                         &status);
    EXPECT_FALSE(memmem(got.p, got.len, "Accept:", 7));
    EXPECT_FALSE(memmem(got.p, got.len, "gent", 4));
    EXPECT_FALSE(memmem(got.p, got.len, "X-Word", 6));
}

TEST(any_status_is_a_reply_and_a_redirect_is_not_followed)
{
    static const int statuses[] = { 200, 201, 301, 307, 400, 404, 409, 410, 429, 500, 503 };
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    for (size_t i = 0; i < KV_COUNT_OF(statuses); i++) {
        char path[32];
        struct http_reply reply;
        struct err err = { 0 };
        snprintf(path, sizeof path, "/status/%d", statuses[i]);
        AUTO(http_call)
        call =
            http_start(http, &(struct http_request){
                                 .method = "GET", .url = URL("http", http_peer_port(peer), path) });
        EXPECT_OK(http_finish(call, &reply, &err), err);
        EXPECT_EQ(reply.status, statuses[i]);
        EXPECT_STR(http_reply_header(call, STR("RETRY-after")), "7");
        EXPECT_TRUE(http_reply_header(call, STR("Retry")).p == NULL);
        EXPECT_EQ(http_retry_after_ns(call, 0), 7000000000);
    }
    EXPECT_EQ(http_peer_requests(peer), KV_COUNT_OF(statuses));
}

TEST(a_connection_is_kept_for_the_requests_that_follow)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    AUTO_BUF out = { 0 };
    int status;
    for (int i = 0; i < 50; i++)
        ask(http, &out,
            &(struct http_request){ .method = i % 2 ? "POST" : "GET",
                                    .url = URL("http", http_peer_port(peer), "/echo"),
                                    .body = i % 2 ? STR("x") : STR_NONE },
            &status);
    EXPECT_EQ(http_peer_requests(peer), 50);
    EXPECT_EQ(http_peer_connections(peer), 1);
}

TEST(connections_to_one_host_are_limited_and_those_who_wait_get_their_turn)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ .connections_max = 3 });
    struct http_call *calls[12];
    struct err err = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++)
        calls[i] = http_start(
            http, &(struct http_request){ .method = "GET",
                                          .url = URL("http", http_peer_port(peer), "/hold") });
    WAIT_UNTIL(http_peer_waiting(peer) == 3);
    for (size_t done = 0; done < KV_COUNT_OF(calls); done += 3) {
        WAIT_UNTIL(http_peer_requests(peer) == done + 3);
        http_peer_finish(peer);
    }
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++) {
        struct http_reply reply;
        EXPECT_OK(http_finish(calls[i], &reply, &err), err);
        http_call_free(calls[i]);
    }
    EXPECT_EQ(http_peer_connections(peer), 3);
}

TEST(a_call_that_waits_for_a_connection_ends_at_its_time_too)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ .connections_max = 1 });
    struct http_request hold = { .method = "GET",
                                 .url = URL("http", http_peer_port(peer), "/hold") };
    struct http_request late = hold;
    late.timeout_ns = 1000000;
    struct http_reply reply;
    struct err err = { 0 };
    AUTO(http_call) first = http_start(http, &hold);
    WAIT_UNTIL(http_peer_waiting(peer) == 1);
    AUTO(http_call) second = http_start(http, &late);
    EXPECT_ERR(http_finish(second, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "no connection to 127.0.0.1");
    EXPECT_HAS(str_of(err.text), "within 1ms");
    http_peer_finish(peer);
    EXPECT_OK(http_finish(first, &reply, &err), err);
}

TEST(a_server_that_does_not_answer_in_time_is_unavailable)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    struct err err = { 0 };
    struct http_reply reply;
    int status;
    struct http_request request = { .method = "GET",
                                    .url = URL("http", http_peer_port(peer), "/hold"),
                                    .timeout_ns = 50000000 };
    AUTO(http_call) whole = http_start(http, &request);
    request.stream = true;
    AUTO(http_call) stream = http_start(http, &request);
    EXPECT_ERR(http_finish(whole, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "within 50ms");
    EXPECT_ERR(http_head(stream, &status, &err), err, ERR_UNAVAILABLE);
}

TEST(a_reply_up_to_the_limit_is_taken_and_one_byte_more_is_not)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    for (size_t max = 99999; max <= 100000; max++) {
        struct http_reply reply = { 0 };
        struct err err = { 0 };
        AUTO(http_call)
        call = http_start(
            http, &(struct http_request){ .method = "GET",
                                          .url = URL("http", http_peer_port(peer), "/big/100000"),
                                          .body_bytes_max = max });
        if (max == 100000) {
            EXPECT_OK(http_finish(call, &reply, &err), err);
            EXPECT_EQ(reply.body.len, 100000);
        } else {
            EXPECT_ERR(http_finish(call, &reply, &err), err, ERR_CAPACITY);
        }
    }
}

TEST(bad_requests_are_refused_before_anything_is_sent)
{
    static const struct {
        const char *method;
        struct str url;
        struct http_header header;
    } rows[] = {
        { "GET /x HTTP/1.1\r\nX: y", { "http://127.0.0.1/", 17 }, { { "A", 1 }, { "b", 1 } } },
        { "", { "http://127.0.0.1/", 17 }, { { "A", 1 }, { "b", 1 } } },
        { "GET", { "http://127.0.0.1/\r\nX: y", 23 }, { { "A", 1 }, { "b", 1 } } },
        { "GET", { "http://127.0.0.1/\0", 18 }, { { "A", 1 }, { "b", 1 } } },
        { "GET", { "http://127.0.0.1/a b", 20 }, { { "A", 1 }, { "b", 1 } } },
        { "GET", { "file:///etc/passwd", 18 }, { { "A", 1 }, { "b", 1 } } },
        { "GET", { "", 0 }, { { "A", 1 }, { "b", 1 } } },
        { "GET", { "http://u:p@127.0.0.1/", 21 }, { { "A", 1 }, { "b", 1 } } },
        { "GET", { "http://127.0.0.1/", 17 }, { { "A\r\nB", 4 }, { "b", 1 } } },
        { "GET", { "http://127.0.0.1/", 17 }, { { "A:", 2 }, { "b", 1 } } },
        { "GET", { "http://127.0.0.1/", 17 }, { { "", 0 }, { "b", 1 } } },
        { "GET", { "http://127.0.0.1/", 17 }, { { "A", 1 }, { "b\r\nC: d", 7 } } },
        { "GET", { "http://127.0.0.1/", 17 }, { { "A", 1 }, { "b\n", 2 } } },
        { "GET", { "http://127.0.0.1/", 17 }, { { "A", 1 }, { "b\0c", 3 } } },
        { "GET", { "http://127.0.0.1/", 17 }, { { "Content-length", 14 }, { "3", 1 } } },
        { "GET", { "http://127.0.0.1/", 17 }, { { "transfer-encoding", 17 }, { "chunked", 7 } } },
    };
    AUTO(http) http = client_new((struct http_options){ 0 });
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_BUF out = { 0 };
        int status;
        struct err err = { 0 };
        struct http_request request = { .method = rows[i].method,
                                        .url = rows[i].url,
                                        .headers = &rows[i].header,
                                        .header_count = 1 };
        EXPECT_ERR(http_do(http, &request, &status, &out, &err), err, ERR_INVALID);
        request.stream = true;
        AUTO(http_call) call = http_start(http, &request);
        EXPECT_ERR(http_head(call, &status, &err), err, ERR_INVALID);
        EXPECT_EQ(http_take(call, &out, &err), HTTP_FAILED);
    }
}

/* --- streams --- */

TEST(a_stream_is_given_piece_by_piece_and_then_ends)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    int status = 0;
    AUTO(http_call)
    call = http_start(http,
                      &(struct http_request){ .method = "GET",
                                              .url = URL("http", http_peer_port(peer), "/stream"),
                                              .stream = true });
    EXPECT_OK(http_head(call, &status, &err), err);
    EXPECT_EQ(status, 200);
    EXPECT_EQ(http_take(call, &out, &err), HTTP_NOTHING);
    http_peer_push(peer, STR("one\n"));
    EXPECT_EQ(take_all(call, &out, 4, &err), HTTP_BYTES);
    EXPECT_STR(buf_str(&out), "one\n");
    http_peer_push(peer, STR("tw"));
    EXPECT_EQ(take_all(call, &out, 6, &err), HTTP_BYTES); /* after what is already there */
    http_peer_push(peer, STR("o\n"));
    http_peer_finish(peer);
    EXPECT_EQ(take_all(call, &out, SIZE_MAX, &err), HTTP_ENDED);
    EXPECT_STR(buf_str(&out), "one\ntwo\n");
    EXPECT_EQ(http_take(call, &out, &err), HTTP_ENDED);
}

/* False: we were so slow to push the words that it was dead by then. */
static bool falls_silent_after_words(int64_t idle_ns)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    AUTO_BUF out = { 0 }, why = { 0 };
    char idle[DURATION_TEXT_MAX];
    struct err err = { 0 };
    AUTO(http_call)
    call = http_start(http,
                      &(struct http_request){ .method = "GET",
                                              .url = URL("http", http_peer_port(peer), "/stream"),
                                              .idle_timeout_ns = idle_ns,
                                              .timeout_ns = WAIT_NS,
                                              .stream = true });
    WAIT_UNTIL(http_peer_waiting(peer) == 1);
    http_peer_push(peer, STR("last words"));
    EXPECT_EQ(take_all(call, &out, SIZE_MAX, &err), HTTP_FAILED);
    EXPECT_EQ(err.kind, ERR_UNAVAILABLE);
    duration_format_short(idle_ns, idle);
    buf_addf(&why, "has sent nothing for %s", idle);
    EXPECT_HAS(str_of(err.text), why.p);
    if (out.len == 0)
        return false;
    EXPECT_STR(buf_str(&out), "last words");
    return true;
}

TEST(a_stream_that_falls_silent_is_dead)
{
    int64_t idle_ns = 300000000;
    while (!falls_silent_after_words(idle_ns) && idle_ns < WAIT_NS)
        idle_ns *= 2;
    EXPECT_TRUE(idle_ns < WAIT_NS);
}

TEST(a_reader_that_is_too_slow_loses_its_stream_and_the_others_go_on)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    AUTO_BUF slow = { 0 };
    AUTO_BUF quick = { 0 };
    struct err err = { 0 };
    struct http_request request = { .method = "GET",
                                    .url = URL("http", http_peer_port(peer), "/stream"),
                                    .stream_bytes_max = 1000,
                                    .stream = true };
    AUTO(http_call) slow_call = http_start(http, &request);
    request.stream_bytes_max = 0;
    AUTO(http_call) quick_call = http_start(http, &request);
    WAIT_UNTIL(http_peer_waiting(peer) == 2);
    for (int i = 0; i < 11; i++) {
        char piece[100] = { 0 };
        http_peer_push(peer, (struct str){ piece, sizeof piece });
        take_all(quick_call, &quick, ((size_t)i + 1) * 100, &err);
    }
    EXPECT_EQ(quick.len, 1100);
    EXPECT_EQ(take_all(slow_call, &slow, SIZE_MAX, &err), HTTP_FAILED);
    EXPECT_EQ(err.kind, ERR_CAPACITY);
    EXPECT_TRUE(slow.len <= 1000);
    http_peer_finish(peer);
    EXPECT_EQ(take_all(quick_call, &quick, SIZE_MAX, &err), HTTP_ENDED);
}

/* --- waking --- */

static void count_wake(void *ctx)
{
    atomic_fetch_add((atomic_int *)ctx, 1);
}

TEST(who_is_busy_is_not_woken_for_every_piece)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    atomic_int wakes = 0;
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    int status;
    AUTO(http_call)
    call = http_start(http,
                      &(struct http_request){ .method = "GET",
                                              .url = URL("http", http_peer_port(peer), "/stream"),
                                              .wake = count_wake,
                                              .ctx = &wakes,
                                              .stream = true });
    EXPECT_OK(http_head(call, &status, &err), err);
    WAIT_UNTIL(atomic_load(&wakes) == 1); /* the head */
    EXPECT_EQ(http_take(call, &out, &err), HTTP_NOTHING);
    http_peer_push(peer, STR("x"));
    WAIT_UNTIL(atomic_load(&wakes) == 2);
    for (int i = 0; i < 200; i++) {
        http_peer_push(peer, STR("x"));
        usleep(100); /* pieces of their own, most of them */
    }
    EXPECT_EQ(take_all(call, &out, 201, &err), HTTP_BYTES);
    EXPECT_EQ(http_take(call, &out, &err), HTTP_NOTHING);
    http_peer_push(peer, STR("y"));
    EXPECT_EQ(take_all(call, &out, 202, &err), HTTP_BYTES);
    http_peer_finish(peer);
    EXPECT_EQ(take_all(call, &out, SIZE_MAX, &err), HTTP_ENDED);
    /* One for each time that there was nothing, and the end. */
    EXPECT_TRUE(atomic_load(&wakes) < 100);
}

TEST(a_whole_reply_and_every_failure_wake_once)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    struct str urls[] = { URL("http", http_peer_port(peer), "/echo"), URL("http", 1, "/"),
                          STR("no URL"), URL("http", http_peer_port(peer), "/hold") };
    for (size_t i = 0; i < KV_COUNT_OF(urls); i++) {
        atomic_int wakes = 0;
        AUTO(http_call)
        call = http_start(http,
                          &(struct http_request){
                              .method = "GET", .url = urls[i], .wake = count_wake, .ctx = &wakes });
        if (i == 3)
            http_cancel(call);
        WAIT_UNTIL(atomic_load(&wakes) == 1);
        struct http_reply reply;
        struct err err = { 0 };
        EXPECT_EQ(http_finish(call, &reply, &err), i == 0 ? 0 : -1);
        http_cancel(call); /* it had ended */
        EXPECT_EQ(http_finish(call, &reply, &err), i == 0 ? 0 : -1);
        EXPECT_EQ(atomic_load(&wakes), 1);
    }
}

/* --- cancelling --- */

static void *cancel_later(void *call)
{
    usleep(20000);
    http_cancel(call);
    return NULL;
}

TEST(a_call_is_cancelled_from_another_thread)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    struct err err = { 0 };
    struct http_reply reply;
    pthread_t thread;
    AUTO(http_call)
    call =
        http_start(http, &(struct http_request){
                             .method = "GET", .url = URL("http", http_peer_port(peer), "/hold") });
    pthread_create(&thread, NULL, cancel_later, call);
    EXPECT_ERR(http_finish(call, &reply, &err), err, ERR_CANCELLED);
    pthread_join(thread, NULL);
    WAIT_UNTIL(http_peer_requests(peer) <= 1);
}

TEST(a_cancelled_stream_gives_nothing_more)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http) http = client_new((struct http_options){ 0 });
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    int status;
    AUTO(http_call)
    call = http_start(http,
                      &(struct http_request){ .method = "GET",
                                              .url = URL("http", http_peer_port(peer), "/stream"),
                                              .stream = true });
    EXPECT_OK(http_head(call, &status, &err), err);
    http_peer_push(peer, STR("unread"));
    http_cancel(call);
    EXPECT_EQ(http_take(call, &out, &err), HTTP_FAILED);
    EXPECT_EQ(err.kind, ERR_CANCELLED);
    EXPECT_EQ(out.len, 0);
    http_peer_push(peer, STR("more")); /* the server notices when it writes */
}

static bool count_and_refuse(void *ctx, struct str host, const struct sockaddr *address)
{
    EXPECT_EQ(address->sa_family, AF_INET);
    EXPECT_STR(host, "127.0.0.1");
    return ++*(int *)ctx > 1;
}

TEST(an_address_is_connected_to_only_if_it_may_be)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    int asked = 0, status = 0;
    AUTO(http) http = client_new(
        (struct http_options){ .may_connect = count_and_refuse, .may_connect_ctx = &asked });
    AUTO_BUF out = { 0 };
    struct err err = { 0 };
    struct http_request request = { .method = "GET",
                                    .url = URL("http", http_peer_port(peer), "/echo") };
    EXPECT_ERR(http_do(http, &request, &status, &out, &err), err, ERR_DENIED);
    EXPECT_EQ(http_peer_connections(peer), 0);
    EXPECT_OK(http_do(http, &request, &status, &out, &err), err);
    EXPECT_OK(http_do(http, &request, &status, &out, &err), err); /* over the same connection */
    EXPECT_EQ(asked, 2);
}

TEST(freeing_a_call_that_runs_ends_it_and_the_client_stops_at_once)
{
    AUTO(http_peer) peer = http_peer_new((struct http_peer_options){ 0 });
    struct http *http = client_new((struct http_options){ 0 });
    for (int i = 0; i < 20; i++) {
        struct http_call *call =
            http_start(http, &(struct http_request){ .method = "GET",
                                                     .url = URL("http", http_peer_port(peer),
                                                                i % 2 ? "/hold" : "/stream"),
                                                     .stream = i % 4 < 2 });
        if (i % 3 == 0)
            WAIT_UNTIL(http_peer_waiting(peer) > 0);
        http_call_free(call);
    }
    http_free(http);
}
