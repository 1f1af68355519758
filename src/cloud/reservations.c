/* A table of counts under one lock. What time does to an entry (it is forgotten, it begins to expire)
 * is seen by the clock in every read, and counted when somebody settles.
 *
 * `next_ns` is never later than the first thing to settle, and may be earlier: confirming a count
 * puts its end off without looking for the new minimum, so at worst the timer looks once in vain a
 * day. It follows the order of cloud/unavailable.c: ends are counted before it moves on, new
 * moments are in it before anything is counted.
 */
#include "cloud/reservations.h"

#include "base/map.h"

struct entry {
    int64_t available;
    int64_t until_ns;  /* forgotten then, unless it is confirmed */
    int64_t expire_ns; /* INT64_MAX: never */
    bool expiry_told;  /* that expire_ns has come is in the counter */
};

struct reservations {
    const struct clock *clock;
    struct generation_counters *counters;
    _Atomic int64_t next_ns;
    _Atomic uint64_t ended;

    pthread_mutex_t lock; /* guards the rest, and who may change next_ns */
    struct str_table entries;
    struct str_table classes; /* name -> a digest, on the heap */
    void (*wake)(void *ctx);
    void *wake_ctx;
};

struct reservations *reservations_new(const struct clock *clock,
                                      struct generation_counters *counters)
{
    struct reservations *r = kv_calloc(1, sizeof *r);
    r->clock = clock;
    r->counters = counters;
    atomic_init(&r->next_ns, INT64_MAX);
    pthread_mutex_init(&r->lock, NULL);
    return r;
}

void reservations_free(struct reservations *r)
{
    if (!r)
        return;
    str_table_each(&r->entries, slot)
        free(slot->value);
    str_table_each(&r->classes, slot)
        free(slot->value);
    str_table_done(&r->entries);
    str_table_done(&r->classes);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

/* --- what time does; the lock is held from here on --- */

static void bump(struct reservations *r)
{
    generation_bump(r->counters, GENERATION_RESERVATIONS);
}

static int64_t entry_next_ns(const struct entry *e)
{
    return !e->expiry_told && e->expire_ns < e->until_ns ? e->expire_ns : e->until_ns;
}

/* Something is to be settled at that moment. */
static void note_moment(struct reservations *r, int64_t at_ns)
{
    if (at_ns >= atomic_load_explicit(&r->next_ns, memory_order_relaxed))
        return;
    atomic_store_explicit(&r->next_ns, at_ns, memory_order_release);
    if (r->wake)
        r->wake(r->wake_ctx);
}

static void settle(struct reservations *r, int64_t now_ns)
{
    uint64_t ended = 0;
    bool changed = false;
    int64_t next_ns = INT64_MAX;
    str_table_each(&r->entries, slot) {
        struct entry *e = slot->value;
        if (e->until_ns <= now_ns) {
            changed |= e->available > 0 || e->expire_ns <= now_ns;
            ended++;
            free(e);
            str_table_remove(&r->entries, slot->key);
            continue;
        }
        if (!e->expiry_told && e->expire_ns <= now_ns) {
            e->expiry_told = true;
            changed = true;
            ended++;
        }
        if (entry_next_ns(e) < next_ns)
            next_ns = entry_next_ns(e);
    }
    atomic_fetch_add_explicit(&r->ended, ended, memory_order_relaxed);
    if (changed)
        bump(r);
    atomic_store_explicit(&r->next_ns, next_ns, memory_order_release);
}

/* The time now, with everything settled that is due: an entry in the table has not timed out. */
static int64_t settle_due(struct reservations *r)
{
    int64_t now_ns = clock_mono_ns(r->clock);
    if (atomic_load_explicit(&r->next_ns, memory_order_relaxed) <= now_ns)
        settle(r, now_ns);
    return now_ns;
}

/* Confirmed just now; made if it is new. */
static struct entry *confirm(struct reservations *r, struct str id, int64_t now_ns)
{
    struct entry *e = str_table_get(&r->entries, id);
    if (!e) {
        e = kv_calloc(1, sizeof *e);
        e->expire_ns = INT64_MAX;
        str_table_put(&r->entries, id, e);
    }
    e->until_ns = now_ns + RESERVATION_TTL_NS;
    note_moment(r, entry_next_ns(e));
    return e;
}

static void set_available(struct reservations *r, struct entry *e, int64_t available)
{
    if (e->available == available)
        return;
    e->available = available;
    bump(r);
}

/* --- counts --- */

void reservations_sync(struct reservations *r, struct str id, int64_t available)
{
    pthread_mutex_lock(&r->lock);
    struct entry *e = confirm(r, id, settle_due(r));
    set_available(r, e, available < 0 ? 0 : available);
    pthread_mutex_unlock(&r->lock);
}

enum use { LAUNCHED, TERMINATED, EXHAUSTED };

static void use(struct reservations *r, struct str id, enum use what)
{
    pthread_mutex_lock(&r->lock);
    settle_due(r);
    struct entry *e = str_table_get(&r->entries, id);
    if (e && what == TERMINATED && e->available < INT64_MAX)
        set_available(r, e, e->available + 1);
    else if (e && what == LAUNCHED && e->available > 0)
        set_available(r, e, e->available - 1);
    else if (e && what == EXHAUSTED)
        set_available(r, e, 0);
    pthread_mutex_unlock(&r->lock);
}

void reservations_launched(struct reservations *r, struct str id)
{
    use(r, id, LAUNCHED);
}

void reservations_terminated(struct reservations *r, struct str id)
{
    use(r, id, TERMINATED);
}

void reservations_exhausted(struct reservations *r, struct str id)
{
    use(r, id, EXHAUSTED);
}

int64_t reservations_available(struct reservations *r, struct str id)
{
    pthread_mutex_lock(&r->lock);
    int64_t now_ns = clock_mono_ns(r->clock);
    const struct entry *e = str_table_get(&r->entries, id);
    int64_t available = e && e->until_ns > now_ns ? e->available : 0;
    pthread_mutex_unlock(&r->lock);
    return available;
}

/* --- classes --- */

void reservations_class(struct reservations *r, struct str class_name, uint64_t digest)
{
    pthread_mutex_lock(&r->lock);
    uint64_t *last = str_table_get(&r->classes, class_name);
    if (!last || *last != digest) {
        if (!last) {
            last = kv_calloc(1, sizeof *last);
            str_table_put(&r->classes, class_name, last);
        }
        *last = digest;
        bump(r);
    }
    pthread_mutex_unlock(&r->lock);
}

void reservations_forget_class(struct reservations *r, struct str class_name)
{
    pthread_mutex_lock(&r->lock);
    free(str_table_remove(&r->classes, class_name)); /* no answer is for it any more: no change */
    pthread_mutex_unlock(&r->lock);
}

/* --- expiry --- */

void reservations_expire_at(struct reservations *r, struct str id, int64_t mono_ns)
{
    pthread_mutex_lock(&r->lock);
    int64_t now_ns = settle_due(r);
    struct entry *e = confirm(r, id, now_ns);
    bool was = e->expire_ns <= now_ns, is = mono_ns <= now_ns;
    e->expire_ns = mono_ns;
    e->expiry_told = is;
    note_moment(r, entry_next_ns(e));
    if (was != is)
        bump(r);
    pthread_mutex_unlock(&r->lock);
}

bool reservations_expiring(struct reservations *r, struct str id)
{
    pthread_mutex_lock(&r->lock);
    int64_t now_ns = clock_mono_ns(r->clock);
    const struct entry *e = str_table_get(&r->entries, id);
    bool expiring = e && e->until_ns > now_ns && e->expire_ns <= now_ns;
    pthread_mutex_unlock(&r->lock);
    return expiring;
}

void reservations_settle(struct reservations *r)
{
    int64_t next_ns = atomic_load_explicit(&r->next_ns, memory_order_acquire);
    if (KV_LIKELY(next_ns == INT64_MAX) || next_ns > clock_mono_ns(r->clock))
        return;
    pthread_mutex_lock(&r->lock);
    settle_due(r);
    pthread_mutex_unlock(&r->lock);
}

int64_t reservations_next_ns(struct reservations *r)
{
    return atomic_load_explicit(&r->next_ns, memory_order_acquire);
}

uint64_t reservations_ended(struct reservations *r)
{
    return atomic_load_explicit(&r->ended, memory_order_acquire);
}

void reservations_on_earlier(struct reservations *r, void (*wake)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&r->lock);
    r->wake = wake;
    r->wake_ctx = ctx;
    pthread_mutex_unlock(&r->lock);
}
