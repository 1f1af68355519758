/* Resource lists are immutable and made anew at every step, in the caller's arena: a pod has few
 * containers and a container few resources. */
#include "api/requests.h"

#include "api/resources.h"

/* `a`, and what only `b` has: sorted by name, as both are. */
static struct resources with_missing(struct arena *arena, const struct resources *a,
                                     const struct resources *b)
{
    struct resource *items = arena_array(arena, struct resource, (size_t)a->count + b->count);
    uint32_t n = 0, i = 0, j = 0;
    while (i < a->count || j < b->count) {
        int c = i == a->count   ? 1
                : j == b->count ? -1
                                : str_cmp(a->items[i].name, b->items[j].name);
        items[n++] = c <= 0 ? a->items[i] : b->items[j];
        i += c <= 0;
        j += c >= 0;
    }
    return (struct resources){ items, n };
}

/* --- containers --- */

/* The API server writes limits into missing requests of pods; a template's are not touched. */
static struct resources container_wants(struct arena *arena, const struct container *c)
{
    return c->resources.limits.count
               ? with_missing(arena, &c->resources.requests, &c->resources.limits)
               : c->resources.requests;
}

static const struct container_status *status_find(const struct container_status *items,
                                                  uint32_t count, struct str name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (str_eq(items[i].name, name))
            return &items[i];
    }
    return NULL;
}

static const struct container_status *container_status(const struct pod *pod, struct str name)
{
    const struct pod_status *s = pod->status;
    const struct container_status *cs = status_find(s->containers.items, s->containers.count, name);
    return cs ? cs : status_find(s->init_containers.items, s->init_containers.count, name);
}

/* A resize that will never be granted does not count. */
static bool resize_is_infeasible(const struct pod *pod)
{
    const struct pod_condition *pending = pod_condition(pod, STR("PodResizePending"));
    if (pending)
        return str_eq(pending->reason, STR("Infeasible"));
    return str_eq(pod->status->resize, STR("Infeasible"));
}

static struct resources container_requests(struct arena *arena, const struct pod *maybe_pod,
                                           const struct container *c)
{
    struct resources wants = container_wants(arena, c);
    const struct container_status *cs = maybe_pod ? container_status(maybe_pod, c->name) : NULL;
    if (!cs || (!cs->maybe_resources && cs->allocated.count == 0))
        return wants;
    struct resources has = cs->allocated;
    if (cs->maybe_resources)
        has = resources_max(arena, &cs->maybe_resources->requests, &has);
    return resize_is_infeasible(maybe_pod) ? has : resources_max(arena, &wants, &has);
}

/* `maybe_pod` has the status to look at. */
static int container_sum(const struct pod *maybe_pod, const struct pod_spec *spec,
                         struct arena *arena, struct resources *out, struct err *err)
{
    struct resources running = { 0 };  /* containers and sidecars, side by side */
    struct resources sidecars = { 0 }; /* those started so far */
    struct resources starting = { 0 }; /* the most that any step of the start needs */

    for (uint32_t i = 0; i < spec->containers.count; i++) {
        struct resources wants = container_requests(arena, maybe_pod, &spec->containers.items[i]);
        if (resources_merge(arena, &running, &wants, &running, err) < 0)
            return -1;
    }
    for (uint32_t i = 0; i < spec->init_containers.count; i++) {
        const struct container *c = &spec->init_containers.items[i];
        bool sidecar = container_is_sidecar(c);
        struct resources wants = container_requests(arena, sidecar ? maybe_pod : NULL, c);
        struct resources step;
        if (sidecar && (resources_merge(arena, &running, &wants, &running, err) < 0 ||
                        resources_merge(arena, &sidecars, &wants, &sidecars, err) < 0))
            return -1;
        if (sidecar)
            step = sidecars;
        else if (resources_merge(arena, &wants, &sidecars, &step, err) < 0)
            return -1;
        starting = resources_max(arena, &starting, &step);
    }
    *out = resources_max(arena, &running, &starting);
    return 0;
}

/* --- the pod as a whole --- */

static bool is_pod_level(struct str name)
{
    return str_eq(name, STR("cpu")) || str_eq(name, STR("memory")) ||
           str_starts(name, STR("hugepages-"));
}

static struct resources pod_level_only(struct arena *arena, const struct resources *r)
{
    struct resource *items = arena_array(arena, struct resource, r->count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->count; i++) {
        if (is_pod_level(r->items[i].name))
            items[n++] = r->items[i];
    }
    return (struct resources){ items, n };
}

/* What the pod asks for as a whole. A limit without a request is the request, unless containers
 * ask for that resource themselves (huge pages always). */
static struct resources pod_level_requests(const struct pod_spec *spec, const struct resources *sum,
                                           struct arena *arena)
{
    struct resources limits = pod_level_only(arena, &spec->resources.limits);
    struct resources asked = pod_level_only(arena, &spec->resources.requests);
    struct resource *implied = arena_array(arena, struct resource, limits.count);
    uint32_t n = 0;
    for (uint32_t i = 0; i < limits.count; i++) {
        struct str name = limits.items[i].name;
        if (str_starts(name, STR("hugepages-")) || !resources_find(sum, name))
            implied[n++] = limits.items[i];
    }
    return with_missing(arena, &asked, &(struct resources){ implied, n });
}

static int requests(const struct pod *maybe_pod, const struct pod_spec *spec, struct arena *arena,
                    struct resources *out, struct err *err)
{
    struct resources sum;
    if (container_sum(maybe_pod, spec, arena, &sum, err) < 0)
        return -1;
    if (spec->resources.requests.count || spec->resources.limits.count) {
        struct resources whole = pod_level_requests(spec, &sum, arena);
        sum = with_missing(arena, &whole, &sum);
    }
    if (spec->overhead.count)
        return resources_merge(arena, &sum, &spec->overhead, out, err);
    *out = sum;
    return 0;
}

int pod_requests(const struct pod *pod, struct arena *arena, struct resources *out, struct err *err)
{
    return requests(pod, pod->spec, arena, out, err);
}

int pod_spec_requests(const struct pod_spec *spec, struct arena *arena, struct resources *out,
                      struct err *err)
{
    return requests(NULL, spec, arena, out, err);
}

int pod_requests_on_node(const struct pod *pod, struct arena *arena, struct resources *out,
                         struct err *err)
{
    struct resource pods = { .name = STR("pods"), .amount = quantity_of(1) };
    struct resources one = { &pods, 1 };
    struct resources sum;
    if (pod_requests(pod, arena, &sum, err) < 0)
        return -1;
    return resources_merge(arena, &sum, &one, out, err);
}
