/* bootstrap/families.h - the families, one file each. Only family.c needs them all. */
#pragma once

#include "api/schema.h"

struct family;

extern const struct family family_al2, family_al2023, family_bottlerocket, family_custom;
extern const struct family family_windows2019, family_windows2022, family_windows2025;

/* The reservations in Bottlerocket user data, as written; a table that is not there gives an empty
 * map, and so does absent or empty user data. Keys sorted, all of it in the arena. ERR_INVALID: not
 * TOML, or one of them is no table of strings; with line and column. */
int bottlerocket_reservations(struct arena *arena, struct str user_data, struct str_map *kube,
                              struct str_map *system, struct str_map *eviction, struct err *err);
