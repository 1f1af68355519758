/* The life of a launch: opened as a machine, filled, shrunk to the cheapest machine that holds what
 * is in it, grown where somebody must still come in, given up.
 */
#include "sched/domains.h"

#include <string.h>

/* --- opening and giving up --- */

uint32_t state_allowed(const struct state *s, uint32_t pool, uint32_t machine, uint32_t times)
{
    const struct pool *p = &s->model->pools[pool];
    const struct pool_left *left = &s->pools[pool];
    if (left->nodes < times)
        times = left->nodes < 0 ? 0 : (uint32_t)left->nodes;
    for (uint32_t i = 0; i < p->limit_count; i++) {
        int64_t each = p->limits[i].capacity[machine];
        if (left->limits[i] < 0)
            return 0;
        if (each > 0 && left->limits[i] / each < times)
            times = (uint32_t)(left->limits[i] / each);
    }
    return times;
}

static void take_limits(struct state *s, const struct bin *bin, int64_t sign)
{
    const struct pool *p = &s->model->pools[bin->pool];
    struct pool_left *left = &s->pools[bin->pool];
    s->possible_stale |= p->limit_count || left->nodes != INT64_MAX;
    if (left->nodes != INT64_MAX)
        left->nodes -= sign;
    for (uint32_t i = 0; i < p->limit_count; i++)
        left->limits[i] -= sign * p->limits[i].capacity[bin->machine];
}

uint32_t state_open(struct state *s, uint32_t pool, uint32_t machine, uint32_t terms)
{
    const struct model *m = s->model;
    uint32_t ix;
    if (s->spare.count) {
        ix = vec_pop(&s->spare);
    } else {
        ix = (uint32_t)s->bins.count;
        vec_push(&s->bins, (struct bin){
                               .free = arena_array(s->arena, int64_t, m->resource_count),
                               .domains = arena_array(s->arena, uint32_t, m->key_count),
                           });
    }
    struct bin *bin = &s->bins.items[ix];
    bin->pool = pool;
    bin->machine = machine;
    bin->terms = terms;
    bin->reserved = NONE;
    bin->price = terms_at(s->model, terms)->price[machine];
    memcpy(bin->free, m->pools[pool].room + (size_t)machine * m->resource_count,
           m->resource_count * sizeof *bin->free);
    launch_set_domains(s, bin);
    if (m->pools[pool].daemon_ports) {
        for (const uint32_t *port = m->pools[pool].daemon_ports[machine]; *port != NONE; port++)
            vec_push(&bin->ports, *port);
    }
    take_limits(s, bin, 1);
    s->price = usd_hour_sum(s->price, bin->price);
    return ix;
}

void state_close(struct state *s, uint32_t ix)
{
    struct bin *bin = &s->bins.items[ix];
    KV_ASSERT(!bin_is_home(s, ix));
    KV_ASSERT(bin->placements.count == 0);
    take_limits(s, bin, -1);
    s->price -= bin->price;
    if (bin->reserved != NONE)
        reservation_give(s->model, bin->pool, bin->reserved);
    bin->pool = bin->machine = bin->terms = bin->reserved = NONE;
    vec_clear(&bin->tallies);
    vec_clear(&bin->ports);
    vec_push(&s->spare, ix);
}

void launch_dissolve(struct state *s, uint32_t ix)
{
    struct bin *bin = &s->bins.items[ix];
    while (bin->placements.count)
        state_take(s, ix, (uint32_t)bin->placements.count - 1, vec_last(&bin->placements).count);
    state_close(s, ix);
}

void launch_settle(struct state *s, uint32_t ix)
{
    struct bin *bin = &s->bins.items[ix];
    uint32_t offering = terms_at(s->model, bin->terms)->offering[bin->machine];
    if (reservation_left(s->model, bin->pool, offering) < 0)
        return;
    bin->reserved = offering;
    s->possible_stale = true;
    reservation_take(s->model, bin->pool, offering);
    launch_set_domains(s, bin);
}

/* --- where it will be --- */

static void add_domain(const struct topology_key *key, struct str value, struct bitset *out)
{
    for (uint32_t d = 0; d < key->domain_count; d++)
        if (str_eq(key->domains[d], value))
            bitset_set(out, d);
}

/* Of a label that offerings differ in. False: it is not one. Reservations are for launches that hold
 * a place in them. */
static bool add_of_shapes(const struct terms *t, const struct instance_types *types,
                          const struct requirement *r, const struct topology_key *key,
                          struct bitset *out)
{
    bool found = false;
    bitset_each(&t->shapes, i) {
        const struct offering_shape *shape = &types->shapes[i];
        if (shape->reservation_id.len)
            continue;
        const struct requirement *own = requirements_find(&shape->requirements, r->key);
        found |= own != NULL;
        bool offered = false;
        if (own && !own->complement)
            bitset_each(&t->machines, row)
                offered = offered || posting_has(&shape->types, types->row_type[row]);
        for (uint32_t v = 0; offered && v < own->values.count; v++)
            if (requirement_has(r, own->values.items[v]))
                add_domain(key, own->values.items[v], out);
    }
    return found;
}

void launch_domains(struct state *s, uint32_t terms, uint32_t k, struct bitset *out)
{
    struct model *m = s->model;
    const struct topology_key *key = &m->keys[k];
    const struct terms *t = terms_at(m, terms);
    const struct instance_types *types = m->pools[t->pool].types;
    struct requirement r = requirements_get(&t->set, label_normalise(key->name));
    bitset_zero(out);
    if (add_of_shapes(t, types, &r, key, out))
        return;
    bool open = false; /* a type that leaves it to the pool */
    bitset_each(&t->machines, row) {
        const struct requirement *own =
            instance_type_requirement(types, types->row_type[row], r.key);
        open |= !own || own->complement;
        for (uint32_t v = 0; own && !own->complement && v < own->values.count; v++)
            if (requirement_has(&r, own->values.items[v]))
                add_domain(key, own->values.items[v], out);
    }
    for (uint32_t v = 0; open && !r.complement && v < r.values.count; v++)
        add_domain(key, r.values.items[v], out);
}

static const uint32_t *decided_domains(struct state *s, uint32_t terms)
{
    const struct model *m = s->model;
    uintptr_t known;
    if (map_get(&s->domains_of, terms, &known))
        return (const uint32_t *)known;
    AUTO_ARENA scratch = { 0 };
    uint32_t *domains = arena_array(s->arena, uint32_t, m->key_count);
    domains[KEY_HOSTNAME] = NONE;
    for (uint32_t k = KEY_HOSTNAME + 1; k < m->key_count; k++) {
        struct bitset set = bitset_new(&scratch, m->keys[k].domain_count);
        launch_domains(s, terms, k, &set);
        domains[k] = bitset_popcount(&set) == 1 ? bitset_first(&set) : NONE;
    }
    map_put(&s->domains_of, terms, (uintptr_t)domains);
    return domains;
}

/* A place in a reservation decides more than the terms do. */
static uint32_t reserved_domain(const struct state *s, const struct bin *bin, uint32_t k,
                                uint32_t by_terms)
{
    const struct topology_key *key = &s->model->keys[k];
    const struct instance_types *types = s->model->pools[bin->pool].types;
    const struct offering_shape *shape = &types->shapes[types->offering_shape[bin->reserved]];
    const struct requirement *r =
        requirements_find(&shape->requirements, label_normalise(key->name));
    for (uint32_t d = 0; r && !r->complement && r->values.count == 1 && d < key->domain_count; d++)
        if (str_eq(key->domains[d], r->values.items[0]))
            return d;
    return by_terms;
}

void launch_set_domains(struct state *s, struct bin *bin)
{
    const uint32_t *domains = decided_domains(s, bin->terms);
    for (uint32_t k = 0; k < s->model->key_count; k++) {
        bin->domains[k] =
            bin->reserved == NONE ? domains[k] : reserved_domain(s, bin, k, domains[k]);
        if (bin->domains[k] != NONE)
            bitset_set(&s->launched[k], bin->domains[k]);
    }
}

void launch_rejoin(struct state *s, uint32_t ix)
{
    struct bin *bin = &s->bins.items[ix];
    uint32_t terms = s->model->pools[bin->pool].terms;
    vec_each(&bin->placements, struct placement, p)
        terms = terms_join(s->model, terms, p->wants);
    if (bin->reserved != NONE || terms == NONE)
        return; /* it holds its place whatever the others ask for */
    s->price -= bin->price;
    bin->terms = terms;
    bin->price = terms_at(s->model, terms)->price[bin->machine];
    s->price += bin->price;
    launch_set_domains(s, bin);
}

void launch_pin(struct state *s, uint32_t ix, struct str key, struct str value)
{
    struct bin *bin = &s->bins.items[ix];
    uint32_t joined =
        value.p ? terms_join(s->model, bin->terms, wants_label(s->model, key, value)) : NONE;
    if (joined == NONE || !bitset_test(&terms_at(s->model, joined)->machines, bin->machine) ||
        !state_min_values_met(s, ix, joined))
        return;
    bin->terms = joined;
    usd_hour price = terms_at(s->model, joined)->price[bin->machine];
    s->price += price - bin->price;
    bin->price = price;
    launch_set_domains(s, bin);
}

/* --- another machine --- */

bool launch_ports_clash(const struct state *s, const struct bin *bin, uint32_t machine)
{
    const struct model *m = s->model;
    vec_each(&bin->placements, const struct placement, p)
        if (daemons_hold_port(m, &m->pools[bin->pool], machine, &m->classes[p->class_]))
            return true;
    return false;
}

uint32_t launch_right_size(struct state *s, uint32_t ix)
{
    struct model *m = s->model;
    const struct bin *bin = &s->bins.items[ix];
    const struct pool *pool = &m->pools[bin->pool];
    uint32_t width = m->resource_count;
    const int64_t *whole = pool->room + (size_t)bin->machine * width;
    const struct terms *t = terms_at(m, bin->terms);
    uint32_t best = bin->machine;
    if (t->has_min_values && pool->limit_count)
        return best; /* a smaller one could be short of others that are no larger */
    s->steps += pool->machine_count;
    take_limits(s, bin, -1); /* it would make room for what it becomes */
    bitset_each(&t->machines, i) {
        const int64_t *room = pool->room + (size_t)i * width;
        bool fits = t->price[i] < t->price[best];
        for (uint32_t r = 0; r < width && fits; r++)
            fits = room[r] >= whole[r] - bin->free[r];
        if (fits && state_allowed(s, bin->pool, i, 1) && !launch_ports_clash(s, bin, i))
            best = i;
    }
    take_limits(s, bin, 1);
    return best;
}

static void resize(struct state *s, struct bin *bin, uint32_t machine)
{
    const struct model *m = s->model;
    const int64_t *room = m->pools[bin->pool].room;
    for (uint32_t r = 0; r < m->resource_count; r++)
        bin->free[r] += room[(size_t)machine * m->resource_count + r] -
                        room[(size_t)bin->machine * m->resource_count + r];
    take_limits(s, bin, -1);
    bin->machine = machine;
    take_limits(s, bin, 1);
    usd_hour price = terms_at(s->model, bin->terms)->price[machine];
    s->price += price - bin->price;
    bin->price = price;
}

static uint32_t grown_machine(struct state *s, struct bin *bin, const struct pod_class *c,
                              uint32_t terms)
{
    struct model *m = s->model;
    const struct pool *pool = &m->pools[bin->pool];
    const struct terms *t = terms_at(m, terms);
    uint32_t width = m->resource_count, best = NONE;
    const int64_t *whole = pool->room + (size_t)bin->machine * width;
    take_limits(s, bin, -1);
    bitset_each(&t->machines, i) {
        const int64_t *room = pool->room + (size_t)i * width;
        bool fits = best == NONE || t->price[i] < t->price[best];
        for (uint32_t r = 0; r < width && fits; r++)
            fits = room[r] >= whole[r] - bin->free[r] + c->request[r];
        if (fits && state_allowed(s, bin->pool, i, 1))
            best = i;
    }
    take_limits(s, bin, 1);
    return best;
}

bool launch_grow(struct state *s, uint32_t ix, uint32_t class_, const struct variant *v,
                 uint32_t wants)
{
    struct model *m = s->model;
    const struct pod_class *c = &m->classes[class_];
    struct bin *bin = &s->bins.items[ix];
    /* A machine with other daemons could hold a port that is taken here. */
    if (bin->reserved != NONE || m->pools[bin->pool].daemon_ports ||
        !taints_tolerated(m, v->tolerance, m->pools[bin->pool].taints) ||
        !state_host_admits(s, ix, class_, v))
        return false;
    uint32_t joined = terms_join(m, bin->terms, wants);
    uint32_t machine = joined == NONE ? NONE : grown_machine(s, bin, c, joined);
    if (machine == NONE)
        return false;
    bin->terms = joined;
    launch_set_domains(s, bin);
    resize(s, bin, machine);
    launch_settle(s, ix);
    return true;
}
