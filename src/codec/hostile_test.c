/* tests/bad/ holds texts that nobody wrote on purpose and everybody has met. Each is refused where
 * its EXPECTED says, in words that help. The large ones are made here. */
#include "support/test.h"

#include "base/file.h"
#include "codec/yaml.h"

#include <dirent.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FOLDER "tests/bad/"

static void read_file(const char *path, struct buf *out)
{
    struct err err = { 0 };
    buf_clear(out);
    EXPECT_OK(file_read(path, (size_t)1 << 30, out, &err),
              err); /* tests run in the source folder */
}

/* One line of EXPECTED: "name: line:col: words" or "name: semantic: words". */
struct expectation {
    struct str name, place, words;
    bool semantic;
};

static bool next_expectation(struct str *rest, struct expectation *out)
{
    struct str line, tail, more;
    while (rest->len > 0) {
        str_cut(*rest, '\n', &line, rest);
        if (line.len == 0 || line.p[0] == '#')
            continue;
        EXPECT_TRUE(str_cut(line, ':', &out->name, &tail));
        ptrdiff_t space = str_find(str_sub(tail, 1, tail.len), ' ');
        EXPECT_TRUE(space > 1);
        more = str_sub(tail, 1, tail.len);
        out->place = str_sub(more, 0, (size_t)space - 1);
        out->words = str_sub(more, (size_t)space + 1, more.len);
        out->semantic = str_eqz(out->place, "semantic");
        return true;
    }
    return false;
}

static void expect_refused(const char *path, struct str place, struct str words)
{
    AUTO_BUF text = { 0 };
    char where[32];
    struct docs docs;
    struct text_pos at = { 0, 0 };
    struct err err = { 0 };
    read_file(path, &text);
    int rc = yaml_read(buf_str(&text), &docs, &at, &err);
    snprintf(where, sizeof where, "%u:%u", at.line, at.col);
    AUTO_FREE char *place_z = str_dup(place), *words_z = str_dup(words);
    if (rc >= 0 || strcmp(where, place_z) != 0)
        print_error("%s\n", path);
    EXPECT_ERR(rc, err, ERR_INVALID);
    EXPECT_Z(where, place_z);
    EXPECT_HAS(str_of(err.text), words_z);
}

TEST(hostile_files_are_refused_at_the_right_place_in_the_right_words)
{
    AUTO_BUF list = { 0 };
    read_file(FOLDER "EXPECTED", &list);
    struct str rest = buf_str(&list);
    struct expectation e;
    size_t checked = 0;
    while (next_expectation(&rest, &e)) {
        AUTO_BUF path = { 0 };
        buf_addf(&path, FOLDER "%.*s", STR_ARG(e.name));
        if (!e.semantic) {
            expect_refused(path.p, e.place, e.words);
            checked++;
            continue;
        }
        /* Nothing is wrong with the text itself. */
        AUTO_BUF text = { 0 };
        struct docs docs;
        struct err err = { 0 };
        read_file(path.p, &text);
        EXPECT_OK(yaml_read(buf_str(&text), &docs, NULL, &err), err);
        docs_done(&docs);
    }
    EXPECT_TRUE(checked > 50);
}

TEST(hostile_files_are_all_listed)
{
    AUTO_BUF list = { 0 };
    read_file(FOLDER "EXPECTED", &list);
    DIR *dir = opendir(FOLDER);
    EXPECT_TRUE(dir != NULL);
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char line[300];
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, "EXPECTED") == 0)
            continue;
        snprintf(line, sizeof line, "\n%s: ", entry->d_name);
        EXPECT_HAS(buf_str(&list), line);
    }
    closedir(dir);
}

/* Cutting a good text anywhere is an error or a shorter text, never a crash. */
TEST(hostile_truncations_of_a_good_text_are_survived)
{
    static const char *const texts[] = {
        "apiVersion: v1\nkind: \"Pod\"\nspec: &s\n  list: [1, {a: 'b'}]\n  text: |\n    x\n  <<: {k: !!str v}\n---\na: *s\n",
        "{\"a\": [1, -2.5e3, {\"b\": \"x\\u00e9\\n\"}], \"c\": {\"d\": null}} {\"e\": true}",
    };
    for (size_t t = 0; t < KV_COUNT_OF(texts); t++) {
        for (size_t len = 0; len <= strlen(texts[t]); len++) {
            AUTO_FREE char *cut = str_dup((struct str){ texts[t], len });
            struct docs docs;
            struct text_pos at = { 0, 0 };
            struct err err = { 0 };
            if (yaml_read((struct str){ cut, len }, &docs, &at, &err) == 0)
                docs_done(&docs);
            else
                EXPECT_TRUE(at.line > 0 && err.text[0]);
        }
    }
}

/* --- the large ones, made in a temporary folder --- */

static void add_repeated(struct buf *out, const char *z, size_t times)
{
    for (size_t i = 0; i < times; i++)
        buf_addz(out, z);
}

static void expect_large_refused(const struct buf *text, const char *place, const char *words)
{
    char path[] = "/tmp/karve-hostile-XXXXXX";
    int fd = mkstemp(path);
    EXPECT_TRUE(fd >= 0);
    FILE *f = fdopen(fd, "wb");
    EXPECT_EQ(fwrite(text->p, 1, text->len, f), text->len);
    fclose(f);
    clock_t begin = clock();
    expect_refused(path, str_of(place), str_of(words));
    unlink(path);
    EXPECT_TRUE((double)(clock() - begin) / CLOCKS_PER_SEC < 20);
}

TEST(hostile_scalar_of_100_megabytes_is_refused_for_its_size)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "metadata:\n  name: ");
    buf_reserve(&text, 100 << 20);
    memset(text.p + text.len, 'a', 100 << 20);
    text.len += 100 << 20;
    expect_large_refused(&text, "1:1", "bytes, at most 67108864 are read");
    memcpy(text.p, "{\"a\": \"", 7);
    expect_large_refused(&text, "1:1", "bytes, at most 67108864 are read");
}

TEST(hostile_nesting_a_million_deep_is_refused_at_once)
{
    static const struct {
        const char *unit, *place;
    } cases[] = {
        { "[", "1:101" }, { "{\"a\":", "1:501" }, { "{a: ", "1:401" },    { "- ", "1:201" },
        { "? ", "1:3" },  { "[{", "1:101" },      { "!!seq [", "1:701" }, { "&a [", "1:401" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF text = { 0 };
        add_repeated(&text, cases[i].unit, 1000000);
        expect_large_refused(&text, cases[i].place,
                             str_eqz(str_of(cases[i].unit), "? ")
                                 ? "a key is a string"
                                 : "nested more than 100 levels deep");
    }
}

TEST(hostile_floods_of_small_things_are_survived)
{
    static const struct {
        const char *unit;
        size_t times;
    } cases[] = {
        { "\n", 1000000 },        { "#\n", 1000000 }, { "---\n", 300000 }, { "- &a x\n", 100000 },
        { "a: b\n", 100000 },     { "'", 1000000 },   { "\"", 1000000 },   { "*a ", 300000 },
        { "!!", 300000 },         { "|\n", 300000 },  { ": ", 300000 },    { "\t", 1000000 },
        { "%TAG ! !\n", 100000 }, { "{}", 100000 },   { "\\", 1000000 },   { ",", 300000 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF text = { 0 };
        struct docs docs;
        struct text_pos at = { 0, 0 };
        struct err err = { 0 };
        clock_t begin = clock();
        add_repeated(&text, cases[i].unit, cases[i].times);
        if (yaml_read(buf_str(&text), &docs, &at, &err) == 0)
            docs_done(&docs);
        double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
        if (seconds > 20)
            print_error("%zu times \"%s\" took %.1f s\n", cases[i].times, cases[i].unit, seconds);
        EXPECT_TRUE(seconds < 20);
    }
}
