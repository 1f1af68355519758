/* store/kube_server_testing.h - an API server that does as it is told, for tests: what a real one
 * shows only on its worst days.
 *
 * HTTP/1.1 on a port of its own. Each request takes the next reply of the script, whatever it asks
 * for, and is remembered; one for which there is none gets a 599. The first words of a client that
 * wants to speak TLS count as a request; without a reply the connection is closed.
 */
#pragma once

#include "base/str.h"

enum kube_server_then {
    KUBE_SERVER_NEXT,  /* the connection takes another request */
    KUBE_SERVER_CLOSE, /* it is closed */
    KUBE_SERVER_HOLD,  /* it stays open, and nothing more comes */
};

struct kube_server;
struct kube_server *kube_server_new(void);         /* it listens on return */
void kube_server_free(struct kube_server *server); /* NULL is fine */
KV_AUTO_TYPE(kube_server, kube_server_free)
uint16_t kube_server_port(struct kube_server *server);

/* --- the script; texts are copied --- */

/* `headers` is lines that end in "\r\n", or "". */
void kube_server_reply(struct kube_server *server, int status, const char *headers,
                       struct str body);
/* A body in chunks of `piece_bytes`; it ends properly only with KUBE_SERVER_NEXT. */
void kube_server_stream(struct kube_server *server, struct str body, size_t piece_bytes,
                        enum kube_server_then then);
void kube_server_raw(struct kube_server *server, struct str bytes, enum kube_server_then then);

/* --- what was asked --- */

size_t kube_server_requests(struct kube_server *server);
/* Head and body of one, from 0: "GET /api HTTP/1.1\r\n...". Lives as long as the server. */
struct str kube_server_request(struct kube_server *server, size_t ix);
