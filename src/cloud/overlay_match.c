/* Which types and offerings of a pool an overlay matches, in word operations on bitsets.
 *
 * An overlay's requirements are held against three things per key: what the pool says (its name,
 * its template's labels), what the type says, and, where both do, their intersection. A pool says
 * one value, so the intersection with a type is that value if the type allows it and nothing
 * otherwise, and one bitset per key, the types that go along with the pool's value, decides for all
 * types at once:
 *
 *                         the overlay's requirement has the value   has it not
 *   types that go along   match                                     do not match
 *   types that do not     match if the label may be missing         likewise
 *
 * Keys of which the pool says nothing are the snapshot's own business (instance_types_narrow).
 *
 * Offerings differ by shape, so suiting an overlay is decided per shape. Here the overlay is the
 * side that may leave keys out: an offering whose zone it does not speak of suits it, as does one
 * that lacks a label the overlay asks for, if the type has it. Only a key of the offering that is
 * not well known must be spoken of.
 */
#include "cloud/overlay_inner.h"

#include "base/map.h"

/* --- what a pool says --- */

enum answer_kind {
    ANSWER_NONE,          /* the pool says nothing */
    ANSWER_CONTRADICTION, /* it says two things */
    ANSWER_OTHER,         /* a value that no overlay and no type can tell from others */
    ANSWER_VALUE,
};

struct overlay_answer {
    enum answer_kind kind;
    struct str value;
    /* Filled in by overlay_view_make: */
    struct bitset along; /* types that go along with it */
    bool of_offerings;   /* some offering has the key too */
};

static void say(struct overlay_answer *answer, struct str value)
{
    if (answer->kind == ANSWER_NONE)
        *answer = (struct overlay_answer){ .kind = ANSWER_VALUE, .value = value };
    else if (!str_eq(answer->value, value))
        answer->kind = ANSWER_CONTRADICTION;
}

/* Two labels may be one key: an old name and the current one. */
static struct overlay_answer pool_value(const struct overlay_pool *pool, struct str key)
{
    struct overlay_answer answer = { 0 };
    if (str_eqz(key, LABEL_NODEPOOL))
        say(&answer, pool->name);
    for (uint32_t i = 0; i < pool->labels.count; i++) {
        if (str_eq(label_normalise(pool->labels.items[i].key), key))
            say(&answer, pool->labels.items[i].value.p ? pool->labels.items[i].value : STR(""));
    }
    return answer;
}

/* The value itself only if somebody can tell it from another. */
static struct overlay_answer pool_answer(const struct overlay_key *key,
                                         const struct overlay_pool *pool)
{
    struct overlay_answer answer = pool_value(pool, key->key);
    if (answer.kind == ANSWER_VALUE && !key->bounded &&
        !str_sorted_has(key->values.items, key->values.count, answer.value) &&
        !instance_types_label(pool->types, key->key))
        answer.kind = ANSWER_OTHER;
    return answer;
}

static bool answer_equal(const struct overlay_answer *a, const struct overlay_answer *b)
{
    return a->kind == b->kind && (a->kind != ANSWER_VALUE || str_eq(a->value, b->value));
}

/* --- pools that get the same answer --- */

uint64_t overlay_pool_signature(const struct overlay_set *set, const struct overlay_pool *pool)
{
    uint64_t hash = set->key_count;
    for (uint32_t i = 0; i < set->key_count; i++) {
        struct overlay_answer answer = pool_answer(&set->keys[i], pool);
        hash = kv_mix64(hash + (uint64_t)answer.kind);
        if (answer.kind == ANSWER_VALUE)
            hash = kv_hash_salted(answer.value.p, answer.value.len, hash);
    }
    return hash;
}

static bool str_list_equal(struct str_list a, struct str_list b)
{
    if (a.count != b.count)
        return false;
    for (uint32_t i = 0; a.items != b.items && i < a.count; i++) {
        if (!str_eq(a.items[i], b.items[i]))
            return false;
    }
    return true;
}

bool overlay_pools_alike(const struct overlay_set *set, const struct overlay_pool *a,
                         const struct overlay_pool *b)
{
    if (!str_list_equal(a->well_known, b->well_known))
        return false;
    for (uint32_t i = 0; i < set->key_count; i++) {
        struct overlay_answer of_a = pool_answer(&set->keys[i], a),
                              of_b = pool_answer(&set->keys[i], b);
        if (!answer_equal(&of_a, &of_b))
            return false;
    }
    return true;
}

/* The same columns, perhaps through different handles. */
static bool same_types(const struct instance_types *a, const struct instance_types *b)
{
    return a == b || (a->type_count == b->type_count && a->labels == b->labels &&
                      a->shapes == b->shapes && a->prices == b->prices &&
                      a->resources == b->resources && a->offering_shape == b->offering_shape);
}

uint32_t overlay_classes(const struct overlay_set *set, const struct overlay_pool *pools,
                         uint32_t pool_count, uint32_t *class_of)
{
    struct map last_with = { 0 }; /* signature -> 1 + the last first pool of a class with it */
    uint32_t *before = kv_calloc(pool_count + 1, sizeof *before); /* the one before that; 0: none */
    uint32_t count = 0;
    for (uint32_t i = 0; i < pool_count; i++) {
        uint64_t signature = overlay_pool_signature(set, &pools[i]);
        uintptr_t last = 0;
        map_get(&last_with, signature, &last);
        uint32_t at = (uint32_t)last;
        while (at && !(same_types(pools[at - 1].types, pools[i].types) &&
                       overlay_pools_alike(set, &pools[at - 1], &pools[i])))
            at = before[at - 1];
        if (at) {
            class_of[i] = class_of[at - 1];
            continue;
        }
        class_of[i] = count++;
        before[i] = (uint32_t)last;
        map_put(&last_with, signature, i + 1);
    }
    map_done(&last_with);
    free(before);
    return count;
}

static int by_name(const void *a, const void *b)
{
    return str_cmp(((const struct overlay_pool *)a)->name, ((const struct overlay_pool *)b)->name);
}

const struct overlay_pool *overlay_pools_sorted(const struct overlay_pool *pools, uint32_t count,
                                                struct arena *arena)
{
    struct overlay_pool *sorted = arena_array(arena, struct overlay_pool, count);
    for (uint32_t i = 0; i < count; i++)
        sorted[i] = pools[i];
    qsort(sorted, count, sizeof *sorted, by_name);
    return sorted;
}

/* --- a view of a pool's types --- */

static struct bitset types_along(const struct overlay_answer *answer, struct str key,
                                 const struct instance_types *types, struct arena *arena)
{
    struct bitset along = bitset_new(arena, types->type_count);
    if (answer->kind != ANSWER_VALUE && answer->kind != ANSWER_OTHER)
        return along;
    struct requirement is_value = { .key = key, .values = { &answer->value, 1 } };
    bitset_fill(&along);
    instance_types_narrow(types, &is_value, true, &along);
    return along;
}

/* A node without the label satisfies it. */
static bool allows_absence(const struct requirement *r)
{
    enum requirement_op op = requirement_operator(r);
    return op == OP_NOT_IN || op == OP_DOES_NOT_EXIST;
}

/* A key that whoever wants the offering has to speak of. */
static bool must_be_spoken_of(const struct requirement *r, struct str_list well_known)
{
    return !allows_absence(r) && !str_sorted_has(well_known.items, well_known.count, r->key);
}

static bool shapes_have(const struct instance_types *types, struct str key)
{
    for (uint32_t i = 0; i < types->shape_count; i++) {
        if (requirements_find(&types->shapes[i].requirements, key))
            return true;
    }
    return false;
}

static struct bitset bound_shapes(const struct overlay_pool *pool, struct arena *arena)
{
    struct bitset bound = bitset_new(arena, pool->types->shape_count);
    for (uint32_t i = 0; i < pool->types->shape_count; i++) {
        const struct requirements *shape = &pool->types->shapes[i].requirements;
        for (uint32_t k = 0; k < shape->count; k++) {
            if (must_be_spoken_of(&shape->items[k], pool->well_known))
                bitset_set(&bound, i);
        }
    }
    return bound;
}

struct overlay_view overlay_view_make(const struct overlay_set *set,
                                      const struct overlay_pool *pool, struct arena *arena)
{
    struct overlay_answer *answers = arena_array(arena, struct overlay_answer, set->key_count);
    for (uint32_t i = 0; i < set->key_count; i++) {
        answers[i] = pool_answer(&set->keys[i], pool);
        if (answers[i].kind != ANSWER_NONE)
            answers[i].along = types_along(&answers[i], set->keys[i].key, pool->types, arena);
        answers[i].of_offerings = shapes_have(pool->types, set->keys[i].key);
    }
    return (struct overlay_view){ .set = set,
                                  .types = pool->types,
                                  .answers = answers,
                                  .bound = bound_shapes(pool, arena),
                                  .well_known = pool->well_known };
}

/* --- matching --- */

struct overlay_match overlay_match_new(const struct overlay_view *view, struct arena *arena)
{
    return (struct overlay_match){
        .types = bitset_new(arena, view->types->type_count),
        .shapes = bitset_new(arena, view->types->shape_count),
        .offerings = bitset_new(arena, view->types->offering_count),
        .suiting = bitset_new(arena, view->types->offering_count),
    };
}

/* The table at the top of the file. */
static void narrow_by_answer(const struct overlay_answer *answer, const struct requirement *r,
                             struct bitset *types)
{
    bool has = answer->kind != ANSWER_CONTRADICTION && requirement_has(r, answer->value);
    bool may_be_missing = allows_absence(r);
    if (has && !may_be_missing)
        bitset_and(types, &answer->along);
    else if (!has && may_be_missing)
        bitset_andnot(types, &answer->along);
    else if (!has)
        bitset_zero(types);
}

static bool find_types(const struct overlay_view *view, const struct overlay *o,
                       struct bitset *types)
{
    bitset_fill(types);
    for (uint32_t i = 0; i < o->requirements.count && bitset_any(types); i++) {
        const struct requirement *r = &o->requirements.items[i];
        const struct overlay_answer *answer = &view->answers[o->keys[i]];
        if (answer->kind == ANSWER_NONE)
            instance_types_narrow(view->types, r, false, types);
        else
            narrow_by_answer(answer, r, types);
    }
    return bitset_any(types);
}

static bool speaks_of_all(const struct overlay_view *view, const struct overlay *o, uint32_t shape)
{
    const struct requirements *has = &view->types->shapes[shape].requirements;
    for (uint32_t i = 0; i < has->count; i++) {
        if (must_be_spoken_of(&has->items[i], view->well_known) &&
            !requirements_find(&o->requirements, has->items[i].key))
            return false;
    }
    return true;
}

static bool asks_about_offerings(const struct overlay_view *view, const struct overlay *o)
{
    for (uint32_t i = 0; i < o->requirements.count; i++) {
        if (view->answers[o->keys[i]].of_offerings)
            return true;
    }
    return false;
}

static bool find_shapes(const struct overlay_view *view, const struct overlay *o,
                        struct bitset *shapes)
{
    uint32_t doubtful = asks_about_offerings(view, o) ? view->types->shape_count : 0;
    bitset_fill(shapes);
    for (uint32_t i = 0; i < doubtful; i++) {
        if (!requirements_intersects(&view->types->shapes[i].requirements, &o->requirements, NULL))
            bitset_clear(shapes, i);
    }
    bitset_each(&view->bound, i) {
        if (!speaks_of_all(view, o, i))
            bitset_clear(shapes, i);
    }
    return bitset_any(shapes);
}

/* dst |= the members of src in [from, to). Returns how many there are. */
static uint32_t add_range(struct bitset *dst, const struct bitset *src, uint32_t from, uint32_t to)
{
    uint32_t count = 0;
    for (uint32_t w = from / 64; (uint64_t)w * 64 < to; w++) {
        uint64_t bits = src->words[w];
        if (w == from / 64)
            bits &= UINT64_MAX << (from % 64);
        if (to - w * 64 < 64)
            bits &= (UINT64_C(1) << (to % 64)) - 1;
        dst->words[w] |= bits;
        count += (uint32_t)__builtin_popcountll(bits);
    }
    return count;
}

/* The offerings of these types and shapes; a type without any is no match. */
static void find_offerings(const struct instance_types *s, struct overlay_match *m)
{
    bitset_zero(&m->suiting);
    bitset_each(&m->shapes, i)
        posting_or(&m->suiting, &s->shapes[i].offerings);
    bitset_each(&m->types, t) {
        uint32_t count =
            add_range(&m->offerings, &m->suiting, s->offering_start[t], s->offering_start[t + 1]);
        m->offering_count += count;
        m->type_count += count > 0;
        if (count == 0)
            bitset_clear(&m->types, t);
    }
}

void overlay_match_find(const struct overlay_view *view, const struct overlay *o,
                        struct overlay_match *out)
{
    out->type_count = out->offering_count = 0;
    bitset_zero(&out->offerings);
    if (find_types(view, o, &out->types) && find_shapes(view, o, &out->shapes))
        find_offerings(view->types, out);
    else
        bitset_zero(&out->types);
}
