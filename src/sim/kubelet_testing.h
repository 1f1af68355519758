/* sim/kubelet_testing.h - kubelets on a simulated cloud, for tests. */
#pragma once

#include "api/pod.h"
#include "sim/cloud_testing.h"
#include "sim/kubelet.h"

/* --- a cloud, kubelets, and a store to play with --- */

struct ground {
    struct sky *sky;
    struct kubelet *k;
    const struct store *store;
};

/* Pods start in 2 s, stop in 5 s, jobs run for a minute, startup taints go after 7 s. */
static inline struct ground *ground_new(void)
{
    struct ground *g = kv_calloc(1, sizeof *g);
    g->sky = sky_new((struct sim_cloud_options){ 0 });
    g->store = g->sky->w->store;
    g->k = kubelet_new((struct kubelet_options){
        .clock = virtual_clock_port(g->sky->w->time),
        .store = g->store,
        .cloud = g->sky->cloud,
        .pod_start = seconds(2),
        .pod_stop = seconds(5),
        .job_run = seconds(60),
        .startup_taints = seconds(7),
    });
    return g;
}

static inline void ground_free(struct ground *g)
{
    kubelet_free(g->k);
    sky_free(g->sky);
    free(g);
}
KV_AUTO_TYPE(ground, ground_free)

static inline int64_t step(struct ground *g)
{
    int64_t cloud_ns = sim_cloud_step(g->sky->cloud), next_ns = kubelet_step(g->k);
    return next_ns < cloud_ns ? next_ns : cloud_ns;
}

/* Seconds go by, from event to event. */
static inline void run(struct ground *g, int64_t s)
{
    const struct clock *clock = virtual_clock_port(g->sky->w->time);
    int64_t end_ns = clock_mono_ns(clock) + s * SECOND_NS;
    for (;;) {
        int64_t next_ns = step(g), now_ns = clock_mono_ns(clock);
        if (next_ns >= end_ns) {
            virtual_clock_advance(g->sky->w->time, end_ns - now_ns);
            step(g);
            return;
        }
        EXPECT_TRUE(next_ns > now_ns); /* nothing that is due was left undone */
        virtual_clock_advance(g->sky->w->time, next_ns - now_ns);
    }
}

static inline void set_ready(struct ground *g, const char *node, const char *status)
{
    object_unref(
        merge_status(g->store, &node_kind, node,
                     js("{'status':{'conditions':[{'type':'Ready','status':'%s'}]}}", status)));
}

static inline void ready_node(struct ground *g, const char *name)
{
    object_unref(
        make(g->store, &node_kind,
             js("{'metadata':{'name':'%s','labels':{'topology.kubernetes.io/zone':'%s-zone'"
                "}}}",
                name, name)));
    set_ready(g, name, "True");
}

static inline void add_pod(struct ground *g, const char *name, const char *node,
                           const char *more_meta, const char *more_spec)
{
    object_unref(make(g->store, &pod_kind,
                      js("{'metadata':{'name':'%s'%s},'spec':{'containers':[{'name':'c','image':"
                         "'i'}]%s}}",
                         name, more_meta, more_spec)));
    if (node)
        bind_pod(g->store, name, node);
}

/* "Pending", "Running", "Running not ready", ..., or "gone". */
static inline const char *state_of(struct ground *g, const char *name)
{
    static const char *const phases[] = { "", "Pending", "Running", "Succeeded", "Failed", "" };
    static char text[64];
    if (!is_there(g->store, &pod_kind, name))
        return "gone";
    AUTO_OBJECT object = get(g->store, &pod_kind, name);
    const struct pod *pod = pod_of(object);
    bool odd = pod->status->phase == PHASE_RUNNING && !pod_is_ready(pod);
    snprintf(text, sizeof text, "%s%s%s", phases[pod->status->phase], odd ? " not ready" : "",
             pod_is_terminating(pod) ? " ending" : "");
    return text;
}

static inline uint32_t count_of(struct ground *g, const struct kind *kind)
{
    struct object_list all = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(g->store, kind, NULL, &all, &err), err);
    uint32_t count = (uint32_t)all.count;
    object_list_done(&all);
    return count;
}
