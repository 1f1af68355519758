/* Inspections: the calls of one pod side by side, and what their answers come to.
 *
 * The items of a pod are asked for in the order of the listing, at most so many at once; the answers
 * wait, decoded, in the inspection's arena until the last is in. Then the status is drafted with strings that
 * it borrows from them, measured, and moved into one block of just its size: there is one for every
 * pod, for as long as the pod runs. */
#include "node/cri_inner.h"

#define ANNOTATION_HASH "io.kubernetes.container.hash"
#define ANNOTATION_RESTARTS "io.kubernetes.container.restartCount"
#define ANNOTATION_MESSAGE_PATH "io.kubernetes.container.terminationMessagePath"
#define ANNOTATION_MESSAGE_POLICY "io.kubernetes.container.terminationMessagePolicy"
#define ANNOTATION_PRE_STOP "io.kubernetes.container.preStopHandler"
#define ANNOTATION_TERMINATION_GRACE "io.kubernetes.pod.terminationGracePeriod"
#define ANNOTATION_DELETION_GRACE "io.kubernetes.pod.deletionGracePeriod"

#define MESSAGE_BYTES_MAX 4096 /* of what the runtime says of an end; the API shows no more */

/* --- what an answer says --- */

static struct str entry_get(Cri__Entry *const *entries, size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(entries[i]->key, key) == 0)
            return str_of(entries[i]->value);
    }
    return STR_NONE;
}

static struct str annotation(const Cri__ContainerStatus *status, const char *key)
{
    return entry_get(status->annotations, status->n_annotations, key);
}

static struct str or_empty(struct str maybe)
{
    return maybe.p ? maybe : STR("");
}

static int64_t seconds_or_none(struct str maybe)
{
    int64_t seconds;
    return maybe.p && str_to_i64(maybe, &seconds) && seconds >= 0 ? seconds : -1;
}

static uint32_t restart_count(const Cri__ContainerStatus *status, uint32_t attempt)
{
    int64_t count;
    struct str said = annotation(status, ANNOTATION_RESTARTS);
    if (said.p && str_to_i64(said, &count) && count >= 0 && count <= UINT32_MAX)
        return (uint32_t)count;
    return status->metadata ? status->metadata->attempt : attempt;
}

static struct str host_path_of(const Cri__ContainerStatus *status, struct str inside)
{
    for (size_t i = 0; inside.len > 0 && i < status->n_mounts; i++) {
        if (str_eqz(inside, status->mounts[i]->container_path))
            return str_of(status->mounts[i]->host_path);
    }
    return STR("");
}

static struct runtime_container draft_container(const Cri__ContainerStatus *status,
                                                const struct listed *listed)
{
    struct str message = str_of(status->message);
    message.len = str_utf8_cut(message, MESSAGE_BYTES_MAX);
    struct str path = or_empty(annotation(status, ANNOTATION_MESSAGE_PATH));
    return (struct runtime_container){
        .id = listed->id,
        .name = status->metadata ? str_of(status->metadata->name) : listed->name,
        .sandbox_id = listed->sandbox_id,
        .state = cri_container_state((uint64_t)status->state),
        .created_ns = status->created_at,
        .started_ns = status->started_at,
        .finished_ns = status->finished_at,
        .exit_code = status->exit_code,
        .restart_count = restart_count(status, listed->attempt),
        .image = str_of(status->image ? status->image->image : ""),
        .image_id = str_of(status->image_id[0] ? status->image_id : status->image_ref),
        .image_ref = str_of(status->image_ref),
        .hash = or_empty(annotation(status, ANNOTATION_HASH)),
        .ours = annotation(status, AGENT_ANNOTATION).p != NULL,
        .reason = str_of(status->reason),
        .message = message,
        .log_path = str_of(status->log_path),
        .termination_message_path = path,
        .termination_message_policy = or_empty(annotation(status, ANNOTATION_MESSAGE_POLICY)),
        .termination_message_file = host_path_of(status, path),
        .termination_grace_s = seconds_or_none(annotation(status, ANNOTATION_TERMINATION_GRACE)),
        .deletion_grace_s = seconds_or_none(annotation(status, ANNOTATION_DELETION_GRACE)),
        .pre_stop = annotation(status, ANNOTATION_PRE_STOP),
    };
}

static bool on_host_network(const Cri__PodSandboxStatus *status)
{
    const Cri__NamespaceOption *options =
        status->linux_ && status->linux_->namespaces ? status->linux_->namespaces->options : NULL;
    return options && options->network == CRI__NAMESPACE_MODE__NODE;
}

/* The first address, and more of a dual-stack pod. A sandbox in the host's network has none of its own. */
static struct str_list draft_ips(struct arena *scratch, const Cri__PodSandboxStatus *status)
{
    const Cri__PodSandboxNetworkStatus *network = status->network;
    if (!network || on_host_network(status))
        return (struct str_list){ 0 };
    struct str *ips = arena_array(scratch, struct str, network->n_additional_ips + 1);
    uint32_t count = 0;
    if (network->ip[0])
        ips[count++] = str_of(network->ip);
    for (size_t i = 0; i < network->n_additional_ips; i++) {
        if (network->additional_ips[i]->ip[0])
            ips[count++] = str_of(network->additional_ips[i]->ip);
    }
    return (struct str_list){ ips, count };
}

static struct runtime_sandbox draft_sandbox(struct arena *scratch,
                                            const Cri__PodSandboxStatus *status,
                                            const struct listed *listed)
{
    return (struct runtime_sandbox){
        .id = listed->id,
        .attempt = status->metadata ? status->metadata->attempt : listed->attempt,
        .ready = status->state == CRI__POD_SANDBOX_STATE__READY,
        .host_network = on_host_network(status),
        .ours = entry_get(status->annotations, status->n_annotations, AGENT_ANNOTATION).p != NULL,
        .created_ns = status->created_at,
        .ips = draft_ips(scratch, status),
    };
}

static int newest_first(int64_t a_ns, struct str a_id, int64_t b_ns, struct str b_id)
{
    if (a_ns != b_ns)
        return a_ns > b_ns ? -1 : 1;
    return str_cmp(a_id, b_id);
}

static int sandbox_order(const void *a, const void *b)
{
    const struct runtime_sandbox *x = a, *y = b;
    return newest_first(x->created_ns, x->id, y->created_ns, y->id);
}

static int container_order(const void *a, const void *b)
{
    const struct runtime_container *x = a, *y = b;
    return newest_first(x->created_ns, x->id, y->created_ns, y->id);
}

/* --- moving a draft into one block --- */

struct draft {
    struct str uid, name, namespace_;
    struct runtime_sandbox *sandboxes;
    struct runtime_container *containers;
    uint32_t sandbox_count, container_count, ip_count;
};

static const size_t container_texts[] = {
    offsetof(struct runtime_container, id),
    offsetof(struct runtime_container, name),
    offsetof(struct runtime_container, sandbox_id),
    offsetof(struct runtime_container, image),
    offsetof(struct runtime_container, image_id),
    offsetof(struct runtime_container, image_ref),
    offsetof(struct runtime_container, hash),
    offsetof(struct runtime_container, reason),
    offsetof(struct runtime_container, message),
    offsetof(struct runtime_container, log_path),
    offsetof(struct runtime_container, termination_message_path),
    offsetof(struct runtime_container, termination_message_policy),
    offsetof(struct runtime_container, termination_message_file),
    offsetof(struct runtime_container, pre_stop),
};

static struct str *text_at(struct runtime_container *c, size_t i)
{
    return (struct str *)(void *)((char *)c + container_texts[i]);
}

static size_t text_bytes(const struct draft *d)
{
    size_t bytes = d->uid.len + d->name.len + d->namespace_.len;
    for (uint32_t i = 0; i < d->sandbox_count; i++) {
        bytes += d->sandboxes[i].id.len;
        for (uint32_t k = 0; k < d->sandboxes[i].ips.count; k++)
            bytes += d->sandboxes[i].ips.items[k].len;
    }
    for (uint32_t i = 0; i < d->container_count; i++) {
        for (size_t k = 0; k < KV_COUNT_OF(container_texts); k++)
            bytes += text_at(&d->containers[i], k)->len;
    }
    return bytes;
}

static void move_text(struct str *text, char **to)
{
    if (text->len > 0)
        memcpy(*to, text->p, text->len);
    if (text->p)
        text->p = *to;
    *to += text->len;
}

static struct runtime_status *draft_finish(struct draft *d)
{
    struct runtime_status *status = runtime_status_new(STR_NONE);
    size_t containers_bytes = d->container_count * sizeof *d->containers;
    size_t sandboxes_bytes = d->sandbox_count * sizeof *d->sandboxes;
    size_t ips_bytes = d->ip_count * sizeof(struct str);
    char *block = arena_alloc(&status->arena,
                              containers_bytes + sandboxes_bytes + ips_bytes + text_bytes(d) + 1);
    struct runtime_container *containers = (void *)block;
    struct runtime_sandbox *sandboxes = (void *)(block + containers_bytes);
    struct str *ip = (void *)(block + containers_bytes + sandboxes_bytes);
    char *text = block + containers_bytes + sandboxes_bytes + ips_bytes;

    status->uid = d->uid;
    status->name = d->name;
    status->namespace_ = d->namespace_;
    move_text(&status->uid, &text);
    move_text(&status->name, &text);
    move_text(&status->namespace_, &text);
    for (uint32_t i = 0; i < d->sandbox_count; i++) {
        sandboxes[i] = d->sandboxes[i];
        move_text(&sandboxes[i].id, &text);
        sandboxes[i].ips.items = ip;
        for (uint32_t k = 0; k < sandboxes[i].ips.count; k++) {
            *ip = d->sandboxes[i].ips.items[k];
            move_text(ip++, &text);
        }
    }
    for (uint32_t i = 0; i < d->container_count; i++) {
        containers[i] = d->containers[i];
        for (size_t k = 0; k < KV_COUNT_OF(container_texts); k++)
            move_text(text_at(&containers[i], k), &text);
    }
    status->sandboxes.items = sandboxes;
    status->sandboxes.count = d->sandbox_count;
    status->containers.items = containers;
    status->containers.count = d->container_count;
    if (d->sandbox_count > 0)
        status->ips = sandboxes[0].ips;
    return status;
}

struct runtime_status *cri_status_build(const struct cri_answers *answers)
{
    const struct runtime_pod *pod = answers->pod;
    AUTO_ARENA scratch = { 0 };
    struct draft d = {
        .uid = pod->uid,
        .name = pod->name,
        .namespace_ = pod->namespace_,
        .sandboxes = arena_array(&scratch, struct runtime_sandbox, pod->sandboxes.count),
        .containers = arena_array(&scratch, struct runtime_container, pod->containers.count),
    };
    for (uint32_t i = 0; i < pod->sandboxes.count; i++) {
        if (!answers->sandboxes[i])
            continue;
        struct runtime_sandbox *sandbox = &d.sandboxes[d.sandbox_count++];
        *sandbox = draft_sandbox(&scratch, answers->sandboxes[i], &pod->sandboxes.items[i]);
        d.ip_count += sandbox->ips.count;
    }
    for (uint32_t i = 0; i < pod->containers.count; i++) {
        if (answers->containers[i])
            d.containers[d.container_count++] =
                draft_container(answers->containers[i], &pod->containers.items[i]);
    }
    qsort(d.sandboxes, d.sandbox_count, sizeof *d.sandboxes, sandbox_order);
    qsort(d.containers, d.container_count, sizeof *d.containers, container_order);
    struct runtime_status *status = draft_finish(&d);
    status->timestamp_ns = answers->timestamp_ns;
    return status;
}

/* --- the calls --- */

struct cri_inspection {
    struct cri *cri;
    struct arena arena;     /* the pod and the answers */
    struct runtime_pod pod; /* a copy */
    int64_t timestamp_ns;
    void (*wake)(void *ctx);
    void *ctx;
    Cri__PodSandboxStatus **sandboxes; /* answers; NULL: none, or none yet */
    Cri__ContainerStatus **containers;
    struct cri_pending **calls; /* of the sandboxes, then of the containers; NULL: not under way */
    uint32_t count, started, running;
    bool failed;
    struct err err;
};

static void copy_listed(struct arena *arena, const struct listed *from, uint32_t count,
                        const struct listed **out)
{
    struct listed *items = arena_array(arena, struct listed, count);
    for (uint32_t i = 0; i < count; i++) {
        items[i] = from[i];
        items[i].id = arena_str(arena, from[i].id);
        items[i].name = arena_str(arena, from[i].name);
        items[i].sandbox_id = arena_str(arena, from[i].sandbox_id);
    }
    *out = items;
}

static void copy_pod(struct arena *arena, const struct runtime_pod *from, struct runtime_pod *out)
{
    out->uid = arena_str(arena, from->uid);
    out->name = arena_str(arena, from->name);
    out->namespace_ = arena_str(arena, from->namespace_);
    copy_listed(arena, from->sandboxes.items, from->sandboxes.count, &out->sandboxes.items);
    copy_listed(arena, from->containers.items, from->containers.count, &out->containers.items);
    out->sandboxes.count = from->sandboxes.count;
    out->containers.count = from->containers.count;
}

static bool is_sandbox(const struct cri_inspection *in, uint32_t i)
{
    return i < in->pod.sandboxes.count;
}

static const struct listed *listed_at(const struct cri_inspection *in, uint32_t i)
{
    return is_sandbox(in, i) ? &in->pod.sandboxes.items[i]
                             : &in->pod.containers.items[i - in->pod.sandboxes.count];
}

static void start_call(struct cri_inspection *in, uint32_t i)
{
    char *id = (char *)listed_at(in, i)->id.p; /* the copy ends in NUL; the message only reads it */
    if (is_sandbox(in, i)) {
        Cri__PodSandboxStatusRequest request = CRI__POD_SANDBOX_STATUS_REQUEST__INIT;
        request.pod_sandbox_id = id;
        in->calls[i] = cri_start(in->cri, CRI_POD_SANDBOX_STATUS, &request, CRI_INSPECT_TIMEOUT_NS,
                                 in->wake, in->ctx);
    } else {
        Cri__ContainerStatusRequest request = CRI__CONTAINER_STATUS_REQUEST__INIT;
        request.container_id = id;
        in->calls[i] = cri_start(in->cri, CRI_CONTAINER_STATUS, &request, CRI_INSPECT_TIMEOUT_NS,
                                 in->wake, in->ctx);
    }
    in->running++;
}

static void start_calls(struct cri_inspection *in)
{
    if (in->started == in->count || in->running == CRI_INSPECT_CALLS_MAX)
        return;
    cri_cork(in->cri);
    while (in->started < in->count && in->running < CRI_INSPECT_CALLS_MAX)
        start_call(in, in->started++);
    cri_uncork(in->cri);
}

static int take_reply(struct cri_inspection *in, uint32_t i, struct err *err)
{
    if (is_sandbox(in, i)) {
        Cri__PodSandboxStatusResponse *reply;
        if (cri_take(in->calls[i], &in->arena, &reply, err) < 0)
            return -1;
        if (!reply->status)
            return err_set(err, ERR_INTERNAL, "PodSandboxStatus: the reply has no status");
        in->sandboxes[i] = reply->status;
    } else {
        Cri__ContainerStatusResponse *reply;
        if (cri_take(in->calls[i], &in->arena, &reply, err) < 0)
            return -1;
        if (!reply->status)
            return err_set(err, ERR_INTERNAL, "ContainerStatus: the reply has no status");
        in->containers[i - in->pod.sandboxes.count] = reply->status;
    }
    return 0;
}

/* What is not there any more vanished after the listing: it is left out. */
static void take_answer(struct cri_inspection *in, uint32_t i)
{
    if (take_reply(in, i, &in->err) < 0 && in->err.kind != ERR_NOT_FOUND) {
        err_wrap(&in->err, "%s %s", is_sandbox(in, i) ? "sandbox" : "container",
                 STR_SHOWN(str_sub(listed_at(in, i)->id, 0, 13)));
        in->failed = true;
    }
    cri_pending_free(take(&in->calls[i]));
    in->running--;
}

static void give_up(struct cri_inspection *in)
{
    for (uint32_t i = 0; i < in->started; i++)
        cri_pending_free(take(&in->calls[i]));
    in->running = 0;
    in->started = in->count;
}

static bool step(struct cri_inspection *in, bool wait)
{
    for (bool moved = true; moved && in->running > 0;) {
        moved = false;
        for (uint32_t i = 0; i < in->started && !in->failed; i++) {
            if (!in->calls[i] || (!wait && !cri_ready(in->calls[i])))
                continue;
            take_answer(in, i);
            moved = true;
        }
        if (in->failed)
            give_up(in);
        start_calls(in);
    }
    return in->running == 0;
}

bool cri_inspection_step(struct cri_inspection *inspection)
{
    return step(inspection, false);
}

struct cri_inspection *cri_inspect_start(struct cri *cri, const struct runtime_pod *pod,
                                         int64_t timestamp_ns, void (*wake)(void *ctx), void *ctx)
{
    struct cri_inspection *in = kv_calloc(1, sizeof *in);
    in->cri = cri;
    in->timestamp_ns = timestamp_ns;
    in->wake = wake;
    in->ctx = ctx;
    copy_pod(&in->arena, pod, &in->pod);
    in->count = pod->sandboxes.count + pod->containers.count;
    in->sandboxes = arena_array(&in->arena, Cri__PodSandboxStatus *, pod->sandboxes.count);
    in->containers = arena_array(&in->arena, Cri__ContainerStatus *, pod->containers.count);
    in->calls = arena_array(&in->arena, struct cri_pending *, in->count);
    start_calls(in);
    return in;
}

int cri_inspection_take(struct cri_inspection *inspection, const struct runtime_status **out,
                        struct err *err)
{
    KV_ASSERT(inspection->running == 0);
    if (inspection->failed) {
        if (err)
            *err = inspection->err;
        return -1;
    }
    *out = cri_status_build(&(struct cri_answers){ .pod = &inspection->pod,
                                                   .sandboxes = inspection->sandboxes,
                                                   .containers = inspection->containers,
                                                   .timestamp_ns = inspection->timestamp_ns });
    return 0;
}

void cri_inspection_free(struct cri_inspection *inspection)
{
    if (!inspection)
        return;
    give_up(inspection);
    arena_done(&inspection->arena);
    free(inspection);
}

int cri_inspect_now(struct cri *cri, struct str uid, const struct runtime_status **out,
                    struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct runtime_listing listing;
    if (cri_list(cri, uid, &arena, &listing, err) < 0)
        return -1;
    struct runtime_pod nothing = { .uid = uid, .name = STR(""), .namespace_ = STR("") };
    const struct runtime_pod *pod = listing.pod_count > 0 ? listing.pods : &nothing;
    struct cri_inspection *inspection =
        cri_inspect_start(cri, pod, listing.timestamp_ns, NULL, NULL);
    step(inspection, true);
    int rc = cri_inspection_take(inspection, out, err);
    cri_inspection_free(inspection);
    return rc;
}
