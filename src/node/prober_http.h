/* node/prober_http.h - the texts of an HTTP probe: what is sent, what comes back, where it leads. Pure. */
#pragma once

#include "node/node_pod.h"

/* A request, but for the host and port that it goes to. */
struct probe_request {
    struct str path;    /* with the query */
    struct str headers; /* as lines */
    bool names_host;    /* a Host is among them */
};
/* ERR_INVALID: a header that cannot be sent. */
int probe_request_make(struct arena *arena, const struct handler *handler,
                       struct probe_request *out, struct err *err);
void probe_request_write(const struct probe_request *request, struct str host, uint16_t port,
                         struct buf *out);

struct probe_answer {
    int code;            /* 0: this is not HTTP */
    struct str location; /* of a redirect; absent: it is none */
};
/* The head of the final answer in what has come so far; interim ones (1xx) are skipped. False: not
 * whole yet. */
bool probe_answer_read(struct str bytes, struct probe_answer *out);

enum redirect {
    REDIRECT_FOLLOW,    /* same host: `*port` and `*path` are the new ones */
    REDIRECT_TLS,       /* to https */
    REDIRECT_ELSEWHERE, /* to another host, or not understood: nothing to follow */
};
enum redirect probe_redirect(struct arena *arena, struct str host, struct str location,
                             uint16_t *port, struct str *path);
