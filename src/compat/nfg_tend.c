/* Looking after the groups: what is idle goes, what is needed and gone comes back.
 *
 * First, without the store, what is needed no more is forgotten: entries that nobody looked at, then groups
 * without use. What is left in the table of groups is needed. Then a list of what to do is made, and done
 * with no lock that lookups need.
 *
 * An object is deleted only if it says that it is ours, this process does not need it, and the last use that
 * it tells is long ago: that one may be another process's. The version in the precondition makes sure that it
 * has not told anything newer that the watch did not bring yet. An object that has just come into sight is
 * left alone for a while: whoever needs it may be starting, too.
 */
#include "compat/nfg_cache_inner.h"

#include "base/vec.h"

typedef VEC(const struct object *) object_vec;

struct tending {
    struct nfg_cache *cache;
    char *namespace_;
    int64_t now_ns, now_us;
    VEC(struct str) missing; /* rules of groups, which own them */
    VEC(struct group *) unstamped;
    object_vec doubtful, idle; /* references */
};

/* --- forgetting --- */

static void forget_entries(struct tending *t)
{
    struct str_table *entries = &t->cache->entries;
    /* Removing keeps the place: the walk goes on. The key goes with its entry. */
    str_table_each(entries, slot) {
        const struct entry *entry = slot->value;
        int64_t used_ns = used_get(&entry->used_ns);
        if (t->now_ns - used_ns < t->cache->idle_ns)
            continue;
        AUTO_FREE char *image = str_dup(slot->key);
        entry_drop(t->cache, (struct str){ image, slot->key.len }, true);
    }
}

static void forget_groups(struct tending *t)
{
    str_table_each(&t->cache->groups, slot) {
        struct group *group = slot->value;
        if (group->entry_count || t->now_ns - used_get(&group->used_ns) < t->cache->idle_ns)
            continue;
        if (group->rules.p)
            str_table_remove(&t->cache->by_rules, group->rules);
        str_table_remove(&t->cache->groups, group->name);
        group_free(group);
    }
}

/* --- deciding --- */

static void look_at_group(struct tending *t, struct group *group)
{
    if (!group->rules.p)
        return;
    if (group->sound) {
        if (group_needs_stamp(t->cache, group))
            vec_push(&t->unstamped, group);
    } else if (group->retry_ns <= t->now_ns) {
        vec_push(&t->missing, group->rules);
    } else {
        due_by(t->cache, group->retry_ns);
    }
}

static bool is_idle(const struct tending *t, const struct seen *seen)
{
    const struct meta *meta = &seen->object->meta;
    if (!seen_is_ours(seen->object) || meta->deleted_us)
        return false;
    if (str_eqz(meta->namespace_, t->namespace_) && str_table_has(&t->cache->groups, meta->name))
        return false;
    if (t->now_ns - seen->first_ns < t->cache->stamp_ns)
        return false;
    return t->now_us - seen_last_used_us(seen->object) >= t->cache->idle_ns / 1000;
}

static void look_at_seen(struct tending *t, const struct seen *seen)
{
    if (is_idle(t, seen)) {
        vec_push(&t->idle, object_ref(seen->object));
    } else if (seen->unconfirmed) {
        if (t->now_ns - seen->wrote_ns >= NFG_CONFIRM_NS)
            vec_push(&t->doubtful, object_ref(seen->object));
        else
            due_by(t->cache, seen->wrote_ns + NFG_CONFIRM_NS);
    }
}

/* Without a namespace nothing is needed as far as one can tell, and all that is known may be wrong. */
static void decide(struct tending *t)
{
    pthread_rwlock_wrlock(&t->cache->lock);
    t->namespace_ = kv_strdup(t->cache->namespace_);
    atomic_store(&t->cache->due_ns, t->now_ns + t->cache->stamp_ns);
    forget_entries(t);
    forget_groups(t);
    if (t->namespace_[0]) {
        str_table_each(&t->cache->groups, slot)
            look_at_group(t, slot->value);
        str_table_each(&t->cache->seen, slot)
            look_at_seen(t, slot->value);
    }
    pthread_rwlock_unlock(&t->cache->lock);
}

/* --- acting --- */

static void drop_object(struct nfg_cache *cache, const struct object *object)
{
    pthread_rwlock_wrlock(&cache->lock);
    seen_drop(cache, object);
    pthread_rwlock_unlock(&cache->lock);
}

/* The watch should have shown it by now. Only a clear "not found" is taken for gone. */
static void confirm(struct nfg_cache *cache, const struct object *object)
{
    AUTO_OBJECT now = NULL;
    struct err err = { 0 };
    struct object_ref ref = { object->kind, object->meta.namespace_, object->meta.name };
    if (store_get(cache->options.store, ref, &now, &err) == 0) {
        pthread_rwlock_wrlock(&cache->lock);
        seen_put(cache, now, true);
        pthread_rwlock_unlock(&cache->lock);
    } else if (err.kind == ERR_NOT_FOUND) {
        drop_object(cache, object);
    }
}

static void make_again(struct tending *t, struct str rules)
{
    struct err err = { 0 };
    if (group_make(t->cache, str_of(t->namespace_), rules, &err) < 0)
        log_warn(t->cache->options.maybe_log, "could not create a NodeFeatureGroup that is needed",
                 LOG_ERR(&err));
}

static void delete_idle(struct nfg_cache *cache, const struct object *object)
{
    struct err err = { 0 };
    const struct meta *meta = &object->meta;
    struct object_ref ref = { object->kind, meta->namespace_, meta->name };
    struct delete_options options = { .uid = meta->uid,
                                      .resource_version = meta->resource_version };
    if (store_remove(cache->options.store, ref, &options, &err) == 0) {
        log_info(cache->options.maybe_log, "deleted an idle NodeFeatureGroup",
                 LOG_STR("namespace", ref.namespace_), LOG_STR("group", ref.name));
        drop_object(cache, object);
    } else if (err.kind == ERR_NOT_FOUND) {
        drop_object(cache, object);
    } else if (err.kind != ERR_CONFLICT) { /* then somebody has just used it */
        log_warn(cache->options.maybe_log, "could not delete an idle NodeFeatureGroup",
                 LOG_STR("group", ref.name), LOG_ERR(&err));
    }
}

static void objects_done(object_vec *objects)
{
    vec_each(objects, const struct object *, object)
        object_unref(*object);
    vec_done(objects);
}

int64_t nfg_cache_tend(struct nfg_cache *cache)
{
    if (cache->options.mode == NFG_OFF)
        return INT64_MAX;
    const struct clock *clock = cache->options.clock;
    pthread_mutex_lock(&cache->store_lock);
    struct tending t = { .cache = cache,
                         .now_ns = clock_mono_ns(clock),
                         .now_us = clock_wall_us(clock) };
    decide(&t);
    vec_each(&t.doubtful, const struct object *, object)
        confirm(cache, *object);
    vec_each(&t.missing, struct str, rules)
        make_again(&t, *rules);
    vec_each(&t.unstamped, struct group *, group)
        group_stamp(cache, str_of(t.namespace_), *group);
    vec_each(&t.idle, const struct object *, object)
        delete_idle(cache, *object);
    pthread_mutex_unlock(&cache->store_lock);
    vec_done(&t.missing);
    vec_done(&t.unstamped);
    objects_done(&t.doubtful);
    objects_done(&t.idle);
    free(t.namespace_);
    return nfg_cache_due_ns(cache);
}
