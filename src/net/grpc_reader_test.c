/* Who waits for the end of a call reads the connection for everybody. None of this may show. */
#include "net/grpc_testing.h"

#include <stdatomic.h>

struct waiter {
    struct grpc_call *call;
    pthread_t thread;
    atomic_bool returned;
    int rc;
    struct str reply;
    struct err err;
};

static void *waiter_main(void *arg)
{
    struct waiter *w = arg;
    w->rc = grpc_finish(w->call, &w->reply, &w->err);
    atomic_store(&w->returned, true);
    return NULL;
}

static void waiter_start(struct waiter *w, struct grpc_call *call)
{
    *w = (struct waiter){ .call = call };
    EXPECT_EQ(pthread_create(&w->thread, NULL, waiter_main, w), 0);
}

static void waiter_done(struct waiter *w)
{
    pthread_join(w->thread, NULL);
    grpc_call_free(w->call);
}

/* A caller that waits, so that it reads if anybody does; and what the server will answer it. */
static struct grpc_reply *waiter_kept(struct waiter *w, struct rig *rig)
{
    waiter_start(w, rig_call(rig, "/t/Keep", ""));
    return rig_reply(rig);
}

static void count_wake(void *count)
{
    atomic_fetch_add((atomic_uint *)count, 1);
}

TEST(while_one_waits_long_the_others_get_their_answers)
{
    AUTO(rig) rig = rig_new();
    struct waiter waiter;
    struct grpc_reply *kept = waiter_kept(&waiter, rig);
    atomic_uint wakes = 0;
    struct str message;
    struct err err = { 0 };

    AUTO(grpc_call) stream = rig_stream(rig, "/t/Keep", "");
    struct grpc_reply *stream_kept = rig_reply(rig);
    for (int i = 0; i < 50; i++) {
        AUTO(grpc_call)
        woken = grpc_start(rig->grpc, "/t/Echo", STR("w"),
                           (struct grpc_call_options){ .wake = count_wake, .ctx = &wakes });
        EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_NONE);
        grpc_reply_send(stream_kept, STR("m"));
        EXPECT_EQ(grpc_next(stream, &message, &err), 1);
        RIG_WAIT(wakes == (uint32_t)i + 1);
        EXPECT_TRUE(grpc_ready(woken));
    }
    EXPECT_FALSE(waiter.returned);
    grpc_reply_end(stream_kept, 0, NULL);
    grpc_reply_send(kept, STR("late"));
    grpc_reply_end(kept, 0, NULL);
    waiter_done(&waiter);
    EXPECT_EQ(waiter.rc, 0);
    EXPECT_EQ(grpc_next(stream, &message, &err), 0);
}

TEST(when_the_one_that_read_has_its_answer_the_others_still_get_theirs)
{
    AUTO(rig) rig = rig_new();
    struct waiter waiters[5];
    struct grpc_reply *kept[5];
    struct str message;
    struct err err = { 0 };
    for (size_t i = 0; i < 5; i++)
        kept[i] = waiter_kept(&waiters[i], rig);
    AUTO(grpc_call) stream = rig_stream(rig, "/t/Keep", "");
    struct grpc_reply *stream_kept = rig_reply(rig);
    for (size_t i = 0; i < 5; i++) {
        grpc_reply_send(kept[i], STR("x"));
        grpc_reply_end(kept[i], 0, NULL);
        waiter_done(&waiters[i]);
        EXPECT_OK(waiters[i].rc, waiters[i].err);
        grpc_reply_send(stream_kept, STR("m"));
        EXPECT_EQ(grpc_next(stream, &message, &err), 1);
    }
    grpc_reply_end(stream_kept, 0, NULL);
    EXPECT_EQ(grpc_next(stream, &message, &err), 0);
}

/* What ends a wait that is not an answer. */
static void cancel_it(struct rig *rig KV_UNUSED, struct waiter *w)
{
    grpc_cancel(w->call);
}

static void drop_connections(struct rig *rig, struct waiter *w KV_UNUSED)
{
    grpc_server_drop_connections(rig->server);
}

static void stop_server(struct rig *rig, struct waiter *w KV_UNUSED)
{
    grpc_server_stop(rig->server);
}

TEST(who_reads_is_ended_by_whatever_ends_its_call)
{
    static const struct {
        void (*act)(struct rig *rig, struct waiter *w);
        enum err_kind kind;
    } ends[] = {
        { cancel_it, ERR_CANCELLED },
        { drop_connections, ERR_UNAVAILABLE },
        { stop_server, ERR_UNAVAILABLE },
    };
    for (size_t i = 0; i < KV_COUNT_OF(ends); i++) {
        for (int wait = 0; wait < 2; wait++) { /* it has begun to read, or perhaps not yet */
            AUTO(rig) rig = rig_new();
            struct waiter reader, other;
            struct grpc_reply *kept = waiter_kept(&reader, rig);
            struct grpc_reply *other_kept = waiter_kept(&other, rig);
            if (wait)
                poll(NULL, 0, 20);
            ends[i].act(rig, &reader);
            RIG_WAIT(reader.returned);
            EXPECT_EQ(reader.err.kind, ends[i].kind);
            grpc_reply_end(kept, 0, NULL);
            grpc_reply_send(other_kept, STR("x"));
            grpc_reply_end(other_kept, 0, NULL);
            waiter_done(&reader);
            waiter_done(&other);
            EXPECT_EQ(other.err.kind, ends[i].act == cancel_it ? ERR_NONE : ERR_UNAVAILABLE);
        }
    }
}

TEST(the_deadlines_of_all_are_kept_while_one_reads)
{
    AUTO(rig) rig = rig_new();
    struct waiter reader;
    struct grpc_reply *kept = waiter_kept(&reader, rig);
    poll(NULL, 0, 20); /* it reads, most likely */
    for (int i = 0; i < 3; i++) {
        struct waiter soon;
        waiter_start(&soon, grpc_start(rig->grpc, "/t/Keep", STR(""),
                                       (struct grpc_call_options){ .timeout_ns = 20 * 1000000 }));
        waiter_done(&soon);
        EXPECT_EQ(soon.err.kind, ERR_UNAVAILABLE);
        EXPECT_HAS(str_of(soon.err.text), "no answer within");
    }
    grpc_cancel(reader.call);
    waiter_done(&reader);
    EXPECT_EQ(reader.err.kind, ERR_CANCELLED);
    grpc_reply_end(kept, 0, NULL);
}

TEST(after_a_goodbye_who_reads_the_old_connection_keeps_nobody_from_the_new_one)
{
    AUTO(rig) rig = rig_new();
    struct waiter reader;
    struct grpc_reply *kept = waiter_kept(&reader, rig);
    grpc_server_goaway(rig->server);
    RIG_WAIT(rig_echo(rig, STR("x")).kind == ERR_NONE && grpc_server_connections(rig->server) == 2);
    EXPECT_FALSE(reader.returned);
    grpc_reply_send(kept, STR("x"));
    grpc_reply_end(kept, 0, NULL);
    waiter_done(&reader);
    EXPECT_OK(reader.rc, reader.err);
    EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_NONE);
}

/* --- uncorking and waiting in one --- */

TEST(uncorking_sends_all_and_brings_the_reply)
{
    AUTO(rig) rig = rig_new();
    for (int i = 0; i < 20; i++) {
        struct str reply;
        struct err err = { 0 };
        grpc_cork(rig->grpc);
        AUTO(grpc_call) first = rig_call(rig, "/t/Echo", "a");
        AUTO(grpc_call) second = rig_call(rig, "/t/Echo", "b");
        EXPECT_OK(grpc_uncork_finish(second, &reply, &err), err);
        EXPECT_STR(reply, "b");
        EXPECT_OK(grpc_finish(first, &reply, &err), err);
        EXPECT_STR(reply, "a");
    }
    EXPECT_EQ(grpc_server_connections(rig->server), 1);
}

TEST(uncorking_a_call_that_cannot_be_sent_fails_and_the_next_may_succeed)
{
    AUTO(rig) rig = rig_new();
    struct str reply;
    struct err err = { 0 };
    grpc_server_stop(rig->server);
    grpc_cork(rig->grpc);
    AUTO(grpc_call) lost = rig_call(rig, "/t/Echo", "a");
    EXPECT_ERR(grpc_uncork_finish(lost, &reply, &err), err, ERR_UNAVAILABLE);

    grpc_server_start(rig->server);
    RIG_WAIT(rig_echo(rig, STR("x")).kind == ERR_NONE);
    grpc_cork(rig->grpc);
    AUTO(grpc_call) cancelled = rig_call(rig, "/t/Echo", "a");
    grpc_cancel(cancelled);
    EXPECT_ERR(grpc_uncork_finish(cancelled, &reply, &err), err, ERR_CANCELLED);
    EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_NONE);
}

static void *uncork_main(void *arg)
{
    struct waiter *w = arg;
    w->rc = grpc_uncork_finish(w->call, &w->reply, &w->err);
    return NULL;
}

TEST(uncorking_waits_for_the_corks_of_others_and_for_room)
{
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ 0 }, (struct grpc_server_options){ .streams_max = 1 });
    EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_NONE);
    AUTO(grpc_call) stream = rig_stream(rig, "/t/Keep", ""); /* all the room there is */
    struct grpc_reply *kept = rig_reply(rig);

    grpc_cork(rig->grpc);
    grpc_cork(rig->grpc);
    struct waiter waiter = { .call = rig_call(rig, "/t/Echo", "a") };
    EXPECT_EQ(pthread_create(&waiter.thread, NULL, uncork_main, &waiter), 0);
    poll(NULL, 0, 10);
    grpc_uncork(rig->grpc);
    poll(NULL, 0, 10);
    EXPECT_FALSE(grpc_ready(waiter.call));
    grpc_reply_end(kept, 0, NULL);
    waiter_done(&waiter);
    EXPECT_OK(waiter.rc, waiter.err);
    EXPECT_TRUE(grpc_ready(stream));
}
