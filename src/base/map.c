/* Both maps keep their entries in an array in the order of insertion, and beside it an index: a
 * power-of-two table of positions in that array, walked linearly from where the key's hash points.
 *
 * 1. The index has twice as many cells as the array has room, so at most half of them are taken
 *    and every walk meets an empty cell after a few steps.
 * 2. A removed entry becomes a hole in the array, which iteration skips, and its cell is VACATED:
 *    walks pass over it, the next entry that comes by moves in. Nothing else moves, so removing
 *    while iterating is fine. Moving in is what keeps walks short when one key comes and goes
 *    again and again: it always finds its own old cell.
 * 3. When the array is full, holes are closed and both arrays are sized by what is live: room for
 *    at most max(8, 3 * live + 2) entries, whatever the history. A rebuild makes room for at least
 *    half as many entries as it moved, so its cost per insertion is constant.
 *
 * Integer keys are ids of ours and only need mixing. String keys come from outside, and kv_hash is
 * a fixed function, so somebody could choose keys that all collide: a walk longer than
 * PROBE_MAX makes the table rehash itself with a salt from the system's random numbers. That
 * changes where a key is found, never the order of iteration.
 */
#include "base/map.h"

#include <sys/random.h>

/* The longest run of taken cells in a half-full table of n random hashes is about ln(n) / 0.19:
 * 72 for a million keys, 116 for four billion. */
#define PROBE_MAX 128
#define SLOTS_MIN 8u
#define SLOTS_MAX (1u << 30)
#define VACATED UINT32_MAX /* no position: there are fewer slots */

static uint32_t slots_for(uint32_t live)
{
    uint64_t need = (uint64_t)live + live / 2 + 1;
    KV_ASSERT(need <= SLOTS_MAX);
    uint32_t cap = SLOTS_MIN;
    while (cap < need)
        cap *= 2;
    return cap;
}

static void index_add(uint32_t *index, uint32_t index_cap, uint64_t hash, uint32_t position)
{
    uint32_t mask = index_cap - 1, i = (uint32_t)hash & mask;
    while (index[i] && index[i] != VACATED)
        i = (i + 1) & mask;
    index[i] = position + 1;
}

/* An empty index for `slot_cap` entries, in the old one's memory if that fits. */
static void index_renew(uint32_t **index, uint32_t *index_cap, uint32_t slot_cap)
{
    if (*index_cap == slot_cap * 2) {
        memset(*index, 0, *index_cap * sizeof **index);
        return;
    }
    free(*index);
    *index_cap = slot_cap * 2;
    *index = kv_calloc(*index_cap, sizeof **index);
}

/* Whether clearing should give the memory back: filling the index with zeros must not cost much
 * more than what was put in since the last time. */
static bool clear_frees(uint32_t slot_count, uint32_t index_cap)
{
    return index_cap / 16 > slot_count;
}

/* --- keyed by integers --- */

void map_done(struct map *m)
{
    free(m->slots);
    free(m->index);
    *m = (struct map){ 0 };
}

void map_clear(struct map *m)
{
    if (clear_frees(m->slot_count, m->index_cap)) {
        map_done(m);
    } else if (m->slot_count) {
        m->slot_count = m->live_count = 0;
        memset(m->index, 0, m->index_cap * sizeof *m->index);
    }
}

/* The cell of the index that leads to the key, or NULL. */
static uint32_t *map_cell(const struct map *m, uint64_t key)
{
    if (m->live_count == 0)
        return NULL;
    uint32_t mask = m->index_cap - 1;
    for (uint32_t i = (uint32_t)kv_mix64(key) & mask; m->index[i]; i = (i + 1) & mask) {
        if (m->index[i] != VACATED && m->slots[m->index[i] - 1].key == key)
            return &m->index[i];
    }
    return NULL;
}

static void map_rebuild(struct map *m)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < m->slot_count; i++) {
        if (m->slots[i].live)
            m->slots[kept++] = m->slots[i];
    }
    m->slot_count = kept;

    uint32_t cap = slots_for(kept);
    if (cap != m->slot_cap)
        m->slots = kv_realloc(m->slots, cap, sizeof *m->slots);
    m->slot_cap = cap;

    index_renew(&m->index, &m->index_cap, cap);
    for (uint32_t i = 0; i < kept; i++)
        index_add(m->index, m->index_cap, kv_mix64(m->slots[i].key), i);
}

void map_put(struct map *m, uint64_t key, uintptr_t value)
{
    const uint32_t *cell = map_cell(m, key);
    if (cell) {
        m->slots[*cell - 1].value = value;
        return;
    }
    if (m->slot_count == m->slot_cap)
        map_rebuild(m);
    index_add(m->index, m->index_cap, kv_mix64(key), m->slot_count);
    m->slots[m->slot_count++] = (struct map_slot){ .key = key, .value = value, .live = true };
    m->live_count++;
}

bool map_get(const struct map *m, uint64_t key, uintptr_t *value)
{
    const uint32_t *cell = map_cell(m, key);
    if (cell)
        *value = m->slots[*cell - 1].value;
    return cell != NULL;
}

bool map_remove(struct map *m, uint64_t key, uintptr_t *old)
{
    uint32_t *cell = map_cell(m, key);
    if (!cell)
        return false;
    struct map_slot *slot = &m->slots[*cell - 1];
    if (old)
        *old = slot->value;
    slot->live = false;
    *cell = VACATED;
    m->live_count--;
    return true;
}

/* --- keyed by strings --- */

static void slots_free_keys(struct str_table *t)
{
    for (uint32_t i = 0; i < t->slot_count; i++)
        free((char *)t->slots[i].key.p);
}

void str_table_done(struct str_table *t)
{
    slots_free_keys(t);
    free(t->slots);
    free(t->index);
    *t = (struct str_table){ 0 };
}

void str_table_clear(struct str_table *t)
{
    if (clear_frees(t->slot_count, t->index_cap)) {
        str_table_done(t);
    } else if (t->slot_count) {
        slots_free_keys(t);
        t->slot_count = t->live_count = 0;
        memset(t->index, 0, t->index_cap * sizeof *t->index);
    }
}

static uint64_t salted_hash(const struct str_table *t, struct str key)
{
    return kv_hash_salted(key.p, key.len, t->salt);
}

/* The cell of the index that leads to the key, or NULL. `steps` is the length of the walk: how many
 * cells were taken by something else. */
static uint32_t *table_cell(const struct str_table *t, struct str key, uint64_t hash,
                            uint32_t *steps)
{
    *steps = 0;
    if (t->live_count == 0)
        return NULL;
    uint32_t mask = t->index_cap - 1;
    for (uint32_t i = (uint32_t)hash & mask; t->index[i]; i = (i + 1) & mask) {
        if (t->index[i] != VACATED) {
            const struct str_slot *slot = &t->slots[t->index[i] - 1];
            if (slot->hash == hash) {
                __builtin_prefetch(slot->value); /* on its way while the keys are compared */
                if (str_eq(slot->key, key))
                    return &t->index[i];
            }
        }
        ++*steps;
    }
    return NULL;
}

static void str_table_rebuild(struct str_table *t)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < t->slot_count; i++) {
        if (t->slots[i].key.p)
            t->slots[kept++] = t->slots[i];
    }
    t->slot_count = kept;

    uint32_t cap = slots_for(kept);
    if (cap != t->slot_cap)
        t->slots = kv_realloc(t->slots, cap, sizeof *t->slots);
    t->slot_cap = cap;

    index_renew(&t->index, &t->index_cap, cap);
    for (uint32_t i = 0; i < kept; i++)
        index_add(t->index, t->index_cap, t->slots[i].hash, i);
}

static void str_table_resalt(struct str_table *t)
{
    /* Without random numbers the address of the table is better than nothing. */
    if (getrandom(&t->salt, sizeof t->salt, GRND_NONBLOCK) != (ssize_t)sizeof t->salt)
        t->salt = kv_mix64((uintptr_t)t->slots);
    t->salt |= 1; /* never 0 again: once is enough */
    for (uint32_t i = 0; i < t->slot_count; i++) {
        if (t->slots[i].key.p)
            t->slots[i].hash = salted_hash(t, t->slots[i].key);
    }
    str_table_rebuild(t);
}

void str_table_put(struct str_table *t, struct str key, void *value)
{
    uint32_t steps;
    uint64_t hash = salted_hash(t, key);
    const uint32_t *cell = table_cell(t, key, hash, &steps);
    if (cell) {
        t->slots[*cell - 1].value = value;
        return;
    }
    if (steps > PROBE_MAX && t->salt == 0) {
        str_table_resalt(t);
        hash = salted_hash(t, key);
    }
    if (t->slot_count == t->slot_cap)
        str_table_rebuild(t);
    index_add(t->index, t->index_cap, hash, t->slot_count);
    t->slots[t->slot_count++] =
        (struct str_slot){ .key = { str_dup(key), key.len }, .hash = hash, .value = value };
    t->live_count++;
}

static uint32_t *table_find(const struct str_table *t, struct str key)
{
    uint32_t steps;
    return table_cell(t, key, salted_hash(t, key), &steps);
}

const struct str_slot *str_table_slot(const struct str_table *t, struct str key)
{
    const uint32_t *cell = table_find(t, key);
    return cell ? &t->slots[*cell - 1] : NULL;
}

void *str_table_get(const struct str_table *t, struct str key)
{
    const struct str_slot *slot = str_table_slot(t, key);
    return slot ? slot->value : NULL;
}

void *str_table_get_hashed(const struct str_table *t, struct str key, uint64_t hash)
{
    uint32_t steps;
    const uint32_t *cell = table_cell(t, key, t->salt ? salted_hash(t, key) : hash, &steps);
    return cell ? t->slots[*cell - 1].value : NULL;
}

bool str_table_has(const struct str_table *t, struct str key)
{
    return table_find(t, key) != NULL;
}

void *str_table_remove(struct str_table *t, struct str key)
{
    uint32_t *cell = table_find(t, key);
    if (!cell)
        return NULL;
    struct str_slot *slot = &t->slots[*cell - 1];
    void *old = slot->value;
    free((char *)slot->key.p);
    *slot = (struct str_slot){ 0 };
    *cell = VACATED;
    t->live_count--;
    return old;
}

static int compare_positions(const void *a, const void *b, void *slots)
{
    const struct str_slot *s = slots;
    return str_cmp(s[*(const uint32_t *)a].key, s[*(const uint32_t *)b].key);
}

void str_table_sorted(const struct str_table *t, uint32_t *out)
{
    uint32_t n = 0;
    str_table_each(t, it)
        out[n++] = (uint32_t)(it - t->slots);
    if (n > 1)
        qsort_r(out, n, sizeof *out, compare_positions, t->slots);
}
