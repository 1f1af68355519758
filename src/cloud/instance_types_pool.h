/* cloud/instance_types_pool.h - scratch of a build: what drafts say over and over, said once.
 *
 * Texts, requirements and sets of requirements (shapes) become small integers in the order they
 * come. `pool_rank` then gives each its place in a sorted order that does not depend on the order of
 * drafts; from there on the build compares integers.
 *
 * Texts borrow the bytes of the drafts.
 */
#pragma once

#include "api/requirements.h"
#include "base/vec.h"

#define POOL_NONE UINT32_MAX

/* Records by their hash: open addressing over ids that the owner gives meaning to. */
struct pool_index {
    uint32_t *cells; /* id + 1; 0 is empty */
    uint32_t cell_count;
    VEC(uint64_t) hashes; /* per id */
};

/* The next id with that hash, POOL_NONE after the last:
 *
 *     for (uint32_t at = 0, id; (id = pool_index_next(ix, hash, &at)) != POOL_NONE;)
 *         if (the record `id` is the one) return id;
 *     return pool_index_add(ix, hash);
 */
uint32_t pool_index_next(const struct pool_index *ix, uint64_t hash, uint32_t *at);
uint32_t pool_index_add(struct pool_index *ix, uint64_t hash); /* the new id: the count before */
void pool_index_done(struct pool_index *ix);

struct pool_text {
    struct str text;
    uint32_t rank;
    /* Of a text that is the name of a resource: */
    bool is_resource, has_overhead, is_binary;
    uint32_t column;
};

struct pool_requirement {
    const struct requirement *source; /* a draft that says it */
    uint32_t key;                     /* text */
    uint32_t values;                  /* start in pool.values */
    uint32_t rank;
};

struct pool_shape {
    const struct requirements *source; /* a draft that says it */
    uint32_t start, count;             /* in pool.shape_requirements */
    uint32_t zone, capacity_type;
    uint32_t maybe_reservation; /* texts; or POOL_NONE */
    uint32_t rank;
};

struct pool {
    struct pool_index text_index, requirement_index, shape_index;
    VEC(struct pool_text) texts;
    VEC(struct pool_requirement) requirements;
    VEC(struct pool_shape) shapes;
    VEC(uint32_t) values;             /* texts, of one requirement after the other */
    VEC(uint32_t) shape_requirements; /* likewise */
    /* After pool_rank: ids in the order of ranks. */
    uint32_t *text_order, *requirement_order, *shape_order;
};

void pool_done(struct pool *p);

/* A hint is an id that is likely to be the answer, or at least to have the same key; or POOL_NONE.
 * Drafts mostly repeat one another, and comparing with a good guess costs less than hashing. */
uint32_t pool_text(struct pool *p, struct str text); /* absent is "" */
uint32_t pool_requirement(struct pool *p, const struct requirement *r, uint32_t hint);
bool pool_is_shape(const struct pool *p, uint32_t hint, const struct requirements *set);
/* A set of requirements on different keys, in the order of keys, whose ids are `ids`. *added: it is
 * new, and its texts are to be filled in. */
uint32_t pool_shape(struct pool *p, const struct requirements *set, const uint32_t *ids,
                    bool *added);

/* Texts by bytes; requirements by key, then in some fixed order; shapes by zone, capacity
 * type, then in some fixed order. */
void pool_rank(struct pool *p);
