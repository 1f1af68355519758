/* store/kube_testing.h - a kube store in front of a server that does as it is told, and a clock on
 * which waiting takes no time. */
#pragma once

#include "store/kube.h"
#include "store/kube_server_testing.h"
#include "store/testing.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

/* Real time, except that waits are skipped: each is over at once, and time is as late as it should
 * be. */
static _Atomic int64_t skipped_ns, last_wait_ns;

static int64_t skip_wall_us(void *ctx KV_UNUSED)
{
    return clock_wall_us(clock_real()) + atomic_load(&skipped_ns) / 1000;
}

static int64_t skip_mono_ns(void *ctx KV_UNUSED)
{
    return clock_mono_ns(clock_real()) + atomic_load(&skipped_ns);
}

static void skip_wait(void *ctx, pthread_cond_t *cond KV_UNUSED, pthread_mutex_t *mutex KV_UNUSED,
                      int64_t until_ns)
{
    int64_t ns = until_ns - skip_mono_ns(ctx);
    if (ns <= 0)
        return;
    atomic_store(&last_wait_ns, ns);
    atomic_fetch_add(&skipped_ns, ns);
}

static const struct clock skipping_clock = { skip_wall_us, skip_mono_ns, skip_wait, NULL };

struct rig {
    char folder[64];
    struct kube_server *server;
    struct kubeconfig *access;
    struct object_pool *pool;
    struct metrics *metrics;
    struct kube *kube;
    const struct store *store;
    int log_fd;
    struct log *log;
};

static inline void write_text(const char *folder, const char *name, const char *text)
{
    AUTO_BUF path = { 0 };
    buf_addf(&path, "%s/%s", folder, name);
    FILE *f = fopen(path.p, "we");
    EXPECT_TRUE(f != NULL);
    fputs(text, f);
    EXPECT_EQ(fclose(f), 0);
}

/* `options` as the test wants them; the rest is filled in. `maybe_cluster` is how a kubeconfig names
 * the server ("server: URL"); NULL: a new one. */
static inline struct rig *rig_at(struct kube_options options, const char *maybe_cluster)
{
    struct rig *r = kv_calloc(1, sizeof *r);
    AUTO_BUF cluster = { 0 }, config = { 0 }, path = { 0 };
    struct err err = { 0 };

    snprintf(r->folder, sizeof r->folder, "/tmp/karve-kube-XXXXXX");
    EXPECT_TRUE(mkdtemp(r->folder) != NULL);
    if (!maybe_cluster) {
        r->server = kube_server_new();
        buf_addf(&cluster, "server: 'http://127.0.0.1:%u'", kube_server_port(r->server));
        maybe_cluster = cluster.p;
    }
    r->log_fd = memfd_create("log", MFD_CLOEXEC);
    r->log = log_new((struct log_options){
        .clock = clock_real(), .fd = r->log_fd, .format = LOG_TEXT, .repeat_window_ns = -1 });
    write_text(r->folder, "token", "first");
    buf_addf(&config,
             "{apiVersion: v1, kind: Config, current-context: c, "
             "contexts: [{name: c, context: {cluster: c, user: u}}], "
             "clusters: [{name: c, cluster: {%s}}], "
             "users: [{name: u, user: {tokenFile: %s/token}}]}",
             maybe_cluster, r->folder);
    write_text(r->folder, "config", config.p);
    buf_addf(&path, "%s/config", r->folder);
    struct kubeconfig_options access = { .path = path.p,
                                         .clock = clock_real(),
                                         .credentials_over_http = true };
    EXPECT_OK(kubeconfig_load(access, &r->access, &err), err);
    r->pool = object_pool_new();
    r->metrics = metrics_new(clock_real());
    options.access = r->access;
    options.pool = r->pool;
    options.clock = options.clock ? options.clock : &skipping_clock;
    options.maybe_metrics = r->metrics;
    options.maybe_log = r->log;
    EXPECT_OK(kube_new(options, &r->kube, &err), err);
    r->store = kube_store(r->kube);
    return r;
}

static inline struct rig *rig_new(void)
{
    return rig_at((struct kube_options){ 0 }, NULL);
}

static inline void rig_free(struct rig *r)
{
    AUTO_BUF command = { 0 };

    kube_free(r->kube);
    metrics_free(r->metrics);
    kube_server_free(r->server);
    kubeconfig_free(r->access);
    object_pool_free(r->pool);
    log_free(r->log);
    close(r->log_fd);
    buf_addf(&command, "rm -rf %s", r->folder);
    EXPECT_EQ(system(command.p), 0);
    free(r);
}
KV_AUTO_TYPE(rig, rig_free)

/* How often the log says that. */
static inline int rig_log_count(struct rig *r, const char *words)
{
    static char text[1 << 16];
    ssize_t n = pread(r->log_fd, text, sizeof text - 1, 0);
    int count = 0;

    text[n > 0 ? n : 0] = '\0';
    for (const char *at = text; (at = strstr(at, words)) != NULL; at++)
        count++;
    return count;
}
