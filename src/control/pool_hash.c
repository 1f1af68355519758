/* The hash of a NodePool's template, on the pool and on claims that another version of it stamped.
 *
 * A claim carries the hash of the template it was made from, and drifts when the pool's differs. A hash
 * says something only next to one of the same version. When the version changes, what its claims
 * were made from can no longer be compared, so they are taken to be as the pool is now: else an
 * upgrade would replace every node. One that had drifted before keeps its hash, and so stays drifted.
 *
 * Claims come first: until all of them have the new version the pool keeps the old one, and a process
 * that died in between goes on.
 */
#include "control/controllers.h"

#include "api/hash.h"
#include "control/pools.h"

static bool has_version(const struct object *object)
{
    return str_eqz(str_map_get(&object->meta.annotations, STR(ANNOTATION_NODEPOOL_HASH_VERSION)),
                   NODEPOOL_HASH_VERSION);
}

static int stamp(struct control *c, const struct object *object, struct str maybe_hash,
                 struct err *err)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_mut *annotations =
        json_mut_object(&b, json_mut_object(&b, root, STR("metadata")), STR("annotations"));
    if (maybe_hash.len)
        json_set_str(&b, annotations, ANNOTATION_NODEPOOL_HASH, maybe_hash);
    json_set_str(&b, annotations, ANNOTATION_NODEPOOL_HASH_VERSION, STR(NODEPOOL_HASH_VERSION));
    return control_patch(c, object, false, false, root, NULL, err);
}

static int stamp_claims(struct control *c, const struct object *pool, struct str hash,
                        struct err *err)
{
    struct object_list claims;
    int rc = 0;
    cluster_list_by(c->cluster, CLAIMS_BY_POOL, pool->meta.name, &claims);
    for (size_t i = 0; i < claims.count && rc == 0; i++) {
        if (has_version(claims.items[i]))
            continue;
        bool drifted = claim_condition(nodeclaim_of(claims.items[i]), CONDITION_DRIFTED) != NULL;
        rc = stamp(c, claims.items[i], drifted ? STR_NONE : hash, err);
        if (rc < 0 && err->kind == ERR_NOT_FOUND)
            rc = 0; /* one that is gone needs no stamp */
    }
    object_list_done(&claims);
    return rc;
}

static struct outcome reconcile(struct control *c, struct str key)
{
    AUTO_OBJECT object = pool_managed(c, key);
    struct err err = { 0 };
    char text[HASH_TEXT_MAX];
    if (!object)
        return outcome_done();
    struct str hash = { text, hash_format(nodepool_hash(nodepool_of(object)), text) };
    bool same_version = has_version(object);
    if (same_version &&
        str_eq(str_map_get(&object->meta.annotations, STR(ANNOTATION_NODEPOOL_HASH)), hash))
        return outcome_done();
    if (!same_version && stamp_claims(c, object, hash, &err) < 0)
        return control_failed(c, &nodepool_hash_controller, key, &err);
    if (stamp(c, object, hash, &err) < 0)
        return control_failed(c, &nodepool_hash_controller, key, &err);
    return outcome_done();
}

const struct controller nodepool_hash_controller = {
    .name = "nodepool.hash",
    .reconcile = reconcile,
    .triggers = { { &nodepool_kind, trigger_own_name } },
};
