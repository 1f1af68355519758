#include "cmd/plan_html.h"
#include "codec/json.h"
#include "plan_html_fixture.h"
#include "support/test.h"

#define HEAD "<script type=\"application/json\" id=\"data\">"

struct printed {
    struct buf page;
    struct doc data; /* read back from it */
};

static void printed_done(struct printed *p)
{
    doc_done(&p->data);
    buf_done(&p->page);
}
#define PRINTED __attribute__((cleanup(printed_done))) struct printed

static void print(struct plan_fixture_options options, struct printed *out)
{
    AUTO(plan_fixture) f = plan_fixture_new(options);
    struct err err = { 0 };
    *out = (struct printed){ 0 };
    plan_html(plan_fixture_planning(f), &out->page);
    const char *start = strstr(out->page.p, HEAD);
    EXPECT_TRUE(start != NULL);
    start += strlen(HEAD);
    const char *end = strstr(start, "</script>");
    EXPECT_TRUE(end != NULL);
    struct str text = { start, (size_t)(end - start) };
    EXPECT_OK(json_read_trusted(text, &out->data, &err), err);
}

static size_t occurrences(const char *text, const char *word)
{
    size_t count = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        count++;
    return count;
}

static const json_val *member(const struct printed *p, const char *name)
{
    const json_val *v = json_get(p->data.root, str_of(name));
    EXPECT_TRUE(v != NULL);
    return v;
}

TEST(plan_html_is_one_page_that_refers_to_nothing_else)
{
    PRINTED p = { 0 };
    print((struct plan_fixture_options){ .launches = 3, .workloads = 5, .existing = 1 }, &p);
    EXPECT_TRUE(str_starts(buf_str(&p.page), STR("<!DOCTYPE html>\n")));
    EXPECT_TRUE(str_ends(buf_str(&p.page), STR("</html>\n")));
    EXPECT_EQ(occurrences(p.page.p, "http:"), 0);
    EXPECT_EQ(occurrences(p.page.p, "https:"), 0);
    EXPECT_EQ(occurrences(p.page.p, "@import"), 0);
    EXPECT_EQ(occurrences(p.page.p, "url("), 0);
    EXPECT_EQ(occurrences(p.page.p, " src="), 0);
    EXPECT_HAS(buf_str(&p.page), "default-src 'none'");
}

TEST(plan_html_texts_from_outside_cannot_end_the_element_they_are_in)
{
    PRINTED p = { 0 };
    print((struct plan_fixture_options){ 2, 1, 5, 1, .hostile = true }, &p);
    EXPECT_EQ(occurrences(p.page.p, "</script>"), 2); /* of the data, and of the page's script */
    EXPECT_EQ(occurrences(p.page.p, "<script"), 2);
    EXPECT_EQ(occurrences(p.page.p, "<!--"), 0);
    EXPECT_EQ(occurrences(p.page.p, "<img"), 0);
    const json_val *pool = json_at(member(&p, "pools"), 0);
    EXPECT_STR(json_str(pool), "general" HOSTILE); /* and are what they were */
}

TEST(plan_html_equal_lists_and_pods_that_are_alike_are_there_once)
{
    PRINTED p = { 0 };
    print((struct plan_fixture_options){ .launches = 10, .copies = 90, .workloads = 8 }, &p);
    EXPECT_EQ(json_count(member(&p, "launches")), 100);
    EXPECT_TRUE(json_count(member(&p, "typeLists")) <= 10);
    EXPECT_TRUE(json_count(member(&p, "wantLists")) <= 10);
    EXPECT_TRUE(json_count(member(&p, "kinds")) <= 8);
    EXPECT_EQ(json_count(member(&p, "explanations")), 8);
}

TEST(plan_html_of_thirty_thousand_pods_is_small)
{
    PRINTED p = { 0 };
    print((struct plan_fixture_options){ 700, 300, 120, 60, false }, &p);
    AUTO(plan_fixture) f =
        plan_fixture_new((struct plan_fixture_options){ 700, 300, 120, 60, false });
    uint32_t pods = plan_fixture_planning(f)->snapshot.pod_count;
    EXPECT_TRUE(pods > 30000);
    EXPECT_TRUE(p.page.len < 60 * (size_t)pods);
}

TEST(plan_html_of_an_empty_plan_is_a_page)
{
    PRINTED p = { 0 };
    print((struct plan_fixture_options){ .workloads = 4 }, &p);
    EXPECT_EQ(json_count(member(&p, "launches")), 0);
}

TEST(plan_html_text_that_is_no_utf8_does_no_harm)
{
    AUTO(plan_fixture) f = plan_fixture_new((struct plan_fixture_options){ .workloads = 4 });
    AUTO_BUF page = { 0 };
    struct planning planning = *plan_fixture_planning(f);
    struct str broken = { "a\xff\xfe.yaml", 8 };
    planning.notes.items = &broken;
    planning.notes.count = 1;
    plan_html(&planning, &page);
    EXPECT_HAS(buf_str(&page), "a\xef\xbf\xbd\xef\xbf\xbd.yaml");
}
