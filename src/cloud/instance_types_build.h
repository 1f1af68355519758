/* cloud/instance_types_build.h - the second half of a build: columns from pooled drafts.
 *
 * Every text, requirement and shape has a rank by now, so whatever must be sorted is sorted by
 * integers, and equal drafts in any order give equal snapshots.
 */
#pragma once

#include "cloud/instance_types_drafts.h"
#include "cloud/instance_types_inner.h"

struct build {
    struct drafts *drafts;
    const struct pool *pool;
    struct arena *arena;   /* the snapshot's */
    struct arena *scratch; /* gone when the build is done */
    struct instance_types s;
    struct str *texts;      /* by rank: the snapshot's own copies */
    uint32_t *value_ranks;  /* of the values of the pool's requirements, one after the other */
    uint32_t *values_start; /* per requirement: its place in those */
    uint64_t cells;         /* see INSTANCE_CELLS_MAX */
};

int build_labels(struct build *b, struct err *err);

/* Adds to what the snapshot holds; ERR_INVALID if that becomes too much. */
int build_reserve(struct build *b, uint64_t cells, struct err *err);

/* Postings are made in two rounds: the first notes which words each needs, then each gets its
 * place in one piece of memory, and the second round sets the bits. */
static inline void posting_note(struct posting *p, uint32_t member)
{
    uint32_t word = member / 64;
    if (p->count == 0) {
        p->first = word;
        p->count = 1;
    } else if (word < p->first) {
        p->count += p->first - word;
        p->first = word;
    } else if (word - p->first >= p->count) {
        p->count = word - p->first + 1;
    }
}

static inline uint64_t *posting_place(struct posting *p, uint64_t *words)
{
    p->words = words;
    return words + p->count;
}

static inline void posting_add(struct posting *p, uint32_t member)
{
    ((uint64_t *)p->words)[member / 64 - p->first] |= UINT64_C(1) << (member % 64);
}

static inline int build_by_id(const void *a, const void *b) /* for qsort */
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}
