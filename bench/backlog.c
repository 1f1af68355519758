/* The outage that operators report: tens of thousands of pods wait at once, on a cluster that is full of
 * others (bench/cluster_outage.h). `ms` is all that a plan takes, `setup_ms` the part of it that
 * compiles the snapshot, taken from a run of its own. Times are of the processor, `wall_ms` beside them.
 *
 * Such reports name 850 instance types. `types` is all that the built-in catalogue has, a fifth more: to
 * cut it would only make the plan easier to find.
 *
 * Every pod can be placed, and the run fails if one is not, or if the plan is not right; that is
 * checked afterwards.
 */
#include "base/clock.h"
#include "bench/cluster_outage.h"

#include <inttypes.h>
#include <stdio.h>

#define SEED 7

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    struct outage_size size = small ? (struct outage_size){ 40, 600, 800, 80 }
                                    : (struct outage_size){ 300, 33000, 40000, 1500 };
    AUTO_CLUSTER c = { 0 };
    AUTO_ARENA arena = { 0 };
    struct plan_options options = PLAN_OPTIONS_DEFAULT;
    outage_fill(&c, size, SEED);
    struct snapshot snap = cluster_snapshot(&c);
    long filled_kb = peak_kb();

    int64_t setup = plan_setup_ns(&snap, options);
    int64_t start = cpu_ns(), wall_start = clock_mono_ns(clock_real());
    const struct plan *plan = plan_build(&arena, &snap, options);
    int64_t took = cpu_ns() - start, wall = clock_mono_ns(clock_real()) - wall_start;

    printf("backlog pending=%u running=%u ms=%.1f setup_ms=%.1f wall_ms=%.1f workloads=%u "
           "classes=%u pools=%u types=%u cluster_nodes=%u existing=%u nodes=%u unschedulable=%u "
           "price=%.4f bound=%.4f cluster_kb=%ld peak_kb=%ld hash=%016" PRIx64 "\n",
           size.pending, size.running, (double)took / 1e6, (double)setup / 1e6, (double)wall / 1e6,
           size.workloads, plan->class_count, snap.pool_count, snap.pools[0].types->type_count,
           snap.node_count, plan->existing_count, plan->launch_count, plan->miss_count,
           usd_hour_double(plan->price), usd_hour_double(plan->lower_bound), filled_kb, peak_kb(),
           plan_hash(&snap, plan));
    fflush(stdout);
    print_misses("backlog", &snap, plan);
    bool right = plan_is_right("backlog", &snap, options, plan);
    return right && plan->miss_count == 0 ? 0 : 1;
}
