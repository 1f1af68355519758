/* A planning made by hand, for the page of `karve plan -o html`: as large as wished, and with texts
 * that no manifest would get past validation. No solver is needed, and nothing in it changes when one
 * plans differently. */
#pragma once

#include "cmd/plan_inner.h"

struct plan_fixture_options {
    uint32_t launches;  /* distinct ones */
    uint32_t copies;    /* further launches that equal some of those */
    uint32_t workloads; /* that pods are of; at least 4 */
    uint32_t existing;  /* nodes that are there and take pods */
    bool hostile;       /* names and texts that try to be markup, script or another text */
};

/* What hostile texts end in. */
#define HOSTILE "</script><script>hacked=1</script><img src=x onerror=hacked=1><!--\"'&\\u003c"

struct plan_fixture;
struct plan_fixture *plan_fixture_new(struct plan_fixture_options options);
const struct planning *plan_fixture_planning(const struct plan_fixture *f);
void plan_fixture_free(struct plan_fixture *f);
KV_AUTO_TYPE(plan_fixture, plan_fixture_free)
