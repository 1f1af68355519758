/* store/testing.h - for the tests of stores: short ways to say what a test does.
 *
 * JSON is written with single quotes: js("{'metadata':{'name':'%s'}}", name). Functions that must
 * succeed fail the test when they do not; objects they return are the caller's to unref
 * (AUTO_OBJECT).
 */
#pragma once

#include "api/node.h"
#include "api/pod.h"
#include "base/rng.h"
#include "store/embedded.h"
#include "store/js_testing.h"
#include "support/test.h"

#include <stdio.h>

#define SECOND_US ((int64_t)1000 * 1000)
#define SECOND_NS (1000 * SECOND_US)

static const char deployment_json[] KV_UNUSED =
    "{'metadata':{'name':'web'},'spec':{'replicas':3,'selector':{'matchLabels':{'app':'web'}},"
    "'template':{'metadata':{'labels':{'app':'web'}},"
    "'spec':{'containers':[{'name':'c','image':'i'}]}}}}";

static inline struct object_ref at(const struct kind *kind, const char *name)
{
    return (struct object_ref){ kind, kind->namespaced ? STR("default") : STR(""), str_of(name) };
}

static inline const struct object *make(const struct store *s, const struct kind *kind,
                                        struct str json)
{
    const struct object *object = NULL;
    struct err err = { 0 };
    EXPECT_OK(store_create(s, kind, STR(""), json, &object, &err), err);
    return object;
}

static inline const struct object *get(const struct store *s, const struct kind *kind,
                                       const char *name)
{
    const struct object *object = NULL;
    struct err err = { 0 };
    EXPECT_OK(store_get(s, at(kind, name), &object, &err), err);
    return object;
}

static inline bool is_there(const struct store *s, const struct kind *kind, const char *name)
{
    struct err err = { 0 };
    if (store_get(s, at(kind, name), NULL, &err) == 0)
        return true;
    EXPECT_EQ(err.kind, ERR_NOT_FOUND);
    return false;
}

static inline const struct object *merge(const struct store *s, const struct kind *kind,
                                         const char *name, struct str patch)
{
    const struct object *object = NULL;
    struct err err = { 0 };
    EXPECT_OK(store_patch(s, at(kind, name), (struct patch_options){ .type = PATCH_MERGE }, patch,
                          &object, &err),
              err);
    return object;
}

static inline const struct object *merge_status(const struct store *s, const struct kind *kind,
                                                const char *name, struct str patch)
{
    const struct object *object = NULL;
    struct err err = { 0 };
    EXPECT_OK(store_patch(s, at(kind, name),
                          (struct patch_options){ .type = PATCH_MERGE, .status = true }, patch,
                          &object, &err),
              err);
    return object;
}

static inline void remove_it(const struct store *s, const struct kind *kind, const char *name)
{
    struct err err = { 0 };
    EXPECT_OK(store_remove(s, at(kind, name), NULL, &err), err);
}

static inline void make_node(const struct store *s, const char *name)
{
    object_unref(make(s, &node_kind, js("{'metadata':{'name':'%s'}}", name)));
}

/* One of a dozen nodes comes, goes or changes. */
static inline void change_some_node(const struct store *s, struct rng *rng)
{
    char name[16];
    struct err err = { 0 };
    snprintf(name, sizeof name, "n%u", (unsigned)rng_below(rng, 12));
    switch (rng_below(rng, 3)) {
    case 0:
        store_create(s, &node_kind, STR(""), js("{'metadata':{'name':'%s'}}", name), NULL, &err);
        break;
    case 1:
        store_remove(s, at(&node_kind, name), NULL, &err);
        break;
    default:
        store_patch(s, at(&node_kind, name), (struct patch_options){ 0 },
                    js("{'metadata':{'labels':{'v':'%u'}}}", (unsigned)rng_below(rng, 100)), NULL,
                    &err);
        break;
    }
}

/* --- pods --- */

static inline void make_pod(const struct store *s, const char *name, const char *labels)
{
    object_unref(make(s, &pod_kind,
                      js("{'metadata':{'name':'%s','labels':{%s}},"
                         "'spec':{'containers':[{'name':'c','image':'i'}]}}",
                         name, labels)));
}

static inline void bind_pod(const struct store *s, const char *name, const char *node)
{
    struct err err = { 0 };
    EXPECT_OK(store_bind(s, STR("default"), str_of(name), str_of(node), &err), err);
}

/* As the kubelet reports it. */
static inline void set_pod(const struct store *s, const char *name, const char *phase, bool ready)
{
    object_unref(
        merge_status(s, &pod_kind, name,
                     js("{'status':{'phase':'%s','conditions':[{'type':'Ready','status':'%s'}]}}",
                        phase, ready ? "True" : "False")));
}

/* Bound, running and ready. */
static inline void run_pod(const struct store *s, const char *name, const char *labels)
{
    make_pod(s, name, labels);
    bind_pod(s, name, "node-1");
    set_pod(s, name, "Running", true);
}

static inline int evict(const struct store *s, const char *name, struct err *err)
{
    return store_evict(s, STR("default"), str_of(name), NULL, err);
}

/* --- watches --- */

static inline struct watch *watch(const struct store *s, const struct kind *kind,
                                  struct watch_options opts)
{
    struct watch *w = NULL;
    struct err err = { 0 };
    EXPECT_OK(store_watch(s, kind, &opts, &w, &err), err);
    return w;
}

/* The event as "ADDED name", "BOOKMARK", or "" when none is waiting; its version in `version`. */
static inline const char *event_text(struct watch *w, uint64_t *version)
{
    static _Thread_local char text[300];
    static const char *const types[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK" };
    struct watch_event event;
    struct err err = { 0 };

    int rc = watch_next(w, &event, &err);
    if (rc < 0) {
        snprintf(text, sizeof text, "error %s", err_kind_name(err.kind));
        return text;
    }
    if (rc == 0)
        return "";
    struct str name = event.object ? event.object->meta.name : STR("");
    snprintf(text, sizeof text, "%s%s%.*s", types[event.type], name.len ? " " : "", STR_ARG(name));
    if (version)
        *version = event.resource_version;
    object_unref(event.object);
    return text;
}

/* --- an embedded store in virtual time --- */

#define START_US ((int64_t)1767322800 * 1000000) /* 2026-01-02T03:00:00Z */

struct world {
    struct virtual_clock *time;
    struct object_pool *pool;
    struct embedded *e;
    const struct store *store;
};

static inline struct world *world_new(struct embedded_options opts)
{
    struct world *w = kv_calloc(1, sizeof *w);
    w->time = virtual_clock_new(START_US);
    w->pool = object_pool_new();
    opts.clock = virtual_clock_port(w->time);
    opts.pool = w->pool;
    w->e = embedded_new(opts);
    w->store = embedded_store(w->e);
    return w;
}

static inline void world_free(struct world *w)
{
    embedded_free(w->e);
    object_pool_free(w->pool);
    virtual_clock_free(w->time);
    free(w);
}
KV_AUTO_TYPE(world, world_free)
