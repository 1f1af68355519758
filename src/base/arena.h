/* base/arena.h - memory for what is built and dropped together: a plan, one decoded response.
 *
 * Zero-initialised is empty. Blocks double in size up to 1 MiB, so calls to malloc are rare;
 * `arena_reset` keeps the largest block for the next round. Not thread safe: one owner.
 *
 * What is small and there many times says how large its first block is: `{ .first_bytes = 200 }`.
 *
 * For what is built once and then only read there is `{ .pages = true }`: its blocks are whole pages
 * of their own, which `arena_seal` makes read-only.
 */
#pragma once

#include "base/str.h"

struct arena_block;

struct arena {
    struct arena_block *head; /* the block being filled; older ones hang behind it */
    size_t used_bytes;        /* handed out since the last reset */
    size_t held_bytes;        /* taken from malloc, or from the system as pages */
    uint32_t first_bytes;     /* of the first block; 0: 1 KiB. arena_done forgets it */
    bool pages;               /* set before the first allocation; arena_done forgets it */
    bool sealed;
};

void arena_done(struct arena *a);
void arena_reset(struct arena *a);

/* From now on until arena_done a write to its memory faults, and so does asking it for more. It has
 * pages. */
void arena_seal(struct arena *a);

/* Aligned for any type; zeroed. */
void *arena_alloc(struct arena *a, size_t bytes) __attribute__((returns_nonnull, malloc));
void *arena_alloc_array(struct arena *a, size_t count, size_t size)
    __attribute__((returns_nonnull, malloc));
/* A copy, NUL-terminated; absent stays absent. */
struct str arena_str(struct arena *a, struct str s);
struct str arena_strf(struct arena *a, const char *fmt, ...) KV_PRINTF(2, 3);

#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
#define arena_array(a, type, count) ((type *)arena_alloc_array((a), (count), sizeof(type)))

#define AUTO_ARENA __attribute__((cleanup(arena_done))) struct arena
