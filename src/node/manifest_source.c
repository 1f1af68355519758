/* The thread that keeps a folder's static pods.
 *
 * Watch, read, tell if the set differs, wait: for inotify, for the time of the next reading, or for
 * the end. The watch is set anew before each reading, which changes nothing if the folder is still
 * the one that is watched, and finds the new one if it was exchanged; what happens while we read is
 * therefore seen after it.
 *
 * Inotify says only that something happened, and what is read is the folder as a whole. Editors
 * make several steps of one change (the old file moved away, a new one created, filled, the old one
 * removed), each of which would be a pod stopped or half a manifest: so the folder must be quiet
 * for a moment before it is read. */
#include "node/manifest_source.h"

#include "base/thread.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUIET_MS 100       /* nothing happened for so long: the change is complete */
#define QUIET_TRIES_MAX 30 /* somebody writes there all the time: read all the same */
#define GONE_POLL_NS ((int64_t)1000000000) /* how often to look for a folder that is gone */

#define WATCHED                                                                                    \
    (IN_CREATE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO |            \
     IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR)

struct manifest_source {
    struct manifest_source_options options; /* its texts are ours */
    pthread_t thread;
    int inotify_fd, stop_fd;
    int watch; /* -1: none */
    /* The rest is the thread's own. */
    struct manifest_set set;
    bool is_told;          /* the set, at least once */
    int64_t gone_since_ns; /* of the folder; -1: it is there */
    struct err trouble;    /* the last one of the folder itself */
};

/* --- reading --- */

static bool same_pods(const struct manifest_set *a, const struct manifest_set *b)
{
    return a->count == b->count &&
           (a->count == 0 || memcmp(a->pods, b->pods, a->count * sizeof *a->pods) == 0);
}

static void replace_set(struct manifest_source *source, struct manifest_set next)
{
    const struct manifest_source_options *o = &source->options;
    struct manifest_set before = source->set;
    source->set = next;
    if (!source->is_told || !same_pods(&before, &next)) {
        source->is_told = true;
        log_info(o->log, "static pods", LOG_Z("folder", o->folder), LOG_INT("pods", next.count),
                 LOG_INT("problems", next.problem_count));
        o->pods(o->ctx, next.pods, next.count);
    }
    manifest_set_done(&before);
}

/* A folder that cannot be read keeps its pods; one that is gone does for a while. */
static void on_folder_trouble(struct manifest_source *source, const struct err *why)
{
    const struct manifest_source_options *o = &source->options;
    int64_t now_ns = clock_mono_ns(o->clock);
    if (source->trouble.kind != why->kind || strcmp(source->trouble.text, why->text) != 0)
        log_warn(o->log, "manifest folder cannot be read", LOG_Z("folder", o->folder),
                 LOG_ERR(why));
    source->trouble = *why;
    if (why->kind != ERR_NOT_FOUND) {
        source->gone_since_ns = -1;
        return;
    }
    if (source->gone_since_ns < 0)
        source->gone_since_ns = now_ns;
    if (now_ns - source->gone_since_ns >= o->reread_ns)
        replace_set(source, (struct manifest_set){ 0 });
}

static void read_folder(struct manifest_source *source)
{
    const struct manifest_source_options *o = &source->options;
    struct manifest_set next;
    struct err why;
    if (manifest_set_read(o->folder, o->node_name, clock_wall_us(o->clock), &source->set, o->log,
                          &next, &why) < 0) {
        on_folder_trouble(source, &why);
        return;
    }
    source->gone_since_ns = -1;
    source->trouble.kind = ERR_NONE;
    replace_set(source, next);
}

/* --- waiting --- */

static void watch_folder(struct manifest_source *source)
{
    int watch = inotify_add_watch(source->inotify_fd, source->options.folder, WATCHED);
    if (watch != source->watch && source->watch >= 0) /* another folder has its place */
        inotify_rm_watch(source->inotify_fd, source->watch);
    source->watch = watch; /* -1 when there is none, or no more to be had: then time does it */
}

enum wake { WAKE_TIME, WAKE_CHANGE, WAKE_STOP };

static enum wake wait_ms(struct manifest_source *source, int timeout_ms)
{
    struct pollfd fds[] = { { .fd = source->stop_fd, .events = POLLIN },
                            { .fd = source->inotify_fd, .events = POLLIN } };
    char events[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    int n = poll(fds, KV_COUNT_OF(fds), timeout_ms);
    if (n > 0 && fds[0].revents)
        return WAKE_STOP;
    if (n <= 0)
        return WAKE_TIME;
    while (read(source->inotify_fd, events, sizeof events) > 0) /* what they say does not matter */
        continue;
    return WAKE_CHANGE;
}

static bool wait_for_change(struct manifest_source *source)
{
    int64_t wait_ns = source->options.reread_ns;
    if (source->gone_since_ns >= 0 && wait_ns > GONE_POLL_NS)
        wait_ns = GONE_POLL_NS;
    int64_t timeout_ms = wait_ns / 1000000 + 1;
    enum wake wake = wait_ms(source, timeout_ms < INT_MAX ? (int)timeout_ms : INT_MAX);
    for (int i = 0; wake == WAKE_CHANGE && i < QUIET_TRIES_MAX; i++)
        wake = wait_ms(source, QUIET_MS);
    return wake != WAKE_STOP;
}

static void *source_main(void *arg)
{
    struct manifest_source *source = arg;
    do {
        watch_folder(source);
        read_folder(source);
    } while (wait_for_change(source));
    return NULL;
}

/* --- life --- */

static void source_free(struct manifest_source *source)
{
    if (source->inotify_fd >= 0)
        close(source->inotify_fd);
    if (source->stop_fd >= 0)
        close(source->stop_fd);
    manifest_set_done(&source->set);
    free((char *)source->options.folder);
    free((char *)source->options.node_name.p);
    free(source);
}

static int source_open(struct manifest_source *source, struct err *err)
{
    const char *folder = source->options.folder;
    struct stat st;
    if (stat(folder, &st) < 0)
        return err_set(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_UNAVAILABLE, "%s: %s", folder,
                       strerror(errno));
    if (!S_ISDIR(st.st_mode))
        return err_set(err, ERR_NOT_FOUND, "%s: is not a folder", folder);
    source->inotify_fd = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    source->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (source->inotify_fd < 0 || source->stop_fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "%s: no way to watch it: %s", folder, strerror(errno));
    return thread_start(&source->thread, "manifests", source_main, source, err);
}

int manifest_source_start(struct manifest_source_options options, struct manifest_source **out,
                          struct err *err)
{
    struct manifest_source *source = kv_calloc(1, sizeof *source);
    source->options = options;
    source->options.folder = kv_strdup(options.folder);
    source->options.node_name.p = str_dup(options.node_name);
    if (source->options.reread_ns <= 0)
        source->options.reread_ns = MANIFEST_REREAD_NS;
    source->inotify_fd = source->stop_fd = source->watch = -1;
    source->gone_since_ns = -1;
    if (source_open(source, err) < 0) {
        source_free(source);
        return -1;
    }
    *out = source;
    return 0;
}

void manifest_source_stop(struct manifest_source *source)
{
    if (!source)
        return;
    eventfd_write(source->stop_fd, 1);
    pthread_join(source->thread, NULL);
    source_free(source);
}
