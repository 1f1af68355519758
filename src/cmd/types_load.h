/* cmd/types_load.h - what NodePools can launch, for commands that work without a cloud.
 *
 * Manifests, catalogue, cache and overlays are put together as the controller does it. A command
 * hands over the objects that it has read (loaded_types_collect), then has everything worked out
 * (loaded_types_load). Objects are borrowed until loaded_types_done.
 */
#pragma once

#include "api/ec2nodeclass.h"
#include "api/manifest.h"
#include "api/nodepool.h"
#include "cloud/catalogue.h"
#include "cloud/instance_cache.h"
#include "cmd/command.h"

struct loaded_pool {
    const struct nodepool *pool;
    const struct object *maybe_class;         /* its node class, if that is among the objects */
    bool of_ec2;                              /* its types are the built-in ones of EC2 */
    const struct instance_types *raw, *types; /* before and after overlays; NULL: see `trouble` */
    struct str_list well_known; /* labels of its cloud, and what its types say of themselves */
    struct str trouble;         /* why there are no types; "" if there are */
};

struct loaded_types {
    struct arena arena;
    struct catalogue *catalogue;
    struct instance_cache *cache;
    const char *catalogue_path;    /* NULL: the built-in one */
    bool node_overlays;            /* the feature gate */
    VEC(struct loaded_pool) pools; /* in the order in which they are tried */
    VEC(const struct nodeoverlay *) overlays;
    VEC(const struct object *) classes;
    struct overlay_evaluation evaluation; /* verdicts only with the gate */
};

/* Whose types there are: for every command that has them without a cloud. */
#define CATALOGUE_FLAGS                                                                            \
    { .name = "catalogue",                                                                         \
      .value = "PATH",                                                                             \
      .help = "instance types from this file instead of the built-in catalogue",                   \
      .files = true },                                                                             \
    {                                                                                              \
        .name = "region", .value = "NAME",                                                         \
        .help = "whose zones and prices the built-in catalogue shows", .dflt = CATALOGUE_REGION    \
    }

/* The flags that loaded_types_load reads, for a command's table. */
#define TYPES_LOAD_FLAGS                                                                           \
    CATALOGUE_FLAGS,                                                                               \
    {                                                                                              \
        .name = "node-overlay", .value = "BOOL",                                                   \
        .help = "the feature gate; without it overlays are not looked at", .dflt = "true",         \
        .choices = bool_choices                                                                    \
    }
extern const char *const bool_choices[];

/* Take notice of an object if it is one that decides what can be launched. */
void loaded_types_collect(struct loaded_types *t, const struct object *object);
/* An enum exit_code; what is wrong with catalogue or region has been said on stderr. A pool that has
 * no types is no failure, and neither is an overlay that is rejected. */
int loaded_types_load(struct loaded_types *t, const struct invocation *inv);
void loaded_types_done(struct loaded_types *t);

/* What overlays see of a pool. */
struct overlay_pool loaded_overlay_pool(const struct loaded_pool *pool);
const char *overlay_state_word(enum overlay_state state); /* "accepted", "invalid", "conflict" */
/* What the owner of an overlay should know of it: "NodeOverlay/x: rejected (conflict): ...". False:
 * nothing, it is accepted and of use. */
bool overlay_verdict_format(const struct overlay_verdict *v, struct buf *out);
/* "NodePool/x: EC2NodeClass/y is not among the manifests: its defaults are assumed". False: the class
 * is there, or does not matter. */
bool pool_class_note(const struct loaded_pool *pool, struct buf *out);
