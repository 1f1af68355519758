/* Two constructions over one primitive, FNV-1 with 64 bits.
 *
 * Both hash a member together with its name, and leave out a member that has no value, so that a
 * field that is added to the API later changes no hash until somebody sets it. Lists and maps are
 * sets: the order of their items does not count.
 *
 * The NodePool's follows Karpenter's in all its ways: it walks Go's structs by their Go names, and
 * items of a list combine by exclusive or (two equal ones cancel). The node class's is our own: it
 * walks the table, and combines by addition, which has no such hole.
 */
#include "api/hash.h"

#include <stdio.h>

size_t hash_format(uint64_t hash, char out[HASH_TEXT_MAX])
{
    return (size_t)snprintf(out, HASH_TEXT_MAX, "%llu", (unsigned long long)hash);
}

/* --- FNV-1 --- */

#define FNV_OFFSET 0xcbf29ce484222325ULL
#define FNV_PRIME 0x100000001b3ULL

static uint64_t fnv_byte(uint64_t h, unsigned char byte)
{
    return (h * FNV_PRIME) ^ byte;
}

static uint64_t hash_str(struct str s)
{
    uint64_t h = FNV_OFFSET;
    for (size_t i = 0; i < s.len; i++)
        h = fnv_byte(h, (unsigned char)s.p[i]);
    return h;
}

static uint64_t fnv_u64(uint64_t h, uint64_t v)
{
    for (int i = 0; i < 8; i++)
        h = fnv_byte(h, (unsigned char)(v >> (8 * i)));
    return h;
}

static uint64_t hash_u64(uint64_t v)
{
    return fnv_u64(FNV_OFFSET, v);
}

static uint64_t hash_pair(uint64_t a, uint64_t b)
{
    return fnv_u64(fnv_u64(FNV_OFFSET, a), b);
}

/* --- NodePool, as Karpenter does it --- */

/* A Go struct is folded member by member in the order of its declaration: begin with the type's
 * name, mix in the member, hash the result. Members without a value are left out. */
static uint64_t go_struct(const char *type)
{
    return hash_str(str_of(type));
}

static void go_member(uint64_t *h, const char *name, uint64_t value)
{
    *h = hash_u64(*h ^ hash_pair(hash_str(str_of(name)), value));
}

static void go_member_str(uint64_t *h, const char *name, struct str value)
{
    if (value.len)
        go_member(h, name, hash_str(value));
}

static void go_member_map(uint64_t *h, const char *name, const struct str_map *map)
{
    uint64_t entries = 0;
    for (uint32_t i = 0; i < map->count; i++)
        entries ^= hash_pair(hash_str(map->items[i].key), hash_str(map->items[i].value));
    if (map->count)
        go_member(h, name, hash_u64(entries));
}

/* timeAdded is left out: nobody writes it into a template. */
static uint64_t go_taint(const struct taint *taint)
{
    static const char *const effects[] = { "", "NoSchedule", "PreferNoSchedule", "NoExecute" };
    uint64_t h = go_struct("Taint");
    go_member_str(&h, "Key", taint->key);
    go_member_str(&h, "Value", taint->value);
    go_member_str(&h, "Effect", str_of(effects[taint->effect]));
    return h;
}

static void go_member_taints(uint64_t *h, const char *name, const struct taint *taints,
                             uint32_t count)
{
    uint64_t items = 0;
    for (uint32_t i = 0; i < count; i++)
        items ^= go_taint(&taints[i]);
    if (count)
        go_member(h, name, items);
}

static uint64_t go_class_ref(const struct node_class_ref *ref)
{
    uint64_t h = go_struct("NodeClassReference");
    go_member_str(&h, "Kind", ref->kind);
    go_member_str(&h, "Name", ref->name);
    go_member_str(&h, "Group", ref->group);
    return h;
}

/* A plain duration of zero is no value; one that may also be Never points at its number, and then
 * zero is a value as any other. */
static uint64_t go_duration(const char *type, int64_t ns, bool zero_counts)
{
    uint64_t h = go_struct(type);
    if (ns || zero_counts)
        go_member(&h, "Duration", hash_u64((uint64_t)ns));
    return h;
}

static uint64_t go_spec(const struct claim_node_spec *spec)
{
    const struct duration grace = spec->termination_grace_period;
    const struct duration expire = nillable_duration(spec->expire_after);
    uint64_t h = go_struct("NodeClaimTemplateSpec");

    go_member_taints(&h, "Taints", spec->taints.items, spec->taints.count);
    go_member_taints(&h, "StartupTaints", spec->startup_taints.items, spec->startup_taints.count);
    go_member(&h, "NodeClassRef", go_class_ref(&spec->node_class_ref));
    if (grace.set)
        go_member(&h, "TerminationGracePeriod", go_duration("Duration", grace.ns, false));
    if (!expire.never)
        go_member(&h, "ExpireAfter", go_duration("NillableDuration", expire.ns, true));
    return h;
}

uint64_t nodepool_hash(const struct nodepool *pool)
{
    const struct node_template *template = &pool->spec.template;
    uint64_t meta = go_struct("ObjectMeta"), h = go_struct("NodeClaimTemplate");

    go_member_map(&meta, "Labels", &template->meta.labels);
    go_member_map(&meta, "Annotations", &template->meta.annotations);
    if (template->meta.labels.count || template->meta.annotations.count)
        go_member(&h, "ObjectMeta", meta);
    go_member(&h, "Spec", go_spec(&template->spec));
    return h;
}

/* --- EC2NodeClass, our own --- */

static uint64_t hash_fields(const struct schema *schema, const void *value);

static uint64_t hash_strs(const struct str_list *list)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < list->count; i++)
        sum += hash_u64(hash_str(list->items[i]));
    return hash_u64(sum);
}

static uint64_t hash_map(const struct str_map *map)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < map->count; i++)
        sum += hash_pair(hash_str(map->items[i].key), hash_str(map->items[i].value));
    return hash_u64(sum);
}

static uint64_t hash_list(const struct schema *item, const struct any_list *list)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < list->count; i++)
        sum += hash_fields(item, (const char *)list->items + (size_t)i * item->size);
    return hash_u64(sum);
}

/* The hash of a field's value, or false when it has none. An optional boolean that is false has a
 * value: it says no where the subnet or the account might say yes. */
static bool hash_value(const struct field *f, const void *value, uint64_t *out)
{
    switch ((enum field_type)f->type) {
    case FIELD_BOOL:
        *out = hash_u64(1);
        return *(const bool *)value;
    case FIELD_TRI:
        *out = hash_u64(*(const uint8_t *)value);
        return *(const uint8_t *)value != TRI_UNSET;
    case FIELD_ENUM:
        /* By its word: the order of the words in the table may change. */
        if (*(const uint8_t *)value == 0)
            return false;
        *out = hash_str(str_of(f->rule->enums[*(const uint8_t *)value - 1]));
        return true;
    case FIELD_INT:
        *out = hash_u64((uint64_t) * (const int64_t *)value);
        return *(const int64_t *)value != 0;
    case FIELD_MAYBE_INT:
        *out = hash_u64((uint64_t)((const struct maybe_int *)value)->value);
        return ((const struct maybe_int *)value)->set && ((const struct maybe_int *)value)->value;
    case FIELD_STR:
    case FIELD_JSON:
        *out = hash_str(*(const struct str *)value);
        return ((const struct str *)value)->len > 0;
    case FIELD_STRUCT:
        *out = hash_fields(f->sub, value);
        return *out != hash_u64(0); /* one with no member set is no value */
    case FIELD_OPTION:
        if (*(const void *const *)value == NULL)
            return false;
        *out = hash_fields(f->sub, *(const void *const *)value);
        return true;
    case FIELD_LIST:
        *out = hash_list(f->sub, value);
        return ((const struct any_list *)value)->count > 0;
    case FIELD_STRS:
        *out = hash_strs(value);
        return ((const struct str_list *)value)->count > 0;
    case FIELD_STR_MAP:
        *out = hash_map(value);
        return ((const struct str_map *)value)->count > 0;
    case FIELD_OPAQUE:
    case FIELD_TIME:
    case FIELD_DURATION:
    case FIELD_DURATION_OR_NEVER:
    case FIELD_INT_OR_STR:
    case FIELD_RESOURCES:
    case FIELD_MAP:
    case FIELD_QUANTITY:
    case FIELD_VERSION:
        break;
    }
    KV_UNREACHABLE(); /* a type that no field of a node class has */
}

static uint64_t hash_field(const struct field *f, const void *value)
{
    uint64_t h;
    return hash_value(f, value, &h) ? hash_pair(hash_str(str_of(f->name)), h) : 0;
}

static uint64_t hash_fields(const struct schema *schema, const void *value)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < schema->field_count; i++)
        sum += hash_field(&schema->fields[i], (const char *)value + schema->fields[i].offset);
    return hash_u64(sum);
}

/* What a running instance has and cannot change. Of the rest, terms drift by what they resolve to,
 * ipPrefixCount never, and amiFamily counts as resolved. */
static const char *const hashed_fields[] = {
    "associatePublicIPAddress",
    "blockDeviceMappings",
    "connectionTracking",
    "context",
    "cpuOptions",
    "detailedMonitoring",
    "instanceProfile",
    "instanceStorePolicy",
    "kubelet",
    "metadataOptions",
    "networkInterfaces",
    "placementGroupSelector",
    "role",
    "tags",
    "userData",
};

static bool is_hashed(const char *name)
{
    for (size_t i = 0; i < KV_COUNT_OF(hashed_fields); i++) {
        if (strcmp(name, hashed_fields[i]) == 0)
            return true;
    }
    return false;
}

uint64_t ec2nodeclass_hash(const struct ec2nodeclass *class_, struct str cluster_ca_bundle)
{
    const struct schema *schema = &ec2nodeclass_spec_schema;
    const char *family = ami_family_name(ec2nodeclass_ami_family(&class_->spec));
    uint64_t sum = 0;

    for (uint32_t i = 0; i < schema->field_count; i++) {
        const struct field *f = &schema->fields[i];
        if (is_hashed(f->name))
            sum += hash_field(f, (const char *)&class_->spec + f->offset);
    }
    sum += hash_pair(hash_str(STR("amiFamily")), hash_str(str_of(family)));
    if (cluster_ca_bundle.len)
        sum += hash_pair(hash_str(STR("clusterCABundle")), hash_str(cluster_ca_bundle));
    return hash_u64(sum);
}
