/* store/embedded_load.c - a whole store as text, out and in. */
#include "store/embedded_impl.h"

#include "api/policy.h"
#include "codec/yaml.h"

/* --- in --- */

struct load {
    struct embedded *e;
    bool namespaces; /* this pass takes only them: everything else lives in one */
    struct embedded_loaded loaded;
};

static int load_object(struct load *load, const json_val *root, struct err *err)
{
    struct str kind_name = json_str(json_get(root, STR("kind")));
    struct str version = json_str(json_get(root, STR("apiVersion")));
    AUTO_OBJECT object = NULL;

    if (kind_name.len == 0 || version.len == 0)
        return err_set(err, ERR_INVALID, "apiVersion and kind are required");
    const struct kind *kind = kind_find(version, kind_name);
    if ((kind == &namespace_kind) != load->namespaces)
        return 0;
    if (!kind) {
        load->loaded.skipped_count++;
        return 0;
    }
    if (embedded_create(load->e, kind_state(load->e, kind), STR(""), root, true, &object, err) <
        0) {
        struct str name = json_str(json_path(root, "metadata.name"));
        return err_wrap(err, "%s/%.*s", kind->name, STR_ARG(name));
    }
    load->loaded.object_count++;
    return 0;
}

static int load_document(struct load *load, const json_val *root, struct err *err)
{
    const json_val *items = json_get(root, STR("items"));

    if (!json_is_object(root))
        return err_set(err, ERR_INVALID, "expected an object, found %s", json_type_name(root));
    if (!json_is_array(items) || !str_ends(json_str(json_get(root, STR("kind"))), STR("List")))
        return load_object(load, root, err);
    json_each_item(items, item) {
        if (load_object(load, item, err) < 0)
            return -1;
    }
    return 0;
}

int embedded_load(struct embedded *e, struct str text, struct embedded_loaded *out, struct err *err)
{
    struct docs docs = { 0 };
    struct load load = { .e = e };
    struct text_pos at = { 0 };
    int rc = 0;

    if (yaml_read(text, &docs, &at, err) < 0)
        return err_wrap(err, "line %u, column %u", at.line, at.col);
    /* One call: the garbage collector must not look before owners and dependents are all there. */
    embedded_lock(e);
    for (int pass = 0; pass < 2 && rc == 0; pass++) {
        load.namespaces = pass == 0;
        for (size_t i = 0; i < docs.count && rc == 0; i++) {
            rc = load_document(&load, docs.items[i].root, err);
            if (rc < 0) {
                at = doc_position(&docs.items[i], docs.items[i].root);
                err_wrap(err, "line %u", at.line);
            }
        }
    }
    embedded_unlock(e);
    docs_done(&docs);
    if (out)
        *out = load.loaded;
    return rc;
}

/* --- out --- */

static void dump_kind(const struct kind_state *ks, struct buf *out)
{
    for (sorted_each(&ks->entries, STR(""), it)) {
        const struct entry *entry = it.item->value;
        AUTO_DOC doc = { 0 };
        int rc = json_read_trusted(entry->text, &doc, NULL);
        KV_ASSERT(rc == 0);
        buf_addz(out, "---\n");
        yaml_write(doc.root, out);
        if (out->p[out->len - 1] != '\n')
            buf_addc(out, '\n');
    }
}

static int kind_order(const void *a, const void *b)
{
    const struct kind *x = (*(const struct kind_state *const *)a)->kind;
    const struct kind *y = (*(const struct kind_state *const *)b)->kind;
    if ((x == &namespace_kind) != (y == &namespace_kind))
        return x == &namespace_kind ? -1 : 1;
    int order = strcmp(x->name, y->name);
    return order ? order : strcmp(x->group, y->group);
}

void embedded_dump(struct embedded *e, struct buf *out)
{
    embedded_lock(e);
    struct kind_state **sorted = kv_calloc(e->kinds.count, sizeof *sorted);
    memcpy(sorted, e->kinds.items, e->kinds.count * sizeof *sorted);
    qsort(sorted, e->kinds.count, sizeof *sorted, kind_order);
    for (size_t i = 0; i < e->kinds.count; i++)
        dump_kind(sorted[i], out);
    free(sorted);
    embedded_unlock(e);
}
