/* The tables of Deployment, ReplicaSet, StatefulSet and DaemonSet; Job and CronJob are in
 * workloads_job.c. Beyond the tables: a selector must find the pods of its own template and never
 * changes, templates of long-running kinds always restart their containers, and a rolling update
 * must be able to take a step. */
#include "api/workloads_inner.h"

static const struct rule replicas_rule = { .format = "int32", .min = { 0, true }, .dflt = "1" };
static const struct rule history_rule = { .format = "int32", .min = { 0, true }, .dflt = "10" };

static bool selector_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "selector");
}

static const struct cel_rule selector_cel[] = {
    { "self.selector == oldSelf.selector", "selector can not be changed", selector_kept },
    { 0 },
};

/* --- what the kinds have in common --- */

void check_selector(const struct workload *w, const json_val *root, struct report *report)
{
    const struct label_selector *selector = w->maybe_selector;

    if (!selector || !w->maybe_template)
        return; /* reported as missing */
    if (selector->match_labels.count == 0 && selector->expressions.count == 0)
        report_at(report, root, "spec.selector",
                  "is empty, expected labels: it would select every pod of the namespace");
    else if (!label_selector_matches(selector, &w->maybe_template->meta.labels))
        report_at(report, root, "spec.template.metadata.labels",
                  "do not match spec.selector, expected labels that it selects");
}

/* Of kinds whose pods run until they are removed. */
static void check_template(const struct object *object, const json_val *root, struct report *report)
{
    struct path spec = { .name = STR("spec") };
    struct path template = { .up = &spec, .name = STR("template") };
    struct path pod = { .up = &template, .name = STR("spec") };
    const json_val *written = json_path(root, "spec.template.spec");
    struct workload w;

    workload_of(object, &w);
    check_selector(&w, root, report);
    if (!w.maybe_template || !written)
        return;
    const struct pod_spec *typed = &w.maybe_template->spec;
    if (typed->restart_policy == RESTART_NEVER || typed->restart_policy == RESTART_ON_FAILURE)
        report_at(report, root, "spec.template.spec.restartPolicy",
                  "expected Always for this kind");
    if (typed->active_deadline_s.set)
        report_at(report, root, "spec.template.spec.activeDeadlineSeconds",
                  "may not be set for this kind: its pods run until they are removed");
    pod_spec_check(typed, written, json_path(root, "spec.volumeClaimTemplates"), &pod, report);
}

/* A percentage of a hundred pods tells whether it is zero and whether it is more than all. */
static int64_t share_of(const struct int_or_str *share, int64_t unset)
{
    return share->set ? int_or_percent_of(share, 100, true) : unset;
}

static void check_shares(const struct rolling_update *rolling, const char *unavailable_path,
                         const json_val *root, struct report *report)
{
    if (rolling->max_unavailable.str.p && share_of(&rolling->max_unavailable, 0) > 100)
        report_at(report, root, unavailable_path, "is more than all, expected at most \"100%%\"");
}

#define T struct rolling_update
static const struct field rolling_fields[] = {
    FIELD(INT_OR_STR, max_unavailable, "maxUnavailable", NULL, .rule = &percent_rule),
    FIELD(INT_OR_STR, max_surge, "maxSurge", NULL, .rule = &percent_rule),
};
#undef T
static const struct schema rolling_schema =
    SCHEMA("RollingUpdate", struct rolling_update, rolling_fields);

/* --- Deployment --- */

static const struct rule deployment_strategy_rule = { ENUMS("Recreate", "RollingUpdate"),
                                                      .dflt = "\"RollingUpdate\"" };

#define T struct deployment_strategy
static const struct field deployment_strategy_fields[] = {
    FIELD(ENUM, type, "type", NULL, .rule = &deployment_strategy_rule),
    FIELD(OPTION, maybe_rolling, "rollingUpdate", NULL, .sub = &rolling_schema),
};
#undef T
static const struct schema deployment_strategy_schema =
    SCHEMA("DeploymentStrategy", struct deployment_strategy, deployment_strategy_fields);

static const struct rule strategy_default_rule = { .dflt = "{}" };
static const struct rule progress_rule = { .format = "int32", .min = { 0, true }, .dflt = "600" };

#define T struct deployment_spec
static const struct field deployment_spec_fields[] = {
    FIELD(MAYBE_INT, replicas, "replicas", NULL, .rule = &replicas_rule),
    FIELD(OPTION, maybe_selector, "selector", NULL, .flags = FIELD_REQUIRED | FIELD_SHARED,
          .sub = &label_selector_schema),
    FIELD(OPTION, maybe_template, "template", NULL, .flags = FIELD_REQUIRED | FIELD_SHARED,
          .sub = &pod_template_schema),
    FIELD(STRUCT, strategy, "strategy", NULL, .sub = &deployment_strategy_schema,
          .rule = &strategy_default_rule),
    FIELD(INT, min_ready_s, "minReadySeconds", NULL, .rule = &count_rule),
    CHECKED(INT, "revisionHistoryLimit", .rule = &history_rule),
    FIELD(BOOL, paused, "paused", NULL),
    CHECKED(INT, "progressDeadlineSeconds", .rule = &progress_rule),
};
#undef T
static const struct schema deployment_spec_schema =
    SCHEMA("DeploymentSpec", struct deployment_spec, deployment_spec_fields, .cel = selector_cel);

#define T struct deployment_status
static const struct field deployment_status_fields[] = {
    FIELD(INT, observed_generation, "observedGeneration", NULL),
    FIELD(INT, replicas, "replicas", NULL, .rule = &count_rule),
    FIELD(INT, updated_replicas, "updatedReplicas", NULL, .rule = &count_rule),
    FIELD(INT, ready_replicas, "readyReplicas", NULL, .rule = &count_rule),
    FIELD(INT, available_replicas, "availableReplicas", NULL, .rule = &count_rule),
    FIELD(INT, unavailable_replicas, "unavailableReplicas", NULL, .rule = &count_rule),
    CHECKED(INT, "terminatingReplicas", .rule = &count_rule),
    FIELD(LIST, conditions, "conditions", NULL, .sub = &plain_condition_schema,
          .rule = &condition_list_rule),
    CHECKED(INT, "collisionCount"),
};
#undef T
static const struct schema deployment_status_schema =
    SCHEMA("DeploymentStatus", struct deployment_status, deployment_status_fields);

#define T struct deployment
static const struct field deployment_fields[] = {
    OBJECT_FIELDS(struct deployment),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &deployment_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &deployment_status_schema),
};
#undef T
static const struct schema deployment_schema =
    SCHEMA("Deployment", struct deployment, deployment_fields);

static void deployment_complete(struct json_build *b, json_mut *root)
{
    json_mut *spec = json_mut_get(root, STR("spec"));
    json_mut *strategy = spec ? json_mut_get(spec, STR("strategy")) : NULL;

    if (!strategy || !json_mut_is(json_mut_get(strategy, STR("type")), "RollingUpdate"))
        return;
    json_mut *rolling = json_mut_object(b, strategy, STR("rollingUpdate"));
    json_default(b, rolling, "maxUnavailable", json_new_str(b, STR("25%")));
    json_default(b, rolling, "maxSurge", json_new_str(b, STR("25%")));
}

static void deployment_check(const struct object *object, const json_val *root,
                             struct report *report)
{
    const struct deployment_spec *spec = &deployment_of(object)->spec;
    const struct rolling_update *rolling = spec->strategy.maybe_rolling;
    int64_t deadline = 600;

    check_template(object, root, report);
    json_i64(json_path(root, "spec.progressDeadlineSeconds"), &deadline);
    if (deadline <= spec->min_ready_s)
        report_at(report, root, "spec.progressDeadlineSeconds",
                  "is %lld, expected more than minReadySeconds (%lld)", (long long)deadline,
                  (long long)spec->min_ready_s);
    if (!rolling)
        return;
    if (spec->strategy.type == STRATEGY_RECREATE)
        report_at(report, root, "spec.strategy.rollingUpdate",
                  "may not be set when the type is Recreate");
    if (share_of(&rolling->max_unavailable, 25) == 0 && share_of(&rolling->max_surge, 25) == 0)
        report_at(report, root, "spec.strategy.rollingUpdate",
                  "maxUnavailable and maxSurge are both 0, expected one of them to be more");
    check_shares(rolling, "spec.strategy.rollingUpdate.maxUnavailable", root, report);
}

const struct kind deployment_kind = {
    .group = "apps",
    .version = "v1",
    .name = "Deployment",
    .plural = "deployments",
    .singular = "deployment",
    .namespaced = true,
    .has_status = true,
    .schema = &deployment_schema,
    .doc = "A number of equal pods, replaced step by step when their template changes.",
    .complete = deployment_complete,
    .check = deployment_check,
};

/* --- ReplicaSet --- */

#define T struct replica_set_spec
static const struct field replica_set_spec_fields[] = {
    FIELD(MAYBE_INT, replicas, "replicas", NULL, .rule = &replicas_rule),
    FIELD(INT, min_ready_s, "minReadySeconds", NULL, .rule = &count_rule),
    FIELD(OPTION, maybe_selector, "selector", NULL, .flags = FIELD_REQUIRED | FIELD_SHARED,
          .sub = &label_selector_schema),
    FIELD(OPTION, maybe_template, "template", NULL, .flags = FIELD_REQUIRED | FIELD_SHARED,
          .sub = &pod_template_schema),
};
#undef T
static const struct schema replica_set_spec_schema =
    SCHEMA("ReplicaSetSpec", struct replica_set_spec, replica_set_spec_fields, .cel = selector_cel);

#define T struct replica_set_status
static const struct field replica_set_status_fields[] = {
    FIELD(INT, replicas, "replicas", NULL, .rule = &count_rule),
    CHECKED(INT, "fullyLabeledReplicas", .rule = &count_rule),
    FIELD(INT, ready_replicas, "readyReplicas", NULL, .rule = &count_rule),
    FIELD(INT, available_replicas, "availableReplicas", NULL, .rule = &count_rule),
    CHECKED(INT, "terminatingReplicas", .rule = &count_rule),
    FIELD(INT, observed_generation, "observedGeneration", NULL),
    CHECKED(LIST, "conditions", .sub = &plain_condition_schema, .rule = &condition_list_rule),
    FIELD(STR, replicas_text, "replicasText", NULL, .flags = FIELD_DERIVED),
};
#undef T
static const struct schema replica_set_status_schema =
    SCHEMA("ReplicaSetStatus", struct replica_set_status, replica_set_status_fields);

#define T struct replica_set
static const struct field replica_set_fields[] = {
    OBJECT_FIELDS(struct replica_set),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &replica_set_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &replica_set_status_schema),
};
#undef T
static const struct schema replica_set_schema =
    SCHEMA("ReplicaSet", struct replica_set, replica_set_fields);

static void replica_set_settle(struct object *view, struct arena *arena)
{
    struct replica_set_status *status = &((struct replica_set *)view)->status;

    status->replicas_text = arena_strf(arena, "%lld", (long long)status->replicas);
}

static void replica_set_check(const struct object *object, const json_val *root,
                              struct report *report)
{
    check_template(object, root, report);
}

static struct str replica_set_field(const struct object *object, struct str path)
{
    return str_eqz(path, "status.replicas") ? replica_set_of(object)->status.replicas_text
                                            : STR_NONE;
}

const struct kind replica_set_kind = {
    .group = "apps",
    .version = "v1",
    .name = "ReplicaSet",
    .plural = "replicasets",
    .singular = "replicaset",
    .namespaced = true,
    .has_status = true,
    .schema = &replica_set_schema,
    .doc = "A number of equal pods.",
    .settle = replica_set_settle,
    .check = replica_set_check,
    .field = replica_set_field,
};

/* --- StatefulSet --- */

static const struct rule update_type_rule = { ENUMS("RollingUpdate", "OnDelete"),
                                              .dflt = "\"RollingUpdate\"" };
static const struct rule partition_rule = { .format = "int32", .min = { 0, true }, .dflt = "0" };

static const struct field stateful_rolling_fields[] = {
    CHECKED(INT, "partition", .rule = &partition_rule),
    CHECKED(INT_OR_STR, "maxUnavailable", .rule = &percent_rule),
};
static const struct schema stateful_rolling_schema =
    SCHEMA_CHECKED("RollingUpdateStatefulSetStrategy", stateful_rolling_fields);

static const struct field stateful_strategy_fields[] = {
    CHECKED(ENUM, "type", .rule = &update_type_rule),
    CHECKED(OPTION, "rollingUpdate", .sub = &stateful_rolling_schema),
};
static const struct schema stateful_strategy_schema =
    SCHEMA_CHECKED("StatefulSetUpdateStrategy", stateful_strategy_fields);

static const struct rule retention_rule = { ENUMS("Retain", "Delete"), .dflt = "\"Retain\"" };

static const struct field retention_fields[] = {
    CHECKED(ENUM, "whenDeleted", .rule = &retention_rule),
    CHECKED(ENUM, "whenScaled", .rule = &retention_rule),
};
static const struct schema retention_schema =
    SCHEMA_CHECKED("StatefulSetPersistentVolumeClaimRetentionPolicy", retention_fields);

#define T struct stateful_set_ordinals
static const struct field ordinals_fields[] = {
    FIELD(INT, start, "start", NULL, .rule = &count_rule),
};
#undef T
static const struct schema ordinals_schema =
    SCHEMA("StatefulSetOrdinals", struct stateful_set_ordinals, ordinals_fields);

static bool stateful_set_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "selector") && json_kept(self, old, "serviceName") &&
           json_kept(self, old, "volumeClaimTemplates") &&
           json_kept(self, old, "podManagementPolicy");
}

static const struct cel_rule stateful_set_cel[] = {
    { "self.selector == oldSelf.selector && self.serviceName == oldSelf.serviceName && "
      "self.volumeClaimTemplates == oldSelf.volumeClaimTemplates && "
      "self.podManagementPolicy == oldSelf.podManagementPolicy",
      "selector, serviceName, volumeClaimTemplates and podManagementPolicy can not be changed",
      stateful_set_kept },
    { 0 },
};

static const struct rule pod_management_rule = { ENUMS("OrderedReady", "Parallel"),
                                                 .dflt = "\"OrderedReady\"" };

#define T struct stateful_set_spec
static const struct field stateful_set_spec_fields[] = {
    FIELD(MAYBE_INT, replicas, "replicas", NULL, .rule = &replicas_rule),
    FIELD(OPTION, maybe_selector, "selector", NULL, .flags = FIELD_REQUIRED | FIELD_SHARED,
          .sub = &label_selector_schema),
    FIELD(OPTION, maybe_template, "template", NULL, .flags = FIELD_REQUIRED | FIELD_SHARED,
          .sub = &pod_template_schema),
    FIELD(LIST, claim_templates, "volumeClaimTemplates", NULL, .sub = &pvc_template_schema),
    FIELD(STR, service_name, "serviceName", NULL),
    FIELD(ENUM, pod_management, "podManagementPolicy", NULL, .rule = &pod_management_rule),
    CHECKED(STRUCT, "updateStrategy", .sub = &stateful_strategy_schema,
            .rule = &strategy_default_rule),
    CHECKED(INT, "revisionHistoryLimit", .rule = &history_rule),
    FIELD(INT, min_ready_s, "minReadySeconds", NULL, .rule = &count_rule),
    CHECKED(STRUCT, "persistentVolumeClaimRetentionPolicy", .sub = &retention_schema,
            .rule = &strategy_default_rule),
    FIELD(STRUCT, ordinals, "ordinals", NULL, .sub = &ordinals_schema),
};
#undef T
static const struct schema stateful_set_spec_schema = SCHEMA(
    "StatefulSetSpec", struct stateful_set_spec, stateful_set_spec_fields, .cel = stateful_set_cel);

#define T struct stateful_set_status
static const struct field stateful_set_status_fields[] = {
    FIELD(INT, observed_generation, "observedGeneration", NULL),
    FIELD(INT, replicas, "replicas", NULL, .rule = &count_rule),
    FIELD(INT, ready_replicas, "readyReplicas", NULL, .rule = &count_rule),
    FIELD(INT, current_replicas, "currentReplicas", NULL, .rule = &count_rule),
    FIELD(INT, updated_replicas, "updatedReplicas", NULL, .rule = &count_rule),
    CHECKED(STR, "currentRevision"),
    CHECKED(STR, "updateRevision"),
    CHECKED(INT, "collisionCount"),
    CHECKED(LIST, "conditions", .sub = &plain_condition_schema, .rule = &condition_list_rule),
    FIELD(INT, available_replicas, "availableReplicas", NULL, .rule = &count_rule),
};
#undef T
static const struct schema stateful_set_status_schema =
    SCHEMA("StatefulSetStatus", struct stateful_set_status, stateful_set_status_fields);

#define T struct stateful_set
static const struct field stateful_set_fields[] = {
    OBJECT_FIELDS(struct stateful_set),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &stateful_set_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &stateful_set_status_schema),
};
#undef T
static const struct schema stateful_set_schema =
    SCHEMA("StatefulSet", struct stateful_set, stateful_set_fields);

static void stateful_set_check(const struct object *object, const json_val *root,
                               struct report *report)
{
    check_name_is_label(object, root, report);
    check_template(object, root, report);
}

const struct kind stateful_set_kind = {
    .group = "apps",
    .version = "v1",
    .name = "StatefulSet",
    .plural = "statefulsets",
    .singular = "statefulset",
    .namespaced = true,
    .has_status = true,
    .schema = &stateful_set_schema,
    .doc = "Numbered pods, each with its own name and volumes.",
    .check = stateful_set_check,
};

/* --- DaemonSet --- */

#define T struct daemon_set_strategy
static const struct field daemon_set_strategy_fields[] = {
    FIELD(ENUM, type, "type", NULL, .rule = &update_type_rule),
    FIELD(OPTION, maybe_rolling, "rollingUpdate", NULL, .sub = &rolling_schema),
};
#undef T
static const struct schema daemon_set_strategy_schema =
    SCHEMA("DaemonSetUpdateStrategy", struct daemon_set_strategy, daemon_set_strategy_fields);

#define T struct daemon_set_spec
static const struct field daemon_set_spec_fields[] = {
    FIELD(OPTION, maybe_selector, "selector", NULL, .flags = FIELD_REQUIRED | FIELD_SHARED,
          .sub = &label_selector_schema),
    FIELD(OPTION, maybe_template, "template", NULL, .flags = FIELD_REQUIRED | FIELD_SHARED,
          .sub = &pod_template_schema),
    FIELD(STRUCT, strategy, "updateStrategy", NULL, .sub = &daemon_set_strategy_schema,
          .rule = &strategy_default_rule),
    FIELD(INT, min_ready_s, "minReadySeconds", NULL, .rule = &count_rule),
    CHECKED(INT, "revisionHistoryLimit", .rule = &history_rule),
};
#undef T
static const struct schema daemon_set_spec_schema =
    SCHEMA("DaemonSetSpec", struct daemon_set_spec, daemon_set_spec_fields, .cel = selector_cel);

#define T struct daemon_set_status
static const struct field daemon_set_status_fields[] = {
    FIELD(INT, scheduled, "currentNumberScheduled", NULL, .rule = &count_rule),
    FIELD(INT, misscheduled, "numberMisscheduled", NULL, .rule = &count_rule),
    FIELD(INT, desired, "desiredNumberScheduled", NULL, .rule = &count_rule),
    FIELD(INT, ready, "numberReady", NULL, .rule = &count_rule),
    FIELD(INT, observed_generation, "observedGeneration", NULL),
    FIELD(INT, updated, "updatedNumberScheduled", NULL, .rule = &count_rule),
    FIELD(INT, available, "numberAvailable", NULL, .rule = &count_rule),
    FIELD(INT, unavailable, "numberUnavailable", NULL, .rule = &count_rule),
    CHECKED(INT, "collisionCount"),
    CHECKED(LIST, "conditions", .sub = &plain_condition_schema, .rule = &condition_list_rule),
};
#undef T
static const struct schema daemon_set_status_schema =
    SCHEMA("DaemonSetStatus", struct daemon_set_status, daemon_set_status_fields);

#define T struct daemon_set
static const struct field daemon_set_fields[] = {
    OBJECT_FIELDS(struct daemon_set),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &daemon_set_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &daemon_set_status_schema),
};
#undef T
static const struct schema daemon_set_schema =
    SCHEMA("DaemonSet", struct daemon_set, daemon_set_fields);

static void daemon_set_complete(struct json_build *b, json_mut *root)
{
    json_mut *spec = json_mut_get(root, STR("spec"));
    json_mut *strategy = spec ? json_mut_get(spec, STR("updateStrategy")) : NULL;

    if (!strategy || !json_mut_is(json_mut_get(strategy, STR("type")), "RollingUpdate"))
        return;
    json_mut *rolling = json_mut_object(b, strategy, STR("rollingUpdate"));
    json_default(b, rolling, "maxUnavailable", json_new_i64(b, 1));
    json_default(b, rolling, "maxSurge", json_new_i64(b, 0));
}

static void daemon_set_check(const struct object *object, const json_val *root,
                             struct report *report)
{
    const struct daemon_set_strategy *strategy = &daemon_set_of(object)->spec.strategy;
    const struct rolling_update *rolling = strategy->maybe_rolling;

    check_template(object, root, report);
    if (!rolling || strategy->type == UPDATE_ON_DELETE)
        return;
    bool down = share_of(&rolling->max_unavailable, 1) > 0;
    bool surge = share_of(&rolling->max_surge, 0) > 0;
    if (down == surge)
        report_at(report, root, "spec.updateStrategy.rollingUpdate",
                  "maxUnavailable (1 if unset) and maxSurge are both %s, expected exactly one",
                  down ? "more than 0" : "0");
    check_shares(rolling, "spec.updateStrategy.rollingUpdate.maxUnavailable", root, report);
}

const struct kind daemon_set_kind = {
    .group = "apps",
    .version = "v1",
    .name = "DaemonSet",
    .plural = "daemonsets",
    .singular = "daemonset",
    .namespaced = true,
    .has_status = true,
    .schema = &daemon_set_schema,
    .doc = "One pod on every node that fits.",
    .complete = daemon_set_complete,
    .check = daemon_set_check,
};

/* --- all of them --- */

static int64_t replicas_or_one(struct maybe_int replicas)
{
    return replicas.set ? replicas.value : 1;
}

bool workload_of(const struct object *object, struct workload *out)
{
    *out = (struct workload){ 0 };
    if (object->kind == &deployment_kind) {
        const struct deployment_spec *spec = &deployment_of(object)->spec;

        out->maybe_template = spec->maybe_template;
        out->maybe_selector = spec->maybe_selector;
        out->replicas = replicas_or_one(spec->replicas);
    } else if (object->kind == &replica_set_kind) {
        const struct replica_set_spec *spec = &replica_set_of(object)->spec;

        out->maybe_template = spec->maybe_template;
        out->maybe_selector = spec->maybe_selector;
        out->replicas = replicas_or_one(spec->replicas);
    } else if (object->kind == &stateful_set_kind) {
        const struct stateful_set_spec *spec = &stateful_set_of(object)->spec;

        out->maybe_template = spec->maybe_template;
        out->maybe_selector = spec->maybe_selector;
        out->replicas = replicas_or_one(spec->replicas);
        out->first = spec->ordinals.start;
    } else if (object->kind == &daemon_set_kind) {
        const struct daemon_set_spec *spec = &daemon_set_of(object)->spec;

        out->maybe_template = spec->maybe_template;
        out->maybe_selector = spec->maybe_selector;
        out->per_node = true;
    } else {
        return job_workload(object, out);
    }
    return true;
}
