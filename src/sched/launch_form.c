/* A launch as its NodeClaim will ask for it: every machine that its terms allow and its pods fit on,
 * cheapest first.
 *
 * Whichever of them is launched, the pool's limits must hold. If they hold with every launch at its
 * largest, lists are whole; otherwise no machine larger than the planned one (in what is limited) is
 * on them, and the plan has kept the limits with those.
 */
#include "sched/finish.h"

#include <stdlib.h>
#include <string.h>

/* --- which machines --- */

static bool holds(const struct model *m, const struct bin *bin, uint32_t machine)
{
    const int64_t *room = m->pools[bin->pool].room;
    for (uint32_t r = 0; r < m->resource_count; r++) {
        int64_t used = room[(size_t)bin->machine * m->resource_count + r] - bin->free[r];
        if (room[(size_t)machine * m->resource_count + r] < used)
            return false;
    }
    return true;
}

static struct bitset machines_of(struct state *s, const struct bin *bin, bool any_size,
                                 struct arena *arena)
{
    struct model *m = s->model;
    const struct pool *pool = &m->pools[bin->pool];
    const struct terms *t = terms_at(m, bin->terms);
    struct bitset out = bitset_new(arena, pool->machine_count);
    if (bin->reserved != NONE) { /* the place that it holds is of this machine */
        bitset_set(&out, bin->machine);
        return out;
    }
    bitset_each(&t->machines, i) {
        if (holds(m, bin, i) && (any_size || machine_no_larger(pool, i, bin->machine)) &&
            !launch_ports_clash(s, bin, i))
            bitset_set(&out, i);
    }
    return out;
}

const bool *limits_hold_at_largest(struct state *s, struct arena *arena)
{
    struct model *m = s->model;
    bool *hold = arena_array(arena, bool, m->pool_count);
    int64_t **left = arena_array(arena, int64_t *, m->pool_count);
    for (uint32_t p = 0; p < m->pool_count; p++) {
        hold[p] = true;
        left[p] = arena_array(arena, int64_t, m->pools[p].limit_count);
        for (uint32_t i = 0; i < m->pools[p].limit_count; i++)
            left[p][i] = s->pools[p].limits[i];
    }
    for (uint32_t ix = m->home_count; ix < s->bins.count; ix++) {
        const struct bin *bin = &s->bins.items[ix];
        if (bin->pool == NONE || !m->pools[bin->pool].limit_count || !hold[bin->pool])
            continue;
        AUTO_ARENA scratch = { 0 };
        const struct pool *pool = &m->pools[bin->pool];
        struct bitset machines = machines_of(s, bin, true, &scratch);
        for (uint32_t i = 0; i < pool->limit_count; i++) {
            int64_t planned = pool->limits[i].capacity[bin->machine], most = planned;
            bitset_each(&machines, k)
                if (pool->limits[i].capacity[k] > most)
                    most = pool->limits[i].capacity[k];
            left[bin->pool][i] -= most - planned;
            hold[bin->pool] &= left[bin->pool][i] >= 0;
        }
    }
    return hold;
}

/* --- which types --- */

struct choice_of_type {
    uint32_t type, offering;
    usd_hour price;
};

static int by_price(const void *a, const void *b)
{
    const struct choice_of_type *x = a, *y = b;
    if (x->price != y->price)
        return x->price < y->price ? -1 : 1;
    return x->type < y->type ? -1 : x->type > y->type;
}

/* The cheapest offering of a type in these shapes. False: there is none, or one of them is of a
 * machine that the pods do not fit on. */
static bool type_choice(const struct instance_types *types, uint32_t type,
                        const struct bitset *shapes, const struct bitset *machines,
                        struct choice_of_type *out)
{
    *out = (struct choice_of_type){ type, NONE, USD_HOUR_MAX };
    for (uint32_t o = types->offering_start[type]; o < types->offering_start[type + 1]; o++) {
        if (!bitset_test(&types->available, o) || !bitset_test(shapes, types->offering_shape[o]))
            continue;
        if (!bitset_test(machines, types->offering_row[o]))
            return false;
        const struct offering_shape *shape = &types->shapes[types->offering_shape[o]];
        usd_hour price = instance_types_price(types, o);
        if (out->offering == NONE || price < out->price ||
            (price == out->price &&
             shape->capacity_type_ix <
                 types->shapes[types->offering_shape[out->offering]].capacity_type_ix)) {
            out->offering = o;
            out->price = price;
        }
    }
    return out->offering != NONE;
}

/* With a place in a reservation nothing but that reservation will do. */
static struct bitset shapes_of(struct state *s, const struct bin *bin, struct arena *arena)
{
    struct model *m = s->model;
    const struct instance_types *types = m->pools[bin->pool].types;
    struct bitset shapes = bitset_new(arena, types->shape_count);
    if (bin->reserved != NONE) {
        struct str id = types->shapes[types->offering_shape[bin->reserved]].reservation_id;
        for (uint32_t i = 0; i < types->shape_count; i++)
            if (str_eq(types->shapes[i].reservation_id, id))
                bitset_set(&shapes, i);
        return shapes;
    }
    bitset_copy(&shapes, &terms_at(m, bin->terms)->shapes);
    /* What is left of reservations is for launches that were planned on them. */
    for (uint32_t i = 0; i < types->shape_count; i++)
        if (types->shapes[i].reservation_id.len)
            bitset_clear(&shapes, i);
    return shapes;
}

static uint32_t find_types(struct state *s, const struct bin *bin, const struct bitset *shapes,
                           const struct bitset *machines, struct choice_of_type *out)
{
    const struct instance_types *types = s->model->pools[bin->pool].types;
    uint32_t count = 0;
    for (uint32_t type = 0; type < types->type_count; type++)
        if (bitset_test(machines, type) || bitset_test(&types->overridden, type))
            count += type_choice(types, type, shapes, machines, &out[count]);
    if (count)
        qsort(out, count, sizeof *out, by_price);
    return count;
}

/* --- what the claim says --- */

static bool is_simulated(struct str key)
{
    return str_eqz(key, LABEL_REGISTERED) || str_eqz(key, LABEL_INITIALIZED) ||
           str_eqz(key, LABEL_HOSTNAME);
}

static struct requirement in_sorted(struct arena *arena, const char *key, struct str *values,
                                    uint32_t count)
{
    uint32_t left = (uint32_t)str_sort_unique(values, count);
    return requirement_in(arena, str_of(key), (struct str_list){ values, left });
}

static struct requirements requirements_of(struct state *s, const struct bin *bin,
                                           const struct bitset *shapes,
                                           const struct plan_launch *launch, struct arena *arena)
{
    const struct instance_types *types = s->model->pools[bin->pool].types;
    const struct requirements *set = &terms_at(s->model, bin->terms)->set;
    struct requirements out = { 0 };
    for (uint32_t i = 0; i < set->count; i++)
        if (!is_simulated(set->items[i].key))
            out = requirements_add(arena, &out, &set->items[i]);

    struct str *names = arena_array(arena, struct str, launch->type_count);
    struct str *capacity = arena_array(arena, struct str, types->shape_count);
    uint32_t capacity_count = 0;
    for (uint32_t i = 0; i < launch->type_count; i++)
        names[i] = types->names[launch->types[i]];
    bitset_each(shapes, i) {
        for (uint32_t k = 0; k < launch->type_count; k++)
            if (posting_has(&types->shapes[i].types, launch->types[k])) {
                capacity[capacity_count++] = types->shapes[i].capacity_type;
                break;
            }
    }
    struct requirement more[] = {
        in_sorted(arena, LABEL_INSTANCE_TYPE, names, launch->type_count),
        in_sorted(arena, LABEL_CAPACITY_TYPE, capacity, capacity_count),
    };
    for (size_t i = 0; i < sizeof more / sizeof *more; i++)
        out = requirements_add(arena, &out, &more[i]);
    if (bin->reserved != NONE) {
        const struct offering_shape *shape = &types->shapes[types->offering_shape[bin->reserved]];
        for (uint32_t i = 0; i < shape->requirements.count; i++) {
            const struct requirement *r = &shape->requirements.items[i];
            if (r->values.count == 1 && !r->complement &&
                str_eq(r->values.items[0], shape->reservation_id))
                out = requirements_add(arena, &out, r);
        }
    }
    return out;
}

/* A value that nodes have already: an invented one would be a new domain to spread over. */
static struct str known_domain(const struct model *m, const struct requirement *r)
{
    for (uint32_t k = 0; k < m->key_count; k++) {
        if (!str_eq(label_normalise(m->keys[k].name), r->key))
            continue;
        for (uint32_t d = 0; d < m->keys[k].domain_count; d++)
            if (requirement_has(r, m->keys[k].domains[d]))
                return m->keys[k].domains[d];
    }
    return STR_NONE;
}

/* The template's labels, and a value for each key of its own that pods or the pool ask for. */
static struct str_map labels_of(struct state *s, const struct bin *bin,
                                const struct requirements *set, struct arena *arena)
{
    const struct pool *pool = &s->model->pools[bin->pool];
    const struct sched_pool *source = &s->model->snap->pools[pool->source];
    const struct str_map *from = &source->pool->spec.template.meta.labels;
    struct str_pair *items = arena_array(arena, struct str_pair, from->count + set->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < from->count; i++)
        items[count++] = from->items[i];
    for (uint32_t i = 0; i < set->count; i++) {
        const struct requirement *r = &set->items[i];
        if (str_sorted_has(pool->well_known.items, pool->well_known.count, r->key) ||
            label_is_restricted(
                label_rules_for(source->pool->spec.template.spec.node_class_ref.group), r->key) ||
            str_map_get(from, r->key).p)
            continue;
        struct str value = known_domain(s->model, r);
        if (!value.p)
            value = requirement_any(arena, r, s->model->options.seed);
        if (value.len)
            items[count++] = (struct str_pair){ r->key, value };
    }
    if (count)
        qsort(items, count, sizeof *items, str_pair_order);
    return (struct str_map){ items, count };
}

static struct resources requests_of(struct state *s, const struct bin *bin, uint32_t row,
                                    struct arena *arena)
{
    const struct model *m = s->model;
    const struct pool *pool = &m->pools[bin->pool];
    struct resource *items = arena_array(arena, struct resource, m->resource_count);
    uint32_t count = 0, width = m->resource_count;
    for (uint32_t r = 0; r < width; r++) {
        int64_t used = pool->room[(size_t)bin->machine * width + r] - bin->free[r] +
                       pool->daemons[(size_t)row * width + r];
        const struct resource_column *column =
            instance_types_resource(pool->types, m->resources[r]);
        if (used <= 0)
            continue;
        struct quantity amount = quantity_of_milli(used);
        amount.format = column ? column->format : QUANTITY_DECIMAL;
        /* By name: the model has cpu, memory and pods first. */
        uint32_t at = count++;
        for (; at && str_cmp(items[at - 1].name, m->resources[r]) > 0; at--)
            items[at] = items[at - 1];
        items[at] = (struct resource){ m->resources[r], amount };
    }
    return (struct resources){ items, count };
}

void launch_describe(struct state *s, uint32_t ix, bool any_size, struct arena *arena,
                     struct plan_launch *out)
{
    struct model *m = s->model;
    const struct bin *bin = &s->bins.items[ix];
    const struct pool *pool = &m->pools[bin->pool];
    AUTO_ARENA scratch = { 0 };
    struct bitset machines = machines_of(s, bin, any_size, &scratch);
    struct bitset shapes = shapes_of(s, bin, &scratch);
    struct choice_of_type *choices =
        arena_array(&scratch, struct choice_of_type, pool->types->type_count);
    uint32_t count = find_types(s, bin, &shapes, &machines, choices);
    KV_ASSERT(count > 0);

    *out = (struct plan_launch){ .pool = pool->source,
                                 .type = choices[0].type,
                                 .offering = choices[0].offering,
                                 .row = pool->types->offering_row[choices[0].offering],
                                 .price = choices[0].price };
    out->type_count = count < m->options.types_max ? count : m->options.types_max;
    uint32_t *types = arena_array(arena, uint32_t, out->type_count);
    for (uint32_t i = 0; i < out->type_count; i++)
        types[i] = choices[i].type;
    out->types = types;
    out->requirements = requirements_of(s, bin, &shapes, out, arena);
    struct min_values_result met = { .met = true };
    struct bitset listed = bitset_new(&scratch, pool->machine_count);
    for (uint32_t i = 0; i < out->type_count; i++)
        bitset_set(&listed, out->types[i]);
    if (terms_at(m, bin->terms)->has_min_values &&
        !terms_min_values(m, bin->terms, &listed, &scratch, &met)) {
        out->min_values_relaxed = true;
        out->requirements = requirements_relax(arena, &out->requirements, &met);
    }
    out->labels = labels_of(s, bin, &out->requirements, arena);
    out->requests = requests_of(s, bin, out->row, arena);
}

/* --- pinning --- */

static bool spreads_by(const struct group *g, uint32_t key)
{
    return g->kind == GROUP_SPREAD && g->key == key && key != KEY_HOSTNAME;
}

/* Groups that some class requires. */
static struct bitset required_groups(const struct model *m, struct arena *arena)
{
    struct bitset out = bitset_new(arena, m->group_count);
    for (uint32_t c = 0; c < m->class_count; c++) {
        const struct pod_class *class_ = &m->classes[c];
        if (!class_->variant_count)
            continue;
        const struct variant *last = &class_->variants[class_->variant_count - 1];
        for (uint32_t i = 0; i < last->owned_count; i++)
            bitset_set(&out, last->owned[i]);
    }
    return out;
}

/* Does the launch hold pods that a required spread over the key finds? With KEY_HOSTNAME: over any
 * wider key, which these pods do not spread by themselves. */
static bool holds_counted(const struct model *m, const struct bin *bin,
                          const struct bitset *required, uint32_t key)
{
    vec_each(&bin->placements, const struct placement, p) {
        const struct pod_class *c = &m->classes[p->class_];
        for (uint32_t i = 0; i < c->matched_count; i++) {
            const struct group *g = &m->groups[c->matched[i]];
            if (!bitset_test(required, c->matched[i]) || !spreads_by(g, g->key))
                continue;
            if (key == KEY_HOSTNAME ? !class_requires(c, c->matched[i]) : g->key == key)
                return true;
        }
    }
    return false;
}

static struct str planned_value(struct state *s, const struct bin *bin, struct str key)
{
    const struct instance_types *types = s->model->pools[bin->pool].types;
    const struct terms *t = terms_at(s->model, bin->terms);
    const struct offering_shape *shape =
        &types->shapes[types->offering_shape[t->offering[bin->machine]]];
    struct requirement r = requirements_get(&t->set, key);
    const struct requirement *sources[] = {
        requirements_find(&shape->requirements, key),
        instance_type_requirement(types, types->row_type[bin->machine], key),
        &r,
    };
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++)
        for (uint32_t v = 0; sources[i] && !sources[i]->complement && v < sources[i]->values.count;
             v++)
            if (requirement_has(&r, sources[i]->values.items[v]))
                return sources[i]->values.items[v];
    return STR_NONE;
}

/* Domains of the key in which nodes are, or will be for certain. */
static struct bitset known_domains(const struct state *s, uint32_t key, struct arena *arena)
{
    const struct model *m = s->model;
    struct bitset out = bitset_new(arena, m->keys[key].domain_count);
    for (uint32_t i = 0; i < s->bins.count; i++)
        if (bin_is_live(s, i) && s->bins.items[i].domains[key] != NONE)
            bitset_set(&out, s->bins.items[i].domains[key]);
    return out;
}

/* Of offerings that are not reserved: those are for launches that hold a place in them. */
static bool same_offerings(const struct instance_types *types, const struct terms *a,
                           const struct terms *b)
{
    for (uint32_t i = 0; i < types->shape_count; i++)
        if (!types->shapes[i].reservation_id.len &&
            bitset_test(&a->shapes, i) != bitset_test(&b->shapes, i))
            return false;
    return bitset_equal(&a->machines, &b->machines);
}

enum passes launch_passes(struct state *s, const struct group *g, uint32_t ix)
{
    const struct bin *bin = &s->bins.items[ix];
    enum passes passes = PASSES_NEVER;
    if (!bitset_test(&g->pools, bin->pool))
        return passes;
    if (bin->reserved != NONE)
        return PASSES_ALWAYS; /* its terms have no machine left but the one that it holds */
    for (uint32_t i = 0; i < g->filter_count; i++) {
        uint32_t joined = terms_join(s->model, bin->terms, g->filter[i]);
        if (joined == NONE)
            continue;
        const struct terms *all = terms_at(s->model, bin->terms), *t = terms_at(s->model, joined);
        if (same_offerings(s->model->pools[bin->pool].types, t, all))
            return PASSES_ALWAYS;
        passes = PASSES_SOMETIMES;
    }
    return passes;
}

/* Launches that pass a filter only as some of what they may be become what they were planned as, if a
 * domain hangs on it. */
static void pin_doubtful(struct state *s, const struct group *g, struct arena *arena)
{
    const struct model *m = s->model;
    struct bitset sure = bitset_new(arena, m->keys[g->key].domain_count);
    bitset_copy(&sure, &s->groups[g - m->groups].present);
    for (int round = 0; round < 2; round++) {
        for (uint32_t ix = m->home_count; ix < s->bins.count; ix++) {
            const struct bin *bin = &s->bins.items[ix];
            if (bin->pool == NONE || bin->reserved != NONE || bin->domains[g->key] == NONE ||
                bitset_test(&sure, bin->domains[g->key]))
                continue;
            enum passes passes = launch_passes(s, g, ix);
            if (round == 0 && passes == PASSES_ALWAYS)
                bitset_set(&sure, bin->domains[g->key]);
            if (round == 1 && passes == PASSES_SOMETIMES)
                launch_pin(s, ix, STR(LABEL_INSTANCE_TYPE),
                           planned_value(s, bin, STR(LABEL_INSTANCE_TYPE)));
        }
    }
}

void launches_pin(struct state *s)
{
    const struct model *m = s->model;
    AUTO_ARENA scratch = { 0 };
    struct bitset required = required_groups(m, &scratch);
    for (uint32_t k = KEY_HOSTNAME + 1; k < m->key_count; k++) {
        bool spread = false;
        bitset_each(&required, g)
            spread |= spreads_by(&m->groups[g], k);
        if (!spread)
            continue;
        struct bitset known = known_domains(s, k, &scratch);
        struct bitset possible = bitset_new(&scratch, m->keys[k].domain_count);
        struct map fine = { 0 }; /* terms: is every possible domain a known one? */
        for (uint32_t ix = m->home_count; ix < s->bins.count; ix++) {
            struct bin *bin = &s->bins.items[ix];
            if (bin->pool == NONE || bin->domains[k] != NONE || bin->reserved != NONE)
                continue;
            uintptr_t known_fine;
            uint32_t terms = bin->terms;
            if (!map_get(&fine, terms, &known_fine)) {
                launch_domains(s, terms, k, &possible);
                known_fine = bitset_subset(&possible, &known);
                map_put(&fine, terms, known_fine);
            }
            struct str key = label_normalise(m->keys[k].name);
            if (!known_fine || holds_counted(m, bin, &required, k))
                launch_pin(s, ix, key, planned_value(s, bin, key));
        }
        map_done(&fine);
    }
    /* A spread's node filter must be able to tell, too; mostly it is about these two. */
    static const char *const filtered[] = { LABEL_CAPACITY_TYPE, LABEL_ZONE };
    for (uint32_t ix = m->home_count; ix < s->bins.count; ix++) {
        struct bin *bin = &s->bins.items[ix];
        if (bin->pool == NONE || bin->reserved != NONE ||
            !holds_counted(m, bin, &required, KEY_HOSTNAME))
            continue;
        for (size_t i = 0; i < 2; i++)
            launch_pin(s, ix, str_of(filtered[i]), planned_value(s, bin, str_of(filtered[i])));
    }
    bitset_each(&required, g)
        if (spreads_by(&m->groups[g], m->groups[g].key))
            pin_doubtful(s, &m->groups[g], &scratch);
}
