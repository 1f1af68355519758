/* cmd/instance_types_inner.h - the parts of `karve instance-types`.
 *
 * A listing is made in one go (listing_load) and then printed. Everything in it lives until
 * listing_done.
 */
#pragma once

#include "cmd/types_load.h"

/* One thing that is asked of a type: by the pool, by a label of its template, or by --requirement. */
struct ask {
    struct requirement requirement;
    struct str text; /* as it was written: "karpenter.k8s.aws/instance-cpu Gt 4" */
};

struct pool_view {
    /* As in struct loaded_pool, whose references they are. */
    const struct nodepool *pool; /* in the listing's arena if nobody wrote one */
    const struct instance_types *raw, *types;
    struct str_list well_known;
    bool of_ec2;
    const struct ec2nodeclass *maybe_class; /* if it is one */

    struct str name;      /* "": no NodePool, the whole catalogue */
    bool has_class;       /* its node class is among the manifests */
    bool shown;           /* --nodepool did not pick another */
    VEC(struct ask) asks; /* by key, in the order given */
    struct requirements wanted;
    /* Why no type at all can be had: --requirement asks for what the pool rules out. "" if not so. */
    struct str impossible;
    struct bitset shapes;     /* of offerings that are wanted */
    struct bitset fitting;    /* types that are wanted and have such an offering available */
    struct bitset launchable; /* the same, or nothing while minValues are not met */
    LIST(struct min_values) min_values;
    bool min_values_met;
};

struct listing {
    struct arena arena;
    struct manifests manifests, preview; /* of -f, and of --preview */
    struct loaded_types loaded;
    VEC(struct pool_view) pools;                /* one for each that is loaded, in that order */
    VEC(const struct nodeoverlay *) candidates; /* of --preview */
};

/* An enum exit_code; what is wrong has been said on stderr. On EXIT_DONE the listing is whole.
 * Overlays that are rejected are not in the way of that: see listing_rejected. */
int listing_load(struct listing *l, const struct invocation *inv);
void listing_done(struct listing *l);
/* "file:line: " of the manifest that an overlay was read from. */
void listing_place_format(const struct listing *l, const struct nodeoverlay *overlay,
                          struct buf *out);
uint32_t listing_rejected(const struct listing *l); /* overlays that are invalid or in conflict */

/* --- instance_types_why.c --- */

/* Why a type is out: `reason` is one of requirements, offering, minValues, as in plans. */
struct exclusion {
    const char *reason;
    struct str detail;
};
struct exclusion exclusion_of(const struct pool_view *view, uint32_t type, struct arena *arena);
void min_values_format(const struct min_values *m, struct buf *out); /* "KEY: 3 of at least 5" */

/* Types in the order of --sort, ties by name; in the arena. */
enum sort_by { SORT_PRICE, SORT_NAME, SORT_CPU, SORT_MEMORY };
enum sort_by sort_by_of(const char *word);
uint32_t *types_sorted(const struct pool_view *view, const struct bitset *set, enum sort_by by,
                       struct arena *arena, uint32_t *count);
/* The cheapest available offering that is wanted, of that capacity type ("": any); or
 * INSTANCE_TYPE_NONE. */
uint32_t cheapest_offering(const struct pool_view *view, uint32_t type, struct str capacity_type);
bool offering_is_priced(const struct instance_types *types, uint32_t offering);

/* --- printing --- */

struct table_options {
    enum sort_by sort;
    bool wide, all, colour;
};
void listing_table(const struct listing *l, struct table_options options, struct buf *out);
void listing_json(const struct listing *l, enum sort_by sort, struct buf *out);

/* What the candidates would change, one after the other. True: all of them would be accepted. */
bool preview_table(struct listing *l, struct table_options options, struct buf *out);
bool preview_json(struct listing *l, struct buf *out);

/* "ZONES us-east-1*": what all zones of these pools begin with, and how long it is. */
const char *zones_heading(const struct pool_view *views, size_t count, struct arena *arena,
                          size_t *prefix);
