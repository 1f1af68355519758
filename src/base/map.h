/* base/map.h - hash maps whose iteration order is the order of insertion.
 *
 * Open addressing over an index into dense arrays of keys and values: look-ups touch one index
 * line and one key; iteration is a walk over an array. Removal leaves a hole that iteration skips
 * and the next growth closes, so memory follows what is live. Values are pointer-sized; larger
 * things are kept by the caller and indexed.
 *
 * `struct map` is keyed by uint64_t, `struct str_table` by string (the bytes are copied into the
 * table). Zero-initialised is empty. Not thread safe. While iterating, removing is fine; putting a
 * new key is not.
 */
#pragma once

#include "base/str.h"

struct map_slot {
    uint64_t key;
    uintptr_t value;
    bool live;
};

struct map {
    struct map_slot *slots; /* in insertion order; skip those not live */
    uint32_t *index;        /* open addressing: see map.c */
    uint32_t slot_count, slot_cap, live_count, index_cap;
};

void map_done(struct map *m);
void map_clear(struct map *m); /* keeps memory of about the size that was in use */
/* Adds, or replaces and keeps its place. */
void map_put(struct map *m, uint64_t key, uintptr_t value);
bool map_get(const struct map *m, uint64_t key, uintptr_t *value);
bool map_remove(struct map *m, uint64_t key, uintptr_t *old); /* old may be NULL */

#define map_each(m, it)                                                                            \
    for (const struct map_slot *it = (m)->slots, *it##_end_ = it ? it + (m)->slot_count : it;      \
         it != it##_end_; it++)                                                                    \
        if (it->live)

struct str_slot {
    struct str key; /* owned by the table, NUL-terminated; p == NULL: removed */
    uint64_t hash;
    void *value;
};

struct str_table {
    struct str_slot *slots;
    uint32_t *index;
    uint32_t slot_count, slot_cap, live_count, index_cap;
    uint64_t salt; /* 0 until keys collide more than chance explains */
};

void str_table_done(struct str_table *t); /* values are the caller's to free first */
void str_table_clear(struct str_table *t);
void str_table_put(struct str_table *t, struct str key, void *value);
void *str_table_get(const struct str_table *t, struct str key); /* NULL if absent */
/* The same, for who has the key's kv_hash already. */
void *str_table_get_hashed(const struct str_table *t, struct str key, uint64_t hash);
/* The entry, until the next put or remove; NULL if absent. */
const struct str_slot *str_table_slot(const struct str_table *t, struct str key);
bool str_table_has(const struct str_table *t, struct str key);
void *str_table_remove(struct str_table *t, struct str key); /* the old value, or NULL */
/* Live keys sorted by bytes: positions into t->slots, in the caller's array of live_count. */
void str_table_sorted(const struct str_table *t, uint32_t *out);

#define str_table_each(t, it)                                                                      \
    for (const struct str_slot *it = (t)->slots, *it##_end_ = it ? it + (t)->slot_count : it;      \
         it != it##_end_; it++)                                                                    \
        if (it->key.p)
