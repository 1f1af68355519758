#include "base/workers.h"

#include <signal.h>
#include <stdio.h>

struct worker_pool {
    struct worker_pool_options opts;
    pthread_mutex_t gate; /* closed until it is known that all threads exist; guards called_off */
    bool called_off;
    uint32_t thread_count;
    pthread_t threads[];
};

static void *worker_main(void *arg)
{
    struct worker_pool *pool = arg;
    pthread_mutex_lock(&pool->gate);
    bool called_off = pool->called_off;
    pthread_mutex_unlock(&pool->gate);

    struct str key;
    while (!called_off && queue_take(pool->opts.queue, &key))
        queue_finish(pool->opts.queue, key, pool->opts.reconcile(pool->opts.ctx, key));
    return NULL;
}

static void join_and_free(struct worker_pool *pool)
{
    for (uint32_t i = 0; i < pool->thread_count; i++)
        pthread_join(pool->threads[i], NULL);
    pthread_mutex_destroy(&pool->gate);
    free(pool);
}

int worker_pool_start(struct worker_pool_options opts, struct worker_pool **out, struct err *err)
{
    KV_ASSERT(opts.thread_count > 0);
    KV_ASSERT(opts.thread_count <= WORKERS_MAX);
    struct worker_pool *pool =
        kv_calloc(1, sizeof *pool + opts.thread_count * sizeof pool->threads[0]);
    pool->opts = opts;
    pthread_mutex_init(&pool->gate, NULL);

    char name[16];
    snprintf(name, sizeof name, "%s", opts.name);
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before); /* threads inherit it */
    pthread_mutex_lock(&pool->gate);
    while (pool->thread_count < opts.thread_count) {
        pthread_t *thread = &pool->threads[pool->thread_count];
        if (pthread_create(thread, NULL, worker_main, pool) != 0) {
            pool->called_off = true;
            break;
        }
        pthread_setname_np(*thread, name);
        pool->thread_count++;
    }
    uint32_t started = pool->thread_count;
    bool called_off = pool->called_off;
    pthread_mutex_unlock(&pool->gate);
    pthread_sigmask(SIG_SETMASK, &before, NULL);

    if (called_off) {
        join_and_free(pool);
        return err_set(err, ERR_UNAVAILABLE, "%s: the system gives %u of %u threads", opts.name,
                       started, opts.thread_count);
    }
    *out = pool;
    return 0;
}

void worker_pool_stop(struct worker_pool *pool, enum queue_shutdown how)
{
    if (!pool)
        return;
    queue_shutdown(pool->opts.queue, how);
    join_and_free(pool);
}
