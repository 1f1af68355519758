/* compat/image_cache_inner.h - how the image cache keeps what it knows; for its own files alone.
 *
 *     shards: image --> image_name (one per keyring) --\
 *                                                       >-- image_digest --> facts
 *     shards: image --> image_name --------------------/
 *
 * A name has a copy of what it answers (a reference of the facts, and until when), so that a hit looks at one
 * shard and nothing else. Whoever changes a digest writes the copies of all names that are linked to it.
 *
 * Locks, the outer first:
 *   cache->lock  guards the digests, the lists, and who is asked for: everything but a hit takes it.
 *   shard->lock  guards the table of names and what they answer. Who changes these holds both locks, so who
 *                holds cache->lock reads them without the shard's.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "compat/image_cache.h"

#define IMAGE_SHARDS 64 /* a power of two */
#define UNREAD INT64_MAX

/* What waits to be asked of one registry, and how many threads are at it. */
struct ask_list {
    struct image_name *first, *last;
};
struct ask_host {
    struct str host;          /* the table's */
    struct ask_list urgent;   /* nobody knows an answer */
    struct ask_list renewals; /* there is one meanwhile */
    uint32_t running, name_count;
    bool listed; /* in cache->hosts_ready */
    struct ask_host *next;
};

/* Level 1. */
struct image_name {
    struct rc rc; /* the table's, and one of who asks for it */
    struct str image;
    uint64_t hash, identity;
    const struct keyring *maybe_keys; /* of that identity */
    struct ask_host *host;
    int64_t ttl_ns; /* INT64_MAX: it has a digest, and means that for ever */

    atomic_bool used;        /* since the hand of the clock came by */
    atomic_bool asking;      /* queued or being asked for; changes under cache->lock */
    _Atomic int64_t read_at; /* with a disabled cache: when the answer was first read, or UNREAD */

    /* Under cache->lock. */
    bool queued;
    bool forced;   /* however fresh: someone wants it looked at */
    bool again;    /* and once more, since that came while it was being asked for */
    bool gone;     /* out of the table: an answer that comes is for its digest alone */
    uint32_t turn; /* answers so far: the jitter differs from one to the next */
    struct image_name *queue_next;
    struct image_name *older, *newer; /* as the hand of the clock meets them; not while `asking` */
    struct image_digest *maybe_digest;
    struct image_name *linked_prev, *linked_next; /* of the same digest */
    int64_t resolved_ns, resolved_until_ns;

    /* Under both locks. */
    struct image_name *same_next; /* the same image with other keys */
    const struct image_facts *maybe_facts;
    int64_t confirmed_ns, fresh_until_ns; /* of the facts */
    int64_t due_ns;        /* to be asked again, if somebody wants it, from then on */
    enum err_kind failure; /* of the last time it was asked for */
    char *maybe_why;
    int64_t failed_ns, failed_until_ns; /* without facts, this is the answer until then */

    char text[];
};

/* A name that waits for the facts of a digest, and since and until when it means that. */
struct image_parked {
    struct image_name *name; /* a reference */
    int64_t resolved_ns, resolved_until_ns;
};

/* Level 2: a digest in its repository, as seen with a keyring. All under cache->lock. */
struct image_digest {
    struct str key;                        /* the table's */
    const struct image_facts *maybe_facts; /* NULL: not known yet; then no name is linked */
    int64_t checked_ns, until_ns;
    size_t bytes; /* as they are counted in cache->bytes */
    uint32_t turn;
    bool asking;
    bool idle; /* no name is linked, nobody asks: first to go */
    VEC(struct image_parked) parked;
    struct image_name *linked;
    struct image_digest *idle_prev, *idle_next;
};

struct image_shard {
    pthread_rwlock_t lock;
    struct str_table names; /* image -> the first of its struct image_name */
    /* Beside the lock, whose line a reader writes anyway. */
    _Atomic uint64_t requests, hits, joined, refused;
} __attribute__((aligned(64)));

/* What came of a thread's turn. ASK_NOTHING: the facts were there, or somebody else was asking for them. */
enum ask_outcome {
    ASK_SAME,
    ASK_CHANGED,
    ASK_UNKNOWN,
    ASK_DENIED,
    ASK_INVALID,
    ASK_FAILED,
    ASK_NOTHING
};

struct image_cache_metrics {
    struct metric *requests, *hits, *size; /* nf_cache_* */
    struct metric *joined, *refused, *evictions, *bytes, *digests, *resolves;
    struct metric *asks[ASK_NOTHING];
    struct metric *ask_seconds;
    struct image_cache_stats shown; /* what the counters have had so far */
};

struct image_cache {
    struct image_cache_options options; /* without zeros */
    struct image_shard shards[IMAGE_SHARDS];
    struct image_cache_metrics metrics;

    pthread_mutex_t lock;
    pthread_cond_t work;     /* for threads */
    pthread_cond_t answered; /* for image_cache_wait */
    bool stopping;
    uint32_t waiting_count; /* in image_cache_wait */
    pthread_t *threads;
    uint32_t thread_count;
    struct str_table hosts;
    struct ask_host *hosts_ready, *hosts_ready_last; /* with something queued; taken in turns */
    struct str_table digests;
    struct map specs;                   /* of all digests' facts -> how many have it */
    struct image_name *oldest, *newest; /* that are not being asked for */
    struct image_digest *idle_oldest, *idle_newest;
    uint32_t name_count;
    size_t bytes;
    uint64_t resolves, asks, evictions;
};

/* --- image_cache.c --- */

struct image_shard *image_shard_of(struct image_cache *cache, uint64_t hash);
/* What it would answer. Under either lock. */
enum image_state image_name_state(const struct image_cache *cache, const struct image_name *name,
                                  int64_t now_ns);

/* --- image_cache_lru.c: names and digests come, are linked, and leave. Under cache->lock. --- */

/* NULL if there is none. Under either lock. */
struct image_name *image_cache_find(struct image_shard *shard, struct str image, uint64_t hash,
                                    uint64_t identity);
/* NULL: no room, since all are being asked for. */
struct image_name *image_cache_add(struct image_cache *cache, struct str image, uint64_t hash,
                                   const struct reference *ref, const struct keyring *maybe_keys);
void image_cache_drop(struct image_cache *cache, struct image_name *name);
/* It is asked for, and cannot leave; it is not, and may. */
void image_cache_busy(struct image_cache *cache, struct image_name *name);
void image_cache_unbusy(struct image_cache *cache, struct image_name *name);
struct image_name *image_name_ref(struct image_name *name);
void image_name_unref(struct image_cache *cache, struct image_name *name);
void image_cache_host_leave(struct image_cache *cache, struct ask_host *host); /* one name less */
/* Under both locks: why it is not known, or not confirmed. NULL: no more. */
void image_name_set_failure(struct image_cache *cache, struct image_name *name,
                            const struct err *maybe_err);

/* Found or made. */
struct image_digest *image_cache_digest(struct image_cache *cache, const struct reference *ref,
                                        uint64_t identity, struct str digest);
struct str image_digest_text(const struct image_digest *digest); /* "sha256:..." */
void image_digest_set_facts(struct image_cache *cache, struct image_digest *digest,
                            const struct image_facts *facts); /* takes a reference */
/* From whatever it is linked to, to this digest; NULL: to none. */
void image_name_link(struct image_cache *cache, struct image_name *name,
                     struct image_digest *maybe_digest);
/* Nobody asks for the digest any more: perhaps nobody needs it. */
void image_digest_rest(struct image_cache *cache, struct image_digest *digest);
/* Until there are no more than `names_max` names, and no more bytes than allowed. `maybe_keep` stays. */
void image_cache_trim(struct image_cache *cache, uint32_t names_max,
                      const struct image_name *maybe_keep);
void image_cache_clear(struct image_cache *cache); /* nobody asks for anything */

/* --- image_cache_ask.c: threads that ask --- */

int image_cache_start(struct image_cache *cache, struct err *err);
void image_cache_stop(struct image_cache *cache);
/* Under cache->lock; it is not being asked for. */
void image_cache_ask(struct image_cache *cache, struct image_name *name, int64_t now_ns);

/* --- image_cache_metrics.c --- */

void image_cache_metrics_init(struct image_cache *cache);
void image_cache_metrics_done(struct image_cache *cache);
void image_cache_metrics_asked(struct image_cache *cache, enum ask_outcome outcome,
                               int64_t took_ns);
