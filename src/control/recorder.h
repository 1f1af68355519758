/* control/recorder.h - Kubernetes Events: what happened to an object, in words.
 *
 *     recorder_publish(c->recorder, &(struct notice){ .about = claim, .warning = true,
 *         .reason = "InsufficientCapacityError", .message = text });
 *
 * The same notice about the same object is written once per `quiet_ns`. A notice that cannot be written
 * is logged and forgotten: events are for people, nothing depends on them.
 *
 * In a program a thread of its own writes them, so that no reconciler waits for an API server to have
 * taken down what it did: recorder_start. Without it, as in a simulation, publishing writes.
 */
#pragma once

#include "base/log.h"
#include "store/store.h"

struct notice {
    const struct object *about;
    bool warning;
    const char *reason;
    struct str message;
    struct str key;   /* what makes it the same; empty: the message */
    int64_t quiet_ns; /* 0: RECORDER_QUIET_NS */
};
#define RECORDER_QUIET_NS ((int64_t)2 * 60 * 1000000000)

struct recorder;
struct recorder *recorder_new(const struct store *store, const struct clock *clock,
                              struct log *maybe_log, uint64_t seed);
void recorder_free(struct recorder *r);
KV_AUTO_TYPE(recorder, recorder_free)
int recorder_start(struct recorder *r, struct err *err); /* ERR_UNAVAILABLE: no thread */
void recorder_stop(struct recorder *r); /* what was published is written first; free does it, too */
void recorder_publish(struct recorder *r, const struct notice *notice);
/* The same, with the message printed. */
void recorder_say(struct recorder *r, const struct object *about, bool warning, const char *reason,
                  const char *fmt, ...) KV_PRINTF(5, 6);
