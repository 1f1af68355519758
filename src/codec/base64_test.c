#include "support/test.h"

#include "base/rng.h"
#include "codec/base64.h"

#include <inttypes.h>

/* The vectors of RFC 4648, section 10, and two of our own with the last letters of the alphabet. */
static const struct {
    const char *bytes, *text;
} vectors[] = {
    { "", "" },
    { "f", "Zg==" },
    { "fo", "Zm8=" },
    { "foo", "Zm9v" },
    { "foob", "Zm9vYg==" },
    { "fooba", "Zm9vYmE=" },
    { "foobar", "Zm9vYmFy" },
    { "\xff\xff\xfe", "///+" },
    { "\xfb\xef\xbe", "++++" },
};

TEST(base64_encodes_and_decodes_the_vectors_of_its_rfc)
{
    for (size_t i = 0; i < KV_COUNT_OF(vectors); i++) {
        AUTO_BUF text = { 0 }, bytes = { 0 };
        struct err err;
        base64_encode(str_of(vectors[i].bytes), &text);
        EXPECT_STR(buf_str(&text), vectors[i].text);
        EXPECT_OK(base64_decode(str_of(vectors[i].text), &bytes, &err), err);
        EXPECT_STR(buf_str(&bytes), vectors[i].bytes);
    }
}

TEST(base64_refuses_every_text_but_the_one_it_would_write)
{
    static const char *const texts[] = {
        "Z",         "Zg",         "Zg=",  "Zg===", "=",        "====",     "Z===",
        "=Zg=",      "Zh==",       "Zn==", "Zm9=",  "Zm8=Zg==", "Zg==Zg==", "Zm9v\n",
        "Zm9v Zg==", "Zm9v\nYg==", "Zm-v", "Zm_v",  "Zm.v",     "Zg=a",     "\xff\xff\xff\xff",
        "Zm9vY",     "Zm9v====",
    };
    for (size_t i = 0; i < KV_COUNT_OF(texts); i++) {
        AUTO_BUF out = { 0 };
        struct err err = { 0 };
        buf_addz(&out, "before");
        if (base64_decode(str_of(texts[i]), &out, &err) == 0)
            fail_msg("\"%s\" was accepted", texts[i]);
        EXPECT_EQ(err.kind, ERR_INVALID);
        EXPECT_STR(buf_str(&out), "before"); /* nothing of the good beginning is left behind */
    }
    AUTO_BUF out = { 0 };
    struct err err;
    EXPECT_ERR(base64_decode(STR("Zm9v\0\0\0\0"), &out, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "near offset 4");
}

TEST(base64_appends_and_keeps_every_byte)
{
    const uint64_t seed = 20260102;
    print_message("# seed %" PRIu64 "\n", seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (size_t len = 0; len < 600; len++) {
        AUTO_BUF bytes = { 0 }, text = { 0 }, back = { 0 };
        struct err err;
        for (size_t i = 0; i < len; i++)
            buf_addc(&bytes, (char)rng_next(&rng));
        buf_addz(&back, "head:");
        base64_encode(buf_str(&bytes), &text);
        EXPECT_EQ(text.len, (len + 2) / 3 * 4);
        EXPECT_OK(base64_decode(buf_str(&text), &back, &err), err);
        EXPECT_TRUE(str_eq(str_sub(buf_str(&back), 5, back.len), buf_str(&bytes)));
        EXPECT_EQ(back.p[back.len], '\0');
    }
}

/* Of all last groups with padding, one for each byte and each pair of bytes. */
TEST(base64_texts_are_unique)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    int one = 0, two = 0;
    for (int i = 0; i < 64 * 64; i++) {
        char text[5] = { alphabet[i / 64], alphabet[i % 64], '=', '=', '\0' };
        AUTO_BUF bytes = { 0 }, again = { 0 };
        one += base64_decode(str_of(text), &bytes, NULL) == 0;
        for (int j = 0; j < 64; j++) {
            text[2] = alphabet[j];
            two += base64_decode(str_of(text), &again, NULL) == 0;
        }
    }
    EXPECT_EQ(one, 256);
    EXPECT_EQ(two, 65536);
}
