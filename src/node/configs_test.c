#include "node/configs_testing.h"
#include "node/pod_sum.h"

static const struct node_pod *pod_with(const char *spec, const char *container)
{
    AUTO_BUF yaml = { 0 };
    buf_addf(&yaml,
             "metadata: {name: web, namespace: shop, uid: u-1, labels: {app: web},\n"
             "  annotations: {note: hi}}\nspec:\n%s  containers:\n"
             "  - name: c\n    image: registry.test/app:1\n%s",
             spec, container);
    return pod_from_yaml(yaml.p);
}

static Cri__PodSandboxConfig *sandbox_of(struct place *p, const struct node_pod *pod)
{
    Cri__PodSandboxConfig *out = NULL;
    struct err err;
    EXPECT_OK(sandbox_config(&p->arena, pod, &p->facts, 3, &out, &err), err);
    return out;
}

static Cri__ContainerConfig *container_of(struct place *p, const struct node_pod *pod)
{
    Cri__ContainerConfig *out = NULL;
    struct err err;
    struct container_config_input input = input_of(p, pod, "c");
    input.restart_count = 4;
    EXPECT_OK(container_config(&p->arena, &input, &out, &err), err);
    return out;
}

/* --- the sandbox --- */

TEST(a_sandbox_is_named_labelled_and_given_its_log_folder)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_with("", "");
    const Cri__PodSandboxConfig *s = sandbox_of(p, pod);
    EXPECT_Z(s->metadata->name, "web");
    EXPECT_Z(s->metadata->namespace_, "shop");
    EXPECT_Z(s->metadata->uid, "u-1");
    EXPECT_EQ(s->metadata->attempt, 3);
    EXPECT_Z(s->hostname, "web");
    EXPECT_Z(s->log_directory, place_path(p, "logs/shop_web_u-1"));
    EXPECT_EQ(mode_at(s->log_directory), 0755);
    EXPECT_STR(entry_of(s->labels, s->n_labels, "app"), "web");
    EXPECT_STR(entry_of(s->labels, s->n_labels, "io.kubernetes.pod.name"), "web");
    EXPECT_STR(entry_of(s->labels, s->n_labels, "io.kubernetes.pod.namespace"), "shop");
    EXPECT_STR(entry_of(s->labels, s->n_labels, "io.kubernetes.pod.uid"), "u-1");
    EXPECT_STR(entry_of(s->annotations, s->n_annotations, "note"), "hi");
}

TEST(equal_inputs_give_equal_bytes)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_with("  hostAliases: [{ip: 1.2.3.4, hostnames: [a]}]\n",
                                 "    env: [{name: A, value: b}]\n");
    const Cri__PodSandboxConfig *a = sandbox_of(p, pod), *b = sandbox_of(p, pod);
    size_t len = cri__pod_sandbox_config__get_packed_size(a);
    uint8_t *bytes = arena_alloc(&p->arena, len), *again = arena_alloc(&p->arena, len);
    EXPECT_EQ(cri__pod_sandbox_config__get_packed_size(b), len);
    cri__pod_sandbox_config__pack(a, bytes);
    cri__pod_sandbox_config__pack(b, again);
    EXPECT_EQ(memcmp(bytes, again, len), 0);

    const Cri__ContainerConfig *c = container_of(p, pod), *d = container_of(p, pod);
    len = cri__container_config__get_packed_size(c);
    EXPECT_EQ(cri__container_config__get_packed_size(d), len);
    bytes = arena_alloc(&p->arena, len);
    again = arena_alloc(&p->arena, len);
    cri__container_config__pack(c, bytes);
    cri__container_config__pack(d, again);
    EXPECT_EQ(memcmp(bytes, again, len), 0);
}

TEST(namespaces_follow_the_pod)
{
    AUTO(place) p = place_new();
    static const struct {
        const char *spec;
        int network, pid, ipc;
    } cases[] = {
        { "", CRI__NAMESPACE_MODE__POD, CRI__NAMESPACE_MODE__CONTAINER, CRI__NAMESPACE_MODE__POD },
        { "  hostNetwork: true\n", CRI__NAMESPACE_MODE__NODE, CRI__NAMESPACE_MODE__CONTAINER,
          CRI__NAMESPACE_MODE__POD },
        { "  hostPID: true\n  hostIPC: true\n", CRI__NAMESPACE_MODE__POD, CRI__NAMESPACE_MODE__NODE,
          CRI__NAMESPACE_MODE__NODE },
        { "  shareProcessNamespace: true\n", CRI__NAMESPACE_MODE__POD, CRI__NAMESPACE_MODE__POD,
          CRI__NAMESPACE_MODE__POD },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_NODE_POD pod = pod_with(cases[i].spec, "");
        const Cri__NamespaceOption *of[] = {
            sandbox_of(p, pod)->linux_->security_context->namespace_options,
            container_of(p, pod)->linux_->security_context->namespace_options,
        };
        for (size_t k = 0; k < KV_COUNT_OF(of); k++) {
            EXPECT_EQ(of[k]->network, cases[i].network);
            EXPECT_EQ(of[k]->pid, cases[i].pid);
            EXPECT_EQ(of[k]->ipc, cases[i].ipc);
        }
    }
}

TEST(host_ports_are_mapped_except_on_the_hosts_network)
{
    AUTO(place) p = place_new();
    const char *ports = "    ports: [{containerPort: 80, hostPort: 8080, protocol: UDP,\n"
                        "             hostIP: 127.0.0.1}, {containerPort: 81}]\n";
    AUTO_NODE_POD pod = pod_with("", ports);
    const Cri__PodSandboxConfig *s = sandbox_of(p, pod);
    EXPECT_EQ(s->n_port_mappings, 1);
    EXPECT_EQ(s->port_mappings[0]->container_port, 80);
    EXPECT_EQ(s->port_mappings[0]->host_port, 8080);
    EXPECT_EQ(s->port_mappings[0]->protocol, CRI__PROTOCOL__UDP);
    EXPECT_Z(s->port_mappings[0]->host_ip, "127.0.0.1");
    AUTO_NODE_POD host = pod_with("  hostNetwork: true\n", "    ports: [{containerPort: 80}]\n");
    EXPECT_EQ(sandbox_of(p, host)->n_port_mappings, 0);
    EXPECT_Z(sandbox_of(p, host)->hostname, ""); /* the host's own */
}

TEST(the_cgroup_of_a_pod_is_where_its_class_belongs)
{
    AUTO(place) p = place_new();
    static const char *const classes[][3] = {
        { "", "/kubepods/besteffort/podu-1",
          "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-podu_1.slice" },
        { "    resources: {requests: {cpu: 1}}\n", "/kubepods/burstable/podu-1",
          "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podu_1.slice" },
        { "    resources: {limits: {cpu: 1, memory: 1Gi}}\n", "/kubepods/podu-1",
          "/kubepods.slice/kubepods-podu_1.slice" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(classes); i++) {
        AUTO_NODE_POD pod = pod_with("", classes[i][0]);
        p->facts.systemd_cgroups = false;
        EXPECT_Z(sandbox_of(p, pod)->linux_->cgroup_parent, classes[i][1]);
        p->facts.systemd_cgroups = true;
        EXPECT_Z(sandbox_of(p, pod)->linux_->cgroup_parent, classes[i][2]);
    }
}

TEST(the_sandbox_has_the_pods_users_groups_and_sysctls)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_with("  securityContext: {runAsUser: 1000, runAsGroup: 3000,\n"
                                 "    fsGroup: 2000, supplementalGroups: [7, 8],\n"
                                 "    seLinuxOptions: {level: \"s0:c1\"},\n"
                                 "    sysctls: [{name: net.core.somaxconn, value: \"9\"}]}\n",
                                 "    securityContext: {privileged: true}\n");
    const Cri__LinuxPodSandboxConfig *l = sandbox_of(p, pod)->linux_;
    const Cri__LinuxSandboxSecurityContext *s = l->security_context;
    EXPECT_EQ(s->run_as_user->value, 1000);
    EXPECT_EQ(s->run_as_group->value, 3000);
    EXPECT_EQ(s->n_supplemental_groups, 3);
    EXPECT_EQ(s->supplemental_groups[0], 2000);
    EXPECT_EQ(s->supplemental_groups[2], 8);
    EXPECT_Z(s->selinux_options->level, "s0:c1");
    EXPECT_TRUE(s->privileged);
    EXPECT_STR(entry_of(l->sysctls, l->n_sysctls, "net.core.somaxconn"), "9");
}

TEST(a_long_hostname_is_cut_where_a_name_may_end_and_a_full_one_must_fit)
{
    AUTO(place) p = place_new();
    struct node_pod pod = { .uid = STR("u"), .name = STR("n"), .namespace_ = STR("shop") };
    pod.hostname = STR("a23456789-123456789-123456789-123456789-123456789-123456789-12--456");
    EXPECT_Z(sandbox_of(p, &pod)->hostname,
             "a23456789-123456789-123456789-123456789-123456789-123456789-12");
    pod.set_hostname_as_fqdn = true;
    pod.subdomain = STR("sub");
    pod.hostname = STR("web");
    EXPECT_Z(sandbox_of(p, &pod)->hostname, "web.sub.shop.svc.cluster.local");
    pod.hostname = STR("a23456789-123456789-123456789-123456789-1234567");
    Cri__PodSandboxConfig *out;
    struct err err;
    EXPECT_ERR(sandbox_config(&p->arena, &pod, &p->facts, 0, &out, &err), err, ERR_INVALID);
}

TEST(names_that_are_no_file_names_never_reach_the_log_folder)
{
    AUTO(place) p = place_new();
    Cri__PodSandboxConfig *out;
    struct err err;
    struct node_pod pod = { .uid = STR("u"), .name = STR("../x"), .namespace_ = STR("n") };
    EXPECT_ERR(sandbox_config(&p->arena, &pod, &p->facts, 0, &out, &err), err, ERR_INVALID);
    EXPECT_FALSE(is_there(place_path(p, "logs")));
}

/* --- DNS --- */

static struct str dns_of(struct place *p, const struct node_pod *pod, const char *resolv_conf)
{
    const Cri__DNSConfig *d = pod_dns(&p->arena, pod, &p->facts, str_of(resolv_conf));
    return arena_strf(&p->arena, "%s | %s | %s", words_of(p, d->servers, d->n_servers).p,
                      words_of(p, d->searches, d->n_searches).p,
                      words_of(p, d->options, d->n_options).p);
}

TEST(dns_follows_the_policy)
{
    AUTO(place) p = place_new();
    const char *host = "# comment\nnameserver 1.1.1.1\nsearch old.example\n"
                       "nameserver\t8.8.8.8 \nsearch corp.example  example\n"
                       "options timeout:2 rotate\nnonsense\n";
    const char *of_host = "1.1.1.1 8.8.8.8 | corp.example example | timeout:2 rotate";
    const char *of_cluster = "10.96.0.10 | shop.svc.cluster.local svc.cluster.local "
                             "cluster.local corp.example example | ndots:5";
    AUTO_NODE_POD first = pod_with("", "");
    EXPECT_STR(dns_of(p, first, host), of_host); /* there are no servers of the cluster */
    p->facts.dns_servers = place_strs(p, "10.96.0.10", NULL);
    EXPECT_STR(dns_of(p, first, host), of_cluster);
    AUTO_NODE_POD plain = pod_with("  dnsPolicy: Default\n", "");
    EXPECT_STR(dns_of(p, plain, host), of_host);
    AUTO_NODE_POD on_host = pod_with("  hostNetwork: true\n", "");
    EXPECT_STR(dns_of(p, on_host, host), of_host);
    AUTO_NODE_POD both =
        pod_with("  hostNetwork: true\n  dnsPolicy: ClusterFirstWithHostNet\n", "");
    EXPECT_STR(dns_of(p, both, host), of_cluster);
    AUTO_NODE_POD none = pod_with("  dnsPolicy: None\n"
                                  "  dnsConfig: {nameservers: [9.9.9.9], searches: [a.b],\n"
                                  "    options: [{name: ndots, value: \"2\"}, {name: edns0}]}\n",
                                  "");
    EXPECT_STR(dns_of(p, none, host), "9.9.9.9 | a.b | ndots:2 edns0");
    AUTO_NODE_POD more = pod_with("  dnsConfig: {nameservers: [9.9.9.9, 10.96.0.10],\n"
                                  "    searches: [svc.cluster.local, z],\n"
                                  "    options: [{name: ndots, value: \"1\"}]}\n",
                                  "");
    EXPECT_STR(dns_of(p, more, ""), "10.96.0.10 9.9.9.9 | shop.svc.cluster.local "
                                    "svc.cluster.local cluster.local z | ndots:1");
    EXPECT_STR(dns_of(p, plain, ""), " |  | ");
}

TEST(dns_keeps_to_what_resolvers_take)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_with("  dnsPolicy: Default\n", "");
    AUTO_BUF conf = { 0 };
    for (int i = 0; i < 10; i++)
        buf_addf(&conf, "nameserver 10.0.0.%d\n", i);
    buf_addz(&conf, "search");
    for (int i = 0; i < 100; i++)
        buf_addf(&conf, " s%d.example", i);
    const Cri__DNSConfig *d = pod_dns(&p->arena, pod, &p->facts, buf_str(&conf));
    EXPECT_EQ(d->n_servers, DNS_SERVERS_MAX);
    EXPECT_Z(d->servers[2], "10.0.0.2");
    EXPECT_EQ(d->n_searches, DNS_SEARCHES_MAX);

    buf_clear(&conf);
    buf_addz(&conf, "search");
    for (int i = 0; i < 30; i++)
        buf_addf(&conf, " s%02d%0200d", i, 0);
    d = pod_dns(&p->arena, pod, &p->facts, buf_str(&conf));
    EXPECT_EQ(d->n_searches, 10); /* 10 of 203 and the blanks between them */
}

/* --- the container --- */

TEST(a_container_is_named_labelled_and_annotated_as_kubelets_do_it)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod =
        pod_with("  terminationGracePeriodSeconds: 7\n",
                 "    command: [run, \"$(A)\", \"$$(A)\"]\n    args: [\"$(B)\"]\n"
                 "    workingDir: /w\n    env: [{name: A, value: a}]\n    tty: true\n"
                 "    stdin: true\n    ports: [{containerPort: 80}]\n"
                 "    lifecycle: {preStop: {exec: {command: [bye]}}}\n");
    const Cri__ContainerConfig *c = container_of(p, pod);
    EXPECT_Z(c->metadata->name, "c");
    EXPECT_EQ(c->metadata->attempt, 4);
    EXPECT_Z(c->image->image, "sha256:1234");
    EXPECT_Z(c->image->user_specified_image, "registry.test/app:1");
    EXPECT_STR(words_of(p, c->command, c->n_command), "run a $(A)");
    EXPECT_STR(words_of(p, c->args, c->n_args), "$(B)");
    EXPECT_Z(c->working_dir, "/w");
    EXPECT_Z(c->log_path, "c/4.log");
    EXPECT_EQ(mode_at(place_path(p, "logs/shop_web_u-1/c")), 0755);
    EXPECT_TRUE(c->tty && c->stdin_ && !c->stdin_once);
    EXPECT_EQ(c->n_labels, 4);
    EXPECT_STR(entry_of(c->labels, c->n_labels, "io.kubernetes.container.name"), "c");
    EXPECT_STR(entry_of(c->labels, c->n_labels, "io.kubernetes.pod.uid"), "u-1");

    const char *const annotations[][2] = {
        { "io.kubernetes.container.hash", pod->containers.items[0].hash },
        { "io.kubernetes.container.restartCount", "4" },
        { "io.kubernetes.container.terminationMessagePath", "/dev/termination-log" },
        { "io.kubernetes.container.terminationMessagePolicy", "File" },
        { "io.kubernetes.pod.terminationGracePeriod", "7" },
        { "io.kubernetes.pod.deletionGracePeriod", "(none)" },
        { "io.kubernetes.container.preStopHandler", "{\"exec\":{\"command\":[\"bye\"]}}" },
        { "io.kubernetes.container.ports", "[{\"containerPort\":80,\"protocol\":\"TCP\"}]" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(annotations); i++)
        EXPECT_STR(entry_of(c->annotations, c->n_annotations, annotations[i][0]),
                   annotations[i][1]);
    EXPECT_STR(entry_of(c->annotations, c->n_annotations, "note"), "(none)"); /* the pod's own */
}

TEST(resources_become_shares_quota_and_memory)
{
    AUTO(place) p = place_new();
    static const struct {
        const char *resources;
        int64_t shares, quota, memory;
    } cases[] = {
        { "", 2, 0, 0 },
        { "    resources: {requests: {cpu: 500m}}\n", 512, 0, 0 },
        { "    resources: {requests: {cpu: 1m}}\n", 2, 0, 0 },
        { "    resources: {requests: {cpu: 1000}}\n", 262144, 0, 0 },
        { "    resources: {limits: {cpu: 2, memory: 64Mi}}\n", 2048, 200000, 64 << 20 },
        { "    resources: {requests: {cpu: 250m}, limits: {cpu: 1}}\n", 256, 100000, 0 },
        { "    resources: {limits: {cpu: 5m}}\n", 5, 1000, 0 },
        { "    resources: {limits: {cpu: 1m}}\n", 2, 1000, 0 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_NODE_POD pod = pod_with("", cases[i].resources);
        const Cri__LinuxContainerResources *r = container_of(p, pod)->linux_->resources;
        EXPECT_EQ(r->cpu_shares, cases[i].shares);
        EXPECT_EQ(r->cpu_quota, cases[i].quota);
        EXPECT_EQ(r->cpu_period, cases[i].quota ? 100000 : 0);
        EXPECT_EQ(r->memory_limit_in_bytes, cases[i].memory);
    }
    AUTO_NODE_POD huge =
        pod_with("", "    resources: {limits: {cpu: 1, memory: 1Gi, hugepages-2Mi: 4Mi}}\n");
    const Cri__LinuxContainerResources *r = container_of(p, huge)->linux_->resources;
    EXPECT_EQ(r->n_hugepage_limits, 1);
    EXPECT_Z(r->hugepage_limits[0]->page_size, "2MB");
    EXPECT_EQ(r->hugepage_limits[0]->limit, 4 << 20);
}

TEST(who_asked_for_more_memory_is_killed_later)
{
    AUTO(place) p = place_new();
    p->facts.memory_bytes = (int64_t)4 << 30;
    static const struct {
        const char *spec, *container;
        int64_t score;
    } cases[] = {
        { "", "", 1000 },
        { "", "    resources: {limits: {cpu: 1, memory: 1Gi}}\n", -997 },
        { "", "    resources: {requests: {memory: 1Gi}}\n", 750 },
        { "", "    resources: {requests: {memory: 1}}\n", 999 },
        { "", "    resources: {requests: {cpu: 1}}\n", 999 },
        { "", "    resources: {requests: {memory: 100Gi}}\n", 2 },
        { "  priority: 2000001000\n", "", -997 },
        { "  initContainers: [{name: s, image: i, restartPolicy: Always}]\n",
          "    resources: {requests: {memory: 1Gi}}\n", 750 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_NODE_POD pod = pod_with(cases[i].spec, cases[i].container);
        EXPECT_EQ(container_of(p, pod)->linux_->resources->oom_score_adj, cases[i].score);
        if (pod->inits.count > 0) /* the sidecar goes no earlier than whom it serves */
            EXPECT_EQ(
                container_resources(&p->arena, pod, pod->inits.items, &p->facts)->oom_score_adj,
                cases[i].score);
    }
}

TEST(a_pod_as_a_whole_takes_what_runs_at_once)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_from_yaml(
        "metadata: {name: web}\nspec:\n"
        "  initContainers:\n"
        "  - {name: s, image: i, restartPolicy: Always, resources: {limits: {cpu: 1, memory: 1Gi}}}\n"
        "  - {name: i, image: i, resources: {limits: {cpu: 8, memory: 1Gi}}}\n"
        "  containers:\n"
        "  - {name: a, image: i, resources: {limits: {cpu: 1, memory: 2Gi}}}\n"
        "  - {name: b, image: i, resources: {limits: {cpu: 1, memory: 2Gi}}}\n");
    EXPECT_EQ(quantity_units(pod_sum(pod, STR("cpu"), false)), 9); /* init beside the sidecar */
    EXPECT_EQ(quantity_units(pod_sum(pod, STR("memory"), true)), (int64_t)5 << 30);
    const Cri__LinuxContainerResources *r = sandbox_of(p, pod)->linux_->resources;
    EXPECT_EQ(r->cpu_quota, 900000);
    EXPECT_EQ(r->memory_limit_in_bytes, (int64_t)5 << 30);

    AUTO_NODE_POD open = pod_from_yaml("metadata: {name: web}\nspec: {containers: [\n"
                                       "  {name: a, image: i, resources: {limits: {cpu: 1}}},\n"
                                       "  {name: b, image: i}]}");
    EXPECT_EQ(sandbox_of(p, open)->linux_->resources->cpu_quota, 0); /* one has no limit */
    EXPECT_EQ(sandbox_of(p, open)->linux_->resources->cpu_shares, 1024);
}

/* --- security --- */

static const Cri__LinuxContainerSecurityContext *security_of(struct place *p,
                                                             const struct node_pod *pod)
{
    return container_of(p, pod)->linux_->security_context;
}

TEST(by_default_a_container_is_masked_and_may_gain_privileges_and_is_not_confined)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_with("", "");
    const Cri__LinuxContainerSecurityContext *s = security_of(p, pod);
    EXPECT_FALSE(s->privileged || s->no_new_privs || s->readonly_rootfs);
    EXPECT_HAS(words_of(p, s->masked_paths, s->n_masked_paths), "/proc/kcore");
    EXPECT_HAS(words_of(p, s->readonly_paths, s->n_readonly_paths), "/proc/sys");
    EXPECT_EQ(s->seccomp->profile_type, CRI__SECURITY_PROFILE__PROFILE_TYPE__UNCONFINED);
    EXPECT_TRUE(s->apparmor == NULL);
    EXPECT_TRUE(s->run_as_user == NULL);
    EXPECT_TRUE(s->selinux_options == NULL);

    AUTO_NODE_POD privileged = pod_with("", "    securityContext: {privileged: true}\n");
    s = security_of(p, privileged);
    EXPECT_TRUE(s->privileged);
    EXPECT_EQ(s->n_masked_paths + s->n_readonly_paths, 0);
}

TEST(a_security_context_is_passed_on)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_with(
        "  securityContext: {fsGroup: 2000, seccompProfile: {type: RuntimeDefault}}\n",
        "    securityContext: {runAsUser: 1000, runAsGroup: 3000, readOnlyRootFilesystem: true,\n"
        "      allowPrivilegeEscalation: false, capabilities: {add: [NET_ADMIN], drop: [ALL]},\n"
        "      seLinuxOptions: {type: t}, appArmorProfile: {type: Localhost,\n"
        "      localhostProfile: mine}}\n");
    const Cri__LinuxContainerSecurityContext *s = security_of(p, pod);
    EXPECT_TRUE(s->readonly_rootfs && s->no_new_privs);
    EXPECT_EQ(s->run_as_user->value, 1000);
    EXPECT_EQ(s->run_as_group->value, 3000);
    EXPECT_STR(words_of(p, s->capabilities->add_capabilities, s->capabilities->n_add_capabilities),
               "NET_ADMIN");
    EXPECT_STR(
        words_of(p, s->capabilities->drop_capabilities, s->capabilities->n_drop_capabilities),
        "ALL");
    EXPECT_EQ(s->supplemental_groups[0], 2000);
    EXPECT_EQ(s->seccomp->profile_type, CRI__SECURITY_PROFILE__PROFILE_TYPE__RUNTIME_DEFAULT);
    EXPECT_Z(s->apparmor->localhost_ref, "mine");
    EXPECT_Z(s->selinux_options->type, "t");
}

TEST(a_seccomp_profile_of_the_host_lies_below_its_folder)
{
    AUTO(place) p = place_new();
    struct err err;
    struct node_container container = { .name = STR("c"),
                                        .security.seccomp = { 3, STR("team/web.json") } };
    struct node_pod pod = { .uid = STR("u"), .name = STR("n"), .namespace_ = STR("ns") };
    struct container_config_input input = {
        .pod = &pod, .container = &container, .facts = &p->facts, .objects = &p->objects
    };
    Cri__LinuxContainerSecurityContext *s;
    EXPECT_OK(container_security(&p->arena, &input, &s, &err), err);
    EXPECT_Z(s->seccomp->localhost_ref, place_path(p, "root/seccomp/team/web.json"));
    container.security.seccomp.localhost = STR("../../etc/passwd");
    EXPECT_ERR(container_security(&p->arena, &input, &s, &err), err, ERR_INVALID);
}

TEST(run_as_non_root_is_checked_against_what_the_image_says)
{
    AUTO(place) p = place_new();
    static const struct {
        struct maybe_int user, image_uid;
        const char *image_username;
        const char *refused; /* NULL: fine */
    } cases[] = {
        { { 0, false }, { 0, false }, "", "image will run as root" },
        { { 0, false }, { 0, true }, "", "image will run as root" },
        { { 0, false }, { 1000, true }, "", NULL },
        { { 0, false }, { 0, false }, "app", "non-numeric user (\"app\")" },
        { { 1000, true }, { 0, true }, "", NULL },
        { { 1000, true }, { 0, false }, "app", NULL },
        { { 0, true }, { 1000, true }, "", "runAsUser is root" },
    };
    struct node_pod pod = { .uid = STR("u"), .name = STR("n"), .namespace_ = STR("ns") };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        for (uint8_t wanted = TRI_UNSET; wanted <= TRI_TRUE; wanted++) {
            struct err err;
            Cri__LinuxContainerSecurityContext *s;
            struct node_container container = { .name = STR("c"),
                                                .security = { .run_as_user = cases[i].user,
                                                              .run_as_non_root = wanted } };
            struct container_config_input input = {
                .pod = &pod,
                .container = &container,
                .facts = &p->facts,
                .objects = &p->objects,
                .image_uid = cases[i].image_uid,
                .image_username = str_of(cases[i].image_username),
            };
            int rc = container_security(&p->arena, &input, &s, &err);
            if (wanted != TRI_TRUE || !cases[i].refused) {
                EXPECT_OK(rc, err);
                continue;
            }
            EXPECT_ERR(rc, err, ERR_INVALID);
            EXPECT_HAS(str_of(err.text), cases[i].refused);
        }
    }
}

TEST(a_group_alone_brings_the_images_user_with_it)
{
    AUTO(place) p = place_new();
    struct err err;
    Cri__LinuxContainerSecurityContext *s;
    struct node_pod pod = { .uid = STR("u"), .name = STR("n"), .namespace_ = STR("ns") };
    struct node_container container = { .name = STR("c"),
                                        .security = { .run_as_group = { 3000, true } } };
    struct container_config_input input = {
        .pod = &pod, .container = &container, .facts = &p->facts, .objects = &p->objects
    };
    EXPECT_OK(container_security(&p->arena, &input, &s, &err), err);
    EXPECT_EQ(s->run_as_user->value, 0);
    input.image_username = STR("app");
    EXPECT_OK(container_security(&p->arena, &input, &s, &err), err);
    EXPECT_TRUE(s->run_as_user == NULL);
    EXPECT_Z(s->run_as_username, "app");
    EXPECT_EQ(s->run_as_group->value, 3000);
}

TEST(signals_have_the_numbers_of_the_interface)
{
    static const struct {
        const char *name;
        int32_t number;
    } cases[] = { { "SIGABRT", 1 },      { "SIGHUP", 8 },      { "SIGINT", 10 },
                  { "SIGKILL", 13 },     { "SIGQUIT", 18 },    { "SIGTERM", 23 },
                  { "SIGUSR1", 29 },     { "SIGWINCH", 32 },   { "SIGXFSZ", 34 },
                  { "SIGRTMIN", 35 },    { "SIGRTMIN+1", 36 }, { "SIGRTMIN+15", 50 },
                  { "SIGRTMAX-14", 51 }, { "SIGRTMAX-1", 64 }, { "SIGRTMAX", 65 },
                  { "TERM", 0 },         { "SIGNOPE", 0 },     { "", 0 },
                  { "SIGRTMIN+16", 0 },  { "SIGRTMAX-15", 0 }, { "SIGRTMIN-1", 0 },
                  { "SIGRTMIN+", 0 },    { "SIGRTMIN++1", 0 } };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        EXPECT_EQ(signal_number(str_of(cases[i].name)), cases[i].number);
}

/* --- restart counts and logs --- */

TEST(the_restart_count_goes_on_from_the_newest_instance_or_from_the_logs)
{
    AUTO(place) p = place_new();
    struct err err;
    AUTO_NODE_POD pod = pod_with("", "");
    const struct node_container *c = node_pod_container(pod, STR("c"));
    struct runtime_status none = { 0 };
    EXPECT_EQ(next_restart_count(pod, c, &none, &p->facts), 0);

    EXPECT_OK(host_folder_make(place_path(p, "logs/shop_web_u-1/c"), 0755, &err), err);
    static const char *const names[] = { "0.log",          "7.log",  "8.log.20260102-150405.gz",
                                         "99.txt",         "x9.log", "99999999999.log",
                                         "4294967295.log", "log" };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++)
        write_text(arena_strf(&p->arena, "%s/%s", place_path(p, "logs/shop_web_u-1/c"), names[i]).p,
                   "");
    EXPECT_EQ(next_restart_count(pod, c, &none, &p->facts), 9);

    struct runtime_container instances[] = { { .name = STR("c"), .restart_count = 3 },
                                             { .name = STR("c"), .restart_count = 2 } };
    struct runtime_status status = { .containers = { instances, 2 } };
    EXPECT_EQ(next_restart_count(pod, c, &status, &p->facts), 4);
}

TEST(logs_are_linked_by_container_and_the_name_is_cut_to_what_a_file_may_have)
{
    AUTO(place) p = place_new();
    AUTO_NODE_POD pod = pod_with("", "");
    const struct node_container *c = node_pod_container(pod, STR("c"));
    container_log_link(pod, c, STR("abc"), 2, &p->facts);
    container_log_link(pod, c, STR("abc"), 3, &p->facts); /* again: the newer one counts */
    char target[512] = "";
    EXPECT_TRUE(readlink(place_path(p, "links/web_shop_c-abc.log"), target, sizeof target - 1) > 0);
    EXPECT_Z(target, place_path(p, "logs/shop_web_u-1/c/3.log"));

    char id[400];
    memset(id, 'i', sizeof id);
    container_log_link(pod, c, (struct str){ id, sizeof id }, 0, &p->facts);
    DIR *d = opendir(place_path(p, "links"));
    size_t longest = 0;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strlen(e->d_name) > longest)
            longest = strlen(e->d_name);
    }
    closedir(d);
    EXPECT_EQ(longest, 255);

    p->facts.container_log_root = STR("");
    container_log_link(pod, c, STR("abc"), 0, &p->facts); /* nowhere: nothing happens */
}
