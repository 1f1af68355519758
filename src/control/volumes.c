/* pod --> its claims --> their volumes <-- attachments: those of pods that nobody will remove would
 * never be detached while the node lives, so they are not waited for.
 */
#include "control/volumes.h"

#include "api/node.h"
#include "api/storage.h"
#include "base/vec.h"
#include "control/control_impl.h"
#include "control/drain.h"

struct names {
    VEC(struct str) list; /* in the arena */
};

static void add_volumes_of(struct control *c, struct arena *arena, const struct pod *pod,
                           struct names *out)
{
    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        struct str claim = pod_volume_claim(pod, &pod->volumes.items[i], arena);
        if (!claim.len)
            continue;
        AUTO_OBJECT pvc = cluster_get(c->cluster, &pvc_kind, pod->object.meta.namespace_, claim);
        if (pvc && pvc_of(pvc)->spec.volume_name.len)
            vec_push(&out->list, arena_str(arena, pvc_of(pvc)->spec.volume_name));
    }
}

struct str_list volumes_blocking(struct control *c, struct arena *arena, const struct node *node,
                                 const struct object_list *pods, int64_t now_us)
{
    struct names staying = { 0 };
    struct object_list attachments;

    for (size_t i = 0; i < pods->count; i++) {
        const struct pod *pod = pod_of(pods->items[i]);
        if (!pod_is_drainable(pod, now_us))
            add_volumes_of(c, arena, pod, &staying);
    }
    size_t staying_count = str_sort_unique(staying.list.items, staying.list.count);

    cluster_list_by(c->cluster, ATTACHMENTS_BY_NODE, node->object.meta.name, &attachments);
    struct str *names = arena_array(arena, struct str, attachments.count);
    uint32_t count = 0;
    for (size_t i = 0; i < attachments.count; i++) {
        struct str volume = volume_attachment_of(attachments.items[i])->spec.source.volume_name;
        if (volume.len && !str_sorted_has(staying.list.items, staying_count, volume))
            names[count++] = arena_str(arena, attachments.items[i]->meta.name);
    }
    object_list_done(&attachments);
    vec_done(&staying.list);
    return (struct str_list){ names, count };
}
