/* Servers that are not there, break, or do not behave: each is a clear failure, and the next call
 * finds the server that has come back. */
#include "net/grpc_inner.h"
#include "net/grpc_testing.h"

#include <sys/socket.h>

static const struct grpc_call_options SOON = { .timeout_ns = 20 * 1000000 };

#define HOUR_NS ((int64_t)3600 * 1000000000)

/* As if the time had passed. */
static void end_backoff(struct grpc *grpc)
{
    pthread_mutex_lock(&grpc->lock);
    grpc->retry_ns = 0;
    pthread_mutex_unlock(&grpc->lock);
}

static int64_t retry_ns(struct grpc *grpc)
{
    pthread_mutex_lock(&grpc->lock);
    int64_t ns = grpc->retry_ns;
    pthread_mutex_unlock(&grpc->lock);
    return ns;
}

static bool echo_works(struct rig *rig)
{
    return rig_echo(rig, STR("x")).kind == ERR_NONE;
}

/* --- making the connection --- */

TEST(a_path_that_no_socket_can_have_is_refused)
{
    char path[300] = { 0 };
    struct grpc *grpc = NULL;
    struct err err = { 0 };
    EXPECT_ERR(grpc_new((struct grpc_options){ .path = "" }, &grpc, &err), err, ERR_INVALID);
    memset(path, 'a', 107); /* the longest */
    EXPECT_OK(grpc_new((struct grpc_options){ .path = path }, &grpc, &err), err);
    grpc_free(grpc);
    memset(path, 'a', 108);
    EXPECT_ERR(grpc_new((struct grpc_options){ .path = path }, &grpc, &err), err, ERR_INVALID);
    grpc_free(NULL);
    grpc_call_free(NULL);
}

TEST(without_a_server_a_call_fails_at_once_and_says_why)
{
    AUTO(rig) rig = rig_new();
    grpc_server_stop(rig->server);
    struct err err = rig_echo(rig, STR("x"));
    EXPECT_EQ(err.kind, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), rig->path);
    EXPECT_HAS(str_of(err.text), "No such file");
    grpc_server_start(rig->server);
    RIG_WAIT(echo_works(rig));
}

TEST(no_attempt_is_made_before_the_back_off_is_over)
{
    AUTO(rig) rig = rig_new_with((struct grpc_options){ .backoff_min_ns = HOUR_NS },
                                 (struct grpc_server_options){ 0 });
    grpc_server_stop(rig->server);
    EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_UNAVAILABLE);
    grpc_server_start(rig->server);
    struct err err = rig_echo(rig, STR("x"));
    EXPECT_EQ(err.kind, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "No such file"); /* the reason of the attempt that was made */
    EXPECT_EQ(grpc_server_connections(rig->server), 0);
}

TEST(the_back_off_doubles_up_to_its_limit_and_starts_anew_after_a_success)
{
    static const int64_t want_ms[] = { 100, 200, 400, 800, 1600, 3000, 3000 };
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ 0 }, (struct grpc_server_options){ .streams_max = 5 });
    struct grpc *grpc = rig->grpc;
    for (int round = 0; round < 2; round++) {
        grpc_server_stop(rig->server);
        RIG_WAIT(rig_echo(rig, STR("x")).kind != ERR_NONE && retry_ns(grpc) > 0);
        for (size_t i = 1; i < KV_COUNT_OF(want_ms); i++) {
            end_backoff(grpc);
            int64_t before_ns = grpc_now_ns();
            EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_UNAVAILABLE);
            int64_t after_ns = grpc_now_ns();
            EXPECT_TRUE(retry_ns(grpc) >= before_ns + want_ms[i] * 1000000);
            EXPECT_TRUE(retry_ns(grpc) <= after_ns + want_ms[i] * 1000000);
        }
        grpc_server_start(rig->server);
        end_backoff(grpc);
        RIG_WAIT(echo_works(rig));
    }
}

/* --- breaking it --- */

TEST(calls_of_a_connection_that_breaks_fail_and_the_next_one_connects)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    AUTO(grpc_call) unary = rig_call(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    AUTO(grpc_call) stream = rig_stream(rig, "/t/Keep", "");
    struct grpc_reply *kept_stream = rig_reply(rig);
    grpc_server_drop_connections(rig->server);
    EXPECT_ERR(grpc_finish(unary, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(grpc_call_status(unary), GRPC_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "the server closed the connection");
    EXPECT_ERR(grpc_next(stream, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_TRUE(grpc_reply_cancelled(kept));
    grpc_reply_end(kept, 0, NULL);
    grpc_reply_end(kept_stream, 0, NULL);
    EXPECT_TRUE(echo_works(rig)); /* at once: the connection had worked */
    EXPECT_EQ(grpc_server_connections(rig->server), 2);
}

TEST(a_server_that_dies_within_a_reply_is_unavailable)
{
    AUTO(rig) rig = rig_new();
    AUTO_FREE char *bytes = kv_calloc(1, 8 << 20);
    for (int i = 0; i < 5; i++) {
        struct err err = { 0 };
        struct str reply;
        AUTO(grpc_call) call = rig_call(rig, "/t/Keep", "");
        struct grpc_reply *kept = rig_reply(rig);
        grpc_reply_send(kept, (struct str){ bytes, 8 << 20 });
        grpc_server_drop_connections(rig->server);
        grpc_reply_end(kept, 0, NULL);
        EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_UNAVAILABLE);
    }
    EXPECT_TRUE(echo_works(rig));
}

TEST(a_stream_gives_what_came_before_the_connection_broke)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str message;
    AUTO(grpc_call) call = rig_stream(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    grpc_reply_send(kept, STR("one"));
    grpc_reply_send(kept, STR("two"));
    RIG_WAIT(grpc_reply_unsent_bytes(kept) == 0);
    EXPECT_TRUE(echo_works(rig)); /* behind them on the same connection */
    grpc_server_drop_connections(rig->server);
    EXPECT_EQ(grpc_next(call, &message, &err), 1);
    EXPECT_STR(message, "one");
    EXPECT_EQ(grpc_next(call, &message, &err), 1);
    EXPECT_STR(message, "two");
    EXPECT_ERR(grpc_next(call, &message, &err), err, ERR_UNAVAILABLE);
    grpc_reply_end(kept, 0, NULL);
}

TEST(a_socket_that_is_replaced_is_found_again)
{
    AUTO(rig) rig = rig_new();
    for (int i = 0; i < 5; i++) {
        EXPECT_TRUE(echo_works(rig));
        grpc_server_stop(rig->server);
        RIG_WAIT(!echo_works(rig));
        grpc_server_start(rig->server);
        RIG_WAIT(echo_works(rig));
    }
}

TEST(calls_in_line_go_to_the_next_connection)
{
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ 0 }, (struct grpc_server_options){ .streams_max = 1 });
    struct err err = { 0 };
    struct str reply;
    EXPECT_TRUE(echo_works(rig));
    AUTO(grpc_call) first = rig_call(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    AUTO(grpc_call) second = rig_call(rig, "/t/Echo", "was never sent");
    grpc_server_drop_connections(rig->server);
    EXPECT_ERR(grpc_finish(first, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_OK(grpc_finish(second, &reply, &err), err);
    EXPECT_STR(reply, "was never sent");
    grpc_reply_end(kept, 0, NULL);
}

TEST(after_a_goodbye_what_runs_is_finished_and_new_calls_go_elsewhere)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str message;
    AUTO(grpc_call) old = rig_stream(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    grpc_server_goaway(rig->server);
    grpc_reply_send(kept, STR("after the goodbye"));
    EXPECT_EQ(grpc_next(old, &message, &err), 1);
    EXPECT_TRUE(echo_works(rig));
    EXPECT_EQ(grpc_server_connections(rig->server), 2);
    grpc_reply_send(kept, STR("still there"));
    EXPECT_EQ(grpc_next(old, &message, &err), 1);
    EXPECT_STR(message, "still there");
    grpc_reply_end(kept, 0, NULL);
    EXPECT_EQ(grpc_next(old, &message, &err), 0);
    EXPECT_TRUE(echo_works(rig));
    EXPECT_EQ(grpc_server_connections(rig->server), 2);
}

/* --- silence --- */

TEST(a_server_that_never_spoke_is_given_up_when_a_call_runs_out_of_time)
{
    AUTO(rig) rig = rig_new_with((struct grpc_options){ .backoff_min_ns = HOUR_NS },
                                 (struct grpc_server_options){ 0 });
    struct err err = { 0 };
    struct str reply;
    grpc_server_pause(rig->server);
    AUTO(grpc_call) call = grpc_start(rig->grpc, "/t/Echo", STR(""), SOON);
    AUTO(grpc_call) patient = rig_call(rig, "/t/Keep", ""); /* in line: fails with the attempt */
    EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(grpc_call_status(call), GRPC_DEADLINE_EXCEEDED);
    EXPECT_ERR(grpc_finish(patient, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "says nothing");
    grpc_server_resume(rig->server);
    end_backoff(rig->grpc);
    EXPECT_TRUE(echo_works(rig));
    RIG_WAIT(grpc_server_connections(rig->server) == 2);
}

TEST(a_server_that_falls_silent_costs_deadlines_and_not_the_connection)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    EXPECT_TRUE(echo_works(rig));
    AUTO(grpc_call) patient = rig_call(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    grpc_server_pause(rig->server);
    for (int i = 0; i < 3; i++) {
        AUTO(grpc_call) call = grpc_start(rig->grpc, "/t/Echo", STR(""), SOON);
        EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_UNAVAILABLE);
        EXPECT_EQ(grpc_call_status(call), GRPC_DEADLINE_EXCEEDED);
    }
    grpc_server_resume(rig->server);
    EXPECT_TRUE(echo_works(rig));
    grpc_reply_send(kept, STR("late"));
    grpc_reply_end(kept, 0, NULL);
    EXPECT_OK(grpc_finish(patient, &reply, &err), err);
    EXPECT_EQ(grpc_server_connections(rig->server), 1);
}

TEST(a_server_that_takes_no_bytes_blocks_no_caller)
{
    AUTO(rig) rig = rig_new();
    AUTO_FREE char *bytes = kv_calloc(1, 1 << 20);
    struct err err = { 0 };
    struct str reply;
    EXPECT_TRUE(echo_works(rig));
    grpc_server_pause(rig->server);
    struct grpc_call *calls[20]; /* far more than the socket holds */
    for (size_t i = 0; i < 20; i++)
        calls[i] = grpc_start(rig->grpc, "/t/Echo", (struct str){ bytes, (1 << 20) - 5 },
                              (struct grpc_call_options){ 0 });
    grpc_cancel(calls[3]);
    grpc_server_resume(rig->server);
    for (size_t i = 0; i < 20; i++) {
        if (i == 3)
            EXPECT_ERR(grpc_finish(calls[i], &reply, &err), err, ERR_CANCELLED);
        else
            EXPECT_OK(grpc_finish(calls[i], &reply, &err), err);
        grpc_call_free(calls[i]);
    }
}

/* --- answers that are none --- */

TEST(an_answer_that_is_not_grpc_fails_and_the_connection_goes_on)
{
    static const struct {
        enum grpc_reply_fault fault;
        uint32_t status;
        const char *text;
    } cases[] = {
        { GRPC_FAULT_NO_STATUS, GRPC_UNAVAILABLE, "without a status" },
        { GRPC_FAULT_HTTP_STATUS, GRPC_UNAVAILABLE, "HTTP 503" },
        { GRPC_FAULT_CONTENT_TYPE, GRPC_UNKNOWN, "content type" },
        { GRPC_FAULT_COMPRESSED, GRPC_INTERNAL, "compressed" },
        { GRPC_FAULT_CUT, GRPC_INTERNAL, "ends within a message" },
        { GRPC_FAULT_RESET, GRPC_UNAVAILABLE, "INTERNAL_ERROR" },
    };
    AUTO(rig) rig = rig_new();
    for (size_t i = 0; i < 2 * KV_COUNT_OF(cases); i++) {
        const char request[] = { (char)('0' + cases[i / 2].fault), 'x', 'x', 0 };
        bool stream = i % 2;
        struct err err = { 0 };
        struct str reply;
        int rc;
        AUTO(grpc_call) call =
            stream ? rig_stream(rig, "/t/Fault", request) : rig_call(rig, "/t/Fault", request);
        if (!stream)
            rc = grpc_finish(call, &reply, &err);
        else
            while ((rc = grpc_next(call, &reply, &err)) > 0)
                EXPECT_STR(reply, request); /* a whole message, before the fault */
        EXPECT_EQ(rc, -1);
        EXPECT_EQ(err.kind, grpc_status_kind(cases[i / 2].status));
        EXPECT_EQ(grpc_call_status(call), cases[i / 2].status);
        EXPECT_HAS(str_of(err.text), cases[i / 2].text);
        EXPECT_TRUE(echo_works(rig));
    }
    EXPECT_EQ(grpc_server_connections(rig->server), 1);
}

TEST(an_unknown_method_is_unimplemented)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    AUTO(grpc_call) call = rig_call(rig, "/t/None", "");
    EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_INVALID);
    EXPECT_EQ(grpc_call_status(call), GRPC_UNIMPLEMENTED);
}

/* --- servers that speak something else: bytes by hand --- */

static int raw_listen(const char *path)
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    unlink(path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
    EXPECT_EQ(listen(fd, 5), 0);
    return fd;
}

#define FRAME_SETTINGS "\0\0\0\4\0\0\0\0\0"
/* ":status" 200 and the content type, on the first stream. */
#define FRAME_HEADERS_200                                                                          \
    "\0\0\24\1\4\0\0\0\1\x88\xf\20\20"                                                             \
    "application/grpc"

TEST(bytes_that_are_not_http2_are_a_failure_with_its_reason)
{
    static const char closed[] = "closed the connection", other[] = "does not speak HTTP/2",
                      rules[] = "broke the rules";
    static const struct {
        struct str bytes; /* and then the end */
        const char *text;
    } cases[] = {
        { STR(""), closed },
        { STR("\0"), closed },
        { STR("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n"), other },
        { STR("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), other },
        { STR("SSH-2.0-OpenSSH_9.2\r\n"), other },
        /* A frame, but not the first that is due. */
        { STR("\0\0\10\6\0\0\0\0\0pingpong"), other },
        { STR(FRAME_SETTINGS), closed },
        /* Half a frame; half an answer. */
        { STR(FRAME_SETTINGS "\0\0\10\6\0\0"), closed },
        { STR(FRAME_SETTINGS FRAME_HEADERS_200 "\0\0\5\0"), closed },
        /* Headers that cannot be unpacked. */
        { STR(FRAME_SETTINGS "\0\0\1\1\4\0\0\0\1\xff"), rules },
        /* Data before headers; of a stream that is not open; a stream of the server's own. */
        { STR(FRAME_SETTINGS "\0\0\1\0\0\0\0\0\1x"), rules },
        { STR(FRAME_SETTINGS "\0\0\1\0\0\0\0\0\7x"), rules },
        { STR(FRAME_SETTINGS "\0\0\1\1\4\0\0\0\2\x88"), rules },
        /* A window that grows by nothing; a goodbye without its fields. */
        { STR(FRAME_SETTINGS "\0\0\4\10\0\0\0\0\0\0\0\0\0"), rules },
        { STR(FRAME_SETTINGS "\0\0\0\7\0\0\0\0\0"), rules },
        { STR(FRAME_SETTINGS "\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\0"), "REFUSED_STREAM" },
    };
    AUTO(rig) rig = rig_new();
    grpc_server_stop(rig->server);
    int listen_fd = raw_listen(rig->path);
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        struct str reply;
        RIG_WAIT(grpc_now_ns() >= retry_ns(rig->grpc));
        AUTO(grpc_call) call = rig_call(rig, "/t/Echo", "x");
        int fd = accept(listen_fd, NULL, NULL);
        EXPECT_TRUE(fd >= 0);
        EXPECT_EQ(send(fd, cases[i].bytes.p, cases[i].bytes.len, MSG_NOSIGNAL),
                  (ssize_t)cases[i].bytes.len);
        shutdown(fd, SHUT_WR);
        EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_UNAVAILABLE);
        EXPECT_HAS(str_of(err.text), cases[i].text);
        close(fd);
    }
    close(listen_fd);
    grpc_server_start(rig->server);
    RIG_WAIT(echo_works(rig));
}

/* Trailers only, in one frame: ":status" 200, "grpc-status" 5. */
static const struct str NOT_FOUND = STR(FRAME_SETTINGS "\0\0\20\1\5\0\0\0\1\x88\0\xb"
                                                       "grpc-status\1"
                                                       "5");

TEST(a_server_that_answers_by_hand_is_understood)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    grpc_server_stop(rig->server);
    int listen_fd = raw_listen(rig->path);
    AUTO(grpc_call) call = rig_call(rig, "/t/Echo", "x");
    int fd = accept(listen_fd, NULL, NULL);
    for (size_t i = 0; i < NOT_FOUND.len; i++) /* byte by byte */
        EXPECT_EQ(send(fd, NOT_FOUND.p + i, 1, MSG_NOSIGNAL), 1);
    EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_NOT_FOUND);

    /* A ping is answered with the same bytes. */
    EXPECT_EQ(send(fd, "\0\0\10\6\0\0\0\0\0pingpong", 17, MSG_NOSIGNAL), 17);
    char got[4096] = { 0 };
    size_t len = 0;
    while (!memmem(got, len, "\0\0\10\6\1\0\0\0\0pingpong", 17)) {
        ssize_t more = recv(fd, got + len, sizeof got - len, 0);
        EXPECT_TRUE(more > 0);
        len += (size_t)more;
    }
    close(fd);
    close(listen_fd);
    grpc_server_start(rig->server);
}

TEST(an_answer_that_came_before_the_connection_broke_counts)
{
    AUTO(rig) rig = rig_new();
    struct grpc *grpc = rig->grpc;
    struct err err = { 0 };
    struct str reply;
    grpc_server_stop(rig->server);
    int listen_fd = raw_listen(rig->path);
    AUTO(grpc_call) call = rig_call(rig, "/t/Echo", "x");
    int fd = accept(listen_fd, NULL, NULL);

    pthread_mutex_lock(&grpc->lock); /* so that the thread reads nothing before the write fails */
    EXPECT_EQ(send(fd, NOT_FOUND.p, NOT_FOUND.len, MSG_NOSIGNAL), (ssize_t)NOT_FOUND.len);
    close(fd);
    nghttp2_submit_ping(grpc->conns->session, NGHTTP2_FLAG_NONE, NULL);
    grpc_conn_flush(grpc->conns);
    EXPECT_TRUE(grpc_conn_over(grpc->conns));
    pthread_mutex_unlock(&grpc->lock);
    EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_NOT_FOUND);
    close(listen_fd);
    grpc_server_start(rig->server);
}
