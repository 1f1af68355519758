/* bench/types.h - instance types as a cloud has them, made from a seed: 35 label keys, 6 zones, 2
 * capacity types, a twentieth of the offerings not available. */
#pragma once

#include "cloud/instance_types.h"

/* In the arena. Different names; equal seeds give equal types. */
const struct instance_type_draft *type_drafts(struct arena *arena, uint64_t seed,
                                              uint32_t type_count);
