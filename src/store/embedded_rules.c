/* store/embedded_rules.c - what a write may say, beyond what the kind's table says.
 *
 * The API server treats metadata in three ways: what contradicts the stored object is refused
 * (another name or uid, a stale version, a new deletionTimestamp), what the server alone decides is
 * put back without a word (generation, creationTimestamp), the rest is the writer's. Status is a world of
 * its own: writes to the object leave it alone, writes to the subresource leave all else alone.
 */
#include "store/embedded_impl.h"

#include "api/pod.h"
#include "api/policy.h"

static const json_val *present(const json_val *v)
{
    return json_is_null(v) ? NULL : v;
}

bool json_same(const json_val *a, const json_val *b)
{
    a = present(a);
    b = present(b);
    return a == b || (a && b && json_equal(a, b));
}

static struct str text_at(const json_val *object, const char *key)
{
    return json_str(json_get(object, str_of(key)));
}

int rule_type(const struct kind *kind, const json_val *root, struct err *err)
{
    AUTO_BUF version = { 0 };

    if (!json_is_object(root))
        return err_set(err, ERR_INVALID, "%s: expected an object, found %s", kind->plural,
                       json_type_name(root));
    const json_val *meta = json_get(root, STR("metadata"));
    if (present(meta) && !json_is_object(meta))
        return err_set(err, ERR_INVALID, "%s: metadata: expected an object, found %s", kind->plural,
                       json_type_name(meta));

    kind_api_version(kind, &version);
    struct str said_version = text_at(root, "apiVersion"), said_kind = text_at(root, "kind");
    if ((said_version.len > 0 && !str_eq(said_version, buf_str(&version))) ||
        (said_kind.len > 0 && !str_eqz(said_kind, kind->name)))
        return err_set(err, ERR_INVALID, "the object is a %.*s %.*s, but it was sent to %s of %s",
                       STR_ARG(said_version), STR_ARG(said_kind), kind->plural,
                       buf_str(&version).p);
    return 0;
}

int rule_name(const struct kind *kind, struct str name, struct err *err)
{
    const char *problem =
        kind == &namespace_kind ? dns1123_label_problem(name) : dns1123_subdomain_problem(name);
    if (problem)
        return err_set(err, ERR_INVALID, "%s \"%.*s\" is invalid: metadata.name: %s", kind->name,
                       STR_ARG(name), problem);
    return 0;
}

/* --- updates --- */

static int refuse(const struct entry *entry, enum err_kind kind, const char *field,
                  const char *what, struct err *err)
{
    return err_set(err, kind, "%s \"%.*s\": metadata.%s: %s", entry->ks->kind->plural,
                   STR_ARG(entry->name), field, what);
}

/* A version in the patch is a lock, as it is in a whole object. */
static int check_version(const struct entry *entry, const json_val *meta, struct err *err)
{
    const json_val *member = present(json_get(meta, STR("resourceVersion")));
    struct str said = json_str(member);
    int64_t version = 0;

    if (!member)
        return 0;
    if (!said.p || (said.len > 0 && !str_to_i64(said, &version)) || version < 0)
        return refuse(entry, ERR_INVALID, "resourceVersion", "not a version", err);
    if (version == 0 && kind_is_custom(entry->ks->kind))
        return refuse(entry, ERR_INVALID, "resourceVersion", "must be specified for an update",
                      err);
    if (version != 0 && (uint64_t)version != entry->object->meta.resource_version)
        return refuse(entry, ERR_CONFLICT, "resourceVersion",
                      "the object has been modified; please apply your changes to the latest "
                      "version and try again",
                      err);
    return 0;
}

int rule_update(const struct entry *entry, const json_val *old, const json_val *read,
                struct err *err)
{
    if (rule_type(entry->ks->kind, read, err) < 0)
        return -1;
    const json_val *was = json_get(old, STR("metadata")), *meta = json_get(read, STR("metadata"));
    struct str name = text_at(meta, "name"), namespace_ = text_at(meta, "namespace");
    struct str uid = text_at(meta, "uid");

    if (!str_eq(name, entry->name))
        return refuse(entry, ERR_INVALID, "name", name.len ? "field is immutable" : "required",
                      err);
    if (namespace_.len > 0 && entry->ks->kind->namespaced && !str_eq(namespace_, entry->namespace_))
        return refuse(entry, ERR_INVALID, "namespace", "field is immutable", err);
    if (uid.len > 0 && !str_eq(uid, entry->object->meta.uid))
        return refuse(entry, ERR_INVALID, "uid", "field is immutable", err);
    if (check_version(entry, meta, err) < 0)
        return -1;

    /* Only a deletion begins the end of an object; once it has begun, another time of it is put
     * back, another grace period is not. */
    const json_val *deleted = present(json_get(meta, STR("deletionTimestamp")));
    const json_val *grace = present(json_get(meta, STR("deletionGracePeriodSeconds")));
    if (deleted && entry->object->meta.deleted_us == 0)
        return refuse(entry, ERR_INVALID, "deletionTimestamp", "field is immutable", err);
    if (grace && !json_same(grace, json_get(was, STR("deletionGracePeriodSeconds"))))
        return refuse(entry, ERR_INVALID, "deletionGracePeriodSeconds", "field is immutable", err);
    return 0;
}

int rule_finalizers(const struct object *old, const struct object *now, struct err *err)
{
    if (old->meta.deleted_us == 0)
        return 0;
    for (uint32_t i = 0; i < now->meta.finalizers.count; i++) {
        struct str finalizer = now->meta.finalizers.items[i];
        bool known = false;
        for (uint32_t j = 0; j < old->meta.finalizers.count; j++)
            known |= str_eq(finalizer, old->meta.finalizers.items[j]);
        if (!known)
            return err_set(err, ERR_INVALID,
                           "%s \"%.*s\" is invalid: metadata.finalizers: no new finalizers can be "
                           "added if the object is being deleted, found new finalizer %.*s",
                           old->kind->name, STR_ARG(old->meta.name), STR_ARG(finalizer));
    }
    return 0;
}

/* Make new.key what old.key is; false: it was. */
static bool put_back(struct json_build *b, json_mut *new, const json_val *read, const json_val *old,
                     const char *key)
{
    const json_val *was = json_get(old, str_of(key)), *is = json_get(read, str_of(key));
    if (was == is || (was && is && json_equal(was, is)))
        return false;
    if (was)
        json_set(b, new, str_of(key), json_copy(b, was));
    else
        json_mut_remove(new, str_of(key));
    return true;
}

bool rule_drop_empty(const json_val *read, json_mut *meta)
{
    static const char *const omitted[] = { "labels", "annotations", "finalizers",
                                           "ownerReferences" };
    bool changed = false;

    for (size_t i = 0; i < KV_COUNT_OF(omitted); i++) {
        const json_val *v = json_get(read, str_of(omitted[i]));
        if (v && json_count(v) == 0 && (json_is_object(v) || json_is_array(v) || json_is_null(v))) {
            json_mut_remove(meta, str_of(omitted[i]));
            changed = true;
        }
    }
    return changed;
}

static bool put_back_meta(const struct kind *kind, bool status, const json_val *old,
                          const json_val *read, struct json_build *b, json_mut *new_root)
{
    /* resourceVersion, managedFields and selfLink are never stored. */
    static const char *const servers[] = {
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "managedFields",
        "selfLink",
    };

    if (!json_is_object(json_get(read, STR("metadata"))))
        return put_back(b, new_root, read, old, "metadata");
    const json_val *was = json_get(old, STR("metadata")), *is = json_get(read, STR("metadata"));
    json_mut *meta = json_mut_get(new_root, STR("metadata"));
    bool changed = rule_drop_empty(is, meta);
    for (size_t i = 0; i < KV_COUNT_OF(servers); i++)
        changed |= put_back(b, meta, is, was, servers[i]);
    if (status && kind == &pod_kind)
        changed |= put_back(b, meta, is, was, "ownerReferences");
    return changed;
}

/* Everything that is not status (and, for the kinds of Kubernetes itself, whose status endpoints
 * take labels, annotations and finalizers too, not metadata) is as it was. */
static bool put_back_all_but_status(const struct kind *kind, const json_val *old,
                                    const json_val *read, struct json_build *b, json_mut *new_root)
{
    bool changed = false;

    json_each_member(read, key, val) {
        (void)val;
        struct str name = json_str(key);
        if (!json_get(old, name) && !str_eqz(name, "status")) {
            json_mut_remove(new_root, name);
            changed = true;
        }
    }
    json_each_member(old, key, val) {
        struct str name = json_str(key);
        if (str_eqz(name, "status") || (str_eqz(name, "metadata") && !kind_is_custom(kind)))
            continue;
        const json_val *is = json_get(read, name);
        if (is && json_equal(is, val))
            continue;
        json_set(b, new_root, name, json_copy(b, val));
        changed = true;
    }
    return changed;
}

bool rule_restore(const struct kind *kind, bool status, const json_val *old, const json_val *read,
                  struct json_build *b, json_mut *new_root)
{
    bool changed = false;

    if (status) {
        changed |= put_back_all_but_status(kind, old, read, b, new_root);
    } else {
        changed |= put_back(b, new_root, read, old, "apiVersion");
        changed |= put_back(b, new_root, read, old, "kind");
        if (kind->has_status)
            changed |= put_back(b, new_root, read, old, "status");
    }
    if (!status || !kind_is_custom(kind))
        changed |= put_back_meta(kind, status, old, read, b, new_root);
    return changed;
}

bool rule_spec_changed(const json_val *old, const json_val *read)
{
    json_each_member(read, key, val) {
        struct str name = json_str(key);
        if (!str_eqz(name, "metadata") && !str_eqz(name, "status") &&
            !json_same(json_get(old, name), val))
            return true;
    }
    json_each_member(old, key, val) {
        struct str name = json_str(key);
        if (!str_eqz(name, "metadata") && !str_eqz(name, "status") && present(val) &&
            !json_get(read, name))
            return true;
    }
    return false;
}
