/* The objects of a scenario: inline, or in manifest files that it names. Each is checked here as the
 * store will check it, while the place of every field is at hand, and kept as a JSON text.
 *
 * Manifest files may hold kinds that karve does not read (Services of a mesh, say): they are passed
 * over. Inline objects were written for the simulation, so there such a kind is a mistake.
 */
#include "sim/scenario_inner.h"

#include "api/karpenter.h"
#include "api/kinds.h"
#include "base/file.h"

#include <libgen.h>

static const char *const suffixes[] = { ".yaml", ".yml", ".json", NULL };

static void name_key(struct buf *out, struct str kind, struct str namespace_, struct str name)
{
    buf_addf(out, "%.*s %.*s/%.*s", STR_ARG(kind), STR_ARG(namespace_), STR_ARG(name));
}

bool scenario_has(struct scenario_reader *r, const char *kind, struct str namespace_,
                  struct str name)
{
    AUTO_BUF key = { 0 };
    name_key(&key, str_of(kind), namespace_, name);
    return str_table_has(&r->names, buf_str(&key));
}

struct str scenario_path_beside(struct arena *arena, const char *file, struct str path)
{
    AUTO_FREE char *copy = kv_strdup(file); /* dirname writes into it */
    const char *folder = dirname(copy);
    if (str_starts(path, STR("/")) || strcmp(folder, ".") == 0)
        return arena_str(arena, path);
    return arena_strf(arena, "%s/%.*s", folder, STR_ARG(path));
}

/* --- one object --- */

static const struct kind *kind_of_json(const json_val *v)
{
    return kind_find(json_str(json_get(v, STR("apiVersion"))), json_str(json_get(v, STR("kind"))));
}

void scenario_remember(struct scenario_reader *r, const json_val *v)
{
    json_each_item(v, item)
        scenario_remember(r, item);
    const struct kind *kind = kind_of_json(v);
    if (!kind)
        return;
    const json_val *meta = json_get(v, STR("metadata"));
    struct str name = json_str(json_get(meta, STR("name")));
    struct str namespace_ = json_str(json_get(meta, STR("namespace")));
    if (!kind->namespaced)
        namespace_ = STR("");
    else if (!namespace_.len)
        namespace_ = STR("default");
    AUTO_BUF key = { 0 };
    name_key(&key, str_of(kind->name), namespace_, name);
    str_table_put(&r->names, buf_str(&key), r);
    r->has_kwok_class |= kind == &kwoknodeclass_kind;
}

void scenario_take_object(struct scenario_reader *r, const char *path, const struct doc *doc,
                          const char *prefix, const json_val *v, struct str *out)
{
    *out = STR_NONE;
    struct str api_version = json_str(json_get(v, STR("apiVersion")));
    struct str kind_name = json_str(json_get(v, STR("kind")));
    const struct kind *kind = kind_find(api_version, kind_name);
    if (!kind) {
        AUTO_BUF what = { 0 };
        if (!json_is_object(v) || !api_version.len || !kind_name.len)
            buf_addz(&what, "expected an object with apiVersion and kind");
        else
            buf_addf(&what, "%s of %s is not a kind that karve reads", STR_SHOWN(kind_name),
                     STR_SHOWN(api_version));
        scenario_wrong(r, path, doc, v, str_of(prefix), buf_str(&what));
        return;
    }
    AUTO_ARENA arena = { 0 };
    AUTO_JSON_BUILD build = { 0 };
    struct report report = { .arena = &arena };
    json_build_init(&build);
    object_admit(kind, &build, v, NULL, &report);
    scenario_wrong_report(r, path, doc, prefix, &report);
    bool valid = report.error_count == 0;
    report_done(&report);
    if (!valid)
        return;
    AUTO_BUF text = { 0 };
    json_write(v, &text);
    *out = arena_str(r->arena, buf_str(&text));
    scenario_remember(r, v);
}

static void add_start_object(struct scenario_reader *r, const char *path, const struct doc *doc,
                             const char *prefix, const json_val *v)
{
    struct str text;
    if (r->objects.count >= SCENARIO_OBJECTS_MAX) {
        if (r->objects.count == SCENARIO_OBJECTS_MAX) /* told once: the next push is the last */
            scenario_wrong(r, path, doc, v, str_of(prefix), STR("too many objects"));
        vec_push(&r->objects, STR_NONE);
        return;
    }
    const struct kind *kind = kind_of_json(v);
    const json_val *meta = json_get(v, STR("metadata"));
    struct str name = json_str(json_get(meta, STR("name")));
    struct str namespace_ = json_str(json_get(meta, STR("namespace")));
    if (kind && name.len &&
        scenario_has(r, kind->name,
                     !kind->namespaced ? STR("")
                     : namespace_.len  ? namespace_
                                       : STR("default"),
                     name)) {
        scenario_wrong(r, path, doc, v, str_of(prefix),
                       STR("there is an object of this kind and name already"));
        return;
    }
    scenario_take_object(r, path, doc, prefix, v, &text);
    if (text.p)
        vec_push(&r->objects, text);
}

/* --- manifest files --- */

static void take_document(struct scenario_reader *r, const char *path, const struct doc *doc)
{
    const json_val *items = json_get(doc->root, STR("items"));
    bool is_list =
        str_ends(json_str(json_get(doc->root, STR("kind"))), STR("List")) && json_is_array(items);
    if (!is_list) {
        if (kind_of_json(doc->root) || !json_is_string(json_get(doc->root, STR("kind"))))
            add_start_object(r, path, doc, "", doc->root);
        return;
    }
    json_each_item(items, item) {
        if (kind_of_json(item))
            add_start_object(r, path, doc, "", item);
    }
}

static void read_manifest_file(struct scenario_reader *r, const char *path,
                               const struct place *where)
{
    AUTO_BUF text = { 0 };
    struct err err;
    struct docs docs;
    struct text_pos at = { 1, 1 };
    if (file_read(path, SCENARIO_BYTES_MAX, &text, &err) < 0) {
        scenario_wrong_at(r, where, "%s", err.text);
        return;
    }
    if (yaml_read(buf_str(&text), &docs, &at, &err) < 0) {
        scenario_wrong_at(r, where, "%s:%u:%u: %s", path, at.line, at.col, err.text);
        return;
    }
    for (size_t i = 0; i < docs.count; i++)
        take_document(r, path, &docs.items[i]);
    docs_done(&docs);
}

static void read_manifests(struct scenario_reader *r, const struct place *top)
{
    struct place list = place_member(top, "manifests");
    if (!list.found)
        return;
    uint32_t i = 0;
    json_each_item(list.at, item) {
        struct place where = place_item(&list, i++, item);
        struct str path = scenario_path_beside(&r->scratch, r->path, json_str(item));
        struct file_paths files = { 0 };
        struct err err;
        if (file_expand(path.p, suffixes, &files, &err) < 0)
            scenario_wrong_at(r, &where, "%s", err.text);
        else if (!files.items.count)
            scenario_wrong_at(r, &where, "no manifests in %s", STR_SHOWN(path));
        vec_each(&files.items, char *, file)
            read_manifest_file(r, *file, &where);
        file_paths_done(&files);
    }
}

void scenario_read_objects(struct scenario_reader *r, const struct place *top)
{
    read_manifests(r, top);
    struct place list = place_member(top, "objects");
    uint32_t i = 0;
    if (list.found && !json_is_array(list.at))
        scenario_wrong_at(r, &list, "expected a list of objects");
    json_each_item(list.found ? list.at : NULL, item) {
        struct str prefix = arena_strf(&r->scratch, "objects[%u]", i++);
        add_start_object(r, r->path, r->doc, prefix.p, item);
    }
    struct scenario *s = r->s;
    struct str *texts = arena_array(r->arena, struct str, r->objects.count);
    if (r->objects.count)
        memcpy(texts, r->objects.items, r->objects.count * sizeof *texts);
    s->objects = texts;
    s->object_count = (uint32_t)r->objects.count;
}
