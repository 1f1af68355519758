/* api/json_parts.h - small parts of objects as JSON again: what is copied from one object to another. */
#pragma once

#include "api/common.h"
#include "api/requirements.h"

json_mut *json_strings(struct json_build *b, struct str_list list);
json_mut *json_labels(struct json_build *b, const struct str_map *labels); /* any map of strings */
json_mut *json_taints(struct json_build *b, const struct taint *taints, uint32_t count);
json_mut *json_expressions(struct json_build *b, const struct expression *items, uint32_t count);
json_mut *json_owner(struct json_build *b, const struct owner_ref *owner);
/* As a NodeClaim has them: requirements_to_expressions. */
json_mut *json_requirements(struct json_build *b, const struct requirements *set,
                            struct arena *arena);
