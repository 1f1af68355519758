/* The table of Pod, and of the pod templates inside other kinds. Fields stand in the order in which
 * the API server prints them (as of Kubernetes 1.34); those without a C member are checked only. */
#include "api/pod_tables.h"

#define REQUIRED .flags = FIELD_REQUIRED

static const struct rule dns_label_rule = { .check = dns1123_label_problem };
static const struct rule by_name_rule = { KEYED_BY("name") };
static const struct rule label_keys_rule = { .item = &label_key_rule, .list_kind = LIST_SET };

/* --- resources --- */

static const char *resource_name_problem(struct str name)
{
    return label_key_problem(name);
}

static const char *amount_problem(struct str text)
{
    struct quantity q;
    if (quantity_parse(text, &q, NULL) < 0)
        return NULL; /* reported already */
    return quantity_cmp(q, quantity_of(0)) < 0 ? "is negative, expected zero or more" : NULL;
}

static const struct rule resource_name_rule = { .check = resource_name_problem };
static const struct rule amount_rule = { .check = amount_problem };
static const struct rule resources_rule = { .key = &resource_name_rule, .item = &amount_rule };

#define T struct resource_claim_use
static const struct field claim_use_fields[] = {
    FIELD(STR, name, "name", NULL, REQUIRED, .rule = &text_rule),
    FIELD(STR, request, "request", NULL),
};
#undef T
static const struct schema claim_use_schema =
    SCHEMA("ResourceClaim", struct resource_claim_use, claim_use_fields);

#define T struct resource_needs
static const struct field needs_fields[] = {
    FIELD(RESOURCES, limits, "limits", NULL, .rule = &resources_rule),
    FIELD(RESOURCES, requests, "requests", NULL, .rule = &resources_rule),
    FIELD(LIST, claims, "claims", NULL, .sub = &claim_use_schema),
};
#undef T
const struct schema resource_needs_schema =
    SCHEMA("ResourceRequirements", struct resource_needs, needs_fields);

/* --- containers --- */

static const struct rule protocol_rule = { ENUMS("TCP", "UDP", "SCTP"), .dflt = "\"TCP\"" };
static const struct rule host_port_rule = { .min = { 0, true }, .max = { 65535, true } };

#define T struct container_port
static const struct field port_fields[] = {
    FIELD(STR, name, "name", NULL, .rule = &port_name_rule),
    FIELD(INT, host_port, "hostPort", NULL, .rule = &host_port_rule),
    FIELD(INT, container_port, "containerPort", NULL, REQUIRED, .rule = &port_rule),
    FIELD(ENUM, protocol, "protocol", NULL, .rule = &protocol_rule),
    FIELD(STR, host_ip, "hostIP", NULL),
};
#undef T
static const struct schema port_schema =
    SCHEMA("ContainerPort", struct container_port, port_fields);

static const struct rule pull_policy_rule = { ENUMS("Always", "IfNotPresent", "Never") };
static const struct rule container_restart_rule = { ENUMS("Always", "Never", "OnFailure") };
static const struct rule message_policy_rule = { ENUMS("File", "FallbackToLogsOnError") };
static const struct rule mounts_rule = { KEYED_BY("mountPath") };
static const struct rule devices_rule = { KEYED_BY("devicePath") };

/* What the node agent runs a container with (commands, env, probes, mounts) is not kept here. */
#define CONTAINER_FIELDS                                                                           \
    FIELD(STR, name, "name", NULL, REQUIRED, .rule = &dns_label_rule),                             \
        FIELD(STR, image, "image", NULL, REQUIRED, .rule = &text_rule), CHECKED(STRS, "command"),  \
        CHECKED(STRS, "args"), CHECKED(STR, "workingDir"),                                         \
        FIELD(LIST, ports, "ports", NULL, .sub = &port_schema),                                    \
        CHECKED(LIST, "envFrom", .sub = &env_from_schema),                                         \
        CHECKED(LIST, "env", .sub = &env_schema),                                                  \
        FIELD(STRUCT, resources, "resources", NULL, .sub = &resource_needs_schema),                \
        CHECKED(LIST, "resizePolicy", .sub = &resize_policy_schema),                               \
        FIELD(ENUM, restart_policy, "restartPolicy", NULL, .rule = &container_restart_rule),       \
        CHECKED(LIST, "restartPolicyRules", .sub = &restart_rule_schema),                          \
        CHECKED(LIST, "volumeMounts", .sub = &volume_mount_schema, .rule = &mounts_rule),          \
        CHECKED(LIST, "volumeDevices", .sub = &volume_device_schema, .rule = &devices_rule),       \
        CHECKED(STRUCT, "livenessProbe", .sub = &probe_schema),                                    \
        CHECKED(STRUCT, "readinessProbe", .sub = &probe_schema),                                   \
        CHECKED(STRUCT, "startupProbe", .sub = &probe_schema),                                     \
        CHECKED(STRUCT, "lifecycle", .sub = &lifecycle_schema),                                    \
        CHECKED(STR, "terminationMessagePath"),                                                    \
        CHECKED(ENUM, "terminationMessagePolicy", .rule = &message_policy_rule),                   \
        CHECKED(ENUM, "imagePullPolicy", .rule = &pull_policy_rule),                               \
        CHECKED(STRUCT, "securityContext", .sub = &container_security_schema),                     \
        CHECKED(BOOL, "stdin"), CHECKED(BOOL, "stdinOnce"), CHECKED(BOOL, "tty")

#define T struct container
static const struct field container_fields[] = { CONTAINER_FIELDS };
static const struct field ephemeral_container_fields[] = {
    CONTAINER_FIELDS,
    CHECKED(STR, "targetContainerName"),
};
#undef T
static const struct schema container_schema =
    SCHEMA("Container", struct container, container_fields);
static const struct schema ephemeral_container_schema =
    SCHEMA("EphemeralContainer", struct container, ephemeral_container_fields);

/* --- affinity --- */

static const struct rule terms_rule = { .items_min = 1 };
static const struct rule weight_rule = { .min = { 1, true }, .max = { 100, true } };
static const struct rule namespaces_rule = { .item = &dns_label_rule };

#define T struct node_selector
static const struct field node_selector_fields[] = {
    FIELD(LIST, terms, "nodeSelectorTerms", NULL, REQUIRED, .sub = &node_selector_term_schema,
          .rule = &terms_rule),
};
#undef T
static const struct schema node_selector_schema =
    SCHEMA("NodeSelector", struct node_selector, node_selector_fields);

#define T struct preferred_node_term
static const struct field preferred_node_fields[] = {
    FIELD(INT, weight, "weight", NULL, REQUIRED, .rule = &weight_rule),
    FIELD(STRUCT, term, "preference", NULL, REQUIRED, .sub = &node_selector_term_schema),
};
#undef T
static const struct schema preferred_node_schema =
    SCHEMA("PreferredSchedulingTerm", struct preferred_node_term, preferred_node_fields);

#define REQUIRED_DURING_SCHEDULING "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED_DURING_SCHEDULING "preferredDuringSchedulingIgnoredDuringExecution"

#define T struct node_affinity
static const struct field node_affinity_fields[] = {
    FIELD(OPTION, maybe_required, REQUIRED_DURING_SCHEDULING, NULL, .sub = &node_selector_schema),
    FIELD(LIST, preferred, PREFERRED_DURING_SCHEDULING, NULL, .sub = &preferred_node_schema),
};
#undef T
static const struct schema node_affinity_schema =
    SCHEMA("NodeAffinity", struct node_affinity, node_affinity_fields);

#define T struct pod_affinity_term
static const struct field pod_term_fields[] = {
    FIELD(OPTION, maybe_selector, "labelSelector", NULL, .sub = &label_selector_schema),
    FIELD(STRS, namespaces, "namespaces", NULL, .rule = &namespaces_rule),
    FIELD(STR, topology_key, "topologyKey", NULL, REQUIRED, .rule = &label_key_rule),
    FIELD(OPTION, maybe_namespace_selector, "namespaceSelector", NULL,
          .sub = &label_selector_schema),
    FIELD(STRS, match_label_keys, "matchLabelKeys", NULL, .rule = &label_keys_rule),
    FIELD(STRS, mismatch_label_keys, "mismatchLabelKeys", NULL, .rule = &label_keys_rule),
};
#undef T
static const struct schema pod_term_schema =
    SCHEMA("PodAffinityTerm", struct pod_affinity_term, pod_term_fields);

#define T struct weighted_pod_term
static const struct field weighted_term_fields[] = {
    FIELD(INT, weight, "weight", NULL, REQUIRED, .rule = &weight_rule),
    FIELD(STRUCT, term, "podAffinityTerm", NULL, REQUIRED, .sub = &pod_term_schema),
};
#undef T
static const struct schema weighted_term_schema =
    SCHEMA("WeightedPodAffinityTerm", struct weighted_pod_term, weighted_term_fields);

#define T struct pod_affinity
static const struct field pod_affinity_fields[] = {
    FIELD(LIST, required, REQUIRED_DURING_SCHEDULING, NULL, .sub = &pod_term_schema),
    FIELD(LIST, preferred, PREFERRED_DURING_SCHEDULING, NULL, .sub = &weighted_term_schema),
};
#undef T
static const struct schema pod_affinity_schema =
    SCHEMA("PodAffinity", struct pod_affinity, pod_affinity_fields);

#define T struct affinity
static const struct field affinity_fields[] = {
    FIELD(STRUCT, node, "nodeAffinity", NULL, .sub = &node_affinity_schema),
    FIELD(STRUCT, pod, "podAffinity", NULL, .sub = &pod_affinity_schema),
    FIELD(STRUCT, anti, "podAntiAffinity", NULL, .sub = &pod_affinity_schema),
};
#undef T
const struct schema affinity_schema = SCHEMA("Affinity", struct affinity, affinity_fields);

/* --- topology spread --- */

static const struct rule skew_rule = { .format = "int32", .min = { 1, true } };
static const struct rule inclusion_rule = { ENUMS("Ignore", "Honor") };

static bool domains_do_not_schedule(const json_val *self, const json_val *old KV_UNUSED)
{
    const json_val *domains = json_get(self, STR("minDomains"));
    return !domains || json_is_null(domains) ||
           str_eq(json_str(json_get(self, STR("whenUnsatisfiable"))), STR("DoNotSchedule"));
}
static bool label_keys_have_selector(const json_val *self, const json_val *old KV_UNUSED)
{
    return json_count(json_get(self, STR("matchLabelKeys"))) == 0 ||
           json_is_object(json_get(self, STR("labelSelector")));
}
static const struct cel_rule spread_cel[] = {
    { "!has(self.minDomains) || self.whenUnsatisfiable == 'DoNotSchedule'",
      "minDomains is only for whenUnsatisfiable: DoNotSchedule", domains_do_not_schedule },
    { "!has(self.matchLabelKeys) || has(self.labelSelector)",
      "matchLabelKeys needs a labelSelector", label_keys_have_selector },
    { 0 },
};

#define T struct spread_constraint
static const struct field spread_fields[] = {
    FIELD(INT, max_skew, "maxSkew", NULL, REQUIRED, .rule = &skew_rule),
    FIELD(STR, topology_key, "topologyKey", NULL, REQUIRED, .rule = &label_key_rule),
    FIELD(ENUM, when_unsatisfiable, "whenUnsatisfiable", NULL, REQUIRED,
          RULE(ENUMS("DoNotSchedule", "ScheduleAnyway"))),
    FIELD(OPTION, maybe_selector, "labelSelector", NULL, .sub = &label_selector_schema),
    FIELD(MAYBE_INT, min_domains, "minDomains", NULL, .rule = &skew_rule),
    FIELD(ENUM, node_affinity_policy, "nodeAffinityPolicy", NULL, .rule = &inclusion_rule),
    FIELD(ENUM, node_taints_policy, "nodeTaintsPolicy", NULL, .rule = &inclusion_rule),
    FIELD(STRS, match_label_keys, "matchLabelKeys", NULL, .rule = &label_keys_rule),
};
#undef T
static const struct schema spread_schema =
    SCHEMA("TopologySpreadConstraint", struct spread_constraint, spread_fields, .cel = spread_cel);
static const struct rule spread_list_rule = { KEYED_BY("topologyKey", "whenUnsatisfiable") };

/* --- the spec --- */

#define T struct named
static const struct field gate_fields[] = {
    FIELD(STR, name, "name", NULL, REQUIRED, .rule = &label_key_rule),
};
static const struct field pull_secret_fields[] = { FIELD(STR, name, "name", NULL) };
#undef T
static const struct schema gate_schema = SCHEMA("PodSchedulingGate", struct named, gate_fields);
static const struct schema pull_secret_schema =
    SCHEMA("LocalObjectReference", struct named, pull_secret_fields);

#define T struct condition_type
static const struct field readiness_gate_fields[] = {
    FIELD(STR, type, "conditionType", NULL, REQUIRED, .rule = &label_key_rule),
};
#undef T
static const struct schema readiness_gate_schema =
    SCHEMA("PodReadinessGate", struct condition_type, readiness_gate_fields);

#define T struct pod_resource_claim
static const struct field resource_claim_fields[] = {
    FIELD(STR, name, "name", NULL, REQUIRED, .rule = &dns_label_rule),
    FIELD(STR, claim_name, "resourceClaimName", NULL),
    FIELD(STR, template_name, "resourceClaimTemplateName", NULL),
    FIELD_KNOWN("source"),
};
#undef T
static const struct schema resource_claim_schema =
    SCHEMA("PodResourceClaim", struct pod_resource_claim, resource_claim_fields);

#define T struct pod_os_name
static const struct field pod_os_fields[] = {
    FIELD(ENUM, name, "name", NULL, REQUIRED, RULE(ENUMS("linux", "windows"))),
};
#undef T
static const struct schema pod_os_schema = SCHEMA("PodOS", struct pod_os_name, pod_os_fields);

static const struct rule containers_rule = { KEYED_BY("name"), .items_min = 1 };
static const struct rule restart_rule = { ENUMS("Always", "OnFailure", "Never"),
                                          .dflt = "\"Always\"" };
static const struct rule grace_rule = { .min = { 0, true }, .dflt = "30" };
static const struct rule deadline_rule = { .min = { 1, true }, .max = { INT32_MAX, true } };
static const struct rule dns_policy_rule = {
    ENUMS("ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"),
    .dflt = "\"ClusterFirst\"",
};
static const struct rule scheduler_rule = { .dflt = "\"default-scheduler\"" };
static const struct rule labels_rule = { .key = &label_key_rule, .item = &label_value_rule };
static const struct rule true_rule = { .dflt = "true" };
static const struct rule empty_object_rule = { .dflt = "{}" };

#define T struct pod_spec
static const struct field pod_spec_fields[] = {
    FIELD(LIST, volumes, "volumes", NULL, .sub = &volume_schema, .rule = &by_name_rule),
    FIELD(LIST, init_containers, "initContainers", NULL, .sub = &container_schema,
          .rule = &by_name_rule),
    FIELD(LIST, containers, "containers", NULL, REQUIRED, .sub = &container_schema,
          .rule = &containers_rule),
    CHECKED(LIST, "ephemeralContainers", .sub = &ephemeral_container_schema, .rule = &by_name_rule),
    FIELD(ENUM, restart_policy, "restartPolicy", NULL, .rule = &restart_rule),
    FIELD(MAYBE_INT, termination_grace_s, "terminationGracePeriodSeconds", NULL,
          .rule = &grace_rule),
    FIELD(MAYBE_INT, active_deadline_s, "activeDeadlineSeconds", NULL, .rule = &deadline_rule),
    CHECKED(ENUM, "dnsPolicy", .rule = &dns_policy_rule),
    FIELD(STR_MAP, node_selector, "nodeSelector", NULL, .rule = &labels_rule),
    FIELD(STR, service_account_name, "serviceAccountName", NULL),
    CHECKED(STR, "serviceAccount"),
    CHECKED(BOOL, "automountServiceAccountToken"),
    FIELD(STR, node_name, "nodeName", NULL),
    FIELD(BOOL, host_network, "hostNetwork", NULL),
    FIELD(BOOL, host_pid, "hostPID", NULL),
    FIELD(BOOL, host_ipc, "hostIPC", NULL),
    CHECKED(BOOL, "shareProcessNamespace"),
    CHECKED(STRUCT, "securityContext", .sub = &pod_security_schema, .rule = &empty_object_rule),
    FIELD(LIST, image_pull_secrets, "imagePullSecrets", NULL, .sub = &pull_secret_schema),
    CHECKED(STR, "hostname", .rule = &dns_label_rule),
    CHECKED(STR, "subdomain", .rule = &dns_label_rule),
    FIELD(OPTION, affinity, "affinity", NULL, .sub = &affinity_schema),
    FIELD(STR, scheduler_name, "schedulerName", NULL, .rule = &scheduler_rule),
    FIELD(LIST, tolerations, "tolerations", NULL, .sub = &toleration_schema),
    CHECKED(LIST, "hostAliases", .sub = &host_alias_schema),
    FIELD(STR, priority_class_name, "priorityClassName", NULL),
    FIELD(MAYBE_INT, priority, "priority", NULL, .rule = &int32_rule),
    CHECKED(STRUCT, "dnsConfig", .sub = &dns_config_schema),
    FIELD(LIST, readiness_gates, "readinessGates", NULL, .sub = &readiness_gate_schema),
    FIELD(STR, runtime_class_name, "runtimeClassName", NULL),
    CHECKED(BOOL, "enableServiceLinks", .rule = &true_rule),
    FIELD(ENUM, preemption_policy, "preemptionPolicy", NULL,
          RULE(ENUMS("PreemptLowerPriority", "Never"))),
    FIELD(RESOURCES, overhead, "overhead", NULL, .rule = &resources_rule),
    FIELD(LIST, spread, "topologySpreadConstraints", NULL, .sub = &spread_schema,
          .rule = &spread_list_rule),
    CHECKED(BOOL, "setHostnameAsFQDN"),
    FIELD(STRUCT, os, "os", NULL, .sub = &pod_os_schema),
    CHECKED(BOOL, "hostUsers"),
    FIELD(LIST, scheduling_gates, "schedulingGates", NULL, .sub = &gate_schema,
          .rule = &by_name_rule),
    FIELD(LIST, resource_claims, "resourceClaims", NULL, .sub = &resource_claim_schema,
          .rule = &by_name_rule),
    FIELD(STRUCT, resources, "resources", NULL, .sub = &resource_needs_schema),
    CHECKED(STR, "hostnameOverride"),
    FIELD(STRS, volume_images, "", NULL, .flags = FIELD_DERIVED),
};
#undef T
const struct schema pod_spec_schema = SCHEMA("PodSpec", struct pod_spec, pod_spec_fields);

#define T struct pod_template
static const struct field pod_template_fields[] = {
    FIELD(STRUCT, meta, "metadata", NULL, .sub = &meta_template_schema),
    FIELD(STRUCT, spec, "spec", NULL, .sub = &pod_spec_schema),
};
#undef T
const struct schema pod_template_schema =
    SCHEMA("PodTemplateSpec", struct pod_template, pod_template_fields);

/* --- the status --- */

#define T struct pod_condition
static const struct field condition_fields[] = {
    FIELD(STR, type, "type", NULL, REQUIRED),
    CHECKED(INT, "observedGeneration"),
    FIELD(ENUM, status, "status", NULL, REQUIRED, .rule = &condition_status_rule),
    CHECKED(TIME, "lastProbeTime"),
    FIELD(TIME, transition_us, "lastTransitionTime", NULL),
    FIELD(STR, reason, "reason", NULL),
    FIELD(STR, message, "message", NULL),
};
#undef T
static const struct schema pod_condition_schema =
    SCHEMA("PodCondition", struct pod_condition, condition_fields);

#define T struct container_state_detail
static const struct field state_detail_fields[] = {
    FIELD(INT, exit_code, "exitCode", NULL),
    CHECKED(INT, "signal"),
    FIELD(STR, reason, "reason", NULL),
    CHECKED(STR, "message"),
    FIELD(TIME, started_us, "startedAt", NULL),
    FIELD(TIME, finished_us, "finishedAt", NULL),
    CHECKED(STR, "containerID"),
};
#undef T
static const struct schema state_detail_schema =
    SCHEMA("ContainerState", struct container_state_detail, state_detail_fields);

#define T struct container_states
static const struct field states_fields[] = {
    FIELD(OPTION, maybe_waiting, "waiting", NULL, .sub = &state_detail_schema),
    FIELD(OPTION, maybe_running, "running", NULL, .sub = &state_detail_schema),
    FIELD(OPTION, maybe_terminated, "terminated", NULL, .sub = &state_detail_schema),
};
#undef T
static const struct schema states_schema =
    SCHEMA("ContainerState", struct container_states, states_fields);

#define T struct container_status
static const struct field container_status_fields[] = {
    FIELD(STR, name, "name", NULL, REQUIRED),
    FIELD(STRUCT, states, "state", NULL, .sub = &states_schema),
    FIELD_KNOWN("lastState"),
    FIELD(BOOL, ready, "ready", NULL),
    FIELD(INT, restart_count, "restartCount", NULL),
    CHECKED(STR, "image"),
    CHECKED(STR, "imageID"),
    CHECKED(STR, "containerID"),
    FIELD(TRI, started, "started", NULL),
    FIELD(RESOURCES, allocated, "allocatedResources", NULL),
    FIELD(OPTION, maybe_resources, "resources", NULL, .sub = &resource_needs_schema),
    FIELD_KNOWN("volumeMounts"),
    FIELD_KNOWN("user"),
    FIELD_KNOWN("allocatedResourcesStatus"),
    FIELD_KNOWN("stopSignal"),
    FIELD(ENUM, state, "", NULL, .flags = FIELD_DERIVED,
          RULE(ENUMS("waiting", "running", "terminated"))),
    FIELD(STRUCT, detail, "", NULL, .flags = FIELD_DERIVED, .sub = &state_detail_schema),
};
#undef T
static const struct schema container_status_schema =
    SCHEMA("ContainerStatus", struct container_status, container_status_fields);

#define T struct pod_ip
static const struct field pod_ip_fields[] = { FIELD(STR, ip, "ip", NULL) };
#undef T
static const struct schema pod_ip_schema = SCHEMA("PodIP", struct pod_ip, pod_ip_fields);

static const struct rule conditions_rule = { KEYED_BY("type") };

#define T struct pod_status
static const struct field pod_status_fields[] = {
    CHECKED(INT, "observedGeneration"),
    FIELD(ENUM, phase, "phase", NULL,
          RULE(ENUMS("Pending", "Running", "Succeeded", "Failed", "Unknown"))),
    FIELD(LIST, conditions, "conditions", NULL, .sub = &pod_condition_schema,
          .rule = &conditions_rule),
    CHECKED(STR, "message"),
    FIELD(STR, reason, "reason", NULL),
    FIELD(STR, nominated_node, "nominatedNodeName", NULL),
    CHECKED(STR, "hostIP"),
    FIELD_KNOWN("hostIPs"),
    CHECKED(STR, "podIP"), /* the first of podIPs */
    FIELD(LIST, ips, "podIPs", NULL, .sub = &pod_ip_schema),
    FIELD(TIME, start_us, "startTime", NULL),
    FIELD(LIST, init_containers, "initContainerStatuses", NULL, .sub = &container_status_schema),
    FIELD(LIST, containers, "containerStatuses", NULL, .sub = &container_status_schema),
    FIELD(ENUM, qos, "qosClass", NULL, RULE(ENUMS("Guaranteed", "Burstable", "BestEffort"))),
    FIELD_KNOWN("ephemeralContainerStatuses"),
    FIELD(STR, resize, "resize", NULL),
    FIELD_KNOWN("resourceClaimStatuses"),
    FIELD_KNOWN("extendedResourceClaimStatus"),
    FIELD_KNOWN("allocatedResources"),
    FIELD_KNOWN("resources"),
};
#undef T
static const struct schema pod_status_schema =
    SCHEMA("PodStatus", struct pod_status, pod_status_fields);

#define T struct pod
static const struct field pod_fields[] = {
    OBJECT_FIELDS(struct pod),
    FIELD(OPTION, spec, "spec", NULL, .flags = FIELD_REQUIRED | FIELD_SHARED,
          .sub = &pod_spec_schema),
    FIELD(OPTION, status, "status", NULL, .flags = FIELD_SHARED, .sub = &pod_status_schema),
    FIELD(OPTION, maybe_affinity, "", NULL, .flags = FIELD_DERIVED | FIELD_SHARED,
          .sub = &affinity_schema),
    FIELD(LIST, volumes, "", NULL, .flags = FIELD_DERIVED | FIELD_SHARED, .sub = &volume_schema),
    FIELD(STR, node_name, "", NULL, .flags = FIELD_DERIVED),
    FIELD(LIST, ips, "", NULL, .flags = FIELD_DERIVED, .sub = &pod_ip_schema),
    FIELD(TIME, start_us, "", NULL, .flags = FIELD_DERIVED),
    FIELD(STR, moments, "", NULL, .flags = FIELD_DERIVED),
};
#undef T
const struct schema pod_schema = SCHEMA("Pod", struct pod, pod_fields);
