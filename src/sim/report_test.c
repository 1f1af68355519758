/* Reports of records made by hand. How the page looks in a browser: tests/simulate_html.sh. */
#include "sim/record_testing.h"
#include "sim/report_page.h"

#include "codec/json.h"
#include "support/test.h"

#include <stdio.h>

static const json_val *read(const struct buf *text, struct doc *doc)
{
    struct err err;
    EXPECT_OK(json_read(buf_str(text), doc, &err), err);
    return doc->root;
}

static size_t count_of(const struct buf *text, const char *word)
{
    size_t count = 0;
    for (const char *p = text->p; (p = strstr(p, word)); p++)
        count++;
    return count;
}

TEST(json_tells_what_a_run_came_to)
{
    AUTO_RECORD r = { 0 };
    AUTO_BUF out = { 0 };
    struct doc doc;
    record_fill_morning(&r);
    struct run_report report = report_of_morning(&r);
    report_json(&report, &out);
    const json_val *root = read(&out, &doc);
    int64_t n;
    EXPECT_STR(json_str(json_get(root, STR("scenario"))), "black-friday");
    EXPECT_TRUE(json_i64(json_path(root, "pods.bound"), &n));
    EXPECT_EQ(n, 2120);
    EXPECT_EQ((int64_t)json_double(json_path(root, "pods.waitSeconds.p50")), 296);
    EXPECT_TRUE(json_i64(json_path(root, "cloud.refusals"), &n));
    EXPECT_EQ(n, 40);
    EXPECT_EQ(json_count(json_get(root, STR("nodePools"))), 3);
    EXPECT_STR(json_str(json_get(json_at(json_get(root, STR("nodePools")), 2),
                                 STR("nodeRegistrationHealthy"))),
               "True");
    EXPECT_EQ(json_count(json_get(root, STR("events"))), r.events.count);
    EXPECT_TRUE(json_is_null(json_get(root, STR("finding"))));
    doc_done(&doc);
}

TEST(json_of_a_run_without_samples_is_whole)
{
    AUTO_RECORD r = { 0 };
    AUTO_BUF out = { 0 };
    struct doc doc;
    const struct finding finding = { .rule = 3, .step = 9, .what = STR("two \"instances\"") };
    struct run_report report = report_of_morning(&r);
    report.maybe_finding = &finding;
    report_json(&report, &out);
    EXPECT_STR(json_str(json_path(read(&out, &doc), "finding.what")), "two \"instances\"");
    doc_done(&doc);
}

TEST(equal_records_give_equal_pages)
{
    AUTO_RECORD a = { 0 }, b = { 0 };
    AUTO_BUF page_a = { 0 }, page_b = { 0 };
    record_fill_morning(&a);
    record_fill_morning(&b);
    struct run_report of_a = report_of_morning(&a), of_b = report_of_morning(&b);
    report_html(&of_a, &page_a);
    report_html(&of_b, &page_b);
    EXPECT_TRUE(str_eq(buf_str(&page_a), buf_str(&page_b)));
}

TEST(a_page_asks_nobody_for_anything)
{
    AUTO_RECORD r = { 0 };
    AUTO_BUF page = { 0 };
    record_fill_morning(&r);
    struct run_report report = report_of_morning(&r);
    report_html(&report, &page);
    EXPECT_EQ(count_of(&page, "http://"), 0);
    EXPECT_EQ(count_of(&page, "https://"), 0);
    EXPECT_EQ(count_of(&page, "src="), 0);
    EXPECT_HAS(buf_str(&page), "default-src 'none'");
}

TEST(every_action_has_a_number_on_the_plots_and_in_the_list)
{
    AUTO_RECORD r = { 0 };
    AUTO_BUF page = { 0 };
    record_fill_morning(&r);
    struct run_report report = report_of_morning(&r);
    report_html(&report, &page);
    EXPECT_EQ(count_of(&page, "<li id=\"action-"), 7);
    EXPECT_EQ(count_of(&page, "<a href=\"#action-"), 7);
    EXPECT_EQ(count_of(&page, "<figure class=\"plot\""), 7);
    EXPECT_EQ(count_of(&page, "<rect class=\"h-bad\""), 1);
}

/* Numbers on badges, and those that folded ones stand for. */
static uint32_t badges_cover(const struct buf *page)
{
    uint32_t covered = 0;
    for (const char *p = page->p; (p = strstr(p, "<a href=\"#action-")); p++) {
        unsigned number, folded = 0;
        const char *text = strchr(p, '>') + 1;
        EXPECT_TRUE(sscanf(text, "%u+%u<", &number, &folded) >= 1);
        EXPECT_EQ(number, covered + 1);
        covered += 1 + folded;
    }
    return covered;
}

TEST(actions_close_to_each_other_get_rows_of_numbers_and_a_crowd_is_folded)
{
    static const int64_t pauses[] = { 0, 1, 2, 4, 9, 20 }; /* minutes, of 720 */
    for (size_t i = 0; i < KV_COUNT_OF(pauses); i++) {
        AUTO_RECORD r = { 0 };
        AUTO_BUF page = { 0 };
        record_fill_morning(&r);
        r.events.count = 0;
        for (int64_t n = 0; n < 30; n++)
            record_add_line(&r, RECORD_ACTION, 30 + n * pauses[i], "something", 1);
        struct run_report report = report_of_morning(&r);
        report_html(&report, &page);
        EXPECT_EQ(badges_cover(&page), 30);
        EXPECT_EQ(count_of(&page, " title=\"actions ") > 0, pauses[i] <= 4);
    }
}

TEST(a_plot_says_in_words_what_it_shows)
{
    AUTO_RECORD r = { 0 };
    AUTO_BUF page = { 0 };
    record_fill_morning(&r);
    struct run_report report = report_of_morning(&r);
    report_html(&report, &page);
    EXPECT_HAS(buf_str(&page), "pending: at most 2,000 at 08:00, 0 at the end");
    EXPECT_HAS(buf_str(&page), "NodeRegistrationHealthy of gpu: Unknown from 06:00, False from "
                               "09:45, True from 11:36");
}

TEST(a_short_peak_is_seen_in_a_long_run)
{
    AUTO_RECORD r = { 0 };
    AUTO_BUF page = { 0 };
    for (int64_t m = 0; m < 20000; m++)
        record_add_sample(&r,
                          (struct record_sample){ .at_ns = m * DURATION_MINUTE,
                                                  .pods_pending = m == 12345 ? 77 : 0 },
                          NULL, NULL);
    struct run_report report = report_of_morning(&r);
    report.duration_ns = 20000 * DURATION_MINUTE;
    report_html(&report, &page);
    EXPECT_HAS(buf_str(&page), "pending: at most 77 ");
}

TEST(values_are_written_for_people)
{
    static const struct {
        double v;
        enum plot_unit unit;
        const char *text;
    } cases[] = {
        { 0, UNIT_COUNT, "0" },         { 999, UNIT_COUNT, "999" },
        { 1000, UNIT_COUNT, "1,000" },  { 1234567, UNIT_COUNT, "1,234,567" },
        { 0.5, UNIT_DOLLARS, "$0.50" }, { 12345.6, UNIT_DOLLARS, "$12,346" },
        { 99.4, UNIT_PERCENT, "99%" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF out = { 0 };
        value_text(cases[i].v, cases[i].unit, &out);
        EXPECT_STR(buf_str(&out), cases[i].text);
    }
}

TEST(texts_cannot_break_out_of_the_page)
{
    AUTO_BUF out = { 0 };
    html_text(STR("<b a='\"'>&\xff"), &out);
    EXPECT_STR(buf_str(&out), "&lt;b a=&#39;&quot;&#39;&gt;&amp;\xef\xbf\xbd");
}
