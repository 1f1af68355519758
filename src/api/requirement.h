/* api/requirement.h - what one label must be: the algebra of node selection, one key at a time.
 *
 * A requirement is a set of label values: the listed ones, or (complement) all but the listed ones,
 * narrowed by bounds on the label read as an integer. The set without members stands for "the label
 * is not there".
 *
 * What is built from outside data is copied into the arena. Results of the algebra live in the
 * arena they are given and share values with their operands, which must live as long. Nothing is
 * changed once it is built.
 */
#pragma once

#include "api/common.h"

struct requirement {
    struct str key;              /* an alias is replaced by the current name */
    struct str_list values;      /* sorted, no duplicates */
    struct maybe_int gte, lte;   /* inclusive; only with complement */
    struct maybe_int min_values; /* how many different values the instance types must offer */
    bool complement;             /* all but `values` */
};

/* As it is written in a NodePool or an affinity term. ERR_INVALID: no operator, or a comparison
 * without exactly one integer. */
int requirement_from_expression(struct arena *arena, const struct expression *e,
                                struct requirement *out, struct err *err);
struct requirement requirement_in(struct arena *arena, struct str key, struct str_list values);
struct requirement requirement_exists(struct arena *arena, struct str key);
struct requirement requirement_does_not_exist(struct arena *arena, struct str key);

/* In, NotIn, Exists or DoesNotExist, by what the set looks like; bounds alone count as Exists. */
enum requirement_op requirement_operator(const struct requirement *r);

/* The number of values as Karpenter counts them: a complement has INT64_MAX less the excluded. */
int64_t requirement_len(const struct requirement *r);

/* The number of values that a node's label could have, bounds and exclusions counted exactly;
 * INT64_MAX when there is no limit. A label value starts with a letter or digit, so a negative
 * number is none. */
int64_t requirement_possible_count(const struct requirement *r);

bool requirement_has(const struct requirement *r, struct str value);
bool requirement_equal(const struct requirement *a, const struct requirement *b);

/* Of two requirements on the same key. The test needs no memory; it takes two complements for
 * overlapping unless their bounds cross. */
bool requirement_has_intersection(const struct requirement *a, const struct requirement *b);
struct requirement requirement_intersection(struct arena *arena, const struct requirement *a,
                                            const struct requirement *b);

/* A value to put on a node as a label: the first of In; some integer within the bounds for NotIn
 * and Exists, always the same for one seed and key; "" if there is none. */
struct str requirement_any(struct arena *arena, const struct requirement *r, uint64_t seed);

/* "key In [a b c d e and 2 others] minValues 3", "key Exists >=4 <=9". For people: two different
 * requirements can have one text. */
void requirement_format(const struct requirement *r, struct buf *out);
