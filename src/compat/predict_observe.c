/* What a node says of itself, feature by feature.
 *
 * Thousands of nodes say the same, and a node says it with thousands of kernel options. So a feature is not
 * taken apart before its hash: one that was observed before is the set that was made then. What is left
 * of a node like others is to hash what it says, and to compare pointers.
 *
 * What belongs to one node alone must not be learned even from the first: its name, serial numbers, and what
 * its pods bring (virtual network devices, volumes). It is not hashed either.
 */
#include "compat/predict_inner.h"

#include "api/bytes.h"
#include "base/vec.h"

/* --- what is a node's own --- */

static const struct str own_features[] = { { "network.virtual", 15 }, { "system.name", 11 } };

static const struct {
    struct str feature, element;
} own_elements[] = {
    { { "system.dmiid", 12 }, { "board_asset_tag", 15 } }, /* on EC2 the instance's id */
    { { "system.dmiid", 12 }, { "board_serial", 12 } },
    { { "system.dmiid", 12 }, { "chassis_asset_tag", 17 } },
    { { "system.dmiid", 12 }, { "chassis_serial", 14 } },
    { { "system.dmiid", 12 }, { "product_serial", 14 } },
    { { "system.dmiid", 12 }, { "product_uuid", 12 } },
};

/* Volumes come and go with pods. */
static const struct str open_ended = { "storage.block", 13 };
/* Of an instance. */
static const struct str own_attribute = { "serial", 6 };

static bool is_own_feature(struct str name)
{
    for (size_t i = 0; i < KV_COUNT_OF(own_features); i++) {
        if (str_eq(name, own_features[i]))
            return true;
    }
    return false;
}

/* --- one feature --- */

static bool names_a_node(const struct feature_set *set, const struct set_feature *f)
{
    const struct feature_attribute_range *instances = feature_set_instances(set, f);
    for (uint32_t i = 0; i < f->instance_count; i++) {
        if (feature_set_value(set, instances[i], own_attribute).p)
            return true;
    }
    return false;
}

static const struct feature_set *observe_feature(struct feature_sets *pool,
                                                 const struct feature_set *node,
                                                 const struct set_feature *f)
{
    AUTO_ARENA arena = { 0 };
    FEATURE_DRAFT draft = { 0 };
    struct str name = feature_set_str(node, f->name);
    if (is_own_feature(name))
        return profile_unknown(pool, name);
    if (!names_a_node(node, f)) {
        profile_draft(node, f, &arena, &draft);
    } else { /* without it an instance is known in part, and so is the feature */
        const struct feature_attribute_range *instances = feature_set_instances(node, f);
        struct set_feature plain = *f;
        plain.instance_count = 0;
        plain.completeness = FEATURE_PARTIAL;
        profile_draft(node, &plain, &arena, &draft);
        for (uint32_t i = 0; i < f->instance_count; i++)
            feature_draft_instance(&draft, name,
                                   profile_instance(node, instances[i], own_attribute, &arena));
    }
    if (str_eq(name, open_ended))
        feature_draft_completeness(&draft, name, FEATURE_PARTIAL);
    for (size_t i = 0; i < KV_COUNT_OF(own_elements); i++) {
        if (str_eq(name, own_elements[i].feature))
            feature_draft_unsure(&draft, name, own_elements[i].element);
    }
    return profile_make(pool, name, &draft);
}

/* --- what was observed before --- */

#define OBSERVED_MAX 4096 /* features; when there are as many it starts again */

void observed_init(struct observed *o)
{
    pthread_mutex_init(&o->lock, NULL);
}

static void forget(struct observed *o)
{
    map_each(&o->by_hash, it)
        feature_set_unref((const struct feature_set *)it->value);
    map_clear(&o->by_hash);
}

void observed_forget(struct observed *o)
{
    pthread_mutex_lock(&o->lock);
    forget(o);
    pthread_mutex_unlock(&o->lock);
}

void observed_done(struct observed *o)
{
    forget(o);
    map_done(&o->by_hash);
    pthread_mutex_destroy(&o->lock);
}

static const struct feature_set *observed_find(struct observed *o, uint64_t hash)
{
    uintptr_t found = 0;
    pthread_mutex_lock(&o->lock);
    if (map_get(&o->by_hash, hash, &found))
        feature_set_ref((const struct feature_set *)found);
    pthread_mutex_unlock(&o->lock);
    return (const struct feature_set *)found;
}

static void observed_add(struct observed *o, uint64_t hash, const struct feature_set *set)
{
    uintptr_t other;
    pthread_mutex_lock(&o->lock);
    if (o->by_hash.live_count >= OBSERVED_MAX)
        forget(o);
    if (!map_get(&o->by_hash, hash, &other))
        map_put(&o->by_hash, hash, (uintptr_t)feature_set_ref(set));
    pthread_mutex_unlock(&o->lock);
}

/* --- hashing --- */

/* What one object says of one feature in one of its three ways. */
struct part {
    struct str feature;
    uint64_t hash;
    uint32_t order; /* in which it was said: the later wins */
};
typedef VEC(struct part) part_vec;

enum { PART_FLAGS = 1, PART_ATTRIBUTES, PART_INSTANCES };

/* Thousands of short texts per node: without a call for each. What is missing to eight bytes is zero, and the
 * length tells it from zeros that are there. */
static inline uint64_t hash_on(uint64_t hash, struct str s)
{
    const uint64_t factor = 0x9fb21c651e98df25ULL;
    size_t i = 0;
    hash = (hash ^ s.len) * factor;
    for (; i + 8 <= s.len; i += 8) {
        hash ^= hash >> 32;
        hash = (hash ^ bytes_load64(s.p + i)) * factor;
    }
    uint64_t rest = 0;
    for (unsigned shift = 0; i < s.len; i++, shift += 8)
        rest |= (uint64_t)(unsigned char)s.p[i] << shift;
    hash ^= hash >> 32;
    hash = (hash ^ rest) * factor;
    return hash ^ hash >> 29;
}

static uint64_t hash_flags(const struct feature_flags *f)
{
    uint64_t hash = PART_FLAGS;
    for (uint32_t i = 0; i < f->elements.count; i++)
        hash = hash_on(hash, f->elements.items[i].key);
    return hash;
}

static bool is_own_element(struct str feature, struct str element)
{
    for (size_t i = 0; i < KV_COUNT_OF(own_elements); i++) {
        if (str_eq(feature, own_elements[i].feature) && str_eq(element, own_elements[i].element))
            return true;
    }
    return false;
}

static uint64_t hash_attributes(struct str feature, const struct str_map *elements)
{
    bool some_own = str_eq(feature, own_elements[0].feature); /* all are of one feature */
    uint64_t hash = PART_ATTRIBUTES;
    for (uint32_t i = 0; i < elements->count; i++) {
        const struct str_pair *pair = &elements->items[i];
        if (some_own && is_own_element(feature, pair->key))
            continue;
        hash = hash_on(hash_on(hash, pair->key), pair->value);
    }
    return hash;
}

static uint64_t hash_instances(const struct feature_instances *f)
{
    uint64_t hash = PART_INSTANCES;
    for (uint32_t i = 0; i < f->elements.count; i++) {
        const struct str_map *attributes = &f->elements.items[i].attributes;
        hash = kv_mix64(hash + attributes->count);
        for (uint32_t k = 0; k < attributes->count; k++) {
            const struct str_pair *pair = &attributes->items[k];
            hash = hash_on(hash, pair->key);
            if (!str_eq(pair->key, own_attribute))
                hash = hash_on(hash, pair->value);
        }
    }
    return hash;
}

static void add_part(part_vec *parts, struct str feature, uint64_t hash)
{
    vec_push(parts, (struct part){ feature, hash, (uint32_t)parts->count });
}

static const struct str kernel_config = { "kernel.config", 13 };

/* Of a node's own features nothing is learned: what they say makes no difference. */
static void add_parts(part_vec *parts, const struct features *f)
{
    for (uint32_t i = 0; i < f->flags.count; i++)
        add_part(parts, f->flags.items[i].key, hash_flags(&f->flags.items[i]));
    for (uint32_t i = 0; i < f->attributes.count; i++) {
        const struct feature_attributes *a = &f->attributes.items[i];
        uint64_t hash =
            is_own_feature(a->key) ? PART_ATTRIBUTES : hash_attributes(a->key, &a->elements);
        add_part(parts, a->key, hash);
    }
    if (f->has_kernel_config)
        add_part(parts, kernel_config, hash_attributes(kernel_config, &f->kernel_config));
    for (uint32_t i = 0; i < f->instances.count; i++) {
        const struct feature_instances *one = &f->instances.items[i];
        uint64_t hash = is_own_feature(one->key) ? PART_INSTANCES : hash_instances(one);
        add_part(parts, one->key, hash);
    }
}

static int part_order(const void *a, const void *b)
{
    const struct part *x = a, *y = b;
    int order = str_cmp(x->feature, y->feature);
    return order ? order : (x->order > y->order) - (x->order < y->order);
}

/* --- observing --- */

/* All that is said of the feature, and of no other. */
static void draft_feature(struct feature_draft *draft, struct str name,
                          const struct features *const *said, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct features *f = said[i];
        const struct feature_flags *flags = features_flags(f, name);
        const struct str_map *attributes = features_attributes(f, name);
        const struct feature_instances *instances = features_instances(f, name);
        struct feature_attributes named = { .key = name };
        struct features one = { 0 };
        if (flags)
            one.flags.items = flags, one.flags.count = 1;
        if (attributes) {
            named.elements = *attributes;
            one.attributes.items = &named, one.attributes.count = 1;
        }
        if (instances)
            one.instances.items = instances, one.instances.count = 1;
        feature_draft_features(draft, &one);
    }
}

/* NULL: it is too much for a set. */
static const struct feature_set *observe_anew(struct feature_sets *pool, struct str name,
                                              const struct features *const *said, uint32_t count)
{
    FEATURE_DRAFT draft = { 0 };
    AUTO_FEATURE_SET set = NULL;
    struct err err = { 0 };
    draft_feature(&draft, name, said, count);
    if (feature_set_make(pool, &draft, &set, &err) < 0)
        return NULL;
    KV_ASSERT(feature_set_count(set) == 1);
    return observe_feature(pool, set, feature_set_at(set, 0));
}

/* nfd-worker has been there: other publishers speak of features of their own. */
static bool is_described(const part_vec *parts)
{
    vec_each(parts, struct part, it) {
        if (str_starts(it->feature, STR("cpu.")) || str_starts(it->feature, STR("kernel.")) ||
            str_starts(it->feature, STR("system.")))
            return true;
    }
    return false;
}

static bool observe_parts(struct observed *o, struct feature_sets *pool, const part_vec *parts,
                          const struct features *const *said, uint32_t count,
                          struct profile_features *out)
{
    size_t bytes = 0;
    for (size_t i = 0; i < parts->count;) {
        struct str name = parts->items[i].feature;
        uint64_t hash = hash_on(0, name);
        for (; i < parts->count && str_eq(parts->items[i].feature, name); i++)
            hash = kv_mix64(hash * 31 + parts->items[i].hash);
        const struct feature_set *set = observed_find(o, hash);
        if (!set) {
            set = out->count < PROFILE_FEATURES_MAX ? observe_anew(pool, name, said, count) : NULL;
            if (!set)
                return false;
            observed_add(o, hash, set);
        }
        bytes += feature_set_bytes(set);
        out->items[out->count++] = set;
    }
    return out->count <= PROFILE_FEATURES_MAX && bytes <= FEATURE_SET_BYTES_MAX;
}

bool profile_observe(struct observed *o, struct feature_sets *pool,
                     const struct features *const *said, uint32_t count,
                     struct profile_features *out)
{
    part_vec parts = { 0 };
    for (uint32_t i = 0; i < count; i++)
        add_parts(&parts, said[i]);
    bool learned = is_described(&parts);
    if (learned) {
        qsort(parts.items, parts.count, sizeof *parts.items, part_order);
        out->items = kv_calloc(parts.count, sizeof *out->items);
        learned = observe_parts(o, pool, &parts, said, count, out);
    }
    if (!learned)
        profile_features_done(out);
    vec_done(&parts);
    return learned;
}
