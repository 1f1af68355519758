/* What invariants.c and invariants_rest.c share. */
#pragma once

#include "api/nodeclaim.h"
#include "api/nodepool.h"
#include "base/map.h"
#include "sim/invariants.h"
#include "sim/world.h"

struct invariants {
    struct arena arena;
    struct str_table claims, pools; /* struct claim_past *, struct pool_past *, by uid */
    struct str_table instances;     /* claim's uid to the provider id, as a copy */
    struct str_table nodes_of_pods; /* pod's uid to the name of its node */
    struct str_table orphans;       /* what is alone, to 1 + since when (uptime_ns) */
    struct finding finding;
    bool broken;
};

struct look { /* at everything, once */
    struct invariants *inv;
    const struct world_parts *world;
    struct arena arena;
    struct object_list pods, nodes, claims, pools;
    const struct sim_instance *instances;
    uint32_t instance_count;
    struct str_table claims_by_uid, nodes_by_provider_id, instances_by_id;
};

void look_init(struct look *l, struct invariants *inv, const struct world_parts *world);
void look_done(struct look *l);
/* The first one stays. */
KV_PRINTF(3, 4) void look_broken(struct look *l, uint32_t rule, const char *fmt, ...);

bool look_claim_is(const struct nodeclaim *claim, struct str type); /* the condition is True */
const struct condition *look_health(const struct nodepool *pool);   /* NULL: not there yet */
