/* node/node_api_testing.h - an agent with its API half, on a fake runtime and a store in memory.
 *
 * The agent sees the store through a layer that fails when told to, notes what the agent deletes, and
 * answers TokenRequests. Tests write to the store behind it, as other clients of the API do.
 */
#pragma once

#include "api/node.h"
#include "api/policy.h"
#include "base/rng.h"
#include "codec/duration.h"
#include "node/agent_testing.h"
#include "node/node_api.h"
#include "store/testing.h"

#include <stdatomic.h>

struct cluster {
    struct rig rig;
    struct object_pool *pool;
    struct embedded *e;
    const struct store *store; /* for the test */
    struct store seen;         /* for the agent */
    struct node_api *api;
    const char *labels, *taints, *provider_id;
    bool no_register;
    struct log *log;          /* NULL: silent */
    int64_t status_period_ns; /* 0: 50 ms */

    atomic_bool down;       /* the server: nobody is answered */
    atomic_uint fail_every; /* one call in so many fails, before or after its effect; 0: none */
    atomic_ullong calls;
    atomic_uint tokens;
    pthread_mutex_t lock; /* guards what follows */
    VEC(char *) removed;  /* uids of pods that the agent deleted */
    char wrong[256];      /* what it must not have done; empty: nothing */
};

/* --- the layer --- */

static inline bool cluster_fails(struct cluster *c, uint64_t salt, struct err *err)
{
    unsigned every = atomic_load(&c->fail_every);
    uint64_t call = atomic_fetch_add(&c->calls, 1);
    if (!atomic_load(&c->down) && !(every && kv_mix64(call ^ salt) % every == 0))
        return false;
    err_set(err, ERR_UNAVAILABLE, "the server is away");
    return true;
}

static inline int cluster_get(void *ctx, struct object_ref ref, const struct object **out,
                              struct err *err)
{
    struct cluster *c = ctx;
    return cluster_fails(c, 1, err) ? -1 : store_get(c->store, ref, out, err);
}

static inline int cluster_list(void *ctx, const struct kind *kind, const struct list_options *opts,
                               struct object_list *out, struct err *err)
{
    struct cluster *c = ctx;
    return cluster_fails(c, 2, err) ? -1 : store_list(c->store, kind, opts, out, err);
}

static inline int cluster_watch(void *ctx, const struct kind *kind,
                                const struct watch_options *opts, struct watch **out,
                                struct err *err)
{
    struct cluster *c = ctx;
    return cluster_fails(c, 3, err) ? -1 : store_watch(c->store, kind, opts, out, err);
}

static inline int cluster_create(void *ctx, const struct kind *kind, struct str namespace_,
                                 struct str json, const struct object **out, struct err *err)
{
    struct cluster *c = ctx;
    if (cluster_fails(c, 4, err) || store_create(c->store, kind, namespace_, json, out, err) < 0)
        return -1;
    if (!cluster_fails(c, 5, err))
        return 0;
    if (out)
        object_unref(take(out));
    return -1;
}

static inline int cluster_patch(void *ctx, struct object_ref ref, struct patch_options opts,
                                struct str patch, const struct object **out, struct err *err)
{
    struct cluster *c = ctx;
    if (cluster_fails(c, 6, err) || store_patch(c->store, ref, opts, patch, out, err) < 0)
        return -1;
    if (!cluster_fails(c, 7, err))
        return 0;
    if (out)
        object_unref(take(out));
    return -1;
}

/* Pods are deleted by uid, without grace, when they are to go and nothing of them runs; mirrors at any
 * time. */
static inline void cluster_check_removal(struct cluster *c, struct object_ref ref,
                                         const struct delete_options *opts)
{
    AUTO_OBJECT pod = NULL;
    struct err err;
    const char *wrong = NULL;
    AUTO_FREE char *uid = str_dup(opts->uid);
    if (ref.kind != &pod_kind || !opts->uid.len || !opts->grace_s.set || opts->grace_s.value != 0)
        wrong = "a deletion without uid or with grace";
    else if (store_get(c->store, ref, &pod, &err) == 0 && str_eq(pod->meta.uid, opts->uid) &&
             !pod_is_mirror(pod_of(pod))) {
        if (!pod->meta.deleted_us)
            wrong = "a pod was deleted that nobody asked to go";
        else if (fake_cri_containers(c->rig.fake, uid, NULL, RUNTIME_RUNNING))
            wrong = "a pod was deleted that runs";
        else if (!pod_is_terminal(pod_of(pod)))
            wrong = "a pod was deleted before its last status";
    }
    pthread_mutex_lock(&c->lock);
    if (wrong && !c->wrong[0])
        snprintf(c->wrong, sizeof c->wrong, "%s: %.*s %s", wrong, STR_ARG(ref.name), uid);
    pthread_mutex_unlock(&c->lock);
}

static inline int cluster_remove(void *ctx, struct object_ref ref,
                                 const struct delete_options *opts, struct err *err)
{
    struct cluster *c = ctx;
    if (cluster_fails(c, 8, err))
        return -1;
    cluster_check_removal(c, ref, opts);
    if (store_remove(c->store, ref, opts, err) < 0)
        return -1;
    pthread_mutex_lock(&c->lock);
    vec_push(&c->removed, str_dup(opts->uid));
    pthread_mutex_unlock(&c->lock);
    return cluster_fails(c, 9, err) ? -1 : 0;
}

static inline int cluster_get_json(void *ctx, struct object_ref ref, struct buf *out,
                                   struct err *err)
{
    struct cluster *c = ctx;
    return cluster_fails(c, 10, err) ? -1 : store_get_json(c->store, ref, out, err);
}

static inline int cluster_post(void *ctx, struct object_ref ref, const char *subresource,
                               struct str json, struct buf *out, struct err *err)
{
    struct cluster *c = ctx;
    char expires[TIME_TEXT_MAX];
    if (cluster_fails(c, 11, err))
        return -1;
    if (strcmp(subresource, "token") != 0 || !strstr(json.p, "boundObjectRef"))
        return err_set(err, ERR_NOT_FOUND, "no such subresource");
    time_format(clock_wall_us(clock_real()) + 3600 * SECOND_US, expires);
    buf_addf(out, "{\"status\":{\"token\":\"token-%u-of-%.*s\",\"expirationTimestamp\":\"%s\"}}",
             atomic_fetch_add(&c->tokens, 1), STR_ARG(ref.name), expires);
    return 0;
}

static inline bool cluster_drop_watch(void *ctx, const struct kind *kind KV_UNUSED)
{
    struct cluster *c = ctx;
    struct err err;
    return cluster_fails(c, 12, &err);
}

static const struct store_ops cluster_ops KV_UNUSED = {
    .get = cluster_get,
    .list = cluster_list,
    .watch = cluster_watch,
    .create = cluster_create,
    .patch = cluster_patch,
    .remove = cluster_remove,
    .get_json = cluster_get_json,
    .post = cluster_post,
};

/* --- life --- */

static inline void cluster_wire(void *ctx, struct agent_options *options)
{
    struct cluster *c = ctx;
    node_api_wire(c->api, options);
}

static inline void cluster_agent_start(struct cluster *c)
{
    struct err err;
    struct node_api_options options = {
        .store = &c->seen,
        .clock = clock_real(),
        .log = c->log,
        .seed = 1,
        .register_node = !c->no_register,
        .labels = c->labels,
        .taints = c->taints,
        .provider_id = c->provider_id,
        .version = "0.1.0",
        .root = "/tmp",
        .status_period_ns = c->status_period_ns ? c->status_period_ns : 50 * 1000000,
        .lease_period_ns = 50 * 1000000,
        .retry_ns = 10 * 1000000,
    };
    EXPECT_OK(node_api_new(options, &c->api, &err), err);
    c->rig.api = true;
    c->rig.wire = cluster_wire;
    c->rig.wire_ctx = c;
    rig_agent_start(&c->rig);
    EXPECT_OK(node_api_start(c->api, c->rig.agent, &err), err);
}

static inline void cluster_agent_stop(struct cluster *c)
{
    node_api_stop(c->api);
    rig_agent_stop(&c->rig);
    node_api_free(c->api);
    c->api = NULL;
}

static inline void cluster_open(struct cluster *c)
{
    pthread_mutex_init(&c->lock, NULL);
    rig_open(&c->rig);
    c->pool = object_pool_new();
    c->e = embedded_new((struct embedded_options){ .clock = clock_real(), .pool = c->pool });
    c->store = embedded_store(c->e);
    c->seen = (struct store){ &cluster_ops, c };
    object_unref(make(c->store, &service_kind,
                      js("{'metadata':{'name':'kubernetes'},'spec':{'clusterIP':'10.0.0.1',"
                         "'ports':[{'name':'https','port':443}]}}")));
    embedded_set_faults(c->e,
                        &(struct embedded_faults){ .drop_watch = cluster_drop_watch, .ctx = c });
}

static inline void cluster_close(struct cluster *c)
{
    if (c->api)
        node_api_stop(c->api);
    rig_close(&c->rig);
    node_api_free(c->api);
    embedded_free(c->e);
    object_pool_free(c->pool);
    EXPECT_Z(c->wrong, "");
    vec_each(&c->removed, char *, uid)
        free(*uid);
    vec_done(&c->removed);
    pthread_mutex_destroy(&c->lock);
}

/* --- short ways to say it --- */

#define CLUSTER_POD                                                                                \
    "{'metadata':{'name':'%s'},'spec':{'nodeName':'node-1','hostNetwork':true,"                    \
    "'terminationGracePeriodSeconds':1,'restartPolicy':'%s',"                                      \
    "'containers':[{'name':'main','image':'web:1'}]}}"

/* Bound to the node; its uid is put into `uid`. */
static inline void cluster_pod(struct cluster *c, const char *name, const char *restart_policy,
                               char uid[64])
{
    AUTO_OBJECT pod = make(c->store, &pod_kind, js(CLUSTER_POD, name, restart_policy));
    snprintf(uid, 64, "%.*s", STR_ARG(pod->meta.uid));
}

/* The object's JSON, or "" if there is none. */
static inline void cluster_text(struct cluster *c, const struct kind *kind, const char *namespace_,
                                const char *name, struct buf *out)
{
    buf_clear(out);
    buf_addz(out, "");
    (void)store_get_json(c->store, (struct object_ref){ kind, str_of(namespace_), str_of(name) },
                         out, NULL);
    if (!out->p)
        buf_addc(out, ' ');
}

static inline bool cluster_says(struct cluster *c, const struct kind *kind, const char *name,
                                const char *words)
{
    AUTO_BUF text = { 0 };
    cluster_text(c, kind,
                 kind == &lease_kind ? "kube-node-lease"
                 : kind->namespaced  ? "default"
                                     : "",
                 name, &text);
    return strstr(text.p, words) != NULL;
}

static inline bool cluster_there(struct cluster *c, const struct kind *kind, const char *name)
{
    struct err err;
    return store_get(c->store, at(kind, name), NULL, &err) == 0;
}

static inline uint32_t cluster_removals(struct cluster *c, const char *uid)
{
    uint32_t count = 0;
    pthread_mutex_lock(&c->lock);
    vec_each(&c->removed, char *, it)
        count += strcmp(*it, uid) == 0;
    pthread_mutex_unlock(&c->lock);
    return count;
}
