#include "bench/pleg_node.h"

#include "base/file.h"
#include "base/rng.h"

#include <signal.h>
#include <stdio.h>

#define SEED 42

/* --- the node --- */

void bench_node_init(struct bench_node *node, uint32_t pods_max)
{
    *node = (struct bench_node){ .f = node_fixture(),
                                 .pods = kv_calloc(pods_max, sizeof *node->pods),
                                 .pods_max = pods_max };
    AUTO_BUF content = { 0 };
    int64_t pid = 0;
    struct err err;
    char path[128];
    snprintf(path, sizeof path, "%s/containerd.pid", node->f->dir);
    EXPECT_OK(file_read(path, 64, &content, &err), err);
    EXPECT_TRUE(str_to_i64(str_trim(buf_str(&content)), &pid) && pid > 1);
    node->containerd = (pid_t)pid;
    struct rng rng;
    rng_init(&rng, SEED);
    for (uint32_t i = 0; i < pods_max; i++)
        rng_uuid(&rng, node->pods[i].uid);
}

void bench_node_done(struct bench_node *node)
{
    free(node->pods);
}

void bench_node_grow(struct bench_node *node, uint32_t pod_count)
{
    static const char *const names[POD_CONTAINERS] = { "web", "log" };
    EXPECT_TRUE(pod_count <= node->pods_max);
    while (node->pod_count < pod_count) {
        struct bench_pod *pod = &node->pods[node->pod_count];
        char name[32];
        snprintf(name, sizeof name, "web-%u", node->pod_count);
        struct str sandbox = fixture_run_sandbox(
            node->f,
            (struct fixture_pod){ .uid = pod->uid, .maybe_name = name, .host_network = true });
        for (uint32_t i = 0; i < POD_CONTAINERS; i++) {
            struct str id =
                fixture_run(node->f, sandbox, (struct fixture_container){ .maybe_name = names[i] });
            snprintf(pod->containers[i].id, sizeof pod->containers[i].id, "%.*s", STR_ARG(id));
            pod->containers[i].pid = fixture_pid(node->f, id);
        }
        node->pod_count++;
        arena_reset(&node->f->arena);
    }
}

const struct bench_container *bench_node_kill(struct bench_node *node)
{
    uint32_t number = node->killed_count++;
    EXPECT_TRUE(number < node->pod_count * POD_CONTAINERS);
    const struct bench_container *victim =
        &node->pods[number % node->pod_count].containers[number / node->pod_count];
    EXPECT_EQ(kill(victim->pid, SIGKILL), 0);
    return victim;
}

static bool exited(struct bench_node *node, const struct bench_container *container)
{
    const Cri__ContainerStatus *status = fixture_inspect(node->f, str_of(container->id));
    bool done = status && status->state == CRI__CONTAINER_STATE__EXITED;
    arena_reset(&node->f->arena);
    return done;
}

void bench_node_wait_exited(struct bench_node *node, const struct bench_container *container)
{
    WITHIN_LIMIT(node->f, exited(node, container));
}
