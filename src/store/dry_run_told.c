/* What was told already, as hashes of 64 bits. Two writes that are taken for one another are one line
 * less in a log; among the ten thousands that are kept that is one in many billions. */
#include "store/dry_run_inner.h"

#include "codec/duration.h"

#define YOUNG_MAX 16384 /* writes remembered: so many at least, twice as many at most */
#define NAMES_MAX 10000 /* equal objects of one decision; no decision launches more */
#define DECISION_GAP_NS                                                                            \
    (DURATION_SECOND / 2) /* longer than between two writes of one decision, and
                                                 shorter than between two decisions */

struct told_write {
    VEC(char *) names; /* of equal creations, in their order; empty for other writes */
    uint32_t next;     /* of them is the next creation's */
    int64_t last_ns;
};

static void free_all(struct map *m)
{
    map_each(m, it) {
        struct told_write *w = (struct told_write *)it->value;
        vec_each(&w->names, char *, name)
            free(*name);
        vec_done(&w->names);
        free(w);
    }
    map_done(m);
    *m = (struct map){ 0 };
}

void dry_told_init(struct dry_told *t)
{
    *t = (struct dry_told){ 0 };
    pthread_mutex_init(&t->lock, NULL);
}

void dry_told_done(struct dry_told *t)
{
    free_all(&t->young);
    free_all(&t->old);
    pthread_mutex_destroy(&t->lock);
}

/* With the lock. Counts it, and makes it the youngest. */
static struct told_write *find(struct dry_told *t, uint64_t hash, bool *is_new)
{
    uintptr_t found = 0;
    t->count++;
    *is_new = false;
    if (map_get(&t->young, hash, &found))
        return (struct told_write *)found;
    if (t->young.live_count >= YOUNG_MAX) {
        free_all(&t->old);
        t->old = t->young;
        t->young = (struct map){ 0 };
    }
    if (!map_remove(&t->old, hash, &found)) {
        *is_new = true;
        found = (uintptr_t)kv_calloc(1, sizeof(struct told_write));
    }
    map_put(&t->young, hash, found);
    return (struct told_write *)found;
}

bool dry_told_add(struct dry_told *t, uint64_t hash)
{
    bool is_new;
    pthread_mutex_lock(&t->lock);
    find(t, hash, &is_new);
    pthread_mutex_unlock(&t->lock);
    return is_new;
}

bool dry_told_add_named(struct dry_told *t, uint64_t hash, int64_t now_ns, struct arena *arena,
                        struct str *name)
{
    bool is_new;
    pthread_mutex_lock(&t->lock);
    struct told_write *w = find(t, hash, &is_new);
    if (now_ns - w->last_ns > DECISION_GAP_NS)
        w->next = 0;
    w->last_ns = now_ns;
    is_new = w->next >= w->names.count && w->names.count < NAMES_MAX;
    if (is_new)
        vec_push(&w->names, str_dup(*name));
    if (w->next < w->names.count)
        *name = arena_str(arena, str_of(w->names.items[w->next++]));
    pthread_mutex_unlock(&t->lock);
    return is_new;
}

/* --- hashes --- */

uint64_t dry_told_hash_str(struct str s, uint64_t salt)
{
    return kv_hash_salted(s.p ? s.p : "", s.len, kv_mix64(salt + s.len + 1));
}

/* "2026-01-02T15:04:05Z", or with parts of a second. */
static bool is_time(struct str s)
{
    int64_t us;
    return s.len >= 20 && s.len <= 40 && s.p[4] == '-' && s.p[10] == 'T' &&
           time_parse(s, &us, NULL) == 0;
}

uint64_t dry_told_hash(const json_val *v, const json_val *skip, uint64_t salt)
{
    AUTO_BUF scalar = { 0 };
    if (v == skip)
        return salt;
    if (json_is_object(v)) {
        json_each_member(v, key, val)
            salt = dry_told_hash(val, skip, dry_told_hash_str(json_key(key), salt));
        return kv_mix64(salt + 1);
    }
    if (json_is_array(v)) {
        json_each_item(v, item)
            salt = dry_told_hash(item, skip, salt);
        return kv_mix64(salt + 2);
    }
    if (json_is_string(v))
        return dry_told_hash_str(is_time(json_str(v)) ? STR("T") : json_str(v), salt + 3);
    json_write(v, &scalar);
    return dry_told_hash_str(buf_str(&scalar), salt + 4);
}
