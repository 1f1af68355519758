/* The sandbox: what all containers of a pod share. */
#include "node/configs_inner.h"

#include "api/resources.h"
#include "base/file.h"

#define HOSTNAME_BYTES_MAX 63 /* the kernel takes 64; names that DNS takes are shorter */
#define FQDN_BYTES_MAX 64
#define RESOLV_CONF_BYTES_MAX ((size_t)64 << 10)

/* --- cgroup --- */

static const char *qos_folder(const struct node_pod *pod)
{
    switch ((enum pod_qos)pod->qos) {
    case QOS_BURSTABLE:
        return "burstable";
    case QOS_UNSET:
    case QOS_BEST_EFFORT:
        return "besteffort";
    case QOS_GUARANTEED:
        break;
    }
    return NULL; /* right below /kubepods */
}

/* A slice says its whole path in its name, in which a dash goes one level down. */
static struct str systemd_slice(struct arena *arena, const char *maybe_qos, struct str uid)
{
    char *safe_uid = message_str(arena, uid);
    for (char *c = safe_uid; *c; c++) {
        if (*c == '-')
            *c = '_';
    }
    if (!maybe_qos)
        return arena_strf(arena, "/kubepods.slice/kubepods-pod%s.slice", safe_uid);
    return arena_strf(arena, "/kubepods.slice/kubepods-%s.slice/kubepods-%s-pod%s.slice", maybe_qos,
                      maybe_qos, safe_uid);
}

struct str pod_cgroup_parent(struct arena *arena, const struct node_pod *pod,
                             const struct node_facts *facts)
{
    const char *qos = qos_folder(pod);
    if (facts->systemd_cgroups)
        return systemd_slice(arena, qos, pod->uid);
    return arena_strf(arena, "/kubepods%s%s/pod%.*s", qos ? "/" : "", qos ? qos : "",
                      STR_ARG(pod->uid));
}

/* --- parts --- */

static int set_hostname(struct arena *arena, const struct node_pod *pod,
                        const struct node_facts *facts, Cri__PodSandboxConfig *out, struct err *err)
{
    if (pod->host_network) /* it has the host's */
        return 0;
    struct str name = str_sub(pod->hostname, 0, HOSTNAME_BYTES_MAX);
    while (name.len > 0 && (name.p[name.len - 1] == '-' || name.p[name.len - 1] == '.'))
        name.len--;
    if (pod->set_hostname_as_fqdn && pod->subdomain.len > 0) {
        name = arena_strf(arena, "%.*s.%.*s.%.*s.svc.%.*s", STR_ARG(name), STR_ARG(pod->subdomain),
                          STR_ARG(pod->namespace_), STR_ARG(facts->dns_domain));
        if (name.len > FQDN_BYTES_MAX)
            return err_set(err, ERR_INVALID, "setHostnameAsFQDN: %s is longer than %d bytes",
                           STR_SHOWN(name), FQDN_BYTES_MAX);
    }
    out->hostname = message_str(arena, name);
    return 0;
}

static Cri__Protocol cri_protocol(uint8_t protocol)
{
    switch ((enum protocol)protocol) {
    case PROTOCOL_UDP:
        return CRI__PROTOCOL__UDP;
    case PROTOCOL_SCTP:
        return CRI__PROTOCOL__SCTP;
    case PROTOCOL_UNSET:
    case PROTOCOL_TCP:
        break;
    }
    return CRI__PROTOCOL__TCP;
}

static void add_ports(struct arena *arena, const struct node_container *container,
                      Cri__PodSandboxConfig *out)
{
    for (uint32_t i = 0; i < container->ports.count; i++) {
        const struct container_port *port = &container->ports.items[i];
        if (port->host_port <= 0)
            continue;
        Cri__PortMapping *mapping = MESSAGE(arena, port_mapping, PortMapping);
        mapping->protocol = cri_protocol(port->protocol);
        mapping->container_port = (int32_t)port->container_port;
        mapping->host_port = (int32_t)port->host_port;
        mapping->host_ip = message_str(arena, port->host_ip);
        out->port_mappings[out->n_port_mappings++] = mapping;
    }
}

/* Of containers that run as long as the pod does. On the host's network there is nothing to map. */
static void set_ports(struct arena *arena, const struct node_pod *pod, Cri__PodSandboxConfig *out)
{
    size_t max = 0;
    for (uint32_t i = 0; i < pod->containers.count; i++)
        max += pod->containers.items[i].ports.count;
    for (uint32_t i = 0; i < pod->inits.count; i++)
        max += pod->inits.items[i].ports.count;
    if (pod->host_network || max == 0)
        return;
    out->port_mappings = arena_array(arena, Cri__PortMapping *, max);
    for (uint32_t i = 0; i < pod->inits.count; i++) {
        if (pod->inits.items[i].sidecar)
            add_ports(arena, &pod->inits.items[i], out);
    }
    for (uint32_t i = 0; i < pod->containers.count; i++)
        add_ports(arena, &pod->containers.items[i], out);
}

static bool any_privileged(const struct node_pod *pod)
{
    for (uint32_t i = 0; i < pod->inits.count; i++) {
        if (pod->inits.items[i].security.privileged == TRI_TRUE)
            return true;
    }
    for (uint32_t i = 0; i < pod->containers.count; i++) {
        if (pod->containers.items[i].security.privileged == TRI_TRUE)
            return true;
    }
    return false;
}

static Cri__LinuxSandboxSecurityContext *sandbox_security(struct arena *arena,
                                                          const struct node_pod *pod)
{
    Cri__LinuxSandboxSecurityContext *out =
        MESSAGE(arena, linux_sandbox_security_context, LinuxSandboxSecurityContext);
    out->namespace_options = namespace_options(arena, pod, STR_NONE);
    out->selinux_options = selinux_options(arena, &pod->security.selinux);
    out->run_as_user = message_int(arena, pod->security.run_as_user);
    if (out->run_as_user) /* runtimes refuse a group without a user */
        out->run_as_group = message_int(arena, pod->security.run_as_group);
    out->supplemental_groups = pod_groups(arena, pod, &out->n_supplemental_groups);
    out->privileged = any_privileged(pod);
    /* The sandbox's own process only sleeps: the runtime's profile always fits it, whereas one that
     * was written for the pod's containers may not. */
    out->seccomp = MESSAGE(arena, security_profile, SecurityProfile);
    out->seccomp->profile_type = CRI__SECURITY_PROFILE__PROFILE_TYPE__RUNTIME_DEFAULT;
    return out;
}

static Cri__LinuxPodSandboxConfig *sandbox_linux(struct arena *arena, const struct node_pod *pod,
                                                 const struct node_facts *facts)
{
    Cri__LinuxPodSandboxConfig *out =
        MESSAGE(arena, linux_pod_sandbox_config, LinuxPodSandboxConfig);
    out->cgroup_parent = message_str(arena, pod_cgroup_parent(arena, pod, facts));
    out->security_context = sandbox_security(arena, pod);
    struct entries sysctls = { 0 };
    for (uint32_t i = 0; i < pod->sysctls.count; i++)
        entries_add(&sysctls, arena, pod->sysctls.items[i].name, pod->sysctls.items[i].value);
    out->sysctls = sysctls.items;
    out->n_sysctls = sysctls.count;
    if (pod->overhead.count > 0) {
        struct quantity cpu = resources_get(&pod->overhead, STR("cpu"));
        out->overhead =
            linux_resources(arena, cpu, cpu, resources_get(&pod->overhead, STR("memory")));
    }
    out->resources = pod_resources(arena, pod);
    return out;
}

static void set_maps(struct arena *arena, const struct node_pod *pod, Cri__PodSandboxConfig *out)
{
    struct entries labels = { 0 }, annotations = { 0 };
    for (uint32_t i = 0; i < pod->labels.count; i++)
        entries_add(&labels, arena, pod->labels.items[i].key, pod->labels.items[i].value);
    pod_labels_add(&labels, arena, pod); /* last, so that no label of the pod's hides them */
    for (uint32_t i = 0; i < pod->annotations.count; i++)
        entries_add(&annotations, arena, pod->annotations.items[i].key,
                    pod->annotations.items[i].value);
    entries_add(&annotations, arena, STR(AGENT_ANNOTATION), STR("true"));
    out->labels = labels.items;
    out->n_labels = labels.count;
    out->annotations = annotations.items;
    out->n_annotations = annotations.count;
}

int sandbox_config(struct arena *arena, const struct node_pod *pod, const struct node_facts *facts,
                   uint32_t attempt, Cri__PodSandboxConfig **out, struct err *err)
{
    if (log_folder_make(arena, pod, facts, STR_NONE, err) < 0)
        return err_wrap(err, "log folder");
    Cri__PodSandboxConfig *config = MESSAGE(arena, pod_sandbox_config, PodSandboxConfig);
    config->metadata = MESSAGE(arena, pod_sandbox_metadata, PodSandboxMetadata);
    config->metadata->name = message_str(arena, pod->name);
    config->metadata->uid = message_str(arena, pod->uid);
    config->metadata->namespace_ = message_str(arena, pod->namespace_);
    config->metadata->attempt = attempt;
    if (set_hostname(arena, pod, facts, config, err) < 0)
        return -1;
    config->log_directory = message_str(arena, pod_log_folder(arena, pod, facts));

    AUTO_BUF resolv_conf = { 0 }; /* a host without one has no name servers to pass on */
    (void)file_read("/etc/resolv.conf", RESOLV_CONF_BYTES_MAX, &resolv_conf, NULL);
    config->dns_config = pod_dns(arena, pod, facts, buf_str(&resolv_conf));
    set_ports(arena, pod, config);
    set_maps(arena, pod, config);
    config->linux_ = sandbox_linux(arena, pod, facts);
    *out = config;
    return 0;
}
