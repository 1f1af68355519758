/* A requirement is looked for by its key's id and the bytes of its values, so that one which is known
 * costs one look-up however many values it has; only the texts of a new one get ids. A shape is
 * looked for by the ids of its requirements.
 */
#include "cloud/instance_types_pool.h"

/* --- the index --- */

#define CELLS_MIN 256u

uint32_t pool_index_next(const struct pool_index *ix, uint64_t hash, uint32_t *at)
{
    if (!ix->cell_count)
        return POOL_NONE;
    uint32_t mask = ix->cell_count - 1;
    for (;;) {
        uint32_t cell = ix->cells[((uint32_t)hash + (*at)++) & mask];
        if (cell == 0)
            return POOL_NONE;
        if (ix->hashes.items[cell - 1] == hash)
            return cell - 1;
    }
}

static void put(struct pool_index *ix, uint32_t id)
{
    uint32_t mask = ix->cell_count - 1, at = (uint32_t)ix->hashes.items[id] & mask;
    while (ix->cells[at])
        at = (at + 1) & mask;
    ix->cells[at] = id + 1;
}

uint32_t pool_index_add(struct pool_index *ix, uint64_t hash)
{
    uint32_t id = (uint32_t)ix->hashes.count;
    vec_push(&ix->hashes, hash);
    if ((id + 1) * UINT64_C(2) <= ix->cell_count) {
        put(ix, id);
        return id;
    }
    free(ix->cells);
    ix->cell_count = ix->cell_count ? ix->cell_count * 2 : CELLS_MIN;
    ix->cells = kv_calloc(ix->cell_count, sizeof *ix->cells);
    for (uint32_t i = 0; i <= id; i++)
        put(ix, i);
    return id;
}

void pool_index_done(struct pool_index *ix)
{
    free(ix->cells);
    vec_done(&ix->hashes);
}

/* --- adding --- */

uint32_t pool_text(struct pool *p, struct str text)
{
    if (!text.p)
        text = STR("");
    uint64_t hash = kv_hash(text.p, text.len);
    for (uint32_t at = 0, id; (id = pool_index_next(&p->text_index, hash, &at)) != POOL_NONE;) {
        if (str_eq(p->texts.items[id].text, text))
            return id;
    }
    vec_push(&p->texts, (struct pool_text){ .text = text });
    return pool_index_add(&p->text_index, hash);
}

static uint64_t hash_maybe(uint64_t hash, struct maybe_int n)
{
    return n.set ? kv_mix64(hash ^ (uint64_t)n.value) + 1 : kv_mix64(hash);
}

static bool maybe_equal(struct maybe_int a, struct maybe_int b)
{
    return a.set == b.set && (!a.set || a.value == b.value);
}

/* Drafts often share their texts: a table's labels, the zones of a region. */
static bool same_text(struct str a, struct str b)
{
    return (a.p == b.p && a.len == b.len) || str_eq(a, b);
}

/* Of two requirements on one key. */
static bool same_but_key(const struct requirement *a, const struct requirement *b)
{
    bool same = a->complement == b->complement && a->values.count == b->values.count &&
                maybe_equal(a->gte, b->gte) && maybe_equal(a->lte, b->lte) &&
                maybe_equal(a->min_values, b->min_values);
    if (a->values.items == b->values.items)
        return same;
    for (uint32_t i = 0; same && i < a->values.count; i++)
        same = same_text(a->values.items[i], b->values.items[i]);
    return same;
}

static uint64_t requirement_hash(uint32_t key, const struct requirement *r)
{
    uint64_t hash = key * UINT64_C(2) + r->complement;
    for (uint32_t i = 0; i < r->values.count; i++)
        hash = kv_hash_salted(r->values.items[i].p, r->values.items[i].len, hash);
    if (r->gte.set || r->lte.set || r->min_values.set)
        hash = hash_maybe(hash_maybe(hash_maybe(hash, r->gte), r->lte), r->min_values);
    return kv_mix64(hash);
}

uint32_t pool_requirement(struct pool *p, const struct requirement *r, uint32_t hint)
{
    const struct requirement *guess = hint == POOL_NONE ? NULL : p->requirements.items[hint].source;
    bool same_key = guess && same_text(guess->key, r->key);
    if (same_key && same_but_key(guess, r))
        return hint;

    uint32_t key = same_key ? p->requirements.items[hint].key : pool_text(p, r->key);
    uint64_t hash = requirement_hash(key, r);
    struct pool_index *ix = &p->requirement_index;
    for (uint32_t at = 0, id; (id = pool_index_next(ix, hash, &at)) != POOL_NONE;) {
        const struct pool_requirement *seen = &p->requirements.items[id];
        if (seen->key == key && same_but_key(seen->source, r))
            return id;
    }
    vec_push(&p->requirements, (struct pool_requirement){
                                   .source = r, .key = key, .values = (uint32_t)p->values.count });
    for (uint32_t i = 0; i < r->values.count; i++)
        vec_push(&p->values, pool_text(p, r->values.items[i]));
    return pool_index_add(ix, hash);
}

bool pool_is_shape(const struct pool *p, uint32_t hint, const struct requirements *set)
{
    if (hint == POOL_NONE)
        return false;
    const struct requirements *guess = p->shapes.items[hint].source;
    bool same = guess->count == set->count;
    for (uint32_t i = 0; same && i < set->count && guess->items != set->items; i++)
        same = same_text(guess->items[i].key, set->items[i].key) &&
               same_but_key(&guess->items[i], &set->items[i]);
    return same;
}

uint32_t pool_shape(struct pool *p, const struct requirements *set, const uint32_t *ids,
                    bool *added)
{
    *added = false;
    size_t bytes = set->count * sizeof *ids;
    uint64_t hash = kv_hash(ids, bytes);
    struct pool_index *ix = &p->shape_index;
    for (uint32_t at = 0, id; (id = pool_index_next(ix, hash, &at)) != POOL_NONE;) {
        const struct pool_shape *seen = &p->shapes.items[id];
        if (seen->count == set->count &&
            memcmp(&p->shape_requirements.items[seen->start], ids, bytes) == 0)
            return id;
    }
    *added = true;
    vec_push(&p->shapes, (struct pool_shape){ .source = set,
                                              .start = (uint32_t)p->shape_requirements.count,
                                              .count = set->count });
    for (uint32_t i = 0; i < set->count; i++)
        vec_push(&p->shape_requirements, ids[i]);
    return pool_index_add(ix, hash);
}

/* --- ranking --- */

static int compare_ids(uint32_t a, uint32_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_maybe(struct maybe_int a, struct maybe_int b)
{
    if (!a.set || !b.set)
        return (int)a.set - (int)b.set;
    return a.value < b.value ? -1 : a.value > b.value;
}

static int by_text(const void *a, const void *b, void *ctx)
{
    const struct pool *p = ctx;
    return str_cmp(p->texts.items[*(const uint32_t *)a].text,
                   p->texts.items[*(const uint32_t *)b].text);
}

static uint32_t text_rank(const struct pool *p, uint32_t text)
{
    return p->texts.items[text].rank;
}

static int by_requirement(const void *a, const void *b, void *ctx)
{
    const struct pool *p = ctx;
    const struct pool_requirement *x = &p->requirements.items[*(const uint32_t *)a];
    const struct pool_requirement *y = &p->requirements.items[*(const uint32_t *)b];
    int order = compare_ids(text_rank(p, x->key), text_rank(p, y->key));
    uint32_t x_count = x->source->values.count, y_count = y->source->values.count;
    for (uint32_t i = 0; order == 0 && i < x_count && i < y_count; i++)
        order = compare_ids(text_rank(p, p->values.items[x->values + i]),
                            text_rank(p, p->values.items[y->values + i]));
    if (order == 0)
        order = compare_ids(x_count, y_count);
    if (order == 0)
        order = (int)x->source->complement - (int)y->source->complement;
    if (order == 0)
        order = compare_maybe(x->source->gte, y->source->gte);
    if (order == 0)
        order = compare_maybe(x->source->lte, y->source->lte);
    return order ? order : compare_maybe(x->source->min_values, y->source->min_values);
}

static int by_shape(const void *a, const void *b, void *ctx)
{
    const struct pool *p = ctx;
    const struct pool_shape *x = &p->shapes.items[*(const uint32_t *)a];
    const struct pool_shape *y = &p->shapes.items[*(const uint32_t *)b];
    int order = compare_ids(text_rank(p, x->zone), text_rank(p, y->zone));
    if (order == 0)
        order = compare_ids(text_rank(p, x->capacity_type), text_rank(p, y->capacity_type));
    for (uint32_t i = 0; order == 0 && i < x->count && i < y->count; i++) {
        uint32_t x_id = p->shape_requirements.items[x->start + i];
        uint32_t y_id = p->shape_requirements.items[y->start + i];
        order = compare_ids(p->requirements.items[x_id].rank, p->requirements.items[y_id].rank);
    }
    return order ? order : compare_ids(x->count, y->count);
}

static uint32_t *sorted_ids(struct pool *p, size_t count,
                            int (*compare)(const void *, const void *, void *))
{
    uint32_t *ids = kv_calloc(count + 1, sizeof *ids);
    for (uint32_t i = 0; i < count; i++)
        ids[i] = i;
    qsort_r(ids, count, sizeof *ids, compare, p);
    return ids;
}

void pool_rank(struct pool *p)
{
    p->text_order = sorted_ids(p, p->texts.count, by_text);
    for (uint32_t i = 0; i < p->texts.count; i++)
        p->texts.items[p->text_order[i]].rank = i;
    p->requirement_order = sorted_ids(p, p->requirements.count, by_requirement);
    for (uint32_t i = 0; i < p->requirements.count; i++)
        p->requirements.items[p->requirement_order[i]].rank = i;
    p->shape_order = sorted_ids(p, p->shapes.count, by_shape);
    for (uint32_t i = 0; i < p->shapes.count; i++)
        p->shapes.items[p->shape_order[i]].rank = i;
}

void pool_done(struct pool *p)
{
    pool_index_done(&p->text_index);
    pool_index_done(&p->requirement_index);
    pool_index_done(&p->shape_index);
    vec_done(&p->texts);
    vec_done(&p->requirements);
    vec_done(&p->shapes);
    vec_done(&p->values);
    vec_done(&p->shape_requirements);
    free(p->text_order);
    free(p->requirement_order);
    free(p->shape_order);
}
