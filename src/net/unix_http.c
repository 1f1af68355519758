/* net/unix_http.c - a reply is lines until an empty one, then a body in one of three forms: of a known
 * length, in chunks with their lengths, or until the connection ends.
 *
 * The reader takes bytes as they come and keeps none but a line that is not complete; a body's bytes go
 * straight to the caller. Every line counts against a limit, so that a server which never ends one is
 * noticed.
 */
#include "net/unix_http.h"

#include "base/clock.h"
#include "net/unix_socket.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES (16 << 10)

/* --- the reader: lines --- */

static int malformed(struct err *err, const char *what, struct str line)
{
    return err_set(err, ERR_INVALID, "the reply is not HTTP: %s %s", what, STR_SHOWN(line));
}

static int read_status_line(struct http_reader *r, struct str line, struct err *err)
{
    int64_t status = 0;
    struct str code = str_sub(line, 9, 3);
    bool right = str_starts(line, STR("HTTP/1.")) && line.len >= 12 && char_is_digit(line.p[7]) &&
                 line.p[8] == ' ' && (line.len == 12 || line.p[12] == ' ') &&
                 char_is_digit(code.p[0]) && str_to_i64(code, &status) && status >= 100;
    if (!right)
        return malformed(err, "it starts with", line);
    r->status = (int)status;
    r->state = HTTP_READER_HEADERS;
    return 0;
}

static bool name_is(struct str name, const char *lower)
{
    size_t len = strlen(lower);
    if (name.len != len)
        return false;
    for (size_t i = 0; i < len; i++)
        if (char_lower(name.p[i]) != lower[i])
            return false;
    return true;
}

static int read_length(struct http_reader *r, struct str value, struct err *err)
{
    int64_t length = 0;
    bool right = value.len > 0 && char_is_digit(value.p[0]) && str_to_i64(value, &length);
    if (!right || (r->has_length && r->left_bytes != (uint64_t)length))
        return malformed(err, "its Content-Length is", value);
    r->has_length = true;
    r->left_bytes = (uint64_t)length;
    return 0;
}

static int read_header(struct http_reader *r, struct str line, struct err *err)
{
    struct str name, value;
    if (!str_cut(line, ':', &name, &value) || name.len == 0 || str_trim(name).len != name.len)
        return malformed(err, "it has the header", line);
    value = str_trim(value);
    if (name_is(name, "content-length"))
        return read_length(r, value, err);
    if (name_is(name, "transfer-encoding")) {
        if (!name_is(value, "chunked") || r->chunked)
            return malformed(err, "its Transfer-Encoding is", value);
        r->chunked = true;
    }
    return 0;
}

/* The empty line after the headers. */
static int start_body(struct http_reader *r, struct err *err)
{
    if (r->chunked && r->has_length)
        return malformed(err, "it has both a length and", STR("chunks"));
    if (r->status == 101)
        return malformed(err, "it changes the protocol:", STR("101"));
    if (r->status < 200) { /* another one follows, within the same limit */
        r->chunked = r->has_length = false;
        r->left_bytes = 0;
        r->status = 0;
        r->state = HTTP_READER_STATUS_LINE;
        return 0;
    }
    r->head_bytes = 0;
    if (r->status == 204 || r->status == 304 || (r->has_length && r->left_bytes == 0)) {
        r->state = HTTP_READER_WHOLE;
    } else if (r->chunked) {
        r->state = HTTP_READER_CHUNK_SIZE;
    } else {
        r->state = r->has_length ? HTTP_READER_BODY : HTTP_READER_BODY_TO_END;
    }
    return 0;
}

static int hex_digit(char c)
{
    c = char_lower(c);
    if (char_is_digit(c))
        return c - '0';
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int read_chunk_size(struct http_reader *r, struct str line, struct err *err)
{
    struct str digits, extension;
    uint64_t size = 0;
    str_cut(line, ';', &digits, &extension);
    digits = str_trim(digits);
    bool right = digits.len > 0 && digits.len < 16;
    for (size_t i = 0; right && i < digits.len; i++) {
        int digit = hex_digit(digits.p[i]);
        right = digit >= 0;
        size = size * 16 + (uint64_t)(right ? digit : 0);
    }
    if (!right)
        return malformed(err, "it has a chunk of the size", line);
    r->left_bytes = size;
    r->head_bytes = 0;
    r->state = size > 0 ? HTTP_READER_CHUNK : HTTP_READER_TRAILERS;
    return 0;
}

static int read_line(struct http_reader *r, struct str line, struct err *err)
{
    if (str_ends(line, STR("\r")))
        line.len--;
    switch (r->state) {
    case HTTP_READER_STATUS_LINE:
        return read_status_line(r, line, err);
    case HTTP_READER_HEADERS:
        return line.len > 0 ? read_header(r, line, err) : start_body(r, err);
    case HTTP_READER_CHUNK_SIZE:
        return read_chunk_size(r, line, err);
    case HTTP_READER_CHUNK_END:
        r->state = HTTP_READER_CHUNK_SIZE;
        return line.len == 0 ? 0 : malformed(err, "a chunk is followed by", line);
    case HTTP_READER_TRAILERS:
        if (line.len == 0)
            r->state = HTTP_READER_WHOLE;
        return 0;
    case HTTP_READER_BODY:
    case HTTP_READER_BODY_TO_END:
    case HTTP_READER_CHUNK:
    case HTTP_READER_WHOLE:
        break;
    }
    KV_UNREACHABLE();
}

/* --- the reader: bytes --- */

/* Takes the line at the front of `bytes`, or what there is of it. */
static int feed_line(struct http_reader *r, struct str *bytes, struct err *err)
{
    ptrdiff_t end = str_find(*bytes, '\n');
    size_t len = end < 0 ? bytes->len : (size_t)end;
    struct str line = str_sub(*bytes, 0, len);
    *bytes = str_sub(*bytes, end < 0 ? len : len + 1, bytes->len);
    r->head_bytes += len + 1;
    if (r->head_bytes > UNIX_HTTP_HEAD_BYTES_MAX)
        return err_set(err, ERR_INVALID, "the reply's head is longer than %d bytes",
                       UNIX_HTTP_HEAD_BYTES_MAX);
    if (end < 0 || r->line.len > 0) { /* else it need not be copied */
        buf_add(&r->line, line);
        line = buf_str(&r->line);
    }
    if (end < 0)
        return 0;
    int rc = read_line(r, line, err);
    buf_clear(&r->line);
    return rc;
}

static int feed_body(struct http_reader *r, struct str *bytes, struct err *err)
{
    struct str piece = *bytes;
    if (r->state != HTTP_READER_BODY_TO_END) {
        if (piece.len > r->left_bytes)
            piece.len = (size_t)r->left_bytes;
        r->left_bytes -= piece.len;
        if (r->left_bytes == 0)
            r->state = r->state == HTTP_READER_CHUNK ? HTTP_READER_CHUNK_END : HTTP_READER_WHOLE;
    }
    r->body_bytes += piece.len;
    if (r->body_bytes_max > 0 && r->body_bytes > r->body_bytes_max)
        return err_set(err, ERR_INVALID, "the reply is longer than %zu bytes", r->body_bytes_max);
    *bytes = str_sub(*bytes, piece.len, bytes->len);
    r->stopped = !r->piece(r->ctx, r->status, piece);
    return 0;
}

int http_reader_feed(struct http_reader *r, struct str bytes, struct err *err)
{
    while (bytes.len > 0 && r->state != HTTP_READER_WHOLE && !r->stopped) {
        bool body = r->state == HTTP_READER_BODY || r->state == HTTP_READER_BODY_TO_END ||
                    r->state == HTTP_READER_CHUNK;
        if ((body ? feed_body(r, &bytes, err) : feed_line(r, &bytes, err)) < 0)
            return -1;
    }
    return r->state == HTTP_READER_WHOLE || r->stopped ? 1 : 0;
}

int http_reader_end(struct http_reader *r, struct err *err)
{
    if (r->state == HTTP_READER_WHOLE || r->state == HTTP_READER_BODY_TO_END || r->stopped)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "the server closed the connection %s",
                   r->status == 0 ? "without a reply" : "in the middle of its reply");
}

void http_reader_done(struct http_reader *r)
{
    buf_done(&r->line);
}

/* --- over a socket --- */

static bool target_is_right(struct str target)
{
    for (size_t i = 0; i < target.len; i++)
        if ((unsigned char)target.p[i] <= ' ' || target.p[i] == 0x7f)
            return false;
    return str_starts(target, STR("/"));
}

static int send_request(int fd, const char *target, struct err *err)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", target);
    for (struct str rest = buf_str(&text); rest.len > 0;) {
        ssize_t n = send(fd, rest.p, rest.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) /* it may have answered nevertheless: a server may refuse without reading */
            return errno == EPIPE ? 0 : err_set(err, ERR_UNAVAILABLE, "send: %s", strerror(errno));
        rest = str_sub(rest, (size_t)n, rest.len);
    }
    return 0;
}

/* A stream brings something, or it is silent: false. */
static bool await_stream(int fd, int64_t idle_ns)
{
    struct timespec idle = { .tv_sec = idle_ns / 1000000000, .tv_nsec = idle_ns % 1000000000 };
    struct pollfd look = { .fd = fd, .events = POLLIN };
    return ppoll(&look, 1, &idle, NULL) > 0;
}

/* 0: there is something to read, or the end. until_ns 0: whenever it comes. */
static int await_bytes(int fd, int64_t until_ns, struct err *err)
{
    for (;;) {
        int64_t left_ns = until_ns ? until_ns - clock_mono_ns(clock_real()) : 0;
        if (until_ns && left_ns <= 0)
            return err_set(err, ERR_UNAVAILABLE, "no answer in time");
        struct timespec left = { .tv_sec = left_ns / 1000000000, .tv_nsec = left_ns % 1000000000 };
        struct pollfd look = { .fd = fd, .events = POLLIN };
        int n = ppoll(&look, 1, until_ns ? &left : NULL, NULL);
        if (n > 0)
            return 0;
        if (n < 0 && errno != EINTR)
            return err_set(err, ERR_UNAVAILABLE, "wait for an answer: %s", strerror(errno));
    }
}

static int read_reply(int fd, const struct unix_http_request *request, int64_t until_ns,
                      struct http_reader *reader, struct err *err)
{
    AUTO_FREE char *bytes = kv_malloc(READ_BYTES);
    for (;;) {
        bool streaming = request->stream && reader->state >= HTTP_READER_BODY;
        if (streaming && request->idle_ns > 0 && !await_stream(fd, request->idle_ns)) {
            if (!request->piece(request->ctx, reader->status, STR("")))
                return 0;
            continue;
        }
        if (await_bytes(fd, streaming ? 0 : until_ns, err) < 0)
            return -1;
        ssize_t n = recv(fd, bytes, READ_BYTES, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* a reset is an end like any other: what counts is what came before */
            return http_reader_end(reader, err);
        int rc = http_reader_feed(reader, (struct str){ bytes, (size_t)n }, err);
        if (rc != 0)
            return rc < 0 ? -1 : 0;
    }
}

int unix_http_get(struct unix_http_request request, int *status, struct err *err)
{
    if (!target_is_right(str_of(request.target)))
        return err_set(err, ERR_INVALID, "%s is no path to ask for",
                       STR_SHOWN(str_of(request.target)));
    int64_t until_ns =
        request.timeout_ns > 0 ? clock_mono_ns(clock_real()) + request.timeout_ns : 0;
    int fd = -1;
    if (unix_connect(request.socket_path, request.timeout_ns, &fd, err) < 0)
        return -1;
    struct http_reader reader = {
        .body_bytes_max = request.stream ? 0 : UNIX_HTTP_BODY_BYTES_MAX,
        .piece = request.piece,
        .ctx = request.ctx,
    };
    int rc = send_request(fd, request.target, err);
    if (rc == 0)
        rc = read_reply(fd, &request, until_ns, &reader, err);
    if (rc == 0)
        *status = reader.status;
    http_reader_done(&reader);
    close(fd);
    return rc < 0 ? err_wrap(err, "GET %s from %s", request.target, request.socket_path) : 0;
}
