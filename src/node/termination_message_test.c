#include "node/configs.h"
#include "node/volumes_testing.h"

static struct runtime_container ended(struct place *p, const char *maybe_file,
                                      const char *maybe_log)
{
    return (struct runtime_container){
        .state = RUNTIME_EXITED,
        .exit_code = 1,
        .termination_message_policy = STR("FallbackToLogsOnError"),
        .termination_message_file = maybe_file ? str_of(place_path(p, maybe_file)) : STR(""),
        .log_path = maybe_log ? str_of(place_path(p, maybe_log)) : STR(""),
    };
}

TEST(the_file_is_the_message_and_only_its_end_counts)
{
    AUTO(place) p = place_new();
    AUTO_BUF text = { 0 };
    for (int i = 0; i < 1000; i++)
        buf_addf(&text, "line %03d\n", i);
    write_text(place_path(p, "f"), text.p);
    struct runtime_container c = ended(p, "f", NULL);
    struct str said = termination_message(&p->arena, &c, 1);
    EXPECT_EQ(said.len, 4096);
    EXPECT_TRUE(str_ends(said, STR("line 998\nline 999\n")));
    EXPECT_EQ(termination_message(&p->arena, &c, 3).len, 4096);
    EXPECT_EQ(termination_message(&p->arena, &c, 4).len, 3072); /* 12288 for the pod */
    EXPECT_EQ(termination_message(&p->arena, &c, 0).len, 4096);
}

TEST(the_message_is_utf8_and_no_character_is_cut_through)
{
    AUTO(place) p = place_new();
    AUTO_BUF text = { 0 };
    for (int i = 0; i < 3000; i++)
        buf_addz(&text, "\xc3\xa9");
    buf_addc(&text, '!');
    write_text(place_path(p, "f"), text.p);
    struct runtime_container c = ended(p, "f", NULL);
    struct str said = termination_message(&p->arena, &c, 1);
    EXPECT_TRUE(str_is_utf8(said));
    EXPECT_EQ(said.len, 4095);
    EXPECT_TRUE(str_starts(said, STR("\xc3\xa9")));

    write_text(place_path(p, "g"), "bad \xff byte");
    c = ended(p, "g", NULL);
    EXPECT_STR(termination_message(&p->arena, &c, 1), "bad \xef\xbf\xbd byte");
}

TEST(a_link_or_a_pipe_in_the_files_place_is_not_read)
{
    AUTO(place) p = place_new();
    write_text(place_path(p, "secret"), "of the host");
    EXPECT_EQ(symlink(place_path(p, "secret"), place_path(p, "link")), 0);
    EXPECT_EQ(mkfifo(place_path(p, "pipe"), 0600), 0);
    static const char *const files[] = { "link", "pipe", "none", "." };
    for (size_t i = 0; i < KV_COUNT_OF(files); i++) {
        struct runtime_container c = ended(p, files[i], files[i]);
        EXPECT_STR(termination_message(&p->arena, &c, 1), "");
    }
}

TEST(the_log_speaks_only_when_asked_after_a_failure_without_a_message)
{
    AUTO(place) p = place_new();
    write_text(place_path(p, "log"), "2026-01-02T15:04:05.1Z stdout F starting\n"
                                     "2026-01-02T15:04:05.2Z stderr P pan\n"
                                     "2026-01-02T15:04:05.2Z stderr F ic: it broke\n"
                                     "not a line of a log\n"
                                     "2026-01-02T15:04:05.2Z other F nor this\n");
    write_text(place_path(p, "empty"), "");
    write_text(place_path(p, "said"), "my words");
    struct runtime_container c = ended(p, "empty", "log");
    EXPECT_STR(termination_message(&p->arena, &c, 1), "starting\npanic: it broke\n");
    c.exit_code = 0;
    EXPECT_STR(termination_message(&p->arena, &c, 1), "");
    c = ended(p, "empty", "log");
    c.termination_message_policy = STR("File");
    EXPECT_STR(termination_message(&p->arena, &c, 1), "");
    c = ended(p, "said", "log");
    EXPECT_STR(termination_message(&p->arena, &c, 1), "my words");
    c = ended(p, NULL, "log");
    EXPECT_STR(termination_message(&p->arena, &c, 1), "starting\npanic: it broke\n");
}

TEST(of_a_long_log_eighty_lines_or_two_kilobytes_are_kept)
{
    AUTO(place) p = place_new();
    AUTO_BUF log = { 0 };
    for (int i = 0; i < 5000; i++)
        buf_addf(&log, "2026-01-02T15:04:05.123456789Z stdout F %d\n", i);
    write_text(place_path(p, "short"), log.p);
    struct runtime_container c = ended(p, NULL, "short");
    struct str said = termination_message(&p->arena, &c, 1);
    EXPECT_TRUE(str_starts(said, STR("4920\n4921\n")));
    EXPECT_TRUE(str_ends(said, STR("4998\n4999\n")));

    buf_clear(&log);
    for (int i = 0; i < 10; i++) {
        buf_addz(&log, "2026-01-02T15:04:05.123456789Z stdout F ");
        for (int k = 0; k < 16000; k++)
            buf_addc(&log, (char)('a' + i));
        buf_addc(&log, '\n');
    }
    write_text(place_path(p, "long"), log.p);
    c = ended(p, NULL, "long");
    said = termination_message(&p->arena, &c, 1);
    EXPECT_EQ(said.len, 2048);
    EXPECT_TRUE(str_starts(said, STR("jjjj")));
    EXPECT_TRUE(str_ends(said, STR("jj\n")));
}
