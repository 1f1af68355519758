/* The whole control plane on its threads, over the embedded store, with kwok's thread as the cloud.
 *
 * Beside it runs a town: one thread that is everybody else in a cluster (kube-scheduler, kubelets,
 * the garbage collector, a workload, somebody who deletes claims and pods underneath), and one that
 * scrapes metrics and asks what outsiders ask. Nothing here depends on how fast anything is: tests
 * wait until a state is reached, and the sanitizers watch how.
 *
 * Threads are real, time is real but HURRY times as fast: a drain of five seconds is over in a fifth
 * of one.
 */
#include "control/testing.h"

#include "api/resources.h"

#include <stdatomic.h>
#include <unistd.h>

#define HURRY 25
#define PATIENCE_NS (120 * SECOND_NS) /* of real time: for a loaded machine with a sanitizer */
#define POLL_US 4000
#define CREATED_AT_ONCE 60

/* --- a clock that hurries --- */

struct hurry {
    int64_t start_ns, start_us;
    struct clock port;
};

static int64_t hurry_mono(void *ctx)
{
    const struct hurry *h = ctx;
    return (clock_mono_ns(clock_real()) - h->start_ns) * HURRY;
}

static int64_t hurry_wall(void *ctx)
{
    const struct hurry *h = ctx;
    return h->start_us + hurry_mono(ctx) / 1000;
}

static void hurry_wait(void *ctx, pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_ns)
{
    const struct hurry *h = ctx;
    int64_t real_ns = until_ns == INT64_MAX ? INT64_MAX : h->start_ns + until_ns / HURRY + 1;
    clock_wait(clock_real(), cond, mutex, real_ns);
}

static void hurry_init(struct hurry *h)
{
    *h = (struct hurry){ .start_ns = clock_mono_ns(clock_real()),
                         .start_us = clock_wall_us(clock_real()),
                         .port = { hurry_wall, hurry_mono, hurry_wait, h } };
}

/* --- a town --- */

struct town {
    struct hurry time;
    struct object_pool *objects;
    struct embedded *e;
    const struct store *store;
    struct kwok *cloud;
    struct metrics *metrics;
    pthread_t others, visitor;
    atomic_bool over;
    atomic_uint pods_wanted; /* the workload has as many; 0: what goes is not replaced */
    atomic_bool rough;       /* somebody deletes claims, pods and a pool */
    uint32_t pods_made;      /* of the thread `others` */
    struct rng rng;          /* the same */
    atomic_uint events;      /* delivered to watches so far */
    pthread_mutex_t lock;    /* of `c`, between the visitor and who replaces it */
    struct control *c;       /* may be NULL */
    /* The same store, as the control plane has it: a claim takes a moment to be created. */
    struct store slow;
    struct store_ops slow_ops;
    atomic_uint creating, creating_max; /* claims at once */
};

static void list(struct town *t, const struct kind *kind, struct object_list *out)
{
    struct err err = { 0 };
    *out = (struct object_list){ 0 };
    int rc = store_list(t->store, kind, NULL, out, &err);
    KV_ASSERT(rc == 0);
}

static struct object_ref ref_to(const struct object *object)
{
    return (struct object_ref){ object->kind, object->meta.namespace_, object->meta.name };
}

/* What somebody else has deleted meanwhile is not there: nobody minds. */
static void write_status(struct town *t, const struct object *object, struct str patch)
{
    struct err err = { 0 };
    store_patch(t->store, ref_to(object), (struct patch_options){ .status = true }, patch, NULL,
                &err);
}

static void remove_object(struct town *t, const struct object *object, bool at_once)
{
    struct err err = { 0 };
    struct delete_options options = { .uid = object->meta.uid };
    if (at_once)
        options.grace_s = (struct maybe_int){ 0, true };
    store_remove(t->store, ref_to(object), &options, &err);
}

/* The kubelets: nodes become ready, pods that are told to end do. */
static void run_kubelets(struct town *t, const struct object_list *nodes,
                         const struct object_list *pods)
{
    for (size_t i = 0; i < nodes->count; i++) {
        if (!node_is_ready(node_of(nodes->items[i])))
            write_status(t, nodes->items[i],
                         js("{'status':{'conditions':[{'type':'Ready','status':'True',"
                            "'reason':'KubeletReady','lastTransitionTime':'2026-01-02T03:00:00Z',"
                            "'lastHeartbeatTime':'2026-01-02T03:00:00Z'}]}}"));
    }
    for (size_t i = 0; i < pods->count; i++) {
        if (pods->items[i]->meta.deleted_us)
            remove_object(t, pods->items[i], true);
    }
}

static bool takes_pods(const struct node *node)
{
    return !node->object.meta.deleted_us && node_is_ready(node) && !node->spec.taints.count;
}

/* kube-scheduler, for pods of one cpu each: first come, first served. */
static void run_scheduler(struct town *t, const struct object_list *nodes,
                          const struct object_list *pods)
{
    AUTO_ARENA arena = { 0 };
    int64_t *room = arena_array(&arena, int64_t, nodes->count);
    for (size_t i = 0; i < nodes->count; i++) {
        const struct node *node = node_of(nodes->items[i]);
        room[i] = takes_pods(node) ? resources_get(&node->status.allocatable, STR("cpu")).units : 0;
        for (size_t p = 0; p < pods->count; p++)
            room[i] -= str_eq(pod_of(pods->items[p])->node_name, node->object.meta.name);
    }
    size_t at = 0;
    for (size_t i = 0; i < pods->count; i++) {
        const struct pod *pod = pod_of(pods->items[i]);
        struct err err = { 0 };
        if (pod_is_scheduled(pod) || pod->object.meta.deleted_us)
            continue;
        while (at < nodes->count && room[at] <= 0)
            at++;
        if (at < nodes->count) {
            room[at]--;
            store_bind(t->store, pod->object.meta.namespace_, pod->object.meta.name,
                       nodes->items[at]->meta.name, &err);
        } else if (!pod_condition(pod, STR("PodScheduled"))) {
            write_status(t, &pod->object,
                         js("{'status':{'conditions':[{'type':'PodScheduled','status':'False',"
                            "'reason':'Unschedulable','message':'no nodes'}]}}"));
        }
    }
}

/* Not make(): a test cannot fail on this thread. */
static void make_workload_pod(struct town *t)
{
    struct err err = { 0 };
    int rc =
        store_create(t->store, &pod_kind, STR("default"),
                     js("{'metadata':{'name':'p%u'},'spec':{'containers':[{'name':'c','image':'i',"
                        "'resources':{'requests':{'cpu':'1','memory':'64Mi'}}}]}}",
                        t->pods_made++),
                     NULL, &err);
    KV_ASSERT(rc == 0);
}

static void run_workload(struct town *t, const struct object_list *pods)
{
    uint32_t wanted = atomic_load(&t->pods_wanted), there = 0;
    for (size_t i = 0; i < pods->count; i++)
        there += !pods->items[i]->meta.deleted_us;
    for (uint32_t i = 0; i < CREATED_AT_ONCE && there + i < wanted; i++)
        make_workload_pod(t);
}

static void make_town_pool(struct town *t, const char *name)
{
    struct err err = { 0 };
    store_create(t->store, &nodepool_kind, STR(""),
                 js("{'metadata':{'name':'%s','annotations':{'karve.io/launch-timeout':'24h',"
                    "'karve.io/registration-timeout':'24h'}},'spec':{'template':{'spec':{"
                    "'nodeClassRef':{'group':'karpenter.kwok.sh','kind':'KWOKNodeClass',"
                    "'name':'default'},'requirements':[{'key':'kubernetes.io/os',"
                    "'operator':'In','values':['linux']},{'key':'karpenter.kwok.sh/instance-size',"
                    "'operator':'In','values':['4','8']}]}}}}",
                    name),
                 NULL, &err);
}

static void remove_some(struct town *t, const struct object_list *list)
{
    if (list->count)
        remove_object(t, list->items[rng_below(&t->rng, list->count)], false);
}

/* Now and then a claim, a node or a pod goes, or a second pool comes and takes its nodes with it. */
static void be_rough(struct town *t, const struct object_list *nodes,
                     const struct object_list *pods)
{
    struct object_list claims;
    struct err err = { 0 };
    list(t, &nodeclaim_kind, &claims);
    switch (rng_below(&t->rng, 12)) {
    case 0:
        remove_some(t, &claims);
        break;
    case 1:
        remove_some(t, nodes);
        break;
    case 2:
    case 3:
        remove_some(t, pods);
        break;
    case 4:
        make_town_pool(t, "second");
        break;
    case 5:
        store_remove(t->store, at(&nodepool_kind, "second"), NULL, &err);
        break;
    default:
        break;
    }
    object_list_done(&claims);
}

static void *others_main(void *arg)
{
    struct town *t = arg;
    while (!atomic_load(&t->over)) {
        struct object_list nodes, pods;
        list(t, &node_kind, &nodes);
        list(t, &pod_kind, &pods);
        run_kubelets(t, &nodes, &pods);
        run_scheduler(t, &nodes, &pods);
        run_workload(t, &pods);
        embedded_gc(t->e); /* claims that were made while their pool went */
        if (atomic_load(&t->rough))
            be_rough(t, &nodes, &pods);
        object_list_done(&pods);
        object_list_done(&nodes);
        usleep(POLL_US);
    }
    return NULL;
}

/* Now and then a watch breaks, and by then its history may be gone: informers list again. */
static bool break_watch(void *ctx, const struct kind *kind KV_UNUSED)
{
    struct town *t = ctx;
    return kv_mix64(atomic_fetch_add(&t->events, 1)) % 400 == 0;
}

static void *visitor_main(void *arg)
{
    struct town *t = arg;
    while (!atomic_load(&t->over)) {
        AUTO_BUF text = { 0 };
        metrics_write(t->metrics, &text);
        pthread_mutex_lock(&t->lock);
        if (t->c) {
            control_synced(t->c);
            control_stats(t->c);
            control_is_nominated(t->c, STR("nobody"));
        }
        pthread_mutex_unlock(&t->lock);
        usleep(POLL_US);
    }
    return NULL;
}

static struct town *the_town; /* there is one at a time */

static int create_slowly(void *ctx KV_UNUSED, const struct kind *kind, struct str namespace_,
                         struct str json, const struct object **maybe_out, struct err *err)
{
    struct town *t = the_town;
    bool counts = kind == &nodeclaim_kind;
    unsigned now = atomic_fetch_add(&t->creating, counts) + counts;
    unsigned most = atomic_load(&t->creating_max);
    while (now > most && !atomic_compare_exchange_weak(&t->creating_max, &most, now))
        ;
    if (counts)
        usleep(POLL_US);
    int rc = store_create(t->store, kind, namespace_, json, maybe_out, err);
    atomic_fetch_sub(&t->creating, counts);
    return rc;
}

static struct town *town_new(void)
{
    struct town *t = kv_calloc(1, sizeof *t);
    struct err err = { 0 };
    hurry_init(&t->time);
    rng_init(&t->rng, 11);
    pthread_mutex_init(&t->lock, NULL);
    t->objects = object_pool_new();
    t->e = embedded_new((struct embedded_options){
        .clock = &t->time.port, .pool = t->objects, .seed = 3, .history_max = 256 });
    embedded_set_faults(t->e, &(struct embedded_faults){ .drop_watch = break_watch, .ctx = t });
    t->store = embedded_store(t->e);
    the_town = t;
    t->slow_ops = *t->store->ops;
    t->slow_ops.create = create_slowly;
    t->slow = (struct store){ &t->slow_ops, t->store->ctx };
    t->metrics = metrics_new(&t->time.port);
    t->cloud =
        kwok_new((struct kwok_options){ .store = t->store, .clock = &t->time.port, .seed = 5 });
    object_unref(make(t->store, &kwoknodeclass_kind,
                      js("{'metadata':{'name':'default'},'spec':{'nodeRegistrationDelay':'2s'}}")));
    make_town_pool(t, "first");
    EXPECT_OK(kwok_start(t->cloud, &err), err);
    EXPECT_EQ(pthread_create(&t->others, NULL, others_main, t), 0);
    EXPECT_EQ(pthread_create(&t->visitor, NULL, visitor_main, t), 0);
    return t;
}

/* Another process takes over: the old one is stopped wherever it is. */
static void town_restart(struct town *t, bool start)
{
    struct err err = { 0 };
    struct control *next = NULL;
    if (t->c)
        control_stop(t->c); /* the visitor still asks */
    pthread_mutex_lock(&t->lock);
    struct control *last = take(&t->c);
    pthread_mutex_unlock(&t->lock);
    control_free(last);
    if (!start)
        return;
    next = control_new((struct control_options){ .store = &t->slow,
                                                 .provider = kwok_provider(t->cloud),
                                                 .clock = &t->time.port,
                                                 .maybe_metrics = t->metrics,
                                                 .seed = 9,
                                                 .settings = control_settings_default });
    EXPECT_OK(control_start(next, &err), err);
    pthread_mutex_lock(&t->lock);
    t->c = next;
    pthread_mutex_unlock(&t->lock);
}

static void town_free(struct town *t)
{
    town_restart(t, false);
    atomic_store(&t->over, true);
    pthread_join(t->others, NULL);
    pthread_join(t->visitor, NULL);
    kwok_free(t->cloud);
    metrics_free(t->metrics);
    embedded_free(t->e);
    object_pool_free(t->objects);
    pthread_mutex_destroy(&t->lock);
    free(t);
}
KV_AUTO_TYPE(town, town_free)

/* --- what is waited for --- */

static uint32_t town_count(struct town *t, const struct kind *kind)
{
    struct object_list all;
    list(t, kind, &all);
    uint32_t count = (uint32_t)all.count;
    object_list_done(&all);
    return count;
}

/* Nothing is on its way out, and every pod has a node. */
static bool is_settled(struct town *t)
{
    struct object_list pods, claims;
    list(t, &pod_kind, &pods);
    list(t, &nodeclaim_kind, &claims);
    bool settled =
        pods.count == atomic_load(&t->pods_wanted) && claims.count == town_count(t, &node_kind);
    for (size_t i = 0; settled && i < pods.count; i++)
        settled = pod_is_scheduled(pod_of(pods.items[i])) && !pods.items[i]->meta.deleted_us;
    for (size_t i = 0; settled && i < claims.count; i++)
        settled = !claims.items[i]->meta.deleted_us &&
                  claim_condition_true(nodeclaim_of(claims.items[i]), CONDITION_INITIALIZED);
    object_list_done(&claims);
    object_list_done(&pods);
    return settled;
}

static bool is_empty(struct town *t)
{
    return !town_count(t, &pod_kind) && !town_count(t, &nodeclaim_kind) &&
           !town_count(t, &node_kind) && !town_count(t, &nodepool_kind);
}

static void wait_until(struct town *t, bool (*reached)(struct town *t))
{
    int64_t until_ns = clock_mono_ns(clock_real()) + PATIENCE_NS;
    bool in_time = true;
    while (!reached(t) && in_time) {
        usleep(POLL_US);
        in_time = clock_mono_ns(clock_real()) < until_ns;
    }
    if (in_time)
        return;
    AUTO_BUF text = { 0 };
    embedded_dump(t->e, &text);
    fprintf(stderr, "%.*s", STR_ARG(buf_str(&text)));
    KV_ASSERT(in_time); /* not a failed test: its threads would run on into the next */
}

static bool is_busy(struct town *t)
{
    return town_count(t, &nodeclaim_kind) > 10 && town_count(t, &node_kind) > 3;
}

/* --- the tests --- */

TEST(hundreds_of_pods_get_nodes_while_claims_are_deleted_and_all_of_it_goes_with_the_pool)
{
    AUTO(town) t = town_new();
    atomic_store(&t->pods_wanted, 240);
    atomic_store(&t->rough, true);
    town_restart(t, true);
    wait_until(t, is_busy);
    usleep(1500 * 1000);
    atomic_store(&t->rough, false);
    wait_until(t, is_settled);
    EXPECT_TRUE(town_count(t, &node_kind) >= 240 / 8);

    struct err err = { 0 };
    atomic_store(&t->pods_wanted, 0);
    store_remove(t->store, at(&nodepool_kind, "second"), NULL, &err);
    EXPECT_OK(store_remove(t->store, at(&nodepool_kind, "first"), NULL, &err), err);
    wait_until(t, is_empty);
}

static bool were_created_at_once(struct town *t)
{
    return atomic_load(&t->creating_max) > 1 && is_settled(t);
}

TEST(claims_of_one_pass_are_created_side_by_side)
{
    AUTO(town) t = town_new();
    atomic_store(&t->pods_wanted, CREATED_AT_ONCE);
    town_restart(t, true);
    wait_until(t, were_created_at_once);
    EXPECT_TRUE(atomic_load(&t->creating_max) <= 8);
}

TEST(one_that_is_stopped_while_busy_leaves_all_that_the_next_one_needs)
{
    AUTO(town) t = town_new();
    atomic_store(&t->pods_wanted, 90);
    for (int i = 0; i < 12; i++) {
        atomic_store(&t->rough, i % 3 == 2);
        town_restart(t, true);
        usleep((useconds_t)(i * 20) * 1000);
    }
    atomic_store(&t->rough, false);
    wait_until(t, is_settled);
}

TEST(starting_and_stopping_at_once_is_fine)
{
    AUTO(town) t = town_new();
    for (int i = 0; i < 15; i++)
        town_restart(t, true);
    town_restart(t, false);
    EXPECT_EQ(town_count(t, &nodeclaim_kind), 0);
}
