/* store/conformance_tests.h - the tests that every store passes; see store/conformance.h. Included
 * by the test program of each implementation: what the tests share is here, they themselves are in
 * the parts. */
#pragma once

#include "store/conformance.h"

#include "api/node.h"
#include "api/nodepool.h"
#include "api/policy.h"
#include "api/storage.h"
#include "api/workloads.h"
#include "store/testing.h"

#define CONFORMANCE __attribute__((cleanup(conformance_close))) struct conformance

#define EVENTUALLY(c, cond)                                                                        \
    do {                                                                                           \
        bool eventually_;                                                                          \
        while (!(eventually_ = (cond)) && conformance_wait(c))                                     \
            continue;                                                                              \
        _assert_true(eventually_, #cond, __FILE__, __LINE__);                                      \
    } while (0)

static struct conformance opened(void)
{
    struct conformance c = { 0 };
    conformance_open(&c);
    return c;
}

/* Returns the event's version. */
static uint64_t expect_event(struct conformance *c, struct watch *w, const char *want)
{
    const char *got;
    uint64_t version = 0;
    while ((got = event_text(w, &version))[0] == '\0' && conformance_wait(c))
        continue;
    EXPECT_Z(got, want);
    return version;
}

static struct object_list list(struct conformance *c, const struct kind *kind,
                               struct list_options opts)
{
    struct object_list out = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(c->store, kind, &opts, &out, &err), err);
    return out;
}

/* The names of a list, "a b c". */
static const char *names(struct conformance *c, const struct kind *kind, struct list_options opts)
{
    static char text[1024];
    size_t len = 0;
    struct object_list found = list(c, kind, opts);

    text[0] = '\0';
    for (size_t i = 0; i < found.count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s", i ? " " : "",
                                STR_ARG(found.items[i]->meta.name));
    object_list_done(&found);
    return text;
}

static int patch(struct conformance *c, const struct kind *kind, const char *name,
                 struct patch_options opts, struct str text, struct err *err)
{
    return store_patch(c->store, at(kind, name), opts, text, NULL, err);
}

#include "store/conformance_write.h"
#include "store/conformance_delete.h"
#include "store/conformance_read.h"
#include "store/conformance_pods.h"
