/* node/events.c - one list of events for all subscribers, each of whom has a position in it.
 *
 *     first -> 7 -> 8 -> 9 <- last
 *              ^         ^
 *              slow      quick      (and one who has read all: NULL)
 *
 * An event counts the subscribers who have yet to read it. They read in order, so those that nobody
 * waits for are always at the front, and are freed as the slowest moves on, but for the last EVENTS_KEPT
 * of all. When somebody is stuck, there are at most EVENTS_RING. Texts are kept without the room that a
 * struct pod_event has for them: that is a third of it.
 */
#include "node/events.h"

#define TEXTS 6

struct sent {
    struct sent *next; /* the one sent after it */
    uint64_t number;
    int64_t wall_us;
    uint32_t reader_count;
    int32_t exit_code;
    uint8_t type;
    bool sandbox, has_exit_code;
    char texts[]; /* uid, id, namespace, pod, container, reason; each with its NUL */
};

struct event_sub {
    struct event_hub *hub;
    struct event_sub *prev, *next;
    struct sent *position;  /* the oldest unread; NULL: none */
    uint32_t pending_count; /* from the position on; at most EVENTS_RING */
    uint64_t lost_count;    /* since it was last told */
    pthread_cond_t sent;    /* or closed */
    void (*wake)(void *ctx);
    void *ctx;
};

struct event_hub {
    const struct clock *clock;
    pthread_mutex_t lock; /* guards all, subscribers too; only the clock's lock is taken inside */
    struct sent *first, *last;
    struct event_sub *subs;
    uint32_t sub_count, kept_count; /* kept: from first to last */
    uint64_t number, dropped_count;
    bool closed;
};

const char *pod_event_name(enum pod_event_type type)
{
    switch (type) {
    case POD_EVENT_STARTED:
        return "ContainerStarted";
    case POD_EVENT_DIED:
        return "ContainerDied";
    case POD_EVENT_REMOVED:
        return "ContainerRemoved";
    case POD_EVENT_SYNC:
        return "PodSync";
    }
    KV_UNREACHABLE();
}

struct event_hub *event_hub_new(const struct clock *clock)
{
    struct event_hub *hub = kv_calloc(1, sizeof *hub);
    hub->clock = clock;
    pthread_mutex_init(&hub->lock, NULL);
    return hub;
}

void event_hub_free(struct event_hub *hub)
{
    if (!hub)
        return;
    KV_ASSERT(hub->sub_count == 0);
    for (struct sent *next; hub->first; hub->first = next) {
        next = hub->first->next;
        free(hub->first);
    }
    pthread_mutex_destroy(&hub->lock);
    free(hub);
}

/* --- an event without its empty room --- */

static struct sent *sent_new(const struct pod_event *event)
{
    const char *texts[TEXTS] = { event->uid, event->id,        event->namespace_,
                                 event->pod, event->container, event->reason };
    size_t bytes = 0;
    for (size_t i = 0; i < TEXTS; i++)
        bytes += strlen(texts[i]) + 1;
    struct sent *sent = kv_malloc(sizeof *sent + bytes);
    *sent = (struct sent){ .wall_us = event->wall_us,
                           .exit_code = event->exit_code,
                           .type = (uint8_t)event->type,
                           .sandbox = event->sandbox,
                           .has_exit_code = event->has_exit_code };
    char *end = sent->texts;
    for (size_t i = 0; i < TEXTS; i++)
        end = stpcpy(end, texts[i]) + 1;
    return sent;
}

static void sent_read(const struct sent *sent, struct pod_event *out)
{
    char *texts[TEXTS] = {
        out->uid, out->id, out->namespace_, out->pod, out->container, out->reason
    };
    *out = (struct pod_event){ .number = sent->number,
                               .wall_us = sent->wall_us,
                               .type = (enum pod_event_type)sent->type,
                               .sandbox = sent->sandbox,
                               .exit_code = sent->exit_code,
                               .has_exit_code = sent->has_exit_code };
    const char *text = sent->texts;
    for (size_t i = 0; i < TEXTS; i++) {
        strcpy(texts[i], text); /* where it came from is as large */
        text += strlen(text) + 1;
    }
}

/* --- with the lock held --- */

static void hub_forget_old(struct event_hub *hub)
{
    while (hub->kept_count > EVENTS_KEPT && hub->first->reader_count == 0) {
        struct sent *old = hub->first;
        hub->first = old->next;
        hub->kept_count--;
        free(old);
    }
}

/* The subscriber is done with the event at its position, read or not. */
static void sub_advance(struct event_sub *sub)
{
    struct event_hub *hub = sub->hub;
    sub->position->reader_count--;
    sub->position = sub->position->next;
    sub->pending_count--;
    hub_forget_old(hub);
}

static void sub_tell(struct event_sub *sub)
{
    pthread_cond_broadcast(&sub->sent);
    if (sub->wake)
        sub->wake(sub->ctx);
}

static void sub_receive(struct event_sub *sub, struct sent *sent)
{
    if (sub->pending_count == EVENTS_RING) {
        sub_advance(sub);
        sub->lost_count++;
        sub->hub->dropped_count++;
    }
    if (!sub->position)
        sub->position = sent;
    sub->pending_count++;
    sub_tell(sub);
}

/* --- sending --- */

void event_hub_send(struct event_hub *hub, const struct pod_event *event)
{
    pthread_mutex_lock(&hub->lock);
    if (!hub->closed) {
        struct sent *sent = sent_new(event);
        sent->number = ++hub->number;
        sent->reader_count = hub->sub_count;
        if (sent->wall_us == 0)
            sent->wall_us = clock_wall_us(hub->clock);
        if (hub->last)
            hub->last->next = sent;
        else
            hub->first = sent;
        hub->last = sent;
        hub->kept_count++;
        for (struct event_sub *sub = hub->subs; sub; sub = sub->next)
            sub_receive(sub, sent);
        hub_forget_old(hub);
    }
    pthread_mutex_unlock(&hub->lock);
}

uint64_t event_hub_dropped(struct event_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    uint64_t count = hub->dropped_count;
    pthread_mutex_unlock(&hub->lock);
    return count;
}

void event_hub_close(struct event_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    if (!hub->closed) {
        hub->closed = true;
        for (struct event_sub *sub = hub->subs; sub; sub = sub->next)
            sub_tell(sub);
    }
    pthread_mutex_unlock(&hub->lock);
}

bool event_hub_closed(struct event_hub *hub)
{
    pthread_mutex_lock(&hub->lock);
    bool closed = hub->closed;
    pthread_mutex_unlock(&hub->lock);
    return closed;
}

/* --- receiving --- */

struct event_sub *event_sub_new(struct event_hub *hub, void (*wake)(void *ctx), void *ctx)
{
    return event_sub_new_since(hub, UINT64_MAX, wake, ctx);
}

/* With the lock held: those after `since` that are there are its to read. */
static void sub_rewind(struct event_sub *sub, uint64_t since)
{
    struct sent *first = sub->hub->first;
    while (first && first->number <= since)
        first = first->next;
    if (first && since > 0)
        sub->lost_count = first->number - since - 1;
    sub->position = first;
    for (struct sent *sent = first; sent; sent = sent->next, sub->pending_count++)
        sent->reader_count++;
}

struct event_sub *event_sub_new_since(struct event_hub *hub, uint64_t since,
                                      void (*wake)(void *ctx), void *ctx)
{
    struct event_sub *sub = kv_calloc(1, sizeof *sub);
    *sub = (struct event_sub){ .hub = hub, .wake = wake, .ctx = ctx };
    clock_cond_init(&sub->sent);
    pthread_mutex_lock(&hub->lock);
    sub->next = hub->subs;
    if (sub->next)
        sub->next->prev = sub;
    hub->subs = sub;
    hub->sub_count++;
    sub_rewind(sub, since);
    pthread_mutex_unlock(&hub->lock);
    return sub;
}

void event_sub_free(struct event_sub *sub)
{
    if (!sub)
        return;
    struct event_hub *hub = sub->hub;
    pthread_mutex_lock(&hub->lock);
    while (sub->position)
        sub_advance(sub);
    if (sub->prev)
        sub->prev->next = sub->next;
    else
        hub->subs = sub->next;
    if (sub->next)
        sub->next->prev = sub->prev;
    hub->sub_count--;
    pthread_mutex_unlock(&hub->lock);
    pthread_cond_destroy(&sub->sent);
    free(sub);
}

int event_sub_next(struct event_sub *sub, int64_t until_ns, struct pod_event *out, uint64_t *lost)
{
    struct event_hub *hub = sub->hub;
    pthread_mutex_lock(&hub->lock);
    while (!sub->position && !hub->closed && clock_mono_ns(hub->clock) < until_ns)
        clock_wait(hub->clock, &sub->sent, &hub->lock, until_ns);
    *lost += sub->lost_count;
    sub->lost_count = 0;
    int here = sub->position ? 1 : 0;
    if (here) {
        sent_read(sub->position, out);
        sub_advance(sub);
    }
    pthread_mutex_unlock(&hub->lock);
    return here;
}
