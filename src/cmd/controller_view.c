/* The table of `karve controller` on a terminal, drawn over itself. */
#include "cmd/controller_inner.h"

#include "api/conditions.h"
#include "api/kinds.h"
#include "api/nodeclaim.h"
#include "cmd/simulate_inner.h"
#include "cmd/table.h"
#include "codec/duration.h"

#define EVENTS_SHOWN 10

/* --- facts --- */

enum claim_state { CLAIM_NEW, CLAIM_LAUNCHED, CLAIM_REGISTERED, CLAIM_READY, CLAIM_ENDING };
#define CLAIM_STATES 5

static bool is_true(const struct nodeclaim *claim, struct str type)
{
    const struct condition *c =
        condition_find(claim->status.conditions.items, claim->status.conditions.count, type);
    return condition_status_of(c) == CONDITION_TRUE;
}

static enum claim_state state_of(const struct nodeclaim *claim)
{
    if (claim->object.meta.deleted_us)
        return CLAIM_ENDING;
    if (is_true(claim, CONDITION_INITIALIZED))
        return CLAIM_READY;
    if (is_true(claim, CONDITION_REGISTERED))
        return CLAIM_REGISTERED;
    return is_true(claim, CONDITION_LAUNCHED) ? CLAIM_LAUNCHED : CLAIM_NEW;
}

static void count_claims(const struct store *store, uint32_t counts[CLAIM_STATES])
{
    struct object_list list;
    if (store_list(store, &nodeclaim_kind, NULL, &list, NULL) < 0)
        return;
    for (size_t i = 0; i < list.count; i++)
        counts[state_of(nodeclaim_of(list.items[i]))]++;
    object_list_done(&list);
}

/* --- lines --- */

static void add_counts(const struct live_facts *f, bool colour, struct buf *out)
{
    const struct record_sample *now = f->now;
    const char *bold = colour ? "\033[1m" : "", *plain = colour ? "\033[0m" : "";
    uint32_t claims[CLAIM_STATES] = { 0 };
    char up[DURATION_TEXT_MAX];
    count_claims(f->store, claims);
    duration_format_short(f->up_ns / DURATION_SECOND * DURATION_SECOND, up);
    buf_addf(out, "%skarve controller%s  %s, up %s\n\n", bold, plain, f->folder, up);
    buf_addf(out, "%spods%s    %u running, %u starting, %u pending, %u ended\n", bold, plain,
             now->pods_running, now->pods_starting, now->pods_pending, now->pods_ended);
    buf_addf(out, "%snodes%s   %u, %u of them ready\n", bold, plain, now->nodes, now->nodes_ready);
    buf_addf(out, "%sclaims%s  %u new, %u launched, %u registered, %u ready, %u ending\n", bold,
             plain, claims[CLAIM_NEW], claims[CLAIM_LAUNCHED], claims[CLAIM_REGISTERED],
             claims[CLAIM_READY], claims[CLAIM_ENDING]);
    buf_addf(out, "%scost%s    $%.2f an hour, $%.2f so far\n\n", bold, plain, now->dollars_hour,
             now->dollars);
}

static void add_pools(const struct live_facts *f, bool colour, struct buf *out)
{
    static const char *const headings[] = { "NODEPOOL", "NODES", "CLAIMS", "REGISTRATION HEALTHY" };
    static const char *const tints[] = { [CONDITION_UNSET] = "",
                                         [CONDITION_TRUE] = "\033[32m",
                                         [CONDITION_FALSE] = "\033[31m",
                                         [CONDITION_UNKNOWN] = "\033[2m" };
    struct table table;
    table_init(&table, headings, KV_COUNT_OF(headings));
    for (uint32_t i = 0; i < f->now->pool_count; i++) {
        const struct record_pool *pool = &f->now->pools[i];
        if (pool->health == CONDITION_UNSET && !pool->claims && !pool->nodes)
            continue; /* deleted, and nothing is left of it */
        table_add(&table, f->record->pools.items[i]);
        table_addf(&table, "%u", pool->nodes);
        table_addf(&table, "%u", pool->claims);
        table_addf(&table, "%s%s%s", colour ? tints[pool->health] : "",
                   pool->health ? health_word(pool->health) : "(deleted)", colour ? "\033[0m" : "");
    }
    table_print(&table, out, colour);
    table_done(&table);
}

static void add_events(const struct live_facts *f, bool colour, struct buf *out)
{
    size_t count = f->record->events.count;
    int64_t start_us = clock_wall_us(clock_real()) - f->up_ns / 1000;
    buf_addc(out, '\n');
    for (size_t i = count > EVENTS_SHOWN ? count - EVENTS_SHOWN : 0; i < count; i++)
        timeline_line(&f->record->events.items[i], start_us, colour, out);
}

/* What is wrong with the folder, where it cannot be cut off. */
static void add_trouble(const struct live_facts *f, bool colour, struct buf *out)
{
    if (*f->trouble)
        buf_addf(out, "%s%s%s\n\n", colour ? "\033[31m" : "", f->trouble, colour ? "\033[0m" : "");
}

void controller_view_draw(struct live_view *view, const struct live_facts *facts)
{
    AUTO_BUF text = { 0 };
    add_counts(facts, view->colour, &text);
    add_trouble(facts, view->colour, &text);
    add_pools(facts, view->colour, &text);
    add_events(facts, view->colour, &text);
    live_view_show(view, &text);
}
