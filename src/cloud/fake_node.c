/* One instance, as it is launched, as its claim remembers it, and as its Node shows it. The Node
 * follows from the instance alone: what a restart reads back from a claim gives the same one.
 */
#include "cloud/fake_node.h"

#include "api/conditions.h"
#include "api/ec2nodeclass.h"
#include "api/kinds.h"
#include "api/kwoknodeclass.h"
#include "api/resources.h"
#include "base/rng.h"
#include "codec/duration.h"

#define PRICE_LABEL "eks-node-viewer/instance-price"

#define LABEL_VALUE_BYTES_MAX 63
#define CLAIM_NAME_BYTES_MAX 200 /* of a node's name, which has room for 253 */

/* --- names --- */

static struct str unique_part(struct arena *arena, const struct nodeclaim *claim)
{
    struct str token =
        claim->object.meta.uid.len ? claim->object.meta.uid : claim->object.meta.name;
    struct rng rng;
    char letters[6];
    rng_init(&rng, kv_hash(token.p, token.len));
    rng_name(&rng, letters, 5);
    return arena_strf(arena, "%s-%u", letters, (unsigned)(rng_next(&rng) >> 32));
}

struct str fake_node_name(struct arena *arena, const struct fake_naming *naming,
                          const struct nodeclaim *claim)
{
    struct str name = str_sub(claim->object.meta.name, 0, CLAIM_NAME_BYTES_MAX);
    while (name.len > 0 && !char_is_alnum(name.p[name.len - 1]))
        name.len--; /* "a." before a dash would not be a name */
    struct str unique = unique_part(arena, claim);
    return arena_strf(arena, "%s%.*s-%.*s", naming->node_prefix, STR_ARG(name), STR_ARG(unique));
}

struct str fake_node_of_provider_id(const struct fake_naming *naming, struct str provider_id)
{
    struct str prefix = str_of(naming->provider_prefix);
    if (!str_starts(provider_id, prefix) || provider_id.len == prefix.len)
        return STR_NONE;
    return str_sub(provider_id, prefix.len, provider_id.len);
}

/* --- labels and annotations: a map that grows, where the last word counts --- */

struct map_builder {
    struct str_pair *items;
    uint32_t count, cap;
};

static struct map_builder builder_new(struct arena *arena, uint32_t cap)
{
    return (struct map_builder){ .items = arena_array(arena, struct str_pair, cap), .cap = cap };
}

/* Kept sorted. */
static void put(struct map_builder *m, struct str key, struct str value)
{
    uint32_t at = 0;
    while (at < m->count && str_cmp(m->items[at].key, key) < 0)
        at++;
    if (at == m->count || !str_eq(m->items[at].key, key)) {
        KV_ASSERT(m->count < m->cap);
        memmove(&m->items[at + 1], &m->items[at], (m->count - at) * sizeof *m->items);
        m->count++;
    }
    m->items[at] = (struct str_pair){ key, value };
}

static void put_copies(struct map_builder *m, struct arena *arena, const struct str_map *from)
{
    for (uint32_t i = 0; i < from->count; i++)
        put(m, arena_str(arena, from->items[i].key), arena_str(arena, from->items[i].value));
}

/* Of a requirement that leaves one value, that value. */
static void put_single(struct map_builder *m, struct arena *arena, const struct requirement *r)
{
    if (requirement_operator(r) == OP_IN && r->values.count == 1)
        put(m, arena_str(arena, r->key), arena_str(arena, r->values.items[0]));
}

static void put_all_single(struct map_builder *m, struct arena *arena,
                           const struct requirements *set)
{
    for (uint32_t i = 0; i < set->count; i++)
        put_single(m, arena, &set->items[i]);
}

static struct str_map built(const struct map_builder *m)
{
    return (struct str_map){ m->items, m->count };
}

/* Six decimals, as the viewer that reads it prints them. */
static struct str price_text(struct arena *arena, usd_hour price)
{
    const usd_hour unit = USD_HOUR_ONE / 1000000;
    usd_hour millionths = price / unit + (price % unit >= unit / 2);
    return arena_strf(arena, "%lld.%06lld", (long long)(millionths / 1000000),
                      (long long)(millionths % 1000000));
}

static struct str_map instance_labels(struct arena *arena, const struct fake_naming *naming,
                                      const struct nodeclaim *claim,
                                      const struct instance_types *types, uint32_t offering)
{
    uint32_t type = types->offering_type[offering];
    struct requirements asked = { 0 };
    struct requirements of_type = instance_type_requirements(types, type, arena);
    const struct requirements *of_shape =
        &types->shapes[types->offering_shape[offering]].requirements;
    struct err err;
    if (requirements_from_expressions(arena, claim->spec.node.requirements.items,
                                      claim->spec.node.requirements.count, &asked, &err) < 0)
        KV_UNREACHABLE(); /* the offering was found by them */

    struct map_builder m = builder_new(arena, claim->object.meta.labels.count + asked.count +
                                                  of_type.count + of_shape->count + 5);
    put_copies(&m, arena, &claim->object.meta.labels);
    put_all_single(&m, arena, &asked);
    put(&m, STR(LABEL_INSTANCE_TYPE), arena_str(arena, types->names[type]));
    put_all_single(&m, arena, &of_type);
    put_all_single(&m, arena, of_shape);
    put(&m, STR(PRICE_LABEL), price_text(arena, instance_types_price(types, offering)));
    if (naming->maybe_partition)
        put(&m, str_of(naming->maybe_partition), STR("a"));
    if (naming->maybe_marker)
        put(&m, str_of(naming->maybe_marker), STR("fake"));
    struct str name = claim->object.meta.name;
    put(&m, STR(LABEL_HOSTNAME),
        name.len <= LABEL_VALUE_BYTES_MAX ? arena_str(arena, name) : unique_part(arena, claim));
    return built(&m);
}

static struct str_map instance_annotations(struct arena *arena, const struct fake_naming *naming,
                                           const struct nodeclaim *claim)
{
    const struct str_map *said = &claim->object.meta.annotations;
    struct map_builder m = builder_new(arena, said->count + 1);
    put_copies(&m, arena, said);
    if (naming->maybe_marker)
        put(&m, str_of(naming->maybe_marker), STR("fake"));
    return built(&m);
}

/* --- resources --- */

static struct resources resources_copy(struct arena *arena, const struct resources *from)
{
    struct resource *items = arena_array(arena, struct resource, from->count);
    for (uint32_t i = 0; i < from->count; i++)
        items[i] =
            (struct resource){ arena_str(arena, from->items[i].name), from->items[i].amount };
    return (struct resources){ items, from->count };
}

/* What the type has, and of what it does not have, what was asked for: resources that overlays add
 * and that a device plugin would report on a real node. */
static struct resources with_requests(struct arena *arena, const struct resources *of_type,
                                      const struct resources *requests)
{
    struct resource *items = arena_array(arena, struct resource, of_type->count + requests->count);
    uint32_t t = 0, r = 0, count = 0;
    while (t < of_type->count || r < requests->count) {
        int order = t == of_type->count ? 1
                    : r == requests->count
                        ? -1
                        : str_cmp(of_type->items[t].name, requests->items[r].name);
        items[count] = order <= 0 ? of_type->items[t] : requests->items[r];
        items[count].name = arena_str(arena, items[count].name);
        count++;
        t += order <= 0;
        r += order >= 0;
    }
    return (struct resources){ items, count };
}

/* --- instances --- */

/* Known from the labels, whoever wrote them. */
static void fill_from_labels(struct instance *i)
{
    i->nodepool = str_map_get(&i->labels, STR(LABEL_NODEPOOL));
    i->instance_type = str_map_get(&i->labels, STR(LABEL_INSTANCE_TYPE));
    i->zone = str_map_get(&i->labels, STR(LABEL_ZONE));
    i->capacity_type = str_map_get(&i->labels, STR(LABEL_CAPACITY_TYPE));
    if (!i->nodepool.p)
        i->nodepool = STR("");
}

static struct str provider_id(struct arena *arena, const struct fake_naming *naming,
                              struct str node_name)
{
    return arena_strf(arena, "%s%.*s", naming->provider_prefix, STR_ARG(node_name));
}

void fake_instance_new(struct arena *arena, const struct fake_naming *naming,
                       const struct nodeclaim *claim, const struct instance_types *types,
                       uint32_t offering, int64_t now_us, struct instance *out)
{
    const struct resources *requests = &claim->spec.resources.requests;
    uint32_t row = types->offering_row[offering];
    struct resources capacity = instance_type_capacity(types, row, arena);
    struct resources allocatable = instance_type_allocatable(types, row, arena);

    *out = (struct instance){
        .node_name = fake_node_name(arena, naming, claim),
        .claim_name = arena_str(arena, claim->object.meta.name),
        .image_id = STR(""),
        .labels = instance_labels(arena, naming, claim, types, offering),
        .annotations = instance_annotations(arena, naming, claim),
        .capacity = with_requests(arena, &capacity, requests),
        .allocatable = with_requests(arena, &allocatable, requests),
        .created_us = now_us,
    };
    out->provider_id = provider_id(arena, naming, out->node_name);
    fill_from_labels(out);
}

void fake_instance_of_claim(struct arena *arena, const struct fake_naming *naming,
                            const struct nodeclaim *claim, struct instance *out)
{
    const struct nodeclaim_status *status = &claim->status;
    const struct condition *launched =
        condition_find(status->conditions.items, status->conditions.count, CONDITION_LAUNCHED);

    *out = (struct instance){
        .provider_id = arena_str(arena, status->provider_id),
        .claim_name = arena_str(arena, claim->object.meta.name),
        .image_id = STR(""),
        .labels = str_map_copy(arena, &claim->object.meta.labels),
        .annotations = instance_annotations(arena, naming, claim),
        .capacity = resources_copy(arena, &status->capacity),
        .allocatable = resources_copy(arena, &status->allocatable),
        .created_us = launched && launched->transition_us ? launched->transition_us
                                                          : claim->object.meta.created_us,
    };
    out->node_name = fake_node_of_provider_id(naming, out->provider_id);
    fill_from_labels(out);
}

void fake_instance_of_node(struct arena *arena, const struct node *node, struct instance *out)
{
    const struct meta *meta = &node->object.meta;
    *out = (struct instance){
        .provider_id = arena_str(arena, node->spec.provider_id),
        .node_name = arena_str(arena, meta->name),
        .claim_name = STR(""),
        .image_id = STR(""),
        .labels = str_map_copy(arena, &meta->labels),
        .annotations = str_map_copy(arena, &meta->annotations),
        .capacity = resources_copy(arena, &node->status.capacity),
        .allocatable = resources_copy(arena, &node->status.allocatable),
        .created_us = meta->created_us,
    };
    fill_from_labels(out);
}

void fake_instance_copy(struct arena *arena, const struct instance *from, struct instance *out)
{
    *out = (struct instance){
        .provider_id = arena_str(arena, from->provider_id),
        .node_name = arena_str(arena, from->node_name),
        .claim_name = arena_str(arena, from->claim_name),
        .image_id = STR(""),
        .labels = str_map_copy(arena, &from->labels),
        .annotations = str_map_copy(arena, &from->annotations),
        .capacity = resources_copy(arena, &from->capacity),
        .allocatable = resources_copy(arena, &from->allocatable),
        .created_us = from->created_us,
    };
    fill_from_labels(out);
}

/* --- the Node --- */

static json_mut *json_map(struct json_build *b, const struct str_map *map)
{
    json_mut *o = json_new_object(b);
    for (uint32_t i = 0; i < map->count; i++)
        json_set(b, o, map->items[i].key, json_new_str(b, map->items[i].value));
    return o;
}

json_mut *fake_node_json(struct json_build *b, const struct instance *instance)
{
    json_mut *root = json_new_object(b);

    json_mut *meta = json_mut_object(b, root, STR("metadata"));
    json_set_str(b, meta, "name", instance->node_name);
    json_set(b, meta, STR("labels"), json_map(b, &instance->labels));
    json_set(b, meta, STR("annotations"), json_map(b, &instance->annotations));

    json_mut *spec = json_mut_object(b, root, STR("spec"));
    json_mut *taints = json_new_array(b), *taint = json_new_object(b);
    json_set_str(b, taint, "key", STR(TAINT_UNREGISTERED));
    json_set_str(b, taint, "effect", STR("NoExecute"));
    json_push(b, taints, taint);
    json_set_str(b, spec, "providerID", instance->provider_id);
    json_set(b, spec, STR("taints"), taints);

    json_mut *status = json_mut_object(b, root, STR("status"));
    json_set(b, status, STR("capacity"), resources_json(b, &instance->capacity));
    json_set(b, status, STR("allocatable"), resources_json(b, &instance->allocatable));
    return root;
}

/* --- node classes --- */

static const struct kind *class_kind(const struct node_class_ref *ref)
{
    for (uint32_t i = 0; i < kind_count; i++)
        if (str_eqz(ref->group, kinds[i]->group) && str_eqz(ref->kind, kinds[i]->name))
            return kinds[i];
    return NULL;
}

int fake_class_get(const struct cloud_provider *port, const struct store *store,
                   const struct node_class_ref *ref, const struct object **out, struct err *err)
{
    const struct kind *kind = cloud_provider_supports(port, ref) ? class_kind(ref) : NULL;
    if (!kind)
        return err_set(err, ERR_NOT_FOUND, "%s is not a node class of this provider",
                       STR_SHOWN(ref->kind));
    return store_get(store, (struct object_ref){ kind, STR(""), ref->name }, out, err);
}

static const struct condition *class_ready(const struct object *class_)
{
    if (class_->kind == &kwoknodeclass_kind) {
        const struct kwoknodeclass *c = kwoknodeclass_of(class_);
        return condition_find(c->status.conditions.items, c->status.conditions.count,
                              CONDITION_READY);
    }
    if (class_->kind == &ec2nodeclass_kind) {
        const struct ec2nodeclass *c = ec2nodeclass_of(class_);
        return condition_find(c->status.conditions.items, c->status.conditions.count,
                              CONDITION_READY);
    }
    return NULL;
}

int fake_class_for_launch(const struct cloud_provider *port, const struct store *store,
                          const struct node_class_ref *ref, const struct object **out,
                          struct launch_failure *why, struct err *err)
{
    AUTO_OBJECT class_ = NULL;

    if (fake_class_get(port, store, ref, &class_, err) < 0) {
        if (err->kind == ERR_NOT_FOUND) {
            why->kind = LAUNCH_INSUFFICIENT_CAPACITY;
            err->kind = ERR_CAPACITY;
        }
        return err_wrap(err, "node class %s", STR_SHOWN(ref->name));
    }
    const struct condition *ready = class_ready(class_);
    if (condition_status_of(ready) == CONDITION_FALSE) {
        why->kind = LAUNCH_CLASS_NOT_READY;
        return err_set(err, ERR_UNAVAILABLE, "node class %s is not ready: %.*s",
                       STR_SHOWN(ref->name), STR_ARG(ready->message));
    }
    *out = take(&class_);
    return 0;
}

/* --- the port --- */

static const struct repair_policy repair_policies[] = {
    { "Ready", "False", 10 * DURATION_MINUTE },
    { "Ready", "Unknown", 10 * DURATION_MINUTE },
};

static int is_drifted(void *ctx KV_UNUSED, const struct nodeclaim *claim KV_UNUSED,
                      const char **reason, struct err *err KV_UNUSED)
{
    *reason = "";
    return 0;
}

void fake_port_init(struct cloud_provider *port, const struct cloud_provider *maybe_types,
                    struct node_class_kind classes[FAKE_CLASSES_MAX])
{
    uint32_t count = 0, theirs = maybe_types ? maybe_types->node_class_count : 0;
    classes[count++] = (struct node_class_kind){ KWOK_GROUP, "KWOKNodeClass" };
    for (uint32_t i = 0; i < theirs && count < FAKE_CLASSES_MAX; i++) {
        if (strcmp(maybe_types->node_classes[i].group, KWOK_GROUP) != 0)
            classes[count++] = maybe_types->node_classes[i];
    }
    *port = (struct cloud_provider){ .is_drifted = is_drifted,
                                     .repair_policies = repair_policies,
                                     .repair_policy_count = KV_COUNT_OF(repair_policies),
                                     .node_classes = classes,
                                     .node_class_count = count };
}
