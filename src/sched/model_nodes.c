/* Nodes and claims: which belong together, what is on them, and what their labels are.
 *
 * A claim and its Node are one. Until the Node has registered the claim knows better; until it has
 * initialised the claim fills in what the kubelet has not reported yet. A claim without a Node, and
 * without the provider's estimate in its status, can be any of the types that it allows: then
 * amounts are the safe end of what those have, and labels are the values that they allow together.
 */
#include "sched/model_nodes.h"

#include "api/resources.h"

/* --- which belong together --- */

/* First come, first served: `order` decides between two objects that claim to be the same. */
static void id_put(struct str_table *ids, struct str id, uint32_t index)
{
    if (id.len && !str_table_has(ids, id))
        str_table_put(ids, id, (void *)(uintptr_t)(index + 1));
}

static uint32_t id_get(const struct str_table *ids, struct str id)
{
    uintptr_t found = id.len ? (uintptr_t)str_table_get(ids, id) : 0;
    return found ? (uint32_t)(found - 1) : NONE;
}

struct named_index {
    struct str name;
    uint32_t index;
};

static int named_index_order(const void *a, const void *b)
{
    const struct named_index *x = a, *y = b;
    int order = str_cmp(x->name, y->name);
    return order ? order : (x->index > y->index) - (x->index < y->index);
}

static void link_claims(struct compile *c, const struct str_table *provider_ids)
{
    const struct snapshot *snap = c->m->snap;
    struct node_side *side = c->nodes;
    struct named_index *order = arena_array(&c->scratch, struct named_index, snap->claim_count);
    for (uint32_t i = 0; i < snap->claim_count; i++)
        order[i] = (struct named_index){ snap->claims[i]->object.meta.name, i };
    qsort(order, snap->claim_count, sizeof *order, named_index_order);

    for (uint32_t i = 0; i < snap->claim_count; i++) {
        uint32_t claim = order[i].index;
        const struct nodeclaim_status *status = &snap->claims[claim]->status;
        uint32_t node = id_get(provider_ids, status->provider_id);
        if (node == NONE)
            node = id_get(&side->node_ids, status->node_name);
        side->claim_node[claim] = node;
        if (node != NONE && side->node_claim[node] == NONE)
            side->node_claim[node] = claim;
    }
}

static uint32_t pool_of_labels(const struct compile *c, const struct meta *meta)
{
    return id_get(&c->nodes->pool_ids, str_map_get(&meta->labels, STR(LABEL_NODEPOOL)));
}

/* A node that has just appeared gets its labels from its claim a little later. */
static void owners_find(struct compile *c)
{
    const struct snapshot *snap = c->m->snap;
    struct node_side *side = c->nodes;
    side->claim_pool = arena_array(c->arena, uint32_t, snap->claim_count);
    side->node_pool = arena_array(c->arena, uint32_t, snap->node_count);
    for (uint32_t i = 0; i < snap->claim_count; i++)
        side->claim_pool[i] = pool_of_labels(c, &snap->claims[i]->object.meta);
    for (uint32_t i = 0; i < snap->node_count; i++) {
        side->node_pool[i] = pool_of_labels(c, &snap->nodes[i]->object.meta);
        if (side->node_pool[i] == NONE && side->node_claim[i] != NONE)
            side->node_pool[i] = side->claim_pool[side->node_claim[i]];
    }
}

void node_side_init(struct compile *c)
{
    const struct snapshot *snap = c->m->snap;
    struct node_side *side = arena_new(c->arena, struct node_side);
    struct str_table provider_ids = { 0 };
    c->nodes = side;
    for (uint32_t i = 0; i < snap->pool_count; i++)
        id_put(&side->pool_ids, snap->pools[i].pool->object.meta.name, i);

    side->node_claim = arena_array(c->arena, uint32_t, snap->node_count);
    struct named_index *order = arena_array(&c->scratch, struct named_index, snap->node_count);
    for (uint32_t i = 0; i < snap->node_count; i++) {
        side->node_claim[i] = NONE;
        order[i] = (struct named_index){ snap->nodes[i]->object.meta.name, i };
    }
    qsort(order, snap->node_count, sizeof *order, named_index_order);
    for (uint32_t i = 0; i < snap->node_count; i++) {
        id_put(&side->node_ids, order[i].name, order[i].index);
        id_put(&provider_ids, snap->nodes[order[i].index]->spec.provider_id, order[i].index);
    }
    side->claim_node = arena_array(c->arena, uint32_t, snap->claim_count);
    link_claims(c, &provider_ids);
    owners_find(c);
    str_table_done(&provider_ids);
}

void node_side_done(struct compile *c)
{
    if (!c->nodes)
        return;
    str_table_done(&c->nodes->node_ids);
    str_table_done(&c->nodes->pool_ids);
}

static bool label_is_true(const struct compile *c, uint32_t node, struct str key)
{
    const struct str_map *labels = &c->m->snap->nodes[node]->object.meta.labels;
    return c->nodes->node_claim[node] == NONE || str_eqz(str_map_get(labels, key), "true");
}

bool node_is_registered(const struct compile *c, uint32_t node)
{
    return label_is_true(c, node, STR(LABEL_REGISTERED)) || node_is_initialised(c, node);
}

bool node_is_initialised(const struct compile *c, uint32_t node)
{
    return label_is_true(c, node, STR(LABEL_INITIALIZED));
}

/* --- which types it can be --- */

struct candidates {
    const struct instance_types *maybe_types; /* NULL: nothing is known */
    struct bitset types;
    struct bitset rows; /* of their offerings that are allowed */
};

static struct candidates candidates_find(struct compile *c, uint32_t owner,
                                         const struct requirements *set)
{
    const struct instance_types *s = owner == NONE ? NULL : c->m->snap->pools[owner].types;
    if (!s)
        return (struct candidates){ 0 };
    struct candidates found = { s, bitset_new(&c->scratch, s->type_count),
                                bitset_new(&c->scratch, s->row_count) };
    bitset_fill(&found.types);
    for (uint32_t i = 0; i < set->count; i++)
        instance_types_narrow(s, &set->items[i], true, &found.types);
    bitset_each(&found.types, t) {
        bool any = false;
        for (uint32_t o = s->offering_start[t]; o < s->offering_start[t + 1]; o++) {
            const struct offering_shape *shape = &s->shapes[s->offering_shape[o]];
            if (!requirements_intersects(set, &shape->requirements, NULL))
                continue;
            bitset_set(&found.rows, s->offering_row[o]);
            any = true;
        }
        if (!any)
            bitset_set(&found.rows, t);
    }
    if (!bitset_any(&found.types))
        found.maybe_types = NULL;
    return found;
}

static struct requirements claim_asks(struct compile *c, uint32_t claim);

static struct candidates claim_candidates(struct compile *c, uint32_t claim)
{
    struct requirements set = claim_asks(c, claim);
    return candidates_find(c, c->nodes->claim_pool[claim], &set);
}

/* The most, or the least, of a resource on any of the rows. */
static int64_t candidates_amount(const struct candidates *k, struct str name, bool most)
{
    const struct resource_column *column = instance_types_resource(k->maybe_types, name);
    int64_t best = most ? 0 : INT64_MAX;
    if (!column)
        return 0;
    bitset_each(&k->rows, row) {
        int64_t amount = most ? column->capacity[row] : column->allocatable[row];
        if (most ? amount > best : amount < best)
            best = amount;
    }
    return best;
}

/* --- amounts --- */

void claim_capacity(struct compile *c, uint32_t claim, const struct str *names, uint32_t count,
                    int64_t *out)
{
    const struct nodeclaim *claimed = c->m->snap->claims[claim];
    const struct resources *known = &claimed->status.capacity;
    struct candidates k = { 0 };
    if (!known->count) {
        known = &claimed->spec.resources.requests;
        k = claim_candidates(c, claim);
    }
    for (uint32_t i = 0; i < count; i++)
        out[i] = k.maybe_types ? candidates_amount(&k, names[i], true)
                               : milli_ceil(resources_get(known, names[i]));
}

void claim_allocatable(struct compile *c, uint32_t claim, const struct str *names, uint32_t count,
                       int64_t *out)
{
    const struct nodeclaim *claimed = c->m->snap->claims[claim];
    const struct resources *known = &claimed->status.allocatable;
    struct candidates k = { 0 };
    if (!known->count) { /* at least what it was launched for */
        known = &claimed->spec.resources.requests;
        k = claim_candidates(c, claim);
    }
    for (uint32_t i = 0; i < count; i++)
        out[i] = k.maybe_types ? candidates_amount(&k, names[i], false)
                               : milli_floor(resources_get(known, names[i]));
}

void node_capacity(struct compile *c, uint32_t node, const struct str *names, uint32_t count,
                   int64_t *out)
{
    const struct node *n = c->m->snap->nodes[node];
    uint32_t claim = c->nodes->node_claim[node];
    struct candidates k = { 0 };
    int64_t *more = arena_array(&c->scratch, int64_t, count);
    if (!node_is_initialised(c, node))
        claim_capacity(c, claim, names, count, more);
    else if (!n->status.capacity.count) {
        struct requirements labels = requirements_from_labels(&c->scratch, &n->object.meta.labels);
        k = candidates_find(c, c->nodes->node_pool[node], &labels);
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = milli_ceil(resources_get(&n->status.capacity, names[i]));
        if (k.maybe_types)
            more[i] = candidates_amount(&k, names[i], true);
        out[i] = out[i] > 0 ? out[i] : more[i];
    }
}

void node_allocatable(struct compile *c, uint32_t node, const struct str *names, uint32_t count,
                      int64_t *out)
{
    const struct node_object_status *status = &c->m->snap->nodes[node]->status;
    const struct resources *known =
        status->allocatable.count ? &status->allocatable : &status->capacity;
    int64_t *more = NULL;
    if (!node_is_initialised(c, node)) {
        more = arena_array(&c->scratch, int64_t, count);
        claim_allocatable(c, c->nodes->node_claim[node], names, count, more);
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = milli_floor(resources_get(known, names[i]));
        if (more && out[i] == 0)
            out[i] = more[i];
    }
}

/* --- labels --- */

static int requirement_key_order(const void *a, const void *b)
{
    const struct requirement *x = a, *y = b;
    return str_cmp(x->key, y->key);
}

/* Borrows every text. A label under an old name counts if the current one is not there. */
static struct requirements label_set(struct arena *arena, const struct str_map *labels,
                                     const struct str_pair *maybe_more)
{
    struct requirement *items = arena_array(arena, struct requirement, (size_t)labels->count + 1);
    uint32_t count = 0;
    bool sorted = true;
    for (uint32_t i = 0; i < labels->count; i++) {
        const struct str_pair *label = &labels->items[i];
        struct str key = label_normalise(label->key);
        bool renamed = !str_eq(key, label->key);
        if (renamed && str_map_get(labels, key).p)
            continue;
        sorted &= !renamed;
        items[count++] = (struct requirement){ .key = key, .values = { &label->value, 1 } };
    }
    if (maybe_more && !str_map_get(labels, maybe_more->key).p) {
        items[count++] =
            (struct requirement){ .key = maybe_more->key, .values = { &maybe_more->value, 1 } };
        sorted = false;
    }
    if (!sorted)
        qsort(items, count, sizeof *items, requirement_key_order);
    return (struct requirements){ items, count };
}

/* `a`, and of `b` the keys that `a` lacks. */
static struct requirements set_complete(struct arena *arena, const struct requirements *a,
                                        const struct requirements *b)
{
    struct requirement *items = arena_array(arena, struct requirement, (size_t)a->count + b->count);
    uint32_t count = 0;
    for (uint32_t i = 0, j = 0; i < a->count || j < b->count;) {
        int order = i == a->count   ? 1
                    : j == b->count ? -1
                                    : str_cmp(a->items[i].key, b->items[j].key);
        items[count++] = order <= 0 ? a->items[i] : b->items[j];
        i += order <= 0;
        j += order >= 0;
    }
    return (struct requirements){ items, count };
}

/* Labels, and the requirements on keys without one. */
static struct requirements claim_asks(struct compile *c, uint32_t claim)
{
    const struct nodeclaim *claimed = c->m->snap->claims[claim];
    struct requirements labels = label_set(c->arena, &claimed->object.meta.labels, NULL), asked;
    if (requirements_from_expressions(c->arena, claimed->spec.node.requirements.items,
                                      claimed->spec.node.requirements.count, &asked, NULL) < 0)
        return labels;
    return set_complete(c->arena, &labels, &asked);
}

static bool posting_meets(const struct posting *p, const struct bitset *bs)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->words[i] & bs->words[p->first + i])
            return true;
    }
    return false;
}

/* What the label will be on a node of one of the types. */
static struct requirement candidates_label(struct compile *c, const struct candidates *k,
                                           const struct label_column *column)
{
    static const struct str empty = { "", 0 };
    struct requirement r = { .key = column->key };
    if (bitset_subset(&k->types, &column->absent))
        return r;
    if (!bitset_subset(&k->types, &column->defined) ||
        bitset_intersects(&k->types, &column->absent) ||
        bitset_intersects(&k->types, &column->complement)) {
        /* Anything, or nothing at all: whoever asks about it is turned away. */
        r.complement = true;
        r.values = (struct str_list){ &empty, 1 };
        return r;
    }
    struct str *values = arena_array(c->arena, struct str, column->value_count);
    for (uint32_t v = 0; v < column->value_count; v++) {
        if (posting_meets(&column->values[v].types, &k->types))
            values[r.values.count++] = column->values[v].text;
    }
    r.values.items = values;
    return r;
}

/* What was asked leaves a choice, and the types decide: of their values, those that were asked for. */
static struct requirement asked_label(struct compile *c, const struct candidates *k,
                                      const struct requirement *asked)
{
    const struct label_column *column = instance_types_label(k->maybe_types, asked->key);
    if ((!asked->complement && asked->values.count < 2) || !column)
        return *asked;
    struct requirement of_types = candidates_label(c, k, column);
    return of_types.complement ? *asked : requirement_intersection(c->arena, asked, &of_types);
}

struct requirements claim_labels(struct compile *c, uint32_t claim)
{
    struct requirements asked = claim_asks(c, claim);
    struct candidates k = claim_candidates(c, claim);
    const struct instance_types *s = k.maybe_types;
    if (!s)
        return asked;
    struct requirement *known = arena_array(c->arena, struct requirement, asked.count);
    for (uint32_t i = 0; i < asked.count; i++)
        known[i] = asked_label(c, &k, &asked.items[i]);
    asked.items = known;

    struct requirement *others = arena_array(c->arena, struct requirement, s->key_count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->key_count; i++) {
        if (!requirements_find(&asked, s->labels[i].key))
            others[count++] = candidates_label(c, &k, &s->labels[i]);
    }
    return set_complete(c->arena, &asked, &(struct requirements){ others, count });
}

struct requirements node_labels(struct compile *c, uint32_t node)
{
    const struct node *n = c->m->snap->nodes[node];
    struct str_pair *hostname = arena_new(c->arena, struct str_pair);
    *hostname = (struct str_pair){ STR(LABEL_HOSTNAME), node_hostname(n) };
    struct requirements own = label_set(c->arena, &n->object.meta.labels, hostname);
    if (node_is_registered(c, node))
        return own;
    struct requirements promised = claim_labels(c, c->nodes->node_claim[node]);
    return set_complete(c->arena, &own, &promised);
}
