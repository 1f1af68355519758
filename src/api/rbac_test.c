#include "support/test.h"

#include "api/rbac.h"

struct read {
    struct buf text;
    struct doc doc;
};

static struct read read_rbac(struct rbac_options options)
{
    struct read r = { 0 };
    struct err err;
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_write_mut(rbac_build(&b, options), &r.text);
    EXPECT_OK(json_read(buf_str(&r.text), &r.doc, &err), err);
    return r;
}

static void read_done(struct read *r)
{
    doc_done(&r->doc);
    buf_done(&r->text);
}

static bool has_word(const json_val *list, const char *word)
{
    json_each_item(list, item) {
        if (str_eqz(json_str(item), word))
            return true;
    }
    return false;
}

/* Can a role's rules do that, to every object? */
static bool allows(const json_val *role, const char *verb, const char *group, const char *resource)
{
    json_each_item(json_get(role, STR("rules")), rule) {
        if (has_word(json_get(rule, STR("apiGroups")), group) &&
            has_word(json_get(rule, STR("resources")), resource) &&
            has_word(json_get(rule, STR("verbs")), verb) && !json_get(rule, STR("resourceNames")))
            return true;
    }
    return false;
}

TEST(rbac_is_an_account_two_roles_and_their_bindings)
{
    static const char *const kinds_in_order[] = { "ServiceAccount", "ClusterRole",
                                                  "ClusterRoleBinding", "Role", "RoleBinding" };
    struct read r =
        read_rbac((struct rbac_options){ .namespace_ = STR("nodes"), .name = STR("k") });
    EXPECT_EQ(json_count(r.doc.root), KV_COUNT_OF(kinds_in_order));
    for (size_t i = 0; i < KV_COUNT_OF(kinds_in_order); i++) {
        const json_val *o = json_at(r.doc.root, i);
        EXPECT_STR(json_str(json_get(o, STR("kind"))), kinds_in_order[i]);
        EXPECT_STR(json_str(json_path(o, "metadata.name")), "k");
        bool cluster = str_starts(json_str(json_get(o, STR("kind"))), STR("Cluster"));
        EXPECT_STR(json_str(json_path(o, "metadata.namespace")), cluster ? NULL : "nodes");
        const json_val *subject = json_at(json_get(o, STR("subjects")), 0);
        if (subject)
            EXPECT_STR(json_str(json_get(subject, STR("namespace"))), "nodes");
    }
    read_done(&r);
}

TEST(rbac_allows_what_the_controllers_read_and_write)
{
    static const struct {
        const char *verbs[4], *group, *resource;
    } want[] = {
        { { "get", "list", "watch" }, "", "pods" },
        { { "get", "list", "watch" }, "", "nodes" },
        { { "get", "list", "watch" }, "karpenter.sh", "nodeclaims" },
        { { "get", "list", "watch" }, "karpenter.kwok.sh", "kwoknodeclasses" },
        { { "list", "watch" }, "karpenter.k8s.aws", "ec2nodeclasses" },
        { { "list", "watch" }, "storage.k8s.io", "volumeattachments" },
        { { "list", "watch" }, "policy", "poddisruptionbudgets" },
        { { "list", "watch" }, "nfd.k8s-sigs.io", "nodefeatures" },
        { { "create", "delete", "patch" }, "karpenter.sh", "nodeclaims" },
        { { "update" }, "karpenter.sh", "nodeclaims/finalizers" },
        { { "list", "watch" }, "scheduling.k8s.io", "priorityclasses" },
        { { "patch" }, "karpenter.sh", "nodepools/status" },
        { { "create", "patch", "delete" }, "", "nodes" },
        { { "create" }, "", "pods/eviction" },
        { { "patch" }, "", "pods/status" },
        { { "delete" }, "", "pods" },
        { { "create" }, "", "events" },
    };
    struct read r = read_rbac((struct rbac_options){ 0 });
    const json_val *role = json_at(r.doc.root, 1);
    for (size_t i = 0; i < KV_COUNT_OF(want); i++) {
        for (size_t v = 0; v < 4 && want[i].verbs[v]; v++)
            EXPECT_TRUE(allows(role, want[i].verbs[v], want[i].group, want[i].resource));
    }
    read_done(&r);
}

TEST(rbac_allows_no_more)
{
    struct read r = read_rbac((struct rbac_options){ 0 });
    const json_val *role = json_at(r.doc.root, 1);
    EXPECT_FALSE(allows(role, "get", "", "secrets"));
    EXPECT_FALSE(allows(role, "list", "nfd.k8s-sigs.io", "nodefeaturegroups"));
    EXPECT_FALSE(allows(role, "patch", "nfd.k8s-sigs.io", "nodefeatures"));
    EXPECT_FALSE(allows(role, "get", "", "configmaps"));
    EXPECT_FALSE(allows(role, "get", "", "persistentvolumeclaims"));
    EXPECT_FALSE(allows(role, "create", "", "pods"));
    EXPECT_FALSE(allows(role, "patch", "", "pods"));
    EXPECT_FALSE(allows(role, "delete", "karpenter.sh", "nodepools"));
    EXPECT_FALSE(allows(role, "create", "karpenter.k8s.aws", "ec2nodeclasses"));
    EXPECT_FALSE(allows(role, "get", "apiextensions.k8s.io", "customresourcedefinitions"));
    EXPECT_FALSE(allows(role, "update", "coordination.k8s.io", "leases"));
    json_each_item(json_get(role, STR("rules")), rule) {
        EXPECT_FALSE(has_word(json_get(rule, STR("verbs")), "*"));
        EXPECT_FALSE(has_word(json_get(rule, STR("resources")), "*"));
        EXPECT_FALSE(has_word(json_get(rule, STR("apiGroups")), "*"));
        EXPECT_FALSE(has_word(json_get(rule, STR("verbs")), "deletecollection"));
    }
    read_done(&r);
}

TEST(rbac_lets_only_the_leaders_lease_be_written)
{
    struct read r = read_rbac((struct rbac_options){ 0 });
    const json_val *role = json_at(r.doc.root, 3);
    EXPECT_STR(json_str(json_path(role, "metadata.namespace")), "kube-system");
    EXPECT_TRUE(allows(role, "create", "coordination.k8s.io", "leases"));
    EXPECT_FALSE(allows(role, "update", "coordination.k8s.io", "leases"));
    const json_val *named = json_at(json_get(role, STR("rules")), 1);
    EXPECT_TRUE(has_word(json_get(named, STR("resourceNames")), "karpenter-leader-election"));
    EXPECT_TRUE(has_word(json_get(named, STR("verbs")), "patch"));
    read_done(&r);
}

static const json_val *find(const struct read *r, const char *kind, const char *name)
{
    json_each_item(r->doc.root, o) {
        if (str_eqz(json_str(json_get(o, STR("kind"))), kind) &&
            str_eqz(json_str(json_path(o, "metadata.name")), name))
            return o;
    }
    return NULL;
}

TEST(the_extender_has_an_account_of_its_own_that_only_reads_what_it_follows)
{
    static const struct {
        const char *group, *resource;
    } followed[] = { { "", "pods" }, { "", "nodes" }, { "nfd.k8s-sigs.io", "nodefeatures" } };
    struct read r =
        read_rbac((struct rbac_options){ .namespace_ = STR("nodes"), .extender = true });
    const json_val *role = find(&r, "ClusterRole", "karve-extender");
    const json_val *binding = find(&r, "ClusterRoleBinding", "karve-extender");
    EXPECT_EQ(json_count(r.doc.root), 8);
    EXPECT_TRUE(role && binding);
    EXPECT_STR(
        json_str(json_path(find(&r, "ServiceAccount", "karve-extender"), "metadata.namespace")),
        "nodes");
    EXPECT_STR(json_str(json_path(binding, "roleRef.name")), "karve-extender");
    EXPECT_STR(json_str(json_get(json_at(json_get(binding, STR("subjects")), 0), STR("name"))),
               "karve-extender");
    for (size_t i = 0; i < KV_COUNT_OF(followed); i++) {
        EXPECT_TRUE(allows(role, "list", followed[i].group, followed[i].resource));
        EXPECT_TRUE(allows(role, "watch", followed[i].group, followed[i].resource));
    }
    json_each_item(json_get(role, STR("rules")), rule) {
        EXPECT_EQ(json_count(json_get(rule, STR("verbs"))), 2);
        EXPECT_FALSE(has_word(json_get(rule, STR("resources")), "secrets"));
        EXPECT_FALSE(has_word(json_get(rule, STR("resources")), "nodefeaturegroups"));
    }
    read_done(&r);
}

TEST(roles_for_what_is_off_by_default_are_given_to_nobody)
{
    static const char *const verbs[] = { "get", "list", "watch", "create", "patch", "delete" };
    struct read r = read_rbac((struct rbac_options){ .extender = true, .optional_roles = true });
    const json_val *groups = find(&r, "ClusterRole", "karve-image-groups");
    const json_val *secrets = find(&r, "ClusterRole", "karve-pull-secrets");
    EXPECT_TRUE(groups && secrets);
    for (size_t i = 0; i < KV_COUNT_OF(verbs); i++) {
        EXPECT_TRUE(allows(groups, verbs[i], "nfd.k8s-sigs.io", "nodefeaturegroups"));
        bool get = i == 0;
        EXPECT_EQ(allows(secrets, verbs[i], "", "secrets"), get);
        EXPECT_EQ(allows(secrets, verbs[i], "", "serviceaccounts"), get);
    }
    json_each_item(r.doc.root, o) {
        struct str bound = json_str(json_path(o, "roleRef.name"));
        EXPECT_FALSE(str_eqz(bound, "karve-image-groups") || str_eqz(bound, "karve-pull-secrets"));
    }
    read_done(&r);
}
