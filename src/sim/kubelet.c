/* Putting it together: take in, look at what was noted, do what is due, until nothing is left of this
 * moment. Events are swept at most once a minute, when the oldest is due.
 */
#include "sim/kubelet_impl.h"

#include "api/kinds.h"
#include "api/policy.h"
#include "codec/duration.h"

#define EVENT_TTL_US (DURATION_HOUR / 1000)
#define EVENT_SWEEP_NS DURATION_MINUTE

int64_t kubelet_mono_of(const struct kubelet *k, int64_t wall_us)
{
    return kubelet_now_ns(k) + (wall_us - kubelet_now_us(k)) * 1000;
}

int64_t kubelet_later(int64_t from_ns, int64_t delay_ns)
{
    int64_t sum;
    return __builtin_add_overflow(from_ns, delay_ns, &sum) ? INT64_MAX : sum;
}

void kubelet_pods_of(struct kubelet *k, struct str node, struct object_list *out)
{
    informer_list_index(k->pods, 0, node, out);
}

bool kubelet_patch_status(struct kubelet *k, struct object_ref ref, struct str patch)
{
    struct err err;
    return store_patch(k->options.store, ref,
                       (struct patch_options){ .type = PATCH_STRATEGIC, .status = true }, patch,
                       NULL, &err) == 0;
}

/* --- Events --- */

static void on_event(void *ctx, const struct object *maybe_old KV_UNUSED,
                     const struct object *maybe_new)
{
    struct kubelet *k = ctx;
    if (!maybe_new)
        return;
    int64_t due_ns = kubelet_mono_of(k, event_last_us(event_of(maybe_new)) + EVENT_TTL_US);
    if (due_ns < k->events_due_ns)
        k->events_due_ns = due_ns;
}

static void sweep_events(struct kubelet *k)
{
    struct object_list all = { 0 };
    struct err err;
    int64_t oldest_us = INT64_MAX, now_us = kubelet_now_us(k);

    informer_list(k->events, STR(""), &all);
    for (size_t i = 0; i < all.count; i++) {
        int64_t last_us = event_last_us(event_of(all.items[i]));
        if (last_us + EVENT_TTL_US <= now_us)
            store_remove(k->options.store, object_ref_of(all.items[i]), NULL, &err);
        else if (last_us < oldest_us)
            oldest_us = last_us;
    }
    object_list_done(&all);
    k->events_due_ns = INT64_MAX;
    if (oldest_us == INT64_MAX)
        return;
    int64_t due_ns = kubelet_mono_of(k, oldest_us + EVENT_TTL_US);
    int64_t soonest_ns = kubelet_now_ns(k) + EVENT_SWEEP_NS;
    k->events_due_ns = due_ns > soonest_ns ? due_ns : soonest_ns;
}

/* --- the step --- */

/* Nodes first: who looks at a pod knows its node. */
static size_t take_in(struct kubelet *k)
{
    return informer_pump(k->classes) + informer_pump(k->claims) + informer_pump(k->attachments) +
           informer_pump(k->nodes) + informer_pump(k->pods) + informer_pump(k->events);
}

static bool look_at_nodes(struct kubelet *k)
{
    kubelet_nodes_due(k);
    struct str_table dirty = k->dirty_nodes;
    k->dirty_nodes = (struct str_table){ 0 };
    bool any = dirty.live_count > 0;
    str_table_each(&dirty, it)
        kubelet_look_at_node(k, it->key);
    str_table_done(&dirty);
    return any;
}

static bool look_at_pods(struct kubelet *k)
{
    bool any = false;
    for (struct timer *timer; (timer = timers_take(&k->timers, kubelet_now_ns(k))) != NULL;) {
        kubelet_look_at_pod(k, TIMER_OWNER(timer, struct kept_pod, timer));
        any = true;
    }
    return any;
}

int64_t kubelet_step(struct kubelet *k)
{
    bool busy;
    do {
        busy = take_in(k) > 0;
        busy |= look_at_nodes(k);
        busy |= kubelet_look_at_volumes(k);
        busy |= look_at_pods(k);
    } while (busy);
    if (k->events_due_ns <= kubelet_now_ns(k)) {
        sweep_events(k);
        informer_pump(k->events);
    }
    int64_t pods_ns = timers_next_ns(&k->timers), nodes_ns = timers_next_ns(&k->node_timers);
    int64_t next_ns = pods_ns < nodes_ns ? pods_ns : nodes_ns;
    return next_ns < k->events_due_ns ? next_ns : k->events_due_ns;
}

/* --- life --- */

static struct str node_of_pod(const struct object *object)
{
    return pod_of(object)->node_name;
}

static struct str volume_of_attachment(const struct object *object)
{
    return volume_attachment_of(object)->spec.source.volume_name;
}

static struct informer *watch_kind(struct kubelet *k, const struct kind *kind,
                                   informer_handler_fn fn)
{
    struct informer *inf = informer_new((struct informer_options){
        .store = k->options.store, .kind = kind, .clock = k->options.clock });
    informer_on_change(inf, fn, k);
    return inf;
}

struct kubelet *kubelet_new(struct kubelet_options options)
{
    struct kubelet *k = kv_calloc(1, sizeof *k);
    k->options = options;
    k->events_due_ns = INT64_MAX;
    k->pods = watch_kind(k, &pod_kind, kubelet_on_pod);
    k->nodes = watch_kind(k, &node_kind, kubelet_on_node);
    k->claims = watch_kind(k, &pvc_kind, kubelet_on_claim);
    k->classes = watch_kind(k, &storage_class_kind, kubelet_on_class);
    k->attachments = watch_kind(k, &volume_attachment_kind, kubelet_on_attachment);
    k->events = watch_kind(k, &event_kind, on_event);
    informer_add_index(k->pods, node_of_pod);
    informer_add_index(k->attachments, volume_of_attachment);
    return k;
}

static void unref_all(const struct object **items, size_t count)
{
    for (size_t i = 0; i < count; i++)
        object_unref(items[i]);
}

void kubelet_free(struct kubelet *k)
{
    if (!k)
        return;
    informer_free(k->pods);
    informer_free(k->nodes);
    informer_free(k->claims);
    informer_free(k->classes);
    informer_free(k->attachments);
    informer_free(k->events);
    str_table_each(&k->kept, it)
        free(it->value);
    str_table_done(&k->kept);
    timers_done(&k->timers);
    kubelet_nodes_done(k);
    str_table_done(&k->dirty_nodes);
    str_table_done(&k->dirty_claims);
    str_table_done(&k->volume_waiters);
    str_table_each(&k->attached, it)
        free(it->value);
    str_table_done(&k->attached);
    unref_all(k->ended_pods.items, k->ended_pods.count);
    unref_all(k->template_pods.items, k->template_pods.count);
    unref_all(k->gone_claims.items, k->gone_claims.count);
    vec_done(&k->ended_pods);
    vec_done(&k->template_pods);
    vec_done(&k->gone_claims);
    free(k);
}
