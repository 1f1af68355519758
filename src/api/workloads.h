/* api/workloads.h - the kinds that make pods: Deployment, ReplicaSet, StatefulSet, DaemonSet, Job
 * and CronJob.
 *
 * Templates and selectors are shared: a Deployment keeps them once through all its status updates.
 * Both are required by the API but may be NULL in an object that was decoded without being checked.
 */
#pragma once

#include "api/pod.h"
#include "api/storage.h"

/* --- Deployment --- */

enum deployment_strategy_type { STRATEGY_UNSET, STRATEGY_RECREATE, STRATEGY_ROLLING };

struct rolling_update {
    struct int_or_str max_unavailable, max_surge;
};

struct deployment_strategy {
    uint8_t type; /* enum deployment_strategy_type; unset is RollingUpdate */
    const struct rolling_update *maybe_rolling;
};

struct deployment_spec {
    struct maybe_int replicas; /* unset is 1 */
    const struct label_selector *maybe_selector;
    const struct pod_template *maybe_template;
    struct deployment_strategy strategy;
    int64_t min_ready_s;
    bool paused;
};

struct deployment_status {
    int64_t observed_generation;
    int64_t replicas, updated_replicas, ready_replicas, available_replicas, unavailable_replicas;
    LIST(struct condition) conditions;
};

struct deployment {
    struct object object;
    struct deployment_spec spec;
    struct deployment_status status;
};

extern const struct kind deployment_kind;

static inline const struct deployment *deployment_of(const struct object *object)
{
    KV_ASSERT(object->kind == &deployment_kind);
    return (const struct deployment *)object;
}

/* --- ReplicaSet --- */

struct replica_set_spec {
    struct maybe_int replicas; /* unset is 1 */
    int64_t min_ready_s;
    const struct label_selector *maybe_selector;
    const struct pod_template *maybe_template;
};

struct replica_set_status {
    int64_t replicas, ready_replicas, available_replicas;
    int64_t observed_generation;
    struct str replicas_text; /* for field selectors */
};

struct replica_set {
    struct object object;
    struct replica_set_spec spec;
    struct replica_set_status status;
};

extern const struct kind replica_set_kind;

static inline const struct replica_set *replica_set_of(const struct object *object)
{
    KV_ASSERT(object->kind == &replica_set_kind);
    return (const struct replica_set *)object;
}

/* --- StatefulSet --- */

enum pod_management { POD_MANAGEMENT_UNSET, POD_MANAGEMENT_ORDERED, POD_MANAGEMENT_PARALLEL };
enum update_type { UPDATE_UNSET, UPDATE_ROLLING, UPDATE_ON_DELETE };

struct stateful_set_ordinals {
    int64_t start; /* number of the first replica */
};

struct stateful_set_spec {
    struct maybe_int replicas; /* unset is 1 */
    const struct label_selector *maybe_selector;
    const struct pod_template *maybe_template;
    LIST(struct pvc_template) claim_templates;
    struct str service_name;
    uint8_t pod_management; /* enum pod_management; unset is OrderedReady */
    int64_t min_ready_s;
    struct stateful_set_ordinals ordinals;
};

struct stateful_set_status {
    int64_t observed_generation;
    int64_t replicas, ready_replicas, current_replicas, updated_replicas, available_replicas;
};

struct stateful_set {
    struct object object;
    struct stateful_set_spec spec;
    struct stateful_set_status status;
};

extern const struct kind stateful_set_kind;

static inline const struct stateful_set *stateful_set_of(const struct object *object)
{
    KV_ASSERT(object->kind == &stateful_set_kind);
    return (const struct stateful_set *)object;
}

/* --- DaemonSet --- */

struct daemon_set_strategy {
    uint8_t type; /* enum update_type; unset is RollingUpdate */
    const struct rolling_update *maybe_rolling;
};

struct daemon_set_spec {
    const struct label_selector *maybe_selector;
    const struct pod_template *maybe_template;
    struct daemon_set_strategy strategy;
    int64_t min_ready_s;
};

struct daemon_set_status {
    int64_t scheduled, misscheduled, desired, ready, updated, available, unavailable;
    int64_t observed_generation;
};

struct daemon_set {
    struct object object;
    struct daemon_set_spec spec;
    struct daemon_set_status status;
};

extern const struct kind daemon_set_kind;

static inline const struct daemon_set *daemon_set_of(const struct object *object)
{
    KV_ASSERT(object->kind == &daemon_set_kind);
    return (const struct daemon_set *)object;
}

/* --- Job, CronJob --- */

enum completion_mode { COMPLETION_UNSET, COMPLETION_NON_INDEXED, COMPLETION_INDEXED };

struct job_spec {
    struct maybe_int parallelism; /* unset is 1 */
    struct maybe_int
        completions; /* unset with parallelism set: a work queue, any success ends it */
    struct maybe_int active_deadline_s;
    struct maybe_int backoff_limit, backoff_limit_per_index, max_failed_indexes;
    const struct label_selector *maybe_selector; /* made by the API server */
    const struct pod_template *maybe_template;
    struct maybe_int ttl_after_finished_s;
    uint8_t completion_mode; /* enum completion_mode; unset is NonIndexed */
    bool manual_selector, suspend;
};

struct job_status {
    LIST(struct condition) conditions;
    int64_t start_us, completion_us;
    int64_t active, succeeded, failed, terminating, ready;
    struct str succeeded_text; /* for field selectors */
};

struct job {
    struct object object;
    struct job_spec spec;
    struct job_status status;
};

extern const struct kind job_kind;

static inline const struct job *job_of(const struct object *object)
{
    KV_ASSERT(object->kind == &job_kind);
    return (const struct job *)object;
}

bool job_is_finished(const struct job *job); /* Complete or Failed */

enum concurrency_policy {
    CONCURRENCY_UNSET,
    CONCURRENCY_ALLOW,
    CONCURRENCY_FORBID,
    CONCURRENCY_REPLACE,
};

struct job_template {
    struct meta_template meta;
    struct job_spec spec;
};

struct cron_job_spec {
    struct str schedule;
    struct str time_zone; /* absent: of the controller manager, usually UTC */
    struct maybe_int starting_deadline_s;
    uint8_t concurrency; /* enum concurrency_policy; unset is Allow */
    bool suspend;
    struct job_template job_template;
};

struct cron_job_status {
    int64_t last_schedule_us, last_success_us;
};

struct cron_job {
    struct object object;
    struct cron_job_spec spec;
    struct cron_job_status status;
};

extern const struct kind cron_job_kind;

static inline const struct cron_job *cron_job_of(const struct object *object)
{
    KV_ASSERT(object->kind == &cron_job_kind);
    return (const struct cron_job *)object;
}

/* --- all of them --- */

/* What matters to somebody who wants the pods and not the controller. */
struct workload {
    const struct pod_template *maybe_template;
    const struct label_selector *maybe_selector;
    int64_t replicas; /* how many pods it wants at once, now */
    int64_t first;    /* number of the first replica, where they are numbered */
    bool per_node;    /* a DaemonSet: one on each node that fits; replicas is 0 */
};

/* False: not a kind that makes pods. A suspended or finished Job, and a CronJob, want none. */
bool workload_of(const struct object *object, struct workload *out);
