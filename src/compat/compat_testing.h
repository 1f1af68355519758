/* compat/compat_testing.h - feature sets and rules from short texts, for the tests of this room. */
#pragma once

#include "api/kind_test.h"
#include "compat/spec.h"

struct world {
    struct object_pool *objects;
    struct feature_sets *pool;
    VEC(const struct object *) kept;
    VEC(const struct feature_set *) sets;
    VEC(const struct compat_spec *) specs;
    struct arena arena;
};

static inline void world_init(struct world *w)
{
    *w = (struct world){ .objects = object_pool_new(), .pool = feature_sets_new() };
}

static inline void world_done(struct world *w)
{
    vec_each(&w->specs, const struct compat_spec *, spec)
        compat_spec_unref(*spec);
    vec_each(&w->sets, const struct feature_set *, set)
        feature_set_unref(*set);
    vec_each(&w->kept, const struct object *, object)
        object_unref(*object);
    vec_done(&w->specs);
    vec_done(&w->sets);
    vec_done(&w->kept);
    feature_sets_free(w->pool);
    object_pool_free(w->objects);
    arena_done(&w->arena);
}
#define WORLD __attribute__((cleanup(world_done))) struct world

/* A NodeFeature of the node node1 with this in `features: {...}`. */
static inline const struct node_feature *world_object(struct world *w, const char *namespace_,
                                                      const char *name, const char *features)
{
    struct err err = { 0 };
    struct docs docs;
    const struct object *object = NULL;
    AUTO_BUF text = { 0 };
    buf_addf(
        &text,
        "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeature, metadata: {namespace: %s, "
        "name: %s, labels: {nfd.node.kubernetes.io/node-name: node1}}, spec: {features: {%s}}}",
        namespace_, name, features);
    EXPECT_OK(yaml_read(buf_str(&text), &docs, NULL, &err), err);
    EXPECT_OK(object_decode(w->objects, &node_feature_kind, docs.items[0].root, &object, &err),
              err);
    docs_done(&docs);
    vec_push(&w->kept, object);
    return node_feature_of(object);
}

static inline const struct feature_set *world_make(struct world *w, struct feature_draft *draft)
{
    struct err err = { 0 };
    const struct feature_set *set = NULL;
    EXPECT_OK(feature_set_make(w->pool, draft, &set, &err), err);
    vec_push(&w->sets, set);
    return set;
}

static inline const struct feature_set *world_set(struct world *w, const char *features)
{
    const struct node_feature *object = world_object(w, "nfd", "node1", features);
    FEATURE_DRAFT draft = { 0 };
    feature_draft_node(&draft, &object, 1, STR("nfd"));
    return world_make(w, &draft);
}

static inline const struct compat_spec *world_spec(struct world *w, const char *text)
{
    struct err err = { 0 };
    const struct compat_spec *spec = NULL;
    EXPECT_OK(
        compat_spec_read("spec.yaml", str_of(text), (struct compat_spec_options){ 0 }, &spec, &err),
        err);
    vec_push(&w->specs, spec);
    return spec;
}

/* From the list of rules of one set. */
static inline const struct rules *world_rules(struct world *w, const char *rules)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, "version: v1alpha1\ncompatibilities: [{rules: %s}]\n", rules);
    return world_spec(w, text.p)->sets[0].rules;
}

/* One rule whose only term is about feature f. */
static inline const struct rules *world_term(struct world *w, const char *rest)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, "[{name: r, matchFeatures: [{feature: f%s%s}]}]", rest[0] ? ", " : "", rest);
    return world_rules(w, text.p);
}

static inline enum match world_match(const struct rules *rules, const struct feature_set *set)
{
    return rules_match(rules, set, (struct rules_options){ 0 }).match;
}

/* "yes", or every reason why not, one a line. */
static inline struct str world_why(struct world *w, const struct rules *rules,
                                   const struct feature_set *set)
{
    AUTO_BUF text = { 0 };
    struct rule_reasons reasons = rules_explain(&w->arena, rules, set, (struct rules_options){ 0 });
    for (uint32_t i = 0; i < reasons.count; i++) {
        buf_addz(&text, i ? "\n" : "");
        rule_reason_format(&reasons.items[i], &text);
    }
    return arena_str(&w->arena, reasons.count ? buf_str(&text) : STR("yes"));
}

static inline const char *match_word(enum match match)
{
    static const char *const words[] = { "no", "error", "unknown", "yes" };
    return words[match];
}
