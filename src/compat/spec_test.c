/* Reading compatibility specs, and what a whole spec says of a node. */
#include "compat/compat_testing.h"

static const char two_sets[] = "version: v1alpha1\n"
                               "compatibilities:\n"
                               "- tag: fast\n"
                               "  weight: 80\n"
                               "  description: AMX build path\n"
                               "  rules:\n"
                               "  - name: amx\n"
                               "    matchFeatures:\n"
                               "    - feature: cpu.cpuid\n"
                               "      matchExpressions: {AMXTILE: {op: Exists}}\n"
                               "- tag: baseline\n"
                               "  weight: 10\n"
                               "  rules:\n"
                               "  - name: avx2 and new kernel\n"
                               "    matchFeatures:\n"
                               "    - feature: cpu.cpuid\n"
                               "      matchExpressions: {AVX2: {op: Exists}}\n"
                               "    - feature: kernel.version\n"
                               "      matchExpressions: {major: {op: Ge, value: [\"5\"]}}\n";

static int read_text(struct str text, bool strict, const struct compat_spec **out, struct err *err)
{
    return compat_spec_read("s.yaml", text, (struct compat_spec_options){ .strict = strict }, out,
                            err);
}

/* Refused, with these words. */
static void expect_refused(const char *text, bool strict, const char *words)
{
    const struct compat_spec *spec = NULL;
    struct err err = { 0 };
    int rc = read_text(str_of(text), strict, &spec, &err);
    if (rc == 0)
        print_message("# not refused: %s\n", text);
    EXPECT_EQ(rc, -1);
    EXPECT_EQ(err.kind, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), words);
}

/* Taken with a warning, and refused by the strict. */
static void expect_warning(const char *text, const char *words)
{
    WORLD w;
    world_init(&w);
    struct err err = { 0 };
    const struct compat_spec *spec = NULL;
    EXPECT_OK(read_text(str_of(text), false, &spec, &err), err);
    EXPECT_EQ(spec->warning_count, 1);
    EXPECT_HAS(spec->warnings[0], words);
    compat_spec_unref(spec);
    expect_refused(text, true, words);
}

#define SPEC(rules_) "version: v1alpha1\ncompatibilities: [{rules: [" rules_ "]}]\n"
#define EXPRESSION(rest_)                                                                          \
    SPEC("{name: r, matchFeatures: [{feature: f, matchExpressions: {e: {" rest_ "}}}]}")

TEST(spec_has_sets_with_their_rules)
{
    WORLD w;
    world_init(&w);
    const struct compat_spec *spec = world_spec(&w, two_sets);

    EXPECT_EQ(spec->set_count, 2);
    EXPECT_EQ(spec->warning_count, 0);
    EXPECT_STR(spec->sets[0].tag, "fast");
    EXPECT_STR(spec->sets[0].description, "AMX build path");
    EXPECT_EQ(spec->sets[0].weight, 80);
    EXPECT_STR(spec->sets[1].description, "");
    EXPECT_STR(rules_name(spec->sets[1].rules, 0), "avx2 and new kernel");
    EXPECT_STR(spec->sets[0].rules_json,
               "[{\"matchFeatures\":[{\"feature\":\"cpu.cpuid\",\"matchExpressions\":{\"AMXTILE\":"
               "{\"op\":\"Exists\"}}}],\"name\":\"amx\"}]");
}

TEST(spec_may_be_json_and_may_ask_for_nothing)
{
    WORLD w;
    world_init(&w);
    EXPECT_EQ(world_spec(&w, "{\"version\":\"v1alpha1\",\"compatibilities\":[]}")->set_count, 0);
    EXPECT_EQ(world_spec(&w, "{\"version\":\"v1alpha1\",\"compatibilities\":[{\"rules\":[]}]}")
                  ->set_count,
              1);
}

TEST(spec_of_another_version_is_not_supported)
{
    const struct compat_spec *spec = NULL;
    struct err err = { 0 };

    EXPECT_EQ(read_text(STR("version: v2\ncompatibilities: {new: shape}\n"), false, &spec, &err),
              COMPAT_SPEC_UNSUPPORTED);
    EXPECT_Z(err.text, "s.yaml:1:10: version: \"v2\" is not supported, expected v1alpha1");
}

TEST(spec_that_does_not_fit_is_refused_with_place_and_field)
{
    expect_refused("", false, "s.yaml:1:1: is empty");
    expect_refused("a: [", false, "s.yaml:");
    expect_refused("[]", false, "s.yaml:1:1: expected an object");
    expect_refused("compatibilities: []", false, "version: required, missing");
    expect_refused("version: v1alpha1\n", false, "compatibilities: required, missing");
    expect_refused("version: 1\ncompatibilities: []", false,
                   "s.yaml:1:10: version: expected a string");
    expect_refused("version: v1alpha1\ncompatibilities: [{}]\n", false,
                   "s.yaml:2:19: compatibilities[0].rules: required, missing");
    expect_refused("version: v1alpha1\ncompatibilities: [{rules: [], weight: heavy}]\n", false,
                   "compatibilities[0].weight: expected an integer");
    expect_refused(SPEC("{matchFeatures: []}"), false, "rules[0].name: required, missing");
    expect_refused(SPEC("{name: r, matchFeatures: [{matchName: {}}]}"), false,
                   "matchFeatures[0].feature: required, missing");
    expect_refused(EXPRESSION("op: Gt, value: [5]"), false,
                   "matchExpressions[\"e\"].value[0]: expected a string");
    expect_refused(EXPRESSION("op: Gt, value: '5'"), false, "value: expected");
    expect_refused(EXPRESSION("op: Like"), false, "op: expected one of");
    expect_refused(EXPRESSION("op: In, value: [1]") "---\n{}\n", false, "a second document");
    expect_refused(SPEC("5"), false, "rules[0]: expected an object");
}

TEST(spec_counts_further_problems)
{
    expect_refused(SPEC("5, 6, 7"), false, "(and 2 more)");
}

/* What NFD passes over in silence. */
TEST(spec_warns_of_what_its_author_hardly_meant)
{
    expect_warning("version: v1alpha1\ncompatibilities: []\nextra: 1\n",
                   "s.yaml:3:1: extra: unknown field");
    expect_warning("version: v1alpha1\ncompatibilities: [{rules: [{name: r}], wieght: 5}]\n",
                   "wieght: unknown field, did you mean \"weight\"?");
    expect_warning("version: v1alpha1\ncompatibilities: [{rules: [{name: r}], weight: 101}]\n",
                   "weight:");
    expect_warning("version: v1alpha1\ncompatibilities: [{rules: []}]\n", "rules:");
    expect_warning(SPEC("{name: r, matchFeature: []}"), "did you mean \"matchFeatures\"?");
    expect_warning(EXPRESSION(""), "op: required, missing");
    expect_warning(EXPRESSION("op: In"), "take at least one value");
    expect_warning(EXPRESSION("op: Gt, value: ['5.1']"), "comparisons take integers");
    expect_warning(EXPRESSION("op: InRegexp, value: ['(']"), "RE2");
}

TEST(spec_has_limits)
{
    struct err err = { 0 };
    const struct compat_spec *spec = NULL;
    AUTO_BUF big = { 0 }, deep = { 0 }, sets = { 0 }, patterns = { 0 };
    buf_addz(&big, two_sets);
    while (big.len <= COMPAT_SPEC_BYTES_MAX)
        buf_addz(&big, "# more and more of the same\n");
    EXPECT_ERR(read_text(buf_str(&big), false, &spec, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "at most 1048576 are read");

    buf_addz(&deep, "version: v1alpha1\ncompatibilities: []\nextra: ");
    for (int i = 0; i < COMPAT_SPEC_DEPTH_MAX; i++)
        buf_addc(&deep, '[');
    for (int i = 0; i < COMPAT_SPEC_DEPTH_MAX; i++)
        buf_addc(&deep, ']');
    expect_refused(deep.p, false, "nested deeper than 32 levels");

    buf_addz(&sets, "version: v1alpha1\ncompatibilities: [");
    for (int i = 0; i <= COMPAT_SETS_MAX; i++)
        buf_addz(&sets, "{rules: []}, ");
    buf_addz(&sets, "]\n");
    expect_refused(sets.p, false, "compatibilities: ");

    buf_addz(&patterns, "version: v1alpha1\ncompatibilities: [");
    for (int i = 0; i < 3; i++) { /* each set alone would do */
        buf_addz(&patterns, "{rules: [{name: r, matchFeatures: [{feature: f, matchName: {op: "
                            "InRegexp, value: [");
        for (int k = 0; k < RULES_PATTERNS_MAX / 2; k++)
            buf_addz(&patterns, "'a{1000}', ");
        buf_addz(&patterns, "]}}]}]}, ");
    }
    buf_addz(&patterns, "]\n");
    expect_refused(patterns.p, false, "more than 256 regular expressions");
}

TEST(spec_has_no_aliases)
{
    expect_refused("version: v1alpha1\ncompatibilities:\n- &a {rules: []}\n- *a\n", false,
                   "s.yaml:4:3: aliases are not allowed");
    expect_refused("a: &a [x, x, x]\nb: &b [*a, *a, *a]\nversion: v1alpha1\n", false,
                   "s.yaml:2:8: aliases are not allowed");
}

/* `{}` asks for an instance, leaving it out only for the feature. */
TEST(spec_tells_empty_expressions_from_none)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *no_devices = world_set(&w, "instances: {f: {elements: []}}");

    EXPECT_EQ(world_match(world_term(&w, ""), no_devices), MATCH_YES);
    EXPECT_EQ(world_match(world_term(&w, "matchExpressions: {}"), no_devices), MATCH_NO);
    EXPECT_EQ(world_match(world_term(&w, "matchExpressions: null"), no_devices), MATCH_YES);
    EXPECT_EQ(world_match(world_rules(&w, "[{name: r, matchAny: [{matchFeatures: [{feature: f, "
                                          "matchExpressions: {}}]}]}]"),
                          no_devices),
              MATCH_NO);
    EXPECT_STR(world_why(&w, world_term(&w, "matchExpressions: {}"), no_devices),
               "rule \"r\": f: there are no instances");
}

/* --- whole specs --- */

#define AMX "flags: {cpu.cpuid: {elements: {AMXTILE: {}}}}"
#define AVX2(major_)                                                                               \
    "flags: {cpu.cpuid: {elements: {AVX2: {}}}}, attributes: {kernel.version: {elements: {major: " \
    "'" major_ "'}}}"
#define EVERYTHING                                                                                 \
    "flags: {cpu.cpuid: {elements: {AMXTILE: {}, AVX2: {}}}}, attributes: {kernel.version: "       \
    "{elements: {major: '6'}}}"

TEST(sets_are_all_needed_or_one_of_them)
{
    static const struct {
        const char *features;
        enum match all, any;
        uint32_t all_ix, any_ix;
        int64_t weight;
    } cases[] = {
        { EVERYTHING, MATCH_YES, MATCH_YES, 0, 0, 80 }, { AMX, MATCH_NO, MATCH_YES, 1, 0, 80 },
        { AVX2("6"), MATCH_NO, MATCH_YES, 0, 1, 10 },   { AVX2("4"), MATCH_NO, MATCH_NO, 0, 0, 0 },
        { AVX2("x"), MATCH_NO, MATCH_ERROR, 0, 1, 0 },  { "", MATCH_NO, MATCH_NO, 0, 0, 0 },
    };
    WORLD w;
    world_init(&w);
    const struct compat_spec *spec = world_spec(&w, two_sets);
    struct compat_options all = { .sets = SETS_ALL }, any = { .sets = SETS_ANY };

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        const struct feature_set *set = world_set(&w, cases[i].features);
        struct compat_outcome of_all = compat_spec_match(spec, set, &all);
        struct compat_outcome of_any = compat_spec_match(spec, set, &any);
        EXPECT_EQ(of_all.match, cases[i].all);
        EXPECT_EQ(of_any.match, cases[i].any);
        EXPECT_EQ(of_all.set_ix, cases[i].all_ix);
        EXPECT_EQ(of_any.set_ix, cases[i].any_ix);
        EXPECT_EQ(of_any.weight_best, cases[i].weight);
    }
}

TEST(sets_may_be_chosen_by_tag)
{
    WORLD w;
    world_init(&w);
    const struct compat_spec *spec = world_spec(&w, two_sets);
    const struct feature_set *set = world_set(&w, AMX);
    struct str fast = STR("fast"), none = STR("none");
    struct compat_options options = { .tags = { &fast, 1 } };

    EXPECT_EQ(compat_spec_match(spec, set, &options).match, MATCH_YES);
    options.tags.items = &none;
    EXPECT_EQ(compat_spec_match(spec, set, &options).match, MATCH_YES);
    EXPECT_EQ(compat_spec_match(spec, set, &options).set_ix, UINT32_MAX);
}

TEST(spec_mentions_what_all_its_rules_look_at)
{
    WORLD w;
    world_init(&w);
    FEATURE_MASK mask = { 0 };
    compat_spec_mention(world_spec(&w, two_sets), &mask);
    feature_mask_settle(&mask);

    EXPECT_EQ(mask.mentions.count, 5);
    EXPECT_STR(mask.mentions.items[1].element, "AMXTILE");
    EXPECT_STR(mask.mentions.items[2].element, "AVX2");
    EXPECT_STR(mask.mentions.items[4].element, "major");
}

/* --- pools --- */

static const struct compat_spec *pooled(struct compat_specs *pool, const char *identity,
                                        const char *text)
{
    struct err err = { 0 };
    const struct compat_spec *spec = NULL;
    EXPECT_OK(compat_spec_read(
                  "s.yaml", str_of(text),
                  (struct compat_spec_options){ .maybe_pool = pool, .identity = str_of(identity) },
                  &spec, &err),
              err);
    return spec;
}

static const char same_rules_other_tag[] =
    "{version: v1alpha1, compatibilities: [{tag: quick, rules: [{matchFeatures: [{matchExpressions: "
    "{AMXTILE: {op: Exists}}, feature: cpu.cpuid}], name: amx}]}]}";

TEST(a_text_of_a_pool_is_read_once_while_somebody_has_it)
{
    struct compat_specs *pool = compat_specs_new();
    AUTO_COMPAT_SPEC first = pooled(pool, "sha256:1", two_sets);
    AUTO_COMPAT_SPEC again = pooled(pool, "sha256:1", two_sets);
    EXPECT_TRUE(first == again);
    EXPECT_EQ(compat_specs_stats(pool).specs, 1);
    compat_spec_unref(take(&first));
    EXPECT_EQ(compat_specs_stats(pool).specs, 1);
    compat_spec_unref(take(&again));
    EXPECT_EQ(compat_specs_stats(pool).specs, 0);
    EXPECT_EQ(compat_specs_stats(pool).rules, 0);
    compat_specs_unref(pool);
}

TEST(equal_rules_of_different_specs_are_compiled_once)
{
    struct compat_specs *pool = compat_specs_new();
    AUTO_COMPAT_SPEC first = pooled(pool, "sha256:1", two_sets);
    AUTO_COMPAT_SPEC other = pooled(pool, "sha256:2", same_rules_other_tag);
    AUTO_COMPAT_SPEC nameless = pooled(pool, "", two_sets);
    compat_specs_unref(pool); /* the specs keep it */
    EXPECT_TRUE(first != nameless);
    EXPECT_TRUE(first->sets[0].rules == other->sets[0].rules);
    EXPECT_TRUE(first->sets[1].rules == nameless->sets[1].rules);
    EXPECT_TRUE(first->sets[0].rules_json.p == other->sets[0].rules_json.p);
    EXPECT_STR(other->sets[0].tag, "quick");
    EXPECT_STR(first->sets[0].tag, "fast");
    compat_spec_unref(take(&first));
    EXPECT_STR(rules_name(other->sets[0].rules, 0), "amx");
}

TEST(a_text_that_is_refused_leaves_nothing_in_the_pool)
{
    struct compat_specs *pool = compat_specs_new();
    const struct compat_spec *spec = NULL;
    struct err err = { 0 };
    /* The first set is fine, the second has more patterns than the spec may have. */
    AUTO_BUF text = { 0 };
    buf_addz(&text, two_sets);
    buf_addz(&text, "- rules: [{name: r, matchFeatures: [{feature: f, matchExpressions: {e: {op: "
                    "InRegexp, value: [");
    for (int i = 0; i <= RULES_PATTERNS_MAX; i++)
        buf_addf(&text, "%s'x%d'", i ? "," : "", i);
    buf_addz(&text, "]}}}]}]\n");
    EXPECT_EQ(compat_spec_read(
                  "s.yaml", buf_str(&text),
                  (struct compat_spec_options){ .maybe_pool = pool, .identity = STR("sha256:1") },
                  &spec, &err),
              -1);
    EXPECT_EQ(compat_specs_stats(pool).specs, 0);
    EXPECT_EQ(compat_specs_stats(pool).rules, 0);
    compat_specs_unref(pool);
}
