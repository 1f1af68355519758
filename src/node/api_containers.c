/* The statuses of containers: what the runtime shows, else what was said before.
 *
 * Each container of the spec has a status. Its newest instance gives the state and the one before
 * it the last state. Without an instance it waits, unless it was told to have ended before: an end
 * does not become untrue because the instance was tidied away. One that was told to run and has no
 * instance any more has ended in a way that nobody saw: that is said as exit code 137 of the last
 * state, so that a pod that ran does not look as if it never had.
 */
#include "node/api_status_inner.h"

#include "codec/duration.h"

#define LOST_REASON "ContainerStatusUnknown"
#define LOST_MESSAGE "the container ran, and the runtime no longer knows how it ended"
#define LOST_EXIT_CODE 137

static const struct state_view lost_state = {
    .kind = STATE_TERMINATED,
    .reason = STR(LOST_REASON),
    .message = STR(LOST_MESSAGE),
    .exit_code = LOST_EXIT_CODE,
};

/* --- reading what was said before --- */

const json_val *api_container_find(const json_val *list, struct str name)
{
    json_each_item(list, item) {
        if (str_eq(json_str(json_get(item, STR("name"))), name))
            return item;
    }
    return NULL;
}

static int64_t read_i64(const json_val *v)
{
    int64_t value = 0;
    json_i64(v, &value);
    return value;
}

static int64_t read_time(const json_val *v)
{
    int64_t us = 0;
    if (json_is_string(v) && time_parse(json_str(v), &us, NULL) < 0)
        us = 0;
    return us;
}

struct state_view api_state_read(const json_val *state)
{
    static const struct {
        struct str name;
        enum container_state kind;
    } states[] = { { STR("waiting"), STATE_WAITING },
                   { STR("running"), STATE_RUNNING },
                   { STR("terminated"), STATE_TERMINATED } };
    for (size_t i = 0; i < KV_COUNT_OF(states); i++) {
        const json_val *v = json_get(state, states[i].name);
        if (json_is_object(v))
            return (struct state_view){
                .kind = (uint8_t)states[i].kind,
                .reason = json_str(json_get(v, STR("reason"))),
                .message = json_str(json_get(v, STR("message"))),
                .started_us = read_time(json_get(v, STR("startedAt"))),
                .finished_us = read_time(json_get(v, STR("finishedAt"))),
                .exit_code = read_i64(json_get(v, STR("exitCode"))),
                .signal = read_i64(json_get(v, STR("signal"))),
                .container_id = json_str(json_get(v, STR("containerID"))),
            };
    }
    return (struct state_view){ .kind = STATE_UNSET };
}

static int64_t read_restart_count(const json_val *v)
{
    int64_t count = read_i64(v);
    return count < 0 ? 0 : count > INT32_MAX - 1 ? INT32_MAX - 1 : count; /* one more still fits */
}

static struct container_view read_view(const json_val *maybe_status)
{
    return (struct container_view){
        .state = api_state_read(json_get(maybe_status, STR("state"))),
        .last = api_state_read(json_get(maybe_status, STR("lastState"))),
        .restart_count = read_restart_count(json_get(maybe_status, STR("restartCount"))),
        .image = json_str(json_get(maybe_status, STR("image"))),
        .image_id = json_str(json_get(maybe_status, STR("imageID"))),
        .container_id = json_str(json_get(maybe_status, STR("containerID"))),
    };
}

/* --- one container --- */

struct making {
    struct arena *arena;
    const struct api_status_input *in;
    bool deleting, initialized;
    struct str waiting_reason; /* of a container that has no instance yet */
};

static struct str full_id(const struct making *m, const struct runtime_container *instance)
{
    return arena_strf(m->arena, "%s://%.*s", m->in->runtime_name, STR_ARG(instance->id));
}

static int64_t us_of(int64_t ns)
{
    return ns > 0 ? ns / 1000 : 0;
}

/* The message of the same end, if it was told before. */
static bool told_message(const struct container_view *old, struct str id, struct str *message)
{
    const struct state_view *told[] = { &old->state, &old->last };
    for (size_t i = 0; i < KV_COUNT_OF(told); i++) {
        if (told[i]->kind == STATE_TERMINATED && str_eq(told[i]->container_id, id)) {
            *message = told[i]->message;
            return true;
        }
    }
    return false;
}

static struct str message_of(const struct making *m, const struct container_view *old,
                             const struct runtime_container *ended, struct str id)
{
    const struct last_words_source *source = &m->in->last_words;
    struct str message;
    if (!source->get)
        return ended->message;
    if (told_message(old, id, &message))
        return message;
    message = source->get(source->ctx, ended);
    return message.len ? message : ended->message;
}

static struct state_view state_of(const struct making *m, const struct container_view *old,
                                  const struct runtime_container *instance)
{
    switch ((enum runtime_state)instance->state) {
    case RUNTIME_RUNNING:
        return (struct state_view){ .kind = STATE_RUNNING,
                                    .started_us = us_of(instance->started_ns) };
    case RUNTIME_EXITED: {
        struct str id = full_id(m, instance);
        struct str reason = instance->exit_code ? STR("Error") : STR("Completed");
        return (struct state_view){
            .kind = STATE_TERMINATED,
            .exit_code = instance->exit_code,
            .reason = instance->reason.len ? instance->reason : reason,
            .message = message_of(m, old, instance, id),
            .started_us = us_of(instance->started_ns),
            .finished_us = us_of(instance->finished_ns),
            .container_id = id,
        };
    }
    case RUNTIME_UNKNOWN:
        if (old->state.kind == STATE_RUNNING)
            return lost_state;
        return (struct state_view){ .kind = STATE_WAITING };
    case RUNTIME_CREATED:
        return (struct state_view){ .kind = STATE_WAITING };
    }
    KV_UNREACHABLE();
}

/* The newest instance but `newest` of its name; NULL: none. */
static const struct runtime_container *instance_before(const struct runtime_status *status,
                                                       const struct runtime_container *newest)
{
    const struct runtime_container *end = status->containers.items + status->containers.count;
    for (const struct runtime_container *c = newest + 1; c < end; c++) {
        if (str_eq(c->name, newest->name))
            return c;
    }
    return NULL;
}

static struct container_view view_of_instance(const struct making *m,
                                              const struct container_view *old,
                                              const struct runtime_container *newest)
{
    struct container_view view = {
        .state = state_of(m, old, newest),
        .restart_count = newest->restart_count,
        .image = newest->image,
        .image_id = newest->image_ref,
        .container_id = full_id(m, newest),
    };
    if (newest->state == RUNTIME_UNKNOWN && view.state.kind == STATE_TERMINATED)
        view.restart_count = old->restart_count + 1;

    const struct runtime_container *before = instance_before(m->in->status, newest);
    if (before)
        view.last = state_of(m, old, before);
    else if (str_eq(view.container_id, old->container_id)) /* the one before was tidied away */
        view.last = old->last;
    if (view.last.kind != STATE_TERMINATED)
        view.last = (struct state_view){ .kind = STATE_UNSET };
    return view;
}

static struct container_view view_without_instance(const struct making *m,
                                                   const struct container_view *old)
{
    if (old->state.kind == STATE_TERMINATED)
        return *old;
    struct container_view view = {
        .state = { .kind = STATE_WAITING, .reason = m->waiting_reason },
        .last = old->last,
        .restart_count = old->restart_count,
    };
    if (old->state.kind == STATE_RUNNING) {
        view.last = lost_state;
        view.restart_count += !m->deleting;
    }
    return view;
}

static const struct start_failure *failure_of(const struct making *m, struct str name)
{
    for (uint32_t i = 0; i < m->in->failures.count; i++) {
        if (str_eq(m->in->failures.items[i].container, name))
            return &m->in->failures.items[i];
    }
    return NULL;
}

/* A container that shall run and could not be started waits, and says for what. */
static void apply_failure(const struct making *m, struct container_view *view,
                          const struct runtime_container *maybe_newest)
{
    const struct node_container *spec = view->spec;
    const struct start_failure *failure = failure_of(m, spec->name);
    bool done = spec->init && !spec->sidecar && maybe_newest &&
                maybe_newest->state == RUNTIME_EXITED && maybe_newest->exit_code == 0;
    if (!failure || done || m->deleting ||
        !container_should_restart(m->in->pod, spec, maybe_newest))
        return;
    if (view->state.kind == STATE_TERMINATED)
        view->last = view->state;
    view->state = (struct state_view){ .kind = STATE_WAITING,
                                       .reason = failure->reason,
                                       .message = failure->message };
}

/* Started and ready are the probes' to say, of what runs. */
static void apply_probes(const struct making *m, struct container_view *view,
                         const struct runtime_container *maybe_newest)
{
    const struct node_container *spec = view->spec;
    view->started = view->ready = false;
    if (spec->init && !spec->sidecar) {
        view->started = view->state.kind == STATE_RUNNING;
        view->ready = view->state.kind == STATE_TERMINATED && view->state.exit_code == 0;
        return;
    }
    if (spec->ephemeral || view->state.kind != STATE_RUNNING || !maybe_newest)
        return;
    struct container_probes probes = m->in->probes.get(m->in->probes.ctx, maybe_newest->id, spec);
    view->started = probes.startup == PROBE_SUCCESS;
    view->ready = view->started && probes.readiness == PROBE_SUCCESS;
}

static struct container_view make_view(const struct making *m, const struct node_container *spec,
                                       const json_val *previous_list)
{
    const struct container_view old = read_view(api_container_find(previous_list, spec->name));
    const struct runtime_container *newest = runtime_container_find(m->in->status, spec->name);
    struct container_view view =
        newest ? view_of_instance(m, &old, newest) : view_without_instance(m, &old);
    view.spec = spec;
    if (!view.image.len)
        view.image = spec->image;

    /* Regular containers exist, so a plain init container that is gone had succeeded. */
    bool tidied = !newest && m->initialized && spec->init && !spec->sidecar;
    bool succeeded = view.state.kind == STATE_TERMINATED && view.state.exit_code == 0;
    if (!tidied)
        apply_failure(m, &view, newest);
    else if (!succeeded)
        view.state = (struct state_view){
            .kind = STATE_TERMINATED,
            .reason = STR("Completed"),
            .message = STR("the pod was initialised; the runtime no longer has this container"),
        };
    apply_probes(m, &view, newest);
    return view;
}

/* --- all of them --- */

static int compare_names(const void *a, const void *b)
{
    const struct container_view *x = a, *y = b;
    return str_cmp(x->spec->name, y->spec->name);
}

static struct container_views make_views(const struct making *m, const struct node_container *specs,
                                         uint32_t count, const char *previous_name)
{
    const json_val *previous = json_get(m->in->maybe_previous, str_of(previous_name));
    struct container_views views = { arena_array(m->arena, struct container_view, count), count };
    for (uint32_t i = 0; i < count; i++)
        views.items[i] = make_view(m, &specs[i], previous);
    return views;
}

static void sort_by_name(struct container_views *views)
{
    if (views->count > 1)
        qsort(views->items, views->count, sizeof *views->items, compare_names);
}

struct status_views api_container_views(struct arena *arena, const struct api_status_input *input)
{
    const struct node_pod *pod = input->pod;
    const struct making m = {
        .arena = arena,
        .in = input,
        .deleting = input->deleting || pod->deleted_us,
        .initialized = pod_has_initialized(pod, input->status),
        .waiting_reason = pod->inits.count ? STR("PodInitializing") : STR("ContainerCreating"),
    };
    struct status_views views = {
        .initialized = m.initialized,
        .inits = make_views(&m, pod->inits.items, pod->inits.count, "initContainerStatuses"),
        .containers =
            make_views(&m, pod->containers.items, pod->containers.count, "containerStatuses"),
        .ephemerals = make_views(&m, pod->ephemerals.items, pod->ephemerals.count,
                                 "ephemeralContainerStatuses"),
    };
    sort_by_name(&views.containers);
    sort_by_name(&views.ephemerals);
    return views;
}

/* --- writing --- */

json_mut *api_time_json(struct json_build *b, int64_t us)
{
    char text[TIME_TEXT_MAX];
    if (us == 0)
        return json_new_null(b);
    return json_new_str(b, (struct str){ text, time_format(us, text) });
}

static void set_some(struct json_build *b, json_mut *object, const char *key, struct str s)
{
    if (s.len)
        json_set_str(b, object, key, s);
}

static json_mut *state_json(struct json_build *b, const struct state_view *state)
{
    json_mut *outer = json_new_object(b), *inner = json_new_object(b);
    switch ((enum container_state)state->kind) {
    case STATE_UNSET:
        return outer;
    case STATE_WAITING:
        json_set(b, outer, STR("waiting"), inner);
        set_some(b, inner, "reason", state->reason);
        set_some(b, inner, "message", state->message);
        return outer;
    case STATE_RUNNING:
        json_set(b, outer, STR("running"), inner);
        json_set(b, inner, STR("startedAt"), api_time_json(b, state->started_us));
        return outer;
    case STATE_TERMINATED:
        json_set(b, outer, STR("terminated"), inner);
        json_set_i64(b, inner, "exitCode", state->exit_code);
        if (state->signal)
            json_set_i64(b, inner, "signal", state->signal);
        set_some(b, inner, "reason", state->reason);
        set_some(b, inner, "message", state->message);
        json_set(b, inner, STR("startedAt"), api_time_json(b, state->started_us));
        json_set(b, inner, STR("finishedAt"), api_time_json(b, state->finished_us));
        set_some(b, inner, "containerID", state->container_id);
        return outer;
    }
    KV_UNREACHABLE();
}

json_mut *api_lost_state_json(struct json_build *b)
{
    return state_json(b, &lost_state);
}

static json_mut *view_json(struct json_build *b, const struct container_view *view)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "name", view->spec->name);
    json_set(b, o, STR("state"), state_json(b, &view->state));
    json_set(b, o, STR("lastState"), state_json(b, &view->last));
    json_set_bool(b, o, "ready", view->ready);
    json_set_i64(b, o, "restartCount", view->restart_count);
    json_set_str(b, o, "image", view->image);
    json_set_str(b, o, "imageID", view->image_id);
    set_some(b, o, "containerID", view->container_id);
    if (!view->spec->ephemeral)
        json_set_bool(b, o, "started", view->started);
    return o;
}

json_mut *api_containers_json(struct json_build *b, const struct container_views *views)
{
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < views->count; i++)
        json_push(b, list, view_json(b, &views->items[i]));
    return list;
}
