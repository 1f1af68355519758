#include "support/test.h"

#include "base/kv.h"

TEST(hash_is_the_same_in_every_run_and_build)
{
    EXPECT_EQ(kv_hash("", 0), kv_hash_salted(NULL, 0, 0));
    EXPECT_EQ(kv_hash("karve", 5), 0xf7bbc8919e8b416bULL);
    EXPECT_EQ(kv_hash("topology.kubernetes.io/zone", 27), 0x31760783baa968fULL);
}

/* Every length has its own path through the loop and the two tails. */
TEST(hash_depends_on_every_bit_the_length_and_the_salt)
{
    unsigned char bytes[40] = { 0 };
    for (size_t len = 0; len <= sizeof bytes; len++) {
        uint64_t plain = kv_hash(bytes, len);
        EXPECT_TRUE(plain != kv_hash_salted(bytes, len, 1));
        EXPECT_TRUE(len == 0 || plain != kv_hash(bytes, len - 1));
        for (size_t bit = 0; bit < len * 8; bit++) {
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            uint64_t changed = plain ^ kv_hash(bytes, len);
            bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
            int differ = __builtin_popcountll(changed);
            EXPECT_TRUE(differ >= 8);
            EXPECT_TRUE(differ <= 56);
        }
    }
}

TEST(mix64_maps_no_two_of_many_neighbours_to_one_low_half_too_often)
{
    /* 2^16 keys into 2^16 cells: random hashing leaves about 1/e of the cells empty. */
    static unsigned char hit[1 << 16];
    int empty = 0;
    for (uint64_t i = 0; i < 1 << 16; i++)
        hit[kv_mix64(i) & 0xffff] = 1;
    for (size_t i = 0; i < sizeof hit; i++)
        empty += !hit[i];
    EXPECT_TRUE(empty > 23500);
    EXPECT_TRUE(empty < 24700);
}

TEST(take_empties_the_variable_so_that_cleanup_leaves_the_value_alone)
{
    char *given;
    {
        AUTO_FREE char *mine = kv_strdup("kept");
        AUTO_FREE char *dropped KV_UNUSED = kv_strdup("freed at the end of the scope");
        given = take(&mine);
        EXPECT_TRUE(mine == NULL);
    }
    EXPECT_Z(given, "kept");
    free(given);
}

TEST(allocation_of_nothing_gives_something_to_free)
{
    AUTO_FREE void *a = kv_malloc(0);
    AUTO_FREE void *b = kv_calloc(0, 8);
    AUTO_FREE void *c = kv_realloc(NULL, 0, 8);
    EXPECT_TRUE(a && b && c);
    AUTO_FREE unsigned char *zeroed = kv_calloc(100, 3);
    for (int i = 0; i < 300; i++)
        EXPECT_EQ(zeroed[i], 0);
}
