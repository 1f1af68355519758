#include "support/test.h"

#include "codec/json.h"

#include <time.h>

static struct doc read_ok(struct str text)
{
    struct doc doc;
    struct err err = { 0 };
    EXPECT_OK(json_read(text, &doc, &err), err);
    return doc;
}

static struct doc read_z(const char *text)
{
    return read_ok(str_of(text));
}

static void expect_tree(const json_mut *got, const char *want)
{
    AUTO_BUF text = { 0 };
    json_write_mut(got, &text);
    struct doc a = read_ok(buf_str(&text)), b = read_z(want);
    if (!json_equal(a.root, b.root))
        EXPECT_STR(buf_str(&text), want);
    doc_done(&a);
    doc_done(&b);
}

/* --- merge patch --- */

static void expect_merge(const char *target, const char *patch, const char *want)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    struct doc p = read_z(patch), t = { 0 };
    if (target)
        t = read_z(target);
    expect_tree(json_merge_patch(&b, t.root, p.root), want);
    doc_done(&p);
    if (target)
        doc_done(&t);
}

TEST(merge_patch_does_what_the_table_of_rfc_7386_says)
{
    static const struct {
        const char *target, *patch, *want;
    } cases[] = {
        { "{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}" },
        { "{\"a\":\"b\"}", "{\"a\":null}", "{}" },
        { "{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}" },
        { "{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}" },
        { "{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}" },
        { "{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}" },
        { "{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}" },
        { "[\"a\",\"b\"]", "[\"c\",\"d\"]", "[\"c\",\"d\"]" },
        { "{\"a\":\"b\"}", "[\"c\"]", "[\"c\"]" },
        { "{\"a\":\"foo\"}", "null", "null" },
        { "{\"a\":\"foo\"}", "\"bar\"", "\"bar\"" },
        { "{\"e\":null}", "{\"a\":1}", "{\"e\":null,\"a\":1}" },
        { "[1,2]", "{\"a\":\"b\",\"c\":null}", "{\"a\":\"b\"}" },
        { "{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        expect_merge(cases[i].target, cases[i].patch, cases[i].want);
}

TEST(merge_patch_of_an_absent_target_drops_nulls)
{
    expect_merge(NULL, "{\"a\":{\"b\":null,\"c\":[null]},\"d\":null}", "{\"a\":{\"c\":[null]}}");
    expect_merge(NULL, "7", "7");
}

TEST(merge_patch_keeps_the_order_of_the_target)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    struct doc t = read_z("{\"z\":1,\"m\":{\"q\":1,\"p\":2},\"a\":3}");
    struct doc p = read_z("{\"new\":0,\"m\":{\"p\":9},\"z\":8}");
    AUTO_BUF out = { 0 };
    json_write_mut(json_merge_patch(&b, t.root, p.root), &out);
    EXPECT_STR(buf_str(&out), "{\"z\":8,\"m\":{\"q\":1,\"p\":9},\"a\":3,\"new\":0}");
    doc_done(&t);
    doc_done(&p);
}

TEST(merge_patch_of_large_objects_is_not_quadratic)
{
    AUTO_BUF target = { 0 }, patch = { 0 };
    for (int i = 0; i < 200000; i++) {
        buf_addf(&target, "%c\"%d\":0", i ? ',' : '{', i);
        buf_addf(&patch, "%c\"%d\":1", i ? ',' : '{', i + 100000);
    }
    buf_addc(&target, '}');
    buf_addc(&patch, '}');
    struct doc t = read_ok(buf_str(&target)), p = read_ok(buf_str(&patch));
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    clock_t begin = clock();
    json_mut *merged = json_merge_patch(&b, t.root, p.root);
    EXPECT_TRUE((double)(clock() - begin) / CLOCKS_PER_SEC < 5); /* 0.2 s; quadratic: minutes */
    EXPECT_EQ(yyjson_mut_obj_size(merged), 300000);
    doc_done(&t);
    doc_done(&p);
}

TEST(merge_patch_result_is_no_deeper_than_its_inputs)
{
    AUTO_BUF text = { 0 };
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_addz(&text, "{\"a\":");
    buf_addz(&text, "1");
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_addz(&text, "}");
    expect_merge(text.p, text.p, text.p);
    expect_merge("{\"a\":[1]}", text.p, text.p);
}

/* --- JSON patch --- */

static int apply(struct json_build *b, const char *target, const char *patch, json_mut **out,
                 struct err *err)
{
    struct doc t = read_z(target), p = read_z(patch);
    AUTO_BUF before = { 0 }, after = { 0 };
    json_write(t.root, &before);
    int rc = json_patch(b, t.root, p.root, out, err);
    json_write(t.root, &after);
    EXPECT_STR(buf_str(&after), before.p); /* the target itself never changes */
    doc_done(&t);
    doc_done(&p);
    return rc;
}

static void expect_patch(const char *target, const char *patch, const char *want)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *out = NULL;
    struct err err = { 0 };
    EXPECT_OK(apply(&b, target, patch, &out, &err), err);
    expect_tree(out, want);
}

static void expect_patch_fails(const char *target, const char *patch, const char *words)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *out = NULL;
    struct err err = { 0 };
    EXPECT_ERR(apply(&b, target, patch, &out, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), words);
    EXPECT_TRUE(out == NULL);
}

TEST(json_patch_adds)
{
    expect_patch("{\"foo\":1}", "[{\"op\":\"add\",\"path\":\"/bar\",\"value\":2}]",
                 "{\"foo\":1,\"bar\":2}");
    expect_patch("{\"l\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/l/1\",\"value\":2}]",
                 "{\"l\":[1,2,3]}");
    expect_patch("{\"l\":[1]}",
                 "[{\"op\":\"add\",\"path\":\"/l/0\",\"value\":0},"
                 "{\"op\":\"add\",\"path\":\"/l/2\",\"value\":2}]",
                 "{\"l\":[0,1,2]}");
    expect_patch("{\"l\":[]}", "[{\"op\":\"add\",\"path\":\"/l/-\",\"value\":[\"x\"]}]",
                 "{\"l\":[[\"x\"]]}");
    expect_patch("{}", "[{\"op\":\"add\",\"path\":\"/child\",\"value\":{\"in\":{}}}]",
                 "{\"child\":{\"in\":{}}}");
    expect_patch("{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}");
    expect_patch("{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":[7]}]", "[7]");
    expect_patch("{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/\",\"value\":2}]", "{\"a\":1,\"\":2}");
    expect_patch("{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":1,\"xyz\":9}]",
                 "{\"a\":1,\"b\":1}");
    expect_patch("{\"a\":1}", "[]", "{\"a\":1}");
}

TEST(json_patch_removes_and_replaces)
{
    expect_patch("{\"a\":1,\"b\":2}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{\"b\":2}");
    expect_patch("{\"l\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/l/1\"}]", "{\"l\":[1,3]}");
    expect_patch("{\"l\":[1]}", "[{\"op\":\"remove\",\"path\":\"/l/0\"}]", "{\"l\":[]}");
    expect_patch("{\"a\":1,\"b\":2}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":{}}]",
                 "{\"a\":{},\"b\":2}");
    expect_patch("[1,2,3]", "[{\"op\":\"replace\",\"path\":\"/2\",\"value\":[]}]", "[1,2,[]]");
    expect_patch("[1]", "[{\"op\":\"replace\",\"path\":\"\",\"value\":0}]", "0");
}

TEST(json_patch_moves_and_copies)
{
    expect_patch("{\"foo\":{\"bar\":1,\"baz\":2},\"qux\":{}}",
                 "[{\"op\":\"move\",\"from\":\"/foo/bar\",\"path\":\"/qux/thud\"}]",
                 "{\"foo\":{\"baz\":2},\"qux\":{\"thud\":1}}");
    /* The index of the target counts after the removal. */
    expect_patch("[\"a\",\"b\",\"c\",\"d\"]", "[{\"op\":\"move\",\"from\":\"/1\",\"path\":\"/3\"}]",
                 "[\"a\",\"c\",\"d\",\"b\"]");
    expect_patch("{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a/b\",\"path\":\"/a\"}]",
                 "{\"a\":1}");
    expect_patch("{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a\"}]", "{\"a\":1}");
    expect_patch("{\"a\":1,\"ab\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/ab/c\"}]",
                 "{\"ab\":{\"c\":1}}");
    expect_patch("{\"a\":[1]}",
                 "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/b\"},"
                 "{\"op\":\"add\",\"path\":\"/b/-\",\"value\":2}]",
                 "{\"a\":[1],\"b\":[1,2]}");
    expect_patch("{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/b\"}]",
                 "{\"a\":1,\"b\":{\"a\":1}}");
}

TEST(json_patch_tests_by_value)
{
    static const struct {
        const char *target, *path, *value;
        bool same;
    } cases[] = {
        { "{\"baz\":\"qux\"}", "/baz", "\"qux\"", true },
        { "{\"baz\":\"qux\"}", "/baz", "\"bar\"", false },
        { "{\"n\":10}", "/n", "10.0", true },
        { "{\"n\":10}", "/n", "1e1", true },
        { "{\"n\":10}", "/n", "\"10\"", false },
        { "{\"o\":{\"a\":1,\"b\":[true,null]}}", "/o", "{\"b\":[true,null],\"a\":1}", true },
        { "{\"l\":[1,2]}", "/l", "[2,1]", false },
        { "{\"o\":{\"a\":1}}", "/o", "{\"a\":1,\"b\":2}", false },
        { "{\"n\":null}", "/n", "null", true },
        { "{\"n\":null}", "/n", "0", false },
        { "[]", "", "[]", true },
        { "{\"m~n\":8,\"a/b\":1}", "/m~0n", "8", true },
        { "{\"m~n\":8,\"a/b\":1}", "/a~1b", "1", true },
        { "{\"~1\":10,\"/\":9}", "/~01", "10", true },
        { "{\"\":{\"\":5}}", "//", "5", true },
        { "{\"c%d\":2,\" \":7}", "/ ", "7", true },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF patch = { 0 };
        buf_addf(&patch, "[{\"op\":\"test\",\"path\":\"%s\",\"value\":%s}]", cases[i].path,
                 cases[i].value);
        if (cases[i].same)
            expect_patch(cases[i].target, patch.p, cases[i].target);
        else
            expect_patch_fails(cases[i].target, patch.p, "not the expected one");
    }
}

TEST(json_patch_failures_name_operation_path_and_reason)
{
    static const struct {
        const char *target, *patch, *words;
    } cases[] = {
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b/c\",\"value\":1}]",
          "patch operation 1, path \"/b/c\": there is no member \"b\"" },
        { "{\"a\":1}",
          "[{\"op\":\"test\",\"path\":\"/a\",\"value\":1},{\"op\":\"remove\",\"path\":\"/x\"}]",
          "patch operation 2, path \"/x\": there is no member" },
        { "{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/x\",\"value\":1}]",
          "there is no member \"x\"" },
        { "{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/x\",\"path\":\"/y\"}]",
          "there is no member \"x\"" },
        { "{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/b\",\"value\":1}]", "no object or array" },
        { "{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a/b\",\"value\":1}]", "no object or array" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/2\",\"value\":1}]", "past the end" },
        { "[1]", "[{\"op\":\"replace\",\"path\":\"/1\",\"value\":1}]", "past the end" },
        { "[]", "[{\"op\":\"remove\",\"path\":\"/0\"}]", "past the end" },
        { "[1]", "[{\"op\":\"remove\",\"path\":\"/-\"}]", "behind the last item" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/00\",\"value\":1}]", "not an array index" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/1e0\",\"value\":1}]", "not an array index" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/+0\",\"value\":1}]", "not an array index" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/\",\"value\":1}]", "not an array index" },
        { "[1]", "[{\"op\":\"add\",\"path\":\"/18446744073709551616\",\"value\":1}]",
          "not an array index" },
        { "{}", "[{\"op\":\"add\",\"path\":\"a\",\"value\":1}]", "starts with '/'" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/~2\",\"value\":1}]", "followed by 0 or 1" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/~\",\"value\":1}]", "followed by 0 or 1" },
        { "{}", "[{\"op\":\"remove\",\"path\":\"\"}]", "whole document" },
        { "{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/b\"}]", "into itself" },
        { "{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"\",\"path\":\"/b\"}]", "into itself" },
        { "{}", "[{\"op\":\"add\",\"path\":\"/a\"}]", "needs a \"value\"" },
        { "{}", "[{\"op\":\"copy\",\"path\":\"/a\"}]", "needs a string \"from\"" },
        { "{}", "[{\"op\":\"add\",\"value\":1}]", "needs a string \"path\"" },
        { "{}", "[{\"op\":\"add\",\"path\":7,\"value\":1}]", "needs a string \"path\"" },
        { "{}", "[{\"path\":\"/a\",\"value\":1}]", "needs a string \"op\"" },
        { "{}", "[{\"op\":\"spam\",\"path\":\"/a\",\"value\":1}]", "\"spam\" is not an operation" },
        { "{}", "[[]]", "an operation is an object, this is array" },
        { "{}", "{\"op\":\"add\"}", "a JSON patch is an array" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        expect_patch_fails(cases[i].target, cases[i].patch, cases[i].words);
}

TEST(json_patch_that_fails_late_gives_nothing)
{
    expect_patch_fails("{\"a\":1}",
                       "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":2},"
                       "{\"op\":\"test\",\"path\":\"/a\",\"value\":1}]",
                       "operation 2");
}

TEST(json_patch_work_is_bounded)
{
    AUTO_BUF doubling = { 0 }, many = { 0 }, deep = { 0 };
    for (int i = 0; i < 40; i++)
        buf_addf(&doubling, "%s{\"op\":\"copy\",\"from\":\"/l\",\"path\":\"/l/-\"}", i ? "," : "[");
    buf_addc(&doubling, ']');
    expect_patch_fails("{\"l\":[\"0123456789\"]}", doubling.p, "more work than is allowed");

    for (int i = 0; i <= JSON_PATCH_OPERATIONS_MAX; i++)
        buf_addf(&many, "%s{\"op\":\"add\",\"path\":\"/a\",\"value\":1}", i ? "," : "[");
    buf_addc(&many, ']');
    expect_patch_fails("{}", many.p, "10001 operations, at most 10000");

    /* Each round wraps the document in one more object. */
    for (int i = 0; i < JSON_DEPTH_MAX; i++)
        buf_addf(&deep,
                 "%s{\"op\":\"add\",\"path\":\"/b\",\"value\":{}},"
                 "{\"op\":\"copy\",\"from\":\"\",\"path\":\"/b/c\"},"
                 "{\"op\":\"move\",\"from\":\"/b\",\"path\":\"\"}",
                 i ? "," : "[");
    buf_addc(&deep, ']');
    expect_patch_fails("{}", deep.p, "nested more than 100 levels");
}
