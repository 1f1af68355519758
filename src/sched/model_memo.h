/* sched/model_memo.h - what a model remembers of the questions it was asked; for model_*.c only.
 *
 * Sets are interned by a canonical text of all they say, so equal content has one number. Answers
 * about two numbers are kept in a flat table keyed by both. Sets live in the model's arena, tables
 * on the heap (terms_done).
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "sched/model.h"

/* --- answers about two numbers --- */

#define PAIR_EMPTY UINT64_MAX

struct pair_slot {
    uint64_t key;
    uint32_t value;
};

struct pair_memo { /* open addressing, at most half full */
    struct pair_slot *slots;
    uint32_t mask, count;
};

static inline uint64_t pair_key(uint32_t a, uint32_t b)
{
    return (uint64_t)a << 32 | b;
}

static inline bool pair_get(const struct pair_memo *p, uint64_t key, uint32_t *value)
{
    for (uint32_t i = (uint32_t)kv_mix64(key) & p->mask;; i = (i + 1) & p->mask) {
        const struct pair_slot *slot = &p->slots[i];
        if (slot->key == key) {
            *value = slot->value;
            return true;
        }
        if (slot->key == PAIR_EMPTY)
            return false;
    }
}

void pair_init(struct pair_memo *p);
void pair_put(struct pair_memo *p, uint64_t key, uint32_t value); /* a key that is not in it */

/* --- sets --- */

struct wants_entry {
    struct wants wants;
    /* Asked of each home by itself: it speaks of the host name, or of a label that no wants of the
     * pods spoke of when the homes' shapes were told apart. */
    bool by_home;
    uint64_t *known, *admitted; /* over shapes of homes; NULL until somebody asks */
};

struct terms_entry {
    struct terms terms;
    struct bitset types; /* whose labels suit everything that was asked, and that run the images */
    struct bitset allowed; /* shapes that do, used-up reservations among them */
    /* Keys that `set` says NotIn of, which a node without the label would satisfy, but which must
     * be there: somebody asked for Exists. Sorted. */
    struct str_list present;
    bool none_left; /* no machine */
};

/* What can be had in some shapes: the same for all terms and pools that come down to them. */
struct market {
    struct bitset machines;
    const usd_hour *price;
    const uint32_t *offering;
};

struct reserved {
    struct str id;
    int64_t capacity, left;
};

struct pool_memo {
    uint32_t stall;              /* the first pool that has the same instance types */
    const uint32_t *reservation; /* per shape: into `reservations`, or NONE */
    struct bitset used_up;       /* shapes of reservations with none left */
};

struct model_memo {
    struct arena scratch;
    struct buf text; /* of the set that is looked for */

    VEC(struct wants_entry *) wants;
    struct str_table wants_ids; /* canonical text to 1 + number, as the others */
    struct pair_memo pins;      /* wants, pin_base[key] + domain */
    uint32_t *pin_base;         /* NULL until the first pin */

    VEC(struct terms_entry *) terms;
    struct str_table terms_ids;
    struct pair_memo joins;
    VEC(struct market *) markets;
    struct str_table market_ids;

    VEC(struct reserved) reservations;
    struct pool_memo *pools;

    /* Of homes, in their order; see home_shapes_settle. */
    const struct requirements *home_labels;
    struct str_list shape_keys; /* sorted: homes that agree in these are of one shape */
    const uint32_t *shape_home; /* per shape: one of its homes */
};

/* --- model_wants.c --- */

void wants_init(struct model *m);
void wants_done(struct model *m);
/* Two sets have equal texts exactly when they say the same, item by item. */
void requirements_encode(const struct requirements *set, struct buf *out);
void words_encode(const struct bitset *bs, struct buf *out);
void u32_encode(uint32_t n, struct buf *out);
void str_encode(struct str s, struct buf *out);
/* A node without the label does not satisfy it. */
bool demands_label(const struct requirement *r);
/* May a node that has no name yet be what `set` asks for? Its host name will be a new one. */
bool new_host_suits(const struct requirements *set);

/* What of `wants` a node of a pool that says `set` will be asked for: not the host name, nor what is
 * content without a label that no node of the pool has. False: no such node can be it, for a label
 * that it lacks. Shares everything with `wants`. */
bool wants_reduce(const struct requirements *set, const struct requirements *wants,
                  struct str_list well_known, struct arena *scratch, struct requirements *out);
/* Do labels that are there, perhaps one of several values each, suit whatever they turn out to be? */
bool labels_suit(const struct requirements *labels, const struct requirements *wants);

/* After the last class: tells the homes' shapes apart by the labels that some wants or some
 * topology key speaks of. `labels` are the homes', one value each where it is known; it fills
 * in home.shape. */
void home_shapes_settle(struct model *m, struct home *homes, const struct requirements *labels);

/* --- model_terms.c: pools are in the model, their terms are not --- */

void reservations_collect(struct model *m);
