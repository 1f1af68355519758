/* Seeded lives of an agent on a fake runtime: manifests come, change and go, containers and
 * sandboxes die, calls fail before or after their effect, connections drop, the agent stops and starts
 * in between. Through all of it:
 *
 * 1. no container name of a pod runs twice at the same time, and none is started twice;
 * 2. two pods of one name never run at the same time;
 * 3. once the faults are over, what runs is what the manifests say, and nothing else of ours is left.
 */
#include "base/rng.h"
#include "node/agent_testing.h"

#define FILES 4
#define STEPS 40

struct life {
    struct rig rig;
    struct rng rng;
    uint32_t version[FILES]; /* of the manifest; its uid has it; 0: there is none */
    uint32_t last_version;
};

static void uid_of(uint32_t file, uint32_t version, char out[32])
{
    snprintf(out, 32, "uid-%u-%u", file, version);
}

static void write_pod(struct life *life, uint32_t file)
{
    char name[16], uid[32], text[512];
    life->version[file] = ++life->last_version;
    uid_of(file, life->version[file], uid);
    snprintf(name, sizeof name, "p%u.yaml", file);
    snprintf(text, sizeof text,
             "apiVersion: v1\nkind: Pod\nmetadata: {name: p%u, uid: %s}\n"
             "spec: {hostNetwork: true, terminationGracePeriodSeconds: 1, containers: ["
             "{name: one, image: 'web:1'}, {name: two, image: 'web:1'}]}\n",
             file, uid);
    rig_write(&life->rig, name, text);
}

static void remove_pod(struct life *life, uint32_t file)
{
    char name[16];
    if (!life->version[file])
        return;
    life->version[file] = 0;
    snprintf(name, sizeof name, "p%u.yaml", file);
    rig_unlink(&life->rig, name);
}

/* Something of a pod that exists now, or existed a while ago. */
static void kill_something(struct life *life)
{
    static const char *const names[] = { "one", "two", NULL };
    uint32_t file = (uint32_t)rng_below(&life->rng, FILES);
    const char *name = names[rng_below(&life->rng, 3)];
    int32_t code = (int32_t)rng_below(&life->rng, 2);
    char uid[32];
    uid_of(file, life->version[file], uid);
    struct fake_item item = fake_cri_find(life->rig.fake, uid, name);
    if (item.exists && item.state == RUNTIME_RUNNING)
        fake_cri_exit(life->rig.fake, item.id, code);
}

static void fault_something(struct life *life)
{
    static const enum cri_method methods[] = {
        CRI_RUN_POD_SANDBOX,  CRI_CREATE_CONTAINER, CRI_START_CONTAINER,  CRI_STOP_CONTAINER,
        CRI_STOP_POD_SANDBOX, CRI_REMOVE_CONTAINER, CRI_CONTAINER_STATUS, CRI_LIST_CONTAINERS,
    };
    enum cri_method method = methods[rng_below(&life->rng, KV_COUNT_OF(methods))];
    bool after = rng_below(&life->rng, 2) == 0;
    uint32_t times = 1 + (uint32_t)rng_below(&life->rng, 2);
    fake_cri_fault(life->rig.fake, (struct fake_fault){ .method = method,
                                                        .times = times,
                                                        .status = GRPC_UNAVAILABLE,
                                                        .after = after });
}

static void act(struct life *life)
{
    uint32_t file = (uint32_t)rng_below(&life->rng, FILES);
    switch (rng_below(&life->rng, 8)) {
    case 0:
    case 1:
        write_pod(life, file);
        break;
    case 2:
        remove_pod(life, file);
        break;
    case 3:
    case 4:
        kill_something(life);
        break;
    case 5:
        fault_something(life);
        break;
    case 6:
        fake_cri_drop_connections(life->rig.fake);
        break;
    default:
        rig_agent_stop(&life->rig);
        rig_agent_start(&life->rig);
        break;
    }
}

/* Rules 1 and 2. */
static void check(struct life *life)
{
    struct fake_cri *fake = life->rig.fake;
    for (uint32_t file = 0; file < FILES; file++) {
        uint32_t running_versions = 0;
        /* The newest first: when one that runs has been found, those before it have ended already. */
        for (uint32_t version = life->last_version; version > 0; version--) {
            char uid[32];
            uid_of(file, version, uid);
            uint32_t ones = fake_cri_containers(fake, uid, "one", RUNTIME_RUNNING);
            uint32_t twos = fake_cri_containers(fake, uid, "two", RUNTIME_RUNNING);
            EXPECT_TRUE(ones <= 1);
            EXPECT_TRUE(twos <= 1);
            running_versions += ones + twos > 0;
        }
        EXPECT_TRUE(running_versions <= 1);
    }
}

static bool is_as_wanted(struct life *life)
{
    struct fake_cri *fake = life->rig.fake;
    uint32_t wanted = 0;
    for (uint32_t file = 0; file < FILES; file++) {
        char uid[32];
        if (!life->version[file])
            continue;
        wanted++;
        uid_of(file, life->version[file], uid);
        if (fake_cri_containers(fake, uid, "one", RUNTIME_RUNNING) != 1 ||
            fake_cri_containers(fake, uid, "two", RUNTIME_RUNNING) != 1)
            return false;
    }
    return fake_cri_containers(fake, NULL, NULL, RUNTIME_RUNNING) == 2 * wanted &&
           fake_cri_sandboxes(fake, NULL, RUNTIME_RUNNING) == wanted;
}

static void live(uint64_t seed)
{
    struct life life = { 0 };
    printf("# seed %llu\n", (unsigned long long)seed);
    rng_init(&life.rng, seed);
    rig_open(&life.rig);
    rig_agent_start(&life.rig);
    for (uint32_t step = 0; step < STEPS; step++) {
        act(&life);
        int64_t pause_ms = (int64_t)rng_below(&life.rng, 60);
        nanosleep(&(struct timespec){ .tv_nsec = pause_ms * 1000000 }, NULL);
        check(&life);
    }
    fake_cri_heal(life.rig.fake);
    WAIT_FOR(&life.rig, (check(&life), is_as_wanted(&life)));
    rig_close(&life.rig);
}

TEST(whatever_happens_pods_run_once_and_in_the_end_as_wanted)
{
    for (uint64_t seed = 1; seed <= 6; seed++)
        live(seed);
}
