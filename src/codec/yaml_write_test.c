#include "support/test.h"

#include "base/rng.h"
#include "codec/yaml.h"
#include "codec/yaml_scalar.h"

static void expect_yaml(const char *json, const char *want)
{
    struct doc doc;
    struct err err = { 0 };
    EXPECT_OK(json_read(str_of(json), &doc, &err), err);
    AUTO_BUF out = { 0 };
    yaml_write(doc.root, &out);
    EXPECT_STR(buf_str(&out), want);
    doc_done(&doc);
}

TEST(yaml_is_written_as_kubectl_writes_it)
{
    expect_yaml(
        "{\"kind\":\"Pod\",\"spec\":{\"on\":true,\"m\":null,\"d\":1.5,\"list\":[{\"a\":1,\"b\":[\"x\",[2,3],{}]},[],\"y\"],\"e\":{}}}",
        "kind: Pod\n"
        "spec:\n"
        "  \"on\": true\n"
        "  m: null\n"
        "  d: 1.5\n"
        "  list:\n"
        "  - a: 1\n"
        "    b:\n"
        "    - x\n"
        "    - - 2\n"
        "      - 3\n"
        "    - {}\n"
        "  - []\n"
        "  - \"y\"\n"
        "  e: {}\n");
    expect_yaml(
        "{\"script\":\"#!/bin/sh\\n  echo hi\\n\",\"l\":[\"a\\nb\"],\"keep\":\"x\\n\\n\",\"in\":\"\\n  x\\ny\"}",
        "script: |\n  #!/bin/sh\n    echo hi\nl:\n- |-\n  a\n  b\nkeep: |+\n  x\n\nin: |2-\n\n    x\n  y\n");
    expect_yaml("[1e30,1e-7,0.5,-3,1.5e300]", "- 1.0e+30\n- 1.0e-7\n- 0.5\n- -3\n- 1.5e+300\n");
    expect_yaml("[]", "[]\n");
    expect_yaml("\"a\"", "a\n");
    expect_yaml("[[[1]]]", "- - - 1\n");
}

/* Each line of `lines` is a string; all are plain, or none. */
static void expect_plain(const char *lines, bool want)
{
    struct str rest = str_of(lines), line;
    for (bool more = true; more;) {
        more = str_cut(rest, '\n', &line, &rest);
        if (scalar_is_plain(line) != want)
            print_error("the string <%.*s>\n", STR_ARG(line));
        EXPECT_EQ(scalar_is_plain(line), want);
    }
}

TEST(yaml_strings_are_quoted_when_they_would_be_something_else)
{
    expect_plain("a\na b\n-x\n--flag=1\na:b\nx#y\n10.0.0.1\n1.2.3\nhttp://x:80/y\né\n£\n😀\nyess",
                 true);
    expect_plain("m5.large\na-1\n?x\n:x\n2Gi\na, b\nx[0]\nit's\nsay \"x\"\n0b2\ne3\nNone\n1e\na_b",
                 true);
    expect_plain("\n \na \n a\nyes\nNo\ny\non\nnull\n~\n1\n1.0\n0x1f\n1e3\n0o7\n1_000\n.5\n.inf",
                 false);
    expect_plain(
        "-\n- a\n?\n? a\n:\n: a\na: b\na:\na #b\n#a\n&a\n*a\n!a\n|\n>\n'a\n\"a\n%a\n@a\n`a", false);
    expect_plain("[a\n{a\n]\n}\n,a\n---\n--- a\n...\n<<\n=\n2001-01-01\n22:22\n1:30:00\n+1:2.5",
                 false);
    expect_plain("0x_\n.5_\n99999999999999999999\na\tb\n\x7f\n\xc2\x85\n\xe2\x80\xa8\n\xef\xbb\xbf",
                 false);
}

static struct str random_string(struct rng *r, struct buf *out)
{
    static const char *const parts[] = { "a",
                                         "b",
                                         "é",
                                         " ",
                                         "  ",
                                         "\n",
                                         "\n\n",
                                         "\t",
                                         ":",
                                         "#",
                                         "-",
                                         "- ",
                                         "'",
                                         "\"",
                                         "\\",
                                         "{",
                                         "[",
                                         ",",
                                         "?",
                                         "|",
                                         ">",
                                         "!",
                                         "&",
                                         "*",
                                         "%",
                                         "@",
                                         "~",
                                         "0",
                                         "1",
                                         ".",
                                         "e",
                                         "_",
                                         "x",
                                         "yes",
                                         "no",
                                         "null",
                                         "\r",
                                         "\x01",
                                         "\x7f",
                                         "\xc2\x85",
                                         "\xe2\x80\xa8",
                                         "\xef\xbb\xbf",
                                         "😀",
                                         "---",
                                         "...",
                                         "<<",
                                         "=",
                                         ": ",
                                         " #",
                                         "true",
                                         "2001-01-01",
                                         "0x",
                                         "\xef\xbf\xbf" };
    buf_clear(out);
    uint64_t count = rng_below(r, 7);
    for (uint64_t i = 0; i < count; i++)
        buf_addz(out, parts[rng_below(r, KV_COUNT_OF(parts))]);
    if (rng_below(r, 200) == 0) {
        for (int i = 0; i < 1200; i++) /* longer than a reader looks for the ':' of a key */
            buf_addc(out, 'k');
    }
    return buf_str(out);
}

static json_mut *random_tree(struct rng *r, struct json_build *b, unsigned depth,
                             struct buf *scratch)
{
    static const double doubles[] = {
        0.5, -1.25, 1e100, 1e-7, 1e20, 3.0, 123456.789, -0.0, 5e-324
    };
    json_mut *v;
    uint64_t count = rng_below(r, 4);
    switch (rng_below(r, depth ? 8 : 6)) {
    case 0:
        return json_new_null(b);
    case 1:
        return json_new_bool(b, rng_below(r, 2));
    case 2:
        return json_new_i64(b, (int64_t)rng_next(r));
    case 3:
        return json_new_double(b, doubles[rng_below(r, KV_COUNT_OF(doubles))]);
    case 4:
    case 5:
        return json_new_str(b, random_string(r, scratch));
    case 6:
        v = json_new_array(b);
        for (uint64_t i = 0; i < count; i++)
            json_push(b, v, random_tree(r, b, depth - 1, scratch));
        return v;
    default:
        v = json_new_object(b);
        for (uint64_t i = 0; i < count; i++) {
            AUTO_BUF key = { 0 };
            random_string(r, &key);
            json_set(b, v, buf_str(&key), random_tree(r, b, depth - 1, scratch));
        }
        return v;
    }
}

/* Null documents are dropped when read, so the tree is always inside a list. */
TEST(yaml_what_is_written_reads_back_equal)
{
    struct rng r;
    uint64_t seed = 99;
    print_message("# seed %llu\n", (unsigned long long)seed);
    rng_init(&r, seed);
    AUTO_BUF scratch = { 0 };
    for (int round = 0; round < 20000; round++) {
        AUTO_JSON_BUILD b;
        json_build_init(&b);
        AUTO_BUF json = { 0 }, yaml = { 0 };
        json_mut *list = json_new_array(&b);
        json_push(&b, list, random_tree(&r, &b, 4, &scratch));
        json_write_mut(list, &json);
        struct doc doc;
        struct err err = { 0 };
        EXPECT_OK(json_read(buf_str(&json), &doc, &err), err);
        const json_val *tree = json_count(json_at(doc.root, 0)) ? json_at(doc.root, 0) : doc.root;
        yaml_write(tree, &yaml);
        struct docs docs = { 0 };
        int rc = yaml_read(buf_str(&yaml), &docs, NULL, &err);
        if (rc < 0 || docs.count != 1 || !json_equal(docs.items[0].root, tree))
            print_error("tree %s\nwritten as\n%s\n", json.p, yaml.p);
        EXPECT_OK(rc, err);
        EXPECT_EQ(docs.count, 1);
        EXPECT_TRUE(json_equal(docs.items[0].root, tree));
        docs_done(&docs);
        doc_done(&doc);
    }
}
