/* node/pleg_inspect.c - inspections under way, and what becomes of their results.
 *
 *                 a slot is free           answered, and nothing was listed in between
 *     WAITING ---------------------> RUNNING ----------------------------------------> published
 *        ^                              |
 *        |  answered, but a listing     |   PLEG_PATIENCE_NS after it was wanted: late. The cache
 *        +--- has shown something else -+   gets an entry that says so; the calls go on
 *
 * A pod has at most one inspection. It holds one of PLEG_INSPECTIONS_MAX slots, and gives it back
 * after PLEG_PATIENCE_NS: a runtime that hangs on some pods must not keep the others from their
 * turn.
 *
 * While it runs the pod may be listed again. A listing that shows the same confirms the inspection,
 * exactly as an unchanged listing confirms an entry in the cache: its result will carry the time of
 * that listing. One that shows something else makes the result worthless: it may be older than the
 * listing, and what the cache has promised by then. Such a result is dropped and the pod inspected
 * anew, from that listing. So results never carry a time before that of a listing which the pod's
 * entry is already known to be as new as, and the cache takes each.
 */
#include "node/pleg_inner.h"

struct inspection {
    struct pleg *pleg;
    struct record *record;
    struct runtime_pod *seen;       /* what it is made from */
    int64_t seen_ns;                /* of the newest listing that showed just this */
    struct runtime_pod *maybe_next; /* the newest listing, once one has shown something else */
    int64_t next_ns;
    struct cri_inspection *maybe_calls; /* NULL: waits for a slot */
    atomic_bool woken;                  /* there is an answer to take in */
    bool late, has_slot;
    int64_t late_ns; /* when it becomes late */
    int64_t slot_until_ns;
    uint64_t relist; /* the newest full relist that wants it; 0: none */
};

static void wake(void *ctx)
{
    struct inspection *inspection = ctx;
    atomic_store(&inspection->woken, true);
    pleg_wake(inspection->pleg);
}

/* --- beginnings and ends --- */

void inspection_want(struct pleg *pleg, struct record *record, const struct runtime_pod *listed,
                     int64_t ts_ns, uint64_t relist)
{
    struct inspection *inspection = record->maybe_inspection;
    pleg->quiet_digest = 0;
    if (!inspection) {
        inspection = kv_calloc(1, sizeof *inspection);
        *inspection = (struct inspection){
            .pleg = pleg,
            .record = record,
            .seen = seen_pod_new(listed),
            .late_ns = clock_mono_ns(pleg->opts.clock) + PLEG_PATIENCE_NS,
        };
        record->maybe_inspection = inspection;
        record->inspect_again = false;
        vec_push(&pleg->inspections, inspection);
    }
    if (relist)
        inspection->relist = relist;
    /* Once worthless it stays so, even if things look as before: it may have met the time between.
     * */
    if (!inspection->maybe_next && seen_same(inspection->seen, listed)) {
        inspection->seen_ns = ts_ns;
    } else if (!inspection->maybe_calls) { /* it has not begun, and shall begin with this */
        free(inspection->seen);
        inspection->seen = seen_pod_new(listed);
        inspection->seen_ns = ts_ns;
    } else {
        free(inspection->maybe_next);
        inspection->maybe_next = seen_pod_new(listed);
        inspection->next_ns = ts_ns;
    }
}

static void give_slot_back(struct pleg *pleg, struct inspection *inspection)
{
    pleg->slots_taken -= inspection->has_slot;
    inspection->has_slot = false;
}

static void inspection_free(struct pleg *pleg, struct inspection *inspection)
{
    give_slot_back(pleg, inspection);
    cri_inspection_free(inspection->maybe_calls);
    inspection->record->maybe_inspection = NULL;
    free(inspection->seen);
    free(inspection->maybe_next);
    free(inspection);
}

static void remove_at(struct pleg *pleg, size_t at)
{
    struct inspection **items = pleg->inspections.items;
    inspection_free(pleg, items[at]);
    pleg->inspections.count--;
    memmove(&items[at], &items[at + 1],
            (pleg->inspections.count - at) * sizeof(struct inspection *));
}

void inspection_cancel(struct pleg *pleg, struct record *record)
{
    for (size_t i = 0; i < pleg->inspections.count; i++) {
        if (pleg->inspections.items[i] == record->maybe_inspection) {
            remove_at(pleg, i);
            return;
        }
    }
}

void inspections_done(struct pleg *pleg)
{
    vec_each(&pleg->inspections, struct inspection *, it)
        inspection_free(pleg, *it);
    vec_done(&pleg->inspections);
}

/* --- results --- */

/* An ended pod loses its network before its last inspection; people still ask where it was. */
static void carry_ips_over(struct runtime_status *fresh, const struct runtime_status *maybe_before)
{
    if (!maybe_before || fresh->ips.count || runtime_ready_sandbox(fresh))
        return;
    uint32_t count = maybe_before->ips.count;
    if (!count)
        return;
    struct str *ips = arena_array(&fresh->arena, struct str, count);
    for (uint32_t i = 0; i < count; i++)
        ips[i] = arena_str(&fresh->arena, maybe_before->ips.items[i]);
    fresh->ips = (struct str_list){ ips, count };
}

/* Has a container died of a signal since? A runtime may hear only after it has told of the end, from
 * another source and with no event of its own, that it was for want of memory. */
static bool may_learn_more(const struct runtime_status *fresh,
                           const struct runtime_status *maybe_before)
{
    for (uint32_t i = 0; i < fresh->containers.count; i++) {
        const struct runtime_container *c = &fresh->containers.items[i];
        const struct runtime_container *before =
            maybe_before ? runtime_container_by_id(maybe_before, c->id) : NULL;
        if (c->state == RUNTIME_EXITED && c->exit_code > 128 && !str_eqz(c->reason, "OOMKilled") &&
            !(before && before->state == RUNTIME_EXITED))
            return true;
    }
    return false;
}

static void cache_set(struct pleg *pleg, const struct runtime_status *status)
{
    bool newest = pod_cache_set(pleg->opts.cache, status);
    KV_ASSERT(newest); /* see the top */
}

/* The entry says why there is nothing newer; what was last known stays in it. The record does not
 * advance and no event is sent: the next listing shows the same difference again. */
static void publish_failure(struct pleg *pleg, const struct inspection *inspection,
                            const struct err *err)
{
    struct record *record = inspection->record;
    bool outdated =
        inspection->maybe_next != NULL; /* time and names are those of the newest listing */
    AUTO_STATUS failed = runtime_status_failed(
        record->maybe_good, outdated ? inspection->maybe_next : inspection->seen,
        outdated ? inspection->next_ns : inspection->seen_ns, err);
    record->failed = true;
    cache_set(pleg, failed);
}

/* First the cache, then the events: who is told of a change finds it there. */
static void publish(struct pleg *pleg, struct inspection *inspection,
                    const struct runtime_status *status)
{
    struct record *record = inspection->record;
    struct runtime_status *fresh = (struct runtime_status *)status; /* nobody else has it yet */
    fresh->timestamp_ns = inspection->seen_ns;
    carry_ips_over(fresh, record->maybe_good);
    if (may_learn_more(fresh, record->maybe_good))
        record->second_look_ns = fresh->timestamp_ns + PLEG_SECOND_LOOK_NS;

    AUTO_ARENA scratch = { 0 };
    AUTO_FREE struct runtime_pod *before = take(&record->maybe_seen);
    record->maybe_seen = take(&inspection->seen);
    const struct runtime_pod *pod = record->maybe_seen;
    struct changes changes = changes_between(&scratch, before, pod);

    bool was_failed = record->failed;
    bool same = !was_failed && record->maybe_good && runtime_status_same(fresh, record->maybe_good);
    record->failed = false;
    if (same && !changes.any) {
        pod_cache_set_observed(pleg->opts.cache, record->uid, fresh->timestamp_ns);
        return; /* no real change */
    }
    runtime_status_unref(record->maybe_good);
    record->maybe_good = runtime_status_ref(fresh);
    cache_set(pleg, fresh);

    for (uint32_t i = 0; i < changes.count; i++) {
        struct pod_event event = change_event(pod, &changes.items[i], fresh);
        event_hub_send(pleg->opts.events, &event);
    }
    if (changes.count == 0 && (was_failed || !changes.any)) {
        struct pod_event event = sync_event(pod);
        event_hub_send(pleg->opts.events, &event);
    }
}

static void note_result(struct pleg *pleg, bool failed, bool outdated)
{
    pleg_count(outdated ? pleg->metrics.inspections_outdated
               : failed ? pleg->metrics.inspections_failed
                        : pleg->metrics.inspections_ok);
    pthread_mutex_lock(&pleg->lock);
    pleg->stats.inspect_count++;
    pleg->stats.inspect_failed_count += failed && !outdated;
    pthread_mutex_unlock(&pleg->lock);
}

/* Its calls have ended. True: and so has it. */
static bool take_result(struct pleg *pleg, struct inspection *inspection)
{
    AUTO_STATUS status = NULL;
    struct err err = { 0 };
    int rc = cri_inspection_take(inspection->maybe_calls, &status, &err);
    cri_inspection_free(take(&inspection->maybe_calls));
    give_slot_back(pleg, inspection);
    note_result(pleg, rc < 0, inspection->maybe_next != NULL);

    if (inspection->maybe_next) {
        free(inspection->seen);
        inspection->seen = take(&inspection->maybe_next);
        inspection->seen_ns = inspection->next_ns;
        return false;
    }
    if (rc < 0) {
        log_warn(pleg->opts.log, "pod could not be inspected",
                 LOG_STR("namespace", inspection->seen->namespace_),
                 LOG_STR("pod", inspection->seen->name), LOG_ERR(&err));
        publish_failure(pleg, inspection, &err);
        inspection->record->inspect_again = true;
    } else {
        publish(pleg, inspection, status);
    }
    return true;
}

/* --- the round --- */

static void take_results(struct pleg *pleg)
{
    for (size_t i = 0; i < pleg->inspections.count;) {
        struct inspection *inspection = pleg->inspections.items[i];
        if (inspection->maybe_calls && atomic_exchange(&inspection->woken, false) &&
            cri_inspection_step(inspection->maybe_calls) && take_result(pleg, inspection))
            remove_at(pleg, i);
        else
            i++;
    }
}

static void become_late(struct pleg *pleg, struct inspection *inspection)
{
    struct err err;
    if (inspection->maybe_calls)
        err_set(&err, ERR_UNAVAILABLE, "inspection has not answered for %gs",
                (double)PLEG_PATIENCE_NS / 1e9);
    else
        err_set(&err, ERR_UNAVAILABLE, "inspection has not begun: others have not answered for %gs",
                (double)PLEG_PATIENCE_NS / 1e9);
    log_warn(pleg->opts.log, "inspection of a pod is late",
             LOG_STR("namespace", inspection->seen->namespace_),
             LOG_STR("pod", inspection->seen->name), LOG_ERR(&err));
    publish_failure(pleg, inspection, &err);
    inspection->late = true;
}

static void expire(struct pleg *pleg, int64_t now_ns)
{
    vec_each(&pleg->inspections, struct inspection *, it) {
        if (!(*it)->late && now_ns >= (*it)->late_ns)
            become_late(pleg, *it);
        if ((*it)->has_slot && now_ns >= (*it)->slot_until_ns)
            give_slot_back(pleg, *it);
    }
}

static bool start_waiting(struct pleg *pleg, int64_t now_ns)
{
    bool started = false;
    vec_each(&pleg->inspections, struct inspection *, it) {
        struct inspection *inspection = *it;
        if (pleg->slots_taken == PLEG_INSPECTIONS_MAX)
            break;
        if (inspection->maybe_calls)
            continue;
        inspection->has_slot = true;
        inspection->slot_until_ns = now_ns + PLEG_PATIENCE_NS;
        pleg->slots_taken++;
        inspection->maybe_calls = cri_inspect_start(pleg->opts.cri, inspection->seen,
                                                    inspection->seen_ns, wake, inspection);
        atomic_store(&inspection->woken, true); /* it may have failed already */
        started = true;
    }
    return started;
}

void inspections_advance(struct pleg *pleg)
{
    do {
        take_results(pleg);
        expire(pleg, clock_mono_ns(pleg->opts.clock));
    } while (start_waiting(pleg, clock_mono_ns(pleg->opts.clock)));

    uint32_t late_count = 0;
    vec_each(&pleg->inspections, struct inspection *, it)
        late_count += (*it)->late;
    pthread_mutex_lock(&pleg->lock);
    pleg->late_count = late_count;
    pleg->stats.inspecting = (uint32_t)pleg->inspections.count;
    pthread_mutex_unlock(&pleg->lock);
}

int64_t inspections_due(const struct pleg *pleg)
{
    int64_t due_ns = INT64_MAX;
    vec_each(&pleg->inspections, struct inspection *, it) {
        if (!(*it)->late && (*it)->late_ns < due_ns)
            due_ns = (*it)->late_ns;
        if ((*it)->has_slot && (*it)->slot_until_ns < due_ns)
            due_ns = (*it)->slot_until_ns;
    }
    return due_ns;
}

bool inspections_settled(const struct pleg *pleg, uint64_t relist)
{
    vec_each(&pleg->inspections, struct inspection *, it) {
        if ((*it)->relist == relist && !(*it)->late)
            return false;
    }
    return true;
}

bool inspection_late(const struct record *record)
{
    return record->maybe_inspection && record->maybe_inspection->late;
}
