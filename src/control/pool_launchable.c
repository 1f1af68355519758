/* LaunchPossible of a NodePool: what is known beforehand about launching its nodes.
 *
 * A pool can be right in every field and still have no machine: a zone that its class's types are not
 * in, an architecture that no type of the family has, spot where only on-demand is sold. That is a
 * matter of configuration which no launch need be spent on, so it is told here and never counts as a
 * failed registration. Three steps, each a smaller set than the one before:
 *
 *   types that meet the labels and requirements  none: NoCompatibleInstanceTypes
 *   their offerings, available or not            none: NoOfferings
 *   those that can be had at the moment          none: InstanceTypesUnavailable, which passes
 *
 * What a cloud offers changes by itself, so it is looked at again from time to time.
 */
#include "control/controllers.h"

#include "api/ec2nodeclass.h"
#include "api/kwoknodeclass.h"
#include "control/pools.h"
#include "sched/words.h"

#include <inttypes.h>

#define AGAIN_NS ((int64_t)5 * 60 * 1000000000)
#define AGAIN_UNAVAILABLE_NS ((int64_t)60 * 1000000000) /* marks of the cache last three minutes */
#define EVENT_QUIET_NS ((int64_t)60 * 1000000000)
#define OFFERED_SHOWN 6

struct verdict {
    enum condition_status status;
    struct str reason, message; /* of False and Unknown */
};

static struct verdict verdict_false(struct arena *arena, struct str reason, const struct buf *words)
{
    return (struct verdict){ CONDITION_FALSE, reason, arena_str(arena, buf_str(words)) };
}

/* --- types --- */

/* Values that these types have for the key, sorted. */
static struct str_list values_of(const struct instance_types *types, struct str key,
                                 const struct bitset *of, struct arena *arena)
{
    const struct label_column *column = instance_types_label(types, key);
    uint32_t value_count = column ? column->value_count : 0, count = 0;
    struct str *values = arena_array(arena, struct str, value_count);
    for (uint32_t i = 0; i < value_count; i++) {
        bool any = false;
        bitset_each(of, t)
            any = any || posting_has(&column->values[i].types, t);
        if (any)
            values[count++] = column->values[i].text;
    }
    return (struct str_list){ values, count };
}

/* "topology.kubernetes.io/zone In [us-east-9z] leaves nothing: the types have a, b and c" */
static void requirement_words(const struct instance_types *types, const struct requirement *r,
                              const struct bitset *before, bool alone, struct arena *arena,
                              struct buf *out)
{
    struct str_list has = values_of(types, r->key, before, arena);
    add_requirement(out, r);
    buf_addz(out, " leaves no instance type: ");
    buf_addz(out, alone ? "the types of its node class "
                        : "the types that meet the other requirements ");
    if (has.count) {
        buf_addz(out, "have ");
        add_names(out, has);
    } else {
        buf_addz(out, "do not have that label");
    }
}

/* The first requirement that nothing meets by itself, else the first that the others leave nothing
 * for. NULL: `left` has types. */
static const struct requirement *culprit(const struct instance_types *types,
                                         const struct requirements *set, struct bitset *before,
                                         struct bitset *left, bool *alone)
{
    for (int together = 0; together < 2; together++) {
        bitset_fill(left);
        for (uint32_t i = 0; i < set->count; i++) {
            if (!together)
                bitset_fill(left);
            bitset_copy(before, left);
            instance_types_narrow(types, &set->items[i], true, left);
            *alone = !together;
            if (!bitset_any(left))
                return &set->items[i];
        }
    }
    return NULL;
}

static bool min_values_missed(const struct instance_types *types, const struct requirements *set,
                              const struct bitset *left, struct arena *arena, struct buf *out)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct requirement *r = &set->items[i];
        struct str_list has = { 0 };
        uint32_t met = 0;
        if (!r->min_values.set)
            continue;
        has = values_of(types, r->key, left, arena);
        for (uint32_t k = 0; k < has.count; k++)
            met += requirement_has(r, has.items[k]);
        if (met >= r->min_values.value)
            continue;
        add_requirement(out, r);
        buf_addf(out, " asks for %" PRId64 " different values, and the types that are left have %u",
                 r->min_values.value, met);
        if (has.count) {
            buf_addz(out, ": ");
            add_names(out, has);
        }
        return true;
    }
    return false;
}

/* --- offerings --- */

struct offered {
    uint32_t count, available;
};

static struct offered offerings_among(const struct instance_types *types, const struct bitset *left,
                                      const struct bitset *shapes)
{
    struct offered found = { 0 };
    bitset_each(left, t) {
        for (uint32_t o = types->offering_start[t]; o < types->offering_start[t + 1]; o++) {
            if (!bitset_test(shapes, types->offering_shape[o]))
                continue;
            found.count++;
            found.available += bitset_test(&types->available, o);
        }
    }
    return found;
}

/* What the pool says of where and how it is bought, and what there is instead. */
static void offerings_words(const struct instance_types *types, const struct requirements *set,
                            const struct bitset *left, struct arena *arena, struct buf *out)
{
    struct bitset seen = bitset_new(arena, types->shape_count);
    uint32_t said = 0, shown = 0, more = 0;

    buf_addf(out, "none of the %u instance types that meet the requirements is offered with ",
             bitset_popcount(left));
    for (uint32_t i = 0; i < set->count; i++) {
        bool of_offerings = false;
        for (uint32_t s = 0; s < types->shape_count && !of_offerings; s++)
            of_offerings = requirements_find(&types->shapes[s].requirements, set->items[i].key);
        if (!of_offerings)
            continue;
        buf_addz(out, said++ ? " and " : "");
        add_requirement(out, &set->items[i]);
    }
    bitset_each(left, t) {
        for (uint32_t o = types->offering_start[t]; o < types->offering_start[t + 1]; o++)
            bitset_set(&seen, types->offering_shape[o]);
    }
    buf_addz(out, bitset_any(&seen) ? "; they are offered as " : "; they are not offered at all");
    bitset_each(&seen, s) {
        if (shown == OFFERED_SHOWN) {
            more++;
            continue;
        }
        buf_addf(out, "%s%s in %s", shown++ ? ", " : "", NAME_SHOWN(types->shapes[s].capacity_type),
                 NAME_SHOWN(types->shapes[s].zone));
    }
    if (more)
        buf_addf(out, " and %u more", more);
}

/* --- the verdict --- */

static struct verdict judge(const struct nodepool *pool, const struct instance_types *types,
                            enum min_values_policy min_values, struct arena *arena)
{
    AUTO_BUF words = { 0 };
    struct requirements set;
    struct err err = { 0 };
    bool alone = false;

    if (pool_requirements(arena, pool, &set, &err) < 0) {
        buf_addf(&words, "its requirements make no sense: %s", err.text);
        return verdict_false(arena, REASON_NO_COMPATIBLE_INSTANCE_TYPES, &words);
    }
    if (!types->type_count) {
        buf_addf(&words, "node class %s has no instance types",
                 NAME_SHOWN(pool->spec.template.spec.node_class_ref.name));
        return verdict_false(arena, REASON_NO_COMPATIBLE_INSTANCE_TYPES, &words);
    }
    struct bitset before = bitset_new(arena, types->type_count);
    struct bitset left = bitset_new(arena, types->type_count);
    const struct requirement *wrong = culprit(types, &set, &before, &left, &alone);
    if (wrong) {
        requirement_words(types, wrong, &before, alone, arena, &words);
        return verdict_false(arena, REASON_NO_COMPATIBLE_INSTANCE_TYPES, &words);
    }
    if (min_values == MIN_VALUES_STRICT && min_values_missed(types, &set, &left, arena, &words))
        return verdict_false(arena, REASON_NO_COMPATIBLE_INSTANCE_TYPES, &words);

    struct bitset shapes = bitset_new(arena, types->shape_count);
    instance_types_shapes(types, &set, &shapes);
    struct offered offered = offerings_among(types, &left, &shapes);
    if (!offered.count) {
        offerings_words(types, &set, &left, arena, &words);
        return verdict_false(arena, REASON_NO_OFFERINGS, &words);
    }
    if (!offered.available) {
        buf_addf(&words,
                 "nothing can be had at the moment: all %u offerings of the instance types that "
                 "meet the requirements are unavailable",
                 offered.count);
        return verdict_false(arena, REASON_INSTANCE_TYPES_UNAVAILABLE, &words);
    }
    return (struct verdict){ .status = CONDITION_TRUE };
}

/* --- telling it --- */

static void tell(struct control *c, const struct object *pool, const struct verdict *verdict)
{
    if (verdict->status != CONDITION_FALSE ||
        str_eq(verdict->reason, REASON_INSTANCE_TYPES_UNAVAILABLE))
        return; /* for want of capacity nobody need act */
    recorder_publish(c->recorder, &(struct notice){ .about = pool,
                                                    .warning = true,
                                                    .reason = "NoCompatibleInstanceTypes",
                                                    .message = verdict->message,
                                                    .quiet_ns = EVENT_QUIET_NS });
}

static int verdict_of(struct control *c, const struct nodepool *pool, struct arena *arena,
                      struct verdict *out, struct err *err)
{
    AUTO_INSTANCE_TYPES types = NULL;
    if (c->provider->get_instance_types(c->provider->ctx, pool, &types, err) < 0) {
        if (err->kind != ERR_NOT_FOUND)
            return err_wrap(err, "instance types of NodePool %.*s",
                            STR_ARG(pool->object.meta.name));
        *out = (struct verdict){ CONDITION_UNKNOWN, REASON_NODE_CLASS_NOT_FOUND,
                                 arena_str(arena, str_of(err->text)) };
        return 0;
    }
    *out = judge(pool, types, c->options.settings.min_values, arena);
    return 0;
}

static struct outcome reconcile(struct control *c, struct str key)
{
    AUTO_ARENA arena = { 0 };
    AUTO_OBJECT object = pool_managed(c, key);
    struct err err = { 0 };
    struct verdict verdict = { 0 };
    if (!object)
        return outcome_done();
    const struct nodepool *pool = nodepool_of(object);
    if (verdict_of(c, pool, &arena, &verdict, &err) < 0)
        return control_failed(c, &nodepool_launchable, key, &err);

    struct condition_set *set = pool_conditions(c, pool, &arena);
    bool changed = verdict.status == CONDITION_TRUE
                       ? conditions_set_true(set, CONDITION_LAUNCH_POSSIBLE)
                       : conditions_set(set, CONDITION_LAUNCH_POSSIBLE, verdict.status,
                                        verdict.reason, verdict.message);
    if (changed)
        tell(c, object, &verdict);
    if (control_patch_conditions(c, object, set, NULL, &err) < 0)
        return control_failed(c, &nodepool_launchable, key, &err);
    return outcome_requeue(verdict.status == CONDITION_FALSE &&
                                   str_eq(verdict.reason, REASON_INSTANCE_TYPES_UNAVAILABLE)
                               ? AGAIN_UNAVAILABLE_NS
                               : AGAIN_NS);
}

const struct controller nodepool_launchable = {
    .name = "nodepool.launchable",
    .reconcile = reconcile,
    .triggers = { { &nodepool_kind, trigger_pool_asked },
                  { &ec2nodeclass_kind, trigger_pools_of_class },
                  { &kwoknodeclass_kind, trigger_pools_of_class } },
};
