/* Random clusters against the checker: every binding is legal, and no pod waits that has a home. Seeds
 * are printed; KARVE_SEED=n runs one alone. */
#include "sched/world_random_testing.h"
#include "sim/binder.h"
#include "store/embedded.h"

struct trial {
    uint64_t seed;
    struct rng rng;
    struct virtual_clock *time;
    struct object_pool *pool;
    struct embedded *e;
    const struct store *store;
    struct binder *binder;
};

static void trial_init(struct trial *t, uint64_t seed)
{
    *t = (struct trial){ .seed = seed };
    rng_init(&t->rng, seed * 977);
    t->time = virtual_clock_new((int64_t)1767322800 * 1000000);
    t->pool = object_pool_new();
    t->e = embedded_new((struct embedded_options){ .clock = virtual_clock_port(t->time),
                                                   .pool = t->pool,
                                                   .seed = seed,
                                                   .auto_namespaces = true });
    t->store = embedded_store(t->e);
    t->binder = binder_new((struct binder_options){
        .clock = virtual_clock_port(t->time), .store = t->store, .seed = seed, .doubt = true });
}

static void trial_done(struct trial *t)
{
    binder_free(t->binder);
    embedded_free(t->e);
    object_pool_free(t->pool);
    virtual_clock_free(t->time);
}

/* More of everything than a random world has: the binder wants a crowd. */
static void trial_load(struct trial *t, bool tiny)
{
    RANDOM_WORLD r;
    struct err err = { 0 };
    struct embedded_loaded loaded;
    random_world_init(&r, t->seed, tiny);
    for (uint32_t i = 0, n = 1 + below(&r, 5); i < n; i++) {
        random_node(&r, r.node_count);
        r.node_count++;
    }
    for (uint32_t i = 0, n = below(&r, 6); i < n; i++)
        random_pods(&r, 100 + i, 1 + below(&r, 4), false);
    struct random_text text = random_world_text(&r, 1, true, "");
    EXPECT_OK(embedded_load(t->e, buf_str(&text.objects), &loaded, &err), err);
    random_text_done(&text);
}

static struct object_list list(struct trial *t, const struct kind *kind)
{
    struct object_list out = { 0 };
    struct err err = { 0 };
    EXPECT_OK(store_list(t->store, kind, NULL, &out, &err), err);
    return out;
}

static void remove_now(struct trial *t, const struct object *object)
{
    struct err err = { 0 };
    struct delete_options now = { .grace_s = { 0, true } };
    EXPECT_OK(store_remove(
                  t->store,
                  (struct object_ref){ object->kind, object->meta.namespace_, object->meta.name },
                  &now, &err),
              err);
}

static void patch(struct trial *t, const struct object *object, bool status, const char *text)
{
    struct err err = { 0 };
    EXPECT_OK(
        store_patch(t->store,
                    (struct object_ref){ object->kind, object->meta.namespace_, object->meta.name },
                    (struct patch_options){ .type = PATCH_MERGE, .status = status }, str_of(text),
                    NULL, &err),
        err);
}

static void shake_node(struct trial *t, const struct object *node)
{
    static const char *const changes[] = {
        "{\"spec\":{\"unschedulable\":true}}",
        "{\"spec\":{\"unschedulable\":null,\"taints\":null}}",
        "{\"spec\":{\"taints\":[{\"key\":\"dedicated\",\"value\":\"a\",\"effect\":\"NoExecute\"}]}}",
        "{\"metadata\":{\"labels\":{\"team\":\"a\"}}}",
        "{\"metadata\":{\"labels\":{\"team\":null}}}",
        "{\"metadata\":{\"labels\":{\"topology.kubernetes.io/zone\":\"zone-a\"}}}",
        "{\"metadata\":{\"labels\":{\"topology.kubernetes.io/zone\":null}}}",
    };
    switch (rng_below(&t->rng, 4)) {
    case 0:
        remove_now(t, node);
        break;
    case 1:
        patch(t, node, true,
              "{\"status\":{\"allocatable\":{\"cpu\":\"8\",\"memory\":\"16Gi\",\"pods\":\"20\"}}}");
        break;
    default:
        patch(t, node, false, changes[rng_below(&t->rng, KV_COUNT_OF(changes))]);
        break;
    }
}

static void shake_pod(struct trial *t, const struct object *object)
{
    const struct pod *pod = pod_of(object);
    switch (rng_below(&t->rng, 4)) {
    case 0:
        remove_now(t, object);
        break;
    case 1:
        if (pod_is_scheduled(pod))
            patch(t, object, true, "{\"status\":{\"phase\":\"Succeeded\"}}");
        break;
    case 2:
        patch(t, object, false, "{\"metadata\":{\"labels\":{\"app\":\"app-0\"}}}");
        break;
    default: {
        struct err err = { 0 };
        if (!pod_is_terminating(pod)) /* gracefully: it stays for a while */
            EXPECT_OK(store_remove(t->store,
                                   (struct object_ref){ &pod_kind, object->meta.namespace_,
                                                        object->meta.name },
                                   NULL, &err),
                      err);
        break;
    }
    }
}

/* Something changes: that is what counts have to follow. */
static void shake(struct trial *t)
{
    struct object_list nodes = list(t, &node_kind), pods = list(t, &pod_kind);
    for (size_t i = 0; i < nodes.count; i++) {
        if (rng_below(&t->rng, 5) == 0)
            shake_node(t, nodes.items[i]);
    }
    for (size_t i = 0; i < pods.count; i++) {
        if (rng_below(&t->rng, 6) == 0)
            shake_pod(t, pods.items[i]);
    }
    object_list_done(&nodes);
    object_list_done(&pods);
}

/* --- is anybody left who has a home? --- */

static const void **items_of(struct arena *arena, const struct object_list *l, uint32_t *count)
{
    const void **items = arena_array(arena, const void *, l->count);
    for (size_t i = 0; i < l->count; i++)
        items[i] = l->items[i];
    *count = (uint32_t)l->count;
    return items;
}

static bool checker_agrees(struct arena *arena, const struct snapshot *snap, uint32_t pod,
                           uint32_t node)
{
    struct plan_existing home = { node, PLAN_NONE, { &pod, 1 } };
    struct plan plan = { .existing = &home, .existing_count = 1, .order = { &pod, 1 } };
    struct check_result result = plan_check(arena, snap, (struct plan_options){ .seed = 1 }, &plan);
    for (uint32_t i = 0; i < result.count; i++) {
        if (!memmem(result.findings[i].what.p, result.findings[i].what.len, "is not for us", 13))
            return false;
    }
    return true;
}

static uint32_t homeless(struct trial *t)
{
    AUTO_ARENA arena = { 0 };
    const struct kind *const kinds_[] = { &pvc_kind, &pv_kind, &storage_class_kind, &csi_node_kind,
                                          &namespace_kind };
    struct object_list pods = list(t, &pod_kind), nodes = list(t, &node_kind);
    struct object_list others[KV_COUNT_OF(kinds_)];
    struct snapshot snap = { 0 };
    uint32_t wrong = 0, bound = 0;
    for (size_t i = 0; i < KV_COUNT_OF(kinds_); i++)
        others[i] = list(t, kinds_[i]);
    snap.nodes = (const struct node *const *)items_of(&arena, &nodes, &snap.node_count);
    snap.pvcs = (const struct pvc *const *)items_of(&arena, &others[0], &snap.pvc_count);
    snap.pvs = (const struct pv *const *)items_of(&arena, &others[1], &snap.pv_count);
    snap.storage_classes = (const struct storage_class *const *)items_of(&arena, &others[2],
                                                                         &snap.storage_class_count);
    snap.csi_nodes =
        (const struct csi_node *const *)items_of(&arena, &others[3], &snap.csi_node_count);
    snap.namespaces =
        (const struct namespace_object *const *)items_of(&arena, &others[4], &snap.namespace_count);
    const struct pod **shown = arena_array(&arena, const struct pod *, pods.count + 1);
    for (size_t i = 0; i < pods.count; i++) {
        if (pod_is_scheduled(pod_of(pods.items[i])))
            shown[bound++] = pod_of(pods.items[i]);
    }
    snap.pods = shown;
    snap.pod_count = bound + 1;
    for (size_t i = 0; i < pods.count; i++) {
        const struct pod *pod = pod_of(pods.items[i]);
        if (pod_is_scheduled(pod) || pod_is_terminating(pod) || pod_is_gated(pod) ||
            pod_is_terminal(pod))
            continue;
        shown[bound] = pod;
        for (uint32_t n = 0; n < snap.node_count; n++) {
            if (!checker_agrees(&arena, &snap, bound, n))
                continue;
            const struct pod_condition *c = pod_condition(pod, STR("PodScheduled"));
            printf("# seed %" PRIu64 ": %.*s waits (%.*s) and could be on %.*s\n", t->seed,
                   STR_ARG(pod->object.meta.name), c ? (int)c->message.len : 0,
                   c ? c->message.p : "", STR_ARG(snap.nodes[n]->object.meta.name));
            wrong++;
        }
    }
    for (size_t i = 0; i < KV_COUNT_OF(kinds_); i++)
        object_list_done(&others[i]);
    object_list_done(&pods);
    object_list_done(&nodes);
    return wrong;
}

static uint32_t told_wrongly(struct trial *t)
{
    struct object_list pods = list(t, &pod_kind);
    uint32_t wrong = 0;
    for (size_t i = 0; i < pods.count; i++) {
        const struct pod *pod = pod_of(pods.items[i]);
        const struct pod_condition *c = pod_condition(pod, STR("PodScheduled"));
        bool waits = !pod_is_scheduled(pod) && !pod_is_terminal(pod) && !pod_is_terminating(pod) &&
                     !pod_is_gated(pod);
        wrong += waits && (!c || !str_eqz(c->reason, "Unschedulable"));
    }
    object_list_done(&pods);
    return wrong;
}

static int64_t lag(void *ctx, const struct kind *kind KV_UNUSED, uint64_t version)
{
    return (int64_t)(kv_mix64(version ^ *(uint64_t *)ctx) % 3) * 1000000000;
}

/* Returns how many pods were bound. */
static uint64_t run_trial(uint64_t seed, bool tiny)
{
    struct trial t;
    trial_init(&t, seed);
    trial_load(&t, tiny);
    bool lags = seed % 3 == 0;
    if (lags)
        embedded_set_faults(t.e,
                            &(struct embedded_faults){ .event_delay_ns = lag, .ctx = &t.seed });
    uint32_t wrong = 0;
    for (int round = 0; round < 4; round++) {
        if (round)
            shake(&t);
        for (int i = 0; i < (lags ? 6 : 1); i++) {
            virtual_clock_advance(t.time, (int64_t)1000000000);
            binder_step(t.binder);
        }
        wrong += homeless(&t) + told_wrongly(&t);
        uint64_t version = embedded_version(t.e);
        binder_step(t.binder);
        wrong += embedded_version(t.e) != version; /* at rest nothing is written */
    }
    struct binder_stats stats = binder_stats(t.binder);
    if (wrong || stats.disagreements)
        printf("# seed %" PRIu64 "%s: %u wrong; %s\n", seed, tiny ? " (tiny)" : "", wrong,
               stats.disagreements ? binder_disagreement(t.binder) : "");
    EXPECT_EQ(wrong, 0);
    /* With late events the binder judges by what it has seen: the checker is shown the same. */
    EXPECT_EQ(stats.disagreements, 0);
    embedded_set_faults(t.e, NULL);
    trial_done(&t);
    return stats.bound;
}

static void run_trials(uint64_t first, uint64_t count, bool tiny)
{
    const char *only = getenv("KARVE_SEED");
    uint64_t bound = 0;
    if (only) {
        run_trial(strtoull(only, NULL, 10), tiny);
        return;
    }
    for (uint64_t seed = first; seed < first + count; seed++)
        bound += run_trial(seed, tiny);
    printf("# seeds %" PRIu64 " to %" PRIu64 ": %" PRIu64 " pods bound\n", first, first + count - 1,
           bound);
    EXPECT_TRUE(bound > count);
}

TEST(every_binding_is_legal_and_no_pod_waits_that_has_a_home)
{
    run_trials(1, 150, false);
}

TEST(so_it_is_in_tiny_worlds)
{
    run_trials(1, 150, true);
}
