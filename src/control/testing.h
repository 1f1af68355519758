/* control/testing.h - a control plane for tests: the embedded store, virtual time, a cloud, and only the
 * controllers that the test is about.
 *
 *     static const struct controller *const some[] = { &nodeclaim_lifecycle };
 *     AUTO(stage) s = stage_new((struct stage_options){ .controllers = some, .count = 1 });
 *     ... make(s->w->store, &nodeclaim_kind, ...);
 *     settle(s);                  // run until nothing is to be done now
 *     stage_pass(s, 60);          // let a minute pass, doing what comes due on its way
 */
#pragma once

#include "api/kinds.h"
#include "cloud/kwok.h"
#include "control/control_impl.h"
#include "store/testing.h"

struct stage_options {
    const struct controller *const *controllers;
    uint32_t count;
    const struct cloud_provider *maybe_provider; /* NULL: kwok, with the class "default" */
    const struct store *maybe_store;             /* NULL: the embedded store as it is */
    struct control_settings settings;            /* all zero: the defaults */
    int64_t registration_delay_s;                /* of kwok's nodes */
};

struct stage {
    struct world *w;
    struct kwok *k; /* NULL with another provider */
    const struct cloud_provider *provider;
    struct metrics *metrics;
    struct control *c;
    struct stage_options options;
};

/* A new process: all it knows is the store. */
static inline void stage_restart(struct stage *s)
{
    control_free(s->c);
    struct control_options options = {
        .store = s->options.maybe_store ? s->options.maybe_store : s->w->store,
        .provider = s->provider,
        .clock = virtual_clock_port(s->w->time),
        .maybe_metrics = s->metrics,
        .seed = 5,
        .settings =
            s->options.settings.batch_max_ns ? s->options.settings : control_settings_default,
    };
    s->c = control_new_with(options, s->options.controllers, s->options.count);
}

/* The parts, without the control plane: for tests that put something in between first. */
static inline struct stage *stage_new_idle(struct stage_options options)
{
    struct stage *s = kv_calloc(1, sizeof *s);
    s->options = options;
    s->w = world_new((struct embedded_options){ .seed = 7 });
    s->metrics = metrics_new(virtual_clock_port(s->w->time));
    object_unref(make(s->w->store, &kwoknodeclass_kind,
                      js("{'metadata':{'name':'default'},'spec':{'nodeRegistrationDelay':'%ds'}}",
                         (int)options.registration_delay_s)));
    s->provider = options.maybe_provider;
    if (!s->provider) {
        s->k = kwok_new((struct kwok_options){
            .store = s->w->store, .clock = virtual_clock_port(s->w->time), .seed = 1 });
        s->provider = kwok_provider(s->k);
    }
    return s;
}

static inline struct stage *stage_new(struct stage_options options)
{
    struct stage *s = stage_new_idle(options);
    stage_restart(s);
    return s;
}

static inline void stage_free(struct stage *s)
{
    control_free(s->c);
    kwok_free(s->k);
    metrics_free(s->metrics);
    world_free(s->w);
    free(s);
}
KV_AUTO_TYPE(stage, stage_free)

#define SETTLE_STEPS_MAX 100000

/* Run until there is nothing to do at this moment. */
static inline void settle(struct stage *s)
{
    for (int i = 0; i < SETTLE_STEPS_MAX; i++) {
        if (s->k)
            kwok_step(s->k);
        if (!control_step(s->c, NULL))
            return;
    }
    bool settled = false;
    EXPECT_TRUE(settled);
}

static inline int64_t stage_now_ns(const struct stage *s)
{
    return clock_mono_ns(virtual_clock_port(s->w->time));
}

/* Let time pass, from one thing that is due to the next. */
static inline void stage_pass(struct stage *s, int64_t seconds)
{
    int64_t end = stage_now_ns(s) + seconds * SECOND_NS;
    settle(s);
    while (stage_now_ns(s) < end) {
        int64_t due = control_next_due(s->c), kwok = s->k ? kwok_step(s->k) : INT64_MAX;
        due = kwok < due ? kwok : due;
        if (due > end)
            due = end;
        if (due > stage_now_ns(s))
            virtual_clock_advance(s->w->time, due - stage_now_ns(s));
        settle(s);
    }
}

/* --- objects that tests need --- */

/* A NodePool of the class "default", Ready as its controllers would say it. `spec` adds to the
 * template's spec, "" for nothing: "'expireAfter':'1h',". */
static inline const struct object *make_pool(struct stage *s, const char *name, const char *extra)
{
    object_unref(make(s->w->store, &nodepool_kind,
                      js("{'metadata':{'name':'%s'},'spec':{'template':{'spec':{%s"
                         "'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
                         "'name':'default'},'requirements':[{'key':'kubernetes.io/os',"
                         "'operator':'In','values':['linux']}]}}}}",
                         name, extra)));
    return merge_status(
        s->w->store, &nodepool_kind, name,
        js("{'status':{'conditions':["
           "{'type':'ValidationSucceeded','status':'True','reason':'ValidationSucceeded',"
           "'message':'','observedGeneration':1,'lastTransitionTime':'2026-01-02T03:00:00Z'},"
           "{'type':'NodeClassReady','status':'True','reason':'NodeClassReady',"
           "'message':'','observedGeneration':1,'lastTransitionTime':'2026-01-02T03:00:00Z'},"
           "{'type':'Ready','status':'True','reason':'Ready',"
           "'message':'','observedGeneration':1,'lastTransitionTime':'2026-01-02T03:00:00Z'}]}}"));
}

/* A pod that kube-scheduler has called unschedulable. */
static inline void make_pending(struct stage *s, const char *name, const char *cpu)
{
    object_unref(make(s->w->store, &pod_kind,
                      js("{'metadata':{'name':'%s'},'spec':{'containers':[{'name':'c','image':'i',"
                         "'resources':{'requests':{'cpu':'%s','memory':'1Gi'}}}]}}",
                         name, cpu)));
    object_unref(merge_status(s->w->store, &pod_kind, name,
                              js("{'status':{'conditions':[{'type':'PodScheduled','status':'False',"
                                 "'reason':'Unschedulable','message':'no nodes'}]}}")));
}

static inline uint32_t count_of(struct stage *s, const struct kind *kind)
{
    struct object_list all = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(s->w->store, kind, NULL, &all, &err), err);
    uint32_t count = (uint32_t)all.count;
    object_list_done(&all);
    return count;
}
