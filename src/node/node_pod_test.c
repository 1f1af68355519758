#include "node/node_pod.h"

#include "node/node_pod_testing.h"

#define POD(spec) "metadata: {name: web}\nspec:\n" spec
#define ONE(container) POD("  containers: [{name: app, image: nginx, " container "}]\n")

static const struct node_container *app_of(const struct node_pod *pod)
{
    const struct node_container *app = node_pod_container(pod, STR("app"));
    EXPECT_TRUE(app != NULL);
    return app;
}

/* What the decoder says of JSON that no API server would send. */
static void expect_refused(const char *json, const char *why)
{
    struct err err = { 0 };
    struct doc doc;
    const struct node_pod *pod = NULL;
    EXPECT_OK(json_read(str_of(json), &doc, &err), err);
    EXPECT_ERR(node_pod_decode(&doc, POD_FROM_API, &pod, &err), err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), why);
}

/* --- the pod --- */

TEST(decode_fills_what_the_api_server_would)
{
    AUTO_NODE_POD pod = pod_from_yaml(POD("  containers: [{name: app, image: nginx}]\n"));

    EXPECT_STR(pod->uid, "uid-web");
    EXPECT_STR(pod->namespace_, "default");
    EXPECT_EQ(pod->restart_policy, RESTART_ALWAYS);
    EXPECT_EQ(pod->termination_grace_s, 30);
    EXPECT_STR(pod->dns_policy, "ClusterFirst");
    EXPECT_STR(pod->hostname, "web");
    EXPECT_EQ(pod->qos, QOS_BEST_EFFORT);
    EXPECT_FALSE(node_pod_is_static(pod));
    EXPECT_TRUE(pod->maybe_status == NULL);
    const struct node_container *app = app_of(pod);
    EXPECT_STR(app->termination_message_path, "/dev/termination-log");
    EXPECT_STR(app->termination_message_policy, "File");
    EXPECT_EQ(app->pull_policy, PULL_ALWAYS);
    EXPECT_EQ(app->liveness.handler.kind, HANDLER_NONE);
    EXPECT_FALSE(app->init || app->sidecar || app->ephemeral);
}

TEST(decode_reads_everything_a_pod_says_of_itself)
{
    AUTO_NODE_POD pod = pod_from_yaml(
        "metadata:\n"
        "  {name: web, namespace: shop, uid: u-1, labels: {b: '2', a: '1'},\n"
        "   annotations: {note: x}, creationTimestamp: '2026-01-02T03:04:05Z',\n"
        "   deletionTimestamp: '2026-01-02T04:04:05Z', deletionGracePeriodSeconds: 7}\n"
        "spec:\n"
        "  nodeName: n1\n"
        "  serviceAccountName: clerk\n"
        "  runtimeClassName: gvisor\n"
        "  hostname: front\n"
        "  subdomain: shop\n"
        "  setHostnameAsFQDN: true\n"
        "  hostNetwork: true\n"
        "  hostPID: true\n"
        "  hostIPC: true\n"
        "  restartPolicy: OnFailure\n"
        "  terminationGracePeriodSeconds: 0\n"
        "  activeDeadlineSeconds: 60\n"
        "  priority: 10\n"
        "  overhead: {cpu: 100m}\n"
        "  hostAliases: [{ip: 10.0.0.1, hostnames: [db, cache]}]\n"
        "  readinessGates: [{conditionType: example.com/lb}]\n"
        "  imagePullSecrets: [{name: registry}]\n"
        "  dnsPolicy: None\n"
        "  dnsConfig: {nameservers: [1.1.1.1], searches: [svc], options: [{name: ndots, value: "
        "'2'}]}\n"
        "  securityContext: {fsGroup: 5, supplementalGroups: [7, 8], sysctls: [{name: a.b, value: "
        "'1'}]}\n"
        "  containers: [{name: app, image: nginx}]\n"
        "status: {phase: Running}\n");

    EXPECT_STR(pod->uid, "u-1");
    EXPECT_STR(pod->namespace_, "shop");
    EXPECT_STR(str_map_get(&pod->labels, STR("b")), "2");
    EXPECT_STR(str_map_get(&pod->annotations, STR("note")), "x");
    EXPECT_EQ(pod->deleted_us - pod->created_us, (int64_t)3600 * 1000000);
    EXPECT_EQ(pod->deletion_grace_s.value, 7);
    EXPECT_STR(pod->node_name, "n1");
    EXPECT_STR(pod->service_account, "clerk");
    EXPECT_STR(pod->runtime_class, "gvisor");
    EXPECT_STR(pod->hostname, "front");
    EXPECT_STR(pod->subdomain, "shop");
    EXPECT_TRUE(pod->set_hostname_as_fqdn);
    EXPECT_TRUE(pod->host_network && pod->host_pid && pod->host_ipc);
    EXPECT_EQ(pod->restart_policy, RESTART_ON_FAILURE);
    EXPECT_EQ(pod->termination_grace_s, 0);
    EXPECT_EQ(pod->active_deadline_s.value, 60);
    EXPECT_EQ(pod->priority.value, 10);
    EXPECT_EQ(pod->overhead.count, 1);
    EXPECT_STR(pod->host_aliases.items[0].hostnames.items[1], "cache");
    EXPECT_STR(pod->readiness_gates.items[0], "example.com/lb");
    EXPECT_STR(pod->image_pull_secrets.items[0], "registry");
    EXPECT_STR(pod->dns_policy, "None");
    EXPECT_STR(pod->dns_servers.items[0], "1.1.1.1");
    EXPECT_STR(pod->dns_searches.items[0], "svc");
    EXPECT_STR(pod->dns_options.items[0].value, "2");
    EXPECT_EQ(pod->fs_group.value, 5);
    EXPECT_EQ(pod->supplemental_group_count, 2);
    EXPECT_EQ(pod->supplemental_groups[1], 8);
    EXPECT_STR(pod->sysctls.items[0].name, "a.b");
    EXPECT_STR(json_str(json_get(pod->maybe_status, STR("phase"))), "Running");
}

TEST(a_hostname_is_cut_at_63_and_ends_in_a_letter_or_digit)
{
    AUTO_NODE_POD pod =
        pod_from_yaml("metadata: {name: "
                      "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-12--more}\n"
                      "spec: {containers: [{name: app, image: nginx}]}\n");
    EXPECT_STR(pod->hostname, "a23456789-b23456789-c23456789-d23456789-e23456789-f23456789-12");
}

TEST(names_that_would_leave_their_folder_are_refused)
{
#define JSON(meta, container)                                                                      \
    "{\"metadata\":{" meta "},\"spec\":{\"containers\":[{" container "}]}}"
#define META "\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"c\""
#define APP "\"name\":\"app\",\"image\":\"i\""
    expect_refused(JSON("\"name\":\"../a\",\"namespace\":\"b\",\"uid\":\"c\"", APP),
                   "metadata.name: ");
    expect_refused(JSON("\"name\":\"a\",\"namespace\":\"b/c\",\"uid\":\"c\"", APP),
                   "metadata.namespace: ");
    expect_refused(JSON("\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"..\"", APP),
                   "metadata.uid: \"..\"");
    expect_refused(JSON("\"name\":\"a\",\"namespace\":\"b\",\"uid\":\"x/y\"", APP),
                   "metadata.uid: ");
    expect_refused(JSON("\"name\":\"a\",\"namespace\":\"b\"", APP), "metadata.uid: ");
    expect_refused(JSON(META, "\"name\":\"../x\",\"image\":\"i\""), "spec.containers[0].name: ");
    expect_refused("{\"metadata\":{" META "},\"spec\":{\"containers\":[{" APP
                   "}],\"volumes\":[{\"name\":\"..\"}]}}",
                   "spec.volumes[0].name: ");
}

TEST(what_is_missing_or_of_the_wrong_type_is_named)
{
    expect_refused("[]", "expected an object");
    expect_refused("{\"metadata\":{" META "}}", "spec: has no containers");
    expect_refused(JSON(META, "\"name\":\"app\""), "spec.containers[0]: has no image");
    expect_refused(JSON(META, APP ",\"tty\":1"), "spec.containers[0].tty: expected ");
    expect_refused(JSON(META, APP ",\"livenessProbe\":{\"tcpSocket\":{\"port\":70000}}"),
                   "spec.containers[0].livenessProbe.tcpSocket.port: is not a port");
    expect_refused(JSON(META, APP ",\"livenessProbe\":{\"httpGet\":{}}"),
                   "spec.containers[0].livenessProbe.httpGet.port: is not a port");
    expect_refused(JSON(META, APP ",\"livenessProbe\":{\"exec\":{}}"),
                   "spec.containers[0].livenessProbe.exec: has no command");
    expect_refused(JSON(META, APP ",\"env\":[{\"name\":\"A\",\"valueFrom\":{\"moon\":{}}}]"),
                   "spec.containers[0].env[0].valueFrom: ");
    expect_refused("{\"metadata\":{" META "},\"spec\":{\"containers\":[{" APP
                   "}],\"securityContext\":{\"supplementalGroups\":[1,\"x\"]}}}",
                   "spec.securityContext.supplementalGroups[1]: ");
    expect_refused("{\"metadata\":{" META "},\"spec\":{\"containers\":[{" APP
                   "}],\"volumes\":[{\"name\":\"v\",\"emptyDir\":{\"sizeLimit\":\"much\"}}]}}",
                   "spec.volumes[0].emptyDir.sizeLimit: ");
}

/* --- quality of service --- */

TEST(quality_of_service_follows_requests_and_limits)
{
    static const struct {
        const char *spec;
        enum pod_qos want;
    } cases[] = {
        { ONE("resources: {}"), QOS_BEST_EFFORT },
        { ONE("resources: {requests: {cpu: 0}}"), QOS_BEST_EFFORT },
        { ONE("resources: {requests: {ephemeral-storage: 1Gi}}"), QOS_BEST_EFFORT },
        { ONE("resources: {requests: {cpu: 1m}}"), QOS_BURSTABLE },
        { ONE("resources: {limits: {memory: 1Gi}}"), QOS_BURSTABLE },
        { ONE("resources: {limits: {cpu: 1, memory: 1Gi}}"), QOS_GUARANTEED },
        { ONE("resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 1000m}}"),
          QOS_GUARANTEED },
        { ONE("resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 500m}}"), QOS_BURSTABLE },
        { ONE("resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 0}}"), QOS_BURSTABLE },
        /* One container without limits, an init container even, is enough. */
        { POD("  containers: [{name: a, image: i, resources: {limits: {cpu: 1, memory: 1Gi}}},"
              " {name: b, image: i}]\n"),
          QOS_BURSTABLE },
        { POD("  containers: [{name: a, image: i, resources: {limits: {cpu: 1, memory: 1Gi}}}]\n"
              "  initContainers: [{name: b, image: i}]\n"),
          QOS_BURSTABLE },
        /* What is said for the pod as a whole decides alone. */
        { POD("  containers: [{name: a, image: i}]\n  resources: {limits: {cpu: 1, memory: 1Gi}}\n"),
          QOS_GUARANTEED },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_NODE_POD pod = pod_from_yaml(cases[i].spec);
        if (pod->qos != cases[i].want)
            print_message("# case %zu: %s", i, cases[i].spec);
        EXPECT_EQ(pod->qos, cases[i].want);
    }
}

/* --- containers --- */

TEST(an_image_is_pulled_always_when_its_tag_may_move)
{
    static const struct {
        const char *image;
        enum pull_policy want;
    } cases[] = {
        { "nginx", PULL_ALWAYS },
        { "nginx:latest", PULL_ALWAYS },
        { "nginx:1.27", PULL_IF_NOT_PRESENT },
        { "registry:5000/nginx", PULL_ALWAYS },
        { "registry:5000/nginx:1.27", PULL_IF_NOT_PRESENT },
        { "registry:5000/a/nginx:latest", PULL_ALWAYS },
        { "nginx@sha256:0123", PULL_IF_NOT_PRESENT },
        { "nginx:1.27@sha256:0123", PULL_IF_NOT_PRESENT },
        { "nginx:latest@sha256:0123", PULL_ALWAYS },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, POD("  containers: [{name: app, image: '%s'}]\n"), cases[i].image);
        AUTO_NODE_POD pod = pod_from_yaml(yaml.p);
        EXPECT_EQ(app_of(pod)->pull_policy, cases[i].want);
    }
    AUTO_NODE_POD never = pod_from_yaml(ONE("imagePullPolicy: Never"));
    EXPECT_EQ(app_of(never)->pull_policy, PULL_NEVER);
}

TEST(the_hash_of_a_container_is_of_its_name_and_image_alone)
{
    AUTO_NODE_POD plain = pod_from_yaml(ONE("tty: false"));
    AUTO_NODE_POD changed = pod_from_yaml(ONE("tty: true, command: [sh], env: [{name: A}]"));
    AUTO_NODE_POD image = pod_from_yaml(POD("  containers: [{name: app, image: caddy}]\n"));
    AUTO_NODE_POD name = pod_from_yaml(POD("  containers: [{name: ap, image: pnginx}]\n"));

    /* As a number, because it is written on containers that outlive this program. */
    EXPECT_Z(app_of(plain)->hash, "935e1859aadfa7c6");
    EXPECT_Z(app_of(changed)->hash, app_of(plain)->hash);
    EXPECT_TRUE(strcmp(app_of(image)->hash, app_of(plain)->hash) != 0);
    EXPECT_TRUE(strcmp(name->containers.items[0].hash, app_of(plain)->hash) != 0);
}

TEST(an_init_container_that_is_always_restarted_is_a_sidecar)
{
    AUTO_NODE_POD pod = pod_from_yaml(POD("  restartPolicy: Never\n"
                                          "  initContainers:\n"
                                          "  - {name: first, image: i}\n"
                                          "  - {name: mesh, image: i, restartPolicy: Always}\n"
                                          "  containers: [{name: app, image: i}]\n"));

    EXPECT_STR(pod->inits.items[0].name, "first");
    EXPECT_TRUE(pod->inits.items[0].init && !pod->inits.items[0].sidecar);
    EXPECT_TRUE(pod->inits.items[1].init && pod->inits.items[1].sidecar);
    EXPECT_EQ(node_pod_restart_policy(pod, &pod->inits.items[0]), RESTART_NEVER);
    EXPECT_EQ(node_pod_restart_policy(pod, &pod->inits.items[1]), RESTART_ALWAYS);
    EXPECT_EQ(node_pod_restart_policy(pod, app_of(pod)), RESTART_NEVER);
    EXPECT_TRUE(node_pod_container(pod, STR("mesh")) == &pod->inits.items[1]);
    EXPECT_TRUE(node_pod_container(pod, STR("none")) == NULL);
}

TEST(decode_reads_everything_a_container_says)
{
    AUTO_NODE_POD pod = pod_from_yaml(
        POD("  volumes: [{name: data, emptyDir: {}}]\n"
            "  containers:\n"
            "  - name: app\n"
            "    image: nginx\n"
            "    command: [sh, -c]\n"
            "    args: [sleep 1]\n"
            "    workingDir: /srv\n"
            "    stdin: true\n"
            "    stdinOnce: true\n"
            "    tty: true\n"
            "    terminationMessagePath: /tmp/last\n"
            "    terminationMessagePolicy: FallbackToLogsOnError\n"
            "    ports: [{name: http, containerPort: 80, hostPort: 8080, hostIP: 127.0.0.1},\n"
            "            {containerPort: 53, protocol: UDP}]\n"
            "    resources: {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 500m}}\n"
            "    volumeMounts:\n"
            "    - {name: data, mountPath: /data, subPath: a, readOnly: true,\n"
            "       recursiveReadOnly: Enabled, mountPropagation: HostToContainer}\n"
            "    - {name: data, mountPath: /plain, mountPropagation: None,\n"
            "       recursiveReadOnly: IfPossible}\n"
            "    lifecycle: {stopSignal: SIGUSR1, preStop: {sleep: {seconds: 3}},\n"
            "                postStart: {exec: {command: [touch, x]}}}\n"));
    const struct node_container *app = app_of(pod);

    EXPECT_EQ(app->command.count, 2);
    EXPECT_STR(app->args.items[0], "sleep 1");
    EXPECT_STR(app->working_dir, "/srv");
    EXPECT_TRUE(app->stdin_open && app->stdin_once && app->tty);
    EXPECT_STR(app->termination_message_path, "/tmp/last");
    EXPECT_STR(app->termination_message_policy, "FallbackToLogsOnError");
    EXPECT_EQ(app->ports.items[0].host_port, 8080);
    EXPECT_EQ(app->ports.items[1].protocol, PROTOCOL_UDP);
    EXPECT_EQ(app->resources.limits.count, 2);
    EXPECT_EQ(app->resources.requests.count, 2); /* memory's from its limit */
    EXPECT_STR(app->mounts.items[0].sub_path, "a");
    EXPECT_TRUE(app->mounts.items[0].read_only && app->mounts.items[0].recursive_read_only);
    EXPECT_EQ(app->mounts.items[0].propagation, 1);
    EXPECT_EQ(app->mounts.items[1].propagation, 0);
    EXPECT_FALSE(app->mounts.items[1].recursive_read_only);
    EXPECT_STR(app->stop_signal, "SIGUSR1");
    EXPECT_EQ(app->pre_stop.kind, HANDLER_SLEEP);
    EXPECT_EQ(app->pre_stop.sleep_s, 3);
    EXPECT_EQ(app->post_start.kind, HANDLER_EXEC);
    EXPECT_STR(app->post_start.command.items[1], "x");
}

TEST(environment_comes_from_values_fields_resources_and_objects)
{
    AUTO_NODE_POD pod = pod_from_yaml(
        ONE("env: [{name: A, value: 1$(B)}, {name: E},"
            " {name: F, valueFrom: {fieldRef: {fieldPath: status.podIP}}},"
            " {name: R, valueFrom: {resourceFieldRef: {resource: limits.cpu, divisor: 1m}}},"
            " {name: Q, valueFrom: {resourceFieldRef: {resource: limits.cpu, containerName: app,"
            " divisor: 1}}},"
            " {name: C, valueFrom: {configMapKeyRef: {name: m, key: k, optional: true}}},"
            " {name: S, valueFrom: {secretKeyRef: {name: s, key: k}}}],"
            " envFrom: [{prefix: P_, configMapRef: {name: m}}, {secretRef: {name: s, optional: "
            "true}}]"));
    const struct node_container *app = app_of(pod);
    const struct env_var *env = app->env.items;

    EXPECT_EQ(app->env.count, 7);
    EXPECT_EQ(env[0].kind, ENV_VALUE);
    EXPECT_STR(env[0].value, "1$(B)");
    EXPECT_EQ(env[1].kind, ENV_VALUE);
    EXPECT_EQ(env[2].kind, ENV_FIELD);
    EXPECT_STR(env[2].field_path, "status.podIP");
    EXPECT_EQ(env[3].kind, ENV_RESOURCE);
    EXPECT_STR(env[3].divisor, "1m");
    EXPECT_STR(env[4].container, "app");
    EXPECT_STR(env[4].divisor, "1");
    EXPECT_EQ(env[5].kind, ENV_CONFIG_MAP);
    EXPECT_TRUE(env[5].optional);
    EXPECT_EQ(env[6].kind, ENV_SECRET);
    EXPECT_STR(env[6].object, "s");
    EXPECT_STR(app->env_from.items[0].prefix, "P_");
    EXPECT_FALSE(app->env_from.items[0].secret);
    EXPECT_TRUE(app->env_from.items[1].secret && app->env_from.items[1].optional);
}

/* --- probes and hooks --- */

TEST(a_probe_has_the_api_servers_defaults)
{
    AUTO_NODE_POD pod = pod_from_yaml(ONE("livenessProbe: {httpGet: {port: 80}}"));
    const struct probe *probe = &app_of(pod)->liveness;

    EXPECT_EQ(probe->handler.kind, HANDLER_HTTP);
    EXPECT_STR(probe->handler.path, "/");
    EXPECT_FALSE(probe->handler.https);
    EXPECT_EQ(probe->handler.host.len, 0);
    EXPECT_EQ(probe->handler.port, 80);
    EXPECT_EQ(probe->initial_delay_s, 0);
    EXPECT_EQ(probe->period_s, 10);
    EXPECT_EQ(probe->timeout_s, 1);
    EXPECT_EQ(probe->success_threshold, 1);
    EXPECT_EQ(probe->failure_threshold, 3);
    EXPECT_FALSE(probe->termination_grace_s.set);
    EXPECT_EQ(app_of(pod)->readiness.handler.kind, HANDLER_NONE);
}

TEST(probes_of_every_kind_are_read)
{
    AUTO_NODE_POD pod = pod_from_yaml(
        ONE("ports: [{name: web, containerPort: 8000}],"
            " livenessProbe: {httpGet: {port: web, path: /live, host: h, scheme: HTTPS,"
            " httpHeaders: [{name: A, value: b}]}, initialDelaySeconds: 1, periodSeconds: 2,"
            " timeoutSeconds: 3, successThreshold: 1, failureThreshold: 5,"
            " terminationGracePeriodSeconds: 6},"
            " readinessProbe: {grpc: {port: 9, service: s}},"
            " startupProbe: {tcpSocket: {port: 7, host: t}}"));
    const struct node_container *app = app_of(pod);
    const struct probe *live = &app->liveness;

    EXPECT_TRUE(live->handler.https);
    EXPECT_STR(live->handler.path, "/live");
    EXPECT_STR(live->handler.host, "h");
    EXPECT_STR(live->handler.headers.items[0].value, "b");
    EXPECT_EQ(handler_port(&live->handler, app), 8000);
    EXPECT_EQ(live->initial_delay_s, 1);
    EXPECT_EQ(live->period_s, 2);
    EXPECT_EQ(live->timeout_s, 3);
    EXPECT_EQ(live->failure_threshold, 5);
    EXPECT_EQ(live->termination_grace_s.value, 6);
    EXPECT_EQ(app->readiness.handler.kind, HANDLER_GRPC);
    EXPECT_STR(app->readiness.handler.service, "s");
    EXPECT_EQ(handler_port(&app->readiness.handler, app), 9);
    EXPECT_EQ(app->startup.handler.kind, HANDLER_TCP);
    EXPECT_STR(app->startup.handler.host, "t");
}

TEST(a_port_is_a_number_or_one_of_the_containers_names)
{
    struct container_port ports[] = { { .name = STR("http"), .container_port = 80 },
                                      { .name = STR("443"), .container_port = 8443 } };
    struct node_container c = { .ports = { ports, 2 } };
    EXPECT_EQ(handler_port(&(struct handler){ .port = 5 }, &c), 5);
    EXPECT_EQ(handler_port(&(struct handler){ .port_name = STR("http") }, &c), 80);
    EXPECT_EQ(handler_port(&(struct handler){ .port_name = STR("443") }, &c), 8443);
    EXPECT_EQ(handler_port(&(struct handler){ .port_name = STR("9090") }, &c), 9090);
    EXPECT_EQ(handler_port(&(struct handler){ .port_name = STR("70000") }, &c), 0);
    EXPECT_EQ(handler_port(&(struct handler){ .port_name = STR("admin") }, &c), 0);
}

/* --- security --- */

TEST(a_container_takes_from_the_pods_security_context_what_it_does_not_say)
{
    AUTO_NODE_POD pod = pod_from_yaml(
        POD("  securityContext:\n"
            "    {runAsUser: 1, runAsGroup: 2, runAsNonRoot: true, seLinuxOptions: {level: s0},\n"
            "     seccompProfile: {type: RuntimeDefault},\n"
            "     appArmorProfile: {type: Localhost, localhostProfile: p}}\n"
            "  initContainers: [{name: first, image: i, securityContext: {runAsUser: 0,\n"
            "    runAsNonRoot: false, seccompProfile: {type: Unconfined},\n"
            "    seLinuxOptions: {user: u}, privileged: true, readOnlyRootFilesystem: true,\n"
            "    allowPrivilegeEscalation: false, procMount: Unmasked,\n"
            "    capabilities: {add: [NET_ADMIN], drop: [ALL]}}}]\n"
            "  containers: [{name: app, image: i}]\n"));
    const struct security_context *app = &app_of(pod)->security;
    const struct security_context *first = &pod->inits.items[0].security;

    EXPECT_EQ(app->run_as_user.value, 1);
    EXPECT_EQ(app->run_as_group.value, 2);
    EXPECT_EQ(app->run_as_non_root, TRI_TRUE);
    EXPECT_STR(app->selinux.level, "s0");
    EXPECT_EQ(app->seccomp.kind, 1);
    EXPECT_EQ(app->apparmor.kind, 3);
    EXPECT_STR(app->apparmor.localhost, "p");
    EXPECT_EQ(app->privileged, TRI_UNSET);
    EXPECT_FALSE(app->unmasked_proc);

    EXPECT_TRUE(first->run_as_user.set);
    EXPECT_EQ(first->run_as_user.value, 0);
    EXPECT_EQ(first->run_as_group.value, 2);
    EXPECT_EQ(first->run_as_non_root, TRI_FALSE);
    EXPECT_STR(first->selinux.user, "u");
    EXPECT_EQ(first->selinux.level.len, 0);
    EXPECT_EQ(first->seccomp.kind, 2);
    EXPECT_EQ(first->privileged, TRI_TRUE);
    EXPECT_EQ(first->read_only_root, TRI_TRUE);
    EXPECT_EQ(first->allow_escalation, TRI_FALSE);
    EXPECT_TRUE(first->unmasked_proc);
    EXPECT_STR(first->add_capabilities.items[0], "NET_ADMIN");
    EXPECT_STR(first->drop_capabilities.items[0], "ALL");
    EXPECT_EQ(pod->security.run_as_user.value, 1); /* the sandbox's */
}

/* --- volumes --- */

TEST(volumes_of_every_kind_are_read)
{
    AUTO_NODE_POD pod = pod_from_yaml(POD(
        "  containers: [{name: app, image: i}]\n"
        "  volumes:\n"
        "  - {name: none}\n"
        "  - {name: empty, emptyDir: {medium: Memory, sizeLimit: 1Mi}}\n"
        "  - {name: huge, emptyDir: {medium: HugePages}}\n"
        "  - {name: host, hostPath: {path: /etc, type: Directory}}\n"
        "  - {name: map, configMap: {name: m, optional: true, items: [{key: k, path: p, mode: "
        "256}]}}\n"
        "  - {name: secret, secret: {secretName: s, defaultMode: 0}}\n"
        "  - {name: down, downwardAPI: {defaultMode: 292, items: [{path: l, fieldRef: "
        "{fieldPath: metadata.labels}},\n"
        "     {path: c, mode: 256, resourceFieldRef: {containerName: app, resource: limits.cpu, "
        "divisor: 1}}]}}\n"
        "  - name: all\n"
        "    projected: {sources: [{secret: {name: s, items: [{key: k, path: p}]}},\n"
        "      {configMap: {name: m}}, {downwardAPI: {items: [{path: x, fieldRef: {fieldPath: "
        "metadata.name}}]}},\n"
        "      {serviceAccountToken: {path: token, audience: a}},\n"
        "      {serviceAccountToken: {path: short, expirationSeconds: 600}}]}\n"
        "  - {name: claim, persistentVolumeClaim: {claimName: c}}\n"
        "  - {name: trust, projected: {sources: [{clusterTrustBundle: {path: p}}]}}\n"));
    const struct node_volume *v = pod->volumes.items;

    EXPECT_EQ(v[0].kind, NODE_VOLUME_EMPTY_DIR);
    EXPECT_EQ(v[1].kind, NODE_VOLUME_EMPTY_DIR);
    EXPECT_TRUE(v[1].memory);
    EXPECT_EQ(v[1].size_limit_bytes, 1 << 20);
    EXPECT_EQ(v[2].kind, NODE_VOLUME_OTHER);
    EXPECT_STR(v[2].other, "emptyDir of medium HugePages");
    EXPECT_EQ(v[3].kind, NODE_VOLUME_HOST_PATH);
    EXPECT_STR(v[3].host_path, "/etc");
    EXPECT_STR(v[3].host_path_type, "Directory");
    EXPECT_EQ(v[4].kind, NODE_VOLUME_CONFIG_MAP);
    EXPECT_EQ(v[4].default_mode, 0644);
    EXPECT_EQ(v[4].sources.count, 1);
    EXPECT_STR(v[4].sources.items[0].object, "m");
    EXPECT_TRUE(v[4].sources.items[0].optional);
    EXPECT_EQ(v[4].sources.items[0].items.items[0].mode.value, 0400);
    EXPECT_EQ(v[5].kind, NODE_VOLUME_SECRET);
    EXPECT_EQ(v[5].default_mode, 0);
    EXPECT_STR(v[5].sources.items[0].object, "s");
    EXPECT_EQ(v[6].kind, NODE_VOLUME_DOWNWARD);
    EXPECT_EQ(v[6].default_mode, 0444);
    EXPECT_STR(v[6].sources.items[0].downward.items[0].field_path, "metadata.labels");
    EXPECT_STR(v[6].sources.items[0].downward.items[1].container, "app");
    EXPECT_STR(v[6].sources.items[0].downward.items[1].divisor, "1");
    EXPECT_EQ(v[7].kind, NODE_VOLUME_PROJECTED);
    EXPECT_EQ(v[7].sources.count, 5);
    EXPECT_EQ(v[7].sources.items[0].kind, NODE_VOLUME_SECRET);
    EXPECT_EQ(v[7].sources.items[1].kind, NODE_VOLUME_CONFIG_MAP);
    EXPECT_EQ(v[7].sources.items[2].kind, NODE_VOLUME_DOWNWARD);
    EXPECT_EQ(v[7].sources.items[3].kind, 0);
    EXPECT_STR(v[7].sources.items[3].token_audience, "a");
    EXPECT_EQ(v[7].sources.items[3].token_expiration_s, 3600);
    EXPECT_EQ(v[7].sources.items[4].token_expiration_s, 600);
    EXPECT_EQ(v[8].kind, NODE_VOLUME_OTHER);
    EXPECT_STR(v[8].other, "persistentVolumeClaim");
    EXPECT_EQ(v[9].kind, NODE_VOLUME_OTHER);
    EXPECT_STR(v[9].other, "projected clusterTrustBundle");
}

/* --- sameness --- */

TEST(pods_are_the_same_when_spec_and_deletion_are)
{
    AUTO_NODE_POD a =
        pod_from_yaml("metadata: {name: web}\nspec: {containers: [{name: app, image: nginx}]}\n");
    AUTO_NODE_POD reordered =
        pod_from_yaml("spec: {containers: [{image: nginx, name: app}]}\nmetadata: {name: web}\n"
                      "status: {phase: Running}\n");
    AUTO_NODE_POD image =
        pod_from_yaml("metadata: {name: web}\nspec: {containers: [{name: app, image: caddy}]}\n");
    AUTO_NODE_POD labelled = pod_from_yaml("metadata: {name: web, labels: {a: b}}\nspec: "
                                           "{containers: [{name: app, image: nginx}]}\n");
    AUTO_NODE_POD noted = pod_from_yaml("metadata: {name: web, annotations: {a: b}}\nspec: "
                                        "{containers: [{name: app, image: nginx}]}\n");
    AUTO_NODE_POD deleted =
        pod_from_yaml("metadata: {name: web, deletionTimestamp: '2026-01-02T03:04:05Z'}\nspec: "
                      "{containers: [{name: app, image: nginx}]}\n");
    AUTO_NODE_POD reborn = pod_from_yaml("metadata: {name: web, uid: other}\nspec: {containers: "
                                         "[{name: app, image: nginx}]}\n");

    EXPECT_TRUE(node_pod_same(a, a));
    EXPECT_TRUE(node_pod_same(a, reordered));
    EXPECT_FALSE(node_pod_same(a, image));
    EXPECT_FALSE(node_pod_same(a, labelled));
    EXPECT_FALSE(node_pod_same(a, noted));
    EXPECT_FALSE(node_pod_same(a, deleted));
    EXPECT_FALSE(node_pod_same(a, reborn));
}
