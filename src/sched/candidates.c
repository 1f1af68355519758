/* Which machines are worth a try for a leader?
 *
 * For each pool, the machine that covers most of what is left per dollar tells the going rate. Pods
 * that are well placed at that rate are the demand that a launch of the pool can count on; those that
 * could live cheaper elsewhere are not. Then every machine is judged by the worth of that demand which
 * it could carry per dollar, and by how well the leader itself is placed on it. A launch need not be
 * large, so there are also the machines that carry small multiples of the leader for the least.
 *
 * When there is no time for care, it is those that cover most of everything per dollar, for some
 * mixes of cpu and memory.
 */
#include "sched/pack.h"

static const double mixes[][2] = { { 1, 1 }, { 1, 0 }, { 0, 1 }, { 2, 1 }, { 1, 2 } };
#define MIX_COUNT (sizeof mixes / sizeof *mixes)
#define PER_MIX 3
static const double multiples[] = { 1, 2, 4, 8 };
#define MULTIPLE_COUNT (sizeof multiples / sizeof *multiples)
#define TOP 16
_Static_assert(TOP + MULTIPLE_COUNT <= CANDIDATES_MAX, "room for all");
_Static_assert(MIX_COUNT *PER_MIX <= TOP, "mixes are kept in its place");

struct amounts {
    double cpu, memory;
};

struct judged {
    struct candidate candidate;
    double estimate;
};

struct listing {
    const struct packer *k;
    uint32_t leader;
    struct judged top[TOP];
    struct judged small[MULTIPLE_COUNT];
};

static struct amounts request_of(const struct packer *k, uint32_t item)
{
    const int64_t *request = k->s->model->classes[k->items[item].class_].request;
    return (struct amounts){ (double)request[RESOURCE_CPU], (double)request[RESOURCE_MEMORY] };
}

static struct amounts room_of(const struct packer *k, uint32_t pool, uint32_t machine)
{
    const struct model *m = k->s->model;
    const int64_t *room = m->pools[pool].room + (size_t)machine * m->resource_count;
    return (struct amounts){ (double)room[RESOURCE_CPU], (double)room[RESOURCE_MEMORY] };
}

static double smaller(double a, double b)
{
    return a < b ? a : b;
}

static double covered(double room, double demand)
{
    return demand <= 0 ? 1 : smaller(room / demand, 1);
}

/* Everything that is left and may be of this tier. */
static struct amounts demand_of_tier(const struct packer *k, uint32_t tier)
{
    struct amounts d = { 0 };
    for (uint32_t i = 0; i < k->item_count; i++) {
        if (!k->left[i] || k->tier[i] != tier)
            continue;
        struct amounts each = request_of(k, i);
        d.cpu += each.cpu * k->left[i];
        d.memory += each.memory * k->left[i];
    }
    return d;
}

/* What a pod's room costs at a rate, and how well it is placed there: at most one. */
static double placed_well(const struct packer *k, uint32_t item, const double *maybe_unit,
                          double scale)
{
    uint32_t width = k->s->model->resource_count;
    const double *request = k->request + (size_t)k->size_of[item] * width;
    double cost = 0;
    for (uint32_t r = 0; maybe_unit && r < width; r++)
        cost += request[r] * maybe_unit[r] * scale;
    return k->value[item] < cost ? k->value[item] / cost : 1;
}

/* The part of it that may join these terms and is well placed on that machine. */
static struct amounts demand_that_pays(const struct packer *k, uint32_t leader,
                                       const struct candidate *rate)
{
    struct model *m = k->s->model;
    double scale;
    const double *unit = worth_rate(k->worth, rate->pool, rate->machine,
                                    terms_at(m, rate->terms)->price[rate->machine], &scale);
    struct amounts d = { 0 };
    k->s->steps += k->item_count;
    for (uint32_t i = 0; i < k->item_count; i++) {
        if (!k->left[i] || k->tier[i] != k->tier[leader])
            continue;
        if (i != leader && (placed_well(k, i, unit, scale) < PAYING ||
                            terms_join(m, rate->terms, k->items[i].wants) == NONE))
            continue;
        struct amounts each = request_of(k, i);
        d.cpu += each.cpu * k->left[i];
        d.memory += each.memory * k->left[i];
    }
    return d;
}

static void keep_best(struct judged *best, uint32_t count, struct judged c)
{
    for (uint32_t i = 0; i < count; i++) {
        if (best[i].candidate.machine != NONE && best[i].estimate >= c.estimate)
            continue;
        struct judged pushed = best[i];
        best[i] = c;
        c = pushed;
    }
}

static void judge(struct listing *l, struct candidate c, struct amounts demand, usd_hour price)
{
    const struct packer *k = l->k;
    const struct model *m = k->s->model;
    struct amounts room = room_of(k, c.pool, c.machine), leader = request_of(k, l->leader);
    double dollars = (double)price + 1; /* nothing is for nothing: a price may be zero */
    for (uint32_t x = 0; x < MULTIPLE_COUNT; x++) {
        double cpu = smaller(demand.cpu, multiples[x] * leader.cpu);
        double memory = smaller(demand.memory, multiples[x] * leader.memory);
        double part = covered(room.cpu, cpu) + covered(room.memory, memory);
        keep_best(&l->small[x], 1, (struct judged){ c, part / dollars });
    }
    double scale, carried = 0;
    const double *unit = worth_rate(k->worth, c.pool, c.machine, price, &scale);
    if (!unit)
        return;
    const int64_t *all = m->pools[c.pool].room + (size_t)c.machine * m->resource_count;
    for (uint32_t r = 0; r < m->resource_count; r++) {
        double most = r == RESOURCE_CPU      ? demand.cpu
                      : r == RESOURCE_MEMORY ? demand.memory
                                             : (double)all[r];
        carried += unit[r] * scale * smaller((double)all[r], most);
    }
    carried *= placed_well(k, l->leader, unit, scale);
    keep_best(l->top, TOP, (struct judged){ c, carried / dollars });
}

static void list_pool_fast(struct listing *l, uint32_t p, uint32_t terms, struct amounts total)
{
    struct state *s = l->k->s;
    uint32_t class_ = l->k->items[l->leader].class_;
    const struct terms *t = terms_at(s->model, terms);
    s->steps += s->model->pools[p].machine_count;
    bitset_each(&t->machines, i) {
        if (!machine_possible(s, class_, p, i))
            continue;
        struct amounts room = room_of(l->k, p, i);
        double cpu = covered(room.cpu, total.cpu), memory = covered(room.memory, total.memory);
        for (uint32_t x = 0; x < MIX_COUNT; x++)
            keep_best(l->top + x * PER_MIX, PER_MIX,
                      (struct judged){ { p, i, terms },
                                       (mixes[x][0] * cpu + mixes[x][1] * memory) /
                                           ((double)t->price[i] + 1) });
    }
}

static void list_pool(struct listing *l, uint32_t p, uint32_t terms, struct amounts total)
{
    struct state *s = l->k->s;
    struct model *m = s->model;
    uint32_t class_ = l->k->items[l->leader].class_;
    const struct terms *t = terms_at(m, terms);
    struct judged rate = { .candidate = { p, NONE, terms } };
    s->steps += 2 * (uint64_t)m->pools[p].machine_count;
    bitset_each(&t->machines, i) {
        struct amounts room = room_of(l->k, p, i);
        double estimate = (covered(room.cpu, total.cpu) + covered(room.memory, total.memory)) /
                          ((double)t->price[i] + 1);
        if (machine_possible(s, class_, p, i))
            keep_best(&rate, 1, (struct judged){ { p, i, terms }, estimate });
    }
    if (rate.candidate.machine == NONE)
        return;
    struct amounts demand = demand_that_pays(l->k, l->leader, &rate.candidate);
    t = terms_at(m, terms);
    bitset_each(&t->machines, i)
        if (machine_possible(s, class_, p, i))
            judge(l, (struct candidate){ p, i, terms }, demand, t->price[i]);
}

static uint32_t add(const struct judged *list, uint32_t list_count,
                    struct candidate out[CANDIDATES_MAX], uint32_t count)
{
    for (uint32_t i = 0; i < list_count; i++) {
        const struct candidate *c = &list[i].candidate;
        bool known = c->machine == NONE;
        for (uint32_t n = 0; n < count && !known; n++)
            known = out[n].machine == c->machine && out[n].pool == c->pool;
        if (!known)
            out[count++] = *c;
    }
    return count;
}

uint32_t packer_candidates(const struct packer *k, uint32_t leader,
                           struct candidate out[CANDIDATES_MAX])
{
    struct model *m = k->s->model;
    const struct item *item = &k->items[leader];
    const struct variant *v = &m->classes[item->class_].variants[item->variant];
    struct listing l = { .k = k, .leader = leader };
    struct amounts total = demand_of_tier(k, k->tier[leader]);
    for (uint32_t i = 0; i < TOP; i++)
        l.top[i].candidate.machine = NONE;
    for (uint32_t i = 0; i < MULTIPLE_COUNT; i++)
        l.small[i].candidate.machine = NONE;
    for (uint32_t p = 0; p < m->pool_count; p++) {
        if (m->pools[p].tier != k->tier[leader] ||
            !taints_tolerated(m, v->tolerance, m->pools[p].taints))
            continue;
        uint32_t terms = terms_join(m, m->pools[p].terms, item->wants);
        if (terms == NONE || !launch_possible_on(k->s, item->class_, terms))
            continue;
        if (k->s->steps < k->s->careful)
            list_pool(&l, p, terms, total);
        else
            list_pool_fast(&l, p, terms, total);
    }
    return add(l.small, MULTIPLE_COUNT, out, add(l.top, TOP, out, 0));
}
