/* store/embedded_delete.c - deletions: at once, after finalizers, or gracefully.
 *
 *     there --delete--> [finalizers, or a pod with grace left: deletionTimestamp is set] --> gone
 *
 * What holds an object back is decided as the API server decides it:
 *   - a pod that is bound and not finished has a grace period; it stays, marked, until a deletion
 *     with grace 0 (the kubelet's) ends it;
 *   - the propagation policy adds the finalizer that makes the garbage collector go first;
 *   - any finalizer keeps the object, marked with grace 0, until an update removes the last one.
 */
#include "store/embedded_impl.h"

#include "api/pod.h"
#include "api/policy.h"

int delete_preconditions(const struct entry *entry, const struct delete_options *opts,
                         struct err *err)
{
    const struct meta *meta = &entry->object->meta;

    if (opts->uid.len > 0 && !str_eq(opts->uid, meta->uid))
        return err_set(err, ERR_CONFLICT,
                       "%s \"%.*s\": the uid in the precondition (%.*s) does not match the uid in "
                       "record (%.*s)",
                       entry->ks->kind->plural, STR_ARG(entry->name), STR_ARG(opts->uid),
                       STR_ARG(meta->uid));
    if (opts->resource_version != 0 && opts->resource_version != meta->resource_version)
        return err_set(err, ERR_CONFLICT,
                       "%s \"%.*s\": the resourceVersion in the precondition (%llu) does not match "
                       "the one in record (%llu)",
                       entry->ks->kind->plural, STR_ARG(entry->name),
                       (unsigned long long)opts->resource_version,
                       (unsigned long long)meta->resource_version);
    return 0;
}

/* --- grace --- */

struct grace {
    bool pending;  /* it is being deleted already, and no sooner than it would be now */
    bool graceful; /* deletionTimestamp and grace period change */
    int64_t seconds;
    int64_t deleted_us; /* the deletionTimestamp */
};

/* A time as text has four digits for the year; 32 bits of seconds (136 years) keep within them. */
#define GRACE_S_MAX ((int64_t)UINT32_MAX)

static int64_t bounded_grace(int64_t seconds)
{
    if (seconds < 0) /* the server's reading: at once, but gracefully */
        return 1;
    return seconds < GRACE_S_MAX ? seconds : GRACE_S_MAX;
}

/* A second deletion may only shorten the grace of the first. */
static struct grace shorter_grace(const struct meta *meta, const struct delete_options *opts)
{
    int64_t left = meta->deletion_grace_s.set ? bounded_grace(meta->deletion_grace_s.value) : 0;
    if (left == 0)
        return (struct grace){ 0 };
    int64_t wanted = bounded_grace(opts->grace_s.value);
    if (!opts->grace_s.set || wanted >= left)
        return (struct grace){ .pending = true };
    return (struct grace){
        .graceful = true,
        .seconds = wanted,
        .deleted_us = meta->deleted_us - (left - wanted) * 1000000,
    };
}

static struct grace pod_grace(const struct pod *pod, const struct delete_options *opts,
                              int64_t now_us)
{
    if (pod_is_terminating(pod))
        return shorter_grace(&pod->object.meta, opts);
    int64_t seconds =
        opts->grace_s.set ? opts->grace_s.value : pod->spec->termination_grace_s.value;
    seconds = bounded_grace(seconds);
    if (!pod_is_scheduled(pod) || pod_is_terminal(pod))
        seconds = 0;
    return (struct grace){
        .graceful = true,
        .seconds = seconds,
        .deleted_us = now_us + seconds * 1000000,
    };
}

/* --- finalizers --- */

struct finalizers {
    VEC(struct str) items;
    bool changed;
};

/* Those of the object, with the garbage collector's set as the policy says. */
static struct finalizers finalizers_for(const struct object *object,
                                        const struct delete_options *opts)
{
    const char *wanted = opts->propagation == PROPAGATE_ORPHAN       ? FINALIZER_ORPHAN
                         : opts->propagation == PROPAGATE_FOREGROUND ? FINALIZER_FOREGROUND
                                                                     : "";
    struct finalizers out = { 0 };
    bool had = false;

    for (uint32_t i = 0; i < object->meta.finalizers.count; i++) {
        struct str name = object->meta.finalizers.items[i];
        if (str_eqz(name, wanted))
            had = true;
        else if (str_eqz(name, FINALIZER_ORPHAN) || str_eqz(name, FINALIZER_FOREGROUND))
            out.changed = true;
        else
            vec_push(&out.items, name);
    }
    if (wanted[0])
        vec_push(&out.items, str_of(wanted));
    out.changed |= wanted[0] && !had;
    return out;
}

/* --- marking --- */

static void mark(struct embedded *e, struct entry *entry, struct grace grace,
                 const struct finalizers *finalizers)
{
    const struct meta *meta = &entry->object->meta;
    int64_t now_us = clock_wall_us(e->clock);
    struct edit edit;

    edit_begin(&edit, entry);
    if (!grace.graceful) /* marked for its finalizers alone: due now, or since it was */
        grace.deleted_us =
            meta->deleted_us != 0 && meta->deleted_us < now_us ? meta->deleted_us : now_us;
    json_set_time(&edit.b, edit.meta, "deletionTimestamp", grace.deleted_us);
    json_set_i64(&edit.b, edit.meta, "deletionGracePeriodSeconds", grace.seconds);
    if (meta->deleted_us == 0 && meta->generation > 0)
        json_set_i64(&edit.b, edit.meta, "generation", meta->generation + 1);
    if (finalizers->changed)
        edit_set_strs(&edit, edit.meta, "finalizers", finalizers->items.items,
                      finalizers->items.count);
    edit_write(e, entry, &edit);
}

/* Its contents go first; the garbage collector sees to it, and then to the namespace. */
static int namespace_remove(struct embedded *e, struct entry *entry, struct err *err)
{
    static const char *const lasting[] = { "default", "kube-system", "kube-public" };
    struct edit edit;

    for (size_t i = 0; i < KV_COUNT_OF(lasting); i++) {
        if (str_eqz(entry->name, lasting[i]))
            return err_set(err, ERR_DENIED,
                           "namespaces \"%s\" is forbidden: this namespace may "
                           "not be deleted",
                           lasting[i]);
    }
    if (entry->object->meta.deleted_us == 0) {
        edit_begin(&edit, entry);
        json_set_time(&edit.b, edit.meta, "deletionTimestamp", clock_wall_us(e->clock));
        json_set_i64(&edit.b, edit.meta, "deletionGracePeriodSeconds", 0);
        json_set_i64(&edit.b, edit.meta, "generation", entry->object->meta.generation + 1);
        json_set_str(&edit.b, json_mut_object(&edit.b, edit.root, STR("status")), "phase",
                     STR("Terminating"));
        edit_write(e, entry, &edit);
    }
    gc_look_at(e, entry->object->meta.uid);
    return 0;
}

int entry_remove(struct embedded *e, struct entry *entry, const struct delete_options *opts,
                 struct err *err)
{
    struct grace grace = { 0 };

    if (delete_preconditions(entry, opts, err) < 0)
        return -1;
    if (entry->ks->kind == &namespace_kind)
        return namespace_remove(e, entry, err);
    if (entry->ks->kind == &pod_kind)
        grace = pod_grace(pod_of(entry->object), opts, clock_wall_us(e->clock));
    if (grace.pending)
        return 0;

    struct finalizers finalizers = finalizers_for(entry->object, opts);
    bool held = finalizers.items.count > 0;
    if (held || grace.graceful)
        mark(e, entry, grace, &finalizers);
    vec_done(&finalizers.items);
    if (!held && grace.seconds == 0)
        commit_remove(e, entry);
    return 0;
}
