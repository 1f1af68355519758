/* The tables of StorageClass, CSINode and VolumeAttachment: how volumes are made, which drivers a
 * node has and how many volumes each takes, and what is attached right now. Disruption waits for
 * attachments to go before it lets an instance go. */
#include "api/storage.h"

/* --- StorageClass --- */

#define T struct expression
static const struct rule topology_values_rule = { .items_min = 1 };
static const struct field topology_expression_fields[] = {
    FIELD(STR, key, "key", NULL, .flags = FIELD_REQUIRED, .rule = &required_text_rule),
    FIELD(STRS, values, "values", NULL, .flags = FIELD_REQUIRED, .rule = &topology_values_rule),
};
#undef T
static const struct schema topology_expression_schema =
    SCHEMA("TopologySelectorLabelRequirement", struct expression, topology_expression_fields);

#define T struct topology_term
static const struct field topology_term_fields[] = {
    FIELD(LIST, expressions, "matchLabelExpressions", NULL, .sub = &topology_expression_schema),
};
#undef T
static const struct schema topology_term_schema =
    SCHEMA("TopologySelectorTerm", struct topology_term, topology_term_fields);

static bool class_provisioner_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "provisioner");
}

static bool class_parameters_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "parameters");
}

static bool class_reclaim_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "reclaimPolicy");
}

static bool class_binding_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "volumeBindingMode");
}

static const struct cel_rule class_cel[] = {
    { "self.provisioner == oldSelf.provisioner", "provisioner can not be changed",
      class_provisioner_kept },
    { "self.parameters == oldSelf.parameters", "parameters can not be changed",
      class_parameters_kept },
    { "self.reclaimPolicy == oldSelf.reclaimPolicy", "reclaimPolicy can not be changed",
      class_reclaim_kept },
    { "self.volumeBindingMode == oldSelf.volumeBindingMode", "volumeBindingMode can not be changed",
      class_binding_kept },
    { 0 },
};

static const struct rule provisioner_rule = { .check = label_key_problem };
static const struct rule class_reclaim_rule = { ENUMS("Retain", "Delete"), .dflt = "\"Delete\"" };
static const struct rule class_binding_rule = { ENUMS("Immediate", "WaitForFirstConsumer"),
                                                .dflt = "\"Immediate\"" };

#define T struct storage_class
static const struct field class_fields[] = {
    OBJECT_FIELDS(struct storage_class),
    FIELD(STR, provisioner, "provisioner", NULL, .flags = FIELD_REQUIRED,
          .rule = &provisioner_rule),
    CHECKED(STR_MAP, "parameters"),
    FIELD(ENUM, reclaim_policy, "reclaimPolicy", NULL, .rule = &class_reclaim_rule),
    CHECKED(STRS, "mountOptions"),
    CHECKED(BOOL, "allowVolumeExpansion"),
    FIELD(ENUM, binding_mode, "volumeBindingMode", NULL, .rule = &class_binding_rule),
    FIELD(LIST, allowed_topologies, "allowedTopologies", NULL, .sub = &topology_term_schema),
};
#undef T
static const struct schema class_schema =
    SCHEMA("StorageClass", struct storage_class, class_fields, .cel = class_cel);

const struct kind storage_class_kind = {
    .group = "storage.k8s.io",
    .version = "v1",
    .name = "StorageClass",
    .plural = "storageclasses",
    .singular = "storageclass",
    .schema = &class_schema,
    .doc = "How volumes of one sort are made.",
};

bool storage_class_is_default(const struct storage_class *sc)
{
    const struct str_map *notes = &sc->object.meta.annotations;

    return str_eqz(str_map_get(notes, STR("storageclass.kubernetes.io/is-default-class")),
                   "true") ||
           str_eqz(str_map_get(notes, STR("storageclass.beta.kubernetes.io/is-default-class")),
                   "true");
}

bool storage_class_waits(const struct storage_class *sc)
{
    return sc->binding_mode == BINDING_WAIT;
}

struct str storage_driver(struct str provisioner)
{
    static const struct {
        const char *plugin, *driver;
    } drivers[] = {
        { "kubernetes.io/aws-ebs", "ebs.csi.aws.com" },
        { "kubernetes.io/azure-disk", "disk.csi.azure.com" },
        { "kubernetes.io/azure-file", "file.csi.azure.com" },
        { "kubernetes.io/cinder", "cinder.csi.openstack.org" },
        { "kubernetes.io/gce-pd", "pd.csi.storage.gke.io" },
        { "kubernetes.io/portworx-volume", "pxd.portworx.com" },
        { "kubernetes.io/vsphere-volume", "csi.vsphere.vmware.com" },
    };

    for (size_t i = 0; i < KV_COUNT_OF(drivers); i++)
        if (str_eqz(provisioner, drivers[i].plugin))
            return str_of(drivers[i].driver);
    return provisioner;
}

/* --- CSINode --- */

#define T struct csi_allocatable
static const struct field csi_allocatable_fields[] = {
    FIELD(MAYBE_INT, count, "count", NULL, .rule = &count_rule),
};
#undef T
static const struct schema csi_allocatable_schema =
    SCHEMA("VolumeNodeResources", struct csi_allocatable, csi_allocatable_fields);

static const struct rule csi_driver_name_rule = { .len_max = 63,
                                                  .check = dns1123_subdomain_problem };
static const struct rule csi_node_id_rule = { .len_min = 1, .len_max = 256 };

#define T struct csi_driver
static const struct field csi_driver_fields[] = {
    FIELD(STR, name, "name", NULL, .flags = FIELD_REQUIRED, .rule = &csi_driver_name_rule),
    FIELD(STR, node_id, "nodeID", NULL, .flags = FIELD_REQUIRED, .rule = &csi_node_id_rule),
    FIELD(STRS, topology_keys, "topologyKeys", NULL),
    FIELD(STRUCT, allocatable, "allocatable", NULL, .sub = &csi_allocatable_schema),
};
#undef T
static const struct schema csi_driver_schema =
    SCHEMA("CSINodeDriver", struct csi_driver, csi_driver_fields);

static const struct rule csi_drivers_rule = { KEYED_BY("name") };

#define T struct csi_node_spec
static const struct field csi_node_spec_fields[] = {
    FIELD(LIST, drivers, "drivers", NULL, .flags = FIELD_REQUIRED, .sub = &csi_driver_schema,
          .rule = &csi_drivers_rule),
};
#undef T
static const struct schema csi_node_spec_schema =
    SCHEMA("CSINodeSpec", struct csi_node_spec, csi_node_spec_fields);

#define T struct csi_node
static const struct field csi_node_fields[] = {
    OBJECT_FIELDS(struct csi_node),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &csi_node_spec_schema),
};
#undef T
static const struct schema csi_node_schema = SCHEMA("CSINode", struct csi_node, csi_node_fields);

const struct kind csi_node_kind = {
    .group = "storage.k8s.io",
    .version = "v1",
    .name = "CSINode",
    .plural = "csinodes",
    .singular = "csinode",
    .schema = &csi_node_schema,
    .doc = "The volume drivers of a node and how many volumes each takes.",
};

const struct csi_driver *csi_node_driver(const struct csi_node *node, struct str name)
{
    for (uint32_t i = 0; i < node->spec.drivers.count; i++)
        if (str_eq(node->spec.drivers.items[i].name, name))
            return &node->spec.drivers.items[i];
    return NULL;
}

/* --- VolumeAttachment --- */

#define T struct attachment_source
static const struct field attachment_source_fields[] = {
    FIELD(STR, volume_name, "persistentVolumeName", NULL),
    FIELD_KNOWN("inlineVolumeSpec"),
};
#undef T
static const struct schema attachment_source_schema =
    SCHEMA("VolumeAttachmentSource", struct attachment_source, attachment_source_fields);

#define T struct attachment_spec
static const struct field attachment_spec_fields[] = {
    FIELD(STR, attacher, "attacher", NULL, .flags = FIELD_REQUIRED, .rule = &csi_driver_name_rule),
    FIELD(STRUCT, source, "source", NULL, .flags = FIELD_REQUIRED,
          .sub = &attachment_source_schema),
    FIELD(STR, node_name, "nodeName", NULL, .flags = FIELD_REQUIRED, .rule = &required_text_rule),
};
#undef T
static const struct schema attachment_spec_schema =
    SCHEMA("VolumeAttachmentSpec", struct attachment_spec, attachment_spec_fields);

static const struct field volume_error_fields[] = {
    CHECKED(TIME, "time"),
    CHECKED(STR, "message"),
    CHECKED(INT, "errorCode"),
};
static const struct schema volume_error_schema = SCHEMA_CHECKED("VolumeError", volume_error_fields);

#define T struct attachment_status
static const struct field attachment_status_fields[] = {
    FIELD(BOOL, attached, "attached", NULL),
    CHECKED(STR_MAP, "attachmentMetadata"),
    CHECKED(OPTION, "attachError", .sub = &volume_error_schema),
    CHECKED(OPTION, "detachError", .sub = &volume_error_schema),
};
#undef T
static const struct schema attachment_status_schema =
    SCHEMA("VolumeAttachmentStatus", struct attachment_status, attachment_status_fields);

static bool attachment_spec_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "spec");
}

static const struct cel_rule attachment_cel[] = {
    { "self.spec == oldSelf.spec", "spec can not be changed", attachment_spec_kept },
    { 0 },
};

#define T struct volume_attachment
static const struct field attachment_fields[] = {
    OBJECT_FIELDS(struct volume_attachment),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &attachment_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &attachment_status_schema),
};
#undef T
static const struct schema attachment_schema =
    SCHEMA("VolumeAttachment", struct volume_attachment, attachment_fields, .cel = attachment_cel);

static void attachment_check(const struct object *object, const json_val *root,
                             struct report *report)
{
    const struct volume_attachment *va = (const struct volume_attachment *)object;
    bool named = va->spec.source.volume_name.len > 0;
    bool inlined = json_is_object(json_path(root, "spec.source.inlineVolumeSpec"));

    if (named == inlined)
        report_at(report, root, "spec.source",
                  "expected exactly one of persistentVolumeName and inlineVolumeSpec");
}

/* Not one of the API server's: our index from nodes to what is attached to them. */
static struct str attachment_field(const struct object *object, struct str path)
{
    if (str_eqz(path, "spec.nodeName"))
        return volume_attachment_of(object)->spec.node_name;
    return STR_NONE;
}

const struct kind volume_attachment_kind = {
    .group = "storage.k8s.io",
    .version = "v1",
    .name = "VolumeAttachment",
    .plural = "volumeattachments",
    .singular = "volumeattachment",
    .has_status = true,
    .schema = &attachment_schema,
    .doc = "The wish to attach a volume to a node, and whether it is.",
    .check = attachment_check,
    .field = attachment_field,
};
