#include "support/test.h"

#include "base/rc.h"

#include <pthread.h>

TEST(rc_the_last_reference_frees)
{
    struct rc rc;
    rc_init(&rc);
    rc_ref(&rc);
    rc_ref(&rc);
    EXPECT_FALSE(rc_unref(&rc));
    EXPECT_FALSE(rc_unref(&rc));
    EXPECT_TRUE(rc_unref(&rc));
}

struct shared {
    struct rc rc;
    atomic_int *freed;
    int payload;
};

static void shared_unref(const struct shared *s)
{
    if (rc_unref(&s->rc)) {
        struct shared *mine = (struct shared *)s;
        mine->payload = -1; /* a race with a reader, if the count ordered nothing */
        atomic_fetch_add(s->freed, 1);
        free(mine);
    }
}

static void *use_and_drop(void *arg)
{
    const struct shared *s = arg;
    long sum = 0;
    for (int i = 0; i < 2000; i++) {
        rc_ref(&s->rc);
        sum += s->payload; /* NOLINT(clang-analyzer-unix.Malloc): the last reference is below */
        shared_unref(s);
    }
    shared_unref(s);
    return (void *)sum;
}

TEST(rc_frees_once_after_every_thread_has_read)
{
    atomic_int freed = 0;
    for (int round = 0; round < 20; round++) {
        struct shared *s = kv_calloc(1, sizeof *s);
        rc_init(&s->rc);
        s->freed = &freed;
        s->payload = 3;
        pthread_t threads[4];
        for (int i = 0; i < 4; i++) {
            rc_ref(&s->rc);
            pthread_create(&threads[i], NULL, use_and_drop, s);
        }
        shared_unref(s);
        for (int i = 0; i < 4; i++) {
            void *sum;
            pthread_join(threads[i], &sum);
            EXPECT_EQ((intptr_t)sum, 6000);
        }
        EXPECT_EQ(freed, round + 1);
    }
}
