/* tests/crdcheck/export/samples.h - objects of our own kinds that keep or break one rule each.
 *
 * Our tests check them offline (src/api/crd_samples_test.c); tests/crdcheck asks the code of a real
 * API server the same. A sample is a merge patch of its kind's base object. It is right if `problem`
 * is NULL; otherwise `problem` is how a problem's text starts, path first. */
#pragma once

#include "api/ec2nodeclass.h"
#include "api/kwoknodeclass.h"
#include "api/nodeclaim.h"
#include "api/nodeoverlay.h"
#include "api/nodepool.h"
#include "codec/yaml.h"

#include <stdio.h>

enum judge {
    API,     /* the API server refuses it too */
    OFFLINE, /* only we do: the API server takes it, and its owner learns later */
    WARNING, /* allowed, but probably not meant */
};

struct sample {
    const char *patch;
    const char *problem;
    enum judge judge;
    const char *old; /* a patch too: the sample is an update of that object. NULL: a creation */
};

struct sample_set {
    const struct kind *kind;
    const char *base;
    const struct sample *samples;
    uint32_t count;
};

#define S63 "abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz01234567890"
#define TEN(x) x x x x x x x x x x
#define SPEC(x) "{spec: {" x "}}"
#define ANNOTATION(x) "{metadata: {annotations: {" x "}}}"

/* --- NodePool --- */

#define TEMPLATE(x) SPEC("template: {spec: {" x "}}")
#define LABELS(x) SPEC("template: {metadata: {labels: {" x "}}}")
#define REQUIREMENT(x) TEMPLATE("requirements: [{" x "}]")
#define REQUIREMENTS(x) TEMPLATE("requirements: [" x "]")
#define BUDGET(x) SPEC("disruption: {budgets: [{" x "}]}")
#define AT_TEMPLATE "spec.template.spec."
#define AT_REQUIREMENT "spec.template.spec.requirements[0]"
#define AT_BUDGET "spec.disruption.budgets[0]"
#define AT_LABELS "spec.template.metadata.labels"

static const char nodepool_base[] =
    "apiVersion: karpenter.sh/v1\n"
    "kind: NodePool\n"
    "metadata: {name: default}\n"
    "spec:\n"
    "  template:\n"
    "    spec:\n"
    "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"
    "      requirements: []\n";

static const struct sample nodepool_samples[] = {
    /* the shape */
    { "{}" },
    { "{spec: null}", "spec: required" },
    { SPEC("template: null"), "spec.template: required" },
    { SPEC("template: {spec: null}"), "spec.template.spec: required" },
    { SPEC("template: []"), "spec.template: expected an object" },

    /* labels and annotations */
    { LABELS("team: a, example.com/tier: web-1, empty: ''") },
    { LABELS("team: '" S63 "'") },
    { LABELS("team: '" S63 "x'"), AT_LABELS "[\"team\"]: has 64 characters" },
    { LABELS("team: -a"), AT_LABELS "[\"team\"]: \"-a\" is not" },
    { LABELS("team: 1"), AT_LABELS "[\"team\"]: expected a string" },
    { LABELS("karpenter.sh/capacity-type: spot") },
    { LABELS("karpenter.sh/other: a"), AT_LABELS ": labels of the domain karpenter.sh" },
    { LABELS("sub.karpenter.sh/other: a"), AT_LABELS ": labels of the domain karpenter.sh" },
    { LABELS("karpenter.shop/other: a") },
    { LABELS("karpenter.sh/nodepool: a"), AT_LABELS ": label karpenter.sh/nodepool" },
    { LABELS("kubernetes.io/hostname: a"), AT_LABELS ": label kubernetes.io/hostname" },
    { LABELS("a/b/c: x"), AT_LABELS "[\"a/b/c\"]: the key", OFFLINE },
    { LABELS("karpenter.k8s.aws/instance-family: m5") },
    { LABELS("karpenter.k8s.aws/mine: a"), AT_LABELS "[\"karpenter.k8s.aws/mine\"]: labels of the",
      OFFLINE },
    { SPEC("template: {metadata: {annotations: {a: b}}}") },
    { SPEC("template: {metadata: {annotations: {a: 1}}}"),
      "spec.template.metadata.annotations[\"a\"]: expected a string" },
    { SPEC("template: {metadata: {name: a}}"), "spec.template.metadata.name: unknown field",
      OFFLINE },

    /* taints */
    { TEMPLATE("taints: [{key: dedicated, value: gpu, effect: NoSchedule}, "
               "{key: dedicated, value: gpu, effect: NoExecute}], "
               "startupTaints: [{key: example.com/agent, effect: PreferNoSchedule}]") },
    { TEMPLATE("taints: [{effect: NoSchedule}]"), AT_TEMPLATE "taints[0].key: required" },
    { TEMPLATE("taints: [{key: a}]"), AT_TEMPLATE "taints[0].effect: required" },
    { TEMPLATE("taints: [{key: '', effect: NoSchedule}]"), AT_TEMPLATE "taints[0].key: has 0" },
    { TEMPLATE("taints: [{key: a b, effect: NoSchedule}]"), AT_TEMPLATE "taints[0].key: \"a b\"" },
    { TEMPLATE("taints: [{key: a, value: b c, effect: NoSchedule}]"),
      AT_TEMPLATE "taints[0].value: \"b c\"" },
    { TEMPLATE("taints: [{key: a, effect: Never}]"), AT_TEMPLATE "taints[0].effect: expected one" },
    { TEMPLATE("startupTaints: [{key: a, effect: Never}]"),
      AT_TEMPLATE "startupTaints[0].effect: expected one" },
    { TEMPLATE("taints: [{key: a, effect: NoSchedule, timeAdded: '2026-01-02T15:04:05Z'}]") },
    { TEMPLATE("taints: [{key: a, effect: NoSchedule, timeAdded: yesterday}]"),
      AT_TEMPLATE "taints[0].timeAdded: " },
    { TEMPLATE("taints: [{key: " S63 "x, effect: NoSchedule}]"), AT_TEMPLATE "taints[0].key: \"abc",
      OFFLINE },
    { TEMPLATE("taints: [{key: a, value: b, effect: NoSchedule}, "
               "{key: a, value: c, effect: NoSchedule}]"),
      AT_TEMPLATE "taints[1]: duplicate: taints[0]", OFFLINE },
    { TEMPLATE("taints: [{key: a, effect: NoSchedule}], "
               "startupTaints: [{key: a, effect: NoSchedule}]"),
      AT_TEMPLATE "startupTaints[0]: duplicate: taints[0]", OFFLINE },

    /* requirements, one by one */
    { TEMPLATE("requirements: null"), AT_TEMPLATE "requirements: required" },
    { REQUIREMENT("key: a, operator: In, values: [b]") },
    { REQUIREMENT("operator: Exists"), AT_REQUIREMENT ".key: required" },
    { REQUIREMENT("key: a"), AT_REQUIREMENT ".operator: required" },
    { REQUIREMENT("key: a, operator: Is"), AT_REQUIREMENT ".operator: expected one of" },
    { REQUIREMENT("key: a b, operator: Exists"), AT_REQUIREMENT ".key: \"a b\"" },
    { REQUIREMENT("key: '" TEN(TEN("abc")) "ab.example.com.x"
                                           "/a', operator: Exists"),
      AT_REQUIREMENT ".key: has 318 characters" },
    { REQUIREMENT("key: karpenter.sh/capacity-type, operator: In, values: [spot]") },
    { REQUIREMENT("key: karpenter.sh/other, operator: Exists"),
      AT_REQUIREMENT ".key: labels of the domain karpenter.sh" },
    { REQUIREMENT("key: notkarpenter.sh/other, operator: Exists"),
      AT_REQUIREMENT ".key: labels of the domain karpenter.sh" },
    { REQUIREMENT("key: karpenter.sh, operator: Exists"),
      AT_REQUIREMENT ".key: labels of the domain karpenter.sh" },
    { REQUIREMENT("key: karpenter.sh/nodepool, operator: Exists"),
      AT_REQUIREMENT ".key: label karpenter.sh/nodepool is restricted" },
    { REQUIREMENT("key: kubernetes.io/hostname, operator: Exists"),
      AT_REQUIREMENT ".key: label kubernetes.io/hostname is restricted" },
    { REQUIREMENT("key: a, operator: In"), AT_REQUIREMENT ": operator In needs" },
    { REQUIREMENT("key: a, operator: In, values: []"), AT_REQUIREMENT ": operator In needs" },
    { REQUIREMENT("key: a, operator: NotIn") },
    { REQUIREMENT("key: a, operator: Exists") },
    { REQUIREMENT("key: a, operator: DoesNotExist") },
    { REQUIREMENT("key: a, operator: Gt, values: ['3']") },
    { REQUIREMENT("key: a, operator: Lte, values: ['0']") },
    { REQUIREMENT("key: a, operator: Gt, values: ['-1']"), AT_REQUIREMENT ": operators Gt, Lt" },
    { REQUIREMENT("key: a, operator: Lt, values: ['1.5']"), AT_REQUIREMENT ": operators Gt, Lt" },
    { REQUIREMENT("key: a, operator: Gte, values: [x]"), AT_REQUIREMENT ": operators Gt, Lt" },
    { REQUIREMENT("key: a, operator: Lte, values: ['1', '2']"),
      AT_REQUIREMENT ": operators Gt, Lt" },
    { REQUIREMENT("key: a, operator: Lte"), AT_REQUIREMENT ": operators Gt, Lt" },
    { REQUIREMENT("key: a, operator: Gt, values: ['99999999999999999999']"),
      AT_REQUIREMENT ": operators Gt, Lt" },
    { REQUIREMENT("key: a, operator: In, values: [b, c], minValues: 2") },
    { REQUIREMENT("key: a, operator: In, values: [b], minValues: 2"),
      AT_REQUIREMENT ": operator In with minValues" },
    { REQUIREMENT("key: a, operator: Exists, minValues: 50") },
    { REQUIREMENT("key: a, operator: Exists, minValues: 51"),
      AT_REQUIREMENT ".minValues: expected 1 to 50" },
    { REQUIREMENT("key: a, operator: Exists, minValues: 0"),
      AT_REQUIREMENT ".minValues: expected 1 to 50" },
    { REQUIREMENT("key: a, operator: In, values: [b c]"), AT_REQUIREMENT ".values[0]: \"b c\"",
      OFFLINE },
    { REQUIREMENT("key: a, operator: In, values: [1]"),
      AT_REQUIREMENT ".values[0]: expected a string" },
    { REQUIREMENT("key: " S63 "x, operator: Exists"), AT_REQUIREMENT ".key: \"abc", OFFLINE },
    { REQUIREMENT("key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ['3']") },
    { REQUIREMENT("key: karpenter.k8s.aws/mine, operator: Exists"),
      AT_REQUIREMENT ".key: labels of the domain karpenter.k8s.aws", OFFLINE },
    { REQUIREMENT("key: karpenter.sh/capacity-type, operator: In, values: [cheap]"),
      AT_REQUIREMENT ".values: has none of on-demand", OFFLINE },
    { REQUIREMENT("key: karpenter.sh/capacity-type, operator: In, values: [spot, cheap]"),
      AT_REQUIREMENT ".values[1]: \"cheap\" is not a capacity type", WARNING },
    { REQUIREMENT("key: karpenter.sh/capacity-type, operator: In, values: [spot, cheap], "
                  "minValues: 2"),
      AT_REQUIREMENT ".values: has 1 of on-demand", OFFLINE },
    { REQUIREMENTS(TEN(TEN("{key: a, operator: Exists}, "))) },
    { REQUIREMENTS(TEN(TEN("{key: a, operator: Exists}, ")) "{key: a, operator: Exists}"),
      AT_TEMPLATE "requirements: has 101 items" },

    /* requirements that exclude each other */
    { REQUIREMENTS("{key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}, "
                   "{key: kubernetes.io/arch, operator: NotIn, values: [arm64]}") },
    { REQUIREMENTS("{key: kubernetes.io/arch, operator: In, values: [amd64]}, "
                   "{key: kubernetes.io/arch, operator: In, values: [arm64]}"),
      AT_TEMPLATE "requirements[1]: contradicts", OFFLINE },
    { REQUIREMENTS("{key: kubernetes.io/arch, operator: In, values: [amd64]}, "
                   "{key: beta.kubernetes.io/arch, operator: NotIn, values: [amd64]}"),
      AT_TEMPLATE "requirements[1]: contradicts", OFFLINE },
    { REQUIREMENTS("{key: karpenter.k8s.aws/instance-cpu, operator: Gt, values: ['7']}, "
                   "{key: karpenter.k8s.aws/instance-cpu, operator: Lt, values: ['8']}"),
      AT_TEMPLATE "requirements[1]: contradicts", OFFLINE },
    { REQUIREMENTS("{key: a, operator: In, values: [b]}, {key: a, operator: DoesNotExist}"),
      AT_TEMPLATE "requirements[1]: contradicts", OFFLINE },
    { REQUIREMENTS("{key: a, operator: NotIn, values: [b]}, {key: a, operator: DoesNotExist}") },
    { REQUIREMENT("key: kubernetes.io/os, operator: DoesNotExist"),
      AT_REQUIREMENT ": every node has the label kubernetes.io/os", OFFLINE },
    { SPEC("template: {metadata: {labels: {team: a}}, spec: {requirements: "
           "[{key: team, operator: In, values: [b]}]}}"),
      AT_REQUIREMENT ": contradicts", OFFLINE },
    { REQUIREMENTS("{key: a, operator: In, values: [b, c, d], minValues: 3}, "
                   "{key: a, operator: NotIn, values: [b]}"),
      AT_TEMPLATE "requirements[1]: leaves 2 values of a", OFFLINE },

    /* nodeClassRef */
    { TEMPLATE("nodeClassRef: null"), AT_TEMPLATE "nodeClassRef: required" },
    { TEMPLATE("nodeClassRef: {group: null}"), AT_TEMPLATE "nodeClassRef.group: required" },
    { TEMPLATE("nodeClassRef: {group: ''}"), AT_TEMPLATE "nodeClassRef.group: has 0 characters" },
    { TEMPLATE("nodeClassRef: {group: a/v1}"),
      AT_TEMPLATE "nodeClassRef.group: \"a/v1\" does not match" },
    { TEMPLATE("nodeClassRef: {kind: ''}"), AT_TEMPLATE "nodeClassRef.kind: has 0 characters" },
    { TEMPLATE("nodeClassRef: {name: ''}"), AT_TEMPLATE "nodeClassRef.name: has 0 characters" },
    { TEMPLATE("nodeClassRef: {name: other}"), .old = "{}" },
    { TEMPLATE("nodeClassRef: {group: other}"), AT_TEMPLATE "nodeClassRef: group cannot be changed",
      .old = "{}" },
    { TEMPLATE("nodeClassRef: {kind: Other}"), AT_TEMPLATE "nodeClassRef: kind cannot be changed",
      .old = "{}" },

    /* durations */
    { TEMPLATE("terminationGracePeriod: 24h30m") },
    { TEMPLATE("terminationGracePeriod: Never"), AT_TEMPLATE "terminationGracePeriod: " },
    { TEMPLATE("terminationGracePeriod: 1.5h"), AT_TEMPLATE "terminationGracePeriod: " },
    { TEMPLATE("terminationGracePeriod: 30"),
      AT_TEMPLATE "terminationGracePeriod: expected a dur" },
    { TEMPLATE("expireAfter: Never") },
    { TEMPLATE("expireAfter: 720h") },
    { TEMPLATE("expireAfter: never"), AT_TEMPLATE "expireAfter: " },
    { TEMPLATE("expireAfter: 300ms"), AT_TEMPLATE "expireAfter: " },
    { TEMPLATE("expireAfter: 9999999h"), AT_TEMPLATE "expireAfter: \"9999999h\" is not", OFFLINE },

    /* disruption */
    { SPEC("disruption: {}") },
    { SPEC("disruption: {consolidateAfter: Never, consolidationPolicy: Balanced}") },
    { SPEC("disruption: {consolidateAfter: 1d}"), "spec.disruption.consolidateAfter: " },
    { SPEC("disruption: {consolidationPolicy: WhenEmpty}") },
    { SPEC("disruption: {consolidationPolicy: WhenUnderutilized}"),
      "spec.disruption.consolidationPolicy: expected one of" },
    { BUDGET("nodes: '5'") },
    { BUDGET("nodes: 100%") },
    { BUDGET("nodes: 101%"), AT_BUDGET ".nodes: \"101%\" is not" },
    { BUDGET("nodes: '-1'"), AT_BUDGET ".nodes: \"-1\" is not" },
    { BUDGET("nodes: 5"), AT_BUDGET ".nodes: expected a string" },
    { BUDGET("") },
    { BUDGET("nodes: '1', reasons: [Empty, Drifted, Underutilized]") },
    { BUDGET("nodes: '1', reasons: [Bored]"), AT_BUDGET ".reasons[0]: expected one of" },
    { BUDGET("nodes: '1', reasons: [Empty, Empty]"), AT_BUDGET ".reasons[1]: duplicate" },
    { BUDGET("nodes: '1', schedule: '@hourly', duration: 1h") },
    { BUDGET("nodes: '1', schedule: '@daily', duration: 24h0m0s") },
    { BUDGET("nodes: '1', schedule: '0 0 * * *'"), AT_BUDGET ": schedule and duration go" },
    { BUDGET("nodes: '1', duration: 1h"), AT_BUDGET ": schedule and duration go" },
    { BUDGET("nodes: '1', schedule: '@fortnightly', duration: 1h"), AT_BUDGET ".schedule: " },
    { BUDGET("nodes: '1', schedule: '0 0 * *', duration: 1h"), AT_BUDGET ".schedule: " },
    { BUDGET("nodes: '1', schedule: '61 0 * * *', duration: 24h"),
      AT_BUDGET ".schedule: ", OFFLINE },
    { BUDGET("nodes: '1', schedule: 'TZ=UTC 0 0 * * *', duration: 24h"),
      AT_BUDGET ".schedule: ", OFFLINE },
    { BUDGET("nodes: '1', schedule: '@daily', duration: 30s"), AT_BUDGET ".duration: " },
    { BUDGET("nodes: '1', schedule: '@daily', duration: 1h30"), AT_BUDGET ".duration: " },
    { SPEC("disruption: {budgets: [" TEN("{nodes: '1'}, {nodes: '1'}, {nodes: '1'}, {nodes: '1'}, "
                                         "{nodes: '1'}, ") "]}") },
    { SPEC("disruption: {budgets: [" TEN("{nodes: '1'}, {nodes: '1'}, {nodes: '1'}, {nodes: '1'}, "
                                         "{nodes: '1'}, ") "{nodes: '1'}]}"),
      "spec.disruption.budgets: has 51 items" },

    /* budgets that leave gaps */
    { SPEC("disruption: {budgets: [{nodes: '0', schedule: '0 9 * * 1-5', duration: 8h}, "
           "{nodes: 10%}]}") },
    { BUDGET("nodes: '0', schedule: '0 9 * * 1-5', duration: 8h"),
      "spec.disruption.budgets: outside the schedule \"0 9 * * 1-5\" for 8h nothing limits "
      "disruption (Underutilized, Empty, Drifted), for example from Mon 1 January 00:00 to Mon 1 "
      "January 09:00 UTC",
      WARNING },
    { SPEC("disruption: {budgets: [{nodes: '1', schedule: '0 0 * * *', duration: 12h}, "
           "{nodes: '5', schedule: '0 12 * * *', duration: 12h}]}") },
    { SPEC("disruption: {budgets: [{nodes: '1', schedule: '0 0 * * *', duration: 12h}, "
           "{nodes: '5', schedule: '0 13 * * *', duration: 11h}]}"),
      "spec.disruption.budgets: outside the schedule \"0 0 * * *\" for 12h, \"0 13 * * *\" for 11h "
      "nothing limits disruption (Underutilized, Empty, Drifted), for example from Mon 1 January "
      "12:00 to Mon 1 January 13:00 UTC",
      WARNING },
    { BUDGET("nodes: '1', schedule: '0 0 1-28 * *', duration: 24h"),
      "spec.disruption.budgets: outside the schedule \"0 0 1-28 * *\" for 1d nothing limits "
      "disruption (Underutilized, Empty, Drifted), for example from Mon 29 January 00:00",
      WARNING },
    { BUDGET("nodes: '1', schedule: '* * * * *', duration: 1m") },
    { BUDGET("nodes: '1', reasons: [Drifted]"),
      "spec.disruption.budgets: no budget is about Underutilized, Empty: nothing limits", WARNING },
    { SPEC("disruption: {budgets: []}"),
      "spec.disruption.budgets: no budget is about Underutilized, Empty, Drifted", WARNING },
    { BUDGET("nodes: '1', schedule: '@daily', duration: 0m"), AT_BUDGET ".duration: is 0",
      WARNING },
    { BUDGET("nodes: '1', schedule: '0 0 30 2 *', duration: 1h"),
      AT_BUDGET ".schedule: \"0 0 30 2 *\" names a day that never comes", WARNING },

    /* limits, weight, replicas */
    { SPEC("limits: {cpu: 1000, memory: 1000Gi, nodes: '5', example.com/device: 1e3}") },
    { SPEC("limits: {cpu: much}"), "spec.limits[\"cpu\"]: " },
    { SPEC("limits: {cpu: true}"), "spec.limits[\"cpu\"]: expected a quantity" },
    { SPEC("limits: {cpu: '1.5'}") },
    { SPEC("limits: {cpu: 1.5}"), "spec.limits[\"cpu\"]: expected an integer or a string" },
    { SPEC("weight: 1") },
    { SPEC("weight: 100") },
    { SPEC("weight: 0"), "spec.weight: expected 1 to 100" },
    { SPEC("weight: 101"), "spec.weight: expected 1 to 100" },
    { SPEC("weight: '1'"), "spec.weight: expected an integer" },
    { SPEC("replicas: 0") },
    { SPEC("replicas: -1"), "spec.replicas: expected at least 0" },
    { SPEC("replicas: 3, limits: {nodes: 5}") },
    { SPEC("replicas: 3, limits: {}") },
    { SPEC("replicas: 3, limits: {cpu: 5}"), "spec: a pool with replicas can limit only nodes" },
    { SPEC("replicas: 3, limits: {nodes: 5, cpu: 5}"), "spec: a pool with replicas can limit" },
    { SPEC("replicas: 3, weight: 5"), "spec: a pool with replicas has no weight" },
    { SPEC("replicas: 3"), .old = SPEC("replicas: 5") },
    { SPEC("replicas: 3"), "spec: replicas can be neither added", .old = "{}" },
    { "{}", "spec: replicas can be neither added", .old = SPEC("replicas: 3") },

    /* status */
    { "{status: {nodes: 3, nodeClassObservedGeneration: 2, resources: {cpu: '8', nodes: 3}}}" },
    { "{status: {nodes: many}}", "status.nodes: expected an integer" },
    { "{status: {conditions: [{type: Ready, status: 'True', reason: Ready, message: '', "
      "lastTransitionTime: '2026-01-02T15:04:05Z', observedGeneration: 1}]}}" },
    { "{status: {conditions: [{type: Ready, status: 'True', reason: '', message: '', "
      "lastTransitionTime: '2026-01-02T15:04:05Z'}]}}",
      "status.conditions[0].reason: has 0 characters" },
    { "{status: {conditions: [{type: Ready, status: 'Yes', reason: Ready, message: '', "
      "lastTransitionTime: '2026-01-02T15:04:05Z'}]}}",
      "status.conditions[0].status: expected one of" },
    { "{status: {conditions: [{type: 'Not ready', status: 'True', reason: Ready, message: '', "
      "lastTransitionTime: '2026-01-02T15:04:05Z'}]}}",
      "status.conditions[0].type: \"Not ready\"" },
    { "{status: {conditions: [{type: Ready, status: 'True', reason: Ready, message: '', "
      "lastTransitionTime: '2026-01-02T15:04:05Z', observedGeneration: -1}]}}",
      "status.conditions[0].observedGeneration: expected at least 0" },
    { "{status: {conditions: [{type: Ready, status: 'True'}]}}",
      "status.conditions[0].lastTransitionTime: required" },
    { "{status: {conditions: [{type: A, status: 'True', reason: A, message: '', "
      "lastTransitionTime: '2026-01-02T15:04:05Z'}, {type: A, status: 'True', reason: A, "
      "message: '', lastTransitionTime: '2026-01-02T15:04:05Z'}]}}",
      "status.conditions[1]: duplicate" },

    /* karve's annotations */
    { ANNOTATION("karve.io/launch-timeout: 10m, karve.io/registration-timeout: 1h, "
                 "karve.io/initialization-timeout: 30m, "
                 "karve.io/registration-health-policy: window, other.io/launch-timeout: soon") },
    { ANNOTATION("karve.io/launch-timeout: soon"),
      "metadata.annotations[\"karve.io/launch-timeout\"]: \"soon\" is not a duration", OFFLINE },
    { ANNOTATION("karve.io/registration-timeout: 0s"),
      "metadata.annotations[\"karve.io/registration-timeout\"]: \"0s\" is not a duration",
      OFFLINE },
    { ANNOTATION("karve.io/initialization-timeout: -5m"),
      "metadata.annotations[\"karve.io/initialization-timeout\"]: \"-5m\" is not", OFFLINE },
    { ANNOTATION("karve.io/registration-health-policy: always"),
      "metadata.annotations[\"karve.io/registration-health-policy\"]: expected one of", OFFLINE },
    { ANNOTATION("karve.io/lunch-timeout: 5m"),
      "metadata.annotations[\"karve.io/lunch-timeout\"]: unknown annotation, did you mean "
      "\"karve.io/launch-timeout\"?",
      WARNING },
    { ANNOTATION("karve.io/colour: red"),
      "metadata.annotations[\"karve.io/colour\"]: unknown annotation, nothing", WARNING },
};

/* --- NodeClaim --- */

static const char nodeclaim_base[] =
    "apiVersion: karpenter.sh/v1\n"
    "kind: NodeClaim\n"
    "metadata: {name: default-x7k2p}\n"
    "spec:\n"
    "  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"
    "  requirements: []\n";

static const struct sample nodeclaim_samples[] = {
    { "{}" },
    { "{spec: null}", "spec: required" },
    { SPEC("requirements: null"), "spec.requirements: required" },
    { SPEC("nodeClassRef: null"), "spec.nodeClassRef: required" },
    { SPEC("nodeClassRef: {name: ''}"), "spec.nodeClassRef.name: has 0 characters" },
    { SPEC("requirements: [{key: karpenter.sh/nodepool, operator: In, values: [default]}]") },
    { SPEC("requirements: [{key: karpenter.sh/other, operator: Exists}]"),
      "spec.requirements[0].key: labels of the domain karpenter.sh" },
    { SPEC("requirements: [{key: kubernetes.io/hostname, operator: Exists}]"),
      "spec.requirements[0].key: label kubernetes.io/hostname" },
    { SPEC("requirements: [{key: a, operator: In, values: [b, c], minValues: 2}]") },
    { SPEC("requirements: [{key: a, operator: In, values: [b], minValues: 2}]"),
      "spec.requirements[0]: operator In with minValues" },
    { SPEC("requirements: [{key: a, operator: Gte, values: [x]}]"),
      "spec.requirements[0]: operators Gt, Lt" },
    { SPEC("requirements: [{key: a, operator: In}]"), "spec.requirements[0]: operator In needs" },
    { SPEC("requirements: [{key: a, operator: In, values: [b]}, "
           "{key: a, operator: In, values: [c]}]"),
      "spec.requirements[1]: contradicts", OFFLINE },
    { SPEC("resources: {requests: {cpu: 3650m, memory: 11Gi, pods: 14}}") },
    { SPEC("resources: {requests: {cpu: lots}}"), "spec.resources.requests[\"cpu\"]: " },
    { SPEC("resources: {limits: {cpu: 1}}"), "spec.resources.limits: unknown field", OFFLINE },
    { SPEC(
        "taints: [{key: a, effect: NoSchedule}], startupTaints: [{key: b, effect: NoExecute}]") },
    { SPEC("taints: [{key: a, effect: Sometimes}]"), "spec.taints[0].effect: expected one of" },
    { SPEC("startupTaints: [{key: a, effect: NoSchedule}, {key: a, effect: NoSchedule}]"),
      "spec.startupTaints[1]: duplicate: startupTaints[0]", OFFLINE },
    { SPEC("terminationGracePeriod: 1h, expireAfter: Never") },
    { SPEC("terminationGracePeriod: never"), "spec.terminationGracePeriod: " },
    { SPEC("expireAfter: soon"), "spec.expireAfter: " },
    { "{metadata: {labels: {a: b}}}", .old = "{}" },
    { SPEC("expireAfter: 720h"), .old = "{}" },
    { SPEC("expireAfter: 24h"), "spec: spec cannot be changed", .old = "{}" },
    { SPEC("requirements: [{key: a, operator: Exists}]"), "spec: spec cannot be changed",
      .old = "{}" },
    { SPEC("nodeClassRef: {kind: Other}"), "spec.nodeClassRef: kind cannot be changed",
      .old = "{}" },
    { SPEC("nodeClassRef: {group: other}"), "spec.nodeClassRef: group cannot be changed",
      .old = "{}" },
    { "{status: {nodeName: a, providerID: 'kwok://a', imageID: ami-1, capacity: {cpu: 4}, "
      "allocatable: {cpu: 3900m}, lastPodEventTime: '2026-01-02T15:04:05Z'}}",
      .old = "{}" },
    { "{status: {lastPodEventTime: now}}", "status.lastPodEventTime: " },
    { "{status: {capacity: {cpu: x}}}", "status.capacity[\"cpu\"]: " },
    { "{status: {conditions: [{type: Launched, status: Unknown, reason: '', message: '', "
      "lastTransitionTime: '2026-01-02T15:04:05Z'}]}}" },
    { "{status: {conditions: [{type: Launched, status: Unknown, reason: 'no room', message: '', "
      "lastTransitionTime: '2026-01-02T15:04:05Z'}]}}",
      "status.conditions[0].reason: \"no room\"" },
};

/* --- NodeOverlay --- */

static const char nodeoverlay_base[] = "apiVersion: karpenter.sh/v1alpha1\n"
                                       "kind: NodeOverlay\n"
                                       "metadata: {name: discount}\n"
                                       "spec: {requirements: [], priceAdjustment: -10%}\n";

#define PRICE(x) SPEC("price: '" x "', priceAdjustment: null")
#define ADJUST(x) SPEC("priceAdjustment: '" x "'")

static const struct sample nodeoverlay_samples[] = {
    { "{}" },
    { "{spec: null}", "spec: required" },
    { SPEC("requirements: null"), "spec.requirements: required" },
    { SPEC("requirements: [{key: karpenter.sh/nodepool, operator: In, values: [a]}]") },
    { SPEC("requirements: [{key: karpenter.sh/other, operator: Exists}]"),
      "spec.requirements[0].key: labels of the domain karpenter.sh" },
    { SPEC("requirements: [{key: kubernetes.io/hostname, operator: Exists}]"),
      "spec.requirements[0].key: label kubernetes.io/hostname" },
    { SPEC("requirements: [{key: a, operator: In}]"),
      "spec.requirements[0]: operators In and NotIn" },
    { SPEC("requirements: [{key: a, operator: NotIn}]"),
      "spec.requirements[0]: operators In and NotIn" },
    { SPEC("requirements: [{key: a, operator: NotIn, values: [b]}]") },
    { SPEC("requirements: [{key: a, operator: Lt, values: ['5']}]") },
    { SPEC("requirements: [{key: a, operator: Lt, values: []}]"),
      "spec.requirements[0]: operators Gt, Lt" },
    { SPEC("requirements: [{key: a, operator: Exists, minValues: 2}]"),
      "spec.requirements[0].minValues: unknown field", OFFLINE },
    { SPEC("requirements: [{key: a, operator: In, values: [b c]}]"),
      "spec.requirements[0].values[0]: \"b c\"", OFFLINE },
    { SPEC(
          "requirements: [" TEN(TEN("{key: a, operator: Exists}, ")) "{key: a, operator: Exists}]"),
      "spec.requirements: has 101 items" },
    { PRICE("0.25") },
    { PRICE("12") },
    { PRICE("-1"), "spec.price: \"-1\"" },
    { PRICE(".5"), "spec.price: \".5\"" },
    { PRICE("1e3"), "spec.price: \"1e3\"" },
    { SPEC("price: 0.25, priceAdjustment: null"), "spec.price: expected a string" },
    { SPEC("price: '1'"), "spec: price and priceAdjustment exclude each other" },
    { ADJUST("+0.05") },
    { ADJUST("-0.05") },
    { ADJUST("+150%") },
    { ADJUST("-99.5%") },
    { ADJUST("-100%") },
    { ADJUST("-101%"), "spec.priceAdjustment: \"-101%\"" },
    { ADJUST("10%"), "spec.priceAdjustment: \"10%\"" },
    { ADJUST("+"), "spec.priceAdjustment: \"+\"" },
    { SPEC("capacity: {example.com/device: 4, hugepages-2Mi: 1Gi}") },
    { SPEC("capacity: {cpu: 4}"), "spec.capacity: cpu, memory" },
    { SPEC("capacity: {memory: 4}"), "spec.capacity: cpu, memory" },
    { SPEC("capacity: {ephemeral-storage: 4}"), "spec.capacity: cpu, memory" },
    { SPEC("capacity: {pods: 4}"), "spec.capacity: cpu, memory" },
    { SPEC("capacity: {example.com/device: few}"), "spec.capacity[\"example.com/device\"]: " },
    { SPEC("weight: 1") },
    { SPEC("weight: 10000") },
    { SPEC("weight: 0"), "spec.weight: expected 1 to 10000" },
    { SPEC("weight: 10001"), "spec.weight: expected 1 to 10000" },
    { SPEC("priceAdjustment: null"), "spec: changes nothing", WARNING },
    { "{status: {conditions: [{type: Ready, status: 'False', reason: Conflict, message: '', "
      "lastTransitionTime: '2026-01-02T15:04:05Z'}]}}" },
};

/* --- KWOKNodeClass --- */

static const char kwoknodeclass_base[] = "apiVersion: karpenter.kwok.sh/v1alpha1\n"
                                         "kind: KWOKNodeClass\n"
                                         "metadata: {name: default}\n";

static const struct sample kwoknodeclass_samples[] = {
    { "{}" },
    { SPEC("") },
    { SPEC("nodeRegistrationDelay: 1m30s") },
    { SPEC("nodeRegistrationDelay: Never"), "spec.nodeRegistrationDelay: " },
    { SPEC("nodeRegistrationDelay: 5"), "spec.nodeRegistrationDelay: expected a duration" },
    { "{status: {conditions: []}}" },
    { "{status: {conditions: {}}}", "status.conditions: expected a list" },
};

/* --- EC2NodeClass --- */

static const char ec2nodeclass_base[] =
    "apiVersion: karpenter.k8s.aws/v1\n"
    "kind: EC2NodeClass\n"
    "metadata: {name: default}\n"
    "spec:\n"
    "  role: NodeRole\n"
    "  amiSelectorTerms: [{alias: al2023@latest}]\n"
    "  subnetSelectorTerms: [{tags: {karpenter.sh/discovery: orchard}}]\n"
    "  securityGroupSelectorTerms: [{name: orchard-nodes}]\n";

#define SUBNET(x) SPEC("subnetSelectorTerms: [" x "]")
#define GROUP(x) SPEC("securityGroupSelectorTerms: [" x "]")
#define RESERVATION(x) SPEC("capacityReservationSelectorTerms: [" x "]")
#define AMI(x) SPEC("amiFamily: Custom, userData: '', amiSelectorTerms: [" x "]")
#define ALIAS(x) SPEC("amiSelectorTerms: [{alias: '" x "'}]")
#define EBS(x) SPEC("blockDeviceMappings: [{deviceName: /dev/xvda, ebs: {" x "}}]")
#define NICS(x) SPEC("networkInterfaces: [" x "]")
#define NIC(card, device, type)                                                                    \
    "{networkCardIndex: " #card ", deviceIndex: " #device ", interfaceType: " type "}"
#define KUBELET(x) SPEC("kubelet: {" x "}")
#define KUBELET_OF(alias, x) SPEC("amiSelectorTerms: [{alias: '" alias "'}], kubelet: {" x "}")
#define TWENTY_TAGS                                                                                \
    "a: x, b: x, c: x, d: x, e: x, f: x, g: x, h: x, i: x, j: x, k: x, l: x, m: x, o: x, p: x, "   \
    "q: x, r: x, s: x, t: x, u: x"

static const struct sample ec2nodeclass_samples[] = {
    { "{}" },
    { "{spec: null}", "spec: required" },

    /* subnets */
    { SPEC("subnetSelectorTerms: null"), "spec.subnetSelectorTerms: required" },
    { SUBNET(""), "spec.subnetSelectorTerms: has 0 items" },
    { SUBNET("{id: subnet-0aa11}") },
    { SUBNET("{}"), "spec.subnetSelectorTerms[0]: expected tags or id" },
    { SUBNET("{id: subnet-0aa11, tags: {a: b}}"), "spec.subnetSelectorTerms[0]: id excludes tags" },
    { SUBNET("{id: subnet-0aa11}, {id: subnet-1, tags: {a: b}}"),
      "spec.subnetSelectorTerms[1]: id excludes tags" },
    { SUBNET("{id: sub-0aa11}"), "spec.subnetSelectorTerms[0].id: \"sub-0aa11\"" },
    { SUBNET("{tags: {a: '*'}}") },
    { SUBNET("{tags: {a: ''}}"), "spec.subnetSelectorTerms[0].tags: a tag's key and value" },
    { SUBNET("{tags: {'': a}}"), "spec.subnetSelectorTerms[0].tags: a tag's key and value" },
    { SUBNET("{tags: {" TWENTY_TAGS "}}") },
    { SUBNET("{tags: {" TWENTY_TAGS ", v: x}}"),
      "spec.subnetSelectorTerms[0].tags: has 21 members" },
    { SUBNET(TEN("{id: subnet-1}, {id: subnet-1}, {id: subnet-1}, ")) },
    { SUBNET(TEN("{id: subnet-1}, {id: subnet-1}, {id: subnet-1}, ") "{id: subnet-1}"),
      "spec.subnetSelectorTerms: has 31 items" },

    /* security groups */
    { SPEC("securityGroupSelectorTerms: null"), "spec.securityGroupSelectorTerms: required" },
    { GROUP(""), "spec.securityGroupSelectorTerms: has 0 items" },
    { GROUP("{id: sg-1}, {name: a}, {tags: {a: b}}") },
    { GROUP("{}"), "spec.securityGroupSelectorTerms[0]: expected tags, id or name" },
    { GROUP("{id: sg-1, name: a}"), "spec.securityGroupSelectorTerms[0]: id excludes" },
    { GROUP("{id: sg-1, tags: {a: b}}"), "spec.securityGroupSelectorTerms[0]: id excludes" },
    { GROUP("{name: a, tags: {a: b}}"), "spec.securityGroupSelectorTerms[0]: name excludes" },
    { GROUP("{id: group-1}"), "spec.securityGroupSelectorTerms[0].id: \"group-1\"" },

    /* capacity reservations */
    { RESERVATION("") },
    { RESERVATION("{id: cr-1}, {tags: {a: b}, ownerID: '123456789012'}, "
                  "{instanceMatchCriteria: open}") },
    { RESERVATION("{}"), "spec.capacityReservationSelectorTerms[0]: expected tags, id or" },
    { RESERVATION("{ownerID: '123456789012'}"),
      "spec.capacityReservationSelectorTerms[0]: expected tags, id or" },
    { RESERVATION("{id: cr-1, ownerID: '123456789012'}"),
      "spec.capacityReservationSelectorTerms[0]: id excludes" },
    { RESERVATION("{id: xcr-1}"), "spec.capacityReservationSelectorTerms[0].id: \"" },
    { RESERVATION("{tags: {a: b}, ownerID: '12345'}"),
      "spec.capacityReservationSelectorTerms[0].ownerID: \"12345\"" },
    { RESERVATION("{instanceMatchCriteria: closed}"),
      "spec.capacityReservationSelectorTerms[0].instanceMatchCriteria: expected one of" },

    /* AMIs */
    { SPEC("amiSelectorTerms: null"), "spec.amiSelectorTerms: required" },
    { SPEC("amiSelectorTerms: [], amiFamily: AL2"), "spec.amiSelectorTerms: has 0 items" },
    { AMI("{id: ami-1}, {name: a, owner: self}, {tags: {a: b}}, {ssmParameter: /a/b}") },
    { AMI("{}"), "spec.amiSelectorTerms[0]: expected tags, id, name, alias" },
    { AMI("{owner: self}"), "spec.amiSelectorTerms[0]: expected tags, id, name, alias" },
    { AMI("{id: ami-1, owner: self}"), "spec.amiSelectorTerms[0]: id excludes" },
    { AMI("{id: ami-1, name: a}"), "spec.amiSelectorTerms[0]: id excludes" },
    { AMI("{alias: al2@latest, tags: {a: b}}"), "spec.amiSelectorTerms[0]: alias excludes" },
    { AMI("{alias: al2@latest}, {id: ami-1}"), "spec.amiSelectorTerms: alias must be the only" },
    { AMI("{id: image-1}"), "spec.amiSelectorTerms[0].id: \"image-1\"" },
    { ALIAS("al2@latest") },
    { ALIAS("bottlerocket@v1.46.0") },
    { ALIAS("windows2022@latest") },
    { ALIAS("windows2022@v1"), "spec.amiSelectorTerms[0].alias: windows families have only" },
    { ALIAS("ubuntu@latest"), "spec.amiSelectorTerms[0].alias: the family must be one of" },
    { ALIAS("al2023"), "spec.amiSelectorTerms[0].alias: \"al2023\" is not" },
    { ALIAS("al2023@"), "spec.amiSelectorTerms[0].alias: \"al2023@\" is not" },
    { ALIAS("al2023@v01234567890123456789012"), "spec.amiSelectorTerms[0].alias: has 31" },
    { SPEC("amiFamily: AL2023") },
    { SPEC("amiFamily: Custom, userData: ''") },
    { SPEC("amiFamily: Custom"), "spec: userData is missing", WARNING },
    { SPEC("amiFamily: AL2"), "spec: amiFamily must be the family of the alias" },
    { SPEC("amiFamily: Gentoo"), "spec.amiFamily: expected one of" },
    { SPEC("amiFamily: Bottlerocket, amiSelectorTerms: [{id: ami-1}]") },
    { SPEC("amiSelectorTerms: [{id: ami-1}]"), "spec: amiFamily is needed when" },

    /* identity */
    { SPEC("role: null, instanceProfile: a") },
    { SPEC("instanceProfile: a"), "spec: expected exactly one of role and instanceProfile" },
    { SPEC("role: null"), "spec: expected exactly one of role and instanceProfile" },
    { SPEC("role: ''"), "spec.role: has 0 characters" },
    { SPEC("role: null, instanceProfile: ''"), "spec.instanceProfile: has 0 characters" },

    /* tags */
    { SPEC("tags: {team: a, empty: ''}") },
    { SPEC("tags: {'': a}"), "spec.tags: a tag's key cannot be empty" },
    { SPEC("tags: {'eks:eks-cluster-name': a}"), "spec.tags: the tags eks:eks-cluster-name" },
    { SPEC("tags: {kubernetes.io/cluster/a: owned}"), "spec.tags: the tags eks:eks-cluster-name" },
    { SPEC("tags: {karpenter.sh/nodepool: a}"), "spec.tags: the tags eks:eks-cluster-name" },
    { SPEC("tags: {karpenter.sh/nodeclaim: a}"), "spec.tags: the tags eks:eks-cluster-name" },
    { SPEC("tags: {karpenter.k8s.aws/ec2nodeclass: a}"), "spec.tags: the tags eks" },

    /* block devices */
    { EBS("volumeSize: 100Gi, volumeType: gp3, encrypted: true, iops: 3000, throughput: 125, "
          "kmsKeyID: a, deleteOnTermination: true") },
    { EBS("encrypted: true"),
      "spec.blockDeviceMappings[0].ebs: expected snapshotID or volumeSize" },
    { EBS("snapshotID: snap-1, volumeInitializationRate: 300") },
    { EBS("volumeSize: 1Gi, volumeInitializationRate: 300"),
      "spec.blockDeviceMappings[0].ebs: volumeInitializationRate needs" },
    { EBS("snapshotID: snap-1, volumeInitializationRate: 99"),
      "spec.blockDeviceMappings[0].ebs.volumeInitializationRate: expected 100 to 300" },
    { EBS("volumeSize: 59000Gi") },
    { EBS("volumeSize: 59001Gi"), "spec.blockDeviceMappings[0].ebs.volumeSize: \"" },
    { EBS("volumeSize: 64000G") },
    { EBS("volumeSize: 64001G"), "spec.blockDeviceMappings[0].ebs.volumeSize: \"" },
    { EBS("volumeSize: 58Ti") },
    { EBS("volumeSize: 59Ti"), "spec.blockDeviceMappings[0].ebs.volumeSize: \"" },
    { EBS("volumeSize: 64T") },
    { EBS("volumeSize: 65T"), "spec.blockDeviceMappings[0].ebs.volumeSize: \"" },
    { EBS("volumeSize: 0Gi"), "spec.blockDeviceMappings[0].ebs.volumeSize: \"" },
    { EBS("volumeSize: 100Mi"), "spec.blockDeviceMappings[0].ebs.volumeSize: \"" },
    { EBS("volumeSize: 100"), "spec.blockDeviceMappings[0].ebs.volumeSize: expected a string" },
    { EBS("volumeSize: 1Gi, volumeType: gp4"),
      "spec.blockDeviceMappings[0].ebs.volumeType: expected one of" },
    { SPEC("blockDeviceMappings: [{deviceName: a, rootVolume: true}, {deviceName: b, rootVolume: "
           "false}, {deviceName: c}]") },
    { SPEC("blockDeviceMappings: [{deviceName: a, rootVolume: true}, {deviceName: b, rootVolume: "
           "true}]"),
      "spec.blockDeviceMappings: at most one device can be the rootVolume" },
    { SPEC("blockDeviceMappings: [" TEN("{}, {}, {}, {}, {}, ") "{}]"),
      "spec.blockDeviceMappings: has 51 items" },
    { SPEC("instanceStorePolicy: RAID0") },
    { SPEC("instanceStorePolicy: RAID5"), "spec.instanceStorePolicy: expected \"RAID0\"" },

    /* the network */
    { NICS(NIC(0, 0, "interface") ", " NIC(0, 1, "efa-only") ", " NIC(1, 0, "efa-only")) },
    { NICS(""), "spec.networkInterfaces: expected an interface at" },
    { NICS(NIC(1, 0, "interface")), "spec.networkInterfaces: expected an interface at" },
    { NICS(NIC(0, 0, "efa-only")), "spec.networkInterfaces: expected an interface at" },
    { NICS(NIC(0, 0, "interface") ", " NIC(1, 1, "interface") ", " NIC(1, 1, "efa-only")),
      "spec.networkInterfaces: two interfaces have the same" },
    { NICS(NIC(0, 0, "interface") ", " NIC(0, 1, "efa-only") ", " NIC(0, 2, "efa-only")),
      "spec.networkInterfaces: at most one efa-only interface" },
    { NICS(NIC(0, 0, "interface") ", " NIC(0, -1, "interface")),
      "spec.networkInterfaces[1].deviceIndex: expected 0 to" },
    { NICS(NIC(0, 0, "efa")), "spec.networkInterfaces[0].interfaceType: expected one of" },
    { NICS("{networkCardIndex: 0, interfaceType: interface}"),
      "spec.networkInterfaces[0].deviceIndex: required" },
    { SPEC("associatePublicIPAddress: false, ipPrefixCount: 0, detailedMonitoring: true") },
    { SPEC("ipPrefixCount: -1"), "spec.ipPrefixCount: expected 0 to" },
    { SPEC("associatePublicIPAddress: 'no'"), "spec.associatePublicIPAddress: expected true or" },
    { SPEC("connectionTracking: {tcpEstablishedTimeout: 432000, udpStreamTimeout: 60, udpTimeout: "
           "30}") },
    { SPEC("connectionTracking: {}"), "spec.connectionTracking: expected at least one timeout" },
    { SPEC("connectionTracking: {tcpEstablishedTimeout: 432001}"),
      "spec.connectionTracking.tcpEstablishedTimeout: expected 60 to 432000" },
    { SPEC("connectionTracking: {udpStreamTimeout: 181}"),
      "spec.connectionTracking.udpStreamTimeout: expected 60 to 180" },
    { SPEC("connectionTracking: {udpTimeout: 29}"),
      "spec.connectionTracking.udpTimeout: expected 30 to 60" },
    { SPEC("placementGroupSelector: {id: pg-1}") },
    { SPEC("placementGroupSelector: {name: a}") },
    { SPEC("placementGroupSelector: {}"), "spec.placementGroupSelector: expected exactly one" },
    { SPEC("placementGroupSelector: {id: pg-1, name: a}"),
      "spec.placementGroupSelector: expected exactly one" },
    { SPEC("placementGroupSelector: {id: group-1}"), "spec.placementGroupSelector.id: \"" },
    { SPEC("placementGroupSelector: {name: ''}"), "spec.placementGroupSelector.name: has 0" },

    /* the rest of the instance */
    { SPEC("metadataOptions: {httpTokens: optional, httpPutResponseHopLimit: 64, httpEndpoint: "
           "disabled, httpProtocolIPv6: enabled}") },
    { SPEC("metadataOptions: {}") },
    { SPEC("metadataOptions: {httpPutResponseHopLimit: 65}"),
      "spec.metadataOptions.httpPutResponseHopLimit: expected 1 to 64" },
    { SPEC("metadataOptions: {httpTokens: maybe}"),
      "spec.metadataOptions.httpTokens: expected one of" },
    { SPEC("metadataOptions: {httpEndpoint: 'yes'}"),
      "spec.metadataOptions.httpEndpoint: expected one of" },
    { SPEC("metadataOptions: {httpProtocolIPv6: 'yes'}"),
      "spec.metadataOptions.httpProtocolIPv6: expected one of" },
    { SPEC("cpuOptions: {nestedVirtualization: enabled}, context: a, userData: 'echo hello'") },
    { SPEC("cpuOptions: {nestedVirtualization: maybe}"),
      "spec.cpuOptions.nestedVirtualization: expected one of" },
    { SPEC("userdata: a"), "spec.userdata: unknown field, did you mean \"userData\"?", OFFLINE },

    /* the kubelet */
    { KUBELET("maxPods: 58, evictionHard: {memory.available: 5%, nodefs.available: 1Gi}, "
              "evictionSoft: {memory.available: 10%}, "
              "evictionSoftGracePeriod: {memory.available: 1m30s}, kubeReserved: {cpu: 100m, pid: "
              "'1000'}, systemReserved: {memory: 1Gi, ephemeral-storage: 1Gi}, clusterDNS: "
              "[10.0.0.1, 10.0.0.2], imageGCHighThresholdPercent: 80, imageGCLowThresholdPercent: "
              "70, topologyManagerPolicy: restricted") },
    { SPEC("kubelet: []"), "spec.kubelet: expected an object" },
    { KUBELET("maxpods: 58"), "spec.kubelet.maxpods: unknown field, did you mean", OFFLINE },
    { KUBELET("maxPods: -1"), "spec.kubelet.maxPods: expected 0 to", OFFLINE },
    { KUBELET("maxPods: 'vcpus * 10'"), "spec.kubelet.maxPods: \"", OFFLINE },
    { KUBELET("cpuCFSQuota: 1"), "spec.kubelet.cpuCFSQuota: expected true or false", OFFLINE },
    { KUBELET("podsPerCore: -1"), "spec.kubelet.podsPerCore: expected", OFFLINE },
    { KUBELET("evictionMaxPodGracePeriod: -1"), "spec.kubelet.evictionMaxPodGracePeriod: expected",
      OFFLINE },
    { KUBELET("registerWithTaints: []"), "spec.kubelet.registerWithTaints: cannot be set",
      OFFLINE },
    { KUBELET("evictionHard: {disk.available: 5%}"),
      "spec.kubelet.evictionHard[\"disk.available\"]: expected one of", OFFLINE },
    { KUBELET("evictionHard: {memory.available: 101%}"),
      "spec.kubelet.evictionHard[\"memory.available\"]: \"101%\" is not a percentage", OFFLINE },
    { KUBELET("evictionHard: {memory.available: 7.5%}") },
    { KUBELET("evictionHard: {memory.available: -1Gi}"),
      "spec.kubelet.evictionHard[\"memory.available\"]: \"-1Gi\" is neither", OFFLINE },
    { KUBELET("evictionMinimumReclaim: {memory.available: lots}"),
      "spec.kubelet.evictionMinimumReclaim[\"memory.available\"]: \"", OFFLINE },
    { KUBELET("evictionSoft: {memory.available: 5%}"),
      "spec.kubelet.evictionSoft[\"memory.available\"]: has no counterpart in", OFFLINE },
    { KUBELET("evictionSoftGracePeriod: {memory.available: 1m}"),
      "spec.kubelet.evictionSoftGracePeriod[\"memory.available\"]: has no counterpart in",
      OFFLINE },
    { KUBELET("evictionSoft: {memory.available: 5%}, evictionSoftGracePeriod: "
              "{memory.available: -1m}"),
      "spec.kubelet.evictionSoftGracePeriod[\"memory.available\"]: \"-1m\"", OFFLINE },
    { KUBELET("kubeReserved: {gpu: 1}"), "spec.kubelet.kubeReserved[\"gpu\"]: ", OFFLINE },
    { KUBELET("kubeReserved: {cpu: -100m}"), "spec.kubelet.kubeReserved[\"cpu\"]: \"", OFFLINE },
    { KUBELET("systemReserved: {memory: 'memory_mib / 10'}"),
      "spec.kubelet.systemReserved[\"memory\"]: \"", OFFLINE },
    { KUBELET("imageGCHighThresholdPercent: 101"),
      "spec.kubelet.imageGCHighThresholdPercent: expected 0 to 100", OFFLINE },
    { KUBELET("imageGCHighThresholdPercent: 70, imageGCLowThresholdPercent: 70"),
      "spec.kubelet.imageGCHighThresholdPercent: is 70, expected more", OFFLINE },
    { KUBELET_OF("bottlerocket@latest", "maxPods: 10, clusterDNS: [10.0.0.1]") },
    { KUBELET_OF("bottlerocket@latest", "topologyManagerPolicy: restricted"),
      "spec.kubelet.topologyManagerPolicy: cannot be set on nodes of the family Bottlerocket",
      OFFLINE },
    { KUBELET_OF("al2@latest", "clusterDNS: [10.0.0.1, 10.0.0.2]"),
      "spec.kubelet.clusterDNS: has 2 addresses, nodes of the family AL2 take one", OFFLINE },
    { SPEC("amiFamily: Custom, userData: '', kubelet: {topologyManagerPolicy: restricted}") },

    /* annotations and status */
    { ANNOTATION("karve.io/userdata-order: user-managed") },
    { ANNOTATION("karve.io/userdata-order: managed-user-managed") },
    { ANNOTATION("karve.io/userdata-order: user-first"),
      "metadata.annotations[\"karve.io/userdata-order\"]: expected one of", OFFLINE },
    { "{status: {subnets: [{id: subnet-1, zone: a, zoneID: b}], securityGroups: [{id: sg-1, name: "
      "a}], instanceProfile: p, amis: [{id: ami-1, name: a, deprecated: true, requirements: [{key: "
      "kubernetes.io/arch, operator: In, values: [amd64]}]}], capacityReservations: [{id: cr-1, "
      "availabilityZone: a, instanceMatchCriteria: open, instanceType: m5.large, ownerID: "
      "'123456789012', reservationType: capacity-block, interruptible: true, state: expiring, "
      "endTime: '2026-01-02T15:04:05Z'}]}}" },
    { "{status: {amis: [{id: ami-1, requirements: [{key: a, operator: Is}]}]}}",
      "status.amis[0].requirements[0].operator: expected one of" },
    { "{status: {subnets: [{id: subnet-1}]}}", "status.subnets[0].zone: required" },
};

#define SET(name)                                                                                  \
    {                                                                                              \
        &name##_kind, name##_base, name##_samples, KV_COUNT_OF(name##_samples)                     \
    }
static const struct sample_set sample_sets[] = {
    SET(nodepool), SET(nodeclaim), SET(nodeoverlay), SET(kwoknodeclass), SET(ec2nodeclass),
};

static inline void sample_read(const char *text, struct docs *out)
{
    struct err err;
    int rc = yaml_read(str_of(text), out, NULL, &err);
    if (rc < 0)
        fprintf(stderr, "%s: %s\n", text, err.text);
    KV_ASSERT(rc == 0); /* the sample is not YAML */
    KV_ASSERT(out->count == 1);
}

/* The base object of a set with a patch (NULL: without) applied to it. */
static inline json_mut *sample_build(struct json_build *b, const char *base,
                                     const char *maybe_patch)
{
    struct docs object, patch;
    sample_read(base, &object);
    sample_read(maybe_patch ? maybe_patch : "{}", &patch);
    json_mut *result = json_merge_patch(b, object.items[0].root, patch.items[0].root);
    docs_done(&object);
    docs_done(&patch);
    return result;
}
