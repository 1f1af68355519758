/* store/testing.h - for the tests of stores: short ways to say what a test does.
 *
 * JSON is written with single quotes: J("{'metadata':{'name':'%s'}}", name). Functions that must
 * succeed fail the test when they do not; objects they return are the caller's to unref (AUTO_OBJECT).
 */
#pragma once

#include "api/pod.h"
#include "store/store.h"
#include "support/test.h"

#include <stdio.h>

#define J_BYTES_MAX 4096

/* The next text: eight are alive at a time, and a test uses fewer in one statement. */
static inline struct str J(const char *fmt, ...) KV_PRINTF(1, 2);
static inline struct str J(const char *fmt, ...)
{
    static _Thread_local char ring[8][J_BYTES_MAX];
    static _Thread_local unsigned next;
    char *text = ring[next++ % 8];
    va_list args;

    va_start(args, fmt);
    int len = vsnprintf(text, J_BYTES_MAX, fmt, args);
    va_end(args);
    KV_ASSERT(len >= 0 && len < J_BYTES_MAX);
    for (int i = 0; i < len; i++)
        text[i] = text[i] == '\'' ? '"' : text[i];
    return (struct str){ text, (size_t)len };
}

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

/* --- pods --- */

static inline void make_pod(const struct store *s, const char *name, const char *labels)
{
    object_unref(make(s, &pod_kind,
                      J("{'metadata':{'name':'%s','labels':{%s}},"
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
    object_unref(merge_status(
        s, &pod_kind, name,
        J("{'status':{'phase':'%s','conditions':[{'type':'Ready','status':'%s'}]}}", phase,
          ready ? "True" : "False")));
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
