/* Structs are copied as they are, whole lists at once; then the table's fields that point somewhere
 * are visited, and what they point at is appended and replaced by its offset. Appending may move
 * the bytes, so offsets are held, never addresses, across an append. */
#include "api/flat.h"

#include "api/schema_plan.h"

#define STRUCT_ALIGN 8 /* of everything that tables describe */

void flat_done(struct flat *flat)
{
    free(flat->bytes);
    vec_done(&flat->pointers);
    *flat = (struct flat){ 0 };
}

void flat_clear(struct flat *flat)
{
    flat->len = 0;
    vec_clear(&flat->pointers);
    flat->last = STR_NONE;
}

/* --- bytes --- */

static __attribute__((noinline)) void flat_grow(struct flat *flat, size_t need)
{
    size_t cap = flat->cap ? flat->cap * 2 : 1024;
    KV_ASSERT(need <= UINT32_MAX);
    while (cap < need)
        cap *= 2;
    flat->bytes = kv_realloc(flat->bytes, cap, 1);
    flat->cap = cap;
}

/* The offset of `bytes` new bytes, not initialised. */
static inline size_t flat_append(struct flat *flat, size_t bytes)
{
    size_t at = flat->len;
    if (KV_UNLIKELY(flat->cap - at < bytes))
        flat_grow(flat, at + bytes);
    flat->len = at + bytes;
    return at;
}

static inline void *flat_at(const struct flat *flat, size_t at)
{
    return flat->bytes + at;
}

/* A copy of structs, at the next aligned offset. */
static size_t flat_copy(struct flat *flat, const void *from, size_t bytes)
{
    size_t pad = -flat->len & (STRUCT_ALIGN - 1);
    size_t at = flat_append(flat, pad + bytes);
    memset(flat->bytes + at, 0, pad);
    memcpy(flat->bytes + at + pad, from, bytes);
    return at + pad;
}

static inline void put_pointer(struct flat *flat, size_t at, size_t target)
{
    *(uintptr_t *)flat_at(flat, at) = target;
    vec_push(&flat->pointers, (uint32_t)at);
}

/* --- what the copied structs at an offset point at --- */

static inline __attribute__((always_inline)) void append_str(struct flat *flat, size_t at)
{
    struct str s = *(const struct str *)flat_at(flat, at);
    if (!s.p)
        return;
    bool is_prefix =
        flat->last.p && s.len <= flat->last.len && bytes_equal(s.p, flat->last.p, s.len);
    if (!is_prefix) {
        flat->last = s;
        flat->last_at = flat_append(flat, s.len);
        bytes_copy((char *)flat->bytes + flat->last_at, s.p, s.len);
    }
    put_pointer(flat, at + offsetof(struct str, p), flat->last_at);
}

static void append_struct(struct flat *flat, size_t at, const struct schema *schema);

/* What a list, map or option points at, copied and followed in turn; returns its offset. */
static size_t append_items(struct flat *flat, const struct field *f, const void *items,
                           uint32_t count)
{
    size_t size = f->type == FIELD_STRS        ? sizeof(struct str)
                  : f->type == FIELD_STR_MAP   ? sizeof(struct str_pair)
                  : f->type == FIELD_RESOURCES ? sizeof(struct resource)
                                               : f->sub->size;
    size_t start = flat_copy(flat, items, count * size);
    size_t at = start;
    /* Only what is reached through structs alone is shared: nobody would find the rest again. */
    flat_share_fn share = flat->share;
    flat->share = NULL;
    for (uint32_t i = 0; i < count; i++, at += size) {
        if (f->type == FIELD_OPTION || f->type == FIELD_LIST) {
            append_struct(flat, at, f->sub);
            continue;
        }
        append_str(flat, at); /* the string itself, or the key that starts every item of a map */
        if (f->type == FIELD_STR_MAP)
            append_str(flat, at + offsetof(struct str_pair, value));
        else if (f->type == FIELD_MAP)
            append_struct(flat, at, f->sub);
    }
    flat->share = share;
    return start;
}

static void append_pointee(struct flat *flat, size_t at, const struct field *f, uint32_t count)
{
    const void *items = *(const void *const *)flat_at(flat, at);
    if (!items)
        return;
    if ((f->flags & FIELD_SHARED) && flat->share)
        *(const void **)flat_at(flat, at) = flat->share(flat->share_ctx, f, items, count);
    else
        put_pointer(flat, at, append_items(flat, f, items, count));
}

static void append_struct(struct flat *flat, size_t at, const struct schema *schema)
{
    const struct schema_plan *plan = schema_plan(schema);
    for (uint32_t i = 0; i < plan->pointing_count; i++) {
        const struct field *f = plan->pointing[i];
        size_t here = at + f->offset;
        if (f->type == FIELD_STRUCT)
            append_struct(flat, here, f->sub);
        else if (f->type == FIELD_OPTION)
            append_pointee(flat, here, f, 1);
        else if (f->type <= FIELD_INT_OR_STR) /* each starts with its string */
            append_str(flat, here);
        else
            append_pointee(flat, here, f, ((const struct any_list *)flat_at(flat, here))->count);
    }
}

_Static_assert(offsetof(struct int_or_str, str) == 0, "append_str is used on it");
_Static_assert(offsetof(struct resource, name) == 0, "append_str is used on it");
_Static_assert(offsetof(struct any_list, items) == 0, "append_pointee is used on it");

static size_t first_member(const struct schema *schema)
{
    size_t first = schema->size;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        if (!f->unkept && f->offset < first)
            first = f->offset;
    }
    return first;
}

void flat_struct(struct flat *flat, const struct schema *schema, const void *value)
{
    KV_ASSERT(flat->len == 0);
    KV_ASSERT(schema->align <= STRUCT_ALIGN);
    size_t at = flat_copy(flat, value, schema->size);
    memset(flat->bytes, 0, first_member(schema));
    append_struct(flat, at, schema);
}

void flat_items(struct flat *flat, const struct field *field, const void *items, uint32_t count)
{
    KV_ASSERT(flat->len == 0);
    append_items(flat, field, items, count);
}

/* --- the whole --- */

/* Four sums side by side: one after the other, each multiplication would wait for the last. What is
 * missing to a whole number of words counts as zero; the length tells it from zeros that are there. */
#define LANES 4
#define LANE_FACTOR 0x9fb21c651e98df25ULL

uint64_t flat_hash(struct flat *flat)
{
    uint64_t lanes[LANES] = { 1, 2, 3, flat->len };
    size_t end = flat->len, rest = -end & (sizeof lanes - 1);
    size_t pad = flat_append(flat, rest);
    memset(flat->bytes + pad, 0, rest);
    flat->len = end;
    for (const char *p = (const char *)flat->bytes, *stop = p + end; p < stop; p += sizeof lanes) {
        for (size_t i = 0; i < LANES; i++) {
            uint64_t x = lanes[i] ^ bytes_load64(p + i * sizeof(uint64_t));
            lanes[i] = (x << 29 | x >> 35) * LANE_FACTOR;
        }
    }
    uint64_t sum = 0;
    for (size_t i = 0; i < LANES; i++)
        sum = (sum << 16 | sum >> 48) ^ lanes[i];
    return kv_mix64(sum);
}

void flat_bind(struct flat *flat, const void *base)
{
    vec_each(&flat->pointers, uint32_t, at) {
        *(uintptr_t *)flat_at(flat, *at) += (uintptr_t)base;
    }
}

void flat_unbind(struct flat *flat, const void *base)
{
    vec_each(&flat->pointers, uint32_t, at) {
        *(uintptr_t *)flat_at(flat, *at) -= (uintptr_t)base;
    }
}
