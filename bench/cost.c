/* What plans cost: 30 clusters of 1,000 to 5,000 pods over the built-in catalogue, each priced in
 * dollars an hour beside the least that any plan could cost (a lower bound: bench/cost_bound.h) and
 * beside plain first fit decreasing on the same snapshot (bench/cost_ffd.h). `gap` is how far the plan
 * is above the bound, `saved` how far below first fit.
 *
 * The run fails if first fit is cheaper once, if a pod is left over, or if a plan is not right; that
 * is checked afterwards. `ms` is the processor's time for the plan.
 */
#include "bench/cost_bound.h"
#include "bench/cost_cluster.h"
#include "bench/cost_ffd.h"

#include <inttypes.h>
#include <stdio.h>

#define CLUSTERS 30
#define CLUSTERS_SMALL 3
#define ROUNDS 400 /* of the bound */

struct sums {
    uint32_t clusters, ffd_cheaper, wrong, unplaced;
    double gap, gap_worst, saved;
    uint64_t hash;
};

static double above(usd_hour price, usd_hour base) /* in percent */
{
    return base > 0 ? 100 * ((double)price / (double)base - 1) : 0;
}

static void run(struct sums *sums, const struct instance_types *types, uint32_t nth,
                uint32_t pod_count)
{
    AUTO_CLUSTER c = { 0 };
    AUTO_ARENA arena = { 0 };
    struct plan_options options = PLAN_OPTIONS_DEFAULT;
    cost_cluster_fill(&c, types, pod_count, nth + 1);
    struct snapshot snap = cluster_snapshot(&c);

    int64_t start = cpu_ns();
    const struct plan *plan = plan_build(&arena, &snap, options);
    int64_t took = cpu_ns() - start;

    struct model model;
    model_compile(&model, &arena, &snap, options);
    usd_hour bound = cost_bound(&model, ROUNDS);
    struct ffd ffd = ffd_pack(&model);
    model_done(&model);

    uint64_t hash = plan_hash(&snap, plan);
    double gap = above(plan->price, bound), saved = -above(plan->price, ffd.price);
    printf("cost cluster=%u pods=%u price=%.4f bound=%.4f ffd=%.4f gap=%.2f%% saved=%.2f%% "
           "nodes=%u ffd_nodes=%u classes=%u pools=%u unschedulable=%u steps=%" PRIu64
           " ms=%.1f hash=%016" PRIx64 "\n",
           nth, pod_count, usd_hour_double(plan->price), usd_hour_double(bound),
           usd_hour_double(ffd.price), gap, saved, plan->launch_count, ffd.node_count,
           plan->class_count, snap.pool_count, plan->miss_count, plan->steps, (double)took / 1e6,
           hash);
    fflush(stdout);
    print_misses("cost", &snap, plan);
    sums->clusters++;
    sums->gap += gap;
    sums->gap_worst = gap > sums->gap_worst ? gap : sums->gap_worst;
    sums->saved += saved;
    sums->ffd_cheaper += ffd.price < plan->price;
    sums->unplaced += plan->miss_count + ffd.unplaced;
    sums->wrong += !plan_is_right("cost", &snap, options, plan);
    sums->hash = kv_mix64(sums->hash ^ hash);
}

int main(int argc, char **argv)
{
    bool small = argc > 1 && strcmp(argv[1], "--small") == 0;
    uint32_t clusters = small ? CLUSTERS_SMALL : CLUSTERS;
    AUTO_INSTANCE_TYPES types = built_in_types("cost");
    struct sums sums = { 0 };
    for (uint32_t i = 0; i < clusters; i++)
        run(&sums, types, i, small ? 100 + 50 * i : 1000 + 4000 * i / (CLUSTERS - 1));
    printf("cost mean clusters=%u gap=%.2f%% gap_worst=%.2f%% saved=%.2f%% ffd_cheaper=%u "
           "wrong=%u unschedulable=%u peak_kb=%ld hash=%016" PRIx64 "\n",
           sums.clusters, sums.gap / sums.clusters, sums.gap_worst, sums.saved / sums.clusters,
           sums.ffd_cheaper, sums.wrong, sums.unplaced, peak_kb(), sums.hash);
    return sums.ffd_cheaper || sums.wrong || sums.unplaced ? 1 : 0;
}
