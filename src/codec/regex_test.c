#include "support/test.h"

#include "codec/regex.h"

#include <pthread.h>

/* The patterns that the schemas share. */
#define DURATION "^([0-9]+(s|m|h))+$"
#define DURATION_OR_NEVER "^(([0-9]+(s|m|h))+|Never)$"
#define BUDGET_NODES "^((100|[0-9]{1,2})%|[0-9]+)$"
#define BUDGET_SCHEDULE                                                                            \
    "^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\\s(.+)\\s(.+)\\s(.+)\\s(.+))$"
#define BUDGET_DURATION "^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$"
#define PRICE_ADJUSTMENT                                                                           \
    "^(([+-]{1}(\\d*\\.?\\d+))|(\\+{1}\\d*\\.?\\d+%)|(^(-\\d{1,2}(\\.\\d+)?%)$)|(-100%))$"
#define QUANTITY                                                                                   \
    "^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\" \
    ".[0-9]*)?)|(\\.[0-9]+))))?$"
#define LABEL_KEY                                                                                  \
    "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*(\\/))?([A-Za-z0-9][-A-Za-" \
    "z0-9_.]*)?[A-Za-z0-9]$"

static const struct {
    const char *pattern;
    const char *good[10], *bad[10];
} schema_patterns[] = {
    { DURATION,
      { "5s", "10m", "720h", "1h30m", "0s", "1h1h" },
      { "", "5", "s", "1.5h", "-5m", "5ms", "Never", "5m ", "5m\n" } },
    { DURATION_OR_NEVER,
      { "5s", "1h30m", "Never" },
      { "", "never", "NeverNever", "5sNever", "Never\n", "1d" } },
    { BUDGET_NODES,
      { "0", "10", "1000", "0%", "5%", "99%", "100%" },
      { "", "101%", "1000%", "-1", "1.5%", "10 %", "%", "ten" } },
    /* Each half is tied to one end only: text after a macro and before five fields passes. */
    { BUDGET_SCHEDULE,
      { "@daily", "@hourly", "0 9 * * mon-fri", "@dailyx and more", "a @daily b c d e",
        "0 0 1 1 * *", "\xc3\xa9 b c d e" },
      { "", "@reboot", "@every 1h", " @daily", "* * * *", "x@daily", "0 0 1 1 " } },
    { BUDGET_DURATION,
      { "10m", "8h", "1h30m", "8h0s", "1h30m0s", "90m0s" },
      { "", "10s", "0s", "1m1h", "1h30m15s", "1d", "8h 0s", "8h0s0s" } },
    { PRICE_ADJUSTMENT,
      { "+1", "-1", "+0.5", "-.25", "+10%", "+150.5%", "-10%", "-99.9%", "-100%" },
      { "", "1", "10%", "-100.5%", "-150%", "+", "+%", "+1.", "--1" } },
    { QUANTITY,
      { "1", "1500m", "2Gi", ".5", "5.", "-1", "+1", "1e3", "1E-3", "1e1.5" },
      { "", "1K", "1KiB", "1 Gi", "Gi", "1e", "--1", ".", "0x10" } },
    { LABEL_KEY,
      { "a", "team", "example.com/team", "a.b-c/D_e.f", "0", "A" },
      { "", "-a", "a-", "/a", "a/", "a/b/c", "A.com/b", "a..b/c", "a b" } },
};

static struct regex *compile(const char *pattern)
{
    struct regex *re = NULL;
    struct err err = { 0 };
    if (regex_compile(str_of(pattern), &re, &err) < 0)
        fail_msg("%s: %s", pattern, err.text);
    return re;
}

static int search(const char *pattern, struct str s)
{
    AUTO(regex) re = compile(pattern);
    return regex_search(re, s);
}

TEST(regex_understands_the_patterns_of_the_schemas)
{
    for (size_t i = 0; i < KV_COUNT_OF(schema_patterns); i++) {
        AUTO(regex) re = compile(schema_patterns[i].pattern);
        for (size_t j = 0; j < 10 && schema_patterns[i].good[j]; j++) {
            if (regex_search(re, str_of(schema_patterns[i].good[j])) != 1)
                fail_msg("%s refuses %s", schema_patterns[i].pattern, schema_patterns[i].good[j]);
        }
        for (size_t j = 0; j < 10 && schema_patterns[i].bad[j]; j++) {
            if (regex_search(re, str_of(schema_patterns[i].bad[j])) != 0)
                fail_msg("%s accepts %s", schema_patterns[i].pattern, schema_patterns[i].bad[j]);
        }
    }
}

TEST(regex_searches_anywhere_unless_the_pattern_is_tied_down)
{
    EXPECT_EQ(search("b+", STR("abbc")), 1);
    EXPECT_EQ(search("^b", STR("abbc")), 0);
    EXPECT_EQ(search("c$", STR("abbc")), 1);
    EXPECT_EQ(search("", STR("")), 1);
    EXPECT_EQ(search("", STR_NONE), 1);
    EXPECT_EQ(search("a", STR_NONE), 0);
}

TEST(regex_dollar_is_the_very_end)
{
    EXPECT_EQ(search("^a$", STR("a\n")), 0);
    EXPECT_EQ(search("(?m)^a$", STR("a\nb")), 1);
    EXPECT_EQ(search("a\\z", STR("a\n")), 0);
}

TEST(regex_reads_characters_not_bytes)
{
    EXPECT_EQ(search("^.$", STR("\xc3\xa9")), 1);
    EXPECT_EQ(search("^[\xc3\xa0-\xc3\xbf]$", STR("\xc3\xa9")), 1);
    EXPECT_EQ(search("^\\x{e9}$", STR("\xc3\xa9")), 1);
    EXPECT_EQ(search("(?i)^\xc3\x89$", STR("\xc3\xa9")), 1);
    EXPECT_EQ(search("^\\w$", STR("\xc3\xa9")), 0); /* \w is ASCII, as in RE2 */
    EXPECT_EQ(search("^\\pL$", STR("\xc3\xa9")), 1);
    EXPECT_EQ(search("^.$", STR("\n")), 0);
    EXPECT_EQ(search("^.$", STR("\r")), 1);
    EXPECT_EQ(search("^a.b$", STR("a\0b")), 1);
    EXPECT_EQ(search(".", STR("\xff")), 0); /* not UTF-8 */
}

TEST(regex_takes_what_re2_takes)
{
    static const char *const patterns[] = {
        "a|b|",
        "(?:a)",
        "(?P<name>a)",
        "(?<name>a)",
        "(?i)a",
        "(?i-s:a)",
        "(?U)a+",
        "a{2}",
        "a{2,}?",
        "a{0,1000}",
        "a*?b+?c??",
        "[]a]",
        "[^]a]",
        "[a\\]]",
        "[[:alpha:]_]",
        "[^[:^digit:]]",
        "\\x41\\x{1F600}",
        "\\p{Greek}\\PN",
        "\\.\\/\\-\\_",
        "a{",
        "a{x}",
        "}",
        "\\t\\n\\r\\f\\a",
        "\\bfoo\\B",
        "\\A\\z",
        "[\\d\\s-]",
        "()",
    };
    for (size_t i = 0; i < KV_COUNT_OF(patterns); i++) {
        AUTO(regex) re = compile(patterns[i]);
        EXPECT_TRUE(re != NULL);
    }
}

TEST(regex_refuses_what_re2_lacks)
{
    static const char *const patterns[] = {
        "(a)\\1",
        "(?P<n>a)\\k<n>",
        "(?P<n>a)(?P=n)",
        "\\g1",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?<!a)",
        "(?>a)",
        "a*+",
        "a++",
        "a?+",
        "a{2}+",
        "a**",
        "a{2}{3}",
        "(?R)",
        "(?1)",
        "(?&n)",
        "(?P>n)",
        "(?(1)a)",
        "(?|a)",
        "(?#note)",
        "(?x)a",
        "(*UTF)a",
        "(*FAIL)",
        "a\\Kb",
        "\\Ga",
        "\\R",
        "\\X",
        "\\C",
        "\\h",
        "\\N",
        "\\Z",
        "\\e",
        "\\cA",
        "\\Qa\\E",
        "[\\b]",
        "[\\R]",
        "a{1001}",
        "a{2,1001}",
        "a{99999999999999999999}",
        "\\x4",
        "\\x",
        "\\x{}",
        "\\x{41",
        "\\\xc3\xa9",
        "a{,2}",
        "a{2",
        "(?C1)a",
        "(?i",
        "(?",
    };
    for (size_t i = 0; i < KV_COUNT_OF(patterns); i++) {
        struct regex *re = NULL;
        struct err err = { 0 };
        if (regex_compile(str_of(patterns[i]), &re, &err) == 0)
            fail_msg("%s was accepted", patterns[i]);
        EXPECT_EQ(err.kind, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), "offset");
        EXPECT_TRUE(re == NULL);
    }
}

TEST(regex_refuses_broken_patterns)
{
    static const char *const patterns[] = {
        "(",         ")",         "[a",   "[",  "a)", "*a", "[z-a]", "\\", "(?P<n>a)(?P<n>b)",
        "[[:foo:]]", "\\p{Nope}", "\xff", "a\\"
    };
    struct regex *re = NULL;
    struct err err;
    for (size_t i = 0; i < KV_COUNT_OF(patterns); i++)
        EXPECT_ERR(regex_compile(str_of(patterns[i]), &re, &err), err, ERR_INVALID);
    EXPECT_ERR(regex_compile(STR("a\0b"), &re, &err), err, ERR_INVALID);
    EXPECT_TRUE(re == NULL);
}

TEST(regex_refuses_patterns_that_would_grow_without_bound)
{
    AUTO_BUF pattern = { 0 };
    struct regex *re = NULL;
    struct err err;
    while (pattern.len < REGEX_PATTERN_BYTES_MAX)
        buf_addc(&pattern, 'a');
    EXPECT_OK(regex_compile(buf_str(&pattern), &re, &err), err);
    regex_free(re);
    buf_addc(&pattern, 'a');
    EXPECT_ERR(regex_compile(buf_str(&pattern), &re, &err), err, ERR_INVALID);

    buf_clear(&pattern);
    for (int i = 0; i < 2000; i++)
        buf_addc(&pattern, '(');
    EXPECT_ERR(regex_compile(buf_str(&pattern), &re, &err), err, ERR_INVALID);
    EXPECT_ERR(regex_compile(STR("(((a{1000}){1000}){1000}){1000}"), &re, &err), err, ERR_INVALID);
}

TEST(regex_gives_up_where_backtracking_would_take_for_ever)
{
    AUTO_BUF text = { 0 };
    while (text.len < 5000)
        buf_addc(&text, 'a');
    /* Ends in a class, since a fixed letter that is not in the text is noticed at once. */
    EXPECT_EQ(search("^(a+)+[bc]$", buf_str(&text)), -1);
    EXPECT_EQ(search("(a|a)+[bc]", buf_str(&text)), -1);
    EXPECT_EQ(search("(a*)*[bc]$", buf_str(&text)), -1);
}

TEST(regex_has_steps_enough_for_long_honest_text)
{
    AUTO_BUF text = { 0 };
    while (text.len < 65536)
        buf_addz(&text, "1h");
    EXPECT_EQ(search(DURATION, buf_str(&text)), 1);
    buf_addc(&text, '!');
    EXPECT_EQ(search(DURATION, buf_str(&text)), 0);
    buf_addz(&text, "needle");
    EXPECT_EQ(search("needle$", buf_str(&text)), 1);
}

static void *match_all(void *arg)
{
    const int *rounds = arg;
    intptr_t matched = 0;
    for (int round = 0; round < *rounds; round++) {
        for (size_t i = 0; i < KV_COUNT_OF(schema_patterns); i++) {
            for (size_t j = 0; j < 10 && schema_patterns[i].good[j]; j++)
                matched += regex_match_static(schema_patterns[i].pattern,
                                              str_of(schema_patterns[i].good[j]));
        }
    }
    return (void *)matched;
}

TEST(regex_static_patterns_are_shared_by_threads)
{
    enum { THREADS = 8 };
    int rounds = 20;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, match_all, &rounds), 0);
    intptr_t want = (intptr_t)match_all(&rounds);
    EXPECT_TRUE(want > 800);
    for (int i = 0; i < THREADS; i++) {
        void *matched;
        EXPECT_EQ(pthread_join(threads[i], &matched), 0);
        EXPECT_EQ((intptr_t)matched, want);
    }
    EXPECT_FALSE(regex_match_static(DURATION, STR("soon")));
}
