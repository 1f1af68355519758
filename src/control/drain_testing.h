/* control/drain_testing.h - pods for tests that need no store. */
#pragma once

#include "codec/json.h"
#include "store/testing.h"

/* The pod of a JSON text, in `pool`; the caller's to unref. */
static inline const struct object *read_pod(struct object_pool *pool, struct str json)
{
    struct doc doc;
    struct err err = { 0 };
    const struct object *pod = NULL;
    EXPECT_OK(json_read(json, &doc, &err), err);
    EXPECT_OK(object_decode(pool, &pod_kind, doc.root, &pod, &err), err);
    doc_done(&doc);
    return pod;
}
