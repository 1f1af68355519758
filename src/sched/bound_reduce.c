/* What can be left out of the relaxation without changing its value.
 *
 * A machine may be bought in fractions, so its size is nothing and its room per dollar everything. A
 * machine is dropped when another one is allowed to every class that may be on it, is as roomy
 * wherever a single pod could notice, and has as much room per dollar of every resource. Less
 * of a resource will do if it is plenty: when no pod asks for more than `ratio` units of i per unit of
 * j, then a dollar's worth of machine never needs more of i than ratio * its room of j.
 */
#include "sched/bound_inner.h"

#include "base/map.h"
#include "base/vec.h"

#include <math.h>
#include <string.h>

struct view { /* of a machine */
    uint32_t machine;
    const int64_t *room;      /* [resource of the input] */
    const double *per_dollar; /* [resource]: room */
    struct bitset sets;       /* of machines (`set_heads`) that it is in */
};

struct reduction {
    struct arena *arena;
    const struct bound_input *in;
    uint32_t *set_heads; /* the first class of each distinct set of allowed machines */
    uint32_t set_count;
    uint32_t *set_of; /* per class of the input: the first class with the same set */
    VEC(uint32_t)
    distinct;            /* classes of the input that are worth something, the first of its like */
    uint32_t *class_of;  /* per class of the input: into `distinct`, or BOUND_NO_CLASS */
    uint32_t *resources; /* of the input: that somebody asks for */
    uint32_t resource_count;
    int64_t *request_max;  /* [resource of the input] */
    double *ratio;         /* [resource][resource] */
    VEC(uint32_t) gratis;  /* machines that cost nothing */
    VEC(struct view) kept; /* machines: the columns */
    uint32_t *replaced_by; /* per machine: itself if it is kept; BOUND_NO_COLUMN: it is no use */
    struct bitset *open;   /* per distinct class: columns it may be on */
    uint64_t steps;
};

static const int64_t *request_of(const struct reduction *d, uint32_t class_)
{
    return d->in->request + (size_t)class_ * d->in->resource_count;
}

static const int64_t *room_of(const struct reduction *d, uint32_t machine)
{
    return d->in->room + (size_t)machine * d->in->resource_count;
}

static bool fits(const struct reduction *d, const int64_t *request, const int64_t *room)
{
    for (uint32_t r = 0; r < d->in->resource_count; r++)
        if (request[r] > room[r])
            return false;
    return true;
}

/* Of things that are numbered, the first that is the same; `item` itself if it is new. */
typedef bool same_fn(const struct reduction *d, uint32_t a, uint32_t b);

static uint32_t first_alike(struct map *seen, uint64_t hash, const struct reduction *d,
                            same_fn *same, uint32_t item)
{
    uintptr_t at;
    for (; map_get(seen, hash, &at); hash++)
        if (same(d, (uint32_t)at, item))
            return (uint32_t)at;
    map_put(seen, hash, item);
    return item;
}

/* --- classes --- */

static bool same_set(const struct reduction *d, uint32_t a, uint32_t b)
{
    return bitset_equal(&d->in->allowed[a], &d->in->allowed[b]);
}

static void number_sets(struct reduction *d)
{
    struct map seen = { 0 };
    d->set_of = arena_array(d->arena, uint32_t, d->in->class_count);
    d->set_heads = arena_array(d->arena, uint32_t, d->in->class_count);
    for (uint32_t c = 0; c < d->in->class_count; c++) {
        const struct bitset *set = &d->in->allowed[c];
        uint64_t hash = kv_hash(set->words, BITSET_WORDS(set->bit_count) * sizeof *set->words);
        d->set_of[c] = first_alike(&seen, hash, d, same_set, c);
        if (d->set_of[c] == c)
            d->set_heads[d->set_count++] = c;
    }
    map_done(&seen);
}

static bool same_class(const struct reduction *d, uint32_t a, uint32_t b)
{
    return d->set_of[a] == d->set_of[b] &&
           memcmp(request_of(d, a), request_of(d, b), d->in->resource_count * sizeof(int64_t)) == 0;
}

/* Can it be had for nothing? Then its pods weigh on nothing else. */
static bool is_gratis(const struct reduction *d, uint32_t class_)
{
    const int64_t *request = request_of(d, class_);
    vec_each(&d->gratis, const uint32_t, t)
        if (bitset_test(&d->in->allowed[class_], *t) && fits(d, request, room_of(d, *t)))
            return true;
    for (uint32_t r = 0; r < d->in->resource_count; r++)
        if (request[r] > 0)
            return false;
    return true;
}

static void merge_classes(struct reduction *d)
{
    size_t bytes = d->in->resource_count * sizeof(int64_t);
    struct map seen = { 0 };
    d->class_of = arena_array(d->arena, uint32_t, d->in->class_count);
    for (uint32_t c = 0; c < d->in->class_count; c++) {
        uint64_t hash = kv_hash_salted(request_of(d, c), bytes, d->set_of[c]);
        uint32_t first = first_alike(&seen, hash, d, same_class, c);
        if (first != c) {
            d->class_of[c] = d->class_of[first];
        } else if (is_gratis(d, c)) {
            d->class_of[c] = BOUND_NO_CLASS;
        } else {
            d->class_of[c] = (uint32_t)d->distinct.count;
            vec_push(&d->distinct, c);
        }
    }
    map_done(&seen);
}

/* Resources that are asked for, the most of each, and the most of one beside another. */
static void survey_requests(struct reduction *d)
{
    d->request_max = arena_array(d->arena, int64_t, d->in->resource_count);
    d->resources = arena_array(d->arena, uint32_t, d->in->resource_count);
    for (uint32_t r = 0; r < d->in->resource_count; r++) {
        vec_each(&d->distinct, uint32_t, c)
            if (request_of(d, *c)[r] > d->request_max[r])
                d->request_max[r] = request_of(d, *c)[r];
        if (d->request_max[r] > 0)
            d->resources[d->resource_count++] = r;
    }
    size_t n = d->resource_count;
    d->ratio = arena_array(d->arena, double, n *n);
    vec_each(&d->distinct, uint32_t, c) {
        const int64_t *request = request_of(d, *c);
        for (size_t i = 0; i < n; i++) {
            double amount = (double)request[d->resources[i]];
            for (size_t j = 0; j < n && amount > 0; j++) {
                double beside = (double)request[d->resources[j]];
                double ratio = beside > 0 ? amount / beside : INFINITY;
                if (ratio > d->ratio[i * n + j])
                    d->ratio[i * n + j] = ratio;
            }
        }
    }
}

/* --- machines --- */

static bool holds_something(const struct reduction *d, const int64_t *room)
{
    for (uint32_t r = 0; r < d->in->resource_count; r++)
        if (room[r] < 0)
            return false;
    return true;
}

static void find_gratis(struct reduction *d)
{
    for (uint32_t t = 0; t < d->in->machine_count; t++)
        if (d->in->price[t] <= 0 && holds_something(d, room_of(d, t)))
            vec_push(&d->gratis, t);
}

static struct view view_of(const struct reduction *d, uint32_t machine)
{
    const int64_t *room = room_of(d, machine);
    double *per_dollar = arena_array(d->arena, double, d->resource_count);
    for (size_t i = 0; i < d->resource_count; i++)
        per_dollar[i] = (double)room[d->resources[i]] / (double)d->in->price[machine];
    struct bitset sets = bitset_new(d->arena, d->set_count);
    for (uint32_t i = 0; i < sets.bit_count; i++)
        if (bitset_test(&d->in->allowed[d->set_heads[i]], machine))
            bitset_set(&sets, i);
    return (struct view){ machine, room, per_dollar, sets };
}

/* Has a dollar's worth of `a` enough of resource i for whatever fits on a dollar's worth of `b`? */
static bool has_plenty(const struct reduction *d, const struct view *a, const struct view *b,
                       size_t i)
{
    const double *ratio = d->ratio + i * d->resource_count;
    for (size_t j = 0; j < d->resource_count; j++)
        if (ratio[j] * b->per_dollar[j] <= a->per_dollar[i])
            return true;
    return false;
}

static bool replaces(const struct reduction *d, const struct view *a, const struct view *b)
{
    if (b->sets.words[0] & ~a->sets.words[0])
        return false;
    for (size_t i = 0; i < d->resource_count; i++) {
        uint32_t r = d->resources[i];
        if (a->room[r] < b->room[r] && a->room[r] < d->request_max[r])
            return false;
        if (!has_plenty(d, a, b, i))
            return false;
    }
    return bitset_subset(&b->sets, &a->sets);
}

/* Two that replace each other differ in nothing that counts, but perhaps in the last bit of a result:
 * which of them is kept must not depend on their order. */
static bool precedes(const struct reduction *d, const struct view *a, const struct view *b)
{
    for (size_t i = 0; i < d->resource_count; i++)
        if (a->per_dollar[i] != b->per_dollar[i])
            return a->per_dollar[i] > b->per_dollar[i];
    return d->in->price[a->machine] < d->in->price[b->machine];
}

/* What replaced one machine is likely to replace the next: it moves towards the front. */
static bool is_replaced(struct reduction *d, const struct view *view)
{
    for (size_t i = 0; i < d->kept.count; i++) {
        struct view other = d->kept.items[i];
        d->steps++;
        if (!replaces(d, &other, view) || (replaces(d, view, &other) && precedes(d, view, &other)))
            continue;
        d->kept.items[i] = d->kept.items[i / 2];
        d->kept.items[i / 2] = other;
        d->replaced_by[view->machine] = other.machine;
        return true;
    }
    return false;
}

static void keep(struct reduction *d, const struct view *view)
{
    size_t left = 0;
    for (size_t i = 0; i < d->kept.count; i++) {
        if (replaces(d, view, &d->kept.items[i]))
            d->replaced_by[d->kept.items[i].machine] = view->machine;
        else
            d->kept.items[left++] = d->kept.items[i];
    }
    d->kept.count = left;
    d->replaced_by[view->machine] = view->machine;
    vec_push(&d->kept, *view);
}

static void keep_machines(struct reduction *d)
{
    d->replaced_by = arena_array(d->arena, uint32_t, d->in->machine_count);
    for (uint32_t t = 0; t < d->in->machine_count; t++) {
        d->replaced_by[t] = BOUND_NO_COLUMN;
        if (d->in->price[t] <= 0 || !holds_something(d, room_of(d, t)))
            continue;
        struct view view = view_of(d, t);
        if (bitset_any(&view.sets) && !is_replaced(d, &view))
            keep(d, &view);
    }
}

/* Whatever replaced a machine may have been replaced in turn. */
static const uint32_t *columns_of(const struct reduction *d)
{
    uint32_t *place = arena_array(d->arena, uint32_t, d->in->machine_count);
    uint32_t *column = arena_array(d->arena, uint32_t, d->in->machine_count);
    for (uint32_t i = 0; i < d->kept.count; i++)
        place[d->kept.items[i].machine] = i;
    for (uint32_t t = 0; t < d->in->machine_count; t++) {
        uint32_t by = d->replaced_by[t];
        while (by != BOUND_NO_COLUMN && by != d->replaced_by[by])
            by = d->replaced_by[by];
        column[t] = by == BOUND_NO_COLUMN ? by : place[by];
    }
    return column;
}

/* --- the core --- */

static struct bitset open_columns(struct reduction *d, uint32_t class_)
{
    const int64_t *request = request_of(d, class_);
    struct bitset open = bitset_new(d->arena, (uint32_t)d->kept.count);
    for (uint32_t t = 0; t < open.bit_count; t++) {
        const struct view *view = &d->kept.items[t];
        if (bitset_test(&d->in->allowed[class_], view->machine) && fits(d, request, view->room))
            bitset_set(&open, t);
    }
    d->steps += open.bit_count;
    return open;
}

/* Classes that fit nowhere are worth nothing: they cannot be paid for. */
static void open_all(struct reduction *d)
{
    uint32_t *place = arena_array(d->arena, uint32_t, d->distinct.count);
    size_t left = 0;
    d->open = arena_array(d->arena, struct bitset, d->distinct.count);
    for (size_t i = 0; i < d->distinct.count; i++) {
        d->open[left] = open_columns(d, d->distinct.items[i]);
        d->distinct.items[left] = d->distinct.items[i];
        place[i] = bitset_any(&d->open[left]) ? (uint32_t)left++ : BOUND_NO_CLASS;
    }
    d->distinct.count = left;
    for (uint32_t c = 0; c < d->in->class_count; c++)
        if (d->class_of[c] != BOUND_NO_CLASS)
            d->class_of[c] = place[d->class_of[c]];
}

static bool same_columns(const struct reduction *d, uint32_t a, uint32_t b)
{
    return bitset_equal(&d->open[a], &d->open[b]);
}

static const double *const *closed_rows(const struct reduction *d, uint32_t column_count)
{
    struct map seen = { 0 };
    const double **rows = arena_array(d->arena, const double *, d->distinct.count);
    for (uint32_t i = 0; i < d->distinct.count; i++) {
        const struct bitset *open = &d->open[i];
        uint64_t hash = kv_hash(open->words, BITSET_WORDS(open->bit_count) * sizeof *open->words);
        uint32_t first = first_alike(&seen, hash, d, same_columns, i);
        if (first == i) {
            double *row = arena_array(d->arena, double, column_count);
            for (uint32_t t = 0; t < column_count; t++)
                row[t] = t < open->bit_count && bitset_test(open, t) ? 0 : INFINITY;
            rows[i] = row;
        }
        rows[i] = rows[first];
    }
    map_done(&seen);
    return rows;
}

static const double *requests(const struct reduction *d)
{
    size_t n = d->resource_count;
    double *request = arena_array(d->arena, double, d->distinct.count *n);
    for (size_t i = 0; i < d->distinct.count; i++)
        for (size_t r = 0; r < n; r++)
            request[i * n + r] = (double)request_of(d, d->distinct.items[i])[d->resources[r]];
    return request;
}

static const uint64_t *counts(const struct reduction *d)
{
    uint64_t *count = arena_array(d->arena, uint64_t, d->distinct.count);
    for (uint32_t c = 0; c < d->in->class_count; c++) {
        if (d->class_of[c] == BOUND_NO_CLASS)
            continue;
        uint64_t *sum = &count[d->class_of[c]];
        if (__builtin_add_overflow(*sum, d->in->count[c], sum))
            *sum = UINT64_MAX;
    }
    return count;
}

static const double *units(const struct reduction *d, uint32_t column_count)
{
    size_t cells = (size_t)d->resource_count * column_count;
    double *unit = arena_array(d->arena, double, cells);
    for (size_t i = 0; i < d->resource_count; i++) {
        for (size_t t = 0; t < d->kept.count; t++) {
            const struct view *view = &d->kept.items[t];
            if (view->per_dollar[i] > 0)
                unit[i * column_count + t] = 1 / view->per_dollar[i];
        }
    }
    return unit;
}

void bound_reduce(struct arena *arena, const struct bound_input *in, struct bound_core *out)
{
    struct reduction d = { .arena = arena, .in = in };
    find_gratis(&d);
    number_sets(&d);
    merge_classes(&d);
    survey_requests(&d);
    keep_machines(&d);
    open_all(&d);
    uint32_t column_count = ((uint32_t)d.kept.count + BOUND_LANES - 1) / BOUND_LANES * BOUND_LANES;
    *out = (struct bound_core){
        .class_count = (uint32_t)d.distinct.count,
        .column_count = column_count,
        .resource_count = (uint32_t)d.resource_count,
        .resources = d.resources,
        .class_of = d.class_of,
        .column_of = columns_of(&d),
        .request = requests(&d),
        .count = counts(&d),
        .closed = closed_rows(&d, column_count),
        .unit = units(&d, column_count),
        .steps = d.steps,
    };
    vec_each(&d.kept, struct view, view)
        if (in->price[view->machine] > out->price_max)
            out->price_max = in->price[view->machine];
    vec_done(&d.distinct);
    vec_done(&d.gratis);
    vec_done(&d.kept);
}
