/* control/termination.h - what the end of a node is decided by. */
#pragma once

#include "api/node.h"
#include "api/nodeclaim.h"

struct control;

/* The claim of a node: by providerID, else the one that the node says owns it. A reference, or NULL. */
const struct object *termination_claim(struct control *c, const struct node *node);

/* By when the node must be gone, whatever its pods want: DRAIN_NO_DEADLINE if nobody has said. */
int64_t termination_deadline_us(const struct nodeclaim *maybe_claim);
