/* What images leave of homes and types, and what that does to wants, terms and variants. */
#include "sched/fits_testing.h"
#include "sched/model_classes_testing.h"

#include "cloud/instance_types_testing.h"

#define POOL WORLD_POOL("web", "[]", "")
#define POD(name, more) WORLD_POD(name, "{app: a}", "{cpu: 1}", more)

static uint32_t wants_of(struct modelled *t, const char *pod, uint32_t variant)
{
    const struct pod_class *k = class_of_pod(t, pod);
    EXPECT_TRUE(variant < k->variant_count);
    return k->variants[variant].wants;
}

/* "arm large": the types that are left of terms, each once; "none". */
static struct str left(struct modelled *t, uint32_t terms)
{
    AUTO_BUF out = { 0 };
    if (terms == NONE)
        return STR("none");
    const struct terms *now = terms_at(&t->m, terms);
    const struct instance_types *s = t->m.pools[now->pool].types;
    for (uint32_t type = 0; type < s->type_count; type++) {
        bool any = false;
        bitset_each(&now->machines, row)
            any = any || s->row_type[row] == type;
        if (any)
            buf_addf(&out, "%s%.*s", out.len ? " " : "", STR_ARG(s->names[type]));
    }
    return arena_str(&t->arena, buf_str(&out));
}

static uint32_t join(struct modelled *t, uint32_t terms, const char *pod)
{
    return terms_join(&t->m, terms, wants_of(t, pod, 0));
}

TEST(terms_are_left_the_types_that_run_the_images_of_all_who_joined)
{
    MODELLED t = { 0 };
    modelled_load(&t, POOL POD("a", "") POD("b", "") POD("c", "") POD("d", ""), NULL);
    world_fits(&t.w, FIT_UNKNOWN_AS_NO);
    world_fit(&t.w, "one", "a", "arm large medium");
    world_fit(&t.w, "two", "b", "medium memory large?");
    world_fit(&t.w, "three", "c", "arm");
    modelled_compile(&t);
    uint32_t own = t.m.pools[0].terms, a = join(&t, own, "a");
    EXPECT_STR(left(&t, own), "arm gpu large medium memory small");
    EXPECT_STR(left(&t, a), "arm large medium");
    EXPECT_STR(left(&t, join(&t, a, "b")), "medium");
    EXPECT_EQ(join(&t, join(&t, own, "b"), "a"), join(&t, a, "b"));
    EXPECT_STR(left(&t, join(&t, join(&t, own, "b"), "c")), "none");
    EXPECT_EQ(join(&t, a, "d"), a); /* who asks for nothing changes nothing */
    EXPECT_EQ(join(&t, a, "a"), a);
}

/* Two rows, of which `row` does not fit. What is left of the pool? */
static void expect_row(bool own_row_is_offered, uint32_t row, const char *expected)
{
    MODELLED t = { 0 };
    DRAFTS types = { 0 };
    struct instance_type_draft *odd = draft_type(&types, "odd", "", "zone-a/spot=1 zone-b/spot=2");
    odd->capacity = draft_resources(&types.arena, "cpu=2 memory=4Gi pods=9");
    draft_offering_at(odd, 1)->capacity_override = draft_resources(&types.arena, "cpu=1");
    if (!own_row_is_offered)
        draft_offering_at(odd, 0)->capacity_override = draft_resources(&types.arena, "cpu=1");
    struct instance_type_draft *plain = draft_type(&types, "plain", "", "zone-a/spot=4");
    plain->capacity = odd->capacity;
    AUTO_INSTANCE_TYPES s = drafts_build(&types);
    EXPECT_EQ(s->row_count, 3);

    modelled_load(&t, POOL POD("a", ""), NULL);
    const struct instance_types *before = t.w.pools.items[0].types;
    t.w.pools.items[0].types = s;
    world_fits(&t.w, FIT_UNKNOWN_AS_NO);
    world_fit(&t.w, "one", "a", "odd plain");
    ((uint8_t *)t.w.snap.fits.items[0].machines[0])[row] = FIT_NO;
    modelled_compile(&t);
    EXPECT_STR(left(&t, join(&t, t.m.pools[0].terms, "a")), expected);
    EXPECT_EQ(world_plan(&t.w)->miss_count, 0);
    t.w.pools.items[0].types = before;
}

TEST(a_type_of_which_some_row_does_not_fit_is_not_used)
{
    expect_row(true, 0, "plain");
    expect_row(true, 2, "plain");
    expect_row(true, 1, "odd");
    expect_row(false, 0, "odd plain"); /* the row is nobody's */
    expect_row(false, 2, "plain");
}

TEST(homes_admit_pods_whose_images_run_there)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL WORLD_NODE("n1", "zone-a", "", "cpu: 4")
                      WORLD_NODE("n2", "zone-b", "", "cpu: 4") POD("a", "")
                          POD("b", "  nodeSelector: {" ZONE ": zone-a}\n"),
                  NULL);
    world_fits(&t.w, FIT_UNKNOWN_AS_NO);
    world_fit(&t.w, "one", "a b", "n2 n1?");
    modelled_compile(&t);
    const struct home *n1 = modelled_home(&t, "n1"), *n2 = modelled_home(&t, "n2");
    uint32_t a = wants_of(&t, "a", 0), b = wants_of(&t, "b", 0);
    EXPECT_TRUE(home_suits(&t.m, n1, a) && !home_fits(&t.m, n1, a) && !home_admits(&t.m, n1, a));
    EXPECT_TRUE(home_suits(&t.m, n2, a) && home_fits(&t.m, n2, a) && home_admits(&t.m, n2, a));
    EXPECT_TRUE(!home_suits(&t.m, n2, b) && home_fits(&t.m, n2, b) && !home_admits(&t.m, n2, b));
}

TEST(wants_that_are_pinned_are_of_the_same_images)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL POD("a", "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: " ZONE
                                ", whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: "
                                "{app: a}}}]\n"),
                  NULL);
    world_fits(&t.w, FIT_UNKNOWN_AS_NO);
    world_fit(&t.w, "one", "a", "arm");
    modelled_compile(&t);
    uint32_t key = 1, a = wants_of(&t, "a", 0);
    EXPECT_STR(t.m.keys[key].name, ZONE);
    AUTO_ARENA scratch = { 0 };
    struct bitset first = bitset_new(&scratch, t.m.keys[key].domain_count);
    bitset_set(&first, 0);
    uint32_t pinned[] = { wants_pin(&t.m, a, key, 0), wants_avoid(&t.m, a, key, &first),
                          wants_without(&t.m, a, key) };
    for (size_t i = 0; i < KV_COUNT_OF(pinned); i++)
        EXPECT_EQ(wants_at(&t.m, pinned[i])->fit, wants_at(&t.m, a)->fit);
    EXPECT_STR(left(&t, terms_join(&t.m, t.m.pools[0].terms, pinned[0])), "arm");
    struct requirements same = wants_at(&t.m, a)->set;
    EXPECT_TRUE(wants_intern(&t.m, &same) != a);
}

TEST(pods_of_one_template_with_different_images_are_two_classes)
{
    MODELLED t = { 0 };
    modelled_load(&t, POOL, NULL);
    world_add_pods(&t.w, 4, "a",
                   "spec:\n  containers: [{name: c, image: i, resources: {requests: {cpu: 1}}}]\n");
    world_fits(&t.w, FIT_UNKNOWN_AS_NO);
    world_fit(&t.w, "one", "a-1 a-2", "arm");
    modelled_compile(&t);
    EXPECT_EQ(t.m.class_count, 2);
    EXPECT_EQ(class_of_pod(&t, "a-1"), class_of_pod(&t, "a-2"));
    EXPECT_EQ(class_of_pod(&t, "a-0"), class_of_pod(&t, "a-3"));
}

/* --- variants --- */

TEST(certainty_is_given_up_after_everything_else)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  WORLD_POOL("web", "[]", "      taints: [{key: soft, effect: PreferNoSchedule}]\n")
                      POD("a", "  affinity:\n"
                               "    nodeAffinity:\n"
                               "      preferredDuringSchedulingIgnoredDuringExecution:\n"
                               "      - weight: 1\n"
                               "        preference: {matchExpressions: [{key: " ZONE
                               ", operator: In, values: [zone-a]}]}\n"),
                  NULL);
    world_fits(&t.w, FIT_UNKNOWN_LAST);
    world_fit(&t.w, "one", "a", "arm medium?");
    modelled_compile(&t);
    const struct pod_class *k = class_of_pod(&t, "a");
    EXPECT_EQ(k->variant_count, 4);
    EXPECT_STR(k->variants[2].given_up,
               "preferred zone zone-a, keeping off PreferNoSchedule taints");
    EXPECT_STR(
        k->variants[3].given_up,
        "preferred zone zone-a, keeping off PreferNoSchedule taints, it is not known whether "
        "the images run there");
    EXPECT_EQ(k->variants[3].tolerance, k->variants[2].tolerance);
    uint32_t own = t.m.pools[0].terms;
    for (uint32_t v = 0; v < 4; v++)
        EXPECT_STR(left(&t, terms_join(&t.m, own, k->variants[v].wants)),
                   v < 3 ? "arm" : "arm medium");
}

TEST(certainty_is_tried_however_many_ways_there_are)
{
    MODELLED t = { 0 };
    AUTO_BUF yaml = { 0 };
    buf_addz(&yaml, POOL POD("a", "  affinity:\n"
                                  "    nodeAffinity:\n"
                                  "      requiredDuringSchedulingIgnoredDuringExecution:\n"
                                  "        nodeSelectorTerms:\n"));
    for (int i = 0; i < 300; i++)
        buf_addf(&yaml,
                 "        - {matchExpressions: [{key: team, operator: NotIn, values: [t%d]}]}\n",
                 i);
    modelled_load(&t, yaml.p, NULL);
    EXPECT_EQ(class_of_pod(&t, "a")->variant_count, 256);
    world_fits(&t.w, FIT_UNKNOWN_LAST);
    world_fit(&t.w, "one", "a", "arm medium?");
    modelled_compile(&t);
    const struct pod_class *k = class_of_pod(&t, "a");
    EXPECT_EQ(k->variant_count, 256);
    for (uint32_t v = 0; v < 256; v++)
        EXPECT_STR(left(&t, terms_join(&t.m, t.m.pools[0].terms, k->variants[v].wants)),
                   v < 128 ? "arm" : "arm medium");
}

TEST(only_what_is_not_known_somewhere_has_a_way_more)
{
    static const struct {
        const char *list;
        enum fit_unknown unknown;
        uint32_t variants;
    } cases[] = {
        { "arm", FIT_UNKNOWN_LAST, 1 },
        { "arm medium?", FIT_UNKNOWN_LAST, 2 },
        { "*?", FIT_UNKNOWN_LAST, 2 },
        { "* n1?", FIT_UNKNOWN_LAST, 2 },
        { "*", FIT_UNKNOWN_LAST, 1 },
        { "arm medium?", FIT_UNKNOWN_AS_YES, 1 },
        { "arm medium?", FIT_UNKNOWN_AS_NO, 1 },
        { "", FIT_UNKNOWN_LAST, 1 },
    };
    MODELLED t = { 0 };
    modelled_load(&t, POOL WORLD_NODE("n1", "zone-a", "", "cpu: 4") POD("a", ""), NULL);
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        world_fits(&t.w, cases[i].unknown);
        world_fit(&t.w, "one", "a", cases[i].list);
        modelled_compile(&t);
        EXPECT_EQ(class_of_pod(&t, "a")->variant_count, cases[i].variants);
    }
}
