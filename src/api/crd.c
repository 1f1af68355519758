/* From a kind's table to its CustomResourceDefinition.
 *
 * The OpenAPI schema is structural: every value has a type, or says that it may be an integer or a
 * string, or that its inside is open. What a table says and OpenAPI cannot (rules of map keys,
 * `check` functions) stays offline.
 */
#include "api/crd.h"
#include "api/karpenter.h"

static json_mut *schema_of_object(struct json_build *b, const struct schema *schema);

/* --- pieces --- */

static json_mut *strings(struct json_build *b, const char *const *words)
{
    json_mut *list = json_new_array(b);
    for (; words && *words; words++)
        json_push(b, list, json_new_str(b, str_of(*words)));
    return list;
}

static void set_text(struct json_build *b, json_mut *object, const char *key, const char *text)
{
    if (text)
        json_set_str(b, object, key, str_of(text));
}

static void set_limit(struct json_build *b, json_mut *object, const char *key, uint32_t limit)
{
    if (limit)
        json_set_i64(b, object, key, limit);
}

static void set_cel(struct json_build *b, json_mut *object, const struct cel_rule *rules)
{
    json_mut *list = json_new_array(b);
    if (!rules || !rules->rule)
        return;
    for (; rules->rule; rules++) {
        json_mut *rule = json_new_object(b);
        set_text(b, rule, "message", rules->message);
        set_text(b, rule, "rule", rules->rule);
        json_push(b, list, rule);
    }
    json_set(b, object, STR("x-kubernetes-validations"), list);
}

static void set_default(struct json_build *b, json_mut *object, const char *text)
{
    struct doc doc;
    struct err err;
    if (!text)
        return;
    int rc = json_read(str_of(text), &doc, &err);
    KV_ASSERT(rc == 0); /* the table has broken JSON */
    json_set(b, object, STR("default"), json_copy(b, doc.root));
    doc_done(&doc);
}

/* The rules that a value of any type can have. */
static void set_rules(struct json_build *b, json_mut *object, const struct rule *rule)
{
    if (!rule)
        return;
    if (rule->enums)
        json_set(b, object, STR("enum"), strings(b, rule->enums));
    set_text(b, object, "format", rule->format);
    set_text(b, object, "pattern", rule->pattern);
    if (rule->min.set)
        json_set_i64(b, object, "minimum", rule->min.value);
    if (rule->max.set)
        json_set_i64(b, object, "maximum", rule->max.value);
    set_limit(b, object, "minLength", rule->len_min);
    set_limit(b, object, "maxLength", rule->len_max);
    set_default(b, object, rule->dflt);
    set_cel(b, object, rule->cel);
}

/* --- values --- */

static json_mut *schema_of_type(struct json_build *b, const char *type, const struct rule *rule)
{
    json_mut *object = json_new_object(b);
    json_set_str(b, object, "type", str_of(type));
    set_rules(b, object, rule);
    return object;
}

static json_mut *schema_of_int_or_string(struct json_build *b, const struct rule *rule)
{
    json_mut *object = json_new_object(b), *either = json_new_array(b);
    json_push(b, either, schema_of_type(b, "integer", NULL));
    json_push(b, either, schema_of_type(b, "string", NULL));
    json_set(b, object, STR("anyOf"), either);
    json_set_bool(b, object, "x-kubernetes-int-or-string", true);
    set_rules(b, object, rule);
    return object;
}

static json_mut *schema_of_quantity(struct json_build *b, const struct rule *rule)
{
    static const struct rule any = { .pattern = PATTERN_QUANTITY };
    return schema_of_int_or_string(b, rule ? rule : &any);
}

static json_mut *schema_of_list(struct json_build *b, json_mut *items, const struct rule *rule)
{
    static const char *const kinds_of_list[] = { NULL, "atomic", "set", "map" };
    json_mut *object = schema_of_type(b, "array", rule);
    json_set(b, object, STR("items"), items);
    if (!rule)
        return object;
    set_limit(b, object, "minItems", rule->items_min);
    set_limit(b, object, "maxItems", rule->items_max);
    set_text(b, object, "x-kubernetes-list-type", kinds_of_list[rule->list_kind]);
    if (rule->list_kind == LIST_MAP)
        json_set(b, object, STR("x-kubernetes-list-map-keys"), strings(b, rule->map_keys));
    return object;
}

static json_mut *schema_of_map(struct json_build *b, json_mut *values, const struct rule *rule)
{
    json_mut *object = schema_of_type(b, "object", rule);
    json_set(b, object, STR("additionalProperties"), values);
    if (!rule)
        return object;
    set_limit(b, object, "minProperties", rule->items_min);
    set_limit(b, object, "maxProperties", rule->items_max);
    if (rule->map_atomic)
        json_set_str(b, object, "x-kubernetes-map-type", STR("atomic"));
    return object;
}

static json_mut *schema_of_open(struct json_build *b, const char *maybe_type)
{
    json_mut *object = json_new_object(b);
    set_text(b, object, "type", maybe_type);
    json_set_bool(b, object, "x-kubernetes-preserve-unknown-fields", true);
    return object;
}

static json_mut *schema_of_struct(struct json_build *b, const struct field *f)
{
    json_mut *object = schema_of_object(b, f->sub);
    set_default(b, object, f->rule ? f->rule->dflt : NULL);
    if (f->flags & FIELD_PRESERVE_UNKNOWN)
        json_set_bool(b, object, "x-kubernetes-preserve-unknown-fields", true);
    return object;
}

static json_mut *schema_of_field(struct json_build *b, const struct field *f)
{
    const struct rule *rule = f->rule, *item = rule ? rule->item : NULL;

    switch ((enum field_type)f->type) {
    case FIELD_OPAQUE:
        return schema_of_open(b, NULL);
    case FIELD_JSON:
        return schema_of_open(b, f->flags & FIELD_PRESERVE_UNKNOWN ? "object" : NULL);
    case FIELD_BOOL:
    case FIELD_TRI:
        return schema_of_type(b, "boolean", rule);
    case FIELD_INT:
    case FIELD_MAYBE_INT:
        return schema_of_type(b, "integer", rule);
    case FIELD_STR:
    case FIELD_ENUM:
    case FIELD_TIME:
    case FIELD_DURATION:
    case FIELD_DURATION_OR_NEVER:
    case FIELD_VERSION:
        return schema_of_type(b, "string", rule);
    case FIELD_INT_OR_STR:
        return schema_of_int_or_string(b, rule);
    case FIELD_QUANTITY:
        return schema_of_quantity(b, rule);
    case FIELD_STRUCT:
    case FIELD_OPTION:
        return schema_of_struct(b, f);
    case FIELD_LIST:
        return schema_of_list(b, schema_of_object(b, f->sub), rule);
    case FIELD_STRS:
        return schema_of_list(b, schema_of_type(b, "string", item), rule);
    case FIELD_STR_MAP:
        return schema_of_map(b, schema_of_type(b, "string", item), rule);
    case FIELD_RESOURCES:
        return schema_of_map(b, schema_of_quantity(b, item), rule);
    case FIELD_MAP:
        return schema_of_map(b, schema_of_object(b, f->sub), rule);
    }
    KV_UNREACHABLE();
}

static json_mut *schema_of_object(struct json_build *b, const struct schema *schema)
{
    json_mut *object = schema_of_type(b, "object", NULL), *properties = json_new_object(b),
             *required = json_new_array(b);
    bool any_required = false;

    set_text(b, object, "description", schema->doc);
    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        if (f->flags & (FIELD_DERIVED | FIELD_CRD_HIDDEN))
            continue;
        json_mut *property = schema_of_field(b, f);
        set_text(b, property, "description", f->doc);
        json_set(b, properties, str_of(f->name), property);
        if (f->flags & FIELD_REQUIRED) {
            json_push(b, required, json_new_str(b, str_of(f->name)));
            any_required = true;
        }
    }
    json_set(b, object, STR("properties"), properties);
    if (any_required)
        json_set(b, object, STR("required"), required);
    if (schema->preserve_unknown)
        json_set_bool(b, object, "x-kubernetes-preserve-unknown-fields", true);
    set_cel(b, object, schema->cel);
    return object;
}

/* --- the definition --- */

/* The members that every object has. An API server knows metadata by itself and allows no more to
 * be said of it than that it is an object. */
static json_mut *schema_of_kind(struct json_build *b, const struct kind *kind)
{
    json_mut *object = schema_of_object(b, kind->schema);
    json_mut *properties = json_mut_get(object, STR("properties"));
    json_mut *version = schema_of_type(b, "string", NULL),
             *name = schema_of_type(b, "string", NULL);

    set_text(b, version, "description", "The group and version of the object's kind.");
    set_text(b, name, "description", "The kind of the object.");
    json_set(b, properties, STR("apiVersion"), version);
    json_set(b, properties, STR("kind"), name);
    json_set(b, properties, STR("metadata"), schema_of_type(b, "object", NULL));
    return object;
}

static json_mut *names_of_kind(struct json_build *b, const struct kind *kind)
{
    json_mut *names = json_new_object(b);
    AUTO_BUF list_kind = { 0 };
    buf_addf(&list_kind, "%sList", kind->name);
    if (kind->crd->categories)
        json_set(b, names, STR("categories"), strings(b, kind->crd->categories));
    json_set_str(b, names, "kind", str_of(kind->name));
    json_set_str(b, names, "listKind", buf_str(&list_kind));
    json_set_str(b, names, "plural", str_of(kind->plural));
    if (kind->crd->short_names)
        json_set(b, names, STR("shortNames"), strings(b, kind->crd->short_names));
    json_set_str(b, names, "singular", str_of(kind->singular));
    return names;
}

static json_mut *columns_of_kind(struct json_build *b, const struct kind *kind)
{
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < kind->crd->column_count; i++) {
        const struct crd_column *c = &kind->crd->columns[i];
        json_mut *column = json_new_object(b);
        set_text(b, column, "description", c->doc);
        set_text(b, column, "jsonPath", c->path);
        set_text(b, column, "name", c->name);
        if (c->priority)
            json_set_i64(b, column, "priority", c->priority);
        set_text(b, column, "type", c->type);
        json_push(b, list, column);
    }
    return list;
}

static json_mut *subresources_of_kind(struct json_build *b, const struct kind *kind)
{
    json_mut *subresources = json_new_object(b);
    if (kind->crd->scale_spec_path) {
        json_mut *scale = json_mut_object(b, subresources, STR("scale"));
        set_text(b, scale, "specReplicasPath", kind->crd->scale_spec_path);
        set_text(b, scale, "statusReplicasPath", kind->crd->scale_status_path);
    }
    if (kind->has_status)
        json_mut_object(b, subresources, STR("status"));
    return subresources;
}

static json_mut *version_of_kind(struct json_build *b, const struct kind *kind)
{
    json_mut *version = json_new_object(b);
    if (kind->crd->column_count)
        json_set(b, version, STR("additionalPrinterColumns"), columns_of_kind(b, kind));
    json_set_str(b, version, "name", str_of(kind->version));
    json_set(b, json_mut_object(b, version, STR("schema")), STR("openAPIV3Schema"),
             schema_of_kind(b, kind));
    json_set_bool(b, version, "served", true);
    json_set_bool(b, version, "storage", true);
    json_set(b, version, STR("subresources"), subresources_of_kind(b, kind));
    return version;
}

json_mut *crd_build(struct json_build *b, const struct kind *kind)
{
    json_mut *crd = json_new_object(b), *versions = json_new_array(b);
    AUTO_BUF name = { 0 };

    KV_ASSERT(kind->crd);
    buf_addf(&name, "%s.%s", kind->plural, kind->group);
    json_set_str(b, crd, "apiVersion", STR("apiextensions.k8s.io/v1"));
    json_set_str(b, crd, "kind", STR("CustomResourceDefinition"));
    json_set_str(b, json_mut_object(b, crd, STR("metadata")), "name", buf_str(&name));

    json_mut *spec = json_mut_object(b, crd, STR("spec"));
    json_set_str(b, spec, "group", str_of(kind->group));
    json_set(b, spec, STR("names"), names_of_kind(b, kind));
    json_set_str(b, spec, "scope", kind->namespaced ? STR("Namespaced") : STR("Cluster"));
    json_push(b, versions, version_of_kind(b, kind));
    json_set(b, spec, STR("versions"), versions);
    return crd;
}
