/* Events of pods, for people who ask `kubectl describe`.
 *
 * They are noted by workers in a queue and written by a loop of their own, because nothing waits for
 * them. One that is told again is counted in the Event that there is. Of one pod only so many are written:
 * 25 at once, then one every five minutes, as kubelets do it. What finds the queue full, or cannot be
 * written, is lost; the log has it.
 */
#include "node/node_api_inner.h"

#include "api/policy.h"
#include "base/map.h"

#include <stdio.h>

#define COMPONENT "karve-agent"
#define QUEUE_MAX 1000
#define SAID_MAX 4096 /* events and pods remembered each; then all are forgotten at once */
#define BURST 25
#define INTERVAL_NS (5 * DURATION_MINUTE)
#define MESSAGE_MAX 1024
#define NAME_MAX_BYTES 253
#define RETRY_MAX_NS (30 * DURATION_SECOND)

struct noted_event {
    char *uid, *namespace_, *pod, *reason, *message;
    bool warning;
    int64_t wall_us;
};

struct said_event {
    char name[NAME_MAX_BYTES + 1];
    int64_t count;
};

struct event_writer {
    const struct clock *clock;
    pthread_mutex_t lock;          /* guards the queue */
    VEC(struct noted_event) queue; /* from `head` on */
    size_t head;
    uint64_t lost;

    /* The loop's own. */
    struct map said;    /* hash of an event -> struct said_event */
    struct map full_at; /* hash of a pod -> when its bucket is full again (mono_ns) */
    struct api_backoff backoff;
    int64_t due_ns; /* not before, whoever wakes us */
};

struct event_writer *event_writer_new(const struct clock *clock)
{
    struct event_writer *writer = kv_calloc(1, sizeof *writer);
    writer->clock = clock;
    pthread_mutex_init(&writer->lock, NULL);
    return writer;
}

static void noted_done(struct noted_event *event)
{
    free(event->uid);
    free(event->namespace_);
    free(event->pod);
    free(event->reason);
    free(event->message);
}

static void forget_said(struct event_writer *writer)
{
    map_each(&writer->said, it)
        free((void *)it->value);
    map_clear(&writer->said);
}

void event_writer_free(struct event_writer *writer)
{
    for (size_t i = writer->head; i < writer->queue.count; i++)
        noted_done(&writer->queue.items[i]);
    vec_done(&writer->queue);
    forget_said(writer);
    map_done(&writer->said);
    map_done(&writer->full_at);
    pthread_mutex_destroy(&writer->lock);
    free(writer);
}

void event_writer_tell(struct node_api *api, const struct node_pod *pod, bool warning,
                       struct str reason, struct str message)
{
    struct event_writer *writer = api->events;
    message.len = str_utf8_cut(message, MESSAGE_MAX);
    pthread_mutex_lock(&writer->lock);
    if (writer->queue.count - writer->head >= QUEUE_MAX)
        writer->lost++;
    else
        vec_push(&writer->queue, (struct noted_event){ .uid = str_dup(pod->uid),
                                                       .namespace_ = str_dup(pod->namespace_),
                                                       .pod = str_dup(pod->name),
                                                       .reason = str_dup(reason),
                                                       .message = str_dup(message),
                                                       .warning = warning,
                                                       .wall_us = clock_wall_us(writer->clock) });
    pthread_mutex_unlock(&writer->lock);
    api_loop_wake(&api->event_loop);
}

/* --- whether to write it --- */

static uint64_t hash_text(const char *text, uint64_t salt)
{
    return kv_hash_salted(text, strlen(text), salt + strlen(text));
}

static uint64_t event_hash(const struct noted_event *event)
{
    uint64_t h = hash_text(event->uid, event->warning);
    return hash_text(event->message, hash_text(event->reason, h));
}

static bool take_token(struct event_writer *writer, const struct noted_event *event)
{
    int64_t now_ns = clock_mono_ns(writer->clock);
    uint64_t pod = hash_text(event->uid, 0);
    uintptr_t value = 0;
    map_get(&writer->full_at, pod, &value);
    int64_t full_at = (int64_t)value > now_ns ? (int64_t)value : now_ns;
    if (full_at - now_ns > (BURST - 1) * INTERVAL_NS)
        return false;
    if (writer->full_at.live_count >= SAID_MAX)
        map_clear(&writer->full_at);
    map_put(&writer->full_at, pod, (uintptr_t)(full_at + INTERVAL_NS));
    return true;
}

/* --- writing it --- */

static void name_event(const struct noted_event *event, uint64_t hash, char out[NAME_MAX_BYTES + 1])
{
    const int room = NAME_MAX_BYTES - 17; /* a dot and the hash */
    snprintf(out, NAME_MAX_BYTES + 1, "%.*s.%016llx", room, event->pod,
             (unsigned long long)kv_mix64(hash ^ kv_mix64((uint64_t)event->wall_us)));
}

static void event_json(const struct node_api *api, const struct noted_event *event,
                       const char *name, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    char now[TIME_TEXT_MAX];
    json_build_init(&b);
    time_format(event->wall_us, now);
    json_mut *root = json_new_object(&b);
    json_set_str(&b, root, "apiVersion", STR("v1"));
    json_set_str(&b, root, "kind", STR("Event"));
    json_mut *meta = json_mut_object(&b, root, STR("metadata"));
    json_set_str(&b, meta, "name", str_of(name));
    json_set_str(&b, meta, "namespace", str_of(event->namespace_));
    json_mut *about = json_mut_object(&b, root, STR("involvedObject"));
    json_set_str(&b, about, "apiVersion", STR("v1"));
    json_set_str(&b, about, "kind", STR("Pod"));
    json_set_str(&b, about, "namespace", str_of(event->namespace_));
    json_set_str(&b, about, "name", str_of(event->pod));
    json_set_str(&b, about, "uid", str_of(event->uid));
    json_set_str(&b, root, "type", event->warning ? STR("Warning") : STR("Normal"));
    json_set_str(&b, root, "reason", str_of(event->reason));
    json_set_str(&b, root, "message", str_of(event->message));
    json_mut *source = json_mut_object(&b, root, STR("source"));
    json_set_str(&b, source, "component", STR(COMPONENT));
    json_set_str(&b, source, "host", api->node_name);
    json_set_str(&b, root, "reportingComponent", STR(COMPONENT));
    json_set_str(&b, root, "reportingInstance", api->node_name);
    json_set_str(&b, root, "firstTimestamp", str_of(now));
    json_set_str(&b, root, "lastTimestamp", str_of(now));
    json_set_i64(&b, root, "count", 1);
    json_write_mut(root, out);
}

static int count_again(struct node_api *api, const struct noted_event *event,
                       const struct said_event *said, struct err *err)
{
    AUTO_BUF patch = { 0 };
    char now[TIME_TEXT_MAX];
    struct object_ref ref = { &event_kind, str_of(event->namespace_), str_of(said->name) };
    time_format(event->wall_us, now);
    buf_addf(&patch, "{\"count\":%lld,\"lastTimestamp\":\"%s\"}", (long long)said->count + 1, now);
    return store_patch(api->opts.store, ref, (struct patch_options){ PATCH_MERGE }, buf_str(&patch),
                       NULL, err);
}

static int write_event(struct node_api *api, const struct noted_event *event, struct err *err)
{
    struct event_writer *writer = api->events;
    uint64_t hash = event_hash(event);
    uintptr_t value = 0;
    AUTO_BUF text = { 0 };
    if (map_get(&writer->said, hash, &value)) {
        struct said_event *said = (struct said_event *)value;
        int rc = count_again(api, event, said, err);
        if (rc == 0)
            said->count++;
        if (rc == 0 || err->kind != ERR_NOT_FOUND)
            return rc;
        map_remove(&writer->said, hash, NULL); /* servers keep events for an hour */
        free(said);
    }
    struct said_event *said = kv_calloc(1, sizeof *said);
    said->count = 1;
    name_event(event, hash, said->name);
    event_json(api, event, said->name, &text);
    if (store_create(api->opts.store, &event_kind, str_of(event->namespace_), buf_str(&text), NULL,
                     err) < 0 &&
        err->kind != ERR_EXISTS) { /* by an attempt whose answer was lost */
        free(said);
        return -1;
    }
    if (writer->said.live_count >= SAID_MAX)
        forget_said(writer);
    map_put(&writer->said, hash, (uintptr_t)said);
    return 0;
}

/* --- the loop --- */

static bool first_of_queue(struct event_writer *writer, struct noted_event *out)
{
    pthread_mutex_lock(&writer->lock);
    bool some = writer->head < writer->queue.count;
    if (some)
        *out = writer->queue.items[writer->head]; /* the texts stay the queue's */
    pthread_mutex_unlock(&writer->lock);
    return some;
}

static void drop_first(struct event_writer *writer)
{
    pthread_mutex_lock(&writer->lock);
    noted_done(&writer->queue.items[writer->head++]);
    if (writer->head == writer->queue.count || writer->head >= QUEUE_MAX) {
        size_t left = writer->queue.count - writer->head;
        memmove(writer->queue.items, writer->queue.items + writer->head,
                left * sizeof *writer->queue.items);
        writer->queue.count = left;
        writer->head = 0;
    }
    pthread_mutex_unlock(&writer->lock);
}

/* Worth keeping while the server is away; anything else is this event's own trouble. */
static bool is_passing(enum err_kind kind)
{
    return kind == ERR_UNAVAILABLE || kind == ERR_THROTTLED || kind == ERR_CANCELLED;
}

int64_t event_writer_step(struct node_api *api)
{
    struct event_writer *writer = api->events;
    struct noted_event event;
    if (clock_mono_ns(writer->clock) < writer->due_ns)
        return writer->due_ns;
    while (first_of_queue(writer, &event)) {
        struct err err = { 0 };
        bool again = writer->backoff.failures > 0; /* it has had its token */
        if (again || take_token(writer, &event)) {
            if (write_event(api, &event, &err) < 0 && is_passing(err.kind)) {
                writer->due_ns =
                    clock_mono_ns(writer->clock) +
                    api_backoff_next(&writer->backoff, api->opts.retry_ns, RETRY_MAX_NS);
                return writer->due_ns;
            }
            if (err.kind != ERR_NONE && err.kind != ERR_EXISTS && err.kind != ERR_NOT_FOUND)
                log_warn(api->opts.log, "an event is not written", LOG_Z("pod", event.pod),
                         LOG_Z("reason", event.reason), LOG_ERR(&err));
        }
        writer->backoff.failures = 0;
        drop_first(writer);
    }
    return INT64_MAX;
}
