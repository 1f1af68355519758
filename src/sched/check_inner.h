/* sched/check_inner.h - the parts of the checker; for the check_*.c files only.
 *
 * A *site* is where pods can be: a node that is there, a claim on its way, a launch of the plan.
 * The labels of a launch are not all known: its claim allows several types and offerings, and each
 * *combination* of them is a node with labels of its own. So a question about labels has three
 * answers: never, sometimes (it depends on what is launched), always.
 *
 * What many pods or launches have in common is looked at once: pods made from one template are of
 * one *stamp*, what they ask of a node's labels is an *ask*, launches that allow the same are of
 * one *blueprint*.
 *
 * Amounts are in thousandths, as in cloud/instance_types.h; sums have 128 bits.
 */
#pragma once

#include "api/requests.h"
#include "base/map.h"
#include "base/vec.h"
#include "sched/check.h"
#include "sched/words.h"

__extension__ typedef __int128 wide;

struct ask { /* of a node's labels: the selector, and any of the terms */
    struct str_map selector;
    const struct node_selector_term *terms;
    uint32_t term_count;
    bool has_terms; /* false: there is no affinity. True without terms: no node will do */
};

enum verdict { NEVER, SOMETIMES, ALWAYS };

struct port {
    struct str ip; /* "0.0.0.0": all */
    int64_t port;
    uint8_t protocol;
};
typedef LIST(struct port) port_list;

struct stamp {
    const struct pod *pod;  /* one of them */
    const int64_t *request; /* per resource, `pods` included; NULL: beyond what can be counted */
    uint32_t ask;
    port_list ports;
};

struct daemon {
    const struct daemon_set *set;
    const struct pod_spec *spec;
    const int64_t *request;
    uint32_t ask;
    port_list ports;
    const struct toleration *tolerations; /* the controller's own included */
    uint32_t toleration_count;
};

struct blueprint {
    uint32_t id;
    const struct plan_launch *launch; /* one of them */
    const struct sched_pool *pool;
    const bool *shapes; /* per shape: the claim allows it */
    bool claimed;
    /* Daemons of a launch, as the labels decide it: those on every node (and what they request), and
     * those that depend. */
    const wide *daemons;
    const uint32_t *sure, *unsure;
    uint32_t sure_count, unsure_count;
};

enum site_kind { SITE_NODE, SITE_CLAIM, SITE_LAUNCH };

struct site {
    enum site_kind kind;
    uint32_t index; /* into the snapshot's nodes or claims, or into the plan's launches */
    const char *name;
    const struct node *maybe_node;
    const struct nodeclaim *maybe_claim; /* a node's own, too */
    struct blueprint *maybe_blueprint;   /* unless a node speaks for itself */
    /* Those that keep pods away for good: startup taints and the like are not among them. */
    const struct taint *taints;
    uint32_t taint_count;
    /* By a claim whose node has not registered: its labels and more. */
    struct requirements promised;
    bool deleting;
    const uint32_t *bound; /* pods that are there already or nominated, finished ones apart */
    uint32_t bound_count;
    struct plan_pods placed;
};

struct combination {
    uint32_t type, offering;
    uint32_t type_at, offering_at; /* where combination_next goes on */
};

struct checker {
    struct arena *arena;  /* the caller's: what findings say */
    struct arena scratch; /* all else */
    const struct snapshot *snap;
    struct plan_options options;
    const struct plan *plan;
    VEC(struct check_finding) findings;

    struct str_list resources; /* that pods or daemons ask for; sorted */
    uint32_t *stamp_of;        /* per pod: into `stamps`; PLAN_NONE: neither placed nor on a node */
    VEC(struct stamp) stamps;
    VEC(struct ask) asks;
    VEC(struct daemon) daemons;
    struct site *sites; /* nodes, claims, launches */
    uint32_t site_count;
    uint32_t *site_of; /* per pod: where the plan has it; PLAN_NONE: nowhere */

    struct str_table node_ids;  /* node's name to 1 + its index */
    struct str_table ask_ids;   /* what it says to 1 + its number */
    struct str_table print_ids; /* likewise, `struct blueprint *` */
    struct map verdicts;        /* of asks on blueprints */
    struct str_table views;     /* of labels on blueprints: check_labels.c */
    VEC(struct label_view *) view_list;
};

/* --- check.c --- */

void finding(struct checker *c, uint32_t pod, uint32_t launch, const char *fmt, ...)
    KV_PRINTF(4, 5);
const char *pod_shown(struct checker *c, uint32_t pod); /* "pod default/a" */
const char *amount_shown(struct checker *c, struct str resource, wide thousandths); /* "3650m" */
const char *price_shown(struct checker *c, usd_hour price);

/* --- check_book.c: who is in the plan, in which order, and for how much in all --- */

bool check_indices(struct checker *c); /* false: something is not there at all */
void check_book(struct checker *c);
bool pod_is_owned_by(const struct pod *pod, const char *kind);

/* --- check_sites.c: what the snapshot and the plan say, in the terms above --- */

void sites_collect(struct checker *c);
/* `launch` or PLAN_NONE, for `finding`. */
uint32_t site_launch(const struct site *p);
/* The first taint that is not tolerated and keeps pods away, or NULL. */
const struct taint *taint_in_the_way(const struct taint *taints, uint32_t taint_count,
                                     const struct toleration *tolerations,
                                     uint32_t toleration_count);
/* Would the daemon be there? `maybe_combination` of a launch; NULL: whichever. */
enum verdict daemon_verdict(struct checker *c, const struct daemon *d, const struct site *p,
                            const struct combination *maybe_combination);
bool daemon_owns(const struct daemon_set *set, const struct pod *pod);
bool ports_conflict(const struct port *a, const struct port *b);

/* --- check_labels.c: what a node's labels may be, and what pods ask of them --- */

/* `claimed`: it is on its way. What it will be may be no longer on offer, so it is any offering of its
 * types, and its labels are what the claim and the type say. */
struct blueprint *blueprint_add(struct checker *c, const struct plan_launch *launch, bool claimed);
/* Some value suits both on every key, as claims and types are matched. */
bool type_is_allowed(const struct instance_types *s, uint32_t type, const struct requirements *set);
void views_done(struct checker *c);

uint32_t ask_add(struct checker *c, const struct ask *ask); /* equal ones are one */
struct ask ask_of_spec(const struct pod_spec *spec, const struct affinity *maybe_affinity);
enum verdict ask_verdict(struct checker *c, uint32_t ask, const struct site *p);
/* Of one of the nodes that the launch may become. */
enum verdict ask_verdict_of(struct checker *c, uint32_t ask, const struct site *p,
                            const struct combination *of);
/* Of those of them whose label `key` is `value`. */
enum verdict ask_verdict_where(struct checker *c, uint32_t ask, const struct site *p,
                               struct str key, struct str value);

/* What the label may be on that site. */
struct label_values {
    const struct str *items;
    uint32_t count;
    bool missing; /* on some of its nodes at least */
    bool open;    /* or any other value */
};
struct label_values site_label(struct checker *c, const struct site *p, struct str key);

/* Texts that identify what is equal. */
void id_add_text(struct buf *b, struct str s);
void id_add_map(struct buf *b, const struct str_map *map);
void id_add_expressions(struct buf *b, const struct expression *items, uint32_t count);

/* What a launch (or a claim) may become: each of its types, as each of the type's available offerings
 * that the requirements allow. Types in the order of the launch. */
bool combination_next(const struct blueprint *b, struct combination *at);
#define combination_each(b, it) for (struct combination it = { 0 }; combination_next((b), &it);)

/* --- the rules; each file says what it is about --- */

void check_claim(struct checker *c, uint32_t launch);          /* check_claims.c */
void check_residents(struct checker *c, const struct site *p); /* check_residents.c */
void check_reservations(struct checker *c);                    /* check_limits.c */
void check_limits(struct checker *c);                          /* check_limits.c */
void check_volumes(struct checker *c);                         /* check_volumes.c */
void check_topology(struct checker *c);                        /* check_topology.c */

/* Requests of the placed pods together, per resource; in the scratch arena. */
const wide *placed_requests(struct checker *c, const struct site *p);
