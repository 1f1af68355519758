/* ObjectMeta: the table of what every object has. Labels, annotations and owners are shared: the
 * pods of one workload have them in common. */
#include "api/common.h"

#include <stdio.h>

static const struct rule label_map_rule = { .key = &label_key_rule, .item = &label_value_rule };
static const struct rule name_rule = { .check = dns1123_subdomain_problem };
static const struct rule namespace_rule = { .check = dns1123_label_problem };

/* A prefix may end in the middle of a name: "web-" is fine, so a letter is put behind it. */
static const char *generate_name_problem(struct str prefix)
{
    char name[512];
    int len = snprintf(name, sizeof name, "%.*sx", STR_ARG(prefix));
    if ((size_t)len >= sizeof name)
        return "is too long, expected at most 253 characters";
    return dns1123_subdomain_problem((struct str){ name, (size_t)len });
}
static const struct rule generate_name_rule = { .check = generate_name_problem };

/* Old finalizers have no domain ("orphan", "foregroundDeletion"), new ones look like label keys. */
static const struct rule finalizers_rule = { .item = &label_key_rule };

static const struct rule owner_text_rule = { .len_min = 1 };

#define T struct owner_ref
static const struct field owner_ref_fields[] = {
    FIELD(STR, api_version, "apiVersion", NULL, .flags = FIELD_REQUIRED, .rule = &owner_text_rule),
    FIELD(STR, kind, "kind", NULL, .flags = FIELD_REQUIRED, .rule = &owner_text_rule),
    FIELD(STR, name, "name", NULL, .flags = FIELD_REQUIRED, .rule = &owner_text_rule),
    FIELD(STR, uid, "uid", NULL, .flags = FIELD_REQUIRED, .rule = &owner_text_rule),
    FIELD(BOOL, controller, "controller", NULL),
    FIELD(BOOL, block_owner_deletion, "blockOwnerDeletion", NULL),
};
#undef T
static const struct schema owner_ref_schema =
    SCHEMA("OwnerReference", struct owner_ref, owner_ref_fields);

static bool has_one_controller(const json_val *self, const json_val *old KV_UNUSED)
{
    uint32_t count = 0;
    json_each_item(self, owner)
        count += json_bool(json_get(owner, STR("controller")));
    return count <= 1;
}

static const struct cel_rule owners_cel[] = {
    { .rule = "self.filter(o, has(o.controller) && o.controller).size() <= 1",
      .message = "has several owners with controller: true, expected at most one",
      .holds = has_one_controller },
    { 0 },
};
static const struct rule owners_rule = { .cel = owners_cel, KEYED_BY("uid") };

/* The API server refuses more than this of annotations, keys and values together. */
#define ANNOTATIONS_BYTES_MAX (256 << 10)

static bool annotations_fit(const json_val *self, const json_val *old KV_UNUSED)
{
    size_t bytes = 0;
    json_each_member(self, key, value)
        bytes += json_str(key).len + json_str(value).len;
    return bytes <= ANNOTATIONS_BYTES_MAX;
}

static const struct cel_rule annotations_cel[] = {
    { .rule = "self.map(k, k.size() + self[k].size()).sum() <= 262144",
      .message = "is too large, expected at most 262144 bytes in all",
      .holds = annotations_fit },
    { 0 },
};
static const struct rule annotations_rule = { .key = &label_key_rule, .cel = annotations_cel };

#define T struct meta
static const struct field meta_fields[] = {
    FIELD(STR, name, "name", NULL, .rule = &name_rule),
    FIELD(STR, generate_name, "generateName", NULL, .rule = &generate_name_rule),
    FIELD(STR, namespace_, "namespace", NULL, .rule = &namespace_rule),
    CHECKED(STR, "selfLink"),
    FIELD(STR, uid, "uid", NULL),
    FIELD(VERSION, resource_version, "resourceVersion", NULL),
    FIELD(INT, generation, "generation", NULL),
    FIELD(TIME, created_us, "creationTimestamp", NULL),
    FIELD(TIME, deleted_us, "deletionTimestamp", NULL),
    FIELD(MAYBE_INT, deletion_grace_s, "deletionGracePeriodSeconds", NULL),
    FIELD(STR_MAP, labels, "labels", NULL, .flags = FIELD_SHARED, .rule = &label_map_rule),
    FIELD(STR_MAP, annotations, "annotations", NULL, .flags = FIELD_SHARED,
          .rule = &annotations_rule),
    FIELD(LIST, owners, "ownerReferences", NULL, .flags = FIELD_SHARED, .sub = &owner_ref_schema,
          .rule = &owners_rule),
    FIELD(STRS, finalizers, "finalizers", NULL, .rule = &finalizers_rule),
    FIELD_KNOWN("managedFields"),
};
#undef T
const struct schema meta_schema = SCHEMA("ObjectMeta", struct meta, meta_fields);

#define T struct meta_template
static const struct field meta_template_fields[] = {
    CHECKED(STR, "name"),
    CHECKED(STR, "generateName"),
    CHECKED(STR, "namespace"),
    FIELD_KNOWN("creationTimestamp"),
    FIELD(STR_MAP, labels, "labels", NULL, .rule = &label_map_rule),
    FIELD(STR_MAP, annotations, "annotations", NULL, .rule = &annotations_rule),
    CHECKED(LIST, "ownerReferences", .sub = &owner_ref_schema, .rule = &owners_rule),
    CHECKED(STRS, "finalizers", .rule = &finalizers_rule),
};
#undef T
const struct schema meta_template_schema =
    SCHEMA("ObjectMeta", struct meta_template, meta_template_fields);

const struct owner_ref *meta_controller(const struct meta *meta)
{
    for (uint32_t i = 0; i < meta->owners.count; i++) {
        if (meta->owners.items[i].controller)
            return &meta->owners.items[i];
    }
    return NULL;
}
