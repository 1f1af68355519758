/* What writes would have made of an object. It need not be right to the last default: the API server
 * alone knows that. It is what the writer goes on with until it reads again. */
#include "store/dry_run_inner.h"

#include "api/kinds.h"
#include "base/rng.h"
#include "codec/duration.h"
#include "store/strategic.h"

#define AUTO_DOC __attribute__((cleanup(doc_done))) struct doc

static int decode(struct object_pool *pool, const struct kind *kind, const json_mut *root,
                  const struct object **out, struct err *err)
{
    AUTO_BUF text = { 0 };
    AUTO_DOC doc = { 0 };
    json_write_mut(root, &text);
    if (json_read_trusted(buf_str(&text), &doc, err) < 0)
        return -1;
    return object_decode(pool, kind, doc.root, out, err);
}

/* --- creations --- */

/* The same for the same object: a claim that is decided on again has the UID that it had. */
static void set_uid(struct json_build *b, json_mut *meta, const struct object_ref *ref)
{
    struct rng rng;
    char uid[37];
    uint64_t hash = dry_told_hash_str(str_of(ref->kind->name), 0);
    rng_init(&rng, dry_told_hash_str(ref->name, dry_told_hash_str(ref->namespace_, hash)));
    rng_uuid(&rng, uid);
    json_set_str(b, meta, "uid", str_of(uid));
}

static void set_time(struct json_build *b, json_mut *meta, int64_t now_us)
{
    char text[TIME_TEXT_MAX];
    size_t len = time_format(now_us, text);
    json_set_str(b, meta, "creationTimestamp", (struct str){ text, len });
}

static int refuse(const struct object_ref *ref, const struct report *report, struct err *err)
{
    vec_each(&report->problems, struct problem, p) {
        if (p->severity == PROBLEM_ERROR)
            return err_set(err, ERR_INVALID, "%s \"%.*s\" is invalid: %.*s%s%.*s", ref->kind->name,
                           STR_ARG(ref->name), STR_ARG(p->path), p->path.len ? ": " : "",
                           STR_ARG(p->what));
    }
    return err_set(err, ERR_INVALID, "%s \"%.*s\" is invalid", ref->kind->name, STR_ARG(ref->name));
}

/* Defaults and validation. */
static int admit(struct object_pool *pool, const struct object_ref *ref, struct json_build *b,
                 const json_mut *asked, const struct object **out, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    AUTO_DOC doc = { 0 };
    struct report report = { .arena = &arena, .crd_only = ref->kind->crd != NULL };
    json_write_mut(asked, &text);
    if (json_read_trusted(buf_str(&text), &doc, err) < 0)
        return -1;
    json_mut *root = object_admit(ref->kind, b, doc.root, NULL, &report);
    int rc = !root || report.error_count ? refuse(ref, &report, err)
                                         : decode(pool, ref->kind, root, out, err);
    report_done(&report);
    return rc;
}

int dry_create(struct object_pool *pool, const struct object_ref *ref, const json_val *said,
               int64_t now_us, const struct object **out, struct err *err)
{
    AUTO_JSON_BUILD b;
    AUTO_BUF version = { 0 };
    json_build_init(&b);
    json_mut *root = json_copy(&b, said), *meta = json_mut_object(&b, root, STR("metadata"));
    kind_api_version(ref->kind, &version);
    json_set_str(&b, root, "apiVersion", buf_str(&version));
    json_set_str(&b, root, "kind", str_of(ref->kind->name));
    json_set_str(&b, meta, "name", ref->name);
    if (ref->kind->namespaced)
        json_set_str(&b, meta, "namespace", ref->namespace_);
    /* No version: it never was in a store, and nobody waits until it comes from there. */
    json_mut_remove(meta, STR("resourceVersion"));
    json_set_i64(&b, meta, "generation", 1);
    set_uid(&b, meta, ref);
    set_time(&b, meta, now_us);
    if (ref->kind->has_status && ref->kind != &node_kind)
        json_mut_remove(root, STR("status"));
    return admit(pool, ref, &b, root, out, err);
}

/* --- patches --- */

static int apply(const struct kind *kind, enum patch_type type, const json_val *old,
                 const json_val *patch, struct json_build *b, json_mut **out, struct err *err)
{
    if (type == PATCH_JSON)
        return json_patch(b, old, patch, out, err);
    if (!json_is_object(patch))
        return err_set(err, ERR_INVALID, "a merge patch is an object, found %s",
                       json_type_name(patch));
    if (type == PATCH_STRATEGIC && !kind_is_builtin(kind))
        return err_set(err, ERR_INVALID,
                       "strategic merge patches are not supported for custom resources");
    if (type == PATCH_STRATEGIC)
        return strategic_merge(b, old, patch, out, err);
    *out = json_merge_patch(b, old, patch);
    return 0;
}

/* A patch of the status changes nothing else, and the other way round. */
static json_mut *only_its_part(const struct kind *kind, bool status, const json_val *old,
                               json_mut *patched, struct json_build *b)
{
    const json_val *old_status = json_get(old, STR("status"));
    if (!kind->has_status)
        return patched;
    if (status) {
        json_mut *root = json_copy(b, old), *new_status = json_mut_get(patched, STR("status"));
        json_mut_remove(root, STR("status"));
        if (new_status)
            json_set(b, root, STR("status"), json_mut_copy(b, new_status));
        return root;
    }
    json_mut_remove(patched, STR("status"));
    if (old_status)
        json_set(b, patched, STR("status"), json_copy(b, old_status));
    return patched;
}

static bool is_same(const json_val *old, const json_mut *patched)
{
    AUTO_BUF text = { 0 };
    AUTO_DOC doc = { 0 };
    struct err err;
    json_write_mut(patched, &text);
    return json_read_trusted(buf_str(&text), &doc, &err) == 0 && json_equal(old, doc.root);
}

static void set_version(struct json_build *b, json_mut *root, uint64_t version)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, "%llu", (unsigned long long)version);
    json_set_str(b, json_mut_object(b, root, STR("metadata")), "resourceVersion", buf_str(&text));
}

int dry_patch(struct object_pool *pool, const struct object *now, struct str text,
              struct patch_options opts, const json_val *patch, const struct object **out,
              bool *changed, struct err *err)
{
    AUTO_DOC old = { 0 };
    AUTO_JSON_BUILD b;
    json_mut *patched;
    struct err ignored;

    json_build_init(&b);
    if (json_read_trusted(text, &old, err) < 0 ||
        apply(now->kind, opts.type, old.root, patch, &b, &patched, err) < 0)
        return -1;
    patched = only_its_part(now->kind, opts.status, old.root, patched, &b);
    *changed = !is_same(old.root, patched);
    set_version(&b, patched, now->meta.resource_version);
    if (decode(pool, now->kind, patched, out, &ignored) < 0)
        *out = object_ref(now);
    return 0;
}
