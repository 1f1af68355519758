/* A trial: what a pod asks of a new node of a pool, one constraint after the other.
 *
 * Machines (rows of the pool's instance types) are bits, and every constraint clears some of them.
 * The order is that of a reader's questions: may it be there at all (taints), is it allowed (the
 * pool, then each of the pod's requirements), does it run the images, is it large enough (each
 * resource, host ports), can it be had (offerings), may the pool grow (limits), and do the other
 * pods agree (topology). minValues come last because they speak of the types that are left of
 * everything else. The first constraint after which nothing is left is the reason.
 *
 * The solver's own memory of terms is not asked: edits are tried here too, and they would fill it
 * with pools that do not exist.
 */
#include "sched/explain_inner.h"

/* --- machines --- */

uint32_t types_among(const struct instance_types *types, const struct bitset *machines)
{
    if (types->row_count == types->type_count)
        return bitset_popcount(machines);
    uint32_t count = bitset_popcount(machines);
    /* Rows beyond the types' own: count a type once. Its rows need not lie together. */
    for (uint32_t row = bitset_next(machines, types->type_count); row < types->row_count;
         row = bitset_next(machines, row + 1)) {
        uint32_t type = types->row_type[row];
        bool seen = bitset_test(machines, type);
        for (uint32_t other = bitset_next(machines, types->type_count); !seen && other < row;
             other = bitset_next(machines, other + 1))
            seen = types->row_type[other] == type;
        count -= seen;
    }
    return count;
}

/* `machines` &= those of these types. */
static void machines_of_types(const struct instance_types *types, const struct bitset *kept,
                              struct bitset *machines)
{
    bitset_each(machines, row) {
        if (!bitset_test(kept, types->row_type[row]))
            bitset_clear(machines, row);
    }
}

void machines_narrow(const struct instance_types *types, const struct requirement *r,
                     struct bitset *machines)
{
    if (types->row_count == types->type_count) {
        instance_types_narrow(types, r, true, machines);
        return;
    }
    AUTO_ARENA scratch = { 0 };
    struct bitset kept = bitset_new(&scratch, types->type_count);
    bitset_fill(&kept);
    instance_types_narrow(types, r, true, &kept);
    machines_of_types(types, &kept, machines);
}

void machines_run_images(const struct ask *ask, struct bitset *machines)
{
    const struct model *m = ask->state->model;
    if (ask->fit != NONE)
        machines_of_types(ask->pool->types, &m->fits[ask->fit].types[ask->pool_ix], machines);
}

struct bitset shapes_of(const struct instance_types *types, const struct requirements *set,
                        struct arena *arena)
{
    struct bitset shapes = bitset_new(arena, types->shape_count);
    instance_types_shapes(types, set, &shapes);
    return shapes;
}

static bool offering_left(const struct ask *ask, uint32_t offering)
{
    return bitset_test(&ask->pool->types->available, offering) &&
           reservation_left(ask->state->model, ask->pool_ix, offering) != 0;
}

/* Reservations run out one by one, and overridden types have several rows: those are asked offering
 * by offering. */
static bool machine_offered(const struct ask *ask, uint32_t machine, const struct bitset *shapes)
{
    const struct instance_types *types = ask->pool->types;
    uint32_t type = types->row_type[machine];
    for (uint32_t o = types->offering_start[type]; o < types->offering_start[type + 1]; o++) {
        if (types->offering_row[o] == machine && bitset_test(shapes, types->offering_shape[o]) &&
            offering_left(ask, o))
            return true;
    }
    return false;
}

/* `machines` &= those with an offering of these shapes that can be had. */
static void machines_offered(const struct ask *ask, const struct bitset *shapes,
                             struct bitset *machines, struct arena *arena)
{
    const struct instance_types *types = ask->pool->types;
    struct bitset plain = bitset_new(arena, types->shape_count);
    struct bitset sure = bitset_new(arena, types->type_count);
    bitset_copy(&plain, shapes);
    bitset_each(shapes, i) {
        if (types->shapes[i].capacity_type_ix == CAPACITY_TYPE_RESERVED)
            bitset_clear(&plain, i);
    }
    instance_types_offered(types, &plain, &sure);
    if (bitset_equal(&plain, shapes) && types->row_count == types->type_count) {
        bitset_and(machines, &sure);
        return;
    }
    bitset_andnot(&sure, &types->overridden);
    bitset_each(machines, row) {
        if (!bitset_test(&sure, types->row_type[row]) && !machine_offered(ask, row, shapes))
            bitset_clear(machines, row);
    }
}

/* `machines` &= those with that much in the column, whose rows are `stride` apart. */
static void machines_between(const int64_t *column, size_t stride, int64_t least, int64_t most,
                             struct bitset *machines)
{
    for (uint32_t w = 0; w * 64 < machines->bit_count; w++) {
        uint32_t start = w * 64, left = machines->bit_count - start, n = left < 64 ? left : 64;
        uint64_t kept = 0;
        if (!machines->words[w])
            continue;
        for (uint32_t i = 0; i < n; i++) {
            int64_t amount = column[(start + i) * stride];
            kept |= (uint64_t)(amount >= least && amount <= most) << i;
        }
        machines->words[w] &= kept;
    }
}

/* Rows that something is offered as: of an overridden type its own row may be nobody's. A type
 * without any offering counts by its own. */
static void machines_all(const struct instance_types *types, struct bitset *machines)
{
    if (types->row_count == types->type_count) {
        bitset_fill(machines);
        return;
    }
    for (uint32_t t = 0; t < types->type_count; t++) {
        if (types->offering_start[t] == types->offering_start[t + 1])
            bitset_set(machines, t);
    }
    for (uint32_t o = 0; o < types->offering_count; o++)
        bitset_set(machines, types->offering_row[o]);
}

bool machine_fits(const struct ask *ask, uint32_t machine)
{
    uint32_t count = ask->state->model->resource_count;
    const int64_t *room = ask->pool->room + (size_t)machine * count;
    for (uint32_t r = 0; r < count; r++) {
        if (room[r] < ask->request[r])
            return false;
    }
    return true;
}

/* --- steps --- */

static bool overlooked(const struct trial *t, enum plan_reason reason)
{
    return t->ask->overlooked >> reason & 1;
}

/* The texts of steps; they name what was asked, the counts tell the rest. */
static void step_text(const struct trial *t, enum subject subject, uint32_t at, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct model *m = ask->state->model;
    switch (subject) {
    case SUBJECT_TAINTS:
        for (uint32_t i = 0; i < m->taints[ask->pool->taints].count; i++) {
            buf_addz(out, i ? ", " : "taints ");
            add_taint(out, &m->taints[ask->pool->taints].items[i]);
        }
        return;
    case SUBJECT_POOL:
        buf_addz(out, "what the NodePool allows");
        return;
    case SUBJECT_WANT:
        add_requirement(out, &ask->wants.items[at]);
        return;
    case SUBJECT_IMAGES:
        buf_addz(out, "images ");
        add_images(out, ask);
        return;
    case SUBJECT_RESOURCE:
        add_name(out, m->resources[at]);
        buf_addc(out, ' ');
        add_need(out, m->resources[at], ask->request[at]);
        return;
    case SUBJECT_PORTS:
        for (uint32_t i = 0; i < ask->class_->port_count; i++) {
            buf_addz(out, i ? ", " : "host ports ");
            add_port(out, &m->ports[ask->class_->ports[i]]);
        }
        return;
    case SUBJECT_OFFERING:
        buf_addz(out, "available offerings");
        return;
    case SUBJECT_LIMITS:
        buf_addz(out, "limits of the NodePool");
        return;
    case SUBJECT_GROUP:
        add_group(out, m, &m->groups[at]);
        return;
    case SUBJECT_MIN_VALUES:
        buf_addz(out, "minValues ");
        add_name(out, t->joined.items[at].key);
        buf_addf(out, " %lld", (long long)t->joined.items[at].min_values.value);
        return;
    }
    KV_UNREACHABLE();
}

static void step_begin(struct trial *t)
{
    bitset_copy(&t->before, &t->machines);
}

/* True: go on. `shown`: the step is worth a line even when it removes nothing. */
static bool step_end(struct trial *t, enum subject subject, enum plan_reason reason, uint32_t at,
                     bool shown)
{
    const struct instance_types *types = t->ask->pool->types;
    bool left = bitset_any(&t->machines);
    if (!left) {
        t->subject = subject;
        t->reason = reason;
        t->at = at;
    }
    if (t->texts && (shown || !left || !bitset_equal(&t->before, &t->machines))) {
        AUTO_BUF what = { 0 };
        step_text(t, subject, at, &what);
        KV_ASSERT(t->step_count < t->step_cap);
        t->steps[t->step_count++] = (struct explain_step){
            .reason = reason,
            .what = buf_keep(t->texts, &what),
            .before = types_among(types, &t->before),
            .after = types_among(types, &t->machines),
        };
    }
    return left;
}

static bool step_taints(struct trial *t)
{
    const struct ask *ask = t->ask;
    const struct model *m = ask->state->model;
    if (overlooked(t, REASON_TAINTS) || !m->taints[ask->pool->taints].count)
        return true;
    step_begin(t);
    if (!taints_tolerated(m, ask->variant->tolerance, ask->pool->taints))
        bitset_zero(&t->machines);
    return step_end(t, SUBJECT_TAINTS, REASON_TAINTS, 0, true);
}

static bool step_pool(struct trial *t)
{
    step_begin(t);
    for (uint32_t i = 0; i < t->ask->allowed.count; i++)
        machines_narrow(t->ask->pool->types, &t->ask->allowed.items[i], &t->machines);
    return step_end(t, SUBJECT_POOL, REASON_REQUIREMENTS, 0, true);
}

/* What the pod's own spec says nothing of comes from its volumes. */
static bool pod_speaks_of(const struct pod *pod, struct str key)
{
    for (uint32_t i = 0; i < pod->spec->node_selector.count; i++) {
        if (str_eq(label_normalise(pod->spec->node_selector.items[i].key), key))
            return true;
    }
    if (!pod->maybe_affinity)
        return false;
    const struct node_affinity *node = &pod->maybe_affinity->node;
    uint32_t required = node->maybe_required ? node->maybe_required->terms.count : 0;
    for (uint32_t i = 0; i < required + node->preferred.count; i++) {
        const struct node_selector_term *term = i < required
                                                    ? &node->maybe_required->terms.items[i]
                                                    : &node->preferred.items[i - required].term;
        for (uint32_t k = 0; k < term->expressions.count; k++) {
            if (str_eq(label_normalise(term->expressions.items[k].key), key))
                return true;
        }
    }
    return false;
}

enum plan_reason want_reason(const struct ask *ask, const struct requirement *r)
{
    const struct pod *pod = ask->state->model->snap->pods[ask->class_->pods[0]];
    /* A set without members is what is left of a pod and a volume that contradict each other. */
    bool contradiction = !r->complement && r->values.count == 0 && pod->volumes.count;
    return pod_speaks_of(pod, r->key) && !contradiction ? REASON_REQUIREMENTS
           : pod->volumes.count                         ? REASON_VOLUME
                                                        : REASON_REQUIREMENTS;
}

static bool step_wants(struct trial *t)
{
    const struct ask *ask = t->ask;
    for (uint32_t i = 0; i < ask->wants.count; i++) {
        const struct requirement *r = &ask->wants.items[i];
        struct requirements one = { r, 1 };
        step_begin(t);
        if (str_eq(r->key, STR(LABEL_HOSTNAME))) {
            /* A new node has a name, and it is not one that anybody knows. */
            if (!r->complement || r->gte.set || r->lte.set)
                bitset_zero(&t->machines);
        } else if (requirements_compatible(&ask->allowed, &one, ask->pool->well_known,
                                           &t->mismatch))
            machines_narrow(ask->pool->types, requirements_find(&t->joined, r->key), &t->machines);
        else
            bitset_zero(&t->machines);
        bool left = bitset_any(&t->machines);
        if (!step_end(t, SUBJECT_WANT, left ? REASON_REQUIREMENTS : want_reason(ask, r), i, true))
            return false;
    }
    return true;
}

static bool step_images(struct trial *t)
{
    if (overlooked(t, REASON_IMAGE) || t->ask->fit == NONE)
        return true;
    step_begin(t);
    machines_run_images(t->ask, &t->machines);
    return step_end(t, SUBJECT_IMAGES, REASON_IMAGE, 0, true);
}

static bool step_resources(struct trial *t)
{
    const struct ask *ask = t->ask;
    uint32_t count = ask->state->model->resource_count;
    bitset_copy(&t->suitable, &t->machines);
    for (uint32_t r = 0; r < count; r++) {
        int64_t need = ask->request[r];
        step_begin(t);
        machines_between(ask->pool->room + r, count, need, INT64_MAX, &t->machines);
        if (!step_end(t, SUBJECT_RESOURCE, REASON_RESOURCES, r, need > 0 && r != RESOURCE_PODS))
            return false;
    }
    return true;
}

static bool ports_conflict(const struct ask *ask, const uint32_t *taken)
{
    const struct model *m = ask->state->model;
    for (; *taken != NONE; taken++) {
        for (uint32_t i = 0; i < ask->class_->port_count; i++) {
            if (bitset_test(&m->ports[ask->class_->ports[i]].conflicts, *taken))
                return true;
        }
    }
    return false;
}

static bool step_ports(struct trial *t)
{
    const struct ask *ask = t->ask;
    if (overlooked(t, REASON_HOST_PORT) || !ask->class_->port_count)
        return true;
    step_begin(t);
    if (ask->pool->daemon_ports) {
        bitset_each(&t->machines, machine) {
            if (ports_conflict(ask, ask->pool->daemon_ports[machine]))
                bitset_clear(&t->machines, machine);
        }
    }
    return step_end(t, SUBJECT_PORTS, REASON_HOST_PORT, 0, true);
}

static bool step_offering(struct trial *t)
{
    struct bitset shapes = shapes_of(t->ask->pool->types, &t->joined, t->arena);
    step_begin(t);
    machines_offered(t->ask, &shapes, &t->machines, t->arena);
    return step_end(t, SUBJECT_OFFERING, REASON_OFFERING, 0, true);
}

static bool step_limits(struct trial *t)
{
    const struct ask *ask = t->ask;
    if (overlooked(t, REASON_LIMITS))
        return true;
    step_begin(t);
    if (ask->left.nodes <= 0)
        bitset_zero(&t->machines);
    /* What is overdrawn already lets nothing in, not even what does not have it. */
    for (uint32_t i = 0; i < ask->pool->limit_count; i++)
        machines_between(ask->pool->limits[i].capacity, 1, 0, ask->left.limits[i], &t->machines);
    return step_end(t, SUBJECT_LIMITS, REASON_LIMITS, 0, false);
}

/* A demand on a label narrows types and offerings, as a pod's own requirement would. */
static void demand_apply(const struct trial *t, const struct requirement *demand,
                         struct requirements *joined, struct bitset *machines)
{
    struct requirements one = { demand, 1 };
    if (!requirements_intersects(joined, &one, NULL)) {
        bitset_zero(machines);
        return;
    }
    *joined = requirements_add(t->arena, joined, demand);
    machines_narrow(t->ask->pool->types, requirements_find(joined, demand->key), machines);
    struct bitset shapes = shapes_of(t->ask->pool->types, joined, t->arena);
    machines_offered(t->ask, &shapes, machines, t->arena);
}

bool trial_reaches(const struct trial *t, const struct requirement *demand)
{
    struct requirements joined = t->joined;
    struct bitset machines = bitset_new(t->arena, t->machines.bit_count);
    bitset_copy(&machines, &t->before);
    demand_apply(t, demand, &joined, &machines);
    return bitset_any(&machines);
}

static bool step_groups(struct trial *t)
{
    const struct ask *ask = t->ask;
    struct group_list groups = groups_asked(ask, t->arena);
    for (uint32_t i = 0; i < groups.count; i++) {
        uint32_t group = groups.items[i];
        struct requirement demand;
        if (group == ask->overlooked_group)
            continue;
        step_begin(t);
        t->least = trial_least(t, group);
        if (!group_allows_new_node(ask, group) || group_lacks_label(ask, group))
            bitset_zero(&t->machines);
        else if (group_demand(t, group, &demand))
            demand_apply(t, &demand, &t->joined, &t->machines);
        if (!step_end(t, SUBJECT_GROUP, group_reason(&ask->state->model->groups[group]), group,
                      true))
            return false;
    }
    return true;
}

/* Different values that the types of these machines have for the key. */
static uint32_t values_among(const struct instance_types *types, struct str key,
                             const struct bitset *machines, struct arena *arena)
{
    const struct label_column *column = instance_types_label(types, key);
    struct bitset left = bitset_new(arena, types->type_count);
    uint32_t count = 0;
    bitset_each(machines, row)
        bitset_set(&left, types->row_type[row]);
    for (uint32_t i = 0; column && i < column->value_count; i++) {
        const struct posting *p = &column->values[i].types;
        bool any = false;
        for (uint32_t w = 0; w < p->count; w++)
            any |= (p->words[w] & left.words[p->first + w]) != 0;
        count += any;
    }
    return count;
}

static bool step_min_values(struct trial *t)
{
    const struct ask *ask = t->ask;
    if (overlooked(t, REASON_MIN_VALUES) ||
        ask->state->model->options.min_values == MIN_VALUES_BEST_EFFORT)
        return true;
    for (uint32_t i = 0; i < t->joined.count; i++) {
        const struct requirement *r = &t->joined.items[i];
        if (!r->min_values.set)
            continue;
        step_begin(t);
        uint32_t have = values_among(ask->pool->types, r->key, &t->machines, t->arena);
        if (have < r->min_values.value) {
            t->min_values = (struct min_values){ r->key, r->min_values.value, have };
            bitset_zero(&t->machines);
        }
        if (!step_end(t, SUBJECT_MIN_VALUES, REASON_MIN_VALUES, i, true))
            return false;
    }
    return true;
}

/* --- the whole --- */

struct ask ask_of(struct state *s, uint32_t class_, const struct variant *variant, uint32_t pool)
{
    const struct model *m = s->model;
    return (struct ask){
        .state = s,
        .class_ = &m->classes[class_],
        .variant = variant,
        .pool = &m->pools[pool],
        .pool_ix = pool,
        .wants = wants_at(m, variant->wants)->set,
        .fit = wants_at(m, variant->wants)->fit,
        .allowed = m->pools[pool].requirements,
        .request = m->classes[class_].request,
        .left = s->pools[pool],
        .overlooked_group = NONE,
    };
}

void trial_run(struct trial *t, const struct ask *ask, struct arena *arena, struct arena *texts)
{
    const struct model *m = ask->state->model;
    uint32_t machine_count = ask->pool->machine_count;
    *t = (struct trial){ .ask = ask, .arena = arena, .texts = texts };
    t->machines = bitset_new(arena, machine_count);
    t->before = bitset_new(arena, machine_count);
    t->suitable = bitset_new(arena, machine_count);
    machines_all(ask->pool->types, &t->machines);
    if (texts) {
        /* Taints, the pool, images, ports, offerings and limits; then one for each of the others. */
        t->step_cap = 6 + ask->wants.count + m->resource_count + ask->variant->owned_count +
                      ask->class_->matched_count + ask->allowed.count + ask->wants.count;
        t->steps = arena_array(texts, struct explain_step, t->step_cap);
    }
    if (!step_taints(t))
        return;
    t->joined = requirements_merge(arena, &ask->allowed, &ask->wants);
    t->possible = step_pool(t) && step_wants(t) && step_images(t) && step_resources(t) &&
                  step_ports(t) && step_offering(t) && step_limits(t) && step_groups(t) &&
                  step_min_values(t);
}

bool ask_possible(const struct ask *ask)
{
    AUTO_ARENA scratch = { 0 };
    struct trial t;
    trial_run(&t, ask, &scratch, NULL);
    return t.possible;
}
