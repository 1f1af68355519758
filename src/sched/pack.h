/* sched/pack.h - the second half of solving: launches for the items that need them.
 *
 * A packer holds the items, how many pods of each are left, and what they are worth. It opens one
 * launch after the other until nothing is left that can be launched for.
 */
#pragma once

#include "sched/worth.h"

struct put {
    uint32_t item, count;
};

struct packer {
    struct state *s;
    struct arena *arena;
    const struct item *items;
    uint32_t item_count;
    bool has_sticky; /* see item_is_sticky */
    bool may_join;   /* also into launches that were there before, where nothing else will do */
    uint32_t *left;  /* per item: pods */
    uint32_t
        *tier; /* per item: the first tier of pools that can take it; NONE: none can any more */
    const struct worth *worth;
    double *value;   /* per item: dollars an hour of a pod */
    uint32_t *order; /* items as they lead: those that need many nodes first, then the largest */

    /* Items of equal request are one size: scores are of sizes. */
    uint32_t size_count;
    const double *request;      /* [size][resource] */
    const uint32_t *size_items; /* items by size, in each the most valuable first */
    const uint32_t *size_start; /* size_count + 1 */
    uint32_t *cursor;           /* per size: the first item that may still go into this launch */
    const uint32_t *size_of;    /* per item */

    VEC(struct put) puts; /* of the launch being filled */
    VEC(uint32_t) opened; /* launches, in the order of opening */
};

/* `value` is copied: it is that of `worth`, or corrected. */
void packer_init(struct packer *k, struct state *s, const struct items *items,
                 const struct worth *worth, const double *value, struct arena *arena);
void packer_done(struct packer *k);

/* Opens launches until nothing is left that can be launched for; `left` says what could not. */
void packer_run(struct packer *k);

/* --- candidates.c --- */

struct candidate {
    uint32_t pool, machine, terms;
};
#define CANDIDATES_MAX 32

/* Machines of the leader's tier that are likely to carry much worth for their price, each once; fewer,
 * and found faster, when there is no time for care. Returns how many. */
uint32_t packer_candidates(const struct packer *k, uint32_t leader,
                           struct candidate out[CANDIDATES_MAX]);

/* --- fill.c --- */

/* A pod that is worth less than this share of what its room costs on a machine would do better
 * elsewhere. */
#define PAYING 0.9

/* Up to `most` pods of the item into the launch; half of what fits if that are many. Returns how
 * many. */
uint32_t packer_put(struct packer *k, uint32_t bin, uint32_t item, uint32_t most);
/* Items into an open launch until nothing more fits; `paying`: only those that are well placed there.
 * Returns the worth of what it put in. `sticky` grows by the pods that could be nowhere else: near
 * others on the same host. */
double packer_fill(struct packer *k, uint32_t bin, bool paying, uint32_t *sticky);
bool item_is_sticky(const struct model *m, const struct item *item);
