/* base/workers.h - threads that reconcile the keys of a queue.
 *
 * Calls that leave the process may block in `reconcile`: they block one worker, not the program.
 * Workers take no signals; those are for the thread that started them.
 */
#pragma once

#include "base/err.h"
#include "base/queue.h"

#define WORKERS_MAX 4096

struct worker_pool_options {
    const char *name;    /* of the threads, as shown by ps and gdb; cut at 15 bytes */
    struct queue *queue; /* borrowed */
    uint32_t thread_count;
    reconcile_fn *reconcile; /* called from any of the threads, for one key from one at a time */
    void *ctx;
};

struct worker_pool;

/* ERR_UNAVAILABLE when the system gives fewer threads than asked for; then none is left running. */
int worker_pool_start(struct worker_pool_options opts, struct worker_pool **out, struct err *err);

/* Shut the queue down, wait for the workers to return, free the pool. NULL is fine. */
void worker_pool_stop(struct worker_pool *pool, enum queue_shutdown how);
