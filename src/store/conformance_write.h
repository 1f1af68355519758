/* Part of store/conformance_tests.h: creations and patches. */
#pragma once

/* --- creating --- */

TEST(a_new_object_gets_a_uid_a_version_a_time_and_generation_1)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT a = make(c.store, &node_kind, js("{'metadata':{'name':'a'}}"));
    AUTO_OBJECT b = make(c.store, &lease_kind, js("{'metadata':{'name':'b'}}"));

    EXPECT_EQ(a->meta.uid.len, 36);
    EXPECT_FALSE(str_eq(a->meta.uid, b->meta.uid));
    EXPECT_TRUE(a->meta.created_us > 0);
    EXPECT_TRUE(a->meta.resource_version > 0);
    EXPECT_TRUE(b->meta.resource_version > a->meta.resource_version);
    EXPECT_STR(a->meta.namespace_, "");
    EXPECT_STR(b->meta.namespace_, "default");
}

TEST(a_name_is_taken_once)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    make_node(c.store, "a");
    EXPECT_ERR(
        store_create(c.store, &node_kind, STR(""), js("{'metadata':{'name':'a'}}"), NULL, &err),
        err, ERR_EXISTS);
}

TEST(names_are_generated_from_a_prefix)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT a = make(c.store, &lease_kind, js("{'metadata':{'generateName':'web-'}}"));
    AUTO_OBJECT b = make(c.store, &lease_kind, js("{'metadata':{'generateName':'web-'}}"));

    EXPECT_EQ(a->meta.name.len, 4 + 5);
    EXPECT_TRUE(str_starts(a->meta.name, STR("web-")));
    EXPECT_FALSE(str_eq(a->meta.name, b->meta.name));
}

TEST(a_long_prefix_leaves_room_for_the_generated_part)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT a = make(c.store, &lease_kind, js("{'metadata':{'generateName':'%070d-'}}", 0));
    EXPECT_EQ(a->meta.name.len, 63);
}

TEST(creation_refuses_what_makes_no_sense)
{
    static const char *const bad[] = {
        "{'metadata':{}}",                                           /* no name */
        "{'metadata':{'name':'Upper'}}",                             /* not a DNS name */
        "{'metadata':{'name':'a','namespace':'kube-system'}}",       /* sent to another namespace */
        "{'apiVersion':'v1','kind':'Node','metadata':{'name':'a'}}", /* of another kind */
        "{'metadata':{'name':'a','labels':{'-':'x'}}}",              /* a label that is none */
        "{'metadata':[]}",
        "[]",
        "{",
    };
    CONFORMANCE c = opened();
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        struct err err = { 0 };
        EXPECT_ERR(store_create(c.store, &lease_kind, STR("default"), js("%s", bad[i]), NULL, &err),
                   err, ERR_INVALID);
    }
    EXPECT_Z(names(&c, &lease_kind, (struct list_options){ .namespace_ = STR("default") }), "");
}

TEST(a_namespace_must_be_there)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    EXPECT_ERR(store_create(c.store, &lease_kind, STR("elsewhere"), js("{'metadata':{'name':'a'}}"),
                            NULL, &err),
               err, ERR_NOT_FOUND);
    object_unref(make(c.store, &namespace_kind, js("{'metadata':{'name':'elsewhere'}}")));
    EXPECT_OK(store_create(c.store, &lease_kind, STR("elsewhere"), js("{'metadata':{'name':'a'}}"),
                           NULL, &err),
              err);
}

TEST(invalid_objects_are_refused_with_the_path_of_the_field)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    EXPECT_ERR(store_create(c.store, &pdb_kind, STR("default"),
                            js("{'metadata':{'name':'a'},'spec':{'minAvailable':-1,"
                               "'selector':{'matchLabels':{'app':'a'}}}}"),
                            NULL, &err),
               err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "spec.minAvailable");
}

TEST(a_new_object_has_no_status_but_nodes_may_bring_one)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT pod = make(c.store, &pod_kind,
                           js("{'metadata':{'name':'a'},'status':{'phase':'Running'},"
                              "'spec':{'containers':[{'name':'c','image':'i'}]}}"));
    AUTO_OBJECT node = make(c.store, &node_kind,
                            js("{'metadata':{'name':'a'},'status':{'capacity':{'cpu':'4'}}}"));
    AUTO_OBJECT pdb = make(c.store, &pdb_kind,
                           js("{'metadata':{'name':'a'},'spec':{'minAvailable':1,"
                              "'selector':{'matchLabels':{'app':'a'}}},"
                              "'status':{'currentHealthy':7,'disruptionsAllowed':7,"
                              "'desiredHealthy':7,'expectedPods':7}}"));

    EXPECT_EQ(pod_of(pod)->status->phase, PHASE_PENDING);
    EXPECT_EQ(node_of(node)->status.capacity.count, 1);
    EXPECT_EQ(pdb_of(pdb)->status.current_healthy, 0);
}

TEST(a_new_pod_knows_its_quality_of_service)
{
    static const struct {
        const char *resources;
        enum pod_qos qos;
    } cases[] = {
        { "{}", QOS_BEST_EFFORT },
        { "{'requests':{'cpu':'1'}}", QOS_BURSTABLE },
        { "{'limits':{'cpu':'1'}}", QOS_BURSTABLE },
        { "{'limits':{'cpu':'1','memory':'1Gi'}}", QOS_GUARANTEED }, /* requests follow limits */
        { "{'limits':{'cpu':'1','memory':'1Gi'},'requests':{'cpu':'500m'}}", QOS_BURSTABLE },
        { "{'requests':{'example.com/gpu':'1'},'limits':{'example.com/gpu':'1'}}",
          QOS_BEST_EFFORT },
    };
    CONFORMANCE c = opened();
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_OBJECT pod = make(c.store, &pod_kind,
                               js("{'metadata':{'name':'p%zu'},'spec':{'containers':[{'name':'c',"
                                  "'image':'i','resources':%s}]}}",
                                  i, cases[i].resources));
        EXPECT_EQ(pod_of(pod)->status->qos, cases[i].qos);
    }
}

/* --- patching --- */

TEST(generation_counts_changes_of_the_spec_only)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &deployment_kind, js("%s", deployment_json));
    EXPECT_EQ(made->meta.generation, 1);

    AUTO_OBJECT spec = merge(c.store, &deployment_kind, "web", js("{'spec':{'replicas':4}}"));
    EXPECT_EQ(spec->meta.generation, 2);
    EXPECT_TRUE(spec->meta.resource_version > made->meta.resource_version);
    EXPECT_EQ(deployment_of(spec)->spec.replicas.value, 4);

    AUTO_OBJECT labels =
        merge(c.store, &deployment_kind, "web", js("{'metadata':{'labels':{'a':'b'}}}"));
    EXPECT_EQ(labels->meta.generation, 2);
    EXPECT_TRUE(labels->meta.resource_version > spec->meta.resource_version);

    AUTO_OBJECT status =
        merge_status(c.store, &deployment_kind, "web", js("{'status':{'replicas':4}}"));
    EXPECT_EQ(status->meta.generation, 2);
    EXPECT_TRUE(status->meta.resource_version > labels->meta.resource_version);
    EXPECT_EQ(deployment_of(status)->status.replicas, 4);
}

TEST(spec_and_status_are_written_apart)
{
    CONFORMANCE c = opened();
    object_unref(make(c.store, &deployment_kind, js("%s", deployment_json)));
    AUTO_OBJECT a = merge(c.store, &deployment_kind, "web",
                          js("{'spec':{'replicas':5},'status':{'replicas':9}}"));
    EXPECT_EQ(deployment_of(a)->spec.replicas.value, 5);
    EXPECT_EQ(deployment_of(a)->status.replicas, 0);

    AUTO_OBJECT b = merge_status(c.store, &deployment_kind, "web",
                                 js("{'spec':{'replicas':6},'new':1,'status':{'replicas':9}}"));
    EXPECT_EQ(deployment_of(b)->spec.replicas.value, 5);
    EXPECT_EQ(deployment_of(b)->status.replicas, 9);
}

TEST(a_kind_without_status_has_no_status_to_patch)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    object_unref(make(c.store, &lease_kind, js("{'metadata':{'name':'a'}}")));
    EXPECT_ERR(patch(&c, &lease_kind, "a", (struct patch_options){ .status = true },
                     js("{'status':{}}"), &err),
               err, ERR_NOT_FOUND);
}

TEST(a_patch_that_changes_nothing_writes_nothing)
{
    static const char *const patches[] = {
        "{}",
        "{'spec':{'replicas':3}}",
        "{'metadata':{'labels':{'gone':null}}}",
        "{'metadata':{'generation':77}}",         /* not the writer's to say */
        "{'status':{'replicas':1}}",              /* not here */
        "{'spec':{'revisionHistoryLimit':null}}", /* comes back as the default that it is */
    };
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &deployment_kind, js("%s", deployment_json));
    for (size_t i = 0; i < KV_COUNT_OF(patches); i++) {
        AUTO_OBJECT same = merge(c.store, &deployment_kind, "web", js("%s", patches[i]));
        EXPECT_EQ(same->meta.resource_version, made->meta.resource_version);
        EXPECT_EQ(same->meta.generation, 1);
    }
}

TEST(a_stale_version_conflicts_in_the_options_and_in_the_patch)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT old = make(c.store, &node_kind, js("{'metadata':{'name':'a'}}"));
    AUTO_OBJECT now = merge(c.store, &node_kind, "a", js("{'metadata':{'labels':{'a':'1'}}}"));
    struct patch_options stale = { .resource_version = old->meta.resource_version };
    struct patch_options fresh = { .resource_version = now->meta.resource_version };
    struct err err = { 0 };

    EXPECT_ERR(patch(&c, &node_kind, "a", stale, js("{'metadata':{'labels':{'a':'2'}}}"), &err),
               err, ERR_CONFLICT);
    EXPECT_ERR(patch(&c, &node_kind, "a", (struct patch_options){ 0 },
                     js("{'metadata':{'resourceVersion':'%llu','labels':{'a':'2'}}}",
                        (unsigned long long)old->meta.resource_version),
                     &err),
               err, ERR_CONFLICT);
    EXPECT_OK(patch(&c, &node_kind, "a", fresh, js("{'metadata':{'labels':{'a':'2'}}}"), &err),
              err);
}

TEST(a_json_patch_is_applied_whole_or_not_at_all)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT made =
        make(c.store, &node_kind, js("{'metadata':{'name':'a','labels':{'x':'1'}}}"));
    struct patch_options opts = { .type = PATCH_JSON };
    struct err err = { 0 };

    EXPECT_ERR(patch(&c, &node_kind, "a", opts,
                     js("[{'op':'add','path':'/metadata/labels/y','value':'2'},"
                        "{'op':'test','path':'/metadata/labels/x','value':'other'}]"),
                     &err),
               err, ERR_INVALID);
    AUTO_OBJECT same = get(c.store, &node_kind, "a");
    EXPECT_EQ(same->meta.resource_version, made->meta.resource_version);

    EXPECT_OK(patch(&c, &node_kind, "a", opts,
                    js("[{'op':'test','path':'/metadata/resourceVersion','value':'%llu'},"
                       "{'op':'replace','path':'/metadata/labels/x','value':'2'}]",
                       (unsigned long long)made->meta.resource_version),
                    &err),
              err);
    AUTO_OBJECT now = get(c.store, &node_kind, "a");
    EXPECT_STR(str_map_get(&now->meta.labels, STR("x")), "2");
}

TEST(a_strategic_patch_merges_conditions_by_type_and_replaces_taints)
{
    CONFORMANCE c = opened();
    struct patch_options status = { .type = PATCH_STRATEGIC, .status = true };
    struct patch_options spec = { .type = PATCH_STRATEGIC };
    struct err err = { 0 };
    object_unref(
        make(c.store, &node_kind,
             js("{'metadata':{'name':'a'},'spec':{'taints':[{'key':'x','effect':'NoSchedule'}]},"
                "'status':{'conditions':[{'type':'Ready','status':'False'},"
                "{'type':'DiskPressure','status':'False'}]}}")));

    EXPECT_OK(patch(&c, &node_kind, "a", status,
                    js("{'status':{'conditions':[{'type':'Ready','status':'True'}]}}"), &err),
              err);
    EXPECT_OK(patch(&c, &node_kind, "a", spec,
                    js("{'spec':{'taints':[{'key':'y','effect':'NoExecute'}]}}"), &err),
              err);
    AUTO_OBJECT now = get(c.store, &node_kind, "a");
    const struct node *node = node_of(now);
    EXPECT_EQ(node->status.conditions.count, 2);
    EXPECT_TRUE(node_is_ready(node));
    EXPECT_EQ(node_condition(node, STR("DiskPressure"))->status, CONDITION_FALSE);
    EXPECT_EQ(node->spec.taints.count, 1);
    EXPECT_STR(node->spec.taints.items[0].key, "y");
}

TEST(a_strategic_patch_adds_and_removes_finalizers)
{
    CONFORMANCE c = opened();
    struct patch_options opts = { .type = PATCH_STRATEGIC };
    struct err err = { 0 };
    object_unref(make(c.store, &node_kind,
                      js("{'metadata':{'name':'a','finalizers':['a.io/x','a.io/y']}}")));

    EXPECT_OK(patch(&c, &node_kind, "a", opts, js("{'metadata':{'finalizers':['a.io/z']}}"), &err),
              err);
    EXPECT_OK(patch(&c, &node_kind, "a", opts,
                    js("{'metadata':{'$deleteFromPrimitiveList/finalizers':['a.io/x']}}"), &err),
              err);
    AUTO_OBJECT now = get(c.store, &node_kind, "a");
    EXPECT_EQ(now->meta.finalizers.count, 2);
    EXPECT_FALSE(str_eqz(now->meta.finalizers.items[0], "a.io/x"));
    EXPECT_FALSE(str_eqz(now->meta.finalizers.items[1], "a.io/x"));
}

TEST(metadata_that_is_not_the_writers_is_refused_or_restored)
{
    static const struct {
        const char *patch;
        enum err_kind kind;
    } cases[] = {
        { "{'metadata':{'name':'b'}}", ERR_INVALID },
        { "{'metadata':{'name':null}}", ERR_INVALID },
        { "{'metadata':null}", ERR_INVALID },
        { "{'metadata':{'resourceVersion':7}}", ERR_INVALID },
        { "{'metadata':{'uid':'0b3e2a52-0000-4000-8000-000000000000'}}", ERR_INVALID },
        { "{'metadata':{'deletionTimestamp':'2001-01-01T00:00:00Z'}}", ERR_INVALID },
        { "{'metadata':{'deletionGracePeriodSeconds':5}}", ERR_INVALID },
        { "{'kind':'Pod'}", ERR_INVALID },
        { "[]", ERR_INVALID },
        { "{", ERR_INVALID },
    };
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &node_kind, js("{'metadata':{'name':'a'}}"));
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        EXPECT_ERR(
            patch(&c, &node_kind, "a", (struct patch_options){ 0 }, js("%s", cases[i].patch), &err),
            err, cases[i].kind);
    }
    static const char *const restored[] = {
        "{'metadata':{'uid':null,'creationTimestamp':null}}",
        "{'metadata':{'creationTimestamp':'2001-01-01T00:00:00Z'}}",
        "{'metadata':{'namespace':'default'}}", /* a Node has none */
        "{'metadata':{'resourceVersion':'0'}}", /* whatever is there */
    };
    for (size_t i = 0; i < KV_COUNT_OF(restored); i++) {
        AUTO_OBJECT same = merge(c.store, &node_kind, "a", js("%s", restored[i]));
        EXPECT_EQ(same->meta.resource_version, made->meta.resource_version);
        EXPECT_EQ(same->meta.created_us, made->meta.created_us);
        EXPECT_TRUE(str_eq(same->meta.uid, made->meta.uid));
    }
}

TEST(the_spec_of_a_pod_hardly_changes)
{
    static const struct {
        const char *patch;
        bool ok;
    } cases[] = {
        { "{'spec':{'nodeName':'n'}}", false },
        { "{'spec':{'priority':7}}", false },
        { "{'spec':{'nodeSelector':{'a':'b'}}}", false },
        { "{'spec':{'containers':[{'name':'c','image':'other'}]}}", true },
        { "{'spec':{'containers':[{'name':'d','image':'i'}]}}", false },
        { "{'spec':{'tolerations':[{'key':'a','operator':'Exists'}]}}", true },
        { "{'spec':{'tolerations':null}}", false },
        { "{'spec':{'containers':[]}}", false },
        { "{'spec':{'activeDeadlineSeconds':600}}", true },
        { "{'spec':{'activeDeadlineSeconds':60}}", true },
        { "{'spec':{'activeDeadlineSeconds':61}}", false },
        { "{'spec':{'activeDeadlineSeconds':null}}", false },
    };
    CONFORMANCE c = opened();
    make_pod(c.store, "a", "");
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        struct str text = js("%s", cases[i].patch);
        /* A strategic patch would merge the containers; a merge patch replaces them. */
        int rc = patch(&c, &pod_kind, "a", (struct patch_options){ 0 }, text, &err);
        if (cases[i].ok)
            EXPECT_OK(rc, err);
        else
            EXPECT_ERR(rc, err, ERR_INVALID);
    }
}

TEST(the_gates_of_a_pod_are_only_removed)
{
    CONFORMANCE c = opened();
    struct patch_options opts = { 0 };
    struct err err = { 0 };
    object_unref(make(c.store, &pod_kind,
                      js("{'metadata':{'name':'a'},'spec':{'schedulingGates':[{'name':'a.io/1'},"
                         "{'name':'a.io/2'}],'containers':[{'name':'c','image':'i'}]}}")));
    EXPECT_ERR(patch(&c, &pod_kind, "a", opts,
                     js("{'spec':{'schedulingGates':[{'name':'a.io/3'}]}}"), &err),
               err, ERR_INVALID);
    EXPECT_OK(patch(&c, &pod_kind, "a", opts,
                    js("{'spec':{'schedulingGates':[{'name':'a.io/2'}]}}"), &err),
              err);
    EXPECT_OK(patch(&c, &pod_kind, "a", opts, js("{'spec':{'schedulingGates':null}}"), &err), err);
    AUTO_OBJECT now = get(c.store, &pod_kind, "a");
    EXPECT_FALSE(pod_is_gated(pod_of(now)));
    EXPECT_ERR(patch(&c, &pod_kind, "a", opts, js("{'spec':{'nodeSelector':{'zone':'c'}}}"), &err),
               err, ERR_INVALID);
}

TEST(a_gated_pod_says_so_and_may_become_more_demanding_of_its_node)
{
#define REQUIRED(conditions)                                                                       \
    "{'spec':{'affinity':{'nodeAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"       \
    "{'nodeSelectorTerms':[{'matchExpressions':[" conditions "]}]}}}}}"
    static const struct {
        const char *patch;
        bool ok;
    } cases[] = {
        { "{'spec':{'nodeSelector':{'zone':'b'}}}", true },
        { "{'spec':{'nodeSelector':{'arch':'c'}}}", true },
        { "{'spec':{'nodeSelector':{'zone':'c'}}}", false },
        { "{'spec':{'nodeSelector':{'zone':null}}}", false },
        { REQUIRED("{'key':'a','operator':'Exists'}"), true },
        { REQUIRED("{'key':'a','operator':'Exists'},{'key':'b','operator':'Exists'}"), true },
        { REQUIRED("{'key':'b','operator':'Exists'}"), false },
        { "{'spec':{'affinity':{'podAffinity':{'requiredDuringSchedulingIgnoredDuringExecution':"
          "[{'topologyKey':'zone','labelSelector':{}}]}}}}",
          false },
        { "{'spec':{'affinity':null}}", false },
    };
#undef REQUIRED
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &pod_kind,
                            js("{'metadata':{'name':'a'},'spec':{'schedulingGates':["
                               "{'name':'a.io/1'}],'containers':[{'name':'c','image':'i'}]}}"));
    const struct pod_condition *why = pod_condition(pod_of(made), STR("PodScheduled"));
    EXPECT_TRUE(why != NULL);
    EXPECT_EQ(why->status, CONDITION_FALSE);
    EXPECT_STR(why->reason, "SchedulingGated");
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        struct str text = js("%s", cases[i].patch);
        int rc = patch(&c, &pod_kind, "a", (struct patch_options){ 0 }, text, &err);
        if (cases[i].ok)
            EXPECT_OK(rc, err);
        else
            EXPECT_ERR(rc, err, ERR_INVALID);
    }
}

static const char pool_json[] =
    "{'metadata':{'name':'pool'},'spec':{'template':{'spec':{'requirements':[],'nodeClassRef':"
    "{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass','name':'default'}}}},"
    "'status':{'nodes':7}}";

TEST(a_custom_resource_gets_its_defaults_and_no_status)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &nodepool_kind, js("%s", pool_json));
    const struct nodepool *pool = nodepool_of(made);
    EXPECT_EQ(pool->spec.disruption.policy, CONSOLIDATE_WHEN_EMPTY_OR_UNDERUTILIZED);
    EXPECT_EQ(pool->spec.disruption.budgets.count, 1);
    EXPECT_EQ(pool->status.nodes, 0);
}

TEST(the_status_of_a_custom_resource_is_all_that_its_subresource_writes)
{
    CONFORMANCE c = opened();
    object_unref(make(c.store, &nodepool_kind, js("%s", pool_json)));
    AUTO_OBJECT now = merge_status(c.store, &nodepool_kind, "pool",
                                   js("{'metadata':{'labels':{'a':'b'}},'spec':{'weight':9},"
                                      "'status':{'nodes':3}}"));
    EXPECT_EQ(nodepool_of(now)->status.nodes, 3);
    EXPECT_FALSE(nodepool_of(now)->spec.weight.set);
    EXPECT_EQ(now->meta.labels.count, 0);
    EXPECT_EQ(now->meta.generation, 1);
}

TEST(the_status_subresource_of_a_pod_takes_labels_but_no_owners)
{
    CONFORMANCE c = opened();
    make_pod(c.store, "a", "");
    AUTO_OBJECT now = merge_status(c.store, &pod_kind, "a",
                                   js("{'metadata':{'labels':{'a':'b'},'ownerReferences':[{"
                                      "'apiVersion':'v1','kind':'Node','name':'n','uid':'u'}]}}"));
    EXPECT_EQ(now->meta.labels.count, 1);
    EXPECT_EQ(now->meta.owners.count, 0);
}

TEST(what_only_its_controller_can_judge_is_stored)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    object_unref(make(c.store, &nodepool_kind, js("%s", pool_json)));
    EXPECT_OK(patch(&c, &nodepool_kind, "pool", (struct patch_options){ 0 },
                    js("{'spec':{'template':{'metadata':{'labels':{'karpenter.k8s.aws/mine':'x'}},"
                       "'spec':{'requirements':[{'key':'a','operator':'In','values':['b']},"
                       "{'key':'a','operator':'DoesNotExist'}]}}}}"),
                    &err),
              err);
    object_unref(merge_status(c.store, &nodepool_kind, "pool", js("{'status':{'nodes':1}}")));
    EXPECT_ERR(patch(&c, &nodepool_kind, "pool", (struct patch_options){ 0 },
                     js("{'metadata':{'labels':{'a/b/c':'x'}}}"), &err),
               err, ERR_INVALID);
}

TEST(a_version_in_the_patch_of_a_custom_resource_is_a_version)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    object_unref(make(c.store, &nodepool_kind, js("%s", pool_json)));
    EXPECT_ERR(patch(&c, &nodepool_kind, "pool", (struct patch_options){ 0 },
                     js("{'metadata':{'resourceVersion':'0'},'spec':{'weight':5}}"), &err),
               err, ERR_INVALID);
}

TEST(custom_resources_take_no_strategic_patches)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    object_unref(make(c.store, &nodepool_kind, js("%s", pool_json)));
    EXPECT_ERR(patch(&c, &nodepool_kind, "pool", (struct patch_options){ .type = PATCH_STRATEGIC },
                     js("{'spec':{'weight':9}}"), &err),
               err, ERR_INVALID);
}

/* The containers of the Deployment, "name=image ...". */
static const char *containers(struct conformance *c)
{
    static char text[256];
    size_t len = 0;
    AUTO_OBJECT object = get(c->store, &deployment_kind, "web");
    const struct pod_spec *spec = &deployment_of(object)->spec.maybe_template->spec;
    for (uint32_t i = 0; i < spec->containers.count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s=%.*s", i ? " " : "",
                                STR_ARG(spec->containers.items[i].name),
                                STR_ARG(spec->containers.items[i].image));
    return text;
}

TEST(a_strategic_patch_merges_containers_by_name)
{
    static const struct {
        const char *patch, *want;
    } cases[] = {
        { "[{'name':'b','image':'new'}]", "a=1 b=new" },
        { "[{'name':'c','image':'3'}]", "c=3 a=1 b=2" }, /* what is new comes first */
        { "[{'name':'b','image':'2'},{'name':'a','image':'1'}]", "b=2 a=1" },
        { "[{'name':'a','$patch':'delete'}]", "b=2" },
        { "[{'$patch':'replace'},{'name':'z','image':'9'}]", "z=9" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        CONFORMANCE c = opened();
        struct err err = { 0 };
        object_unref(
            make(c.store, &deployment_kind,
                 js("{'metadata':{'name':'web'},'spec':{'selector':{'matchLabels':{'app':'web'}},"
                    "'template':{'metadata':{'labels':{'app':'web'}},'spec':{'containers':["
                    "{'name':'a','image':'1'},{'name':'b','image':'2'}]}}}}")));
        EXPECT_OK(
            patch(&c, &deployment_kind, "web", (struct patch_options){ .type = PATCH_STRATEGIC },
                  js("{'spec':{'template':{'spec':{'containers':%s}}}}", cases[i].patch), &err),
            err);
        EXPECT_Z(containers(&c), cases[i].want);
    }
}

TEST(a_strategic_patch_replaces_deletes_and_keeps_members_as_it_is_told)
{
    static const struct {
        const char *patch;
        const char *a, *b; /* the labels afterwards; NULL: not there */
    } cases[] = {
        { "{'b':'3'}", "1", "3" },
        { "{'a':null}", NULL, "2" },
        { "{'$patch':'replace','b':'3'}", NULL, "3" },
        { "{'$patch':'delete'}", NULL, NULL },
        { "{'$retainKeys':['b'],'b':'3'}", NULL, "3" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        CONFORMANCE c = opened();
        struct err err = { 0 };
        object_unref(
            make(c.store, &node_kind, js("{'metadata':{'name':'n','labels':{'a':'1','b':'2'}}}")));
        EXPECT_OK(patch(&c, &node_kind, "n", (struct patch_options){ .type = PATCH_STRATEGIC },
                        js("{'metadata':{'labels':%s}}", cases[i].patch), &err),
                  err);
        AUTO_OBJECT now = get(c.store, &node_kind, "n");
        EXPECT_STR(str_map_get(&now->meta.labels, STR("a")), cases[i].a);
        EXPECT_STR(str_map_get(&now->meta.labels, STR("b")), cases[i].b);
    }
}
