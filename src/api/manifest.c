/* Reading manifests: files -> documents -> objects (lists opened up) -> admitted and decoded, with a
 * look back over all of them for names used twice. Positions are resolved as problems are found,
 * while the document is at hand. */
#include "api/manifest.h"

#include "base/file.h"
#include "base/map.h"

#include <string.h>

static const char *const suffixes[] = { ".yaml", ".yml", ".json", NULL };

/* What the problems of one object have in common. The texts live in the manifests' arena. */
struct subject {
    const struct manifest_file *file;
    const struct doc *doc;
    const json_val *root;
    struct str kind_name, namespace_;
    struct str name; /* or generateName */
};

static void add_problem(struct manifests *m, const struct subject *s, enum severity severity,
                        struct text_pos pos, struct str path, struct str what)
{
    if (severity == PROBLEM_ERROR)
        m->error_count++;
    else
        m->warning_count++;
    if (m->problems.count >= MANIFEST_PROBLEMS_MAX) {
        m->problems_dropped++;
        return;
    }
    vec_push(&m->problems, (struct manifest_problem){
                               .file = s->file,
                               .pos = pos,
                               .kind_name = s->kind_name,
                               .namespace_ = s->namespace_,
                               .name = s->name,
                               .path = arena_str(&m->arena, path),
                               .what = arena_str(&m->arena, what),
                               .severity = severity,
                           });
}

static void add_problem_at(struct manifests *m, const struct subject *s, const json_val *at,
                           const char *path, const char *what)
{
    add_problem(m, s, PROBLEM_ERROR, doc_position(s->doc, at ? at : s->root), str_of(path),
                str_of(what));
}

static void add_report(struct manifests *m, const struct subject *s, const struct report *report)
{
    size_t errors_before = m->error_count;
    vec_each(&report->problems, struct problem, p) {
        add_problem(m, s, p->severity, doc_position(s->doc, p->at ? p->at : s->root), p->path,
                    p->what);
    }
    size_t errors_lost = report->error_count - (m->error_count - errors_before);
    m->error_count += errors_lost;
    m->problems_dropped += errors_lost;
}

/* --- one object --- */

static const struct object *admit_and_decode(struct manifests *m, const struct kind *kind,
                                             const struct subject *s)
{
    AUTO_ARENA arena = { 0 };
    AUTO_JSON_BUILD build = { 0 };
    AUTO_BUF text = { 0 };
    const struct object *object = NULL;
    struct report report = { .arena = &arena };

    json_build_init(&build);
    json_mut *admitted = object_admit(kind, &build, s->root, NULL, &report);
    add_report(m, s, &report);
    bool valid = report.error_count == 0;
    report_done(&report);
    if (!valid)
        return NULL;

    struct err err;
    struct doc doc;
    json_write_mut(admitted, &text);
    if (json_read_trusted(buf_str(&text), &doc, &err) < 0) {
        add_problem_at(m, s, NULL, "", err.text);
        return NULL;
    }
    if (object_decode(m->pool, kind, doc.root, &object, &err) < 0)
        add_problem_at(m, s, NULL, "", err.text);
    doc_done(&doc);
    return object;
}

/* The group is one that karve reads, but not this kind or version of it: likely a mistake. */
static bool likely_meant(const struct subject *s, struct str api_version, struct arena *arena,
                         struct str *what)
{
    struct str group, version;
    if (!str_cut(api_version, '/', &group, &version))
        group = STR("");
    const struct kind *near = NULL;
    size_t near_distance = 3;
    for (uint32_t i = 0; i < kind_count; i++) {
        const struct kind *k = kinds[i];
        if (!str_eqz(group, k->group))
            continue;
        if (str_eqz(s->kind_name, k->name)) {
            *what = arena_strf(arena, "version %s is not one that karve reads; use %s/%s",
                               STR_SHOWN(version), k->group, k->version);
            return *k->group != '\0';
        }
        size_t distance = str_distance(s->kind_name, str_of(k->name), 2);
        if (distance < near_distance) {
            near = k;
            near_distance = distance;
        }
    }
    if (!near)
        return false;
    *what =
        arena_strf(arena, "unknown kind %s; did you mean %s?", STR_SHOWN(s->kind_name), near->name);
    /* Other kinds of the core groups (Pod / PodTemplate) may be near by chance; a custom group
     * holds few. */
    return near->crd != NULL || near_distance == 1;
}

/* The items of a list that an API server sends say neither their kind nor its version. */
struct hint {
    struct str kind_name, api_version;
};

static void load_object(struct manifests *m, struct subject s, struct hint hint)
{
    if (!json_is_object(s.root)) {
        AUTO_BUF what = { 0 };
        buf_addf(&what, "expected an object with apiVersion and kind, found %s",
                 json_type_name(s.root));
        add_problem_at(m, &s, s.root, "", what.p);
        return;
    }
    const json_val *meta = json_get(s.root, STR("metadata"));
    const json_val *kind_val = json_get(s.root, STR("kind"));
    const json_val *version_val = json_get(s.root, STR("apiVersion"));
    struct str api_version = version_val || kind_val ? json_str(version_val) : hint.api_version;
    struct str name = arena_str(&m->arena, json_str(json_get(meta, STR("name"))));
    s.kind_name = arena_str(&m->arena, kind_val ? json_str(kind_val) : hint.kind_name);
    s.name = name.len ? name : arena_str(&m->arena, json_str(json_get(meta, STR("generateName"))));
    s.namespace_ = arena_str(&m->arena, json_str(json_get(meta, STR("namespace"))));
    if (!s.kind_name.len) {
        add_problem_at(m, &s, kind_val, "kind",
                       "missing or no text; expected a kind such as NodePool");
        return;
    }
    if (!api_version.len) {
        add_problem_at(m, &s, version_val, "apiVersion",
                       "missing or no text; expected a version such as karpenter.sh/v1");
        return;
    }

    const struct kind *kind = kind_find(api_version, s.kind_name);
    const struct object *object = NULL;
    if (kind) {
        if (!kind->namespaced)
            s.namespace_ = STR(""); /* an API server takes no notice of one */
        else if (!s.namespace_.len)
            s.namespace_ = STR("default");
        object = admit_and_decode(m, kind, &s);
    } else {
        AUTO_ARENA scratch = { 0 };
        struct str what;
        if (likely_meant(&s, api_version, &scratch, &what))
            add_problem(m, &s, PROBLEM_ERROR, doc_position(s.doc, kind_val ? kind_val : s.root),
                        STR(""), what);
    }
    vec_push(&m->items, (struct manifest){
                            .kind = kind,
                            .api_version = arena_str(&m->arena, api_version),
                            .kind_name = s.kind_name,
                            .namespace_ = s.namespace_,
                            .name = name,
                            .file = s.file,
                            .pos = doc_position(s.doc, s.root),
                            .object = object,
                            .json = s.root,
                        });
}

/* --- documents and files --- */

static void load_document(struct manifests *m, const struct manifest_file *file,
                          const struct doc *doc)
{
    struct subject s = { .file = file, .doc = doc, .root = doc->root };
    struct str kind_name = json_str(json_get(doc->root, STR("kind")));
    const json_val *items = json_get(doc->root, STR("items"));
    if (!str_ends(kind_name, STR("List")) || !json_is_array(items)) {
        load_object(m, s, (struct hint){ 0 });
        return;
    }
    struct hint hint = { .kind_name = str_sub(kind_name, 0, kind_name.len - strlen("List")),
                         .api_version = json_str(json_get(doc->root, STR("apiVersion"))) };
    json_each_item(items, item) {
        s.root = item;
        load_object(m, s, hint);
    }
}

static int load_file(struct manifests *m, const char *path, struct err *err)
{
    struct manifest_file *file = kv_calloc(1, sizeof *file);
    file->rank = m->files.count;
    vec_push(&m->files, file);
    file->path = strcmp(path, "-") == 0 ? "stdin" : arena_str(&m->arena, str_of(path)).p;

    struct subject s = { .file = file };
    struct err trouble;
    struct text_pos at = { 1, 1 };
    if (file_read(path, YAML_BYTES_MAX, &file->text, &trouble) < 0) {
        if (trouble.kind != ERR_INVALID) {
            if (err)
                *err = trouble;
            return -1;
        }
        add_problem(m, &s, PROBLEM_ERROR, at, STR(""), str_of(trouble.text));
        return 0;
    }
    if (yaml_read(buf_str(&file->text), &file->docs, &at, &trouble) < 0) {
        add_problem(m, &s, PROBLEM_ERROR, at, STR(""), str_of(trouble.text));
        return 0;
    }
    for (size_t i = 0; i < file->docs.count; i++)
        load_document(m, file, &file->docs.items[i]);
    return 0;
}

/* --- over all of them --- */

static void find_duplicates(struct manifests *m, size_t first)
{
    struct str_table seen = { 0 };
    for (size_t i = 0; i < m->items.count; i++) {
        const struct manifest *item = &m->items.items[i];
        struct str group, version;
        if (!str_cut(item->api_version, '/', &group, &version))
            group = STR("");
        AUTO_BUF key = { 0 };
        buf_addf(&key, "%.*s/%.*s/%.*s/%.*s", STR_ARG(group), STR_ARG(item->kind_name),
                 STR_ARG(item->namespace_), STR_ARG(item->name));
        const struct manifest *earlier = str_table_get(&seen, buf_str(&key));
        if (!earlier) {
            str_table_put(&seen, buf_str(&key), (void *)item);
        } else if (item->name.len && i >= first) {
            struct subject s = { .file = item->file,
                                 .kind_name = item->kind_name,
                                 .namespace_ = item->namespace_,
                                 .name = item->name };
            AUTO_BUF what = { 0 };
            buf_addf(&what, "this name is already used at %s:%u; expected one object of a name",
                     earlier->file->path, earlier->pos.line);
            add_problem(m, &s, PROBLEM_ERROR, item->pos, STR("metadata.name"), buf_str(&what));
        }
    }
    str_table_done(&seen);
}

static int by_place(const void *va, const void *vb)
{
    const struct manifest_problem *a = va, *b = vb;
    if (a->file != b->file)
        return a->file->rank < b->file->rank ? -1 : 1;
    if (a->pos.line != b->pos.line)
        return a->pos.line < b->pos.line ? -1 : 1;
    if (a->pos.col != b->pos.col)
        return a->pos.col < b->pos.col ? -1 : 1;
    int c = str_cmp(a->path, b->path);
    return c ? c : str_cmp(a->what, b->what);
}

void manifests_init(struct manifests *m)
{
    *m = (struct manifests){ .pool = object_pool_new() };
}

int manifests_load(struct manifests *m, const char *const *paths, size_t path_count,
                   struct err *err)
{
    struct file_paths files = { 0 };
    size_t first = m->items.count;
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < path_count; i++)
        rc = file_expand(paths[i], suffixes, &files, err);
    for (size_t i = 0; rc == 0 && i < files.items.count; i++)
        rc = load_file(m, files.items.items[i], err);
    file_paths_done(&files);
    if (rc < 0)
        return -1;
    find_duplicates(m, first);
    if (m->problems.count)
        qsort(m->problems.items, m->problems.count, sizeof *m->problems.items, by_place);
    return 0;
}

void manifests_done(struct manifests *m)
{
    vec_each(&m->items, struct manifest, item)
        object_unref(item->object);
    vec_each(&m->files, struct manifest_file *, file) {
        docs_done(&(*file)->docs);
        buf_done(&(*file)->text);
        free(*file);
    }
    vec_done(&m->items);
    vec_done(&m->files);
    vec_done(&m->problems);
    arena_done(&m->arena);
    object_pool_free(m->pool);
}

void manifest_problem_format(const struct manifest_problem *p, struct buf *out)
{
    buf_addf(out, "%s:%u:%u: ", p->file->path, p->pos.line, p->pos.col);
    if (p->kind_name.len) {
        name_format(p->kind_name, out);
        if (p->name.len) {
            buf_addc(out, '/');
            name_format(p->name, out);
        }
        buf_addz(out, ": ");
    }
    if (p->path.len)
        buf_addf(out, "%.*s: ", STR_ARG(p->path));
    if (p->severity == PROBLEM_WARNING)
        buf_addz(out, "warning: ");
    buf_add(out, p->what);
}
