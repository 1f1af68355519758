/* What the cache holds, and what it lets go.
 *
 * Names are in one list that the hand of a clock goes round: a hit only sets a bit, and the hand clears it;
 * a name whose bit is clear when the hand comes has not been used for a whole round, and leaves. A new name
 * has no bit: if it is not used again it leaves before those that are, so a list of images that somebody
 * looks up once drives nothing out. Names that are being asked for are not in the list, or a herd of misses would
 * evict each other before anybody is answered.
 *
 * A digest stays for as long as a name is linked to it. After that it is idle: a tag may come back to it, and
 * until then it is the first to go. Facts that were handed out are counted, so what leaves the cache lives on
 * for those who use it.
 */
#include "compat/image_cache_inner.h"

#include <inttypes.h>

/* What a string costs in a table: its copy, its slot, two cells of the index. */
static size_t slot_bytes(struct str key)
{
    return sizeof(struct str_slot) + 2 * sizeof(uint32_t) + key.len + 1;
}

static size_t name_bytes(const struct image_name *name)
{
    return sizeof *name + name->image.len + 1 + slot_bytes(name->image);
}

/* --- names --- */

struct image_name *image_cache_find(struct image_shard *shard, struct str image, uint64_t hash,
                                    uint64_t identity)
{
    struct image_name *name = str_table_get_hashed(&shard->names, image, hash);
    while (name && name->identity != identity)
        name = name->same_next;
    return name;
}

static struct ask_host *host_of(struct image_cache *cache, struct str host)
{
    struct ask_host *found = str_table_get(&cache->hosts, host);
    if (!found) {
        found = kv_calloc(1, sizeof *found);
        str_table_put(&cache->hosts, host, found);
        found->host = str_table_slot(&cache->hosts, host)->key;
    }
    found->name_count++;
    return found;
}

void image_cache_host_leave(struct image_cache *cache, struct ask_host *host)
{
    if (--host->name_count > 0)
        return;
    KV_ASSERT(!host->listed);
    KV_ASSERT(host->running == 0);
    str_table_remove(&cache->hosts, host->host);
    free(host);
}

static void ring_append(struct image_cache *cache, struct image_name *name)
{
    name->older = cache->newest;
    name->newer = NULL;
    *(cache->newest ? &cache->newest->newer : &cache->oldest) = name;
    cache->newest = name;
}

static void ring_remove(struct image_cache *cache, struct image_name *name)
{
    *(name->older ? &name->older->newer : &cache->oldest) = name->newer;
    *(name->newer ? &name->newer->older : &cache->newest) = name->older;
}

static int64_t ttl_of(const struct image_cache *cache, const struct reference *ref)
{
    if (ref->digest.len > 0)
        return INT64_MAX;
    if (cache->options.ttl_ns > 0)
        return cache->options.ttl_ns;
    return (int64_t)(str_eq(ref->tag, STR("latest")) ? 60 : 300) * 1000000000;
}

struct image_name *image_cache_add(struct image_cache *cache, struct str image, uint64_t hash,
                                   const struct reference *ref, const struct keyring *maybe_keys)
{
    image_cache_trim(cache, cache->options.entries_max - 1, NULL);
    if (cache->name_count >= cache->options.entries_max)
        return NULL;

    struct image_name *name = kv_calloc(1, sizeof *name + image.len + 1);
    rc_init(&name->rc);
    memcpy(name->text, image.p, image.len);
    name->image = (struct str){ name->text, image.len };
    name->hash = hash;
    name->identity = keyring_identity(maybe_keys);
    name->maybe_keys = maybe_keys ? keyring_ref(maybe_keys) : NULL;
    name->host = host_of(cache, ref->host);
    name->ttl_ns = ttl_of(cache, ref);
    atomic_init(&name->read_at, UNREAD);

    struct image_shard *shard = image_shard_of(cache, hash);
    pthread_rwlock_wrlock(&shard->lock);
    name->same_next = str_table_get_hashed(&shard->names, image, hash);
    str_table_put(&shard->names, name->image, name);
    pthread_rwlock_unlock(&shard->lock);

    ring_append(cache, name);
    cache->name_count++;
    cache->bytes += name_bytes(name);
    return name;
}

struct image_name *image_name_ref(struct image_name *name)
{
    rc_ref(&name->rc);
    return name;
}

void image_name_unref(struct image_cache *cache, struct image_name *name)
{
    if (!rc_unref(&name->rc))
        return;
    image_cache_host_leave(cache, name->host);
    keyring_unref(name->maybe_keys);
    image_facts_unref(name->maybe_facts);
    free(name->maybe_why);
    free(name);
}

void image_name_set_failure(struct image_cache *cache, struct image_name *name,
                            const struct err *maybe_err)
{
    if (name->maybe_why && !name->gone)
        cache->bytes -= strlen(name->maybe_why) + 1;
    free(name->maybe_why);
    name->maybe_why = maybe_err ? kv_strdup(maybe_err->text) : NULL;
    name->failure = maybe_err ? maybe_err->kind : ERR_NONE;
    if (name->maybe_why && !name->gone)
        cache->bytes += strlen(name->maybe_why) + 1;
}

void image_cache_drop(struct image_cache *cache, struct image_name *name)
{
    struct image_shard *shard = image_shard_of(cache, name->hash);
    pthread_rwlock_wrlock(&shard->lock);
    struct image_name *first = str_table_get_hashed(&shard->names, name->image, name->hash);
    if (first != name) {
        while (first->same_next != name)
            first = first->same_next;
        first->same_next = name->same_next;
    } else if (name->same_next) {
        str_table_put(&shard->names, name->image, name->same_next);
    } else {
        str_table_remove(&shard->names, name->image);
    }
    pthread_rwlock_unlock(&shard->lock);

    image_name_link(cache, name, NULL);
    if (!atomic_load(&name->asking))
        ring_remove(cache, name);
    cache->name_count--;
    cache->bytes -= name_bytes(name) + (name->maybe_why ? strlen(name->maybe_why) + 1 : 0);
    name->gone = true;
    image_name_unref(cache, name);
}

void image_cache_busy(struct image_cache *cache, struct image_name *name)
{
    atomic_store(&name->asking, true);
    if (!name->gone)
        ring_remove(cache, name);
}

void image_cache_unbusy(struct image_cache *cache, struct image_name *name)
{
    atomic_store(&name->asking, false);
    if (!name->gone)
        ring_append(cache, name);
}

/* --- digests --- */

struct image_digest *image_cache_digest(struct image_cache *cache, const struct reference *ref,
                                        uint64_t identity, struct str digest)
{
    AUTO_BUF key = { 0 };
    buf_addf(&key, "%" PRIx64 " %.*s/%.*s@%.*s", identity, STR_ARG(ref->registry),
             STR_ARG(ref->repository), STR_ARG(digest));
    struct image_digest *found = str_table_get(&cache->digests, buf_str(&key));
    if (found)
        return found;
    found = kv_calloc(1, sizeof *found);
    str_table_put(&cache->digests, buf_str(&key), found);
    found->key = str_table_slot(&cache->digests, buf_str(&key))->key;
    found->bytes = sizeof *found + slot_bytes(found->key);
    cache->bytes += found->bytes;
    return found;
}

struct str image_digest_text(const struct image_digest *digest)
{
    struct str before, text;
    bool cut = str_cut(digest->key, '@', &before, &text); /* no registry or repository has one */
    KV_ASSERT(cut);
    return text;
}

/* A spec that many digests have counts once. */
static void spec_enter(struct image_cache *cache, const struct compat_spec *maybe_spec)
{
    uintptr_t users = 0;
    if (!maybe_spec)
        return;
    if (!map_get(&cache->specs, (uintptr_t)maybe_spec, &users))
        cache->bytes += compat_spec_bytes(maybe_spec);
    map_put(&cache->specs, (uintptr_t)maybe_spec, users + 1);
}

static void spec_leave(struct image_cache *cache, const struct compat_spec *maybe_spec)
{
    uintptr_t users = 0;
    if (!maybe_spec)
        return;
    map_get(&cache->specs, (uintptr_t)maybe_spec, &users);
    KV_ASSERT(users > 0);
    if (users > 1) {
        map_put(&cache->specs, (uintptr_t)maybe_spec, users - 1);
        return;
    }
    map_remove(&cache->specs, (uintptr_t)maybe_spec, NULL);
    cache->bytes -= compat_spec_bytes(maybe_spec);
}

static void drop_facts(struct image_cache *cache, struct image_digest *digest)
{
    const struct image_facts *facts = digest->maybe_facts;
    if (!facts)
        return;
    spec_leave(cache, facts->spec.maybe_spec);
    for (uint32_t i = 0; i < facts->platform_count; i++)
        spec_leave(cache, facts->platforms[i].spec.maybe_spec);
    image_facts_unref(facts);
}

void image_digest_set_facts(struct image_cache *cache, struct image_digest *digest,
                            const struct image_facts *facts)
{
    spec_enter(cache, facts->spec.maybe_spec);
    for (uint32_t i = 0; i < facts->platform_count; i++)
        spec_enter(cache, facts->platforms[i].spec.maybe_spec);
    image_facts_ref(facts);
    cache->bytes -= digest->bytes;
    drop_facts(cache, digest);
    digest->maybe_facts = facts;
    digest->bytes = sizeof *digest + slot_bytes(digest->key) + facts->bytes;
    cache->bytes += digest->bytes;
}

static void idle_remove(struct image_cache *cache, struct image_digest *digest)
{
    *(digest->idle_prev ? &digest->idle_prev->idle_next : &cache->idle_oldest) = digest->idle_next;
    *(digest->idle_next ? &digest->idle_next->idle_prev : &cache->idle_newest) = digest->idle_prev;
    digest->idle = false;
}

static void digest_free(struct image_cache *cache, struct image_digest *digest)
{
    KV_ASSERT(!digest->asking);
    KV_ASSERT(!digest->linked);
    KV_ASSERT(digest->parked.count == 0);
    if (digest->idle)
        idle_remove(cache, digest);
    cache->bytes -= digest->bytes;
    str_table_remove(&cache->digests, digest->key);
    drop_facts(cache, digest);
    vec_done(&digest->parked);
    free(digest);
}

void image_digest_rest(struct image_cache *cache, struct image_digest *digest)
{
    bool needed = digest->linked || digest->asking;
    if (needed && digest->idle)
        idle_remove(cache, digest);
    if (needed || digest->idle)
        return;
    if (!digest->maybe_facts) {
        digest_free(cache, digest);
        return;
    }
    digest->idle = true;
    digest->idle_prev = cache->idle_newest;
    digest->idle_next = NULL;
    *(cache->idle_newest ? &cache->idle_newest->idle_next : &cache->idle_oldest) = digest;
    cache->idle_newest = digest;
}

void image_name_link(struct image_cache *cache, struct image_name *name,
                     struct image_digest *maybe_digest)
{
    struct image_digest *before = name->maybe_digest;
    if (before == maybe_digest)
        return;
    if (before) {
        *(name->linked_prev ? &name->linked_prev->linked_next : &before->linked) =
            name->linked_next;
        if (name->linked_next)
            name->linked_next->linked_prev = name->linked_prev;
    }
    name->maybe_digest = maybe_digest;
    name->linked_prev = name->linked_next = NULL;
    if (maybe_digest) {
        name->linked_next = maybe_digest->linked;
        if (name->linked_next)
            name->linked_next->linked_prev = name;
        maybe_digest->linked = name;
        image_digest_rest(cache, maybe_digest);
    }
    if (before)
        image_digest_rest(cache, before);
}

/* --- leaving --- */

static bool is_over(const struct image_cache *cache, uint32_t names_max)
{
    return cache->name_count > names_max || cache->bytes > cache->options.bytes_max ||
           cache->digests.live_count > cache->options.entries_max;
}

void image_cache_trim(struct image_cache *cache, uint32_t names_max,
                      const struct image_name *maybe_keep)
{
    /* Two rounds of the hand: one may only clear bits. */
    uint64_t steps = 2 * (uint64_t)cache->name_count;
    while (is_over(cache, names_max)) {
        if (cache->idle_oldest) {
            digest_free(cache, cache->idle_oldest);
            continue;
        }
        struct image_name *name = cache->oldest;
        if (!name || steps-- == 0)
            return;
        ring_remove(cache, name);
        ring_append(cache, name);
        bool second_chance = atomic_exchange_explicit(&name->used, false, memory_order_relaxed);
        if (!second_chance && name != maybe_keep) {
            image_cache_drop(cache, name);
            cache->evictions++;
        }
    }
}

void image_cache_clear(struct image_cache *cache)
{
    while (cache->oldest)
        image_cache_drop(cache, cache->oldest);
    while (cache->idle_oldest)
        digest_free(cache, cache->idle_oldest);
    KV_ASSERT(cache->digests.live_count == 0);
    KV_ASSERT(cache->hosts.live_count == 0);
    KV_ASSERT(cache->bytes == 0);
    KV_ASSERT(cache->specs.live_count == 0);
    map_done(&cache->specs);
    str_table_done(&cache->digests);
    str_table_done(&cache->hosts);
}
