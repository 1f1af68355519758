/* `karve plan` where images count, on a real registry. */
#include "cli_testing.h"

#include "codec/json.h"
#include "registry/registry_fixture.h"

/* Without images the cheapest of these is taken: m6a.large, which has no AVX-512. */
#define POOL                                                                                       \
    "apiVersion: karpenter.sh/v1\n"                                                                \
    "kind: NodePool\n"                                                                             \
    "metadata: {name: mixed}\n"                                                                    \
    "spec:\n"                                                                                      \
    "  template:\n"                                                                                \
    "    spec:\n"                                                                                  \
    "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"          \
    "      requirements:\n"                                                                        \
    "      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}\n"               \
    "      - {key: node.kubernetes.io/instance-type, operator: In,\n"                              \
    "         values: [m6a.large, m7i.large, m7g.xlarge]}\n"                                       \
    "---\n"

#define NEEDS_AVX512                                                                                \
    "{\"version\": \"v1alpha1\", \"compatibilities\": [{\"tag\": \"fast\", \"rules\": [{\"name\": " \
    "\"vectors\", \"matchFeatures\": [{\"feature\": \"cpu.cpuid\", \"matchExpressions\": "          \
    "{\"AVX512F\": {\"op\": \"Exists\"}}}]}]}]}"

struct bench {
    struct registry_fixture *f;
    struct registry *r;
    struct buf command, input;
};

static void bench_done(struct bench *b)
{
    registry_free(b->r);
    buf_done(&b->command);
    buf_done(&b->input);
}
#define BENCH __attribute__((cleanup(bench_done))) struct bench

static struct bench bench_new(void)
{
    struct bench b = { .f = registry_fixture(REGISTRY_OPEN) };
    b.r = registry_fixture_client(b.f);
    return b;
}

static void push(struct bench *b, const char *repository, const char *architecture,
                 const char *maybe_spec)
{
    char digest[DIGEST_TEXT_MAX], artifact[DIGEST_TEXT_MAX];
    registry_fixture_image(b->f, b->r, repository, "1", architecture, digest);
    if (maybe_spec)
        registry_fixture_attach(b->f, b->r, repository, digest, maybe_spec, 1, artifact);
}

/* Three pods of one Deployment, with the image at `host`, the pool and what else there is. */
static struct result plan_at(struct bench *b, const char *host, const char *image,
                             const char *flags, const char *more)
{
    buf_clear(&b->command);
    buf_clear(&b->input);
    buf_addf(&b->command, "karve plan -f - --plain-http %s %s", host, flags);
    buf_addf(&b->input,
             POOL "apiVersion: apps/v1\n"
                  "kind: Deployment\n"
                  "metadata: {name: app}\n"
                  "spec:\n"
                  "  replicas: 3\n"
                  "  selector: {matchLabels: {app: a}}\n"
                  "  template:\n"
                  "    metadata: {labels: {app: a}}\n"
                  "    spec:\n"
                  "      containers:\n"
                  "      - {name: c, image: '%s/%s', resources: {requests: {cpu: 100m}}}\n%s",
             host, image, more);
    return sh(b->command.p, buf_str(&b->input));
}

static struct result plan(struct bench *b, const char *image, const char *flags, const char *more)
{
    return plan_at(b, b->f->host, image, flags, more);
}

#define EXPECT_SAYS(buf, part) EXPECT_HAS(buf_str(&(buf)), (part))
#define EXPECT_LACKS(buf, part) EXPECT_FALSE(strstr((buf).p ? (buf).p : "", (part)))

#define ON "--image-compatibility on "

/* --- architectures --- */

TEST(an_image_for_arm64_alone_launches_an_arm64_type)
{
    BENCH b = bench_new();
    push(&b, "plan/arm", "arm64", NULL);
    AUTO_RESULT without = plan(&b, "plan/arm:1", "", "");
    EXPECT_EQ(without.code, 0);
    EXPECT_SAYS(without.out, "m6a.large"); /* where it could not run */
    AUTO_RESULT with = plan(&b, "plan/arm:1", ON, "");
    EXPECT_EQ(with.code, 0);
    EXPECT_SAYS(with.out, "m7g.xlarge");
    EXPECT_LACKS(with.out, "m6a.large");
}

TEST(an_image_for_both_goes_where_it_is_cheapest)
{
    char amd64[DIGEST_TEXT_MAX], arm64[DIGEST_TEXT_MAX], index[DIGEST_TEXT_MAX];
    BENCH b = bench_new();
    registry_fixture_index(b.f, b.r, "plan/both", "1", amd64, arm64, index);
    AUTO_RESULT r = plan(&b, "plan/both:1", ON, "");
    EXPECT_EQ(r.code, 0);
    EXPECT_SAYS(r.out, "m6a.large");
}

/* --- artifacts --- */

TEST(an_artifact_of_a_repository_that_may_decide_chooses_the_type)
{
    AUTO_BUF flags = { 0 };
    BENCH b = bench_new();
    push(&b, "plan/vectors", "amd64", NEEDS_AVX512);
    buf_addf(&flags, ON "--launch-repositories '%s/plan/*' --explain app", b.f->host);
    AUTO_RESULT r = plan(&b, "plan/vectors:1", flags.p, "");
    EXPECT_EQ(r.code, 0);
    EXPECT_SAYS(r.out, "m7i.large");
    EXPECT_SAYS(r.out, "image"); /* the step that left the others out */
    EXPECT_LACKS(r.out, "m6a.large  us-");

    AUTO_RESULT platform = plan(&b, "plan/vectors:1", "--image-compatibility platform", "");
    EXPECT_EQ(platform.code, 0);
    EXPECT_SAYS(platform.out, "m6a.large"); /* artifacts are not asked for */
}

TEST(an_artifact_of_any_other_repository_leaves_its_pods_waiting_and_says_why)
{
    struct doc doc;
    struct err err = { 0 };
    BENCH b = bench_new();
    push(&b, "plan/other", "amd64", NEEDS_AVX512);
    AUTO_RESULT text = plan(&b, "plan/other:1", ON "--explain app", "");
    EXPECT_EQ(text.code, 1);
    EXPECT_SAYS(text.out, "--launch-repositories");
    AUTO_RESULT r = plan(&b, "plan/other:1", ON "-o json", "");
    EXPECT_EQ(r.code, 1);
    EXPECT_OK(json_read(buf_str(&r.out), &doc, &err), err);
    const json_val *misses = json_get(doc.root, STR("unschedulable"));
    EXPECT_EQ(json_count(misses), 3);
    const json_val *reason = json_at(json_get(json_at(misses, 0), STR("reasons")), 0);
    EXPECT_STR(json_str(json_get(reason, STR("reason"))), "image");
    doc_done(&doc);
}

/* --- nodes that are there --- */

#define NODE                                                                                       \
    "---\n"                                                                                        \
    "apiVersion: v1\n"                                                                             \
    "kind: Node\n"                                                                                 \
    "metadata: {name: n1, labels: {kubernetes.io/arch: amd64, kubernetes.io/os: linux}}\n"         \
    "status:\n"                                                                                    \
    "  allocatable: {cpu: '4', memory: 8Gi, pods: '50'}\n"                                         \
    "  capacity: {cpu: '4', memory: 8Gi, pods: '50'}\n"                                            \
    "  conditions: [{type: Ready, status: 'True'}]\n"
#define FEATURES(flag)                                                                             \
    "---\n"                                                                                        \
    "apiVersion: nfd.k8s-sigs.io/v1alpha1\n"                                                       \
    "kind: NodeFeature\n"                                                                          \
    "metadata: {name: n1, namespace: nfd, labels: {nfd.node.kubernetes.io/node-name: n1}}\n"       \
    "spec: {features: {flags: {cpu.cpuid: {elements: {" flag ": {}}}}}}\n"

TEST(a_node_is_judged_by_its_node_features)
{
    BENCH b = bench_new();
    push(&b, "plan/placed", "amd64", NEEDS_AVX512);
    AUTO_RESULT fits = plan(&b, "plan/placed:1", ON, NODE FEATURES("AVX512F"));
    EXPECT_EQ(fits.code, 0); /* where something is there, any artifact counts */
    EXPECT_SAYS(fits.out, "n1");
    AUTO_RESULT lacks = plan(&b, "plan/placed:1", ON "--explain app", NODE FEATURES("AVX2"));
    EXPECT_EQ(lacks.code, 1);
    EXPECT_SAYS(lacks.out, "image");
    AUTO_RESULT off = plan(&b, "plan/placed:1", "", NODE FEATURES("AVX2"));
    EXPECT_EQ(off.code, 0);
}

/* --- what cannot be looked up --- */

#define NOBODY "127.0.0.1:1" /* nothing listens there */

TEST(manifests_are_planned_for_without_a_word_to_any_registry_unless_told)
{
    BENCH b = { 0 };
    AUTO_RESULT r = plan_at(&b, NOBODY, "a:1", "", "");
    EXPECT_EQ(r.code, 0);
    EXPECT_LACKS(r.out, "looked up");
    AUTO_RESULT off = plan_at(&b, NOBODY, "a:1", "--image-compatibility off", "");
    EXPECT_STR(buf_str(&off.out), r.out.p);
}

TEST(an_image_that_cannot_be_looked_up_asks_for_nothing_or_fits_nowhere_and_is_told)
{
    BENCH b = { 0 };
    AUTO_RESULT open = plan_at(&b, NOBODY, "a:1", ON, "");
    EXPECT_EQ(open.code, 0);
    EXPECT_SAYS(open.out, "could not be looked up ask for nothing: " NOBODY "/a:1");
    AUTO_RESULT closed = plan_at(&b, NOBODY, "a:1", ON "--on-resolve-error fail", "");
    EXPECT_EQ(closed.code, 1);
    EXPECT_SAYS(closed.out, "could not be looked up fit no node: " NOBODY "/a:1");
    EXPECT_SAYS(closed.out, "refused");
}

TEST(an_image_that_the_registry_does_not_have_is_told_and_asks_for_nothing)
{
    BENCH b = bench_new();
    AUTO_RESULT r = plan(&b, "plan/nowhere:1", ON, "");
    EXPECT_EQ(r.code, 0);
    EXPECT_SAYS(r.out, "images that their registry does not have: ");
    EXPECT_SAYS(r.out, "plan/nowhere:1");
}

TEST(flags_about_images_that_make_no_sense_are_refused)
{
    AUTO_RESULT mode = karve("plan -f examples/shop --image-compatibility maybe");
    EXPECT_EQ(mode.code, 2);
    AUTO_RESULT mirror = karve("plan -f examples/shop " ON "--registry-mirror nonsense");
    EXPECT_EQ(mirror.code, 2);
    AUTO_RESULT keys = karve("plan -f examples/shop " ON "--registry-config /none/config.json");
    EXPECT_EQ(keys.code, 3);
    EXPECT_SAYS(keys.err, "/none/config.json");
}
