/* One decision per question, each from what the runtime shows now; nothing is remembered between two.
 *
 * Sandbox first: without a good one everything is killed, and what is started starts over from
 * the first init container. With a good one, init containers are looked at from the last to the
 * first, because the earlier of those that succeeded may have been pruned: the last one that has an
 * instance tells how far the pod has come. Before it only sidecars matter, which are kept running
 * for as long as the pod lives. Regular containers follow once initialisation is over.
 *
 * Invariants, checked by actions_random_test.c:
 *  1. What runs with the same definition and whose probes have not failed is neither killed nor started.
 *  2. No regular container is started before initialisation is over.
 *  3. A container is started only if it has no running instance, or one that is killed first.
 *  4. A pod that is being deleted has nothing started.
 */
#include "node/actions.h"

struct deciding {
    struct arena *arena;
    const struct node_pod *pod;
    const struct runtime_status *status;
    struct probe_source probes;
    /* Growing lists, each with room for all there can be. */
    const struct node_container **inits, **containers, **ephemerals;
    uint32_t init_count, container_count, ephemeral_count;
    struct container_kill *kills;
    uint32_t kill_count;
    bool kill_pod;
};

/* --- the sandbox --- */

static uint32_t ready_count(const struct runtime_status *status)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < status->sandboxes.count; i++)
        count += status->sandboxes.items[i].ready;
    return count;
}

/* The highest, which is the newest one's unless a clock was set back: the runtime refuses an attempt
 * that it has already. */
static uint32_t highest_attempt(const struct runtime_status *status)
{
    uint32_t highest = 0;
    for (uint32_t i = 0; i < status->sandboxes.count; i++) {
        if (status->sandboxes.items[i].attempt > highest)
            highest = status->sandboxes.items[i].attempt;
    }
    return highest;
}

/* Absent: the newest sandbox is good. */
static struct str sandbox_trouble(const struct node_pod *pod, const struct runtime_status *status)
{
    if (status->sandboxes.count == 0)
        return STR("the pod has no sandbox yet");
    const struct runtime_sandbox *newest = &status->sandboxes.items[0];
    if (ready_count(status) > 1)
        return STR("more than one sandbox is ready");
    if (!newest->ready)
        return STR("the sandbox is not ready");
    if (newest->host_network != pod->host_network)
        return STR("the sandbox is in another network namespace than the pod asks for");
    if (!pod->host_network && newest->ips.count == 0)
        return STR("the sandbox has no IP address");
    return STR_NONE;
}

bool pod_needs_sandbox(const struct node_pod *pod, const struct runtime_status *status,
                       uint32_t *attempt, struct str *why)
{
    struct str trouble = sandbox_trouble(pod, status);
    if (attempt) {
        if (status->sandboxes.count == 0)
            *attempt = 0;
        else if (!trouble.p)
            *attempt = status->sandboxes.items[0].attempt;
        else
            *attempt = highest_attempt(status) + (highest_attempt(status) < UINT32_MAX);
    }
    if (why)
        *why = trouble;
    return trouble.p != NULL;
}

/* --- what the pieces are --- */

/* In the newest sandbox; with none left, anywhere. */
static bool is_current(const struct runtime_status *status,
                       const struct runtime_container *instance)
{
    return status->sandboxes.count == 0 ||
           str_eq(instance->sandbox_id, status->sandboxes.items[0].id);
}

bool pod_has_initialized(const struct node_pod *pod, const struct runtime_status *status)
{
    for (uint32_t i = 0; i < status->containers.count; i++) {
        const struct runtime_container *instance = &status->containers.items[i];
        if (!is_current(status, instance))
            continue;
        for (uint32_t j = 0; j < pod->containers.count; j++) {
            if (str_eq(pod->containers.items[j].name, instance->name))
                return true;
        }
    }
    return false;
}

bool container_should_restart(const struct node_pod *pod, const struct node_container *container,
                              const struct runtime_container *maybe_last)
{
    if (pod->deleted_us)
        return false;
    if (!maybe_last || maybe_last->state == RUNTIME_UNKNOWN || maybe_last->state == RUNTIME_CREATED)
        return true;
    if (maybe_last->state == RUNTIME_RUNNING)
        return false;
    uint8_t policy = node_pod_restart_policy(pod, container);
    return policy == RESTART_ALWAYS || (policy == RESTART_ON_FAILURE && maybe_last->exit_code != 0);
}

static bool may_restart(const struct deciding *d, const struct node_container *container)
{
    return node_pod_restart_policy(d->pod, container) != RESTART_NEVER;
}

/* Our hashes have one length. One of another length is another agent's: taking over from it must
 * restart nothing. */
static bool definition_changed(const struct node_container *container,
                               const struct runtime_container *instance)
{
    struct str hash = str_of(container->hash);
    return instance->hash.len == hash.len && !str_eq(instance->hash, hash);
}

/* --- what shall be done --- */

static void start_init(struct deciding *d, uint32_t ix)
{
    if (!d->pod->deleted_us)
        d->inits[d->init_count++] = &d->pod->inits.items[ix];
}

static void start_container(struct deciding *d, const struct node_container *container)
{
    if (!d->pod->deleted_us)
        d->containers[d->container_count++] = container;
}

static const char *kill_words(enum kill_reason reason)
{
    switch (reason) {
    case KILL_POD:
        return "its pod is stopped";
    case KILL_CHANGED:
        return "its definition changed";
    case KILL_LIVENESS:
        return "its liveness probe failed";
    case KILL_STARTUP:
        return "its startup probe failed";
    case KILL_UNKNOWN:
        return "its state is unknown";
    }
    KV_UNREACHABLE();
}

static void kill_container(struct deciding *d, const struct node_container *container,
                           const struct runtime_container *instance, enum kill_reason reason,
                           bool restart)
{
    struct maybe_int grace = { 0 };
    if (reason == KILL_LIVENESS)
        grace = container->liveness.termination_grace_s;
    if (reason == KILL_STARTUP)
        grace = container->startup.termination_grace_s;
    d->kills[d->kill_count++] = (struct container_kill){
        .id = instance->id,
        .name = container->name,
        .reason = (uint8_t)reason,
        .message =
            arena_strf(d->arena, "%s %.*s: %s%s", container->init ? "Init container" : "Container",
                       STR_ARG(container->name), kill_words(reason),
                       restart && !d->pod->deleted_us ? ", it will be restarted" : ""),
        .grace_s = grace,
    };
}

static struct container_probes probes_of(const struct deciding *d,
                                         const struct node_container *container,
                                         const struct runtime_container *instance)
{
    return d->probes.get(d->probes.ctx, instance->id, container);
}

/* --- init containers --- */

static bool is_last_init(const struct deciding *d, uint32_t ix)
{
    return ix + 1 == d->pod->inits.count;
}

/* Init container `ix` is through. True: that was the last, the pod is initialised. */
static bool init_done(struct deciding *d, uint32_t ix)
{
    if (is_last_init(d, ix))
        return true;
    start_init(d, ix + 1);
    return false;
}

/* A plain init container that is the latest with an instance. True: the pod is initialised. */
static bool decide_plain_init(struct deciding *d, uint32_t ix,
                              const struct runtime_container *instance)
{
    const struct node_container *init = &d->pod->inits.items[ix];
    if (instance->state == RUNTIME_RUNNING)
        return false;
    if (instance->state == RUNTIME_CREATED) { /* the runtime failed between create and start */
        start_init(d, ix);
        return false;
    }
    bool failed = instance->state == RUNTIME_UNKNOWN || instance->exit_code != 0 ||
                  str_eqz(instance->reason, "OOMKilled");
    if (!failed)
        return init_done(d, ix);
    if (!may_restart(d, init)) {
        d->kill_pod = true;
        return false;
    }
    if (instance->state == RUNTIME_UNKNOWN)
        kill_container(d, init, instance, KILL_UNKNOWN, true);
    start_init(d, ix);
    return false;
}

static void replace_sidecar(struct deciding *d, uint32_t ix,
                            const struct runtime_container *instance, enum kill_reason reason)
{
    kill_container(d, &d->pod->inits.items[ix], instance, reason, true);
    start_init(d, ix);
}

/* `latest`: no later init container has an instance, and the pod is not initialised yet, so this one
 * decides whether to go on. True: it is the last and has started. */
static bool decide_running_sidecar(struct deciding *d, uint32_t ix,
                                   const struct runtime_container *instance, bool latest)
{
    const struct node_container *init = &d->pod->inits.items[ix];
    struct container_probes probes = probes_of(d, init, instance);
    bool started = probes.startup == PROBE_SUCCESS;
    /* Its follower does not wait for what becomes of this instance: it had started. */
    bool initialized = started && latest && init_done(d, ix);
    if (definition_changed(init, instance))
        replace_sidecar(d, ix, instance, KILL_CHANGED);
    else if (probes.startup == PROBE_FAILURE)
        replace_sidecar(d, ix, instance, KILL_STARTUP);
    else if (started && probes.liveness == PROBE_FAILURE)
        replace_sidecar(d, ix, instance, KILL_LIVENESS);
    return initialized;
}

static bool decide_sidecar(struct deciding *d, uint32_t ix,
                           const struct runtime_container *instance, bool latest)
{
    switch ((enum runtime_state)instance->state) {
    case RUNTIME_RUNNING:
        return decide_running_sidecar(d, ix, instance, latest);
    case RUNTIME_CREATED:
    case RUNTIME_EXITED:
        start_init(d, ix);
        return false;
    case RUNTIME_UNKNOWN:
        replace_sidecar(d, ix, instance, KILL_UNKNOWN);
        return false;
    }
    KV_UNREACHABLE();
}

/* Instances of an earlier sandbox do not count: a new one is initialised anew. */
static const struct runtime_container *current_instance(const struct deciding *d, struct str name)
{
    const struct runtime_container *instance = runtime_container_find(d->status, name);
    return instance && is_current(d->status, instance) ? instance : NULL;
}

static void reverse(const struct node_container **items, uint32_t count)
{
    for (uint32_t i = 0; i < count / 2; i++) {
        const struct node_container *item = items[i];
        items[i] = items[count - 1 - i];
        items[count - 1 - i] = item;
    }
}

/* True: the pod is initialised, regular containers may run. */
static bool decide_inits(struct deciding *d)
{
    bool initialized = pod_has_initialized(d->pod, d->status);
    bool passed = initialized; /* a later one has an instance, or regular containers do */
    for (uint32_t ix = d->pod->inits.count; ix-- > 0;) {
        const struct node_container *init = &d->pod->inits.items[ix];
        const struct runtime_container *instance = current_instance(d, init->name);
        if (!instance) {
            if (passed && init->sidecar) /* it had one, which is gone */
                start_init(d, ix);
            continue;
        }
        if (init->sidecar)
            initialized |= decide_sidecar(d, ix, instance, !passed);
        else if (!passed)
            initialized |= decide_plain_init(d, ix, instance);
        if (d->kill_pod)
            return false;
        passed = true;
    }
    if (!passed && d->pod->inits.count)
        start_init(d, 0);
    reverse(d->inits, d->init_count);
    return initialized || d->pod->inits.count == 0;
}

/* --- regular and ephemeral containers --- */

static void decide_ephemerals(struct deciding *d)
{
    for (uint32_t i = 0; i < d->pod->ephemerals.count; i++) {
        const struct node_container *ephemeral = &d->pod->ephemerals.items[i];
        if (!d->pod->deleted_us && !runtime_container_find(d->status, ephemeral->name))
            d->ephemerals[d->ephemeral_count++] = ephemeral;
    }
}

/* True: it runs and shall go on. */
static bool decide_running(struct deciding *d, const struct node_container *container,
                           const struct runtime_container *instance)
{
    struct container_probes probes = probes_of(d, container, instance);
    enum kill_reason reason;
    if (definition_changed(container, instance))
        reason = KILL_CHANGED;
    else if (probes.liveness == PROBE_FAILURE)
        reason = KILL_LIVENESS;
    else if (probes.startup == PROBE_FAILURE)
        reason = KILL_STARTUP;
    else
        return true;
    /* A new definition shall run whatever the policy is. */
    bool restart = reason == KILL_CHANGED || may_restart(d, container);
    kill_container(d, container, instance, reason, restart);
    if (restart)
        start_container(d, container);
    return false;
}

static void decide_containers(struct deciding *d)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < d->pod->containers.count; i++) {
        const struct node_container *container = &d->pod->containers.items[i];
        const struct runtime_container *instance =
            runtime_container_find(d->status, container->name);
        if (instance && instance->state == RUNTIME_RUNNING) {
            kept += decide_running(d, container, instance);
        } else if (container_should_restart(d->pod, container, instance)) {
            if (instance && instance->state == RUNTIME_UNKNOWN)
                kill_container(d, container, instance, KILL_UNKNOWN, true);
            start_container(d, container);
        }
    }
    if (kept == 0 && d->container_count == 0) /* sidecars do not keep a pod alive */
        d->kill_pod = true;
}

/* --- a new sandbox --- */

/* Whether a container runs in the sandbox to come. What ran in the old one has ended with it. */
static bool belongs_into_new_sandbox(const struct deciding *d,
                                     const struct node_container *container)
{
    const struct runtime_container *last = runtime_container_find(d->status, container->name);
    if (!last || last->state == RUNTIME_CREATED)
        return true;
    if (!may_restart(d, container))
        return false;
    bool succeeded = last->state == RUNTIME_EXITED && last->exit_code == 0;
    return !succeeded || node_pod_restart_policy(d->pod, container) == RESTART_ALWAYS;
}

static bool any_may_restart(const struct deciding *d)
{
    for (uint32_t i = 0; i < d->pod->containers.count; i++) {
        if (may_restart(d, &d->pod->containers.items[i]))
            return true;
    }
    return false;
}

static bool any_regular_was_made(const struct deciding *d)
{
    for (uint32_t i = 0; i < d->pod->containers.count; i++) {
        if (runtime_container_find(d->status, d->pod->containers.items[i].name))
            return true;
    }
    return false;
}

/* False: the pod is done, there is nothing to make a sandbox for. */
static bool decide_new_sandbox(struct deciding *d, uint32_t attempt)
{
    if (d->pod->deleted_us)
        return false;
    /* No container at all: the last sandbox failed before the first, so it is tried again. */
    if (!any_may_restart(d) && attempt != 0 && d->status->containers.count != 0)
        return false;
    for (uint32_t i = 0; i < d->pod->containers.count; i++) {
        if (belongs_into_new_sandbox(d, &d->pod->containers.items[i]))
            start_container(d, &d->pod->containers.items[i]);
    }
    if (d->container_count == 0 && any_regular_was_made(d))
        return false;
    if (d->pod->inits.count) {
        d->container_count = 0;
        start_init(d, 0);
    }
    return true;
}

/* --- the whole --- */

struct pod_actions pod_actions(struct arena *arena, const struct node_pod *pod,
                               const struct runtime_status *status, struct probe_source probes)
{
    struct deciding d = {
        .arena = arena,
        .pod = pod,
        .status = status,
        .probes = probes,
        .inits = arena_array(arena, const struct node_container *, pod->inits.count),
        .containers = arena_array(arena, const struct node_container *, pod->containers.count),
        .ephemerals = arena_array(arena, const struct node_container *, pod->ephemerals.count),
        .kills =
            arena_array(arena, struct container_kill, pod->inits.count + pod->containers.count),
    };
    struct pod_actions actions = { 0 };
    if (pod_needs_sandbox(pod, status, &actions.attempt, NULL)) {
        d.kill_pod = true;
        actions.create_sandbox = decide_new_sandbox(&d, actions.attempt);
    } else {
        actions.sandbox_id = status->sandboxes.items[0].id;
        decide_ephemerals(&d);
        if (decide_inits(&d))
            decide_containers(&d);
    }
    if (d.kill_pod && !actions.create_sandbox) /* what ends starts nothing */
        d.init_count = d.container_count = d.ephemeral_count = 0;
    actions.kill_pod = d.kill_pod;
    actions.start_inits = (struct start_list){ d.inits, d.init_count };
    actions.start_containers = (struct start_list){ d.containers, d.container_count };
    actions.start_ephemerals = (struct start_list){ d.ephemerals, d.ephemeral_count };
    actions.kill.items = d.kills;
    actions.kill.count = d.kill_count;
    return actions;
}

bool pod_actions_none(const struct pod_actions *actions)
{
    return !actions->kill_pod && !actions->create_sandbox && actions->start_inits.count == 0 &&
           actions->start_containers.count == 0 && actions->start_ephemerals.count == 0 &&
           actions->kill.count == 0;
}
