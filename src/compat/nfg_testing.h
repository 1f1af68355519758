/* compat/nfg_testing.h - a NodeFeatureGroup cache on an embedded store in virtual time, for its tests. */
#pragma once

#include "api/nfd.h"
#include "base/vec.h"
#include "compat/nfg_cache.h"
#include "store/informer.h"
#include "store/testing.h"

#define MINUTE_NS (60 * SECOND_NS)
#define NFD STR("nfd")

struct bench {
    struct world *world;
    struct metrics *metrics;
    struct nfg_cache *cache;
    struct informer *informer;
    VEC(const struct compat_spec *) specs;
    struct arena arena;
    struct err err;
    /* Trouble on purpose: calls of these verbs fail so often (-1: always), and all are counted. */
    enum err_kind fault;
    enum embedded_verb fault_verb;
    int fault_count;
    unsigned calls[EMBEDDED_BIND + 1];
};

static inline enum err_kind bench_before(void *ctx, const struct embedded_call *call)
{
    struct bench *b = ctx;
    if (call->kind != &node_feature_group_kind)
        return ERR_NONE;
    b->calls[call->verb]++;
    if (b->fault_count == 0 || call->verb != b->fault_verb)
        return ERR_NONE;
    b->fault_count -= b->fault_count > 0;
    return b->fault;
}

static inline struct nfg_cache *bench_cache(struct bench *b, struct nfg_cache_options options)
{
    options.store = b->world->store;
    options.clock = virtual_clock_port(b->world->time);
    options.maybe_metrics = options.maybe_metrics ? options.maybe_metrics : b->metrics;
    options.mode = options.mode ? options.mode : NFG_AUTHORITATIVE;
    return nfg_cache_new(options);
}

static inline struct informer *bench_watch(struct bench *b, struct nfg_cache *cache)
{
    struct informer *informer =
        informer_new((struct informer_options){ .store = b->world->store,
                                                .kind = &node_feature_group_kind,
                                                .clock = virtual_clock_port(b->world->time) });
    informer_on_change(informer, nfg_cache_observe, cache);
    informer_pump(informer);
    return informer;
}

static inline void bench_init(struct bench *b, struct nfg_cache_options options)
{
    *b = (struct bench){ .world = world_new((struct embedded_options){ .auto_namespaces = true }) };
    embedded_set_faults(b->world->e, &(struct embedded_faults){ .before = bench_before, .ctx = b });
    b->metrics = metrics_new(virtual_clock_port(b->world->time));
    b->cache = bench_cache(b, options);
    b->informer = bench_watch(b, b->cache);
}

static inline void bench_done(struct bench *b)
{
    nfg_cache_free(b->cache);
    informer_free(b->informer);
    metrics_free(b->metrics);
    vec_each(&b->specs, const struct compat_spec *, spec)
        compat_spec_unref(*spec);
    vec_done(&b->specs);
    arena_done(&b->arena);
    world_free(b->world);
}
#define BENCH __attribute__((cleanup(bench_done))) struct bench

/* The process ends, and starts anew with an empty cache. */
static inline void bench_restart(struct bench *b, struct nfg_cache_options options)
{
    nfg_cache_free(b->cache);
    informer_free(b->informer);
    b->cache = bench_cache(b, options);
    b->informer = bench_watch(b, b->cache);
}

static inline void bench_advance(struct bench *b, int64_t ns)
{
    virtual_clock_advance(b->world->time, ns);
    informer_pump(b->informer);
}

static inline int64_t bench_now(struct bench *b)
{
    return clock_mono_ns(virtual_clock_port(b->world->time));
}

/* --- images --- */

static inline const struct compat_spec *bench_spec(struct bench *b, const char *sets)
{
    AUTO_BUF text = { 0 };
    const struct compat_spec *spec = NULL;
    buf_addf(&text, "{version: v1alpha1, compatibilities: [%s]}", sets);
    EXPECT_OK(compat_spec_read("spec.yaml", buf_str(&text), (struct compat_spec_options){ 0 },
                               &spec, &b->err),
              b->err);
    vec_push(&b->specs, spec);
    return spec;
}

/* A set that asks for one CPU flag. */
#define NEEDS(flag)                                                                                \
    "{tag: " flag ", weight: 7, rules: [{name: r, matchFeatures: [{feature: cpu.cpuid, "           \
    "matchExpressions: {" flag ": {op: Exists}}}]}]}"

static inline struct image_facts facts_of(const struct compat_spec *maybe_spec)
{
    return (struct image_facts){ .digest = STR("sha256:1111"),
                                 .spec = { maybe_spec, .artifact = STR("sha256:2222") } };
}

static inline int bench_try(struct bench *b, const char *image, const char *sets,
                            struct nfg_names *out)
{
    struct image_facts facts = facts_of(bench_spec(b, sets));
    return nfg_cache_publish(b->cache, str_of(image), &facts, &b->arena, out, &b->err);
}

static inline struct nfg_names bench_publish(struct bench *b, const char *image, const char *sets)
{
    struct nfg_names names = { 0 };
    EXPECT_OK(bench_try(b, image, sets, &names), b->err);
    informer_pump(b->informer);
    return names;
}

static inline struct nfg_names bench_get(struct bench *b, const char *image)
{
    struct nfg_names names;
    bool hit = nfg_cache_get_valid(b->cache, str_of(image), &b->arena, &names);
    EXPECT_TRUE(names.items != NULL);
    EXPECT_EQ(hit, names.count > 0);
    return names;
}

/* The name of the group of a set that asks for these flags, "A" or "A B". */
static inline struct str bench_name(struct bench *b, const char *set, uint32_t digits)
{
    char name[NFG_NAME_MAX];
    EXPECT_OK(nfg_name(bench_spec(b, set)->sets[0].rules_json, digits, name, &b->err), b->err);
    return arena_str(&b->arena, str_of(name));
}

static inline enum match bench_member(struct bench *b, const char *set, const char *node)
{
    return nfg_cache_member(b->cache, bench_spec(b, set)->sets[0].rules_json, str_of(node));
}

/* --- the cluster --- */

static inline struct object_ref group_at(struct str namespace_, struct str name)
{
    return (struct object_ref){ &node_feature_group_kind, namespace_, name };
}

static inline bool bench_there(struct bench *b, struct str namespace_, struct str name)
{
    AUTO_OBJECT object = NULL;
    int rc = store_get(b->world->store, group_at(namespace_, name), &object, &b->err);
    KV_ASSERT(rc == 0 || b->err.kind == ERR_NOT_FOUND);
    return rc == 0;
}

static inline size_t bench_count(struct bench *b)
{
    struct object_list list = { 0 };
    EXPECT_OK(store_list(b->world->store, &node_feature_group_kind, NULL, &list, &b->err), b->err);
    size_t count = list.count;
    object_list_done(&list);
    return count;
}

static inline void bench_delete(struct bench *b, struct str name)
{
    EXPECT_OK(store_remove(b->world->store, group_at(NFD, name), NULL, &b->err), b->err);
    informer_pump(b->informer);
}

/* A group of somebody, with the rules of a set. `metadata`: more members of it. */
static inline void bench_foreign(struct bench *b, struct str name, const char *set,
                                 const char *metadata)
{
    AUTO_BUF json = { 0 };
    buf_addf(&json, "{\"metadata\":{\"name\":\"%.*s\"%s},\"spec\":{\"featureGroupRules\":%.*s}}",
             STR_ARG(name), metadata, STR_ARG(bench_spec(b, set)->sets[0].rules_json));
    EXPECT_OK(
        store_create(b->world->store, &node_feature_group_kind, NFD, buf_str(&json), NULL, &b->err),
        b->err);
    informer_pump(b->informer);
}

/* As nfd-master writes it: "n1 n2". */
static inline void bench_status(struct bench *b, struct str name, const char *nodes)
{
    AUTO_BUF patch = { 0 };
    struct str rest = str_of(nodes), node;
    buf_addz(&patch, "{\"status\":{\"nodes\":[");
    for (const char *comma = ""; rest.len; comma = ",") {
        str_cut(rest, ' ', &node, &rest);
        buf_addf(&patch, "%s{\"name\":\"%.*s\"}", comma, STR_ARG(node));
    }
    buf_addz(&patch, "]}}");
    EXPECT_OK(store_patch(b->world->store, group_at(NFD, name),
                          (struct patch_options){ .type = PATCH_MERGE, .status = true },
                          buf_str(&patch), NULL, &b->err),
              b->err);
    informer_pump(b->informer);
}

static inline struct str bench_annotation(struct bench *b, struct str name, const char *key)
{
    AUTO_OBJECT object = NULL;
    EXPECT_OK(store_get(b->world->store, group_at(NFD, name), &object, &b->err), b->err);
    return arena_str(&b->arena, str_map_get(&object->meta.annotations, str_of(key)));
}

/* The sample's value in the exposition, "" if it is not there. */
static inline struct str bench_metric(struct bench *b, const char *sample)
{
    AUTO_BUF text = { 0 };
    metrics_write(b->metrics, &text);
    for (struct str rest = buf_str(&text), line; rest.len;) {
        bool more = str_cut(rest, '\n', &line, &rest);
        size_t len = strlen(sample);
        if (str_starts(line, str_of(sample)) && line.len > len && line.p[len] == ' ')
            return arena_str(&b->arena, str_sub(line, len + 1, line.len));
        if (!more)
            break;
    }
    return STR("");
}
