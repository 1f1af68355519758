/* Random pods and random runtime states, against what must hold of every decision, and against a model
 * of a runtime that carries the decisions out. */
#include "node/actions_testing.h"
#include "node/node_pod_testing.h"
#include "node/runtime_testing.h"

#include "base/rng.h"
#include "base/vec.h"

#define PODS 60
#define STATES_PER_POD 60
#define CONTAINERS_MAX 4 /* of a kind */
#define STEPS_MAX 40     /* far more than a pod of that size needs */

/* --- a random pod --- */

static void add_random_container(struct buf *yaml, struct rng *r, const char *prefix, size_t ix,
                                 bool init)
{
    static const char *const own[] = { "",
                                       "",
                                       "",
                                       ", restartPolicy: Always",
                                       ", restartPolicy: Never",
                                       ", restartPolicy: OnFailure" };
    const char *policy = own[rng_below(r, init ? 4 : KV_COUNT_OF(own))];
    buf_addf(yaml, "  - {name: %s%zu, image: '%s:1'%s}\n", prefix, ix, prefix, policy);
}

static const struct node_pod *random_pod(struct rng *r)
{
    static const char *const policies[] = { "Always", "OnFailure", "Never" };
    AUTO_BUF yaml = { 0 };
    size_t inits = rng_below(r, CONTAINERS_MAX), containers = 1 + rng_below(r, CONTAINERS_MAX - 1);
    bool deleted = rng_below(r, 10) == 0;
    buf_addf(&yaml, "metadata: {name: web%s}\nspec:\n  restartPolicy: %s\n  hostNetwork: %s\n",
             deleted ? ", deletionTimestamp: '2027-01-15T08:00:00Z', deletionGracePeriodSeconds: 1"
                     : "",
             policies[rng_below(r, 3)], rng_below(r, 4) ? "false" : "true");
    if (inits)
        buf_addz(&yaml, "  initContainers:\n");
    for (size_t i = 0; i < inits; i++)
        add_random_container(&yaml, r, "i", i, true);
    buf_addz(&yaml, "  containers:\n");
    for (size_t i = 0; i < containers; i++)
        add_random_container(&yaml, r, "c", i, false);
    return pod_from_yaml(yaml.p);
}

/* --- a model of a runtime --- */

struct model {
    struct arena arena;
    const struct node_pod *pod;
    VEC(struct made) sandboxes, containers; /* newest first */
    struct str_table probes; /* id -> struct container_probes, of instances that have trouble */
    struct str_table starts; /* name -> how often this run started it */
    uint32_t made_count;
};

static void model_done(struct model *m)
{
    vec_done(&m->sandboxes);
    vec_done(&m->containers);
    str_table_done(&m->probes);
    str_table_done(&m->starts);
    arena_done(&m->arena);
}
#define AUTO_MODEL __attribute__((cleanup(model_done))) struct model

#define push_front(v, ...)                                                                         \
    do {                                                                                           \
        vec_push(v, __VA_ARGS__);                                                                  \
        memmove((v)->items + 1, (v)->items, ((v)->count - 1) * sizeof *(v)->items);                \
        (v)->items[0] = (__VA_ARGS__);                                                             \
    } while (0)

static const struct container_probes fine = { PROBE_SUCCESS, PROBE_SUCCESS, PROBE_SUCCESS };

static struct container_probes model_probes(void *ctx, struct str id,
                                            const struct node_container *spec KV_UNUSED)
{
    const struct model *m = ctx;
    const struct container_probes *probes = str_table_get(&m->probes, id);
    return probes ? *probes : fine;
}

static void model_add(struct model *m, const struct node_container *spec, const char *sandbox,
                      struct made like)
{
    like.container = arena_str(&m->arena, spec->name).p;
    like.id = arena_strf(&m->arena, "%s#%u", like.container, m->made_count++).p;
    like.in = sandbox;
    if (!like.hash)
        like.hash = spec->hash;
    push_front(&m->containers, like);
}

static void add_random_instances(struct model *m, struct rng *r, const struct node_container *spec)
{
    for (uint64_t n = rng_below(r, 3); n > 0; n--) {
        struct made like = { .state = (enum runtime_state)rng_below(r, 4) };
        like.exit_code = rng_below(r, 2) ? 0 : 1;
        like.hash = rng_below(r, 4) ? NULL : rng_below(r, 2) ? "" : "0123456789abcdef";
        const char *sandbox = "gone";
        if (m->sandboxes.count)
            sandbox = m->sandboxes.items[rng_below(r, m->sandboxes.count)].sandbox;
        model_add(m, spec, sandbox, like);
        if (rng_below(r, 4) == 0) {
            struct container_probes *probes = arena_new(&m->arena, struct container_probes);
            probes->liveness = (uint8_t)rng_below(r, 3);
            probes->readiness = (uint8_t)rng_below(r, 3);
            probes->startup = (uint8_t)rng_below(r, 3);
            str_table_put(&m->probes, str_of(m->containers.items[0].id), probes);
        }
    }
}

static void model_randomize(struct model *m, struct rng *r)
{
    uint64_t sandboxes = rng_below(r, 8) == 0 ? 0 : 1 + rng_below(r, 2);
    for (uint32_t i = 0; i < sandboxes; i++)
        push_front(&m->sandboxes,
                   (struct made){ .sandbox = arena_strf(&m->arena, "s%u", i).p,
                                  .attempt = i,
                                  .not_ready = rng_below(r, i + 1 == sandboxes ? 5 : 2) == 0,
                                  .host_network = m->pod->host_network != (rng_below(r, 9) == 0) });
    for (uint32_t i = 0; i < m->pod->inits.count; i++)
        add_random_instances(m, r, &m->pod->inits.items[i]);
    for (uint32_t i = 0; i < m->pod->containers.count; i++)
        add_random_instances(m, r, &m->pod->containers.items[i]);
}

static const struct runtime_status *model_status(const struct model *m)
{
    VEC(struct made) all = { 0 };
    for (size_t i = 0; i < m->sandboxes.count; i++)
        vec_push(&all, m->sandboxes.items[i]);
    for (size_t i = 0; i < m->containers.count; i++)
        vec_push(&all, m->containers.items[i]);
    const struct runtime_status *status = runtime_make("uid-web", all.items, all.count);
    vec_done(&all);
    return status;
}

static void end_instance(struct made *instance)
{
    if (instance->state == RUNTIME_RUNNING || instance->state == RUNTIME_UNKNOWN) {
        instance->state = RUNTIME_EXITED;
        instance->exit_code = 137;
    }
}

static void model_start(struct model *m, struct start_list list, const char *sandbox)
{
    for (uint32_t i = 0; i < list.count; i++) {
        const struct node_container *spec = list.items[i];
        uintptr_t starts = (uintptr_t)str_table_get(&m->starts, spec->name) + 1;
        model_add(m, spec, sandbox, (struct made){ .state = RUNTIME_RUNNING });
        str_table_put(&m->starts, spec->name, (void *)starts); /* a count in a pointer's place */
    }
}

static void model_apply(struct model *m, const struct pod_actions *actions)
{
    vec_each(&m->containers, struct made, c) {
        bool listed = actions->kill_pod;
        for (uint32_t i = 0; i < actions->kill.count; i++)
            listed |= str_eqz(actions->kill.items[i].id, c->id);
        if (listed)
            end_instance(c);
    }
    if (actions->kill_pod) {
        vec_each(&m->sandboxes, struct made, s)
            s->not_ready = true;
    }
    const char *sandbox = arena_str(&m->arena, actions->sandbox_id).p;
    if (actions->create_sandbox) {
        sandbox = arena_strf(&m->arena, "s%u", actions->attempt).p;
        vec_each(&m->sandboxes, struct made, s)
            EXPECT_TRUE(s->attempt != actions->attempt);
        push_front(&m->sandboxes, (struct made){ .sandbox = sandbox,
                                                 .attempt = actions->attempt,
                                                 .host_network = m->pod->host_network });
    }
    model_start(m, actions->start_inits, sandbox);
    model_start(m, actions->start_containers, sandbox);
}

/* Plain init containers do their work, and what was slow to start has started. True: one did. */
static bool model_progress(struct model *m)
{
    bool moved = false;
    vec_each(&m->containers, struct made, c) {
        const struct node_container *spec = node_pod_container(m->pod, str_of(c->container));
        if (spec->init && !spec->sidecar && c->state == RUNTIME_RUNNING) {
            c->state = RUNTIME_EXITED;
            c->exit_code = 0;
            moved = true;
        }
        moved |= str_table_remove(&m->probes, str_of(c->id)) != NULL;
    }
    return moved;
}

/* --- what must hold of one decision --- */

static bool is_listed(const struct pod_actions *actions, struct str id)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < actions->kill.count; i++)
        count += str_eq(actions->kill.items[i].id, id);
    EXPECT_TRUE(count <= 1);
    return count == 1;
}

static void check_starts(const struct model *m, const struct runtime_status *status,
                         const struct pod_actions *actions, struct start_list list)
{
    for (uint32_t i = 0; i < list.count; i++) {
        const struct runtime_container *last = runtime_container_find(status, list.items[i]->name);
        EXPECT_FALSE(m->pod->deleted_us);
        if (last && last->state == RUNTIME_RUNNING && str_eqz(last->sandbox_id, "gone"))
            continue;
        if (last && last->state == RUNTIME_RUNNING && !actions->kill_pod &&
            str_eq(last->sandbox_id, actions->sandbox_id))
            EXPECT_TRUE(is_listed(actions, last->id));
        for (uint32_t j = i + 1; j < list.count; j++)
            EXPECT_TRUE(list.items[i] < list.items[j]); /* each once, in the order of the spec */
    }
}

static void check_kills(const struct model *m, const struct runtime_status *status,
                        const struct pod_actions *actions)
{
    for (uint32_t i = 0; i < actions->kill.count; i++) {
        const struct container_kill *kill = &actions->kill.items[i];
        const struct runtime_container *c = runtime_container_by_id(status, kill->id);
        const struct node_container *spec = node_pod_container(m->pod, kill->name);
        EXPECT_TRUE(c == runtime_container_find(status, kill->name));
        struct container_probes probes = model_probes((void *)m, c->id, spec);
        bool changed = c->hash.len && !str_eqz(c->hash, spec->hash);
        EXPECT_TRUE(is_listed(actions, c->id));
        EXPECT_TRUE(c->state == RUNTIME_UNKNOWN ||
                    (c->state == RUNTIME_RUNNING && (changed || probes.liveness == PROBE_FAILURE ||
                                                     probes.startup == PROBE_FAILURE)));
    }
}

/* The slow, obvious form: is the last init container through, or has a regular one been made? */
static bool is_initialized(const struct model *m, const struct runtime_status *status)
{
    struct str sandbox = status->sandboxes.items[0].id;
    for (uint32_t i = 0; i < status->containers.count; i++) {
        const struct runtime_container *c = &status->containers.items[i];
        if (!node_pod_container(m->pod, c->name)->init && str_eq(c->sandbox_id, sandbox))
            return true;
    }
    if (m->pod->inits.count == 0)
        return true;
    const struct node_container *init = &m->pod->inits.items[m->pod->inits.count - 1];
    const struct runtime_container *c = runtime_container_find(status, init->name);
    if (!c || !str_eq(c->sandbox_id, sandbox))
        return false;
    if (init->sidecar)
        return c->state == RUNTIME_RUNNING &&
               model_probes((void *)m, c->id, init).startup == PROBE_SUCCESS;
    return c->state == RUNTIME_EXITED && c->exit_code == 0;
}

static void check_decision(const struct model *m, const struct runtime_status *status,
                           const struct pod_actions *actions)
{
    check_starts(m, status, actions, actions->start_inits);
    check_starts(m, status, actions, actions->start_containers);
    check_kills(m, status, actions);
    if (actions->create_sandbox) {
        EXPECT_TRUE(actions->kill_pod);
        EXPECT_TRUE(actions->start_inits.count + actions->start_containers.count > 0);
        if (m->pod->inits.count)
            EXPECT_EQ(actions->start_containers.count, 0);
    } else if (actions->kill_pod) {
        EXPECT_EQ(actions->start_inits.count + actions->start_containers.count, 0);
    } else if (actions->start_containers.count) {
        EXPECT_TRUE(is_initialized(m, status));
    }
}

/* --- the tests --- */

static uint64_t test_seed(void)
{
    const char *given = getenv("SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : 20270115;
    print_message("# seed %llu (SEED=... to change it)\n", (unsigned long long)seed);
    return seed;
}

static struct pod_actions decide(struct model *m, const struct runtime_status *status)
{
    return pod_actions(&m->arena, m->pod, status, (struct probe_source){ model_probes, m });
}

TEST(every_decision_keeps_the_rules)
{
    struct rng r;
    rng_init(&r, test_seed());
    for (int p = 0; p < PODS; p++) {
        AUTO_NODE_POD pod = random_pod(&r);
        for (int i = 0; i < STATES_PER_POD; i++) {
            AUTO_MODEL m = { .pod = pod };
            model_randomize(&m, &r);
            AUTO_STATUS status = model_status(&m);
            struct pod_actions actions = decide(&m, status);
            check_decision(&m, status, &actions);
            struct pod_actions again = decide(&m, status);
            struct str words = actions_words(&m.arena, &actions);
            EXPECT_STR(actions_words(&m.arena, &again), words.p);
        }
    }
}

TEST(a_pod_that_runs_as_it_shall_is_left_alone)
{
    struct rng r;
    rng_init(&r, test_seed());
    for (int p = 0; p < PODS; p++) {
        AUTO_NODE_POD pod = random_pod(&r);
        AUTO_MODEL m = { .pod = pod };
        vec_push(&m.sandboxes, a_sandbox("s0", .host_network = pod->host_network));
        for (uint32_t i = 0; i < pod->inits.count; i++) {
            bool runs = pod->inits.items[i].sidecar;
            if (runs || rng_below(&r, 2)) /* a plain one is done, or tidied away */
                model_add(&m, &pod->inits.items[i], "s0",
                          (struct made){ .state = runs ? RUNTIME_RUNNING : RUNTIME_EXITED });
        }
        for (uint32_t i = 0; i < pod->containers.count; i++)
            model_add(&m, &pod->containers.items[i], "s0",
                      (struct made){ .state = RUNTIME_RUNNING });
        AUTO_STATUS status = model_status(&m);
        struct pod_actions actions = decide(&m, status);
        EXPECT_STR(actions_words(&m.arena, &actions), "nothing");
    }
}

/* Every regular container runs or is done, and sidecars run; or the pod has ended as a whole. */
static void check_settled(struct model *m)
{
    AUTO_STATUS status = model_status(m);
    if (!runtime_status_running(status))
        return;
    for (uint32_t i = 0; i < m->pod->containers.count; i++) {
        const struct node_container *spec = &m->pod->containers.items[i];
        const struct runtime_container *last = runtime_container_find(status, spec->name);
        EXPECT_FALSE(container_should_restart(m->pod, spec, last));
    }
    for (uint32_t i = 0; i < m->pod->inits.count && !m->pod->deleted_us; i++) {
        const struct node_container *spec = &m->pod->inits.items[i];
        const struct runtime_container *last = runtime_container_find(status, spec->name);
        if (spec->sidecar)
            EXPECT_TRUE(last && last->state == RUNTIME_RUNNING);
    }
}

TEST(carrying_the_decisions_out_settles_and_starts_nothing_twice)
{
    struct rng r;
    rng_init(&r, test_seed());
    for (int p = 0; p < PODS; p++) {
        AUTO_NODE_POD pod = random_pod(&r);
        for (int i = 0; i < STATES_PER_POD; i++) {
            AUTO_MODEL m = { .pod = pod };
            model_randomize(&m, &r);
            int step = 0;
            for (bool moved = true; moved; step++) {
                AUTO_STATUS before = model_status(&m);
                struct pod_actions actions = decide(&m, before);
                check_decision(&m, before, &actions);
                model_apply(&m, &actions);
                AUTO_STATUS after = model_status(&m);
                moved = !runtime_status_same(before, after) || model_progress(&m);
                EXPECT_TRUE(step < STEPS_MAX);
            }
            check_settled(&m);
            str_table_each(&m.starts, slot)
                EXPECT_EQ((uintptr_t)slot->value, 1);
        }
    }
}
