/* control/termination_testing.h - a node that is to end: its claim, its pods, a cloud that holds one
 * instance, and a kubelet that ends what is deleted.
 */
#pragma once

#include "api/policy.h"
#include "api/storage.h"
#include "control/controllers.h"
#include "control/testing.h"

#define NODE "node-1"
#define PROVIDER_ID "fake://i-1"

/* --- a cloud with one instance --- */

struct fake_cloud {
    struct cloud_provider port;
    const struct clock *clock;
    bool is_there;
    int64_t delete_takes_s;
    int64_t gone_ns; /* when it will have ended; INT64_MAX: nobody has asked */
    unsigned gets, deletes;
    /* Asked before each call, and after those that change something: what the caller is told. */
    enum err_kind (*trouble)(void *ctx, bool after);
    void *trouble_ctx;
};

static inline void fake_cloud_age(struct fake_cloud *cloud)
{
    if (clock_mono_ns(cloud->clock) >= cloud->gone_ns)
        cloud->is_there = false;
}

static inline int fake_cloud_asked(struct fake_cloud *cloud, bool after, struct err *err)
{
    enum err_kind kind = cloud->trouble ? cloud->trouble(cloud->trouble_ctx, after) : ERR_NONE;
    fake_cloud_age(cloud);
    return kind ? err_set(err, kind, "trouble in the cloud") : 0;
}

static inline int fake_cloud_get(void *ctx, struct str provider_id, struct arena *arena KV_UNUSED,
                                 struct instance *out, struct err *err)
{
    struct fake_cloud *cloud = ctx;
    cloud->gets++;
    if (fake_cloud_asked(cloud, false, err) < 0)
        return -1;
    if (!cloud->is_there || !str_eqz(provider_id, PROVIDER_ID))
        return err_set(err, ERR_NOT_FOUND, "no such instance");
    *out = (struct instance){ .provider_id = STR(PROVIDER_ID) };
    return 0;
}

static inline int fake_cloud_delete(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    struct fake_cloud *cloud = ctx;
    cloud->deletes++;
    if (fake_cloud_asked(cloud, false, err) < 0)
        return -1;
    if (!cloud->is_there || !str_eqz(claim->status.provider_id, PROVIDER_ID))
        return err_set(err, ERR_NOT_FOUND, "no such instance");
    if (cloud->gone_ns == INT64_MAX)
        cloud->gone_ns = clock_mono_ns(cloud->clock) + cloud->delete_takes_s * SECOND_NS;
    return fake_cloud_asked(cloud, true, err);
}

static inline int fake_cloud_types(void *ctx KV_UNUSED, const struct nodepool *pool KV_UNUSED,
                                   const struct instance_types **out KV_UNUSED, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "this cloud launches nothing");
}

static inline int fake_cloud_generation(void *ctx KV_UNUSED, const struct nodepool *pool KV_UNUSED,
                                        struct generation *out KV_UNUSED, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "this cloud launches nothing");
}

static const struct repair_policy fake_policies[] = {
    { "Ready", "False", 30 * 60 * SECOND_NS },
    { "Ready", "Unknown", 30 * 60 * SECOND_NS },
    { "BadNode", "False", 10 * 60 * SECOND_NS },
};

static inline void fake_cloud_init(struct fake_cloud *cloud)
{
    static const struct node_class_kind classes[] = { { "karpenter.kwok.sh", "KWOKNodeClass" } };
    *cloud = (struct fake_cloud){ .is_there = true,
                                  .delete_takes_s = 12,
                                  .gone_ns = INT64_MAX,
                                  .port = { .get_instance_types = fake_cloud_types,
                                            .get_generation = fake_cloud_generation,
                                            .get = fake_cloud_get,
                                            .delete_ = fake_cloud_delete,
                                            .repair_policies = fake_policies,
                                            .repair_policy_count = KV_COUNT_OF(fake_policies),
                                            .name = "fake",
                                            .node_classes = classes,
                                            .node_class_count = 1,
                                            .ctx = cloud } };
}

/* --- the objects --- */

struct scene {
    struct fake_cloud cloud;
    struct stage *s;
    bool kubelet_is_dead;
    bool kubelet_is_slow; /* pods take all of their grace */
};

static inline void add_claim(struct scene *x, const char *name, const char *provider_id,
                             const char *spec)
{
    object_unref(
        make(x->s->w->store, &nodeclaim_kind,
             js("{'metadata':{'name':'%s','finalizers':['karpenter.sh/termination'],"
                "'labels':{'karpenter.sh/nodepool':'web','karpenter.sh/capacity-type':'spot'}},"
                "'spec':{%s'nodeClassRef':{'group':'karpenter.kwok.sh',"
                "'kind':'KWOKNodeClass','name':'default'},'requirements':[]}}",
                name, spec)));
    object_unref(merge_status(
        x->s->w->store, &nodeclaim_kind, name,
        js("{'status':{'providerID':'%s','nodeName':'" NODE "','imageID':'ami-1','conditions':["
           "{'type':'Launched','status':'True','reason':'Launched','message':'',"
           "'observedGeneration':1,'lastTransitionTime':'2026-01-02T03:00:00Z'},"
           "{'type':'Registered','status':'True','reason':'Registered','message':'',"
           "'observedGeneration':1,'lastTransitionTime':'2026-01-02T03:00:00Z'},"
           "{'type':'Initialized','status':'True','reason':'Initialized','message':'',"
           "'observedGeneration':1,'lastTransitionTime':'2026-01-02T03:00:00Z'},"
           "{'type':'Ready','status':'True','reason':'Ready','message':'',"
           "'observedGeneration':1,'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}",
           provider_id)));
}

static inline void set_node_condition(struct scene *x, const char *name, const char *type,
                                      const char *status)
{
    char now[TIME_TEXT_MAX];
    time_format(clock_wall_us(virtual_clock_port(x->s->w->time)), now);
    object_unref(merge_status(x->s->w->store, &node_kind, name,
                              js("{'status':{'conditions':[{'type':'%s','status':'%s',"
                                 "'lastTransitionTime':'%s'}]}}",
                                 type, status, now)));
}

static inline void add_node(struct scene *x, const char *name, const char *provider_id)
{
    object_unref(make(x->s->w->store, &node_kind,
                      js("{'metadata':{'name':'%s','finalizers':['karpenter.sh/termination'],"
                         "'labels':{'karpenter.sh/nodepool':'web',"
                         "'karpenter.sh/registered':'true',"
                         "'topology.kubernetes.io/zone':'z1'}},"
                         "'spec':{'providerID':'%s'}}",
                         name, provider_id)));
    set_node_condition(x, name, "Ready", "True");
}

/* A running pod of the node. `meta` and `spec` add members, with a comma before. */
static inline void add_pod(struct scene *x, const char *name, const char *meta, const char *spec)
{
    const struct store *store = x->s->w->store;
    char now[TIME_TEXT_MAX];
    time_format(clock_wall_us(virtual_clock_port(x->s->w->time)), now);
    object_unref(make(store, &pod_kind,
                      js("{'metadata':{'name':'%s','labels':{'app':'web'}%s},'spec':{"
                         "'nodeName':'" NODE "','containers':[{'name':'c','image':'i'}]%s}}",
                         name, meta, spec)));
    object_unref(merge_status(store, &pod_kind, name,
                              js("{'status':{'phase':'Running','startTime':'%s',"
                                 "'conditions':[{'type':'Ready','status':'True'}]}}",
                                 now)));
}

#define BY_DAEMON_SET                                                                              \
    ",'ownerReferences':[{'apiVersion':'apps/v1','kind':'DaemonSet','name':'d','uid':'u',"         \
    "'controller':true}]"
#define BY_NODE                                                                                    \
    ",'annotations':{'kubernetes.io/config.mirror':'x'},'ownerReferences':[{'apiVersion':'v1',"    \
    "'kind':'Node','name':'" NODE "','uid':'u','controller':true}]"
#define DO_NOT_DISRUPT(value) ",'annotations':{'karpenter.sh/do-not-disrupt':'" value "'}"
#define SYSTEM_CRITICAL ",'priorityClassName':'system-cluster-critical'"
#define TOLERATES_ALL ",'tolerations':[{'operator':'Exists'}]"

static const struct controller *const ending_controllers[] = { &node_termination, &eviction_queue,
                                                               &nodeclaim_lifecycle };

/* A node, its claim and an instance. `claim_spec`: "'terminationGracePeriod':'10m',". Without
 * `with_lifecycle` nobody else looks after the claim. */
static inline struct scene *scene_new(const char *claim_spec, bool with_lifecycle)
{
    struct scene *x = kv_calloc(1, sizeof *x);
    fake_cloud_init(&x->cloud);
    x->s = stage_new_idle((struct stage_options){ .controllers = ending_controllers,
                                                  .count = with_lifecycle ? 3 : 2,
                                                  .maybe_provider = &x->cloud.port });
    x->cloud.clock = virtual_clock_port(x->s->w->time);
    add_claim(x, "claim-1", PROVIDER_ID, claim_spec);
    add_node(x, NODE, PROVIDER_ID);
    stage_restart(x->s);
    return x;
}

static inline void scene_free(struct scene *x)
{
    stage_free(x->s);
    free(x);
}
KV_AUTO_TYPE(scene, scene_free)

/* --- what goes on --- */

/* Pods that are deleted end: at once, or when their grace is over. */
static inline void kubelet(struct scene *x)
{
    struct object_list pods = { 0 };
    struct err err = { 0 };
    int64_t now_us = clock_wall_us(virtual_clock_port(x->s->w->time));
    struct delete_options at_once = { .grace_s = { 0, true } };

    if (x->kubelet_is_dead)
        return;
    EXPECT_OK(store_list(x->s->w->store, &pod_kind, NULL, &pods, &err), err);
    for (size_t i = 0; i < pods.count; i++) {
        const struct meta *meta = &pods.items[i]->meta;
        struct object_ref ref = { &pod_kind, meta->namespace_, meta->name };
        if (meta->deleted_us && (!x->kubelet_is_slow || meta->deleted_us <= now_us))
            EXPECT_OK(store_remove(x->s->w->store, ref, &at_once, &err), err);
    }
    object_list_done(&pods);
}

static inline void pass(struct scene *x, int64_t seconds)
{
    for (int64_t i = 0; i < seconds; i++) {
        stage_pass(x->s, 1);
        kubelet(x);
        settle(x->s);
    }
}

static inline void delete_node(struct scene *x)
{
    remove_it(x->s->w->store, &node_kind, NODE);
    settle(x->s);
}

static inline bool is_going(struct scene *x, const char *pod)
{
    AUTO_OBJECT object = get(x->s->w->store, &pod_kind, pod);
    return object->meta.deleted_us != 0;
}

static inline bool has(struct scene *x, const struct kind *kind, const char *name)
{
    return is_there(x->s->w->store, kind, name);
}

/* "Unknown Draining", "" if it is not there. */
static inline const char *condition_words(struct scene *x, const char *type)
{
    static char text[200];
    static const char *const names[] = { "", "True", "False", "Unknown" };
    AUTO_OBJECT claim = get(x->s->w->store, &nodeclaim_kind, "claim-1");
    const struct condition *found = claim_condition(nodeclaim_of(claim), str_of(type));
    if (!found)
        return "";
    snprintf(text, sizeof text, "%s %.*s", names[found->status], STR_ARG(found->reason));
    return text;
}

/* How many events with that reason about objects of that name. */
static inline uint32_t events(struct scene *x, const char *reason, const char *about)
{
    struct object_list all = { 0 };
    struct err err = { 0 };
    uint32_t count = 0;
    EXPECT_OK(store_list(x->s->w->store, &event_kind, NULL, &all, &err), err);
    for (size_t i = 0; i < all.count; i++) {
        const struct event *event = event_of(all.items[i]);
        count += str_eqz(event->reason, reason) && str_eqz(event->involved.name, about);
    }
    object_list_done(&all);
    return count;
}

static inline bool metrics_have(struct scene *x, const char *line)
{
    AUTO_BUF out = { 0 };
    metrics_write(x->s->metrics, &out);
    return strstr(out.p, line) != NULL;
}
