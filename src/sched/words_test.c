/* What manifests say, as messages show it. */
#include "sched/words.h"

#include "support/test.h"

TEST(a_name_is_shown_as_it_is_and_anything_else_is_quoted)
{
    static const struct {
        const char *name, *shown;
    } cases[] = {
        { "web-7", "web-7" },
        { "topology.kubernetes.io/zone", "topology.kubernetes.io/zone" },
        { "10.0.0.1:80", "10.0.0.1:80" },
        { "", "\"\"" },
        { "a b", "\"a b\"" },
        { "a\x1b[2J", "\"a\\u001b[2J\"" },
        { "say \"hi\"", "\"say \\\"hi\\\"\"" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct str name = str_of(cases[i].name);
        EXPECT_STR(str_of(NAME_SHOWN(name)), cases[i].shown);
        EXPECT_EQ(name_is_plain(name), strcmp(cases[i].name, cases[i].shown) == 0);
    }
}

TEST(a_name_of_any_length_has_room)
{
    char text[2000];
    memset(text, '\x01', sizeof text);
    for (size_t len = 0; len <= sizeof text; len++)
        EXPECT_TRUE(strlen(NAME_SHOWN(((struct str){ text, len }))) < STR_SHOWN_MAX);
    memset(text, 'a', sizeof text);
    for (size_t len = 0; len <= sizeof text; len++)
        EXPECT_TRUE(strlen(NAME_SHOWN(((struct str){ text, len }))) < STR_SHOWN_MAX);
}

TEST(long_lists_are_cut_with_the_number_of_the_others)
{
    static const struct str items[] = { STR("a"), STR("b c"), STR("d"), STR("e"),
                                        STR("f"), STR("g"),   STR("h") };
    AUTO_BUF out = { 0 };
    add_names(&out, (struct str_list){ items, 2 });
    EXPECT_STR(buf_str(&out), "a, \"b c\"");
    buf_clear(&out);
    add_names(&out, (struct str_list){ items, KV_COUNT_OF(items) });
    EXPECT_STR(buf_str(&out), "a, \"b c\", d, e, f and 2 others");
}

TEST(words_of_others_are_shown_as_they_are_unless_a_terminal_might_obey_them)
{
    AUTO_BUF out = { 0 };
    add_text(&out, STR("app:1, nginx:1.27"));
    EXPECT_STR(buf_str(&out), "app:1, nginx:1.27");
    buf_clear(&out);
    add_text(&out, STR("a\x1b[2J b"));
    EXPECT_STR(buf_str(&out), "\"a\\u001b[2J b\"");
    char text[TEXT_BYTES_SHOWN + 1];
    memset(text, 'a', sizeof text);
    for (size_t len = 0; len <= sizeof text; len++) {
        buf_clear(&out);
        add_text(&out, (struct str){ text, len });
        EXPECT_EQ(out.len, len <= TEXT_BYTES_SHOWN ? len : TEXT_BYTES_SHOWN + 3);
    }
}

TEST(a_requirement_reads_as_elsewhere_with_its_texts_quoted)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF ours = { 0 }, plain = { 0 };
    static const struct str items[] = {
        STR("a"), STR("b"), STR("c"), STR("d"), STR("e"), STR("f")
    };
    struct requirement r = requirement_in(&arena, STR("key"), (struct str_list){ items, 6 });
    r.min_values = (struct maybe_int){ .set = true, .value = 2 };
    add_requirement(&ours, &r);
    requirement_format(&r, &plain);
    EXPECT_STR(buf_str(&ours), plain.p);

    static const struct str odd[] = { STR("x y") };
    buf_clear(&ours);
    r = requirement_in(&arena, STR("k\n"), (struct str_list){ odd, 1 });
    add_requirement(&ours, &r);
    EXPECT_STR(buf_str(&ours), "\"k\\n\" In [\"x y\"]");
}
