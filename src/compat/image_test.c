/* Facts of images: for which platforms, with what specs, and what nodes make of them. */
#include "compat/image.h"

#include "compat/compat_testing.h"

static struct platform platform(const char *os, const char *architecture, const char *variant)
{
    return (struct platform){ str_of(os), str_of(architecture), str_of(variant) };
}

/* linux/amd64 and linux/arm64, where `own` is the latter's spec. */
static const struct image_facts *two_platforms(const struct compat_spec *maybe_image,
                                               const struct compat_spec *maybe_own)
{
    const struct platform platforms[] = { platform("linux", "amd64", ""),
                                          platform("linux", "arm64", "v8") };
    const struct image_facts *facts = image_facts_make(STR("sha256:1"), platforms, 2, maybe_image);
    struct image_platform *arm = (struct image_platform *)&facts->platforms[1];
    if (maybe_own)
        arm->spec = (struct image_spec){ compat_spec_ref(maybe_own), STR("sha256:2"), STR("") };
    return facts;
}

static const char avx2_spec[] =
    "{version: v1alpha1, compatibilities: [{tag: fast, weight: 80, rules: [{name: avx2, "
    "matchFeatures: [{feature: cpu.cpuid, matchExpressions: {AVX2: {op: Exists}}}]}]}]}";
static const char sve_spec[] =
    "{version: v1alpha1, compatibilities: [{rules: [{name: sve, matchFeatures: [{feature: "
    "cpu.cpuid, matchExpressions: {SVE: {op: Exists}}}]}]}]}";

static const struct feature_set *cpu(struct world *w, const char *flag)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, "flags: {cpu.cpuid: {elements: {%s: {}}}}", flag);
    return world_set(w, text.p);
}

static enum match judged(const struct image_facts *facts, const char *os, const char *architecture,
                         const struct feature_set *features)
{
    struct compat_options options = { 0 };
    struct image_node node = { str_of(os), str_of(architecture), features };
    return image_judge(facts, &node, &options).match;
}

static void explained(const struct image_facts *facts, const char *os, const char *architecture,
                      const struct feature_set *features, struct compat_options options,
                      const char *want)
{
    AUTO_BUF text = { 0 };
    struct image_node node = { str_of(os), str_of(architecture), features };
    image_explain(facts, &node, &options, &text);
    EXPECT_STR(buf_str(&text), want);
}

TEST(an_image_that_tells_no_platform_and_has_no_spec_fits_every_node)
{
    AUTO_IMAGE_FACTS facts = image_facts_make(STR("sha256:1"), NULL, 0, NULL);
    EXPECT_EQ(judged(facts, "linux", "amd64", NULL), MATCH_YES);
    EXPECT_EQ(judged(facts, "", "", NULL), MATCH_YES);
    explained(facts, "linux", "amd64", NULL, (struct compat_options){ 0 }, "");
}

TEST(a_platform_that_an_image_is_not_built_for_is_refused_without_any_features)
{
    struct platform arm = platform("linux", "arm64", "v8");
    AUTO_IMAGE_FACTS facts = image_facts_make(STR("sha256:1"), &arm, 1, NULL);
    EXPECT_EQ(judged(facts, "linux", "arm64", NULL), MATCH_YES);
    EXPECT_EQ(judged(facts, "linux", "amd64", NULL), MATCH_NO);
    EXPECT_EQ(judged(facts, "windows", "arm64", NULL), MATCH_NO);
    explained(facts, "linux", "amd64", NULL, (struct compat_options){ 0 },
              "is built for linux/arm64 only, the node is linux/amd64");
}

TEST(a_platform_is_refused_before_trouble_with_the_spec_is_looked_at)
{
    struct platform arm = platform("linux", "arm64", "");
    AUTO_IMAGE_FACTS facts = image_facts_make(STR("sha256:1"), &arm, 1, NULL);
    ((struct image_facts *)facts)->spec.trouble = STR("it is no YAML");
    EXPECT_EQ(judged(facts, "linux", "amd64", NULL), MATCH_NO);
    EXPECT_EQ(judged(facts, "linux", "arm64", NULL), MATCH_ERROR);
    explained(facts, "linux", "arm64", NULL, (struct compat_options){ 0 },
              "has a compatibility spec that cannot be used: it is no YAML");
}

TEST(a_variant_of_an_architecture_never_keeps_an_image_off_a_node)
{
    struct platform v9 = platform("linux", "arm64", "v9"), v7 = platform("linux", "arm", "v7");
    AUTO_IMAGE_FACTS one = image_facts_make(STR("sha256:1"), &v9, 1, NULL);
    AUTO_IMAGE_FACTS other = image_facts_make(STR("sha256:1"), &v7, 1, NULL);
    EXPECT_EQ(judged(one, "linux", "arm64", NULL), MATCH_YES);
    EXPECT_EQ(judged(other, "linux", "arm", NULL), MATCH_YES);
    EXPECT_EQ(judged(other, "linux", "arm64", NULL), MATCH_NO);
}

TEST(of_a_node_whose_platform_is_not_known_the_answer_is_unknown_unless_any_would_do)
{
    struct platform any = platform("linux", "", ""), arm = platform("linux", "arm64", "");
    AUTO_IMAGE_FACTS open = image_facts_make(STR("sha256:1"), &any, 1, NULL);
    AUTO_IMAGE_FACTS narrow = image_facts_make(STR("sha256:1"), &arm, 1, NULL);
    EXPECT_EQ(judged(open, "linux", "", NULL), MATCH_YES);
    EXPECT_EQ(judged(open, "", "", NULL), MATCH_UNKNOWN);
    EXPECT_EQ(judged(narrow, "linux", "", NULL), MATCH_UNKNOWN);
    EXPECT_EQ(judged(narrow, "", "arm64", NULL), MATCH_UNKNOWN);
    EXPECT_EQ(judged(narrow, "", "amd64", NULL), MATCH_NO);
    EXPECT_EQ(judged(narrow, "windows", "", NULL), MATCH_NO);
    explained(narrow, "linux", "", NULL, (struct compat_options){ 0 },
              "is built for linux/arm64 only, the node is linux/?, as far as is known");
    explained(narrow, "", "", NULL, (struct compat_options){ 0 },
              "is built for linux/arm64 only, the node is of a platform that is not known");
}

TEST(a_node_of_unknown_platform_is_refused_if_every_platform_that_it_may_be_refuses_it)
{
    WORLD w;
    world_init(&w);
    AUTO_IMAGE_FACTS facts = two_platforms(world_spec(&w, avx2_spec), world_spec(&w, sve_spec));
    EXPECT_EQ(judged(facts, "linux", "", cpu(&w, "NEON")), MATCH_NO);
    EXPECT_EQ(judged(facts, "linux", "", cpu(&w, "SVE")), MATCH_UNKNOWN);
    EXPECT_EQ(judged(facts, "linux", "", cpu(&w, "AVX2")), MATCH_UNKNOWN);
}

TEST(the_spec_of_a_platform_overrides_the_one_of_the_image_on_its_nodes)
{
    WORLD w;
    world_init(&w);
    AUTO_IMAGE_FACTS facts = two_platforms(world_spec(&w, avx2_spec), world_spec(&w, sve_spec));
    EXPECT_EQ(judged(facts, "linux", "amd64", cpu(&w, "AVX2")), MATCH_YES);
    EXPECT_EQ(judged(facts, "linux", "amd64", cpu(&w, "SVE")), MATCH_NO);
    EXPECT_EQ(judged(facts, "linux", "arm64", cpu(&w, "AVX2")), MATCH_NO);
    EXPECT_EQ(judged(facts, "linux", "arm64", cpu(&w, "SVE")), MATCH_YES);
}

TEST(a_platform_without_a_spec_of_its_own_takes_the_one_of_the_image)
{
    WORLD w;
    world_init(&w);
    AUTO_IMAGE_FACTS facts = two_platforms(world_spec(&w, avx2_spec), NULL);
    EXPECT_EQ(judged(facts, "linux", "arm64", cpu(&w, "SVE")), MATCH_NO);
    AUTO_IMAGE_FACTS only_arm = two_platforms(NULL, world_spec(&w, sve_spec));
    EXPECT_EQ(judged(only_arm, "linux", "amd64", cpu(&w, "NEON")), MATCH_YES);
    EXPECT_EQ(judged(only_arm, "linux", "arm64", cpu(&w, "NEON")), MATCH_NO);
}

TEST(of_several_variants_the_plain_one_is_pulled_and_its_spec_counts)
{
    WORLD w;
    world_init(&w);
    const struct platform platforms[] = { platform("linux", "amd64", "v3"),
                                          platform("linux", "amd64", "") };
    AUTO_IMAGE_FACTS facts = image_facts_make(STR("sha256:1"), platforms, 2, NULL);
    struct image_platform *v3 = (struct image_platform *)&facts->platforms[0];
    v3->spec.maybe_spec = compat_spec_ref(world_spec(&w, avx2_spec));
    EXPECT_EQ(judged(facts, "linux", "amd64", cpu(&w, "SSE42")), MATCH_YES);
}

TEST(a_verdict_names_the_set_the_rule_the_feature_and_what_was_found)
{
    WORLD w;
    world_init(&w);
    AUTO_IMAGE_FACTS tagged = image_facts_make(STR("d"), NULL, 0, world_spec(&w, avx2_spec));
    AUTO_IMAGE_FACTS plain = image_facts_make(STR("d"), NULL, 0, world_spec(&w, sve_spec));
    explained(tagged, "linux", "amd64", cpu(&w, "SSE42"), (struct compat_options){ 0 },
              "set \"fast\": rule \"avx2\": cpu.cpuid AVX2: expected to exist, is absent");
    explained(plain, "linux", "amd64", cpu(&w, "SSE42"), (struct compat_options){ 0 },
              "set 1: rule \"sve\": cpu.cpuid SVE: expected to exist, is absent");
}

TEST(a_verdict_says_how_rules_and_sets_were_combined_where_there_are_several)
{
    WORLD w;
    world_init(&w);
    const struct compat_spec *spec = world_spec(
        &w, "{version: v1alpha1, compatibilities: ["
            "{tag: a, rules: [{name: p, matchFeatures: [{feature: f, matchExpressions: {P: {op: "
            "Exists}}}]}, {name: q, matchFeatures: [{feature: f, matchExpressions: {Q: {op: "
            "Exists}}}]}]},"
            "{tag: b, rules: [{name: r, matchFeatures: [{feature: f, matchExpressions: {R: {op: "
            "Exists}}}]}]}]}");
    AUTO_IMAGE_FACTS facts = image_facts_make(STR("d"), NULL, 0, spec);
    const struct feature_set *x = world_set(&w, "flags: {f: {elements: {P: {}}}}");
    const struct feature_set *none = world_set(&w, "flags: {f: {elements: {}}}");
    explained(facts, "linux", "amd64", x, (struct compat_options){ 0 },
              "set \"b\": rule \"r\": f R: expected to exist, is absent (all 2 sets must match)");
    explained(facts, "linux", "amd64", x, (struct compat_options){ .sets = SETS_ANY }, "");
    explained(facts, "linux", "amd64", x,
              (struct compat_options){ .rules = { .combine = RULES_ALL } },
              "set \"a\": rule \"q\": f Q: expected to exist, is absent (all 2 rules must match; "
              "all 2 sets must match)");
    explained(facts, "linux", "amd64", none, (struct compat_options){ .sets = SETS_ANY },
              "set \"a\": rule \"p\": f P: expected to exist, is absent (one of 2 rules must "
              "match; one of 2 sets must match)");
}

TEST(a_node_that_has_published_nothing_is_refused_only_if_features_are_asked_for)
{
    WORLD w;
    world_init(&w);
    AUTO_IMAGE_FACTS asks = image_facts_make(STR("d"), NULL, 0, world_spec(&w, avx2_spec));
    const struct compat_spec *no_rules =
        world_spec(&w, "{version: v1alpha1, compatibilities: [{tag: a, weight: 3, rules: []}]}");
    AUTO_IMAGE_FACTS asks_not = image_facts_make(STR("d"), NULL, 0, no_rules);
    const struct str tag = STR("other");
    struct compat_options tagged = { .tags = { &tag, 1 } };
    struct image_node node = { STR("linux"), STR("amd64"), NULL };

    EXPECT_EQ(judged(asks, "linux", "amd64", NULL), MATCH_NO);
    EXPECT_EQ(judged(asks_not, "linux", "amd64", NULL), MATCH_YES);
    EXPECT_EQ(image_judge(asks, &node, &tagged).match, MATCH_YES);
    explained(asks, "linux", "amd64", NULL, (struct compat_options){ 0 },
              "asks for features of the node, and no features have been published for it yet");
}

TEST(texts_of_a_manifest_cannot_break_the_line)
{
    struct platform odd = platform("li\nnux", "arm\x1b[0m", "");
    AUTO_IMAGE_FACTS facts = image_facts_make(STR("d"), &odd, 1, NULL);
    AUTO_BUF text = { 0 };
    struct image_node node = { STR("linux"), STR("amd64"), NULL };
    image_explain(facts, &node, &(struct compat_options){ 0 }, &text);
    EXPECT_EQ(str_find(buf_str(&text), '\n'), -1);
    EXPECT_EQ(str_find(buf_str(&text), '\x1b'), -1);
}

TEST(a_long_list_of_platforms_is_cut)
{
    struct platform many[9];
    for (size_t i = 0; i < KV_COUNT_OF(many); i++)
        many[i] = platform("linux", "s390x", "");
    AUTO_IMAGE_FACTS facts = image_facts_make(STR("d"), many, KV_COUNT_OF(many), NULL);
    explained(facts, "linux", "amd64", NULL, (struct compat_options){ 0 },
              "is built for linux/s390x, linux/s390x, linux/s390x, linux/s390x, linux/s390x, "
              "linux/s390x and 3 more only, the node is linux/amd64");
}

TEST(facts_are_equal_if_they_say_the_same_whatever_spec_object_they_have)
{
    WORLD w;
    world_init(&w);
    AUTO_IMAGE_FACTS a = two_platforms(world_spec(&w, avx2_spec), world_spec(&w, sve_spec));
    AUTO_IMAGE_FACTS same = two_platforms(world_spec(&w, avx2_spec), world_spec(&w, sve_spec));
    AUTO_IMAGE_FACTS other = two_platforms(world_spec(&w, sve_spec), world_spec(&w, sve_spec));
    AUTO_IMAGE_FACTS without = two_platforms(world_spec(&w, avx2_spec), NULL);
    AUTO_IMAGE_FACTS troubled = two_platforms(world_spec(&w, avx2_spec), world_spec(&w, sve_spec));
    ((struct image_facts *)troubled)->spec.trouble = STR("odd");
    ((struct image_facts *)same)->way = REFERRERS_TAG;
    EXPECT_TRUE(image_facts_equal(a, same));
    EXPECT_FALSE(image_facts_equal(a, other));
    EXPECT_FALSE(image_facts_equal(a, without));
    EXPECT_FALSE(image_facts_equal(a, troubled));
}

TEST(facts_mention_what_the_rules_of_all_platforms_ask_for)
{
    WORLD w;
    world_init(&w);
    AUTO_IMAGE_FACTS facts = two_platforms(world_spec(&w, avx2_spec), world_spec(&w, sve_spec));
    FEATURE_MASK mask = { 0 };
    image_facts_mention(facts, &mask);
    feature_mask_settle(&mask);
    const struct feature_mention sve = { STR("cpu.cpuid"), STR("SVE"), MENTIONED_ELEMENT };
    const struct feature_mention avx2 = { STR("cpu.cpuid"), STR("AVX2"), MENTIONED_ELEMENT };
    EXPECT_TRUE(feature_mask_has(&mask, sve));
    EXPECT_TRUE(feature_mask_has(&mask, avx2));
}

TEST(a_copy_of_facts_says_the_same_and_has_nothing_of_theirs)
{
    WORLD w;
    world_init(&w);
    AUTO_IMAGE_FACTS facts = two_platforms(world_spec(&w, avx2_spec), world_spec(&w, sve_spec));
    AUTO_IMAGE_FACTS copy = image_facts_copy(facts);
    EXPECT_TRUE(image_facts_equal(facts, copy));
    image_facts_unref(take(&facts));
    EXPECT_STR(copy->digest, "sha256:1");
    EXPECT_STR(copy->platforms[1].spec.artifact, "sha256:2");
    EXPECT_STR(copy->platforms[1].platform.variant, "v8");
    EXPECT_EQ(judged(copy, "linux", "arm64", cpu(&w, "SVE")), MATCH_YES);
    EXPECT_TRUE(copy->bytes < sizeof *copy + 2 * sizeof(struct image_platform) + 50);
}
