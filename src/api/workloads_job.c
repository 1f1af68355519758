/* The tables of Job and CronJob. Most of what people get wrong here is not in a table: a template
 * without a restartPolicy (the default, Always, is refused), indexed jobs without completions,
 * policies that need one another, and schedules. */
#include "api/workloads_inner.h"
#include "codec/cron.h"
#include "codec/duration.h"
#include "codec/regex.h"

#define INDEXED_MAX 100000          /* completions of an indexed job whose failures are counted */
#define CRON_JOB_NAME_LENGTH_MAX 52 /* its jobs get 11 characters more and must fit in a label */
#define LABEL_LENGTH_MAX 63

/* --- tables --- */

static const struct rule failure_action_rule = { ENUMS("FailJob", "FailIndex", "Ignore", "Count") };
static const struct rule exit_code_op_rule = { ENUMS("In", "NotIn") };
static const struct rule pattern_status_rule = { ENUMS("True", "False", "Unknown"),
                                                 .dflt = "\"True\"" };
static const struct rule failure_rules_rule = { .items_max = 20 };

static const struct field exit_codes_fields[] = {
    CHECKED(STR, "containerName"),
    CHECKED(ENUM, "operator", .flags = FIELD_REQUIRED, .rule = &exit_code_op_rule),
    FIELD_KNOWN("values", .flags = FIELD_REQUIRED),
};
static const struct schema exit_codes_schema =
    SCHEMA_CHECKED("PodFailurePolicyOnExitCodesRequirement", exit_codes_fields);

static const struct field pod_condition_fields[] = {
    CHECKED(STR, "type", .flags = FIELD_REQUIRED, .rule = &required_text_rule),
    CHECKED(ENUM, "status", .flags = FIELD_REQUIRED, .rule = &pattern_status_rule),
};
static const struct schema pod_condition_pattern_schema =
    SCHEMA_CHECKED("PodFailurePolicyOnPodConditionsPattern", pod_condition_fields);

static const struct field failure_rule_fields[] = {
    CHECKED(ENUM, "action", .flags = FIELD_REQUIRED, .rule = &failure_action_rule),
    CHECKED(OPTION, "onExitCodes", .sub = &exit_codes_schema),
    CHECKED(LIST, "onPodConditions", .sub = &pod_condition_pattern_schema),
};
static const struct schema failure_rule_schema =
    SCHEMA_CHECKED("PodFailurePolicyRule", failure_rule_fields);

static const struct field failure_policy_fields[] = {
    CHECKED(LIST, "rules", .flags = FIELD_REQUIRED, .sub = &failure_rule_schema,
            .rule = &failure_rules_rule),
};
static const struct schema failure_policy_schema =
    SCHEMA_CHECKED("PodFailurePolicy", failure_policy_fields);

static const struct rule success_rules_rule = { .items_min = 1, .items_max = 20 };
static const struct field success_rule_fields[] = {
    CHECKED(STR, "succeededIndexes"),
    CHECKED(INT, "succeededCount", .rule = &count_rule),
};
static const struct schema success_rule_schema =
    SCHEMA_CHECKED("SuccessPolicyRule", success_rule_fields);
static const struct field success_policy_fields[] = {
    CHECKED(LIST, "rules", .flags = FIELD_REQUIRED, .sub = &success_rule_schema,
            .rule = &success_rules_rule),
};
static const struct schema success_policy_schema =
    SCHEMA_CHECKED("SuccessPolicy", success_policy_fields);

/* The template of a job that has started is what its pods were made from; a suspended one may still
 * be steered elsewhere (Kueue and its like do so), which is left to the API server to judge. */
static bool job_template_kept(const json_val *self, const json_val *old)
{
    return json_bool(json_get(old, STR("suspend"))) || json_kept(self, old, "template");
}

static bool job_selector_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "selector");
}

static bool job_mode_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "completionMode") && json_kept(self, old, "podFailurePolicy") &&
           json_kept(self, old, "successPolicy") && json_kept(self, old, "backoffLimitPerIndex") &&
           json_kept(self, old, "managedBy");
}

/* An indexed job grows and shrinks by changing both to the same number. */
static bool job_completions_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "completions") ||
           (str_eqz(json_str(json_get(old, STR("completionMode"))), "Indexed") &&
            json_get(self, STR("completions")) &&
            json_equal(json_get(self, STR("completions")), json_get(self, STR("parallelism"))));
}

static const struct cel_rule job_cel[] = {
    { "self.selector == oldSelf.selector", "selector can not be changed", job_selector_kept },
    { "oldSelf.suspend || self.template == oldSelf.template",
      "template can not be changed unless the job is suspended", job_template_kept },
    { "self.completionMode == oldSelf.completionMode",
      "completionMode, podFailurePolicy, successPolicy, backoffLimitPerIndex and managedBy can not "
      "be changed",
      job_mode_kept },
    { "self.completions == oldSelf.completions",
      "completions can not be changed, except together with parallelism in an indexed job",
      job_completions_kept },
    { 0 },
};

static const struct rule completion_mode_rule = { ENUMS("NonIndexed", "Indexed"),
                                                  .dflt = "\"NonIndexed\"" };
static const struct rule replacement_rule = { ENUMS("TerminatingOrFailed", "Failed") };
static const struct rule seconds_rule = { .format = "int64", .min = { 0, true } };
static const struct rule suspend_rule = { .dflt = "false" };

#define T struct job_spec
static const struct field job_spec_fields[] = {
    FIELD(MAYBE_INT, parallelism, "parallelism", NULL, .rule = &count_rule),
    FIELD(MAYBE_INT, completions, "completions", NULL, .rule = &count_rule),
    FIELD(MAYBE_INT, active_deadline_s, "activeDeadlineSeconds", NULL, .rule = &seconds_rule),
    CHECKED(OPTION, "podFailurePolicy", .sub = &failure_policy_schema),
    CHECKED(OPTION, "successPolicy", .sub = &success_policy_schema),
    FIELD(MAYBE_INT, backoff_limit, "backoffLimit", NULL, .rule = &count_rule),
    FIELD(MAYBE_INT, backoff_limit_per_index, "backoffLimitPerIndex", NULL, .rule = &count_rule),
    FIELD(MAYBE_INT, max_failed_indexes, "maxFailedIndexes", NULL, .rule = &count_rule),
    FIELD(OPTION, maybe_selector, "selector", NULL, .flags = FIELD_SHARED,
          .sub = &label_selector_schema),
    FIELD(BOOL, manual_selector, "manualSelector", NULL),
    FIELD(OPTION, maybe_template, "template", NULL, .flags = FIELD_REQUIRED | FIELD_SHARED,
          .sub = &pod_template_schema),
    FIELD(MAYBE_INT, ttl_after_finished_s, "ttlSecondsAfterFinished", NULL, .rule = &count_rule),
    FIELD(ENUM, completion_mode, "completionMode", NULL, .rule = &completion_mode_rule),
    FIELD(BOOL, suspend, "suspend", NULL, .rule = &suspend_rule),
    CHECKED(ENUM, "podReplacementPolicy", .rule = &replacement_rule),
    CHECKED(STR, "managedBy"),
};
#undef T
static const struct schema job_spec_schema =
    SCHEMA("JobSpec", struct job_spec, job_spec_fields, .cel = job_cel);

#define T struct job_status
static const struct field job_status_fields[] = {
    FIELD(LIST, conditions, "conditions", NULL, .sub = &plain_condition_schema,
          .rule = &condition_list_rule),
    FIELD(TIME, start_us, "startTime", NULL),
    FIELD(TIME, completion_us, "completionTime", NULL),
    FIELD(INT, active, "active", NULL, .rule = &count_rule),
    FIELD(INT, succeeded, "succeeded", NULL, .rule = &count_rule),
    FIELD(INT, failed, "failed", NULL, .rule = &count_rule),
    FIELD(INT, terminating, "terminating", NULL, .rule = &count_rule),
    CHECKED(STR, "completedIndexes"),
    CHECKED(STR, "failedIndexes"),
    FIELD_KNOWN("uncountedTerminatedPods"),
    FIELD(INT, ready, "ready", NULL, .rule = &count_rule),
    FIELD(STR, succeeded_text, "succeededText", NULL, .flags = FIELD_DERIVED),
};
#undef T
static const struct schema job_status_schema =
    SCHEMA("JobStatus", struct job_status, job_status_fields);

#define T struct job
static const struct field job_fields[] = {
    OBJECT_FIELDS(struct job),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &job_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &job_status_schema),
};
#undef T
static const struct schema job_schema = SCHEMA("Job", struct job, job_fields);

#define T struct job_template
static const struct field job_template_fields[] = {
    FIELD(STRUCT, meta, "metadata", NULL, .sub = &meta_template_schema),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &job_spec_schema),
};
#undef T
static const struct schema job_template_schema =
    SCHEMA("JobTemplateSpec", struct job_template, job_template_fields);

static const char *schedule_problem(struct str text)
{
    struct cron cron;
    int64_t ns;

    if (str_starts(text, STR("TZ=")) || str_starts(text, STR("CRON_TZ=")))
        return "names a time zone, expected it in timeZone";
    if (str_starts(text, STR("@every ")))
        return duration_parse(str_sub(text, 7, text.len), &ns, NULL) == 0 && ns > 0
                   ? NULL
                   : "is not a schedule, expected a duration such as 1h30m after @every";
    return cron_parse(text, &cron, NULL) == 0
               ? NULL
               : "is not a schedule, expected \"minute hour day month weekday\" or @daily and such";
}

static const char *time_zone_problem(struct str zone)
{
    if (zone.len == 5 && strncasecmp(zone.p, "local", 5) == 0)
        return "means a different time on each machine, expected a name such as Europe/Madrid";
    if (zone.len == 0)
        return NULL; /* too short, and reported as that */
    return regex_match_static("^[A-Za-z_]+[-+0-9A-Za-z_]*(/[-+0-9A-Za-z_]+){0,2}$", zone)
               ? NULL
               : "is not the name of a time zone, expected one such as Europe/Madrid";
}

static const struct rule schedule_rule = { .check = schedule_problem };
/* Go has a pointer here: an empty name is not an absent one. */
static const struct rule time_zone_rule = { .len_min = 1, .check = time_zone_problem };
static const struct rule concurrency_rule = { ENUMS("Allow", "Forbid", "Replace"),
                                              .dflt = "\"Allow\"" };
static const struct rule success_history_rule = { .format = "int32",
                                                  .min = { 0, true },
                                                  .dflt = "3" };
static const struct rule failure_history_rule = { .format = "int32",
                                                  .min = { 0, true },
                                                  .dflt = "1" };

#define T struct cron_job_spec
static const struct field cron_job_spec_fields[] = {
    FIELD(STR, schedule, "schedule", NULL, .flags = FIELD_REQUIRED, .rule = &schedule_rule),
    FIELD(STR, time_zone, "timeZone", NULL, .rule = &time_zone_rule),
    FIELD(MAYBE_INT, starting_deadline_s, "startingDeadlineSeconds", NULL, .rule = &seconds_rule),
    FIELD(ENUM, concurrency, "concurrencyPolicy", NULL, .rule = &concurrency_rule),
    FIELD(BOOL, suspend, "suspend", NULL, .rule = &suspend_rule),
    FIELD(STRUCT, job_template, "jobTemplate", NULL, .flags = FIELD_REQUIRED,
          .sub = &job_template_schema),
    CHECKED(INT, "successfulJobsHistoryLimit", .rule = &success_history_rule),
    CHECKED(INT, "failedJobsHistoryLimit", .rule = &failure_history_rule),
};
#undef T
static const struct schema cron_job_spec_schema =
    SCHEMA("CronJobSpec", struct cron_job_spec, cron_job_spec_fields);

#define T struct cron_job_status
static const struct field cron_job_status_fields[] = {
    CHECKED(LIST, "active", .sub = &object_reference_schema),
    FIELD(TIME, last_schedule_us, "lastScheduleTime", NULL),
    FIELD(TIME, last_success_us, "lastSuccessfulTime", NULL),
};
#undef T
static const struct schema cron_job_status_schema =
    SCHEMA("CronJobStatus", struct cron_job_status, cron_job_status_fields);

#define T struct cron_job
static const struct field cron_job_fields[] = {
    OBJECT_FIELDS(struct cron_job),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &cron_job_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &cron_job_status_schema),
};
#undef T
static const struct schema cron_job_schema = SCHEMA("CronJob", struct cron_job, cron_job_fields);

/* --- what a table cannot say --- */

struct job_place { /* a job's spec, in a Job or in a CronJob's template */
    const struct job_spec *typed;
    const json_val *spec; /* the JSON it was decoded from */
    const struct path *path;
    struct report *report;
};

static void job_problem(const struct job_place *p, const char *name, const char *what)
{
    struct path here = { .up = p->path, .name = str_of(name) };
    const json_val *at = json_get(p->spec, str_of(name));

    report_add(p->report, PROBLEM_ERROR, &here, at ? at : p->spec, "%s", what);
}

static bool job_has(const struct job_place *p, const char *name)
{
    const json_val *v = json_get(p->spec, str_of(name));

    return v && !json_is_null(v);
}

static bool job_fails_indexes(const struct job_place *p)
{
    json_each_item(json_path(p->spec, "podFailurePolicy.rules"), rule) {
        if (str_eqz(json_str(json_get(rule, STR("action"))), "FailIndex"))
            return true;
    }
    return false;
}

static void check_indexed(const struct job_place *p)
{
    const struct job_spec *spec = p->typed;

    if (spec->completion_mode == COMPLETION_INDEXED) {
        if (!spec->completions.set)
            job_problem(p, "completions", "required with completionMode Indexed, missing");
        if (spec->parallelism.set && spec->parallelism.value > INDEXED_MAX)
            job_problem(p, "parallelism", "is more than 100000, the most of an indexed job");
        if (spec->backoff_limit_per_index.set && spec->completions.value > INDEXED_MAX)
            job_problem(p, "completions",
                        "is more than 100000, the most with backoffLimitPerIndex");
    } else {
        if (job_has(p, "successPolicy"))
            job_problem(p, "successPolicy", "needs completionMode Indexed");
        if (spec->backoff_limit_per_index.set)
            job_problem(p, "backoffLimitPerIndex", "needs completionMode Indexed");
    }
    if (!spec->backoff_limit_per_index.set) {
        if (spec->max_failed_indexes.set)
            job_problem(p, "maxFailedIndexes", "needs backoffLimitPerIndex");
        if (job_fails_indexes(p))
            job_problem(p, "podFailurePolicy",
                        "has action FailIndex, which needs backoffLimitPerIndex");
    } else if (spec->max_failed_indexes.set && spec->completions.set &&
               spec->max_failed_indexes.value > spec->completions.value) {
        job_problem(p, "maxFailedIndexes", "is more than completions");
    }
}

static void check_job(const struct job_place *p)
{
    const struct pod_template *template = p->typed->maybe_template;
    struct path at_template = { .up = p->path, .name = STR("template") };
    struct path at_spec = { .up = &at_template, .name = STR("spec") };
    struct path at_policy = { .up = &at_spec, .name = STR("restartPolicy") };
    const json_val *pod = json_path(p->spec, "template.spec");

    check_indexed(p);
    if (!template || !pod)
        return; /* reported as missing */
    uint8_t policy = template->spec.restart_policy;
    const json_val *written = json_get(pod, STR("restartPolicy"));
    if (json_is_null(written))
        written = NULL;
    if (policy == RESTART_ALWAYS || !written)
        report_add(p->report, PROBLEM_ERROR, &at_policy, written ? written : pod,
                   "is Always%s, expected Never or OnFailure for a job",
                   written ? "" : " if unset");
    else if (policy != RESTART_NEVER && job_has(p, "podFailurePolicy"))
        report_add(p->report, PROBLEM_ERROR, &at_policy, written,
                   "is OnFailure, expected Never together with podFailurePolicy");
    pod_spec_check(&template->spec, pod, NULL, &at_spec, p->report);
}

/* Pods of an indexed job have host names NAME-INDEX. */
static void check_indexed_name(const struct job *job, const json_val *root, struct report *report)
{
    int64_t completions = job->spec.completions.value;
    int64_t last = completions > 0 ? completions - 1 : 0;
    size_t digits = 1;

    if (job->spec.completion_mode != COMPLETION_INDEXED)
        return;
    for (int64_t n = last; n >= 10; n /= 10)
        digits++;
    if (job->object.meta.name.len + 1 + digits > LABEL_LENGTH_MAX)
        report_at(report, root, "metadata.name",
                  "is %zu characters long, expected at most %zu: pods are called NAME-%lld",
                  job->object.meta.name.len, LABEL_LENGTH_MAX - 1 - digits, (long long)last);
}

static void job_check(const struct object *object, const json_val *root, struct report *report)
{
    const struct job *job = job_of(object);
    struct path spec = { .name = STR("spec") };
    struct job_place place = { &job->spec, json_get(root, STR("spec")), &spec, report };
    struct workload w;

    check_job(&place);
    check_indexed_name(job, root, report);
    if (job->spec.manual_selector) {
        workload_of(object, &w);
        if (!w.maybe_selector)
            report_at(report, root, "spec.selector", "required with manualSelector, missing");
        check_selector(&w, root, report);
    } else if (job->spec.maybe_selector && object->meta.uid.len == 0) {
        report_at(report, root, "spec.selector",
                  "is made by the API server, expected none unless manualSelector is true");
    }
}

static void cron_job_check(const struct object *object, const json_val *root, struct report *report)
{
    const struct cron_job *cron = cron_job_of(object);
    struct path spec = { .name = STR("spec") };
    struct path template = { .up = &spec, .name = STR("jobTemplate") };
    struct path job_spec = { .up = &template, .name = STR("spec") };
    struct job_place place = { &cron->spec.job_template.spec,
                               json_path(root, "spec.jobTemplate.spec"), &job_spec, report };

    check_job(&place);
    if (place.typed->maybe_selector)
        job_problem(&place, "selector", "is made by the API server, expected none");
    if (place.typed->manual_selector)
        job_problem(&place, "manualSelector", "may not be set in a CronJob");
    if (object->meta.name.len > CRON_JOB_NAME_LENGTH_MAX)
        report_at(report, root, "metadata.name",
                  "is %zu characters long, expected at most %d: its jobs get longer names",
                  object->meta.name.len, CRON_JOB_NAME_LENGTH_MAX);
}

/* --- defaults --- */

static void complete_job_spec(struct json_build *b, json_mut *spec)
{
    if (!spec)
        return;
    bool per_index = json_mut_get(spec, STR("backoffLimitPerIndex")) != NULL;

    if (!json_mut_get(spec, STR("parallelism"))) {
        json_set_i64(b, spec, "parallelism", 1);
        json_default(b, spec, "completions", json_new_i64(b, 1));
    }
    json_default(b, spec, "backoffLimit", json_new_i64(b, per_index ? INT32_MAX : 6));
}

static void job_complete(struct json_build *b, json_mut *root)
{
    complete_job_spec(b, json_mut_get(root, STR("spec")));
}

static void cron_job_complete(struct json_build *b, json_mut *root)
{
    json_mut *spec = json_mut_get(root, STR("spec"));
    json_mut *template = spec ? json_mut_get(spec, STR("jobTemplate")) : NULL;

    complete_job_spec(b, template ? json_mut_get(template, STR("spec")) : NULL);
}

/* --- the kinds --- */

static void job_settle(struct object *view, struct arena *arena)
{
    struct job_status *status = &((struct job *)view)->status;

    status->succeeded_text = arena_strf(arena, "%lld", (long long)status->succeeded);
}

static struct str job_field(const struct object *object, struct str path)
{
    return str_eqz(path, "status.successful") ? job_of(object)->status.succeeded_text : STR_NONE;
}

const struct kind job_kind = {
    .group = "batch",
    .version = "v1",
    .name = "Job",
    .plural = "jobs",
    .singular = "job",
    .namespaced = true,
    .has_status = true,
    .schema = &job_schema,
    .doc = "Pods that run until enough of them have succeeded.",
    .settle = job_settle,
    .complete = job_complete,
    .check = job_check,
    .field = job_field,
};

const struct kind cron_job_kind = {
    .group = "batch",
    .version = "v1",
    .name = "CronJob",
    .plural = "cronjobs",
    .singular = "cronjob",
    .namespaced = true,
    .has_status = true,
    .schema = &cron_job_schema,
    .doc = "Jobs that start at given times.",
    .complete = cron_job_complete,
    .check = cron_job_check,
};

static bool job_condition_holds(const struct job *job, struct str type)
{
    const struct condition *found =
        condition_find(job->status.conditions.items, job->status.conditions.count, type);

    return found && found->status == CONDITION_TRUE;
}

bool job_is_finished(const struct job *job)
{
    return job_condition_holds(job, STR("Complete")) || job_condition_holds(job, STR("Failed"));
}

/* As many as run at once, and no more than are still missing. */
static int64_t job_wants(const struct job *job)
{
    int64_t wanted = job->spec.parallelism.set ? job->spec.parallelism.value : 1;
    int64_t succeeded = job->status.succeeded > 0 ? job->status.succeeded : 0;
    struct maybe_int total = job->spec.completions;

    if (job->spec.suspend || job_is_finished(job))
        return 0;
    if (!total.set && !job->spec.parallelism.set)
        total = (struct maybe_int){ 1, true };
    if (total.set && total.value <= succeeded)
        return 0;
    if (total.set && total.value - succeeded < wanted)
        wanted = total.value - succeeded;
    return wanted > 0 ? wanted : 0;
}

bool job_workload(const struct object *object, struct workload *out)
{
    if (object->kind == &job_kind) {
        const struct job *job = job_of(object);

        out->maybe_template = job->spec.maybe_template;
        out->maybe_selector = job->spec.maybe_selector;
        out->replicas = job_wants(job);
        return true;
    }
    if (object->kind == &cron_job_kind) {
        out->maybe_template = cron_job_of(object)->spec.job_template.spec.maybe_template;
        return true;
    }
    return false;
}
