/* The rights of the controller, as a table. A row is one group, some of its resources, and verbs.
 *
 * It reads what the scheduler's decisions depend on and writes what it owns. It cannot read Secrets
 * or ConfigMaps, cannot change a pod's spec, and cannot touch RBAC itself. The leader's lease is a
 * right within its namespace, on that one object.
 */
#include "api/rbac.h"

#define LEASE_NAME "karpenter-leader-election"

struct rights {
    const char *group;
    const char *resources, *verbs; /* words with blanks between them */
    const char *maybe_object;      /* the only object they are for */
};

#define FOLLOW "list watch"

static const struct rights cluster_rights[] = {
    /* read: for the copies that informers keep */
    { "karpenter.sh", "nodepools nodeclaims nodeoverlays", FOLLOW, NULL },
    { "karpenter.k8s.aws", "ec2nodeclasses", FOLLOW, NULL },
    { "karpenter.kwok.sh", "kwoknodeclasses", FOLLOW, NULL },
    { "", "pods nodes persistentvolumes persistentvolumeclaims namespaces", FOLLOW, NULL },
    { "storage.k8s.io", "storageclasses csinodes volumeattachments", FOLLOW, NULL },
    { "scheduling.k8s.io", "priorityclasses", FOLLOW, NULL },
    { "apps", "daemonsets", FOLLOW, NULL },
    { "policy", "poddisruptionbudgets", FOLLOW, NULL },
    /* and one by one, what must be known as it is right now; with --dry-run, what would be patched */
    { "karpenter.sh", "nodepools nodeclaims nodeoverlays", "get", NULL },
    { "karpenter.kwok.sh", "kwoknodeclasses", "get", NULL },
    { "", "pods nodes", "get", NULL },
    /* write */
    { "karpenter.sh", "nodeclaims", "create delete patch", NULL },
    { "karpenter.sh", "nodepools", "patch", NULL },
    { "karpenter.sh", "nodeclaims/status nodepools/status nodeoverlays/status", "patch", NULL },
    /* Claims are owned by their pool and nodes by their claim, and the owners wait for them: clusters that
     * check it (OwnerReferencesPermissionEnforcement) want who says so to be allowed to hold those up. */
    { "karpenter.sh", "nodepools/finalizers nodeclaims/finalizers", "update", NULL },
    { "", "nodes", "create patch delete", NULL },
    { "", "pods/eviction", "create", NULL },
    { "", "pods/status", "patch", NULL },
    { "", "pods", "delete", NULL },
    { "", "events", "create", NULL },
};

static const struct rights lease_rights[] = {
    /* A name cannot be asked for on creation: the object is not there yet. */
    { "coordination.k8s.io", "leases", "create", NULL },
    { "coordination.k8s.io", "leases", "get patch", LEASE_NAME },
};

static json_mut *words(struct json_build *b, const char *text)
{
    json_mut *list = json_new_array(b);
    struct str rest = str_of(text), word;
    bool more = true;
    while (more) {
        struct str tail = STR("");
        more = str_cut(rest, ' ', &word, &tail);
        json_push(b, list, json_new_str(b, word));
        rest = tail;
    }
    return list;
}

static json_mut *rules(struct json_build *b, const struct rights *table, size_t count)
{
    json_mut *list = json_new_array(b);
    for (size_t i = 0; i < count; i++) {
        json_mut *rule = json_new_object(b);
        json_set(b, rule, STR("apiGroups"), words(b, table[i].group));
        json_set(b, rule, STR("resources"), words(b, table[i].resources));
        if (table[i].maybe_object)
            json_set(b, rule, STR("resourceNames"), words(b, table[i].maybe_object));
        json_set(b, rule, STR("verbs"), words(b, table[i].verbs));
        json_push(b, list, rule);
    }
    return list;
}

static json_mut *object(struct json_build *b, const char *api_version, const char *kind,
                        struct str name, struct str maybe_namespace)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "apiVersion", str_of(api_version));
    json_set_str(b, o, "kind", str_of(kind));
    json_mut *meta = json_mut_object(b, o, STR("metadata"));
    json_set_str(b, meta, "name", name);
    if (maybe_namespace.p)
        json_set_str(b, meta, "namespace", maybe_namespace);
    return o;
}

#define RBAC_VERSION "rbac.authorization.k8s.io/v1"

/* Gives the role of the same name to the service account. */
static json_mut *binding(struct json_build *b, const char *kind, const char *role_kind,
                         const struct rbac_options *options, struct str maybe_namespace)
{
    json_mut *o = object(b, RBAC_VERSION, kind, options->name, maybe_namespace);
    json_mut *role = json_mut_object(b, o, STR("roleRef"));
    json_mut *subjects = json_new_array(b), *subject = json_new_object(b);

    json_set_str(b, role, "apiGroup", STR("rbac.authorization.k8s.io"));
    json_set_str(b, role, "kind", str_of(role_kind));
    json_set_str(b, role, "name", options->name);
    json_set_str(b, subject, "kind", STR("ServiceAccount"));
    json_set_str(b, subject, "name", options->name);
    json_set_str(b, subject, "namespace", options->namespace_);
    json_push(b, subjects, subject);
    json_set(b, o, STR("subjects"), subjects);
    return o;
}

json_mut *rbac_build(struct json_build *b, struct rbac_options options)
{
    json_mut *list = json_new_array(b), *role;

    if (!options.namespace_.p)
        options.namespace_ = STR("kube-system");
    if (!options.name.p)
        options.name = STR("karve");

    json_push(b, list, object(b, "v1", "ServiceAccount", options.name, options.namespace_));
    role = object(b, RBAC_VERSION, "ClusterRole", options.name, STR_NONE);
    json_set(b, role, STR("rules"), rules(b, cluster_rights, KV_COUNT_OF(cluster_rights)));
    json_push(b, list, role);
    json_push(b, list, binding(b, "ClusterRoleBinding", "ClusterRole", &options, STR_NONE));

    role = object(b, RBAC_VERSION, "Role", options.name, options.namespace_);
    json_set(b, role, STR("rules"), rules(b, lease_rights, KV_COUNT_OF(lease_rights)));
    json_push(b, list, role);
    json_push(b, list, binding(b, "RoleBinding", "Role", &options, options.namespace_));
    return list;
}
