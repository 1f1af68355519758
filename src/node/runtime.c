/* A status that failed borrows its lists from the last good one and keeps a reference to it. It never
 * borrows from another failed one, so that chains do not grow while a runtime stays broken. */
#include "node/runtime.h"

const char *runtime_state_name(enum runtime_state state)
{
    switch (state) {
    case RUNTIME_CREATED:
        return "created";
    case RUNTIME_RUNNING:
        return "running";
    case RUNTIME_EXITED:
        return "exited";
    case RUNTIME_UNKNOWN:
        return "unknown";
    }
    KV_UNREACHABLE();
}

/* --- life --- */

const struct runtime_status *runtime_status_ref(const struct runtime_status *status)
{
    rc_ref(&status->rc);
    return status;
}

void runtime_status_unref(const struct runtime_status *status)
{
    if (!status || !rc_unref(&status->rc))
        return;
    struct runtime_status *own = (struct runtime_status *)status;
    runtime_status_unref(own->maybe_last);
    arena_done(&own->arena);
    free(own);
}

struct runtime_status *runtime_status_new(struct str uid)
{
    struct runtime_status *status = kv_calloc(1, sizeof *status);
    rc_init(&status->rc);
    status->uid = arena_str(&status->arena, uid);
    return status;
}

const struct runtime_status *runtime_status_failed(const struct runtime_status *maybe_last,
                                                   const struct runtime_pod *listed,
                                                   int64_t timestamp_ns, const struct err *err)
{
    struct runtime_status *status = runtime_status_new(listed->uid);
    const struct runtime_status *good = maybe_last;
    if (good && good->error_kind != ERR_NONE)
        good = good->maybe_last;
    if (good) {
        status->maybe_last = runtime_status_ref(good);
        status->ips = good->ips;
        status->sandboxes.items = good->sandboxes.items;
        status->sandboxes.count = good->sandboxes.count;
        status->containers.items = good->containers.items;
        status->containers.count = good->containers.count;
    }
    status->name = arena_str(&status->arena, listed->name);
    status->namespace_ = arena_str(&status->arena, listed->namespace_);
    status->timestamp_ns = timestamp_ns;
    status->error_kind = err->kind;
    status->error = arena_str(&status->arena, str_of(err->text));
    return status;
}

/* --- comparing --- */

static bool ips_same(struct str_list a, struct str_list b)
{
    if (a.count != b.count)
        return false;
    for (uint32_t i = 0; i < a.count; i++) {
        if (!str_eq(a.items[i], b.items[i]))
            return false;
    }
    return true;
}

static bool sandbox_same(const struct runtime_sandbox *a, const struct runtime_sandbox *b)
{
    return str_eq(a->id, b->id) && a->attempt == b->attempt && a->ready == b->ready &&
           a->host_network == b->host_network && a->ours == b->ours &&
           a->created_ns == b->created_ns && ips_same(a->ips, b->ips);
}

static bool container_same(const struct runtime_container *a, const struct runtime_container *b)
{
    return str_eq(a->id, b->id) && str_eq(a->name, b->name) &&
           str_eq(a->sandbox_id, b->sandbox_id) && a->state == b->state &&
           a->created_ns == b->created_ns && a->started_ns == b->started_ns &&
           a->finished_ns == b->finished_ns && a->exit_code == b->exit_code &&
           a->restart_count == b->restart_count && str_eq(a->image, b->image) &&
           str_eq(a->image_id, b->image_id) && str_eq(a->image_ref, b->image_ref) &&
           str_eq(a->hash, b->hash) && a->ours == b->ours && str_eq(a->reason, b->reason) &&
           str_eq(a->message, b->message) && str_eq(a->log_path, b->log_path) &&
           str_eq(a->termination_message_path, b->termination_message_path) &&
           str_eq(a->termination_message_policy, b->termination_message_policy) &&
           str_eq(a->termination_message_file, b->termination_message_file) &&
           a->termination_grace_s == b->termination_grace_s &&
           a->deletion_grace_s == b->deletion_grace_s && str_eq(a->pre_stop, b->pre_stop);
}

bool runtime_status_same(const struct runtime_status *a, const struct runtime_status *b)
{
    if (a == b)
        return true;
    if (!str_eq(a->uid, b->uid) || !str_eq(a->name, b->name) ||
        !str_eq(a->namespace_, b->namespace_) || !ips_same(a->ips, b->ips) ||
        a->error_kind != b->error_kind || !str_eq(a->error, b->error))
        return false;
    if (a->sandboxes.count != b->sandboxes.count || a->containers.count != b->containers.count)
        return false;
    for (uint32_t i = 0; i < a->sandboxes.count; i++) {
        if (!sandbox_same(&a->sandboxes.items[i], &b->sandboxes.items[i]))
            return false;
    }
    for (uint32_t i = 0; i < a->containers.count; i++) {
        if (!container_same(&a->containers.items[i], &b->containers.items[i]))
            return false;
    }
    return true;
}

/* --- finding --- */

const struct runtime_sandbox *runtime_ready_sandbox(const struct runtime_status *status)
{
    for (uint32_t i = 0; i < status->sandboxes.count; i++) {
        if (status->sandboxes.items[i].ready)
            return &status->sandboxes.items[i];
    }
    return NULL;
}

const struct runtime_container *runtime_container_find(const struct runtime_status *status,
                                                       struct str name)
{
    for (uint32_t i = 0; i < status->containers.count; i++) {
        if (str_eq(status->containers.items[i].name, name))
            return &status->containers.items[i];
    }
    return NULL;
}

const struct runtime_container *runtime_container_by_id(const struct runtime_status *status,
                                                        struct str id)
{
    for (uint32_t i = 0; i < status->containers.count; i++) {
        if (str_eq(status->containers.items[i].id, id))
            return &status->containers.items[i];
    }
    return NULL;
}

bool runtime_status_running(const struct runtime_status *status)
{
    for (uint32_t i = 0; i < status->containers.count; i++) {
        if (status->containers.items[i].state == RUNTIME_RUNNING)
            return true;
    }
    return runtime_ready_sandbox(status) != NULL;
}

bool runtime_status_ours(const struct runtime_status *status)
{
    for (uint32_t i = 0; i < status->sandboxes.count; i++) {
        if (!status->sandboxes.items[i].ours)
            return false;
    }
    for (uint32_t i = 0; i < status->containers.count; i++) {
        if (!status->containers.items[i].ours)
            return false;
    }
    return status->sandboxes.count > 0 || status->containers.count > 0;
}
