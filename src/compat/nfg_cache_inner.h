/* compat/nfg_cache_inner.h - what the files of the NodeFeatureGroup cache share.
 *
 *     entry  what the document caches: an image and its groups, in the order of its sets
 *     group  one name that some entry or publisher needs, with the rules that it stands for
 *     seen   one object in the cluster, in whatever namespace
 *
 * A group is linked to the object of its name in nfd-master's namespace. It is *sound* if there is one that
 * has the group's rules and is not being deleted.
 */
#pragma once

#include "api/nfd.h"
#include "base/map.h"
#include "compat/nfg_cache.h"

#include <stdatomic.h>

#define NFG_IMAGES_MAX 8                                /* named on one group */
#define NFG_IMAGE_BYTES_MAX 512                         /* a longer one is not */
#define NFG_TEXT_BYTES_MAX 256                          /* of a tag */
#define NFG_CONFIRM_NS ((int64_t)60 * 1000000000)       /* until the watch shows what we wrote */
#define NFG_RETRY_NS ((int64_t)5 * 1000000000)          /* doubles at every failure, */
#define NFG_RETRY_MAX_NS ((int64_t)5 * 60 * 1000000000) /* up to this */

struct seen {
    const struct object *object; /* a reference */
    struct str *nodes;           /* of its status, sorted; they point into the object */
    uint32_t node_count;
    bool had_nodes;   /* its status was not always empty: somebody evaluates it */
    bool unconfirmed; /* we wrote or read it, and the watch has not told yet */
    int64_t first_ns; /* when an object with this uid was first seen */
    int64_t wrote_ns; /* of `unconfirmed` */
};

/* There may be hundreds of thousands of these: what can be found or made again is not kept. */
struct group {
    struct str name;  /* the table's */
    struct str rules; /* the set's rules_json, the table's; absent: only the name is known */
    struct seen *maybe_seen;
    struct seen *maybe_last; /* who was in it when it was lost; NULL: it was not */
    char **images;           /* what it is for, to tell the people who look at it */
    uint32_t image_count;
    bool sound;
    char *image_digest, *artifact, *tag; /* of the image that came last; NULL: none did */
    int64_t weight;
    uint32_t entry_count; /* that refer to it */
    _Atomic int64_t used_ns;
    struct err *maybe_err; /* why it could not be made; NULL: it was not tried, or was made */
    uint32_t failures;     /* in a row */
    int64_t retry_ns;      /* not before, whoever asks */
};

struct entry_item {
    struct group *group;
    bool dropped; /* its group was gone at the last look */
};

struct entry {
    _Atomic int64_t used_ns;
    uint32_t count;
    struct entry_item items[];
};

struct nfg_cache {
    struct nfg_cache_options options;
    int64_t idle_ns, stamp_ns;
    struct metric *avg_groups, *creation_seconds, *validation_seconds, *partial_invalidations;

    /* One at a time talks to the store. Groups are freed with it held, so whoever has it may keep
     * pointers to them without `lock`. Taken before `lock`. */
    pthread_mutex_t store_lock;
    pthread_rwlock_t lock;     /* guards all below; no call leaves the process with it held */
    char *namespace_;          /* "": not known */
    struct str_table entries;  /* by image */
    struct str_table groups;   /* by name */
    struct str_table by_rules; /* groups by canonical rules */
    struct str_table seen;     /* by "namespace/name" */
    uint64_t item_count;       /* in all entries */
    _Atomic int64_t due_ns;
};

/* --- nfg_rules.c --- */

/* Rules are known by their canonical text, a set's rules_json. ERR_INVALID names the rule that cannot be in a
 * group. */
int nfg_rules_check(struct str canonical, struct err *err);
/* What is written of rules that were checked: fields that a group does not have are left out. */
void nfg_rules_write(struct str canonical, struct buf *out);
bool nfg_rules_equal(struct str canonical, const struct node_feature_group *group);
static inline bool nfg_rules_are_empty(struct str canonical)
{
    return str_eqz(canonical, "[]");
}

/* --- nfg_seen.c; with `lock` held for writing --- */

/* `unconfirmed`: not told by the watch. */
void seen_put(struct nfg_cache *cache, const struct object *object, bool unconfirmed);
/* Gone, unless there is another of the name by now. */
void seen_drop(struct nfg_cache *cache, const struct object *object);
void seen_free(struct seen *seen);
/* nfd-master has looked at it, as far as one can tell. */
static inline bool seen_is_evaluated(const struct seen *seen, int64_t now_ns)
{
    return seen->had_nodes || now_ns - seen->first_ns >= NFG_EVALUATED_NS;
}
void group_link(struct nfg_cache *cache, struct group *group);

static inline bool seen_is_ours(const struct object *object)
{
    const struct str_map *labels = &object->meta.labels;
    return str_eqz(str_map_get(labels, STR(NFG_LABEL_MANAGER)), "karve") &&
           str_eqz(str_map_get(labels, STR(NFG_LABEL_KIND)), "image-compat");
}
/* By its annotation, or else its creation; wall_us. */
int64_t seen_last_used_us(const struct object *object);

/* --- nfg_cache.c; with `lock` held for writing --- */

struct group *group_get(struct nfg_cache *cache, struct str name); /* made if it is new */
void group_free(struct group *group);
void group_name_image(struct group *group, struct str image);
void entry_put(struct nfg_cache *cache, struct str image, struct group *const *groups,
               uint32_t count);
/* That groups were referred to until now counts as a use of them, unless the entry expired. */
void entry_drop(struct nfg_cache *cache, struct str image, bool expired);
void entry_names(const struct entry *entry, struct arena *arena, struct nfg_names *out);
void due_by(struct nfg_cache *cache, int64_t at_ns); /* not later than; needs no lock */

static inline int64_t used_get(const _Atomic int64_t *used_ns)
{
    return atomic_load_explicit(used_ns, memory_order_relaxed);
}
/* Idle times are minutes: within a second of the last use nothing is written, so that lookups of several
 * threads leave the line in all their caches. */
static inline void used_touch(_Atomic int64_t *used_ns, int64_t now_ns)
{
    if (now_ns - used_get(used_ns) >= 1000000000)
        atomic_store_explicit(used_ns, now_ns, memory_order_relaxed);
}

/* --- nfg_publish.c; with `store_lock` held, and not `lock` --- */

/* Make the group that has these rules in that namespace, whatever that takes. It may get a longer name. */
int group_make(struct nfg_cache *cache, struct str namespace_, struct str rules, struct err *err);
/* Is the last use that the object tells older than ours by so much that it should be told? */
bool group_needs_stamp(struct nfg_cache *cache, const struct group *group); /* with `lock` */
void group_stamp(struct nfg_cache *cache, struct str namespace_, struct group *group);
