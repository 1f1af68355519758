/* Fills one launch. The next pods are those whose request points the way that the free room does
 * (the largest dot product of request and room left, each in shares of the machine): so cpu-heavy pods
 * pair with memory-heavy ones, and large pods come before small ones. How well a pod is placed is its
 * worth by what its room costs there, at most one. That counts to a high power, and pods far below one,
 * which could live on cheaper machines, only get what the others leave.
 *
 * Scores are of sizes, of which there are few; items of one size differ in what else they ask for, and
 * the first that the launch admits is taken. Of many equal pods half of what would fit goes at once,
 * then the scores are looked at again.
 */
#include "sched/pack.h"

/* A pod may make its launch dearer by this share of its worth: on a node of its own it would cost
 * that much at least. */
#define PREMIUM 0.5

/* Items of a size that can still go in; the first of them is at the cursor. False: none. */
static bool advance(const struct packer *k, uint32_t size)
{
    while (k->cursor[size] < k->size_start[size + 1] && !k->left[k->size_items[k->cursor[size]]])
        k->cursor[size]++;
    return k->cursor[size] < k->size_start[size + 1];
}

/* What a launch offers: its machine's room, and what a unit of it costs. */
struct offer {
    double share[RESOURCES_MAX]; /* one by the room */
    double cost[RESOURCES_MAX];  /* if there are no rates, all resources cost the same */
    bool rated;
};

static double sixteenth_power(double x)
{
    x *= x;
    x *= x;
    x *= x;
    return x * x;
}

/* Sizes whose pods are placed less well than `least` are passed over. */
static uint32_t best_size(const struct packer *k, const struct bin *bin, const struct offer *offer,
                          double least)
{
    uint32_t width = k->s->model->resource_count;
    double weight[RESOURCES_MAX], free[RESOURCES_MAX];
    for (uint32_t r = 0; r < width; r++) {
        free[r] = (double)bin->free[r];
        weight[r] = free[r] * offer->share[r] * offer->share[r];
    }
    uint32_t best = NONE;
    double best_score = 0;
    k->s->steps += k->size_count;
    for (uint32_t size = 0; size < k->size_count; size++) {
        const double *request = k->request + (size_t)size * width;
        double dot = 0, cost = 0;
        bool fits = true;
        for (uint32_t r = 0; r < width; r++) {
            fits &= request[r] <= free[r];
            dot += request[r] * weight[r];
            cost += request[r] * offer->cost[r];
        }
        if (!fits || !advance(k, size))
            continue;
        double value = k->value[k->size_items[k->cursor[size]]];
        double placed = cost > 0 ? value / cost : 1;
        if (offer->rated)
            placed = placed < 1 ? sixteenth_power(placed) : 1;
        if (placed < least)
            continue;
        double score = dot * placed;
        if (best == NONE || score > best_score) {
            best = size;
            best_score = score;
        }
    }
    return best;
}

static uint32_t half_of(uint32_t count)
{
    return count > 2 ? (count + 1) / 2 : count;
}

uint32_t packer_put(struct packer *k, uint32_t ix, uint32_t item_ix, uint32_t most)
{
    struct state *s = k->s;
    const struct item *item = &k->items[item_ix];
    const struct variant *v = &s->model->classes[item->class_].variants[item->variant];
    if (k->tier[item_ix] < s->model->pools[s->bins.items[ix].pool].tier)
        return 0; /* a heavier pool can have it */
    if (most > k->left[item_ix])
        most = k->left[item_ix];
    s->premium = (usd_hour)(k->value[item_ix] * (double)USD_HOUR_ONE * PREMIUM);
    uint32_t count = half_of(state_room(s, ix, item->class_, v, item->wants, most));
    s->premium = 0;
    if (!count)
        return 0;
    state_place(s, ix, item->class_, item->variant, item->wants, count);
    k->left[item_ix] -= count;
    vec_push(&k->puts, (struct put){ item_ix, count });
    return count;
}

bool item_is_sticky(const struct model *m, const struct item *item)
{
    const struct variant *v = &m->classes[item->class_].variants[item->variant];
    for (uint32_t i = 0; i < v->owned_count; i++) {
        const struct group *g = &m->groups[v->owned[i]];
        if (g->key == KEY_HOSTNAME && g->kind == GROUP_AFFINITY)
            return true;
    }
    return false;
}

static double fill_once(struct packer *k, uint32_t ix, const struct offer *offer, double least,
                        uint32_t *sticky)
{
    double worth = 0;
    for (uint32_t size = 0; size < k->size_count; size++)
        k->cursor[size] = k->size_start[size];
    for (;;) {
        uint32_t size = best_size(k, &k->s->bins.items[ix], offer, least);
        if (size == NONE)
            return worth;
        uint32_t item = k->size_items[k->cursor[size]];
        uint32_t placed = packer_put(k, ix, item, UINT32_MAX);
        if (!placed)
            k->cursor[size]++; /* not here; what is in the launch will not change that */
        worth += placed * k->value[item];
        if (placed && item_is_sticky(k->s->model, &k->items[item]))
            *sticky += placed;
    }
}

static struct offer offer_of(const struct packer *k, uint32_t ix)
{
    const struct model *m = k->s->model;
    const struct bin *bin = &k->s->bins.items[ix];
    const int64_t *room = m->pools[bin->pool].room + (size_t)bin->machine * m->resource_count;
    double scale;
    const double *unit = worth_rate(k->worth, bin->pool, bin->machine, bin->price, &scale);
    struct offer offer = { .rated = unit != NULL };
    for (uint32_t r = 0; r < m->resource_count; r++) {
        offer.share[r] = room[r] > 0 ? 1 / (double)room[r] : 0;
        offer.cost[r] = offer.rated ? unit[r] * scale : offer.share[r];
    }
    return offer;
}

double packer_fill(struct packer *k, uint32_t ix, bool paying, uint32_t *sticky)
{
    struct offer offer = offer_of(k, ix);
    double least = paying ? sixteenth_power(PAYING) : 0;
    double worth = fill_once(k, ix, &offer, least, sticky);
    /* Pods that want to be near others may have come before them. */
    for (bool again = k->has_sticky; again;) {
        uint32_t before = *sticky;
        worth += fill_once(k, ix, &offer, least, sticky);
        again = *sticky != before;
    }
    return worth;
}
