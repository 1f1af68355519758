/* tests/kube/launches.h - many nodes launched by `karve controller --provider kwok`, each for one pod: so
 * how many there must be is known, whatever happens while they are launched.
 *
 * There is no scheduler: pods are called unschedulable by the test and never bound, and nobody plays the
 * kubelet, so no node gets ready. What counts is that every pod has its claim and its node, and no
 * other exists.
 */
#pragma once

#include "kube/fixture.h"
#include "store/informer.h"

/* Its options, for plane_with: no scheduler, no controller manager, and an audit log. */
extern const char *const launches_plane[];

struct launches {
    struct plane *plane;
    struct plane_access admin;
    /* What there is, without asking the server again and again. */
    struct informer *claims, *nodes;
    struct informer_set *set;
};

/* A plane, emptied, with our CRDs and a NodePool whose nodes take one pod each. Members of the group
 * LAUNCHES_GROUP have the rights of the controller, and what they do is in the audit log. */
struct launches *launches_new(void);
void launches_free(struct launches *l); /* NULL is fine */
KV_AUTO_TYPE(launches, launches_free)
#define LAUNCHES_GROUP "karve-replicas"
#define LAUNCHES_LIMIT_S 300            /* for hundreds of nodes, whatever fails meanwhile */
void launches_pool(struct launches *l); /* that NodePool again, if it went */

/* Pods "pod-FROM" and so on, that the scheduler could place nowhere. */
void launches_want(struct launches *l, unsigned from, unsigned count);
void launches_unwant(struct launches *l, unsigned from, unsigned count); /* deletes them */

unsigned launches_count(struct launches *l);  /* nodes there are, as far as we have heard */
unsigned launches_listed(struct launches *l); /* the same; the server is asked */
/* Until there are more nodes than that; how many. */
unsigned launches_wait(struct launches *l, unsigned more_than);
/* Until there are so many nodes; then each belongs to a claim of its own and there is no other claim.
 * Then one pod more, "pod-last", gets one node more: whoever launches has looked at all of it again. */
void launches_expect(struct launches *l, unsigned count);

/* --- replicas --- */

struct replica {
    const char *name; /* of its user, and of its log */
    pid_t pid;
    size_t log_from; /* where its log begins: an earlier one may have had the name */
};
/* Start one, with further flags, ending with NULL. It may have to wait before it acts. */
struct replica replica_start(struct plane *p, const char *name, bool proxied,
                             const char *const *flags);
/* The same, with a kubeconfig of the test's own. */
struct replica replica_start_with(struct plane *p, const char *name, const char *kubeconfig,
                                  const char *const *flags);
bool replica_said(struct plane *p, const struct replica *r, const char *words);
#define ACTING "\"msg\":\"acting\""

int64_t launches_pod_lists(struct plane *p, const char *user); /* how often it has listed pods */
double launches_now_s(void);                                   /* for figures in comments */
