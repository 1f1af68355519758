/* store/embedded_watch.c - watches: cursors into one log of events.
 *
 * A watch is a position in the log and a selection. An event is kept once, with the object before
 * and after, however many watches read it; which type it has (or whether it is there at all)
 * depends on whether the selection had the object before and has it now:
 *
 *                        selected now         not selected now
 *     selected before    MODIFIED             DELETED
 *     not before         ADDED                nothing
 *
 * Waking is edge-triggered: a reader that has found nothing is `armed`, the next event of its kind
 * wakes it once. The call is made with the lock released; `waking` keeps the watch alive meanwhile.
 */
#include "store/embedded_impl.h"

#include <inttypes.h>

struct watcher {
    struct watch port;
    struct embedded *e;
    struct kind_state *ks;
    struct selection sel;
    struct object_list initial; /* what a watch from version 0 starts with */
    size_t initial_ix;
    uint64_t next;     /* the version to look at next */
    uint64_t reported; /* the reader knows that it has everything up to here */
    void (*wake)(void *ctx);
    void *wake_ctx;
    uint32_t waking;
    atomic_bool bookmark_due;
    bool bookmarks, armed, broken;
    bool onlooker; /* nobody waits until it has seen something */
};

uint64_t log_first(const struct embedded *e)
{
    return e->version > e->log_cap ? e->version - e->log_cap + 1 : 1;
}

/* --- waking --- */

void watchers_notice(struct embedded *e, struct kind_state *ks)
{
    vec_each(&ks->watchers, struct watcher *, it) {
        struct watcher *w = *it;
        if (!w->armed || !w->wake)
            continue;
        w->armed = false;
        w->waking++;
        vec_push(&e->wakes, w);
    }
}

void watchers_wake(struct embedded *e)
{
    if (e->wakes.count == 0)
        return;
    struct watcher **woken = e->wakes.items;
    size_t count = e->wakes.count;
    e->wakes.items = NULL;
    e->wakes.count = e->wakes.cap = 0;

    pthread_mutex_unlock(&e->lock);
    for (size_t i = 0; i < count; i++)
        woken[i]->wake(woken[i]->wake_ctx);
    pthread_mutex_lock(&e->lock);
    for (size_t i = 0; i < count; i++)
        woken[i]->waking--;
    pthread_cond_broadcast(&e->wake_end);
    free(woken);
}

void embedded_bookmark(struct embedded *e)
{
    embedded_lock(e);
    vec_each(&e->kinds, struct kind_state *, ks) {
        vec_each(&(*ks)->watchers, struct watcher *, w)
            (*w)->bookmark_due = (*w)->bookmarks;
        watchers_notice(e, *ks);
    }
    embedded_unlock(e);
}

/* --- reading --- */

static int64_t visible_ns(const struct embedded *e, uint64_t version)
{
    const struct log_event *event = &e->log[version % e->log_cap];
    return event->at_ns + e->faults.event_delay_ns(e->faults.ctx, event->ks->kind, version);
}

/* What the event is to this watch; false: nothing. Takes no reference. */
static bool event_for(const struct watcher *w, const struct log_event *event,
                      struct watch_event *out)
{
    if (event->ks != w->ks)
        return false;
    bool before = event->maybe_old && selection_has(&w->sel, event->maybe_old);
    bool now = !event->removed && selection_has(&w->sel, event->object);
    if (!before && !now)
        return false;
    out->type = !now ? EVENT_DELETED : before ? EVENT_MODIFIED : EVENT_ADDED;
    /* Out of sight, the reader gets the last state that it may see. */
    out->object = now || event->removed ? event->object : event->maybe_old;
    return true;
}

static bool bookmark_is_due(const struct watcher *w)
{
    uint64_t seen = w->next - 1;
    if (!w->bookmarks || seen <= w->reported)
        return false;
    return w->bookmark_due || seen - w->reported >= w->e->bookmark_every;
}

/* With the lock held. 1: an event, whose object the caller has one reference to. */
static int next_locked(struct watcher *w, struct watch_event *out, struct err *err)
{
    struct embedded *e = w->e;

    if (w->broken)
        return err_set(err, ERR_UNAVAILABLE, "watch %s: broken", w->ks->kind->plural);
    if (w->initial_ix < w->initial.count) {
        const struct object *object = take(&w->initial.items[w->initial_ix]);
        w->initial_ix++;
        *out = (struct watch_event){ EVENT_ADDED, object, object->meta.resource_version };
        return 1;
    }
    if (w->next <= w->ks->trimmed)
        return err_set(err, ERR_GONE, "watch %s: version %" PRIu64 " is no longer kept: list again",
                       w->ks->kind->plural, w->next);

    /* What was trimmed before here was of other kinds: a quiet watch does not grow old. */
    if (w->next < log_first(e))
        w->next = log_first(e);
    for (; w->next <= e->version; w->next++) {
        if (e->faults.event_delay_ns && visible_ns(e, w->next) > clock_mono_ns(e->clock))
            break;
        if (!event_for(w, &e->log[w->next % e->log_cap], out))
            continue;
        object_ref(out->object);
        out->resource_version = w->reported = w->next++;
        return 1;
    }
    if (bookmark_is_due(w)) {
        w->reported = w->next - 1;
        w->bookmark_due = false;
        *out = (struct watch_event){ EVENT_BOOKMARK, NULL, w->reported };
        return 1;
    }
    w->armed = true;
    return 0;
}

static int watcher_next(struct watch *watch, struct watch_event *out, struct err *err)
{
    struct watcher *w = (struct watcher *)watch;
    struct embedded *e = w->e;
    struct watch_event event;

    embedded_lock(e);
    struct embedded_faults faults = e->faults;
    int rc = next_locked(w, &event, err);
    embedded_unlock(e);
    if (rc <= 0)
        return rc;
    if (faults.drop_watch && faults.drop_watch(faults.ctx, w->ks->kind)) {
        object_unref(event.object);
        w->broken = true; /* only this reader looks at it */
        return err_set(err, ERR_UNAVAILABLE, "watch %s: injected: the stream broke",
                       w->ks->kind->plural);
    }
    *out = event;
    return 1;
}

/* Only the reader moves `next`, and only the reader asks. */
static bool watcher_quiet(struct watch *watch)
{
    const struct watcher *w = (struct watcher *)watch;
    return !w->broken && w->initial_ix == w->initial.count && w->ks->last < w->next &&
           !w->bookmark_due && w->e->version - w->reported < w->e->bookmark_every;
}

/* An event that is not visible yet holds back all after it: its own kind's, too. */
static int64_t watcher_due_ns(const struct watcher *w)
{
    const struct embedded *e = w->e;
    uint64_t first = w->next < log_first(e) ? log_first(e) : w->next;
    int64_t now_ns = clock_mono_ns(e->clock), due_ns = now_ns;

    if (w->ks->last < first)
        return INT64_MAX;
    for (uint64_t v = first; v <= e->version; v++) {
        int64_t at_ns = visible_ns(e, v);
        due_ns = at_ns > due_ns ? at_ns : due_ns;
        if (e->log[v % e->log_cap].ks == w->ks)
            break;
    }
    return due_ns > now_ns ? due_ns : INT64_MAX;
}

int64_t embedded_event_due_ns(struct embedded *e)
{
    int64_t due_ns = INT64_MAX;

    embedded_lock(e);
    vec_each(&e->kinds, struct kind_state *, ks) {
        vec_each(&(*ks)->watchers, struct watcher *, w) {
            bool matters = e->faults.event_delay_ns && !(*w)->onlooker;
            int64_t at_ns = matters ? watcher_due_ns(*w) : INT64_MAX;
            due_ns = at_ns < due_ns ? at_ns : due_ns;
        }
    }
    embedded_unlock(e);
    return due_ns;
}

/* --- opening and closing --- */

static void watcher_close(struct watch *watch)
{
    struct watcher *w = (struct watcher *)watch;
    struct embedded *e = w->e;
    size_t ix = 0;

    embedded_lock(e);
    while (w->ks->watchers.items[ix] != w)
        ix++;
    w->ks->watchers.items[ix] = vec_last(&w->ks->watchers);
    w->ks->watchers.count--;
    while (w->waking > 0)
        pthread_cond_wait(&e->wake_end, &e->lock);
    embedded_unlock(e);

    object_list_done(&w->initial);
    selection_done(&w->sel);
    free(w);
}

int embedded_watch(struct embedded *e, struct kind_state *ks, const struct watch_options *opts,
                   bool onlooker, struct watch **out, struct err *err)
{
    uint64_t from = opts->resource_version;

    if (from > e->version)
        return err_set(err, ERR_GONE,
                       "watch %s: too large resource version: %" PRIu64 ", current: %" PRIu64,
                       ks->kind->plural, from, e->version);
    if (from > 0 && from < ks->trimmed)
        return err_set(err, ERR_GONE,
                       "watch %s: too old resource version: %" PRIu64 " (%" PRIu64 ")",
                       ks->kind->plural, from, ks->trimmed);
    struct watcher *w = kv_calloc(1, sizeof *w);
    if (selection_init(&w->sel, ks, opts->namespace_, opts->label_selector, opts->field_selector,
                       err) < 0) {
        free(w);
        return -1;
    }
    w->port =
        (struct watch){ .next = watcher_next, .quiet = watcher_quiet, .close = watcher_close };
    w->e = e;
    w->ks = ks;
    w->wake = opts->wake;
    w->wake_ctx = opts->wake_ctx;
    w->bookmarks = opts->bookmarks;
    w->onlooker = onlooker;
    w->armed = true;
    w->reported = from;
    w->next = from + 1;
    if (from == 0) {
        embedded_select(e, ks, &w->sel, &w->initial);
        w->next = e->version + 1;
        w->bookmark_due = w->bookmarks; /* tells that the initial objects are complete */
    }
    vec_push(&ks->watchers, w);
    *out = &w->port;
    return 0;
}
