/* The provider's calls, what scenarios do to the cloud, and what can be seen of it. */
#include "sim/cloud_impl.h"

#include "api/conditions.h"
#include "codec/duration.h"

const struct fake_naming sim_naming = {
    .node_prefix = "sim-",
    .provider_prefix = SIM_PROVIDER_PREFIX,
};

struct str claim_token(const struct nodeclaim *claim)
{
    const struct meta *meta = &claim->object.meta;
    return meta->uid.len ? meta->uid : meta->name;
}

/* --- instance types --- */

static int get_instance_types(void *ctx, const struct nodepool *pool,
                              const struct instance_types **out, struct err *err)
{
    struct sim_cloud *c = ctx;
    return market_types_marked(&c->market, pool, out, err);
}

static int get_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                          struct err *err)
{
    struct sim_cloud *c = ctx;
    return market_generation(&c->market, pool, out, err);
}

/* --- create --- */

/* Types depend on a pool through its node class alone, and the claim has that. */
static struct nodepool pool_of(const struct nodeclaim *claim)
{
    struct nodepool pool = { 0 };
    pool.object.meta.name = str_map_get(&claim->object.meta.labels, STR(LABEL_NODEPOOL));
    pool.spec.template.spec.node_class_ref = claim->spec.node.node_class_ref;
    return pool;
}

static void mark(struct sim_cloud *c, const struct instance_types *types, uint32_t offering)
{
    const struct offering_shape *shape = &types->shapes[types->offering_shape[offering]];
    unavailable_mark(c->market.marks, types->names[types->offering_type[offering]], shape->zone,
                     shape->capacity_type, shape->reservation_id);
}

static int pick(struct sim_cloud *c, const struct nodeclaim *claim, struct arena *scratch,
                const struct instance_types **types, uint32_t *offering, struct launch_failure *why,
                struct err *err)
{
    struct nodepool pool = pool_of(claim);
    struct fake_offerings found;

    if (market_types(&c->market, &pool, types, err) < 0)
        return err_wrap(err, "instance types");
    if (fake_offerings_find(scratch, *types, claim, c->market.marks, c->options.seed, &found, why,
                            err) < 0)
        return -1;
    while (fake_offerings_take(&found, offering)) {
        if (!market_is_dry(&c->market, *types, *offering))
            return 0;
        mark(c, *types, *offering);
    }
    return fake_offerings_insufficient(&found, why, err);
}

static int refuse_broken(struct str node_class, struct launch_failure *why, struct err *err)
{
    *why = (struct launch_failure){ LAUNCH_CREATE_ERROR, "Unauthorized" };
    return err_set(err, ERR_DENIED,
                   "node class %s: UnauthorizedOperation: you are not authorized to perform this "
                   "operation",
                   STR_SHOWN(node_class));
}

static int launch(struct sim_cloud *c, const struct nodeclaim *claim, struct vm **out,
                  struct launch_failure *why, struct err *err)
{
    const struct node_class_ref *ref = &claim->spec.node.node_class_ref;
    const struct instance_types *types;
    AUTO_OBJECT class_ = NULL;
    AUTO_ARENA scratch = { 0 };
    uint32_t offering;

    if (fake_class_for_launch(&c->port, c->options.store, ref, &class_, why, err) < 0)
        return -1;
    if (cloud_is_broken(c, SIM_BREAK_LAUNCH, ref->name))
        return refuse_broken(ref->name, why, err);
    if (pick(c, claim, &scratch, &types, &offering, why, err) < 0)
        return -1;

    struct vm *vm = kv_calloc(1, sizeof *vm);
    fake_instance_new(&vm->arena, &sim_naming, claim, types, offering,
                      clock_wall_us(c->options.clock), &vm->instance);
    vm->claim_uid = arena_str(&vm->arena, claim_token(claim));
    vm->node_class = arena_str(&vm->arena, ref->name);
    vm->price = instance_types_price(types, offering);
    vm->image_broken = cloud_is_broken(c, SIM_BREAK_IMAGE, ref->name);
    vm_start(c, vm, cloud_boot_ns(c, class_, vm->claim_uid));
    *out = vm;
    return 0;
}

static bool is_over(const struct vm *vm)
{
    return vm->state == VM_ENDING || vm->state == VM_ENDED;
}

static int create(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                  struct instance *out, struct launch_failure *why, struct err *err)
{
    struct sim_cloud *c = ctx;
    int rc = 0;

    *why = (struct launch_failure){ .kind = LAUNCH_OTHER };
    struct vm *vm = str_table_get(&c->by_token, claim_token(claim));
    if (vm && is_over(vm)) {
        why->kind = LAUNCH_INSUFFICIENT_CAPACITY;
        rc = err_set(err, ERR_CAPACITY, "the instance that was launched for this claim has ended");
    } else if (!vm) {
        rc = launch(c, claim, &vm, why, err);
        c->stats.launches += rc == 0;
    }
    if (rc < 0) {
        c->stats.refusals += why->kind == LAUNCH_INSUFFICIENT_CAPACITY;
        c->stats.launch_failures += why->kind != LAUNCH_INSUFFICIENT_CAPACITY;
        return -1;
    }
    fake_instance_copy(arena, &vm->instance, out);
    return 0;
}

/* --- delete, get, list --- */

static struct vm *find(const struct sim_cloud *c, struct str provider_id)
{
    return str_table_get(&c->by_provider_id, provider_id);
}

/* By its provider id or, for one that was launched and whose claim was not told, by the token. */
static struct vm *find_of_claim(const struct sim_cloud *c, const struct nodeclaim *claim)
{
    if (claim->status.provider_id.len)
        return find(c, claim->status.provider_id);
    struct vm *vm = str_table_get(&c->by_token, claim_token(claim));
    return vm && vm->state != VM_ENDED ? vm : NULL;
}

static int no_instance(const struct nodeclaim *claim, struct err *err)
{
    return err_set(err, ERR_NOT_FOUND, "claim %.*s has no instance",
                   STR_ARG(claim->object.meta.name));
}

static int delete_(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    struct sim_cloud *c = ctx;
    struct vm *vm = find_of_claim(c, claim);
    if (!vm)
        return no_instance(claim, err);
    vm_end(c, vm);
    return 0;
}

static void copy_out(struct arena *arena, const struct vm *vm, struct instance *out)
{
    fake_instance_copy(arena, &vm->instance, out);
    out->terminating = vm->instance.terminating;
}

static int get(void *ctx, struct str provider_id, struct arena *arena, struct instance *out,
               struct err *err)
{
    const struct vm *vm = find(ctx, provider_id);
    if (!vm)
        return err_set(err, ERR_NOT_FOUND, "there is no instance %s", STR_SHOWN(provider_id));
    copy_out(arena, vm, out);
    return 0;
}

static int by_provider_id(const void *a, const void *b)
{
    return str_cmp(((const struct instance *)a)->provider_id,
                   ((const struct instance *)b)->provider_id);
}

static int list(void *ctx, struct arena *arena, struct instances *out, struct err *err KV_UNUSED)
{
    const struct sim_cloud *c = ctx;
    struct instance *items = arena_array(arena, struct instance, c->by_provider_id.live_count);
    uint32_t count = 0;

    str_table_each(&c->by_provider_id, it)
        copy_out(arena, it->value, &items[count++]);
    qsort(items, count, sizeof *items, by_provider_id);
    *out = (struct instances){ items, count };
    return 0;
}

static int is_drifted(void *ctx, const struct nodeclaim *claim, const char **reason,
                      struct err *err)
{
    if (!find_of_claim(ctx, claim))
        return no_instance(claim, err);
    *reason = "";
    return 0;
}

/* --- what happens to it --- */

bool cloud_is_broken(const struct sim_cloud *c, enum sim_break what, struct str node_class)
{
    return str_table_has(&c->broken[what], STR("")) || str_table_has(&c->broken[what], node_class);
}

void sim_cloud_break(struct sim_cloud *c, struct str node_class, enum sim_break what, bool broken)
{
    struct str_table *classes = &c->broken[what];
    if (broken)
        str_table_put(classes, node_class, c);
    else if (node_class.len == 0)
        str_table_clear(classes);
    else
        str_table_remove(classes, node_class);
    if (what == SIM_BREAK_NETWORK && !broken)
        str_table_each(&c->by_provider_id, it)
            vm_mend(c, it->value);
}

bool sim_cloud_kill_instance(struct sim_cloud *c, struct str provider_id)
{
    struct vm *vm = find(c, provider_id);
    if (!vm)
        return false;
    vm_kill(c, vm);
    return true;
}

void sim_cloud_outage(struct sim_cloud *c, struct str zone, bool out)
{
    if (!out) {
        str_table_remove(&c->market.zones_out, zone);
        return;
    }
    str_table_put(&c->market.zones_out, zone, c);
    str_table_each(&c->by_provider_id, it) { /* removing while iterating is fine */
        struct vm *vm = it->value;
        if (str_eq(vm->instance.zone, zone))
            vm_kill(c, vm);
    }
}

/* --- what can be seen --- */

bool sim_cloud_runs(const struct sim_cloud *c, struct str provider_id)
{
    return !fake_node_of_provider_id(&sim_naming, provider_id).len || find(c, provider_id);
}

static int by_instance(const void *a, const void *b)
{
    return by_provider_id(&((const struct sim_instance *)a)->instance,
                          &((const struct sim_instance *)b)->instance);
}

const struct sim_instance *sim_cloud_instances(struct sim_cloud *c, struct arena *arena,
                                               uint32_t *count)
{
    struct sim_instance *items =
        arena_array(arena, struct sim_instance, c->by_provider_id.live_count);

    *count = 0;
    str_table_each(&c->by_provider_id, it) {
        const struct vm *vm = it->value;
        items[(*count)++] = (struct sim_instance){
            .instance = vm->instance,
            .claim_uid = vm->claim_uid,
            .state = vm->state == VM_JOINED   ? SIM_JOINED
                     : vm->state == VM_LOST   ? SIM_LOST
                     : vm->state == VM_ENDING ? SIM_ENDING
                                              : SIM_BOOTING,
            .price = usd_hour_double(vm->price),
        };
    }
    qsort(items, *count, sizeof *items, by_instance);
    return items;
}

struct sim_cloud_stats sim_cloud_stats(struct sim_cloud *c)
{
    const int64_t nanodollar = (USD_HOUR_ONE / DURATION_SECOND) * DURATION_HOUR;
    struct sim_cloud_stats stats = c->stats;

    cloud_bill(c, 0);
    stats.dollars = (double)(int64_t)(c->spent / nanodollar) / 1e9;
    stats.dollars_hour = usd_hour_double(c->rate);
    return stats;
}

/* --- after a restart --- */

/* What it costs by the catalogue of today. 0: its offering is no more. */
static usd_hour price_of(struct sim_cloud *c, const struct nodeclaim *claim,
                         const struct instance *instance)
{
    struct nodepool pool = pool_of(claim);
    const struct instance_types *types;
    struct err err;

    if (market_types(&c->market, &pool, &types, &err) < 0)
        return 0;
    uint32_t t = instance_types_find(types, instance->instance_type);
    if (t == INSTANCE_TYPE_NONE)
        return 0;
    for (uint32_t o = types->offering_start[t]; o < types->offering_start[t + 1]; o++) {
        const struct offering_shape *shape = &types->shapes[types->offering_shape[o]];
        if (str_eq(shape->zone, instance->zone) &&
            str_eq(shape->capacity_type, instance->capacity_type))
            return instance_types_price(types, o);
    }
    return 0;
}

static int recover_claim(struct sim_cloud *c, const struct nodeclaim *claim, struct err *err)
{
    const struct nodeclaim_status *status = &claim->status;
    const struct condition *registered =
        condition_find(status->conditions.items, status->conditions.count, CONDITION_REGISTERED);
    struct vm *vm = kv_calloc(1, sizeof *vm);
    AUTO_OBJECT class_ = NULL;
    AUTO_OBJECT node = NULL;
    struct err no_class;

    fake_instance_of_claim(&vm->arena, &sim_naming, claim, &vm->instance);
    vm->claim_uid = arena_str(&vm->arena, claim_token(claim));
    vm->node_class = arena_str(&vm->arena, claim->spec.node.node_class_ref.name);
    vm->price = price_of(c, claim, &vm->instance);
    (void)fake_class_get(&c->port, c->options.store, &claim->spec.node.node_class_ref, &class_,
                         &no_class);
    int64_t ran_ns = (clock_wall_us(c->options.clock) - vm->instance.created_us) * 1000;
    int64_t left_ns = cloud_boot_ns(c, class_, vm->claim_uid) - ran_ns;
    vm_start(c, vm, left_ns > 0 ? left_ns : 0);

    struct object_ref ref = { &node_kind, STR(""), vm->instance.node_name };
    if (store_get(c->options.store, ref, &node, err) < 0 && err->kind != ERR_NOT_FOUND)
        return -1;
    if (node || condition_status_of(registered) == CONDITION_TRUE)
        vm_recover_joined(c, vm, node ? node_of(node) : NULL);
    return 0;
}

int sim_cloud_recover(struct sim_cloud *c, struct err *err)
{
    struct object_list claims = { 0 };
    int rc = 0;

    if (store_list(c->options.store, &nodeclaim_kind, NULL, &claims, err) < 0)
        return err_wrap(err, "looking for launched claims");
    for (size_t i = 0; i < claims.count && rc == 0; i++) {
        const struct nodeclaim *claim = nodeclaim_of(claims.items[i]);
        if (fake_node_of_provider_id(&sim_naming, claim->status.provider_id).len &&
            !str_table_has(&c->by_token, claim_token(claim)))
            rc = recover_claim(c, claim, err);
    }
    object_list_done(&claims);
    return rc;
}

/* --- life --- */

static void fill_port(struct sim_cloud *c)
{
    struct cloud_provider *port = &c->port;
    fake_port_init(port, c->options.types, c->node_classes);
    port->get_instance_types = get_instance_types;
    port->get_generation = get_generation;
    port->create = create;
    port->delete_ = delete_;
    port->get = get;
    port->list = list;
    port->is_drifted = is_drifted;
    port->name = "sim";
    port->ctx = c;
}

struct sim_cloud *sim_cloud_new(struct sim_cloud_options options)
{
    struct sim_cloud *c = kv_calloc(1, sizeof *c);
    c->options = options;
    c->billed_ns = clock_mono_ns(options.clock);
    market_init(&c->market, options.types, options.clock);
    fill_port(c);
    return c;
}

void sim_cloud_free(struct sim_cloud *c)
{
    if (!c)
        return;
    str_table_each(&c->by_token, it)
        vm_free(it->value);
    str_table_done(&c->by_token);
    str_table_done(&c->by_provider_id);
    for (size_t i = 0; i < KV_COUNT_OF(c->broken); i++)
        str_table_done(&c->broken[i]);
    timers_done(&c->timers);
    market_done(&c->market);
    free(c);
}

const struct cloud_provider *sim_cloud_provider(struct sim_cloud *c)
{
    return &c->port;
}
