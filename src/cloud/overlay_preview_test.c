/* What would change if an overlay were applied. */
#include "cloud/overlay_preview.h"

#include "cloud/overlay_testing.h"

#define ZONE_IS(zone) "{key: topology.kubernetes.io/zone, operator: In, values: [" zone "]}"
#define TYPE_IS(type) "{key: node.kubernetes.io/instance-type, operator: In, values: [" type "]}"
#define POOL_IS(pool) "{key: karpenter.sh/nodepool, operator: In, values: [" pool "]}"

static struct overlay_pool two_types(struct lab *lab)
{
    lab_init(lab);
    lab_type(lab, "big", "", "b/spot=0.3! a/spot=0.2 a/on-demand=0.4");
    lab_type(lab, "small", "", "a/on-demand=0.1 b/on-demand=0.1");
    return lab_pool(lab, "web", "", lab_snapshot(lab));
}

/* The last overlay of the lab is the candidate, those before it are there. */
static struct overlay_preview preview(struct lab *lab, const struct overlay_pool *pools,
                                      uint32_t count)
{
    struct overlay_preview out;
    uint32_t current = (uint32_t)lab->overlays.count - 1;
    overlay_preview_make(lab->overlays.items[current], lab->overlays.items, current, pools, count,
                         &lab->arena, &out);
    return out;
}

static void format_types(const struct overlay_preview *p, struct buf *out)
{
    for (uint32_t i = 0; i < p->types.count; i++) {
        const struct preview_type *t = &p->types.items[i];
        buf_addf(out, "%.*s %.*s", STR_ARG(t->pool), STR_ARG(t->type));
        for (uint32_t k = 0; k < t->prices.count; k++) {
            const struct preview_price *c = &t->prices.items[k];
            char before[USD_HOUR_TEXT_MAX], after[USD_HOUR_TEXT_MAX];
            usd_hour_format(c->before, before);
            usd_hour_format(c->after, after);
            buf_addf(out, " %.*s/%.*s%s %s(%.*s)>%s(%.*s)", STR_ARG(c->zone),
                     STR_ARG(c->capacity_type), c->available ? "" : "!", before,
                     STR_ARG(c->by_before), after, STR_ARG(c->by_after));
        }
        for (uint32_t k = 0; k < t->capacities.count; k++) {
            const struct preview_capacity *c = &t->capacities.items[k];
            buf_addf(out, " %.*s %lld(%.*s)>%lld(%.*s)", STR_ARG(c->resource), (long long)c->before,
                     STR_ARG(c->by_before), (long long)c->after, STR_ARG(c->by_after));
        }
        buf_addc(out, '\n');
    }
}

static void expect_types(const struct overlay_preview *p, const char *expected)
{
    AUTO_BUF text = { 0 };
    format_types(p, &text);
    EXPECT_STR(buf_str(&text), expected);
}

TEST(a_preview_lists_prices_and_capacities_before_and_after_in_order)
{
    LAB lab;
    struct overlay_pool web = two_types(&lab);
    struct overlay_pool pools[] = { web, lab_pool(&lab, "batch", "", web.types) };
    lab_overlay(
        &lab, "new",
        "{priceAdjustment: '+0.1', capacity: {x: 1, w: 2}, requirements: [" TYPE_IS("big") "]}");
    struct overlay_preview p = preview(&lab, pools, 2);
    expect_types(&p, "batch big a/on-demand 0.4()>0.5(new) a/spot 0.2()>0.3(new) "
                     "b/spot! 0.3()>0.4(new) w 0()>2000(new) x 0()>1000(new)\n"
                     "web big a/on-demand 0.4()>0.5(new) a/spot 0.2()>0.3(new) "
                     "b/spot! 0.3()>0.4(new) w 0()>2000(new) x 0()>1000(new)\n");
    EXPECT_EQ(p.price_count, 6);
    EXPECT_EQ(p.capacity_count, 4);
    EXPECT_FALSE(p.replaces);
    EXPECT_EQ(p.candidate.state, OVERLAY_ACCEPTED);
    EXPECT_EQ(p.candidate.offering_count, 3);
    EXPECT_EQ(p.verdicts.count, 0);
}

TEST(a_candidate_that_replaces_an_overlay_is_compared_with_what_that_did)
{
    LAB lab;
    struct overlay_pool web = two_types(&lab);
    lab_overlay(
        &lab, "o",
        "{price: '1', capacity: {x: 1}, requirements: [" TYPE_IS("big") ", " ZONE_IS("a") "]}");
    lab_overlay(&lab, "o", "{price: '2', requirements: [" ZONE_IS("b") "]}");
    struct overlay_preview p = preview(&lab, &web, 1);
    EXPECT_TRUE(p.replaces);
    expect_types(&p, "web big a/on-demand 1(o)>0.4() a/spot 1(o)>0.2() b/spot! 0.3()>2(o) "
                     "x 1000(o)>0()\n"
                     "web small b/on-demand 0.1()>2(o)\n");
}

TEST(a_candidate_that_changes_nothing_has_an_empty_preview)
{
    LAB lab;
    struct overlay_pool web = two_types(&lab);
    lab_overlay(&lab, "heavy", "{weight: 10, price: '1', requirements: []}");
    lab_overlay(&lab, "light", "{price: '2', requirements: []}");
    struct overlay_preview p = preview(&lab, &web, 1);
    expect_types(&p, "");
    EXPECT_EQ(p.candidate.state, OVERLAY_ACCEPTED);
    EXPECT_EQ(p.candidate.offering_count, 5);
}

TEST(a_rejected_candidate_says_why_and_changes_nothing)
{
    LAB lab;
    struct overlay_pool web = two_types(&lab);
    lab_overlay(&lab, "there", "{price: '1', requirements: [" TYPE_IS("big") "]}");
    lab_overlay(&lab, "new", "{price: '2', requirements: []}");
    struct overlay_preview p = preview(&lab, &web, 1);
    EXPECT_EQ(p.candidate.state, OVERLAY_CONFLICT);
    EXPECT_HAS(p.candidate.message, "conflicts with NodeOverlay there");
    expect_types(&p, "");

    lab_overlay(&lab, "wrong", "{price: '2', capacity: {cpu: 1}, requirements: []}");
    p = preview(&lab, &web, 1);
    EXPECT_EQ(p.candidate.state, OVERLAY_INVALID);
    expect_types(&p, "");
}

/* "zz" comes before "there" in the order of processing. */
TEST(a_candidate_may_push_others_out_and_let_others_in)
{
    LAB lab;
    struct overlay_pool web = two_types(&lab);
    lab_overlay(&lab, "big", "{price: '3', requirements: [" TYPE_IS("big") "]}");
    lab_overlay(&lab, "there", "{price: '1', requirements: []}");
    lab_overlay(&lab, "zz", "{price: '2', requirements: [" TYPE_IS("small") "]}");
    struct overlay_preview p = preview(&lab, &web, 1);
    EXPECT_EQ(p.candidate.state, OVERLAY_ACCEPTED);
    EXPECT_EQ(p.verdicts.count, 2);
    EXPECT_STR(p.verdicts.items[0].name, "big");
    EXPECT_EQ(p.verdicts.items[0].before, OVERLAY_CONFLICT);
    EXPECT_EQ(p.verdicts.items[0].after, OVERLAY_ACCEPTED);
    EXPECT_STR(p.verdicts.items[0].message, "");
    EXPECT_STR(p.verdicts.items[1].name, "there");
    EXPECT_EQ(p.verdicts.items[1].after, OVERLAY_CONFLICT);
    EXPECT_HAS(p.verdicts.items[1].message, "conflicts with NodeOverlay zz");
    expect_types(&p, "web big a/on-demand 1(there)>3(big) a/spot 1(there)>3(big) "
                     "b/spot! 1(there)>3(big)\n"
                     "web small a/on-demand 1(there)>2(zz) b/on-demand 1(there)>2(zz)\n");
}

TEST(a_preview_of_one_pool_leaves_the_others_out)
{
    LAB lab;
    struct overlay_pool web = two_types(&lab);
    struct overlay_pool pools[] = { web, lab_pool(&lab, "batch", "", web.types),
                                    lab_pool(&lab, "zoo", "", web.types) };
    lab_overlay(&lab, "o", "{price: '1', requirements: [" POOL_IS("batch") ", " ZONE_IS("b") "]}");
    struct overlay_preview p = preview(&lab, pools, 3);
    expect_types(&p, "batch big b/spot! 0.3()>1(o)\nbatch small b/on-demand 0.1()>1(o)\n");
}

TEST(a_preview_with_no_pools_is_the_verdict_alone)
{
    LAB lab;
    lab_init(&lab);
    lab_overlay(&lab, "o", "{price: '1', requirements: []}");
    struct overlay_preview p = preview(&lab, NULL, 0);
    EXPECT_EQ(p.candidate.state, OVERLAY_ACCEPTED);
    EXPECT_EQ(p.types.count, 0);
}
