/* Part of store/conformance_tests.h: deletions, finalizers, owners. */
#pragma once

/* --- deleting --- */

TEST(deletion_removes_at_once_what_nothing_holds)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    make_node(c.store, "a");
    remove_it(c.store, &node_kind, "a");
    EXPECT_FALSE(is_there(c.store, &node_kind, "a"));
    EXPECT_ERR(store_remove(c.store, at(&node_kind, "a"), NULL, &err), err, ERR_NOT_FOUND);
}

TEST(a_finalizer_holds_an_object_until_it_is_removed)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    AUTO_OBJECT made = make(c.store, &deployment_kind,
                            js("{'metadata':{'name':'web','finalizers':['a.io/x','a.io/y']},"
                               "%s",
                               deployment_json + sizeof("{'metadata':{'name':'web'},") - 1));
    remove_it(c.store, &deployment_kind, "web");

    AUTO_OBJECT held = get(c.store, &deployment_kind, "web");
    EXPECT_TRUE(held->meta.deleted_us > 0);
    EXPECT_TRUE(held->meta.deletion_grace_s.set);
    EXPECT_EQ(held->meta.deletion_grace_s.value, 0);
    EXPECT_EQ(held->meta.generation, made->meta.generation + 1);

    remove_it(c.store, &deployment_kind, "web"); /* again changes nothing */
    AUTO_OBJECT same = get(c.store, &deployment_kind, "web");
    EXPECT_EQ(same->meta.resource_version, held->meta.resource_version);

    EXPECT_ERR(patch(&c, &deployment_kind, "web", (struct patch_options){ 0 },
                     js("{'metadata':{'finalizers':['a.io/x','a.io/y','a.io/z']}}"), &err),
               err, ERR_INVALID);
    object_unref(
        merge(c.store, &deployment_kind, "web", js("{'metadata':{'finalizers':['a.io/y']}}")));
    EXPECT_TRUE(is_there(c.store, &deployment_kind, "web"));
    object_unref(merge(c.store, &deployment_kind, "web", js("{'metadata':{'finalizers':null}}")));
    EXPECT_FALSE(is_there(c.store, &deployment_kind, "web"));
}

TEST(deletion_honours_preconditions)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &node_kind, js("{'metadata':{'name':'a'}}"));
    AUTO_OBJECT now = merge(c.store, &node_kind, "a", js("{'metadata':{'labels':{'a':'1'}}}"));
    struct delete_options other = { .uid = STR("0b3e2a52-0000-4000-8000-000000000000") };
    struct delete_options stale = { .resource_version = made->meta.resource_version };
    struct delete_options right = { .uid = now->meta.uid,
                                    .resource_version = now->meta.resource_version };
    struct err err = { 0 };

    EXPECT_ERR(store_remove(c.store, at(&node_kind, "a"), &other, &err), err, ERR_CONFLICT);
    EXPECT_ERR(store_remove(c.store, at(&node_kind, "a"), &stale, &err), err, ERR_CONFLICT);
    EXPECT_OK(store_remove(c.store, at(&node_kind, "a"), &right, &err), err);
}

static void remove_with_grace(struct conformance *c, const char *pod, int64_t seconds)
{
    struct delete_options opts = { .grace_s = { seconds, true } };
    struct err err = { 0 };
    EXPECT_OK(store_remove(c->store, at(&pod_kind, pod), &opts, &err), err);
}

TEST(a_pod_that_is_not_bound_or_has_ended_goes_at_once)
{
    CONFORMANCE c = opened();
    make_pod(c.store, "a", "");
    remove_it(c.store, &pod_kind, "a");
    EXPECT_FALSE(is_there(c.store, &pod_kind, "a"));

    run_pod(c.store, "b", "");
    set_pod(c.store, "b", "Succeeded", false);
    remove_it(c.store, &pod_kind, "b");
    EXPECT_FALSE(is_there(c.store, &pod_kind, "b"));
}

TEST(a_bound_pod_stays_for_its_grace_and_goes_when_the_kubelet_is_done)
{
    CONFORMANCE c = opened();
    run_pod(c.store, "a", "");
    remove_it(c.store, &pod_kind, "a");
    AUTO_OBJECT first = get(c.store, &pod_kind, "a");
    EXPECT_EQ(first->meta.deletion_grace_s.value, 30);
    EXPECT_TRUE(first->meta.deleted_us > 0);

    remove_with_grace(&c, "a", 60); /* longer: no */
    AUTO_OBJECT same = get(c.store, &pod_kind, "a");
    EXPECT_EQ(same->meta.resource_version, first->meta.resource_version);
    remove_with_grace(&c, "a", 10);
    AUTO_OBJECT shorter = get(c.store, &pod_kind, "a");
    EXPECT_EQ(shorter->meta.deletion_grace_s.value, 10);
    EXPECT_EQ(first->meta.deleted_us - shorter->meta.deleted_us, 20 * 1000000);
    remove_with_grace(&c, "a", 0);
    EXPECT_FALSE(is_there(c.store, &pod_kind, "a"));
}

TEST(a_pod_with_a_finalizer_outlives_its_grace)
{
    CONFORMANCE c = opened();
    run_pod(c.store, "a", "");
    object_unref(merge(c.store, &pod_kind, "a", js("{'metadata':{'finalizers':['a.io/x']}}")));
    remove_it(c.store, &pod_kind, "a");
    remove_with_grace(&c, "a", 0);
    remove_with_grace(&c, "a", 0); /* it may be asked again */
    AUTO_OBJECT held = get(c.store, &pod_kind, "a");
    EXPECT_EQ(held->meta.deletion_grace_s.value, 0);
    object_unref(merge(c.store, &pod_kind, "a", js("{'metadata':{'finalizers':null}}")));
    EXPECT_FALSE(is_there(c.store, &pod_kind, "a"));
}

TEST(a_pod_keeps_its_grace_when_its_finalizer_goes_first)
{
    CONFORMANCE c = opened();
    run_pod(c.store, "a", "");
    object_unref(merge(c.store, &pod_kind, "a", js("{'metadata':{'finalizers':['a.io/x']}}")));
    remove_it(c.store, &pod_kind, "a");
    object_unref(merge(c.store, &pod_kind, "a", js("{'metadata':{'finalizers':null}}")));
    EXPECT_TRUE(is_there(c.store, &pod_kind, "a"));
    remove_with_grace(&c, "a", 0);
    EXPECT_FALSE(is_there(c.store, &pod_kind, "a"));
}

/* --- owners --- */

static void make_lease(struct conformance *c, const char *name, const char *more_meta)
{
    object_unref(make(c->store, &lease_kind, js("{'metadata':{'name':'%s'%s}}", name, more_meta)));
}

/* An owner reference to a Lease, as JSON. */
static const char *owner_json(struct conformance *c, const char *name, bool blocks)
{
    static char ring[4][300];
    static unsigned next;
    char *text = ring[next++ % 4];
    AUTO_OBJECT owner = get(c->store, &lease_kind, name);
    snprintf(text, sizeof ring[0],
             "{'apiVersion':'coordination.k8s.io/v1','kind':'Lease','name':'%s','uid':'%.*s',"
             "'blockOwnerDeletion':%s}",
             name, STR_ARG(owner->meta.uid), blocks ? "true" : "false");
    return text;
}

static void make_owned(struct conformance *c, const char *name, const char *refs, const char *more)
{
    char meta[900];
    snprintf(meta, sizeof meta, ",'ownerReferences':[%s]%s", refs, more);
    make_lease(c, name, meta);
}

static void remove_as(struct conformance *c, const char *name, struct delete_options opts)
{
    struct err err = { 0 };
    EXPECT_OK(store_remove(c->store, at(&lease_kind, name), &opts, &err), err);
}

TEST(what_an_object_owns_goes_after_it)
{
    CONFORMANCE c = opened();
    make_lease(&c, "owner", "");
    make_owned(&c, "child", owner_json(&c, "owner", false), "");
    make_owned(&c, "grandchild", owner_json(&c, "child", false), "");
    make_lease(&c, "stranger", "");
    remove_it(c.store, &lease_kind, "owner");
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "child"));
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "grandchild"));
    EXPECT_TRUE(is_there(c.store, &lease_kind, "stranger"));
}

TEST(what_has_another_owner_stays_and_forgets_the_one_that_went)
{
    CONFORMANCE c = opened();
    char refs[700];
    make_lease(&c, "a", "");
    make_lease(&c, "b", "");
    snprintf(refs, sizeof refs, "%s,%s", owner_json(&c, "a", false), owner_json(&c, "b", false));
    make_owned(&c, "child", refs, "");
    remove_it(c.store, &lease_kind, "a");
    AUTO_OBJECT child = NULL;
    EVENTUALLY(&c, (object_unref(child), child = get(c.store, &lease_kind, "child"),
                    child->meta.owners.count == 1));
    EXPECT_STR(child->meta.owners.items[0].name, "b");
    remove_it(c.store, &lease_kind, "b");
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "child"));
}

TEST(orphans_stay_without_an_owner)
{
    CONFORMANCE c = opened();
    make_lease(&c, "owner", "");
    make_owned(&c, "child", owner_json(&c, "owner", true), "");
    remove_as(&c, "owner", (struct delete_options){ .propagation = PROPAGATE_ORPHAN });
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "owner"));
    AUTO_OBJECT child = get(c.store, &lease_kind, "child");
    EXPECT_EQ(child->meta.owners.count, 0);
}

TEST(foreground_deletion_takes_what_it_owns_and_waits_for_what_blocks_it)
{
    CONFORMANCE c = opened();
    make_lease(&c, "owner", "");
    make_owned(&c, "slow", owner_json(&c, "owner", true), ",'finalizers':['a.io/x']");
    make_owned(&c, "quick", owner_json(&c, "owner", true), "");
    make_owned(&c, "aside", owner_json(&c, "owner", false), "");
    remove_as(&c, "owner", (struct delete_options){ .propagation = PROPAGATE_FOREGROUND });
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "quick"));
    AUTO_OBJECT owner = get(c.store, &lease_kind, "owner");
    EXPECT_TRUE(owner->meta.deleted_us > 0);
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "aside"));
    EXPECT_TRUE(is_there(c.store, &lease_kind, "owner"));

    object_unref(merge(c.store, &lease_kind, "slow", js("{'metadata':{'finalizers':null}}")));
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "owner"));
}

TEST(a_second_deletion_can_change_the_policy)
{
    CONFORMANCE c = opened();
    make_lease(&c, "owner", ",'finalizers':['a.io/x']");
    make_owned(&c, "child", owner_json(&c, "owner", true), ",'finalizers':['a.io/y']");
    remove_as(&c, "owner", (struct delete_options){ .propagation = PROPAGATE_FOREGROUND });
    AUTO_OBJECT waiting = get(c.store, &lease_kind, "owner");
    EXPECT_EQ(waiting->meta.finalizers.count, 2);
    remove_as(&c, "owner", (struct delete_options){ .propagation = PROPAGATE_FOREGROUND });
    remove_as(&c, "owner", (struct delete_options){ .propagation = PROPAGATE_BACKGROUND });
    AUTO_OBJECT held = get(c.store, &lease_kind, "owner");
    EXPECT_EQ(held->meta.finalizers.count, 1);
    object_unref(merge(c.store, &lease_kind, "owner", js("{'metadata':{'finalizers':null}}")));
    EXPECT_FALSE(is_there(c.store, &lease_kind, "owner"));
}

TEST(a_dependent_that_wants_its_own_dependents_kept_or_gone_first_gets_it)
{
    CONFORMANCE c = opened();
    make_lease(&c, "owner", "");
    make_owned(&c, "orphaning", owner_json(&c, "owner", false), ",'finalizers':['orphan']");
    make_owned(&c, "waiting", owner_json(&c, "owner", false),
               ",'finalizers':['foregroundDeletion']");
    make_owned(&c, "orphan", owner_json(&c, "orphaning", false), "");
    make_owned(&c, "slow", owner_json(&c, "waiting", true), ",'finalizers':['a.io/x']");
    remove_it(c.store, &lease_kind, "owner");
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "orphaning"));
    EXPECT_TRUE(is_there(c.store, &lease_kind, "orphan"));
    EXPECT_TRUE(is_there(c.store, &lease_kind, "waiting"));
    object_unref(merge(c.store, &lease_kind, "slow", js("{'metadata':{'finalizers':null}}")));
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "waiting"));
}

TEST(foreground_deletion_ends_when_a_dependent_finds_another_owner)
{
    CONFORMANCE c = opened();
    char refs[700];
    make_lease(&c, "a", "");
    make_lease(&c, "b", "");
    snprintf(refs, sizeof refs, "%s,%s", owner_json(&c, "a", true), owner_json(&c, "b", true));
    make_owned(&c, "child", refs, "");
    remove_as(&c, "a", (struct delete_options){ .propagation = PROPAGATE_FOREGROUND });
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "a"));
    AUTO_OBJECT child = get(c.store, &lease_kind, "child");
    EXPECT_EQ(child->meta.owners.count, 1);
}

TEST(owners_in_a_circle_do_not_wait_for_each_other_for_ever)
{
    CONFORMANCE c = opened();
    make_lease(&c, "a", "");
    make_owned(&c, "b", owner_json(&c, "a", true), "");
    object_unref(merge(c.store, &lease_kind, "a",
                       js("{'metadata':{'ownerReferences':[%s]}}", owner_json(&c, "b", true))));
    remove_as(&c, "a", (struct delete_options){ .propagation = PROPAGATE_FOREGROUND });
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "a"));
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "b"));
}
