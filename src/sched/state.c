/* The bookkeeping of a plan in the making. Everything that a placement changes is changed here and
 * nowhere else, so that what was placed can be taken away again.
 */
#include "sched/state.h"

#include <string.h>

#define PLACING_STEPS 8 /* takes as long as weighing so many classes */

/* --- making and ending --- */

static uint8_t rank_of(const struct model *m, const struct pod_class *c)
{
    if (!c->variant_count)
        return RANK_FREE;
    uint8_t rank = RANK_FREE;
    const struct variant *v = &c->variants[0];
    for (uint32_t i = 0; i < v->owned_count; i++) {
        if (m->groups[v->owned[i]].key != KEY_HOSTNAME)
            return RANK_DOMAIN;
        rank = RANK_HOST;
    }
    for (uint32_t i = 0; i < c->matched_count; i++) {
        const struct group *g = &m->groups[c->matched[i]];
        if (g->kind == GROUP_SPREAD)
            continue;
        if (g->key != KEY_HOSTNAME)
            return RANK_DOMAIN;
        if (g->kind == GROUP_AFFINITY)
            rank = RANK_HOST;
    }
    return rank;
}

static int64_t *copy_counts(struct arena *arena, const int64_t *from, uint32_t count)
{
    int64_t *to = arena_array(arena, int64_t, count);
    if (from && count)
        memcpy(to, from, count * sizeof *to);
    return to;
}

static void home_bin(struct state *s, const struct home *home)
{
    const struct model *m = s->model;
    struct bin bin = { .pool = NONE, .machine = NONE, .terms = NONE, .reserved = NONE };
    bin.free = copy_counts(s->arena, home->free, m->resource_count);
    bin.domains = arena_array(s->arena, uint32_t, m->key_count);
    memcpy(bin.domains, home->domains, m->key_count * sizeof *bin.domains);
    for (uint32_t i = 0; i < home->tally_count; i++) {
        const struct tally *t = &home->tallies[i];
        struct bin_tally tally = { .group = t->group };
        tally.matched[RANK_HOST] = t->matched;
        tally.owners[RANK_HOST] = t->owners;
        vec_push(&bin.tallies, tally);
    }
    for (uint32_t i = 0; i < home->port_count; i++)
        vec_push(&bin.ports, home->ports[i]);
    for (uint32_t i = 0; i < home->room_count; i++)
        vec_push(&bin.rooms, home->rooms[i]);
    for (uint32_t i = 0; i < home->claim_count; i++)
        vec_push(&bin.claims, home->claims[i]);
    vec_push(&s->bins, bin);
}

static uint64_t request_hash(const struct model *m, const int64_t *request)
{
    uint64_t h = 0;
    for (uint32_t r = 0; r < m->resource_count; r++)
        h = kv_mix64(h ^ (uint64_t)request[r]);
    return h;
}

static void find_sizes(struct state *s)
{
    const struct model *m = s->model;
    struct map first = { 0 }; /* hash to the first class of the size */
    uint32_t count = 0;
    s->sizes = arena_array(s->arena, uint32_t, m->class_count);
    for (uint32_t c = 0; c < m->class_count; c++) {
        const int64_t *request = m->classes[c].request;
        uint64_t hash = request_hash(m, request);
        uintptr_t like;
        while (map_get(&first, hash, &like) &&
               memcmp(m->classes[like].request, request, m->resource_count * sizeof *request) != 0)
            hash++;
        bool known = map_get(&first, hash, &like);
        s->sizes[c] = known ? s->sizes[like] : count++;
        if (!known)
            map_put(&first, hash, c);
    }
    map_done(&first);
}

static struct bitset present_domains(struct state *s, const struct group *g)
{
    const struct model *m = s->model;
    struct bitset present = bitset_new(s->arena, m->keys[g->key].domain_count);
    if (g->kind == GROUP_SPREAD && g->key != KEY_HOSTNAME)
        bitset_each(&g->homes, h)
            if (m->homes[h].domains[g->key] != NONE)
                bitset_set(&present, m->homes[h].domains[g->key]);
    return present;
}

void state_init(struct state *s, struct model *m, struct arena *arena)
{
    *s = (struct state){ .model = m, .arena = arena };
    reservations_reset(m);
    s->ranks = arena_array(arena, uint8_t, m->class_count);
    for (uint32_t i = 0; i < m->class_count; i++)
        s->ranks[i] = rank_of(m, &m->classes[i]);
    find_sizes(s);
    s->groups = arena_array(arena, struct group_count, m->group_count);
    for (uint32_t i = 0; i < m->group_count; i++) {
        const struct group *g = &m->groups[i];
        uint32_t domains = m->keys[g->key].domain_count;
        s->groups[i] = (struct group_count){ copy_counts(arena, g->matched, domains),
                                             copy_counts(arena, g->owners, domains), g->total,
                                             present_domains(s, g) };
    }
    s->launched = arena_array(arena, struct bitset, m->key_count);
    for (uint32_t k = 0; k < m->key_count; k++)
        s->launched[k] = bitset_new(arena, m->keys[k].domain_count);
    s->pools = arena_array(arena, struct pool_left, m->pool_count);
    for (uint32_t i = 0; i < m->pool_count; i++) {
        const struct pool *pool = &m->pools[i];
        s->pools[i].limits = arena_array(arena, int64_t, pool->limit_count);
        for (uint32_t k = 0; k < pool->limit_count; k++)
            s->pools[i].limits[k] = pool->limits[k].left;
        s->pools[i].nodes = pool->nodes_left;
    }
    for (uint32_t i = 0; i < m->home_count; i++)
        home_bin(s, &m->homes[i]);
}

void state_done(struct state *s)
{
    vec_each(&s->bins, struct bin, bin) {
        vec_done(&bin->tallies);
        vec_done(&bin->ports);
        vec_done(&bin->rooms);
        vec_done(&bin->claims);
        vec_done(&bin->placements);
    }
    vec_done(&s->bins);
    vec_done(&s->spare);
    vec_done(&s->choices);
    map_done(&s->possible);
    vec_done(&s->outlooks);
    map_done(&s->domains_of);
}

/* --- tallies of hostname groups --- */

static const struct bin_tally *tally_find(const struct bin *bin, uint32_t group)
{
    for (size_t i = 0; i < bin->tallies.count; i++)
        if (bin->tallies.items[i].group >= group)
            return bin->tallies.items[i].group == group ? &bin->tallies.items[i] : NULL;
    return NULL;
}

static struct bin_tally *tally_of(struct bin *bin, uint32_t group)
{
    size_t i = 0;
    while (i < bin->tallies.count && bin->tallies.items[i].group < group)
        i++;
    if (i < bin->tallies.count && bin->tallies.items[i].group == group)
        return &bin->tallies.items[i];
    vec_push(&bin->tallies, (struct bin_tally){ .group = group });
    for (size_t k = bin->tallies.count - 1; k > i; k--)
        bin->tallies.items[k] = bin->tallies.items[k - 1];
    bin->tallies.items[i] = (struct bin_tally){ .group = group };
    return &bin->tallies.items[i];
}

static uint32_t matched_up_to(const struct bin_tally *maybe_t, uint8_t rank)
{
    uint32_t sum = 0;
    for (uint8_t r = 0; maybe_t && r <= rank; r++)
        sum += maybe_t->matched[r];
    return sum;
}

static void tally_class(struct state *s, uint32_t ix, uint32_t class_, const struct variant *v,
                        int64_t count)
{
    const struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    struct bin *bin = &s->bins.items[ix];
    uint8_t rank = s->ranks[class_];
    uint32_t n = (uint32_t)count; /* wraps when it is negative, and back */
    for (uint32_t i = 0; i < c->matched_count; i++) {
        const struct group *g = &m->groups[c->matched[i]];
        if (g->key != KEY_HOSTNAME)
            continue;
        tally_of(bin, c->matched[i])->matched[rank] += n;
        s->groups[c->matched[i]].total += count;
    }
    for (uint32_t i = 0; i < v->owned_count; i++) {
        const struct group *g = &m->groups[v->owned[i]];
        if (g->key == KEY_HOSTNAME && (g->kind != GROUP_ANTI || class_requires(c, v->owned[i])))
            tally_of(bin, v->owned[i])->owners[rank] += n;
    }
}

/* --- room --- */

/* How many of `want` pods of the class hostname groups let onto the bin. */
static uint32_t room_by_groups(const struct state *s, const struct bin *bin, uint32_t class_,
                               const struct variant *v, uint32_t want)
{
    const struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    uint8_t rank = s->ranks[class_];
    for (uint32_t i = 0; i < v->owned_count && want; i++) {
        const struct group *g = &m->groups[v->owned[i]];
        if (g->key != KEY_HOSTNAME)
            continue;
        const struct bin_tally *t = tally_find(bin, v->owned[i]);
        bool self = class_matched(c, v->owned[i]);
        if (g->kind == GROUP_SPREAD) {
            int64_t room = g->max_skew - (int64_t)matched_up_to(t, rank);
            if (room < (self ? 1 : 0))
                return 0;
            if (self && room < want)
                want = (uint32_t)room;
        } else if (g->kind == GROUP_ANTI) {
            if (matched_up_to(t, RANK_FREE))
                return 0;
            if (self)
                want = 1;
        } else if (!matched_up_to(t, RANK_FREE)) {
            /* The first of its kind may go anywhere, but then there is one home for all. */
            if (s->groups[v->owned[i]].total || !self)
                return 0;
        }
    }
    for (uint32_t i = 0; i < c->matched_count && want; i++) {
        const struct group *g = &m->groups[c->matched[i]];
        const struct bin_tally *t = g->key == KEY_HOSTNAME && g->kind != GROUP_AFFINITY
                                        ? tally_find(bin, c->matched[i])
                                        : NULL;
        if (!t)
            continue;
        if (g->kind == GROUP_ANTI && t->owners[0] + t->owners[1] + t->owners[2])
            return 0;
        /* Among pods that are placed domain by domain the order is not ours to choose. */
        if (g->kind == GROUP_SPREAD && rank == RANK_DOMAIN && t->owners[RANK_DOMAIN]) {
            int64_t room = g->max_skew - (int64_t)matched_up_to(t, rank);
            if (room < 1)
                return 0;
            if (room < want)
                want = (uint32_t)room;
        }
    }
    return want;
}

static bool ports_conflict(const struct model *m, const struct bin *bin, const struct pod_class *c)
{
    for (uint32_t i = 0; i < c->port_count; i++)
        for (size_t k = 0; k < bin->ports.count; k++)
            if (bitset_test(&m->ports[c->ports[i]].conflicts, bin->ports.items[k]))
                return true;
    return false;
}

static bool claim_in_use(const struct bin *bin, uint32_t claim)
{
    for (size_t i = 0; i < bin->claims.count; i++)
        if (bin->claims.items[i] == claim)
            return true;
    return false;
}

static uint32_t room_by_volumes(const struct bin *bin, const struct pod_class *c, uint32_t want)
{
    for (size_t k = 0; k < bin->rooms.count && want; k++) {
        const struct volume_room *room = &bin->rooms.items[k];
        int64_t own = 0, shared = 0;
        for (uint32_t i = 0; i < c->volume_count; i++) {
            const struct class_volume *v = &c->volumes[i];
            if (v->driver != room->driver)
                continue;
            if (v->claim == NONE)
                own++;
            else if (!claim_in_use(bin, v->claim))
                shared++;
        }
        if (own + shared == 0)
            continue;
        int64_t left = room->left - shared;
        if (left < own)
            return 0;
        if (own && left / own < want)
            want = (uint32_t)(left / own);
    }
    return want;
}

static uint32_t room_by_resources(const struct model *m, const struct bin *bin,
                                  const struct pod_class *c, uint32_t want)
{
    for (uint32_t r = 0; r < m->resource_count && want; r++) {
        if (bin->free[r] < 0)
            return 0;
        if (c->request[r] > 0 && bin->free[r] / c->request[r] < want)
            want = (uint32_t)(bin->free[r] / c->request[r]);
    }
    return want;
}

/* Strict minValues: of the machines that still have room for `extra` pods of the class there must be
 * enough different ones, none larger than the planned one where limits are (launch_form.c). */
static bool min_values_met(struct state *s, const struct bin *bin, uint32_t terms,
                           const int64_t *maybe_request, uint32_t extra)
{
    struct model *m = s->model;
    const struct terms *t = terms_at(m, terms);
    if (!t->has_min_values || m->options.min_values != MIN_VALUES_STRICT)
        return true;
    const struct pool *pool = &m->pools[bin->pool];
    uint32_t width = m->resource_count;
    const int64_t *whole = pool->room + (size_t)bin->machine * width;
    AUTO_ARENA scratch = { 0 };
    struct bitset left = bitset_new(&scratch, pool->machine_count);
    bitset_copy(&left, &t->machines);
    s->steps += 4 * (uint64_t)pool->machine_count;
    bitset_each(&left, i) {
        const int64_t *room = pool->room + (size_t)i * width;
        bool kept = machine_no_larger(pool, i, bin->machine);
        for (uint32_t r = 0; r < width && kept; r++)
            kept =
                whole[r] - bin->free[r] + (maybe_request ? maybe_request[r] * extra : 0) <= room[r];
        if (!kept)
            bitset_clear(&left, i);
    }
    return terms_min_values(m, terms, &left, &scratch, NULL);
}

bool state_min_values_met(struct state *s, uint32_t ix, uint32_t terms)
{
    return min_values_met(s, &s->bins.items[ix], terms, NULL, 0);
}

static uint32_t room_by_min_values(struct state *s, const struct bin *bin,
                                   const struct pod_class *c, uint32_t wants, uint32_t want)
{
    uint32_t terms = terms_join(s->model, bin->terms, wants);
    while (want && !min_values_met(s, bin, terms, c->request, want))
        want /= 2;
    return want;
}

static bool launch_admits(struct state *s, const struct bin *bin, const struct variant *v,
                          uint32_t wants)
{
    struct model *m = s->model;
    if (!taints_tolerated(m, v->tolerance, m->pools[bin->pool].taints))
        return false;
    uint32_t joined = terms_join(m, bin->terms, wants);
    if (joined == bin->terms)
        return true;
    if (joined == NONE)
        return false;
    /* A pod that makes the machine much dearer is better off elsewhere. */
    const struct terms *t = terms_at(m, joined);
    return bitset_test(&t->machines, bin->machine) &&
           t->price[bin->machine] - bin->price <= s->premium;
}

uint32_t state_room(struct state *s, uint32_t ix, uint32_t class_, const struct variant *v,
                    uint32_t wants, uint32_t want)
{
    struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    struct bin *bin = &s->bins.items[ix];
    s->steps++;
    want = room_by_resources(m, bin, c, want);
    if (!want)
        return 0;
    if (bin_is_home(s, ix)) {
        const struct home *home = &m->homes[ix];
        if (!taints_tolerated(m, v->tolerance, home->taints) || !home_admits(m, home, wants))
            return 0;
        want = room_by_volumes(bin, c, want);
    } else {
        if (!launch_admits(s, bin, v, wants))
            return 0;
        want = room_by_min_values(s, bin, c, wants, want);
    }
    if (c->port_count && want) {
        if (ports_conflict(m, bin, c))
            return 0;
        want = 1;
    }
    return want ? room_by_groups(s, bin, class_, v, want) : 0;
}

bool state_host_admits(const struct state *s, uint32_t ix, uint32_t class_, const struct variant *v)
{
    const struct bin *bin = &s->bins.items[ix];
    return !ports_conflict(s->model, bin, &s->model->classes[class_]) &&
           room_by_groups(s, bin, class_, v, 1);
}

/* --- placing --- */

static void join(struct state *s, struct bin *bin, uint32_t wants)
{
    uint32_t joined = terms_join(s->model, bin->terms, wants);
    KV_ASSERT(joined != NONE);
    if (joined == bin->terms)
        return;
    bin->terms = joined;
    usd_hour price = terms_at(s->model, joined)->price[bin->machine];
    s->price += price - bin->price;
    bin->price = price;
    launch_set_domains(s, bin);
}

void state_count(struct state *s, uint32_t class_, uint32_t variant, uint32_t key, uint32_t domain,
                 int64_t count)
{
    const struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    const struct variant *v = &c->variants[variant];
    for (uint32_t i = 0; i < c->matched_count; i++) {
        if (m->groups[c->matched[i]].key != key)
            continue;
        s->groups[c->matched[i]].matched[domain] += count;
        s->groups[c->matched[i]].total += count;
    }
    for (uint32_t i = 0; i < v->owned_count; i++) {
        const struct group *g = &m->groups[v->owned[i]];
        if (g->key == key && g->kind == GROUP_ANTI && class_requires(c, v->owned[i]))
            s->groups[v->owned[i]].owners[domain] += count;
    }
}

/* A home counts where its labels say it is; groups with a node filter may pass it over. */
static void count_at_home(struct state *s, uint32_t ix, uint32_t class_, uint32_t variant,
                          int64_t count)
{
    const struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    const struct variant *v = &c->variants[variant];
    const struct bin *bin = &s->bins.items[ix];
    for (uint32_t i = 0; i < c->matched_count; i++) {
        const struct group *g = &m->groups[c->matched[i]];
        if (g->key == KEY_HOSTNAME)
            continue;
        s->groups[c->matched[i]].total += count;
        if (bin->domains[g->key] != NONE && (g->kind != GROUP_SPREAD || bitset_test(&g->homes, ix)))
            s->groups[c->matched[i]].matched[bin->domains[g->key]] += count;
    }
    for (uint32_t i = 0; i < v->owned_count; i++) {
        const struct group *g = &m->groups[v->owned[i]];
        if (g->key != KEY_HOSTNAME && g->kind == GROUP_ANTI && bin->domains[g->key] != NONE &&
            class_requires(c, v->owned[i]))
            s->groups[v->owned[i]].owners[bin->domains[g->key]] += count;
    }
}

void state_place(struct state *s, uint32_t ix, uint32_t class_, uint32_t variant, uint32_t wants,
                 uint32_t count)
{
    struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    const struct variant *v = &c->variants[variant];
    struct bin *bin = &s->bins.items[ix];
    s->steps += PLACING_STEPS;
    for (uint32_t r = 0; r < m->resource_count; r++)
        bin->free[r] -= c->request[r] * count;
    for (uint32_t i = 0; i < c->port_count; i++)
        vec_push(&bin->ports, c->ports[i]);
    if (bin_is_home(s, ix)) {
        for (uint32_t i = 0; i < c->volume_count; i++) {
            const struct class_volume *volume = &c->volumes[i];
            bool shared = volume->claim != NONE;
            if (shared && claim_in_use(bin, volume->claim))
                continue;
            if (shared)
                vec_push(&bin->claims, volume->claim);
            vec_each(&bin->rooms, struct volume_room, room)
                if (room->driver == volume->driver)
                    room->left -= shared ? 1 : count;
        }
        count_at_home(s, ix, class_, variant, count);
    } else {
        join(s, bin, wants);
    }
    tally_class(s, ix, class_, v, count);
    bin = &s->bins.items[ix];
    if (bin->placements.count) {
        struct placement *last = &vec_last(&bin->placements);
        if (last->class_ == class_ && last->variant == variant && last->wants == wants) {
            last->count += count;
            return;
        }
    }
    vec_push(&bin->placements, (struct placement){ class_, variant, wants, count });
}

void state_take(struct state *s, uint32_t ix, uint32_t placement, uint32_t count)
{
    const struct model *m = s->model;
    struct bin *bin = &s->bins.items[ix];
    KV_ASSERT(!bin_is_home(s, ix));
    struct placement *p = &bin->placements.items[placement];
    KV_ASSERT(count <= p->count);
    s->steps += PLACING_STEPS;
    const struct pod_class *c = &m->classes[p->class_];
    for (uint32_t r = 0; r < m->resource_count; r++)
        bin->free[r] += c->request[r] * count;
    if (c->port_count) {
        size_t kept = 0; /* one pod of a class with ports is on a bin at most */
        for (size_t i = 0; i < bin->ports.count; i++) {
            bool mine = false;
            for (uint32_t k = 0; k < c->port_count; k++)
                mine |= c->ports[k] == bin->ports.items[i];
            if (!mine)
                bin->ports.items[kept++] = bin->ports.items[i];
        }
        bin->ports.count = kept;
    }
    tally_class(s, ix, p->class_, &c->variants[p->variant], -(int64_t)count);
    p->count -= count;
    if (p->count == 0) {
        memmove(p, p + 1, (bin->placements.count - placement - 1) * sizeof *bin->placements.items);
        bin->placements.count--;
    }
}

int64_t state_spread_minimum(const struct group *g, const struct group_count *live,
                             const struct bitset *others)
{
    int64_t min = INT64_MAX, count = 0;
    for (uint32_t d = 0; d < others->bit_count; d++) {
        if (!bitset_test(&live->present, d) &&
            !(bitset_test(others, d) && bitset_test(&g->eligible, d)))
            continue;
        count++;
        if (live->matched[d] < min)
            min = live->matched[d];
    }
    return count == 0 || count < g->min_domains ? 0 : min;
}
