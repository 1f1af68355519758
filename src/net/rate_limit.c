/* The bucket is one number: the moment at which the next token is there. Each token taken moves it
 * one interval on; a bucket that is full has it `burst - 1` intervals in the past, and no further. */
#include "net/rate_limit.h"

#define INTERVAL_NS_MAX ((int64_t)3600 * 1000000000) /* slower than one an hour is not meant */
#define BURST_MAX 1000000 /* with that interval, still far from what an int64_t holds */

struct rate_limit {
    const struct clock *clock;
    int64_t interval_ns;  /* between tokens; 0: no limit */
    int64_t saved_ns;     /* what a full bucket is ahead */
    pthread_mutex_t lock; /* guards what follows; nothing is called with it held but the clock */
    int64_t next_ns;
};

static int64_t interval_ns(double qps)
{
    if (!(qps > 0)) /* NaN too */
        return 0;
    double ns = 1e9 / qps;
    return ns < (double)INTERVAL_NS_MAX ? (int64_t)ns : INTERVAL_NS_MAX;
}

struct rate_limit *rate_limit_new(const struct clock *clock, double qps, uint32_t burst)
{
    struct rate_limit *r = kv_calloc(1, sizeof *r);
    burst = burst == 0 ? 1 : burst < BURST_MAX ? burst : BURST_MAX;
    r->clock = clock;
    r->interval_ns = interval_ns(qps);
    r->saved_ns = r->interval_ns * (burst - 1);
    r->next_ns = INT64_MIN;
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void rate_limit_free(struct rate_limit *r)
{
    if (!r)
        return;
    pthread_mutex_destroy(&r->lock);
    free(r);
}

int64_t rate_limit_take(struct rate_limit *r)
{
    if (r->interval_ns == 0)
        return 0;
    pthread_mutex_lock(&r->lock);
    int64_t now_ns = clock_mono_ns(r->clock);
    if (r->next_ns < now_ns - r->saved_ns)
        r->next_ns = now_ns - r->saved_ns;
    int64_t wait_ns = r->next_ns > now_ns ? r->next_ns - now_ns : 0;
    r->next_ns += r->interval_ns;
    pthread_mutex_unlock(&r->lock);
    return wait_ns;
}

void rate_limit_give_back(struct rate_limit *r)
{
    pthread_mutex_lock(&r->lock);
    r->next_ns -= r->interval_ns;
    pthread_mutex_unlock(&r->lock);
}
