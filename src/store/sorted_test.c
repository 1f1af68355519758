/* The sorted map against an array that is sorted the slow way. */
#include "store/sorted.h"

#include "base/rng.h"
#include "base/vec.h"
#include "support/test.h"

#include <stdio.h>

TEST(keys_of_parts_sort_part_by_part)
{
    struct sorted map = { 0 };
    AUTO_BUF key = { 0 };
    static const struct str pairs[][2] = {
        { { "a-b", 3 }, { "x", 1 } },
        { { "a", 1 }, { "z", 1 } },
        { { "", 0 }, { "q", 1 } },
        { { "a", 1 }, { "", 0 } },
    };
    for (size_t i = 0; i < KV_COUNT_OF(pairs); i++) {
        SORTED_KEY(&key, pairs[i][0], pairs[i][1]);
        sorted_put(&map, buf_str(&key), (void *)(i + 1));
    }
    static const uintptr_t order[] = { 3, 4, 2, 1 };
    size_t seen = 0;
    for (sorted_each(&map, STR(""), it))
        EXPECT_EQ((uintptr_t)it.item->value, order[seen++]);
    EXPECT_EQ(seen, 4);

    SORTED_PREFIX(&key, STR("a"));
    seen = 0;
    for (sorted_each(&map, buf_str(&key), it))
        seen++;
    EXPECT_EQ(seen, 2); /* a-b is another namespace */
    sorted_done(&map);
}

/* present[i]: key "k%05d" is there. Compare everything that can be asked. */
static void compare(const struct sorted *map, const bool *present, uint32_t range, struct rng *rng)
{
    char name[16];
    uint32_t from = (uint32_t)rng_below(rng, range);
    snprintf(name, sizeof name, "k%05u", from);
    struct sorted_iter it = sorted_seek(map, str_of(name));
    for (uint32_t i = from; i < range; i++) {
        if (!present[i])
            continue;
        snprintf(name, sizeof name, "k%05u", i);
        EXPECT_TRUE(it.item != NULL);
        EXPECT_STR(it.item->key, name);
        EXPECT_EQ((uintptr_t)it.item->value, i + 1);
        sorted_next(&it);
    }
    EXPECT_TRUE(it.item == NULL);
}

TEST(a_sorted_map_is_what_a_sorted_array_would_be)
{
    enum { RANGE = 3000 };
    struct sorted map = { 0 };
    struct rng rng;
    bool present[RANGE] = { false };
    size_t count = 0;
    char name[16];

    rng_init(&rng, 7);
    for (int step = 0; step < 20000; step++) {
        /* Phases of growing and of shrinking, so that blocks fill, split and empty. */
        bool growing = step / 4000 % 2 == 0;
        uint32_t i = (uint32_t)rng_below(&rng, RANGE);
        snprintf(name, sizeof name, "k%05u", i);
        if (rng_below(&rng, 100) < (growing ? 85u : 15u)) {
            sorted_put(&map, str_of(name), (void *)(uintptr_t)(i + 1));
            count += !present[i];
            present[i] = true;
        } else {
            void *old = sorted_remove(&map, str_of(name));
            EXPECT_EQ((uintptr_t)old, present[i] ? i + 1 : 0);
            count -= present[i];
            present[i] = false;
        }
        EXPECT_EQ((uintptr_t)sorted_get(&map, str_of(name)), present[i] ? i + 1 : 0);
        EXPECT_EQ(map.count, count);
        if (step % 500 == 0)
            compare(&map, present, RANGE, &rng);
    }
    sorted_done(&map);
}

TEST(keys_that_arrive_in_order_fill_their_blocks)
{
    struct sorted map = { 0 };
    char name[16];
    for (int i = 0; i < 10 * SORTED_BLOCK_ITEMS; i++) {
        snprintf(name, sizeof name, "k%05d", i);
        sorted_put(&map, str_of(name), &map);
    }
    EXPECT_EQ(map.block_count, 10);
    sorted_done(&map);
}
