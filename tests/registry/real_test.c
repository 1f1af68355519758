/* The registry client and what it finds out of images, with a real registry: Debian's docker-registry, which
 * has no referrers API and asks for names and passwords, not tokens. */
#include "registry/registry_fixture.h"

#include "api/node_kinds.h"
#include "codec/base64.h"
#include "compat/service.h"
#include "store/embedded.h"
#include "store/js_testing.h"

#define SPEC_OF(tag)                                                                               \
    "version: v1alpha1\ncompatibilities:\n- tag: " tag                                             \
    "\n  rules:\n  - name: r\n    matchFeatures:\n    - feature: cpu.cpuid\n"                      \
    "      matchExpressions: {AVX2: {op: Exists}}\n"
#define DAY_US ((int64_t)86400 * 1000000)

static void facts_done(const struct image_facts **facts)
{
    image_facts_unref(*facts);
}
#define FACTS __attribute__((cleanup(facts_done))) const struct image_facts *

static const struct image_facts *ask(struct registry_fixture *f, struct registry *r,
                                     const char *name, const struct image_facts *maybe_known)
{
    AUTO_ARENA arena = { 0 };
    const struct image_facts *facts = NULL;
    struct err err = { 0 };
    struct reference ref = registry_fixture_reference(f, &arena, name);
    EXPECT_OK(image_ask(&(struct image_ask){ .registry = r,
                                             .ref = &ref,
                                             .maybe_keys = f->maybe_keys,
                                             .maybe_known = maybe_known },
                        &facts, &err),
              err);
    return facts;
}

TEST(an_image_is_pushed_resolved_and_read_back)
{
    struct registry_fixture *f = registry_fixture(REGISTRY_OPEN);
    AUTO(registry) r = registry_fixture_client(f);
    AUTO_ARENA arena = { 0 };
    char digest[DIGEST_TEXT_MAX];
    struct descriptor head, self;
    struct oci_manifest manifest;
    struct str text, config;
    struct platform platform;
    struct err err = { 0 };
    struct reference ref = registry_fixture_reference(f, &arena, "real/pushed:1");
    registry_fixture_image(f, r, "real/pushed", "1", "arm64", digest);
    EXPECT_OK(registry_digest(r, &ref, NULL, &arena, &head, &err), err);
    EXPECT_STR(head.digest, digest);
    EXPECT_OK(registry_manifest(r, &ref, NULL, &arena, &manifest, &text, &self, &err), err);
    EXPECT_STR(self.digest, digest);
    EXPECT_EQ(self.size, head.size);
    EXPECT_EQ(text.len, head.size);
    EXPECT_OK(registry_blob(r, &ref, NULL, &manifest.config, 1000, &arena, &config, &err), err);
    EXPECT_OK(image_config_read(&arena, "config", config, &platform, &err), err);
    EXPECT_STR(platform.architecture, "arm64");
}

TEST(what_was_never_pushed_is_not_found)
{
    struct registry_fixture *f = registry_fixture(REGISTRY_OPEN);
    AUTO(registry) r = registry_fixture_client(f);
    AUTO_ARENA arena = { 0 };
    struct descriptor self;
    struct err err = { 0 };
    struct reference ref = registry_fixture_reference(f, &arena, "real/never:1");
    EXPECT_ERR(registry_digest(r, &ref, NULL, &arena, &self, &err), err, ERR_NOT_FOUND);
}

TEST(a_spec_is_attached_found_by_its_tag_and_replaced_by_a_newer_one)
{
    struct registry_fixture *f = registry_fixture(REGISTRY_OPEN);
    AUTO(registry) r = registry_fixture_client(f);
    char digest[DIGEST_TEXT_MAX], artifact[DIGEST_TEXT_MAX];
    registry_fixture_image(f, r, "real/attached", "1", "amd64", digest);
    FACTS bare = ask(f, r, "real/attached:1", NULL);
    EXPECT_EQ(bare->way, REFERRERS_TAG);
    EXPECT_TRUE(!bare->spec.maybe_spec);
    EXPECT_STR(bare->platforms[0].platform.architecture, "amd64");

    registry_fixture_attach(f, r, "real/attached", digest, SPEC_OF("first"), DAY_US, artifact);
    FACTS first = ask(f, r, "real/attached:1", bare);
    EXPECT_STR(first->spec.artifact, artifact);
    EXPECT_STR(first->spec.trouble, "");
    EXPECT_STR(first->spec.maybe_spec->sets[0].tag, "first");

    registry_fixture_attach(f, r, "real/attached", digest, SPEC_OF("second"), 2 * DAY_US, artifact);
    FACTS second = ask(f, r, "real/attached:1", first);
    EXPECT_STR(second->spec.artifact, artifact);
    EXPECT_STR(second->spec.maybe_spec->sets[0].tag, "second");
    FACTS again = ask(f, r, "real/attached:1", second);
    EXPECT_TRUE(again == second);

    registry_fixture_attach(f, r, "real/attached", digest, SPEC_OF("older"), 0, artifact);
    FACTS still = ask(f, r, "real/attached:1", second);
    EXPECT_TRUE(still == second);
}

TEST(a_spec_of_one_platform_is_found_beside_that_of_the_index)
{
    struct registry_fixture *f = registry_fixture(REGISTRY_OPEN);
    AUTO(registry) r = registry_fixture_client(f);
    char amd64[DIGEST_TEXT_MAX], arm64[DIGEST_TEXT_MAX], index[DIGEST_TEXT_MAX],
        artifact[DIGEST_TEXT_MAX];
    registry_fixture_index(f, r, "real/both", "1", amd64, arm64, index);
    registry_fixture_attach(f, r, "real/both", index, SPEC_OF("all"), DAY_US, artifact);
    registry_fixture_attach(f, r, "real/both", arm64, SPEC_OF("arm"), DAY_US, artifact);
    FACTS facts = ask(f, r, "real/both:1", NULL);
    EXPECT_STR(facts->digest, index);
    EXPECT_EQ(facts->platform_count, 2);
    EXPECT_STR(facts->spec.maybe_spec->sets[0].tag, "all");
    EXPECT_STR(facts->platforms[1].digest, arm64);
    EXPECT_STR(facts->platforms[1].spec.maybe_spec->sets[0].tag, "arm");
    EXPECT_TRUE(!facts->platforms[0].spec.maybe_spec);
}

TEST(a_private_registry_is_pushed_to_and_read_with_a_password_and_not_without)
{
    struct registry_fixture *f = registry_fixture(REGISTRY_PRIVATE);
    AUTO(registry) r = registry_fixture_client(f);
    AUTO_ARENA arena = { 0 };
    char digest[DIGEST_TEXT_MAX], artifact[DIGEST_TEXT_MAX];
    struct descriptor self;
    struct err err = { 0 };
    struct reference ref = registry_fixture_reference(f, &arena, "real/secret:1");
    registry_fixture_image(f, r, "real/secret", "1", "amd64", digest);
    registry_fixture_attach(f, r, "real/secret", digest, SPEC_OF("mine"), DAY_US, artifact);
    FACTS facts = ask(f, r, "real/secret:1", NULL);
    EXPECT_STR(facts->spec.maybe_spec->sets[0].tag, "mine");
    EXPECT_ERR(registry_digest(r, &ref, NULL, &arena, &self, &err), err, ERR_DENIED);
}

/* --- pull secrets --- */

static void make_secret(const struct store *store, const struct registry_fixture *f)
{
    AUTO_BUF config = { 0 }, coded = { 0 };
    struct err err = { 0 };
    buf_add(&config, js("{'auths':{'%s':{'username':'" REGISTRY_USER
                        "','password':'" REGISTRY_PASSWORD "'}}}",
                        f->host));
    base64_encode(buf_str(&config), &coded);
    EXPECT_OK(store_create(store, &secret_kind, STR("default"),
                           js("{'metadata':{'name':'door'},'type':'kubernetes.io/dockerconfigjson',"
                              "'data':{'.dockerconfigjson':'%s'}}",
                              coded.p),
                           NULL, &err),
              err);
}

static const struct object *make_pod(const struct store *store, const struct registry_fixture *f,
                                     const char *name, const char *secrets)
{
    const struct object *pod = NULL;
    struct err err = { 0 };
    EXPECT_OK(store_create(store, &pod_kind, STR("default"),
                           js("{'metadata':{'name':'%s'},'spec':{'imagePullSecrets':[%s],"
                              "'containers':[{'name':'c','image':'%s/real/pulled:1'}]}}",
                              name, secrets, f->host),
                           &pod, &err),
              err);
    return pod;
}

/* What the pod's image asks of an amd64 machine. */
static enum match judge(struct compat_service *service, const struct object *pod, struct buf *why)
{
    const struct machine_kind machine = { .architecture = STR("amd64"), .os = STR("linux") };
    const struct pod *of = pod_of(pod);
    struct pod_demand demand;
    compat_service_settle(service, &of, 1, clock_mono_ns(clock_real()) + (int64_t)60 * 1000000000);
    compat_service_demand(service, of, DEMAND_PLACE, &demand);
    EXPECT_TRUE(demand.maybe_demand != NULL);
    struct fleet *fleet = compat_service_fleet(service);
    enum match match = fleet_judge_machine(fleet, demand.maybe_demand, &machine).match;
    fleet_explain_machine(fleet, demand.maybe_demand, &machine, why);
    pod_demand_done(&demand);
    return match;
}

TEST(an_image_of_a_private_registry_is_looked_up_with_the_pull_secret_of_its_pod)
{
    struct registry_fixture *f = registry_fixture(REGISTRY_PRIVATE);
    AUTO(registry) r = registry_fixture_client(f);
    AUTO_BUF with = { 0 }, without = { 0 };
    struct err err = { 0 };
    char digest[DIGEST_TEXT_MAX];
    struct image_source_registry source = { .registry = r };
    struct compat_service *service = NULL;
    struct object_pool *pool = object_pool_new();
    struct embedded *embedded = embedded_new((struct embedded_options){
        .clock = clock_real(), .pool = pool, .seed = 1, .auto_namespaces = true });
    const struct store *store = embedded_store(embedded);
    registry_fixture_image(f, r, "real/pulled", "1", "arm64", digest);
    make_secret(store, f);
    EXPECT_OK(compat_service_new(
                  (struct compat_service_options){ .source = image_source_registry(&source),
                                                   .store = store,
                                                   .clock = clock_real(),
                                                   .settings = { .pull_secrets = true } },
                  &service, &err),
              err);
    const struct object *invited = make_pod(store, f, "invited", "{'name':'door'}"),
                        *stranger = make_pod(store, f, "stranger", "");
    EXPECT_EQ(judge(service, invited, &with), MATCH_NO);
    EXPECT_HAS(buf_str(&with), "is built for linux/arm64 only");
    EXPECT_EQ(judge(service, stranger, &without), MATCH_ERROR);
    EXPECT_HAS(buf_str(&without), "it could not be looked up");
    object_unref(invited);
    object_unref(stranger);
    compat_service_free(service);
    embedded_free(embedded);
    object_pool_free(pool);
}

TEST(a_manifest_whose_blobs_are_missing_is_refused_by_the_registry_and_the_error_says_why)
{
    struct registry_fixture *f = registry_fixture(REGISTRY_OPEN);
    AUTO(registry) r = registry_fixture_client(f);
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct reference ref = registry_fixture_reference(f, &arena, "real/holes:1");
    static const char text[] =
        "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
        "\",\"config\":{\"mediaType\":\"a/b\",\"digest\":\"sha256:"
        "0000000000000000000000000000000000000000000000000000000000000000\",\"size\":2},"
        "\"layers\":[]}";
    EXPECT_ERR(registry_push_manifest(r, &ref, NULL, STR("1"), STR(MEDIA_OCI_MANIFEST),
                                      str_of(text), NULL, &err),
               err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "MANIFEST_BLOB_UNKNOWN");
}
