/* cloud/instance_cache.h - the generation-checked cache in front of any provider.
 *
 * It wraps a provider and is itself one: get_instance_types answers from the cache, every other call
 * goes through. An answer is an immutable snapshot that all callers share; overlays are applied
 * once, when the answer is made.
 *
 * An answer is used while its generation (cloud/generation.h) equals the current one, member by
 * member. The generation kept with an answer was read *before* the fetch, so a change during the
 * fetch is seen as a change afterwards: no caller gets an answer that is older than its call.
 *
 * One fetch is under way per node class, however many callers and pools wait for it. A caller that
 * arrives with a newer generation than the fetch began with waits for the next one, which then
 * began after the caller came and is good whatever its generation: nobody waits for more than two.
 * A failed fetch is returned to those who waited, and leaves the last good answer and its
 * generation where they are. A fetch that hangs holds up those who need it and nobody else.
 *
 * Pools of one node class share one fetched snapshot, and those that overlays cannot tell apart
 * share one layer. When a newer snapshot of the class arrives the older one goes, layers and all,
 * as soon as its last reader lets go. A change of overlays alone makes new layers and fetches
 * nothing.
 *
 * What a hit costs: the provider's generation (a few atomic loads), a mutex that no other thread
 * wants, a look into a table, one atomic increment; nothing is allocated, and no cache line is
 * written that threads on other cores write. See instance_cache.c.
 *
 * Metrics, all with the prefix karve_instance_cache_:
 *
 *     hits_total, misses_total{cause}     cause: cold, or the first member that differed (types, ...)
 *     fetches_total, fetch_errors_total
 *     refresh_duration_seconds            a histogram over fetches, failed ones too
 *     waiters                             callers that wait for a fetch or a layer now
 *     entries, snapshots, layers          pools known; distinct fetched snapshots, and layers
 *     snapshot_bytes                      of those
 *     generation{member}                  of the newest answer; no `inputs`, which is a hash
 */
#pragma once

#include "base/metrics.h"
#include "cloud/overlay.h"
#include "cloud/provider.h"

struct instance_cache;

struct instance_cache_options {
    const struct cloud_provider *provider; /* outlives the cache */
    const struct clock *clock;
    struct metrics *maybe_metrics; /* outlives the cache */
    bool node_overlays; /* the feature gate: off means that overlays are never consulted */
    /* Label keys that overlays may leave undefined (struct overlay_pool), sorted; borrowed. Empty:
     * those of the pool's node class group, label_rules_for. */
    struct str_list well_known;
    uint32_t stripes; /* private tables that threads are spread over; 0: by the number of cores */
};

struct instance_cache *instance_cache_new(struct instance_cache_options options);
void instance_cache_free(struct instance_cache *cache); /* nobody is in a call; NULL is fine */
KV_AUTO_TYPE(instance_cache, instance_cache_free)

/* The decorated provider; lives as long as the cache. Its generation has the overlays in it. */
const struct cloud_provider *instance_cache_provider(struct instance_cache *cache);

/* What provider->get_instance_types does. One reference for the caller. */
int instance_cache_get(struct instance_cache *cache, const struct nodepool *pool,
                       const struct instance_types **out, struct err *err);

/* The answer before overlays: what they are evaluated against. Shared and cached likewise; counts as
 * neither hit nor miss. */
int instance_cache_get_raw(struct instance_cache *cache, const struct nodepool *pool,
                           const struct instance_types **out, struct err *err);

/* From now on these overlays (accepted ones) apply; the set is referenced. A set with the
 * generation of the current one changes nothing. NULL: none. */
void instance_cache_set_overlays(struct instance_cache *cache, const struct overlay_set *maybe_set);

/* The NodePool is gone: so is its answer. What a call that is under way for it gets is not kept.
 * Whoever asks for the pool again after that has it known again. */
void instance_cache_forget(struct instance_cache *cache, struct str pool_name);

struct instance_cache_stats {
    uint64_t hits, misses, fetches, fetch_errors, layers_built;
    uint64_t waits;                         /* calls that waited for another's fetch or layer */
    uint64_t misses_by[GENERATION_MEMBERS]; /* the first member that differed */
    uint64_t misses_cold;                   /* no answer yet */
    uint32_t entries, snapshots, layers;    /* pools known; distinct snapshots, and layers */
    uint32_t waiting;                       /* now */
    size_t bytes;                           /* of distinct snapshots and layers */
    struct generation newest;               /* of the last answer that was fetched */
};
struct instance_cache_stats instance_cache_stats(struct instance_cache *cache);
