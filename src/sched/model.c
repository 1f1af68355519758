/* The steps of compiling, in order (model_inner.h), and what is left of them: arrays in the arena. */
#include "sched/model_memo.h"
#include "sched/model_nodes.h"

/* The items of a vector, in the arena for good. */
#define KEPT(arena, vec) items_kept((arena), (vec).items, (vec).count, sizeof *(vec).items)

static void *items_kept(struct arena *arena, const void *items, size_t count, size_t size)
{
    void *kept = arena_alloc_array(arena, count, size);
    if (count)
        memcpy(kept, items, count * size);
    return kept;
}

static void vectors_keep(struct compile *c)
{
    struct model *m = c->m;
    m->skips = KEPT(m->arena, c->skips);
    m->skip_count = (uint32_t)c->skips.count;
    m->fits = KEPT(m->arena, c->fits);
    m->fit_count = (uint32_t)c->fits.count;
    m->tolerances = KEPT(m->arena, c->tolerances);
    m->tolerance_count = (uint32_t)c->tolerances.count;
    m->taints = KEPT(m->arena, c->taints);
    m->taints_count = (uint32_t)c->taints.count;
    m->ports = KEPT(m->arena, c->ports);
    m->port_count = (uint32_t)c->ports.count;
    m->drivers = KEPT(m->arena, c->drivers);
    m->driver_count = (uint32_t)c->drivers.count;
}

/* Keys and groups do not change once they are counted, and wants are pinned to them by number. */
static void topology_keep(struct compile *c)
{
    struct model *m = c->m;
    m->keys = KEPT(m->arena, c->keys);
    m->key_count = (uint32_t)c->keys.count;
    m->groups = KEPT(m->arena, c->groups);
    m->group_count = (uint32_t)c->groups.count;
}

void model_compile(struct model *m, struct arena *arena, const struct snapshot *snap,
                   struct plan_options options)
{
    struct compile c = { .m = m, .arena = arena };
    *m = (struct model){ .arena = arena, .snap = snap, .options = options };
    if (!m->options.types_max)
        m->options.types_max = PLAN_TYPES_MAX;

    terms_init(m);
    sorts_collect(&c);
    pools_compile(&c);
    groups_compile(&c);
    homes_compile(&c);
    classes_compile(&c);
    taints_settle(&c);
    ports_settle(&c);
    topology_keep(&c);
    vectors_keep(&c);
    home_shapes_settle(m, c.nodes->homes, c.nodes->home_labels);
    node_side_done(&c);
    compile_done(&c);
}

void model_done(struct model *m)
{
    if (m->memo)
        terms_done(m);
}
