/* api/labels.h - the label keys that mean something to karve, and the rules about them.
 *
 * A well-known label may be left undefined by a NodePool and then means "any". A restricted label
 * may not be set by users. Both lists grow with the provider, which is chosen by the group of
 * the node class: there is no registry to fill, each set of rules is a constant.
 */
#pragma once

#include "api/schema.h"

#define LABEL_NODEPOOL "karpenter.sh/nodepool"
#define LABEL_CAPACITY_TYPE "karpenter.sh/capacity-type"
#define LABEL_REGISTERED "karpenter.sh/registered"
#define LABEL_INITIALIZED "karpenter.sh/initialized"
#define LABEL_DO_NOT_SYNC_TAINTS "karpenter.sh/do-not-sync-taints"
#define LABEL_ZONE "topology.kubernetes.io/zone"
#define LABEL_REGION "topology.kubernetes.io/region"
#define LABEL_INSTANCE_TYPE "node.kubernetes.io/instance-type"
#define LABEL_WINDOWS_BUILD "node.kubernetes.io/windows-build"
#define LABEL_EXCLUDE_BALANCERS "node.kubernetes.io/exclude-from-external-load-balancers"
#define LABEL_ARCH "kubernetes.io/arch"
#define LABEL_OS "kubernetes.io/os"
#define LABEL_HOSTNAME "kubernetes.io/hostname"

#define CAPACITY_ON_DEMAND "on-demand"
#define CAPACITY_SPOT "spot"
#define CAPACITY_RESERVED "reserved"

#define ANNOTATION_DO_NOT_DISRUPT "karpenter.sh/do-not-disrupt"
#define ANNOTATION_NODEPOOL_HASH "karpenter.sh/nodepool-hash"
#define ANNOTATION_NODEPOOL_HASH_VERSION "karpenter.sh/nodepool-hash-version"
#define ANNOTATION_TERMINATION_TIMESTAMP "karpenter.sh/nodeclaim-termination-timestamp"
#define ANNOTATION_MIN_VALUES_RELAXED "karpenter.sh/nodeclaim-min-values-relaxed"
#define ANNOTATION_PRICE_OVERLAY "karpenter.sh/price-overlay-applied"
#define ANNOTATION_CAPACITY_OVERLAY "karpenter.sh/capacity-overlay-applied"
#define ANNOTATION_POD_DELETION_COST "controller.kubernetes.io/pod-deletion-cost"

#define TAINT_UNREGISTERED "karpenter.sh/unregistered" /* NoExecute */
#define TAINT_DISRUPTED "karpenter.sh/disrupted"       /* NoSchedule */

#define FINALIZER_TERMINATION "karpenter.sh/termination"

struct label_rules {
    struct str_list well_known;         /* sorted */
    struct str_list restricted_domains; /* sorted; their subdomains count too */
};

/* The rules for node classes of that API group ("karpenter.k8s.aws", "karpenter.kwok.sh"); those of
 * Karpenter itself for a group that we do not know. */
const struct label_rules *label_rules_for(struct str class_group);

/* The same rules with further well-known keys: a catalogue brings its own. In `arena`. */
struct label_rules label_rules_extend(struct arena *arena, const struct label_rules *rules,
                                      struct str_list keys);

bool label_is_well_known(const struct label_rules *rules, struct str key);
bool label_is_restricted(const struct label_rules *rules, struct str key);

/* The current name of a key that had another one ("beta.kubernetes.io/arch"), else the key. */
struct str label_normalise(struct str key);
