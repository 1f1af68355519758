/* The rights of the controller and the extender, as tables. A row is one group, some of its resources, and
 * verbs.
 *
 * The controller reads what the scheduler's decisions depend on and writes what it owns. It cannot read
 * Secrets or ConfigMaps, cannot change a pod's spec, and cannot touch RBAC itself. The leader's lease is a
 * right within its namespace, on that one object. The extender only reads. What some flags need beyond that
 * is in roles of their own, for whoever turns those on to bind: that of pull secrets to namespaces, best.
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
    { "nfd.k8s-sigs.io", "nodefeatures", FOLLOW, NULL },
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

static const struct rights extender_rights[] = {
    { "", "pods nodes", FOLLOW, NULL },
    { "nfd.k8s-sigs.io", "nodefeatures", FOLLOW, NULL },
};

static const struct rights image_group_rights[] = {
    { "nfd.k8s-sigs.io", "nodefeaturegroups", "get list watch create patch delete", NULL },
};

static const struct rights pull_secret_rights[] = {
    { "", "secrets serviceaccounts", "get", NULL },
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

static json_mut *role(struct json_build *b, const char *kind, struct str name,
                      struct str maybe_namespace, const struct rights *table, size_t count)
{
    json_mut *o = object(b, RBAC_VERSION, kind, name, maybe_namespace);
    json_set(b, o, STR("rules"), rules(b, table, count));
    return o;
}

#define CLUSTER_ROLE(b, name, table)                                                               \
    role(b, "ClusterRole", name, STR_NONE, table, KV_COUNT_OF(table))

/* Gives the role of the same name to the service account of that name. */
static json_mut *binding(struct json_build *b, const char *kind, const char *role_kind,
                         struct str name, struct str namespace_, bool within)
{
    json_mut *o = object(b, RBAC_VERSION, kind, name, within ? namespace_ : STR_NONE);
    json_mut *ref = json_mut_object(b, o, STR("roleRef"));
    json_mut *subjects = json_new_array(b), *subject = json_new_object(b);

    json_set_str(b, ref, "apiGroup", STR("rbac.authorization.k8s.io"));
    json_set_str(b, ref, "kind", str_of(role_kind));
    json_set_str(b, ref, "name", name);
    json_set_str(b, subject, "kind", STR("ServiceAccount"));
    json_set_str(b, subject, "name", name);
    json_set_str(b, subject, "namespace", namespace_);
    json_push(b, subjects, subject);
    json_set(b, o, STR("subjects"), subjects);
    return o;
}

static json_mut *cluster_binding(struct json_build *b, struct str name, struct str namespace_)
{
    return binding(b, "ClusterRoleBinding", "ClusterRole", name, namespace_, false);
}

/* The name with something after it: "karve-extender". */
static struct str with_suffix(struct buf *out, struct str name, const char *suffix)
{
    buf_clear(out);
    buf_add(out, name);
    buf_addz(out, suffix);
    return buf_str(out);
}

json_mut *rbac_build(struct json_build *b, struct rbac_options options)
{
    json_mut *list = json_new_array(b);
    AUTO_BUF text = { 0 };
    struct str namespace_ = options.namespace_.p ? options.namespace_ : STR("kube-system");
    struct str name = options.name.p ? options.name : STR("karve");

    json_push(b, list, object(b, "v1", "ServiceAccount", name, namespace_));
    json_push(b, list, CLUSTER_ROLE(b, name, cluster_rights));
    json_push(b, list, cluster_binding(b, name, namespace_));
    json_push(b, list, role(b, "Role", name, namespace_, lease_rights, KV_COUNT_OF(lease_rights)));
    json_push(b, list, binding(b, "RoleBinding", "Role", name, namespace_, true));
    if (options.extender) {
        struct str extender = with_suffix(&text, name, "-extender");
        json_push(b, list, object(b, "v1", "ServiceAccount", extender, namespace_));
        json_push(b, list, CLUSTER_ROLE(b, extender, extender_rights));
        json_push(b, list, cluster_binding(b, extender, namespace_));
    }
    if (options.optional_roles) {
        struct str groups = with_suffix(&text, name, "-image-groups");
        json_push(b, list, CLUSTER_ROLE(b, groups, image_group_rights));
        struct str secrets = with_suffix(&text, name, "-pull-secrets");
        json_push(b, list, CLUSTER_ROLE(b, secrets, pull_secret_rights));
    }
    return list;
}
