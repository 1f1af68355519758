/* Take apart, pack anew, keep what is cheaper.
 *
 * Domains of pods were chosen before packing and stay as they are, so nothing but hosts changes and
 * what is legal stays legal.
 *
 * Packing takes the best launch first, and pays for it at the end: the pods that are left suit each
 * other badly. So values are corrected: a pod that ended up in a launch that costs much more than it
 * carries is worth more from now on, and comes earlier, while there is good company left. First large
 * parts are taken apart, for the corrections to tell, then a few launches at a time.
 */
#include "sched/improve.h"

#include "base/rng.h"

#include <string.h>

#define RUIN_MIN 2
#define RUIN_MAX 8
#define TOURNAMENT 8     /* of so many launches the one with the most waste is taken apart */
#define LARGE_SHARE 3    /* one of so many launches, in large rounds */
#define LARGE_EFFORT 2   /* one of so many steps goes to large rounds */
#define VALUE_NOISE 0.05 /* values are changed by up to this share, up or down */
/* A corrected value is at most so many times the value, or that part of it. */
#define CORRECTION_MAX 2.0

struct saved { /* a launch that was taken apart */
    uint32_t pool, machine, terms;
    uint32_t first, count; /* of `placements` */
};

struct worth_entry {
    double value;     /* by the bound */
    double corrected; /* by experience */
};

struct search {
    struct state *s;
    const struct worth *worth;
    struct rng rng;
    struct map entry; /* by placement: into `worths` */
    VEC(struct worth_entry) worths;
    VEC(uint32_t) launches;
    VEC(struct saved) saved;
    VEC(struct placement) placements;
    struct items items;
    VEC(double) values;
    struct arena scratch;
};

static uint64_t placement_key(uint32_t class_, uint32_t variant, uint32_t wants)
{
    return (uint64_t)class_ << 40 ^ (uint64_t)variant << 32 ^ wants;
}

static struct worth_entry *entry_of(const struct search *q, const struct placement *p)
{
    uintptr_t at = 0;
    bool known = map_get(&q->entry, placement_key(p->class_, p->variant, p->wants), &at);
    KV_ASSERT(known);
    return &q->worths.items[at];
}

/* Adds up placements of the same kind. */
static void add_items(struct items *out, struct map *seen, const struct placement *p)
{
    uint64_t key = placement_key(p->class_, p->variant, p->wants);
    uintptr_t at;
    if (!map_get(seen, key, &at)) {
        at = out->list.count;
        map_put(seen, key, at);
        vec_push(&out->list, (struct item){ p->class_, p->variant, p->wants, 0 });
    }
    out->list.items[at].count += p->count;
}

void launched_items(const struct state *s, struct items *out)
{
    struct map seen = { 0 };
    for (uint32_t ix = s->model->home_count; ix < s->bins.count; ix++)
        if (bin_is_live(s, ix))
            vec_each(&s->bins.items[ix].placements, const struct placement, p)
                add_items(out, &seen, p);
    map_done(&seen);
}

/* --- choosing what to take apart --- */

static double worth_of_bin(const struct search *q, const struct bin *bin)
{
    double worth = 0;
    vec_each(&bin->placements, const struct placement, p)
        worth += p->count * entry_of(q, p)->value;
    return worth;
}

static double waste_of(const struct search *q, uint32_t ix)
{
    const struct bin *bin = &q->s->bins.items[ix];
    return usd_hour_double(bin->price) - worth_of_bin(q, bin);
}

/* The place in `launches` of one that wastes much. */
static size_t pick(struct search *q)
{
    size_t best = 0;
    double most = 0;
    for (uint32_t i = 0; i < TOURNAMENT; i++) {
        size_t at = rng_below(&q->rng, q->launches.count);
        double waste = waste_of(q, q->launches.items[at]);
        if (i == 0 || waste > most) {
            best = at;
            most = waste;
        }
    }
    return best;
}

static void take_apart(struct search *q, size_t at)
{
    uint32_t ix = q->launches.items[at];
    const struct bin *bin = &q->s->bins.items[ix];
    struct saved saved = { bin->pool, bin->machine, bin->terms, (uint32_t)q->placements.count,
                           (uint32_t)bin->placements.count };
    vec_each(&bin->placements, const struct placement, p)
        vec_push(&q->placements, *p);
    vec_push(&q->saved, saved);
    launch_dissolve(q->s, ix);
    q->launches.items[at] = vec_last(&q->launches);
    q->launches.count--;
}

/* --- packing anew --- */

static void collect_items(struct search *q)
{
    struct map seen = { 0 };
    vec_clear(&q->items.list);
    vec_clear(&q->values);
    vec_each(&q->placements, struct placement, p) {
        add_items(&q->items, &seen, p);
        if (q->values.count < q->items.list.count) {
            double noise = 1 + VALUE_NOISE * (2 * rng_unit(&q->rng) - 1);
            vec_push(&q->values, entry_of(q, p)->corrected * noise);
        }
    }
    map_done(&seen);
}

static void restore(struct search *q)
{
    vec_each(&q->saved, struct saved, old) {
        uint32_t ix = state_open(q->s, old->pool, old->machine, old->terms);
        for (uint32_t i = 0; i < old->count; i++) {
            const struct placement *p = &q->placements.items[old->first + i];
            state_place(q->s, ix, p->class_, p->variant, p->wants, p->count);
        }
        vec_push(&q->launches, ix);
    }
}

static double clamp(double v, double low, double high)
{
    return v < low ? low : v > high ? high : v;
}

/* What the pods of a launch really cost, half and half with what was thought before. */
static void correct_values(struct search *q, uint32_t ix)
{
    const struct bin *bin = &q->s->bins.items[ix];
    double worth = worth_of_bin(q, bin);
    double over = worth > 0 ? usd_hour_double(bin->price) / worth : 1;
    vec_each(&bin->placements, const struct placement, p) {
        struct worth_entry *e = entry_of(q, p);
        e->corrected = clamp((e->corrected + e->value * over) / 2, e->value / CORRECTION_MAX,
                             e->value * CORRECTION_MAX);
    }
}

/* Packs what was taken apart. True: it was worth it. */
static bool pack_anew(struct search *q, usd_hour before)
{
    struct state *s = q->s;
    struct packer k;
    collect_items(q);
    packer_init(&k, s, &q->items, q->worth, q->values.items, &q->scratch);
    packer_run(&k);
    /* Cheaper, and not more nodes: each is one more to boot, to patch and to lose. */
    bool kept = s->price < before && k.opened.count <= q->saved.count;
    for (uint32_t i = 0; i < k.item_count; i++)
        kept &= k.left[i] == 0;
    vec_each(&k.opened, uint32_t, ix) {
        correct_values(q, *ix);
        if (kept && s->bins.items[*ix].reserved == NONE)
            vec_push(&q->launches, *ix);
        else if (!kept)
            launch_dissolve(s, *ix);
    }
    packer_done(&k);
    arena_reset(&q->scratch);
    if (!kept)
        restore(q);
    return kept;
}

static bool try_once(struct search *q, size_t ruin)
{
    usd_hour before = q->s->price;
    vec_clear(&q->saved);
    vec_clear(&q->placements);
    for (size_t i = 0; i < ruin && q->launches.count; i++)
        take_apart(q, pick(q));
    return pack_anew(q, before);
}

static void search_init(struct search *q, struct state *s, const struct items *items,
                        const struct worth *worth, uint64_t seed)
{
    *q = (struct search){ .s = s, .worth = worth };
    rng_init(&q->rng, seed);
    for (uint32_t i = 0; i < items->list.count; i++) {
        const struct item *item = &items->list.items[i];
        map_put(&q->entry, placement_key(item->class_, item->variant, item->wants),
                q->worths.count);
        vec_push(&q->worths, (struct worth_entry){ worth->value[i], worth->value[i] });
    }
    for (uint32_t ix = s->model->home_count; ix < s->bins.count; ix++)
        if (bin_is_live(s, ix) && s->bins.items[ix].reserved == NONE)
            vec_push(&q->launches, ix);
}

void improve(struct state *s, const struct items *items, const struct worth *worth, uint64_t effort,
             uint64_t seed)
{
    struct search q;
    search_init(&q, s, items, worth, seed);
    uint64_t start = s->steps, idle = 0;
    bool careful = s->careful > 0;
    s->careful = careful ? UINT64_MAX : 0;
    vec_each(&q.launches, uint32_t, ix)
        correct_values(&q, *ix);
    while (careful && q.launches.count && s->steps - start < effort / LARGE_EFFORT && idle < 8)
        idle = try_once(&q, 1 + q.launches.count / LARGE_SHARE) ? 0 : idle + 1;
    /* Few launches have few ways to be put together. */
    idle = 0;
    while (q.launches.count && s->steps - start < effort && idle < 30 + 10 * q.launches.count)
        idle = try_once(&q, RUIN_MIN + rng_below(&q.rng, RUIN_MAX - RUIN_MIN + 1)) ? 0 : idle + 1;
    map_done(&q.entry);
    vec_done(&q.worths);
    vec_done(&q.launches);
    vec_done(&q.saved);
    vec_done(&q.placements);
    vec_done(&q.items.list);
    vec_done(&q.values);
    arena_done(&q.scratch);
}
