/* Thousands of pods come from one template. Its text is made once, with holes where the pods differ,
 * and each pod is then a few copies of bytes.
 *
 * The tree is built with two words for the holes that do not occur in the maker's text, so finding
 * them in the result finds the holes and nothing else.
 */
#include "sim/workloads_impl.h"

#include <stdio.h>

void mould_done(struct mould *mould)
{
    buf_done(&mould->text);
    free(mould->pieces);
    *mould = (struct mould){ 0 };
}

void mould_fill(const struct mould *mould, struct str name, struct str detail, struct buf *out)
{
    size_t at = 0;
    for (size_t i = 0; i < mould->piece_count; i++) {
        const struct mould_piece *piece = &mould->pieces[i];
        buf_add(out, (struct str){ mould->text.p + at, piece->end - at });
        at = piece->end;
        if (piece->hole != HOLE_END)
            buf_add(out, piece->hole == HOLE_NAME ? name : detail);
    }
}

static void owner_add(struct draft *d, const struct object *maker)
{
    AUTO_BUF version = { 0 };
    json_mut *owner = json_new_object(&d->b), *owners = json_new_array(&d->b);
    kind_api_version(maker->kind, &version);
    json_set_str(&d->b, owner, "apiVersion", buf_str(&version));
    json_set_str(&d->b, owner, "kind", str_of(maker->kind->name));
    json_set_str(&d->b, owner, "name", maker->meta.name);
    json_set_str(&d->b, owner, "uid", maker->meta.uid);
    json_set_bool(&d->b, owner, "controller", true);
    json_set_bool(&d->b, owner, "blockOwnerDeletion", true);
    json_push(&d->b, owners, owner);
    json_set(&d->b, d->meta, STR("ownerReferences"), owners);
}

static const char *find(struct str text, struct str word)
{
    return text.p ? memmem(text.p, text.len, word.p, word.len) : NULL;
}

void draft_init(struct draft *d, struct str source, const struct object *maker,
                const json_val *maybe_template)
{
    *d = (struct draft){ 0 };
    json_build_init(&d->b);
    for (unsigned i = 0;; i++) {
        snprintf(d->words[0], sizeof d->words[0], "name-goes-here-%u", i);
        snprintf(d->words[1], sizeof d->words[1], "detail-goes-here-%u", i);
        d->name = str_of(d->words[0]);
        d->detail = str_of(d->words[1]);
        if (!find(source, d->name) && !find(source, d->detail))
            break;
    }
    d->root = json_new_object(&d->b);
    d->meta = json_mut_object(&d->b, d->root, STR("metadata"));
    json_set_str(&d->b, d->meta, "name", d->name);
    json_set_str(&d->b, d->meta, "namespace", maker->meta.namespace_);
    const json_val *labels = json_path(maybe_template, "metadata.labels");
    const json_val *annotations = json_path(maybe_template, "metadata.annotations");
    const json_val *spec = json_get(maybe_template, STR("spec"));
    if (labels)
        json_set(&d->b, d->meta, STR("labels"), json_copy(&d->b, labels));
    d->labels = json_mut_object(&d->b, d->meta, STR("labels"));
    if (annotations)
        json_set(&d->b, d->meta, STR("annotations"), json_copy(&d->b, annotations));
    owner_add(d, maker);
    if (spec)
        json_set(&d->b, d->root, STR("spec"), json_copy(&d->b, spec));
    d->spec = json_mut_object(&d->b, d->root, STR("spec"));
}

void draft_done(struct draft *d)
{
    json_build_done(&d->b);
}

void draft_cast(struct draft *d, struct mould *out)
{
    AUTO_BUF text = { 0 };
    VEC(struct mould_piece) pieces = { 0 };
    json_write_mut(d->root, &text);
    mould_done(out);
    for (size_t at = 0; at < text.len;) {
        struct str rest = { text.p + at, text.len - at };
        const char *name = find(rest, d->name);
        const char *detail = find(rest, d->detail);
        bool is_name = name && (!detail || name < detail);
        const char *hole = is_name ? name : detail;
        size_t len = hole ? (size_t)(hole - rest.p) : rest.len;
        buf_add(&out->text, str_sub(rest, 0, len));
        vec_push(&pieces, (struct mould_piece){ .end = out->text.len,
                                                .hole = !hole     ? HOLE_END
                                                        : is_name ? HOLE_NAME
                                                                  : HOLE_DETAIL });
        at += len + (hole ? (is_name ? d->name.len : d->detail.len) : 0);
    }
    out->pieces = pieces.items;
    out->piece_count = pieces.count;
}

void template_hash(const json_val *template, struct str but_label, char out[TEMPLATE_HASH_LEN + 1])
{
    AUTO_JSON_BUILD b;
    AUTO_BUF text = { 0 }, canonical = { 0 };
    struct doc doc = { 0 };
    struct rng rng;
    json_build_init(&b);
    json_mut *root = json_copy(&b, template);
    json_mut *meta = json_mut_get(root, STR("metadata"));
    if (meta)
        json_mut_remove(meta, STR("creationTimestamp"));
    json_mut *labels = meta ? json_mut_get(meta, STR("labels")) : NULL;
    if (labels && but_label.len)
        json_mut_remove(labels, but_label);
    json_write_mut(root, &text);
    int rc = json_read_trusted(buf_str(&text), &doc, NULL);
    KV_ASSERT(rc == 0);
    json_write_canonical(doc.root, &canonical);
    doc_done(&doc);
    rng_init(&rng, kv_hash(canonical.p, canonical.len));
    rng_name(&rng, out, TEMPLATE_HASH_LEN);
}
