/* The provider. A file's types are the same for every pool and are built once, when it is read.
 * Those of kwok are there already: its classes decide over nothing. EC2's are built when they are
 * asked for, because their class does.
 *
 * The generation is read on every use and must cost nanoseconds, while hashing a node class takes
 * microseconds. So hashes are remembered by (class, resource version), in a small table without
 * locks: an entry is three words that vouch for each other, and words of two entries mixed up by
 * a race do not, so they count as a miss.
 */
#include "cloud/catalogue.h"

#include "base/file.h"
#include "cloud/catalogue_types.h"
#include "cloud/ec2_inputs.h"
#include "cloud/kwok.h"

#define NO_OPTIONS ((struct instance_types_options){ 0 })
#define HASH_SLOTS 256 /* node classes; with more, some take turns */

struct hash_slot {
    _Atomic uint64_t key, hash;
    _Atomic uint64_t check; /* key ^ kv_mix64(hash) */
};

struct catalogue {
    struct cloud_provider provider;
    struct generation_counters counters;
    const struct catalogue_region *region;
    struct allocatable_options allocatable;
    catalogue_class_fn *maybe_class;
    void *class_ctx;
    const struct instance_types *maybe_file; /* NULL: the built-in catalogue */
    struct hash_slot slots[HASH_SLOTS];
};

/* --- the node class --- */

static bool is_kwok(const struct nodepool *pool)
{
    return str_eqz(pool->spec.template.spec.node_class_ref.group, KWOK_GROUP);
}

static const struct object *find_class(const struct catalogue *c, const struct nodepool *pool)
{
    const struct node_class_ref *ref = &pool->spec.template.spec.node_class_ref;
    return c->maybe_class ? c->maybe_class(c->class_ctx, ref) : NULL;
}

static const struct ec2nodeclass *as_ec2(const struct object *maybe_object)
{
    return maybe_object && maybe_object->kind == &ec2nodeclass_kind ? ec2nodeclass_of(maybe_object)
                                                                    : NULL;
}

/* Everything of the class that catalogue_types looks at. */
static uint64_t class_hash(const struct ec2nodeclass *class_)
{
    struct ec2_inputs inputs = { .class_ = class_ };
    uint64_t hash = ec2_inputs_hash(&inputs);
    /* Only Bottlerocket's user data reserves anything: rather than read it, count all of it. */
    if (ec2nodeclass_ami_family(&class_->spec) == AMI_FAMILY_BOTTLEROCKET)
        hash = kv_hash_salted(class_->spec.user_data.p, class_->spec.user_data.len, hash);
    return hash;
}

/* Pools that get one answer have one hash. */
static uint64_t inputs_hash(struct catalogue *c, const struct nodepool *pool)
{
    if (c->maybe_file)
        return 0;
    if (is_kwok(pool))
        return 1;
    const struct ec2nodeclass *class_ = as_ec2(find_class(c, pool));
    if (!class_)
        return node_class_ref_hash(&pool->spec.template.spec.node_class_ref);
    const struct meta *meta = &class_->object.meta;
    if (!meta->resource_version)
        return class_hash(class_); /* not from a store: nothing tells one state from another */

    uint64_t key = kv_hash_salted(meta->name.p, meta->name.len, meta->resource_version);
    struct hash_slot *slot = &c->slots[key % HASH_SLOTS];
    uint64_t hash = atomic_load_explicit(&slot->hash, memory_order_relaxed);
    if (atomic_load_explicit(&slot->key, memory_order_relaxed) == key &&
        atomic_load_explicit(&slot->check, memory_order_relaxed) == (key ^ kv_mix64(hash)))
        return hash;
    hash = class_hash(class_);
    atomic_store_explicit(&slot->key, key, memory_order_relaxed);
    atomic_store_explicit(&slot->hash, hash, memory_order_relaxed);
    atomic_store_explicit(&slot->check, key ^ kv_mix64(hash), memory_order_relaxed);
    return hash;
}

/* --- the port --- */

static int get_instance_types(void *ctx, const struct nodepool *pool,
                              const struct instance_types **out, struct err *err)
{
    const struct catalogue *c = ctx;
    if (c->maybe_file || is_kwok(pool)) {
        *out = instance_types_ref(c->maybe_file ? c->maybe_file : kwok_types());
        return 0;
    }
    AUTO_ARENA arena = { 0 };
    const struct ec2nodeclass *class_ = as_ec2(find_class(c, pool));
    const struct instance_type_draft *drafts;
    if (catalogue_types(&arena, c->region, class_, &c->allocatable, &drafts, err) < 0)
        return class_ ? err_wrap(err, "EC2NodeClass/%.*s", STR_ARG(class_->object.meta.name)) : -1;
    return instance_types_build(drafts, catalogue_machine_count(), NO_OPTIONS, out, err);
}

static int get_generation(void *ctx, const struct nodepool *pool, struct generation *out,
                          struct err *err KV_UNUSED)
{
    struct catalogue *c = ctx;
    generation_read(&c->counters, out);
    out->member[GENERATION_INPUTS] = inputs_hash(c, pool);
    return 0;
}

static int launches_nothing(struct err *err)
{
    return err_set(err, ERR_INVALID, "the catalogue launches nothing");
}

static int create(void *ctx KV_UNUSED, const struct nodeclaim *claim KV_UNUSED,
                  struct arena *arena KV_UNUSED, struct instance *out KV_UNUSED,
                  struct launch_failure *why, struct err *err)
{
    *why = (struct launch_failure){ .kind = LAUNCH_OTHER };
    return launches_nothing(err);
}

static int delete_(void *ctx KV_UNUSED, const struct nodeclaim *claim KV_UNUSED, struct err *err)
{
    return launches_nothing(err);
}

static int get(void *ctx KV_UNUSED, struct str provider_id KV_UNUSED, struct arena *arena KV_UNUSED,
               struct instance *out KV_UNUSED, struct err *err)
{
    return launches_nothing(err);
}

static int list(void *ctx KV_UNUSED, struct arena *arena KV_UNUSED, struct instances *out,
                struct err *err KV_UNUSED)
{
    *out = (struct instances){ 0 };
    return 0;
}

static int is_drifted(void *ctx KV_UNUSED, const struct nodeclaim *claim KV_UNUSED,
                      const char **reason KV_UNUSED, struct err *err)
{
    return launches_nothing(err);
}

static const struct node_class_kind node_classes[] = {
    { AWS_GROUP, "EC2NodeClass" },
    { KWOK_GROUP, "KWOKNodeClass" },
};

/* --- making one --- */

static int find_region(struct catalogue *c, struct str name, struct err *err)
{
    c->region = catalogue_region_find(name);
    if (c->region)
        return 0;
    const char *near = NULL;
    size_t near_distance = 3;
    for (uint32_t i = 0; i < catalogue_region_count; i++) {
        size_t distance = str_distance(name, str_of(catalogue_regions[i].name), 2);
        if (distance < near_distance) {
            near = catalogue_regions[i].name;
            near_distance = distance;
        }
    }
    if (near)
        return err_set(err, ERR_INVALID, "unknown region %s, did you mean %s?", STR_SHOWN(name),
                       near);
    return err_set(err, ERR_INVALID, "unknown region %s, expected one such as %s", STR_SHOWN(name),
                   CATALOGUE_REGION);
}

static int read_path(struct catalogue *c, const char *path, struct err *err)
{
    AUTO_BUF text = { 0 };
    AUTO_ARENA arena = { 0 };
    const struct instance_type_draft *drafts;
    uint32_t count;
    const char *shown = strcmp(path, "-") == 0 ? "stdin" : path;
    if (file_read(path, CATALOGUE_FILE_BYTES_MAX, &text, err) < 0)
        return -1;
    if (catalogue_file_read(&arena, shown, buf_str(&text), &drafts, &count, err) < 0)
        return -1;
    if (instance_types_build(drafts, count, NO_OPTIONS, &c->maybe_file, err) < 0)
        return err_wrap(err, "%s", shown);
    return 0;
}

int catalogue_new(struct catalogue_options options, struct catalogue **out, struct err *err)
{
    AUTO(catalogue) c = kv_calloc(1, sizeof *c);
    c->allocatable = options.maybe_allocatable ? *options.maybe_allocatable : ALLOCATABLE_DEFAULTS;
    c->maybe_class = options.maybe_class;
    c->class_ctx = options.class_ctx;
    c->provider = (struct cloud_provider){
        .get_instance_types = get_instance_types,
        .get_generation = get_generation,
        .create = create,
        .delete_ = delete_,
        .get = get,
        .list = list,
        .is_drifted = is_drifted,
        .name = "catalogue",
        .node_classes = node_classes,
        .node_class_count = KV_COUNT_OF(node_classes),
        .ctx = c,
    };
    if (find_region(c, options.region.len ? options.region : STR(CATALOGUE_REGION), err) < 0)
        return -1;
    if (options.maybe_path && read_path(c, options.maybe_path, err) < 0)
        return -1;
    *out = take(&c);
    return 0;
}

void catalogue_free(struct catalogue *c)
{
    if (!c)
        return;
    instance_types_unref(c->maybe_file);
    free(c);
}

const struct cloud_provider *catalogue_provider(struct catalogue *c)
{
    return &c->provider;
}

struct generation_counters *catalogue_counters(struct catalogue *c)
{
    return &c->counters;
}
