/* node/pleg_testing.h - a PLEG with all around it: a runtime in memory, a cache, a subscriber.
 *
 *     AUTO(rig) r = rig_new((struct rig_options){ 0 });
 *     const char *sandbox = fake_cri_sandbox(r->fake, "uid-web", "web", 0);
 *     relist(r);
 *     EXPECT_Z(events(r), "Started web");
 *
 * Events are words: "Started web/main", "Died web/main 137 OOMKilled", "Removed web" (a sandbox),
 * "Sync web"; separated by commas.
 */
#pragma once

#include "node/fake_cri_testing.h"
#include "node/pleg.h"
#include "support/test.h"

#include <stdio.h>
#include <time.h>

#define MS ((int64_t)1000000)
#define SECOND ((int64_t)1000000000)
#define HOUR (3600 * SECOND)

struct rig_options {
    struct fake_cri_options fake;
    bool real_time; /* else it stands still, so that nothing is late by itself, but for pass() */
    bool hints;     /* also listen to the runtime's events, once started */
    int64_t period_ns;
};

struct rig {
    struct fake_cri *fake;
    struct virtual_clock *maybe_time;
    const struct clock *clock;
    struct cri *cri;
    struct pod_cache *cache;
    struct event_hub *hub;
    struct event_sub *sub;
    struct metrics *metrics;
    struct pleg *pleg;
    struct buf text; /* what events() returned */
};

static inline struct rig *rig_new(struct rig_options options)
{
    struct rig *r = kv_calloc(1, sizeof *r);
    struct err err = { 0 };
    r->fake = fake_cri_new(options.fake);
    r->maybe_time = options.real_time ? NULL : virtual_clock_new(1800000000LL * 1000000);
    r->clock = r->maybe_time ? virtual_clock_port(r->maybe_time) : clock_real();
    if (r->maybe_time)
        virtual_clock_advance(r->maybe_time, SECOND); /* 0 means never */
    EXPECT_OK(
        cri_new((struct cri_options){ .endpoint = fake_cri_endpoint(r->fake), .clock = r->clock },
                &r->cri, &err),
        err);
    r->cache = pod_cache_new(r->clock);
    r->hub = event_hub_new(r->clock);
    r->sub = event_sub_new(r->hub, NULL, NULL);
    r->metrics = metrics_new(r->clock);
    r->pleg = pleg_new((struct pleg_options){ .cri = r->cri,
                                              .cache = r->cache,
                                              .events = r->hub,
                                              .clock = r->clock,
                                              .metrics = r->metrics,
                                              .period_ns = options.period_ns,
                                              .no_hints = !options.hints });
    return r;
}

static inline void rig_free(struct rig *r)
{
    pleg_stop(r->pleg);
    pleg_free(r->pleg);
    metrics_free(r->metrics);
    event_sub_free(r->sub);
    event_hub_free(r->hub);
    pod_cache_free(r->cache);
    cri_free(r->cri);
    fake_cri_free(r->fake);
    virtual_clock_free(r->maybe_time);
    buf_done(&r->text);
    free(r);
}
KV_AUTO_TYPE(rig, rig_free)

static inline void rig_start(struct rig *r)
{
    struct err err = { 0 };
    EXPECT_OK(pleg_start(r->pleg, &err), err);
}

static inline void pass(struct rig *r, int64_t ns)
{
    virtual_clock_advance(r->maybe_time, ns);
}

/* No two in the same instant. */
static inline void relist(struct rig *r)
{
    struct err err = { 0 };
    if (r->maybe_time)
        pass(r, MS);
    EXPECT_OK(pleg_relist(r->pleg, &err), err);
}

static inline void relist_pod(struct rig *r, const char *uid)
{
    struct err err = { 0 };
    if (r->maybe_time)
        pass(r, MS);
    EXPECT_OK(pleg_relist_pod(r->pleg, str_of(uid), &err), err);
}

/* --- pods --- */

/* A pod with a sandbox and a running container "main". */
struct web {
    const char *sandbox, *main;
};

static inline struct web make_pod(struct rig *r, const char *uid, const char *name)
{
    struct web w;
    w.sandbox = fake_cri_sandbox(r->fake, uid, name, 0);
    w.main = fake_cri_container(r->fake, w.sandbox, "main", 0);
    fake_cri_start(r->fake, w.main);
    return w;
}

static inline void fail_inspections(struct rig *r, const char *id, uint32_t times)
{
    fake_cri_fault(r->fake, (struct fake_fault){ .method = CRI_CONTAINER_STATUS,
                                                 .maybe_id = id,
                                                 .times = times,
                                                 .status = GRPC_UNKNOWN,
                                                 .message = "broken" });
}

static inline void hang_inspections(struct rig *r, const char *id)
{
    fake_cri_fault(r->fake, (struct fake_fault){
                                .method = CRI_CONTAINER_STATUS, .maybe_id = id, .hang = true });
}

/* --- what was told, and what is known --- */

static inline const char *event_words(struct buf *out, const struct pod_event *event)
{
    buf_clear(out);
    /* "ContainerStarted", "PodSync" */
    const char *name = pod_event_name(event->type);
    buf_addf(out, "%s %s", name + (event->type == POD_EVENT_SYNC ? 3 : 9), event->pod);
    if (event->container[0])
        buf_addf(out, "/%s", event->container);
    if (event->has_exit_code)
        buf_addf(out, " %d %s", event->exit_code, event->reason);
    return out->p;
}

static inline void events_add(struct rig *r)
{
    AUTO_BUF words = { 0 };
    struct pod_event event;
    uint64_t lost = 0;
    while (event_sub_next(r->sub, 0, &event, &lost))
        buf_addf(&r->text, "%s%s", r->text.len ? ", " : "", event_words(&words, &event));
    EXPECT_EQ(lost, 0);
}

/* All that came since the last time. */
static inline const char *events(struct rig *r)
{
    buf_clear(&r->text);
    events_add(r);
    return buf_str(&r->text).p;
}

/* One that is known already, and its events read. */
static inline struct web known_pod(struct rig *r, const char *uid, const char *name)
{
    struct web w = make_pod(r, uid, name);
    relist(r);
    events(r);
    return w;
}

/* "ready main=running side=exited(1)", oldest container first; "failed:" before what was last
 * known; "" is a pod that is unknown. */
static inline void status_words(struct buf *out, const struct runtime_status *status)
{
    if (status->error_kind != ERR_NONE)
        buf_addf(out, "failed:");
    for (uint32_t i = 0; i < status->sandboxes.count; i++)
        buf_addf(out, "%s%s", out->len ? " " : "",
                 status->sandboxes.items[i].ready ? "ready" : "ended");
    for (uint32_t i = status->containers.count; i-- > 0;) {
        const struct runtime_container *c = &status->containers.items[i];
        buf_addf(out, "%s%.*s=%s", out->len ? " " : "", STR_ARG(c->name),
                 runtime_state_name((enum runtime_state)c->state));
        if (c->state == RUNTIME_EXITED)
            buf_addf(out, "(%d)", c->exit_code);
    }
}

static inline const char *cached(struct rig *r, const char *uid)
{
    AUTO_STATUS status = pod_cache_get(r->cache, str_of(uid));
    buf_clear(&r->text);
    status_words(&r->text, status);
    return buf_str(&r->text).p;
}

static inline void nap(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = MS }, NULL);
}

/* Until it is so; half a minute, for a loaded machine with sanitizers. */
#define UNTIL(cond)                                                                                \
    do {                                                                                           \
        int until_tries_ = 0;                                                                      \
        while (!(cond) && ++until_tries_ < 30000)                                                  \
            nap();                                                                                 \
        EXPECT_TRUE(until_tries_ < 30000 && #cond);                                                \
    } while (0)

static inline bool same_z(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

/* While the loop runs: these come, and none before or between them. */
static inline void expect_events(struct rig *r, const char *want)
{
    buf_clear(&r->text);
    UNTIL((events_add(r), r->text.len >= strlen(want)));
    EXPECT_STR(buf_str(&r->text), want);
}
