/* sim/workloads_impl.h - what the files of the workload controllers share. For workloads*.c only.
 *
 * A *maker* is a workload object with what we remember of it. It is synced when it, or something that
 * it made, has changed, but never before our own last writes for it have come back: so a late event
 * cannot make anybody create or delete twice.
 */
#pragma once

#include "api/workloads.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"
#include "sim/workloads.h"
#include "store/informer.h"

#define SECOND_NS ((int64_t)1000000000)
#define MAKER_RETRY_NS (10 * SECOND_NS) /* after a write that was refused */
#define LABEL_TEMPLATE_HASH STR("pod-template-hash")
#define LABEL_REVISION_HASH STR("controller-revision-hash")
#define TEMPLATE_HASH_LEN 10

enum watched {
    WATCH_DEPLOYMENTS,
    WATCH_REPLICA_SETS,
    WATCH_STATEFUL_SETS,
    WATCH_DAEMON_SETS,
    WATCH_JOBS,
    WATCH_CRON_JOBS,
    WATCH_PODS,
    WATCH_NODES,
    WATCH_COUNT
};

/* --- workloads_mould.c: the text of what is made from a template, with holes for what differs --- */

enum hole { HOLE_NAME, HOLE_DETAIL, HOLE_END }; /* detail: a node, an ordinal, a time */

struct mould {
    struct buf text;
    struct mould_piece { /* up to `end` in `text`, then the hole */
        size_t end;
        enum hole hole;
    } * pieces;
    size_t piece_count;
};
void mould_done(struct mould *mould);
void mould_fill(const struct mould *mould, struct str name, struct str detail, struct buf *out);

/* A mould that is being made: a tree in which two words, found nowhere else in it, stand for the
 * holes. */
struct draft {
    struct json_build b;
    json_mut *root, *meta, *labels, *spec;
    struct str name, detail; /* what stands for the holes */
    char words[2][40];
};
/* `source` is the maker as text; the template is `maybe_template` (NULL: nothing to start from). */
void draft_init(struct draft *d, struct str source, const struct object *maker,
                const json_val *maybe_template);
void draft_done(struct draft *d);
void draft_cast(struct draft *d, struct mould *out);
/* The hash of a template as a word; what `but_label` says (or "") does not count. */
void template_hash(const json_val *template, struct str but_label, char out[TEMPLATE_HASH_LEN + 1]);

/* --- makers --- */

struct daemon_node {                 /* what a DaemonSet has to do with one node */
    VEC(const struct object *) pods; /* references */
    bool dirty;
    bool desired, scheduled, misscheduled, ready, available, updated;
};

struct maker {
    const struct object *maybe_object; /* NULL: it is gone, and so is this when it is met again */
    enum watched watched;
    bool dirty;                  /* in workloads.dirty */
    int64_t due_ns;              /* INT64_MAX: nothing to wait for */
    uint64_t wrote[WATCH_COUNT]; /* versions of our last writes for it */
    struct rng rng;              /* of names */

    /* Of the generation `read`, from its text. */
    int64_t read;
    char hash[TEMPLATE_HASH_LEN + 1];
    struct mould mould;
    VEC(struct mould) claims; /* of a StatefulSet's volumeClaimTemplates */
    int64_t history, failed_history, partition;
    bool on_delete;

    /* DaemonSets */
    struct str_table nodes; /* name to struct daemon_node */
    VEC(struct daemon_node *) dirty_nodes;
    VEC(struct str) dirty_names; /* keys of `nodes` */
    bool all_nodes;              /* look at every node */

    /* Jobs: counted when a pod ends, for it may be gone later */
    int64_t succeeded, failed;
    int64_t listed[2]; /* that had failed or succeeded when we started */
    int64_t fails_in_row, last_fail_ns;
    struct str_table counted;   /* uids */
    struct str_table completed; /* indexes, as text */
};

struct workloads {
    const struct store *store;
    const struct clock *clock;
    uint64_t seed;
    struct informer *informers[WATCH_COUNT];
    uint32_t by_controller[WATCH_COUNT]; /* an index of what is made */
    struct str_table makers;             /* by uid */
    VEC(struct maker *) dirty;
    struct str_table going; /* uids of pods that we deleted and have not seen going */
    struct arena scratch;   /* of one sync */
};

/* --- workloads.c --- */

void maker_mark(struct workloads *w, struct maker *m);
void maker_due(struct maker *m, int64_t at_ns); /* no later than that */
/* Objects that it controls. */
void made_list(struct workloads *w, const struct maker *m, enum watched what,
               struct object_list *out);
/* Both say nothing when it fails: the maker comes again later. False: it failed. */
bool maker_create(struct workloads *w, struct maker *m, enum watched what, struct str json,
                  bool *maybe_exists);
bool maker_patch(struct workloads *w, struct maker *m, const struct object *object, bool status,
                 struct str patch);
void maker_remove(struct workloads *w, struct maker *m, const struct object *object);
void pod_remove(struct workloads *w, struct maker *m, const struct pod *pod);
/* Status patch of the maker itself, {"status":{...}}. */
void maker_status(struct workloads *w, struct maker *m, struct str patch);
/* Read its text anew if its generation is not the one that was read. False: it is gone. */
bool maker_read(struct workloads *w, struct maker *m);
/* A pod that counts: has not ended and is not about to. */
bool pod_is_active(const struct workloads *w, const struct pod *pod);
/* Ready for as long as it takes; otherwise the maker comes again when it will be. */
bool pod_is_available(struct workloads *w, struct maker *m, const struct pod *pod,
                      int64_t min_ready_s);

/* --- the kinds. `x_read` sets what follows from the text; `x_sync` moves it along --- */

void replica_set_read(struct workloads *w, struct maker *m, struct str text, const json_val *root);
void replica_set_sync(struct workloads *w, struct maker *m);
void deployment_read(struct workloads *w, struct maker *m, struct str text, const json_val *root);
void deployment_sync(struct workloads *w, struct maker *m);
void stateful_set_read(struct workloads *w, struct maker *m, struct str text, const json_val *root);
void stateful_set_sync(struct workloads *w, struct maker *m);
void daemon_set_read(struct workloads *w, struct maker *m, struct str text, const json_val *root);
void daemon_set_sync(struct workloads *w, struct maker *m);
void daemon_set_pod_changed(struct maker *m, const struct pod *maybe_old,
                            const struct pod *maybe_new);
void daemon_set_node_changed(struct maker *m, struct str name);
void daemon_set_done(struct maker *m);
void job_read(struct workloads *w, struct maker *m, struct str text, const json_val *root);
void job_sync(struct workloads *w, struct maker *m);
void job_pod_changed(struct workloads *w, struct maker *m, const struct pod *pod);
void cron_job_read(struct workloads *w, struct maker *m, struct str text, const json_val *root);
void cron_job_sync(struct workloads *w, struct maker *m);
