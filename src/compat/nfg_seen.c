/* What there is: the NodeFeatureGroups of all namespaces as a watch tells them, or as our own writes and
 * reads show them before it does.
 *
 * The watch is behind our writes. So an older state of an object that we wrote does not replace ours, and the
 * end of an object does not remove another one of its name (the uid tells). What the watch never tells (the
 * object was made and deleted while it was broken) is asked for by nfg_cache_tend.
 */
#include "compat/nfg_cache_inner.h"

#include "codec/duration.h"

static struct str seen_key(struct buf *out, const struct object *object)
{
    buf_addf(out, "%.*s/%.*s", STR_ARG(object->meta.namespace_), STR_ARG(object->meta.name));
    return buf_str(out);
}

void seen_free(struct seen *seen)
{
    if (!seen)
        return;
    object_unref(seen->object);
    free(seen->nodes);
    free(seen);
}

static void seen_set_object(struct seen *seen, const struct object *object)
{
    const struct node_feature_group *group = node_feature_group_of(object);
    size_t count = group->status.nodes.count;
    object_ref(object);
    object_unref(seen->object);
    free(seen->nodes);
    seen->object = object;
    seen->nodes = kv_calloc(count + 1, sizeof *seen->nodes);
    for (size_t i = 0; i < count; i++)
        seen->nodes[i] = group->status.nodes.items[i].name;
    seen->node_count = (uint32_t)str_sort_unique(seen->nodes, count);
    seen->had_nodes = seen->had_nodes || count > 0;
}

static bool object_is_sound(const struct group *group, const struct object *object)
{
    return !object->meta.deleted_us &&
           (!group->rules.p || nfg_rules_equal(group->rules, node_feature_group_of(object)));
}

/* Who was in a group stays the answer when it is lost, until nfd-master has looked at the next one: what kept a node
 * out does not let it in by being deleted. */
static void keep_members(struct nfg_cache *cache, struct group *group)
{
    int64_t now_ns = clock_mono_ns(cache->options.clock);
    if (!group->sound || !group->rules.p || !seen_is_evaluated(group->maybe_seen, now_ns))
        return;
    seen_free(group->maybe_last);
    group->maybe_last = kv_calloc(1, sizeof *group->maybe_last);
    seen_set_object(group->maybe_last, group->maybe_seen->object);
}

static void group_judge(struct nfg_cache *cache, struct group *group)
{
    bool was_sound = group->sound;
    group->sound = group->maybe_seen && object_is_sound(group, group->maybe_seen->object);
    if (group->sound && group->maybe_seen->had_nodes)
        seen_free(take(&group->maybe_last));
    if (was_sound && !group->sound)
        due_by(cache, clock_mono_ns(cache->options.clock));
}

void group_link(struct nfg_cache *cache, struct group *group)
{
    AUTO_BUF key = { 0 };
    buf_addf(&key, "%s/%.*s", cache->namespace_, STR_ARG(group->name));
    struct seen *seen = str_table_get(&cache->seen, buf_str(&key));
    if (seen != group->maybe_seen)
        keep_members(cache, group);
    group->maybe_seen = seen;
    group_judge(cache, group);
}

static struct group *group_of_object(struct nfg_cache *cache, const struct object *object)
{
    return str_eqz(object->meta.namespace_, cache->namespace_)
               ? str_table_get(&cache->groups, object->meta.name)
               : NULL;
}

static void link_object(struct nfg_cache *cache, const struct object *object, struct seen *seen)
{
    struct group *group = group_of_object(cache, object);
    if (!group)
        return;
    group->maybe_seen = seen;
    group_judge(cache, group);
}

static bool is_same(const struct object *a, const struct object *b)
{
    return str_eq(a->meta.uid, b->meta.uid);
}

void seen_put(struct nfg_cache *cache, const struct object *object, bool unconfirmed)
{
    AUTO_BUF key_text = { 0 };
    struct str key = seen_key(&key_text, object);
    struct seen *seen = str_table_get(&cache->seen, key);
    int64_t now_ns = clock_mono_ns(cache->options.clock);
    bool same = seen && is_same(seen->object, object);
    if (same && (unconfirmed || seen->unconfirmed) &&
        object->meta.resource_version < seen->object->meta.resource_version)
        return;
    struct group *group = group_of_object(cache, object);
    if (group && (!same || !object_is_sound(group, object)))
        keep_members(cache, group);
    if (!same) {
        struct seen *fresh = kv_calloc(1, sizeof *fresh);
        fresh->first_ns = now_ns;
        str_table_put(&cache->seen, key, fresh);
        seen_set_object(fresh, object);
        link_object(cache, object, fresh);
        seen_free(seen);
        seen = fresh;
    } else {
        seen_set_object(seen, object);
        link_object(cache, object, seen);
    }
    seen->unconfirmed = unconfirmed;
    seen->wrote_ns = now_ns;
    if (unconfirmed)
        due_by(cache, now_ns + NFG_CONFIRM_NS);
}

void seen_drop(struct nfg_cache *cache, const struct object *object)
{
    AUTO_BUF key_text = { 0 };
    struct str key = seen_key(&key_text, object);
    struct seen *seen = str_table_get(&cache->seen, key);
    if (!seen || !is_same(seen->object, object))
        return;
    struct group *group = group_of_object(cache, object);
    if (group)
        keep_members(cache, group);
    str_table_remove(&cache->seen, key);
    link_object(cache, object, NULL);
    seen_free(seen);
}

int64_t seen_last_used_us(const struct object *object)
{
    struct str text = str_map_get(&object->meta.annotations, STR(NFG_ANNOTATION_LAST_USED));
    int64_t us;
    if (text.p && time_parse(text, &us, NULL) == 0 && us > object->meta.created_us)
        return us;
    return object->meta.created_us;
}

void nfg_cache_observe(void *nfg_cache, const struct object *maybe_old,
                       const struct object *maybe_new)
{
    struct nfg_cache *cache = nfg_cache;
    const struct object *object = maybe_new ? maybe_new : maybe_old;
    if (!object || object->kind != &node_feature_group_kind)
        return;
    pthread_rwlock_wrlock(&cache->lock);
    if (maybe_new)
        seen_put(cache, maybe_new, false);
    else
        seen_drop(cache, maybe_old);
    pthread_rwlock_unlock(&cache->lock);
}

void nfg_cache_set_namespace(struct nfg_cache *cache, struct str namespace_)
{
    pthread_rwlock_wrlock(&cache->lock);
    if (!str_eqz(namespace_, cache->namespace_)) {
        log_info(cache->options.maybe_log, "NodeFeatureGroups are made in another namespace",
                 LOG_STR("namespace", namespace_), LOG_Z("before", cache->namespace_));
        free(cache->namespace_);
        cache->namespace_ = str_dup(namespace_);
        str_table_each(&cache->groups, slot) {
            struct group *group = slot->value;
            group->failures = 0;
            group->retry_ns = 0; /* elsewhere it may work */
            group_link(cache, group);
        }
        due_by(cache, clock_mono_ns(cache->options.clock));
    }
    pthread_rwlock_unlock(&cache->lock);
}
