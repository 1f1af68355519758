/* bench/cluster_fake.h - the workload that Karpenter's own scheduling benchmark has: 400 made-up
 * instance types that grow by a core at a time, one pool, and pods of five sorts.
 *
 * A fifth of the pods each is plain, spread over zones, spread over hosts, drawn to its kin in a zone
 * and repelled by its kin on a host. As each of the last needs a node of its own, and the others fit
 * beside them, n pods take n/5 nodes.
 */
#pragma once

#include "bench/cluster_objects.h"

#define FAKE_TYPES 400

const struct instance_type_draft *fake_drafts(struct arena *a); /* FAKE_TYPES of them */
/* The one pool, with these types. */
void fake_add_pool(struct cluster *c, const struct instance_types *types);

void fake_add_diverse_pods(struct cluster *c, uint64_t seed, uint32_t count);
/* All alike; each would rather be in the first zone and alone, in its zone and on its host. */
void fake_add_preferring_pods(struct cluster *c, uint64_t seed, uint32_t count);
