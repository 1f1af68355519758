/* Which tolerances bear which taints, through whole models. */
#include "sched/model_classes_testing.h"

#define TAINTED(name, taints) WORLD_POOL(name, "[]", "      taints: [" taints "]\n")
#define POD(name, tolerations)                                                                     \
    WORLD_POD(name, "{}", "{cpu: 1}", "  tolerations: [" tolerations "]\n")

static bool bears(const struct modelled *t, const char *pod, uint32_t variant, const char *pool)
{
    const struct pod_class *k = class_of_pod(t, pod);
    EXPECT_TRUE(variant < k->variant_count);
    return taints_tolerated(&t->m, k->variants[variant].tolerance, modelled_pool(t, pool)->taints);
}

TEST(a_taint_keeps_off_whoever_does_not_tolerate_it)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        TAINTED("clean", "") TAINTED("gpu", "{key: gpu, value: 'yes', effect: NoSchedule}")
            TAINTED("two", "{key: gpu, value: 'yes', effect: NoSchedule}, "
                           "{key: old, effect: NoExecute}") POD("none", "")
                POD("equal", "{key: gpu, value: 'yes'}") POD("other", "{key: gpu, value: 'no'}")
                    POD("exists", "{key: gpu, operator: Exists}")
                        POD("effect", "{key: gpu, operator: Exists, effect: NoExecute}")
                            POD("all", "{operator: Exists}"),
        NULL);
    static const struct {
        const char *pod;
        bool gpu, two;
    } cases[] = { { "none", false, false },  { "equal", true, false },   { "other", false, false },
                  { "exists", true, false }, { "effect", false, false }, { "all", true, true } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        EXPECT_TRUE(bears(&t, cases[i].pod, 0, "clean"));
        EXPECT_EQ(bears(&t, cases[i].pod, 0, "gpu"), cases[i].gpu);
        EXPECT_EQ(bears(&t, cases[i].pod, 0, "two"), cases[i].two);
        EXPECT_EQ(class_of_pod(&t, cases[i].pod)->variant_count, 1);
    }
}

TEST(prefer_no_schedule_is_borne_at_last)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  TAINTED("soft", "{key: old, effect: PreferNoSchedule}")
                      TAINTED("both", "{key: old, effect: PreferNoSchedule}, "
                                      "{key: gpu, effect: NoSchedule}") POD("plain", "")
                          POD("all", "{operator: Exists}"),
                  NULL);
    EXPECT_EQ(class_of_pod(&t, "plain")->variant_count, 2);
    EXPECT_FALSE(bears(&t, "plain", 0, "soft"));
    EXPECT_TRUE(bears(&t, "plain", 1, "soft"));
    EXPECT_FALSE(bears(&t, "plain", 1, "both"));
    EXPECT_STR(class_of_pod(&t, "plain")->variants[1].given_up,
               "keeping off PreferNoSchedule taints");
    EXPECT_TRUE(bears(&t, "all", 0, "both"));
}

TEST(preferences_that_are_ignored_still_keep_off_soft_taints_at_first)
{
    MODELLED t = { 0 };
    modelled_load(&t, TAINTED("soft", "{key: old, effect: PreferNoSchedule}") POD("plain", ""),
                  NULL);
    t.w.options.preferences = PREFERENCES_IGNORE;
    modelled_compile(&t);
    EXPECT_EQ(class_of_pod(&t, "plain")->variant_count, 2);
    EXPECT_FALSE(bears(&t, "plain", 0, "soft"));
}

TEST(tolerations_that_say_the_same_are_one)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        WORLD_POOL("web", "[]", "") POD("a", "{key: a, operator: Exists}, {key: b, value: x}")
            POD("b", "{key: b, operator: Equal, value: x}, {key: a, operator: Exists}, "
                     "{key: a, operator: Exists}")
                POD("c", "{key: a, operator: Exists, effect: NoExecute, "
                         "tolerationSeconds: 5}")
                    POD("d", "{key: a, operator: Exists, effect: NoExecute}"),
        NULL);
    EXPECT_TRUE(class_of_pod(&t, "a") == class_of_pod(&t, "b"));
    EXPECT_TRUE(class_of_pod(&t, "c") == class_of_pod(&t, "d"));
    EXPECT_EQ(t.m.class_count, 2);
}
