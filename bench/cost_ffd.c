/* Pods by cpu, then memory, the largest first; each onto the first planned node that can take it. A
 * planned node is not one machine but all that could still hold what is on it: the set shrinks with
 * every pod, and what is launched in the end is the cheapest that is left. Where no node will do, a new
 * one is planned, of the first pool by weight; of pools of equal weight, the one in which the pod
 * alone is cheapest (better than upstream, which goes by name).
 *
 * A spread over zones takes the zone with the fewest pods, and pins the node to it.
 */
#include "bench/cost_ffd.h"

#include "base/vec.h"

#include <stdlib.h>
#include <string.h>

struct planned {
    uint32_t terms;
    struct bitset machines; /* that could hold it all */
    int64_t *requests;      /* [resource] */
    int64_t *most;          /* [resource]: the most that any of the machines has */
    uint32_t *owners;       /* [group]: pods on it that own the group and are found by it */
};

struct packing {
    struct model *m;
    struct arena *arena;
    VEC(struct planned) nodes;
    int64_t **counts; /* [group][domain]: of spreads over zones */
    struct bitset scratch;
};

/* --- topology, among pods of one workload --- */

static bool counts_itself(const struct pod_class *c, uint32_t group)
{
    for (uint32_t i = 0; i < c->matched_count; i++)
        if (c->matched[i] == group)
            return true;
    return false;
}

/* May one more pod of the class share that host with those of its kin that are there? */
static bool host_allows(const struct packing *k, const struct planned *node,
                        const struct pod_class *c)
{
    const struct variant *v = &c->variants[0];
    for (uint32_t i = 0; i < v->owned_count; i++) {
        const struct group *g = &k->m->groups[v->owned[i]];
        int64_t most = g->kind == GROUP_ANTI ? 1 : g->max_skew;
        if (g->key == KEY_HOSTNAME && counts_itself(c, v->owned[i]) &&
            node->owners[v->owned[i]] >= most)
            return false;
    }
    return true;
}

static uint32_t zone_group(const struct packing *k, const struct pod_class *c)
{
    const struct variant *v = &c->variants[0];
    for (uint32_t i = 0; i < v->owned_count; i++)
        if (k->m->groups[v->owned[i]].key != KEY_HOSTNAME)
            return v->owned[i];
    return NONE;
}

/* The domain with the fewest pods among those a pod may still go to and that are not in `tried`. */
static uint32_t next_domain(const struct packing *k, uint32_t group, const struct bitset *tried)
{
    const struct group *g = &k->m->groups[group];
    const int64_t *counts = k->counts[group];
    int64_t least = INT64_MAX;
    uint32_t best = NONE;
    bitset_each(&g->eligible, d)
        least = counts[d] < least ? counts[d] : least;
    bitset_each(&g->eligible, d)
        if (!bitset_test(tried, d) && counts[d] + 1 - least <= g->max_skew &&
            (best == NONE || counts[d] < counts[best]))
            best = d;
    return best;
}

/* --- nodes --- */

static const int64_t *room_of(const struct packing *k, uint32_t pool, uint32_t machine)
{
    return k->m->pools[pool].room + (size_t)machine * k->m->resource_count;
}

static bool holds(const struct packing *k, const int64_t *room, const int64_t *a, const int64_t *b)
{
    for (uint32_t r = 0; r < k->m->resource_count; r++)
        if (a[r] + b[r] > room[r])
            return false;
    return true;
}

/* Leaves in `scratch` the machines that could hold what is there and the pod. */
static bool narrow(struct packing *k, const struct planned *node, const struct terms *terms,
                   const int64_t *request)
{
    bitset_and_into(&k->scratch, &node->machines, &terms->machines);
    bitset_each(&k->scratch, t)
        if (!holds(k, room_of(k, terms->pool, t), node->requests, request))
            bitset_clear(&k->scratch, t);
    return bitset_any(&k->scratch);
}

static void settle(struct packing *k, struct planned *node, uint32_t terms,
                   const struct pod_class *c)
{
    uint32_t width = k->m->resource_count, pool = terms_at(k->m, terms)->pool;
    node->terms = terms;
    bitset_copy(&node->machines, &k->scratch);
    memset(node->most, 0, width * sizeof *node->most);
    bitset_each(&node->machines, t)
        for (uint32_t r = 0; r < width; r++)
            if (room_of(k, pool, t)[r] > node->most[r])
                node->most[r] = room_of(k, pool, t)[r];
    for (uint32_t r = 0; r < width; r++)
        node->requests[r] += c->request[r];
    for (uint32_t i = 0; i < c->variants[0].owned_count; i++)
        node->owners[c->variants[0].owned[i]] += counts_itself(c, c->variants[0].owned[i]);
}

/* With these wants, which are the class's, perhaps pinned to a zone. */
static bool join(struct packing *k, struct planned *node, const struct pod_class *c, uint32_t wants)
{
    const struct model *m = k->m;
    uint32_t pool = terms_at(k->m, node->terms)->pool;
    if (!holds(k, node->most, node->requests, c->request) || !host_allows(k, node, c) ||
        !taints_tolerated(m, c->variants[0].tolerance, m->pools[pool].taints))
        return false;
    uint32_t terms = terms_join(k->m, node->terms, wants);
    if (terms == NONE || !narrow(k, node, terms_at(k->m, terms), c->request))
        return false;
    settle(k, node, terms, c);
    return true;
}

static struct planned planned_new(struct packing *k, uint32_t pool)
{
    const struct pool *p = &k->m->pools[pool];
    struct planned node = {
        .terms = p->terms,
        .machines = bitset_new(k->arena, p->machine_count),
        .requests = arena_array(k->arena, int64_t, k->m->resource_count),
        .most = arena_array(k->arena, int64_t, k->m->resource_count),
        .owners = arena_array(k->arena, uint32_t, k->m->group_count),
    };
    bitset_fill(&node.machines);
    for (uint32_t r = 0; r < k->m->resource_count; r++)
        node.most[r] = INT64_MAX / 2;
    return node;
}

static usd_hour price_of(struct packing *k, const struct planned *node)
{
    const struct terms *terms = terms_at(k->m, node->terms);
    usd_hour least = USD_HOUR_MAX;
    bitset_each(&node->machines, t)
        least = terms->price[t] < least ? terms->price[t] : least;
    return least;
}

/* Pools differ in how many machines they have. */
static void scratch_for(struct packing *k, uint32_t pool)
{
    k->scratch.bit_count = k->m->pools[pool].machine_count;
}

/* A node of its own. */
static bool open_node(struct packing *k, const struct pod_class *c, uint32_t wants)
{
    usd_hour least = USD_HOUR_MAX;
    uint32_t tier = NONE;
    struct planned best;
    for (uint32_t p = 0; p < k->m->pool_count; p++) {
        struct planned node = planned_new(k, p);
        scratch_for(k, p);
        if (k->m->pools[p].tier > tier || !join(k, &node, c, wants) || price_of(k, &node) >= least)
            continue;
        tier = k->m->pools[p].tier;
        least = price_of(k, &node);
        best = node;
    }
    if (tier != NONE)
        vec_push(&k->nodes, best);
    return tier != NONE;
}

static bool place_with(struct packing *k, const struct pod_class *c, uint32_t wants)
{
    vec_each(&k->nodes, struct planned, node) {
        scratch_for(k, terms_at(k->m, node->terms)->pool);
        if (join(k, node, c, wants))
            return true;
    }
    return open_node(k, c, wants);
}

static bool place(struct packing *k, const struct pod_class *c)
{
    uint32_t group = zone_group(k, c), wants = c->variants[0].wants;
    if (group == NONE)
        return place_with(k, c, wants);
    const struct group *g = &k->m->groups[group];
    struct bitset tried = bitset_new(k->arena, g->eligible.bit_count);
    for (uint32_t d; (d = next_domain(k, group, &tried)) != NONE; bitset_set(&tried, d)) {
        uint32_t pinned = wants_pin(k->m, wants, g->key, d);
        if (pinned != NONE && place_with(k, c, pinned)) {
            k->counts[group][d]++;
            return true;
        }
    }
    return false;
}

/* --- all pods --- */

static int by_size(const void *a, const void *b)
{
    const struct pod_class *x = *(const struct pod_class *const *)a,
                           *y = *(const struct pod_class *const *)b;
    for (uint32_t r = RESOURCE_CPU; r <= RESOURCE_MEMORY; r++)
        if (x->request[r] != y->request[r])
            return x->request[r] > y->request[r] ? -1 : 1;
    return x < y ? -1 : x > y; /* all in one array */
}

struct ffd ffd_pack(struct model *m)
{
    AUTO_ARENA arena = { 0 };
    uint32_t machines_max = 0;
    for (uint32_t p = 0; p < m->pool_count; p++)
        if (m->pools[p].machine_count > machines_max)
            machines_max = m->pools[p].machine_count;
    struct packing k = { .m = m, .arena = &arena, .scratch = bitset_new(&arena, machines_max) };
    k.counts = arena_array(&arena, int64_t *, m->group_count);
    for (uint32_t g = 0; g < m->group_count; g++)
        k.counts[g] = arena_array(&arena, int64_t, m->keys[m->groups[g].key].domain_count);
    const struct pod_class **order = arena_array(&arena, const struct pod_class *, m->class_count);
    for (uint32_t c = 0; c < m->class_count; c++)
        order[c] = &m->classes[c];
    if (m->class_count)
        qsort(order, m->class_count, sizeof *order, by_size);

    struct ffd result = { 0 };
    for (uint32_t i = 0; i < m->class_count; i++)
        for (uint32_t n = 0; n < order[i]->count; n++)
            result.unplaced += !place(&k, order[i]);
    vec_each(&k.nodes, struct planned, node)
        result.price += price_of(&k, node);
    result.node_count = (uint32_t)k.nodes.count;
    vec_done(&k.nodes);
    return result;
}
