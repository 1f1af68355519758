/* Settling a decoded pod, and the questions that callers ask of one.
 *
 * Settling moves out of the spec and the status what differs from pod to pod, so that the rest is
 * equal for all pods of a workload and is kept once:
 *
 *     spec.nodeName, status.podIPs, status.startTime    to the pod itself
 *     spec.affinity    to a block of its own: a DaemonSet pins each pod to its node with it
 *     spec.volumes     likewise: a StatefulSet's pods have claims of their own. Volumes that bind
 *                      to no place are dropped; every pod's token volume has a random name. What
 *                      image volumes refer to stays with the spec, being equal as its images are
 *     times of conditions and containers    packed into pod.moments
 */
#include "api/pod.h"

/* --- settling --- */

static bool volume_matters(const struct volume *v)
{
    return v->claim.name.p || v->ephemeral.maybe_template || v->csi.id.p || v->aws_disk.id.p ||
           v->gce_disk.id.p || v->azure_disk.id.p || v->cinder_disk.id.p;
}

static void settle_volume_images(struct pod_spec *spec, struct arena *arena)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < spec->volumes.count; i++)
        count += spec->volumes.items[i].image.id.len > 0;
    if (count == 0)
        return;
    struct str *images = arena_array(arena, struct str, count);
    spec->volume_images.items = images;
    for (uint32_t i = 0; i < spec->volumes.count; i++) {
        if (spec->volumes.items[i].image.id.len > 0)
            images[spec->volume_images.count++] = spec->volumes.items[i].image.id;
    }
}

static void settle_volumes(struct pod *pod, struct pod_spec *spec)
{
    struct volume *volumes = (struct volume *)spec->volumes.items; /* the view's: ours to change */
    uint32_t kept = 0;
    for (uint32_t i = 0; i < spec->volumes.count; i++) {
        if (volume_matters(&volumes[i]))
            volumes[kept++] = volumes[i];
    }
    pod->volumes.items = kept ? volumes : NULL;
    pod->volumes.count = kept;
    spec->volumes.items = NULL;
    spec->volumes.count = 0;
}

/* One of the three is there; what it says becomes the status's own. */
static void settle_container(struct container_status *cs)
{
    const struct container_state_detail *detail = NULL;
    if ((detail = cs->states.maybe_terminated))
        cs->state = STATE_TERMINATED;
    else if ((detail = cs->states.maybe_running))
        cs->state = STATE_RUNNING;
    else if ((detail = cs->states.maybe_waiting))
        cs->state = STATE_WAITING;
    if (detail)
        cs->detail = *detail;
    cs->states = (struct container_states){ 0 };
}

/* Times are packed as seconds in four bytes: one per condition, then start and finish of each init
 * container and each container. Kubernetes keeps no more than seconds; 2106 is far away. */
struct moment_writer {
    char *at;
    bool any;
};

static void moment_put(struct moment_writer *w, int64_t *us)
{
    int64_t seconds = *us / 1000000;
    uint32_t packed = seconds < 0 ? 0 : seconds > UINT32_MAX ? UINT32_MAX : (uint32_t)seconds;
    memcpy(w->at, &packed, sizeof packed);
    w->at += sizeof packed;
    w->any |= packed != 0;
    *us = 0;
}

static void settle_containers(struct moment_writer *w, const struct container_status *statuses,
                              uint32_t count)
{
    struct container_status *cs = (struct container_status *)statuses;
    for (uint32_t i = 0; i < count; i++) {
        settle_container(&cs[i]);
        moment_put(w, &cs[i].detail.started_us);
        moment_put(w, &cs[i].detail.finished_us);
    }
}

static void settle_moments(struct pod *pod, struct pod_status *status, struct arena *arena)
{
    size_t containers = (size_t)status->init_containers.count + status->containers.count;
    size_t bytes = (status->conditions.count + 2 * containers) * sizeof(uint32_t);
    char *packed = arena_alloc(arena, bytes);
    struct moment_writer w = { .at = packed };

    struct pod_condition *conditions = (struct pod_condition *)status->conditions.items;
    for (uint32_t i = 0; i < status->conditions.count; i++)
        moment_put(&w, &conditions[i].transition_us);
    settle_containers(&w, status->init_containers.items, status->init_containers.count);
    settle_containers(&w, status->containers.items, status->containers.count);
    if (w.any)
        pod->moments = (struct str){ packed, bytes };
}

static void settle(struct object *view, struct arena *arena)
{
    struct pod *pod = (struct pod *)view;
    if (!pod->spec)
        pod->spec = arena_new(arena, struct pod_spec);
    if (!pod->status)
        pod->status = arena_new(arena, struct pod_status);
    struct pod_spec *spec = (struct pod_spec *)pod->spec;
    struct pod_status *status = (struct pod_status *)pod->status;

    pod->node_name = spec->node_name;
    spec->node_name = STR_NONE;
    pod->maybe_affinity = spec->affinity;
    spec->affinity = NULL;
    settle_volume_images(spec, arena);
    settle_volumes(pod, spec);

    pod->start_us = status->start_us;
    status->start_us = 0;
    pod->ips.items = status->ips.items;
    pod->ips.count = status->ips.count;
    status->ips.items = NULL;
    status->ips.count = 0;
    settle_moments(pod, status, arena);
}

/* --- times --- */

static int64_t moment_us(const struct pod *pod, size_t ix)
{
    uint32_t seconds = 0;
    if ((ix + 1) * sizeof seconds <= pod->moments.len)
        memcpy(&seconds, pod->moments.p + ix * sizeof seconds, sizeof seconds);
    return (int64_t)seconds * 1000000;
}

int64_t pod_condition_us(const struct pod *pod, const struct pod_condition *condition)
{
    return moment_us(pod, (size_t)(condition - pod->status->conditions.items));
}

struct container_times pod_container_times(const struct pod *pod,
                                           const struct container_status *status)
{
    const struct pod_status *s = pod->status;
    size_t ix;
    if (status >= s->init_containers.items &&
        status < s->init_containers.items + s->init_containers.count)
        ix = (size_t)(status - s->init_containers.items);
    else
        ix = s->init_containers.count + (size_t)(status - s->containers.items);
    size_t at = s->conditions.count + 2 * ix;
    return (struct container_times){ moment_us(pod, at), moment_us(pod, at + 1) };
}

/* --- questions --- */

const struct pod_condition *pod_condition(const struct pod *pod, struct str type)
{
    for (uint32_t i = 0; i < pod->status->conditions.count; i++) {
        if (str_eq(pod->status->conditions.items[i].type, type))
            return &pod->status->conditions.items[i];
    }
    return NULL;
}

bool pod_is_terminal(const struct pod *pod)
{
    return pod->status->phase == PHASE_SUCCEEDED || pod->status->phase == PHASE_FAILED;
}

bool pod_is_terminating(const struct pod *pod)
{
    return pod->object.meta.deleted_us != 0;
}

bool pod_is_ready(const struct pod *pod)
{
    const struct pod_condition *ready = pod_condition(pod, STR("Ready"));
    return ready && ready->status == CONDITION_TRUE;
}

bool pod_is_scheduled(const struct pod *pod)
{
    return pod->node_name.len > 0;
}

bool pod_is_gated(const struct pod *pod)
{
    return pod->spec->scheduling_gates.count > 0;
}

bool pod_is_mirror(const struct pod *pod)
{
    return str_map_get(&pod->object.meta.annotations, STR("kubernetes.io/config.mirror")).p != NULL;
}

bool pod_is_critical(const struct pod *pod)
{
    struct str name = pod->spec->priority_class_name;
    return str_eq(name, STR("system-cluster-critical")) ||
           str_eq(name, STR("system-node-critical"));
}

int64_t pod_host_port(const struct pod_spec *spec, const struct container_port *port)
{
    if (port->host_port == 0 && spec->host_network)
        return port->container_port;
    return port->host_port;
}

struct str pod_volume_claim(const struct pod *pod, const struct volume *volume, struct arena *arena)
{
    if (volume->claim.name.p)
        return volume->claim.name;
    if (volume->ephemeral.maybe_template)
        return arena_strf(arena, "%.*s-%.*s", STR_ARG(pod->object.meta.name),
                          STR_ARG(volume->name));
    return STR_NONE;
}

/* --- the kind --- */

static void check(const struct object *object, const json_val *root, struct report *report)
{
    struct path spec = { .name = STR("spec") };
    pod_spec_check(pod_of(object)->spec, json_get(root, STR("spec")), NULL, &spec, report);
}

static void complete(struct json_build *b, json_mut *root)
{
    json_mut *spec = json_mut_get(root, STR("spec"));
    if (spec)
        pod_spec_complete(b, spec);
}

static struct str or_empty(struct str s)
{
    return s.p ? s : STR("");
}

/* The field selectors that the API server has for pods. */
static struct str field(const struct object *object, struct str path)
{
    static const char *const phases[] = {
        "", "Pending", "Running", "Succeeded", "Failed", "Unknown"
    };
    static const char *const restarts[] = { "Always", "Always", "OnFailure", "Never" };
    const struct pod *pod = pod_of(object);

    if (str_eq(path, STR("spec.nodeName")))
        return or_empty(pod->node_name);
    if (str_eq(path, STR("spec.restartPolicy")))
        return str_of(restarts[pod->spec->restart_policy]);
    if (str_eq(path, STR("spec.schedulerName")))
        return or_empty(pod->spec->scheduler_name);
    if (str_eq(path, STR("spec.serviceAccountName")))
        return or_empty(pod->spec->service_account_name);
    if (str_eq(path, STR("spec.hostNetwork")))
        return pod->spec->host_network ? STR("true") : STR("false");
    if (str_eq(path, STR("status.phase")))
        return str_of(phases[pod->status->phase]);
    if (str_eq(path, STR("status.podIP")))
        return pod->ips.count ? or_empty(pod->ips.items[0].ip) : STR("");
    if (str_eq(path, STR("status.nominatedNodeName")))
        return or_empty(pod->status->nominated_node);
    return STR_NONE;
}

const struct kind pod_kind = {
    .group = "",
    .version = "v1",
    .name = "Pod",
    .plural = "pods",
    .singular = "pod",
    .namespaced = true,
    .has_status = true,
    .schema = &pod_schema,
    .doc = "Containers that run together on one node.",
    .settle = settle,
    .complete = complete,
    .check = check,
    .field = field,
};
