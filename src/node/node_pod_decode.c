/* Decoding of a pod as a whole.
 *
 * The tables (here and in node_pod_decode_*.c) fill the struct from JSON; then each part is settled:
 * its defaults, which of several kinds it is, the pod's security context merged into each
 * container's. Names that become names of folders are checked even though the API server has
 * checked them: the agent is root and writes there. */
#include "api/pod_tables.h"
#include "api/resources.h"
#include "codec/selector.h"
#include "node/node_pod_inner.h"

#include <stdarg.h>

#define HOSTNAME_BYTES_MAX 63
#define UID_BYTES_MAX 128

/* --- tables --- */

#define T struct named /* a list of them is laid out as a str_list */
_Static_assert(sizeof(struct named) == sizeof(struct str), "nothing but the text");
static const struct field name_fields[] = { FIELD(STR, name, "name", NULL) };
static const struct schema name_schema = SCHEMA("LocalObjectReference", T, name_fields);
static const struct field gate_fields[] = { FIELD(STR, name, "conditionType", NULL) };
static const struct schema gate_schema = SCHEMA("PodReadinessGate", T, gate_fields);
#undef T

#define T struct host_alias
static const struct field alias_fields[] = {
    FIELD(STR, ip, "ip", NULL),
    FIELD(STRS, hostnames, "hostnames", NULL),
};
#undef T
static const struct schema alias_schema = SCHEMA("HostAlias", struct host_alias, alias_fields);

#define T struct dns_option
static const struct field option_fields[] = {
    FIELD(STR, name, "name", NULL),
    FIELD(STR, value, "value", NULL),
};
#undef T
static const struct schema option_schema =
    SCHEMA("PodDNSConfigOption", struct dns_option, option_fields);

#define T struct node_pod
static const struct field pod_meta_fields[] = {
    FIELD(STR, name, "name", NULL),
    FIELD(STR, namespace_, "namespace", NULL),
    FIELD(STR, uid, "uid", NULL),
    FIELD(TIME, created_us, "creationTimestamp", NULL),
    FIELD(TIME, deleted_us, "deletionTimestamp", NULL),
    FIELD(MAYBE_INT, deletion_grace_s, "deletionGracePeriodSeconds", NULL),
    FIELD(STR_MAP, labels, "labels", NULL),
    FIELD(STR_MAP, annotations, "annotations", NULL),
};
static const struct schema pod_meta_schema = SCHEMA("ObjectMeta", T, pod_meta_fields);

static const struct field dns_fields[] = {
    FIELD(STRS, dns_servers, "nameservers", NULL),
    FIELD(STRS, dns_searches, "searches", NULL),
    FIELD(LIST, dns_options, "options", NULL, .sub = &option_schema),
};
static const struct schema dns_schema = SCHEMA("PodDNSConfig", T, dns_fields);

static const struct field spec_fields[] = {
    FIELD(LIST, volumes, "volumes", NULL, .sub = &node_volume_schema),
    FIELD(LIST, inits, "initContainers", NULL, .sub = &node_container_schema),
    FIELD(LIST, containers, "containers", NULL, .sub = &node_container_schema),
    FIELD(LIST, ephemerals, "ephemeralContainers", NULL, .sub = &node_container_schema),
    FIELD(ENUM, restart_policy, "restartPolicy", NULL, RULE(ENUMS("Always", "OnFailure", "Never"))),
    FIELD(INT, termination_grace_s, "terminationGracePeriodSeconds", NULL),
    FIELD(MAYBE_INT, active_deadline_s, "activeDeadlineSeconds", NULL),
    FIELD(STR, dns_policy, "dnsPolicy", NULL),
    FIELD(STR, service_account, "serviceAccountName", NULL),
    FIELD(STR, node_name, "nodeName", NULL),
    FIELD(BOOL, host_network, "hostNetwork", NULL),
    FIELD(BOOL, host_pid, "hostPID", NULL),
    FIELD(BOOL, host_ipc, "hostIPC", NULL),
    FIELD(BOOL, share_process_namespace, "shareProcessNamespace", NULL),
    FLAT("securityContext", node_pod_security_schema),
    FIELD(LIST, image_pull_secrets, "imagePullSecrets", NULL, .sub = &name_schema),
    FIELD(STR, hostname, "hostname", NULL),
    FIELD(STR, subdomain, "subdomain", NULL),
    FIELD(LIST, host_aliases, "hostAliases", NULL, .sub = &alias_schema),
    FIELD(MAYBE_INT, priority, "priority", NULL),
    FLAT("dnsConfig", dns_schema),
    FIELD(LIST, readiness_gates, "readinessGates", NULL, .sub = &gate_schema),
    FIELD(STR, runtime_class, "runtimeClassName", NULL),
    FIELD(RESOURCES, overhead, "overhead", NULL),
    FIELD(BOOL, set_hostname_as_fqdn, "setHostnameAsFQDN", NULL),
    FIELD(STRUCT, resources, "resources", NULL, .sub = &resource_needs_schema),
};
static const struct schema spec_schema = SCHEMA("PodSpec", T, spec_fields);

static const struct field node_pod_fields[] = {
    FLAT("metadata", pod_meta_schema),
    FLAT("spec", spec_schema),
};
static const struct schema node_pod_schema = SCHEMA("Pod", T, node_pod_fields);
#undef T

/* --- what all parts use --- */

int settling_refuse(const struct settling *at, const char *fmt, ...)
{
    AUTO_BUF text = { 0 };
    va_list args;
    path_format(&at->path, &text);
    buf_addz(&text, ": ");
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    return err_set(at->err, ERR_INVALID, "%s", text.p);
}

int settling_decode(const struct settling *at, const struct schema *schema, void *out)
{
    struct err why;
    if (schema_decode(schema, at->json, at->arena, out, &why) < 0)
        return settling_refuse(at, "%s", why.text);
    return 0;
}

static bool is_there(const json_val *object, const char *name)
{
    const json_val *member = json_get(object, str_of(name));
    return member && !json_is_null(member);
}

uint8_t json_which(const json_val *object, const char *const *names)
{
    for (uint8_t i = 0; names[i]; i++) {
        if (is_there(object, names[i]))
            return (uint8_t)(i + 1);
    }
    return 0;
}

int settle_quantity(const struct settling *at, struct str *text, struct quantity *maybe_out)
{
    AUTO_BUF number = { 0 };
    struct quantity q;
    struct err why;
    *text = STR_NONE;
    if (!at->json || json_is_null(at->json))
        return 0;
    if (json_is_number(at->json)) {
        json_write(at->json, &number);
        *text = arena_str(at->arena, buf_str(&number));
    } else if (json_is_string(at->json)) {
        *text = json_str(at->json);
    } else {
        return settling_refuse(at, "expected a quantity such as \"1500m\" or \"2Gi\"");
    }
    if (quantity_parse(*text, &q, &why) < 0)
        return settling_refuse(at, "%s", why.text);
    if (maybe_out)
        *maybe_out = q;
    return 0;
}

/* --- names --- */

/* Kubernetes has UUIDs; a manifest may say anything. */
static bool uid_is_fine(struct str uid)
{
    if (uid.len == 0 || uid.len > UID_BYTES_MAX || uid.p[0] == '.')
        return false;
    for (size_t i = 0; i < uid.len; i++) {
        char c = uid.p[i];
        if (!char_is_alnum(c) && c != '-' && c != '_' && c != '.')
            return false;
    }
    return true;
}

static int settle_names(const struct settling *meta, const struct node_pod *pod)
{
    struct settling name = settling_in(meta, "name");
    struct settling namespace_ = settling_in(meta, "namespace");
    struct settling uid = settling_in(meta, "uid");
    const char *problem = dns1123_subdomain_problem(pod->name);
    if (problem)
        return settling_refuse(&name, "%s %s", STR_SHOWN(pod->name), problem);
    if ((problem = dns1123_label_problem(pod->namespace_)))
        return settling_refuse(&namespace_, "%s %s", STR_SHOWN(pod->namespace_), problem);
    if (!uid_is_fine(pod->uid))
        return settling_refuse(&uid,
                               "%s is not a uid, expected 1 to %d letters, digits, '-', '_' and "
                               "'.', not a '.' first",
                               STR_SHOWN(pod->uid), UID_BYTES_MAX);
    return 0;
}

static void settle_hostname(const json_val *spec, struct node_pod *pod)
{
    struct str override = json_str(json_get(spec, STR("hostnameOverride")));
    struct str name = override.len ? override : pod->hostname.len ? pod->hostname : pod->name;
    size_t len = name.len < HOSTNAME_BYTES_MAX ? name.len : HOSTNAME_BYTES_MAX;
    while (len > 0 && (name.p[len - 1] == '-' || name.p[len - 1] == '.'))
        len--;
    pod->hostname = str_sub(name, 0, len);
}

/* --- the quality of service that requests and limits earn --- */

struct qos_sums {
    bool any;         /* something asked for or limited */
    bool all_limited; /* every container, in cpu and memory */
    bool requests_at_limit;
};

/* cpu and memory of one container (or of the pod as a whole); zero counts as not there. */
static void qos_add(struct qos_sums *sums, const struct resource_needs *needs)
{
    static const struct str names[] = { { "cpu", 3 }, { "memory", 6 } };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        struct quantity request = resources_get(&needs->requests, names[i]);
        struct quantity limit = resources_get(&needs->limits, names[i]);
        if (!resources_find(&needs->requests, names[i]))
            request = limit; /* as the API server completes them */
        sums->any |= !quantity_is_zero(request) || !quantity_is_zero(limit);
        sums->all_limited &= !quantity_is_zero(limit);
        sums->requests_at_limit &= quantity_cmp(request, limit) == 0;
    }
}

static bool has_needs(const struct resource_needs *needs)
{
    return needs->requests.count || needs->limits.count;
}

static uint8_t qos_of(const struct node_pod *pod)
{
    struct qos_sums sums = { .all_limited = true, .requests_at_limit = true };
    if (has_needs(&pod->resources)) {
        qos_add(&sums, &pod->resources);
    } else {
        for (uint32_t i = 0; i < pod->inits.count; i++)
            qos_add(&sums, &pod->inits.items[i].resources);
        for (uint32_t i = 0; i < pod->containers.count; i++)
            qos_add(&sums, &pod->containers.items[i].resources);
    }
    if (!sums.any)
        return QOS_BEST_EFFORT;
    return sums.all_limited && sums.requests_at_limit ? QOS_GUARANTEED : QOS_BURSTABLE;
}

/* --- the pod --- */

static void settle_defaults(const json_val *spec, struct node_pod *pod)
{
    if (pod->restart_policy == RESTART_UNSET)
        pod->restart_policy = RESTART_ALWAYS;
    if (!is_there(spec, "terminationGracePeriodSeconds"))
        pod->termination_grace_s = 30;
    if (pod->termination_grace_s < 0)
        pod->termination_grace_s = 1; /* as the API server reads it */
    if (!pod->dns_policy.len)
        pod->dns_policy = STR("ClusterFirst");
    if (!pod->service_account.len) /* by its old name */
        pod->service_account = json_str(json_get(spec, STR("serviceAccount")));
    settle_hostname(spec, pod);
}

static int settle_containers(const struct settling *spec, const struct node_pod *pod,
                             const char *list, const struct node_container *items)
{
    struct settling at = settling_in(spec, list);
    uint32_t ix = 0;
    json_each_item(at.json, json) {
        struct settling item = settling_at(&at, ix, json);
        struct node_container *container = (struct node_container *)&items[ix++];
        container->init = items == pod->inits.items;
        container->ephemeral = items == pod->ephemerals.items;
        if (settle_container(&item, pod, container) < 0)
            return -1;
    }
    return 0;
}

static int settle_volumes(const struct settling *spec, const struct node_pod *pod)
{
    struct settling at = settling_in(spec, "volumes");
    uint32_t ix = 0;
    json_each_item(at.json, json) {
        struct settling item = settling_at(&at, ix, json);
        struct settling name = settling_in(&item, "name");
        struct node_volume *volume = (struct node_volume *)&pod->volumes.items[ix++];
        const char *problem = dns1123_label_problem(volume->name);
        if (problem)
            return settling_refuse(&name, "%s %s", STR_SHOWN(volume->name), problem);
        if (settle_volume(&item, volume) < 0)
            return -1;
    }
    return 0;
}

int node_pod_fill(struct node_pod *pod, struct err *err)
{
    const json_val *root = pod->doc.root;
    if (schema_decode(&node_pod_schema, root, &pod->arena, pod, err) < 0)
        return -1;

    struct settling meta = { .arena = &pod->arena,
                             .path = { .name = STR("metadata") },
                             .json = json_get(root, STR("metadata")),
                             .err = err };
    struct settling spec = { .arena = &pod->arena,
                             .path = { .name = STR("spec") },
                             .json = json_get(root, STR("spec")),
                             .err = err };
    struct settling security = settling_in(&spec, "securityContext");
    if (settle_names(&meta, pod) < 0)
        return -1;
    if (pod->containers.count == 0)
        return settling_refuse(&spec, "has no containers");
    settle_defaults(spec.json, pod);
    if (settle_pod_security(&security, pod) < 0 ||
        settle_containers(&spec, pod, "initContainers", pod->inits.items) < 0 ||
        settle_containers(&spec, pod, "containers", pod->containers.items) < 0 ||
        settle_containers(&spec, pod, "ephemeralContainers", pod->ephemerals.items) < 0 ||
        settle_volumes(&spec, pod) < 0)
        return -1;
    pod->qos = qos_of(pod);
    pod->maybe_status = json_get(root, STR("status"));
    return 0;
}
