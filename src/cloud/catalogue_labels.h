/* cloud/catalogue_labels.h - the labels of an EC2 instance type, as the AWS provider has them. */
#pragma once

#include "api/requirements.h"
#include "bootstrap/machine.h"

#define LABEL_AWS(name) "karpenter.k8s.aws/" name
#define LABEL_ZONE_ID "topology.k8s.aws/zone-id"

/* What is not of the hardware. Lists are sorted; empty: the label does not exist. */
struct type_placement {
    struct str region;
    struct str os; /* "" on a machine that cannot run it */
    struct str windows_build;
    struct str_list zones, zone_ids, capacity_types;
    struct str_list reservation_ids, reservation_types, reservation_interruptible;
};

/* Every well-known key, sorted; one that does not apply is DoesNotExist. In the arena, sharing the
 * placement's lists and the machine's texts. */
struct requirements machine_labels(struct arena *arena, const struct machine *machine,
                                   const struct type_placement *placement);
