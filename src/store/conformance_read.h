/* Part of store/conformance_tests.h: lists and watches. */
#pragma once

/* --- listing --- */

TEST(lists_are_sorted_and_selected)
{
    CONFORMANCE c = opened();
    make_pod(c.store, "c", "'app':'web','tier':'front'");
    make_pod(c.store, "a", "'app':'web'");
    make_pod(c.store, "b", "'app':'db'");
    object_unref(make(c.store, &namespace_kind, js("{'metadata':{'name':'defaults'}}")));
    object_unref(make(c.store, &pod_kind,
                      js("{'metadata':{'name':'z','namespace':'defaults'},"
                         "'spec':{'containers':[{'name':'c','image':'i'}]}}")));
    bind_pod(c.store, "a", "node-1");
    bind_pod(c.store, "b", "node-1");

    EXPECT_Z(names(&c, &pod_kind, (struct list_options){ 0 }), "a b c z");
    EXPECT_Z(names(&c, &pod_kind, (struct list_options){ .namespace_ = STR("default") }), "a b c");
    EXPECT_Z(names(&c, &pod_kind, (struct list_options){ .label_selector = STR("app=web") }),
             "a c");
    EXPECT_Z(names(&c, &pod_kind, (struct list_options){ .label_selector = STR("app,!tier") }),
             "a b");
    EXPECT_Z(names(&c, &pod_kind,
                   (struct list_options){ .field_selector = STR("spec.nodeName=node-1") }),
             "a b");
    EXPECT_Z(names(&c, &pod_kind,
                   (struct list_options){ .field_selector = STR("spec.nodeName=node-1"),
                                          .label_selector = STR("app=db") }),
             "b");
    EXPECT_Z(names(&c, &pod_kind, (struct list_options){ .field_selector = STR("spec.nodeName=") }),
             "c z");
    EXPECT_Z(
        names(&c, &pod_kind, (struct list_options){ .field_selector = STR("metadata.name=c") }),
        "c");
}

TEST(selectors_that_cannot_be_understood_are_refused)
{
    CONFORMANCE c = opened();
    struct object_list out = { 0 };
    struct err err = { 0 };
    make_node(c.store, "a");
    EXPECT_ERR(store_list(c.store, &node_kind,
                          &(struct list_options){ .label_selector = STR("a in (") }, &out, &err),
               err, ERR_INVALID);
    static const struct {
        const struct kind *kind;
        const char *fields;
    } unknown[] = {
        { &node_kind, "spec.colour=red" },
        { &node_kind, "spec.providerID=x" }, /* informers index it, a server does not */
        { &node_kind, "metadata.namespace=x" },
        { &nodepool_kind, "spec.template.spec.nodeClassRef.name=x" },
        { &lease_kind, "spec.holderIdentity=x" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(unknown); i++)
        EXPECT_ERR(store_list(c.store, unknown[i].kind,
                              &(struct list_options){ .field_selector = str_of(unknown[i].fields) },
                              &out, &err),
                   err, ERR_INVALID);
    struct watch *w = NULL;
    EXPECT_ERR(store_watch(c.store, &node_kind,
                           &(struct watch_options){ .label_selector = STR("a in (") }, &w, &err),
               err, ERR_INVALID);
    EXPECT_ERR(store_list(c.store, &node_kind,
                          &(struct list_options){ .continue_ = STR("%%%"), .limit = 1 }, &out,
                          &err),
               err, ERR_INVALID);
}

TEST(pages_show_the_state_of_the_first_one)
{
    CONFORMANCE c = opened();
    static const char *const made[] = { "a", "b", "c", "d", "e" };
    for (size_t i = 0; i < KV_COUNT_OF(made); i++)
        make_node(c.store, made[i]);
    struct object_list one = list(&c, &node_kind, (struct list_options){ .limit = 2 });
    EXPECT_EQ(one.count, 2);
    EXPECT_TRUE(one.continue_ != NULL);

    object_unref(merge(c.store, &node_kind, "c", js("{'metadata':{'labels':{'new':'x'}}}")));
    remove_it(c.store, &node_kind, "d");
    make_node(c.store, "bb");

    struct object_list two = list(
        &c, &node_kind, (struct list_options){ .limit = 2, .continue_ = str_of(one.continue_) });
    EXPECT_EQ(two.count, 2);
    EXPECT_EQ(two.resource_version, one.resource_version);
    EXPECT_STR(two.items[0]->meta.name, "c");
    EXPECT_EQ(two.items[0]->meta.labels.count, 0);
    EXPECT_STR(two.items[1]->meta.name, "d");
    struct object_list three = list(
        &c, &node_kind, (struct list_options){ .limit = 2, .continue_ = str_of(two.continue_) });
    EXPECT_EQ(three.count, 1);
    EXPECT_STR(three.items[0]->meta.name, "e");
    EXPECT_TRUE(three.continue_ == NULL);
    object_list_done(&one);
    object_list_done(&two);
    object_list_done(&three);
}

TEST(pages_of_a_namespace_end_with_it)
{
    CONFORMANCE c = opened();
    for (const char *home = "abc"; *home; home++) {
        struct err err = { 0 };
        object_unref(make(c.store, &namespace_kind, js("{'metadata':{'name':'%c'}}", *home)));
        for (int k = 0; k < 3; k++)
            EXPECT_OK(store_create(c.store, &lease_kind, (struct str){ home, 1 },
                                   js("{'metadata':{'name':'%c%d'}}", *home, k), NULL, &err),
                      err);
    }
    struct list_options opts = { .namespace_ = STR("b"), .limit = 2 };
    struct object_list one = list(&c, &lease_kind, opts);
    EXPECT_EQ(one.count, 2);
    EXPECT_STR(one.items[0]->meta.name, "b0");
    opts.continue_ = str_of(one.continue_);
    EXPECT_Z(names(&c, &lease_kind, opts), "b2");
    object_list_done(&one);
}

/* --- watching --- */

static uint64_t version_now(struct conformance *c, const struct kind *kind)
{
    struct object_list found = list(c, kind, (struct list_options){ 0 });
    uint64_t version = found.resource_version;
    object_list_done(&found);
    return version;
}

TEST(a_watch_tells_everything_after_its_version_in_order)
{
    CONFORMANCE c = opened();
    make_node(c.store, "before");
    struct watch *w =
        watch(c.store, &node_kind,
              (struct watch_options){ .resource_version = version_now(&c, &node_kind) });
    make_node(c.store, "a");
    object_unref(merge(c.store, &node_kind, "a", js("{'metadata':{'labels':{'x':'1'}}}")));
    make_lease(&c, "other-kind", "");
    remove_it(c.store, &node_kind, "before");
    expect_event(&c, w, "ADDED a");
    expect_event(&c, w, "MODIFIED a");
    expect_event(&c, w, "DELETED before");
    EXPECT_Z(event_text(w, NULL), "");
    watch_close(w);
}

TEST(a_watch_from_version_0_starts_with_what_is_there)
{
    CONFORMANCE c = opened();
    make_node(c.store, "b");
    make_node(c.store, "a");
    struct watch *w = watch(c.store, &node_kind, (struct watch_options){ 0 });
    make_node(c.store, "c");
    expect_event(&c, w, "ADDED a");
    expect_event(&c, w, "ADDED b");
    expect_event(&c, w, "ADDED c");
    watch_close(w);
}

TEST(a_selecting_watch_adds_and_deletes_as_objects_come_and_go_from_sight)
{
    CONFORMANCE c = opened();
    struct watch *w =
        watch(c.store, &node_kind,
              (struct watch_options){ .label_selector = STR("pool=a"),
                                      .resource_version = version_now(&c, &node_kind) });
    make_node(c.store, "n");
    object_unref(merge(c.store, &node_kind, "n", js("{'metadata':{'labels':{'pool':'a'}}}")));
    object_unref(merge(c.store, &node_kind, "n", js("{'metadata':{'labels':{'more':'x'}}}")));
    object_unref(merge(c.store, &node_kind, "n", js("{'metadata':{'labels':{'pool':'b'}}}")));
    object_unref(merge(c.store, &node_kind, "n", js("{'metadata':{'labels':{'more':'y'}}}")));
    remove_it(c.store, &node_kind, "n");
    make_node(c.store, "end");
    object_unref(merge(c.store, &node_kind, "end", js("{'metadata':{'labels':{'pool':'a'}}}")));
    expect_event(&c, w, "ADDED n");
    expect_event(&c, w, "MODIFIED n");
    expect_event(&c, w, "DELETED n");
    expect_event(&c, w, "ADDED end");
    watch_close(w);
}

TEST(a_watch_of_a_nodes_pods_sees_them_arrive)
{
    CONFORMANCE c = opened();
    struct watch *w =
        watch(c.store, &pod_kind,
              (struct watch_options){ .field_selector = STR("spec.nodeName=n"),
                                      .resource_version = version_now(&c, &pod_kind) });
    make_pod(c.store, "a", "");
    make_pod(c.store, "b", "");
    bind_pod(c.store, "b", "n");
    expect_event(&c, w, "ADDED b");
    watch_close(w);
}

TEST(an_event_carries_a_version_from_which_another_watch_goes_on)
{
    CONFORMANCE c = opened();
    uint64_t version = version_now(&c, &node_kind);
    struct watch *w =
        watch(c.store, &node_kind, (struct watch_options){ .resource_version = version });
    make_node(c.store, "a");
    remove_it(c.store, &node_kind, "a");
    make_node(c.store, "b");
    expect_event(&c, w, "ADDED a");
    version = expect_event(&c, w, "DELETED a");
    watch_close(w);
    w = watch(c.store, &node_kind, (struct watch_options){ .resource_version = version });
    expect_event(&c, w, "ADDED b");
    watch_close(w);
}

TEST(a_deleted_object_carries_the_version_of_its_deletion)
{
    CONFORMANCE c = opened();
    make_node(c.store, "a");
    struct watch *w =
        watch(c.store, &node_kind,
              (struct watch_options){ .resource_version = version_now(&c, &node_kind) });
    remove_it(c.store, &node_kind, "a");
    struct watch_event event;
    struct err err = { 0 };
    EVENTUALLY(&c, watch_next(w, &event, &err) == 1);
    EXPECT_EQ(event.type, EVENT_DELETED);
    EXPECT_EQ(event.object->meta.resource_version, event.resource_version);
    object_unref(event.object);
    watch_close(w);
}

TEST(the_last_finalizer_going_is_seen_as_a_deletion)
{
    CONFORMANCE c = opened();
    make_lease(&c, "a", ",'finalizers':['a.io/x']");
    struct watch *w =
        watch(c.store, &lease_kind,
              (struct watch_options){ .resource_version = version_now(&c, &lease_kind) });
    remove_it(c.store, &lease_kind, "a");
    object_unref(merge(c.store, &lease_kind, "a", js("{'metadata':{'finalizers':null}}")));
    expect_event(&c, w, "MODIFIED a");
    expect_event(&c, w, "DELETED a");
    watch_close(w);
}
