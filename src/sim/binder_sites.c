/* Nodes, what is left of them, and who is on them. */
#include "sim/binder_impl.h"

#include "cloud/instance_types.h"

uint32_t site_of(struct binder *b, struct str name)
{
    uintptr_t known = (uintptr_t)str_table_get(&b->node_ids, name);
    if (known)
        return (uint32_t)known - 1;
    struct site *site = kv_calloc(1, sizeof *site);
    uint32_t at;
    if (b->sites_free.count) {
        at = vec_pop(&b->sites_free);
        b->sites.items[at] = site;
    } else {
        at = (uint32_t)b->sites.count;
        vec_push(&b->sites, site);
    }
    str_table_put(&b->node_ids, name, (void *)(uintptr_t)(at + 1));
    site->name = str_table_slot(&b->node_ids, name)->key;
    return at;
}

void site_free(struct site *site)
{
    if (!site)
        return;
    if (site->maybe_node)
        object_unref(&site->maybe_node->object);
    vec_done(&site->free);
    vec_done(&site->residents);
    free(site);
}

static void drop_if_empty(struct binder *b, uint32_t at)
{
    struct site *site = b->sites.items[at];
    if (site->maybe_node || site->residents.count)
        return;
    str_table_remove(&b->node_ids, site->name);
    site_free(site);
    b->sites.items[at] = NULL;
    vec_push(&b->sites_free, at);
}

/* --- room --- */

static wide *room(struct site *site, uint32_t resource)
{
    while (site->free.count <= resource)
        vec_push(&site->free, 0);
    return &site->free.items[resource];
}

static void take_room(struct site *site, const struct ask *ask, int64_t by)
{
    for (uint32_t i = 0; i < ask->amount_count; i++)
        *room(site, ask->amounts[i].resource) -= (wide)ask->amounts[i].milli * by;
}

static double scale_of(const struct resources *has, const char *name)
{
    int64_t milli = 0;
    for (uint32_t i = 0; i < has->count; i++) {
        if (str_eqz(has->items[i].name, name))
            milli = milli_floor(has->items[i].amount);
    }
    return milli > 0 ? 1.0 / (double)milli : 0;
}

static void reckon_room(struct binder *b, struct site *site)
{
    const struct node_object_status *status = &site->maybe_node->status;
    const struct resources *has =
        status->allocatable.count ? &status->allocatable : &status->capacity;
    vec_clear(&site->free);
    for (uint32_t i = 0; i < has->count; i++)
        *room(site, resource_id(b, has->items[i].name)) = milli_floor(has->items[i].amount);
    site->cpu_scale = scale_of(has, "cpu");
    site->memory_scale = scale_of(has, "memory");
    vec_each(&site->residents, struct resident, r)
        take_room(site, r->class->ask, (int64_t)r->live + r->ending);
}

/* --- nodes that come, change and go --- */

void site_set_node(struct binder *b, uint32_t at, const struct node *maybe_node)
{
    struct site *site = b->sites.items[at];
    if (site->maybe_node) {
        terms_node_leaves(b, at);
        object_unref(&site->maybe_node->object);
        b->node_count--;
    }
    str_table_each(&b->asks, slot) {
        struct ask *ask = slot->value;
        if (at < ask->fits.count)
            ask->fits.items[at] = ASK_FIT_UNKNOWN;
    }
    site->maybe_node = maybe_node ? node_of(object_ref(&maybe_node->object)) : NULL;
    b->epoch++;
    if (maybe_node) {
        b->node_count++;
        reckon_room(b, site);
        terms_node_joins(b, at);
    } else {
        drop_if_empty(b, at);
    }
}

/* --- pods that come and go --- */

static struct resident *resident_of(struct site *site, struct class *class)
{
    vec_each(&site->residents, struct resident, r) {
        if (r->class == class)
            return r;
    }
    vec_push(&site->residents, (struct resident){ .class = class });
    return &vec_last(&site->residents);
}

void site_count(struct binder *b, uint32_t at, struct class *class, bool ending, int by)
{
    struct site *site = b->sites.items[at];
    struct resident *r = resident_of(site, class);
    if (site->maybe_node)
        take_room(site, class->ask, by);
    terms_count(b, at, class, ending, by);
    if (ending)
        r->ending = (uint32_t)((int64_t)r->ending + by);
    else
        r->live = (uint32_t)((int64_t)r->live + by);
    if (by < 0)
        b->epoch++;
    if (!r->live && !r->ending)
        *r = vec_pop(&site->residents);
    drop_if_empty(b, at);
}

bool site_ports_free(const struct site *site, const struct ask *ask)
{
    if (!ask->port_count)
        return true;
    vec_each(&site->residents, struct resident, r) {
        if (ports_clash(ask, r->class->ask))
            return false;
    }
    return true;
}
