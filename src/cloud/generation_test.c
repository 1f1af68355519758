#include "cloud/generation.h"

#include "support/test.h"

#include <pthread.h>

/* What the instance type cache design folds a generation into. */
static uint64_t xor_of(const struct generation *g)
{
    return g->member[GENERATION_TYPES] ^ g->member[GENERATION_SPOT] ^ g->member[GENERATION_INPUTS];
}

TEST(generation_sees_the_changes_that_an_xor_of_its_counters_hides)
{
    struct generation_counters counters = { 0 };
    struct generation before, after;
    generation_read(&counters, &before);
    before.member[GENERATION_INPUTS] = 0x5eed;

    /* One discovery and one price update: (0,0) becomes (1,1). */
    generation_bump(&counters, GENERATION_TYPES);
    generation_bump(&counters, GENERATION_SPOT);
    generation_read(&counters, &after);
    after.member[GENERATION_INPUTS] = 0x5eed;

    EXPECT_TRUE(xor_of(&before) == xor_of(&after)); /* the trap */
    EXPECT_FALSE(generation_equal(&before, &after));
    EXPECT_EQ(generation_difference(&before, &after), GENERATION_TYPES);
}

/* Every pair of tuples over a small range: equal only if they are the same. The XOR confuses most. */
TEST(generation_no_two_different_tuples_are_equal)
{
    enum { VALUES = 4, ALL = VALUES * VALUES * VALUES };
    struct generation all[ALL] = { 0 };
    uint32_t confused = 0;
    for (uint32_t i = 0; i < ALL; i++) {
        all[i].member[GENERATION_TYPES] = i % VALUES;
        all[i].member[GENERATION_SPOT] = i / VALUES % VALUES;
        all[i].member[GENERATION_INPUTS] = i / VALUES / VALUES;
    }
    for (uint32_t i = 0; i < ALL; i++) {
        for (uint32_t j = 0; j < ALL; j++) {
            EXPECT_EQ(generation_equal(&all[i], &all[j]), i == j);
            confused += i != j && xor_of(&all[i]) == xor_of(&all[j]);
        }
    }
    EXPECT_EQ(confused, ALL * (ALL / VALUES - 1)); /* all that share one of four values */
}

TEST(generation_names_the_first_member_that_differs)
{
    for (int m = 0; m < GENERATION_MEMBERS; m++) {
        struct generation_counters counters = { 0 };
        struct generation a = { 0 }, b;
        generation_bump(&counters, (enum generation_member)m);
        generation_read(&counters, &b);
        EXPECT_EQ(generation_difference(&a, &b), m);
        EXPECT_TRUE(generation_member_names[m] != NULL);
    }
    struct generation a = { 0 }, b = { 0 };
    EXPECT_EQ(generation_difference(&a, &b), GENERATION_MEMBERS);
}

/* --- whoever reads a number sees what it stands for --- */

#define PUBLICATIONS 20000

struct publication {
    struct generation_counters counters;
    _Atomic uint64_t data; /* written relaxed: only the counter orders it */
};

static void *publish(void *ctx)
{
    struct publication *p = ctx;
    for (uint64_t i = 1; i <= PUBLICATIONS; i++) {
        atomic_store_explicit(&p->data, i, memory_order_relaxed);
        generation_bump(&p->counters, GENERATION_TYPES);
    }
    return NULL;
}

TEST(generation_that_was_read_implies_the_data_it_stands_for)
{
    struct publication p = { 0 };
    pthread_t thread;
    EXPECT_EQ(pthread_create(&thread, NULL, publish, &p), 0);
    struct generation g = { 0 };
    while (g.member[GENERATION_TYPES] < PUBLICATIONS) {
        generation_read(&p.counters, &g);
        EXPECT_TRUE(atomic_load_explicit(&p.data, memory_order_relaxed) >=
                    g.member[GENERATION_TYPES]);
    }
    pthread_join(thread, NULL);
}
