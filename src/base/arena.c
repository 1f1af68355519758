/* A list of blocks, each twice as large as the one before up to a limit; a request larger than
 * that gets a block of its own size. Allocation moves a mark in the newest block.
 *
 * Blocks of pages come from mmap. They live long and are many, so they stop growing earlier: at
 * most PAGES_BYTES_MAX are held for nothing. */
#include "base/arena.h"

#include <stdalign.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

struct arena_block {
    struct arena_block *older;
    size_t cap, used; /* of `bytes` */
    alignas(max_align_t) unsigned char bytes[];
};

#define BLOCK_BYTES_MIN 1024
#define BLOCK_BYTES_MAX ((size_t)1 << 20)
#define PAGES_BYTES_MAX ((size_t)64 << 10)

static size_t page_round(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    KV_ASSERT(bytes <= SIZE_MAX - page);
    return (bytes + page - 1) / page * page;
}

/* Populated at once: a block is filled soon, and a fault per page costs more than the page. */
static void *pages_map(size_t bytes)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, flags, -1, 0);
    KV_ASSERT(p != MAP_FAILED);
    return p;
}

static void block_free(const struct arena *a, struct arena_block *b)
{
    if (!a->pages)
        free(b);
    else
        munmap(b, sizeof *b + b->cap);
}

static struct arena_block *block_new(struct arena *a, size_t cap)
{
    KV_ASSERT(cap <= SIZE_MAX - sizeof(struct arena_block));
    size_t bytes = sizeof(struct arena_block) + cap;
    if (a->pages)
        bytes = page_round(bytes);
    struct arena_block *b = a->pages ? pages_map(bytes) : kv_malloc(bytes);
    b->cap = bytes - sizeof *b;
    b->used = 0;
    b->older = NULL;
    a->held_bytes += bytes;
    return b;
}

/* A block with room for `need`. A large array in pages gets its own, and the one being filled goes
 * on being filled. */
static struct arena_block *block_for(struct arena *a, size_t need)
{
    if (a->pages && a->head && need >= PAGES_BYTES_MAX / 4) {
        struct arena_block *own = block_new(a, need);
        own->older = a->head->older;
        a->head->older = own;
        return own;
    }
    size_t first = a->first_bytes ? a->first_bytes : BLOCK_BYTES_MIN;
    size_t cap = a->head ? a->head->cap * 2 : first;
    size_t cap_max = a->pages ? PAGES_BYTES_MAX - sizeof(struct arena_block) : BLOCK_BYTES_MAX;
    if (cap > cap_max)
        cap = cap_max;
    struct arena_block *b = block_new(a, cap < need ? need : cap);
    b->older = a->head;
    a->head = b;
    return b;
}

void arena_seal(struct arena *a)
{
    KV_ASSERT(a->pages);
    for (struct arena_block *b = a->head, *older; b; b = older) {
        older = b->older;
        int rc = mprotect(b, sizeof *b + b->cap, PROT_READ);
        KV_ASSERT(rc == 0);
    }
    a->sealed = true;
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    KV_ASSERT(!a->sealed);
    size_t rounded = (bytes + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    KV_ASSERT(rounded >= bytes);
    struct arena_block *b = a->head;
    if (!b || b->cap - b->used < rounded)
        b = block_for(a, rounded);
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
        block_free(a, b);
    }
    *a = (struct arena){ 0 };
}

void arena_reset(struct arena *a)
{
    KV_ASSERT(!a->sealed);
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
            block_free(a, b);
    }
    largest->older = NULL;
    largest->used = 0;
    *a = (struct arena){ .head = largest,
                         .held_bytes = sizeof *largest + largest->cap,
                         .first_bytes = a->first_bytes,
                         .pages = a->pages };
}
