/* Objects and the blocks they share.
 *
 * Decoding makes a view (schema.c), lets the kind settle it, and flattens it (flat.c) into one block
 * of the exact size. Each FIELD_SHARED value met on the way is flattened by itself and looked up in
 * the pool by the hash of its bytes: equal ones are found and counted, a new one becomes a block.
 *
 * Invariants:
 *  1. A shared block is in its shard's table exactly while its count is above zero; the step from
 *     one to zero, and every look-up, happens under the shard's lock.
 *  2. An object holds one count of each shared block that it points at.
 *  3. No two live blocks of a pool have equal type and contents.
 */
#include "api/flat.h"
#include "api/object.h"
#include "base/rc.h"

#include <pthread.h>

#define SHARD_COUNT 16 /* a power of two: enough that decoders on all cores rarely meet */
#define BUCKET_COUNT_MIN 64
#define SCRATCH_BYTES_MAX ((size_t)1 << 20) /* kept between decodes; one huge object frees it */
#define SCRATCH_COUNT_MAX 16

struct shared {
    struct shared *next; /* in its bucket */
    struct shard *shard;
    uint64_t hash;
    /* What the bytes are. Equal bytes of different types are not equal: one has a pointer where
     * the other has a number. */
    const struct schema *maybe_schema;
    atomic_uint refs;
    uint32_t len;
    uint8_t type; /* enum field_type */
    _Alignas(8) unsigned char bytes[];
};

struct shard {
    pthread_mutex_t lock; /* guards everything here and the links of its blocks; a leaf */
    struct shared **buckets;
    size_t bucket_count, count;
    uint64_t bytes, hit_count;
};

/* What one decode needs and the next can use again. */
struct scratch {
    struct scratch *next;
    struct arena arena;
    struct flat own, shared;
    struct object_pool *pool;
};

struct object_pool {
    struct shard shards[SHARD_COUNT];
    pthread_mutex_t scratch_lock; /* guards the two below; a leaf */
    struct scratch *idle;
    uint32_t idle_count;
};

/* --- the pool --- */

struct object_pool *object_pool_new(void)
{
    struct object_pool *pool = kv_calloc(1, sizeof *pool);
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        struct shard *s = &pool->shards[i];
        pthread_mutex_init(&s->lock, NULL);
        s->bucket_count = BUCKET_COUNT_MIN;
        s->buckets = kv_calloc(s->bucket_count, sizeof(struct shared *));
    }
    pthread_mutex_init(&pool->scratch_lock, NULL);
    return pool;
}

static void scratch_free(struct scratch *s)
{
    arena_done(&s->arena);
    flat_done(&s->own);
    flat_done(&s->shared);
    free(s);
}

void object_pool_free(struct object_pool *pool)
{
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        struct shard *s = &pool->shards[i];
        KV_ASSERT(s->count == 0); /* an object of this pool is still referenced */
        free(s->buckets);
        pthread_mutex_destroy(&s->lock);
    }
    while (pool->idle) {
        struct scratch *s = pool->idle;
        pool->idle = s->next;
        scratch_free(s);
    }
    pthread_mutex_destroy(&pool->scratch_lock);
    free(pool);
}

struct object_pool_stats object_pool_stats(const struct object_pool *pool)
{
    struct object_pool_stats stats = { 0 };
    for (size_t i = 0; i < SHARD_COUNT; i++) {
        struct shard *s = (struct shard *)&pool->shards[i];
        pthread_mutex_lock(&s->lock);
        stats.shared_count += s->count;
        stats.shared_bytes += s->bytes;
        stats.hit_count += s->hit_count;
        pthread_mutex_unlock(&s->lock);
    }
    return stats;
}

static void shard_grow(struct shard *s)
{
    size_t count = s->bucket_count * 2;
    struct shared **buckets = kv_calloc(count, sizeof(struct shared *));
    for (size_t i = 0; i < s->bucket_count; i++) {
        while (s->buckets[i]) {
            struct shared *block = s->buckets[i];
            s->buckets[i] = block->next;
            struct shared **home = &buckets[block->hash & (count - 1)];
            block->next = *home;
            *home = block;
        }
    }
    free(s->buckets);
    s->buckets = buckets;
    s->bucket_count = count;
}

/* The stored bytes hold addresses and the new ones offsets, so the new ones are bound to the
 * stored block for the comparison. */
static bool shared_equals(const struct shared *block, const struct field *field, uint64_t hash,
                          struct flat *flat)
{
    if (block->hash != hash || block->len != flat->len || block->type != field->type ||
        block->maybe_schema != field->sub)
        return false;
    flat_bind(flat, block->bytes);
    bool equal = memcmp(block->bytes, flat->bytes, flat->len) == 0;
    flat_unbind(flat, block->bytes);
    return equal;
}

static struct shared *shared_new(struct shard *s, const struct field *field, uint64_t hash,
                                 struct flat *flat)
{
    struct shared *block = kv_malloc(sizeof *block + flat->len);
    *block = (struct shared){ .shard = s,
                              .hash = hash,
                              .maybe_schema = field->sub,
                              .len = (uint32_t)flat->len,
                              .type = field->type };
    atomic_init(&block->refs, 0);
    flat_bind(flat, block->bytes);
    memcpy(block->bytes, flat->bytes, flat->len);
    return block;
}

/* The shared block with these contents, counted once more. */
static const void *pool_intern(struct object_pool *pool, const struct field *field,
                               struct flat *flat)
{
    uint64_t hash = flat_hash(flat);
    struct shard *s = &pool->shards[hash >> 60]; /* buckets go by the low bits */
    _Static_assert(SHARD_COUNT == 16, "a shard is four bits of the hash");

    pthread_mutex_lock(&s->lock);
    struct shared *block = s->buckets[hash & (s->bucket_count - 1)];
    while (block && !shared_equals(block, field, hash, flat))
        block = block->next;
    if (block) {
        s->hit_count++;
    } else {
        block = shared_new(s, field, hash, flat);
        if (s->count >= s->bucket_count / 2) /* short chains: each step may miss the cache */
            shard_grow(s);
        struct shared **home = &s->buckets[hash & (s->bucket_count - 1)];
        block->next = *home;
        *home = block;
        s->count++;
        s->bytes += sizeof *block + block->len;
    }
    unsigned before = atomic_fetch_add_explicit(&block->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&s->lock);
    KV_ASSERT(before < RC_MAX);
    return block->bytes;
}

static void shared_unref(const void *bytes)
{
    struct shared *block = (struct shared *)((uintptr_t)bytes - offsetof(struct shared, bytes));
    /* Not the last: no lock. */
    unsigned refs = atomic_load_explicit(&block->refs, memory_order_relaxed);
    while (refs > 1) {
        if (atomic_compare_exchange_weak_explicit(&block->refs, &refs, refs - 1,
                                                  memory_order_release, memory_order_relaxed))
            return;
    }

    struct shard *s = block->shard;
    pthread_mutex_lock(&s->lock);
    bool last = atomic_fetch_sub_explicit(&block->refs, 1, memory_order_acq_rel) == 1;
    if (last) {
        struct shared **link = &s->buckets[block->hash & (s->bucket_count - 1)];
        while (*link != block)
            link = &(*link)->next;
        *link = block->next;
        s->count--;
        s->bytes -= sizeof *block + block->len;
    }
    pthread_mutex_unlock(&s->lock);
    if (last)
        free(block);
}

static struct scratch *scratch_take(struct object_pool *pool)
{
    pthread_mutex_lock(&pool->scratch_lock);
    struct scratch *s = pool->idle;
    if (s) {
        pool->idle = s->next;
        pool->idle_count--;
    }
    pthread_mutex_unlock(&pool->scratch_lock);
    if (!s)
        s = kv_calloc(1, sizeof *s);
    s->pool = pool;
    return s;
}

static void scratch_put(struct scratch *s)
{
    struct object_pool *pool = s->pool;
    bool keep = s->arena.held_bytes + s->own.cap + s->shared.cap <= SCRATCH_BYTES_MAX;
    if (keep) {
        arena_reset(&s->arena);
        flat_clear(&s->own);
        pthread_mutex_lock(&pool->scratch_lock);
        keep = pool->idle_count < SCRATCH_COUNT_MAX;
        if (keep) {
            s->next = pool->idle;
            pool->idle = s;
            pool->idle_count++;
        }
        pthread_mutex_unlock(&pool->scratch_lock);
    }
    if (!keep)
        scratch_free(s);
}

/* --- objects --- */

static struct object *view_decode(const struct kind *kind, const json_val *v, struct arena *arena,
                                  struct err *err)
{
    struct object *view = arena_alloc(arena, kind->schema->size);
    if (schema_decode(kind->schema, v, arena, view, err) < 0)
        return NULL;
    view->kind = kind;
    if (!view->meta.name.p)
        view->meta.name = STR("");
    if (!view->meta.namespace_.p)
        view->meta.namespace_ = STR("");
    if (kind->settle)
        kind->settle(view, arena);
    return view;
}

static const void *share(void *ctx, const struct field *field, const void *items, uint32_t count)
{
    struct scratch *s = ctx;
    flat_clear(&s->shared);
    flat_items(&s->shared, field, items, count);
    return pool_intern(s->pool, field, &s->shared);
}

int object_decode(struct object_pool *pool, const struct kind *kind, const json_val *v,
                  const struct object **out, struct err *err)
{
    struct scratch *s = scratch_take(pool);
    struct object *view = view_decode(kind, v, &s->arena, err);
    if (view) {
        s->own.share = share;
        s->own.share_ctx = s;
        flat_struct(&s->own, kind->schema, view);
        struct object *object = kv_malloc(s->own.len);
        flat_bind(&s->own, object);
        memcpy(object, s->own.bytes, s->own.len);
        rc_init(&object->rc);
        object->bytes = (uint32_t)s->own.len;
        object->kind = kind;
        *out = object;
    }
    scratch_put(s);
    return view ? 0 : -1;
}

const struct object *object_ref(const struct object *object)
{
    rc_ref(&object->rc);
    return object;
}

static void release_shared(const struct schema *schema, const char *value)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        if (f->unkept)
            continue;
        if (f->flags & FIELD_SHARED) { /* options and lists both start with the pointer */
            const void *bytes = *(const void *const *)(const void *)(value + f->offset);
            if (bytes)
                shared_unref(bytes);
        } else if (f->type == FIELD_STRUCT) {
            release_shared(f->sub, value + f->offset);
        }
    }
}

void object_unref(const struct object *object)
{
    if (!object || !rc_unref(&object->rc))
        return;
    release_shared(object->kind->schema, (const char *)object);
    free((struct object *)object);
}

size_t object_bytes(const struct object *object)
{
    return object->bytes;
}

struct str object_field(const struct object *object, struct str path)
{
    if (str_eq(path, STR("metadata.name")))
        return object->meta.name;
    if (str_eq(path, STR("metadata.namespace")))
        return object->meta.namespace_;
    return object->kind->field ? object->kind->field(object, path) : STR_NONE;
}

/* --- admission --- */

static bool is_missing(const json_val *v)
{
    return !v || json_is_null(v) || (json_is_string(v) && json_str(v).len == 0);
}

static void check_named(const json_val *v, struct report *report)
{
    const json_val *meta = json_get(v, STR("metadata"));
    if (!json_is_object(meta) || !is_missing(json_get(meta, STR("name"))) ||
        !is_missing(json_get(meta, STR("generateName"))))
        return;
    struct path metadata = { .name = STR("metadata") };
    struct path name = { .up = &metadata, .name = STR("name") };
    report_add(report, PROBLEM_ERROR, &name, meta,
               "required, missing; expected a name, or generateName");
}

/* The defaulted tree must be read again for this, so its values cannot be pointed at. */
static void check_change(const struct kind *kind, const json_mut *root, const json_val *old,
                         struct report *report)
{
    AUTO_BUF text = { 0 };
    struct doc doc;
    struct err err;
    size_t first = report->problems.count;
    json_write_mut(root, &text);
    if (json_read_trusted(buf_str(&text), &doc, &err) < 0) {
        report_add(report, PROBLEM_ERROR, NULL, NULL, "%s", err.text);
        return;
    }
    schema_validate_update(kind->schema, doc.root, old, NULL, report);
    for (size_t i = first; i < report->problems.count; i++)
        report->problems.items[i].at = NULL;
    doc_done(&doc);
}

json_mut *object_admit(const struct kind *kind, struct json_build *b, const json_val *v,
                       const json_val *old, struct report *report)
{
    report->empty_is_absent = kind_is_builtin(kind);
    check_named(v, report);
    schema_validate(kind->schema, v, NULL, report);
    if (!json_is_object(v))
        return NULL;
    if (kind->check && !report->crd_only) {
        AUTO_ARENA arena = { 0 };
        /* What cannot be decoded was reported above. */
        const struct object *view = view_decode(kind, v, &arena, NULL);
        if (view)
            kind->check(view, v, report);
    }
    json_mut *root = json_copy(b, v);
    schema_default(kind->schema, b, root);
    if (kind->complete)
        kind->complete(b, root);
    if (old)
        check_change(kind, root, old, report);
    return root;
}
