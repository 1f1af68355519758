/* net/http.h - an HTTP client. On libcurl: one multi handle, one I/O thread for all requests.
 *
 * HTTP/2 where the server offers it (requests share a connection), else HTTP/1.1 with connections
 * that are kept. Replies may come compressed. TLS is verified unless told otherwise.
 * Redirects are not followed: who asked decides (a 3xx is a reply like another). Nothing is sent
 * again on its own, but for a GET or HEAD whose kept connection turned out to be closed already.
 *
 * A stream's bytes wait until they are taken, up to `stream_bytes_max`; a reader slower than that
 * loses the stream (ERR_CAPACITY) rather than stopping the connection for everybody else.
 *
 * A peer that is gone without a word is noticed after 30 seconds, also by calls without a time limit;
 * one that is there and silent only by the limits of the call.
 *
 * A client at rest costs a thread and 12 kB; a call that runs 16 kB, a TLS connection some 55 kB more;
 * the first client of a process also loads the TLS library (2.5 MB, and 1.8 MB when it connects).
 *
 * Thread safe. A call belongs to whoever started it; only http_cancel may come from elsewhere.
 */
#pragma once

#include "base/err.h"
#include "base/log.h"

#define HTTP_BODY_BYTES_MAX                                                                        \
    ((size_t)256 << 20) /* of a whole reply, decompressed, if the request does not say */
#define HTTP_STREAM_BYTES_MAX ((size_t)16 << 20) /* waiting to be taken */
#define HTTP_HEAD_BYTES_MAX ((size_t)256 << 10)

struct sockaddr;

/* The parts of "https://host:port/path?query"; they borrow from it. */
struct http_url {
    bool tls;
    struct str authority; /* as written: "[::1]:6443" */
    struct str host;      /* in brackets if it is an IPv6 address */
    uint16_t port;        /* also when the URL does not say it */
    struct str rest;      /* from the path on, perhaps empty */
};
/* ERR_INVALID. A URL with a user's name in it is refused: credentials travel in headers. */
int http_url_parse(struct str url, struct http_url *out, struct err *err);

/* How the server is known to us and we to it. PEM texts; copied. */
struct http_tls {
    struct str ca_pem;            /* empty: the system's authorities */
    struct str cert_pem, key_pem; /* ours, together; empty: none */
    struct str server_name; /* to ask for and to verify instead of the URL's host; empty: that */
    bool insecure;          /* believe anybody */
};

struct http_options {
    const char *user_agent; /* copied, as are the others; NULL: "karve" */
    const char *proxy;      /* URL; NULL: as http_proxy, https_proxy and no_proxy say; "": none */
    struct http_tls tls;
    bool http1; /* never HTTP/2 */
    /* To one host; 0: 64. Over HTTP/1.1 each stream that is open has one, and calls beyond them wait. */
    uint32_t connections_max;
    /* Asked for each address before it is connected to, `host` being the URL's: whatever a name means now
     * is judged, and not what it meant when somebody looked. With a proxy the address is the
     * proxy's. If it refuses all that there are, the call ends with ERR_DENIED. By the I/O thread; NULL: any
     * will do. */
    bool (*may_connect)(void *ctx, struct str host, const struct sockaddr *address);
    void *may_connect_ctx;
    struct log *log; /* borrowed; NULL is silent */
};

struct http;
/* ERR_INVALID: certificate, key or authority cannot be read. ERR_UNAVAILABLE: no thread. */
int http_new(struct http_options options, struct http **out, struct err *err);
void http_free(struct http *http); /* every call has been freed; NULL is fine */
KV_AUTO_TYPE(http, http_free)
/* For calls that start from now on, over new connections: certificates get renewed. */
int http_set_tls(struct http *http, struct http_tls tls, struct err *err);

struct http_header {
    struct str name;
    struct str value; /* absent: it is not sent, also where it otherwise would be (User-Agent) */
};

struct http_request {   /* everything is copied */
    const char *method; /* "GET", ... */
    struct str url;
    const struct http_header *headers; /* not Content-Length or Transfer-Encoding: those are ours */
    uint32_t header_count;
    struct str body;         /* absent: none */
    int64_t timeout_ns;      /* for the whole reply; for the head of a stream. 0: no limit */
    int64_t idle_timeout_ns; /* of a stream: nothing came for so long, so it is dead. 0: no limit */
    size_t body_bytes_max;   /* of the whole reply; 0: HTTP_BODY_BYTES_MAX */
    size_t stream_bytes_max; /* 0: HTTP_STREAM_BYTES_MAX */
    bool stream;             /* taken piece by piece with http_take */
    /* Called when a whole reply has come, or a stream has its head, bytes to take (after http_take
     * said that there was nothing) or has ended, by the I/O thread: it must be quick, and start or
     * free no call. http_call_free waits until it has returned, so who frees holds no lock that it
     * takes. May be NULL. */
    void (*wake)(void *ctx);
    void *ctx;
};

struct http_reply {
    int status;
    struct str body; /* lives as long as the call */
};

struct http_call;
/* Never fails: what is wrong is the call's result. */
struct http_call *http_start(struct http *http, const struct http_request *request);

/* Wait for the whole reply. Any status is a success: an error is that no whole reply came.
 * ERR_UNAVAILABLE: no connection, no answer in time, or cut off. ERR_DENIED: the server's
 * certificate is not believed, or it refuses ours; or no address of it may be connected to. ERR_CAPACITY: too long. ERR_INVALID: no URL, or
 * no HTTP. ERR_CANCELLED. */
int http_finish(struct http_call *call, struct http_reply *reply, struct err *err);

/* Wait for the head of a stream's reply: its status. Errors as above. */
int http_head(struct http_call *call, int *status, struct err *err);

enum http_took {
    HTTP_NOTHING, /* is waiting now: `wake` follows */
    HTTP_BYTES,   /* were added to `out` */
    HTTP_ENDED,   /* the reply is whole */
    HTTP_FAILED,  /* err says why; what came before it was given first */
};
/* Of a stream, without waiting. */
enum http_took http_take(struct http_call *call, struct buf *out, struct err *err);

/* A header of the reply, any case; STR_NONE: it has none. Lives as long as the call. Once the head has
 * come. The first one, if there are several. */
struct str http_reply_header(struct http_call *call, struct str name);
/* The `ix`th of that name, from 0. */
struct str http_reply_header_at(struct http_call *call, struct str name, uint32_t ix);

/* Can the server have seen the request? False only if it surely has not: no connection was made, no
 * TLS agreed. Once it has ended. */
bool http_call_sent(struct http_call *call);

void http_cancel(struct http_call *call);    /* it ends with ERR_CANCELLED, unless it had ended */
void http_call_free(struct http_call *call); /* cancels what still runs; NULL is fine */
KV_AUTO_TYPE(http_call, http_call_free)

/* start and finish in one: the reply's body is in `out`. For those who have nothing else to do. */
int http_do(struct http *http, const struct http_request *request, int *status, struct buf *out,
            struct err *err);

/* The wait that a reply asks for: Retry-After in seconds or as a date; -1: it does not say. */
int64_t http_retry_after_ns(struct http_call *call, int64_t wall_us);
