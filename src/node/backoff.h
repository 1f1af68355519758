/* node/backoff.h - how long to wait before something that failed is tried again.
 *
 * Restarts of containers and pulls of images share the form: 10 s, doubling to 300 s, per key. A
 * caller asks backoff_left; when that says 0 it tries, and calls backoff_next. Not thread safe: each
 * owner (a pod worker) has its own. Time is an argument; all times of one table are of one clock.
 */
#pragma once

#include "base/map.h"

#define BACKOFF_INITIAL_NS ((int64_t)10 * 1000000000)
#define BACKOFF_MAX_NS ((int64_t)300 * 1000000000)
#define BACKOFF_RESET_NS ((int64_t)600 * 1000000000) /* run longer than this: start over */

struct backoff {
    struct str_table entries;
    int64_t initial_ns, max_ns; /* 0: as above */
};

void backoff_done(struct backoff *b);
/* 0: go ahead. Else how long is left, counted from since_ns: when it last failed or finished. If
 * that is more than BACKOFF_RESET_NS after the last try, it ran well and starts over. */
int64_t backoff_left(struct backoff *b, struct str key, int64_t since_ns, int64_t now_ns);
/* The delay that is in force for the key; 0: none yet. For messages: "back-off 40s restarting ...". */
int64_t backoff_delay(const struct backoff *b, struct str key);
/* When it was last tried; 0: it was not, or it is forgotten. */
int64_t backoff_last(const struct backoff *b, struct str key);
/* It is tried now: the next failure waits longer. */
void backoff_next(struct backoff *b, struct str key, int64_t now_ns);
void backoff_reset(struct backoff *b, struct str key);
