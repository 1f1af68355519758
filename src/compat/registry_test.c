#include "compat/registry.h"

#include "codec/base64.h"
#include "compat/registry_inner.h"
#include "compat/registry_testing.h"
#include "support/test.h"

#include <stdio.h>

#define SECOND ((int64_t)1000000000)
#define TYPE "application/vnd.test.thing"

/* --- the scene: a registry, a client, and an image team/app:1 --- */

static const char image_text[] =
    "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"config\":{\"mediaType\":"
    "\"application/vnd.oci.image.config.v1+json\",\"digest\":\"" EMPTY_DIGEST "\",\"size\":2},"
    "\"layers\":[]}";

struct scene {
    struct fake_registry *f;
    struct registry *r;
    struct virtual_clock *clock;
    struct arena arena;
    struct reference ref;
    char digest[DIGEST_TEXT_MAX];
};

static struct reference reference_to(struct scene *s, const char *rest)
{
    struct reference ref;
    struct err err = { 0 };
    EXPECT_OK(reference_parse(&s->arena,
                              arena_strf(&s->arena, "%s/%s", fake_registry_host(s->f), rest), &ref,
                              &err),
              err);
    return ref;
}

static void scene_init(struct scene *s, struct fake_registry_options server,
                       struct registry_options client)
{
    s->f = fake_registry_new(server);
    s->clock = virtual_clock_new(1770000000000000);
    client.clock = virtual_clock_port(s->clock);
    s->r = fake_registry_client(s->f, client);
    s->ref = reference_to(s, "team/app:1");
    fake_registry_manifest(s->f, "team/app", "1", MEDIA_OCI_MANIFEST, str_of(image_text),
                           s->digest);
}

static void scene_done(struct scene *s)
{
    registry_free(s->r);
    fake_registry_free(s->f);
    virtual_clock_free(s->clock);
    arena_done(&s->arena);
}
#define SCENE __attribute__((cleanup(scene_done))) struct scene

static const struct keyring *keys_of(struct scene *s, const char *key, const char *fields)
{
    const struct keyring *ring = NULL;
    struct err err = { 0 };
    struct str text =
        arena_strf(&s->arena, "{\"auths\":{\"%s%s\":{%s}}}", fake_registry_host(s->f), key, fields);
    EXPECT_OK(keyring_read("test", text, KEYRING_CONFIG, &ring, NULL, &err), err);
    return ring;
}

static void keys_done(const struct keyring **ring)
{
    keyring_unref(*ring);
}
#define KEYS __attribute__((cleanup(keys_done))) const struct keyring *

static struct str digest_now(struct scene *s, const struct keyring *maybe_keys)
{
    struct descriptor self = { 0 };
    struct err err = { 0 };
    EXPECT_OK(registry_digest(s->r, &s->ref, maybe_keys, &s->arena, &self, &err), err);
    return self.digest;
}

static void artifact(struct scene *s, const char *type, const char *created,
                     char out[DIGEST_TEXT_MAX])
{
    fake_registry_manifest(
        s->f, "team/app", NULL, MEDIA_OCI_MANIFEST,
        arena_strf(&s->arena,
                   "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
                   "\",\"artifactType\":\"%s\",\"config\":{\"mediaType\":\"" MEDIA_OCI_EMPTY
                   "\",\"digest\":\"" EMPTY_DIGEST "\",\"size\":2},\"layers\":[],\"subject\":"
                   "{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"%s\",\"size\":%zu},"
                   "\"annotations\":{\"org.opencontainers.image.created\":\"%s\"}}",
                   type, s->digest, sizeof image_text - 1, created),
        out);
}

static struct referrers referrers_now(struct scene *s)
{
    struct referrers found = { 0 };
    struct err err = { 0 };
    EXPECT_OK(registry_referrers(s->r, &s->ref, NULL, str_of(s->digest), STR(TYPE), &s->arena,
                                 &found, &err),
              err);
    return found;
}

/* --- digests and manifests --- */

TEST(a_tag_is_resolved_by_a_head_request_alone)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    struct descriptor self = { 0 };
    struct err err = { 0 };
    EXPECT_OK(registry_digest(s.r, &s.ref, NULL, &s.arena, &self, &err), err);
    EXPECT_STR(self.digest, s.digest);
    EXPECT_STR(self.media_type, MEDIA_OCI_MANIFEST);
    EXPECT_EQ(self.size, sizeof image_text - 1);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 1);
    EXPECT_EQ(fake_registry_seen(s.f, "HEAD /v2/team/app/manifests/1"), 1);
}

TEST(where_head_is_refused_or_does_not_tell_the_digest_the_manifest_is_read_and_hashed)
{
    const struct fake_fault faults[] = { { .on = "HEAD", .status = 405 },
                                         { .on = "HEAD", .status = 400 },
                                         { .on = "", .without = "Docker-Content-Digest" } };
    for (size_t i = 0; i < KV_COUNT_OF(faults); i++) {
        SCENE s = { 0 };
        scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
        fake_registry_fault(s.f, faults[i]);
        EXPECT_STR(digest_now(&s, NULL), s.digest);
        EXPECT_EQ(fake_registry_seen(s.f, "GET "), 1);
    }
}

TEST(a_manifest_comes_with_its_text_and_its_descriptor)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    struct oci_manifest manifest;
    struct str text;
    struct descriptor self;
    struct err err = { 0 };
    struct reference pinned = reference_to(&s, "team/app:other");
    pinned.digest = str_of(s.digest);
    EXPECT_OK(registry_manifest(s.r, &s.ref, NULL, &s.arena, &manifest, &text, &self, &err), err);
    EXPECT_STR(text, image_text);
    EXPECT_STR(self.digest, s.digest);
    EXPECT_EQ(self.size, sizeof image_text - 1);
    EXPECT_OK(registry_manifest(s.r, &pinned, NULL, &s.arena, &manifest, NULL, &self, &err), err);
    EXPECT_STR(self.digest, s.digest);
}

TEST(what_is_not_there_is_not_found_and_the_error_names_it)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    struct descriptor self;
    struct oci_manifest manifest;
    struct str bytes;
    struct err err = { 0 };
    struct reference other = reference_to(&s, "team/app:2");
    struct descriptor blob = { .digest = STR(EMPTY_DIGEST), .size = 2 };
    EXPECT_ERR(registry_digest(s.r, &other, NULL, &s.arena, &self, &err), err, ERR_NOT_FOUND);
    EXPECT_ERR(registry_manifest(s.r, &other, NULL, &s.arena, &manifest, NULL, NULL, &err), err,
               ERR_NOT_FOUND);
    EXPECT_HAS(str_of(err.text), "/team/app: manifest \"2\": the registry answers 404 ");
    EXPECT_HAS(str_of(err.text), "MANIFEST_UNKNOWN");
    EXPECT_ERR(registry_blob(s.r, &s.ref, NULL, &blob, 100, &s.arena, &bytes, &err), err,
               ERR_NOT_FOUND);
}

/* --- referrers --- */

TEST(referrers_are_filtered_by_type_by_the_registry_or_here)
{
    for (int filters = 0; filters < 2; filters++) {
        SCENE s = { 0 };
        char wanted[DIGEST_TEXT_MAX];
        scene_init(&s, (struct fake_registry_options){ .filters = filters },
                   (struct registry_options){ 0 });
        artifact(&s, "application/vnd.other", "2026-01-01T00:00:00Z", NULL);
        artifact(&s, TYPE, "2026-01-02T00:00:00Z", wanted);
        struct referrers found = referrers_now(&s);
        EXPECT_EQ(found.way, REFERRERS_API);
        EXPECT_EQ(found.count, 1);
        EXPECT_STR(found.items[0].digest, wanted);
        EXPECT_STR(found.items[0].artifact_type, TYPE);
        EXPECT_EQ(fake_registry_seen(s.f, "artifactType=application%2Fvnd.test.thing"), 1);
    }
}

TEST(referrers_are_collected_from_all_pages)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ .page = 3, .filters = true },
               (struct registry_options){ 0 });
    for (int i = 0; i < 10; i++) {
        char created[40];
        snprintf(created, sizeof created, "2026-01-%02dT00:00:00Z", i + 1);
        artifact(&s, TYPE, created, NULL);
    }
    EXPECT_EQ(referrers_now(&s).count, 10);
    EXPECT_EQ(fake_registry_seen(s.f, "/referrers/"), 4);
}

TEST(no_referrers_is_an_answer)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    struct referrers found = referrers_now(&s);
    EXPECT_EQ(found.count, 0);
    EXPECT_EQ(found.way, REFERRERS_API);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 1);
}

static void tag_index(struct scene *s, struct str digest)
{
    AUTO_BUF tag = { 0 };
    referrers_tag(str_of(s->digest), &tag);
    fake_registry_manifest(
        s->f, "team/app", tag.p, MEDIA_OCI_INDEX,
        arena_strf(&s->arena,
                   "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX
                   "\",\"manifests\":[{\"mediaType\":\"" MEDIA_OCI_MANIFEST
                   "\",\"digest\":\"%.*s\",\"size\":9,\"artifactType\":\"" TYPE "\"},"
                   "{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"digest\":\"" EMPTY_DIGEST
                   "\",\"size\":9,\"artifactType\":\"x/y\"}]}",
                   STR_ARG(digest)),
        NULL);
}

TEST(without_the_api_referrers_are_found_by_their_tag)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ .without_referrers = true },
               (struct registry_options){ 0 });
    EXPECT_EQ(referrers_now(&s).count, 0);
    tag_index(&s, str_of(s.digest));
    struct referrers found = referrers_now(&s);
    EXPECT_EQ(found.way, REFERRERS_TAG);
    EXPECT_EQ(found.count, 1);
    EXPECT_STR(found.items[0].digest, s.digest);
}

TEST(a_page_of_html_in_place_of_an_index_means_that_there_is_no_api)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(s.f, (struct fake_fault){ .on = "/referrers/",
                                                  .headers = { "Content-Type: text/html" },
                                                  .body = "<html>hello</html>" });
    EXPECT_EQ(referrers_now(&s).way, REFERRERS_TAG);
}

TEST(that_a_repository_has_no_api_is_remembered_for_a_day)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ .without_referrers = true },
               (struct registry_options){ 0 });
    for (int i = 0; i < 3; i++)
        referrers_now(&s);
    EXPECT_EQ(fake_registry_seen(s.f, "/referrers/"), 1);
    virtual_clock_advance(s.clock, 24 * 3600 * SECOND - 1);
    referrers_now(&s);
    EXPECT_EQ(fake_registry_seen(s.f, "/referrers/"), 1);
    virtual_clock_advance(s.clock, 1);
    referrers_now(&s);
    EXPECT_EQ(fake_registry_seen(s.f, "/referrers/"), 2);
}

TEST(that_a_repository_is_unknown_is_not_taken_for_a_missing_api)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    struct referrers found;
    struct err err = { 0 };
    fake_registry_fault(
        s.f, (struct fake_fault){ .on = "/referrers/",
                                  .status = 404,
                                  .times = 1,
                                  .body = "{\"errors\":[{\"code\":\"NAME_UNKNOWN\"}]}" });
    EXPECT_ERR(
        registry_referrers(s.r, &s.ref, NULL, str_of(s.digest), STR(TYPE), &s.arena, &found, &err),
        err, ERR_NOT_FOUND);
    EXPECT_EQ(referrers_now(&s).way, REFERRERS_API);
}

/* --- authentication --- */

#define GOOD "\"username\":\"me\",\"password\":\"p:w\""
#define BAD "\"username\":\"me\",\"password\":\"no\""
#define TOKENS .auth = FAKE_TOKEN, .user = "me", .password = "p:w"

TEST(a_token_is_asked_for_once_and_used_until_a_tenth_of_its_life_is_left)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ TOKENS, .expires_in = "300" },
               (struct registry_options){ 0 });
    KEYS keys = keys_of(&s, "", GOOD);
    digest_now(&s, keys);
    digest_now(&s, keys);
    EXPECT_EQ(fake_registry_seen(
                  s.f, "GET /token?service=a%2C%20b&scope=repository%3Ateam%2Fapp%3Apull [Basic "),
              1);
    EXPECT_EQ(fake_registry_seen(s.f, "HEAD "), 3); /* the first is refused */
    virtual_clock_advance(s.clock, 270 * SECOND - 1);
    digest_now(&s, keys);
    EXPECT_EQ(fake_registry_seen(s.f, "/token?"), 1);
    virtual_clock_advance(s.clock, 1);
    digest_now(&s, keys);
    EXPECT_EQ(fake_registry_seen(s.f, "/token?"), 2);
}

TEST(a_token_that_does_not_say_lives_for_a_minute_and_one_issued_earlier_for_less)
{
    static const struct {
        const char *expires_in, *issued_at;
        int64_t life_s;
    } rows[] = {
        { NULL, NULL, 54 },
        { "0", NULL, 54 },
        { "100", "2026-02-02T02:39:40Z", 72 },  /* 20 seconds ago */
        { "100", "2026-02-02T02:50:00Z", 90 },  /* by a clock that is ahead */
        { "1000000000", NULL, 86400 * 9 / 10 }, /* nobody believes that */
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        SCENE s = { 0 };
        scene_init(&s,
                   (struct fake_registry_options){ TOKENS, .expires_in = rows[i].expires_in,
                                                   .issued_at = rows[i].issued_at },
                   (struct registry_options){ 0 });
        KEYS keys = keys_of(&s, "", GOOD);
        digest_now(&s, keys);
        virtual_clock_advance(s.clock, rows[i].life_s * SECOND - 1);
        digest_now(&s, keys);
        EXPECT_EQ(fake_registry_seen(s.f, "/token?"), 1);
        virtual_clock_advance(s.clock, 1);
        digest_now(&s, keys);
        EXPECT_EQ(fake_registry_seen(s.f, "/token?"), 2);
    }
}

TEST(a_token_that_the_registry_no_longer_takes_is_replaced)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ TOKENS, .expires_in = "3000" },
               (struct registry_options){ 0 });
    KEYS keys = keys_of(&s, "", GOOD);
    digest_now(&s, keys);
    fake_registry_revoke_tokens(s.f);
    EXPECT_STR(digest_now(&s, keys), s.digest);
    EXPECT_EQ(fake_registry_seen(s.f, "/token?"), 2);
}

TEST(two_keyrings_never_share_a_token)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ TOKENS, .expires_in = "3000" },
               (struct registry_options){ 0 });
    KEYS good = keys_of(&s, "", GOOD);
    KEYS bad = keys_of(&s, "", BAD);
    struct descriptor self;
    struct err err = { 0 };
    digest_now(&s, good);
    EXPECT_ERR(registry_digest(s.r, &s.ref, bad, &s.arena, &self, &err), err, ERR_DENIED);
    EXPECT_ERR(registry_digest(s.r, &s.ref, NULL, &s.arena, &self, &err), err, ERR_DENIED);
    EXPECT_HAS(str_of(err.text), "no credentials");
}

TEST(a_public_repository_gives_tokens_to_anybody)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ .auth = FAKE_TOKEN, .anonymous = true },
               (struct registry_options){ 0 });
    EXPECT_STR(digest_now(&s, NULL), s.digest);
    EXPECT_EQ(fake_registry_seen(s.f, "scope=repository%3Ateam%2Fapp%3Apull []"), 1);
}

TEST(an_identity_token_is_exchanged_by_a_form)
{
    SCENE s = { 0 };
    scene_init(&s,
               (struct fake_registry_options){ .auth = FAKE_TOKEN, .identity_token = "id&en=tity" },
               (struct registry_options){ 0 });
    KEYS keys = keys_of(&s, "", "\"identitytoken\":\"id&en=tity\"");
    EXPECT_STR(digest_now(&s, keys), s.digest);
    EXPECT_EQ(fake_registry_seen(s.f, "POST /token [] grant_type=refresh_token&service=a%2C%20b&"
                                      "scope=repository%3Ateam%2Fapp%3Apull&client_id=karve&"
                                      "refresh_token=id%26en%3Dtity"),
              1);
}

TEST(a_name_and_password_are_sent_where_they_are_asked_for_and_not_before)
{
    SCENE s = { 0 };
    scene_init(
        &s, (struct fake_registry_options){ .auth = FAKE_BASIC, .user = "me", .password = "p:w" },
        (struct registry_options){ 0 });
    KEYS keys = keys_of(&s, "", GOOD);
    struct descriptor self;
    struct err err = { 0 };
    EXPECT_STR(digest_now(&s, keys), s.digest);
    EXPECT_EQ(fake_registry_seen(s.f, "HEAD /v2/team/app/manifests/1 []"), 1);
    EXPECT_EQ(fake_registry_seen(s.f, "HEAD /v2/team/app/manifests/1 [Basic bWU6cDp3]"), 1);
    digest_now(&s, keys);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 3);
    EXPECT_ERR(registry_digest(s.r, &s.ref, NULL, &s.arena, &self, &err), err, ERR_DENIED);
}

TEST(all_credentials_that_match_are_tried_the_most_specific_first)
{
    for (enum fake_auth auth = FAKE_BASIC; auth <= FAKE_TOKEN; auth++) {
        SCENE s = { 0 };
        scene_init(&s,
                   (struct fake_registry_options){ .auth = auth, .user = "me", .password = "p:w" },
                   (struct registry_options){ 0 });
        KEYS bad = keys_of(&s, "/team", BAD);
        KEYS good = keys_of(&s, "", GOOD);
        KEYS both = keyring_join((const struct keyring *[]){ good, bad }, 2);
        struct descriptor self;
        struct err err = { 0 };
        EXPECT_STR(digest_now(&s, both), s.digest);
        EXPECT_TRUE(fake_registry_seen(s.f, "[Basic bWU6bm8=]") > 0);
        EXPECT_ERR(registry_digest(s.r, &s.ref, bad, &s.arena, &self, &err), err, ERR_DENIED);
        EXPECT_FALSE(strstr(err.text, "bWU6bm8"));
    }
}

/* --- pushing --- */

TEST(what_is_pushed_is_there_and_the_token_asked_for_may_push)
{
    for (int without = 0; without < 2; without++) {
        SCENE s = { 0 };
        scene_init(&s, (struct fake_registry_options){ TOKENS, .without_referrers = without },
                   (struct registry_options){ 0 });
        KEYS keys = keys_of(&s, "", GOOD);
        AUTO_BUF text = { 0 };
        char digest[DIGEST_TEXT_MAX];
        bool has_referrers = without;
        struct err err = { 0 };
        struct str bytes;
        struct descriptor blob = { .digest = STR(EMPTY_DIGEST), .size = 2 };
        struct descriptor subject = { .media_type = STR(MEDIA_OCI_MANIFEST),
                                      .digest = str_of(s.digest),
                                      .size = 9 };
        for (int i = 0; i < 2; i++) /* the second time it is there */
            EXPECT_OK(registry_push_blob(s.r, &s.ref, keys, STR(EMPTY_DIGEST), STR("{}"), &err),
                      err);
        EXPECT_EQ(
            fake_registry_seen(s.f, "PUT /v2/team/app/blobs/uploads/1?_state=x&digest=sha256%3A"),
            1);
        EXPECT_EQ(fake_registry_seen(s.f, "repository%3Ateam%2Fapp%3Apull%2Cpush"), 1);
        EXPECT_OK(registry_blob(s.r, &s.ref, keys, &blob, 100, &s.arena, &bytes, &err), err);
        EXPECT_STR(bytes, "{}");

        artifact_manifest_write(&subject, STR(EMPTY_DIGEST), 2, 0, &text);
        EXPECT_OK(digest_text(DIGEST_SHA256, buf_str(&text), digest, &err), err);
        EXPECT_OK(registry_push_manifest(s.r, &s.ref, keys, str_of(digest), STR(MEDIA_OCI_MANIFEST),
                                         buf_str(&text), &has_referrers, &err),
                  err);
        EXPECT_EQ(has_referrers, !without);
    }
}

TEST(what_does_not_have_its_digest_is_not_pushed)
{
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    struct err err = { 0 };
    EXPECT_ERR(registry_push_blob(s.r, &s.ref, NULL, STR(EMPTY_DIGEST), STR("[]"), &err), err,
               ERR_INVALID);
    EXPECT_ERR(registry_push_manifest(s.r, &s.ref, NULL, STR(EMPTY_DIGEST), STR(MEDIA_OCI_MANIFEST),
                                      STR("[]"), NULL, &err),
               err, ERR_INVALID);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 0);
}

/* --- other hosts --- */

TEST(a_mirror_is_asked_instead_with_credentials_of_its_own)
{
    SCENE s = { 0 };
    scene_init(
        &s, (struct fake_registry_options){ .auth = FAKE_BASIC, .user = "me", .password = "p:w" },
        (struct registry_options){ 0 });
    KEYS keys = keys_of(&s, "", GOOD);
    struct str mirror = arena_strf(&s.arena, "docker.io=%s", fake_registry_host(s.f));
    AUTO(registry) r =
        fake_registry_client(s.f, (struct registry_options){ .mirrors = { &mirror, 1 } });
    struct reference ref;
    struct descriptor self = { 0 };
    struct err err = { 0 };
    EXPECT_OK(reference_parse(&s.arena, STR("team/app:1"), &ref, &err), err);
    EXPECT_STR(ref.registry, "docker.io");
    EXPECT_OK(registry_digest(r, &ref, keys, &s.arena, &self, &err), err);
    EXPECT_STR(self.digest, s.digest);
}

TEST(a_mirror_that_is_no_host_is_refused_at_once)
{
    static const char *const rows[] = { "docker.io", "=a", "docker.io=a/b", "docker.io=a b", "a=" };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct str mirror = str_of(rows[i]);
        struct registry *r = NULL;
        struct err err = { 0 };
        EXPECT_ERR(registry_new((struct registry_options){ .clock = clock_real(),
                                                           .mirrors = { &mirror, 1 } },
                                &r, &err),
                   err, ERR_INVALID);
    }
}

TEST(a_registry_with_tls_is_believed_by_the_authorities_that_were_added)
{
    AUTO(cert) authority = cert_new((struct cert_options){ .name = "ca", .authority = true });
    AUTO(cert) cert = cert_new(
        (struct cert_options){ .name = "registry", .loopback = true, .issuer = authority });
    SCENE s = { 0 };
    struct descriptor self;
    struct err err = { 0 };
    scene_init(&s, (struct fake_registry_options){ .cert = cert },
               (struct registry_options){ .ca_pem = authority->cert_pem });
    EXPECT_STR(digest_now(&s, NULL), s.digest);
    AUTO(registry) stranger = fake_registry_client(s.f, (struct registry_options){ 0 });
    EXPECT_ERR(registry_digest(stranger, &s.ref, NULL, &s.arena, &self, &err), err, ERR_DENIED);
}

TEST(requests_are_counted_by_status)
{
    AUTO(metrics) metrics = metrics_new(clock_real());
    AUTO_BUF text = { 0 };
    SCENE s = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 },
               (struct registry_options){ .maybe_metrics = metrics });
    digest_now(&s, NULL);
    metrics_write(metrics, &text);
    EXPECT_HAS(buf_str(&text), "karve_registry_requests_total{code=\"200\"} 1");
}

/* --- texts --- */

TEST(challenges_are_read_in_all_their_forms)
{
    static const struct {
        const char *header;
        bool basic, bearer;
        const char *realm, *service, *scope;
    } rows[] = {
        { "Basic realm=\"x\"", true, false, "", "", "" },
        { "Bearer realm=\"https://a/t\",service=\"s\",scope=\"repository:a:pull,push\"", false,
          true, "https://a/t", "s", "repository:a:pull,push" },
        { "bearer  scope=\"a b\" , Realm = https://a/t", false, true, "https://a/t", "", "a b" },
        { "Basic realm=\"b\", Bearer realm=\"https://a/t\",service=s", true, true, "https://a/t",
          "s", "" },
        { "Bearer realm=\"https://a/t\", Basic realm=\"b\",service=\"no\"", true, true,
          "https://a/t", "", "" },
        { "Negotiate, NTLM abc==, Basic realm=\"Bearer realm=x\"", true, false, "", "", "" },
        { "Bearer realm=\"a\\\"b\\\\c\"", false, true, "a\"b\\c", "", "" },
        { "Bearer realm=\"never closed, Basic", false, true, "never closed, Basic", "", "" },
        { "Bearer realm=\"1\", Bearer realm=\"2\"", false, true, "1", "", "" },
        { "", false, false, "", "", "" },
        { ",,, =\"", false, false, "", "", "" },
        { "Bearer", false, true, "", "", "" },
        { "Bearer realm=", false, true, "", "", "" },
        { "Digest realm=\"d\", nonce=\"n\"", false, false, "", "", "" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_ARENA arena = { 0 };
        struct challenge got = { .realm = STR(""), .service = STR(""), .scope = STR("") };
        challenge_read(&arena, str_of(rows[i].header), &got);
        EXPECT_EQ(got.basic, rows[i].basic);
        EXPECT_EQ(got.bearer, rows[i].bearer);
        EXPECT_STR(got.realm, rows[i].realm);
        EXPECT_STR(got.service, rows[i].service);
        EXPECT_STR(got.scope, rows[i].scope);
    }
}

TEST(the_next_page_is_read_from_links_of_any_order)
{
    static const struct {
        const char *header, *next;
    } rows[] = {
        { "</v2/a?n=1>; rel=\"next\"", "/v2/a?n=1" },
        { "<a>; rel=prev, <b,c>; title=\"x\"; rel=next", "b,c" },
        { "<https://h/x>;REL=Next", "https://h/x" },
        { "<a>; rel=\"prev\"", NULL },
        { "a; rel=next", NULL },
        { "<a; rel=next", NULL },
        { "", NULL },
        { "<a>", NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        struct str next;
        EXPECT_EQ(link_next(str_of(rows[i].header), &next), rows[i].next != NULL);
        if (rows[i].next)
            EXPECT_STR(next, rows[i].next);
    }
}

TEST(a_location_is_seen_from_where_it_was_given)
{
    static const struct {
        const char *location, *url;
    } rows[] = {
        { "/x?y", "https://h:1/x?y" },
        { "x", "https://h:1/v2/a/x" },
        { "?n=2", "https://h:1/v2/a/b?n=2" },
        { "//other/x", "https://other/x" },
        { "http://other/x#part", "http://other/x" },
        { "x?to=http://y", "https://h:1/v2/a/x?to=http://y" },
        { "ftp://h/x", NULL },
        { "https://me:secret@h/", NULL },
        { "", NULL },
        { "#x", NULL },
        { "/a b", NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        AUTO_BUF out = { 0 };
        struct err err = { 0 };
        int rc = url_join(STR("https://h:1/v2/a/b?q=/z"), str_of(rows[i].location), &out, &err);
        EXPECT_EQ(rc, rows[i].url ? 0 : -1);
        if (rows[i].url)
            EXPECT_STR(buf_str(&out), rows[i].url);
    }
    EXPECT_TRUE(url_same_origin(STR("https://H/x"), STR("https://h:443/y")));
    EXPECT_FALSE(url_same_origin(STR("https://h/x"), STR("http://h:443/x")));
    EXPECT_FALSE(url_same_origin(STR("https://h/x"), STR("https://h.x/x")));
    EXPECT_FALSE(url_same_origin(STR("https://h/x"), STR("https://h:444/x")));
}

TEST(the_tag_of_referrers_is_cut_and_has_no_other_characters)
{
    AUTO_BUF out = { 0 };
    referrers_tag(STR("sha256:ab12"), &out);
    EXPECT_STR(buf_str(&out), "sha256-ab12");
    buf_clear(&out);
    referrers_tag(STR("sha256+b64u:0123456789012345678901234567890123456789012345678901234567890123"
                      "456789"),
                  &out);
    EXPECT_STR(buf_str(&out),
               "sha256-b64u-0123456789012345678901234567890123456789012345678901234567890123");
}

TEST(hosts_are_matched_by_globs_whatever_their_case)
{
    EXPECT_TRUE(host_glob(STR("*.Example.com"), STR("a.b.example.COM")));
    EXPECT_FALSE(host_glob(STR("*.example.com"), STR("example.com")));
    EXPECT_FALSE(host_glob(STR("*.example.com"), STR("a.example.com.evil")));
    EXPECT_TRUE(host_glob(STR("a*b*c"), STR("axxbyybc")));
    EXPECT_FALSE(host_glob(STR("a*b*c"), STR("axxbyyb")));
    EXPECT_TRUE(host_glob(STR("*"), STR("")));
    EXPECT_FALSE(host_glob(STR(""), STR("a")));
}
