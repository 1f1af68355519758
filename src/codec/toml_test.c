#include "support/test.h"

#include "codec/toml_testing.h"

#include <math.h>
#include <stdio.h>
#include <time.h>

static struct toml *read_ok(struct arena *arena, const char *text)
{
    struct toml *root = NULL;
    struct err err = { 0 };
    EXPECT_OK(toml_read(arena, str_of(text), &root, &err), err);
    return root;
}

static const struct toml *value_of(struct arena *arena, const char *text)
{
    struct toml *v = NULL;
    struct err err = { 0 };
    EXPECT_OK(toml_read_value(arena, str_of(text), &v, &err), err);
    return v;
}

struct refusal {
    const char *text, *place, *words;
};

static void expect_refused(struct str text, const char *place, const char *words)
{
    AUTO_ARENA arena = { 0 };
    struct toml *root;
    struct err err = { 0 };
    struct text_pos at = { 0, 0 };
    char where[32];
    int rc = toml_read_at(&arena, text, &root, &at, &err);
    snprintf(where, sizeof where, "%u:%u", at.line, at.col);
    if (rc == 0 || strcmp(where, place) != 0)
        print_error("%.*s\n", STR_ARG(text));
    EXPECT_ERR(rc, err, ERR_INVALID);
    EXPECT_Z(where, place);
    EXPECT_HAS(str_of(err.text), words);
}

#define EXPECT_REFUSED(cases)                                                                      \
    for (size_t i_ = 0; i_ < KV_COUNT_OF(cases); i_++)                                             \
    expect_refused(str_of((cases)[i_].text), (cases)[i_].place, (cases)[i_].words)

/* --- values --- */

TEST(integers_are_read_in_four_bases_with_underscores)
{
    static const struct {
        const char *text;
        int64_t want;
    } cases[] = {
        { "0", 0 },
        { "+0", 0 },
        { "-0", 0 },
        { "+99", 99 },
        { "-17", -17 },
        { "1_000", 1000 },
        { "1_2_3", 123 },
        { "9223372036854775807", INT64_MAX },
        { "-9223372036854775808", INT64_MIN },
        { "0xDEADBEEF", 0xdeadbeef },
        { "0xdead_beef", 0xdeadbeef },
        { "0x7fffffffffffffff", INT64_MAX },
        { "0x00", 0 },
        { "0o0755", 0755 },
        { "0b1101_0110", 0xd6 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_ARENA arena = { 0 };
        const struct toml *v = value_of(&arena, cases[i].text);
        EXPECT_EQ(toml_type(v), TOML_INTEGER);
        EXPECT_EQ(toml_int(v), cases[i].want);
    }
}

TEST(floats_are_read_with_fractions_exponents_and_the_special_ones)
{
    static const struct {
        const char *text;
        double want;
    } cases[] = {
        { "+1.0", 1 },
        { "3.1415", 3.1415 },
        { "-0.01", -0.01 },
        { "5e+22", 5e22 },
        { "1e06", 1e6 },
        { "-2E-2", -2e-2 },
        { "6.626e-34", 6.626e-34 },
        { "224_617.445_991_228", 224617.445991228 },
        { "0e0", 0 },
        { "123e-5", 123e-5 }, /* no date, though a dash is in the fifth place */
        { "inf", HUGE_VAL },
        { "+inf", HUGE_VAL },
        { "-inf", -HUGE_VAL },
        { "1e-400", 0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_ARENA arena = { 0 };
        const struct toml *v = value_of(&arena, cases[i].text);
        EXPECT_EQ(toml_type(v), TOML_FLOAT);
        EXPECT_TRUE(toml_float(v) == cases[i].want);
    }
    AUTO_ARENA arena = { 0 };
    EXPECT_TRUE(isnan(toml_float(value_of(&arena, "nan"))));
    EXPECT_TRUE(isnan(toml_float(value_of(&arena, "-nan"))));
    EXPECT_TRUE(signbit(toml_float(value_of(&arena, "-0.0"))));
}

TEST(dates_and_times_are_of_four_kinds_and_normalised)
{
    static const struct {
        const char *text, *want;
        enum toml_type type;
    } cases[] = {
        { "1979-05-27T07:32:00Z", "1979-05-27T07:32:00Z", TOML_DATETIME },
        { "1979-05-27 07:32:00z", "1979-05-27T07:32:00Z", TOML_DATETIME },
        { "1979-05-27t00:32:00.999-07:00", "1979-05-27T00:32:00.999-07:00", TOML_DATETIME },
        { "2016-12-31T23:59:60Z", "2016-12-31T23:59:60Z", TOML_DATETIME },
        { "1979-05-27T07:32:00", "1979-05-27T07:32:00", TOML_DATETIME_LOCAL },
        { "1979-05-27 07:32:00.5", "1979-05-27T07:32:00.5", TOML_DATETIME_LOCAL },
        { "2000-02-29", "2000-02-29", TOML_DATE_LOCAL },
        { "0000-02-29", "0000-02-29", TOML_DATE_LOCAL },
        { "07:32:00", "07:32:00", TOML_TIME_LOCAL },
        { "23:59:59.999999999", "23:59:59.999999999", TOML_TIME_LOCAL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_ARENA arena = { 0 };
        const struct toml *v = value_of(&arena, cases[i].text);
        EXPECT_EQ(toml_type(v), cases[i].type);
        EXPECT_STR(toml_str(v), cases[i].want);
    }
}

/* Every day that a date can name, against the calendar: 31 days in each month of four kinds of
 * years. */
TEST(a_day_that_its_month_does_not_have_is_refused)
{
    static const int years[] = { 1900, 2000, 2023, 2024 };
    static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
    for (size_t y = 0; y < KV_COUNT_OF(years); y++) {
        bool leap = years[y] == 2000 || years[y] == 2024;
        for (int month = 0; month <= 13; month++) {
            for (int day = 0; day <= 32; day++) {
                AUTO_ARENA arena = { 0 };
                char text[16];
                struct toml *v;
                int have = month < 1 || month > 12 ? 0 : days[month - 1] + (month == 2 && leap);
                snprintf(text, sizeof text, "%04d-%02d-%02d", years[y], month, day);
                int rc = toml_read_value(&arena, str_of(text), &v, NULL);
                EXPECT_EQ(rc, day >= 1 && day <= have ? 0 : -1);
            }
        }
    }
}

TEST(words_that_are_no_values_are_refused)
{
    static const char *const words[] = {
        "True",
        "tru",
        "yes",
        "01",
        "-01",
        "+-1",
        "1_",
        "_1",
        "1__0",
        "1.",
        ".5",
        "1.e5",
        "1._5",
        "1e",
        "1e+",
        "1e1.5",
        "1_e5",
        "1e_5",
        "0x",
        "0X1",
        "0xg",
        "+0x1",
        "-0b1",
        "0b2",
        "0o8",
        "0x_1",
        "0b1_",
        "Inf",
        "+nane",
        "infinity",
        "1e400",
        "--1",
        "03.5",
        "1979-5-27",
        "1979-05",
        "1979-05-27T",
        "07:32",
        "7:32:00",
        "24:00:00",
        "23:60:00",
        "23:59:61",
        "07:32:00.",
        "07:32:00Z",
        "1979-05-27Z",
        "1979-05-27T07:32:00+24:00",
        "1979-05-27T07:32:00+1:00",
        "1979-05-27T07:32:00+01",
        "1979-05-27T07:32:00ZZ",
        "1979-05-27x07:32:00",
        "9223372036854775808",
        "-9223372036854775809",
        "0x8000000000000000",
        "1 2",
        "'a' 'b'",
    };
    for (size_t i = 0; i < KV_COUNT_OF(words); i++) {
        AUTO_ARENA arena = { 0 };
        struct toml *v;
        struct err err = { 0 };
        int rc = toml_read_value(&arena, str_of(words[i]), &v, &err);
        if (rc == 0)
            print_error("%s\n", words[i]);
        EXPECT_ERR(rc, err, ERR_INVALID);
    }
}

TEST(strings_of_all_four_kinds_are_decoded)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "\"\"", "" },
        { "''", "" },
        { "\"a\\tb\\\"c\\\\\"", "a\tb\"c\\" },
        { "\"\\b\\n\\f\\r\"", "\b\n\f\r" },
        { "\"\\u00e9\\U0001F600\"", "\xc3\xa9\xf0\x9f\x98\x80" },
        { "\"\\uD7FF\\uE000\\U0010FFFF\"", "\xed\x9f\xbf\xee\x80\x80\xf4\x8f\xbf\xbf" },
        { "'C:\\temp\\u0041'", "C:\\temp\\u0041" },
        { "\"\"\"\none\ntwo\"\"\"", "one\ntwo" },
        { "\"\"\"\r\none\r\ntwo\"\"\"", "one\r\ntwo" },
        { "\"\"\"a \\\n\n   b\"\"\"", "a b" },
        { "\"\"\"a \\  \r\n \t\r\n b\"\"\"", "a b" },
        { "\"\"\"a\\\\\nb\"\"\"", "a\\\nb" },
        { "\"\"\"\"x\"\" \"\"\"\"\"", "\"x\"\" \"\"" },
        { "\"\"\"\"\"\"", "" },
        { "'''\nraw \\n ''it'''''", "raw \\n ''it''" },
        { "'''\n\nx'''", "\nx" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_ARENA arena = { 0 };
        const struct toml *v = value_of(&arena, cases[i].text);
        EXPECT_EQ(toml_type(v), TOML_STRING);
        EXPECT_STR(toml_str(v), cases[i].want);
    }
}

TEST(a_string_can_hold_the_null_character)
{
    AUTO_ARENA arena = { 0 };
    struct str s = toml_str(value_of(&arena, "\"a\\u0000b\""));
    EXPECT_EQ(s.len, 3);
    EXPECT_EQ(s.p[1], 0);
}

TEST(broken_strings_are_refused_where_they_break)
{
    static const struct refusal cases[] = {
        { "a = \"x\nb = 1", "1:5", "no closing quotes on its line" },
        { "a = 'x", "1:5", "no closing quotes on its line" },
        { "a = \"\"\"x\"\"", "1:5", "no closing quotes" },
        { "\n a = '''x", "2:6", "no closing quotes" },
        { "a = \"\\e\"", "1:6", "not by \"e\"" },
        { "a = \"\\x41\"", "1:6", "not by \"x\"" },
        { "a = \"x\\\n\"", "1:7", "not by the end of the line" },
        { "a = \"\"\"\nx\\ y\"\"\"", "2:2", "not by \" \"" },
        { "a = \"\\u12\"", "1:6", "4 hexadecimal digits" },
        { "a = \"\\U0000012\"", "1:6", "8 hexadecimal digits" },
        { "a = \"\\uD800\"", "1:6", "U+D800 is no character" },
        { "a = \"\\U00110000\"", "1:6", "U+110000 is no character" },
        { "a = \"\"\"x\"\"\"\"\"\"", "1:14", "expected the end of the line" },
        { "\"\"\"a\"\"\" = 1", "1:3", "expected '=' after the key" },
    };
    EXPECT_REFUSED(cases);
}

/* All 33 of them, in each place: a comment, a string, a key, between lines. */
TEST(control_characters_are_refused_everywhere)
{
    static const char *const around[][2] = {
        { "# ", "\n" },      { "a = 'x", "'\n" }, { "a = '''x", "'''\n" },
        { "'k", "' = 1\n" }, { "", "\n" },
    };
    for (int c = 0; c < 0x80; c++) {
        if ((c >= ' ' && c != 0x7f) || c == '\t' || c == '\n')
            continue;
        for (size_t i = 0; i < KV_COUNT_OF(around); i++) {
            AUTO_BUF text = { 0 };
            char place[32];
            buf_addz(&text, around[i][0]);
            buf_addc(&text, (char)c);
            buf_addz(&text, c == '\r' ? "x" : "");
            buf_addz(&text, around[i][1]);
            snprintf(place, sizeof place, "1:%zu", strlen(around[i][0]) + 1);
            expect_refused(buf_str(&text), place,
                           c == '\r' ? "carriage return" : "control character");
        }
    }
}

TEST(text_that_is_not_utf8_is_refused_at_its_first_bad_byte)
{
    static const struct refusal cases[] = {
        { "a = 'x'\nb = '\xc3'", "2:6", "not UTF-8" },
        { "# \xff", "1:3", "not UTF-8" },
        { "a = '\xed\xa0\x80'", "1:6", "not UTF-8" }, /* a surrogate */
        { "a = '\xc0\xaf'", "1:6", "not UTF-8" },     /* too long a form */
    };
    EXPECT_REFUSED(cases);
}

TEST(a_byte_order_mark_is_accepted_at_the_start_only)
{
    AUTO_ARENA arena = { 0 };
    struct toml *root = read_ok(&arena, "\xef\xbb\xbf"
                                        "a = 1");
    EXPECT_EQ(toml_pos(toml_get(root, STR("a"))).col, 5);
    expect_refused(STR("a = 1\n\xef\xbb\xbf"
                       "b = 1"),
                   "2:1", "expected a key");
}

/* --- keys, arrays, inline tables --- */

TEST(keys_are_bare_quoted_or_dotted)
{
    AUTO_ARENA arena = { 0 };
    struct toml *root = read_ok(&arena, "bare_key-1 = 1\n1234 = 2\n\"a.b\" = 3\n'' = 4\n"
                                        "x . \"y.z\"\t.w = 5\n3.14 = 6\n\"\\u0041\" = 7\n");
    static const char *const xyzw[] = { "x", "y.z", "w" }, *const pi[] = { "3", "14" };
    EXPECT_EQ(toml_count(root), 7);
    EXPECT_EQ(toml_int(toml_get(root, STR("bare_key-1"))), 1);
    EXPECT_EQ(toml_int(toml_get(root, STR("1234"))), 2);
    EXPECT_EQ(toml_int(toml_get(root, STR("a.b"))), 3);
    EXPECT_EQ(toml_int(toml_get(root, STR(""))), 4);
    EXPECT_EQ(toml_int(toml_path(root, xyzw, 3)), 5);
    EXPECT_EQ(toml_int(toml_path(root, pi, 2)), 6);
    EXPECT_EQ(toml_int(toml_get(root, STR("A"))), 7);
    EXPECT_TRUE(toml_path(root, xyzw, 1) != NULL);
    EXPECT_TRUE(toml_get(toml_get(root, STR("1234")), STR("a")) == NULL);
    EXPECT_TRUE(toml_get(NULL, STR("a")) == NULL);
}

TEST(arrays_hold_mixed_types_lines_comments_and_a_last_comma)
{
    AUTO_ARENA arena = { 0 };
    const struct toml *v =
        value_of(&arena, "[ # first\n 1, 'two', [3.0],\n\n {four = 4} # c\n , ]");
    EXPECT_EQ(toml_count(v), 4);
    EXPECT_EQ(toml_int(toml_item(v, 0)), 1);
    EXPECT_STR(toml_str(toml_item(v, 1)), "two");
    EXPECT_TRUE(toml_float(toml_item(toml_item(v, 2), 0)) == 3.0);
    EXPECT_EQ(toml_int(toml_get(toml_item(v, 3), STR("four"))), 4);
    EXPECT_TRUE(toml_item(v, 4) == NULL);
    EXPECT_EQ(toml_count(value_of(&arena, "[]")), 0);
}

TEST(syntax_errors_say_where_and_what_was_expected)
{
    static const struct refusal cases[] = {
        { "a", "1:2", "expected '=' after the key, found the end of the text" },
        { "a b = 1", "1:3", "expected '=' after the key, found \"b\"" },
        { "a =\nb = 1", "1:4", "expected a value, found the end of the line" },
        { "a = # no", "1:5", "expected a value, found \"#\"" },
        { "= 1", "1:1", "expected a key, found \"=\"" },
        { "a. = 1", "1:4", "expected a key, found \"=\"" },
        { ".a = 1", "1:1", "expected a key" },
        { "a = 1 b = 2", "1:7", "expected the end of the line, found \"b\"" },
        { "a = 1\r\nb = x\r\n", "2:5", "\"x\" is no value; a text stands in quotes" },
        { "\xc3\xa9 = 1", "1:1", "expected a key, found \"\xc3\xa9\"" },
        { "a = [1 2]", "1:8", "expected ',' or ']' in the array" },
        { "a = [1,,2]", "1:8", "expected a value" },
        { "a = [,]", "1:6", "expected a value" },
        { "a = [1,\n 2", "2:3", "expected ',' or ']' in the array, found the end of the text" },
        { "a = [", "1:5", "the array has no closing bracket" },
        { "a = {b = 1,}", "1:12", "an inline table does not end with a comma" },
        { "a = {b = 1\n}", "1:11",
          "expected ',' or '}' in the inline table, found the end of the line" },
        { "a = {b = 1, # no\n c = 2}", "1:13", "expected a key" },
        { "a = {,}", "1:6", "expected a key" },
        { "a = {b}", "1:7", "expected '='" },
        { "[a", "1:3", "expected '.' or ']' after the key" },
        { "[]", "1:2", "expected a key" },
        { "[a.]", "1:4", "expected a key" },
        { "[[a]", "1:4", "expected '.' or ']]' after the key" },
        { "[[a] ]", "1:4", "expected '.' or ']]' after the key" },
        { "[ [a]]", "1:3", "expected a key" },
        { "[a] b = 1", "1:5", "expected the end of the line" },
        { "[a]]", "1:4", "expected the end of the line" },
    };
    EXPECT_REFUSED(cases);
}

/* --- tables --- */

TEST(tables_may_be_defined_in_any_order_and_below_one_another)
{
    static const struct {
        const char *text, *same;
    } cases[] = {
        { "[a.b]\nx=1\n[a]\ny=2\n", "a = {b = {x = 1}, y = 2}" },
        { "[a]\n[a.b.c]\n[a.b]\nx=1", "a = {b = {c = {}, x = 1}}" },
        { "[a]\nb.c=1\n[a.b.d]\nx=1", "a = {b = {c = 1, d = {x = 1}}}" },
        { "a.b.c=1\na.b.d=2\na.e=3", "a = {b = {c = 1, d = 2}, e = 3}" },
        { "a.b=1\n[a.c]\nx=1", "a = {b = 1, c = {x = 1}}" },
        { "[a.b.c]\nx=1\n[a]\nb.d=2", "a = {b = {c = {x = 1}, d = 2}}" },
        { "a={b.c=1,b.d=2}", "a = {b = {c = 1, d = 2}}" },
        { "[[a]]\nx=1\n[[a]]\n[a.b]\nx=2\n[[a.c]]\n[[a.c]]\ny=1",
          "a = [{x = 1}, {b = {x = 2}, c = [{}, {y = 1}]}]" },
        { "[[a.b]]\n[a]\nx=1\n[[a.b]]", "a = {b = [{}, {}], x = 1}" },
        { "[ a . 'b c' ]\n[[ \"d\" ]]", "a = {'b c' = {}}\nd = [{}]" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_ARENA arena = { 0 };
        if (!toml_equal(read_ok(&arena, cases[i].text), read_ok(&arena, cases[i].same)))
            print_error("%s\n", cases[i].text);
        EXPECT_TRUE(toml_equal(read_ok(&arena, cases[i].text), read_ok(&arena, cases[i].same)));
    }
}

TEST(what_is_defined_is_not_defined_again)
{
    static const struct refusal cases[] = {
        { "a = 1\n\n'a' = 2", "3:1", "key \"a\" is already defined on line 1" },
        { "a.b = 1\na.b = 2", "2:3", "key \"a.b\" is already defined on line 1" },
        { "a.b = 1\na = 2", "2:1", "key \"a\" is already defined on line 1" },
        { "[x]\ny.'a b' = 1\ny.\"a b\" = 2", "3:3",
          "key \"x.y.'a b'\" is already defined on line 2" },
        { "[a]\n[a]", "2:2", "table \"a\" is already defined on line 1" },
        { "[a.b]\n[a]\nb = 1", "3:1", "key \"a.b\" is already defined on line 1" },
        { "a = 1\n[a]", "2:2", "key \"a\" is already defined on line 1" },
        { "a.b = 1\n[a]", "2:2", "table \"a\" is already defined on line 1" },
        { "[f]\na.c = 1\na.t.s = 2\n[f.a.t]", "4:6",
          "table \"f.a.t\" is already defined on line 3" },
        { "a = {}\n[a]", "2:2", "table \"a\" is already defined on line 1" },
        { "a = {b = 1, b = 2}", "1:13", "key \"a.b\" is already defined" },
        { "[[a]]\n[a]", "2:2", "key \"a\" is already defined on line 1" },
        { "[a]\n[[a]]", "2:3", "table \"a\" is already defined on line 1" },
        { "[a.b]\n[[a]]", "2:3", "table \"a\" is already defined on line 1" },
        { "[[a]]\n[a.b]\n[[a.b]]", "3:5", "table \"a.b\" is already defined on line 2" },
        { "[[a]]\n[[a]]\n[a.b]\n[a.b]", "4:4", "table \"a.b\" is already defined on line 3" },
    };
    EXPECT_REFUSED(cases);
}

TEST(what_is_closed_is_not_added_to)
{
    static const struct refusal cases[] = {
        { "a = 1\na.b = 2", "2:1", "\"a\" is an integer since line 1: nothing can be added" },
        { "a = 1\n[a.b]", "2:2", "\"a\" is an integer" },
        { "a = {}\na.b = 1", "2:1", "\"a\" is an inline table since line 1" },
        { "a = {b = {}}\n[a.b.c]", "2:2", "\"a\" is an inline table" },
        { "a = {b = {c = 1}, b.d = 2}", "1:19", "\"a.b\" is an inline table" },
        { "[t]\na.b = {}\n[t.a.b.c]", "3:6", "\"t.a.b\" is an inline table since line 2" },
        { "a = []\n[[a]]", "2:3", "\"a\" is an array since line 1" },
        { "a = [{}]\n[a.b]", "2:2", "\"a\" is an array since line 1" },
        { "[a.b.c]\nz = 9\n[a]\nb.c.t = 1", "4:3",
          "\"a.b.c\" is a table with a header of its own since line 1" },
        { "[[a.b]]\n[a]\nb.y = 2", "3:1", "\"a.b\" is an array of tables since line 1" },
    };
    EXPECT_REFUSED(cases);
}

TEST(every_value_has_its_place_in_the_text)
{
    AUTO_ARENA arena = { 0 };
    struct toml *root = read_ok(&arena, "# c\r\n  a = '''\r\nx\r\n''' # c\r\n"
                                        "b = [1,\n\n  2]\n[t.u]\nd= 1\n");
    static const char *const td[] = { "t", "u", "d" };
    const struct toml *values[] = {
        toml_get(root, STR("a")), toml_get(root, STR("b")), toml_item(toml_get(root, STR("b")), 1),
        toml_path(root, td, 1),   toml_path(root, td, 2),   toml_path(root, td, 3),
    };
    static const struct text_pos want[] = { { 2, 7 }, { 5, 5 }, { 7, 3 },
                                            { 8, 2 }, { 8, 4 }, { 9, 4 } };
    for (size_t i = 0; i < KV_COUNT_OF(want); i++) {
        EXPECT_EQ(toml_pos(values[i]).line, want[i].line);
        EXPECT_EQ(toml_pos(values[i]).col, want[i].col);
    }
    EXPECT_STR(toml_spelling(values[1]), "[1,\n\n  2]");
}

TEST(a_table_keeps_the_order_of_its_text)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF keys = { 0 };
    toml_each(read_ok(&arena, "z = 1\n[m]\n[a]\n[m.x]\n[[b]]\n"), e) buf_add(&keys, toml_key(e));
    EXPECT_STR(buf_str(&keys), "zmab");
}

/* --- limits --- */

static void add_times(struct buf *b, const char *text, size_t times)
{
    for (size_t i = 0; i < times; i++)
        buf_addz(b, text);
}

TEST(tables_and_arrays_go_a_hundred_deep_and_no_deeper)
{
    static const struct {
        const char *before, *each, *middle, *close;
        size_t start; /* levels in `before` and `middle` */
    } shapes[] = {
        { "a = ", "[", "1", "]", 1 }, { "a = ", "{a=", "1", "}", 1 },
        { "", "a.", "a = 1", "", 1 }, { "[", "a.", "a]", "", 1 },
        { "[[", "a.", "a]]", "", 1 }, { "[a.b]\nc.d = ", "[", "{e = 1}", "]", 5 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(shapes); i++) {
        for (size_t more = 0; more < 2; more++) {
            AUTO_ARENA arena = { 0 };
            AUTO_BUF text = { 0 };
            struct toml *root;
            struct err err = { 0 };
            size_t times = TOML_DEPTH_MAX - shapes[i].start + more;
            buf_addz(&text, shapes[i].before);
            add_times(&text, shapes[i].each, times);
            buf_addz(&text, shapes[i].middle);
            add_times(&text, shapes[i].close, times);
            int rc = toml_read(&arena, buf_str(&text), &root, &err);
            EXPECT_EQ(rc, more ? -1 : 0);
            EXPECT_HAS(str_of(err.text), more ? "more than 100 tables and arrays" : "");
        }
    }
}

TEST(a_text_beyond_the_limit_is_refused)
{
    AUTO_BUF text = { 0 };
    buf_reserve(&text, TOML_BYTES_MAX + 1);
    memset(text.p, '\n', TOML_BYTES_MAX + 1);
    expect_refused((struct str){ text.p, TOML_BYTES_MAX + 1 }, "1:1", "longer than");
}

/* What would make a careless reader quadratic. */
static void add_hostile(struct buf *out, size_t shape, size_t bytes)
{
    for (size_t i = 0; out->len < bytes; i++) {
        switch (shape) {
        case 0: /* many keys in one table */
            buf_addf(out, "k%zu=1\n", i);
            break;
        case 1: /* many tables with one prefix */
            buf_addf(out, "[a.b.c.d.k%zu]\n", i);
            break;
        case 2: /* a long array of tables, with tables in each */
            buf_addz(out, "[[a]]\n[a.b]\n");
            break;
        case 3: /* dotted keys through one table */
            buf_addf(out, "a.a.a.a.k%zu=1\n", i);
            break;
        case 4: /* keys that start with one another, as long as they can be */
            add_times(out, "a", i % 1400 + 1);
            buf_addf(out, "%zu=1\n", i);
            break;
        case 5: /* one long inline table */
            buf_addf(out, i ? ",k%zu=1" : "a={k%zu=1", i);
            break;
        case 6: /* one long array */
            buf_addz(out, i ? "[],'a'," : "a=[");
            break;
        case 7: /* comments between all keys */
            buf_addf(out, "#\n\nk%zu=1#\n", i);
            break;
        default: /* a string of nothing but escapes and quotes */
            buf_addz(out, i ? "\\u00e9\"\" " : "a=\"\"\"");
            break;
        }
    }
    buf_addz(out, shape == 5 ? "}" : shape == 6 ? "]" : shape == 8 ? "\"\"\"" : "");
}

TEST(a_megabyte_of_hostile_text_takes_time_and_memory_in_proportion)
{
    for (size_t shape = 0; shape < 9; shape++) {
        size_t used[2];
        clock_t start = clock();
        for (size_t i = 0; i < 2; i++) {
            AUTO_ARENA arena = { 0 };
            AUTO_BUF text = { 0 };
            AUTO_BUF same = { 0 };
            struct toml *root;
            struct err err = { 0 };
            add_hostile(&text, shape, (size_t)1 << (19 + i));
            EXPECT_OK(toml_read(&arena, buf_str(&text), &root, &err), err);
            toml_write(root, &same);
            EXPECT_TRUE(str_eq(buf_str(&same), buf_str(&text)));
            used[i] = arena.used_bytes;
        }
        EXPECT_TRUE(used[1] < 5 * used[0] / 2);
        EXPECT_TRUE(used[1] < (size_t)64 << 20);
        /* Milliseconds; a walk over all keys for every key would take minutes. */
        EXPECT_TRUE(clock() - start < 5 * CLOCKS_PER_SEC);
    }
}

TEST(removing_and_adding_many_keys_takes_time_in_proportion)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    AUTO_BUF out = { 0 };
    struct toml *root;
    struct err err = { 0 };
    add_hostile(&text, 7, (size_t)1 << 20);
    EXPECT_OK(toml_read(&arena, buf_str(&text), &root, &err), err);
    clock_t start = clock();
    toml_each(root, e) toml_remove(&arena, root, toml_key(e));
    EXPECT_EQ(toml_count(root), 0);
    for (int i = 0; i < 100000; i++) {
        char key[16];
        snprintf(key, sizeof key, "n%d", i);
        (i % 2 ? toml_set : toml_set_first)(&arena, root, str_of(key), toml_new_int(&arena, i));
    }
    toml_write(root, &out);
    EXPECT_EQ(toml_count(root), 100000);
    EXPECT_TRUE(clock() - start < 5 * CLOCKS_PER_SEC);
}
