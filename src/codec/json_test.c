#include "support/test.h"

#include "base/rng.h"
#include "codec/json.h"
#include "codec/json_scan.h"

#include <stdio.h>
#include <time.h>

/* --- helpers --- */

static struct doc read_ok(struct str text)
{
    struct doc doc;
    struct err err = { 0 };
    EXPECT_OK(json_read(text, &doc, &err), err);
    return doc;
}

static void expect_refused(struct str text, const char *words)
{
    struct doc doc = { 0 };
    struct err err = { 0 };
    EXPECT_ERR(json_read(text, &doc, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), words);
    EXPECT_TRUE(doc.yy == NULL);
}

static void expect_at(struct text_pos got, uint32_t line, uint32_t col)
{
    EXPECT_EQ(got.line, line);
    EXPECT_EQ(got.col, col);
}

static void add_repeated(struct buf *out, const char *z, size_t times)
{
    for (size_t i = 0; i < times; i++)
        buf_addz(out, z);
}

/* A random tree as text, every kind of value, white space in odd places. */
static void add_space(struct rng *r, struct buf *out)
{
    static const char *const spaces[] = { "", "", "", " ", "\n", "\r\n", "\t", "  \n " };
    buf_addz(out, spaces[rng_below(r, KV_COUNT_OF(spaces))]);
}

static void add_random(struct rng *r, unsigned depth, struct buf *out)
{
    static const char *const scalars[] = {
        "null", "true",  "false",        "0",        "-1",      "1.5",   "1e3",
        "\"\"", "\"a\"", "\"\\\"[{,:\"", "\"\\\\\"", "\"\\n\"", "\"é\"", "18446744073709551615"
    };
    uint64_t kind = depth == 0 ? 2 : rng_below(r, 4);
    uint64_t count = rng_below(r, 5);
    add_space(r, out);
    if (kind >= 2) {
        buf_addz(out, scalars[rng_below(r, KV_COUNT_OF(scalars))]);
    } else {
        buf_addc(out, kind ? '{' : '[');
        for (uint64_t i = 0; i < count; i++) {
            if (i > 0)
                buf_addc(out, ',');
            add_space(r, out);
            if (kind)
                buf_addf(out, "\"k%llu\"", (unsigned long long)i);
            add_space(r, out);
            if (kind)
                buf_addc(out, ':');
            add_random(r, depth - 1, out);
        }
        add_space(r, out);
        buf_addc(out, kind ? '}' : ']');
    }
    add_space(r, out);
}

/* --- reading --- */

TEST(json_reads_every_kind_of_value)
{
    struct doc doc =
        read_ok(STR("{\"o\":{\"x\":[1,-2]},\"s\":\"a\\u00e9\\n\",\"b\":true,\"n\":null,"
                    "\"d\":1.5,\"u\":18446744073709551615}\r\n"));
    const json_val *root = doc.root;
    int64_t i = 0;

    EXPECT_TRUE(json_is_object(root));
    EXPECT_EQ(json_count(root), 6);
    EXPECT_TRUE(json_i64(json_at(json_path(root, "o.x"), 1), &i));
    EXPECT_EQ(i, -2);
    EXPECT_STR(json_str(json_get(root, STR("s"))), "aé\n");
    EXPECT_TRUE(json_bool(json_get(root, STR("b"))));
    EXPECT_TRUE(json_is_null(json_get(root, STR("n"))));
    EXPECT_TRUE(json_double(json_get(root, STR("d"))) == 1.5);
    EXPECT_FALSE(json_i64(json_get(root, STR("u")), &i));
    EXPECT_FALSE(json_i64(json_get(root, STR("d")), &i));
    EXPECT_Z(json_type_name(json_get(root, STR("u"))), "integer");
    EXPECT_Z(json_type_name(json_get(root, STR("d"))), "number");
    doc_done(&doc);
}

TEST(json_absent_values_read_as_nothing)
{
    int64_t i = 7;
    EXPECT_TRUE(json_get(NULL, STR("a")) == NULL);
    EXPECT_TRUE(json_path(NULL, "a.b") == NULL);
    EXPECT_TRUE(json_at(NULL, 0) == NULL);
    EXPECT_TRUE(json_str(NULL).p == NULL);
    EXPECT_EQ(json_count(NULL), 0);
    EXPECT_FALSE(json_i64(NULL, &i));
    EXPECT_FALSE(json_bool(NULL));
    EXPECT_Z(json_type_name(NULL), "nothing");
    json_each_member(NULL, key, val)
        EXPECT_TRUE(key == val);
    json_each_item(NULL, item)
        EXPECT_TRUE(item == NULL);
}

TEST(json_iterates_members_and_items_in_order)
{
    struct doc doc = read_ok(STR("{\"b\":[3,1,2],\"a\":{}}"));
    AUTO_BUF seen = { 0 };
    json_each_member(doc.root, key, val) {
        buf_addf(&seen, "%.*s:", STR_ARG(json_str(key)));
        json_each_item(val, item) {
            int64_t i = 0;
            json_i64(item, &i);
            buf_addf(&seen, "%lld", (long long)i);
        }
    }
    EXPECT_STR(buf_str(&seen), "b:312a:");
    doc_done(&doc);
}

TEST(json_errors_name_line_column_and_trouble)
{
    static const struct {
        const char *text, *words;
    } cases[] = {
        { "", "line 1, column 1: the text is empty" },
        { " \n ", "the text is empty" },
        { "{\n  \"a\": tru\n}", "line 2, column 8: invalid literal" },
        { "{\"a\":1,\n}", "trailing comma" },
        { "[1 2]", "line 1, column 4: unexpected character, expected a comma" },
        { "{a: 1}", "column 2: unexpected character, expected a string for object key, found 'a'" },
        { "{\"a\": [1, 2", "line 1, column 12: the text ends too early" },
        { "{\"a\": \"b", "the text ends too early" },
        { "{} \r\n {}", "line 2, column 2: unexpected text after" },
        { "[\"a\nb\"]", "control character" },
        { "[01]", "leading zero" },
        { "[\"\\x\"]", "invalid escape" },
        { "[\"\\ud800\"]", "surrogate" },
        { "[\"\xc3(\"]", "line 1, column 3: invalid UTF-8" },
        { "[\"\xed\xa0\x80\"]", "invalid UTF-8" },
        { "[\"\xc0\x80\"]", "invalid UTF-8" },
        { "[NaN]", "unexpected character" },
        { "\xef\xbb\xbf{}", "byte order mark" },
        { "\xff\xfe{", "UTF-16" },
        { "\xfe\xff\x20{", "UTF-16" },
        { "{\"a\":\r\n \"x\\u0000y\"}", "line 2, column 2: NUL character in a string" },
        { "{\"a\\u0000\": 1}", "line 1, column 2: NUL character" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        expect_refused(str_of(cases[i].text), cases[i].words);
    expect_refused(STR("{\"a\"\0: 1}"), "column 5: NUL byte");
    expect_refused(STR("{\"a\0\": 1}"), "column 4: NUL byte");
}

TEST(json_refuses_numbers_that_would_change)
{
    static const char *const fine[] = { "9223372036854775807",
                                        "18446744073709551615",
                                        "-9223372036854775808",
                                        "1e308",
                                        "-0",
                                        "0.1000000000000000055511151231257827",
                                        "1e-400" };
    static const char *const bad[] = { "18446744073709551616", "-9223372036854775809", "1e309",
                                       "-1e999", "123456789012345678901234567890" };
    for (size_t i = 0; i < KV_COUNT_OF(fine); i++) {
        struct doc doc = read_ok(str_of(fine[i]));
        EXPECT_TRUE(json_is_number(doc.root));
        doc_done(&doc);
    }
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        AUTO_BUF text = { 0 };
        buf_addf(&text, "{\"n\":\n [%s]}", bad[i]);
        expect_refused(buf_str(&text), "line 2, column 3: the number");
    }
}

TEST(json_duplicate_keys_are_refused_with_both_lines)
{
    expect_refused(STR("{\"a\": 1,\n \"b\": {\"x\": 1},\n  \"a\": 2}"),
                   "line 3, column 3: duplicate key \"a\", first on line 1");
    expect_refused(STR("[{\"k\": 1, \"\\u006b\": 2}]"), "column 11: duplicate key \"k\"");
    expect_refused(STR("{\"\": 1, \"\": 2}"), "duplicate key");
    struct doc doc = read_ok(STR("[{\"k\":{\"k\":1}},{\"k\":2}]"));
    doc_done(&doc);
}

TEST(json_duplicate_check_is_not_quadratic)
{
    AUTO_BUF text = { 0 };
    buf_addc(&text, '{');
    for (int i = 0; i < 300000; i++)
        buf_addf(&text, "\"%06d\":0,", i);
    buf_addz(&text, "\"150000\":0}");
    clock_t begin = clock();
    expect_refused(buf_str(&text), "duplicate key \"150000\"");
    EXPECT_TRUE((double)(clock() - begin) / CLOCKS_PER_SEC <
                5); /* 0.1 s; quadratic takes minutes */
}

/* Both readers, one answer. */
static bool readers_accept(struct str text, const char *words)
{
    struct doc doc;
    struct err err = { 0 }, trusted_err = { 0 };
    int rc = json_read(text, &doc, &err);
    if (rc == 0)
        doc_done(&doc);
    else
        EXPECT_HAS(str_of(err.text), words);
    EXPECT_EQ(json_read_trusted(text, &doc, &trusted_err), rc);
    if (rc == 0)
        doc_done(&doc);
    else
        EXPECT_HAS(str_of(trusted_err.text), words);
    return rc == 0;
}

TEST(json_depth_is_limited_in_both_readers)
{
    static const struct {
        size_t depth;
        bool accepted;
    } cases[] = {
        { 1, true }, { JSON_DEPTH_MAX, true }, { JSON_DEPTH_MAX + 1, false }, { 1000000, false }
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        size_t outer = cases[i].depth - 1;
        AUTO_BUF arrays = { 0 }, objects = { 0 };
        /* Siblings at the deepest level do not count as deeper. */
        add_repeated(&arrays, "[", outer);
        buf_addz(&arrays, outer ? "[],[],[]" : "[]");
        add_repeated(&arrays, "]", outer);
        EXPECT_EQ(readers_accept(buf_str(&arrays), "nested more than 100"), cases[i].accepted);
        add_repeated(&objects, "{\"]\":1,\"a\":", outer);
        buf_addz(&objects, "{}");
        add_repeated(&objects, "}", outer);
        EXPECT_EQ(readers_accept(buf_str(&objects), "nested more than 100"), cases[i].accepted);
    }
    AUTO_BUF open = { 0 };
    add_repeated(&open, "[", 1000000);
    expect_refused(buf_str(&open), "line 1, column 101: nested more than 100 levels deep");
}

TEST(json_length_is_limited)
{
    AUTO_BUF text = { 0 };
    buf_addc(&text, '"');
    buf_reserve(&text, JSON_BYTES_MAX);
    memset(text.p + 1, 'a', JSON_BYTES_MAX);
    text.len = JSON_BYTES_MAX + 1;
    expect_refused(buf_str(&text), "67108865 bytes");
}

TEST(json_trusted_reader_keeps_the_strictness_of_the_parser)
{
    static const char *const bad[] = { "", "{", "[1,]", "[\"\xff\"]", "[1e999]", "{} {}" };
    struct doc doc;
    struct err err = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        EXPECT_ERR(json_read_trusted(str_of(bad[i]), &doc, &err), err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), "line 1, column ");
    }
}

/* --- positions --- */

/* What codec/json.h builds on: `v - root` counts keys and values in the order of the text. */
TEST(json_values_lie_in_one_array_in_preorder)
{
    static const char *const texts[] = { "{\"a\":[1,{\"b\":[]},\"c\"],\"d\":{},\"e\":null}",
                                         "{\n  \"a\": [\n    1,\n    {\n      \"b\": []\n    },\n"
                                         "    \"c\"\n  ],\n  \"d\": {},\n  \"e\": null\n}\n" };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        struct doc doc = read_ok(str_of(texts[i]));
        const json_val *a = json_get(doc.root, STR("a"));
        EXPECT_EQ(yyjson_doc_get_val_count(doc.yy), 12);
        EXPECT_EQ(a - doc.root, 2);
        EXPECT_EQ(json_at(a, 0) - doc.root, 3);
        EXPECT_EQ(json_at(a, 1) - doc.root, 4);
        EXPECT_EQ(json_get(json_at(a, 1), STR("b")) - doc.root, 6);
        EXPECT_EQ(json_at(a, 2) - doc.root, 7);
        EXPECT_EQ(json_get(doc.root, STR("d")) - doc.root, 9);
        EXPECT_EQ(json_get(doc.root, STR("e")) - doc.root, 11);
        doc_done(&doc);
    }
    struct doc scalar = read_ok(STR(" 7 "));
    EXPECT_EQ(yyjson_doc_get_val_count(scalar.yy), 1);
    expect_at(doc_position(&scalar, scalar.root), 1, 2);
    doc_done(&scalar);
}

TEST(json_positions_of_keys_and_values)
{
    struct doc doc = read_ok(STR("{\n  \"a\": [1, \"x,\\\"[\", {\"é\": true}],\r\n\t\"b\" :{}\n}"));
    const json_val *a = json_get(doc.root, STR("a"));
    const json_val *inner = json_at(a, 2);
    const json_val *b = json_get(doc.root, STR("b"));

    expect_at(doc_position(&doc, doc.root), 1, 1);
    expect_at(doc_position(&doc, a - 1), 2, 3);
    expect_at(doc_position(&doc, a), 2, 8);
    expect_at(doc_position(&doc, json_at(a, 0)), 2, 9);
    expect_at(doc_position(&doc, json_at(a, 1)), 2, 12);
    expect_at(doc_position(&doc, inner), 2, 21);
    expect_at(doc_position(&doc, json_get(inner, STR("é"))), 2, 28); /* columns count bytes */
    expect_at(doc_position(&doc, b - 1), 3, 2);
    expect_at(doc_position(&doc, b), 3, 7);
    expect_at(doc_position(&doc, NULL), 0, 0);
    struct doc other = read_ok(STR("[1]"));
    expect_at(doc_position(&doc, other.root), 0, 0);
    doc_done(&other);
    doc_done(&doc);
}

/* What stands at a position, found the slow way. */
static char char_at(struct str text, struct text_pos pos)
{
    struct text_pos at = { 1, 1 };
    for (size_t i = 0; i < text.len; i++) {
        if (at.line == pos.line && at.col == pos.col)
            return text.p[i];
        at = text_pos_at(str_sub(text, i, text.len), 1, at);
    }
    return '\0';
}

/* Walk the tree and check each position by what stands there. */
static void check_positions(const struct doc *doc, const json_val *v, size_t *index)
{
    EXPECT_EQ(v - doc->root, *index);
    ++*index;
    char c = char_at(doc->text, doc_position(doc, v));
    if (json_is_object(v)) {
        EXPECT_EQ(c, '{');
        json_each_member(v, key, val) {
            check_positions(doc, key, index);
            check_positions(doc, val, index);
        }
    } else if (json_is_array(v)) {
        EXPECT_EQ(c, '[');
        json_each_item(v, item)
            check_positions(doc, item, index);
    } else if (json_is_string(v)) {
        EXPECT_EQ(c, '"');
    } else if (json_is_bool(v)) {
        EXPECT_EQ(c, json_bool(v) ? 't' : 'f');
    } else if (json_is_null(v)) {
        EXPECT_EQ(c, 'n');
    } else {
        EXPECT_TRUE(c == '-' || (c >= '0' && c <= '9'));
    }
}

TEST(json_positions_hold_for_random_texts)
{
    struct rng r;
    uint64_t seed = 20260101;
    print_message("# seed %llu\n", (unsigned long long)seed);
    rng_init(&r, seed);
    for (int round = 0; round < 2000; round++) {
        AUTO_BUF text = { 0 };
        add_random(&r, 4, &text);
        struct doc doc = read_ok(buf_str(&text));
        size_t index = 0;
        check_positions(&doc, doc.root, &index);
        EXPECT_EQ(index, yyjson_doc_get_val_count(doc.yy));
        doc_done(&doc);
    }
}

TEST(json_extent_ends_behind_the_first_value)
{
    static const struct {
        const char *text;
        size_t end;
    } cases[] = { { "{} {}", 2 }, { " [1,[2]]x", 8 }, { "{\"}\":1}[", 7 }, { "\"a\\\"b\" 1", 6 },
                  { "12 3", 2 },  { "[[]", 3 },       { "", 0 },           { "\"open", 5 },
                  { "]]", 1 } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        EXPECT_EQ(json_scan_extent(str_of(cases[i].text)).end, cases[i].end);
}

/* --- equality and the canonical form --- */

TEST(json_equality_ignores_member_order_and_number_spelling)
{
    static const struct {
        const char *a, *b;
        bool equal;
    } cases[] = {
        { "{\"a\":1,\"b\":[2]}", "{\"b\":[2],\"a\":1}", true },
        { "[1,2]", "[2,1]", false },
        { "1", "1.0", true },
        { "1", "true", false },
        { "100", "1e2", true },
        { "0", "-0.0", true },
        { "10000000000000000000", "1e19", true },
        { "9007199254740993", "9007199254740992.0", false },
        { "-9223372036854775808", "-9223372036854775808.0", true },
        { "9223372036854775808", "-9223372036854775808", false },
        { "18446744073709551615", "18446744073709551615.0", false }, /* the double is 2^64 */
        { "0.1", "0.10", true },
        { "\"1\"", "1", false },
        { "null", "false", false },
        { "{}", "[]", false },
        { "{\"a\":null}", "{}", false },
        { "{\"a\":1}", "{\"b\":1}", false },
        { "{\"a\":{\"x\":[{}]}}", "{\"a\":{\"x\":[{}]}}", true },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct doc a = read_ok(str_of(cases[i].a)), b = read_ok(str_of(cases[i].b));
        AUTO_BUF x = { 0 }, y = { 0 };
        EXPECT_EQ(json_equal(a.root, b.root), cases[i].equal);
        EXPECT_EQ(json_equal(b.root, a.root), cases[i].equal);
        json_write_canonical(a.root, &x);
        json_write_canonical(b.root, &y);
        EXPECT_EQ(str_eq(buf_str(&x), buf_str(&y)), cases[i].equal);
        doc_done(&a);
        doc_done(&b);
    }
    EXPECT_TRUE(json_equal(NULL, NULL));
}

TEST(json_canonical_form_is_sorted_and_shortest)
{
    struct doc doc =
        read_ok(STR("{ \"b\" : [1.0, 2.50, 1e2, -0.0, 1e30, 0.1], \"B\":\"\\u00e9\\/\\u0001\","
                    "\"ab\":null, \"a\" : {\"y\":false, \"x\":true} }"));
    AUTO_BUF out = { 0 };
    json_write_canonical(doc.root, &out);
    EXPECT_STR(buf_str(&out), "{\"B\":\"é/\\u0001\",\"a\":{\"x\":true,\"y\":false},\"ab\":null,"
                              "\"b\":[1,2.5,100,0,1e30,0.1]}");
    doc_done(&doc);
}

TEST(json_what_is_written_reads_back_equal)
{
    struct rng r;
    uint64_t seed = 42;
    print_message("# seed %llu\n", (unsigned long long)seed);
    rng_init(&r, seed);
    for (int round = 0; round < 2000; round++) {
        AUTO_BUF text = { 0 }, compact = { 0 }, canonical = { 0 }, pretty = { 0 };
        AUTO_JSON_BUILD b;
        json_build_init(&b);
        add_random(&r, 4, &text);
        struct doc doc = read_ok(buf_str(&text));
        json_write(doc.root, &compact);
        json_write_canonical(doc.root, &canonical);
        json_write_pretty(json_copy(&b, doc.root), &pretty);
        const struct buf *forms[] = { &compact, &canonical, &pretty };
        for (size_t i = 0; i < KV_COUNT_OF(forms); i++) {
            struct doc again = read_ok(buf_str(forms[i]));
            EXPECT_TRUE(json_equal(doc.root, again.root));
            doc_done(&again);
        }
        doc_done(&doc);
    }
}

/* --- building --- */

TEST(json_builds_and_replaces_members_in_place)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *list = json_new_array(&b);
    json_set_str(&b, root, "name", STR("web"));
    json_set_i64(&b, root, "replicas", 3);
    json_set_bool(&b, root, "paused", false);
    json_set(&b, root, STR("list"), list);
    json_push(&b, list, json_new_null(&b));
    json_push(&b, list, json_new_double(&b, 0.5));
    json_set_i64(&b, root, "replicas", -9);
    json_set_str(&b, json_mut_object(&b, json_mut_object(&b, root, STR("a")), STR("b")), "c",
                 STR_NONE);
    json_mut_object(&b, root, STR("paused")); /* was no object */
    json_mut_remove(root, STR("name"));
    json_mut_remove(root, STR("nobody"));

    AUTO_BUF out = { 0 };
    json_write_mut(root, &out);
    EXPECT_STR(buf_str(&out),
               "{\"replicas\":-9,\"paused\":{},\"list\":[null,0.5],\"a\":{\"b\":{\"c\":\"\"}}}");
    EXPECT_TRUE(json_mut_get(root, STR("name")) == NULL);
    buf_clear(&out);
    json_write_pretty(json_mut_get(root, STR("a")), &out);
    EXPECT_STR(buf_str(&out), "{\n  \"b\": {\n    \"c\": \"\"\n  }\n}");
}

TEST(json_strings_that_are_not_utf8_are_repaired_on_the_way_in)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    AUTO_BUF out = { 0 }, direct = { 0 };
    struct str s = STR("a\xff\xc3é\xe2\x82");
    json_write_mut(json_new_str(&b, s), &out);
    json_write_string(s, &direct);
    EXPECT_STR(buf_str(&out), "\"a\xef\xbf\xbd\xef\xbf\xbdé\xef\xbf\xbd\xef\xbf\xbd\"");
    EXPECT_STR(buf_str(&direct), buf_str(&out).p);
}

TEST(json_strings_are_escaped)
{
    AUTO_BUF out = { 0 };
    json_write_string(STR("\"\\/\b\f\n\r\t\x1f\x7f é\0"), &out);
    EXPECT_STR(buf_str(&out), "\"\\\"\\\\/\\b\\f\\n\\r\\t\\u001f\\u007f é\\u0000\"");
}

TEST(json_reader_reads_one_document_after_another_in_the_same_memory)
{
    struct json_reader reader = { 0 };
    struct doc doc;
    struct err err = { 0 };
    for (int i = 0; i < 3; i++) {
        EXPECT_OK(json_reader_read(&reader, STR("{\"a\":[1,2]}"), &doc, &err), err);
        EXPECT_EQ(json_count(json_path(doc.root, "a")), 2);
        doc_done(&doc);
        EXPECT_ERR(json_reader_read(&reader, STR("{\"a\":"), &doc, &err), err, ERR_INVALID);
        EXPECT_ERR(json_reader_read(&reader, STR(""), &doc, &err), err, ERR_INVALID);
    }
    AUTO_BUF large = { 0 }; /* beyond what a reader keeps */
    buf_addz(&large, "[0");
    for (int i = 0; i < 500000; i++)
        buf_addz(&large, ",1");
    buf_addc(&large, ']');
    EXPECT_OK(json_reader_read(&reader, buf_str(&large), &doc, &err), err);
    EXPECT_EQ(json_count(doc.root), 500001);
    doc_done(&doc);
    json_reader_done(&reader);
}

TEST(a_wiped_document_has_no_text_left)
{
    struct doc doc;
    struct err err = { 0 };
    EXPECT_OK(json_read(STR("{\"password\":\"hun\\u0074er2\",\"n\":[\"last\"]}"), &doc, &err), err);
    struct str first = json_str(json_path(doc.root, "password"));
    struct str last = json_str(json_at(json_path(doc.root, "n"), 0));
    EXPECT_STR(first, "hunter2");
    doc_wipe(&doc);
    for (size_t i = 0; i < first.len; i++)
        EXPECT_EQ(first.p[i], 0);
    for (size_t i = 0; i < last.len; i++)
        EXPECT_EQ(last.p[i], 0);
    doc_done(&doc);
}
