/* The relaxation lets any fraction of a machine be bought and pods be cut, and asks only that no
 * resource is overdrawn. Its dual splits the price of each machine over its resources: `weight` is
 * never negative and one in sum, so a unit of resource r on machine t costs weight[r][t] * price[t] /
 * room[t][r], a pod costs the sum over what it asks for, and its worth is that cost on the machine
 * where it is least. Whatever the split, the worth of all pods together is a lower bound. To find the
 * best split is to climb a concave function:
 *
 * 1. What cannot matter is dropped first (bound_reduce.c).
 * 2. A round prices every class on every machine. The pods of a class are shared out over the
 *    machines that are nearly the cheapest for it: within `closeness`, which narrows from round to
 *    round. The dollars' worth of each resource that they ask of a machine there is the slope.
 * 3. The weight of a resource that is asked for more than the machine's average grows, that of the
 *    others falls. Each weight has a step of its own, which grows while the slope keeps its sign and is
 *    cut when it turns. (On problems made from the catalogue this was within 0.5 % of the optimum after
 *    25 rounds; steps of one common size took 200.)
 * 4. The shares are a feasible solution of the relaxation, so its price comes down from above. When
 *    the two meet, the ascent is done.
 *
 * The result is the best split that was met. How many rounds are allowed changes nothing but where it
 * stops, so more rounds never lower it. Sums over classes or machines are sums of integers, so their
 * order does not show, and nothing but + - * / is done to doubles, which every machine does alike.
 */
#include "sched/bound.h"

#include "sched/bound_inner.h"

#include <math.h>
#include <string.h>

/* Found by trying, on two dozen problems whose optimum was known. */
#define CLOSENESS_FIRST 1.0  /* up to double the cheapest; before round k a k-th of that */
#define CLOSENESS_LAST 0.005 /* and no less */
#define STEP_FIRST 1.0       /* a step is at most this power of e */
#define STEP_MAX 4.0
#define STEP_GROWTH 1.3
#define STEP_CUT 0.5
#define WEIGHT_MIN 1e-6 /* so that each can grow again */
#define GAP_DONE 1e-3   /* between the bound and the price of the shares */
/* Off every worth before it is added up: more than all rounding on the way to it can have added. */
#define SAFETY (1 - 1e-12)
#define SHARE_ONE 0x1p40 /* fixed point */
#define LOAD_MAX 0x1p61

__extension__ typedef unsigned __int128 wide;

struct ascent {
    const struct bound_core *core;
    /* [resource][column] */
    double *weight, *best_weight;
    double *step, *slope; /* the slope before */
    double *cost;         /* of a unit */
    int64_t *load;        /* dollars' worth that is asked for, in units of 1 / load_scale */
    double load_scale;    /* keeps their sum below LOAD_MAX */
    /* [column], for the class at hand */
    double *price;  /* of a pod */
    uint32_t *near; /* columns that are nearly the cheapest; room for one more than there are */
    double *share;  /* of the pods, for each of those */
    double closeness;
    wide total, best_total; /* usd_hour */
    double ceiling;         /* the least that any shares have cost */
    uint64_t steps;
};

static size_t cells(const struct bound_core *core)
{
    return (size_t)core->resource_count * core->column_count;
}

/* --- one round: pricing --- */

/* Both loops are for the vectorizer: lanes of their own let it take several columns at a time. */
static void add_scaled(double *restrict sum, const double *restrict x, double factor, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sum[i] += x[i] * factor;
}

static double least_of(const double *x, size_t count)
{
    double least[BOUND_LANES] = { x[0], x[1], x[2], x[3] };
    for (size_t t = BOUND_LANES; t < count; t += BOUND_LANES)
        for (size_t i = 0; i < BOUND_LANES; i++)
            least[i] = x[t + i] < least[i] ? x[t + i] : least[i];
    for (size_t i = 1; i < BOUND_LANES; i++)
        least[0] = least[i] < least[0] ? least[i] : least[0];
    return least[0];
}

/* What a pod of the class costs on every column; returns the least. */
static double price_class(struct ascent *a, uint32_t class_)
{
    const struct bound_core *core = a->core;
    const double *amount = core->request + (size_t)class_ * core->resource_count;
    memcpy(a->price, core->closed[class_], core->column_count * sizeof *a->price);
    for (uint32_t r = 0; r < core->resource_count; r++)
        if (amount[r] > 0)
            add_scaled(a->price, a->cost + (size_t)r * core->column_count, amount[r],
                       core->column_count);
    return least_of(a->price, core->column_count);
}

/* Shares the pods of a class out over the columns near the cheapest, the less the dearer. */
static void share_out(struct ascent *a, uint32_t class_, double least)
{
    const struct bound_core *core = a->core;
    uint32_t columns = core->column_count, near_count = 0;
    double limit = least * (1 + a->closeness);
    for (uint32_t t = 0; t < columns; t++) {
        a->near[near_count] = t;
        near_count += a->price[t] < limit;
    }
    uint64_t sum = 0;
    for (uint32_t i = 0; i < near_count; i++) {
        double x = (limit - a->price[a->near[i]]) / (limit - least);
        a->share[i] = x * x;
        sum += (uint64_t)(x * x * SHARE_ONE);
    }
    double pods = (double)core->count[class_] * (SHARE_ONE / (double)sum) * a->load_scale;
    const double *request = core->request + (size_t)class_ * core->resource_count;
    for (uint32_t r = 0; r < core->resource_count; r++) {
        if (request[r] <= 0)
            continue;
        const double *unit = core->unit + (size_t)r * columns;
        int64_t *load = a->load + (size_t)r * columns;
        for (uint32_t i = 0; i < near_count; i++)
            load[a->near[i]] += (int64_t)(pods * a->share[i] * request[r] * unit[a->near[i]]);
    }
}

static void set_costs(struct ascent *a, const double *weight)
{
    for (size_t i = 0; i < cells(a->core); i++)
        a->cost[i] = a->core->unit[i] * weight[i];
}

static void price_all(struct ascent *a)
{
    const struct bound_core *core = a->core;
    set_costs(a, a->weight);
    memset(a->load, 0, cells(core) * sizeof *a->load);
    a->total = 0;
    for (uint32_t c = 0; c < core->class_count; c++) {
        double least = price_class(a, c);
        double worth = least * SAFETY * (double)core->count[c];
        a->total += worth < (double)USD_HOUR_MAX ? (uint64_t)worth : (uint64_t)USD_HOUR_MAX;
        if (core->count[c])
            share_out(a, c, least);
    }
    a->steps += (uint64_t)core->class_count * core->column_count;
    if (a->total >= a->best_total) {
        a->best_total = a->total;
        memcpy(a->best_weight, a->weight, cells(core) * sizeof *a->weight);
    }
}

/* --- one round: the next weights --- */

/* About e^x for |x| <= STEP_MAX: above zero, growing, and the same everywhere. */
static double growth(double x)
{
    double y = 1 + x / 32;
    for (int i = 0; i < 5; i++)
        y *= y;
    return y;
}

/* The slope of a weight as a part of the machine's average, from -1 to 1. */
static double slope_of(int64_t load, double average)
{
    double slope = (double)load / average - 1;
    return slope < 1 ? slope : 1;
}

/* Moves the weights of a column, which has load. */
static void climb_column(struct ascent *a, uint32_t column, double average)
{
    const struct bound_core *core = a->core;
    double sum = 0;
    for (size_t i = column; i < cells(core); i += core->column_count) {
        if (core->unit[i] == 0)
            continue;
        double slope = slope_of(a->load[i], average), turn = slope * a->slope[i];
        double step = a->step[i] * (turn > 0 ? STEP_GROWTH : turn < 0 ? STEP_CUT : 1);
        a->step[i] = step < STEP_MAX ? step : STEP_MAX;
        a->slope[i] = slope;
        double weight = a->weight[i] * growth(a->step[i] * slope);
        a->weight[i] = weight > WEIGHT_MIN ? weight : WEIGHT_MIN;
        sum += a->weight[i];
    }
    for (size_t i = column; i < cells(core); i += core->column_count)
        a->weight[i] /= sum;
}

/* Returns whether there is a reason to go on. */
static bool climb(struct ascent *a, uint32_t round)
{
    const struct bound_core *core = a->core;
    uint64_t spent = 0;
    for (uint32_t t = 0; t < core->column_count; t++) {
        double average = 0;
        int64_t most = 0;
        for (size_t i = t; i < cells(core); i += core->column_count) {
            average += a->weight[i] * (double)a->load[i];
            most = a->load[i] > most ? a->load[i] : most;
        }
        spent += (uint64_t)most;
        if (average > 0)
            climb_column(a, t, average);
    }
    double ceiling = (double)spent / a->load_scale;
    a->ceiling = ceiling < a->ceiling ? ceiling : a->ceiling;
    a->closeness = CLOSENESS_FIRST / (round + 1);
    a->closeness = a->closeness > CLOSENESS_LAST ? a->closeness : CLOSENESS_LAST;
    return (double)a->best_total < a->ceiling * (1 - GAP_DONE);
}

/* --- the ascent --- */

/* The price split evenly over what is asked for there. */
static void start(struct ascent *a)
{
    const struct bound_core *core = a->core;
    for (uint32_t t = 0; t < core->column_count; t++) {
        uint32_t asked = 0;
        for (size_t i = t; i < cells(core); i += core->column_count)
            asked += core->unit[i] > 0;
        for (size_t i = t; i < cells(core); i += core->column_count) {
            a->weight[i] = core->unit[i] > 0 ? 1.0 / asked : 0;
            a->step[i] = STEP_FIRST;
        }
    }
    wide pods = 0;
    for (uint32_t c = 0; c < core->class_count; c++)
        pods += core->count[c];
    /* No pod loads a resource with more than the price of a machine. */
    double load_max = (double)pods * (double)core->price_max;
    a->load_scale = 1;
    while (load_max * a->load_scale > LOAD_MAX)
        a->load_scale /= 2;
    while (load_max > 0 && load_max * a->load_scale < LOAD_MAX / 2)
        a->load_scale *= 2;
    a->closeness = CLOSENESS_FIRST;
    a->ceiling = INFINITY;
}

static const double *values(struct ascent *a, struct arena *arena, uint32_t class_count)
{
    const struct bound_core *core = a->core;
    double *value = arena_array(arena, double, class_count);
    double *worth = arena_array(arena, double, core->class_count);
    set_costs(a, a->best_weight);
    for (uint32_t c = 0; c < core->class_count; c++)
        worth[c] = price_class(a, c) * SAFETY / (double)USD_HOUR_ONE;
    for (uint32_t c = 0; c < class_count; c++)
        if (core->class_of[c] != BOUND_NO_CLASS)
            value[c] = worth[core->class_of[c]];
    return value;
}

/* After `values`. */
static const double *costs(const struct ascent *a, struct arena *arena,
                           const struct bound_input *in)
{
    const struct bound_core *core = a->core;
    double *cost = arena_array(arena, double, (size_t)in->machine_count * in->resource_count);
    for (uint32_t t = 0; t < in->machine_count; t++) {
        uint32_t column = core->column_of[t];
        for (uint32_t r = 0; column != BOUND_NO_COLUMN && r < core->resource_count; r++)
            cost[(size_t)t * in->resource_count + core->resources[r]] =
                a->cost[(size_t)r * core->column_count + column] / (double)USD_HOUR_ONE;
    }
    return cost;
}

struct bound bound_compute(struct arena *arena, const struct bound_input *in)
{
    AUTO_ARENA scratch = { 0 };
    struct bound_core core;
    bound_reduce(&scratch, in, &core);
    struct ascent a = {
        .core = &core,
        .weight = arena_array(&scratch, double, cells(&core)),
        .best_weight = arena_array(&scratch, double, cells(&core)),
        .step = arena_array(&scratch, double, cells(&core)),
        .slope = arena_array(&scratch, double, cells(&core)),
        .cost = arena_array(&scratch, double, cells(&core)),
        .load = arena_array(&scratch, int64_t, cells(&core)),
        .price = arena_array(&scratch, double, core.column_count),
        .near = arena_array(&scratch, uint32_t, core.column_count + 1),
        .share = arena_array(&scratch, double, core.column_count),
        .steps = core.steps,
    };
    start(&a);
    price_all(&a);
    for (uint32_t round = 1; round <= in->rounds && climb(&a, round); round++)
        price_all(&a);
    wide total = a.best_total < (wide)USD_HOUR_MAX ? a.best_total : (wide)USD_HOUR_MAX;
    const double *value = values(&a, arena, in->class_count);
    return (struct bound){ (usd_hour)total, value, costs(&a, arena, in), a.steps };
}
