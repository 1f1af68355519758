/* api/object.h - Kubernetes objects: decoded once, immutable, shared by reference count.
 *
 * Every kind's struct starts with a `struct object`. An object is one block of memory holding all
 * its strings and lists, plus references to counted blocks for what it shares with others
 * (FIELD_SHARED: a pod's spec, its labels). The JSON it came from is not kept.
 */
#pragma once

#include "api/schema.h"
#include "base/rc.h"

struct kind;

struct owner_ref {
    struct str api_version, kind, name, uid;
    bool controller, block_owner_deletion;
};

struct meta {
    struct str name, namespace_; /* namespace_ is "" for cluster-scoped kinds */
    struct str generate_name, uid;
    uint64_t resource_version; /* 0: not from a store */
    int64_t generation;
    int64_t created_us, deleted_us; /* 0: unset */
    struct maybe_int deletion_grace_s;
    struct str_map labels, annotations;
    struct str_list finalizers;
    LIST(struct owner_ref) owners;
};

extern const struct schema meta_schema; /* ObjectMeta, every field known */

const struct owner_ref *meta_controller(const struct meta *meta); /* NULL: none */

struct meta_template { /* what a template says of the objects made from it */
    struct str_map labels, annotations;
};
extern const struct schema meta_template_schema;

struct object {
    struct rc rc;
    uint32_t bytes; /* of the block that starts here */
    const struct kind *kind;
    struct meta meta; /* name is never absent, but "" while generateName waits for the store */
};

/* What a CRD has beyond its schema. */
struct crd_column {
    const char *name, *type, *path, *doc;
    int priority; /* 1: only with -o wide */
};

struct crd {
    const char *const *short_names; /* NULL-terminated, or NULL */
    const char *const *categories;
    const struct crd_column *columns;
    uint32_t column_count;
    const char *scale_spec_path, *scale_status_path; /* NULL: no scale subresource */
};

struct kind {
    const char *group; /* "" for core */
    const char *version;
    const char *name, *plural, *singular;
    bool namespaced;
    bool has_status;             /* a status subresource: spec writes never touch it and back */
    const struct schema *schema; /* of the whole object: apiVersion, kind, metadata, spec, status */
    const char *doc;
    const struct crd *crd; /* NULL for kinds that Kubernetes (or NFD) brings */

    /* All optional. `settle` runs on the decoded view: derive fields, move what differs between
     * objects out of what they share. A view's padding is zero and must stay so (equal values are
     * found by their bytes): assign members, or copy whole structs within the view. */
    void (*settle)(struct object *view, struct arena *arena);
    /* Defaults that a table cannot say (requests from limits). */
    void (*complete)(struct json_build *b, json_mut *root);
    /* What the schema cannot say: NodePool's run-time validation, contradicting requirements. Runs on
     * a view of `root` as written (settled, defaults not added) whenever that can be decoded, even
     * if the schema found problems: a value that it already refused is not reported again. */
    void (*check)(const struct object *object, const json_val *root, struct report *report);
    /* The value of a field selector's key beyond metadata.name and metadata.namespace. STR_NONE:
     * the kind does not have it. */
    struct str (*field)(const struct object *object, struct str path);
};

/* Every kind that karve reads, in one list (api/kinds.c). */
extern const struct kind *const kinds[];
extern const uint32_t kind_count;

const struct kind *kind_find(struct str api_version, struct str name); /* NULL: not one of ours */
const struct kind *kind_find_plural(struct str name); /* "nodepools" or "nodepool", any case */
void kind_api_version(const struct kind *kind, struct buf *out); /* "apps/v1", "v1" */
bool kind_is_builtin(const struct kind *kind); /* Kubernetes brings it; no CRD is behind it */

/* Shared blocks live in a pool; equal ones are found in it. Thread safe. One per store; a process
 * may have several. Objects hold a reference to what they share, and the pool must outlive them. */
struct object_pool;
struct object_pool *object_pool_new(void);
void object_pool_free(struct object_pool *pool); /* asserts that nothing is left in it */
KV_AUTO_TYPE(object_pool, object_pool_free)

struct object_pool_stats {
    uint64_t shared_count, shared_bytes, hit_count;
};
struct object_pool_stats object_pool_stats(const struct object_pool *pool);

/* Decode a whole object. `v` is a JSON object with at least metadata. The result has one
 * reference. */
int object_decode(struct object_pool *pool, const struct kind *kind, const json_val *v,
                  const struct object **out, struct err *err);

const struct object *object_ref(const struct object *object);
void object_unref(const struct object *object); /* NULL is fine */

static inline void object_unref_cleanup(const struct object **object)
{
    object_unref(*object);
}
#define AUTO_OBJECT __attribute__((cleanup(object_unref_cleanup))) const struct object *

size_t object_bytes(const struct object *object); /* its own block, shared blocks not counted */

/* Complete and check as the API server would on a write: returns the defaulted tree in `b` and
 * adds every problem to `report`. NULL if `v` is not even an object. `v` is checked as written, and
 * problems point into it. `old` is the stored object's tree on updates, NULL on creation; it has
 * its defaults, so rules about changes compare it with the defaulted tree, and their problems have
 * a path but point nowhere. */
json_mut *object_admit(const struct kind *kind, struct json_build *b, const json_val *v,
                       const json_val *old, struct report *report);

/* The value of a field selector's key, metadata.* included. */
struct str object_field(const struct object *object, struct str path);
