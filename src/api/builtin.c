/* Small things that the tables of the built-in kinds share. Nothing here has state. */
#include "api/builtin.h"

#define PATH_DEPTH_MAX 12

__extension__ typedef __int128 wide;

#define T struct object_reference
static const struct field object_reference_fields[] = {
    FIELD(STR, kind, "kind", NULL),
    FIELD(STR, namespace_, "namespace", NULL),
    FIELD(STR, name, "name", NULL),
    FIELD(STR, uid, "uid", NULL),
    FIELD(STR, api_version, "apiVersion", NULL),
    FIELD(STR, resource_version, "resourceVersion", NULL),
    FIELD(STR, field_path, "fieldPath", NULL),
};
#undef T
const struct schema object_reference_schema =
    SCHEMA("ObjectReference", struct object_reference, object_reference_fields);

#define T struct condition
static const struct field plain_condition_fields[] = {
    FIELD(STR, type, "type", NULL, .flags = FIELD_REQUIRED, .rule = &required_text_rule),
    FIELD(ENUM, status, "status", NULL, .flags = FIELD_REQUIRED, .rule = &condition_status_rule),
    CHECKED(TIME, "lastProbeTime"),
    CHECKED(TIME, "lastHeartbeatTime"),
    CHECKED(TIME, "lastUpdateTime"),
    FIELD(TIME, transition_us, "lastTransitionTime", NULL),
    FIELD(STR, reason, "reason", NULL),
    FIELD(STR, message, "message", NULL),
};
#undef T
const struct schema plain_condition_schema =
    SCHEMA("Condition", struct condition, plain_condition_fields);

const struct rule condition_list_rule = { KEYED_BY("type") };

static const char *percent_problem(struct str value)
{
    int64_t number;

    if (value.len < 2 || value.p[value.len - 1] != '%' || value.p[0] < '0' || value.p[0] > '9' ||
        !str_to_i64(str_sub(value, 0, value.len - 1), &number))
        return "is not a percentage, expected a number or a text such as \"25%\"";
    return NULL;
}

/* The text is a time: an API server reads these by a layout in which the digits are counted. */
static const char *micro_time_problem(struct str value)
{
    struct str fraction;
    size_t digits = 0;

    if (!str_cut(value, '.', &(struct str){ 0 }, &fraction))
        fraction = STR("");
    while (digits < fraction.len && fraction.p[digits] >= '0' && fraction.p[digits] <= '9')
        digits++;
    return digits == 6 ? NULL : "needs six digits after the seconds, as in 15:04:05.000000Z";
}

const struct rule required_text_rule = { .len_min = 1 };
const struct rule count_rule = { .format = "int32", .min = { 0, true } };
const struct rule subdomain_rule = { .check = dns1123_subdomain_problem };
const struct rule percent_rule = { .min = { 0, true }, .check = percent_problem };
const struct rule micro_time_rule = { .check = micro_time_problem };

bool json_kept(const json_val *self, const json_val *old, const char *path)
{
    const json_val *now = json_path(self, path), *was = json_path(old, path);

    if (json_is_null(now))
        now = NULL;
    if (json_is_null(was))
        was = NULL;
    return now && was ? json_equal(now, was) : now == was;
}

static void add_at(struct report *report, enum severity severity, const json_val *root,
                   const char *dotted, const char *fmt, va_list args)
{
    struct place places[PATH_DEPTH_MAX] = { place_root(root) };
    const struct place *here = places;
    struct str rest = str_of(dotted);
    AUTO_BUF text = { 0 };

    for (uint32_t depth = 1; rest.len > 0; depth++) {
        struct str name, tail = STR_NONE;

        KV_ASSERT(depth < PATH_DEPTH_MAX);
        str_cut(rest, '.', &name, &tail);
        places[depth] = place_member_str(here, name);
        here = &places[depth];
        rest = tail;
    }
    buf_vaddf(&text, fmt, args);
    report_add(report, severity, place_path(here), here->at, "%s", buf_str(&text).p);
}

void report_at(struct report *report, const json_val *root, const char *path, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_at(report, PROBLEM_ERROR, root, path, fmt, args);
    va_end(args);
}

void warn_at(struct report *report, const json_val *root, const char *path, const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    add_at(report, PROBLEM_WARNING, root, path, fmt, args);
    va_end(args);
}

void check_name_is_label(const struct object *object, const json_val *root, struct report *report)
{
    const char *problem =
        object->meta.name.len > 0 ? dns1123_label_problem(object->meta.name) : NULL;

    if (problem)
        report_at(report, root, "metadata.name", "%s", problem);
}

int64_t int_or_percent_of(const struct int_or_str *value, int64_t total, bool round_up)
{
    int64_t percent;

    if (!value->set)
        return 0;
    if (!value->str.p)
        return value->number > 0 ? value->number : 0;
    if (value->str.len < 2 || !str_to_i64(str_sub(value->str, 0, value->str.len - 1), &percent) ||
        percent < 0)
        return 0;
    wide scaled = (wide)percent * total + (round_up ? 99 : 0);
    scaled /= 100;
    return scaled > INT64_MAX ? INT64_MAX : (int64_t)scaled;
}

bool json_mut_is(const json_mut *maybe_v, const char *word)
{
    return str_eqz(json_mut_str(maybe_v), word);
}

void json_default(struct json_build *b, json_mut *object, const char *key, json_mut *v)
{
    json_mut *old = json_mut_get(object, str_of(key));

    if (!old || json_mut_is_null(old))
        json_set(b, object, str_of(key), v);
}
