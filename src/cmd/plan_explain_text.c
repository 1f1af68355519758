/* `karve plan --explain` for people: where the pods went, then every NodePool with what each thing
 * they ask for left of its instance types. */
#include "cmd/plan_inner.h"

#define HEADING_BYTES_MAX 90
#define PLACES_SHOWN 5

/* --- where the pods went --- */

struct places { /* per pod of the snapshot */
    const struct plan_launch **launches;
    const struct plan_existing **existing;
};

static struct places places_of(const struct planning *p, struct arena *arena)
{
    struct places places = {
        arena_array(arena, const struct plan_launch *, p->snapshot.pod_count),
        arena_array(arena, const struct plan_existing *, p->snapshot.pod_count),
    };
    for (uint32_t i = 0; i < p->plan->launch_count; i++) {
        const struct plan_launch *launch = &p->plan->launches[i];
        for (uint32_t k = 0; k < launch->pods.count; k++)
            places.launches[launch->pods.items[k]] = launch;
    }
    for (uint32_t i = 0; i < p->plan->existing_count; i++) {
        const struct plan_existing *existing = &p->plan->existing[i];
        for (uint32_t k = 0; k < existing->pods.count; k++)
            places.existing[existing->pods.items[k]] = existing;
    }
    return places;
}

static void place_format(const struct planning *p, const struct places *places, uint32_t pod,
                         struct buf *out)
{
    const struct plan_launch *launch = places->launches[pod];
    if (launch)
        buf_addf(out, "new node of %.*s: %.*s, %.*s, %.*s", STR_ARG(launch_pool(p, launch)),
                 STR_ARG(launch_type(p, launch)), STR_ARG(launch_zone(p, launch)),
                 STR_ARG(launch_capacity_type(p, launch)));
    else if (places->existing[pod])
        buf_addf(out, "node %.*s, which is there",
                 STR_ARG(existing_name(p, places->existing[pod])));
    else
        buf_addz(out, "nowhere");
}

/* How many of the pods are where, in the order of the first. */
static void count_places(const struct planning *p, const struct places *places,
                         struct plan_pods pods, struct str_table *counts)
{
    for (uint32_t i = 0; i < pods.count; i++) {
        AUTO_BUF place = { 0 };
        place_format(p, places, pods.items[i], &place);
        uintptr_t n = (uintptr_t)str_table_get(counts, buf_str(&place));
        str_table_put(counts, buf_str(&place), (void *)(n + 1));
    }
}

static const char *tint_of(struct str place, struct plan_look look)
{
    return str_eqz(place, "nowhere") ? paint(look, RED) : paint(look, GREEN);
}

/* "default/big-0: nowhere"; a line for each place if there are several. */
static void print_places(const struct planning *p, const struct places *places,
                         struct plan_pods pods, struct plan_look look, struct buf *out)
{
    struct str_table counts = { 0 };
    uint32_t shown = 0;
    count_places(p, places, pods, &counts);
    bool together = counts.live_count == 1;
    buf_addz(out, together ? ": " : ":\n");
    str_table_each(&counts, it) {
        if (shown++ == PLACES_SHOWN && counts.live_count > PLACES_SHOWN + 1) {
            buf_addf(out, "  and %u other places\n", counts.live_count - PLACES_SHOWN);
            break;
        }
        if (!together)
            buf_addf(out, "  %4u  ", (uint32_t)(uintptr_t)it->value);
        buf_addf(out, "%s%.*s%s\n", tint_of(it->key, look), STR_ARG(it->key), paint(look, PLAIN));
    }
    str_table_done(&counts);
}

/* --- a pool --- */

static void print_steps(const struct explain_pool *pool, struct plan_look look, struct buf *out)
{
    for (uint32_t i = 0; i < pool->step_count; i++) {
        const struct explain_step *step = &pool->steps[i];
        bool idle = step->before == step->after;
        buf_addf(out, "%s%6u > %-6u %.*s%s\n", idle ? paint(look, DIM) : "", step->before,
                 step->after, STR_ARG(step->what), idle ? paint(look, PLAIN) : "");
    }
}

static void print_pool(const struct planning *p, const struct explain_pool *pool,
                       struct plan_look look, struct buf *out)
{
    struct str name = p->snapshot.pools[pool->pool].pool->object.meta.name;
    buf_addf(out, "%sNodePool %.*s%s: %s%s%s\n", paint(look, BOLD), STR_ARG(name),
             paint(look, PLAIN), pool->possible ? paint(look, GREEN) : paint(look, RED),
             pool->possible ? "yes" : "no", paint(look, PLAIN));
    print_steps(pool, look, out);
    if (pool->detail.len)
        buf_addf(out, "  %.*s\n", STR_ARG(pool->detail));
    if (pool->nearest.len)
        buf_addf(out, "  nearest: %.*s\n", STR_ARG(pool->nearest));
    if (pool->edit.len)
        buf_addf(out, "  edit:    %.*s\n", STR_ARG(pool->edit));
}

/* --- a class of pods --- */

static void heading_format(const struct planning *p, struct plan_pods pods, struct arena *arena,
                           struct buf *out)
{
    pods_format(p, pods, out);
    if (out->len > HEADING_BYTES_MAX) {
        buf_clear(out);
        workload_counts_format(p, workloads_among(p, pods, arena), 8, out);
    }
    if (pods.count > 1)
        buf_addf(out, " (%u pods)", pods.count);
}

static void print_class(const struct planning *p, const struct explained_class *class_,
                        const struct places *places, struct plan_look look, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF heading = { 0 };
    const struct explanation *e = class_->explanation;
    heading_format(p, class_->pods, &arena, &heading);
    buf_addf(out, "\n%s%s%s", paint(look, BOLD), heading.p, paint(look, PLAIN));
    print_places(p, places, class_->pods, look, out);
    if (e->maybe_refused)
        buf_addf(out, "  %.*s\n", STR_ARG(e->maybe_refused->detail));
    if (e->given_up.len)
        buf_addf(out, "  given up: %.*s\n", STR_ARG(e->given_up));
    if (e->homes.len)
        buf_addf(out, "  %.*s\n", STR_ARG(e->homes));
    for (uint32_t i = 0; i < e->pool_count; i++)
        print_pool(p, &e->pools[i], look, out);
}

void plan_explain_text(const struct planning *p, struct plan_look look, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    uint32_t count;
    struct explained_class *classes = explained_by_class(p, &arena, &count);
    struct places places = places_of(p, &arena);
    for (uint32_t i = 0; i < count; i++)
        print_class(p, &classes[i], &places, look, out);
}
