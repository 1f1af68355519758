/* sched/fits_testing.h - what images ask for, in worlds for tests.
 *
 *     world_fits(&w, FIT_UNKNOWN_LAST);
 *     world_fit(&w, "app:1", "a b", "arm medium? n1"); // pods a and b: runs on arm and n1, medium is unknown
 *
 * Names are of instance types, nodes and claims. What is not in the list does not fit; with "*" in it
 * everything else does, and with "*?" everything else is unknown. Both come after world_refresh, which
 * forgets them.
 */
#pragma once

#include "sched/world_testing.h"

#define WORLD_FITS_MAX 16

static inline struct str fit_next_word(struct str *rest)
{
    struct str word, more;
    if (str_cut(*rest, ' ', &word, &more)) {
        *rest = more;
        return word;
    }
    word = *rest;
    *rest = STR("");
    return word;
}

/* What the list says of a name. */
static inline uint8_t fit_listed(const char *list, struct str name)
{
    enum fit other = FIT_NO;
    for (struct str rest = str_of(list); rest.len;) {
        struct str word = fit_next_word(&rest);
        enum fit says = str_ends(word, STR("?")) ? FIT_UNKNOWN : FIT_YES;
        if (says == FIT_UNKNOWN)
            word = str_sub(word, 0, word.len - 1);
        if (str_eq(word, name))
            return (uint8_t)says;
        if (str_eqz(word, "*"))
            other = says;
    }
    return (uint8_t)other;
}

static inline struct str fit_why(void *ctx, struct arena *arena, uint32_t fit, uint32_t ix,
                                 uint32_t row)
{
    const struct snapshot *snap = ctx;
    const struct sched_fit *f = &snap->fits.items[fit];
    enum fit is =
        row == UINT32_MAX ? sched_fit_of(f->nodes, ix) : sched_fit_of(f->machines[ix], row);
    KV_ASSERT(is != FIT_YES);
    return arena_strf(arena, "%s", is == FIT_NO ? "has no avx512f" : "it is not known what it has");
}

static inline void world_fits(struct world *w, enum fit_unknown unknown)
{
    uint32_t *pods = arena_array(&w->arena, uint32_t, w->snap.pod_count);
    for (uint32_t i = 0; i < w->snap.pod_count; i++)
        pods[i] = UINT32_MAX;
    w->snap.fits =
        (struct snapshot_fits){ .items = arena_array(&w->arena, struct sched_fit, WORLD_FITS_MAX),
                                .pods = pods,
                                .unknown = unknown,
                                .why = fit_why,
                                .ctx = &w->snap };
}

typedef uint8_t fit_says_fn(const void *ctx, struct str name);

/* One more fit, by what `says` says of the names of types, nodes and claims. */
static inline uint32_t world_fit_add(struct world *w, const char *images, fit_says_fn *says,
                                     const void *ctx)
{
    const struct snapshot *snap = &w->snap;
    const uint8_t **machines = arena_array(&w->arena, const uint8_t *, snap->pool_count);
    for (uint32_t p = 0; p < snap->pool_count; p++) {
        const struct instance_types *types = snap->pools[p].types;
        uint8_t *rows = types ? arena_array(&w->arena, uint8_t, types->row_count) : NULL;
        for (uint32_t row = 0; rows && row < types->row_count; row++)
            rows[row] = says(ctx, types->names[types->row_type[row]]);
        machines[p] = rows;
    }
    uint8_t *nodes = arena_array(&w->arena, uint8_t, snap->node_count);
    for (uint32_t i = 0; i < snap->node_count; i++)
        nodes[i] = says(ctx, snap->nodes[i]->object.meta.name);
    uint8_t *claims = arena_array(&w->arena, uint8_t, snap->claim_count);
    for (uint32_t i = 0; i < snap->claim_count; i++)
        claims[i] = says(ctx, snap->claims[i]->object.meta.name);
    EXPECT_TRUE(snap->fits.count < WORLD_FITS_MAX);
    ((struct sched_fit *)snap->fits.items)[snap->fits.count] =
        (struct sched_fit){ arena_strf(&w->arena, "%s", images), machines, nodes, claims };
    return w->snap.fits.count++;
}

static inline uint8_t fit_says_list(const void *ctx, struct str name)
{
    return fit_listed(ctx, name);
}

/* `pods` are names; "web-*" are all whose names begin with "web-". */
static inline void world_fit(struct world *w, const char *images, const char *pods,
                             const char *list)
{
    uint32_t fit = world_fit_add(w, images, fit_says_list, list);
    for (struct str rest = str_of(pods); rest.len;) {
        struct str word = fit_next_word(&rest);
        bool many = str_ends(word, STR("*")), found = false;
        if (many)
            word = str_sub(word, 0, word.len - 1);
        for (uint32_t i = 0; i < w->snap.pod_count; i++) {
            struct str name = w->snap.pods[i]->object.meta.name;
            if (many ? !str_starts(name, word) : !str_eq(name, word))
                continue;
            ((uint32_t *)w->snap.fits.pods)[i] = fit;
            found = true;
        }
        EXPECT_TRUE(found);
    }
}

/* --- at random --- */

struct random_fit {
    uint64_t seed;
    uint32_t number;
};

/* By names, so that the order of objects does not matter. */
static inline uint64_t fit_dice(const struct random_fit *f, struct str name)
{
    return kv_mix64(kv_hash(name.p, name.len) ^ kv_mix64(f->seed << 8 | f->number));
}

static inline uint8_t fit_says_random(const void *ctx, struct str name)
{
    uint64_t dice = fit_dice(ctx, name) % 10;
    return dice < 6 ? FIT_YES : dice < 8 ? FIT_UNKNOWN : FIT_NO;
}

/* About half of the workloads ask for something. */
static inline void world_fits_random(struct world *w, uint64_t seed)
{
    world_fits(w, (enum fit_unknown)(seed % 3));
    for (uint32_t i = 0; i < 3; i++)
        world_fit_add(w, "app:1", fit_says_random, &(struct random_fit){ seed, i });
    for (uint32_t i = 0; i < w->snap.pod_count; i++) {
        struct str name = w->snap.pods[i]->object.meta.name;
        while (name.len && name.p[name.len - 1] != '-')
            name.len--;
        uint64_t dice = fit_dice(&(struct random_fit){ seed, 9 }, name) % 6;
        ((uint32_t *)w->snap.fits.pods)[i] = dice < 3 ? (uint32_t)dice : UINT32_MAX;
    }
}
