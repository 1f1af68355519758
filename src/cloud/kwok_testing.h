/* cloud/kwok_testing.h - a cluster with kwok for tests, and what its controllers would do. */
#pragma once

#include "api/kinds.h"
#include "api/resources.h"
#include "cloud/kwok.h"
#include "store/testing.h"

/* --- a cluster with one node class, whose nodes take 30 s to register --- */

struct cloud {
    struct world *w;
    struct kwok *k;
    const struct cloud_provider *p;
    struct arena arena;
    uint64_t seed;
};

static inline void cloud_restart(struct cloud *c)
{
    kwok_free(c->k);
    c->k = kwok_new((struct kwok_options){
        .store = c->w->store, .clock = virtual_clock_port(c->w->time), .seed = c->seed });
    c->p = kwok_provider(c->k);
}

static inline struct cloud *cloud_new(void)
{
    struct cloud *c = kv_calloc(1, sizeof *c);
    c->w = world_new((struct embedded_options){ .seed = 7 });
    c->seed = 1;
    object_unref(
        make(c->w->store, &kwoknodeclass_kind,
             js("{'metadata':{'name':'default'},'spec':{'nodeRegistrationDelay':'30s'}}")));
    cloud_restart(c);
    return c;
}

static inline void cloud_free(struct cloud *c)
{
    kwok_free(c->k);
    arena_done(&c->arena);
    world_free(c->w);
    free(c);
}
KV_AUTO_TYPE(cloud, cloud_free)

static inline void pass(struct cloud *c, int64_t seconds)
{
    virtual_clock_advance(c->w->time, seconds * SECOND_NS);
    kwok_step(c->k);
}

#define LINUX "{'key':'kubernetes.io/os','operator':'In','values':['linux']}"
#define AMD64 "{'key':'kubernetes.io/arch','operator':'In','values':['amd64']}"
#define SPOT "{'key':'karpenter.sh/capacity-type','operator':'In','values':['spot']}"
#define ZONE_A "{'key':'topology.kubernetes.io/zone','operator':'In','values':['test-zone-a']}"
#define SMALL "'cpu':'500m','memory':'1Gi','pods':'3'"

static inline struct str claim_json(const char *name, const char *class_, const char *requirements,
                                    const char *requests)
{
    return js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'web','team':'shop'},"
              "'annotations':{'note':'x'}},"
              "'spec':{'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
              "'name':'%s'},'requirements':[%s],'resources':{'requests':{%s}}}}",
              name, class_, requirements, requests);
}

static inline const struct object *claim_of(struct cloud *c, const char *name,
                                            const char *requirements, const char *requests)
{
    return make(c->w->store, &nodeclaim_kind, claim_json(name, "default", requirements, requests));
}

static inline int try_launch(struct cloud *c, const struct object *claim, struct instance *out,
                             struct launch_failure *why, struct err *err)
{
    return c->p->create(c->p->ctx, nodeclaim_of(claim), &c->arena, out, why, err);
}

static inline struct instance launch(struct cloud *c, const struct object *claim)
{
    struct instance out;
    struct launch_failure why;
    struct err err = { 0 };
    EXPECT_OK(try_launch(c, claim, &out, &why, &err), err);
    return out;
}

static inline void expect_refused(struct cloud *c, const struct object *claim,
                                  enum launch_failure_kind kind, const char *words)
{
    struct instance out;
    struct launch_failure why = { .kind = LAUNCH_OTHER };
    struct err err = { 0 };
    EXPECT_TRUE(try_launch(c, claim, &out, &why, &err) < 0);
    EXPECT_EQ(why.kind, kind);
    EXPECT_HAS(str_of(err.text), words);
}

/* As the lifecycle controller does after a launch. */
static inline const struct object *told(struct cloud *c, const struct instance *i)
{
    AUTO_BUF labels = { 0 };
    for (uint32_t n = 0; n < i->labels.count; n++)
        buf_addf(&labels, "%s'%.*s':'%.*s'", n ? "," : "", STR_ARG(i->labels.items[n].key),
                 STR_ARG(i->labels.items[n].value));
    char cpu[QUANTITY_TEXT_MAX];
    quantity_format(resources_get(&i->allocatable, STR("cpu")), cpu);
    object_unref(merge(c->w->store, &nodeclaim_kind, i->claim_name.p,
                       js("{'metadata':{'labels':{%s}}}", labels.p)));
    return merge_status(c->w->store, &nodeclaim_kind, i->claim_name.p,
                        js("{'status':{'providerID':'%s','allocatable':{'cpu':'%s'},"
                           "'capacity':{'cpu':'1'},'conditions':[{'type':'Launched',"
                           "'status':'True','reason':'Launched','message':'',"
                           "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}",
                           i->provider_id.p, cpu));
}

static inline uint32_t node_count(struct cloud *c)
{
    struct object_list nodes = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(c->w->store, &node_kind, NULL, &nodes, &err), err);
    uint32_t count = (uint32_t)nodes.count;
    object_list_done(&nodes);
    return count;
}

static inline int get_instance(struct cloud *c, struct str provider_id, struct instance *out,
                               struct err *err)
{
    return c->p->get(c->p->ctx, provider_id, &c->arena, out, err);
}

static inline bool is_known(struct cloud *c, struct str provider_id)
{
    struct instance out;
    struct err err = { 0 };
    if (get_instance(c, provider_id, &out, &err) == 0) {
        EXPECT_TRUE(str_eq(out.provider_id, provider_id));
        return true;
    }
    EXPECT_EQ(err.kind, ERR_NOT_FOUND);
    return false;
}

static inline uint32_t list_count(struct cloud *c)
{
    struct instances all = { 0 };
    struct err err = { 0 };
    EXPECT_OK(c->p->list(c->p->ctx, &c->arena, &all, &err), err);
    for (uint32_t i = 1; i < all.count; i++)
        EXPECT_TRUE(str_cmp(all.items[i - 1].provider_id, all.items[i].provider_id) < 0);
    return all.count;
}

static inline void terminate(struct cloud *c, const struct object *claim)
{
    struct err err = { 0 };
    EXPECT_ERR(c->p->delete_(c->p->ctx, nodeclaim_of(claim), &err), err, ERR_NOT_FOUND);
}
