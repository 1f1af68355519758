/* Leader election by a Lease.
 *
 *     standing by --the Lease is free, or unchanged for its duration: written--> leading
 *     leading --renewed every retry period--> leading
 *     leading --not renewed for the renew deadline, or somebody else holds it--> over
 *     either --leader_release--> over
 *
 * Why no two act at once (R: renew deadline, L: lease duration, R < L):
 *   1. Every write of the Lease names the version that it was decided on, so of two writers who read
 *      the same state one fails; what is read stale cannot be written.
 *   2. A holder acts until R after the *start* of its last write that it knows to have succeeded. The
 *      write took effect after that start.
 *   3. Everybody else waits until L after the *end* of the read that first showed that version. The
 *      read ended after the write took effect. So their L begins no earlier than its R, and ends later.
 *   4. A version says that somebody wrote: a renewal always changes something (renewed_at), even if the
 *      wall clock stands still or was set back.
 * Times are differences on one machine's clock; renewTime and acquireTime are for people to read.
 *
 * The clock of 2 and 3 is the monotonic one, which nobody sets. It has one gap: CLOCK_MONOTONIC does
 * not count the time that the machine was suspended (and a paused virtual machine may not count it by any
 * clock of its own until it is told the time again). A holder that wakes up would believe that R is not
 * over. The wall clock does jump then, so the fence asks both clocks and believes the one that says
 * "over". A wall clock that was merely set forward closes the fence for no more than a retry period:
 * the next renewal opens it. It never makes the holder lose, and being set back changes nothing.
 *
 * A call that waits long for its answer cannot be taken back; see leader.h for what bounds it.
 */
#include "control/leader_inner.h"

#include "api/kinds.h"
#include "api/policy.h"
#include "base/rng.h"
#include "base/thread.h"
#include "codec/duration.h"

#include <stdatomic.h>

#define JITTER 1.2 /* a candidate waits 1 to 1 + JITTER retry periods between two looks */

enum state { STANDING_BY, LEADING, OVER };

struct leader {
    struct leader_options options;
    char *namespace_, *name, *identity;
    struct log *log;
    struct metric *status; /* NULL: nobody measures */
    struct leader_fence *fences;

    /* Of whoever steps. */
    enum state state;
    struct rng rng;
    int64_t due_ns; /* of the next look at the Lease */
    /* The Lease as it was seen or written last; version 0: not yet. */
    uint64_t version;
    char *holder;        /* "": nobody */
    int64_t seen_ns;     /* when that version was new to us */
    int64_t duration_ns; /* and how long its holder may be silent */
    int64_t acquired_us, renewed_us, transitions;

    /* The fence: open before both. May be read by anybody. */
    atomic_int_fast64_t until_ns;
    atomic_int_fast64_t until_wall_us;

    pthread_mutex_t lock; /* of `stopping` */
    pthread_cond_t wake;
    bool stopping, has_thread;
    pthread_t thread;
};

static int64_t now_ns(const struct leader *l)
{
    return clock_mono_ns(l->options.clock);
}

/* --- the fence --- */

bool leader_holds(struct leader *l)
{
    return now_ns(l) < atomic_load(&l->until_ns) &&
           clock_wall_us(l->options.clock) < atomic_load(&l->until_wall_us);
}

struct moment { /* by both clocks */
    int64_t mono_ns, wall_us;
};

static struct moment moment_now(const struct leader *l)
{
    return (struct moment){ now_ns(l), clock_wall_us(l->options.clock) };
}

static void fence_open(struct leader *l, struct moment since)
{
    atomic_store(&l->until_wall_us, since.wall_us + l->options.renew_ns / 1000);
    atomic_store(&l->until_ns, since.mono_ns + l->options.renew_ns);
}

static void fence_close(struct leader *l)
{
    atomic_store(&l->until_ns, INT64_MIN);
}

/* --- the Lease as it is --- */

static bool is_ours(const struct leader *l)
{
    return l->version && strcmp(l->holder, l->identity) == 0;
}

/* Somebody else has it, and has not been silent for long enough. */
static bool is_theirs(const struct leader *l)
{
    return l->version && l->holder[0] && !is_ours(l) && now_ns(l) < l->seen_ns + l->duration_ns;
}

static void see(struct leader *l, const struct object *object)
{
    const struct lease_spec *spec = &lease_of(object)->spec;
    struct str holder = spec->holder_identity.p ? spec->holder_identity : STR("");

    if (l->version == object->meta.resource_version)
        return;
    bool changed_hands = !str_eqz(holder, l->holder);
    l->version = object->meta.resource_version;
    l->seen_ns = now_ns(l);
    bool said = spec->duration_s.value > 0 && spec->duration_s.value <= INT32_MAX;
    l->duration_ns = said ? spec->duration_s.value * DURATION_SECOND : l->options.lease_ns;
    l->acquired_us = spec->acquire_us;
    l->renewed_us = spec->renew_us;
    l->transitions = spec->transitions.set ? spec->transitions.value : 0;
    free(l->holder);
    l->holder = str_dup(holder);
    if (changed_hands && holder.len && !is_ours(l))
        log_info(l->log, "another replica leads", LOG_STR("leader", holder),
                 LOG_Z("lease", l->name));
}

/* --- the Lease as it should be --- */

struct wish {
    const char *holder;
    int64_t duration_s, acquired_us, renewed_us, transitions;
};

static void set_time(struct json_build *b, json_mut *spec, const char *key, int64_t us)
{
    char text[TIME_TEXT_MAX];
    size_t len = time_format_micro(us, text);
    json_set_str(b, spec, key, (struct str){ text, len });
}

static void wish_text(const struct leader *l, const struct wish *w, struct buf *out)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *spec = json_mut_object(&b, root, STR("spec"));
    json_set_str(&b, root, "apiVersion", STR("coordination.k8s.io/v1"));
    json_set_str(&b, root, "kind", STR("Lease"));
    json_set_str(&b, json_mut_object(&b, root, STR("metadata")), "name", str_of(l->name));
    json_set_str(&b, spec, "holderIdentity", str_of(w->holder));
    json_set_i64(&b, spec, "leaseDurationSeconds", w->duration_s);
    set_time(&b, spec, "acquireTime", w->acquired_us);
    set_time(&b, spec, "renewTime", w->renewed_us);
    json_set_i64(&b, spec, "leaseTransitions", w->transitions);
    json_write_mut(root, out);
}

/* Never the same twice running: a Lease that did not change looks abandoned. */
static int64_t renewed_at(const struct leader *l)
{
    int64_t wall_us = clock_wall_us(l->options.clock);
    return wall_us == l->renewed_us ? wall_us + 1 : wall_us;
}

static struct wish wish_ours(const struct leader *l)
{
    struct wish w = {
        .holder = l->identity,
        .duration_s = (l->options.lease_ns + DURATION_SECOND - 1) / DURATION_SECOND,
        .renewed_us = renewed_at(l),
        .acquired_us = l->acquired_us,
        .transitions = l->transitions,
    };
    if (!is_ours(l)) {
        w.acquired_us = w.renewed_us;
        w.transitions = !l->version ? 0 : l->transitions < INT32_MAX ? l->transitions + 1 : 0;
    }
    return w;
}

static struct object_ref lease_ref(const struct leader *l)
{
    return (struct object_ref){ &lease_kind, str_of(l->namespace_), str_of(l->name) };
}

/* Version 0: it is not there yet. */
static int write_lease(struct leader *l, const struct wish *w, struct err *err)
{
    AUTO_BUF text = { 0 };
    AUTO_OBJECT written = NULL;
    struct patch_options options = { .type = PATCH_MERGE, .resource_version = l->version };

    wish_text(l, w, &text);
    int rc = l->version ? store_patch(l->options.store, lease_ref(l), options, buf_str(&text),
                                      &written, err)
                        : store_create(l->options.store, &lease_kind, str_of(l->namespace_),
                                       buf_str(&text), &written, err);
    if (rc == 0)
        see(l, written);
    return rc;
}

/* --- one try --- */

enum answer { OURS, THEIRS, FAILED };

static int read_lease(struct leader *l, struct err *err)
{
    AUTO_OBJECT object = NULL;
    if (store_get(l->options.store, lease_ref(l), &object, err) == 0) {
        see(l, object);
        return 0;
    }
    if (err->kind != ERR_NOT_FOUND)
        return -1;
    /* Somebody deleted it under its holder, who may act until it notices. */
    if (!is_theirs(l))
        l->version = 0;
    return 0;
}

/* A holder's version is nearly always the current one, and the write alone tells: the first time round
 * it does not read. An answer that was lost, or somebody's write, shows as a conflict. */
static enum answer try_once(struct leader *l, struct moment *began, struct err *err)
{
    for (bool known = l->state == LEADING && l->version;; known = false) {
        if (!known && read_lease(l, err) < 0)
            return FAILED;
        if (is_theirs(l) || (l->state == LEADING && l->version && !is_ours(l)))
            return THEIRS;
        *began = moment_now(l);
        struct wish w = wish_ours(l);
        if (write_lease(l, &w, err) == 0)
            return OURS;
        bool moved = err->kind == ERR_CONFLICT || err->kind == ERR_NOT_FOUND;
        if (!known || !moved)
            return FAILED;
    }
}

/* --- states --- */

static void gain(struct leader *l)
{
    l->state = LEADING;
    log_info(l->log, "leading", LOG_Z("identity", l->identity), LOG_Z("lease", l->name),
             LOG_INT("transitions", l->transitions));
    if (l->status)
        metric_set(l->status, 1);
    if (l->options.gained)
        l->options.gained(l->options.ctx);
}

static void end(struct leader *l)
{
    fence_close(l);
    l->state = OVER;
    if (l->status)
        metric_set(l->status, 0);
}

static void lose(struct leader *l, const char *why)
{
    end(l);
    log_error(l->log, "no longer leading", LOG_Z("reason", why), LOG_Z("identity", l->identity),
              LOG_Z("lease", l->name), LOG_Z("holder", l->holder));
    if (l->options.lost)
        l->options.lost(l->options.ctx);
}

static bool is_late(const struct leader *l)
{
    return l->state == LEADING && now_ns(l) >= atomic_load(&l->until_ns);
}

/* An answer that took longer than the renew deadline gives nothing: the Lease is ours, and the next try
 * finds that out. */
static void take_over(struct leader *l, struct moment began)
{
    if (now_ns(l) >= began.mono_ns + l->options.renew_ns) {
        l->due_ns = now_ns(l);
        return;
    }
    fence_open(l, began);
    l->due_ns = began.mono_ns + l->options.retry_ns;
    if (l->state == STANDING_BY)
        gain(l);
}

static void note_failure(struct leader *l, const struct err *err)
{
    if (l->state == LEADING)
        log_warn(l->log, "the lease was not renewed, trying again", LOG_Z("lease", l->name),
                 LOG_DURATION("left", atomic_load(&l->until_ns) - now_ns(l)), LOG_ERR(err));
    else if (err->kind == ERR_CONFLICT || err->kind == ERR_EXISTS)
        log_debug(l->log, "another replica was faster", LOG_Z("lease", l->name), LOG_ERR(err));
    else
        log_warn(l->log, "the lease cannot be had, trying again", LOG_Z("lease", l->name),
                 LOG_ERR(err));
}

static int64_t retry_at(struct leader *l)
{
    int64_t wait_ns = l->options.retry_ns;
    if (l->state == LEADING)
        return now_ns(l) + wait_ns;
    wait_ns += (int64_t)(JITTER * (double)wait_ns * rng_unit(&l->rng));
    int64_t at_ns = now_ns(l) + wait_ns, free_ns = l->seen_ns + l->duration_ns;
    return is_theirs(l) && free_ns < at_ns ? free_ns : at_ns;
}

static void try_lease(struct leader *l)
{
    struct err err = { 0 };
    struct moment began = { 0 };

    switch (try_once(l, &began, &err)) {
    case OURS:
        take_over(l, began);
        break;
    case THEIRS:
        l->due_ns = retry_at(l);
        if (l->state == LEADING)
            lose(l, "another replica holds the lease");
        break;
    case FAILED:
        note_failure(l, &err);
        l->due_ns = retry_at(l);
        break;
    }
}

int64_t leader_step(struct leader *l)
{
    if (l->state != OVER && !is_late(l) && now_ns(l) >= l->due_ns)
        try_lease(l);
    if (is_late(l))
        lose(l, "the lease could not be renewed in time");
    if (l->state == OVER)
        return INT64_MAX;
    int64_t until_ns = l->state == LEADING ? atomic_load(&l->until_ns) : INT64_MAX;
    return l->due_ns < until_ns ? l->due_ns : until_ns;
}

/* --- giving it up --- */

static void stop_thread(struct leader *l)
{
    if (!l->has_thread)
        return;
    pthread_mutex_lock(&l->lock);
    l->stopping = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    l->has_thread = false;
}

/* If our version is not the newest, an answer was lost: once more with what is there now. */
static int write_release(struct leader *l, struct err *err)
{
    for (int i = 0; is_ours(l); i++) {
        struct wish w = { .holder = "",
                          .duration_s = 1,
                          .renewed_us = renewed_at(l),
                          .transitions = l->transitions };
        w.acquired_us = w.renewed_us;
        if (write_lease(l, &w, err) == 0)
            return 0;
        if (err->kind == ERR_NOT_FOUND) /* nothing is left to be given up */
            return 0;
        if (i > 0 || err->kind != ERR_CONFLICT || read_lease(l, err) < 0)
            return -1;
    }
    return 0;
}

void leader_release(struct leader *l)
{
    struct err err = { 0 };

    stop_thread(l);
    if (l->state == OVER)
        return;
    /* One that only stands by may hold it too, by a write whose answer was lost. */
    bool led = l->state == LEADING;
    end(l);
    if (write_release(l, &err) < 0)
        log_warn(l->log, "the lease was not given up: others wait until it has run out",
                 LOG_Z("lease", l->name), LOG_ERR(&err));
    else if (led)
        log_info(l->log, "gave up the lead", LOG_Z("identity", l->identity),
                 LOG_Z("lease", l->name));
}

/* --- life --- */

static void *run(void *arg)
{
    struct leader *l = arg;
    pthread_mutex_lock(&l->lock);
    while (!l->stopping) {
        pthread_mutex_unlock(&l->lock);
        int64_t due_ns = leader_step(l);
        pthread_mutex_lock(&l->lock);
        if (!l->stopping)
            clock_wait(l->options.clock, &l->wake, &l->lock, due_ns);
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

int leader_start(struct leader *l, struct err *err)
{
    if (thread_start(&l->thread, "leader", run, l, err) < 0)
        return -1;
    l->has_thread = true;
    return 0;
}

static int check_options(struct leader_options *o, struct err *err)
{
    o->lease_ns = o->lease_ns ? o->lease_ns : LEADER_LEASE_NS;
    o->renew_ns = o->renew_ns ? o->renew_ns : LEADER_RENEW_NS;
    o->retry_ns = o->retry_ns ? o->retry_ns : LEADER_RETRY_NS;
    if (!o->identity[0] || !o->namespace_[0] || !o->name[0])
        return err_set(err, ERR_INVALID,
                       "leader election needs an identity, and the namespace and name of a Lease");
    if (o->retry_ns < DURATION_SECOND / 1000 || o->lease_ns > INT32_MAX * DURATION_SECOND)
        return err_set(err, ERR_INVALID,
                       "leader election: the retry period is at least 1ms, and a lease is not for "
                       "ever");
    if (o->lease_ns <= o->renew_ns)
        return err_set(
            err, ERR_INVALID,
            "leader election: the lease duration must be longer than the renew deadline");
    if ((double)o->renew_ns <= JITTER * (double)o->retry_ns)
        return err_set(err, ERR_INVALID,
                       "leader election: the renew deadline must be longer than 1.2 retry periods");
    return 0;
}

static struct metric *open_metric(const struct leader_options *o)
{
    static const char *const labels[] = { "name", NULL };
    if (!o->maybe_metrics)
        return NULL;
    struct metric_family *family = metrics_family(
        o->maybe_metrics, &(struct metric_desc){ .name = "leader_election_master_status",
                                                 .help = "Is this process the leader? 1: yes.",
                                                 .type = METRIC_GAUGE,
                                                 .labels = labels });
    struct metric *status = metric_get(family, &(struct str){ o->name, strlen(o->name) });
    metric_set(status, 0);
    return status;
}

int leader_new(struct leader_options options, struct leader **out, struct err *err)
{
    if (check_options(&options, err) < 0)
        return -1;
    struct leader *l = kv_calloc(1, sizeof *l);
    l->options = options;
    l->log = options.maybe_log;
    l->namespace_ = str_dup(str_of(options.namespace_));
    l->name = str_dup(str_of(options.name));
    l->identity = str_dup(str_of(options.identity));
    l->holder = str_dup(STR(""));
    l->due_ns = now_ns(l);
    l->status = open_metric(&options);
    rng_init(&l->rng, options.seed);
    atomic_init(&l->until_ns, INT64_MIN);
    atomic_init(&l->until_wall_us, INT64_MIN);
    pthread_mutex_init(&l->lock, NULL);
    clock_cond_init(&l->wake);
    *out = l;
    return 0;
}

struct leader_fence **leader_fences(struct leader *l)
{
    return &l->fences;
}

void leader_free(struct leader *l)
{
    if (!l)
        return;
    stop_thread(l);
    leader_fences_free(l->fences);
    metric_unref(l->status);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    free(l->namespace_);
    free(l->name);
    free(l->identity);
    free(l->holder);
    free(l);
}
