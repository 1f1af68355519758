/* Pods with equal demands share a fit: a deployment is one, however many replicas it has. The verdicts come from
 * the fleet, which remembers them per class of nodes and per machine.
 */
#include "control/image_fits.h"

#include "api/labels.h"
#include "base/map.h"
#include "base/vec.h"

struct fit_source {
    const struct demand *place, *launch; /* references; NULL: still pending */
    struct str_list pending;
};

struct image_fits {
    struct compat_service *service;
    const struct snapshot *snap;
    VEC(struct fit_source) sources;
    struct map ids;   /* of both demands' addresses -> 1 + the fit */
    struct map specs; /* of a pod's spec and namespace -> 1 + the fit, 0 for none */
};

static uint8_t fit_of(struct fleet_verdict verdict)
{
    return verdict.match == MATCH_YES       ? FIT_YES
           : verdict.match == MATCH_UNKNOWN ? FIT_UNKNOWN
                                            : FIT_NO;
}

/* --- pods --- */

static struct str_list copy_names(struct arena *arena, struct str_list names)
{
    struct str *items = arena_array(arena, struct str, names.count);
    for (uint32_t i = 0; i < names.count; i++)
        items[i] = arena_str(arena, names.items[i]);
    return (struct str_list){ items, names.count };
}

/* UINT32_MAX: it asks for nothing. */
static uint32_t fit_of_pod(struct image_fits *fits, struct arena *arena, const struct pod *pod)
{
    struct pod_demand place, launch;
    uint32_t ix = UINT32_MAX;
    uintptr_t known = 0;
    compat_service_demand(fits->service, pod, DEMAND_PLACE, &place);
    compat_service_demand(fits->service, pod, DEMAND_LAUNCH, &launch);
    bool pending = !place.maybe_demand || !launch.maybe_demand;
    const void *both[] = { place.maybe_demand, launch.maybe_demand };
    uint64_t key = kv_hash(both, sizeof both);
    if (!pending && demand_is_empty(place.maybe_demand) && demand_is_empty(launch.maybe_demand)) {
        /* whatever node it gets */
    } else if (!pending && map_get(&fits->ids, key, &known)) {
        ix = (uint32_t)known - 1;
    } else {
        struct fit_source source = { 0 };
        if (pending) {
            struct str_list names = place.pending.count ? place.pending : launch.pending;
            source.pending = copy_names(arena, names);
        } else {
            source = (struct fit_source){ demand_ref(place.maybe_demand),
                                          demand_ref(launch.maybe_demand),
                                          { 0 } };
            map_put(&fits->ids, key, fits->sources.count + 1);
        }
        ix = (uint32_t)fits->sources.count;
        vec_push(&fits->sources, source);
    }
    pod_demand_done(&place);
    pod_demand_done(&launch);
    return ix;
}

/* Replicas have one spec, and in one namespace the same pull secrets. */
static uint32_t fit_of_spec(struct image_fits *fits, struct arena *arena, const struct pod *pod)
{
    struct str namespace_ = pod->object.meta.namespace_;
    uint64_t key = kv_hash_salted(namespace_.p, namespace_.len, (uintptr_t)pod->spec);
    uintptr_t known;
    if (!map_get(&fits->specs, key, &known)) {
        known = (uintptr_t)(fit_of_pod(fits, arena, pod) + 1);
        map_put(&fits->specs, key, known);
    }
    return (uint32_t)known - 1;
}

static struct str images_words(struct arena *arena, const struct fit_source *source)
{
    AUTO_BUF words = { 0 };
    uint32_t count = source->place ? demand_image_count(source->place) : source->pending.count;
    for (uint32_t i = 0; i < count; i++) {
        buf_addz(&words, i ? ", " : "");
        buf_add(&words,
                source->place ? demand_image(source->place, i)->name : source->pending.items[i]);
    }
    return arena_str(arena, buf_str(&words));
}

/* --- verdicts --- */

static const uint8_t *judge_machines(struct image_fits *fits, struct arena *arena,
                                     const struct demand *demand,
                                     const struct instance_types *types)
{
    uint8_t *out = arena_array(arena, uint8_t, types->row_count);
    for (uint32_t row = 0; row < types->row_count; row++) {
        struct machine_kind machine;
        if (row < types->type_count) {
            machine_of_type(types, row, &machine);
            out[row] =
                fit_of(fleet_judge_machine(compat_service_fleet(fits->service), demand, &machine));
        } else {
            out[row] = out[types->row_type[row]]; /* as the type: images ask for no amounts */
        }
    }
    return out;
}

static const uint8_t *judge_nodes(struct image_fits *fits, struct arena *arena,
                                  const struct demand *demand)
{
    const struct snapshot *snap = fits->snap;
    uint8_t *out = arena_array(arena, uint8_t, snap->node_count);
    struct str *names = arena_array(arena, struct str, snap->node_count);
    struct fleet_verdict *verdicts = arena_array(arena, struct fleet_verdict, snap->node_count);
    for (uint32_t i = 0; i < snap->node_count; i++)
        names[i] = snap->nodes[i]->object.meta.name;
    compat_service_judge(fits->service, demand, names, snap->node_count, verdicts);
    for (uint32_t i = 0; i < snap->node_count; i++)
        out[i] = fit_of(verdicts[i]);
    return out;
}

static const struct sched_pool *pool_of_claim(const struct snapshot *snap,
                                              const struct nodeclaim *claim)
{
    struct str name = str_map_get(&claim->object.meta.labels, STR(LABEL_NODEPOOL));
    for (uint32_t i = 0; i < snap->pool_count; i++) {
        if (str_eq(snap->pools[i].pool->object.meta.name, name))
            return &snap->pools[i];
    }
    return NULL;
}

/* The worst of what may come of it: one type once it is launched, those it asks for before. */
static uint8_t judge_claim(struct image_fits *fits, const struct demand *demand,
                           const struct nodeclaim *claim)
{
    const struct sched_pool *pool = pool_of_claim(fits->snap, claim);
    struct str type = str_map_get(&claim->object.meta.labels, STR(LABEL_INSTANCE_TYPE));
    const struct str *names = &type;
    uint32_t count = type.len ? 1 : 0;
    uint8_t worst = FIT_YES;
    for (uint32_t i = 0; !count && i < claim->spec.node.requirements.count; i++) {
        const struct expression *e = &claim->spec.node.requirements.items[i];
        if (str_eq(e->key, STR(LABEL_INSTANCE_TYPE)) && e->op == OP_IN) {
            names = e->values.items;
            count = e->values.count;
        }
    }
    for (uint32_t i = 0; i < count && pool && pool->types; i++) {
        uint32_t at = instance_types_find(pool->types, names[i]);
        if (at == INSTANCE_TYPE_NONE)
            return FIT_UNKNOWN;
        struct machine_kind machine;
        machine_of_type(pool->types, at, &machine);
        uint8_t fit =
            fit_of(fleet_judge_machine(compat_service_fleet(fits->service), demand, &machine));
        worst = fit < worst ? fit : worst;
    }
    return count && pool && pool->types ? worst : FIT_UNKNOWN;
}

/* One that is pending fits nowhere: all of it is FIT_NO, which is 0. */
static void judge(struct image_fits *fits, struct arena *arena, const struct fit_source *source,
                  struct sched_fit *out)
{
    const struct snapshot *snap = fits->snap;
    const uint8_t **machines = arena_array(arena, const uint8_t *, snap->pool_count);
    uint8_t *claims = arena_array(arena, uint8_t, snap->claim_count);
    for (uint32_t i = 0; i < snap->pool_count; i++) {
        const struct instance_types *types = snap->pools[i].types;
        for (uint32_t k = 0; k < i && types && !machines[i]; k++) {
            if (snap->pools[k].types == types)
                machines[i] = machines[k];
        }
        if (!types || machines[i])
            continue;
        machines[i] = source->launch ? judge_machines(fits, arena, source->launch, types)
                                     : arena_array(arena, uint8_t, types->row_count);
    }
    for (uint32_t i = 0; source->place && i < snap->claim_count; i++)
        claims[i] = judge_claim(fits, source->place, snap->claims[i]);
    *out = (struct sched_fit){
        .images = images_words(arena, source),
        .machines = machines,
        .nodes = source->place ? judge_nodes(fits, arena, source->place)
                               : arena_array(arena, uint8_t, snap->node_count),
        .claims = claims,
    };
}

static struct str why(void *ctx, struct arena *arena, uint32_t fit, uint32_t ix, uint32_t row)
{
    struct image_fits *fits = ctx;
    const struct fit_source *source = &fits->sources.items[fit];
    AUTO_BUF words = { 0 };
    if (!source->place) {
        buf_addf(&words, "%.*s is being looked up", STR_ARG(source->pending.items[0]));
    } else if (row == UINT32_MAX) {
        compat_service_explain(fits->service, source->place,
                               fits->snap->nodes[ix]->object.meta.name, &words);
    } else {
        const struct instance_types *types = fits->snap->pools[ix].types;
        struct machine_kind machine;
        machine_of_type(types, types->row_type[row], &machine);
        fleet_explain_machine(compat_service_fleet(fits->service), source->launch, &machine,
                              &words);
    }
    return arena_str(arena, buf_str(&words));
}

/* --- all of it --- */

static enum fit_unknown unknown_of(enum unknown_policy policy)
{
    return policy == UNKNOWN_ALLOW  ? FIT_UNKNOWN_AS_YES
           : policy == UNKNOWN_DENY ? FIT_UNKNOWN_AS_NO
                                    : FIT_UNKNOWN_LAST;
}

struct image_fits *image_fits_build(struct arena *arena, struct compat_service *service,
                                    const struct bitset *wanted, struct snapshot *snap,
                                    uint32_t *maybe_pending)
{
    struct image_fits *fits = kv_calloc(1, sizeof *fits);
    uint32_t *pods = arena_array(arena, uint32_t, snap->pod_count);
    uint32_t pending = 0;
    fits->service = service;
    fits->snap = snap;
    for (uint32_t i = 0; i < snap->pod_count; i++) {
        pods[i] = UINT32_MAX;
        if (!bitset_test(wanted, i))
            continue;
        pods[i] = fit_of_spec(fits, arena, snap->pods[i]);
        pending += pods[i] != UINT32_MAX && !fits->sources.items[pods[i]].place;
    }
    struct sched_fit *items = arena_array(arena, struct sched_fit, fits->sources.count);
    for (size_t i = 0; i < fits->sources.count; i++)
        judge(fits, arena, &fits->sources.items[i], &items[i]);
    snap->fits = (struct snapshot_fits){
        .items = items,
        .count = (uint32_t)fits->sources.count,
        .pods = pods,
        .unknown = unknown_of(compat_service_settings(service)->unknown_features),
        .why = why,
        .ctx = fits,
    };
    if (maybe_pending)
        *maybe_pending = pending;
    return fits;
}

void image_fits_done(struct image_fits *maybe_fits)
{
    if (!maybe_fits)
        return;
    vec_each(&maybe_fits->sources, struct fit_source, source) {
        demand_unref(source->place);
        demand_unref(source->launch);
    }
    vec_done(&maybe_fits->sources);
    map_done(&maybe_fits->ids);
    map_done(&maybe_fits->specs);
    free(maybe_fits);
}
