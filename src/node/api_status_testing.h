/* node/api_status_testing.h - API statuses for tests: a pod, what the runtime shows of it, what is told. */
#pragma once

#include "node/actions_testing.h"
#include "node/api_status.h"
#include "node/node_pod_testing.h"
#include "node/runtime_testing.h"

#define NOW_S (RUNTIME_MADE_S + 3600) /* 2027-01-15T09:00:00Z */

/* One pod and what is said of it; each status made becomes the previous one of the next. */
struct scene {
    const struct node_pod *pod;
    struct doc docs[8]; /* every status told, and what was given as said before */
    struct buf texts[8];
    size_t count;
    const json_val *maybe_previous;
    struct api_status_input with; /* what differs from the usual */
    struct probe_words *maybe_probes;
};

static inline void scene_done(struct scene *s)
{
    for (size_t i = 0; i < s->count; i++) {
        doc_done(&s->docs[i]);
        buf_done(&s->texts[i]);
    }
    node_pod_unref(s->pod);
}
#define AUTO_SCENE __attribute__((cleanup(scene_done))) struct scene

/* JSON with single quotes for double ones, kept by the scene. */
static inline const json_val *keep(struct scene *s, struct buf *text)
{
    struct err err;
    EXPECT_TRUE(s->count < KV_COUNT_OF(s->docs));
    s->texts[s->count] = *text;
    EXPECT_OK(json_read(buf_str(&s->texts[s->count]), &s->docs[s->count], &err), err);
    return s->docs[s->count++].root;
}

static inline const json_val *json_of(struct scene *s, const char *quoted)
{
    struct buf text = { 0 };
    buf_addz(&text, quoted);
    for (size_t i = 0; i < text.len; i++)
        text.p[i] = text.p[i] == '\'' ? '"' : text.p[i];
    return keep(s, &text);
}

static inline struct scene scene_of(const char *yaml)
{
    return (struct scene){ .pod = pod_from_yaml(yaml) };
}

/* The status of what the runtime shows; that is released. */
static inline const json_val *tell(struct scene *s, const struct runtime_status *status)
{
    static const struct str node_ips[] = { STR("192.0.2.10") };
    AUTO_JSON_BUILD b = { 0 };
    struct api_status_input input = s->with;
    struct buf text = { 0 };
    json_build_init(&b);
    input.pod = s->pod;
    input.status = status;
    input.maybe_previous = s->maybe_previous;
    input.probes = probes_say(s->maybe_probes);
    input.runtime_name = "containerd";
    if (!input.now_us)
        input.now_us = NOW_S * 1000000;
    if (!input.node_ips.items)
        input.node_ips = (struct str_list){ node_ips, 1 };
    json_write_mut(api_status_build(&b, &input), &text);
    runtime_status_unref(status);
    s->maybe_previous = keep(s, &text);
    return s->maybe_previous;
}

static inline void expect_json(const json_val *got, const char *want, const char *file, int line)
{
    AUTO_BUF text = { 0 };
    if (got)
        json_write(got, &text);
    for (size_t i = 0; i < text.len; i++)
        text.p[i] = text.p[i] == '"' ? '\'' : text.p[i];
    test_expect_str(buf_str(&text), str_of(want), "JSON", file, line);
}
#define EXPECT_JSON(got, want) expect_json((got), (want), __FILE__, __LINE__)

static inline const json_val *of_name(const json_val *status, const char *list, const char *name)
{
    json_each_item(json_get(status, str_of(list)), item) {
        if (str_eqz(json_str(json_get(item, STR("name"))), name))
            return item;
    }
    return NULL;
}
static inline const json_val *app_of(const json_val *status)
{
    return of_name(status, "containerStatuses", "app");
}
static inline int64_t restarts_of(const json_val *container)
{
    int64_t count = -1;
    json_i64(json_get(container, STR("restartCount")), &count);
    return count;
}
static inline const json_val *condition(const json_val *status, const char *type)
{
    json_each_item(json_get(status, STR("conditions")), item) {
        if (str_eqz(json_str(json_get(item, STR("type"))), type))
            return item;
    }
    return NULL;
}

#define ONE_APP "metadata: {name: web}\nspec: {containers: [{name: app, image: app:1}]}\n"
#define ONE_APP_NEVER                                                                              \
    "metadata: {name: web}\n"                                                                      \
    "spec: {restartPolicy: Never, containers: [{name: app, image: app:1}]}\n"
#define WITH_INIT                                                                                  \
    "metadata: {name: web}\n"                                                                      \
    "spec: {initContainers: [{name: b, image: b}, {name: a, image: a}],"                           \
    " containers: [{name: z, image: z}, {name: app, image: app:1}]}\n"

#define LOST                                                                                       \
    "{'terminated':{'exitCode':137,'reason':'ContainerStatusUnknown','message':"                   \
    "'the container ran, and the runtime no longer knows how it ended',"                           \
    "'startedAt':null,'finishedAt':null}}"
