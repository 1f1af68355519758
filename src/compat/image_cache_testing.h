/* compat/image_cache_testing.h - a registry that is a script, and a cache in front of it, in virtual time.
 *
 *     RIG rig = { 0 };
 *     rig_init(&rig, (struct image_cache_options){ 0 });
 *     rig_image(&rig, "app:1", "d1", NULL);
 *     struct image_answer answer = rig_wait(&rig, "app:1");
 */
#pragma once

#include "compat/compat_testing.h"
#include "compat/image_cache_inner.h"

#include <time.h>
#include <unistd.h>

struct rig {
    struct world world; /* of specs */
    struct virtual_clock *clock;
    struct image_cache *cache;

    pthread_mutex_t lock; /* guards the script */
    pthread_cond_t moved;
    struct str_table digests;               /* "docker.io/library/app:1" -> char * */
    struct str_table facts;                 /* "docker.io/library/app@sha256:..." -> facts */
    enum err_kind resolve_fails, ask_fails; /* ERR_NONE: they do not */
    struct str fails_host;                  /* only of this registry; "": of all */
    bool held;                              /* questions wait for rig_release */
    bool held_asks_only;                    /* those for a digest do not */
    uint32_t held_waits;                    /* so many are inside: further ones pass; 0: none do */
    struct str held_host;                   /* only of this registry; "": of all */
    uint32_t inside, inside_most;           /* asks going on */
    uint32_t resolves, asks;
    uint64_t keys_last; /* identity of the keys that the last question came with */
    bool known_last;    /* the last ask was told what is known */
    VEC(char *) changes;
};

#define SECOND ((int64_t)1000000000)
#define FOREVER INT64_MAX

/* sha256 of a short name: its bytes, again and again, in hex. */
static inline const char *rig_digest(const char *name, char out[72])
{
    size_t len = strlen(name);
    strcpy(out, "sha256:");
    for (size_t i = 0; i < 32; i++)
        snprintf(out + 7 + 2 * i, 3, "%02x", (unsigned char)name[i % len]);
    return out;
}
#define DIGEST(name) rig_digest((name), (char[72]){ 0 })

static inline char *rig_key(const struct reference *ref, char mark, struct str which)
{
    AUTO_BUF key = { 0 };
    buf_addf(&key, "%.*s/%.*s%c%.*s", STR_ARG(ref->registry), STR_ARG(ref->repository), mark,
             STR_ARG(which));
    return buf_take(&key);
}

/* With the script's lock held. */
static inline int rig_question(struct rig *rig, const struct reference *ref,
                               const struct keyring *maybe_keys, bool is_ask, struct err *err)
{
    rig->keys_last = keyring_identity(maybe_keys);
    if (++rig->inside > rig->inside_most)
        rig->inside_most = rig->inside;
    pthread_cond_broadcast(&rig->moved);
    bool passes = rig->held_waits > 0 && rig->inside > rig->held_waits;
    while (rig->held && !passes && (is_ask || !rig->held_asks_only) &&
           (!rig->held_host.len || str_eq(rig->held_host, ref->host)))
        pthread_cond_wait(&rig->moved, &rig->lock);
    rig->inside--;
    enum err_kind fails = is_ask ? rig->ask_fails : rig->resolve_fails;
    if (fails != ERR_NONE && (!rig->fails_host.len || str_eq(rig->fails_host, ref->host)))
        return err_set(err, fails, "scripted");
    return 0;
}

static inline int rig_resolve(void *ctx, const struct reference *ref,
                              const struct keyring *maybe_keys, struct arena *arena,
                              struct str *digest, struct err *err)
{
    struct rig *rig = ctx;
    KV_ASSERT(ref->digest.len == 0); /* who has one need not ask */
    AUTO_FREE char *key = rig_key(ref, ':', ref->tag);
    pthread_mutex_lock(&rig->lock);
    rig->resolves++;
    int rc = rig_question(rig, ref, maybe_keys, false, err);
    const char *found = str_table_get(&rig->digests, str_of(key));
    if (rc == 0 && found)
        *digest = arena_str(arena, str_of(found));
    else if (rc == 0)
        rc = err_set(err, ERR_NOT_FOUND, "no such tag");
    pthread_mutex_unlock(&rig->lock);
    return rc;
}

static inline int rig_ask(void *ctx, const struct reference *ref, const struct keyring *maybe_keys,
                          const struct image_facts *maybe_known, const struct image_facts **out,
                          struct err *err)
{
    struct rig *rig = ctx;
    AUTO_FREE char *tag_key = rig_key(ref, ':', ref->tag);
    pthread_mutex_lock(&rig->lock);
    rig->asks++;
    rig->known_last = maybe_known != NULL;
    int rc = rig_question(rig, ref, maybe_keys, true, err);
    const char *of_tag = str_table_get(&rig->digests, str_of(tag_key));
    struct str digest = ref->digest.len ? ref->digest : str_of(of_tag ? of_tag : "");
    AUTO_FREE char *key = rig_key(ref, '@', digest);
    const struct image_facts *facts = str_table_get(&rig->facts, str_of(key));
    if (rc == 0 && facts)
        *out = image_facts_ref(facts);
    else if (rc == 0)
        rc = err_set(err, ERR_NOT_FOUND, "no such digest");
    pthread_mutex_unlock(&rig->lock);
    return rc;
}

static inline void rig_changed(void *ctx, struct str image)
{
    struct rig *rig = ctx;
    pthread_mutex_lock(&rig->lock);
    vec_push(&rig->changes, str_dup(image));
    pthread_mutex_unlock(&rig->lock);
}

static inline void rig_init(struct rig *rig, struct image_cache_options options)
{
    struct err err = { 0 };
    world_init(&rig->world);
    pthread_mutex_init(&rig->lock, NULL);
    pthread_cond_init(&rig->moved, NULL);
    rig->clock = virtual_clock_new(0);
    options.source = (struct image_source){ rig_ask, rig, rig_resolve };
    options.clock = virtual_clock_port(rig->clock);
    options.on_change = rig_changed;
    options.ctx = rig;
    EXPECT_OK(image_cache_new(options, &rig->cache, &err), err);
}

static inline void rig_release(struct rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    rig->held = false;
    pthread_cond_broadcast(&rig->moved);
    pthread_mutex_unlock(&rig->lock);
}

static inline void rig_done(struct rig *rig)
{
    rig_release(rig);
    image_cache_free(rig->cache);
    virtual_clock_free(rig->clock);
    str_table_each(&rig->digests, it)
        free(it->value);
    str_table_each(&rig->facts, it)
        image_facts_unref(it->value);
    vec_each(&rig->changes, char *, change)
        free(*change);
    vec_done(&rig->changes);
    str_table_done(&rig->digests);
    str_table_done(&rig->facts);
    pthread_cond_destroy(&rig->moved);
    pthread_mutex_destroy(&rig->lock);
    world_done(&rig->world);
}
#define RIG __attribute__((cleanup(rig_done))) struct rig

/* --- the script --- */

static inline struct reference rig_reference(struct rig *rig, const char *image)
{
    struct err err = { 0 };
    struct reference ref = { 0 };
    EXPECT_OK(reference_parse(&rig->world.arena, str_of(image), &ref, &err), err);
    return ref;
}

/* The facts of a digest in the repository of an image; takes the reference. */
static inline void rig_put_facts(struct rig *rig, const char *image, const char *digest,
                                 const struct image_facts *facts)
{
    struct reference ref = rig_reference(rig, image);
    AUTO_FREE char *key = rig_key(&ref, '@', str_of(digest));
    pthread_mutex_lock(&rig->lock);
    image_facts_unref(str_table_get(&rig->facts, str_of(key)));
    str_table_put(&rig->facts, str_of(key), (void *)facts);
    pthread_mutex_unlock(&rig->lock);
}

static inline void rig_put_tag(struct rig *rig, const char *image, const char *maybe_digest)
{
    struct reference ref = rig_reference(rig, image);
    AUTO_FREE char *key = rig_key(&ref, ':', ref.tag);
    pthread_mutex_lock(&rig->lock);
    free(str_table_remove(&rig->digests, str_of(key)));
    if (maybe_digest)
        str_table_put(&rig->digests, str_of(key), kv_strdup(maybe_digest));
    pthread_mutex_unlock(&rig->lock);
}

static inline const struct image_facts *rig_make_facts(struct rig *rig, const char *digest,
                                                       const char *maybe_flag)
{
    static const struct platform amd64 = { STR("linux"), STR("amd64"), STR("") };
    AUTO_BUF text = { 0 };
    if (maybe_flag)
        buf_addf(
            &text,
            "version: v1alpha1\ncompatibilities: [{rules: [{name: r, matchFeatures: [{feature: "
            "cpu.cpuid, matchExpressions: {%s: {op: Exists}}}]}]}]\n",
            maybe_flag);
    const struct compat_spec *spec = maybe_flag ? world_spec(&rig->world, text.p) : NULL;
    return image_facts_make(str_of(digest), &amd64, 1, spec);
}

/* A tag, its digest by a short name, and the CPU flag that it needs, if it says so. */
static inline void rig_image(struct rig *rig, const char *image, const char *digest,
                             const char *maybe_flag)
{
    const char *full = DIGEST(digest);
    rig_put_tag(rig, image, full);
    rig_put_facts(rig, image, full, rig_make_facts(rig, full, maybe_flag));
}

static inline void rig_fail(struct rig *rig, enum err_kind resolve, enum err_kind ask)
{
    pthread_mutex_lock(&rig->lock);
    rig->resolve_fails = resolve;
    rig->ask_fails = ask;
    pthread_mutex_unlock(&rig->lock);
}

static inline void rig_hold(struct rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    rig->held = true;
    pthread_mutex_unlock(&rig->lock);
}

static inline uint32_t rig_asks(struct rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    uint32_t asks = rig->asks;
    pthread_mutex_unlock(&rig->lock);
    return asks;
}

static inline uint32_t rig_resolves(struct rig *rig)
{
    pthread_mutex_lock(&rig->lock);
    uint32_t resolves = rig->resolves;
    pthread_mutex_unlock(&rig->lock);
    return resolves;
}

/* How often somebody was told of the image. */
static inline uint32_t rig_told(struct rig *rig, const char *image)
{
    uint32_t told = 0;
    pthread_mutex_lock(&rig->lock);
    vec_each(&rig->changes, char *, change)
        told += str_eqz(str_of(*change), image);
    pthread_mutex_unlock(&rig->lock);
    return told;
}

/* --- using the cache --- */

static inline void rig_pause(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 200000 }, NULL);
}

/* Until `condition` holds; the limit is for machines that are slow, not for us. */
#define RIG_UNTIL(condition)                                                                       \
    do {                                                                                           \
        int rig_tries_ = 0;                                                                        \
        while (!(condition) && rig_tries_++ < 150000)                                              \
            rig_pause();                                                                           \
        EXPECT_TRUE(condition);                                                                    \
    } while (0)

static inline bool rig_is_quiet(struct rig *rig)
{
    bool quiet = true;
    pthread_mutex_lock(&rig->cache->lock);
    str_table_each(&rig->cache->hosts, it) {
        const struct ask_host *host = it->value;
        quiet = quiet && !host->listed && host->running == 0;
    }
    pthread_mutex_unlock(&rig->cache->lock);
    return quiet;
}

/* Until nothing is being asked for, and whoever is told has been. */
static inline void rig_settle(struct rig *rig)
{
    RIG_UNTIL(rig_is_quiet(rig));
}

static inline void rig_inside(struct rig *rig, uint32_t count)
{
    uint32_t inside;
    RIG_UNTIL((pthread_mutex_lock(&rig->lock), inside = rig->inside,
               pthread_mutex_unlock(&rig->lock), inside == count));
}

static inline void rig_advance(struct rig *rig, int64_t seconds)
{
    virtual_clock_advance(rig->clock, seconds * SECOND);
}

#define ANSWER __attribute__((cleanup(image_answer_done))) struct image_answer

static inline struct image_answer rig_get(struct rig *rig, const char *image)
{
    struct image_answer answer;
    image_cache_get(rig->cache, str_of(image), NULL, &answer);
    return answer;
}

static inline struct image_answer rig_wait(struct rig *rig, const char *image)
{
    struct image_answer answer;
    image_cache_wait(rig->cache, str_of(image), NULL, FOREVER, &answer);
    return answer;
}

/* Its state in a word, with `stale`; for what the facts are, there are tests that look. */
static inline const char *rig_state(struct rig *rig, const char *image)
{
    static const char *const words[] = { "pending", "known", "unknown", "failed" };
    ANSWER answer = rig_get(rig, image);
    EXPECT_EQ(answer.maybe_facts != NULL, answer.state == IMAGE_KNOWN);
    return answer.stale ? "stale" : words[answer.state];
}

/* Get it, let it be asked for if that is due, and get it again. */
static inline const char *rig_renewed(struct rig *rig, const char *image)
{
    rig_state(rig, image);
    rig_settle(rig);
    return rig_state(rig, image);
}
