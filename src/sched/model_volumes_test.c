/* Where volumes let a pod run, and what keeps it from running at all. */
#include "sched/model_classes_testing.h"

#define POOL WORLD_POOL("web", "[]", "")
#define POD(name, claim) /* one that mounts a claim */                                             \
    WORLD_POD(name, "{}", "{cpu: 1}",                                                              \
              "  volumes: [{name: v, persistentVolumeClaim: {claimName: " claim "}}]\n")
#define CLASS(name, mode, more)                                                                    \
    "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: " name "}\n"         \
    "provisioner: ebs.csi.aws.com\nvolumeBindingMode: " mode "\n" more
#define CLAIM(name, meta, spec, status)                                                            \
    "---\napiVersion: v1\nkind: PersistentVolumeClaim\n"                                           \
    "metadata: {name: " name ", namespace: default" meta "}\n"                                     \
    "spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}" spec "}\n" status
#define BOUND ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}"
#define DELETED ", deletionTimestamp: '2026-01-02T03:04:05Z'"
#define VOLUME(name, meta, source, terms)                                                          \
    "---\napiVersion: v1\nkind: PersistentVolume\nmetadata: {name: " name meta "}\n"               \
    "spec:\n  capacity: {storage: 1Gi}\n  accessModes: [ReadWriteOnce]\n  " source "\n"            \
    "  nodeAffinity: {required: {nodeSelectorTerms: [" terms "]}}\n"
#define EBS "csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1}"
#define IN(key, values) "{matchExpressions: [{key: " key ", operator: In, values: [" values "]}]}"

static const struct class_volume *only_volume(const struct modelled *t, const char *pod)
{
    const struct pod_class *k = class_of_pod(t, pod);
    EXPECT_EQ(k->volume_count, 1);
    return &k->volumes[0];
}

/* --- bound claims --- */

TEST(a_bound_claim_is_where_its_volume_is)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL POD("p", "data") CLAIM("data", BOUND, ", volumeName: pv", "")
                      VOLUME("pv", "", EBS, IN("topology.ebs.csi.aws.com/zone", "zone-b")),
                  NULL);
    EXPECT_STR(refusal(&t, "p"), "");
    EXPECT_EQ(class_of_pod(&t, "p")->variant_count, 1);
    EXPECT_STR(wants_text(&t, "p", 0), ZONE " In [zone-b]");
    EXPECT_STR(t.m.drivers[only_volume(&t, "p")->driver], "ebs.csi.aws.com");
    EXPECT_EQ(only_volume(&t, "p")->claim, NONE);
}

TEST(terms_of_a_volume_are_alternatives)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL POD("p", "data") CLAIM("data", BOUND, ", volumeName: pv", "")
                      VOLUME("pv", "", EBS, IN(ZONE, "zone-b") ", " IN(ZONE, "zone-a")),
                  NULL);
    EXPECT_EQ(class_of_pod(&t, "p")->variant_count, 2);
    EXPECT_STR(wants_text(&t, "p", 0), ZONE " In [zone-b]");
    EXPECT_STR(wants_text(&t, "p", 1), ZONE " In [zone-a]");
    EXPECT_STR(class_of_pod(&t, "p")->variants[1].given_up, "");
}

TEST(several_volumes_must_be_together)
{
#define TWO(name)                                                                                  \
    WORLD_POD(name, "{}", "{cpu: 1}",                                                              \
              "  volumes:\n"                                                                       \
              "  - {name: v, persistentVolumeClaim: {claimName: one}}\n"                           \
              "  - {name: w, persistentVolumeClaim: {claimName: two}}\n")
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL TWO("p") CLAIM("one", BOUND, ", volumeName: pv1", "")
                      CLAIM("two", BOUND, ", volumeName: pv2", "")
                          VOLUME("pv1", "", EBS, IN(ZONE, "zone-a, zone-b") ", " IN(ZONE, "zone-c"))
                              VOLUME("pv2", "", EBS, IN(ZONE, "zone-b") ", " IN(ZONE, "zone-c")),
                  NULL);
    EXPECT_EQ(class_of_pod(&t, "p")->variant_count, 2);
    EXPECT_STR(wants_text(&t, "p", 0), ZONE " In [zone-b]");
    EXPECT_STR(wants_text(&t, "p", 1), ZONE " In [zone-c]");
    EXPECT_EQ(class_of_pod(&t, "p")->volume_count, 2);

    MODELLED apart = { 0 };
    modelled_load(&apart,
                  POOL TWO("p") CLAIM("one", BOUND, ", volumeName: pv1", "")
                      CLAIM("two", BOUND, ", volumeName: pv2", "")
                          VOLUME("pv1", "", EBS, IN(ZONE, "zone-a"))
                              VOLUME("pv2", "", EBS, IN(ZONE, "zone-b")),
                  NULL);
    EXPECT_HAS(refusal(&apart, "p"), "volume: its volumes are in different places");
#undef TWO
}

TEST(a_volume_in_another_zone_than_the_pod_asks_for_is_told)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL WORLD_POD("p", "{}", "{cpu: 1}",
                       "  nodeSelector: {topology.kubernetes.io/zone: zone-a}\n"
                       "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n")
            CLAIM("data", BOUND, ", volumeName: pv", "") VOLUME("pv", "", EBS, IN(ZONE, "zone-b")),
        NULL);
    EXPECT_HAS(refusal(&t, "p"), "volume: its volumes are elsewhere: " ZONE " In [zone-b]");
}

TEST(old_volumes_say_by_labels_where_they_are)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL POD("p", "data") CLAIM(
                      "data", BOUND, ", volumeName: pv",
                      "") "---\napiVersion: v1\nkind: PersistentVolume\n"
                          "metadata: {name: pv, labels: {failure-domain.beta.kubernetes.io/zone: "
                          "zone-a__zone-c}}\n"
                          "spec: {capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], "
                          "awsElasticBlockStore: {volumeID: vol-1}}\n",
                  NULL);
    EXPECT_STR(wants_text(&t, "p", 0), ZONE " In [zone-a zone-c]");
    EXPECT_STR(t.m.drivers[only_volume(&t, "p")->driver], "ebs.csi.aws.com");
}

TEST(a_disk_of_a_node_ties_the_pod_to_it_while_the_node_is_there)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL WORLD_NODE("here", "zone-a", "", "cpu: 4") POD("p", "data") POD("q", "lost")
                      CLAIM("data", BOUND, ", volumeName: pv", "")
                          CLAIM("lost", BOUND, ", volumeName: pw", "")
                              VOLUME("pv", "", "local: {path: /x}", IN(HOST, "here"))
                                  VOLUME("pw", "", "local: {path: /x}",
                                         "{matchExpressions: [{key: " HOST
                                         ", operator: In, values: [gone]}, {key: " ZONE
                                         ", operator: In, values: [zone-b]}]}"),
                  NULL);
    EXPECT_STR(wants_text(&t, "p", 0), HOST " In [here]");
    EXPECT_STR(wants_text(&t, "q", 0), ZONE " In [zone-b]");
    EXPECT_EQ(class_of_pod(&t, "p")->volume_count, 0);
}

/* --- claims that are not bound --- */

TEST(a_claim_that_waits_is_where_its_class_allows)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL POD("free", "anywhere") POD("tied", "somewhere")
                      CLASS("plain", "WaitForFirstConsumer", "")
                          CLASS("zonal", "WaitForFirstConsumer",
                                "allowedTopologies:\n"
                                "- matchLabelExpressions: [{key: " ZONE ", values: [zone-a]}]\n"
                                "- matchLabelExpressions: [{key: " ZONE ", values: [zone-c]}]\n")
                              CLAIM("anywhere", "", ", storageClassName: plain", "")
                                  CLAIM("somewhere", "", ", storageClassName: zonal", ""),
                  NULL);
    EXPECT_STR(wants_text(&t, "free", 0), "");
    EXPECT_EQ(class_of_pod(&t, "tied")->variant_count, 2);
    EXPECT_STR(wants_text(&t, "tied", 1), ZONE " In [zone-c]");
    EXPECT_STR(t.m.drivers[only_volume(&t, "free")->driver], "ebs.csi.aws.com");
}

TEST(a_volume_that_is_about_to_be_made_for_a_node_ties_the_pod_to_it)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL WORLD_NODE("here", "zone-a", "", "cpu: 4") POD("p", "data")
                      CLASS("plain", "WaitForFirstConsumer", "")
                          CLAIM("data", ", annotations: {volume.kubernetes.io/selected-node: here}",
                                ", storageClassName: plain", ""),
                  NULL);
    EXPECT_STR(wants_text(&t, "p", 0), HOST " In [here]");
}

TEST(the_default_class_is_for_claims_that_name_none)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL POD("p", "data") CLAIM("data", "", "", "") CLASS(
            "other", "Immediate",
            "") "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\n"
                "metadata: {name: dflt, annotations: "
                "{storageclass.kubernetes.io/is-default-class: 'true'}}\n"
                "provisioner: kubernetes.io/gce-pd\nvolumeBindingMode: WaitForFirstConsumer\n",
        NULL);
    EXPECT_STR(refusal(&t, "p"), "");
    EXPECT_STR(t.m.drivers[only_volume(&t, "p")->driver], "pd.csi.storage.gke.io");
}

TEST(a_volume_of_the_pods_own_is_judged_by_its_template_until_there_is_a_claim)
{
#define EPHEMERAL(name, class_)                                                                    \
    WORLD_POD(name, "{}", "{cpu: 1}",                                                              \
              "  volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {accessModes: "       \
              "[ReadWriteOnce], storageClassName: " class_                                         \
              ", resources: {requests: {storage: 1Gi}}}}}}]\n")
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL EPHEMERAL("a", "plain") EPHEMERAL("b", "plain") EPHEMERAL("c", "plain")
                      EPHEMERAL("d", "none") CLASS("plain", "WaitForFirstConsumer", "")
                          CLAIM("c-v", BOUND, ", volumeName: pv", "")
                              VOLUME("pv", "", EBS, IN(ZONE, "zone-b")),
                  NULL);
#undef EPHEMERAL
    EXPECT_TRUE(class_of_pod(&t, "a") == class_of_pod(&t, "b"));
    EXPECT_STR(wants_text(&t, "a", 0), "");
    EXPECT_STR(wants_text(&t, "c", 0), ZONE " In [zone-b]");
    EXPECT_STR(refusal(&t, "d"), "volume: storage class none of claim default/d-v does not exist");
}

/* --- what keeps a pod waiting --- */

TEST(claims_that_no_node_would_help_are_refused_in_plain_words)
{
    static const struct {
        const char *objects, *why;
    } cases[] = {
        { "", "volume: claim default/data does not exist" },
        { CLAIM("data", DELETED, "", ""), "volume: claim default/data is being deleted" },
        { CLAIM("data", "", ", volumeName: pv", "status: {phase: Lost}\n"),
          "volume: claim default/data has lost its volume" },
        { CLAIM("data", BOUND, ", volumeName: pv", ""),
          "volume: volume pv of claim default/data does not exist" },
        { CLAIM("data", BOUND, ", volumeName: pv", "")
              VOLUME("pv", DELETED, EBS, IN(ZONE, "zone-a")),
          "volume: volume pv of claim default/data is being deleted" },
        { CLAIM("data", "", "", ""),
          "volume: claim default/data names no storage class, and there is no default one" },
        { CLAIM("data", "", ", storageClassName: ''", ""),
          "volume: claim default/data waits for a volume that somebody binds by hand" },
        { CLAIM("data", "", ", storageClassName: slow", ""),
          "volume: storage class slow of claim default/data does not exist" },
        { CLAIM("data", "", ", storageClassName: slow", "") CLASS("slow", "Immediate", ""),
          "volume: claim default/data is not bound yet, and will be without waiting for a node "
          "(storage class slow)" },
        { CLAIM("data", "", ", storageClassName: slow, volumeName: pv", "")
              CLASS("slow", "WaitForFirstConsumer", ""),
          "volume: claim default/data is not bound yet, and will be without waiting for a node "
          "(volume pv)" },
        { CLAIM("data", BOUND, ", volumeName: pv", "")
              VOLUME("pv", "", EBS,
                     "{matchFields: [{key: metadata.name, operator: In, values: [other]}]}"),
          "unsupported: volume pv chooses its node by matchFields" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        MODELLED t = { 0 };
        AUTO_BUF yaml = { 0 };
        buf_addf(&yaml, "%s%s", POOL POD("p", "data"), cases[i].objects);
        modelled_load(&t, yaml.p, NULL);
        EXPECT_STR(refusal(&t, "p"), cases[i].why);
    }
}

/* --- shared claims --- */

TEST(a_claim_that_several_pods_share_has_a_number_of_its_own)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL WORLD_NODE("here", "zone-a", "", "cpu: 4") POD("a", "shared") POD("b", "shared") POD(
            "c", "own") WORLD_POD("d", "{}", "{cpu: 1}",
                                  "  nodeName: here\n"
                                  "  volumes: [{name: v, persistentVolumeClaim: {claimName: "
                                  "shared}}]\n") CLAIM("shared", BOUND, ", volumeName: pv",
                                                       "") CLAIM("own", BOUND, ", volumeName: pw",
                                                                 "")
            VOLUME("pv", "", EBS, IN(ZONE, "zone-a")) VOLUME(
                "pw", "", EBS,
                IN(ZONE,
                   "zone-a")) "---\napiVersion: storage.k8s.io/v1\nkind: CSINode\nmetadata: {name: here}\n"
                              "spec: {drivers: [{name: ebs.csi.aws.com, nodeID: i, topologyKeys: [], "
                              "allocatable: {count: 3}}]}\n",
        NULL);
    EXPECT_TRUE(class_of_pod(&t, "a") == class_of_pod(&t, "b"));
    EXPECT_TRUE(class_of_pod(&t, "a") != class_of_pod(&t, "c"));
    uint32_t shared = only_volume(&t, "a")->claim;
    EXPECT_TRUE(shared != NONE);
    EXPECT_EQ(only_volume(&t, "c")->claim, NONE);
    const struct home *home = modelled_home(&t, "here");
    EXPECT_EQ(home->claim_count, 1);
    EXPECT_EQ(home->claims[0], shared);
    EXPECT_EQ(home->rooms[0].left, 2);
}

TEST(a_claim_for_one_pod_goes_to_the_first_in_line)
{
#define ONE_POD                                                                                    \
    "---\napiVersion: v1\nkind: PersistentVolumeClaim\n"                                           \
    "metadata: {name: data, namespace: default" BOUND "}\n"                                        \
    "spec: {accessModes: [ReadWriteOncePod], volumeName: pv, resources: {requests: {storage: "     \
    "1Gi}}}\n" VOLUME("pv", "", EBS, IN(ZONE, "zone-a"))
#define USER(name, more)                                                                           \
    WORLD_POD(name, "{}", "{cpu: 1}",                                                              \
              "  volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]\n" more)
    MODELLED t = { 0 };
    modelled_load(&t, POOL ONE_POD USER("c", "") USER("a", "") USER("b", "  priority: 5\n"), NULL);
    EXPECT_STR(refusal(&t, "b"), "");
    EXPECT_STR(refusal(&t, "a"),
               "volume: claim default/data is for one pod only, and pod default/b comes first");
    EXPECT_TRUE(class_of_pod(&t, "a") == class_of_pod(&t, "c"));

    MODELLED held = { 0 };
    modelled_load(&held,
                  POOL ONE_POD WORLD_NODE("here", "zone-a", "", "cpu: 4") USER("a", "")
                      USER("z", "  nodeName: here\n"),
                  NULL);
    EXPECT_STR(refusal(&held, "a"),
               "volume: claim default/data is for one pod only, and pod default/z has it");
#undef USER
#undef ONE_POD
}

TEST(a_claim_that_is_yet_to_be_made_cannot_be_shared_by_pods_that_could_be_apart)
{
    MODELLED t = { 0 };
    modelled_load(&t,
                  POOL POD("a", "data") POD("b", "data") CLASS("plain", "WaitForFirstConsumer", "")
                      CLAIM("data", "", ", storageClassName: plain", ""),
                  NULL);
    EXPECT_STR(refusal(&t, "a"),
               "unsupported: claim default/data is not bound yet, and several pods share it");
}

TEST(inline_disks_count_and_what_a_driver_makes_on_the_node_does_not)
{
    MODELLED t = { 0 };
    modelled_load(
        &t,
        POOL WORLD_POD("disk", "{}", "{cpu: 1}",
                       "  volumes: [{name: v, awsElasticBlockStore: {volumeID: vol-1}}]\n")
            WORLD_POD("made", "{}", "{cpu: 1}",
                      "  volumes: [{name: v, csi: {driver: secrets.example.com}}]\n"),
        NULL);
    EXPECT_STR(t.m.drivers[only_volume(&t, "disk")->driver], "ebs.csi.aws.com");
    EXPECT_EQ(class_of_pod(&t, "made")->volume_count, 0);
}
