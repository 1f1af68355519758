/* Indexes, manifests and configs as registries send them, and the two that we write. */
#include "support/test.h"

#include "codec/json.h"
#include "compat/manifest.h"
#include "net/digest.h"

#define D1 "sha256:1111111111111111111111111111111111111111111111111111111111111111"
#define D2 "sha256:2222222222222222222222222222222222222222222222222222222222222222"
#define D3 "sha256:3333333333333333333333333333333333333333333333333333333333333333"
#define ITEM(type_, digest_, rest_)                                                                \
    "{\"mediaType\":\"" type_ "\",\"size\":5,\"digest\":\"" digest_ "\"" rest_ "}"
#define CONFIG ITEM("application/vnd.oci.image.config.v1+json", D1, "")
#define LAYER ITEM("application/vnd.oci.image.layer.v1.tar+gzip", D2, "")
#define IMAGE(rest_) "{\"schemaVersion\":2,\"config\":" CONFIG ",\"layers\":[" LAYER "]" rest_ "}"
#define INDEX(items_) "{\"schemaVersion\":2,\"manifests\":[" items_ "]}"
#define PLATFORM(os_, arch_) ",\"platform\":{\"os\":\"" os_ "\",\"architecture\":\"" arch_ "\"}"
#define CREATED_AT(key_, time_) ",\"annotations\":{\"" key_ "\":\"" time_ "\"}"
#define CREATED "org.opencontainers.image.created"
#define CREATED_MISSPELT "oci.opencontainers.image.created"

static int read_text(struct arena *arena, const char *type, const char *text,
                     struct oci_manifest *out, struct err *err)
{
    return manifest_read(arena, "host/app", str_of(type), str_of(text), out, err);
}

static void expect_refused(const char *type, const char *text, const char *words)
{
    AUTO_ARENA arena = { 0 };
    struct oci_manifest m;
    struct err err = { 0 };
    int rc = read_text(&arena, type, text, &m, &err);
    if (rc == 0)
        print_message("# not refused: %s\n", text);
    EXPECT_EQ(rc, -1);
    EXPECT_EQ(err.kind, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "host/app");
    EXPECT_HAS(str_of(err.text), words);
}

static struct oci_manifest expect_read(struct arena *arena, const char *type, const char *text)
{
    struct oci_manifest m = { 0 };
    struct err err = { 0 };
    EXPECT_OK(read_text(arena, type, text, &m, &err), err);
    return m;
}

TEST(an_index_has_platforms)
{
    AUTO_ARENA arena = { 0 };
    struct oci_manifest m = expect_read(
        &arena, MEDIA_OCI_INDEX,
        INDEX(ITEM(MEDIA_OCI_MANIFEST, D1, PLATFORM("linux", "amd64")) "," ITEM(
            MEDIA_DOCKER_MANIFEST, D2,
            ",\"platform\":{\"os\":\"linux\",\"architecture\":\"arm64\",\"variant\":\"v8\"}") "," ITEM(MEDIA_OCI_MANIFEST,
                                                                                                       D3,
                                                                                                       "")));
    EXPECT_EQ(m.form, MANIFEST_INDEX);
    EXPECT_STR(m.media_type, MEDIA_OCI_INDEX);
    EXPECT_STR(m.artifact_type, "");
    EXPECT_STR(m.subject.digest, "");
    EXPECT_EQ(m.count, 3);
    EXPECT_STR(m.items[0].digest, D1);
    EXPECT_EQ(m.items[0].size, 5);
    EXPECT_STR(m.items[0].platform.architecture, "amd64");
    EXPECT_STR(m.items[0].platform.variant, "");
    EXPECT_STR(m.items[1].platform.os, "linux");
    EXPECT_STR(m.items[1].platform.variant, "v8");
    EXPECT_STR(m.items[2].platform.os, "");
}

TEST(an_image_has_a_config_layers_and_perhaps_a_subject)
{
    AUTO_ARENA arena = { 0 };
    struct oci_manifest m = expect_read(&arena, MEDIA_DOCKER_MANIFEST, IMAGE(""));
    EXPECT_EQ(m.form, MANIFEST_IMAGE);
    EXPECT_STR(m.media_type, MEDIA_DOCKER_MANIFEST);
    EXPECT_STR(m.config.digest, D1);
    EXPECT_EQ(m.count, 1);
    EXPECT_STR(m.items[0].digest, D2);
    EXPECT_STR(m.subject.digest, "");
    EXPECT_EQ(m.created_us, 0);

    m = expect_read(&arena, MEDIA_OCI_MANIFEST,
                    IMAGE(",\"artifactType\":\"" COMPAT_ARTIFACT_TYPE "\",\"subject\":" ITEM(
                        MEDIA_OCI_INDEX, D3, "") CREATED_AT(CREATED, "1970-01-01T00:00:07Z")));
    EXPECT_STR(m.artifact_type, COMPAT_ARTIFACT_TYPE);
    EXPECT_STR(m.subject.digest, D3);
    EXPECT_EQ(m.created_us, 7000000);
}

TEST(an_artifact_without_a_type_has_its_configs)
{
    AUTO_ARENA arena = { 0 };
    struct oci_manifest m = expect_read(
        &arena, MEDIA_OCI_MANIFEST,
        "{\"config\":" ITEM("application/vnd.example+json", D1, "") ",\"layers\":null}");
    EXPECT_STR(m.artifact_type, "application/vnd.example+json");
    m = expect_read(&arena, MEDIA_OCI_MANIFEST,
                    "{\"config\":" ITEM(MEDIA_OCI_EMPTY, D1, "") ",\"layers\":[]}");
    EXPECT_STR(m.artifact_type, "");
}

TEST(the_content_type_decides_without_its_parameters_and_case)
{
    AUTO_ARENA arena = { 0 };
    struct oci_manifest m;
    m = expect_read(&arena, "Application/vnd.oci.image.Index.v1+json ; charset=utf-8", INDEX(""));
    EXPECT_STR(m.media_type, MEDIA_OCI_INDEX);
    m = expect_read(&arena, MEDIA_DOCKER_LIST "; charset=utf-8", INDEX(""));
    EXPECT_STR(m.media_type, MEDIA_DOCKER_LIST);
}

TEST(where_the_content_type_says_little_the_text_decides)
{
    static const char *const vague[] = { "", "application/json",
                                         "application/json; charset=utf-8" };
    for (size_t i = 0; i < KV_COUNT_OF(vague); i++) {
        AUTO_ARENA arena = { 0 };
        struct oci_manifest m = expect_read(&arena, vague[i], INDEX(""));
        EXPECT_STR(m.media_type, MEDIA_OCI_INDEX);
        m = expect_read(&arena, vague[i], IMAGE(""));
        EXPECT_STR(m.media_type, MEDIA_OCI_MANIFEST);
        m = expect_read(&arena, vague[i], IMAGE(",\"mediaType\":\"" MEDIA_DOCKER_MANIFEST "\""));
        EXPECT_STR(m.media_type, MEDIA_DOCKER_MANIFEST);
    }
}

/* Every pair of types, sent and told. */
TEST(a_text_that_contradicts_its_content_type_is_refused)
{
    static const char *const types[] = { MEDIA_OCI_INDEX, MEDIA_OCI_MANIFEST, MEDIA_DOCKER_LIST,
                                         MEDIA_DOCKER_MANIFEST };
    for (size_t sent = 0; sent < KV_COUNT_OF(types); sent++) {
        for (size_t told = 0; told < KV_COUNT_OF(types); told++) {
            AUTO_ARENA arena = { 0 };
            bool is_index = told % 2 == 0;
            struct str text =
                arena_strf(&arena, "{\"mediaType\":\"%s\",%s}", types[told],
                           is_index ? "\"manifests\":[]" : "\"config\":" CONFIG ",\"layers\":[]");
            if (sent == told)
                expect_read(&arena, types[sent], text.p);
            else
                expect_refused(types[sent], text.p, "but says that it is");
        }
    }
}

TEST(a_text_that_is_both_image_and_index_is_refused)
{
    expect_refused(MEDIA_OCI_MANIFEST, IMAGE(",\"manifests\":[]"), "manifests: is of an index");
    expect_refused(MEDIA_OCI_INDEX, "{\"manifests\":[],\"layers\":[]}", "layers: is of an image");
    expect_refused(MEDIA_OCI_INDEX, "{\"manifests\":[],\"config\":{}}", "config: is of an image");
    expect_refused("", IMAGE(",\"manifests\":[]"), "is of an image");
}

TEST(dockers_first_schema_is_refused_by_its_name)
{
    static const char old[] = "{\"schemaVersion\":1,\"name\":\"app\",\"fsLayers\":[]}";
    expect_refused("application/vnd.docker.distribution.manifest.v1+prettyjws", old, "schema 1");
    expect_refused("application/vnd.docker.distribution.manifest.v1+json", old, "schema 1");
    expect_refused("application/json", old, "schema 1");
    expect_refused(MEDIA_DOCKER_MANIFEST, old, "schema 1");
}

TEST(what_is_no_manifest_is_refused_with_the_field)
{
    static const struct {
        const char *type, *text, *words;
    } table[] = {
        { "", "", "empty" },
        { "", "<html>", "host/app" },
        { "", "[]", "is not an object" },
        { "text/html", INDEX(""), "is of type \"text/html\"" },
        { "", "{\"mediaType\":7}", "mediaType: is not a string" },
        { MEDIA_OCI_INDEX, "{}", "manifests: is missing" },
        { MEDIA_OCI_INDEX, "{\"schemaVersion\":3,\"manifests\":[]}", "schemaVersion: is not 2" },
        { MEDIA_OCI_INDEX, "{\"schemaVersion\":\"2\",\"manifests\":[]}", "is not 2" },
        { MEDIA_OCI_INDEX, "{\"manifests\":{}}", "manifests: is not a list" },
        { MEDIA_OCI_INDEX, "{\"manifests\":[7]}", "manifests[0]: is not an object" },
        { MEDIA_OCI_INDEX, "{\"manifests\":[],\"artifactType\":[]}", "artifactType: is not a s" },
        { MEDIA_OCI_INDEX, "{\"manifests\":[],\"manifests\":[]}", "duplicate key" },
        { MEDIA_OCI_INDEX, INDEX(LAYER ",{\"size\":1,\"digest\":\"" D1 "\"}"),
          "manifests[1].mediaType: is missing" },
        { MEDIA_OCI_INDEX, INDEX("{\"mediaType\":\"a\",\"size\":1}"), "manifests[0].digest: \"\"" },
        { MEDIA_OCI_INDEX, INDEX(ITEM("a", "sha256:12", "")),
          "manifests[0].digest: \"sha256:12\" is no" },
        { MEDIA_OCI_INDEX, INDEX("{\"mediaType\":\"a\",\"digest\":\"" D1 "\"}"),
          "manifests[0].size: is not" },
        { MEDIA_OCI_INDEX, INDEX("{\"mediaType\":\"a\",\"size\":-1,\"digest\":\"" D1 "\"}"),
          "manifests[0].size: is not" },
        { MEDIA_OCI_INDEX, INDEX("{\"mediaType\":\"a\",\"size\":1.5,\"digest\":\"" D1 "\"}"),
          "manifests[0].size: is not" },
        { MEDIA_OCI_INDEX,
          INDEX("{\"mediaType\":\"a\",\"size\":18446744073709551615,\"digest\":\"" D1 "\"}"),
          "manifests[0].size: is not" },
        { MEDIA_OCI_INDEX, INDEX(ITEM("a", D1, ",\"platform\":[]")),
          "manifests[0].platform: is not an object" },
        { MEDIA_OCI_INDEX, INDEX(ITEM("a", D1, ",\"platform\":{\"os\":1}")),
          "manifests[0].platform.os: is not a string" },
        { MEDIA_OCI_INDEX, "{\"manifests\":[],\"subject\":{}}", "subject.mediaType: is missing" },
        { MEDIA_OCI_MANIFEST, "{\"layers\":[]}", "config: is missing" },
        { MEDIA_OCI_MANIFEST, "{\"config\":" CONFIG "}", "layers: is missing" },
        { MEDIA_OCI_MANIFEST, "{\"config\":" CONFIG ",\"layers\":[{}]}", "layers[0].mediaType" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(table); i++)
        expect_refused(table[i].type, table[i].text, table[i].words);
}

static void add_index(struct buf *out, size_t count)
{
    buf_addz(out, "{\"manifests\":[");
    for (size_t i = 0; i < count; i++)
        buf_addf(out, "%s{\"mediaType\":\"a\",\"size\":1,\"digest\":\"sha256:%064zx\"}",
                 i ? "," : "", i);
    buf_addz(out, "]}");
}

TEST(entries_and_bytes_have_limits)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF most = { 0 }, more = { 0 };
    struct oci_manifest m;
    struct err err = { 0 };
    add_index(&most, MANIFEST_ENTRIES_MAX);
    add_index(&more, MANIFEST_ENTRIES_MAX + 1);
    m = expect_read(&arena, "", most.p);
    EXPECT_EQ(m.count, MANIFEST_ENTRIES_MAX);
    expect_refused("", more.p, "manifests: has 1001 entries");

    AUTO_FREE char *huge = kv_malloc(MANIFEST_BYTES_MAX + 1);
    memset(huge, ' ', MANIFEST_BYTES_MAX + 1);
    struct str text = { huge, MANIFEST_BYTES_MAX + 1 };
    EXPECT_ERR(manifest_read(&arena, "host/app", STR(""), text, &m, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "at most 4194304 are read");
}

TEST(times_are_read_from_the_right_annotation_then_from_the_misspelt_one)
{
    static const struct {
        const char *annotations;
        int64_t seconds;
    } table[] = {
        { "null", 0 },
        { "7", 0 },
        { "{}", 0 },
        { "{\"" CREATED "\":\"1970-01-01T00:00:02Z\"}", 2 },
        { "{\"" CREATED_MISSPELT "\":\"1970-01-01T00:00:03Z\"}", 3 },
        { "{\"" CREATED_MISSPELT "\":\"1970-01-01T00:00:03Z\",\"" CREATED
          "\":\"1970-01-01T01:00:02+01:00\"}",
          2 },
        { "{\"" CREATED "\":\"yesterday\"}", 0 },
        { "{\"" CREATED "\":7}", 0 },
        { "{\"" CREATED "\":\"\",\"" CREATED_MISSPELT "\":\"1970-01-01T00:00:03Z\"}", 3 },
        { "{\"" CREATED "\":\"0001-01-01T00:00:00Z\"}", 0 }, /* Go's zero time: not told */
    };
    for (size_t i = 0; i < KV_COUNT_OF(table); i++) {
        AUTO_ARENA arena = { 0 };
        struct str text = arena_strf(&arena,
                                     "{\"manifests\":[{\"mediaType\":\"a\",\"size\":1,"
                                     "\"digest\":\"" D1 "\",\"annotations\":%s}]}",
                                     table[i].annotations);
        struct oci_manifest m = expect_read(&arena, "", text.p);
        EXPECT_EQ(m.items[0].created_us, table[i].seconds * 1000000);
    }
}

TEST(the_newest_wins_and_everybody_breaks_ties_alike)
{
#define OF(type_, digest_, us_)                                                                    \
    {                                                                                              \
        .artifact_type = STR(type_), .digest = STR(digest_), .created_us = us_                     \
    }
    static const struct descriptor items[] = {
        OF("t", D1, 0), OF("t", D2, 5), OF("t", D3, 5), OF("t", D1, 4), OF("other", D3, 9),
    };
#undef OF
    EXPECT_EQ(manifest_newest(items, 1, STR("t")) - items, 0);
    EXPECT_EQ(manifest_newest(items, 2, STR("t")) - items, 1);
    EXPECT_EQ(manifest_newest(items, 5, STR("t")) - items, 2);
    struct descriptor turned[5];
    for (size_t i = 0; i < 5; i++)
        turned[i] = items[4 - i];
    EXPECT_EQ(manifest_newest(turned, 5, STR("t")) - turned, 2);
    EXPECT_TRUE(manifest_newest(items, 5, STR("none")) == NULL);
    EXPECT_TRUE(manifest_newest(NULL, 0, STR("t")) == NULL);
}

TEST(attestations_artifacts_and_nested_indexes_are_not_images)
{
    AUTO_ARENA arena = { 0 };
    struct oci_manifest m = expect_read(
        &arena, MEDIA_OCI_INDEX,
        INDEX(ITEM(MEDIA_OCI_MANIFEST, D1, PLATFORM("linux", "amd64")) "," ITEM(
            MEDIA_DOCKER_MANIFEST, D1,
            "") "," ITEM(MEDIA_OCI_MANIFEST, D1,
                         PLATFORM(
                             "unknown",
                             "unknown")) "," ITEM(MEDIA_OCI_MANIFEST, D1,
                                                  ",\"artifactType\":\"a\"") "," ITEM(MEDIA_OCI_INDEX,
                                                                                      D1,
                                                                                      "") "," ITEM("application/octet-stream",
                                                                                                   D1,
                                                                                                   "")));
    static const bool want[] = { true, true, false, false, false, false };
    EXPECT_EQ(m.count, KV_COUNT_OF(want));
    for (uint32_t i = 0; i < m.count; i++)
        EXPECT_EQ(descriptor_is_image(&m.items[i]), want[i]);
}

TEST(a_config_tells_the_platform_in_gos_words)
{
    AUTO_ARENA arena = { 0 };
    struct platform p;
    struct err err = { 0 };
    struct str text = STR("{\"architecture\":\"arm64\",\"os\":\"linux\",\"variant\":\"v8\","
                          "\"rootfs\":{\"type\":\"layers\"}}");
    EXPECT_OK(image_config_read(&arena, "c", text, &p, &err), err);
    EXPECT_STR(p.architecture, "arm64");
    EXPECT_STR(p.os, "linux");
    EXPECT_STR(p.variant, "v8");
    EXPECT_OK(image_config_read(&arena, "c", STR("{\"architecture\":\"x86_64\"}"), &p, &err), err);
    EXPECT_STR(p.architecture, "amd64");
    EXPECT_STR(p.os, "");
    EXPECT_OK(image_config_read(&arena, "c", STR("{}"), &p, &err), err);
    EXPECT_STR(p.architecture, "");
    EXPECT_ERR(image_config_read(&arena, "c", STR("{\"os\":1}"), &p, &err), err, ERR_INVALID);
    EXPECT_Z(err.text, "c: os: is not a string");
    EXPECT_ERR(image_config_read(&arena, "c", STR("[]"), &p, &err), err, ERR_INVALID);
    EXPECT_ERR(image_config_read(&arena, "c", STR("{"), &p, &err), err, ERR_INVALID);
}

static const struct descriptor subject = { .media_type = STR(MEDIA_OCI_INDEX),
                                           .digest = STR(D3),
                                           .size = 1894 };

TEST(an_artifact_is_written_with_the_same_bytes_each_time)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 }, timeless = { 0 };
    artifact_manifest_write(&subject, STR(D2), 412, 1770802200000000, &text);
    EXPECT_STR(
        buf_str(&text),
        "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_MANIFEST
        "\",\"artifactType\":\"" COMPAT_ARTIFACT_TYPE
        "\",\"config\":{\"mediaType\":\"" MEDIA_OCI_EMPTY "\",\"size\":2,\"digest\":\"" EMPTY_DIGEST
        "\"},\"layers\":[{\"mediaType\":\"" COMPAT_SPEC_MEDIA "\",\"size\":412,\"digest\":\"" D2
        "\"}],\"subject\":{\"mediaType\":\"" MEDIA_OCI_INDEX "\",\"size\":1894,\"digest\":\"" D3
        "\"},\"annotations\":{\"" CREATED "\":\"2026-02-11T09:30:00Z\"}}");
    struct oci_manifest m = expect_read(&arena, MEDIA_OCI_MANIFEST, text.p);
    EXPECT_STR(m.artifact_type, COMPAT_ARTIFACT_TYPE);
    EXPECT_STR(m.items[0].media_type, COMPAT_SPEC_MEDIA);
    EXPECT_STR(m.subject.digest, D3);
    EXPECT_EQ(m.created_us, 1770802200000000);

    artifact_manifest_write(&subject, STR(D2), 412, 0, &timeless);
    m = expect_read(&arena, MEDIA_OCI_MANIFEST, timeless.p);
    EXPECT_EQ(m.created_us, 0);
}

static const struct descriptor artifact = { .media_type = STR(MEDIA_OCI_MANIFEST),
                                            .digest = STR(D2),
                                            .size = 700,
                                            .artifact_type = STR(COMPAT_ARTIFACT_TYPE),
                                            .created_us = 7000000 };
#define ARTIFACT_ENTRY                                                                             \
    "{\"mediaType\":\"" MEDIA_OCI_MANIFEST "\",\"size\":700,\"digest\":\"" D2                      \
    "\",\"artifactType\":\"" COMPAT_ARTIFACT_TYPE "\",\"annotations\":{\"" CREATED                 \
    "\":\"1970-01-01T00:00:07Z\"}}"

TEST(a_list_of_referrers_begins_with_one)
{
    AUTO_BUF text = { 0 };
    struct err err = { 0 };
    EXPECT_OK(referrers_index_write("i", STR(""), &artifact, &text, &err), err);
    EXPECT_STR(buf_str(&text), "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX
                               "\",\"manifests\":[" ARTIFACT_ENTRY "]}");
}

/* What others wrote stays, also what we do not understand; twice is once. */
TEST(a_list_of_referrers_keeps_all_it_had_and_has_each_once)
{
#define BEFORE                                                                                     \
    "{\"schemaVersion\":2,\"manifests\":[{\"digest\":\"" D1                                        \
    "\",\"size\":3,\"mediaType\":\"x/y\",\"data\":\"e30=\",\"n\":0.25,\"annotations\":{\"b\":\"é" \
    "\",\"a\":\"\"}}"
#define AFTER "],\"annotations\":{\"by\":\"others\"}}"
    AUTO_BUF text = { 0 }, again = { 0 };
    struct err err = { 0 };
    EXPECT_OK(referrers_index_write("i", STR(BEFORE AFTER), &artifact, &text, &err), err);
    EXPECT_STR(buf_str(&text), BEFORE "," ARTIFACT_ENTRY AFTER);
    EXPECT_OK(referrers_index_write("i", buf_str(&text), &artifact, &again, &err), err);
    EXPECT_STR(buf_str(&again), text.p);
}

TEST(a_list_of_referrers_is_not_made_from_something_else)
{
    AUTO_BUF text = { 0 }, full = { 0 };
    struct err err = { 0 };
    EXPECT_ERR(referrers_index_write("i", STR(IMAGE("")), &artifact, &text, &err), err,
               ERR_INVALID);
    EXPECT_ERR(referrers_index_write("i", STR("no"), &artifact, &text, &err), err, ERR_INVALID);
    add_index(&full, MANIFEST_ENTRIES_MAX);
    EXPECT_ERR(referrers_index_write("i", buf_str(&full), &artifact, &text, &err), err,
               ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "has 1000 entries already");
    EXPECT_EQ(text.len, 0);
    EXPECT_OK(referrers_index_write("i", STR("{\"manifests\":null}"), &artifact, &text, &err), err);
    EXPECT_STR(buf_str(&text), "{\"manifests\":[" ARTIFACT_ENTRY "]}");
}

TEST(the_digest_of_the_empty_config_is_its_own)
{
    struct err err = { 0 };
    EXPECT_OK(digest_verify(STR(EMPTY_DIGEST), STR("{}"), &err), err);
}
