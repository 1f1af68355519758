/* api/describe.h - an object in a few words, for tables that people read. */
#pragma once

#include "api/object.h"

/* "12 pods of 500m cpu, 1Gi memory"; "weight 10, limits cpu 1k"; nothing for a kind of which the
 * name says enough. */
void object_describe(const struct object *object, struct buf *out);
