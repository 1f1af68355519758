/* api/resources.h - arithmetic on lists of resources: "cpu: 3650m, memory: 11Gi, pods: 14".
 *
 * Lists are sorted by name; results live in the arena and share names with their operands. A sum or
 * difference beyond what a quantity can hold is ERR_INVALID and names the resource.
 */
#pragma once

#include "api/schema.h"

const struct resource *resources_find(const struct resources *r, struct str name); /* or NULL */
/* Zero if it is not there. */
struct quantity resources_get(const struct resources *r, struct str name);

/* Every resource of either, added up. */
int resources_merge(struct arena *arena, const struct resources *a, const struct resources *b,
                    struct resources *out, struct err *err);
/* The resources of a, less those of b. What only b has is left out; results may be negative. */
int resources_subtract(struct arena *arena, const struct resources *a, const struct resources *b,
                       struct resources *out, struct err *err);
/* Every resource of either, the larger amount; the resources of both, the smaller amount. */
struct resources resources_max(struct arena *arena, const struct resources *a,
                               const struct resources *b);
struct resources resources_min(struct arena *arena, const struct resources *a,
                               const struct resources *b);

struct shortage { /* the first by name */
    struct str name;
    struct quantity want, have;
};

/* Is everything requested there? Nothing fits into a total with a negative amount: it is overdrawn
 * already, and then `want` is zero or what was asked of that resource. `why` may be NULL. */
bool resources_fit(const struct resources *request, const struct resources *total,
                   struct shortage *why);

/* Is more used than a limit allows? Resources without a limit do not count; equal is fine. In
 * `why`, `want` is the usage and `have` the limit. */
bool resources_exceed(const struct resources *usage, const struct resources *limits,
                      struct shortage *why);

/* {"cpu": "3650m", "memory": "11Gi"} */
json_mut *resources_json(struct json_build *b, const struct resources *r);
