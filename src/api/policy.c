/* The tables of PodDisruptionBudget, PriorityClass, Namespace and Lease. Event and Service are in
 * policy_event.c. */
#include "api/policy.h"

/* --- PodDisruptionBudget --- */

static const struct rule unhealthy_rule = { ENUMS("IfHealthyBudget", "AlwaysAllow") };

#define T struct pdb_spec
static const struct field pdb_spec_fields[] = {
    FIELD(INT_OR_STR, min_available, "minAvailable", NULL, .rule = &percent_rule),
    FIELD(OPTION, maybe_selector, "selector", NULL, .sub = &label_selector_schema),
    FIELD(INT_OR_STR, max_unavailable, "maxUnavailable", NULL, .rule = &percent_rule),
    FIELD(ENUM, unhealthy_policy, "unhealthyPodEvictionPolicy", NULL, .rule = &unhealthy_rule),
};
#undef T
static const struct schema pdb_spec_schema =
    SCHEMA("PodDisruptionBudgetSpec", struct pdb_spec, pdb_spec_fields);

#define T struct pdb_status
static const struct field pdb_status_fields[] = {
    FIELD(INT, observed_generation, "observedGeneration", NULL),
    FIELD(STR_MAP, disrupted_pods, "disruptedPods", NULL),
    FIELD(INT, disruptions_allowed, "disruptionsAllowed", NULL, .rule = &count_rule),
    FIELD(INT, current_healthy, "currentHealthy", NULL, .rule = &count_rule),
    FIELD(INT, desired_healthy, "desiredHealthy", NULL, .rule = &count_rule),
    FIELD(INT, expected_pods, "expectedPods", NULL, .rule = &count_rule),
    FIELD(LIST, conditions, "conditions", NULL, .sub = &condition_schema,
          .rule = &condition_list_rule),
};
#undef T
static const struct schema pdb_status_schema =
    SCHEMA("PodDisruptionBudgetStatus", struct pdb_status, pdb_status_fields);

#define T struct pdb
static const struct field pdb_fields[] = {
    OBJECT_FIELDS(struct pdb),
    FIELD(STRUCT, spec, "spec", NULL, .sub = &pdb_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &pdb_status_schema),
};
#undef T
static const struct schema pdb_schema = SCHEMA("PodDisruptionBudget", struct pdb, pdb_fields);

/* More than all of the pods is a slip that the API server refuses for percentages only. */
static void check_share(const struct int_or_str *share, const json_val *root, const char *path,
                        struct report *report)
{
    if (share->set && share->str.p && int_or_percent_of(share, 100, true) > 100)
        report_at(report, root, path, "is more than all, expected at most \"100%%\"");
}

static void pdb_check(const struct object *object, const json_val *root, struct report *report)
{
    const struct pdb_spec *spec = &pdb_of(object)->spec;

    if (spec->min_available.set && spec->max_unavailable.set)
        report_at(report, root, "spec",
                  "minAvailable and maxUnavailable are both set, expected exactly one of them");
    if (!spec->min_available.set && !spec->max_unavailable.set)
        warn_at(report, root, "spec",
                "neither minAvailable nor maxUnavailable is set: every eviction will be refused");
    if (!spec->maybe_selector)
        warn_at(report, root, "spec.selector", "is missing: the budget covers no pods");
    check_share(&spec->min_available, root, "spec.minAvailable", report);
    check_share(&spec->max_unavailable, root, "spec.maxUnavailable", report);
}

/* As the disruption controller does it: both percentages are rounded up. */
bool pdb_desired_healthy(const struct pdb_spec *spec, int64_t expected_pods, int64_t *out)
{
    if (spec->max_unavailable.set) {
        int64_t want =
            expected_pods - int_or_percent_of(&spec->max_unavailable, expected_pods, true);

        *out = want < 0 ? 0 : want;
        return true;
    }
    if (spec->min_available.set) {
        *out = int_or_percent_of(&spec->min_available, expected_pods, true);
        return true;
    }
    return false;
}

const struct kind pdb_kind = {
    .group = "policy",
    .version = "v1",
    .name = "PodDisruptionBudget",
    .plural = "poddisruptionbudgets",
    .singular = "poddisruptionbudget",
    .namespaced = true,
    .has_status = true,
    .schema = &pdb_schema,
    .doc = "How many pods of an application may be down at once by choice.",
    .check = pdb_check,
};

/* --- PriorityClass --- */

static const struct rule priority_rule = { .format = "int32",
                                           .min = { INT32_MIN, true },
                                           .max = { INT32_MAX, true } };
static const struct rule preemption_rule = { ENUMS("PreemptLowerPriority", "Never"),
                                             .dflt = "\"PreemptLowerPriority\"" };

static bool priority_value_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "value");
}

static bool preemption_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "preemptionPolicy");
}

static const struct cel_rule priority_class_cel[] = {
    { "self.value == oldSelf.value", "value can not be changed", priority_value_kept },
    { "self.preemptionPolicy == oldSelf.preemptionPolicy", "preemptionPolicy can not be changed",
      preemption_kept },
    { 0 },
};

#define T struct priority_class
static const struct field priority_class_fields[] = {
    OBJECT_FIELDS(struct priority_class),
    FIELD(INT, value, "value", NULL, .rule = &priority_rule), /* absent is 0 */
    FIELD(BOOL, global_default, "globalDefault", NULL),
    CHECKED(STR, "description"),
    FIELD(ENUM, preemption, "preemptionPolicy", NULL, .rule = &preemption_rule),
};
#undef T
static const struct schema priority_class_schema = SCHEMA(
    "PriorityClass", struct priority_class, priority_class_fields, .cel = priority_class_cel);

static void priority_class_check(const struct object *object, const json_val *root,
                                 struct report *report)
{
    const struct priority_class *pc = priority_class_of(object);
    struct str name = object->meta.name;

    if (str_starts(name, STR("system-"))) {
        bool cluster = str_eqz(name, "system-cluster-critical") && pc->value == 2000000000;
        bool node = str_eqz(name, "system-node-critical") && pc->value == 2000001000;

        if (!cluster && !node)
            report_at(report, root, "metadata.name",
                      "starts with \"system-\", which is kept for the system's own classes");
    } else if (pc->value > PRIORITY_USER_MAX) {
        report_at(report, root, "value",
                  "is %lld, expected at most %d: higher ones are the system's",
                  (long long)pc->value, PRIORITY_USER_MAX);
    }
}

const struct kind priority_class_kind = {
    .group = "scheduling.k8s.io",
    .version = "v1",
    .name = "PriorityClass",
    .plural = "priorityclasses",
    .singular = "priorityclass",
    .schema = &priority_class_schema,
    .doc = "A name for a pod priority.",
    .check = priority_class_check,
};

/* --- Namespace --- */

#define T struct namespace_spec
static const struct field namespace_spec_fields[] = {
    FIELD(STRS, finalizers, "finalizers", NULL),
};
#undef T
static const struct schema namespace_spec_schema =
    SCHEMA("NamespaceSpec", struct namespace_spec, namespace_spec_fields);

static const char *const namespace_phases[] = { "Active", "Terminating", NULL };
static const struct rule namespace_phase_rule = { .enums = namespace_phases };

#define T struct namespace_status
static const struct field namespace_status_fields[] = {
    FIELD(ENUM, phase, "phase", NULL, .rule = &namespace_phase_rule),
    CHECKED(LIST, "conditions", .sub = &plain_condition_schema, .rule = &condition_list_rule),
};
#undef T
static const struct schema namespace_status_schema =
    SCHEMA("NamespaceStatus", struct namespace_status, namespace_status_fields);

#define T struct namespace_object
static const struct field namespace_fields[] = {
    OBJECT_FIELDS(struct namespace_object),
    FIELD(STRUCT, spec, "spec", NULL, .sub = &namespace_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &namespace_status_schema),
};
#undef T
static const struct schema namespace_schema =
    SCHEMA("Namespace", struct namespace_object, namespace_fields);

static struct str namespace_field(const struct object *object, struct str path)
{
    uint8_t phase = namespace_of(object)->status.phase;

    if (!str_eqz(path, "status.phase"))
        return STR_NONE;
    return phase == NAMESPACE_UNSET ? STR("") : str_of(namespace_phases[phase - 1]);
}

/* Every namespace can be selected by its name. */
static void namespace_complete(struct json_build *b, json_mut *root)
{
    json_mut *meta = json_mut_get(root, STR("metadata"));
    struct str name = json_mut_str(json_mut_get(meta, STR("name")));

    if (name.len > 0)
        json_set_str(b, json_mut_object(b, meta, STR("labels")), "kubernetes.io/metadata.name",
                     name);
}

const struct kind namespace_kind = {
    .group = "",
    .version = "v1",
    .name = "Namespace",
    .plural = "namespaces",
    .singular = "namespace",
    .has_status = true,
    .schema = &namespace_schema,
    .doc = "A scope for names.",
    .complete = namespace_complete,
    .check = check_name_is_label,
    .field = namespace_field,
};

/* --- Lease --- */

static const struct rule lease_duration_rule = { .format = "int32",
                                                 .min = { 1, true },
                                                 .max = { INT32_MAX, true } };

#define T struct lease_spec
static const struct field lease_spec_fields[] = {
    FIELD(STR, holder_identity, "holderIdentity", NULL),
    FIELD(MAYBE_INT, duration_s, "leaseDurationSeconds", NULL, .rule = &lease_duration_rule),
    FIELD(TIME, acquire_us, "acquireTime", NULL, .rule = &micro_time_rule),
    FIELD(TIME, renew_us, "renewTime", NULL, .rule = &micro_time_rule),
    FIELD(MAYBE_INT, transitions, "leaseTransitions", NULL, .rule = &count_rule),
    CHECKED(STR, "strategy", .rule = &required_text_rule),
    CHECKED(STR, "preferredHolder"),
};
#undef T
static const struct schema lease_spec_schema =
    SCHEMA("LeaseSpec", struct lease_spec, lease_spec_fields);

#define T struct lease
static const struct field lease_fields[] = {
    OBJECT_FIELDS(struct lease),
    FIELD(STRUCT, spec, "spec", NULL, .sub = &lease_spec_schema),
};
#undef T
static const struct schema lease_schema = SCHEMA("Lease", struct lease, lease_fields);

static void lease_check(const struct object *object KV_UNUSED, const json_val *root,
                        struct report *report)
{
    const json_val *spec = json_get(root, STR("spec"));

    if (json_str(json_get(spec, STR("preferredHolder"))).len > 0 &&
        json_str(json_get(spec, STR("strategy"))).len == 0)
        report_at(report, root, "spec.preferredHolder", "may only be set together with strategy");
}

const struct kind lease_kind = {
    .group = "coordination.k8s.io",
    .version = "v1",
    .name = "Lease",
    .plural = "leases",
    .singular = "lease",
    .namespaced = true,
    .schema = &lease_schema,
    .doc = "Who holds something, and until when.",
    .check = lease_check,
};
