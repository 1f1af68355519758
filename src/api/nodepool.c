/* The table of NodePool. Field order is that of the API server, which prints custom objects with
 * their keys sorted. */
#include "api/nodepool.h"

#include "codec/cron.h"
#include "codec/regex.h"

/* --- spec.disruption --- */

#define PATTERN_BUDGET_NODES "^((100|[0-9]{1,2})%|[0-9]+)$"
#define PATTERN_BUDGET_SCHEDULE                                                                    \
    "^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))"                                   \
    "|((.+)\\s(.+)\\s(.+)\\s(.+)\\s(.+))$"
#define PATTERN_BUDGET_DURATION "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"

const char *const disruption_reasons[DISRUPTION_REASON_COUNT] = { "Underutilized", "Empty",
                                                                  "Drifted" };

static const struct rule reason_rule = {
    ENUMS("Underutilized", "Empty", "Drifted"),
};

static bool schedule_with_duration(const json_val *self, const json_val *old KV_UNUSED)
{
    return (json_member(self, "schedule") != NULL) == (json_member(self, "duration") != NULL);
}

static const char *nodes_words(struct str text)
{
    if (regex_match_static(PATTERN_BUDGET_NODES, text))
        return NULL;
    return "is not a number of nodes such as 5, nor a percentage such as 10%";
}

static const char *length_words(struct str text)
{
    if (regex_match_static(PATTERN_BUDGET_DURATION, text))
        return NULL;
    return "is not a duration of hours and minutes such as 8h or 1h30m";
}

/* The pattern lets much pass that is no schedule. */
static const char *schedule_problem(struct str text)
{
    struct cron cron;
    if (cron_parse(text, &cron, NULL) == 0)
        return NULL;
    return "is not a schedule of five cron fields in UTC, nor a macro such as @daily";
}

#define T struct budget
static const struct field budget_fields[] = {
    FIELD(DURATION, duration, "duration",
          "How long the budget stays active after each activation of the schedule, in hours and "
          "minutes.",
          RULE(.pattern = PATTERN_BUDGET_DURATION, .check = length_words)),
    FIELD(STR, nodes, "nodes",
          "The most nodes that may be disrupted at once: a number, or a percentage of the pool's "
          "nodes, rounded up.",
          .flags = FIELD_REQUIRED,
          RULE(.pattern = PATTERN_BUDGET_NODES, .check = nodes_words, .dflt = "\"10%\"")),
    FIELD(STRS, reasons, "reasons",
          "The kinds of disruption that the budget limits; all of them when it is left out.",
          RULE(.items_max = 50, .list_kind = LIST_SET, .item = &reason_rule)),
    FIELD(STR, schedule, "schedule",
          "When the budget becomes active: five cron fields or a macro such as @daily, in UTC. "
          "Between the windows that it opens the budget limits nothing. Always active when it is "
          "left out.",
          RULE(.pattern = PATTERN_BUDGET_SCHEDULE, .check = schedule_problem)),
};
#undef T
static const struct schema budget_schema =
    SCHEMA("Budget", struct budget, budget_fields,
           .doc = "A limit on how many of the pool's nodes are disrupted at once.",
           CEL_RULES({ "has(self.schedule) == has(self.duration)",
                       "schedule and duration go together: set both or neither",
                       schedule_with_duration }));

#define T struct nodepool_disruption
static const struct field disruption_fields[] = {
    FIELD(LIST, budgets, "budgets",
          "Limits on how many nodes are disrupted at once. The strictest active one counts.",
          .sub = &budget_schema, RULE(.items_max = 50, .dflt = "[{\"nodes\": \"10%\"}]")),
    FIELD(STR, consolidate_after, "consolidateAfter",
          "How long no pod may have come or gone before a node may be consolidated, or Never to "
          "keep nodes even when they are empty.",
          RULE(.pattern = PATTERN_DURATION_OR_NEVER, .check = duration_problem, .dflt = "\"0s\"")),
    FIELD(ENUM, policy, "consolidationPolicy",
          "Which nodes may be consolidated: only empty ones (WhenEmpty), those whose pods fit "
          "elsewhere more cheaply too (WhenEmptyOrUnderutilized), or those where the saving "
          "outweighs the disruption (Balanced).",
          RULE(ENUMS("WhenEmpty", "WhenEmptyOrUnderutilized", "Balanced"),
               .dflt = "\"WhenEmptyOrUnderutilized\"")),
};
#undef T
static const struct schema disruption_schema =
    SCHEMA("Disruption", struct nodepool_disruption, disruption_fields,
           .doc = "When and how fast the pool's nodes are replaced or removed.");

/* --- spec.template --- */

static bool labels_keep_out_of_our_domain(const json_val *self, const json_val *old KV_UNUSED)
{
    json_each_member(self, key, value) {
        struct str name = json_str(key), domain, rest;
        (void)value;
        str_cut(name, '/', &domain, &rest);
        if (str_ends(domain, STR("karpenter.sh")) && !str_eqz(name, "karpenter.sh/capacity-type") &&
            !str_eqz(name, "karpenter.sh/nodepool"))
            return false;
    }
    return true;
}

static bool labels_lack_nodepool(const json_val *self, const json_val *old KV_UNUSED)
{
    return json_member(self, "karpenter.sh/nodepool") == NULL;
}

static bool labels_lack_hostname(const json_val *self, const json_val *old KV_UNUSED)
{
    return json_member(self, "kubernetes.io/hostname") == NULL;
}

static const struct rule template_label_rule = { .len_max = 63,
                                                 .pattern = PATTERN_LABEL_VALUE,
                                                 .check = label_text_words };

#define T struct template_meta
static const struct field template_meta_fields[] = {
    FIELD(STR_MAP, annotations, "annotations", "Annotations for the pool's nodes."),
    FIELD(STR_MAP, labels, "labels",
          "Labels for the pool's nodes. They count as requirements: a pod that asks for another "
          "value of the same key does not fit.",
          RULE(.items_max = 100, .map_atomic = true, .item = &template_label_rule,
               CEL_RULES({ "self.all(k, k in ['karpenter.sh/capacity-type', "
                           "'karpenter.sh/nodepool'] || "
                           "!k.split('/')[0].endsWith('karpenter.sh'))",
                           "labels of the domain karpenter.sh are restricted, except "
                           "karpenter.sh/capacity-type",
                           labels_keep_out_of_our_domain },
                         { "!('karpenter.sh/nodepool' in self)",
                           "label karpenter.sh/nodepool is restricted: nodes get their pool's name "
                           "anyway",
                           labels_lack_nodepool },
                         { "!('kubernetes.io/hostname' in self)",
                           "label kubernetes.io/hostname is restricted: every node has its own",
                           labels_lack_hostname }))),
};
#undef T
static const struct schema template_meta_schema =
    SCHEMA("NodeMetadata", struct template_meta, template_meta_fields,
           .doc = "Labels and annotations of the pool's nodes.");

#define T struct claim_node_spec
static const struct field template_spec_fields[] = {
    FIELD(
        STR, expire_after, "expireAfter",
        "How old a node may become before it is replaced, or Never.",
        RULE(.pattern = PATTERN_DURATION_OR_NEVER, .check = duration_problem, .dflt = "\"720h\"")),
    FIELD(STRUCT, node_class_ref, "nodeClassRef",
          "The node class: what the cloud needs to know to launch a node. Its group and kind "
          "cannot be changed later, its name can.",
          .flags = FIELD_REQUIRED, .sub = &node_class_ref_schema),
    FIELD(LIST, requirements, "requirements",
          "What the labels of the pool's nodes must be: instance types, zones, capacity types, "
          "architectures. All of them must hold. An empty list allows everything.",
          .flags = FIELD_REQUIRED, .sub = &pool_requirement_schema,
          RULE(.items_max = REQUIREMENTS_MAX)),
    FIELD(LIST, startup_taints, "startupTaints",
          "Taints that something else removes when a new node is prepared. Pods need not tolerate "
          "them.",
          .sub = &node_taint_schema, RULE(.list_kind = LIST_ATOMIC)),
    FIELD(LIST, taints, "taints", "Taints that the pool's nodes keep. Pods must tolerate them.",
          .sub = &node_taint_schema, RULE(.list_kind = LIST_ATOMIC)),
    FIELD(DURATION, termination_grace_period, "terminationGracePeriod",
          "How long a node may take to drain before what is left on it is deleted by force. A "
          "drain may take for ever when it is left out.",
          .rule = &duration_rule),
};
#undef T
static const struct schema template_spec_schema =
    SCHEMA("NodeTemplateSpec", struct claim_node_spec, template_spec_fields,
           .doc = "What the pool's nodes are.");

#define T struct node_template
static const struct field template_fields[] = {
    FIELD(STRUCT, meta, "metadata", "Labels and annotations of the pool's nodes.",
          .sub = &template_meta_schema),
    FIELD(STRUCT, spec, "spec", "What the pool's nodes are.", .flags = FIELD_REQUIRED,
          .sub = &template_spec_schema),
};
#undef T
static const struct schema template_schema =
    SCHEMA("NodeTemplate", struct node_template, template_fields,
           .doc = "What every NodeClaim of the pool is made from.");

/* --- spec --- */

static bool replicas_stay(const json_val *self, const json_val *old)
{
    return (json_member(self, "replicas") != NULL) == (json_member(old, "replicas") != NULL);
}

static bool static_without_weight(const json_val *self, const json_val *old KV_UNUSED)
{
    return !json_member(self, "replicas") || !json_member(self, "weight");
}

static bool static_limits_only_nodes(const json_val *self, const json_val *old KV_UNUSED)
{
    const json_val *limits = json_member(self, "limits");
    if (!json_member(self, "replicas") || json_count(limits) == 0)
        return true;
    return json_count(limits) == 1 && json_member(limits, "nodes");
}

#define T struct nodepool_spec
static const struct field spec_fields[] = {
    FIELD(STRUCT, disruption, "disruption",
          "When and how fast the pool's nodes are replaced or removed.", .sub = &disruption_schema,
          RULE(.dflt = "{\"consolidateAfter\": \"0s\"}")),
    FIELD(RESOURCES, limits, "limits",
          "The most that the pool's nodes may have together, by resource; `nodes` limits their "
          "number. No limit when it is left out.",
          .rule = &resources_rule),
    FIELD(MAYBE_INT, replicas, "replicas",
          "Makes the pool static: so many nodes, whether pods need them or not. It can be changed, "
          "but neither added to a pool nor taken from it. Alpha.",
          RULE(.format = "int64", AT_LEAST(0))),
    FIELD(STRUCT, template, "template", "What every NodeClaim of the pool is made from.",
          .flags = FIELD_REQUIRED, .sub = &template_schema),
    FIELD(MAYBE_INT, weight, "weight",
          "Pools with a higher weight are tried first. Not set counts as 0.",
          RULE(.format = "int32", BETWEEN(1, 100))),
};
#undef T
static const struct schema spec_schema =
    SCHEMA("NodePoolSpec", struct nodepool_spec, spec_fields,
           .doc = "Which nodes may be launched, and how they may be disrupted.",
           CEL_RULES({ "has(self.replicas) == has(oldSelf.replicas)",
                       "replicas can be neither added to a pool nor taken from it", replicas_stay },
                     { "!has(self.replicas) || !has(self.weight)",
                       "a pool with replicas has no weight", static_without_weight },
                     { "!has(self.replicas) || !has(self.limits) || self.limits.size() == 0 || "
                       "(self.limits.size() == 1 && 'nodes' in self.limits)",
                       "a pool with replicas can limit only nodes", static_limits_only_nodes }));

/* --- status --- */

#define T struct nodepool_status
static const struct field status_fields[] = {
    CONDITIONS_FIELD(status_condition_schema),
    FIELD(INT, node_class_observed_generation, "nodeClassObservedGeneration",
          "The generation of the node class that registration health was last judged with.",
          RULE(.format = "int64")),
    FIELD(INT, nodes, "nodes", "How many nodes the pool has.",
          RULE(.format = "int64", .dflt = "0")),
    FIELD(RESOURCES, resources, "resources",
          "What the pool's nodes have together: cpu, memory, pods, ephemeral-storage, nodes and "
          "what else there is.",
          .rule = &resources_rule),
};
#undef T
static const struct schema status_schema =
    SCHEMA("NodePoolStatus", struct nodepool_status, status_fields,
           .doc = "What karve observed of the pool.");

/* --- the kind --- */

#define T struct nodepool
static const struct field nodepool_fields[] = {
    OBJECT_FIELDS(struct nodepool),
    FIELD(STRUCT, spec, "spec", "Which nodes may be launched, and how they may be disrupted.",
          .flags = FIELD_REQUIRED, .sub = &spec_schema),
    FIELD(STRUCT, status, "status", "What karve observed of the pool.", .sub = &status_schema),
};
#undef T
static const struct schema nodepool_schema =
    SCHEMA("NodePool", struct nodepool, nodepool_fields,
           .doc = "A NodePool says which nodes may be launched for pending pods, and how they may "
                  "be disrupted.");

static const struct crd_column columns[] = {
    { "NodeClass", "string", ".spec.template.spec.nodeClassRef.name", "The node class.", 0 },
    { "Nodes", "integer", ".status.nodes", "How many nodes the pool has.", 0 },
    { "Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status",
      "Whether nodes can be launched.", 0 },
    { "NodeRegistrationHealthy", "string",
      ".status.conditions[?(@.type==\"NodeRegistrationHealthy\")].status",
      "Whether the nodes that are launched join the cluster.", 0 },
    { "Age", "date", ".metadata.creationTimestamp", "How old the pool is.", 0 },
    { "Weight", "integer", ".spec.weight", "Heavier pools are tried first.", 1 },
    { "CPU", "string", ".status.resources.cpu", "CPU of all nodes of the pool.", 1 },
    { "Memory", "string", ".status.resources.memory", "Memory of all nodes of the pool.", 1 },
};

static const struct crd nodepool_crd = {
    .categories = (const char *const[]){ "karpenter", NULL },
    .columns = columns,
    .column_count = KV_COUNT_OF(columns),
    .scale_spec_path = ".spec.replicas",
    .scale_status_path = ".status.nodes",
};

static struct str nodepool_field(const struct object *object, struct str path)
{
    return node_class_ref_field(&nodepool_of(object)->spec.template.spec.node_class_ref,
                                STR("spec.template.spec.nodeClassRef."), path);
}

const struct kind nodepool_kind = {
    .group = KARPENTER_GROUP,
    .version = "v1",
    .name = "NodePool",
    .plural = "nodepools",
    .singular = "nodepool",
    .has_status = true,
    .schema = &nodepool_schema,
    .doc = "Which nodes may be launched for pending pods, and how they may be disrupted.",
    .crd = &nodepool_crd,
    .check = nodepool_check,
    .field = nodepool_field,
};

int nodepool_order(const struct nodepool *a, const struct nodepool *b)
{
    int64_t wa = a->spec.weight.set ? a->spec.weight.value : 0;
    int64_t wb = b->spec.weight.set ? b->spec.weight.value : 0;
    if (wa != wb)
        return wa > wb ? -1 : 1;
    return str_cmp(b->object.meta.name, a->object.meta.name);
}
