/* A list of blocks, each twice as large as the one before up to a limit; a request larger than
 * that gets a block of its own size. Allocation moves a mark in the newest block. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdio.h>

struct arena_block {
    struct arena_block *older;
    size_t cap, used;
    alignas(max_align_t) unsigned char bytes[];
};

#define BLOCK_BYTES_MIN 1024
#define BLOCK_BYTES_MAX ((size_t)1 << 20)

static struct arena_block *block_new(struct arena *a, size_t need)
{
    size_t cap = a->head ? a->head->cap * 2 : BLOCK_BYTES_MIN;
    if (cap > BLOCK_BYTES_MAX)
        cap = BLOCK_BYTES_MAX;
    if (cap < need)
        cap = need;
    KV_ASSERT(cap <= SIZE_MAX - sizeof(struct arena_block));
    struct arena_block *b = kv_malloc(sizeof *b + cap);
    b->cap = cap;
    b->used = 0;
    b->older = a->head;
    a->head = b;
    a->held_bytes += sizeof *b + cap;
    return b;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    size_t rounded = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    KV_ASSERT(rounded >= bytes);
    struct arena_block *b = a->head;
    if (!b || b->cap - b->used < rounded)
        b = block_new(a, rounded);
    void *p = b->bytes + b->used;
    b->used += rounded;
    a->used_bytes += rounded;
    return memset(p, 0, bytes);
}

void *arena_alloc_array(struct arena *a, size_t count, size_t size)
{
    size_t bytes;
    bool overflow = __builtin_mul_overflow(count, size, &bytes);
    KV_ASSERT(!overflow);
    return arena_alloc(a, bytes);
}

struct str arena_str(struct arena *a, struct str s)
{
    if (!s.p)
        return STR_NONE;
    char *p = arena_alloc(a, s.len + 1);
    memcpy(p, s.p, s.len);
    return (struct str){ p, s.len };
}

struct str arena_strf(struct arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, fmt, args);
    va_end(args);
    KV_ASSERT(n >= 0);
    char *p = arena_alloc(a, (size_t)n + 1);
    vsnprintf(p, (size_t)n + 1, fmt, again);
    va_end(again);
    return (struct str){ p, (size_t)n };
}

void arena_done(struct arena *a)
{
    for (struct arena_block *b = a->head, *older; b; b = older) {
        older = b->older;
        free(b);
    }
    *a = (struct arena){ 0 };
}

void arena_reset(struct arena *a)
{
    struct arena_block *largest = a->head;
    for (struct arena_block *b = a->head; b; b = b->older) {
        if (b->cap > largest->cap)
            largest = b;
    }
    if (!largest)
        return;
    for (struct arena_block *b = a->head, *older; b; b = older) {
        older = b->older;
        if (b != largest)
            free(b);
    }
    largest->older = NULL;
    largest->used = 0;
    *a = (struct arena){ .head = largest, .held_bytes = sizeof *largest + largest->cap };
}
