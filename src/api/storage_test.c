/* Claims, volumes, classes, drivers and attachments. */
#include "api/storage.h"
#include "api/kind_test.h"

#define CLAIM(spec_)                                                                               \
    "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data}, spec: " spec_ "}"
#define VOLUME(spec_)                                                                              \
    "{apiVersion: v1, kind: PersistentVolume, metadata: {name: pv1}, spec: " spec_ "}"
#define CLASS(rest_)                                                                               \
    "{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: ssd}, " rest_ "}"

TEST(claim_decodes_class_size_and_phase)
{
    SAMPLE s;
    sample_decode(
        &s, "apiVersion: v1\n"
            "kind: PersistentVolumeClaim\n"
            "metadata:\n"
            "  name: data-db-0\n"
            "  namespace: shop\n"
            "  annotations: {pv.kubernetes.io/bind-completed: 'yes'}\n"
            "spec:\n"
            "  accessModes: [ReadWriteOnce]\n"
            "  resources: {requests: {storage: 200Gi}}\n"
            "  storageClassName: ''\n"
            "  volumeMode: Block\n"
            "  volumeName: pv1\n"
            "status: {phase: Bound, accessModes: [ReadWriteOnce], capacity: {storage: 200Gi}}\n");
    const struct pvc *pvc = pvc_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_TRUE(pvc_is_bound(pvc));
    EXPECT_EQ(pvc->status.phase, PVC_BOUND);
    EXPECT_EQ(pvc->spec.volume_mode, VOLUME_MODE_BLOCK);
    EXPECT_EQ(quantity_units(pvc->spec.resources.requests.items[0].amount), INT64_C(214748364800));
    /* No class and the default class are different wishes. */
    EXPECT_TRUE(pvc->spec.storage_class_name.p != NULL);
    EXPECT_EQ(pvc->spec.storage_class_name.len, 0);
}

TEST(claim_without_a_class_takes_the_default_one)
{
    SAMPLE s;
    sample_decode(&s,
                  CLAIM("{accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}"));

    EXPECT_TRUE(pvc_of(s.object)->spec.storage_class_name.p == NULL);
    EXPECT_FALSE(pvc_is_bound(pvc_of(s.object)));
    EXPECT_STR(sample_default(&s, "spec.volumeMode"), "\"Filesystem\"");
}

TEST(claim_needs_a_mode_and_a_size)
{
    expect_problem(CLAIM("{resources: {requests: {storage: 1Gi}}}"),
                   "spec.accessModes: required, missing");
    expect_problem(CLAIM("{accessModes: [], resources: {requests: {storage: 1Gi}}}"),
                   "spec.accessModes: has 0 items");
    expect_problem(CLAIM("{accessModes: [ReadWriteOne], resources: {requests: {storage: 1Gi}}}"),
                   "spec.accessModes[0]: expected one of \"ReadWriteOnce\"");
    expect_problem(CLAIM("{accessModes: [ReadWriteOnce], resources: {}}"),
                   "spec.resources.requests.storage: required, missing");
    expect_problem(CLAIM("{accessModes: [ReadWriteOnce], resources: {requests: {storage: 0}}}"),
                   "spec.resources.requests.storage: is not a size");
    expect_problem(CLAIM("{accessModes: [ReadWriteOncePod, ReadWriteMany], resources: {requests: "
                         "{storage: 1Gi}}}"),
                   "spec.accessModes: ReadWriteOncePod may not be combined");
    expect_problem(
        CLAIM("{accessModes: [ReadWriteOnce], storageclassName: x, resources: {requests: "
              "{storage: 1Gi}}}"),
        "spec.storageclassName: unknown field, did you mean \"storageClassName\"?");
}

#define BOUND(size_, name_)                                                                        \
    "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c}, spec: {accessModes: "      \
    "[ReadWriteOnce], volumeName: " name_ ", storageClassName: ssd, resources: {requests: "        \
    "{storage: " size_ "}}}, status: {phase: Bound, capacity: {storage: 20Gi}}}"

TEST(claim_may_be_bound_and_grow_and_nothing_else)
{
    const char *pending =
        CLAIM("{accessModes: [ReadWriteOnce], resources: {requests: {storage: 20Gi}}}");
    const char *bound =
        CLAIM("{accessModes: [ReadWriteOnce], volumeName: pv1, resources: {requests: "
              "{storage: 20Gi}}}");
    const char *larger =
        CLAIM("{accessModes: [ReadWriteOnce], resources: {requests: {storage: 30Gi}}}");

    expect_change(pending, bound, "");
    expect_change(pending, larger, "spec.resources.requests.storage can only grow");
    expect_change(BOUND("20Gi", "pv1"), BOUND("20480Mi", "pv1"), ""); /* the same size */
    expect_change(BOUND("20Gi", "pv1"), BOUND("30Gi", "pv1"), "");
    expect_change(BOUND("40Gi", "pv1"), BOUND("30Gi", "pv1"),
                  ""); /* a failed expansion is taken back */
    expect_change(BOUND("20Gi", "pv1"), BOUND("10Gi", "pv1"),
                  "spec.resources.requests.storage can only grow");
    expect_change(BOUND("20Gi", "pv1"), BOUND("20Gi", "pv2"), "spec can not be changed");
}

TEST(volume_decodes_source_zone_and_claim)
{
    SAMPLE s;
    sample_decode(
        &s, VOLUME("{capacity: {storage: 20Gi}, accessModes: [ReadWriteOnce], "
                   "storageClassName: ssd, persistentVolumeReclaimPolicy: Delete, "
                   "claimRef: {kind: PersistentVolumeClaim, namespace: shop, name: data, uid: u1}, "
                   "csi: {driver: ebs.csi.aws.com, volumeHandle: vol-1, fsType: ext4}, "
                   "nodeAffinity: {required: {nodeSelectorTerms: [{matchExpressions: [{key: "
                   "topology.kubernetes.io/zone, operator: In, values: [us-east-1a]}]}]}}}"));
    const struct pv *pv = pv_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_STR(pv->spec.driver, "ebs.csi.aws.com");
    EXPECT_STR(pv->spec.maybe_csi->handle, "vol-1");
    EXPECT_EQ(pv->spec.reclaim_policy, RECLAIM_DELETE);
    EXPECT_STR(pv->spec.maybe_claim->name, "data");
    EXPECT_EQ(pv->spec.maybe_affinity->required.terms.count, 1);
    EXPECT_STR(
        pv->spec.maybe_affinity->required.terms.items[0].expressions.items[0].values.items[0],
        "us-east-1a");
}

/* Limits are counted per CSI driver, also for volumes that were made before there were any. */
TEST(volume_of_an_in_tree_plugin_names_the_driver_that_took_it_over)
{
    static const struct {
        const char *source, *driver;
    } cases[] = {
        { "awsElasticBlockStore: {volumeID: vol-1}", "ebs.csi.aws.com" },
        { "gcePersistentDisk: {pdName: d}", "pd.csi.storage.gke.io" },
        { "azureDisk: {diskName: d, diskURI: u}", "disk.csi.azure.com" },
        { "azureFile: {secretName: s, shareName: f}", "file.csi.azure.com" },
        { "cinder: {volumeID: v}", "cinder.csi.openstack.org" },
        { "vsphereVolume: {volumePath: p}", "csi.vsphere.vmware.com" },
        { "portworxVolume: {volumeID: v}", "pxd.portworx.com" },
        { "nfs: {server: s, path: /p}", "none" },
    };

    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF text = { 0 };
        buf_addf(&text, VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], %s}"),
                 cases[i].source);
        SAMPLE s;
        sample_decode(&s, text.p);
        EXPECT_STR(sample_problems(&s), "");
        struct str driver = pv_of(s.object)->spec.driver;
        EXPECT_STR(driver.p ? driver : STR("none"), cases[i].driver);
    }
}

TEST(volume_needs_capacity_modes_and_exactly_one_source)
{
    expect_problem(VOLUME("{accessModes: [ReadWriteOnce], csi: {driver: d, volumeHandle: h}}"),
                   "spec.capacity: required, missing");
    expect_problem(VOLUME("{capacity: {storage: 1Gi}, csi: {driver: d, volumeHandle: h}}"),
                   "spec.accessModes: required, missing");
    expect_problem(VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce]}"),
                   "spec: has no volume source");
    expect_problem(
        VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], hostPath: {path: "
               "/a}, csi: {driver: d, volumeHandle: h}}"),
        "spec: has several volume sources");
    expect_problem(VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], local: {path: "
                          "/a}}"),
                   "spec.nodeAffinity: is missing");
    expect_problem(
        VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: d}}"),
        "spec.csi.volumeHandle: required, missing");
}

TEST(volume_source_and_zone_can_not_be_changed)
{
    const char *a =
        VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: d, "
               "volumeHandle: h}}");
    const char *b =
        VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: d, "
               "volumeHandle: i}}");
    const char *zoned =
        VOLUME("{capacity: {storage: 1Gi}, accessModes: [ReadWriteOnce], csi: {driver: "
               "d, volumeHandle: h}, nodeAffinity: {required: {nodeSelectorTerms: "
               "[{matchExpressions: [{key: zone, operator: Exists}]}]}}}");

    expect_change(a, b, "spec: the volume's source can not be changed");
    expect_change(a, zoned, "");
    expect_change(zoned, a, "spec: nodeAffinity can not be changed once it is set");
}

TEST(storage_class_decodes_binding_and_topologies)
{
    SAMPLE s;
    sample_decode(&s, "apiVersion: storage.k8s.io/v1\n"
                      "kind: StorageClass\n"
                      "metadata:\n"
                      "  name: ssd\n"
                      "  annotations: {storageclass.kubernetes.io/is-default-class: 'true'}\n"
                      "provisioner: ebs.csi.aws.com\n"
                      "parameters: {type: gp3}\n"
                      "volumeBindingMode: WaitForFirstConsumer\n"
                      "allowedTopologies:\n"
                      "- matchLabelExpressions:\n"
                      "  - {key: topology.kubernetes.io/zone, values: [us-east-1a, us-east-1b]}\n");
    const struct storage_class *sc = storage_class_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_TRUE(storage_class_is_default(sc));
    EXPECT_TRUE(storage_class_waits(sc));
    EXPECT_EQ(sc->allowed_topologies.items[0].expressions.items[0].values.count, 2);
    EXPECT_STR(sample_default(&s, "reclaimPolicy"), "\"Delete\"");
}

TEST(storage_class_refuses_what_the_api_server_refuses)
{
    expect_problem(CLASS("parameters: {type: gp3}"), "provisioner: required, missing");
    expect_problem(CLASS("provisioner: a.b/c, reclaimPolicy: Recycle"),
                   "reclaimPolicy: expected one of \"Retain\", \"Delete\"");
    expect_problem(CLASS("provisioner: a.b/c, parameters: {iops: 3000}"),
                   "parameters[\"iops\"]: expected a string");
    expect_problem(CLASS("provisioner: a.b/c, volumeBindingMode: WaitForConsumer"),
                   "volumeBindingMode: expected one of");
    expect_problem(
        CLASS("provisioner: a.b/c, allowedTopologies: [{matchLabelExpressions: [{key: z, "
              "values: []}]}]"),
        "allowedTopologies[0].matchLabelExpressions[0].values: has 0 items");
}

TEST(storage_class_can_not_be_changed_except_for_expansion)
{
    const char *old =
        CLASS("provisioner: a.b/c, parameters: {type: x}, allowVolumeExpansion: false");

    expect_change(
        old, CLASS("provisioner: a.b/c, parameters: {type: x}, allowVolumeExpansion: true"), "");
    expect_change(old, CLASS("provisioner: a.b/d, parameters: {type: x}"),
                  "provisioner can not be changed");
    expect_change(old, CLASS("provisioner: a.b/c"), "parameters can not be changed");
}

TEST(csi_node_decodes_limits_and_finds_drivers)
{
    SAMPLE s;
    sample_decode(&s, "{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n1}, spec: "
                      "{drivers: [{name: ebs.csi.aws.com, nodeID: i-1, topologyKeys: "
                      "[topology.kubernetes.io/zone], allocatable: {count: 25}}, {name: "
                      "efs.csi.aws.com, nodeID: i-1, topologyKeys: null}]}}");
    const struct csi_node *node = csi_node_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_EQ(csi_node_driver(node, STR("ebs.csi.aws.com"))->allocatable.count.value, 25);
    EXPECT_FALSE(csi_node_driver(node, STR("efs.csi.aws.com"))->allocatable.count.set);
    EXPECT_TRUE(csi_node_driver(node, STR("x")) == NULL);
}

TEST(csi_node_drivers_are_unique_and_limits_not_negative)
{
    expect_problem("{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n1}, spec: "
                   "{drivers: [{name: a.b, nodeID: i}, {name: a.b, nodeID: j}]}}",
                   "spec.drivers[1]: duplicate");
    expect_problem("{apiVersion: storage.k8s.io/v1, kind: CSINode, metadata: {name: n1}, spec: "
                   "{drivers: [{name: a.b, nodeID: i, allocatable: {count: -1}}]}}",
                   "spec.drivers[0].allocatable.count: expected 0 to");
}

TEST(attachment_decodes_and_is_found_by_node)
{
    SAMPLE s;
    sample_decode(&s, "{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: "
                      "csi-1}, spec: {attacher: ebs.csi.aws.com, nodeName: n1, source: "
                      "{persistentVolumeName: pv1}}, status: {attached: true, attachmentMetadata: "
                      "{devicePath: /dev/xvdf}}}");
    const struct volume_attachment *va = volume_attachment_of(s.object);

    EXPECT_STR(sample_problems(&s), "");
    EXPECT_TRUE(va->status.attached);
    EXPECT_STR(va->spec.source.volume_name, "pv1");
    EXPECT_STR(object_field(s.object, STR("spec.nodeName")), "n1");
}

TEST(attachment_has_one_source_and_a_fixed_spec)
{
    const char *none =
        "{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: a}, "
        "spec: {attacher: a.b, nodeName: n1, source: {}}}";
    const char *one =
        "{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: a}, "
        "spec: {attacher: a.b, nodeName: n1, source: {persistentVolumeName: p}}}";
    const char *other =
        "{apiVersion: storage.k8s.io/v1, kind: VolumeAttachment, metadata: {name: a}, "
        "spec: {attacher: a.b, nodeName: n2, source: {persistentVolumeName: p}}}";

    expect_problem(none, "spec.source: expected exactly one of");
    expect_fine(one);
    expect_change(one, other, "spec can not be changed");
}

TEST(provisioners_of_in_tree_plugins_are_drivers_too)
{
    EXPECT_STR(storage_driver(STR("kubernetes.io/aws-ebs")), "ebs.csi.aws.com");
    EXPECT_STR(storage_driver(STR("efs.csi.aws.com")), "efs.csi.aws.com");
}
