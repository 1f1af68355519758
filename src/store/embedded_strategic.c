/* store/embedded_strategic.c - strategic merge patches, for the kinds of Kubernetes itself.
 *
 * A merge patch that knows some lists: their items have a key and are merged one by one, or they
 * are sets of strings. The lists are told by their field names, which are unambiguous in the kinds
 * that karve reads; every other list is replaced as a whole (a Node's taints, a pod's
 * tolerations).
 *
 * Directives: `$patch: replace|delete|merge` in an object, `$deleteFromPrimitiveList/FIELD`,
 * `$retainKeys`, and `$setElementOrder/FIELD`, which is accepted and ignored: items keep the order
 * that the API server gives them without it (those of the patch where the list has them, new ones
 * before what follows).
 */
#include "store/embedded_impl.h"

#define DELETE_PRIMITIVES "$deleteFromPrimitiveList/"

struct list_rule {
    const char *field;
    const char *key; /* of its items; "" for sets of strings */
};

static const struct list_rule list_rules[] = {
    { "addresses", "type" },
    { "conditions", "type" },
    { "containers", "name" },
    { "drivers", "name" },
    { "env", "name" },
    { "ephemeralContainers", "name" },
    { "finalizers", "" },
    { "hostAliases", "ip" },
    { "hostIPs", "ip" },
    { "imagePullSecrets", "name" },
    { "initContainers", "name" },
    { "ownerReferences", "uid" },
    { "podCIDRs", "" },
    { "podIPs", "ip" },
    { "ports", "containerPort" }, /* a container's */
    { "ports", "port" },          /* a Service's */
    { "resourceClaims", "name" },
    { "schedulingGates", "name" },
    { "topologySpreadConstraints", "topologyKey" },
    { "volumeDevices", "devicePath" },
    { "volumeMounts", "mountPath" },
    { "volumes", "name" },
};

/* NULL: the list is replaced as a whole. Where two kinds of list share a name, the items tell. */
static const struct list_rule *rule_of(struct str field, const json_val *patch)
{
    const json_val *first = json_at(patch, 0);

    for (size_t i = 0; i < KV_COUNT_OF(list_rules); i++) {
        const struct list_rule *rule = &list_rules[i];
        if (!str_eqz(field, rule->field))
            continue;
        if (i + 1 < KV_COUNT_OF(list_rules) && strcmp(rule->field, rule[1].field) == 0 &&
            !json_get(first, str_of(rule->key)))
            continue;
        return rule;
    }
    return NULL;
}

static json_mut *merge_object(struct json_build *b, const json_val *target, const json_val *patch,
                              struct err *err);

static bool is_directive(struct str key)
{
    return key.len > 0 && key.p[0] == '$';
}

static bool has_item(const json_val *list, const json_val *item)
{
    json_each_item(list, it) {
        if (json_equal(it, item))
            return true;
    }
    return false;
}

/* --- lists --- */

static const json_val *identity(const struct list_rule *rule, const json_val *item)
{
    return rule->key[0] ? json_get(item, str_of(rule->key)) : item;
}

static ptrdiff_t find(const struct list_rule *rule, const json_val *list, const json_val *id)
{
    ptrdiff_t ix = 0;

    json_each_item(list, item) {
        const json_val *other = identity(rule, item);
        if (other && id && json_equal(other, id))
            return ix;
        ix++;
    }
    return -1;
}

static bool is_deleted(const json_val *item)
{
    return str_eqz(json_str(json_get(item, STR("$patch"))), "delete");
}

static int check_items(const struct list_rule *rule, const json_val *patch, bool *replaced,
                       struct err *err)
{
    json_each_item(patch, item) {
        struct str directive = json_str(json_get(item, STR("$patch")));
        if (str_eqz(directive, "replace") && json_count(item) == 1)
            *replaced = true;
        else if (!identity(rule, item))
            return err_set(err, ERR_INVALID, "patch: an item of %s does not have the merge key %s",
                           rule->field, rule->key);
    }
    return 0;
}

static int push_merged(struct json_build *b, json_mut *out, const json_val *maybe_target,
                       const json_val *item, struct err *err)
{
    json_mut *merged =
        json_is_object(item) ? merge_object(b, maybe_target, item, err) : json_copy(b, item);
    if (!merged)
        return -1;
    json_push(b, out, merged);
    return 0;
}

/* The patch's items in its order, among them what only the target has, in the target's order. */
static json_mut *merge_list(struct json_build *b, const struct list_rule *rule,
                            const json_val *target, const json_val *patch, const json_val *deleted,
                            struct err *err)
{
    json_mut *out = json_new_array(b);
    bool replaced = false;
    ptrdiff_t target_ix = 0;
    ptrdiff_t target_count = (ptrdiff_t)json_count(target);

    if (check_items(rule, patch, &replaced, err) < 0)
        return NULL;
    if (replaced)
        target_ix = target_count;
    json_each_item(patch, item) {
        if (!identity(rule, item) || is_deleted(item))
            continue;
        ptrdiff_t home = replaced ? -1 : find(rule, target, identity(rule, item));
        for (; target_ix < home; target_ix++) {
            const json_val *own = json_at(target, (size_t)target_ix);
            if (find(rule, patch, identity(rule, own)) < 0 && !has_item(deleted, own))
                json_push(b, out, json_copy(b, own));
        }
        if (push_merged(b, out, home < 0 ? NULL : json_at(target, (size_t)home), item, err) < 0)
            return NULL;
    }
    for (; target_ix < target_count; target_ix++) {
        const json_val *own = json_at(target, (size_t)target_ix);
        if (find(rule, patch, identity(rule, own)) < 0 && !has_item(deleted, own))
            json_push(b, out, json_copy(b, own));
    }
    return out;
}

/* --- objects --- */

/* One member: `target` may be NULL, `patch` NULL when only a deletion list concerns it. */
static json_mut *merge_member(struct json_build *b, struct str key, const json_val *target,
                              const json_val *patch, const json_val *deleted, struct err *err)
{
    if (json_is_object(patch))
        return merge_object(b, json_is_object(target) ? target : NULL, patch, err);
    const struct list_rule *rule = rule_of(key, patch);
    if (rule && (json_is_array(patch) || (deleted && !patch)))
        return merge_list(b, rule, json_is_array(target) ? target : NULL, patch, deleted, err);
    return json_copy(b, patch ? patch : target);
}

static const json_val *deletions(const json_val *patch, struct str key)
{
    AUTO_BUF name = { 0 };
    buf_addz(&name, DELETE_PRIMITIVES);
    buf_add(&name, key);
    return json_get(patch, buf_str(&name));
}

static int check_directives(const json_val *patch, struct err *err)
{
    json_each_member(patch, key, val) {
        struct str name = json_str(key);
        bool known = str_eqz(name, "$retainKeys") || str_starts(name, STR(DELETE_PRIMITIVES)) ||
                     str_starts(name, STR("$setElementOrder/"));
        if (str_eqz(name, "$patch")) {
            struct str what = json_str(val);
            known = str_eqz(what, "replace") || str_eqz(what, "merge") || str_eqz(what, "delete");
        }
        if (is_directive(name) && !known)
            return err_set(err, ERR_INVALID, "patch: unknown directive %.*s", STR_ARG(name));
    }
    return 0;
}

static bool is_retained(const json_val *maybe_retain, const json_val *key)
{
    return !maybe_retain || has_item(maybe_retain, key);
}

/* NULL: an error. An object that the patch deletes becomes empty. */
static json_mut *merge_object(struct json_build *b, const json_val *target, const json_val *patch,
                              struct err *err)
{
    json_mut *out = json_new_object(b);
    struct str directive = json_str(json_get(patch, STR("$patch")));
    const json_val *retain = json_get(patch, STR("$retainKeys"));

    if (check_directives(patch, err) < 0)
        return NULL;
    if (str_eqz(directive, "delete"))
        return out;
    if (str_eqz(directive, "replace"))
        target = NULL;

    json_each_member(target, key, val) {
        struct str name = json_str(key);
        const json_val *change = json_get(patch, name), *deleted = deletions(patch, name);
        if (json_is_null(change) || !is_retained(retain, key))
            continue;
        json_mut *merged = change || deleted ? merge_member(b, name, val, change, deleted, err)
                                             : json_copy(b, val);
        if (!merged)
            return NULL;
        json_set(b, out, name, merged);
    }
    json_each_member(patch, key, val) {
        struct str name = json_str(key);
        if (is_directive(name) || json_is_null(val) || json_get(target, name))
            continue;
        json_mut *merged = merge_member(b, name, NULL, val, NULL, err);
        if (!merged)
            return NULL;
        json_set(b, out, name, merged);
    }
    return out;
}

int strategic_merge(struct json_build *b, const json_val *target, const json_val *patch,
                    json_mut **out, struct err *err)
{
    json_mut *merged = merge_object(b, target, patch, err);
    if (!merged)
        return -1;
    *out = merged;
    return 0;
}
