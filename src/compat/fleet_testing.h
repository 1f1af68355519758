/* compat/fleet_testing.h - a fleet whose nodes and NodeFeatures come from short texts, for its tests. */
#pragma once

#include "api/nodeclaim.h"
#include "compat/compat_testing.h"
#include "compat/fleet.h"

struct yard {
    struct world w;
    struct predictor *predictor;
    struct fleet *fleet;
    VEC(const struct image_facts *) facts;
    VEC(const struct demand *) demands;
};

static inline void yard_init(struct yard *y, struct fleet_options options)
{
    *y = (struct yard){ .predictor = predictor_new((struct predictor_options){ 0 }) };
    world_init(&y->w);
    options.nfd_namespace = STR("nfd");
    options.maybe_predictor = y->predictor;
    y->fleet = fleet_new(options);
}

static inline void yard_done(struct yard *y)
{
    vec_each(&y->demands, const struct demand *, it)
        demand_unref(*it);
    vec_each(&y->facts, const struct image_facts *, it)
        image_facts_unref(*it);
    vec_done(&y->demands);
    vec_done(&y->facts);
    fleet_free(y->fleet);
    predictor_free(y->predictor);
    world_done(&y->w);
}
#define YARD __attribute__((cleanup(yard_done))) struct yard

static inline const struct object *yard_object(struct yard *y, const struct kind *kind,
                                               struct str text)
{
    struct err err = { 0 };
    struct docs docs;
    const struct object *object = NULL;
    EXPECT_OK(yaml_read(text, &docs, NULL, &err), err);
    EXPECT_OK(object_decode(y->w.objects, kind, docs.items[0].root, &object, &err), err);
    docs_done(&docs);
    vec_push(&y->w.kept, object);
    return object;
}

/* `architecture` and `type` may be "": then there is no such label. */
static inline const struct object *yard_node_object(struct yard *y, const char *name,
                                                    const char *architecture, const char *type)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "{apiVersion: v1, kind: Node, metadata: {name: %s, labels: {kubernetes.io/os: linux",
             name);
    if (architecture[0])
        buf_addf(&text, ", kubernetes.io/arch: %s", architecture);
    if (type[0])
        buf_addf(&text, ", node.kubernetes.io/instance-type: %s", type);
    buf_addz(&text, "}}}");
    return yard_object(y, &node_kind, buf_str(&text));
}

static inline const struct object *yard_node(struct yard *y, const char *name,
                                             const char *architecture, const char *type)
{
    const struct object *node = yard_node_object(y, name, architecture, type);
    fleet_observe_node(y->fleet, NULL, node);
    return node;
}

static inline const struct object *yard_feature_object(struct yard *y, const char *namespace_,
                                                       const char *name, const char *node,
                                                       const char *features)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeature, metadata: {namespace: %s, "
             "name: %s, labels: {nfd.node.kubernetes.io/node-name: %s}}, spec: {features: {%s}}}",
             namespace_, name, node, features);
    return yard_object(y, &node_feature_kind, buf_str(&text));
}

/* What nfd-worker publishes of the node. */
static inline const struct object *yard_publish(struct yard *y, const char *node,
                                                const char *features)
{
    const struct object *object = yard_feature_object(y, "nfd", node, node, features);
    fleet_observe_feature(y->fleet, NULL, object);
    return object;
}

/* Flags of cpu.cpuid: "AVX2: {}, SVE: {}". */
static inline const struct object *yard_flags(struct yard *y, const char *node, const char *flags)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, "flags: {cpu.cpuid: {elements: {%s}}}", flags);
    return yard_publish(y, node, text.p);
}

/* Facts of an image for linux/`architecture` ("": any), with the spec in `text` ("": none). */
static inline const struct image_facts *yard_facts(struct yard *y, const char *architecture,
                                                   const char *text)
{
    struct platform platform = { STR("linux"), str_of(architecture), STR("") };
    const struct compat_spec *spec = text[0] ? world_spec(&y->w, text) : NULL;
    const struct image_facts *facts =
        image_facts_make(STR("sha256:1"), &platform, architecture[0] != 0, spec);
    vec_push(&y->facts, facts);
    return facts;
}

/* A spec with one set, that needs a flag. */
static inline const struct image_facts *yard_needs(struct yard *y, const char *flag,
                                                   uint32_t weight)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "{version: v1alpha1, compatibilities: [{tag: t, weight: %u, rules: [{name: r, "
             "matchFeatures: [{feature: cpu.cpuid, matchExpressions: {%s: {op: Exists}}}]}]}]}",
             weight, flag);
    return yard_facts(y, "", text.p);
}

static inline const struct demand *yard_demand(struct yard *y, const struct image_facts *a,
                                               const struct image_facts *maybe_b)
{
    const struct fleet_image images[] = { { STR("a.example/a:1"), a, STR("") },
                                          { STR("b.example/b:1"), maybe_b, STR("") } };
    const struct demand *demand = fleet_demand(y->fleet, images, maybe_b ? 2 : 1);
    vec_push(&y->demands, demand);
    return demand;
}

static inline struct fleet_verdict yard_verdict(struct yard *y, const struct demand *demand,
                                                const char *node)
{
    struct str name = str_of(node);
    struct fleet_verdict verdict;
    fleet_judge(y->fleet, demand, &name, 1, &verdict);
    return verdict;
}

static inline enum match yard_match(struct yard *y, const struct demand *demand, const char *node)
{
    return yard_verdict(y, demand, node).match;
}
