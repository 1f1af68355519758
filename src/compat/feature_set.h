/* compat/feature_set.h - the features of one node, or of a node that could be launched, as rules
 * see them: flags, attributes and instances by feature, and how much of it is known.
 *
 * A set is immutable, counted and one block of memory. Equal sets of one pool are the same set: nodes
 * that do not differ in anything a rule asks for are one class, and a verdict about the class is a
 * verdict about all of them. So that host names and serial numbers do not make every node a class
 * of its own, a set is built through a mask: the features and elements that some rule mentions.
 *
 *     FEATURE_DRAFT draft = { .maybe_mask = &mask };
 *     feature_draft_node(&draft, objects, count, STR("node-feature-discovery"));
 *     feature_set_make(pool, &draft, &set, &err);
 *
 * The features of a node that nfd-worker has described are complete: what is absent is not there. Of
 * a node that does not exist yet some are known in part or not at all, and a rule about them can
 * only answer "unknown".
 */
#pragma once

#include "api/nfd.h"

/* --- what is kept --- */

enum feature_mention_kind {
    MENTIONED_FEATURE, /* that it is there, and its different instances */
    MENTIONED_NAMES,   /* the names of all its elements, but not their values */
    MENTIONED_ELEMENT,
};

struct feature_mention {
    struct str feature; /* lower case */
    struct str element; /* of MENTIONED_ELEMENT */
    enum feature_mention_kind kind;
};

/* Borrows the texts. Zero-initialised is empty and keeps nothing. */
struct feature_mask {
    VEC(struct feature_mention) mentions;
    bool sorted;
};

void feature_mask_add(struct feature_mask *mask, struct feature_mention mention);
void feature_mask_settle(struct feature_mask *mask); /* before its use; more may follow */
bool feature_mask_has(const struct feature_mask *mask,
                      struct feature_mention mention); /* settled */
void feature_mask_done(struct feature_mask *mask);
#define FEATURE_MASK __attribute__((cleanup(feature_mask_done))) struct feature_mask

/* --- building --- */

enum completeness {
    FEATURE_COMPLETE, /* what is absent is not there */
    FEATURE_PARTIAL,  /* what is absent may be there */
    FEATURE_UNKNOWN,  /* nothing about it is known, not even whether the node has it */
};

struct feature_fact; /* see feature_draft.c */

/* Borrows all texts until the set is made. Zero-initialised is empty. */
struct feature_draft {
    const struct feature_mask *maybe_mask; /* settled; NULL: everything is kept */
    VEC(struct feature_fact) facts;
    bool others_unknown; /* a feature that is not in the set is unknown; else it is not there */
};

void feature_draft_done(struct feature_draft *draft);
#define FEATURE_DRAFT __attribute__((cleanup(feature_draft_done))) struct feature_draft

/* A flag or attribute that is there already is replaced; instances are added. */
void feature_draft_flag(struct feature_draft *draft, struct str feature, struct str element);
void feature_draft_attribute(struct feature_draft *draft, struct str feature, struct str element,
                             struct str value);
void feature_draft_instance(struct feature_draft *draft, struct str feature,
                            const struct str_map *attributes);
/* The element may be there or not, with any value. What is said of it otherwise is forgotten. */
void feature_draft_unsure(struct feature_draft *draft, struct str feature, struct str element);
/* The element is not there, though the feature is known only in part. What is said of it otherwise is
 * forgotten, unless that is that it is unsure. */
void feature_draft_absent(struct feature_draft *draft, struct str feature, struct str element);
void feature_draft_completeness(struct feature_draft *draft, struct str feature,
                                enum completeness completeness);
/* The feature has flags (or attributes, instances: FEATURE_HAS_*), perhaps none. */
void feature_draft_kinds(struct feature_draft *draft, struct str feature, uint32_t has);
void feature_draft_features(struct feature_draft *draft, const struct features *features);

/* Does the mask keep the feature, and of it that element's value? For who would have to copy it first. */
bool feature_draft_keeps(const struct feature_draft *draft, struct str feature);
bool feature_draft_keeps_element(const struct feature_draft *draft, struct str feature,
                                 struct str element);

/* What NodeFeature objects say of one node, in the order in which nfd-master merges it: the objects of its own
 * namespace first, then by name, then by namespace; the later one wins. The list is the arena's. */
const struct features *const *node_features_ranked(struct arena *arena,
                                                   const struct node_feature *const *objects,
                                                   uint32_t count, struct str nfd_namespace);
/* All of it. */
void feature_draft_node(struct feature_draft *draft, const struct node_feature *const *objects,
                        uint32_t count, struct str nfd_namespace);

/* --- sets --- */

#define FEATURE_SET_BYTES_MAX                                                                      \
    ((size_t)16 << 20) /* an object of an API server has 1.5 MiB at most */

struct feature_text { /* bytes of the set */
    uint32_t at, len;
};

struct feature_value {
    struct feature_text name, value;
};

struct feature_attribute_range { /* of feature_values, sorted by name */
    uint32_t at, count;
};

enum { FEATURE_HAS_FLAGS = 1, FEATURE_HAS_ATTRIBUTES = 2, FEATURE_HAS_INSTANCES = 4 };

struct set_feature {
    struct feature_text name;
    uint32_t completeness;      /* enum completeness */
    uint32_t kinds;             /* FEATURE_HAS_*; one may be there and have no elements */
    uint32_t flags, flag_count; /* each list is sorted by name; see the functions below */
    uint32_t unsure, unsure_count;
    uint32_t absent, absent_count;      /* only of a partial feature: known not to be there */
    uint32_t instances, instance_count; /* sorted, and no two are equal */
    struct feature_attribute_range attributes;
};

struct feature_set;
struct feature_sets; /* the pool; thread safe */

struct feature_sets *feature_sets_new(void);
void feature_sets_free(struct feature_sets *pool); /* asserts that nothing is left in it */
KV_AUTO_TYPE(feature_sets, feature_sets_free)

struct feature_sets_stats {
    uint64_t set_count, bytes, shared_count; /* shared_count: asked for, and already there */
};
struct feature_sets_stats feature_sets_stats(struct feature_sets *pool);

/* The set of what the draft says, counted once for the caller. The draft stays as it is. */
int feature_set_make(struct feature_sets *pool, struct feature_draft *draft,
                     const struct feature_set **out, struct err *err);
const struct feature_set *feature_set_ref(const struct feature_set *set);
void feature_set_unref(const struct feature_set *set); /* NULL is fine */

static inline void feature_set_unref_cleanup(const struct feature_set **set)
{
    feature_set_unref(*set);
}
#define AUTO_FEATURE_SET                                                                           \
    __attribute__((cleanup(feature_set_unref_cleanup))) const struct feature_set *

/* The same in every run, and on every machine of one byte order. */
uint64_t feature_set_hash(const struct feature_set *set);
size_t feature_set_bytes(const struct feature_set *set);
bool feature_set_others_unknown(const struct feature_set *set);

/* --- reading --- */

uint32_t feature_set_count(const struct feature_set *set);
const struct set_feature *feature_set_at(const struct feature_set *set, uint32_t ix);
/* NULL if the set does not have it. */
const struct set_feature *feature_set_find(const struct feature_set *set, struct str name);

struct str feature_set_str(const struct feature_set *set, struct feature_text text);
const struct feature_text *feature_set_flags(const struct feature_set *set,
                                             const struct set_feature *f);
const struct feature_text *feature_set_unsure(const struct feature_set *set,
                                              const struct set_feature *f);
const struct feature_text *feature_set_absent(const struct feature_set *set,
                                              const struct set_feature *f);
const struct feature_value *feature_set_values(const struct feature_set *set,
                                               struct feature_attribute_range range);
const struct feature_attribute_range *feature_set_instances(const struct feature_set *set,
                                                            const struct set_feature *f);

bool feature_set_has_flag(const struct feature_set *set, const struct set_feature *f,
                          struct str name);
bool feature_set_is_unsure(const struct feature_set *set, const struct set_feature *f,
                           struct str name);
bool feature_set_is_absent(const struct feature_set *set, const struct set_feature *f,
                           struct str name);
/* STR_NONE if there is no such attribute. */
struct str feature_set_value(const struct feature_set *set, struct feature_attribute_range range,
                             struct str name);
