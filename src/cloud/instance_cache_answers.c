/* How answers are made.
 *
 * Each node class has a source. A source has at most one base, the newest that was fetched, and at
 * most one flight. A flight takes a number, reads the generation, and fetches unless the base is of
 * that generation already. Whoever needs an answer of generation G and finds
 *
 *     the base of G             takes it; likewise a base that a flight brought, or confirmed, which
 *                               got its number after the caller came
 *     no flight                 flies: its own result is good, since G was read before
 *     a flight                  waits. The result is good if its generation is G, or if its number
 *                               was given after the caller came: then its generation was read
 *                               after the caller's. Otherwise looks again; the next flight is good.
 *
 * A result is also an error, with its kind and text. Good means: no older than the call. Why the first
 * line holds though the fetch may be long over: counters only grow, so equal members mean that none
 * was bumped between the read that began the flight and the caller's.
 *
 * A layer belongs to its base, the number of an overlay set, and what that set sees of a pool. It is
 * put into the base's list before it is built; those who find it unbuilt wait.
 */
#include "cloud/instance_cache_inner.h"

/* --- answers --- */

static struct answer *answer_new(const struct instance_cache *cache)
{
    struct answer *a =
        kv_calloc(1, sizeof *a + (size_t)cache->stripe_count * sizeof a->replicas[0]);
    a->refs = 1;
    return a;
}

struct answer *answer_ref(struct answer *a)
{
    a->refs++;
    return a;
}

static void layer_unlink(struct answer *layer)
{
    struct answer *base = layer->maybe_base;
    size_t kept = 0;
    vec_each(&base->layers, struct answer *, it) {
        if (*it != layer)
            base->layers.items[kept++] = *it;
    }
    base->layers.count = kept;
}

void answer_unref(struct instance_cache *cache, struct answer *a)
{
    if (!a || --a->refs > 0)
        return;
    if (a->maybe_base) {
        layer_unlink(a);
        answer_unref(cache, a->maybe_base);
    }
    for (uint32_t i = 0; i < cache->stripe_count; i++)
        instance_types_unref(a->replicas[i]);
    instance_types_unref(a->types);
    vec_done(&a->layers);
    arena_done(&a->arena);
    free(a);
}

const struct instance_types *answer_replica(struct answer *a, uint32_t stripe)
{
    if (!a->replicas[stripe])
        a->replicas[stripe] = instance_types_replica(a->types);
    return a->replicas[stripe];
}

/* --- sources --- */

static struct str source_name(struct instance_cache *cache, const struct node_class_ref *ref)
{
    const struct str parts[] = { ref->group, ref->kind, ref->name };
    buf_clear(&cache->text);
    for (size_t i = 0; i < KV_COUNT_OF(parts); i++) {
        buf_add(&cache->text, parts[i]);
        buf_addc(&cache->text, '\0'); /* so that none runs into the next */
    }
    return buf_str(&cache->text);
}

struct source *source_hold(struct instance_cache *cache, const struct node_class_ref *class_ref)
{
    struct str name = source_name(cache, class_ref);
    struct source *s = str_table_get(&cache->sources, name);
    if (!s) {
        s = kv_calloc(1, sizeof *s);
        str_table_put(&cache->sources, name, s);
        s->name = str_table_slot(&cache->sources, name)->key;
    }
    s->users++;
    return s;
}

void source_release(struct instance_cache *cache, struct source *s)
{
    if (--s->users > 0)
        return;
    KV_ASSERT(!s->maybe_flight); /* who flies is a user */
    str_table_remove(&cache->sources, s->name);
    answer_unref(cache, s->maybe_base);
    free(s);
}

static void source_publish(struct instance_cache *cache, struct source *s, struct answer *base,
                           const struct generation *generation)
{
    answers_supersede(cache, s);
    answer_unref(cache, s->maybe_base);
    s->maybe_base = answer_ref(base);
    s->generation = *generation;
    cache->stats.newest = *generation;
}

static bool source_is_at(const struct source *s, const struct generation *generation)
{
    return s->maybe_base && generation_equal(&s->generation, generation);
}

/* --- waiting --- */

static void wait_for_move(struct instance_cache *cache)
{
    cache->stats.waiting++;
    pthread_cond_wait(&cache->moved, &cache->lock);
    cache->stats.waiting--;
}

/* --- flights --- */

static void flight_unref(struct instance_cache *cache, struct flight *f)
{
    if (--f->refs > 0)
        return;
    answer_unref(cache, f->maybe_base);
    free(f);
}

/* Ask the provider. Without the lock. */
static int fetch(struct instance_cache *cache, const struct nodepool *pool,
                 const struct instance_types **types, struct err *err)
{
    const struct cloud_provider *p = cache->options.provider;
    int64_t start_ns = clock_mono_ns(cache->options.clock);
    int rc = p->get_instance_types(p->ctx, pool, types, err);
    cache_metrics_fetched(cache->maybe_metrics, clock_mono_ns(cache->options.clock) - start_ns);
    KV_ASSERT(rc < 0 || *types != NULL);
    return rc;
}

static int read_generation(struct instance_cache *cache, const struct nodepool *pool,
                           struct generation *out, struct err *err)
{
    const struct cloud_provider *p = cache->options.provider;
    int rc = p->get_generation(p->ctx, pool, out, err);
    out->member[GENERATION_OVERLAYS] = 0; /* a base has none */
    return rc;
}

/* With the lock held, but not while others are asked. */
static void flight_run(struct instance_cache *cache, struct source *s, struct flight *f,
                       const struct nodepool *pool)
{
    pthread_mutex_unlock(&cache->lock);
    f->rc = read_generation(cache, pool, &f->generation, &f->err);
    pthread_mutex_lock(&cache->lock);
    if (f->rc < 0)
        return;
    if (source_is_at(s, &f->generation)) {
        f->maybe_base = answer_ref(s->maybe_base);
        s->base_flight = f->number;
        return;
    }

    const struct instance_types *types = NULL;
    pthread_mutex_unlock(&cache->lock);
    f->rc = fetch(cache, pool, &types, &f->err);
    pthread_mutex_lock(&cache->lock);
    cache->stats.fetches++;
    if (f->rc < 0) {
        cache->stats.fetch_errors++;
        return;
    }
    f->maybe_base = answer_new(cache);
    f->maybe_base->types = types;
    source_publish(cache, s, f->maybe_base, &f->generation);
    s->base_flight = f->number;
}

static struct flight *flight_fly(struct instance_cache *cache, struct source *s,
                                 const struct nodepool *pool)
{
    struct flight *f = kv_calloc(1, sizeof *f);
    f->refs = 2; /* the source's and the caller's */
    f->number = ++s->flights;
    s->maybe_flight = f;
    flight_run(cache, s, f, pool);
    f->done = true;
    s->maybe_flight = NULL;
    f->refs--;
    pthread_cond_broadcast(&cache->moved);
    return f;
}

static struct flight *flight_join(struct instance_cache *cache, struct source *s)
{
    struct flight *f = s->maybe_flight;
    f->refs++;
    cache->stats.waits++;
    while (!f->done)
        wait_for_move(cache);
    return f;
}

int base_get(struct instance_cache *cache, struct source *s, const struct nodepool *pool,
             const struct generation *wanted, struct answer **out, struct generation *generation,
             struct err *err)
{
    struct generation want = *wanted;
    want.member[GENERATION_OVERLAYS] = 0;
    uint64_t begun = s->flights;
    for (;;) {
        if (source_is_at(s, &want) || (s->maybe_base && s->base_flight > begun)) {
            *out = answer_ref(s->maybe_base);
            *generation = s->generation;
            return 0;
        }
        struct flight *f = s->maybe_flight ? flight_join(cache, s) : flight_fly(cache, s, pool);
        bool good = f->number > begun || generation_equal(&f->generation, &want);
        int rc = f->rc;
        if (good && rc < 0) {
            err_set(err, f->err.kind, "%s", f->err.text);
        } else if (good) {
            *out = answer_ref(f->maybe_base);
            *generation = f->generation;
        }
        flight_unref(cache, f);
        if (good)
            return rc;
    }
}

/* --- layers --- */

static struct overlay_pool overlay_pool_of(const struct instance_cache *cache,
                                           const struct nodepool *pool,
                                           const struct instance_types *types)
{
    struct str_list well_known = cache->options.well_known;
    if (well_known.count == 0)
        well_known = label_rules_for(pool->spec.template.spec.node_class_ref.group)->well_known;
    return (struct overlay_pool){
        .name = pool->object.meta.name,
        .labels = pool->spec.template.meta.labels,
        .types = types,
        .well_known = well_known,
    };
}

static struct overlay_pool overlay_pool_copy(struct arena *arena, const struct overlay_pool *pool)
{
    struct overlay_pool copy = *pool; /* well-known keys outlive us, the types are the base's */
    copy.name = arena_str(arena, pool->name);
    copy.labels = str_map_copy(arena, &pool->labels);
    return copy;
}

static struct answer *layer_find(const struct instance_cache *cache, const struct answer *base,
                                 uint64_t number, uint64_t signature,
                                 const struct overlay_pool *pool)
{
    vec_each(&base->layers, struct answer *, it) {
        struct answer *layer = *it;
        if (layer->overlays == number && layer->signature == signature &&
            overlay_pools_alike(cache->maybe_overlays, &layer->made_for, pool))
            return layer;
    }
    return NULL;
}

static void layer_build(struct instance_cache *cache, struct answer *layer)
{
    const struct overlay_set *set = overlay_set_ref(cache->maybe_overlays);
    pthread_mutex_unlock(&cache->lock);
    const struct instance_types *types =
        overlay_set_apply(set, &layer->made_for, (struct instance_types_options){ 0 });
    overlay_set_unref(set);
    pthread_mutex_lock(&cache->lock);
    layer->types = types;
    cache->stats.layers_built++;
    pthread_cond_broadcast(&cache->moved);
}

struct answer *layer_get(struct instance_cache *cache, struct answer *base,
                         const struct nodepool *pool, uint64_t *overlays_number)
{
    *overlays_number = atomic_load_explicit(&cache->overlays_number, memory_order_relaxed);
    if (*overlays_number == 0)
        return answer_ref(base);

    struct overlay_pool seen = overlay_pool_of(cache, pool, base->types);
    uint64_t signature = overlay_pool_signature(cache->maybe_overlays, &seen);
    struct answer *layer = layer_find(cache, base, *overlays_number, signature, &seen);
    if (layer) {
        answer_ref(layer);
        if (!layer->types)
            cache->stats.waits++;
        while (!layer->types)
            wait_for_move(cache);
        return layer;
    }
    layer = answer_new(cache);
    layer->maybe_base = answer_ref(base);
    layer->overlays = *overlays_number;
    layer->signature = signature;
    layer->made_for = overlay_pool_copy(&layer->arena, &seen);
    vec_push(&base->layers, layer);
    layer_build(cache, layer);
    return layer;
}
