/* Budgets, priorities, namespaces, leases, events and services. */
#include "api/policy.h"
#include "api/kind_test.h"

#define PDB(spec_)                                                                                 \
    "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: shop}, "  \
    "spec: " spec_ "}"
#define SELECTOR "selector: {matchLabels: {app: web}}"

TEST(budget_decodes_spec_and_status)
{
    SAMPLE s;
    sample_decode(&s, "apiVersion: policy/v1\n"
                      "kind: PodDisruptionBudget\n"
                      "metadata: {name: web, namespace: shop, generation: 3}\n"
                      "spec:\n"
                      "  maxUnavailable: 10%\n"
                      "  unhealthyPodEvictionPolicy: AlwaysAllow\n"
                      "  selector: {matchLabels: {app: web}}\n"
                      "status:\n"
                      "  observedGeneration: 3\n"
                      "  disruptedPods: {web-1: '2026-01-02T03:04:05Z'}\n"
                      "  disruptionsAllowed: 2\n"
                      "  currentHealthy: 20\n"
                      "  desiredHealthy: 18\n"
                      "  expectedPods: 20\n"
                      "  conditions:\n"
                      "  - type: DisruptionAllowed\n"
                      "    status: 'True'\n"
                      "    observedGeneration: 3\n"
                      "    lastTransitionTime: '2026-01-02T03:04:05Z'\n"
                      "    reason: SufficientPods\n"
                      "    message: ''\n");
    const struct pdb *pdb = pdb_of(s.object);
    struct str_pair label = { STR("app"), STR("web") };
    struct str_map labels = { &label, 1 };

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_STR(pdb->spec.max_unavailable.str, "10%");
    EXPECT_FALSE(pdb->spec.min_available.set);
    EXPECT_EQ(pdb->spec.unhealthy_policy, UNHEALTHY_ALWAYS_ALLOW);
    EXPECT_TRUE(label_selector_matches(pdb->spec.maybe_selector, &labels));
    EXPECT_EQ(pdb->status.disruptions_allowed, 2);
    EXPECT_TRUE(str_map_get(&pdb->status.disrupted_pods, STR("web-1")).p != NULL);
}

/* Of n pods, as the disruption controller computes it. */
TEST(budget_share_is_rounded_up_whichever_way_it_is_written)
{
    static const struct {
        const char *spec;
        int64_t pods, want;
    } cases[] = {
        { "{minAvailable: 3}", 10, 3 },     { "{minAvailable: 50%}", 7, 4 },
        { "{minAvailable: 100%}", 7, 7 },   { "{minAvailable: 12}", 10, 12 },
        { "{maxUnavailable: 1}", 10, 9 },   { "{maxUnavailable: 30%}", 7, 4 },
        { "{maxUnavailable: 100%}", 7, 0 }, { "{maxUnavailable: 20}", 10, 0 },
        { "{maxUnavailable: 0}", 10, 10 },  { "{minAvailable: 0%}", 10, 0 },
    };

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF text = { 0 };
        int64_t want = -1;
        buf_addf(&text, PDB("%s"), cases[i].spec);
        SAMPLE s;
        sample_decode(&s, text.p);
        EXPECT_TRUE(pdb_desired_healthy(&pdb_of(s.object)->spec, cases[i].pods, &want));
        EXPECT_EQ(want, cases[i].want);
    }
}

TEST(budget_sets_exactly_one_of_its_two_shares)
{
    SAMPLE s;
    int64_t want;

    expect_problem(PDB("{minAvailable: 1, maxUnavailable: 1, " SELECTOR "}"),
                   "spec: minAvailable and maxUnavailable are both set");
    expect_problem(PDB("{" SELECTOR "}"), "warning: spec: neither minAvailable nor maxUnavailable");
    sample_decode(&s, PDB("{" SELECTOR "}"));
    EXPECT_FALSE(pdb_desired_healthy(&pdb_of(s.object)->spec, 5, &want));
}

TEST(budget_shares_are_counts_or_percentages)
{
    expect_fine(PDB("{minAvailable: 0, " SELECTOR "}"));
    expect_fine(PDB("{minAvailable: 100%, " SELECTOR "}"));
    expect_problem(PDB("{minAvailable: -1, " SELECTOR "}"),
                   "spec.minAvailable: expected at least 0");
    expect_problem(PDB("{minAvailable: half, " SELECTOR "}"),
                   "spec.minAvailable: \"half\" is not a percentage");
    expect_problem(PDB("{maxUnavailable: '5', " SELECTOR "}"),
                   "spec.maxUnavailable: \"5\" is not a percentage");
    expect_problem(PDB("{maxUnavailable: -5%, " SELECTOR "}"), "is not a percentage");
    expect_problem(PDB("{maxUnavailable: 101%, " SELECTOR "}"),
                   "spec.maxUnavailable: is more than all");
    expect_problem(PDB("{maxUnavailable: 1}"), "warning: spec.selector: is missing");
    expect_problem(PDB("{maxUnavailable: 1, selectors: {}, " SELECTOR "}"),
                   "spec.selectors: unknown field, did you mean \"selector\"?");
}

#define PRIORITY(name_, rest_)                                                                     \
    "{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: " name_ "}, " rest_  \
    "}"

TEST(priority_class_decodes_and_defaults)
{
    SAMPLE s;
    sample_decode(&s, PRIORITY("high", "value: 1000000000, globalDefault: true, description: d"));
    const struct priority_class *pc = priority_class_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_EQ(pc->value, 1000000000);
    EXPECT_TRUE(pc->global_default);
    EXPECT_EQ(pc->preemption, PREEMPTION_UNSET);
    EXPECT_STR(sample_default(&s, "preemptionPolicy"), "\"PreemptLowerPriority\"");
}

TEST(priority_class_leaves_the_top_to_the_system)
{
    expect_problem(PRIORITY("high", "value: 1000000001"), "value: is 1000000001, expected at most");
    expect_problem(PRIORITY("high", "value: 3000000000"),
                   "value: expected -2147483648 to 2147483647");
    expect_fine(PRIORITY("low", "globalDefault: false")); /* 0 */
    expect_problem(PRIORITY("system-mine", "value: 5"), "metadata.name: starts with \"system-\"");
    expect_fine(PRIORITY("system-cluster-critical", "value: 2000000000"));
    expect_fine(PRIORITY("system-node-critical", "value: 2000001000"));
    expect_problem(PRIORITY("p", "value: 1, preemptionPolicy: Always"),
                   "preemptionPolicy: expected");
    expect_change(PRIORITY("p", "value: 1"), PRIORITY("p", "value: 2"), "value can not be changed");
}

TEST(namespace_name_is_one_label_and_phase_can_be_selected)
{
    SAMPLE s;
    sample_decode(&s,
                  "{apiVersion: v1, kind: Namespace, metadata: {name: shop}, spec: {finalizers: "
                  "[kubernetes]}, status: {phase: Terminating}}");

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_EQ(namespace_of(s.object)->status.phase, NAMESPACE_TERMINATING);
    EXPECT_STR(object_field(s.object, STR("status.phase")), "Terminating");
    EXPECT_STR(sample_default(&s, "metadata.labels"), "{\"kubernetes.io/metadata.name\":\"shop\"}");
    expect_problem("{apiVersion: v1, kind: Namespace, metadata: {name: a.b}}", "metadata.name: ");
    expect_problem("{apiVersion: v1, kind: Namespace, metadata: {name: Shop}}", "metadata.name: ");
}

TEST(lease_decodes_microsecond_times)
{
    SAMPLE s;
    sample_decode(&s, "apiVersion: coordination.k8s.io/v1\n"
                      "kind: Lease\n"
                      "metadata: {name: leader, namespace: kube-system}\n"
                      "spec:\n"
                      "  holderIdentity: karve-0\n"
                      "  leaseDurationSeconds: 15\n"
                      "  acquireTime: '2026-01-02T03:04:05.000000Z'\n"
                      "  renewTime: '2026-01-02T03:04:05.123456Z'\n"
                      "  leaseTransitions: 2\n");
    const struct lease *lease = lease_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_STR(lease->spec.holder_identity, "karve-0");
    EXPECT_EQ(lease->spec.duration_s.value, 15);
    EXPECT_EQ(lease->spec.renew_us - lease->spec.acquire_us, 123456);
}

#define LEASE(spec_)                                                                               \
    "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l}, spec: " spec_ "}"

TEST(lease_lasts_some_time_and_transitions_do_not_go_back)
{
    expect_problem(LEASE("{leaseDurationSeconds: 0}"), "spec.leaseDurationSeconds: expected 1 to");
    expect_problem(LEASE("{leaseTransitions: -1}"), "spec.leaseTransitions: expected 0 to");
    expect_problem(LEASE("{renewTime: yesterday}"), "spec.renewTime: ");
    expect_problem(LEASE("{renewTime: '2026-01-02T03:04:05Z'}"), "needs six digits");
    expect_problem(LEASE("{renewTime: '2026-01-02T03:04:05.123Z'}"), "needs six digits");
    expect_problem(LEASE("{renewTime: '2026-01-02T03:04:05.123456789Z'}"), "needs six digits");
    expect_fine(LEASE("{renewTime: '2026-01-02T03:04:05.123456+01:00'}"));
    expect_problem(LEASE("{preferredHolder: b}"), "spec.preferredHolder: may only be set together");
    expect_problem(LEASE("{leaseDuration: 5}"), "spec.leaseDuration: unknown field");
}

static const char event_text[] =
    "apiVersion: v1\n"
    "kind: Event\n"
    "metadata: {name: web-1.17, namespace: shop}\n"
    "involvedObject: {kind: Pod, namespace: shop, name: web-1, uid: u-1, apiVersion: v1, "
    "fieldPath: 'spec.containers{web}'}\n"
    "reason: FailedScheduling\n"
    "message: 0/3 nodes are available\n"
    "source: {component: default-scheduler}\n"
    "firstTimestamp: '2026-01-02T03:04:05Z'\n"
    "lastTimestamp: '2026-01-02T03:05:05Z'\n"
    "count: 4\n"
    "type: Warning\n"
    "eventTime: null\n"
    "reportingComponent: default-scheduler\n"
    "reportingInstance: ''\n";

TEST(event_decodes_the_older_form)
{
    SAMPLE s;
    sample_decode(&s, event_text);
    const struct event *event = event_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_STR(event->involved.name, "web-1");
    EXPECT_EQ(event->count, 4);
    EXPECT_EQ(event_last_us(event) - event->first_us, 60000000);
    EXPECT_EQ(event->event_us, 0);
}

TEST(event_fields_select_as_in_the_api_server)
{
    static const struct {
        const char *path, *value;
    } cases[] = {
        { "involvedObject.kind", "Pod" },
        { "involvedObject.namespace", "shop" },
        { "involvedObject.name", "web-1" },
        { "involvedObject.uid", "u-1" },
        { "involvedObject.apiVersion", "v1" },
        { "involvedObject.resourceVersion", "" },
        { "involvedObject.fieldPath", "spec.containers{web}" },
        { "reason", "FailedScheduling" },
        { "reportingComponent", "default-scheduler" },
        { "source", "default-scheduler" },
        { "type", "Warning" },
    };
    SAMPLE s;
    sample_decode(&s, event_text);

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct str value = object_field(s.object, str_of(cases[i].path));
        EXPECT_TRUE(value.p != NULL);
        EXPECT_STR(value, cases[i].value);
    }
    EXPECT_TRUE(object_field(s.object, STR("message")).p == NULL);
}

#define NEW_EVENT(rest_)                                                                           \
    "{apiVersion: v1, kind: Event, metadata: {name: e, namespace: shop}, involvedObject: {kind: "  \
    "Pod, namespace: shop, name: p}, eventTime: '2026-01-02T03:04:05.500000Z', " rest_ "}"
#define NEW_WORDS "reason: R, action: A, reportingComponent: c, reportingInstance: i"

TEST(event_of_the_newer_form_has_stricter_rules)
{
    SAMPLE s;
    sample_decode(&s, NEW_EVENT(NEW_WORDS ", type: Normal, series: {count: 3, lastObservedTime: "
                                          "'2026-01-02T03:04:09.000000Z'}"));

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_EQ(event_last_us(event_of(s.object)) - event_of(s.object)->event_us, 3500000);
    expect_problem(NEW_EVENT(NEW_WORDS ", type: Error"), "type: is \"Error\", expected Normal or");
    expect_problem(NEW_EVENT("type: Normal, reason: R"), "action: is missing");
    expect_problem(NEW_EVENT(NEW_WORDS ", type: Normal, series: {count: 1}"),
                   "series.count: is 1, expected at least 2");
}

TEST(event_lives_where_its_object_lives)
{
    expect_problem(
        "{apiVersion: v1, kind: Event, metadata: {name: e, namespace: a}, involvedObject: "
        "{kind: Pod, namespace: b, name: p}}",
        "involvedObject.namespace: does not match");
    expect_fine("{apiVersion: v1, kind: Event, metadata: {name: e, namespace: default}, "
                "involvedObject: {kind: Node, name: n1}}");
    expect_problem("{apiVersion: v1, kind: Event, metadata: {name: e, namespace: a}, "
                   "involvedObject: {kind: Node, name: n1}}",
                   "involvedObject.namespace: does not match");
}

#define SERVICE(name_, spec_)                                                                      \
    "{apiVersion: v1, kind: Service, metadata: {name: " name_ "}, spec: " spec_ "}"

TEST(service_decodes_its_selector)
{
    SAMPLE s;
    sample_decode(&s, SERVICE("web",
                              "{selector: {app: web}, clusterIP: 10.0.0.10, ports: [{name: http, "
                              "port: 80, targetPort: http}, {name: m, port: 9090, targetPort: "
                              "9090}]}"));

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_STR(str_map_get(&service_of(s.object)->spec.selector, STR("app")), "web");
    EXPECT_STR(service_of(s.object)->spec.cluster_ip, "10.0.0.10");
}

TEST(service_needs_a_dns_name_and_ports)
{
    expect_problem(SERVICE("1web", "{ports: [{port: 80}]}"), "metadata.name: starts with a digit");
    expect_problem(SERVICE("web", "{selector: {app: web}}"), "spec.ports: is missing");
    expect_fine(SERVICE("web", "{clusterIP: None, selector: {app: web}}"));
    expect_fine(SERVICE("web", "{type: ExternalName, externalName: db.example.com}"));
    expect_problem(SERVICE("web", "{type: ExternalName}"), "spec.externalName: is missing");
    expect_problem(SERVICE("web", "{ports: [{port: 70000}]}"),
                   "spec.ports[0].port: expected 1 to 65535");
    expect_problem(SERVICE("web", "{ports: [{port: 80, protocol: HTTP}]}"),
                   "spec.ports[0].protocol: expected one of");
}
