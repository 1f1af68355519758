/* Making groups.
 *
 * The name follows from the rules, so making a group is safe to repeat and to do in two places at once: who
 * comes second is told that it exists, reads it, finds its own rules in it and is content. If it has other
 * rules (twelve digits met by chance, or somebody edited the group) a longer name is taken, and nobody's
 * object is touched.
 */
#include "compat/nfg_cache_inner.h"

#include "base/vec.h"
#include "codec/duration.h"

#include <stdio.h>

static const uint32_t name_digits[] = { 12, 20, 64 };

/* --- what is written --- */

static void add_annotation(struct json_build *b, json_mut *to, const char *key,
                           const char *maybe_value)
{
    if (maybe_value && maybe_value[0])
        json_set_str(b, to, key, str_of(maybe_value));
}

static bool list_has(struct str list, struct str item)
{
    struct str head;
    while (list.len) {
        str_cut(list, ',', &head, &list);
        if (str_eq(head, item))
            return true;
    }
    return false;
}

/* Those that the object names already (other processes know others), then ours, NFG_IMAGES_MAX in all. */
static void add_images(struct json_build *b, json_mut *to, const struct group *group)
{
    AUTO_BUF list = { 0 };
    uint32_t count = 0;
    if (group->maybe_seen) {
        const struct str_map *had = &group->maybe_seen->object->meta.annotations;
        buf_add(&list, str_map_get(had, STR(NFG_ANNOTATION_IMAGES)));
        count = list.len > 0;
        for (size_t i = 0; i < list.len; i++)
            count += list.p[i] == ',';
    }
    for (uint32_t i = 0; i < group->image_count && count < NFG_IMAGES_MAX; i++) {
        if (list_has(buf_str(&list), str_of(group->images[i])))
            continue;
        buf_addf(&list, "%s%s", list.len ? "," : "", group->images[i]);
        count++;
    }
    add_annotation(b, to, NFG_ANNOTATION_IMAGES, list.p);
}

static json_mut *annotations(struct nfg_cache *cache, struct json_build *b,
                             const struct group *group)
{
    const struct clock *clock = cache->options.clock;
    char last_used[TIME_TEXT_MAX], weight[24];
    json_mut *to = json_new_object(b);
    int64_t idle_us = (clock_mono_ns(clock) - used_get(&group->used_ns)) / 1000;
    time_format(clock_wall_us(clock) - idle_us, last_used);
    snprintf(weight, sizeof weight, "%lld", (long long)group->weight);
    add_images(b, to, group);
    add_annotation(b, to, NFG_ANNOTATION_IMAGE_DIGEST, group->image_digest);
    add_annotation(b, to, NFG_ANNOTATION_ARTIFACT_DIGEST, group->artifact);
    add_annotation(b, to, NFG_ANNOTATION_SET_TAG, group->tag);
    add_annotation(b, to, NFG_ANNOTATION_SET_WEIGHT, group->weight ? weight : NULL);
    add_annotation(b, to, NFG_ANNOTATION_LAST_USED, last_used);
    return to;
}

/* The whole object, around rules that are JSON already. */
static void group_body(struct nfg_cache *cache, const struct group *group, struct buf *out)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *meta = json_new_object(&b), *labels = json_mut_object(&b, meta, STR("labels"));
    json_set_str(&b, meta, "name", group->name);
    json_set_str(&b, labels, NFG_LABEL_MANAGER, STR("karve"));
    json_set_str(&b, labels, NFG_LABEL_KIND, STR("image-compat"));
    json_set(&b, meta, STR("annotations"), annotations(cache, &b, group));
    buf_addz(out, "{\"metadata\":");
    json_write_mut(meta, out);
    buf_addz(out, ",\"spec\":{\"featureGroupRules\":");
    nfg_rules_write(group->rules, out);
    buf_addz(out, "}}");
}

/* --- making one --- */

static struct group *group_of(struct nfg_cache *cache, struct str rules)
{
    return str_table_get(&cache->by_rules, rules);
}

static void keep_object(struct nfg_cache *cache, const struct object *object)
{
    pthread_rwlock_wrlock(&cache->lock);
    seen_put(cache, object, true);
    pthread_rwlock_unlock(&cache->lock);
}

/* The rules, and the entries that refer to them, move to the group of another name. */
static void group_move(struct nfg_cache *cache, struct group *from, struct str name)
{
    struct group *to = group_get(cache, name);
    if (to == from)
        return;
    KV_ASSERT(!to->rules.p); /* other rules have another digest */
    to->rules = from->rules;
    from->rules = STR_NONE;
    to->image_digest = take(&from->image_digest);
    to->artifact = take(&from->artifact);
    to->tag = take(&from->tag);
    to->weight = from->weight;
    seen_free(to->maybe_last);
    to->maybe_last = take(&from->maybe_last);
    for (uint32_t i = 0; i < from->image_count; i++)
        group_name_image(to, str_of(from->images[i]));
    used_touch(&to->used_ns, used_get(&from->used_ns));
    str_table_each(&cache->entries, slot) {
        struct entry *entry = slot->value;
        for (uint32_t i = 0; i < entry->count; i++) {
            if (entry->items[i].group != from)
                continue;
            entry->items[i].group = to;
            from->entry_count--;
            to->entry_count++;
        }
    }
    str_table_put(&cache->by_rules, to->rules, to); /* the key stays where it is */
    group_link(cache, from);
    group_link(cache, to);
}

/* Somebody has that name. */
static int read_group(struct nfg_cache *cache, struct object_ref ref, const struct object **out,
                      struct err *err)
{
    if (store_get(cache->options.store, ref, out, err) < 0)
        return err_wrap(err, "read NodeFeatureGroup %.*s", STR_ARG(ref.name));
    keep_object(cache, *out);
    if ((*out)->meta.deleted_us)
        return err_set(err, ERR_UNAVAILABLE, "NodeFeatureGroup %.*s is being deleted",
                       STR_ARG(ref.name));
    return 0;
}

/* `out` is what is there now, ours or not. */
static int create_group(struct nfg_cache *cache, struct object_ref ref, struct str body,
                        const struct object **out, struct err *err)
{
    const struct clock *clock = cache->options.clock;
    int64_t start_ns = clock_mono_ns(clock);
    if (store_create(cache->options.store, ref.kind, ref.namespace_, body, out, err) == 0) {
        keep_object(cache, *out);
        if (cache->creation_seconds)
            metric_observe(cache->creation_seconds,
                           (double)(clock_mono_ns(clock) - start_ns) / 1e9);
        log_info(cache->options.maybe_log, "created a NodeFeatureGroup",
                 LOG_STR("namespace", ref.namespace_), LOG_STR("group", ref.name));
        return 0;
    }
    if (err->kind != ERR_EXISTS)
        return err_wrap(err, "create NodeFeatureGroup %.*s", STR_ARG(ref.name));
    return read_group(cache, ref, out, err);
}

static bool object_fits(struct str rules, const struct object *object)
{
    return nfg_rules_equal(rules, node_feature_group_of(object));
}

/* By the name that has so many digits. 1: the name is somebody else's. */
static int make_named(struct nfg_cache *cache, struct str namespace_, struct str rules,
                      uint32_t digits, struct err *err)
{
    char name[NFG_NAME_MAX];
    AUTO_BUF body = { 0 }, key = { 0 };
    if (nfg_name(rules, digits, name, err) < 0)
        return -1;
    buf_addf(&key, "%.*s/%s", STR_ARG(namespace_), name);

    pthread_rwlock_wrlock(&cache->lock);
    const struct group *holder = str_table_get(&cache->groups, str_of(name));
    const struct seen *seen = str_table_get(&cache->seen, buf_str(&key));
    bool there = seen && !seen->object->meta.deleted_us;
    bool taken = (holder && holder->rules.p && !str_eq(holder->rules, rules)) ||
                 (there && !object_fits(rules, seen->object));
    if (!taken) {
        group_move(cache, group_of(cache, rules), str_of(name));
        group_body(cache, group_of(cache, rules), &body);
    }
    pthread_rwlock_unlock(&cache->lock);
    if (taken || there)
        return taken;

    struct object_ref ref = { &node_feature_group_kind, namespace_, str_of(name) };
    AUTO_OBJECT object = NULL;
    int rc = create_group(cache, ref, buf_str(&body), &object, err);
    if (rc < 0 && err->kind == ERR_NOT_FOUND) /* it went between the two calls */
        rc = create_group(cache, ref, buf_str(&body), &object, err);
    if (rc < 0)
        return -1;
    return !object_fits(rules, object);
}

static void note_success(struct nfg_cache *cache, struct str rules)
{
    pthread_rwlock_wrlock(&cache->lock);
    struct group *group = group_of(cache, rules);
    free(take(&group->maybe_err));
    group->failures = 0;
    group->retry_ns = 0;
    pthread_rwlock_unlock(&cache->lock);
}

static void note_failure(struct nfg_cache *cache, struct str rules, const struct err *err)
{
    pthread_rwlock_wrlock(&cache->lock);
    struct group *group = group_of(cache, rules);
    int64_t wait_ns = NFG_RETRY_NS << (group->failures < 10 ? group->failures : 10);
    if (!group->maybe_err)
        group->maybe_err = kv_malloc(sizeof *group->maybe_err);
    *group->maybe_err = *err;
    group->failures++;
    group->retry_ns = clock_mono_ns(cache->options.clock) +
                      (wait_ns < NFG_RETRY_MAX_NS ? wait_ns : NFG_RETRY_MAX_NS);
    due_by(cache, group->retry_ns);
    pthread_rwlock_unlock(&cache->lock);
}

int group_make(struct nfg_cache *cache, struct str namespace_, struct str rules, struct err *err)
{
    int rc = 1;
    for (size_t i = 0; rc > 0 && i < KV_COUNT_OF(name_digits); i++)
        rc = make_named(cache, namespace_, rules, name_digits[i], err);
    if (rc > 0)
        rc = err_set(err, ERR_CONFLICT,
                     "the NodeFeatureGroups " NFG_PREFIX "... of all lengths have other rules");
    if (rc == 0)
        note_success(cache, rules);
    else
        note_failure(cache, rules, err);
    return rc;
}

/* --- saying that it is used --- */

bool group_needs_stamp(struct nfg_cache *cache, const struct group *group)
{
    const struct clock *clock = cache->options.clock;
    if (!group->sound || !group->rules.p || !seen_is_ours(group->maybe_seen->object))
        return false;
    int64_t used_us =
        clock_wall_us(clock) - (clock_mono_ns(clock) - used_get(&group->used_ns)) / 1000;
    return used_us - seen_last_used_us(group->maybe_seen->object) >= cache->stamp_ns / 1000;
}

void group_stamp(struct nfg_cache *cache, struct str namespace_, struct group *group)
{
    AUTO_OBJECT object = NULL;
    AUTO_OBJECT before = NULL;
    AUTO_BUF patch = { 0 };
    AUTO_JSON_BUILD b;
    struct err err = { 0 };
    json_build_init(&b);
    pthread_rwlock_rdlock(&cache->lock);
    if (group->maybe_seen) {
        before = object_ref(group->maybe_seen->object);
        json_mut *root = json_new_object(&b), *meta = json_mut_object(&b, root, STR("metadata"));
        json_set(&b, meta, STR("annotations"), annotations(cache, &b, group));
        json_write_mut(root, &patch);
    }
    pthread_rwlock_unlock(&cache->lock);
    if (!before)
        return;

    struct object_ref ref = { &node_feature_group_kind, namespace_, group->name };
    if (store_patch(cache->options.store, ref, (struct patch_options){ .type = PATCH_MERGE },
                    buf_str(&patch), &object, &err) == 0) {
        keep_object(cache, object);
        return;
    }
    if (err.kind == ERR_NOT_FOUND) {
        pthread_rwlock_wrlock(&cache->lock);
        seen_drop(cache, before);
        pthread_rwlock_unlock(&cache->lock);
    }
    log_warn(cache->options.maybe_log, "could not note the use of a NodeFeatureGroup",
             LOG_STR("group", ref.name), LOG_ERR(&err));
}

/* --- an image --- */

struct publishing {
    struct nfg_cache *cache;
    struct str image;
    const struct image_facts *facts;
    VEC(const struct compat_set *) sets; /* with different rules, in order */
    VEC(struct str) artifacts;           /* of each */
    VEC(struct str) rules;               /* of those that can be groups; their groups own them */
    struct err first;                    /* trouble */
};

static void add_sets(struct publishing *p, const struct image_spec *spec)
{
    for (uint32_t i = 0; spec->maybe_spec && i < spec->maybe_spec->set_count; i++) {
        const struct compat_set *set = &spec->maybe_spec->sets[i];
        bool known = nfg_rules_are_empty(set->rules_json);
        vec_each(&p->sets, const struct compat_set *, other)
            known = known || str_eq((*other)->rules_json, set->rules_json);
        if (known)
            continue;
        vec_push(&p->sets, set);
        vec_push(&p->artifacts, spec->artifact);
    }
}

static void collect_sets(struct publishing *p)
{
    add_sets(p, &p->facts->spec);
    for (uint32_t i = 0; i < p->facts->platform_count; i++)
        add_sets(p, &p->facts->platforms[i].spec);
}

static void keep_first(struct publishing *p, const struct err *err)
{
    if (p->first.kind == ERR_NONE)
        p->first = *err;
}

static void set_text(char **to, struct str text)
{
    free(*to);
    *to = str_dup(str_sub(text, 0, str_utf8_cut(text, NFG_TEXT_BYTES_MAX)));
}

/* By the first name that no other rules of ours have. */
static int group_for(struct nfg_cache *cache, struct str canonical, struct group **out,
                     struct err *err)
{
    for (size_t i = 0; i < KV_COUNT_OF(name_digits); i++) {
        char name[NFG_NAME_MAX];
        if (nfg_name(canonical, name_digits[i], name, err) < 0)
            return -1;
        *out = group_get(cache, str_of(name));
        if (!(*out)->rules.p)
            return 0;
    }
    return err_set(err, ERR_INTERNAL, "other rules have the same SHA-256");
}

static int adopt_rules(struct nfg_cache *cache, struct str canonical, struct group **out,
                       struct err *err)
{
    *out = str_table_get(&cache->by_rules, canonical);
    if (*out)
        return 0;
    if (nfg_rules_check(canonical, err) < 0 || group_for(cache, canonical, out, err) < 0)
        return -1;
    str_table_put(&cache->by_rules, canonical, *out);
    (*out)->rules = str_table_slot(&cache->by_rules, canonical)->key;
    group_link(cache, *out);
    return 0;
}

/* What is needed from now on, even if it cannot be made at once. */
static void adopt_sets(struct publishing *p)
{
    struct nfg_cache *cache = p->cache;
    for (size_t i = 0; i < p->sets.count; i++) {
        const struct compat_set *set = p->sets.items[i];
        struct group *group;
        struct err err = { 0 };
        pthread_rwlock_wrlock(&cache->lock);
        if (adopt_rules(cache, set->rules_json, &group, &err) == 0) {
            used_touch(&group->used_ns, clock_mono_ns(cache->options.clock));
            group_name_image(group, p->image);
            set_text(&group->image_digest, p->facts->digest);
            set_text(&group->artifact, p->artifacts.items[i]);
            set_text(&group->tag, set->tag);
            group->weight = set->weight;
            vec_push(&p->rules, group->rules);
        } else {
            err_wrap(&err, "image %s: set %zu", STR_SHOWN(p->image), i + 1);
            keep_first(p, &err);
        }
        pthread_rwlock_unlock(&cache->lock);
    }
}

/* A group that could not be made a moment ago fails for the same reason, without asking: a pod that is
 * scheduled again and again is no reason to ask a server again and again. */
static int make_or_stamp(struct nfg_cache *cache, struct str namespace_, struct str rules,
                         struct err *err)
{
    pthread_rwlock_rdlock(&cache->lock);
    struct group *group = group_of(cache, rules);
    bool sound = group->sound, stamp = group_needs_stamp(cache, group);
    bool waits = !sound && group->retry_ns > clock_mono_ns(cache->options.clock);
    if (waits)
        *err = *group->maybe_err;
    pthread_rwlock_unlock(&cache->lock);
    if (waits)
        return -1;
    if (!sound)
        return group_make(cache, namespace_, rules, err);
    if (stamp)
        group_stamp(cache, namespace_, group);
    return 0;
}

static void make_groups(struct publishing *p, struct str namespace_)
{
    vec_each(&p->rules, struct str, rules) {
        struct err err = { 0 };
        if (make_or_stamp(p->cache, namespace_, *rules, &err) < 0) {
            err_wrap(&err, "image %s", STR_SHOWN(p->image));
            keep_first(p, &err);
        }
    }
}

static void remember_groups(struct publishing *p, struct arena *arena, struct nfg_names *out)
{
    struct nfg_cache *cache = p->cache;
    AUTO_FREE struct group **groups = kv_calloc(p->rules.count + 1, sizeof(struct group *));
    uint32_t count = 0, sound = 0;
    pthread_rwlock_wrlock(&cache->lock);
    vec_each(&p->rules, struct str, rules) {
        groups[count] = group_of(cache, *rules);
        sound += groups[count++]->sound;
    }
    if (sound) {
        entry_put(cache, p->image, groups, count);
        entry_names(str_table_get(&cache->entries, p->image), arena, out);
    } else {
        entry_drop(cache, p->image, false);
    }
    pthread_rwlock_unlock(&cache->lock);
}

static char *namespace_copy(struct nfg_cache *cache)
{
    pthread_rwlock_rdlock(&cache->lock);
    char *copy = kv_strdup(cache->namespace_);
    pthread_rwlock_unlock(&cache->lock);
    return copy;
}

static void publish_sets(struct publishing *p, struct arena *arena, struct nfg_names *out)
{
    pthread_mutex_lock(&p->cache->store_lock);
    AUTO_FREE char *namespace_ = namespace_copy(p->cache);
    struct err unknown = { 0 };
    adopt_sets(p);
    if (namespace_[0]) {
        make_groups(p, str_of(namespace_));
    } else if (p->rules.count) {
        err_set(&unknown, ERR_UNAVAILABLE, "the namespace of nfd-master is not known");
        keep_first(p, &unknown);
    }
    remember_groups(p, arena, out);
    pthread_mutex_unlock(&p->cache->store_lock);
}

int nfg_cache_publish(struct nfg_cache *cache, struct str image, const struct image_facts *facts,
                      struct arena *arena, struct nfg_names *out, struct err *err)
{
    struct publishing p = { .cache = cache, .image = image, .facts = facts };
    struct nfg_names names = { .items = arena_array(arena, struct str, 0) };
    if (cache->options.mode != NFG_OFF) {
        collect_sets(&p);
        if (p.sets.count > cache->options.sets_max)
            err_set(&p.first, ERR_CAPACITY,
                    "image %s: has %zu sets with different rules, at most %u", STR_SHOWN(image),
                    p.sets.count, cache->options.sets_max);
        else
            publish_sets(&p, arena, &names);
    }
    vec_done(&p.sets);
    vec_done(&p.artifacts);
    vec_done(&p.rules);
    if (p.first.kind != ERR_NONE) {
        if (err)
            *err = p.first;
        return -1;
    }
    *out = names;
    return 0;
}
