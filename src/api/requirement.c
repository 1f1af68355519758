/* Both operands of an intersection have sorted values, so everything is one walk over the two lists
 * in step: each value that is in either comes up once, with a note in which. Whether it belongs
 * to the result depends on that note and the two complement flags alone.
 */
#include "api/requirement.h"

#include "api/labels.h"
#include "base/rng.h"

#include <inttypes.h>

/* --- building --- */

static struct str_list sorted_copy(struct arena *arena, struct str_list values)
{
    struct str *items = arena_array(arena, struct str, values.count);
    for (uint32_t i = 0; i < values.count; i++)
        items[i] = values.items[i].p ? arena_str(arena, values.items[i]) : STR("");
    return (struct str_list){ items, (uint32_t)str_sort_unique(items, values.count) };
}

static struct str copied_key(struct arena *arena, struct str key)
{
    return arena_str(arena, label_normalise(key.p ? key : STR("")));
}

struct requirement requirement_in(struct arena *arena, struct str key, struct str_list values)
{
    return (struct requirement){ .key = copied_key(arena, key),
                                 .values = sorted_copy(arena, values) };
}

struct requirement requirement_exists(struct arena *arena, struct str key)
{
    return (struct requirement){ .key = copied_key(arena, key), .complement = true };
}

struct requirement requirement_does_not_exist(struct arena *arena, struct str key)
{
    return (struct requirement){ .key = copied_key(arena, key) };
}

/* Gt and Lt become inclusive bounds. Where there is no next integer nothing can match. */
static void set_bounds(struct requirement *r, enum requirement_op op, int64_t n)
{
    struct maybe_int *bound = op == OP_GT || op == OP_GTE ? &r->gte : &r->lte;
    bool none = (op == OP_GT && __builtin_add_overflow(n, 1, &n)) ||
                (op == OP_LT && __builtin_sub_overflow(n, 1, &n));
    r->complement = !none;
    if (!none)
        *bound = (struct maybe_int){ n, true };
}

int requirement_from_expression(struct arena *arena, const struct expression *e,
                                struct requirement *out, struct err *err)
{
    struct requirement r = { .key = copied_key(arena, e->key), .min_values = e->min_values };
    int64_t n;
    switch ((enum requirement_op)e->op) {
    case OP_IN:
    case OP_NOT_IN:
        r.complement = e->op == OP_NOT_IN;
        r.values = sorted_copy(arena, e->values);
        break;
    case OP_EXISTS:
        r.complement = true;
        break;
    case OP_DOES_NOT_EXIST:
        break;
    case OP_GT:
    case OP_LT:
    case OP_GTE:
    case OP_LTE:
        if (e->values.count != 1 || !str_to_i64(e->values.items[0], &n))
            return err_set(err, ERR_INVALID, "%.*s: %s needs exactly one value, an integer",
                           STR_ARG(r.key), requirement_op_names[e->op - 1]);
        set_bounds(&r, e->op, n);
        break;
    case OP_UNSET:
        return err_set(err, ERR_INVALID, "%.*s: no operator, or one that is not known",
                       STR_ARG(r.key));
    }
    *out = r;
    return 0;
}

/* --- one requirement --- */

enum requirement_op requirement_operator(const struct requirement *r)
{
    if (r->complement)
        return r->values.count ? OP_NOT_IN : OP_EXISTS;
    return r->values.count ? OP_IN : OP_DOES_NOT_EXIST;
}

int64_t requirement_len(const struct requirement *r)
{
    return r->complement ? INT64_MAX - r->values.count : r->values.count;
}

static bool within(struct maybe_int gte, struct maybe_int lte, struct str value)
{
    if (!gte.set && !lte.set)
        return true;
    int64_t n;
    return str_to_i64(value, &n) && (!gte.set || n >= gte.value) && (!lte.set || n <= lte.value);
}

bool requirement_has(const struct requirement *r, struct str value)
{
    bool listed = str_sorted_has(r->values.items, r->values.count, value);
    return listed != r->complement && within(r->gte, r->lte, value);
}

/* The integers that a label within the bounds can be: none if *low > *high. */
static void integer_range(const struct requirement *r, int64_t *low, int64_t *high)
{
    *low = r->gte.set && r->gte.value > 0 ? r->gte.value : 0;
    *high = r->lte.set ? r->lte.value : INT64_MAX;
}

/* An integer as it is usually written: "04" is another label value than "4". */
static bool plain_integer(struct str s, int64_t *out)
{
    bool padded = s.len > 1 && s.p[0] == '0';
    return s.len && s.p[0] >= '0' && s.p[0] <= '9' && !padded && str_to_i64(s, out);
}

int64_t requirement_possible_count(const struct requirement *r)
{
    if (!r->complement)
        return r->values.count;
    int64_t low, high, n;
    integer_range(r, &low, &high);
    if (low > high)
        return 0;
    if ((!r->gte.set && !r->lte.set) || high - low == INT64_MAX)
        return INT64_MAX;
    int64_t count = high - low + 1;
    for (uint32_t i = 0; i < r->values.count; i++)
        count -= plain_integer(r->values.items[i], &n) && n >= low && n <= high;
    return count;
}

static bool maybe_int_equal(struct maybe_int a, struct maybe_int b)
{
    return a.set == b.set && (!a.set || a.value == b.value);
}

bool requirement_equal(const struct requirement *a, const struct requirement *b)
{
    if (!str_eq(a->key, b->key) || a->complement != b->complement ||
        a->values.count != b->values.count || !maybe_int_equal(a->gte, b->gte) ||
        !maybe_int_equal(a->lte, b->lte) || !maybe_int_equal(a->min_values, b->min_values))
        return false;
    for (uint32_t i = 0; i < a->values.count; i++) {
        if (!str_eq(a->values.items[i], b->values.items[i]))
            return false;
    }
    return true;
}

/* --- two requirements --- */

static struct maybe_int larger(struct maybe_int a, struct maybe_int b)
{
    return !b.set || (a.set && a.value >= b.value) ? a : b;
}

static struct maybe_int smaller(struct maybe_int a, struct maybe_int b)
{
    return !b.set || (a.set && a.value <= b.value) ? a : b;
}

static bool crossed(struct maybe_int gte, struct maybe_int lte)
{
    return gte.set && lte.set && gte.value > lte.value;
}

struct walk { /* over the values of two requirements */
    struct str_list a, b;
    uint32_t a_ix, b_ix;
    struct str value;
    bool in_a, in_b;
};

static bool walk_next(struct walk *w)
{
    bool a_left = w->a_ix < w->a.count, b_left = w->b_ix < w->b.count;
    if (!a_left && !b_left)
        return false;
    int order = a_left ? -1 : 1;
    if (a_left && b_left)
        order = str_cmp(w->a.items[w->a_ix], w->b.items[w->b_ix]);
    w->in_a = order <= 0;
    w->in_b = order >= 0;
    w->value = w->in_a ? w->a.items[w->a_ix] : w->b.items[w->b_ix];
    w->a_ix += w->in_a;
    w->b_ix += w->in_b;
    return true;
}

bool requirement_has_intersection(const struct requirement *a, const struct requirement *b)
{
    KV_ASSERT(str_eq(a->key, b->key));
    struct maybe_int gte = larger(a->gte, b->gte), lte = smaller(a->lte, b->lte);
    if (crossed(gte, lte))
        return false;
    if (a->complement && b->complement)
        return true;
    struct walk w = { .a = a->values, .b = b->values };
    while (walk_next(&w)) {
        if (w.in_a != a->complement && w.in_b != b->complement && within(gte, lte, w.value))
            return true;
    }
    return false;
}

struct requirement requirement_intersection(struct arena *arena, const struct requirement *a,
                                            const struct requirement *b)
{
    KV_ASSERT(str_eq(a->key, b->key));
    struct requirement r = { .key = a->key, .min_values = larger(a->min_values, b->min_values) };
    struct maybe_int gte = larger(a->gte, b->gte), lte = smaller(a->lte, b->lte);
    if (crossed(gte, lte))
        return r;
    r.complement = a->complement && b->complement;
    if (r.complement) {
        r.gte = gte;
        r.lte = lte;
    }
    struct str *values = arena_array(arena, struct str, (size_t)a->values.count + b->values.count);
    uint32_t count = 0;
    struct walk w = { .a = a->values, .b = b->values };
    while (walk_next(&w)) {
        bool listed = r.complement || (w.in_a != a->complement && w.in_b != b->complement);
        /* An excluded value outside the bounds is excluded by them already. */
        if (listed && within(gte, lte, w.value))
            values[count++] = w.value;
    }
    r.values = (struct str_list){ values, count };
    return r;
}

/* --- a value, a text --- */

struct str requirement_any(struct arena *arena, const struct requirement *r, uint64_t seed)
{
    if (!r->complement)
        return r->values.count ? r->values.items[0] : STR("");
    int64_t low, high;
    integer_range(r, &low, &high);
    if (low > high)
        return STR("");
    struct rng rng;
    rng_init(&rng, seed ^ kv_hash(r->key.p, r->key.len));
    int64_t n = low + (int64_t)rng_below(&rng, (uint64_t)(high - low) + 1);
    /* From there upwards and around: one of the first values.count + 1 is not excluded. */
    for (uint32_t tries = 0; tries <= r->values.count; tries++) {
        struct str text = arena_strf(arena, "%" PRId64, n);
        if (requirement_has(r, text))
            return text;
        n = n == high ? low : n + 1;
    }
    return STR("");
}

#define FORMAT_VALUES_MAX 5

void requirement_format(const struct requirement *r, struct buf *out)
{
    buf_addf(out, "%.*s %s", STR_ARG(r->key), requirement_op_names[requirement_operator(r) - 1]);
    for (uint32_t i = 0; i < r->values.count && i < FORMAT_VALUES_MAX; i++)
        buf_addf(out, "%s%.*s", i ? " " : " [", STR_ARG(r->values.items[i]));
    if (r->values.count > FORMAT_VALUES_MAX)
        buf_addf(out, " and %u others", r->values.count - FORMAT_VALUES_MAX);
    if (r->values.count)
        buf_addc(out, ']');
    if (r->gte.set)
        buf_addf(out, " >=%" PRId64, r->gte.value);
    if (r->lte.set)
        buf_addf(out, " <=%" PRId64, r->lte.value);
    if (r->min_values.set)
        buf_addf(out, " minValues %" PRId64, r->min_values.value);
}
