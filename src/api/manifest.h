/* api/manifest.h - manifests from files, folders and standard input, checked and decoded.
 *
 * Every command that works offline reads its objects here. What is wrong is a list of problems,
 * each with file, line, column, object and field path; an object with an error is not decoded.
 * Lists (as `kubectl get -o yaml` prints them) count as their items. Kinds that karve does not read
 * are counted, not judged.
 */
#pragma once

#include "api/object.h"
#include "codec/yaml.h"

#define MANIFEST_PROBLEMS_MAX 1000 /* kept; the rest are only counted */

struct manifest_file {
    const char *path; /* "-" is standard input, shown as "stdin" */
    size_t rank;      /* among the files, in the order they were read */
    struct buf text;
    struct docs docs;
};

struct manifest {
    const struct kind *kind; /* NULL: a kind that karve does not read */
    struct str api_version, kind_name, namespace_;
    struct str name; /* "" while generateName waits for a store */
    const struct manifest_file *file;
    struct text_pos pos;         /* where the object starts */
    const struct object *object; /* NULL: it has an error, or its kind is not ours */
    const json_val *json; /* as it was written; an item of a list may lack kind and apiVersion */
};

struct manifest_problem {
    const struct manifest_file *file;
    struct text_pos pos;
    struct str kind_name, namespace_, name; /* empty when the text itself is broken */
    struct str path, what;
    enum severity severity;
};

struct manifests {
    struct arena arena;
    struct object_pool *pool;
    VEC(struct manifest_file *) files;
    VEC(struct manifest) items;            /* in the order they were read */
    VEC(struct manifest_problem) problems; /* sorted by file as read, then line and column */
    size_t error_count, warning_count, problems_dropped;
};

/* Read every path ("-": standard input). Broken manifests are problems, not errors: this fails
 * only when a path cannot be read. May be called again to add more. */
int manifests_load(struct manifests *m, const char *const *paths, size_t path_count,
                   struct err *err);
void manifests_init(struct manifests *m);
void manifests_done(struct manifests *m);

/* "file:line:col: Kind/name: field.path: what is wrong", without a newline. */
void manifest_problem_format(const struct manifest_problem *p, struct buf *out);
