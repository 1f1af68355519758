#include "support/test.h"

#include "codec/base64.h"
#include "compat/credentials.h"

static void ring_cleanup(const struct keyring **ring)
{
    keyring_unref(*ring);
}
#define AUTO_RING __attribute__((cleanup(ring_cleanup))) const struct keyring *

static const struct keyring *ring_of(const char *text, enum keyring_form form, uint32_t *skipped)
{
    const struct keyring *ring = NULL;
    struct err err = { 0 };
    EXPECT_OK(keyring_read("secret", str_of(text), form, &ring, skipped, &err), err);
    return ring;
}

static const struct keyring *config(const char *text)
{
    return ring_of(text, KEYRING_CONFIG, NULL);
}

/* An entry whose password is its key, so that a list of passwords tells which entries matched. */
#define ENTRY(key_) "\"" key_ "\":{\"username\":\"u\",\"password\":\"" key_ "\"}"

/* "first second", best first. */
static void expect_match(const struct keyring *ring, const char *registry, const char *repository,
                         const char *passwords)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF got = { 0 };
    const struct credential *found;
    uint32_t count = keyring_match(ring, &arena, str_of(registry), str_of(repository), &found);
    for (uint32_t i = 0; i < count; i++)
        buf_addf(&got, "%s%.*s", i ? " " : "", STR_ARG(found[i].password));
    EXPECT_STR(buf_str(&got), passwords);
}

static struct credential only_one(const struct keyring *ring, struct arena *arena)
{
    const struct credential *found;
    EXPECT_EQ(keyring_match(ring, arena, STR("r.example"), STR("app"), &found), 1);
    return found[0];
}

TEST(keys_match_hosts_ports_and_whole_parts_of_paths)
{
    static const struct {
        const char *key, *registry, *repository;
        bool matches;
    } table[] = {
        { "r.example", "r.example", "app", true },
        { "r.example", "r.example", "team/app", true },
        { "R.Example", "r.example", "app", true },
        { "r.example/", "r.example", "app", true },
        { "https://r.example", "r.example", "app", true },
        { "http://r.example/", "r.example", "app", true },
        { "https://r.example/v1/", "r.example", "app", true },
        { "https://r.example/v2/", "r.example", "app", true },
        { "https://r.example/v2", "r.example", "app", true },
        { "https://r.example/v1/team", "r.example", "team/app", true },
        { "https://r.example/v1/team", "r.example", "app", false },
        { "r.example/team", "r.example", "team/app", true },
        { "r.example/team/", "r.example", "team/app", true },
        { "r.example/team/app", "r.example", "team/app", true },
        { "r.example/team", "r.example", "team2/app", false },
        { "r.example/team/app", "r.example", "team", false },
        { "r.example:5000", "r.example:5000", "app", true },
        { "r.example:5000/team", "r.example:5000", "team/app", true },
        { "r.example:5000", "r.example", "app", false },
        { "r.example", "r.example:5000", "app", false },
        { "r.example:500", "r.example:5000", "app", false },
        { "*.example", "r.example", "app", true },
        { "*.example", "a.r.example", "app", false }, /* label by label */
        { "*.*.example", "a.r.example", "app", true },
        { "r*.example", "registry.example", "app", true },
        { "r?.example", "r1.example", "app", true },
        { "*.example:5000", "r.example:5000", "app", true },
        { "*.example:*", "r.example:5000", "app", false }, /* ports are exact */
        { "*.example/team", "r.example", "team/app", true },
        { "r.example/*", "r.example", "team/app", false }, /* paths too */
        { "*", "localhost", "app", true },
        { "*", "r.example", "app", false },
        { "localhost:5000", "localhost:5000", "app", true },
        { "[::1]:5000", "[::1]:5000", "app", true },
        { "[::1]", "[::1]:5000", "app", false },
        { "[::1]", "[::1]", "app", true },
        { "https://index.docker.io/v1/", "docker.io", "library/nginx", true },
        { "index.docker.io", "docker.io", "library/nginx", true },
        { "registry-1.docker.io", "docker.io", "library/nginx", true },
        { "docker.io", "docker.io", "library/nginx", true },
        { "docker.io/team", "docker.io", "library/nginx", false },
        { "docker.io", "r.example", "library/nginx", false },
        { "example", "r.example", "app", false },
        { "r.example", "r.example.evil.example", "app", false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(table); i++) {
        AUTO_ARENA arena = { 0 };
        const struct credential *found;
        struct str text =
            arena_strf(&arena, "{\"auths\":{\"%s\":{\"password\":\"p\"}}}", table[i].key);
        AUTO_RING ring = config(text.p);
        uint32_t count = keyring_match(ring, &arena, str_of(table[i].registry),
                                       str_of(table[i].repository), &found);
        if (count != table[i].matches)
            print_message("# %s for %s/%s\n", table[i].key, table[i].registry, table[i].repository);
        EXPECT_EQ(count, table[i].matches);
    }
}

TEST(the_most_specific_come_first_and_all_are_given)
{
    AUTO_RING ring = config(
        "{\"auths\":{" ENTRY("*.example") "," ENTRY("r.example") "," ENTRY("*.*") "," ENTRY("r*.example") "," ENTRY(
            "r.example/team") "," ENTRY("*.example/team/app") "," ENTRY("r.example/team/app") "," ENTRY("other.example") "}}");
    expect_match(ring, "r.example", "team/app",
                 "r.example/team/app r.example/team r.example *.example/team/app r*.example "
                 "*.example *.*");
    expect_match(ring, "r.example", "app", "r.example r*.example *.example *.*");
    expect_match(ring, "third", "app", "");
    expect_match(NULL, "r.example", "app", "");
}

/* The base64 of a text, as `auth`. */
static const struct keyring *with_auth(const char *text, size_t len, bool padded)
{
    AUTO_BUF base64 = { 0 }, json = { 0 };
    base64_encode((struct str){ text, len }, &base64);
    while (!padded && base64.len && base64.p[base64.len - 1] == '=')
        buf_cut(&base64, base64.len - 1);
    buf_addf(&json, "{\"auths\":{\"r.example\":{\"auth\":\"%s\"}}}", base64.p);
    return config(json.p);
}

TEST(auth_is_a_user_and_a_password_that_may_have_colons)
{
    static const struct {
        const char *text, *user, *password;
    } table[] = {
        { "user:pass", "user", "pass" },
        { "user:a:b::c", "user", "a:b::c" },
        { "u:p", "u", "p" },
        { "u:pp", "u", "pp" },
        { ":token", "", "token" },
        { "AWS:ey\xc3\xa9 \n", "AWS", "ey\xc3\xa9 \n" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(table); i++) {
        for (int padded = 0; padded < 2; padded++) {
            AUTO_ARENA arena = { 0 };
            AUTO_RING ring = with_auth(table[i].text, strlen(table[i].text), padded);
            struct credential c = only_one(ring, &arena);
            EXPECT_STR(c.username, table[i].user);
            EXPECT_STR(c.password, table[i].password);
            EXPECT_STR(c.identity_token, "");
            EXPECT_STR(c.registry_token, "");
        }
    }
    AUTO_ARENA arena = { 0 };
    AUTO_RING ring = with_auth("u:p\0\0", 5, true);
    struct credential c = only_one(ring, &arena);
    EXPECT_STR(c.password, "p");
}

TEST(auth_counts_more_than_username_and_password)
{
    AUTO_ARENA arena = { 0 };
    AUTO_RING ring = config("{\"auths\":{\"r.example\":{\"username\":\"x\",\"password\":\"y\","
                            "\"auth\":\"dXNl\\ncjpwYXNz\",\"email\":\"e\"}}}");
    struct credential c = only_one(ring, &arena);
    EXPECT_STR(c.username, "user");
    EXPECT_STR(c.password, "pass");
}

TEST(tokens_are_kept)
{
    AUTO_ARENA arena = { 0 };
    AUTO_RING ring = config("{\"auths\":{\"r.example\":{\"auth\":\"PHRva2VuPjo=\","
                            "\"identitytoken\":\"id\"}}}");
    struct credential c = only_one(ring, &arena);
    EXPECT_STR(c.username, "<token>");
    EXPECT_STR(c.password, "");
    EXPECT_STR(c.identity_token, "id");
    AUTO_RING other = config("{\"auths\":{\"r.example\":{\"registrytoken\":\"bearer\"}}}");
    c = only_one(other, &arena);
    EXPECT_STR(c.registry_token, "bearer");
    EXPECT_STR(c.username, "");
}

TEST(the_older_form_has_no_wrapper)
{
    AUTO_RING ring = ring_of("{" ENTRY("https://index.docker.io/v1/") "," ENTRY("auths") "}",
                             KEYRING_DOCKERCFG, NULL);
    expect_match(ring, "docker.io", "library/nginx", "https://index.docker.io/v1/");
    expect_match(ring, "auths", "a", "auths");
}

TEST(entries_of_helpers_are_passed_over_and_counted)
{
    uint32_t skipped = 0;
    AUTO_RING ring = ring_of("{\"auths\":{\"a.example\":{},\"b.example\":{\"auth\":\"\"}," ENTRY(
                                 "c.example") ",\"d.example\":{\"username\":\"u\"}},"
                                              "\"credsStore\":\"desktop\","
                                              "\"credHelpers\":{\"a.example\":\"x\",\"e.example\":"
                                              "\"ecr-login\"}}",
                             KEYRING_CONFIG, &skipped);
    EXPECT_EQ(skipped, 4); /* a, b, d and e */
    expect_match(ring, "a.example", "app", "");
    expect_match(ring, "c.example", "app", "c.example");

    AUTO_RING none = ring_of("{\"credsStore\":\"desktop\"}", KEYRING_CONFIG, &skipped);
    EXPECT_EQ(skipped, 0);
    EXPECT_EQ(keyring_identity(none), 0);
}

TEST(bad_texts_are_refused_without_a_word_of_the_secrets)
{
    static const struct {
        const char *text, *words;
    } table[] = {
        { "", "secret:1:1" },
        { "hunter2", "secret:1:1: is not JSON" },
        { "{\"auths\":{\"r\":{\"password\":99hunter2}}}", "is not JSON" },
        { "{\"auths\":{\"r\":{\"password\":1e999999}}}", "is not JSON" },
        { "[\"hunter2\"]", "secret: is not an object" },
        { "{\"auths\":\"hunter2\"}", "auths is not an object" },
        { "{\"auths\":{\"r\":\"hunter2\"}}", "entry \"r\": is not an object" },
        { "{\"auths\":{\"r\":{\"auth\":\"hunter2!\"}}}", "entry \"r\": auth is not base64" },
        { "{\"auths\":{\"r\":{\"auth\":\"aHVudGVyMg==\"}}}", "auth is not the base64 of a user" },
        { "{\"auths\":{\"r\":{\"auth\":7}}}", "auth is not a string" },
        { "{\"auths\":{\"r\":{\"password\":[\"hunter2\"]}}}", "password is not a string" },
        { "{\"auths\":{\"r\":{\"registrytoken\":\"hunter2\\r\\nX: y\"}}}", "control character" },
        { "{\"auths\":{\"u:hunter2@r.example\":{\"password\":\"p\"}}}", "with a user in its key" },
        { "{\"auths\":{\"u:hunter2@r.example\":7}}", "with a user in its key" },
        { "{\"auths\":{\"\":{\"password\":\"hunter2\"}}}", "has no host" },
        { "{\"auths\":{\"https:///v1/\":{\"password\":\"hunter2\"}}}", "has no host" },
        { "{\"auths\":{\":5000\":{\"password\":\"hunter2\"}}}", "has no host" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(table); i++) {
        const struct keyring *ring = NULL;
        struct err err = { 0 };
        int rc = keyring_read("secret", str_of(table[i].text), KEYRING_CONFIG, &ring, NULL, &err);
        if (rc == 0)
            print_message("# not refused: %s\n", table[i].text);
        EXPECT_EQ(rc, -1);
        EXPECT_EQ(err.kind, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), table[i].words);
        EXPECT_TRUE(strstr(err.text, "hunter") == NULL);
    }
}

TEST(entries_and_bytes_have_limits)
{
    AUTO_BUF text = { 0 };
    struct err err = { 0 };
    const struct keyring *ring = NULL;
    buf_addz(&text, "{\"auths\":{");
    for (int i = 0; i <= KEYRING_ENTRIES_MAX; i++)
        buf_addf(&text, "%s\"r%d\":{}", i ? "," : "", i);
    buf_addz(&text, "}}");
    EXPECT_ERR(keyring_read("s", buf_str(&text), KEYRING_CONFIG, &ring, NULL, &err), err,
               ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "has 1001 entries");
    AUTO_FREE char *huge = kv_calloc(KEYRING_BYTES_MAX + 1, 1);
    EXPECT_ERR(keyring_read("s", (struct str){ huge, KEYRING_BYTES_MAX + 1 }, KEYRING_CONFIG, &ring,
                            NULL, &err),
               err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "at most 1048576 are read");
}

TEST(joined_rings_ask_the_first_one_first_and_the_specific_before_that)
{
    AUTO_RING a = config("{\"auths\":{\"r.example\":{\"password\":\"a\"}}}");
    AUTO_RING b = config("{\"auths\":{\"r.example\":{\"password\":\"b\"},"
                         "\"r.example/team\":{\"password\":\"b-team\"}}}");
    const struct keyring *both[] = { NULL, a, NULL, b, a };
    AUTO_RING joined = keyring_join(both, 5);
    expect_match(joined, "r.example", "app", "a b"); /* the same credential is tried once */
    expect_match(joined, "r.example", "team/app", "b-team a b");

    keyring_unref(take(&a)); /* the joined one keeps what it borrows */
    keyring_unref(take(&b));
    expect_match(joined, "r.example", "app", "a b");
}

TEST(a_join_of_nothing_is_nothing_and_of_one_is_that_one)
{
    AUTO_RING a = config("{\"auths\":{\"r.example\":{\"password\":\"a\"}}}");
    const struct keyring *rings[] = { NULL, a };
    EXPECT_TRUE(keyring_join(rings, 0) == NULL);
    EXPECT_TRUE(keyring_join(rings, 1) == NULL);
    AUTO_RING same = keyring_join(rings, 2);
    EXPECT_TRUE(same == a);
}

TEST(equal_content_has_equal_identity_and_other_content_another)
{
    static const char *const different[] = {
        "{\"auths\":{\"r.example\":{\"username\":\"u\",\"password\":\"p\"}}}",
        "{\"auths\":{\"r.example\":{\"username\":\"u\",\"password\":\"q\"}}}",
        "{\"auths\":{\"r.example\":{\"username\":\"up\",\"password\":\"\",\"identitytoken\":\"t\"}}}",
        "{\"auths\":{\"r.example\":{\"username\":\"u\",\"password\":\"p\",\"identitytoken\":\"t\"}}}",
        "{\"auths\":{\"r.example\":{\"username\":\"u\",\"password\":\"p\",\"registrytoken\":\"t\"}}}",
        "{\"auths\":{\"r.example:1\":{\"username\":\"u\",\"password\":\"p\"}}}",
        "{\"auths\":{\"r.example/1\":{\"username\":\"u\",\"password\":\"p\"}}}",
    };
    for (size_t i = 0; i < KV_COUNT_OF(different); i++) {
        for (size_t k = 0; k < KV_COUNT_OF(different); k++) {
            AUTO_RING a = config(different[i]);
            AUTO_RING b = config(different[k]);
            EXPECT_EQ(keyring_identity(a) == keyring_identity(b), i == k);
            EXPECT_TRUE(keyring_identity(a) != 0);
        }
    }
    AUTO_RING plain = config(different[0]);
    AUTO_RING coded =
        config("{\"auths\":{\"https://R.example/v2/\":{\"auth\":\"dTpw\"},\"x.example\":{}}}");
    EXPECT_EQ(keyring_identity(plain), keyring_identity(coded));
    EXPECT_EQ(keyring_identity(NULL), 0);
    AUTO_RING empty = config("{\"auths\":{}}");
    EXPECT_EQ(keyring_identity(empty), 0);
}

TEST(a_joined_ring_is_identified_by_its_content_too)
{
    AUTO_RING a = config("{\"auths\":{" ENTRY("a.example") "}}");
    AUTO_RING b = config("{\"auths\":{" ENTRY("b.example") "}}");
    AUTO_RING both = config("{\"auths\":{" ENTRY("a.example") "," ENTRY("b.example") "}}");
    AUTO_RING joined = keyring_join((const struct keyring *[]){ a, b }, 2);
    AUTO_RING turned = keyring_join((const struct keyring *[]){ b, a }, 2);
    EXPECT_EQ(keyring_identity(joined), keyring_identity(both));
    EXPECT_TRUE(keyring_identity(joined) != keyring_identity(a));
    EXPECT_TRUE(keyring_identity(turned) != keyring_identity(joined));
}
