/* The first two bytes say how to cut the rest, the bytes of a watch, into pieces. Whatever they are,
 * reading ends; and what came before the first failure does not depend on the pieces. */
#include "store/kube_inner.h"

#include "api/kinds.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Hash of all events up to the first failure. */
static uint64_t read_in_pieces(struct kube_decoder *d, struct str bytes, size_t piece)
{
    struct kube_events events = { .decoder = d, .kind = &pod_kind, .bookmarks = true };
    struct watch_event event;
    struct err err = { 0 };
    uint64_t hash = 1;
    int rc = 0;

    for (size_t at = 0; rc >= 0 && at < bytes.len; at += piece) {
        buf_add(kube_events_room(&events), str_sub(bytes, at, piece));
        while ((rc = kube_events_next(&events, &event, &err)) > 0) {
            hash = kv_mix64(hash + event.type) ^ event.resource_version;
            KV_ASSERT((event.object == NULL) == (event.type == EVENT_BOOKMARK));
            if (event.object)
                hash += kv_hash(event.object->meta.name.p, event.object->meta.name.len);
            object_unref(event.object);
        }
    }
    KV_ASSERT(rc == 0 || err.kind != ERR_NONE);
    kube_events_done(&events);
    return hash + (uint64_t)(rc < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    struct kube_decoder decoder = { .pool = object_pool_new() };
    struct str bytes = { (const char *)data + 2, size - 2 };
    size_t piece = (size_t)data[0] + 1;

    told_init(&decoder.skipped);
    uint64_t hash = read_in_pieces(&decoder, bytes, piece);
    KV_ASSERT(read_in_pieces(&decoder, bytes, piece * 7 + data[1]) == hash);
    told_done(&decoder.skipped);
    object_pool_free(decoder.pool);
    return 0;
}
