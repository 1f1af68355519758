/* net/grpc_call.c - what an answer means, and how a call ends.
 *
 * A server answers with headers (":status" 200, a content type of gRPC), messages, and trailers
 * that carry "grpc-status". An error before the first message comes as headers alone, with the
 * status in them; so it is looked for in both. Whatever else closes a stream is a failure of
 * transport, and tells nothing about whether the server has acted.
 */
#include "net/grpc_inner.h"

#include <stdio.h>

#define SERVER_MESSAGE_BYTES_MAX ERR_TEXT_MAX

enum err_kind grpc_status_kind(uint32_t status)
{
    static const enum err_kind kinds[] = {
        [GRPC_OK] = ERR_NONE,
        [GRPC_CANCELLED] = ERR_CANCELLED,
        [GRPC_UNKNOWN] = ERR_INTERNAL,
        [3] = ERR_INVALID, /* invalid argument */
        [GRPC_DEADLINE_EXCEEDED] = ERR_UNAVAILABLE,
        [GRPC_NOT_FOUND] = ERR_NOT_FOUND,
        [6] = ERR_EXISTS, /* already exists */
        [7] = ERR_DENIED, /* permission denied */
        [GRPC_RESOURCE_EXHAUSTED] = ERR_CAPACITY,
        [9] = ERR_CONFLICT,  /* failed precondition */
        [10] = ERR_CONFLICT, /* aborted */
        [11] = ERR_INVALID,  /* out of range */
        [GRPC_UNIMPLEMENTED] = ERR_INVALID,
        [GRPC_INTERNAL] = ERR_INTERNAL,
        [GRPC_UNAVAILABLE] = ERR_UNAVAILABLE,
        [15] = ERR_INTERNAL, /* data loss */
        [16] = ERR_DENIED,   /* unauthenticated */
    };
    return status < KV_COUNT_OF(kinds) ? kinds[status] : ERR_INTERNAL;
}

/* --- lines to wait in --- */

void grpc_line_append(struct grpc *grpc, struct grpc_call *call)
{
    call->previous = grpc->line_last;
    *(grpc->line_last ? &grpc->line_last->next : &grpc->line_first) = call;
    grpc->line_last = call;
}

void grpc_line_remove(struct grpc *grpc, struct grpc_call *call)
{
    *(call->previous ? &call->previous->next : &grpc->line_first) = call->next;
    *(call->next ? &call->next->previous : &grpc->line_last) = call->previous;
    call->previous = call->next = NULL;
}

void grpc_call_tell(struct grpc_call *call)
{
    struct grpc *grpc = call->grpc;
    if (call == grpc->reader)
        grpc_nudge_reader(grpc);
    else
        pthread_cond_signal(&call->moved);
    if (!call->options.wake || call->told)
        return;
    call->told = true;
    *(grpc->told_last ? &grpc->told_last->told_next : &grpc->told_first) = call;
    grpc->told_last = call;
    grpc_nudge(grpc);
}

void grpc_told_remove(struct grpc *grpc, struct grpc_call *call)
{
    struct grpc_call *before = NULL;
    if (!call->told)
        return;
    for (struct grpc_call *it = grpc->told_first; it != call; it = it->told_next)
        before = it;
    *(before ? &before->told_next : &grpc->told_first) = call->told_next;
    if (grpc->told_last == call)
        grpc->told_last = before;
    call->told_next = NULL;
    call->told = false;
}

/* --- ending --- */

static void leave_stream(struct grpc_call *call)
{
    struct grpc_conn *conn = take(&call->conn);
    map_put(&conn->calls, (uint64_t)call->stream_id, 0);
    nghttp2_submit_rst_stream(conn->session, NGHTTP2_FLAG_NONE, call->stream_id, NGHTTP2_CANCEL);
}

void grpc_call_end(struct grpc_call *call, uint32_t status, const char *fmt, ...)
{
    if (call->ended)
        return;
    if (status != GRPC_OK) {
        char text[ERR_TEXT_MAX];
        va_list args;
        va_start(args, fmt);
        vsnprintf(text, sizeof text, fmt, args);
        va_end(args);
        call->failure = kv_calloc(1, sizeof *call->failure);
        err_set(call->failure, grpc_status_kind(status), "%s", text);
    }
    call->status = status;
    call->ended = true;
    if (call->conn)
        leave_stream(call);
    else if (call->stream_id == 0)
        grpc_line_remove(call->grpc, call);
    buf_done(&call->request);
    grpc_call_tell(call);
}

void grpc_call_reject(struct grpc_call *call, const struct err *why)
{
    uint32_t status = why->kind == ERR_CAPACITY ? GRPC_RESOURCE_EXHAUSTED : GRPC_INTERNAL;
    grpc_call_end(call, status, "%s", why->text);
    grpc_frames_done(&call->frames); /* nothing can be read past it */
    if (call->failure)
        return;
    call->status = status;
    call->failure = kv_calloc(1, sizeof *call->failure);
    *call->failure = *why;
}

/* --- what the server said --- */

static bool is_grpc_type(struct str type)
{
    struct str own = STR("application/grpc"); /* also "application/grpc+proto", "...; charset" */
    if (!str_starts(type, own))
        return false;
    return type.len == own.len || type.p[own.len] == '+' || type.p[own.len] == ';';
}

void grpc_call_on_header(struct grpc_call *call, struct str name, struct str value)
{
    int64_t number;
    if (str_eqz(name, ":status")) {
        call->http_status =
            str_to_i64(value, &number) && number > 0 && number < 1000 ? (uint32_t)number : 500;
    } else if (str_eqz(name, "content-type")) {
        call->content_type_fits = is_grpc_type(value);
    } else if (str_eqz(name, "grpc-status")) {
        call->has_status = true;
        call->server_status = str_to_i64(value, &number) && number >= 0 && number <= UINT32_MAX
                                  ? (uint32_t)number
                                  : GRPC_UNKNOWN;
    } else if (str_eqz(name, "grpc-message")) {
        grpc_message_decode(value, SERVER_MESSAGE_BYTES_MAX, &call->server_message);
    }
}

/* Of an answer that is not a gRPC server's: a proxy, or something else on that socket. */
static uint32_t status_of_http(uint32_t http_status)
{
    switch (http_status) {
    case 400:
        return GRPC_INTERNAL;
    case 401:
        return 16; /* unauthenticated */
    case 403:
        return 7; /* permission denied */
    case 404:
        return GRPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return GRPC_UNAVAILABLE;
    default:
        return GRPC_UNKNOWN;
    }
}

void grpc_call_on_headers_end(struct grpc_call *call)
{
    if (call->headers_judged || call->http_status < 200) /* trailers; or more headers follow */
        return;
    call->headers_judged = true;
    if (call->has_status)
        return; /* trailers only */
    if (call->http_status != 200)
        grpc_call_end(call, status_of_http(call->http_status), "the server answered with HTTP %u",
                      call->http_status);
    else if (!call->content_type_fits)
        grpc_call_end(call, GRPC_UNKNOWN, "the server's answer is not of gRPC's content type");
}

void grpc_call_return_window(struct grpc_call *call)
{
    size_t behind = grpc_frames_behind(&call->frames);
    if (call->window_kept <= behind)
        return;
    if (call->conn)
        nghttp2_session_consume_stream(call->conn->session, call->stream_id,
                                       call->window_kept - behind);
    call->window_kept = behind;
}

void grpc_call_on_data(struct grpc_call *call, struct str piece)
{
    struct str message;
    struct err err = { 0 };

    call->window_kept += piece.len;
    grpc_frames_add(&call->frames, piece);
    int rc = grpc_frames_peek(&call->frames, &message, &err);
    if (rc >= 0 && !call->options.stream && grpc_frames_behind(&call->frames) > 0)
        rc = err_set(&err, ERR_INTERNAL, "the server sent more than one message");
    if (rc < 0) {
        grpc_call_reject(call, &err);
        return;
    }
    grpc_call_return_window(call);
    if (rc > 0 && call->options.stream)
        grpc_call_tell(call);
}

/* A unary call that ended well has exactly one message; more were refused as they came. */
static void judge_reply(struct grpc_call *call)
{
    struct str message;
    if (call->options.stream || grpc_frames_peek(&call->frames, &message, NULL) > 0)
        grpc_call_end(call, GRPC_OK, "%s", "");
    else if (grpc_frames_bytes(&call->frames) > 0)
        grpc_call_end(call, GRPC_INTERNAL, "the server's answer ends within a message");
    else
        grpc_call_end(call, GRPC_INTERNAL, "the server ended the call well and without a message");
}

void grpc_call_on_close(struct grpc_call *call, uint32_t http2_error)
{
    call->conn = NULL;
    if (call->has_status && call->server_status == GRPC_OK)
        judge_reply(call);
    else if (call->has_status && call->server_message.len > 0)
        grpc_call_end(call, call->server_status, "%s", call->server_message.p);
    else if (call->has_status)
        grpc_call_end(call, call->server_status, "the server answered with status %u",
                      call->server_status);
    else if (http2_error == NGHTTP2_CANCEL && call->deadline_ns <= grpc_now_ns())
        grpc_call_end(call, GRPC_DEADLINE_EXCEEDED, "the server ran out of time");
    else if (http2_error != NGHTTP2_NO_ERROR)
        grpc_call_end(call, GRPC_UNAVAILABLE, "the server reset the call: %s",
                      nghttp2_http2_strerror(http2_error));
    else
        grpc_call_end(call, GRPC_UNAVAILABLE, "the server closed the call without a status");
}
