/* What follows from the statuses of the containers: the pod's phase, and its conditions.
 *
 * Plain init containers count by themselves: one that failed for good fails the pod, one that has
 * not ended holds it Pending. Sidecars count with the regular containers while they run or wait,
 * and not at all once they have ended: they do not decide how a pod ends.
 */
#include "node/api_status_inner.h"

#include "codec/duration.h"

/* --- the phase --- */

const char *api_phase_name(enum pod_phase phase)
{
    switch (phase) {
    case PHASE_PENDING:
        return "Pending";
    case PHASE_RUNNING:
        return "Running";
    case PHASE_SUCCEEDED:
        return "Succeeded";
    case PHASE_FAILED:
        return "Failed";
    case PHASE_UNKNOWN:
        return "Unknown";
    case PHASE_UNSET:
        return "";
    }
    KV_UNREACHABLE();
}

struct tally {
    uint32_t init_pending, init_failed_for_good, sidecar_pending;
    uint32_t running, waiting, stopped, succeeded, unknown;
    bool restarts; /* one of those that stopped will be started again */
};

static bool has_ended(const struct state_view *state)
{
    return state->kind == STATE_TERMINATED;
}

/* How it ended, also if it waits for another try; NULL: it has not. */
static const struct state_view *end_of(const struct container_view *view)
{
    if (has_ended(&view->state))
        return &view->state;
    return view->state.kind == STATE_WAITING && has_ended(&view->last) ? &view->last : NULL;
}

static void tally_init(struct tally *t, const struct node_pod *pod,
                       const struct container_view *view)
{
    const struct state_view *end = end_of(view);
    if (!end)
        t->init_pending++;
    else if (end->exit_code != 0 && node_pod_restart_policy(pod, view->spec) == RESTART_NEVER)
        t->init_failed_for_good++;
}

static void tally_sidecar(struct tally *t, const struct container_view *view)
{
    switch ((enum container_state)view->state.kind) {
    case STATE_RUNNING:
        t->running++;
        t->sidecar_pending += !view->started;
        break;
    case STATE_WAITING:
        if (!has_ended(&view->last)) {
            t->waiting++;
            t->sidecar_pending++;
        }
        break;
    case STATE_UNSET:
        t->unknown++;
        t->sidecar_pending++;
        break;
    case STATE_TERMINATED:
        break;
    }
}

static void tally_stopped(struct tally *t, const struct node_pod *pod,
                          const struct container_view *view)
{
    bool succeeded = has_ended(&view->state) && view->state.exit_code == 0;
    uint8_t policy = node_pod_restart_policy(pod, view->spec);
    t->stopped++;
    t->succeeded += succeeded;
    t->restarts |= policy == RESTART_ALWAYS || (policy == RESTART_ON_FAILURE && !succeeded);
}

static void tally_regular(struct tally *t, const struct node_pod *pod,
                          const struct container_view *view)
{
    if (end_of(view))
        tally_stopped(t, pod, view);
    else if (view->state.kind == STATE_RUNNING)
        t->running++;
    else if (view->state.kind == STATE_WAITING)
        t->waiting++;
    else
        t->unknown++;
}

/* In this sandbox, or in one that is gone with all that was in it. */
static bool was_initialized(const struct status_views *views)
{
    bool initialized = views->initialized;
    for (uint32_t i = 0; i < views->containers.count; i++) {
        const struct state_view *state = &views->containers.items[i].state;
        initialized |= state->kind == STATE_RUNNING || has_ended(state);
    }
    return initialized;
}

/* All have stopped that ever ran. */
static enum pod_phase phase_of_stopped(const struct tally *t, bool terminal)
{
    if (t->restarts && !terminal)
        return PHASE_RUNNING;
    return t->succeeded == t->stopped ? PHASE_SUCCEEDED : PHASE_FAILED;
}

enum pod_phase api_phase(const struct node_pod *pod, const struct status_views *views,
                         bool terminal)
{
    struct tally t = { 0 };
    for (uint32_t i = 0; i < views->inits.count; i++) {
        const struct container_view *view = &views->inits.items[i];
        if (view->spec->sidecar)
            tally_sidecar(&t, view);
        else
            tally_init(&t, pod, view);
    }
    for (uint32_t i = 0; i < views->containers.count; i++)
        tally_regular(&t, pod, &views->containers.items[i]);

    if (t.init_failed_for_good)
        return PHASE_FAILED;
    if (t.init_pending || (t.sidecar_pending && !was_initialized(views)) || t.waiting)
        return PHASE_PENDING;
    if (t.running && !t.unknown)
        return PHASE_RUNNING;
    if (t.stopped && !t.running && !t.unknown)
        return phase_of_stopped(&t, terminal && !node_pod_is_static(pod));
    return PHASE_PENDING;
}

/* --- conditions --- */

struct verdict {
    const char *type;
    bool is_true;
    struct str reason, message; /* empty: none */
};

static const char *const own_types[] = { "PodReadyToStartContainers", "Initialized", "Ready",
                                         "ContainersReady", "PodScheduled" };

bool api_condition_is_ours(struct str type)
{
    for (size_t i = 0; i < KV_COUNT_OF(own_types); i++) {
        if (str_eqz(type, own_types[i]))
            return true;
    }
    return false;
}

const json_val *api_condition_find(const json_val *status, struct str type)
{
    json_each_item(json_get(status, STR("conditions")), item) {
        if (str_eq(json_str(json_get(item, STR("type"))), type))
            return item;
    }
    return NULL;
}

/* Names joined by blanks, as the API's messages list them. */
static void add_name(struct buf *names, struct str name)
{
    if (names->len)
        buf_addc(names, ' ');
    buf_add(names, name);
}

/* Absent: no names, no trouble. */
static struct str names_message(struct arena *arena, const struct buf *unknown, const char *what,
                                const struct buf *others)
{
    AUTO_BUF text = { 0 };
    if (unknown->len)
        buf_addf(&text, "containers with unknown status: [%s]", unknown->p);
    if (others->len)
        buf_addf(&text, "%scontainers with %s status: [%s]", text.len ? ", " : "", what, others->p);
    return text.len ? arena_str(arena, buf_str(&text)) : STR_NONE;
}

static struct verdict sandbox_verdict(const struct conditions_input *in)
{
    struct verdict v = { .type = "PodReadyToStartContainers" };
    v.is_true = !pod_needs_sandbox(in->pod, in->status, NULL, &v.message);
    if (!v.is_true)
        v.reason = STR("PodSandboxNotReady");
    return v;
}

static struct verdict initialized_verdict(const struct conditions_input *in, struct arena *arena)
{
    AUTO_BUF unknown = { 0 };
    AUTO_BUF incomplete = { 0 };
    struct verdict v = { .type = "Initialized", .is_true = true };
    for (uint32_t i = 0; i < in->views->inits.count; i++) {
        const struct container_view *view = &in->views->inits.items[i];
        if (view->state.kind == STATE_UNSET)
            add_name(&unknown, view->spec->name);
        else if (view->spec->sidecar ? !view->started : !view->ready)
            add_name(&incomplete, view->spec->name);
    }
    if (in->phase == PHASE_SUCCEEDED && !unknown.len) {
        v.reason = STR("PodCompleted");
        return v;
    }
    struct str message = names_message(arena, &unknown, "incomplete", &incomplete);
    if (!message.p || was_initialized(in->views))
        return v;
    v.is_true = false;
    v.reason = incomplete.len ? STR("ContainersNotInitialized") : STR("UnknownContainerStatuses");
    v.message = message;
    return v;
}

static void sort_unready(const struct container_views *views, bool inits, struct buf *unknown,
                         struct buf *unready)
{
    for (uint32_t i = 0; i < views->count; i++) {
        const struct container_view *view = &views->items[i];
        if (inits && !view->spec->sidecar)
            continue;
        if (view->state.kind == STATE_UNSET)
            add_name(unknown, view->spec->name);
        else if (!view->ready)
            add_name(unready, view->spec->name);
    }
}

static struct verdict containers_verdict(const struct conditions_input *in, struct arena *arena)
{
    AUTO_BUF unknown = { 0 };
    AUTO_BUF unready = { 0 };
    struct verdict v = { .type = "ContainersReady" };
    sort_unready(&in->views->inits, true, &unknown, &unready);
    sort_unready(&in->views->containers, false, &unknown, &unready);
    if (in->phase == PHASE_FAILED) {
        v.reason = STR("PodFailed");
        return v;
    }
    if (in->phase == PHASE_SUCCEEDED && !unknown.len) {
        v.reason = STR("PodCompleted");
        return v;
    }
    v.message = names_message(arena, &unknown, "unready", &unready);
    v.is_true = !v.message.p;
    if (!v.is_true)
        v.reason = unready.len ? STR("ContainersNotReady") : STR("UnknownContainerStatuses");
    return v;
}

static const json_val *foreign_source(const struct conditions_input *in)
{
    return in->pod->maybe_status ? in->pod->maybe_status : in->maybe_previous;
}

static struct verdict ready_verdict(const struct conditions_input *in, struct arena *arena,
                                    const struct verdict *containers)
{
    struct verdict v = *containers;
    v.type = "Ready";
    if (!v.is_true)
        return v;
    AUTO_BUF text = { 0 };
    for (uint32_t i = 0; i < in->pod->readiness_gates.count; i++) {
        struct str gate = in->pod->readiness_gates.items[i];
        const json_val *condition = api_condition_find(foreign_source(in), gate);
        struct str status = json_str(json_get(condition, STR("status")));
        if (str_eqz(status, "True"))
            continue;
        buf_addf(&text, "%sreadiness gate %s %s", text.len ? ", " : "", STR_SHOWN(gate),
                 condition ? "is " : "has no condition");
        if (condition)
            buf_add(&text, status.len ? status : STR("Unknown"));
    }
    if (text.len) {
        v.is_true = false;
        v.reason = STR("ReadinessGatesNotReady");
        v.message = arena_str(arena, buf_str(&text));
    }
    return v;
}

/* The moment of the last change: kept while the status stays, now otherwise. */
static int64_t transition_us(const struct conditions_input *in, const struct verdict *v)
{
    const json_val *old = api_condition_find(in->maybe_previous, str_of(v->type));
    int64_t us;
    bool same = str_eqz(json_str(json_get(old, STR("status"))), v->is_true ? "True" : "False");
    struct str at = json_str(json_get(old, STR("lastTransitionTime")));
    return same && at.p && time_parse(at, &us, NULL) == 0 ? us : in->now_us;
}

static json_mut *verdict_json(struct json_build *b, const struct conditions_input *in,
                              const struct verdict *v)
{
    json_mut *o = json_new_object(b);
    int64_t generation = 0;
    json_i64(json_path(in->pod->doc.root, "metadata.generation"), &generation);
    json_set_str(b, o, "type", str_of(v->type));
    if (generation > 0)
        json_set_i64(b, o, "observedGeneration", generation);
    json_set_str(b, o, "status", v->is_true ? STR("True") : STR("False"));
    json_set(b, o, STR("lastProbeTime"), json_new_null(b));
    json_set(b, o, STR("lastTransitionTime"), api_time_json(b, transition_us(in, v)));
    if (v->reason.len)
        json_set_str(b, o, "reason", v->reason);
    if (v->message.len)
        json_set_str(b, o, "message", v->message);
    return o;
}

/* Others' conditions are theirs to change and to take away: the API's copy counts. Without an API, or
 * for the one that agents and controllers share, what was said before. */
static void add_foreign(struct json_build *b, const struct conditions_input *in, json_mut *list)
{
    const json_val *source = foreign_source(in);
    json_each_item(json_get(source, STR("conditions")), item) {
        if (!api_condition_is_ours(json_str(json_get(item, STR("type")))))
            json_push(b, list, json_copy(b, item));
    }
    const json_val *target = api_condition_find(in->maybe_previous, STR("DisruptionTarget"));
    if (target && !api_condition_find(source, STR("DisruptionTarget")))
        json_push(b, list, json_copy(b, target));
}

json_mut *api_conditions_json(struct json_build *b, struct arena *arena,
                              const struct conditions_input *input)
{
    const struct verdict containers = containers_verdict(input, arena);
    const struct verdict verdicts[] = {
        sandbox_verdict(input),
        initialized_verdict(input, arena),
        ready_verdict(input, arena, &containers),
        containers,
        { .type = "PodScheduled", .is_true = true },
    };
    json_mut *list = json_new_array(b);
    add_foreign(b, input, list);
    for (size_t i = 0; i < KV_COUNT_OF(verdicts); i++)
        json_push(b, list, verdict_json(b, input, &verdicts[i]));
    return list;
}
