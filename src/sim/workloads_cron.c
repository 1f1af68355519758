/* CronJobs: a Job at each minute of the schedule, named NAME-MINUTES since 1970, as the real ones are.
 * Of several minutes that were missed only the last is made up for. */
#include "sim/workloads_impl.h"

#include "codec/cron.h"
#include "codec/duration.h"

void cron_job_read(struct workloads *w KV_UNUSED, struct maker *m, struct str text,
                   const json_val *root)
{
    struct draft d;
    m->history = 3;
    m->failed_history = 1;
    json_i64(json_path(root, "spec.successfulJobsHistoryLimit"), &m->history);
    json_i64(json_path(root, "spec.failedJobsHistoryLimit"), &m->failed_history);
    draft_init(&d, text, m->maybe_object, json_path(root, "spec.jobTemplate"));
    json_set(&d.b, json_mut_object(&d.b, d.meta, STR("annotations")),
             STR("batch.kubernetes.io/cronjob-scheduled-timestamp"), json_new_str(&d.b, d.detail));
    draft_cast(&d, &m->mould);
    draft_done(&d);
}

static int job_order(const void *x, const void *y)
{
    const struct job *a = *(const struct job *const *)x, *b = *(const struct job *const *)y;
    if (a->object.meta.created_us != b->object.meta.created_us)
        return a->object.meta.created_us < b->object.meta.created_us ? -1 : 1;
    return str_cmp(a->object.meta.name, b->object.meta.name);
}

static bool job_succeeded(const struct job *job)
{
    const struct condition *c =
        condition_find(job->status.conditions.items, job->status.conditions.count, STR("Complete"));
    return c && c->status == CONDITION_TRUE;
}

/* The oldest finished Jobs go. Returns how many are still running. */
static size_t tidy(struct workloads *w, struct maker *m, const struct job **jobs, size_t count)
{
    int64_t over[2] = { -m->failed_history, -m->history };
    size_t running = 0;
    for (size_t i = 0; i < count; i++) {
        if (job_is_finished(jobs[i]))
            over[job_succeeded(jobs[i])]++;
        else
            running++;
    }
    for (size_t i = 0; i < count; i++) {
        if (job_is_finished(jobs[i]) && over[job_succeeded(jobs[i])]-- > 0)
            maker_remove(w, m, &jobs[i]->object);
    }
    return running;
}

/* The last minute of the schedule that has come and has not been served; false: none. */
static bool minute_due(struct workloads *w, const struct cron_job *cj, const struct cron *cron,
                       int64_t *out_s)
{
    int64_t now_s = clock_wall_us(w->clock) / 1000000;
    int64_t since_us =
        cj->status.last_schedule_us ? cj->status.last_schedule_us : cj->object.meta.created_us;
    int64_t since_s = since_us / 1000000;
    const struct maybe_int *deadline = &cj->spec.starting_deadline_s;
    if (deadline->set && now_s - deadline->value > since_s)
        since_s = now_s - deadline->value;
    return cron_previous(cron, now_s + 1, out_s) && *out_s > since_s;
}

static void start_job(struct workloads *w, struct maker *m, int64_t minute_s)
{
    AUTO_BUF name = { 0 }, json = { 0 }, patch = { 0 };
    char when[TIME_TEXT_MAX];
    bool exists = false;
    time_format(minute_s * 1000000, when);
    buf_addf(&name, "%.*s-%lld", STR_ARG(m->maybe_object->meta.name), (long long)minute_s / 60);
    mould_fill(&m->mould, buf_str(&name), str_of(when), &json);
    if (!maker_create(w, m, WATCH_JOBS, buf_str(&json), &exists) && !exists)
        return;
    buf_addf(&patch, "{\"status\":{\"lastScheduleTime\":\"%s\"}}", when);
    maker_status(w, m, buf_str(&patch));
}

void cron_job_sync(struct workloads *w, struct maker *m)
{
    const struct cron_job *cj = cron_job_of(m->maybe_object);
    struct object_list made = { 0 };
    struct cron cron;
    int64_t minute_s, next_s;
    if (cron_parse(cj->spec.schedule, &cron, NULL) < 0)
        return; /* the store has checked it: a schedule with a time zone in it */
    made_list(w, m, WATCH_JOBS, &made);
    const struct job **jobs = arena_array(&w->scratch, const struct job *, made.count);
    for (size_t i = 0; i < made.count; i++)
        jobs[i] = job_of(made.items[i]);
    if (made.count)
        qsort(jobs, made.count, sizeof(const struct job *), job_order);
    size_t running = tidy(w, m, jobs, made.count);
    if (!cj->spec.suspend && minute_due(w, cj, &cron, &minute_s) &&
        !(running && cj->spec.concurrency == CONCURRENCY_FORBID)) {
        for (size_t i = 0; i < made.count && cj->spec.concurrency == CONCURRENCY_REPLACE; i++) {
            if (!job_is_finished(jobs[i]))
                maker_remove(w, m, &jobs[i]->object);
        }
        start_job(w, m, minute_s);
    }
    int64_t now_us = clock_wall_us(w->clock);
    if (!cj->spec.suspend && cron_next(&cron, now_us / 1000000, &next_s))
        maker_due(m, clock_mono_ns(w->clock) + (next_s * 1000000 - now_us) * 1000);
    object_list_done(&made);
}
