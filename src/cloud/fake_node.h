/* cloud/fake_node.h - instances without machines: what kwok and the simulated cloud have in common.
 *
 * Which offering a claim gets (fake_pick.c), an instance and the Node it becomes (fake_node.c), and
 * snapshots of types in which single offerings differ (fake_types.c). All of it is a function of its
 * arguments; results live in the arena.
 */
#pragma once

#include "api/node.h"
#include "cloud/provider.h"
#include "cloud/unavailable.h"
#include "store/store.h"

/* --- which offering --- */

struct fake_candidate {
    usd_hour price;
    uint64_t tie; /* decides between equal prices: from the seed, the claim and the offering */
    uint32_t offering;
};

/* What a claim may be launched as: it is allowed, large enough for the requests, available and not
 * marked. Taken one by one, the cheapest first. */
struct fake_offerings {
    struct fake_candidate *heap;
    uint32_t count;
    /* How far others came, for the message. */
    const struct instance_types *types;
    struct requirements requirements;
    uint32_t type_count, offered, fitting;
};

/* ERR_INVALID (and the reason in `why`): the claim's requirements make no sense. Finding nothing is no
 * failure. */
int fake_offerings_find(struct arena *arena, const struct instance_types *types,
                        const struct nodeclaim *claim, struct unavailable *marks, uint64_t seed,
                        struct fake_offerings *out, struct launch_failure *why, struct err *err);
/* Takes the cheapest that is left. False: none is. */
bool fake_offerings_take(struct fake_offerings *o, uint32_t *offering);
/* ERR_CAPACITY, in words: nothing that was found could be had, or nothing was found. */
int fake_offerings_insufficient(const struct fake_offerings *o, struct launch_failure *why,
                                struct err *err);

/* --- instances and Nodes --- */

struct fake_naming {
    const char *node_prefix;     /* "kwok-" */
    const char *provider_prefix; /* "kwok://" */
    const char *maybe_marker;    /* a label and annotation with the value "fake" */
    const char *maybe_partition; /* a label with the value "a" */
};

/* "kwok-<claim>-<5 characters>-<number>": follows from the claim's name and UID. */
struct str fake_node_name(struct arena *arena, const struct fake_naming *naming,
                          const struct nodeclaim *claim);
/* STR_NONE: not one of these. */
struct str fake_node_of_provider_id(const struct fake_naming *naming, struct str provider_id);

/* As it is launched from that offering. */
void fake_instance_new(struct arena *arena, const struct fake_naming *naming,
                       const struct nodeclaim *claim, const struct instance_types *types,
                       uint32_t offering, int64_t now_us, struct instance *out);
/* As the claim remembers it: it was launched. */
void fake_instance_of_claim(struct arena *arena, const struct fake_naming *naming,
                            const struct nodeclaim *claim, struct instance *out);
void fake_instance_of_node(struct arena *arena, const struct node *node, struct instance *out);
void fake_instance_copy(struct arena *arena, const struct instance *from, struct instance *out);

/* A Node as it registers: labels, annotations, providerID, the taint karpenter.sh/unregistered,
 * capacity and allocatable. The caller adds what else it has. */
json_mut *fake_node_json(struct json_build *b, const struct instance *instance);

/* --- the port --- */

/* What such clouds have in common: their node classes (KWOKNodeClass, and those of `maybe_types`), after
 * how long a node that is not ready is repaired, and that nothing drifts. The caller sets name, context
 * and the other calls. */
#define FAKE_CLASSES_MAX 8
void fake_port_init(struct cloud_provider *port, const struct cloud_provider *maybe_types,
                    struct node_class_kind classes[FAKE_CLASSES_MAX]);

/* --- node classes --- */

/* ERR_NOT_FOUND: there is none, or it is not of a kind that the provider supports. */
int fake_class_get(const struct cloud_provider *port, const struct store *store,
                   const struct node_class_ref *ref, const struct object **out, struct err *err);
/* The same for a launch: a class that is missing or not ready is a reason not to. */
int fake_class_for_launch(const struct cloud_provider *port, const struct store *store,
                          const struct node_class_ref *ref, const struct object **out,
                          struct launch_failure *why, struct err *err);

/* --- types --- */

/* `base` with what `edit` makes of each offering: its price, whether it is available. A snapshot of
 * its own, no layer: overlays can be put on top. */
typedef void fake_edit_fn(void *ctx, const struct instance_types *base, uint32_t offering,
                          struct offering_draft *draft);
int fake_types_edit(const struct instance_types *base, fake_edit_fn *edit, void *ctx,
                    const struct instance_types **out, struct err *err);
bool fake_offering_is_marked(const struct instance_types *s, uint32_t offering,
                             struct unavailable *marks);
/* `base` with the marked offerings not available: another reference to it if none is marked. */
int fake_types_marked(const struct instance_types *base, struct unavailable *marks,
                      const struct instance_types **out, struct err *err);
