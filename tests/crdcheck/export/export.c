/* Writes what tests/crdcheck asks an API server's code about into a folder:
 *
 *     crd-NAME.json   the CustomResourceDefinitions, as `karve crds` prints them
 *     samples.jsonl   one sample per line
 *
 * Besides the samples of samples.h there are pairs of them in one object.
 *
 * A sample has `crd`, the file of its kind; `patch`, its text; `object`, and `old` if it is an
 * update; `accept`, what we expect of an API server; `path`, the field that it must name when it
 * refuses; and `completed`, the object with its defaults, if nothing at all is wrong with it. */
#include "api/crd.h"
#include "crdcheck/export/samples.h"

static FILE *create(const char *folder, const char *name)
{
    char path[4096];
    int len = snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = len > 0 && (size_t)len < sizeof path ? fopen(path, "w") : NULL;
    if (!f) {
        perror(path);
        exit(3);
    }
    return f;
}

static void write_line(FILE *f, const json_mut *v)
{
    AUTO_BUF text = { 0 };
    json_write_mut(v, &text);
    fprintf(f, "%s\n", buf_str(&text).p);
}

static void write_crd(const char *folder, const struct kind *kind)
{
    AUTO_JSON_BUILD b;
    char name[256];
    json_build_init(&b);
    snprintf(name, sizeof name, "crd-%s.json", kind->plural);
    FILE *f = create(folder, name);
    write_line(f, crd_build(&b, kind));
    fclose(f);
}

static struct str problem_path(const char *problem)
{
    const char *end = strstr(problem, ": ");
    KV_ASSERT(end);
    return (struct str){ problem, (size_t)(end - problem) };
}

static void write_sample(FILE *f, const struct sample_set *set, const struct sample *sample)
{
    AUTO_JSON_BUILD b;
    char crd[256];
    json_build_init(&b);
    snprintf(crd, sizeof crd, "crd-%s.json", set->kind->plural);
    json_mut *line = json_new_object(&b);
    json_set_str(&b, line, "crd", str_of(crd));
    json_set_str(&b, line, "patch", str_of(sample->patch));
    json_set_bool(&b, line, "accept", !sample->problem || sample->judge != API);
    json_set(&b, line, STR("object"), sample_build(&b, set->base, sample->patch));
    if (sample->old)
        json_set(&b, line, STR("old"), sample_build(&b, set->base, sample->old));
    if (sample->problem && sample->judge == API)
        json_set_str(&b, line, "path", problem_path(sample->problem));
    if (!sample->problem) {
        json_mut *completed = sample_build(&b, set->base, sample->patch);
        schema_default(set->kind->schema, &b, completed);
        json_set(&b, line, STR("completed"), completed);
    }
    write_line(f, line);
}

/* --- samples together --- */

/* Only what an API server can know about: the table's own checks are not in the CRD. */
static bool is_for_pairs(const struct sample *sample)
{
    return !sample->old && (!sample->problem || sample->judge == API);
}

/* Two samples in one object: whatever that makes, both sides must agree about it. Here we have no
 * expectation of our own, so our verdict is what an API server must say. */
static void write_pair(FILE *f, const struct sample_set *set, const struct sample *one,
                       const struct sample *other)
{
    AUTO_JSON_BUILD b;
    AUTO_ARENA arena = { 0 };
    AUTO_BUF first = { 0 };
    AUTO_BUF both = { 0 };
    AUTO_BUF patch = { 0 };
    char crd[256];
    struct report report = { .arena = &arena };
    struct doc doc;
    json_build_init(&b);
    snprintf(crd, sizeof crd, "crd-%s.json", set->kind->plural);

    /* JSON is YAML, so the first result can be the base of the second. */
    json_write_mut(sample_build(&b, set->base, one->patch), &first);
    json_mut *object = sample_build(&b, buf_str(&first).p, other->patch), *line;
    json_write_mut(object, &both);
    int rc = json_read(buf_str(&both), &doc, NULL);
    KV_ASSERT(rc == 0);
    schema_validate(set->kind->schema, doc.root, NULL, &report);
    buf_addf(&patch, "%s and %s", one->patch, other->patch);

    line = json_new_object(&b);
    json_set_str(&b, line, "crd", str_of(crd));
    json_set_str(&b, line, "patch", buf_str(&patch));
    json_set_bool(&b, line, "accept", report.error_count == 0);
    json_set(&b, line, STR("object"), object);
    write_line(f, line);
    doc_done(&doc);
    report_done(&report);
}

static void write_pairs(FILE *f, const struct sample_set *set)
{
    for (uint32_t step = 1; step < set->count; step *= 3) {
        for (uint32_t i = 0; i < set->count; i++) {
            const struct sample *one = &set->samples[i];
            const struct sample *other = &set->samples[(i + step) % set->count];
            if (is_for_pairs(one) && is_for_pairs(other))
                write_pair(f, set, one, other);
        }
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
        return 2;
    }
    FILE *f = create(argv[1], "samples.jsonl");
    for (size_t s = 0; s < KV_COUNT_OF(sample_sets); s++) {
        const struct sample_set *set = &sample_sets[s];
        write_crd(argv[1], set->kind);
        for (uint32_t i = 0; i < set->count; i++)
            write_sample(f, set, &set->samples[i]);
        write_pairs(f, set);
    }
    fclose(f);
    return 0;
}
