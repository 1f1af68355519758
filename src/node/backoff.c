/* An entry is the delay and the moment of the last try. It matters for as long as its delay can hold
 * anybody up: until the longest run that does not reset it and the longest wait are over. Older
 * ones are dropped whenever a try is noted, so the table holds what was tried lately and no more. */
#include "node/backoff.h"

struct backoff_entry {
    int64_t delay_ns, last_ns;
};

static int64_t max_ns(const struct backoff *b)
{
    return b->max_ns ? b->max_ns : BACKOFF_MAX_NS;
}

static int64_t initial_ns(const struct backoff *b)
{
    int64_t initial = b->initial_ns ? b->initial_ns : BACKOFF_INITIAL_NS;
    return initial < max_ns(b) ? initial : max_ns(b);
}

void backoff_done(struct backoff *b)
{
    str_table_each(&b->entries, slot)
        free(slot->value);
    str_table_done(&b->entries);
}

void backoff_reset(struct backoff *b, struct str key)
{
    free(str_table_remove(&b->entries, key));
}

int64_t backoff_left(struct backoff *b, struct str key, int64_t since_ns, int64_t now_ns)
{
    const struct backoff_entry *entry = str_table_get(&b->entries, key);
    if (!entry)
        return 0;
    /* Finish times are the runtime's word, and a wall clock may be set back: neither a time to come
     * nor one before 1970 may make the wait longer than the delay, or the sums wrap. */
    if (since_ns > now_ns)
        since_ns = now_ns;
    if (since_ns < 0)
        since_ns = 0;
    /* Nothing ends before it was tried: with clocks that disagree the try counts, or there would be no
     * waiting at all. */
    if (since_ns < entry->last_ns && entry->last_ns <= now_ns)
        since_ns = entry->last_ns;
    if (since_ns - entry->last_ns > BACKOFF_RESET_NS) {
        backoff_reset(b, key);
        return 0;
    }
    int64_t left = entry->delay_ns - (now_ns - since_ns);
    return left > 0 ? left : 0;
}

int64_t backoff_delay(const struct backoff *b, struct str key)
{
    const struct backoff_entry *entry = str_table_get(&b->entries, key);
    return entry ? entry->delay_ns : 0;
}

int64_t backoff_last(const struct backoff *b, struct str key)
{
    const struct backoff_entry *entry = str_table_get(&b->entries, key);
    return entry ? entry->last_ns : 0;
}

static void forget_old(struct backoff *b, int64_t now_ns)
{
    str_table_each(&b->entries, slot) {
        const struct backoff_entry *entry = slot->value;
        if (now_ns - entry->last_ns > BACKOFF_RESET_NS + max_ns(b))
            backoff_reset(b, slot->key);
    }
}

void backoff_next(struct backoff *b, struct str key, int64_t now_ns)
{
    forget_old(b, now_ns);
    struct backoff_entry *entry = str_table_get(&b->entries, key);
    if (!entry) {
        entry = kv_malloc(sizeof *entry);
        entry->delay_ns = initial_ns(b);
        str_table_put(&b->entries, key, entry);
    } else {
        entry->delay_ns = entry->delay_ns < max_ns(b) / 2 ? entry->delay_ns * 2 : max_ns(b);
    }
    entry->last_ns = now_ns;
}
