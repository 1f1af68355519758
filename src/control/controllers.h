/* control/controllers.h - the list of reconcilers; each is defined in the file of its name. */
#pragma once

#include "control/control_impl.h"

/* provisioner.c */
extern const struct controller provisioner_controller; /* "provisioner" */
/* lifecycle.c: launch, registration, initialization, liveness, and the end of a claim */
extern const struct controller nodeclaim_lifecycle;
/* gc.c, expiration.c, consistency.c, pod_events.c, hydration.c, disruption_marks.c */
extern const struct controller nodeclaim_garbage_collection;
extern const struct controller nodeclaim_expiration;
extern const struct controller nodeclaim_consistency;
extern const struct controller nodeclaim_pod_events;
extern const struct controller nodeclaim_hydration, node_hydration;
extern const struct controller nodeclaim_disruption; /* Drifted and Consolidatable */
/* termination.c, eviction.c, repair.c */
extern const struct controller node_termination;
extern const struct controller eviction_queue; /* keys "namespace/name/uid" */
extern const struct controller node_health;    /* repair */
/* pool_*.c */
extern const struct controller nodepool_readiness;
extern const struct controller nodepool_validation;
extern const struct controller nodepool_counter;
extern const struct controller nodepool_hash_controller;     /* nodepool_hash is in api/hash.h */
extern const struct controller nodepool_registration_health; /* health_controller.c */
extern const struct controller nodepool_launchable;          /* what is known beforehand */
extern const struct controller nodeoverlay_status;
