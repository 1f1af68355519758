/* Decoding: JSON in, a view of C structs out, as the tables say.
 *
 * One walk over the JSON object, one look-up (schema_plan.h) per key. Fields that are not kept are
 * stepped over without looking inside. Strings are not copied: they point into the JSON document.
 *
 * The walk carries no path. When a value does not fit it is remembered, and the way to it is found
 * by a second walk: errors are rare, pods are not.
 */
#include "api/flat.h"
#include "api/schema_walk.h"
#include "codec/duration.h"

#define DAY_TEXT_LEN 11 /* "2026-01-02T" */
#define DAY_US ((int64_t)86400 * 1000000)

struct decoder {
    struct arena *arena;
    size_t bytes_max;       /* of the arena: see SCHEMA_DECODED_BYTES_MAX */
    char day[DAY_TEXT_LEN]; /* of the last time decoded; starts with NUL: none */
    int64_t day_us;         /* its midnight */
    const json_val *bad;    /* the value that does not fit */
    const char *expected;   /* what would have */
    struct err why;         /* a parser's own words, if its kind is set */
};

static bool decode_object(struct decoder *d, const struct schema *schema, const json_val *v,
                          char *out);

static bool refuse(struct decoder *d, const json_val *v, const char *expected)
{
    d->bad = v;
    d->expected = expected;
    return false;
}

/* The words are in d->why: parsers write there, and not into an err of every caller's frame. */
static bool refuse_parsed(struct decoder *d, const json_val *v)
{
    d->bad = v;
    return false;
}

/* A short text can ask for much memory ("[{},{},...]"), so what lists take is bounded. */
static void *decode_array(struct decoder *d, const json_val *v, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) ||
        bytes > d->bytes_max - d->arena->used_bytes) {
        refuse(d, v, "a smaller object");
        return NULL;
    }
    return arena_alloc(d->arena, bytes);
}

static int pair_cmp(const void *a, const void *b)
{
    return str_cmp(*(const struct str *)a, *(const struct str *)b);
}

/* Every kind of map starts its items with the key. The API server prints maps sorted. */
static void map_sort(void *items, size_t count, size_t size)
{
    const char *p = items;
    for (size_t i = 1; i < count; i++) {
        if (pair_cmp(p + (i - 1) * size, p + i * size) > 0) {
            qsort(items, count, size, pair_cmp);
            return;
        }
    }
}

static bool decode_str_map(struct decoder *d, const json_val *v, struct str_map *out)
{
    size_t count = json_count(v), n = 0;
    struct str_pair *items = decode_array(d, v, count, sizeof *items);
    if (!items)
        return false;
    json_each_member(v, key, value) {
        if (!json_is_string(value))
            return refuse(d, value, "a string");
        items[n].key = json_key(key);
        items[n++].value = json_str(value);
    }
    map_sort(items, n, sizeof *items);
    out->items = n ? items : NULL;
    out->count = (uint32_t)n;
    return true;
}

static int quantity_of_number(const json_val *v, struct quantity *out, struct err *err)
{
    AUTO_BUF text = { 0 };
    json_write(v, &text);
    return quantity_parse(buf_str(&text), out, err);
}

int quantity_of_json(const json_val *v, struct quantity *out, struct err *err)
{
    return json_is_string(v) ? quantity_parse(json_str(v), out, err)
                             : quantity_of_number(v, out, err);
}

static bool decode_quantity(struct decoder *d, const json_val *v, struct quantity *out)
{
    if (!json_is_string(v) && !json_is_number(v))
        return refuse(d, v, "a quantity such as \"1500m\" or \"2Gi\"");
    return quantity_of_json(v, out, &d->why) == 0 || refuse_parsed(d, v);
}

static bool decode_resources(struct decoder *d, const json_val *v, struct resources *out)
{
    size_t count = json_count(v), n = 0;
    struct resource *items = decode_array(d, v, count, sizeof *items);
    if (!items)
        return false;
    json_each_member(v, key, value) {
        items[n].name = json_key(key);
        if (!decode_quantity(d, value, &items[n++].amount))
            return false;
    }
    map_sort(items, n, sizeof *items);
    out->items = n ? items : NULL;
    out->count = (uint32_t)n;
    return true;
}

static bool decode_strs(struct decoder *d, const json_val *v, struct str_list *out)
{
    size_t count = json_count(v), n = 0;
    struct str *items = decode_array(d, v, count, sizeof *items);
    if (!items)
        return false;
    json_each_item(v, item) {
        if (!json_is_string(item))
            return refuse(d, item, "a string");
        items[n++] = json_str(item);
    }
    out->items = n ? items : NULL;
    out->count = (uint32_t)n;
    return true;
}

static bool decode_list(struct decoder *d, const struct schema *sub, const json_val *v,
                        struct any_list *out)
{
    size_t count = json_count(v);
    char *items = decode_array(d, v, count, sub->size);
    char *next = items;
    if (!items)
        return false;
    json_each_item(v, item) {
        if (!decode_object(d, sub, item, next))
            return false;
        next += sub->size;
    }
    out->items = count ? items : NULL;
    out->count = (uint32_t)count;
    return true;
}

static bool decode_map(struct decoder *d, const struct schema *sub, const json_val *v,
                       struct any_list *out)
{
    size_t count = json_count(v);
    char *items = decode_array(d, v, count, sub->size);
    char *next = items;
    if (!items)
        return false;
    json_each_member(v, key, value) {
        if (!decode_object(d, sub, value, next))
            return false;
        *(struct str *)(void *)next = json_key(key);
        next += sub->size;
    }
    map_sort(items, count, sub->size);
    out->items = count ? items : NULL;
    out->count = (uint32_t)count;
    return true;
}

static bool decode_duration(struct decoder *d, const struct field *f, const json_val *v,
                            struct duration *out)
{
    struct str s = json_str(v);
    if (f->type == FIELD_DURATION_OR_NEVER && str_eq(s, STR("Never")))
        out->never = true;
    else if (duration_parse(s, &out->ns, &d->why) < 0)
        return refuse_parsed(d, v);
    out->set = true;
    return true;
}

/* "15:04:05" as seconds of the day, or -1. All eight characters at once: what remains of each
 * after taking away "00:00:00" must be 0 to 9, or 0 where the colons are. */
static int64_t clock_seconds(const char *p)
{
    uint64_t x = bytes_load64(p) ^ bytes_load64("00:00:00");
    uint64_t above_nine = (x + 0x7676767676767676) | x;
    if ((above_nine & 0x8080808080808080) || p[2] != ':' || p[5] != ':')
        return -1;
    int hour = (p[0] - '0') * 10 + p[1] - '0', minute = (p[3] - '0') * 10 + p[4] - '0',
        second = (p[6] - '0') * 10 + p[7] - '0';
    return hour < 24 && minute < 60 && second < 60 ? hour * 3600 + minute * 60 + second : -1;
}

/* A pod has eight times or more, nearly all of one day and written "2026-01-02T15:04:05Z": the day
 * is parsed once, and then only the clock. Anything unusual is left to the parser. */
static bool decode_time(struct decoder *d, const json_val *v, int64_t *out)
{
    struct str s = json_str(v);
    bool plain = s.len == DAY_TEXT_LEN + 9 && s.p[s.len - 1] == 'Z';

    if (plain && d->day[0] && bytes_equal(s.p, d->day, DAY_TEXT_LEN)) {
        int64_t seconds = clock_seconds(s.p + DAY_TEXT_LEN);
        if (seconds >= 0) {
            *out = d->day_us + seconds * 1000000;
            return true;
        }
    }
    if (time_parse(s, out, &d->why) < 0)
        return refuse_parsed(d, v);
    if (plain && *out >= 0) {
        memcpy(d->day, s.p, DAY_TEXT_LEN);
        d->day_us = *out - *out % DAY_US;
    }
    return true;
}

static bool decode_version(struct decoder *d, const json_val *v, uint64_t *out)
{
    int64_t n = 0;
    struct str s = json_str(v);
    if (s.len && (!str_to_i64(s, &n) || n < 0))
        return refuse(d, v, "a number in a string");
    *out = (uint64_t)n;
    return true;
}

static __attribute__((noinline)) void decode_json(struct decoder *d, const json_val *v,
                                                  struct str *out)
{
    AUTO_BUF text = { 0 };
    json_write_canonical(v, &text);
    *out = arena_str(d->arena, buf_str(&text));
}

/* Words are short, so a loop beats a call. */
static bool is_word(const char *word, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (word[i] != s.p[i] || word[i] == '\0')
            return false;
    }
    return word[s.len] == '\0';
}

uint8_t enum_index(const char *const *enums, struct str s)
{
    for (uint8_t i = 0; enums[i]; i++) {
        if (is_word(enums[i], s))
            return (uint8_t)(i + 1);
    }
    return 0;
}

static bool decode_field(struct decoder *d, const struct field *f, const json_val *v, char *at)
{
    void *out = at;

    if (!json_fits((enum field_type)f->type, v))
        return refuse(d, v, field_expected(f));
    switch ((enum field_type)f->type) {
    case FIELD_OPAQUE:
        return true;
    case FIELD_BOOL:
        *(bool *)out = json_bool(v);
        return true;
    case FIELD_TRI:
        *(uint8_t *)out = json_bool(v) ? TRI_TRUE : TRI_FALSE;
        return true;
    case FIELD_INT:
        return json_i64(v, out) || refuse(d, v, field_expected(f));
    case FIELD_MAYBE_INT: {
        struct maybe_int *n = out;
        n->set = json_i64(v, &n->value);
        return n->set || refuse(d, v, field_expected(f));
    }
    case FIELD_STR:
        *(struct str *)out = json_str(v);
        return true;
    case FIELD_ENUM: {
        struct str word = json_str(v);
        *(uint8_t *)out = word.len ? enum_index(f->rule->enums, word) : 0;
        return true;
    }
    case FIELD_TIME:
        return decode_time(d, v, out);
    case FIELD_DURATION:
    case FIELD_DURATION_OR_NEVER:
        return decode_duration(d, f, v, out);
    case FIELD_INT_OR_STR: {
        struct int_or_str *n = out;
        n->set = true;
        n->str = json_str(v);
        return n->str.p || json_i64(v, &n->number) || refuse(d, v, field_expected(f));
    }
    case FIELD_STRUCT:
        return decode_object(d, f->sub, v, at);
    case FIELD_OPTION: {
        char *sub = decode_array(d, v, 1, f->sub->size);
        *(const void **)out = sub;
        return sub && decode_object(d, f->sub, v, sub);
    }
    case FIELD_LIST:
        return decode_list(d, f->sub, v, out);
    case FIELD_STRS:
        return decode_strs(d, v, out);
    case FIELD_STR_MAP:
        return decode_str_map(d, v, out);
    case FIELD_RESOURCES:
        return decode_resources(d, v, out);
    case FIELD_MAP:
        return decode_map(d, f->sub, v, out);
    case FIELD_JSON:
        decode_json(d, v, out);
        return true;
    case FIELD_QUANTITY:
        return decode_quantity(d, v, out);
    case FIELD_VERSION:
        return decode_version(d, v, out);
    }
    KV_UNREACHABLE();
}

static bool decode_object(struct decoder *d, const struct schema *schema, const json_val *v,
                          char *out)
{
    const struct schema_plan *plan = schema_plan(schema);

    if (!json_is_object(v))
        return refuse(d, v, "an object");
    json_each_member(v, key, value) {
        const struct field *f = field_find(schema, plan, json_key(key));
        if (!f || f->unkept || json_is_null(value))
            continue;
        if (f->type == FIELD_STR && json_is_string(value)) /* half of all fields */
            *(struct str *)(void *)(out + f->offset) = json_str(value);
        else if (!decode_field(d, f, value, out + f->offset))
            return false;
    }
    return true;
}

/* --- the way to a value that did not fit --- */

static bool is_inside(const json_val *v, const json_val *target)
{
    return target >= v && target < json_end(v);
}

/* Values of a document stand in pre-order, so the child that holds the target is the one whose
 * range of addresses does. `maybe_schema` tells a map's keys from field names. */
static void path_to(const struct schema *maybe_schema, bool is_map, const json_val *v,
                    const json_val *target, const struct path *up, struct buf *out)
{
    if (v == target) {
        path_format(up, out);
        return;
    }
    uint32_t index = 0;
    json_each_item(v, item) {
        struct path here = { .up = up, .index = index++ };
        if (is_inside(item, target)) {
            path_to(maybe_schema, false, item, target, &here, out);
            return;
        }
    }
    json_each_member(v, key, value) {
        struct path here = { .up = up, .name = json_str(key), .quoted = is_map };
        if (!is_inside(value, target))
            continue;
        const struct field *f = maybe_schema && !is_map
                                    ? field_find(maybe_schema, schema_plan(maybe_schema), here.name)
                                    : NULL;
        if (f)
            path_to(f->sub, field_is_map(f), value, target, &here, out);
        else
            path_to(is_map ? maybe_schema : NULL, false, value, target, &here, out);
        return;
    }
}

int schema_decode(const struct schema *schema, const json_val *v, struct arena *arena, void *out,
                  struct err *err)
{
    struct decoder d; /* not zeroed as a whole: an err is large */
    d.arena = arena;
    d.bytes_max = arena->used_bytes + SCHEMA_DECODED_BYTES_MAX;
    d.why.kind = ERR_NONE;
    d.day[0] = '\0';
    if (decode_object(&d, schema, v, out))
        return 0;

    AUTO_BUF place = { 0 };
    char found[SHOWN_TEXT_MAX];
    path_to(schema, false, v, d.bad, NULL, &place);
    if (place.len)
        buf_addz(&place, ": ");
    if (d.why.kind != ERR_NONE)
        return err_set(err, ERR_INVALID, "%s%s", buf_str(&place).p, d.why.text);
    return err_set(err, ERR_INVALID, "%sexpected %s, found %s", buf_str(&place).p, d.expected,
                   value_found(d.bad, found));
}

/* --- small things about values --- */

int str_pair_order(const void *a, const void *b)
{
    return str_cmp(((const struct str_pair *)a)->key, ((const struct str_pair *)b)->key);
}

struct str_map str_map_copy(struct arena *arena, const struct str_map *map)
{
    struct str_pair *items = arena_array(arena, struct str_pair, map->count);
    for (uint32_t i = 0; i < map->count; i++)
        items[i] = (struct str_pair){ arena_str(arena, map->items[i].key),
                                      arena_str(arena, map->items[i].value) };
    return (struct str_map){ items, map->count };
}

struct str str_map_get(const struct str_map *map, struct str key)
{
    uint32_t low = 0, high = map->count;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        int c = str_cmp(map->items[mid].key, key);
        if (c == 0)
            return map->items[mid].value;
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return STR_NONE;
}

uint64_t schema_hash(const struct schema *schema, const void *value)
{
    struct flat flat = { 0 };
    flat_struct(&flat, schema, value);
    uint64_t hash = flat_hash(&flat);
    flat_done(&flat);
    return hash;
}

bool schema_equal(const struct schema *schema, const void *a, const void *b)
{
    struct flat flat_a = { 0 }, flat_b = { 0 };
    flat_struct(&flat_a, schema, a);
    flat_struct(&flat_b, schema, b);
    bool equal = flat_a.len == flat_b.len && memcmp(flat_a.bytes, flat_b.bytes, flat_a.len) == 0;
    flat_done(&flat_a);
    flat_done(&flat_b);
    return equal;
}
