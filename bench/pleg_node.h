/* bench/pleg_node.h - a real containerd with pods on it, for bench/pleg.
 *
 * A pod is a sandbox and two containers that wait. Containers are killed one after the other, each once,
 * the first ones of all pods before the second ones; nothing is started again.
 */
#pragma once

#include "node/fixture.h"
#include "support/program.h"

#define POD_CONTAINERS 2

struct bench_container {
    char id[80];
    pid_t pid;
};

struct bench_pod {
    char uid[37];
    struct bench_container containers[POD_CONTAINERS];
};

struct bench_node {
    struct node_fixture *f;
    pid_t containerd;
    struct bench_pod *pods; /* owned */
    uint32_t pod_count, pods_max;
    uint32_t killed_count; /* containers */
};

/* Ends the program, well, where containerd cannot run. Equal nodes have equal pods. */
void bench_node_init(struct bench_node *node, uint32_t pods_max);
void bench_node_done(struct bench_node *node);
void bench_node_grow(struct bench_node *node, uint32_t pod_count);

/* The next victim; its process is sent SIGKILL. */
const struct bench_container *bench_node_kill(struct bench_node *node);
/* Until the runtime says so. */
void bench_node_wait_exited(struct bench_node *node, const struct bench_container *container);
