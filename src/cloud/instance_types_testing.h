/* cloud/instance_types_testing.h - for the tests of snapshots: short ways to say a draft.
 *
 *     DRAFTS drafts = { 0 };
 *     draft_type(&drafts, "m5.large", "arch=amd64 cpu=2", "a/spot=0.1 b/on-demand=0.3!");
 *     AUTO_INSTANCE_TYPES s = drafts_build(&drafts);
 *
 * Labels: key=one,two (In), key=-one,two (NotIn), key=* (Exists), key=! (DoesNotExist), key=>3
 * and key=<9 (at least, at most). Offerings: zone/capacityType=price, with "!" when it is not
 * available, then further labels of the offering after "+": "a/spot=0.1+rack=7". Everything lives
 * until the end of the block.
 */
#pragma once

#include "base/vec.h"
#include "cloud/instance_types.h"
#include "support/test.h"

struct draft_list {
    struct arena arena;
    VEC(struct instance_type_draft) items;
};

static inline void draft_list_done(struct draft_list *d)
{
    vec_done(&d->items);
    arena_done(&d->arena);
}
#define DRAFTS __attribute__((cleanup(draft_list_done))) struct draft_list

/* The next word of `text`, up to `sep`; false at the end. */
static inline bool draft_word(struct str *text, char sep, struct str *word)
{
    if (text->len == 0)
        return false;
    if (!str_cut(*text, sep, word, text))
        *text = STR("");
    return true;
}

static inline struct requirement draft_requirement(struct arena *arena, struct str text)
{
    struct str key, says, word, values[32];
    struct expression e = { .op = OP_IN };
    uint32_t count = 0;
    EXPECT_TRUE(str_cut(text, '=', &key, &says));
    char first = says.len ? says.p[0] : '\0';
    if (first && strchr("*!-<>", first)) {
        e.op = first == '*'   ? OP_EXISTS
               : first == '!' ? OP_DOES_NOT_EXIST
               : first == '-' ? OP_NOT_IN
               : first == '>' ? OP_GTE
                              : OP_LTE;
        says = str_sub(says, 1, says.len);
    }
    while (draft_word(&says, ',', &word))
        values[count++] = word;
    e.key = key;
    e.values = (struct str_list){ values, count };
    struct requirement r;
    struct err err = { 0 };
    EXPECT_OK(requirement_from_expression(arena, &e, &r, &err), err);
    return r;
}

/* Labels on the same key are intersected. */
static inline struct requirements draft_labels(struct arena *arena, const char *text, char sep)
{
    struct requirements set = { 0 };
    struct str rest = str_of(text), word;
    while (draft_word(&rest, sep, &word)) {
        struct requirement r = draft_requirement(arena, word);
        set = requirements_add(arena, &set, &r);
    }
    return set;
}

/* "cpu=2 memory=4Gi", in the order of names. */
static inline struct resources draft_resources(struct arena *arena, const char *text)
{
    struct resource *items = arena_array(arena, struct resource, 32);
    uint32_t count = 0;
    struct str rest = str_of(text), word, amount;
    while (draft_word(&rest, ' ', &word)) {
        struct resource *r = &items[count++];
        struct err err = { 0 };
        EXPECT_TRUE(str_cut(word, '=', &r->name, &amount));
        EXPECT_OK(quantity_parse(amount, &r->amount, &err), err);
    }
    return (struct resources){ items, count };
}

static inline struct offering_draft draft_offering(struct arena *arena, struct str text)
{
    struct offering_draft o = { .available = true };
    struct str zone, capacity_type, price, labels = STR("");
    struct err err = { 0 };
    EXPECT_TRUE(str_cut(text, '/', &zone, &capacity_type));
    EXPECT_TRUE(str_cut(capacity_type, '=', &capacity_type, &price));
    str_cut(price, '+', &price, &labels);
    if (str_ends(price, STR("!"))) {
        o.available = false;
        price.len--;
    }
    EXPECT_OK(usd_hour_parse(price, &o.price, &err), err);
    o.requirements = draft_labels(arena, arena_str(arena, labels).p, '+');
    struct requirement z = requirement_in(arena, STR(LABEL_ZONE), (struct str_list){ &zone, 1 });
    struct requirement c =
        requirement_in(arena, STR(LABEL_CAPACITY_TYPE), (struct str_list){ &capacity_type, 1 });
    o.requirements = requirements_add(arena, &o.requirements, &z);
    o.requirements = requirements_add(arena, &o.requirements, &c);
    return o;
}

/* The draft, to be completed: until the next one is added. */
static inline struct instance_type_draft *draft_type(struct draft_list *d, const char *name,
                                                     const char *labels, const char *offerings)
{
    struct offering_draft *items = arena_array(&d->arena, struct offering_draft, 64);
    struct instance_type_draft type = { .name = arena_str(&d->arena, str_of(name)),
                                        .requirements = draft_labels(&d->arena, labels, ' '),
                                        .offerings = items };
    struct str rest = str_of(offerings), word;
    while (draft_word(&rest, ' ', &word))
        items[type.offering_count++] = draft_offering(&d->arena, word);
    vec_push(&d->items, type);
    return &vec_last(&d->items);
}

/* An offering of the draft, to be changed. */
static inline struct offering_draft *draft_offering_at(struct instance_type_draft *type, uint32_t i)
{
    EXPECT_TRUE(type != NULL);
    EXPECT_TRUE(i < type->offering_count);
    return (struct offering_draft *)&type->offerings[i];
}

static inline const struct instance_types *drafts_build(const struct draft_list *d)
{
    const struct instance_types *s = NULL;
    struct err err = { 0 };
    EXPECT_OK(instance_types_build(d->items.items, (uint32_t)d->items.count,
                                   (struct instance_types_options){ 0 }, &s, &err),
              err);
    EXPECT_TRUE(instance_types_verify(s));
    return s;
}

/* The names of the types in a set, with blanks between them. In the arena. */
static inline struct str named_types(struct arena *arena, const struct instance_types *s,
                                     const struct bitset *types)
{
    AUTO_BUF b = { 0 };
    bitset_each(types, t)
        buf_addf(&b, "%s%.*s", b.len ? " " : "", STR_ARG(s->names[t]));
    return arena_str(arena, buf_str(&b));
}
