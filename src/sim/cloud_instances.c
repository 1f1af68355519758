/* Instances over time, and what can be seen of them in the store. One timer each: what it means
 * follows from the state (see sim/cloud.h for the picture).
 *
 * Two parts of a cluster are played here because they act on the cloud's word: the kubelet of each
 * instance, as far as its Node is concerned, and the controller that misses Nodes whose instance
 * has ended. Taints follow from the Ready condition and are sim/kubelet.h's.
 */
#include "sim/cloud_impl.h"

#include "api/conditions.h"
#include "api/kwoknodeclass.h"
#include "codec/duration.h"

/* A Node that does not report for so long is not ready, and some seconds later somebody asks the cloud
 * whether its instance still exists. Defaults of kube-controller-manager. */
#define NODE_GRACE_NS (40 * DURATION_SECOND)
#define NODE_LOOK_NS (5 * DURATION_SECOND)

#define TAINT_NOT_READY "node.kubernetes.io/not-ready"

/* --- money --- */

void cloud_bill(struct sim_cloud *c, usd_hour change)
{
    int64_t now_ns = cloud_now_ns(c);
    c->spent += (wide_int)c->rate * (now_ns - c->billed_ns);
    c->billed_ns = now_ns;
    c->rate += change;
}

/* --- the Node --- */

static struct object_ref node_ref(const struct vm *vm)
{
    return (struct object_ref){ &node_kind, STR(""), vm->instance.node_name };
}

static json_mut *conditions_json_of(struct json_build *b, int64_t now_us,
                                    enum condition_status ready)
{
    static const struct {
        const char *type, *reason, *message; /* while the kubelet runs */
    } rows[] = {
        { "MemoryPressure", "KubeletHasSufficientMemory",
          "kubelet has sufficient memory available" },
        { "DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure" },
        { "PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available" },
        { "Ready", "KubeletReady", "kubelet is posting ready status" },
    };
    char now[TIME_TEXT_MAX];
    json_mut *list = json_new_array(b);

    time_format(now_us, now);
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        bool is_ready = strcmp(rows[i].type, "Ready") == 0;
        const char *status = ready == CONDITION_UNKNOWN            ? "Unknown"
                             : is_ready && ready == CONDITION_TRUE ? "True"
                                                                   : "False";
        const char *reason = rows[i].reason, *message = rows[i].message;
        if (ready == CONDITION_UNKNOWN) {
            reason = "NodeStatusUnknown";
            message = "Kubelet stopped posting node status.";
        } else if (is_ready && ready == CONDITION_FALSE) {
            reason = "KubeletNotReady";
            message = "container runtime network not ready: cni plugin not initialized";
        }
        json_mut *condition = json_new_object(b);
        json_set_str(b, condition, "type", str_of(rows[i].type));
        json_set_str(b, condition, "status", str_of(status));
        json_set_str(b, condition, "reason", str_of(reason));
        json_set_str(b, condition, "message", str_of(message));
        json_set_str(b, condition, "lastHeartbeatTime", str_of(now));
        json_set_str(b, condition, "lastTransitionTime", str_of(now));
        json_push(b, list, condition);
    }
    return list;
}

/* The API server taints every new Node so that nothing lands on it before it is ready. */
static int create_node(struct sim_cloud *c, const struct vm *vm, struct err *err)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF json = { 0 };

    json_build_init(&b);
    json_mut *root = fake_node_json(&b, &vm->instance);
    json_mut *taint = json_new_object(&b);
    json_set_str(&b, taint, "key", STR(TAINT_NOT_READY));
    json_set_str(&b, taint, "effect", STR("NoSchedule"));
    json_push(&b, json_mut_get(json_mut_get(root, STR("spec")), STR("taints")), taint);

    json_mut *status = json_mut_get(root, STR("status"));
    json_set(&b, status, STR("conditions"),
             conditions_json_of(&b, clock_wall_us(c->options.clock), CONDITION_FALSE));
    json_mut *addresses = json_new_array(&b), *address = json_new_object(&b);
    json_set_str(&b, address, "type", STR("Hostname"));
    json_set_str(&b, address, "address", vm->instance.node_name);
    json_push(&b, addresses, address);
    json_set(&b, status, STR("addresses"), addresses);
    json_write_mut(root, &json);
    return store_create(c->options.store, &node_kind, STR(""), buf_str(&json), NULL, err);
}

/* Its kubelet's word or, of Unknown, the want of it. A Node that is gone hears nothing. */
static void report_ready(struct sim_cloud *c, const struct vm *vm, enum condition_status ready)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF json = { 0 };
    struct err err;

    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_set(&b, json_mut_object(&b, root, STR("status")), STR("conditions"),
             conditions_json_of(&b, clock_wall_us(c->options.clock), ready));
    json_write_mut(root, &json);
    store_patch(c->options.store, node_ref(vm),
                (struct patch_options){ .type = PATCH_STRATEGIC, .status = true }, buf_str(&json),
                NULL, &err);
}

/* The Node, if it is this instance's and nobody has begun to delete it. */
static const struct object *own_node(struct sim_cloud *c, const struct vm *vm)
{
    AUTO_OBJECT node = NULL;
    struct err err;
    if (store_get(c->options.store, node_ref(vm), &node, &err) < 0 || node->meta.deleted_us ||
        !str_eq(node_of(node)->spec.provider_id, vm->instance.provider_id))
        return NULL;
    return take(&node);
}

static void remove_node(struct sim_cloud *c, const struct vm *vm)
{
    AUTO_OBJECT node = own_node(c, vm);
    struct err err;
    if (node)
        store_remove(c->options.store, node_ref(vm),
                     &(struct delete_options){ .uid = node->meta.uid }, &err);
}

/* --- the states --- */

static void lose(struct sim_cloud *c, struct vm *vm)
{
    vm->state = VM_LOST;
    c->stats.lost++;
}

/* The Node is there, and will be ready unless it fails to. */
static void joined(struct sim_cloud *c, struct vm *vm)
{
    uint64_t seed = c->options.seed;

    vm->state = VM_JOINED;
    vm->has_node = true;
    timers_clear(&c->timers, &vm->timer);
    if (!fate_happens(c->options.ready_failure_rate, fate_of(seed, vm->claim_uid, "ready fails")))
        timers_set(&c->timers, &vm->timer,
                   cloud_now_ns(c) +
                       span_pick(c->options.ready, fate_of(seed, vm->claim_uid, "ready")));
}

/* A Node that the API server does not take is one that never joins. */
static void join(struct sim_cloud *c, struct vm *vm)
{
    struct err err;
    if (create_node(c, vm, &err) < 0 && err.kind != ERR_EXISTS) {
        lose(c, vm);
        return;
    }
    c->stats.joined++;
    joined(c, vm);
}

static void booted(struct sim_cloud *c, struct vm *vm)
{
    if (vm->image_broken || fate_happens(c->options.boot_failure_rate,
                                         fate_of(c->options.seed, vm->claim_uid, "boot fails")))
        lose(c, vm);
    else if (cloud_is_broken(c, SIM_BREAK_NETWORK, vm->node_class))
        vm->state = VM_WAITING;
    else
        join(c, vm);
}

void vm_mend(struct sim_cloud *c, struct vm *vm)
{
    if (vm->state == VM_WAITING && !cloud_is_broken(c, SIM_BREAK_NETWORK, vm->node_class))
        timers_set(&c->timers, &vm->timer, cloud_now_ns(c));
}

/* Nothing is left but the token. */
static void forget(struct vm *vm)
{
    arena_done(&vm->arena);
    vm->instance = (struct instance){ 0 };
    vm->node_class = vm->claim_uid = STR("");
}

static void ended(struct sim_cloud *c, struct vm *vm)
{
    vm->state = VM_ENDED;
    c->stats.terminated++;
    str_table_remove(&c->by_provider_id, vm->instance.provider_id);
    if (vm->has_node)
        timers_set(&c->timers, &vm->timer, cloud_now_ns(c) + NODE_GRACE_NS);
    else
        forget(vm);
}

void vm_end(struct sim_cloud *c, struct vm *vm)
{
    if (vm->state == VM_ENDING || vm->state == VM_ENDED)
        return;
    vm->state = VM_ENDING;
    vm->instance.terminating = true;
    cloud_bill(c, -vm->price);
    int64_t delay_ns =
        span_pick(c->options.terminate, fate_of(c->options.seed, vm->claim_uid, "terminate"));
    timers_set(&c->timers, &vm->timer, cloud_now_ns(c) + delay_ns);
}

void vm_kill(struct sim_cloud *c, struct vm *vm)
{
    if (vm->state == VM_ENDED)
        return;
    vm_end(c, vm);
    timers_clear(&c->timers, &vm->timer);
    ended(c, vm);
}

/* Some time after its end: the Node is no longer ready, then it goes. */
static void miss(struct sim_cloud *c, struct vm *vm)
{
    if (!vm->missed) {
        vm->missed = true;
        report_ready(c, vm, CONDITION_UNKNOWN);
        timers_set(&c->timers, &vm->timer, cloud_now_ns(c) + NODE_LOOK_NS);
        return;
    }
    remove_node(c, vm);
    forget(vm);
}

static void vm_step(struct sim_cloud *c, struct vm *vm)
{
    switch (vm->state) {
    case VM_BOOTING:
    case VM_WAITING:
        booted(c, vm);
        break;
    case VM_JOINED:
        report_ready(c, vm, CONDITION_TRUE);
        break;
    case VM_ENDING:
        ended(c, vm);
        break;
    case VM_ENDED:
        miss(c, vm);
        break;
    case VM_LOST:
        break;
    }
}

int64_t sim_cloud_step(struct sim_cloud *c)
{
    struct timer *timer;
    while ((timer = timers_take(&c->timers, cloud_now_ns(c))) != NULL)
        vm_step(c, TIMER_OWNER(timer, struct vm, timer));
    return timers_next_ns(&c->timers);
}

/* --- beginnings --- */

int64_t cloud_boot_ns(const struct sim_cloud *c, const struct object *maybe_class,
                      struct str claim_uid)
{
    if (maybe_class && maybe_class->kind == &kwoknodeclass_kind) {
        struct duration delay = kwoknodeclass_of(maybe_class)->spec.node_registration_delay;
        if (delay.set)
            return delay.ns;
    }
    return span_pick(c->options.boot, fate_of(c->options.seed, claim_uid, "boot"));
}

void vm_start(struct sim_cloud *c, struct vm *vm, int64_t boot_ns)
{
    vm->state = VM_BOOTING;
    str_table_put(&c->by_token, vm->claim_uid, vm);
    str_table_put(&c->by_provider_id, vm->instance.provider_id, vm);
    cloud_bill(c, vm->price);
    timers_set(&c->timers, &vm->timer, cloud_now_ns(c) + boot_ns);
}

void vm_recover_joined(struct sim_cloud *c, struct vm *vm, const struct node *maybe_node)
{
    joined(c, vm);
    if (!maybe_node || node_is_ready(maybe_node))
        timers_clear(&c->timers, &vm->timer);
}

void vm_free(struct vm *vm)
{
    arena_done(&vm->arena);
    free(vm);
}
