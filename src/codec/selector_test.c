#include "support/test.h"

#include "codec/selector.h"

#include <stdio.h>

typedef int parse_fn(struct arena *, struct str, struct selector *, struct err *);

struct case_text {
    const char *text, *canonical;
};

/* What k8s.io/apimachinery's labels.Parse makes of these, written in our canonical form. */
static const struct case_text label_vectors[] = {
    { "", "" },
    { "  \t\r\n", "" },
    { "a", "a" },
    { "!a", "!a" },
    { "! a", "!a" },
    { "a=b", "a=b" },
    { "a==b", "a=b" },
    { "a!=b", "a!=b" },
    { "a = b", "a=b" },
    { "a\t==\nb", "a=b" },
    { "a=", "a=" },
    { "a==", "a=" },
    { "a!=", "a!=" },
    { "a=,b", "a=,b" },
    { "a,b", "a,b" },
    { "b,a", "a,b" },
    { " a , !b ", "a,!b" },
    { "a in (x)", "a=x" },
    { "a in (x,y)", "a in (x,y)" },
    { "a in (y,x,y)", "a in (x,y)" },
    { "a in(x)", "a=x" },
    { "a in ( x , y )", "a in (x,y)" },
    { "a notin (x)", "a!=x" },
    { "a notin (y,x)", "a notin (x,y)" },
    { "a in ()", "a=" },
    { "a in (,)", "a=" },
    { "a in (x,)", "a in (,x)" },
    { "a in (,x)", "a in (,x)" },
    { "a in (x,,y)", "a in (,x,y)" },
    { "a notin ()", "a!=" },
    { "a>1", "a>1" },
    { "a<1", "a<1" },
    { "a > 10", "a>10" },
    { "a>007", "a>007" },
    { "in", "in" },
    { "notin", "notin" },
    { "in in (in,notin)", "in in (in,notin)" },
    { "notin notin (in)", "notin!=in" },
    { "!in", "!in" },
    { "in=notin", "in=notin" },
    { "x in (in)", "x=in" },
    { "example.com/name=v", "example.com/name=v" },
    { "a.b-c_d=E.f-g_H", "a.b-c_d=E.f-g_H" },
    { "a=b,a=c", "a=b,a=c" },
    { "a=b,a!=c,!a", "a=b,a!=c,!a" },
    { "app=web,tier in (front,back),!canary,size>3",
      "app=web,!canary,size>3,tier in (back,front)" },
    { "a=1,b in (x,y),c notin (z),d,!e,f>1,g<2", "a=1,b in (x,y),c!=z,d,!e,f>1,g<2" },
};

/* And fields.ParseSelector of these. */
static const struct case_text field_vectors[] = {
    { "", "" },
    { "a=b", "a=b" },
    { "a==b", "a=b" },
    { "a!=b", "a!=b" },
    { "a=", "a=" },
    { "a!=", "a!=" },
    { "a=b,c!=d", "a=b,c!=d" },
    { "c=d,a=b", "a=b,c=d" },
    { "a=b,,c=d", "a=b,c=d" },
    { ",a=b,", "a=b" },
    { "spec.nodeName=", "spec.nodeName=" },
    { "metadata.name=web-0,status.phase!=Running", "metadata.name=web-0,status.phase!=Running" },
    { "a=x\\,y", "a=x\\,y" },
    { "a=x\\=y", "a=x\\=y" },
    { "a=x\\\\y", "a=x\\\\y" },
    { "a=x\\\\,b=y", "a=x\\\\,b=y" },
    { "a=b c", "a=b c" },
    { "a= b", "a= b" },
    { "a=!b", "a=!b" },
    { "a!b=c", "a!b=c" },
    { "a=(x)", "a=(x)" },
    { "a=b,a=b", "a=b,a=b" },
    { "a=\xc3\xa9", "a=\xc3\xa9" },
};

static void expect_canonical(parse_fn *parse, const char *text, const char *canonical)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF out = { 0 };
    struct selector sel;
    struct err err = { 0 };
    if (parse(&arena, str_of(text), &sel, &err) < 0)
        fail_msg("\"%s\": %s", text, err.text);
    selector_format(&sel, &out);
    EXPECT_STR(buf_str(&out), canonical);
}

static struct err expect_refused(parse_fn *parse, struct str text)
{
    AUTO_ARENA arena = { 0 };
    struct selector sel = { .term_count = 42 };
    struct err err = { 0 };
    if (parse(&arena, text, &sel, &err) == 0)
        fail_msg("\"%.*s\" was accepted", STR_ARG(text));
    EXPECT_EQ(err.kind, ERR_INVALID);
    EXPECT_EQ(sel.term_count, 42);
    return err;
}

TEST(selector_reads_what_kubernetes_reads)
{
    for (size_t i = 0; i < KV_COUNT_OF(label_vectors); i++)
        expect_canonical(selector_parse, label_vectors[i].text, label_vectors[i].canonical);
}

TEST(selector_canonical_text_stands_for_the_same_selector)
{
    for (size_t i = 0; i < KV_COUNT_OF(label_vectors); i++)
        expect_canonical(selector_parse, label_vectors[i].canonical, label_vectors[i].canonical);
    for (size_t i = 0; i < KV_COUNT_OF(field_vectors); i++)
        expect_canonical(selector_parse_fields, field_vectors[i].canonical,
                         field_vectors[i].canonical);
}

TEST(selector_refuses_what_kubernetes_refuses)
{
    static const char *const texts[] = {
        ",",           "a,",
        ",a",          "a,,b",
        "a b",         "a=b c",
        "!",           "!!a",
        "a!",          "!a=b",
        "!a in (x)",   "=b",
        "==b",         "a===b",
        "a!==b",       "a=!b",
        "a>=1",        "a>",
        "a>x",         "a>1.5",
        "a>-1",        "a>9223372036854775808",
        "a<>1",        "a in",
        "a in x",      "a in (",
        "a in (x",     "a in (x,",
        "a in x)",     "a in (x y)",
        "a in (x)(y)", "a in ((x))",
        "a in (x=y)",  "a notin",
        "a nin (x)",   "a IN (x)",
        "in (x)",      "(a)",
        "a)",          "a=(b)",
        "a=b=c",       "a=-b",
        "a=b-",        "a=b/c",
        "a=\xc3\xa9",  "\xc3\xa9=a",
        "-a",          "a-",
        "a/",          "/a",
        "a/b/c",       "A/b",
        "a_b/c",       "a=0123456789012345678901234567890123456789012345678901234567890123",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++)
        expect_refused(selector_parse, str_of(texts[i]));
}

/* Kubernetes stops reading at a zero byte, lets a field have no name, and stumbles over an even
 * number of commas at the end of a list. */
TEST(selector_differs_from_kubernetes_in_zero_bytes_empty_fields_and_commas)
{
    expect_refused(selector_parse_fields, STR("=b"));
    expect_refused(selector_parse_fields, STR("!=b"));
    expect_refused(selector_parse, STR("a=b\0,c=d"));
    expect_refused(selector_parse_fields, STR("a=b\0"));
    expect_canonical(selector_parse, "a in (x,,)", "a in (,x)");
}

TEST(selector_refuses_text_beyond_its_limit)
{
    AUTO_BUF text = { 0 };
    while (text.len < SELECTOR_BYTES_MAX - 1)
        buf_addz(&text, "a,");
    buf_addz(&text, "a");
    EXPECT_HAS(str_of(expect_refused(selector_parse, buf_str(&text)).text), "at most 65536 bytes");

    AUTO_ARENA arena = { 0 };
    struct selector sel;
    struct err err;
    struct str longest = str_sub(buf_str(&text), 2, SELECTOR_BYTES_MAX);
    EXPECT_OK(selector_parse(&arena, longest, &sel, &err), err);
    EXPECT_EQ(sel.term_count, SELECTOR_BYTES_MAX / 2);
}

TEST(selector_errors_say_what_was_expected)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "a b", "expected one of = == != > < in notin, found \"b\"" },
        { "a,", "selector ends where a key or \"!\" was expected" },
        { "a in x", "expected \"(\", found \"x\"" },
        { "a in (x", "selector ends where \",\" or \")\" was expected" },
        { "!a=b", "expected \",\" or the end, found \"=\"" },
        { "a=-b", "value \"-b\" of a must be empty or letters" },
        { "a>x", "value \"x\" of a must be an integer" },
        { "/a", "key \"/a\" must have a prefix" },
        { "\033[2J", "key \"\\u001b[2J\" must have a name" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        EXPECT_HAS(str_of(expect_refused(selector_parse, str_of(cases[i].text)).text),
                   cases[i].want);
}

TEST(selector_for_fields_reads_what_kubernetes_reads)
{
    for (size_t i = 0; i < KV_COUNT_OF(field_vectors); i++)
        expect_canonical(selector_parse_fields, field_vectors[i].text, field_vectors[i].canonical);
}

TEST(selector_for_fields_refuses_what_kubernetes_refuses)
{
    static const char *const texts[] = {
        "a",     "!a",    "a in (b)", "a>1",   "a=b,c",  "a===b",
        "a!==b", "a=b=c", "a=b\\",    "a=\\b", "a=b\\c", " ",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++)
        expect_refused(selector_parse_fields, str_of(texts[i]));
}

/* --- matching --- */

struct labels {
    const char *const *pairs; /* key, value, ..., NULL */
};

static struct str lookup(const void *ctx, struct str key)
{
    for (const char *const *p = ((const struct labels *)ctx)->pairs; *p; p += 2) {
        if (str_eqz(key, p[0]))
            return str_of(p[1]);
    }
    return STR_NONE;
}

static bool matches(parse_fn *parse, const char *text, const char *const *pairs)
{
    AUTO_ARENA arena = { 0 };
    struct selector sel;
    struct err err;
    EXPECT_OK(parse(&arena, str_of(text), &sel, &err), err);
    return selector_matches(&sel, lookup, &(struct labels){ pairs });
}

TEST(selector_matches_labels)
{
    static const char *const labels[] = { "app", "web", "empty", "", "size", "10", NULL };
    static const struct {
        const char *text;
        bool want;
    } cases[] = {
        { "", true },
        { "app", true },
        { "gone", false },
        { "!app", false },
        { "!gone", true },
        { "app=web", true },
        { "app=api", false },
        { "gone=web", false },
        { "app!=web", false },
        { "app!=api", true },
        { "gone!=web", true }, /* an absent key is not equal to anything */
        { "app in (api,db,web)", true },
        { "app in (api,db)", false },
        { "gone in (api)", false },
        { "app notin (api,db)", true },
        { "app notin (web,db)", false },
        { "gone notin (web)", true },
        { "empty=", true },
        { "empty", true },
        { "app=", false },
        { "gone=", false }, /* absent is not empty */
        { "gone!=", true },
        { "size>9", true },
        { "size>10", false },
        { "size<11", true },
        { "size<10", false },
        { "app>1", false }, /* not a number */
        { "app<1", false },
        { "gone>1", false },
        { "app=web,size>9,!gone", true },
        { "app=web,size>9,gone", false },
        { "app=web,app=api", false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        if (matches(selector_parse, cases[i].text, labels) != cases[i].want)
            fail_msg("\"%s\" should be %s", cases[i].text, cases[i].want ? "true" : "false");
    }
}

TEST(selector_for_fields_takes_an_unset_field_for_the_empty_string)
{
    static const char *const set[] = { "spec.nodeName", "a", NULL }, *const unset[] = { NULL };
    EXPECT_TRUE(matches(selector_parse_fields, "spec.nodeName=", unset));
    EXPECT_FALSE(matches(selector_parse_fields, "spec.nodeName=", set));
    EXPECT_TRUE(matches(selector_parse_fields, "spec.nodeName!=", set));
    EXPECT_FALSE(matches(selector_parse_fields, "spec.nodeName!=", unset));
    EXPECT_TRUE(matches(selector_parse_fields, "spec.nodeName!=b", unset));
    EXPECT_TRUE(matches(selector_parse_fields, "spec.nodeName=a", set));
}

TEST(selector_finds_each_of_many_values)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "n in (");
    for (int i = 0; i < 200; i += 2)
        buf_addf(&text, "%sv%d", i ? "," : "", i);
    buf_addc(&text, ')');
    for (int i = 0; i < 200; i++) {
        char value[16];
        snprintf(value, sizeof value, "v%d", i);
        const char *const labels[] = { "n", value, NULL };
        EXPECT_EQ(matches(selector_parse, text.p, labels), i % 2 == 0);
    }
}

/* --- names --- */

static struct str repeat(struct buf *b, char c, size_t count, const char *end)
{
    buf_clear(b);
    while (count--)
        buf_addc(b, c);
    buf_addz(b, end);
    return buf_str(b);
}

TEST(label_keys_have_a_name_and_perhaps_a_dns_prefix)
{
    static const char *const good[] = { "a",    "A",     "0",           "app.kubernetes.io/name",
                                        "a/b",  "1.2/3", "a-b/A_b.c-D", "a--b",
                                        "a..b", "a__b",  "a.b-c/d" };
    static const char *const bad[] = { "",     "-a",       "a-",     "_a",    "a.",    "a b",
                                       "a/",   "/a",       "/",      "a/b/c", "A.b/c", "a_b/c",
                                       "-a/b", "a-/b",     "a..b/c", ".a/b",  "a./b",  "a/-b",
                                       "a/b-", "\xc3\xa9", "a\n" };
    AUTO_BUF b = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(good); i++)
        EXPECT_Z(label_key_problem(str_of(good[i])), NULL);
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        if (!label_key_problem(str_of(bad[i])))
            fail_msg("\"%s\" has no problem", bad[i]);
    }
    EXPECT_Z(label_key_problem(repeat(&b, 'a', 63, "")), NULL);
    EXPECT_Z(label_key_problem(repeat(&b, 'a', 64, "")),
             "must have a name of at most 63 characters");
    EXPECT_Z(label_key_problem(repeat(&b, 'a', 253, "/b")), NULL);
    EXPECT_Z(label_key_problem(repeat(&b, 'a', 254, "/b")),
             "must have a prefix of at most 253 characters");
    EXPECT_Z(label_key_problem(STR("")), "must not be empty");
    EXPECT_Z(label_key_problem(STR("a/")), "must have a name after its '/'");
    EXPECT_Z(label_key_problem(STR("/a")), "must have a prefix before its '/'");
    EXPECT_Z(label_key_problem(STR("a/b/c")), "must have at most one '/'");
}

TEST(label_values_may_be_empty)
{
    static const char *const good[] = { "", "a", "A.b_c-D", "0", "1.25.3", "a--b" };
    static const char *const bad[] = {
        "-", "a-", "-a", ".a", "a b", "a/b", "a=b", "\xc3\xa9", " "
    };
    AUTO_BUF b = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(good); i++)
        EXPECT_Z(label_value_problem(str_of(good[i])), NULL);
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++)
        EXPECT_HAS(str_of(label_value_problem(str_of(bad[i]))), "must be empty or letters");
    EXPECT_Z(label_value_problem(repeat(&b, 'a', 63, "")), NULL);
    EXPECT_Z(label_value_problem(repeat(&b, 'a', 64, "")), "must be at most 63 characters");
}

TEST(dns_names_are_lower_case)
{
    AUTO_BUF b = { 0 };
    EXPECT_Z(dns1123_label_problem(STR("web-0")), NULL);
    EXPECT_Z(dns1123_label_problem(repeat(&b, 'a', 63, "")), NULL);
    EXPECT_Z(dns1123_label_problem(repeat(&b, 'a', 64, "")), "must be at most 63 characters");
    EXPECT_Z(dns1123_label_problem(STR("")), "must not be empty");
    EXPECT_HAS(str_of(dns1123_label_problem(STR("a.b"))), "must be lower-case letters");
    EXPECT_HAS(str_of(dns1123_label_problem(STR("Web"))), "must be lower-case letters");
    EXPECT_HAS(str_of(dns1123_label_problem(STR("-a"))), "must be lower-case letters");

    EXPECT_Z(dns1123_subdomain_problem(STR("ip-10-0-1-7.ec2.internal")), NULL);
    EXPECT_Z(dns1123_subdomain_problem(repeat(&b, 'a', 253, "")), NULL);
    EXPECT_Z(dns1123_subdomain_problem(repeat(&b, 'a', 254, "")), "must be at most 253 characters");
    EXPECT_Z(dns1123_subdomain_problem(STR("")), "must not be empty");
    EXPECT_HAS(str_of(dns1123_subdomain_problem(STR("a..b"))), "must be lower-case letters");
    EXPECT_HAS(str_of(dns1123_subdomain_problem(STR("a.b."))), "must be lower-case letters");
    EXPECT_HAS(str_of(dns1123_subdomain_problem(STR("a_b"))), "must be lower-case letters");
}
