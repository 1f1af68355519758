/* What can be had, and for how much.
 *
 *     catalogue's types --price rules--> priced --marks--> marked
 *                                          |                 |
 *                                  launches choose here   the control plane sees this
 *
 * Droughts are in neither: nobody knows of one before a launch was refused, and then it is a mark.
 * Each step builds a whole snapshot, so results are kept by the generation of what they came from, and
 * a step that changes nothing is the step before.
 */
#include "sim/cloud_impl.h"

#include "cloud/kwok.h"

#define FACTOR_ONE 1000000

/* --- matches --- */

static bool suits(struct str wanted, struct str is)
{
    return wanted.len == 0 || str_eq(wanted, is);
}

static bool match_has(const struct offering_match *m, const struct instance_types *types,
                      uint32_t offering)
{
    const struct offering_shape *shape = &types->shapes[types->offering_shape[offering]];
    return suits(m->instance_type, types->names[types->offering_type[offering]]) &&
           suits(m->zone, shape->zone) && suits(m->capacity_type, shape->capacity_type);
}

static bool match_equal(const struct offering_match *a, const struct offering_match *b)
{
    return str_eq(a->instance_type, b->instance_type) && str_eq(a->zone, b->zone) &&
           str_eq(a->capacity_type, b->capacity_type);
}

static struct offering_match match_copy(struct arena *arena, const struct offering_match *from)
{
    return (struct offering_match){ arena_str(arena, from->instance_type),
                                    arena_str(arena, from->zone),
                                    arena_str(arena, from->capacity_type) };
}

/* --- what happens --- */

void sim_cloud_drought(struct sim_cloud *cloud, const struct offering_match *match, bool dry)
{
    struct market *m = &cloud->market;
    for (size_t i = 0; i < m->droughts.count; i++) {
        if (!match_equal(&m->droughts.items[i], match))
            continue;
        if (!dry)
            m->droughts.items[i] = vec_pop(&m->droughts);
        return;
    }
    if (dry)
        vec_push(&m->droughts, match_copy(&m->arena, match));
}

bool market_is_dry(const struct market *m, const struct instance_types *types, uint32_t offering)
{
    struct str zone = types->shapes[types->offering_shape[offering]].zone;
    for (size_t i = 0; i < m->droughts.count; i++)
        if (match_has(&m->droughts.items[i], types, offering))
            return true;
    return str_table_has(&m->zones_out, zone);
}

void sim_cloud_price(struct sim_cloud *cloud, const struct offering_match *match, double factor)
{
    struct market *m = &cloud->market;
    size_t i = 0;

    KV_ASSERT(factor >= 0 && factor <= 1e6);
    while (i < m->prices.count && !match_equal(&m->prices.items[i].match, match))
        i++;
    if (i == m->prices.count)
        vec_push(&m->prices, (struct price_rule){ .match = match_copy(&m->arena, match) });
    m->prices.items[i].factor_ppm = (int64_t)(factor * FACTOR_ONE + 0.5);
    if (m->prices.items[i].factor_ppm == FACTOR_ONE)
        m->prices.items[i] = vec_pop(&m->prices);
    m->price_version++;
    if (!str_eqz(match->capacity_type, CAPACITY_SPOT))
        generation_bump(&m->counters, GENERATION_ON_DEMAND);
    if (suits(match->capacity_type, STR(CAPACITY_SPOT)))
        generation_bump(&m->counters, GENERATION_SPOT);
}

/* --- snapshots --- */

static usd_hour scaled(usd_hour price, int64_t factor_ppm)
{
    wide_int product = ((wide_int)price * factor_ppm + FACTOR_ONE / 2) / FACTOR_ONE;
    return product < USD_HOUR_MAX ? (usd_hour)product : USD_HOUR_MAX - 1;
}

static void edit_price(void *ctx, const struct instance_types *base, uint32_t offering,
                       struct offering_draft *draft)
{
    const struct market *m = ctx;
    for (size_t i = 0; i < m->prices.count; i++)
        if (match_has(&m->prices.items[i].match, base, offering))
            draft->price = scaled(draft->price, m->prices.items[i].factor_ppm);
}

static void forget_marked(struct types_answer *a)
{
    instance_types_unref(take(&a->marked));
}

static void forget_answer(struct types_answer *a)
{
    forget_marked(a);
    instance_types_unref(take(&a->priced));
    instance_types_unref(take(&a->base));
}

static int types_generation(const struct market *m, const struct nodepool *pool,
                            struct generation *out, struct err *err)
{
    if (m->maybe_types)
        return m->maybe_types->get_generation(m->maybe_types->ctx, pool, out, err);
    *out = (struct generation){ 0 };
    return 0;
}

/* The answer with its base; read the generation first, so that it is never newer than the types. */
static int base_answer(struct market *m, const struct nodepool *pool, struct types_answer **out,
                       struct err *err)
{
    struct generation of;
    const struct instance_types *base = NULL;

    if (types_generation(m, pool, &of, err) < 0)
        return -1;
    for (uint32_t i = 0; i < TYPES_ANSWERS_MAX; i++) {
        *out = &m->answers[i];
        if ((*out)->base && generation_equal(&(*out)->of, &of))
            return 0;
    }
    if (!m->maybe_types)
        base = instance_types_ref(kwok_types());
    else if (m->maybe_types->get_instance_types(m->maybe_types->ctx, pool, &base, err) < 0)
        return -1;
    *out = &m->answers[m->answer_next++ % TYPES_ANSWERS_MAX];
    forget_answer(*out);
    (*out)->of = of;
    (*out)->base = base;
    return 0;
}

static int priced_answer(struct market *m, const struct nodepool *pool, struct types_answer **out,
                         struct err *err)
{
    const struct instance_types *priced = NULL;

    if (base_answer(m, pool, out, err) < 0)
        return -1;
    struct types_answer *a = *out;
    if (a->priced && a->price_version == m->price_version)
        return 0;
    if (m->prices.count == 0)
        priced = instance_types_ref(a->base);
    else if (fake_types_edit(a->base, edit_price, m, &priced, err) < 0)
        return -1;
    forget_marked(a);
    instance_types_unref(a->priced);
    a->priced = priced;
    a->price_version = m->price_version;
    return 0;
}

int market_types(struct market *m, const struct nodepool *pool, const struct instance_types **out,
                 struct err *err)
{
    struct types_answer *a;
    if (priced_answer(m, pool, &a, err) < 0)
        return -1;
    *out = a->priced;
    return 0;
}

static uint64_t mark_version(struct market *m)
{
    struct generation own;
    unavailable_settle(m->marks);
    generation_read(&m->counters, &own);
    return own.member[GENERATION_UNAVAILABLE];
}

int market_types_marked(struct market *m, const struct nodepool *pool,
                        const struct instance_types **out, struct err *err)
{
    struct types_answer *a;
    if (priced_answer(m, pool, &a, err) < 0)
        return -1;
    uint64_t version = mark_version(m);
    if (!a->marked || a->mark_version != version) {
        forget_marked(a);
        if (fake_types_marked(a->priced, m->marks, &a->marked, err) < 0)
            return -1;
        a->mark_version = version;
    }
    *out = instance_types_ref(a->marked);
    return 0;
}

/* Marks and prices are theirs and ours, with one member for both: hashed together, so that no change
 * of the one can undo a change of the other. */
int market_generation(struct market *m, const struct nodepool *pool, struct generation *out,
                      struct err *err)
{
    static const enum generation_member shared[] = { GENERATION_UNAVAILABLE, GENERATION_ON_DEMAND,
                                                     GENERATION_SPOT };
    struct generation own;

    if (types_generation(m, pool, out, err) < 0)
        return -1;
    unavailable_settle(m->marks);
    generation_read(&m->counters, &own);
    if (!m->maybe_types)
        out->member[GENERATION_INPUTS] =
            node_class_ref_hash(&pool->spec.template.spec.node_class_ref);
    for (size_t i = 0; i < KV_COUNT_OF(shared); i++) {
        uint64_t *theirs = &out->member[shared[i]];
        *theirs = kv_hash_salted(theirs, sizeof *theirs, kv_mix64(own.member[shared[i]] + 1));
    }
    return 0;
}

/* --- life --- */

void market_init(struct market *m, const struct cloud_provider *maybe_types,
                 const struct clock *clock)
{
    m->maybe_types = maybe_types;
    m->marks = unavailable_new(clock, &m->counters, UNAVAILABLE_TTL_NS);
}

void market_done(struct market *m)
{
    for (uint32_t i = 0; i < TYPES_ANSWERS_MAX; i++)
        forget_answer(&m->answers[i]);
    vec_done(&m->droughts);
    vec_done(&m->prices);
    str_table_done(&m->zones_out);
    unavailable_free(m->marks);
    arena_done(&m->arena);
}
