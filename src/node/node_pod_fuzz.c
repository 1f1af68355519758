/* Manifests from anywhere: whatever is read as a pod has what its users rely on, and reading it
 * again gives the same pod. */
#include "node/node_pod.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_containers(const struct node_container *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        KV_ASSERT(items[i].name.len > 0);
        KV_ASSERT(items[i].image.len > 0);
        KV_ASSERT(items[i].pull_policy != PULL_UNSET);
        KV_ASSERT(items[i].hash[0] != '\0');
        KV_ASSERT(items[i].liveness.period_s > 0);
        handler_port(&items[i].liveness.handler, &items[i]);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    struct static_pod_options options = { .path = "a.yaml", .node_name = STR("n1"), .seen_us = 1 };
    AUTO_NODE_POD pod = NULL;
    AUTO_NODE_POD again = NULL;
    struct err err = { 0 };
    if (node_pod_from_manifest(text, options, &pod, &err) < 0) {
        KV_ASSERT(err.kind == ERR_INVALID);
        KV_ASSERT(strncmp(err.text, "a.yaml", 6) == 0);
        return 0;
    }
    KV_ASSERT(pod->uid.len > 0);
    KV_ASSERT(pod->hostname.len > 0);
    KV_ASSERT(pod->containers.count > 0);
    KV_ASSERT(pod->restart_policy != RESTART_UNSET);
    KV_ASSERT(pod->qos != QOS_UNSET);
    check_containers(pod->inits.items, pod->inits.count);
    check_containers(pod->containers.items, pod->containers.count);
    check_containers(pod->ephemerals.items, pod->ephemerals.count);

    options.seen_us = 2;
    int rc = node_pod_from_manifest(text, options, &again, NULL);
    KV_ASSERT(rc == 0);
    KV_ASSERT(node_pod_same(pod, again));
    return 0;
}
