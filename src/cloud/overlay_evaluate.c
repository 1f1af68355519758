/* Overlays are taken in order, and each is matched against every class of pools before anything is
 * kept of it. Of the accepted ones each class remembers, for the weight that is being worked on,
 * who prices which offering and who sets which resource of which type: all of them, not the latest,
 * and also those whose change a heavier overlay hides. What the next overlay of that weight would
 * change is looked up there; one hit rejects it.
 *
 * The first overlay of a weight has nobody to clash with, and of the last nothing is remembered.
 */
#include "cloud/overlay_inner.h"

#include <inttypes.h>

struct claims { /* what accepted overlays change in one class of pools */
    struct overlay_view view;
    struct overlay_match match; /* of the overlay at hand */
    struct str pool;            /* the first of the class, for messages */
    struct bitset priced;       /* offerings, by overlays of the weight at hand */
    /* Who: 1 + the overlay's place; 0 is nobody. */
    uint32_t *priced_by;    /* per offering; counts where `priced` is set */
    uint32_t **capacity_by; /* per resource, per type; NULL: by nobody yet. Of any weight. */
};

struct evaluation {
    const struct overlay_set *set;
    struct arena *scratch; /* gone when the call ends */
    struct arena *arena;   /* the caller's */
    struct claims *classes;
    uint32_t class_count;
};

static void start_classes(struct evaluation *ev, const struct overlay_pool *pools, uint32_t count)
{
    const struct overlay_pool *sorted = overlay_pools_sorted(pools, count, ev->scratch);
    uint32_t *class_of = arena_array(ev->scratch, uint32_t, count);
    ev->class_count = overlay_classes(ev->set, sorted, count, class_of);
    ev->classes = arena_array(ev->scratch, struct claims, ev->class_count);
    for (uint32_t i = 0, next = 0; i < count; i++) {
        if (class_of[i] != next)
            continue;
        struct claims *c = &ev->classes[next++];
        const struct instance_types *types = sorted[i].types;
        c->pool = sorted[i].name;
        c->view = overlay_view_make(ev->set, &sorted[i], ev->scratch);
        c->match = overlay_match_new(&c->view, ev->scratch);
        c->priced = bitset_new(ev->scratch, types->offering_count);
        c->priced_by = arena_array(ev->scratch, uint32_t, types->offering_count);
        c->capacity_by = arena_array(ev->scratch, uint32_t *, ev->set->resource_count);
    }
}

/* --- clashes --- */

struct clash {
    const struct claims *where;
    uint32_t with; /* the other overlay's place */
    uint32_t type;
    uint32_t offering;                       /* INSTANCE_TYPE_NONE: it is about capacity */
    const struct overlay_capacity *capacity; /* NULL: it is about a price */
};

static bool price_clash(const struct claims *c, const struct overlay *o, struct clash *out)
{
    if (o->pricing == PRICING_NONE || !bitset_intersects(&c->match.offerings, &c->priced))
        return false;
    uint32_t offering = bitset_first(&c->match.offerings);
    while (!bitset_test(&c->priced, offering))
        offering = bitset_next(&c->match.offerings, offering + 1);
    *out = (struct clash){ .where = c,
                           .with = c->priced_by[offering] - 1,
                           .type = c->view.types->offering_type[offering],
                           .offering = offering };
    return true;
}

static bool capacity_clash(const struct claims *c, const struct overlay *o, struct clash *out)
{
    const struct overlay *all = c->view.set->items;
    for (uint32_t i = 0; i < o->capacity_count; i++) {
        const uint32_t *by = c->capacity_by[o->capacity[i].resource];
        if (!by)
            continue;
        bitset_each(&c->match.types, t) {
            if (by[t] && all[by[t] - 1].weight == o->weight) {
                *out = (struct clash){ .where = c,
                                       .with = by[t] - 1,
                                       .type = t,
                                       .offering = INSTANCE_TYPE_NONE,
                                       .capacity = &o->capacity[i] };
                return true;
            }
        }
    }
    return false;
}

static bool find_clash(const struct evaluation *ev, const struct overlay *o, struct clash *out)
{
    for (uint32_t i = 0; i < ev->class_count; i++) {
        if (price_clash(&ev->classes[i], o, out) || capacity_clash(&ev->classes[i], o, out))
            return true;
    }
    return false;
}

static struct str clash_message(const struct evaluation *ev, const struct clash *clash)
{
    const struct instance_types *types = clash->where->view.types;
    const struct overlay *other = &ev->set->items[clash->with];
    AUTO_BUF what = { 0 };
    if (clash->capacity) {
        struct str resource = ev->set->resources[clash->capacity->resource];
        buf_addf(&what, "set %.*s of instance type %.*s", STR_ARG(resource),
                 STR_ARG(types->names[clash->type]));
    } else {
        const struct offering_shape *shape = &types->shapes[types->offering_shape[clash->offering]];
        buf_addf(&what, "set the price of instance type %.*s, offering %.*s/%.*s",
                 STR_ARG(types->names[clash->type]), STR_ARG(shape->zone),
                 STR_ARG(shape->capacity_type));
        if (shape->reservation_id.len)
            buf_addf(&what, "/%.*s", STR_ARG(shape->reservation_id));
    }
    if (clash->where->pool.len) /* a whole catalogue is asked without one */
        buf_addf(&what, ", in NodePool %.*s", STR_ARG(clash->where->pool));
    return arena_strf(ev->arena,
                      "conflicts with NodeOverlay %.*s of the same weight %" PRId64 ": both %s",
                      STR_ARG(other->object->object.meta.name), other->weight, what.p);
}

/* --- claims --- */

/* Word by word, as this is where ten thousand overlays that price everything spend their time. */
static void claim_offerings(struct claims *c, uint32_t place)
{
    const struct bitset *offerings = &c->match.offerings;
    for (uint32_t first = 0; first < offerings->bit_count; first += 64) {
        for (uint64_t bits = offerings->words[first / 64]; bits; bits &= bits - 1)
            c->priced_by[first + (uint32_t)__builtin_ctzll(bits)] = place + 1;
    }
}

static void claim(struct evaluation *ev, struct claims *c, const struct overlay *o, uint32_t place)
{
    if (o->pricing != PRICING_NONE) {
        bitset_or(&c->priced, &c->match.offerings);
        claim_offerings(c, place);
    }
    for (uint32_t i = 0; c->match.type_count && i < o->capacity_count; i++) {
        uint32_t **by = &c->capacity_by[o->capacity[i].resource];
        if (!*by)
            *by = arena_array(ev->scratch, uint32_t, c->view.types->type_count);
        bitset_each(&c->match.types, t)
            (*by)[t] = place + 1;
    }
}

/* --- the verdicts --- */

static bool begins_weight(const struct overlay_set *set, uint32_t i)
{
    return i == 0 || set->items[i - 1].weight != set->items[i].weight;
}

static bool ends_weight(const struct overlay_set *set, uint32_t i)
{
    return i + 1 == set->count || begins_weight(set, i + 1);
}

static struct overlay_verdict judge(struct evaluation *ev, uint32_t place)
{
    const struct overlay *o = &ev->set->items[place];
    struct overlay_verdict verdict = { .overlay = o->object, .message = STR("") };
    struct clash clash;

    if (!overlay_is_valid(o)) {
        verdict.state = OVERLAY_INVALID;
        verdict.message = arena_str(ev->arena, o->problem);
        return verdict;
    }
    for (uint32_t i = 0; i < ev->class_count; i++) {
        struct claims *c = &ev->classes[i];
        overlay_match_find(&c->view, o, &c->match);
        verdict.type_count += c->match.type_count;
        verdict.offering_count += c->match.offering_count;
    }
    if (!begins_weight(ev->set, place) && find_clash(ev, o, &clash)) {
        verdict.state = OVERLAY_CONFLICT;
        verdict.message = clash_message(ev, &clash);
        return verdict;
    }
    for (uint32_t i = 0; !ends_weight(ev->set, place) && i < ev->class_count; i++)
        claim(ev, &ev->classes[i], o, place);
    return verdict;
}

static const struct overlay_set *accepted_set(const struct evaluation *ev,
                                              const struct overlay_verdict *verdicts)
{
    const struct nodeoverlay **accepted =
        arena_array(ev->scratch, const struct nodeoverlay *, ev->set->count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < ev->set->count; i++) {
        if (verdicts[i].state == OVERLAY_ACCEPTED)
            accepted[count++] = verdicts[i].overlay;
    }
    if (count == ev->set->count)
        return overlay_set_ref(ev->set);
    return overlay_set_new(accepted, count, ev->set->generation);
}

void overlay_set_evaluate(const struct overlay_set *set, const struct overlay_pool *pools,
                          uint32_t pool_count, struct arena *arena, struct overlay_evaluation *out)
{
    AUTO_ARENA scratch = { 0 };
    struct evaluation ev = { .set = set, .scratch = &scratch, .arena = arena };
    struct overlay_verdict *verdicts = arena_array(arena, struct overlay_verdict, set->count);

    start_classes(&ev, pools, pool_count);
    for (uint32_t i = 0; i < set->count; i++) {
        for (uint32_t k = 0; begins_weight(set, i) && k < ev.class_count; k++)
            bitset_zero(&ev.classes[k].priced);
        verdicts[i] = judge(&ev, i);
    }
    *out = (struct overlay_evaluation){ .verdicts = { verdicts, set->count },
                                        .accepted = accepted_set(&ev, verdicts) };
}
