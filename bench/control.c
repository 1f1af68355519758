/* The whole control plane, end to end, on the embedded store with a simulated cluster around it
 * (sim/world.h): pods appear, are called unschedulable, planned for, nodes are launched, join, and the
 * pods are bound and run.
 *
 *     burst    pods appear all at once, nodes boot in no time. `pods_per_s` is by the processor's time of
 *              everything (store, workload controllers, scheduler, kubelets and ours), from the first pod
 *              to the last that runs. `growth` is the time per pod by that of the size before. `ratio` is
 *              that time by the time of a bare store that takes as many writes of as many pods, with
 *              nobody watching: what cannot be saved.
 *     steady   afterwards, an hour in which nothing happens: `cpu_ms` is all that it costs.
 *
 * Times are of the processor. Memory is of the whole process: the store and all informers are in it.
 */
#include "base/clock.h"
#include "bench/cluster_objects.h"
#include "sim/world.h"

#include <inttypes.h>
#include <stdio.h>

#define POD                                                                                        \
    "{\"metadata\":{\"name\":\"p%u\",\"labels\":{\"app\":\"web\"}},\"spec\":{\"containers\":["     \
    "{\"name\":\"c\",\"image\":\"i\",\"resources\":{\"requests\":{\"cpu\":\"1\","                  \
    "\"memory\":\"2Gi\"}}}]}}"
#define WRITES_PER_POD 4 /* created, called unschedulable, bound, running */
#define SECOND_NS ((int64_t)1000000000)
#define SECONDS_MAX 600

static const char scenario_head[] =
    "name: burst\n"
    "duration: 100h\n"
    "sample: 1s\n"
    "cloud: {types: kwok, boot: 0s, ready: 0s, terminate: 0s}\n"
    "cluster: {podStart: 0s, podStop: 0s}\n"
    "objects:\n"
    "- {apiVersion: karpenter.kwok.sh/v1alpha1, kind: KWOKNodeClass, metadata: {name: default}}\n"
    "- apiVersion: karpenter.sh/v1\n"
    "  kind: NodePool\n"
    "  metadata: {name: general}\n"
    "  spec:\n"
    "    template:\n"
    "      spec:\n"
    "        nodeClassRef: {group: karpenter.kwok.sh, kind: KWOKNodeClass, name: default}\n"
    "        requirements:\n"
    "        - {key: kubernetes.io/os, operator: In, values: [linux]}\n"
    "        - {key: karpenter.kwok.sh/instance-cpu, operator: In, values: ['%u']}\n";

/* Five Deployments of different sizes: every size fills a node of `cpus` with about 20 pods. */
static const char deployment[] =
    "- apiVersion: apps/v1\n"
    "  kind: Deployment\n"
    "  metadata: {name: d%u, namespace: default}\n"
    "  spec:\n"
    "    replicas: %u\n"
    "    selector: {matchLabels: {app: d%u}}\n"
    "    template:\n"
    "      metadata: {labels: {app: d%u}}\n"
    "      spec: {containers: [{name: c, image: i, resources: {requests: {cpu: %um, memory: "
    "%uMi}}}]}\n";

static struct scenario *make_scenario(uint32_t pods)
{
    AUTO_BUF text = { 0 };
    struct scenario *s = NULL;
    struct err err = { 0 };
    buf_addf(&text, scenario_head, 32);
    for (uint32_t i = 0; i < 5; i++)
        buf_addf(&text, deployment, i, pods / 5, i, i, 1000 + 200 * i, 1024 + 512 * i);
    if (scenario_parse("bench", buf_str(&text), &s, &err) < 0)
        fprintf(stderr, "control: %s\n", err.text);
    return s;
}

/* A store that takes as many writes, and does nothing else. */
static int64_t bare_store_ns(uint32_t pods)
{
    AUTO(virtual_clock) time = virtual_clock_new(0);
    struct object_pool *pool = object_pool_new();
    struct embedded *e = embedded_new(
        (struct embedded_options){ .clock = virtual_clock_port(time), .pool = pool, .seed = 1 });
    const struct store *store = embedded_store(e);
    struct err err = { 0 };
    char text[512];
    int64_t start = cpu_ns();
    for (uint32_t i = 0; i < pods; i++) {
        int len = snprintf(text, sizeof text, POD, i);
        store_create(store, &pod_kind, STR("default"), (struct str){ text, (size_t)len }, NULL,
                     &err);
        len = snprintf(text, sizeof text, "p%u", i);
        struct object_ref ref = { &pod_kind, STR("default"), { text, (size_t)len } };
        for (uint32_t k = 1; k < WRITES_PER_POD; k++)
            store_patch(store, ref, (struct patch_options){ .status = true },
                        k % 2 ? STR("{\"status\":{\"phase\":\"Pending\"}}")
                              : STR("{\"status\":{\"phase\":\"Running\"}}"),
                        NULL, &err);
    }
    int64_t took = cpu_ns() - start;
    embedded_free(e);
    object_pool_free(pool);
    return took;
}

static uint32_t running(const struct world_parts *parts)
{
    struct object_list pods = { 0 };
    struct err err = { 0 };
    uint32_t count = 0;
    if (store_list(parts->store, &pod_kind, NULL, &pods, &err) < 0)
        return 0;
    for (size_t i = 0; i < pods.count; i++)
        count += pod_of(pods.items[i])->status->phase == PHASE_RUNNING;
    object_list_done(&pods);
    return count;
}

static uint64_t store_hash(const struct world_parts *parts)
{
    AUTO_BUF text = { 0 };
    embedded_dump(parts->embedded, &text);
    return kv_hash(text.p, text.len);
}

static void steady(struct world *w, uint32_t pods)
{
    const struct world_parts *parts = world_parts(w);
    uint64_t version = embedded_version(parts->embedded);
    uint64_t reconciles = control_stats(parts->control).reconciles;
    int64_t start = cpu_ns();
    world_live(w, 3600 * SECOND_NS);
    printf("control steady pods=%u nodes=%zu cpu_ms=%.1f reconciles=%" PRIu64 " writes=%" PRIu64
           " peak_kb=%ld hash=%016" PRIx64 "\n",
           pods, (size_t)control_stats(parts->control).claims_created,
           (double)(cpu_ns() - start) / 1e6, control_stats(parts->control).reconciles - reconciles,
           embedded_version(parts->embedded) - version, peak_kb(), store_hash(parts));
}

static bool burst(uint32_t pods, bool with_steady, double *ns_per_pod)
{
    struct scenario *s = make_scenario(pods);
    struct err err = { 0 };
    if (!s)
        return false;
    int64_t bare = bare_store_ns(pods);
    int64_t start = cpu_ns(), wall = clock_mono_ns(clock_real());
    struct world *w = world_new((struct world_options){ .scenario = s, .seed = 1 }, &err);
    const struct world_parts *parts = world_parts(w);
    uint32_t steps = 0, seen = 0;
    while (seen < pods && steps++ < SECONDS_MAX && world_live(w, SECOND_NS)) {
        if (binder_stats(parts->binder).bound >= pods)
            seen = running(parts);
    }
    int64_t took = cpu_ns() - start;
    double each = (double)took / pods;
    printf("control burst pods=%u running=%u nodes=%" PRIu64
           " pods_per_s=%.0f ms=%.1f wall_ms=%.1f "
           "virtual_s=%.0f passes=%" PRIu64 " growth=%.2f ratio=%.2f peak_kb=%ld "
           "hash=%016" PRIx64 "\n",
           pods, seen, control_stats(parts->control).claims_created, 1e9 / each, (double)took / 1e6,
           (double)(clock_mono_ns(clock_real()) - wall) / 1e6,
           (double)clock_mono_ns(parts->clock) / 1e9, control_stats(parts->control).passes,
           *ns_per_pod > 0 ? each / *ns_per_pod : 1.0, (double)took / (double)bare, peak_kb(),
           store_hash(parts));
    fflush(stdout);
    *ns_per_pod = each;
    if (with_steady && seen == pods)
        steady(w, pods);
    world_free(w);
    scenario_free(s);
    return seen == pods;
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    static const uint32_t sizes[] = { 1000, 10000, 33000, 100000 };
    double ns_per_pod = 0;
    bool good = true;
    if (small)
        return burst(500, true, &ns_per_pod) ? 0 : 1;
    for (size_t i = 0; i < KV_COUNT_OF(sizes) && good; i++)
        good = burst(sizes[i], sizes[i] == 100000, &ns_per_pod);
    return good ? 0 : 1;
}
