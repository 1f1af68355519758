#include "base/log.h"

#include "base/log_redact.h"
#include "base/rng.h"
#include "support/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

/* A log into an unnamed file, in virtual time from 2026-01-02T15:04:05.000006Z. */
struct fixture {
    struct virtual_clock *clock;
    FILE *file;
    struct log *log;
    struct buf text;
};

#define START_US ((int64_t)1767366245000006)
#define SECOND_NS ((int64_t)1000000000)

static void fixture_done(struct fixture *f)
{
    log_free(f->log);
    virtual_clock_free(f->clock);
    fclose(f->file);
    buf_done(&f->text);
}
#define AUTO_FIXTURE __attribute__((cleanup(fixture_done))) struct fixture

static struct fixture fixture_new(enum log_format format)
{
    struct fixture f = { .clock = virtual_clock_new(START_US), .file = tmpfile() };
    f.log = log_new((struct log_options){
        .clock = virtual_clock_port(f.clock), .fd = fileno(f.file), .format = format });
    return f;
}

static struct str written(struct fixture *f)
{
    buf_clear(&f->text);
    rewind(f->file);
    char part[4096];
    size_t n;
    while ((n = fread(part, 1, sizeof part, f->file)) > 0)
        buf_add(&f->text, (struct str){ part, n });
    return buf_str(&f->text);
}

static size_t line_count(struct str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += s.p[i] == '\n';
    return n;
}

#define JSON_HEAD "{\"time\":\"2026-01-02T15:04:05.000006Z\",\"level\":\"info\",\"msg\":"

TEST(log_writes_one_json_object_per_line_where_there_is_no_terminal)
{
    AUTO_FIXTURE f = fixture_new(LOG_AUTO);
    log_info(f.log, "launched", LOG_STR("claim", STR("web-7")), LOG_INT("pods", -3),
             LOG_BOOL("spot", true), LOG_FLOAT("price", 0.0653), LOG_DURATION("took", 1500000000),
             LOG_STR("zone", STR_NONE));
    log_info(f.log, "no fields");
    EXPECT_STR(written(&f), JSON_HEAD "\"launched\",\"claim\":\"web-7\",\"pods\":-3,\"spot\":true,"
                                      "\"price\":0.0653,\"took\":1.5,\"zone\":null}\n" JSON_HEAD
                                      "\"no fields\"}\n");
}

TEST(log_writes_aligned_text_for_people)
{
    AUTO_FIXTURE f = fixture_new(LOG_TEXT);
    log_info(f.log, "launched", LOG_STR("claim", STR("web-7")), LOG_INT("pods", 3));
    log_warn(f.log, "a message longer than the column for it", LOG_STR("why", STR("it = so")));
    log_error(f.log, "bare");
    EXPECT_STR(written(&f),
               "15:04:05.000 INFO  launched                        claim=web-7 pods=3\n"
               "15:04:05.000 WARN  a message longer than the column for it "
               "why=\"it = so\"\n"
               "15:04:05.000 ERROR bare\n");
}

TEST(log_writes_coloured_text_to_a_terminal_unless_no_color_is_set)
{
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    if (master < 0 || grantpt(master) < 0 || unlockpt(master) < 0)
        SKIP("no pseudo-terminals here");
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY);
    for (int plain = 0; plain <= 1; plain++) {
        if (plain)
            setenv("NO_COLOR", "1", 1);
        else
            unsetenv("NO_COLOR");
        AUTO(log) log = log_new((struct log_options){ .clock = clock_real(), .fd = terminal });
        log_info(log, "ready");
        char line[256];
        ssize_t n = read(master, line, sizeof line);
        EXPECT_TRUE(n > 0);
        struct str got = { line, (size_t)n };
        EXPECT_HAS(got, plain ? " INFO  ready" : "\033[32mINFO \033[0m ready");
        EXPECT_EQ(str_find(got, '\033') >= 0, !plain);
    }
    close(terminal);
    close(master);
}

TEST(log_colours_level_and_keys)
{
    AUTO_FIXTURE f = fixture_new(LOG_TEXT_COLOUR);
    log_error(f.log, "gone", LOG_STR("claim", STR("a")));
    EXPECT_HAS(written(&f), "\033[31mERROR\033[0m gone");
    EXPECT_HAS(written(&f), " \033[36mclaim\033[0m=a\n");
}

TEST(log_escapes_what_would_break_a_line_or_command_a_terminal)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    log_info(f.log, "x", LOG_STR("v", STR("a\"b\\c\nd\re\tf\bg\033[2J\x7f\0z")));
    log_info(f.log, "x", LOG_STR("v", STR("caf\xc3\xa9 \xc2\x9b \xf0\x9f\x8c\xb3")));
    log_info(f.log, "x", LOG_STR("v", STR("\xff|\xc3|\xed\xa0\x80|\xf4\x90\x80\x80")));
    EXPECT_STR(written(&f), JSON_HEAD
               "\"x\",\"v\":\"a\\\"b\\\\c\\nd\\re\\tf\\bg\\u001b[2J\\u007f\\u0000z\"}\n" JSON_HEAD
               "\"x\",\"v\":\"caf\xc3\xa9 \\u009b \xf0\x9f\x8c\xb3\"}\n" JSON_HEAD
               "\"x\",\"v\":\"\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd|"
               "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"}\n");
}

TEST(log_text_values_cannot_forge_a_second_field_or_line)
{
    AUTO_FIXTURE f = fixture_new(LOG_TEXT);
    log_info(f.log, "x", LOG_STR("a", STR("1 b=2")), LOG_STR("c", STR("\n15:04 INFO ok")),
             LOG_STR("d", STR("")));
    EXPECT_HAS(written(&f), " a=\"1 b=2\" c=\"\\n15:04 INFO ok\" d=\"\"\n");
    EXPECT_EQ(line_count(written(&f)), 1);
}

TEST(log_writes_numbers_that_json_does_not_have_as_strings)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    log_info(f.log, "x", LOG_FLOAT("a", __builtin_nan("")), LOG_FLOAT("b", -__builtin_inf()),
             LOG_INT("c", INT64_MIN));
    EXPECT_HAS(written(&f), "\"a\":\"NaN\",\"b\":\"-Inf\",\"c\":-9223372036854775808}");
}

TEST(log_errors_carry_text_and_kind)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    struct err err;
    err_set(&err, ERR_CAPACITY, "no \"c7g\"");
    log_warn(f.log, "launch failed", LOG_ERR(&err));
    EXPECT_HAS(written(&f), ",\"error\":\"no \\\"c7g\\\"\",\"errorKind\":\"no capacity\"}");
}

TEST(log_level_can_be_changed_while_running_and_fields_below_it_cost_nothing)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    int evaluated = 0;
    log_set_level(f.log, LOG_LEVEL_WARN);
    log_info(f.log, "not said", LOG_INT("n", ++evaluated));
    log_warn(f.log, "said", LOG_INT("n", ++evaluated));
    log_set_level(f.log, LOG_LEVEL_DEBUG);
    log_debug(f.log, "said too", LOG_INT("n", ++evaluated));
    EXPECT_EQ(evaluated, 2);
    EXPECT_EQ(line_count(written(&f)), 2);

    log_error(NULL, "to nobody", LOG_INT("n", ++evaluated));
    EXPECT_EQ(evaluated, 2);
}

TEST(log_level_names_parse)
{
    enum log_level level = LOG_LEVEL_DEBUG;
    EXPECT_TRUE(log_level_parse(STR("error"), &level));
    EXPECT_EQ(level, LOG_LEVEL_ERROR);
    EXPECT_FALSE(log_level_parse(STR("Error"), &level));
    EXPECT_FALSE(log_level_parse(STR(""), &level));
}

TEST(log_cuts_long_values_between_characters)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    AUTO_BUF long_text = { 0 };
    buf_addc(&long_text, ' '); /* so that the limit falls inside a two-byte character */
    for (int i = 0; i < LOG_VALUE_BYTES_MAX; i++)
        buf_addz(&long_text, "\xc3\xa9");
    log_info(f.log, "x", LOG_STR("v", buf_str(&long_text)));
    EXPECT_HAS(written(&f), "\xc3\xa9...[cut]\"}\n");
    EXPECT_TRUE(str_is_utf8(written(&f)));
    EXPECT_TRUE(written(&f).len < LOG_VALUE_BYTES_MAX + 200);
}

/* --- repeats --- */

static void fail_launch(struct log *log, struct str claim, int attempt, enum err_kind kind)
{
    struct err err;
    err_set(&err, kind, "attempt %d", attempt);
    log_warn(log, "launch failed", LOG_STR("claim", claim), LOG_INT("attempt", attempt),
             LOG_ERR(&err));
}

TEST(log_counts_repeats_and_says_them_once_when_the_window_closes)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    for (int i = 1; i <= 5; i++)
        fail_launch(f.log, STR("a"), i, ERR_CAPACITY);
    EXPECT_EQ(line_count(written(&f)), 1);

    virtual_clock_advance(f.clock, 10 * SECOND_NS);
    log_info(f.log, "anything else");
    EXPECT_EQ(line_count(written(&f)), 3);
    EXPECT_HAS(written(&f), "\"attempt\":5,\"error\":\"attempt 5\",\"errorKind\":\"no capacity\","
                            "\"repeated\":4}\n");
}

TEST(log_never_takes_one_claim_or_one_kind_of_error_for_another)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    fail_launch(f.log, STR("a"), 1, ERR_CAPACITY);
    fail_launch(f.log, STR("b"), 1, ERR_CAPACITY);
    fail_launch(f.log, STR("a"), 2, ERR_DENIED);
    log_error(f.log, "launch failed", LOG_STR("claim", STR("a")));
    log_warn(f.log, "launch failed", LOG_STR("claim", STR("a")));
    log_warn(f.log, "launch failed", LOG_STR("pool", STR("a")));
    EXPECT_EQ(line_count(written(&f)), 6);
}

TEST(log_writes_the_line_again_in_the_next_window)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    for (int i = 0; i < 3; i++) {
        log_info(f.log, "tick");
        virtual_clock_advance(f.clock, 10 * SECOND_NS);
    }
    EXPECT_EQ(line_count(written(&f)), 3);
    virtual_clock_jump(f.clock, START_US); /* the wall clock does not open windows */
    log_info(f.log, "tick");
    log_info(f.log, "tick");
    EXPECT_EQ(line_count(written(&f)), 4);
}

TEST(log_flush_says_what_was_held_back)
{
    AUTO_FIXTURE f = fixture_new(LOG_TEXT);
    log_info(f.log, "tick");
    log_info(f.log, "tick");
    log_info(f.log, "tick");
    log_flush(f.log);
    EXPECT_HAS(written(&f), "INFO  tick                            (repeated 2 times)\n");
    log_flush(f.log);
    EXPECT_EQ(line_count(written(&f)), 2);
}

TEST(log_closes_the_oldest_window_early_when_too_many_are_open_and_loses_no_line)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    const int keys = LOG_WINDOWS_MAX + 10;
    for (int i = 0; i < keys; i++) {
        char name[16];
        snprintf(name, sizeof name, "claim-%d", i);
        log_info(f.log, "x", LOG_Z("claim", name));
        log_info(f.log, "x", LOG_Z("claim", name));
    }
    EXPECT_EQ(line_count(written(&f)), keys + 10);
    log_flush(f.log);
    EXPECT_EQ(line_count(written(&f)), 2 * keys);
}

TEST(log_windows_may_last_for_ever)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    log_free(f.log);
    f.log = log_new((struct log_options){ .clock = virtual_clock_port(f.clock),
                                          .fd = fileno(f.file),
                                          .repeat_window_ns = INT64_MAX });
    for (int i = 0; i < 3; i++) {
        log_info(f.log, "tick");
        virtual_clock_advance(f.clock, SECOND_NS);
    }
    EXPECT_EQ(line_count(written(&f)), 1);
}

TEST(log_can_write_every_line)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    log_free(f.log);
    f.log = log_new((struct log_options){
        .clock = virtual_clock_port(f.clock), .fd = fileno(f.file), .repeat_window_ns = -1 });
    log_info(f.log, "tick");
    log_info(f.log, "tick");
    EXPECT_EQ(line_count(written(&f)), 2);
}

/* --- secrets --- */

TEST(log_redacts_fields_whose_key_looks_secret)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    log_info(f.log, "x", LOG_STR("registryPassword", STR("hunter2")),
             LOG_STR("Authorization", STR("hunter2")), LOG_STR("X-Auth-Token", STR("hunter2")),
             LOG_STR("user_data", STR("hunter2")), LOG_INT("secretNumber", 42),
             LOG_STR("secretAccessKey", STR("hunter2")), LOG_SECRET("harmless", STR("hunter2")));
    EXPECT_FALSE(memmem(written(&f).p, written(&f).len, "hunter2", 7));
    EXPECT_FALSE(memmem(written(&f).p, written(&f).len, "42", 2));
    EXPECT_HAS(written(&f), "\"harmless\":\"[redacted]\"}");
}

TEST(log_keeps_fields_whose_key_only_resembles_a_secret)
{
    static const char *const names[] = { "key", "claim", "keys", "pass", "author", "user", "zone" };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++)
        EXPECT_FALSE(redact_name(str_of(names[i])));
}

static void expect_masked(const char *text, const char *want)
{
    AUTO_BUF out = { 0 };
    redact_text(str_of(text), SIZE_MAX / 2, &out);
    EXPECT_STR(buf_str(&out), want);
}

TEST(log_masks_credentials_inside_texts)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "GET /x: Authorization: Bearer abc.def-123 refused",
          "GET /x: Authorization: [redacted] refused" },
        { "sent bearer sha256~Zm9vYmFy to", "sent bearer [redacted] to" },
        { "Basic dXNlcjpwYXNz.", "Basic [redacted]" },
        { "basic idea", "basic idea" },
        { "for AKIAIOSFODNN7EXAMPLE: denied", "for [redacted]: denied" },
        { "arn:x/ASIAIOSFODNN7EXAMPLE/y", "arn:x/[redacted]/y" },
        { "AKIAIOSFODNN7EXAMPLES is one too long", "AKIAIOSFODNN7EXAMPLES is one too long" },
        { "key wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY!", "key [redacted]!" },
        { "commit 0123456789abcdef0123456789abcdef01234567",
          "commit 0123456789abcdef0123456789abcdef01234567" },
        { "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJrOHMifQ.c2ln-_x and", "[redacted] and" },
        { "password=hunter2&user=a", "password=[redacted]&user=a" },
        { "{\"password\": \"hun\\\"ter2\", \"user\": \"a\"}",
          "{\"password\": \"[redacted]\", \"user\": \"a\"}" },
        { "{\\\"token\\\":\\\"abc\\\"}", "{\\\"token\\\":\\\"[redacted]" },
        { "https://u/?X-Amz-Signature=00ff&X-Amz-Date=1",
          "https://u/?X-Amz-Signature=[redacted]&X-Amz-Date=1" },
        { "AWS4-HMAC-SHA256 Credential=AKIA/20260102, Signature=00ff",
          "AWS4-HMAC-SHA256 Credential=[redacted], Signature=[redacted]" },
        { "pull from https://me:hunter2@registry/x", "pull from https://me:[redacted]@registry/x" },
        { "https://registry:5000/x@sha256:00", "https://registry:5000/x@sha256:00" },
        { "a -----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY----- b",
          "a [redacted] b" },
        { "-----BEGIN RSA PRIVATE KEY-----\ncut off", "[redacted]" },
        { "-----BEGIN CERTIFICATE-----\nMIIB", "-----BEGIN CERTIFICATE-----\nMIIB" },
        { "--token=abc", "--token=[redacted]" },
        { "secret \"db\" not found", "secret \"db\" not found" },
        { "key: default/web-7", "key: default/web-7" },
        { "password=", "password=" },
        { "", "" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        expect_masked(cases[i].text, cases[i].want);
}

TEST(log_masks_a_credential_wherever_it_stands_in_a_text)
{
    static const char id[] = "AKIAIOSFODNN7EXAMPLE";
    static const char noise[] = " \t\n\"'\\{}[]=:;,&/?.-_+@!eyJBearerpassword0";
    const uint64_t seed = 20260102;
    print_message("# seed %llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_init(&rng, seed);
    for (int round = 0; round < 20000; round++) {
        AUTO_BUF text = { 0 };
        AUTO_BUF out = { 0 };
        for (uint64_t n = rng_below(&rng, 30); n > 0; n--)
            buf_addc(&text, noise[rng_below(&rng, sizeof noise - 1)]);
        buf_addc(&text, ' ');
        buf_addz(&text, id);
        buf_addc(&text, ' ');
        for (uint64_t n = rng_below(&rng, 30); n > 0; n--)
            buf_addc(&text, noise[rng_below(&rng, sizeof noise - 1)]);
        redact_text(buf_str(&text), SIZE_MAX / 2, &out);
        if (memmem(out.p, out.len, id, sizeof id - 1)) {
            print_error("leaked from: %s\n", text.p);
            fail();
        }
    }
}

TEST(log_does_not_leak_the_part_of_a_credential_before_the_cut)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    AUTO_BUF text = { 0 };
    for (int i = 0; i < LOG_VALUE_BYTES_MAX - 10; i++)
        buf_addc(&text, ' ');
    buf_addz(&text, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY and so on");
    log_info(f.log, "x", LOG_STR("v", buf_str(&text)));
    EXPECT_FALSE(memmem(written(&f).p, written(&f).len, "wJal", 4));
}

/* --- writing --- */

TEST(log_writes_each_line_with_one_call)
{
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    AUTO(log) log = log_new((struct log_options){ .clock = clock_real(), .fd = ends[0] });
    log_info(log, "one", LOG_STR("a", STR("b")));
    log_info(log, "two", LOG_STR("a", STR("b")));

    char packet[512];
    ssize_t n = recv(ends[1], packet, sizeof packet, 0);
    EXPECT_TRUE(n > 0 && packet[0] == '{' && packet[n - 1] == '\n');
    EXPECT_HAS(((struct str){ packet, (size_t)n }), "\"msg\":\"one\"");
    n = recv(ends[1], packet, sizeof packet, 0);
    EXPECT_TRUE(n > 0 && packet[0] == '{' && packet[n - 1] == '\n');
    EXPECT_HAS(((struct str){ packet, (size_t)n }), "\"msg\":\"two\"");
    close(ends[0]);
    close(ends[1]);
}

TEST(log_counts_lines_that_a_full_pipe_refuses_and_goes_on_when_it_is_emptied)
{
    enum { BYTES_MAX = 1 << 20 };
    int ends[2];
    EXPECT_EQ(pipe2(ends, O_NONBLOCK), 0);
    AUTO(log) log = log_new((struct log_options){ .clock = clock_real(), .fd = ends[1] });
    AUTO_FREE char *bytes = kv_malloc(BYTES_MAX);
    AUTO_BUF value = { 0 };
    while (value.len < 3000)
        buf_addz(&value, "all work and no play ");
    for (int i = 0; i < 100; i++) { /* lines too long to be written whole or not at all */
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        log_info(log, "x", LOG_Z("i", name), LOG_STR("a", buf_str(&value)),
                 LOG_STR("b", buf_str(&value)));
    }
    uint64_t lost = log_lost_count(log);
    EXPECT_TRUE(lost > 0);
    ssize_t n = read(ends[0], bytes, BYTES_MAX);
    EXPECT_TRUE(n > 0 && bytes[n - 1] != '\n'); /* the last line is cut off */

    log_info(log, "after");
    EXPECT_EQ(log_lost_count(log), lost);
    n = read(ends[0], bytes, BYTES_MAX);
    EXPECT_TRUE(n > 0);
    EXPECT_HAS(((struct str){ bytes, 3 }), "\n{\"");
    EXPECT_HAS(((struct str){ bytes, (size_t)n }), "\"msg\":\"after\"}\n");
    log_info(log, "and on");
    n = read(ends[0], bytes, BYTES_MAX);
    EXPECT_TRUE(n > 0 && bytes[0] == '{');
    close(ends[0]);
    close(ends[1]);
}

TEST(log_outlives_the_reader_of_its_pipe_where_sigpipe_is_ignored)
{
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    signal(SIGPIPE, SIG_IGN);
    AUTO(log) log = log_new((struct log_options){ .clock = clock_real(), .fd = ends[1] });
    close(ends[0]);
    log_info(log, "to nobody");
    EXPECT_EQ(log_lost_count(log), 1);
    close(ends[1]);
    signal(SIGPIPE, SIG_DFL);
}

/* --- threads --- */

#define THREADS 4
#define LINES_PER_THREAD 2000

static void *chatter(void *arg)
{
    struct log *log = arg;
    for (int i = 0; i < LINES_PER_THREAD; i++) {
        log_info(log, "shared");
        if (i % 100 == 0)
            log_set_level(log, LOG_LEVEL_INFO);
    }
    return NULL;
}

TEST(log_loses_no_line_between_threads)
{
    AUTO_FIXTURE f = fixture_new(LOG_JSON);
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, chatter, f.log);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    log_flush(f.log);
    EXPECT_EQ(line_count(written(&f)), 2);
    EXPECT_HAS(written(&f), "\"repeated\":7999}");
}
