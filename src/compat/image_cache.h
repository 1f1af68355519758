/* compat/image_cache.h - what is known of images, kept: a lookup never leaves the process.
 *
 * Two levels: the name as written (with the identity of the pull secrets) to the digest that it means, and
 * the digest to its facts (compat/image.h). A name with a digest in it never expires: of that only the
 * artifacts are looked at again. Artifacts live beside their image, so facts belong to a digest *in its
 * repository, for those pull secrets*: whoever copies an image elsewhere and attaches a spec there decides
 * nothing here.
 *
 * An entry that is old is still the answer while it is looked at anew in the background, which happens when
 * somebody asks for it: what nobody asks for ages and leaves. One that nobody knew is looked up by one thread
 * however many ask. "No constraint" and failures are entries too, with times of their own. The least recently
 * used leave, by count and by bytes.
 *
 *     ABSENT -> asking -> FRESH -> STALE (asking again) -> FRESH | stays STALE on failure, up to stale_max
 *                      -> UNKNOWN (no such image)       -> PENDING and asked again after unknown_ttl
 *                      -> FAILED (no facts, and why)    -> asked again after error_ttl; still the answer
 *                                                          meanwhile, for as long again
 *
 * An answer of the registry that is none (ERR_INVALID, ERR_CAPACITY) is never covered by a stale "no
 * constraint": there is something now, and it cannot be read. Stale rules do cover it.
 *
 * Thread safe. Time is the clock's.
 */
#pragma once

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "compat/image.h"

/* Where facts come from: a registry (compat/image_source.c), or a test. Blocks; from any thread. With
 * `maybe_resolve` a name is first asked for its digest, and facts that are known of that are not asked for
 * again; without, `ask` is asked by the tag. `ask` gives `maybe_known` itself if nothing changed. */
struct image_source {
    int (*ask)(void *ctx, const struct reference *ref, const struct keyring *maybe_keys,
               const struct image_facts *maybe_known, const struct image_facts **out,
               struct err *err);
    void *ctx;
    /* The digest that the tag means now; in the arena. */
    int (*maybe_resolve)(void *ctx, const struct reference *ref, const struct keyring *maybe_keys,
                         struct arena *arena, struct str *digest, struct err *err);
};

/* Facts from registries. What it points at is borrowed for as long as the source is used. */
struct image_source_registry {
    struct registry *registry;
    uint32_t sets_max;  /* maxNFGsPerImage; 0: COMPAT_SETS_MAX */
    bool platform_only; /* artifacts are not asked for */
};
struct image_source image_source_registry(const struct image_source_registry *from);

#define IMAGE_CACHE_READ_NS ((int64_t)5 * 1000000000)

struct image_cache_options {
    struct image_source source;
    const struct clock *clock;
    struct metrics *maybe_metrics; /* nf_cache_hits_total, nf_cache_requests_total, nf_cache_size,
                                      and karve_image_cache_*; outlives the cache */
    struct log *maybe_log;
    /* cacheEnabled: false. Nothing old is an answer, and nothing known of a digest saves asking. An
     * answer is there until it was read, and IMAGE_CACHE_READ_NS longer for others who were told of it or
     * wait for it; the next get asks anew and is IMAGE_PENDING. */
    bool disabled;
    uint32_t entries_max;    /* maxCacheSize: names, and digests; 0: 10,000 */
    size_t bytes_max;        /* of facts and names; 0: 64 MiB */
    uint32_t threads;        /* that ask, at most half of them (or one) one registry; 0: 8 */
    int64_t ttl_ns;          /* cacheTTLSeconds: of a tag; 0: 300 s, and 60 s of `latest` */
    int64_t facts_ttl_ns;    /* of a digest's artifacts; 0: 600 s */
    int64_t negative_ttl_ns; /* of an image without constraint; 0: 300 s */
    int64_t unknown_ttl_ns;  /* of an image that the registry does not have; 0: 30 s */
    int64_t error_ttl_ns;    /* also of a spec that cannot be used; 0: 30 s. Twice of ERR_DENIED */
    int64_t stale_max_ns;    /* since it was confirmed; 0: 24 h */
    uint64_t seed;           /* of the jitter: up to a tenth is taken off each time to live */
    /* Something changed for this name; from a thread that asks, with no lock held. May be NULL. */
    void (*on_change)(void *ctx, struct str image);
    void *ctx;
};

struct image_cache;
int image_cache_new(struct image_cache_options options, struct image_cache **out, struct err *err);
/* Waits for its threads: who wants them back soon makes the source give up (registry_cancel) first. Nobody
 * is in a call. NULL is fine. */
void image_cache_free(struct image_cache *cache);
KV_AUTO_TYPE(image_cache, image_cache_free)

enum image_state {
    IMAGE_PENDING, /* nobody knows yet: it is being asked for */
    IMAGE_KNOWN,   /* `facts` are there, fresh or stale */
    IMAGE_UNKNOWN, /* the registry does not have it: no constraint, the kubelet will tell */
    IMAGE_FAILED,  /* could not be found out: `err` says why */
};

struct image_answer {
    enum image_state state;
    const struct image_facts *maybe_facts; /* of IMAGE_KNOWN: a reference, the caller's */
    bool stale;     /* and could not be, or has not been, confirmed in time */
    int64_t age_ns; /* since it was confirmed */
    struct err err; /* of IMAGE_FAILED, and why it is still stale */
};
void image_answer_done(struct image_answer *answer);

/* Never waits for a source. What is not known, or old, is asked for in the background. A name that is no
 * reference is IMAGE_FAILED. While as many names as the cache may hold are being asked for, a new one is
 * IMAGE_PENDING and not asked for: get it again later. */
void image_cache_get(struct image_cache *cache, struct str image, const struct keyring *maybe_keys,
                     struct image_answer *out);
/* The same, but waits until it is not IMAGE_PENDING, or mono_ns reaches `until_ns`. */
void image_cache_wait(struct image_cache *cache, struct str image, const struct keyring *maybe_keys,
                      int64_t until_ns, struct image_answer *out);
/* For whatever pull secrets. Forget a name (its digest's facts stay until they are evicted); look at it anew
 * now, keeping the answer meanwhile (nothing happens if it is not there). */
void image_cache_remove(struct image_cache *cache, struct str image);
void image_cache_refresh(struct image_cache *cache, struct str image);

struct image_cache_stats {
    uint64_t requests;  /* calls of get and wait */
    uint64_t hits;      /* of them with an answer from memory, whichever: not IMAGE_PENDING */
    uint64_t joined;    /* of them that found it being asked for */
    uint64_t refused;   /* of them when too much was being asked for */
    uint64_t resolves;  /* questions for a digest */
    uint64_t asks;      /* questions for facts */
    uint64_t evictions; /* of names */
    uint32_t names, digests;
    size_t bytes;
};
struct image_cache_stats image_cache_stats(struct image_cache *cache);
