/* api/policy.h - the small kinds around the pods: who may be disrupted (PodDisruptionBudget), who
 * comes first (PriorityClass), where things live (Namespace), who leads (Lease), what happened
 * (Event), and which pods belong together (Service). */
#pragma once

#include "api/builtin.h"
#include "api/pod.h"

/* --- PodDisruptionBudget --- */

enum unhealthy_policy { UNHEALTHY_UNSET, UNHEALTHY_IF_HEALTHY_BUDGET, UNHEALTHY_ALWAYS_ALLOW };

struct pdb_spec {
    struct int_or_str min_available; /* at most one of the two is set */
    struct int_or_str max_unavailable;
    const struct label_selector *maybe_selector; /* NULL selects nothing, empty the namespace */
    uint8_t unhealthy_policy; /* enum unhealthy_policy; unset is IfHealthyBudget */
};

struct pdb_status {
    int64_t observed_generation;
    struct str_map disrupted_pods; /* name to time: evicted, their deletion not yet seen */
    int64_t disruptions_allowed, current_healthy, desired_healthy, expected_pods;
    LIST(struct condition) conditions;
};

struct pdb {
    struct object object;
    struct pdb_spec spec;
    struct pdb_status status;
};

extern const struct kind pdb_kind;

static inline const struct pdb *pdb_of(const struct object *object)
{
    KV_ASSERT(object->kind == &pdb_kind);
    return (const struct pdb *)object;
}

/* How many of `expected_pods` must stay healthy. False: neither field is set, and the budget
 * allows no disruption at all. */
bool pdb_desired_healthy(const struct pdb_spec *spec, int64_t expected_pods, int64_t *out);

/* --- PriorityClass --- */

#define PRIORITY_USER_MAX 1000000000 /* what is above belongs to the system */

struct priority_class {
    struct object object;
    int64_t value;
    bool global_default;
    uint8_t preemption; /* enum preemption_policy; unset is PreemptLowerPriority */
};

extern const struct kind priority_class_kind;

static inline const struct priority_class *priority_class_of(const struct object *object)
{
    KV_ASSERT(object->kind == &priority_class_kind);
    return (const struct priority_class *)object;
}

/* --- Namespace --- */

enum namespace_phase { NAMESPACE_UNSET, NAMESPACE_ACTIVE, NAMESPACE_TERMINATING };

struct namespace_spec {
    struct str_list finalizers;
};

struct namespace_status {
    uint8_t phase; /* enum namespace_phase */
};

struct namespace_object {
    struct object object;
    struct namespace_spec spec;
    struct namespace_status status;
};

extern const struct kind namespace_kind;

static inline const struct namespace_object *namespace_of(const struct object *object)
{
    KV_ASSERT(object->kind == &namespace_kind);
    return (const struct namespace_object *)object;
}

/* --- Lease --- */

struct lease_spec {
    struct str holder_identity; /* "" or absent: free */
    struct maybe_int duration_s;
    int64_t acquire_us, renew_us;
    struct maybe_int transitions;
};

struct lease {
    struct object object;
    struct lease_spec spec;
};

extern const struct kind lease_kind;

static inline const struct lease *lease_of(const struct object *object)
{
    KV_ASSERT(object->kind == &lease_kind);
    return (const struct lease *)object;
}

/* --- Event --- */

struct event_source {
    struct str component, host;
};

struct event_series {
    int64_t count;
    int64_t last_us;
};

struct event {
    struct object object;
    struct object_reference involved;
    struct str reason, message;
    struct event_source source;
    int64_t first_us, last_us; /* of the older form, which counts repetitions */
    int64_t count;
    struct str type;  /* Normal, Warning */
    int64_t event_us; /* set: the newer form, which has a series */
    const struct event_series *maybe_series;
    struct str action;
    struct str reporting_component, reporting_instance;
};

extern const struct kind event_kind;

static inline const struct event *event_of(const struct object *object)
{
    KV_ASSERT(object->kind == &event_kind);
    return (const struct event *)object;
}

int64_t event_last_us(const struct event *event); /* when it last happened, in either form */

/* --- Service --- */

struct service_spec {
    struct str_map selector; /* empty: it selects no pods */
    struct str cluster_ip;
};

struct service {
    struct object object;
    struct service_spec spec;
};

extern const struct kind service_kind;

static inline const struct service *service_of(const struct object *object)
{
    KV_ASSERT(object->kind == &service_kind);
    return (const struct service *)object;
}
