/* The table machinery on a small schema of its own. */
#include "api/schema.h"
#include "codec/json.h"
#include "support/test.h"

enum colour { COLOUR_UNSET, COLOUR_RED, COLOUR_GREEN };

struct wheel {
    struct str name;
    int64_t spokes;
};
struct named_part {
    struct str key;
    int64_t price;
};
struct bell {
    struct str sound;
};
struct bike {
    struct str name;
    bool electric;
    uint8_t folded; /* enum tri */
    int64_t gears;
    struct maybe_int weight;
    uint8_t colour;
    int64_t built_us;
    struct duration warranty;
    struct int_or_str saddle;
    struct bell bell;
    const struct bell *maybe_horn;
    LIST(struct wheel) wheels;
    struct str_list riders;
    struct str_map labels;
    struct resources capacity;
    LIST(struct named_part) parts;
    struct str config;
    struct quantity load;
    uint64_t version;
    struct str note; /* derived */
};

#define T struct wheel
static const struct rule spokes_rule = { .min = { 3, true }, .max = { 64, true } };
static const struct field wheel_fields[] = {
    FIELD(STR, name, "name", NULL, .flags = FIELD_REQUIRED),
    FIELD(INT, spokes, "spokes", NULL, .rule = &spokes_rule),
    FIELD_KNOWN("tyre"),
};
#undef T
static bool name_is_kept(const json_val *self, const json_val *old)
{
    return json_equal(json_get(self, STR("spokes")), json_get(old, STR("spokes")));
}
static const struct cel_rule wheel_cel[] = {
    { "self.spokes == oldSelf.spokes", "spokes cannot change", name_is_kept },
    { 0 },
};
static const struct schema wheel_schema =
    SCHEMA("Wheel", struct wheel, wheel_fields, .cel = wheel_cel);

#define T struct named_part
static const struct field part_fields[] = { FIELD(INT, price, "price", NULL) };
#undef T
static const struct schema part_schema = SCHEMA("Part", struct named_part, part_fields);

#define T struct bell
static const struct rule sound_rule = { .dflt = "\"ding\"", .len_min = 2, .len_max = 5 };
static const struct field bell_fields[] = { FIELD(STR, sound, "sound", NULL, .rule = &sound_rule) };
#undef T
static const struct schema bell_schema = SCHEMA("Bell", struct bell, bell_fields);

static const struct field lock_fields[] = {
    CHECKED(INT, "digits", .flags = FIELD_REQUIRED),
    CHECKED(BOOL, "chain"),
};
static const struct schema lock_schema = SCHEMA_CHECKED("Lock", lock_fields);

static bool has_two_wheels(const json_val *self, const json_val *old KV_UNUSED)
{
    return json_count(json_get(self, STR("wheels"))) != 1;
}
static bool name_stays(const json_val *self, const json_val *old)
{
    return json_equal(self, old);
}

static const struct cel_rule bike_cel[] = {
    { "self.wheels.size() != 1", "a bike does not stand on one wheel", has_two_wheels },
    { 0 },
};
static const struct cel_rule name_cel[] = {
    { "self == oldSelf", "the name cannot change", name_stays },
    { 0 },
};
static const char *no_spaces(struct str s)
{
    return str_find(s, ' ') >= 0 ? "has a space" : NULL;
}
static const char *const wheel_keys[] = { "name", NULL };
static const struct rule name_rule = { .pattern = "^[a-z]+$", .cel = name_cel };
static const struct rule colour_rule = { .enums = (const char *const[]){ "red", "green", NULL } };
static const struct rule gears_rule = { .format = "int32", .dflt = "7" };
static const struct rule wheels_rule = { .list_kind = LIST_MAP,
                                         .map_keys = wheel_keys,
                                         .items_max = 3 };
static const struct rule rider_rule = { .check = no_spaces };
static const struct rule riders_rule = { .list_kind = LIST_SET, .item = &rider_rule };
static const struct rule labels_rule = { .key = &rider_rule };
static const struct rule horn_rule = { .dflt = "{}" };

#define T struct bike
static const struct field bike_fields[] = {
    FIELD(STR, name, "name", NULL, .flags = FIELD_REQUIRED, .rule = &name_rule),
    FIELD(BOOL, electric, "electric", NULL),
    FIELD(TRI, folded, "folded", NULL),
    FIELD(INT, gears, "gears", NULL, .rule = &gears_rule),
    FIELD(MAYBE_INT, weight, "weight", NULL),
    FIELD(ENUM, colour, "colour", NULL, .rule = &colour_rule),
    FIELD(TIME, built_us, "built", NULL),
    FIELD(DURATION_OR_NEVER, warranty, "warranty", NULL),
    FIELD(INT_OR_STR, saddle, "saddle", NULL),
    FIELD(STRUCT, bell, "bell", NULL, .sub = &bell_schema),
    FIELD(OPTION, maybe_horn, "horn", NULL, .sub = &bell_schema, .rule = &horn_rule),
    FIELD(LIST, wheels, "wheels", NULL, .sub = &wheel_schema, .rule = &wheels_rule),
    FIELD(STRS, riders, "riders", NULL, .rule = &riders_rule),
    FIELD(STR_MAP, labels, "labels", NULL, .rule = &labels_rule),
    FIELD(RESOURCES, capacity, "capacity", NULL),
    FIELD(MAP, parts, "parts", NULL, .sub = &part_schema),
    FIELD(JSON, config, "config", NULL),
    FIELD(QUANTITY, load, "load", NULL),
    FIELD(VERSION, version, "version", NULL),
    CHECKED(STRUCT, "lock", .sub = &lock_schema),
    FIELD_KNOWN("basket"),
    FIELD(STR, note, "", NULL, .flags = FIELD_DERIVED),
};
#undef T
static const struct schema bike_schema = SCHEMA("Bike", struct bike, bike_fields, .cel = bike_cel);

struct parsed {
    struct doc doc;
    struct arena arena;
    struct report report;
    struct bike bike;
};

static void parse(struct parsed *p, const char *text)
{
    struct err err;
    *p = (struct parsed){ 0 };
    EXPECT_OK(json_read(str_of(text), &p->doc, &err), err);
    p->report.arena = &p->arena;
}

static void parsed_done(struct parsed *p)
{
    report_done(&p->report);
    arena_done(&p->arena);
    doc_done(&p->doc);
}
#define PARSED __attribute__((cleanup(parsed_done))) struct parsed

static int decode(struct parsed *p, struct err *err)
{
    return schema_decode(&bike_schema, p->doc.root, &p->arena, &p->bike, err);
}

static struct str problems(struct parsed *p)
{
    AUTO_BUF text = { 0 };
    vec_each(&p->report.problems, struct problem, problem)
        buf_addf(&text, "%.*s: %.*s\n", STR_ARG(problem->path), STR_ARG(problem->what));
    return arena_str(&p->arena, buf_str(&text));
}

static void expect_problems(const char *text, const char *want)
{
    PARSED p;
    parse(&p, text);
    schema_validate(&bike_schema, p.doc.root, NULL, &p.report);
    EXPECT_STR(problems(&p), want);
}

static void expect_refused(const char *text, const char *want)
{
    PARSED p;
    struct err err;
    parse(&p, text);
    EXPECT_ERR(decode(&p, &err), err, ERR_INVALID);
    EXPECT_Z(err.text, want);
}

static const char full[] =
    "{\"name\":\"rocket\",\"electric\":true,\"folded\":false,\"gears\":21,\"weight\":0,"
    "\"colour\":\"green\",\"built\":\"2026-01-02T15:04:05Z\",\"warranty\":\"1h30m\","
    "\"saddle\":\"25%\",\"bell\":{\"sound\":\"ring\"},\"horn\":{\"sound\":\"honk\"},"
    "\"wheels\":[{\"name\":\"front\",\"spokes\":32,\"tyre\":{\"x\":[1]}},{\"name\":\"back\"}],"
    "\"riders\":[\"ann\",\"bob\"],\"labels\":{\"b\":\"2\",\"a\":\"1\"},"
    "\"capacity\":{\"people\":\"2\",\"kg\":1.5},\"parts\":{\"pedal\":{\"price\":9},\"chain\":{}},"
    "\"config\":{\"z\":1,\"a\":[true,null]},\"load\":\"120k\",\"version\":\"77\",\"lock\":{\"digits\":4},"
    "\"basket\":null}";

TEST(decode_fills_every_type_of_field)
{
    PARSED p;
    struct err err;
    parse(&p, full);
    EXPECT_OK(decode(&p, &err), err);
    const struct bike *b = &p.bike;

    EXPECT_STR(b->name, "rocket");
    EXPECT_TRUE(b->electric);
    EXPECT_EQ(b->folded, TRI_FALSE);
    EXPECT_EQ(b->gears, 21);
    EXPECT_TRUE(b->weight.set);
    EXPECT_EQ(b->weight.value, 0);
    EXPECT_EQ(b->colour, COLOUR_GREEN);
    EXPECT_EQ(b->built_us, 1767366245000000);
    EXPECT_EQ(b->warranty.ns, 5400000000000);
    EXPECT_STR(b->saddle.str, "25%");
    EXPECT_STR(b->bell.sound, "ring");
    EXPECT_STR(b->maybe_horn->sound, "honk");
    EXPECT_EQ(b->wheels.count, 2);
    EXPECT_EQ(b->wheels.items[0].spokes, 32);
    EXPECT_STR(b->wheels.items[1].name, "back");
    EXPECT_STR(b->riders.items[1], "bob");
    EXPECT_STR(b->labels.items[0].key, "a"); /* sorted */
    EXPECT_STR(str_map_get(&b->labels, STR("b")), "2");
    EXPECT_STR(str_map_get(&b->labels, STR("c")), NULL);
    EXPECT_STR(b->capacity.items[0].name, "kg");
    EXPECT_EQ(quantity_milli(b->capacity.items[0].amount), 1500); /* a number will do */
    EXPECT_STR(b->parts.items[0].key, "chain");
    EXPECT_EQ(b->parts.items[1].price, 9);
    EXPECT_STR(b->config, "{\"a\":[true,null],\"z\":1}");
    EXPECT_EQ(quantity_units(b->load), 120000);
    EXPECT_EQ(b->version, 77);
    EXPECT_STR(b->note, NULL);
}

TEST(decode_takes_absent_and_null_as_zero)
{
    PARSED p;
    struct err err;
    parse(&p, "{\"name\":null,\"weight\":null,\"wheels\":null,\"horn\":null,\"built\":null}");
    EXPECT_OK(decode(&p, &err), err);
    EXPECT_STR(p.bike.name, NULL);
    EXPECT_FALSE(p.bike.weight.set);
    EXPECT_EQ(p.bike.wheels.count, 0);
    EXPECT_TRUE(p.bike.maybe_horn == NULL);
    EXPECT_EQ(p.bike.built_us, 0);
}

TEST(decode_takes_keys_in_any_order_and_skips_unknown_ones)
{
    PARSED p;
    struct err err;
    parse(&p, "{\"version\":\"3\",\"\":1,\"wings\":{\"name\":5},\"gears\":2,\"name\":\"x\"}");
    EXPECT_OK(decode(&p, &err), err);
    EXPECT_EQ(p.bike.version, 3);
    EXPECT_EQ(p.bike.gears, 2);
    EXPECT_STR(p.bike.name, "x");
}

TEST(decode_tells_unknown_words_and_never)
{
    PARSED p;
    struct err err;
    parse(&p, "{\"colour\":\"gre\",\"warranty\":\"Never\",\"saddle\":8}");
    EXPECT_OK(decode(&p, &err), err);
    EXPECT_EQ(p.bike.colour, COLOUR_UNSET);
    EXPECT_TRUE(p.bike.warranty.never);
    EXPECT_TRUE(p.bike.warranty.set);
    EXPECT_TRUE(p.bike.saddle.str.p == NULL);
    EXPECT_EQ(p.bike.saddle.number, 8);
}

TEST(decode_reads_times_of_the_same_day_and_of_others)
{
    static const char *const times[] = { "2026-01-02T15:04:05Z", "2026-01-02T15:04:05.5Z",
                                         "2026-01-02T00:00:00Z", "2026-01-02T23:59:59Z",
                                         "2026-01-03T15:04:05Z", "2026-01-02T15:04:05+01:00",
                                         "1969-12-31T23:00:00Z", "1969-12-31T23:30:00Z" };
    static const int64_t want[] = { 1767366245000000, 1767366245500000, 1767312000000000,
                                    1767398399000000, 1767452645000000, 1767362645000000,
                                    -3600000000,      -1800000000 };
    struct moments {
        int64_t at[KV_COUNT_OF(times)];
    };
#define T struct moments
    static const struct field fields[] = {
        FIELD(TIME, at[0], "a0", NULL), FIELD(TIME, at[1], "a1", NULL),
        FIELD(TIME, at[2], "a2", NULL), FIELD(TIME, at[3], "a3", NULL),
        FIELD(TIME, at[4], "a4", NULL), FIELD(TIME, at[5], "a5", NULL),
        FIELD(TIME, at[6], "a6", NULL), FIELD(TIME, at[7], "a7", NULL),
    };
#undef T
    static struct schema_plan_slot slot;
    const struct schema schema = { .name = "Moments",
                                   .size = sizeof(struct moments),
                                   .align = 8,
                                   .fields = fields,
                                   .field_count = KV_COUNT_OF(fields),
                                   .slot = &slot };
    AUTO_BUF text = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(times); i++)
        buf_addf(&text, "%s\"a%zu\":\"%s\"", i ? "," : "{", i, times[i]);
    buf_addc(&text, '}');
    PARSED p;
    struct err err;
    struct moments got = { 0 };
    parse(&p, text.p);
    EXPECT_OK(schema_decode(&schema, p.doc.root, &p.arena, &got, &err), err);
    for (size_t i = 0; i < KV_COUNT_OF(times); i++)
        EXPECT_EQ(got.at[i], want[i]);
}

TEST(decode_names_the_place_and_what_it_expected)
{
    expect_refused("[]", "expected an object, found array");
    expect_refused("{\"gears\":\"7\"}", "gears: expected an integer, found string \"7\"");
    expect_refused("{\"gears\":7.5}", "gears: expected an integer, found number 7.5");
    expect_refused("{\"gears\":9223372036854775808}",
                   "gears: expected an integer, found integer 9223372036854775808");
    expect_refused("{\"electric\":\"yes\"}",
                   "electric: expected true or false, found string \"yes\"");
    expect_refused("{\"wheels\":[{\"name\":\"a\"},{\"name\":[]}]}",
                   "wheels[1].name: expected a string, found array");
    expect_refused("{\"wheels\":[1]}", "wheels[0]: expected an object, found integer 1");
    expect_refused("{\"wheels\":{}}", "wheels: expected a list of objects, found object");
    expect_refused("{\"labels\":{\"a/b\":1}}",
                   "labels[\"a/b\"]: expected a string, found integer 1");
    expect_refused("{\"parts\":{\"x\":{\"price\":true}}}",
                   "parts[\"x\"].price: expected an integer, found boolean true");
    expect_refused("{\"riders\":[\"a\",null]}", "riders[1]: expected a string, found null");
    expect_refused("{\"version\":\"-1\"}",
                   "version: expected a number in a string, found string \"-1\"");
}

TEST(decode_gives_the_words_of_the_parser_of_a_value)
{
    static const char *const texts[] = { "{\"load\":\"heavy\"}", "{\"built\":\"yesterday\"}",
                                         "{\"warranty\":\"long\"}",
                                         "{\"capacity\":{\"kg\":\"x\"}}" };
    static const char *const paths[] = { "load: ", "built: ", "warranty: ", "capacity[\"kg\"]: " };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        PARSED p;
        struct err err;
        parse(&p, texts[i]);
        EXPECT_ERR(decode(&p, &err), err, ERR_INVALID);
        EXPECT_TRUE(str_starts(str_of(err.text), str_of(paths[i])));
    }
}

TEST(decode_refuses_a_text_that_would_take_too_much_memory)
{
    AUTO_BUF text = { 0 };
    size_t count = SCHEMA_DECODED_BYTES_MAX / sizeof(struct wheel) + 1;
    buf_addz(&text, "{\"wheels\":[{}");
    for (size_t i = 1; i < count; i++)
        buf_addz(&text, ",{}");
    buf_addz(&text, "]}");
    PARSED p;
    struct err err;
    parse(&p, text.p);
    EXPECT_ERR(decode(&p, &err), err, ERR_INVALID);
    EXPECT_Z(err.text, "wheels: expected a smaller object, found array");
}

TEST(equal_values_have_equal_hashes_wherever_they_lie)
{
    PARSED a, b;
    struct err err;
    parse(&a, full);
    parse(&b, full);
    EXPECT_OK(decode(&a, &err), err);
    EXPECT_OK(decode(&b, &err), err);
    EXPECT_TRUE(schema_equal(&bike_schema, &a.bike, &b.bike));
    EXPECT_EQ(schema_hash(&bike_schema, &a.bike), schema_hash(&bike_schema, &b.bike));
}

TEST(every_field_counts_in_comparisons)
{
    /* Each changes one thing of the full text. */
    static const char *const changes[][2] = {
        { "rocket", "rockets" },
        { "true,\"folded", "false,\"folded" },
        { "\"folded\":false,", "" },
        { "21", "22" },
        { "\"weight\":0,", "" },
        { "green", "red" },
        { "15:04:05", "15:04:06" },
        { "1h30m", "1h31m" },
        { "25%", "26%" },
        { "ring", "rang" },
        { "\"horn\":{\"sound\":\"honk\"},", "" },
        { "32", "33" },
        { "bob", "bot" },
        { "\"b\":\"2\"", "\"b\":\"\"" },
        { "1.5", "1.6" },
        { "\"price\":9", "\"price\":8" },
        { "null]", "1]" },
        { "120k", "121k" },
        { "77", "78" },
    };
    PARSED a;
    struct err err;
    parse(&a, full);
    EXPECT_OK(decode(&a, &err), err);
    for (size_t i = 0; i < KV_COUNT_OF(changes); i++) {
        const char *hit = strstr(full, changes[i][0]);
        EXPECT_TRUE(hit != NULL);
        AUTO_BUF text = { 0 };
        buf_addf(&text, "%.*s%s%s", (int)(hit - full), full, changes[i][1],
                 hit + strlen(changes[i][0]));
        PARSED b;
        parse(&b, text.p);
        EXPECT_OK(decode(&b, &err), err);
        EXPECT_FALSE(schema_equal(&bike_schema, &a.bike, &b.bike));
        EXPECT_TRUE(schema_hash(&bike_schema, &a.bike) != schema_hash(&bike_schema, &b.bike));
    }
}

TEST(an_absent_string_differs_from_an_empty_one)
{
    PARSED a, b;
    struct err err;
    parse(&a, "{}");
    parse(&b, "{\"name\":\"\"}");
    EXPECT_OK(decode(&a, &err), err);
    EXPECT_OK(decode(&b, &err), err);
    EXPECT_FALSE(schema_equal(&bike_schema, &a.bike, &b.bike));
}

TEST(validate_is_silent_about_a_good_object)
{
    expect_problems(full, "");
    expect_problems("{\"name\":\"x\",\"gears\":null}", "");
}

TEST(validate_suggests_the_nearest_known_field)
{
    expect_problems("{\"name\":\"x\",\"colur\":\"red\"}",
                    "colur: unknown field, did you mean \"colour\"?\n");
    expect_problems("{\"name\":\"x\",\"GEARS\":1}",
                    "GEARS: unknown field, did you mean \"gears\"?\n");
    expect_problems("{\"name\":\"x\",\"helicopter\":1}", "helicopter: unknown field of Bike\n");
    expect_problems("{\"name\":\"x\",\"lock\":{\"digits\":1,\"chian\":true}}",
                    "lock.chian: unknown field, did you mean \"chain\"?\n");
    expect_problems("{\"name\":\"x\",\"basket\":{\"anything\":1}}", "");
}

TEST(validate_reports_every_problem_in_the_order_of_the_text)
{
    expect_problems("{\"gears\":\"a\",\"wheels\":[{\"spokes\":2},{\"name\":\"b\",\"spokes\":99}],"
                    "\"lock\":{}}",
                    "gears: expected an integer, found string \"a\"\n"
                    "wheels[0].spokes: expected 3 to 64, found 2\n"
                    "wheels[0].name: required, missing; expected a string\n"
                    "wheels[1].spokes: expected 3 to 64, found 99\n"
                    "lock.digits: required, missing; expected an integer\n"
                    "name: required, missing; expected a string\n");
}

TEST(validate_points_at_the_value_or_at_what_lacks_it)
{
    PARSED p;
    parse(&p, "{\"gears\":true}");
    schema_validate(&bike_schema, p.doc.root, NULL, &p.report);
    EXPECT_EQ(p.report.error_count, 2);
    EXPECT_TRUE(p.report.problems.items[0].at == json_get(p.doc.root, STR("gears")));
    EXPECT_TRUE(p.report.problems.items[1].at == p.doc.root);
}

TEST(validate_checks_words_patterns_lengths_and_ranges)
{
    expect_problems("{\"name\":\"x\",\"colour\":\"blue\"}",
                    "colour: expected one of \"red\", \"green\", found \"blue\"\n");
    expect_problems("{\"name\":\"X1\"}", "name: \"X1\" does not match the pattern ^[a-z]+$\n");
    expect_problems("{\"name\":\"x\",\"bell\":{\"sound\":\"a\"}}",
                    "bell.sound: has 1 characters, expected at least 2\n");
    expect_problems("{\"name\":\"x\",\"bell\":{\"sound\":\"öööööö\"}}",
                    "bell.sound: has 6 characters, expected at most 5\n");
    expect_problems("{\"name\":\"x\",\"bell\":{\"sound\":\"ööööö\"}}", "");
    expect_problems("{\"name\":\"x\",\"gears\":2147483648}",
                    "gears: expected -2147483648 to 2147483647, found 2147483648\n");
    expect_problems("{\"name\":\"x\",\"gears\":18446744073709551615}",
                    "gears: is out of range, expected a 64-bit integer\n");
    expect_problems("{\"name\":\"x\",\"riders\":[\"a b\"]}", "riders[0]: \"a b\" has a space\n");
    expect_problems("{\"name\":\"x\",\"labels\":{\"a b\":\"\"}}",
                    "labels[\"a b\"]: \"a b\" has a space\n");
}

TEST(validate_finds_duplicates_in_sets_and_list_maps)
{
    expect_problems("{\"name\":\"x\",\"riders\":[\"a\",\"b\",\"a\",\"a\"]}",
                    "riders[2]: duplicate: item 0 has the same value\n"
                    "riders[3]: duplicate: item 0 has the same value\n");
    expect_problems("{\"name\":\"x\",\"wheels\":[{\"name\":\"a\"},{\"name\":\"a\",\"spokes\":9}]}",
                    "wheels[1]: duplicate: item 0 has the same name\n");
    expect_problems(
        "{\"name\":\"x\",\"wheels\":[{\"name\":\"a\"},{\"name\":\"b\"},{\"name\":\"c\"},"
        "{\"name\":\"d\"}]}",
        "wheels: has 4 items, expected at most 3\n");
}

TEST(validate_runs_the_rules_of_the_whole_object)
{
    expect_problems("{\"name\":\"x\",\"wheels\":[{\"name\":\"a\"}]}",
                    ": a bike does not stand on one wheel\n");
}

TEST(a_report_keeps_a_thousand_problems_and_counts_the_rest)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "{\"name\":\"x\"");
    for (int i = 0; i < 1500; i++)
        buf_addf(&text, ",\"unknown%d\":1", i);
    buf_addc(&text, '}');
    PARSED p;
    parse(&p, text.p);
    schema_validate(&bike_schema, p.doc.root, NULL, &p.report);
    EXPECT_EQ(p.report.problems.count, REPORT_PROBLEMS_MAX);
    EXPECT_EQ(p.report.error_count, 1500);
}

static void expect_change(const char *old, const char *new, const char *want)
{
    PARSED a, b;
    parse(&a, old);
    parse(&b, new);
    schema_validate_update(&bike_schema, b.doc.root, a.doc.root, NULL, &b.report);
    EXPECT_STR(problems(&b), want);
}

TEST(rules_about_changes_compare_old_and_new)
{
    expect_change("{\"name\":\"a\"}", "{\"name\":\"a\"}", "");
    expect_change("{\"name\":\"a\"}", "{\"name\":\"b\"}", "name: the name cannot change\n");
    expect_change("{}", "{\"name\":\"b\"}", "");
}

TEST(rules_about_changes_follow_items_of_list_maps_by_key)
{
    expect_change("{\"wheels\":[{\"name\":\"a\",\"spokes\":9},{\"name\":\"b\",\"spokes\":8}]}",
                  "{\"wheels\":[{\"name\":\"c\",\"spokes\":7},{\"name\":\"b\",\"spokes\":8},"
                  "{\"name\":\"a\",\"spokes\":10}]}",
                  "wheels[2]: spokes cannot change\n");
}

TEST(defaults_are_added_where_their_object_is)
{
    struct err err;
    struct doc doc;
    AUTO_JSON_BUILD b;
    AUTO_BUF text = { 0 };
    EXPECT_OK(
        json_read(STR("{\"name\":\"x\",\"gears\":null,\"bell\":{},\"wheels\":[{}]}"), &doc, &err),
        err);
    json_build_init(&b);
    json_mut *root = json_copy(&b, doc.root);
    schema_default(&bike_schema, &b, root);
    json_write_mut(root, &text);
    EXPECT_STR(buf_str(&text), "{\"name\":\"x\",\"gears\":7,\"bell\":{\"sound\":\"ding\"},"
                               "\"wheels\":[{}],\"horn\":{\"sound\":\"ding\"}}");
    doc_done(&doc);
}
