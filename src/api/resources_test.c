#include "support/test.h"

#include "api/resources.h"

/* "cpu 1500m, memory 2Gi", sorted by name. */
static struct resources res(struct arena *arena, const char *text)
{
    struct resource *items = arena_array(arena, struct resource, 10);
    uint32_t count = 0;
    for (struct str rest = str_of(text), item, value; rest.len;) {
        struct err err = { 0 };
        str_cut(rest, ',', &item, &rest);
        str_cut(str_trim(item), ' ', &items[count].name, &value);
        EXPECT_OK(quantity_parse(value, &items[count].amount, &err), err);
        EXPECT_TRUE(count == 0 || str_cmp(items[count - 1].name, items[count].name) < 0);
        count++;
    }
    return (struct resources){ items, count };
}

static void expect_res(const struct resources *r, const char *want)
{
    AUTO_BUF b = { 0 };
    for (uint32_t i = 0; i < r->count; i++) {
        char text[QUANTITY_TEXT_MAX];
        size_t len = quantity_format(r->items[i].amount, text);
        buf_addf(&b, "%s%.*s %.*s", i ? ", " : "", STR_ARG(r->items[i].name), (int)len, text);
    }
    EXPECT_STR(buf_str(&b), want);
}

TEST(resources_merge_sums_the_union)
{
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct resources a = res(&arena, "cpu 1500m, memory 1Gi, pods 1"),
                     b = res(&arena, "cpu 500m, gpu 1, memory 512Mi"), sum;
    EXPECT_OK(resources_merge(&arena, &a, &b, &sum, &err), err);
    expect_res(&sum, "cpu 2, gpu 1, memory 1536Mi, pods 1");
    struct resources none = { 0 };
    EXPECT_OK(resources_merge(&arena, &none, &a, &sum, &err), err);
    expect_res(&sum, "cpu 1500m, memory 1Gi, pods 1");
    EXPECT_OK(resources_merge(&arena, &none, &none, &sum, &err), err);
    EXPECT_EQ(sum.count, 0);
}

TEST(resources_subtract_keeps_the_keys_of_the_left_and_may_go_negative)
{
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct resources a = res(&arena, "cpu 1, memory 1Gi, pods 10"),
                     b = res(&arena, "cpu 1500m, gpu 1, pods 3"), rest;
    EXPECT_OK(resources_subtract(&arena, &a, &b, &rest, &err), err);
    expect_res(&rest, "cpu -500m, memory 1Gi, pods 7");
    expect_res(&a, "cpu 1, memory 1Gi, pods 10");
}

TEST(resources_max_is_over_the_union_and_min_over_the_common_keys)
{
    AUTO_ARENA arena = { 0 };
    struct resources a = res(&arena, "cpu 1, debt -5, memory 1Gi"),
                     b = res(&arena, "cpu 1500m, gpu 1, memory 1000Mi");
    struct resources max = resources_max(&arena, &a, &b), min = resources_min(&arena, &a, &b);
    expect_res(&max, "cpu 1500m, debt -5, gpu 1, memory 1Gi");
    expect_res(&min, "cpu 1, memory 1000Mi");
}

TEST(resources_fit_when_every_requested_key_is_there)
{
    const struct {
        const char *request, *total, *short_of;
    } rows[] = {
        { "cpu 1, memory 1Gi", "cpu 1, memory 2Gi, pods 10", NULL },
        { "cpu 1001m", "cpu 1", "cpu" },
        { "gpu 1", "cpu 8", "gpu" },       /* missing is zero */
        { "cpu 1, gpu 0", "cpu 8", NULL }, /* and zero is enough for zero */
        { "", "cpu 1", NULL },
        { "", "cpu 1, pods -1", "pods" }, /* overdrawn: nothing fits any more */
        { "cpu 1", "cpu 1, pods -1", "pods" },
        { "cpu -1", "", NULL },
        { "cpu 2, memory 2Gi", "cpu 1, memory 1Gi", "cpu" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        struct resources request = res(&arena, rows[i].request), total = res(&arena, rows[i].total);
        struct shortage why = { 0 };
        print_message("# %s | %s\n", rows[i].request, rows[i].total);
        EXPECT_EQ(resources_fit(&request, &total, &why), !rows[i].short_of);
        EXPECT_EQ(resources_fit(&request, &total, NULL), !rows[i].short_of);
        if (rows[i].short_of)
            EXPECT_STR(why.name, rows[i].short_of);
    }
}

TEST(resources_shortage_says_how_much_was_wanted_and_there)
{
    AUTO_ARENA arena = { 0 };
    struct resources request = res(&arena, "cpu 2, memory 1Gi"), total = res(&arena, "cpu 1500m");
    struct shortage why = { 0 };
    EXPECT_FALSE(resources_fit(&request, &total, &why));
    EXPECT_EQ(quantity_milli(why.want), 2000);
    EXPECT_EQ(quantity_milli(why.have), 1500);
}

TEST(resources_exceed_a_limit_only_beyond_it)
{
    const struct {
        const char *usage, *limits, *over;
    } rows[] = {
        { "cpu 10, memory 1Gi", "cpu 10", NULL },
        { "cpu 10001m, memory 1Gi", "cpu 10", "cpu" },
        { "cpu 10, nodes 3", "nodes 2", "nodes" },
        { "cpu 10", "", NULL },
        { "", "cpu 0", NULL },
        { "gpu 1", "cpu 1, gpu 0", "gpu" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        struct resources usage = res(&arena, rows[i].usage), limits = res(&arena, rows[i].limits);
        struct shortage why = { 0 };
        EXPECT_EQ(resources_exceed(&usage, &limits, &why), rows[i].over != NULL);
        EXPECT_EQ(resources_exceed(&usage, &limits, NULL), rows[i].over != NULL);
        if (rows[i].over)
            EXPECT_STR(why.name, rows[i].over);
    }
}

TEST(resources_beyond_the_range_are_refused_by_name)
{
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct resources a = res(&arena, "cpu 1, memory 9223372036854775807"),
                     b = res(&arena, "memory 1"), c = res(&arena, "cpu 1, memory -1");
    struct resources out = res(&arena, "cpu 7");
    EXPECT_ERR(resources_merge(&arena, &a, &b, &out, &err), err, ERR_INVALID);
    EXPECT_TRUE(str_starts(str_of(err.text), STR("memory: ")));
    EXPECT_ERR(resources_subtract(&arena, &a, &c, &out, &err), err, ERR_INVALID);
    EXPECT_TRUE(str_starts(str_of(err.text), STR("memory: ")));
    expect_res(&out, "cpu 7"); /* nothing is written on failure */
}

TEST(resources_are_found_by_name)
{
    AUTO_ARENA arena = { 0 };
    struct resources r = res(&arena, "a 1, b 2, c 3, d 4, e 5");
    const char *names[] = { "a", "b", "c", "d", "e" };
    for (int i = 0; i < 5; i++)
        EXPECT_EQ(quantity_units(resources_get(&r, str_of(names[i]))), i + 1);
    EXPECT_TRUE(quantity_is_zero(resources_get(&r, STR("bb"))));
    EXPECT_TRUE(quantity_is_zero(resources_get(&r, STR(""))));
}
