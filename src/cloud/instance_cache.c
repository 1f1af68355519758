/* The truth is a table of pools under one lock; hits do not go there. Each thread has a stripe: a
 * mutex, a table of pools, and for each pool the key of its answer and a handle to it. A hit is
 *
 *   1. read the provider's generation and the overlays' number
 *   2. lock the thread's own stripe, find the pool, compare the generation member by member and what
 *      the answer was made for: the class reference and, if there are overlays, the labels
 *   3. add one to the count of the stripe's own handle, unlock
 *
 * Why a lock, when one could load a pointer and count: between the load and the count another thread
 * may publish a newer answer and drop the last reference to this one, and the count would be written
 * into freed memory. Something must keep the answer alive between the two; the mutex of a stripe
 * does, because its references are dropped under it, and costs the two atomic operations of a lock
 * that nobody else wants. Stripes lie on cache lines of their own and their handles have counts
 * of their own (instance_types_replica), so threads on different cores write to nothing in common:
 * twice the threads, twice the hits. Threads that share a stripe, because there are more threads
 * than stripes, are as correct and wait for one another a few nanoseconds.
 *
 * A stripe is filled and swept with the cache's lock held. So when a newer answer is published, all
 * handles of the older one go at once and none comes back: memory is that of what is current, plus
 * what readers still hold.
 *
 * An answer is kept only if it is current when it is made: its base is its source's, its overlays
 * are those of now, and its pool was not forgotten meanwhile. Otherwise it goes to the caller,
 * for whom it is new enough, and to nobody else.
 */
#include "cloud/instance_cache_inner.h"

#include <unistd.h>

/* --- what is asked --- */

static const struct node_class_ref *class_ref_of(const struct nodepool *pool)
{
    return &pool->spec.template.spec.node_class_ref;
}

/* The lock is held. */
static struct asked *asked_new(const struct nodepool *pool)
{
    struct asked *a = kv_calloc(1, sizeof *a);
    const struct node_class_ref *ref = class_ref_of(pool);
    const struct str_map *from = &pool->spec.template.meta.labels;
    struct str_pair *labels = arena_array(&a->arena, struct str_pair, from->count);
    for (uint32_t i = 0; i < from->count; i++) {
        labels[i].key = arena_str(&a->arena, from->items[i].key);
        labels[i].value = arena_str(&a->arena, from->items[i].value);
    }
    a->refs = 1;
    a->labels = (struct str_map){ labels, from->count };
    a->class_ref = (struct node_class_ref){
        .group = arena_str(&a->arena, ref->group),
        .kind = arena_str(&a->arena, ref->kind),
        .name = arena_str(&a->arena, ref->name),
    };
    return a;
}

static struct asked *asked_ref(struct asked *a)
{
    a->refs++;
    return a;
}

static void asked_unref(struct asked *a)
{
    if (!a || --a->refs > 0)
        return;
    arena_done(&a->arena);
    free(a);
}

static bool same_class(const struct node_class_ref *a, const struct node_class_ref *b)
{
    return str_eq(a->name, b->name) && str_eq(a->kind, b->kind) && str_eq(a->group, b->group);
}

static bool same_labels(const struct str_map *a, const struct str_map *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++)
        same = str_eq(a->items[i].key, b->items[i].key) &&
               str_eq(a->items[i].value, b->items[i].value);
    return same;
}

/* Is what was asked then what is asked now? The generations are equal. */
static bool asked_same(const struct asked *a, const struct generation *generation,
                       const struct nodepool *pool)
{
    return same_class(&a->class_ref, class_ref_of(pool)) &&
           (generation->member[GENERATION_OVERLAYS] == 0 ||
            same_labels(&a->labels, &pool->spec.template.meta.labels));
}

static int read_generation(struct instance_cache *cache, const struct nodepool *pool,
                           struct generation *out, struct err *err)
{
    const struct cloud_provider *p = cache->options.provider;
    int rc = p->get_generation(p->ctx, pool, out, err);
    out->member[GENERATION_OVERLAYS] =
        atomic_load_explicit(&cache->overlays_number, memory_order_acquire);
    return rc;
}

/* --- stripes --- */

/* Threads are numbered as they come, and numbers of those that ended are not used again: workers
 * that start together have a stripe each while there are enough, others may meet in one. */
static uint32_t stripe_of_thread(const struct instance_cache *cache)
{
    static _Atomic uint32_t threads;
    static _Thread_local uint32_t number; /* 0: none yet */
    if (KV_UNLIKELY(number == 0))
        number = atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed) + 1;
    return number & (cache->stripe_count - 1);
}

static void slot_free(struct slot *slot)
{
    if (!slot)
        return;
    asked_unref(slot->asked);
    instance_types_unref(slot->types);
    free(slot);
}

/* Keep the pool's answer for the thread's next call, and give it to this one. */
static const struct instance_types *stripe_keep(struct instance_cache *cache, uint32_t stripe,
                                                struct str name, const struct entry *e)
{
    struct stripe *s = &cache->stripes[stripe];
    struct slot *slot = kv_malloc(sizeof *slot);
    *slot = (struct slot){
        .generation = e->generation,
        .asked = asked_ref(e->maybe_asked),
        .source = e->source,
        .types = instance_types_ref(answer_replica(e->maybe_answer, stripe)),
    };
    pthread_mutex_lock(&s->lock);
    slot_free(str_table_get(&s->slots, name));
    str_table_put(&s->slots, name, slot);
    pthread_mutex_unlock(&s->lock);
    return instance_types_ref(slot->types); /* swept only under the cache's lock, which we hold */
}

/* Drop every stripe's slots of a source, or all of them. */
static void stripes_sweep(struct instance_cache *cache, const struct source *maybe_source)
{
    for (uint32_t i = 0; i < cache->stripe_count; i++) {
        struct stripe *s = &cache->stripes[i];
        pthread_mutex_lock(&s->lock);
        str_table_each(&s->slots, it) {
            struct slot *slot = it->value;
            if (maybe_source && slot->source != maybe_source)
                continue;
            str_table_remove(&s->slots, it->key);
            slot_free(slot);
        }
        pthread_mutex_unlock(&s->lock);
    }
}

static void stripes_forget(struct instance_cache *cache, struct str name)
{
    for (uint32_t i = 0; i < cache->stripe_count; i++) {
        struct stripe *s = &cache->stripes[i];
        pthread_mutex_lock(&s->lock);
        slot_free(str_table_remove(&s->slots, name));
        pthread_mutex_unlock(&s->lock);
    }
}

/* --- pools; the lock is held --- */

static void entry_drop_answer(struct instance_cache *cache, struct entry *e)
{
    answer_unref(cache, e->maybe_answer);
    e->maybe_answer = NULL;
}

static void entry_free(struct instance_cache *cache, struct entry *e)
{
    entry_drop_answer(cache, e);
    asked_unref(e->maybe_asked);
    source_release(cache, e->source);
    free(e);
}

void answers_supersede(struct instance_cache *cache, const struct source *s)
{
    str_table_each(&cache->entries, it) {
        struct entry *e = it->value;
        if (e->source == s)
            entry_drop_answer(cache, e);
    }
    stripes_sweep(cache, s);
}

/* The pool is known, and its node class is this one. */
static struct entry *entry_attach(struct instance_cache *cache, struct str name, struct source *s)
{
    struct entry *e = str_table_get(&cache->entries, name);
    if (!e) {
        e = kv_calloc(1, sizeof *e);
        str_table_put(&cache->entries, name, e);
    } else if (e->source == s) {
        return e;
    } else { /* it has turned to another */
        stripes_forget(cache, name);
        entry_drop_answer(cache, e);
        source_release(cache, e->source);
    }
    e->source = s;
    s->users++;
    return e;
}

static enum generation_member miss_cause(const struct entry *e, const struct generation *generation,
                                         const struct nodepool *pool)
{
    enum generation_member member = generation_difference(&e->generation, generation);
    if (!same_class(&e->maybe_asked->class_ref, class_ref_of(pool)))
        return GENERATION_INPUTS;
    if (member == GENERATION_MEMBERS && e->source->maybe_base && !e->maybe_answer)
        member = generation_difference(&e->source->generation, generation); /* it went back */
    return member == GENERATION_MEMBERS ? GENERATION_OVERLAYS : member;     /* the labels, then */
}

static void count_miss(struct instance_cache *cache, const struct entry *maybe_entry,
                       const struct generation *generation, const struct nodepool *pool)
{
    cache->stats.misses++;
    if (maybe_entry && maybe_entry->maybe_asked)
        cache->stats.misses_by[miss_cause(maybe_entry, generation, pool)]++;
    else
        cache->stats.misses_cold++;
}

static struct source *call_begin(struct instance_cache *cache, struct call *call,
                                 const struct nodepool *pool)
{
    call->pool_name = pool->object.meta.name;
    call->next = cache->calls;
    cache->calls = call;
    return source_hold(cache, class_ref_of(pool));
}

static void call_end(struct instance_cache *cache, struct call *call, struct source *s)
{
    struct call **at = &cache->calls;
    while (*at != call)
        at = &(*at)->next;
    *at = call->next;
    source_release(cache, s);
}

/* --- asking --- */

/* A base that is new enough became this answer: keep it if it is current, and hand it out. */
static const struct instance_types *conclude(struct instance_cache *cache, const struct call *call,
                                             const struct nodepool *pool, struct source *s,
                                             uint32_t stripe, struct answer *base,
                                             struct answer *answer,
                                             const struct generation *generation)
{
    uint64_t overlays_now = atomic_load_explicit(&cache->overlays_number, memory_order_relaxed);
    if (call->forgotten || base != s->maybe_base ||
        generation->member[GENERATION_OVERLAYS] != overlays_now)
        return instance_types_ref(answer->types);
    struct entry *e = entry_attach(cache, call->pool_name, s);
    if (e->maybe_answer != answer)
        stripes_forget(cache, call->pool_name); /* one for other labels, say */
    answer_ref(answer);
    entry_drop_answer(cache, e);
    asked_unref(e->maybe_asked);
    e->maybe_answer = answer;
    e->maybe_asked = asked_new(pool);
    e->generation = *generation;
    return stripe_keep(cache, stripe, call->pool_name, e);
}

static int make(struct instance_cache *cache, const struct nodepool *pool, uint32_t stripe,
                const struct generation *wanted, const struct instance_types **out, struct err *err)
{
    struct call call = { 0 };
    struct source *s = call_begin(cache, &call, pool);
    struct answer *base = NULL;
    struct generation generation;
    int rc = base_get(cache, s, pool, wanted, &base, &generation, err);
    if (rc == 0) {
        struct answer *answer =
            layer_get(cache, base, pool, &generation.member[GENERATION_OVERLAYS]);
        *out = conclude(cache, &call, pool, s, stripe, base, answer, &generation);
        answer_unref(cache, answer);
        answer_unref(cache, base);
    }
    call_end(cache, &call, s);
    return rc;
}

/* The stripe does not have it. Another may: then the pool's entry is the answer. */
static int miss(struct instance_cache *cache, const struct nodepool *pool, uint32_t stripe,
                const struct generation *generation, const struct instance_types **out,
                struct err *err)
{
    struct str name = pool->object.meta.name;
    int rc = 0;
    pthread_mutex_lock(&cache->lock);
    struct entry *e = str_table_get(&cache->entries, name);
    if (e && e->maybe_answer && generation_equal(&e->generation, generation) &&
        asked_same(e->maybe_asked, generation, pool)) {
        cache->stats.hits++;
        *out = stripe_keep(cache, stripe, name, e);
    } else {
        count_miss(cache, e, generation, pool);
        rc = make(cache, pool, stripe, generation, out, err);
    }
    pthread_mutex_unlock(&cache->lock);
    return rc;
}

int instance_cache_get(struct instance_cache *cache, const struct nodepool *pool,
                       const struct instance_types **out, struct err *err)
{
    struct generation generation;
    if (read_generation(cache, pool, &generation, err) < 0)
        return -1;
    uint32_t stripe = stripe_of_thread(cache);
    struct stripe *s = &cache->stripes[stripe];

    pthread_mutex_lock(&s->lock);
    const struct slot *slot = str_table_get(&s->slots, pool->object.meta.name);
    if (KV_LIKELY(slot && generation_equal(&slot->generation, &generation) &&
                  asked_same(slot->asked, &generation, pool))) {
        *out = instance_types_ref(slot->types);
        s->hits++;
        pthread_mutex_unlock(&s->lock);
        return 0;
    }
    pthread_mutex_unlock(&s->lock);
    return miss(cache, pool, stripe, &generation, out, err);
}

int instance_cache_get_raw(struct instance_cache *cache, const struct nodepool *pool,
                           const struct instance_types **out, struct err *err)
{
    struct generation wanted, generation;
    if (read_generation(cache, pool, &wanted, err) < 0)
        return -1;
    pthread_mutex_lock(&cache->lock);
    struct call call = { 0 };
    struct source *s = call_begin(cache, &call, pool);
    struct answer *base = NULL;
    int rc = base_get(cache, s, pool, &wanted, &base, &generation, err);
    if (rc == 0) {
        *out = instance_types_ref(base->types);
        if (!call.forgotten)
            entry_attach(cache, call.pool_name, s); /* keeps the source, and so its base */
        answer_unref(cache, base);
    }
    call_end(cache, &call, s);
    pthread_mutex_unlock(&cache->lock);
    return rc;
}

/* --- changes from outside --- */

static bool same_overlays(const struct overlay_set *a, const struct overlay_set *b)
{
    return a && b ? overlay_set_generation(a) == overlay_set_generation(b) : a == b;
}

/* The lock is held. Layers of the old number go; an empty set is none. */
static void renumber_overlays(struct instance_cache *cache)
{
    bool any = cache->maybe_overlays && overlay_set_count(cache->maybe_overlays) > 0;
    uint64_t old = atomic_load_explicit(&cache->overlays_number, memory_order_relaxed);
    uint64_t number = any ? ++cache->overlays_last : 0;
    if (number == old)
        return;
    atomic_store_explicit(&cache->overlays_number, number, memory_order_release);
    str_table_each(&cache->entries, it)
        entry_drop_answer(cache, it->value);
    stripes_sweep(cache, NULL);
}

void instance_cache_set_overlays(struct instance_cache *cache, const struct overlay_set *maybe_set)
{
    if (!cache->options.node_overlays)
        return;
    pthread_mutex_lock(&cache->lock);
    if (!same_overlays(cache->maybe_overlays, maybe_set)) {
        overlay_set_unref(cache->maybe_overlays);
        cache->maybe_overlays = maybe_set ? overlay_set_ref(maybe_set) : NULL;
        renumber_overlays(cache);
    }
    pthread_mutex_unlock(&cache->lock);
}

void instance_cache_forget(struct instance_cache *cache, struct str pool_name)
{
    pthread_mutex_lock(&cache->lock);
    for (struct call *call = cache->calls; call; call = call->next)
        call->forgotten |= str_eq(call->pool_name, pool_name);
    struct entry *e = str_table_remove(&cache->entries, pool_name);
    if (e)
        entry_free(cache, e);
    stripes_forget(cache, pool_name);
    pthread_mutex_unlock(&cache->lock);
}

/* --- statistics --- */

static void count_answers(const struct source *s, struct instance_cache_stats *stats)
{
    const struct answer *base = s->maybe_base;
    if (!base)
        return;
    stats->snapshots++;
    stats->bytes += base->types->bytes;
    vec_each(&base->layers, struct answer *, it) {
        const struct instance_types *types = (*it)->types;
        if (!types || types == base->types) /* being built, or overlays that change nothing */
            continue;
        stats->layers++;
        stats->bytes += types->bytes;
    }
}

struct instance_cache_stats instance_cache_stats(struct instance_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    struct instance_cache_stats stats = cache->stats;
    stats.newest.member[GENERATION_OVERLAYS] = atomic_load(&cache->overlays_number);
    stats.entries = cache->entries.live_count;
    str_table_each(&cache->sources, it)
        count_answers(it->value, &stats);
    for (uint32_t i = 0; i < cache->stripe_count; i++) {
        struct stripe *s = &cache->stripes[i];
        pthread_mutex_lock(&s->lock);
        stats.hits += s->hits;
        pthread_mutex_unlock(&s->lock);
    }
    pthread_mutex_unlock(&cache->lock);
    return stats;
}

/* --- the decorated provider: all but two calls go through --- */

static const struct cloud_provider *inner(void *ctx)
{
    return ((struct instance_cache *)ctx)->options.provider;
}

static int port_types(void *ctx, const struct nodepool *pool, const struct instance_types **out,
                      struct err *err)
{
    return instance_cache_get(ctx, pool, out, err);
}

static int port_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                           struct err *err)
{
    return read_generation(ctx, pool, out, err);
}

static int port_create(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                       struct instance *out, struct launch_failure *why, struct err *err)
{
    return inner(ctx)->create(inner(ctx)->ctx, claim, arena, out, why, err);
}

static int port_delete(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    return inner(ctx)->delete_(inner(ctx)->ctx, claim, err);
}

static int port_get(void *ctx, struct str provider_id, struct arena *arena, struct instance *out,
                    struct err *err)
{
    return inner(ctx)->get(inner(ctx)->ctx, provider_id, arena, out, err);
}

static int port_list(void *ctx, struct arena *arena, struct instances *out, struct err *err)
{
    return inner(ctx)->list(inner(ctx)->ctx, arena, out, err);
}

static int port_is_drifted(void *ctx, const struct nodeclaim *claim, const char **reason,
                           struct err *err)
{
    return inner(ctx)->is_drifted(inner(ctx)->ctx, claim, reason, err);
}

const struct cloud_provider *instance_cache_provider(struct instance_cache *cache)
{
    return &cache->port;
}

/* --- life --- */

/* A power of two, so that a thread's stripe is a mask away. */
static uint32_t stripe_count_for(uint32_t wanted)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    uint32_t n = 1;
    if (wanted == 0)
        wanted = cores > 0 ? (uint32_t)cores * 2 : 8; /* more threads than cores are usual */
    while (n < wanted && n < STRIPES_MAX)
        n *= 2;
    return n;
}

struct instance_cache *instance_cache_new(struct instance_cache_options options)
{
    struct instance_cache *cache = kv_calloc(1, sizeof *cache);
    cache->options = options;
    cache->port = *options.provider; /* name, policies, classes */
    cache->port.ctx = cache;
    cache->port.get_instance_types = port_types;
    cache->port.get_generation = port_generation;
    cache->port.create = port_create;
    cache->port.delete_ = port_delete;
    cache->port.get = port_get;
    cache->port.list = port_list;
    cache->port.is_drifted = port_is_drifted;
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->moved, NULL);

    cache->stripe_count = stripe_count_for(options.stripes);
    size_t bytes = cache->stripe_count * sizeof *cache->stripes;
    cache->stripes = aligned_alloc(STRIPE_ALIGN, bytes);
    KV_ASSERT(cache->stripes != NULL);
    memset(cache->stripes, 0, bytes);
    for (uint32_t i = 0; i < cache->stripe_count; i++)
        pthread_mutex_init(&cache->stripes[i].lock, NULL);
    if (options.maybe_metrics)
        cache->maybe_metrics = cache_metrics_new(cache, options.maybe_metrics);
    return cache;
}

void instance_cache_free(struct instance_cache *cache)
{
    if (!cache)
        return;
    KV_ASSERT(!cache->calls);
    cache_metrics_free(cache->maybe_metrics); /* from now on nobody counts us */
    stripes_sweep(cache, NULL);
    str_table_each(&cache->entries, it)
        entry_free(cache, it->value);
    KV_ASSERT(cache->sources.live_count == 0);
    for (uint32_t i = 0; i < cache->stripe_count; i++) {
        str_table_done(&cache->stripes[i].slots);
        pthread_mutex_destroy(&cache->stripes[i].lock);
    }
    free(cache->stripes);
    str_table_done(&cache->entries);
    str_table_done(&cache->sources);
    buf_done(&cache->text);
    overlay_set_unref(cache->maybe_overlays);
    pthread_cond_destroy(&cache->moved);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}
