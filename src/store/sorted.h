/* store/sorted.h - a map from strings to pointers, kept in key order.
 *
 * What a store lists is sorted, a namespace is a range of it, and the pods of a node or the
 * dependents of an owner are ranges of an index: all of them are this one structure. Keys of
 * several parts are joined with NUL bytes (sorted_key), so that "a" < "a\0b" < "a-b\0c" whatever
 * the parts contain.
 *
 * Zero-initialised is empty. Not thread safe. An iterator dies with the next change.
 */
#pragma once

#include "base/str.h"

#define SORTED_BLOCK_ITEMS 256

struct sorted_item {
    struct str key; /* owned by the map, NUL-terminated; does not move while it is in it */
    void *value;
};

struct sorted_block {
    uint32_t count; /* never 0 */
    struct sorted_item items[SORTED_BLOCK_ITEMS];
};

struct sorted {
    struct sorted_block **blocks;
    size_t block_count, block_cap;
    size_t count;
};

struct sorted_iter {
    const struct sorted *map;
    size_t block_ix;
    uint32_t item_ix;
    const struct sorted_item *item; /* NULL: at the end */
};

void sorted_done(struct sorted *map); /* values are the caller's to free first */

void *sorted_get(const struct sorted *map, struct str key); /* NULL if absent */
/* Adds or replaces. The key is copied; what is returned is that copy. */
struct str sorted_put(struct sorted *map, struct str key, void *value);
void *sorted_remove(struct sorted *map, struct str key); /* the old value, or NULL */

struct sorted_iter sorted_seek(const struct sorted *map, struct str key); /* the first >= key */
void sorted_next(struct sorted_iter *it);

/* for (sorted_each(map, prefix, it)) visits the items whose keys start with `prefix`, in order. */
#define sorted_each(map_, prefix_, it)                                                             \
    struct sorted_iter it = sorted_seek((map_), (prefix_));                                        \
    it.item &&str_starts(it.item->key, (prefix_));                                                 \
    sorted_next(&it)

/* Append the parts to `out`, which is emptied first, with a NUL between them; `prefix` ends in a
 * NUL too, so that it covers the keys that have these parts and more. */
void sorted_key(struct buf *out, size_t part_count, const struct str *parts);
void sorted_prefix(struct buf *out, size_t part_count, const struct str *parts);

#define SORTED_KEY(out, ...)                                                                       \
    sorted_key((out), KV_COUNT_OF(((const struct str[]){ __VA_ARGS__ })),                          \
               (const struct str[]){ __VA_ARGS__ })
#define SORTED_PREFIX(out, ...)                                                                    \
    sorted_prefix((out), KV_COUNT_OF(((const struct str[]){ __VA_ARGS__ })),                       \
                  (const struct str[]){ __VA_ARGS__ })
