/* Appending may move the bytes, so the walk holds offsets, never addresses, across an append. Room
 * for a struct is reserved and zeroed first, then its fields are filled in by the table. */
#include "api/flat.h"

#include "api/bytes.h"

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

static void flat_grow(struct flat *flat, size_t need)
{
    size_t cap = flat->cap ? flat->cap * 2 : 1024;
    while (cap < need)
        cap *= 2;
    flat->bytes = kv_realloc(flat->bytes, cap, 1);
    flat->cap = cap;
}

/* Offset of `bytes` new bytes, not initialised. */
static size_t flat_append(struct flat *flat, size_t bytes)
{
    size_t at = flat->len;
    KV_ASSERT(bytes <= UINT32_MAX - at);
    if (flat->cap - at < bytes)
        flat_grow(flat, at + bytes);
    flat->len = at + bytes;
    return at;
}

static size_t flat_space(struct flat *flat, size_t bytes) /* aligned and zeroed */
{
    size_t pad = -flat->len & (STRUCT_ALIGN - 1);
    size_t at = flat_append(flat, pad + bytes);
    memset(flat->bytes + at, 0, pad + bytes);
    return at + pad;
}

static void *flat_at(const struct flat *flat, size_t at)
{
    return flat->bytes + at;
}

static void put_pointer(struct flat *flat, size_t at, size_t target)
{
    *(uintptr_t *)flat_at(flat, at) = target;
    vec_push(&flat->pointers, (uint32_t)at);
}

static void put_str(struct flat *flat, size_t at, struct str s)
{
    if (!s.p)
        return;
    bool is_prefix = flat->last.p && s.len <= flat->last.len &&
                     bytes_equal(s.p, flat->last.p, s.len);
    if (!is_prefix) {
        flat->last = s;
        flat->last_at = flat_append(flat, s.len);
        bytes_copy((char *)flat->bytes + flat->last_at, s.p, s.len);
    }
    put_pointer(flat, at + offsetof(struct str, p), flat->last_at);
    ((struct str *)flat_at(flat, at))->len = s.len;
}

static void put_struct(struct flat *flat, size_t at, const struct schema *schema,
                       const char *value);

static void put_strs(struct flat *flat, size_t at, const struct str *items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        put_str(flat, at + i * sizeof *items, items[i]);
}

static void put_items(struct flat *flat, const struct field *f, const void *items, uint32_t count)
{
    switch ((enum field_type)f->type) {
    case FIELD_STRS: {
        size_t at = flat_space(flat, count * sizeof(struct str));
        put_strs(flat, at, items, count);
        return;
    }
    case FIELD_STR_MAP: { /* pairs of strings: twice as many strings */
        size_t at = flat_space(flat, count * sizeof(struct str_pair));
        put_strs(flat, at, items, (size_t)count * 2);
        return;
    }
    case FIELD_RESOURCES: {
        const struct resource *from = items;
        size_t at = flat_space(flat, count * sizeof *from);
        for (uint32_t i = 0; i < count; i++, at += sizeof *from) {
            put_str(flat, at + offsetof(struct resource, name), from[i].name);
            ((struct resource *)flat_at(flat, at))->amount = from[i].amount;
        }
        return;
    }
    case FIELD_MAP:
    case FIELD_OPTION:
    case FIELD_LIST: {
        size_t at = flat_space(flat, (size_t)count * f->sub->size);
        for (uint32_t i = 0; i < count; i++) {
            const char *item = (const char *)items + (size_t)i * f->sub->size;
            if (f->type == FIELD_MAP)
                put_str(flat, at + (size_t)i * f->sub->size, *(const struct str *)(const void *)item);
            put_struct(flat, at + (size_t)i * f->sub->size, f->sub, item);
        }
        return;
    }
    case FIELD_OPAQUE:
    case FIELD_BOOL:
    case FIELD_TRI:
    case FIELD_INT:
    case FIELD_MAYBE_INT:
    case FIELD_STR:
    case FIELD_ENUM:
    case FIELD_TIME:
    case FIELD_DURATION:
    case FIELD_DURATION_OR_NEVER:
    case FIELD_INT_OR_STR:
    case FIELD_STRUCT:
    case FIELD_JSON:
    case FIELD_QUANTITY:
    case FIELD_VERSION:
        break;
    }
    KV_UNREACHABLE();
}

/* The pointer of a list, map or option, and what it points at. */
static void put_pointee(struct flat *flat, size_t at, const struct field *f, const void *items,
                        uint32_t count)
{
    if (!items)
        return;
    if ((f->flags & FIELD_SHARED) && flat->share) {
        *(const void **)flat_at(flat, at) = flat->share(flat->share_ctx, f, items, count);
        return;
    }
    size_t target = (flat->len + STRUCT_ALIGN - 1) & ~(size_t)(STRUCT_ALIGN - 1);
    put_pointer(flat, at, target);
    put_items(flat, f, items, count);
}

static void put_list(struct flat *flat, size_t at, const struct field *f, const void *value)
{
    const struct any_list *list = value;
    if (list->count == 0)
        return;
    ((struct any_list *)flat_at(flat, at))->count = list->count;
    put_pointee(flat, at + offsetof(struct any_list, items), f, list->items, list->count);
}

static void put_field(struct flat *flat, size_t at, const struct field *f, const void *value)
{
    void *to = flat_at(flat, at); /* until the first append */

    switch ((enum field_type)f->type) {
    case FIELD_OPAQUE:
        return;
    case FIELD_BOOL:
        *(bool *)to = *(const bool *)value;
        return;
    case FIELD_TRI:
    case FIELD_ENUM:
        *(uint8_t *)to = *(const uint8_t *)value;
        return;
    case FIELD_INT:
    case FIELD_TIME:
    case FIELD_VERSION:
        *(uint64_t *)to = *(const uint64_t *)value;
        return;
    case FIELD_MAYBE_INT: {
        const struct maybe_int *from = value;
        ((struct maybe_int *)to)->value = from->value;
        ((struct maybe_int *)to)->set = from->set;
        return;
    }
    case FIELD_DURATION:
    case FIELD_DURATION_OR_NEVER: {
        const struct duration *from = value;
        ((struct duration *)to)->ns = from->ns;
        ((struct duration *)to)->set = from->set;
        ((struct duration *)to)->never = from->never;
        return;
    }
    case FIELD_INT_OR_STR: {
        const struct int_or_str *from = value;
        ((struct int_or_str *)to)->number = from->number;
        ((struct int_or_str *)to)->set = from->set;
        put_str(flat, at + offsetof(struct int_or_str, str), from->str);
        return;
    }
    case FIELD_QUANTITY:
        *(struct quantity *)to = *(const struct quantity *)value;
        return;
    case FIELD_STR:
    case FIELD_JSON:
        put_str(flat, at, *(const struct str *)value);
        return;
    case FIELD_STRUCT:
        put_struct(flat, at, f->sub, value);
        return;
    case FIELD_OPTION:
        put_pointee(flat, at, f, *(const void *const *)value, 1);
        return;
    case FIELD_LIST:
    case FIELD_STRS:
    case FIELD_STR_MAP:
    case FIELD_RESOURCES:
    case FIELD_MAP:
        put_list(flat, at, f, value);
        return;
    }
    KV_UNREACHABLE();
}

static void put_struct(struct flat *flat, size_t at, const struct schema *schema,
                       const char *value)
{
    const struct field *end = schema->fields + schema->field_count;
    for (const struct field *f = schema->fields; f < end; f++) {
        if (!f->unkept && f->type >= FIELD_FIRST_POINTING)
            put_field(flat, at + f->offset, f, value + f->offset);
    }
}

void flat_struct(struct flat *flat, const struct schema *schema, const void *value)
{
    KV_ASSERT(flat->len == 0);
    KV_ASSERT(schema->align <= STRUCT_ALIGN);
    put_struct(flat, flat_space(flat, schema->size), schema, value);
}

void flat_items(struct flat *flat, const struct field *field, const void *items, uint32_t count)
{
    KV_ASSERT(flat->len == 0);
    put_items(flat, field, items, count);
}

/* Four sums side by side: one after the other, each multiplication would wait for the last. */
#define LANES 4
#define LANE_FACTOR 0x9fb21c651e98df25ULL

uint64_t flat_hash(const struct flat *flat)
{
    uint64_t lanes[LANES] = { 1, 2, 3, 4 };
    const char *p = (const char *)flat->bytes;
    size_t left = flat->len;
    for (; left >= sizeof lanes; left -= sizeof lanes, p += sizeof lanes) {
        for (size_t i = 0; i < LANES; i++) {
            uint64_t x = lanes[i] ^ bytes_load64(p + i * sizeof(uint64_t));
            lanes[i] = (x << 29 | x >> 35) * LANE_FACTOR;
        }
    }
    uint64_t salt = kv_mix64(lanes[0]) ^ kv_mix64(lanes[1] + 1) ^ kv_mix64(lanes[2] + 2) ^
                    kv_mix64(lanes[3] + 3);
    return kv_hash_salted(p, left, salt ^ flat->len);
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
