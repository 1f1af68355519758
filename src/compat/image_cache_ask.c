/* The threads that ask, each key once however many want it.
 *
 *     image_cache_ask --> queue of the registry --> thread: resolve --> facts fresh? --> linked
 *                                                               \--> parked --> ask --> linked, all parked
 *
 * 1. A name is queued, or with a thread, or parked at a digest, at most one of them: `asking`. The one
 *    reference that goes with it is dropped by name_finish, exactly once.
 * 2. Of the names parked at a digest one is with a thread, and brings the answer for all. The others keep no
 *    thread busy. A name moves to its new digest when that has facts, not before: until then the old
 *    facts are its answer.
 * 3. Registries take turns, and one has at most half of the threads: a registry that lets each question run
 *    into its time limit delays nobody but itself.
 * 4. Names that nobody knows an answer for go before those that are only looked at again.
 *
 * Times are taken before a question is sent: what the answer says was true then or later.
 */
#include "base/thread.h"
#include "compat/image_cache_inner.h"

/* --- the queue, under cache->lock --- */

static void list_append(struct ask_list *list, struct image_name *name)
{
    name->queue_next = NULL;
    *(list->last ? &list->last->queue_next : &list->first) = name;
    list->last = name;
}

static struct image_name *list_take(struct ask_list *list)
{
    struct image_name *name = list->first;
    if (name && !(list->first = name->queue_next))
        list->last = NULL;
    return name;
}

static void hosts_append(struct image_cache *cache, struct ask_host *host)
{
    host->listed = true;
    host->next = NULL;
    *(cache->hosts_ready_last ? &cache->hosts_ready_last->next : &cache->hosts_ready) = host;
    cache->hosts_ready_last = host;
}

static void hosts_remove(struct image_cache *cache, struct ask_host *before, struct ask_host *host)
{
    *(before ? &before->next : &cache->hosts_ready) = host->next;
    if (cache->hosts_ready_last == host)
        cache->hosts_ready_last = before;
    host->listed = false;
}

void image_cache_ask(struct image_cache *cache, struct image_name *name, int64_t now_ns)
{
    KV_ASSERT(!atomic_load(&name->asking));
    image_cache_busy(cache, name);
    image_name_ref(name);
    name->queued = true;
    struct ask_host *host = name->host;
    bool urgent = image_name_state(cache, name, now_ns) == IMAGE_PENDING;
    list_append(urgent ? &host->urgent : &host->renewals, name);
    if (!host->listed)
        hosts_append(cache, host);
    pthread_cond_signal(&cache->work);
}

/* The next of the registry whose turn it is; NULL: nothing can be asked now. */
static struct image_name *queue_take(struct image_cache *cache)
{
    uint32_t share = cache->options.threads / 2 ? cache->options.threads / 2 : 1;
    struct ask_host *before = NULL, *host = cache->hosts_ready;
    while (host && host->running >= share) {
        before = host;
        host = host->next;
    }
    if (!host)
        return NULL;
    struct image_name *name = list_take(&host->urgent);
    if (!name)
        name = list_take(&host->renewals);
    hosts_remove(cache, before, host);
    if (host->urgent.first || host->renewals.first)
        hosts_append(cache, host);
    host->running++;
    name->queued = false;
    return name;
}

/* --- what an answer does to a name, under cache->lock --- */

/* Names that somebody is to be told of, with references, once no lock is held. */
struct told {
    VEC(struct image_name *) names;
};

struct seen {
    enum image_state state;
    const struct image_facts *maybe_facts; /* only to be compared */
};

static struct seen seen_of(const struct image_cache *cache, const struct image_name *name,
                           int64_t now_ns)
{
    enum image_state state = image_name_state(cache, name, now_ns);
    return (struct seen){ state, state == IMAGE_KNOWN ? name->maybe_facts : NULL };
}

static void tell_if_changed(const struct image_cache *cache, struct image_name *name,
                            struct seen before, int64_t now_ns, struct told *told)
{
    struct seen after = seen_of(cache, name, now_ns);
    if (before.state != after.state || before.maybe_facts != after.maybe_facts)
        vec_push(&told->names, image_name_ref(name));
}

/* Up to a tenth is taken off, so that what was asked for at once is not asked again at once. */
static int64_t jittered(const struct image_cache *cache, uint64_t hash, uint32_t turn,
                        int64_t ttl_ns)
{
    uint64_t dice = kv_mix64(cache->options.seed ^ kv_mix64(hash + turn)) & 0xffff;
    return ttl_ns - ttl_ns / 10 / 0x10000 * (int64_t)dice;
}

static int64_t earlier(int64_t a_ns, int64_t b_ns)
{
    return a_ns < b_ns ? a_ns : b_ns;
}

static int64_t later(int64_t now_ns, int64_t ttl_ns)
{
    int64_t until_ns;
    return __builtin_add_overflow(now_ns, ttl_ns, &until_ns) ? INT64_MAX : until_ns;
}

/* The name's copy of what its digest says. */
static void name_show(struct image_cache *cache, struct image_name *name, int64_t now_ns,
                      struct told *told)
{
    const struct image_digest *digest = name->maybe_digest;
    struct seen before = seen_of(cache, name, now_ns);
    struct image_shard *shard = image_shard_of(cache, name->hash);
    pthread_rwlock_wrlock(&shard->lock);
    const struct image_facts *old = name->maybe_facts;
    name->maybe_facts = image_facts_ref(digest->maybe_facts);
    name->confirmed_ns = earlier(name->resolved_ns, digest->checked_ns);
    name->fresh_until_ns = earlier(name->resolved_until_ns, digest->until_ns);
    name->due_ns = name->fresh_until_ns;
    image_name_set_failure(cache, name, NULL);
    atomic_store(&name->read_at, UNREAD);
    pthread_rwlock_unlock(&shard->lock);
    image_facts_unref(old);
    tell_if_changed(cache, name, before, now_ns, told);
}

/* A spec that is there and cannot be used is worth a look soon: its author is about to fix it. */
enum facts_form { FACTS_PLAIN, FACTS_RULES, FACTS_TROUBLE };

static enum facts_form spec_form(const struct image_spec *spec)
{
    return spec->trouble.len ? FACTS_TROUBLE : spec->maybe_spec ? FACTS_RULES : FACTS_PLAIN;
}

static enum facts_form facts_form(const struct image_facts *facts)
{
    enum facts_form form = spec_form(&facts->spec);
    for (uint32_t i = 0; i < facts->platform_count; i++) {
        enum facts_form own = spec_form(&facts->platforms[i].spec);
        form = own > form ? own : form;
    }
    return form;
}

static int64_t facts_ttl_ns(const struct image_cache *cache, const struct image_facts *facts)
{
    switch (facts_form(facts)) {
    case FACTS_PLAIN:
        return cache->options.negative_ttl_ns;
    case FACTS_RULES:
        return cache->options.facts_ttl_ns;
    case FACTS_TROUBLE:
        return cache->options.error_ttl_ns;
    }
    KV_UNREACHABLE();
}

/* What a failure does: for how long, and whether old facts stay the answer. */
struct failing {
    int64_t ttl_ns;
    bool stands; /* also while it is asked for again, for as long again */
    bool drops_facts, drops_plain_facts;
    enum ask_outcome outcome;
};

static struct failing failing_of(const struct image_cache *cache, enum err_kind kind)
{
    int64_t error_ttl_ns = cache->options.error_ttl_ns;
    switch (kind) {
    case ERR_NOT_FOUND: /* the registry knows better than we do */
        return (struct failing){ .ttl_ns = cache->options.unknown_ttl_ns,
                                 .drops_facts = true,
                                 .outcome = ASK_UNKNOWN };
    case ERR_DENIED:
        return (
            struct failing){ .ttl_ns = 2 * error_ttl_ns, .stands = true, .outcome = ASK_DENIED };
    case ERR_INVALID:
    case ERR_CAPACITY: /* something is there, so "no constraint" is not true any more */
        return (struct failing){ .ttl_ns = error_ttl_ns,
                                 .stands = true,
                                 .drops_plain_facts = true,
                                 .outcome = ASK_INVALID };
    case ERR_CONFLICT:
    case ERR_GONE:
    case ERR_EXISTS:
    case ERR_UNAVAILABLE:
    case ERR_THROTTLED:
    case ERR_CANCELLED:
    case ERR_INTERNAL:
        return (struct failing){ .ttl_ns = error_ttl_ns, .stands = true, .outcome = ASK_FAILED };
    case ERR_NONE: /* a source that fails says why */
        break;
    }
    KV_UNREACHABLE();
}

static void name_fail(struct image_cache *cache, struct image_name *name, const struct err *err,
                      int64_t now_ns, struct told *told)
{
    struct failing how = failing_of(cache, err->kind);
    int64_t ttl_ns = jittered(cache, name->hash, name->turn++, how.ttl_ns);
    bool plain = name->maybe_facts && facts_form(name->maybe_facts) == FACTS_PLAIN;
    bool drop = how.drops_facts || (how.drops_plain_facts && plain) || cache->options.disabled;

    struct seen before = seen_of(cache, name, now_ns);
    if (drop)
        image_name_link(cache, name, NULL);
    struct image_shard *shard = image_shard_of(cache, name->hash);
    pthread_rwlock_wrlock(&shard->lock);
    const struct image_facts *old = drop ? take(&name->maybe_facts) : NULL;
    image_name_set_failure(cache, name, err);
    name->failed_ns = now_ns;
    name->due_ns = later(now_ns, ttl_ns);
    name->failed_until_ns = how.stands ? later(name->due_ns, ttl_ns) : name->due_ns;
    atomic_store(&name->read_at, UNREAD);
    pthread_rwlock_unlock(&shard->lock);
    image_facts_unref(old);
    tell_if_changed(cache, name, before, now_ns, told);
}

/* It has its answer, whichever. */
static void name_finish(struct image_cache *cache, struct image_name *name, int64_t now_ns)
{
    image_cache_unbusy(cache, name);
    if (name->again && !name->gone && !cache->stopping) {
        name->again = false;
        name->forced = true;
        image_cache_ask(cache, name, now_ns);
    }
    image_name_unref(cache, name);
    pthread_cond_broadcast(&cache->answered);
}

/* --- what an answer does to a digest, under cache->lock --- */

/* A name means the digest, whose facts are known. */
static void name_settle(struct image_cache *cache, struct image_parked parked,
                        struct image_digest *digest, int64_t now_ns, struct told *told)
{
    struct image_name *name = parked.name;
    if (!name->gone) {
        name->resolved_ns = parked.resolved_ns;
        name->resolved_until_ns = parked.resolved_until_ns;
        name->turn++;
        image_name_link(cache, name, digest);
        name_show(cache, name, now_ns, told);
    }
    name_finish(cache, name, now_ns);
}

static bool digest_publish(struct image_cache *cache, struct image_digest *digest,
                           const struct image_facts *facts, int64_t asked_ns, int64_t now_ns,
                           struct told *told)
{
    bool same = digest->maybe_facts &&
                (digest->maybe_facts == facts || image_facts_equal(digest->maybe_facts, facts));
    if (!same)
        image_digest_set_facts(cache, digest, facts);
    uint64_t hash = kv_hash(digest->key.p, digest->key.len);
    digest->checked_ns = asked_ns;
    digest->until_ns =
        later(asked_ns, jittered(cache, hash, digest->turn++, facts_ttl_ns(cache, facts)));

    for (struct image_name *name = digest->linked; name; name = name->linked_next)
        name_show(cache, name, now_ns, told);
    struct image_name *keep = NULL; /* alive for as long as it is linked */
    while (digest->parked.count) {
        struct image_parked parked = vec_pop(&digest->parked);
        keep = parked.name->gone ? keep : parked.name;
        name_settle(cache, parked, digest, now_ns, told);
    }
    vec_done(&digest->parked);
    image_digest_rest(cache, digest);
    image_cache_trim(cache, cache->options.entries_max, keep);
    return same;
}

/* A failure to reach the registry concerns those who wanted to. That the digest is gone, or is not what we think
 * it is, concerns everybody. */
static void digest_fail(struct image_cache *cache, struct image_digest *digest,
                        const struct err *err, int64_t now_ns, struct told *told)
{
    while (digest->parked.count) {
        struct image_name *name = vec_pop(&digest->parked).name;
        if (!name->gone)
            name_fail(cache, name, err, now_ns, told);
        name_finish(cache, name, now_ns);
    }
    vec_done(&digest->parked);
    struct failing how = failing_of(cache, err->kind);
    if (how.drops_facts || how.drops_plain_facts) {
        digest->until_ns = now_ns;
        for (struct image_name *name = digest->linked, *next; name; name = next) {
            next = name->linked_next;
            if (!atomic_load(&name->asking)) /* else it will hear of it by itself */
                name_fail(cache, name, err, now_ns, told);
        }
    }
    image_digest_rest(cache, digest);
}

/* --- a thread --- */

/* One turn of a thread. The reference that goes with `asking` is ours until the name is finished or parked; after
 * that it may be gone, hence the copies. */
struct turn {
    struct image_cache *cache;
    struct image_name *name;
    struct str image;
    const struct keyring *maybe_keys; /* a reference */
    bool forced;
    int64_t asked_ns;
    struct arena arena;
    struct reference ref;
    struct str digest; /* "": asked by the tag */
    struct image_parked parked;
    struct err err; /* why it failed; ERR_NONE: it did not */
    struct told told;
};

/* Which digest is meant: that of the name, what it is known to mean, or what the registry says. With
 * cache->lock held, but not while it asks. */
static int find_digest(struct turn *t, struct err *err)
{
    struct image_cache *cache = t->cache;
    const struct image_source *source = &cache->options.source;
    struct image_name *name = t->name;
    t->parked = (struct image_parked){ name, t->asked_ns, INT64_MAX };
    if (t->ref.digest.len > 0) {
        t->digest = t->ref.digest;
        return 0;
    }
    t->parked.resolved_until_ns =
        later(t->asked_ns, jittered(cache, name->hash, name->turn, name->ttl_ns));
    if (!source->maybe_resolve)
        return 0; /* the answer will tell */
    if (name->maybe_digest && !t->forced && t->asked_ns < name->resolved_until_ns) {
        t->parked.resolved_ns = name->resolved_ns;
        t->parked.resolved_until_ns = name->resolved_until_ns;
        t->digest = arena_str(&t->arena, image_digest_text(name->maybe_digest));
        return 0;
    }

    cache->resolves++;
    pthread_mutex_unlock(&cache->lock);
    int rc = source->maybe_resolve(source->ctx, &t->ref, t->maybe_keys, &t->arena, &t->digest, err);
    pthread_mutex_lock(&cache->lock);
    if (rc == 0 && t->digest.len == 0)
        return err_set(err, ERR_INVALID, "the answer has no digest");
    return rc;
}

/* The facts of the digest, or of the tag if that is not known. With cache->lock held, but not while it asks. */
static int ask_facts(struct turn *t, const struct image_facts *maybe_known,
                     const struct image_facts **out, struct err *err)
{
    struct image_cache *cache = t->cache;
    const struct image_source *source = &cache->options.source;
    struct reference ref = t->ref;
    if (t->digest.len > 0)
        ref.digest = t->digest; /* what the tag meant, should it move meanwhile */
    const struct image_facts *known = maybe_known ? image_facts_ref(maybe_known) : NULL;
    cache->asks++;
    pthread_mutex_unlock(&cache->lock);
    int rc = source->ask(source->ctx, &ref, t->maybe_keys, known, out, err);
    image_facts_unref(known);
    pthread_mutex_lock(&cache->lock);
    return rc;
}

static enum ask_outcome turn_failed(struct turn *t)
{
    struct image_cache *cache = t->cache;
    int64_t now_ns = clock_mono_ns(cache->options.clock);
    if (!t->name->gone)
        name_fail(cache, t->name, &t->err, now_ns, &t->told);
    name_finish(cache, t->name, now_ns);
    return failing_of(cache, t->err.kind).outcome;
}

/* A name of which only the tag is known: the answer tells the digest. */
static enum ask_outcome ask_by_tag(struct turn *t)
{
    struct image_cache *cache = t->cache;
    const struct image_facts *facts = NULL;
    if (ask_facts(t, t->name->maybe_facts, &facts, &t->err) < 0)
        return turn_failed(t);
    int64_t now_ns = clock_mono_ns(cache->options.clock);
    struct str digest = facts->digest.len ? facts->digest : reference_which(&t->ref);
    struct image_digest *found = image_cache_digest(cache, &t->ref, t->name->identity, digest);
    vec_push(&found->parked, t->parked);
    bool same = digest_publish(cache, found, facts, t->asked_ns, now_ns, &t->told);
    image_facts_unref(facts);
    return same ? ASK_SAME : ASK_CHANGED;
}

static enum ask_outcome ask_by_digest(struct turn *t)
{
    struct image_cache *cache = t->cache;
    int64_t now_ns = clock_mono_ns(cache->options.clock);
    struct image_digest *digest = image_cache_digest(cache, &t->ref, t->name->identity, t->digest);
    if (digest->maybe_facts && now_ns < digest->until_ns && !t->forced) {
        name_settle(cache, t->parked, digest, now_ns, &t->told);
        return ASK_NOTHING;
    }
    vec_push(&digest->parked, t->parked);
    if (digest->asking)
        return ASK_NOTHING; /* the thread that asks for it has us in its list now */
    digest->asking = true;
    image_digest_rest(cache, digest); /* not idle any more */

    const struct image_facts *facts = NULL;
    t->asked_ns = now_ns;
    int rc = ask_facts(t, digest->maybe_facts, &facts, &t->err);
    now_ns = clock_mono_ns(cache->options.clock);
    digest->asking = false;
    if (rc < 0) {
        digest_fail(cache, digest, &t->err, now_ns, &t->told);
        return failing_of(cache, t->err.kind).outcome;
    }
    bool same = digest_publish(cache, digest, facts, t->asked_ns, now_ns, &t->told);
    image_facts_unref(facts);
    return same ? ASK_SAME : ASK_CHANGED;
}

static enum ask_outcome take_turn(struct turn *t)
{
    if (t->name->gone) {
        name_finish(t->cache, t->name, t->asked_ns);
        return ASK_NOTHING;
    }
    int rc = reference_parse(&t->arena, t->image, &t->ref, &t->err);
    KV_ASSERT(rc == 0); /* or it would have no entry */
    if (find_digest(t, &t->err) < 0)
        return turn_failed(t);
    bool by_tag = t->ref.digest.len == 0 && !t->cache->options.source.maybe_resolve;
    return by_tag ? ask_by_tag(t) : ask_by_digest(t);
}

/* With cache->lock held, but not while others are told. */
static void tell(struct turn *t)
{
    struct image_cache *cache = t->cache;
    if (cache->stopping)
        return;
    pthread_mutex_unlock(&cache->lock);
    if (t->err.kind == ERR_NOT_FOUND)
        log_info(cache->options.maybe_log, "image not found", LOG_STR("image", t->image),
                 LOG_ERR(&t->err));
    else if (t->err.kind != ERR_NONE)
        log_warn(cache->options.maybe_log, "image could not be looked at",
                 LOG_STR("image", t->image), LOG_ERR(&t->err));
    if (cache->options.on_change) {
        vec_each(&t->told.names, struct image_name *, name)
            cache->options.on_change(cache->options.ctx, (*name)->image);
    }
    pthread_mutex_lock(&cache->lock);
}

static void run_turn(struct image_cache *cache, struct image_name *name)
{
    struct ask_host *host = name->host;
    int64_t now_ns = clock_mono_ns(cache->options.clock);
    struct turn t = { .cache = cache,
                      .name = name,
                      .maybe_keys = name->maybe_keys ? keyring_ref(name->maybe_keys) : NULL,
                      .forced = name->forced || cache->options.disabled,
                      .asked_ns = now_ns };
    t.image = arena_str(&t.arena, name->image);
    name->forced = false;
    host->name_count++; /* it stays while we are at it, even if its names do not */
    enum ask_outcome outcome = take_turn(&t);
    image_cache_metrics_asked(cache, outcome, clock_mono_ns(cache->options.clock) - now_ns);
    tell(&t);
    vec_each(&t.told.names, struct image_name *, it)
        image_name_unref(cache, *it);
    vec_done(&t.told.names);

    host->running--;
    if (host->listed) /* there may be a thread that let it wait for its share */
        pthread_cond_signal(&cache->work);
    image_cache_host_leave(cache, host);
    keyring_unref(t.maybe_keys);
    arena_done(&t.arena);
}

static void *thread_main(void *arg)
{
    struct image_cache *cache = arg;
    pthread_mutex_lock(&cache->lock);
    while (!cache->stopping) {
        struct image_name *name = queue_take(cache);
        if (name)
            run_turn(cache, name);
        else
            pthread_cond_wait(&cache->work, &cache->lock);
    }
    pthread_mutex_unlock(&cache->lock);
    return NULL;
}

int image_cache_start(struct image_cache *cache, struct err *err)
{
    cache->threads = kv_calloc(cache->options.threads, sizeof *cache->threads);
    while (cache->thread_count < cache->options.threads) {
        if (thread_start(&cache->threads[cache->thread_count], "image-ask", thread_main, cache,
                         err) < 0)
            return err_wrap(err, "image cache");
        cache->thread_count++;
    }
    return 0;
}

void image_cache_stop(struct image_cache *cache)
{
    pthread_mutex_lock(&cache->lock);
    cache->stopping = true;
    pthread_cond_broadcast(&cache->work);
    pthread_mutex_unlock(&cache->lock);
    for (uint32_t i = 0; i < cache->thread_count; i++)
        pthread_join(cache->threads[i], NULL);
    free(cache->threads);

    while (cache->hosts_ready) {
        struct ask_host *host = cache->hosts_ready;
        hosts_remove(cache, NULL, host);
        host->name_count++; /* until we are done with it */
        for (struct image_name *name;
             (name = list_take(&host->urgent)) || (name = list_take(&host->renewals));)
            name_finish(cache, name, 0);
        image_cache_host_leave(cache, host);
    }
}
