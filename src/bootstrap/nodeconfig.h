/* bootstrap/nodeconfig.h - nodeadm's NodeConfig: read, and merged as nodeadm merges.
 *
 * A node of AL2023 may be given several; nodeadm merges them from top to bottom. karve's comes
 * last.
 */
#pragma once

#include "codec/yaml.h"

#define NODECONFIG_API_VERSION "node.eks.aws/v1alpha1"
#define NODECONFIG_BYTES_MAX 65536 /* EC2 takes a quarter of that */

/* Does the text mean to be one? It starts with apiVersion or kind (comments and --- aside), or is
 * a YAML mapping that has them; or, with `any_mapping`, whatever is in it. */
bool nodeconfig_is(struct str text, bool any_mapping);

/* One document, of that kind, with maps where nodeadm expects maps. On failure `at` is where in the
 * text. docs_done ends it, and `text` must live until then. */
int nodeconfig_read(struct str text, struct docs *out, struct text_pos *at, struct err *err);

/* What nodeadm makes of two, canonical JSON in and out (`base` may be empty: none):
 *
 * - fields merge one by one and the later one wins, unless it is empty ("", 0, false, [], {},
 *   null);
 * - inside kubelet.config, containerd.baseRuntimeSpec, featureGates and instance.environment,
 *   which are maps to nodeadm, only [] and null are empty;
 * - lists are replaced, but kubelet.flags are appended: the kubelet reads them from left to right;
 * - texts of containerd.config are TOML and nodeadm merges them so; here they stand one after the
 *   other.
 */
void nodeconfig_merge(struct str base, struct str over, struct buf *out);
