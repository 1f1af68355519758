/* tests/kube/life.h - a cluster whose nodes are launched by our controller and have no machines.
 *
 * A whole control plane with an audit log, kubelets for the nodes of the kwok provider, and `karve
 * controller` as the user karve-controller with exactly the rights that `karve crds --rbac` gives: so
 * each of these tests tests those rights too, and rights_test.c sums up.
 */
#pragma once

#include "kube/fixture.h"
#include "kube/kubelets.h"

#include "store/informer.h"

#define LIFE_USER "karve-controller"
#define LIFE_LIMIT_S 600           /* for what a thousand pods or a hundred nodes do */
#define LIFE_READER "karve-reader" /* who may read what that one may, and write nothing */

/* The plane, emptied, with our CRDs, roles and a KWOKNodeClass "default"; kubelets run. */
struct plane *life_plane(void);
/* The store port, as the administrator. Lives as long as the program. */
const struct store *life_store(void);
/* All pods, as far as the server has told: brought up to date by the call. */
struct informer *life_pods(void);
/* Start the controller with further flags, ending with NULL, or NULL; returns when it acts. */
pid_t life_controller(struct plane *p, const char *const *maybe_flags);
const char *life_audit_log(struct plane *p);

/* A NodePool of the class "default", for linux. All in flow style: `metadata` such as "name: web";
 * `spec` and `template_spec` what else is in those, such as "weight: 5", or "". */
void life_pool(struct plane *p, const char *metadata, const char *spec, const char *template_spec);
/* A Deployment whose pods have the label app=NAME; `metadata` and `spec` are what else the template says,
 * or "". */
void life_deployment(struct plane *p, const char *name, int replicas, const char *metadata,
                     const char *spec);
/* Pods with that label that run and are not being deleted. */
uint32_t life_running(const char *app);

uint32_t life_objects(const struct kind *kind); /* how many there are */
/* How many objects `kubectl get` finds: its arguments. Costs a process; not for long waits. */
KV_PRINTF(2, 3) int life_count(struct plane *p, const char *format, ...);
/* What a jsonpath says of what `kubectl get` finds: its arguments, quotes included. */
KV_PRINTF(2, 3) struct str life_get(struct plane *p, const char *format, ...);

/* Of pools that are being deleted: no pool, no claim, no node, no Lease of one, no pod that is bound. */
void life_expect_nothing_left(struct plane *p);
