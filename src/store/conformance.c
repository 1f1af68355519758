/* store/conformance.c - the tests that every store passes; see store/conformance.h. Included by the test
 * program of each implementation. */
#include "store/conformance.h"

#include "api/node.h"
#include "api/policy.h"
#include "api/storage.h"
#include "api/workloads.h"
#include "store/testing.h"

#define CONFORMANCE __attribute__((cleanup(conformance_close))) struct conformance

#define EVENTUALLY(c, cond)                                                                        \
    do {                                                                                           \
        while (!(cond) && conformance_wait(c))                                                     \
            continue;                                                                              \
        EXPECT_TRUE(cond);                                                                         \
    } while (0)

static struct conformance opened(void)
{
    struct conformance c = { 0 };
    conformance_open(&c);
    return c;
}

static void expect_event(struct conformance *c, struct watch *w, const char *want)
{
    const char *got;
    while ((got = event_text(w, NULL))[0] == '\0' && conformance_wait(c))
        continue;
    EXPECT_Z(got, want);
}

static struct object_list list(struct conformance *c, const struct kind *kind,
                               struct list_options opts)
{
    struct object_list out = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(c->store, kind, &opts, &out, &err), err);
    return out;
}

/* The names of a list, "a b c". */
static const char *names(struct conformance *c, const struct kind *kind, struct list_options opts)
{
    static char text[1024];
    size_t len = 0;
    struct object_list found = list(c, kind, opts);

    text[0] = '\0';
    for (size_t i = 0; i < found.count; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%.*s", i ? " " : "",
                                STR_ARG(found.items[i]->meta.name));
    object_list_done(&found);
    return text;
}

static void make_node(const struct store *s, const char *name)
{
    object_unref(make(s, &node_kind, J("{'metadata':{'name':'%s'}}", name)));
}

static int patch(struct conformance *c, const struct kind *kind, const char *name,
                 struct patch_options opts, struct str text, struct err *err)
{
    return store_patch(c->store, at(kind, name), opts, text, NULL, err);
}

/* --- creating --- */

TEST(a_new_object_gets_a_uid_a_version_a_time_and_generation_1)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT a = make(c.store, &node_kind, J("{'metadata':{'name':'a'}}"));
    AUTO_OBJECT b = make(c.store, &lease_kind, J("{'metadata':{'name':'b'}}"));

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
    EXPECT_ERR(store_create(c.store, &node_kind, STR(""), J("{'metadata':{'name':'a'}}"), NULL, &err),
               err, ERR_EXISTS);
}

TEST(names_are_generated_from_a_prefix)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT a = make(c.store, &lease_kind, J("{'metadata':{'generateName':'web-'}}"));
    AUTO_OBJECT b = make(c.store, &lease_kind, J("{'metadata':{'generateName':'web-'}}"));

    EXPECT_EQ(a->meta.name.len, 4 + 5);
    EXPECT_TRUE(str_starts(a->meta.name, STR("web-")));
    EXPECT_FALSE(str_eq(a->meta.name, b->meta.name));
}

TEST(a_long_prefix_leaves_room_for_the_generated_part)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT a = make(c.store, &lease_kind,
                         J("{'metadata':{'generateName':'%070d-'}}", 0));
    EXPECT_EQ(a->meta.name.len, 63);
}

TEST(creation_refuses_what_makes_no_sense)
{
    static const char *const bad[] = {
        "{'metadata':{}}",                                       /* no name */
        "{'metadata':{'name':'Upper'}}",                         /* not a DNS name */
        "{'metadata':{'name':'a','resourceVersion':'7'}}",       /* a version that cannot be */
        "{'metadata':{'name':'a','namespace':'kube-system'}}",   /* sent to another namespace */
        "{'apiVersion':'v1','kind':'Node','metadata':{'name':'a'}}", /* of another kind */
        "{'metadata':{'name':'a','labels':{'-':'x'}}}",          /* a label that is none */
        "{'metadata':[]}",
        "[]",
        "{",
    };
    CONFORMANCE c = opened();
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        struct err err = { 0 };
        EXPECT_ERR(store_create(c.store, &lease_kind, STR("default"), J("%s", bad[i]), NULL, &err),
                   err, ERR_INVALID);
    }
    EXPECT_Z(names(&c, &lease_kind, (struct list_options){ .namespace_ = STR("default") }), "");
}

TEST(a_namespace_must_be_there)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    EXPECT_ERR(store_create(c.store, &lease_kind, STR("elsewhere"), J("{'metadata':{'name':'a'}}"),
                            NULL, &err),
               err, ERR_NOT_FOUND);
    object_unref(make(c.store, &namespace_kind, J("{'metadata':{'name':'elsewhere'}}")));
    EXPECT_OK(store_create(c.store, &lease_kind, STR("elsewhere"), J("{'metadata':{'name':'a'}}"),
                           NULL, &err),
              err);
}

TEST(invalid_objects_are_refused_with_the_path_of_the_field)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    EXPECT_ERR(store_create(c.store, &pdb_kind, STR("default"),
                            J("{'metadata':{'name':'a'},'spec':{'minAvailable':-1,"
                              "'selector':{'matchLabels':{'app':'a'}}}}"),
                            NULL, &err),
               err, ERR_INVALID);
    EXPECT_HAS(str_of(err.text), "spec.minAvailable");
}

TEST(a_new_object_has_no_status_but_nodes_may_bring_one)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT pod = make(c.store, &pod_kind,
                           J("{'metadata':{'name':'a'},'status':{'phase':'Running'},"
                             "'spec':{'containers':[{'name':'c','image':'i'}]}}"));
    AUTO_OBJECT node = make(c.store, &node_kind,
                            J("{'metadata':{'name':'a'},'status':{'capacity':{'cpu':'4'}}}"));
    AUTO_OBJECT pdb = make(c.store, &pdb_kind,
                           J("{'metadata':{'name':'a'},'spec':{'minAvailable':1,"
                             "'selector':{'matchLabels':{'app':'a'}}},"
                             "'status':{'currentHealthy':7,'disruptionsAllowed':7,"
                             "'desiredHealthy':7,'expectedPods':7}}"));

    EXPECT_EQ(pod_of(pod)->status->phase, PHASE_PENDING);
    EXPECT_EQ(node_of(node)->status.capacity.count, 1);
    EXPECT_EQ(pdb_of(pdb)->status.current_healthy, 0);
}

/* --- patching --- */

static const char deployment_json[] =
    "{'metadata':{'name':'web'},'spec':{'replicas':3,'selector':{'matchLabels':{'app':'web'}},"
    "'template':{'metadata':{'labels':{'app':'web'}},"
    "'spec':{'containers':[{'name':'c','image':'i'}]}}}}";

TEST(generation_counts_changes_of_the_spec_only)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &deployment_kind, J("%s", deployment_json));
    EXPECT_EQ(made->meta.generation, 1);

    AUTO_OBJECT spec = merge(c.store, &deployment_kind, "web", J("{'spec':{'replicas':4}}"));
    EXPECT_EQ(spec->meta.generation, 2);
    EXPECT_TRUE(spec->meta.resource_version > made->meta.resource_version);
    EXPECT_EQ(deployment_of(spec)->spec.replicas.value, 4);

    AUTO_OBJECT labels = merge(c.store, &deployment_kind, "web",
                               J("{'metadata':{'labels':{'a':'b'}}}"));
    EXPECT_EQ(labels->meta.generation, 2);
    EXPECT_TRUE(labels->meta.resource_version > spec->meta.resource_version);

    AUTO_OBJECT status = merge_status(c.store, &deployment_kind, "web",
                                      J("{'status':{'replicas':4}}"));
    EXPECT_EQ(status->meta.generation, 2);
    EXPECT_TRUE(status->meta.resource_version > labels->meta.resource_version);
    EXPECT_EQ(deployment_of(status)->status.replicas, 4);
}

TEST(spec_and_status_are_written_apart)
{
    CONFORMANCE c = opened();
    object_unref(make(c.store, &deployment_kind, J("%s", deployment_json)));
    AUTO_OBJECT a = merge(c.store, &deployment_kind, "web",
                          J("{'spec':{'replicas':5},'status':{'replicas':9}}"));
    EXPECT_EQ(deployment_of(a)->spec.replicas.value, 5);
    EXPECT_EQ(deployment_of(a)->status.replicas, 0);

    AUTO_OBJECT b = merge_status(c.store, &deployment_kind, "web",
                                 J("{'spec':{'replicas':6},'status':{'replicas':9}}"));
    EXPECT_EQ(deployment_of(b)->spec.replicas.value, 5);
    EXPECT_EQ(deployment_of(b)->status.replicas, 9);
}

TEST(a_kind_without_status_has_no_status_to_patch)
{
    CONFORMANCE c = opened();
    struct err err = { 0 };
    object_unref(make(c.store, &lease_kind, J("{'metadata':{'name':'a'}}")));
    EXPECT_ERR(patch(&c, &lease_kind, "a", (struct patch_options){ .status = true },
                     J("{'status':{}}"), &err),
               err, ERR_NOT_FOUND);
}

TEST(a_patch_that_changes_nothing_writes_nothing)
{
    static const char *const patches[] = {
        "{}",
        "{'spec':{'replicas':3}}",
        "{'metadata':{'labels':{'gone':null}}}",
        "{'metadata':{'generation':77}}",  /* not the writer's to say */
        "{'status':{'replicas':1}}",       /* not here */
        "{'spec':{'revisionHistoryLimit':null}}", /* comes back as the default that it is */
    };
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &deployment_kind, J("%s", deployment_json));
    for (size_t i = 0; i < KV_COUNT_OF(patches); i++) {
        AUTO_OBJECT same = merge(c.store, &deployment_kind, "web", J("%s", patches[i]));
        EXPECT_EQ(same->meta.resource_version, made->meta.resource_version);
        EXPECT_EQ(same->meta.generation, 1);
    }
}

TEST(a_stale_version_conflicts_in_the_options_and_in_the_patch)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT old = make(c.store, &node_kind, J("{'metadata':{'name':'a'}}"));
    AUTO_OBJECT now = merge(c.store, &node_kind, "a", J("{'metadata':{'labels':{'a':'1'}}}"));
    struct patch_options stale = { .resource_version = old->meta.resource_version };
    struct patch_options fresh = { .resource_version = now->meta.resource_version };
    struct err err = { 0 };

    EXPECT_ERR(patch(&c, &node_kind, "a", stale, J("{'metadata':{'labels':{'a':'2'}}}"), &err), err,
               ERR_CONFLICT);
    EXPECT_ERR(patch(&c, &node_kind, "a", (struct patch_options){ 0 },
                     J("{'metadata':{'resourceVersion':'%llu','labels':{'a':'2'}}}",
                       (unsigned long long)old->meta.resource_version),
                     &err),
               err, ERR_CONFLICT);
    EXPECT_OK(patch(&c, &node_kind, "a", fresh, J("{'metadata':{'labels':{'a':'2'}}}"), &err), err);
}

TEST(a_json_patch_is_applied_whole_or_not_at_all)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &node_kind, J("{'metadata':{'name':'a','labels':{'x':'1'}}}"));
    struct patch_options opts = { .type = PATCH_JSON };
    struct err err = { 0 };

    EXPECT_ERR(patch(&c, &node_kind, "a", opts,
                     J("[{'op':'add','path':'/metadata/labels/y','value':'2'},"
                       "{'op':'test','path':'/metadata/labels/x','value':'other'}]"),
                     &err),
               err, ERR_INVALID);
    AUTO_OBJECT same = get(c.store, &node_kind, "a");
    EXPECT_EQ(same->meta.resource_version, made->meta.resource_version);

    EXPECT_OK(patch(&c, &node_kind, "a", opts,
                    J("[{'op':'test','path':'/metadata/resourceVersion','value':'%llu'},"
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
    object_unref(make(c.store, &node_kind,
                      J("{'metadata':{'name':'a'},'spec':{'taints':[{'key':'x','effect':'NoSchedule'}]},"
                        "'status':{'conditions':[{'type':'Ready','status':'False'},"
                        "{'type':'DiskPressure','status':'False'}]}}")));

    EXPECT_OK(patch(&c, &node_kind, "a", status,
                    J("{'status':{'conditions':[{'type':'Ready','status':'True'}]}}"), &err),
              err);
    EXPECT_OK(patch(&c, &node_kind, "a", spec,
                    J("{'spec':{'taints':[{'key':'y','effect':'NoExecute'}]}}"), &err),
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
                      J("{'metadata':{'name':'a','finalizers':['a.io/x','a.io/y']}}")));

    EXPECT_OK(patch(&c, &node_kind, "a", opts, J("{'metadata':{'finalizers':['a.io/z']}}"), &err),
              err);
    EXPECT_OK(patch(&c, &node_kind, "a", opts,
                    J("{'metadata':{'$deleteFromPrimitiveList/finalizers':['a.io/x']}}"), &err),
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
        { "{'metadata':{'uid':'0b3e2a52-0000-4000-8000-000000000000'}}", ERR_CONFLICT },
        { "{'metadata':{'creationTimestamp':'2001-01-01T00:00:00Z'}}", ERR_INVALID },
        { "{'metadata':{'deletionTimestamp':'2001-01-01T00:00:00Z'}}", ERR_INVALID },
        { "{'metadata':{'deletionGracePeriodSeconds':5}}", ERR_INVALID },
        { "{'kind':'Pod'}", ERR_INVALID },
        { "[]", ERR_INVALID },
        { "{", ERR_INVALID },
    };
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &node_kind, J("{'metadata':{'name':'a'}}"));
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        EXPECT_ERR(patch(&c, &node_kind, "a", (struct patch_options){ 0 }, J("%s", cases[i].patch),
                         &err),
                   err, cases[i].kind);
    }
    AUTO_OBJECT same = merge(c.store, &node_kind, "a",
                             J("{'metadata':{'uid':null,'creationTimestamp':null}}"));
    EXPECT_EQ(same->meta.resource_version, made->meta.resource_version);
    EXPECT_TRUE(str_eq(same->meta.uid, made->meta.uid));
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
        { "{'spec':{'activeDeadlineSeconds':600}}", true },
    };
    CONFORMANCE c = opened();
    make_pod(c.store, "a", "");
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct err err = { 0 };
        struct str text = J("%s", cases[i].patch);
        /* A strategic patch would merge the containers; a merge patch replaces them. */
        int rc = patch(&c, &pod_kind, "a", (struct patch_options){ 0 }, text, &err);
        if (cases[i].ok)
            EXPECT_OK(rc, err);
        else
            EXPECT_ERR(rc, err, ERR_INVALID);
    }
}

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
                            J("{'metadata':{'name':'web','finalizers':['a.io/x','a.io/y']},"
                              "%s", deployment_json + sizeof("{'metadata':{'name':'web'},") - 1));
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
                     J("{'metadata':{'finalizers':['a.io/x','a.io/y','a.io/z']}}"), &err),
               err, ERR_INVALID);
    object_unref(merge(c.store, &deployment_kind, "web", J("{'metadata':{'finalizers':['a.io/y']}}")));
    EXPECT_TRUE(is_there(c.store, &deployment_kind, "web"));
    object_unref(merge(c.store, &deployment_kind, "web", J("{'metadata':{'finalizers':null}}")));
    EXPECT_FALSE(is_there(c.store, &deployment_kind, "web"));
}

TEST(deletion_honours_preconditions)
{
    CONFORMANCE c = opened();
    AUTO_OBJECT made = make(c.store, &node_kind, J("{'metadata':{'name':'a'}}"));
    AUTO_OBJECT now = merge(c.store, &node_kind, "a", J("{'metadata':{'labels':{'a':'1'}}}"));
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
    object_unref(merge(c.store, &pod_kind, "a", J("{'metadata':{'finalizers':['a.io/x']}}")));
    remove_it(c.store, &pod_kind, "a");
    remove_with_grace(&c, "a", 0);
    AUTO_OBJECT held = get(c.store, &pod_kind, "a");
    EXPECT_EQ(held->meta.deletion_grace_s.value, 0);
    object_unref(merge(c.store, &pod_kind, "a", J("{'metadata':{'finalizers':null}}")));
    EXPECT_FALSE(is_there(c.store, &pod_kind, "a"));
}

TEST(a_pod_keeps_its_grace_when_its_finalizer_goes_first)
{
    CONFORMANCE c = opened();
    run_pod(c.store, "a", "");
    object_unref(merge(c.store, &pod_kind, "a", J("{'metadata':{'finalizers':['a.io/x']}}")));
    remove_it(c.store, &pod_kind, "a");
    object_unref(merge(c.store, &pod_kind, "a", J("{'metadata':{'finalizers':null}}")));
    EXPECT_TRUE(is_there(c.store, &pod_kind, "a"));
    remove_with_grace(&c, "a", 0);
    EXPECT_FALSE(is_there(c.store, &pod_kind, "a"));
}

/* --- owners --- */

static void make_lease(struct conformance *c, const char *name, const char *more_meta)
{
    object_unref(make(c->store, &lease_kind, J("{'metadata':{'name':'%s'%s}}", name, more_meta)));
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

TEST(foreground_deletion_waits_for_what_blocks_it)
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
    EXPECT_TRUE(is_there(c.store, &lease_kind, "aside")); /* it does not block: later */

    object_unref(merge(c.store, &lease_kind, "slow", J("{'metadata':{'finalizers':null}}")));
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "owner"));
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "aside"));
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
                       J("{'metadata':{'ownerReferences':[%s]}}", owner_json(&c, "b", true))));
    remove_as(&c, "a", (struct delete_options){ .propagation = PROPAGATE_FOREGROUND });
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "a"));
    EVENTUALLY(&c, !is_there(c.store, &lease_kind, "b"));
}

/* --- listing --- */

TEST(lists_are_sorted_and_selected)
{
    CONFORMANCE c = opened();
    make_pod(c.store, "c", "'app':'web','tier':'front'");
    make_pod(c.store, "a", "'app':'web'");
    make_pod(c.store, "b", "'app':'db'");
    object_unref(make(c.store, &namespace_kind, J("{'metadata':{'name':'default-2'}}")));
    object_unref(make(c.store, &pod_kind,
                      J("{'metadata':{'name':'z','namespace':'default-2'},"
                        "'spec':{'containers':[{'name':'c','image':'i'}]}}")));
    bind_pod(c.store, "a", "node-1");
    bind_pod(c.store, "b", "node-1");

    EXPECT_Z(names(&c, &pod_kind, (struct list_options){ 0 }), "a b c z");
    EXPECT_Z(names(&c, &pod_kind, (struct list_options){ .namespace_ = STR("default") }), "a b c");
    EXPECT_Z(names(&c, &pod_kind, (struct list_options){ .label_selector = STR("app=web") }), "a c");
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
    EXPECT_Z(names(&c, &pod_kind, (struct list_options){ .field_selector = STR("metadata.name=c") }),
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
    EXPECT_ERR(store_list(c.store, &node_kind,
                          &(struct list_options){ .field_selector = STR("spec.colour=red") }, &out,
                          &err),
               err, ERR_INVALID);
    EXPECT_ERR(store_list(c.store, &node_kind,
                          &(struct list_options){ .continue_ = STR("%%%"), .limit = 1 }, &out, &err),
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

    object_unref(merge(c.store, &node_kind, "c", J("{'metadata':{'labels':{'new':'x'}}}")));
    remove_it(c.store, &node_kind, "d");
    make_node(c.store, "bb");

    struct object_list two = list(&c, &node_kind,
                                  (struct list_options){ .limit = 2,
                                                         .continue_ = str_of(one.continue_) });
    EXPECT_EQ(two.count, 2);
    EXPECT_EQ(two.resource_version, one.resource_version);
    EXPECT_STR(two.items[0]->meta.name, "c");
    EXPECT_EQ(two.items[0]->meta.labels.count, 0);
    EXPECT_STR(two.items[1]->meta.name, "d");
    struct object_list three = list(&c, &node_kind,
                                    (struct list_options){ .limit = 2,
                                                           .continue_ = str_of(two.continue_) });
    EXPECT_EQ(three.count, 1);
    EXPECT_STR(three.items[0]->meta.name, "e");
    EXPECT_TRUE(three.continue_ == NULL);
    object_list_done(&one);
    object_list_done(&two);
    object_list_done(&three);
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
    struct watch *w = watch(c.store, &node_kind,
                            (struct watch_options){ .resource_version = version_now(&c, &node_kind) });
    make_node(c.store, "a");
    object_unref(merge(c.store, &node_kind, "a", J("{'metadata':{'labels':{'x':'1'}}}")));
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
    struct watch *w = watch(c.store, &node_kind,
                            (struct watch_options){ .label_selector = STR("pool=a"),
                                                    .resource_version = version_now(&c, &node_kind) });
    make_node(c.store, "n");
    object_unref(merge(c.store, &node_kind, "n", J("{'metadata':{'labels':{'pool':'a'}}}")));
    object_unref(merge(c.store, &node_kind, "n", J("{'metadata':{'labels':{'more':'x'}}}")));
    object_unref(merge(c.store, &node_kind, "n", J("{'metadata':{'labels':{'pool':'b'}}}")));
    object_unref(merge(c.store, &node_kind, "n", J("{'metadata':{'labels':{'more':'y'}}}")));
    remove_it(c.store, &node_kind, "n");
    make_node(c.store, "end");
    object_unref(merge(c.store, &node_kind, "end", J("{'metadata':{'labels':{'pool':'a'}}}")));
    expect_event(&c, w, "ADDED n");
    expect_event(&c, w, "MODIFIED n");
    expect_event(&c, w, "DELETED n");
    expect_event(&c, w, "ADDED end");
    watch_close(w);
}

TEST(a_watch_of_a_nodes_pods_sees_them_arrive)
{
    CONFORMANCE c = opened();
    struct watch *w = watch(c.store, &pod_kind,
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
    struct watch *w = watch(c.store, &node_kind, (struct watch_options){ .resource_version = version });
    make_node(c.store, "a");
    remove_it(c.store, &node_kind, "a");
    make_node(c.store, "b");
    EVENTUALLY(&c, strcmp(event_text(w, &version), "DELETED a") == 0);
    watch_close(w);
    w = watch(c.store, &node_kind, (struct watch_options){ .resource_version = version });
    expect_event(&c, w, "ADDED b");
    watch_close(w);
}

TEST(the_last_finalizer_going_is_seen_as_a_deletion)
{
    CONFORMANCE c = opened();
    make_lease(&c, "a", ",'finalizers':['a.io/x']");
    struct watch *w = watch(c.store, &lease_kind,
                            (struct watch_options){ .resource_version = version_now(&c, &lease_kind) });
    remove_it(c.store, &lease_kind, "a");
    object_unref(merge(c.store, &lease_kind, "a", J("{'metadata':{'finalizers':null}}")));
    expect_event(&c, w, "MODIFIED a");
    expect_event(&c, w, "DELETED a");
    watch_close(w);
}

/* --- pods: binding and eviction --- */

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
    object_unref(make(c.store, &pod_kind,
                      J("{'metadata':{'name':'gated'},'spec':{'schedulingGates':[{'name':'a.io/g'}],"
                        "'containers':[{'name':'c','image':'i'}]}}")));
    EXPECT_ERR(store_bind(c.store, STR("default"), STR("gated"), STR("n"), &err), err, ERR_CONFLICT);

    object_unref(make(c.store, &pod_kind,
                      J("{'metadata':{'name':'going','finalizers':['a.io/x']},"
                        "'spec':{'containers':[{'name':'c','image':'i'}]}}")));
    remove_it(c.store, &pod_kind, "going");
    EXPECT_ERR(store_bind(c.store, STR("default"), STR("going"), STR("n"), &err), err, ERR_CONFLICT);
}

static void make_budget(struct conformance *c, const char *name, const char *spec)
{
    object_unref(make(c->store, &pdb_kind,
                      J("{'metadata':{'name':'%s'},'spec':{%s,"
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
    EVENTUALLY(&c, budget_allows(&c, "web", 0));
    EXPECT_ERR(evict(c.store, "a", &err), err, ERR_THROTTLED);
    EXPECT_HAS(str_of(err.text), "needs 2 healthy pods and has 2 currently");

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
                       J("{'spec':{'unhealthyPodEvictionPolicy':'AlwaysAllow'}}")));
    EVENTUALLY(&c, budget_allows(&c, "web", 0));
    EXPECT_OK(evict(c.store, "sick", &err), err);

    object_unref(merge(c.store, &pdb_kind, "web",
                       J("{'spec':{'unhealthyPodEvictionPolicy':'IfHealthyBudget'}}")));
    run_pod(c.store, "sick-2", "'app':'web'");
    set_pod(c.store, "sick-2", "Running", false);
    run_pod(c.store, "well", "'app':'web'");
    EVENTUALLY(&c, budget_allows(&c, "web", 0));
    EXPECT_ERR(evict(c.store, "well", &err), err, ERR_THROTTLED);
    EXPECT_OK(evict(c.store, "sick-2", &err), err);
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
