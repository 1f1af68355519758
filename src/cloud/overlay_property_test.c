/* Random overlays, pools and snapshots: the engine says what a slow and obvious one says, which
 * goes type by type, offering by offering, overlay by overlay, and what it says does not depend on
 * the order in which things are given.
 */
#include "base/rng.h"
#include "cloud/overlay_preview.h"
#include "cloud/overlay_testing.h"

#include <inttypes.h>

#define TYPES_MAX 7
#define POOLS_MAX 4
#define OVERLAYS_MAX 9

static const char *const values[] = { "a", "b", "c", "1", "2", "3" };
static const char *const resources[] = { "x", "w", "z" };

/* Keys: of types, of templates, of both, of offerings, of nobody. */
static const char *const keys[] = {
    "size", "tier", "team", LABEL_ZONE, LABEL_CAPACITY_TYPE, "rack", LABEL_NODEPOOL, "nobody"
};

static const char *any(struct rng *rng, const char *const *from, size_t count)
{
    return from[rng_below(rng, count)];
}
#define ANY(rng, from) any((rng), (from), KV_COUNT_OF(from))

/* --- a random world --- */

struct plan { /* what an overlay says, as numbers: the slow engine reads no text */
    struct requirements requirements;
    bool priced, adjusted, percent, negative;
    int64_t amount;     /* in 10^-13 dollars, or in hundredths of a percent */
    int64_t amounts[3]; /* per resource, in units; -1: none */
};

struct world {
    struct lab lab;
    struct overlay_pool pools[POOLS_MAX];
    struct plan plans[OVERLAYS_MAX];
    uint32_t pool_count, overlay_count;
};

static const struct instance_types *random_types(struct world *w, struct rng *rng)
{
    uint32_t count = (uint32_t)rng_below(rng, TYPES_MAX + 1);
    for (uint32_t t = 0; t < count; t++) {
        AUTO_BUF labels = { 0 }, offerings = { 0 };
        char name[16];
        snprintf(name, sizeof name, "t%u", t);
        static const char *const said[] = { "size=1", "size=2,3", "size=*", "size=!",   "size=-2",
                                            "tier=a", "tier=a,b", "tier=!", "rack=1,2", "" };
        for (int i = 0; i < 3; i++)
            buf_addf(&labels, "%s ", ANY(rng, said));
        static const char *const places[] = { "a/spot", "a/on-demand", "b/spot", "c/on-demand" };
        for (size_t i = 0; i < KV_COUNT_OF(places); i++) {
            if (rng_below(rng, 4) == 0)
                continue;
            buf_addf(&offerings, "%s=%u.%03u%s%s ", places[i], (unsigned)rng_below(rng, 5),
                     (unsigned)rng_below(rng, 1000), rng_below(rng, 3) ? "" : "!",
                     rng_below(rng, 5) ? "" : ",rack=1");
        }
        lab_type(&w->lab, name, str_trim(buf_str(&labels)).len ? labels.p : "",
                 offerings.len ? offerings.p : "");
    }
    return lab_snapshot(&w->lab);
}

static void random_pools(struct world *w, struct rng *rng)
{
    w->pool_count = 1 + (uint32_t)rng_below(rng, POOLS_MAX);
    for (uint32_t i = 0; i < w->pool_count; i++) {
        static const char *const labels[] = { "",         "team=a",   "team=b",
                                              "tier=a",   "size=2",   "size=3 tier=b",
                                              "team=zzz", "team=yyy", "karpenter.sh/nodepool=a" };
        bool shared = i > 0 && rng_below(rng, 2);
        w->pools[i] = lab_pool(&w->lab, values[i], ANY(rng, labels),
                               shared ? w->pools[0].types : random_types(w, rng));
    }
}

/* One requirement as YAML text and as it is compiled. */
static bool random_requirement(struct world *w, struct rng *rng, struct plan *plan, bool first,
                               struct buf *spec)
{
    static const char *const ops[] = { "In", "NotIn", "Exists", "DoesNotExist",
                                       "Gt", "Lt",    "Gte",    "Lte" };
    uint32_t op = (uint32_t)rng_below(rng, 8);
    struct str picked[2];
    struct expression e = { .key = str_of(ANY(rng, keys)), .op = (uint8_t)(OP_IN + op) };
    bool number = op >= 4;
    uint32_t count = number ? 1 : op < 2 ? 1 + (uint32_t)rng_below(rng, 2) : 0;
    for (uint32_t i = 0; i < count; i++)
        picked[i] = str_of(number ? values[3 + rng_below(rng, 3)] : ANY(rng, values));
    if (str_eqz(e.key, LABEL_CAPACITY_TYPE) && op < 2)
        picked[0] = str_of(rng_below(rng, 2) ? "spot" : "on-demand");
    e.values = (struct str_list){ picked, count };
    if (requirements_find(&plan->requirements, e.key))
        return false;

    struct requirement r;
    struct err err = { 0 };
    EXPECT_OK(requirement_from_expression(&w->lab.arena, &e, &r, &err), err);
    plan->requirements = requirements_add(&w->lab.arena, &plan->requirements, &r);
    buf_addf(spec, "%s{key: %.*s, operator: %s, values: [", first ? "" : ", ", STR_ARG(e.key),
             ops[op]);
    for (uint32_t i = 0; i < count; i++)
        buf_addf(spec, "%s'%.*s'", i ? ", " : "", STR_ARG(picked[i]));
    buf_addz(spec, "]}");
    return true;
}

static void random_price(struct rng *rng, struct plan *plan, struct buf *spec)
{
    plan->priced = rng_below(rng, 3) > 0;
    if (!plan->priced)
        return;
    plan->adjusted = rng_below(rng, 2);
    plan->percent = plan->adjusted && rng_below(rng, 2);
    plan->negative = plan->adjusted && rng_below(rng, 2);
    unsigned whole = (unsigned)rng_below(rng, plan->percent ? 100 : 5);
    unsigned hundredths = (unsigned)rng_below(rng, 100);
    plan->amount = (int64_t)whole * 100 + hundredths;
    if (!plan->percent)
        plan->amount *= USD_HOUR_ONE / 100;
    buf_addf(spec, ", %s: '%s%u.%02u%s'", plan->adjusted ? "priceAdjustment" : "price",
             plan->negative   ? "-"
             : plan->adjusted ? "+"
                              : "",
             whole, hundredths, plan->percent ? "%" : "");
}

static void random_overlay(struct world *w, struct rng *rng, uint32_t ix)
{
    struct plan *plan = &w->plans[ix];
    AUTO_BUF spec = { 0 };
    char name[16];
    bool first = true;

    *plan = (struct plan){ 0 };
    buf_addz(&spec, "{requirements: [");
    for (uint64_t i = rng_below(rng, 4); i > 0; i--)
        first = !random_requirement(w, rng, plan, first, &spec) && first;
    buf_addz(&spec, "]");
    if (rng_below(rng, 3))
        buf_addf(&spec, ", weight: %u", 1 + (unsigned)rng_below(rng, 2));
    random_price(rng, plan, &spec);
    buf_addz(&spec, ", capacity: {");
    for (size_t i = 0; i < KV_COUNT_OF(resources); i++) {
        plan->amounts[i] = rng_below(rng, 3) ? -1 : (int64_t)rng_below(rng, 3);
        if (plan->amounts[i] >= 0)
            buf_addf(&spec, "%s: %" PRId64 ", ", resources[i], plan->amounts[i]);
    }
    buf_addz(&spec, "}}");
    snprintf(name, sizeof name, "o%u", ix);
    lab_overlay(&w->lab, name, spec.p);
}

static void world_make(struct world *w, uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    lab_init(&w->lab);
    random_pools(w, &rng);
    w->overlay_count = (uint32_t)rng_below(&rng, OVERLAYS_MAX + 1);
    for (uint32_t i = 0; i < w->overlay_count; i++)
        random_overlay(w, &rng, i);
}

/* --- the slow engine --- */

static bool type_matches(struct world *w, const struct overlay_pool *pool, uint32_t type,
                         const struct plan *plan)
{
    struct arena *arena = &w->lab.arena;
    struct str_pair name = { STR(LABEL_NODEPOOL), pool->name };
    struct str_map names = { &name, 1 };
    struct requirements base = requirements_from_labels(arena, &names),
                        labels = requirements_from_labels(arena, &pool->labels),
                        own = instance_type_requirements(pool->types, type, arena);
    base = requirements_merge(arena, &base, &labels);
    base = requirements_merge(arena, &base, &own);
    return requirements_compatible(&base, &plan->requirements, (struct str_list){ 0 }, NULL);
}

static bool offering_matches(struct world *w, const struct overlay_pool *pool, uint32_t offering,
                             const struct plan *plan)
{
    const struct instance_types *s = pool->types;
    const struct requirements *shape = &s->shapes[s->offering_shape[offering]].requirements;
    return requirements_compatible(&plan->requirements, shape, pool->well_known, NULL) &&
           type_matches(w, pool, s->offering_type[offering], plan);
}

static bool some_offering_matches(struct world *w, const struct overlay_pool *pool, uint32_t type,
                                  const struct plan *plan)
{
    const struct instance_types *s = pool->types;
    for (uint32_t o = s->offering_start[type]; o < s->offering_start[type + 1]; o++) {
        if (offering_matches(w, pool, o, plan))
            return true;
    }
    return false;
}

static bool share_a_resource(const struct plan *a, const struct plan *b)
{
    for (size_t i = 0; i < KV_COUNT_OF(resources); i++) {
        if (a->amounts[i] >= 0 && b->amounts[i] >= 0)
            return true;
    }
    return false;
}

static bool clash_in(struct world *w, const struct overlay_pool *pool, const struct plan *a,
                     const struct plan *b)
{
    for (uint32_t o = 0; a->priced && b->priced && o < pool->types->offering_count; o++) {
        if (offering_matches(w, pool, o, a) && offering_matches(w, pool, o, b))
            return true;
    }
    for (uint32_t t = 0; share_a_resource(a, b) && t < pool->types->type_count; t++) {
        if (some_offering_matches(w, pool, t, a) && some_offering_matches(w, pool, t, b))
            return true;
    }
    return false;
}

/* Places of the overlays in the order of processing, and which of them are accepted. */
static void slow_evaluate(struct world *w, uint32_t *in_order, bool *accepted)
{
    const struct nodeoverlay *const *all = w->lab.overlays.items;
    for (uint32_t i = 0; i < w->overlay_count; i++) {
        uint32_t at = i;
        for (; at > 0 && nodeoverlay_order(all[i], all[in_order[at - 1]]) < 0; at--)
            in_order[at] = in_order[at - 1];
        in_order[at] = i;
    }
    for (uint32_t i = 0; i < w->overlay_count; i++) {
        uint32_t a = in_order[i];
        accepted[a] = true;
        for (uint32_t k = 0; k < i; k++) {
            uint32_t b = in_order[k];
            bool equal = all[a]->spec.weight.value == all[b]->spec.weight.value;
            for (uint32_t p = 0; equal && accepted[b] && p < w->pool_count; p++) {
                if (clash_in(w, &w->pools[p], &w->plans[a], &w->plans[b]))
                    accepted[a] = false;
            }
        }
    }
}

static usd_hour slow_price(const struct plan *plan, usd_hour before)
{
    __extension__ typedef __int128 wide;
    if (!plan->adjusted)
        return plan->amount;
    if (!plan->percent) {
        usd_hour sum = before + (plan->negative ? -plan->amount : plan->amount);
        return sum < 0 ? 0 : sum;
    }
    wide times = 10000 + (wide)(plan->negative ? -plan->amount : plan->amount);
    return (usd_hour)(((wide)before * times * 2 + 10000) / 20000); /* half goes up */
}

/* --- comparing --- */

static void expect_prices(struct world *w, const struct overlay_pool *pool,
                          const struct instance_types *layer, const uint32_t *in_order,
                          const bool *accepted)
{
    for (uint32_t o = 0; o < pool->types->offering_count; o++) {
        usd_hour expected = instance_types_price(pool->types, o);
        bool priced = false;
        for (uint32_t i = 0; i < w->overlay_count && !priced; i++) {
            const struct plan *plan = &w->plans[in_order[i]];
            priced = accepted[in_order[i]] && plan->priced && offering_matches(w, pool, o, plan);
            if (priced)
                expected = slow_price(plan, expected);
        }
        EXPECT_EQ(instance_types_price(layer, o), expected);
        if (layer->priced.words)
            EXPECT_EQ(bitset_test(&layer->priced, o), priced);
        else
            EXPECT_FALSE(priced);
    }
}

static void expect_capacity(struct world *w, const struct overlay_pool *pool,
                            const struct instance_types *layer, const uint32_t *in_order,
                            const bool *accepted)
{
    for (uint32_t t = 0; t < pool->types->type_count; t++) {
        for (size_t r = 0; r < KV_COUNT_OF(resources); r++) {
            int64_t expected = -1;
            for (uint32_t i = 0; i < w->overlay_count && expected < 0; i++) {
                const struct plan *plan = &w->plans[in_order[i]];
                if (accepted[in_order[i]] && some_offering_matches(w, pool, t, plan))
                    expected = plan->amounts[r];
            }
            const struct resource_column *c = instance_types_resource(layer, str_of(resources[r]));
            EXPECT_EQ(c ? c->capacity[t] : 0, expected < 0 ? 0 : expected * 1000);
        }
    }
}

static void shuffle(struct rng *rng, void *items, size_t count, size_t size)
{
    char *bytes = items, spare[256];
    KV_ASSERT(size <= sizeof spare);
    for (size_t i = count; i > 1; i--) {
        char *a = bytes + (i - 1) * size, *b = bytes + rng_below(rng, i) * size;
        memcpy(spare, a, size);
        memmove(a, b, size);
        memcpy(b, spare, size);
    }
}

/* The same things in another order: the same verdicts, in the same words. */
static void expect_same_when_shuffled(struct world *w, const struct overlay_evaluation *ev,
                                      uint64_t seed)
{
    struct rng rng;
    struct overlay_pool pools[POOLS_MAX];
    const struct nodeoverlay *overlays[OVERLAYS_MAX];
    rng_init(&rng, seed);
    for (uint32_t i = 0; i < w->pool_count; i++)
        pools[i] = w->pools[i];
    for (uint32_t i = 0; i < w->overlay_count; i++)
        overlays[i] = w->lab.overlays.items[i];
    shuffle(&rng, pools, w->pool_count, sizeof *pools);
    shuffle(&rng, overlays, w->overlay_count, sizeof *overlays);

    AUTO_OVERLAY_SET set = overlay_set_new(overlays, w->overlay_count, 1);
    struct overlay_evaluation again;
    overlay_set_evaluate(set, pools, w->pool_count, &w->lab.arena, &again);
    overlay_set_unref(again.accepted);
    EXPECT_EQ(again.verdicts.count, ev->verdicts.count);
    for (uint32_t i = 0; i < ev->verdicts.count; i++) {
        const struct overlay_verdict *a = &ev->verdicts.items[i], *b = &again.verdicts.items[i];
        EXPECT_TRUE(a->overlay == b->overlay);
        EXPECT_EQ(a->state, b->state);
        EXPECT_TRUE(str_eq(a->message, b->message));
        EXPECT_EQ(a->type_count, b->type_count);
        EXPECT_EQ(a->offering_count, b->offering_count);
    }
}

/* Pools that are said to be alike get the same from every offering's point of view. */
static void expect_alike(struct world *w, const struct overlay_set *set,
                         const struct instance_types *const *layers)
{
    for (uint32_t a = 0; a < w->pool_count; a++) {
        for (uint32_t b = 0; b < a; b++) {
            const struct overlay_pool *x = &w->pools[a], *y = &w->pools[b];
            if (x->types != y->types || !overlay_pools_alike(set, x, y))
                continue;
            EXPECT_EQ(overlay_pool_signature(set, x), overlay_pool_signature(set, y));
            for (uint32_t o = 0; o < x->types->offering_count; o++)
                EXPECT_EQ(instance_types_price(layers[a], o), instance_types_price(layers[b], o));
        }
    }
}

/* The changes that the preview lists for a type, each of them true. */
static void expect_changes(const struct preview_type *t, const struct instance_types *before,
                           const struct instance_types *after)
{
    for (uint32_t i = 0; i < t->prices.count; i++) {
        const struct preview_price *c = &t->prices.items[i];
        EXPECT_EQ(before->offering_type[c->offering], t->type_ix);
        EXPECT_EQ(c->before, instance_types_price(before, c->offering));
        EXPECT_EQ(c->after, instance_types_price(after, c->offering));
    }
    for (uint32_t i = 0; i < t->capacities.count; i++) {
        const struct preview_capacity *c = &t->capacities.items[i];
        const struct resource_column *a = instance_types_resource(before, c->resource),
                                     *b = instance_types_resource(after, c->resource);
        EXPECT_EQ(c->before, a ? a->capacity[t->type_ix] : 0);
        EXPECT_EQ(c->after, b ? b->capacity[t->type_ix] : 0);
    }
}

static uint32_t count_changes(const struct instance_types *before,
                              const struct instance_types *after)
{
    uint32_t count = 0;
    for (uint32_t o = 0; o < before->offering_count; o++)
        count += instance_types_price(before, o) != instance_types_price(after, o);
    for (size_t r = 0; r < KV_COUNT_OF(resources); r++) {
        const struct resource_column *a = instance_types_resource(before, str_of(resources[r])),
                                     *b = instance_types_resource(after, str_of(resources[r]));
        for (uint32_t t = 0; t < before->type_count; t++)
            count += (a ? a->capacity[t] : 0) != (b ? b->capacity[t] : 0);
    }
    return count;
}

/* The last overlay as the candidate: the preview is the difference of the layers, no more and no
 * less. */
static void expect_preview(struct world *w, const struct instance_types *const *after)
{
    if (w->overlay_count == 0)
        return;
    uint32_t current = w->overlay_count - 1, changes = 0;
    const struct nodeoverlay *const *all = w->lab.overlays.items;
    struct overlay_preview p;
    overlay_preview_make(all[current], all, current, w->pools, w->pool_count, &w->lab.arena, &p);

    AUTO_OVERLAY_SET set = overlay_set_new(all, current, 1);
    struct overlay_evaluation ev;
    overlay_set_evaluate(set, w->pools, w->pool_count, &w->lab.arena, &ev);
    for (uint32_t i = 0; i < w->pool_count; i++) {
        AUTO_INSTANCE_TYPES before =
            overlay_set_apply(ev.accepted, &w->pools[i], (struct instance_types_options){ 0 });
        changes += count_changes(before, after[i]);
        for (uint32_t t = 0; t < p.types.count; t++) {
            if (str_eq(p.types.items[t].pool, w->pools[i].name))
                expect_changes(&p.types.items[t], before, after[i]);
        }
    }
    EXPECT_EQ(p.price_count + p.capacity_count, changes);
    overlay_set_unref(ev.accepted);
}

static void check_world(uint64_t seed)
{
    struct world w = { 0 };
    uint32_t in_order[OVERLAYS_MAX] = { 0 };
    bool accepted[OVERLAYS_MAX] = { 0 };
    const struct instance_types *layers[POOLS_MAX];

    world_make(&w, seed);
    struct overlay_evaluation ev = lab_evaluate(&w.lab, w.pools, w.pool_count);
    slow_evaluate(&w, in_order, accepted);
    EXPECT_EQ(ev.verdicts.count, w.overlay_count);
    for (uint32_t i = 0; i < w.overlay_count; i++) {
        EXPECT_TRUE(ev.verdicts.items[i].overlay == w.lab.overlays.items[in_order[i]]);
        EXPECT_EQ(ev.verdicts.items[i].state,
                  accepted[in_order[i]] ? OVERLAY_ACCEPTED : OVERLAY_CONFLICT);
    }
    for (uint32_t p = 0; p < w.pool_count; p++) {
        layers[p] =
            overlay_set_apply(ev.accepted, &w.pools[p], (struct instance_types_options){ 0 });
        vec_push(&w.lab.snapshots, layers[p]);
        expect_prices(&w, &w.pools[p], layers[p], in_order, accepted);
        expect_capacity(&w, &w.pools[p], layers[p], in_order, accepted);
    }
    expect_alike(&w, ev.accepted, layers);
    expect_same_when_shuffled(&w, &ev, seed + 1);
    expect_preview(&w, layers);
    overlay_set_unref(ev.accepted);
    lab_done(&w.lab);
}

TEST(the_engine_agrees_with_the_obvious_one_on_random_worlds)
{
    const uint64_t worlds = 100; /* per seed that is printed */
    for (uint64_t seed = 1; seed <= 20; seed++) {
        print_message("# seed %" PRIu64 "\n", seed);
        for (uint64_t i = 0; i < worlds; i++)
            check_world(seed * worlds + i);
    }
}
