/* cloud/overlay_testing.h - for the tests of overlays: short ways to say what there is and what is
 * expected.
 *
 *     LAB lab;
 *     lab_init(&lab);
 *     lab_type(&lab, "m5.large", "arch=amd64 size=2", "a/spot=0.1 b/on-demand=0.3!");
 *     lab_overlay(&lab, "cheap", "{price: '0.05', requirements: [...]}");
 *
 * Labels: key=value, key=one,two, key=* (Exists), key=! (DoesNotExist), key=-one (NotIn).
 * Offerings: zone/capacityType=price, with "!" when it is not available, and further labels of the
 * offering after commas: "a/spot=0.1,rack=7". Specs are YAML, in which y is true. Everything lives
 * until lab_done.
 */
#pragma once

#include "base/vec.h"
#include "cloud/overlay.h"
#include "codec/yaml.h"
#include "support/test.h"

#include <stdio.h>

struct lab {
    struct arena arena;
    struct object_pool *objects;
    VEC(const struct object *) owned;
    VEC(const struct instance_types *) snapshots;
    VEC(const struct nodeoverlay *) overlays; /* in the order in which they were made */
    VEC(struct instance_type_draft) drafts;   /* for the next snapshot */
};

static inline void lab_init(struct lab *lab)
{
    *lab = (struct lab){ .objects = object_pool_new() };
}

static inline void lab_done(struct lab *lab)
{
    vec_each(&lab->owned, const struct object *, it)
        object_unref(*it);
    vec_each(&lab->snapshots, const struct instance_types *, it)
        instance_types_unref(*it);
    vec_done(&lab->owned);
    vec_done(&lab->snapshots);
    vec_done(&lab->overlays);
    vec_done(&lab->drafts);
    object_pool_free(lab->objects);
    arena_done(&lab->arena);
}
#define LAB __attribute__((cleanup(lab_done))) struct lab

/* --- overlays --- */

static inline const struct nodeoverlay *lab_overlay(struct lab *lab, const char *name,
                                                    const char *spec)
{
    AUTO_BUF text = { 0 };
    struct docs docs = { 0 };
    struct text_pos at = { 0 };
    struct err err = { 0 };
    const struct object *object = NULL;

    buf_addf(&text,
             "{apiVersion: karpenter.sh/v1alpha1, kind: NodeOverlay, "
             "metadata: {name: %s, generation: 1, creationTimestamp: '2026-01-01T00:00:00Z'}, "
             "spec: %s}",
             name, spec);
    EXPECT_OK(yaml_read(buf_str(&text), &docs, &at, &err), err);
    EXPECT_OK(object_decode(lab->objects, &nodeoverlay_kind, docs.items[0].root, &object, &err),
              err);
    docs_done(&docs);
    vec_push(&lab->owned, object);
    vec_push(&lab->overlays, nodeoverlay_of(object));
    return nodeoverlay_of(object);
}

/* --- types --- */

static inline struct str next_word(struct str *rest, char sep)
{
    struct str word, tail = STR("");
    *rest = str_trim(*rest);
    str_cut(*rest, sep, &word, &tail);
    *rest = tail;
    return word;
}

static inline struct requirement lab_requirement(struct lab *lab, struct str text)
{
    struct str key, values;
    struct str items[64];
    uint32_t count = 0;
    EXPECT_TRUE(str_cut(text, '=', &key, &values));
    if (str_eq(values, STR("*")))
        return requirement_exists(&lab->arena, key);
    if (str_eq(values, STR("!")))
        return requirement_does_not_exist(&lab->arena, key);
    bool not_in = str_starts(values, STR("-"));
    if (not_in)
        values = str_sub(values, 1, values.len);
    while (values.len)
        items[count++] = next_word(&values, ',');
    struct requirement r = requirement_in(&lab->arena, key, (struct str_list){ items, count });
    r.complement = not_in;
    return r;
}

static inline struct offering_draft lab_offering(struct lab *lab, struct str text)
{
    struct offering_draft draft = { 0 };
    struct str place = next_word(&text, '='), zone = next_word(&place, '/'), ct = place;
    struct str price = next_word(&text, ',');
    struct err err = { 0 };
    draft.available = !str_ends(price, STR("!"));
    if (!draft.available)
        price.len--;
    EXPECT_OK(usd_hour_parse(price, &draft.price, &err), err);
    struct requirement where[] = {
        requirement_in(&lab->arena, STR(LABEL_ZONE), (struct str_list){ &zone, 1 }),
        requirement_in(&lab->arena, STR(LABEL_CAPACITY_TYPE), (struct str_list){ &ct, 1 }),
    };
    for (size_t i = 0; i < KV_COUNT_OF(where); i++)
        draft.requirements = requirements_add(&lab->arena, &draft.requirements, &where[i]);
    while (text.len) {
        struct requirement more = lab_requirement(lab, next_word(&text, ','));
        draft.requirements = requirements_add(&lab->arena, &draft.requirements, &more);
    }
    return draft;
}

static inline struct offering_draft *lab_type(struct lab *lab, const char *name, const char *labels,
                                              const char *offerings)
{
    struct instance_type_draft draft = { .name = arena_str(&lab->arena, str_of(name)) };
    struct str rest = str_of(labels);
    while (rest.len) {
        struct requirement r = lab_requirement(lab, next_word(&rest, ' '));
        draft.requirements = requirements_add(&lab->arena, &draft.requirements, &r);
    }
    struct offering_draft *offered = arena_array(&lab->arena, struct offering_draft, 64);
    for (rest = str_of(offerings); rest.len;)
        offered[draft.offering_count++] = lab_offering(lab, next_word(&rest, ' '));
    struct resource *amounts = arena_array(&lab->arena, struct resource, 2);
    amounts[0] = (struct resource){ STR("cpu"), quantity_of(4) };
    amounts[1] = (struct resource){ STR("memory"), quantity_of(8) };
    draft.capacity = (struct resources){ amounts, 2 };
    draft.offerings = offered;
    vec_push(&lab->drafts, draft);
    return offered;
}

/* Of the types said since the last one. */
static inline const struct instance_types *lab_snapshot(struct lab *lab)
{
    const struct instance_types *s = NULL;
    struct err err = { 0 };
    EXPECT_OK(instance_types_build(lab->drafts.items, (uint32_t)lab->drafts.count,
                                   (struct instance_types_options){ 0 }, &s, &err),
              err);
    vec_clear(&lab->drafts);
    vec_push(&lab->snapshots, s);
    return s;
}

/* --- pools --- */

static const struct str lab_well_known[] = { STR(LABEL_CAPACITY_TYPE), STR(LABEL_ZONE) };

/* `labels` are key=value words, in the order of keys. */
static inline struct overlay_pool lab_pool(struct lab *lab, const char *name, const char *labels,
                                           const struct instance_types *types)
{
    struct str_pair *pairs = arena_array(&lab->arena, struct str_pair, 16);
    struct overlay_pool pool = { .name = arena_str(&lab->arena, str_of(name)),
                                 .types = types,
                                 .well_known = { lab_well_known, 2 } };
    struct str rest = arena_str(&lab->arena, str_of(labels));
    while (rest.len) {
        struct str word = next_word(&rest, ' ');
        EXPECT_TRUE(
            str_cut(word, '=', &pairs[pool.labels.count].key, &pairs[pool.labels.count].value));
        pool.labels.count++;
    }
    pool.labels.items = pairs;
    return pool;
}

/* --- asking --- */

static inline const struct overlay_set *lab_set(struct lab *lab)
{
    return overlay_set_new(lab->overlays.items, (uint32_t)lab->overlays.count, 1);
}

/* Everything that was made, evaluated; the caller has a reference to the accepted. */
static inline struct overlay_evaluation lab_evaluate(struct lab *lab,
                                                     const struct overlay_pool *pools,
                                                     uint32_t pool_count)
{
    AUTO_OVERLAY_SET set = lab_set(lab);
    struct overlay_evaluation ev;
    overlay_set_evaluate(set, pools, pool_count, &lab->arena, &ev);
    return ev;
}

static inline const struct overlay_verdict *verdict_of(const struct overlay_evaluation *ev,
                                                       const char *name)
{
    for (uint32_t i = 0; i < ev->verdicts.count; i++) {
        if (str_eqz(ev->verdicts.items[i].overlay->object.meta.name, name))
            return &ev->verdicts.items[i];
    }
    fail_msg("no verdict about %s", name);
    return NULL;
}

static inline uint32_t offering_of(const struct instance_types *s, const char *type,
                                   const char *zone, const char *capacity_type)
{
    uint32_t t = instance_types_find(s, str_of(type));
    for (uint32_t o = s->offering_start[t]; o < s->offering_start[t + 1]; o++) {
        const struct offering_shape *shape = &s->shapes[s->offering_shape[o]];
        if (str_eqz(shape->zone, zone) && str_eqz(shape->capacity_type, capacity_type))
            return o;
    }
    fail_msg("no offering %s/%s of %s", zone, capacity_type, type);
    return INSTANCE_TYPE_NONE;
}

/* As text; good until the next call. */
static inline const char *price_text(usd_hour price)
{
    static char text[USD_HOUR_TEXT_MAX];
    usd_hour_format(price, text);
    return text;
}

static inline const char *price_in(const struct instance_types *s, const char *type,
                                   const char *zone, const char *capacity_type)
{
    return price_text(instance_types_price(s, offering_of(s, type, zone, capacity_type)));
}

/* Thousandths; 0 if the type has none of it. */
static inline int64_t capacity_in(const struct instance_types *s, const char *type,
                                  const char *resource)
{
    const struct resource_column *column = instance_types_resource(s, str_of(resource));
    return column ? column->capacity[instance_types_find(s, str_of(type))] : 0;
}
