/* control/lifecycle.h - the parts of a NodeClaim's life. For the lifecycle files only.
 *
 *     launch -> registration -> initialization        (and liveness beside them)
 *                          deletion -> end
 *
 * One pass takes a claim as far as it goes. The parts write to other objects themselves; what they
 * find out about the claim is collected here and written once, at the end of the pass.
 */
#pragma once

#include "control/control_impl.h"

struct life {
    struct control *c;
    struct arena arena;
    const struct object *object;      /* the claim as last read or written; a reference */
    const struct nodeclaim *claim;    /* the same */
    struct condition_set *conditions; /* the claim's, with what this pass has found out */
    const struct object *maybe_pool;  /* that owns the claim; a reference */
    const struct object *maybe_node;  /* that has its providerID; a reference */

    /* To be written with the conditions. */
    const struct instance *maybe_launched;
    struct str node_name; /* absent: as it is */

    bool removed;        /* the claim has been deleted in this pass: its end comes next */
    struct outcome next; /* when to look again though nothing happens */
};

/* Each returns 0 when it has done what it can, also if that is to wait. */
int lifecycle_launch(struct life *life, struct err *err);
int lifecycle_register(struct life *life, struct err *err);
int lifecycle_initialize(struct life *life, struct err *err);
int lifecycle_liveness(struct life *life, struct err *err);
int lifecycle_end(struct life *life, struct err *err);

/* --- for the parts (lifecycle.c) --- */

/* From now on the claim is this; takes over the reference. No condition may be waiting to be
 * written. */
void life_see(struct life *life, const struct object *claim);
/* Delete the claim, and count why: "launch_timeout". */
int life_remove(struct life *life, const char *reason, struct err *err);
void life_again_after(struct life *life, int64_t after_ns);

/* Put into `into`.`field` the pairs of `want` that `have` lacks or, with `overwrite`, has
 * otherwise. False, and nothing is put there: there are none. */
bool life_put_pairs(struct json_build *b, json_mut *into, const char *field,
                    const struct str_map *have, const struct str_map *want, bool overwrite);
