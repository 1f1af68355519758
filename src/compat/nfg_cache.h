/* compat/nfg_cache.h - the NodeFeatureGroups of images: which there should be, which there are, and making
 * those that are missing.
 *
 * One group per set of an image's specs, named after its rules: equal rules of different images share a
 * group, and replicas that create the same group at once agree. What a group *must* contain is never taken
 * from the cluster: a group that somebody deletes is made again, and meanwhile nothing becomes allowed that
 * was not. Validity is kept by watching: feed `nfg_cache_observe` with every change. Objects that it is told
 * of are kept by reference: the cache is freed before the pool that they are from.
 *
 * The document's cache, rule by rule: `update` ignores an empty list; `get_valid` tells the names whose
 * groups are there, all or some; all gone is a miss; `remove` forgets.
 *
 * Thread safe. Lookups (get_valid, member, use) never wait for the store: publish and tend, which talk to
 * it, hold no lock meanwhile that a lookup needs.
 */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "compat/image.h"
#include "store/store.h"

#define NFG_PREFIX "image-compat-"
#define NFG_NAME_MAX (sizeof NFG_PREFIX + 64)
#define NFG_IDLE_NS ((int64_t)3600 * 1000000000)
/* How much older than the last use its annotation may be; a quarter of `idle_ns` if that is less. */
#define NFG_STAMP_NS ((int64_t)300 * 1000000000)
/* nfd-master writes no status while no node matches. It looks once a second, a replica that is not the
 * leader every five: a status that is empty for so long is taken for an answer. */
#define NFG_EVALUATED_NS ((int64_t)10 * 1000000000)

#define NFG_LABEL_MANAGER "app.kubernetes.io/managed-by" /* "karve" */
#define NFG_LABEL_KIND "karve.io/kind"                   /* "image-compat" */
#define NFG_ANNOTATION_IMAGES "karve.io/images"          /* some of them, separated by commas */
#define NFG_ANNOTATION_IMAGE_DIGEST "karve.io/image-digest"
#define NFG_ANNOTATION_ARTIFACT_DIGEST "karve.io/artifact-digest"
#define NFG_ANNOTATION_SET_TAG "karve.io/set-tag"
#define NFG_ANNOTATION_SET_WEIGHT "karve.io/set-weight"
#define NFG_ANNOTATION_LAST_USED "karve.io/last-used" /* RFC 3339 */

enum nfg_mode {
    NFG_OFF,          /* none are made */
    NFG_PUBLISH,      /* made for others to see; verdicts are ours */
    NFG_AUTHORITATIVE /* a node must be in the group's status, too, once it has been evaluated */
};

/* "image-compat-4f1d0c9e77ab": of the canonical rules; `hex_digits` 12, 20 or 64. */
int nfg_name(struct str rules_json, uint32_t hex_digits, char out[NFG_NAME_MAX], struct err *err);

struct nfg_cache_options {
    const struct store *store; /* may be NULL with NFG_OFF */
    const struct clock *clock;
    struct metrics
        *maybe_metrics; /* nf_avg_nfgs_per_image, nf_nfg_creation_duration_seconds, ... */
    struct log *maybe_log;
    enum nfg_mode mode;
    struct str namespace_; /* of nfd-master; "": see nfg_cache_set_namespace. Copied */
    uint32_t sets_max;     /* maxNFGsPerImage, equal rules counted once; 0: COMPAT_SETS_MAX */
    int64_t idle_ns;       /* 0: NFG_IDLE_NS */
};

struct nfg_cache;
struct nfg_cache *nfg_cache_new(struct nfg_cache_options options);
void nfg_cache_free(struct nfg_cache *cache); /* NULL is fine */
KV_AUTO_TYPE(nfg_cache, nfg_cache_free)
/* nfd-master was found there, or has moved: groups are made anew in its namespace. "": it is nowhere, and
 * what there is stays. */
void nfg_cache_set_namespace(struct nfg_cache *cache, struct str namespace_);
/* A change of a NodeFeatureGroup in any namespace, as an informer tells it; other kinds are passed over. */
void nfg_cache_observe(void *nfg_cache, const struct object *maybe_old,
                       const struct object *maybe_new);

/* --- the document's cache --- */

/* A list with something that cannot be a name is damaged: the entry goes. */
void nfg_cache_update(struct nfg_cache *cache, struct str image, const struct str *names,
                      uint32_t count);
void nfg_cache_remove(struct nfg_cache *cache, struct str image);
struct nfg_names {
    const struct str *items; /* the arena's, in the order of the sets: a copy, never NULL */
    uint32_t count;
    uint32_t missing; /* how many were dropped because their groups are gone */
};
/* False: a miss. Asks nobody. A name that was dropped is back when its group is. */
bool nfg_cache_get_valid(struct nfg_cache *cache, struct str image, struct arena *arena,
                         struct nfg_names *out);
/* The way of a miss: name, create what is missing, remember. Blocks on the store. Some that cannot be
 * created do not keep the others from being remembered (get_valid has them); the error is of the first.
 * Errors also when the image has too many sets (ERR_CAPACITY), or the namespace is not known
 * (ERR_UNAVAILABLE). What failed is not tried again before a while, which doubles each time: until then
 * the error is the same. A set without rules asks for nothing and has no group; one with an expression without
 * operator cannot be a group (ERR_INVALID). An image without sets has no entry. */
int nfg_cache_publish(struct nfg_cache *cache, struct str image, const struct image_facts *facts,
                      struct arena *arena, struct nfg_names *out, struct err *err);

/* --- groups --- */

/* Is the node in the status of the group with these rules? MATCH_UNKNOWN: the group is not there, or nobody
 * has evaluated it yet, which an empty status means too until it is NFG_EVALUATED_NS old. Then a node that was not
 * in the group before it was lost is MATCH_NO still. Rules that ask for nothing ("[]"): MATCH_YES. */
enum match nfg_cache_member(struct nfg_cache *cache, struct str rules_json, struct str node);
/* Somebody needs the image's groups now: they are not idle. (To look an image up says so, too.) */
void nfg_cache_use(struct nfg_cache *cache, struct str image);
/* Delete our groups that nobody has needed for `idle_ns`, create again those that are needed and gone, and
 * note on the others that they are in use. A group of an earlier or another process is judged by the last use
 * that it says itself. Returns when to call next, mono_ns. Blocks on the store. */
int64_t nfg_cache_tend(struct nfg_cache *cache);
/* The same moment, which may have come nearer: a group that is needed is gone, say. */
int64_t nfg_cache_due_ns(struct nfg_cache *cache);
