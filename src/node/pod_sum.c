#include "node/pod_sum.h"

#include "api/resources.h"

static struct quantity plus(struct quantity a, struct quantity b)
{
    struct quantity sum;
    return quantity_add(a, b, &sum, NULL) < 0 ? quantity_of(INT64_MAX) : sum;
}

struct quantity pod_sum(const struct node_pod *pod, struct str resource, bool limits)
{
    const struct resources *own = limits ? &pod->resources.limits : &pod->resources.requests;
    if (resources_find(own, resource))
        return resources_get(own, resource);

    struct quantity sidecars = quantity_of(0), largest = quantity_of(0);
    bool unbounded = false;
    for (uint32_t i = 0; i < pod->inits.count; i++) {
        const struct node_container *init = &pod->inits.items[i];
        const struct resource_needs *needs = &init->resources;
        struct quantity one = resources_get(limits ? &needs->limits : &needs->requests, resource);
        unbounded |= quantity_is_zero(one);
        struct quantity with = plus(sidecars, one);
        if (init->sidecar)
            sidecars = with;
        if (quantity_cmp(with, largest) > 0)
            largest = with;
    }
    struct quantity sum = sidecars;
    for (uint32_t i = 0; i < pod->containers.count; i++) {
        const struct resource_needs *needs = &pod->containers.items[i].resources;
        struct quantity one = resources_get(limits ? &needs->limits : &needs->requests, resource);
        unbounded |= quantity_is_zero(one);
        sum = plus(sum, one);
    }
    if (limits && unbounded)
        return quantity_of(0);
    return quantity_cmp(sum, largest) > 0 ? sum : largest;
}
