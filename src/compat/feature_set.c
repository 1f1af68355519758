/* The pool of feature sets, and how they are read.
 *
 * A set is a header and one array of 32-bit words: its features, the lists they point at, and then
 * the bytes of all texts. Everything refers to everything else by position, so two sets are equal
 * exactly if their words are, and the hash of the words finds the twin. Invariants:
 *
 *  1. A set is in the pool's table exactly while its count is above zero; the step from one to zero,
 *     and every look-up, happens under the pool's lock.
 *  2. No two sets of a pool are equal.
 */
#include "compat/feature_set_inner.h"

#include "base/map.h"

#include <pthread.h>
#include <stdatomic.h>

struct feature_set {
    atomic_uint refs;
    struct feature_sets *pool;
    struct feature_set *next; /* with the same hash; guarded by the pool's lock */
    uint64_t hash;
    struct feature_shape shape;
    uint32_t words[];
};

struct feature_sets {
    pthread_mutex_t lock; /* guards everything here and the sets' links; a leaf */
    struct map by_hash;   /* -> the first of a chain */
    struct feature_sets_stats stats;
};

/* --- the pool --- */

struct feature_sets *feature_sets_new(void)
{
    struct feature_sets *pool = kv_calloc(1, sizeof *pool);
    pthread_mutex_init(&pool->lock, NULL);
    return pool;
}

void feature_sets_free(struct feature_sets *pool)
{
    if (!pool)
        return;
    KV_ASSERT(pool->stats.set_count == 0);
    map_done(&pool->by_hash);
    pthread_mutex_destroy(&pool->lock);
    free(pool);
}

struct feature_sets_stats feature_sets_stats(struct feature_sets *pool)
{
    pthread_mutex_lock(&pool->lock);
    struct feature_sets_stats stats = pool->stats;
    pthread_mutex_unlock(&pool->lock);
    return stats;
}

static struct feature_set *chain_of(const struct feature_sets *pool, uint64_t hash)
{
    uintptr_t first = 0;
    map_get(&pool->by_hash, hash, &first);
    return (struct feature_set *)first;
}

static bool shape_equal(const struct feature_shape *a, const struct feature_shape *b)
{
    return a->feature_count == b->feature_count && a->list_words == b->list_words &&
           a->text_words == b->text_words && a->others_unknown == b->others_unknown;
}

static size_t shape_bytes(const struct feature_shape *shape)
{
    return ((size_t)shape->list_words + shape->text_words) * sizeof(uint32_t);
}

const struct feature_set *feature_sets_intern(struct feature_sets *pool,
                                              const struct feature_shape *shape,
                                              const uint32_t *words)
{
    size_t bytes = shape_bytes(shape);
    uint64_t hash = kv_hash_salted(words, bytes, shape->feature_count * 2 + shape->others_unknown);

    pthread_mutex_lock(&pool->lock);
    struct feature_set *first = chain_of(pool, hash), *set = first;
    while (set && !(shape_equal(&set->shape, shape) && memcmp(set->words, words, bytes) == 0))
        set = set->next;
    if (set) {
        atomic_fetch_add_explicit(&set->refs, 1, memory_order_relaxed);
        pool->stats.shared_count++;
    } else {
        set = kv_malloc(sizeof *set + bytes);
        *set = (struct feature_set){ .pool = pool, .next = first, .hash = hash, .shape = *shape };
        atomic_init(&set->refs, 1);
        memcpy(set->words, words, bytes);
        map_put(&pool->by_hash, hash, (uintptr_t)set);
        pool->stats.set_count++;
        pool->stats.bytes += feature_set_bytes(set);
    }
    pthread_mutex_unlock(&pool->lock);
    return set;
}

static void unlink_set(struct feature_sets *pool, struct feature_set *set)
{
    struct feature_set *first = chain_of(pool, set->hash);
    if (first != set) {
        while (first->next != set)
            first = first->next;
        first->next = set->next;
    } else if (set->next) {
        map_put(&pool->by_hash, set->hash, (uintptr_t)set->next);
    } else {
        map_remove(&pool->by_hash, set->hash, NULL);
    }
    pool->stats.set_count--;
    pool->stats.bytes -= feature_set_bytes(set);
}

const struct feature_set *feature_set_ref(const struct feature_set *set)
{
    unsigned before =
        atomic_fetch_add_explicit(&((struct feature_set *)set)->refs, 1, memory_order_relaxed);
    KV_ASSERT(before > 0);
    return set;
}

void feature_set_unref(const struct feature_set *shared)
{
    struct feature_set *set = (struct feature_set *)shared;
    if (!set)
        return;
    /* Not the last: no lock. */
    unsigned refs = atomic_load_explicit(&set->refs, memory_order_relaxed);
    while (refs > 1) {
        if (atomic_compare_exchange_weak_explicit(&set->refs, &refs, refs - 1, memory_order_release,
                                                  memory_order_relaxed))
            return;
    }
    struct feature_sets *pool = set->pool;
    pthread_mutex_lock(&pool->lock);
    bool last = atomic_fetch_sub_explicit(&set->refs, 1, memory_order_acq_rel) == 1;
    if (last)
        unlink_set(pool, set);
    pthread_mutex_unlock(&pool->lock);
    if (last)
        free(set);
}

/* --- reading --- */

uint64_t feature_set_hash(const struct feature_set *set)
{
    return set->hash;
}

size_t feature_set_bytes(const struct feature_set *set)
{
    return sizeof *set + shape_bytes(&set->shape);
}

bool feature_set_others_unknown(const struct feature_set *set)
{
    return set->shape.others_unknown;
}

uint32_t feature_set_count(const struct feature_set *set)
{
    return set->shape.feature_count;
}

const struct set_feature *feature_set_at(const struct feature_set *set, uint32_t ix)
{
    KV_ASSERT(ix < set->shape.feature_count);
    return (const struct set_feature *)(const void *)set->words + ix;
}

struct str feature_set_str(const struct feature_set *set, struct feature_text text)
{
    const char *texts = (const char *)(set->words + set->shape.list_words);
    return (struct str){ texts + text.at, text.len };
}

const struct feature_text *feature_set_flags(const struct feature_set *set,
                                             const struct set_feature *f)
{
    return (const struct feature_text *)(const void *)(set->words + f->flags);
}

const struct feature_text *feature_set_unsure(const struct feature_set *set,
                                              const struct set_feature *f)
{
    return (const struct feature_text *)(const void *)(set->words + f->unsure);
}

const struct feature_text *feature_set_absent(const struct feature_set *set,
                                              const struct set_feature *f)
{
    return (const struct feature_text *)(const void *)(set->words + f->absent);
}

const struct feature_value *feature_set_values(const struct feature_set *set,
                                               struct feature_attribute_range range)
{
    return (const struct feature_value *)(const void *)(set->words + range.at);
}

const struct feature_attribute_range *feature_set_instances(const struct feature_set *set,
                                                            const struct set_feature *f)
{
    return (const struct feature_attribute_range *)(const void *)(set->words + f->instances);
}

/* The one of `count` items of `size` bytes, each of which starts with its name; they are sorted by
 * it. NULL if there is none. */
static const void *find_named(const struct feature_set *set, const void *items, uint32_t count,
                              size_t size, struct str name)
{
    uint32_t low = 0, high = count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        const struct feature_text *at = (const void *)((const char *)items + (size_t)middle * size);
        int order = str_cmp(name, feature_set_str(set, *at));
        if (order == 0)
            return at;
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

const struct set_feature *feature_set_find(const struct feature_set *set, struct str name)
{
    return find_named(set, set->words, set->shape.feature_count, sizeof(struct set_feature), name);
}

bool feature_set_has_flag(const struct feature_set *set, const struct set_feature *f,
                          struct str name)
{
    return find_named(set, feature_set_flags(set, f), f->flag_count, sizeof(struct feature_text),
                      name) != NULL;
}

bool feature_set_is_unsure(const struct feature_set *set, const struct set_feature *f,
                           struct str name)
{
    return find_named(set, feature_set_unsure(set, f), f->unsure_count, sizeof(struct feature_text),
                      name) != NULL;
}

bool feature_set_is_absent(const struct feature_set *set, const struct set_feature *f,
                           struct str name)
{
    return find_named(set, feature_set_absent(set, f), f->absent_count, sizeof(struct feature_text),
                      name) != NULL;
}

struct str feature_set_value(const struct feature_set *set, struct feature_attribute_range range,
                             struct str name)
{
    const struct feature_value *v = find_named(set, feature_set_values(set, range), range.count,
                                               sizeof(struct feature_value), name);
    return v ? feature_set_str(set, v->value) : STR_NONE;
}
