/* The format of scenario files, as tables: unknown fields, wrong types and values out of range are all
 * found by walking them. The values themselves are taken over by the other files of the reader.
 */
#include "sim/scenario_inner.h"

#include "api/karpenter.h"

#define DELAY_MAX_NS (24 * DURATION_HOUR)
#define STEPS_MAX 10000
#define NAME_MAX_LEN 253
#define TEXT_MAX_LEN 1000

const char *const action_names[] = {
    [ACTION_SAY] = "say",       [ACTION_APPLY] = "apply",   [ACTION_DELETE] = "delete",
    [ACTION_SCALE] = "scale",   [ACTION_PRICE] = "price",   [ACTION_DROUGHT] = "drought",
    [ACTION_OUTAGE] = "outage", [ACTION_BREAK] = "break",   [ACTION_KILL] = "kill",
    [ACTION_CRASH] = "crash",   [ACTION_FAULTS] = "faults", [ACTION_KIND_COUNT] = NULL,
};

/* --- values --- */

static bool delay_of(const json_val *v, int64_t *out)
{
    return json_is_string(v) && duration_parse(json_str(v), out, NULL) == 0 && *out >= 0 &&
           *out <= DELAY_MAX_NS;
}

bool span_of_json(const json_val *v, struct span *out)
{
    struct span span;
    if (json_is_object(v)) {
        if (json_count(v) != 2 || !delay_of(json_get(v, STR("min")), &span.min_ns) ||
            !delay_of(json_get(v, STR("max")), &span.max_ns) || span.min_ns > span.max_ns)
            return false;
    } else {
        if (!delay_of(v, &span.min_ns))
            return false;
        span.max_ns = span.min_ns;
    }
    *out = span;
    return true;
}

struct fault_rates rates_of_json(const json_val *v)
{
    return (struct fault_rates){
        .store_error = json_double(json_get(v, STR("storeErrors"))),
        .store_lost_reply = json_double(json_get(v, STR("storeLostReplies"))),
        .watch_cut = json_double(json_get(v, STR("watchCuts"))),
        .launch_error = json_double(json_get(v, STR("launchErrors"))),
        .launch_lost_reply = json_double(json_get(v, STR("launchLostReplies"))),
        .cloud_error = json_double(json_get(v, STR("cloudErrors"))),
    };
}

static bool is_span(const json_val *self, const json_val *old KV_UNUSED)
{
    struct span span;
    return span_of_json(self, &span);
}

static bool is_rate(const json_val *self, const json_val *old KV_UNUSED)
{
    return json_is_number(self) && json_double(self) >= 0 && json_double(self) <= 1;
}

static bool is_crash_rate(const json_val *self, const json_val *old KV_UNUSED)
{
    return json_is_number(self) && json_double(self) >= 0 && json_double(self) <= 1000;
}

static bool is_factor(const json_val *self, const json_val *old KV_UNUSED)
{
    return json_is_number(self) && json_double(self) > 0 && json_double(self) <= 1000;
}

static bool is_crash(const json_val *self, const json_val *old KV_UNUSED)
{
    if (json_is_bool(self))
        return json_bool(self);
    int64_t calls = 1;
    const json_val *at = json_get(self, STR("calls")), *after = json_get(self, STR("afterEffect"));
    return json_is_object(self) && json_count(self) == (at ? 1u : 0u) + (after ? 1u : 0u) &&
           (!at || (json_i64(at, &calls) && calls >= 1 && calls <= 1000000)) &&
           (!after || json_is_bool(after));
}

static bool is_objects(const json_val *self, const json_val *old KV_UNUSED)
{
    return json_is_object(self) || (json_is_array(self) && json_count(self) > 0);
}

static const char *length_of_time(struct str text)
{
    int64_t ns;
    if (duration_parse(text, &ns, NULL) < 0)
        return NULL; /* told already */
    return ns >= 0 && ns <= SCENARIO_DURATION_MAX_NS ? NULL : "expected 0s to 8784h (366 days)";
}

static const char *length_of_time_above_zero(struct str text)
{
    int64_t ns;
    if (duration_parse(text, &ns, NULL) == 0 && ns < DURATION_SECOND)
        return "expected at least 1s";
    return length_of_time(text);
}

#define SPAN_FIELD(name_)                                                                          \
    CHECKED(JSON, name_,                                                                           \
            RULE(CEL_RULES({ "a span",                                                             \
                             "expected a duration such as \"30s\", or {min: 20s, max: 60s}; "      \
                             "at most 24h",                                                        \
                             is_span })))
#define RATE_FIELD(name_)                                                                          \
    CHECKED(JSON, name_,                                                                           \
            RULE(CEL_RULES({ "a rate", "expected a share from 0 to 1, such as 0.05", is_rate })))
#define NAME_FIELD(name_, ...)                                                                     \
    CHECKED(STR, name_, RULE(.len_min = 1, .len_max = NAME_MAX_LEN), __VA_ARGS__)
#define TIME_FIELD(name_, check_, ...) CHECKED(DURATION, name_, RULE(.check = check_), __VA_ARGS__)
#define MATCH_FIELDS NAME_FIELD("instanceType"), NAME_FIELD("zone"), NAME_FIELD("capacityType")

/* --- parts --- */

static const struct field cloud_fields[] = {
    NAME_FIELD("catalogue"),
    NAME_FIELD("region"),
    CHECKED(STR, "types", RULE(ENUMS("catalogue", "kwok"))),
    SPAN_FIELD("boot"),
    SPAN_FIELD("ready"),
    SPAN_FIELD("terminate"),
    RATE_FIELD("bootFailures"),
    RATE_FIELD("readyFailures"),
};
static const struct schema cloud_schema = SCHEMA_CHECKED("cloud", cloud_fields);

static const struct field cluster_fields[] = {
    SPAN_FIELD("podStart"),
    SPAN_FIELD("podStop"),
    SPAN_FIELD("jobRun"),
    SPAN_FIELD("startupTaints"),
    TIME_FIELD("eventDelay", length_of_time),
};
static const struct schema cluster_schema = SCHEMA_CHECKED("cluster", cluster_fields);

#define RATE_FIELDS                                                                                \
    RATE_FIELD("storeErrors"), RATE_FIELD("storeLostReplies"), RATE_FIELD("watchCuts"),            \
        RATE_FIELD("launchErrors"), RATE_FIELD("launchLostReplies"), RATE_FIELD("cloudErrors")
static const struct field faults_fields[] = {
    RATE_FIELDS,
    CHECKED(JSON, "crashesPerHour",
            RULE(CEL_RULES({ "0 to 1000", "expected a number from 0 to 1000", is_crash_rate }))),
};
static const struct schema faults_schema = SCHEMA_CHECKED("faults", faults_fields);
static const struct field rates_fields[] = { RATE_FIELDS };
static const struct schema rates_schema = SCHEMA_CHECKED("faults", rates_fields);

/* --- the timeline --- */

static const struct field scale_fields[] = {
    CHECKED(STR, "kind", RULE(ENUMS("Deployment", "ReplicaSet", "StatefulSet"))),
    NAME_FIELD("namespace"),
    NAME_FIELD("name", .flags = FIELD_REQUIRED),
    CHECKED(INT, "replicas", RULE(BETWEEN(0, SCENARIO_REPLICAS_MAX)), .flags = FIELD_REQUIRED),
};
static const struct schema scale_schema = SCHEMA_CHECKED("scale", scale_fields);

static bool name_or_any(const json_val *self, const json_val *old KV_UNUSED)
{
    return (json_member(self, "name") != NULL) != (json_member(self, "any") != NULL);
}

static const struct field delete_fields[] = {
    NAME_FIELD("kind", .flags = FIELD_REQUIRED),
    NAME_FIELD("namespace"),
    NAME_FIELD("name"),
    CHECKED(INT, "any", RULE(BETWEEN(1, SCENARIO_OBJECTS_MAX))),
};
static const struct schema delete_schema = SCHEMA_CHECKED(
    "delete", delete_fields,
    CEL_RULES({ "name or any", "expected either name or any (how many)", name_or_any }));

static const struct field price_fields[] = {
    MATCH_FIELDS,
    CHECKED(JSON, "factor", .flags = FIELD_REQUIRED,
            RULE(CEL_RULES({ "a factor", "expected a number above 0, such as 1.5; at most 1000",
                             is_factor }))),
};
static const struct schema price_schema = SCHEMA_CHECKED("price", price_fields);

static const struct field drought_fields[] = { MATCH_FIELDS };
static const struct schema drought_schema = SCHEMA_CHECKED("drought", drought_fields);

static const struct field kill_fields[] = {
    MATCH_FIELDS,
    CHECKED(INT, "count", RULE(BETWEEN(1, SCENARIO_OBJECTS_MAX)), .flags = FIELD_REQUIRED),
};
static const struct schema kill_schema = SCHEMA_CHECKED("kill", kill_fields);

/* An action is one member; breaking something has three of them. */
static const char *const action_members[] = {
    "apply",      "delete",       "scale",       "price", "drought", "outage",
    "breakImage", "breakNetwork", "breakLaunch", "kill",  "crash",   "faults",
};

static bool one_action(const json_val *self, const json_val *old KV_UNUSED)
{
    uint32_t count = 0;
    for (size_t i = 0; i < KV_COUNT_OF(action_members); i++)
        count += json_member(self, action_members[i]) != NULL;
    return count == 1 || (count == 0 && json_member(self, "say"));
}

static bool lasts(const json_val *self)
{
    return json_member(self, "price") || json_member(self, "drought") ||
           json_member(self, "outage") || json_member(self, "breakImage") ||
           json_member(self, "breakNetwork") || json_member(self, "breakLaunch") ||
           json_member(self, "faults");
}

static bool only_what_lasts_ends(const json_val *self, const json_val *old KV_UNUSED)
{
    return lasts(self) || (!json_member(self, "for") && !json_member(self, "ends"));
}

static bool for_or_ends(const json_val *self, const json_val *old KV_UNUSED)
{
    return !json_member(self, "for") || !json_member(self, "ends");
}

static const struct field entry_fields[] = {
    TIME_FIELD("at", length_of_time, .flags = FIELD_REQUIRED),
    CHECKED(STR, "say", RULE(.len_min = 1, .len_max = TEXT_MAX_LEN)),
    CHECKED(JSON, "apply",
            RULE(CEL_RULES({ "objects", "expected an object, or a list of them", is_objects }))),
    CHECKED(STRUCT, "delete", .sub = &delete_schema),
    CHECKED(STRUCT, "scale", .sub = &scale_schema),
    CHECKED(STRUCT, "price", .sub = &price_schema),
    CHECKED(STRUCT, "drought", .sub = &drought_schema),
    NAME_FIELD("outage"),
    NAME_FIELD("breakImage"),
    NAME_FIELD("breakNetwork"),
    NAME_FIELD("breakLaunch"),
    CHECKED(STRUCT, "kill", .sub = &kill_schema),
    CHECKED(JSON, "crash",
            RULE(CEL_RULES({ "a crash",
                             "expected true, or {calls: 1 to 1000000, afterEffect: true or false}",
                             is_crash }))),
    CHECKED(STRUCT, "faults", .sub = &rates_schema),
    TIME_FIELD("for", length_of_time_above_zero),
    CHECKED(BOOL, "ends"),
};
static const struct schema entry_schema = SCHEMA_CHECKED(
    "timeline", entry_fields,
    CEL_RULES({ "one action",
                "expected one action: apply, delete, scale, price, drought, outage, breakImage, "
                "breakNetwork, breakLaunch, kill, crash or faults; or say alone",
                one_action },
              { "only what lasts ends",
                "for and ends go with price, drought, outage, breakImage, breakNetwork, "
                "breakLaunch and faults only",
                only_what_lasts_ends },
              { "for or ends", "expected for or ends, not both", for_or_ends }));

static const struct rule action_name_rule = { .enums = action_names };
static const struct field chaos_fields[] = {
    CHECKED(INT, "steps", RULE(BETWEEN(1, STEPS_MAX)), .flags = FIELD_REQUIRED),
    SPAN_FIELD("pause"),
    CHECKED(STRS, "actions",
            RULE(.items_min = 1, .items_max = ACTION_KIND_COUNT, .item = &action_name_rule)),
};
static const struct schema chaos_schema = SCHEMA_CHECKED("chaos", chaos_fields);

/* --- the file --- */

static const struct rule path_rule = { .len_min = 1, .len_max = 4096 };
static const struct field scenario_fields[] = {
    NAME_FIELD("name"),
    CHECKED(STR, "about", RULE(.len_max = TEXT_MAX_LEN)),
    CHECKED(TIME, "start"),
    TIME_FIELD("duration", length_of_time_above_zero),
    TIME_FIELD("sample", length_of_time_above_zero),
    CHECKED(INT, "seed", RULE(AT_LEAST(0))),
    CHECKED(JSON, "controller", .flags = FIELD_PRESERVE_UNKNOWN),
    CHECKED(STRUCT, "cloud", .sub = &cloud_schema),
    CHECKED(STRUCT, "cluster", .sub = &cluster_schema),
    CHECKED(STRUCT, "faults", .sub = &faults_schema),
    CHECKED(STRS, "manifests", RULE(.items_max = 1000, .item = &path_rule)),
    CHECKED(JSON, "objects",
            RULE(CEL_RULES({ "objects", "expected a list of objects", is_objects }))),
    CHECKED(LIST, "timeline", .sub = &entry_schema, RULE(.items_max = SCENARIO_ACTIONS_MAX / 2)),
    CHECKED(STRUCT, "chaos", .sub = &chaos_schema),
};
const struct schema scenario_schema = SCHEMA_CHECKED("a scenario", scenario_fields);
