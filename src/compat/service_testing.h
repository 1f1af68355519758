/* compat/service_testing.h - a service with a registry that is a table, on an embedded store.
 *
 *     SERVICE_RIG rig = { 0 };
 *     rig_start(&rig, (struct compat_settings){ 0 });
 *     rig_image(&rig, "app:1", "amd64", "{op...}");
 *     rig_node(&rig, "n1", "amd64", "flags: {cpu.cpuid: {elements: {AVX2: {}}}}");
 *     rig_pod(&rig, "web", "app:1");
 */
#pragma once

#include "compat/compat_testing.h"
#include "api/node_kinds.h"
#include "compat/service.h"
#include "net/digest.h"
#include "store/embedded.h"
#include "store/js_testing.h"

#include <unistd.h>

struct service_rig {
    struct world world;
    struct object_pool *pool;
    struct embedded *embedded;
    const struct store *store;
    struct compat_service *service;
    pthread_mutex_t lock;    /* of the table */
    struct str_table images; /* "docker.io/library/app:1" -> const struct image_facts */
    enum err_kind fails;     /* questions, ERR_NONE: none */
    bool held;               /* questions wait */
    uint32_t asks;
    uint64_t keys_last; /* identity of the keyring of the last question */
    VEC(const struct object *) objects;
};

static inline int service_rig_ask(void *ctx, const struct reference *ref,
                                  const struct keyring *maybe_keys,
                                  const struct image_facts *maybe_known,
                                  const struct image_facts **out, struct err *err)
{
    struct service_rig *rig = ctx;
    AUTO_BUF name = { 0 };
    int rc = 0;
    (void)maybe_known;
    reference_format(ref, &name);
    pthread_mutex_lock(&rig->lock);
    rig->asks++;
    rig->keys_last = keyring_identity(maybe_keys);
    while (rig->held) {
        pthread_mutex_unlock(&rig->lock);
        usleep(1000);
        pthread_mutex_lock(&rig->lock);
    }
    const struct image_facts *facts = str_table_get(&rig->images, buf_str(&name));
    if (rig->fails != ERR_NONE)
        rc = err_set(err, rig->fails, "scripted");
    else if (!facts)
        rc = err_set(err, ERR_NOT_FOUND, "no such image");
    else
        *out = image_facts_ref(facts);
    pthread_mutex_unlock(&rig->lock);
    return rc;
}

/* Before rig_start may only be what settings need. */
static inline void service_rig_start(struct service_rig *rig, struct compat_settings settings)
{
    struct err err = { 0 };
    world_init(&rig->world);
    pthread_mutex_init(&rig->lock, NULL);
    rig->pool = rig->world.objects;
    rig->embedded = embedded_new((struct embedded_options){
        .clock = clock_real(), .pool = rig->pool, .seed = 1, .auto_namespaces = true });
    rig->store = embedded_store(rig->embedded);
    EXPECT_OK(compat_service_new(
                  (struct compat_service_options){ .source = { service_rig_ask, rig, NULL },
                                                   .store = rig->store,
                                                   .clock = clock_real(),
                                                   .settings = settings },
                  &rig->service, &err),
              err);
}

static inline void service_rig_hold(struct service_rig *rig, bool held)
{
    pthread_mutex_lock(&rig->lock);
    rig->held = held;
    pthread_mutex_unlock(&rig->lock);
}

static inline void service_rig_fail(struct service_rig *rig, enum err_kind kind)
{
    pthread_mutex_lock(&rig->lock);
    rig->fails = kind;
    pthread_mutex_unlock(&rig->lock);
}

static inline void service_rig_done(struct service_rig *rig)
{
    service_rig_hold(rig, false);
    compat_service_free(rig->service);
    str_table_each(&rig->images, slot)
        image_facts_unref(slot->value);
    str_table_done(&rig->images);
    vec_each(&rig->objects, const struct object *, object)
        object_unref(*object);
    vec_done(&rig->objects);
    embedded_free(rig->embedded);
    pthread_mutex_destroy(&rig->lock);
    world_done(&rig->world);
}
#define SERVICE_RIG __attribute__((cleanup(service_rig_done))) struct service_rig

/* An image for these architectures ("amd64,arm64"; "": not told), with this list of sets, or NULL: no
 * artifact. */
static inline void rig_image(struct service_rig *rig, const char *name, const char *architectures,
                             const char *maybe_sets)
{
    struct platform platforms[4] = { 0 };
    uint32_t count = 0;
    AUTO_ARENA arena = { 0 };
    AUTO_BUF full = { 0 };
    AUTO_BUF spec = { 0 };
    struct err err = { 0 };
    struct reference ref;
    struct str rest = str_of(architectures);
    while (rest.len) {
        struct str head, tail = STR("");
        str_cut(rest, ',', &head, &tail);
        platforms[count++] = (struct platform){ .os = STR("linux"), .architecture = head };
        rest = tail;
    }
    EXPECT_OK(reference_parse(&arena, str_of(name), &ref, &err), err);
    reference_format(&ref, &full);
    char digest[DIGEST_TEXT_MAX];
    EXPECT_OK(digest_text(DIGEST_SHA256, buf_str(&full), digest, &err), err);
    if (maybe_sets)
        buf_addf(&spec, "version: v1alpha1\ncompatibilities: %s\n", maybe_sets);
    const struct image_facts *facts = image_facts_make(
        str_of(digest), platforms, count, maybe_sets ? world_spec(&rig->world, spec.p) : NULL);
    pthread_mutex_lock(&rig->lock);
    const struct image_facts *old = str_table_remove(&rig->images, buf_str(&full));
    str_table_put(&rig->images, buf_str(&full), (void *)facts);
    pthread_mutex_unlock(&rig->lock);
    image_facts_unref(old);
}

/* One set with one rule: the node must have this CPU flag. */
#define NEEDS_FLAG(flag)                                                                           \
    "[{tag: t, rules: [{name: r, matchFeatures: [{feature: cpu.cpuid, matchExpressions: "          \
    "{" flag ": {op: Exists}}}]}]}]"

static inline const struct object *rig_decode(struct service_rig *rig, const struct kind *kind,
                                              struct str json)
{
    struct doc doc;
    struct err err = { 0 };
    const struct object *object = NULL;
    EXPECT_OK(json_read(json, &doc, &err), err);
    EXPECT_OK(object_decode(rig->pool, kind, doc.root, &object, &err), err);
    doc_done(&doc);
    vec_push(&rig->objects, object);
    return object;
}

/* A node and what NFD says of it; NULL: nothing yet. */
static inline void rig_node(struct service_rig *rig, const char *name, const char *architecture,
                            const char *maybe_features)
{
    const struct object *node = rig_decode(
        rig, &node_kind,
        js("{'metadata':{'name':'%s','labels':{'kubernetes.io/arch':'%s','kubernetes.io/os':'linux'}}}",
           name, architecture));
    compat_service_observe(rig->service, NULL, node);
    if (maybe_features) {
        const struct object *features = rig_decode(
            rig, &node_feature_kind,
            js("{'metadata':{'name':'%s','namespace':'nfd','labels':{'nfd.node.kubernetes.io/node-name':'%s'}},"
               "'spec':{'features':{%s}}}",
               name, name, maybe_features));
        compat_service_observe(rig->service, NULL, features);
    }
}
#define CPU_FLAGS(flags) "'flags':{'cpu.cpuid':{'elements':{" flags "}}}"

/* Told to the service. */
static inline const struct pod *rig_pod(struct service_rig *rig, const char *name,
                                        const char *image)
{
    const struct object *pod =
        rig_decode(rig, &pod_kind,
                   js("{'metadata':{'name':'%s','namespace':'default','uid':'uid-%s'},"
                      "'spec':{'containers':[{'name':'c','image':'%s'}]}}",
                      name, name, image));
    compat_service_observe(rig->service, NULL, pod);
    return pod_of(pod);
}

/* Until nothing is looked up any more. */
static inline void rig_settle(struct service_rig *rig, const struct pod *pod)
{
    compat_service_settle(rig->service, &pod, 1,
                          clock_mono_ns(clock_real()) + (int64_t)30 * 1000000000);
}

/* The verdict of one node for one pod; the demand must be there. */
static inline struct fleet_verdict rig_judge(struct service_rig *rig, const struct pod *pod,
                                             const char *node)
{
    struct pod_demand demand;
    struct fleet_verdict verdict = { 0 };
    struct str name = str_of(node);
    rig_settle(rig, pod);
    compat_service_demand(rig->service, pod, DEMAND_PLACE, &demand);
    EXPECT_TRUE(demand.maybe_demand != NULL);
    compat_service_judge(rig->service, demand.maybe_demand, &name, 1, &verdict);
    pod_demand_done(&demand);
    return verdict;
}
