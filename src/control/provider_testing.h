/* control/provider_testing.h - a cloud on paper, for tests of what the control plane asks of one.
 *
 *     struct paper_cloud cloud;
 *     paper_cloud_init(&cloud);
 *     ... stage_new((struct stage_options){ .maybe_provider = &cloud.port, ... });
 *     cloud.failure = (struct launch_failure){ LAUNCH_CREATE_ERROR, "Unauthorized" };
 *     cloud.fails[PAPER_CREATE] = ERR_DENIED;
 *
 * It launches at once, one instance per claim UID, remembers every instance there ever was, counts
 * the calls, and fails as it is told: always (`fails`), or as the hooks say, before a call has an
 * effect or after. Nodes do not come by themselves: paper_node_joins.
 */
#pragma once

#include "base/vec.h"
#include "control/testing.h"

enum paper_call {
    PAPER_CREATE,
    PAPER_DELETE,
    PAPER_GET,
    PAPER_LIST,
    PAPER_DRIFT,
    PAPER_TYPES,
    PAPER_CALLS,
};

struct paper_instance {
    struct str claim_uid;
    struct instance instance;
    uint32_t delete_count; /* calls that asked for its end */
    bool gone;
};

struct paper_cloud {
    struct cloud_provider port;
    const struct clock *clock;
    struct arena arena;
    VEC(struct paper_instance *) instances; /* all there ever were */
    uint32_t calls[PAPER_CALLS];

    enum err_kind fails[PAPER_CALLS]; /* without effect; ERR_NONE: it works */
    struct launch_failure failure;    /* of a create that fails so */
    const char *words;                /* of every failure */
    enum err_kind (*before)(void *ctx, enum paper_call call);
    enum err_kind (*after)(void *ctx, enum paper_call call);
    void *ctx;

    uint32_t polls;    /* deletes that say "it has begun" before one says "it is gone" */
    const char *drift; /* what is_drifted says */
    const struct instance_types *types; /* borrowed; NULL: kwok's */
    struct str_map labels, annotations; /* that an instance brings beyond its own */
};

static inline int paper_fail(struct paper_cloud *cloud, enum err_kind kind, struct err *err)
{
    return err_set(err, kind, "%s", cloud->words ? cloud->words : "the cloud is out of order");
}

/* Negative: the call fails before it does anything. */
static inline int paper_enter(struct paper_cloud *cloud, enum paper_call call, struct err *err)
{
    cloud->calls[call]++;
    enum err_kind kind = cloud->fails[call];
    if (!kind && cloud->before)
        kind = cloud->before(cloud->ctx, call);
    return kind ? paper_fail(cloud, kind, err) : 0;
}

/* Negative: it was done, and the answer got lost. */
static inline int paper_leave(struct paper_cloud *cloud, enum paper_call call, struct err *err)
{
    enum err_kind kind = cloud->after ? cloud->after(cloud->ctx, call) : ERR_NONE;
    return kind ? paper_fail(cloud, kind, err) : 0;
}

static inline struct paper_instance *paper_find(struct paper_cloud *cloud, struct str uid,
                                                struct str provider_id)
{
    vec_each(&cloud->instances, struct paper_instance *, it) {
        struct paper_instance *i = *it;
        if ((uid.len && str_eq(i->claim_uid, uid)) ||
            (provider_id.len && str_eq(i->instance.provider_id, provider_id)))
            return i;
    }
    return NULL;
}

static inline int by_pair_key(const void *a, const void *b)
{
    return str_pair_order(a, b);
}

static inline struct str_map paper_labels(struct paper_cloud *cloud)
{
    const struct str_pair own[] = {
        { STR(LABEL_CAPACITY_TYPE), STR(CAPACITY_SPOT) },
        { STR(LABEL_ARCH), STR("amd64") },
        { STR(LABEL_OS), STR("linux") },
        { STR(LABEL_INSTANCE_TYPE), STR("c-2x-amd64-linux") },
        { STR(LABEL_ZONE), STR("test-zone-a") },
    };
    uint32_t count = KV_COUNT_OF(own);
    struct str_pair *all = arena_array(&cloud->arena, struct str_pair, count + cloud->labels.count);
    memcpy(all, own, sizeof own);
    for (uint32_t i = 0; i < cloud->labels.count; i++)
        all[count++] = cloud->labels.items[i];
    qsort(all, count, sizeof *all, by_pair_key);
    return (struct str_map){ all, count };
}

static inline struct resources paper_resources(struct paper_cloud *cloud)
{
    struct resource *items = arena_array(&cloud->arena, struct resource, 3);
    items[0] = (struct resource){ STR("cpu"), quantity_of(2) };
    items[1] = (struct resource){ STR("memory"), quantity_of((int64_t)4 << 30) };
    items[2] = (struct resource){ STR("pods"), quantity_of(32) };
    return (struct resources){ items, 3 };
}

/* An instance that nobody asked for, or one for a claim. */
static inline struct paper_instance *paper_launch(struct paper_cloud *cloud, struct str claim_name,
                                                  struct str claim_uid)
{
    struct arena *a = &cloud->arena;
    struct paper_instance *i = arena_new(a, struct paper_instance);
    unsigned number = (unsigned)cloud->instances.count;
    i->claim_uid = arena_str(a, claim_uid);
    i->instance = (struct instance){ .provider_id = arena_strf(a, "paper://%04u", number),
                                     .node_name = arena_strf(a, "paper-%u", number),
                                     .claim_name = arena_str(a, claim_name),
                                     .image_id = STR("image-1"),
                                     .instance_type = STR("c-2x-amd64-linux"),
                                     .zone = STR("test-zone-a"),
                                     .capacity_type = STR(CAPACITY_SPOT),
                                     .labels = paper_labels(cloud),
                                     .annotations = cloud->annotations,
                                     .capacity = paper_resources(cloud),
                                     .allocatable = paper_resources(cloud),
                                     .created_us = clock_wall_us(cloud->clock) };
    vec_push(&cloud->instances, i);
    return i;
}

/* --- the port --- */

static inline int paper_create(void *ctx, const struct nodeclaim *claim,
                               struct arena *arena KV_UNUSED, struct instance *out,
                               struct launch_failure *why, struct err *err)
{
    struct paper_cloud *cloud = ctx;
    *why = cloud->failure;
    if (paper_enter(cloud, PAPER_CREATE, err) < 0)
        return -1;
    *why = (struct launch_failure){ .kind = LAUNCH_OTHER };
    struct paper_instance *i = paper_find(cloud, claim->object.meta.uid, STR(""));
    if (!i)
        i = paper_launch(cloud, claim->object.meta.name, claim->object.meta.uid);
    if (paper_leave(cloud, PAPER_CREATE, err) < 0)
        return -1;
    *out = i->instance;
    return 0;
}

static inline int paper_delete(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    struct paper_cloud *cloud = ctx;
    if (paper_enter(cloud, PAPER_DELETE, err) < 0)
        return -1;
    struct paper_instance *i = paper_find(cloud, claim->object.meta.uid, claim->status.provider_id);
    bool found = i && !i->gone;
    if (found) {
        i->instance.terminating = true;
        i->gone = i->delete_count++ >= cloud->polls;
        found = !i->gone;
    }
    if (paper_leave(cloud, PAPER_DELETE, err) < 0)
        return -1;
    return found ? 0 : err_set(err, ERR_NOT_FOUND, "there is no such instance");
}

static inline int paper_get(void *ctx, struct str provider_id, struct arena *arena KV_UNUSED,
                            struct instance *out, struct err *err)
{
    struct paper_cloud *cloud = ctx;
    if (paper_enter(cloud, PAPER_GET, err) < 0 || paper_leave(cloud, PAPER_GET, err) < 0)
        return -1;
    const struct paper_instance *i = paper_find(cloud, STR(""), provider_id);
    if (!i || i->gone)
        return err_set(err, ERR_NOT_FOUND, "there is no such instance");
    *out = i->instance;
    return 0;
}

/* Numbered as they were made, so they are sorted. */
static inline int paper_list(void *ctx, struct arena *arena, struct instances *out, struct err *err)
{
    struct paper_cloud *cloud = ctx;
    if (paper_enter(cloud, PAPER_LIST, err) < 0 || paper_leave(cloud, PAPER_LIST, err) < 0)
        return -1;
    struct instance *items = arena_array(arena, struct instance, cloud->instances.count);
    uint32_t count = 0;
    vec_each(&cloud->instances, struct paper_instance *, it) {
        if (!(*it)->gone)
            items[count++] = (*it)->instance;
    }
    *out = (struct instances){ items, count };
    return 0;
}

static inline int paper_is_drifted(void *ctx, const struct nodeclaim *claim KV_UNUSED,
                                   const char **reason, struct err *err)
{
    struct paper_cloud *cloud = ctx;
    if (paper_enter(cloud, PAPER_DRIFT, err) < 0 || paper_leave(cloud, PAPER_DRIFT, err) < 0)
        return -1;
    *reason = cloud->drift ? cloud->drift : "";
    return 0;
}

static inline int paper_types(void *ctx, const struct nodepool *pool KV_UNUSED,
                              const struct instance_types **out, struct err *err)
{
    struct paper_cloud *cloud = ctx;
    if (paper_enter(cloud, PAPER_TYPES, err) < 0 || paper_leave(cloud, PAPER_TYPES, err) < 0)
        return -1;
    *out = instance_types_ref(cloud->types ? cloud->types : kwok_types());
    return 0;
}

static inline int paper_generation(void *ctx, const struct nodepool *pool KV_UNUSED,
                                   struct generation *out, struct err *err KV_UNUSED)
{
    struct paper_cloud *cloud = ctx;
    *out = (struct generation){ 0 };
    out->member[GENERATION_TYPES] = cloud->types ? cloud->types->checksum : 0;
    return 0;
}

static const struct node_class_kind paper_classes[] = { { KWOK_GROUP, "KWOKNodeClass" } };

static inline void paper_cloud_init(struct paper_cloud *cloud)
{
    *cloud = (struct paper_cloud){ .failure = { .kind = LAUNCH_OTHER } };
    cloud->port = (struct cloud_provider){ .get_instance_types = paper_types,
                                           .get_generation = paper_generation,
                                           .create = paper_create,
                                           .delete_ = paper_delete,
                                           .get = paper_get,
                                           .list = paper_list,
                                           .is_drifted = paper_is_drifted,
                                           .name = "paper",
                                           .node_classes = paper_classes,
                                           .node_class_count = KV_COUNT_OF(paper_classes),
                                           .ctx = cloud };
}

static inline void paper_cloud_done(struct paper_cloud *cloud)
{
    vec_done(&cloud->instances);
    arena_done(&cloud->arena);
}

static inline uint32_t paper_running(const struct paper_cloud *cloud)
{
    uint32_t count = 0;
    for (size_t i = 0; i < cloud->instances.count; i++)
        count += !cloud->instances.items[i]->gone;
    return count;
}

/* --- a stage with a cloud on paper --- */

struct paper_stage {
    struct paper_cloud cloud;
    struct stage *s;
    const struct store *store;
};

static inline struct paper_stage *paper_stage_new(const struct controller *const *list,
                                                  uint32_t count)
{
    struct paper_stage *p = kv_calloc(1, sizeof *p);
    paper_cloud_init(&p->cloud);
    p->s = stage_new_idle((struct stage_options){
        .controllers = list, .count = count, .maybe_provider = &p->cloud.port });
    p->cloud.clock = virtual_clock_port(p->s->w->time);
    p->store = p->s->w->store;
    stage_restart(p->s);
    return p;
}

static inline void paper_stage_free(struct paper_stage *p)
{
    stage_free(p->s);
    paper_cloud_done(&p->cloud);
    free(p);
}
KV_AUTO_TYPE(paper_stage, paper_stage_free)

/* A claim of the pool "web", which is made if need be. `spec` adds to its spec:
 * "'expireAfter':'1h',". */
static inline void paper_claim(struct paper_stage *p, const char *name, const char *spec)
{
    if (!is_there(p->store, &nodepool_kind, "web"))
        object_unref(make_pool(p->s, "web", ""));
    AUTO_OBJECT pool = get(p->store, &nodepool_kind, "web");
    object_unref(
        make(p->store, &nodeclaim_kind,
             js("{'metadata':{'name':'%s','labels':{'karpenter.sh/nodepool':'web','team':'shop'},"
                "'annotations':{'note':'x'},'ownerReferences':[{'apiVersion':'karpenter.sh/v1',"
                "'kind':'NodePool','name':'web','uid':'%.*s','blockOwnerDeletion':true}]},"
                "'spec':{%s'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
                "'name':'default'},'requirements':[{'key':'kubernetes.io/os','operator':'In',"
                "'values':['linux']}],'resources':{'requests':{'cpu':'1','pods':'3'}}}}",
                name, STR_ARG(pool->meta.uid), spec)));
}

/* The kubelet of the claim's instance registers; it is not ready yet. */
static inline void paper_node_joins(struct paper_stage *p, const char *claim_name)
{
    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, claim_name);
    const struct paper_instance *i = paper_find(&p->cloud, claim->meta.uid, STR(""));
    EXPECT_TRUE(i != NULL);
    object_unref(make(p->store, &node_kind,
                      js("{'metadata':{'name':'%.*s'},'spec':{'providerID':'%.*s','taints':["
                         "{'key':'karpenter.sh/unregistered','effect':'NoExecute'}]},"
                         "'status':{'capacity':{'cpu':'2','memory':'4Gi','pods':'32'},"
                         "'allocatable':{'cpu':'2','memory':'4Gi','pods':'32'}}}",
                         STR_ARG(i->instance.node_name), STR_ARG(i->instance.provider_id))));
}

static inline void paper_node_ready(struct paper_stage *p, const char *node, bool ready)
{
    object_unref(merge_status(p->store, &node_kind, node,
                              js("{'status':{'conditions':[{'type':'Ready','status':'%s',"
                                 "'reason':'Kubelet','message':'',"
                                 "'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}",
                                 ready ? "True" : "False")));
}

/* A claim whose node is there and ready. */
static inline void paper_claim_lives(struct paper_stage *p, const char *name, const char *spec)
{
    paper_claim(p, name, spec);
    settle(p->s);
    paper_node_joins(p, name);
    settle(p->s);
    AUTO_OBJECT claim = get(p->store, &nodeclaim_kind, name);
    AUTO_FREE char *node = str_dup(nodeclaim_of(claim)->status.node_name);
    paper_node_ready(p, node, true);
    settle(p->s);
}

/* "True Launched", "Unknown NodeNotFound", "" if it is not there. */
static inline const char *paper_condition(struct paper_stage *p, const char *claim,
                                          const char *type)
{
    static _Thread_local char text[200];
    static const char *const words[] = { "", "True", "False", "Unknown" };
    AUTO_OBJECT object = get(p->store, &nodeclaim_kind, claim);
    const struct condition *condition = claim_condition(nodeclaim_of(object), str_of(type));
    if (!condition)
        return "";
    snprintf(text, sizeof text, "%s %.*s", words[condition->status], STR_ARG(condition->reason));
    return text;
}

/* Is a claim that has been deleted on its way out (or gone)? */
static inline bool paper_is_ending(struct paper_stage *p, const char *claim)
{
    if (!is_there(p->store, &nodeclaim_kind, claim))
        return true;
    AUTO_OBJECT object = get(p->store, &nodeclaim_kind, claim);
    return object->meta.deleted_us != 0;
}

/* The line of the exposition that starts with `series`, from its value on; "" if there is none. */
static inline const char *paper_metric(struct paper_stage *p, const char *series)
{
    static _Thread_local char text[64];
    AUTO_BUF all = { 0 };
    metrics_write(p->s->metrics, &all);
    const char *line = strstr(all.p, series);
    if (!line)
        return "";
    line += strlen(series);
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\n"), line);
    return text;
}
