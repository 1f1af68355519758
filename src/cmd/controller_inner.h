/* cmd/controller_inner.h - the parts of `karve controller`. */
#pragma once

#include "api/manifest.h"
#include "base/log.h"
#include "base/thread.h"
#include "cloud/catalogue.h"
#include "cmd/command.h"
#include "cmd/live_view.h"
#include "control/control.h"
#include "net/http_server.h"
#include "sim/world.h"

#include <pthread.h>
#include <signal.h>

/* --- cmd/controller.c: what both ways of running it have --- */

struct controller {
    const struct invocation *inv;
    const struct clock *clock;
    bool (*ready)(void *ctx, struct err *why); /* may it be relied on? Asked from any thread */
    void *ctx;
    bool in_pod; /* probes and metrics are asked for from elsewhere */

    struct control_settings settings;
    struct log *log;
    struct metrics *metrics;
    struct http_server *metrics_server, *probe_server; /* one, the first, if they share a port */
};

int controller_complain(int code, const struct err *err);
int controller_read_settings(struct controller *c); /* these two: an enum exit_code */
int controller_serve(struct controller *c);         /* metrics and probes; with `metrics` set */
void controller_stop_serving(struct controller *c);
void controller_open_log(struct controller *c); /* on stderr */
/* Call it before any thread starts: only the main thread takes SIGINT and SIGTERM, when it asks for
 * them. */
sigset_t controller_block_signals(void);

int controller_run_embedded(const struct invocation *inv, const char *folder);
int controller_run_kube(const struct invocation *inv);

/* --- cmd/controller_provider.c --- */

/* A provider that is used by one thread at a time: its own calls, and whoever holds the mutex. */
struct locked_provider {
    struct cloud_provider port;
    const struct cloud_provider *inner;
    pthread_mutex_t *mutex;
};
void locked_provider_init(struct locked_provider *p, const struct cloud_provider *inner,
                          pthread_mutex_t *mutex);

/* --- cmd/controller_apply.c --- */

/* A folder of manifests, and the objects in the store that came from it. */
struct applied_folder {
    const char *path;
    const struct store *store;
    struct log *maybe_log;
    uint64_t fingerprint; /* of the files' names, sizes and times, as last applied */
};

struct apply_counts {
    uint32_t created, changed, removed, failed;
};

/* Has any file come, gone or changed since it was applied? */
bool applied_folder_changed(struct applied_folder *f);
/* Make the store as the files are: what is new is created, what differs is patched as `kubectl apply`
 * would, what was applied before and is in no file any more is deleted. Manifests are in `m` (for
 * their problems). With an invalid one nothing is done: ERR_INVALID. ERR_NOT_FOUND, ERR_UNAVAILABLE:
 * the folder cannot be read. */
int applied_folder_apply(struct applied_folder *f, struct manifests *m, struct apply_counts *out,
                         struct err *err);

/* --- cmd/controller_state.c --- */

#define STATE_BYTES_MAX ((size_t)1 << 30)
/* The whole store, in place of what was there: at every moment the file is whole. */
int state_save(struct embedded *e, const char *path, struct err *err);
/* A file that is not there is an empty store: *found is false then. */
int state_load(struct embedded *e, const char *path, bool *found, struct err *err);

/* --- cmd/controller_view.c --- */

struct live_facts {
    const struct record *record;
    const struct record_sample *now;
    const struct store *store;
    int64_t up_ns;
    const char *folder;
    const char *trouble; /* "" or what is wrong with the folder */
};
void controller_view_draw(struct live_view *view, const struct live_facts *facts);
