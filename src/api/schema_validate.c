/* Checking JSON against the tables: every problem, in the order of the text.
 *
 * The walk follows the document, so problems come out as a reader meets them; what is missing is
 * said at the end of the object that lacks it. Null is absent. A value of the wrong type is
 * reported once and not looked into.
 *
 * Rules about changes (CEL that mentions oldSelf) are checked by a second walk over the new and the
 * old tree in step. Items of lists are the same item only in list maps, by their keys.
 */
#include "api/schema_walk.h"
#include "codec/duration.h"
#include "codec/regex.h"

/* --- unknown fields --- */

static bool report_is_full(const struct report *r)
{
    return r->problems.count >= REPORT_PROBLEMS_MAX;
}

/* Letters of the wrong case are one edit in all, so that "nodename" is near "nodeName". */
static size_t name_distance(struct str a, struct str b, size_t limit)
{
    if (a.len == b.len && strncasecmp(a.p, b.p, a.len) == 0)
        return 1;
    return str_distance(a, b, limit);
}

/* Far enough to catch a slip of the keyboard, near enough not to be silly. */
static size_t suggestion_limit(size_t len)
{
    return len <= 3 ? 1 : len <= 8 ? 2 : 3;
}

static const char *nearest_field(const struct schema *schema, struct str key)
{
    const char *best = NULL;
    size_t best_distance = suggestion_limit(key.len) + 1;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        if (f->flags & FIELD_DERIVED)
            continue;
        size_t distance =
            name_distance(key, (struct str){ f->name, f->name_len }, best_distance - 1);
        if (distance < best_distance) {
            best_distance = distance;
            best = f->name;
        }
    }
    return best;
}

static void report_unknown(const struct schema *schema, const json_val *key,
                           const struct path *path, struct report *r)
{
    const char *near = report_is_full(r) ? NULL : nearest_field(schema, json_str(key));
    if (near)
        report_add(r, PROBLEM_ERROR, path, key, "unknown field, did you mean \"%s\"?", near);
    else
        report_add(r, PROBLEM_ERROR, path, key, "unknown field of %s", schema->name);
}

/* --- values --- */

static void check_object(const struct schema *schema, bool open, const json_val *v,
                         const struct path *path, struct report *r);

static bool rule_is_about_changes(const struct cel_rule *rule)
{
    return strstr(rule->rule, "oldSelf") != NULL;
}

static void check_cel(const struct cel_rule *rules, const json_val *v, const json_val *old,
                      const struct path *path, struct report *r)
{
    for (const struct cel_rule *rule = rules; rule && rule->rule; rule++) {
        if (!rule->holds || rule_is_about_changes(rule) != (old != NULL))
            continue;
        if (!rule->holds(v, old))
            report_add(r, PROBLEM_ERROR, path, v, "%s", rule->message ? rule->message : rule->rule);
    }
}

static size_t utf8_length(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
    return n;
}

static void report_not_enum(const char *const *enums, const json_val *v, const struct path *path,
                            struct report *r)
{
    AUTO_BUF words = { 0 };
    char found[SHOWN_TEXT_MAX];
    for (size_t i = 0; enums[i]; i++)
        buf_addf(&words, "%s\"%s\"", i ? ", " : "", enums[i]);
    report_add(r, PROBLEM_ERROR, path, v, "expected %s%s, found %s", enums[1] ? "one of " : "",
               buf_str(&words).p, value_shown(v, found));
}

static void check_text(const struct rule *rule, struct str s, const json_val *v,
                       const struct path *path, struct report *r)
{
    char found[SHOWN_TEXT_MAX];
    size_t len = utf8_length(s);

    if (rule->enums && !enum_index(rule->enums, s)) {
        report_not_enum(rule->enums, v, path, r);
        return;
    }
    if (len < rule->len_min)
        report_add(r, PROBLEM_ERROR, path, v, "has %zu characters, expected at least %u%s", len,
                   rule->len_min, len ? "" : " (it is empty)");
    else if (rule->len_max && len > rule->len_max)
        report_add(r, PROBLEM_ERROR, path, v, "has %zu characters, expected at most %u", len,
                   rule->len_max);
    /* A check has words of its own; a pattern is the rule of last resort. */
    const char *wrong = rule->check && !r->crd_only ? rule->check(s) : NULL;
    if (wrong)
        report_add(r, PROBLEM_ERROR, path, v, "%s %s", value_shown(v, found), wrong);
    else if (rule->pattern && !regex_match_static(rule->pattern, s))
        report_add(r, PROBLEM_ERROR, path, v, "%s does not match the pattern %s",
                   value_shown(v, found), rule->pattern);
}

static void check_number(const struct rule *rule, int64_t n, const json_val *v,
                         const struct path *path, struct report *r)
{
    struct maybe_int min = rule->min, max = rule->max;
    if (rule->format && strcmp(rule->format, "int32") == 0) {
        if (!min.set)
            min = (struct maybe_int){ INT32_MIN, true };
        if (!max.set)
            max = (struct maybe_int){ INT32_MAX, true };
    }
    if ((!min.set || n >= min.value) && (!max.set || n <= max.value))
        return;
    if (min.set && max.set)
        report_add(r, PROBLEM_ERROR, path, v, "expected %lld to %lld, found %lld",
                   (long long)min.value, (long long)max.value, (long long)n);
    else
        report_add(r, PROBLEM_ERROR, path, v, "expected at %s %lld, found %lld",
                   min.set ? "least" : "most", (long long)(min.set ? min.value : max.value),
                   (long long)n);
}

static void check_count(const struct rule *rule, const json_val *v, const struct path *path,
                        struct report *r)
{
    size_t count = json_count(v);
    const char *what = json_is_array(v) ? "items" : "members";
    if (count < rule->items_min)
        report_add(r, PROBLEM_ERROR, path, v, "has %zu %s, expected at least %u", count, what,
                   rule->items_min);
    else if (rule->items_max && count > rule->items_max)
        report_add(r, PROBLEM_ERROR, path, v, "has %zu %s, expected at most %u", count, what,
                   rule->items_max);
}

static bool is_fraction(const json_val *v)
{
    double d = json_double(v);
    return json_is_number(v) && !json_is_int(v) && d > -1e18 && d < 1e18 && d != (double)(int64_t)d;
}

static void check_parsed(const struct field *f, const json_val *v, const struct path *path,
                         struct report *r)
{
    struct err err;
    struct quantity quantity;
    int64_t n;
    int rc = 0;
    struct str s = json_str(v);

    if (f->type == FIELD_TIME)
        rc = time_parse(s, &n, &err);
    else if (f->type == FIELD_QUANTITY)
        rc = quantity_of_json(v, &quantity, &err);
    else if (f->type == FIELD_DURATION ||
             (f->type == FIELD_DURATION_OR_NEVER && !str_eq(s, STR("Never"))))
        rc = duration_parse(s, &n, &err);
    else if (f->type == FIELD_VERSION && s.len && (!str_to_i64(s, &n) || n < 0))
        rc = err_set(&err, ERR_INVALID, "expected %s", field_expected(f));
    AUTO_BUF number = { 0 };
    if (json_is_number(v)) { /* a quantity without quotes */
        json_write(v, &number);
        s = buf_str(&number);
    }
    char found[SHOWN_TEXT_MAX];
    if (rc < 0)
        report_add(r, PROBLEM_ERROR, path, v, "%s", err.text);
    else if (f->rule && f->rule->pattern && is_fraction(v)) /* as a CRD says it */
        report_add(r, PROBLEM_ERROR, path, v, "expected an integer or a string, found %s",
                   value_shown(v, found));
    else if (f->rule)
        check_text(f->rule, s, v, path, r);
}

/* --- lists whose items have keys --- */

struct keyed_item {
    struct str key; /* the values of the map keys, one after another */
    const json_val *item;
    uint32_t index;
};

static int keyed_cmp(const void *a, const void *b)
{
    const struct keyed_item *x = a, *y = b;
    int c = str_cmp(x->key, y->key);
    return c ? c : (x->index > y->index) - (x->index < y->index);
}

/* The value of a map key as canonical text; a missing one counts as its default. */
static void add_map_key(const struct schema *sub, const char *name, const json_val *item,
                        struct buf *out)
{
    const json_val *v = json_get(item, str_of(name));
    const struct field *f = field_find(sub, schema_plan(sub), str_of(name));
    if (v && !json_is_null(v))
        json_write(v, out);
    else if (f && f->rule && f->rule->dflt)
        buf_addz(out, f->rule->dflt);
    buf_addc(out, '\n');
}

/* The items of a list map sorted by key, of a set sorted by value. */
static struct keyed_item *keyed_items(struct arena *arena, const struct field *f,
                                      const json_val *list)
{
    struct keyed_item *items = arena_array(arena, struct keyed_item, json_count(list));
    uint32_t n = 0;
    json_each_item(list, item) {
        AUTO_BUF key = { 0 };
        if (f->rule->list_kind == LIST_MAP) {
            for (const char *const *name = f->rule->map_keys; *name; name++)
                add_map_key(f->sub, *name, item, &key);
        } else {
            json_write(item, &key);
        }
        items[n] = (struct keyed_item){ arena_str(arena, buf_str(&key)), item, n };
        n++;
    }
    qsort(items, n, sizeof *items, keyed_cmp);
    return items;
}

static void check_duplicates(const struct field *f, const json_val *v, const struct path *path,
                             struct report *r)
{
    if (!f->rule || (f->rule->list_kind != LIST_MAP && f->rule->list_kind != LIST_SET))
        return;
    AUTO_ARENA arena = { 0 };
    AUTO_BUF names = { 0 };
    struct keyed_item *items = keyed_items(&arena, f, v);
    if (f->rule->list_kind == LIST_MAP) {
        for (const char *const *name = f->rule->map_keys; *name; name++)
            buf_addf(&names, "%s%s", names.len ? ", " : "the same ", *name);
    } else {
        buf_addz(&names, "the same value");
    }
    for (size_t i = 1, first = 0; i < json_count(v); i++) {
        if (!str_eq(items[i].key, items[first].key)) {
            first = i;
            continue;
        }
        struct path here = { .up = path, .index = items[i].index };
        report_add(r, PROBLEM_ERROR, &here, items[i].item, "duplicate: item %u has %s",
                   items[first].index, buf_str(&names).p);
    }
}

/* --- composite values --- */

static void check_value(const struct field *f, const json_val *v, const struct path *path,
                        struct report *r);

/* A type that is a text and nothing else. */
static bool is_text(const struct field *f)
{
    return f->type == FIELD_STR || f->type == FIELD_ENUM || f->type == FIELD_TIME ||
           f->type == FIELD_DURATION || f->type == FIELD_DURATION_OR_NEVER ||
           f->type == FIELD_VERSION;
}

/* YAML reads on, no and 1.20 as something else than the text that was meant. */
static void report_type(const struct field *f, const json_val *v, const struct path *path,
                        struct report *r)
{
    char found[SHOWN_TEXT_MAX];
    bool unquoted = is_text(f) && (json_is_bool(v) || json_is_number(v));
    report_add(r, PROBLEM_ERROR, path, v, "expected %s, found %s%s", field_expected(f),
               value_found(v, found), unquoted ? "; quote it if a string was meant" : "");
}

static void check_strings(const struct field *f, const json_val *v, const struct path *path,
                          struct report *r)
{
    struct field item_field = { .type = FIELD_STR, .rule = f->rule ? f->rule->item : NULL };
    uint32_t index = 0;
    json_each_item(v, item) {
        struct path here = { .up = path, .index = index++ };
        check_value(&item_field, item, &here, r);
    }
    check_duplicates(f, v, path, r);
}

static void check_list(const struct field *f, const json_val *v, const struct path *path,
                       struct report *r)
{
    uint32_t index = 0;
    json_each_item(v, item) {
        struct path here = { .up = path, .index = index++ };
        check_object(f->sub, false, item, &here, r);
    }
    check_duplicates(f, v, path, r);
}

static void check_map(const struct field *f, const json_val *v, const struct path *path,
                      struct report *r)
{
    static const struct field value_fields[] = {
        [FIELD_STR_MAP] = { .type = FIELD_STR },
        [FIELD_RESOURCES] = { .type = FIELD_QUANTITY },
        [FIELD_MAP] = { .type = FIELD_STRUCT },
    };
    struct field value_field = value_fields[f->type];
    value_field.sub = f->sub;
    value_field.rule = f->rule ? f->rule->item : NULL;
    json_each_member(v, key, value) {
        struct path here = { .up = path, .name = json_str(key), .quoted = true };
        if (f->rule && f->rule->key && !r->crd_only)
            check_text(f->rule->key, here.name, key, &here, r);
        check_value(&value_field, value, &here, r);
    }
}

/* FIELD_OPAQUE with a schema: an object, or a list of them. */
static void check_opaque(const struct field *f, const json_val *v, const struct path *path,
                         struct report *r)
{
    if (!f->sub)
        return;
    if (json_is_array(v))
        check_list(f, v, path, r);
    else
        check_object(f->sub, f->flags & FIELD_PRESERVE_UNKNOWN, v, path, r);
}

static void check_value(const struct field *f, const json_val *v, const struct path *path,
                        struct report *r)
{
    char found[SHOWN_TEXT_MAX];
    int64_t n = 0;

    if (!json_fits((enum field_type)f->type, v)) {
        report_type(f, v, path, r);
        return;
    }
    if (f->rule && (json_is_array(v) || field_is_map(f)))
        check_count(f->rule, v, path, r);

    switch ((enum field_type)f->type) {
    case FIELD_OPAQUE:
        check_opaque(f, v, path, r);
        break;
    case FIELD_JSON:
        if ((f->flags & FIELD_PRESERVE_UNKNOWN) && !json_is_object(v))
            report_add(r, PROBLEM_ERROR, path, v, "expected an object, found %s",
                       value_found(v, found));
        break;
    case FIELD_BOOL:
    case FIELD_TRI:
        break;
    case FIELD_INT:
    case FIELD_MAYBE_INT:
        if (!json_i64(v, &n))
            report_add(r, PROBLEM_ERROR, path, v, "is out of range, expected a 64-bit integer");
        else if (f->rule)
            check_number(f->rule, n, v, path, r);
        break;
    case FIELD_INT_OR_STR:
        if (json_is_string(v) && f->rule)
            check_text(f->rule, json_str(v), v, path, r);
        else if (json_i64(v, &n) && f->rule)
            check_number(f->rule, n, v, path, r);
        break;
    case FIELD_STR:
    case FIELD_ENUM:
        if (f->rule)
            check_text(f->rule, json_str(v), v, path, r);
        break;
    case FIELD_TIME:
    case FIELD_DURATION:
    case FIELD_DURATION_OR_NEVER:
    case FIELD_QUANTITY:
    case FIELD_VERSION:
        check_parsed(f, v, path, r);
        break;
    case FIELD_STRUCT:
    case FIELD_OPTION:
        check_object(f->sub, f->flags & FIELD_PRESERVE_UNKNOWN, v, path, r);
        break;
    case FIELD_LIST:
        check_list(f, v, path, r);
        break;
    case FIELD_STRS:
        check_strings(f, v, path, r);
        break;
    case FIELD_STR_MAP:
    case FIELD_RESOURCES:
    case FIELD_MAP:
        check_map(f, v, path, r);
        break;
    }
    if (f->rule)
        check_cel(f->rule->cel, v, NULL, path, r);
}

static void check_required(const struct schema *schema, const json_val *v, const struct path *path,
                           struct report *r)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        struct str name = { f->name, f->name_len };
        if (!(f->flags & FIELD_REQUIRED) || (f->rule && f->rule->dflt))
            continue;
        const json_val *value = json_get(v, name);
        struct path here = { .up = path, .name = name };
        if (!value || json_is_null(value))
            report_add(r, PROBLEM_ERROR, &here, v, "required, missing; expected %s",
                       field_expected(f));
    }
}

static bool is_absent(const struct field *f, const json_val *v, const struct report *r)
{
    if (json_is_null(v))
        return true;
    return r->empty_is_absent && (f->type == FIELD_STR || f->type == FIELD_ENUM) &&
           !(f->flags & FIELD_REQUIRED) && json_is_string(v) && json_str(v).len == 0 &&
           !(f->rule && f->rule->len_min);
}

static void check_object(const struct schema *schema, bool open, const json_val *v,
                         const struct path *path, struct report *r)
{
    char found[SHOWN_TEXT_MAX];

    if (!json_is_object(v)) {
        report_add(r, PROBLEM_ERROR, path, v, "expected an object, found %s",
                   value_found(v, found));
        return;
    }
    json_each_member(v, key, value) {
        struct path here = { .up = path, .name = json_str(key) };
        const struct field *f = field_find(schema, schema_plan(schema), here.name);
        bool crd_only = r->crd_only, empty_is_absent = r->empty_is_absent;
        if (f && (f->flags & FIELD_CRD_HIDDEN)) { /* metadata: an API server knows all about it */
            r->crd_only = false;
            r->empty_is_absent = true;
        }
        if (f && !is_absent(f, value, r))
            check_value(f, value, &here, r);
        else if (!f && !open && !schema->preserve_unknown)
            report_unknown(schema, key, &here, r);
        r->crd_only = crd_only;
        r->empty_is_absent = empty_is_absent;
    }
    check_required(schema, v, path, r);
    check_cel(schema->cel, v, NULL, path, r);
}

void schema_validate(const struct schema *schema, const json_val *v, const struct path *path,
                     struct report *report)
{
    check_object(schema, false, v, path, report);
}

/* --- changes --- */

static void check_list_changes(const struct field *f, const json_val *v, const json_val *old,
                               const struct path *path, struct report *r)
{
    if (!f->rule || f->rule->list_kind != LIST_MAP)
        return;
    AUTO_ARENA arena = { 0 };
    struct keyed_item *now = keyed_items(&arena, f, v);
    struct keyed_item *was = keyed_items(&arena, f, old);
    size_t now_count = json_count(v), was_count = json_count(old);
    for (size_t i = 0, j = 0; i < now_count && j < was_count;) {
        int c = str_cmp(now[i].key, was[j].key);
        struct path here = { .up = path, .index = now[i].index };
        if (c == 0)
            schema_validate_update(f->sub, now[i].item, was[j].item, &here, r);
        i += c <= 0;
        j += c >= 0;
    }
}

static void check_change(const struct field *f, const json_val *v, const json_val *old,
                         const struct path *path, struct report *r)
{
    if (f->rule)
        check_cel(f->rule->cel, v, old, path, r);
    if (!f->sub || !json_fits((enum field_type)f->type, v) ||
        !json_fits((enum field_type)f->type, old))
        return;
    if (f->type == FIELD_LIST)
        check_list_changes(f, v, old, path, r);
    else if (f->type == FIELD_STRUCT || f->type == FIELD_OPTION)
        schema_validate_update(f->sub, v, old, path, r);
    else if (f->type == FIELD_MAP) {
        json_each_member(v, key, value) {
            struct path here = { .up = path, .name = json_str(key), .quoted = true };
            const json_val *was = json_get(old, here.name);
            if (was)
                schema_validate_update(f->sub, value, was, &here, r);
        }
    }
}

void schema_validate_update(const struct schema *schema, const json_val *v, const json_val *old,
                            const struct path *path, struct report *report)
{
    if (!json_is_object(v) || !json_is_object(old))
        return;
    json_each_member(v, key, value) {
        struct path here = { .up = path, .name = json_str(key) };
        const struct field *f = field_find(schema, schema_plan(schema), here.name);
        const json_val *was = f ? json_get(old, here.name) : NULL;
        if (was && !json_is_null(was) && !json_is_null(value))
            check_change(f, value, was, &here, report);
    }
    check_cel(schema->cel, v, old, path, report);
}
