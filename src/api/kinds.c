/* The registry: every kind that karve reads. */
#include "api/kinds.h"

const struct kind *const kinds[] = {
    &cron_job_kind,
    &csi_node_kind,
    &daemon_set_kind,
    &deployment_kind,
    &ec2nodeclass_kind,
    &event_kind,
    &job_kind,
    &kwoknodeclass_kind,
    &lease_kind,
    &namespace_kind,
    &node_feature_group_kind,
    &node_feature_kind,
    &node_kind,
    &nodeclaim_kind,
    &nodeoverlay_kind,
    &nodepool_kind,
    &pdb_kind,
    &pod_kind,
    &priority_class_kind,
    &pv_kind,
    &pvc_kind,
    &replica_set_kind,
    &service_kind,
    &stateful_set_kind,
    &storage_class_kind,
    &volume_attachment_kind,
};
const uint32_t kind_count = KV_COUNT_OF(kinds);

static bool same_word(struct str a, const char *b) /* ignoring case */
{
    return a.len == strlen(b) && strncasecmp(a.p, b, a.len) == 0;
}

const struct kind *kind_find(struct str api_version, struct str name)
{
    struct str group, version;
    if (!str_cut(api_version, '/', &group, &version)) {
        version = group;
        group = STR("");
    }
    for (uint32_t i = 0; i < kind_count; i++) {
        if (str_eqz(name, kinds[i]->name) && str_eqz(group, kinds[i]->group) &&
            str_eqz(version, kinds[i]->version))
            return kinds[i];
    }
    return NULL;
}

const struct kind *kind_find_plural(struct str name)
{
    for (uint32_t i = 0; i < kind_count; i++) {
        if (same_word(name, kinds[i]->plural) || same_word(name, kinds[i]->singular))
            return kinds[i];
    }
    return NULL;
}

void kind_api_version(const struct kind *kind, struct buf *out)
{
    if (kind->group[0])
        buf_addf(out, "%s/", kind->group);
    buf_addz(out, kind->version);
}

/* Groups without a dot, and those under k8s.io: Kubernetes keeps them for itself. */
bool kind_is_builtin(const struct kind *kind)
{
    struct str group = str_of(kind->group);
    return str_find(group, '.') < 0 || str_ends(group, STR(".k8s.io"));
}
