/* See images.h. One plane, one set of kubelets and one registry for the program; each test gets nodes and pods of
 * its own. */
#include "kube/images.h"

#include "api/kinds.h"
#include "api/labels.h"
#include "api/nfd.h"
#include "api/node.h"
#include "api/pod.h"
#include "codec/duration.h"
#include "kube/kubelets.h"
#include "net/http.h"
#include "store/informer.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

const struct image_case image_amd64 = { "app/amd64:1", CLASSES_AMD64 };
const struct image_case image_arm64 = { "app/arm64:1", CLASS_ARM };
const struct image_case image_both = { "app/both:1", CLASSES_ALL };
const struct image_case image_avx512 = { "app/avx512:1", CLASSES_AVX512 };
const struct image_case image_two_sets = { "app/two-sets:1", CLASSES_AMX };
const struct image_case image_nowhere = { "app/nowhere:1", 0 };
const struct image_case image_untrusted = { "other/avx512:1", CLASSES_AVX512 };

static const struct {
    const char *name, *architecture;
    const char *maybe_type;  /* of the instance; who has one has no NodeFeature */
    const char *maybe_flags; /* of cpu.cpuid */
} classes[CLASS_COUNT] = {
    { "plain", "amd64", NULL, "\"AVX2\":{},\"SSE42\":{}" },
    { "avx512", "amd64", NULL, "\"AVX2\":{},\"AVX512F\":{},\"SSE42\":{}" },
    { "amx", "amd64", NULL, "\"AMXTILE\":{},\"AVX2\":{},\"AVX512F\":{},\"SSE42\":{}" },
    { "arm", "arm64", NULL, "\"ASIMD\":{},\"SVE\":{}" },
    { "m7i", "amd64", "m7i.large", NULL },
    { "m6a", "amd64", "m6a.large", NULL },
};

static struct images scene;
static struct plane_access admin;
static struct kubelets *kubelets;
static struct informer *pods;
static uint16_t extender_port, metrics_port;
static struct {
    uint32_t nodes, which;
} fleet; /* that is there: making it takes longest, so the next test has it too if it wants the same */

/* --- the plane --- */

static void end(void)
{
    if (admin.kube)
        kube_cancel(admin.kube);
    kubelets_stop(kubelets);
    informer_free(pods);
    registry_free(scene.client);
    plane_close(&admin);
}

static uint16_t free_port(void)
{
    AUTO_BUF said = { 0 };
    int64_t port = 0;
    EXPECT_EQ(plane_sh(NULL, &said, "tests/kube/kube.sh free-port"), 0);
    EXPECT_TRUE(str_to_i64(str_trim(buf_str(&said)), &port));
    return (uint16_t)port;
}

/* What is printed, with the paths of this plane; and as little waiting as can be. */
static const char scheduler_config[] =
    "${KARVE:-build/karve} extender --print-config --service 127.0.0.1 --port %u --tls-cert x "
    "--client-ca x >%s.printed && sed 's|/etc/kubernetes/scheduler.conf|@KUBECONFIG@|; "
    "s|/etc/karve/ca.crt|@DIR@/ca.crt|; s|/etc/karve/client|@DIR@/pki/kube-scheduler|; "
    "s|^clientConnection:|&\\n  qps: 2000\\n  burst: 4000|' %s.printed >%s && rm %s.printed && "
    "echo 'leaderElection: {leaderElect: false}\npodMaxBackoffSeconds: 2' >>%s";

static char config_path[] = "/tmp/karve-scheduler-XXXXXX";

static void remove_config(void)
{
    unlink(config_path);
}

static void write_config(uint16_t port)
{
    const char *path = config_path;
    close(mkstemp(config_path));
    atexit(remove_config);
    if (plane_sh(NULL, NULL, scheduler_config, port, path, path, path, path, path) != 0)
        fail_msg("karve extender --print-config fails");
}

static struct plane *start_plane(void)
{
    static char option[128];
    static const char *const options[] = { option,
                                           "--controller-manager=--node-monitor-grace-period=1h",
                                           NULL };
    if (!extender_port) {
        uint16_t port = free_port();
        write_config(port);
        snprintf(option, sizeof option, "--scheduler-config=%s", config_path);
        extender_port = port;
        do
            metrics_port = free_port();
        while (metrics_port == port); /* nobody listens on that one yet */
    }
    return plane_with(options);
}

/* The service accounts of the roles are not there to be used: the roles are given to users. */
static void begin(struct plane *p)
{
    struct err err;
    plane_crds(p);
    plane_must(p, "kubectl apply -f tests/kube/nfd-crds.yaml && kubectl wait --timeout=60s "
                  "--for=condition=Established -f tests/kube/nfd-crds.yaml && "
                  "$KARVE crds --rbac --extender --optional-roles | kubectl apply -f - && "
                  "kubectl create clusterrolebinding e2e --clusterrole=karve "
                  "--user=karve-controller && "
                  "kubectl create clusterrolebinding e2e-extender --clusterrole=karve-extender "
                  "--user=karve-extender && "
                  "kubectl create clusterrolebinding e2e-groups --clusterrole=karve-image-groups "
                  "--user=karve-extender");
    plane_user(p, "karve-extender", NULL);
    admin = plane_open(p, plane_path(p, "admin.kubeconfig"), (struct kube_options){ 0 });
    pods = informer_new((struct informer_options){
        .store = admin.store, .kind = &pod_kind, .clock = clock_real() });
    atexit(end); /* before that of the fixture, whose objects it uses */
    EXPECT_OK(kubelets_start((struct kubelets_options){ .store = admin.store,
                                                        .clock = clock_real(),
                                                        .renew_ns = 30 * DURATION_MINUTE },
                             &kubelets, &err),
              err);
}

/* --- images --- */

struct str images_spec(struct arena *arena, const char *const *flags)
{
    AUTO_BUF text = { 0 };
    buf_addz(&text, "version: v1alpha1\ncompatibilities:\n");
    for (; *flags; flags++)
        buf_addf(&text,
                 "- tag: %s\n  rules:\n  - name: has-%s\n    matchFeatures:\n"
                 "    - feature: cpu.cpuid\n      matchExpressions: {%s: {op: Exists}}\n",
                 *flags, *flags, *flags);
    return arena_str(arena, buf_str(&text));
}

static void push(struct images *s, const char *repository, const char *architecture,
                 const char *const *maybe_flags)
{
    AUTO_ARENA arena = { 0 };
    char digest[DIGEST_TEXT_MAX], artifact[DIGEST_TEXT_MAX];
    registry_fixture_image(s->registry, s->client, repository, "1", architecture, digest);
    if (maybe_flags)
        registry_fixture_attach(s->registry, s->client, repository, digest,
                                images_spec(&arena, maybe_flags).p, 0, artifact);
}

static void push_images(struct images *s)
{
    char amd64[DIGEST_TEXT_MAX], arm64[DIGEST_TEXT_MAX], index[DIGEST_TEXT_MAX];
    push(s, "app/amd64", "amd64", NULL);
    push(s, "app/arm64", "arm64", NULL);
    registry_fixture_index(s->registry, s->client, "app/both", "1", amd64, arm64, index);
    push(s, "app/avx512", "amd64", (const char *[]){ "AVX512F", NULL });
    push(s, "app/two-sets", "amd64", (const char *[]){ "AVX512F", "AMXTILE", NULL });
    push(s, "app/nowhere", "amd64", (const char *[]){ "AMXFP16", NULL });
    push(s, "other/avx512", "amd64", (const char *[]){ "AVX512F", NULL });
}

/* --- nodes --- */

static void create(const struct kind *kind, const char *namespace_, const struct buf *text)
{
    struct err err;
    EXPECT_OK(store_create(admin.store, kind, str_of(namespace_), buf_str(text), NULL, &err), err);
}

static void create_node(const char *name, size_t class_)
{
    AUTO_BUF text = { 0 };
    char now[TIME_TEXT_MAX];
    const char *type = classes[class_].maybe_type;
    time_format(clock_wall_us(clock_real()), now);
    buf_addf(&text,
             "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"kubernetes.io/hostname\":\"%s\","
             "\"" LABEL_ARCH "\":\"%s\",\"" LABEL_OS "\":\"linux\"%s%s%s}},",
             name, name, classes[class_].architecture,
             type ? ",\"" LABEL_INSTANCE_TYPE "\":\"" : "", type ? type : "", type ? "\"" : "");
    buf_addf(&text,
             "\"status\":{\"capacity\":{\"cpu\":\"4\",\"memory\":\"16Gi\",\"pods\":\"110\"},"
             "\"allocatable\":{\"cpu\":\"4\",\"memory\":\"16Gi\",\"pods\":\"110\"},"
             "\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"Test\","
             "\"lastHeartbeatTime\":\"%s\",\"lastTransitionTime\":\"%s\"}]}}",
             now, now);
    create(&node_kind, "", &text);
}

static void create_features(const char *node, const char *flags)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text,
             "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"nfd.node.kubernetes.io/node-name\":"
             "\"%s\"}},\"spec\":{\"features\":{\"flags\":{\"cpu.cpuid\":{\"elements\":{%s}}},"
             "\"attributes\":{\"kernel.version\":{\"elements\":{\"major\":\"6\"}}}}}}",
             node, node, flags);
    create(&node_feature_kind, IMAGES_NFD, &text);
}

static uint32_t tainted_count(void)
{
    struct object_list list;
    struct list_options all = { 0 };
    struct err err;
    uint32_t count = 0;
    EXPECT_OK(store_list(admin.store, &node_kind, &all, &list, &err), err);
    for (size_t i = 0; i < list.count; i++)
        count += node_of(list.items[i])->spec.taints.count > 0;
    object_list_done(&list);
    return count;
}

/* Round about: of each class as many. */
static void create_nodes(struct images *s, uint32_t nodes, uint32_t which)
{
    char name[32];
    plane_must(s->plane, "kubectl create namespace " IMAGES_NFD);
    for (uint32_t i = 0, made = 0; made < nodes; i++) {
        size_t class_ = i % CLASS_COUNT;
        if (!(which & 1u << class_))
            continue;
        snprintf(name, sizeof name, "%s-%u", classes[class_].name, made++);
        create_node(name, class_);
        if (classes[class_].maybe_flags)
            create_features(name, classes[class_].maybe_flags);
    }
    /* The controller manager sees that they are ready. */
    PLANE_WAIT_S(s->plane, IMAGES_LIMIT_S, tainted_count() == 0);
}

/* The plane is emptied all at once, and in a large cluster its watchers are late to hear of it: what there is many
 * of goes one by one before, with nobody of ours there to make it anew. */
static void clear(struct images *s, bool keep_nodes)
{
    plane_kill9(s->plane, images_let_go(&s->extender));
    plane_kill9(s->plane, images_let_go(&s->controller));
    plane_must(s->plane,
               "nfd=apis/nfd.k8s-sigs.io/v1alpha1/namespaces/" IMAGES_NFD "; "
               "for path in api/v1/namespaces/default/pods $nfd/nodefeaturegroups %s; do "
               "kubectl delete --raw /$path >/dev/null || exit; done",
               keep_nodes ? "" : "api/v1/nodes $nfd/nodefeatures");
    PLANE_WAIT(s->plane, (informer_pump(pods), informer_count(pods) == 0));
}

struct images *images_start(uint32_t nodes, uint32_t which)
{
    struct images *s = &scene;
    bool begun = kubelets != NULL, same = fleet.nodes == nodes && fleet.which == which;
    s->registry = registry_fixture(REGISTRY_OPEN);
    s->pods = 0;
    if (begun)
        clear(s, same);
    if (same)
        return s;
    fleet.nodes = 0;
    s->plane = start_plane();
    if (!begun) {
        begin(s->plane);
        s->store = admin.store;
        s->client = registry_fixture_client(s->registry);
        push_images(s);
    }
    create_nodes(s, nodes, which);
    fleet.nodes = nodes;
    fleet.which = which;
    return s;
}

/* --- the extender --- */

static bool answers(struct plane *p, size_t from)
{
    static const char words[] = "\"msg\":\"answering kube-scheduler\"";
    struct str log = plane_log(p, "extender");
    return log.len > from && memmem(log.p + from, log.len - from, words, strlen(words)) != NULL;
}

pid_t images_let_go(pid_t *pid)
{
    pid_t was = *pid;
    *pid = 0;
    return was;
}

void images_extender(struct images *s, const char *const *maybe_flags)
{
    struct plane *p = s->plane;
    const char *port = arena_strf(&p->arena, "%u", extender_port).p;
    const char *metrics = arena_strf(&p->arena, "%u", metrics_port).p;
    const char *args[48] = { "extender",
                             "--kubeconfig",
                             plane_path(p, "karve-extender.kubeconfig"),
                             "--port",
                             port,
                             "--tls-cert",
                             plane_path(p, "pki/apiserver.crt"),
                             "--tls-key",
                             plane_path(p, "pki/apiserver.key"),
                             "--client-ca",
                             plane_path(p, "ca.crt"),
                             "--plain-http",
                             s->registry->host,
                             "--metrics-port",
                             metrics,
                             "--health-probe-port",
                             "0" };
    size_t count = 17, before = plane_log(p, "extender").len;
    for (; maybe_flags && *maybe_flags; maybe_flags++) {
        EXPECT_TRUE(count < KV_COUNT_OF(args) - 1);
        args[count++] = *maybe_flags;
    }
    s->extender = plane_karve(p, "extender", args);
    PLANE_WAIT(p, answers(p, before) || !plane_runs(p, s->extender));
    EXPECT_TRUE(plane_runs(p, s->extender));
}

/* Of the buckets, the bounds that half and 99 of 100 calls are below. */
void images_print_durations(struct images *s)
{
    static const char tell[] =
        "/^karve_extender_request_duration_seconds_bucket/ { b[$2, ++k[$2]] = $4; n[$2, k[$2]] = $6 } "
        "/^karve_extender_request_duration_seconds_sum/ { sum[$2] = $4 } "
        "function bound(v, part, i) { for (i = 1; n[v, i] < part * n[v, k[v]]; i++); return b[v, i] } "
        "END { for (v in k) if (n[v, k[v]]) printf \"# %s: %d calls, mean %.0f us, half below %.0f "
        "us, 99%% below %.0f us\\n\", v, n[v, k[v]], 1e6 * sum[v] / n[v, k[v]], 1e6 * bound(v, 0.5), "
        "1e6 * bound(v, 0.99) }";
    struct str lines = plane_must(s->plane,
                                  "curl -sf --noproxy '*' http://127.0.0.1:%u/metrics | "
                                  "awk -F'[ \"]+' '%s'",
                                  metrics_port, tell);
    printf("%.*s\n", STR_ARG(lines));
}

/* --- pods --- */

void images_pod_at(struct images *s, const char *name, uint32_t may, const char *const *images)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"may\":\"%u\"}},", name, may);
    buf_addz(&text, "\"spec\":{\"terminationGracePeriodSeconds\":0,\"containers\":[");
    for (uint32_t i = 0; images[i]; i++)
        buf_addf(&text,
                 "%s{\"name\":\"c%u\",\"image\":\"%s/%s\",\"resources\":{\"requests\":{\"cpu\":"
                 "\"20m\"}}}",
                 i ? "," : "", i, s->registry->host, images[i]);
    buf_addz(&text, "]}}");
    create(&pod_kind, "default", &text);
    s->pods++;
}

void images_pod(struct images *s, const struct image_case *image)
{
    char name[32];
    snprintf(name, sizeof name, "p-%u", s->pods);
    images_pod_at(s, name, image->may, (const char *[]){ image->name, NULL });
}

void images_pod_of_two(struct images *s, const struct image_case *a, const struct image_case *b)
{
    char name[32];
    snprintf(name, sizeof name, "p-%u", s->pods);
    images_pod_at(s, name, a->may & b->may, (const char *[]){ a->name, b->name, NULL });
}

static uint32_t class_of_node(struct str node)
{
    struct str name, number;
    if (!str_cut(node, '-', &name, &number))
        return 0;
    for (uint32_t i = 0; i < CLASS_COUNT; i++) {
        if (str_eqz(name, classes[i].name))
            return 1u << i;
    }
    return 0;
}

struct images_seen images_look(struct images *s KV_UNUSED)
{
    struct object_list list;
    struct images_seen seen = { 0 };
    informer_pump(pods);
    informer_list(pods, STR("default"), &list);
    for (size_t i = 0; i < list.count; i++) {
        const struct pod *pod = pod_of(list.items[i]);
        int64_t may = 0;
        if (!pod_is_scheduled(pod))
            continue;
        EXPECT_TRUE(str_to_i64(str_map_get(&pod->object.meta.labels, STR("may")), &may));
        seen.bound++;
        if (!(class_of_node(pod->node_name) & (uint32_t)may)) {
            seen.wrong++;
            print_error("%.*s is on %.*s\n", STR_ARG(pod->object.meta.name),
                        STR_ARG(pod->node_name));
        }
    }
    object_list_done(&list);
    return seen;
}

void images_expect_bound(struct images *s, uint32_t left)
{
    PLANE_WAIT_S(s->plane, IMAGES_LIMIT_S, images_look(s).bound >= s->pods - left);
    struct images_seen seen = images_look(s);
    EXPECT_EQ(seen.wrong, 0);
    EXPECT_EQ(seen.bound, s->pods - left);
}

uint32_t images_class_of(struct images *s KV_UNUSED, const char *pod)
{
    informer_pump(pods);
    AUTO_OBJECT object = informer_get(pods, STR("default"), str_of(pod));
    return object ? class_of_node(pod_of(object)->node_name) : 0;
}

struct str images_why_not(struct images *s, const char *pod)
{
    informer_pump(pods);
    AUTO_OBJECT object = informer_get(pods, STR("default"), str_of(pod));
    const struct pod_condition *scheduled =
        object ? pod_condition(pod_of(object), STR("PodScheduled")) : NULL;
    return scheduled ? arena_str(&s->plane->arena, scheduled->message) : STR("");
}
