/* store/kube_watch.c - watches: a stream that is read by whoever asks for the next event.
 *
 *     initial objects (version 0) --> events of the stream --> its end: open again from there
 *
 * The server is asked to end the stream after five to ten minutes, at random so that not all
 * watches come back at once, and sends a bookmark about every minute. A stream on which nothing
 * comes for longer than a few of those is dead, whatever TCP thinks.
 *
 * A server that was restored from a backup knows nothing of the version that it is asked to go on
 * from, and says nothing until it gets there, not even bookmarks: a watch on which nothing came
 * for that long is answered with ERR_GONE, so that the reader lists.
 */
#include "store/kube_inner.h"

#define SECOND_NS ((int64_t)1000 * 1000 * 1000)
#define END_MIN_S 300
#define END_MAX_S 600

struct watcher {
    struct watch port;
    struct kube *kube;
    const struct kind *kind;
    struct kube_stream *stream;
    struct kube_events events;
    struct object_list initial;
    size_t initial_ix;
    bool initial_bookmark; /* is due: the initial objects are complete */
    int64_t opened_ns;
    struct err failure; /* ERR_NONE: none yet; the last word otherwise */
    void (*wake)(void *ctx);
    void *wake_ctx;
    /* The stream had nothing when it was last asked, and has not woken us since. */
    atomic_bool quiet;
};

static void watcher_wake(void *ctx)
{
    struct watcher *w = ctx;

    atomic_store(&w->quiet, false);
    if (w->wake)
        w->wake(w->wake_ctx);
}

static int fail(struct watcher *w, struct err *err)
{
    err_wrap(err, "watch %s", w->kind->plural);
    w->failure = *err;
    return -1;
}

/* The stream is over, for whatever reason. */
static int ended(struct watcher *w, struct err *err)
{
    int64_t lasted_ns = clock_mono_ns(w->kube->clock) - w->opened_ns;

    if (w->events.seen_count == 0 && lasted_ns >= w->kube->idle_timeout_ns &&
        err->kind == ERR_UNAVAILABLE)
        err_set(err, ERR_GONE, "not even a bookmark came: is the version one that the server had?");
    return fail(w, err);
}

static bool next_initial(struct watcher *w, struct watch_event *out)
{
    if (w->initial_ix < w->initial.count) {
        const struct object *object = take(&w->initial.items[w->initial_ix]);
        w->initial_ix++;
        *out = (struct watch_event){ EVENT_ADDED, object, object->meta.resource_version };
        return true;
    }
    if (w->initial_bookmark) {
        w->initial_bookmark = false;
        *out = (struct watch_event){ EVENT_BOOKMARK, NULL, w->initial.resource_version };
        return true;
    }
    return false;
}

static int watcher_next(struct watch *watch, struct watch_event *out, struct err *err)
{
    struct watcher *w = (struct watcher *)watch;
    int rc;

    if (next_initial(w, out))
        return 1;
    if (w->failure.kind != ERR_NONE) {
        *err = w->failure;
        return -1;
    }
    while ((rc = kube_events_next(&w->events, out, err)) == 0) {
        atomic_store(&w->quiet,
                     true); /* before it is asked: the wake may be sooner than the answer */
        switch (kube_stream_take(w->stream, kube_events_room(&w->events), err)) {
        case HTTP_NOTHING:
            return 0;
        case HTTP_BYTES:
            break;
        case HTTP_ENDED:
            err_set(err, ERR_UNAVAILABLE, "the server ended it");
            return ended(w, err);
        case HTTP_FAILED:
            return ended(w, err);
        }
    }
    atomic_store(&w->quiet, false);
    return rc < 0 ? fail(w, err) : 1;
}

static bool watcher_quiet(struct watch *watch)
{
    struct watcher *w = (struct watcher *)watch;
    return atomic_load(&w->quiet) && w->failure.kind == ERR_NONE;
}

static void watcher_close(struct watch *watch)
{
    struct watcher *w = (struct watcher *)watch;

    kube_stream_free(w->stream);
    kube_events_done(&w->events);
    object_list_done(&w->initial);
    free(w);
}

static int open_stream(struct watcher *w, const struct watch_options *opts, uint64_t version,
                       struct err *err)
{
    AUTO_BUF path = { 0 };
    char version_text[24], end_text[16];
    uint64_t end_s = END_MIN_S + kube_client_random(w->kube->client, END_MAX_S - END_MIN_S);

    if (kube_path(w->kind, opts->namespace_, STR(""), NULL, &path, err) < 0)
        return -1;
    snprintf(version_text, sizeof version_text, "%llu", (unsigned long long)version);
    snprintf(end_text, sizeof end_text, "%llu", (unsigned long long)end_s);
    kube_path_query(&path, "labelSelector", opts->label_selector);
    kube_path_query(&path, "fieldSelector", opts->field_selector);
    kube_path_query(&path, "watch", STR("true"));
    kube_path_query(&path, "resourceVersion", str_of(version_text));
    kube_path_query(&path, "allowWatchBookmarks", STR("true"));
    kube_path_query(&path, "timeoutSeconds", str_of(end_text));
    struct kube_request request = { .method = "GET", .path = buf_str(&path) };
    return kube_client_stream(w->kube->client, &request, w->kube->idle_timeout_ns, watcher_wake, w,
                              &w->stream, err);
}

/* A server could send what is there as events of the watch itself, but in an order of its own and, when
 * asked for version 0, from a cache of any age. A list has neither trouble. */
static int list_initial(struct watcher *w, const struct watch_options *opts, struct err *err)
{
    struct list_options list = {
        .namespace_ = opts->namespace_,
        .label_selector = opts->label_selector,
        .field_selector = opts->field_selector,
        .skip_unreadable = true, /* as its events are */
    };
    w->initial_bookmark = opts->bookmarks;
    return kube_list(w->kube, w->kind, &list, &w->initial, err);
}

int kube_watch(struct kube *kube, const struct kind *kind, const struct watch_options *opts,
               struct watch **out, struct err *err)
{
    struct watcher *w = kv_calloc(1, sizeof *w);
    uint64_t version = opts->resource_version;

    w->port =
        (struct watch){ .next = watcher_next, .quiet = watcher_quiet, .close = watcher_close };
    w->kube = kube;
    w->kind = kind;
    w->events.decoder = &kube->decoder;
    w->events.kind = kind;
    w->events.bookmarks = opts->bookmarks;
    w->wake = opts->wake;
    w->wake_ctx = opts->wake_ctx;
    w->opened_ns = clock_mono_ns(kube->clock);
    int rc = version == 0 ? list_initial(w, opts, err) : 0;
    if (rc == 0)
        rc = open_stream(w, opts, version ? version : w->initial.resource_version, err);
    if (rc < 0) {
        watcher_close(&w->port);
        return err_wrap(err, "watch %s", kind->plural);
    }
    *out = &w->port;
    return 0;
}
