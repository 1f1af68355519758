#include "support/test.h"

#include "net/digest.h"

#define EMPTY_OBJECT "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"

/* The vectors of FIPS 180-2, and the two-byte document that artifacts have for a config. */
static const struct {
    enum digest_kind kind;
    const char *bytes, *text;
} vectors[] = {
    { DIGEST_SHA256, "",
      "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
    { DIGEST_SHA256, "abc",
      "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
    { DIGEST_SHA256, "{}", EMPTY_OBJECT },
    { DIGEST_SHA512, "abc",
      "sha512:ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a"
      "2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f" },
};

TEST(digests_are_those_of_the_standard)
{
    for (size_t i = 0; i < KV_COUNT_OF(vectors); i++) {
        char text[DIGEST_TEXT_MAX];
        struct err err = { 0 };
        EXPECT_OK(digest_text(vectors[i].kind, str_of(vectors[i].bytes), text, &err), err);
        EXPECT_Z(text, vectors[i].text);
        enum digest_kind kind;
        EXPECT_TRUE(digest_is_valid(str_of(text), &kind));
        EXPECT_EQ(kind, vectors[i].kind);
        EXPECT_OK(digest_verify(str_of(text), str_of(vectors[i].bytes), &err), err);
    }
}

TEST(bytes_that_are_absent_have_the_digest_of_no_bytes)
{
    char text[DIGEST_TEXT_MAX];
    struct err err = { 0 };
    EXPECT_OK(digest_text(DIGEST_SHA256, STR_NONE, text, &err), err);
    EXPECT_Z(text, vectors[0].text);
}

TEST(bytes_with_another_digest_are_refused_and_both_are_named)
{
    struct err err = { 0 };
    EXPECT_ERR(digest_verify(STR(EMPTY_OBJECT), STR("{ }"), &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "expected " EMPTY_OBJECT);
    EXPECT_HAS(str_of(err.text), "the bytes is sha256:");
}

TEST(only_whole_lower_case_digests_of_known_kinds_are_valid)
{
    static const char *const wrong[] = {
        "",
        "sha256",
        "sha256:",
        "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8",
        (EMPTY_OBJECT "a"),
        "sha256:44136FA355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "sha256:g4136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "SHA256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "sha512:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "md5:d41d8cd98f00b204e9800998ecf8427e",
        (" " EMPTY_OBJECT),
    };
    for (size_t i = 0; i < KV_COUNT_OF(wrong); i++) {
        struct err err = { 0 };
        if (digest_is_valid(str_of(wrong[i]), NULL))
            print_message("# valid: %s\n", wrong[i]);
        EXPECT_FALSE(digest_is_valid(str_of(wrong[i]), NULL));
        EXPECT_ERR(digest_verify(str_of(wrong[i]), STR("{}"), &err), err, ERR_INVALID);
    }
}
