/* kube-scale [--small]: the controller in a large cluster of a real API server.
 *
 *     sync       from the start of the program until it has read the cluster: seconds, its processor time, memory
 *     rest       nothing changes: processor time a second, and how often a thread of it wakes
 *     provision  pods appear for which there is no room, until kube-scheduler has bound the last one: its own time,
 *                to call them unschedulable first, is in it
 *     nodes      the controller's part of that, with the default limits of its client and with none that matter:
 *                kube-scheduler stands still until the nodes are ready
 *     steps      of either: when the first and the last of its pods and claims had come how far
 *
 * The first node is launched by the controller for ten pods; all others are copies of it, of its claim and of its
 * pods (kube/etcd_fill.h), 5,000 nodes and 50,000 pods in full. The servers are on this machine too, and fake
 * kubelets in this process. Fails if the controller takes more than 250 MB, or launches anything in the quiet.
 */
#include "kube/etcd_fill.h"
#include "kube/fixture.h"
#include "kube/kubelets.h"
#include "support/program.h"

#include "api/conditions.h"
#include "api/karpenter.h"
#include "api/kinds.h"
#include "api/nodeclaim.h"
#include "api/pod.h"
#include "base/rng.h"
#include "base/vec.h"
#include "net/http.h"
#include "store/informer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define PODS_PER_NODE 10
#define RSS_KB_MAX (250 * 1024)
#define LIMIT_S 600

struct sizes {
    uint32_t nodes, wave, rest_s;
};

struct scale {
    struct plane *plane;
    struct plane_access access;
    struct kubelets *kubelets;
    struct http *http;
    uint16_t port; /* of the controller's probes */
};

static double seconds_since(int64_t start_ns)
{
    return (double)(clock_mono_ns(clock_real()) - start_ns) / 1e9;
}

/* --- the controller --- */

/* One that no connection is given by itself: the controller is started again and again on it. */
static uint16_t free_port(struct plane *p)
{
    int64_t port = 0;
    EXPECT_TRUE(str_to_i64(plane_must(p, "tests/kube/kube.sh free-port"), &port));
    return (uint16_t)port;
}

static bool is_ready(struct scale *s)
{
    AUTO_BUF said = { 0 };
    struct err err;
    char url[64];
    int status = 0;
    snprintf(url, sizeof url, "http://127.0.0.1:%u/readyz", s->port);
    struct http_request request = { .method = "GET", .url = str_of(url) };
    return http_do(s->http, &request, &status, &said, &err) == 0 && status == 200;
}

/* It is ready on return. `qps` and `burst` NULL: the defaults. */
static pid_t start_controller(struct scale *s, const char *qps, const char *burst)
{
    char port[8];
    snprintf(port, sizeof port, "%u", s->port);
    const char *args[] = { "controller",
                           "--kubeconfig",
                           plane_path(s->plane, "admin.kubeconfig"),
                           "--leader-elect=false",
                           "--metrics-port=0",
                           "--health-probe-port",
                           port,
                           qps ? "--kube-client-qps" : NULL,
                           qps,
                           "--kube-client-burst",
                           burst,
                           NULL };
    pid_t pid = plane_karve(s->plane, "controller", args);
    PLANE_WAIT_S(s->plane, LIMIT_S, is_ready(s) || !plane_runs(s->plane, pid));
    EXPECT_TRUE(plane_runs(s->plane, pid));
    return pid;
}

/* --- pods that need nodes --- */

static uint32_t count(struct scale *s, const struct kind *kind, const char *field_selector)
{
    struct object_list list = { 0 };
    struct err err;
    struct list_options opts = { .field_selector = str_of(field_selector) };
    EXPECT_OK(store_list(s->access.store, kind, &opts, &list, &err), err);
    uint32_t found = (uint32_t)list.count;
    object_list_done(&list);
    return found;
}

/* How far a wave has come: so many of its pods or claims have taken the step. */
enum step { MADE, UNSCHEDULABLE, CLAIMED, LAUNCHED, REGISTERED, INITIALIZED, BOUND, STEPS };
static const char *const step_names[STEPS] = { "made",       "unschedulable", "claimed", "launched",
                                               "registered", "initialized",   "bound" };

/* Told by watches: asking would keep the server busy with 50,000 others. */
struct wave {
    struct informer *pods, *claims;
    int64_t start_ns;
    struct progress {
        uint32_t count;
        double first_s, last_s; /* since the start; as often as somebody looks */
    } steps[STEPS];
};

static bool is_true(const struct nodeclaim *claim, struct str type)
{
    for (uint32_t i = 0; i < claim->status.conditions.count; i++) {
        const struct condition *c = &claim->status.conditions.items[i];
        if (str_eq(c->type, type))
            return c->status == CONDITION_TRUE;
    }
    return false;
}

static void count_steps(struct wave *w, uint32_t counts[STEPS])
{
    struct object_list pods = { 0 }, claims = { 0 };
    informer_pump(w->pods);
    informer_pump(w->claims);
    informer_list(w->pods, STR(""), &pods);
    informer_list(w->claims, STR(""), &claims);
    counts[MADE] = (uint32_t)pods.count;
    counts[CLAIMED] = (uint32_t)claims.count;
    for (size_t i = 0; i < pods.count; i++) {
        const struct pod *pod = pod_of(pods.items[i]);
        const struct pod_condition *scheduled = pod_condition(pod, STR("PodScheduled"));
        counts[BOUND] += pod_is_scheduled(pod);
        counts[UNSCHEDULABLE] += scheduled != NULL; /* or bound since */
    }
    for (size_t i = 0; i < claims.count; i++) {
        const struct nodeclaim *claim = nodeclaim_of(claims.items[i]);
        counts[LAUNCHED] += is_true(claim, CONDITION_LAUNCHED);
        counts[REGISTERED] += is_true(claim, CONDITION_REGISTERED);
        counts[INITIALIZED] += is_true(claim, CONDITION_INITIALIZED);
    }
    object_list_done(&pods);
    object_list_done(&claims);
}

/* All pods are bound, and the controller is done with their nodes. */
static bool is_over(struct wave *w, uint32_t pod_count)
{
    uint32_t counts[STEPS] = { 0 };
    count_steps(w, counts);
    double now_s = seconds_since(w->start_ns);
    for (uint32_t i = 0; i < STEPS; i++) {
        struct progress *step = &w->steps[i];
        if (counts[i] == step->count)
            continue;
        if (step->count == 0)
            step->first_s = now_s;
        step->last_s = now_s;
        step->count = counts[i];
    }
    return counts[BOUND] == pod_count && counts[INITIALIZED] == counts[CLAIMED];
}

static void make_pool(struct scale *s, const char *name)
{
    plane_apply(
        s->plane,
        arena_strf(
            &s->plane->arena,
            "apiVersion: karpenter.sh/v1\nkind: NodePool\nmetadata: {name: %s}\n"
            "spec: {template: {metadata: {labels: {scale: %s}}, spec: {"
            "requirements: [{key: kubernetes.io/os, operator: In, values: [linux]},"
            "{key: node.kubernetes.io/instance-type, operator: In, values: [c-16x-amd64-linux]}],"
            "nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: "
            "default}}}}\n",
            name, name)
            .p);
}

static void make_pod(struct scale *s, const char *pool, uint32_t number)
{
    struct err err;
    struct str pod = arena_strf(&s->plane->arena,
                                "{\"metadata\":{\"name\":\"%s-%u\",\"labels\":{\"app\":\"%s\"}},"
                                "\"spec\":{\"nodeSelector\":{\"scale\":\"%s\"},\"containers\":"
                                "[{\"name\":\"main\",\"image\":\"reg.example.io/web:1\","
                                "\"resources\":{\"requests\":{\"cpu\":\"1500m\","
                                "\"memory\":\"1Gi\"}}}]}}",
                                pool, number, pool, pool);
    EXPECT_OK(store_create(s->access.store, &pod_kind, STR("default"), pod, NULL, &err), err);
}

static struct informer *follow(struct scale *s, const struct kind *kind, const char *key,
                               const char *value)
{
    return informer_new((struct informer_options){
        .store = s->access.store,
        .kind = kind,
        .clock = clock_real(),
        .label_selector = arena_strf(&s->plane->arena, "%s=%s", key, value) });
}

/* Pods that fit only nodes of the pool of that name, which is made. */
static void wave_begin(struct scale *s, const char *pool, struct wave *out)
{
    make_pool(s, pool);
    *out = (struct wave){ .pods = follow(s, &pod_kind, "app", pool),
                          .claims = follow(s, &nodeclaim_kind, LABEL_NODEPOOL, pool) };
    out->start_ns = clock_mono_ns(clock_real());
}

static void wave_end(struct wave *w)
{
    informer_free(w->pods);
    informer_free(w->claims);
}

static void provision(struct scale *s, const char *pool, uint32_t pod_count, struct wave *out)
{
    wave_begin(s, pool, out);
    for (uint32_t i = 0; i < pod_count; i++) {
        make_pod(s, pool, i);
        if (i % 10 == 0)
            is_over(out, pod_count);
    }
    PLANE_WAIT_S(s->plane, LIMIT_S, is_over(out, pod_count));
    wave_end(out);
}

static pid_t scheduler(struct scale *s)
{
    int64_t pid = 0;
    EXPECT_TRUE(str_to_i64(
        plane_must(s->plane, "tests/kube/kube.sh env $DIR | sed -n s/^PID_KUBE_SCHEDULER=//p"),
        &pid));
    return (pid_t)pid;
}

static void print_steps(const struct wave *w)
{
    printf("scale steps"); /* of each the seconds at which the first and the last took it */
    for (uint32_t i = 0; i < STEPS; i++)
        printf(" %s=%.2f..%.2f", step_names[i], w->steps[i].first_s, w->steps[i].last_s);
    printf("\n");
    fflush(stdout);
}

static void report_provision(struct scale *s, const char *pool, uint32_t pod_count)
{
    struct wave wave;
    pid_t pid = start_controller(s, NULL, NULL), other = scheduler(s);
    uint32_t before = count(s, &node_kind, "");
    int64_t cpu_ns = process_cpu_ns(pid), other_ns = process_cpu_ns(other);
    provision(s, pool, pod_count, &wave);
    double took_s = wave.steps[BOUND].last_s;
    double cpu_s = (double)(process_cpu_ns(pid) - cpu_ns) / 1e9;
    double other_s = (double)(process_cpu_ns(other) - other_ns) / 1e9;
    printf("scale provision pods=%u nodes=%u s=%.2f pods_per_s=%.1f cpu_s=%.3f "
           "scheduler_cpu_s=%.2f\n",
           pod_count, count(s, &node_kind, "") - before, took_s, pod_count / took_s, cpu_s,
           other_s);
    print_steps(&wave);
    plane_stop(s->plane, pid);
}

/* --- the controller's part of it --- */

static void call_unschedulable(struct scale *s, const char *pool, uint32_t number)
{
    struct err err;
    struct object_ref ref = { &pod_kind, STR("default"),
                              arena_strf(&s->plane->arena, "%s-%u", pool, number) };
    EXPECT_OK(store_patch(s->access.store, ref,
                          (struct patch_options){ .type = PATCH_STRATEGIC, .status = true },
                          STR("{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\","
                              "\"status\":\"False\",\"reason\":\"Unschedulable\"}]}}"),
                          NULL, &err),
              err);
}

static bool all_ready(struct wave *w, uint32_t pod_count)
{
    is_over(w, pod_count);
    return w->steps[INITIALIZED].count * PODS_PER_NODE >= pod_count;
}

/* The scheduler stands still, and the pods are called unschedulable as fast as the server takes it. From the last one
 * on, the wait for further pods included, until its node is ready; and then the scheduler must find room for all. */
static void report_nodes(struct scale *s, const char *pool, uint32_t pod_count, const char *qps,
                         const char *burst)
{
    struct wave wave;
    pid_t pid = start_controller(s, qps, burst);
    plane_freeze(s->plane, "kube-scheduler");
    wave_begin(s, pool, &wave);
    for (uint32_t i = 0; i < pod_count; i++)
        make_pod(s, pool, i);
    for (uint32_t i = 0; i < pod_count; i++) {
        call_unschedulable(s, pool, i);
        if (i % 10 == 0 || i + 1 == pod_count)
            is_over(&wave, pod_count);
    }
    PLANE_WAIT_S(s->plane, LIMIT_S, all_ready(&wave, pod_count));
    uint32_t nodes = wave.steps[INITIALIZED].count;
    double took_s = wave.steps[INITIALIZED].last_s - wave.steps[UNSCHEDULABLE].last_s;
    plane_thaw(s->plane, "kube-scheduler");
    PLANE_WAIT_S(s->plane, LIMIT_S, is_over(&wave, pod_count));
    printf("scale nodes pods=%u nodes=%u qps=%s s=%.2f pods_per_s=%.1f\n", pod_count, nodes,
           qps ? qps : "default", took_s, pod_count / took_s);
    print_steps(&wave);
    wave_end(&wave);
    plane_stop(s->plane, pid);
}

/* --- copies --- */

/* What differs between copies. A claim's name may begin like a pod's, so it is looked for first. */
enum word { NODE_NAME, NODE_UID, CLAIM_NAME, CLAIM_UID, POD_NAME, POD_UID, WORDS };

struct piece {
    struct str text; /* and after it */
    uint32_t word;   /* WORDS: nothing */
};
struct pattern { /* one object as the server tells it, cut where it differs */
    VEC(struct piece) pieces;
};

/* The first one there is. */
static const struct object *first_of(struct scale *s, const struct kind *kind)
{
    struct object_list list = { 0 };
    struct err err;
    EXPECT_OK(store_list(s->access.store, kind, NULL, &list, &err), err);
    EXPECT_TRUE(list.count > 0);
    const struct object *first = object_ref(list.items[0]);
    object_list_done(&list);
    return first;
}

static void cut(struct str text, const struct str words[WORDS], struct pattern *out)
{
    size_t from = 0;
    for (size_t at = 0; at < text.len;) {
        uint32_t word = 0;
        while (word < WORDS && !str_starts(str_sub(text, at, text.len), words[word]))
            word++;
        if (word == WORDS) {
            at++;
            continue;
        }
        vec_push(&out->pieces, (struct piece){ str_sub(text, from, at - from), word });
        from = at += words[word].len;
    }
    vec_push(&out->pieces, (struct piece){ str_sub(text, from, text.len), WORDS });
}

static void cut_object(struct scale *s, const struct object *object, const struct str words[WORDS],
                       struct pattern *out)
{
    AUTO_BUF text = { 0 };
    struct err err;
    struct object_ref ref = { object->kind, object->meta.namespace_, object->meta.name };
    EXPECT_OK(store_get_json(s->access.store, ref, &text, &err), err);
    cut(arena_str(&s->plane->arena, buf_str(&text)), words, out);
}

static void put_copy(struct etcd_fill *etcd, const struct pattern *pattern, const char *folder,
                     struct str name, const struct str words[WORDS])
{
    AUTO_BUF text = { 0 }, key = { 0 };
    vec_each(&pattern->pieces, const struct piece, piece) {
        buf_add(&text, piece->text);
        if (piece->word < WORDS)
            buf_add(&text, words[piece->word]);
    }
    buf_addf(&key, "/registry/%s/%.*s", folder, STR_ARG(name));
    etcd_fill_put(etcd, buf_str(&key).p, buf_str(&text));
}

static void put_copies(struct etcd_fill *etcd, const struct pattern *node,
                       const struct pattern *claim, const struct pattern *pod, uint32_t count)
{
    struct rng rng;
    rng_init(&rng, 42);
    for (uint32_t i = 1; i < count; i++) {
        char texts[WORDS][48];
        struct str words[WORDS];
        for (uint32_t uid = NODE_UID; uid < WORDS; uid += 2)
            rng_uuid(&rng, texts[uid]);
        snprintf(texts[NODE_NAME], sizeof texts[0], "copy-node-%05u", i);
        snprintf(texts[CLAIM_NAME], sizeof texts[0], "copy-claim-%05u", i);
        snprintf(texts[POD_NAME], sizeof texts[0], "copy-pod-%05u-0", i);
        for (uint32_t word = 0; word < WORDS; word++)
            words[word] = str_of(texts[word]);
        put_copy(etcd, claim, "karpenter.sh/nodeclaims", words[CLAIM_NAME], words);
        put_copy(etcd, node, "minions", words[NODE_NAME], words);
        for (uint32_t p = 0; p < PODS_PER_NODE; p++) {
            rng_uuid(&rng, texts[POD_UID]);
            texts[POD_NAME][words[POD_NAME].len - 1] = (char)('0' + p);
            put_copy(etcd, pod, "pods/default", words[POD_NAME], words);
        }
    }
}

static void fill(struct scale *s, uint32_t node_count)
{
    const struct object *node = first_of(s, &node_kind), *claim = first_of(s, &nodeclaim_kind),
                        *pod = first_of(s, &pod_kind);
    const struct str words[WORDS] = {
        [NODE_NAME] = node->meta.name, [NODE_UID] = node->meta.uid, [CLAIM_NAME] = claim->meta.name,
        [CLAIM_UID] = claim->meta.uid, [POD_NAME] = pod->meta.name, [POD_UID] = pod->meta.uid,
    };
    struct pattern nodes = { 0 }, claims = { 0 }, pods = { 0 };
    cut_object(s, node, words, &nodes);
    cut_object(s, claim, words, &claims);
    cut_object(s, pod, words, &pods);
    struct etcd_fill *etcd =
        etcd_fill_new(plane_must(s->plane, "tests/kube/kube.sh env $DIR | sed -n s/^ETCD=//p").p);
    put_copies(etcd, &nodes, &claims, &pods, node_count);
    etcd_fill_free(etcd);
    vec_done(&nodes.pieces);
    vec_done(&claims.pieces);
    vec_done(&pods.pieces);
    object_unref(node);
    object_unref(claim);
    object_unref(pod);
}

/* --- reading and resting --- */

static void report_rest(struct scale *s, pid_t pid, uint32_t rest_s)
{
    uint32_t claims = count(s, &nodeclaim_kind, "");
    sleep(5); /* what the start set off is over */
    int64_t cpu_ns = process_cpu_ns(pid);
    struct process_sleeps before, after;
    process_sleeps(pid, &before);
    sleep(rest_s);
    cpu_ns = process_cpu_ns(pid) - cpu_ns;
    process_sleeps(pid, &after);
    printf("scale rest s=%u cpu_ms_per_s=%.2f wakes_per_s=%.1f\n", rest_s,
           (double)cpu_ns / 1e6 / rest_s, (double)process_sleeps_between(&before, &after) / rest_s);
    fflush(stdout);
    EXPECT_EQ(count(s, &nodeclaim_kind, ""), claims);
}

static void report_sync(struct scale *s, struct sizes sizes)
{
    int64_t start_ns = clock_mono_ns(clock_real());
    pid_t pid = start_controller(s, NULL, NULL);
    double took_s = seconds_since(start_ns);
    double cpu_s = (double)process_cpu_ns(pid) / 1e9;
    struct process_memory memory = process_memory(pid);
    uint32_t pods = count(s, &pod_kind, ""), nodes = count(s, &node_kind, "");
    printf("scale sync nodes=%u pods=%u s=%.2f cpu_s=%.3f rss_kb=%ld anon_kb=%ld peak_kb=%ld\n",
           nodes, pods, took_s, cpu_s, memory.rss, memory.anon, memory.peak);
    fflush(stdout);
    EXPECT_EQ(nodes, sizes.nodes);
    report_rest(s, pid, sizes.rest_s);
    memory = process_memory(pid);
    printf("scale memory nodes=%u pods=%u rss_kb=%ld anon_kb=%ld peak_kb=%ld\n", nodes, pods,
           memory.rss, memory.anon, memory.peak);
    fflush(stdout);
    EXPECT_TRUE(memory.peak < RSS_KB_MAX);
    plane_stop(s->plane, pid);
}

/* --- all of it --- */

static void begin(struct scale *s)
{
    /* Nobody takes the not-ready taint off new nodes without a controller manager: it is not put on. */
    static const char *const options[] = {
        "--no-controller-manager",
        "--apiserver=--disable-admission-plugins=ServiceAccount,TaintNodesByCondition",
        NULL,
    };
    struct err err;
    *s = (struct scale){ .plane = plane_with(options) };
    s->port = free_port(s->plane);
    plane_crds(s->plane);
    plane_apply(s->plane, "apiVersion: karpenter.kwok.sh/v1alpha1\nkind: KWOKNodeClass\n"
                          "metadata: {name: default}\nspec: {}\n");
    s->access =
        plane_open(s->plane, plane_path(s->plane, "admin.kubeconfig"), (struct kube_options){ 0 });
    EXPECT_OK(http_new((struct http_options){ .proxy = "" }, &s->http, &err), err);
}

static void start_kubelets(struct scale *s)
{
    struct err err;
    EXPECT_OK(
        kubelets_start((struct kubelets_options){ .store = s->access.store, .clock = clock_real() },
                       &s->kubelets, &err),
        err);
}

int main(int argc, char **argv)
{
    bool small = argc == 2 && strcmp(argv[1], "--small") == 0;
    if (argc > 1 && !small) {
        fprintf(stderr, "usage: kube-scale [--small]\n");
        return 2;
    }
    struct sizes sizes = small ? (struct sizes){ .nodes = 50, .wave = 30, .rest_s = 3 }
                               : (struct sizes){ .nodes = 5000, .wave = 500, .rest_s = 30 };
    struct scale s;
    begin(&s);
    start_kubelets(&s);
    report_provision(&s, "first", PODS_PER_NODE);
    PLANE_WAIT(s.plane, count(&s, &pod_kind, "status.phase!=Running") == 0);
    kubelets_stop(s.kubelets); /* it would miss some of what comes now */
    fill(&s, sizes.nodes);
    plane_apiserver_restart(s.plane); /* reads it all anew, much faster than it is told of it */
    EXPECT_EQ(count(&s, &nodeclaim_kind, ""), sizes.nodes);
    EXPECT_EQ(count(&s, &pod_kind, ""), sizes.nodes * PODS_PER_NODE);
    report_sync(&s, sizes);
    start_kubelets(&s);
    report_provision(&s, "bound", sizes.wave);
    report_nodes(&s, "default", sizes.wave, NULL, NULL);
    report_nodes(&s, "unlimited", sizes.wave, "10000", "10000");
    kubelets_stop(s.kubelets);
    http_free(s.http);
    plane_close(&s.access);
    return 0;
}
