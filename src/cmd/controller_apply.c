/* A folder of manifests kept in the store, as `kubectl apply --prune` would.
 *
 * What was applied is written into the object's own annotation, which is kubectl's: so after a restart
 * it is still known which fields a file has given up, and which objects came from files at all. A
 * change is the difference between the two texts as a merge patch; what others wrote to the object
 * (replicas, status, finalizers) stays. */
#include "cmd/controller_inner.h"

#include "base/file.h"
#include "codec/json.h"

#include <sys/stat.h>

#define ANNOTATION_LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

static const char *const suffixes[] = { ".yaml", ".yml", ".json", NULL };

/* --- has anything changed? --- */

static uint64_t fingerprint_of(const char *path)
{
    struct file_paths paths = { 0 };
    uint64_t hash = 1;
    if (file_expand(path, suffixes, &paths, NULL) == 0) {
        vec_each(&paths.items, char *, file) {
            struct stat st = { 0 };
            if (stat(*file, &st) < 0)
                st = (struct stat){ 0 };
            hash = kv_mix64(hash ^ kv_hash(*file, strlen(*file)));
            hash =
                kv_mix64(hash ^ (uint64_t)st.st_mtim.tv_sec ^ ((uint64_t)st.st_mtim.tv_nsec << 32));
            hash = kv_mix64(hash ^ (uint64_t)st.st_size ^ ((uint64_t)st.st_ino << 24));
        }
    }
    file_paths_done(&paths);
    return hash;
}

bool applied_folder_changed(struct applied_folder *f)
{
    return fingerprint_of(f->path) != f->fingerprint;
}

/* --- one object --- */

static json_mut *difference(struct json_build *b, const json_val *old, const json_val *new_)
{
    json_mut *patch = json_new_object(b);
    json_each_member(old, key, value) {
        (void)value;
        if (!json_get(new_, json_key(key)))
            json_set(b, patch, json_key(key), json_new_null(b));
    }
    json_each_member(new_, key, value) {
        const json_val *before = json_get(old, json_key(key));
        if (json_is_object(value) && json_is_object(before)) {
            json_mut *inner = difference(b, before, value);
            if (json_mut_count(inner))
                json_set(b, patch, json_key(key), inner);
        } else if (!before || !json_equal(before, value)) {
            json_set(b, patch, json_key(key), json_copy(b, value));
        }
    }
    return patch;
}

static void set_last_applied(struct json_build *b, json_mut *object, struct str text)
{
    json_mut *meta = json_mut_object(b, object, STR("metadata"));
    json_mut *annotations = json_mut_object(b, meta, STR("annotations"));
    json_set_str(b, annotations, ANNOTATION_LAST_APPLIED, text);
}

/* The object as it is written, complete and without a status: what is kept of it. */
static void canonical_text(const struct manifest *item, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF text = { 0 };
    struct doc doc;
    json_build_init(&b);
    json_mut *object = json_copy(&b, item->json);
    json_set_str(&b, object, "apiVersion", item->api_version);
    json_set_str(&b, object, "kind", item->kind_name);
    if (item->kind->has_status && strcmp(item->kind->name, "Node") != 0)
        json_mut_remove(object, STR("status"));
    json_write_mut(object, &text);
    if (json_read_trusted(buf_str(&text), &doc, NULL) < 0)
        return; /* it was read before */
    json_write_canonical(doc.root, out);
    doc_done(&doc);
}

static int create(struct applied_folder *f, const struct manifest *item, struct str text,
                  struct err *err)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF whole = { 0 };
    struct doc doc;
    if (json_read_trusted(text, &doc, err) < 0)
        return -1;
    json_build_init(&b);
    json_mut *object = json_copy(&b, doc.root);
    set_last_applied(&b, object, text);
    json_write_mut(object, &whole);
    doc_done(&doc);
    return store_create(f->store, item->kind, item->namespace_, buf_str(&whole), NULL, err);
}

/* 1: it was changed; 0: there was nothing to do. */
static int change(struct applied_folder *f, const struct object *there, struct str text,
                  struct err *err)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF patch_text = { 0 };
    struct doc old = { 0 }, new_ = { 0 };
    struct str last = str_map_get(&there->meta.annotations, STR(ANNOTATION_LAST_APPLIED));
    if (str_eq(last, text))
        return 0;
    if (json_read_trusted(text, &new_, err) < 0)
        return -1;
    if (last.len && json_read(last, &old, NULL) < 0)
        old = (struct doc){ 0 }; /* somebody else's: nothing is taken away then */
    json_build_init(&b);
    json_mut *patch = difference(&b, old.root, new_.root);
    set_last_applied(&b, patch, text);
    json_write_mut(patch, &patch_text);
    doc_done(&old);
    doc_done(&new_);
    struct object_ref ref = { there->kind, there->meta.namespace_, there->meta.name };
    const struct patch_options options = { .type = PATCH_MERGE };
    return store_patch(f->store, ref, options, buf_str(&patch_text), NULL, err) < 0 ? -1 : 1;
}

static int apply_one(struct applied_folder *f, const struct manifest *item,
                     struct apply_counts *counts, struct err *err)
{
    AUTO_BUF text = { 0 };
    AUTO_OBJECT there = NULL;
    struct object_ref ref = { item->kind, item->namespace_, item->name };
    if (!item->name.len)
        return err_set(err, ERR_INVALID,
                       "generateName makes a new object each time; expected metadata.name");
    canonical_text(item, &text);
    if (store_get(f->store, ref, &there, err) < 0) {
        if (err->kind != ERR_NOT_FOUND || create(f, item, buf_str(&text), err) < 0)
            return -1;
        counts->created++;
        return 0;
    }
    int changed = change(f, there, buf_str(&text), err);
    counts->changed += changed > 0;
    return changed < 0 ? -1 : 0;
}

/* --- all of them --- */

static void key_of(const struct kind *kind, struct str namespace_, struct str name, struct buf *out)
{
    buf_addf(out, "%s/%s/%.*s/%.*s", kind->group, kind->name, STR_ARG(namespace_), STR_ARG(name));
}

static void prune_kind(struct applied_folder *f, const struct kind *kind,
                       const struct str_table *wanted, struct apply_counts *counts)
{
    struct object_list list;
    struct err err;
    if (store_list(f->store, kind, NULL, &list, &err) < 0)
        return;
    for (size_t i = 0; i < list.count; i++) {
        const struct meta *meta = &list.items[i]->meta;
        AUTO_BUF key = { 0 };
        key_of(kind, meta->namespace_, meta->name, &key);
        /* What somebody made from an applied object may have copied its annotations. */
        if (!str_map_get(&meta->annotations, STR(ANNOTATION_LAST_APPLIED)).len ||
            meta_controller(meta) || meta->deleted_us || str_table_has(wanted, buf_str(&key)))
            continue;
        struct object_ref ref = { kind, meta->namespace_, meta->name };
        const struct delete_options options = { .uid = meta->uid };
        if (store_remove(f->store, ref, &options, &err) == 0) {
            counts->removed++;
            log_info(f->maybe_log, "no longer in any file: deleted", LOG_Z("kind", kind->name),
                     LOG_STR("name", meta->name));
        }
    }
    object_list_done(&list);
}

static void apply_all(struct applied_folder *f, const struct manifests *m,
                      struct apply_counts *counts)
{
    struct str_table wanted = { 0 };
    /* Namespaces first: others live in them. */
    for (int namespaces = 1; namespaces >= 0; namespaces--) {
        vec_each(&m->items, struct manifest, item) {
            struct err err;
            AUTO_BUF key = { 0 };
            if (!item->kind || (strcmp(item->kind->name, "Namespace") == 0) != namespaces)
                continue;
            key_of(item->kind, item->namespace_, item->name, &key);
            str_table_put(&wanted, buf_str(&key), f);
            if (apply_one(f, item, counts, &err) == 0)
                continue;
            counts->failed++;
            log_error(f->maybe_log, "cannot be applied", LOG_Z("file", item->file->path),
                      LOG_STR("kind", item->kind_name), LOG_STR("name", item->name), LOG_ERR(&err));
        }
    }
    for (uint32_t i = 0; i < kind_count; i++)
        prune_kind(f, kinds[i], &wanted, counts);
    str_table_done(&wanted);
}

int applied_folder_apply(struct applied_folder *f, struct manifests *m, struct apply_counts *out,
                         struct err *err)
{
    *out = (struct apply_counts){ 0 };
    /* Taken before reading: a change while we read is a change afterwards. */
    f->fingerprint = fingerprint_of(f->path);
    if (manifests_load(m, &f->path, 1, err) < 0)
        return -1;
    if (m->error_count)
        return err_set(err, ERR_INVALID, "%s: %zu error%s in the manifests; nothing was changed",
                       f->path, m->error_count, m->error_count == 1 ? "" : "s");
    apply_all(f, m, out);
    return 0;
}
