#include "bench/pods.h"

#include <inttypes.h>

enum owner { OWNER_REPLICA_SET, OWNER_STATEFUL_SET, OWNER_JOB };

/* What every pod of a workload has in common, drawn again from its own seed for each pod. */
struct workload {
    uint32_t ix;
    enum owner owner;
    char hash[11], uid[37];
    const char *app, *team, *namespace_;
    uint32_t containers, init_containers;
    uint32_t cpu_milli, memory_mi;
    bool probes, spread, affinity, tolerations, annotations;
};

static const char *const apps[] = { "web",    "api",   "checkout", "search", "cart",    "ledger",
                                    "ingest", "feeds", "thumbs",   "mail",   "profile", "gateway" };
static const char *const teams[] = { "shop", "data", "core", "growth" };
static const char *const namespaces[] = { "shop-prod", "data", "platform", "default", "payments" };
#define PICK(rng, array) ((array)[rng_below(rng, KV_COUNT_OF(array))])

static void workload_draw(const struct pod_maker *m, uint32_t ix, struct workload *w)
{
    struct rng rng;
    rng_init(&rng, kv_mix64(m->seed) + ix);
    *w = (struct workload){ .ix = ix };
    /* By index, not by chance: the same mix in a small cluster and a large one. */
    w->owner = ix % 8 == 3 ? OWNER_STATEFUL_SET : ix % 8 == 6 ? OWNER_JOB : OWNER_REPLICA_SET;
    rng_name(&rng, w->hash, sizeof w->hash - 1);
    rng_uuid(&rng, w->uid);
    w->app = PICK(&rng, apps);
    w->team = PICK(&rng, teams);
    w->namespace_ = PICK(&rng, namespaces);
    w->containers = ix % 16 == 4 ? 2 : ix % 32 == 12 ? 3 : 1;
    w->init_containers = ix % 16 == 7;
    w->cpu_milli = 50 * (1 + (uint32_t)rng_below(&rng, 40));
    w->memory_mi = 64 * (1 + (uint32_t)rng_below(&rng, 64));
    w->probes = ix % 3 == 0;
    w->spread = ix % 8 == 1;
    w->affinity = ix % 8 == 2;
    w->tolerations = ix % 8 == 5;
    w->annotations = ix % 3 == 1;
}

static const char *const hex = "0123456789abcdef";

static void add_hex(struct rng *rng, struct buf *out, int digits)
{
    for (int i = 0; i < digits; i += 16) {
        uint64_t bits = rng_next(rng);
        for (int j = 0; j < 16 && i + j < digits; j++, bits >>= 4)
            buf_addc(out, hex[bits & 15]);
    }
}

/* A moment of one day, `minute` minutes in. */
static void add_time(struct buf *out, uint32_t minute, uint32_t second)
{
    buf_addf(out, "\"2026-03-14T%02u:%02u:%02uZ\"", minute / 60 % 24, minute % 60, second % 60);
}

struct pod_draw {
    const struct workload *w;
    struct rng *rng;
    struct buf *out;
    char name[64], uid[37], token[6], node[48], ip[20];
    uint32_t minute; /* created */
    uint32_t ordinal;
};

static void add_metadata(struct pod_draw *d)
{
    static const char *const owner_kinds[] = { "ReplicaSet", "StatefulSet", "Job" };
    static const char *const owner_versions[] = { "apps/v1", "apps/v1", "batch/v1" };
    const struct workload *w = d->w;
    struct buf *o = d->out;
    buf_addf(o, "\"metadata\":{\"name\":\"%s\",", d->name);
    if (w->owner == OWNER_REPLICA_SET)
        buf_addf(o, "\"generateName\":\"%s-%u-%s-\",", w->app, w->ix, w->hash);
    else
        buf_addf(o, "\"generateName\":\"%s-%u-\",", w->app, w->ix);
    buf_addf(o, "\"namespace\":\"%s\",\"uid\":\"%s\",\"resourceVersion\":\"%" PRIu64 "\",",
             w->namespace_, d->uid, 100000 + rng_below(d->rng, 900000000));
    buf_addz(o, "\"creationTimestamp\":");
    add_time(o, d->minute, 7);
    buf_addf(o, ",\"labels\":{\"app\":\"%s-%u\",", w->app, w->ix);
    if (w->owner == OWNER_STATEFUL_SET)
        buf_addf(
            o, "\"apps.kubernetes.io/pod-index\":\"%u\",\"controller-revision-hash\":\"%s-%u-%s\",",
            d->ordinal, w->app, w->ix, w->hash);
    else if (w->owner == OWNER_REPLICA_SET)
        buf_addf(o, "\"pod-template-hash\":\"%s\",", w->hash);
    else
        buf_addf(o, "\"batch.kubernetes.io/controller-uid\":\"%s\",\"job-name\":\"%s-%u\",", w->uid,
                 w->app, w->ix);
    if (w->owner == OWNER_STATEFUL_SET)
        buf_addf(o, "\"statefulset.kubernetes.io/pod-name\":\"%s\",", d->name);
    buf_addf(o, "\"team\":\"%s\"},", w->team);
    if (w->annotations)
        buf_addz(
            o,
            "\"annotations\":{\"prometheus.io/port\":\"9090\",\"prometheus.io/scrape\":\"true\"},");
    buf_addf(o,
             "\"ownerReferences\":[{\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"%s-%u\","
             "\"uid\":\"%s\",\"controller\":true,\"blockOwnerDeletion\":true}],",
             owner_versions[w->owner], owner_kinds[w->owner], w->app, w->ix, w->uid);
    buf_addz(
        o,
        "\"managedFields\":[{\"manager\":\"kubelet\",\"operation\":\"Update\",\"apiVersion\":\"v1\","
        "\"time\":");
    add_time(o, d->minute + 1, 9);
    buf_addz(o, ",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":"
                "{\"k:{\\\"type\\\":\\\"Ready\\\"}\":{\".\":{},\"f:status\":{},\"f:type\":{}}},"
                "\"f:containerStatuses\":{},\"f:phase\":{},\"f:podIP\":{},\"f:startTime\":{}}},"
                "\"subresource\":\"status\"}]},");
}

static void add_volumes(struct pod_draw *d)
{
    struct buf *o = d->out;
    buf_addz(o, "\"volumes\":[");
    if (d->w->owner == OWNER_STATEFUL_SET)
        buf_addf(o, "{\"name\":\"data\",\"persistentVolumeClaim\":{\"claimName\":\"data-%s\"}},",
                 d->name);
    buf_addf(
        o,
        "{\"name\":\"kube-api-access-%s\",\"projected\":{\"sources\":[{\"serviceAccountToken\":"
        "{\"path\":\"token\"}}]}}],",
        d->token);
}

static void add_probe(struct buf *o, const char *name)
{
    buf_addf(o,
             "\"%s\":{\"httpGet\":{\"path\":\"/healthz\",\"port\":8080,\"scheme\":\"HTTP\"},"
             "\"periodSeconds\":10},",
             name);
}

static void add_container(struct pod_draw *d, uint32_t ix, bool init)
{
    static const char *const names[] = { "main", "proxy", "logs" };
    const struct workload *w = d->w;
    struct buf *o = d->out;
    uint32_t part = init ? 4 : ix ? 5 : 1;
    buf_addf(o, "{\"name\":\"%s\",\"image\":\"reg.example.io/%s/%s-%u:1.%u.%u\",",
             init ? "migrate" : names[ix], w->team, w->app, ix, w->ix % 30, w->ix % 7);
    if (ix == 0 && !init)
        buf_addz(o, "\"ports\":[{\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"}],");
    buf_addz(o, "\"env\":[{\"name\":\"LOG_LEVEL\",\"value\":\"info\"}],");
    buf_addf(o,
             "\"resources\":{\"limits\":{\"memory\":\"%uMi\"},"
             "\"requests\":{\"cpu\":\"%um\",\"memory\":\"%uMi\"}},",
             w->memory_mi / part, w->cpu_milli / part, w->memory_mi / part);
    buf_addf(o,
             "\"volumeMounts\":[{\"name\":\"kube-api-access-%s\",\"readOnly\":true,"
             "\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}],",
             d->token);
    if (w->probes && ix == 0 && !init)
        add_probe(o, "readinessProbe");
    buf_addz(o, "\"imagePullPolicy\":\"IfNotPresent\"}");
}

static void add_placement(struct pod_draw *d)
{
    const struct workload *w = d->w;
    struct buf *o = d->out;
    if (w->affinity)
        buf_addf(
            o,
            "\"affinity\":{\"podAntiAffinity\":{\"preferredDuringSchedulingIgnoredDuringExecution\":"
            "[{\"weight\":100,\"podAffinityTerm\":{\"labelSelector\":{\"matchLabels\":{\"app\":\"%s-%u\"}},"
            "\"topologyKey\":\"kubernetes.io/hostname\"}}]}},",
            w->app, w->ix);
    buf_addz(o, "\"schedulerName\":\"default-scheduler\",\"tolerations\":[");
    if (w->tolerations)
        buf_addf(
            o,
            "{\"key\":\"dedicated\",\"operator\":\"Equal\",\"value\":\"%s\",\"effect\":\"NoSchedule\"},",
            w->team);
    buf_addz(
        o,
        "{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":\"NoExecute\","
        "\"tolerationSeconds\":300},{\"key\":\"node.kubernetes.io/unreachable\",\"operator\":\"Exists\","
        "\"effect\":\"NoExecute\",\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":true,"
        "\"preemptionPolicy\":\"PreemptLowerPriority\"");
    if (w->spread)
        buf_addf(
            o,
            ",\"topologySpreadConstraints\":[{\"maxSkew\":1,\"topologyKey\":\"topology.kubernetes.io/zone\","
            "\"whenUnsatisfiable\":\"ScheduleAnyway\",\"labelSelector\":{\"matchLabels\":{\"app\":\"%s-%u\"}}}]",
            w->app, w->ix);
}

static void add_spec(struct pod_draw *d)
{
    const struct workload *w = d->w;
    struct buf *o = d->out;
    buf_addz(o, "\"spec\":{");
    add_volumes(d);
    if (w->init_containers) {
        buf_addz(o, "\"initContainers\":[");
        add_container(d, 0, true);
        buf_addz(o, "],");
    }
    buf_addz(o, "\"containers\":[");
    for (uint32_t i = 0; i < w->containers; i++) {
        if (i)
            buf_addc(o, ',');
        add_container(d, i, false);
    }
    buf_addf(o,
             "],\"restartPolicy\":\"%s\",\"terminationGracePeriodSeconds\":30,"
             "\"dnsPolicy\":\"ClusterFirst\",\"serviceAccountName\":\"%s\",\"nodeName\":\"%s\","
             "\"securityContext\":{},",
             w->owner == OWNER_JOB ? "Never" : "Always", w->app, d->node);
    if (w->owner == OWNER_STATEFUL_SET)
        buf_addf(o, "\"hostname\":\"%s\",\"subdomain\":\"%s\",", d->name, w->app);
    add_placement(d);
    buf_addz(o, "},");
}

static void add_condition(struct pod_draw *d, const char *type, uint32_t minute, uint32_t second)
{
    buf_addf(d->out, "{\"type\":\"%s\",\"status\":\"True\",\"lastTransitionTime\":", type);
    add_time(d->out, minute, second);
    buf_addc(d->out, '}');
}

static void add_container_status(struct pod_draw *d, uint32_t ix, bool init)
{
    static const char *const names[] = { "main", "proxy", "logs" };
    const struct workload *w = d->w;
    struct buf *o = d->out;
    buf_addf(o, "{\"name\":\"%s\",\"state\":{", init ? "migrate" : names[ix]);
    if (init) {
        buf_addz(o, "\"terminated\":{\"exitCode\":0,\"reason\":\"Completed\",\"startedAt\":");
        add_time(o, d->minute, 20);
        buf_addz(o, ",\"finishedAt\":");
        add_time(o, d->minute, 41);
    } else {
        buf_addz(o, "\"running\":{\"startedAt\":");
        add_time(o, d->minute + 1, d->ordinal);
    }
    buf_addf(o,
             "}},\"lastState\":{},\"ready\":true,\"restartCount\":0,"
             "\"image\":\"reg.example.io/%s/%s-%u:1.%u.%u\","
             "\"imageID\":\"sha256:%064u\",\"containerID\":\"containerd://",
             w->team, w->app, ix, w->ix % 30, w->ix % 7, w->ix);
    add_hex(d->rng, o, 64);
    buf_addf(o, "\",\"started\":%s}", init ? "false" : "true");
}

static void add_status(struct pod_draw *d)
{
    const struct workload *w = d->w;
    struct buf *o = d->out;
    buf_addz(o, "\"status\":{\"phase\":\"Running\",\"conditions\":[");
    add_condition(d, "PodReadyToStartContainers", d->minute + 1, 2);
    buf_addc(o, ',');
    add_condition(d, "Initialized", d->minute, 8);
    buf_addc(o, ',');
    add_condition(d, "Ready", d->minute + 1, d->ordinal);
    buf_addc(o, ',');
    add_condition(d, "ContainersReady", d->minute + 1, d->ordinal);
    buf_addc(o, ',');
    add_condition(d, "PodScheduled", d->minute, 8);
    buf_addf(
        o,
        "],\"hostIP\":\"10.0.%u.%u\",\"podIP\":\"%s\",\"podIPs\":[{\"ip\":\"%s\"}],\"startTime\":",
        d->ordinal % 250, d->minute % 250, d->ip, d->ip);
    add_time(o, d->minute, 8);
    if (w->init_containers) {
        buf_addz(o, ",\"initContainerStatuses\":[");
        add_container_status(d, 0, true);
        buf_addc(o, ']');
    }
    buf_addz(o, ",\"containerStatuses\":[");
    for (uint32_t i = 0; i < w->containers; i++) {
        if (i)
            buf_addc(o, ',');
        add_container_status(d, i, false);
    }
    buf_addz(o, "],\"qosClass\":\"Burstable\"}");
}

void pod_maker_init(struct pod_maker *m, uint64_t seed, uint32_t workload_count)
{
    *m = (struct pod_maker){ .seed = seed, .workload_count = workload_count };
    rng_init(&m->rng, seed);
}

void pod_maker_next(struct pod_maker *m, struct buf *out)
{
    struct workload w;
    struct pod_draw d = { .w = &w, .rng = &m->rng, .out = out };
    char suffix[6];
    workload_draw(m, (uint32_t)rng_below(&m->rng, m->workload_count), &w);

    d.ordinal = (uint32_t)(m->made++ / m->workload_count);
    d.minute = (uint32_t)rng_below(&m->rng, 1440);
    rng_uuid(&m->rng, d.uid);
    rng_name(&m->rng, suffix, 5);
    rng_name(&m->rng, d.token, 5);
    struct buf name = { 0 };
    buf_addf(&name, "%s-%u-", w.app, w.ix);
    if (w.owner == OWNER_REPLICA_SET)
        buf_addf(&name, "%s-%s", w.hash, suffix);
    else if (w.owner == OWNER_STATEFUL_SET)
        buf_addf(&name, "%u", d.ordinal);
    else
        buf_addz(&name, suffix);
    memcpy(d.name, name.p, name.len + 1);
    buf_clear(&name);
    uint64_t address = rng_next(&m->rng);
    buf_addf(&name, "ip-10-0-%u-%u.ec2.internal", (unsigned)(address & 127),
             (unsigned)(address >> 8 & 255));
    memcpy(d.node, name.p, name.len + 1);
    buf_clear(&name);
    buf_addf(&name, "10.%u.%u.%u", (unsigned)(address >> 16 & 63), (unsigned)(address >> 24 & 255),
             (unsigned)(address >> 32 & 255));
    memcpy(d.ip, name.p, name.len + 1);
    buf_done(&name);

    buf_addz(out, "{\"apiVersion\":\"v1\",\"kind\":\"Pod\",");
    add_metadata(&d);
    add_spec(&d);
    add_status(&d);
    buf_addc(out, '}');
}
