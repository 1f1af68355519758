/* Deployments and ReplicaSets. */
#include "sim/workloads_testing.h"

TEST(a_deployment_makes_a_replica_set_and_its_pods)
{
    AUTO(lab) l = lab_new();
    deploy(l, "", 3);
    step(l);

    struct object_list sets = all(l, &replica_set_kind), pods = all(l, &pod_kind);
    EXPECT_EQ(sets.count, 1);
    EXPECT_EQ(pods.count, 3);
    const struct object *set = sets.items[0];
    EXPECT_TRUE(str_starts(set->meta.name, STR("web-")));
    EXPECT_STR(meta_controller(&set->meta)->kind, "Deployment");
    struct str hash = str_map_get(&set->meta.labels, STR("pod-template-hash"));
    EXPECT_TRUE(str_ends(set->meta.name, hash));
    for (size_t i = 0; i < 3; i++) {
        const struct pod *pod = pod_of(pods.items[i]);
        const struct owner_ref *owner = meta_controller(&pod->object.meta);
        EXPECT_TRUE(str_eq(owner->name, set->meta.name));
        EXPECT_TRUE(str_eq(owner->uid, set->meta.uid));
        EXPECT_TRUE(owner->controller);
        EXPECT_TRUE(str_starts(pod->object.meta.name, set->meta.name));
        EXPECT_EQ(pod->object.meta.name.len, set->meta.name.len + 6);
        EXPECT_TRUE(str_eq(str_map_get(&pod->object.meta.labels, STR("pod-template-hash")), hash));
    }
    object_list_done(&sets);
    object_list_done(&pods);
}

TEST(pods_have_all_that_their_template_says)
{
    AUTO(lab) l = lab_new();
    AUTO_BUF text = { 0 };
    struct err err = { 0 };
    deploy(l, "", 1);
    step(l);
    EXPECT_OK(store_get_json(l->store, at(&pod_kind, names_of(l, &pod_kind)), &text, &err), err);
    EXPECT_HAS(buf_str(&text), "\"env\":[{\"name\":\"A\",\"value\":\"1\"}]");
}

TEST(status_counts_follow_the_pods_and_nothing_is_written_at_rest)
{
    AUTO(lab) l = lab_new();
    deploy(l, "", 4);
    settle(l);
    AUTO_OBJECT object = get(l->store, &deployment_kind, "web");
    const struct deployment_status *status = &deployment_of(object)->status;
    EXPECT_EQ(status->replicas, 4);
    EXPECT_EQ(status->ready_replicas, 4);
    EXPECT_EQ(status->available_replicas, 4);
    EXPECT_EQ(status->updated_replicas, 4);
    EXPECT_EQ(status->unavailable_replicas, 0);
    EXPECT_EQ(status->observed_generation, 1);

    uint64_t version = embedded_version(l->w->e);
    EXPECT_EQ(step(l), INT64_MAX);
    pass(l, 3600);
    EXPECT_EQ(embedded_version(l->w->e), version);
}

TEST(min_ready_seconds_delay_availability)
{
    AUTO(lab) l = lab_new();
    deploy(l, "'minReadySeconds':30,", 1);
    settle(l);
    AUTO_OBJECT early = get(l->store, &deployment_kind, "web");
    EXPECT_EQ(deployment_of(early)->status.ready_replicas, 1);
    EXPECT_EQ(deployment_of(early)->status.available_replicas, 0);
    EXPECT_EQ(step(l), 30 * SECOND_NS);
    pass(l, 30);
    AUTO_OBJECT late = get(l->store, &deployment_kind, "web");
    EXPECT_EQ(deployment_of(late)->status.available_replicas, 1);
}

TEST(pods_that_go_are_replaced)
{
    AUTO(lab) l = lab_new();
    deploy(l, "", 3);
    settle(l);
    struct object_list pods = all(l, &pod_kind);
    struct err err = { 0 };
    EXPECT_OK(store_evict(l->store, STR("default"), pods.items[0]->meta.name, NULL, &err), err);
    object_list_done(&pods);
    step(l);
    EXPECT_EQ(active_pods(l), 3); /* a pod that is about to end does not count */
    settle(l);
    EXPECT_EQ(count_of(l, &pod_kind), 3);
}

TEST(scaling_down_takes_the_pods_that_matter_least)
{
    static const struct {
        const char *name, *annotation;
        bool bound, running, ready;
    } pods[] = {
        { "dear", "'annotations':{'controller.kubernetes.io/pod-deletion-cost':'10'},", 1, 1, 1 },
        { "cheap", "'annotations':{'controller.kubernetes.io/pod-deletion-cost':'-10'},", 1, 1, 1 },
        { "sick", "", 1, 1, 0 },
        { "starting", "", 1, 0, 0 },
        { "waiting", "", 0, 0, 0 },
        { "plain", "", 1, 1, 1 },
    };
    static const char *const left[] = {
        [5] = "cheap dear plain sick starting",
        [4] = "cheap dear plain sick",
        [3] = "cheap dear plain",
        [2] = "dear plain",
        [1] = "dear",
    };
    for (int replicas = 1; replicas <= 5; replicas++) {
        AUTO(lab) l = lab_new();
        AUTO_OBJECT set = make(l->store, &replica_set_kind,
                               js("{'metadata':{'name':'rs'},'spec':{'replicas':6,"
                                  "'selector':{'matchLabels':{'app':'web'}}," TEMPLATE "}}"));
        for (size_t i = 0; i < KV_COUNT_OF(pods); i++) {
            object_unref(
                make(l->store, &pod_kind,
                     js("{'metadata':{'name':'%s','labels':{'app':'web'},%s'ownerReferences':["
                        "{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'rs','uid':'%.*s',"
                        "'controller':true}]},'spec':{'containers':[{'name':'c','image':'i'}]}}",
                        pods[i].name, pods[i].annotation, STR_ARG(set->meta.uid))));
            if (pods[i].bound)
                bind_pod(l->store, pods[i].name, pods[i].name); /* a node of its own */
            if (pods[i].running)
                set_pod(l->store, pods[i].name, "Running", pods[i].ready);
        }
        step(l);
        EXPECT_EQ(count_of(l, &pod_kind), 6);
        scale(l, &replica_set_kind, "rs", replicas);
        step(l);
        for (int i = 0; i < 2; i++) { /* only the ends */
            struct object_list list = all(l, &pod_kind);
            struct delete_options now = { .grace_s = { 0, true } };
            for (size_t k = 0; k < list.count; k++) {
                struct err err = { 0 };
                if (pod_is_terminating(pod_of(list.items[k])))
                    EXPECT_OK(store_remove(l->store,
                                           (struct object_ref){ &pod_kind, STR("default"),
                                                                list.items[k]->meta.name },
                                           &now, &err),
                              err);
            }
            object_list_done(&list);
        }
        EXPECT_Z(names_of(l, &pod_kind), left[replicas]);
    }
}

TEST(the_youngest_of_equal_pods_goes_first)
{
    AUTO(lab) l = lab_new();
    deploy(l, "", 1);
    settle(l);
    char old[300];
    snprintf(old, sizeof old, "%s", names_of(l, &pod_kind));
    virtual_clock_advance(l->w->time, 60 * SECOND_NS);
    scale(l, &deployment_kind, "web", 3);
    settle(l);
    scale(l, &deployment_kind, "web", 1);
    settle(l);
    EXPECT_Z(names_of(l, &pod_kind), old);
}

TEST(a_new_template_rolls_within_surge_and_unavailability)
{
    static const struct {
        const char *strategy;
        size_t most, least;
    } cases[] = {
        { "", 13, 8 }, /* a quarter each: the surge rounded up, the other down */
        { "'strategy':{'rollingUpdate':{'maxSurge':1,'maxUnavailable':0}},", 11, 10 },
        { "'strategy':{'rollingUpdate':{'maxSurge':0,'maxUnavailable':3}},", 10, 7 },
        { "'strategy':{'rollingUpdate':{'maxSurge':'100%','maxUnavailable':'50%'}},", 20, 5 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO(lab) l = lab_new();
        deploy(l, cases[i].strategy, 10);
        settle(l);
        set_image(l, &deployment_kind, "web", "next");
        int rounds = 0;
        do {
            step(l);
            EXPECT_TRUE(active_pods(l) <= cases[i].most);
            EXPECT_TRUE(ready_pods(l) >= cases[i].least);
            rounds++;
        } while (kubelets(l) && rounds < 50);
        EXPECT_TRUE(rounds > 2);
        EXPECT_EQ(count_of(l, &pod_kind), 10);
        EXPECT_EQ(pods_with(l, "next"), 10);
        EXPECT_EQ(count_of(l, &replica_set_kind), 2); /* the old one is kept */
    }
}

TEST(a_roll_out_that_does_not_get_ready_stops)
{
    AUTO(lab) l = lab_new();
    deploy(l, "", 8);
    settle(l);
    set_image(l, &deployment_kind, "web", "broken");
    for (int i = 0; i < 10; i++)
        step(l); /* nobody runs the new ones */
    EXPECT_EQ(ready_pods(l), 6);
    EXPECT_EQ(pods_with(l, "broken"), 4);
    set_image(l, &deployment_kind, "web", "i"); /* not quite: the request is gone */
    settle(l);
    EXPECT_EQ(pods_with(l, "broken"), 0);
    EXPECT_EQ(pods_with(l, "i"), 8);
}

TEST(going_back_to_an_old_template_takes_its_replica_set)
{
    AUTO(lab) l = lab_new();
    deploy(l, "", 2);
    settle(l);
    set_image(l, &deployment_kind, "web", "next");
    settle(l);
    set_image(l, &deployment_kind, "web", "third");
    settle(l);
    set_image(l, &deployment_kind, "web", "next");
    settle(l);
    EXPECT_EQ(count_of(l, &replica_set_kind), 3);
    EXPECT_EQ(pods_with(l, "next"), 2);
    uint64_t version = embedded_version(l->w->e);
    step(l);
    EXPECT_EQ(embedded_version(l->w->e), version);
}

TEST(recreate_ends_all_old_pods_before_the_first_new_one)
{
    AUTO(lab) l = lab_new();
    deploy(l, "'strategy':{'type':'Recreate'},", 3);
    settle(l);
    set_image(l, &deployment_kind, "web", "next");
    step(l);
    EXPECT_EQ(active_pods(l), 0);
    EXPECT_EQ(count_of(l, &pod_kind), 3);
    settle(l);
    EXPECT_EQ(pods_with(l, "next"), 3);
}

TEST(a_paused_deployment_scales_and_does_not_roll)
{
    AUTO(lab) l = lab_new();
    deploy(l, "'paused':false,", 2);
    settle(l);
    object_unref(merge(l->store, &deployment_kind, "web", js("{'spec':{'paused':true}}")));
    set_image(l, &deployment_kind, "web", "next");
    scale(l, &deployment_kind, "web", 4);
    settle(l);
    EXPECT_EQ(count_of(l, &pod_kind), 4);
    EXPECT_EQ(pods_with(l, "next"), 0);
}

TEST(old_replica_sets_beyond_the_history_limit_are_removed)
{
    AUTO(lab) l = lab_new();
    deploy(l, "'revisionHistoryLimit':1,", 1);
    for (int i = 0; i < 4; i++) {
        char image[16];
        settle(l);
        snprintf(image, sizeof image, "v%d", i);
        set_image(l, &deployment_kind, "web", image);
    }
    settle(l);
    EXPECT_EQ(count_of(l, &replica_set_kind), 2);
}

TEST(deleting_a_deployment_ends_its_pods)
{
    AUTO(lab) l = lab_new();
    deploy(l, "", 3);
    settle(l);
    remove_it(l->store, &deployment_kind, "web");
    settle(l);
    EXPECT_EQ(count_of(l, &pod_kind), 0);
    EXPECT_EQ(count_of(l, &replica_set_kind), 0);
}

TEST(late_events_never_make_a_pod_twice)
{
    for (uint64_t seed = 1; seed <= 20; seed++) {
        AUTO(lab) l = lab_new();
        struct rng rng;
        rng_init(&rng, seed);
        int replicas = 5;
        deploy(l, "", replicas);
        for (int i = 0; i < 60; i++) {
            if (rng_below(&rng, 3) == 0)
                scale(l, &deployment_kind, "web", replicas = (int)rng_below(&rng, 12));
            if (rng_below(&rng, 8) == 0)
                set_image(l, &deployment_kind, "web", rng_below(&rng, 2) ? "x" : "y");
            if (rng_below(&rng, 2))
                kubelets(l);
            step(l);
            EXPECT_TRUE(active_pods(l) <= 12 + 3);
        }
        settle(l);
        EXPECT_EQ(count_of(l, &pod_kind), replicas);
    }
}

static int64_t a_while(void *ctx, const struct kind *kind KV_UNUSED, uint64_t version)
{
    return (int64_t)(kv_mix64(version ^ *(uint64_t *)ctx) % 5) * SECOND_NS;
}

TEST(watches_that_lag_do_not_change_what_is_made)
{
    for (uint64_t seed = 1; seed <= 10; seed++) {
        AUTO(lab) l = lab_new();
        embedded_set_faults(l->w->e,
                            &(struct embedded_faults){ .event_delay_ns = a_while, .ctx = &seed });
        deploy(l, "", 6);
        object_unref(make(l->store, &stateful_set_kind,
                          js("{'metadata':{'name':'db'},'spec':{'serviceName':'db','replicas':3,"
                             "'podManagementPolicy':'Parallel',"
                             "'selector':{'matchLabels':{'app':'web'}}," TEMPLATE "}}")));
        for (int i = 0; i < 60; i++) {
            pass(l, 1);
            EXPECT_TRUE(active_pods(l) <= 9);
            kubelets(l);
        }
        EXPECT_EQ(active_pods(l), 9);
        scale(l, &deployment_kind, "web", 2);
        for (int i = 0; i < 60; i++) {
            pass(l, 1);
            EXPECT_TRUE(active_pods(l) >= 5);
            kubelets(l);
        }
        EXPECT_EQ(active_pods(l), 5);
        embedded_set_faults(l->w->e, NULL);
    }
}

TEST(equal_seeds_give_equal_names)
{
    char first[1000];
    for (int i = 0; i < 2; i++) {
        AUTO(lab) l = lab_new();
        deploy(l, "", 5);
        settle(l);
        if (i == 0)
            snprintf(first, sizeof first, "%s", names_of(l, &pod_kind));
        else
            EXPECT_Z(names_of(l, &pod_kind), first);
    }
}

TEST(controllers_that_start_anew_go_on_from_the_store)
{
    AUTO(lab) l = lab_new();
    AUTO_OBJECT now = NULL;
    deploy(l, "", 4);
    stateful(l, "", 2);
    job(l, "'parallelism':1,'completions':3,");
    settle(l);
    struct object_list pods = all(l, &pod_kind);
    for (size_t i = 0; i < pods.count; i++) {
        if (str_starts(pods.items[i]->meta.name, STR("work-")))
            set_pod(l->store, z(pods.items[i]->meta.name), "Succeeded", false);
    }
    object_list_done(&pods);
    settle(l);
    uint64_t before = count_of(l, &pod_kind);
    workloads_free(l->workloads);
    l->workloads = workloads_new(l->store, virtual_clock_port(l->w->time), 99);
    uint64_t version = embedded_version(l->w->e);
    step(l);
    EXPECT_EQ(count_of(l, &pod_kind), before);
    EXPECT_EQ(embedded_version(l->w->e), version);
    EXPECT_EQ(job_now(l, &now)->status.succeeded, 1);
}
