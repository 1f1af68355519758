#include "sim/kubelet_testing.h"

#include "api/storage.h"

static void add_class(struct ground *g, const char *name, const char *mode)
{
    object_unref(make(g->store, &storage_class_kind,
                      js("{'metadata':{'name':'%s'},'provisioner':'ebs.csi.aws.com',"
                         "'volumeBindingMode':'%s'}",
                         name, mode)));
}

static void add_claim(struct ground *g, const char *name, const char *class_)
{
    object_unref(make(g->store, &pvc_kind,
                      js("{'metadata':{'name':'%s'},'spec':{'accessModes':['ReadWriteOnce'],"
                         "'storageClassName':'%s','resources':{'requests':{'storage':'1Gi'}}}}",
                         name, class_)));
}

#define DATA ",'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'data'}}]"

/* The zone of the volume that the claim has: "" if it has none. */
static const char *zone_of(struct ground *g, const char *claim)
{
    static char text[64];
    AUTO_OBJECT object = get(g->store, &pvc_kind, claim);
    if (!pvc_is_bound(pvc_of(object)))
        return "";
    EXPECT_EQ(pvc_of(object)->status.phase, PVC_BOUND);
    AUTO_OBJECT volume = NULL;
    struct err err = { 0 };
    struct object_ref ref = { &pv_kind, STR(""), pvc_of(object)->spec.volume_name };
    EXPECT_OK(store_get(g->store, ref, &volume, &err), err);
    const struct pv *pv = pv_of(volume);
    EXPECT_EQ(pv->status.phase, PV_BOUND);
    EXPECT_STR(pv->spec.driver, "ebs.csi.aws.com");
    EXPECT_TRUE(str_eq(pv->spec.maybe_claim->uid, object->meta.uid));
    struct str zone =
        pv->spec.maybe_affinity
            ? pv->spec.maybe_affinity->required.terms.items[0].expressions.items[0].values.items[0]
            : STR("any");
    snprintf(text, sizeof text, "%.*s", STR_ARG(zone));
    return text;
}

TEST(a_claim_that_waits_gets_a_volume_in_the_zone_of_its_first_pod)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "m");
    ready_node(g, "n");
    add_class(g, "wait", "WaitForFirstConsumer");
    add_claim(g, "data", "wait");
    run(g, 10);
    EXPECT_Z(zone_of(g, "data"), "");
    add_pod(g, "p", "n", "", DATA);
    run(g, 0);
    EXPECT_Z(zone_of(g, "data"), "n-zone");
    run(g, 2);
    EXPECT_Z(state_of(g, "p"), "Running");
}

TEST(an_immediate_claim_gets_a_volume_at_once_even_if_its_class_comes_later)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_claim(g, "data", "now");
    run(g, 10);
    EXPECT_Z(zone_of(g, "data"), "");
    add_class(g, "now", "Immediate");
    run(g, 0);
    EXPECT_Z(zone_of(g, "data"), "n-zone");
}

TEST(a_pod_without_its_claim_waits_for_it)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_class(g, "wait", "WaitForFirstConsumer");
    add_pod(g, "p", "n", "", DATA);
    run(g, 100);
    EXPECT_Z(state_of(g, "p"), "Pending");
    add_claim(g, "data", "wait");
    run(g, 2);
    EXPECT_Z(state_of(g, "p"), "Running");
}

TEST(volumes_are_attached_while_a_pod_of_the_node_uses_them)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_class(g, "wait", "WaitForFirstConsumer");
    add_claim(g, "data", "wait");
    add_pod(g, "p", "n", "", DATA);
    add_pod(g, "q", "n", "", DATA);
    run(g, 2);
    struct object_list all = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(g->store, &volume_attachment_kind, NULL, &all, &err), err);
    EXPECT_EQ(all.count, 1);
    const struct volume_attachment *va = volume_attachment_of(all.items[0]);
    EXPECT_STR(va->spec.node_name, "n");
    EXPECT_STR(va->spec.attacher, "ebs.csi.aws.com");
    EXPECT_TRUE(va->status.attached);
    object_list_done(&all);
    remove_it(g->store, &pod_kind, "p");
    run(g, 10);
    EXPECT_EQ(count_of(g, &volume_attachment_kind), 1);
    remove_it(g->store, &pod_kind, "q");
    run(g, 4);
    EXPECT_EQ(count_of(g, &volume_attachment_kind), 1);
    run(g, 1);
    EXPECT_EQ(count_of(g, &volume_attachment_kind), 0);
    EXPECT_EQ(count_of(g, &pv_kind), 1);
    remove_it(g->store, &pvc_kind, "data");
    run(g, 0);
    EXPECT_EQ(count_of(g, &pv_kind), 0);
}

TEST(a_volume_for_one_node_is_waited_for_until_the_other_node_lets_go)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "m");
    ready_node(g, "n");
    add_class(g, "wait", "WaitForFirstConsumer");
    add_claim(g, "data", "wait");
    add_pod(g, "p", "n", "", DATA);
    add_pod(g, "q", "m", "", DATA);
    run(g, 20);
    EXPECT_Z(state_of(g, "p"), "Running");
    EXPECT_Z(state_of(g, "q"), "Pending");
    remove_it(g->store, &pod_kind, "p");
    run(g, 7);
    EXPECT_Z(state_of(g, "q"), "Running");
    EXPECT_EQ(count_of(g, &volume_attachment_kind), 1);
}

TEST(claims_of_a_pods_own_templates_come_and_go_with_it)
{
    AUTO(ground) g = ground_new();
    ready_node(g, "n");
    add_class(g, "wait", "WaitForFirstConsumer");
    add_pod(g, "p", "n", "",
            ",'volumes':[{'name':'v','ephemeral':{'volumeClaimTemplate':{'spec':{'accessModes':"
            "['ReadWriteOnce'],'storageClassName':'wait','resources':{'requests':{'storage':"
            "'1Gi'}}}}}}]");
    run(g, 2);
    EXPECT_Z(state_of(g, "p"), "Running");
    EXPECT_Z(zone_of(g, "p-v"), "n-zone");
    EXPECT_EQ(count_of(g, &volume_attachment_kind), 1);
    remove_it(g->store, &pod_kind, "p");
    run(g, 10);
    EXPECT_EQ(count_of(g, &pvc_kind), 0);
    EXPECT_EQ(count_of(g, &pv_kind), 0);
    EXPECT_EQ(count_of(g, &volume_attachment_kind), 0);
}
