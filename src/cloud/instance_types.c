/* A handle is a small struct in ordinary memory: the count, and pointers into columns that never
 * change. Several handles may point at the same columns (replicas); the columns are counted by
 * handles and go with the last one. A layer's columns hold a reference to the snapshot that they
 * share columns with.
 */
#include "cloud/instance_types_inner.h"

/* --- lifetime --- */

/* Threads that count on one handle must not slow down those that count on its neighbour. */
#define CACHE_LINE ((size_t)64)

#ifdef KARVE_DEBUG
#define SEAL_ALWAYS true
#else
#define SEAL_ALWAYS false
#endif

static const struct instance_types *handle_new(const struct instance_types *columns)
{
    size_t bytes = (sizeof *columns + CACHE_LINE - 1) / CACHE_LINE * CACHE_LINE;
    struct instance_types *s = aligned_alloc(CACHE_LINE, bytes);
    KV_ASSERT(s != NULL);
    instance_types_copy(s, columns);
    rc_init(&s->rc);
    return s;
}

struct instance_types_memory *instance_types_memory_new(const struct instance_types *maybe_base)
{
    struct instance_types_memory *m = kv_calloc(1, sizeof *m);
    rc_init(&m->rc);
    m->arena.pages = true;
    m->maybe_base = maybe_base ? instance_types_ref(maybe_base) : NULL;
    return m;
}

void instance_types_memory_unref(struct instance_types_memory *m)
{
    if (!rc_unref(&m->rc))
        return;
    instance_types_unref(m->maybe_base);
    arena_done(&m->arena);
    free(m);
}

const struct instance_types *instance_types_publish(struct instance_types *columns,
                                                    struct instance_types_options options)
{
    struct instance_types_memory *m = columns->memory;
    columns->base = m->maybe_base;
    columns->bytes = m->arena.held_bytes + sizeof *m + sizeof *columns;
    columns->checksum = instance_types_checksum(columns);
    if (options.seal || SEAL_ALWAYS)
        arena_seal(&m->arena);
    return handle_new(columns);
}

const struct instance_types *instance_types_ref(const struct instance_types *s)
{
    rc_ref(&s->rc);
    return s;
}

void instance_types_unref(const struct instance_types *s)
{
    if (!s || !rc_unref(&s->rc))
        return;
    instance_types_memory_unref(s->memory);
    free((void *)s);
}

const struct instance_types *instance_types_replica(const struct instance_types *s)
{
    rc_ref(&s->memory->rc);
    return handle_new(s);
}

/* --- looking things up --- */

uint32_t instance_types_find(const struct instance_types *s, struct str name)
{
    uint32_t at = FIRST_NOT(s->type_count, i, str_cmp(s->names[i], name) < 0);
    return at < s->type_count && str_eq(s->names[at], name) ? at : INSTANCE_TYPE_NONE;
}

const struct label_column *instance_types_label(const struct instance_types *s, struct str key)
{
    uint32_t at = FIRST_NOT(s->key_count, i, str_cmp(s->labels[i].key, key) < 0);
    return at < s->key_count && str_eq(s->labels[at].key, key) ? &s->labels[at] : NULL;
}

const struct resource_column *instance_types_resource(const struct instance_types *s,
                                                      struct str name)
{
    uint32_t at = FIRST_NOT(s->resource_count, i, str_cmp(s->resources[i].name, name) < 0);
    return at < s->resource_count && str_eq(s->resources[at].name, name) ? &s->resources[at] : NULL;
}

const struct requirement *instance_type_requirement(const struct instance_types *s, uint32_t type,
                                                    struct str key)
{
    KV_ASSERT(type < s->type_count);
    const struct requirement *pool = s->requirement_pool;
    uint32_t start = s->type_requirements_start[type];
    uint32_t count = s->type_requirements_start[type + 1] - start;
    const uint32_t *ids = s->type_requirements + start;
    uint32_t at = FIRST_NOT(count, i, str_cmp(pool[ids[i]].key, key) < 0);
    return at < count && str_eq(pool[ids[at]].key, key) ? &pool[ids[at]] : NULL;
}

/* --- prices --- */

usd_hour instance_types_lowest(const struct instance_types *s, uint32_t type)
{
    usd_hour lowest = USD_HOUR_MAX;
    uint32_t start = s->offering_start[type];
    for (uint32_t o = start; o < s->offering_start[type + 1]; o++) {
        usd_hour price = s->prices[type][o - start];
        if (bitset_test(&s->available, o) && price < lowest)
            lowest = price;
    }
    return lowest;
}

bool instance_types_cheaper(const usd_hour *price_cheapest, uint32_t a, uint32_t b)
{
    usd_hour x = price_cheapest[a], y = price_cheapest[b];
    return x < y || (x == y && a < b);
}

static int by_price(const void *a, const void *b, void *prices)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return instance_types_cheaper(prices, x, y) ? -1 : x != y;
}

void instance_types_sort_by_price(uint32_t *types, uint32_t count, const usd_hour *price_cheapest)
{
    qsort_r(types, count, sizeof *types, by_price, (void *)price_cheapest);
}

/* --- amounts --- */

static int64_t milli(struct quantity q, bool up)
{
    __extension__ __int128 n = (__int128)q.units * 1000 + q.nano / 1000000;
    int32_t rest = q.nano % 1000000;
    n += up && rest > 0;
    n -= !up && rest < 0;
    if (n > INT64_MAX)
        return INT64_MAX;
    return n < -INT64_MAX ? -INT64_MAX : (int64_t)n;
}

int64_t milli_floor(struct quantity q)
{
    return milli(q, false);
}

int64_t milli_ceil(struct quantity q)
{
    return milli(q, true);
}

/* --- what is left for pods --- */

/* Capacity of huge pages on a row: it is taken out of memory. */
static int64_t huge_pages(const struct resource_column *columns, uint32_t count, uint32_t row)
{
    int64_t sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (str_starts(columns[i].name, STR("hugepages-")) &&
            __builtin_add_overflow(sum, columns[i].capacity[row], &sum))
            sum = INT64_MAX;
    }
    return sum;
}

static bool any_huge_pages(const struct resource_column *columns, uint32_t count)
{
    bool any = false;
    for (uint32_t i = 0; i < count; i++)
        any |= str_starts(columns[i].name, STR("hugepages-"));
    return any;
}

/* Overhead is taken from what there is: without capacity there is nothing to reserve. Otherwise it
 * may overdraw, and then nothing fits; huge pages use memory up but do not overdraw it. Neither
 * amount is negative, so no difference overflows. */
static int64_t rest(int64_t capacity, int64_t overhead, int64_t huge)
{
    if (capacity == 0)
        return 0;
    int64_t left = capacity - overhead;
    if (huge == 0)
        return left;
    return left > huge ? left - huge : 0;
}

void instance_types_subtract(struct instance_types *s, struct arena *arena,
                             struct resource_column *columns)
{
    bool huge = any_huge_pages(columns, s->resource_count);
    s->overdrawn = bitset_new(arena, s->row_count);
    for (uint32_t i = 0; i < s->resource_count; i++) {
        struct resource_column *c = &columns[i];
        bool memory = huge && str_eq(c->name, STR("memory"));
        if (!c->allocatable && c->overhead == s->zeros && !memory) {
            c->allocatable = c->capacity; /* the same numbers need no column of their own */
        } else if (!c->allocatable) {
            int64_t *left = arena_array(arena, int64_t, s->row_count);
            for (uint32_t r = 0; r < s->row_count; r++)
                left[r] = rest(c->capacity[r], c->overhead[r],
                               memory ? huge_pages(columns, s->resource_count, r) : 0);
            c->allocatable = left;
        }
        for (uint32_t r = 0; r < s->row_count; r++) {
            if (c->allocatable[r] < 0)
                bitset_set(&s->overdrawn, r);
        }
    }
}

/* --- for writing somewhere --- */

struct requirements instance_type_requirements(const struct instance_types *s, uint32_t type,
                                               struct arena *arena)
{
    KV_ASSERT(type < s->type_count);
    uint32_t start = s->type_requirements_start[type];
    uint32_t count = s->type_requirements_start[type + 1] - start;
    struct requirement *items = arena_array(arena, struct requirement, count);
    for (uint32_t i = 0; i < count; i++)
        items[i] = s->requirement_pool[s->type_requirements[start + i]];
    return (struct requirements){ items, count };
}

static struct resource *add_amount(struct resource *at, const struct resource_column *c,
                                   int64_t amount)
{
    if (amount == 0)
        return at;
    *at = (struct resource){ c->name, quantity_of_milli(amount) };
    at->amount.format = c->format;
    return at + 1;
}

#define ROW_AMOUNTS(what)                                                                          \
    struct resources instance_type_##what(const struct instance_types *s, uint32_t row,            \
                                          struct arena *arena)                                     \
    {                                                                                              \
        KV_ASSERT(row < s->row_count);                                                             \
        struct resource *items = arena_array(arena, struct resource, s->resource_count);           \
        struct resource *end = items;                                                              \
        for (uint32_t i = 0; i < s->resource_count; i++)                                           \
            end = add_amount(end, &s->resources[i], s->resources[i].what[row]);                    \
        return (struct resources){ items, (uint32_t)(end - items) };                               \
    }
ROW_AMOUNTS(capacity)
ROW_AMOUNTS(overhead)
ROW_AMOUNTS(allocatable)
