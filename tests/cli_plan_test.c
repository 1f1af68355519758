/* karve plan, as users and scripts meet it. */
#include "cli_testing.h"

#define PLAN "plan --catalogue tests/plan/catalogue.yaml "
#define POOL "-f tests/plan/pool.yaml "
#define WEB "-f tests/plan/web.yaml "

static const json_val *json_of(const struct result *r, struct doc *doc)
{
    struct err err;
    EXPECT_OK(json_read(buf_str(&r->out), doc, &err), err);
    return doc->root;
}

static bool has_item(const json_val *list, const char *text)
{
    json_each_item(list, item) {
        if (str_eqz(json_str(item), text))
            return true;
    }
    return false;
}

/* The names of all pods that the plan places, in the order of the document. */
static void placed_pods(const json_val *root, struct buf *out)
{
    static const char *const lists[] = { "launches", "existing" };
    for (size_t i = 0; i < KV_COUNT_OF(lists); i++)
        json_each_item(json_get(root, str_of(lists[i])), place)
            json_each_item(json_get(place, STR("pods")), pod)
                buf_addf(out, "%.*s ", STR_ARG(json_str(pod)));
}

/* `manifests` with the pool and the catalogue of these tests: the pods that are placed. */
static void expect_pods(const char *arguments, const char *manifests, const char *want)
{
    AUTO_BUF command = { 0 }, pods = { 0 };
    struct doc doc;
    buf_addf(&command, "karve " PLAN POOL "-o json %s -f -", arguments);
    AUTO_RESULT r = sh(command.p, str_of(manifests));
    placed_pods(json_of(&r, &doc), &pods);
    EXPECT_STR(buf_str(&pods), want);
    doc_done(&doc);
}

#define CONTAINERS                                                                                 \
    "containers: [{name: a, image: b, resources: {requests: {cpu: 100m, memory: 64Mi}}}]"
#define TEMPLATE "template: {metadata: {labels: {app: a}}, spec: {" CONTAINERS "}}"

/* --- the table --- */

TEST(a_plan_is_a_row_per_launch_and_alike_launches_are_one)
{
    AUTO_RESULT r = karve(PLAN POOL WEB);
    EXPECT_EQ(r.code, 0);
    EXPECT_STR(buf_str(&r.err), "");
    const char *want = "4 pods on 2 new nodes\n"
                       "\n"
                       "NODES  NODEPOOL  TYPE     ZONE  CAPACITY   $/HOUR  CPU                "
                       "MEMORY             PODS  WORKLOADS\n"
                       "  2x   general   a.small  z-1a  on-demand  0.2000  [##########] 100%  "
                       "[#####.....]  50%  4     web x4\n"
                       "\n"
                       "total        $0.2000 an hour, $146.00 a month\n"
                       "lower bound  $0.";
    EXPECT_STR(str_sub(buf_str(&r.out), 0, strlen(want)), want);
}

TEST(a_large_plan_has_a_row_per_offering)
{
    AUTO_BUF pods = { 0 };
    for (int i = 0; i < 61; i++)
        buf_addf(&pods,
                 "apiVersion: v1\nkind: Pod\nmetadata: {name: p-%d}\nspec: {containers: [{name: a, "
                 "image: b, resources: {requests: {cpu: 4500m, memory: %dMi}}}]}\n---\n",
                 i, 100 + i);
    AUTO_RESULT r = sh("karve " PLAN POOL "--effort 0 -f -", buf_str(&pods));
    EXPECT_EQ(r.code, 0);
    size_t lines = 0;
    for (size_t i = 0; i < r.out.len; i++)
        lines += r.out.p[i] == '\n';
    EXPECT_TRUE(lines < 20);
    EXPECT_HAS(buf_str(&r.out), "-o wide shows each\n");
    AUTO_RESULT wide = sh("karve " PLAN POOL "--effort 0 -o wide -f -", buf_str(&pods));
    EXPECT_HAS(buf_str(&wide.out), "default/p-60");
}

TEST(a_wide_plan_has_every_launch_with_its_pods)
{
    AUTO_RESULT r = karve(PLAN POOL WEB "-o wide");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "TYPES  PODS  POD NAMES\n");
    EXPECT_HAS(buf_str(&r.out), "default/web-0..1\n");
    EXPECT_HAS(buf_str(&r.out), "default/web-2..3\n");
}

TEST(a_plan_in_colour_has_bars_of_blocks_where_the_locale_has_them)
{
    AUTO_RESULT blocks = sh("LC_ALL=C.UTF-8 karve " PLAN POOL WEB "--color always", STR(""));
    EXPECT_HAS(buf_str(&blocks.out), "\033[32m██████████\033[0m");
    EXPECT_HAS(buf_str(&blocks.out), "\033[36m█████     \033[0m");
    AUTO_RESULT ascii = sh("LC_ALL=C karve " PLAN POOL WEB "--color always", STR(""));
    EXPECT_HAS(buf_str(&ascii.out), "[\033[32m##########\033[0m] 100%");
}

/* --- for scripts --- */

TEST(a_plan_prints_json_as_the_contract_says)
{
    AUTO_RESULT r = karve(PLAN POOL WEB "-o json");
    struct doc doc;
    const json_val *root = json_of(&r, &doc);
    const json_val *launch = json_at(json_get(root, STR("launches")), 0);
    EXPECT_EQ(r.code, 0);
    EXPECT_EQ(json_count(json_get(root, STR("launches"))), 2);
    EXPECT_STR(json_str(json_get(launch, STR("nodePool"))), "general");
    EXPECT_STR(json_str(json_get(launch, STR("instanceType"))), "a.small");
    EXPECT_TRUE(has_item(json_get(launch, STR("instanceTypes")), "a.small"));
    EXPECT_STR(json_str(json_get(launch, STR("zone"))), "z-1a");
    EXPECT_STR(json_str(json_get(launch, STR("capacityType"))), "on-demand");
    EXPECT_TRUE(json_double(json_get(launch, STR("pricePerHour"))) == 0.1);
    EXPECT_STR(json_str(json_path(launch, "requests.cpu")), "2");
    EXPECT_STR(json_str(json_path(launch, "requests.memory")), "2Gi");
    EXPECT_STR(json_str(json_path(launch, "requests.pods")), "2");
    EXPECT_STR(json_str(json_at(json_get(launch, STR("pods")), 0)), "default/web-0");
    EXPECT_STR(json_str(json_path(launch, "labels.team")), "shop");
    EXPECT_TRUE(json_is_array(json_get(launch, STR("taints"))));
    EXPECT_TRUE(json_count(json_get(launch, STR("requirements"))) > 0);
    EXPECT_EQ(json_count(json_get(root, STR("existing"))), 0);
    EXPECT_EQ(json_count(json_get(root, STR("unschedulable"))), 0);
    EXPECT_EQ(json_count(json_get(root, STR("skipped"))), 0);
    const json_val *totals = json_get(root, STR("totals"));
    int64_t pods, launches;
    EXPECT_TRUE(json_i64(json_get(totals, STR("pods")), &pods) && pods == 4);
    EXPECT_TRUE(json_i64(json_get(totals, STR("launches")), &launches) && launches == 2);
    EXPECT_TRUE(json_double(json_get(totals, STR("pricePerHour"))) == 0.2);
    EXPECT_TRUE(json_double(json_get(totals, STR("lowerBoundPerHour"))) <= 0.2);
    doc_done(&doc);
}

TEST(a_plan_in_yaml_is_the_same_document)
{
    AUTO_RESULT json = karve(PLAN POOL WEB "-o json --explain all --check");
    AUTO_RESULT yaml = karve(PLAN POOL WEB "-o yaml --explain all --check");
    struct doc doc;
    struct docs docs;
    struct err err;
    const json_val *root = json_of(&json, &doc);
    EXPECT_OK(yaml_read(buf_str(&yaml.out), &docs, NULL, &err), err);
    EXPECT_EQ(docs.count, 1);
    EXPECT_TRUE(json_equal(root, docs.items[0].root));
    docs_done(&docs);
    doc_done(&doc);
}

TEST(equal_input_gives_equal_plans_whatever_its_order)
{
    AUTO_RESULT a = karve("plan -f examples/shop -o json");
    AUTO_RESULT b =
        sh("karve plan $(for f in $(ls -r examples/shop/*); do echo -f $f; done) -o json", STR(""));
    EXPECT_TRUE(str_eq(buf_str(&a.out), buf_str(&b.out)));
}

/* --- what becomes a pod --- */

TEST(replicas_are_numbered_and_live_in_the_default_namespace)
{
    expect_pods("",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 2, "
                "selector: {matchLabels: {app: a}}, " TEMPLATE "}\n",
                "default/a-0 default/a-1 ");
    expect_pods(
        "",
        "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: a, namespace: shop}\nspec: "
        "{replicas: 2, selector: {matchLabels: {app: a}}, " TEMPLATE "}\n",
        "shop/a-0 shop/a-1 ");
    expect_pods("",
                "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {replicas: 2, "
                "ordinals: {start: 5}, serviceName: a, selector: {matchLabels: {app: a}}, " TEMPLATE
                "}\n",
                "default/a-5 default/a-6 ");
    expect_pods("",
                "apiVersion: v1\nkind: Pod\nmetadata: {generateName: a-}\nspec: {" CONTAINERS "}\n",
                "default/a-0 ");
}

TEST(a_job_wants_what_runs_at_once_and_is_not_done)
{
    static const struct {
        const char *spec, *status, *want;
    } cases[] = {
        { "", "{}", "default/a-0 " },
        { "parallelism: 3, ", "{}", "default/a-0 default/a-1 default/a-2 " },
        { "parallelism: 3, completions: 2, ", "{}", "default/a-0 default/a-1 " },
        { "parallelism: 3, completions: 4, ", "{succeeded: 3}", "default/a-0 " },
        { "parallelism: 3, completions: 3, ", "{succeeded: 3}", "" },
        { "parallelism: 3, suspend: true, ", "{}", "" },
        { "parallelism: 2, completions: 2, completionMode: Indexed, ", "{}",
          "default/a-0 default/a-1 " },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_BUF job = { 0 };
        buf_addf(&job,
                 "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\nspec: {%stemplate: "
                 "{spec: {restartPolicy: Never, " CONTAINERS "}}}\nstatus: %s\n",
                 cases[i].spec, cases[i].status);
        expect_pods("", job.p, cases[i].want);
    }
}

TEST(a_cron_job_is_not_planned_for_and_a_note_says_so)
{
    AUTO_RESULT r = sh("karve " PLAN POOL "-f -",
                       STR("apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: a}\nspec: "
                           "{schedule: '0 3 * * *', jobTemplate: {spec: {template: {spec: "
                           "{restartPolicy: Never, " CONTAINERS "}}}}}\n"));
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "0 pods on 0 new nodes\n");
    EXPECT_HAS(buf_str(&r.out),
               "note: CronJobs make pods at their times only: 1 is not planned for");
    EXPECT_HAS(buf_str(&r.out), "note: no pod is waiting for a node");
}

TEST(a_daemon_set_takes_its_share_of_every_node_and_is_no_pod_of_the_plan)
{
    struct str agent =
        STR("apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent}\nspec:\n"
            "  selector: {matchLabels: {app: agent}}\n"
            "  template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: "
            "a, image: b, resources: {requests: {cpu: 500m}}}]}}\n");
    AUTO_RESULT r = sh("karve " PLAN POOL WEB "-f - -o json", agent);
    struct doc doc;
    const json_val *root = json_of(&r, &doc);
    int64_t pods;
    EXPECT_TRUE(json_i64(json_path(root, "totals.pods"), &pods) && pods == 4);
    const json_val *launch = json_at(json_get(root, STR("launches")), 0);
    EXPECT_STR(json_str(json_get(launch, STR("instanceType"))), "a.large");
    EXPECT_STR(json_str(json_path(launch, "requests.cpu")), "4500m");
    doc_done(&doc);
}

TEST(a_deployment_gets_only_the_pods_it_lacks)
{
    AUTO_BUF pods = { 0 };
    AUTO_RESULT r = karve(PLAN POOL WEB "--nodes tests/plan/running.yaml -o json");
    struct doc doc;
    EXPECT_EQ(r.code, 0);
    placed_pods(json_of(&r, &doc), &pods);
    /* Of four, one runs; the one that failed does not count. Another goes to the node's free cpu. */
    EXPECT_STR(buf_str(&pods), "default/web-1 default/web-2 default/web-0 ");
    const json_val *existing = json_at(json_get(doc.root, STR("existing")), 0);
    EXPECT_STR(json_str(json_get(existing, STR("node"))), "node-1");
    doc_done(&doc);
    AUTO_RESULT table = karve(PLAN POOL WEB "--nodes tests/plan/running.yaml");
    EXPECT_HAS(buf_str(&table.out), "2 pods on 1 new node, 1 pod on 1 node that is there\n");
    EXPECT_HAS(buf_str(&table.out), "EXISTING  STATE  PODS  WORKLOADS\n"
                                    "node-1    node   1     web\n");
}

TEST(pods_are_counted_through_their_replica_set_for_the_deployment)
{
    const char *manifests =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {replicas: 2, selector: "
        "{matchLabels: {app: a}}, " TEMPLATE "}\n---\n"
        "apiVersion: apps/v1\nkind: ReplicaSet\nmetadata: {name: odd, ownerReferences: [{apiVersion: "
        "apps/v1, kind: Deployment, name: a, uid: u, controller: true}]}\nspec: {replicas: 2, "
        "selector: {matchLabels: {app: a}}, " TEMPLATE "}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: odd-x, labels: {app: a}, ownerReferences: "
        "[{apiVersion: apps/v1, kind: ReplicaSet, name: odd, uid: u, controller: true}]}\nspec: "
        "{" CONTAINERS "}\n";
    expect_pods("", manifests, "default/a-0 default/odd-x ");
}

TEST(a_stateful_set_makes_the_ordinals_that_are_not_there)
{
    const char *manifests =
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {replicas: 3, serviceName: "
        "a, selector: {matchLabels: {app: a}}, " TEMPLATE "}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a-0, labels: {app: a}, ownerReferences: "
        "[{apiVersion: apps/v1, kind: StatefulSet, name: a, uid: u, controller: true}]}\nspec: "
        "{nodeName: elsewhere, " CONTAINERS "}\n---\n"
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a-1, labels: {app: a}, ownerReferences: "
        "[{apiVersion: apps/v1, kind: StatefulSet, name: a, uid: u, controller: true}]}\nspec: "
        "{nodeName: elsewhere, " CONTAINERS "}\nstatus: {phase: Failed}\n";
    expect_pods("", manifests, "default/a-1 default/a-2 ");
}

TEST(claims_of_a_stateful_set_that_are_there_decide_the_zone)
{
    const char *manifests =
        "apiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: disk}\n"
        "provisioner: ebs.csi.aws.com\nvolumeBindingMode: WaitForFirstConsumer\n---\n"
        "apiVersion: v1\nkind: PersistentVolume\nmetadata: {name: old}\nspec: {capacity: {storage: "
        "1Gi}, accessModes: [ReadWriteOnce], storageClassName: disk, claimRef: {namespace: default, "
        "name: data-a-1}, csi: {driver: ebs.csi.aws.com, volumeHandle: v}, nodeAffinity: {required: "
        "{nodeSelectorTerms: [{matchExpressions: [{key: topology.kubernetes.io/zone, operator: In, "
        "values: [z-1b]}]}]}}}\n---\n"
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data-a-1, annotations: "
        "{pv.kubernetes.io/bind-completed: 'yes'}}\nspec: {accessModes: [ReadWriteOnce], "
        "storageClassName: disk, volumeName: old, resources: {requests: {storage: 1Gi}}}\nstatus: "
        "{phase: Bound}\n---\n"
        "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: a}\nspec: {replicas: 2, serviceName: "
        "a, selector: {matchLabels: {app: a}}, " TEMPLATE
        ", volumeClaimTemplates: [{metadata: {name: "
        "data}, spec: {accessModes: [ReadWriteOnce], storageClassName: disk, resources: {requests: "
        "{storage: 1Gi}}}}]}\n";
    AUTO_RESULT r = sh("karve " PLAN POOL "-o json -f -", str_of(manifests));
    struct doc doc;
    const json_val *root = json_of(&r, &doc);
    EXPECT_EQ(r.code, 0);
    json_each_item(json_get(root, STR("launches")), launch) {
        if (has_item(json_get(launch, STR("pods")), "default/a-1"))
            EXPECT_STR(json_str(json_get(launch, STR("zone"))), "z-1b");
    }
    int64_t pods;
    EXPECT_TRUE(json_i64(json_path(root, "totals.pods"), &pods) && pods == 2);
    doc_done(&doc);
}

TEST(more_replicas_than_anybody_can_plan_for_are_refused)
{
    AUTO_RESULT r =
        sh("karve " PLAN POOL "-f -",
           STR("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: "
               "{replicas: 2000000000, selector: {matchLabels: {app: a}}, " TEMPLATE "}\n"));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), "Deployment/a asks for 2000000000 pods; at most 1000000");
}

/* --- what is there --- */

TEST(workloads_of_a_dump_are_not_expanded_because_their_pods_are_in_it)
{
    AUTO_RESULT r = karve(PLAN POOL "--context tests/plan/running.yaml");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "0 pods on 0 new nodes\n");
    AUTO_RESULT wanted = karve(PLAN POOL "-f tests/plan/running.yaml");
    EXPECT_HAS(buf_str(&wanted.out), "api x5");
}

TEST(an_object_of_f_takes_the_place_of_the_one_in_a_dump)
{
    AUTO_RESULT r =
        sh("karve " PLAN POOL "--context tests/plan/running.yaml -f -",
           STR("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: api}\nspec: {replicas: 1, "
               "selector: {matchLabels: {app: a}}, " TEMPLATE "}\n"));
    EXPECT_HAS(buf_str(&r.out), "note: 1 object of the running cluster is as -f has it");
    EXPECT_HAS(buf_str(&r.out), "1 pod on 1 node that is there\n");
}

static const char one_context[] =
    "apiVersion: v1\nkind: Config\ncurrent-context: dev\n"
    "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
    "users: [{name: u, user: {token: t}}]\n"
    "contexts: [{name: dev, context: {cluster: c, user: u}}]\n";

TEST(a_context_that_the_kubeconfig_lacks_is_told_with_those_that_it_has)
{
    AUTO_RESULT r =
        sh("cat >\"$TMPDIR/kubeconfig\"; KUBECONFIG=\"$TMPDIR/kubeconfig\" karve " PLAN POOL
           "--context production",
           str_of(one_context));
    EXPECT_EQ(r.code, 3);
    EXPECT_EQ(r.out.len, 0);
    EXPECT_HAS(buf_str(&r.err), "\"production\"");
    EXPECT_HAS(buf_str(&r.err), "dev");
}

/* --- what goes wrong --- */

TEST(pods_that_fit_nowhere_are_told_by_workload_in_one_plain_line)
{
    struct str big =
        STR("apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: big}\nspec:\n"
            "  replicas: 3\n  selector: {matchLabels: {app: big}}\n  template: {metadata: "
            "{labels: {app: big}}, spec: {containers: [{name: a, image: b, resources: "
            "{requests: {cpu: 96}}}]}}\n");
    AUTO_RESULT r = sh("karve " PLAN POOL WEB "-f -", big);
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.out), "4 pods on 2 new nodes, 3 go nowhere\n");
    EXPECT_HAS(buf_str(&r.out), "\n3 pods cannot be placed:\n  default/big x3: needs 96 cpu; ");
    EXPECT_HAS(buf_str(&r.out), " has 8\n");
    AUTO_RESULT json = sh("karve " PLAN POOL WEB "-o json -f -", big);
    struct doc doc;
    EXPECT_EQ(json.code, 1);
    const json_val *miss = json_at(json_get(json_of(&json, &doc), STR("unschedulable")), 0);
    EXPECT_STR(json_str(json_get(miss, STR("pod"))), "default/big-0");
    const json_val *reason = json_at(json_get(miss, STR("reasons")), 0);
    EXPECT_STR(json_str(json_get(reason, STR("nodePool"))), "general");
    EXPECT_STR(json_str(json_get(reason, STR("reason"))), "resources");
    doc_done(&doc);
}

TEST(skipped_pods_are_counted_by_reason_and_are_no_failure)
{
    AUTO_RESULT r = sh("karve " PLAN POOL WEB "-f -",
                       STR("apiVersion: v1\nkind: Pod\nmetadata: {name: held}\nspec: "
                           "{schedulingGates: [{name: example.com/quota}], " CONTAINERS "}\n"));
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "1 pod skipped: scheduling gate 1\n");
}

TEST(an_invalid_manifest_stops_the_plan_unless_told_to_keep_going)
{
    struct str bad =
        STR("apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {contianers: []}\n");
    AUTO_RESULT r = sh("karve " PLAN POOL WEB "-f -", bad);
    EXPECT_EQ(r.code, 1);
    EXPECT_EQ(r.out.len, 0);
    EXPECT_HAS(buf_str(&r.err), "stdin:4:8: Pod/x: spec.contianers");
    EXPECT_HAS(buf_str(&r.err), "--keep-going");
    AUTO_RESULT on = sh("karve " PLAN POOL WEB "--keep-going -f -", bad);
    EXPECT_EQ(on.code, 1);
    EXPECT_HAS(buf_str(&on.err), "stdin:4:8: Pod/x: spec.contianers");
    EXPECT_HAS(buf_str(&on.out), "4 pods on 2 new nodes\n");
    EXPECT_HAS(buf_str(&on.out), "note: objects that are invalid are left out: ");
}

TEST(without_a_node_pool_a_plan_shows_the_smallest_one_and_it_works)
{
    AUTO_RESULT r = karve(PLAN WEB);
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.err), "there is no NodePool among the manifests");
    EXPECT_HAS(buf_str(&r.out), "default/web x4: no node that is there takes it, and there is no "
                                "NodePool\n");
    AUTO_RESULT copied = sh(
        "karve " PLAN WEB "2>&1 >/dev/null | sed -n 's/^  //p' | karve plan " WEB "-f -", STR(""));
    EXPECT_EQ(copied.code, 0);
    EXPECT_HAS(buf_str(&copied.out), "4 pods on ");
}

TEST(a_pool_whose_node_class_is_not_there_is_used_with_a_note)
{
    AUTO_RESULT r = karve("plan " POOL WEB);
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "note: NodePool/general: EC2NodeClass/default is not among the "
                                "manifests: its defaults are assumed\n");
}

TEST(a_pool_whose_node_class_is_not_ready_launches_nothing)
{
    AUTO_RESULT r =
        sh("karve " PLAN POOL WEB "-f -",
           STR("apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: "
               "default}\nspec:\n  role: x\n  amiSelectorTerms: [{alias: al2023@latest}]\n"
               "  subnetSelectorTerms: [{id: subnet-1}]\n  securityGroupSelectorTerms: "
               "[{id: sg-1}]\nstatus:\n  conditions:\n  - {type: Ready, status: 'False', "
               "reason: SubnetsNotFound, message: no subnets, lastTransitionTime: "
               "'2026-01-01T00:00:00Z'}\n"));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.out), "EC2NodeClass/default is not ready: no subnets");
}

TEST(texts_of_manifests_do_not_reach_a_terminal_as_escapes)
{
    AUTO_RESULT r =
        sh("karve " PLAN POOL "--explain bound -f -",
           STR("apiVersion: karpenter.k8s.aws/v1\nkind: EC2NodeClass\nmetadata: {name: "
               "default}\nspec:\n  role: x\n  amiSelectorTerms: [{alias: al2023@latest}]\n"
               "  subnetSelectorTerms: [{id: subnet-1}]\n  securityGroupSelectorTerms: "
               "[{id: sg-1}]\nstatus: {conditions: [{type: Ready, status: 'False', reason: Odd, "
               "message: \"a\\e[2Jb\\nc\", lastTransitionTime: '2026-01-01T00:00:00Z'}]}\n---\n"
               "apiVersion: v1\nkind: Pod\nmetadata: {name: bound}\nspec: {nodeName: "
               "\"n\\e[2J\", " CONTAINERS "}\n---\n"
               "apiVersion: v1\nkind: Pod\nmetadata: {name: free}\nspec: {" CONTAINERS "}\n"));
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.out), "is not ready: \"a\\u001b[2Jb\\nc\"\n");
    EXPECT_HAS(buf_str(&r.out), "bound to node \"n\\u001b[2J\"\n");
    EXPECT_TRUE(strchr(r.out.p, '\033') == NULL);
}

TEST(a_plan_is_priced_by_overlays_and_says_which_were_rejected)
{
    struct str overlays =
        STR("apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: half}\nspec: "
            "{requirements: [], priceAdjustment: '-50%'}\n---\n"
            "apiVersion: karpenter.sh/v1alpha1\nkind: NodeOverlay\nmetadata: {name: clash}\nspec: "
            "{requirements: [], price: '3'}\n");
    AUTO_RESULT r = sh("karve " PLAN POOL WEB "-f -", overlays);
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "total        $0.1000 an hour, $73.00 a month\n");
    EXPECT_HAS(buf_str(&r.out), "note: NodeOverlay/clash: rejected (conflict): ");
    AUTO_RESULT gate = sh("karve " PLAN POOL WEB "--node-overlay false -f -", overlays);
    EXPECT_HAS(buf_str(&gate.out), "total        $0.2000 an hour");
}

TEST(a_plan_refuses_what_makes_no_sense_with_the_usual_codes)
{
    static const struct {
        const char *arguments, *words;
        int code;
    } cases[] = {
        { "plan", "nothing to read", 2 },
        { "plan -f /dev/null", "no manifests in /dev/null", 1 },
        { "plan -f - </dev/null", "no manifests in standard input\n", 1 },
        { PLAN POOL "--seed x", "--seed \"x\": expected a number from 0 up", 2 },
        { PLAN POOL "--effort -1", "--effort \"-1\": expected a number", 2 },
        { PLAN POOL "-f - --nodes -", "standard input (-) can be read once only", 2 },
        { PLAN POOL "--explain nobody", "there is no pod \"nobody\"", 2 },
        { PLAN POOL WEB "--explain wbe", "did you mean default/web-0?", 2 },
        { "plan --region eu-west-11 " POOL, "did you mean eu-west-1?", 2 },
        { "plan -f /no/such/file", "/no/such/file", 3 },
        { PLAN POOL "--nodes /no/such/file", "/no/such/file", 3 },
        { "plan " POOL "--catalogue /no/such/file", "/no/such/file", 3 },
        { "plan --preference-policy Never " POOL, "is not one of Respect, Ignore", 2 },
    };
    for (size_t i = 0; i < KV_COUNT_OF(cases); i++) {
        AUTO_RESULT r = karve(cases[i].arguments);
        EXPECT_EQ(r.code, cases[i].code);
        EXPECT_HAS(buf_str(&r.err), cases[i].words);
        EXPECT_EQ(r.out.len, 0);
    }
}

/* --- why --- */

TEST(explain_names_every_pool_and_what_is_left_of_its_types)
{
    AUTO_RESULT r = karve(PLAN POOL WEB "--explain web-1");
    EXPECT_EQ(r.code, 0);
    EXPECT_HAS(buf_str(&r.out), "\ndefault/web-1: new node of general: a.small, z-1a, on-demand\n");
    EXPECT_HAS(buf_str(&r.out), "\nNodePool general: yes\n     2 > 2 ");
    AUTO_RESULT all = karve(PLAN POOL WEB "--explain default/web");
    EXPECT_HAS(buf_str(&all.out), "\ndefault/web-0..3 (4 pods): new node of general: ");
}

TEST(explain_of_a_pod_that_fits_nowhere_tells_the_reason_and_the_nearest_miss)
{
    struct str big =
        STR("apiVersion: v1\nkind: Pod\nmetadata: {name: big}\nspec: {containers: [{name: "
            "a, image: b, resources: {requests: {cpu: 9}}}]}\n");
    AUTO_RESULT r = sh("karve " PLAN POOL "--explain big -f -", big);
    EXPECT_EQ(r.code, 1);
    EXPECT_HAS(buf_str(&r.out), "\ndefault/big: nowhere\nNodePool general: no\n");
    EXPECT_HAS(buf_str(&r.out), "     2 > 0      cpu 9\n  needs 9 cpu; ");
    EXPECT_HAS(buf_str(&r.out), "  nearest: a.large: 8 of 9 cpu\n");
    EXPECT_HAS(buf_str(&r.out), "  edit:    ");
    AUTO_RESULT json = sh("karve " PLAN POOL "--explain all -o json -f -", big);
    struct doc doc;
    const json_val *e = json_at(json_get(json_of(&json, &doc), STR("explain")), 0);
    EXPECT_TRUE(has_item(json_get(e, STR("pods")), "default/big"));
    const json_val *pool = json_at(json_get(e, STR("nodePools")), 0);
    EXPECT_STR(json_str(json_get(pool, STR("reason"))), "resources");
    EXPECT_FALSE(json_bool(json_get(pool, STR("possible"))));
    EXPECT_TRUE(json_count(json_get(pool, STR("steps"))) > 0);
    doc_done(&doc);
}

TEST(explain_of_a_pod_that_is_not_planned_for_says_why_not)
{
    AUTO_RESULT bound = karve(PLAN POOL "--nodes tests/plan/running.yaml --explain debug");
    EXPECT_EQ(bound.code, 0);
    EXPECT_HAS(buf_str(&bound.out), "note: default/debug is bound to node node-1\n");
    AUTO_RESULT held = sh("karve " PLAN POOL "--explain held -f -",
                          STR("apiVersion: v1\nkind: Pod\nmetadata: {name: held}\nspec: "
                              "{schedulingGates: [{name: example.com/quota}], " CONTAINERS "}\n"));
    EXPECT_HAS(buf_str(&held.out), "note: default/held is skipped: scheduling gate\n");
}

/* --- the example --- */

TEST(the_example_is_planned_whole_and_passes_its_check)
{
    AUTO_RESULT r = karve("plan -f examples/shop --check");
    EXPECT_EQ(r.code, 0);
    EXPECT_STR(buf_str(&r.err), "");
    EXPECT_HAS(buf_str(&r.out), "204 pods on ");
    EXPECT_HAS(buf_str(&r.out), "plan checked: 204 placements, all rules hold\n");
    EXPECT_FALSE(strstr(r.out.p, "cannot be placed") != NULL);
    AUTO_RESULT json = karve("plan -f examples/shop --check -o json");
    struct doc doc;
    EXPECT_TRUE(json_bool(json_path(json_of(&json, &doc), "check.ok")));
    doc_done(&doc);
}
