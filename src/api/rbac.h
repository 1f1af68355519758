/* api/rbac.h - the rights that `karve controller` and `karve extender` need in a cluster, and no others. */
#pragma once

#include "codec/json.h"

struct rbac_options {
    struct str namespace_; /* where they run; absent: kube-system */
    struct str name;       /* of the service account, roles and bindings; absent: karve */
    bool extender;         /* also those of the extender, named karve-extender */
    bool optional_roles;   /* also roles for what is off by default, which nobody is given */
};

/* A list of objects to apply, in order: ServiceAccount, ClusterRole, ClusterRoleBinding, Role,
 * RoleBinding of the controller; the first three of the extender; the optional ClusterRoles, karve-image-groups
 * (for --nfg-mode) and karve-pull-secrets (for --pull-secrets). */
json_mut *rbac_build(struct json_build *b, struct rbac_options options);
