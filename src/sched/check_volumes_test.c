/* Volumes of pods: where they are, where they can be made, how many a node takes. */
#include "sched/check_testing.h"

#define ZONE(z) "topology.kubernetes.io/zone=" z
#define POOL WORLD_POOL("web", "[]", "")
#define NODE(name, zone) WORLD_NODE(name, zone, "", "cpu: 4, memory: 8Gi")
#define POD_WITH(name, claim, more)                                                                \
    WORLD_POD(name, "{}", "{cpu: 1}",                                                              \
              "  volumes: [{name: v, persistentVolumeClaim: {claimName: " claim "}}]\n" more)
#define PVC(name, spec, status)                                                                    \
    "---\napiVersion: v1\nkind: PersistentVolumeClaim\n"                                           \
    "metadata: {name: " name ", namespace: default, annotations: "                                 \
    "{pv.kubernetes.io/bind-completed: 'yes'}}\n"                                                  \
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}, " spec "}\n"      \
    "status: {" status "}\n"
#define PV(name, meta, spec)                                                                       \
    "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " name meta "}\n"               \
    "spec: {accessModes: [ReadWriteOnce], capacity: {storage: 5Gi}, csi: {driver: "                \
    "ebs.csi.aws.com, volumeHandle: " name "}" spec "}\n"
#define IN_ZONE(z)                                                                                 \
    ", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: "                   \
    "topology.kubernetes.io/zone, operator: In, values: [" z "]}]}]}}"
#define CLASS(name, more)                                                                          \
    "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: " name "}\n"         \
    "provisioner: ebs.csi.aws.com\n" more
#define WAITS "volumeBindingMode: WaitForFirstConsumer\n"
#define ALLOWED(z)                                                                                 \
    "allowedTopologies: [{matchLabelExpressions: [{key: topology.kubernetes.io/zone, values: [" z  \
    "]}]}]\n"

/* Pod `a` on a launch in that zone (or those). */
static void expect_in(const char *yaml, const char *zones, const char *maybe_words)
{
    WORLD w;
    DRAFT d;
    AUTO_BUF all = { 0 };
    buf_addf(&all, POOL "%s" POD_WITH("a", "c", ""), yaml);
    world_load(&w, all.p, WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_launch(&d, "web", "small", zones, "a");
    if (maybe_words)
        expect_wrong(&d, maybe_words);
    else
        expect_right(&d);
}

TEST(a_bound_claim_is_where_its_volume_is)
{
    const char *yaml = PVC("c", "volumeName: v1", "phase: Bound") PV("v1", "", IN_ZONE("zone-a"));
    expect_in(yaml, ZONE("zone-a"), NULL);
    expect_in(yaml, ZONE("zone-b"),
              "pod default/a on launch 0 of pool web: claim c is bound to a volume elsewhere");
    expect_in(yaml, ZONE("zone-a,zone-b"), "claim c is bound to a volume elsewhere");
}

TEST(a_volume_of_one_host_is_on_no_new_node)
{
    const char *yaml = PVC("c", "volumeName: v1", "phase: Bound")
        PV("v1", "",
           ", nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: "
           "kubernetes.io/hostname, operator: In, values: [n1]}]}]}}");
    expect_in(yaml, "", "claim c is bound to a volume elsewhere");
}

TEST(zone_labels_of_a_volume_count_too)
{
    const char *yaml = PVC("c", "volumeName: v1", "phase: Bound")
        PV("v1", ", labels: {topology.kubernetes.io/zone: zone-a__zone-b}", "");
    expect_in(yaml, ZONE("zone-b"), NULL);
    expect_in(yaml, ZONE("zone-c"), "claim c is bound to a volume elsewhere");
}

TEST(a_claim_that_waits_is_made_where_its_class_allows)
{
    const char *any = PVC("c", "storageClassName: s", "phase: Pending") CLASS("s", WAITS);
    const char *only_a =
        PVC("c", "storageClassName: s", "phase: Pending") CLASS("s", WAITS ALLOWED("zone-a"));
    expect_in(any, "", NULL);
    expect_in(only_a, ZONE("zone-a"), NULL);
    expect_in(only_a, ZONE("zone-b"), "claim c cannot be had there");
    expect_in(only_a, "", "claim c cannot be had there");
}

TEST(a_claim_of_a_pods_own_template_is_of_the_default_class_unless_it_says)
{
    static const char *const zones[] = { ZONE("zone-a"), ZONE("zone-b") };
    for (size_t i = 0; i < KV_COUNT_OF(zones); i++) {
        WORLD w;
        DRAFT d;
        world_load(
            &w,
            POOL WORLD_POD("a", "{}", "{cpu: 1}",
                           "  volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: "
                           "{accessModes: [ReadWriteOnce], resources: {requests: {storage: "
                           "1Gi}}}}}}]\n")
                CLASS(
                    "other",
                    WAITS ALLOWED(
                        "zone-b")) "---\napiVersion: "
                                   "storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: usual, annotations: "
                                   "{storageclass.kubernetes.io/is-default-class: 'true'}}\n"
                                   "provisioner: ebs.csi.aws.com\n" WAITS ALLOWED("zone-a"),
            WORLD_TYPES_SMALL);
        draft_begin(&d, &w);
        draft_launch(&d, "web", "small", zones[i], "a");
        if (i)
            expect_wrong(&d, "claim a-v cannot be had there");
        else
            expect_right(&d);
    }
}

TEST(a_claim_that_cannot_be_had_keeps_its_pod_away)
{
    expect_in("", "", "claim c does not exist");
    expect_in(PVC("c", "storageClassName: s", "phase: Pending") CLASS("s", ""), "",
              "claim c is not bound, and its class does not wait for a pod");
    expect_in(PVC("c", "storageClassName: s", "phase: Pending"), "",
              "claim c has no storage class, and is not bound");
    expect_in(PVC("c", "volumeName: gone", "phase: Bound"), "",
              "claim c is bound to a volume that does not exist");
    expect_in(PVC("c", "volumeName: v1", "phase: Lost") PV("v1", "", ""), "",
              "claim c has lost its volume");
}

TEST(a_class_without_provisioner_needs_a_volume_that_lies_ready)
{
#define LOCAL                                                                                      \
    "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: s}\n"                \
    "provisioner: kubernetes.io/no-provisioner\n" WAITS
    const char *none = PVC("c", "storageClassName: s", "phase: Pending") LOCAL;
    const char *ready = PVC("c", "storageClassName: s", "phase: Pending")
        LOCAL PV("v1", "", ", storageClassName: s" IN_ZONE("zone-a"));
    expect_in(none, "", "claim c cannot be had there");
    expect_in(ready, ZONE("zone-a"), NULL);
    expect_in(ready, ZONE("zone-b"), "claim c cannot be had there");
}

#define CSI(node, count)                                                                           \
    "---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: " node "}\n"              \
    "spec: {drivers: [{name: ebs.csi.aws.com, nodeID: " node ", allocatable: {count: " count       \
    "}}]}\n"

TEST(a_node_attaches_no_more_volumes_than_it_can)
{
    static const struct {
        const char *limit;
        const char *claim_of_b; /* bound there */
        const char *maybe_words;
    } cases[] = {
        { "2", "c2", NULL },
        { "1", "c1", NULL }, /* the same volume */
        { "1", "c2", "node n1 attaches 2 volumes of ebs.csi.aws.com, and takes 1" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        WORLD w;
        DRAFT d;
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml,
                 POOL NODE("n1", "zone-a") CSI("n1", "%s") PVC("c1", "storageClassName: s", "")
                     PVC("c2", "volumeName: v2", "phase: Bound") PV("v2", "", "") CLASS("s", WAITS)
                         POD_WITH("a", "c1", "") POD_WITH("b", "%s", "  nodeName: n1\n"),
                 cases[i].limit, cases[i].claim_of_b);
        world_load(&w, yaml.p, WORLD_TYPES_SMALL);
        draft_begin(&d, &w);
        draft_existing(&d, "n1", "a");
        if (cases[i].maybe_words)
            expect_wrong(&d, cases[i].maybe_words);
        else
            expect_right(&d);
    }
}

TEST(a_claim_for_one_pod_is_used_by_one)
{
    WORLD w;
    DRAFT d;
    world_load(
        &w,
        POOL NODE("n1", "zone-a") CLASS("s", WAITS) POD_WITH("a", "c", "") POD_WITH(
            "b", "c",
            "  nodeName: n1\n") "---\napiVersion: v1\nkind: "
                                "PersistentVolumeClaim\nmetadata: {name: c, namespace: default}\n"
                                "spec: {accessModes: [ReadWriteOncePod], storageClassName: s, resources: "
                                "{requests: {storage: 1Gi}}}\n",
        WORLD_TYPES_SMALL);
    draft_begin(&d, &w);
    draft_existing(&d, "n1", "a");
    expect_wrong(&d, "pod default/a: claim c is for one pod, and pod default/b has it");
}
