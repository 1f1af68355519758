/* How fast pods are planned for: the workload of Karpenter's own scheduling benchmark
 * (bench/cluster_fake.h), each size once.
 *
 *     diverse  pods of five sorts. `pods_per_s` is by the time without set-up, as that benchmark measures
 *              it; `total_pods_per_s` is by all of it. `setup_ms` is the time of compiling the snapshot,
 *              taken from a run of its own. `growth` is the time per pod (all of it) by that of the size
 *              before: 1 is linear. `ratio` is the time of a scheduler that takes one pod after the
 *              other (bench/cluster_plain.h) by that of our first plan, both without set-up: the search
 *              for a cheaper one takes what it is given (plan_options.effort), and the other has none.
 *     prefer   identical pods with preferences that cannot all be had, which are held to as long as
 *              possible (Respect) or dropped from the start (Ignore).
 *     check    afterwards, so that memory and time of checking count nowhere: plans are made once
 *              more, must be the same, and must be right.
 *
 * Every pod must be placed, and the number of nodes is known: the run fails where it is not so. Times
 * are of the processor. Instructions compare between machines: scripts/bench.sh counts them, and the
 * usage says how.
 */
#include "bench/cluster_fake.h"
#include "bench/cluster_plain.h"

#include <inttypes.h>
#include <stdio.h>

#define SEED 42
#define PREFERRING 4000
#define CHECKED_MAX 20000
#define PLAIN_MIN 1000
#define PLAIN_MAX 5000

static const uint32_t sizes[] = { 1, 50, 100, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000 };
#define SIZES KV_COUNT_OF(sizes)
#define SMALL_MAX 500 /* sizes up to this are for --small */

struct bench {
    struct arena arena;
    const struct instance_type_draft *drafts;
    const struct instance_types *types;
    double ns_per_pod; /* of the size before; 0: none */
};

struct result {
    int64_t setup_ns, total_ns;
    uint32_t nodes;
    usd_hour price, bound;
    uint64_t hash;
};

static void fail(const char *what, uint32_t pods)
{
    fprintf(stderr, "solve: pods=%u: %s\n", pods, what);
    exit(1);
}

static void fill(const struct bench *b, struct cluster *c, bool diverse, uint32_t pods)
{
    fake_add_pool(c, b->types);
    if (diverse)
        fake_add_diverse_pods(c, SEED, pods);
    else
        fake_add_preferring_pods(c, SEED, pods);
}

/* One pod for each node must be alone there; without such pods one node takes them all. */
static void expect_nodes(const struct plan *plan, uint32_t pods)
{
    uint32_t want = pods < 5 ? 1 : pods / 5;
    if (plan->launch_count == want)
        return;
    fprintf(stderr, "solve: pods=%u: %u nodes, not %u\n", pods, plan->launch_count, want);
    exit(1);
}

static struct result run(const struct bench *b, bool diverse, uint32_t pods,
                         struct plan_options options, bool check)
{
    AUTO_CLUSTER c = { 0 };
    AUTO_ARENA arena = { 0 };
    struct result r = { 0 };
    fill(b, &c, diverse, pods);
    struct snapshot snap = cluster_snapshot(&c);

    if (!check)
        r.setup_ns = plan_setup_ns(&snap, options);
    int64_t start = cpu_ns();
    const struct plan *plan = plan_build(&arena, &snap, options);
    r.total_ns = cpu_ns() - start;
    r.nodes = plan->launch_count;
    r.price = plan->price;
    r.bound = plan->lower_bound;
    r.hash = plan_hash(&snap, plan);

    print_misses("solve", &snap, plan);
    if (plan->miss_count || plan->skip_count)
        fail("not every pod is placed", pods);
    if (diverse)
        expect_nodes(plan, pods);
    if (check && !plan_is_right("solve", &snap, options, plan))
        fail("the plan is not right", pods);
    return r;
}

/* A scheduler of the plain kind against us, like with like. */
static double plain_ratio(const struct bench *b, uint32_t pods)
{
    struct plan_options options = PLAN_OPTIONS_DEFAULT;
    options.effort = 0;
    struct result ours = run(b, true, pods, options, false);

    AUTO_CLUSTER c = { 0 };
    fill(b, &c, true, pods);
    int64_t start = cpu_ns();
    struct plain_result plain = plain_schedule(&c, b->drafts, FAKE_TYPES);
    int64_t took = cpu_ns() - start;
    if (plain.placed != pods)
        fail("the baseline does not place every pod", pods);
    int64_t solve_ns = ours.total_ns - ours.setup_ns;
    return (double)took / (double)(solve_ns > 0 ? solve_ns : 1);
}

/* --- lines --- */

static double per_second(uint32_t pods, int64_t ns)
{
    return (double)pods / ((double)(ns > 0 ? ns : 1) / 1e9);
}

static void print_speed(uint32_t pods, const struct result *r)
{
    int64_t solve_ns = r->total_ns - r->setup_ns;
    printf(" nodes=%u pods_per_s=%.0f total_pods_per_s=%.0f setup_ms=%.2f solve_ms=%.2f", r->nodes,
           per_second(pods, solve_ns), per_second(pods, r->total_ns), (double)r->setup_ns / 1e6,
           (double)solve_ns / 1e6);
}

static void print_end(const struct result *r)
{
    printf(" price=%.4f bound=%.4f peak_kb=%ld hash=%016" PRIx64 "\n", usd_hour_double(r->price),
           usd_hour_double(r->bound), peak_kb(), r->hash);
    fflush(stdout);
}

static struct result bench_diverse(struct bench *b, uint32_t pods, bool alone)
{
    struct result r = run(b, true, pods, PLAN_OPTIONS_DEFAULT, false);
    double ns_per_pod = (double)r.total_ns / pods;
    printf("solve diverse pods=%u", pods);
    print_speed(pods, &r);
    if (b->ns_per_pod > 0)
        printf(" growth=%.2f", ns_per_pod / b->ns_per_pod);
    if (!alone && pods >= PLAIN_MIN && pods <= PLAIN_MAX)
        printf(" ratio=%.1f", plain_ratio(b, pods));
    print_end(&r);
    b->ns_per_pod = ns_per_pod;
    return r;
}

static void bench_prefer(const struct bench *b, uint32_t pods, bool respect)
{
    struct plan_options options = PLAN_OPTIONS_DEFAULT;
    options.preferences = respect ? PREFERENCES_RESPECT : PREFERENCES_IGNORE;
    struct result r = run(b, false, pods, options, false);
    printf("solve prefer pods=%u policy=%s", pods, respect ? "Respect" : "Ignore");
    print_speed(pods, &r);
    print_end(&r);
}

static void bench_check(const struct bench *b, uint32_t pods, uint64_t hash)
{
    struct result r = run(b, true, pods, PLAN_OPTIONS_DEFAULT, true);
    if (r.hash != hash)
        fail("the same plan twice is not the same", pods);
    printf("solve check pods=%u hash=%016" PRIx64 "\n", pods, r.hash);
    fflush(stdout);
}

static void bench_all(struct bench *b, bool small)
{
    uint64_t hashes[SIZES] = { 0 };
    uint32_t preferring = small ? 100 : PREFERRING;
    bench_prefer(b, preferring, true);
    bench_prefer(b, preferring, false);
    for (size_t i = 0; i < SIZES && (!small || sizes[i] <= SMALL_MAX); i++)
        hashes[i] = bench_diverse(b, sizes[i], false).hash;
    for (size_t i = 0; i < SIZES && sizes[i] <= (small ? SMALL_MAX : CHECKED_MAX); i++)
        bench_check(b, sizes[i], hashes[i]);
}

/* --- the command line --- */

static const char usage[] =
    "usage: solve [--small] [--only diverse|prefer] [--size PODS]\n"
    "instructions of one plan:\n"
    "  valgrind --tool=callgrind --toggle-collect=plan_build build/bench/solve --only diverse "
    "--size 5000\n";

struct request {
    bool small, diverse, prefer;
    uint32_t size; /* 0: all sizes */
};

static bool read_args(int argc, char **argv, struct request *r)
{
    int64_t size;
    *r = (struct request){ 0 };
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (strcmp(argv[i], "--small") == 0) {
            r->small = true;
        } else if (strcmp(argv[i], "--only") == 0) {
            r->diverse = strcmp(value, "diverse") == 0;
            r->prefer = strcmp(value, "prefer") == 0;
            if (!r->diverse && !r->prefer)
                return false;
            i++;
        } else if (strcmp(argv[i], "--size") == 0) {
            if (!str_to_i64(str_of(value), &size) || size < 1 || size > 1000000)
                return false;
            r->size = (uint32_t)size;
            i++;
        } else {
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    struct bench b = { 0 };
    struct request request;
    struct err err = { 0 };
    if (!read_args(argc, argv, &request)) {
        fputs(usage, stderr);
        return 2;
    }
    b.drafts = fake_drafts(&b.arena);
    if (instance_types_build(b.drafts, FAKE_TYPES, (struct instance_types_options){ 0 }, &b.types,
                             &err) < 0) {
        fprintf(stderr, "solve: %s\n", err.text);
        return 1;
    }
    if (request.prefer) {
        bench_prefer(&b, request.size ? request.size : PREFERRING, true);
        bench_prefer(&b, request.size ? request.size : PREFERRING, false);
    } else if (request.size) {
        bench_diverse(&b, request.size, true);
    } else {
        bench_all(&b, request.small);
    }
    instance_types_unref(b.types);
    arena_done(&b.arena);
    return 0;
}
