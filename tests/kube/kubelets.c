/* See kubelets.h. Two informers say what changed; whoever changed is put into a queue, and workers look
 * at what is true then and do one thing about it, whose effect comes back as another change. A key is a
 * node's name, or a pod's "namespace/name".
 */
#include "kube/kubelets.h"

#include "api/kinds.h"
#include "api/node.h"
#include "api/pod.h"
#include "base/workers.h"
#include "codec/duration.h"
#include "codec/json.h"
#include "store/informer.h"

#include <stdatomic.h>

#define FAKE_LABEL "kwok.x-k8s.io/node"
#define LEASE_NAMESPACE "kube-node-lease"

struct kubelets {
    struct kubelets_options options;
    struct informer *nodes, *pods;
    uint32_t pods_by_node; /* an index */
    struct informer_set *set;
    struct queue *queue;
    struct worker_pool *workers;
    atomic_uint address_count;
    atomic_uint_fast64_t nodes_ready, pods_started, pods_ended, failures;
};

/* --- changes --- */

static struct str node_of_pod(const struct object *pod)
{
    return pod_of(pod)->node_name;
}

static void look_at_pod_soon(struct kubelets *k, const struct object *pod)
{
    AUTO_BUF key = { 0 };
    buf_addf(&key, "%.*s/%.*s", STR_ARG(pod->meta.namespace_), STR_ARG(pod->meta.name));
    queue_add(k->queue, buf_str(&key));
}

static void on_pod(void *ctx, const struct object *maybe_old KV_UNUSED,
                   const struct object *maybe_new)
{
    if (maybe_new)
        look_at_pod_soon(ctx, maybe_new);
}

/* Pods may have been waiting for it to get ready. */
static void on_node(void *ctx, const struct object *maybe_old, const struct object *maybe_new)
{
    struct kubelets *k = ctx;
    if (!maybe_new)
        return;
    bool was_ready = maybe_old && node_is_ready(node_of(maybe_old));
    bool ready = node_is_ready(node_of(maybe_new));
    if (!maybe_old || !ready)
        queue_add(k->queue, maybe_new->meta.name);
    if (was_ready || !ready)
        return;
    struct object_list pods;
    informer_list_index(k->pods, k->pods_by_node, maybe_new->meta.name, &pods);
    for (size_t i = 0; i < pods.count; i++)
        look_at_pod_soon(k, pods.items[i]);
    object_list_done(&pods);
}

/* --- writes --- */

/* That it has gone, or is another one by now, is no failure: who came instead is looked at anew. */
static struct outcome judge(struct kubelets *k, int rc, const struct err *err)
{
    if (rc == 0 || err->kind == ERR_NOT_FOUND || err->kind == ERR_CONFLICT)
        return outcome_done();
    atomic_fetch_add(&k->failures, 1);
    return outcome_retry();
}

static int patch(struct kubelets *k, const struct object *object, bool status, struct str text,
                 struct err *err)
{
    struct object_ref ref = { object->kind, object->meta.namespace_, object->meta.name };
    struct patch_options how = { .type = PATCH_STRATEGIC, .status = status };
    return store_patch(k->options.store, ref, how, text, NULL, err);
}

static void now_text(struct kubelets *k, char out[TIME_TEXT_MAX])
{
    time_format(clock_wall_us(k->options.clock), out);
}

static void add_address(struct kubelets *k, struct buf *out)
{
    unsigned n = atomic_fetch_add(&k->address_count, 1) + 1;
    buf_addf(out, "\"10.%u.%u.%u\"", n >> 16 & 0xff, n >> 8 & 0xff, n & 0xff);
}

static void add_condition(struct buf *out, const char *type, bool holds, const char *now)
{
    buf_addf(out,
             "{\"type\":\"%s\",\"status\":\"%s\",\"lastTransitionTime\":\"%s\",\"reason\":\"Fake\"",
             type, holds ? "True" : "False", now);
}

/* --- nodes --- */

static bool has_label(const struct object *object, struct str key)
{
    return str_map_get(&object->meta.labels, key).p != NULL;
}

static bool is_fake(const struct node *node)
{
    return str_eqz(str_map_get(&node->object.meta.labels, STR(FAKE_LABEL)), "fake");
}

static int report_node(struct kubelets *k, const struct node *node, struct err *err)
{
    static const char *const pressures[] = { "MemoryPressure", "DiskPressure", "PIDPressure" };
    const struct meta *meta = &node->object.meta;
    AUTO_BUF text = { 0 };
    char now[TIME_TEXT_MAX];
    now_text(k, now);
    buf_addz(&text, "{\"status\":{\"conditions\":[");
    for (size_t i = 0; i < KV_COUNT_OF(pressures); i++) {
        add_condition(&text, pressures[i], false, now);
        buf_addf(&text, ",\"lastHeartbeatTime\":\"%s\"},", now);
    }
    add_condition(&text, "Ready", true, now);
    buf_addf(&text, ",\"lastHeartbeatTime\":\"%s\"}],\"addresses\":[{\"type\":\"InternalIP\",",
             now);
    buf_addz(&text, "\"address\":");
    add_address(k, &text);
    buf_addz(&text, "},{\"type\":\"Hostname\",\"address\":");
    json_write_string(meta->name, &text);
    buf_addz(&text, "}],\"nodeInfo\":{\"architecture\":");
    json_write_string(str_map_get(&meta->labels, STR("kubernetes.io/arch")), &text);
    buf_addz(&text, ",\"operatingSystem\":");
    json_write_string(str_map_get(&meta->labels, STR("kubernetes.io/os")), &text);
    buf_addz(&text, ",\"kubeletVersion\":\"fake\",\"kernelVersion\":\"\",\"osImage\":\"\","
                    "\"containerRuntimeVersion\":\"\",\"kubeProxyVersion\":\"\",\"bootID\":\"\","
                    "\"machineID\":\"\",\"systemUUID\":\"\"}}}");
    return patch(k, &node->object, true, buf_str(&text), err);
}

/* Renewed, or made if it is not there. It belongs to the node and goes with it. */
static int keep_lease(struct kubelets *k, const struct node *node, struct err *err)
{
    const struct meta *meta = &node->object.meta;
    const struct object_ref ref = { &lease_kind, STR(LEASE_NAMESPACE), meta->name };
    AUTO_BUF spec = { 0 }, lease = { 0 };
    char now[TIME_TEXT_MAX];
    time_format_micro(clock_wall_us(k->options.clock), now);
    buf_addf(&spec, "\"spec\":{\"holderIdentity\":\"%.*s\",\"leaseDurationSeconds\":40,",
             STR_ARG(meta->name));
    buf_addf(&spec, "\"renewTime\":\"%s\"}", now);
    buf_addf(&lease, "{%.*s}", STR_ARG(buf_str(&spec)));
    if (store_patch(k->options.store, ref, (struct patch_options){ .type = PATCH_MERGE },
                    buf_str(&lease), NULL, err) == 0)
        return 0;
    if (err->kind != ERR_NOT_FOUND)
        return -1;
    buf_clear(&lease);
    buf_addf(&lease,
             "{\"metadata\":{\"name\":\"%.*s\",\"ownerReferences\":[{\"apiVersion\":\"v1\","
             "\"kind\":\"Node\",\"name\":\"%.*s\",\"uid\":\"%.*s\"}]},%.*s}",
             STR_ARG(meta->name), STR_ARG(meta->name), STR_ARG(meta->uid), STR_ARG(buf_str(&spec)));
    return store_create(k->options.store, &lease_kind, STR(LEASE_NAMESPACE), buf_str(&lease), NULL,
                        err);
}

static struct outcome look_at_node(struct kubelets *k, struct str name)
{
    AUTO_OBJECT object = informer_get(k->nodes, STR(""), name);
    struct err err = { 0 };
    if (!object || object->meta.deleted_us || !is_fake(node_of(object)) ||
        has_label(object, STR(KUBELETS_NEVER_READY)))
        return outcome_done();
    const struct node *node = node_of(object);
    if (!node_is_ready(node)) {
        int rc = report_node(k, node, &err);
        atomic_fetch_add(&k->nodes_ready, rc == 0);
        if (rc < 0)
            return judge(k, rc, &err);
    }
    if (k->options.renew_ns == 0)
        return outcome_done();
    if (keep_lease(k, node, &err) < 0)
        return judge(k, -1, &err);
    return outcome_requeue(k->options.renew_ns);
}

/* --- pods --- */

static int report_pod(struct kubelets *k, const struct pod *pod, struct err *err)
{
    static const char *const conditions[] = { "PodReadyToStartContainers", "Initialized",
                                              "ContainersReady", "Ready" };
    AUTO_BUF text = { 0 };
    char now[TIME_TEXT_MAX];
    now_text(k, now);
    buf_addz(&text, "{\"status\":{\"phase\":\"Running\",\"podIP\":");
    size_t from = text.len;
    add_address(k, &text);
    AUTO_FREE char *address = str_dup(str_sub(buf_str(&text), from, text.len - from));
    buf_addf(&text, ",\"podIPs\":[{\"ip\":%s}],\"startTime\":\"%s\",\"conditions\":[", address,
             now);
    for (size_t i = 0; i < KV_COUNT_OF(conditions); i++) {
        buf_addz(&text, i ? "}," : "");
        add_condition(&text, conditions[i], true, now);
    }
    buf_addz(&text, "}],\"containerStatuses\":[");
    for (uint32_t i = 0; i < pod->spec->containers.count; i++) {
        const struct container *c = &pod->spec->containers.items[i];
        buf_addf(&text, "%s{\"name\":\"%.*s\",\"image\":", i ? "," : "", STR_ARG(c->name));
        json_write_string(c->image, &text);
        buf_addf(&text,
                 ",\"imageID\":\"\",\"restartCount\":0,\"ready\":true,\"started\":true,"
                 "\"state\":{\"running\":{\"startedAt\":\"%s\"}}}",
                 now);
    }
    buf_addz(&text, "]}}");
    return patch(k, &pod->object, true, buf_str(&text), err);
}

/* It has ended, and only finalizers keep the object. */
static bool is_over(const struct meta *meta)
{
    return meta->deletion_grace_s.set && meta->deletion_grace_s.value == 0;
}

static struct outcome end_pod(struct kubelets *k, const struct pod *pod)
{
    const struct meta *meta = &pod->object.meta;
    int64_t left_us = meta->deleted_us - clock_wall_us(k->options.clock);
    if (is_over(meta) && meta->finalizers.count > 0)
        return outcome_done();
    if (left_us > 0 && has_label(&pod->object, STR(KUBELETS_TAKES_ITS_GRACE)))
        return outcome_requeue(left_us * 1000);
    struct err err = { 0 };
    struct object_ref ref = { &pod_kind, meta->namespace_, meta->name };
    struct delete_options now = { .uid = meta->uid, .grace_s = { .set = true, .value = 0 } };
    int rc = store_remove(k->options.store, ref, &now, &err);
    atomic_fetch_add(&k->pods_ended, rc == 0);
    return judge(k, rc, &err);
}

static struct outcome look_at_pod(struct kubelets *k, struct str namespace_, struct str name)
{
    AUTO_OBJECT object = informer_get(k->pods, namespace_, name);
    if (!object)
        return outcome_done();
    const struct pod *pod = pod_of(object);
    AUTO_OBJECT node = informer_get(k->nodes, STR(""), pod->node_name);
    if (!node || !is_fake(node_of(node)) || !node_is_ready(node_of(node)))
        return outcome_done();
    if (pod_is_terminating(pod))
        return end_pod(k, pod);
    if (pod->status->phase != PHASE_PENDING)
        return outcome_done();
    struct err err = { 0 };
    int rc = report_pod(k, pod, &err);
    atomic_fetch_add(&k->pods_started, rc == 0);
    return judge(k, rc, &err);
}

/* --- life --- */

static struct outcome look(void *ctx, struct str key)
{
    struct str namespace_, name;
    if (str_cut(key, '/', &namespace_, &name))
        return look_at_pod(ctx, namespace_, name);
    return look_at_node(ctx, key);
}

static void make_informers(struct kubelets *k)
{
    struct informer_options of = { .store = k->options.store,
                                   .clock = k->options.clock,
                                   .kind = &node_kind,
                                   .label_selector = STR(FAKE_LABEL "=fake") };
    k->nodes = informer_new(of);
    informer_on_change(k->nodes, on_node, k);
    of.kind = &pod_kind;
    of.label_selector = STR("");
    of.field_selector = STR("spec.nodeName!=");
    k->pods = informer_new(of);
    k->pods_by_node = informer_add_index(k->pods, node_of_pod);
    informer_on_change(k->pods, on_pod, k);
    k->set = informer_set_new(k->options.clock);
    informer_set_add(k->set, k->nodes);
    informer_set_add(k->set, k->pods);
}

int kubelets_start(struct kubelets_options options, struct kubelets **out, struct err *err)
{
    struct kubelets *k = kv_calloc(1, sizeof *k);
    k->options = options;
    k->queue = queue_new((struct queue_options){ .clock = options.clock, .seed = 1 });
    make_informers(k);
    struct worker_pool_options workers = { .name = "kubelets",
                                           .queue = k->queue,
                                           .thread_count = options.thread_count
                                                               ? options.thread_count
                                                               : KUBELETS_THREADS,
                                           .reconcile = look,
                                           .ctx = k };
    if (worker_pool_start(workers, &k->workers, err) < 0) {
        kubelets_stop(k);
        return -1;
    }
    informer_set_start(k->set);
    *out = k;
    return 0;
}

void kubelets_stop(struct kubelets *k)
{
    if (!k)
        return;
    worker_pool_stop(k->workers, QUEUE_DROP);
    informer_set_free(k->set);
    informer_free(k->pods);
    informer_free(k->nodes);
    queue_free(k->queue);
    free(k);
}

struct kubelets_counts kubelets_counts(struct kubelets *k)
{
    return (struct kubelets_counts){ .nodes_ready = atomic_load(&k->nodes_ready),
                                     .pods_started = atomic_load(&k->pods_started),
                                     .pods_ended = atomic_load(&k->pods_ended),
                                     .failures = atomic_load(&k->failures) };
}
