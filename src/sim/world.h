/* sim/world.h - one simulated cluster: a scenario, a seed, and time that moves from event to event.
 *
 *     scenario --> store <--> control plane (behind faults) --> cloud (behind faults)
 *                    ^                                            |
 *                    +---- workloads, binder, kubelets <----------+
 *
 * A *step* is one action of the timeline or of chaos, and all that follows from it until the next. After
 * each the invariants are checked. Everything runs on the calling thread: equal scenarios and seeds
 * give equal bytes.
 */
#pragma once

#include "sim/binder.h"
#include "sim/invariants.h"
#include "sim/kubelet.h"
#include "sim/record.h"
#include "sim/scenario.h"
#include "sim/workloads.h"
#include "store/embedded.h"

struct world_options {
    const struct scenario *scenario; /* outlives the world */
    uint64_t seed;                   /* of everything; chaos is chaos_generate(scenario, seed) */
    bool check;                      /* invariants */
    bool doubt;                      /* see struct binder_options */
    struct record *maybe_record;     /* filled in as it goes; closed before the world is freed */
    struct log *maybe_log;
    uint64_t die_at; /* a call of the first control plane: see faults_die_at; 0: none */
    bool die_after_effect;
};

struct world;
struct world *world_new(struct world_options options, struct err *err); /* NULL: err says why */
void world_free(struct world *w);                                       /* NULL is fine */
KV_AUTO_TYPE(world, world_free)

/* Let time pass without steps and samples, whatever the scenario says. False: see world_broken. */
bool world_live(struct world *w, int64_t ns);
/* Run to the next step (or sample), which begins there: time goes on with the next call. False: it is
 * over, or an invariant is broken. */
bool world_step(struct world *w);
/* Run on, without faults, actions and the record, until nothing but Events has changed for `quiet_ns`, at
 * most `limit_ns`. New nodes no longer expire; what actions broke is the caller's to mend before.
 * False: it does not settle. */
bool world_settle(struct world *w, int64_t quiet_ns, int64_t limit_ns);

/* The parts, for checkers, records and tests. */
struct world_parts {
    const struct scenario *scenario;
    const struct clock *clock;
    struct virtual_clock *time;
    struct embedded *embedded;
    const struct store *store; /* never faulty */
    struct sim_cloud *cloud;
    struct faults *faults;
    struct control *control;
    struct binder *binder;
    struct metrics *metrics; /* of the control plane; survives its deaths */
    int64_t start_us;
    uint32_t step, crashes;
    int64_t down_ns; /* how long, in all, one control plane was dead and the next not up */
};
const struct world_parts *world_parts(const struct world *w);
const struct finding *world_broken(const struct world *w); /* NULL: nothing is */
/* Once it has settled: is it really at rest? NULL: yes. */
const struct finding *world_check_rest(struct world *w);
