/* Defaults, as the API server adds them to a CRD's objects: from the outside in, so that a default
 * object gets the defaults inside it; what is absent without a default stays absent. Null counts
 * as absent, and so does an empty word (see schema.h). */
#include "api/schema_walk.h"

static bool is_absent(const struct field *f, const json_mut *v)
{
    struct str s = json_mut_str(v);
    return !v || json_mut_is_null(v) || (f->type == FIELD_ENUM && s.p && s.len == 0);
}

static json_mut *default_value(struct json_build *b, const struct rule *rule)
{
    struct doc doc;
    struct err err;
    int rc = json_read(str_of(rule->dflt), &doc, &err);
    KV_ASSERT(rc == 0); /* the table has broken JSON */
    json_mut *v = json_copy(b, doc.root);
    doc_done(&doc);
    return v;
}

static void default_inside(const struct field *f, struct json_build *b, json_mut *v)
{
    if (!f->sub)
        return;
    if (f->type == FIELD_STRUCT || f->type == FIELD_OPTION)
        schema_default(f->sub, b, v);
    if (f->type == FIELD_LIST)
        json_each_mut_item(v, item) schema_default(f->sub, b, item);
    if (f->type == FIELD_MAP)
        json_each_mut_member(v, key, value) schema_default(f->sub, b, value);
}

void schema_default(const struct schema *schema, struct json_build *b, json_mut *v)
{
    if (!json_mut_is_object(v))
        return;
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        struct str name = { f->name, f->name_len };
        bool has_default = f->rule && f->rule->dflt;
        if ((f->flags & FIELD_DERIVED) || (!has_default && !f->sub))
            continue;
        json_mut *value = json_mut_get(v, name);
        if (is_absent(f, value)) {
            if (!has_default)
                continue;
            value = default_value(b, f->rule);
            json_set(b, v, name, value);
        }
        default_inside(f, b, value);
    }
}
