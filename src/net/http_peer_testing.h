/* net/http_peer_testing.h - servers for tests of the HTTP client: HTTP/1.1 by libmicrohttpd, HTTP/2 by
 * nghttp2 (TLS by GnuTLS), both with the same few paths:
 *
 *     /echo       what was asked: "METHOD TARGET\nname: value\n...\n\nbody"
 *     /status/N   that status, with Retry-After: 7
 *     /big/N      N bytes
 *     /hold       no answer, until http_peer_finish
 *     /stream     a body of what http_peer_push says, until http_peer_finish
 */
#pragma once

#include "net/certs_testing.h"

struct http_peer_options {
    bool http2;                   /* has a certificate */
    const struct cert *cert;      /* NULL: no TLS */
    const struct cert *client_ca; /* who connects shows a certificate of its; NULL: nobody need */
};

struct http_peer;
struct http_peer *http_peer_new(struct http_peer_options options); /* it listens on return */
void http_peer_free(struct http_peer *peer);                       /* NULL is fine */
KV_AUTO_TYPE(http_peer, http_peer_free)

uint16_t http_peer_port(struct http_peer *peer);
uint32_t http_peer_connections(struct http_peer *peer); /* accepted so far */
uint32_t http_peer_requests(struct http_peer *peer);    /* so far */
uint32_t http_peer_waiting(struct http_peer *peer);     /* held or streamed to, now */

void http_peer_push(struct http_peer *peer, struct str piece); /* to all streams */
void http_peer_finish(struct http_peer *peer);                 /* all that is held or streamed to */

/* Of HTTP/2: every stream is reset; no more are taken; the connections are cut. */
void http_peer_reset(struct http_peer *peer);
void http_peer_goaway(struct http_peer *peer);
void http_peer_cut(struct http_peer *peer);
