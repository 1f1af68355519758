/* node/pleg.c - the loop: relists, requests, and the promise about the cache.
 *
 * One thread owns the records and is the only writer of the cache. It waits for the first of: a
 * stop, the time of the next full relist, a request for one pod, an answer to an inspection; and
 * when several are there, serves them in that order. Of all it does only listing waits for the
 * runtime. A relist is an event at its start (list, compare, say what must be inspected) and one at
 * its end (the last of those inspections has been answered, or PLEG_PATIENCE_NS has passed), and in
 * between other pods are served. The next full relist is a period after the end, so slow ones do
 * not pile up.
 *
 * Invariants:
 *  1. A timestamp is the clock's just before the first call of a listing. All that comes of the
 *     listing carries it.
 *  2. The global time of the cache moves only at the end of a full relist, to the time of its
 *     listing. By then each pod of the listing has an entry from this listing or a later one; or
 *     was listed as it had been when its entry was made, which makes that as good as new; or has an
 *     entry that says that it could not be inspected. And each pod that was not in the listing has
 *     none.
 *  3. A record advances, and events are sent, only after a successful inspection, and after its
 *     result is in the cache. Until then every listing shows the same difference again: nothing is
 *     lost.
 *  4. A pod is inspected at most once at a time. While its inspection is late nothing waits for it;
 *     whatever comes of it is taken when it comes, if no listing has shown something else since
 *     (pleg_inspect.c). So a call that hangs costs its pod a status that says so, one relist at
 *     most PLEG_PATIENCE_NS, and the other pods nothing.
 *  5. A listing that fails changes nothing: the relist time ages until pleg_healthy tells.
 *
 * Nearly always a full relist shows what the one before did. So its listing comes with a digest of ids
 * and states, and one that is equal to that of a listing which left nothing to do is not read further.
 *
 * A request is dropped when a full relist that began after it was made has listed: that shows what
 * the request is about. Requests remember how many relists had begun, instead of the time, which is
 * right also when two moments are equal.
 */
#include "node/pleg_inner.h"

#include "base/thread.h"

#define LISTING_KEPT_BYTES ((size_t)1 << 20) /* what one huge listing took is not kept for ever */

static int64_t now_ns(const struct pleg *pleg)
{
    return clock_mono_ns(pleg->opts.clock);
}

/* --- asking --- */

/* With the lock held. Asking twice for a pod that waits is asking once, later. */
static bool request_add(struct pleg *pleg, struct str key, bool by_id, bool hint)
{
    for (uint32_t i = 0; i < pleg->request_count; i++) {
        struct pleg_request *r = &pleg->requests[i];
        if (r->by_id == by_id && str_eq((struct str){ r->key, r->key_len }, key)) {
            r->made_after = pleg->begun_count;
            r->hint = r->hint && hint;
            return true;
        }
    }
    if (key.len > PLEG_KEY_MAX) {
        pleg->all_wanted = true;
        return true;
    }
    if (pleg->request_count == PLEG_REQUESTS_MAX) {
        pleg->stats.request_dropped_count++;
        return false;
    }
    struct pleg_request *r = &pleg->requests[pleg->request_count++];
    *r = (struct pleg_request){
        .key_len = key.len, .by_id = by_id, .hint = hint, .made_after = pleg->begun_count
    };
    if (key.len)
        memcpy(r->key, key.p, key.len);
    return true;
}

void pleg_request(struct pleg *pleg, struct str uid)
{
    pthread_mutex_lock(&pleg->lock);
    request_add(pleg, uid, false, false);
    pthread_cond_signal(&pleg->changed);
    pthread_mutex_unlock(&pleg->lock);
}

void pleg_hint(struct pleg *pleg, struct str key, bool by_id)
{
    pthread_mutex_lock(&pleg->lock);
    pleg->stats.hint_count++;
    bool added = request_add(pleg, key, by_id, true);
    pthread_cond_signal(&pleg->changed);
    pthread_mutex_unlock(&pleg->lock);
    pleg_count(added ? pleg->metrics.hints_asked : pleg->metrics.hints_dropped);
}

void pleg_request_inspection(struct pleg *pleg, struct str uid)
{
    pthread_mutex_lock(&pleg->lock);
    str_table_put(&pleg->inspections_wanted, uid, pleg);
    pthread_mutex_unlock(&pleg->lock);
}

void pleg_request_all(struct pleg *pleg)
{
    pthread_mutex_lock(&pleg->lock);
    pleg->all_wanted = true;
    pthread_cond_signal(&pleg->changed);
    pthread_mutex_unlock(&pleg->lock);
}

void pleg_wake(struct pleg *pleg)
{
    pthread_mutex_lock(&pleg->lock);
    pleg->woken = true;
    pthread_cond_signal(&pleg->changed);
    pthread_mutex_unlock(&pleg->lock);
}

/* --- comparing a listing with the records --- */

static void reconcile(struct pleg *pleg, struct record *record, const struct runtime_pod *listed,
                      int64_t ts_ns, uint64_t relist)
{
    bool look_again = record->second_look_ns && ts_ns >= record->second_look_ns;
    record->listed_ns = ts_ns;
    if (look_again)
        record->second_look_ns = 0;
    if (record->second_look_ns)
        pleg->quiet_digest = 0;
    if (record->maybe_inspection || record->inspect_again || look_again || !record->maybe_seen ||
        !seen_same(record->maybe_seen, listed))
        inspection_want(pleg, record, listed, ts_ns, relist);
}

/* A full listing shows every pod, and is told in one place for all of them. */
static int64_t listed_ns(const struct pleg *pleg, const struct record *record)
{
    return record->listed_ns > pleg->listed_ns ? record->listed_ns : pleg->listed_ns;
}

/* The runtime knows nothing of the pod any more. */
static void reconcile_gone(struct pleg *pleg, size_t at)
{
    struct record *record = pleg->records.all.items[at];
    inspection_cancel(pleg, record);
    pod_cache_delete(pleg->opts.cache, record->uid);

    AUTO_ARENA scratch = { 0 };
    struct changes changes = changes_between(&scratch, record->maybe_seen, NULL);
    for (uint32_t i = 0; i < changes.count; i++) {
        struct pod_event event =
            change_event(record->maybe_seen, &changes.items[i], record->maybe_good);
        event_hub_send(pleg->opts.events, &event);
    }
    records_remove(&pleg->records, at);
}

/* Records and listing are both sorted by uid. */
static void reconcile_all(struct pleg *pleg, const struct runtime_listing *listing, uint64_t relist)
{
    size_t at = 0;
    for (uint32_t i = 0; i < listing->pod_count; i++) {
        const struct runtime_pod *pod = &listing->pods[i];
        int order = 1;
        while (at < pleg->records.all.count &&
               (order = str_cmp(pleg->records.all.items[at]->uid, pod->uid)) < 0)
            reconcile_gone(pleg, at);
        struct record *record = at < pleg->records.all.count && order == 0
                                    ? pleg->records.all.items[at]
                                    : records_insert(&pleg->records, at, pod->uid);
        reconcile(pleg, record, pod, listing->timestamp_ns, relist);
        at++;
    }
    while (at < pleg->records.all.count)
        reconcile_gone(pleg, at);
}

/* Before the listing: what is asked for while it runs is for the next one. */
static void note_wanted_inspections(struct pleg *pleg, struct str maybe_uid)
{
    pthread_mutex_lock(&pleg->lock);
    struct str_table *wanted = &pleg->inspections_wanted;
    if (wanted->live_count)
        pleg->quiet_digest = 0;
    if (maybe_uid.p) {
        struct record *record = records_get(&pleg->records, maybe_uid);
        if (str_table_remove(wanted, maybe_uid) && record)
            record->inspect_again = true;
    } else if (wanted->live_count) {
        str_table_each(wanted, it) {
            struct record *record = records_get(&pleg->records, it->key);
            if (record) /* a pod that is new is inspected anyway */
                record->inspect_again = true;
        }
        str_table_clear(wanted);
    }
    pthread_mutex_unlock(&pleg->lock);
}

static int list(struct pleg *pleg, struct str maybe_uid, uint64_t *maybe_digest,
                struct runtime_listing *out, struct err *err)
{
    if (pleg->listing.held_bytes > LISTING_KEPT_BYTES)
        arena_done(&pleg->listing);
    else
        arena_reset(&pleg->listing);
    int rc = cri_list_until(pleg->opts.cri, maybe_uid, pleg->stop_listing, maybe_digest,
                            &pleg->listing, out, err);
    if (rc >= 0)
        return rc;
    pthread_mutex_lock(&pleg->lock);
    pleg->unreachable_count += err->kind == ERR_UNAVAILABLE;
    pthread_cond_signal(&pleg->hints_changed);
    pthread_mutex_unlock(&pleg->lock);
    return -1;
}

/* --- a full relist --- */

static void relist_over(struct pleg *pleg, bool failed)
{
    int64_t now = now_ns(pleg), period_ns = pleg->opts.period_ns;
    if (failed && period_ns > PLEG_PERIOD_NS) /* whatever the period, trouble is not waited out */
        period_ns = PLEG_PERIOD_NS;
    pleg->relist.on = false;
    pleg->relist_due_ns = now + period_ns;
    pleg_observe(pleg->metrics.relist_duration, now - pleg->relist.begun_ns);
    pthread_mutex_lock(&pleg->lock);
    pleg->running_since_ns = 0;
    pleg->stats.relist_count++;
    pleg->stats.relist_failed_count += failed;
    pleg->stats.pods = (uint32_t)pleg->records.all.count;
    pthread_mutex_unlock(&pleg->lock);
}

/* What was asked for before this relist began, its listing has shown. And if it could not list,
 * then listings of single pods could not either, while the next relist comes soon and is after them
 * all. */
static void requests_answered(struct pleg *pleg, bool failed)
{
    uint32_t kept = 0;
    pthread_mutex_lock(&pleg->lock);
    for (uint32_t i = 0; i < pleg->request_count; i++) {
        const struct pleg_request *r = &pleg->requests[i];
        if (!failed && r->made_after >= pleg->relist.number) {
            pleg->requests[kept++] = *r;
            continue;
        }
        const struct record *record =
            records_get(&pleg->records, (struct str){ r->key, r->key_len });
        if (!failed && record && !record->maybe_inspection) /* it need not wait for other pods */
            pod_cache_set_observed(pleg->opts.cache, record->uid, listed_ns(pleg, record));
    }
    pleg->request_count = kept;
    pthread_mutex_unlock(&pleg->lock);
}

static void relist_end_if_settled(struct pleg *pleg)
{
    if (!pleg->relist.on || !inspections_settled(pleg, pleg->relist.number))
        return;
    pod_cache_update_time(pleg->opts.cache, pleg->relist.ts_ns);
    relist_over(pleg, false);
}

static void advance(struct pleg *pleg)
{
    inspections_advance(pleg);
    relist_end_if_settled(pleg);
}

static int relist_begin(struct pleg *pleg, struct err *err)
{
    pleg->relist.begun_ns = now_ns(pleg);
    pthread_mutex_lock(&pleg->lock);
    pleg->relist.number = ++pleg->begun_count;
    pleg->running_since_ns = pleg->relist.begun_ns;
    pleg->all_wanted = false;
    pthread_mutex_unlock(&pleg->lock);
    note_wanted_inspections(pleg, STR_NONE);

    struct runtime_listing listing;
    uint64_t digest = pleg->quiet_digest;
    int known = list(pleg, STR_NONE, &digest, &listing, err);
    if (known < 0) {
        requests_answered(pleg, true);
        relist_over(pleg, true);
        return err_wrap(err, "relist");
    }
    if (pleg->listed_ns)
        pleg_observe(pleg->metrics.relist_interval, listing.timestamp_ns - pleg->listed_ns);
    if (pleg->metrics.last_seen)
        metric_set(pleg->metrics.last_seen, (double)clock_wall_us(pleg->opts.clock) / 1e6);
    pleg->listed_ns = listing.timestamp_ns;
    pthread_mutex_lock(&pleg->lock);
    pleg->stats.relist_time_ns = listing.timestamp_ns;
    pthread_mutex_unlock(&pleg->lock);

    if (!known) {
        pleg->quiet_digest = digest; /* unless something is found to do */
        reconcile_all(pleg, &listing, pleg->relist.number);
    }
    pleg->relist.ts_ns = listing.timestamp_ns;
    pleg->relist.on = true;
    requests_answered(pleg, false);
    advance(pleg);
    return 0;
}

/* --- a relist of one pod --- */

static int pod_relist(struct pleg *pleg, struct str uid, struct err *err)
{
    int64_t begun_ns = now_ns(pleg);
    note_wanted_inspections(pleg, uid);
    struct runtime_listing listing;
    if (list(pleg, uid, NULL, &listing, err) < 0)
        return err_wrap(err, "relist of pod %s", STR_SHOWN(uid));

    size_t at;
    bool known = records_find(&pleg->records, uid, &at);
    if (listing.pod_count == 0) {
        if (known) /* only a listing of everything makes a pod vanish: then let it be soon */
            pleg_request_all(pleg);
    } else {
        struct record *record =
            known ? pleg->records.all.items[at] : records_insert(&pleg->records, at, uid);
        reconcile(pleg, record, &listing.pods[0], listing.timestamp_ns, 0);
        if (!record->maybe_inspection || inspection_late(record))
            pod_cache_set_observed(pleg->opts.cache, uid, listing.timestamp_ns);
    }
    advance(pleg);

    pleg_observe(pleg->metrics.pod_relist_duration, now_ns(pleg) - begun_ns);
    pthread_mutex_lock(&pleg->lock);
    pleg->stats.pod_relist_count++;
    pleg->stats.pods = (uint32_t)pleg->records.all.count;
    pthread_mutex_unlock(&pleg->lock);
    return 0;
}

static void serve_request(struct pleg *pleg, const struct pleg_request *request)
{
    struct str key = { request->key, request->key_len };
    if (request->by_id) {
        const struct record *record = records_by_id(&pleg->records, key);
        if (!record) { /* of a pod that came and went between two relists */
            pthread_mutex_lock(&pleg->lock);
            pleg->stats.hint_ignored_count++;
            pthread_mutex_unlock(&pleg->lock);
            return;
        }
        key = record->uid;
    }
    struct err err = { 0 };
    if (pod_relist(pleg, key, &err) < 0 && err.kind != ERR_CANCELLED)
        log_warn(pleg->opts.log, "pod could not be listed", LOG_ERR(&err));
}

/* --- the loop --- */

/* When the request is due: hints may have to wait a little. With the lock held. */
static int64_t request_due(const struct pleg *pleg, const struct pleg_request *request)
{
    if (!request->hint)
        return INT64_MIN;
    const struct record *record =
        request->by_id
            ? NULL
            : records_get(&pleg->records, (struct str){ request->key, request->key_len });
    return (record ? listed_ns(pleg, record) : pleg->listed_ns) + PLEG_HINT_PAUSE_NS;
}

/* The first that is due. False: none; `until` becomes no later than when one will be. */
static bool request_take(struct pleg *pleg, int64_t now, struct pleg_request *out, int64_t *until)
{
    for (uint32_t i = 0; i < pleg->request_count; i++) {
        int64_t due_ns = request_due(pleg, &pleg->requests[i]);
        if (due_ns <= now) {
            *out = pleg->requests[i];
            pleg->request_count--;
            memmove(&pleg->requests[i], &pleg->requests[i + 1],
                    (pleg->request_count - i) * sizeof *pleg->requests);
            return true;
        }
        if (due_ns < *until)
            *until = due_ns;
    }
    return false;
}

static bool relist_is_due(const struct pleg *pleg, int64_t now)
{
    if (pleg->relist.on)
        return false;
    return pleg->all_wanted || now >= pleg->relist_due_ns ||
           (pleg->request_count > PLEG_SINGLES_MAX && now >= pleg->listed_ns + PLEG_HINT_PAUSE_NS);
}

/* Waits for something to do and does it, with the lock held, which is given up meanwhile. */
static void pleg_turn(struct pleg *pleg)
{
    int64_t now = now_ns(pleg);
    int64_t inspect_ns = inspections_due(pleg);
    int64_t until = pleg->relist.on ? INT64_MAX : pleg->relist_due_ns;
    struct pleg_request request;
    struct err err = { 0 };

    if (relist_is_due(pleg, now)) {
        pthread_mutex_unlock(&pleg->lock);
        if (relist_begin(pleg, &err) < 0 && err.kind != ERR_CANCELLED)
            log_warn(pleg->opts.log, "relist failed", LOG_ERR(&err));
        pthread_mutex_lock(&pleg->lock);
    } else if (request_take(pleg, now, &request, &until)) {
        pthread_mutex_unlock(&pleg->lock);
        serve_request(pleg, &request);
        pthread_mutex_lock(&pleg->lock);
    } else if (pleg->woken || now >= inspect_ns) {
        pleg->woken = false;
        pthread_mutex_unlock(&pleg->lock);
        advance(pleg);
        pthread_mutex_lock(&pleg->lock);
    } else {
        clock_wait(pleg->opts.clock, &pleg->changed, &pleg->lock,
                   until < inspect_ns ? until : inspect_ns);
    }
}

static void *pleg_main(void *arg)
{
    struct pleg *pleg = arg;
    pthread_mutex_lock(&pleg->lock);
    while (!pleg->stopping)
        pleg_turn(pleg);
    pthread_mutex_unlock(&pleg->lock);
    return NULL;
}

/* --- without the loop --- */

static void wait_for_answers(struct pleg *pleg)
{
    int64_t until = inspections_due(pleg);
    pthread_mutex_lock(&pleg->lock);
    while (!pleg->woken && now_ns(pleg) < until)
        clock_wait(pleg->opts.clock, &pleg->changed, &pleg->lock, until);
    pleg->woken = false;
    pthread_mutex_unlock(&pleg->lock);
    advance(pleg);
}

int pleg_relist(struct pleg *pleg, struct err *err)
{
    KV_ASSERT(!pleg->started);
    if (relist_begin(pleg, err) < 0)
        return -1;
    while (pleg->relist.on)
        wait_for_answers(pleg);
    return 0;
}

int pleg_relist_pod(struct pleg *pleg, struct str uid, struct err *err)
{
    KV_ASSERT(!pleg->started);
    if (pod_relist(pleg, uid, err) < 0)
        return -1;
    const struct record *record = records_get(&pleg->records, uid);
    while (record && record->maybe_inspection && !inspection_late(record))
        wait_for_answers(pleg);
    return 0;
}

/* --- life --- */

struct pleg *pleg_new(struct pleg_options options)
{
    struct pleg *pleg = kv_calloc(1, sizeof *pleg);
    pleg->opts = options;
    if (!pleg->opts.period_ns)
        pleg->opts.period_ns = PLEG_PERIOD_NS;
    pleg->requests = kv_calloc(PLEG_REQUESTS_MAX, sizeof *pleg->requests);
    pthread_mutex_init(&pleg->lock, NULL);
    pthread_mutex_init(&pleg->stream_lock, NULL);
    clock_cond_init(&pleg->changed);
    clock_cond_init(&pleg->hints_changed);
    pleg->stop_listing = cri_cancel_new();
    pleg_metrics_init(pleg);
    return pleg;
}

void pleg_free(struct pleg *pleg)
{
    if (!pleg)
        return;
    KV_ASSERT(!pleg->started);
    pleg_metrics_done(pleg);
    inspections_done(pleg);
    records_done(&pleg->records);
    arena_done(&pleg->listing);
    str_table_done(&pleg->inspections_wanted);
    free(pleg->requests);
    cri_cancel_free(pleg->stop_listing);
    pthread_cond_destroy(&pleg->hints_changed);
    pthread_cond_destroy(&pleg->changed);
    pthread_mutex_destroy(&pleg->stream_lock);
    pthread_mutex_destroy(&pleg->lock);
    free(pleg);
}

int pleg_start(struct pleg *pleg, struct err *err)
{
    KV_ASSERT(!pleg->started);
    KV_ASSERT(!pleg->stopping);         /* once stopped it stays so */
    pleg->relist_due_ns = now_ns(pleg); /* the first at once */
    if (thread_start(&pleg->thread, "pleg", pleg_main, pleg, err) < 0)
        return -1;
    pleg->started = true;
    if (!pleg->opts.no_hints &&
        thread_start(&pleg->hints_thread, "pleg-hints", pleg_hints_main, pleg, err) < 0) {
        pleg->opts.no_hints = true; /* there is no such thread to wait for */
        pleg_stop(pleg);
        return -1;
    }
    return 0;
}

void pleg_stop(struct pleg *pleg)
{
    if (!pleg || !pleg->started)
        return;
    pthread_mutex_lock(&pleg->lock);
    pleg->stopping = true;
    pthread_cond_signal(&pleg->changed);
    pthread_cond_signal(&pleg->hints_changed);
    pthread_mutex_unlock(&pleg->lock);
    cri_cancel(pleg->stop_listing);
    if (!pleg->opts.no_hints) {
        pleg_hints_stop(pleg);
        pthread_join(pleg->hints_thread, NULL);
    }
    pthread_join(pleg->thread, NULL);
    pleg->started = false;
}

/* --- looking at it --- */

bool pleg_healthy(struct pleg *pleg, struct err *why)
{
    int64_t listed_ns = pleg_stats(pleg).relist_time_ns;
    if (!listed_ns) {
        err_set(why, ERR_UNAVAILABLE, "PLEG is not healthy: no listing has worked yet");
        return false;
    }
    int64_t age_ns = now_ns(pleg) - listed_ns;
    if (age_ns <= PLEG_HEALTHY_NS)
        return true;
    err_set(why, ERR_UNAVAILABLE,
            "PLEG is not healthy: no listing has worked for %.0f s; after %.0f s that counts",
            (double)age_ns / 1e9, (double)PLEG_HEALTHY_NS / 1e9);
    return false;
}

struct pleg_stats pleg_stats(struct pleg *pleg)
{
    pthread_mutex_lock(&pleg->lock);
    struct pleg_stats stats = pleg->stats;
    if (pleg->running_since_ns)
        stats.relist_running_ns = now_ns(pleg) - pleg->running_since_ns;
    pthread_mutex_unlock(&pleg->lock);
    return stats;
}
