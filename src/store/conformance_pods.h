/* Part of store/conformance_tests.h: binding and eviction. */
#pragma once

TEST(binding_puts_a_pod_on_a_node_once)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    make_pod(c.store, "a", "");
    bind_pod(c.store, "a", "n");
    AUTO_OBJECT object = get(c.store, &pod_kind, "a");
    const struct pod *pod = pod_of(object);
    EXPECT_STR(pod->node_name, "n");
    EXPECT_EQ(pod_condition(pod, STR("PodScheduled"))->status, CONDITION_TRUE);
    EXPECT_ERR(store_bind(c.store, STR("default"), STR("a"), STR("m"), &err), err, ERR_CONFLICT);
    EXPECT_ERR(store_bind(c.store, STR("default"), STR("z"), STR("m"), &err), err, ERR_NOT_FOUND);
}

TEST(a_pod_that_is_gated_or_going_is_not_bound)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    object_unref(
        make(c.store, &pod_kind,
             js("{'metadata':{'name':'gated'},'spec':{'schedulingGates':[{'name':'a.io/g'}],"
                "'containers':[{'name':'c','image':'i'}]}}")));
    EXPECT_ERR(store_bind(c.store, STR("default"), STR("gated"), STR("n"), &err), err,
               ERR_CONFLICT);

    object_unref(make(c.store, &pod_kind,
                      js("{'metadata':{'name':'going','finalizers':['a.io/x']},"
                         "'spec':{'containers':[{'name':'c','image':'i'}]}}")));
    remove_it(c.store, &pod_kind, "going");
    EXPECT_ERR(store_bind(c.store, STR("default"), STR("going"), STR("n"), &err), err,
               ERR_CONFLICT);
}

static void make_budget(struct conformance *c, const char *name, const char *spec)
{
    object_unref(make(c->store, &pdb_kind,
                      js("{'metadata':{'name':'%s'},'spec':{%s,"
                         "'selector':{'matchLabels':{'app':'web'}}}}",
                         name, spec)));
}

static bool budget_allows(struct conformance *c, const char *name, int64_t allowed)
{
    AUTO_OBJECT object = get(c->store, &pdb_kind, name);
    const struct pdb *pdb = pdb_of(object);
    return pdb->status.observed_generation == object->meta.generation &&
           pdb->status.disruptions_allowed == allowed;
}

TEST(an_eviction_is_a_graceful_deletion_that_says_why)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    run_pod(c.store, "a", "'app':'web'");
    EXPECT_OK(evict(c.store, "a", &err), err);
    AUTO_OBJECT object = get(c.store, &pod_kind, "a");
    EXPECT_TRUE(object->meta.deleted_us > 0);
    const struct pod_condition *why = pod_condition(pod_of(object), STR("DisruptionTarget"));
    EXPECT_TRUE(why != NULL);
    EXPECT_STR(why->reason, "EvictionByEvictionAPI");
    EXPECT_ERR(evict(c.store, "nobody", &err), err, ERR_NOT_FOUND);
}

TEST(an_eviction_that_a_budget_does_not_allow_is_refused)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    make_budget(&c, "web", "'minAvailable':2");
    run_pod(c.store, "a", "'app':'web'");
    run_pod(c.store, "b", "'app':'web'");
    EXPECT_ERR(evict(c.store, "a", &err), err, ERR_THROTTLED);
    EVENTUALLY(&c, evict(c.store, "a", &err) < 0 &&
                       strstr(err.text, "needs 2 healthy pods and has 2 currently") != NULL);
    EXPECT_EQ(err.kind, ERR_THROTTLED);

    run_pod(c.store, "c", "'app':'web'");
    EVENTUALLY(&c, budget_allows(&c, "web", 1));
    EXPECT_OK(evict(c.store, "a", &err), err);
    EVENTUALLY(&c, budget_allows(&c, "web", 0));
    EXPECT_ERR(evict(c.store, "b", &err), err, ERR_THROTTLED);
    EXPECT_TRUE(is_there(c.store, &pod_kind, "b"));
}

TEST(pods_that_do_not_run_are_evicted_whatever_the_budget)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    make_budget(&c, "web", "'minAvailable':9");
    make_pod(c.store, "pending", "'app':'web'");
    run_pod(c.store, "failed", "'app':'web'");
    set_pod(c.store, "failed", "Failed", false);
    EXPECT_OK(evict(c.store, "pending", &err), err);
    EXPECT_OK(evict(c.store, "failed", &err), err);
}

TEST(an_unready_pod_is_evicted_when_enough_others_are_healthy_or_the_policy_allows_it)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    make_budget(&c, "web", "'minAvailable':1");
    run_pod(c.store, "sick", "'app':'web'");
    set_pod(c.store, "sick", "Running", false);
    EVENTUALLY(&c, budget_allows(&c, "web", 0));
    EXPECT_ERR(evict(c.store, "sick", &err), err, ERR_THROTTLED);
    object_unref(merge(c.store, &pdb_kind, "web",
                       js("{'spec':{'unhealthyPodEvictionPolicy':'AlwaysAllow'}}")));
    EVENTUALLY(&c, budget_allows(&c, "web", 0));
    EXPECT_OK(evict(c.store, "sick", &err), err);

    object_unref(merge(c.store, &pdb_kind, "web",
                       js("{'spec':{'unhealthyPodEvictionPolicy':'IfHealthyBudget'}}")));
    run_pod(c.store, "sick-2", "'app':'web'");
    set_pod(c.store, "sick-2", "Running", false);
    run_pod(c.store, "well", "'app':'web'");
    EVENTUALLY(&c, budget_allows(&c, "web", 0));
    EXPECT_ERR(evict(c.store, "well", &err), err, ERR_THROTTLED);
    EVENTUALLY(&c, evict(c.store, "sick-2", &err) == 0); /* once the healthy one has been counted */
}

TEST(a_budget_that_is_gone_or_is_for_others_does_not_count)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    make_budget(&c, "web", "'minAvailable':1");
    object_unref(make(c.store, &pdb_kind,
                      js("{'metadata':{'name':'db'},'spec':{'maxUnavailable':0,"
                         "'selector':{'matchLabels':{'app':'db'}}}}")));
    run_pod(c.store, "a", "'app':'web'");
    EXPECT_ERR(evict(c.store, "a", &err), err, ERR_THROTTLED);
    remove_it(c.store, &pdb_kind, "web");
    EXPECT_OK(evict(c.store, "a", &err), err);
}

TEST(a_pod_with_two_budgets_cannot_be_evicted)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    make_budget(&c, "one", "'minAvailable':0");
    make_budget(&c, "two", "'minAvailable':0");
    run_pod(c.store, "a", "'app':'web'");
    EXPECT_ERR(evict(c.store, "a", &err), err, ERR_INTERNAL);
    EXPECT_HAS(str_of(err.text), "more than one PodDisruptionBudget");
}

TEST(an_eviction_honours_preconditions)
{
    CONFORMANCE c = opened();
    struct delete_options other = { .uid = STR("0b3e2a52-0000-4000-8000-000000000000") };
    struct err err = { 0 };
    run_pod(c.store, "a", "");
    AUTO_OBJECT pod = get(c.store, &pod_kind, "a");
    EXPECT_ERR(store_evict(c.store, STR("default"), STR("a"), &other, &err), err, ERR_CONFLICT);
    struct delete_options right = { .uid = pod->meta.uid,
                                    .resource_version = pod->meta.resource_version };
    EXPECT_OK(store_evict(c.store, STR("default"), STR("a"), &right, &err), err);
}
