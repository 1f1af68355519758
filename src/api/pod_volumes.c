/* Tables of a pod's volumes: those that decide where it may run are kept, and what images they are of;
 * the rest is only checked. */
#include "api/pod_tables.h"

#define REQUIRED .flags = FIELD_REQUIRED

static const struct rule dns_label_rule = { .check = dns1123_label_problem };
static const struct rule dns_subdomain_rule = { .check = dns1123_subdomain_problem };

#define T struct volume_claim_source
static const struct field claim_source_fields[] = {
    FIELD(STR, name, "claimName", NULL, REQUIRED, .rule = &dns_subdomain_rule),
    FIELD(BOOL, read_only, "readOnly", NULL),
};
#undef T
static const struct schema claim_source_schema =
    SCHEMA("PersistentVolumeClaimVolumeSource", struct volume_claim_source, claim_source_fields);

#define T struct volume_id_source
static const struct field csi_source_fields[] = {
    FIELD(STR, id, "driver", NULL, REQUIRED, .rule = &text_rule),
    CHECKED(BOOL, "readOnly"),
    CHECKED(STR, "fsType"),
    CHECKED(STR_MAP, "volumeAttributes"),
    CHECKED(STRUCT, "nodePublishSecretRef", .sub = &local_ref_schema),
};
static const struct field aws_disk_fields[] = {
    FIELD(STR, id, "volumeID", NULL, REQUIRED, .rule = &text_rule),
    CHECKED(STR, "fsType"),
    CHECKED(INT, "partition", .rule = &int32_rule),
    CHECKED(BOOL, "readOnly"),
};
static const struct field gce_disk_fields[] = {
    FIELD(STR, id, "pdName", NULL, REQUIRED, .rule = &text_rule),
    CHECKED(STR, "fsType"),
    CHECKED(INT, "partition", .rule = &int32_rule),
    CHECKED(BOOL, "readOnly"),
};
static const struct field azure_disk_fields[] = {
    FIELD(STR, id, "diskName", NULL, REQUIRED, .rule = &text_rule),
    CHECKED(STR, "diskURI", REQUIRED),
    CHECKED(STR, "cachingMode"),
    CHECKED(STR, "fsType"),
    CHECKED(BOOL, "readOnly"),
    CHECKED(STR, "kind"),
};
static const struct field cinder_disk_fields[] = {
    FIELD(STR, id, "volumeID", NULL, REQUIRED, .rule = &text_rule),
    CHECKED(STR, "fsType"),
    CHECKED(BOOL, "readOnly"),
    CHECKED(STRUCT, "secretRef", .sub = &local_ref_schema),
};
static const struct field image_source_fields[] = {
    FIELD(STR, id, "reference", NULL),
    CHECKED(ENUM, "pullPolicy", RULE(ENUMS("Always", "IfNotPresent", "Never"))),
};
#undef T
static const struct schema csi_source_schema =
    SCHEMA("CSIVolumeSource", struct volume_id_source, csi_source_fields);
static const struct schema aws_disk_schema =
    SCHEMA("AWSElasticBlockStoreVolumeSource", struct volume_id_source, aws_disk_fields);
static const struct schema gce_disk_schema =
    SCHEMA("GCEPersistentDiskVolumeSource", struct volume_id_source, gce_disk_fields);
static const struct schema azure_disk_schema =
    SCHEMA("AzureDiskVolumeSource", struct volume_id_source, azure_disk_fields);
static const struct schema cinder_disk_schema =
    SCHEMA("CinderVolumeSource", struct volume_id_source, cinder_disk_fields);
static const struct schema image_source_schema =
    SCHEMA("ImageVolumeSource", struct volume_id_source, image_source_fields);

static const struct rule access_modes_rule = {
    .items_min = 1,
    .item = &(const struct rule){ ENUMS("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany",
                                        "ReadWriteOncePod") },
};

#define T struct volume_template_spec
static const struct field volume_template_spec_fields[] = {
    FIELD(STRS, access_modes, "accessModes", NULL, REQUIRED, .rule = &access_modes_rule),
    FIELD(OPTION, maybe_selector, "selector", NULL, .sub = &label_selector_schema),
    FIELD(STRUCT, resources, "resources", NULL, REQUIRED, .sub = &resource_needs_schema),
    FIELD(STR, volume_name, "volumeName", NULL),
    FIELD(STR, storage_class_name, "storageClassName", NULL),
    CHECKED(ENUM, "volumeMode", RULE(ENUMS("Filesystem", "Block"))),
    FIELD_KNOWN("dataSource"),
    FIELD_KNOWN("dataSourceRef"),
    CHECKED(STR, "volumeAttributesClassName"),
};
#undef T
static const struct schema volume_template_spec_schema =
    SCHEMA("PersistentVolumeClaimSpec", struct volume_template_spec, volume_template_spec_fields);

#define T struct volume_template
static const struct field volume_template_fields[] = {
    FIELD(STRUCT, meta, "metadata", NULL, .sub = &meta_template_schema),
    FIELD(STRUCT, spec, "spec", NULL, REQUIRED, .sub = &volume_template_spec_schema),
};
#undef T
static const struct schema volume_template_schema =
    SCHEMA("PersistentVolumeClaimTemplate", struct volume_template, volume_template_fields);

#define T struct volume_ephemeral_source
static const struct field ephemeral_source_fields[] = {
    FIELD(OPTION, maybe_template, "volumeClaimTemplate", NULL, REQUIRED,
          .sub = &volume_template_schema),
};
#undef T
static const struct schema ephemeral_source_schema =
    SCHEMA("EphemeralVolumeSource", struct volume_ephemeral_source, ephemeral_source_fields);

#define T struct volume
static const struct field volume_fields[] = {
    FIELD(STR, name, "name", NULL, REQUIRED, .rule = &dns_label_rule),
    CHECKED(STRUCT, "hostPath", .sub = &host_path_schema),
    CHECKED(STRUCT, "emptyDir", .sub = &empty_dir_schema),
    FIELD(STRUCT, gce_disk, "gcePersistentDisk", NULL, .sub = &gce_disk_schema),
    FIELD(STRUCT, aws_disk, "awsElasticBlockStore", NULL, .sub = &aws_disk_schema),
    FIELD_KNOWN("gitRepo"),
    CHECKED(STRUCT, "secret", .sub = &secret_volume_schema),
    CHECKED(STRUCT, "nfs", .sub = &nfs_volume_schema),
    FIELD_KNOWN("iscsi"),
    FIELD_KNOWN("glusterfs"),
    FIELD(STRUCT, claim, "persistentVolumeClaim", NULL, .sub = &claim_source_schema),
    FIELD_KNOWN("rbd"),
    FIELD_KNOWN("flexVolume"),
    FIELD(STRUCT, cinder_disk, "cinder", NULL, .sub = &cinder_disk_schema),
    FIELD_KNOWN("cephfs"),
    FIELD_KNOWN("flocker"),
    CHECKED(STRUCT, "downwardAPI", .sub = &downward_volume_schema),
    FIELD_KNOWN("fc"),
    FIELD_KNOWN("azureFile"),
    CHECKED(STRUCT, "configMap", .sub = &config_map_volume_schema),
    FIELD_KNOWN("vsphereVolume"),
    FIELD_KNOWN("quobyte"),
    FIELD(STRUCT, azure_disk, "azureDisk", NULL, .sub = &azure_disk_schema),
    FIELD_KNOWN("photonPersistentDisk"),
    CHECKED(STRUCT, "projected", .sub = &projected_volume_schema),
    FIELD_KNOWN("portworxVolume"),
    FIELD_KNOWN("scaleIO"),
    FIELD_KNOWN("storageos"),
    FIELD(STRUCT, csi, "csi", NULL, .sub = &csi_source_schema),
    FIELD(STRUCT, ephemeral, "ephemeral", NULL, .sub = &ephemeral_source_schema),
    FIELD(STRUCT, image, "image", NULL, .sub = &image_source_schema),
};
#undef T
const struct schema volume_schema = SCHEMA("Volume", struct volume, volume_fields);
