/* The claims of a plan, created: several at a time in a program, where each waits for the server, and one after the
 * other in a simulation.
 *
 * They get their names first, in the order of the plan, so that nothing depends on who comes first. A creation whose
 * answer was lost is repeated under the same name: so it is one claim, whether or not the first try took effect. If
 * it stays without an answer, the next pass begins with finding out.
 */
#include "control/provisioner.h"

#include "api/kinds.h"
#include "base/rng.h"
#include "base/thread.h"

#define CREATE_TRIES 3
#define CREATE_THREADS 8
#define NAME_LETTERS 5
#define POOL_NAME_BYTES_MAX 57 /* what is left of 63 */

void claim_maker_init(struct claim_maker *m)
{
    *m = (struct claim_maker){ 0 };
    pthread_mutex_init(&m->lock, NULL);
}

void claim_maker_done(struct claim_maker *m)
{
    str_table_done(&m->doubtful);
    pthread_mutex_destroy(&m->lock);
}

static void make_name(struct control *c, struct claim_maker *m, struct str pool,
                      char out[CLAIM_NAME_BYTES])
{
    struct rng rng;
    char letters[NAME_LETTERS + 1];
    pthread_mutex_lock(&m->lock);
    uint64_t from[3] = { c->options.seed, (uint64_t)control_now_us(c), m->name_count++ };
    pthread_mutex_unlock(&m->lock);
    rng_init(&rng, kv_hash_salted(from, sizeof from, kv_hash(pool.p, pool.len)));
    rng_name(&rng, letters, NAME_LETTERS);
    struct str stem = str_sub(pool, 0, POOL_NAME_BYTES_MAX);
    while (stem.len && stem.p[stem.len - 1] == '.') /* no name has ".-" in it */
        stem.len--;
    snprintf(out, CLAIM_NAME_BYTES, "%.*s-%s", STR_ARG(stem), letters);
}

/* --- doubts --- */

/* The claim is there, under a name that we gave it. */
static int find_claim(struct control *c, struct str name, const struct object **out,
                      struct err *err)
{
    struct object_ref ref = { &nodeclaim_kind, STR(""), name };
    if (store_get(c->options.store, ref, out, err) < 0)
        return -1;
    cluster_assume(c->cluster, *out);
    return 0;
}

int claims_settle(struct control *c, struct claim_maker *m, struct err *err)
{
    str_table_each(&m->doubtful, it) {
        AUTO_OBJECT claim = NULL;
        if (find_claim(c, it->key, &claim, err) < 0 && err->kind != ERR_NOT_FOUND)
            return err_wrap(err, "whether claim %.*s was created", STR_ARG(it->key));
        str_table_remove(&m->doubtful, it->key);
    }
    return 0;
}

/* --- one claim --- */

/* ERR_EXISTS after a try of ours that failed is that try. */
static int create_claim(struct control *c, struct claim_maker *m, const struct provision *p,
                        const struct plan_launch *launch, char name[CLAIM_NAME_BYTES],
                        const struct object **out, struct err *err)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *claim = provision_claim_json(p, launch, str_of(name), &b);
    bool maybe_ours = false;
    for (int i = 0; i < CREATE_TRIES; i++) {
        if (control_create(c, &nodeclaim_kind, STR(""), claim, out, err) == 0)
            return 0;
        if (err->kind == ERR_EXISTS && maybe_ours)
            break;
        if (err->kind == ERR_EXISTS) {
            make_name(c, m, p->pools[launch->pool].pool->object.meta.name, name);
            json_set_str(&b, json_mut_get(claim, STR("metadata")), "name", str_of(name));
        } else if (err->kind == ERR_UNAVAILABLE || err->kind == ERR_INTERNAL) {
            maybe_ours = true;
        } else {
            break;
        }
    }
    if (err->kind == ERR_EXISTS && maybe_ours && find_claim(c, str_of(name), out, err) == 0)
        return 0;
    if (maybe_ours) {
        pthread_mutex_lock(&m->lock);
        str_table_put(&m->doubtful, str_of(name), c);
        pthread_mutex_unlock(&m->lock);
    }
    return -1;
}

/* --- all of a plan --- */

struct creation {
    struct control *c;
    struct claim_maker *maker;
    const struct provision *p;
    const struct plan *plan;
    char (*names)[CLAIM_NAME_BYTES]; /* per launch, as the claims */
    const struct object **claims;
    atomic_uint next;

    pthread_mutex_t lock; /* guards the failure that comes first in the plan */
    uint32_t failed;      /* its launch; UINT32_MAX: none failed */
    struct err err;
};

static void note_failure(struct creation *all, uint32_t launch, const struct err *err)
{
    pthread_mutex_lock(&all->lock);
    if (launch < all->failed) {
        all->failed = launch;
        all->err = *err;
    }
    pthread_mutex_unlock(&all->lock);
    if (err->kind == ERR_CANCELLED)
        atomic_store(&all->next, all->plan->launch_count);
}

static void *create_some(void *arg)
{
    struct creation *all = arg;
    for (uint32_t i; (i = atomic_fetch_add(&all->next, 1)) < all->plan->launch_count;) {
        struct err err = { 0 };
        if (create_claim(all->c, all->maker, all->p, &all->plan->launches[i], all->names[i],
                         &all->claims[i], &err) < 0)
            note_failure(all, i, &err);
    }
    return NULL;
}

/* Besides the caller. Without a thread to be had the caller does it alone. */
static uint32_t start_helpers(struct creation *all, pthread_t threads[CREATE_THREADS])
{
    const struct control *c = all->c;
    uint32_t most = c->started ? c->options.settings.threads_max : 0;
    uint32_t count = 0;
    struct err err;
    while (count + 1 < CREATE_THREADS && count + 1 < most && count + 1 < all->plan->launch_count &&
           thread_start(&threads[count], "claims", create_some, all, &err) == 0)
        count++;
    return count;
}

int claims_create(struct control *c, struct claim_maker *m, struct provision *p,
                  const struct plan *plan, const struct object **claims, struct err *err)
{
    struct creation all = {
        .c = c, .maker = m, .p = p, .plan = plan, .claims = claims, .failed = UINT32_MAX
    };
    pthread_t threads[CREATE_THREADS];
    pthread_mutex_init(&all.lock, NULL);
    all.names = arena_alloc_array(&p->arena, plan->launch_count, sizeof *all.names);
    for (uint32_t i = 0; i < plan->launch_count; i++)
        make_name(c, m, p->pools[plan->launches[i].pool].pool->object.meta.name, all.names[i]);
    uint32_t helpers = start_helpers(&all, threads);
    create_some(&all);
    while (helpers > 0)
        pthread_join(threads[--helpers], NULL);
    pthread_mutex_destroy(&all.lock);
    if (all.failed == UINT32_MAX)
        return 0;
    *err = all.err;
    return -1;
}
