/* A byte that says what is asked and how the rest is cut, and what a server sends: whatever that is,
 * every call ends, with a message or with a reason. No socket, no thread. */
#include "net/grpc_inner.h"

#define CALLS 4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct grpc_call *start(struct grpc *grpc, bool stream)
{
    return grpc_start(grpc, "/t/Fuzz", STR("request"),
                      (struct grpc_call_options){ .stream = stream });
}

/* Takes the messages that are there. */
static void read_stream(struct grpc_call *call)
{
    struct str message;
    struct err err = { 0 };
    int rc = 1;
    while (rc > 0 && grpc_ready(call)) {
        rc = grpc_next(call, &message, &err);
        KV_ASSERT(rc <= 0 || message.len <= call->frames.message_bytes_max);
        KV_ASSERT((rc < 0) == (err.kind != ERR_NONE));
    }
}

static void check_end(struct grpc_call *call)
{
    struct str reply;
    struct err err = { 0 };
    KV_ASSERT(grpc_ready(call));
    if (call->options.stream) {
        read_stream(call);
        KV_ASSERT((call->failure == NULL) == (grpc_call_status(call) == GRPC_OK));
    } else {
        int rc = grpc_finish(call, &reply, &err);
        KV_ASSERT((rc < 0) == (err.kind != ERR_NONE));
        KV_ASSERT((rc < 0) == (grpc_call_status(call) != GRPC_OK));
    }
    grpc_call_free(call);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str bytes = { (const char *)data + 1, size - 1 };
    bool readers = data[0] & 1, cancels = data[0] & 2;
    size_t piece = data[0] & 4 ? (size_t)1 + (data[0] >> 3) : bytes.len;

    struct grpc *grpc = kv_malloc(sizeof *grpc);
    struct grpc_options options = { .path = "/nowhere", .message_bytes_max = 4096 };
    KV_ASSERT(grpc_init(grpc, options, NULL) == 0);
    grpc->retry_ns = GRPC_NEVER; /* this connection and no other */
    struct grpc_conn *conn = grpc_conn_new(grpc, -1);
    struct grpc_call *calls[CALLS];
    for (size_t i = 0; i < CALLS; i++)
        calls[i] = start(grpc, i % 2);

    for (size_t at = 0; at < bytes.len && !grpc_conn_over(conn); at += piece) {
        grpc_conn_receive(conn, str_sub(bytes, at, piece));
        grpc_admit(grpc);
        grpc_conn_flush(conn);
        for (size_t i = 1; readers && i < CALLS; i += 2)
            read_stream(calls[i]);
        if (cancels && at > bytes.len / 2)
            grpc_cancel(calls[0]);
    }
    grpc_conn_break(conn, "the input is over");
    KV_ASSERT(grpc_reap(grpc));
    grpc_admit(grpc);
    for (size_t i = 0; i < CALLS; i++)
        check_end(calls[i]);
    grpc_done(grpc);
    free(grpc);
    return 0;
}
