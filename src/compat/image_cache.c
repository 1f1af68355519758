/* Looking up: a hit takes one shard's lock for reading, finds the name, and copies what it says with a reference
 * of the facts. It writes a bit for the clock's hand if that is not set, and counters beside the lock. Only
 * what is missing or due goes on to the cache's lock, and queues the name for the threads of
 * image_cache_ask.c.
 */
#include "compat/image_cache_inner.h"

#define SECOND_NS ((int64_t)1000000000)

/* --- what a name answers, under either lock --- */

struct image_shard *image_shard_of(struct image_cache *cache, uint64_t hash)
{
    return &cache->shards[hash >> 58]; /* the table uses the low bits */
}
_Static_assert(IMAGE_SHARDS == 1 << (64 - 58), "the high bits choose among all shards");

/* With a disabled cache an answer is there to be read, not to be kept. */
static bool is_over(const struct image_cache *cache, const struct image_name *name, int64_t now_ns)
{
    int64_t read_at = atomic_load_explicit(&name->read_at, memory_order_relaxed);
    return cache->options.disabled &&
           (now_ns >= name->due_ns || now_ns - read_at >= IMAGE_CACHE_READ_NS);
}

enum image_state image_name_state(const struct image_cache *cache, const struct image_name *name,
                                  int64_t now_ns)
{
    if (is_over(cache, name, now_ns))
        return IMAGE_PENDING;
    if (name->maybe_facts && now_ns - name->confirmed_ns < cache->options.stale_max_ns)
        return IMAGE_KNOWN;
    if (name->failure == ERR_NONE || now_ns >= name->failed_until_ns)
        return IMAGE_PENDING;
    return name->failure == ERR_NOT_FOUND ? IMAGE_UNKNOWN : IMAGE_FAILED;
}

static void fill_answer(struct image_cache *cache, struct image_name *name, int64_t now_ns,
                        struct image_answer *out)
{
    out->state = image_name_state(cache, name, now_ns);
    if (out->state == IMAGE_PENDING)
        return;
    if (out->state == IMAGE_KNOWN) {
        out->maybe_facts = image_facts_ref(name->maybe_facts);
        out->stale = now_ns >= name->fresh_until_ns;
    }
    out->age_ns = now_ns - (out->state == IMAGE_KNOWN ? name->confirmed_ns : name->failed_ns);
    if (name->failure != ERR_NONE && (out->stale || out->state != IMAGE_KNOWN))
        err_set(&out->err, name->failure, "%s", name->maybe_why);
    if (cache->options.disabled) {
        int64_t unread = UNREAD;
        atomic_compare_exchange_strong(&name->read_at, &unread, now_ns);
    }
}

static bool wants_asking(const struct image_cache *cache, const struct image_name *name,
                         int64_t now_ns)
{
    return !atomic_load_explicit(&name->asking, memory_order_relaxed) &&
           (now_ns >= name->due_ns || image_name_state(cache, name, now_ns) == IMAGE_PENDING);
}

/* --- looking up --- */

struct wanted {
    struct str image;
    const struct keyring *maybe_keys;
    uint64_t hash, identity;
    struct image_shard *shard;
};

static void answer_clear(struct image_answer *out)
{
    out->state = IMAGE_PENDING;
    out->maybe_facts = NULL;
    out->stale = false;
    out->age_ns = 0;
    out->err.kind = ERR_NONE;
    out->err.text[0] = '\0'; /* the rest of it is not worth writing */
}

static void count(_Atomic uint64_t *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/* True: that is all there is to do. False: it is not there, or somebody has to ask. */
static bool look_up_fast(struct image_cache *cache, const struct wanted *want,
                         struct image_answer *out)
{
    int64_t now_ns = clock_mono_ns(cache->options.clock);
    bool done = false;
    pthread_rwlock_rdlock(&want->shard->lock);
    struct image_name *name =
        image_cache_find(want->shard, want->image, want->hash, want->identity);
    if (name) {
        if (!atomic_load_explicit(&name->used, memory_order_relaxed))
            atomic_store_explicit(&name->used, true, memory_order_relaxed);
        done = !wants_asking(cache, name, now_ns);
        if (done)
            fill_answer(cache, name, now_ns, out);
    }
    pthread_rwlock_unlock(&want->shard->lock);
    return done;
}

/* With cache->lock held. False: there is no room for it. */
static bool look_up_slow(struct image_cache *cache, const struct wanted *want,
                         const struct reference *ref, struct image_answer *out)
{
    int64_t now_ns = clock_mono_ns(cache->options.clock);
    struct image_name *name =
        image_cache_find(want->shard, want->image, want->hash, want->identity);
    if (!name)
        name = image_cache_add(cache, want->image, want->hash, ref, want->maybe_keys);
    if (!name)
        return false;
    if (wants_asking(cache, name, now_ns))
        image_cache_ask(cache, name, now_ns);
    fill_answer(cache, name, now_ns, out);
    return true;
}

/* `until_ns` INT64_MIN: do not wait. */
static void look_up(struct image_cache *cache, struct str image, const struct keyring *maybe_keys,
                    int64_t until_ns, struct image_answer *out)
{
    uint64_t hash = kv_hash(image.p, image.len);
    struct wanted want = { image, maybe_keys, hash, keyring_identity(maybe_keys),
                           image_shard_of(cache, hash) };
    answer_clear(out);
    count(&want.shard->requests);
    bool found = look_up_fast(cache, &want, out);
    if (found && out->state != IMAGE_PENDING) {
        count(&want.shard->hits);
        return;
    }
    if (found)
        count(&want.shard->joined);
    if (found && until_ns == INT64_MIN)
        return;

    AUTO_ARENA arena = { 0 };
    struct reference ref;
    if (reference_parse(&arena, image, &ref, &out->err) < 0) {
        out->state = IMAGE_FAILED;
        return;
    }
    pthread_mutex_lock(&cache->lock);
    bool room = look_up_slow(cache, &want, &ref, out);
    if (!room)
        count(&want.shard->refused);
    if (out->state != IMAGE_PENDING)
        count(&want.shard->hits);
    while (out->state == IMAGE_PENDING && clock_mono_ns(cache->options.clock) < until_ns) {
        cache->waiting_count++;
        clock_wait(cache->options.clock, &cache->answered, &cache->lock, until_ns);
        cache->waiting_count--;
        look_up_slow(cache, &want, &ref, out);
    }
    pthread_mutex_unlock(&cache->lock);
}

void image_cache_get(struct image_cache *cache, struct str image, const struct keyring *maybe_keys,
                     struct image_answer *out)
{
    look_up(cache, image, maybe_keys, INT64_MIN, out);
}

void image_cache_wait(struct image_cache *cache, struct str image, const struct keyring *maybe_keys,
                      int64_t until_ns, struct image_answer *out)
{
    look_up(cache, image, maybe_keys, until_ns, out);
}

void image_answer_done(struct image_answer *answer)
{
    image_facts_unref(answer->maybe_facts);
    answer->maybe_facts = NULL;
}

/* --- forgetting, and looking again --- */

void image_cache_remove(struct image_cache *cache, struct str image)
{
    uint64_t hash = kv_hash(image.p, image.len);
    struct image_shard *shard = image_shard_of(cache, hash);
    pthread_mutex_lock(&cache->lock);
    for (struct image_name *name; (name = str_table_get_hashed(&shard->names, image, hash));)
        image_cache_drop(cache, name);
    pthread_mutex_unlock(&cache->lock);
}

void image_cache_refresh(struct image_cache *cache, struct str image)
{
    uint64_t hash = kv_hash(image.p, image.len);
    struct image_shard *shard = image_shard_of(cache, hash);
    pthread_mutex_lock(&cache->lock);
    struct image_name *name = str_table_get_hashed(&shard->names, image, hash);
    for (; name; name = name->same_next) {
        bool running = atomic_load(&name->asking) && !name->queued;
        name->again |= running;
        name->forced |= !running;
        if (!atomic_load(&name->asking))
            image_cache_ask(cache, name, clock_mono_ns(cache->options.clock));
    }
    pthread_mutex_unlock(&cache->lock);
}

/* --- life --- */

static void set_default(int64_t *ns, int64_t seconds)
{
    KV_ASSERT(*ns >= 0);
    if (*ns == 0)
        *ns = seconds * SECOND_NS;
}

static void set_defaults(struct image_cache_options *o)
{
    set_default(&o->facts_ttl_ns, 600);
    set_default(&o->negative_ttl_ns, 300);
    set_default(&o->unknown_ttl_ns, 30);
    set_default(&o->error_ttl_ns, 30);
    set_default(&o->stale_max_ns, (int64_t)24 * 3600);
    KV_ASSERT(o->ttl_ns >= 0); /* 0 depends on the tag */
    o->entries_max = o->entries_max ? o->entries_max : 10000;
    o->bytes_max = o->bytes_max ? o->bytes_max : (size_t)64 << 20;
    o->threads = o->threads ? o->threads : 8;
}

static void shards_init(struct image_cache *cache)
{
    /* By default readers go first, and many of them would keep an answer from being written down. */
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    for (size_t i = 0; i < IMAGE_SHARDS; i++)
        pthread_rwlock_init(&cache->shards[i].lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

int image_cache_new(struct image_cache_options options, struct image_cache **out, struct err *err)
{
    KV_ASSERT(options.source.ask != NULL);
    KV_ASSERT(options.clock != NULL);
    set_defaults(&options);
    struct image_cache *cache = aligned_alloc(_Alignof(struct image_cache), sizeof *cache);
    KV_ASSERT(cache != NULL);
    memset(cache, 0, sizeof *cache);
    cache->options = options;
    shards_init(cache);
    pthread_mutex_init(&cache->lock, NULL);
    pthread_cond_init(&cache->work, NULL);
    clock_cond_init(&cache->answered);
    image_cache_metrics_init(cache);
    if (image_cache_start(cache, err) < 0) {
        image_cache_free(cache);
        return -1;
    }
    *out = cache;
    return 0;
}

void image_cache_free(struct image_cache *cache)
{
    if (!cache)
        return;
    KV_ASSERT(cache->waiting_count == 0);
    image_cache_stop(cache);
    image_cache_metrics_done(cache);
    image_cache_clear(cache);
    for (size_t i = 0; i < IMAGE_SHARDS; i++) {
        str_table_done(&cache->shards[i].names);
        pthread_rwlock_destroy(&cache->shards[i].lock);
    }
    pthread_cond_destroy(&cache->answered);
    pthread_cond_destroy(&cache->work);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

struct image_cache_stats image_cache_stats(struct image_cache *cache)
{
    struct image_cache_stats stats = { 0 };
    for (size_t i = 0; i < IMAGE_SHARDS; i++) {
        const struct image_shard *shard = &cache->shards[i];
        stats.requests += atomic_load_explicit(&shard->requests, memory_order_relaxed);
        stats.hits += atomic_load_explicit(&shard->hits, memory_order_relaxed);
        stats.joined += atomic_load_explicit(&shard->joined, memory_order_relaxed);
        stats.refused += atomic_load_explicit(&shard->refused, memory_order_relaxed);
    }
    pthread_mutex_lock(&cache->lock);
    stats.resolves = cache->resolves;
    stats.asks = cache->asks;
    stats.evictions = cache->evictions;
    stats.names = cache->name_count;
    stats.digests = cache->digests.live_count;
    stats.bytes = cache->bytes;
    pthread_mutex_unlock(&cache->lock);
    return stats;
}
