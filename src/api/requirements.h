/* api/requirements.h - what the labels of a node must be: a set of requirements, one per key.
 *
 * Direction matters: the first operand is the node side (a NodePool, an instance type, a node), the
 * second what comes in (a pod). Memory is as in api/requirement.h.
 */
#pragma once

#include "api/labels.h"
#include "api/requirement.h"

struct requirements { /* sorted by key */
    const struct requirement *items;
    uint32_t count;
};

typedef LIST(struct expression) expression_list;

/* --- building; requirements on the same key are intersected --- */

int requirements_from_expressions(struct arena *arena, const struct expression *items,
                                  uint32_t count, struct requirements *out, struct err *err);
struct requirements requirements_from_labels(struct arena *arena, const struct str_map *labels);

/* What a pod asks for: its node selector, a term of its required node affinity (the first; the
 * others are for relaxation) and, unless only strict requirements are wanted, the heaviest
 * preferred term. ERR_INVALID for a term with matchFields. */
int requirements_from_pod(struct arena *arena, const struct str_map *node_selector,
                          const struct node_selector_term *maybe_required,
                          const struct node_selector_term *maybe_preferred,
                          struct requirements *out, struct err *err);

struct requirements requirements_add(struct arena *arena, const struct requirements *set,
                                     const struct requirement *r);
struct requirements requirements_merge(struct arena *arena, const struct requirements *a,
                                       const struct requirements *b);

/* --- asking --- */

const struct requirement *requirements_find(const struct requirements *set, struct str key);
/* Undefined is Exists. */
struct requirement requirements_get(const struct requirements *set, struct str key);

enum mismatch_why {
    MISMATCH_NONE,
    MISMATCH_UNDEFINED,       /* the node side does not have the key */
    MISMATCH_NO_INTERSECTION, /* it has, and no value suits both */
};

struct mismatch { /* the first in the order of keys; undefined keys before the others */
    enum mismatch_why why;
    const struct requirement *node;     /* NULL if undefined */
    const struct requirement *incoming; /* has the key */
};

/* For every key that both have, some value must suit both. NotIn and DoesNotExist are at peace with
 * one another: the label may be missing. `why` may be NULL. */
bool requirements_intersects(const struct requirements *node, const struct requirements *incoming,
                             struct mismatch *why);

/* Further, a key of `incoming` that the node side does not define must be NotIn or DoesNotExist, or
 * be in `may_be_undefined` (sorted): the well-known labels for nodes yet to be launched, nothing
 * for nodes that are there. */
bool requirements_compatible(const struct requirements *node, const struct requirements *incoming,
                             struct str_list may_be_undefined, struct mismatch *why);

/* The key that was probably meant: a near miss, or the same name under another prefix; among the
 * node side's keys and `known`. STR_NONE if nothing is near. */
struct str requirements_nearest_key(const struct requirements *node, struct str_list known,
                                    struct str key);

/* --- writing --- */

/* As a NodeClaim has them. A key with bounds and excluded values takes several items, so that
 * reading them back gives the same set. */
expression_list requirements_to_expressions(struct arena *arena, const struct requirements *set);

/* Comma-joined, in the order of keys, the host name left out. */
void requirements_format(const struct requirements *set, struct buf *out);
/* "key team: not defined; did you mean ...?", "zone In [a] and zone In [b] have nothing in common".
 * `node` and `known` are where near keys are looked for. */
void requirements_format_mismatch(const struct mismatch *m, const struct requirements *node,
                                  struct str_list known, struct buf *out);

/* --- minValues --- */

struct min_values {
    struct str key;
    int64_t want;
    uint32_t have; /* different values that the types offer */
};

struct min_values_result {
    bool met;
    uint32_t type_count;          /* leading types that are needed; all of them if not met */
    LIST(struct min_values) keys; /* those with minValues, sorted */
};

/* For each key with minValues, the types' values for it together must be at least that many; all
 * keys at once. Types count in the order given. */
struct min_values_result requirements_min_values(struct arena *arena,
                                                 const struct requirements *set,
                                                 const struct requirements *types,
                                                 uint32_t type_count);
/* Best effort: each minValues lowered to what there is. */
struct requirements requirements_relax(struct arena *arena, const struct requirements *set,
                                       const struct min_values_result *result);

/* --- finding mistakes --- */

enum contradiction_why {
    CONTRADICTION_VALUES,     /* no label could satisfy them all */
    CONTRADICTION_MIN_VALUES, /* fewer values are left than minValues asks for */
};

struct contradiction {
    enum contradiction_why why;
    struct str key;
    uint32_t at;   /* the item after which nothing is left */
    uint32_t with; /* an earlier one it cannot stand beside; `at` itself if it is alone to blame */
    int64_t have, want; /* of minValues */
};

struct contradictions {
    const struct contradiction *items;
    uint32_t count;
};

/* Can any node satisfy these? At most one contradiction per key, in the order of the keys' first
 * items. Items that make no sense by themselves (requirement_from_expression fails) are passed
 * over. */
struct contradictions requirements_contradictions(struct arena *arena,
                                                  const struct expression *items, uint32_t count);
