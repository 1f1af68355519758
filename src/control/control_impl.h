/* control/control_impl.h - what the reconcilers share. For the files of this room.
 *
 * A reconciler is `struct outcome reconcile(struct control *c, struct str key)`: it reads what is
 * (cluster_get), does the next thing that is missing, and returns when to come again. It must be
 * right whenever it is called and however often; it may be called from several threads, but never
 * twice at once for one key. Errors are returned to one place, control_failed.
 */
#pragma once

#include "api/conditions.h"
#include "api/node.h"
#include "api/nodeclaim.h"
#include "api/nodepool.h"
#include "api/pod.h"
#include "base/queue.h"
#include "cloud/instance_cache.h"
#include "control/cluster.h"
#include "control/control.h"
#include "control/control_metrics.h"
#include "control/recorder.h"

#include <stdatomic.h>

struct control;

/* Told of each change of a kind; adds the keys that should be reconciled. Runs on the thread that
 * pumps: reads only. */
typedef void trigger_fn(struct control *c, struct queue *q, const struct object *maybe_old,
                        const struct object *maybe_new);

#define TRIGGERS_MAX 6
struct controller {
    const char *name; /* upstream's: "nodeclaim.lifecycle" */
    struct outcome (*reconcile)(struct control *c, struct str key);
    struct {
        const struct kind *kind; /* NULL: the end */
        trigger_fn *fn;
    } triggers[TRIGGERS_MAX];
    bool singleton; /* has one key, "", which is there from the start */
    bool (*enabled)(const struct control_settings *settings); /* NULL: always */
    uint32_t threads;                                         /* in a program; 0: 1 */
    int64_t backoff_min_ns, backoff_max_ns;                   /* 0: the queue's defaults */
};

/* In the order in which a simulation without an order asks them (controllers.c). */
extern const struct controller *const controllers[];
extern const uint32_t controller_count;

struct health;           /* health.c */
struct disruption_marks; /* disruption_marks.c */
struct provisioner;      /* provisioner.c */
struct pod_latency;      /* pod_latency.c */
struct terminations;     /* eviction.c */

/* overlay_status.c: of the accepted overlays that instance types are overlaid with. */
struct overlay_progress {
    atomic_bool published;            /* once since the start */
    uint64_t fingerprint, generation; /* of its one worker */
};
/* May prices be relied on? Until overlays have been looked at once after a start, a plan would be
 * made with what they correct; then its caller waits a moment. Always true without the gate. */
bool overlays_published(const struct control *c);

struct control {
    struct control_options options;
    const struct clock *clock;
    struct log *log; /* may be NULL, which is silent */
    struct cluster *cluster;
    const struct cloud_provider *provider; /* decorated: the cache is in front */
    struct instance_cache *cache;
    struct metered *metered;          /* control/metered.h: between the two */
    struct metrics *metrics_registry; /* never NULL */
    struct metrics *own_metrics;
    struct control_metrics metrics;
    struct recorder *recorder;
    struct health *health;
    struct provisioner *provisioner;
    struct pod_latency *pod_latency;
    struct object_gauges *object_gauges;         /* metrics_collect.c */
    struct condition_metrics *condition_metrics; /* metrics_conditions.c */
    struct terminations *terminations;
    struct disruption_marks *marks;
    struct overlay_progress overlays;
    struct controller_slot *slots; /* control.c */
    uint32_t slot_count;
    atomic_uint_fast64_t reconcile_count, failure_count;
    bool started, stopped; /* of who owns it */
};

/* With these controllers only, for tests; control_new has all of them. */
struct control *control_new_with(struct control_options options,
                                 const struct controller *const *list, uint32_t count);

static inline int64_t control_now_us(const struct control *c)
{
    return clock_wall_us(c->clock);
}
static inline int64_t control_now_ns(const struct control *c)
{
    return clock_mono_ns(c->clock);
}

/* Ask a controller to look at a key. */
void control_enqueue(struct control *c, const struct controller *who, struct str key);
/* Triggers that many use: the object's own name (cluster-scoped kinds), on any change. */
trigger_fn trigger_own_name;

/* --- writing: through the port, and remembered (cluster_assume) --- */

int control_create(struct control *c, const struct kind *kind, struct str namespace_,
                   const json_mut *object, const struct object **maybe_out, struct err *err);
/* A merge patch. `locked`: only if the object is still as `of`. ERR_NOT_FOUND and ERR_CONFLICT come
 * back as errors; control_failed knows what they mean. */
int control_patch(struct control *c, const struct object *of, bool status, bool locked,
                  const json_mut *patch, const struct object **maybe_out, struct err *err);
/* status.conditions, locked; nothing is written if nothing changed (and *maybe_out is `of`). */
int control_patch_conditions(struct control *c, const struct object *of,
                             const struct condition_set *set, const struct object **maybe_out,
                             struct err *err);
/* Only that very object (its uid). One that is gone or going already is 0. What is left of it, if it has
 * finalizers, is seen as deleted from now on. */
int control_remove(struct control *c, const struct object *of, struct err *err);
/* Add or take away a finalizer, locked. 0 if there is nothing to do. */
int control_set_finalizer(struct control *c, const struct object *of, struct str finalizer,
                          bool present, const struct object **maybe_out, struct err *err);

/* What an error means for the key: it is tried again, with back-off. How loudly that is told depends on
 * whether the world has only moved (a conflict, something is gone: it happens), or there is trouble. */
struct outcome control_failed(struct control *c, const struct controller *who, struct str key,
                              const struct err *err);
/* The earlier of two outcomes: done is never, a retry is now. */
struct outcome outcome_sooner(struct outcome a, struct outcome b);

/* --- questions that many ask --- */

/* Is the claim's (or pool's) node class one of the provider's? All else is ignored. */
bool control_manages(const struct control *c, const struct node_class_ref *ref);
bool claim_condition_true(const struct nodeclaim *claim, struct str type);
const struct condition *claim_condition(const struct nodeclaim *claim, struct str type);
struct condition_set *claim_conditions(const struct control *c, const struct nodeclaim *claim,
                                       struct arena *arena);
struct condition_set *pool_conditions(const struct control *c, const struct nodepool *pool,
                                      struct arena *arena);
struct str claim_pool_name(const struct nodeclaim *claim); /* "" without one */
/* The pool that owns the claim: of that name, and that uid. NULL: none. A reference. */
const struct object *claim_pool(struct control *c, const struct nodeclaim *claim);
/* The Node of a claim by providerID: a reference, or NULL: none. `*count`: how many there are. */
const struct object *claim_node(struct control *c, const struct nodeclaim *claim, uint32_t *count);
/* The claim of a Node by providerID, or NULL; a reference. */
const struct object *node_claim(struct control *c, const struct node *node);
bool object_has_finalizer(const struct object *object, struct str finalizer);
bool object_is_owned_by(const struct object *object, const struct object *owner); /* its uid */
/* The label by which claims and Nodes name their node class: "GROUP/KIND" in lower case. */
struct str class_label(struct arena *arena, struct str group, struct str kind);
/* A duration from an annotation of the pool; `dflt_ns` if it is absent or makes no sense. */
int64_t pool_duration_ns(const struct nodepool *pool, const char *annotation, int64_t dflt_ns);

#define ANNOTATION_LAUNCH_TIMEOUT "karve.io/launch-timeout"
#define ANNOTATION_REGISTRATION_TIMEOUT "karve.io/registration-timeout"
#define ANNOTATION_INITIALIZATION_TIMEOUT "karve.io/initialization-timeout"
#define ANNOTATION_HEALTH_POLICY "karve.io/registration-health-policy"
#define LAUNCH_TIMEOUT_NS ((int64_t)5 * 60 * 1000000000)
#define REGISTRATION_TIMEOUT_NS ((int64_t)15 * 60 * 1000000000)
