/* node/prober_attempt.h - one try of a handler: of a probe, or of a lifecycle hook. Never blocks.
 *
 * A command and HTTPS run as calls in flight, HTTP and TCP on a non-blocking socket. The owner polls
 * attempt_fd until attempt_ns_left is over, and calls attempt_step; `wake` asks for that too. Everything
 * that is needed from the handler is copied at the start.
 */
#pragma once

#include "node/actions.h"
#include "node/cri.h"

struct http;
struct pollfd;

struct attempt_options {
    struct cri *cri;
    const struct clock *clock;
    const struct handler *handler;
    const struct node_container *container; /* whose ports have names */
    struct str container_id;
    struct str ip;      /* where the handler names no host */
    int64_t timeout_ns; /* 0: none */
    bool any_answer;    /* HTTP: of a hook any answer will do; of a probe 200 to 399 */
    struct http *
        *tls; /* the client for HTTPS, made when needed; the owner frees it after its attempts */
    /* From another thread; quick. A command has ended, an answer over HTTPS has come. */
    void (*wake)(void *ctx);
    void *ctx;
};

struct attempt;
struct attempt *attempt_start(struct attempt_options options);
void attempt_free(struct attempt *attempt); /* cancels; NULL is fine */
KV_AUTO_TYPE(attempt, attempt_free)

/* Goes as far as it can. True: it has ended, and the two below tell how. */
bool attempt_step(struct attempt *attempt);
/* What to wait for: fd -1 is fine for poll. */
struct pollfd attempt_poll(const struct attempt *attempt);
int64_t attempt_until_ns(
    const struct attempt *attempt); /* the next step at the latest; INT64_MAX */

/* PROBE_UNKNOWN: it could not be tried, so nothing can be said about the container. */
enum probe_verdict attempt_verdict(const struct attempt *attempt);
const struct err *attempt_error(const struct attempt *attempt); /* unless it is a success */
