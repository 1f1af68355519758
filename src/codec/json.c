/* Reading. Before yyjson sees a text its length and depth are known to be within limits; what
 * yyjson does not mind but we do is found afterwards in one walk over the array of values.
 *
 * yyjson facts that this file relies on, held by json_test.c:
 * 1. The values of a document lie in one array in pre-order; a member is its key, then its value.
 * 2. A container knows where the value behind its last descendant lies (unsafe_yyjson_get_next).
 * 3. With BIGNUM_AS_RAW a number that neither 64 bits nor a finite double can hold has type RAW. */
#include "codec/json.h"

#include "codec/json_inner.h"
#include "codec/json_scan.h"

/* --- memory: running out of it ends the process, as everywhere --- */

static void *alloc_new(void *ctx KV_UNUSED, size_t bytes)
{
    return kv_malloc(bytes);
}

static void *alloc_more(void *ctx KV_UNUSED, void *p, size_t old_bytes KV_UNUSED, size_t bytes)
{
    return kv_realloc(p, bytes, 1);
}

static void alloc_free(void *ctx KV_UNUSED, void *p)
{
    free(p);
}

const yyjson_alc json_alloc = { alloc_new, alloc_more, alloc_free, NULL };

/* --- reading --- */

#define BOM "\xef\xbb\xbf"

/* yyjson's messages are plain; what they lack is the character that was found. */
static void describe(struct str text, const yyjson_read_err *e, struct err *err)
{
    unsigned char c = e->pos < text.len ? (unsigned char)text.p[e->pos] : 0;
    if (e->code == YYJSON_READ_ERROR_UNEXPECTED_END)
        err_set(err, ERR_INVALID, "the text ends too early: a value, string or bracket is open");
    else if (e->code == YYJSON_READ_ERROR_EMPTY_CONTENT)
        err_set(err, ERR_INVALID, "the text is empty, expected a JSON value");
    else if (e->code == YYJSON_READ_ERROR_UNEXPECTED_CONTENT)
        err_set(err, ERR_INVALID, "unexpected text after the JSON value");
    else if (e->pos < text.len && c == 0)
        err_set(err, ERR_INVALID, "NUL byte in the text: it is binary, or encoded as UTF-16");
    else if (c > ' ' && c < 0x7f)
        err_set(err, ERR_INVALID, "%s, found '%c'", e->msg, c);
    else
        err_set(err, ERR_INVALID, "%s", e->msg);
}

static int parse(struct str text, struct text_pos start, yyjson_read_flag flags,
                 const yyjson_alc *alloc, struct doc *out, struct text_pos *at, struct err *err)
{
    yyjson_read_err e = { .code = YYJSON_READ_ERROR_EMPTY_CONTENT };
    /* Without INSITU the text is copied and only read. */
    yyjson_doc *yy = text.len ? yyjson_read_opts((char *)text.p, text.len, flags, alloc, &e) : NULL;
    if (!yy) {
        *at = text_pos_at(text, e.pos, start);
        describe(text, &e, err);
        return -1;
    }
    *out = (struct doc){ .root = yyjson_doc_get_root(yy), .yy = yy, .text = text, .start = start };
    return 0;
}

/* Facts 1 and 2 make the depth cheap: a container of n values is at most n levels deep, so small
 * ones, which are most, are stepped over. */
static bool depth_is_bounded(const struct doc *doc)
{
    const json_val *ends[JSON_DEPTH_MAX];
    const json_val *stop = doc->root + yyjson_doc_get_val_count(doc->yy);
    size_t depth = 0;

    for (const json_val *v = doc->root; v < stop;) {
        const json_val *next = unsafe_yyjson_get_next((json_val *)v);
        while (depth > 0 && v >= ends[depth - 1])
            depth--;
        if (depth + (size_t)(next - v) <= JSON_DEPTH_MAX || !unsafe_yyjson_is_ctn((json_val *)v)) {
            v = next;
            continue;
        }
        if (depth == JSON_DEPTH_MAX)
            return false;
        ends[depth++] = next;
        v++;
    }
    return true;
}

#define TOO_DEEP "nested more than %d levels deep", JSON_DEPTH_MAX

static int read_trusted(struct str text, const yyjson_alc *alloc, struct doc *out, struct err *err)
{
    struct doc doc;
    struct text_pos at;
    if (parse(text, (struct text_pos){ 1, 1 }, 0, alloc, &doc, &at, err) < 0)
        return err_wrap(err, "line %u, column %u", at.line, at.col);
    if (!depth_is_bounded(&doc)) {
        doc_done(&doc);
        return err_set(err, ERR_INVALID, TOO_DEEP);
    }
    *out = doc;
    return 0;
}

int json_read_trusted(struct str text, struct doc *out, struct err *err)
{
    return read_trusted(text, &json_alloc, out, err);
}

#define READER_BYTES_MIN 65536
#define READER_BYTES_MAX ((size_t)4 << 20) /* kept for the next document */

int json_reader_read(struct json_reader *reader, struct str text, struct doc *out, struct err *err)
{
    yyjson_alc alloc;
    size_t need = yyjson_read_max_memory_usage(text.len, 0);
    if (need > READER_BYTES_MAX)
        return json_read_trusted(text, out, err);
    if (need > reader->cap) {
        free(reader->memory);
        reader->cap = need < READER_BYTES_MIN ? READER_BYTES_MIN : need * 2;
        reader->memory = kv_malloc(reader->cap);
    }
    bool made = yyjson_alc_pool_init(&alloc, reader->memory, reader->cap);
    KV_ASSERT(made);
    return read_trusted(text, &alloc, out, err);
}

void json_reader_done(struct json_reader *reader)
{
    free(reader->memory);
    *reader = (struct json_reader){ 0 };
}

static int check_keys(const struct doc *doc, const json_val *object, struct text_pos *at,
                      struct err *err)
{
    AUTO_JSON_KEYS keys;
    json_keys_init(&keys, object);
    for (size_t i = 1; i < keys.count; i++) {
        struct str key = json_str(keys.items[i]);
        if (!str_eq(key, json_str(keys.items[i - 1])))
            continue;
        *at = doc_position(doc, keys.items[i]);
        return err_set(err, ERR_INVALID, "duplicate key %s, first on line %u", STR_SHOWN(key),
                       doc_position(doc, keys.items[i - 1]).line);
    }
    return 0;
}

static int check_value(const struct doc *doc, const json_val *v, struct text_pos *at,
                       struct err *err)
{
    struct str s;
    switch (yyjson_get_type((json_val *)v)) {
    case YYJSON_TYPE_OBJ:
        return check_keys(doc, v, at, err);
    case YYJSON_TYPE_RAW:
        *at = doc_position(doc, v);
        s = (struct str){ yyjson_get_raw((json_val *)v), yyjson_get_len((json_val *)v) };
        s = str_sub(s, 0, 40);
        return err_set(err, ERR_INVALID,
                       "the number %.*s is too large: integers have 64 bits, others are doubles",
                       STR_ARG(s));
    case YYJSON_TYPE_STR:
        s = json_str(v);
        if (!memchr(s.p, 0, s.len))
            return 0;
        *at = doc_position(doc, v);
        return err_set(err, ERR_INVALID, "NUL character in a string");
    default:
        return 0;
    }
}

static int check_values(const struct doc *doc, struct text_pos *at, struct err *err)
{
    size_t count = yyjson_doc_get_val_count(doc->yy);
    for (size_t i = 0; i < count; i++) {
        if (check_value(doc, doc->root + i, at, err) < 0)
            return -1;
    }
    return 0;
}

/* What is refused before yyjson sees it. */
static int check_text(struct str text, struct text_pos *at, struct err *err)
{
    if (text.len > JSON_BYTES_MAX)
        return err_set(err, ERR_INVALID, "the text has %zu bytes, at most %zu are read", text.len,
                       JSON_BYTES_MAX);
    if (str_starts(text, STR(BOM)))
        return err_set(err, ERR_INVALID,
                       "the text starts with a byte order mark, which JSON does not allow");
    if (str_starts(text, STR("\xfe\xff")) || str_starts(text, STR("\xff\xfe")))
        return err_set(err, ERR_INVALID, "the text is encoded as UTF-16, expected UTF-8");
    struct json_extent extent = json_scan_extent(text);
    if (extent.too_deep == SIZE_MAX)
        return 0;
    *at = text_pos_at(text, extent.too_deep, *at);
    return err_set(err, ERR_INVALID, TOO_DEEP);
}

int json_read_at(struct str text, struct text_pos start, struct doc *out, struct text_pos *at,
                 struct err *err)
{
    struct doc doc;
    *at = start;
    if (check_text(text, at, err) < 0)
        return JSON_REFUSED;
    if (parse(text, start, YYJSON_READ_BIGNUM_AS_RAW, &json_alloc, &doc, at, err) < 0)
        return -1;
    if (check_values(&doc, at, err) < 0) {
        doc_done(&doc);
        return JSON_REFUSED;
    }
    *out = doc;
    return 0;
}

int json_read(struct str text, struct doc *out, struct err *err)
{
    struct text_pos at;
    if (json_read_at(text, (struct text_pos){ 1, 1 }, out, &at, err) < 0)
        return err_wrap(err, "line %u, column %u", at.line, at.col);
    return 0;
}

void doc_done(struct doc *doc)
{
    yyjson_doc_free(doc->yy);
    free(doc->scanned);
    *doc = (struct doc){ 0 };
}

void doc_wipe(struct doc *doc)
{
    /* The strings are unescaped in place, in the reader's own copy of the text. */
    if (doc->yy && doc->yy->str_pool)
        explicit_bzero(doc->yy->str_pool, doc->yy->dat_read);
}

struct text_pos doc_position(const struct doc *doc, const json_val *v)
{
    uintptr_t first = (uintptr_t)doc->root;
    uintptr_t bytes = doc->yy ? yyjson_doc_get_val_count(doc->yy) * sizeof *v : 0;
    if ((uintptr_t)v < first || (uintptr_t)v - first >= bytes)
        return (struct text_pos){ 0, 0 };
    size_t index = (size_t)(v - doc->root);
    if (doc->positions)
        return doc->positions[index];
    if (!doc->scanned) {
        /* A cache: who asks for one position usually asks for more. */
        size_t count = yyjson_doc_get_val_count(doc->yy);
        struct text_pos *scanned = kv_calloc(count, sizeof *scanned);
        json_scan_positions(doc->text, doc->start, scanned, count);
        ((struct doc *)doc)->scanned = scanned;
    }
    return doc->scanned[index];
}

/* --- looking at values --- */

bool json_i64(const json_val *v, int64_t *out)
{
    if (yyjson_is_sint((json_val *)v)) {
        *out = yyjson_get_sint((json_val *)v);
        return true;
    }
    if (!yyjson_is_uint((json_val *)v) || yyjson_get_uint((json_val *)v) > INT64_MAX)
        return false;
    *out = (int64_t)yyjson_get_uint((json_val *)v);
    return true;
}

const json_val *json_get(const json_val *object, struct str key)
{
    return key.p ? yyjson_obj_getn((json_val *)object, key.p, key.len) : NULL;
}

const json_val *json_at(const json_val *array, size_t ix)
{
    return yyjson_arr_get((json_val *)array, ix);
}

const json_val *json_path(const json_val *v, const char *dotted)
{
    struct str rest = str_of(dotted), key;
    bool more = true;
    while (more && v) {
        more = str_cut(rest, '.', &key, &rest);
        v = json_get(v, key);
    }
    return v;
}

const char *json_type_name(const json_val *v)
{
    switch (yyjson_get_type((json_val *)v)) {
    case YYJSON_TYPE_NULL:
        return "null";
    case YYJSON_TYPE_BOOL:
        return "boolean";
    case YYJSON_TYPE_NUM:
        return json_is_int(v) ? "integer" : "number";
    case YYJSON_TYPE_STR:
        return "string";
    case YYJSON_TYPE_ARR:
        return "array";
    case YYJSON_TYPE_OBJ:
        return "object";
    default:
        return "nothing";
    }
}

/* --- sorted keys --- */

static int key_cmp(const void *a, const void *b)
{
    const json_val *x = *(const json_val *const *)a, *y = *(const json_val *const *)b;
    int c = str_cmp(json_str(x), json_str(y));
    return c ? c : (x > y) - (x < y); /* one array: the order of the text */
}

/* Faster than qsort for the few keys that most objects have. */
static void sort_few(const json_val **keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        const json_val *key = keys[i];
        size_t j = i;
        for (; j > 0 && str_cmp(json_str(keys[j - 1]), json_str(key)) > 0; j--)
            keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

void json_keys_init(struct json_keys *keys, const json_val *object)
{
    keys->count = json_is_object(object) ? json_count(object) : 0;
    keys->items = keys->few;
    if (keys->count > JSON_KEYS_FEW)
        keys->items = kv_calloc(keys->count, sizeof(json_val *));
    size_t n = 0;
    json_each_member(object, key, val) {
        (void)val;
        keys->items[n++] = key;
    }
    if (n <= JSON_KEYS_FEW)
        sort_few(keys->items, n);
    else
        qsort(keys->items, n, sizeof(json_val *), key_cmp);
}

void json_keys_done(struct json_keys *keys)
{
    if (keys->items != keys->few)
        free(keys->items);
    keys->items = NULL;
}

const json_val *json_keys_find(const struct json_keys *keys, struct str key)
{
    size_t low = 0, high = keys->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        int c = str_cmp(json_str(keys->items[mid]), key);
        if (c == 0)
            return json_value_of(keys->items[mid]);
        if (c < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return NULL;
}

/* --- equality --- */

struct json_number json_number_of(const json_val *v)
{
    struct json_number n = { .real = json_double(v) };
    if (yyjson_is_uint((json_val *)v)) {
        n.is_integer = true;
        n.magnitude = yyjson_get_uint((json_val *)v);
    } else if (yyjson_is_sint((json_val *)v)) {
        int64_t i = yyjson_get_sint((json_val *)v);
        n.is_integer = true;
        n.negative = i < 0;
        n.magnitude = i < 0 ? 0 - (uint64_t)i : (uint64_t)i;
    } else {
        /* Exact: a double below 2^64 without a fraction converts without rounding. */
        double magnitude = n.real < 0 ? -n.real : n.real;
        n.is_integer = magnitude < 0x1p64 && (double)(uint64_t)magnitude == magnitude;
        if (n.is_integer) {
            n.negative = n.real < 0;
            n.magnitude = (uint64_t)magnitude;
        }
    }
    return n;
}

bool json_number_equal(struct json_number a, struct json_number b)
{
    if (a.is_integer != b.is_integer)
        return false;
    if (a.is_integer)
        return a.magnitude == b.magnitude && a.negative == b.negative;
    return a.real == b.real;
}

static bool sorted_objects_equal(const json_val *a, const json_val *b)
{
    AUTO_JSON_KEYS x, y;
    json_keys_init(&x, a);
    json_keys_init(&y, b);
    if (x.count != y.count)
        return false;
    for (size_t i = 0; i < x.count; i++) {
        if (!str_eq(json_str(x.items[i]), json_str(y.items[i])) ||
            !json_equal(json_value_of(x.items[i]), json_value_of(y.items[i])))
            return false;
    }
    return true;
}

static bool keys_in_same_order(const json_val *a, const json_val *b)
{
    struct json_span x = json_members(a), y = json_members(b);
    while (x.begin != x.end && str_eq(json_key(x.begin), json_key(y.begin))) {
        x.begin = json_end(x.begin + 1);
        y.begin = json_end(y.begin + 1);
    }
    return x.begin == x.end;
}

/* What is compared is mostly two states of one object, whose members are in the same order. The
 * keys are looked at first, so that no value is ever compared twice: with nesting that would double at
 * every level. */
static bool objects_equal(const json_val *a, const json_val *b)
{
    if (json_count(a) != json_count(b))
        return false;
    if (!keys_in_same_order(a, b))
        return sorted_objects_equal(a, b);
    struct json_span y = json_members(b);
    json_each_member(a, key, val) {
        if (!json_equal(val, y.begin + 1))
            return false;
        y.begin = json_end(y.begin + 1);
    }
    return true;
}

static bool arrays_equal(const json_val *a, const json_val *b)
{
    if (json_count(a) != json_count(b))
        return false;
    yyjson_arr_iter other = yyjson_arr_iter_with((json_val *)b);
    json_each_item(a, item) {
        if (!json_equal(item, yyjson_arr_iter_next(&other)))
            return false;
    }
    return true;
}

/* Recursion is bounded: documents are at most JSON_DEPTH_MAX deep. */
bool json_equal(const json_val *a, const json_val *b)
{
    if (!a || !b)
        return a == b;
    if (yyjson_get_type((json_val *)a) != yyjson_get_type((json_val *)b))
        return false;
    if (json_is_object(a))
        return objects_equal(a, b);
    if (json_is_array(a))
        return arrays_equal(a, b);
    if (json_is_string(a))
        return str_eq(json_str(a), json_str(b));
    if (json_is_bool(a))
        return json_bool(a) == json_bool(b);
    if (json_is_number(a))
        return json_number_equal(json_number_of(a), json_number_of(b));
    return true;
}
