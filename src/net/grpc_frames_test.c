#include "net/grpc_frames.h"

#include "base/rng.h"
#include "support/test.h"

#include <stdio.h>

static struct grpc_frames frames_of(size_t message_bytes_max)
{
    return (struct grpc_frames){ .message_bytes_max = message_bytes_max };
}

TEST(a_message_has_a_flag_and_four_bytes_of_length)
{
    AUTO_BUF out = { 0 };
    grpc_frames_write(&out, STR(""));
    grpc_frames_write(&out, STR("abc"));
    EXPECT_EQ(out.len, 5 + 8);
    EXPECT_EQ(memcmp(out.p, "\0\0\0\0\0\0\0\0\0\3abc", out.len), 0);
}

TEST(messages_are_the_same_however_the_body_is_cut)
{
    AUTO_BUF body = { 0 };
    static const char *const messages[] = { "", "a", "", "bcdefg", "hi", "" };
    for (size_t i = 0; i < KV_COUNT_OF(messages); i++)
        grpc_frames_write(&body, str_of(messages[i]));

    for (size_t piece = 1; piece <= body.len; piece++) {
        struct grpc_frames frames = frames_of(6);
        struct err err = { 0 };
        struct str message;
        size_t taken = 0;
        for (size_t at = 0; at < body.len; at += piece) {
            grpc_frames_add(&frames, str_sub(buf_str(&body), at, piece));
            while (grpc_frames_peek(&frames, &message, &err) > 0) {
                EXPECT_STR(message, messages[taken++]);
                grpc_frames_drop(&frames);
            }
            EXPECT_EQ(err.kind, ERR_NONE);
        }
        EXPECT_EQ(taken, KV_COUNT_OF(messages));
        EXPECT_EQ(grpc_frames_bytes(&frames), 0);
        grpc_frames_done(&frames);
    }
}

TEST(a_reader_that_is_behind_finds_the_messages_in_order)
{
    struct rng rng;
    uint64_t seed = 7;
    printf("# seed %llu\n", (unsigned long long)seed);
    rng_init(&rng, seed);
    struct grpc_frames frames = frames_of(1000);
    AUTO_BUF one = { 0 };
    uint32_t written = 0, read = 0;
    while (read < 20000) {
        if (written < 20000 && rng_below(&rng, 2) == 0) {
            char text[300] = { 0 };
            int len = snprintf(text, sizeof text, "%u", written++);
            len += (int)rng_below(&rng, 200);
            buf_clear(&one);
            grpc_frames_write(&one, (struct str){ text, (size_t)len });
            grpc_frames_add(&frames, buf_str(&one));
        } else {
            struct str message;
            struct err err = { 0 };
            if (grpc_frames_peek(&frames, &message, &err) == 0)
                continue;
            EXPECT_EQ(atoi(message.p), read++);
            grpc_frames_drop(&frames);
        }
    }
    EXPECT_EQ(grpc_frames_bytes(&frames), 0);
    grpc_frames_done(&frames);
}

TEST(a_message_of_the_limit_passes_and_one_byte_more_is_refused_by_its_prefix)
{
    struct str message;
    struct err err = { 0 };
    struct grpc_frames frames = frames_of(3);
    grpc_frames_add(&frames, (struct str){ "\0\0\0\0\3abc", 8 });
    EXPECT_EQ(grpc_frames_peek(&frames, &message, &err), 1);
    grpc_frames_drop(&frames);
    grpc_frames_add(&frames, (struct str){ "\0\0\0\0", 4 });
    EXPECT_EQ(grpc_frames_peek(&frames, &message, &err), 0);
    grpc_frames_add(&frames, (struct str){ "\4", 1 });
    EXPECT_ERR(grpc_frames_peek(&frames, &message, &err), err, ERR_CAPACITY);
    grpc_frames_done(&frames);

    frames = frames_of(3);
    grpc_frames_add(&frames, (struct str){ "\0\xff\xff\xff\xff", 5 });
    EXPECT_ERR(grpc_frames_peek(&frames, &message, &err), err, ERR_CAPACITY);
    grpc_frames_done(&frames);
}

TEST(a_compressed_message_is_refused)
{
    struct str message;
    struct err err = { 0 };
    struct grpc_frames frames = frames_of(3);
    grpc_frames_add(&frames, (struct str){ "\1\0\0\0\0", 5 });
    EXPECT_ERR(grpc_frames_peek(&frames, &message, &err), err, ERR_INTERNAL);
    EXPECT_HAS(str_of(err.text), "compressed");
    grpc_frames_done(&frames);
}

TEST(behind_is_what_follows_the_first_message)
{
    struct grpc_frames frames = frames_of(100);
    AUTO_BUF body = { 0 };
    grpc_frames_write(&body, STR("abc"));
    grpc_frames_write(&body, STR("defgh"));
    for (size_t len = 0; len <= body.len; len++) {
        grpc_frames_add(&frames, str_sub(buf_str(&body), 0, len));
        EXPECT_EQ(grpc_frames_bytes(&frames), len);
        EXPECT_EQ(grpc_frames_behind(&frames), len > 8 ? len - 8 : 0);
        grpc_frames_done(&frames);
    }
}

TEST(server_messages_are_decoded_for_people)
{
    static const struct {
        const char *value, *want;
    } cases[] = {
        { "", "" },
        { "plain text", "plain text" },
        { "100%25", "100%" },
        { "a%0Ab%0d%09c", "a b  c" }, /* control characters are blank */
        { "%1b[31m%7F", " [31m " },   /* what a terminal obeys too */
        { "%c2%9b31m", "  31m" },     /* its eight-bit form */
        { "%c2%a0", "\xc2\xa0" },
        { "%C3%A9t%c3%a9", "\xc3\xa9t\xc3\xa9" },
        { "%", "%" }, /* what is not an encoding stands for itself */
        { "%4", "%4" },
        { "%4g%zz", "%4g%zz" },
        { "%41", "A" },
        { "%%41", "%A" },
        { "%ff", "\xef\xbf\xbd" }, /* not UTF-8 */
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF out = { 0 };
        grpc_message_decode(str_of(cases[i].value), 100, &out);
        EXPECT_STR(buf_str(&out), cases[i].want);
    }
}

TEST(server_messages_are_cut_between_characters)
{
    AUTO_BUF out = { 0 };
    grpc_message_decode(STR("abc%C3%A9"), 4, &out);
    EXPECT_STR(buf_str(&out), "abc");
    grpc_message_decode(STR("%ff%ff%ff"), 4, &out); /* grows threefold, and is still within */
    EXPECT_STR(buf_str(&out), "\xef\xbf\xbd");
}

TEST(a_timeout_is_told_in_the_finest_unit_of_eight_digits)
{
    static const struct {
        int64_t ns;
        const char *want;
    } cases[] = {
        { 1, "1n" },
        { 99999999, "99999999n" },
        { 100000000, "100000u" },
        { (int64_t)10 * 1000000000, "10000000u" },
        { (int64_t)100 * 1000000000, "100000m" },
        { (int64_t)120 * 1000000000, "120000m" },
        { (int64_t)100000 * 1000000000, "100000S" },
        { (int64_t)100000000 * 1000000000, "1666666M" },
        { INT64_MAX, "2562047H" },
        { 0, "1n" },
        { -5, "1n" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        char text[GRPC_TIMEOUT_TEXT_MAX];
        EXPECT_EQ(grpc_timeout_format(cases[i].ns, text), strlen(cases[i].want));
        EXPECT_Z(text, cases[i].want);
    }
}
