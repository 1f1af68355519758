/* What a pod's node has to pull. A pod may have thousands of containers, so duplicates are found by
 * hash. Ephemeral containers come after the pod has its node and decide nothing. */
#include "api/pod.h"

#include "base/map.h"

struct collector {
    struct str_table seen;
    struct str *items;
    uint32_t count;
};

static void collect(struct collector *c, struct str image)
{
    if (image.len == 0 || str_table_has(&c->seen, image))
        return;
    str_table_put(&c->seen, image, c);
    c->items[c->count++] = image;
}

uint32_t pod_images(const struct pod *pod, struct arena *arena, const struct str **out)
{
    const struct pod_spec *spec = pod->spec;
    size_t most =
        (size_t)spec->init_containers.count + spec->containers.count + spec->volume_images.count;
    struct collector c = { .items = arena_array(arena, struct str, most) };
    for (uint32_t i = 0; i < spec->init_containers.count; i++)
        collect(&c, spec->init_containers.items[i].image);
    for (uint32_t i = 0; i < spec->containers.count; i++)
        collect(&c, spec->containers.items[i].image);
    for (uint32_t i = 0; i < spec->volume_images.count; i++)
        collect(&c, spec->volume_images.items[i]);
    str_table_done(&c.seen);
    *out = c.items;
    return c.count;
}
