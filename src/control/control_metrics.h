/* control/control_metrics.h - the numbers of the control plane, under upstream's names.
 *
 * One family each, made at the start; `metric_count(c->metrics.x, STR("a"), ...)` adds one to a
 * series. Gauges that describe objects are worked out when they are asked for (metrics_collect.c),
 * so they cost nothing in between.
 */
#pragma once

#include "base/metrics.h"

struct control;

struct control_metrics {
    /* NodeClaims */
    struct metric_family *nodeclaims_created;    /* reason, nodepool, min_values_relaxed */
    struct metric_family *nodeclaims_terminated; /* nodepool, capacity_type, zone */
    /* reason, nodepool, capacity_type, consolidation_policy, termination_mode: claim_count_disrupted */
    struct metric_family *nodeclaims_disrupted;
    /* condition, nodepool, capacity_type, image_id */
    struct metric_family *nodeclaims_unhealthy_disrupted;
    struct metric_family *instance_termination_duration;  /* nodepool; histogram */
    struct metric_family *nodeclaim_termination_duration; /* nodepool; histogram */
    /* Nodes */
    struct metric_family *nodes_created, *nodes_terminated; /* nodepool, zone */
    struct metric_family *nodes_drained;                    /* nodepool */
    struct metric_family *node_termination_duration;        /* nodepool; summary */
    struct metric_family *node_lifetime_duration;           /* nodepool; histogram */
    /* Pods */
    struct metric_family *pods_drained;              /* reason */
    struct metric_family *pods_evictions;            /* code */
    struct metric_family *pods_disruption_initiated; /* as nodeclaims_disrupted */
    /* Provisioning */
    struct metric_family *scheduling_duration;   /* controller; histogram */
    struct metric_family *scheduler_queue_depth; /* controller, scheduling_id */
    struct metric_family *unschedulable_pods;    /* controller */
    struct metric_family *ignored_pods;
    struct metric_family *pending_by_zone; /* controller, zone */
    /* The cloud */
    struct metric_family *cloud_duration; /* controller, method, provider; histogram */
    struct metric_family *cloud_errors;   /* controller, method, provider, error */
    /* Registration health: ours */
    struct metric_family *registration_healthy;  /* nodepool, status: 1 for the current one */
    struct metric_family *registrations;         /* nodepool */
    struct metric_family *registration_failures; /* nodepool, reason */
    struct metric_family *registration_duration; /* nodepool; histogram */
    /* Reconcilers */
    struct metric_family *reconciles; /* controller, result: done, requeue, error */
};

void control_metrics_init(struct control_metrics *m, struct metrics *registry);
/* Gauges of pods, nodes, pools and conditions: register their collectors, and take them back. */
void control_metrics_start(struct control *c);
void control_metrics_stop(struct control *c);
/* karpenter_build_info; for programs, which know their version. */
void control_metrics_build_info(struct metrics *registry, struct str version, struct str commit);

void metric_count_values(struct metric_family *family, const struct str *values);
#define metric_count(family, ...) metric_count_values((family), (const struct str[]){ __VA_ARGS__ })
void metric_observe_values(struct metric_family *family, double v, const struct str *values);
#define metric_observe_in(family, v, ...)                                                          \
    metric_observe_values((family), (v), (const struct str[]){ __VA_ARGS__ })
/* A gauge's series, made if it is new. */
void gauge_set(struct metric_family *family, double v, const struct str *values);

struct nodeclaim;
/* nodeclaims_disrupted_total and pods_disruption_initiated_total for a claim that is being deleted by
 * us for `reason` ("expired", "registration_timeout"). */
void claim_count_disrupted(struct control *c, const struct nodeclaim *claim, const char *reason);
