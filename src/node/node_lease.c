/* The Lease of this node: renewed every ten seconds, for forty. Who watches nodes takes one whose
 * Lease was not renewed for dead, so renewing waits for nothing else: it has a thread, and perhaps a
 * connection, of its own. It starts when the Node is known, to which it belongs, and rests while there
 * is none: the Lease of a Node that was deleted is garbage.
 */
#include "node/node_api_inner.h"

#include "api/policy.h"

#define LEASE_NAMESPACE "kube-node-lease"
#define LEASE_DURATION_S 40
#define LEASE_RETRY_FIRST_NS (DURATION_SECOND / 5)
#define LEASE_RETRY_MAX_NS (7 * DURATION_SECOND)
#define LEASE_JITTER 0.04

/* The whole object; as a patch it says the same of one that is there. */
static void lease_json(const struct node_api *api, struct str node_uid_, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    char now[TIME_TEXT_MAX];
    json_build_init(&b);
    time_format_micro(clock_wall_us(api->opts.clock), now);
    json_mut *root = json_new_object(&b), *owners = json_new_array(&b),
             *owner = json_new_object(&b);
    json_set_str(&b, root, "apiVersion", STR("coordination.k8s.io/v1"));
    json_set_str(&b, root, "kind", STR("Lease"));
    json_mut *meta = json_mut_object(&b, root, STR("metadata"));
    json_set_str(&b, meta, "name", api->node_name);
    json_set_str(&b, meta, "namespace", STR(LEASE_NAMESPACE));
    json_set_str(&b, owner, "apiVersion", STR("v1"));
    json_set_str(&b, owner, "kind", STR("Node"));
    json_set_str(&b, owner, "name", api->node_name);
    json_set_str(&b, owner, "uid", node_uid_);
    json_push(&b, owners, owner);
    json_set(&b, meta, STR("ownerReferences"), owners);
    json_mut *spec = json_mut_object(&b, root, STR("spec"));
    json_set_str(&b, spec, "holderIdentity", api->node_name);
    json_set_i64(&b, spec, "leaseDurationSeconds", LEASE_DURATION_S);
    json_set_str(&b, spec, "renewTime", str_of(now));
    json_write_mut(root, out);
}

static int renew(struct node_api *api, struct str uid, struct err *err)
{
    struct object_ref ref = { &lease_kind, STR(LEASE_NAMESPACE), api->node_name };
    AUTO_BUF text = { 0 };
    lease_json(api, uid, &text);
    int rc = store_patch(api->heartbeats, ref, (struct patch_options){ PATCH_MERGE },
                         buf_str(&text), NULL, err);
    if (rc < 0 && err->kind == ERR_NOT_FOUND)
        rc = store_create(api->heartbeats, &lease_kind, STR(LEASE_NAMESPACE), buf_str(&text), NULL,
                          err);
    return rc;
}

int64_t node_lease_step(struct node_api *api)
{
    struct node_lease *lease = &api->lease;
    AUTO_ARENA arena = { 0 };
    struct err err;
    int64_t period_ns = api->opts.lease_period_ns;
    struct str uid = node_uid(api, &arena);
    if (!uid.len)
        return clock_mono_ns(api->opts.clock) + period_ns; /* woken when it is there */
    if (renew(api, uid, &err) < 0) {
        log_warn(api->opts.log, "the node's lease is not renewed", LOG_ERR(&err));
        return clock_mono_ns(api->opts.clock) +
               api_backoff_next(&lease->backoff, LEASE_RETRY_FIRST_NS, LEASE_RETRY_MAX_NS);
    }
    lease->backoff.failures = 0;
    double jitter = 1 + LEASE_JITTER * rng_unit(&lease->rng);
    return clock_mono_ns(api->opts.clock) + (int64_t)(jitter * (double)period_ns);
}
