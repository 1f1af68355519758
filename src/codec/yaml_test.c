#include "support/test.h"

#include "codec/yaml.h"

#include <time.h>

/* --- helpers --- */

static struct docs read_ok(struct str text)
{
    struct docs docs;
    struct err err = { 0 };
    EXPECT_OK(yaml_read(text, &docs, NULL, &err), err);
    return docs;
}

/* The documents of `yaml` in canonical JSON, one per line. */
static void expect_json(const char *yaml, const char *want)
{
    struct docs docs = read_ok(str_of(yaml));
    AUTO_BUF got = { 0 };
    for (size_t i = 0; i < docs.count; i++) {
        if (i > 0)
            buf_addc(&got, '\n');
        json_write_canonical(docs.items[i].root, &got);
    }
    if (!str_eqz(buf_str(&got), want))
        print_error("for the YAML text:\n%s\n", yaml);
    EXPECT_STR(buf_str(&got), want);
    docs_done(&docs);
}

static void expect_refused(struct str yaml, uint32_t line, uint32_t col, const char *words)
{
    struct docs docs;
    struct text_pos at = { 0, 0 };
    struct err err = { 0 };
    int rc = yaml_read(yaml, &docs, &at, &err);
    if (rc >= 0 || at.line != line || at.col != col)
        print_error("at %u:%u, for the YAML text:\n%.*s\n", at.line, at.col,
                    (int)(yaml.len < 300 ? yaml.len : 300), yaml.p);
    EXPECT_ERR(rc, err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), words);
    EXPECT_EQ(at.line, line);
    EXPECT_EQ(at.col, col);
}

static void expect_refused_z(const char *yaml, uint32_t line, uint32_t col, const char *words)
{
    expect_refused(str_of(yaml), line, col, words);
}

static void expect_at(const struct doc *doc, const json_val *v, uint32_t line, uint32_t col)
{
    struct text_pos pos = doc_position(doc, v);
    EXPECT_TRUE(v != NULL);
    EXPECT_EQ(pos.line, line);
    EXPECT_EQ(pos.col, col);
}

/* --- documents --- */

TEST(yaml_streams_have_many_documents_and_drop_empty_ones)
{
    expect_json("a: 1", "{\"a\":1}");
    expect_json("---\na: 1\n---\n# only a comment\n---\n...\n---\n- b\n...\n# end\n",
                "{\"a\":1}\n[\"b\"]");
    expect_json("a: 1\n---\nnull\n---\n~\n---\n", "{\"a\":1}");
    expect_json("", "");
    expect_json("\n# nothing\n\n", "");
    expect_json("--- text\n--- {a: b}\n", "\"text\"\n{\"a\":\"b\"}");
    expect_json("%YAML 1.1\n---\na: 1\n", "{\"a\":1}");
}

TEST(yaml_line_endings_and_a_byte_order_mark_do_not_matter)
{
    expect_json("a: 1\r\nb:\r\n- x\r\n---\r\nc: |\r\n  p\r\n  q\r\n",
                "{\"a\":1,\"b\":[\"x\"]}\n{\"c\":\"p\\nq\\n\"}");
    expect_json("a: x\rb: z\r", "{\"a\":\"x\",\"b\":\"z\"}");
    expect_json("\xef\xbb\xbf"
                "a: 1\n",
                "{\"a\":1}");
    expect_json("\xef\xbb\xbf{\"a\": 1}", "{\"a\":1}");
    struct docs docs = read_ok(STR("\xef\xbb\xbf"
                                   "a: b\n"));
    expect_at(&docs.items[0], docs.items[0].root, 1, 1);
    docs_done(&docs);
}

TEST(yaml_block_and_flow_styles)
{
    expect_json("a:\n- 1\n-\n  - 2\n- - 3\n  - b: 4\n    c: 5\n",
                "{\"a\":[1,[2],[3,{\"b\":4,\"c\":5}]]}");
    expect_json("a: {b: [1, 'x y', \"z\\n\"], c, d: , }",
                "{\"a\":{\"b\":[1,\"x y\",\"z\\n\"],\"c\":null,\"d\":null}}");
    expect_json("a: [b: c]", "{\"a\":[{\"b\":\"c\"}]}");
    expect_json("? a\n: b\n? c\n", "{\"a\":\"b\",\"c\":null}");
    expect_json("a: x\n  y\n\n  z", "{\"a\":\"x y\\nz\"}");
    expect_json("a: |\n  x\n   y\n\n  z\n\n\nb: |+\n  x\n\nc: |-\n  x\n",
                "{\"a\":\"x\\n y\\n\\nz\\n\",\"b\":\"x\\n\\n\",\"c\":\"x\"}");
    expect_json("a: >\n  x\n  y\n\n  z\n   w\nb: >-\n  x\n  y\n",
                "{\"a\":\"x y\\nz\\n w\\n\",\"b\":\"x y\"}");
    expect_json("a: |2\n    x\n", "{\"a\":\"  x\\n\"}");
    expect_json("a: 'it''s'\nb: \"\\x41\\u00e9\\U0001F600\\\n  c\"\n",
                "{\"a\":\"it's\",\"b\":\"Aé😀c\"}");
    expect_json(
        "a: -x\nb: --flag\nc: x:y\nd: x#y # z\ne: http://h:80/\n",
        "{\"a\":\"-x\",\"b\":\"--flag\",\"c\":\"x:y\",\"d\":\"x#y\",\"e\":\"http://h:80/\"}");
}

/* --- scalars --- */

/* Read with sigs.k8s.io/yaml 1.6.0 (go-yaml v2.4.2), which is what kubectl resolves with. */
static const struct {
    const char *yaml, *json;
} go_yaml_scalars[] = {
    { "y", "true" },
    { "Y", "true" },
    { "yes", "true" },
    { "Yes", "true" },
    { "YES", "true" },
    { "yEs", "\"yEs\"" },
    { "on", "true" },
    { "On", "true" },
    { "ON", "true" },
    { "oN", "\"oN\"" },
    { "true", "true" },
    { "True", "true" },
    { "TRUE", "true" },
    { "tRUE", "\"tRUE\"" },
    { "n", "false" },
    { "N", "false" },
    { "no", "false" },
    { "No", "false" },
    { "NO", "false" },
    { "off", "false" },
    { "Off", "false" },
    { "OFF", "false" },
    { "false", "false" },
    { "False", "false" },
    { "FALSE", "false" },
    { "yess", "\"yess\"" },
    { "~", "null" },
    { "null", "null" },
    { "Null", "null" },
    { "NULL", "null" },
    { "", "null" },
    { "nULL", "\"nULL\"" },
    { "nil", "\"nil\"" },
    { "0", "0" },
    { "00", "0" },
    { "-0", "0" },
    { "1", "1" },
    { "+1", "1" },
    { "-1", "-1" },
    { "0x1F", "31" },
    { "0X1f", "31" },
    { "-0x1f", "-31" },
    { "+0x1f", "31" },
    { "0x", "\"0x\"" },
    { "0x_f", "15" },
    { "0xg", "\"0xg\"" },
    { "0o17", "15" },
    { "0O17", "15" },
    { "-0o17", "-15" },
    { "0o8", "\"0o8\"" },
    { "0o", "\"0o\"" },
    { "017", "15" },
    { "-017", "-15" },
    { "0777_7", "4095" },
    { "08", "8" },
    { "09.5", "9.5" },
    { "0b101", "5" },
    { "0B101", "5" },
    { "-0b101", "-5" },
    { "0b2", "\"0b2\"" },
    { "0b", "\"0b\"" },
    { "1_000", "1000" },
    { "1__0", "10" },
    { "1_", "1" },
    { "_1", "\"_1\"" },
    { "0_7", "7" },
    { "1,000", "\"1,000\"" },
    { "9223372036854775807", "9223372036854775807" },
    { "9223372036854775808", "9223372036854775808" },
    { "18446744073709551615", "18446744073709551615" },
    { "-9223372036854775808", "-9223372036854775808" },
    { "0xffffffffffffffff", "18446744073709551615" },
    { "0x10000000000000000", "\"0x10000000000000000\"" },
    { "1.5", "1.5" },
    { "1.0", "1" },
    { "1.", "1" },
    { "0.", "0" },
    { ".5", "0.5" },
    { "-.5", "-0.5" },
    { "+.5", "0.5" },
    { ".5e1", "5" },
    { ".5_1", "0.51" },
    { "._5", "\"._5\"" },
    { ".5_", "\".5_\"" },
    { ".", "\".\"" },
    { ".e1", "\".e1\"" },
    { ".1e", "\".1e\"" },
    { "1e3", "1000" },
    { "1E3", "1000" },
    { "1e+3", "1000" },
    { "1e+", "\"1e+\"" },
    { "12e", "\"12e\"" },
    { "1.e1", "10" },
    { "0.1_5", "0.15" },
    { "1.5e-3", "0.0015" },
    { "1e21", "1e21" },
    { "123456789.123456789", "123456789.12345679" },
    { "0x1p3", "\"0x1p3\"" },
    { "1e400", "\"1e400\"" },
    { "-1e400", "\"-1e400\"" },
    { "1e-400", "0" },
    { "1.2.3", "\"1.2.3\"" },
    { "10.0.0.1", "\"10.0.0.1\"" },
    { "+", "\"+\"" },
    { "1e3e", "\"1e3e\"" },
    { "1:30", "\"1:30\"" },
    { "190:20:30", "\"190:20:30\"" },
    { "2001-01-01", "\"2001-01-01\"" },
    { "2001-12-14t21:59:43.10-05:00", "\"2001-12-14t21:59:43.10-05:00\"" },
    { "2001-12-14 21:59:43.10", "\"2001-12-14 21:59:43.10\"" },
    { "<<", "\"<<\"" },
    { "=", "\"=\"" },
    { "'1'", "\"1\"" },
    { "\"1\"", "\"1\"" },
    { "'yes'", "\"yes\"" },
    { "|-\n  1", "\"1\"" },
    { "!!str 1", "\"1\"" },
    { "!!str", "\"\"" },
    { "! 1", "\"1\"" },
    { "!!int '1'", "1" },
    { "!!float 1", "1" },
    { "!!float '1.5'", "1.5" },
    { "!!bool 'yes'", "true" },
    { "!!null ''", "null" },
    { "!!binary aGk=", "\"hi\"" },
    { "!!binary |\n  aG\n  k=\n", "\"hi\"" },
    { "!!binary gA==", "\"\xef\xbf\xbd\"" }, /* not UTF-8 */
    { "!!map {a: 1}", "{\"a\":1}" },
    { "!!seq [a]", "[\"a\"]" },
    { "&x", "null" },
    { "&x !!str 1", "\"1\"" },
    { "!!str &x 1", "\"1\"" },
};

TEST(yaml_scalars_resolve_as_kubectl_resolves_them)
{
    for (size_t i = 0; i < KV_COUNT_OF(go_yaml_scalars); i++) {
        AUTO_BUF yaml = { 0 }, want = { 0 };
        buf_addf(&yaml, "v: %s\n", go_yaml_scalars[i].yaml);
        buf_addf(&want, "{\"v\":%s}", go_yaml_scalars[i].json);
        expect_json(yaml.p, want.p);
    }
}

TEST(yaml_scalars_that_json_cannot_hold_are_refused)
{
    static const char *const bad[] = { ".inf", "-.INF", "+.Inf", ".nan", ".NaN" };
    static const char *const huge[] = { "18446744073709551616",     "-9223372036854775809",
                                        "123456789012345678901234", "07777777777777777777777777",
                                        "0999999999999999999999",   "1_0000000000000000000000" };
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, "v: %s", bad[i]);
        expect_refused(buf_str(&yaml), 1, 4, "not numbers in JSON");
    }
    for (size_t i = 0; i < KV_COUNT_OF(huge); i++) {
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, "- %s", huge[i]);
        expect_refused(buf_str(&yaml), 1, 3, "too large for 64 bits");
    }
}

TEST(yaml_tags_that_do_not_fit_are_refused)
{
    expect_refused_z("v: !!int abc", 1, 4, "\"abc\" is not a value of the tag !!int");
    expect_refused_z("v: !!int 1.5", 1, 4, "not a value of the tag !!int");
    expect_refused_z("v: !!bool 1", 1, 4, "tag !!bool");
    expect_refused_z("v: !!null x", 1, 4, "tag !!null");
    expect_refused_z("v: !!float yes", 1, 4, "tag !!float");
    expect_refused_z("v: !!binary aGk", 1, 4, "the tag !!binary: not base64");
    expect_refused_z("v: !!binary AA==", 1, 4, "NUL character");
    expect_refused_z("a: 1\nv: !custom 1", 2, 4, "the tag \"!custom\" is not supported");
    expect_refused_z("v: !!set {a}", 1, 4, "the tag \"!!set\" is not supported");
    expect_refused_z("v: !!map [a]", 1, 4, "the tag \"!!map\"");
    expect_refused_z("v: !!seq a", 1, 4, "the tag \"!!seq\"");
    expect_refused_z("%TAG !e! tag:example.com,2000:\n---\nv: !e!x 1", 3, 4, "example.com");
}

TEST(yaml_keys_become_strings)
{
    expect_json(
        "1: a\n0x10: b\n1.5: c\nyes: d\n'2': e\n1e3: f\n2001-01-01: g\n",
        "{\"1\":\"a\",\"1.5\":\"c\",\"1000\":\"f\",\"16\":\"b\",\"2\":\"e\",\"2001-01-01\":\"g\",\"true\":\"d\"}");
    expect_json("a: &k name\n*k : v\n", "{\"a\":\"name\",\"name\":\"v\"}");
    expect_refused_z("a: 1\n~: b", 2, 1, "a key is a string, not null");
    expect_refused_z("? {a: b}\n: c", 1, 3, "a key is a string, not a mapping");
    expect_refused_z("[a]: c", 1, 1, "a key is a string, not a mapping or sequence");
    expect_refused_z("a: &k [1]\nb: {*k : v}\n", 2, 5, "a key is a string, not a mapping");
}

TEST(yaml_duplicate_keys_are_refused_with_both_lines)
{
    expect_refused_z("a: 1\nb: 2\n\"a\": 3\n", 3, 1, "duplicate key \"a\", first on line 1");
    expect_refused_z("x:\n- {p: 1,\n   q: 2, p: 3}\n", 3, 10,
                     "duplicate key \"p\", first on line 2");
    expect_refused_z("1: a\n'1': b\n", 2, 1, "duplicate key \"1\"");
    expect_json("a: {k: 1}\nb: {k: 1}\n", "{\"a\":{\"k\":1},\"b\":{\"k\":1}}");
}

/* --- anchors, aliases, merge keys --- */

TEST(yaml_aliases_are_expanded)
{
    expect_json("a: &x {k: [1, 2]}\nb: *x\nc: [*x, *x]\n",
                "{\"a\":{\"k\":[1,2]},\"b\":{\"k\":[1,2]},\"c\":[{\"k\":[1,2]},{\"k\":[1,2]}]}");
    expect_json("a: &x 1\nb: &x 2\nc: *x\n",
                "{\"a\":1,\"b\":2,\"c\":2}"); /* the nearest before it */
    expect_refused_z("a: *nope", 1, 4, "the alias \"nope\" has no anchor before it");
    expect_refused_z("a: *x\nb: &x 1", 1, 4, "no anchor before it");
    expect_refused_z("a: &x 1\n---\nb: *x", 3, 4, "no anchor before it"); /* documents are apart */
    expect_refused_z("a: &x\n  b: [*x]", 2, 7, "inside the value it stands for");
    expect_refused_z("&x [*x]", 1, 5, "inside the value");
}

TEST(yaml_merge_keys_add_what_is_not_there)
{
    expect_json("a: &x {k: 1, l: 2}\nb: {<<: *x, k: 3}\nc: {k: 3, <<: *x}\n",
                "{\"a\":{\"k\":1,\"l\":2},\"b\":{\"k\":3,\"l\":2},\"c\":{\"k\":3,\"l\":2}}");
    expect_json("- &x {k: 1, l: 2}\n- &y {k: 5, m: 6}\n- {<<: [*x, *y, {o: 7, l: 8}], m: 0}\n",
                "[{\"k\":1,\"l\":2},{\"k\":5,\"m\":6},{\"k\":1,\"l\":2,\"m\":0,\"o\":7}]");
    expect_json("- &x {a: 1}\n- &y {<<: *x, b: 2}\n- {<<: *y, c: 3}\n- <<: [*x, *x]\n",
                "[{\"a\":1},{\"a\":1,\"b\":2},{\"a\":1,\"b\":2,\"c\":3},{\"a\":1}]");
    expect_json("a: {'<<': {k: 1}}\nb: <<\nc: [<<]",
                "{\"a\":{\"<<\":{\"k\":1}},\"b\":\"<<\",\"c\":[\"<<\"]}");
    expect_refused_z("a:\n  <<: 3", 2, 7, "the value of << is a mapping");
    expect_refused_z("a: {<<: [{}, x]}", 1, 14, "holds mappings only");
    expect_refused_z("a: {<<: {k: 1}, <<: {l: 1}}", 1, 17, "duplicate key \"<<\"");
    expect_refused_z("a: {<<: {k: 1, k: 2}}", 1, 16, "duplicate key \"k\"");
}

/* Nine lines, each ten times the one before. */
static void add_bomb(struct buf *out, const char *open, const char *close)
{
    for (int level = 1; level <= 9; level++) {
        buf_addf(out, "a%d: &a%d %s", level, level, open);
        for (int i = 0; i < 10; i++)
            buf_addf(out, "%s*a%d", i ? "," : "", level - 1);
        buf_addf(out, "%s\n", close);
    }
}

TEST(yaml_expansion_bombs_are_refused_where_they_go_off)
{
    AUTO_BUF laughs = { 0 }, merges = { 0 }, chain = { 0 }, nest = { 0 };
    buf_addz(&laughs, "a0: &a0 lol\n");
    add_bomb(&laughs, "[", "]");
    expect_refused(buf_str(&laughs), 7, 10, "too large when its aliases are expanded");

    /* Work without output: every merge looks at the same few keys again. */
    buf_addz(&merges, "a0: &a0 {k: v}\n");
    add_bomb(&merges, "{<<: [", "]}");
    expect_refused(buf_str(&merges), 7, 14, "too large when its aliases are expanded");

    /* Depth that no line of the text shows. */
    buf_addz(&nest, "a0: &a0 [x]\n");
    buf_addz(&chain, "a0: &a0 {x: y}\n");
    for (int level = 1; level <= 200; level++) {
        buf_addf(&nest, "a%d: &a%d [*a%d]\n", level, level, level - 1);
        buf_addf(&chain, "a%d: &a%d {<<: *a%d}\n", level, level, level - 1);
    }
    expect_refused(buf_str(&nest), 100, 12, "aliases are nested too deep");
    expect_refused(buf_str(&chain), 102, 18, "merge keys are nested too deep");
}

/* --- limits and bad bytes --- */

TEST(yaml_depth_is_limited)
{
    for (int depth = YAML_DEPTH_MAX; depth <= YAML_DEPTH_MAX + 1; depth++) {
        AUTO_BUF flow = { 0 }, block = { 0 }, dashes = { 0 };
        buf_addz(&flow, "a: ");
        for (int i = 1; i < depth; i++)
            buf_addc(&flow, '[');
        for (int i = 1; i < depth; i++)
            buf_addc(&flow, ']');
        for (int i = 0; i < depth; i++) {
            for (int j = 0; j < i; j++)
                buf_addc(&block, ' ');
            buf_addz(&block, "a:\n");
            buf_addz(&dashes, "- ");
        }
        if (depth > YAML_DEPTH_MAX) {
            expect_refused(buf_str(&flow), 1, 103, "nested more than 100 levels deep");
            expect_refused(buf_str(&block), 101, 101, "nested more than 100 levels deep");
            expect_refused(buf_str(&dashes), 1, 201, "nested more than 100 levels deep");
        } else {
            struct buf *texts[] = { &flow, &block, &dashes };
            for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
                struct docs docs = read_ok(buf_str(texts[i]));
                docs_done(&docs);
            }
        }
    }
}

TEST(yaml_document_count_is_limited)
{
    AUTO_BUF yaml = { 0 }, json = { 0 };
    for (int i = 0; i <= YAML_DOCUMENTS_MAX; i++) {
        buf_addz(&yaml, "--- 1\n");
        buf_addz(&json, "{}\n");
    }
    expect_refused(buf_str(&yaml), YAML_DOCUMENTS_MAX + 1, 5, "more than 100000 documents");
    expect_refused(buf_str(&json), YAML_DOCUMENTS_MAX + 1, 1, "more than 100000 documents");
}

TEST(yaml_bad_bytes_are_named)
{
    expect_refused(STR("a: b\nc: \0d\n"), 2, 4, "NUL byte");
    expect_refused_z("a: \"x\\0y\"\n", 1, 4, "NUL character in a string");
    expect_refused_z("a: b\nc: \xff\n", 2, 4, "invalid UTF-8");
    expect_refused_z("a: b # \xc3\n", 1, 8, "invalid UTF-8");
    expect_refused_z("a: \xed\xa0\x80\n", 1, 4, "invalid UTF-8");
    expect_refused_z("a: \xe2\x82", 1, 4, "invalid UTF-8");
    expect_refused(STR("\xff\xfe"
                       "a\0:\0"),
                   1, 1, "UTF-16");
    expect_refused(STR("\xfe\xff\0a"), 1, 1, "UTF-16");
    expect_refused_z("a: 1\n\xef\xbb\xbf"
                     "b: 2\n",
                     2, 1, "byte order mark inside the text");
    expect_refused_z("a: \x01\n", 1, 4, "control characters");
}

TEST(yaml_syntax_errors_name_place_and_trouble)
{
    expect_refused_z("a:\n\tb: c\n", 2, 1, "a tab character: YAML is indented with spaces");
    expect_refused_z("a: b: c\n", 1, 5, "mapping values are not allowed");
    expect_refused_z("é: ü: c\n", 1, 7,
                     "mapping values are not allowed"); /* bytes, not characters */
    expect_refused_z("a: @x\n", 1, 4, "cannot start with '@'");
    expect_refused_z("a: 1\n...\nb: 2\n", 3, 1, "expected its indentation, or ---");
    expect_refused_z(
        "a: 'x\nb: 1\n", 3, 1,
        "unexpected end of stream (while scanning a quoted scalar that starts on line 1)");
    expect_refused_z("a: [1, 2\nb: 3\n", 2, 2, "that starts on line 1");
    expect_refused_z("a: 1\n b: 2\n", 2, 3, "mapping values are not allowed");
    expect_refused_z("a:\n  - 1\n - 2\n", 3, 2, "did not find expected");
    expect_refused_z("a: 1\r\nb: {\r\n", 3, 1, "the text ends too early");
    expect_refused_z("a: 1\n---\nb: ]\n", 3, 4, "did not find expected");
    expect_refused_z("a: \"\\q\"\n", 1, 5, "unknown escape");
    struct err err = { 0 };
    struct docs docs;
    EXPECT_ERR(yaml_read(STR("a: b: c"), &docs, NULL, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "line 1, column 5: mapping values");
}

/* --- JSON --- */

TEST(yaml_json_texts_are_read_as_json)
{
    expect_json(" \n{\"a\": [1, \"\\ud83d\\ude00\"]}\n", "{\"a\":[1,\"😀\"]}");
    expect_json("{\"a\":1}{\"b\":2}\r\n[3]", "{\"a\":1}\n{\"b\":2}\n[3]");
    expect_json("{\"a\":1}\n---\n{\"b\":2}\n", "{\"a\":1}\n{\"b\":2}");
    expect_json("{a: b, c: [d,]}", "{\"a\":\"b\",\"c\":[\"d\"]}");
    expect_json("{\"a\": 1, # note\n \"b\": 2}", "{\"a\":1,\"b\":2}");
    expect_json("[]", "[]");
    struct docs docs = read_ok(STR("{\"a\":1} {\"b\":\n 2}"));
    expect_at(&docs.items[1], docs.items[1].root, 1, 9);
    expect_at(&docs.items[1], json_get(docs.items[1].root, STR("b")), 2, 2);
    docs_done(&docs);
}

TEST(yaml_errors_speak_the_language_the_text_looks_like)
{
    expect_refused_z("{\"a\": 1,\n \"b\" 2}", 2, 6, "expected a colon after object key");
    expect_refused_z("{\"a\": [1, 2}", 1, 12, "expected a comma or a closing bracket");
    expect_refused_z("{\"a\": {\"b\": 1\n", 2, 1, "the text ends too early");
    expect_refused_z("{\"a\": 1}\n x", 2, 2, "unexpected text after the JSON value");
    expect_refused_z("{\"a\":1,\"a\":2}", 1, 8, "duplicate key \"a\"");
    expect_refused_z("{\"a\": 1}\n{\"b\": 1,\n \"b\": 2}", 3, 2,
                     "duplicate key \"b\", first on line 2");
    expect_refused_z("{\"a\": 1e999}", 1, 7,
                     "too large"); /* not a string, as it would be in YAML */
    expect_refused_z("[{a: b, c: d}\n", 2, 1, "did not find expected ',' or ']'");
    expect_refused_z("{a: b, c: ]}\n", 1, 11, "did not find expected node content");
}

/* --- positions --- */

TEST(yaml_positions_of_keys_and_values)
{
    struct docs docs = read_ok(STR("# é comment\n"
                                   "kind: Pod\n"
                                   "spec:\n"
                                   "  list:\n"
                                   "  - name: a\n"
                                   "    é: [x, {w: z}]\n"
                                   "  -   'quoted'\n"
                                   "  text: |\n"
                                   "    lines\n"
                                   "  none:\n"
                                   "  tagged: !!str 5\n"
                                   "---\n"
                                   "second: &s {deep: [1]}\n"
                                   "third: *s\n"));
    const struct doc *d = &docs.items[0];
    const json_val *spec = json_get(d->root, STR("spec"));
    const json_val *first = json_at(json_get(spec, STR("list")), 0);
    const json_val *flow = json_get(first, STR("é"));

    EXPECT_EQ(docs.count, 2);
    expect_at(d, d->root, 2, 1);
    expect_at(d, json_get(d->root, STR("kind")), 2, 7);
    expect_at(d, spec - 1, 3, 1);
    expect_at(d, spec, 4, 3);
    expect_at(d, json_get(spec, STR("list")), 5, 3);
    expect_at(d, first, 5, 5);
    expect_at(d, json_get(first, STR("name")), 5, 11);
    expect_at(d, flow - 1, 6, 5);
    expect_at(d, flow, 6, 9);
    expect_at(d, json_at(flow, 0), 6, 10);
    expect_at(d, json_path(json_at(flow, 1), "w"), 6, 17);
    expect_at(d, json_at(json_get(spec, STR("list")), 1), 7, 7);
    expect_at(d, json_get(spec, STR("text")), 8, 9);
    expect_at(d, json_get(spec, STR("none")) - 1, 10, 3);
    expect_at(d, json_get(spec, STR("none")), 10, 8);
    expect_at(d, json_get(spec, STR("tagged")), 11, 11);
    EXPECT_EQ(doc_position(d, NULL).line, 0);

    d = &docs.items[1];
    expect_at(d, json_get(d->root, STR("second")), 13, 9);
    expect_at(d, json_get(d->root, STR("third")) - 1, 14, 1);
    expect_at(d, json_get(d->root, STR("third")), 13, 9); /* behind an alias: at the anchor */
    expect_at(d, json_at(json_path(d->root, "third.deep"), 0), 13, 20);
    docs_done(&docs);
}

TEST(yaml_positions_of_merged_members_are_where_they_were_written)
{
    struct docs docs = read_ok(STR("- &x\n  k: 1\n  l: 2\n- m: 3\n  <<: *x\n  l: 4\n"));
    const struct doc *d = &docs.items[0];
    const json_val *merged = json_at(d->root, 1);
    expect_at(d, json_get(merged, STR("k")), 2, 6);
    expect_at(d, json_get(merged, STR("l")), 6, 6);
    expect_at(d, json_get(merged, STR("m")), 4, 6);
    docs_done(&docs);
}

TEST(yaml_reading_takes_linear_time)
{
    AUTO_BUF wide = { 0 }, keys = { 0 };
    for (int i = 0; i < 100000; i++) {
        buf_addf(&wide, "- {name: é%d, list: [a, b]}\n", i);
        buf_addf(&keys, "key-%d:\n  value: 1\n", i);
    }
    clock_t begin = clock();
    struct docs a = read_ok(buf_str(&wide)), b = read_ok(buf_str(&keys));
    EXPECT_TRUE((double)(clock() - begin) / CLOCKS_PER_SEC <
                20); /* 0.5 s; quadratic takes minutes */
    expect_at(&a.items[0], json_at(a.items[0].root, 99999), 100000, 3);
    docs_done(&a);
    docs_done(&b);
}
