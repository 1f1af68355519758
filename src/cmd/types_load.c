/* Types come through the cache that the controller has: before overlays first, so that overlays can
 * be judged over all pools, then with the accepted ones applied. */
#include "cmd/types_load.h"

#include "api/kinds.h"

const char *const bool_choices[] = { "true", "false", NULL };

/* --- objects --- */

static void add_pool(struct loaded_types *t, const struct nodepool *pool)
{
    const struct loaded_pool added = { .pool = pool, .trouble = STR("") };
    vec_push(&t->pools, added);
    for (size_t i = t->pools.count - 1; i > 0; i--) {
        struct loaded_pool *earlier = &t->pools.items[i - 1];
        if (nodepool_order(earlier->pool, pool) <= 0)
            break;
        earlier[1] = *earlier;
        *earlier = added;
    }
}

void loaded_types_collect(struct loaded_types *t, const struct object *object)
{
    if (object->kind == &nodepool_kind)
        add_pool(t, nodepool_of(object));
    else if (object->kind == &nodeoverlay_kind)
        vec_push(&t->overlays, nodeoverlay_of(object));
    else if (object->kind == &ec2nodeclass_kind || object->kind == &kwoknodeclass_kind)
        vec_push(&t->classes, object);
}

static const struct object *find_class(void *ctx, const struct node_class_ref *ref)
{
    const struct loaded_types *t = ctx;
    vec_each(&t->classes, const struct object *, class_) {
        if (str_eqz(ref->kind, (*class_)->kind->name) &&
            str_eqz(ref->group, (*class_)->kind->group) && str_eq(ref->name, (*class_)->meta.name))
            return *class_;
    }
    return NULL;
}

static void find_classes(struct loaded_types *t)
{
    vec_each(&t->pools, struct loaded_pool, p) {
        const struct node_class_ref *ref = &p->pool->spec.template.spec.node_class_ref;
        p->maybe_class = find_class(t, ref);
        p->of_ec2 = !t->catalogue_path && !str_eqz(ref->group, KWOK_GROUP);
    }
}

bool pool_class_note(const struct loaded_pool *pool, struct buf *out)
{
    const struct node_class_ref *ref = &pool->pool->spec.template.spec.node_class_ref;
    if (pool->maybe_class || !pool->of_ec2)
        return false;
    buf_addf(out, "NodePool/%.*s: ", STR_ARG(pool->pool->object.meta.name));
    name_format(ref->kind, out);
    buf_addc(out, '/');
    name_format(ref->name, out);
    buf_addz(out, " is not among the manifests: its defaults are assumed");
    return true;
}

/* --- the catalogue --- */

static int open_catalogue(struct loaded_types *t, const struct invocation *inv)
{
    const char *region = flag_value(inv, "region");
    struct err err;
    t->catalogue_path = flag_value(inv, "catalogue");
    struct catalogue_options options = { .region = str_of(region),
                                         .maybe_path = t->catalogue_path,
                                         .maybe_class = find_class,
                                         .class_ctx = t };
    if (catalogue_new(options, &t->catalogue, &err) == 0)
        return EXIT_DONE;
    if (err.kind != ERR_INVALID)
        return print_complaint(inv->command->name, EXIT_ENVIRONMENT, "%s", err.text);
    bool in_file = catalogue_region_find(str_of(region)) != NULL;
    return print_complaint(inv->command->name, in_file ? EXIT_NO : EXIT_USAGE, "%s", err.text);
}

/* --- overlays --- */

struct overlay_pool loaded_overlay_pool(const struct loaded_pool *pool)
{
    return (struct overlay_pool){
        .name = pool->pool->object.meta.name,
        .labels = pool->pool->spec.template.meta.labels,
        .types = pool->raw,
        .well_known = pool->well_known,
    };
}

const char *overlay_state_word(enum overlay_state state)
{
    switch (state) {
    case OVERLAY_ACCEPTED:
        return "accepted";
    case OVERLAY_INVALID:
        return "invalid";
    case OVERLAY_CONFLICT:
        return "conflict";
    }
    KV_UNREACHABLE();
}

bool overlay_verdict_format(const struct overlay_verdict *v, struct buf *out)
{
    struct str name = v->overlay->object.meta.name;
    if (v->state != OVERLAY_ACCEPTED)
        buf_addf(out, "NodeOverlay/%.*s: rejected (%s): %.*s", STR_ARG(name),
                 overlay_state_word(v->state), STR_ARG(v->message));
    else if (v->type_count == 0)
        buf_addf(out, "NodeOverlay/%.*s: matches no instance type", STR_ARG(name));
    else
        return false;
    return true;
}

/* Over all pools: a conflict anywhere rejects an overlay. */
static void evaluate_overlays(struct loaded_types *t)
{
    AUTO_OVERLAY_SET set = overlay_set_new(t->overlays.items, (uint32_t)t->overlays.count, 1);
    struct overlay_pool *pools = arena_array(&t->arena, struct overlay_pool, t->pools.count);
    uint32_t count = 0;
    vec_each(&t->pools, struct loaded_pool, p) {
        if (p->raw)
            pools[count++] = loaded_overlay_pool(p);
    }
    overlay_set_evaluate(set, pools, count, &t->arena, &t->evaluation);
    instance_cache_set_overlays(t->cache, t->evaluation.accepted);
}

/* --- types --- */

static void load_raw(struct loaded_types *t, struct loaded_pool *p)
{
    struct err err;
    if (instance_cache_get_raw(t->cache, p->pool, &p->raw, &err) < 0)
        p->trouble = arena_str(&t->arena, str_of(err.text));
    else
        p->well_known =
            provider_well_known(&t->arena, &p->pool->spec.template.spec.node_class_ref, p->raw);
}

static void load_overlaid(struct loaded_types *t, struct loaded_pool *p)
{
    struct err err;
    if (p->raw && instance_cache_get(t->cache, p->pool, &p->types, &err) < 0)
        p->trouble = arena_str(&t->arena, str_of(err.text));
}

int loaded_types_load(struct loaded_types *t, const struct invocation *inv)
{
    t->node_overlays = strcmp(flag_value(inv, "node-overlay"), "true") == 0;
    int code = open_catalogue(t, inv);
    if (code != EXIT_DONE)
        return code;
    find_classes(t);
    t->cache = instance_cache_new(
        (struct instance_cache_options){ .provider = catalogue_provider(t->catalogue),
                                         .clock = clock_real(),
                                         .node_overlays = t->node_overlays,
                                         .stripes = 1 });
    vec_each(&t->pools, struct loaded_pool, p)
        load_raw(t, p);
    if (t->node_overlays)
        evaluate_overlays(t);
    vec_each(&t->pools, struct loaded_pool, p)
        load_overlaid(t, p);
    return EXIT_DONE;
}

void loaded_types_done(struct loaded_types *t)
{
    vec_each(&t->pools, struct loaded_pool, p) {
        instance_types_unref(p->raw);
        instance_types_unref(p->types);
    }
    vec_done(&t->pools);
    vec_done(&t->overlays);
    vec_done(&t->classes);
    overlay_set_unref(t->evaluation.accepted);
    instance_cache_free(t->cache);
    catalogue_free(t->catalogue);
    arena_done(&t->arena);
}
