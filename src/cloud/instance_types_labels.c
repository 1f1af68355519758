/* Label columns. The pool's requirements are ranked by key, so those of a key lie together: the
 * distinct values that they list become the column's, and each requirement is told once where its
 * values are. After that, a type's bits are set by walking its requirements.
 */
#include "cloud/instance_types_build.h"

struct labels {
    struct build *b;
    struct label_column *columns;
    uint32_t column_count;
    VEC(struct label_value) values; /* of all columns, column after column */
    bool *used;                     /* per requirement: some type has it, not only a shape */
    uint32_t *column_of;            /* per requirement */
    uint32_t *slots;                /* per value of the pool: which of `values` it is */
};

/* Values that are to be found by name; those of an open set are exceptions. */
static uint32_t named_count(const struct requirement *r)
{
    return r->complement ? 0 : r->values.count;
}

static int by_number(const void *a, const void *b)
{
    const struct label_number *x = a, *y = b;
    if (x->number != y->number)
        return x->number < y->number ? -1 : 1;
    return x->value < y->value ? -1 : x->value > y->value;
}

static void add_numbers(struct arena *arena, struct label_column *c)
{
    uint32_t count = 0;
    int64_t n;
    for (uint32_t i = 0; i < c->value_count; i++)
        count += str_to_i64(c->values[i].text, &n);
    if (!count)
        return;
    struct label_number *numbers = arena_array(arena, struct label_number, count);
    for (uint32_t i = 0; i < c->value_count; i++) {
        if (str_to_i64(c->values[i].text, &n))
            numbers[c->number_count++] = (struct label_number){ n, i };
    }
    qsort(numbers, count, sizeof *numbers, by_number);
    c->numbers = numbers;
}

/* The ranks of what requirements [first, end) list, sorted, each once. */
static uint32_t distinct_values(const struct labels *l, uint32_t first, uint32_t end, uint32_t *out)
{
    const struct build *b = l->b;
    uint32_t count = 0, kept = 0;
    for (uint32_t i = first; i < end; i++) {
        uint32_t n = l->used[i] ? named_count(&b->s.requirement_pool[i]) : 0;
        for (uint32_t v = 0; v < n; v++)
            out[count++] = b->value_ranks[b->values_start[i] + v];
    }
    qsort(out, count, sizeof *out, build_by_id);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0 || out[i] != out[i - 1])
            out[kept++] = out[i];
    }
    return kept;
}

/* The column of the key that requirements [first, end) are about; `ranks` is room for all their
 * values. */
static void add_column(struct labels *l, uint32_t first, uint32_t end, uint32_t *ranks)
{
    struct build *b = l->b;
    uint32_t ix = l->column_count++, start = (uint32_t)l->values.count;
    uint32_t count = distinct_values(l, first, end, ranks);
    for (uint32_t i = 0; i < count; i++)
        vec_push(&l->values, (struct label_value){ .text = b->texts[ranks[i]] });
    for (uint32_t i = first; i < end; i++) {
        uint32_t n = l->used[i] ? named_count(&b->s.requirement_pool[i]) : 0;
        uint32_t at = b->values_start[i];
        l->column_of[i] = ix;
        for (uint32_t v = at; v < at + n; v++)
            l->slots[v] = start + FIRST_NOT(count, k, ranks[k] < b->value_ranks[v]);
    }
    uint32_t types = b->s.type_count;
    l->columns[ix] = (struct label_column){ .key = b->s.requirement_pool[first].key,
                                            .value_count = count,
                                            .defined = bitset_new(b->arena, types),
                                            .absent = bitset_new(b->arena, types),
                                            .complement = bitset_new(b->arena, types),
                                            .several = bitset_new(b->arena, types) };
}

static void add_columns(struct labels *l)
{
    struct build *b = l->b;
    const struct requirement *pool = b->s.requirement_pool;
    uint32_t count = (uint32_t)b->pool->requirements.count, keys = 0;
    for (uint32_t i = 0; i < b->s.type_requirements_start[b->s.type_count]; i++)
        l->used[b->s.type_requirements[i]] = true;
    /* Keys that only shapes have get no column. */
    uint32_t *starts = arena_array(b->scratch, uint32_t, (size_t)count + 1);
    for (uint32_t i = 0; i < count; i++) {
        bool same = keys && pool[starts[keys - 1]].key.p == pool[i].key.p;
        if (l->used[i] && !same)
            starts[keys++] = i;
    }
    starts[keys] = count;
    l->columns = arena_array(b->arena, struct label_column, keys);
    uint32_t *ranks = arena_array(b->scratch, uint32_t, b->pool->values.count);
    for (uint32_t k = 0; k < keys; k++) {
        uint32_t end = starts[k] + 1;
        while (end < starts[k + 1] && pool[end].key.p == pool[starts[k]].key.p)
            end++;
        add_column(l, starts[k], end, ranks);
    }
}

static void note_type(struct labels *l, uint32_t type, uint32_t requirement)
{
    const struct requirement *r = &l->b->s.requirement_pool[requirement];
    struct label_column *c = &l->columns[l->column_of[requirement]];
    uint32_t at = l->b->values_start[requirement], n = named_count(r);
    bitset_set(&c->defined, type);
    if (r->complement)
        bitset_set(&c->complement, type);
    else if (n == 0)
        bitset_set(&c->absent, type);
    else if (n > 1)
        bitset_set(&c->several, type);
    for (uint32_t v = at; v < at + n; v++)
        posting_note(&l->values.items[l->slots[v]].types, type);
}

static void add_type(struct label_value *values, const struct labels *l, uint32_t type,
                     uint32_t requirement)
{
    const struct requirement *r = &l->b->s.requirement_pool[requirement];
    uint32_t at = l->b->values_start[requirement], n = named_count(r);
    for (uint32_t v = at; v < at + n; v++)
        posting_add(&values[l->slots[v]].types, type);
}

static int add_postings(struct labels *l, struct err *err)
{
    struct build *b = l->b;
    const uint32_t *ids = b->s.type_requirements, *start = b->s.type_requirements_start;
    for (uint32_t t = 0; t < b->s.type_count; t++) {
        for (uint32_t i = start[t]; i < start[t + 1]; i++)
            note_type(l, t, ids[i]);
    }
    uint64_t word_count = 0;
    vec_each(&l->values, struct label_value, v)
        word_count += v->types.count;
    if (build_reserve(b, word_count, err) < 0)
        return -1;
    uint64_t *words = arena_array(b->arena, uint64_t, word_count);
    struct label_value *values = arena_array(b->arena, struct label_value, l->values.count);
    for (uint32_t i = 0; i < l->values.count; i++) {
        values[i] = l->values.items[i];
        words = posting_place(&values[i].types, words);
    }
    for (uint32_t t = 0; t < b->s.type_count; t++) {
        for (uint32_t i = start[t]; i < start[t + 1]; i++)
            add_type(values, l, t, ids[i]);
    }
    for (uint32_t i = 0; i < l->column_count; i++) {
        l->columns[i].values = values;
        values += l->columns[i].value_count;
        add_numbers(b->arena, &l->columns[i]);
    }
    return 0;
}

int build_labels(struct build *b, struct err *err)
{
    size_t count = b->pool->requirements.count;
    struct labels l = { .b = b,
                        .used = arena_array(b->scratch, bool, count),
                        .column_of = arena_array(b->scratch, uint32_t, count),
                        .slots = arena_array(b->scratch, uint32_t, b->pool->values.count) };
    add_columns(&l);
    int rc = add_postings(&l, err);
    vec_done(&l.values);
    b->s.labels = l.columns;
    b->s.key_count = l.column_count;
    return rc;
}
