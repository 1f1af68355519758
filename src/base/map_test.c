#include "support/test.h"

#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"

#include <stdio.h>

/* --- against an obvious model: pairs in an array, in the order of insertion --- */

struct pair {
    uint64_t key;
    uintptr_t value;
};
typedef VEC(struct pair) model;

static struct pair *model_find(const model *pairs, uint64_t key)
{
    vec_each(pairs, struct pair, it) {
        if (it->key == key)
            return it;
    }
    return NULL;
}

static void model_remove(model *pairs, struct pair *at)
{
    size_t after = pairs->count - (size_t)(at - pairs->items) - 1;
    memmove(at, at + 1, after * sizeof *at);
    pairs->count--;
}

static void expect_same(const struct map *m, const model *want)
{
    size_t n = 0;
    map_each(m, it) {
        EXPECT_TRUE(n < want->count);
        EXPECT_EQ(it->key, want->items[n].key);
        EXPECT_EQ(it->value, want->items[n].value);
        n++;
    }
    EXPECT_EQ(n, want->count);
    EXPECT_EQ(m->live_count, want->count);
}

TEST(map_agrees_with_an_array_of_pairs_under_random_operations)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        struct rng rng;
        rng_init(&rng, seed);
        print_message("# seed %llu\n", (unsigned long long)seed);
        uint64_t key_range = 1 + rng_below(&rng, 300);
        unsigned removes_of_8 = (unsigned)rng_below(&rng, 6);
        struct map m = { 0 };
        model want = { 0 };

        for (int op = 0; op < 3000; op++) {
            /* Multiples of 2^32 + 1: the low halves alone, or the high halves, look alike. */
            uint64_t key = rng_below(&rng, key_range) * 0x100000001;
            struct pair *at = model_find(&want, key);
            uintptr_t value = 0;
            if (rng_below(&rng, 8) < removes_of_8) {
                EXPECT_EQ(map_remove(&m, key, &value), at != NULL);
                if (at) {
                    EXPECT_EQ(value, at->value);
                    model_remove(&want, at);
                }
            } else {
                value = (uintptr_t)rng_next(&rng);
                map_put(&m, key, value);
                if (at)
                    at->value = value;
                else
                    vec_push(&want, (struct pair){ key, value });
            }
            uint64_t probe = rng_below(&rng, key_range) * 0x100000001;
            at = model_find(&want, probe);
            EXPECT_EQ(map_get(&m, probe, &value), at != NULL);
            if (at)
                EXPECT_EQ(value, at->value);
            if (rng_below(&rng, 500) == 0) {
                map_clear(&m);
                vec_clear(&want);
            }
            if (op % 64 == 0)
                expect_same(&m, &want);
        }
        expect_same(&m, &want);
        map_done(&m);
        vec_done(&want);
    }
}

TEST(map_is_empty_when_zeroed_and_after_done)
{
    struct map m = { 0 };
    uintptr_t value = 7;
    for (int round = 0; round < 2; round++) {
        EXPECT_FALSE(map_get(&m, 0, &value));
        EXPECT_FALSE(map_remove(&m, 0, NULL));
        map_each(&m, it)
            fail_msg("nothing to visit");
        map_clear(&m);
        map_put(&m, 0, 1);
        map_done(&m);
    }
    EXPECT_EQ(value, 7);
}

TEST(map_keeps_the_place_of_a_replaced_key_and_moves_a_readded_one_to_the_end)
{
    struct map m = { 0 };
    for (uint64_t key = 1; key <= 3; key++)
        map_put(&m, key, (uintptr_t)key * 10);
    map_put(&m, 1, 11);
    map_remove(&m, 2, NULL);
    map_put(&m, 2, 22);
    uint64_t keys[3] = { 0 };
    size_t n = 0;
    map_each(&m, it)
        keys[n++] = it->key;
    EXPECT_EQ(n, 3);
    EXPECT_EQ(keys[0], 1);
    EXPECT_EQ(keys[1], 3);
    EXPECT_EQ(keys[2], 2);
    map_done(&m);
}

TEST(map_entries_can_be_removed_while_iterating)
{
    struct map m = { 0 };
    for (uint64_t key = 0; key < 1000; key++)
        map_put(&m, key, 0);
    map_each(&m, it) {
        if (it->key % 3)
            map_remove(&m, it->key, NULL);
    }
    EXPECT_EQ(m.live_count, 334);
    map_each(&m, it)
        EXPECT_EQ(it->key % 3, 0);
    map_done(&m);
}

TEST(map_memory_follows_what_is_live_however_much_came_and_went)
{
    struct map m = { 0 };
    struct str_table t = { 0 };
    char key[32];
    for (uint64_t i = 0; i < 200000; i++) { /* a window of 100 live keys slides along */
        map_put(&m, i, 0);
        str_table_put(
            &t,
            (struct str){ key, (size_t)snprintf(key, sizeof key, "%llu", (unsigned long long)i) },
            NULL);
        if (i >= 100) {
            map_remove(&m, i - 100, NULL);
            str_table_remove(&t,
                             (struct str){ key, (size_t)snprintf(key, sizeof key, "%llu",
                                                                 (unsigned long long)(i - 100)) });
        }
    }
    EXPECT_EQ(m.live_count, 100);
    EXPECT_TRUE(m.slot_cap <= 512);
    EXPECT_EQ(m.index_cap, m.slot_cap * 2);
    EXPECT_TRUE(t.slot_cap <= 512);

    for (uint64_t i = 0; i < 100000; i++) /* a burst ... */
        map_put(&m, i, 0);
    EXPECT_TRUE(m.slot_cap >= 100000);
    for (uint64_t i = 0; i < 300000; i++) { /* ... and its memory is given back by later churn */
        map_remove(&m, i, NULL);
        map_put(&m, i + 300000, 0);
        map_remove(&m, i + 300000, NULL);
    }
    EXPECT_TRUE(m.slot_cap <= 512);
    map_done(&m);
    str_table_done(&t);
}

/* The longest run of taken cells: no walk is longer. */
static uint32_t longest_run(const uint32_t *index, uint32_t cap)
{
    uint32_t longest = 0, run = 0;
    EXPECT_TRUE(cap > 0);
    for (uint32_t i = 0; i < cap * 2; i++) { /* twice around: a run may wrap */
        run = index[i % cap] ? run + 1 : 0;
        if (run > longest && run <= cap)
            longest = run;
    }
    return longest;
}

TEST(map_walks_stay_short_for_keys_with_regular_bits)
{
    for (unsigned shift = 0; shift < 48; shift += 4) {
        struct map m = { 0 };
        for (uint64_t i = 0; i < 30000; i++)
            map_put(&m, i << shift, 0);
        uint32_t run = longest_run(m.index, m.index_cap);
        EXPECT_TRUE(run < 100);
        map_done(&m);
    }
}

TEST(str_table_finds_what_was_put_by_content)
{
    struct str_table t = { 0 };
    int a, b;
    char key[] = "alpha";
    str_table_put(&t, str_of(key), &a);
    key[0] = 'X'; /* the table has its own copy */
    str_table_put(&t, STR(""), &b);
    EXPECT_TRUE(str_table_get(&t, STR("alpha")) == &a);
    EXPECT_TRUE(str_table_get(&t, STR("")) == &b);
    EXPECT_TRUE(str_table_get(&t, STR("alph")) == NULL);
    EXPECT_TRUE(str_table_get_hashed(&t, STR("alpha"), kv_hash("alpha", 5)) == &a);
    EXPECT_TRUE(str_table_get_hashed(&t, STR("alph"), kv_hash("alph", 4)) == NULL);
    EXPECT_FALSE(str_table_has(&t, STR("Xlpha")));
    str_table_put(&t, STR("null"), NULL);
    EXPECT_TRUE(str_table_has(&t, STR("null")));
    str_table_put(&t, STR("alpha"), &b);
    EXPECT_EQ(t.live_count, 3);
    EXPECT_TRUE(str_table_remove(&t, STR("alpha")) == &b);
    EXPECT_TRUE(str_table_remove(&t, STR("alpha")) == NULL);
    EXPECT_FALSE(str_table_has(&t, STR("alpha")));
    str_table_clear(&t);
    EXPECT_FALSE(str_table_has(&t, STR("")));
    str_table_put(&t, STR("again"), &a);
    EXPECT_TRUE(str_table_get(&t, STR("again")) == &a);
    str_table_done(&t);
}

TEST(str_table_tells_keys_with_nul_bytes_apart)
{
    struct str_table t = { 0 };
    int a, b;
    str_table_put(&t, STR("x\0y"), &a);
    str_table_put(&t, STR("x\0z"), &b);
    EXPECT_TRUE(str_table_get(&t, STR("x\0y")) == &a);
    EXPECT_TRUE(str_table_get(&t, STR("x\0z")) == &b);
    EXPECT_FALSE(str_table_has(&t, STR("x")));
    str_table_done(&t);
}

static size_t number_key(char out[16], uint64_t n)
{
    return (size_t)snprintf(out, 16, "key-%llu", (unsigned long long)n);
}

/* One key that comes and goes in a large map, as the hot key of a queue does. */
TEST(map_walks_stay_short_when_one_key_comes_and_goes)
{
    enum { LIVE = 40000 };
    struct map m = { 0 };
    struct str_table t = { 0 };
    char text[16];
    for (uint64_t i = 0; i < LIVE; i++) {
        map_put(&m, i, 0);
        str_table_put(&t, (struct str){ text, number_key(text, i) }, NULL);
    }
    EXPECT_TRUE(m.slot_cap - m.slot_count > 20000); /* room for many rounds before a rebuild */
    for (int i = 0; i < 20000; i++) {
        map_put(&m, LIVE, 0);
        map_remove(&m, LIVE, NULL);
        str_table_put(&t, STR("hot"), NULL);
        str_table_remove(&t, STR("hot"));
    }
    EXPECT_TRUE(longest_run(m.index, m.index_cap) < 150);
    EXPECT_TRUE(longest_run(t.index, t.index_cap) < 150);
    map_done(&m);
    str_table_done(&t);
}

TEST(map_clearing_costs_what_was_put_in_since_the_last_time)
{
    struct map m = { 0 };
    struct str_table t = { 0 };
    char text[16];
    for (uint64_t i = 0; i < 100000; i++) {
        map_put(&m, i, 0);
        str_table_put(&t, (struct str){ text, number_key(text, i) }, NULL);
    }
    map_clear(&m);
    str_table_clear(&t);
    for (int i = 0; i < 3; i++) { /* after the burst: nothing of its size is left to clear */
        map_put(&m, 1, 0);
        str_table_put(&t, STR("a"), NULL);
        map_clear(&m);
        str_table_clear(&t);
    }
    EXPECT_TRUE(m.index_cap <= 64);
    EXPECT_TRUE(t.index_cap <= 64);

    for (int round = 0; round < 2; round++) { /* while equal rounds share their memory */
        uint32_t cap = m.index_cap;
        for (uint64_t i = 0; i < 1000; i++)
            map_put(&m, i, 0);
        map_clear(&m);
        EXPECT_TRUE(round == 0 || m.index_cap == cap);
    }
    map_done(&m);
    str_table_done(&t);
}

TEST(str_table_agrees_with_a_flag_per_key_under_random_operations)
{
    enum { KEYS = 400 };
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct rng rng;
        rng_init(&rng, seed);
        print_message("# seed %llu\n", (unsigned long long)seed);
        struct str_table t = { 0 };
        uintptr_t want[KEYS] = { 0 };
        uint64_t born[KEYS] = { 0 };
        char text[16];
        for (uint64_t op = 1; op <= 5000; op++) {
            size_t k = (size_t)rng_below(&rng, KEYS);
            struct str key = { text, number_key(text, k) };
            if (rng_below(&rng, 2)) {
                str_table_put(&t, key, (void *)op);
                born[k] = want[k] ? born[k] : op;
                want[k] = op;
            } else {
                EXPECT_EQ((uintptr_t)str_table_remove(&t, key), want[k]);
                want[k] = 0;
            }
        }
        uint64_t last_born = 0;
        uint32_t seen = 0;
        str_table_each(&t, it) {
            size_t k = (size_t)strtoul(it->key.p + 4, NULL, 10);
            EXPECT_EQ((uintptr_t)it->value, want[k]);
            EXPECT_TRUE(born[k] > last_born);
            last_born = born[k];
            seen++;
        }
        uint32_t alive = 0;
        for (size_t k = 0; k < KEYS; k++)
            alive += want[k] != 0;
        EXPECT_EQ(seen, alive);
        EXPECT_EQ(t.live_count, alive);
        str_table_done(&t);
    }
}

TEST(str_table_lists_its_live_keys_sorted_by_bytes)
{
    struct str_table t = { 0 };
    const char *keys[] = { "b", "a/b", "", "zz", "a", "gone", "B", "a.b" };
    for (size_t i = 0; i < KV_COUNT_OF(keys); i++)
        str_table_put(&t, str_of(keys[i]), NULL);
    str_table_remove(&t, STR("gone"));
    uint32_t at[7];
    EXPECT_EQ(t.live_count, 7);
    str_table_sorted(&t, at);
    const char *want[] = { "", "B", "a", "a.b", "a/b", "b", "zz" };
    for (size_t i = 0; i < 7; i++)
        EXPECT_STR(t.slots[at[i]].key, want[i]);
    str_table_done(&t);
}

TEST(str_table_defends_itself_against_keys_that_were_chosen_to_collide)
{
    /* The first half makes a factor of the unsalted hash zero, so the second half does not count:
     * all of these have one hash. */
    struct {
        uint64_t zeroes, differs;
    } key = { .zeroes = 0xa0761d6478bd642fULL };
    struct str text = { (const char *)&key, sizeof key };
    struct str_table t = { 0 };
    uint64_t hash = kv_hash(&key, sizeof key);
    for (key.differs = 0; key.differs < 20000; key.differs++) {
        EXPECT_EQ(kv_hash(&key, sizeof key), hash);
        str_table_put(&t, text, (void *)(uintptr_t)(key.differs + 1));
    }
    EXPECT_TRUE(t.salt != 0);
    EXPECT_TRUE(longest_run(t.index, t.index_cap) < 200);
    for (key.differs = 0; key.differs < 20000; key.differs++) {
        EXPECT_EQ((uintptr_t)str_table_get(&t, text), key.differs + 1);
        EXPECT_EQ((uintptr_t)str_table_get_hashed(&t, text, hash), key.differs + 1);
    }
    uint64_t n = 0;
    str_table_each(&t, it)
        EXPECT_EQ((uintptr_t)it->value, ++n);
    str_table_done(&t);
}
