/* sched/world_random_cluster_testing.h - what random worlds are made of, pods apart: the dice, things,
 * what can be launched and what is there. See world_random_testing.h.
 */
#pragma once

#include "base/rng.h"
#include "sched/world_testing.h"

#include <inttypes.h>

enum thing_kind { THING_TYPE, THING_POOL, THING_POD, THING_OTHER };

#define THING_PARTS_MAX 16

struct thing {
    enum thing_kind kind;
    struct str head;
    struct part {
        struct str text;
        bool off;
    } parts[THING_PARTS_MAX];
    uint32_t part_count;
    uint32_t copies;
    bool off;
};

struct random_world {
    struct arena arena;
    uint64_t seed;
    struct rng rng;
    bool tiny; /* only what the reference solver knows, and little of it */
    VEC(struct thing) things;
    uint32_t zone_count, type_count, pool_count, node_count, app_count;
    bool has_gpu, has_volumes;
};

static inline void random_world_done(struct random_world *r)
{
    vec_done(&r->things);
    arena_done(&r->arena);
}
#define RANDOM_WORLD __attribute__((cleanup(random_world_done))) struct random_world

/* --- dice --- */

static inline uint32_t below(struct random_world *r, uint32_t n)
{
    return (uint32_t)rng_below(&r->rng, n);
}

static inline bool chance(struct random_world *r, uint32_t percent)
{
    return below(r, 100) < percent;
}

static inline const char *any_of(struct random_world *r, const char *const *words, size_t count)
{
    return words[below(r, (uint32_t)count)];
}
#define ANY_OF(r, ...)                                                                             \
    any_of((r), (const char *const[]){ __VA_ARGS__ },                                              \
           sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static inline const char *any_zone(struct random_world *r)
{
    static const char *const zones[] = { "zone-a", "zone-b", "zone-c" };
    return zones[below(r, r->zone_count)];
}

/* --- things --- */

/* The result is good until the next thing. */
static inline struct thing *thing_add(struct random_world *r, enum thing_kind kind, uint32_t copies,
                                      const char *fmt, ...) KV_PRINTF(4, 5);
static inline struct thing *thing_add(struct random_world *r, enum thing_kind kind, uint32_t copies,
                                      const char *fmt, ...)
{
    AUTO_BUF text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    vec_push(&r->things, (struct thing){ .kind = kind,
                                         .head = arena_str(&r->arena, buf_str(&text)),
                                         .copies = copies });
    return &vec_last(&r->things);
}

static inline void part_add(struct random_world *r, const char *fmt, ...) KV_PRINTF(2, 3);
static inline void part_add(struct random_world *r, const char *fmt, ...)
{
    struct thing *t = &vec_last(&r->things);
    AUTO_BUF text = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    KV_ASSERT(t->part_count < THING_PARTS_MAX);
    t->parts[t->part_count++] = (struct part){ .text = arena_str(&r->arena, buf_str(&text)) };
}

/* --- what can be launched --- */

static inline void random_type(struct random_world *r, uint32_t number)
{
    static const uint32_t sizes[] = { 1, 2, 4, 8 };
    uint32_t cpu = sizes[r->tiny ? 1 + below(r, 3) : below(r, KV_COUNT_OF(sizes))];
    uint32_t memory = cpu * (1 + below(r, 4));
    bool gpu = r->has_gpu && (number == 0 || chance(r, 20));
    thing_add(r, THING_TYPE, 1,
              "- name: t%u\n"
              "  capacity: {cpu: $%u, memory: $%uGi, pods: %u%s}\n"
              "  overhead: {cpu: $%um, memory: $%uMi}\n"
              "  requirements:\n"
              "  - {key: kubernetes.io/arch, operator: In, values: [%s]}\n"
              "  - {key: kubernetes.io/os, operator: In, values: [linux]}\n"
              "  - {key: example.com/cpus, operator: In, values: ['%u']}\n"
              "  offerings:\n",
              number, cpu, memory, 4 + below(r, 3) * 8, gpu ? ", nvidia.com/gpu: $2" : "",
              below(r, 2) * 100, below(r, 3) * 100, chance(r, 85) ? "amd64" : "arm64", cpu);
    /* About 0.05 for a cpu and 0.01 for a GiB, more or less, so that there is something to gain. */
    uint32_t base = (cpu * 50 + memory * 10 + gpu * 300) * (80 + below(r, 60)) / 100;
    for (uint32_t z = 0; z < r->zone_count; z++) {
        if (!r->tiny && chance(r, 15))
            continue;
        const char *unavailable = !r->tiny && chance(r, 5) ? ", available: false" : "";
        part_add(r, "  - {zone: zone-%c, capacityType: on-demand, price: 0.%04u%s}\n",
                 (char)('a' + z), base + z * below(r, 3), unavailable);
        if (chance(r, 60))
            part_add(r, "  - {zone: zone-%c, capacityType: spot, price: 0.%04u}\n", (char)('a' + z),
                     base * (30 + below(r, 30)) / 100);
        if (chance(r, 8))
            part_add(r,
                     "  - {zone: zone-%c, capacityType: reserved, price: 0.00%02u, "
                     "reservationId: cr-%u-%u, reservationCapacity: %u}\n",
                     (char)('a' + z), below(r, 3), number, z, 1 + below(r, 3));
    }
    if (vec_last(&r->things).part_count == 0)
        part_add(r, "  - {zone: zone-a, capacityType: on-demand, price: 0.%04u}\n", base);
}

static inline void random_pool_requirements(struct random_world *r)
{
    if (chance(r, 25))
        part_add(r, "      - {key: topology.kubernetes.io/zone, operator: %s, values: [%s]}\n",
                 chance(r, 70) ? "In" : "NotIn", any_zone(r));
    if (chance(r, 25))
        part_add(r,
                 "      - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand%s]}\n",
                 chance(r, 50) ? ", reserved" : "");
    if (chance(r, 15))
        part_add(r, "      - {key: kubernetes.io/arch, operator: In, values: [amd64]}\n");
    if (chance(r, 15))
        part_add(r, "      - {key: example.com/cpus, operator: %s, values: ['%u']}\n",
                 ANY_OF(r, "Gt", "Lt"), 1u << below(r, 3));
    if (chance(r, 20))
        part_add(r, "      - {key: team, operator: In, values: [%s]}\n",
                 ANY_OF(r, "a", "b", "a, b"));
    else if (chance(r, 10))
        part_add(r, "      - {key: team, operator: Exists}\n");
    if (!r->tiny && chance(r, 15))
        part_add(
            r, "      - {key: node.kubernetes.io/instance-type, operator: Exists, minValues: %u}\n",
            1 + below(r, 3));
}

static inline void random_pool(struct random_world *r, uint32_t number)
{
    thing_add(r, THING_POOL, 1,
              "---\n"
              "apiVersion: karpenter.sh/v1\n"
              "kind: NodePool\n"
              "metadata: {name: pool-%u}\n"
              "spec:\n"
              "  template:\n"
              "    spec:\n"
              "      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"
              "      requirements:\n"
              "      - {key: kubernetes.io/os, operator: In, values: [linux]}\n",
              number);
    random_pool_requirements(r);
    if (chance(r, 20))
        part_add(r, "      taints: [{key: dedicated, value: %s, effect: %s}]\n",
                 ANY_OF(r, "a", "b"), chance(r, 70) ? "NoSchedule" : "NoExecute");
    else if (!r->tiny && chance(r, 15))
        part_add(r, "      taints: [{key: soft, effect: PreferNoSchedule}]\n");
    if (chance(r, 10))
        part_add(r, "      startupTaints: [{key: booting, effect: NoSchedule}]\n");
    part_add(r, "  weight: %u\n", 10 * (1 + below(r, 3)));
    if (chance(r, r->tiny ? 15 : 25))
        part_add(r, "  limits: {cpu: $%u}\n", 2 + below(r, 20));
    else if (chance(r, 10))
        part_add(r, "  limits: {nodes: %u}\n", below(r, 4));
    else if (chance(r, 5))
        part_add(r, "  limits: {memory: $%uGi}\n", 4 + below(r, 40));
}

/* --- what is there --- */

static inline void random_node(struct random_world *r, uint32_t number)
{
    AUTO_BUF labels = { 0 };
    if (chance(r, 50))
        buf_addf(&labels, ", karpenter.sh/nodepool: pool-%u", below(r, r->pool_count + 1));
    if (chance(r, 50))
        buf_addf(&labels, ", karpenter.sh/capacity-type: %s", ANY_OF(r, "spot", "on-demand"));
    if (chance(r, 30))
        buf_addf(&labels, ", team: %s", ANY_OF(r, "a", "b"));
    if (chance(r, 85))
        buf_addf(&labels, ", topology.kubernetes.io/zone: %s", any_zone(r));
    uint32_t cpu = 1 + below(r, 4), memory = 1 + below(r, 8);
    thing_add(
        r, THING_OTHER, 1,
        "---\n"
        "apiVersion: v1\n"
        "kind: Node\n"
        "metadata:\n"
        "  name: n%u\n"
        "  labels: {kubernetes.io/hostname: n%u, kubernetes.io/os: linux, kubernetes.io/arch: "
        "amd64, karpenter.sh/registered: 'true', karpenter.sh/initialized: 'true', "
        "node.kubernetes.io/instance-type: t%u%s}\n"
        "status:\n"
        "  capacity: {cpu: $%u, memory: $%uGi, pods: %u}\n"
        "  allocatable: {cpu: $%u, memory: $%uGi, pods: %u}\n"
        "  conditions: [{type: Ready, status: 'True', reason: R, message: m, "
        "lastTransitionTime: '2026-01-02T03:04:05Z'}]\n",
        number, number, below(r, r->type_count), buf_str(&labels).p, cpu, memory, 12, cpu, memory,
        12);
    if (chance(r, 15))
        part_add(r, "spec: {taints: [{key: dedicated, value: a, effect: NoSchedule}]}\n");
    else if (chance(r, 5))
        part_add(r, "spec: {unschedulable: true}\n");
    if (r->has_volumes && !r->tiny && chance(r, 50))
        thing_add(r, THING_OTHER, 1,
                  "---\n"
                  "apiVersion: storage.k8s.io/v1\n"
                  "kind: CSINode\n"
                  "metadata: {name: n%u}\n"
                  "spec: {drivers: [{name: ebs.csi.aws.com, nodeID: i-%u, allocatable: {count: "
                  "%u}}]}\n",
                  number, number, below(r, 3));
}

static inline void random_claim(struct random_world *r, uint32_t number)
{
    const char *zone = any_zone(r), *type = ANY_OF(r, "spot", "on-demand");
    uint32_t cpu = 1 + below(r, 4), pool = below(r, r->pool_count);
    thing_add(r, THING_OTHER, 1,
              "---\n"
              "apiVersion: karpenter.sh/v1\n"
              "kind: NodeClaim\n"
              "metadata:\n"
              "  name: claim-%u\n"
              "  labels: {karpenter.sh/nodepool: pool-%u, topology.kubernetes.io/zone: %s, "
              "karpenter.sh/capacity-type: %s, kubernetes.io/arch: amd64, kubernetes.io/os: linux, "
              "node.kubernetes.io/instance-type: t0}\n"
              "spec:\n"
              "  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}\n"
              "  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [%s]}]\n"
              "status:\n"
              "  providerID: test:///%s/i-%u\n"
              "  capacity: {cpu: $%u, memory: $8Gi, pods: 10}\n"
              "  allocatable: {cpu: $%u, memory: $8Gi, pods: 10}\n"
              "  conditions: [{type: Launched, status: 'True', reason: Launched, message: '', "
              "lastTransitionTime: '2026-01-02T03:04:05Z'}]\n",
              number, pool, zone, type, zone, zone, number, cpu, cpu);
}

static inline void random_daemons(struct random_world *r, uint32_t number)
{
    thing_add(r, THING_OTHER, 1,
              "---\n"
              "apiVersion: apps/v1\n"
              "kind: DaemonSet\n"
              "metadata: {name: d%u, namespace: default}\n"
              "spec:\n"
              "  selector: {matchLabels: {daemon: d%u}}\n"
              "  template:\n"
              "    metadata: {labels: {daemon: d%u}}\n"
              "    spec:\n"
              "      containers: [{name: c, image: i, resources: {requests: {cpu: $%um, memory: "
              "$%uMi}}%s}]\n",
              number, number, number, 50 * (1 + below(r, 4)), 64 * (1 + below(r, 4)),
              !r->tiny && chance(r, 10) ? ", ports: [{containerPort: 80, hostPort: 8080}]" : "");
    if (chance(r, 60))
        part_add(r, "      tolerations: [{operator: Exists}]\n");
    if (chance(r, 30))
        part_add(r, "      nodeSelector: {%s}\n",
                 ANY_OF(r, "kubernetes.io/arch: amd64", "kubernetes.io/arch: arm64",
                        "node.kubernetes.io/instance-type: t1"));
}

#define VOLUMES 3

static inline void random_volume(struct random_world *r, uint32_t number)
{
    bool bound = chance(r, 60);
    thing_add(r, THING_OTHER, 1,
              "---\n"
              "apiVersion: v1\n"
              "kind: PersistentVolumeClaim\n"
              "metadata: {name: data-%u, namespace: default, annotations: {%s}}\n"
              "status: {phase: %s}\n"
              "spec:\n"
              "  accessModes: [ReadWriteOnce]\n"
              "  resources: {requests: {storage: 1Gi}}\n"
              "  storageClassName: %s\n",
              number, bound ? "pv.kubernetes.io/bind-completed: 'yes'" : "",
              bound ? "Bound" : "Pending", ANY_OF(r, "local-zone", "anywhere"));
    if (!bound)
        return;
    part_add(r, "  volumeName: pv-%u\n", number);
    thing_add(r, THING_OTHER, 1,
              "---\n"
              "apiVersion: v1\n"
              "kind: PersistentVolume\n"
              "metadata: {name: pv-%u}\n"
              "spec:\n"
              "  capacity: {storage: 1Gi}\n"
              "  accessModes: [ReadWriteOnce]\n"
              "  csi: {driver: ebs.csi.aws.com, volumeHandle: vol-%u}\n"
              "  claimRef: {namespace: default, name: data-%u}\n"
              "  nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: "
              "topology.kubernetes.io/zone, operator: In, values: [%s]}]}]}}\n"
              "status: {phase: Bound}\n",
              number, number, number, any_zone(r));
}

static inline void random_storage_classes(struct random_world *r)
{
    thing_add(r, THING_OTHER, 1,
              "---\n"
              "apiVersion: storage.k8s.io/v1\n"
              "kind: StorageClass\n"
              "metadata: {name: anywhere}\n"
              "provisioner: ebs.csi.aws.com\n"
              "volumeBindingMode: WaitForFirstConsumer\n");
    thing_add(r, THING_OTHER, 1,
              "---\n"
              "apiVersion: storage.k8s.io/v1\n"
              "kind: StorageClass\n"
              "metadata: {name: local-zone}\n"
              "provisioner: ebs.csi.aws.com\n"
              "volumeBindingMode: WaitForFirstConsumer\n"
              "allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, "
              "values: [%s]}]}]\n",
              any_zone(r));
}
