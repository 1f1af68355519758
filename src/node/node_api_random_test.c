/* Seeded lives of a node: pods are bound to it, deleted, deleted by force and made again under their
 * names, containers end, the runtime fails, the server is away, answers get lost, watches break, the
 * agent stops and starts in between. Through all of it:
 *
 * 1. the agent deletes only pods that are to go, that have told their last status and of which nothing
 *    runs, by uid and once (checked by the layer in node_api_testing.h);
 * 2. no container of a pod runs twice at the same time;
 * 3. once the faults are over, what runs are the pods of the API, their statuses are the runtime's truth,
 *    and every pod that was deleted is gone.
 */
#include "node/node_api_testing.h"

#define NAMES 4
#define STEPS 50

struct life {
    struct cluster c;
    struct rng rng;
    VEC(char *) uids; /* of all pods that ever were */
};

static void name_of(uint32_t ix, char out[8])
{
    snprintf(out, 8, "p%u", ix);
}

static void create(struct life *life, const char *name)
{
    char uid[64];
    struct err err;
    AUTO_OBJECT there = NULL;
    if (store_get(life->c.store, at(&pod_kind, name), &there, &err) == 0)
        return;
    cluster_pod(&life->c, name, rng_below(&life->rng, 3) ? "Always" : "Never", uid);
    vec_push(&life->uids, str_dup(str_of(uid)));
}

static void delete_pod(struct life *life, const char *name, bool force)
{
    struct err err;
    struct delete_options options = { .grace_s = { 0, force } };
    if (store_remove(life->c.store, at(&pod_kind, name), &options, &err) < 0)
        EXPECT_EQ(err.kind, ERR_NOT_FOUND);
}

static void end_container(struct life *life, const char *name)
{
    AUTO_OBJECT pod = NULL;
    char uid[64];
    struct err err;
    if (store_get(life->c.store, at(&pod_kind, name), &pod, &err) < 0)
        return;
    snprintf(uid, sizeof uid, "%.*s", STR_ARG(pod->meta.uid));
    struct fake_item item = fake_cri_find(life->c.rig.fake, uid, "main");
    if (item.exists && item.state == RUNTIME_RUNNING)
        fake_cri_exit(life->c.rig.fake, item.id, (int32_t)rng_below(&life->rng, 3));
}

static void fault_runtime(struct life *life)
{
    static const enum cri_method methods[] = { CRI_RUN_POD_SANDBOX, CRI_START_CONTAINER,
                                               CRI_STOP_CONTAINER, CRI_CONTAINER_STATUS };
    fake_cri_fault(life->c.rig.fake,
                   (struct fake_fault){ .method = methods[rng_below(&life->rng, 4)],
                                        .times = 1,
                                        .status = GRPC_UNAVAILABLE,
                                        .after = rng_below(&life->rng, 2) == 0 });
}

static void act(struct life *life)
{
    struct cluster *c = &life->c;
    char name[8];
    name_of((uint32_t)rng_below(&life->rng, NAMES), name);
    switch (rng_below(&life->rng, 12)) {
    case 0:
    case 1:
    case 2:
        create(life, name);
        break;
    case 3:
    case 4:
        delete_pod(life, name, false);
        break;
    case 5:
        delete_pod(life, name, true);
        create(life, name);
        break;
    case 6:
    case 7:
        end_container(life, name);
        break;
    case 8:
        fault_runtime(life);
        break;
    case 9:
        atomic_store(&c->down, !atomic_load(&c->down));
        break;
    case 10:
        atomic_store(&c->fail_every, (unsigned)rng_below(&life->rng, 3) * 4);
        break;
    default:
        cluster_agent_stop(c);
        cluster_agent_start(c);
        break;
    }
}

/* Rule 2. */
static void check(struct life *life)
{
    vec_each(&life->uids, char *, uid)
        EXPECT_TRUE(fake_cri_containers(life->c.rig.fake, *uid, "main", RUNTIME_RUNNING) <= 1);
}

static bool status_is_true(struct life *life, const struct pod *pod)
{
    char uid[64];
    snprintf(uid, sizeof uid, "%.*s", STR_ARG(pod->object.meta.uid));
    struct fake_item item = fake_cri_find(life->c.rig.fake, uid, "main");
    const struct container_status *said = pod->status->containers.items;
    if (pod->status->containers.count != 1)
        return false;
    if (pod->spec->restart_policy == RESTART_NEVER && pod_is_terminal(pod))
        return said->state == STATE_TERMINATED && (!item.exists || item.state == RUNTIME_EXITED) &&
               (!item.exists || said->detail.exit_code == item.exit_code) &&
               pod->status->phase == (said->detail.exit_code == 0 ? PHASE_SUCCEEDED : PHASE_FAILED);
    return item.exists && item.state == RUNTIME_RUNNING && said->state == STATE_RUNNING &&
           said->restart_count == item.attempt && pod->status->phase == PHASE_RUNNING &&
           pod_is_ready(pod);
}

/* Rule 3. */
static bool is_settled(struct life *life)
{
    struct object_list list;
    struct err err;
    uint32_t running = 0;
    bool settled = true;
    EXPECT_OK(store_list(life->c.store, &pod_kind, NULL, &list, &err), err);
    for (size_t i = 0; i < list.count; i++) {
        const struct pod *pod = pod_of(list.items[i]);
        settled &= !pod_is_terminating(pod) && status_is_true(life, pod);
        running += !pod_is_terminal(pod);
    }
    object_list_done(&list);
    return settled &&
           fake_cri_containers(life->c.rig.fake, NULL, NULL, RUNTIME_RUNNING) == running &&
           fake_cri_sandboxes(life->c.rig.fake, NULL, RUNTIME_RUNNING) == running;
}

static void live(uint64_t seed)
{
    struct life life = { 0 };
    printf("# seed %llu\n", (unsigned long long)seed);
    rng_init(&life.rng, seed);
    cluster_open(&life.c);
    cluster_agent_start(&life.c);
    for (uint32_t step = 0; step < STEPS; step++) {
        act(&life);
        int64_t pause_ms = (int64_t)rng_below(&life.rng, 80);
        nanosleep(&(struct timespec){ .tv_nsec = pause_ms * 1000000 }, NULL);
        check(&life);
    }
    atomic_store(&life.c.down, false);
    atomic_store(&life.c.fail_every, 0);
    fake_cri_heal(life.c.rig.fake);
    WAIT_FOR(&life.c.rig, (check(&life), is_settled(&life)));
    vec_each(&life.uids, char *, uid) {
        EXPECT_TRUE(cluster_removals(&life.c, *uid) <= 1);
        free(*uid);
    }
    vec_done(&life.uids);
    cluster_close(&life.c);
}

TEST(whatever_happens_pods_are_ended_once_and_statuses_become_true)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        live(seed);
}
