/* node/node_pod_testing.h - pods for tests, written as YAML. */
#pragma once

#include "codec/yaml.h"
#include "node/node_pod.h"
#include "support/test.h"

/* The pod of a manifest as if the API had sent it: not renamed, checked and completed as the API
 * server does, in the namespace "default" and with the uid "uid-NAME" unless it says otherwise.
 * apiVersion and kind may be left out. One reference, the caller's. A mistake fails the test. */
static inline const struct node_pod *pod_from_yaml(const char *yaml)
{
    AUTO_ARENA arena = { 0 };
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF text = { 0 };
    struct report report = { .arena = &arena };
    struct docs docs;
    struct doc doc;
    struct err err;
    const struct node_pod *pod = NULL;

    json_build_init(&b);
    EXPECT_OK(yaml_read(str_of(yaml), &docs, NULL, &err), err);
    EXPECT_EQ(docs.count, 1);
    json_mut *root = object_admit(&pod_kind, &b, docs.items[0].root, NULL, &report);
    vec_each(&report.problems, struct problem, p)
        print_message("# %.*s: %.*s\n", STR_ARG(p->path), STR_ARG(p->what));
    EXPECT_EQ(report.error_count, 0);
    report_done(&report);
    docs_done(&docs);

    json_mut *meta = json_mut_object(&b, root, STR("metadata"));
    struct str name = json_mut_str(json_mut_get(meta, STR("name")));
    if (!json_mut_get(meta, STR("uid")))
        json_set_str(&b, meta, "uid", arena_strf(&arena, "uid-%.*s", STR_ARG(name)));
    if (!json_mut_get(meta, STR("namespace")))
        json_set_str(&b, meta, "namespace", STR("default"));
    json_write_mut(root, &text);
    EXPECT_OK(json_read_trusted(buf_str(&text), &doc, &err), err);
    EXPECT_OK(node_pod_decode(&doc, POD_FROM_API, &pod, &err), err);
    return pod;
}
