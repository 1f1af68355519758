/* api/storage.h - claims, volumes, classes and what is attached where: all that decides in which
 * zone a pod with volumes may run, how many volumes a node takes, and when a node has none left. */
#pragma once

#include "api/builtin.h"

/* --- PersistentVolumeClaim --- */

enum volume_mode { VOLUME_MODE_UNSET, VOLUME_MODE_FILESYSTEM, VOLUME_MODE_BLOCK };
enum pvc_phase { PVC_UNSET, PVC_PENDING, PVC_BOUND, PVC_LOST };

struct pvc_resources {
    struct resources requests;
};

struct pvc_spec {
    struct str_list access_modes;
    const struct label_selector *maybe_selector;
    struct pvc_resources resources;
    struct str volume_name;        /* "" or absent: not bound */
    struct str storage_class_name; /* absent: the default class; "": no class */
    uint8_t volume_mode;           /* enum volume_mode */
};

struct pvc_status {
    uint8_t phase; /* enum pvc_phase */
    struct resources capacity;
};

struct pvc {
    struct object object;
    struct pvc_spec spec;
    struct pvc_status status;
};

extern const struct kind pvc_kind;

static inline const struct pvc *pvc_of(const struct object *object)
{
    KV_ASSERT(object->kind == &pvc_kind);
    return (const struct pvc *)object;
}

/* One of a StatefulSet's volumeClaimTemplates: each replica gets a claim NAME-SET-ORDINAL. */
struct pvc_template_meta {
    struct str name;
    struct str_map labels, annotations;
};

struct pvc_template {
    struct pvc_template_meta meta;
    struct pvc_spec spec;
};
extern const struct schema pvc_template_schema;

bool pvc_is_bound(const struct pvc *pvc); /* to a volume, and the binder has finished */

/* --- PersistentVolume --- */

enum pv_phase {
    PV_UNSET,
    PV_PENDING,
    PV_AVAILABLE,
    PV_BOUND,
    PV_RELEASED,
    PV_FAILED,
};
enum reclaim_policy { RECLAIM_UNSET, RECLAIM_RETAIN, RECLAIM_DELETE, RECLAIM_RECYCLE };

struct pv_csi {
    struct str driver, handle;
};

struct pv_path { /* of local and hostPath */
    struct str path;
};

struct pv_in_tree { /* a volume of a plugin that a CSI driver has taken over */
    struct str handle;
};

struct pv_node_terms {
    LIST(struct node_selector_term) terms; /* one of them must match */
};

struct pv_affinity {
    struct pv_node_terms required;
};

struct pv_spec {
    struct resources capacity;
    struct str_list access_modes;
    const struct object_reference *maybe_claim;
    const struct pv_csi *maybe_csi;
    const struct pv_path *maybe_local, *maybe_host_path;
    const struct pv_in_tree *maybe_aws_ebs, *maybe_gce_pd, *maybe_azure_disk, *maybe_azure_file;
    const struct pv_in_tree *maybe_cinder, *maybe_vsphere, *maybe_portworx;
    const struct pv_affinity *maybe_affinity;
    struct str storage_class_name;
    uint8_t reclaim_policy; /* enum reclaim_policy; unset is Retain */
    uint8_t volume_mode;    /* enum volume_mode */
    /* The CSI driver that attaches it; in-tree volumes name the one that took them over. Absent:
     * none (NFS, local). */
    struct str driver;
};

struct pv_status {
    uint8_t phase; /* enum pv_phase */
};

struct pv {
    struct object object;
    struct pv_spec spec;
    struct pv_status status;
};

extern const struct kind pv_kind;

static inline const struct pv *pv_of(const struct object *object)
{
    KV_ASSERT(object->kind == &pv_kind);
    return (const struct pv *)object;
}

/* --- StorageClass --- */

enum binding_mode { BINDING_UNSET, BINDING_IMMEDIATE, BINDING_WAIT };

struct topology_term {
    LIST(struct expression) expressions; /* all must hold; each is "key in values" */
};

struct storage_class {
    struct object object;
    struct str provisioner;
    uint8_t reclaim_policy;                        /* enum reclaim_policy; unset is Delete */
    uint8_t binding_mode;                          /* enum binding_mode; unset is Immediate */
    LIST(struct topology_term) allowed_topologies; /* one of them must match; none: anywhere */
};

extern const struct kind storage_class_kind;

static inline const struct storage_class *storage_class_of(const struct object *object)
{
    KV_ASSERT(object->kind == &storage_class_kind);
    return (const struct storage_class *)object;
}

bool storage_class_is_default(const struct storage_class *sc);
bool storage_class_waits(const struct storage_class *sc); /* binds when the first pod is placed */

/* The CSI driver behind an in-tree provisioner ("kubernetes.io/aws-ebs" to "ebs.csi.aws.com"); any
 * other name is a driver's own and comes back as it is. */
struct str storage_driver(struct str provisioner);

/* --- CSINode --- */

struct csi_allocatable {
    struct maybe_int count; /* unset: no limit */
};

struct csi_driver {
    struct str name, node_id;
    struct str_list topology_keys;
    struct csi_allocatable allocatable;
};

struct csi_node_spec {
    LIST(struct csi_driver) drivers;
};

struct csi_node { /* has the name of its Node */
    struct object object;
    struct csi_node_spec spec;
};

extern const struct kind csi_node_kind;

static inline const struct csi_node *csi_node_of(const struct object *object)
{
    KV_ASSERT(object->kind == &csi_node_kind);
    return (const struct csi_node *)object;
}

const struct csi_driver *csi_node_driver(const struct csi_node *node,
                                         struct str name); /* or NULL */

/* --- VolumeAttachment --- */

struct attachment_source {
    struct str volume_name; /* of the PersistentVolume; absent for an inline volume */
};

struct attachment_spec {
    struct str attacher, node_name;
    struct attachment_source source;
};

struct attachment_status {
    bool attached;
};

struct volume_attachment {
    struct object object;
    struct attachment_spec spec;
    struct attachment_status status;
};

extern const struct kind volume_attachment_kind;

static inline const struct volume_attachment *volume_attachment_of(const struct object *object)
{
    KV_ASSERT(object->kind == &volume_attachment_kind);
    return (const struct volume_attachment *)object;
}
