/* The tables of claims and volumes. Three things are not in the tables: which driver attaches a
 * volume (derived from its source, in-tree plugins translated), that a volume has exactly one
 * source, and what of a claim may change (binding, growth, the attributes class, nothing else). */
#include "api/storage.h"

static const struct rule access_mode_rule = { ENUMS("ReadWriteOnce", "ReadOnlyMany",
                                                    "ReadWriteMany", "ReadWriteOncePod") };
static const struct rule access_modes_rule = { .items_min = 1,
                                               .list_kind = LIST_ATOMIC,
                                               .item = &access_mode_rule };

static const struct rule volume_mode_rule = { ENUMS("Filesystem", "Block"),
                                              .dflt = "\"Filesystem\"" };

static void check_access_modes(const struct str_list *modes, const json_val *root,
                               struct report *report)
{
    for (uint32_t i = 0; i < modes->count; i++)
        if (modes->count > 1 && str_eqz(modes->items[i], "ReadWriteOncePod"))
            report_at(report, root, "spec.accessModes",
                      "ReadWriteOncePod may not be combined with other modes");
}

static void check_storage_amount(const struct resources *amounts, const json_val *root,
                                 const char *parent, const char *path, struct report *report)
{
    for (uint32_t i = 0; i < amounts->count; i++) {
        if (!str_eqz(amounts->items[i].name, "storage"))
            continue;
        if (quantity_cmp(amounts->items[i].amount, quantity_of(0)) <= 0)
            report_at(report, root, path, "is not a size, expected more than 0");
        return;
    }
    if (json_path(root, parent)) /* else that is reported as missing */
        report_at(report, root, path, "required, missing; expected a size such as 20Gi");
}

/* --- PersistentVolumeClaim --- */

#define T struct pvc_resources
static const struct field pvc_resources_fields[] = {
    CHECKED(RESOURCES, "limits"),
    FIELD(RESOURCES, requests, "requests", NULL),
};
#undef T
static const struct schema pvc_resources_schema =
    SCHEMA("VolumeResourceRequirements", struct pvc_resources, pvc_resources_fields);

static const struct field data_source_fields[] = {
    CHECKED(STR, "apiGroup"),
    CHECKED(STR, "kind", .flags = FIELD_REQUIRED, .rule = &required_text_rule),
    CHECKED(STR, "name", .flags = FIELD_REQUIRED, .rule = &required_text_rule),
    CHECKED(STR, "namespace"),
};
static const struct schema data_source_schema =
    SCHEMA_CHECKED("TypedObjectReference", data_source_fields);

#define T struct pvc_spec
static const struct field pvc_spec_fields[] = {
    FIELD(STRS, access_modes, "accessModes", NULL, .flags = FIELD_REQUIRED,
          .rule = &access_modes_rule),
    FIELD(OPTION, maybe_selector, "selector", NULL, .sub = &label_selector_schema),
    FIELD(STRUCT, resources, "resources", NULL, .flags = FIELD_REQUIRED,
          .sub = &pvc_resources_schema),
    FIELD(STR, volume_name, "volumeName", NULL),
    FIELD(STR, storage_class_name, "storageClassName", NULL),
    FIELD(ENUM, volume_mode, "volumeMode", NULL, .rule = &volume_mode_rule),
    CHECKED(OPTION, "dataSource", .sub = &data_source_schema),
    CHECKED(OPTION, "dataSourceRef", .sub = &data_source_schema),
    CHECKED(STR, "volumeAttributesClassName"),
};
#undef T
static const struct schema pvc_spec_schema =
    SCHEMA("PersistentVolumeClaimSpec", struct pvc_spec, pvc_spec_fields);

static const struct rule pvc_phase_rule = { ENUMS("Pending", "Bound", "Lost") };

#define T struct pvc_status
static const struct field pvc_status_fields[] = {
    FIELD(ENUM, phase, "phase", NULL, .rule = &pvc_phase_rule),
    CHECKED(STRS, "accessModes"),
    FIELD(RESOURCES, capacity, "capacity", NULL),
    CHECKED(LIST, "conditions", .sub = &plain_condition_schema, .rule = &condition_list_rule),
    CHECKED(RESOURCES, "allocatedResources"),
    CHECKED(STR_MAP, "allocatedResourceStatuses"),
    CHECKED(STR, "currentVolumeAttributesClassName"),
    FIELD_KNOWN("modifyVolumeStatus"),
};
#undef T
static const struct schema pvc_status_schema =
    SCHEMA("PersistentVolumeClaimStatus", struct pvc_status, pvc_status_fields);

/* May be set where it was empty (the binder does), but not changed. */
static bool text_set_once(const json_val *self, const json_val *old, const char *path)
{
    return json_str(json_path(old, path)).len == 0 || json_kept(self, old, path);
}

static bool pvc_spec_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "spec.accessModes") && json_kept(self, old, "spec.selector") &&
           json_kept(self, old, "spec.resources.limits") &&
           json_kept(self, old, "spec.volumeMode") && json_kept(self, old, "spec.dataSource") &&
           json_kept(self, old, "spec.dataSourceRef") &&
           text_set_once(self, old, "spec.volumeName") &&
           (!json_path(old, "spec.storageClassName") ||
            json_kept(self, old, "spec.storageClassName"));
}

static bool storage_of(const json_val *v, const char *path, struct quantity *out)
{
    struct str text = json_str(json_path(v, path));

    return text.p && quantity_parse(text, out, NULL) == 0;
}

/* A bound claim may grow, and shrink back as far as the volume it has; an unbound one may do
 * neither. */
static bool pvc_size_kept(const json_val *self, const json_val *old)
{
    const char *path = "spec.resources.requests.storage";
    struct quantity was, now, has;

    if (!storage_of(old, path, &was) || !storage_of(self, path, &now))
        return json_kept(self, old, path);
    if (quantity_cmp(now, was) == 0)
        return true;
    if (!str_eqz(json_str(json_path(old, "status.phase")), "Bound"))
        return false;
    return quantity_cmp(now, was) > 0 ||
           (storage_of(old, "status.capacity.storage", &has) && quantity_cmp(now, has) > 0);
}

static const struct cel_rule pvc_cel[] = {
    { "self.spec == oldSelf.spec",
      "spec can not be changed, except for resources.requests and volumeAttributesClassName",
      pvc_spec_kept },
    { "self.spec.resources.requests.storage >= oldSelf.spec.resources.requests.storage",
      "spec.resources.requests.storage can only grow, and only once the claim is bound",
      pvc_size_kept },
    { 0 },
};

#define T struct pvc
static const struct field pvc_fields[] = {
    OBJECT_FIELDS(struct pvc),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &pvc_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &pvc_status_schema),
};
#undef T
static const struct schema pvc_schema =
    SCHEMA("PersistentVolumeClaim", struct pvc, pvc_fields, .cel = pvc_cel);

#define T struct pvc_template_meta
static const struct rule template_labels_rule = { .key = &label_key_rule,
                                                  .item = &label_value_rule };
static const struct rule template_annotations_rule = { .key = &label_key_rule };
static const struct field pvc_template_meta_fields[] = {
    FIELD(STR, name, "name", NULL, .flags = FIELD_REQUIRED, .rule = &subdomain_rule),
    CHECKED(STR, "generateName"),
    CHECKED(STR, "namespace"),
    FIELD_KNOWN("creationTimestamp"),
    FIELD(STR_MAP, labels, "labels", NULL, .rule = &template_labels_rule),
    FIELD(STR_MAP, annotations, "annotations", NULL, .rule = &template_annotations_rule),
    FIELD_KNOWN("ownerReferences"),
    CHECKED(STRS, "finalizers"),
};
#undef T
static const struct schema pvc_template_meta_schema =
    SCHEMA("ObjectMeta", struct pvc_template_meta, pvc_template_meta_fields);

#define T struct pvc_template
static const struct field pvc_template_fields[] = {
    CHECKED(STR, "apiVersion"),
    CHECKED(STR, "kind"),
    FIELD(STRUCT, meta, "metadata", NULL, .flags = FIELD_REQUIRED,
          .sub = &pvc_template_meta_schema),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &pvc_spec_schema),
    FIELD_KNOWN("status"),
};
#undef T
const struct schema pvc_template_schema =
    SCHEMA("PersistentVolumeClaim", struct pvc_template, pvc_template_fields);

static void pvc_check(const struct object *object, const json_val *root, struct report *report)
{
    const struct pvc *pvc = pvc_of(object);

    check_access_modes(&pvc->spec.access_modes, root, report);
    check_storage_amount(&pvc->spec.resources.requests, root, "spec.resources",
                         "spec.resources.requests.storage", report);
}

bool pvc_is_bound(const struct pvc *pvc)
{
    return pvc->spec.volume_name.len > 0 &&
           str_map_get(&pvc->object.meta.annotations, STR("pv.kubernetes.io/bind-completed")).p;
}

const struct kind pvc_kind = {
    .group = "",
    .version = "v1",
    .name = "PersistentVolumeClaim",
    .plural = "persistentvolumeclaims",
    .singular = "persistentvolumeclaim",
    .namespaced = true,
    .has_status = true,
    .schema = &pvc_schema,
    .doc = "A request for storage.",
    .check = pvc_check,
};

/* --- PersistentVolume --- */

#define T struct pv_csi
static const struct field pv_csi_fields[] = {
    FIELD(STR, driver, "driver", NULL, .flags = FIELD_REQUIRED, .rule = &required_text_rule),
    FIELD(STR, handle, "volumeHandle", NULL, .flags = FIELD_REQUIRED, .rule = &required_text_rule),
    CHECKED(BOOL, "readOnly"),
    CHECKED(STR, "fsType"),
    CHECKED(STR_MAP, "volumeAttributes"),
    FIELD_KNOWN("controllerPublishSecretRef"),
    FIELD_KNOWN("nodeStageSecretRef"),
    FIELD_KNOWN("nodePublishSecretRef"),
    FIELD_KNOWN("controllerExpandSecretRef"),
    FIELD_KNOWN("nodeExpandSecretRef"),
};
#undef T
static const struct schema pv_csi_schema =
    SCHEMA("CSIPersistentVolumeSource", struct pv_csi, pv_csi_fields);

#define T struct pv_path
static const struct field local_fields[] = {
    FIELD(STR, path, "path", NULL, .flags = FIELD_REQUIRED, .rule = &required_text_rule),
    CHECKED(STR, "fsType"),
};
static const struct field host_path_fields[] = {
    FIELD(STR, path, "path", NULL, .flags = FIELD_REQUIRED, .rule = &required_text_rule),
    CHECKED(STR, "type"),
};
#undef T
static const struct schema local_schema = SCHEMA("LocalVolumeSource", struct pv_path, local_fields);
static const struct schema host_path_schema =
    SCHEMA("HostPathVolumeSource", struct pv_path, host_path_fields);

#define T struct pv_in_tree
static const struct field aws_ebs_fields[] = {
    FIELD(STR, handle, "volumeID", NULL, .flags = FIELD_REQUIRED),
    CHECKED(STR, "fsType"),
    CHECKED(INT, "partition"),
    CHECKED(BOOL, "readOnly"),
};
static const struct field gce_pd_fields[] = {
    FIELD(STR, handle, "pdName", NULL, .flags = FIELD_REQUIRED),
    CHECKED(STR, "fsType"),
    CHECKED(INT, "partition"),
    CHECKED(BOOL, "readOnly"),
};
static const struct field azure_disk_fields[] = {
    CHECKED(STR, "diskName", .flags = FIELD_REQUIRED),
    FIELD(STR, handle, "diskURI", NULL, .flags = FIELD_REQUIRED),
    CHECKED(STR, "cachingMode"),
    CHECKED(STR, "fsType"),
    CHECKED(BOOL, "readOnly"),
    CHECKED(STR, "kind"),
};
static const struct field azure_file_fields[] = {
    CHECKED(STR, "secretName", .flags = FIELD_REQUIRED),
    FIELD(STR, handle, "shareName", NULL, .flags = FIELD_REQUIRED),
    CHECKED(BOOL, "readOnly"),
    CHECKED(STR, "secretNamespace"),
};
static const struct field cinder_fields[] = {
    FIELD(STR, handle, "volumeID", NULL, .flags = FIELD_REQUIRED),
    CHECKED(STR, "fsType"),
    CHECKED(BOOL, "readOnly"),
    FIELD_KNOWN("secretRef"),
};
static const struct field vsphere_fields[] = {
    FIELD(STR, handle, "volumePath", NULL, .flags = FIELD_REQUIRED),
    CHECKED(STR, "fsType"),
    CHECKED(STR, "storagePolicyName"),
    CHECKED(STR, "storagePolicyID"),
};
static const struct field portworx_fields[] = {
    FIELD(STR, handle, "volumeID", NULL, .flags = FIELD_REQUIRED),
    CHECKED(STR, "fsType"),
    CHECKED(BOOL, "readOnly"),
};
#undef T
static const struct schema aws_ebs_schema =
    SCHEMA("AWSElasticBlockStoreVolumeSource", struct pv_in_tree, aws_ebs_fields);
static const struct schema gce_pd_schema =
    SCHEMA("GCEPersistentDiskVolumeSource", struct pv_in_tree, gce_pd_fields);
static const struct schema azure_disk_schema =
    SCHEMA("AzureDiskVolumeSource", struct pv_in_tree, azure_disk_fields);
static const struct schema azure_file_schema =
    SCHEMA("AzureFilePersistentVolumeSource", struct pv_in_tree, azure_file_fields);
static const struct schema cinder_schema =
    SCHEMA("CinderPersistentVolumeSource", struct pv_in_tree, cinder_fields);
static const struct schema vsphere_schema =
    SCHEMA("VsphereVirtualDiskVolumeSource", struct pv_in_tree, vsphere_fields);
static const struct schema portworx_schema =
    SCHEMA("PortworxVolumeSource", struct pv_in_tree, portworx_fields);

/* Every name under spec that says what the volume is; a volume has exactly one of them. */
static const char *const pv_sources[] = {
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "hostPath",
    "glusterfs",
    "nfs",
    "rbd",
    "iscsi",
    "cinder",
    "cephfs",
    "fc",
    "flocker",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "quobyte",
    "azureDisk",
    "photonPersistentDisk",
    "portworxVolume",
    "scaleIO",
    "local",
    "storageos",
    "csi",
};

static const struct rule pv_terms_rule = { .items_min = 1 };

#define T struct pv_node_terms
static const struct field pv_node_terms_fields[] = {
    FIELD(LIST, terms, "nodeSelectorTerms", NULL, .flags = FIELD_REQUIRED,
          .sub = &node_selector_term_schema, .rule = &pv_terms_rule),
};
#undef T
static const struct schema pv_node_terms_schema =
    SCHEMA("NodeSelector", struct pv_node_terms, pv_node_terms_fields);

#define T struct pv_affinity
static const struct field pv_affinity_fields[] = {
    FIELD(STRUCT, required, "required", NULL, .flags = FIELD_REQUIRED,
          .sub = &pv_node_terms_schema),
};
#undef T
static const struct schema pv_affinity_schema =
    SCHEMA("VolumeNodeAffinity", struct pv_affinity, pv_affinity_fields);

static bool pv_source_kept(const json_val *self, const json_val *old)
{
    for (size_t i = 0; i < KV_COUNT_OF(pv_sources); i++)
        if (!json_kept(self, old, pv_sources[i]))
            return false;
    return true;
}

static bool pv_affinity_kept(const json_val *self, const json_val *old)
{
    return !json_is_object(json_get(old, STR("nodeAffinity"))) ||
           json_kept(self, old, "nodeAffinity");
}

static bool pv_mode_kept(const json_val *self, const json_val *old)
{
    return json_kept(self, old, "volumeMode");
}

static const struct cel_rule pv_spec_cel[] = {
    { "self.source == oldSelf.source", "the volume's source can not be changed", pv_source_kept },
    { "!has(oldSelf.nodeAffinity) || self.nodeAffinity == oldSelf.nodeAffinity",
      "nodeAffinity can not be changed once it is set", pv_affinity_kept },
    { "self.volumeMode == oldSelf.volumeMode", "volumeMode can not be changed", pv_mode_kept },
    { 0 },
};

static const struct rule pv_reclaim_rule = { ENUMS("Retain", "Delete", "Recycle"),
                                             .dflt = "\"Retain\"" };

#define T struct pv_spec
static const struct field pv_spec_fields[] = {
    FIELD(RESOURCES, capacity, "capacity", NULL, .flags = FIELD_REQUIRED),
    FIELD(OPTION, maybe_gce_pd, "gcePersistentDisk", NULL, .sub = &gce_pd_schema),
    FIELD(OPTION, maybe_aws_ebs, "awsElasticBlockStore", NULL, .sub = &aws_ebs_schema),
    FIELD(OPTION, maybe_host_path, "hostPath", NULL, .sub = &host_path_schema),
    FIELD_KNOWN("glusterfs"),
    FIELD_KNOWN("nfs"),
    FIELD_KNOWN("rbd"),
    FIELD_KNOWN("iscsi"),
    FIELD(OPTION, maybe_cinder, "cinder", NULL, .sub = &cinder_schema),
    FIELD_KNOWN("cephfs"),
    FIELD_KNOWN("fc"),
    FIELD_KNOWN("flocker"),
    FIELD_KNOWN("flexVolume"),
    FIELD(OPTION, maybe_azure_file, "azureFile", NULL, .sub = &azure_file_schema),
    FIELD(OPTION, maybe_vsphere, "vsphereVolume", NULL, .sub = &vsphere_schema),
    FIELD_KNOWN("quobyte"),
    FIELD(OPTION, maybe_azure_disk, "azureDisk", NULL, .sub = &azure_disk_schema),
    FIELD_KNOWN("photonPersistentDisk"),
    FIELD(OPTION, maybe_portworx, "portworxVolume", NULL, .sub = &portworx_schema),
    FIELD_KNOWN("scaleIO"),
    FIELD(OPTION, maybe_local, "local", NULL, .sub = &local_schema),
    FIELD_KNOWN("storageos"),
    FIELD(OPTION, maybe_csi, "csi", NULL, .sub = &pv_csi_schema),
    FIELD(STRS, access_modes, "accessModes", NULL, .flags = FIELD_REQUIRED,
          .rule = &access_modes_rule),
    FIELD(OPTION, maybe_claim, "claimRef", NULL, .sub = &object_reference_schema),
    FIELD(ENUM, reclaim_policy, "persistentVolumeReclaimPolicy", NULL, .rule = &pv_reclaim_rule),
    FIELD(STR, storage_class_name, "storageClassName", NULL),
    CHECKED(STRS, "mountOptions"),
    FIELD(ENUM, volume_mode, "volumeMode", NULL, .rule = &volume_mode_rule),
    FIELD(OPTION, maybe_affinity, "nodeAffinity", NULL, .sub = &pv_affinity_schema),
    CHECKED(STR, "volumeAttributesClassName"),
    FIELD(STR, driver, "driver", NULL, .flags = FIELD_DERIVED),
};
#undef T
static const struct schema pv_spec_schema =
    SCHEMA("PersistentVolumeSpec", struct pv_spec, pv_spec_fields, .cel = pv_spec_cel);

static const struct rule pv_phase_rule = { ENUMS("Pending", "Available", "Bound", "Released",
                                                 "Failed") };

#define T struct pv_status
static const struct field pv_status_fields[] = {
    FIELD(ENUM, phase, "phase", NULL, .rule = &pv_phase_rule),
    CHECKED(STR, "message"),
    CHECKED(STR, "reason"),
    CHECKED(TIME, "lastPhaseTransitionTime"),
};
#undef T
static const struct schema pv_status_schema =
    SCHEMA("PersistentVolumeStatus", struct pv_status, pv_status_fields);

#define T struct pv
static const struct field pv_fields[] = {
    OBJECT_FIELDS(struct pv),
    FIELD(STRUCT, spec, "spec", NULL, .flags = FIELD_REQUIRED, .sub = &pv_spec_schema),
    FIELD(STRUCT, status, "status", NULL, .sub = &pv_status_schema),
};
#undef T
static const struct schema pv_schema = SCHEMA("PersistentVolume", struct pv, pv_fields);

static void pv_settle(struct object *view, struct arena *arena KV_UNUSED)
{
    struct pv_spec *spec = &((struct pv *)view)->spec;

    if (spec->maybe_csi)
        spec->driver = spec->maybe_csi->driver;
    else if (spec->maybe_aws_ebs)
        spec->driver = storage_driver(STR("kubernetes.io/aws-ebs"));
    else if (spec->maybe_gce_pd)
        spec->driver = storage_driver(STR("kubernetes.io/gce-pd"));
    else if (spec->maybe_azure_disk)
        spec->driver = storage_driver(STR("kubernetes.io/azure-disk"));
    else if (spec->maybe_azure_file)
        spec->driver = storage_driver(STR("kubernetes.io/azure-file"));
    else if (spec->maybe_cinder)
        spec->driver = storage_driver(STR("kubernetes.io/cinder"));
    else if (spec->maybe_vsphere)
        spec->driver = storage_driver(STR("kubernetes.io/vsphere-volume"));
    else if (spec->maybe_portworx)
        spec->driver = storage_driver(STR("kubernetes.io/portworx-volume"));
}

static void pv_check(const struct object *object, const json_val *root, struct report *report)
{
    const struct pv *pv = (const struct pv *)object;
    const json_val *spec = json_get(root, STR("spec"));
    uint32_t sources = 0;

    for (size_t i = 0; i < KV_COUNT_OF(pv_sources); i++)
        sources += json_is_object(json_get(spec, str_of(pv_sources[i])));
    if (spec && sources != 1)
        report_at(report, root, "spec",
                  sources == 0 ? "has no volume source, expected one such as csi"
                               : "has several volume sources, expected exactly one");
    check_storage_amount(&pv->spec.capacity, root, "spec.capacity", "spec.capacity.storage",
                         report);
    check_access_modes(&pv->spec.access_modes, root, report);
    if (pv->spec.maybe_local && !pv->spec.maybe_affinity)
        report_at(report, root, "spec.nodeAffinity",
                  "is missing, expected the node that has the local volume");
    if (pv->spec.maybe_host_path && str_eqz(pv->spec.maybe_host_path->path, "/") &&
        pv->spec.reclaim_policy == RECLAIM_RECYCLE)
        report_at(report, root, "spec.persistentVolumeReclaimPolicy",
                  "may not be Recycle for the host's root folder");
}

const struct kind pv_kind = {
    .group = "",
    .version = "v1",
    .name = "PersistentVolume",
    .plural = "persistentvolumes",
    .singular = "persistentvolume",
    .has_status = true,
    .schema = &pv_schema,
    .doc = "A piece of storage in the cluster.",
    .settle = pv_settle,
    .check = pv_check,
};
