/* tests/node/agent_pods.h - static pods on a real containerd, and what the agent says of them.
 *
 *     struct node_fixture *f = node_fixture();
 *     agent_runs_pods(f);
 *     static_pod(f, "web", "containers: [" POLITE("main") "]");
 *     WITHIN_LIMIT(f, pod_says(f, "web", "status.phase", "Running"));
 */
#pragma once

#include "node/fixture.h"

#define NODE_NAME "n1" /* so the pod "web" of a manifest is named "web-n1" */

/* Containers, for the text of a manifest. */
#define POLITE(name) "{name: " name ", image: 'karve.test/tools:1'}" /* waits; ends at SIGTERM */
#define SERVER(name, port, more)                                                                   \
    "{name: " name ", image: 'karve.test/tools:1', command: [tools, serve, '" port "'], " more "}"
#define SHELL(name, script, more)                                                                  \
    "{name: " name ", image: 'karve.test/busybox:1', command: [sh, -c, \"" script "\"], " more "}"

/* `karve agent --run-pods`, with back-offs of 1, 2, 2, ... seconds. */
void agent_runs_pods(struct node_fixture *f);

/* Write the manifest of a pod with uid "uid-<name>"; `spec` is the inside of a YAML flow mapping. */
void static_pod(struct node_fixture *f, const char *name, const char *spec, ...) KV_PRINTF(3, 4);
void static_pod_remove(struct node_fixture *f, const char *name);

/* A value in the agent's answer about the pod, as text; absent if there is none. Items of arrays are
 * found by their name or type: "status.containerStatuses[main].state.waiting.reason". */
struct str pod_value(struct node_fixture *f, const char *name, const char *path);
bool pod_says(struct node_fixture *f, const char *name, const char *path, const char *want);
int64_t pod_number(struct node_fixture *f, const char *name, const char *path); /* -1: none */
/* The same of one container's status. */
bool container_says(struct node_fixture *f, const char *name, const char *container,
                    const char *path, const char *want);
bool pod_is_known(struct node_fixture *f, const char *name); /* to the agent */

/* What the runtime itself has of the pod; NULL: nothing. */
const struct runtime_pod *runtime_pod_of(struct node_fixture *f, const char *name);
/* The id of the newest instance of a container (NULL: of the newest sandbox), which must be there. */
struct str newest_id(struct node_fixture *f, const char *name, const char *maybe_container);
uint32_t count_in(struct node_fixture *f, const char *name, const char *maybe_container,
                  enum runtime_state state);

struct str file_content(struct node_fixture *f, const char *path); /* absent: no such file */
bool file_exists(const char *path);
/* "<dir>/logs/default_<name>-n1_uid-<name>" */
const char *log_folder(struct node_fixture *f, const char *name);
/* GET over TCP: the status code, 0 if nobody answers. */
int http_code(struct str ip, int port, const char *path);
/* Let the agent go on for a while, in which something must not happen. */
void linger(int ms);
