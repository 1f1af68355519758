/* Everything is a walk over two sorted lists in step. */
#include "api/resources.h"

struct walk {
    const struct resources *a, *b;
    uint32_t a_ix, b_ix;
    struct str name;
    const struct resource *in_a, *in_b; /* NULL: that list does not have it */
};

static bool walk_next(struct walk *w)
{
    bool a_left = w->a_ix < w->a->count, b_left = w->b_ix < w->b->count;
    if (!a_left && !b_left)
        return false;
    int order = a_left ? -1 : 1;
    if (a_left && b_left)
        order = str_cmp(w->a->items[w->a_ix].name, w->b->items[w->b_ix].name);
    w->name = order <= 0 ? w->a->items[w->a_ix].name : w->b->items[w->b_ix].name;
    w->in_a = order <= 0 ? &w->a->items[w->a_ix++] : NULL;
    w->in_b = order >= 0 ? &w->b->items[w->b_ix++] : NULL;
    return true;
}

static struct quantity amount(const struct resource *maybe)
{
    return maybe ? maybe->amount : quantity_of(0);
}

const struct resource *resources_find(const struct resources *r, struct str name)
{
    uint32_t low = 0, high = r->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int order = str_cmp(r->items[middle].name, name);
        if (order == 0)
            return &r->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

struct quantity resources_get(const struct resources *r, struct str name)
{
    return amount(resources_find(r, name));
}

int resources_merge(struct arena *arena, const struct resources *a, const struct resources *b,
                    struct resources *out, struct err *err)
{
    struct resource *items = arena_array(arena, struct resource, (size_t)a->count + b->count);
    uint32_t count = 0;
    struct walk w = { .a = a, .b = b };
    while (walk_next(&w)) {
        struct resource *sum = &items[count++];
        *sum = w.in_a ? *w.in_a : *w.in_b;
        if (w.in_a && w.in_b && quantity_add(w.in_a->amount, w.in_b->amount, &sum->amount, err) < 0)
            return err_wrap(err, "%.*s", STR_ARG(w.name));
    }
    *out = (struct resources){ items, count };
    return 0;
}

int resources_subtract(struct arena *arena, const struct resources *a, const struct resources *b,
                       struct resources *out, struct err *err)
{
    struct resource *items = arena_array(arena, struct resource, a->count);
    uint32_t count = 0;
    struct walk w = { .a = a, .b = b };
    while (walk_next(&w)) {
        if (!w.in_a)
            continue;
        struct resource *rest = &items[count++];
        *rest = *w.in_a;
        if (w.in_b && quantity_sub(w.in_a->amount, w.in_b->amount, &rest->amount, err) < 0)
            return err_wrap(err, "%.*s", STR_ARG(w.name));
    }
    *out = (struct resources){ items, count };
    return 0;
}

struct resources resources_max(struct arena *arena, const struct resources *a,
                               const struct resources *b)
{
    struct resource *items = arena_array(arena, struct resource, (size_t)a->count + b->count);
    uint32_t count = 0;
    struct walk w = { .a = a, .b = b };
    while (walk_next(&w)) {
        bool take_b = !w.in_a || (w.in_b && quantity_cmp(w.in_b->amount, w.in_a->amount) > 0);
        items[count++] = take_b ? *w.in_b : *w.in_a;
    }
    return (struct resources){ items, count };
}

struct resources resources_min(struct arena *arena, const struct resources *a,
                               const struct resources *b)
{
    struct resource *items =
        arena_array(arena, struct resource, a->count < b->count ? a->count : b->count);
    uint32_t count = 0;
    struct walk w = { .a = a, .b = b };
    while (walk_next(&w)) {
        if (w.in_a && w.in_b)
            items[count++] = quantity_cmp(w.in_b->amount, w.in_a->amount) < 0 ? *w.in_b : *w.in_a;
    }
    return (struct resources){ items, count };
}

static void explain(struct shortage *why, const struct walk *w)
{
    if (why)
        *why = (struct shortage){ w->name, amount(w->in_a), amount(w->in_b) };
}

bool resources_fit(const struct resources *request, const struct resources *total,
                   struct shortage *why)
{
    struct walk w = { .a = request, .b = total };
    while (walk_next(&w)) {
        bool overdrawn = w.in_b && quantity_cmp(w.in_b->amount, quantity_of(0)) < 0;
        bool short_of = w.in_a && quantity_cmp(w.in_a->amount, amount(w.in_b)) > 0;
        if (overdrawn || short_of) {
            explain(why, &w);
            return false;
        }
    }
    return true;
}

bool resources_exceed(const struct resources *usage, const struct resources *limits,
                      struct shortage *why)
{
    struct walk w = { .a = usage, .b = limits };
    while (walk_next(&w)) {
        if (w.in_b && quantity_cmp(amount(w.in_a), w.in_b->amount) > 0) {
            explain(why, &w);
            return true;
        }
    }
    return false;
}

json_mut *resources_json(struct json_build *b, const struct resources *r)
{
    json_mut *o = json_new_object(b);
    for (uint32_t i = 0; i < r->count; i++) {
        char text[QUANTITY_TEXT_MAX];
        quantity_format(r->items[i].amount, text);
        json_set(b, o, r->items[i].name, json_new_str(b, str_of(text)));
    }
    return o;
}
