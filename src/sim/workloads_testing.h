/* sim/workloads_testing.h - for the tests of workload controllers: a store, the controllers, and kubelets
 * that do as they are told. */
#pragma once

#include "sim/workloads.h"

#include "api/workloads.h"
#include "base/map.h"
#include "codec/duration.h"
#include "sim/binder_match.h"
#include "store/testing.h"

#include <inttypes.h>

struct lab {
    struct world *w;
    struct workloads *workloads;
    const struct store *store;
};

static inline struct lab *lab_new(void)
{
    struct lab *l = kv_calloc(1, sizeof *l);
    l->w = world_new((struct embedded_options){ .seed = 7 });
    l->store = l->w->store;
    l->workloads = workloads_new(l->store, virtual_clock_port(l->w->time), 1);
    return l;
}

static inline void lab_free(struct lab *l)
{
    workloads_free(l->workloads);
    world_free(l->w);
    free(l);
}
KV_AUTO_TYPE(lab, lab_free)

static inline int64_t step(struct lab *l)
{
    return workloads_step(l->workloads);
}

static inline void pass(struct lab *l, int64_t seconds)
{
    virtual_clock_advance(l->w->time, seconds * SECOND_NS);
    step(l);
}

static inline struct object_list all(struct lab *l, const struct kind *kind)
{
    struct object_list list = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(l->store, kind, NULL, &list, &err), err);
    return list;
}

static inline size_t count_of(struct lab *l, const struct kind *kind)
{
    struct object_list list = all(l, kind);
    size_t count = list.count;
    object_list_done(&list);
    return count;
}

static inline const char *z(struct str s) /* good for a few calls */
{
    static char texts[4][300];
    static unsigned next;
    char *text = texts[next++ % 4];
    snprintf(text, sizeof texts[0], "%.*s", STR_ARG(s));
    return text;
}

/* Names and nothing else, in order. */
static inline const char *names_of(struct lab *l, const struct kind *kind)
{
    static char text[1000];
    struct object_list list = all(l, kind);
    size_t len = 0;
    text[0] = 0;
    for (size_t i = 0; i < list.count && len < sizeof text - 100; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s", i ? " " : "",
                                STR_ARG(list.items[i]->meta.name));
    object_list_done(&list);
    return text;
}

/* As kubelets do: what is new runs, what ends is gone. How many pods that concerned. */
static inline size_t kubelets(struct lab *l)
{
    struct object_list pods = all(l, &pod_kind);
    size_t changed = 0;
    struct err err = { 0 };
    for (size_t i = 0; i < pods.count; i++) {
        const struct pod *pod = pod_of(pods.items[i]);
        const char *name = z(pod->object.meta.name);
        if (pod_is_terminating(pod)) {
            struct delete_options now = { .grace_s = { 0, true } };
            EXPECT_OK(store_remove(l->store, at(&pod_kind, name), &now, &err), err);
        } else if (!pod_is_scheduled(pod)) {
            struct str only = pod_only_node(pod->maybe_affinity);
            char time[TIME_TEXT_MAX];
            time_format(clock_wall_us(virtual_clock_port(l->w->time)), time);
            bind_pod(l->store, name, only.len ? z(only) : "node-1");
            object_unref(merge_status(l->store, &pod_kind, name,
                                      js("{'status':{'phase':'Running','conditions':[{'type':"
                                         "'Ready','status':'True','lastTransitionTime':'%s'}]}}",
                                         time)));
        } else {
            continue;
        }
        changed++;
    }
    object_list_done(&pods);
    return changed;
}

static inline void settle(struct lab *l)
{
    for (int i = 0; i < 100; i++) {
        step(l);
        if (!kubelets(l))
            return;
    }
    EXPECT_Z("does not settle", "settles");
}

static inline size_t active_pods(struct lab *l)
{
    struct object_list pods = all(l, &pod_kind);
    size_t count = 0;
    for (size_t i = 0; i < pods.count; i++)
        count +=
            !pod_is_terminating(pod_of(pods.items[i])) && !pod_is_terminal(pod_of(pods.items[i]));
    object_list_done(&pods);
    return count;
}

static inline size_t ready_pods(struct lab *l)
{
    struct object_list pods = all(l, &pod_kind);
    size_t count = 0;
    for (size_t i = 0; i < pods.count; i++)
        count += !pod_is_terminating(pod_of(pods.items[i])) && pod_is_ready(pod_of(pods.items[i]));
    object_list_done(&pods);
    return count;
}

static inline size_t pods_with(struct lab *l, const char *image)
{
    struct object_list pods = all(l, &pod_kind);
    size_t count = 0;
    for (size_t i = 0; i < pods.count; i++) {
        const struct pod *pod = pod_of(pods.items[i]);
        count += !pod_is_terminating(pod) && str_eqz(pod->spec->containers.items[0].image, image);
    }
    object_list_done(&pods);
    return count;
}

#define TEMPLATE                                                                                   \
    "'template':{'metadata':{'labels':{'app':'web'}},"                                             \
    "'spec':{'containers':[{'name':'c','image':'i','env':[{'name':'A','value':'1'}],"              \
    "'resources':{'requests':{'cpu':'100m'}}}]}}"

static inline void deploy(struct lab *l, const char *more, int replicas)
{
    object_unref(make(l->store, &deployment_kind,
                      js("{'metadata':{'name':'web'},'spec':{'replicas':%d,%s"
                         "'selector':{'matchLabels':{'app':'web'}}," TEMPLATE "}}",
                         replicas, more)));
}

static inline void set_image(struct lab *l, const struct kind *kind, const char *name,
                             const char *image)
{
    object_unref(merge(
        l->store, kind, name,
        js("{'spec':{'template':{'spec':{'containers':[{'name':'c','image':'%s'}]}}}}", image)));
}

static inline void scale(struct lab *l, const struct kind *kind, const char *name, int replicas)
{
    object_unref(merge(l->store, kind, name, js("{'spec':{'replicas':%d}}", replicas)));
}

static inline void stateful(struct lab *l, const char *more, int replicas)
{
    object_unref(
        make(l->store, &stateful_set_kind,
             js("{'metadata':{'name':'db'},'spec':{'serviceName':'db','replicas':%d,%s"
                "'volumeClaimTemplates':[{'metadata':{'name':'data'},'spec':{'accessModes':["
                "'ReadWriteOnce'],'resources':{'requests':{'storage':'1Gi'}}}}],"
                "'selector':{'matchLabels':{'app':'web'}}," TEMPLATE "}}",
                replicas, more)));
}

static inline void job(struct lab *l, const char *spec)
{
    object_unref(make(l->store, &job_kind,
                      js("{'metadata':{'name':'work'},'spec':{%s'template':{'spec':{"
                         "'restartPolicy':'Never','containers':[{'name':'c','image':'i'}]}}}}",
                         spec)));
}

/* So many of the active pods end. */
static inline void finish(struct lab *l, size_t count, const char *phase)
{
    struct object_list pods = all(l, &pod_kind);
    for (size_t i = 0; i < pods.count && count; i++) {
        if (pod_is_terminal(pod_of(pods.items[i])))
            continue;
        set_pod(l->store, z(pods.items[i]->meta.name), phase, false);
        count--;
    }
    object_list_done(&pods);
    step(l);
}

static inline const struct job *job_now(struct lab *l, const struct object **out)
{
    object_unref(*out);
    *out = get(l->store, &job_kind, "work");
    return job_of(*out);
}
