#include "sim/binder.h"

#include "api/policy.h"
#include "api/storage.h"
#include "store/testing.h"

struct lab {
    struct world *w;
    struct binder *binder;
    const struct store *store;
};

static struct lab *lab_new(void)
{
    struct lab *l = kv_calloc(1, sizeof *l);
    l->w = world_new((struct embedded_options){ .seed = 7 });
    l->store = l->w->store;
    l->binder = binder_new((struct binder_options){
        .clock = virtual_clock_port(l->w->time), .store = l->store, .seed = 1, .doubt = true });
    return l;
}

static void lab_free(struct lab *l)
{
    if (binder_disagreement(l->binder))
        printf("# %s\n", binder_disagreement(l->binder));
    EXPECT_EQ(binder_stats(l->binder).disagreements, 0);
    binder_free(l->binder);
    world_free(l->w);
    free(l);
}
KV_AUTO_TYPE(lab, lab_free)

static int64_t step(struct lab *l)
{
    return binder_step(l->binder);
}

static int64_t pass(struct lab *l, int64_t seconds)
{
    virtual_clock_advance(l->w->time, seconds * SECOND_NS);
    return step(l);
}

/* `more` comes in the spec. */
static void node(struct lab *l, const char *name, const char *zone, int cpu, const char *more)
{
    object_unref(make(l->store, &node_kind,
                      js("{'metadata':{'name':'%s','labels':{'kubernetes.io/hostname':'%s',"
                         "'topology.kubernetes.io/zone':'%s'}},'spec':{%s},'status':{"
                         "'allocatable':{'cpu':'%d','memory':'%dGi','pods':'10'}}}",
                         name, name, zone, more, cpu, cpu)));
}

static void pod(struct lab *l, const char *name, const char *labels, const char *cpu,
                const char *more)
{
    object_unref(make(l->store, &pod_kind,
                      js("{'metadata':{'name':'%s','labels':{%s}},'spec':{%s'containers':[{'name':"
                         "'c','image':'i','resources':{'requests':{'cpu':'%s'}}}]}}",
                         name, labels, more, cpu)));
}

static const char *home(struct lab *l, const char *name)
{
    static char texts[4][100];
    static unsigned next;
    char *text = texts[next++ % 4];
    AUTO_OBJECT object = get(l->store, &pod_kind, name);
    snprintf(text, sizeof texts[0], "%.*s", STR_ARG(pod_of(object)->node_name));
    return text;
}

static const char *message(struct lab *l, const char *name)
{
    static char text[600];
    AUTO_OBJECT object = get(l->store, &pod_kind, name);
    const struct pod_condition *c = pod_condition(pod_of(object), STR("PodScheduled"));
    if (!c)
        return "no condition";
    snprintf(text, sizeof text, "%.*s: %.*s", STR_ARG(c->reason), STR_ARG(c->message));
    return text;
}

/* --- resources, order and choice --- */

TEST(a_pod_goes_to_the_emptiest_node_and_by_name_among_equals)
{
    AUTO(lab) l = lab_new();
    node(l, "b", "z", 4, "");
    node(l, "a", "z", 4, "");
    node(l, "c", "z", 2, "");
    pod(l, "p1", "", "1", "");
    pod(l, "p2", "", "1", "");
    pod(l, "p3", "", "1", "");
    step(l);
    EXPECT_Z(home(l, "p1"), "a");
    EXPECT_Z(home(l, "p2"), "b");
    EXPECT_Z(home(l, "p3"), "a"); /* both at half, as is c: by name */
    EXPECT_EQ(binder_stats(l->binder).bound, 3);
}

TEST(what_does_not_fit_is_unschedulable_and_told_why)
{
    AUTO(lab) l = lab_new();
    node(l, "small", "z", 1, "");
    node(l, "tainted", "z", 8, "'taints':[{'key':'gpu','value':'yes','effect':'NoSchedule'}]");
    node(l, "cordoned", "z", 8, "'unschedulable':true");
    pod(l, "big", "", "2", "");
    pod(l, "picky", "", "1", "'nodeSelector':{'disk':'ssd'},");
    step(l);
    EXPECT_Z(
        message(l, "big"),
        "Unschedulable: 0/3 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated "
        "taint {gpu: yes}, 1 node(s) were unschedulable.");
    EXPECT_Z(message(l, "picky"),
             "Unschedulable: 0/3 nodes are available: 1 node(s) didn't match Pod's node "
             "affinity/selector, 1 node(s) had untolerated taint {gpu: yes}, 1 node(s) were "
             "unschedulable.");
    EXPECT_EQ(binder_stats(l->binder).refused, 2);
}

TEST(without_nodes_pods_are_unschedulable)
{
    AUTO(lab) l = lab_new();
    pod(l, "p", "", "1", "");
    step(l);
    EXPECT_Z(message(l, "p"),
             "Unschedulable: 0/0 nodes are available: no nodes available to schedule pods.");
}

TEST(a_node_takes_so_many_pods_and_no_more)
{
    AUTO(lab) l = lab_new();
    char name[8];
    node(l, "n", "z", 8, "");
    for (int i = 0; i < 11; i++) {
        snprintf(name, sizeof name, "p%02d", i);
        pod(l, name, "", "1m", "");
    }
    step(l);
    EXPECT_Z(home(l, "p09"), "n");
    EXPECT_Z(message(l, "p10"), "Unschedulable: 0/1 nodes are available: 1 Too many pods.");
}

TEST(priority_comes_first_then_age)
{
    AUTO(lab) l = lab_new();
    object_unref(make(l->store, &priority_class_kind, js("{'metadata':{'name':'vip'},'value':9}")));
    pod(l, "old", "", "1", "");
    virtual_clock_advance(l->w->time, SECOND_NS);
    pod(l, "a-young", "", "1", "");
    pod(l, "vip", "", "1", "'priorityClassName':'vip',");
    node(l, "n", "z", 1, "");
    step(l);
    EXPECT_Z(home(l, "vip"), "n");
    node(l, "m", "z", 1, "");
    step(l);
    EXPECT_Z(home(l, "old"), "m");
    EXPECT_Z(home(l, "a-young"), "");
}

TEST(pods_that_are_not_for_us_are_left_alone)
{
    AUTO(lab) l = lab_new();
    node(l, "n", "z", 8, "");
    pod(l, "gated", "", "1", "'schedulingGates':[{'name':'wait'}],");
    pod(l, "other", "", "1", "'schedulerName':'mine',");
    step(l);
    EXPECT_Z(home(l, "gated"), "");
    EXPECT_Z(home(l, "other"), "");
    EXPECT_Z(message(l, "other"), "no condition");
    object_unref(merge(l->store, &pod_kind, "gated", js("{'spec':{'schedulingGates':null}}")));
    step(l);
    EXPECT_Z(home(l, "gated"), "n");
}

/* --- what helps --- */

TEST(a_waiting_pod_is_bound_once_something_helps)
{
    static const struct {
        const char *what;
        const char *patch; /* of the node */
    } cases[] = {
        { "taint goes", "{'spec':{'taints':null}}" },
        { "label comes", "{'metadata':{'labels':{'disk':'ssd'}}}" },
        { "node grows", NULL },
        { "pod ends", NULL },
        { "pod goes", NULL },
        { "node comes", NULL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(lab) l = lab_new();
        node(l, "n", "z", 1, i == 0 ? "'taints':[{'key':'x','effect':'NoExecute'}]" : "");
        if (i > 1)
            pod(l, "first", "", "1", "");
        step(l);
        virtual_clock_advance(l->w->time, SECOND_NS);
        pod(l, "second", "", "1", i == 1 ? "'nodeSelector':{'disk':'ssd'}," : "");
        step(l);
        EXPECT_Z(home(l, "second"), "");
        if (cases[i].patch)
            object_unref(merge(l->store, &node_kind, "n", js("%s", cases[i].patch)));
        else if (i == 2)
            object_unref(merge_status(l->store, &node_kind, "n",
                                      js("{'status':{'allocatable':{'cpu':'2'}}}")));
        else if (i == 3)
            set_pod(l->store, "first", "Succeeded", false);
        else if (i == 4) {
            struct err err = { 0 };
            struct delete_options now = { .grace_s = { 0, true } };
            EXPECT_OK(store_remove(l->store, at(&pod_kind, "first"), &now, &err), err);
        } else
            node(l, "m", "z", 1, "");
        step(l);
        EXPECT_TRUE(home(l, "second")[0] != 0);
    }
}

TEST(a_pod_that_is_being_deleted_takes_room_until_it_is_gone)
{
    AUTO(lab) l = lab_new();
    node(l, "n", "z", 1, "");
    pod(l, "first", "", "1", "");
    step(l);
    remove_it(l->store, &pod_kind, "first");
    pod(l, "second", "", "1", "");
    step(l);
    EXPECT_Z(home(l, "second"), "");
}

TEST(nothing_is_written_when_nothing_changes_and_words_change_rarely)
{
    AUTO(lab) l = lab_new();
    node(l, "n", "z", 1, "");
    pod(l, "p", "", "2", "");
    EXPECT_EQ(step(l), INT64_MAX);
    uint64_t version = embedded_version(l->w->e);
    EXPECT_EQ(pass(l, 1), INT64_MAX);
    EXPECT_EQ(embedded_version(l->w->e), version);

    node(l, "m", "z", 1, "");
    version = embedded_version(l->w->e);
    pass(l, 1); /* no help, and "0/2" is not worth a write */
    EXPECT_EQ(embedded_version(l->w->e), version);
    EXPECT_HAS(str_of(message(l, "p")), "0/1");
}

/* --- ports, affinity, topology --- */

TEST(a_host_port_is_taken_once_per_node)
{
    AUTO(lab) l = lab_new();
    node(l, "n", "z", 8, "");
    for (int i = 0; i < 2; i++)
        object_unref(make(l->store, &pod_kind,
                          js("{'metadata':{'name':'p%d'},'spec':{'containers':[{'name':'c','image':"
                             "'i','ports':[{'containerPort':80,'hostPort':8080}]}]}}",
                             i)));
    step(l);
    EXPECT_Z(home(l, "p0"), "n");
    EXPECT_HAS(str_of(message(l, "p1")), "1 node(s) didn't have free ports");
}

#define SPREAD(key, skew)                                                                          \
    "'topologySpreadConstraints':[{'maxSkew':" #skew ",'topologyKey':'" key                        \
    "','whenUnsatisfiable':'DoNotSchedule','labelSelector':{'matchLabels':{'app':'web'}}}],"
#define ZONE "topology.kubernetes.io/zone"
#define HOST "kubernetes.io/hostname"

TEST(a_spread_keeps_its_skew_over_zones)
{
    AUTO(lab) l = lab_new();
    char name[8];
    node(l, "a1", "a", 8, "");
    node(l, "a2", "a", 8, "");
    node(l, "b1", "b", 2, "");
    for (int i = 0; i < 6; i++) {
        snprintf(name, sizeof name, "p%d", i);
        pod(l, name, "'app':'web'", "1", SPREAD(ZONE, 1));
    }
    step(l);
    /* Two fit on b1, so three in zone a. */
    EXPECT_EQ(binder_stats(l->binder).bound, 5);
    EXPECT_HAS(str_of(message(l, "p5")),
               "1 Insufficient cpu, 2 node(s) didn't match pod topology spread constraints");
    /* Without zone b nothing is uneven any more. */
    remove_it(l->store, &node_kind, "b1");
    step(l);
    EXPECT_EQ(binder_stats(l->binder).bound, 6);
}

#define AFFINITY(kind, key, app)                                                                   \
    "'affinity':{'" kind                                                                           \
    "':{'requiredDuringSchedulingIgnoredDuringExecution':[{'topologyKey':'" key                    \
    "','labelSelector':{'matchLabels':{'app':'" app "'}}}]}},"

TEST(pods_of_an_anti_affinity_are_one_per_host_and_keep_others_away)
{
    AUTO(lab) l = lab_new();
    node(l, "n1", "z", 8, "");
    node(l, "n2", "z", 8, "");
    pod(l, "p1", "'app':'web'", "1", AFFINITY("podAntiAffinity", HOST, "web"));
    pod(l, "p2", "'app':'web'", "1", AFFINITY("podAntiAffinity", HOST, "web"));
    pod(l, "p3", "'app':'web'", "1", AFFINITY("podAntiAffinity", HOST, "web"));
    pod(l, "plain", "'app':'web'", "1", "");
    step(l);
    EXPECT_Z(home(l, "p1"), "n1");
    EXPECT_Z(home(l, "p2"), "n2");
    EXPECT_HAS(str_of(message(l, "p3")), "2 node(s) didn't match pod anti-affinity rules");
    EXPECT_HAS(str_of(message(l, "plain")),
               "2 node(s) didn't satisfy existing pods anti-affinity rules");
    struct err err = { 0 };
    struct delete_options now = { .grace_s = { 0, true } };
    EXPECT_OK(store_remove(l->store, at(&pod_kind, "p1"), &now, &err), err);
    remove_it(l->store, &pod_kind, "p3");
    step(l);
    EXPECT_Z(home(l, "plain"), "n1");
}

TEST(an_anti_affinity_ends_with_the_node_that_its_pod_is_on)
{
    AUTO(lab) l = lab_new();
    node(l, "n1", "z", 1, "");
    node(l, "n2", "z", 1, "");
    pod(l, "loner", "'app':'loner'", "1", AFFINITY("podAntiAffinity", ZONE, "web"));
    step(l);
    pod(l, "web", "'app':'web'", "1", "");
    step(l);
    EXPECT_HAS(str_of(message(l, "web")), "existing pods anti-affinity rules");
    remove_it(l->store, &node_kind, home(l, "loner"));
    step(l);
    EXPECT_Z(home(l, "web"), "n2");
}

TEST(pods_follow_those_they_want_to_be_near)
{
    AUTO(lab) l = lab_new();
    node(l, "a1", "a", 8, "");
    node(l, "b1", "b", 8, "");
    pod(l, "client", "'app':'client'", "1", AFFINITY("podAffinity", ZONE, "db"));
    step(l);
    EXPECT_HAS(str_of(message(l, "client")), "2 node(s) didn't match pod affinity rules");
    pod(l, "db", "'app':'db'", "1", "'nodeSelector':{'" ZONE "':'b'},");
    step(l);
    EXPECT_Z(home(l, "db"), "b1");
    EXPECT_Z(home(l, "client"), "b1"); /* in the same step: the binding itself helps */
    pod(l, "alone", "'app':'alone'", "1", AFFINITY("podAffinity", ZONE, "alone"));
    step(l);
    EXPECT_TRUE(home(l, "alone")[0] != 0); /* the first of its kind */
}

TEST(namespace_selectors_follow_the_labels_of_namespaces)
{
    AUTO(lab) l = lab_new();
    node(l, "n", "z", 8, "");
    object_unref(make(l->store, &namespace_kind, js("{'metadata':{'name':'shop'}}")));
    object_unref(make(l->store, &pod_kind,
                      js("{'metadata':{'name':'db','namespace':'shop','labels':{'app':'db'}},"
                         "'spec':{'containers':[{'name':'c','image':'i'}]}}")));
    pod(l, "near", "", "1",
        "'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':[{"
        "'topologyKey':'" HOST "','labelSelector':{'matchLabels':{'app':'db'}},"
        "'namespaceSelector':{'matchLabels':{'team':'a'}}}]}},");
    step(l);
    EXPECT_Z(home(l, "near"), "");
    object_unref(
        merge(l->store, &namespace_kind, "shop", js("{'metadata':{'labels':{'team':'a'}}}")));
    step(l);
    EXPECT_Z(home(l, "near"), "n");
}

TEST(a_daemons_pod_goes_to_its_node_and_no_other)
{
    AUTO(lab) l = lab_new();
    node(l, "big", "z", 8, "");
    node(l, "mine", "z", 1, "'unschedulable':true");
    pod(l, "d", "", "1",
        "'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':{"
        "'nodeSelectorTerms':[{'matchFields':[{'key':'metadata.name','operator':'In','values':["
        "'mine']}]}]}}},'tolerations':[{'operator':'Exists'}],");
    step(l);
    EXPECT_Z(home(l, "d"), "mine");
}

/* --- volumes --- */

static void claim(struct lab *l, const char *name, const char *class, const char *more)
{
    object_unref(make(l->store, &pvc_kind,
                      js("{'metadata':{'name':'%s'},'spec':{'accessModes':['ReadWriteOnce'],"
                         "'resources':{'requests':{'storage':'1Gi'}},'storageClassName':'%s'%s}}",
                         name, class, more)));
}

#define USES(claim) "'volumes':[{'name':'v','persistentVolumeClaim':{'claimName':'" claim "'}}],"

TEST(volumes_decide_where_a_pod_can_be)
{
    AUTO(lab) l = lab_new();
    node(l, "a1", "a", 8, "");
    node(l, "b1", "b", 8, "");
    object_unref(make(l->store, &storage_class_kind,
                      js("{'metadata':{'name':'wait'},'provisioner':'ebs.csi.aws.com',"
                         "'volumeBindingMode':'WaitForFirstConsumer','allowedTopologies':[{"
                         "'matchLabelExpressions':[{'key':'" ZONE "','values':['b']}]}]}")));
    object_unref(make(l->store, &storage_class_kind,
                      js("{'metadata':{'name':'now'},'provisioner':'ebs.csi.aws.com'}")));
    object_unref(make(
        l->store, &pv_kind,
        js("{'metadata':{'name':'disk'},'spec':{'capacity':{'storage':'1Gi'},'accessModes':["
           "'ReadWriteOnce'],'csi':{'driver':'ebs.csi.aws.com','volumeHandle':'v'},"
           "'nodeAffinity':{'required':{'nodeSelectorTerms':[{'matchExpressions':[{'key':'" ZONE
           "','operator':'In','values':['b']}]}]}}}}")));
    claim(l, "waits", "wait", "");
    claim(l, "unbound", "now", "");
    claim(l, "bound", "now", ",'volumeName':'disk'");
    pod(l, "p-waits", "", "1", USES("waits"));
    pod(l, "p-unbound", "", "1", USES("unbound"));
    pod(l, "p-bound", "", "1", USES("bound"));
    pod(l, "p-missing", "", "1", USES("missing"));
    step(l);
    EXPECT_Z(home(l, "p-waits"), "b1");
    EXPECT_Z(home(l, "p-bound"), "b1");
    EXPECT_HAS(str_of(message(l, "p-unbound")), "unbound immediate PersistentVolumeClaims");
    EXPECT_HAS(str_of(message(l, "p-missing")), "persistentvolumeclaim not found");
    claim(l, "missing", "wait", "");
    step(l);
    EXPECT_Z(home(l, "p-missing"), "b1");
}

TEST(a_csi_node_takes_so_many_volumes)
{
    AUTO(lab) l = lab_new();
    node(l, "n", "z", 8, "");
    object_unref(make(l->store, &csi_node_kind,
                      js("{'metadata':{'name':'n'},'spec':{'drivers':[{'name':'ebs.csi.aws.com',"
                         "'nodeID':'i','allocatable':{'count':1}}]}}")));
    object_unref(make(l->store, &storage_class_kind,
                      js("{'metadata':{'name':'wait'},'provisioner':'ebs.csi.aws.com',"
                         "'volumeBindingMode':'WaitForFirstConsumer'}")));
    claim(l, "one", "wait", "");
    claim(l, "two", "wait", "");
    pod(l, "p1", "", "1", USES("one"));
    pod(l, "p2", "", "1", USES("two"));
    pod(l, "p3", "", "1", USES("one"));
    step(l);
    EXPECT_Z(home(l, "p1"), "n");
    EXPECT_HAS(str_of(message(l, "p2")), "1 node(s) exceed max volume count");
    EXPECT_Z(home(l, "p3"), "n"); /* the same one again */
}

/* --- in numbers --- */

TEST(equal_worlds_give_equal_bindings)
{
    char first[600] = "";
    for (int round = 0; round < 2; round++) {
        AUTO(lab) l = lab_new();
        char name[8], all[600] = "";
        for (int i = 0; i < 7; i++) {
            snprintf(name, sizeof name, "n%d", i);
            node(l, name, i % 2 ? "a" : "b", 1 + i % 3, "");
        }
        for (int i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "p%02d", i);
            pod(l, name, "'app':'web'", "500m", i % 3 ? "" : SPREAD(ZONE, 1));
        }
        step(l);
        for (int i = 0; i < 20; i++) {
            snprintf(name, sizeof name, "p%02d", i);
            strcat(strcat(all, home(l, name)), " ");
        }
        if (round)
            EXPECT_Z(all, first);
        strcpy(first, all);
    }
}

TEST(a_binder_that_starts_anew_counts_what_is_there)
{
    AUTO(lab) l = lab_new();
    node(l, "n", "z", 2, "");
    pod(l, "p1", "", "1", "");
    step(l);
    pod(l, "p2", "", "1", "");
    pod(l, "p3", "", "1", "");
    binder_free(l->binder);
    l->binder = binder_new((struct binder_options){
        .clock = virtual_clock_port(l->w->time), .store = l->store, .seed = 2, .doubt = true });
    step(l);
    EXPECT_Z(home(l, "p2"), "n");
    EXPECT_Z(home(l, "p3"), "");
}
