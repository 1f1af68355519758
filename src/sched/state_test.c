/* What a plan in the making counts: by hand in a small world, and in random ones counted again from
 * scratch after every move.
 */
#include "sched/property_testing.h"
#include "sched/state_recount_testing.h"

#define POOL WORLD_POOL("p", "[]", "")
#define NODE(name) WORLD_NODE(name, "zone-a", "", "cpu: 4, memory: 8Gi")

/* --- counts of wider domains --- */

TEST(placing_on_a_home_counts_in_its_zone_and_placing_on_a_launch_does_not)
{
    STATED t = { 0 };
    stated_load(
        &t, POOL NODE("a") WORLD_POD("w", "{app: w}", "{cpu: 1m}", SPREADS(SPREAD(ZONE, "1", "w"))),
        NULL);
    uint32_t zone = domain_named(&t, ZONE, "zone-a"), other = domain_named(&t, ZONE, "zone-b");
    placed(&t, home_named(&t, "a"), "w", 2);
    placed(&t, opened(&t, "p", "small"), "w", 3);
    EXPECT_EQ(t.s.groups[0].matched[zone], 2);
    EXPECT_EQ(t.s.groups[0].total, 2);
    state_count(&t.s, class_named(&t, "w"), 0, key_named(&t, ZONE), other, 3);
    EXPECT_EQ(t.s.groups[0].matched[other], 3);
    EXPECT_EQ(t.s.groups[0].total, 5);
    state_count(&t.s, class_named(&t, "w"), 0, key_named(&t, ZONE), other, -3);
    EXPECT_EQ(t.s.groups[0].matched[other], 0);
    EXPECT_EQ(t.s.groups[0].total, 2);
}

TEST(the_least_count_of_a_spread_is_over_domains_that_count_and_nought_below_min_domains)
{
    AUTO_ARENA arena = { 0 };
    int64_t matched[] = { 3, 1, 2, 0 };
    struct group g = { .kind = GROUP_SPREAD, .eligible = bitset_new(&arena, 4) };
    struct group_count live = { .matched = matched, .present = bitset_new(&arena, 4) };
    struct bitset others = bitset_new(&arena, 4);
    EXPECT_EQ(state_spread_minimum(&g, &live, &others), 0); /* of nothing */
    bitset_set(&live.present, 0);
    EXPECT_EQ(state_spread_minimum(&g, &live, &others), 3);
    bitset_set(&others, 2); /* it does not pass the filter */
    EXPECT_EQ(state_spread_minimum(&g, &live, &others), 3);
    bitset_set(&g.eligible, 2);
    bitset_set(&g.eligible, 3); /* nobody can be launched there */
    EXPECT_EQ(state_spread_minimum(&g, &live, &others), 2);
    g.min_domains = 2;
    EXPECT_EQ(state_spread_minimum(&g, &live, &others), 2);
    g.min_domains = 3;
    EXPECT_EQ(state_spread_minimum(&g, &live, &others), 0);
}

/* --- random worlds: random moves --- */

static uint32_t dice(struct rng *rng, size_t n)
{
    return (uint32_t)rng_below(rng, n);
}

static bool open_any(struct state *s, struct rng *rng)
{
    if (!s->model->pool_count)
        return true;
    uint32_t p = dice(rng, s->model->pool_count);
    const struct pool *pool = &s->model->pools[p];
    uint32_t machine = pool->machine_count ? dice(rng, pool->machine_count) : NONE;
    if (machine != NONE && bitset_test(&terms_at(s->model, pool->terms)->machines, machine) &&
        state_allowed(s, p, machine, 1))
        state_open(s, p, machine, pool->terms);
    return true;
}

/* As many as there is room for; then there must be no more. */
static bool place_any(struct state *s, struct rng *rng, uint32_t first_bin, struct buf *why)
{
    const struct model *m = s->model;
    if (!m->class_count || s->bins.count <= first_bin)
        return true;
    uint32_t class_ = dice(rng, m->class_count);
    uint32_t ix = first_bin + dice(rng, s->bins.count - first_bin), want = 1 + dice(rng, 5);
    const struct pod_class *c = &m->classes[class_];
    if (!c->variant_count || !bin_is_live(s, ix))
        return true;
    uint32_t variant = dice(rng, c->variant_count);
    const struct variant *v = &c->variants[variant];
    s->premium = dice(rng, 2) ? USD_HOUR_ONE : 0;
    uint32_t room = state_room(s, ix, class_, v, v->wants, want);
    if (!room)
        return true;
    state_place(s, ix, class_, variant, v->wants, room);
    bool min_values =
        !bin_is_home(s, ix) && terms_at(s->model, s->bins.items[ix].terms)->has_min_values;
    if (room > want || (room < want && !min_values && state_room(s, ix, class_, v, v->wants, 1)))
        buf_addf(why, "there is room for %u of %u pods of class %u on bin %u, and then for more\n",
                 room, want, class_, ix);
    return why->len == 0;
}

static void take_any(struct state *s, struct rng *rng)
{
    uint32_t homes = s->model->home_count;
    if (s->bins.count <= homes)
        return;
    uint32_t ix = homes + dice(rng, s->bins.count - homes);
    size_t placements = s->bins.items[ix].placements.count;
    if (!bin_is_live(s, ix))
        return;
    if (!placements || dice(rng, 4) == 0) {
        launch_dissolve(s, ix);
        return;
    }
    uint32_t at = dice(rng, placements);
    state_take(s, ix, at, 1 + dice(rng, s->bins.items[ix].placements.items[at].count));
}

static bool moves_are_counted(struct state *s, struct rng *rng, struct buf *why)
{
    AUTO_BUF before = { 0 }, after = { 0 };
    for (uint32_t i = 0; i < 30; i++)
        if (!place_any(s, rng, 0, why))
            return false;
    if (!recounted(s, why))
        return false;
    text_of_state(s, &before);
    for (uint32_t i = 0; i < 120; i++) {
        bool ok = true;
        uint32_t move = dice(rng, 10);
        if (move < 2)
            ok = open_any(s, rng);
        else if (move < 8)
            ok = place_any(s, rng, s->model->home_count, why);
        else
            take_any(s, rng);
        if (!ok || !recounted(s, why))
            return false;
    }
    for (uint32_t ix = s->model->home_count; ix < s->bins.count; ix++)
        if (bin_is_live(s, ix))
            launch_dissolve(s, ix);
    text_of_state(s, &after);
    if (!str_eq(buf_str(&before), buf_str(&after)))
        buf_addf(why, "before:\n%s\nafter:\n%s\n", buf_str(&before).p, buf_str(&after).p);
    return why->len == 0;
}

/* A state of a random world, and dice of the same seed. */
static bool on_random_state(const struct random_world *r, struct buf *why,
                            bool (*holds)(struct state *s, struct rng *rng, struct buf *why))
{
    STATED t = { 0 };
    struct rng rng;
    rng_init(&rng, r->seed);
    random_world_load(&t.modelled.w, r, 1, "");
    t.modelled.w.options.min_values = r->seed % 4 ? MIN_VALUES_STRICT : MIN_VALUES_BEST_EFFORT;
    stated_again(&t);
    return holds(&t.s, &rng, why);
}

static bool counts_hold(const struct random_world *r, struct buf *why)
{
    return on_random_state(r, why, moves_are_counted);
}

TEST(placing_and_taking_away_keep_every_count_and_restore_it)
{
    property_check("every count", false, 150, counts_hold);
}

/* --- the right size, by asking every machine --- */

static bool holds_all(const struct state *s, const struct bin *bin, uint32_t machine)
{
    const struct model *m = s->model;
    const int64_t *room = m->pools[bin->pool].room + (size_t)machine * m->resource_count;
    for (uint32_t r = 0; r < m->resource_count; r++) {
        int64_t used = 0;
        vec_each(&bin->placements, const struct placement, p)
            used += p->count * m->classes[p->class_].request[r];
        if (used > room[r])
            return false;
    }
    return true;
}

/* Would its place in the limits do for that machine? */
static bool may_become(struct state *s, const struct bin *bin, uint32_t machine)
{
    const struct pool *pool = &s->model->pools[bin->pool];
    for (uint32_t i = 0; i < pool->limit_count; i++) {
        int64_t left = s->pools[bin->pool].limits[i] + pool->limits[i].capacity[bin->machine];
        if (pool->limits[i].capacity[machine] > left)
            return false;
    }
    return true;
}

static bool sizes_are_right(struct state *s, struct rng *rng, struct buf *why)
{
    for (uint32_t i = 0; i < 60; i++) {
        open_any(s, rng);
        if (!place_any(s, rng, s->model->home_count, why))
            return false;
    }
    for (uint32_t ix = s->model->home_count; ix < s->bins.count; ix++) {
        const struct bin *bin = &s->bins.items[ix];
        const struct terms *t = terms_at(s->model, bin->terms);
        const struct pool *pool = &s->model->pools[bin->pool];
        uint32_t right = launch_right_size(s, ix);
        if (right == bin->machine) {
            if (t->has_min_values || pool->daemon_ports)
                continue; /* others might not do */
        } else if (!bitset_test(&t->machines, right) || !holds_all(s, bin, right) ||
                   !may_become(s, bin, right) || t->price[right] >= bin->price) {
            buf_addf(why, "launch %u cannot be machine %u\n", ix, right);
        }
        bitset_each(&t->machines, k)
            if (!pool->daemon_ports && holds_all(s, bin, k) && may_become(s, bin, k) &&
                t->price[k] < t->price[right])
                buf_addf(why, "launch %u could be machine %u, which costs less than %u\n", ix, k,
                         right);
    }
    return why->len == 0;
}

static bool right_sizes_hold(const struct random_world *r, struct buf *why)
{
    return on_random_state(r, why, sizes_are_right);
}

TEST(the_right_size_is_what_asking_every_machine_finds)
{
    property_check("the right size", false, 100, right_sizes_hold);
}
