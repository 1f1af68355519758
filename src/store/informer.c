/* store/informer.c - list, watch, compare.
 *
 *     must_list --list, compare with the cache--> open a watch --events--> ...
 *         ^                                          |   ^
 *         +---------------- ERR_GONE ----------------+   +-- any other failure, after a pause
 *
 * A kind that the server does not serve (no such CRD) has no objects: it counts as listed, and is
 * asked for again. Objects that were seen do not vanish by that: a CRD that is deleted deletes them one
 * by one, and says so. Neither does an object that was seen and can no longer be read: it stays as it
 * was, until it can be or is gone.
 *
 * The first failure after a time of peace is tried again at once (a server that restarts, a
 * connection that idled out); then the pauses double from PAUSE_MIN to PAUSE_MAX, with jitter.
 */
#include "store/informer_impl.h"

#define PAUSE_MIN_NS ((int64_t)200 * 1000 * 1000)
#define PAUSE_MAX_NS ((int64_t)30 * 1000 * 1000 * 1000)
#define PEACE_NS                                                                                   \
    ((int64_t)30 * 1000 * 1000 * 1000) /* a watch that lasted this long was a good one */

struct informer *informer_new(struct informer_options opts)
{
    struct informer *inf = kv_calloc(1, sizeof *inf);
    inf->store = opts.store;
    inf->kind = opts.kind;
    inf->clock = opts.clock;
    inf->namespace_ = arena_str(&inf->arena, opts.namespace_);
    inf->label_selector = arena_str(&inf->arena, opts.label_selector);
    inf->field_selector = arena_str(&inf->arena, opts.field_selector);
    inf->page_max = opts.page_max ? opts.page_max : INFORMER_PAGE;
    inf->must_list = true;
    rng_init(&inf->rng, opts.seed);
    pthread_mutex_init(&inf->pump_lock, NULL);
    pthread_mutex_init(&inf->lock, NULL);
    clock_cond_init(&inf->moved);
    return inf;
}

void informer_stop(struct informer *inf)
{
    pthread_mutex_lock(&inf->lock);
    inf->stopped = true; /* first: nobody opens the watch again */
    pthread_cond_broadcast(&inf->moved);
    pthread_mutex_unlock(&inf->lock);
    pthread_mutex_lock(&inf->pump_lock);
    watch_close(take(&inf->watch));
    pthread_mutex_unlock(&inf->pump_lock);
}

static bool is_stopped(struct informer *inf)
{
    return atomic_load(&inf->stopped);
}

void informer_free(struct informer *inf)
{
    informer_stop(inf);
    for (sorted_each(&inf->cache, STR(""), it))
        object_unref(it.item->value);
    sorted_done(&inf->cache);
    vec_each(&inf->indexes, struct index, index)
        sorted_done(&index->items);
    vec_done(&inf->indexes);
    vec_done(&inf->handlers);
    arena_done(&inf->arena);
    pthread_cond_destroy(&inf->moved);
    pthread_mutex_destroy(&inf->lock);
    pthread_mutex_destroy(&inf->pump_lock);
    free(inf);
}

void informer_on_change(struct informer *inf, informer_handler_fn fn, void *ctx)
{
    vec_push(&inf->handlers, (struct handler){ fn, ctx });
}

uint32_t informer_add_index(struct informer *inf, informer_index_fn fn)
{
    vec_push(&inf->indexes, (struct index){ .fn = fn });
    return (uint32_t)inf->indexes.count - 1;
}

/* --- the cache --- */

static void key_of(const struct object *object, struct buf *out)
{
    SORTED_KEY(out, object->meta.namespace_, object->meta.name);
}

/* With the lock held: the object is in the index (or no longer is) under its own value. */
static void index_change(struct index *index, const struct object *maybe_old,
                         const struct object *maybe_new)
{
    struct str was = maybe_old ? index->fn(maybe_old) : STR_NONE;
    struct str is = maybe_new ? index->fn(maybe_new) : STR_NONE;
    AUTO_BUF key = { 0 };

    if (was.len > 0 && (is.len == 0 || !str_eq(was, is))) {
        SORTED_KEY(&key, was, maybe_old->meta.namespace_, maybe_old->meta.name);
        sorted_remove(&index->items, buf_str(&key));
    }
    if (is.len > 0) {
        SORTED_KEY(&key, is, maybe_new->meta.namespace_, maybe_new->meta.name);
        sorted_put(&index->items, buf_str(&key), (void *)maybe_new);
    }
}

/* Put the change into the cache, then tell. Takes over a reference to `maybe_new`; `maybe_old`
 * is the cache's. */
static void change(struct informer *inf, const struct object *maybe_old,
                   const struct object *maybe_new)
{
    AUTO_BUF key = { 0 };

    key_of(maybe_new ? maybe_new : maybe_old, &key);
    pthread_mutex_lock(&inf->lock);
    vec_each(&inf->indexes, struct index, index)
        index_change(index, maybe_old, maybe_new);
    if (maybe_new)
        sorted_put(&inf->cache, buf_str(&key), (void *)maybe_new);
    else
        sorted_remove(&inf->cache, buf_str(&key));
    pthread_mutex_unlock(&inf->lock);

    /* Nobody else changes the cache, so its reference to the new one lasts. */
    vec_each(&inf->handlers, struct handler, h)
        h->fn(h->ctx, maybe_old, maybe_new);
    object_unref(maybe_old);
}

/* Only the pumping thread writes the cache, so it may look without the lock. */
static const struct object *cached(struct informer *inf, const struct object *object)
{
    AUTO_BUF key = { 0 };
    key_of(object, &key);
    return sorted_get(&inf->cache, buf_str(&key));
}

/* The object is there in this state. Takes over the reference. Returns how many changes it was.
 * What was listed counts whatever its version: a server restored from a backup goes back in time.
 * */
static size_t put(struct informer *inf, const struct object *object, bool listed)
{
    const struct object *old = cached(inf, object);
    uint64_t version = object->meta.resource_version;

    if (old && !str_eq(old->meta.uid, object->meta.uid)) {
        change(inf, old, NULL);
        change(inf, NULL, object);
        return 2;
    }
    if (old && (version == old->meta.resource_version ||
                (!listed && version < old->meta.resource_version))) {
        object_unref(object); /* known already */
        return 0;
    }
    change(inf, old, object);
    return 1;
}

/* The object is gone; `last` is its last state. */
static size_t drop(struct informer *inf, const struct object *last)
{
    const struct object *old = cached(inf, last);

    if (!old || !str_eq(old->meta.uid, last->meta.uid))
        return 0;
    change(inf, old, NULL);
    return 1;
}

static void set_version(struct informer *inf, uint64_t version, bool listed)
{
    pthread_mutex_lock(&inf->lock);
    if (version > inf->version || listed)
        inf->version = version;
    inf->synced |= listed;
    pthread_cond_broadcast(&inf->moved);
    pthread_mutex_unlock(&inf->lock);
}

/* Only the pumping thread writes it, so it may look without the lock. */
static void set_trouble(struct informer *inf, const struct err *err)
{
    if (err->kind == ERR_NONE && inf->trouble.kind == ERR_NONE)
        return;
    pthread_mutex_lock(&inf->lock);
    inf->trouble = *err;
    pthread_mutex_unlock(&inf->lock);
}

/* --- listing --- */

/* Every object there is, by key: whatever order the server has, the comparison has ours. */
struct listing {
    struct sorted objects;
    struct sorted unreadable; /* the listing itself, for want of an object */
    uint64_t version;
};

static void listing_done(struct listing *listing)
{
    for (sorted_each(&listing->objects, STR(""), it))
        object_unref(it.item->value);
    sorted_done(&listing->objects);
    sorted_done(&listing->unreadable);
}

static void listing_add(struct listing *listing, struct object_list *page)
{
    AUTO_BUF key = { 0 };

    for (size_t i = 0; i < page->count; i++) {
        const struct object *object = take(&page->items[i]);
        key_of(object, &key);
        object_unref(sorted_get(&listing->objects, buf_str(&key)));
        sorted_put(&listing->objects, buf_str(&key), (void *)object);
    }
    for (size_t i = 0; i < page->unreadable_count; i++) {
        const struct object_name *it = &page->unreadable[i];
        SORTED_KEY(&key, str_of(it->namespace_), str_of(it->name));
        sorted_put(&listing->unreadable, buf_str(&key), listing);
    }
    listing->version = page->resource_version;
}

static int list_pages(struct informer *inf, uint32_t limit, struct listing *out, struct err *err)
{
    AUTO_FREE char *next = NULL;
    struct list_options opts = {
        .namespace_ = inf->namespace_,
        .label_selector = inf->label_selector,
        .field_selector = inf->field_selector,
        .limit = limit,
        .skip_unreadable = true,
    };

    do {
        struct object_list page = { 0 };
        opts.continue_ = str_of(next);
        if (store_list(inf->store, inf->kind, &opts, &page, err) < 0)
            return -1;
        listing_add(out, &page);
        free(next);
        next = take(&page.continue_);
        object_list_done(&page);
    } while (next);
    return 0;
}

static size_t drop_absent(struct informer *inf, const struct listing *listing)
{
    VEC(const struct object *) gone = { 0 };

    for (sorted_each(&inf->cache, STR(""), it)) {
        if (!sorted_get(&listing->objects, it.item->key) &&
            !sorted_get(&listing->unreadable, it.item->key))
            vec_push(&gone, it.item->value);
    }
    vec_each(&gone, const struct object *, it)
        change(inf, *it, NULL);
    size_t count = gone.count;
    vec_done(&gone);
    return count;
}

static int list_all(struct informer *inf, size_t *changes, struct err *err)
{
    struct listing listing = { 0 };
    int rc = list_pages(inf, inf->page_max, &listing, err);

    if (rc < 0 && err->kind == ERR_GONE) { /* too slow for its pages: all at once, then */
        listing_done(&listing);
        listing = (struct listing){ 0 };
        rc = list_pages(inf, 0, &listing, err);
    }
    if (rc == 0) {
        *changes += drop_absent(inf, &listing);
        for (sorted_each(&listing.objects, STR(""), it))
            *changes += put(inf, object_ref(it.item->value), true);
        set_version(inf, listing.version, true);
        inf->must_list = false;
    }
    listing_done(&listing);
    return rc;
}

/* --- pumping --- */

static int open_watch(struct informer *inf, struct err *err)
{
    struct watch_options opts = {
        .namespace_ = inf->namespace_,
        .label_selector = inf->label_selector,
        .field_selector = inf->field_selector,
        .resource_version = inf->version,
        .bookmarks = true,
        .wake = inf->maybe_set ? informer_woken : NULL,
        .wake_ctx = inf,
    };

    inf->opened_ns = clock_mono_ns(inf->clock);
    return store_watch(inf->store, inf->kind, &opts, &inf->watch, err);
}

static size_t take_in(struct informer *inf, const struct watch_event *event)
{
    size_t changes = 0;

    switch (event->type) {
    case EVENT_ADDED:
    case EVENT_MODIFIED:
        changes = put(inf, event->object, false);
        break;
    case EVENT_DELETED:
        changes = drop(inf, event->object);
        object_unref(event->object);
        break;
    case EVENT_BOOKMARK:
        break;
    }
    set_version(inf, event->resource_version, false);
    return changes;
}

/* List if we must, then read the watch to its end; 0, or negative when something failed. */
static int follow(struct informer *inf, size_t *changes, struct err *err)
{
    struct watch_event event;
    int rc;

    if (inf->must_list && list_all(inf, changes, err) < 0) {
        if (err->kind == ERR_NOT_FOUND && !inf->cache.count)
            set_version(inf, 0, true);
        return -1;
    }
    if (!inf->watch && open_watch(inf, err) < 0)
        return -1;
    while ((rc = watch_next(inf->watch, &event, err)) > 0) {
        *changes += take_in(inf, &event);
        inf->failures = 0;
    }
    if (rc == 0 && clock_mono_ns(inf->clock) - inf->opened_ns >= PEACE_NS)
        inf->failures = 0;
    if (rc == 0)
        set_trouble(inf, &(struct err){ 0 });
    return rc;
}

static void pause_after_failure(struct informer *inf, const struct err *err)
{
    /* Every watch ends some day: one that was good for long is opened again at once, even if nothing
     * ever came on it. */
    if (inf->watch && clock_mono_ns(inf->clock) - inf->opened_ns >= PEACE_NS)
        inf->failures = 0;
    watch_close(take(&inf->watch));
    inf->must_list |= err->kind == ERR_GONE;
    set_trouble(inf, err);
    inf->failures++;
    inf->retry_ns = clock_mono_ns(inf->clock);
    if (inf->failures == 1)
        return;
    int64_t pause_ns = PAUSE_MIN_NS;
    for (uint32_t i = 2; i < inf->failures && pause_ns < PAUSE_MAX_NS; i++)
        pause_ns *= 2;
    pause_ns = pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS;
    inf->retry_ns += pause_ns / 2 + (int64_t)rng_below(&inf->rng, (uint64_t)pause_ns / 2 + 1);
}

size_t informer_pump(struct informer *inf)
{
    size_t changes = 0;
    struct err err = { 0 };

    pthread_mutex_lock(&inf->pump_lock);
    bool quiet = inf->watch && !inf->failures && watch_quiet(inf->watch);
    while (!quiet && !is_stopped(inf) && clock_mono_ns(inf->clock) >= inf->retry_ns) {
        if (follow(inf, &changes, &err) == 0)
            break;
        pause_after_failure(inf, &err);
    }
    pthread_mutex_unlock(&inf->pump_lock);
    return changes;
}

int64_t informer_due_ns(struct informer *inf)
{
    pthread_mutex_lock(&inf->pump_lock);
    int64_t due_ns = inf->watch || is_stopped(inf) ? INT64_MAX : inf->retry_ns;
    pthread_mutex_unlock(&inf->pump_lock);
    return due_ns;
}

bool informer_trouble(struct informer *inf, struct err *out)
{
    pthread_mutex_lock(&inf->lock);
    *out = inf->trouble;
    pthread_mutex_unlock(&inf->lock);
    return out->kind != ERR_NONE;
}

/* --- reading --- */

bool informer_synced(struct informer *inf)
{
    pthread_mutex_lock(&inf->lock);
    bool synced = inf->synced;
    pthread_mutex_unlock(&inf->lock);
    return synced;
}

uint64_t informer_version(struct informer *inf)
{
    pthread_mutex_lock(&inf->lock);
    uint64_t version = inf->version;
    pthread_mutex_unlock(&inf->lock);
    return version;
}

size_t informer_count(struct informer *inf)
{
    pthread_mutex_lock(&inf->lock);
    size_t count = inf->cache.count;
    pthread_mutex_unlock(&inf->lock);
    return count;
}

const struct object *informer_get(struct informer *inf, struct str namespace_, struct str name)
{
    AUTO_BUF key = { 0 };

    SORTED_KEY(&key, namespace_, name);
    pthread_mutex_lock(&inf->lock);
    const struct object *object = sorted_get(&inf->cache, buf_str(&key));
    if (object)
        object_ref(object);
    pthread_mutex_unlock(&inf->lock);
    return object;
}

/* With the lock held. */
static void list_range(const struct informer *inf, const struct sorted *map, struct str prefix,
                       struct object_list *out)
{
    VEC(const struct object *) items = { 0 };

    for (sorted_each(map, prefix, it))
        vec_push(&items, object_ref(it.item->value));
    *out = (struct object_list){
        .items = items.items,
        .count = items.count,
        .resource_version = inf->version,
    };
}

void informer_list(struct informer *inf, struct str namespace_, struct object_list *out)
{
    AUTO_BUF prefix = { 0 };

    if (namespace_.len > 0)
        SORTED_PREFIX(&prefix, namespace_);
    pthread_mutex_lock(&inf->lock);
    list_range(inf, &inf->cache, buf_str(&prefix), out);
    pthread_mutex_unlock(&inf->lock);
}

void informer_list_index(struct informer *inf, uint32_t index, struct str value,
                         struct object_list *out)
{
    AUTO_BUF prefix = { 0 };

    SORTED_PREFIX(&prefix, value);
    pthread_mutex_lock(&inf->lock);
    KV_ASSERT(index < inf->indexes.count);
    list_range(inf, &inf->indexes.items[index].items, buf_str(&prefix), out);
    pthread_mutex_unlock(&inf->lock);
}

/* --- waiting --- */

int informer_wait_version(struct informer *inf, uint64_t version, int64_t until_ns, struct err *err)
{
    int rc = 0;

    if (!inf->maybe_set)
        informer_pump(inf);
    pthread_mutex_lock(&inf->lock);
    while (inf->version < version && rc == 0) {
        if (inf->stopped)
            rc = err_set(err, ERR_CANCELLED, "%s: the informer is stopped", inf->kind->plural);
        else if (!inf->maybe_set || clock_mono_ns(inf->clock) >= until_ns)
            rc = err_set(
                err, ERR_UNAVAILABLE, "%s: the cache is at version %llu and has not seen %llu yet",
                inf->kind->plural, (unsigned long long)inf->version, (unsigned long long)version);
        else
            clock_wait(inf->clock, &inf->moved, &inf->lock, until_ns);
    }
    pthread_mutex_unlock(&inf->lock);
    return rc;
}
