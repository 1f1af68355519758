/* api/conditions.h - how status conditions are set, and what Ready follows from.
 *
 *     set = conditions_new(arena, &node_claim_conditions, &meta, items, count, now_us);
 *     conditions_set_true(set, CONDITION_LAUNCHED);
 *     if (conditions_changed(set))
 *         ... patch status.conditions with conditions_json(set, b), under the resourceVersion read
 *
 * A kind has a root condition and others that it depends on. The rules, which Karpenter's users,
 * dashboards and kubectl rely on:
 *
 *  1. Dependents that are missing are made, Unknown with reason AwaitingReconciliation, the root
 *     first; they date from the object's creation. Any other new condition dates from now.
 *  2. Setting stamps observedGeneration. lastTransitionTime moves only with the status. If nothing
 *     differs, nothing is written.
 *  3. While the object is being deleted, a set that writes brings every condition's
 *     observedGeneration up to date.
 *  4. True without a reason has the type as its reason, and no message.
 *  5. After a set of another condition the root is computed anew. A dependent that is False,
 *     Unknown or of another generation is unhealthy. With none the root is True; with one that is
 *     False at this generation it is False (UnhealthyDependents); else Unknown
 *     (ReconcilingDependents).
 *     The message lists the unhealthy ones, "Launched=Unknown, ...", the latest transition first.
 *  6. The list is kept in the order of lastTransitionTime, the root last.
 *  7. Dependents and the root cannot be cleared. Clearing another sorts the list by type.
 *  8. A condition that is not there counts as Unknown.
 *
 * Not thread safe; everything lives in the arena.
 */
#pragma once

#include "api/common.h"

#define CONDITION_MESSAGE_BYTES_MAX 32768 /* what the CRDs allow; longer ones are cut */

struct condition_kind {
    struct str root;
    const struct str *dependents;
    uint32_t dependent_count;
};

extern const struct condition_kind node_pool_conditions;
extern const struct condition_kind node_claim_conditions;
extern const struct condition_kind node_overlay_conditions;
extern const struct condition_kind ec2_node_class_conditions;
/* The same without CapacityReservationsReady: for when reserved capacity is switched off. */
extern const struct condition_kind ec2_node_class_conditions_unreserved;

struct condition_set {
    struct arena *arena;
    const struct condition_kind *kind;
    int64_t generation, created_us, now_us;
    bool deleting;
    struct condition *items; /* in the order in which they are stored */
    uint32_t count, cap;
    const struct condition *stored; /* what the object had */
    uint32_t stored_count;
};

/* `meta` and `items` are the object's; `items` must outlive the set. */
struct condition_set *conditions_new(struct arena *arena, const struct condition_kind *kind,
                                     const struct meta *meta, const struct condition *items,
                                     uint32_t count, int64_t now_us);

/* All return whether anything was written. Texts are copied. */
bool conditions_set(struct condition_set *set, struct str type, enum condition_status status,
                    struct str reason, struct str message);
bool conditions_set_true(struct condition_set *set, struct str type);
bool conditions_set_false(struct condition_set *set, struct str type, struct str reason,
                          struct str message);
bool conditions_set_unknown(struct condition_set *set, struct str type, struct str reason,
                            struct str message);
bool conditions_clear(struct condition_set *set, struct str type);

/* NULL if absent. The pointer is good until the next change. */
const struct condition *conditions_get(const struct condition_set *set, struct str type);
const struct condition *conditions_root(const struct condition_set *set);
bool conditions_is_true(const struct condition_set *set, struct str type);
enum condition_status condition_status_of(const struct condition *maybe_condition);
const char *condition_status_name(enum condition_status status); /* "True"; unset is "Unknown" */

/* Whether the list differs from the object's, in anything. */
bool conditions_changed(const struct condition_set *set);

/* The whole list, for a merge patch of status.conditions: such a patch replaces lists, so it needs
 * the resourceVersion that the set was made from. */
json_mut *conditions_json(const struct condition_set *set, struct json_build *b);

/* --- types --- */

#define CONDITION_READY STR("Ready")
#define CONDITION_VALIDATION_SUCCEEDED STR("ValidationSucceeded")

/* NodePool */
#define CONDITION_NODE_CLASS_READY STR("NodeClassReady")
#define CONDITION_NODE_REGISTRATION_HEALTHY STR("NodeRegistrationHealthy")
#define CONDITION_LAUNCH_POSSIBLE STR("LaunchPossible") /* not part of Ready */

/* NodeClaim */
#define CONDITION_LAUNCHED STR("Launched")
#define CONDITION_REGISTERED STR("Registered")
#define CONDITION_INITIALIZED STR("Initialized")
#define CONDITION_DRIFTED STR("Drifted")
#define CONDITION_CONSOLIDATABLE STR("Consolidatable")
#define CONDITION_CONSISTENT_STATE_FOUND STR("ConsistentStateFound")
#define CONDITION_DISRUPTION_REASON STR("DisruptionReason")
#define CONDITION_DRAINED STR("Drained")
#define CONDITION_VOLUMES_DETACHED STR("VolumesDetached")
#define CONDITION_INSTANCE_TERMINATING STR("InstanceTerminating")

/* EC2NodeClass */
#define CONDITION_AMIS_READY STR("AMIsReady")
#define CONDITION_SUBNETS_READY STR("SubnetsReady")
#define CONDITION_SECURITY_GROUPS_READY STR("SecurityGroupsReady")
#define CONDITION_INSTANCE_PROFILE_READY STR("InstanceProfileReady")
#define CONDITION_PLACEMENT_GROUP_READY STR("PlacementGroupReady")
#define CONDITION_CAPACITY_RESERVATIONS_READY STR("CapacityReservationsReady")

/* --- reasons; a True condition's is its type unless one is here --- */

#define REASON_AWAITING_RECONCILIATION STR("AwaitingReconciliation")
#define REASON_UNHEALTHY_DEPENDENTS STR("UnhealthyDependents")
#define REASON_RECONCILING_DEPENDENTS STR("ReconcilingDependents")

/* NodePool: ValidationSucceeded, NodeClassReady, NodeRegistrationHealthy */
#define REASON_NODE_POOL_VALIDATION_FAILED STR("NodePoolValidationFailed")
#define REASON_NODE_CLASS_NOT_FOUND STR("NodeClassNotFound")
#define REASON_NODE_CLASS_TERMINATING STR("NodeClassTerminating")
#define REASON_NODE_CLASS_READINESS_UNKNOWN STR("NodeClassReadinessUnknown")
#define REASON_REGISTRATION_FAILED STR("RegistrationFailed")
/* LaunchPossible */
#define REASON_NO_COMPATIBLE_INSTANCE_TYPES STR("NoCompatibleInstanceTypes")
#define REASON_NO_OFFERINGS STR("NoOfferings")
#define REASON_INSTANCE_TYPES_UNAVAILABLE STR("InstanceTypesUnavailable")

/* NodeClaim: Launched (the provider may bring its own), Registered, Initialized */
#define REASON_LAUNCH_FAILED STR("LaunchFailed")
#define REASON_NODE_NOT_FOUND STR("NodeNotFound")
#define REASON_REGISTRATION_HOOK_PENDING STR("RegistrationHookPending")
#define REASON_MULTIPLE_NODES_FOUND STR("MultipleNodesFound")
#define REASON_NODE_NOT_READY STR("NodeNotReady")
#define REASON_STARTUP_TAINTS_EXIST STR("StartupTaintsExist")
#define REASON_KNOWN_EPHEMERAL_TAINTS_EXIST STR("KnownEphemeralTaintsExist")
#define REASON_RESOURCE_NOT_REGISTERED STR("ResourceNotRegistered")
#define REASON_DRA_DRIVER_POOLS_NOT_PUBLISHED STR("DRADriverPoolsNotPublished")
/* Drifted (True) */
#define REASON_NODE_POOL_DRIFTED STR("NodePoolDrifted")
#define REASON_REQUIREMENTS_DRIFTED STR("RequirementsDrifted")
#define REASON_INSTANCE_TYPE_NOT_FOUND STR("InstanceTypeNotFound")
/* ConsistentStateFound, DisruptionReason (True), Drained, VolumesDetached */
#define REASON_CONSISTENCY_CHECK_FAILED STR("ConsistencyCheckFailed")
#define REASON_UNDERUTILIZED STR("Underutilized")
#define REASON_EMPTY STR("Empty")
#define REASON_DRIFTED STR("Drifted")
#define REASON_DRAINING STR("Draining")
#define REASON_AWAITING_VOLUME_DETACHMENT STR("AwaitingVolumeDetachment")
#define REASON_TERMINATION_GRACE_PERIOD_ELAPSED STR("TerminationGracePeriodElapsed")

/* NodeOverlay: ValidationSucceeded */
#define REASON_RUNTIME_VALIDATION STR("RuntimeValidation")
#define REASON_CONFLICT STR("Conflict")

/* EC2NodeClass: AMIsReady, SubnetsReady, SecurityGroupsReady, PlacementGroupReady */
#define REASON_AMI_NOT_FOUND STR("AMINotFound")
#define REASON_UNSUPPORTED_ALIAS STR("UnsupportedAlias")
#define REASON_SUBNETS_NOT_FOUND STR("SubnetsNotFound")
#define REASON_SECURITY_GROUPS_NOT_FOUND STR("SecurityGroupsNotFound")
#define REASON_PLACEMENT_GROUP_RESOLUTION_FAILED STR("PlacementGroupResolutionFailed")
#define REASON_PLACEMENT_GROUP_NOT_FOUND STR("PlacementGroupNotFound")
/* ValidationSucceeded */
#define REASON_DEPENDENCIES_NOT_READY STR("DependenciesNotReady")
#define REASON_TAG_VALIDATION_FAILED STR("TagValidationFailed")
#define REASON_INVALID_KUBELET_CONFIGURATION STR("InvalidKubeletConfiguration")
#define REASON_UNSUPPORTED_KUBELET_CONFIGURATION STR("UnsupportedKubeletConfiguration")
#define REASON_KUBELET_EXPRESSION_INVALID STR("KubeletExpressionInvalid")
#define REASON_KUBELET_EXPRESSION_EVALUATION_FAILED STR("KubeletExpressionEvaluationFailed")
#define REASON_KUBELET_EXPRESSIONS_DISABLED STR("KubeletExpressionsDisabled")
#define REASON_CLUSTER_CIDR_RESOLUTION_FAILED STR("ClusterCIDRResolutionFailed")
#define REASON_CREATE_LAUNCH_TEMPLATE_AUTH_CHECK_FAILED STR("CreateLaunchTemplateAuthCheckFailed")
#define REASON_CREATE_FLEET_AUTH_CHECK_FAILED STR("CreateFleetAuthCheckFailed")
#define REASON_RUN_INSTANCES_AUTH_CHECK_FAILED STR("RunInstancesAuthCheckFailed")
#define REASON_INSTANCE_PROFILE_NOT_FOUND STR("InstanceProfileNotFound")
#define REASON_USER_DATA_SIZE_LIMIT_EXCEEDED STR("UserDataSizeLimitExceeded")
