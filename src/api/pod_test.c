/* Pods: what is kept, what is moved, what is refused. */
#include "api/pod.h"

#include "api/kind_test.h"

#define HEAD "apiVersion: v1\nkind: Pod\nmetadata: {name: web-0, namespace: shop}\n"

static const struct pod *sample_pod(struct sample *s, const char *text)
{
    sample_decode(s, text);
    return pod_of(s->object);
}

TEST(a_pod_keeps_what_scheduling_needs)
{
    SAMPLE s;
    const struct pod *pod = sample_pod(
        &s, HEAD
        "spec:\n"
        "  initContainers: [{name: mesh, image: m, restartPolicy: Always}, {name: init, image: i}]\n"
        "  containers:\n"
        "  - name: main\n"
        "    image: registry.example.com/web:1\n"
        "    command: [run]\n"
        "    ports: [{containerPort: 80, hostPort: 8080, hostIP: 10.0.0.1, protocol: UDP}]\n"
        "    resources: {requests: {cpu: 250m, memory: 1Gi}, limits: {memory: 1Gi}, claims: [{name: gpu}]}\n"
        "  nodeName: node-1\n"
        "  hostNetwork: true\n"
        "  priority: -5\n"
        "  priorityClassName: system-node-critical\n"
        "  preemptionPolicy: Never\n"
        "  schedulerName: mine\n"
        "  serviceAccountName: robot\n"
        "  runtimeClassName: gvisor\n"
        "  restartPolicy: OnFailure\n"
        "  terminationGracePeriodSeconds: 0\n"
        "  nodeSelector: {disk: ssd}\n"
        "  tolerations: [{key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 30}]\n"
        "  overhead: {cpu: 10m}\n"
        "  schedulingGates: [{name: example.com/wait}]\n"
        "  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpus}]\n"
        "  os: {name: linux}\n");
    const struct pod_spec *spec = pod->spec;
    const struct container *main = &spec->containers.items[0];

    EXPECT_TRUE(container_is_sidecar(&spec->init_containers.items[0]));
    EXPECT_FALSE(container_is_sidecar(&spec->init_containers.items[1]));
    EXPECT_STR(main->image, "registry.example.com/web:1");
    EXPECT_EQ(main->ports.items[0].host_port, 8080);
    EXPECT_EQ(main->ports.items[0].protocol, PROTOCOL_UDP);
    EXPECT_EQ(quantity_milli(main->resources.requests.items[0].amount), 250);
    EXPECT_STR(main->resources.claims.items[0].name, "gpu");
    EXPECT_STR(pod->node_name, "node-1");
    EXPECT_TRUE(pod_is_scheduled(pod));
    EXPECT_TRUE(spec->host_network);
    EXPECT_EQ(spec->priority.value, -5);
    EXPECT_TRUE(pod_is_critical(pod));
    EXPECT_EQ(spec->preemption_policy, PREEMPTION_NEVER);
    EXPECT_STR(spec->scheduler_name, "mine");
    EXPECT_STR(spec->service_account_name, "robot");
    EXPECT_STR(spec->runtime_class_name, "gvisor");
    EXPECT_EQ(spec->restart_policy, RESTART_ON_FAILURE);
    EXPECT_TRUE(spec->termination_grace_s.set);
    EXPECT_STR(str_map_get(&spec->node_selector, STR("disk")), "ssd");
    EXPECT_EQ(spec->tolerations.items[0].seconds.value, 30);
    EXPECT_EQ(quantity_milli(spec->overhead.items[0].amount), 10);
    EXPECT_TRUE(pod_is_gated(pod));
    EXPECT_STR(spec->resource_claims.items[0].template_name, "gpus");
    EXPECT_EQ(spec->os.name, POD_OS_LINUX);
}

TEST(a_pod_keeps_its_affinity_and_spread)
{
    SAMPLE s;
    const struct pod *pod = sample_pod(
        &s,
        HEAD "spec:\n"
             "  containers: [{name: a, image: i}]\n"
             "  affinity:\n"
             "    nodeAffinity:\n"
             "      requiredDuringSchedulingIgnoredDuringExecution:\n"
             "        nodeSelectorTerms:\n"
             "        - matchExpressions: [{key: zone, operator: In, values: [a, b]}]\n"
             "          matchFields: [{key: metadata.name, operator: In, values: [n1]}]\n"
             "      preferredDuringSchedulingIgnoredDuringExecution:\n"
             "      - weight: 7\n"
             "        preference: {matchExpressions: [{key: cores, operator: Gt, values: ['8']}]}\n"
             "    podAffinity:\n"
             "      requiredDuringSchedulingIgnoredDuringExecution:\n"
             "      - labelSelector: {matchLabels: {app: db}}\n"
             "        namespaces: [x]\n"
             "        namespaceSelector: {}\n"
             "        topologyKey: zone\n"
             "        mismatchLabelKeys: [tenant]\n"
             "    podAntiAffinity:\n"
             "      preferredDuringSchedulingIgnoredDuringExecution:\n"
             "      - weight: 100\n"
             "        podAffinityTerm: {topologyKey: host}\n"
             "  topologySpreadConstraints:\n"
             "  - maxSkew: 2\n"
             "    topologyKey: zone\n"
             "    whenUnsatisfiable: DoNotSchedule\n"
             "    minDomains: 3\n"
             "    nodeTaintsPolicy: Honor\n"
             "    labelSelector: {matchLabels: {app: web}}\n"
             "    matchLabelKeys: [pod-template-hash]\n");
    const struct affinity *a = pod->maybe_affinity;
    const struct spread_constraint *spread = &pod->spec->spread.items[0];

    EXPECT_TRUE(pod->spec->affinity == NULL); /* moved */
    const struct node_selector_term *term = &a->node.maybe_required->terms.items[0];
    EXPECT_EQ(term->expressions.items[0].op, OP_IN);
    EXPECT_STR(term->expressions.items[0].values.items[1], "b");
    EXPECT_STR(term->fields.items[0].values.items[0], "n1");
    EXPECT_EQ(a->node.preferred.items[0].weight, 7);
    EXPECT_EQ(a->node.preferred.items[0].term.expressions.items[0].op, OP_GT);
    EXPECT_STR(a->pod.required.items[0].topology_key, "zone");
    EXPECT_TRUE(a->pod.required.items[0].maybe_namespace_selector != NULL); /* every namespace */
    EXPECT_STR(a->pod.required.items[0].mismatch_label_keys.items[0], "tenant");
    EXPECT_EQ(a->anti.preferred.items[0].weight, 100);
    EXPECT_TRUE(a->anti.preferred.items[0].term.maybe_selector == NULL); /* selects nothing */
    EXPECT_EQ(spread->max_skew, 2);
    EXPECT_EQ(spread->when_unsatisfiable, UNSATISFIABLE_DO_NOT_SCHEDULE);
    EXPECT_EQ(spread->min_domains.value, 3);
    EXPECT_EQ(spread->node_taints_policy, INCLUSION_HONOR);
    EXPECT_EQ(spread->node_affinity_policy, INCLUSION_UNSET);
    EXPECT_STR(spread->match_label_keys.items[0], "pod-template-hash");
}

TEST(only_volumes_that_matter_for_placement_are_kept)
{
    SAMPLE s;
    const struct pod *pod = sample_pod(
        &s, HEAD
        "spec:\n"
        "  containers: [{name: a, image: i}]\n"
        "  volumes:\n"
        "  - {name: token, projected: {sources: []}}\n"
        "  - {name: data, persistentVolumeClaim: {claimName: data-web-0, readOnly: true}}\n"
        "  - {name: conf, configMap: {name: c, image: i}}\n"
        "  - name: scratch\n"
        "    ephemeral: {volumeClaimTemplate: {spec: {accessModes: [ReadWriteOnce], storageClassName: fast,\n"
        "      resources: {requests: {storage: 1Gi}}}}}\n"
        "  - {name: inline, csi: {driver: secrets.example.com}}\n"
        "  - {name: old, awsElasticBlockStore: {volumeID: vol-1}}\n"
        "  - {name: tmp, emptyDir: {}}\n");
    EXPECT_EQ(pod->volumes.count, 4);
    EXPECT_EQ(pod->spec->volumes.count, 0);
    EXPECT_TRUE(pod->volumes.items[0].claim.read_only);
    EXPECT_STR(pod_volume_claim(pod, &pod->volumes.items[0], &s.arena), "data-web-0");
    EXPECT_STR(pod_volume_claim(pod, &pod->volumes.items[1], &s.arena), "web-0-scratch");
    EXPECT_STR(pod->volumes.items[1].ephemeral.maybe_template->spec.storage_class_name, "fast");
    EXPECT_STR(pod->volumes.items[2].csi.id, "secrets.example.com");
    EXPECT_STR(pod_volume_claim(pod, &pod->volumes.items[2], &s.arena), NULL);
    EXPECT_STR(pod->volumes.items[3].aws_disk.id, "vol-1");
}

TEST(a_pod_has_each_of_its_images_once_in_the_order_of_use)
{
    static const char *const want[] = { "setup:1", "web:1", "helper:1", "models:7", "more:1" };
    SAMPLE s;
    const struct pod *pod = sample_pod(
        &s, HEAD "spec:\n"
                 "  initContainers: [{name: a, image: setup:1}, {name: b, image: web:1}]\n"
                 "  containers: [{name: c, image: web:1}, {name: d, image: helper:1}]\n"
                 "  ephemeralContainers: [{name: e, image: debug:1}]\n"
                 "  volumes:\n"
                 "  - {name: v1, image: {reference: models:7, pullPolicy: Always}}\n"
                 "  - {name: tmp, emptyDir: {}}\n"
                 "  - {name: v2, image: {reference: helper:1}}\n"
                 "  - {name: v3, image: {pullPolicy: Never}}\n"
                 "  - {name: v4, image: {reference: more:1}}\n");
    const struct str *images;
    EXPECT_EQ(pod_images(pod, &s.arena, &images), KV_COUNT_OF(want));
    for (size_t i = 0; i < KV_COUNT_OF(want); i++)
        EXPECT_STR(images[i], want[i]);
    EXPECT_EQ(pod->volumes.count, 0); /* they bind to no place */
    EXPECT_EQ(pod->spec->volume_images.count, 3);
}

TEST(a_pod_keeps_the_names_of_its_pull_secrets)
{
    SAMPLE s;
    const struct pod *pod =
        sample_pod(&s, HEAD "spec:\n"
                            "  containers: [{name: a, image: i}]\n"
                            "  imagePullSecrets: [{name: registry}, {}, {name: mirror}]\n");
    EXPECT_EQ(pod->spec->image_pull_secrets.count, 3);
    EXPECT_STR(pod->spec->image_pull_secrets.items[0].name, "registry");
    EXPECT_EQ(pod->spec->image_pull_secrets.items[1].name.len, 0);
    EXPECT_STR(pod->spec->image_pull_secrets.items[2].name, "mirror");
}

static const char running[] = HEAD
    "spec: {containers: [{name: a, image: i}]}\n"
    "status:\n"
    "  phase: Running\n"
    "  nominatedNodeName: node-9\n"
    "  startTime: '2026-01-02T15:04:05Z'\n"
    "  podIPs: [{ip: 10.0.0.1}, {ip: 'fd00::1'}]\n"
    "  conditions:\n"
    "  - {type: Initialized, status: 'True', lastTransitionTime: '2026-01-02T15:04:06Z'}\n"
    "  - {type: Ready, status: 'False', reason: Nope, lastTransitionTime: '2026-01-02T15:04:09Z'}\n"
    "  initContainerStatuses:\n"
    "  - name: i\n"
    "    state: {terminated: {exitCode: 3, reason: Error, startedAt: '2026-01-02T15:04:07Z',\n"
    "      finishedAt: '2026-01-02T15:04:08Z'}}\n"
    "  containerStatuses:\n"
    "  - name: a\n"
    "    ready: true\n"
    "    restartCount: 2\n"
    "    started: true\n"
    "    state: {running: {startedAt: '2026-01-02T15:04:10Z'}}\n"
    "    allocatedResources: {cpu: 1}\n"
    "    resources: {requests: {cpu: 2}}\n"
    "  - {name: b, state: {waiting: {reason: CrashLoopBackOff}}}\n";
#define BASE_US 1767366245000000 /* 15:04:05 */

TEST(a_pod_keeps_its_status_and_when_things_happened)
{
    SAMPLE s;
    const struct pod *pod = sample_pod(&s, running);
    const struct pod_status *status = pod->status;

    EXPECT_EQ(status->phase, PHASE_RUNNING);
    EXPECT_STR(status->nominated_node, "node-9");
    EXPECT_EQ(pod->start_us, BASE_US);
    EXPECT_STR(pod->ips.items[1].ip, "fd00::1");
    const struct pod_condition *ready = pod_condition(pod, STR("Ready"));
    EXPECT_EQ(ready->status, CONDITION_FALSE);
    EXPECT_STR(ready->reason, "Nope");
    EXPECT_EQ(pod_condition_us(pod, ready), BASE_US + 4000000);
    EXPECT_EQ(pod_condition_us(pod, pod_condition(pod, STR("Initialized"))), BASE_US + 1000000);
    EXPECT_TRUE(pod_condition(pod, STR("Missing")) == NULL);
    EXPECT_FALSE(pod_is_ready(pod));

    const struct container_status *init = &status->init_containers.items[0];
    EXPECT_EQ(init->state, STATE_TERMINATED);
    EXPECT_EQ(init->detail.exit_code, 3);
    EXPECT_EQ(pod_container_times(pod, init).started_us, BASE_US + 2000000);
    EXPECT_EQ(pod_container_times(pod, init).finished_us, BASE_US + 3000000);
    const struct container_status *a = &status->containers.items[0];
    EXPECT_EQ(a->state, STATE_RUNNING);
    EXPECT_TRUE(a->ready);
    EXPECT_EQ(a->restart_count, 2);
    EXPECT_EQ(a->started, TRI_TRUE);
    EXPECT_EQ(pod_container_times(pod, a).started_us, BASE_US + 5000000);
    EXPECT_EQ(quantity_units(a->maybe_resources->requests.items[0].amount), 2);
    const struct container_status *b = &status->containers.items[1];
    EXPECT_EQ(b->state, STATE_WAITING);
    EXPECT_STR(b->detail.reason, "CrashLoopBackOff");
    EXPECT_EQ(pod_container_times(pod, b).started_us, 0);
}

TEST(a_pod_without_spec_or_status_can_be_asked_everything)
{
    AUTO(object_pool) pool = object_pool_new();
    struct doc doc;
    struct err err;
    const struct object *object = NULL;
    EXPECT_OK(json_read(STR("{\"metadata\":{\"name\":\"a\"}}"), &doc, &err), err);
    EXPECT_OK(object_decode(pool, &pod_kind, doc.root, &object, &err), err);
    const struct pod *pod = pod_of(object);
    EXPECT_FALSE(pod_is_terminal(pod) || pod_is_terminating(pod) || pod_is_ready(pod) ||
                 pod_is_scheduled(pod) || pod_is_gated(pod) || pod_is_mirror(pod) ||
                 pod_is_critical(pod));
    EXPECT_STR(object_field(object, STR("status.podIP")), "");
    object_unref(object);
    doc_done(&doc);
}

TEST(with_host_network_a_port_is_the_hosts)
{
    struct pod_spec spec = { .host_network = true };
    struct container_port port = { .container_port = 80 };
    EXPECT_EQ(pod_host_port(&spec, &port), 80);
    spec.host_network = false;
    EXPECT_EQ(pod_host_port(&spec, &port), 0);
    port.host_port = 81;
    EXPECT_EQ(pod_host_port(&spec, &port), 81);
}

TEST(defaults_are_those_of_the_api_server)
{
    SAMPLE s;
    sample_read(&s,
                HEAD
                "spec: {containers: [{name: a, image: i, ports: [{containerPort: 80}], resources:"
                " {limits: {cpu: 2, memory: 1Gi}, requests: {cpu: 1}}}]}\n",
                NULL);
    EXPECT_STR(sample_default(&s, "spec.restartPolicy"), "\"Always\"");
    EXPECT_STR(sample_default(&s, "spec.schedulerName"), "\"default-scheduler\"");
    EXPECT_STR(sample_default(&s, "spec.terminationGracePeriodSeconds"), "30");
    EXPECT_STR(sample_default(&s, "spec.dnsPolicy"), "\"ClusterFirst\"");
    EXPECT_STR(
        sample_default(&s, "spec.containers"),
        "[{\"name\":\"a\",\"image\":\"i\",\"ports\":[{\"containerPort\":80,\"protocol\":\"TCP\"}],"
        "\"resources\":{\"limits\":{\"cpu\":2,\"memory\":\"1Gi\"},"
        "\"requests\":{\"cpu\":1,\"memory\":\"1Gi\"}}}]");
}

/* --- refusals --- */

static void expect_spec(const char *spec, const char *problem)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, HEAD "spec:\n%s", spec);
    if (problem)
        expect_problem(text.p, problem);
    else
        expect_fine(text.p);
}
static void expect_container(const char *rest, const char *problem)
{
    AUTO_BUF spec = { 0 };
    buf_addf(&spec, "  containers: [{name: a, image: i, %s}]\n", rest);
    expect_spec(spec.p, problem);
}
#define ONE "  containers: [{name: a, image: i}]\n"

TEST(a_pod_needs_containers_with_distinct_names)
{
    expect_spec("  restartPolicy: Always\n", "spec.containers: required, missing");
    expect_spec("  containers: []\n", "spec.containers: has 0 items, expected at least 1");
    expect_spec("  containers: [{name: a, image: i}, {name: a, image: i}]\n",
                "spec.containers[1]: duplicate: item 0 has the same name");
    expect_spec(
        "  initContainers: [{name: a, image: i}]\n" ONE,
        "spec.containers[0].name: duplicate: a container of that name is in initContainers");
    expect_spec("  containers: [{name: A_b, image: i}]\n",
                "spec.containers[0].name: \"A_b\" must be");
    expect_spec("  initContainers: [{name: b, image: i}]\n" ONE, NULL);
}

TEST(unknown_fields_are_found_deep_inside)
{
    expect_container("readinessProbe: {httpGet: {port: 80}, periodSecond: 3}",
                     "spec.containers[0].readinessProbe.periodSecond: unknown field, did you mean "
                     "\"periodSeconds\"?");
    expect_container("env: [{name: X, vaule: y}]", "did you mean \"value\"?");
    expect_container("securityContext: {runAsRoot: true}", "unknown field");
    expect_spec(ONE "  volumes: [{name: v, configmap: {name: x}}]\n",
                "spec.volumes[0].configmap: unknown field, did you mean \"configMap\"?");
    expect_spec(ONE "  nodeselector: {}\n", "did you mean \"nodeSelector\"?");
}

TEST(ports_are_in_range_and_taken_once)
{
    expect_container("ports: [{containerPort: 0}]", "expected 1 to 65535, found 0");
    expect_container("ports: [{containerPort: 80, name: Web}]", "is not a port name");
    expect_container("ports: [{containerPort: 80, name: w}, {containerPort: 81, name: w}]",
                     "spec.containers[0].ports[1]: duplicate: another port");
    expect_container("ports: [{containerPort: 80, hostPort: 5}, {containerPort: 81, hostPort: 5}]",
                     "spec.containers[0].ports[1]: host port 5 is taken");
    expect_container(
        "ports: [{containerPort: 80, hostPort: 5}, {containerPort: 81, hostPort: 5, protocol: UDP}]",
        NULL);
    expect_spec(
        "  hostNetwork: true\n  containers: [{name: a, image: i, ports: [{containerPort: 80, hostPort: 5}]}]\n",
        "hostPort 5 differs from containerPort 80");
    expect_container("ports: [{containerPort: 80, protocol: tcp}]",
                     "expected one of \"TCP\", \"UDP\", \"SCTP\", found \"tcp\"");
}

TEST(requests_stay_within_limits)
{
    expect_container("resources: {requests: {cpu: 2}, limits: {cpu: 1}}",
                     "spec.containers[0].resources.requests[\"cpu\"]: is 2, expected at most the "
                     "limit of 1");
    expect_container("resources: {requests: {cpu: 1500m, memory: 1Gi}, limits: {cpu: 1.5}}", NULL);
    expect_container("resources: {requests: {cpu: -1}}", "is negative");
    expect_container("resources: {requests: {cpu: lots}}", "resources.requests[\"cpu\"]: ");
    expect_container("resources: {limits: {gpu: 1}}", "is not a container's resource");
    expect_container("resources: {limits: {example.com/gpu: 500m}}", "is a fraction");
    expect_container("resources: {limits: {example.com/gpu: 2}, requests: {example.com/gpu: 1}}",
                     "can be overcommitted");
    expect_container("resources: {requests: {example.com/gpu: 1}}",
                     "resources.limits: has no \"example.com/gpu\"");
    expect_container("resources: {limits: {example.com/gpu: 1, hugepages-2Mi: 4Mi}}", NULL);
}

TEST(affinity_terms_are_complete)
{
    expect_spec(
        ONE
        "  affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{}]}}\n",
        "requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: required, missing");
    expect_spec(ONE "  affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution:"
                    " [{weight: 101, podAffinityTerm: {topologyKey: x}}]}}\n",
                "weight: expected 1 to 100, found 101");
    expect_spec(ONE "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
                    " {nodeSelectorTerms: []}}}\n",
                "nodeSelectorTerms: has 0 items, expected at least 1");
    expect_spec(
        ONE "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
            " {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gt, values: [x]}]}]}}}\n",
        "values do not fit the operator");
    expect_spec(
        ONE
        "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
        " {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Gte, values: ['1']}]}]}}}\n",
        "operator: expected one of");
    expect_spec(
        ONE
        "  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
        " [{topologyKey: x, labelSelector: {matchLabels: {app: a}}, matchLabelKeys: [app]}]}}\n",
        "matchLabelKeys[0]: \"app\" is in the labelSelector too");
    expect_spec(
        ONE
        "  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
        " [{topologyKey: x, labelSelector: {}, matchLabelKeys: [app], mismatchLabelKeys: [app]}]}}\n",
        "\"app\" is in matchLabelKeys too");
}

TEST(spread_constraints_make_sense)
{
    expect_spec(
        ONE
        "  topologySpreadConstraints: [{maxSkew: 0, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]\n",
        "maxSkew: expected 1 to 2147483647, found 0");
    expect_spec(
        ONE
        "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: Maybe}]\n",
        "expected one of \"DoNotSchedule\", \"ScheduleAnyway\", found \"Maybe\"");
    expect_spec(ONE "  topologySpreadConstraints: [{maxSkew: 1, minDomains: 2, topologyKey: z,"
                    " whenUnsatisfiable: ScheduleAnyway}]\n",
                "minDomains is only for whenUnsatisfiable: DoNotSchedule");
    expect_spec(
        ONE
        "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule},"
        " {maxSkew: 2, topologyKey: z, whenUnsatisfiable: DoNotSchedule}]\n",
        "duplicate: item 0 has the same topologyKey, whenUnsatisfiable");
    expect_spec(
        ONE
        "  topologySpreadConstraints: [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: DoNotSchedule,"
        " matchLabelKeys: [a]}]\n",
        "matchLabelKeys needs a labelSelector");
}

TEST(tolerations_make_sense)
{
    expect_spec(ONE "  tolerations: [{operator: Equal}]\n", "an empty key tolerates every taint");
    expect_spec(
        ONE "  tolerations: [{operator: Exists}, {key: '', operator: Exists, effect: ''}]\n", NULL);
    expect_spec(ONE "  tolerations: [{key: a, operator: Exists, value: b}]\n", "takes no value");
    expect_spec(ONE "  tolerations: [{key: a, value: b, tolerationSeconds: 1}]\n",
                "tolerationSeconds is only for effect NoExecute");
    expect_spec(ONE "  tolerations: [{key: a, operator: Lt, value: '5'}]\n", NULL);
    expect_spec(ONE "  tolerations: [{key: a, operator: Lt, value: five}]\n", "value does not fit");
    expect_spec(ONE "  tolerations: [{key: a, effect: Sometimes}]\n", "found \"Sometimes\"");
}

TEST(what_a_pod_refers_to_is_there)
{
    expect_container("volumeMounts: [{name: data, mountPath: /d}]",
                     "volumeMounts[0].name: \"data\" is not one of the pod's volumes");
    expect_spec(
        "  volumes: [{name: data, emptyDir: {}}]\n"
        "  containers: [{name: a, image: i, volumeMounts: [{name: data, mountPath: /d}]}]\n",
        NULL);
    expect_container("resources: {claims: [{name: gpu}]}",
                     "\"gpu\" is not one of the pod's resourceClaims");
    expect_spec(ONE "  volumes: [{name: v, emptyDir: {}, hostPath: {path: /x}}]\n",
                "has 2 sources, expected exactly one");
    expect_spec(ONE "  resourceClaims: [{name: gpu}]\n",
                "expected one of resourceClaimName and resourceClaimTemplateName");
    expect_spec(ONE "  nodeName: node-1\n  schedulingGates: [{name: a}]\n",
                "schedulingGates hold the pod");
}

TEST(a_container_needs_an_image)
{
    expect_spec("  containers: [{name: a}]\n", "spec.containers[0].image: required, missing");
    expect_spec("  containers: [{name: a, image: ''}]\n",
                "spec.containers[0].image: has 0 characters, expected at least 1");
    expect_spec("  initContainers: [{name: b}]\n" ONE,
                "spec.initContainers[0].image: required, missing");
}

TEST(an_optional_text_that_is_empty_is_an_absent_one)
{
    SAMPLE s;
    sample_read(&s,
                HEAD "spec: {dnsPolicy: '', restartPolicy: '', hostname: '', subdomain: '',"
                     " containers: [{name: a, image: i, imagePullPolicy: '',"
                     " ports: [{containerPort: 80, protocol: '', name: ''}]}]}\n",
                NULL);
    EXPECT_STR(sample_problems(&s), "");
    EXPECT_STR(sample_default(&s, "spec.dnsPolicy"), "\"ClusterFirst\"");
    EXPECT_STR(sample_default(&s, "spec.restartPolicy"), "\"Always\"");
    EXPECT_HAS(sample_default(&s, "spec.containers"), "\"protocol\":\"TCP\"");
    /* A required one is not optional. */
    expect_spec(ONE "  topologySpreadConstraints:"
                    " [{maxSkew: 1, topologyKey: z, whenUnsatisfiable: ''}]\n",
                "whenUnsatisfiable: expected one of \"DoNotSchedule\", \"ScheduleAnyway\"");
}

TEST(node_affinity_values_are_label_values)
{
    expect_spec(ONE "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:"
                    " {nodeSelectorTerms: [{matchExpressions:"
                    " [{key: a, operator: In, values: [b, 'not one']}]}]}}}\n",
                "matchExpressions[0].values[1]: \"not one\" must");
}

TEST(checks_of_long_lists_end)
{
    /* Sixty thousand of each: a look-up by walking, once for each of them, takes minutes. */
    AUTO_BUF text = { 0 };
    buf_addz(&text, HEAD "spec: {containers: [{name: a, image: i, resources: {requests: {");
    for (int i = 0; i < 60000; i++)
        buf_addf(&text, "x.io/r%d: 1, ", i);
    buf_addz(&text, "}, limits: {");
    for (int i = 0; i < 60000; i++)
        buf_addf(&text, "x.io/r%d: 1, ", i);
    buf_addz(&text, "}}}], topologySpreadConstraints: [{maxSkew: 1, topologyKey: z,"
                    " whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {");
    for (int i = 0; i < 60000; i++)
        buf_addf(&text, "l%d: v, ", i);
    buf_addz(&text, "}}, matchLabelKeys: [");
    for (int i = 0; i < 60000; i++)
        buf_addf(&text, "k%d, ", i);
    buf_addz(&text, "]}]}\n");
    expect_fine(text.p);
}

TEST(probes_have_one_handler_and_init_containers_none)
{
    expect_container("livenessProbe: {exec: {command: [x]}, tcpSocket: {port: 1}}",
                     "expected exactly one handler");
    expect_container("livenessProbe: {httpGet: {port: http}}", NULL);
    expect_spec("  initContainers: [{name: i, image: i, livenessProbe: {grpc: {port: 1}}}]\n" ONE,
                "spec.initContainers[0].livenessProbe: is not for init containers");
    expect_spec(
        "  initContainers: [{name: i, image: i, restartPolicy: Always, livenessProbe: {grpc: {port: 1}}}]\n" ONE,
        NULL);
}

/* --- small things --- */

TEST(a_toleration_matches_key_value_and_effect)
{
    const struct taint taint = { STR("k"), STR("5"), EFFECT_NO_SCHEDULE, 0 };
    const struct {
        struct toleration t;
        bool tolerates;
    } cases[] = {
        { { .op = TOLERATION_EXISTS }, true },
        { { .key = STR("k"), .op = TOLERATION_EXISTS }, true },
        { { .key = STR("x"), .op = TOLERATION_EXISTS }, false },
        { { .key = STR("k"), .value = STR("5") }, true },
        { { .key = STR("k"), .value = STR("6"), .op = TOLERATION_EQUAL }, false },
        { { .key = STR("k"), .value = STR("5"), .effect = EFFECT_NO_SCHEDULE }, true },
        { { .key = STR("k"), .value = STR("5"), .effect = EFFECT_NO_EXECUTE }, false },
        { { .key = STR("k"), .value = STR("6"), .op = TOLERATION_LT }, true },
        { { .key = STR("k"), .value = STR("5"), .op = TOLERATION_LT }, false },
        { { .key = STR("k"), .value = STR("4"), .op = TOLERATION_GT }, true },
        { { .key = STR("k"), .value = STR("x"), .op = TOLERATION_GT }, false },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        EXPECT_EQ(toleration_tolerates(&cases[i].t, &taint), cases[i].tolerates);
}

TEST(an_empty_operator_or_effect_counts_as_none)
{
    SAMPLE s;
    const struct pod *pod = sample_pod(
        &s, HEAD
        "spec: {containers: [{name: a, image: i}], tolerations: [{key: k, operator: '', effect: ''}]}\n");
    EXPECT_EQ(pod->spec->tolerations.items[0].op, TOLERATION_UNSET);
    EXPECT_EQ(pod->spec->tolerations.items[0].effect, EFFECT_ANY);
}

TEST(a_label_selector_matches_all_of_its_parts)
{
    const struct str_pair pairs[] = { { STR("app"), STR("web") }, { STR("tier"), STR("") } };
    const struct str_map labels = { pairs, 2 };
    const struct str web[] = { STR("api"), STR("web") };
    struct expression e = { .key = STR("app"), .op = OP_IN, .values = { web, 2 } };
    struct label_selector sel = { .match_labels = { pairs, 1 } };
    sel.expressions.items = &e;
    sel.expressions.count = 1;

    EXPECT_FALSE(label_selector_matches(NULL, &labels));
    EXPECT_TRUE(label_selector_matches(&(struct label_selector){ 0 }, &labels));
    EXPECT_TRUE(label_selector_matches(&sel, &labels));
    e.op = OP_NOT_IN;
    EXPECT_FALSE(label_selector_matches(&sel, &labels));
    e.key = STR("missing");
    EXPECT_TRUE(label_selector_matches(&sel, &labels)); /* not there is not in */
    e.op = OP_EXISTS;
    EXPECT_FALSE(label_selector_matches(&sel, &labels));
    e.op = OP_DOES_NOT_EXIST;
    EXPECT_TRUE(label_selector_matches(&sel, &labels));
    e.op = OP_UNSET;
    EXPECT_FALSE(label_selector_matches(&sel, &labels));
    e.key = STR("tier");
    e.op = OP_EXISTS;
    EXPECT_TRUE(label_selector_matches(&sel, &labels)); /* an empty value is a value */
}
