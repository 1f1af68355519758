/* Jobs: pods run until enough of them have succeeded, or too many have failed.
 *
 * A pod is counted when it ends, once, whatever becomes of the object afterwards: nodes go away and
 * take finished pods with them. One that is deleted while it runs counts as failed, as in the real
 * controller. After failures the next pod waits, twice as long each time.
 */
#include "sim/workloads_impl.h"

#include "codec/duration.h"

#define BACKOFF_FIRST_NS (10 * SECOND_NS)
#define BACKOFF_MAX_NS (600 * SECOND_NS)
#define BACKOFF_LIMIT 6
#define LABEL_INDEX STR("batch.kubernetes.io/job-completion-index")
#define POD_SUFFIX 5
#define POD_NAME_MAX 63

void job_read(struct workloads *w KV_UNUSED, struct maker *m, struct str text, const json_val *root)
{
    static const char *const names[] = { "batch.kubernetes.io/job-name", "job-name" };
    static const char *const uids[] = { "batch.kubernetes.io/controller-uid", "controller-uid" };
    const struct job *job = job_of(m->maybe_object);
    struct draft d;
    draft_init(&d, text, m->maybe_object, json_path(root, "spec.template"));
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        json_set(&d.b, d.labels, str_of(names[i]), json_new_str(&d.b, job->object.meta.name));
        json_set(&d.b, d.labels, str_of(uids[i]), json_new_str(&d.b, job->object.meta.uid));
    }
    if (job->spec.completion_mode == COMPLETION_INDEXED) {
        json_set(&d.b, d.labels, LABEL_INDEX, json_new_str(&d.b, d.detail));
        json_set(&d.b, json_mut_object(&d.b, d.meta, STR("annotations")), LABEL_INDEX,
                 json_new_str(&d.b, d.detail));
    }
    draft_cast(&d, &m->mould);
    draft_done(&d);
}

/* --- counting --- */

void job_pod_changed(struct workloads *w, struct maker *m, const struct pod *pod)
{
    bool succeeded = pod->status->phase == PHASE_SUCCEEDED;
    bool failed = pod->status->phase == PHASE_FAILED || (pod_is_terminating(pod) && !succeeded);
    struct str uid = pod->object.meta.uid;
    if ((!succeeded && !failed) || str_table_has(&m->counted, uid))
        return;
    struct str index = str_map_get(&pod->object.meta.labels, LABEL_INDEX);
    int64_t *total = succeeded ? &m->succeeded : &m->failed;
    str_table_put(&m->counted, uid, m);
    if (succeeded && index.len)
        str_table_put(&m->completed, index, m);
    if (!informer_synced(w->informers[WATCH_PODS])) {
        /* The status may have counted it before we started: whichever is more. */
        int64_t listed = ++m->listed[succeeded];
        *total = listed > *total ? listed : *total;
        return;
    }
    ++*total;
    m->fails_in_row = succeeded ? 0 : m->fails_in_row + 1;
    m->last_fail_ns = clock_mono_ns(w->clock);
}

/* --- its pods --- */

struct crew {
    const struct pod **active;
    size_t count;
    int64_t ready;
    struct str_table indexes; /* of the active ones */
};

static struct crew crew_of(struct workloads *w, const struct object_list *made)
{
    struct crew c = { .active = arena_array(&w->scratch, const struct pod *, made->count) };
    for (size_t i = 0; i < made->count; i++) {
        const struct pod *pod = pod_of(made->items[i]);
        if (!pod_is_active(w, pod))
            continue;
        c.active[c.count++] = pod;
        c.ready += pod_is_ready(pod);
        struct str index = str_map_get(&pod->object.meta.labels, LABEL_INDEX);
        if (index.len)
            str_table_put(&c.indexes, index, w);
    }
    return c;
}

static int64_t wanted(const struct maker *m, const struct job *job, const struct crew *c)
{
    int64_t parallel = job->spec.parallelism.set ? job->spec.parallelism.value : 1;
    if (job->spec.suspend)
        return 0;
    if (!job->spec.completions.set) /* a work queue: after a success nobody new starts */
        return m->succeeded && (int64_t)c->count < parallel ? (int64_t)c->count : parallel;
    int64_t left = job->spec.completions.value - m->succeeded;
    left = left > 0 ? left : 0;
    return left < parallel ? left : parallel;
}

static bool create(struct workloads *w, struct maker *m, struct str index)
{
    AUTO_BUF name = { 0 }, json = { 0 };
    struct str base = m->maybe_object->meta.name;
    for (unsigned tries = 0; tries < 100; tries++) {
        char suffix[POD_SUFFIX + 1];
        bool exists = false;
        rng_name(&m->rng, suffix, POD_SUFFIX);
        buf_clear(&name);
        buf_add(&name,
                str_sub(base, 0, POD_NAME_MAX - POD_SUFFIX - 1 - (index.len ? index.len + 1 : 0)));
        if (index.len)
            buf_addf(&name, "-%.*s", STR_ARG(index));
        buf_addf(&name, "-%s", suffix);
        buf_clear(&json);
        mould_fill(&m->mould, buf_str(&name), index, &json);
        if (maker_create(w, m, WATCH_PODS, buf_str(&json), &exists))
            return true;
        if (!exists)
            return false;
    }
    return false;
}

static void create_pods(struct workloads *w, struct maker *m, const struct job *job,
                        const struct crew *c, int64_t how_many)
{
    AUTO_BUF index = { 0 };
    bool indexed = job->spec.completion_mode == COMPLETION_INDEXED;
    for (int64_t i = 0; how_many > 0; i++) {
        buf_clear(&index);
        if (indexed) {
            if (i >= job->spec.completions.value)
                return;
            buf_addf(&index, "%lld", (long long)i);
            if (str_table_has(&c->indexes, buf_str(&index)) ||
                str_table_has(&m->completed, buf_str(&index)))
                continue;
        }
        if (!create(w, m, buf_str(&index)))
            return;
        how_many--;
    }
}

static int64_t backoff_end_ns(const struct maker *m)
{
    int64_t pause_ns = m->fails_in_row ? BACKOFF_FIRST_NS : 0;
    for (int64_t i = 1; i < m->fails_in_row && pause_ns < BACKOFF_MAX_NS; i++)
        pause_ns *= 2;
    return m->last_fail_ns + (pause_ns < BACKOFF_MAX_NS ? pause_ns : BACKOFF_MAX_NS);
}

/* --- status --- */

struct ending {
    const char *type, *reason; /* NULL: it goes on */
};

static struct ending ending_of(struct workloads *w, struct maker *m, const struct job *job,
                               const struct crew *c)
{
    int64_t limit = job->spec.backoff_limit.set ? job->spec.backoff_limit.value : BACKOFF_LIMIT;
    if (job->spec.completions.set ? m->succeeded >= job->spec.completions.value
                                  : m->succeeded && !c->count)
        return (struct ending){ "Complete", "CompletionsReached" };
    if (m->failed > limit)
        return (struct ending){ "Failed", "BackoffLimitExceeded" };
    if (job->spec.active_deadline_s.set && job->status.start_us && !job->spec.suspend) {
        int64_t left_us = job->status.start_us + job->spec.active_deadline_s.value * 1000000 -
                          clock_wall_us(w->clock);
        if (left_us <= 0)
            return (struct ending){ "Failed", "DeadlineExceeded" };
        maker_due(m, clock_mono_ns(w->clock) + left_us * 1000);
    }
    return (struct ending){ 0 };
}

static void write_status(struct workloads *w, struct maker *m, const struct job *job,
                         const struct crew *c, const struct ending *end)
{
    const struct job_status *was = &job->status;
    int64_t active = end->type ? 0 : (int64_t)c->count, ready = end->type ? 0 : c->ready;
    bool starts = !was->start_us && !job->spec.suspend;
    if (!end->type && !starts && was->active == active && was->ready == ready &&
        was->succeeded == m->succeeded && was->failed == m->failed)
        return;
    AUTO_JSON_BUILD b;
    AUTO_BUF patch = { 0 };
    int64_t now_us = clock_wall_us(w->clock);
    char now[TIME_TEXT_MAX];
    time_format(now_us, now);
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *status = json_mut_object(&b, root, STR("status"));
    json_set_i64(&b, status, "active", active);
    json_set_i64(&b, status, "ready", ready);
    json_set_i64(&b, status, "succeeded", m->succeeded);
    json_set_i64(&b, status, "failed", m->failed);
    if (starts)
        json_set_str(&b, status, "startTime", str_of(now));
    if (end->type) {
        json_mut *list = json_new_array(&b), *condition = json_new_object(&b);
        json_set_str(&b, condition, "type", str_of(end->type));
        json_set_str(&b, condition, "status", STR("True"));
        json_set_str(&b, condition, "reason", str_of(end->reason));
        json_set_str(&b, condition, "lastTransitionTime", str_of(now));
        json_push(&b, list, condition);
        json_set(&b, status, STR("conditions"), list);
        if (strcmp(end->type, "Complete") == 0)
            json_set_str(&b, status, "completionTime", str_of(now));
    }
    json_write_mut(root, &patch);
    maker_status(w, m, buf_str(&patch));
}

/* A finished Job is removed when its time is over. */
static void expire(struct workloads *w, struct maker *m, const struct job *job)
{
    if (!job->spec.ttl_after_finished_s.set || !job->status.conditions.count)
        return;
    int64_t end_us = 0;
    for (uint32_t i = 0; i < job->status.conditions.count; i++) {
        const struct condition *c = &job->status.conditions.items[i];
        end_us = c->transition_us > end_us ? c->transition_us : end_us;
    }
    int64_t left_us =
        end_us + job->spec.ttl_after_finished_s.value * 1000000 - clock_wall_us(w->clock);
    if (left_us > 0)
        maker_due(m, clock_mono_ns(w->clock) + left_us * 1000);
    else
        maker_remove(w, m, &job->object);
}

void job_sync(struct workloads *w, struct maker *m)
{
    const struct job *job = job_of(m->maybe_object);
    struct object_list made = { 0 };
    if (job_is_finished(job)) {
        expire(w, m, job);
        return;
    }
    made_list(w, m, WATCH_PODS, &made);
    struct crew c = crew_of(w, &made);
    struct ending end = ending_of(w, m, job, &c);
    int64_t want = end.type ? 0 : wanted(m, job, &c);
    int64_t start_ns = backoff_end_ns(m);
    write_status(w, m, job, &c, &end);
    for (size_t i = (size_t)want; i < c.count; i++)
        pod_remove(w, m, c.active[i]);
    if ((int64_t)c.count < want && start_ns > clock_mono_ns(w->clock))
        maker_due(m, start_ns);
    else if ((int64_t)c.count < want)
        create_pods(w, m, job, &c, want - (int64_t)c.count);
    str_table_done(&c.indexes);
    object_list_done(&made);
}
