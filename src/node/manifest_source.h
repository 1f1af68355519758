/* node/manifest_source.h - static pods from a folder.
 *
 * Read at start, when inotify says that something changed, and every 20 s in case it did not. A file
 * that cannot be read or is wrong keeps the pod that it had given before, and the trouble is told
 * once. Names that start with a dot, and editors' leavings (~, .swp, .tmp), are passed over, and so
 * are folders. A folder that is gone takes its pods with it only when it is still gone 20 s later:
 * it may just be exchanged for another.
 */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "node/node_pod.h"

#define MANIFEST_FILES_MAX 1000
#define MANIFEST_REREAD_NS ((int64_t)20 * 1000000000)

struct manifest_source_options {
    const char *folder;
    struct str node_name;
    const struct clock *clock;
    struct log *log;
    int64_t reread_ns; /* 0: MANIFEST_REREAD_NS */
    /* The whole set, sorted by uid, each time that it differs from the last; at least once. From the
     * source's thread. The pods are borrowed for the call. */
    void (*pods)(void *ctx, const struct node_pod *const *pods, uint32_t count);
    void *ctx;
};

struct manifest_source;
/* ERR_NOT_FOUND: no such folder. The options' texts are copied. */
int manifest_source_start(struct manifest_source_options options, struct manifest_source **out,
                          struct err *err);
void manifest_source_stop(struct manifest_source *source); /* NULL is fine */
KV_AUTO_TYPE(manifest_source, manifest_source_stop)

/* --- one reading of the folder: what the thread does again and again --- */

struct manifest_entry { /* a file */
    char *path;
    uint64_t content;                 /* hash of what was read last, good or bad; 0: unreadable */
    uint64_t wrong;                   /* hash of what was told of that content; 0: it is fine */
    uint64_t clash;                   /* likewise of another pod of that name; 0: there is none */
    const struct node_pod *maybe_pod; /* the last one that was fine */
};

struct manifest_set {               /* zero-initialised is empty */
    struct manifest_entry *entries; /* sorted by path */
    const struct node_pod **pods;   /* sorted by uid; borrowed from the entries */
    uint32_t entry_count, count;
    uint32_t problem_count; /* entries that are wrong, or clash */
};

/* Read them all. What did not change since `previous` (NULL: there is none) is the same pod, the very
 * pointer. ERR_NOT_FOUND: there is no such folder. */
int manifest_set_read(const char *folder, struct str node_name, int64_t now_us,
                      const struct manifest_set *previous, struct log *log,
                      struct manifest_set *out, struct err *err);
void manifest_set_done(struct manifest_set *set);
