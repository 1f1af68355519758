/* The table of NodeClaim. The whole spec is immutable, so that what was launched can always be
 * compared with what was asked for. */
#include "api/nodeclaim.h"

#define T struct claim_resources
static const struct field resources_fields[] = {
    FIELD(RESOURCES, requests, "requests", "What must fit on the node, daemons included.",
          .rule = &resources_rule),
};
#undef T
static const struct schema resources_schema =
    SCHEMA("NodeClaimResources", struct claim_resources, resources_fields,
           .doc = "What the node must have room for.");

static bool unchanged(const json_val *self, const json_val *old)
{
    return json_equal(self, old);
}

#define T struct nodeclaim_spec
static const struct field spec_fields[] = {
    FIELD(
        STR, node.expire_after, "expireAfter",
        "How old the node may become before it is replaced, or Never.",
        RULE(.pattern = PATTERN_DURATION_OR_NEVER, .check = duration_problem, .dflt = "\"720h\"")),
    FIELD(STRUCT, node.node_class_ref, "nodeClassRef",
          "The node class: what the cloud needs to know to launch the node.",
          .flags = FIELD_REQUIRED, .sub = &node_class_ref_schema),
    FIELD(LIST, node.requirements, "requirements",
          "What the labels of the node must be: instance types, zones, capacity types. The "
          "provider launches the cheapest that all of them allow.",
          .flags = FIELD_REQUIRED, .sub = &claim_requirement_schema,
          RULE(.items_max = REQUIREMENTS_MAX)),
    FIELD(STRUCT, resources, "resources", "What the node must have room for.",
          .sub = &resources_schema),
    FIELD(LIST, node.startup_taints, "startupTaints",
          "Taints that something else removes when the new node is prepared. Pods need not "
          "tolerate them.",
          .sub = &node_taint_schema, RULE(.list_kind = LIST_ATOMIC)),
    FIELD(LIST, node.taints, "taints", "Taints that the node keeps. Pods must tolerate them.",
          .sub = &node_taint_schema, RULE(.list_kind = LIST_ATOMIC)),
    FIELD(DURATION, node.termination_grace_period, "terminationGracePeriod",
          "How long the node may take to drain before what is left on it is deleted by force. The "
          "drain may take for ever when it is left out.",
          .rule = &duration_rule),
};
#undef T
static const struct schema spec_schema = SCHEMA(
    "NodeClaimSpec", struct nodeclaim_spec, spec_fields, .doc = "The node that is asked for.",
    CEL_RULES({ "self == oldSelf", "spec cannot be changed", unchanged }));

#define T struct nodeclaim_status
static const struct field status_fields[] = {
    FIELD(RESOURCES, allocatable, "allocatable",
          "What the node will have for pods, as the provider estimates it.",
          .rule = &resources_rule),
    FIELD(RESOURCES, capacity, "capacity", "What the node will have, as the provider estimates it.",
          .rule = &resources_rule),
    CONDITIONS_FIELD(claim_condition_schema),
    FIELD(STR, image_id, "imageID", "The machine image that the node was launched with."),
    FIELD(TIME, last_pod_event_us, "lastPodEventTime",
          "When a pod was last bound to the node, ended on it, or started to end.",
          RULE(.format = "date-time")),
    FIELD(STR, node_name, "nodeName", "The Node object, once it has registered."),
    FIELD(STR, provider_id, "providerID", "The cloud's name for the instance."),
};
#undef T
static const struct schema status_schema = SCHEMA(
    "NodeClaimStatus", struct nodeclaim_status, status_fields, .doc = "What became of the claim.");

#define T struct nodeclaim
static const struct field nodeclaim_fields[] = {
    OBJECT_FIELDS(struct nodeclaim),
    FIELD(STRUCT, spec, "spec", "The node that is asked for. It cannot be changed.",
          .flags = FIELD_REQUIRED, .sub = &spec_schema),
    FIELD(STRUCT, status, "status", "What became of the claim.", .sub = &status_schema),
};
#undef T
static const struct schema nodeclaim_schema =
    SCHEMA("NodeClaim", struct nodeclaim, nodeclaim_fields,
           .doc = "A NodeClaim is one node: asked for, launched, registered, and at last removed.");

static const struct crd_column columns[] = {
    { "Type", "string", ".metadata.labels.node\\.kubernetes\\.io/instance-type",
      "The instance type.", 0 },
    { "Capacity", "string", ".metadata.labels.karpenter\\.sh/capacity-type",
      "spot, on-demand or reserved.", 0 },
    { "Zone", "string", ".metadata.labels.topology\\.kubernetes\\.io/zone", "The zone.", 0 },
    { "Node", "string", ".status.nodeName", "The Node object.", 0 },
    { "Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status",
      "Whether the node has been launched, registered and initialized.", 0 },
    { "Age", "date", ".metadata.creationTimestamp", "How old the claim is.", 0 },
    { "ImageID", "string", ".status.imageID", "The machine image.", 1 },
    { "ID", "string", ".status.providerID", "The cloud's name for the instance.", 1 },
    { "NodePool", "string", ".metadata.labels.karpenter\\.sh/nodepool", "The pool.", 1 },
    { "NodeClass", "string", ".spec.nodeClassRef.name", "The node class.", 1 },
    { "Drifted", "string", ".status.conditions[?(@.type==\"Drifted\")].status",
      "Whether the node differs from what would be launched now.", 1 },
};

static const struct crd nodeclaim_crd = {
    .categories = (const char *const[]){ "karpenter", NULL },
    .columns = columns,
    .column_count = KV_COUNT_OF(columns),
};

static void nodeclaim_check(const struct object *object, const json_val *root,
                            struct report *report)
{
    const struct claim_node_spec *node = &nodeclaim_of(object)->spec.node;
    struct place top = place_root(root), spec = place_member(&top, "spec");

    claim_node_spec_check(node, NULL, &spec, report);
}

static struct str nodeclaim_field(const struct object *object, struct str path)
{
    const struct nodeclaim *claim = nodeclaim_of(object);
    if (str_eqz(path, "status.providerID"))
        return claim->status.provider_id.p ? claim->status.provider_id : STR("");
    return node_class_ref_field(&claim->spec.node.node_class_ref, STR("spec.nodeClassRef."), path);
}

const struct kind nodeclaim_kind = {
    .group = KARPENTER_GROUP,
    .version = "v1",
    .name = "NodeClaim",
    .plural = "nodeclaims",
    .singular = "nodeclaim",
    .has_status = true,
    .schema = &nodeclaim_schema,
    .doc = "One node: asked for, launched, registered, and at last removed.",
    .crd = &nodeclaim_crd,
    .check = nodeclaim_check,
    .field = nodeclaim_field,
};
