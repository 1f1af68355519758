#include "codec/mime.h"

#include "support/test.h"

static struct mime read_ok(struct arena *arena, const char *text)
{
    struct mime m = { 0 };
    struct err err = { 0 };
    EXPECT_OK(mime_read(arena, str_of(text), &m, NULL, &err), err);
    return m;
}

static void expect_refused(const char *text, uint32_t line, const char *words)
{
    AUTO_ARENA arena = { 0 };
    struct mime m;
    struct text_pos at = { 0, 0 };
    struct err err = { 0 };
    EXPECT_ERR(mime_read(&arena, str_of(text), &m, &at, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), words);
    EXPECT_EQ(at.line, line);
}

#define TOP "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n"

/* --- recognising --- */

TEST(an_archive_is_known_by_its_first_header_after_blanks)
{
    EXPECT_TRUE(mime_is_multipart(STR("MIME-Version: 1.0\n")));
    EXPECT_TRUE(mime_is_multipart(STR("\n \n\tContent-Type: multipart/mixed; boundary=x\n")));
    EXPECT_TRUE(mime_is_multipart(STR("content-type: multipart/mixed\n")));
    EXPECT_FALSE(mime_is_multipart(STR("#!/bin/bash\nMIME-Version: 1.0\n")));
    EXPECT_FALSE(mime_is_multipart(STR("MIME-Version")));
    EXPECT_FALSE(mime_is_multipart(STR("")));
}

/* --- reading --- */

TEST(parts_keep_their_headers_and_the_bytes_of_their_bodies)
{
    AUTO_ARENA arena = { 0 };
    struct mime m = read_ok(&arena, TOP "--B\n"
                                        "X-Merge-Type: list(append)\n"
                                        "Content-Type: text/cloud-config; charset=utf-8\n"
                                        "\n"
                                        "  a: 1\n"
                                        "\n"
                                        "--B\n"
                                        "Content-Type: text/x-shellscript\n"
                                        "\n"
                                        "#!/bin/sh\n"
                                        "echo --B\n"
                                        "--Bx\n"
                                        " --B\n"
                                        "--B--\n");
    EXPECT_EQ(m.count, 2);
    EXPECT_EQ(m.parts[0].header_count, 2);
    EXPECT_STR(m.parts[0].headers[0].name, "X-Merge-Type");
    EXPECT_STR(mime_header(&m.parts[0], "x-merge-type"), "list(append)");
    EXPECT_STR(m.parts[0].body, "  a: 1\n"); /* the newline before the delimiter is not in it */
    EXPECT_EQ(m.parts[0].line, 8);
    EXPECT_STR(m.parts[1].body, "#!/bin/sh\necho --B\n--Bx\n --B");
    EXPECT_STR(mime_content_type(&arena, &m.parts[1]), "text/x-shellscript");
    EXPECT_EQ(m.parts[1].line, 13);
}

TEST(preamble_and_epilogue_are_ignored)
{
    AUTO_ARENA arena = { 0 };
    struct mime m = read_ok(&arena, TOP "This is a message in MIME format.\n"
                                        "--B\n\none\n--B--\n"
                                        "the epilogue\n--B\n\nnot a part\n--B--\n");
    EXPECT_EQ(m.count, 1);
    EXPECT_STR(m.parts[0].body, "one");
    EXPECT_EQ(m.parts[0].header_count, 0);
    EXPECT_STR(mime_content_type(&arena, &m.parts[0]), "text/plain");
}

TEST(nested_archives_are_flattened_in_order)
{
    AUTO_ARENA arena = { 0 };
    struct mime m =
        read_ok(&arena, TOP "--B\n\none\n"
                            "--B\n"
                            "Content-Type: multipart/mixed; boundary=inner\n"
                            "X-Dropped: yes\n\n"
                            "--inner\nX: 2\n\ntwo\n"
                            "--inner\n"
                            "Content-Type: Multipart/Alternative; boundary=\"in most\"\n\n"
                            "--in most\n\nthree\n"
                            "--in most--\n"
                            "--inner--\n"
                            "--B\n\nfour\n"
                            "--B--\n");
    EXPECT_EQ(m.count, 4);
    EXPECT_STR(m.parts[0].body, "one");
    EXPECT_STR(m.parts[1].body, "two");
    EXPECT_STR(mime_header(&m.parts[1], "x"), "2");
    EXPECT_STR(m.parts[2].body, "three");
    EXPECT_STR(m.parts[3].body, "four");
}

TEST(carriage_returns_are_dropped_and_lines_still_count)
{
    AUTO_ARENA arena = { 0 };
    struct mime m = read_ok(&arena, "MIME-Version: 1.0\r\n"
                                    "Content-Type: multipart/mixed;\r\n"
                                    "\tboundary=\"B\"\r\n"
                                    "\r\n"
                                    "--B\r\n"
                                    "Content-Type: text/x-shellscript\r\n"
                                    "\r\n"
                                    "#!/bin/sh\r\n"
                                    "true\r\n"
                                    "--B--\r\n");
    EXPECT_EQ(m.count, 1);
    EXPECT_STR(m.parts[0].body, "#!/bin/sh\ntrue");
    EXPECT_EQ(m.parts[0].line, 8);
}

TEST(folded_headers_are_joined_by_single_blanks)
{
    AUTO_ARENA arena = { 0 };
    struct mime m = read_ok(&arena, TOP "--B\n"
                                        "Content-Type: text/plain;\n"
                                        "   charset=\"us-ascii\";\n"
                                        "\tname=x\n"
                                        "Subject:\n"
                                        " later\n"
                                        "\n"
                                        "body\n--B--\n");
    EXPECT_STR(mime_header(&m.parts[0], "CONTENT-TYPE"),
               "text/plain; charset=\"us-ascii\"; name=x");
    EXPECT_STR(mime_header(&m.parts[0], "subject"), "later");
    EXPECT_FALSE(mime_header(&m.parts[0], "body").p);
}

TEST(an_archive_may_end_without_saying_so)
{
    AUTO_ARENA arena = { 0 };
    EXPECT_EQ(read_ok(&arena, TOP "--B\n\none\n--B").count, 1);
    EXPECT_EQ(read_ok(&arena, TOP "--B\n\none\n--B\n").count, 1);
    EXPECT_EQ(read_ok(&arena, TOP "--B\n\none\n--B\n\n  \n").count, 1);
    EXPECT_EQ(read_ok(&arena, TOP "--B--").count, 0);
    struct mime m = read_ok(&arena, TOP "--B\n\none\n--B\nX: y\n\nto the end\n");
    EXPECT_EQ(m.count, 2);
    EXPECT_STR(m.parts[1].body, "to the end\n");
}

TEST(parts_may_be_empty)
{
    AUTO_ARENA arena = { 0 };
    struct mime m = read_ok(&arena, TOP "--B\n--B\n\n--B\nX: y\n--B \t\n\n\n--B-- \n");
    EXPECT_EQ(m.count, 4);
    EXPECT_STR(m.parts[0].body, "");
    EXPECT_STR(m.parts[2].body, "");
    EXPECT_EQ(m.parts[2].header_count, 1);
    EXPECT_STR(m.parts[3].body, "");
}

TEST(leading_blank_lines_are_skipped_and_counted)
{
    AUTO_ARENA arena = { 0 };
    struct mime m = read_ok(&arena, "\n \r\n" TOP "--B\n\none\n--B--\n");
    EXPECT_EQ(m.count, 1);
    EXPECT_EQ(m.parts[0].line, 8);
}

/* --- refusing --- */

TEST(broken_archives_are_refused_with_their_line)
{
    expect_refused("MIME-Version: 1.0\n\n--B\n", 1, "no Content-Type");
    expect_refused("\nContent-Type: text/plain\n\nx\n", 2, "expected multipart/mixed");
    expect_refused("Content-Type: multipart/mixed\n\n--B\n", 1, "has no boundary");
    expect_refused("Content-Type: multipart/mixed; boundary=\"\"\n\n--B\n", 1, "has no boundary");
    expect_refused(TOP "-- B\n\nx\n", 1, "the boundary \"B\" never occurs");
    expect_refused("MIME-Version: 1.0\nnot a header\n\n", 2, "\"not a header\" is not a header");
    expect_refused(" folded: nothing\n", 1, "is not a header");
    expect_refused(TOP "--B\nContent-Type: text/x-shellscript\n#!/bin/bash\necho\n--B--\n", 6,
                   "a blank line separates headers and body");
    expect_refused(TOP "--B\n\nx\n--B\nContent-Type: multipart/mixed; boundary=in\n\n--B--\n", 8,
                   "the boundary \"in\" never occurs");
}

TEST(limits_are_errors)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, TOP);
    for (int i = 0; i <= MIME_PARTS_MAX; i++)
        buf_addz(&text, "--B\n\nx\n");
    expect_refused(text.p, 4 + 3 * MIME_PARTS_MAX + 2, "more than 1000 parts");

    buf_clear(&text);
    buf_addz(&text, TOP "--B\n");
    for (int i = 0; i <= MIME_HEADERS_MAX; i++)
        buf_addz(&text, "X: y\n");
    expect_refused(text.p, 5 + MIME_HEADERS_MAX, "more than 100 headers");

    buf_clear(&text);
    for (int i = 0; i <= MIME_DEPTH_MAX; i++)
        buf_addf(&text, "Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n", i, i);
    expect_refused(text.p, 3 * MIME_DEPTH_MAX + 1, "nested more than 8 deep");

    buf_clear(&text);
    buf_addz(&text, TOP "--B\n\n");
    while (text.len <= MIME_BYTES_MAX)
        buf_addz(&text, "0123456789abcdef");
    expect_refused(text.p, 1, "longer than 1048576 bytes");
}

TEST(a_header_of_a_hundred_thousand_lines_is_read_in_no_time)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    buf_addz(&text, TOP "--B\nX: y\n");
    for (int i = 0; i < 100000; i++)
        buf_addz(&text, " folded\n");
    struct mime m = read_ok(&arena, text.p);
    EXPECT_EQ(m.parts[0].headers[0].value.len, 1 + 7 * 100000);
    EXPECT_TRUE(arena.used_bytes < 4 * text.len);
}

/* --- parameters and bodies --- */

TEST(parameters_are_found_quoted_or_not)
{
    static const struct {
        const char *value, *name, *want;
    } cases[] = {
        { "multipart/mixed; boundary=B", "boundary", "B" },
        { "multipart/mixed;BOUNDARY=\"//\"", "boundary", "//" },
        { "multipart/mixed; charset=x; boundary = \"a b\" ; y=z", "boundary", "a b" },
        { "attachment; filename=\"a\\\"b;c.sh\"; size=3", "filename", "a\"b;c.sh" },
        { "attachment; filename=\"a;size=9\"; size=3", "size", "3" },
        { "text/plain; flag; name=n", "name", "n" },
        { "text/plain; name=\"open", "name", "open" },
        { "text/plain; name=", "name", "" },
        { "text/plain; xname=1", "name", NULL },
        { "name=n", "name", NULL },
        { "text/plain;;;", "name", NULL },
        { "", "name", NULL },
    };
    AUTO_ARENA arena = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct str got = mime_param(&arena, str_of(cases[i].value), cases[i].name);
        EXPECT_EQ(got.p != NULL, cases[i].want != NULL);
        if (cases[i].want)
            EXPECT_STR(got, cases[i].want);
    }
}

static struct mime_part encoded(const char *encoding, const char *body)
{
    static struct mime_header header;
    header = (struct mime_header){ STR("content-transfer-encoding"), str_of(encoding) };
    return (struct mime_part){ &header, 1, str_of(body), 1 };
}

TEST(transfer_encodings_are_undone)
{
    static const struct {
        const char *encoding, *body, *want; /* NULL: refused */
    } cases[] = {
        { "Base64", "aGVsbG8g\nd29y\n bGQ=\n", "hello world" },
        { "base64", "", "" },
        { "base64", "aGVs*", NULL },
        { "quoted-printable", "a=3Db=\nc\nd \t\ne=C3=A9", "a=bc\nd\neé" },
        { "Quoted-Printable", "x=3d\n", "x=\n" },
        { "quoted-printable", "a=zz", NULL },
        { "quoted-printable", "a=3", NULL },
        { "7BIT", "a=3D", "a=3D" },
        { "binary", "x", "x" },
        { "x-uuencode", "x", NULL },
    };
    AUTO_ARENA arena = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct mime_part part = encoded(cases[i].encoding, cases[i].body);
        struct err err = { 0 };
        struct str got;
        if (!cases[i].want) {
            EXPECT_ERR(mime_body(&arena, &part, &got, &err), err, ERR_INVALID);
            continue;
        }
        EXPECT_OK(mime_body(&arena, &part, &got, &err), err);
        EXPECT_STR(got, cases[i].want);
    }
}

/* --- writing --- */

struct places {
    size_t headers[4], body[4], end[4];
};

static void note(void *ctx, uint32_t i, size_t headers, size_t body, size_t end)
{
    struct places *p = ctx;
    p->headers[i] = headers;
    p->body[i] = body;
    p->end[i] = end;
}

TEST(an_archive_is_written_byte_for_byte)
{
    static const struct mime_header one[] = {
        { STR("X-Last"), STR("1") },
        { STR("content-type"), STR("text/cloud-config") },
        { STR("Content-ID"), STR("7") },
    };
    static const struct mime_part parts[] = {
        { one, 3, STR("a: 1"), 0 },
        { one + 1, 1, STR("b\r\nc\r\n"), 0 },
    };
    AUTO_BUF out = { 0 };
    struct places places;
    mime_write(parts, 2, &out, note, &places);
    EXPECT_STR(buf_str(&out), "MIME-Version: 1.0\n"
                              "Content-Type: multipart/mixed; boundary=\"//\"\n"
                              "\n"
                              "--//\n"
                              "Content-ID: 7\n"
                              "content-type: text/cloud-config\n"
                              "X-Last: 1\n"
                              "\n"
                              "a: 1\n"
                              "--//\n"
                              "content-type: text/cloud-config\n"
                              "\n"
                              "b\n"
                              "c\n"
                              "\n"
                              "--//--\n");
    EXPECT_STR(str_sub(buf_str(&out), places.headers[0], 10), "Content-ID");
    EXPECT_STR(str_sub(buf_str(&out), places.body[1], places.end[1] - places.body[1]), "b\nc\n");
}

TEST(a_boundary_that_starts_a_line_of_a_body_is_not_used)
{
    static const struct {
        const char *body, *boundary;
    } cases[] = {
        { "x\n --//\n", "\"//\"" },   { "--//\n", "\"//=\"" },
        { "x\n--//--", "\"//=\"" },   { "--//=\n--//===x\n", "\"//====\"" },
        { "-\r-/\r/\rx", "\"//=\"" }, { "--/\n/", "\"//\"" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_ARENA arena = { 0 };
        AUTO_BUF out = { 0 };
        struct mime_part part = { NULL, 0, str_of(cases[i].body), 0 };
        mime_write(&part, 1, &out, NULL, NULL);
        EXPECT_HAS(buf_str(&out), cases[i].boundary);
        EXPECT_EQ(read_ok(&arena, out.p).count, 1);
    }
}

TEST(what_is_written_reads_back_equal)
{
    AUTO_ARENA arena = { 0 };
    struct mime m = read_ok(&arena, TOP "--B\nb: 1\nA: 2\nb: 3\n\n--//\n\n\n--B\n\n\n\n--B\n--B--");
    AUTO_BUF out = { 0 };
    mime_write(m.parts, m.count, &out, NULL, NULL);
    struct mime again = read_ok(&arena, out.p);
    EXPECT_EQ(again.count, 3);
    EXPECT_STR(again.parts[0].body, "--//\n\n");
    EXPECT_STR(again.parts[1].body, "\n");
    EXPECT_STR(again.parts[2].body, "");
    EXPECT_STR(again.parts[0].headers[0].name, "A");
    EXPECT_STR(mime_header(&again.parts[0], "B"), "1"); /* the first of two stays the first */
    AUTO_BUF twice = { 0 };
    mime_write(again.parts, again.count, &twice, NULL, NULL);
    EXPECT_TRUE(str_eq(buf_str(&out), buf_str(&twice)));
}
