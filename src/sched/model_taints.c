/* Sets of taints and of tolerations, each kept once whatever its order. There are few of either, so
 * which bears which is worked out for every pair when all are known.
 */
#include "sched/model_inner.h"
#include "sched/model_memo.h"

static uint32_t intern(struct str_table *ids, const struct buf *text, size_t count, bool *added)
{
    uintptr_t found = (uintptr_t)str_table_get(ids, buf_str(text));
    *added = found == 0;
    if (*added)
        str_table_put(ids, buf_str(text), (void *)(uintptr_t)(count + 1));
    return (uint32_t)(*added ? count : found - 1);
}

static int text_order(struct str a, struct str b, int otherwise)
{
    int order = str_cmp(a, b);
    return order ? order : otherwise;
}

/* --- taints --- */

static int taint_order(const void *a, const void *b)
{
    const struct taint *x = a, *y = b;
    return text_order(x->key, y->key,
                      text_order(x->value, y->value, (int)x->effect - (int)y->effect));
}

uint32_t taints_intern(struct compile *c, const struct taint *items, uint32_t count)
{
    AUTO_BUF text = { 0 };
    struct taint *sorted = arena_array(&c->scratch, struct taint, count);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = items[i];
    qsort(sorted, count, sizeof *sorted, taint_order);
    for (uint32_t i = 0; i < count; i++) {
        if (kept && taint_order(&sorted[kept - 1], &sorted[i]) == 0)
            continue;
        sorted[kept++] = sorted[i];
        str_encode(sorted[i].key, &text);
        str_encode(sorted[i].value, &text);
        u32_encode(sorted[i].effect, &text);
    }
    bool added;
    uint32_t id = intern(&c->taint_ids, &text, c->taints.count, &added);
    if (added) {
        struct taint *own = arena_array(c->arena, struct taint, kept);
        for (uint32_t i = 0; i < kept; i++)
            own[i] = sorted[i];
        vec_push(&c->taints, (struct taint_list){ own, kept });
    }
    return id;
}

/* --- tolerations --- */

static int toleration_order(const void *a, const void *b)
{
    const struct toleration *x = a, *y = b;
    int kind = (int)x->op - (int)y->op;
    return text_order(
        x->key, y->key,
        text_order(x->value, y->value, kind ? kind : (int)x->effect - (int)y->effect));
}

uint32_t tolerance_intern(struct compile *c, const struct toleration *items, uint32_t count,
                          bool all_prefer)
{
    AUTO_BUF text = { 0 };
    struct toleration *sorted = arena_array(&c->scratch, struct toleration, count);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        sorted[i] = items[i];
        sorted[i].seconds = (struct maybe_int){ 0 }; /* how long it may stay is not asked here */
        if (sorted[i].op == TOLERATION_UNSET)
            sorted[i].op = TOLERATION_EQUAL;
    }
    qsort(sorted, count, sizeof *sorted, toleration_order);
    u32_encode(all_prefer, &text);
    for (uint32_t i = 0; i < count; i++) {
        if (kept && toleration_order(&sorted[kept - 1], &sorted[i]) == 0)
            continue;
        sorted[kept++] = sorted[i];
        str_encode(sorted[i].key, &text);
        str_encode(sorted[i].value, &text);
        u32_encode(sorted[i].op, &text);
        u32_encode(sorted[i].effect, &text);
    }
    bool added;
    uint32_t id = intern(&c->tolerance_ids, &text, c->tolerances.count, &added);
    if (added) {
        struct toleration *own = arena_array(c->arena, struct toleration, kept);
        for (uint32_t i = 0; i < kept; i++)
            own[i] = sorted[i];
        vec_push(&c->tolerances,
                 (struct tolerance){ .items = own, .count = kept, .all_prefer = all_prefer });
    }
    return id;
}

/* --- the two together --- */

bool taint_tolerated(const struct toleration *items, uint32_t count, const struct taint *taint)
{
    for (uint32_t i = 0; i < count; i++) {
        if (toleration_tolerates(&items[i], taint))
            return true;
    }
    return false;
}

static bool bears(const struct tolerance *tolerance, const struct taint_list *taints)
{
    for (uint32_t i = 0; i < taints->count; i++) {
        const struct taint *taint = &taints->items[i];
        bool harmless = taint->effect == EFFECT_ANY ||
                        (tolerance->all_prefer && taint->effect == EFFECT_PREFER_NO_SCHEDULE);
        if (!harmless && !taint_tolerated(tolerance->items, tolerance->count, taint))
            return false;
    }
    return true;
}

void taints_settle(struct compile *c)
{
    vec_each(&c->tolerances, struct tolerance, tolerance) {
        tolerance->tolerated = bitset_new(c->arena, (uint32_t)c->taints.count);
        for (uint32_t i = 0; i < c->taints.count; i++) {
            if (bears(tolerance, &c->taints.items[i]))
                bitset_set(&tolerance->tolerated, i);
        }
    }
}
