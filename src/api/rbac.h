/* api/rbac.h - the rights that `karve controller` needs in a cluster, and no others. */
#pragma once

#include "codec/json.h"

struct rbac_options {
    struct str namespace_; /* where the controller runs; absent: kube-system */
    struct str name;       /* of the service account, roles and bindings; absent: karve */
};

/* A list of objects to apply, in order: ServiceAccount, ClusterRole, ClusterRoleBinding, Role,
 * RoleBinding. */
json_mut *rbac_build(struct json_build *b, struct rbac_options options);
