/* sim/invariants_testing.h - a small cluster at rest, and ways to break it behind the back of its control
 * plane. */
#pragma once

#include "sim/invariants.h"

#include "api/kinds.h"
#include "api/node.h"
#include "api/nodeclaim.h"
#include "api/nodepool.h"
#include "api/pod.h"
#include "codec/duration.h"
#include "sim/world.h"
#include "support/test.h"

#include <stdio.h>

#define CLUSTER                                                                                    \
    "duration: 1m\n"                                                                               \
    "cloud: {types: kwok, boot: 20s, ready: 5s, terminate: 30s}\n"                                 \
    "cluster: {podStart: 2s, podStop: 2s}\n"                                                       \
    "objects:\n"                                                                                   \
    "- {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}\n" \
    "- apiVersion: karpenter.sh/v1\n"                                                              \
    "  kind: NodePool\n"                                                                           \
    "  metadata: {name: web}\n"                                                                    \
    "  spec:\n"                                                                                    \
    "    limits: {cpu: 20, nodes: 3}\n"                                                            \
    "    template:\n"                                                                              \
    "      spec:\n"                                                                                \
    "        nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n"       \
    "        expireAfter: 24h\n"                                                                   \
    "        terminationGracePeriod: 10m\n"                                                        \
    "        requirements:\n"                                                                      \
    "        - {key: kubernetes.io/os, operator: In, values: [linux]}\n"                           \
    "        - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: ['4']}\n"               \
    "- apiVersion: apps/v1\n"                                                                      \
    "  kind: DaemonSet\n"                                                                          \
    "  metadata: {name: agent}\n"                                                                  \
    "  spec:\n"                                                                                    \
    "    selector: {matchLabels: {app: agent}}\n"                                                  \
    "    template:\n"                                                                              \
    "      metadata: {labels: {app: agent}}\n"                                                     \
    "      spec:\n"                                                                                \
    "        tolerations: [{operator: Exists}]\n"                                                  \
    "        containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]\n"              \
    "- apiVersion: v1\n"                                                                           \
    "  kind: Pod\n"                                                                                \
    "  metadata: {name: web}\n"                                                                    \
    "  spec: {containers: [{name: c, image: i, resources: {requests: {cpu: '3'}}}]}\n"

/* A cluster at rest: one pod on its node, an agent beside it, one claim, one instance. */
struct trial {
    struct scenario *scenario;
    struct world *world;
    const struct world_parts *parts;
    struct invariants *inv; /* has seen it at rest */
    struct arena arena;
    struct str claim, provider_id, node;
};

static inline const struct finding *look(struct trial *t)
{
    return invariants_check(t->inv, t->parts);
}

static inline void expect_finding(const struct finding *got, uint32_t rule, const char *words)
{
    EXPECT_TRUE(got != NULL);
    EXPECT_HAS(got->what, words);
    EXPECT_EQ(got->rule, rule);
}

static inline void expect_silence(const struct finding *got)
{
    if (got)
        print_error("# rule %u: %.*s\n", got->rule, STR_ARG(got->what));
    EXPECT_TRUE(got == NULL);
}

/* The only object of that kind. */
static inline const struct object *only(struct trial *t, const struct kind *kind)
{
    struct object_list list;
    struct err err = { 0 };
    EXPECT_OK(store_list(t->parts->store, kind, NULL, &list, &err), err);
    EXPECT_EQ(list.count, 1);
    const struct object *object = object_ref(list.items[0]);
    object_list_done(&list);
    return object;
}

static inline const struct object *object_of(struct trial *t, const struct kind *kind,
                                             const char *name)
{
    const struct object *object = NULL;
    struct err err = { 0 };
    struct object_ref ref = { kind, kind->namespaced ? STR("default") : STR(""), str_of(name) };
    EXPECT_OK(store_get(t->parts->store, ref, &object, &err), err);
    return object;
}

static inline uint32_t count_of(struct trial *t, const struct kind *kind)
{
    struct object_list list;
    struct err err = { 0 };
    EXPECT_OK(store_list(t->parts->store, kind, NULL, &list, &err), err);
    uint32_t count = (uint32_t)list.count;
    object_list_done(&list);
    return count;
}

/* A look without a past: nothing is known of before. */
static inline void forget(struct trial *t)
{
    invariants_free(t->inv);
    t->inv = invariants_new();
}

static inline struct trial *trial_new(void)
{
    struct trial *t = kv_calloc(1, sizeof *t);
    struct err err = { 0 };
    EXPECT_OK(scenario_parse("trial.yaml", STR(CLUSTER), &t->scenario, &err), err);
    t->world = world_new((struct world_options){ .scenario = t->scenario, .seed = 1 }, &err);
    EXPECT_TRUE(t->world != NULL);
    t->parts = world_parts(t->world);
    EXPECT_TRUE(world_live(t->world, 10 * DURATION_MINUTE));
    EXPECT_TRUE(world_settle(t->world, 20 * DURATION_MINUTE, 2 * DURATION_HOUR));
    t->inv = invariants_new();
    expect_silence(look(t));
    AUTO_OBJECT claim = only(t, &nodeclaim_kind);
    t->claim = arena_str(&t->arena, claim->meta.name);
    t->node = arena_str(&t->arena, nodeclaim_of(claim)->status.node_name);
    t->provider_id = arena_str(&t->arena, nodeclaim_of(claim)->status.provider_id);
    return t;
}

static inline void trial_free(struct trial *t)
{
    if (!t)
        return;
    invariants_free(t->inv);
    world_free(t->world);
    scenario_free(t->scenario);
    arena_done(&t->arena);
    free(t);
}
KV_AUTO_TYPE(trial, trial_free)

/* --- behind the back of the control plane --- */

/* JSON with single quotes; in the trial's arena. */
KV_PRINTF(2, 3) static struct str js(struct trial *t, const char *fmt, ...)
{
    char text[2048];
    va_list args;
    va_start(args, fmt);
    int len = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    KV_ASSERT(len >= 0 && len < (int)sizeof text);
    for (int i = 0; i < len; i++)
        text[i] = text[i] == '\'' ? '"' : text[i];
    return arena_str(&t->arena, (struct str){ text, (size_t)len });
}

static inline struct object_ref ref_to(const struct kind *kind, struct str name)
{
    return (struct object_ref){ kind, kind->namespaced ? STR("default") : STR(""), name };
}

static inline void patch(struct trial *t, const struct kind *kind, struct str name, bool status,
                         struct str json)
{
    struct err err = { 0 };
    struct patch_options options = { .type = PATCH_MERGE, .status = status };
    EXPECT_OK(store_patch(t->parts->store, ref_to(kind, name), options, json, NULL, &err), err);
}

static inline void create(struct trial *t, const struct kind *kind, struct str json)
{
    struct err err = { 0 };
    EXPECT_OK(store_create(t->parts->store, kind, STR(""), json, NULL, &err), err);
}

static inline void delete_(struct trial *t, const struct kind *kind, struct str name)
{
    struct err err = { 0 };
    EXPECT_OK(store_remove(t->parts->store, ref_to(kind, name), NULL, &err), err);
}

static inline void release_node(struct trial *t)
{
    patch(t, &node_kind, t->node, false, js(t, "{'metadata':{'finalizers':null}}"));
}

/* As somebody who has no patience: without its finalizers. */
static inline void force_delete_claim(struct trial *t)
{
    patch(t, &nodeclaim_kind, t->claim, false, js(t, "{'metadata':{'finalizers':null}}"));
    delete_(t, &nodeclaim_kind, t->claim);
}

/* Time passes, and nobody does anything. */
static inline void freeze(struct trial *t, int64_t ns)
{
    virtual_clock_advance(t->parts->time, ns);
}

static inline uint32_t instance_count(struct trial *t)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    sim_cloud_instances(t->parts->cloud, &arena, &count);
    return count;
}

/* Another claim of the pool, with `cpu` that it has got. */
static inline void create_claim(struct trial *t, const char *name, const char *owner_uid, int cpu)
{
    create(t, &nodeclaim_kind,
           js(t,
              "{'metadata':{'name':'%s','finalizers':['karpenter.sh/termination'],"
              "'labels':{'karpenter.sh/nodepool':'web'},'ownerReferences':[{'apiVersion':"
              "'karpenter.sh/v1','kind':'NodePool','name':'web','uid':'%s'}]},"
              "'spec':{'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
              "'name':'default'},'requirements':[],'resources':{'requests':{'cpu':'1'}}}}",
              name, owner_uid));
    patch(t, &nodeclaim_kind, str_of(name), true,
          js(t, "{'status':{'capacity':{'cpu':'%d'}}}", cpu));
}

static inline void create_claim_of_pool(struct trial *t, const char *name, int cpu)
{
    AUTO_OBJECT pool = only(t, &nodepool_kind);
    create_claim(t, name, pool->meta.uid.p, cpu);
}

static inline void create_pod(struct trial *t, const char *name, const char *on, const char *cpu)
{
    create(t, &pod_kind,
           js(t,
              "{'metadata':{'name':'%s'},'spec':{%s'containers':[{'name':'c','image':'i',"
              "'resources':{'requests':{'cpu':'%s'}}}]}}",
              name, on, cpu));
}

static inline void edit_pool(struct trial *t)
{
    patch(t, &nodepool_kind, STR("web"), false, js(t, "{'spec':{'weight':9}}"));
}
