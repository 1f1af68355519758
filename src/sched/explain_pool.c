/* Why a pool has nothing for a pod, in one line, and what came nearest.
 *
 * The trial says which constraint left nothing. The line names what was asked and what there is
 * instead, over the types that all the constraints before it had left.
 */
#include "api/resources.h"
#include "sched/explain_inner.h"

#include <inttypes.h>

static const struct pod *pod_of_class(const struct ask *ask)
{
    return ask->state->model->snap->pods[ask->class_->pods[0]];
}

/* --- taints --- */

struct taint_list taints_refused(const struct ask *ask, struct arena *arena)
{
    const struct model *m = ask->state->model;
    const struct tolerance *tolerance = &m->tolerances[ask->variant->tolerance];
    const struct taint_list *all = &m->taints[ask->pool->taints];
    struct taint *refused = arena_array(arena, struct taint, all->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < all->count; i++) {
        const struct taint *taint = &all->items[i];
        bool borne = tolerance->all_prefer && taint->effect == EFFECT_PREFER_NO_SCHEDULE;
        for (uint32_t k = 0; k < tolerance->count && !borne; k++)
            borne = toleration_tolerates(&tolerance->items[k], taint);
        if (!borne)
            refused[count++] = *taint;
    }
    return (struct taint_list){ refused, count };
}

static void taints_detail(const struct trial *t, struct buf *out)
{
    struct taint_list refused = taints_refused(t->ask, t->arena);
    buf_addf(out, "does not tolerate taint%s ", refused.count == 1 ? "" : "s");
    for (uint32_t i = 0; i < refused.count; i++) {
        buf_addz(out, i ? ", " : "");
        add_taint(out, &refused.items[i]);
    }
}

/* --- requirements --- */

static void pool_detail(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct instance_types *types = ask->pool->types;
    add_pool(out, ask);
    if (!types->type_count) {
        buf_addz(out, " has no instance types to choose from");
        return;
    }
    buf_addz(out, " allows no instance type");
    struct bitset left = bitset_new(t->arena, types->row_count);
    bitset_copy(&left, &t->before);
    for (uint32_t i = 0; i < ask->allowed.count; i++) {
        machines_narrow(types, &ask->allowed.items[i], &left);
        if (bitset_any(&left))
            continue;
        buf_addz(out, ": nothing is left after ");
        add_requirement(out, &ask->allowed.items[i]);
        return;
    }
}

/* With its claim, if there is but one. */
static void volumes_detail(const struct trial *t, const struct requirement *want, struct buf *out)
{
    const struct pod *pod = pod_of_class(t->ask);
    struct str claim = STR_NONE;
    uint32_t claim_count = 0;
    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        struct str name = pod_volume_claim(pod, &pod->volumes.items[i], t->arena);
        claim = name.p ? name : claim;
        claim_count += name.p != NULL;
    }
    if (claim_count == 1) {
        buf_addz(out, "the volume of claim ");
        add_name(out, claim);
        buf_addz(out, " needs ");
    } else {
        buf_addz(out, "its volumes need ");
    }
    add_want(out, want);
}

/* What the pool itself allows. */
static struct bitset machines_allowed(const struct trial *t)
{
    const struct instance_types *types = t->ask->pool->types;
    struct bitset machines = bitset_new(t->arena, types->row_count);
    bitset_fill(&machines);
    for (uint32_t i = 0; i < t->ask->allowed.count; i++)
        machines_narrow(types, &t->ask->allowed.items[i], &machines);
    return machines;
}

/* Values that the types of these machines have for the key, sorted. */
static struct str_list values_of(const struct instance_types *types, struct str key,
                                 const struct bitset *machines, struct arena *arena)
{
    const struct label_column *column = instance_types_label(types, key);
    uint32_t value_count = column ? column->value_count : 0, count = 0;
    struct str *values = arena_array(arena, struct str, value_count);
    for (uint32_t i = 0; i < value_count; i++) {
        bool any = false;
        bitset_each(machines, row)
            any = any || posting_has(&column->values[i].types, types->row_type[row]);
        if (any)
            values[count++] = column->values[i].text;
    }
    return (struct str_list){ values, count };
}

/* No type has it: alone, or together with what else was asked. */
static void types_lack(const struct trial *t, const struct requirement *want, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct instance_types *types = ask->pool->types;
    struct bitset allowed = machines_allowed(t), alone = machines_allowed(t);
    machines_narrow(types, requirements_find(&t->joined, want->key), &alone);
    if (bitset_any(&alone)) {
        buf_addz(out, "; no type that ");
        add_pool(out, ask);
        buf_addz(out, " allows has that and ");
        for (uint32_t i = 0, shown = 0; i < t->at; i++) {
            if (str_eq(ask->wants.items[i].key, STR(LABEL_HOSTNAME)))
                continue;
            buf_addz(out, shown++ ? " and " : "");
            add_want(out, &ask->wants.items[i]);
        }
        return;
    }
    struct str_list has = values_of(types, want->key, &allowed, t->arena);
    buf_addz(out, "; the types that ");
    add_pool(out, ask);
    buf_addz(out, has.count ? " allows have " : " allows do not have it");
    add_names(out, has);
}

static void wants_detail(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct requirement *want = &ask->wants.items[t->at];
    if (t->reason == REASON_VOLUME && !want->complement && !want->values.count) {
        buf_addz(out, "asks for another ");
        add_key(out, want->key);
        buf_addz(out, " than its volumes are in");
        return;
    }
    if (t->reason == REASON_VOLUME) {
        volumes_detail(t, want, out);
    } else {
        buf_addz(out, "asks for ");
        add_want(out, want);
    }
    if (str_eq(want->key, STR(LABEL_HOSTNAME))) {
        buf_addz(out, "; a new node has a name of its own");
        return;
    }
    switch (t->mismatch.why) {
    case MISMATCH_NONE:
        types_lack(t, want, out);
        return;
    case MISMATCH_UNDEFINED: {
        struct str near = requirements_nearest_key(&ask->allowed, ask->pool->well_known, want->key);
        buf_addz(out, "; ");
        add_pool(out, ask);
        buf_addz(out, " does not define that label");
        if (near.p) {
            buf_addz(out, "; did you mean ");
            add_name(out, near);
            buf_addc(out, '?');
        }
        return;
    }
    case MISMATCH_NO_INTERSECTION:
        buf_addz(out, "; ");
        add_pool(out, ask);
        buf_addz(out, t->mismatch.node->complement || t->mismatch.node->values.count ? " allows "
                                                                                     : " has ");
        add_values(out, t->mismatch.node);
        return;
    }
    KV_UNREACHABLE();
}

/* --- images --- */

/* Of the rows of a type it is the one that fits least that leaves it out. */
static uint32_t row_at_fault(const struct ask *ask, const struct sched_fit *fit, uint32_t machine)
{
    const struct instance_types *types = ask->pool->types;
    const uint8_t *maybe_rows = sched_fit_rows(fit, ask->pool->source);
    uint32_t worst = machine;
    for (uint32_t row = types->type_count; maybe_rows && row < types->row_count; row++) {
        if (types->row_type[row] == types->row_type[machine] && maybe_rows[row] < maybe_rows[worst])
            worst = row;
    }
    return worst;
}

void add_images_why(const struct trial *t, uint32_t machine, struct buf *out)
{
    const struct model *m = t->ask->state->model;
    const struct snapshot_fits *fits = &m->snap->fits;
    uint32_t source = m->fits[t->ask->fit].source;
    struct str why = STR("");
    if (fits->why)
        why = fits->why(fits->ctx, t->arena, source, t->ask->pool->source,
                        row_at_fault(t->ask, &fits->items[source], machine));
    if (why.len)
        add_text(out, why);
    else
        buf_addz(out, "its images do not run there");
}

static void images_detail(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct instance_types *types = ask->pool->types;
    bool sure = ask->state->model->snap->fits.unknown == FIT_UNKNOWN_AS_NO;
    uint32_t machine;
    trial_nearest_image(t, &machine);
    buf_addz(out, "no type that ");
    add_pool(out, ask);
    buf_addf(out, " allows%s %s its images (", ask->wants.count ? " and the pod asks for" : "",
             sure ? "is known to run" : "runs");
    add_images(out, ask);
    buf_addz(out, "); ");
    add_name(out, types->names[types->row_type[machine]]);
    buf_addz(out, ": ");
    add_images_why(t, machine, out);
}

/* --- resources --- */

/* "96 cpu" */
static void add_short(struct buf *out, const struct ask *ask, uint32_t resource)
{
    const struct model *m = ask->state->model;
    add_need(out, m->resources[resource], ask->request[resource]);
    buf_addc(out, ' ');
    add_name(out, m->resources[resource]);
}

int64_t machine_room(const struct ask *ask, uint32_t machine, uint32_t resource)
{
    return ask->pool->room[(size_t)machine * ask->state->model->resource_count + resource];
}

uint32_t machine_largest(const struct ask *ask, const struct bitset *machines, uint32_t resource)
{
    const int64_t *room = ask->pool->room + resource;
    size_t stride = ask->state->model->resource_count;
    uint32_t best = NONE;
    for (uint32_t row = 0; row < machines->bit_count; row++) {
        if ((best == NONE || room[row * stride] > room[best * stride]) &&
            bitset_test(machines, row))
            best = row;
    }
    return best;
}

static int64_t capacity_of(const struct ask *ask, uint32_t machine, uint32_t resource)
{
    const struct resource_column *column =
        instance_types_resource(ask->pool->types, ask->state->model->resources[resource]);
    return column ? column->capacity[machine] : 0;
}

/* " in us-east-1a with kubernetes.io/arch arm64 where its images run": what the pod asked that left out
 * types. Gives back how to refer to it. */
static const char *add_asked(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct instance_types *types = ask->pool->types;
    struct bitset left = machines_allowed(t), before = bitset_new(t->arena, types->row_count);
    const char *refer = "";
    for (uint32_t i = 0; i < ask->wants.count; i++) {
        const struct requirement *want = &ask->wants.items[i];
        if (str_eq(want->key, STR(LABEL_HOSTNAME)))
            continue;
        bool zone = str_eq(want->key, STR(LABEL_ZONE)) && !want->complement;
        bitset_copy(&before, &left);
        machines_narrow(types, want, &left);
        if (bitset_equal(&before, &left) && !zone)
            continue;
        refer = zone ? " there" : *refer ? refer : " with that";
        if (zone) {
            buf_addz(out, " in ");
            add_names(out, want->values);
        } else {
            buf_addz(out, " with ");
            add_want(out, want);
        }
    }
    bitset_copy(&before, &left);
    machines_run_images(ask, &left);
    if (!bitset_equal(&before, &left)) {
        buf_addz(out, " where its images run");
        refer = " there";
    }
    return refer;
}

/* "has 63.4 for pods of 64" */
static void add_largest(const struct ask *ask, uint32_t machine, uint32_t resource, struct buf *out)
{
    struct str name = ask->state->model->resources[resource];
    int64_t room = machine_room(ask, machine, resource);
    int64_t capacity = capacity_of(ask, machine, resource);
    buf_addz(out, " has ");
    add_have(out, name, room < 0 ? 0 : room);
    if (capacity > room) {
        buf_addz(out, " for pods of ");
        add_have(out, name, capacity);
    }
}

/* Some type has enough of it, but not beside the other things that are needed. */
static void combination_detail(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    bool first = true;
    for (uint32_t r = 0; r < t->at; r++) {
        if (r == RESOURCE_PODS || ask->request[r] <= 0)
            continue;
        buf_addz(out, first ? " beside " : " and ");
        add_short(out, ask, r);
        first = false;
    }
    add_asked(t, out);
    buf_addz(out, "; of the types that ");
    add_pool(out, ask);
    buf_addz(out, " allows and that have the rest the largest");
    add_largest(ask, machine_largest(ask, &t->before, t->at), t->at, out);
}

static void resource_detail(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    uint32_t r = t->at;
    uint32_t largest = machine_largest(ask, &t->suitable, r);
    bool enough = machine_room(ask, largest, r) >= ask->request[r];
    if (!enough && (r == RESOURCE_PODS || ask->request[r] <= 0)) {
        buf_addz(out, "no type that ");
        add_pool(out, ask);
        buf_addz(out, " allows has room for a pod beside the system and the DaemonSets");
        return;
    }
    buf_addz(out, "needs ");
    add_short(out, ask, r);
    if (enough) {
        combination_detail(t, out);
        return;
    }
    const char *there = add_asked(t, out);
    struct bitset everything = bitset_new(t->arena, ask->pool->machine_count);
    bitset_fill(&everything);
    uint32_t of_all = machine_largest(ask, &everything, r);
    bool anywhere = machine_room(ask, of_all, r) >= ask->request[r];
    if (capacity_of(ask, largest, r) <= 0) {
        buf_addz(out, "; no type that ");
        add_pool(out, ask);
        buf_addf(out, " allows%s has any", there);
    } else if (anywhere) {
        buf_addz(out, "; the largest type that ");
        add_pool(out, ask);
        buf_addf(out, " allows%s", there);
        add_largest(ask, largest, r, out);
    } else {
        buf_addz(out, "; the largest type there is"); /* whatever the pool allows */
        add_largest(ask, of_all, r, out);
    }
}

/* --- host ports --- */

static bool spec_takes(const struct pod_spec *spec, const struct host_port *port)
{
    for (uint32_t i = 0; i < spec->init_containers.count + spec->containers.count; i++) {
        bool init = i < spec->init_containers.count;
        const struct container *c = init ? &spec->init_containers.items[i]
                                         : &spec->containers.items[i - spec->init_containers.count];
        for (uint32_t k = 0; k < c->ports.count; k++) {
            const struct container_port *taken = &c->ports.items[k];
            uint8_t protocol = taken->protocol ? taken->protocol : PROTOCOL_TCP;
            if (pod_host_port(spec, taken) == port->port && protocol == port->protocol)
                return true;
        }
    }
    return false;
}

/* "DaemonSet kube-system/proxy": of several that take such a port the first by name. */
static void add_port_holder(const struct ask *ask, uint32_t port, struct buf *out)
{
    const struct model *m = ask->state->model;
    const struct meta *first = NULL;
    for (uint32_t i = 0; i < m->snap->daemon_set_count; i++) {
        const struct daemon_set *ds = m->snap->daemon_sets[i];
        const struct meta *meta = &ds->object.meta;
        if (!ds->spec.maybe_template ||
            !spec_takes(&ds->spec.maybe_template->spec, &m->ports[port]))
            continue;
        int order = first ? str_cmp(meta->namespace_, first->namespace_) : -1;
        if (order < 0 || (order == 0 && str_cmp(meta->name, first->name) < 0))
            first = meta;
    }
    if (!first) {
        buf_addz(out, "a DaemonSet");
        return;
    }
    buf_addz(out, "DaemonSet ");
    add_name(out, first->namespace_);
    buf_addc(out, '/');
    add_name(out, first->name);
}

static void ports_detail(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct model *m = ask->state->model;
    const uint32_t *taken = ask->pool->daemon_ports[bitset_first(&t->before)];
    for (; *taken != NONE; taken++) {
        for (uint32_t i = 0; i < ask->class_->port_count; i++) {
            uint32_t port = ask->class_->ports[i];
            if (!bitset_test(&m->ports[port].conflicts, *taken))
                continue;
            buf_addz(out, "host port ");
            add_port(out, &m->ports[port]);
            buf_addz(out, " is taken by ");
            add_port_holder(ask, port, out);
            return;
        }
    }
}

/* --- offerings --- */

#define OFFERINGS_SHOWN 3

static void offering_detail(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    const struct instance_types *types = ask->pool->types;
    struct bitset shapes = shapes_of(types, &t->joined, t->arena);
    uint32_t count = 0;
    size_t start = out->len;
    buf_addz(out, "every offering that would do is unavailable");
    bitset_each(&t->before, row) {
        uint32_t type = types->row_type[row];
        for (uint32_t o = types->offering_start[type]; o < types->offering_start[type + 1]; o++) {
            const struct offering_shape *shape = &types->shapes[types->offering_shape[o]];
            if (types->offering_row[o] != row || !bitset_test(&shapes, types->offering_shape[o]))
                continue;
            if (count++ >= OFFERINGS_SHOWN)
                continue;
            buf_addz(out, count == 1 ? ": " : ", ");
            add_name(out, types->names[type]);
            buf_addz(out, " as ");
            add_name(out, shape->capacity_type);
            buf_addz(out, " in ");
            add_name(out, shape->zone);
        }
    }
    if (count > OFFERINGS_SHOWN)
        buf_addf(out, " and %u others", count - OFFERINGS_SHOWN);
    if (count)
        return;
    /* Each label is there, but not together. */
    buf_cut(out, start);
    buf_addz(out, "no type that would do is offered with");
    bool first = true;
    for (uint32_t i = 0; i < t->joined.count && types->shape_count; i++) {
        const struct requirement *r = &t->joined.items[i];
        if (!requirements_find(&types->shapes[0].requirements, r->key) ||
            (r->complement && !r->values.count))
            continue;
        buf_addz(out, first ? " " : " and ");
        add_want(out, r);
        first = false;
    }
    buf_addz(out, first ? " anything" : "");
}

/* --- limits --- */

int64_t limit_total(const struct ask *ask, struct str resource)
{
    const struct snapshot *snap = ask->state->model->snap;
    const struct nodepool *pool = snap->pools[ask->pool->source].pool;
    return milli_floor(resources_get(&pool->spec.limits, resource));
}

/* The least that a machine which would do has of a limited resource. */
static int64_t limit_smallest(const struct trial *t, uint32_t limit)
{
    int64_t least = INT64_MAX;
    bitset_each(&t->before, row) {
        int64_t capacity = t->ask->pool->limits[limit].capacity[row];
        least = capacity < least ? capacity : least;
    }
    return least;
}

static void add_limit_left(const struct ask *ask, uint32_t limit, struct buf *out)
{
    struct str name = ask->pool->limits[limit].name;
    int64_t left = ask->left.limits[limit];
    add_have(out, name, left < 0 ? 0 : left);
    buf_addc(out, ' ');
    add_name(out, name);
    buf_addz(out, " left of ");
    add_have(out, name, limit_total(ask, name));
}

static void limits_detail(const struct trial *t, struct buf *out)
{
    const struct ask *ask = t->ask;
    buf_addz(out, "limits: ");
    if (ask->left.nodes <= 0) {
        buf_addz(out, "no node left of ");
        add_have(out, STR("nodes"), limit_total(ask, STR("nodes")));
        return;
    }
    for (uint32_t i = 0; i < ask->pool->limit_count; i++) {
        int64_t least = limit_smallest(t, i);
        if (least <= ask->left.limits[i])
            continue;
        add_limit_left(ask, i, out);
        buf_addz(out, ", the smallest type that fits has ");
        add_need(out, ask->pool->limits[i].name, least);
        return;
    }
    /* Each has enough for some type, and no type is within them all. */
    for (uint32_t i = 0; i < ask->pool->limit_count; i++) {
        buf_addz(out, i ? ", " : "");
        add_limit_left(ask, i, out);
    }
    buf_addz(out, "; no type that fits is within all of them");
}

/* --- the line --- */

struct str trial_detail(const struct trial *t, struct arena *arena)
{
    AUTO_BUF out = { 0 };
    switch (t->subject) {
    case SUBJECT_TAINTS:
        taints_detail(t, &out);
        break;
    case SUBJECT_POOL:
        pool_detail(t, &out);
        break;
    case SUBJECT_WANT:
        wants_detail(t, &out);
        break;
    case SUBJECT_IMAGES:
        images_detail(t, &out);
        break;
    case SUBJECT_RESOURCE:
        resource_detail(t, &out);
        break;
    case SUBJECT_PORTS:
        ports_detail(t, &out);
        break;
    case SUBJECT_OFFERING:
        offering_detail(t, &out);
        break;
    case SUBJECT_LIMITS:
        limits_detail(t, &out);
        break;
    case SUBJECT_GROUP:
        group_detail(t, t->at, &out);
        break;
    case SUBJECT_MIN_VALUES:
        buf_addz(&out, "minValues: ");
        add_name(&out, t->min_values.key);
        buf_addf(&out, ": %u of at least %" PRId64, t->min_values.have, t->min_values.want);
        break;
    }
    return buf_keep(arena, &out);
}
