/* Homes: nodes that are there and claims on their way, with what is on them taken off.
 *
 * Pods are dealt out to their nodes once, as numbers; from there on each node is looked at by itself
 * and its pods are counted per sort: requests, ports, topology groups. A group is asked once per node
 * whether that node counts, however many of its pods are there. A pod that is nominated to a node counts
 * there as if it had arrived: kube-scheduler keeps its room for it.
 *
 * Pods on a node that is going away count for topology like any others (kube-scheduler sees them), but
 * the node is no home.
 */
#include "sched/model_nodes.h"

#include "api/conditions.h"
#include "sched/model_memo.h"

/* --- who is a home --- */

struct site { /* a node, or a claim that has none */
    uint32_t node, claim;
    struct str name;
    bool initialised;
    bool leaving;
};

static bool claim_is_leaving(const struct nodeclaim *claim)
{
    const struct condition *terminating =
        condition_find(claim->status.conditions.items, claim->status.conditions.count,
                       CONDITION_INSTANCE_TERMINATING);
    return claim->object.meta.deleted_us || (terminating && terminating->status == CONDITION_TRUE);
}

static struct site node_site(const struct compile *c, uint32_t node)
{
    const struct node *n = c->m->snap->nodes[node];
    uint32_t claim = c->nodes->node_claim[node];
    return (struct site){ .node = node,
                          .claim = claim,
                          .name = n->object.meta.name,
                          .initialised = node_is_initialised(c, node),
                          .leaving =
                              n->object.meta.deleted_us ||
                              node_taint(n, STR(TAINT_DISRUPTED), EFFECT_ANY) ||
                              (claim != NONE && claim_is_leaving(c->m->snap->claims[claim])) };
}

static int site_order(const void *a, const void *b)
{
    const struct site *x = a, *y = b;
    if ((x->node == NONE) != (y->node == NONE))
        return x->node == NONE ? 1 : -1;
    if (x->initialised != y->initialised)
        return x->initialised ? -1 : 1;
    return str_cmp(x->name, y->name);
}

/* Initialised nodes, other nodes, claims; each by name. */
static uint32_t sites_collect(struct compile *c, struct site **out)
{
    const struct snapshot *snap = c->m->snap;
    struct site *sites =
        arena_array(&c->scratch, struct site, (size_t)snap->node_count + snap->claim_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < snap->node_count; i++)
        sites[count++] = node_site(c, i);
    for (uint32_t i = 0; i < snap->claim_count; i++) {
        if (c->nodes->claim_node[i] == NONE && !claim_is_leaving(snap->claims[i]))
            sites[count++] = (struct site){ .node = NONE,
                                            .claim = i,
                                            .name = snap->claims[i]->object.meta.name };
    }
    qsort(sites, count, sizeof *sites, site_order);
    *out = sites;
    return count;
}

/* --- taints --- */

/* Gone by the time that a node launched by us is up: not what a pod has to bear. */
static bool is_ephemeral(const struct taint *t)
{
    if (str_eqz(t->key, "node.kubernetes.io/not-ready"))
        return t->effect == EFFECT_NO_SCHEDULE || t->effect == EFFECT_NO_EXECUTE;
    if (str_eqz(t->key, "node.kubernetes.io/unreachable"))
        return t->effect == EFFECT_NO_SCHEDULE;
    if (str_eqz(t->key, "node.cloudprovider.kubernetes.io/uninitialized"))
        return t->effect == EFFECT_NO_SCHEDULE;
    if (str_eqz(t->key, TAINT_UNREGISTERED))
        return t->effect == EFFECT_NO_EXECUTE;
    return str_starts(t->key, STR("readiness.k8s.io/"));
}

static bool is_startup(const struct claim_node_spec *spec, const struct taint *t)
{
    for (uint32_t i = 0; i < spec->startup_taints.count; i++) {
        const struct taint *startup = &spec->startup_taints.items[i];
        if (str_eq(startup->key, t->key) && startup->effect == t->effect)
            return true;
    }
    return false;
}

#define CORDON "node.kubernetes.io/unschedulable"
static const struct taint cordon = { .key = { CORDON, sizeof CORDON - 1 },
                                     .effect = EFFECT_NO_SCHEDULE };

/* In scratch memory. */
static struct taint_list site_taints(struct compile *c, const struct site *site)
{
    const struct snapshot *snap = c->m->snap;
    const struct claim_node_spec *maybe_spec =
        site->claim == NONE ? NULL : &snap->claims[site->claim]->spec.node;
    const struct node *maybe_node = site->node == NONE ? NULL : snap->nodes[site->node];
    bool by_node = maybe_node && node_is_registered(c, site->node);
    KV_ASSERT(by_node || maybe_spec); /* a node without a claim counts as registered */
    const struct taint *said = by_node ? maybe_node->spec.taints.items : maybe_spec->taints.items;
    uint32_t said_count = by_node ? maybe_node->spec.taints.count : maybe_spec->taints.count;
    uint32_t count = 0;
    struct taint *items = arena_array(&c->scratch, struct taint, (size_t)said_count + 1);
    for (uint32_t i = 0; i < said_count; i++) {
        bool passing = !site->initialised && maybe_spec &&
                       (is_ephemeral(&said[i]) || is_startup(maybe_spec, &said[i]));
        if (!passing)
            items[count++] = said[i];
    }
    if (maybe_node && maybe_node->spec.unschedulable &&
        !node_taint(maybe_node, cordon.key, EFFECT_NO_SCHEDULE))
        items[count++] = cordon;
    return (struct taint_list){ items, count };
}

/* --- pods on nodes --- */

struct dealt { /* pods of node n are items[start[n]] to items[start[n + 1]] */
    uint32_t *start, *items;
};

static struct dealt pods_deal(struct compile *c)
{
    const struct snapshot *snap = c->m->snap;
    uint32_t *node = arena_array(&c->scratch, uint32_t, snap->pod_count);
    struct dealt d = { arena_array(&c->scratch, uint32_t, (size_t)snap->node_count + 2),
                       arena_array(&c->scratch, uint32_t, snap->pod_count) };
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        node[i] = NONE;
        if (c->state[i] != POD_BOUND)
            continue;
        uintptr_t found = (uintptr_t)str_table_get(&c->nodes->node_ids, pod_node(snap->pods[i]));
        if (found) {
            node[i] = (uint32_t)(found - 1);
            d.start[node[i] + 2]++;
        }
    }
    for (uint32_t n = 0; n < snap->node_count; n++)
        d.start[n + 2] += d.start[n + 1];
    /* start[n + 1] is where the next pod of n goes; when all are dealt it is where n ends. */
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        if (node[i] != NONE)
            d.items[d.start[node[i] + 1]++] = i;
    }
    return d;
}

/* What the pods of one node come to. The same one serves node after node. */
struct census {
    int64_t *used;         /* per resource */
    int64_t *daemons;      /* [daemon][resource]: pods of it; `pods` is 0 if there is none */
    struct tally *tallies; /* per group */
    VEC(uint32_t) touched; /* groups with anything in their tally */
    VEC(uint32_t) ports, claims;
    int64_t *attached; /* per driver; grows with the drivers */
    uint32_t driver_cap;
};

static void census_clear(struct compile *c, struct census *k)
{
    memset(k->used, 0, c->m->resource_count * sizeof *k->used);
    memset(k->daemons, 0,
           (size_t)c->nodes->daemon_count * c->m->resource_count * sizeof *k->daemons);
    vec_each(&k->touched, uint32_t, g)
        k->tallies[*g] = (struct tally){ .group = *g };
    vec_clear(&k->touched);
    vec_clear(&k->ports);
    vec_clear(&k->claims);
    for (uint32_t i = 0; i < k->driver_cap; i++)
        k->attached[i] = 0;
}

static struct tally *census_tally(struct census *k, uint32_t group)
{
    struct tally *t = &k->tallies[group];
    if (!t->matched && !t->owners)
        vec_push(&k->touched, group);
    return t;
}

static void count_volumes(struct compile *c, struct census *k, const struct pod *pod)
{
    struct pod_volumes volumes = pod_volumes_of(c, pod);
    if (c->drivers.count > k->driver_cap) {
        uint32_t cap = (uint32_t)c->drivers.count * 2;
        k->attached = kv_realloc(k->attached, cap, sizeof *k->attached);
        memset(k->attached + k->driver_cap, 0, (cap - k->driver_cap) * sizeof *k->attached);
        k->driver_cap = cap;
    }
    for (uint32_t i = 0; i < volumes.count; i++) {
        const struct class_volume *v = &volumes.items[i];
        bool counted = false;
        for (size_t j = 0; j < k->claims.count && v->claim != NONE && !counted; j++)
            counted = k->claims.items[j] == v->claim;
        if (counted)
            continue;
        k->attached[v->driver]++;
        if (v->claim != NONE)
            vec_push(&k->claims, v->claim);
    }
}

/* kube-scheduler leaves terminating pods out of spreads, and out of nothing else. */
static void count_pod(struct compile *c, struct census *k, uint32_t ix)
{
    const struct pod *pod = c->m->snap->pods[ix];
    const struct pod_sort *sort = &c->sorts.items[c->sort[ix]];
    uint32_t daemon = c->nodes->pod_daemon[ix], width = c->m->resource_count;
    bool terminating = pod_is_terminating(pod);
    for (uint32_t r = 0; r < width; r++)
        k->used[r] = add_saturating(k->used[r], sort->request[r]);
    for (uint32_t r = 0; r < width && daemon != NONE; r++) {
        int64_t *sum = &k->daemons[(size_t)daemon * width + r];
        *sum = add_saturating(*sum, sort->request[r]);
    }
    for (uint32_t i = 0; i < sort->matched_count; i++) {
        uint32_t g = sort->matched[i];
        if (!terminating || c->groups.items[g].kind != GROUP_SPREAD)
            census_tally(k, g)->matched++;
    }
    for (uint32_t i = 0; i < sort->anti_count; i++)
        census_tally(k, sort->anti[i])->owners++;
    for (uint32_t i = 0; i < sort->port_count; i++)
        vec_push(&k->ports, sort->ports[i]);
    if (pod->volumes.count)
        count_volumes(c, k, pod);
}

/* --- topology --- */

/* Per key. A label whose value is not decided yet is none. */
static uint32_t *site_domains(struct compile *c, const struct requirements *labels)
{
    uint32_t *domains = arena_array(c->arena, uint32_t, c->keys.count);
    for (uint32_t i = 0; i < c->keys.count; i++) {
        const struct topology_key *key = &c->keys.items[i];
        const struct requirement *label = requirements_find(labels, label_normalise(key->name));
        bool decided = label && !label->complement && label->values.count == 1;
        domains[i] = decided && i != KEY_HOSTNAME ? domain_find(key, label->values.items[0]) : NONE;
    }
    return domains;
}

/* Labels that are decided, for who asks by name. In scratch memory. */
static struct str_map site_labels(struct compile *c, const struct requirements *labels)
{
    struct str_pair *pairs = arena_array(&c->scratch, struct str_pair, labels->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct requirement *r = &labels->items[i];
        if (!r->complement && r->values.count == 1)
            pairs[count++] = (struct str_pair){ r->key, r->values.items[0] };
    }
    return (struct str_map){ pairs, count };
}

/* Spreads whose counts are kept per domain need to know whose pods count there. */
static bool marks_homes(const struct group *g)
{
    return g->kind == GROUP_SPREAD && g->key != KEY_HOSTNAME;
}

static void mark_home(struct compile *c, const struct str_map *labels,
                      const struct taint_list *taints, uint32_t home)
{
    vec_each(&c->groups, struct group, g) {
        if (marks_homes(g) && group_counts(c, g, labels, taints->items, taints->count))
            bitset_set(&g->homes, home);
    }
}

/* Into the groups' counts, or for the host name into the home's tallies (`maybe_home`). */
static void count_groups(struct compile *c, struct census *k, const struct str_map *labels,
                         const struct taint_list *taints, const uint32_t *domains,
                         struct home *maybe_home)
{
    struct tally *tallies = arena_array(c->arena, struct tally, k->touched.count);
    uint32_t tally_count = 0;
    if (k->touched.count)
        numbers_sort_unique(k->touched.items, (uint32_t)k->touched.count);
    vec_each(&k->touched, uint32_t, it) {
        struct group *g = &c->groups.items[*it];
        struct tally t = k->tallies[*it];
        if (!group_counts(c, g, labels, taints->items, taints->count))
            t.matched = 0;
        if (g->key == KEY_HOSTNAME) {
            g->total += t.matched;
            if (t.matched || t.owners)
                tallies[tally_count++] = t;
        } else if (domains[g->key] != NONE) {
            g->total += t.matched;
            g->matched[domains[g->key]] += t.matched;
            g->owners[domains[g->key]] += t.owners;
        }
    }
    if (maybe_home) {
        maybe_home->tallies = tallies;
        maybe_home->tally_count = tally_count;
    }
}

/* --- one home --- */

static const uint32_t *numbers_kept(struct compile *c, uint32_t *items, size_t count,
                                    uint32_t *kept)
{
    *kept = count ? numbers_sort_unique(items, (uint32_t)count) : 0;
    uint32_t *own = arena_array(c->arena, uint32_t, *kept);
    for (uint32_t i = 0; i < *kept; i++)
        own[i] = items[i];
    return own;
}

static void home_volumes(struct compile *c, const struct census *k, const struct csi_node *csi,
                         struct home *home)
{
    uint32_t count = csi->spec.drivers.count;
    struct volume_room *rooms = arena_array(c->arena, struct volume_room, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct csi_driver *driver = &csi->spec.drivers.items[i];
        if (!driver->allocatable.count.set)
            continue;
        uint32_t id = driver_intern(c, driver->name);
        int64_t used = id < k->driver_cap ? k->attached[id] : 0;
        rooms[home->room_count++] =
            (struct volume_room){ id, driver->allocatable.count.value - used };
    }
    home->rooms = rooms;
}

/* A daemon that should be there and is not, or is there with less than it asks for now, will need
 * the rest of it. */
static void reserve_daemon(struct compile *c, struct census *k, uint32_t daemon, int64_t *free)
{
    const struct daemon *d = &c->nodes->daemons[daemon];
    uint32_t width = c->m->resource_count;
    const int64_t *running = k->daemons + (size_t)daemon * width;
    for (uint32_t r = 0; r < width; r++) {
        if (d->request[r] > running[r])
            free[r] = subtract_saturating(free[r], d->request[r] - running[r]);
    }
    for (uint32_t i = 0; i < d->port_count && !running[RESOURCE_PODS]; i++)
        vec_push(&k->ports, d->ports[i]);
}

static void home_free(struct compile *c, struct census *k, const struct requirements *labels,
                      const struct taint_list *taints, struct home *home)
{
    uint32_t width = c->m->resource_count;
    int64_t *free = arena_array(c->arena, int64_t, width);
    if (home->node != NONE)
        node_allocatable(c, home->node, c->m->resources, width, free);
    else
        claim_allocatable(c, home->claim, c->m->resources, width, free);
    for (uint32_t r = 0; r < width; r++)
        free[r] = subtract_saturating(free[r], k->used[r]);
    for (uint32_t d = 0; d < c->nodes->daemon_count; d++) {
        if (daemon_runs_on(&c->nodes->daemons[d], labels, taints->items, taints->count))
            reserve_daemon(c, k, d, free);
    }
    home->free = free;
}

static uint32_t pool_number(const struct compile *c, uint32_t source)
{
    for (uint32_t i = 0; i < c->m->pool_count && source != NONE; i++) {
        if (c->m->pools[i].source == source)
            return i;
    }
    return NONE;
}

static void home_fill(struct compile *c, struct census *k, const struct site *site,
                      const struct requirements *labels, const struct taint_list *taints,
                      struct home *home)
{
    const struct node_side *side = c->nodes;
    bool is_node = site->node != NONE;
    home->node = site->node;
    home->claim = is_node ? NONE : site->claim;
    home->name = site->name;
    home->hostname = is_node ? node_hostname(c->m->snap->nodes[site->node]) : site->name;
    home->taints = taints_intern(c, taints->items, taints->count);
    home->pool =
        pool_number(c, is_node ? side->node_pool[site->node] : side->claim_pool[site->claim]);
    home_free(c, k, labels, taints, home);
    home->ports = numbers_kept(c, k->ports.items, k->ports.count, &home->port_count);
    home->claims = numbers_kept(c, k->claims.items, k->claims.count, &home->claim_count);
}

/* --- all of them --- */

static void csi_index(const struct snapshot *snap, struct str_table *out)
{
    for (uint32_t i = 0; i < snap->csi_node_count; i++)
        str_table_put(out, snap->csi_nodes[i]->object.meta.name, (void *)snap->csi_nodes[i]);
}

static void counts_start(struct compile *c, const struct site *sites, uint32_t count)
{
    uint32_t homes = 0;
    for (uint32_t i = 0; i < count; i++)
        homes += !sites[i].leaving;
    vec_each(&c->groups, struct group, g) {
        if (marks_homes(g))
            g->homes = bitset_new(c->arena, homes);
        uint32_t domains = c->keys.items[g->key].domain_count;
        g->matched = arena_array(c->arena, int64_t, domains);
        g->owners = arena_array(c->arena, int64_t, domains);
    }
}

static struct census census_new(struct compile *c)
{
    struct census k = { .used = arena_array(&c->scratch, int64_t, c->m->resource_count),
                        .daemons =
                            arena_array(&c->scratch, int64_t,
                                        (size_t)c->nodes->daemon_count * c->m->resource_count),
                        .tallies = arena_array(&c->scratch, struct tally, c->groups.count) };
    for (uint32_t g = 0; g < c->groups.count; g++)
        k.tallies[g].group = g;
    return k;
}

/* Counts the pods of the site, and makes it the next home unless it is going away. */
static void site_compile(struct compile *c, struct census *k, const struct site *site,
                         const struct dealt *dealt, const struct str_table *csi,
                         struct requirements *labels)
{
    struct model *m = c->m;
    struct home *home = &c->nodes->homes[m->home_count];
    struct taint_list taints = site_taints(c, site);
    bool is_node = site->node != NONE;
    *labels = is_node ? node_labels(c, site->node) : claim_labels(c, site->claim);
    struct str_map shown = site_labels(c, labels);
    home->domains = site_domains(c, labels);
    census_clear(c, k);
    if (is_node) {
        for (uint32_t p = dealt->start[site->node]; p < dealt->start[site->node + 1]; p++)
            count_pod(c, k, dealt->items[p]);
        count_groups(c, k, &shown, &taints, home->domains, site->leaving ? NULL : home);
    }
    if (site->leaving)
        return;
    home_fill(c, k, site, labels, &taints, home);
    mark_home(c, &shown, &taints, m->home_count);
    const struct csi_node *found = is_node ? str_table_get(csi, site->name) : NULL;
    if (found)
        home_volumes(c, k, found, home);
    m->home_count++;
}

void homes_compile(struct compile *c)
{
    struct model *m = c->m;
    struct node_side *side = c->nodes;
    struct str_table csi = { 0 };
    struct site *sites;

    arena_reset(&c->scratch);
    csi_index(m->snap, &csi);
    uint32_t count = sites_collect(c, &sites);
    counts_start(c, sites, count);
    struct dealt dealt = pods_deal(c);
    struct census census = census_new(c);
    struct requirements *labels = arena_array(c->arena, struct requirements, count);
    side->homes = arena_array(c->arena, struct home, count);
    side->home_labels = labels;
    for (uint32_t i = 0; i < count; i++)
        site_compile(c, &census, &sites[i], &dealt, &csi, &labels[m->home_count]);
    m->homes = side->homes;
    vec_done(&census.touched);
    vec_done(&census.ports);
    vec_done(&census.claims);
    free(census.attached);
    str_table_done(&csi);
}
