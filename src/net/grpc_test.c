/* Calls and streams against a server that behaves; grpc_faults_test has those that do not. */
#include "net/grpc_testing.h"

static const struct grpc_call_options SOON = { .timeout_ns = 20 * 1000000 };

static char *bytes_new(size_t len)
{
    char *bytes = kv_malloc(len + 1);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (char)(i * 31 >> 3);
    return bytes;
}

/* --- unary calls --- */

TEST(a_unary_call_brings_the_reply)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    AUTO(grpc_call) call = rig_call(rig, "/t/Echo", "hello");
    EXPECT_OK(grpc_finish(call, &reply, &err), err);
    EXPECT_STR(reply, "hello");
    EXPECT_EQ(grpc_call_status(call), GRPC_OK);
    EXPECT_TRUE(grpc_ready(call));
    EXPECT_OK(grpc_finish(call, &reply, &err), err); /* again, the same */
    EXPECT_STR(reply, "hello");
}

TEST(calls_share_one_connection_which_the_first_makes)
{
    AUTO(rig) rig = rig_new();
    EXPECT_EQ(grpc_server_connections(rig->server), 0);
    for (int i = 0; i < 100; i++)
        EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_NONE);
    EXPECT_EQ(grpc_server_connections(rig->server), 1);
}

TEST(messages_of_all_sizes_travel_both_ways)
{
    /* Around the borders of HTTP/2's frames and windows, with and without our prefix. */
    static const size_t sizes[] = {
        0,
        1,
        4,
        16378,
        16379,
        16380,
        16384,
        16385,
        65529,
        65530,
        65531,
        65535,
        65536,
        (1 << 20) - 6,
        (1 << 20) - 5,
        (1 << 20) - 4,
        (1 << 20),
        (1 << 20) + 1,
        (2 << 20) - 5,
        GRPC_MESSAGE_BYTES_MAX,
    };
    AUTO(rig) rig = rig_new();
    AUTO_FREE char *bytes = bytes_new(GRPC_MESSAGE_BYTES_MAX);
    for (size_t i = 0; i < KV_COUNT_OF(sizes); i++)
        EXPECT_EQ(rig_echo(rig, (struct str){ bytes, sizes[i] }).kind, ERR_NONE);
    EXPECT_EQ(grpc_server_connections(rig->server), 1);
}

TEST(a_message_over_the_limit_is_refused_either_way)
{
    AUTO(rig) rig = rig_new_with((struct grpc_options){ .message_bytes_max = 1000 },
                                 (struct grpc_server_options){ 0 });
    AUTO_FREE char *bytes = bytes_new(1001);
    struct err err = { 0 };
    struct str reply;
    EXPECT_EQ(rig_echo(rig, (struct str){ bytes, 1000 }).kind, ERR_NONE);
    EXPECT_EQ(rig_echo(rig, (struct str){ bytes, 1001 }).kind, ERR_CAPACITY);

    AUTO(grpc_call) call = rig_call(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    grpc_reply_send(kept, (struct str){ bytes, 1001 });
    EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_CAPACITY);
    EXPECT_HAS(str_of(err.text), "1001");
    EXPECT_EQ(grpc_call_status(call), GRPC_RESOURCE_EXHAUSTED);
    EXPECT_TRUE(grpc_reply_wait_cancelled(kept, RIG_PATIENCE_NS));
    grpc_reply_end(kept, 0, NULL);
    EXPECT_EQ(rig_echo(rig, STR("still here")).kind, ERR_NONE);
}

TEST(answers_come_in_any_order)
{
    AUTO(rig) rig = rig_new();
    struct grpc_call *calls[20];
    struct grpc_reply *replies[20];
    for (size_t i = 0; i < 20; i++) {
        calls[i] = rig_call(rig, "/t/Keep", "");
        replies[i] = rig_reply(rig); /* one at a time: so replies[i] is of calls[i] */
    }
    for (size_t i = 20; i-- > 0;) {
        char text[8];
        struct err err = { 0 };
        struct str reply;
        snprintf(text, sizeof text, "%zu", i);
        EXPECT_FALSE(grpc_ready(calls[i]));
        grpc_reply_send(replies[i], str_of(text));
        grpc_reply_end(replies[i], 0, NULL);
        EXPECT_OK(grpc_finish(calls[i], &reply, &err), err);
        EXPECT_STR(reply, text);
        grpc_call_free(calls[i]);
    }
}

TEST(corked_calls_go_out_when_the_last_cork_is_out)
{
    AUTO(rig) rig = rig_new();
    struct grpc_call *calls[5];
    grpc_cork(rig->grpc);
    grpc_cork(rig->grpc);
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++)
        calls[i] = rig_call(rig, "/t/Echo", (const char *[]){ "a", "b", "c", "d", "e" }[i]);
    grpc_cancel(calls[1]); /* makes nobody else hurry */
    grpc_uncork(rig->grpc);
    EXPECT_EQ(grpc_server_connections(rig->server), 0);
    EXPECT_FALSE(grpc_ready(calls[0]));
    grpc_uncork(rig->grpc);
    for (size_t i = 0; i < KV_COUNT_OF(calls); i++) {
        struct str reply;
        struct err err = { 0 };
        if (i == 1)
            EXPECT_ERR(grpc_finish(calls[i], &reply, &err), err, ERR_CANCELLED);
        else
            EXPECT_OK(grpc_finish(calls[i], &reply, &err), err);
        if (i != 1)
            EXPECT_EQ(reply.p[0], 'a' + (int)i);
        grpc_call_free(calls[i]);
    }
    EXPECT_EQ(grpc_server_connections(rig->server), 1);
}

TEST(a_status_of_the_server_has_its_kind_and_its_words)
{
    static const struct {
        const char *request;
        enum err_kind kind;
        const char *text;
    } cases[] = {
        { "1 stopped", ERR_CANCELLED, "stopped" },
        { "2 failed to create shim", ERR_INTERNAL, "failed to create shim" },
        { "3 x", ERR_INVALID, "x" },
        { "4 x", ERR_UNAVAILABLE, "x" },
        { "5 no such container: \"a\"", ERR_NOT_FOUND, "no such container: \"a\"" },
        { "6 x", ERR_EXISTS, "x" },
        { "7 x", ERR_DENIED, "x" },
        { "8 x", ERR_CAPACITY, "x" },
        { "9 x", ERR_CONFLICT, "x" },
        { "10 x", ERR_CONFLICT, "x" },
        { "11 x", ERR_INVALID, "x" },
        { "12 x", ERR_INVALID, "x" },
        { "13 x", ERR_INTERNAL, "x" },
        { "14 two\nlines, 100% \xc3\xa9", ERR_UNAVAILABLE, "two lines, 100% \xc3\xa9" },
        { "15 x", ERR_INTERNAL, "x" },
        { "16 x", ERR_DENIED, "x" },
        { "17 x", ERR_INTERNAL, "x" },
        { "4294967295 x", ERR_INTERNAL, "x" },
        { "5 ", ERR_NOT_FOUND, "the server answered with status 5" },
    };
    AUTO(rig) rig = rig_new();
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        struct str reply;
        AUTO(grpc_call) call = rig_call(rig, "/t/Status", cases[i].request);
        EXPECT_ERR(grpc_finish(call, &reply, &err), err, cases[i].kind);
        EXPECT_Z(err.text, cases[i].text);
        EXPECT_EQ(grpc_call_status(call), (uint32_t)strtoul(cases[i].request, NULL, 10));
        EXPECT_EQ(grpc_status_kind(grpc_call_status(call)), cases[i].kind);
    }
    EXPECT_EQ(grpc_status_kind(0), ERR_NONE);
}

TEST(a_status_after_messages_counts_as_well_as_one_without)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    AUTO(grpc_call) call = rig_call(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    grpc_reply_send(kept, STR("half an answer"));
    grpc_reply_end(kept, GRPC_NOT_FOUND, "after all");
    EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_NOT_FOUND);
    EXPECT_Z(err.text, "after all");
}

TEST(a_unary_call_has_exactly_one_message)
{
    AUTO(rig) rig = rig_new();
    static const char *const counts[] = { "0", "2", "100" };
    for (size_t i = 0; i < KV_COUNT_OF(counts); i++) {
        struct err err = { 0 };
        struct str reply;
        AUTO(grpc_call) call = rig_call(rig, "/t/Many", counts[i]);
        EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_INTERNAL);
        EXPECT_HAS(str_of(err.text), i == 0 ? "without a message" : "more than one");
    }
}

TEST(more_calls_than_the_limit_are_refused_until_some_are_freed)
{
    AUTO(rig) rig = rig_new_with((struct grpc_options){ 0 },
                                 (struct grpc_server_options){ .streams_max = 2000 });
    struct grpc_call *calls[GRPC_CALLS_MAX];
    for (size_t i = 0; i < GRPC_CALLS_MAX; i++)
        calls[i] = rig_call(rig, "/t/Keep", "");
    EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_CAPACITY);
    grpc_call_free(calls[0]);
    EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_NONE);
    for (size_t i = 1; i < GRPC_CALLS_MAX; i++)
        grpc_call_free(calls[i]);
}

/* --- the server's limit --- */

TEST(calls_over_the_servers_limit_wait_in_line)
{
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ 0 }, (struct grpc_server_options){ .streams_max = 2 });
    struct grpc_call *calls[9];
    for (size_t i = 0; i < 9; i++)
        calls[i] = rig_call(rig, "/t/Keep", "");
    for (size_t i = 0; i < 9; i++) {
        struct err err = { 0 };
        struct str reply;
        struct grpc_reply *kept = rig_reply(rig);
        EXPECT_TRUE(grpc_server_streams(rig->server) <= 2);
        grpc_reply_send(kept, STR("ok"));
        grpc_reply_end(kept, 0, NULL);
        EXPECT_OK(grpc_finish(calls[i], &reply, &err), err); /* first come, first served */
    }
    for (size_t i = 0; i < 9; i++)
        grpc_call_free(calls[i]);
}

TEST(a_call_that_leaves_its_stream_makes_room_for_one_in_line)
{
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ 0 }, (struct grpc_server_options){ .streams_max = 1 });
    struct grpc_call *first = rig_call(rig, "/t/Keep", "");
    grpc_reply_end(rig_reply(rig), 0, NULL);
    grpc_call_free(first);

    first = rig_call(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    AUTO(grpc_call) given_up = rig_call(rig, "/t/Echo", "never sent");
    AUTO(grpc_call) second = rig_call(rig, "/t/Echo", "second");
    grpc_cancel(given_up); /* in line */
    EXPECT_FALSE(grpc_ready(second));
    grpc_call_free(first);
    struct err err = { 0 };
    struct str reply;
    EXPECT_OK(grpc_finish(second, &reply, &err), err);
    EXPECT_STR(reply, "second");
    EXPECT_ERR(grpc_finish(given_up, &reply, &err), err, ERR_CANCELLED);
    grpc_reply_end(kept, 0, NULL);
}

/* --- deadlines --- */

TEST(a_deadline_is_told_to_the_server_and_kept_by_the_client)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    EXPECT_EQ(rig_echo(rig, STR("the server is there")).kind, ERR_NONE);
    AUTO(grpc_call) call = grpc_start(rig->grpc, "/t/Keep", STR(""), SOON);
    struct grpc_reply *kept = rig_reply(rig);
    int64_t told = 0;
    struct str timeout = str_of(grpc_reply_timeout(kept));
    EXPECT_TRUE(str_ends(timeout, STR("n")));
    EXPECT_TRUE(str_to_i64(str_sub(timeout, 0, timeout.len - 1), &told));
    EXPECT_TRUE(told <= SOON.timeout_ns);

    EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(grpc_call_status(call), GRPC_DEADLINE_EXCEEDED);
    EXPECT_Z(err.text, "no answer within 0.02 s");
    EXPECT_TRUE(grpc_reply_wait_cancelled(kept, RIG_PATIENCE_NS));
    grpc_reply_end(kept, 0, NULL);
    EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_NONE);
    EXPECT_EQ(grpc_server_connections(rig->server), 1);
}

TEST(a_call_without_a_deadline_tells_none)
{
    AUTO(rig) rig = rig_new();
    AUTO(grpc_call) call = rig_call(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    EXPECT_Z(grpc_reply_timeout(kept), "");
    EXPECT_FALSE(grpc_ready(call));
    grpc_reply_end(kept, 0, NULL);
}

TEST(a_shorter_deadline_is_kept_while_longer_ones_run)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    EXPECT_EQ(rig_echo(rig, STR("the server is there")).kind, ERR_NONE);
    AUTO(grpc_call) hour =
        grpc_start(rig->grpc, "/t/Keep", STR(""),
                   (struct grpc_call_options){ .timeout_ns = (int64_t)3600 * 1000000000 });
    AUTO(grpc_call) forever = grpc_start(rig->grpc, "/t/Keep", STR(""),
                                         (struct grpc_call_options){ .timeout_ns = INT64_MAX });
    AUTO(grpc_call) soon = grpc_start(rig->grpc, "/t/Keep", STR(""), SOON);
    EXPECT_ERR(grpc_finish(soon, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_FALSE(grpc_ready(hour));
    EXPECT_FALSE(grpc_ready(forever));
    AUTO(grpc_call) again = grpc_start(rig->grpc, "/t/Keep", STR(""), SOON);
    EXPECT_ERR(grpc_finish(again, &reply, &err), err, ERR_UNAVAILABLE);
}

TEST(a_deadline_is_kept_in_line_too)
{
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ 0 }, (struct grpc_server_options){ .streams_max = 1 });
    struct err err = { 0 };
    struct str reply;
    AUTO(grpc_call) first = rig_call(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    AUTO(grpc_call) second = grpc_start(rig->grpc, "/t/Echo", STR(""), SOON);
    EXPECT_ERR(grpc_finish(second, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(grpc_call_status(second), GRPC_DEADLINE_EXCEEDED);
    EXPECT_FALSE(grpc_ready(first));
    grpc_reply_end(kept, 0, NULL);
}

TEST(a_deadline_in_the_past_is_not_even_sent)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    AUTO(grpc_call) call =
        grpc_start(rig->grpc, "/t/Echo", STR(""), (struct grpc_call_options){ .timeout_ns = -1 });
    EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(grpc_call_status(call), GRPC_DEADLINE_EXCEEDED);
    EXPECT_EQ(grpc_server_connections(rig->server), 0);
}

/* --- cancelling --- */

TEST(a_cancelled_call_ends_here_and_at_the_server)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    AUTO(grpc_call) call = rig_call(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    EXPECT_FALSE(grpc_reply_cancelled(kept));
    grpc_cancel(call);
    EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_CANCELLED);
    EXPECT_EQ(grpc_call_status(call), GRPC_CANCELLED);
    EXPECT_TRUE(grpc_reply_wait_cancelled(kept, RIG_PATIENCE_NS));
    grpc_reply_send(kept, STR("too late"));
    grpc_reply_end(kept, 0, NULL);
    EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_NONE);
}

TEST(cancelling_what_has_ended_changes_nothing)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str reply;
    AUTO(grpc_call) call = rig_call(rig, "/t/Echo", "hello");
    EXPECT_OK(grpc_finish(call, &reply, &err), err);
    grpc_cancel(call);
    EXPECT_OK(grpc_finish(call, &reply, &err), err);
    EXPECT_STR(reply, "hello");
}

TEST(freeing_a_call_cancels_it)
{
    AUTO(rig) rig = rig_new();
    struct grpc_call *call = rig_call(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    grpc_call_free(call);
    EXPECT_TRUE(grpc_reply_wait_cancelled(kept, RIG_PATIENCE_NS));
    grpc_reply_end(kept, 0, NULL);
}

static void *cancel_main(void *call)
{
    grpc_cancel(call);
    return NULL;
}

TEST(another_thread_may_cancel_who_waits)
{
    AUTO(rig) rig = rig_new();
    for (int i = 0; i < 200; i++) {
        struct err err = { 0 };
        struct str reply;
        pthread_t thread;
        AUTO(grpc_call) call = rig_call(rig, "/t/Keep", "");
        EXPECT_EQ(pthread_create(&thread, NULL, cancel_main, call), 0);
        EXPECT_ERR(grpc_finish(call, &reply, &err), err, ERR_CANCELLED);
        pthread_join(thread, NULL);
    }
}

/* --- streams --- */

TEST(a_stream_brings_its_messages_in_order_and_then_its_end)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str message;
    AUTO(grpc_call) call = rig_stream(rig, "/t/Many", "5000");
    for (int64_t i = 0; i < 5000; i++) {
        int64_t number = -1;
        EXPECT_EQ(grpc_next(call, &message, &err), 1);
        EXPECT_TRUE(str_to_i64(message, &number));
        EXPECT_EQ(number, i);
    }
    EXPECT_EQ(grpc_next(call, &message, &err), 0);
    EXPECT_EQ(grpc_next(call, &message, &err), 0);
    EXPECT_EQ(grpc_call_status(call), GRPC_OK);
}

TEST(messages_arrive_while_the_stream_is_open)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str message;
    AUTO(grpc_call) call = rig_stream(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    for (int i = 0; i < 10; i++) {
        EXPECT_FALSE(grpc_ready(call));
        grpc_reply_send(kept, STR("news"));
        EXPECT_EQ(grpc_next(call, &message, &err), 1);
        EXPECT_STR(message, "news");
    }
    grpc_reply_send(kept, STR("last"));
    grpc_reply_end(kept, GRPC_UNAVAILABLE, "going down");
    EXPECT_EQ(grpc_next(call, &message, &err), 1); /* what came before the end is not lost */
    EXPECT_STR(message, "last");
    EXPECT_ERR(grpc_next(call, &message, &err), err, ERR_UNAVAILABLE);
    EXPECT_Z(err.text, "going down");
}

TEST(a_stream_that_is_cancelled_ends_at_once)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str message;
    AUTO(grpc_call) call = rig_stream(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    grpc_reply_send(kept, STR("one"));
    grpc_reply_send(kept, STR("two"));
    EXPECT_EQ(grpc_next(call, &message, &err), 1);
    grpc_cancel(call);
    EXPECT_STR(message, "one"); /* still lives */
    EXPECT_ERR(grpc_next(call, &message, &err), err, ERR_CANCELLED);
    EXPECT_TRUE(grpc_reply_wait_cancelled(kept, RIG_PATIENCE_NS));
    grpc_reply_end(kept, 0, NULL);
}

TEST(a_stream_has_a_deadline_like_any_call)
{
    AUTO(rig) rig = rig_new();
    struct err err = { 0 };
    struct str message;
    EXPECT_EQ(rig_echo(rig, STR("the server is there")).kind, ERR_NONE);
    AUTO(grpc_call) call =
        grpc_start(rig->grpc, "/t/Keep", STR(""),
                   (struct grpc_call_options){ .stream = true, .timeout_ns = SOON.timeout_ns });
    struct grpc_reply *kept = rig_reply(rig);
    EXPECT_ERR(grpc_next(call, &message, &err), err, ERR_UNAVAILABLE);
    EXPECT_EQ(grpc_call_status(call), GRPC_DEADLINE_EXCEEDED);
    grpc_reply_end(kept, 0, NULL);
}

TEST(a_stream_that_nobody_reads_stops_flowing_and_holds_up_nobody)
{
    enum { MESSAGES = 64, MESSAGE_BYTES = 64 << 10 };
    AUTO(rig) rig = rig_new();
    AUTO_FREE char *bytes = bytes_new(MESSAGE_BYTES);
    struct err err = { 0 };
    struct str message;
    AUTO(grpc_call) call = rig_stream(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    for (uint32_t i = 0; i < MESSAGES; i++) {
        memcpy(bytes, &i, sizeof i);
        grpc_reply_send(kept, (struct str){ bytes, MESSAGE_BYTES });
    }
    /* The window, and the message in front, which needs none. */
    size_t total = MESSAGES * (MESSAGE_BYTES + 5);
    size_t held = GRPC_STREAM_WINDOW_BYTES + MESSAGE_BYTES + 5;
    RIG_WAIT(grpc_reply_unsent_bytes(kept) <= total - GRPC_STREAM_WINDOW_BYTES);
    for (int i = 0; i < 20; i++) /* more than the default window of a connection, many times over */
        EXPECT_EQ(rig_echo(rig, (struct str){ bytes, MESSAGE_BYTES }).kind, ERR_NONE);
    EXPECT_TRUE(grpc_reply_unsent_bytes(kept) >= total - held);

    for (uint32_t i = 0; i < MESSAGES; i++) {
        EXPECT_EQ(grpc_next(call, &message, &err), 1);
        EXPECT_EQ(message.len, MESSAGE_BYTES);
        EXPECT_EQ(memcmp(message.p, &i, sizeof i), 0);
    }
    EXPECT_EQ(grpc_reply_unsent_bytes(kept), 0);
    grpc_reply_end(kept, 0, NULL);
    EXPECT_EQ(grpc_next(call, &message, &err), 0);
}

TEST(a_message_larger_than_the_window_passes_in_a_stream_behind_others)
{
    AUTO(rig) rig = rig_new();
    AUTO_FREE char *bytes = bytes_new(3 << 20);
    struct err err = { 0 };
    struct str message;
    AUTO(grpc_call) call = rig_stream(rig, "/t/Keep", "");
    struct grpc_reply *kept = rig_reply(rig);
    static const size_t sizes[] = { 0, 300 << 10, 3 << 20, 1, 600 << 10, 0, 2 << 20 };
    for (size_t i = 0; i < KV_COUNT_OF(sizes); i++)
        grpc_reply_send(kept, (struct str){ bytes, sizes[i] });
    grpc_reply_end(kept, 0, NULL);
    for (size_t i = 0; i < KV_COUNT_OF(sizes); i++) {
        EXPECT_EQ(grpc_next(call, &message, &err), 1);
        EXPECT_TRUE(str_eq(message, (struct str){ bytes, sizes[i] }));
    }
    EXPECT_EQ(grpc_next(call, &message, &err), 0);
}

/* --- waking --- */

struct bell {
    pthread_mutex_t lock;
    uint32_t rung;
};

static void ring(void *ctx)
{
    struct bell *bell = ctx;
    pthread_mutex_lock(&bell->lock);
    bell->rung++;
    pthread_mutex_unlock(&bell->lock);
}

static uint32_t rung(struct bell *bell)
{
    pthread_mutex_lock(&bell->lock);
    uint32_t count = bell->rung;
    pthread_mutex_unlock(&bell->lock);
    return count;
}

TEST(who_does_not_wait_is_woken_at_the_end)
{
    AUTO(rig) rig = rig_new();
    struct bell bell = { .lock = PTHREAD_MUTEX_INITIALIZER };
    AUTO(grpc_call) call = grpc_start(rig->grpc, "/t/Keep", STR(""),
                                      (struct grpc_call_options){ .wake = ring, .ctx = &bell });
    struct grpc_reply *kept = rig_reply(rig);
    EXPECT_EQ(rung(&bell), 0);
    grpc_reply_send(kept, STR("x"));
    EXPECT_EQ(rig_echo(rig, STR("a message alone is not the end")).kind, ERR_NONE);
    EXPECT_EQ(rung(&bell), 0);
    EXPECT_FALSE(grpc_ready(call));
    grpc_reply_end(kept, 0, NULL);
    RIG_WAIT(rung(&bell) == 1);
    EXPECT_TRUE(grpc_ready(call));
}

TEST(who_does_not_wait_is_woken_by_each_message_that_can_be_taken)
{
    AUTO(rig) rig = rig_new();
    struct bell bell = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct err err = { 0 };
    struct str message;
    AUTO(grpc_call) call =
        grpc_start(rig->grpc, "/t/Keep", STR(""),
                   (struct grpc_call_options){ .stream = true, .wake = ring, .ctx = &bell });
    struct grpc_reply *kept = rig_reply(rig);
    for (uint32_t i = 0; i < 5; i++) {
        grpc_reply_send(kept, STR("x"));
        RIG_WAIT(rung(&bell) == i + 1);
        EXPECT_TRUE(grpc_ready(call));
        EXPECT_EQ(grpc_next(call, &message, &err), 1);
        EXPECT_FALSE(grpc_ready(call));
    }
    grpc_reply_end(kept, 0, NULL);
    RIG_WAIT(rung(&bell) == 6);
    EXPECT_EQ(grpc_next(call, &message, &err), 0);
}

TEST(a_call_that_fails_at_once_wakes_too)
{
    AUTO(rig) rig = rig_new();
    struct bell bell = { .lock = PTHREAD_MUTEX_INITIALIZER };
    grpc_server_stop(rig->server);
    AUTO(grpc_call) call = grpc_start(rig->grpc, "/t/Echo", STR(""),
                                      (struct grpc_call_options){ .wake = ring, .ctx = &bell });
    RIG_WAIT(rung(&bell) == 1);
    EXPECT_TRUE(grpc_ready(call));
}

TEST(nobody_is_woken_for_a_call_that_was_freed)
{
    AUTO(rig) rig = rig_new();
    struct bell bell = { .lock = PTHREAD_MUTEX_INITIALIZER };
    for (int i = 0; i < 300; i++) {
        struct grpc_call *call =
            grpc_start(rig->grpc, "/t/Echo", STR(""),
                       (struct grpc_call_options){ .wake = ring, .ctx = &bell });
        if (i % 3 == 0)
            RIG_WAIT(grpc_ready(call));
        grpc_call_free(call);
        uint32_t before = rung(&bell);
        EXPECT_TRUE(before <= (uint32_t)i + 1);
        EXPECT_EQ(rung(&bell), before);
    }
}
