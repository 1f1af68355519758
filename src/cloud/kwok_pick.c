/* Which offering a claim gets. Types are narrowed by the claim's requirements, offerings by shape,
 * availability, room for the requests and marks; the cheapest of what is left is taken.
 *
 * A key that types say nothing about (a label of the user's own) excludes none of them: the claim
 * itself is what gives the node such a label.
 */
#include "cloud/kwok_impl.h"

#include "api/resources.h"
#include "base/rng.h"

struct search {
    const struct instance_types *types;
    struct requirements requirements;
    struct resources requests;
    struct unavailable *marks;
    struct bitset type_set, shape_set;
    /* How far offerings came, for the message. */
    uint32_t offered, fitting, marked;
};

static void narrow(struct search *s, struct arena *arena)
{
    s->type_set = bitset_new(arena, s->types->type_count);
    s->shape_set = bitset_new(arena, s->types->shape_count);
    bitset_fill(&s->type_set);
    for (uint32_t i = 0; i < s->requirements.count; i++)
        instance_types_narrow(s->types, &s->requirements.items[i], true, &s->type_set);
    instance_types_shapes(s->types, &s->requirements, &s->shape_set);
}

/* NodeOverlays add resources that the provider's own types do not have. They cannot touch the four
 * that every type has, so these are what a claim is checked by when overlays had a part in it. */
static struct resources requests_to_check(const struct nodeclaim *claim, struct arena *arena)
{
    static const char *const basic[] = { "cpu", "ephemeral-storage", "memory", "pods" };
    const struct resources *all = &claim->spec.resources.requests;
    struct str overlaid =
        str_map_get(&claim->object.meta.annotations, STR(ANNOTATION_CAPACITY_OVERLAY));
    if (!str_eq(overlaid, STR("true")))
        return *all;
    struct resource *items = arena_array(arena, struct resource, KV_COUNT_OF(basic));
    uint32_t count = 0;
    for (size_t i = 0; i < KV_COUNT_OF(basic); i++) {
        const struct resource *r = resources_find(all, str_of(basic[i]));
        if (r)
            items[count++] = *r;
    }
    return (struct resources){ items, count };
}

static bool fits(const struct search *s, uint32_t row)
{
    for (uint32_t i = 0; i < s->requests.count; i++) {
        const struct resource *want = &s->requests.items[i];
        const struct resource_column *column = instance_types_resource(s->types, want->name);
        int64_t have = column ? column->allocatable[row] : 0;
        if (milli_ceil(want->amount) > have)
            return false;
    }
    return true;
}

static bool suits(struct search *s, uint32_t o)
{
    const struct instance_types *types = s->types;
    const struct offering_shape *shape = &types->shapes[types->offering_shape[o]];
    if (!bitset_test(&types->available, o) || !bitset_test(&s->shape_set, types->offering_shape[o]))
        return false;
    s->offered++;
    if (!fits(s, types->offering_row[o]))
        return false;
    s->fitting++;
    bool marked = unavailable_has(s->marks, types->names[types->offering_type[o]], shape->zone,
                                  shape->capacity_type, shape->reservation_id);
    s->marked += marked;
    return !marked;
}

/* Each of n equal offerings replaces the one before it with probability 1/n: every one of them is
 * as likely in the end, and nothing has to be kept. */
static uint32_t cheapest(struct search *s, struct rng *rng)
{
    uint32_t best = INSTANCE_TYPE_NONE;
    usd_hour best_price = 0;
    uint64_t equals = 0;
    bitset_each(&s->type_set, t) {
        for (uint32_t o = s->types->offering_start[t]; o < s->types->offering_start[t + 1]; o++) {
            if (!suits(s, o))
                continue;
            usd_hour price = instance_types_price(s->types, o);
            bool first = best == INSTANCE_TYPE_NONE || price < best_price;
            equals = first ? 1 : equals + (price == best_price);
            if (first || (price == best_price && rng_below(rng, equals) == 0)) {
                best = o;
                best_price = price;
            }
        }
    }
    return best;
}

static int insufficient(const struct search *s, struct err *err)
{
    uint32_t types = bitset_popcount(&s->type_set);
    if (types == 0) {
        AUTO_BUF text = { 0 };
        requirements_format(&s->requirements, &text);
        return err_set(err, ERR_CAPACITY, "none of %u instance types meets %s",
                       s->types->type_count, buf_str(&text).p);
    }
    if (s->offered == 0)
        return err_set(err, ERR_CAPACITY,
                       "%u instance types meet the requirements, and none has an offering", types);
    if (s->fitting == 0)
        return err_set(err, ERR_CAPACITY,
                       "%u instance types meet the requirements, and none is large enough", types);
    return err_set(err, ERR_CAPACITY, "there is no capacity in any of %u offerings", s->marked);
}

int kwok_pick(const struct instance_types *types, const struct nodeclaim *claim,
              struct unavailable *marks, uint64_t seed, struct arena *arena, uint32_t *offering,
              struct launch_failure *why, struct err *err)
{
    struct search s = { .types = types, .marks = marks };
    const struct claim_node_spec *spec = &claim->spec.node;
    struct rng rng;

    if (requirements_from_expressions(arena, spec->requirements.items, spec->requirements.count,
                                      &s.requirements, err) < 0) {
        *why = (struct launch_failure){ LAUNCH_CREATE_ERROR, "InvalidRequirements" };
        return -1;
    }
    s.requests = requests_to_check(claim, arena);
    narrow(&s, arena);
    struct str uid = claim->object.meta.uid;
    rng_init(&rng, kv_hash_salted(uid.p, uid.len, seed));
    *offering = cheapest(&s, &rng);
    if (*offering != INSTANCE_TYPE_NONE)
        return 0;
    *why = (struct launch_failure){ .kind = LAUNCH_INSUFFICIENT_CAPACITY };
    return insufficient(&s, err);
}
