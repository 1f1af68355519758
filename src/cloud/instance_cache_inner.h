/* cloud/instance_cache_inner.h - what the files of the instance type cache share.
 *
 *     instance_cache.c          hits, the pools, and everything callers see
 *     instance_cache_answers.c  how an answer is made: sources, flights, layers
 *     instance_cache_metrics.c  what is told of it
 *
 * Locks: `lock` of the cache guards all that is not said to be guarded otherwise; a stripe's lock
 * may be taken inside it, never the other way round. Neither is held while the provider fetches or
 * an overlay set is applied.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "cloud/instance_cache.h"

/* What an answer depends on beside the generation, as it was when the answer was made. A pool has
 * one, its slots in the stripes share it. */
struct asked {
    uint32_t refs;
    struct node_class_ref class_ref;
    struct str_map labels; /* of the pool's template: overlays see them, and no counter moves */
    struct arena arena;
};

/* A snapshot with its handles for the stripes. A base was fetched, a layer is overlays over a base.
 * Counted by plain numbers: by the pools whose answer it is, its source, its layers, and calls. */
struct answer {
    uint32_t refs;
    const struct instance_types *types; /* NULL: a layer that somebody is building */

    struct answer *maybe_base;    /* of a layer: a reference */
    VEC(struct answer *) layers;  /* of a base: those there are, no references */
    uint64_t overlays, signature; /* of a layer: the overlays' number, and what they see */
    struct overlay_pool made_for; /* of a layer: one of the pools that it is for */
    struct arena arena;           /* owns made_for */

    const struct instance_types *replicas[]; /* one per stripe; NULL until it is asked for */
};

/* A fetch that is under way, or over and not yet seen by all who waited. */
struct flight {
    uint32_t refs;
    uint64_t number; /* of its source's flights; its generation was read after it got it */
    bool done;
    int rc;
    struct err err;
    struct generation generation;
    struct answer *maybe_base; /* a reference */
};

/* Where the answers of one node class come from. Lives while a pool or a call uses it. */
struct source {
    struct str name; /* the class reference as one text, the table's key */
    uint32_t users;
    struct generation generation; /* of the base */
    struct answer *maybe_base;    /* the newest; a reference */
    uint64_t base_flight;         /* the last flight that brought or confirmed it */
    struct flight *maybe_flight;  /* a reference */
    uint64_t flights;             /* begun so far */
};

struct entry { /* a pool */
    struct source *source;
    struct generation generation; /* of the last answer, if there was one */
    struct asked *maybe_asked;    /* a reference; NULL: there was none */
    struct answer *maybe_answer;  /* a reference; NULL: none yet, or it is superseded */
};

struct call { /* on the stack of a call that missed */
    struct str pool_name;
    bool forgotten; /* the pool went meanwhile */
    struct call *next;
};

struct slot { /* a pool's answer in a stripe */
    struct generation generation;
    struct asked *asked;                /* a reference */
    const struct source *source;        /* only to be compared */
    const struct instance_types *types; /* a reference to the stripe's replica */
};

/* Two lines: processors fetch them in pairs. */
#define STRIPE_ALIGN 128
#define STRIPES_MAX 256

struct stripe {
    _Alignas(STRIPE_ALIGN) pthread_mutex_t lock; /* guards the rest */
    struct str_table slots;                      /* by pool name */
    uint64_t hits;
};

struct cache_metrics;

struct instance_cache {
    struct instance_cache_options options;
    struct cloud_provider port;
    struct stripe *stripes;
    uint32_t stripe_count;            /* a power of two */
    _Atomic uint64_t overlays_number; /* 0: none; otherwise a new one for every set */

    pthread_mutex_t lock;
    pthread_cond_t moved; /* a flight or a layer is done */
    struct str_table entries;
    struct str_table sources; /* by class reference */
    struct buf text;          /* for looking one up */
    struct call *calls;
    const struct overlay_set *maybe_overlays;
    uint64_t overlays_last;            /* the last number given */
    struct instance_cache_stats stats; /* the counting part */
    struct cache_metrics *maybe_metrics;
};

/* --- instance_cache_answers.c; the lock is held --- */

struct answer *answer_ref(struct answer *a);
void answer_unref(struct instance_cache *cache, struct answer *a); /* NULL is fine */
/* The stripe's handle, borrowed. */
const struct instance_types *answer_replica(struct answer *a, uint32_t stripe);

struct source *source_hold(struct instance_cache *cache, const struct node_class_ref *class_ref);
void source_release(struct instance_cache *cache, struct source *s);

/* An answer without overlays that is no older than the generation `wanted`, which was read before:
 * what the source has, or what a fetch brings. Lets go of the lock meanwhile. A reference. */
int base_get(struct instance_cache *cache, struct source *s, const struct nodepool *pool,
             const struct generation *wanted, struct answer **out, struct generation *generation,
             struct err *err);
/* The base with the overlays of now, whose number it says. Lets go of the lock while one is built.
 * A reference. */
struct answer *layer_get(struct instance_cache *cache, struct answer *base,
                         const struct nodepool *pool, uint64_t *overlays_number);

/* --- instance_cache.c; the lock is held --- */

/* No pool of this source uses its answer any more. */
void answers_supersede(struct instance_cache *cache, const struct source *s);

/* --- instance_cache_metrics.c --- */

struct cache_metrics *cache_metrics_new(struct instance_cache *cache, struct metrics *metrics);
void cache_metrics_free(struct cache_metrics *m); /* NULL is fine */
void cache_metrics_fetched(struct cache_metrics *maybe, int64_t duration_ns);
