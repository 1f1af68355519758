/* What explanations say of images. */
#include "sched/explain_testing.h"
#include "sched/fits_testing.h"

static void compile_again(struct asked *a)
{
    state_done(&a->s);
    model_done(&a->m);
    asked_compile(a);
}

/* The world again, its pod `p` being of an image that runs on these. */
static void asked_fit(struct asked *a, enum fit_unknown unknown, const char *list)
{
    world_fits(&a->w, unknown);
    world_fit(&a->w, "app:1", "p", list);
    compile_again(a);
}

TEST(images_that_no_type_runs_are_told_with_the_type_that_would_do_but_for_them)
{
    ASKED a;
    asked_load(&a, ANY_POOL POD("{cpu: 3}", ""), WORLD_TYPES_SMALL);
    asked_fit(&a, FIT_UNKNOWN_LAST, "");
    EXPECT_STR(miss_of(&a, "p"), "web image: no type that pool `web` allows runs its images "
                                 "(app:1); arm: has no avx512f");
    EXPECT_STR(nearest_of(&a, "p"), "arm would do but for its images: has no avx512f");
    EXPECT_STR(edit_of(&a, "p"), "");
    EXPECT_STR(steps_of(&a, "p"), "requirements 6>6 what the NodePool allows\n"
                                  "image 6>0 images app:1");
}

TEST(the_nearest_type_is_told_although_more_than_images_is_amiss)
{
    ASKED a;
    asked_load(&a, ANY_POOL POD("{cpu: 96}", ""), WORLD_TYPES_SMALL);
    asked_fit(&a, FIT_UNKNOWN_AS_NO, "*?");
    EXPECT_STR(miss_of(&a, "p"), "web image: no type that pool `web` allows is known to run its "
                                 "images (app:1); small: it is not known what it has");
    EXPECT_STR(nearest_of(&a, "p"), "small: it is not known what it has");
}

TEST(types_that_the_pool_does_not_allow_may_be_allowed_for_the_images)
{
    ASKED a;
    asked_load(&a,
               POOL_OF(IN("kubernetes.io/arch", "amd64"))
                   POD("{cpu: 1}", "  nodeSelector: {" ZONE_KEY ": zone-a}\n"),
               WORLD_TYPES_SMALL);
    asked_fit(&a, FIT_UNKNOWN_AS_NO, "arm");
    EXPECT_STR(miss_of(&a, "p"),
               "web image: no type that pool `web` allows and the pod asks for is known to run its "
               "images (app:1); small: has no avx512f");
    EXPECT_STR(edit_of(&a, "p"), "allow kubernetes.io/arch arm64 in NodePool web");
}

TEST(a_pod_too_large_for_what_runs_its_images_is_told_the_largest_of_that)
{
    ASKED a;
    asked_load(&a, ANY_POOL POD("{cpu: 6}", ""), WORLD_TYPES_SMALL);
    asked_fit(&a, FIT_UNKNOWN_LAST, "small medium?");
    EXPECT_STR(miss_of(&a, "p"),
               "web resources: needs 6 cpu where its images run; the largest type "
               "that pool `web` allows there has 4");
    EXPECT_STR(edit_of(&a, "p"), "lower the cpu request to 4");
    EXPECT_STR(steps_of(&a, "p"), "requirements 6>6 what the NodePool allows\n"
                                  "image 6>2 images app:1\n"
                                  "resources 2>0 cpu 6");
}

TEST(nodes_that_do_not_run_the_images_are_counted)
{
    ASKED a;
    asked_load(&a,
               ANY_POOL THREE_FULL_NODES WORLD_NODE("nd", "zone-a", "", "cpu: 8, memory: 8Gi")
                   POD("{cpu: 2}", ""),
               WORLD_TYPES_SMALL);
    asked_fit(&a, FIT_UNKNOWN_AS_NO, "na");
    struct explanation e = explain_class(&a.s, class_of(&a, "p"), &a.arena);
    EXPECT_STR(e.homes, "none of 4 nodes takes it: resources 1, image 3");
}

/* --- of a plan --- */

static struct explanation told(struct asked *a, const struct plan *plan, const char *pod)
{
    uint32_t ix = world_pod_ix(&a->w, pod);
    struct explanation e;
    plan_explain(&a->arena, &a->w.snap, a->w.options, plan, &ix, 1, &e);
    return e;
}

TEST(a_pod_that_went_where_nobody_knows_is_told_so)
{
    ASKED a;
    asked_load(&a, WORLD_POOL("web", "[]", "  limits: {cpu: 2}\n") POD("{cpu: 1}", ""),
               WORLD_TYPES_SMALL);
    asked_fit(&a, FIT_UNKNOWN_LAST, "large small?"); /* and large is beyond the limits */
    const struct plan *plan = world_plan(&a.w);
    struct explanation e = told(&a, plan, "p");
    EXPECT_EQ(e.on_launches, 1);
    EXPECT_STR(e.given_up, "it is not known whether the images run there");

    asked_fit(&a, FIT_UNKNOWN_LAST, "small large?");
    EXPECT_STR(told(&a, world_plan(&a.w), "p").given_up, "");
}

TEST(words_of_others_are_quoted_where_a_terminal_might_obey_them)
{
    ASKED a;
    asked_load(&a, ANY_POOL POD("{cpu: 1}", ""), WORLD_TYPES_SMALL);
    world_fits(&a.w, FIT_UNKNOWN_LAST);
    world_fit(&a.w, "a\x1b[2J", "p", "");
    a.w.snap.fits.why = NULL;
    compile_again(&a);
    EXPECT_STR(miss_of(&a, "p"), "web image: no type that pool `web` allows runs its images "
                                 "(\"a\\u001b[2J\"); small: its images do not run there");
}
