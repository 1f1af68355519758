/* Where a pod's images run, as the solver asks: yes or no.
 *
 * The snapshot says yes, no or unknown of every node, claim and machine. Unknown counts as the
 * snapshot's policy has it; where it is to be taken last there are two readings of a fit, one that
 * wants to be sure and one that does not. A reading that leaves nothing out is none, so pods whose
 * images run everywhere are of one class with pods that say nothing of images.
 *
 * To an image a type is one kind of machine: what overrides change is amounts. So a type of which
 * some row does not fit is not used at all, and all that a launch may become fits because its types
 * do.
 */
#include "sched/model_inner.h"

/* Of an overridden type its own row may be nobody's. */
static bool own_row_is_offered(const struct instance_types *s, uint32_t type)
{
    if (!bitset_test(&s->overridden, type))
        return true;
    for (uint32_t o = s->offering_start[type]; o < s->offering_start[type + 1]; o++) {
        if (s->offering_row[o] == type)
            return true;
    }
    return false;
}

static struct bitset types_fitting(struct compile *c, const struct instance_types *s,
                                   const uint8_t *maybe_rows, enum fit least)
{
    struct bitset out = bitset_new(c->arena, s->type_count);
    bitset_fill(&out);
    for (uint32_t row = 0; maybe_rows && row < s->row_count; row++) {
        if (maybe_rows[row] < least && (row >= s->type_count || own_row_is_offered(s, row)))
            bitset_clear(&out, s->row_type[row]);
    }
    return out;
}

static struct bitset homes_fitting(struct compile *c, const struct sched_fit *fit, enum fit least)
{
    const struct model *m = c->m;
    struct bitset out = bitset_new(c->arena, m->home_count);
    for (uint32_t i = 0; i < m->home_count; i++) {
        const struct home *home = &m->homes[i];
        enum fit here = home->node != NONE ? sched_fit_of(fit->nodes, home->node)
                                           : sched_fit_of(fit->claims, home->claim);
        if (here >= least)
            bitset_set(&out, i);
    }
    return out;
}

static bool leaves_out(const struct model *m, const struct image_fit *fit)
{
    bool all = bitset_popcount(&fit->homes) == m->home_count;
    for (uint32_t p = 0; p < m->pool_count && all; p++)
        all = bitset_popcount(&fit->types[p]) == m->pools[p].types->type_count;
    return !all;
}

static bool same_places(const struct model *m, const struct image_fit *a, const struct image_fit *b)
{
    bool same = bitset_equal(&a->homes, &b->homes);
    for (uint32_t p = 0; p < m->pool_count && same; p++)
        same = bitset_equal(&a->types[p], &b->types[p]);
    return same;
}

/* Whatever fits at least so well. */
static struct image_fit read_fit(struct compile *c, uint32_t source, enum fit least)
{
    const struct model *m = c->m;
    const struct sched_fit *fit = &m->snap->fits.items[source];
    struct bitset *types = arena_array(c->arena, struct bitset, m->pool_count);
    for (uint32_t p = 0; p < m->pool_count; p++)
        types[p] =
            types_fitting(c, m->pools[p].types, sched_fit_rows(fit, m->pools[p].source), least);
    return (struct image_fit){ source, homes_fitting(c, fit, least), types };
}

static uint32_t fit_keep(struct compile *c, const struct image_fit *fit)
{
    if (!leaves_out(c->m, fit))
        return NONE;
    vec_push(&c->fits, *fit);
    return (uint32_t)c->fits.count - 1;
}

static struct fit_readings readings_new(struct compile *c, uint32_t source)
{
    struct fit_readings out = { .known = true };
    enum fit_unknown unknown = c->m->snap->fits.unknown;
    struct image_fit any =
        read_fit(c, source, unknown == FIT_UNKNOWN_AS_NO ? FIT_YES : FIT_UNKNOWN);
    out.first = out.last = fit_keep(c, &any);
    if (unknown == FIT_UNKNOWN_LAST) {
        struct image_fit sure = read_fit(c, source, FIT_YES);
        if (!same_places(c->m, &sure, &any))
            out.first = fit_keep(c, &sure);
    }
    return out;
}

struct fit_readings fit_readings_of(struct compile *c, uint32_t maybe_fit)
{
    const struct snapshot_fits *fits = &c->m->snap->fits;
    if (maybe_fit == NONE)
        return (struct fit_readings){ NONE, NONE, true };
    KV_ASSERT(maybe_fit < fits->count);
    if (!c->maybe_fits)
        c->maybe_fits = arena_array(c->arena, struct fit_readings, fits->count);
    if (!c->maybe_fits[maybe_fit].known)
        c->maybe_fits[maybe_fit] = readings_new(c, maybe_fit);
    return c->maybe_fits[maybe_fit];
}
