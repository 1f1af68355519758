/* control/leader_inner.h - what leader.c and leader_fence.c share. */
#pragma once

#include "control/leader.h"

struct leader_fence; /* one decorator; a list of them */

/* Where the leader keeps the decorators that were made for it. */
struct leader_fence **leader_fences(struct leader *l);
void leader_fences_free(struct leader_fence *first);
