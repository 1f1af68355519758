/* The table of Node and what it cannot say: a taint appears once per effect, a provider id and pod
 * ranges never change once they are set, resources are not negative. */
#include "api/node.h"

#include "api/builtin.h"
#include "api/resources.h"

static const struct rule cidr_list_rule = { .items_max = 2 };

/* --- rules about changes --- */

/* Empty may become anything; anything stays. */
static bool set_once(const json_val *self, const json_val *old, const char *key)
{
    const json_val *was = json_get(old, str_of(key));
    bool empty = json_str(was).len == 0 && json_count(was) == 0;

    return empty || json_kept(self, old, key);
}

static bool provider_id_kept(const json_val *self, const json_val *old)
{
    return set_once(self, old, "providerID");
}

static bool pod_cidr_kept(const json_val *self, const json_val *old)
{
    return set_once(self, old, "podCIDR") && set_once(self, old, "podCIDRs");
}

static const struct cel_rule spec_cel[] = {
    { "!has(oldSelf.providerID) || self.providerID == oldSelf.providerID",
      "providerID can not be changed once it is set", provider_id_kept },
    { "!has(oldSelf.podCIDRs) || self.podCIDRs == oldSelf.podCIDRs",
      "podCIDR and podCIDRs can not be changed once they are set", pod_cidr_kept },
    { 0 },
};

/* --- tables --- */

#define T struct node_object_spec
static const struct field spec_fields[] = {
    CHECKED(STR, "podCIDR"),
    FIELD(STRS, pod_cidrs, "podCIDRs", NULL, .rule = &cidr_list_rule),
    FIELD(STR, provider_id, "providerID", NULL),
    FIELD(BOOL, unschedulable, "unschedulable", NULL),
    FIELD(LIST, taints, "taints", NULL, .sub = &taint_schema),
    FIELD_KNOWN("configSource"),
    CHECKED(STR, "externalID"),
};
#undef T
static const struct schema spec_schema =
    SCHEMA("NodeSpec", struct node_object_spec, spec_fields, .cel = spec_cel);

#define T struct node_address
static const struct field address_fields[] = {
    FIELD(STR, type, "type", NULL, .flags = FIELD_REQUIRED),
    FIELD(STR, address, "address", NULL, .flags = FIELD_REQUIRED),
};
#undef T
static const struct schema address_schema =
    SCHEMA("NodeAddress", struct node_address, address_fields);

#define T struct node_info
static const struct field info_fields[] = {
    CHECKED(STR, "machineID"),
    CHECKED(STR, "systemUUID"),
    CHECKED(STR, "bootID"),
    FIELD(STR, kernel_version, "kernelVersion", NULL),
    FIELD(STR, os_image, "osImage", NULL),
    FIELD(STR, container_runtime_version, "containerRuntimeVersion", NULL),
    FIELD(STR, kubelet_version, "kubeletVersion", NULL),
    CHECKED(STR, "kubeProxyVersion"),
    FIELD(STR, operating_system, "operatingSystem", NULL),
    FIELD(STR, architecture, "architecture", NULL),
    FIELD_KNOWN("swap"),
};
#undef T
static const struct schema info_schema = SCHEMA("NodeSystemInfo", struct node_info, info_fields);

#define T struct attached_volume
static const struct field attached_fields[] = {
    FIELD(STR, name, "name", NULL, .flags = FIELD_REQUIRED),
    CHECKED(STR, "devicePath"),
};
#undef T
static const struct schema attached_schema =
    SCHEMA("AttachedVolume", struct attached_volume, attached_fields);

#define T struct node_object_status
static const struct field status_fields[] = {
    FIELD(RESOURCES, capacity, "capacity", NULL, .flags = FIELD_SHARED),
    FIELD(RESOURCES, allocatable, "allocatable", NULL, .flags = FIELD_SHARED),
    CHECKED(STR, "phase"),
    FIELD(LIST, conditions, "conditions", NULL, .sub = &plain_condition_schema,
          .rule = &condition_list_rule),
    FIELD(LIST, addresses, "addresses", NULL, .sub = &address_schema),
    FIELD_KNOWN("daemonEndpoints"),
    FIELD(OPTION, maybe_info, "nodeInfo", NULL, .flags = FIELD_SHARED, .sub = &info_schema),
    FIELD_KNOWN("images"),
    FIELD(STRS, volumes_in_use, "volumesInUse", NULL),
    FIELD(LIST, volumes_attached, "volumesAttached", NULL, .sub = &attached_schema),
    FIELD_KNOWN("config"),
    FIELD_KNOWN("runtimeHandlers"),
    FIELD_KNOWN("features"),
};
#undef T
static const struct schema status_schema =
    SCHEMA("NodeStatus", struct node_object_status, status_fields);

#define T struct node
static const struct field node_fields[] = {
    OBJECT_FIELDS(struct node),
    FIELD(STRUCT, spec, "spec", NULL, .sub = &spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &status_schema),
};
#undef T
static const struct schema node_schema = SCHEMA("Node", struct node, node_fields);

/* --- the kind --- */

static void check_taints(const struct node *node, const struct place *spec, struct report *report)
{
    struct place list = place_member(spec, "taints");
    struct taint_set seen = { 0 };
    uint32_t ix = 0;

    json_each_item(list.found ? list.at : NULL, item) {
        const struct taint *earlier = taint_set_add(&seen, &node->spec.taints.items[ix]);
        struct place here = place_item(&list, ix++, item);

        if (earlier)
            place_error(report, &here, "duplicate of taint %zu, expected each key and effect once",
                        (size_t)(earlier - node->spec.taints.items));
    }
    taint_set_done(&seen);
}

static void check_amounts(const struct resources *amounts, const struct place *list,
                          struct report *report)
{
    json_each_member(list->found ? list->at : NULL, name, value) {
        struct place here = place_key(list, name, value);
        const struct resource *found = resources_find(amounts, json_key(name));

        if (found && quantity_cmp(found->amount, quantity_of(0)) < 0)
            place_error(report, &here, "is negative, expected zero or more");
    }
}

static void check(const struct object *object, const json_val *root, struct report *report)
{
    const struct node *node = node_of(object);
    struct str first = json_str(json_path(root, "spec.podCIDR"));

    struct place top = place_root(root), spec = place_member(&top, "spec"),
                 status = place_member(&top, "status"),
                 capacity = place_member(&status, "capacity"),
                 allocatable = place_member(&status, "allocatable");

    check_taints(node, &spec, report);
    check_amounts(&node->status.capacity, &capacity, report);
    check_amounts(&node->status.allocatable, &allocatable, report);
    if (first.len > 0 && node->spec.pod_cidrs.count > 0 &&
        !str_eq(first, node->spec.pod_cidrs.items[0]))
        report_at(report, root, "spec.podCIDR",
                  "differs from podCIDRs[0], expected the same range");
}

static struct str field(const struct object *object, struct str path)
{
    const struct node *node = node_of(object);

    if (str_eqz(path, "spec.unschedulable"))
        return node->spec.unschedulable ? STR("true") : STR("false");
    /* Not one of the API server's: our index from instances to nodes. */
    if (str_eqz(path, "spec.providerID"))
        return node->spec.provider_id.p ? node->spec.provider_id : STR("");
    return STR_NONE;
}

const struct kind node_kind = {
    .group = "",
    .version = "v1",
    .name = "Node",
    .plural = "nodes",
    .singular = "node",
    .has_status = true,
    .schema = &node_schema,
    .doc = "A machine that runs pods.",
    .check = check,
    .field = field,
};

/* --- what callers ask --- */

const struct condition *node_condition(const struct node *node, struct str type)
{
    return condition_find(node->status.conditions.items, node->status.conditions.count, type);
}

bool node_is_ready(const struct node *node)
{
    const struct condition *ready = node_condition(node, STR("Ready"));

    return ready && ready->status == CONDITION_TRUE;
}

const struct taint *node_taint(const struct node *node, struct str key, enum taint_effect effect)
{
    for (uint32_t i = 0; i < node->spec.taints.count; i++) {
        const struct taint *taint = &node->spec.taints.items[i];

        if (str_eq(taint->key, key) && (effect == EFFECT_ANY || taint->effect == effect))
            return taint;
    }
    return NULL;
}

struct str node_hostname(const struct node *node)
{
    struct str label = str_map_get(&node->object.meta.labels, STR("kubernetes.io/hostname"));

    return label.len > 0 ? label : node->object.meta.name;
}

struct str node_address(const struct node *node, struct str type)
{
    for (uint32_t i = 0; i < node->status.addresses.count; i++)
        if (str_eq(node->status.addresses.items[i].type, type))
            return node->status.addresses.items[i].address;
    return STR_NONE;
}
