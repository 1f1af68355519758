/* What rules make of the features of a node. */
#include "compat/compat_testing.h"

/* The feature f of a node has a flag `flag` and an attribute `value`. */
static const struct feature_set *with_value(struct world *w, const char *value)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "flags: {f: {elements: {flag: {}}}}, attributes: {f: {elements: {value: '%s'}}}",
             value);
    return world_set(w, text.p);
}

static void expect_match(const char *element, const char *expression, const char *value,
                         bool strict, enum match want)
{
    WORLD w;
    world_init(&w);
    AUTO_BUF term = { 0 };
    buf_addf(&term, "matchExpressions: {%s: {%s}}", element, expression);
    struct rules_outcome got = rules_match(world_term(&w, term.p), with_value(&w, value),
                                           (struct rules_options){ .strict_versions = strict });
    if (got.match != want)
        print_message("# %s {%s} on \"%s\": %s, expected %s\n", element, expression, value,
                      match_word(got.match), match_word(want));
    EXPECT_EQ(got.match, want);
}

/* --- operators --- */

#define NO MATCH_NO
#define ERR MATCH_ERROR
#define YES MATCH_YES

TEST(operators_answer_for_absent_elements_flags_and_values)
{
    static const struct {
        const char *expression;
        enum match absent, flag, value_1, value_3, value_true, value_false, value_text;
    } cases[] = {
        { "", YES, YES, YES, YES, YES, YES, YES },
        { "op: Exists", NO, YES, YES, YES, YES, YES, YES },
        { "op: DoesNotExist", YES, NO, NO, NO, NO, NO, NO },
        { "op: In, value: ['1', 'true']", NO, NO, YES, NO, YES, NO, NO },
        { "op: NotIn, value: ['1', 'true']", NO, NO, NO, YES, NO, YES, YES },
        { "op: InRegexp, value: ['^[0-9]$', 'ru']", NO, NO, YES, YES, YES, NO, NO },
        { "op: Gt, value: ['1']", NO, NO, NO, YES, ERR, ERR, ERR },
        { "op: Ge, value: ['1']", NO, NO, YES, YES, ERR, ERR, ERR },
        { "op: Lt, value: ['3']", NO, NO, YES, NO, ERR, ERR, ERR },
        { "op: Le, value: ['3']", NO, NO, YES, YES, ERR, ERR, ERR },
        { "op: GtLt, value: ['1', '4']", NO, NO, NO, YES, ERR, ERR, ERR },
        { "op: GeLe, value: ['1', '3']", NO, NO, YES, YES, ERR, ERR, ERR },
        { "op: IsTrue", NO, NO, NO, NO, YES, NO, NO },
        { "op: IsFalse", NO, NO, NO, NO, NO, YES, NO },
    };

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        expect_match("other", cases[i].expression, "x", false, cases[i].absent);
        expect_match("flag", cases[i].expression, "x", false, cases[i].flag);
        expect_match("value", cases[i].expression, "1", false, cases[i].value_1);
        expect_match("value", cases[i].expression, "3", false, cases[i].value_3);
        expect_match("value", cases[i].expression, "true", false, cases[i].value_true);
        expect_match("value", cases[i].expression, "false", false, cases[i].value_false);
        expect_match("value", cases[i].expression, "text", false, cases[i].value_text);
    }
}

TEST(operators_compare_texts_byte_for_byte)
{
    expect_match("value", "op: In, value: ['avx2']", "AVX2", false, NO);
    expect_match("value", "op: In, value: ['']", "", false, YES);
    expect_match("value", "op: In, value: ['']", " ", false, NO);
    expect_match("value", "op: IsTrue", "True", false, NO);
    expect_match("VALUE", "op: Exists", "x", false, NO);
}

/* Operands are looked at when there is a value, but by presence operators always. */
TEST(operators_find_wrong_operands_when_they_get_there)
{
    static const struct {
        const char *expression;
        enum match absent, flag, value;
    } cases[] = {
        { "value: ['1']", ERR, ERR, ERR },
        { "op: Exists, value: ['1']", ERR, ERR, ERR },
        { "op: DoesNotExist, value: ['1']", ERR, ERR, ERR },
        { "op: In", NO, NO, ERR },
        { "op: NotIn, value: []", NO, NO, ERR },
        { "op: InRegexp", NO, NO, ERR },
        { "op: InRegexp, value: ['1', '(']", NO, NO, ERR }, /* all compile before one matches */
        { "op: Gt", NO, NO, ERR },
        { "op: Ge, value: ['1', '2']", NO, NO, ERR },
        { "op: Lt, value: ['x']", NO, NO, ERR },
        { "op: Le, value: ['1'], type: float", NO, NO, ERR },
        { "op: GtLt, value: ['1']", NO, NO, ERR },
        { "op: GeLe, value: ['1', '2', '3']", NO, NO, ERR },
        { "op: GtLt, value: ['1', '1']", NO, NO, ERR },
        { "op: GeLe, value: ['1', '1']", NO, NO, ERR },
        { "op: GeLe, value: ['2', '1']", NO, NO, ERR },
        { "op: GeLe, value: ['1', '1'], type: version", NO, NO, YES },
        { "op: IsTrue, value: ['1']", NO, NO, ERR },
        { "op: IsFalse, value: ['1']", NO, NO, ERR },
        { "op: In, value: ['1'], type: float", NO, NO, YES }, /* a type is for comparisons */
    };

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        expect_match("other", cases[i].expression, "1", false, cases[i].absent);
        expect_match("flag", cases[i].expression, "1", false, cases[i].flag);
        expect_match("value", cases[i].expression, "1", false, cases[i].value);
    }
}

TEST(integers_are_decimal_and_have_64_bits)
{
    static const struct {
        const char *value, *least;
        enum match want;
    } cases[] = {
        { "7", "5", YES },
        { "+7", "5", YES },
        { "-7", "5", NO },
        { "-7", "-8", YES },
        { "007", "5", YES },
        { "0", "-0", YES },
        { "9223372036854775807", "9223372036854775806", YES },
        { "-9223372036854775808", "-9223372036854775808", YES },
        { "9223372036854775808", "5", ERR },
        { "7", "99999999999999999999", ERR },
        { "0x7", "5", ERR },
        { "7 ", "5", ERR },
        { " 7", "5", ERR },
        { "7.0", "5", ERR },
        { "7_0", "5", ERR },
        { "", "5", ERR },
        { "-", "5", ERR },
        { "7", "", ERR },
        { "7", "five", ERR },
    };

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF expression = { 0 };
        buf_addf(&expression, "op: Ge, value: ['%s']", cases[i].least);
        expect_match("value", expression.p, cases[i].value, false, cases[i].want);
    }
}

/* --- versions --- */

TEST(versions_compare_by_three_numbers)
{
    static const struct {
        const char *value, *least;
        enum match strict, lenient;
    } cases[] = {
        { "6.1.115", "6.1", YES, YES },
        { "6.1", "6.1.0", YES, YES },
        { "6", "6.0.0", YES, YES },
        { "v6.1.115", "6.1.115", YES, YES },
        { "6.10.0", "6.9.0", YES, YES },
        { "6.1.114", "6.1.115", NO, NO },
        { "5.15.0", "6.1", NO, NO },
        { "6.1.0-1-amd64", "6.1", YES, YES },
        { "6.1.0-rc.1+build.7", "6.1.0", YES, YES }, /* what follows the numbers is ignored */
        { "6.1.0-rc1", "6.1.0-rc2", YES, YES },
        { "6.1.0+007", "6.1.0", YES, YES },
        { "6.1.0-007", "6.1.0", ERR, YES }, /* a number with a leading zero */
        { "6.1.0-0", "6.1.0", YES, YES },
        { "6.1.0-07a", "6.1.0", YES, YES },
        { "6.1.0-a..b", "6.1.0", ERR, YES },
        { "6.1.0-", "6.1.0", ERR, YES },
        { "6.1.0+", "6.1.0", ERR, YES },
        { "6.1.0+a+b", "6.1.0", ERR, YES },
        { "6.1.115-126.197.amzn2023.x86_64", "6.1.100", ERR, YES }, /* the underscore */
        { "6.1.115-126.197.amzn2023.aarch64", "6.1.100", YES, YES },
        { "5.15.167.4-microsoft-standard-WSL2", "5.15.0", ERR, YES }, /* four numbers */
        { "5.14.0-503.el9_5.x86_64", "6.0", ERR, NO },
        { "6.1.", "6.1", ERR, YES },
        { "6..1", "6", ERR, YES },
        { "6.1 ", "6.1", ERR, YES },
        { "vv6", "6", ERR, ERR },
        { "V6", "6", ERR, ERR },
        { "", "6", ERR, ERR },
        { "v", "6", ERR, ERR },
        { "linux", "6", ERR, ERR },
        { "-6", "6", ERR, ERR },
        { "18446744073709551615", "18446744073709551615", YES, YES },
        { "18446744073709551616", "6", ERR, ERR },
        { "6.1", "6.1_1", ERR, YES },
        { "6.1", "six", ERR, ERR },
    };

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF expression = { 0 };
        buf_addf(&expression, "op: Ge, value: ['%s'], type: version", cases[i].least);
        expect_match("value", expression.p, cases[i].value, true, cases[i].strict);
        expect_match("value", expression.p, cases[i].value, false, cases[i].lenient);
    }
}

TEST(versions_have_every_comparison)
{
    expect_match("value", "op: Gt, value: ['1.2'], type: version", "1.2.0", false, NO);
    expect_match("value", "op: Gt, value: ['1.2'], type: version", "1.2.1", false, YES);
    expect_match("value", "op: Lt, value: ['1.2'], type: version", "1.1.9", false, YES);
    expect_match("value", "op: Le, value: ['1.2'], type: version", "1.2.1", false, NO);
    expect_match("value", "op: GtLt, value: ['1.2', '1.4'], type: version", "1.3", false, YES);
    expect_match("value", "op: GtLt, value: ['1.2', '1.4'], type: version", "1.4", false, NO);
    expect_match("value", "op: GeLe, value: ['1.2', '1.4'], type: version", "1.4", false, YES);
    expect_match("value", "op: GeLe, value: ['1.4', '1.2'], type: version", "1.3", false, NO);
}

TEST(versions_that_nfd_refuses_are_noted)
{
    WORLD w;
    world_init(&w);
    const struct rules *rules =
        world_term(&w, "matchExpressions: {value: {op: Ge, value: ['6'], type: version}}");
    struct rules_options lenient = { 0 };

    EXPECT_FALSE(rules_match(rules, with_value(&w, "6.1.0"), lenient).nfd_differs);
    EXPECT_TRUE(rules_match(rules, with_value(&w, "6.1.0_x"), lenient).nfd_differs);
}

/* --- regular expressions --- */

TEST(patterns_search_anywhere_and_are_of_the_re2_kind)
{
    expect_match("value", "op: InRegexp, value: ['ell']", "hello", false, YES);
    expect_match("value", "op: InRegexp, value: ['^ell']", "hello", false, NO);
    expect_match("value", "op: InRegexp, value: ['(?i)HELLO']", "hello", false, YES);
    expect_match("value", "op: InRegexp, value: ['^\\d+$']", "42", false, YES);
    expect_match("value", "op: InRegexp, value: ['']", "", false, YES);
    expect_match("value", "op: InRegexp, value: ['(a)\\1']", "aa", false, ERR);
    expect_match("value", "op: InRegexp, value: ['(?=h)']", "hello", false, ERR);
}

TEST(patterns_that_never_end_are_an_error)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set =
        with_value(&w, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!");
    const struct rules *rules =
        world_term(&w, "matchExpressions: {value: {op: InRegexp, value: ['^(a+)+$']}}");

    EXPECT_EQ(world_match(rules, set), MATCH_ERROR);
    EXPECT_STR(world_why(&w, rules, set), "rule \"r\": f value: the rules take too much work");
}

/* Slow on each of thousands of names, though never beyond what one search may take. */
TEST(matching_does_a_bounded_amount_of_work)
{
    WORLD w;
    world_init(&w);
    AUTO_BUF text = { 0 };
    buf_addz(&text, "flags: {f: {elements: {");
    for (int i = 0; i < 4000; i++)
        buf_addf(&text, "aaaaaaaaaaaaaaa%d!: {}, ", i);
    buf_addz(&text, "}}}");
    const struct feature_set *set = world_set(&w, text.p);
    const struct rules *rules =
        world_term(&w, "matchName: {op: InRegexp, value: ['^(a+)+[0-9]*$', '^(a|a)*b', '(a*)*c']}");

    EXPECT_EQ(world_match(rules, set), MATCH_ERROR);
    /* A sensible pattern takes all names in its stride. */
    EXPECT_EQ(world_match(world_term(&w, "matchName: {op: InRegexp, value: ['3999!$']}"), set),
              MATCH_YES);
    EXPECT_EQ(world_match(world_term(&w, "matchName: {op: InRegexp, value: ['b+.*c?.*$']}"), set),
              MATCH_NO);
}

/* --- terms --- */

TEST(terms_need_the_feature_whatever_they_ask)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(&w, "flags: {g: {elements: {x: {}}}}");

    EXPECT_EQ(world_match(world_term(&w, ""), set), MATCH_NO);
    EXPECT_EQ(world_match(world_term(&w, "matchExpressions: {}"), set), MATCH_NO);
    EXPECT_EQ(world_match(world_term(&w, "matchExpressions: {x: {op: DoesNotExist}}"), set),
              MATCH_NO);
    EXPECT_EQ(world_match(world_term(&w, "matchExpressions: {x: {op: Exists, value: [a]}}"), set),
              MATCH_NO);
    EXPECT_STR(world_why(&w, world_term(&w, ""), set),
               "rule \"r\": f: the node does not have this feature");
}

/* Which of the three kinds a feature has, against what a term asks. */
TEST(terms_look_at_flags_attributes_and_instances)
{
    static const struct {
        const char *features;
        enum match bare, empty, exists_x, in_1, not_there;
    } cases[] = {
        { "flags: {f: {elements: {}}}", YES, YES, NO, NO, YES },
        { "flags: {f: {elements: {x: {}}}}", YES, YES, YES, NO, NO },
        { "attributes: {f: {elements: {}}}", YES, YES, NO, NO, YES },
        { "attributes: {f: {elements: {x: '1'}}}", YES, YES, YES, YES, NO },
        { "attributes: {f: {elements: {x: '2'}}}", YES, YES, YES, NO, NO },
        { "instances: {f: {elements: []}}", YES, NO, NO, NO, NO },
        { "instances: {f: {elements: [{attributes: {}}]}}", YES, YES, NO, NO, YES },
        { "instances: {f: {elements: [{attributes: {x: '1'}}]}}", YES, YES, YES, YES, NO },
        { "instances: {f: {elements: [{attributes: {x: '1'}}, {attributes: {u: '1'}}]}}", YES, YES,
          YES, YES, YES },
        { "flags: {f: {elements: {x: {}}}}, attributes: {f: {elements: {}}}", YES, YES, YES, NO,
          NO },
        { "flags: {f: {elements: {}}}, attributes: {f: {elements: {x: '1'}}}", YES, YES, YES, YES,
          NO },
        { "flags: {f: {elements: {x: {}}}}, attributes: {f: {elements: {x: '1'}}}", YES, YES, YES,
          YES, NO },
        { "flags: {f: {elements: {x: {}}}}, instances: {f: {elements: [{attributes: {}}]}}", YES,
          YES, YES, NO, YES },
    };
    WORLD w;
    world_init(&w);
    const struct rules *bare = world_term(&w, ""), *empty = world_term(&w, "matchExpressions: {}"),
                       *exists = world_term(&w, "matchExpressions: {x: {op: Exists}}"),
                       *in = world_term(&w, "matchExpressions: {x: {op: In, value: ['1']}}"),
                       *absent = world_term(&w, "matchExpressions: {x: {op: DoesNotExist}}");

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        const struct feature_set *set = world_set(&w, cases[i].features);
        EXPECT_EQ(world_match(bare, set), cases[i].bare);
        EXPECT_EQ(world_match(empty, set), cases[i].empty);
        EXPECT_EQ(world_match(exists, set), cases[i].exists_x);
        EXPECT_EQ(world_match(in, set), cases[i].in_1);
        EXPECT_EQ(world_match(absent, set), cases[i].not_there);
    }
}

TEST(terms_know_features_by_lower_case_names)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(&w, "flags: {cpu.cpuid: {elements: {AVX2: {}}}}");

    EXPECT_EQ(world_match(world_rules(&w, "[{name: r, matchFeatures: [{feature: CPU.Cpuid, "
                                          "matchExpressions: {AVX2: {op: Exists}}}]}]"),
                          set),
              MATCH_YES);
    EXPECT_EQ(world_match(world_rules(&w, "[{name: r, matchFeatures: [{feature: cpu.cpuid, "
                                          "matchExpressions: {avx2: {op: Exists}}}]}]"),
                          set),
              MATCH_NO);
}

#define DEVICE(class_, vendor_) "{attributes: {class: '" class_ "', vendor: '" vendor_ "'}}"

TEST(one_term_is_about_one_device)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(
        &w, "instances: {f: {elements: [" DEVICE("0302", "10de") ", " DEVICE("0200", "1d0f") "]}}");
    const char *const one = "matchExpressions: {class: {op: In, value: ['0302']}, vendor: "
                            "{op: In, value: ['1d0f']}}";
    const char *const two =
        "[{name: r, matchFeatures: [{feature: f, matchExpressions: {class: {op: In, value: "
        "['0302']}}}, {feature: f, matchExpressions: {vendor: {op: In, value: ['1d0f']}}}]}]";

    EXPECT_EQ(world_match(world_term(&w, one), set), MATCH_NO);
    EXPECT_EQ(world_match(world_rules(&w, two), set), MATCH_YES);
    EXPECT_STR(world_why(&w, world_term(&w, one), set),
               "rule \"r\": f: none of 2 different instances has class \"0302\" and vendor "
               "\"1d0f\"");
}

/* nfd-master looks at every instance, and so finds a value that cannot be compared behind one that
 * matches. */
TEST(an_error_in_any_instance_is_an_error)
{
    WORLD w;
    world_init(&w);
    const struct rules *rules =
        world_term(&w, "matchExpressions: {mtu: {op: Gt, value: ['1000']}}");

    EXPECT_EQ(world_match(rules, world_set(&w, "instances: {f: {elements: [{attributes: {mtu: "
                                               "'1500'}}, {attributes: {mtu: none}}]}}")),
              MATCH_ERROR);
    EXPECT_EQ(world_match(rules, world_set(&w, "instances: {f: {elements: [{attributes: {mtu: "
                                               "'1500'}}, {attributes: {speed: none}}]}}")),
              MATCH_YES);
    /* Also behind an attribute that matches. */
    EXPECT_EQ(world_match(rules, world_set(&w, "attributes: {f: {elements: {mtu: '1500'}}}, "
                                               "instances: {f: {elements: [{attributes: {mtu: "
                                               "none}}]}}")),
              MATCH_ERROR);
}

TEST(names_match_if_any_of_them_does)
{
    static const struct {
        const char *expression;
        enum match want;
    } cases[] = {
        { "op: In, value: [veth]", YES },
        { "op: In, value: [kvm, nf_nat]", NO },
        { "op: NotIn, value: [veth]", YES }, /* another name is there */
        { "op: NotIn, value: [veth, '5', x]", NO },
        { "op: InRegexp, value: ['^v']", YES },
        { "op: Exists", YES },
        { "op: DoesNotExist", NO },
        { "", YES },
        { "op: IsTrue", NO },
        { "op: Gt, value: ['1']", ERR }, /* veth is no number */
        { "op: Exists, value: [a]", ERR },
    };
    WORLD w;
    world_init(&w);
    const struct feature_set *set =
        world_set(&w, "flags: {f: {elements: {veth: {}}}}, attributes: {f: {elements: {'5': v}}}, "
                      "instances: {f: {elements: [{attributes: {x: v}}]}}");
    const struct feature_set *none = world_set(&w, "flags: {f: {elements: {}}}");
    const struct feature_set *numbers = world_set(&w, "attributes: {f: {elements: {'5': abc}}}");

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF term = { 0 };
        buf_addf(&term, "matchName: {%s}", cases[i].expression);
        EXPECT_EQ(world_match(world_term(&w, term.p), set), cases[i].want);
        EXPECT_EQ(world_match(world_term(&w, term.p), none), MATCH_NO);
    }
    EXPECT_EQ(world_match(world_term(&w, "matchName: {op: Gt, value: ['1']}"), numbers), MATCH_YES);
}

TEST(names_and_expressions_must_both_hold)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(&w, "flags: {f: {elements: {a: {}, b: {}}}}");
    const char *const format = "matchExpressions: {%s: {op: Exists}}, matchName: {op: In, value: "
                               "[%s]}";
    static const char *const names[] = { "a", "z" };

    for (int i = 0; i < 4; i++) {
        AUTO_BUF term = { 0 };
        buf_addf(&term, format, names[i / 2], names[i % 2]);
        EXPECT_EQ(world_match(world_term(&w, term.p), set), i == 0 ? MATCH_YES : MATCH_NO);
    }
}

/* --- rules --- */

#define HAS(element_) "{feature: f, matchExpressions: {" element_ ": {op: Exists}}}"
#define WRONG "{feature: f, matchExpressions: {a: {op: Exists, value: [x]}}}"

TEST(rules_combine_terms_and_alternatives)
{
    static const struct {
        const char *rule;
        enum match want;
    } cases[] = {
        { "", YES },
        { "matchFeatures: []", YES },
        { "matchAny: []", YES },
        { "matchAny: [{matchFeatures: []}]", YES },
        { "matchAny: [{}]", YES },
        { "matchFeatures: [" HAS("a") ", " HAS("b") "]", YES },
        { "matchFeatures: [" HAS("a") ", " HAS("z") "]", NO },
        { "matchAny: [{matchFeatures: [" HAS("z") "]}, {matchFeatures: [" HAS("a") "]}]", YES },
        { "matchAny: [{matchFeatures: [" HAS("z") "]}, {matchFeatures: [" HAS("u") "]}]", NO },
        { "matchAny: [{matchFeatures: [" HAS("a") ", " HAS("z") "]}]", NO },
        { "matchAny: [{matchFeatures: [" HAS("a") "]}], matchFeatures: [" HAS("b") "]", YES },
        { "matchAny: [{matchFeatures: [" HAS("a") "]}], matchFeatures: [" HAS("z") "]", NO },
        { "matchAny: [{matchFeatures: [" HAS("z") "]}], matchFeatures: [" HAS("a") "]", NO },
        /* A "no" that comes first hides an error, and so does an alternative that matches. */
        { "matchFeatures: [" HAS("z") ", " WRONG "]", NO },
        { "matchFeatures: [" WRONG ", " HAS("z") "]", ERR },
        { "matchFeatures: [" HAS("a") ", " WRONG "]", ERR },
        { "matchAny: [{matchFeatures: [" HAS("a") "]}, {matchFeatures: [" WRONG "]}]", YES },
        { "matchAny: [{matchFeatures: [" HAS("z") "]}, {matchFeatures: [" WRONG "]}]", ERR },
        { "matchAny: [{matchFeatures: [" HAS("z") "]}], matchFeatures: [" WRONG "]", NO },
        { "matchAny: [{matchFeatures: [" WRONG "]}], matchFeatures: [" HAS("z") "]", ERR },
    };
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(&w, "flags: {f: {elements: {a: {}, b: {}}}}");

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF text = { 0 };
        buf_addf(&text, "[{name: r%s%s}]", cases[i].rule[0] ? ", " : "", cases[i].rule);
        enum match got = world_match(world_rules(&w, text.p), set);
        if (got != cases[i].want)
            print_message("# %s: %s\n", cases[i].rule, match_word(got));
        EXPECT_EQ(got, cases[i].want);
    }
}

TEST(expressions_are_looked_at_in_sorted_order)
{
    expect_match("a: {op: Exists}, b", "op: Exists, value: [x]", "1", false, NO);
    expect_match("b: {op: Exists}, a", "op: Exists, value: [x]", "1", false, ERR);
}

/* a, b: a rule that matches, one that does not, one that is an error, in every pair. */
TEST(rules_of_a_group_are_alternatives_unless_all_are_wanted)
{
    static const char *const rules[] = { "matchFeatures: [" HAS("z") "]",
                                         "matchFeatures: [" WRONG "]",
                                         "matchFeatures: [" HAS("a") "]" };
    static const enum match verdicts[] = { NO, ERR, YES };
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(&w, "flags: {f: {elements: {a: {}}}}");

    for (size_t i = 0; i < 9; i++) {
        enum match a = verdicts[i / 3], b = verdicts[i % 3];
        AUTO_BUF text = { 0 };
        buf_addf(&text, "[{name: a, %s}, {name: b, %s}]", rules[i / 3], rules[i % 3]);
        const struct rules *pair = world_rules(&w, text.p);
        struct rules_outcome any =
            rules_match(pair, set, (struct rules_options){ .combine = RULES_ANY });
        struct rules_outcome all =
            rules_match(pair, set, (struct rules_options){ .combine = RULES_ALL });
        EXPECT_EQ(any.match, a > b ? a : b);
        EXPECT_EQ(all.match, a < b ? a : b);
        EXPECT_EQ(any.rule_ix, b > a);
        EXPECT_EQ(all.rule_ix, b < a);
    }
    EXPECT_EQ(world_match(world_rules(&w, "[]"), set), MATCH_YES);
}

#define MATCHED(rest_) "{name: last, matchFeatures: [{feature: rule.matched" rest_ "}]}"
#define ALL ((struct rules_options){ .combine = RULES_ALL })

TEST(vars_of_rules_that_matched_are_seen_by_later_ones)
{
    static const struct {
        const char *rules;
        enum match want;
    } cases[] = {
        { MATCHED(""), NO }, /* nothing before it */
        { "{name: a}, " MATCHED(""), YES },
        { "{name: a}, " MATCHED(", matchExpressions: {tier: {op: DoesNotExist}}"), YES },
        { "{name: a, vars: {tier: fast}}, " MATCHED(
              ", matchExpressions: {tier: {op: In, value: [fast]}}"),
          YES },
        { "{name: a, vars: {tier: fast}}, {name: b, vars: {tier: slow}}, " MATCHED(
              ", matchExpressions: {tier: {op: In, value: [fast]}}"),
          NO },
        { "{name: a, vars: {tier: fast}}, " MATCHED(", matchName: {op: In, value: [tier]}"), YES },
        { "{name: a, vars: {other: fast}}, " MATCHED(", matchName: {op: In, value: [tier]}"), NO },
    };
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(&w, "flags: {f: {elements: {a: {}}}}");

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF text = { 0 };
        buf_addf(&text, "[%s]", cases[i].rules);
        EXPECT_EQ(rules_match(world_rules(&w, text.p), set, ALL).match, cases[i].want);
    }
}

/* A rule that does not match still makes the feature exist; one that is an error does not. */
TEST(vars_exist_after_a_rule_without_error)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(&w, "flags: {f: {elements: {a: {}}}}");
    const char *const no = "[{name: a, vars: {v: x}, matchFeatures: [" HAS("z") "]}, " MATCHED(
        ", matchExpressions: {v: {op: DoesNotExist}}") "]";
    const char *const wrong = "[{name: a, vars: {v: x}, matchFeatures: [" WRONG
                              "]}, " MATCHED(", matchExpressions: {v: {op: DoesNotExist}}") "]";

    EXPECT_EQ(world_match(world_rules(&w, no), set), MATCH_YES);
    EXPECT_EQ(world_match(world_rules(&w, wrong), set), MATCH_ERROR);
    EXPECT_STR(world_why(&w, world_rules(&w, wrong), set),
               "rule \"a\": f a: the rule is wrong: Exists takes no value\n"
               "rule \"last\": rule.matched: the node does not have this feature");
}

TEST(vars_come_before_what_the_node_itself_says)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set =
        world_set(&w, "attributes: {rule.matched: {elements: {v: node, o: node}}}");
    const struct rules *rules = world_rules(
        &w, "[{name: a, vars: {v: rule}}, " MATCHED(", matchExpressions: {v: {op: In, value: "
                                                    "[rule]}, o: {op: In, value: [node]}}") "]");
    EXPECT_EQ(rules_match(rules, set, ALL).match, MATCH_YES);
}

TEST(templates_are_left_to_nfd)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(&w, "flags: {f: {elements: {a: {}}}}");
    const struct rules *yes =
        world_rules(&w, "[{name: a, varsTemplate: '{{ . }}', matchFeatures: [" HAS("a") "]}]");
    const struct rules *no =
        world_rules(&w, "[{name: a, varsTemplate: '{{ . }}', matchFeatures: [" HAS("z") "]}]");
    const struct rules *later = world_rules(
        &w, "[{name: a, varsTemplate: '{{ . }}', matchFeatures: [" HAS(
                "a") "]}, {name: b}, " MATCHED(", matchExpressions: {v: {op: Exists}}") "]");

    EXPECT_TRUE(rules_require_nfd(yes));
    EXPECT_EQ(world_match(yes, set), MATCH_UNKNOWN);
    EXPECT_EQ(world_match(no, set), MATCH_NO);
    EXPECT_EQ(rules_match(later, set, ALL).match, MATCH_UNKNOWN);
    EXPECT_STR(world_why(&w, yes, set),
               "rule \"a\": it has a varsTemplate, which only NFD can expand");
}

/* --- groups --- */

static const struct rules *group_rules(struct world *w, const char *expression)
{
    struct err err = { 0 };
    struct docs docs;
    const struct object *object = NULL;
    const struct rules *rules = NULL;
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "{apiVersion: nfd.k8s-sigs.io/v1alpha1, kind: NodeFeatureGroup, metadata: {name: g}, "
             "spec: {featureGroupRules: [{name: r, matchFeatures: [{feature: F, matchExpressions: "
             "{value: {%s}}}]}]}}",
             expression);
    EXPECT_OK(yaml_read(buf_str(&text), &docs, NULL, &err), err);
    EXPECT_OK(
        object_decode(w->objects, &node_feature_group_kind, docs.items[0].root, &object, &err),
        err);
    docs_done(&docs);
    const struct node_feature_group *group = node_feature_group_of(object);
    struct rules_source source = { group->spec.rules.items, group->spec.rules.count, false };
    EXPECT_OK(rules_compile(source, &rules, &err), err);
    object_unref(object); /* the rules have their own copy */
    return rules;
}

TEST(groups_are_matched_by_the_same_rules)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = with_value(&w, "5");
    AUTO_RULES ge = group_rules(&w, "op: Ge, value: ['5']");
    AUTO_RULES gt = group_rules(&w, "op: Gt, value: ['5']");

    EXPECT_EQ(world_match(ge, set), MATCH_YES);
    EXPECT_EQ(world_match(gt, set), MATCH_NO);
}

/* It would decode as "no operator", which matches everything. */
TEST(groups_with_an_operator_from_the_future_match_nothing)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = with_value(&w, "5");
    AUTO_RULES rules = group_rules(&w, "op: Resembles, value: ['5']");

    EXPECT_EQ(world_match(rules, set), MATCH_ERROR);
    EXPECT_STR(world_why(&w, rules, set), "rule \"r\": f value: the rule is wrong: the operator is "
                                          "missing, or not one that is known here");
}

/* --- reasons --- */

TEST(reasons_say_what_was_wanted_and_what_was_found)
{
    static const struct {
        const char *expression, *why;
    } cases[] = {
        { "other: {op: Exists}", "f other: expected to exist, is absent" },
        { "flag: {op: DoesNotExist}",
          "f flag: expected not to exist, is there, as a flag without a value" },
        { "flag: {op: In, value: [x]}",
          "f flag: expected \"x\", is there, as a flag without a value" },
        { "value: {op: In, value: ['5', '6']}",
          "f value: expected one of \"5\", \"6\", found \"4\"" },
        { "value: {op: NotIn, value: ['4']}",
          "f value: expected another value than \"4\", found \"4\"" },
        { "value: {op: InRegexp, value: ['^5']}",
          "f value: expected a match of \"^5\", found \"4\"" },
        { "value: {op: Ge, value: ['5']}", "f value: expected of at least 5, found \"4\"" },
        { "value: {op: Gt, value: ['5.1'], type: version}",
          "f value: expected a version above 5.1, found \"4\"" },
        { "value: {op: GtLt, value: ['5', '9']}",
          "f value: expected above 5 and below 9, found \"4\"" },
        { "value: {op: GeLe, value: ['5', '9']}", "f value: expected from 5 to 9, found \"4\"" },
        { "value: {op: IsTrue}", "f value: expected \"true\", found \"4\"" },
        { "value: {op: Ge, value: [x]}", "f value: the rule is wrong: \"x\" is not an integer" },
        { "value: {op: GeLe, value: ['2', '1']}",
          "f value: the rule is wrong: GeLe takes a first value that is less than the second" },
    };
    WORLD w;
    world_init(&w);
    const struct feature_set *set = with_value(&w, "4");

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF term = { 0 }, want = { 0 };
        buf_addf(&term, "matchExpressions: {%s}", cases[i].expression);
        buf_addf(&want, "rule \"r\": %s", cases[i].why);
        EXPECT_STR(world_why(&w, world_term(&w, term.p), set), want.p);
    }
    const struct rules *number =
        world_term(&w, "matchExpressions: {value: {op: Lt, value: ['9']}}");
    EXPECT_STR(world_why(&w, number, with_value(&w, "x")),
               "rule \"r\": f value: cannot be compared by Lt: \"x\" is not an integer");
    EXPECT_STR(world_why(&w, number, set), "yes");
}

TEST(reasons_name_the_rule_and_the_alternative)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set = world_set(&w, "flags: {f: {elements: {a: {}}}}");
    const struct rules *rules = world_rules(
        &w, "[{name: first, matchAny: [{matchFeatures: [" HAS("u") "]}, {matchFeatures: [" HAS(
                "a") ", " HAS("z") "]}]}, {name: second, matchFeatures: [{feature: g}]}]");
    struct rule_reasons reasons = rules_explain(&w.arena, rules, set, (struct rules_options){ 0 });

    EXPECT_EQ(reasons.count, 3);
    EXPECT_EQ(reasons.items[1].rule_ix, 0);
    EXPECT_EQ(reasons.items[1].alternative_ix, 1);
    EXPECT_EQ(reasons.items[1].term_ix, 1);
    EXPECT_EQ(reasons.items[1].match, MATCH_NO);
    EXPECT_EQ(reasons.items[2].alternative_ix, RULE_REASON_MATCH_FEATURES);
    EXPECT_STR(world_why(&w, rules, set),
               "rule \"first\": alternative 1: f u: expected to exist, is absent\n"
               "rule \"first\": alternative 2: f z: expected to exist, is absent\n"
               "rule \"second\": g: the node does not have this feature");
}

TEST(reasons_cut_and_quote_what_comes_from_outside)
{
    WORLD w;
    world_init(&w);
    const struct feature_set *set =
        world_set(&w, "attributes: {f: {elements: {value: \"\\e[31mred\\n\"}}}");
    AUTO_BUF term = { 0 };
    buf_addz(&term, "matchExpressions: {value: {op: In, value: [");
    for (int i = 0; i < 1000; i++)
        buf_addf(&term, "'%d', ", i);
    buf_addz(&term, "]}}");
    struct str why = world_why(&w, world_term(&w, term.p), set);

    EXPECT_HAS(why, "\"7\" and 992 more, found \"\\u001b[31mred\\n\"");
    EXPECT_TRUE(why.len < 400);
}

/* --- limits --- */

static void expect_too_many(struct rules_source source, const char *words)
{
    struct err err = { 0 };
    const struct rules *rules = NULL;
    EXPECT_ERR(rules_compile(source, &rules, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), words);
}

TEST(rules_have_limits)
{
    AUTO_ARENA arena = { 0 };
    struct str *values = arena_array(&arena, struct str, RULES_VALUES_MAX);
    struct feature_rule *many = arena_array(&arena, struct feature_rule, RULES_MAX + 1);
    struct feature_term *terms = arena_array(&arena, struct feature_term, RULES_TERMS_MAX + 1);
    struct feature_alternative *any =
        arena_array(&arena, struct feature_alternative, RULES_TERMS_MAX + 1);
    struct feature_expression x = { .op = FEATURE_IN, .values = { values, RULES_VALUES_MAX } };
    struct feature_expression re = { .op = FEATURE_IN_REGEXP,
                                     .values = { values, RULES_PATTERNS_MAX + 1 } };
    struct feature_term long_term = { .expressions = { &x, 1 } };
    struct feature_term pattern_term = { .maybe_name = &re };
    struct feature_rule terms_rule = { .terms = { terms, RULES_TERMS_MAX + 1 } };
    struct feature_rule any_rule = { .match_any = { any, RULES_TERMS_MAX + 1 } };
    struct feature_rule long_rule = { .terms = { &long_term, 1 } };
    struct feature_rule pattern_rule = { .terms = { &pattern_term, 1 } };

    expect_too_many((struct rules_source){ many, RULES_MAX + 1, true }, "257 rules, at most 256");
    expect_too_many((struct rules_source){ &terms_rule, 1, true }, "4097 feature terms");
    expect_too_many((struct rules_source){ &any_rule, 1, true }, "4097 alternatives");
    expect_too_many((struct rules_source){ &long_rule, 1, true }, "65537 elements and values");
    expect_too_many((struct rules_source){ &pattern_rule, 1, true }, "257 regular expressions");
}
