/* net/http_peer_inner_testing.h - what the two servers of http_peer_testing.h share. */
#pragma once

#include "net/http_peer_testing.h"

#include <gnutls/gnutls.h>
#include <pthread.h>

struct http_peer {
    struct http_peer_options options;
    uint16_t port;
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t moved;
    struct buf pushed;     /* since the start; every stream has its place in it */
    uint32_t finish_count; /* what was asked for before the last one ends */
    uint32_t connection_count, request_count, waiting_count;
    bool resetting, saying_goodbye, cutting, stopping;

    struct MHD_Daemon *daemon; /* of HTTP/1.1 */

    int listen_fd, wake_fd; /* of HTTP/2; what follows is the thread's */
    pthread_t thread;
    gnutls_certificate_credentials_t credentials;
    struct conn *conns;
};

/* What is answered. */
struct plan {
    int status;
    bool holds, streams; /* until it is finished */
    struct buf body;
};

struct plan plan_of(struct str method, struct str target, struct str headers, struct str body);

void http_peer_start_http2(struct http_peer *peer);
