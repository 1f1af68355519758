/* cloud/settle_testing.h - for the tests of what ends by itself (unavailable, reservations): readers
 * that race for the same end.
 */
#pragma once

#include "support/test.h"

#include <pthread.h>
#include <stdatomic.h>

#define SETTLE_READERS 4
#define SETTLE_ROUNDS 300

struct settle_race {
    /* Arrange that something has just ended, unseen; the generation that has it counted. */
    uint64_t (*arrange)(void *ctx);
    uint64_t (*generation)(void *ctx); /* as a provider reads it: settled first */
    void *ctx;

    pthread_barrier_t start, end; /* of a round */
    uint64_t counted;
    _Atomic int late; /* readers that got past the end before it was counted */
};

static inline void *settle_race_read(void *ctx)
{
    struct settle_race *race = ctx;
    for (int round = 0; round < SETTLE_ROUNDS; round++) {
        pthread_barrier_wait(&race->start);
        atomic_fetch_add(&race->late, race->generation(race->ctx) < race->counted);
        pthread_barrier_wait(&race->end);
    }
    return NULL;
}

/* How many readers got less than what was due. */
static inline int settle_race_run(struct settle_race *race)
{
    pthread_t readers[SETTLE_READERS];
    pthread_barrier_init(&race->start, NULL, SETTLE_READERS + 1);
    pthread_barrier_init(&race->end, NULL, SETTLE_READERS + 1);
    for (int i = 0; i < SETTLE_READERS; i++)
        EXPECT_EQ(pthread_create(&readers[i], NULL, settle_race_read, race), 0);
    for (int round = 0; round < SETTLE_ROUNDS; round++) {
        race->counted = race->arrange(race->ctx);
        pthread_barrier_wait(&race->start);
        pthread_barrier_wait(&race->end);
    }
    for (int i = 0; i < SETTLE_READERS; i++)
        pthread_join(readers[i], NULL);
    pthread_barrier_destroy(&race->start);
    pthread_barrier_destroy(&race->end);
    return race->late;
}
