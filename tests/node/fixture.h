/* tests/node/fixture.h - a real containerd, and the node agent on it, for test programs.
 *
 *     TEST(a_container_that_crashes_is_seen)
 *     {
 *         struct node_fixture *f = node_fixture();
 *         struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "crash" });
 *         struct str id = fixture_run(f, sandbox, (struct fixture_container){
 *                 .command = (const char *[]){ "sh", "-c", "exit 3", NULL } });
 *         WITHIN_LIMIT(f, fixture_inspect(f, id)->exit_code == 3);
 *     }
 *
 * One containerd for the program, started by the first test that asks and stopped when the program ends; a
 * test that finds no way to start it is skipped, with the reason, and fails in CI. What a test
 * leaves running is removed before the next one. tests/node/containerd.sh does the work.
 */
#pragma once

#include "support/test.h"

#include "node/cri.h"

#include <sys/types.h>

#define FIXTURE_LIMIT_S 60 /* for anything to come true; a sanitizer on a loaded machine is slow */

struct node_fixture {
    char dir[64];        /* scratch folder; gone at the end */
    char endpoint[128];  /* "unix://..." of containerd */
    char cgroup[64];     /* "/karve-t0": cgroup_parent of what runs here */
    struct cri *cri;     /* the runtime's own truth, past the agent */
    struct arena arena;  /* of the running test */
    pid_t agent;         /* 0: not running */
    char agent_api[100]; /* path of its socket */
    char agent_log[128]; /* path of what it said */
    char manifests[128]; /* folder of static pods, for the agent */
};

/* The program's fixture, with no pods, no manifests, no agent. */
struct node_fixture *node_fixture(void);

/* --- containerd --- */

void fixture_containerd_kill9(struct node_fixture *f);
void fixture_containerd_restart(struct node_fixture *f); /* on return it answers CRI */
/* Processes of this containerd: itself, its shims, and all that runs in its containers, known to it or
 * forgotten. */
uint32_t fixture_process_count(struct node_fixture *f);
/* No sandbox gets an address, and so none is made, until the lock is given back. */
int fixture_lock_addresses(struct node_fixture *f);
void fixture_unlock_addresses(int lock);

/* A further name for an image, as if it had been pulled. */
void fixture_tag_image(struct node_fixture *f, const char *image, const char *name);

/* --- pods, straight through the CRI; a call that fails ends the test --- */

struct fixture_pod {
    const char *uid;        /* also the name, if there is none */
    const char *maybe_name; /* namespace "default" */
    uint32_t attempt;
    bool host_network;
};
struct str fixture_run_sandbox(struct node_fixture *f, struct fixture_pod pod); /* its id */

struct fixture_container {
    const char *maybe_name;     /* NULL: "main" */
    const char *maybe_image;    /* NULL: karve.test/tools:1 */
    const char *const *command; /* ends with NULL; NULL: the image's, which waits and is polite */
    uint32_t attempt;
    int64_t memory_bytes; /* limit; 0: none */
};
struct str fixture_create(struct node_fixture *f, struct str sandbox_id,
                          struct fixture_container container); /* its id */
void fixture_start(struct node_fixture *f, struct str container_id);
/* False: it could not; a comment says why, and the container has ended. A shim is given 100 ms to take a
 * connection, which on a busy machine is little ("dial unix ...: no such file" was seen). */
bool fixture_try_start(struct node_fixture *f, struct str container_id);
struct str fixture_run(struct node_fixture *f, struct str sandbox_id,
                       struct fixture_container container); /* created and started; its id */
void fixture_stop(struct node_fixture *f, struct str container_id, int64_t grace_s);
void fixture_remove(struct node_fixture *f, struct str container_id);
void fixture_stop_sandbox(struct node_fixture *f, struct str sandbox_id);
void fixture_remove_sandbox(struct node_fixture *f, struct str sandbox_id);
void fixture_remove_all(struct node_fixture *f);

/* What the runtime shows now, of everything and of one container (NULL: it knows none such). */
const struct runtime_listing *fixture_list(struct node_fixture *f);
const Cri__ContainerStatus *fixture_inspect(struct node_fixture *f, struct str container_id);

/* --- behind everybody's back --- */

pid_t fixture_pid(struct node_fixture *f,
                  struct str id); /* of a container's or sandbox's process */
pid_t fixture_shim(struct node_fixture *f, struct str id); /* the shim above it */
void fixture_kill(struct node_fixture *f, struct str id, int signal);
/* SIGSTOP, SIGCONT. A frozen shim is thawed before the next test. */
void fixture_freeze_shim(struct node_fixture *f, struct str id);
void fixture_thaw_shims(struct node_fixture *f);

/* --- the agent --- */

/* `karve agent` on this runtime, with folders of the fixture's; `maybe_more` are further arguments, ending
 * with NULL ("--run-pods": then with the folder of manifests too). Returns when it answers. */
void fixture_agent_start(struct node_fixture *f, const char *const *maybe_more);
void fixture_agent_stop(struct node_fixture *f);  /* SIGTERM; it must end well */
void fixture_agent_kill9(struct node_fixture *f); /* fine if it does not run */
/* GET from its local API. The status code, 0 if it did not answer; `body` is replaced. */
int fixture_agent_get(struct node_fixture *f, const char *path, struct buf *body);

/* A static pod: write, change or (text NULL) remove DIR/manifests/<name>.yaml, at once as `mv` does. */
void fixture_manifest(struct node_fixture *f, const char *name, const char *maybe_text);

/* --- waiting --- */

/* Until the condition holds. If it never does: the test fails, and shows what the runtime runs and the
 * end of the agent's log. */
#define WITHIN_LIMIT(f, condition)                                                                 \
    do {                                                                                           \
        int64_t until_ = fixture_deadline();                                                       \
        while (!(condition))                                                                       \
            fixture_wait((f), until_, #condition, __FILE__, __LINE__);                             \
    } while (0)

int64_t fixture_deadline(void);
void fixture_wait(struct node_fixture *f, int64_t until_ns, const char *condition, const char *file,
                  int line);
void fixture_show(struct node_fixture *f); /* as comments in the test's output */
