/* api/place.h - where a problem beyond the schema is: a path into an object and the value there.
 *
 *     struct place top = place_root(root), spec = place_member(&top, "spec");
 *     place_error(report, &spec, "has no %s", what);
 *
 * A place points at the one above it, so a chain of them lives on the stack of whoever walks.
 */
#pragma once

#include "api/schema.h"

struct place {
    struct path path;   /* of no meaning for the root */
    const json_val *at; /* the value, or the nearest parent that there is */
    bool root;
    bool found; /* `at` is the value itself */
};

struct place place_root(const json_val *root);
struct place place_member(const struct place *up, const char *name); /* null counts as absent */
struct place place_member_str(const struct place *up, struct str name);
/* An item or a member met while walking the list or the map `up`: nothing is searched for. A key is
 * written ["key"]. */
struct place place_item(const struct place *up, uint32_t ix, const json_val *item);
struct place place_key(const struct place *up, const json_val *key, const json_val *value);

static inline const struct path *place_path(const struct place *place)
{
    return place->root ? NULL : &place->path;
}

#define place_error(report, place_, ...)                                                           \
    report_add(report, PROBLEM_ERROR, place_path(place_), (place_)->at, __VA_ARGS__)
#define place_warning(report, place_, ...)                                                         \
    report_add(report, PROBLEM_WARNING, place_path(place_), (place_)->at, __VA_ARGS__)
