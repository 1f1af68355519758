/* What a node must be after pods have had their say, and which machines are left for it.
 *
 * Terms only narrow: those of a pool and what comes of joining wants to them, one after the other.
 * Each keeps the types whose labels suit (and that run the images of the pods that joined) and the
 * shapes of offerings that do, so that joining asks only about what the new wants say. What can be
 * had in a set of shapes, and for how much, does not depend on anything else; it is worked out once
 * per set (`market`).
 *
 *  1. Of a key that its pool does not define and that is not well known, a node has no label: what
 *     is content with that (NotIn, DoesNotExist) is true and does not get into the set.
 *  2. NotIn says nothing about whether the label is there, so a set in which Exists met NotIn has
 *     lost the first. `types` and `allowed` have not, since they narrow; for the pool's own labels
 *     there is `present`.
 *  3. A node that is yet to be launched has a name that nobody knows: the host name is never in a set.
 */
#include "sched/model_inner.h"
#include "sched/model_memo.h"

/* --- markets --- */

/* A dearer one never replaces a cheaper; of equal prices the preferred capacity type, then the
 * first. */
static bool offering_beats(const struct instance_types *s, uint32_t o, uint32_t best)
{
    if (best == NONE)
        return true;
    usd_hour price = instance_types_price(s, o), best_price = instance_types_price(s, best);
    return price < best_price ||
           (price == best_price && s->shapes[s->offering_shape[o]].capacity_type_ix <
                                       s->shapes[s->offering_shape[best]].capacity_type_ix);
}

static struct market *market_new(struct arena *arena, const struct instance_types *s,
                                 const struct bitset *shapes)
{
    struct market *k = arena_new(arena, struct market);
    usd_hour *price = arena_array(arena, usd_hour, s->row_count);
    uint32_t *offering = arena_array(arena, uint32_t, s->row_count);
    k->machines = bitset_new(arena, s->row_count);
    for (uint32_t row = 0; row < s->row_count; row++) {
        price[row] = USD_HOUR_MAX;
        offering[row] = NONE;
    }
    bitset_each(&s->available, o) {
        uint32_t row = s->offering_row[o];
        if (!bitset_test(shapes, s->offering_shape[o]) || !offering_beats(s, o, offering[row]))
            continue;
        offering[row] = o;
        price[row] = instance_types_price(s, o);
        bitset_set(&k->machines, row);
    }
    k->price = price;
    k->offering = offering;
    return k;
}

static const struct market *market_of(struct model *m, uint32_t pool, const struct bitset *shapes)
{
    struct model_memo *memo = m->memo;
    buf_clear(&memo->text);
    u32_encode(memo->pools[pool].stall, &memo->text);
    words_encode(shapes, &memo->text);
    uintptr_t found = (uintptr_t)str_table_get(&memo->market_ids, buf_str(&memo->text));
    if (!found) {
        vec_push(&memo->markets, market_new(m->arena, m->pools[pool].types, shapes));
        found = memo->markets.count;
        str_table_put(&memo->market_ids, buf_str(&memo->text), (void *)found);
    }
    return memo->markets.items[found - 1];
}

/* --- one set of terms --- */

/* A type's machines are its own row and those of its overrides. */
static void types_spread(const struct instance_types *s, const struct bitset *types,
                         struct bitset *machines)
{
    bitset_zero(machines);
    memcpy(machines->words, types->words, BITSET_WORDS(s->type_count) * sizeof *types->words);
    for (uint32_t row = s->type_count; row < s->row_count; row++) {
        if (bitset_test(types, s->row_type[row]))
            bitset_set(machines, row);
    }
}

static void terms_refresh(struct model *m, struct terms_entry *e)
{
    struct terms *t = &e->terms;
    const struct pool_memo *pool = &m->memo->pools[t->pool];
    bitset_andnot_into(&t->shapes, &e->allowed, &pool->used_up);
    /* A launch on a reservation is of one type, and would break what strict minValues ask for. */
    if (t->has_min_values && m->options.min_values == MIN_VALUES_STRICT)
        bitset_each(&t->shapes, i)
            if (pool->reservation[i] != NONE)
                bitset_clear(&t->shapes, i);
    const struct market *market = market_of(m, t->pool, &t->shapes);
    types_spread(m->pools[t->pool].types, &e->types, &t->machines);
    bitset_and(&t->machines, &market->machines);
    t->price = market->price;
    t->offering = market->offering;
    t->epoch = m->exhaust_epoch;
    e->none_left = !bitset_any(&t->machines);
}

static struct terms_entry *terms_current(struct model *m, uint32_t terms)
{
    struct terms_entry *e = m->memo->terms.items[terms];
    if (e->terms.epoch != m->exhaust_epoch)
        terms_refresh(m, e);
    return e;
}

const struct terms *terms_at(struct model *m, uint32_t terms)
{
    KV_ASSERT(terms < m->memo->terms.count);
    return &terms_current(m, terms)->terms;
}

/* A draft is what identifies terms, in scratch memory. Texts in it live as long as the model. */
struct terms_draft {
    uint32_t pool;
    struct requirements set;
    struct bitset types, allowed;
    struct str_list present;
};

static struct requirements set_kept(struct arena *arena, const struct requirements *set)
{
    struct requirement *items = arena_array(arena, struct requirement, set->count);
    for (uint32_t i = 0; i < set->count; i++) {
        struct str_list values = set->items[i].values;
        struct str *copy = arena_array(arena, struct str, values.count);
        for (uint32_t j = 0; j < values.count; j++)
            copy[j] = values.items[j];
        items[i] = set->items[i];
        items[i].values.items = copy;
    }
    return (struct requirements){ items, set->count };
}

static struct bitset bitset_kept(struct arena *arena, const struct bitset *bs)
{
    struct bitset kept = bitset_new(arena, bs->bit_count);
    bitset_copy(&kept, bs);
    return kept;
}

static struct terms_entry *entry_new(struct model *m, const struct terms_draft *d)
{
    struct arena *arena = m->arena;
    struct terms_entry *e = arena_new(arena, struct terms_entry);
    e->terms.pool = d->pool;
    e->terms.set = set_kept(arena, &d->set);
    e->terms.shapes = bitset_new(arena, d->allowed.bit_count);
    e->terms.machines = bitset_new(arena, m->pools[d->pool].types->row_count);
    for (uint32_t i = 0; i < d->set.count; i++)
        e->terms.has_min_values |= d->set.items[i].min_values.set;
    e->types = bitset_kept(arena, &d->types);
    e->allowed = bitset_kept(arena, &d->allowed);
    struct str *present = arena_array(arena, struct str, d->present.count);
    for (uint32_t i = 0; i < d->present.count; i++)
        present[i] = d->present.items[i];
    e->present = (struct str_list){ present, d->present.count };
    return e;
}

static uint32_t draft_intern(struct model *m, const struct terms_draft *d)
{
    struct model_memo *memo = m->memo;
    buf_clear(&memo->text);
    u32_encode(d->pool, &memo->text);
    words_encode(&d->types, &memo->text);
    words_encode(&d->allowed, &memo->text);
    requirements_encode(&d->set, &memo->text);
    for (uint32_t i = 0; i < d->present.count; i++) { /* no key has a NUL in it */
        buf_add(&memo->text, d->present.items[i]);
        buf_addc(&memo->text, '\0');
    }
    uintptr_t found = (uintptr_t)str_table_get(&memo->terms_ids, buf_str(&memo->text));
    if (found)
        return (uint32_t)(found - 1);

    struct terms_entry *e = entry_new(m, d);
    vec_push(&memo->terms, e);
    str_table_put(&memo->terms_ids, buf_str(&memo->text), (void *)(uintptr_t)memo->terms.count);
    terms_refresh(m, e);
    return (uint32_t)memo->terms.count - 1;
}

/* A key that only one side speaks of says nothing: a pool's own labels are not the types'. */
static void draft_narrow(const struct instance_types *s, const struct requirements *set,
                         struct terms_draft *d)
{
    for (uint32_t i = 0; i < set->count; i++)
        instance_types_narrow(s, &set->items[i], true, &d->types);
    bitset_each(&d->allowed, i) {
        if (!requirements_intersects(set, &s->shapes[i].requirements, NULL))
            bitset_clear(&d->allowed, i);
    }
}

uint32_t terms_intern(struct model *m, uint32_t pool, const struct requirements *set)
{
    const struct instance_types *s = m->pools[pool].types;
    struct arena *scratch = &m->memo->scratch;
    arena_reset(scratch);
    struct terms_draft d = { .pool = pool,
                             .set = *set,
                             .types = bitset_new(scratch, s->type_count),
                             .allowed = bitset_new(scratch, s->shape_count) };
    bitset_fill(&d.types);
    bitset_fill(&d.allowed);
    draft_narrow(s, set, &d);
    return draft_intern(m, &d);
}

/* --- joining --- */

static bool is_present(const struct terms_entry *e, struct str key)
{
    return str_sorted_has(e->present.items, e->present.count, key);
}

/* Fills in d->present; false if a label that must be there must also not be. */
static bool draft_present(const struct terms_entry *from, const struct requirements *wants,
                          struct arena *scratch, struct terms_draft *d)
{
    struct str *keys = arena_array(scratch, struct str, d->set.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < d->set.count; i++) {
        const struct requirement *now = &d->set.items[i];
        if (demands_label(now)) /* says so itself */
            continue;
        const struct requirement *old = requirements_find(&from->terms.set, now->key);
        const struct requirement *want = requirements_find(wants, now->key);
        bool must = is_present(from, now->key) || (old && demands_label(old)) ||
                    (want && demands_label(want));
        if (must && !now->complement)
            return false;
        if (must)
            keys[count++] = now->key;
    }
    d->present = (struct str_list){ keys, count };
    return true;
}

static uint32_t join_anew(struct model *m, uint32_t terms, uint32_t wants)
{
    const struct terms_entry *from = m->memo->terms.items[terms];
    const struct wants *joining = wants_at(m, wants);
    const struct pool *pool = &m->pools[from->terms.pool];
    struct arena *scratch = &m->memo->scratch;
    struct requirements more;

    arena_reset(scratch);
    if (!wants_reduce(&from->terms.set, &joining->set, pool->well_known, scratch, &more) ||
        !requirements_compatible(&from->terms.set, &more, pool->well_known, NULL))
        return NONE;

    struct terms_draft d = { .pool = from->terms.pool,
                             .set = requirements_merge(scratch, &from->terms.set, &more),
                             .types = bitset_kept(scratch, &from->types),
                             .allowed = bitset_kept(scratch, &from->allowed) };
    struct requirement *changed = arena_array(scratch, struct requirement, more.count);
    if (!draft_present(from, &more, scratch, &d))
        return NONE;
    draft_narrow(pool->types, &more, &d);
    for (uint32_t i = 0; i < more.count; i++)
        changed[i] = *requirements_find(&d.set, more.items[i].key);
    draft_narrow(pool->types, &(struct requirements){ changed, more.count }, &d);
    if (joining->fit != NONE)
        bitset_and(&d.types, &m->fits[joining->fit].types[from->terms.pool]);
    if (!bitset_any(&d.types) || !bitset_any(&d.allowed))
        return NONE;
    return draft_intern(m, &d);
}

uint32_t terms_join(struct model *m, uint32_t terms, uint32_t wants)
{
    uint64_t pair = pair_key(terms, wants);
    uint32_t joined;
    if (KV_UNLIKELY(!pair_get(&m->memo->joins, pair, &joined))) {
        joined = join_anew(m, terms, wants);
        pair_put(&m->memo->joins, pair, joined);
    }
    return joined == NONE || terms_current(m, joined)->none_left ? NONE : joined;
}

/* --- minValues --- */

struct priced_type {
    usd_hour price;
    uint32_t type;
};

static int priced_type_order(const void *a, const void *b)
{
    const struct priced_type *x = a, *y = b;
    if (x->price != y->price)
        return x->price < y->price ? -1 : 1;
    return x->type < y->type ? -1 : x->type > y->type;
}

/* The types of the machines, each once, by the cheapest of its machines. */
static uint32_t types_by_price(const struct terms *t, const struct instance_types *s,
                               const struct bitset *machines, struct arena *scratch,
                               struct priced_type **out)
{
    struct priced_type *types = arena_array(scratch, struct priced_type, s->type_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->type_count; i++)
        types[i] = (struct priced_type){ USD_HOUR_MAX, NONE };
    bitset_each(machines, row) {
        struct priced_type *type = &types[s->row_type[row]];
        type->type = s->row_type[row];
        type->price = t->price[row] < type->price ? t->price[row] : type->price;
    }
    for (uint32_t i = 0; i < s->type_count; i++) {
        if (types[i].type != NONE)
            types[count++] = types[i];
    }
    qsort(types, count, sizeof *types, priced_type_order);
    *out = types;
    return count;
}

bool terms_min_values(struct model *m, uint32_t terms, const struct bitset *machines,
                      struct arena *scratch, struct min_values_result *maybe_out)
{
    const struct terms *t = terms_at(m, terms);
    const struct instance_types *s = m->pools[t->pool].types;
    struct requirement *asked = arena_array(scratch, struct requirement, t->set.count);
    uint32_t asked_count = 0;
    for (uint32_t i = 0; i < t->set.count; i++) {
        if (t->set.items[i].min_values.set)
            asked[asked_count++] = t->set.items[i];
    }
    struct requirements keys = { asked, asked_count };

    struct priced_type *types;
    uint32_t count = types_by_price(t, s, machines, scratch, &types);
    struct requirements *says = arena_array(scratch, struct requirements, count);
    struct requirement *own = arena_array(scratch, struct requirement, (size_t)count * asked_count);
    for (uint32_t i = 0; i < count; i++) {
        says[i].items = own;
        for (uint32_t k = 0; k < asked_count; k++) {
            const struct requirement *r = instance_type_requirement(s, types[i].type, asked[k].key);
            if (r) {
                *own++ = *r;
                says[i].count++;
            }
        }
    }
    struct min_values_result result = requirements_min_values(scratch, &keys, says, count);
    if (maybe_out)
        *maybe_out = result;
    return result.met;
}

/* --- reservations --- */

static uint32_t reservation_intern(struct model_memo *memo, struct str_table *ids, struct str id)
{
    uintptr_t found = (uintptr_t)str_table_get(ids, id);
    if (!found) {
        vec_push(&memo->reservations, (struct reserved){ .id = id, .capacity = INT64_MAX });
        found = memo->reservations.count;
        str_table_put(ids, id, (void *)found);
    }
    return (uint32_t)(found - 1);
}

static void pool_reservations(struct model *m, uint32_t pool, struct str_table *ids)
{
    const struct instance_types *s = m->pools[pool].types;
    struct model_memo *memo = m->memo;
    uint32_t *of_shape = arena_array(m->arena, uint32_t, s->shape_count);
    for (uint32_t i = 0; i < s->shape_count; i++) {
        struct str id = s->shapes[i].reservation_id;
        of_shape[i] = id.len ? reservation_intern(memo, ids, id) : NONE;
    }
    /* What several offerings say of one reservation can differ: the least is safe. */
    bitset_each(&s->available, o) {
        uint32_t r = of_shape[s->offering_shape[o]];
        if (r != NONE && s->reservation_capacity[o] < memo->reservations.items[r].capacity)
            memo->reservations.items[r].capacity = s->reservation_capacity[o];
    }
    memo->pools[pool].reservation = of_shape;
    memo->pools[pool].used_up = bitset_new(m->arena, s->shape_count);
}

static uint32_t stall_of(const struct model *m, uint32_t pool)
{
    uint32_t first = 0;
    while (m->pools[first].types != m->pools[pool].types)
        first++;
    return first;
}

void reservations_collect(struct model *m)
{
    struct str_table ids = { 0 };
    m->memo->pools = arena_array(m->arena, struct pool_memo, m->pool_count);
    for (uint32_t p = 0; p < m->pool_count; p++) {
        m->memo->pools[p].stall = stall_of(m, p);
        pool_reservations(m, p, &ids);
    }
    str_table_done(&ids);
    reservations_reset(m);
}

/* Every shape of every pool anew; terms follow when they are next looked at. */
static void used_up_mark(struct model *m)
{
    struct model_memo *memo = m->memo;
    for (uint32_t p = 0; p < m->pool_count; p++) {
        struct pool_memo *pool = &memo->pools[p];
        bitset_zero(&pool->used_up);
        for (uint32_t i = 0; i < pool->used_up.bit_count; i++) {
            uint32_t r = pool->reservation[i];
            if (r != NONE && memo->reservations.items[r].left <= 0)
                bitset_set(&pool->used_up, i);
        }
    }
    m->exhaust_epoch++;
}

static struct reserved *reservation_of(const struct model *m, uint32_t pool, uint32_t offering)
{
    uint32_t shape = m->pools[pool].types->offering_shape[offering];
    uint32_t r = m->memo->pools[pool].reservation[shape];
    return r == NONE ? NULL : &m->memo->reservations.items[r];
}

int64_t reservation_left(const struct model *m, uint32_t pool, uint32_t offering)
{
    const struct reserved *r = reservation_of(m, pool, offering);
    return r ? r->left : -1;
}

void reservation_take(struct model *m, uint32_t pool, uint32_t offering)
{
    struct reserved *r = reservation_of(m, pool, offering);
    if (!r)
        return;
    KV_ASSERT(r->left > 0);
    if (--r->left == 0)
        used_up_mark(m);
}

void reservation_give(struct model *m, uint32_t pool, uint32_t offering)
{
    struct reserved *r = reservation_of(m, pool, offering);
    if (!r)
        return;
    KV_ASSERT(r->left < r->capacity);
    if (r->left++ == 0)
        used_up_mark(m);
}

void reservations_reset(struct model *m)
{
    bool returned = m->exhaust_epoch == 0;
    vec_each(&m->memo->reservations, struct reserved, r) {
        returned |= r->left == 0 && r->capacity > 0;
        r->left = r->capacity;
    }
    if (returned)
        used_up_mark(m);
}

/* --- life --- */

void terms_init(struct model *m)
{
    m->memo = kv_calloc(1, sizeof *m->memo);
    pair_init(&m->memo->joins);
    wants_init(m);
}

void terms_done(struct model *m)
{
    struct model_memo *memo = m->memo;
    wants_done(m);
    vec_done(&memo->terms);
    str_table_done(&memo->terms_ids);
    free(memo->joins.slots);
    vec_done(&memo->markets);
    str_table_done(&memo->market_ids);
    vec_done(&memo->reservations);
    buf_done(&memo->text);
    arena_done(&memo->scratch);
    free(memo);
    m->memo = NULL;
}
