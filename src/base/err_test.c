#include "support/test.h"

#include <wchar.h>

TEST(err_set_gives_kind_and_text_and_returns_minus_one)
{
    struct err err = { 0 };
    EXPECT_EQ(err_set(&err, ERR_CAPACITY, "no capacity for %s", "c7g.large"), -1);
    EXPECT_EQ(err.kind, ERR_CAPACITY);
    EXPECT_Z(err.text, "no capacity for c7g.large");
}

TEST(err_wrap_puts_context_in_front_and_keeps_the_kind)
{
    struct err err = { 0 };
    err_set(&err, ERR_CAPACITY, "no capacity for c7g.large");
    err_wrap(&err, "launch in %s", "eu-west-1b");
    EXPECT_EQ(err_wrap(&err, "claim %s", "web-7"), -1);
    EXPECT_EQ(err.kind, ERR_CAPACITY);
    EXPECT_Z(err.text, "claim web-7: launch in eu-west-1b: no capacity for c7g.large");
}

TEST(err_may_be_null_for_callers_who_only_want_the_result)
{
    EXPECT_EQ(err_set(NULL, ERR_INVALID, "unused"), -1);
    EXPECT_EQ(err_wrap(NULL, "unused"), -1);
}

TEST(err_texts_may_be_made_of_their_own_old_text)
{
    struct err err = { 0 };
    err_set(&err, ERR_INVALID, "bad cpu");
    err_set(&err, ERR_DENIED, "while handling \"%s\"", err.text);
    EXPECT_Z(err.text, "while handling \"bad cpu\"");
    err_wrap(&err, "<%s>", err.text);
    EXPECT_Z(err.text, "<while handling \"bad cpu\">: while handling \"bad cpu\"");
}

TEST(err_texts_that_are_too_long_are_cut_at_the_end_between_characters)
{
    char filler[ERR_TEXT_MAX + 10];
    for (size_t len = ERR_TEXT_MAX - 12; len < ERR_TEXT_MAX + 8; len++) {
        struct err err = { 0 };
        memset(filler, 'x', len);
        filler[len] = '\0';
        err_set(&err, ERR_INVALID, "%s\u20ac\U0001f600", filler); /* 3 and 4 bytes */
        EXPECT_TRUE(strlen(err.text) < ERR_TEXT_MAX);
        EXPECT_TRUE(strlen(err.text) >= (len < ERR_TEXT_MAX - 1 ? len : ERR_TEXT_MAX - 1));
        EXPECT_TRUE(str_is_utf8(str_of(err.text)));

        err_set(&err, ERR_INVALID, "\u20ac\U0001f600 is no name");
        err_wrap(&err, "%s", filler);
        EXPECT_TRUE(strlen(err.text) < ERR_TEXT_MAX);
        EXPECT_TRUE(str_is_utf8(str_of(err.text)));
        EXPECT_EQ(err.text[0], 'x');
    }
}

TEST(err_wrapped_for_ever_keeps_the_newest_context)
{
    struct err err = { 0 };
    err_set(&err, ERR_INTERNAL, "the root");
    for (int i = 0; i < 500; i++)
        err_wrap(&err, "level %d", i);
    EXPECT_TRUE(str_starts(str_of(err.text), STR("level 499: level 498: ")));
    EXPECT_EQ(strlen(err.text), ERR_TEXT_MAX - 1);
}

TEST(err_text_that_cannot_be_formatted_is_the_format)
{
    struct err err = { 0 };
    err_set(&err, ERR_INVALID, "odd character %lc", (wint_t)0x110000);
    EXPECT_Z(err.text, "odd character %lc");
}

TEST(err_kinds_have_names)
{
    for (enum err_kind kind = ERR_NONE; kind <= ERR_INTERNAL; kind++)
        EXPECT_TRUE(strlen(err_kind_name(kind)) > 0);
    EXPECT_Z(err_kind_name(ERR_EXISTS), "already exists");
}
