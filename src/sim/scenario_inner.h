/* What the files of the scenario reader share.
 *
 * The text is read into a tree; scenario_format.c checks it against its tables; the other files take
 * the values over and check what tables cannot say (names that mean nothing, objects that a cluster
 * would refuse). Every mistake is a line in `wrong`, so that one run tells all of them.
 */
#pragma once

#include "api/place.h"
#include "base/map.h"
#include "codec/duration.h"
#include "codec/yaml.h"
#include "sim/scenario.h"

struct scenario_reader {
    struct scenario *s;
    struct arena *arena; /* of the scenario */
    const char *path;    /* of the file */
    const struct doc *doc;
    struct arena scratch;
    struct buf wrong; /* "file:line:col: field: what", a line each, as many as an error holds */
    uint32_t wrong_count, untold_count;
    VEC(struct str) objects; /* JSON texts, so far */
    struct str_table names;  /* "Kind namespace/name": what there is, at the start or later */
    bool has_kwok_class;
};

/* A mistake in a file; `field` may be empty. */
void scenario_wrong(struct scenario_reader *r, const char *path, const struct doc *doc,
                    const json_val *at, struct str field, struct str what);
void scenario_wrong_at(struct scenario_reader *r, const struct place *place, const char *fmt, ...)
    KV_PRINTF(3, 4);
/* Everything in a report, each path behind `prefix`. */
void scenario_wrong_report(struct scenario_reader *r, const char *path, const struct doc *doc,
                           const char *prefix, const struct report *report);

/* --- scenario_format.c --- */

extern const struct schema scenario_schema;
extern const char *const action_names[]; /* as in `chaos.actions`: by enum action_kind */
/* A delay: "30s" or {min: 20s, max: 60s}. False: it is neither. */
bool span_of_json(const json_val *v, struct span *out);
struct fault_rates rates_of_json(const json_val *v); /* what it leaves out is 0 */

/* --- scenario_objects.c --- */

/* Check an object; its text, or STR_NONE if something is wrong with it. `prefix` is the path of it. */
void scenario_take_object(struct scenario_reader *r, const char *path, const struct doc *doc,
                          const char *prefix, const json_val *v, struct str *out);
void scenario_read_objects(struct scenario_reader *r, const struct place *top);
/* The names of an object, or of a list of them, for scenario_has. */
void scenario_remember(struct scenario_reader *r, const json_val *maybe_v);
bool scenario_has(struct scenario_reader *r, const char *kind, struct str namespace_,
                  struct str name);
/* A path that the file names, seen from where the file is. */
struct str scenario_path_beside(struct arena *arena, const char *file, struct str path);

/* --- scenario_timeline.c --- */

void scenario_read_timeline(struct scenario_reader *r, const struct place *top);
void scenario_read_chaos(struct scenario_reader *r, const struct place *top);
