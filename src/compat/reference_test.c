#include "support/test.h"

#include "base/rng.h"
#include "compat/reference.h"

#include <inttypes.h>

#define HEX_64 "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
#define SHA256 "sha256:" HEX_64
#define SHA512 "sha512:" HEX_64 HEX_64

TEST(references_are_read_as_runtimes_read_them)
{
    static const struct {
        const char *text, *registry, *host, *repository, *tag, *digest;
    } table[] = {
        { "nginx", "docker.io", "registry-1.docker.io", "library/nginx", "latest", "" },
        { "nginx:1.21-alpine", "docker.io", "registry-1.docker.io", "library/nginx", "1.21-alpine",
          "" },
        { "team/app", "docker.io", "registry-1.docker.io", "team/app", "latest", "" },
        { "docker.io/nginx", "docker.io", "registry-1.docker.io", "library/nginx", "latest", "" },
        { "index.docker.io/team/app:v1", "docker.io", "registry-1.docker.io", "team/app", "v1",
          "" },
        { "DOCKER.IO/nginx", "docker.io", "registry-1.docker.io", "library/nginx", "latest", "" },
        { "registry.example/app", "registry.example", "registry.example", "app", "latest", "" },
        { "registry.example:5000/team/sub/app:v1", "registry.example:5000", "registry.example:5000",
          "team/sub/app", "v1", "" },
        { "host:80/app", "host:80", "host:80", "app", "latest", "" },
        { "localhost/app", "localhost", "localhost", "app", "latest", "" },
        { "localhost:5000/app", "localhost:5000", "localhost:5000", "app", "latest", "" },
        { "LocalHost/app", "localhost", "localhost", "app", "latest", "" },
        { "localhost:5000", "docker.io", "registry-1.docker.io", "library/localhost", "5000", "" },
        { "registry.example:5000", "docker.io", "registry-1.docker.io", "library/registry.example",
          "5000", "" },
        { "Registry.EXAMPLE/app:TAG", "registry.example", "registry.example", "app", "TAG", "" },
        { "10.0.0.1:5000/app", "10.0.0.1:5000", "10.0.0.1:5000", "app", "latest", "" },
        { "[2001:DB8::1]/app", "[2001:db8::1]", "[2001:db8::1]", "app", "latest", "" },
        { "[::1]:5000/app:v1", "[::1]:5000", "[::1]:5000", "app", "v1", "" },
        { "nginx@" SHA256, "docker.io", "registry-1.docker.io", "library/nginx", "", SHA256 },
        { "host:1/a:v2@" SHA512, "host:1", "host:1", "a", "v2", SHA512 },
        { "host:1/a@" SHA256, "host:1", "host:1", "a", "", SHA256 },
        { "a/b__c/d_e/f-g/h---i/j.k0", "docker.io", "registry-1.docker.io",
          "a/b__c/d_e/f-g/h---i/j.k0", "latest", "" },
        { "xn--n3h.example/app", "xn--n3h.example", "xn--n3h.example", "app", "latest", "" },
        { "a:_", "docker.io", "registry-1.docker.io", "library/a", "_", "" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(table); i++) {
        AUTO_ARENA arena = { 0 };
        struct reference ref;
        struct err err = { 0 };
        EXPECT_OK(reference_parse(&arena, str_of(table[i].text), &ref, &err), err);
        EXPECT_STR(ref.registry, table[i].registry);
        EXPECT_STR(ref.host, table[i].host);
        EXPECT_STR(ref.repository, table[i].repository);
        EXPECT_STR(ref.tag, table[i].tag);
        EXPECT_STR(ref.digest, table[i].digest);
        EXPECT_TRUE(ref.tag.p && ref.digest.p);
    }
}

TEST(what_is_no_reference_is_refused_with_the_piece_that_is_wrong)
{
    static const struct {
        const char *text, *words;
    } table[] = {
        { "", "is empty" },
        { "Nginx", "name \"Nginx\" has an upper-case letter" },
        { "Team/app", "name \"Team/app\" has an upper-case letter" },
        { "registry.example/Team/app", "name \"Team/app\" has an upper-case letter" },
        { " nginx", "name \" nginx\" may have only" },
        { "nginx\n", "name \"nginx\\n\" may have only" },
        { "a//b", "has an empty part" },
        { "a/", "has an empty part" },
        { "/a", "has an empty part" },
        { "registry.example/", "has an empty part" },
        { "a..b/c", "has an empty label" }, /* with a dot it is a host */
        { "x/a..b", "separators that may not follow" },
        { "x/a___b", "separators that may not follow" },
        { "x/a._b", "separators that may not follow" },
        { "x/-a", "does not start and end" },
        { "x/a_", "does not start and end" },
        { "a:", "tag \"\" is empty" },
        { "a:-b", "tag \"-b\" may have only" },
        { "a:.b", "tag \".b\" may have only" },
        { "a:b+c", "tag \"b+c\" may have only" },
        { "a:b:c", "name \"a:b\" may have only" },
        { "host:0/a", "registry \"host:0\" has a port" },
        { "host:65536/a", "has a port" },
        { "host:/a", "has a port" },
        { "host:1x/a", "has a port" },
        { "host:+1/a", "has a port" },
        { "host:99999999999999999999/a", "has a port" },
        { ":5000/a", "has an empty label" },
        { "::1/a", "has a port" },
        { "[::g]/a", "is not an IPv6 address" },
        { "[]:1/a", "may have only letters" },
        { "[::1]x:1/a", "may have only letters" },
        { "[::1/a", "has a port" },
        { "-a.example/a", "starts or ends with a dash" },
        { "a_b.example/a", "may have only letters" },
        { "user@host.example/a", "digest \"host.example/a\" is none" },
        { "a@", "digest \"\" is none" },
        { "a@sha256:44", "digest \"sha256:44\" is none" },
        { "a@md5:d41d8cd98f00b204e9800998ecf8427e", "is none" },
        { "a@" SHA256 "@" SHA256, "is none" },
        { "@" SHA256, "has an empty part" },
        { HEX_64, "is the id of an image" },
        { "https://host.example/a", "has a port" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(table); i++) {
        AUTO_ARENA arena = { 0 };
        struct reference ref;
        struct err err = { 0 };
        int rc = reference_parse(&arena, str_of(table[i].text), &ref, &err);
        if (rc == 0)
            print_message("# not refused: %s\n", table[i].text);
        EXPECT_EQ(rc, -1);
        EXPECT_EQ(err.kind, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), table[i].words);
    }
}

TEST(a_nul_ends_no_piece)
{
    static const struct str table[] = {
        STR("[::1\0]/a"), STR("host.example\0/a"), STR("a\0"),
        STR("a:b\0"),     STR("host:1\0/a"),       STR("a@" SHA256 "\0"),
    };
    for (size_t i = 0; i < KV_COUNT_OF(table); i++) {
        AUTO_ARENA arena = { 0 };
        struct reference ref;
        struct err err = { 0 };
        EXPECT_ERR(reference_parse(&arena, table[i], &ref, &err), err, ERR_INVALID);
    }
}

/* Accepted with `count` letters at the end, refused with one more. */
static void expect_longest(const char *head, size_t count, const char *words)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    struct reference ref;
    struct err err = { 0 };
    buf_addz(&text, head);
    for (size_t i = 0; i < count; i++)
        buf_addc(&text, 'a');
    EXPECT_OK(reference_parse(&arena, buf_str(&text), &ref, &err), err);
    buf_addc(&text, 'a');
    EXPECT_ERR(reference_parse(&arena, buf_str(&text), &ref, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), words);
}

TEST(lengths_have_limits_that_count_what_is_added)
{
    expect_longest("a:", REFERENCE_TAG_MAX, "longer than 128");
    expect_longest("registry.example/", REFERENCE_NAME_MAX - 17, "have 256 bytes");
    expect_longest("", REFERENCE_NAME_MAX - 18, "have 256 bytes"); /* docker.io/library/ */

    AUTO_ARENA arena = { 0 };
    static char many[REFERENCE_BYTES_MAX + 1];
    struct reference ref;
    struct err err = { 0 };
    memset(many, 'a', sizeof many);
    EXPECT_ERR(reference_parse(&arena, (struct str){ many, sizeof many }, &ref, &err), err,
               ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "has 4097 bytes");
}

TEST(the_full_name_has_the_digest_instead_of_the_tag_and_reads_back)
{
    static const char *const table[][3] = {
        { "nginx", "docker.io/library/nginx:latest", "latest" },
        { "[::1]:5000/a:v1", "[::1]:5000/a:v1", "v1" },
        { "Host.example/a:v1@" SHA256, "host.example/a@" SHA256, SHA256 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(table); i++) {
        AUTO_ARENA arena = { 0 };
        AUTO_BUF full = { 0 }, again = { 0 };
        struct reference ref;
        struct err err = { 0 };
        EXPECT_OK(reference_parse(&arena, str_of(table[i][0]), &ref, &err), err);
        reference_format(&ref, &full);
        EXPECT_STR(buf_str(&full), table[i][1]);
        EXPECT_STR(reference_which(&ref), table[i][2]);
        EXPECT_OK(reference_parse(&arena, buf_str(&full), &ref, &err), err);
        reference_format(&ref, &again);
        EXPECT_STR(buf_str(&again), full.p);
    }
}

static bool is_under(const char *image, const char *pattern)
{
    AUTO_ARENA arena = { 0 };
    struct reference ref;
    struct err err = { 0 };
    struct str one = str_of(pattern);
    EXPECT_OK(reference_parse(&arena, str_of(image), &ref, &err), err);
    return reference_is_under(&ref, &(struct str_list){ &one, 1 });
}

TEST(patterns_are_prefixes_of_whole_parts)
{
    static const char *const under[][2] = {
        { "registry.example/team/app", "registry.example" },
        { "registry.example/team/app", "registry.example/" },
        { "registry.example/team/app", "registry.example/team" },
        { "registry.example/team/app", "registry.example/team/" },
        { "registry.example/team/app", "registry.example/team/app" },
        { "registry.example/team/app", "Registry.Example/team" },
        { "registry.example/team/app", "*.example/*/app" },
        { "registry.example/team/app", "*" },
        { "registry.example:5000/app", "registry.example:*" },
        { "nginx", "docker.io/library" },
        { "index.docker.io/nginx", "docker.io" },
    };
    static const char *const outside[][2] = {
        { "registry.example/team2/app", "registry.example/team" },
        { "registry.example/team/app", "registry.example/team/app/x" },
        { "registry.example/team/app", "registry.example/tea" },
        { "registry.example/team/app", "registry.exampl" },
        { "registry.example/team/app", "*/app" }, /* a star stays within its part */
        { "registry.example/team/app", "registry.example//app" },
        { "registry.example/team/app", "/team" },
        { "registry.example/team/app", "" },
        { "registry.example:5000/app", "registry.example" },
        { "registry.example.evil.example/team/app", "registry.example/team" },
        { "team/app", "team" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(under); i++) {
        if (!is_under(under[i][0], under[i][1]))
            print_message("# %s is not under %s\n", under[i][0], under[i][1]);
        EXPECT_TRUE(is_under(under[i][0], under[i][1]));
    }
    for (size_t i = 0; i < KV_COUNT_OF(outside); i++) {
        if (is_under(outside[i][0], outside[i][1]))
            print_message("# %s is under %s\n", outside[i][0], outside[i][1]);
        EXPECT_FALSE(is_under(outside[i][0], outside[i][1]));
    }
}

TEST(nothing_is_under_no_patterns)
{
    AUTO_ARENA arena = { 0 };
    struct reference ref;
    struct err err = { 0 };
    EXPECT_OK(reference_parse(&arena, STR("nginx"), &ref, &err), err);
    EXPECT_FALSE(reference_is_under(&ref, &(struct str_list){ NULL, 0 }));
}

/* The definition, slowly. */
static bool glob_plain(struct str pattern, struct str text)
{
    if (pattern.len == 0)
        return text.len == 0;
    struct str rest = str_sub(pattern, 1, pattern.len);
    if (pattern.p[0] == '*')
        return glob_plain(rest, text) ||
               (text.len && glob_plain(pattern, str_sub(text, 1, text.len)));
    return text.len && (pattern.p[0] == '?' || pattern.p[0] == text.p[0]) &&
           glob_plain(rest, str_sub(text, 1, text.len));
}

TEST(globs_match_as_their_definition_says)
{
    uint64_t seed = 7;
    struct rng rng;
    rng_init(&rng, seed);
    print_message("# seed %" PRIu64 "\n", seed);
    for (int i = 0; i < 20000; i++) {
        char pattern[7], text[9];
        size_t pattern_len = rng_below(&rng, sizeof pattern + 1);
        size_t text_len = rng_below(&rng, sizeof text + 1);
        for (size_t k = 0; k < pattern_len; k++)
            pattern[k] = "ab*?"[rng_below(&rng, 4)];
        for (size_t k = 0; k < text_len; k++)
            text[k] = "ab"[rng_below(&rng, 2)];
        struct str p = { pattern, pattern_len }, t = { text, text_len };
        EXPECT_EQ(reference_glob(p, t), glob_plain(p, t));
    }
}
