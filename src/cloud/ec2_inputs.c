/* What counts is copied, field by field, into an otherwise empty spec and status; those are hashed by
 * their tables. To add an input is to add a line to one of the two functions that copy. The copies
 * are in zeroed memory, because the tables' hash reads padding too.
 */
#include "cloud/ec2_inputs.h"

#include "bootstrap/allocatable.h"
#include "cloud/provider.h"

static const struct ec2nodeclass_spec *spec_inputs(struct arena *arena,
                                                   const struct ec2nodeclass_spec *spec)
{
    struct ec2nodeclass_spec *out = arena_new(arena, struct ec2nodeclass_spec);
    out->ami_family = (uint8_t)ec2nodeclass_ami_family(spec); /* an alias says it too */
    out->kubelet = spec->kubelet;
    out->block_devices = spec->block_devices;
    out->instance_store_policy = spec->instance_store_policy;
    out->network_interfaces = spec->network_interfaces;
    out->cpu_options = spec->cpu_options;
    out->connection_tracking = spec->connection_tracking;
    return out;
}

static int compare_subnets(const void *a, const void *b)
{
    const struct resolved_subnet *x = a, *y = b;
    int order = str_cmp(x->id, y->id);
    return order ? order : str_cmp(x->zone, y->zone);
}

static const struct ec2nodeclass_status *status_inputs(struct arena *arena,
                                                       const struct ec2nodeclass_status *status)
{
    struct ec2nodeclass_status *out = arena_new(arena, struct ec2nodeclass_status);

    struct resolved_ami *amis = arena_array(arena, struct resolved_ami, status->amis.count);
    for (uint32_t i = 0; i < status->amis.count; i++) {
        amis[i].id = status->amis.items[i].id;
        amis[i].requirements = status->amis.items[i].requirements;
    }
    out->amis.items = amis;
    out->amis.count = status->amis.count;

    out->reservations.count = status->reservations.count;
    struct resolved_reservation *reservations =
        arena_array(arena, struct resolved_reservation, out->reservations.count);
    for (uint32_t i = 0; i < out->reservations.count; i++) {
        reservations[i] = status->reservations.items[i];
        reservations[i].end_us = 0; /* when it begins to matter, `state` changes */
    }
    out->reservations.items = reservations;

    /* Listed by their free addresses, which change all day: that order counts for nothing here. */
    out->subnets.count = status->subnets.count;
    struct resolved_subnet *subnets =
        arena_array(arena, struct resolved_subnet, out->subnets.count);
    for (uint32_t i = 0; i < out->subnets.count; i++)
        subnets[i] = status->subnets.items[i];
    qsort(subnets, out->subnets.count, sizeof *subnets, compare_subnets);
    out->subnets.items = subnets;
    return out;
}

static uint64_t add_number(uint64_t hash, uint64_t n)
{
    return kv_hash_salted(&n, sizeof n, hash);
}

static uint64_t add_str(uint64_t hash, struct str s)
{
    return kv_hash_salted(s.p, s.len, hash); /* the length is in it */
}

static uint64_t add_map(uint64_t hash, const struct str_map *map)
{
    hash = add_number(hash, map->count);
    for (uint32_t i = 0; i < map->count; i++)
        hash = add_str(add_str(hash, map->items[i].key), map->items[i].value);
    return hash;
}

uint64_t ec2_inputs_hash(const struct ec2_inputs *inputs)
{
    AUTO_ARENA arena = { 0 };
    const struct ec2nodeclass *class_ = inputs->class_;
    struct node_class_ref ref = {
        .group = str_of(ec2nodeclass_kind.group),
        .kind = str_of(ec2nodeclass_kind.name),
        .name = class_->object.meta.name,
    };
    const struct ec2nodeclass_spec *spec = spec_inputs(&arena, &class_->spec);
    const struct ec2nodeclass_status *status = status_inputs(&arena, &class_->status);

    uint64_t hash = node_class_ref_hash(&ref);
    hash = add_str(hash, class_->object.meta.uid);
    hash = add_number(hash, schema_hash(&ec2nodeclass_spec_schema, spec));
    hash = add_number(hash, schema_hash(&ec2nodeclass_status_schema, status));
    hash = add_str(
        hash, str_map_get(&class_->object.meta.annotations, STR(ANNOTATION_PREFIX_DELEGATION)));
    hash = add_map(hash, &inputs->toml_kube_reserved);
    hash = add_map(hash, &inputs->toml_system_reserved);
    hash = add_map(hash, &inputs->toml_eviction_hard);
    hash = add_str(hash, inputs->placement_group.id);
    hash = add_str(hash, inputs->placement_group.strategy);
    return add_number(hash, (uint64_t)inputs->placement_group.partition_count);
}
