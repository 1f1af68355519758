/* tests/kube/audit.h - what a user asked the API server for, and what was answered: from its audit log. */
#pragma once

#include "base/arena.h"
#include "base/vec.h"

struct audit_use {              /* one way of asking, however often */
    struct str group, resource; /* "karpenter.sh", "nodepools/status" */
    struct str verb;
    uint32_t count, denied; /* denied: of them, answered 403 */
    struct str example;     /* a path */
};

struct audit {
    VEC(struct audit_use) uses;
};

/* Add what the user did, by the log file; the texts are of the arena. Requests for no resource, such as
 * /version, are left out. */
void audit_read(const char *path, const char *user, struct arena *arena, struct audit *audit);
void audit_done(struct audit *audit);
/* NULL: it never asked so. */
const struct audit_use *audit_find(const struct audit *audit, struct str group, struct str resource,
                                   struct str verb);
bool audit_is_read(const struct audit_use *use); /* get, list or watch */
