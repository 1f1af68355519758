/* store/sorted.c - blocks of at most SORTED_BLOCK_ITEMS items in an array of blocks.
 *
 * A search is a binary search over the blocks' first keys and one within a block; an insertion
 * moves at most one block's items. With 100,000 keys the array of blocks has a few hundred
 * entries, so splitting a block moves less than a page. A full block splits in halves, or, when
 * the new key goes past its end, opens an empty neighbour: keys that arrive in order leave full
 * blocks behind.
 */
#include "store/sorted.h"

void sorted_done(struct sorted *map)
{
    for (size_t b = 0; b < map->block_count; b++) {
        for (uint32_t i = 0; i < map->blocks[b]->count; i++)
            free((char *)map->blocks[b]->items[i].key.p);
        free(map->blocks[b]);
    }
    free(map->blocks);
    *map = (struct sorted){ 0 };
}

/* The block that has the key or is where it belongs: the last one that does not start after it. */
static size_t block_of(const struct sorted *map, struct str key)
{
    size_t low = 0, high = map->block_count;

    while (low + 1 < high) {
        size_t mid = low + (high - low) / 2;
        if (str_cmp(map->blocks[mid]->items[0].key, key) <= 0)
            low = mid;
        else
            high = mid;
    }
    return low;
}

/* The first item >= key in the block, or its count. */
static uint32_t item_of(const struct sorted_block *block, struct str key)
{
    uint32_t low = 0, high = block->count;

    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (str_cmp(block->items[mid].key, key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static struct sorted_item *find(const struct sorted *map, struct str key)
{
    if (map->block_count == 0)
        return NULL;
    struct sorted_block *block = map->blocks[block_of(map, key)];
    uint32_t ix = item_of(block, key);
    return ix < block->count && str_eq(block->items[ix].key, key) ? &block->items[ix] : NULL;
}

void *sorted_get(const struct sorted *map, struct str key)
{
    const struct sorted_item *item = find(map, key);
    return item ? item->value : NULL;
}

static struct sorted_block *block_insert(struct sorted *map, size_t at)
{
    if (map->block_count == map->block_cap) {
        map->block_cap = map->block_cap ? map->block_cap * 2 : 8;
        map->blocks = kv_realloc(map->blocks, map->block_cap, sizeof *map->blocks);
    }
    memmove(map->blocks + at + 1, map->blocks + at, (map->block_count - at) * sizeof *map->blocks);
    map->block_count++;
    struct sorted_block *block = kv_malloc(sizeof *block);
    block->count = 0;
    return map->blocks[at] = block;
}

/* Make room around a full block; returns the block that takes an item at `*ix`. */
static struct sorted_block *block_split(struct sorted *map, size_t block_ix, uint32_t *ix)
{
    struct sorted_block *right = block_insert(map, block_ix + 1);
    struct sorted_block *left = map->blocks[block_ix];

    if (*ix == left->count) {
        *ix = 0;
        return right;
    }
    uint32_t half = left->count / 2;
    right->count = left->count - half;
    memcpy(right->items, left->items + half, right->count * sizeof right->items[0]);
    left->count = half;
    if (*ix <= half)
        return left;
    *ix -= half;
    return right;
}

struct str sorted_put(struct sorted *map, struct str key, void *value)
{
    struct sorted_item *old = find(map, key);
    if (old) {
        old->value = value;
        return old->key;
    }
    if (map->block_count == 0)
        block_insert(map, 0);

    size_t block_ix = block_of(map, key);
    struct sorted_block *block = map->blocks[block_ix];
    uint32_t ix = item_of(block, key);
    if (block->count == SORTED_BLOCK_ITEMS)
        block = block_split(map, block_ix, &ix);

    memmove(block->items + ix + 1, block->items + ix, (block->count - ix) * sizeof block->items[0]);
    block->items[ix] = (struct sorted_item){ { str_dup(key), key.len }, value };
    block->count++;
    map->count++;
    return block->items[ix].key;
}

void *sorted_remove(struct sorted *map, struct str key)
{
    if (map->block_count == 0)
        return NULL;
    size_t block_ix = block_of(map, key);
    struct sorted_block *block = map->blocks[block_ix];
    uint32_t ix = item_of(block, key);
    if (ix == block->count || !str_eq(block->items[ix].key, key))
        return NULL;

    void *value = block->items[ix].value;
    free((char *)block->items[ix].key.p);
    block->count--;
    map->count--;
    memmove(block->items + ix, block->items + ix + 1, (block->count - ix) * sizeof block->items[0]);
    if (block->count == 0) {
        free(block);
        map->block_count--;
        memmove(map->blocks + block_ix, map->blocks + block_ix + 1,
                (map->block_count - block_ix) * sizeof *map->blocks);
    }
    return value;
}

/* Settle on an item, going to the next block from past the end of one. */
static void iter_land(struct sorted_iter *it)
{
    it->item = NULL;
    if (it->block_ix < it->map->block_count &&
        it->item_ix == it->map->blocks[it->block_ix]->count) {
        it->block_ix++;
        it->item_ix = 0;
    }
    if (it->block_ix < it->map->block_count)
        it->item = &it->map->blocks[it->block_ix]->items[it->item_ix];
}

struct sorted_iter sorted_seek(const struct sorted *map, struct str key)
{
    struct sorted_iter it = { .map = map };

    if (map->block_count > 0) {
        it.block_ix = block_of(map, key);
        it.item_ix = item_of(map->blocks[it.block_ix], key);
    }
    iter_land(&it);
    return it;
}

void sorted_next(struct sorted_iter *it)
{
    it->item_ix++;
    iter_land(it);
}

void sorted_key(struct buf *out, size_t part_count, const struct str *parts)
{
    buf_clear(out);
    for (size_t i = 0; i < part_count; i++) {
        if (i > 0)
            buf_addc(out, '\0');
        buf_add(out, parts[i]);
    }
}

void sorted_prefix(struct buf *out, size_t part_count, const struct str *parts)
{
    sorted_key(out, part_count, parts);
    buf_addc(out, '\0');
}
