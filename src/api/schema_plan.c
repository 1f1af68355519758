/* Factors of a fixed sequence are tried until no two names of the table collide; names that do with
 * every factor take the next free slot. Tables are fixed, so plans are too. */
#include "api/schema_plan.h"

#define TRIES_MAX 300 /* with 45 names about one factor in 60 fits */

static uint32_t plan_fill(struct schema_plan *plan, const struct schema *schema)
{
    uint32_t collisions = 0;
    memset(plan->slots, 0, sizeof plan->slots);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        if ((f->flags & FIELD_DERIVED) || f->name_len == 0)
            continue;
        uint32_t slot = plan_hash(plan->factor, f->name, f->name_len);
        for (; plan->slots[slot]; slot = (slot + 1) % PLAN_SLOTS)
            collisions++;
        plan->slots[slot] = (uint8_t)(i + 1);
    }
    return collisions;
}

static void plan_names(struct schema_plan *plan, const struct schema *schema)
{
    uint32_t best = 0, best_collisions = UINT32_MAX;
    for (uint32_t i = 0; i < TRIES_MAX && best_collisions > 0; i++) {
        plan->factor = (uint32_t)kv_mix64(i + 1) | 1;
        uint32_t collisions = plan_fill(plan, schema);
        if (collisions < best_collisions) {
            best_collisions = collisions;
            best = plan->factor;
        }
    }
    plan->factor = best;
    plan_fill(plan, schema);
}

const struct schema_plan *schema_plan_make(const struct schema *schema)
{
    KV_ASSERT(schema->field_count < PLAN_SLOTS / 2); /* so that a search meets an empty slot soon */
    struct schema_plan *plan =
        kv_calloc(1, sizeof *plan + schema->field_count * sizeof plan->pointing[0]);
    plan_names(plan, schema);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        if (!f->unkept && f->type >= FIELD_FIRST_POINTING)
            plan->pointing[plan->pointing_count++] = f;
    }
    /* Another thread may have been faster: then its plan is the one. */
    const struct schema_plan *first = NULL;
    if (atomic_compare_exchange_strong_explicit(&schema->slot->plan, &first, plan,
                                                memory_order_acq_rel, memory_order_acquire))
        return plan;
    free(plan);
    return first;
}
