/* The document's cache: images and the names of their groups.
 *
 * A lookup takes the lock for reading, walks the entry and copies the names of the groups that are sound,
 * which observing keeps up to date. Only when that is not what the lookup before saw (a group is gone, or
 * back) it looks again with the lock for writing, to note it: so a loss is counted and logged once, however
 * many look. That somebody looked is noted in atomics.
 */
#include "compat/nfg_cache_inner.h"

#include "codec/selector.h"

/* --- metrics --- */

/* A lookup takes well under a microsecond; 100 ns to 52 ms. */
#define VALIDATION_BUCKETS 20
static double validation_buckets[VALIDATION_BUCKETS];

static struct metric *one_metric(struct metrics *maybe_metrics, const struct metric_desc *desc)
{
    return maybe_metrics ? metric_get(metrics_family(maybe_metrics, desc), NULL) : NULL;
}

static void fill_buckets(void)
{
    metric_exponential_buckets(100e-9, 2, VALIDATION_BUCKETS, validation_buckets);
}

static void cache_metrics(struct nfg_cache *cache, struct metrics *maybe_metrics)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, fill_buckets);
    cache->avg_groups =
        one_metric(maybe_metrics,
                   &(struct metric_desc){ .name = "nf_avg_nfgs_per_image",
                                          .help = "NodeFeatureGroups per cached image, on average.",
                                          .type = METRIC_GAUGE });
    cache->creation_seconds =
        one_metric(maybe_metrics,
                   &(struct metric_desc){ .name = "nf_nfg_creation_duration_seconds",
                                          .help = "How long it took to create a NodeFeatureGroup.",
                                          .type = METRIC_HISTOGRAM,
                                          .buckets = metric_duration_buckets,
                                          .bucket_count = metric_duration_bucket_count });
    cache->validation_seconds = one_metric(
        maybe_metrics, &(struct metric_desc){
                           .name = "nf_cache_validation_duration_seconds",
                           .help = "How long it took to see which groups of an image are there.",
                           .type = METRIC_HISTOGRAM,
                           .buckets = validation_buckets,
                           .bucket_count = VALIDATION_BUCKETS });
    cache->partial_invalidations = one_metric(
        maybe_metrics,
        &(struct metric_desc){ .name = "nf_cache_partial_invalidations_total",
                               .help = "Times that some groups of a cached image were gone.",
                               .type = METRIC_COUNTER });
}

static void show_average(struct nfg_cache *cache)
{
    uint32_t images = cache->entries.live_count;
    if (cache->avg_groups)
        metric_set(cache->avg_groups, images ? (double)cache->item_count / (double)images : 0);
}

/* --- life --- */

struct nfg_cache *nfg_cache_new(struct nfg_cache_options options)
{
    KV_ASSERT(options.mode == NFG_OFF || options.store);
    struct nfg_cache *cache = kv_calloc(1, sizeof *cache);
    cache->options = options;
    if (cache->options.sets_max == 0)
        cache->options.sets_max = COMPAT_SETS_MAX;
    cache->idle_ns = options.idle_ns ? options.idle_ns : NFG_IDLE_NS;
    cache->stamp_ns = cache->idle_ns / 4 < NFG_STAMP_NS ? cache->idle_ns / 4 : NFG_STAMP_NS;
    cache->namespace_ = str_dup(options.namespace_.p ? options.namespace_ : STR(""));
    cache->options.namespace_ = STR_NONE;
    pthread_mutex_init(&cache->store_lock, NULL);
    pthread_rwlock_init(&cache->lock, NULL);
    atomic_init(&cache->due_ns, options.mode == NFG_OFF ? INT64_MAX : clock_mono_ns(options.clock));
    cache_metrics(cache, options.maybe_metrics);
    return cache;
}

void group_free(struct group *group)
{
    for (uint32_t i = 0; i < group->image_count; i++)
        free(group->images[i]);
    free(group->images);
    free(group->image_digest);
    free(group->artifact);
    free(group->tag);
    free(group->maybe_err);
    seen_free(group->maybe_last);
    free(group);
}

void nfg_cache_free(struct nfg_cache *cache)
{
    if (!cache)
        return;
    str_table_each(&cache->entries, slot)
        free(slot->value);
    str_table_each(&cache->groups, slot)
        group_free(slot->value);
    str_table_each(&cache->seen, slot)
        seen_free(slot->value);
    str_table_done(&cache->entries);
    str_table_done(&cache->groups);
    str_table_done(&cache->by_rules);
    str_table_done(&cache->seen);
    metric_unref(cache->avg_groups);
    metric_unref(cache->creation_seconds);
    metric_unref(cache->validation_seconds);
    metric_unref(cache->partial_invalidations);
    pthread_rwlock_destroy(&cache->lock);
    pthread_mutex_destroy(&cache->store_lock);
    free(cache->namespace_);
    free(cache);
}

void due_by(struct nfg_cache *cache, int64_t at_ns)
{
    if (cache->options.mode == NFG_OFF)
        return;
    int64_t due_ns = atomic_load_explicit(&cache->due_ns, memory_order_relaxed);
    while (at_ns < due_ns && !atomic_compare_exchange_weak(&cache->due_ns, &due_ns, at_ns))
        continue;
}

int64_t nfg_cache_due_ns(struct nfg_cache *cache)
{
    return atomic_load_explicit(&cache->due_ns, memory_order_relaxed);
}

/* --- groups and entries --- */

struct group *group_get(struct nfg_cache *cache, struct str name)
{
    struct group *group = str_table_get(&cache->groups, name);
    if (group)
        return group;
    group = kv_calloc(1, sizeof *group);
    atomic_init(&group->used_ns, clock_mono_ns(cache->options.clock));
    str_table_put(&cache->groups, name, group);
    group->name = str_table_slot(&cache->groups, name)->key;
    group_link(cache, group);
    return group;
}

void group_name_image(struct group *group, struct str image)
{
    if (image.len == 0 || image.len > NFG_IMAGE_BYTES_MAX || group->image_count == NFG_IMAGES_MAX)
        return;
    for (uint32_t i = 0; i < group->image_count; i++) {
        if (str_eqz(image, group->images[i]))
            return;
    }
    group->images = kv_realloc(group->images, group->image_count + 1, sizeof *group->images);
    group->images[group->image_count++] = str_dup(image);
}

static void entry_touch(struct entry *entry, int64_t now_ns)
{
    used_touch(&entry->used_ns, now_ns);
    for (uint32_t i = 0; i < entry->count; i++)
        used_touch(&entry->items[i].group->used_ns, now_ns);
}

static void entry_free(struct nfg_cache *cache, struct entry *entry)
{
    for (uint32_t i = 0; i < entry->count; i++)
        entry->items[i].group->entry_count--;
    cache->item_count -= entry->count;
    free(entry);
}

void entry_drop(struct nfg_cache *cache, struct str image, bool expired)
{
    struct entry *entry = str_table_remove(&cache->entries, image);
    if (!entry)
        return;
    if (!expired)
        entry_touch(entry, clock_mono_ns(cache->options.clock));
    entry_free(cache, entry);
    show_average(cache);
}

void entry_put(struct nfg_cache *cache, struct str image, struct group *const *groups,
               uint32_t count)
{
    struct entry *entry = kv_calloc(1, sizeof *entry + count * sizeof *entry->items);
    entry_drop(cache, image, false);
    entry->count = count;
    for (uint32_t i = 0; i < count; i++) {
        groups[i]->entry_count++;
        entry->items[i] = (struct entry_item){ groups[i], .dropped = !groups[i]->sound };
    }
    cache->item_count += count;
    entry_touch(entry, clock_mono_ns(cache->options.clock));
    str_table_put(&cache->entries, image, entry);
    show_average(cache);
}

static bool names_are_sane(const struct str *names, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!names[i].p || dns1123_subdomain_problem(names[i]))
            return false;
    }
    return true;
}

void nfg_cache_update(struct nfg_cache *cache, struct str image, const struct str *names,
                      uint32_t count)
{
    if (count == 0)
        return;
    if (!names_are_sane(names, count)) {
        log_warn(cache->options.maybe_log,
                 "damaged list of NodeFeatureGroups, forgetting the image",
                 LOG_STR("image", image));
        nfg_cache_remove(cache, image);
        return;
    }
    AUTO_FREE struct group **groups = kv_calloc(count, sizeof(struct group *));
    pthread_rwlock_wrlock(&cache->lock);
    for (uint32_t i = 0; i < count; i++)
        groups[i] = group_get(cache, names[i]);
    entry_put(cache, image, groups, count);
    /* Nobody has looked yet: what is not there is to be noticed. */
    struct entry *entry = str_table_get(&cache->entries, image);
    for (uint32_t i = 0; i < count; i++)
        entry->items[i].dropped = false;
    pthread_rwlock_unlock(&cache->lock);
}

void nfg_cache_remove(struct nfg_cache *cache, struct str image)
{
    pthread_rwlock_wrlock(&cache->lock);
    entry_drop(cache, image, false);
    pthread_rwlock_unlock(&cache->lock);
}

void nfg_cache_use(struct nfg_cache *cache, struct str image)
{
    int64_t now_ns = clock_mono_ns(cache->options.clock);
    pthread_rwlock_rdlock(&cache->lock);
    struct entry *entry = str_table_get(&cache->entries, image);
    if (entry)
        entry_touch(entry, now_ns);
    pthread_rwlock_unlock(&cache->lock);
}

/* --- looking up --- */

void entry_names(const struct entry *entry, struct arena *arena, struct nfg_names *out)
{
    struct str *names = arena_array(arena, struct str, entry->count);
    *out = (struct nfg_names){ .items = names };
    for (uint32_t i = 0; i < entry->count; i++) {
        const struct group *group = entry->items[i].group;
        if (group->sound)
            names[out->count++] = arena_str(arena, group->name);
        else
            out->missing++;
    }
}

static bool entry_has_changed(const struct entry *entry)
{
    for (uint32_t i = 0; i < entry->count; i++) {
        if (entry->items[i].dropped == entry->items[i].group->sound)
            return true;
    }
    return false;
}

/* Notes what is gone and what is back; returns how many are newly gone. */
static uint32_t entry_settle(struct entry *entry)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < entry->count; i++) {
        struct entry_item *item = &entry->items[i];
        lost += !item->group->sound && !item->dropped;
        item->dropped = !item->group->sound;
    }
    return lost;
}

/* Not as the last lookup saw it: with the lock for writing. */
static bool settle_and_get(struct nfg_cache *cache, struct str image, struct arena *arena,
                           struct nfg_names *out)
{
    uint32_t lost = 0;
    pthread_rwlock_wrlock(&cache->lock);
    struct entry *entry = str_table_get(&cache->entries, image);
    if (entry) {
        lost = entry_settle(entry);
        entry_touch(entry, clock_mono_ns(cache->options.clock));
        entry_names(entry, arena, out);
        if (out->count == 0)
            entry_drop(cache, image, false);
    }
    pthread_rwlock_unlock(&cache->lock);
    if (lost && out->count) {
        if (cache->partial_invalidations)
            metric_inc(cache->partial_invalidations);
        log_info(cache->options.maybe_log, "some NodeFeatureGroups of an image are gone",
                 LOG_STR("image", image), LOG_INT("dropped", lost), LOG_INT("left", out->count));
    }
    return entry && out->count;
}

static bool get_names(struct nfg_cache *cache, struct str image, struct arena *arena,
                      struct nfg_names *out, int64_t now_ns)
{
    pthread_rwlock_rdlock(&cache->lock);
    struct entry *entry = str_table_get(&cache->entries, image);
    bool changed = entry && entry_has_changed(entry);
    if (entry && !changed) {
        entry_touch(entry, now_ns);
        entry_names(entry, arena, out);
    }
    pthread_rwlock_unlock(&cache->lock);
    if (changed)
        return settle_and_get(cache, image, arena, out);
    return out->count > 0;
}

bool nfg_cache_get_valid(struct nfg_cache *cache, struct str image, struct arena *arena,
                         struct nfg_names *out)
{
    int64_t start_ns = clock_mono_ns(cache->options.clock);
    *out = (struct nfg_names){ .items = arena_array(arena, struct str, 0) };
    bool hit = get_names(cache, image, arena, out, start_ns);
    if (cache->validation_seconds)
        metric_observe(cache->validation_seconds,
                       (double)(clock_mono_ns(cache->options.clock) - start_ns) / 1e9);
    return hit;
}

static enum match seen_member(const struct seen *seen, struct str node, int64_t now_ns)
{
    if (str_sorted_has(seen->nodes, seen->node_count, node))
        return MATCH_YES;
    return seen_is_evaluated(seen, now_ns) ? MATCH_NO : MATCH_UNKNOWN;
}

enum match nfg_cache_member(struct nfg_cache *cache, struct str rules_json, struct str node)
{
    enum match match = MATCH_UNKNOWN;
    if (nfg_rules_are_empty(rules_json))
        return MATCH_YES;
    int64_t now_ns = clock_mono_ns(cache->options.clock);
    pthread_rwlock_rdlock(&cache->lock);
    struct group *group = str_table_get(&cache->by_rules, rules_json);
    if (group)
        used_touch(&group->used_ns, now_ns);
    if (group && group->sound)
        match = seen_member(group->maybe_seen, node, now_ns);
    if (match == MATCH_UNKNOWN && group && group->maybe_last &&
        !str_sorted_has(group->maybe_last->nodes, group->maybe_last->node_count, node))
        match = MATCH_NO;
    pthread_rwlock_unlock(&cache->lock);
    return match;
}
