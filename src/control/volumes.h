/* control/volumes.h - which volumes keep a node that has no pods left. */
#pragma once

#include "store/store.h"

struct control;
struct node;

/* The names of the VolumeAttachments that must vanish before the instance may: those of persistent
 * volumes, except where a pod that stays to the end (it is not drainable) has the claim. `pods`:
 * those of the node. In the arena. */
struct str_list volumes_blocking(struct control *c, struct arena *arena, const struct node *node,
                                 const struct object_list *pods, int64_t now_us);
