/* control/pools.h - what the reconcilers of NodePools share. */
#pragma once

#include "control/control_impl.h"

/* The pool of that name if it is for us: its node class is one of the provider's. A reference, or
 * NULL. */
const struct object *pool_managed(struct control *c, struct str name);

/* For triggers. Every pool that names the node class which changed. */
trigger_fn trigger_pools_of_class;
/* A pool came, went, or is to be something else: not for writes of its status. */
trigger_fn trigger_pool_asked;

/* What a pool asks of its nodes: labels of its template and requirements. ERR_INVALID. */
int pool_requirements(struct arena *arena, const struct nodepool *pool, struct requirements *out,
                      struct err *err);

/* What is said in its conditions NodeClassReady and ValidationSucceeded. */
void pool_judge_class(struct control *c, const struct nodepool *pool, struct condition_set *set);
void pool_judge_spec(const struct nodepool *pool, struct condition_set *set, struct arena *arena);

/* The conditions of a node class of any kind that we know. */
const struct condition *class_condition(const struct object *class_, struct str type);
