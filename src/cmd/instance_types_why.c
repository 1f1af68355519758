/* Why a type is out of a pool, and in which order those that are in are shown. */
#include "cmd/instance_types_inner.h"

#include <string.h>

/* --- why --- */

#define VALUES_SHOWN 6

/* "has 2", "has a, b, c", "does not have it". */
static void format_has(const struct requirement *r, struct buf *out)
{
    if (r->complement) {
        buf_addz(out, "has ");
        requirement_format(r, out);
        return;
    }
    if (!r->values.count) {
        buf_addz(out, "does not have it");
        return;
    }
    uint32_t shown = r->values.count <= VALUES_SHOWN ? r->values.count : VALUES_SHOWN;
    for (uint32_t i = 0; i < shown; i++)
        buf_addf(out, "%s%.*s", i ? ", " : "has ", STR_ARG(r->values.items[i]));
    if (shown < r->values.count)
        buf_addf(out, " and %u others", r->values.count - shown);
}

/* NotIn and DoesNotExist agree with a label that is not there. */
static bool suits(const struct requirement *of_type, const struct requirement *wanted)
{
    struct requirements a = { of_type, 1 }, b = { wanted, 1 };
    return requirements_intersects(&a, &b, NULL);
}

/* The first key that excludes the type, and of what is asked about it the first that does so alone.
 * Only together they may exclude a type that has several values: then it is shown as one. */
static bool explain_requirements(const struct pool_view *view, uint32_t type, struct buf *out)
{
    for (uint32_t i = 0; i < view->wanted.count; i++) {
        const struct requirement *wanted = &view->wanted.items[i];
        const struct requirement *has = instance_type_requirement(view->types, type, wanted->key);
        if (!has || suits(has, wanted))
            continue;
        const struct ask *culprit = NULL;
        vec_each(&view->asks, struct ask, ask) {
            if (!culprit && str_eq(ask->requirement.key, wanted->key) &&
                !suits(has, &ask->requirement))
                culprit = ask;
        }
        if (culprit)
            buf_add(out, culprit->text);
        else
            requirement_format(wanted, out);
        buf_addz(out, ": ");
        format_has(has, out);
        return true;
    }
    return false;
}

#define OFFERINGS_SHOWN 4

/* It does not go with the node class; or offerings are wanted but not available now; or there are
 * none such, and then what was wanted of them. */
static void explain_offerings(const struct pool_view *view, uint32_t type, struct buf *out)
{
    const struct instance_types *types = view->types;
    uint32_t count = 0;
    const struct catalogue_machine *machine =
        view->of_ec2 ? catalogue_machine_find(types->names[type]) : NULL;
    const char *mismatch = machine ? catalogue_mismatch(view->maybe_class, machine) : NULL;
    if (mismatch) {
        buf_addz(out, mismatch);
        return;
    }
    for (uint32_t o = types->offering_start[type]; o < types->offering_start[type + 1]; o++) {
        const struct offering_shape *shape = &types->shapes[types->offering_shape[o]];
        if (!bitset_test(&view->shapes, types->offering_shape[o]))
            continue;
        if (count < OFFERINGS_SHOWN)
            buf_addf(out, "%s%.*s in %.*s",
                     count ? ", " : "none available: ", STR_ARG(shape->capacity_type),
                     STR_ARG(shape->zone));
        count++;
    }
    if (count > OFFERINGS_SHOWN)
        buf_addf(out, " and %u others", count - OFFERINGS_SHOWN);
    if (count)
        return;
    if (types->offering_start[type] == types->offering_start[type + 1]) {
        buf_addz(out, "it has none");
        return;
    }
    const struct requirements *keys =
        &types->shapes[types->offering_shape[types->offering_start[type]]].requirements;
    size_t start = out->len;
    vec_each(&view->asks, struct ask, ask) {
        if (requirements_find(keys, ask->requirement.key))
            buf_addf(out, "%s%.*s", out->len > start ? " and " : "none with ", STR_ARG(ask->text));
    }
    if (out->len == start)
        buf_addz(out, "none that suits");
}

void min_values_format(const struct min_values *m, struct buf *out)
{
    buf_addf(out, "%.*s: %u of at least %lld", STR_ARG(m->key), m->have, (long long)m->want);
}

struct exclusion exclusion_of(const struct pool_view *view, uint32_t type, struct arena *arena)
{
    AUTO_BUF text = { 0 };
    const char *reason = "requirements";

    if (view->impossible.len) {
        buf_add(&text, view->impossible);
    } else if (bitset_test(&view->fitting, type)) {
        reason = "minValues";
        for (uint32_t i = 0; i < view->min_values.count; i++) {
            const struct min_values *m = &view->min_values.items[i];
            if (m->have >= m->want)
                continue;
            buf_addz(&text, text.len ? "; " : "");
            min_values_format(m, &text);
        }
    } else if (!explain_requirements(view, type, &text)) {
        reason = "offering";
        explain_offerings(view, type, &text);
    }
    return (struct exclusion){ reason, arena_str(arena, buf_str(&text)) };
}

/* --- order --- */

uint32_t cheapest_offering(const struct pool_view *view, uint32_t type, struct str capacity_type)
{
    const struct instance_types *types = view->types;
    uint32_t best = INSTANCE_TYPE_NONE;
    for (uint32_t o = types->offering_start[type]; o < types->offering_start[type + 1]; o++) {
        uint32_t shape = types->offering_shape[o];
        if (!bitset_test(&types->available, o) || !bitset_test(&view->shapes, shape) ||
            (capacity_type.len && !str_eq(types->shapes[shape].capacity_type, capacity_type)))
            continue;
        if (best == INSTANCE_TYPE_NONE ||
            instance_types_price(types, o) < instance_types_price(types, best))
            best = o;
    }
    return best;
}

bool offering_is_priced(const struct instance_types *types, uint32_t offering)
{
    return types->priced.words && bitset_test(&types->priced, offering);
}

enum sort_by sort_by_of(const char *word)
{
    if (strcmp(word, "name") == 0)
        return SORT_NAME;
    if (strcmp(word, "cpu") == 0)
        return SORT_CPU;
    return strcmp(word, "memory") == 0 ? SORT_MEMORY : SORT_PRICE;
}

static int64_t sort_key(const struct pool_view *view, uint32_t type, enum sort_by by)
{
    const struct resource_column *column = NULL;
    switch (by) {
    case SORT_NAME:
        return 0;
    case SORT_PRICE: {
        uint32_t o = cheapest_offering(view, type, STR(""));
        return o == INSTANCE_TYPE_NONE ? INT64_MAX : instance_types_price(view->types, o);
    }
    case SORT_CPU:
        column = instance_types_resource(view->types, STR("cpu"));
        break;
    case SORT_MEMORY:
        column = instance_types_resource(view->types, STR("memory"));
        break;
    }
    return column ? column->capacity[type] : 0;
}

struct sorted_type {
    int64_t key;
    uint32_t type; /* types are in the order of names */
};

static int by_key(const void *a, const void *b)
{
    const struct sorted_type *x = a, *y = b;
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    return (x->type > y->type) - (x->type < y->type);
}

uint32_t *types_sorted(const struct pool_view *view, const struct bitset *set, enum sort_by by,
                       struct arena *arena, uint32_t *count)
{
    uint32_t n = bitset_popcount(set), i = 0;
    struct sorted_type *items = arena_array(arena, struct sorted_type, n);
    uint32_t *types = arena_array(arena, uint32_t, n);
    bitset_each(set, t)
        items[i++] = (struct sorted_type){ sort_key(view, t, by), t };
    if (n)
        qsort(items, n, sizeof *items, by_key);
    for (i = 0; i < n; i++)
        types[i] = items[i].type;
    *count = n;
    return types;
}
