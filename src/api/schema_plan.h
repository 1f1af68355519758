/* api/schema_plan.h - what is worth computing once per table: a hash of its names, and the list of its
 * fields that point somewhere. For the files that walk tables only.
 *
 * Decoding looks up every key of every object. Scanning the table from where the last key was found
 * is cheap when nothing is left out, but most fields of a pod are: the hash has no loop to guess.
 */
#pragma once

#include "api/bytes.h"
#include "api/schema.h"

#define PLAN_SLOTS 256

struct schema_plan {
    uint8_t slots[PLAN_SLOTS]; /* 1 + index of a field, where its name hashes to or next; 0: none */
    uint32_t factor;           /* of the hash: chosen so that names do not collide */
    uint32_t pointing_count;
    const struct field *pointing[]; /* kept fields of a pointing type */
};

const struct schema_plan *schema_plan_make(const struct schema *schema);

static inline const struct schema_plan *schema_plan(const struct schema *schema)
{
    const struct schema_plan *plan =
        atomic_load_explicit(&schema->slot->plan, memory_order_acquire);
    return KV_LIKELY(plan) ? plan : schema_plan_make(schema);
}

/* Length and three characters tell nearly all names of a table apart. */
static inline uint32_t plan_hash(uint32_t factor, const char *p, size_t len)
{
    uint32_t x = (uint32_t)len | (uint32_t)(unsigned char)p[0] << 8 |
                 (uint32_t)(unsigned char)p[len / 2] << 16 |
                 (uint32_t)(unsigned char)p[len - 1] << 24;
    return x * factor >> 24;
}

/* The field that a JSON key names, or NULL. */
static inline const struct field *field_find(const struct schema *schema,
                                             const struct schema_plan *plan, struct str key)
{
    if (key.len == 0)
        return NULL;
    uint32_t slot = plan_hash(plan->factor, key.p, key.len);
    for (; plan->slots[slot]; slot = (slot + 1) % PLAN_SLOTS) {
        const struct field *f = &schema->fields[plan->slots[slot] - 1];
        if (f->name_len == key.len && bytes_equal(f->name, key.p, key.len))
            return f;
    }
    return NULL;
}
