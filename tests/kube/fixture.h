/* tests/kube/fixture.h - a real Kubernetes control plane, and programs of ours that use it, for test
 * programs.
 *
 *     TEST(a_pending_pod_gets_a_node)
 *     {
 *         struct plane *p = plane();
 *         plane_crds(p);
 *         plane_apply(p, "apiVersion: karpenter.sh/v1\nkind: NodePool\n...");
 *         plane_karve(p, "controller", (const char *[]){ "controller", "--kubeconfig",
 *                                                        plane_path(p, "admin.kubeconfig"), NULL });
 *         PLANE_WAIT(p, plane_sh(p, NULL, "kubectl get node -o name | grep -q .") == 0);
 *     }
 *
 * One control plane for the program, started by the first test that asks and stopped when the program
 * ends; a test that finds no way to start it is skipped, with the reason, and fails in CI. What a test
 * leaves in it is removed before the next one. tests/kube/kube.sh does the work.
 */
#pragma once

#include "kube/proxy.h"
#include "support/test.h"

#include "base/arena.h"
#include "store/kube.h"

#include <sys/types.h>

#define PLANE_LIMIT_S 60 /* for anything to come true; a sanitizer on a loaded machine is slow */

struct plane {
    char dir[64];    /* scratch folder; gone at the end */
    char bin[200];   /* where kubectl and the servers are */
    char server[64]; /* "https://127.0.0.1:PORT" */
    uint16_t port;
    struct proxy *proxy; /* to the API server, without faults when a test begins */
    struct arena arena;  /* of the running test */
};

/* The program's control plane, with no nodes, no pods, none of our objects, no process of ours. Roles
 * and CRDs of earlier tests stay. */
struct plane *plane(void);
/* With further options of `kube.sh start`, ending with NULL: the same ones in every test of a
 * program. */
struct plane *plane_with(const char *const *options);

/* DIR/name: "admin.kubeconfig", "nobody.kubeconfig" and so on; see kube.sh. Lives as long as the test. */
const char *plane_path(struct plane *p, const char *name);
/* The kubeconfig of that name, but through the proxy. */
const char *plane_proxied(struct plane *p, const char *name);
/* A kubeconfig for a user with these groups, ending with NULL. */
const char *plane_user(struct plane *p, const char *user, const char *const *groups);

/* --- commands --- */

/* `sh -c` of the text, with `kubectl` as the administrator, and $KARVE, $DIR, $BIN; both outputs are
 * added to `maybe_out`. The exit status. */
KV_PRINTF(3, 4) int plane_sh(struct plane *p, struct buf *maybe_out, const char *format, ...);
/* The same; it must succeed. What it said, without white space at either end; of the arena. */
KV_PRINTF(2, 3) struct str plane_must(struct plane *p, const char *format, ...);
/* kubectl apply of the YAML or JSON text; it must succeed. */
void plane_apply(struct plane *p, const char *text);
/* Our CRDs are there, and served. */
void plane_crds(struct plane *p);

/* --- the servers --- */

void plane_apiserver_kill9(struct plane *p);
void plane_apiserver_restart(struct plane *p); /* on return it is ready */
void plane_compact(
    struct plane *p); /* watches from now known versions are ERR_GONE; restarts the API server */
/* SIGSTOP, SIGCONT to "etcd", "kube-apiserver" and so on. Thawed before the next test. */
void plane_freeze(struct plane *p, const char *server);
void plane_thaw(struct plane *p, const char *server);
void plane_empty(struct plane *p); /* also done before each test */

/* --- the store port on it --- */

struct plane_access { /* zero: not open */
    struct kubeconfig *config;
    struct kube *kube;
    const struct store *store;
};
/* As this kubeconfig says. `base` gives limits and time-outs; the rest of it is filled in. */
struct plane_access plane_open(struct plane *p, const char *kubeconfig, struct kube_options base);
void plane_close(struct plane_access *access);
#define AUTO_PLANE_ACCESS __attribute__((cleanup(plane_close))) struct plane_access

/* --- our programs --- */

/* Run `karve` with these arguments, ending with NULL, in the background. Both outputs are appended to
 * DIR/<name>.log. Killed before the next test, and with the test program. */
pid_t plane_karve(struct plane *p, const char *name, const char *const *args);
int plane_stop(struct plane *p, pid_t pid);   /* SIGTERM, and wait; as waitpid tells */
void plane_kill9(struct plane *p, pid_t pid); /* fine if it has ended */
bool plane_runs(struct plane *p, pid_t pid);
struct str plane_log(struct plane *p, const char *name); /* of the arena */

/* --- waiting --- */

/* Until the condition holds. If it never does: the test fails, and shows the ends of the logs. */
#define PLANE_WAIT(p, condition) PLANE_WAIT_S(p, PLANE_LIMIT_S, condition)
#define PLANE_WAIT_S(p, seconds, condition)                                                        \
    do {                                                                                           \
        int64_t until_ = plane_deadline(seconds);                                                  \
        while (!(condition))                                                                       \
            plane_wait((p), until_, #condition, __FILE__, __LINE__);                               \
    } while (0)

int64_t plane_deadline(int seconds);
void plane_wait(struct plane *p, int64_t until_ns, const char *condition, const char *file,
                int line);
void plane_show(struct plane *p); /* as comments in the test's output */
