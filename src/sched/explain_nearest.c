/* The nearest miss: the one instance type that would need the least to change.
 *
 * Short of resources it is the type with the smallest shortfall, each as a share of what is needed.
 * Excluded by requirements it is the type that breaks the fewest of them, the pool's and the pod's;
 * of those the first that is large enough, then the cheapest. Excluded by the images it is the
 * cheapest that would do but for them, else the cheapest. Beyond limits it is the smallest.
 */
#include "sched/explain_inner.h"

/* --- resources --- */

/* In millionths of what is needed, summed over resources. */
static int64_t shortfall(const struct ask *ask, uint32_t machine)
{
    int64_t sum = 0;
    for (uint32_t r = 0; r < ask->state->model->resource_count; r++) {
        int64_t need = ask->request[r], room = machine_room(ask, machine, r);
        if (room >= need)
            continue;
        __extension__ __int128 missing = __extension__(__int128) need - room;
        __extension__ __int128 share = need > 0 ? missing * 1000000 / need : 1000000;
        sum += (int64_t)(share < 1000000000 ? share : 1000000000);
    }
    return sum;
}

static void nearest_size(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct model *m = ask->state->model;
    const struct instance_types *types = ask->pool->types;
    uint32_t best = NONE;
    bitset_each(&t->suitable, row) {
        if (best == NONE || shortfall(ask, row) < shortfall(ask, best))
            best = row;
    }
    if (best == NONE)
        return;
    add_name(out, types->names[types->row_type[best]]);
    bool first = true;
    for (uint32_t r = 0; r < m->resource_count; r++) {
        int64_t room = machine_room(ask, best, r);
        if (room >= ask->request[r])
            continue;
        buf_addz(out, first ? ": " : ", ");
        add_have(out, m->resources[r], room < 0 ? 0 : room);
        buf_addz(out, " of ");
        add_need(out, m->resources[r], ask->request[r]);
        buf_addc(out, ' ');
        add_name(out, m->resources[r]);
        first = false;
    }
}

/* --- requirements --- */

static bool type_breaks(const struct instance_types *types, uint32_t type,
                        const struct requirement *r)
{
    const struct requirement *own = instance_type_requirement(types, type, r->key);
    struct requirements a = { own, own ? 1 : 0 }, b = { r, 1 };
    return !requirements_intersects(&a, &b, NULL);
}

/* How many requirements of both sides each type breaks; those of a pool that contradicts the pod
 * count beside the pod's. */
static uint32_t *breaks_by_type(const struct trial *t)
{
    const struct instance_types *types = t->ask->pool->types;
    const struct requirements *sides[] = { &t->ask->allowed, &t->ask->wants };
    uint32_t *breaks = arena_array(t->arena, uint32_t, types->type_count);
    struct bitset kept = bitset_new(t->arena, types->type_count);
    for (size_t side = 0; side < KV_COUNT_OF(sides); side++) {
        for (uint32_t i = 0; i < sides[side]->count; i++) {
            bitset_fill(&kept);
            instance_types_narrow(types, &sides[side]->items[i], true, &kept);
            for (uint32_t k = 0; k < types->type_count; k++)
                breaks[k] += !bitset_test(&kept, k);
        }
    }
    return breaks;
}

static void add_broken(const struct trial *t, uint32_t type, struct buf *out)
{
    const struct instance_types *types = t->ask->pool->types;
    struct requirements both = requirements_merge(t->arena, &t->ask->allowed, &t->ask->wants);
    bool first = true;
    add_name(out, types->names[type]);
    for (uint32_t i = 0; i < both.count; i++) {
        const struct requirement *of_pool = requirements_find(&t->ask->allowed, both.items[i].key);
        const struct requirement *of_pod = requirements_find(&t->ask->wants, both.items[i].key);
        if (!(of_pool && type_breaks(types, type, of_pool)) &&
            !(of_pod && type_breaks(types, type, of_pod)))
            continue;
        buf_addz(out, first ? ": " : ", ");
        add_key(out, both.items[i].key);
        buf_addz(out, " is ");
        add_values(out, instance_type_requirement(types, type, both.items[i].key));
        first = false;
    }
}

static void nearest_kind(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct instance_types *types = ask->pool->types;
    const uint32_t *breaks = breaks_by_type(t);
    uint32_t best = NONE;
    bool best_fits = false;
    for (uint32_t i = 0; i < types->type_count; i++) {
        uint32_t type = types->price_order[i];
        bool fits = machine_fits(ask, type);
        if (best == NONE || breaks[type] < breaks[best] ||
            (breaks[type] == breaks[best] && fits && !best_fits)) {
            best = type;
            best_fits = fits;
        }
    }
    if (best != NONE && breaks[best] > 0)
        add_broken(t, best, out);
}

/* --- images --- */

/* Of the cheapest type its own row, or one of its overrides. */
static uint32_t machine_cheapest(const struct instance_types *types, const struct bitset *machines)
{
    for (uint32_t i = 0; i < types->type_count; i++) {
        uint32_t type = types->price_order[i];
        if (bitset_test(machines, type))
            return type;
        for (uint32_t row = bitset_next(machines, types->type_count); row < types->row_count;
             row = bitset_next(machines, row + 1)) {
            if (types->row_type[row] == type)
                return row;
        }
    }
    return NONE;
}

bool trial_nearest_image(const struct trial *t, uint32_t *machine)
{
    struct ask ask = *t->ask;
    struct trial freed;
    ask.overlooked |= 1u << REASON_IMAGE;
    trial_run(&freed, &ask, t->arena, NULL);
    *machine = machine_cheapest(ask.pool->types, freed.possible ? &freed.machines : &t->before);
    KV_ASSERT(*machine != NONE);
    return freed.possible;
}

static void nearest_image(const struct trial *t, struct buf *out)
{
    const struct instance_types *types = t->ask->pool->types;
    uint32_t machine;
    bool alone = trial_nearest_image(t, &machine);
    add_name(out, types->names[types->row_type[machine]]);
    buf_addz(out, alone ? " would do but for its images: " : ": ");
    add_images_why(t, machine, out);
}

/* --- limits --- */

static void nearest_limit(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct pool *pool = ask->pool;
    uint32_t limit = 0, best = NONE;
    while (limit < pool->limit_count) {
        best = NONE;
        bitset_each(&t->before, row) {
            if (best == NONE ||
                pool->limits[limit].capacity[row] < pool->limits[limit].capacity[best])
                best = row;
        }
        if (best != NONE && pool->limits[limit].capacity[best] > ask->left.limits[limit])
            break;
        limit++;
    }
    if (limit == pool->limit_count || ask->left.nodes <= 0)
        return;
    struct str name = pool->limits[limit].name;
    int64_t left = ask->left.limits[limit];
    add_name(out, pool->types->names[pool->types->row_type[best]]);
    buf_addz(out, ": ");
    add_need(out, name, pool->limits[limit].capacity[best]);
    buf_addc(out, ' ');
    add_name(out, name);
    buf_addz(out, ", ");
    add_have(out, name, left < 0 ? 0 : left);
    buf_addz(out, " left");
}

struct str trial_nearest(const struct trial *t, struct arena *arena)
{
    AUTO_BUF out = { 0 };
    switch (t->subject) {
    case SUBJECT_POOL:
    case SUBJECT_WANT:
        nearest_kind(t, &out);
        break;
    case SUBJECT_IMAGES:
        nearest_image(t, &out);
        break;
    case SUBJECT_RESOURCE:
        nearest_size(t, &out);
        break;
    case SUBJECT_LIMITS:
        nearest_limit(t, &out);
        break;
    case SUBJECT_TAINTS:
    case SUBJECT_PORTS:
    case SUBJECT_OFFERING:
    case SUBJECT_GROUP:
    case SUBJECT_MIN_VALUES:
        break; /* no type is nearer than another */
    }
    return buf_keep(arena, &out);
}
