/* sim/cloud.h - a cloud that exists apart from the control plane: it remembers its instances
 * whatever happens to the process that launched them.
 *
 * Launching takes the cheapest offering that the claim allows and that can be had at the moment; one
 * that cannot be had is marked for three minutes, as a provider would, and the next is tried in the
 * same call. The claim's UID is the token, for ever: asking again gives the same instance. Once that
 * has ended, or its end has begun, there is none to give and no other is launched: the answer is
 * LAUNCH_INSUFFICIENT_CAPACITY, so that the claim goes and its pods are planned for anew. (EC2 would
 * answer with the terminated instance, and the claim would wait for a node that cannot come.)
 *
 * An instance that boots makes its Node in the store, with the taint karpenter.sh/unregistered,
 * unless something is broken; then it runs and costs money and never joins.
 *
 *     launched --boot delay--> Node (not ready) --ready delay--> Node Ready
 *        |  broken image: lost. Broken network: it waits, and joins once that is fixed
 *     terminating --delay--> ended --40 s--> Node's Ready is Unknown --5 s--> Node is deleted
 *     killed ----------------^
 *
 * Who else may have deleted the Node before; one with finalizers stays until they are gone. Delays and
 * failures are decided by the seed and the claim's UID, not by the order of calls.
 *
 * One thread. The provider's calls and the physics of tests all come from it.
 */
#pragma once

#include "cloud/provider.h"
#include "sim/span.h"
#include "store/store.h"

#define SIM_PROVIDER_PREFIX "sim://"

struct sim_cloud_options {
    const struct clock *clock;
    const struct store *store; /* where Nodes appear and node classes are read: never faulty */
    const struct cloud_provider *types; /* the catalogue's provider, or NULL: kwok's 144 types */
    uint64_t seed;
    /* boot: unless the KWOKNodeClass says its own nodeRegistrationDelay. ready: after that. */
    struct span boot, ready, terminate;
    double boot_failure_rate;  /* instances that never join, although nothing is broken */
    double ready_failure_rate; /* Nodes that join and never get ready */
};

struct sim_cloud;
struct sim_cloud *sim_cloud_new(struct sim_cloud_options options);
void sim_cloud_free(struct sim_cloud *cloud); /* NULL is fine */
KV_AUTO_TYPE(sim_cloud, sim_cloud_free)

/* Node classes: KWOKNodeClass and those of `types`. name "sim". */
const struct cloud_provider *sim_cloud_provider(struct sim_cloud *cloud);

/* Do what is due; the next moment (mono_ns) something is, INT64_MAX: never. */
int64_t sim_cloud_step(struct sim_cloud *cloud);

/* --- what happens to it. "" or absent stands for any --- */

struct offering_match {
    struct str instance_type, zone, capacity_type;
};
/* Nothing that matches can be launched. The control plane is not told: it finds out by trying. */
void sim_cloud_drought(struct sim_cloud *cloud, const struct offering_match *match, bool dry);
/* A zone is gone: nothing can be launched there (a drought), and what runs there is killed. */
void sim_cloud_outage(struct sim_cloud *cloud, struct str zone, bool out);
/* Prices of what matches, times `factor` of what the catalogue says; 1 ends it. Factors of several
 * matches multiply. What runs already costs what it cost when it was launched. */
void sim_cloud_price(struct sim_cloud *cloud, const struct offering_match *match, double factor);
enum sim_break {
    SIM_BREAK_IMAGE,   /* instances launched meanwhile boot and never join */
    SIM_BREAK_NETWORK, /* a security group: likewise; those that were waiting join once it is fixed */
    SIM_BREAK_LAUNCH, /* launching fails with a reason ("Unauthorized") */
};
/* Of instances of that node class (by name; "" for all: and mending all mends each). */
void sim_cloud_break(struct sim_cloud *cloud, struct str node_class, enum sim_break what,
                     bool broken);
/* The instance dies by itself (spot reclaim, hardware), at once. False: there is none that runs. */
bool sim_cloud_kill_instance(struct sim_cloud *cloud, struct str provider_id);
/* Is there a kubelet behind a Node of that provider id? Not if the instance has ended, which others learn
 * later. A Node that is none of the cloud's (an existing one, from a manifest) has one. */
bool sim_cloud_runs(const struct sim_cloud *cloud, struct str provider_id);

/* --- seen by checkers and reports --- */

struct sim_instance {
    struct instance instance;
    struct str claim_uid;
    /* BOOTING: also those that wait for the network. LOST: will never join. */
    enum { SIM_BOOTING, SIM_JOINED, SIM_LOST, SIM_ENDING } state;
    double price; /* dollars an hour when it was launched */
};
/* All that have not ended, by provider id. The array is in the arena; texts are the cloud's own and
 * good until time goes on. */
const struct sim_instance *sim_cloud_instances(struct sim_cloud *cloud, struct arena *arena,
                                               uint32_t *count);
struct sim_cloud_stats {
    uint64_t launches;
    uint64_t launch_failures, refusals; /* calls that failed; refusals: for want of capacity */
    uint64_t joined, lost, terminated;  /* terminated: ended, in whichever way */
    double dollars;                     /* spent so far: from launch until the end begins */
    double dollars_hour;                /* now */
};
struct sim_cloud_stats sim_cloud_stats(struct sim_cloud *cloud);
/* The instances as they are, after a restart of the whole program: from NodeClaims that have a
 * providerID, and their Nodes. Before anything else is asked of the cloud. */
int sim_cloud_recover(struct sim_cloud *cloud, struct err *err);
