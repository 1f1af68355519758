/* compat/predict_inner.h - profiles: what was seen of nodes of one kind. For the predictor's files.
 *
 * A profile is a list of features, each a feature set of its own that has that one feature. The sets are the
 * pool's, so what many profiles have in common (the kernel's configuration, above all) is there once, and to
 * compare what a node says with what is known is mostly to compare pointers.
 */
#pragma once

#include "compat/predict.h"

#include "base/map.h"

#include <pthread.h>

#define PROFILE_FEATURES_MAX 1024 /* nfd-worker has about 30 */

struct profile_features {
    const struct feature_set **items; /* counted; by the names of their only features */
    uint32_t count;
};

static inline const struct set_feature *profile_feature(const struct feature_set *set)
{
    return feature_set_at(set, 0);
}
static inline struct str profile_feature_name(const struct feature_set *set)
{
    return feature_set_str(set, profile_feature(set)->name);
}

void profile_features_done(struct profile_features *features);
/* NULL if there is none. */
const struct feature_set *profile_features_find(const struct profile_features *features,
                                                struct str name);

/* Which features a profile has. */
enum profile_kind {
    PROFILE_PAIR,  /* of an instance type and an image: all */
    PROFILE_TYPE,  /* of an instance type: what comes with the hardware */
    PROFILE_IMAGE, /* of an image: what comes with the system */
    PROFILE_KIND_COUNT,
};
bool profile_keeps(enum profile_kind kind, struct str feature);

/* --- observing (predict_observe.c) --- */

/* Features that were observed, by the hash of what was said. A chance collision takes 2^32 different ones; who
 * makes one on purpose lies about his own nodes, which takes no collision. */
struct observed {
    pthread_mutex_t lock; /* a leaf, but for the pool's */
    struct map by_hash;   /* -> const struct feature_set, counted */
};
void observed_init(struct observed *observed);
void observed_done(struct observed *observed);
void observed_forget(struct observed *observed); /* there is no room for it */

/* The features of one node, without what is a node's own. Of what is said twice the later wins. False: it says
 * too much, or nothing that nfd-worker says, and must not be learned from. */
bool profile_observe(struct observed *observed, struct feature_sets *pool,
                     const struct features *const *said, uint32_t count,
                     struct profile_features *out);

/* --- learning (predict_learn.c) --- */

/* What both know. True if that is not what `known` was. From a node that would make the list too long nothing is
 * learned. */
bool profile_merge(struct feature_sets *pool, struct profile_features *known,
                   const struct profile_features *seen, enum profile_kind kind);

/* Does the node contradict something that was certain? `seen` NULL: it does not have the feature. */
bool profile_contradicts(const struct feature_set *predicted, const struct set_feature *f,
                         const struct feature_set *maybe_seen);

/* A set of one feature of which nothing is known; and of the draft's only one, or, if that is too much, the
 * same. */
const struct feature_set *profile_unknown(struct feature_sets *pool, struct str name);
const struct feature_set *profile_make(struct feature_sets *pool, struct str name,
                                       struct feature_draft *draft);
/* An instance's attributes in the arena, all of them or all but one. */
struct str_map *profile_instance(const struct feature_set *set,
                                 struct feature_attribute_range range, struct str without,
                                 struct arena *arena);
/* One feature into a draft, with its texts in the arena. */
void profile_draft(const struct feature_set *set, const struct set_feature *f, struct arena *arena,
                   struct feature_draft *draft);

/* --- the predictor --- */

struct profile {
    struct profile *newer, *older; /* of its shelf */
    struct profile_features features;
    struct str type, image; /* "" in what knows only the other. Owned */
};

struct shelf { /* of the profiles of one kind */
    struct str_table by_key;
    struct profile *newest, *oldest; /* by use */
};

struct predictor {
    pthread_mutex_t lock; /* guards everything below; the pool's may be taken under it */
    struct feature_sets *pool;
    struct observed observed; /* has a lock of its own */
    struct shelf shelves[PROFILE_KIND_COUNT];
    uint32_t profiles_max;
    uint64_t generation, mismatches;
    struct metric_family *maybe_mismatch;
};
