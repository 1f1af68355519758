/* The real kube-scheduler asks `karve extender` where pods may go, by what images in a real registry need: whatever
 * happens to groups, artifacts, the extender and the registry meanwhile, no pod gets to a node that cannot run its
 * images. And where no node can, `karve controller` launches one that does. */
#include "kube/images.h"

#include "api/kinds.h"
#include "api/nfd.h"
#include "compat/nfg_cache.h"

#include <stdio.h>

#define MANY_NODES 500
#define SOME_NODES 60

static const struct image_case *const anywhere[] = { &image_amd64, &image_arm64, &image_both,
                                                     &image_avx512, &image_two_sets };

/* `count` pods, of all images that some node can run, in turn. */
static void pods_of_all_images(struct images *s, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        images_pod(s, anywhere[s->pods % KV_COUNT_OF(anywhere)]);
}

/* --- where pods go --- */

TEST(among_500_nodes_pods_land_only_where_all_their_images_run)
{
    struct images *s = images_start(MANY_NODES, CLASSES_ALL);
    images_extender(s, NULL);
    for (uint32_t i = 0; i < 20; i++) {
        pods_of_all_images(s, 7);
        images_pod_of_two(s, &image_avx512, &image_both);
        images_pod_of_two(s, &image_two_sets, &image_amd64);
        images_pod_of_two(s, &image_arm64, &image_both);
    }
    EXPECT_EQ(s->pods, 200);
    images_expect_bound(s, 0);
    images_print_durations(s);
    EXPECT_EQ(plane_stop(s->plane, images_let_go(&s->extender)), 0);
}

TEST(an_extender_that_is_killed_again_and_again_lets_no_pod_astray_and_loses_none)
{
    struct images *s = images_start(MANY_NODES, CLASSES_ALL);
    images_extender(s, NULL);
    for (uint32_t round = 0; round < 5; round++) {
        pods_of_all_images(s, 20);
        plane_kill9(s->plane, images_let_go(&s->extender));
        pods_of_all_images(s, 20);
        images_extender(s, NULL);
        EXPECT_EQ(images_look(s).wrong, 0);
    }
    images_expect_bound(s, 0);
    images_print_durations(s);
}

static bool has(struct str text, const char *words)
{
    return text.len > 0 && memmem(text.p, text.len, words, strlen(words)) != NULL;
}

TEST(a_pod_that_fits_nowhere_waits_and_the_scheduler_says_why_in_plain_words)
{
    struct images *s = images_start(SOME_NODES, CLASSES_AMD64);
    images_extender(s, NULL);
    images_pod_at(s, "nowhere", 0, (const char *[]){ image_nowhere.name, NULL });
    images_pod_at(s, "arm", 0, (const char *[]){ image_arm64.name, NULL });
    images_pod_at(s, "two", 0, (const char *[]){ image_arm64.name, image_amd64.name, NULL });
    PLANE_WAIT(s->plane, has(images_why_not(s, "nowhere"), "AMXFP16"));
    PLANE_WAIT(s->plane, has(images_why_not(s, "arm"), "built for linux/arm64 only"));
    PLANE_WAIT(s->plane, has(images_why_not(s, "two"), "built for linux/arm64 only"));
    printf("# %.*s\n# %.*s\n", STR_ARG(images_why_not(s, "nowhere")),
           STR_ARG(images_why_not(s, "arm")));
    EXPECT_HAS(images_why_not(s, "nowhere"), "0/60 nodes are available");
    EXPECT_HAS(images_why_not(s, "nowhere"), "cpu.cpuid");
    pods_of_all_images(s, 1); /* others go on */
    images_expect_bound(s, 3);
}

TEST(a_node_that_nobody_has_looked_at_is_judged_by_its_instance_type)
{
    struct images *s = images_start(9, CLASS_PLAIN | CLASS_M7I | CLASS_M6A);
    images_extender(s, NULL);
    for (int i = 0; i < 5; i++) {
        images_pod(s, &image_avx512);
        images_pod(s, &image_two_sets);
        images_pod(s, &image_amd64);
    }
    images_expect_bound(s, 0);
    EXPECT_EQ(images_class_of(s, "p-0"), CLASS_M7I);
}

/* --- who makes room --- */

static void large_pod(struct images *s, const char *name, const char *priority,
                      const struct image_case *image)
{
    plane_apply(s->plane, arena_strf(&s->plane->arena,
                                     "apiVersion: v1\n"
                                     "kind: Pod\n"
                                     "metadata: {name: %s, labels: {may: '%u'}}\n"
                                     "spec: {terminationGracePeriodSeconds: 0, priorityClassName: "
                                     "%s, containers: [{name: main, image: '%s/%s', resources: "
                                     "{requests: {cpu: 3}}}]}\n",
                                     name, image->may, priority, s->registry->host, image->name)
                              .p);
    s->pods++;
}

TEST(pods_are_preempted_only_where_the_images_of_who_comes_instead_run)
{
    struct images *s = images_start(6, CLASS_PLAIN | CLASS_AVX512);
    char name[16];
    images_extender(s, NULL);
    plane_apply(s->plane, "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: "
                          "{name: low}, value: 1}\n---\n"
                          "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: "
                          "{name: urgent}, value: 1000}\n");
    for (int i = 0; i < 6; i++) { /* a node each */
        snprintf(name, sizeof name, "low-%d", i);
        large_pod(s, name, "low", &image_both);
    }
    /* Its image is known from then on. While one is looked up nobody is preempted for it, and the scheduler is in
     * no hurry to try again. */
    images_pod(s, &image_avx512);
    images_expect_bound(s, 0);
    large_pod(s, "nowhere", "urgent", &image_nowhere);
    large_pod(s, "urgent", "urgent", &image_avx512);
    PLANE_WAIT(s->plane, images_class_of(s, "urgent") != 0);
    EXPECT_EQ(images_class_of(s, "urgent"), CLASS_AVX512);
    s->pods--; /* the one that made room */
    images_expect_bound(s, 1);
}

/* --- what is launched --- */

static void start_controller(struct images *s)
{
    struct plane *p = s->plane;
    const char *trusted = arena_strf(&p->arena, "%s/app/*", s->registry->host).p;
    plane_apply(p, "apiVersion: karpenter.kwok.sh/v1alpha1\n"
                   "kind: KWOKNodeClass\n"
                   "metadata: {name: default}\n"
                   "spec: {}\n"
                   "---\n"
                   "apiVersion: karpenter.sh/v1\n"
                   "kind: NodePool\n"
                   "metadata: {name: any}\n"
                   "spec: {template: {spec: {requirements: [{key: kubernetes.io/os, operator: In, "
                   "values: [linux]}, {key: kubernetes.io/arch, operator: In, values: [amd64, "
                   "arm64]}], nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: "
                   "default}}}}\n");
    s->controller = plane_karve(
        p, "controller",
        (const char *[]){ "controller", "--kubeconfig", plane_path(p, "controller.kubeconfig"),
                          "--provider", "kwok", "--leader-elect=false", "--metrics-port", "0",
                          "--health-probe-port", "0", "--plain-http", s->registry->host,
                          "--launch-repositories", trusted, NULL });
}

/* "POOL ARCHITECTURE" of the node that the pod is on; "": it is on none. */
static struct str node_of_pod(struct images *s, const char *pod)
{
    return plane_must(s->plane,
                      "n=$(kubectl get pod %s -o 'jsonpath={.spec.nodeName}') && "
                      "{ [ -z \"$n\" ] || kubectl get node $n -o 'jsonpath={.metadata.labels."
                      "karpenter\\.sh/nodepool} {.metadata.labels.kubernetes\\.io/arch}'; }",
                      pod);
}

static struct str events_of(struct images *s, const char *pod)
{
    return plane_must(s->plane,
                      "kubectl get events --field-selector involvedObject.name=%s "
                      "-o 'jsonpath={range .items[*]}{.message}{\"\\n\"}{end}'",
                      pod);
}

TEST(where_no_node_fits_one_of_the_right_kind_is_launched_and_untrusted_artifacts_launch_nothing)
{
    struct images *s = images_start(10, CLASS_PLAIN);
    images_extender(s, NULL);
    start_controller(s);
    images_pod_at(s, "untrusted", 0, (const char *[]){ image_untrusted.name, NULL });
    PLANE_WAIT(s->plane, has(events_of(s, "untrusted"), "--launch-repositories"));
    EXPECT_STR(plane_must(s->plane, "kubectl get nodeclaims -o name"), "");
    images_pod_at(s, "arm", 0, (const char *[]){ image_arm64.name, NULL });
    images_pod_at(s, "avx512", 0, (const char *[]){ image_avx512.name, NULL });
    images_pod_at(s, "at-home", 0, (const char *[]){ image_both.name, NULL });
    PLANE_WAIT(s->plane, node_of_pod(s, "arm").len > 0);
    EXPECT_STR(node_of_pod(s, "arm"), "any arm64");
    PLANE_WAIT(s->plane, node_of_pod(s, "avx512").len > 0);
    EXPECT_STR(node_of_pod(s, "avx512"), "any amd64");
    EXPECT_STR(plane_must(s->plane, "kubectl get nodeclaims -o name | wc -l"), "2");
    PLANE_WAIT(s->plane, images_class_of(s, "at-home") == CLASS_PLAIN);
    EXPECT_EQ(plane_stop(s->plane, images_let_go(&s->controller)), 0);
}

/* --- groups --- */

static const char *const flags_of_specs[] = { "AVX512F", "AMXTILE" };

/* The group that a set with this flag has, as everybody can work out. */
static void group_name(struct images *s, const char *flag, char out[NFG_NAME_MAX])
{
    const struct compat_spec *spec = NULL;
    struct err err;
    struct str text = images_spec(&s->plane->arena, (const char *[]){ flag, NULL });
    EXPECT_OK(compat_spec_read("spec", text, (struct compat_spec_options){ 0 }, &spec, &err), err);
    EXPECT_OK(nfg_name(spec->sets[0].rules_json, 12, out, &err), err);
    compat_spec_unref(spec);
}

static bool groups_are_there(struct images *s)
{
    for (size_t i = 0; i < KV_COUNT_OF(flags_of_specs); i++) {
        char name[NFG_NAME_MAX];
        const struct object *group = NULL;
        struct err err;
        group_name(s, flags_of_specs[i], name);
        struct object_ref ref = { &node_feature_group_kind, STR(IMAGES_NFD), str_of(name) };
        if (store_get(s->store, ref, &group, &err) < 0)
            return false;
        object_unref(group);
    }
    return true;
}

TEST(groups_are_published_and_come_back_when_deleted_and_verdicts_do_not_change_meanwhile)
{
    struct images *s = images_start(SOME_NODES, CLASSES_ALL);
    images_extender(
        s, (const char *[]){ "--nfg-mode", "publish", "--nfd-namespace", IMAGES_NFD, NULL });
    pods_of_all_images(s, 10);
    PLANE_WAIT(s->plane, groups_are_there(s));
    for (uint32_t round = 0; round < 4; round++) {
        pods_of_all_images(s, 10);
        plane_must(s->plane, "kubectl delete nfg --all --wait=false -n " IMAGES_NFD);
        pods_of_all_images(s, 10);
        PLANE_WAIT(s->plane, groups_are_there(s));
        EXPECT_EQ(images_look(s).wrong, 0);
    }
    images_expect_bound(s, 0);
    EXPECT_STR(plane_must(s->plane, "kubectl get nfg -n " IMAGES_NFD " -o name | wc -l"), "2");
}

/* --- a tag that moves --- */

/* The tag means that image from now on. */
static void move_tag(struct images *s, const char *repository, const char *tag, const char *digest)
{
    AUTO_ARENA arena = { 0 };
    struct oci_manifest manifest;
    struct descriptor self;
    struct str text;
    struct err err = { 0 };
    struct reference ref = registry_fixture_reference(s->registry, &arena, repository);
    ref.digest = str_of(digest);
    EXPECT_OK(registry_manifest(s->client, &ref, NULL, &arena, &manifest, &text, &self, &err), err);
    EXPECT_OK(registry_push_manifest(s->client, &ref, NULL, str_of(tag), self.media_type, text,
                                     NULL, &err),
              err);
}

TEST(new_pods_follow_the_artifact_of_what_a_tag_means_now)
{
    struct images *s = images_start(SOME_NODES, CLASSES_ALL);
    char digest[DIGEST_TEXT_MAX], artifact[DIGEST_TEXT_MAX], name[32] = "";
    static const char *const moving[] = { "app/moving:1", NULL };
    struct str amx = images_spec(&s->plane->arena, (const char *[]){ "AMXTILE", NULL });
    registry_fixture_image(s->registry, s->client, "app/moving", "1", "arm64", digest);
    images_extender(s, (const char *[]){ "--cache-ttl-seconds", "1", NULL });
    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "before-%d", i);
        images_pod_at(s, name, CLASS_ARM, moving);
    }
    images_expect_bound(s, 0);

    registry_fixture_image(s->registry, s->client, "app/moving", "2", "amd64", digest);
    registry_fixture_attach(s->registry, s->client, "app/moving", digest, amx.p, 0, artifact);
    move_tag(s, "app/moving", "1", digest);
    /* What is old is still the answer while it is looked at anew, which a pod sets going. */
    int64_t until = plane_deadline(PLANE_LIMIT_S);
    for (int i = 0; !(images_class_of(s, name) & CLASSES_AMX); i++) {
        plane_wait(s->plane, until, "pods follow the new rules", __FILE__, __LINE__);
        snprintf(name, sizeof name, "during-%d", i);
        images_pod_at(s, name, CLASS_ARM | CLASSES_AMX, moving);
        images_expect_bound(s, 0);
    }
    for (int i = 0; i < 20; i++) {
        snprintf(name, sizeof name, "after-%d", i);
        images_pod_at(s, name, CLASSES_AMX, moving);
    }
    images_expect_bound(s, 0);
}

/* --- a registry that is gone --- */

TEST(without_the_registry_known_images_go_on_and_a_new_one_waits_until_it_is_back)
{
    struct images *s = images_start(SOME_NODES, CLASSES_ALL);
    char digest[DIGEST_TEXT_MAX];
    registry_fixture_image(s->registry, s->client, "app/new", "1", "arm64", digest);
    images_extender(s, (const char *[]){ "--cache-ttl-seconds", "1", NULL });
    pods_of_all_images(s, 10);
    images_expect_bound(s, 0);
    registry_fixture_halt(s->registry);
    images_pod_at(s, "new", CLASS_ARM, (const char *[]){ "app/new:1", NULL });
    PLANE_WAIT(s->plane, has(images_why_not(s, "new"), "could not be looked up"));
    printf("# %.*s\n", STR_ARG(images_why_not(s, "new")));
    int64_t stale_ns = plane_deadline(2); /* what is known has not been confirmed in time */
    PLANE_WAIT(s->plane, plane_deadline(0) > stale_ns);
    pods_of_all_images(s, 20);
    images_expect_bound(s, 1);
    EXPECT_EQ(images_class_of(s, "new"), 0);
    registry_fixture_resume(s->registry);
    images_expect_bound(s, 0);
}
