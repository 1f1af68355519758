/* Whatever a runtime answers: the first byte chooses the call, the rest is its reply. Listings are two replies,
 * the second from where two more bytes say. */
#include "node/cri_inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_listing(struct str bytes, struct arena *arena)
{
    if (bytes.len < 2)
        return;
    size_t middle = (size_t)(uint8_t)bytes.p[0] << 8 | (uint8_t)bytes.p[1];
    bytes = str_sub(bytes, 2, SIZE_MAX);
    struct str sandboxes = str_sub(bytes, 0, middle), containers = str_sub(bytes, middle, SIZE_MAX);
    struct str uids[] = { STR_NONE, STR("uid") };
    for (size_t i = 0; i < KV_COUNT_OF(uids); i++) {
        struct err err;
        struct runtime_listing listing;
        if (cri_listing_build(sandboxes, containers, uids[i], arena, &listing, &err) < 0)
            continue;
        KV_ASSERT(cri_listing_digest(sandboxes, containers) != 0);
        for (uint32_t p = 0; p < listing.pod_count; p++) {
            const struct runtime_pod *pod = &listing.pods[p];
            KV_ASSERT(pod->sandboxes.count + pod->containers.count > 0);
            KV_ASSERT(p == 0 || str_cmp(listing.pods[p - 1].uid, pod->uid) < 0);
        }
    }
}

/* As an inspection of a pod that has this sandbox and this container would take it. */
static void read_status(Cri__PodSandboxStatus *maybe_sandbox, Cri__ContainerStatus *maybe_container)
{
    struct listed sandbox = { .id = STR("s"), .name = STR("") };
    struct listed container = { .id = STR("c"), .name = STR("main"), .sandbox_id = STR("s") };
    struct runtime_pod pod = { .uid = STR("uid"),
                               .name = STR("web"),
                               .namespace_ = STR("default") };
    pod.sandboxes.items = &sandbox;
    pod.sandboxes.count = 1;
    pod.containers.items = &container;
    pod.containers.count = 1;
    struct cri_answers answers = { .pod = &pod,
                                   .sandboxes = &maybe_sandbox,
                                   .containers = &maybe_container };
    AUTO_STATUS status = cri_status_build(&answers);
    AUTO_STATUS again = cri_status_build(&answers);
    KV_ASSERT(runtime_status_same(status, again));
    KV_ASSERT(status->sandboxes.count == (maybe_sandbox != NULL));
    KV_ASSERT(status->containers.count == (maybe_container != NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO_ARENA arena = { 0 };
    if (size == 0)
        return 0;
    uint32_t choice = data[0] % (CRI_METHOD_COUNT + 1);
    struct str bytes = { (const char *)data + 1, size - 1 };
    if (choice == CRI_METHOD_COUNT) {
        read_listing(bytes, &arena);
        return 0;
    }
    void *reply = cri_decode((enum cri_method)choice, bytes, &arena);
    if (!reply)
        return 0;
    if (choice == CRI_POD_SANDBOX_STATUS)
        read_status(((Cri__PodSandboxStatusResponse *)reply)->status, NULL);
    if (choice == CRI_CONTAINER_STATUS)
        read_status(NULL, ((Cri__ContainerStatusResponse *)reply)->status);
    /* What was understood can be said again. */
    size_t packed_bytes = protobuf_c_message_get_packed_size(reply);
    size_t packed = protobuf_c_message_pack(reply, arena_alloc(&arena, packed_bytes + 1));
    KV_ASSERT(packed == packed_bytes);
    return 0;
}
