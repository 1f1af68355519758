/* What change would make it fit.
 *
 * Every edit is tried: an ask that differs in that one thing, and a trial of it. An edit that does
 * not let the pod in is not offered, so what is offered is the constraint that alone stood in the
 * way. Which are tried first depends on what failed; the first two that help are told.
 */
#include "sched/explain_inner.h"

#include <inttypes.h>

#define EDITS_SHOWN 2
#define VALUES_TRIED 64 /* of one key: the first nearly always helps */

/* An edit: if it helps it is written to `out`. */
typedef bool (*edit_fn)(const struct trial *t, struct buf *out);

static void add_of_pool(const struct ask *ask, const char *in, struct buf *out)
{
    buf_addf(out, " %s NodePool ", in);
    add_name(out, pool_name(ask));
}

/* --- the pod's side --- */

static bool edit_toleration(const struct trial *t, struct buf *out)
{
    struct ask ask = *t->ask;
    ask.overlooked |= 1u << REASON_TAINTS;
    struct taint_list refused = taints_refused(t->ask, t->arena);
    if (!refused.count || !ask_possible(&ask))
        return false;
    buf_addf(out, "add toleration%s ", refused.count == 1 ? "" : "s");
    for (uint32_t i = 0; i < refused.count; i++) {
        buf_addz(out, i ? ", " : "");
        add_taint(out, &refused.items[i]);
    }
    return true;
}

static struct requirements without(struct arena *arena, const struct requirements *set, uint32_t at)
{
    struct requirement *items = arena_array(arena, struct requirement, set->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < set->count; i++) {
        if (i != at)
            items[count++] = set->items[i];
    }
    return (struct requirements){ items, count };
}

/* What was asked when nothing was left, then the others. What volumes ask is not the pod's to
 * change. */
static bool edit_want(const struct trial *t, struct buf *out)
{
    const struct ask *old = t->ask;
    uint32_t first = t->subject == SUBJECT_WANT ? t->at : 0;
    for (uint32_t k = 0; k < old->wants.count; k++) {
        uint32_t i = (first + k) % old->wants.count;
        struct ask ask = *old;
        if (want_reason(old, &old->wants.items[i]) == REASON_VOLUME)
            continue;
        ask.wants = without(t->arena, &old->wants, i);
        if (!ask_possible(&ask))
            continue;
        buf_addz(out, "no longer ask for ");
        add_want(out, &old->wants.items[i]);
        return true;
    }
    return false;
}

/* Rounded down to what one would write: whole cores or Gi where there are many, else hundredths of
 * a core, or Mi. */
static int64_t round_request(struct str resource, int64_t milli)
{
    int64_t mi = INT64_C(1000) << 20, gi = INT64_C(1000) << 30;
    int64_t step;
    if (resource_is_bytes(resource))
        step = milli >= 16 * gi ? gi : milli >= mi ? mi : 1000;
    else if (str_eq(resource, STR("cpu")))
        step = milli >= 16000 ? 1000 : milli >= 10 ? 10 : 1;
    else
        step = 1000;
    return milli - milli % step;
}

static void add_quantity(struct buf *out, struct str resource, int64_t milli)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_of_milli(milli);
    if (resource_is_bytes(resource))
        q.format = QUANTITY_BINARY;
    quantity_format(q, text);
    buf_addz(out, text);
}

/* One resource is asked for in full measure by no machine: how much would be? */
static bool edit_request(const struct trial *t, struct buf *out)
{
    const struct ask *old = t->ask;
    const struct model *m = old->state->model;
    int64_t *request = arena_array(t->arena, int64_t, m->resource_count);
    for (uint32_t r = 0; r < m->resource_count; r++) {
        struct ask ask = *old;
        struct trial free_of_it;
        if (r == RESOURCE_PODS || old->request[r] <= 0)
            continue;
        memcpy(request, old->request, m->resource_count * sizeof *request);
        request[r] = 0;
        ask.request = request;
        trial_run(&free_of_it, &ask, t->arena, NULL);
        if (!free_of_it.possible)
            continue;
        uint32_t largest = machine_largest(&ask, &free_of_it.machines, r);
        request[r] = round_request(m->resources[r], machine_room(&ask, largest, r));
        if (request[r] <= 0 || request[r] >= old->request[r] || !ask_possible(&ask))
            continue;
        buf_addz(out, "lower the ");
        add_name(out, m->resources[r]);
        buf_addz(out, " request to ");
        add_quantity(out, m->resources[r], request[r]);
        return true;
    }
    return false;
}

static bool edit_ports(const struct trial *t, struct buf *out)
{
    const struct model *m = t->ask->state->model;
    struct ask ask = *t->ask;
    ask.overlooked |= 1u << REASON_HOST_PORT;
    if (t->subject != SUBJECT_PORTS || !ask_possible(&ask))
        return false;
    buf_addz(out, "take other host ports than ");
    for (uint32_t i = 0; i < ask.class_->port_count; i++) {
        buf_addz(out, i ? ", " : "");
        add_port(out, &m->ports[ask.class_->ports[i]]);
    }
    return true;
}

/* A term of the pod's own; what keeps it away from other pods is theirs. */
static bool edit_group(const struct trial *t, struct buf *out)
{
    const struct model *m = t->ask->state->model;
    struct ask ask = *t->ask;
    if (t->subject != SUBJECT_GROUP || !variant_owns(ask.variant, t->at))
        return false;
    ask.overlooked_group = t->at;
    if (!ask_possible(&ask))
        return false;
    const struct group *g = &m->groups[t->at];
    buf_addz(out, g->kind == GROUP_SPREAD     ? "make the spread over "
                  : g->kind == GROUP_AFFINITY ? "make the affinity on "
                                              : "make the anti-affinity on ");
    add_name(out, m->keys[g->key].name);
    buf_addz(out, g->kind == GROUP_SPREAD ? " ScheduleAnyway" : " preferred");
    return true;
}

/* --- the pool's side --- */

/* Is the key one that the NodePool's owner wrote? */
static bool pool_wrote(const struct ask *ask, struct str key)
{
    const struct snapshot *snap = ask->state->model->snap;
    const struct node_template *template = &snap->pools[ask->pool->source].pool->spec.template;
    for (uint32_t i = 0; i < template->spec.requirements.count; i++) {
        if (str_eq(label_normalise(template->spec.requirements.items[i].key), key))
            return true;
    }
    return str_map_get(&template->meta.labels, key).p != NULL;
}

/* `old` and one value more. Of an open set the value alone is tried, which is less. */
static struct requirement widened(struct arena *arena, const struct requirement *old,
                                  struct str value)
{
    struct str *values = arena_array(arena, struct str, old->values.count + 1);
    uint32_t count = 0;
    for (uint32_t i = 0; i < old->values.count && !old->complement; i++)
        values[count++] = old->values.items[i];
    values[count++] = value;
    count = (uint32_t)str_sort_unique(values, count);
    return (struct requirement){ .key = old->key,
                                 .values = { values, count },
                                 .min_values = old->min_values };
}

static bool allow_helps(const struct trial *t, uint32_t at, struct str value, struct buf *out)
{
    struct ask ask = *t->ask;
    struct requirement more = widened(t->arena, &ask.allowed.items[at], value);
    struct requirements rest = without(t->arena, &ask.allowed, at);
    ask.allowed = requirements_add(t->arena, &rest, &more);
    if (requirement_has(&t->ask->allowed.items[at], value) || !ask_possible(&ask))
        return false;
    buf_addz(out, "allow ");
    add_name(out, more.key);
    buf_addc(out, ' ');
    add_name(out, value);
    add_of_pool(t->ask, "in", out);
    return true;
}

/* Without the pool's requirement at `at`, which types would do? The cheapest tells the value that
 * is missing; where the pod itself names values, it is one of those. */
static bool allow_one(const struct trial *t, uint32_t at, struct buf *out)
{
    const struct requirement *old = &t->ask->allowed.items[at];
    const struct requirement *want = requirements_find(&t->ask->wants, old->key);
    const struct instance_types *types = t->ask->pool->types;
    if (want && !want->complement) {
        for (uint32_t i = 0; i < want->values.count; i++) {
            if (allow_helps(t, at, want->values.items[i], out))
                return true;
        }
        return false;
    }
    struct ask ask = *t->ask;
    struct trial freed;
    ask.allowed = without(t->arena, &t->ask->allowed, at);
    trial_run(&freed, &ask, t->arena, NULL);
    if (!freed.possible)
        return false;
    uint32_t tried = 0;
    for (uint32_t i = 0; i < types->type_count; i++) {
        uint32_t type = types->price_order[i];
        const struct requirement *own = instance_type_requirement(types, type, old->key);
        if (!bitset_test(&freed.machines, type) || !own || own->complement)
            continue;
        for (uint32_t k = 0; k < own->values.count && tried < VALUES_TRIED; k++, tried++) {
            if (allow_helps(t, at, own->values.items[k], out))
                return true;
        }
    }
    return false;
}

static bool edit_allow(const struct trial *t, struct buf *out)
{
    for (uint32_t i = 0; i < t->ask->allowed.count; i++) {
        if (pool_wrote(t->ask, t->ask->allowed.items[i].key) && allow_one(t, i, out))
            return true;
    }
    return false;
}

/* A label of the pod's that the pool does not define. */
static bool edit_label(const struct trial *t, struct buf *out)
{
    struct ask ask = *t->ask;
    if (t->subject != SUBJECT_WANT || t->mismatch.why != MISMATCH_UNDEFINED)
        return false;
    const struct requirement *want = &ask.wants.items[t->at];
    if (want->complement || !want->values.count)
        return false;
    struct requirement label =
        requirement_in(t->arena, want->key, (struct str_list){ want->values.items, 1 });
    ask.allowed = requirements_add(t->arena, &ask.allowed, &label);
    if (!ask_possible(&ask))
        return false;
    buf_addz(out, "add label ");
    add_name(out, want->key);
    buf_addc(out, '=');
    add_name(out, want->values.items[0]);
    add_of_pool(t->ask, "to", out);
    return true;
}

/* Of the machines within all but the limits: the one that needs the fewest raised, then the
 * cheapest type. */
static uint32_t machine_least_over(const struct ask *ask, const struct bitset *machines)
{
    const struct instance_types *types = ask->pool->types;
    uint32_t best = NONE, best_over = 0;
    for (uint32_t i = 0; i < types->type_count; i++) {
        uint32_t type = types->price_order[i], over = 0;
        if (!bitset_test(machines, type))
            continue;
        for (uint32_t k = 0; k < ask->pool->limit_count; k++)
            over += ask->pool->limits[k].capacity[type] > ask->left.limits[k];
        if (best == NONE || over < best_over) {
            best = type;
            best_over = over;
        }
    }
    return best;
}

static void add_raised(const struct ask *ask, struct str resource, int64_t more, bool first,
                       struct buf *out)
{
    buf_addz(out, first ? "raise limits." : " and limits.");
    add_name(out, resource);
    if (first)
        add_of_pool(ask, "of", out);
    buf_addz(out, " to ");
    add_quantity(out, resource, limit_total(ask, resource) + more);
}

static bool edit_limits(const struct trial *t, struct buf *out)
{
    const struct ask *old = t->ask;
    const struct pool *pool = old->pool;
    struct ask ask = *old;
    struct trial freed;
    if (t->subject != SUBJECT_LIMITS)
        return false;
    ask.overlooked |= 1u << REASON_LIMITS;
    trial_run(&freed, &ask, t->arena, NULL);
    uint32_t machine = freed.possible ? machine_least_over(old, &freed.machines) : NONE;
    if (machine == NONE)
        return false;

    ask = *old;
    ask.left.limits = arena_array(t->arena, int64_t, pool->limit_count);
    ask.left.nodes = old->left.nodes > 0 ? old->left.nodes : 1;
    for (uint32_t i = 0; i < pool->limit_count; i++) {
        int64_t capacity = pool->limits[i].capacity[machine], left = old->left.limits[i];
        ask.left.limits[i] = left >= capacity ? left : capacity;
    }
    if (!ask_possible(&ask))
        return false;
    bool first = true;
    if (ask.left.nodes != old->left.nodes) {
        int64_t more = 1000 * (ask.left.nodes - old->left.nodes);
        add_raised(old, STR("nodes"), more, first, out);
        first = false;
    }
    for (uint32_t i = 0; i < pool->limit_count; i++) {
        if (ask.left.limits[i] == old->left.limits[i])
            continue;
        add_raised(old, pool->limits[i].name, ask.left.limits[i] - old->left.limits[i], first, out);
        first = false;
    }
    return true;
}

static bool edit_min_values(const struct trial *t, struct buf *out)
{
    struct ask ask = *t->ask;
    if (t->subject != SUBJECT_MIN_VALUES || !t->min_values.have)
        return false;
    struct requirement *items = arena_array(t->arena, struct requirement, ask.allowed.count);
    for (uint32_t i = 0; i < ask.allowed.count; i++) {
        items[i] = ask.allowed.items[i];
        if (str_eq(items[i].key, t->min_values.key))
            items[i].min_values.value = t->min_values.have;
    }
    ask.allowed.items = items;
    if (!ask_possible(&ask))
        return false;
    buf_addz(out, "lower minValues of ");
    add_name(out, t->min_values.key);
    buf_addf(out, " to %u", t->min_values.have);
    add_of_pool(t->ask, "in", out);
    return true;
}

/* --- which first --- */

struct str trial_edit(const struct trial *t, struct arena *arena)
{
    /* What a pool's owner can do comes before what takes something from the pod, except where it is
     * the pod that asks for something odd. The functions know when they do not apply. */
    static const edit_fn edits[] = {
        edit_toleration, edit_label, edit_limits,     edit_ports, edit_allow,
        edit_request,    edit_group, edit_min_values, edit_want,
    };
    AUTO_BUF out = { 0 };
    uint32_t shown = 0;
    for (size_t i = 0; i < KV_COUNT_OF(edits) && shown < EDITS_SHOWN; i++) {
        size_t start = out.len;
        buf_addz(&out, shown ? "; or " : "");
        if (edits[i](t, &out))
            shown++;
        else
            buf_cut(&out, start);
    }
    return buf_keep(arena, &out);
}
