/* Decoding of security contexts. A container's and the pod's have the fields that both know in the
 * same struct; merging them is filling in what the container leaves open. */
#include "node/node_pod_inner.h"

#define T struct security_profile
static const struct field profile_fields[] = {
    FIELD(ENUM, kind, "type", NULL, RULE(ENUMS("RuntimeDefault", "Unconfined", "Localhost"))),
    FIELD(STR, localhost, "localhostProfile", NULL),
};
#undef T
static const struct schema profile_schema =
    SCHEMA("SecurityProfile", struct security_profile, profile_fields);

#define T struct selinux_options
static const struct field selinux_fields[] = {
    FIELD(STR, user, "user", NULL),
    FIELD(STR, role, "role", NULL),
    FIELD(STR, type, "type", NULL),
    FIELD(STR, level, "level", NULL),
};
#undef T
static const struct schema selinux_schema =
    SCHEMA("SELinuxOptions", struct selinux_options, selinux_fields);

#define T struct security_context
static const struct field capability_fields[] = {
    FIELD(STRS, add_capabilities, "add", NULL),
    FIELD(STRS, drop_capabilities, "drop", NULL),
};
static const struct schema capability_schema = SCHEMA("Capabilities", T, capability_fields);

static const struct field security_fields[] = {
    FLAT("capabilities", capability_schema),
    FIELD(TRI, privileged, "privileged", NULL),
    FIELD(STRUCT, selinux, "seLinuxOptions", NULL, .sub = &selinux_schema),
    FIELD(MAYBE_INT, run_as_user, "runAsUser", NULL),
    FIELD(MAYBE_INT, run_as_group, "runAsGroup", NULL),
    FIELD(TRI, run_as_non_root, "runAsNonRoot", NULL),
    FIELD(TRI, read_only_root, "readOnlyRootFilesystem", NULL),
    FIELD(TRI, allow_escalation, "allowPrivilegeEscalation", NULL),
    FIELD(ENUM, unmasked_proc, "procMount", NULL, RULE(ENUMS("Unmasked"))),
    FIELD(STRUCT, seccomp, "seccompProfile", NULL, .sub = &profile_schema),
    FIELD(STRUCT, apparmor, "appArmorProfile", NULL, .sub = &profile_schema),
};
#undef T
const struct schema node_security_schema =
    SCHEMA("SecurityContext", struct security_context, security_fields);

#define T struct dns_option
static const struct field sysctl_fields[] = {
    FIELD(STR, name, "name", NULL),
    FIELD(STR, value, "value", NULL),
};
#undef T
static const struct schema sysctl_schema = SCHEMA("Sysctl", struct dns_option, sysctl_fields);

/* Supplemental groups, a list of numbers, are settled. */
#define T struct node_pod
static const struct field pod_security_fields[] = {
    FIELD(STRUCT, security.selinux, "seLinuxOptions", NULL, .sub = &selinux_schema),
    FIELD(MAYBE_INT, security.run_as_user, "runAsUser", NULL),
    FIELD(MAYBE_INT, security.run_as_group, "runAsGroup", NULL),
    FIELD(TRI, security.run_as_non_root, "runAsNonRoot", NULL),
    FIELD(MAYBE_INT, fs_group, "fsGroup", NULL),
    FIELD(LIST, sysctls, "sysctls", NULL, .sub = &sysctl_schema),
    FIELD(STRUCT, security.seccomp, "seccompProfile", NULL, .sub = &profile_schema),
    FIELD(STRUCT, security.apparmor, "appArmorProfile", NULL, .sub = &profile_schema),
};
#undef T
const struct schema node_pod_security_schema =
    SCHEMA("PodSecurityContext", struct node_pod, pod_security_fields);

int settle_pod_security(const struct settling *at, struct node_pod *pod)
{
    struct settling groups = settling_in(at, "supplementalGroups");
    size_t count = json_count(groups.json);
    int64_t *ids = arena_array(at->arena, int64_t, count);
    uint32_t n = 0;
    if (groups.json && !json_is_null(groups.json) && !json_is_array(groups.json))
        return settling_refuse(&groups, "expected a list of group ids");
    json_each_item(groups.json, item) {
        struct settling group = settling_at(&groups, n, item);
        if (!json_i64(item, &ids[n]) || ids[n] < 0 || ids[n] > UINT32_MAX)
            return settling_refuse(&group, "is not a group id");
        n++;
    }
    pod->supplemental_groups = n ? ids : NULL;
    pod->supplemental_group_count = n;
    return 0;
}

static bool selinux_is_unset(const struct selinux_options *o)
{
    return !o->user.len && !o->role.len && !o->type.len && !o->level.len;
}

void security_merge(struct security_context *own, const struct security_context *pod)
{
    if (!own->run_as_user.set)
        own->run_as_user = pod->run_as_user;
    if (!own->run_as_group.set)
        own->run_as_group = pod->run_as_group;
    if (own->run_as_non_root == TRI_UNSET)
        own->run_as_non_root = pod->run_as_non_root;
    if (!own->seccomp.kind)
        own->seccomp = pod->seccomp;
    if (!own->apparmor.kind)
        own->apparmor = pod->apparmor;
    if (selinux_is_unset(&own->selinux))
        own->selinux = pod->selinux;
}
