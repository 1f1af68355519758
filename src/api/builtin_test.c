/* What the built-in kinds share: shares of a total, what counts as unchanged, places of problems. */
#include "api/builtin.h"
#include "api/kind_test.h"

static struct int_or_str number(int64_t n)
{
    return (struct int_or_str){ .number = n, .set = true };
}

static struct int_or_str text(const char *z)
{
    return (struct int_or_str){ .str = str_of(z), .set = true };
}

TEST(share_of_a_total_is_a_count_or_a_percentage)
{
    struct int_or_str unset = { 0 }, five = number(5), minus = number(-5);
    struct int_or_str third = text("33%"), all = text("100%"), none = text("0%"), bad = text("x");
    struct int_or_str huge = text("9223372036854775807%");

    EXPECT_EQ(int_or_percent_of(&unset, 10, true), 0);
    EXPECT_EQ(int_or_percent_of(&five, 10, true), 5);
    EXPECT_EQ(int_or_percent_of(&minus, 10, true), 0);
    EXPECT_EQ(int_or_percent_of(&third, 10, true), 4);
    EXPECT_EQ(int_or_percent_of(&third, 10, false), 3);
    EXPECT_EQ(int_or_percent_of(&all, 7, true), 7);
    EXPECT_EQ(int_or_percent_of(&none, 7, true), 0);
    EXPECT_EQ(int_or_percent_of(&bad, 7, true), 0);
    EXPECT_EQ(int_or_percent_of(&huge, INT64_MAX, true), INT64_MAX);
}

static bool kept(const char *before, const char *after, const char *path)
{
    struct err err = { 0 };
    struct doc old = { 0 }, now = { 0 };

    EXPECT_OK(json_read(str_of(before), &old, &err), err);
    EXPECT_OK(json_read(str_of(after), &now, &err), err);
    bool same = json_kept(now.root, old.root, path);
    doc_done(&old);
    doc_done(&now);
    return same;
}

TEST(value_is_kept_when_it_is_equal_and_null_is_absent)
{
    EXPECT_TRUE(kept("{\"a\":{\"b\":1,\"c\":2}}", "{\"a\":{\"c\":2,\"b\":1}}", "a"));
    EXPECT_FALSE(kept("{\"a\":{\"b\":1}}", "{\"a\":{\"b\":2}}", "a.b"));
    EXPECT_TRUE(kept("{}", "{\"a\":null}", "a"));
    EXPECT_TRUE(kept("{\"a\":null}", "{}", "a"));
    EXPECT_FALSE(kept("{\"a\":[]}", "{}", "a"));
    EXPECT_FALSE(kept("{}", "{\"a\":false}", "a"));
}

TEST(problem_points_at_the_value_or_at_what_should_hold_it)
{
    struct err err = { 0 };
    AUTO_ARENA arena = { 0 };
    struct report report = { .arena = &arena };
    struct doc doc = { 0 };
    EXPECT_OK(json_read(STR("{\"spec\":{\"x\":1}}"), &doc, &err), err);

    report_at(&report, doc.root, "spec.x", "is %d", 1);
    warn_at(&report, doc.root, "spec.template.y", "is missing");

    EXPECT_EQ(report.error_count, 1);
    EXPECT_STR(report.problems.items[0].path, "spec.x");
    EXPECT_STR(report.problems.items[0].what, "is 1");
    EXPECT_TRUE(report.problems.items[0].at == json_path(doc.root, "spec.x"));
    EXPECT_STR(report.problems.items[1].path, "spec.template.y");
    EXPECT_TRUE(report.problems.items[1].at == json_path(doc.root, "spec"));
    report_done(&report);
    doc_done(&doc);
}
