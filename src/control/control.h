/* control/control.h - the control plane: every reconciler of one process, on three ports.
 *
 *     store  <-->  informers  -->  queues  -->  reconcilers  -->  store, cloud provider
 *
 * All state that matters is in the store (and in the cloud): what is kept in memory is found there
 * again, or is a cache. So a control plane may be freed at any moment and made anew, and goes on.
 *
 * Two ways to run it. A simulation, on one thread, calls control_step until it returns false and then
 * moves the clock to control_next_due: everything that happens is a function of the store, the
 * provider, the clock and the seeds. A program calls control_start: one thread pumps the informers,
 * each controller has threads of its own.
 */
#pragma once

#include "base/log.h"
#include "base/metrics.h"
#include "base/rng.h"
#include "cloud/provider.h"
#include "control/health_policy.h"
#include "sched/plan.h"
#include "store/store.h"

struct compat_service;

/* What users may choose. The names of flags are in control/settings.c. */
struct control_settings {
    int64_t batch_idle_ns, batch_max_ns;
    enum preference_policy preferences;
    enum min_values_policy min_values;
    struct health_settings health; /* the default of pools that do not say */
    int64_t
        registration_cooldown_ns; /* first wait of a pool whose nodes do not join; 0: no cooldown */
    bool node_repair;             /* feature gates */
    bool node_overlays;
    uint64_t plan_effort; /* see struct plan_options */
    uint32_t threads_max; /* of one controller, in a program */
    bool dry_run;         /* what is written will not be there at the next look */
};
extern const struct control_settings control_settings_default;

struct control_options {
    const struct store *store;             /* all of these outlive the control plane */
    const struct cloud_provider *provider; /* its instance types are cached here */
    const struct clock *clock;
    /* Whether nodes can run the pods' images is asked of it; it is told of pods and nodes. NULL: images are not
     * looked at. control_images_changed when its answers have changed. */
    struct compat_service *maybe_images;
    struct metrics *maybe_metrics;
    struct log *maybe_log;
    uint64_t seed; /* of back-offs and of ties */
    struct control_settings settings;
};

struct control;
struct control *control_new(struct control_options options);
void control_free(struct control *c); /* stops it first; NULL is fine */
KV_AUTO_TYPE(control, control_free)

/* --- in a simulation --- */

/* Take in what happened, then reconcile one key. Of several controllers with something to do, `order`
 * decides; NULL: the first. False: there was nothing to do. */
bool control_step(struct control *c, struct rng *maybe_order);
/* When (mono_ns) there will be something to do although nothing changes; INT64_MAX: never. What is
 * delayed on its way here counts where the store knows (embedded_event_due_ns): ask it as well. */
int64_t control_next_due(struct control *c);
/* Have everything reconciled once more, as after a restart: nothing should change. */
void control_resync(struct control *c);

/* --- in a program --- */

int control_start(struct control *c, struct err *err); /* once */
/* For good: what is running is finished, nothing else is begun. Outsiders may still ask. */
void control_stop(struct control *c);
bool control_synced(struct control *c); /* it has seen the whole store once */
void control_images_changed(struct control *c);

/* --- seen from outside --- */

/* Is the NodeClaim or Node of that name promised to pods that have not reached it yet? */
bool control_is_nominated(struct control *c, struct str name);

struct control_stats {
    uint64_t reconciles, failures, passes, claims_created;
    double pass_seconds_max; /* of provisioning, by the clock */
};
struct control_stats control_stats(struct control *c);
struct instance_cache;
struct instance_cache *control_instance_cache(struct control *c);
