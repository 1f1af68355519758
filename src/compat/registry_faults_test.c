/* Registries that are slow, broken or hostile. Waits are of virtual time: a thread moves it on whenever
 * somebody waits for it. */
#include "base/thread.h"
#include "compat/registry_inner.h"
#include "compat/registry_testing.h"
#include "support/test.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

#define SECOND ((int64_t)1000000000)
#define TYPE "application/vnd.test.thing"
#define GB ((uint64_t)1 << 30)

static const char image_text[] =
    "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"config\":{\"mediaType\":"
    "\"" MEDIA_OCI_EMPTY "\",\"digest\":\"" EMPTY_DIGEST "\",\"size\":2},\"layers\":[]}";

struct scene {
    struct fake_registry *f;
    struct registry *r;
    struct virtual_clock *clock;
    struct arena arena;
    struct reference ref;
    char digest[DIGEST_TEXT_MAX];
    pthread_t ticker;
    _Atomic bool done;
};

static void *tick(void *arg)
{
    struct scene *s = arg;
    while (!s->done) {
        int64_t next_ns = virtual_clock_next(s->clock);
        int64_t now_ns = clock_mono_ns(virtual_clock_port(s->clock));
        if (next_ns != INT64_MAX && next_ns > now_ns)
            virtual_clock_advance(s->clock, next_ns - now_ns);
        usleep(200);
    }
    return NULL;
}

static void scene_init(struct scene *s, struct fake_registry_options server,
                       struct registry_options client)
{
    struct err err = { 0 };
    s->f = fake_registry_new(server);
    s->clock = virtual_clock_new(1770000000000000);
    client.clock = virtual_clock_port(s->clock);
    s->r = fake_registry_client(s->f, client);
    EXPECT_OK(reference_parse(&s->arena,
                              arena_strf(&s->arena, "%s/team/app:1", fake_registry_host(s->f)),
                              &s->ref, &err),
              err);
    fake_registry_manifest(s->f, "team/app", "1", MEDIA_OCI_MANIFEST, str_of(image_text),
                           s->digest);
    EXPECT_OK(thread_start(&s->ticker, "ticker", tick, s, &err), err);
}

static void scene_done(struct scene *s)
{
    s->done = true;
    pthread_join(s->ticker, NULL);
    registry_free(s->r);
    fake_registry_free(s->f);
    virtual_clock_free(s->clock);
    arena_done(&s->arena);
}
#define SCENE __attribute__((cleanup(scene_done))) struct scene

static int ask_digest(struct scene *s, struct err *err)
{
    struct descriptor self;
    return registry_digest(s->r, &s->ref, NULL, &s->arena, &self, err);
}

static int ask_manifest(struct scene *s, struct err *err)
{
    struct oci_manifest manifest;
    return registry_manifest(s->r, &s->ref, NULL, &s->arena, &manifest, NULL, NULL, err);
}

static int ask_blob(struct scene *s, const char *digest, int64_t size, struct err *err)
{
    struct str bytes;
    struct descriptor blob = { .digest = str_of(digest), .size = size };
    return registry_blob(s->r, &s->ref, NULL, &blob, 1 << 20, &s->arena, &bytes, err);
}

static int ask_referrers(struct scene *s, struct err *err)
{
    struct referrers found;
    return registry_referrers(s->r, &s->ref, NULL, str_of(s->digest), STR(TYPE), &s->arena, &found,
                              err);
}

static int64_t waited_ns(struct scene *s)
{
    return clock_mono_ns(virtual_clock_port(s->clock));
}

/* --- what may pass --- */

TEST(a_failure_that_may_pass_is_tried_again_twice)
{
    const struct fake_fault faults[] = { { .on = "HEAD", .status = 500 },
                                         { .on = "HEAD", .status = 503 },
                                         { .on = "HEAD", .hangs_up = true } };
    for (size_t i = 0; i < KV_COUNT_OF(faults); i++) {
        SCENE s = { 0 };
        struct err err = { 0 };
        scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
        struct fake_fault twice = faults[i];
        twice.times = 2;
        fake_registry_fault(s.f, twice);
        EXPECT_OK(ask_digest(&s, &err), err);
        /* 100 to 200 ms, then 200 to 400 */
        EXPECT_TRUE(waited_ns(&s) >= 3 * SECOND / 10 && waited_ns(&s) <= 6 * SECOND / 10);
        fake_registry_fault(s.f, faults[i]);
        EXPECT_ERR(ask_digest(&s, &err), err, ERR_UNAVAILABLE);
    }
}

TEST(a_failure_that_will_not_pass_is_not_tried_again)
{
    static const struct {
        int status;
        enum err_kind kind;
    } rows[] = { { 403, ERR_DENIED },
                 { 404, ERR_NOT_FOUND },
                 { 410, ERR_INVALID },
                 { 304, ERR_INVALID },
                 { 204, ERR_INVALID } };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        SCENE s = { 0 };
        struct err err = { 0 };
        scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
        fake_registry_fault(s.f, (struct fake_fault){ .on = "GET", .status = rows[i].status });
        EXPECT_ERR(ask_manifest(&s, &err), err, rows[i].kind);
        EXPECT_EQ(fake_registry_seen(s.f, ""), 1);
    }
}

TEST(a_registry_that_asks_to_wait_is_waited_for_within_the_budget)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(
        s.f, (struct fake_fault){
                 .on = "HEAD", .status = 429, .times = 1, .headers = { "Retry-After: 20" } });
    EXPECT_OK(ask_digest(&s, &err), err);
    EXPECT_EQ(waited_ns(&s), 20 * SECOND);
}

TEST(a_wait_beyond_the_budget_is_not_begun)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(
        s.f, (struct fake_fault){ .on = "HEAD", .status = 429, .headers = { "Retry-After: 30" } });
    EXPECT_ERR(ask_digest(&s, &err), err, ERR_THROTTLED);
    EXPECT_HAS(str_of(err.text), "after 30s");
    EXPECT_EQ(fake_registry_seen(s.f, ""), 1);
    EXPECT_EQ(waited_ns(&s), 0);
}

TEST(a_push_that_is_cut_off_begins_anew)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(s.f, (struct fake_fault){ .on = "PUT", .times = 1, .hangs_up = true });
    EXPECT_OK(registry_push_blob(s.r, &s.ref, NULL, STR(EMPTY_DIGEST), STR("{}"), &err), err);
}

TEST(a_push_to_another_host_is_not_made)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    AUTO(fake_registry) other = fake_registry_new((struct fake_registry_options){ 0 });
    char location[128];
    snprintf(location, sizeof location, "Location: http://%s/x", fake_registry_host(other));
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(
        s.f, (struct fake_fault){ .on = "POST", .status = 202, .headers = { location } });
    EXPECT_ERR(registry_push_blob(s.r, &s.ref, NULL, STR(EMPTY_DIGEST), STR("{}"), &err), err,
               ERR_DENIED);
    EXPECT_EQ(fake_registry_seen(other, ""), 0);
}

/* --- what is not what it says --- */

TEST(a_manifest_with_another_digest_than_was_asked_for_or_claimed_is_refused)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(s.f,
                        (struct fake_fault){ .on = "GET",
                                             .headers = { "Content-Type: " MEDIA_OCI_MANIFEST,
                                                          "Docker-Content-Digest: " EMPTY_DIGEST },
                                             .body = image_text });
    EXPECT_ERR(ask_manifest(&s, &err), err, ERR_INVALID);
    s.ref.digest = STR(EMPTY_DIGEST);
    fake_registry_fault(s.f,
                        (struct fake_fault){ .on = "GET",
                                             .headers = { "Content-Type: " MEDIA_OCI_MANIFEST },
                                             .body = image_text });
    EXPECT_ERR(ask_manifest(&s, &err), err, ERR_INVALID);
    fake_registry_fault(s.f,
                        (struct fake_fault){ .on = "HEAD",
                                             .headers = { "Content-Type: " MEDIA_OCI_MANIFEST,
                                                          "Docker-Content-Digest: sha256:"
                                                          "0000000000000000000000000000000000000000"
                                                          "000000000000000000000000" } });
    EXPECT_ERR(ask_digest(&s, &err), err, ERR_INVALID);
}

TEST(what_is_no_manifest_is_refused)
{
    static const char *const bodies[] = { "", "{", "[]", "<html>", "{\"schemaVersion\":1}" };
    for (size_t i = 0; i < KV_COUNT_OF(bodies); i++) {
        SCENE s = { 0 };
        struct err err = { 0 };
        scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
        fake_registry_fault(s.f,
                            (struct fake_fault){ .on = "GET",
                                                 .headers = { "Content-Type: " MEDIA_OCI_MANIFEST },
                                                 .body = bodies[i] });
        EXPECT_ERR(ask_manifest(&s, &err), err, ERR_INVALID);
    }
}

TEST(a_blob_that_is_longer_shorter_or_another_is_refused)
{
    static const char *const bodies[] = { "{} ", "{", "[]", "" };
    for (size_t i = 0; i < KV_COUNT_OF(bodies); i++) {
        SCENE s = { 0 };
        struct err err = { 0 };
        scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
        fake_registry_fault(s.f, (struct fake_fault){ .on = "/blobs/", .body = bodies[i] });
        EXPECT_ERR(ask_blob(&s, EMPTY_DIGEST, 2, &err), err, ERR_INVALID);
    }
}

TEST(a_reply_beyond_its_limit_is_not_read_whether_it_says_so_or_not)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(s.f, (struct fake_fault){ .on = "", .claims = GB });
    EXPECT_ERR(ask_manifest(&s, &err), err, ERR_CAPACITY);
    EXPECT_ERR(ask_referrers(&s, &err), err, ERR_CAPACITY);
    EXPECT_ERR(ask_blob(&s, EMPTY_DIGEST, 2, &err), err, ERR_CAPACITY);
    fake_registry_fault(s.f, (struct fake_fault){ .on = "", .endless = true });
    EXPECT_ERR(ask_manifest(&s, &err), err, ERR_CAPACITY);
    EXPECT_ERR(ask_referrers(&s, &err), err, ERR_CAPACITY);
    EXPECT_ERR(ask_blob(&s, EMPTY_DIGEST, 2, &err), err, ERR_CAPACITY);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 6);
    EXPECT_ERR(ask_blob(&s, EMPTY_DIGEST, (int64_t)GB, &err), err, ERR_CAPACITY);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 6); /* that one was not even asked for */
}

TEST(pages_without_end_are_given_up)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(s.f,
                        (struct fake_fault){ .on = "/referrers/",
                                             .headers = { "Content-Type: " MEDIA_OCI_INDEX,
                                                          "Link: <?again=1>; rel=\"next\"" },
                                             .body = "{\"schemaVersion\":2,\"manifests\":[]}" });
    EXPECT_ERR(ask_referrers(&s, &err), err, ERR_CAPACITY);
    EXPECT_EQ(fake_registry_seen(s.f, ""), REGISTRY_PAGES_MAX);
}

TEST(a_next_page_at_another_host_is_not_asked_for)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    AUTO(fake_registry) other = fake_registry_new((struct fake_registry_options){ 0 });
    char link[128];
    snprintf(link, sizeof link, "Link: <http://%s/x>; rel=\"next\"", fake_registry_host(other));
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(s.f,
                        (struct fake_fault){ .on = "/referrers/",
                                             .headers = { "Content-Type: " MEDIA_OCI_INDEX, link },
                                             .body = "{\"schemaVersion\":2,\"manifests\":[]}" });
    EXPECT_ERR(ask_referrers(&s, &err), err, ERR_INVALID);
    EXPECT_EQ(fake_registry_seen(other, ""), 0);
}

/* --- redirects --- */

static const struct keyring *password_for(struct scene *s)
{
    const struct keyring *ring = NULL;
    struct err err = { 0 };
    struct str text =
        arena_strf(&s->arena, "{\"auths\":{\"%s\":{\"username\":\"me\",\"password\":\"pw\"}}}",
                   fake_registry_host(s->f));
    EXPECT_OK(keyring_read("test", text, KEYRING_CONFIG, &ring, NULL, &err), err);
    return ring;
}

static void keys_done(const struct keyring **ring)
{
    keyring_unref(*ring);
}
#define KEYS __attribute__((cleanup(keys_done))) const struct keyring *

TEST(a_blob_is_fetched_from_where_the_registry_says_and_the_password_stays_behind)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    struct str bytes;
    struct descriptor blob = { .digest = STR(EMPTY_DIGEST), .size = 2 };
    AUTO(fake_registry) other = fake_registry_new((struct fake_registry_options){ 0 });
    char location[200];
    snprintf(location, sizeof location, "Location: http://%s/v2/any/blobs/" EMPTY_DIGEST "?signed",
             fake_registry_host(other));
    scene_init(&s,
               (struct fake_registry_options){ .auth = FAKE_BASIC, .user = "me", .password = "pw" },
               (struct registry_options){ 0 });
    KEYS keys = password_for(&s);
    fake_registry_blob(other, STR("{}"), NULL);
    fake_registry_fault(
        s.f, (struct fake_fault){ .on = "[Basic", .status = 307, .headers = { location } });
    EXPECT_OK(registry_blob(s.r, &s.ref, keys, &blob, 100, &s.arena, &bytes, &err), err);
    EXPECT_STR(bytes, "{}");
    EXPECT_EQ(fake_registry_seen(s.f, "[Basic"), 1);
    EXPECT_EQ(fake_registry_seen(other, "?signed []"), 1);
}

TEST(a_challenge_of_a_host_that_a_redirect_led_to_is_not_answered)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    struct str bytes;
    struct descriptor blob = { .digest = STR(EMPTY_DIGEST), .size = 2 };
    AUTO(fake_registry) thief =
        fake_registry_new((struct fake_registry_options){ .auth = FAKE_BASIC });
    char location[200];
    snprintf(location, sizeof location, "Location: http://%s/v2/any/blobs/x",
             fake_registry_host(thief));
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    KEYS keys = password_for(&s);
    fake_registry_fault(
        s.f, (struct fake_fault){ .on = "/blobs/", .status = 302, .headers = { location } });
    EXPECT_ERR(registry_blob(s.r, &s.ref, keys, &blob, 100, &s.arena, &bytes, &err), err,
               ERR_DENIED);
    EXPECT_EQ(fake_registry_seen(thief, ""), 1);
    EXPECT_EQ(fake_registry_seen(thief, "[Basic"), 0);
}

TEST(redirects_in_a_circle_are_given_up)
{
    SCENE s = { 0 };
    struct err err = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(s.f, (struct fake_fault){ .on = "",
                                                  .status = 301,
                                                  .headers = { "Location: /round/and/round" } });
    EXPECT_ERR(ask_manifest(&s, &err), err, ERR_INVALID);
    EXPECT_EQ(fake_registry_seen(s.f, ""), REGISTRY_REDIRECTS_MAX + 1);
}

TEST(a_redirect_to_nowhere_is_refused)
{
    static const char *const rows[] = { "X: y", "Location: ftp://x/", "Location: http://a:b@c/",
                                        "Location: http://" };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        SCENE s = { 0 };
        struct err err = { 0 };
        scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
        fake_registry_fault(s.f,
                            (struct fake_fault){ .on = "", .status = 307, .headers = { rows[i] } });
        EXPECT_ERR(ask_manifest(&s, &err), err, ERR_INVALID);
    }
}

TEST(a_redirect_does_not_leave_tls)
{
    AUTO(cert) authority = cert_new((struct cert_options){ .name = "ca", .authority = true });
    AUTO(cert) cert = cert_new(
        (struct cert_options){ .name = "registry", .loopback = true, .issuer = authority });
    AUTO(fake_registry) other = fake_registry_new((struct fake_registry_options){ 0 });
    SCENE s = { 0 };
    struct err err = { 0 };
    char location[128];
    snprintf(location, sizeof location, "Location: http://%s/x", fake_registry_host(other));
    scene_init(&s, (struct fake_registry_options){ .cert = cert },
               (struct registry_options){ .ca_pem = authority->cert_pem });
    fake_registry_fault(s.f,
                        (struct fake_fault){ .on = "", .status = 307, .headers = { location } });
    EXPECT_ERR(ask_manifest(&s, &err), err, ERR_DENIED);
    EXPECT_EQ(fake_registry_seen(other, ""), 0);
}

/* --- where nobody should be sent --- */

TEST(a_redirect_to_a_metadata_address_is_not_followed)
{
    static const char *const rows[] = {
        "Location: http://169.254.169.254/latest/meta-data/",
        "Location: http://[::ffff:169.254.169.254]/",
        "Location: http://[fe80::1]/",
        "Location: http://0.0.0.0/",
        "Location: http://2852039166/", /* the first, as one number */
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        SCENE s = { 0 };
        struct err err = { 0 };
        scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
        fake_registry_fault(s.f,
                            (struct fake_fault){ .on = "", .status = 307, .headers = { rows[i] } });
        EXPECT_ERR(ask_manifest(&s, &err), err, ERR_DENIED);
        EXPECT_HAS(str_of(err.text), "not one to connect to");
    }
}

static bool may_connect(const struct registry *r, const char *host, const char *address)
{
    struct sockaddr_in in4 = { .sin_family = AF_INET };
    struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
    if (inet_pton(AF_INET, address, &in4.sin_addr) == 1)
        return registry_may_connect((void *)r, str_of(host), (struct sockaddr *)&in4);
    EXPECT_EQ(inet_pton(AF_INET6, address, &in6.sin6_addr), 1);
    return registry_may_connect((void *)r, str_of(host), (struct sockaddr *)&in6);
}

TEST(addresses_are_judged_when_they_are_connected_to)
{
    static const char *const fine[] = { "127.0.0.1",   "10.1.2.3",      "192.168.0.1", "8.8.8.8",
                                        "169.253.0.1", "169.255.0.1",   "::1",         "fd00::1",
                                        "2001:db8::1", "::ffff:8.8.8.8" };
    static const char *const refused[] = {
        "169.254.0.1",       "169.254.169.254",
        "0.0.0.0",           "0.1.2.3",
        "100.100.100.200",   "168.63.129.16",
        "192.0.0.192",       "::",
        "fe80::1",           "febf::1",
        "fd00:ec2::254",     "fd20:ce::254",
        "::ffff:0.0.0.0",    "64:ff9b::a9fe:a9fe",
        "::169.254.169.254",
    };
    struct str names[] = { STR("meta.example:80"), STR("*.wide") };
    struct registry any = { 0 };
    struct registry some = { .allowed_hosts = { names, 2 } };
    for (size_t i = 0; i < KV_COUNT_OF(fine); i++)
        EXPECT_TRUE(may_connect(&any, "x", fine[i]));
    for (size_t i = 0; i < KV_COUNT_OF(refused); i++) {
        EXPECT_FALSE(may_connect(&any, "x", refused[i]));
        EXPECT_FALSE(may_connect(&some, "x.wide", refused[i])); /* a glob is no name */
        EXPECT_TRUE(may_connect(&some, "META.example", refused[i]));
    }
}

static bool is_allowed(const char *pattern, const char *url)
{
    struct str name = str_of(pattern);
    struct registry r = { .allowed_hosts = { &name, 1 } };
    struct http_url parts;
    EXPECT_EQ(http_url_parse(str_of(url), &parts, NULL), 0);
    return registry_is_allowed(&r, &parts);
}

TEST(hosts_are_allowed_by_name_and_port)
{
    EXPECT_TRUE(is_allowed("r.example", "https://R.example/x"));
    EXPECT_TRUE(is_allowed("r.example", "https://r.example:5000"));
    EXPECT_TRUE(is_allowed("r.example:443", "https://r.example"));
    EXPECT_FALSE(is_allowed("r.example:5000", "https://r.example"));
    EXPECT_FALSE(is_allowed("r.example", "https://r.example.evil"));
    EXPECT_TRUE(is_allowed("*.example", "https://a.b.example"));
    EXPECT_TRUE(is_allowed("[::1]:5000", "http://[::1]:5000"));
    EXPECT_FALSE(is_allowed("[::1]:5000", "http://[::1]:5001"));
    EXPECT_TRUE(is_allowed("docker.io", "https://registry-1.docker.io"));
    EXPECT_FALSE(is_allowed("docker.io", "https://auth.docker.io"));
}

TEST(with_an_allow_list_nobody_else_is_talked_to_token_servers_and_redirects_included)
{
    AUTO(fake_registry) other = fake_registry_new((struct fake_registry_options){ 0 });
    char realm[128], location[128];
    struct err err = { 0 };
    snprintf(realm, sizeof realm, "http://%s/token", fake_registry_host(other));
    snprintf(location, sizeof location, "Location: http://%s/x", fake_registry_host(other));
    {
        struct str nobody = STR("other.example");
        SCENE s = { 0 };
        scene_init(&s, (struct fake_registry_options){ 0 },
                   (struct registry_options){ .allowed_hosts = { &nobody, 1 } });
        EXPECT_ERR(ask_manifest(&s, &err), err, ERR_DENIED);
        EXPECT_EQ(fake_registry_seen(s.f, ""), 0);
    }
    for (int redirects = 0; redirects < 2; redirects++) {
        AUTO(fake_registry) f = fake_registry_new((struct fake_registry_options){
            .auth = redirects ? FAKE_OPEN : FAKE_TOKEN, .realm = realm });
        struct str itself = str_of(fake_registry_host(f));
        AUTO_ARENA arena = { 0 };
        AUTO(registry) r =
            fake_registry_client(f, (struct registry_options){ .allowed_hosts = { &itself, 1 } });
        struct reference ref;
        struct descriptor self;
        if (redirects)
            fake_registry_fault(
                f, (struct fake_fault){ .on = "", .status = 307, .headers = { location } });
        EXPECT_OK(reference_parse(&arena, arena_strf(&arena, "%s/a/b:1", itself.p), &ref, &err),
                  err);
        EXPECT_ERR(registry_digest(r, &ref, NULL, &arena, &self, &err), err, ERR_DENIED);
        EXPECT_EQ(fake_registry_seen(f, ""), 1);
    }
    EXPECT_EQ(fake_registry_seen(other, ""), 0);
}

TEST(a_token_server_without_tls_gets_no_password)
{
    AUTO(cert) authority = cert_new((struct cert_options){ .name = "ca", .authority = true });
    AUTO(cert) cert = cert_new(
        (struct cert_options){ .name = "registry", .loopback = true, .issuer = authority });
    AUTO(fake_registry) thief = fake_registry_new((struct fake_registry_options){ 0 });
    char realm[128];
    SCENE s = { 0 };
    struct err err = { 0 };
    snprintf(realm, sizeof realm, "http://%s/token", fake_registry_host(thief));
    scene_init(&s,
               (struct fake_registry_options){ .auth = FAKE_TOKEN, .realm = realm, .cert = cert },
               (struct registry_options){ .ca_pem = authority->cert_pem });
    KEYS keys = password_for(&s);
    struct descriptor self;
    EXPECT_ERR(registry_digest(s.r, &s.ref, keys, &s.arena, &self, &err), err, ERR_DENIED);
    EXPECT_HAS(str_of(err.text), "without TLS");
    EXPECT_EQ(fake_registry_seen(thief, ""), 0);
}

TEST(a_token_server_that_talks_nonsense_is_an_error_and_no_secret_is_in_it)
{
    static const struct {
        const char *body;
        int status;
        enum err_kind kind;
    } rows[] = {
        { "{}", 200, ERR_INVALID },
        { "{\"token\":7}", 200, ERR_INVALID },
        { "{\"token\":\"half-a-sec", 200, ERR_INVALID },
        { "{\"token\":\"a\\nX-Evil: 1\"}", 200, ERR_INVALID },
        { "no", 404, ERR_DENIED },
        { "no", 400, ERR_DENIED },
        { "no", 503, ERR_UNAVAILABLE },
        { "no", 429, ERR_THROTTLED },
    };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        SCENE s = { 0 };
        struct err err = { 0 };
        scene_init(&s, (struct fake_registry_options){ .auth = FAKE_TOKEN },
                   (struct registry_options){ 0 });
        fake_registry_fault(
            s.f,
            (struct fake_fault){ .on = "/token", .status = rows[i].status, .body = rows[i].body });
        EXPECT_ERR(ask_digest(&s, &err), err, rows[i].kind);
        EXPECT_FALSE(strstr(err.text, "half-a-sec"));
    }
}

/* --- ending --- */

struct asker {
    struct scene *s;
    struct err err;
    int rc;
};

static void *ask_main(void *arg)
{
    struct asker *asker = arg;
    asker->rc = ask_digest(asker->s, &asker->err);
    return NULL;
}

TEST(a_call_that_waits_for_an_answer_can_be_cancelled_and_later_ones_do_not_begin)
{
    SCENE s = { 0 };
    struct asker asker = { .s = &s };
    pthread_t thread;
    struct err err = { 0 };
    scene_init(&s, (struct fake_registry_options){ 0 }, (struct registry_options){ 0 });
    fake_registry_fault(s.f, (struct fake_fault){ .on = "", .holds = true });
    EXPECT_OK(thread_start(&thread, "asker", ask_main, &asker, &err), err);
    while (fake_registry_seen(s.f, "") == 0)
        usleep(1000);
    registry_cancel(s.r);
    pthread_join(thread, NULL);
    EXPECT_EQ(asker.rc, -1);
    EXPECT_EQ(asker.err.kind, ERR_CANCELLED);
    EXPECT_ERR(ask_digest(&s, &err), err, ERR_CANCELLED);
    EXPECT_EQ(fake_registry_seen(s.f, ""), 1);
}
