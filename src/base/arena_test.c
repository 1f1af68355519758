#include "support/test.h"

#include "base/arena.h"
#include "base/rng.h"

#include <signal.h>
#include <stdalign.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

TEST(arena_memory_is_zeroed_aligned_and_apart)
{
    AUTO_ARENA a = { 0 };
    struct rng rng;
    rng_init(&rng, 11);
    unsigned char *blocks[500];
    size_t sizes[500];
    for (size_t i = 0; i < 500; i++) {
        sizes[i] = (size_t)rng_below(&rng, i % 50 == 0 ? 100000 : 200);
        blocks[i] = arena_alloc(&a, sizes[i]);
        EXPECT_EQ((uintptr_t)blocks[i] % alignof(max_align_t), 0);
        for (size_t b = 0; b < sizes[i]; b++)
            EXPECT_EQ(blocks[i][b], 0);
        memset(blocks[i], (int)(i % 255) + 1, sizes[i]);
    }
    for (size_t i = 0; i < 500; i++) {
        for (size_t b = 0; b < sizes[i]; b++)
            EXPECT_EQ(blocks[i][b], i % 255 + 1);
    }
}

TEST(arena_memory_is_zeroed_again_after_a_reset)
{
    AUTO_ARENA a = { 0 };
    for (int round = 0; round < 3; round++) {
        unsigned char *p = arena_alloc(&a, 700);
        for (size_t i = 0; i < 700; i++)
            EXPECT_EQ(p[i], 0);
        memset(p, 0xff, 700);
        arena_reset(&a);
        EXPECT_EQ(a.used_bytes, 0);
    }
}

TEST(arena_reset_keeps_the_largest_block_wherever_it_stands)
{
    AUTO_ARENA a = { 0 };
    arena_reset(&a); /* empty: nothing to do */
    EXPECT_EQ(a.held_bytes, 0);

    arena_alloc(&a, 5 << 20);
    arena_alloc(&a, 100); /* does not fit any more: a smaller, newer block */
    size_t both = a.held_bytes;
    arena_reset(&a);
    EXPECT_TRUE(a.held_bytes >= 5 << 20);
    EXPECT_TRUE(a.held_bytes < both);
    size_t held = a.held_bytes;
    arena_alloc(&a, 4 << 20);
    EXPECT_EQ(a.held_bytes, held); /* no further malloc */
}

TEST(arena_takes_few_blocks_for_many_small_allocations)
{
    AUTO_ARENA a = { 0 };
    size_t mallocs = 0;
    for (int i = 0; i < 100000; i++) {
        size_t held = a.held_bytes;
        arena_alloc(&a, 24);
        mallocs += a.held_bytes != held;
    }
    EXPECT_TRUE(mallocs < 20);
    EXPECT_TRUE(a.held_bytes < a.used_bytes * 2);
}

TEST(arena_strings_are_terminated_copies_and_absent_stays_absent)
{
    AUTO_ARENA a = { 0 };
    char text[] = "zone";
    struct str copy = arena_str(&a, str_of(text));
    text[0] = 'X';
    EXPECT_STR(copy, "zone");
    EXPECT_EQ(copy.p[4], '\0');
    EXPECT_TRUE(arena_str(&a, STR_NONE).p == NULL);
    EXPECT_STR(arena_str(&a, STR("")), "");
    EXPECT_STR(arena_strf(&a, "%s-%d", "web", 7), "web-7");
    EXPECT_STR(arena_strf(&a, "%s", ""), "");
    EXPECT_EQ(arena_strf(&a, "%5000d", 1).len, 5000);
}

struct point {
    int x, y;
};

TEST(arena_arrays_of_nothing_are_fine)
{
    AUTO_ARENA a = { 0 };
    struct point *none = arena_array(&a, struct point, 0);
    EXPECT_TRUE(none != NULL);
    struct point *some = arena_array(&a, struct point, 3);
    some[2].y = 5;
    EXPECT_EQ(arena_new(&a, struct point)->x, 0);
    EXPECT_EQ(some[2].y, 5);
}

TEST(arena_of_pages_hands_out_zeroed_memory_apart_from_all_other)
{
    AUTO_ARENA a = { .pages = true };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    unsigned char *blocks[300];
    for (size_t i = 0; i < 300; i++) {
        size_t bytes = i % 50 == 7 ? 100000 : i * 3;
        blocks[i] = arena_alloc(&a, bytes);
        EXPECT_EQ((uintptr_t)blocks[i] % alignof(max_align_t), 0);
        for (size_t b = 0; b < bytes; b++)
            EXPECT_EQ(blocks[i][b], 0);
        memset(blocks[i], (int)(i % 255) + 1, bytes);
    }
    for (size_t i = 0; i < 300; i++) {
        size_t bytes = i % 50 == 7 ? 100000 : i * 3;
        for (size_t b = 0; b < bytes; b++)
            EXPECT_EQ(blocks[i][b], i % 255 + 1);
    }
    EXPECT_EQ(a.held_bytes % page, 0);
    /* Large arrays have their own pages and do not cost the rest of the block being filled. */
    EXPECT_TRUE(a.held_bytes < a.used_bytes + (64 << 10) + 8 * page);
}

TEST(arena_of_pages_can_be_reset_until_it_is_sealed)
{
    AUTO_ARENA a = { .pages = true };
    unsigned char *p = arena_alloc(&a, 500);
    memset(p, 0xff, 500);
    arena_reset(&a);
    p = arena_alloc(&a, 500);
    EXPECT_EQ(p[0], 0);
    EXPECT_EQ(p[499], 0);
    arena_seal(&a);
    EXPECT_EQ(p[499], 0); /* reading goes on */
}

static int signal_of(void (*act)(struct arena *a, unsigned char *p), struct arena *a,
                     unsigned char *p)
{
    fflush(NULL);
    pid_t child = fork();
    EXPECT_TRUE(child >= 0);
    if (child == 0) {
        struct rlimit none = { 0, 0 };
        setrlimit(RLIMIT_CORE, &none);
        signal(SIGSEGV, SIG_DFL); /* a sanitizer has its own handlers, and would exit */
        signal(SIGABRT, SIG_DFL);
        if (!freopen("/dev/null", "w", stderr))
            _exit(1);
        act(a, p);
        _exit(0);
    }
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void write_to(struct arena *a KV_UNUSED, unsigned char *p)
{
    *(volatile unsigned char *)p = 1;
}

static void ask_for_more(struct arena *a, unsigned char *p KV_UNUSED)
{
    arena_alloc(a, 1);
}

TEST(arena_that_is_sealed_cannot_be_written_and_gives_no_more)
{
    AUTO_ARENA a = { .pages = true };
    unsigned char *small = arena_alloc(&a, 10), *large = arena_alloc(&a, 300000);
    EXPECT_EQ(signal_of(write_to, &a, small), 0);
    EXPECT_EQ(signal_of(write_to, &a, large + 299999), 0);
    arena_seal(&a);
    EXPECT_EQ(signal_of(write_to, &a, small), SIGSEGV);
    EXPECT_EQ(signal_of(write_to, &a, large), SIGSEGV);
    EXPECT_EQ(signal_of(write_to, &a, large + 299999), SIGSEGV);
    EXPECT_EQ(signal_of(ask_for_more, &a, small), SIGABRT);
}

TEST(the_first_block_is_as_large_as_was_said_and_later_ones_grow)
{
    AUTO_ARENA small = { .first_bytes = 64 };
    arena_alloc(&small, 64);
    size_t held = small.held_bytes;
    EXPECT_TRUE(held < 128);
    arena_alloc(&small, 16);
    EXPECT_TRUE(small.held_bytes >= held + 128);
    arena_reset(&small);
    EXPECT_EQ(small.first_bytes, 64);
    arena_done(&small);
    arena_alloc(&small, 1);
    EXPECT_TRUE(small.held_bytes >= 1024);
}
