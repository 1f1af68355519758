/* bootstrap/boot.h - what a node boots with: the user's user data merged with what karve must own.
 *
 * Pure: text and structs in, text out. The result is a list of pieces, each with its owner, so that
 * "who set this line?" has an answer; the user data is their concatenation. Equal inputs give equal
 * bytes: maps are sorted everywhere.
 *
 * A family is one file behind `struct family`: to add one, add a file and a line in family.c.
 */
#pragma once

#include "api/ec2nodeclass.h"
#include "bootstrap/kubelet.h"

#define USERDATA_BYTES_MAX 16384
#define USERDATA_BYTES_WARN 14745 /* 90 % */

/* karve.io/userdata-order */
enum userdata_order { ORDER_MANAGED_USER_MANAGED, ORDER_USER_MANAGED };

struct boot_cluster {
    struct str name, endpoint;
    struct str ca;           /* base64 of the PEM; "" or absent: not known */
    struct str service_cidr; /* likewise */
    struct str version;      /* "1.33" */
    struct str dns;          /* the cluster's DNS service; spec.kubelet.clusterDNS wins */
};

struct boot {
    const struct boot_cluster *cluster;
    enum ami_family family; /* resolved: not UNSET */
    enum userdata_order order;
    struct str user_data; /* absent: none; "" is given and empty */
    /* Of the first line of user_data in the manifest, for messages. Line 0: not known. */
    struct text_pos user_data_pos;
    const struct kubelet_config *kubelet; /* NULL: none */
    struct str_map labels; /* of the node; those that a kubelet may not set are not rendered */
    /* Taints, then startup taints; `unregistered` is added when it is not there. */
    LIST(struct taint) taints;
    struct maybe_int max_pods; /* computed; spec.kubelet.maxPods wins. Unset: left out */
    bool raid0;                /* instanceStorePolicy */
    struct str image_version;  /* Bottlerocket: "1.46.0", "latest"; absent: not known */
};

enum boot_owner { OWNER_USER, OWNER_KARVE, OWNER_KUBELET /* spec.kubelet */ };

struct boot_piece { /* a run of bytes with one owner; whole lines where the format allows */
    struct str text;
    enum boot_owner owner;
    struct str note; /* "overrides max-pods = 5 of line 2"; "" if there is nothing to say */
};

struct boot_part { /* what `-o json` lists: MIME parts, or the whole document */
    struct str content_type;
    enum boot_owner owner;
    size_t bytes;
};

struct boot_text {
    LIST(struct boot_piece) pieces;
    LIST(struct boot_part) parts;
    struct str_list warnings;
    struct str text; /* all pieces, joined */
    uint32_t piece_cap, part_cap, warning_cap;
};

/* Render. ERR_INVALID: user data that the family cannot take (with its line and column, and the
 * manifest's line when known), too large (names the parts and their sizes), a cluster setting that
 * is missing, a label or taint that no node can have. Everything lives in the arena. */
int boot_render(struct arena *arena, const struct boot *boot, struct boot_text *out,
                struct err *err);

bool boot_is_address(struct str text);              /* IPv4 or IPv6 */
const char *boot_owner_name(enum boot_owner owner); /* "user", "karve", "kubelet configuration" */

/* Could nodes of this class boot? Otherwise what its condition ValidationSucceeded says: a reason
 * (UserDataMissing, UserDataInvalid, UserDataSizeLimitExceeded, InvalidKubeletConfiguration) and a message, in the arena.
 * A cluster that is not known yet (NULL) stands with short words in its place. */
struct boot_problem {
    const char *reason;
    struct str message;
};
bool boot_class_ok(struct arena *arena, const struct ec2nodeclass *class_,
                   const struct boot_cluster *maybe_cluster, struct boot_problem *why);

/* What the annotation karve.io/userdata-order says. */
enum userdata_order boot_order_of(const struct ec2nodeclass *class_);

/* --- families --- */

struct family_device {
    const char *name;
    uint32_t gib;
};

struct family {
    enum ami_family id;
    const char *name;                    /* "AL2023" */
    const char *alias;                   /* "al2023"; NULL: none */
    const struct family_device *devices; /* default block devices, gp3 and encrypted */
    uint32_t device_count;
    const char *ephemeral_device; /* NULL: not known */
    uint32_t ephemeral_default_gib;
    bool reserved_by_eni_pods;  /* kube-reserved memory counts ENI-limited pods, whatever maxPods */
    bool eni_limited_pods;      /* else 110 */
    bool pods_per_core;         /* honoured */
    bool any_kubelet_field;     /* reaches the node */
    bool checks_kubelet_fields; /* fields outside the known list are refused */
    bool do_not_sync_taints;    /* gets the label */
    bool windows;
    const char *windows_build;              /* "10.0.20348" */
    bool needs_cluster, needs_service_cidr; /* flags that must be there */
    int (*render)(struct arena *arena, const struct boot *boot, struct boot_text *out,
                  struct err *err);
};

const struct family *family_of(enum ami_family id);   /* AMI_FAMILY_UNSET behaves as AL2 */
const struct family *family_by_name(struct str name); /* NULL: no such */

/* Shared by families (boot_args.c): the node's labels and taints as the kubelet may set them. */
struct str_map boot_node_labels(struct arena *arena, const struct boot *boot);
typedef LIST(struct taint) taint_list;
taint_list boot_node_taints(struct arena *arena, const struct boot *boot);
const char *boot_taint_effect(const struct taint *taint); /* "NoSchedule" */
struct maybe_int boot_max_pods(const struct boot *boot);  /* the user's, else the computed one */
struct str boot_cluster_dns(const struct boot *boot);     /* the first; STR_NONE: not known */
/* "--node-labels=... --max-pods=29": the arguments of AL2 and Windows, in their fixed order, for
 * single quotes of the shell and of PowerShell. What spec.kubelet says is its own piece. */
void boot_add_kubelet_args(struct arena *arena, const struct boot *boot, struct boot_text *out);

/* For families, as they render (boot.c). `text` is what boot_render joins: families leave it. */
void boot_add_piece(struct arena *arena, struct boot_text *out, struct str text,
                    enum boot_owner owner, struct str note);
void boot_add_part(struct arena *arena, struct boot_text *out, struct str content_type,
                   enum boot_owner owner, size_t bytes);
void boot_warn(struct arena *arena, struct boot_text *out, const char *fmt, ...) KV_PRINTF(3, 4);
/* A place in the user data, for messages: "line 14 (line 3, column 5 of the user data)". Without
 * the manifest's line if that is not known; column 0 is left out. */
struct str boot_user_place(struct arena *arena, const struct boot *boot, struct text_pos at);
