/* net/grpc_testing.h - a client and a server that know each other, for the tests of net/grpc.
 *
 * What the server does with a call is said by its method:
 *
 *     /t/Echo    answers with the request
 *     /t/Status  fails; the request is "CODE TEXT"
 *     /t/Fault   answers with the request and the fault whose number is its first character
 *     /t/Many    sends as many messages as the request says; each is its number, from 0
 *     /t/Keep    leaves the reply to the test: rig_reply
 */
#pragma once

#include "base/vec.h"
#include "net/grpc.h"
#include "net/grpc_server_testing.h"
#include "support/test.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#define RIG_PATIENCE_NS ((int64_t)30 * 1000000000) /* for what happens soon, on any machine */

struct rig {
    char path[64];
    struct grpc_server *server;
    struct grpc *grpc;
    pthread_mutex_t lock;
    pthread_cond_t kept_one;
    VEC(struct grpc_reply *) kept;
    size_t given; /* of kept, to rig_reply */
};

static void rig_send_many(struct grpc_reply *reply, struct str request)
{
    int64_t count = 0;
    str_to_i64(request, &count);
    for (int64_t i = 0; i < count; i++) {
        char text[24];
        snprintf(text, sizeof text, "%lld", (long long)i);
        grpc_reply_send(reply, str_of(text));
    }
    grpc_reply_end(reply, 0, NULL);
}

static void rig_handle(void *ctx, struct str method, struct str request, struct grpc_reply *reply)
{
    struct rig *rig = ctx;
    if (str_eqz(method, "/t/Echo")) {
        grpc_reply_send(reply, request);
        grpc_reply_end(reply, 0, NULL);
    } else if (str_eqz(method, "/t/Status")) {
        struct str code, text;
        int64_t status = 0;
        str_cut(request, ' ', &code, &text);
        str_to_i64(code, &status);
        AUTO_FREE char *message = str_dup(text);
        grpc_reply_end(reply, (uint32_t)status, message);
    } else if (str_eqz(method, "/t/Fault")) {
        grpc_reply_fault(reply, (enum grpc_reply_fault)(request.p[0] - '0'));
        grpc_reply_send(reply, request);
        grpc_reply_end(reply, 0, NULL);
    } else if (str_eqz(method, "/t/Many")) {
        rig_send_many(reply, request);
    } else if (str_eqz(method, "/t/Keep")) {
        pthread_mutex_lock(&rig->lock);
        vec_push(&rig->kept, reply);
        pthread_cond_broadcast(&rig->kept_one);
        pthread_mutex_unlock(&rig->lock);
    } else {
        grpc_reply_end(reply, GRPC_UNIMPLEMENTED, "no such method");
    }
}

static KV_UNUSED struct rig *rig_new_with(struct grpc_options grpc,
                                          struct grpc_server_options server)
{
    static int number;
    struct err err = { 0 };
    struct rig *rig = kv_calloc(1, sizeof *rig);
    pthread_mutex_init(&rig->lock, NULL);
    clock_cond_init(&rig->kept_one);
    snprintf(rig->path, sizeof rig->path, "/tmp/karve-grpc-test-%d-%d.sock", getpid(), number++);
    server.path = grpc.path = rig->path;
    server.handle = rig_handle;
    server.ctx = rig;
    rig->server = grpc_server_new(server);
    EXPECT_OK(grpc_new(grpc, &rig->grpc, &err), err);
    return rig;
}

static KV_UNUSED struct rig *rig_new(void)
{
    return rig_new_with((struct grpc_options){ .backoff_min_ns = 1000000 },
                        (struct grpc_server_options){ 0 });
}

/* Replies that were kept and not given out are ended. */
static void rig_free(struct rig *rig)
{
    grpc_free(rig->grpc);
    grpc_server_stop(rig->server);
    for (size_t i = rig->given; i < rig->kept.count; i++)
        grpc_reply_end(rig->kept.items[i], GRPC_UNAVAILABLE, "the test is over");
    grpc_server_free(rig->server);
    vec_done(&rig->kept);
    pthread_cond_destroy(&rig->kept_one);
    pthread_mutex_destroy(&rig->lock);
    free(rig);
}
KV_AUTO_TYPE(rig, rig_free)

/* The next reply of a call to /t/Keep; the test ends it. */
static KV_UNUSED struct grpc_reply *rig_reply(struct rig *rig)
{
    int64_t until_ns = clock_mono_ns(clock_real()) + RIG_PATIENCE_NS;
    pthread_mutex_lock(&rig->lock);
    while (rig->given == rig->kept.count && clock_mono_ns(clock_real()) < until_ns)
        clock_wait(clock_real(), &rig->kept_one, &rig->lock, until_ns);
    KV_ASSERT(rig->given < rig->kept.count);
    struct grpc_reply *reply = rig->kept.items[rig->given++];
    pthread_mutex_unlock(&rig->lock);
    return reply;
}

/* Wait until `cond` holds; it fails the test if that takes too long. */
#define RIG_WAIT(cond)                                                                             \
    do {                                                                                           \
        int64_t rig_until_ns_ = clock_mono_ns(clock_real()) + RIG_PATIENCE_NS;                     \
        while (!(cond) && clock_mono_ns(clock_real()) < rig_until_ns_)                             \
            poll(NULL, 0, 1);                                                                      \
        EXPECT_TRUE(cond);                                                                         \
    } while (0)

static KV_UNUSED struct grpc_call *rig_call(struct rig *rig, const char *method,
                                            const char *request)
{
    return grpc_start(rig->grpc, method, str_of(request), (struct grpc_call_options){ 0 });
}

static KV_UNUSED struct grpc_call *rig_stream(struct rig *rig, const char *method,
                                              const char *request)
{
    return grpc_start(rig->grpc, method, str_of(request),
                      (struct grpc_call_options){ .stream = true });
}

/* A call from start to end: its failure, or ERR_NONE and that the server echoed it. */
static KV_UNUSED struct err rig_echo(struct rig *rig, struct str request)
{
    struct err err = { 0 };
    struct str reply;
    AUTO(grpc_call) call =
        grpc_start(rig->grpc, "/t/Echo", request, (struct grpc_call_options){ 0 });
    if (grpc_finish(call, &reply, &err) == 0)
        EXPECT_TRUE(str_eq(reply, request));
    return err;
}
