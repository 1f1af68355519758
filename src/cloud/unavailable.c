/* Marks hang in a queue in the order of their ends. All live equally long, so a new mark goes to the
 * back, a renewed one moves there, and what has ended is at the front: nothing is ever searched for.
 * A table finds a mark by its text.
 *
 * A mark's text is its four parts with a zero byte after each, and which of the parts are "any" is
 * its form. A look-up tries the forms that are in use, one look into the table for each: with
 * ordinary marks only, one.
 *
 * The end of a mark is seen by the clock in every look-up, whether or not somebody has settled it.
 * `next_ns` may be read without the lock. When marks end it moves on only after the counter was bumped,
 * so whoever reads the later moment also reads the new counter: a reader may have to wait for the
 * lock, but cannot get past an end that is not in the counter yet. When a mark begins it is the
 * other way round, as for all data: first to be seen, then counted.
 */
#include "cloud/unavailable.h"

#include "base/map.h"

enum { ANY_TYPE = 1, ANY_ZONE = 2, ANY_CAPACITY_TYPE = 4, ANY_ALL = 7, SCOPED = 8, FORMS = 16 };

struct mark {
    struct mark *earlier, *later;
    int64_t until_ns;
    unsigned form;
    struct str text; /* the table's key */
};

struct unavailable {
    const struct clock *clock;
    struct generation_counters *counters;
    int64_t ttl_ns;
    _Atomic int64_t next_ns; /* the end of the first mark; INT64_MAX */
    _Atomic uint64_t ended;

    pthread_mutex_t lock; /* guards the rest, and who may change next_ns */
    struct str_table by_text;
    struct mark *first, *last;
    uint32_t form_counts[FORMS];
    struct buf text; /* of the mark that is being looked for: a fetch asks ten thousand times */
    void (*wake)(void *ctx);
    void *wake_ctx;
};

struct unavailable *unavailable_new(const struct clock *clock, struct generation_counters *counters,
                                    int64_t ttl_ns)
{
    KV_ASSERT(ttl_ns > 0);
    struct unavailable *u = kv_calloc(1, sizeof *u);
    u->clock = clock;
    u->counters = counters;
    u->ttl_ns = ttl_ns;
    atomic_init(&u->next_ns, INT64_MAX);
    pthread_mutex_init(&u->lock, NULL);
    return u;
}

void unavailable_free(struct unavailable *u)
{
    if (!u)
        return;
    for (struct mark *m = u->first, *later; m; m = later) {
        later = m->later;
        free(m);
    }
    str_table_done(&u->by_text);
    buf_done(&u->text);
    pthread_mutex_destroy(&u->lock);
    free(u);
}

/* --- the queue; the lock is held --- */

static void queue_append(struct unavailable *u, struct mark *m)
{
    m->earlier = u->last;
    m->later = NULL;
    if (u->last)
        u->last->later = m;
    else
        u->first = m;
    u->last = m;
}

static void queue_unlink(struct unavailable *u, struct mark *m)
{
    if (m->earlier)
        m->earlier->later = m->later;
    else
        u->first = m->later;
    if (m->later)
        m->later->earlier = m->earlier;
    else
        u->last = m->earlier;
}

static void publish_next(struct unavailable *u)
{
    atomic_store_explicit(&u->next_ns, u->first ? u->first->until_ns : INT64_MAX,
                          memory_order_release);
}

static void drop_ended(struct unavailable *u, int64_t now_ns)
{
    uint64_t ended = 0;
    while (u->first && u->first->until_ns <= now_ns) {
        struct mark *m = u->first;
        queue_unlink(u, m);
        u->form_counts[m->form]--;
        str_table_remove(&u->by_text, m->text);
        free(m);
        ended++;
    }
    if (ended == 0)
        return;
    atomic_fetch_add_explicit(&u->ended, ended, memory_order_relaxed);
    generation_bump(u->counters, GENERATION_UNAVAILABLE);
    publish_next(u); /* last: see above */
}

/* --- marks --- */

/* Valid until the next call; the lock is held. */
static struct str mark_text(struct unavailable *u, const struct str parts[4])
{
    buf_clear(&u->text);
    for (int i = 0; i < 4; i++) {
        buf_add(&u->text, parts[i]);
        buf_addc(&u->text, '\0');
    }
    return buf_str(&u->text);
}

static unsigned form_of(const struct str parts[4])
{
    return (parts[0].len ? 0 : ANY_TYPE) | (parts[1].len ? 0 : ANY_ZONE) |
           (parts[2].len ? 0 : ANY_CAPACITY_TYPE) | (parts[3].len ? SCOPED : 0);
}

void unavailable_mark(struct unavailable *u, struct str type, struct str zone,
                      struct str capacity_type, struct str scope)
{
    const struct str parts[4] = { type, zone, capacity_type, scope };

    pthread_mutex_lock(&u->lock);
    int64_t now_ns = clock_mono_ns(u->clock);
    drop_ended(u, now_ns); /* one that has just ended begins anew, and that is a change */
    struct str text = mark_text(u, parts);
    struct mark *m = str_table_get(&u->by_text, text);
    bool renewed = m != NULL;
    bool was_empty = !u->first;
    if (renewed) {
        queue_unlink(u, m);
    } else {
        m = kv_calloc(1, sizeof *m);
        m->form = form_of(parts);
        str_table_put(&u->by_text, text, m);
        m->text = str_table_slot(&u->by_text, text)->key;
        u->form_counts[m->form]++;
    }
    if (__builtin_add_overflow(now_ns, u->ttl_ns, &m->until_ns))
        m->until_ns = INT64_MAX - 1;
    queue_append(u, m);
    publish_next(
        u); /* first: a fetch that reads the new counter must not find "nothing is marked" */
    if (!renewed)
        generation_bump(u->counters, GENERATION_UNAVAILABLE);
    if (was_empty && u->wake) /* otherwise an earlier one is waited for already */
        u->wake(u->wake_ctx);
    pthread_mutex_unlock(&u->lock);
}

/* Is there a mark of this form for these parts? The lock is held. */
static bool has_form(struct unavailable *u, unsigned form, const struct str parts[4],
                     int64_t now_ns)
{
    if (u->form_counts[form] == 0)
        return false;
    const struct str wanted[4] = {
        form & ANY_TYPE ? STR("") : parts[0],
        form & ANY_ZONE ? STR("") : parts[1],
        form & ANY_CAPACITY_TYPE ? STR("") : parts[2],
        form & SCOPED ? parts[3] : STR(""),
    };
    const struct mark *m = str_table_get(&u->by_text, mark_text(u, wanted));
    return m && m->until_ns > now_ns;
}

bool unavailable_has(struct unavailable *u, struct str type, struct str zone,
                     struct str capacity_type, struct str scope)
{
    if (atomic_load_explicit(&u->next_ns, memory_order_acquire) == INT64_MAX)
        return false;
    const struct str parts[4] = { type, zone, capacity_type, scope };
    bool found = false;
    pthread_mutex_lock(&u->lock);
    int64_t now_ns = clock_mono_ns(u->clock);
    for (unsigned any = 0; any <= ANY_ALL && !found; any++) {
        if (scope.len)
            found = has_form(u, any | SCOPED, parts, now_ns);
        if (!found && (any || !scope.len))
            found = has_form(u, any, parts, now_ns);
    }
    pthread_mutex_unlock(&u->lock);
    return found;
}

uint32_t unavailable_count(struct unavailable *u)
{
    uint32_t count = 0;
    pthread_mutex_lock(&u->lock);
    int64_t now_ns = clock_mono_ns(u->clock);
    for (const struct mark *m = u->last; m && m->until_ns > now_ns; m = m->earlier)
        count++;
    pthread_mutex_unlock(&u->lock);
    return count;
}

/* --- ends --- */

void unavailable_settle(struct unavailable *u)
{
    int64_t next_ns = atomic_load_explicit(&u->next_ns, memory_order_acquire);
    if (KV_LIKELY(next_ns == INT64_MAX) || next_ns > clock_mono_ns(u->clock))
        return;
    pthread_mutex_lock(&u->lock);
    drop_ended(u, clock_mono_ns(u->clock));
    pthread_mutex_unlock(&u->lock);
}

int64_t unavailable_next_ns(struct unavailable *u)
{
    return atomic_load_explicit(&u->next_ns, memory_order_acquire);
}

uint64_t unavailable_ended(struct unavailable *u)
{
    return atomic_load_explicit(&u->ended, memory_order_acquire);
}

void unavailable_on_earlier(struct unavailable *u, void (*wake)(void *ctx), void *ctx)
{
    pthread_mutex_lock(&u->lock);
    u->wake = wake;
    u->wake_ctx = ctx;
    pthread_mutex_unlock(&u->lock);
}
