/* api/hash.h - hashes that are stored on objects to find out later whether a node still is what
 * its pool and its class ask for.
 *
 * They outlive the program that wrote them, so they are part of its interface: changing what a
 * hash covers means a new version string, and claims with another version are stamped anew instead
 * of being replaced.
 */
#pragma once

#include "api/ec2nodeclass.h"
#include "api/nodepool.h"

#define NODEPOOL_HASH_VERSION "v3"
#define NODECLASS_HASH_VERSION "karve-1"

#define ANNOTATION_NODECLASS_HASH "karpenter.k8s.aws/ec2nodeclass-hash"
#define ANNOTATION_NODECLASS_HASH_VERSION "karpenter.k8s.aws/ec2nodeclass-hash-version"

#define HASH_TEXT_MAX 24
/* As it is written in annotations: decimal. Returns the length. */
size_t hash_format(uint64_t hash, char out[HASH_TEXT_MAX]);

/* Of all that makes a node drift when it changes: the template without its requirements. Bit for
 * bit the hash that Karpenter writes, so that either can take over from the other. */
uint64_t nodepool_hash(const struct nodepool *pool);

/* Of all that cannot change on a running instance. What is selected by terms (images, subnets,
 * groups) drifts by what it resolves to, and is not in it. */
uint64_t ec2nodeclass_hash(const struct ec2nodeclass *class_, struct str cluster_ca_bundle);
