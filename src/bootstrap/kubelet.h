/* bootstrap/kubelet.h - spec.kubelet of a node class: the part of a kubelet's configuration that
 * karve reads, checks and passes on.
 */
#pragma once

#include "api/ec2nodeclass.h"

struct kubelet_config { /* absent: not set by the user */
    struct str_list cluster_dns;
    struct maybe_int max_pods, pods_per_core;
    struct maybe_int eviction_max_pod_grace_s, image_gc_high, image_gc_low;
    uint8_t cpu_cfs_quota; /* enum tri */
    bool has_system_reserved, has_kube_reserved, has_eviction_hard, has_eviction_soft,
        has_eviction_soft_grace;
    struct str_map system_reserved, kube_reserved; /* quantities as written */
    struct str_map eviction_hard, eviction_soft;   /* percentages or quantities, as written */
    struct str_map eviction_soft_grace;            /* as Go prints durations: "1m30s" */
    struct str json; /* the whole object, canonical; absent: no spec.kubelet */
};

/* Decode and check `json` (spec.kubelet's canonical text; absent gives an empty configuration) for nodes of
 * this family: what that family cannot pass on is refused. ERR_INVALID names the field
 * ("spec.kubelet.evictionHard[\"memory.available\"]: ..."). Lives in the arena. */
int kubelet_config_read(struct arena *arena, struct str json, enum ami_family family,
                        struct kubelet_config *out, struct err *err);
