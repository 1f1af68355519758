/* Writes what tests/crdcheck asks an API server's code about into a folder:
 *
 *     crd-NAME.json   the CustomResourceDefinitions, as `karve crds` prints them
 *     samples.jsonl   one sample per line: {"crd", "patch", "accept", "object", "old"}
 *
 * `accept` is what we expect of an API server. */
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
    write_line(f, line);
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
    }
    fclose(f);
    return 0;
}
