/* The API half as a whole: Node, Lease, pods, statuses, mirrors, objects and events, on a store in
 * memory and a fake runtime. */
#include "node/node_api_testing.h"

#include "api/node_kinds.h"

#include <sys/mount.h>

static uint32_t running(struct cluster *c, const char *uid)
{
    return fake_cri_containers(c->rig.fake, uid, "main", RUNTIME_RUNNING);
}

static bool node_ready(struct cluster *c)
{
    AUTO_OBJECT node = NULL;
    struct err err;
    return store_get(c->store, at(&node_kind, "node-1"), &node, &err) == 0 &&
           node_is_ready(node_of(node));
}

static bool pod_ready(struct cluster *c, const char *name)
{
    AUTO_OBJECT pod = NULL;
    struct err err;
    return store_get(c->store, at(&pod_kind, name), &pod, &err) == 0 && pod_is_ready(pod_of(pod));
}

static bool pod_phase_is(struct cluster *c, const char *name, enum pod_phase phase)
{
    AUTO_OBJECT pod = NULL;
    struct err err;
    return store_get(c->store, at(&pod_kind, name), &pod, &err) == 0 &&
           pod_of(pod)->status->phase == phase;
}

/* --- the Node --- */

TEST(a_node_is_registered_with_what_the_machine_has_and_gets_ready_and_a_lease)
{
    struct cluster c = { .labels = "topology.kubernetes.io/zone=a,disk=ssd",
                         .taints = "only=this:NoSchedule,init:NoExecute",
                         .provider_id = "aws:///a/i-1" };
    cluster_open(&c);
    cluster_agent_start(&c);
    WAIT_FOR(&c.rig, node_ready(&c));
    AUTO_OBJECT object = get(c.store, &node_kind, "node-1");
    const struct node *node = node_of(object);
    EXPECT_STR(str_map_get(&object->meta.labels, STR("kubernetes.io/hostname")), "node-1");
    EXPECT_STR(str_map_get(&object->meta.labels, STR("kubernetes.io/os")), "linux");
    EXPECT_STR(str_map_get(&object->meta.labels, STR("disk")), "ssd");
    EXPECT_STR(str_map_get(&object->meta.labels, STR("topology.kubernetes.io/zone")), "a");
    EXPECT_STR(node->spec.provider_id, "aws:///a/i-1");
    EXPECT_TRUE(node_taint(node, STR("only"), EFFECT_NO_SCHEDULE) != NULL);
    EXPECT_TRUE(node_taint(node, STR("init"), EFFECT_NO_EXECUTE) != NULL);
    EXPECT_EQ(node->status.capacity.count, 4);
    EXPECT_STR(node->status.maybe_info->container_runtime_version, "containerd://2.0.0+fake");
    EXPECT_STR(node->status.maybe_info->kubelet_version, "v1.34.0+karve.0.1.0");
    EXPECT_STR(node_address(node, STR("Hostname")), "node-1");
    EXPECT_EQ(node->status.conditions.count, 4);

    WAIT_FOR(&c.rig, cluster_says(&c, &lease_kind, "node-1", "renewTime"));
    AUTO_BUF first = { 0 };
    cluster_text(&c, &lease_kind, "kube-node-lease", "node-1", &first);
    EXPECT_HAS(buf_str(&first), "\"holderIdentity\":\"node-1\"");
    EXPECT_HAS(buf_str(&first), "\"leaseDurationSeconds\":40");
    EXPECT_TRUE(memmem(first.p, first.len, object->meta.uid.p, object->meta.uid.len) != NULL);
    char renewed[48];
    snprintf(renewed, sizeof renewed, "%.40s", strstr(first.p, "renewTime"));
    WAIT_FOR(&c.rig, !cluster_says(&c, &lease_kind, "node-1", renewed));
    object_unref(take(&object));
    cluster_close(&c);
}

TEST(a_node_that_is_there_is_taken_over_and_keeps_what_others_said)
{
    struct cluster c = { .provider_id = "aws:///a/i-1", .labels = "disk=ssd" };
    cluster_open(&c);
    object_unref(
        make(c.store, &node_kind,
             js("{'metadata':{'name':'node-1','labels':{'kubernetes.io/arch':'vax','x':'y'}},"
                "'spec':{'taints':[{'key':'k','effect':'NoSchedule'}]},"
                "'status':{'conditions':[{'type':'NetworkUnavailable','status':'False'}]}}")));
    cluster_agent_start(&c);
    WAIT_FOR(&c.rig, node_ready(&c));
    AUTO_OBJECT object = get(c.store, &node_kind, "node-1");
    const struct node *node = node_of(object);
    EXPECT_FALSE(str_eqz(str_map_get(&object->meta.labels, STR("kubernetes.io/arch")), "vax"));
    EXPECT_STR(str_map_get(&object->meta.labels, STR("x")), "y");
    EXPECT_TRUE(str_map_get(&object->meta.labels, STR("disk")).p == NULL); /* of a new Node alone */
    EXPECT_STR(node->spec.provider_id, "aws:///a/i-1");
    EXPECT_EQ(node->spec.taints.count, 1);
    EXPECT_TRUE(node_condition(node, STR("NetworkUnavailable")) != NULL);

    /* Marked as unknown, because nobody had heard of it: it says again what is true. */
    object_unref(
        merge_status(c.store, &node_kind, "node-1",
                     js("{'status':{'conditions':[{'type':'Ready','status':'Unknown'}]}}")));
    WAIT_FOR(&c.rig, node_ready(&c));
    object_unref(take(&object));
    cluster_close(&c);
}

TEST(a_node_whose_runtime_does_not_answer_is_registered_and_not_ready_and_says_why)
{
    struct cluster c = { 0 };
    cluster_open(&c);
    fake_cri_fault(c.rig.fake,
                   (struct fake_fault){ .method = CRI_STATUS, .status = GRPC_UNAVAILABLE });
    cluster_agent_start(&c);
    WAIT_FOR(&c.rig, cluster_says(&c, &node_kind, "node-1", "KubeletNotReady"));
    EXPECT_FALSE(node_ready(&c));
    WAIT_FOR(&c.rig, cluster_says(&c, &lease_kind, "node-1", "renewTime")); /* but it lives */
    fake_cri_heal(c.rig.fake);
    WAIT_FOR(&c.rig, node_ready(&c));
    EXPECT_TRUE(cluster_says(&c, &node_kind, "node-1", "KubeletReady"));
    cluster_close(&c);
}

TEST(a_node_that_was_deleted_is_not_made_again_and_has_no_lease_until_the_agent_is_restarted)
{
    struct cluster c = { 0 };
    cluster_open(&c);
    cluster_agent_start(&c);
    WAIT_FOR(&c.rig, node_ready(&c));
    WAIT_FOR(&c.rig, cluster_says(&c, &lease_kind, "node-1", "renewTime"));
    remove_it(c.store, &node_kind, "node-1"); /* and its Lease with it */
    rig_linger();
    rig_linger();
    EXPECT_FALSE(cluster_there(&c, &node_kind, "node-1"));
    cluster_agent_stop(&c);
    cluster_agent_start(&c);
    WAIT_FOR(&c.rig, node_ready(&c));
    cluster_close(&c);
}

TEST(without_registration_the_node_of_somebody_else_is_waited_for)
{
    struct cluster c = { .no_register = true };
    cluster_open(&c);
    cluster_agent_start(&c);
    rig_linger();
    EXPECT_FALSE(cluster_there(&c, &node_kind, "node-1"));
    make_node(c.store, "node-1");
    WAIT_FOR(&c.rig, node_ready(&c));
    cluster_close(&c);
}

/* --- pods --- */

TEST(a_pod_bound_to_the_node_runs_says_so_and_is_gone_after_it_was_deleted)
{
    struct cluster c = { 0 };
    char uid[64];
    cluster_open(&c);
    cluster_agent_start(&c);
    cluster_pod(&c, "web", "Always", uid);
    object_unref(make(c.store, &pod_kind,
                      js("{'metadata':{'name':'other'},'spec':{'nodeName':"
                         "'node-2','containers':[{'name':'main','image':'web:1'}]}}")));
    object_unref(
        merge_status(c.store, &pod_kind, "web",
                     js("{'status':{'conditions':[{'type':'example.com/lb','status':'True'}]}}")));
    WAIT_FOR(&c.rig, running(&c, uid) == 1);
    WAIT_FOR(&c.rig, pod_ready(&c, "web"));
    EXPECT_TRUE(pod_phase_is(&c, "web", PHASE_RUNNING));
    EXPECT_TRUE(cluster_says(&c, &pod_kind, "web", "example.com/lb"));
    EXPECT_TRUE(cluster_says(&c, &pod_kind, "web", "containerd://"));
    EXPECT_TRUE(cluster_says(&c, &pod_kind, "web", "\"hostIP\""));
    EXPECT_EQ(fake_cri_sandboxes(c.rig.fake, NULL, RUNTIME_RUNNING), 1);

    remove_it(c.store, &pod_kind, "web");
    WAIT_FOR(&c.rig, !cluster_there(&c, &pod_kind, "web"));
    EXPECT_EQ(running(&c, uid), 0);
    WAIT_FOR(&c.rig, cluster_removals(&c, uid) == 1); /* counted when it has come back from there */
    WAIT_FOR(&c.rig, !fake_cri_find(c.rig.fake, uid, NULL).exists);
    EXPECT_TRUE(cluster_there(&c, &pod_kind, "other"));
    cluster_close(&c);
}

TEST(a_pod_that_completes_stays_with_its_exit_code_until_somebody_deletes_it)
{
    struct cluster c = { 0 };
    char uid[64];
    cluster_open(&c);
    cluster_agent_start(&c);
    cluster_pod(&c, "job", "Never", uid);
    WAIT_FOR(&c.rig, running(&c, uid) == 1);
    fake_cri_exit(c.rig.fake, fake_cri_find(c.rig.fake, uid, "main").id, 3);
    WAIT_FOR(&c.rig, pod_phase_is(&c, "job", PHASE_FAILED));
    EXPECT_TRUE(cluster_says(&c, &pod_kind, "job", "\"exitCode\":3"));
    rig_linger();
    EXPECT_TRUE(cluster_there(&c, &pod_kind, "job"));
    EXPECT_EQ(cluster_removals(&c, uid), 0);
    remove_it(c.store, &pod_kind, "job");
    WAIT_FOR(&c.rig, !cluster_there(&c, &pod_kind, "job"));
    cluster_close(&c);
}

TEST(a_status_that_somebody_wrote_over_is_put_right)
{
    struct cluster c = { 0 };
    char uid[64];
    cluster_open(&c);
    cluster_agent_start(&c);
    cluster_pod(&c, "web", "Always", uid);
    WAIT_FOR(&c.rig, pod_ready(&c, "web"));
    set_pod(c.store, "web", "Running", false); /* as for pods of an unreachable node */
    EXPECT_FALSE(pod_ready(&c, "web"));
    WAIT_FOR(&c.rig, pod_ready(&c, "web"));
    cluster_close(&c);
}

TEST(while_the_server_is_away_pods_go_on_and_what_happened_is_told_when_it_is_back)
{
    struct cluster c = { 0 };
    char uid[64], gone_uid[64];
    cluster_open(&c);
    cluster_agent_start(&c);
    cluster_pod(&c, "web", "Always", uid);
    cluster_pod(&c, "goes", "Always", gone_uid);
    WAIT_FOR(&c.rig, pod_ready(&c, "web") && pod_ready(&c, "goes"));
    atomic_store(&c.down, true);
    rig_linger(); /* a question that was asked before is answered by then */
    fake_cri_exit(c.rig.fake, fake_cri_find(c.rig.fake, uid, "main").id, 7);
    remove_it(c.store, &pod_kind, "goes");
    WAIT_FOR(&c.rig, running(&c, uid) == 1 && fake_cri_find(c.rig.fake, uid, "main").attempt == 1);
    rig_linger();
    EXPECT_EQ(running(&c, gone_uid), 1); /* nobody has told us */
    EXPECT_FALSE(cluster_says(&c, &pod_kind, "web", "\"restartCount\":1"));
    atomic_store(&c.down, false);
    WAIT_FOR(&c.rig, cluster_says(&c, &pod_kind, "web", "\"restartCount\":1"));
    EXPECT_TRUE(cluster_says(&c, &pod_kind, "web", "\"exitCode\":7"));
    WAIT_FOR(&c.rig, !cluster_there(&c, &pod_kind, "goes"));
    EXPECT_EQ(running(&c, gone_uid), 0);
    cluster_close(&c);
}

TEST(an_agent_that_comes_back_ends_nothing_before_the_server_was_heard_and_then_what_is_gone)
{
    struct cluster c = { 0 };
    char stays[64], goes[64], marked[64];
    struct err err;
    cluster_open(&c);
    cluster_agent_start(&c);
    cluster_pod(&c, "stays", "Always", stays);
    cluster_pod(&c, "goes", "Always", goes);
    cluster_pod(&c, "marked", "Always", marked);
    const char *foreign = fake_cri_sandbox(c.rig.fake, "uid-foreign", "foreign", 0);
    WAIT_FOR(&c.rig, pod_ready(&c, "stays") && pod_ready(&c, "goes") && pod_ready(&c, "marked"));
    const char *first = fake_cri_find(c.rig.fake, stays, "main").id;
    cluster_agent_stop(&c);

    EXPECT_OK(store_remove(c.store, at(&pod_kind, "goes"),
                           &(struct delete_options){ .grace_s = { 0, true } }, &err),
              err);
    remove_it(c.store, &pod_kind, "marked");
    atomic_store(&c.down, true);
    cluster_agent_start(&c);
    rig_linger();
    EXPECT_EQ(running(&c, goes), 1);
    EXPECT_EQ(running(&c, marked), 1);
    atomic_store(&c.down, false);
    WAIT_FOR(&c.rig, running(&c, goes) == 0);
    WAIT_FOR(&c.rig, !cluster_there(&c, &pod_kind, "marked"));
    rig_linger();
    EXPECT_EQ(running(&c, stays), 1);
    EXPECT_Z(fake_cri_find(c.rig.fake, stays, "main").id, first);
    EXPECT_EQ(fake_cri_get(c.rig.fake, foreign).state, RUNTIME_RUNNING);
    cluster_close(&c);
}

TEST(nothing_is_delivered_before_every_pod_has_been_read)
{
    struct cluster c = { 0 };
    char uid[64];
    cluster_open(&c);
    cluster_agent_start(&c);
    cluster_pod(&c, "web", "Always", uid);
    WAIT_FOR(&c.rig, running(&c, uid) == 1);
    cluster_agent_stop(&c);
    atomic_store(&c.fail_every, 2); /* lists come, some reads do not */
    for (int i = 0; i < 3; i++) {
        cluster_agent_start(&c);
        rig_linger();
        EXPECT_EQ(running(&c, uid), 1);
        EXPECT_EQ(fake_cri_find(c.rig.fake, uid, "main").attempt, 0);
        cluster_agent_stop(&c);
    }
    atomic_store(&c.fail_every, 0);
    cluster_agent_start(&c);
    WAIT_FOR(&c.rig, pod_ready(&c, "web"));
    cluster_close(&c);
}

TEST(a_pod_of_the_same_name_has_nothing_to_do_with_the_one_before)
{
    struct cluster c = { 0 };
    char old[64], new[64];
    struct err err;
    cluster_open(&c);
    cluster_agent_start(&c);
    cluster_pod(&c, "web", "Always", old);
    WAIT_FOR(&c.rig, pod_ready(&c, "web"));
    /* The old one does not stop for a while; somebody is impatient and makes another. */
    fake_cri_fault(c.rig.fake, (struct fake_fault){ .method = CRI_STOP_CONTAINER, .hang = true });
    remove_it(c.store, &pod_kind, "web");
    WAIT_FOR(&c.rig, fake_cri_waiting(c.rig.fake) > 0);
    EXPECT_OK(store_remove(c.store, at(&pod_kind, "web"),
                           &(struct delete_options){ .grace_s = { 0, true } }, &err),
              err);
    cluster_pod(&c, "web", "Always", new);
    WAIT_FOR(&c.rig, pod_ready(&c, "web"));
    fake_cri_heal(c.rig.fake);
    WAIT_FOR(&c.rig, running(&c, old) == 0);
    rig_linger();
    EXPECT_EQ(running(&c, new), 1);
    EXPECT_TRUE(pod_ready(&c, "web"));
    EXPECT_EQ(cluster_removals(&c, new), 0);
    cluster_close(&c);
}

/* --- what pods refer to --- */

static const char *env_of(const Cri__ContainerConfig *config, const char *name)
{
    for (size_t i = 0; i < config->n_envs; i++)
        if (strcmp(config->envs[i]->key, name) == 0)
            return config->envs[i]->value;
    return "(not set)";
}

TEST(volumes_and_variables_come_from_config_maps_secrets_and_tokens)
{
    static const char pod[] =
        "{'metadata':{'name':'web'},'spec':{'nodeName':'node-1','hostNetwork':true,"
        "'serviceAccountName':'robot','terminationGracePeriodSeconds':1,"
        "'containers':[{'name':'main','image':'web:1',"
        "'env':[{'name':'COLOUR','valueFrom':{'configMapKeyRef':{'name':'paint','key':'colour'}}},"
        "{'name':'WORD','valueFrom':{'secretKeyRef':{'name':'door','key':'word'}}}],"
        "'volumeMounts':[{'name':'access','mountPath':'/access'}]}],"
        "'volumes':[{'name':'access','projected':{'sources':[{'serviceAccountToken':"
        "{'path':'token','expirationSeconds':3607}},{'configMap':{'name':'paint'}}]}}]}}";
    struct cluster c = { 0 };
    AUTO_OBJECT made = NULL;
    char uid[64], path[256], text[64] = "";
    cluster_open(&c);
    cluster_agent_start(&c);
    made = make(c.store, &pod_kind, js("%s", pod));
    snprintf(uid, sizeof uid, "%.*s", STR_ARG(made->meta.uid));
    rig_linger();
    EXPECT_EQ(running(&c, uid), 0); /* the objects are not there yet */
    object_unref(make(c.store, &config_map_kind,
                      js("{'metadata':{'name':'paint'},'data':{'colour':'red'}}")));
    object_unref(
        make(c.store, &secret_kind, js("{'metadata':{'name':'door'},'data':{'word':'c2VzYW1l'}}")));
    WAIT_FOR(&c.rig, running(&c, uid) == 1);
    const Cri__ContainerConfig *config = fake_cri_find(c.rig.fake, uid, "main").config;
    EXPECT_Z(env_of(config, "COLOUR"), "red");
    EXPECT_Z(env_of(config, "WORD"), "sesame");
    EXPECT_Z(env_of(config, "KUBERNETES_SERVICE_HOST"), "10.0.0.1");
    EXPECT_Z(env_of(config, "KUBERNETES_PORT_443_TCP"), "tcp://10.0.0.1:443");
    snprintf(path, sizeof path, "%s/root/pods/%s/volumes/kubernetes.io~projected/access/token",
             c.rig.dir, uid);
    FILE *file = fopen(path, "r");
    EXPECT_TRUE(file != NULL);
    EXPECT_TRUE(fgets(text, sizeof text, file) != NULL);
    fclose(file);
    EXPECT_Z(text, "token-0-of-robot");
    EXPECT_EQ(atomic_load(&c.tokens), 1); /* many syncs, one token */
    remove_it(c.store, &pod_kind, "web");
    WAIT_FOR(&c.rig, !cluster_there(&c, &pod_kind, "web"));
    object_unref(take(&made));
    cluster_close(&c);
}

/* --- static pods --- */

static const char static_web[] = "apiVersion: v1\nkind: Pod\nmetadata: {name: web, uid: %s}\n"
                                 "spec: {hostNetwork: true, terminationGracePeriodSeconds: 1, "
                                 "containers: [{name: main, image: 'web:1'}]}\n";

static void write_static(struct cluster *c, const char *uid)
{
    char text[256];
    snprintf(text, sizeof text, static_web, uid);
    rig_write(&c->rig, "web.yaml", text);
}

static bool is_another(struct cluster *c, const char *name, struct str uid)
{
    AUTO_OBJECT pod = NULL;
    struct err err;
    return store_get(c->store, at(&pod_kind, name), &pod, &err) == 0 && !str_eq(pod->meta.uid, uid);
}

TEST(a_static_pod_has_a_mirror_that_shows_its_status_and_comes_back_when_deleted)
{
    struct cluster c = { 0 };
    cluster_open(&c);
    write_static(&c, "uid-a");
    cluster_agent_start(&c);
    WAIT_FOR(&c.rig, pod_ready(&c, "web-node-1"));
    AUTO_OBJECT first = get(c.store, &pod_kind, "web-node-1");
    EXPECT_TRUE(pod_is_mirror(pod_of(first)));
    EXPECT_EQ(first->meta.owners.count, 1);
    EXPECT_FALSE(str_eqz(first->meta.uid, "uid-a"));
    const char *id = fake_cri_find(c.rig.fake, "uid-a", "main").id;

    remove_it(c.store, &pod_kind, "web-node-1");
    WAIT_FOR(&c.rig, is_another(&c, "web-node-1", first->meta.uid) && pod_ready(&c, "web-node-1"));
    EXPECT_Z(fake_cri_find(c.rig.fake, "uid-a", "main").id, id); /* it ran all the while */

    write_static(&c, "uid-b");
    WAIT_FOR(&c.rig, running(&c, "uid-b") == 1);
    WAIT_FOR(&c.rig,
             cluster_says(&c, &pod_kind, "web-node-1", "uid-b") && pod_ready(&c, "web-node-1"));
    rig_unlink(&c.rig, "web.yaml");
    WAIT_FOR(&c.rig, !cluster_there(&c, &pod_kind, "web-node-1"));
    WAIT_FOR(&c.rig, running(&c, "uid-b") == 0);
    object_unref(take(&first));
    cluster_close(&c);
}

TEST(a_manifest_edited_while_away_starts_after_its_old_pod_also_without_the_server)
{
    struct cluster c = { 0 };
    cluster_open(&c);
    write_static(&c, "uid-a");
    cluster_agent_start(&c);
    WAIT_FOR(&c.rig, running(&c, "uid-a") == 1);
    cluster_agent_stop(&c);
    write_static(&c, "uid-b");
    atomic_store(&c.down, true);
    fake_cri_fault(c.rig.fake, (struct fake_fault){ .method = CRI_STOP_CONTAINER, .hang = true });
    cluster_agent_start(&c);
    WAIT_FOR(&c.rig, fake_cri_waiting(c.rig.fake) > 0);
    rig_linger();
    EXPECT_EQ(running(&c, "uid-b"), 0);
    fake_cri_heal(c.rig.fake);
    WAIT_FOR(&c.rig, running(&c, "uid-b") == 1);
    EXPECT_EQ(running(&c, "uid-a"), 0);
    cluster_close(&c);
}

/* --- events --- */

TEST(an_event_that_is_told_again_is_counted_in_the_one_that_is_there)
{
    struct cluster c = { 0 };
    struct object_list list;
    struct err err;
    AUTO_OBJECT made = NULL;
    cluster_open(&c);
    cluster_agent_start(&c);
    /* Its volume needs what is not there: the same failure again and again. */
    made = make(c.store, &pod_kind,
                js("{'metadata':{'name':'web'},'spec':{'nodeName':'node-1','hostNetwork':true,"
                   "'containers':[{'name':'main','image':'web:1'}],"
                   "'volumes':[{'name':'v','configMap':{'name':'absent'}}]}}"));
    bool counted = false;
    for (int i = 0; i < 3000 && !counted; i++) {
        nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
        EXPECT_OK(store_list(c.store, &event_kind, NULL, &list, &err), err);
        for (size_t k = 0; k < list.count; k++) {
            const struct event *event = event_of(list.items[k]);
            counted |= str_eqz(event->reason, "FailedMount") && event->count >= 3;
            EXPECT_TRUE(str_eq(event->involved.uid, made->meta.uid));
        }
        EXPECT_TRUE(list.count <= 2);
        object_list_done(&list);
    }
    EXPECT_TRUE(counted);
    object_unref(take(&made));
    cluster_close(&c);
}
