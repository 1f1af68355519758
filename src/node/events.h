/* node/events.h - pod lifecycle events, from the PLEG to everybody who subscribed.
 *
 * Subscribers read at their own pace what was sent since they came. A slow one loses the oldest and is
 * told how many, so that it can look at everything instead; it never holds up the PLEG or the others.
 * An event is kept once, while somebody has yet to read it; the last few also for who comes late.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"

#define EVENTS_RING 1000 /* as many a subscriber may be behind before it loses the oldest */
#define EVENTS_KEPT 200  /* the last that were sent, for who asks what happened before */

enum pod_event_type {
    POD_EVENT_STARTED,
    POD_EVENT_DIED,
    POD_EVENT_REMOVED,
    POD_EVENT_SYNC, /* of the pod as a whole: an inspection that had failed worked */
};
const char *pod_event_name(enum pod_event_type type); /* "ContainerStarted", "PodSync" */

#define POD_EVENT_TEXT_MAX 256

/* Plain bytes, so that a copy is all there is to owning one. */
struct pod_event {
    uint64_t number; /* from 1, without gaps, in the order they were sent */
    int64_t wall_us;
    enum pod_event_type type;
    bool sandbox;      /* `id` is a sandbox */
    int32_t exit_code; /* of DIED, if has_exit_code */
    bool has_exit_code;
    char uid[64], id[80], namespace_[64], pod[POD_EVENT_TEXT_MAX], container[64], reason[64];
};

struct event_hub;
struct event_hub *event_hub_new(const struct clock *clock);
void event_hub_free(struct event_hub *hub); /* no subscriber is left; NULL is fine */
KV_AUTO_TYPE(event_hub, event_hub_free)

/* Copies it, numbers it, and dates it unless wall_us is set. Never blocks. Nothing is sent once the hub
 * is closed. */
void event_hub_send(struct event_hub *hub, const struct pod_event *event);
uint64_t event_hub_dropped(struct event_hub *hub); /* lost by all subscribers together */
void event_hub_close(struct event_hub *hub);       /* every wait ends, now and later */
bool event_hub_closed(struct event_hub *hub);

struct event_sub;
/* `wake`, if not NULL, is called after each send and at the close, by the sender's thread: it must be
 * quick and not call the hub. Once event_sub_free has returned it is not called any more. */
struct event_sub *event_sub_new(struct event_hub *hub, void (*wake)(void *ctx), void *ctx);
/* The same, and it begins with those after `since` (0: all) that are still kept. Where some of them are
 * not, the subscriber has lost them; with 0 it is not told. */
struct event_sub *event_sub_new_since(struct event_hub *hub, uint64_t since,
                                      void (*wake)(void *ctx), void *ctx);
void event_sub_free(struct event_sub *sub); /* nobody waits with it; NULL is fine */
KV_AUTO_TYPE(event_sub, event_sub_free)

/* The next event, waiting until until_ns (0: not at all). 1: here; 0: none in time, or the hub is
 * closed and all before that has been read. `*lost` grows by how many were lost since the last call,
 * all of them older than `*out`. */
int event_sub_next(struct event_sub *sub, int64_t until_ns, struct pod_event *out, uint64_t *lost);
