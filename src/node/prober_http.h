/* node/prober_http.h - the texts of an HTTP probe: what is sent, what comes back, where it leads. Pure. */
#pragma once

#include "net/http.h"
#include "node/node_pod.h"

struct probe_target {
    struct str host;
    struct str path; /* with the query, as it stands in a request */
    uint16_t port;
    bool https;
};
/* As it stands in a request: what may not be there is written as %XX. */
struct str probe_path(struct arena *arena, struct str path);

/* A request, but for where it goes to. */
struct probe_request {
    LIST(struct http_header) headers; /* an absent value: must not be sent */
    bool names_host;                  /* a Host is among them */
};
/* ERR_INVALID: a header that cannot be sent. */
int probe_request_make(struct arena *arena, const struct handler *handler,
                       struct probe_request *out, struct err *err);
/* In the clear: its text. */
void probe_request_write(const struct probe_request *request, const struct probe_target *to,
                         struct buf *out);
/* Over TLS: its URL. Absent: no URL can have that host. */
struct str probe_url(struct arena *arena, const struct probe_target *to);

struct probe_answer {
    int code;            /* 0: this is not HTTP */
    struct str location; /* of a redirect; absent: it is none */
};
bool probe_is_redirect(int code); /* if there is a Location, too */
/* The head of the final answer in what has come so far; interim ones (1xx) are skipped. False: not
 * whole yet. */
bool probe_answer_read(struct str bytes, struct probe_answer *out);

/* A redirect on the same host: `target` is where it leads. False: to another host, or not understood. */
bool probe_redirect(struct arena *arena, struct str location, struct probe_target *target);
