/* The whole status, in the order in which an API server writes it.
 *
 * What an agent does not own, members and conditions, passes through. A terminal phase is final:
 * whatever the runtime shows afterwards, and whoever asks for another. Reason and message belong to
 * the phase and stay with it.
 */
#include "node/api_status_inner.h"

#include "codec/duration.h"

/* --- small questions --- */

struct str api_status_phase(const json_val *status)
{
    struct str phase = json_str(json_get(status, STR("phase")));
    return phase.p ? phase : STR("");
}

bool api_phase_terminal(struct str phase)
{
    return str_eqz(phase, "Succeeded") || str_eqz(phase, "Failed");
}

static void set_some(struct json_build *b, json_mut *object, const char *key, struct str s)
{
    if (s.len)
        json_set_str(b, object, key, s);
}

/* --- phase, reason, message --- */

struct phase_view {
    enum pod_phase phase;
    struct str reason, message;
};

/* The status that says that the pod is over, if one does: its word is final. */
static const json_val *terminal_status(const struct api_status_input *in)
{
    if (api_phase_terminal(api_status_phase(in->pod->maybe_status)))
        return in->pod->maybe_status;
    return api_phase_terminal(api_status_phase(in->maybe_previous)) ? in->maybe_previous : NULL;
}

static struct str text_of(const json_val *status, const char *key, const json_val *otherwise)
{
    struct str text = json_str(json_get(status, str_of(key)));
    return text.len ? text : json_str(json_get(otherwise, str_of(key)));
}

static struct phase_view phase_of(const struct api_status_input *in,
                                  const struct status_views *views)
{
    const json_val *final = terminal_status(in);
    if (final) {
        bool failed = str_eqz(api_status_phase(final), "Failed");
        return (struct phase_view){
            .phase = failed ? PHASE_FAILED : PHASE_SUCCEEDED,
            .reason = text_of(in->maybe_previous, "reason", final),
            .message = text_of(in->maybe_previous, "message", final),
        };
    }
    if (in->failed_reason.len)
        return (struct phase_view){ PHASE_FAILED, in->failed_reason, in->failed_message };
    struct phase_view view = { .phase = api_phase(in->pod, views, in->terminal) };
    if (str_eqz(api_status_phase(in->maybe_previous), api_phase_name(view.phase))) {
        view.reason = text_of(in->maybe_previous, "reason", in->pod->maybe_status);
        view.message = text_of(in->maybe_previous, "message", in->pod->maybe_status);
    }
    return view;
}

/* --- addresses --- */

static bool is_ipv6(struct str ip)
{
    return str_find(ip, ':') >= 0;
}

static json_mut *ips_json(struct json_build *b, const struct str *ips, uint32_t count)
{
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < count; i++) {
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "ip", ips[i]);
        json_push(b, list, o);
    }
    return list;
}

static void set_ips(struct json_build *b, json_mut *out, const char *one, const char *all,
                    const struct str *ips, uint32_t count)
{
    if (count == 0)
        return;
    json_set_str(b, out, one, ips[0]);
    json_set(b, out, str_of(all), ips_json(b, ips, count));
}

/* One of each family, as the API allows; the family of the node's first address comes first. */
static uint32_t ordered_ips(struct str_list ips, struct str_list node_ips, struct str out[2])
{
    bool first_is_v6 = is_ipv6(node_ips.count ? node_ips.items[0] : ips.items[0]);
    uint32_t count = 0;
    for (int family = 0; family < 2; family++) {
        for (uint32_t i = 0; i < ips.count; i++) {
            if (is_ipv6(ips.items[i]) == (first_is_v6 != (family == 1))) {
                out[count++] = ips.items[i];
                break;
            }
        }
    }
    return count;
}

static bool keep_previous_ips(struct json_build *b, json_mut *out, const json_val *maybe_previous)
{
    struct str ip = json_str(json_get(maybe_previous, STR("podIP")));
    const json_val *ips = json_get(maybe_previous, STR("podIPs"));
    if (!ip.len)
        return false;
    json_set_str(b, out, "podIP", ip);
    if (json_count(ips))
        json_set(b, out, STR("podIPs"), json_copy(b, ips));
    return true;
}

/* A pod on the host's network takes the node's addresses once. Another has those of its sandbox,
 * and when it has ended those that it had. */
static void set_pod_ips(struct json_build *b, json_mut *out, const struct api_status_input *in)
{
    const struct runtime_status *status = in->status;
    struct str ordered[2];
    struct str_list ips = in->pod->host_network ? in->node_ips : status->ips;
    bool keep = in->pod->host_network || (ips.count == 0 && !runtime_ready_sandbox(status));
    if ((keep && keep_previous_ips(b, out, in->maybe_previous)) || ips.count == 0)
        return;
    set_ips(b, out, "podIP", "podIPs", ordered, ordered_ips(ips, in->node_ips, ordered));
}

/* --- the whole --- */

static const char *qos_name(uint8_t qos)
{
    switch ((enum pod_qos)qos) {
    case QOS_GUARANTEED:
        return "Guaranteed";
    case QOS_BURSTABLE:
        return "Burstable";
    case QOS_BEST_EFFORT:
    case QOS_UNSET:
        return "BestEffort";
    }
    KV_UNREACHABLE();
}

static json_mut *start_time(struct json_build *b, const struct api_status_input *in)
{
    int64_t us;
    const json_val *sources[] = { in->maybe_previous, in->pod->maybe_status };
    for (size_t i = 0; i < KV_COUNT_OF(sources); i++) {
        struct str text = json_str(json_get(sources[i], STR("startTime")));
        if (text.p && time_parse(text, &us, NULL) == 0)
            return api_time_json(b, us);
    }
    return api_time_json(b, in->now_us);
}

static bool is_ours(struct str member)
{
    static const char *const ours[] = {
        "observedGeneration",
        "phase",
        "conditions",
        "message",
        "reason",
        "hostIP",
        "hostIPs",
        "podIP",
        "podIPs",
        "startTime",
        "initContainerStatuses",
        "containerStatuses",
        "qosClass",
        "ephemeralContainerStatuses",
    };
    for (size_t i = 0; i < KV_COUNT_OF(ours); i++) {
        if (str_eqz(member, ours[i]))
            return true;
    }
    return false;
}

/* nominatedNodeName, resourceClaimStatuses, and whatever comes: others wrote them. */
static void add_foreign(struct json_build *b, json_mut *out, const json_val *maybe_previous)
{
    json_each_member(maybe_previous, key, value) {
        if (!is_ours(json_key(key)))
            json_set(b, out, json_key(key), json_copy(b, value));
    }
}

json_mut *api_status_build(struct json_build *b, const struct api_status_input *input)
{
    AUTO_ARENA arena = { 0 };
    const struct node_pod *pod = input->pod;
    const struct status_views views = api_container_views(&arena, input);
    const struct phase_view phase = phase_of(input, &views);
    const struct conditions_input conditions = {
        .pod = pod,
        .status = input->status,
        .views = &views,
        .maybe_previous = input->maybe_previous,
        .phase = phase.phase,
        .now_us = input->now_us,
    };
    json_mut *out = json_new_object(b);
    int64_t generation = 0;
    if (json_i64(json_path(pod->doc.root, "metadata.generation"), &generation) && generation > 0)
        json_set_i64(b, out, "observedGeneration", generation);
    json_set_str(b, out, "phase", str_of(api_phase_name(phase.phase)));
    json_set(b, out, STR("conditions"), api_conditions_json(b, &arena, &conditions));
    set_some(b, out, "message", phase.message);
    set_some(b, out, "reason", phase.reason);
    set_ips(b, out, "hostIP", "hostIPs", input->node_ips.items, input->node_ips.count);
    set_pod_ips(b, out, input);
    json_set(b, out, STR("startTime"), start_time(b, input));
    if (views.inits.count)
        json_set(b, out, STR("initContainerStatuses"), api_containers_json(b, &views.inits));
    json_set(b, out, STR("containerStatuses"), api_containers_json(b, &views.containers));
    json_set_str(b, out, "qosClass", str_of(qos_name(pod->qos)));
    if (views.ephemerals.count)
        json_set(b, out, STR("ephemeralContainerStatuses"),
                 api_containers_json(b, &views.ephemerals));
    add_foreign(b, out, input->maybe_previous);
    return out;
}

/* --- the end of a pod --- */

static bool has_started(const json_val *container)
{
    const json_val *state = json_get(container, STR("state"));
    return json_get(state, STR("running")) || json_get(state, STR("terminated")) ||
           json_get(json_get(container, STR("lastState")), STR("terminated"));
}

/* Of the first `count` in the list, those without an end get one. */
static void end_containers(struct json_build *b, json_mut *list, size_t count)
{
    json_each_mut_item(list, item)
    {
        if (count-- == 0)
            return;
        if (json_mut_get(json_mut_get(item, STR("state")), STR("terminated")))
            continue;
        json_set(b, item, STR("state"), api_lost_state_json(b));
        json_set_bool(b, item, "ready", false);
        if (json_mut_get(item, STR("started")))
            json_set_bool(b, item, "started", false);
    }
}

/* Init containers up to the last that ever started; those after it had no turn. */
static size_t inits_begun(const json_val *status)
{
    size_t begun = 0, ix = 0;
    json_each_item(json_get(status, STR("initContainerStatuses")), item) {
        ix++;
        if (has_started(item))
            begun = ix;
    }
    return begun;
}

static bool was_initialized(const json_val *status)
{
    const json_val *condition = api_condition_find(status, STR("Initialized"));
    return json_count(json_get(status, STR("initContainerStatuses"))) == 0 ||
           str_eqz(json_str(json_get(condition, STR("status"))), "True");
}

/* Nothing of a failed pod is ready. */
static void fail_conditions(struct json_build *b, json_mut *list, int64_t now_us)
{
    json_each_mut_item(list, item)
    {
        struct str type = json_mut_str(json_mut_get(item, STR("type")));
        if (!str_eqz(type, "Ready") && !str_eqz(type, "ContainersReady"))
            continue;
        if (!str_eqz(json_mut_str(json_mut_get(item, STR("status"))), "False")) {
            json_set_str(b, item, "status", STR("False"));
            json_set(b, item, STR("lastTransitionTime"), api_time_json(b, now_us));
        }
        json_set_str(b, item, "reason", STR("PodFailed"));
        json_mut_remove(item, STR("message"));
    }
}

json_mut *api_status_terminate(struct json_build *b, const struct node_pod *pod,
                               const json_val *status, int64_t now_us)
{
    json_mut *out = json_is_object(status) ? json_copy(b, status) : json_new_object(b);
    end_containers(b, json_mut_get(out, STR("initContainerStatuses")), inits_begun(status));
    if (was_initialized(status))
        end_containers(b, json_mut_get(out, STR("containerStatuses")), SIZE_MAX);
    if (!api_phase_terminal(api_status_phase(status)) && !node_pod_is_static(pod)) {
        json_set_str(b, out, "phase", STR("Failed"));
        fail_conditions(b, json_mut_get(out, STR("conditions")), now_us);
    }
    return out;
}

/* --- what may follow, and what is new --- */

/* A container that has ended this way: may it be seen alive again? */
static bool may_live_again(const struct node_pod *pod, const struct node_container *container,
                           int64_t exit_code)
{
    uint8_t policy = node_pod_restart_policy(pod, container);
    if (container->init) /* it runs again in a new sandbox even if it had succeeded */
        return policy != RESTART_NEVER;
    return policy == RESTART_ALWAYS || (policy == RESTART_ON_FAILURE && exit_code != 0);
}

static bool list_may_follow(const struct node_pod *pod, const json_val *previous,
                            const json_val *next, struct err *why)
{
    json_each_item(previous, old) {
        struct str name = json_str(json_get(old, STR("name")));
        const struct node_container *container = node_pod_container(pod, name);
        const json_val *new = api_container_find(next, name);
        struct state_view before = api_state_read(json_get(old, STR("state")));
        struct state_view after = api_state_read(json_get(new, STR("state")));
        if (!container || !new || before.kind != STATE_TERMINATED ||
            after.kind == STATE_TERMINATED || may_live_again(pod, container, before.exit_code))
            continue;
        err_set(why, ERR_INVALID, "container %s has ended and may not be restarted",
                STR_SHOWN(name));
        return false;
    }
    return true;
}

bool api_status_may_follow(const struct node_pod *pod, const json_val *maybe_previous,
                           const json_val *next, struct err *why)
{
    static const char *const lists[] = { "initContainerStatuses", "containerStatuses" };
    for (size_t i = 0; i < KV_COUNT_OF(lists); i++) {
        struct str name = str_of(lists[i]);
        if (!list_may_follow(pod, json_get(maybe_previous, name), json_get(next, name), why))
            return false;
    }
    return true;
}

/* Every condition of ours in `a` is the same in `b`. */
static bool conditions_within(const json_val *a, const json_val *b)
{
    json_each_item(json_get(a, STR("conditions")), item) {
        struct str type = json_str(json_get(item, STR("type")));
        const json_val *other = api_condition_find(b, type);
        if (api_condition_is_ours(type) && (!other || !json_equal(item, other)))
            return false;
    }
    return true;
}

static bool members_within(const json_val *a, const json_val *b)
{
    json_each_member(a, key, value) {
        const json_val *other = json_get(b, json_key(key));
        if (!str_eqz(json_key(key), "conditions") && (!other || !json_equal(value, other)))
            return false;
    }
    return true;
}

bool api_status_same(const json_val *a, const json_val *b)
{
    return conditions_within(a, b) && conditions_within(b, a) && members_within(a, b) &&
           members_within(b, a);
}
