/* What labels must be, before it is one set per key.
 *
 * A set of requirements has one item per key, and where two meet it keeps their intersection. Two
 * things get lost in that, and pods must not be placed by what is left:
 *
 *  - an intersection without members is the same as "the label is not there";
 *  - Exists beside NotIn is the same as NotIn, which a node without the label satisfies.
 *
 * The first is a contradiction: no node will do. For the second the values that the label can have at
 * all are spelt out.
 */
#include "sched/model_groups.h"
#include "sched/model_memo.h"
#include "sched/words.h"

struct demands demands_of_labels(struct arena *arena, const struct str_map *labels)
{
    struct requirement *items = arena_array(arena, struct requirement, labels->count);
    for (uint32_t i = 0; i < labels->count; i++)
        items[i] = requirement_in(arena, labels->items[i].key,
                                  (struct str_list){ &labels->items[i].value, 1 });
    return (struct demands){ items, labels->count };
}

int demands_of_term(struct arena *arena, const struct node_selector_term *term, struct demands *out,
                    struct err *err)
{
    uint32_t count = term->expressions.count;
    struct requirement *items = arena_array(arena, struct requirement, count);
    for (uint32_t i = 0; i < count; i++) {
        if (requirement_from_expression(arena, &term->expressions.items[i], &items[i], err) < 0)
            return -1;
    }
    *out = (struct demands){ items, count };
    return 0;
}

struct demands demands_both(struct arena *arena, struct demands a, struct demands b)
{
    if (!a.count || !b.count)
        return a.count ? a : b;
    struct requirement *items = arena_array(arena, struct requirement, (size_t)a.count + b.count);
    memcpy(items, a.items, a.count * sizeof *items);
    memcpy(items + a.count, b.items, b.count * sizeof *items);
    return (struct demands){ items, a.count + b.count };
}

static int contradiction(const struct requirement *a, const struct requirement *b, struct err *err)
{
    AUTO_BUF text = { 0 };
    add_requirement(&text, a);
    buf_addz(&text, " and ");
    add_requirement(&text, b);
    return err_set(err, ERR_INVALID, "%.*s have nothing in common", STR_ARG(buf_str(&text)));
}

/* Spells out a NotIn whose label must be there. */
static int make_present(struct compile *c, struct requirement *r, struct err *err)
{
    struct str_list known = label_values(c, r->key, NULL);
    struct str *values = arena_array(&c->scratch, struct str, known.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < known.count; i++) {
        if (requirement_has(r, known.items[i]))
            values[count++] = known.items[i];
    }
    if (!count)
        return err_set(err, ERR_INVALID, "label %s has no value that would do", NAME_SHOWN(r->key));
    *r = requirement_in(&c->scratch, r->key, (struct str_list){ values, count });
    return 0;
}

int demands_settle(struct compile *c, struct demands d, struct requirements *out, struct err *err)
{
    struct requirement *set = arena_array(&c->scratch, struct requirement, d.count);
    bool *must = arena_array(&c->scratch, bool, d.count); /* the label has to be there */
    uint32_t count = 0;
    for (uint32_t i = 0; i < d.count; i++) {
        const struct requirement *r = &d.items[i];
        uint32_t at = count;
        while (at > 0 && str_cmp(set[at - 1].key, r->key) >= 0)
            at--;
        if (at < count && str_eq(set[at].key, r->key)) {
            struct requirement both = requirement_intersection(&c->scratch, &set[at], r);
            must[at] |= demands_label(r);
            if (must[at] && requirement_possible_count(&both) == 0)
                return contradiction(&set[at], r, err);
            set[at] = both;
            continue;
        }
        memmove(&set[at + 1], &set[at], (count - at) * sizeof *set);
        memmove(&must[at + 1], &must[at], (count - at) * sizeof *must);
        set[at] = *r;
        must[at] = demands_label(r);
        count++;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (must[i] && !demands_label(&set[i]) && make_present(c, &set[i], err) < 0)
            return -1;
    }
    *out = (struct requirements){ set, count };
    return 0;
}
