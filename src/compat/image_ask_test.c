#include "compat/image.h"
#include "compat/registry_inner.h"
#include "compat/registry_testing.h"
#include "support/test.h"

#include <stdio.h>

#define SPEC_OF(tag)                                                                               \
    "version: v1alpha1\ncompatibilities:\n- tag: " tag                                             \
    "\n  rules:\n  - name: r\n    matchFeatures:\n    - feature: cpu.cpuid\n"                      \
    "      matchExpressions: {AVX2: {op: Exists}}\n"
#define CONFIG "{\"architecture\":\"arm64\",\"os\":\"linux\",\"variant\":\"v8\"}"

struct scene {
    struct fake_registry *f;
    struct registry *r;
    struct arena arena;
    struct reference ref;
};

static void scene_init(struct scene *s, struct fake_registry_options server)
{
    struct err err = { 0 };
    s->f = fake_registry_new(server);
    s->r = fake_registry_client(s->f, (struct registry_options){ 0 });
    EXPECT_OK(reference_parse(&s->arena,
                              arena_strf(&s->arena, "%s/team/app:1", fake_registry_host(s->f)),
                              &s->ref, &err),
              err);
}

static void scene_done(struct scene *s)
{
    registry_free(s->r);
    fake_registry_free(s->f);
    arena_done(&s->arena);
}
#define SCENE __attribute__((cleanup(scene_done))) struct scene

static void facts_done(const struct image_facts **facts)
{
    image_facts_unref(*facts);
}
#define FACTS __attribute__((cleanup(facts_done))) const struct image_facts *

static const struct image_facts *ask(struct scene *s, const struct image_facts *maybe_known)
{
    const struct image_facts *facts = NULL;
    struct err err = { 0 };
    EXPECT_OK(
        image_ask(
            &(struct image_ask){ .registry = s->r, .ref = &s->ref, .maybe_known = maybe_known },
            &facts, &err),
        err);
    return facts;
}

/* --- what is in the registry; digests are the arena's --- */

static struct str blob(struct scene *s, const char *text)
{
    char digest[DIGEST_TEXT_MAX];
    fake_registry_blob(s->f, str_of(text), digest);
    return arena_str(&s->arena, str_of(digest));
}

static struct str image(struct scene *s, const char *maybe_tag, const char *config)
{
    char digest[DIGEST_TEXT_MAX];
    struct str config_digest = blob(s, config);
    fake_registry_manifest(
        s->f, "team/app", maybe_tag, MEDIA_OCI_MANIFEST,
        arena_strf(&s->arena,
                   "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
                   "\",\"config\":{\"mediaType\":\"application/vnd.oci.image.config.v1+json\","
                   "\"digest\":\"%.*s\",\"size\":%zu},\"layers\":[]}",
                   STR_ARG(config_digest), strlen(config)),
        digest);
    return arena_str(&s->arena, str_of(digest));
}

static struct str attach(struct scene *s, struct str subject, const char *type, const char *created,
                         const char *spec)
{
    char digest[DIGEST_TEXT_MAX];
    struct str layer = blob(s, spec);
    fake_registry_manifest(
        s->f, "team/app", NULL, MEDIA_OCI_MANIFEST,
        arena_strf(&s->arena,
                   "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
                   "\",\"artifactType\":\"%s\",\"config\":{\"mediaType\":\"" MEDIA_OCI_EMPTY
                   "\",\"digest\":\"" EMPTY_DIGEST
                   "\",\"size\":2},\"layers\":[{\"mediaType\":\"" COMPAT_SPEC_MEDIA
                   "\",\"digest\":\"%.*s\",\"size\":%zu}],\"subject\":"
                   "{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"%.*s\",\"size\":2},"
                   "\"annotations\":{\"org.opencontainers.image.created\":\"%s\"}}",
                   type, STR_ARG(layer), strlen(spec), STR_ARG(subject), created),
        digest);
    return arena_str(&s->arena, str_of(digest));
}

static void index_of(struct scene *s, struct str amd, struct str arm)
{
    fake_registry_manifest(
        s->f, "team/app", "1", MEDIA_OCI_INDEX,
        arena_strf(
            &s->arena,
            "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX "\",\"manifests\":["
            "{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"%.*s\",\"size\":1,"
            "\"platform\":{\"os\":\"linux\",\"architecture\":\"amd64\"}},"
            "{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"%.*s\",\"size\":1,"
            "\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\"}},"
            "{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"" EMPTY_DIGEST
            "\",\"size\":1,\"platform\":{\"os\":\"unknown\",\"architecture\":\"unknown\"}}]}",
            STR_ARG(amd), STR_ARG(arm)),
        NULL);
}

/* --- */

TEST(an_image_without_artifacts_has_the_platform_of_its_config)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 });
    struct str digest = image(&s, "1", CONFIG);
    FACTS facts = ask(&s, NULL);
    EXPECT_TRUE(str_eq(facts->digest, digest));
    EXPECT_STR(facts->media_type, MEDIA_OCI_MANIFEST);
    EXPECT_EQ(facts->platform_count, 1);
    EXPECT_STR(facts->platforms[0].platform.architecture, "arm64");
    EXPECT_STR(facts->platforms[0].platform.os, "linux");
    EXPECT_STR(facts->platforms[0].platform.variant, "v8");
    EXPECT_TRUE(!facts->spec.maybe_spec);
    EXPECT_EQ(facts->spec.artifact.len, 0);
    EXPECT_EQ(facts->spec.trouble.len, 0);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 3); /* manifest, config, referrers */
}

TEST(the_newest_spec_counts)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 });
    struct str digest = image(&s, "1", CONFIG);
    attach(&s, digest, COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z", SPEC_OF("old"));
    struct str newest =
        attach(&s, digest, COMPAT_ARTIFACT_TYPE, "2026-03-01T00:00:00Z", SPEC_OF("new"));
    attach(&s, digest, COMPAT_ARTIFACT_TYPE, "2026-02-01T00:00:00Z", SPEC_OF("middle"));
    attach(&s, digest, "application/vnd.other", "2026-04-01T00:00:00Z", SPEC_OF("other"));
    FACTS facts = ask(&s, NULL);
    EXPECT_TRUE(str_eq(facts->spec.artifact, newest));
    EXPECT_EQ(facts->spec.maybe_spec->set_count, 1);
    EXPECT_STR(facts->spec.maybe_spec->sets[0].tag, "new");
    EXPECT_EQ(facts->way, REFERRERS_API);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 5); /* and the artifact and its spec */
}

TEST(who_wants_the_platforms_alone_asks_for_no_artifacts)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 });
    struct str digest = image(&s, "1", CONFIG);
    attach(&s, digest, COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z", SPEC_OF("a"));
    struct err err = { 0 };
    FACTS alone = NULL;
    EXPECT_OK(
        image_ask(&(struct image_ask){ .registry = s.r, .ref = &s.ref, .platform_only = true },
                  &alone, &err),
        err);
    EXPECT_STR(alone->platforms[0].platform.architecture, "arm64");
    EXPECT_TRUE(!alone->spec.maybe_spec);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 2); /* manifest, config */
    FACTS whole = ask(&s, alone);
    EXPECT_STR(whole->spec.maybe_spec->sets[0].tag, "a");
}

TEST(an_index_has_its_platforms_and_each_may_have_a_spec_of_its_own)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 });
    struct str amd = image(&s, NULL, "{\"architecture\":\"amd64\",\"os\":\"linux\"}");
    struct str arm = image(&s, NULL, CONFIG);
    index_of(&s, amd, arm);
    attach(&s, arm, COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z", SPEC_OF("arm"));
    FACTS facts = ask(&s, NULL);
    EXPECT_STR(facts->media_type, MEDIA_OCI_INDEX);
    EXPECT_EQ(facts->platform_count, 2); /* an attestation is none */
    EXPECT_TRUE(str_eq(facts->platforms[0].digest, amd));
    EXPECT_TRUE(!facts->platforms[0].spec.maybe_spec);
    EXPECT_STR(facts->platforms[1].platform.architecture, "arm64");
    EXPECT_STR(facts->platforms[1].spec.maybe_spec->sets[0].tag, "arm");
    EXPECT_TRUE(!facts->spec.maybe_spec);
}

TEST(what_is_known_and_unchanged_costs_two_questions_and_is_the_answer_itself)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 });
    struct str digest = image(&s, "1", CONFIG);
    attach(&s, digest, COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z", SPEC_OF("a"));
    FACTS known = ask(&s, NULL);
    fake_registry_forget_seen(s.f);
    FACTS again = ask(&s, known);
    EXPECT_TRUE(again == known);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 2);
    EXPECT_EQ(fake_registry_seen(s.f, "HEAD "), 1);
    EXPECT_EQ(fake_registry_seen(s.f, "/referrers/"), 1);

    s.ref.digest = digest; /* what a digest means needs no asking */
    fake_registry_forget_seen(s.f);
    FACTS pinned = ask(&s, known);
    EXPECT_TRUE(pinned == known);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 1);
}

TEST(a_new_artifact_and_a_moved_tag_are_noticed)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 });
    struct str digest = image(&s, "1", CONFIG);
    FACTS first = ask(&s, NULL);
    attach(&s, digest, COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z", SPEC_OF("a"));
    FACTS second = ask(&s, first);
    EXPECT_TRUE(second != first);
    EXPECT_STR(second->spec.maybe_spec->sets[0].tag, "a");
    EXPECT_STR(second->platforms[0].platform.architecture, "arm64");
    struct str moved = image(&s, "1", "{\"architecture\":\"riscv64\",\"os\":\"linux\"}");
    FACTS third = ask(&s, second);
    EXPECT_TRUE(str_eq(third->digest, moved));
    EXPECT_STR(third->platforms[0].platform.architecture, "riscv64");
    EXPECT_TRUE(!third->spec.maybe_spec);
}

TEST(an_artifact_that_cannot_be_used_is_trouble_and_never_no_artifact)
{
    static const struct {
        const char *spec, *words;
        struct fake_fault fault;
    } rows[] = {
        { "version: v1alpha1\ncompatibilities: 7\n", "compatibilities", { 0 } },
        { "version: v9\ncompatibilities: []\n", "v9", { 0 } },
        { SPEC_OF("a"), "404", { .on = "/blobs/", .status = 404 } },
        { SPEC_OF("a"), "bytes", { .on = "/blobs/", .body = "short" } },
        { SPEC_OF("a"), "more", { .on = "/blobs/", .endless = true } },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        SCENE s = { 0 };
        scene_init(&s, (struct fake_registry_options){ 0 });
        struct str digest = image(&s, "1", CONFIG);
        s.ref.digest = digest;
        FACTS before = ask(&s, NULL);
        struct str artifact =
            attach(&s, digest, COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z", rows[i].spec);
        if (rows[i].fault.on)
            fake_registry_fault(s.f, rows[i].fault);
        FACTS facts = ask(&s, before);
        EXPECT_TRUE(str_eq(facts->spec.artifact, artifact));
        EXPECT_TRUE(!facts->spec.maybe_spec);
        EXPECT_HAS(facts->spec.trouble, rows[i].words);
    }
}

TEST(trouble_that_gets_mended_goes)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 });
    struct str digest = image(&s, "1", CONFIG);
    s.ref.digest = digest;
    FACTS before = ask(&s, NULL);
    attach(&s, digest, COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z", SPEC_OF("a"));
    fake_registry_fault(s.f, (struct fake_fault){ .on = "/blobs/", .times = 1, .status = 404 });
    FACTS broken = ask(&s, before);
    EXPECT_TRUE(broken->spec.trouble.len > 0);
    FACTS mended = ask(&s, broken);
    EXPECT_EQ(mended->spec.trouble.len, 0);
    EXPECT_STR(mended->spec.maybe_spec->sets[0].tag, "a");
}

TEST(an_artifact_that_belongs_to_another_image_or_is_of_another_type_is_trouble)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ .without_referrers = true });
    struct str digest = image(&s, "1", CONFIG);
    struct str of_other =
        attach(&s, STR(EMPTY_DIGEST), COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z", SPEC_OF("a"));
    struct str of_type =
        attach(&s, digest, "application/vnd.other", "2026-01-01T00:00:00Z", SPEC_OF("a"));
    struct str rows[] = { of_other, of_type };
    AUTO_BUF tag = { 0 };
    referrers_tag(digest, &tag);
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        fake_registry_manifest(
            s.f, "team/app", tag.p, MEDIA_OCI_INDEX,
            arena_strf(&s.arena,
                       "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX
                       "\",\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_MANIFEST
                       "\",\"digest\":\"%.*s\",\"size\":9,\"artifactType\":\"" COMPAT_ARTIFACT_TYPE
                       "\"}]}",
                       STR_ARG(rows[i])),
            NULL);
        FACTS facts = ask(&s, NULL);
        EXPECT_EQ(facts->way, REFERRERS_TAG);
        EXPECT_TRUE(facts->spec.trouble.len > 0);
        EXPECT_TRUE(!facts->spec.maybe_spec);
    }
}

TEST(more_sets_than_are_wanted_is_trouble)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 });
    struct str digest = image(&s, "1", CONFIG);
    const struct image_facts *facts = NULL;
    struct err err = { 0 };
    attach(&s, digest, COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z",
           "version: v1alpha1\ncompatibilities:\n- tag: a\n  rules: []\n- tag: b\n  rules: []\n");
    for (uint32_t sets_max = 1; sets_max <= 2; sets_max++) {
        EXPECT_OK(
            image_ask(&(struct image_ask){ .registry = s.r, .ref = &s.ref, .sets_max = sets_max },
                      &facts, &err),
            err);
        EXPECT_EQ(facts->spec.trouble.len > 0, sets_max == 1);
        image_facts_unref(facts);
    }
}

TEST(a_registry_that_cannot_be_asked_is_an_error_and_says_nothing_of_the_image)
{
    static const struct {
        const char *on;
        int status;
        enum err_kind kind;
    } rows[] = {
        { "/manifests/1 ", 404, ERR_NOT_FOUND }, { "/manifests/1 ", 403, ERR_DENIED },
        { "/referrers/", 403, ERR_DENIED },      { "/referrers/", 429, ERR_THROTTLED },
        { "/blobs/", 403, ERR_DENIED },          { "/manifests/1 ", 200, ERR_INVALID },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        SCENE s = { 0 };
        const struct image_facts *facts = NULL;
        struct err err = { 0 };
        scene_init(&s, (struct fake_registry_options){ 0 });
        struct str digest = image(&s, "1", CONFIG);
        attach(&s, digest, COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z", SPEC_OF("a"));
        fake_registry_fault(s.f, (struct fake_fault){ .on = rows[i].on,
                                                      .status = rows[i].status,
                                                      .headers = { "Retry-After: 3600" } });
        EXPECT_ERR(image_ask(&(struct image_ask){ .registry = s.r, .ref = &s.ref }, &facts, &err),
                   err, rows[i].kind);
        EXPECT_TRUE(!facts);
    }
}

TEST(what_is_no_container_image_has_no_platform)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 });
    struct str artifact =
        attach(&s, STR(EMPTY_DIGEST), COMPAT_ARTIFACT_TYPE, "2026-01-01T00:00:00Z", SPEC_OF("a"));
    s.ref.digest = artifact;
    FACTS facts = ask(&s, NULL);
    EXPECT_EQ(facts->platform_count, 0);
}
