/* net/grpc_session.c - HTTP/2: nghttp2 keeps the protocol, these are its callbacks.
 *
 * A stream is looked up in the connection's map for every event: a call may end before its stream
 * does (cancelled, out of time, a bad message), and what then still arrives belongs to nobody.
 *
 * Windows: what arrives is taken from the connection's window and given back at once, so one stream
 * never stops another. A stream's own is given back as its reader gets on (grpc_call_return_window).
 */
#include "net/grpc_inner.h"

#include <unistd.h>

#define HEADER_LIST_BYTES_MAX (64 << 10) /* advice to the server */

static struct grpc_call *call_of(const struct grpc_conn *conn, int32_t stream_id)
{
    uintptr_t value;
    return map_get(&conn->calls, (uint64_t)stream_id, &value) ? (struct grpc_call *)value : NULL;
}

/* --- receiving --- */

static int on_header(nghttp2_session *session KV_UNUSED, const nghttp2_frame *frame,
                     const uint8_t *name, size_t name_len, const uint8_t *value, size_t value_len,
                     uint8_t flags KV_UNUSED, void *ctx)
{
    struct grpc_call *call = call_of(ctx, frame->hd.stream_id);
    if (call)
        grpc_call_on_header(call, (struct str){ (const char *)name, name_len },
                            (struct str){ (const char *)value, value_len });
    return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags KV_UNUSED, int32_t stream_id,
                   const uint8_t *bytes, size_t len, void *ctx)
{
    struct grpc_call *call = call_of(ctx, stream_id);
    nghttp2_session_consume_connection(session, len);
    if (call)
        grpc_call_on_data(call, (struct str){ (const char *)bytes, len });
    return 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx)
{
    struct grpc_conn *conn = ctx;
    int32_t stream_id = frame->hd.stream_id;
    switch (frame->hd.type) {
    case NGHTTP2_SETTINGS:
        if (!(frame->hd.flags & NGHTTP2_FLAG_ACK)) {
            conn->settled = true;
            conn->grpc->attempts_failed = 0;
        }
        return 0;
    case NGHTTP2_GOAWAY:
        conn->retired = true;
        return 0;
    case NGHTTP2_HEADERS: {
        struct grpc_call *call = call_of(conn, stream_id);
        if (call)
            grpc_call_on_headers_end(call);
        break;
    }
    case NGHTTP2_DATA:
        break;
    default:
        return 0;
    }
    /* The whole answer is here while some of the request is not sent: nobody wants it any more. */
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
        nghttp2_session_get_stream_local_close(session, stream_id) == 0)
        nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

static int on_stream_close(nghttp2_session *session KV_UNUSED, int32_t stream_id,
                           uint32_t http2_error, void *ctx)
{
    struct grpc_conn *conn = ctx;
    struct grpc_call *call = call_of(conn, stream_id);
    map_remove(&conn->calls, (uint64_t)stream_id, NULL);
    if (call)
        grpc_call_on_close(call, http2_error);
    return 0;
}

static int on_invalid_frame(nghttp2_session *session KV_UNUSED,
                            const nghttp2_frame *frame KV_UNUSED, int reason, void *ctx)
{
    struct grpc_conn *conn = ctx;
    log_debug(conn->grpc->options.log, "grpc: the server sent an invalid frame",
              LOG_Z("socket", conn->grpc->options.path), LOG_Z("reason", nghttp2_strerror(reason)));
    return 0;
}

bool grpc_conn_receive(struct grpc_conn *conn, struct str bytes)
{
    ssize_t taken = nghttp2_session_mem_recv(conn->session, (const uint8_t *)bytes.p, bytes.len);
    if (taken < 0)
        grpc_conn_break(conn, "what the server sends cannot be read: %s",
                        nghttp2_strerror((int)taken));
    return taken >= 0;
}

bool grpc_conn_over(const struct grpc_conn *conn)
{
    return conn->broken.kind != ERR_NONE || (conn->retired && conn->calls.live_count == 0);
}

/* --- sending --- */

static ssize_t read_request(nghttp2_session *session KV_UNUSED, int32_t stream_id, uint8_t *out,
                            size_t out_len, uint32_t *flags, nghttp2_data_source *source KV_UNUSED,
                            void *ctx)
{
    struct grpc_call *call = call_of(ctx, stream_id);
    if (!call)
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* it ended meanwhile */
    size_t len = call->request.len - call->request_sent;
    len = len < out_len ? len : out_len;
    memcpy(out, call->request.p + call->request_sent, len);
    call->request_sent += len;
    if (call->request_sent == call->request.len) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;
        buf_done(&call->request);
        call->request_sent = 0;
    }
    return (ssize_t)len;
}

/* A request that was not sent, because the server said goodbye before. */
static int on_frame_not_sent(nghttp2_session *session KV_UNUSED, const nghttp2_frame *frame,
                             int reason, void *ctx)
{
    struct grpc_conn *conn = ctx;
    struct grpc_call *call =
        frame->hd.type == NGHTTP2_HEADERS ? call_of(conn, frame->hd.stream_id) : NULL;
    if (!call)
        return 0;
    call->conn = NULL;
    map_put(&conn->calls, (uint64_t)frame->hd.stream_id, 0);
    grpc_call_end(call, GRPC_UNAVAILABLE, "not sent: %s", nghttp2_strerror(reason));
    return 0;
}

bool grpc_conn_has_room(const struct grpc_conn *conn)
{
    /* One is sent on trust, so that a first call costs no round trip; the rest know the limit. */
    uint32_t limit = conn->settled ? nghttp2_session_get_remote_settings(
                                         conn->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
                                   : 1;
    return conn->calls.live_count < limit;
}

static nghttp2_nv header(const char *name, const char *value, uint8_t flags)
{
    return (nghttp2_nv){ (uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), flags };
}

bool grpc_conn_submit(struct grpc_conn *conn, struct grpc_call *call)
{
    const uint8_t literal = NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE;
    char timeout[GRPC_TIMEOUT_TEXT_MAX];
    nghttp2_nv headers[8];
    size_t count = 0;

    headers[count++] = header(":method", "POST", literal);
    headers[count++] = header(":scheme", "http", literal);
    headers[count++] = header(":path", call->method, literal);
    headers[count++] = header(":authority", "localhost", literal);
    headers[count++] = header("te", "trailers", literal);
    headers[count++] = header("content-type", "application/grpc", literal);
    headers[count++] = header("user-agent", "karve", literal);
    KV_ASSERT(count < KV_COUNT_OF(headers));
    if (call->deadline_ns != GRPC_NEVER) {
        grpc_timeout_format(call->deadline_ns - grpc_now_ns(), timeout);
        /* Differs from call to call: not worth a place in the header table. */
        headers[count++] = header("grpc-timeout", timeout, NGHTTP2_NV_FLAG_NO_INDEX);
    }
    nghttp2_data_provider provider = { .read_callback = read_request };
    int32_t stream_id =
        nghttp2_submit_request(conn->session, NULL, headers, count, &provider, NULL);
    if (stream_id < 0) /* the numbers of streams are used up, after 2^30 of them */
        return false;
    grpc_line_remove(call->grpc, call);
    call->conn = conn;
    call->stream_id = stream_id;
    map_put(&conn->calls, (uint64_t)stream_id, (uintptr_t)call);
    return true;
}

/* --- beginnings and ends --- */

static nghttp2_session *session_new(struct grpc_conn *conn)
{
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_session *session;
    KV_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0); /* fails for want of memory only */
    KV_ASSERT(nghttp2_option_new(&option) == 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_frame_not_send_callback(callbacks, on_frame_not_sent);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option,
                                         1); /* are kept for priorities, which we have not */
    KV_ASSERT(nghttp2_session_client_new2(&session, callbacks, conn, option) == 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);
    return session;
}

struct grpc_conn *grpc_conn_new(struct grpc *grpc, int fd)
{
    static const nghttp2_settings_entry settings[] = {
        { NGHTTP2_SETTINGS_ENABLE_PUSH, 0 },
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, GRPC_STREAM_WINDOW_BYTES },
        { NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HEADER_LIST_BYTES_MAX },
    };
    struct grpc_conn *conn = kv_calloc(1, sizeof *conn);
    conn->grpc = grpc;
    conn->fd = fd;
    conn->session = session_new(conn);
    nghttp2_submit_settings(conn->session, NGHTTP2_FLAG_NONE, settings, KV_COUNT_OF(settings));
    nghttp2_session_set_local_window_size(conn->session, NGHTTP2_FLAG_NONE, 0, INT32_MAX);
    conn->next = grpc->conns;
    grpc->conns = conn;
    return conn;
}

void grpc_conn_free(struct grpc_conn *conn)
{
    nghttp2_session_del(conn->session);
    if (conn->fd >= 0)
        close(conn->fd);
    map_done(&conn->calls);
    buf_done(&conn->out);
    free(conn);
}
