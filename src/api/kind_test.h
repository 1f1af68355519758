/* For the tests of kinds: an object from YAML text, its typed form, and its problems. */
#pragma once

#include "api/object.h"
#include "codec/yaml.h"
#include "support/test.h"

#include <stdio.h>

struct sample {
    struct docs docs;
    struct arena arena;
    struct report report;
    struct json_build build;
    struct object_pool *pool;
    const struct object *object;
    const struct kind *kind;
    json_mut *admitted;
};

/* Read the one document of `text`, and find the problems of writing it over `maybe_old`, which is
 * stored with its defaults. */
static inline void sample_read(struct sample *s, const char *text, const struct sample *maybe_old)
{
    struct err err = { 0 };
    struct text_pos at = { 0 };

    *s = (struct sample){ 0 };
    EXPECT_OK(yaml_read(str_of(text), &s->docs, &at, &err), err);
    EXPECT_EQ(s->docs.count, 1);
    const json_val *root = s->docs.items[0].root;
    s->kind = kind_find(json_str(json_get(root, STR("apiVersion"))),
                        json_str(json_get(root, STR("kind"))));
    EXPECT_TRUE(s->kind != NULL);
    s->report.arena = &s->arena;
    json_build_init(&s->build);
    struct doc stored = { 0 };
    AUTO_BUF stored_text = { 0 };
    if (maybe_old) {
        json_write_mut(maybe_old->admitted, &stored_text);
        EXPECT_OK(json_read(buf_str(&stored_text), &stored, &err), err);
    }
    s->admitted = object_admit(s->kind, &s->build, root, stored.root, &s->report);
    doc_done(&stored);
    s->pool = object_pool_new();
}

/* The same, decoded too: its types must fit. */
static inline void sample_decode(struct sample *s, const char *text)
{
    struct err err = { 0 };

    sample_read(s, text, NULL);
    EXPECT_OK(object_decode(s->pool, s->kind, s->docs.items[0].root, &s->object, &err), err);
}

static inline void sample_done(struct sample *s)
{
    object_unref(s->object);
    object_pool_free(s->pool);
    json_build_done(&s->build);
    report_done(&s->report);
    arena_done(&s->arena);
    docs_done(&s->docs);
}
#define SAMPLE __attribute__((cleanup(sample_done))) struct sample

/* "path: what" of every problem, one a line. */
static inline struct str sample_problems(struct sample *s)
{
    AUTO_BUF text = { 0 };

    vec_each(&s->report.problems, struct problem, p)
        buf_addf(&text, "%s%.*s: %.*s\n", p->severity == PROBLEM_WARNING ? "warning: " : "",
                 STR_ARG(p->path), STR_ARG(p->what));
    return arena_str(&s->arena, buf_str(&text));
}

/* The text of the defaulted object at a dotted path, "" if it is not there. */
static inline struct str sample_default(struct sample *s, const char *path)
{
    AUTO_BUF text = { 0 };
    const json_mut *v = s->admitted;
    struct str rest = str_of(path), name;

    while (v && rest.len > 0) {
        struct str tail = STR_NONE;

        str_cut(rest, '.', &name, &tail);
        v = json_mut_get(v, name);
        rest = tail;
    }
    if (v)
        json_write_mut(v, &text);
    return arena_str(&s->arena, buf_str(&text));
}

/* An object is fine, or has this problem (and maybe others). */
static inline void expect_fine(const char *text)
{
    SAMPLE s;

    sample_read(&s, text, NULL);
    EXPECT_STR(sample_problems(&s), "");
}

static inline void expect_problem(const char *text, const char *problem)
{
    SAMPLE s;

    sample_read(&s, text, NULL);
    EXPECT_HAS(sample_problems(&s), problem);
}

/* Writing `text` over `old_text` has this problem; "" is none. */
static inline void expect_change(const char *old_text, const char *text, const char *problem)
{
    SAMPLE old, s;

    sample_read(&old, old_text, NULL);
    sample_read(&s, text, &old);
    if (problem[0])
        EXPECT_HAS(sample_problems(&s), problem);
    else
        EXPECT_STR(sample_problems(&s), "");
}
