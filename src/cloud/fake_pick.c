/* Which offering a claim gets. Types are narrowed by the claim's requirements, offerings by shape,
 * availability, room for the requests and marks; what is left is a heap with the cheapest on top. A
 * launch usually takes the first, so nothing is sorted.
 *
 * A key that types say nothing about (a label of the user's own) excludes none of them: the claim
 * itself is what gives the node such a label.
 */
#include "cloud/fake_node.h"

#include "api/resources.h"
#include "base/vec.h"

struct search {
    const struct instance_types *types;
    struct requirements requirements;
    struct resources requests;
    struct unavailable *marks;
    struct bitset type_set, shape_set;
    /* Offerings of a type lie together and mostly have its row: the last answer serves again. */
    uint32_t row;
    bool row_fits;
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

static bool row_is_large_enough(const struct search *s, uint32_t row)
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

static bool fits(struct search *s, uint32_t row)
{
    if (row != s->row)
        s->row_fits = row_is_large_enough(s, row);
    s->row = row;
    return s->row_fits;
}

/* --- the heap --- */

static bool is_before(const struct fake_candidate *a, const struct fake_candidate *b)
{
    if (a->price != b->price)
        return a->price < b->price;
    return a->tie != b->tie ? a->tie < b->tie : a->offering < b->offering;
}

static void sift_down(struct fake_offerings *o, uint32_t at)
{
    for (;;) {
        uint32_t first = at;
        for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < o->count; child++)
            if (is_before(&o->heap[child], &o->heap[first]))
                first = child;
        if (first == at)
            return;
        struct fake_candidate moved = o->heap[at];
        o->heap[at] = o->heap[first];
        o->heap[first] = moved;
        at = first;
    }
}

bool fake_offerings_take(struct fake_offerings *o, uint32_t *offering)
{
    if (o->count == 0)
        return false;
    *offering = o->heap[0].offering;
    o->heap[0] = o->heap[--o->count];
    sift_down(o, 0);
    return true;
}

/* --- the search --- */

static bool suits(struct search *s, uint32_t o, struct fake_offerings *out)
{
    const struct instance_types *types = s->types;
    if (!bitset_test(&types->available, o) || !bitset_test(&s->shape_set, types->offering_shape[o]))
        return false;
    out->offered++;
    if (!fits(s, types->offering_row[o]))
        return false;
    out->fitting++;
    return !fake_offering_is_marked(types, o, s->marks);
}

static void collect(struct search *s, uint64_t salt, struct arena *arena,
                    struct fake_offerings *out)
{
    VEC(struct fake_candidate) found = { 0 };

    bitset_each(&s->type_set, t) {
        for (uint32_t o = s->types->offering_start[t]; o < s->types->offering_start[t + 1]; o++) {
            if (!suits(s, o, out))
                continue;
            struct fake_candidate c = { .price = instance_types_price(s->types, o),
                                        .tie = kv_mix64(salt + o),
                                        .offering = o };
            vec_push(&found, c);
        }
    }
    out->count = (uint32_t)found.count;
    out->heap = arena_array(arena, struct fake_candidate, found.count);
    if (found.count)
        memcpy(out->heap, found.items, found.count * sizeof *found.items);
    vec_done(&found);
    for (uint32_t at = out->count / 2; at-- > 0;)
        sift_down(out, at);
}

int fake_offerings_find(struct arena *arena, const struct instance_types *types,
                        const struct nodeclaim *claim, struct unavailable *marks, uint64_t seed,
                        struct fake_offerings *out, struct launch_failure *why, struct err *err)
{
    struct search s = { .types = types, .marks = marks, .row = UINT32_MAX };
    const struct claim_node_spec *spec = &claim->spec.node;

    if (requirements_from_expressions(arena, spec->requirements.items, spec->requirements.count,
                                      &s.requirements, err) < 0) {
        *why = (struct launch_failure){ LAUNCH_CREATE_ERROR, "InvalidRequirements" };
        return -1;
    }
    s.requests = requests_to_check(claim, arena);
    narrow(&s, arena);
    *out = (struct fake_offerings){ .types = types,
                                    .requirements = s.requirements,
                                    .type_count = bitset_popcount(&s.type_set) };
    struct str uid = claim->object.meta.uid;
    collect(&s, kv_hash_salted(uid.p, uid.len, seed), arena, out);
    return 0;
}

int fake_offerings_insufficient(const struct fake_offerings *o, struct launch_failure *why,
                                struct err *err)
{
    *why = (struct launch_failure){ .kind = LAUNCH_INSUFFICIENT_CAPACITY };
    if (o->type_count == 0) {
        AUTO_BUF text = { 0 };
        requirements_format(&o->requirements, &text);
        return err_set(err, ERR_CAPACITY, "none of %u instance types meets %s",
                       o->types->type_count, buf_str(&text).p);
    }
    if (o->offered == 0)
        return err_set(err, ERR_CAPACITY,
                       "%u instance types meet the requirements, and none has an offering",
                       o->type_count);
    if (o->fitting == 0)
        return err_set(err, ERR_CAPACITY,
                       "%u instance types meet the requirements, and none is large enough",
                       o->type_count);
    return err_set(err, ERR_CAPACITY, "there is no capacity in any of %u offerings", o->fitting);
}
