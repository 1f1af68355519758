/* The field reference: the same tables as the CRD, in Markdown for people. */
#include "api/crd.h"
#include "api/karpenter.h"

/* Text of a table's cell: a bar would end the cell. */
static void cell_add(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (*text == '|')
            buf_addc(out, '\\');
        buf_addc(out, *text == '\n' ? ' ' : *text);
    }
}

static const char *type_name(const struct field *f)
{
    switch ((enum field_type)f->type) {
    case FIELD_OPAQUE:
    case FIELD_JSON:
        return f->flags & FIELD_PRESERVE_UNKNOWN ? "object" : "any";
    case FIELD_BOOL:
    case FIELD_TRI:
        return "boolean";
    case FIELD_INT:
    case FIELD_MAYBE_INT:
        return "integer";
    case FIELD_STR:
    case FIELD_ENUM:
    case FIELD_VERSION:
        return "string";
    case FIELD_TIME:
        return "time";
    case FIELD_DURATION:
        return "duration";
    case FIELD_DURATION_OR_NEVER:
        return "duration or Never";
    case FIELD_INT_OR_STR:
        return "integer or string";
    case FIELD_QUANTITY:
        return "quantity";
    case FIELD_STRUCT:
    case FIELD_OPTION:
        return "object";
    case FIELD_LIST:
        return "list of objects";
    case FIELD_STRS:
        return "list of strings";
    case FIELD_STR_MAP:
        return "map of strings";
    case FIELD_RESOURCES:
        return "map of quantities";
    case FIELD_MAP:
        return "map of objects";
    }
    KV_UNREACHABLE();
}

/* Rules are phrases with a semicolon between them. */
static void phrase(struct buf *out, size_t start)
{
    if (out->len > start)
        buf_addz(out, "; ");
}

static void limits_add(struct buf *out, size_t start, uint32_t low, uint32_t high, const char *what)
{
    if (!low && !high)
        return;
    phrase(out, start);
    if (low && high)
        buf_addf(out, "%u to %u %s", low, high, what);
    else
        buf_addf(out, "at %s %u %s", low ? "least" : "most", low ? low : high, what);
}

static void cel_add(struct buf *out, size_t start, const struct cel_rule *rules)
{
    for (; rules && rules->rule; rules++) {
        phrase(out, start);
        cell_add(out, rules->message);
    }
}

static void rule_add(struct buf *out, size_t start, const struct rule *rule, const char *of)
{
    if (!rule)
        return;
    if (rule->enums) {
        phrase(out, start);
        buf_addf(out, "%sone of ", of);
        for (size_t i = 0; rule->enums[i]; i++)
            buf_addf(out, "%s`%s`", i ? ", " : "", rule->enums[i]);
    }
    if (rule->min.set || rule->max.set) {
        phrase(out, start);
        if (rule->min.set && rule->max.set)
            buf_addf(out, "%s%lld to %lld", of, (long long)rule->min.value,
                     (long long)rule->max.value);
        else
            buf_addf(out, "%sat %s %lld", of, rule->min.set ? "least" : "most",
                     (long long)(rule->min.set ? rule->min.value : rule->max.value));
    }
    limits_add(out, start, rule->len_min, rule->len_max, "characters");
    if (rule->pattern && strcmp(rule->pattern, PATTERN_QUANTITY) != 0) {
        phrase(out, start);
        buf_addf(out, "%smatches `", of);
        cell_add(out, rule->pattern);
        buf_addc(out, '`');
    }
    limits_add(out, start, rule->items_min, rule->items_max, "items");
    if (rule->list_kind == LIST_SET) {
        phrase(out, start);
        buf_addz(out, "no item twice");
    }
    for (const char *const *key = rule->map_keys; key && *key; key++) {
        phrase(out, start);
        buf_addf(out, "no two items with the same %s", *key);
    }
    cel_add(out, start, rule->cel);
    rule_add(out, start, rule->item, "each ");
}

static bool is_object(const struct field *f)
{
    return f->sub && f->type != FIELD_OPAQUE;
}

static bool is_list(const struct field *f)
{
    return f->type == FIELD_LIST || f->type == FIELD_STRS;
}

static void field_add(const struct field *f, struct str path, struct buf *out)
{
    buf_addf(out, "| `%.*s%s` | %s | ", STR_ARG(path), is_list(f) ? "[]" : "", type_name(f));
    if (f->rule && f->rule->dflt) {
        buf_addc(out, '`');
        cell_add(out, f->rule->dflt);
        buf_addc(out, '`');
    }
    buf_addz(out, " | ");
    size_t start = out->len;
    if (f->flags & FIELD_REQUIRED)
        buf_addz(out, "required");
    rule_add(out, start, f->rule, "");
    if (is_object(f))
        cel_add(out, start, f->sub->cel);
    buf_addz(out, " | ");
    cell_add(out, f->doc ? f->doc : "");
    buf_addz(out, " |\n");
}

static void fields_add(const struct schema *schema, struct str up, struct buf *out)
{
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        AUTO_BUF path = { 0 };
        if ((f->flags & (FIELD_DERIVED | FIELD_CRD_HIDDEN)) || !f->doc)
            continue;
        buf_addf(&path, "%.*s%s%s", STR_ARG(up), up.len ? "." : "", f->name);
        field_add(f, buf_str(&path), out);
        if (is_list(f))
            buf_addz(&path, "[]");
        if (f->type == FIELD_MAP)
            buf_addz(&path, ".*");
        if (is_object(f))
            fields_add(f->sub, buf_str(&path), out);
    }
}

static void words_add(struct buf *out, const char *label, const char *const *words)
{
    if (!words)
        return;
    buf_addf(out, "- %s: ", label);
    for (size_t i = 0; words[i]; i++)
        buf_addf(out, "%s`%s`", i ? ", " : "", words[i]);
    buf_addc(out, '\n');
}

void crd_reference(const struct kind *kind, struct buf *out)
{
    KV_ASSERT(kind->crd);
    buf_addf(out, "# %s\n\n%s\n\n", kind->name, kind->schema->doc);
    buf_addf(out, "- apiVersion: `%s/%s`\n", kind->group, kind->version);
    buf_addf(out, "- scope: %s\n", kind->namespaced ? "namespace" : "cluster");
    buf_addf(out, "- resource: `%s`\n", kind->plural);
    words_add(out, "short names", kind->crd->short_names);
    words_add(out, "categories", kind->crd->categories);
    buf_addf(out, "- subresources: %s%s\n\n", kind->has_status ? "status" : "none",
             kind->crd->scale_spec_path ? ", scale" : "");
    buf_addz(out, "| Field | Type | Default | Rules | Meaning |\n|---|---|---|---|---|\n");
    fields_add(kind->schema, STR(""), out);
}
