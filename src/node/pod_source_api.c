/* The pods of the API that are bound to this node, for the agent.
 *
 * An informer says which there are and when one changes; it keeps what schedulers need, and not
 * commands, probes or mounts. So a pod that is new or changed is fetched once more, as JSON. What
 * that costs is one request per change, as many as kubelets make before they write a status.
 *
 * 1. The agent ends what it is not told of. So nothing is delivered before every pod of the first
 *    list has been read, however long a server takes to answer for the last of them.
 * 2. A pod that cannot be fetched stays what it was. Only the server's word that it is gone, or
 *    another pod now, takes it away.
 * 3. A pod that cannot be understood has failed, and says why; one that could be before stays as it
 *    was.
 */
#include "node/node_api_inner.h"

#define SYNC_LOOK_NS (DURATION_SECOND / 20) /* until the first list is there */
#define RETRY_MAX_NS (10 * DURATION_SECOND)

struct known_pod {
    uint64_t version;                 /* what was read */
    const struct node_pod *maybe_pod; /* NULL: it cannot be understood, or was never read */
    bool read;
    bool listed; /* in the list at hand */
};

static void known_free(struct known_pod *known)
{
    node_pod_unref(known->maybe_pod);
    free(known);
}

/* --- reading one --- */

static void on_change(void *ctx, const struct object *maybe_old KV_UNUSED,
                      const struct object *maybe_new KV_UNUSED)
{
    struct node_api *api = ctx;
    api_loop_wake(&api->source_loop);
}

static uint64_t version_of(const json_val *root)
{
    int64_t version = 0;
    str_to_i64(json_str(json_path(root, "metadata.resourceVersion")), &version);
    return version > 0 ? (uint64_t)version : 0;
}

enum fetched { FETCHED, FETCH_GONE, FETCH_LATER, FETCH_BAD };

static enum fetched fetch(struct node_api *api, const struct object *pod,
                          const struct node_pod **out, uint64_t *version, struct err *err)
{
    AUTO_BUF text = { 0 };
    struct doc doc = { 0 };
    struct object_ref ref = { &pod_kind, pod->meta.namespace_, pod->meta.name };
    if (store_get_json(api->opts.store, ref, &text, err) < 0)
        return err->kind == ERR_NOT_FOUND ? FETCH_GONE : FETCH_LATER;
    if (text.len > NODE_POD_BYTES_MAX) {
        err_set(err, ERR_INVALID, "it has %zu bytes, expected at most %zu", text.len,
                NODE_POD_BYTES_MAX);
        return FETCH_BAD;
    }
    if (json_read_trusted(buf_str(&text), &doc, err) < 0)
        return FETCH_LATER; /* cut off on its way, most likely */
    if (!str_eq(json_str(json_path(doc.root, "metadata.uid")), pod->meta.uid)) {
        doc_done(&doc);
        return FETCH_GONE;
    }
    *version = version_of(doc.root);
    return node_pod_decode(&doc, POD_FROM_API, out, err) < 0 ? FETCH_BAD : FETCHED;
}

/* --- all of them --- */

static void refuse(struct node_api *api, const struct object *pod, const struct err *why)
{
    log_warn(api->opts.log, "a pod cannot be understood",
             LOG_STR("namespace", pod->meta.namespace_), LOG_STR("pod", pod->meta.name),
             LOG_ERR(why));
    status_writer_refuse(api, pod, why->text);
}

/* True: something is new. False in `whole`: it has to be tried again. */
static bool take_one(struct node_api *api, const struct object *pod, bool *whole)
{
    struct pod_source_api *source = &api->source;
    struct known_pod *known = str_table_get(&source->known, pod->meta.uid);
    if (known && known->read && known->version >= pod->meta.resource_version) {
        known->listed = true;
        return false;
    }
    const struct node_pod *fetched = NULL;
    uint64_t version = pod->meta.resource_version;
    struct err err;
    enum fetched result = fetch(api, pod, &fetched, &version, &err);
    if (result == FETCH_GONE)
        return false; /* the informer is about to say so */
    if (!known) {
        known = kv_calloc(1, sizeof *known);
        str_table_put(&source->known, pod->meta.uid, known);
        node_objects_refresh(api->objects, pod->meta.namespace_);
    }
    known->listed = true;
    if (result == FETCH_LATER) {
        log_warn(api->opts.log, "a pod is not read", LOG_STR("namespace", pod->meta.namespace_),
                 LOG_STR("pod", pod->meta.name), LOG_ERR(&err));
        *whole = false;
        return false;
    }
    known->read = true;
    known->version = version > pod->meta.resource_version ? version : pod->meta.resource_version;
    if (result == FETCH_BAD) {
        refuse(api, pod, &err);
        return false;
    }
    node_pod_unref(known->maybe_pod);
    known->maybe_pod = fetched;
    status_writer_seen(api, pod->meta.uid, fetched, known->version);
    return true;
}

/* True: some are gone. */
static bool drop_unlisted(struct node_api *api)
{
    struct pod_source_api *source = &api->source;
    bool dropped = false;
    str_table_each(&source->known, slot) {
        struct known_pod *known = slot->value;
        if (known->listed) {
            known->listed = false;
            continue;
        }
        status_writer_seen(api, slot->key, NULL, 0);
        str_table_remove(&source->known, slot->key);
        known_free(known);
        dropped = true;
    }
    return dropped;
}

static void deliver(struct node_api *api)
{
    struct pod_source_api *source = &api->source;
    AUTO_ARENA arena = { 0 };
    const struct node_pod **pods =
        arena_array(&arena, const struct node_pod *, source->known.live_count);
    uint32_t count = 0;
    str_table_each(&source->known, slot) {
        const struct known_pod *known = slot->value;
        if (known->maybe_pod)
            pods[count++] = known->maybe_pod;
    }
    agent_deliver(api->agent, POD_FROM_API, pods, count);
}

/* When to look again. */
static int64_t take_all(struct node_api *api)
{
    struct pod_source_api *source = &api->source;
    struct object_list list;
    bool whole = true, changed = false;
    informer_list(source->informer, STR(""), &list);
    for (size_t i = 0; i < list.count; i++)
        if (!pod_is_mirror(pod_of(list.items[i])))
            changed |= take_one(api, list.items[i], &whole);
    object_list_done(&list);
    changed |= drop_unlisted(api);
    if (source->delivered ? changed : whole) {
        deliver(api);
        source->delivered = true;
    }
    if (whole) {
        source->backoff.failures = 0;
        return INT64_MAX;
    }
    return clock_mono_ns(api->opts.clock) +
           api_backoff_next(&source->backoff, api->opts.retry_ns, RETRY_MAX_NS);
}

int64_t pod_source_step(struct node_api *api)
{
    if (!informer_synced(api->source.informer))
        return clock_mono_ns(api->opts.clock) + SYNC_LOOK_NS;
    int64_t pods_ns = take_all(api);
    int64_t mirrors_ns = mirror_pods_step(api);
    api_loop_wake(&api->status_loop); /* pods that go, mirrors that came */
    return pods_ns < mirrors_ns ? pods_ns : mirrors_ns;
}

/* --- life --- */

void pod_source_open(struct node_api *api)
{
    struct pod_source_api *source = &api->source;
    AUTO_BUF selector = { 0 };
    buf_addf(&selector, "spec.nodeName=%.*s", STR_ARG(api->node_name));
    source->informer = informer_new((struct informer_options){ .store = api->opts.store,
                                                               .kind = &pod_kind,
                                                               .clock = api->opts.clock,
                                                               .field_selector = buf_str(&selector),
                                                               .seed = api->opts.seed });
    informer_on_change(source->informer, on_change, api);
    source->set = informer_set_new(api->opts.clock);
    informer_set_add(source->set, source->informer);
    informer_set_start(source->set);
}

void pod_source_close(struct node_api *api)
{
    struct pod_source_api *source = &api->source;
    if (!source->set)
        return;
    informer_set_free(source->set);
    informer_free(source->informer);
    str_table_each(&source->known, slot)
        known_free(slot->value);
    str_table_done(&source->known);
    *source = (struct pod_source_api){ 0 };
}
