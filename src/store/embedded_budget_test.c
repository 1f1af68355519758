/* The parts of the control plane that the embedded store plays: namespaces, garbage, budgets. */
#include "api/policy.h"
#include "api/workloads.h"
#include "base/rng.h"
#include "store/testing.h"

/* --- namespaces, garbage --- */

TEST(a_namespace_goes_after_its_contents_and_those_after_its_pods)
{
    AUTO(world) w = world_new((struct embedded_options){ .auto_namespaces = true });
    struct err err = { 0 };
    EXPECT_OK(store_create(w->store, &pod_kind, STR("team"),
                           js("{'metadata':{'name':'p'},"
                              "'spec':{'nodeName':'n','containers':[{'name':'c','image':'i'}]}}"),
                           NULL, &err),
              err);
    EXPECT_OK(store_create(w->store, &lease_kind, STR("team"), js("{'metadata':{'name':'l'}}"),
                           NULL, &err),
              err);
    remove_it(w->store, &namespace_kind, "team");
    AUTO_OBJECT going = get(w->store, &namespace_kind, "team");
    EXPECT_EQ(namespace_of(going)->status.phase, NAMESPACE_TERMINATING);
    struct object_ref lease = { &lease_kind, STR("team"), STR("l") };
    EXPECT_OK(store_get(w->store, lease, NULL, &err), err);
    EXPECT_ERR(store_create(w->store, &lease_kind, STR("team"), js("{'metadata':{'name':'m'}}"),
                            NULL, &err),
               err, ERR_DENIED);

    struct object_ref pod = { &pod_kind, STR("team"), STR("p") };
    struct delete_options now = { .grace_s = { 0, true } };
    EXPECT_OK(store_remove(w->store, pod, &now, &err), err);
    EXPECT_ERR(store_get(w->store, lease, NULL, &err), err, ERR_NOT_FOUND);
    EXPECT_FALSE(is_there(w->store, &namespace_kind, "team"));
    EXPECT_ERR(store_remove(w->store, at(&namespace_kind, "default"), NULL, &err), err, ERR_DENIED);
}

TEST(a_namespace_outlives_its_finalizers_while_it_has_contents)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct err err = { 0 };
    struct delete_options now = { .grace_s = { 0, true } };
    struct object_ref pod = { &pod_kind, STR("team"), STR("p") };
    object_unref(make(w->store, &namespace_kind,
                      js("{'metadata':{'name':'team','finalizers':['example.com/hold']}}")));
    EXPECT_OK(store_create(w->store, &pod_kind, STR("team"),
                           js("{'metadata':{'name':'p'},"
                              "'spec':{'nodeName':'n','containers':[{'name':'c','image':'i'}]}}"),
                           NULL, &err),
              err);
    remove_it(w->store, &namespace_kind, "team");
    object_unref(merge(w->store, &namespace_kind, "team", js("{'metadata':{'finalizers':null}}")));
    EXPECT_TRUE(is_there(w->store, &namespace_kind, "team"));
    EXPECT_OK(store_remove(w->store, pod, &now, &err), err);
    EXPECT_FALSE(is_there(w->store, &namespace_kind, "team"));

    /* Empty, it goes with its last finalizer. */
    object_unref(make(w->store, &namespace_kind,
                      js("{'metadata':{'name':'team','finalizers':['example.com/hold']}}")));
    remove_it(w->store, &namespace_kind, "team");
    EXPECT_TRUE(is_there(w->store, &namespace_kind, "team"));
    object_unref(merge(w->store, &namespace_kind, "team", js("{'metadata':{'finalizers':null}}")));
    EXPECT_FALSE(is_there(w->store, &namespace_kind, "team"));
}

TEST(a_full_collection_finds_what_never_had_its_owner)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    object_unref(make(w->store, &lease_kind,
                      js("{'metadata':{'name':'orphan','ownerReferences':[{'apiVersion':'v1',"
                         "'kind':'Node','name':'gone','uid':'u-1'}]}}")));
    object_unref(make(w->store, &lease_kind,
                      js("{'metadata':{'name':'foreign','ownerReferences':[{'apiVersion':"
                         "'example.com/v1','kind':'Unknown','name':'x','uid':'u-2'}]}}")));
    EXPECT_TRUE(is_there(w->store, &lease_kind, "orphan"));
    embedded_gc(w->e);
    EXPECT_FALSE(is_there(w->store, &lease_kind, "orphan"));
    EXPECT_TRUE(is_there(w->store, &lease_kind, "foreign")); /* who knows */
}

/* --- budgets --- */

struct budget_case {
    const char *spec;
    int pods, ready;
    int64_t replicas; /* of the ReplicaSet; negative: the pods have none */
    int64_t expected, desired, allowed;
};

static void check_budget(const struct budget_case *t)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    char owner[300] = "";
    if (t->replicas >= 0) {
        AUTO_OBJECT rs =
            make(w->store, &replica_set_kind,
                 js("{'metadata':{'name':'rs'},'spec':{'replicas':%lld,'selector':{'matchLabels':"
                    "{'app':'web'}},'template':{'metadata':{'labels':{'app':'web'}},"
                    "'spec':{'containers':[{'name':'c','image':'i'}]}}}}",
                    (long long)t->replicas));
        snprintf(owner, sizeof owner,
                 ",'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'rs',"
                 "'uid':'%.*s','controller':true}]",
                 STR_ARG(rs->meta.uid));
    }
    object_unref(make(w->store, &pdb_kind,
                      js("{'metadata':{'name':'b'},'spec':{%s,'selector':{'matchLabels':"
                         "{'app':'web'}}}}",
                         t->spec)));
    for (int i = 0; i < t->pods; i++) {
        char name[16];
        snprintf(name, sizeof name, "p%d", i);
        object_unref(make(w->store, &pod_kind,
                          js("{'metadata':{'name':'%s','labels':{'app':'web'}%s},"
                             "'spec':{'containers':[{'name':'c','image':'i'}]}}",
                             name, owner)));
        bind_pod(w->store, name, "n");
        set_pod(w->store, name, "Running", i < t->ready);
    }
    AUTO_OBJECT object = get(w->store, &pdb_kind, "b");
    const struct pdb_status *status = &pdb_of(object)->status;
    EXPECT_EQ(status->expected_pods, t->expected);
    EXPECT_EQ(status->desired_healthy, t->desired);
    EXPECT_EQ(status->current_healthy, t->ready);
    EXPECT_EQ(status->disruptions_allowed, t->allowed);
    EXPECT_EQ(status->conditions.items[0].status,
              t->allowed > 0 ? CONDITION_TRUE : CONDITION_FALSE);
}

TEST(budgets_count_as_the_disruption_controller_does)
{
    static const struct budget_case cases[] = {
        { "'minAvailable':2", 3, 3, -1, 3, 2, 1 },
        { "'minAvailable':2", 3, 2, -1, 3, 2, 0 },
        { "'minAvailable':0", 2, 2, -1, 2, 0, 2 },
        { "'minAvailable':5", 3, 3, -1, 3, 5, 0 },
        { "'minAvailable':'50%'", 3, 3, 3, 3, 2, 1 }, /* 1.5 is 2 */
        { "'minAvailable':'50%'", 3, 3, 10, 10, 5,
          0 }, /* of what is wanted, not of what is there */
        { "'minAvailable':'100%'", 3, 3, 3, 3, 3, 0 },
        { "'maxUnavailable':1", 3, 3, 3, 3, 2, 1 },
        { "'maxUnavailable':1", 3, 2, 3, 3, 2, 0 },
        { "'maxUnavailable':'34%'", 3, 3, 3, 3, 1, 2 }, /* 1.02 is 2 */
        { "'maxUnavailable':9", 3, 3, 3, 3, 0, 3 },
        { "'maxUnavailable':0", 3, 3, 3, 3, 3, 0 },
        { "'maxUnavailable':1", 0, 0, 3, 0, 0, 0 }, /* no pods: nothing to allow */
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++)
        check_budget(&cases[i]);
}

TEST(a_budget_over_pods_without_a_scale_allows_nothing)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    struct err err = { 0 };
    object_unref(
        make(w->store, &pod_kind,
             js("{'metadata':{'name':'p','labels':{'app':'web'},'ownerReferences':[{"
                "'apiVersion':'batch/v1','kind':'Job','name':'j','uid':'u',"
                "'controller':true}]},'spec':{'containers':[{'name':'c','image':'i'}]}}")));
    bind_pod(w->store, "p", "n");
    set_pod(w->store, "p", "Running", true);
    object_unref(make(w->store, &pdb_kind,
                      js("{'metadata':{'name':'b'},'spec':{'maxUnavailable':1,"
                         "'selector':{'matchLabels':{'app':'web'}}}}")));
    AUTO_OBJECT object = get(w->store, &pdb_kind, "b");
    EXPECT_STR(pdb_of(object)->status.conditions.items[0].reason, "SyncFailed");
    EXPECT_ERR(evict(w->store, "p", &err), err, ERR_THROTTLED);
}

TEST(a_budget_follows_the_scale_of_the_deployment_behind_the_replica_set)
{
    AUTO(world) w = world_new((struct embedded_options){ 0 });
    AUTO_OBJECT web = make(w->store, &deployment_kind, js("%s", deployment_json));
    AUTO_OBJECT rs = make(
        w->store, &replica_set_kind,
        js("{'metadata':{'name':'web-1','ownerReferences':[{'apiVersion':'apps/v1',"
           "'kind':'Deployment','name':'web','uid':'%.*s','controller':true}]},"
           "'spec':{'replicas':1,'selector':{'matchLabels':{'app':'web'}},'template':{'metadata':"
           "{'labels':{'app':'web'}},'spec':{'containers':[{'name':'c','image':'i'}]}}}}",
           STR_ARG(web->meta.uid)));
    object_unref(make(w->store, &pod_kind,
                      js("{'metadata':{'name':'p','labels':{'app':'web'},'ownerReferences':[{"
                         "'apiVersion':'apps/v1','kind':'ReplicaSet','name':'web-1','uid':'%.*s',"
                         "'controller':true}]},'spec':{'containers':[{'name':'c','image':'i'}]}}",
                         STR_ARG(rs->meta.uid))));
    object_unref(make(w->store, &pdb_kind,
                      js("{'metadata':{'name':'b'},'spec':{'maxUnavailable':1,"
                         "'selector':{'matchLabels':{'app':'web'}}}}")));
    AUTO_OBJECT before = get(w->store, &pdb_kind, "b");
    EXPECT_EQ(pdb_of(before)->status.expected_pods, 3);
    object_unref(merge(w->store, &deployment_kind, "web", js("{'spec':{'replicas':8}}")));
    AUTO_OBJECT after = get(w->store, &pdb_kind, "b");
    EXPECT_EQ(pdb_of(after)->status.expected_pods, 8);

    /* Left by its Deployment, the ReplicaSet counts itself. */
    object_unref(
        merge(w->store, &replica_set_kind, "web-1", js("{'metadata':{'ownerReferences':null}}")));
    AUTO_OBJECT alone = get(w->store, &pdb_kind, "b");
    EXPECT_EQ(pdb_of(alone)->status.expected_pods, 1);

    /* The pod's reference is wrong, then right again, under the same uid. */
    const char *const names[] = { "other", "web-1" };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        object_unref(merge(w->store, &pod_kind, "p",
                           js("{'metadata':{'ownerReferences':[{'apiVersion':'apps/v1','kind':"
                              "'ReplicaSet','name':'%s','uid':'%.*s','controller':true}]}}",
                              names[i], STR_ARG(rs->meta.uid))));
        AUTO_OBJECT pdb = get(w->store, &pdb_kind, "b");
        const struct pdb_status *status = &pdb_of(pdb)->status;
        const struct condition *allowed = condition_find(
            status->conditions.items, status->conditions.count, STR("DisruptionAllowed"));
        EXPECT_STR(allowed->reason, i == 0 ? "SyncFailed" : "InsufficientPods");
    }
}

/* Counts that follow changes are what counting anew gives. */
TEST(budgets_never_drift_from_what_is_there)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        AUTO(world) w = world_new((struct embedded_options){ .seed = seed });
        struct rng rng;
        rng_init(&rng, seed);
        object_unref(make(w->store, &pdb_kind,
                          js("{'metadata':{'name':'b'},'spec':{'minAvailable':1,"
                             "'selector':{'matchLabels':{'app':'web'}}}}")));
        for (int i = 0; i < 200; i++) {
            char name[8];
            struct err err = { 0 };
            snprintf(name, sizeof name, "p%u", (unsigned)rng_below(&rng, 8));
            bool there = is_there(w->store, &pod_kind, name);
            uint64_t what = rng_below(&rng, 5);
            if (!there)
                run_pod(w->store, name, what < 3 ? "'app':'web'" : "");
            else if (what == 0)
                remove_it(w->store, &pod_kind, name);
            else if (what == 1)
                store_remove(w->store, at(&pod_kind, name),
                             &(struct delete_options){ .grace_s = { 0, true } }, &err);
            else if (what == 2)
                object_unref(merge(w->store, &pod_kind, name,
                                   js("{'metadata':{'labels':{'app':%s}}}",
                                      rng_below(&rng, 2) ? "'web'" : "null")));
            else
                set_pod(w->store, name, "Running", what == 3);
        }
        AUTO_OBJECT followed = get(w->store, &pdb_kind, "b");
        object_unref(merge(w->store, &pdb_kind, "b", js("{'spec':{'minAvailable':2}}")));
        AUTO_OBJECT anew = get(w->store, &pdb_kind, "b");
        EXPECT_EQ(pdb_of(followed)->status.expected_pods, pdb_of(anew)->status.expected_pods);
        EXPECT_EQ(pdb_of(followed)->status.current_healthy, pdb_of(anew)->status.current_healthy);
    }
}
