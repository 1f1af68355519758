/* sched/domains.h - the first half of solving: pods onto what is there, and domains for the rest.
 *
 * Pods whose topology terms speak of domains wider than a host (zones, mostly) get their domains
 * chosen here, one pod after the other, against live counts: so there is an order in which every
 * choice is legal, and packing (sched/pack.h) needs to know of hosts only.
 */
#pragma once

#include "sched/state.h"

struct item { /* pods of a class that need launches */
    uint32_t class_, variant;
    uint32_t wants; /* of the variant, and the chosen domains */
    uint32_t count;
};

struct items {
    VEC(struct item) list;
};

/* Puts up to `count` pods of the class, read as that variant, onto bins that are there, and adds
 * items for those that can be launched for. Returns how many it could do neither with. */
uint32_t domains_place(struct state *s, uint32_t class_, uint32_t variant, uint32_t count,
                       struct items *out);

/* Takes back the choice of domains for pods of an item that could not be launched for. */
void domains_undo(struct state *s, const struct item *item, uint32_t count);

/* Could a new node take one pod? By taints, terms, room and what is left of limits. */
struct outlook launch_outlook(struct state *s, uint32_t class_, const struct variant *v,
                              uint32_t wants);
/* A number for all that this depends on of a class; false if it has none: ports, which few have, count
 * too. */
bool outlook_key(const struct state *s, uint32_t class_, const struct variant *v, uint32_t wants,
                 uint64_t *key);
/* Would a daemon of that machine take a host port of the class? */
bool daemons_hold_port(const struct model *m, const struct pool *pool, uint32_t machine,
                       const struct pod_class *c);
/* The same for given terms; and for one machine of a pool, terms aside. */
bool launch_possible_on(struct state *s, uint32_t class_, uint32_t terms);
bool machine_possible(const struct state *s, uint32_t class_, uint32_t pool, uint32_t machine);
