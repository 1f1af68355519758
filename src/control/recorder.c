/* What was said is remembered as a hash of whom, why and what, with the time until which it need not
 * be said again. The hash has 64 bits: among the hundred thousand notices of a very large cluster the
 * chance that two are taken for one another is one in a billion, and then a person misses a repeat.
 *
 * An event's name is the object's name and a hash of the notice and the time, so a process that died
 * after writing one and says it again at the same moment finds it there, and has not said it twice.
 *
 * The writing thread takes events from a list that is bounded: when the server is slower than we are,
 * the oldest that wait are the ones that count least, and they are dropped.
 *
 * Some reasons come in floods (33,000 pods arrive, each is nominated): they have a bucket of tokens,
 * and what finds it empty is not said.
 */
#include "control/recorder.h"

#include "api/kinds.h"
#include "base/map.h"
#include "base/thread.h"
#include "codec/duration.h"

#include <pthread.h>
#include <stdio.h>

#define COMPONENT "karpenter"  /* what dashboards and event exporters select by */
#define EVENT_MESSAGE_MAX 1024 /* bytes; what an API server takes in the newer form of events */
#define OBJECT_NAME_MAX 253
#define WAITING_MAX 2000 /* events that are not written yet */
#define SAID_MIN 1024 /* notices remembered before the first look for those that may be forgotten */

/* Reasons of which there are only so many: `burst` at once, then one every `interval_ns`. */
struct limit {
    const char *reason;
    int64_t interval_ns, burst;
};
static const struct limit limits[] = {
    { "Nominated", DURATION_SECOND / 5, 10 },
};

struct waiting_event {
    struct waiting_event *next;
    struct str home; /* both live behind it */
    struct str json;
};

struct recorder {
    const struct store *store;
    const struct clock *clock;
    struct log *log;
    uint64_t seed;

    pthread_mutex_t lock;                    /* guards what is below; nothing is taken inside */
    struct map said;                         /* hash of a notice: quiet until (mono_ns) */
    uint32_t said_max;                       /* look for what may be forgotten beyond this many */
    int64_t full_at_ns[KV_COUNT_OF(limits)]; /* when the bucket of each will be full again */

    pthread_t writer;
    bool started, stopping;
    pthread_cond_t woken;
    struct waiting_event *first, **last; /* in the order in which they happened */
    uint32_t waiting_count, dropped_count;
};

struct recorder *recorder_new(const struct store *store, const struct clock *clock,
                              struct log *maybe_log, uint64_t seed)
{
    struct recorder *r = kv_calloc(1, sizeof *r);
    r->store = store;
    r->clock = clock;
    r->log = maybe_log;
    r->seed = seed;
    r->said_max = SAID_MIN;
    r->last = &r->first;
    pthread_mutex_init(&r->lock, NULL);
    clock_cond_init(&r->woken);
    return r;
}

void recorder_free(struct recorder *r)
{
    if (!r)
        return;
    recorder_stop(r);
    map_done(&r->said);
    pthread_cond_destroy(&r->woken);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* --- whether to say it --- */

static uint64_t hash_str(struct str s, uint64_t salt)
{
    return kv_hash_salted(s.p, s.len, salt + s.len);
}

static uint64_t notice_hash(const struct recorder *r, const struct notice *n)
{
    uint64_t h = kv_mix64(r->seed + 1);
    h = hash_str(str_of(n->about->kind->name), h);
    h = hash_str(n->about->meta.uid, h);
    h = hash_str(str_of(n->reason), h);
    return hash_str(n->key.len ? n->key : n->message, h);
}

static void forget_expired(struct recorder *r, int64_t now_ns)
{
    if (r->said.live_count <= r->said_max)
        return;
    map_each(&r->said, it) {
        if ((int64_t)it->value <= now_ns)
            map_remove(&r->said, it->key, NULL);
    }
    r->said_max = 2 * r->said.live_count > SAID_MIN ? 2 * r->said.live_count : SAID_MIN;
}

static bool take_token(struct recorder *r, const char *reason, int64_t now_ns)
{
    for (size_t i = 0; i < KV_COUNT_OF(limits); i++) {
        if (strcmp(reason, limits[i].reason) != 0)
            continue;
        int64_t full_at = r->full_at_ns[i] > now_ns ? r->full_at_ns[i] : now_ns;
        if (full_at - now_ns > (limits[i].burst - 1) * limits[i].interval_ns)
            return false;
        r->full_at_ns[i] = full_at + limits[i].interval_ns;
    }
    return true;
}

static bool should_say(struct recorder *r, const struct notice *n, uint64_t hash)
{
    int64_t now_ns = clock_mono_ns(r->clock);
    uintptr_t until = 0;

    pthread_mutex_lock(&r->lock);
    bool fresh = !map_get(&r->said, hash, &until) || (int64_t)until <= now_ns;
    if (fresh && take_token(r, n->reason, now_ns)) {
        forget_expired(r, now_ns);
        map_put(&r->said, hash,
                (uintptr_t)(now_ns + (n->quiet_ns > 0 ? n->quiet_ns : RECORDER_QUIET_NS)));
    } else {
        fresh = false;
    }
    pthread_mutex_unlock(&r->lock);
    return fresh;
}

/* --- saying it --- */

static void set_metadata(struct json_build *b, json_mut *event, struct str about, struct str home,
                         uint64_t hash)
{
    char name[OBJECT_NAME_MAX + 1];
    int room = OBJECT_NAME_MAX - 17; /* a dot and the hash */
    snprintf(name, sizeof name, "%.*s.%016llx", about.len < (size_t)room ? (int)about.len : room,
             about.p, (unsigned long long)hash);

    json_mut *meta = json_mut_object(b, event, STR("metadata"));
    json_set_str(b, meta, "name", str_of(name));
    json_set_str(b, meta, "namespace", home);
}

static void set_involved(struct json_build *b, json_mut *event, const struct object *about)
{
    AUTO_BUF version = { 0 };
    char resource_version[24];
    kind_api_version(about->kind, &version);
    snprintf(resource_version, sizeof resource_version, "%llu",
             (unsigned long long)about->meta.resource_version);

    json_mut *involved = json_mut_object(b, event, STR("involvedObject"));
    json_set_str(b, involved, "apiVersion", buf_str(&version));
    json_set_str(b, involved, "kind", str_of(about->kind->name));
    json_set_str(b, involved, "name", about->meta.name);
    json_set_str(b, involved, "uid", about->meta.uid);
    json_set_str(b, involved, "resourceVersion", str_of(resource_version));
    if (about->kind->namespaced)
        json_set_str(b, involved, "namespace", about->meta.namespace_);
}

static struct str home_of(const struct notice *n)
{
    /* Events about cluster-scoped objects live in "default". */
    return n->about->kind->namespaced ? n->about->meta.namespace_ : STR("default");
}

static void event_json(const struct recorder *r, const struct notice *n, uint64_t hash,
                       struct buf *out)
{
    const struct meta *meta = &n->about->meta;
    int64_t now_us = clock_wall_us(r->clock);
    char now[TIME_TEXT_MAX];
    time_format(now_us, now);
    struct str message = n->message;
    message.len = str_utf8_cut(message, EVENT_MESSAGE_MAX);

    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *event = json_new_object(&b);
    json_set_str(&b, event, "apiVersion", STR("v1"));
    json_set_str(&b, event, "kind", STR("Event"));
    set_metadata(&b, event, meta->name, home_of(n), kv_mix64(hash ^ kv_mix64((uint64_t)now_us)));
    set_involved(&b, event, n->about);
    json_set_str(&b, event, "type", n->warning ? STR("Warning") : STR("Normal"));
    json_set_str(&b, event, "reason", str_of(n->reason));
    json_set_str(&b, event, "message", message);
    json_set_str(&b, json_mut_object(&b, event, STR("source")), "component", STR(COMPONENT));
    json_set_str(&b, event, "reportingComponent", STR(COMPONENT));
    json_set_str(&b, event, "firstTimestamp", str_of(now));
    json_set_str(&b, event, "lastTimestamp", str_of(now));
    json_set_i64(&b, event, "count", 1);
    json_write_mut(event, out);
}

static void write_event(struct recorder *r, struct str home, struct str json)
{
    struct err err = { 0 };
    if (store_create(r->store, &event_kind, home, json, NULL, &err) < 0 && err.kind != ERR_EXISTS &&
        err.kind != ERR_CANCELLED)
        log_warn(r->log, "cannot write an event", LOG_STR("namespace", home), LOG_ERR(&err));
}

/* --- in a thread of its own --- */

/* With the lock. */
static struct waiting_event *take_waiting(struct recorder *r)
{
    struct waiting_event *event = r->first;
    if (!event)
        return NULL;
    r->first = event->next;
    r->last = r->first ? r->last : &r->first;
    r->waiting_count--;
    return event;
}

static void *write_events(void *ctx)
{
    struct recorder *r = ctx;
    pthread_mutex_lock(&r->lock);
    for (;;) {
        struct waiting_event *event = take_waiting(r);
        if (!event && r->stopping)
            break;
        if (!event) {
            clock_wait(r->clock, &r->woken, &r->lock, INT64_MAX);
            continue;
        }
        uint32_t dropped = r->dropped_count;
        r->dropped_count = 0;
        pthread_mutex_unlock(&r->lock);
        if (dropped)
            log_warn(r->log, "more events than the API server takes: some were dropped",
                     LOG_INT("dropped", dropped));
        write_event(r, event->home, event->json);
        free(event);
        pthread_mutex_lock(&r->lock);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

int recorder_start(struct recorder *r, struct err *err)
{
    KV_ASSERT(!r->started);
    r->started = thread_start(&r->writer, "events", write_events, r, err) == 0;
    return r->started ? 0 : -1;
}

void recorder_stop(struct recorder *r)
{
    if (!r->started)
        return;
    pthread_mutex_lock(&r->lock);
    r->stopping = true;
    pthread_cond_signal(&r->woken);
    pthread_mutex_unlock(&r->lock);
    pthread_join(r->writer, NULL);
    r->started = false;
}

static void enqueue(struct recorder *r, struct str home, struct str json)
{
    struct waiting_event *event = kv_malloc(sizeof *event + home.len + json.len);
    char *text = (char *)(event + 1);
    memcpy(text, home.p, home.len);
    memcpy(text + home.len, json.p, json.len);
    *event =
        (struct waiting_event){ .home = { text, home.len }, .json = { text + home.len, json.len } };
    pthread_mutex_lock(&r->lock);
    struct waiting_event *oldest = r->waiting_count >= WAITING_MAX ? take_waiting(r) : NULL;
    r->dropped_count += oldest != NULL;
    *r->last = event;
    r->last = &event->next;
    r->waiting_count++;
    pthread_cond_signal(&r->woken);
    pthread_mutex_unlock(&r->lock);
    free(oldest);
}

void recorder_publish(struct recorder *r, const struct notice *notice)
{
    uint64_t hash = notice_hash(r, notice);
    AUTO_BUF json = { 0 };
    if (!should_say(r, notice, hash))
        return;
    event_json(r, notice, hash, &json);
    if (r->started)
        enqueue(r, home_of(notice), buf_str(&json));
    else
        write_event(r, home_of(notice), buf_str(&json));
}

void recorder_say(struct recorder *r, const struct object *about, bool warning, const char *reason,
                  const char *fmt, ...)
{
    AUTO_BUF text = { 0 };
    va_list args;

    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    recorder_publish(
        r, &(struct notice){
               .about = about, .warning = warning, .reason = reason, .message = buf_str(&text) });
}
