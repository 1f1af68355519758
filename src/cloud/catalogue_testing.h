/* cloud/catalogue_testing.h - a catalogue with a pool and perhaps its node class, for tests. */
#pragma once

#include "cloud/catalogue.h"

#include "api/kind_test.h"
#include "api/resources.h"

static const char pool_text[] = "apiVersion: karpenter.sh/v1\n"
                                "kind: NodePool\n"
                                "metadata: {name: default}\n"
                                "spec:\n"
                                "  template:\n"
                                "    spec:\n"
                                "      nodeClassRef:\n"
                                "        group: karpenter.k8s.aws\n"
                                "        kind: EC2NodeClass\n"
                                "        name: default\n"
                                "      requirements: []\n";

static const char class_head[] = "apiVersion: karpenter.k8s.aws/v1\n"
                                 "kind: EC2NodeClass\n"
                                 "metadata: {name: default, uid: u-1, resourceVersion: '7'}\n"
                                 "spec:\n"
                                 "  role: node\n"
                                 "  subnetSelectorTerms: [{id: subnet-1}]\n"
                                 "  securityGroupSelectorTerms: [{id: sg-1}]\n";

/* A catalogue, a pool, and perhaps its node class. */
struct world {
    struct catalogue *catalogue;
    const struct cloud_provider *provider;
    struct sample pool, class_;
    const struct instance_types *types;
};

static inline const struct object *class_of_world(void *ctx, const struct node_class_ref *ref)
{
    struct world *w = ctx;
    return str_eqz(ref->name, "default") ? w->class_.object : NULL;
}

static inline void world_class(struct world *w, const char *maybe_spec)
{
    AUTO_BUF text = { 0 };
    if (w->class_.object)
        sample_done(&w->class_);
    w->class_ = (struct sample){ 0 };
    if (!maybe_spec)
        return;
    buf_addf(&text, "%s%s", class_head, maybe_spec);
    sample_decode(&w->class_, text.p);
}

static inline void world_fetch(struct world *w)
{
    struct err err = { 0 };
    instance_types_unref(w->types);
    w->types = NULL;
    EXPECT_OK(w->provider->get_instance_types(w->provider->ctx, nodepool_of(w->pool.object),
                                              &w->types, &err),
              err);
}

static inline void world_init(struct world *w, const char *region, const char *maybe_spec)
{
    struct err err = { 0 };
    *w = (struct world){ 0 };
    sample_decode(&w->pool, pool_text);
    world_class(w, maybe_spec);
    EXPECT_OK(catalogue_new((struct catalogue_options){ .region = str_of(region),
                                                        .maybe_class = class_of_world,
                                                        .class_ctx = w },
                            &w->catalogue, &err),
              err);
    w->provider = catalogue_provider(w->catalogue);
    world_fetch(w);
}

static inline void world_done(struct world *w)
{
    instance_types_unref(w->types);
    catalogue_free(w->catalogue);
    sample_done(&w->pool);
    if (w->class_.object)
        sample_done(&w->class_);
}
#define WORLD __attribute__((cleanup(world_done))) struct world

static inline uint32_t find(const struct world *w, const char *name)
{
    uint32_t t = instance_types_find(w->types, str_of(name));
    EXPECT_TRUE(t != INSTANCE_TYPE_NONE);
    return t;
}

/* "a b", or "-" if it does not exist. */
static inline void expect_label(const struct world *w, const char *type, const char *key,
                                const char *want)
{
    const struct requirement *r = instance_type_requirement(w->types, find(w, type), str_of(key));
    AUTO_BUF text = { 0 };
    EXPECT_TRUE(r != NULL);
    EXPECT_FALSE(r->complement);
    for (uint32_t i = 0; i < r->values.count; i++)
        buf_addf(&text, "%s%.*s", i ? " " : "", STR_ARG(r->values.items[i]));
    if (!r->values.count)
        buf_addz(&text, "-");
    if (!str_eqz(buf_str(&text), want))
        fail_msg("%s: %s is \"%s\", not \"%s\"", type, key, buf_str(&text).p, want);
}

/* How many of the type's offerings are available, of that capacity type. */
static inline uint32_t available(const struct world *w, const char *type, const char *capacity_type)
{
    uint32_t t = find(w, type), count = 0;
    for (uint32_t o = w->types->offering_start[t]; o < w->types->offering_start[t + 1]; o++) {
        const struct offering_shape *shape = &w->types->shapes[w->types->offering_shape[o]];
        count +=
            str_eqz(shape->capacity_type, capacity_type) && bitset_test(&w->types->available, o);
    }
    return count;
}

static inline uint32_t offering_count(const struct world *w, const char *type)
{
    uint32_t t = find(w, type);
    return w->types->offering_start[t + 1] - w->types->offering_start[t];
}

static inline void expect_amount(const struct world *w, const char *type, const char *name,
                                 const char *want)
{
    AUTO_ARENA arena = { 0 };
    char text[QUANTITY_TEXT_MAX] = "";
    struct resources has = instance_type_capacity(w->types, find(w, type), &arena);
    const struct resource *r = resources_find(&has, str_of(name));
    if (r)
        quantity_format(r->amount, text);
    if (strcmp(text, want) != 0)
        fail_msg("%s has %s of %s, not %s", type, text, name, want);
}

static inline struct generation generation(const struct world *w)
{
    struct generation g;
    struct err err = { 0 };
    EXPECT_OK(w->provider->get_generation(w->provider->ctx, nodepool_of(w->pool.object), &g, &err),
              err);
    return g;
}
