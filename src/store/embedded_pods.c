/* store/embedded_pods.c - what is special about pods: their spec, binding and eviction.
 *
 * An eviction is a deletion that asks first. Who asks is decided as the API server decides it:
 * pods that have not started, have ended or are going anyway may always go; a pod that is not
 * ready may go when its budget says so or has enough healthy ones without it; any other pod takes
 * one of the disruptions that its budget allows. Everything happens under one lock, so what the
 * server does with status.disruptedPods (remembering evictions that the disruption controller has
 * not seen) is not needed: the budget is right again before the next call.
 */
#include "store/embedded_impl.h"

#include "api/pod.h"
#include "api/policy.h"

static struct entry *pod_entry(struct embedded *e, struct str namespace_, struct str pod,
                               struct err *err)
{
    return entry_need(e, (struct object_ref){ &pod_kind, namespace_, pod }, err);
}

/* --- what may change in a spec --- */

static bool lists_contain(const json_val *list, const json_val *items)
{
    json_each_item(items, item) {
        bool found = false;
        json_each_item(list, other)
            found |= json_equal(item, other);
        if (!found)
            return false;
    }
    return true;
}

/* Containers that differ in nothing but their image. */
static bool only_image_differs(const json_val *old, const json_val *now)
{
    if (json_count(old) != json_count(now))
        return false;
    json_each_member(now, key, val) {
        struct str name = json_str(key);
        if (!str_eqz(name, "image") && !json_same(json_get(old, name), val))
            return false;
    }
    return true;
}

static bool only_images_differ(const json_val *old, const json_val *now)
{
    size_t ix = 0;

    if (json_count(old) != json_count(now))
        return false;
    json_each_item(now, container) {
        if (!only_image_differs(json_at(old, ix++), container))
            return false;
    }
    return true;
}

static bool members_contain(const json_val *object, const json_val *members)
{
    json_each_member(members, key, val) {
        if (!json_same(json_get(object, json_str(key)), val))
            return false;
    }
    return true;
}

/* A gated pod may become more demanding of its node: what it requires gets more conditions, what it
 * prefers is free. What it asks of other pods stays. */
static bool affinity_narrows(const json_val *old, const json_val *now)
{
    static const char required[] = "nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution";
    const json_val *was = json_get(json_path(old, required), STR("nodeSelectorTerms"));
    const json_val *is = json_get(json_path(now, required), STR("nodeSelectorTerms"));
    size_t ix = 0;

    if (!json_same(json_get(old, STR("podAffinity")), json_get(now, STR("podAffinity"))) ||
        !json_same(json_get(old, STR("podAntiAffinity")), json_get(now, STR("podAntiAffinity"))))
        return false;
    if (was && json_count(was) != json_count(is))
        return false;
    json_each_item(was, term) {
        const json_val *now_term = json_at(is, ix++);
        if (!lists_contain(json_get(now_term, STR("matchExpressions")),
                           json_get(term, STR("matchExpressions"))) ||
            !lists_contain(json_get(now_term, STR("matchFields")),
                           json_get(term, STR("matchFields"))))
            return false;
    }
    return true;
}

/* It may be set, and come sooner. */
static bool deadline_comes_sooner(const json_val *old, const json_val *now)
{
    int64_t was, is;
    return !json_i64(old, &was) || (json_i64(now, &is) && is <= was);
}

static bool may_become(struct str field, const json_val *old, const json_val *now, bool gated)
{
    if (str_eqz(field, "containers") || str_eqz(field, "initContainers"))
        return only_images_differ(old, now);
    if (str_eqz(field, "tolerations"))
        return lists_contain(now, old); /* they may be added */
    if (str_eqz(field, "schedulingGates"))
        return lists_contain(old, now); /* they may be removed */
    if (str_eqz(field, "nodeSelector"))
        return gated && members_contain(now, old);
    if (str_eqz(field, "affinity"))
        return gated && affinity_narrows(old, now);
    return str_eqz(field, "activeDeadlineSeconds") && deadline_comes_sooner(old, now);
}

int rule_pod_spec(const struct object *object, const json_val *old, const json_val *read,
                  struct err *err)
{
    const json_val *was = json_get(old, STR("spec")), *is = json_get(read, STR("spec"));
    bool gated = pod_is_gated(pod_of(object));
    struct str wrong = STR_NONE;

    json_each_member(is, key, val) {
        struct str name = json_str(key);
        const json_val *before = json_get(was, name);
        if (!json_same(before, val) && !may_become(name, before, val, gated))
            wrong = name;
    }
    json_each_member(was, key, val) {
        struct str name = json_str(key);
        if (!json_get(is, name) && !json_is_null(val) && !may_become(name, val, NULL, gated))
            wrong = name;
    }
    if (!wrong.p)
        return 0;
    return err_set(
        err, ERR_INVALID,
        "Pod \"%.*s\" is invalid: spec.%.*s: pod updates may not change fields other than "
        "container images, activeDeadlineSeconds, tolerations (only additions) and "
        "schedulingGates (only removals)",
        STR_ARG(object->meta.name), STR_ARG(wrong));
}

/* --- quality of service --- */

enum { QOS_CPU, QOS_MEMORY, QOS_RESOURCES };

struct qos_sums {
    struct quantity requests[QOS_RESOURCES], limits[QOS_RESOURCES];
    bool any;       /* something is requested or limited */
    bool unlimited; /* some container lacks a limit */
    bool too_large; /* to be added up */
};

static bool qos_add(struct qos_sums *sums, const struct resources *from, const char *name,
                    struct quantity *sum)
{
    for (uint32_t i = 0; i < from->count; i++) {
        if (!str_eqz(from->items[i].name, name) || quantity_is_zero(from->items[i].amount))
            continue;
        sums->any = true;
        sums->too_large |= quantity_add(*sum, from->items[i].amount, sum, NULL) < 0;
        return true;
    }
    return false;
}

static void qos_count(struct qos_sums *sums, const struct resource_needs *needs)
{
    static const char *const names[QOS_RESOURCES] = { "cpu", "memory" };

    for (size_t i = 0; i < QOS_RESOURCES; i++) {
        qos_add(sums, &needs->requests, names[i], &sums->requests[i]);
        if (!qos_add(sums, &needs->limits, names[i], &sums->limits[i]))
            sums->unlimited = true;
    }
}

const char *pod_qos_class(const struct pod_spec *spec)
{
    struct qos_sums sums = { 0 };

    if (spec->resources.requests.count > 0 || spec->resources.limits.count > 0) {
        qos_count(&sums, &spec->resources); /* what the pod says as a whole is all that counts */
    } else {
        for (uint32_t i = 0; i < spec->containers.count; i++)
            qos_count(&sums, &spec->containers.items[i].resources);
        for (uint32_t i = 0; i < spec->init_containers.count; i++)
            qos_count(&sums, &spec->init_containers.items[i].resources);
    }
    if (!sums.any)
        return "BestEffort";
    bool guaranteed = !sums.unlimited && !sums.too_large;
    for (size_t i = 0; i < QOS_RESOURCES; i++)
        guaranteed &= quantity_cmp(sums.requests[i], sums.limits[i]) == 0;
    return guaranteed ? "Guaranteed" : "Burstable";
}

/* --- binding --- */

int embedded_bind(struct embedded *e, struct str namespace_, struct str name, struct str node,
                  struct err *err)
{
    struct entry *entry = pod_entry(e, namespace_, name, err);
    struct edit edit;

    if (!entry)
        return -1;
    const struct pod *pod = pod_of(entry->object);
    if (node.len == 0)
        return err_set(err, ERR_INVALID, "pods/binding \"%.*s\": target.name: required",
                       STR_ARG(name));
    if (pod_is_terminating(pod))
        return err_set(err, ERR_CONFLICT, "pod %.*s is being deleted, cannot be assigned to a host",
                       STR_ARG(name));
    if (pod_is_scheduled(pod))
        return err_set(err, ERR_CONFLICT, "pod %.*s is already assigned to node \"%.*s\"",
                       STR_ARG(name), STR_ARG(pod->node_name));
    if (pod_is_gated(pod))
        return err_set(err, ERR_CONFLICT, "pod %.*s has non-empty .spec.schedulingGates",
                       STR_ARG(name));

    edit_begin(&edit, entry);
    json_set_str(&edit.b, json_mut_object(&edit.b, edit.root, STR("spec")), "nodeName", node);
    edit_set_condition(&edit, (struct condition_change){ .type = "PodScheduled", .status = "True" },
                       clock_wall_us(e->clock));
    edit_write(e, entry, &edit);
    return 0;
}

/* --- eviction --- */

static bool needs_no_budget(const struct pod *pod)
{
    return pod_is_terminal(pod) || pod_is_terminating(pod) || pod->status->phase == PHASE_PENDING ||
           pod->status->phase == PHASE_UNSET;
}

/* The budget that has the pod; NULL: none. More than one is an error. */
static int find_budget(struct embedded *e, const struct entry *pod, struct budget_state **out,
                       struct err *err)
{
    AUTO_BUF prefix = { 0 };

    *out = NULL;
    SORTED_PREFIX(&prefix, pod->namespace_);
    for (sorted_each(&e->budgets, buf_str(&prefix), it)) {
        struct budget_state *budget = it.item->value;
        if (!budget_has(budget, pod->object))
            continue;
        if (*out)
            return err_set(err, ERR_INTERNAL,
                           "This pod has more than one PodDisruptionBudget, which the eviction "
                           "subresource does not support.");
        *out = budget;
    }
    return 0;
}

static int ask_budget(const struct budget_state *budget, const struct pod *pod, struct err *err)
{
    const struct pdb *pdb = pdb_of(budget->entry->object);

    if (!pod_is_ready(pod) && (pdb->spec.unhealthy_policy == UNHEALTHY_ALWAYS_ALLOW ||
                               (pdb->status.current_healthy >= pdb->status.desired_healthy &&
                                pdb->status.desired_healthy > 0)))
        return 0;
    if (pdb->status.disruptions_allowed > 0)
        return 0;
    return err_set(err, ERR_THROTTLED,
                   "Cannot evict pod as it would violate the pod's disruption budget. The "
                   "disruption budget %.*s needs %lld healthy pods and has %lld currently",
                   STR_ARG(budget->entry->name), (long long)pdb->status.desired_healthy,
                   (long long)pdb->status.current_healthy);
}

static void mark_disrupted(struct embedded *e, struct entry *entry)
{
    struct edit edit;

    edit_begin(&edit, entry);
    edit_set_condition(&edit,
                       (struct condition_change){
                           .type = "DisruptionTarget",
                           .status = "True",
                           .reason = "EvictionByEvictionAPI",
                           .message = "Eviction API: evicting",
                       },
                       clock_wall_us(e->clock));
    edit_write(e, entry, &edit);
}

int embedded_evict(struct embedded *e, struct str namespace_, struct str name,
                   const struct delete_options *opts, struct err *err)
{
    struct delete_options remove = *opts;
    struct entry *entry = pod_entry(e, namespace_, name, err);
    struct budget_state *budget;

    if (!entry || delete_preconditions(entry, opts, err) < 0)
        return -1;
    if (!needs_no_budget(pod_of(entry->object))) {
        if (find_budget(e, entry, &budget, err) < 0 ||
            (budget && ask_budget(budget, pod_of(entry->object), err) < 0))
            return -1;
    }
    mark_disrupted(e, entry);
    remove.resource_version = 0; /* met above, before we changed it ourselves */
    return entry_remove(e, entry, &remove, err);
}
