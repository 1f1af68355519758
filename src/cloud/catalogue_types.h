/* cloud/catalogue_types.h - the built-in machines as a node class would launch them. */
#pragma once

#include "cloud/catalogue.h"

/* A class's status lists its reservations, but not how many instances are left in each. */
#define CATALOGUE_RESERVATION_CAPACITY 1

/* All of them, sorted by name, in the arena; as many as catalogue_machine_count. Without a class:
 * AL2023 in every zone. ERR_INVALID: the class's kubelet configuration or user data is broken. */
int catalogue_types(struct arena *arena, const struct catalogue_region *region,
                    const struct ec2nodeclass *maybe_class,
                    const struct allocatable_options *allocatable,
                    const struct instance_type_draft **out, struct err *err);
