/* bench/cost_ffd.h - plain first fit decreasing, as an ordinary autoscaler does it: what karve's plan is
 * measured against. */
#pragma once

#include "sched/model.h"

struct ffd {
    usd_hour price;
    uint32_t node_count, unplaced; /* unplaced: pods */
};

/* The model is compiled, of a snapshot without nodes; pods ask for nothing but resources, labels,
 * tolerations, and spreads and anti-affinity among themselves. */
struct ffd ffd_pack(struct model *m);
