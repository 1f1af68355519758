/* Instances come newest first, so one walk per pod decides: the first dead one of each name stays.
 *
 * An instance that was created and not started is not dead while it is the newest of its name: its
 * worker may be about to start it. Later ones of that kind are leftovers of starts that failed.
 *
 * A status whose last inspection failed tells of the past; it is passed over until one works.
 */
#include "node/container_gc.h"

/* Is there an instance before `ix`, that is a newer one, of the same name (and dead, if so asked)? */
static bool has_newer(const struct runtime_status *status, uint32_t ix, bool dead)
{
    const struct runtime_container *items = status->containers.items;
    for (uint32_t i = 0; i < ix; i++) {
        bool is_dead = items[i].state == RUNTIME_EXITED || items[i].state == RUNTIME_UNKNOWN;
        if (str_eq(items[i].name, items[ix].name) && (is_dead || !dead))
            return true;
    }
    return false;
}

static bool is_surplus(const struct runtime_status *status, uint32_t ix)
{
    switch ((enum runtime_state)status->containers.items[ix].state) {
    case RUNTIME_RUNNING:
        return false;
    case RUNTIME_CREATED:
        return has_newer(status, ix, false);
    case RUNTIME_EXITED:
    case RUNTIME_UNKNOWN:
        return has_newer(status, ix, true);
    }
    KV_UNREACHABLE();
}

static bool goes(const struct runtime_status *status, uint32_t ix, bool pod_is_over)
{
    if (pod_is_over)
        return status->containers.items[ix].state != RUNTIME_RUNNING;
    return is_surplus(status, ix);
}

/* Nothing that stays is in it, and nobody needs it: not the newest of a living pod, which tells what
 * attempt comes next. */
static bool sandbox_goes(const struct runtime_status *status, uint32_t ix, bool pod_is_over)
{
    const struct runtime_sandbox *sandbox = &status->sandboxes.items[ix];
    if (sandbox->ready || (ix == 0 && !pod_is_over))
        return false;
    for (uint32_t i = 0; i < status->containers.count; i++) {
        if (str_eq(status->containers.items[i].sandbox_id, sandbox->id) &&
            !goes(status, i, pod_is_over))
            return false;
    }
    return true;
}

struct container_gc_plan container_gc_plan(struct arena *arena, const struct pod_cache_all *all,
                                           gc_may_remove_fn *may_remove, void *ctx)
{
    uint32_t container_max = 0, sandbox_max = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        container_max += all->items[i]->containers.count;
        sandbox_max += all->items[i]->sandboxes.count;
    }
    struct str *containers = arena_array(arena, struct str, container_max);
    struct str *sandboxes = arena_array(arena, struct str, sandbox_max);
    struct container_gc_plan plan = { .containers.items = containers,
                                      .sandboxes.items = sandboxes };
    for (uint32_t i = 0; i < all->count; i++) {
        const struct runtime_status *status = all->items[i];
        if (status->error_kind != ERR_NONE)
            continue;
        bool over = may_remove(ctx, status->uid);
        for (uint32_t j = 0; j < status->containers.count; j++) {
            if (goes(status, j, over))
                containers[plan.containers.count++] = status->containers.items[j].id;
        }
        for (uint32_t j = 0; j < status->sandboxes.count; j++) {
            if (sandbox_goes(status, j, over))
                sandboxes[plan.sandboxes.count++] = status->sandboxes.items[j].id;
        }
    }
    return plan;
}
