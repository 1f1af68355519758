/* Statuses of pods, from their workers to the API.
 *
 * Of each pod the newest is kept, and sent when it differs from what was last sent, or from what the
 * API has: somebody else may have written over it (a pod of a node that was unreachable is marked as
 * not ready). While the server is away nothing piles up, and it is asked once per back-off, not once
 * per pod.
 *
 * 1. A patch says what is an agent's to say: conditions and members of others survive it. It carries
 *    the pod's uid, so that another pod of that name is never written to.
 * 2. A terminal phase is told with the last status only: until then something of the pod may run.
 * 3. A pod that is to go and has told its last status is deleted here, with no grace and by its uid.
 *    Nobody else does it, and a pod that runs is never deleted.
 */
#include "node/api_status_inner.h"
#include "node/node_api_inner.h"

#define COMPARE_NS (10 * DURATION_SECOND)
#define RETRY_MAX_NS (10 * DURATION_SECOND)
#define REFUSED_RETRY_MAX_NS (5 * DURATION_MINUTE)

struct status_entry {
    char *uid, *namespace_, *name;
    char *hash;     /* of a static pod, whose mirror has another uid; NULL: not static */
    char *mirror;   /* the uid of the mirror that has it; NULL: none */
    char *text;     /* the newest status */
    uint64_t count; /* +1 with each new status */
    bool finished;  /* it is the last */
    bool dirty;     /* the API does not have it */
    bool deleted;   /* by us; the API does not have the pod any more */
    struct api_backoff backoff;
    int64_t due_ns;                    /* not before */
    const struct node_pod *maybe_seen; /* as the API has it */
    uint64_t seen_version, sent_version, compared_version;
};

/* --- the patch --- */

static json_mut *or_null(struct json_build *b, const json_val *maybe_v)
{
    return maybe_v ? json_copy(b, maybe_v) : json_new_null(b);
}

/* Merged by their type: what an earlier one said and this one does not is taken away. */
static json_mut *conditions_patch(struct json_build *b, const json_val *conditions)
{
    static const char *const optional[] = { "lastProbeTime", "reason", "message" };
    json_mut *list = json_new_array(b);
    json_each_item(conditions, condition) {
        if (!api_condition_is_ours(json_str(json_get(condition, STR("type")))))
            continue;
        json_mut *o = json_copy(b, condition);
        for (size_t i = 0; i < KV_COUNT_OF(optional); i++)
            if (!json_get(condition, str_of(optional[i])))
                json_set(b, o, str_of(optional[i]), json_new_null(b));
        json_push(b, list, o);
    }
    return list;
}

/* A list that is merged by key otherwise. */
static json_mut *replaced_list(struct json_build *b, const json_val *items)
{
    json_mut *list = json_new_array(b), *directive = json_new_object(b);
    json_set_str(b, directive, "$patch", STR("replace"));
    json_push(b, list, directive);
    json_each_item(items, item)
        json_push(b, list, json_copy(b, item));
    return list;
}

void status_patch(const json_val *status, struct str uid, bool finished, struct buf *out)
{
    static const char *const of_phase[] = { "phase", "reason", "message" };
    static const char *const plain[] = { "hostIP",
                                         "podIP",
                                         "startTime",
                                         "initContainerStatuses",
                                         "containerStatuses",
                                         "ephemeralContainerStatuses" };
    static const char *const once[] = { "observedGeneration", "qosClass" };
    static const char *const keyed[] = { "hostIPs", "podIPs" };
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_set_str(&b, json_mut_object(&b, root, STR("metadata")), "uid", uid);
    json_mut *to = json_mut_object(&b, root, STR("status"));
    if (finished || !api_phase_terminal(api_status_phase(status)))
        for (size_t i = 0; i < KV_COUNT_OF(of_phase); i++)
            json_set(&b, to, str_of(of_phase[i]),
                     or_null(&b, json_get(status, str_of(of_phase[i]))));
    for (size_t i = 0; i < KV_COUNT_OF(plain); i++)
        json_set(&b, to, str_of(plain[i]), or_null(&b, json_get(status, str_of(plain[i]))));
    for (size_t i = 0; i < KV_COUNT_OF(once); i++)
        if (json_get(status, str_of(once[i])))
            json_set(&b, to, str_of(once[i]), json_copy(&b, json_get(status, str_of(once[i]))));
    for (size_t i = 0; i < KV_COUNT_OF(keyed); i++) {
        const json_val *items = json_get(status, str_of(keyed[i]));
        json_set(&b, to, str_of(keyed[i]), items ? replaced_list(&b, items) : json_new_null(&b));
    }
    json_set(&b, to, STR("conditions"), conditions_patch(&b, json_get(status, STR("conditions"))));
    json_write_mut(root, out);
}

/* --- entries; all with the lock held --- */

void status_writer_init(struct status_writer *writer)
{
    pthread_mutex_init(&writer->lock, NULL);
}

static void entry_free(struct status_entry *entry)
{
    node_pod_unref(entry->maybe_seen);
    free(entry->uid);
    free(entry->namespace_);
    free(entry->name);
    free(entry->hash);
    free(entry->mirror);
    free(entry->text);
    free(entry);
}

void status_writer_done(struct status_writer *writer)
{
    str_table_each(&writer->entries, slot)
        entry_free(slot->value);
    str_table_done(&writer->entries);
    pthread_mutex_destroy(&writer->lock);
}

static struct status_entry *entry_of(struct status_writer *writer, struct str uid,
                                     struct str namespace_, struct str name)
{
    struct status_entry *entry = str_table_get(&writer->entries, uid);
    if (entry)
        return entry;
    entry = kv_calloc(1, sizeof *entry);
    entry->uid = str_dup(uid);
    entry->namespace_ = str_dup(namespace_);
    entry->name = str_dup(name);
    str_table_put(&writer->entries, uid, entry);
    return entry;
}

static void drop(struct status_writer *writer, struct str uid)
{
    struct status_entry *entry = str_table_remove(&writer->entries, uid);
    if (entry)
        entry_free(entry);
}

/* --- what is told and seen --- */

static void entry_set(struct status_entry *entry, struct buf *text, bool finished)
{
    free(entry->text);
    entry->text = buf_take(text);
    entry->finished |= finished;
    entry->dirty = true;
    entry->count++;
}

void status_writer_told(struct node_api *api, const struct node_pod *pod, const json_val *status,
                        bool finished)
{
    struct status_writer *writer = &api->statuses;
    AUTO_BUF text = { 0 };
    json_write(status, &text);
    pthread_mutex_lock(&writer->lock);
    struct status_entry *entry = entry_of(writer, pod->uid, pod->namespace_, pod->name);
    if (node_pod_is_static(pod) && !entry->hash) {
        struct str hash = str_map_get(&pod->annotations, STR("kubernetes.io/config.hash"));
        entry->hash = str_dup(hash.p ? hash : STR(""));
    }
    if (entry->finished && !finished) /* a pod of the same uid, which runs again */
        entry->finished = false;
    entry_set(entry, &text, finished);
    pthread_mutex_unlock(&writer->lock);
    api_loop_wake(&api->status_loop);
}

void status_writer_seen(struct node_api *api, struct str uid, const struct node_pod *maybe_pod,
                        uint64_t version)
{
    struct status_writer *writer = &api->statuses;
    pthread_mutex_lock(&writer->lock);
    struct status_entry *entry = str_table_get(&writer->entries, uid);
    if (!maybe_pod) {
        drop(writer, uid);
    } else {
        /* Perhaps before its first status: then there is nothing to say yet, and this is kept. */
        if (!entry)
            entry = entry_of(writer, uid, maybe_pod->namespace_, maybe_pod->name);
        node_pod_unref(entry->maybe_seen);
        entry->maybe_seen = node_pod_ref(maybe_pod);
        entry->seen_version = version;
    }
    pthread_mutex_unlock(&writer->lock);
}

void status_writer_refuse(struct node_api *api, const struct object *pod, const char *why)
{
    struct status_writer *writer = &api->statuses;
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF text = { 0 };
    json_build_init(&b);
    json_mut *status = json_new_object(&b);
    json_set_str(&b, status, "phase", STR("Failed"));
    json_set_str(&b, status, "reason", STR("UnexpectedAdmissionError"));
    json_set_str(&b, status, "message", str_of(why));
    json_write_mut(status, &text);
    pthread_mutex_lock(&writer->lock);
    struct status_entry *entry =
        entry_of(writer, pod->meta.uid, pod->meta.namespace_, pod->meta.name);
    if (!entry->text) /* one that runs is left alone */
        entry_set(entry, &text, true);
    pthread_mutex_unlock(&writer->lock);
    api_loop_wake(&api->status_loop);
}

bool status_writer_living(struct node_api *api, struct str uid)
{
    struct status_writer *writer = &api->statuses;
    pthread_mutex_lock(&writer->lock);
    const struct status_entry *entry = str_table_get(&writer->entries, uid);
    bool living = entry && entry->text && (!entry->finished || entry->dirty);
    pthread_mutex_unlock(&writer->lock);
    return living;
}

static bool is_among(const struct node_pod *const *pods, uint32_t count, struct str uid)
{
    for (uint32_t i = 0; i < count; i++)
        if (str_eq(pods[i]->uid, uid))
            return true;
    return false;
}

void status_writer_statics(struct node_api *api, const struct node_pod *const *pods, uint32_t count)
{
    struct status_writer *writer = &api->statuses;
    pthread_mutex_lock(&writer->lock);
    str_table_each(&writer->entries, slot) {
        const struct status_entry *entry = slot->value;
        if (!entry->hash || !entry->finished || is_among(pods, count, slot->key))
            continue;
        AUTO_OBJECT mirror = mirror_pods_find(api, str_of(entry->namespace_), str_of(entry->name),
                                              str_of(entry->hash));
        if (!mirror || !entry->dirty)
            drop(writer, slot->key);
    }
    pthread_mutex_unlock(&writer->lock);
}

/* --- sending one --- */

/* A copy of what is sent, made under the lock. */
struct sending {
    struct str uid, api_uid, namespace_, name, text;
    uint64_t count;
    bool finished, dirty, is_static;
};

enum sent { SENT, SENT_AWAY, SENT_LATER, SENT_REFUSED };

static struct object_ref ref_of(const struct sending *s)
{
    return (struct object_ref){ &pod_kind, s->namespace_, s->name };
}

/* The write was refused: because there is another pod of that name now? */
static bool is_another(struct node_api *api, const struct sending *s)
{
    AUTO_OBJECT there = NULL;
    struct err err;
    if (store_get(api->opts.store, ref_of(s), &there, &err) < 0)
        return err.kind == ERR_NOT_FOUND;
    return !str_eq(there->meta.uid, s->api_uid);
}

static enum sent sent_after(struct node_api *api, const struct sending *s, const struct err *err)
{
    switch (err->kind) {
    case ERR_NOT_FOUND:
        return SENT_AWAY;
    case ERR_CONFLICT:
    case ERR_INVALID:
        return is_another(api, s) ? SENT_AWAY : SENT_REFUSED;
    case ERR_DENIED:
    case ERR_EXISTS:
    case ERR_CAPACITY:
        return SENT_REFUSED;
    case ERR_UNAVAILABLE:
    case ERR_THROTTLED:
    case ERR_GONE:
    case ERR_CANCELLED:
    case ERR_INTERNAL:
    case ERR_NONE:
        return SENT_LATER;
    }
    KV_UNREACHABLE();
}

static enum sent patch_one(struct node_api *api, const struct sending *s, uint64_t *version,
                           bool *deleting, struct err *err)
{
    AUTO_BUF patch = { 0 };
    AUTO_OBJECT now = NULL;
    struct doc doc = { 0 };
    if (json_read_trusted(s->text, &doc, err) < 0)
        return SENT_REFUSED; /* it was written by us: cannot be */
    status_patch(doc.root, s->api_uid, s->finished, &patch);
    doc_done(&doc);
    if (store_patch(api->opts.store, ref_of(s),
                    (struct patch_options){ .type = PATCH_STRATEGIC, .status = true },
                    buf_str(&patch), &now, err) < 0)
        return sent_after(api, s, err);
    *version = now->meta.resource_version;
    *deleting |= now->meta.deleted_us != 0;
    return SENT;
}

static enum sent remove_one(struct node_api *api, const struct sending *s, struct err *err)
{
    struct delete_options options = { .uid = s->api_uid, .grace_s = { 0, true } };
    if (store_remove(api->opts.store, ref_of(s), &options, err) == 0) {
        log_info(api->opts.log, "the end of a pod is confirmed",
                 LOG_STR("namespace", s->namespace_), LOG_STR("pod", s->name),
                 LOG_STR("uid", s->uid));
        return SENT;
    }
    return err->kind == ERR_CONFLICT ? SENT_AWAY : sent_after(api, s, err);
}

/* --- the loop --- */

static bool wants_deletion(const struct status_entry *entry)
{
    return entry->finished && !entry->hash && !entry->deleted && entry->maybe_seen &&
           entry->maybe_seen->deleted_us != 0;
}

/* A static pod's mirror may be another one than had it last. */
static bool wants_something(const struct status_entry *entry)
{
    return entry->text && (entry->dirty || entry->hash || wants_deletion(entry));
}

static const struct object *mirror_of(struct node_api *api, const struct status_entry *entry)
{
    return mirror_pods_find(api, str_of(entry->namespace_), str_of(entry->name),
                            str_of(entry->hash));
}

/* Somebody has written to the mirror: what it was is not known here, so it is told again. */
static void compare_mirror(struct node_api *api, struct status_entry *entry)
{
    AUTO_OBJECT mirror = mirror_of(api, entry);
    if (!mirror || mirror->meta.resource_version <= entry->sent_version ||
        mirror->meta.resource_version == entry->compared_version)
        return;
    entry->compared_version = mirror->meta.resource_version;
    entry->dirty = true;
}

/* Where the API has something else than what was last sent. */
static void compare_all(struct node_api *api)
{
    struct status_writer *writer = &api->statuses;
    str_table_each(&writer->entries, slot) {
        struct status_entry *entry = slot->value;
        struct doc doc = { 0 };
        if (entry->hash && entry->text)
            compare_mirror(api, entry);
        if (!entry->text || entry->dirty || !entry->maybe_seen || entry->deleted ||
            entry->seen_version < entry->sent_version ||
            entry->seen_version == entry->compared_version ||
            json_read_trusted(str_of(entry->text), &doc, NULL) < 0)
            continue;
        entry->compared_version = entry->seen_version;
        entry->dirty = !api_status_same(doc.root, entry->maybe_seen->maybe_status);
        doc_done(&doc);
    }
}

/* The next that is due from `*place` on, copied into `arena`; false: none. `*due_ns` becomes the time of
 * the earliest that is not due yet. */
static bool next_due(struct node_api *api, struct arena *arena, uint32_t *place, int64_t *due_ns,
                     struct sending *out)
{
    struct status_writer *writer = &api->statuses;
    int64_t now_ns = clock_mono_ns(api->opts.clock);
    bool found = false;
    pthread_mutex_lock(&writer->lock);
    for (; !found && *place < writer->entries.slot_count; (*place)++) {
        const struct str_slot *slot = &writer->entries.slots[*place];
        struct status_entry *entry = slot->key.p ? slot->value : NULL;
        if (!entry || !wants_something(entry))
            continue;
        if (entry->due_ns > now_ns) {
            *due_ns = entry->due_ns < *due_ns ? entry->due_ns : *due_ns;
            continue;
        }
        *out = (struct sending){ .uid = arena_str(arena, str_of(entry->uid)),
                                 .namespace_ = arena_str(arena, str_of(entry->namespace_)),
                                 .name = arena_str(arena, str_of(entry->name)),
                                 .text = arena_str(arena, str_of(entry->text)),
                                 .count = entry->count,
                                 .finished = entry->finished,
                                 .dirty = entry->dirty,
                                 .is_static = entry->hash != NULL };
        out->api_uid = out->uid;
        if (entry->hash) {
            AUTO_OBJECT mirror = mirror_of(api, entry);
            if (!mirror) /* when there is one, the source wakes us */
                continue;
            out->api_uid = arena_str(arena, mirror->meta.uid);
            out->dirty |= !str_eq(mirror->meta.uid, str_of(entry->mirror));
            if (!out->dirty)
                continue;
        }
        found = true;
    }
    pthread_mutex_unlock(&writer->lock);
    return found;
}

static void put_back(struct node_api *api, const struct sending *s, enum sent sent, bool removed,
                     uint64_t version)
{
    struct status_writer *writer = &api->statuses;
    int64_t now_ns = clock_mono_ns(api->opts.clock);
    pthread_mutex_lock(&writer->lock);
    struct status_entry *entry = str_table_get(&writer->entries, s->uid);
    if (entry && sent == SENT_AWAY && !s->is_static) {
        drop(writer, s->uid);
    } else if (entry && sent == SENT) {
        entry->dirty &= entry->count != s->count;
        entry->deleted |= removed;
        entry->backoff.failures = 0;
        entry->due_ns = 0;
        if (version)
            entry->sent_version = version;
        if (s->is_static) {
            free(entry->mirror);
            entry->mirror = str_dup(s->api_uid);
        }
    } else if (entry) {
        int64_t max_ns = sent == SENT_REFUSED ? REFUSED_RETRY_MAX_NS : RETRY_MAX_NS;
        entry->due_ns = now_ns + api_backoff_next(&entry->backoff, api->opts.retry_ns, max_ns);
    }
    pthread_mutex_unlock(&writer->lock);
}

/* False: the server is away, and there is no use in trying others. */
static bool send_one(struct node_api *api, const struct sending *s)
{
    struct err err = { 0 };
    bool deleting = false, removed = false;
    uint64_t version = 0;
    enum sent sent = SENT;
    if (s->dirty)
        sent = patch_one(api, s, &version, &deleting, &err);
    else
        deleting = true;
    if (sent == SENT && deleting && s->finished && !s->is_static) {
        sent = remove_one(api, s, &err);
        removed = sent == SENT;
    }
    if (sent == SENT_REFUSED || sent == SENT_LATER)
        log_warn(api->opts.log, "a pod's status is not written",
                 LOG_STR("namespace", s->namespace_), LOG_STR("pod", s->name), LOG_ERR(&err));
    put_back(api, s, sent, removed, version);
    return sent != SENT_LATER || err.kind != ERR_UNAVAILABLE;
}

int64_t status_writer_step(struct node_api *api)
{
    struct status_writer *writer = &api->statuses;
    int64_t now_ns = clock_mono_ns(api->opts.clock), due_ns = INT64_MAX;
    uint32_t place = 0;
    if (now_ns >= writer->compare_ns) {
        pthread_mutex_lock(&writer->lock);
        compare_all(api);
        pthread_mutex_unlock(&writer->lock);
        writer->compare_ns = now_ns + COMPARE_NS;
    }
    if (now_ns < writer->due_ns)
        return writer->due_ns; /* the server was away a moment ago, whoever wakes us */
    for (bool more = true; more;) {
        AUTO_ARENA arena = { 0 };
        struct sending s;
        more = next_due(api, &arena, &place, &due_ns, &s);
        if (more && !send_one(api, &s)) {
            writer->due_ns = clock_mono_ns(api->opts.clock) +
                             api_backoff_next(&writer->backoff, api->opts.retry_ns, RETRY_MAX_NS);
            return writer->due_ns;
        }
        if (more)
            writer->backoff.failures = 0;
    }
    return due_ns < writer->compare_ns ? due_ns : writer->compare_ns;
}
