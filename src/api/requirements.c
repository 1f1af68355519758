/* Sets are short (a pool has a handful of keys, an instance type some thirty) and sorted, so two
 * sets are compared by walking both in step, and built by insertion.
 */
#include "api/requirements.h"

#include "base/map.h"

#include <inttypes.h>

/* --- building --- */

/* The place of the key: where it is, or where it belongs. */
static uint32_t lower_bound(const struct requirement *items, uint32_t count, struct str key)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(items[middle].key, key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct builder { /* room for every requirement that will be put */
    struct arena *arena;
    struct requirement *items;
    uint32_t count;
};

static struct builder builder_start(struct arena *arena, size_t room)
{
    return (struct builder){ arena, arena_array(arena, struct requirement, room), 0 };
}

static void builder_put(struct builder *b, const struct requirement *r)
{
    uint32_t at = lower_bound(b->items, b->count, r->key);
    struct requirement *slot = &b->items[at];
    if (at < b->count && str_eq(slot->key, r->key)) {
        *slot = requirement_intersection(b->arena, slot, r);
        return;
    }
    memmove(slot + 1, slot, (b->count - at) * sizeof *slot);
    *slot = *r;
    b->count++;
}

static int builder_put_expressions(struct builder *b, const struct expression *items,
                                   uint32_t count, struct err *err)
{
    for (uint32_t i = 0; i < count; i++) {
        struct requirement r;
        if (requirement_from_expression(b->arena, &items[i], &r, err) < 0)
            return -1;
        builder_put(b, &r);
    }
    return 0;
}

static void builder_put_labels(struct builder *b, const struct str_map *labels)
{
    for (uint32_t i = 0; i < labels->count; i++) {
        struct str_list value = { &labels->items[i].value, 1 };
        struct requirement r = requirement_in(b->arena, labels->items[i].key, value);
        builder_put(b, &r);
    }
}

static struct requirements builder_set(const struct builder *b)
{
    return (struct requirements){ b->items, b->count };
}

int requirements_from_expressions(struct arena *arena, const struct expression *items,
                                  uint32_t count, struct requirements *out, struct err *err)
{
    struct builder b = builder_start(arena, count);
    if (builder_put_expressions(&b, items, count, err) < 0)
        return -1;
    *out = builder_set(&b);
    return 0;
}

struct requirements requirements_from_labels(struct arena *arena, const struct str_map *labels)
{
    struct builder b = builder_start(arena, labels->count);
    builder_put_labels(&b, labels);
    return builder_set(&b);
}

int requirements_from_pod(struct arena *arena, const struct str_map *node_selector,
                          const struct node_selector_term *maybe_required,
                          const struct node_selector_term *maybe_preferred,
                          struct requirements *out, struct err *err)
{
    const struct node_selector_term *terms[] = { maybe_required, maybe_preferred };
    size_t room = node_selector->count;
    for (size_t i = 0; i < KV_COUNT_OF(terms); i++)
        room += terms[i] ? terms[i]->expressions.count : 0;

    struct builder b = builder_start(arena, room);
    builder_put_labels(&b, node_selector);
    for (size_t i = 0; i < KV_COUNT_OF(terms); i++) {
        if (!terms[i])
            continue;
        if (terms[i]->fields.count)
            return err_set(err, ERR_INVALID, "node affinity with matchFields is not supported");
        if (builder_put_expressions(&b, terms[i]->expressions.items, terms[i]->expressions.count,
                                    err) < 0)
            return err_wrap(err, "node affinity");
    }
    *out = builder_set(&b);
    return 0;
}

struct requirements requirements_merge(struct arena *arena, const struct requirements *a,
                                       const struct requirements *b)
{
    struct builder all = builder_start(arena, (size_t)a->count + b->count);
    uint32_t i = 0, j = 0;
    while (i < a->count || j < b->count) {
        int order = i < a->count ? -1 : 1;
        if (i < a->count && j < b->count)
            order = str_cmp(a->items[i].key, b->items[j].key);
        struct requirement *next = &all.items[all.count++];
        *next = order <= 0 ? a->items[i] : b->items[j];
        if (order == 0)
            *next = requirement_intersection(arena, &a->items[i], &b->items[j]);
        i += order <= 0;
        j += order >= 0;
    }
    return builder_set(&all);
}

struct requirements requirements_add(struct arena *arena, const struct requirements *set,
                                     const struct requirement *r)
{
    struct requirements one = { r, 1 };
    return requirements_merge(arena, set, &one);
}

/* --- asking --- */

const struct requirement *requirements_find(const struct requirements *set, struct str key)
{
    uint32_t at = lower_bound(set->items, set->count, key);
    return at < set->count && str_eq(set->items[at].key, key) ? &set->items[at] : NULL;
}

struct requirement requirements_get(const struct requirements *set, struct str key)
{
    const struct requirement *found = requirements_find(set, key);
    return found ? *found : (struct requirement){ .key = key, .complement = true };
}

/* A node without the label satisfies it. */
static bool allows_absence(const struct requirement *r)
{
    enum requirement_op op = requirement_operator(r);
    return op == OP_NOT_IN || op == OP_DOES_NOT_EXIST;
}

static bool mismatch(struct mismatch *why, enum mismatch_why kind, const struct requirement *node,
                     const struct requirement *incoming)
{
    if (why)
        *why = (struct mismatch){ kind, node, incoming };
    return false;
}

bool requirements_intersects(const struct requirements *node, const struct requirements *incoming,
                             struct mismatch *why)
{
    for (uint32_t i = 0, j = 0; i < node->count && j < incoming->count;) {
        const struct requirement *a = &node->items[i], *b = &incoming->items[j];
        int order = str_cmp(a->key, b->key);
        if (order == 0 && !requirement_has_intersection(a, b) &&
            !(allows_absence(a) && allows_absence(b)))
            return mismatch(why, MISMATCH_NO_INTERSECTION, a, b);
        i += order <= 0;
        j += order >= 0;
    }
    return true;
}

bool requirements_compatible(const struct requirements *node, const struct requirements *incoming,
                             struct str_list may_be_undefined, struct mismatch *why)
{
    for (uint32_t i = 0; i < incoming->count; i++) {
        const struct requirement *r = &incoming->items[i];
        if (!requirements_find(node, r->key) && !allows_absence(r) &&
            !str_sorted_has(may_be_undefined.items, may_be_undefined.count, r->key))
            return mismatch(why, MISMATCH_UNDEFINED, NULL, r);
    }
    return requirements_intersects(node, incoming, why);
}

static struct str name_of(struct str key)
{
    struct str prefix, name;
    return str_cut(key, '/', &prefix, &name) ? name : key;
}

struct nearest {
    struct str key;
    size_t distance;
};

static void consider(struct nearest *best, struct str wanted, struct str candidate)
{
    size_t limit = wanted.len / 5 + 1; /* a fifth of the letters wrong is still a misspelling */
    size_t distance = str_distance(wanted, candidate, limit);
    if (distance > limit && str_eq(name_of(wanted), name_of(candidate)))
        distance = limit + 1; /* the right name under a wrong prefix: if nothing is nearer */
    else if (distance > limit)
        return;
    if (!best->key.p || distance < best->distance)
        *best = (struct nearest){ candidate, distance };
}

struct str requirements_nearest_key(const struct requirements *node, struct str_list known,
                                    struct str key)
{
    struct nearest best = { STR_NONE, 0 };
    for (uint32_t i = 0; i < known.count; i++)
        consider(&best, key, known.items[i]);
    for (uint32_t i = 0; i < node->count; i++)
        consider(&best, key, node->items[i].key);
    return best.key;
}

/* --- writing --- */

static void push(struct expression *items, uint32_t *count, const struct requirement *r,
                 enum requirement_op op, struct str_list values)
{
    items[(*count)++] = (struct expression){
        .key = r->key, .op = (uint8_t)op, .values = values, .min_values = r->min_values
    };
}

static struct str_list integer_value(struct arena *arena, int64_t n)
{
    struct str *value = arena_new(arena, struct str);
    *value = arena_strf(arena, "%" PRId64, n);
    return (struct str_list){ value, 1 };
}

expression_list requirements_to_expressions(struct arena *arena, const struct requirements *set)
{
    struct expression *items = arena_array(arena, struct expression, (size_t)set->count * 3);
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        const struct requirement *r = &set->items[i];
        bool bounded = r->gte.set || r->lte.set;
        /* No label is negative, and the API refuses to hear of one. */
        if (r->gte.set)
            push(items, &count, r, OP_GTE,
                 integer_value(arena, r->gte.value > 0 ? r->gte.value : 0));
        if (r->lte.set)
            push(items, &count, r, OP_LTE, integer_value(arena, r->lte.value));
        if (!bounded || r->values.count)
            push(items, &count, r, requirement_operator(r), r->values);
    }
    return (expression_list){ items, count };
}

void requirements_format(const struct requirements *set, struct buf *out)
{
    const char *comma = "";
    for (uint32_t i = 0; i < set->count; i++) {
        if (str_eq(set->items[i].key, STR(LABEL_HOSTNAME)))
            continue;
        buf_addz(out, comma);
        requirement_format(&set->items[i], out);
        comma = ", ";
    }
}

void requirements_format_mismatch(const struct mismatch *m, const struct requirements *node,
                                  struct str_list known, struct buf *out)
{
    switch (m->why) {
    case MISMATCH_NONE:
        return;
    case MISMATCH_UNDEFINED: {
        struct str key = m->incoming->key;
        struct str near = requirements_nearest_key(node, known, key);
        buf_addf(out, "label %.*s has no known values", STR_ARG(key));
        if (near.p)
            buf_addf(out, "; did you mean %.*s?", STR_ARG(near));
        return;
    }
    case MISMATCH_NO_INTERSECTION:
        requirement_format(m->node, out);
        buf_addz(out, " and ");
        requirement_format(m->incoming, out);
        buf_addz(out, " have nothing in common");
        return;
    }
    KV_UNREACHABLE();
}

/* --- minValues --- */

/* Adds the type's values for the key. A type that takes any value, or lacks the label, offers
 * none to count. */
static void count_values(struct str_table *seen, const struct requirements *type, struct str key)
{
    const struct requirement *r = requirements_find(type, key);
    for (uint32_t i = 0; r && !r->complement && i < r->values.count; i++)
        str_table_put(seen, r->values.items[i], NULL);
}

struct min_values_result requirements_min_values(struct arena *arena,
                                                 const struct requirements *set,
                                                 const struct requirements *types,
                                                 uint32_t type_count)
{
    struct min_values *keys = arena_array(arena, struct min_values, set->count);
    uint32_t count = 0, needed = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        if (set->items[i].min_values.set)
            keys[count++] = (struct min_values){ .key = set->items[i].key,
                                                 .want = set->items[i].min_values.value };
    }
    struct str_table *seen = arena_array(arena, struct str_table, count);
    uint32_t short_count = count;
    while (short_count > 0 && needed < type_count) {
        short_count = 0;
        for (uint32_t i = 0; i < count; i++) {
            count_values(&seen[i], &types[needed], keys[i].key);
            keys[i].have = seen[i].live_count;
            short_count += keys[i].have < keys[i].want;
        }
        needed++;
    }
    for (uint32_t i = 0; i < count; i++)
        str_table_done(&seen[i]);
    return (struct min_values_result){ short_count == 0, needed, { keys, count } };
}

struct requirements requirements_relax(struct arena *arena, const struct requirements *set,
                                       const struct min_values_result *result)
{
    struct requirement *items = arena_array(arena, struct requirement, set->count);
    for (uint32_t i = 0, k = 0; i < set->count; i++) {
        items[i] = set->items[i];
        if (!items[i].min_values.set)
            continue;
        const struct min_values *found = &result->keys.items[k++];
        KV_ASSERT(str_eq(found->key, items[i].key));
        if (found->have < found->want)
            items[i].min_values = (struct maybe_int){ found->have, found->have > 0 };
    }
    return (struct requirements){ items, set->count };
}

/* --- finding mistakes --- */

struct parsed { /* one expression */
    struct requirement r;
    bool valid;
    bool absence_ok; /* as written: In of nothing is not DoesNotExist here */
};

/* `left` is what all requirements on a key allow together; without the label if `absence_ok`. */
static bool impossible(const struct requirement *left, bool absence_ok, struct contradiction *out)
{
    int64_t have = requirement_possible_count(left);
    bool too_few = left->min_values.set && have < left->min_values.value;
    if ((have > 0 || absence_ok) && !too_few)
        return false;
    out->why = have > 0 || absence_ok ? CONTRADICTION_MIN_VALUES : CONTRADICTION_VALUES;
    out->have = have;
    out->want = left->min_values.value;
    return true;
}

/* Two of them alone, or one with itself. */
static bool pair_impossible(struct arena *arena, const struct parsed *a, const struct parsed *b)
{
    struct contradiction ignored;
    struct requirement both = requirement_intersection(arena, &a->r, &b->r);
    return impossible(&both, a->absence_ok && b->absence_ok, &ignored);
}

/* Whom to name beside `at`: itself if it is impossible alone, else the first that it cannot stand
 * beside, else (it takes three) the first on that key. */
static uint32_t blame(struct arena *arena, const struct parsed *items, uint32_t at)
{
    if (pair_impossible(arena, &items[at], &items[at]))
        return at;
    uint32_t first = at;
    for (uint32_t i = 0; i < at; i++) {
        if (!items[i].valid || !str_eq(items[i].r.key, items[at].r.key))
            continue;
        if (pair_impossible(arena, &items[i], &items[at]))
            return i;
        if (first == at)
            first = i;
    }
    return first;
}

static bool find_contradiction(struct arena *arena, const struct parsed *items, uint32_t first,
                               uint32_t count, struct contradiction *out)
{
    struct requirement left = items[first].r;
    bool absence_ok = true;
    for (uint32_t i = first; i < count; i++) {
        if (!items[i].valid || !str_eq(items[i].r.key, left.key))
            continue;
        left = requirement_intersection(arena, &left, &items[i].r);
        absence_ok = absence_ok && items[i].absence_ok;
        if (impossible(&left, absence_ok, out)) {
            out->key = left.key;
            out->at = i;
            out->with = blame(arena, items, i);
            return true;
        }
    }
    return false;
}

struct contradictions requirements_contradictions(struct arena *arena,
                                                  const struct expression *items, uint32_t count)
{
    struct parsed *parsed = arena_array(arena, struct parsed, count);
    struct contradiction *found = arena_array(arena, struct contradiction, count);
    struct str_table seen = { 0 };
    uint32_t found_count = 0;
    for (uint32_t i = 0; i < count; i++) {
        parsed[i].valid = requirement_from_expression(arena, &items[i], &parsed[i].r, NULL) == 0;
        parsed[i].absence_ok = items[i].op == OP_NOT_IN || items[i].op == OP_DOES_NOT_EXIST;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!parsed[i].valid || str_table_has(&seen, parsed[i].r.key))
            continue;
        str_table_put(&seen, parsed[i].r.key, NULL);
        found_count += find_contradiction(arena, parsed, i, count, &found[found_count]);
    }
    str_table_done(&seen);
    return (struct contradictions){ found, found_count };
}
