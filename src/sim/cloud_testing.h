/* sim/cloud_testing.h - a simulated cloud on an embedded store, for tests. */
#pragma once

#include "api/kinds.h"
#include "api/nodeclaim.h"
#include "sim/cloud.h"
#include "store/testing.h"

struct sky {
    struct world *w;
    struct sim_cloud *cloud;
    const struct cloud_provider *p;
    struct arena arena;
};

#define TEST_BOOT_S 30
#define TEST_READY_S 10
#define TEST_END_S 20

static inline struct span seconds(int64_t s)
{
    return (struct span){ s * SECOND_NS, s * SECOND_NS };
}

/* Boot 30 s, ready 10 s later, an end takes 20 s; `options` may say otherwise. */
static inline struct sky *sky_new(struct sim_cloud_options options)
{
    struct sky *s = kv_calloc(1, sizeof *s);
    s->w = world_new((struct embedded_options){ .seed = 7 });
    object_unref(make(s->w->store, &kwoknodeclass_kind, js("{'metadata':{'name':'default'}}")));
    object_unref(make(s->w->store, &kwoknodeclass_kind, js("{'metadata':{'name':'other'}}")));
    options.store = s->w->store;
    options.clock = virtual_clock_port(s->w->time);
    if (options.boot.max_ns == 0) {
        options.boot = seconds(TEST_BOOT_S);
        options.ready = seconds(TEST_READY_S);
        options.terminate = seconds(TEST_END_S);
    }
    s->cloud = sim_cloud_new(options);
    s->p = sim_cloud_provider(s->cloud);
    return s;
}

static inline void sky_free(struct sky *s)
{
    sim_cloud_free(s->cloud);
    arena_done(&s->arena);
    world_free(s->w);
    free(s);
}
KV_AUTO_TYPE(sky, sky_free)

static inline void pass(struct sky *s, int64_t seconds_)
{
    virtual_clock_advance(s->w->time, seconds_ * SECOND_NS);
    sim_cloud_step(s->cloud);
}

#define LINUX_AMD64                                                                                \
    "{'key':'kubernetes.io/os','operator':'In','values':['linux']},"                               \
    "{'key':'kubernetes.io/arch','operator':'In','values':['amd64']}"
#define SPOT "{'key':'karpenter.sh/capacity-type','operator':'In','values':['spot']}"
#define ZONE_A "{'key':'topology.kubernetes.io/zone','operator':'In','values':['test-zone-a']}"

static inline const struct object *claim_of_class(struct sky *s, const char *name,
                                                  const char *class_, const char *requirements)
{
    return make(s->w->store, &nodeclaim_kind,
                js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'web'}},"
                   "'spec':{'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
                   "'name':'%s'},'requirements':[%s],'resources':{'requests':{'cpu':'500m',"
                   "'memory':'1Gi','pods':'3'}}}}",
                   name, class_, requirements));
}

static inline const struct object *claim_of(struct sky *s, const char *name)
{
    return claim_of_class(s, name, "default", LINUX_AMD64);
}

static inline int try_launch(struct sky *s, const struct object *claim, struct instance *out,
                             struct launch_failure *why, struct err *err)
{
    return s->p->create(s->p->ctx, nodeclaim_of(claim), &s->arena, out, why, err);
}

static inline struct instance launch(struct sky *s, const struct object *claim)
{
    struct instance out = { 0 };
    struct launch_failure why;
    struct err err = { 0 };
    EXPECT_OK(try_launch(s, claim, &out, &why, &err), err);
    return out;
}

static inline struct instance launch_new(struct sky *s, const char *name)
{
    AUTO_OBJECT claim = claim_of(s, name);
    return launch(s, claim);
}

static inline void expect_refused(struct sky *s, const struct object *claim,
                                  enum launch_failure_kind kind, const char *words)
{
    struct instance out;
    struct launch_failure why;
    struct err err = { 0 };
    EXPECT_TRUE(try_launch(s, claim, &out, &why, &err) < 0);
    EXPECT_EQ(why.kind, kind);
    EXPECT_HAS(str_of(err.text), words);
}

static inline bool is_known(struct sky *s, const struct instance *i)
{
    struct instance out;
    struct err err = { 0 };
    if (s->p->get(s->p->ctx, i->provider_id, &s->arena, &out, &err) == 0)
        return true;
    EXPECT_EQ(err.kind, ERR_NOT_FOUND);
    return false;
}

static inline uint32_t list_count(struct sky *s)
{
    struct instances all = { 0 };
    struct err err = { 0 };
    EXPECT_OK(s->p->list(s->p->ctx, &s->arena, &all, &err), err);
    for (uint32_t i = 1; i < all.count; i++)
        EXPECT_TRUE(str_cmp(all.items[i - 1].provider_id, all.items[i].provider_id) < 0);
    return all.count;
}

/* "absent", or the status of its condition Ready. */
static inline const char *ready_word(struct sky *s, const struct instance *i)
{
    AUTO_OBJECT node = NULL;
    struct err err = { 0 };
    struct object_ref ref = { &node_kind, STR(""), i->node_name };
    if (store_get(s->w->store, ref, &node, &err) < 0)
        return "absent";
    static const char *const words[] = { "unset", "True", "False", "Unknown" };
    const struct condition *ready = node_condition(node_of(node), STR("Ready"));
    return words[ready ? ready->status : 0];
}
