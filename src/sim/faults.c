/* Two decorators, of the store and of the provider, that ask one another thing first: does this call
 * fail? A random draw is made only for rates above zero, so that a run without faults does not depend
 * on how often it was asked.
 *
 * A call that is answered with an error although it took effect is the most instructive of faults: the
 * caller must find out by reading what became of it.
 */
#include "sim/faults.h"

#include "api/kinds.h"

#include <stdio.h>

#define LAST_WORDS_MAX 400
#define GONE_ONE_IN 4    /* of broken watches: the version is too old, everything is listed again */
#define REFUSAL_ONE_IN 4 /* of failed launches: the cloud says why */

struct faults {
    struct faults_options options;
    const struct store *inner;
    struct store store;
    struct cloud_provider provider;
    struct fault_rates rates;
    struct rng rng;
    uint64_t calls, writes, die_at;
    bool die_after_effect, dead;
    char last_words[LAST_WORDS_MAX], last_write[LAST_WORDS_MAX];
};

static bool happens(struct faults *f, double rate)
{
    return rate > 0 && rng_unit(&f->rng) < rate;
}

static int dead_answer(struct err *err)
{
    return err_set(err, ERR_CANCELLED, "the process has died");
}

/* --- death --- */

static void remember(char words[LAST_WORDS_MAX], const char *verb, const char *kind,
                     struct str name)
{
    snprintf(words, LAST_WORDS_MAX, "%s%s%s%s%.*s", verb, *kind ? " " : "", kind,
             name.len ? " " : "", (int)name.len, name.len ? name.p : "");
}

static void die(struct faults *f, const char *verb, const char *kind, struct str name)
{
    f->dead = true;
    f->die_at = UINT64_MAX;
    remember(f->last_words, verb, kind, name);
}

/* What becomes of a call that changes something or asks the cloud. */
enum fate { FATE_GOES_ON, FATE_DEAD, FATE_DIES_AFTER };

static enum fate count_call(struct faults *f, const char *verb, const char *kind, struct str name)
{
    if (f->dead)
        return FATE_DEAD;
    f->calls++;
    if (f->calls < f->die_at)
        return FATE_GOES_ON;
    if (f->die_after_effect)
        return FATE_DIES_AFTER;
    die(f, verb, kind, name);
    return FATE_DEAD;
}

/* --- the store: reading --- */

static int read_trouble(struct faults *f, struct err *err)
{
    if (f->dead)
        return dead_answer(err);
    if (!happens(f, f->rates.store_error))
        return 0;
    return rng_below(&f->rng, 2) ? err_set(err, ERR_UNAVAILABLE, "the API server is not reached")
                                 : err_set(err, ERR_THROTTLED, "too many requests");
}

static int faulty_get(void *ctx, struct object_ref ref, const struct object **out, struct err *err)
{
    struct faults *f = ctx;
    return read_trouble(f, err) < 0 ? -1 : store_get(f->inner, ref, out, err);
}

static int faulty_list(void *ctx, const struct kind *kind, const struct list_options *opts,
                       struct object_list *out, struct err *err)
{
    struct faults *f = ctx;
    return read_trouble(f, err) < 0 ? -1 : store_list(f->inner, kind, opts, out, err);
}

struct faulty_watch {
    struct watch watch;
    struct watch *inner;
    struct faults *f;
    enum err_kind broken; /* ERR_NONE: it is not */
};

/* The event that a break hides is not lost: it comes again when the watch is opened from the last
 * version that was read. */
static int faulty_next(struct watch *watch, struct watch_event *out, struct err *err)
{
    struct faulty_watch *w = (struct faulty_watch *)watch;
    if (w->f->dead)
        return dead_answer(err);
    if (w->broken != ERR_NONE)
        return err_set(err, w->broken, "the watch broke");
    struct watch_event event;
    int rc = watch_next(w->inner, &event, err);
    if (rc == 1 && happens(w->f, w->f->rates.watch_cut)) {
        object_unref(event.object);
        w->broken = rng_below(&w->f->rng, GONE_ONE_IN) ? ERR_UNAVAILABLE : ERR_GONE;
        return err_set(err, w->broken, "the watch broke");
    }
    if (rc == 1)
        *out = event;
    return rc;
}

static bool faulty_quiet(struct watch *watch)
{
    const struct faulty_watch *w = (struct faulty_watch *)watch;
    return !w->f->dead && w->broken == ERR_NONE && watch_quiet(w->inner);
}

static void faulty_close(struct watch *watch)
{
    struct faulty_watch *w = (struct faulty_watch *)watch;
    watch_close(w->inner);
    free(w);
}

static int faulty_open(void *ctx, const struct kind *kind, const struct watch_options *opts,
                       struct watch **out, struct err *err)
{
    struct faults *f = ctx;
    struct watch *inner;
    if (read_trouble(f, err) < 0 || store_watch(f->inner, kind, opts, &inner, err) < 0)
        return -1;
    struct faulty_watch *w = kv_calloc(1, sizeof *w);
    *w = (struct faulty_watch){ .watch = { faulty_next, faulty_quiet, faulty_close },
                                .inner = inner,
                                .f = f };
    *out = &w->watch;
    return 0;
}

/* --- the store: writing --- */

struct write {
    const char *verb;
    const struct kind *kind;
    struct str name;
    enum fate fate;
    uint64_t version; /* of the store before it */
};

static int write_begins(struct faults *f, struct write *w, struct err *err)
{
    static const struct {
        enum err_kind kind;
        const char *text;
    } troubles[] = {
        { ERR_UNAVAILABLE, "the API server is not reached" },
        { ERR_THROTTLED, "too many requests" },
        { ERR_CONFLICT, "the object has been modified" },
    };
    w->fate = count_call(f, w->verb, w->kind->name, w->name);
    if (w->fate == FATE_DEAD)
        return dead_answer(err);
    w->version = embedded_version(f->options.embedded);
    if (w->fate == FATE_DIES_AFTER || !happens(f, f->rates.store_error))
        return 0;
    /* A new object conflicts with nothing, and an eviction is refused in another way. */
    bool conflicts = strcmp(w->verb, "patch") == 0;
    uint64_t which = rng_below(&f->rng, conflicts ? 3 : 2);
    return err_set(err, troubles[which].kind, "%s", troubles[which].text);
}

/* `*out` was filled in by the call, if it succeeded and somebody wanted it. */
static int write_ends(struct faults *f, struct write *w, int rc, const struct object **maybe_out,
                      struct err *err)
{
    if (rc == 0 && w->kind != &event_kind && embedded_version(f->options.embedded) != w->version) {
        f->writes++;
        remember(f->last_write, w->verb, w->kind->name, w->name);
    }
    bool lost = w->fate == FATE_DIES_AFTER || (rc == 0 && happens(f, f->rates.store_lost_reply));
    if (!lost)
        return rc;
    if (rc == 0 && maybe_out) {
        object_unref(*maybe_out);
        *maybe_out = NULL;
    }
    if (w->fate == FATE_DIES_AFTER) {
        die(f, w->verb, w->kind->name, w->name);
        return dead_answer(err);
    }
    return err_set(err, ERR_UNAVAILABLE, "the connection broke before the answer came");
}

static int faulty_create(void *ctx, const struct kind *kind, struct str namespace_, struct str json,
                         const struct object **out, struct err *err)
{
    struct faults *f = ctx;
    struct write w = { .verb = "create", .kind = kind, .name = STR("") };
    if (write_begins(f, &w, err) < 0)
        return -1;
    int rc = store_create(f->inner, kind, namespace_, json, out, err);
    return write_ends(f, &w, rc, out, err);
}

static int faulty_patch(void *ctx, struct object_ref ref, struct patch_options opts,
                        struct str patch, const struct object **out, struct err *err)
{
    struct faults *f = ctx;
    struct write w = { .verb = "patch", .kind = ref.kind, .name = ref.name };
    if (write_begins(f, &w, err) < 0)
        return -1;
    int rc = store_patch(f->inner, ref, opts, patch, out, err);
    return write_ends(f, &w, rc, out, err);
}

static int faulty_remove(void *ctx, struct object_ref ref, const struct delete_options *opts,
                         struct err *err)
{
    struct faults *f = ctx;
    struct write w = { .verb = "delete", .kind = ref.kind, .name = ref.name };
    if (write_begins(f, &w, err) < 0)
        return -1;
    return write_ends(f, &w, store_remove(f->inner, ref, opts, err), NULL, err);
}

static int faulty_evict(void *ctx, struct str namespace_, struct str pod,
                        const struct delete_options *opts, struct err *err)
{
    struct faults *f = ctx;
    struct write w = { .verb = "evict", .kind = &pod_kind, .name = pod };
    if (write_begins(f, &w, err) < 0)
        return -1;
    return write_ends(f, &w, store_evict(f->inner, namespace_, pod, opts, err), NULL, err);
}

static int faulty_bind(void *ctx, struct str namespace_, struct str pod, struct str node,
                       struct err *err)
{
    struct faults *f = ctx;
    struct write w = { .verb = "bind", .kind = &pod_kind, .name = pod };
    if (write_begins(f, &w, err) < 0)
        return -1;
    return write_ends(f, &w, store_bind(f->inner, namespace_, pod, node, err), NULL, err);
}

static uint64_t faulty_version(void *ctx)
{
    const struct faults *f = ctx;
    return store_version(f->inner);
}

static const struct store_ops faulty_store_ops = {
    .get = faulty_get,
    .list = faulty_list,
    .watch = faulty_open,
    .create = faulty_create,
    .patch = faulty_patch,
    .remove = faulty_remove,
    .evict = faulty_evict,
    .bind = faulty_bind,
    .version = faulty_version,
};

/* --- the provider --- */

static int ask(struct faults *f, const char *verb, struct str name, enum fate *fate,
               struct err *err)
{
    *fate = count_call(f, verb, "", name);
    if (*fate == FATE_DEAD)
        return dead_answer(err);
    if (*fate == FATE_GOES_ON && happens(f, f->rates.cloud_error))
        return err_set(err, ERR_UNAVAILABLE, "the cloud does not answer");
    return 0;
}

static int asked(struct faults *f, const char *verb, struct str name, enum fate fate, int rc,
                 struct err *err)
{
    if (fate != FATE_DIES_AFTER)
        return rc;
    die(f, verb, "", name);
    return dead_answer(err);
}

static int faulty_types(void *ctx, const struct nodepool *pool, const struct instance_types **out,
                        struct err *err)
{
    struct faults *f = ctx;
    const struct cloud_provider *p = f->options.provider;
    struct str name = pool->object.meta.name;
    enum fate fate;
    if (ask(f, "list instance types for", name, &fate, err) < 0)
        return -1;
    const struct instance_types *types;
    int rc = p->get_instance_types(p->ctx, pool, &types, err);
    if (rc == 0 && fate == FATE_DIES_AFTER)
        instance_types_unref(types);
    else if (rc == 0)
        *out = types;
    return asked(f, "list instance types for", name, fate, rc, err);
}

static int faulty_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                             struct err *err)
{
    struct faults *f = ctx;
    if (f->dead)
        return dead_answer(err);
    return f->options.provider->get_generation(f->options.provider->ctx, pool, out, err);
}

static int launch_trouble(struct faults *f, struct launch_failure *why, struct err *err)
{
    if (rng_below(&f->rng, REFUSAL_ONE_IN)) {
        *why = (struct launch_failure){ .kind = LAUNCH_OTHER };
        return err_set(err, ERR_UNAVAILABLE, "the cloud does not answer");
    }
    *why = (struct launch_failure){ .kind = LAUNCH_CREATE_ERROR, .reason = "InternalError" };
    return err_set(err, ERR_INTERNAL, "the cloud has an internal error");
}

static int faulty_launch(void *ctx, const struct nodeclaim *claim, struct arena *arena,
                         struct instance *out, struct launch_failure *why, struct err *err)
{
    struct faults *f = ctx;
    const struct cloud_provider *p = f->options.provider;
    struct str name = claim->object.meta.name;
    enum fate fate = count_call(f, "launch", "", name);
    if (fate == FATE_DEAD) {
        *why = (struct launch_failure){ .kind = LAUNCH_OTHER };
        return dead_answer(err);
    }
    if (fate == FATE_GOES_ON && happens(f, f->rates.launch_error))
        return launch_trouble(f, why, err);
    struct instance instance;
    int rc = p->create(p->ctx, claim, arena, &instance, why, err);
    if (fate == FATE_DIES_AFTER) {
        *why = (struct launch_failure){ .kind = LAUNCH_OTHER };
        return asked(f, "launch", name, fate, rc, err);
    }
    if (rc == 0 && happens(f, f->rates.launch_lost_reply)) {
        *why = (struct launch_failure){ .kind = LAUNCH_OTHER };
        return err_set(err, ERR_UNAVAILABLE, "the cloud's answer was lost");
    }
    if (rc == 0)
        *out = instance;
    return rc;
}

static int faulty_terminate(void *ctx, const struct nodeclaim *claim, struct err *err)
{
    struct faults *f = ctx;
    const struct cloud_provider *p = f->options.provider;
    struct str name = claim->object.meta.name;
    enum fate fate;
    if (ask(f, "terminate", name, &fate, err) < 0)
        return -1;
    return asked(f, "terminate", name, fate, p->delete_(p->ctx, claim, err), err);
}

static int faulty_get_instance(void *ctx, struct str provider_id, struct arena *arena,
                               struct instance *out, struct err *err)
{
    struct faults *f = ctx;
    const struct cloud_provider *p = f->options.provider;
    enum fate fate;
    if (ask(f, "get instance", provider_id, &fate, err) < 0)
        return -1;
    return asked(f, "get instance", provider_id, fate, p->get(p->ctx, provider_id, arena, out, err),
                 err);
}

static int faulty_list_instances(void *ctx, struct arena *arena, struct instances *out,
                                 struct err *err)
{
    struct faults *f = ctx;
    const struct cloud_provider *p = f->options.provider;
    enum fate fate;
    if (ask(f, "list instances", STR(""), &fate, err) < 0)
        return -1;
    return asked(f, "list instances", STR(""), fate, p->list(p->ctx, arena, out, err), err);
}

static int faulty_is_drifted(void *ctx, const struct nodeclaim *claim, const char **reason,
                             struct err *err)
{
    struct faults *f = ctx;
    const struct cloud_provider *p = f->options.provider;
    struct str name = claim->object.meta.name;
    enum fate fate;
    if (ask(f, "look for drift of", name, &fate, err) < 0)
        return -1;
    return asked(f, "look for drift of", name, fate, p->is_drifted(p->ctx, claim, reason, err),
                 err);
}

/* --- the whole --- */

struct faults *faults_new(struct faults_options options)
{
    struct faults *f = kv_calloc(1, sizeof *f);
    f->options = options;
    f->rates = options.rates;
    f->die_at = UINT64_MAX;
    f->inner = embedded_store(options.embedded);
    f->store = (struct store){ &faulty_store_ops, f };
    rng_init(&f->rng, options.seed);
    f->provider = *options.provider; /* its names and policies */
    f->provider.get_instance_types = faulty_types;
    f->provider.get_generation = faulty_generation;
    f->provider.create = faulty_launch;
    f->provider.delete_ = faulty_terminate;
    f->provider.get = faulty_get_instance;
    f->provider.list = faulty_list_instances;
    f->provider.is_drifted = faulty_is_drifted;
    f->provider.ctx = f;
    return f;
}

void faults_free(struct faults *f)
{
    free(f);
}

const struct store *faults_store(struct faults *f)
{
    return &f->store;
}

const struct cloud_provider *faults_provider(struct faults *f)
{
    return &f->provider;
}

void faults_set_rates(struct faults *f, struct fault_rates rates)
{
    f->rates = rates;
}

uint64_t faults_calls(const struct faults *f)
{
    return f->calls;
}

void faults_die_at(struct faults *f, uint64_t call, bool after_effect)
{
    f->die_at = call;
    f->die_after_effect = after_effect;
}

void faults_kill(struct faults *f)
{
    die(f, "nothing in particular", "", STR(""));
}

bool faults_dead(const struct faults *f)
{
    return f->dead;
}

void faults_revive(struct faults *f)
{
    f->dead = false;
    f->die_at = UINT64_MAX;
}

const char *faults_last_words(const struct faults *f)
{
    return f->last_words;
}

const char *faults_last_write(const struct faults *f)
{
    return f->last_write;
}

uint64_t faults_writes(const struct faults *f)
{
    return f->writes;
}
