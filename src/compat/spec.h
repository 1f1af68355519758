/* compat/spec.h - what an image says it needs of a node: the compatibility spec that is attached to
 * it in the registry, in YAML or JSON.
 *
 *     version: v1alpha1
 *     compatibilities:
 *     - tag: fast
 *       weight: 80
 *       rules: [{name: amx, matchFeatures: [{feature: cpu.cpuid, matchExpressions: {...}}]}]
 *
 * A spec is read as NFD reads it: fields that it does not know are passed over, and a rule that
 * cannot be evaluated matches no node. Both are warnings, since the author hardly meant them;
 * `strict`, for who is about to publish a spec, makes them errors.
 */
#pragma once

#include "compat/rule.h"

#define COMPAT_SPEC_VERSION "v1alpha1"
#define COMPAT_SPEC_BYTES_MAX ((size_t)1 << 20)
#define COMPAT_SPEC_DEPTH_MAX 32
#define COMPAT_SETS_MAX 64
#define COMPAT_WEIGHT_MAX INT32_MAX
#define COMPAT_WARNINGS_MAX 100 /* kept */

struct compat_set {
    struct str tag, description; /* "" if absent */
    int64_t weight;              /* preference, meant to be 1 to 100; 0: none */
    const struct rules *rules;
    struct str rules_json; /* canonical: equal rules are equal bytes */
};

/* What specs have in common: the rules of sets, by their canonical text, and whole specs, by their identity.
 * Thread safe, counted: a spec keeps its pool. */
struct compat_specs;
struct compat_specs *compat_specs_new(void);
void compat_specs_unref(struct compat_specs *pool); /* NULL is fine */
struct compat_specs_stats {
    uint32_t specs, rules; /* different ones */
};
struct compat_specs_stats compat_specs_stats(struct compat_specs *pool);

/* Immutable and counted. */
struct compat_spec {
    struct rc rc;
    struct compat_specs *maybe_pool;
    struct str identity; /* by which it is in the pool; "": it is not. The pool's */
    struct arena arena;  /* owns all texts but those of a pool */
    const struct compat_set *sets;
    uint32_t set_count;         /* none: no constraint */
    const struct str *warnings; /* "NAME:LINE:COL: field: what" */
    uint32_t warning_count;
};

struct compat_spec_options {
    bool strict;
    struct compat_specs *maybe_pool; /* to share with other specs */
    struct str
        identity; /* with a pool: what the text is known by, its digest. A text with the identity of
                            one that is in use is not read again */
};

#define COMPAT_SPEC_UNSUPPORTED (-2) /* fine as far as one can tell, but of another version */

/* Read a spec. `name` stands for the text in messages (a file, a digest). ERR_INVALID has name, line,
 * column and field of the first problem, and how many more there are. Aliases are refused. */
int compat_spec_read(const char *name, struct str text, struct compat_spec_options options,
                     const struct compat_spec **out, struct err *err);
const struct compat_spec *compat_spec_ref(const struct compat_spec *spec);
void compat_spec_unref(const struct compat_spec *spec);   /* NULL is fine */
size_t compat_spec_bytes(const struct compat_spec *spec); /* with its rules, shared or not */

static inline void compat_spec_unref_cleanup(const struct compat_spec **spec)
{
    compat_spec_unref(*spec);
}
#define AUTO_COMPAT_SPEC                                                                           \
    __attribute__((cleanup(compat_spec_unref_cleanup))) const struct compat_spec *

/* --- matching --- */

enum set_combine { SETS_ALL, SETS_ANY }; /* every set must match; or one of them */

struct compat_options {
    enum set_combine sets;
    struct rules_options rules;
    struct str_list tags; /* only sets with one of these; empty: all sets */
};

struct compat_outcome {
    enum match match;
    uint32_t set_ix;     /* the set that decided; UINT32_MAX: no set was asked */
    int64_t weight_best; /* of the sets that match */
    bool nfd_differs;    /* see rules_outcome */
};

/* No set at all, or none with such a tag: nothing is asked for, MATCH_YES. The feature set must keep
 * what all rules mention. */
struct compat_outcome compat_spec_match(const struct compat_spec *spec,
                                        const struct feature_set *features,
                                        const struct compat_options *options);
bool compat_set_is_asked(const struct compat_set *set, const struct compat_options *options);
void compat_spec_mention(const struct compat_spec *spec, struct feature_mask *mask);
