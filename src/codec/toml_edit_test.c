#include "support/test.h"

#include "codec/toml_testing.h"

#include <stdio.h>

static struct toml *read_ok(struct arena *arena, struct str text)
{
    struct toml *root = NULL;
    struct err err = { 0 };
    EXPECT_OK(toml_read(arena, text, &root, &err), err);
    return root;
}

/* The text says what the tree does, and it is `want`. */
static void expect_text(const struct toml *root, const char *want)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    toml_write(root, &text);
    EXPECT_STR(buf_str(&text), want);
    EXPECT_TRUE(toml_equal(read_ok(&arena, buf_str(&text)), root));
}

/* An edit: "set", "first", "remove" or "sub", a table by its path of keys, and a value in TOML; the
 * value "table" is a table that is made. */
struct edit {
    const char *text, *how, *path, *value, *want;
};

static struct toml *made_table(struct arena *arena)
{
    struct toml *table = toml_new_table(arena);
    toml_set(arena, table, STR("m"), toml_new_int(arena, 1));
    toml_set(arena, toml_sub(arena, table, STR("s")), STR("n"), toml_new_int(arena, 2));
    return table;
}

static void apply(struct arena *arena, struct toml *root, const struct edit *edit)
{
    struct toml *table = root, *value = NULL;
    struct str key, rest = str_of(edit->path);
    struct err err = { 0 };
    while (str_cut(rest, '/', &key, &rest)) {
        table = toml_sub(arena, table, key);
        EXPECT_TRUE(table != NULL);
    }
    if (edit->value && strcmp(edit->value, "table") == 0)
        value = made_table(arena);
    else if (edit->value)
        EXPECT_OK(toml_read_value(arena, str_of(edit->value), &value, &err), err);

    if (strcmp(edit->how, "set") == 0)
        toml_set(arena, table, key, value);
    else if (strcmp(edit->how, "first") == 0)
        toml_set_first(arena, table, key, value);
    else if (strcmp(edit->how, "remove") == 0)
        EXPECT_TRUE(toml_remove(arena, table, key));
    else
        EXPECT_TRUE(toml_sub(arena, table, key) != NULL);
}

#define EXPECT_EDITS(edits)                                                                        \
    for (size_t i_ = 0; i_ < KV_COUNT_OF(edits); i_++)                                             \
    expect_edit(&(edits)[i_])

static void expect_edit(const struct edit *edit)
{
    AUTO_ARENA arena = { 0 };
    struct toml *root = read_ok(&arena, str_of(edit->text));
    apply(&arena, root, edit);
    expect_text(root, edit->want);
}

TEST(a_value_is_replaced_in_its_line)
{
    static const struct edit edits[] = {
        { "# c\n a  =  1  # one\nb = 2\n", "set", "a", "'x'", "# c\n a  =  'x'  # one\nb = 2\n" },
        { "a = 1", "set", "a", "2", "a = 2" },
        { "[t]\r\na = 1\r\n", "set", "t/a", "2", "[t]\r\na = 2\r\n" },
        { "t.a = 1\nt.b = 2\n", "set", "t/a", "3", "t.a = 3\nt.b = 2\n" },
        { "t = {a=1,b=[ 2 ]} # t\n", "set", "t/a", "3", "t = { a=3, b=[ 2 ] } # t\n" },
        { "t = {a.b=1}\n", "set", "t/a/b", "{c = 1}", "t = { a.b={c = 1} }\n" },
        { "a = [\n 1, # one\n]\n", "set", "a", "[]", "a = []\n" },
        { "a = 1\n", "set", "a", "table", "a = { m = 1, s = { n = 2 } }\n" },
    };
    EXPECT_EDITS(edits);
}

TEST(a_key_is_added_where_its_table_is_written)
{
    static const struct edit edits[] = {
        { "", "set", "a", "1", "a = 1\n" },
        { "# only words", "set", "a", "1", "# only words\na = 1\n" },
        { "a = 1", "set", "b", "2", "a = 1\nb = 2\n" },
        { "a = 1\r\n", "set", "b", "2", "a = 1\r\nb = 2\r\n" },
        { "a = 1\n\n# t\n[t]\n", "set", "b", "2", "a = 1\nb = 2\n\n# t\n[t]\n" },
        { "# top\n\n# t\n[t]\n", "set", "b", "2", "# top\n\nb = 2\n# t\n[t]\n" },
        { "[t]\na = 1\n\n[u]\n", "set", "t/b", "2", "[t]\na = 1\nb = 2\n\n[u]\n" },
        { "[t]\n[u]\n", "set", "t/b", "2", "[t]\nb = 2\n\n[u]\n" },
        { "[[t]]\na = 1\n[[t]]\n", "set", "b", "2", "b = 2\n\n[[t]]\na = 1\n[[t]]\n" },
        { "t.a = 1\nz = 9\n", "set", "t/b", "2", "t.a = 1\nt.b = 2\nz = 9\n" },
        { "[s]\nt.u.a = 1\n[x]\n", "set", "s/t/u/b", "2", "[s]\nt.u.a = 1\nt.u.b = 2\n\n[x]\n" },
        { "t = {}\n", "set", "t/b", "2", "t = { b = 2 }\n" },
        { "t = { a = 1 }\n", "set", "t/b", "2", "t = { a = 1, b = 2 }\n" },
        { "t = {u = {a.x = 1}}\n", "set", "t/u/a/y", "2", "t = { u = { a.x = 1, a.y = 2 } }\n" },
        { "a = 1\n", "set", "it's\n", "2", "a = 1\n\"it's\\n\" = 2\n" },
        { "a = 1\n", "set", "x.y", "2", "a = 1\n'x.y' = 2\n" },
    };
    EXPECT_EDITS(edits);
}

TEST(a_table_that_a_deeper_header_implied_gets_its_own_header_before_that)
{
    static const struct edit edits[] = {
        { "[t.u]\na = 1\n", "set", "t/b", "2", "[t]\nb = 2\n\n[t.u]\na = 1\n" },
        { "x = 1\n\n# u\n[t.u]\n[t]\nc = 1\n", "set", "t/b", "2",
          "x = 1\n\n# u\n[t.u]\n[t]\nc = 1\nb = 2\n" },
        { "x = 1\n\n# u\n[t.u]\n", "set", "t/b", "2", "x = 1\n\n[t]\nb = 2\n# u\n[t.u]\n" },
        { "[[l.t.u]]\n", "first", "l/t/b", "2", "[l.t]\nb = 2\n\n[[l.t.u]]\n" },
    };
    EXPECT_EDITS(edits);
}

TEST(a_table_is_added_behind_the_sections_of_the_one_it_is_in)
{
    static const struct edit edits[] = {
        { "", "set", "n", "table", "[n]\nm = 1\n\n[n.s]\nn = 2\n" },
        { "a = 1", "set", "n", "table", "a = 1\n\n[n]\nm = 1\n\n[n.s]\nn = 2\n" },
        { "[t]\na = 1\n[u]\n# end\n", "sub", "t/n", NULL, "[t]\na = 1\n\n[t.n]\n\n[u]\n# end\n" },
        { "[t.a]\n[u]\n[t.b]\nx = 1\n[v]\n", "sub", "t/n", NULL,
          "[t.a]\n[u]\n[t.b]\nx = 1\n\n[t.n]\n\n[v]\n" },
        { "t.a = 1\nb = 2\n", "set", "t/n", "table",
          "t.a = 1\nt.n = { m = 1, s = { n = 2 } }\nb = 2\n" },
        { "t = { a = 1 }\n", "sub", "t/n", NULL, "t = { a = 1, n = {} }\n" },
    };
    EXPECT_EDITS(edits);
}

TEST(a_key_that_is_put_first_comes_before_the_tables_others_and_their_comments)
{
    static const struct edit edits[] = {
        { "a = 1\n", "first", "b", "2", "b = 2\na = 1\n" },
        { "# file\n\n# about a\na = 1\n", "first", "b", "2",
          "# file\n\nb = 2\n# about a\na = 1\n" },
        { "[t]\n# about a\na = 1\n", "first", "t/b", "2", "[t]\nb = 2\n# about a\na = 1\n" },
        { "[t]\n\n[u]\n", "first", "t/b", "2", "[t]\nb = 2\n\n[u]\n" },
        { "[t]\na = 1\n# about b\nb = 2 # two\nc = 3", "first", "t/b", "9",
          "[t]\nb = 9 # two\na = 1\n# about b\nc = 3" },
        { "[t]\na = 1\nb = 2", "first", "t/b", "9", "[t]\nb = 9\na = 1\n" },
        { "z = 1\nt.a = 1\n", "first", "t/b", "2", "z = 1\nt.b = 2\nt.a = 1\n" },
        { "t = { a = 1 }", "first", "t/b", "2", "t = { b = 2, a = 1 }" },
        { "[t]\na = 1\n[t.b]\nx = 1\n", "first", "t/b", "2", "[t]\nb = 2\na = 1\n" },
        { "\xef\xbb\xbf"
          "a = 1\n",
          "first", "b", "2",
          "\xef\xbb\xbf"
          "b = 2\na = 1\n" },
    };
    EXPECT_EDITS(edits);
}

TEST(a_removed_key_takes_its_line_and_leaves_the_comments_before_it)
{
    static const struct edit edits[] = {
        { "a = 1\n\n# about b\nb = 2 # two\nc = 3\n", "remove", "b", NULL,
          "a = 1\n# about b\nc = 3\n" },
        { "a = 1\n", "remove", "a", NULL, "" },
        { "[t]\n  # x\n  a = 1\n[u]\n", "remove", "t/a", NULL, "[t]\n  # x\n[u]\n" },
        { "# t\n[t]\n# a\na = 1\n[t.u.v]\nb = 1\n[x]\n[[t.w]]\n", "remove", "t", NULL,
          "# t\n# a\n[x]\n" },
        { "[[a]]\nx = 1\n[a.b]\n[[a]]\n[c]\n", "remove", "a", NULL, "[c]\n" },
        { "t.a = 1\nt.b = 2\n", "remove", "t/a", NULL, "t.b = 2\n" },
        { "t = {a = 1, b = 2, c = 3}", "remove", "t/a", NULL, "t = { b = 2, c = 3 }" },
        { "t = {a = 1}", "remove", "t/a", NULL, "t = {}" },
    };
    EXPECT_EDITS(edits);
}

TEST(a_table_stays_when_its_last_key_goes)
{
    static const struct edit edits[] = {
        { "[t]\na = 1\n", "remove", "t/a", NULL, "[t]\n" },
        { "[t.u]\na = 1\n", "remove", "t/u", NULL, "[t]\n" },
        { "[s]\nt.a = 1\n", "remove", "s/t/a", NULL, "[s]\nt = {}\n" },
        { "t.u.a = 1\n", "remove", "t/u", NULL, "t = {}\n" },
        { "t = {u.a = 1}\n", "remove", "t/u/a", NULL, "t = { u = {} }\n" },
    };
    EXPECT_EDITS(edits);
}

TEST(a_table_that_is_replaced_keeps_its_place)
{
    static const struct edit edits[] = {
        { "# t\n[t]\na = 1\n[t.b]\n[u]\n", "set", "t", "table",
          "# t\n[t]\nm = 1\n\n[t.s]\nn = 2\n\n[u]\n" },
        { "[[t]]\n[[t]]\n[u]\n", "set", "t", "table", "[t]\nm = 1\n\n[t.s]\nn = 2\n\n[u]\n" },
        { "a = 1\n[t]\n[u]\n", "set", "t", "2", "a = 1\nt = 2\n\n[u]\n" },
        { "t.a = 1\nt.b = 2\nc = 3\n", "set", "t", "2", "t = 2\nc = 3\n" },
        { "t = {a = 1}\nc = 3\n", "set", "t", "[1]", "t = [1]\nc = 3\n" },
    };
    EXPECT_EDITS(edits);
}

TEST(edits_of_what_was_made_show_in_the_text)
{
    AUTO_ARENA arena = { 0 };
    struct toml *root = read_ok(&arena, STR("[a]\nx = 1\n"));
    struct toml *made = toml_sub(&arena, root, STR("n"));
    toml_set(&arena, made, STR("b"), toml_new_int(&arena, 1));
    toml_set_first(&arena, made, STR("a"), toml_new_int(&arena, 2));
    toml_set(&arena, made, STR("b"), toml_new_int(&arena, 3));
    toml_set(&arena, made, STR("c"), toml_new_bool(&arena, true));
    EXPECT_TRUE(toml_remove(&arena, made, STR("c")));
    EXPECT_FALSE(toml_remove(&arena, made, STR("c")));
    expect_text(root, "[a]\nx = 1\n\n[n]\na = 2\nb = 3\n");
    EXPECT_TRUE(toml_sub(&arena, made, STR("a")) == NULL);
    EXPECT_EQ(toml_pos(made).line, 0);
}

TEST(a_tree_that_was_made_is_written_keys_first_then_tables)
{
    AUTO_ARENA arena = { 0 };
    struct toml *root = toml_new_table(&arena), *list = toml_new_array(&arena);
    struct toml *mixed = toml_new_array(&arena);
    toml_set(&arena, toml_sub(&arena, toml_sub(&arena, root, STR("a")), STR("b.c")), STR("x"),
             toml_new_str(&arena, STR("it's")));
    toml_push(&arena, list, made_table(&arena));
    toml_push(&arena, list, toml_new_table(&arena));
    toml_set(&arena, root, STR("list"), list);
    toml_push(&arena, mixed, toml_new_float(&arena, 1));
    toml_push(&arena, mixed, made_table(&arena));
    toml_set(&arena, root, STR("mixed"), mixed);
    toml_set(&arena, root, STR("none"), toml_new_array(&arena));
    toml_set(&arena, root, STR("e"), toml_new_table(&arena));
    expect_text(root, "mixed = [1.0, { m = 1, s = { n = 2 } }]\nnone = []\n\n"
                      "[a.'b.c']\nx = \"it's\"\n\n"
                      "[[list]]\nm = 1\n\n[list.s]\nn = 2\n\n[[list]]\n\n[e]\n");
}

TEST(values_are_written_in_one_canonical_form)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        { "+1_000", "1000" },
        { "0xff", "255" },
        { "-9223372036854775808", "-9223372036854775808" },
        { "1e3", "1000.0" },
        { "1e300", "1e+300" },
        { "-0.0", "-0.0" },
        { "+inf", "inf" },
        { "-nan", "nan" },
        { "\"a\\\\b\"", "'a\\b'" },
        { "'''a\nb'''", "\"a\\nb\"" },
        { "\"it's \\\"\"", "\"it's \\\"\"" },
        { "\"\\u0000\\u007f\\u001f\\t\"", "\"\\u0000\\u007F\\u001F\\t\"" },
        { "\"\\u00e9\"", "'\xc3\xa9'" },
        { "1979-05-27 07:32:00z", "1979-05-27T07:32:00Z" },
        { "{ a.b = [ 1,2, ] }", "{ a = { b = [1, 2] } }" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_ARENA arena = { 0 };
        AUTO_BUF text = { 0 };
        struct toml *v;
        struct err err = { 0 };
        EXPECT_OK(toml_read_value(&arena, str_of(cases[i].text), &v, &err), err);
        toml_write_value(toml_copy(&arena, v), &text);
        EXPECT_STR(buf_str(&text), cases[i].want);
    }
}

/* --- spans --- */

struct told {
    struct buf text;
    const struct buf *out;
    const void *mark;
};

/* '<' before a marked value, '(' before another, '-' before layout; '+' where it was made. */
static void tell(void *ctx, const struct toml_span *span)
{
    struct told *told = ctx;
    bool marked = span->maybe_value && toml_marked(span->maybe_value) == told->mark;
    buf_addc(&told->text, marked ? '<' : span->maybe_value ? '(' : '-');
    buf_addz(&told->text, span->made ? "+" : "");
    buf_add(&told->text, str_sub(buf_str(told->out), span->start, span->end - span->start));
}

static void mark_and_set(struct arena *arena, struct toml *table, const char *key, const void *mark)
{
    struct toml *v = toml_new_int(arena, 9);
    toml_mark(v, mark);
    toml_set(arena, table, str_of(key), v);
}

TEST(every_run_of_bytes_is_told_with_the_value_it_is)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF out = { 0 };
    int mark;
    struct told told = { .out = &out, .mark = &mark };
    struct toml *root =
        read_ok(&arena, STR("# c\na = 1 # one\ni = {x = 1, y = {z = 2}}\n\n[t]\n[v.w]\n"));
    mark_and_set(&arena, toml_sub(&arena, root, STR("i")), "n", &mark);
    mark_and_set(&arena, root, "a", &mark);
    mark_and_set(&arena, toml_sub(&arena, root, STR("t")), "n", &mark);
    mark_and_set(&arena, toml_sub(&arena, root, STR("u")), "n", &mark);
    mark_and_set(&arena, toml_sub(&arena, root, STR("v")), "n", &mark);
    buf_addz(&out, "before");
    toml_write_spans(root, &out, tell, &told);
    EXPECT_STR(buf_str(&told.text),
               "-# c\n<+a = 9 # one\n-i = { (x = 1-, (y = {z = 2}-, <+n = 9- }\n"
               "-\n([t]\n<+n = 9\n-+\n(+[v]\n<+n = 9\n-+\n([v.w]\n-+\n(+[u]\n<+n = 9\n");
    buf_done(&told.text);
}

/* --- at random --- */

static const char all_kinds[] =
    "# top\n\na = 1 # one\n# b\nb.c.d = 'x'\nb.c.e = { f = 1, g.h = [ { i = 2 } ] }\n\n# t\n[t]\n"
    "# in t\nx = 1\n\n[t.u.v] # v\ny = 2\n[[l]]\n# in l\nz = 1\n[l.m]\n[[l]]\nz = 2\n[t.w]\n# end\n";
static const char *const documents[] = {
    "",
    "# only\n# comments",
    all_kinds,
    "a = {}\r\n[x.y.z]\r\n# c\r\nk = 1\r\n[x]\r\ny.q = 1\r\n# d\r\n[x.y.r]\r\n",
};

/* The comments that have a line of their own. */
static void add_comments(struct buf *out, struct str text)
{
    for (struct str line, rest = text; rest.len;) {
        str_cut(rest, '\n', &line, &rest);
        if (str_starts(str_trim(line), STR("#")))
            buf_add(out, str_trim(line));
    }
}

static void edit_at_random(uint64_t seed)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF comments = { 0 };
    struct rng rng;
    rng_init(&rng, seed);
    struct str text = str_of(documents[rng_below(&rng, KV_COUNT_OF(documents))]);
    struct toml *root = read_ok(&arena, text);
    add_comments(&comments, text);
    for (uint64_t edits = rng_below(&rng, 20); edits > 0; edits--) {
        AUTO_ARENA other = { 0 };
        AUTO_BUF out = { 0 };
        AUTO_BUF kept = { 0 };
        toml_edit_at_random(&arena, &rng, root);
        toml_write(root, &out);
        if (!toml_equal(read_ok(&other, buf_str(&out)), root))
            print_error("seed %llu\n%s\n", (unsigned long long)seed, out.p);
        EXPECT_TRUE(toml_equal(read_ok(&other, buf_str(&out)), root));
        add_comments(&kept, buf_str(&out));
        EXPECT_TRUE(str_eq(buf_str(&kept), buf_str(&comments)));
    }
}

TEST(after_any_edits_the_text_says_what_the_tree_does_and_keeps_the_comments_in_order)
{
    uint64_t start = 1;
    print_message("# seeds from %llu\n", (unsigned long long)start);
    for (uint64_t seed = start; seed < start + 3000; seed++)
        edit_at_random(seed);
}
