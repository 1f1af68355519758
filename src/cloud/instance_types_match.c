/* Asking a snapshot. What a requirement allows is found key by key in the posting lists:
 *
 *   In                 OR of the values' postings
 *   NotIn, Exists      types with values, less those all of whose values are excluded
 *   Gt, Lt, ...        OR of the postings of the numbers in the range, found by bisection
 *   DoesNotExist       the absent ones
 *
 * The few types that say something open about the key themselves (Exists, NotIn, bounds) are asked
 * one by one by the algebra of api/requirement.h. Whatever is found here, the answer is that of
 * requirements_compatible.
 */
#include "cloud/instance_types_inner.h"

/* A set over types on the stack. */
#define TYPE_WORDS BITSET_WORDS(INSTANCE_TYPES_MAX)

/* --- types --- */

static bool allows_absence(const struct requirement *r)
{
    enum requirement_op op = requirement_operator(r);
    return op == OP_NOT_IN || op == OP_DOES_NOT_EXIST;
}

static const struct label_value *find_value(const struct label_column *c, struct str text)
{
    uint32_t at = FIRST_NOT(c->value_count, i, str_cmp(c->values[i].text, text) < 0);
    return at < c->value_count && str_eq(c->values[at].text, text) ? &c->values[at] : NULL;
}

static void add_listed(const struct label_column *c, const struct requirement *r,
                       struct bitset *found)
{
    for (uint32_t i = 0; i < r->values.count; i++) {
        const struct label_value *v = find_value(c, r->values.items[i]);
        if (v)
            posting_or(found, &v->types);
    }
}

static void add_range(const struct label_column *c, const struct requirement *r,
                      struct bitset *found)
{
    int64_t least = r->gte.set ? r->gte.value : INT64_MIN;
    uint32_t first = FIRST_NOT(c->number_count, i, c->numbers[i].number < least);
    for (uint32_t i = first; i < c->number_count; i++) {
        if (r->lte.set && c->numbers[i].number > r->lte.value)
            break;
        const struct label_value *v = &c->values[c->numbers[i].value];
        bool excluded =
            r->values.count && str_sorted_has(r->values.items, r->values.count, v->text);
        if (!excluded)
            posting_or(found, &v->types);
    }
}

/* Does the type itself, with several values or an open set of them, go with r? */
static bool type_allows(const struct instance_types *s, uint32_t type, const struct requirement *r)
{
    const struct requirement *own = instance_type_requirement(s, type, r->key);
    return requirement_has_intersection(own, r) || (allows_absence(own) && allows_absence(r));
}

/* Types with values of which r excludes some, but not all. */
static void add_not_listed(const struct instance_types *s, const struct label_column *c,
                           const struct requirement *r, struct bitset *found)
{
    uint64_t words[TYPE_WORDS];
    struct bitset listed;
    bitset_init(&listed, words, s->type_count);
    add_listed(c, r, &listed);

    bitset_or(found, &c->defined);
    bitset_andnot(found, &c->absent);
    bitset_andnot(found, &c->complement);
    bitset_andnot(found, &listed);
    bitset_and(&listed, &c->several);
    bitset_each(&listed, t) {
        if (type_allows(s, t, r))
            bitset_set(found, t);
    }
}

static void find_defined(const struct instance_types *s, const struct label_column *c,
                         const struct requirement *r, const struct bitset *among,
                         struct bitset *found)
{
    if (!r->complement)
        add_listed(c, r, found);
    else if (r->gte.set || r->lte.set)
        add_range(c, r, found);
    else
        add_not_listed(s, c, r, found);
    if (allows_absence(r))
        bitset_or(found, &c->absent);
    bitset_each(&c->complement, t) {
        if (bitset_test(among, t) && type_allows(s, t, r))
            bitset_set(found, t);
    }
}

void instance_types_narrow(const struct instance_types *s, const struct requirement *r,
                           bool may_be_undefined, struct bitset *out)
{
    KV_ASSERT(out->bit_count == s->type_count);
    bool undefined_ok = may_be_undefined || allows_absence(r);
    const struct label_column *c = instance_types_label(s, r->key);
    if (!c) {
        if (!undefined_ok)
            bitset_zero(out);
        return;
    }
    uint64_t words[TYPE_WORDS];
    struct bitset found;
    bitset_init(&found, words, s->type_count);
    if (undefined_ok) {
        bitset_fill(&found);
        bitset_andnot(&found, &c->defined);
    }
    find_defined(s, c, r, out, &found);
    bitset_and(out, &found);
}

void instance_types_narrow_all(const struct instance_types *s, const struct requirements *set,
                               struct str_list may_be_undefined, struct bitset *out)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct requirement *r = &set->items[i];
        bool may = str_sorted_has(may_be_undefined.items, may_be_undefined.count, r->key);
        instance_types_narrow(s, r, may, out);
    }
}

/* --- offerings --- */

void instance_types_shapes(const struct instance_types *s, const struct requirements *set,
                           struct bitset *out)
{
    KV_ASSERT(out->bit_count == s->shape_count);
    bitset_zero(out);
    for (uint32_t i = 0; i < s->shape_count; i++) {
        if (requirements_intersects(set, &s->shapes[i].requirements, NULL))
            bitset_set(out, i);
    }
}

void instance_types_offered(const struct instance_types *s, const struct bitset *shapes,
                            struct bitset *out)
{
    KV_ASSERT(out->bit_count == s->type_count);
    KV_ASSERT(shapes->bit_count == s->shape_count);
    bitset_zero(out);
    bitset_each(shapes, i)
        posting_or(out, &s->shapes[i].types);
}

uint32_t instance_types_cheapest(const struct instance_types *s, uint32_t type,
                                 const struct bitset *shapes)
{
    KV_ASSERT(type < s->type_count);
    uint32_t best = INSTANCE_TYPE_NONE, start = s->offering_start[type];
    usd_hour best_price = USD_HOUR_MAX;
    uint8_t best_rank = UINT8_MAX;
    for (uint32_t o = start; o < s->offering_start[type + 1]; o++) {
        if (!bitset_test(&s->available, o) || !bitset_test(shapes, s->offering_shape[o]))
            continue;
        usd_hour price = s->prices[type][o - start];
        uint8_t rank = s->shapes[s->offering_shape[o]].capacity_type_ix;
        if (best == INSTANCE_TYPE_NONE || price < best_price ||
            (price == best_price && rank < best_rank)) {
            best = o;
            best_price = price;
            best_rank = rank;
        }
    }
    return best;
}

/* --- resources --- */

/* `out` &= places of the column with at least `need`. */
static void narrow_by_amount(const int64_t *column, int64_t need, struct bitset *out)
{
    for (uint32_t w = 0; w * 64 < out->bit_count; w++) {
        uint32_t start = w * 64, left = out->bit_count - start, n = left < 64 ? left : 64;
        uint64_t enough = 0;
        if (!out->words[w])
            continue;
        for (uint32_t i = 0; i < n; i++)
            enough |= (uint64_t)(column[start + i] >= need) << i;
        out->words[w] &= enough;
    }
}

static bool row_fits(const struct instance_types *s, uint32_t row, const struct resources *request)
{
    if (bitset_test(&s->overdrawn, row))
        return false;
    for (uint32_t i = 0; i < request->count; i++) {
        const struct resource_column *c = instance_types_resource(s, request->items[i].name);
        if (milli_ceil(request->items[i].amount) > (c ? c->allocatable[row] : 0))
            return false;
    }
    return true;
}

/* Rows of one type come in few kinds, and offerings of a kind mostly follow each other. */
static bool some_row_fits(const struct instance_types *s, uint32_t type,
                          const struct resources *request, const struct bitset *shapes)
{
    uint32_t refused = UINT32_MAX;
    for (uint32_t o = s->offering_start[type]; o < s->offering_start[type + 1]; o++) {
        uint32_t row = s->offering_row[o];
        if (row == refused || !bitset_test(&s->available, o) ||
            !bitset_test(shapes, s->offering_shape[o]))
            continue;
        if (row_fits(s, row, request))
            return true;
        refused = row;
    }
    return false;
}

void instance_types_fitting(const struct instance_types *s, const struct resources *request,
                            const struct bitset *shapes, struct bitset *out)
{
    KV_ASSERT(out->bit_count == s->type_count);
    uint64_t words[TYPE_WORDS], overridden_words[TYPE_WORDS];
    struct bitset offered, overridden;
    bitset_init(&offered, words, s->type_count);
    instance_types_offered(s, shapes, &offered);
    bitset_and(out, &offered);

    /* Types with one row: column by column. Those with several: one by one. */
    bitset_init(&overridden, overridden_words, s->type_count);
    bitset_and_into(&overridden, out, &s->overridden);
    for (uint32_t w = 0; w * 64 < s->type_count; w++)
        out->words[w] &= ~s->overdrawn.words[w];
    struct str missing = STR_NONE;
    for (uint32_t i = 0; i < request->count; i++) {
        const struct resource_column *c = instance_types_resource(s, request->items[i].name);
        int64_t need = milli_ceil(request->items[i].amount);
        if (c)
            narrow_by_amount(c->allocatable, need, out);
        else if (need > 0)
            missing = request->items[i].name;
    }
    if (missing.p)
        bitset_zero(out);
    bitset_each(&overridden, t) {
        if (some_row_fits(s, t, request, shapes))
            bitset_set(out, t);
        else
            bitset_clear(out, t);
    }
}
