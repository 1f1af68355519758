/* What pods ask of a node, interned, and whether nodes that are there have it.
 *
 * A set's canonical text is its items in the order of keys with every length written out, so the
 * texts of two sets are equal exactly when the sets are.
 *
 * Homes whose labels agree in all that anybody asks about are of one shape; an answer is kept per
 * wants and shape. The labels of a node are one value each. Those of a claim on its way may still be
 * several: then each of them must suit.
 */
#include "sched/model_inner.h"
#include "sched/model_memo.h"

/* --- pairs --- */

#define PAIRS_AT_FIRST 1024u

static struct pair_slot *pair_slots(uint32_t count)
{
    struct pair_slot *slots = kv_realloc(NULL, count, sizeof *slots);
    for (uint32_t i = 0; i < count; i++)
        slots[i] = (struct pair_slot){ .key = PAIR_EMPTY };
    return slots;
}

void pair_init(struct pair_memo *p)
{
    *p = (struct pair_memo){ pair_slots(PAIRS_AT_FIRST), PAIRS_AT_FIRST - 1, 0 };
}

static void pair_place(struct pair_memo *p, struct pair_slot slot)
{
    uint32_t i = (uint32_t)kv_mix64(slot.key) & p->mask;
    while (p->slots[i].key != PAIR_EMPTY)
        i = (i + 1) & p->mask;
    p->slots[i] = slot;
}

void pair_put(struct pair_memo *p, uint64_t key, uint32_t value)
{
    KV_ASSERT(key != PAIR_EMPTY);
    if (p->count > p->mask / 2) {
        struct pair_memo larger = { pair_slots(p->mask * 2 + 2), p->mask * 2 + 1, p->count };
        for (uint32_t i = 0; i <= p->mask; i++) {
            if (p->slots[i].key != PAIR_EMPTY)
                pair_place(&larger, p->slots[i]);
        }
        free(p->slots);
        *p = larger;
    }
    pair_place(p, (struct pair_slot){ key, value });
    p->count++;
}

/* --- canonical texts --- */

static void bytes_encode(const void *p, size_t len, struct buf *out)
{
    buf_add(out, (struct str){ p, len });
}

void u32_encode(uint32_t n, struct buf *out)
{
    bytes_encode(&n, sizeof n, out);
}

void words_encode(const struct bitset *bs, struct buf *out)
{
    bytes_encode(bs->words, BITSET_WORDS(bs->bit_count) * sizeof *bs->words, out);
}

void str_encode(struct str s, struct buf *out)
{
    u32_encode((uint32_t)s.len, out);
    buf_add(out, s);
}

static void maybe_encode(struct maybe_int n, struct buf *out)
{
    buf_addc(out, n.set ? '1' : '0');
    if (n.set)
        bytes_encode(&n.value, sizeof n.value, out);
}

static void requirement_encode(const struct requirement *r, struct buf *out)
{
    str_encode(r->key, out);
    buf_addc(out, r->complement ? '-' : '+');
    maybe_encode(r->gte, out);
    maybe_encode(r->lte, out);
    maybe_encode(r->min_values, out);
    u32_encode(r->values.count, out);
    for (uint32_t i = 0; i < r->values.count; i++)
        str_encode(r->values.items[i], out);
}

void requirements_encode(const struct requirements *set, struct buf *out)
{
    u32_encode(set->count, out);
    for (uint32_t i = 0; i < set->count; i++)
        requirement_encode(&set->items[i], out);
}

/* --- interning --- */

static struct requirements requirements_copy(struct arena *arena, const struct requirements *set)
{
    struct requirement *items = arena_array(arena, struct requirement, set->count);
    for (uint32_t i = 0; i < set->count; i++) {
        const struct requirement *r = &set->items[i];
        struct str *values = arena_array(arena, struct str, r->values.count);
        for (uint32_t j = 0; j < r->values.count; j++)
            values[j] = arena_str(arena, r->values.items[j]);
        items[i] = *r;
        items[i].key = arena_str(arena, r->key);
        items[i].values.items = values;
    }
    return (struct requirements){ items, set->count };
}

/* Shapes tell homes apart by `shape_keys` alone. */
static bool asked_by_home(const struct model_memo *memo, const struct requirements *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        struct str key = set->items[i].key;
        if (str_eq(key, STR(LABEL_HOSTNAME)) ||
            !str_sorted_has(memo->shape_keys.items, memo->shape_keys.count, key))
            return true;
    }
    return false;
}

uint32_t wants_intern(struct model *m, const struct requirements *set)
{
    return wants_with_fit(m, set, NONE);
}

uint32_t wants_with_fit(struct model *m, const struct requirements *set, uint32_t maybe_fit)
{
    struct model_memo *memo = m->memo;
    buf_clear(&memo->text);
    u32_encode(maybe_fit, &memo->text);
    requirements_encode(set, &memo->text);
    uintptr_t found = (uintptr_t)str_table_get(&memo->wants_ids, buf_str(&memo->text));
    if (found)
        return (uint32_t)(found - 1);

    struct wants_entry *e = arena_new(m->arena, struct wants_entry);
    e->wants.set = requirements_copy(m->arena, set);
    e->wants.fit = maybe_fit;
    e->by_home = asked_by_home(memo, set);
    vec_push(&memo->wants, e);
    str_table_put(&memo->wants_ids, buf_str(&memo->text), (void *)(uintptr_t)memo->wants.count);
    return (uint32_t)memo->wants.count - 1;
}

const struct wants *wants_at(const struct model *m, uint32_t wants)
{
    KV_ASSERT(wants < m->memo->wants.count);
    return &m->memo->wants.items[wants]->wants;
}

/* --- pins --- */

static uint32_t pin_number(struct model *m, uint32_t key, uint32_t domain)
{
    struct model_memo *memo = m->memo;
    if (!memo->pin_base) {
        memo->pin_base = arena_array(m->arena, uint32_t, m->key_count);
        for (uint32_t k = 1; k < m->key_count; k++)
            memo->pin_base[k] = memo->pin_base[k - 1] + m->keys[k - 1].domain_count;
    }
    return memo->pin_base[key] + domain;
}

static uint32_t pin_anew(struct model *m, uint32_t wants, uint32_t key, uint32_t domain)
{
    const struct wants *from = wants_at(m, wants);
    const struct requirements *set = &from->set;
    struct str_list value = { &m->keys[key].domains[domain], 1 };
    struct arena *scratch = &m->memo->scratch;
    arena_reset(scratch);
    struct requirement pin = requirement_in(scratch, m->keys[key].name, value);
    const struct requirement *own = requirements_find(set, pin.key);
    if (own && !requirement_has(own, value.items[0]))
        return NONE;
    struct requirements pinned = requirements_add(scratch, set, &pin);
    return wants_with_fit(m, &pinned, from->fit);
}

uint32_t wants_pin(struct model *m, uint32_t wants, uint32_t key, uint32_t domain)
{
    KV_ASSERT(key != KEY_HOSTNAME);
    KV_ASSERT(key < m->key_count);
    KV_ASSERT(domain < m->keys[key].domain_count);
    uint64_t pair = pair_key(wants, pin_number(m, key, domain));
    uint32_t pinned;
    if (!pair_get(&m->memo->pins, pair, &pinned)) {
        pinned = pin_anew(m, wants, key, domain);
        pair_put(&m->memo->pins, pair, pinned);
    }
    return pinned;
}

uint32_t wants_label(struct model *m, struct str key, struct str maybe_value)
{
    AUTO_ARENA scratch = { 0 };
    struct requirement r = maybe_value.p
                               ? requirement_in(&scratch, key, (struct str_list){ &maybe_value, 1 })
                               : requirement_does_not_exist(&scratch, key);
    return wants_intern(m, &(struct requirements){ &r, 1 });
}

uint32_t wants_avoid(struct model *m, uint32_t wants, uint32_t key, const struct bitset *domains)
{
    AUTO_ARENA scratch = { 0 };
    const struct wants *from = wants_at(m, wants);
    struct str *values = arena_array(&scratch, struct str, domains->bit_count);
    struct expression e = { .key = m->keys[key].name, .op = OP_NOT_IN };
    struct requirement r;
    bitset_each(domains, d)
        values[e.values.count++] = m->keys[key].domains[d];
    e.values.items = values;
    if (!e.values.count || requirement_from_expression(&scratch, &e, &r, NULL) < 0)
        return wants;
    struct requirements avoiding = requirements_add(&scratch, &from->set, &r);
    const struct requirement *now = requirements_find(&avoiding, r.key);
    bool left = now->complement || now->values.count;
    return left ? wants_with_fit(m, &avoiding, from->fit) : NONE;
}

uint32_t wants_without(struct model *m, uint32_t wants, uint32_t key)
{
    AUTO_ARENA scratch = { 0 };
    struct requirement none = requirement_does_not_exist(&scratch, m->keys[key].name);
    const struct wants *from = wants_at(m, wants);
    const struct requirement *r = requirements_find(&from->set, none.key);
    if (r && demands_label(r))
        return NONE;
    struct requirements without = requirements_add(&scratch, &from->set, &none);
    return wants_with_fit(m, &without, from->fit);
}

/* --- labels --- */

bool demands_label(const struct requirement *r)
{
    if (!r->complement)
        return r->values.count > 0;
    return r->values.count == 0 || r->gte.set || r->lte.set;
}

bool new_host_suits(const struct requirements *set)
{
    const struct requirement *r = requirements_find(set, STR(LABEL_HOSTNAME));
    return !r || (r->complement && !r->gte.set && !r->lte.set);
}

bool wants_reduce(const struct requirements *set, const struct requirements *wants,
                  struct str_list well_known, struct arena *scratch, struct requirements *out)
{
    struct requirement *kept = arena_array(scratch, struct requirement, wants->count);
    uint32_t count = 0;
    if (!new_host_suits(wants))
        return false;
    for (uint32_t i = 0; i < wants->count; i++) {
        const struct requirement *r = &wants->items[i];
        if (str_eq(r->key, STR(LABEL_HOSTNAME)))
            continue;
        if (requirements_find(set, r->key) ||
            str_sorted_has(well_known.items, well_known.count, r->key))
            kept[count++] = *r;
        else if (demands_label(r))
            return false;
    }
    *out = (struct requirements){ kept, count };
    return true;
}

/* Is whatever `label` can be as `want` asks? */
static bool label_suits(const struct requirement *label, const struct requirement *want)
{
    if (label->complement) { /* some value, and which is not known */
        bool sure = demands_label(label) || !demands_label(want);
        for (uint32_t i = 0; i < want->values.count && sure; i++)
            sure = !requirement_has(label, want->values.items[i]);
        return sure && want->complement && !want->gte.set && !want->lte.set;
    }
    if (label->values.count == 0)
        return !demands_label(want);
    for (uint32_t i = 0; i < label->values.count; i++) {
        if (!requirement_has(want, label->values.items[i]))
            return false;
    }
    return true;
}

bool labels_suit(const struct requirements *labels, const struct requirements *wants)
{
    for (uint32_t i = 0; i < wants->count; i++) {
        const struct requirement *want = &wants->items[i];
        const struct requirement *label = requirements_find(labels, want->key);
        if (label ? !label_suits(label, want) : demands_label(want))
            return false;
    }
    return true;
}

bool home_fits(const struct model *m, const struct home *home, uint32_t wants)
{
    uint32_t fit = m->memo->wants.items[wants]->wants.fit;
    return fit == NONE || bitset_test(&m->fits[fit].homes, (uint32_t)(home - m->homes));
}

bool home_admits(struct model *m, const struct home *home, uint32_t wants)
{
    return home_suits(m, home, wants) && home_fits(m, home, wants);
}

bool home_suits(struct model *m, const struct home *home, uint32_t wants)
{
    struct model_memo *memo = m->memo;
    struct wants_entry *e = memo->wants.items[wants];
    if (e->by_home)
        return labels_suit(&memo->home_labels[home - m->homes], &e->wants.set);

    size_t words = BITSET_WORDS(m->shape_count);
    if (!e->known) {
        e->known = arena_array(m->arena, uint64_t, 2 * words);
        e->admitted = e->known + words;
    }
    uint64_t bit = UINT64_C(1) << (home->shape % 64);
    uint32_t word = home->shape / 64;
    if (!(e->known[word] & bit)) {
        e->known[word] |= bit;
        if (labels_suit(&memo->home_labels[memo->shape_home[home->shape]], &e->wants.set))
            e->admitted[word] |= bit;
    }
    return e->admitted[word] & bit;
}

/* --- shapes of homes --- */

/* The keys that pods speak of now, and those that a pin may add. */
static struct str_list asked_keys(struct model *m)
{
    VEC(struct str) keys = { 0 };
    for (uint32_t k = 0; k < m->key_count; k++) {
        if (k != KEY_HOSTNAME)
            vec_push(&keys, label_normalise(m->keys[k].name));
    }
    vec_each(&m->memo->wants, struct wants_entry *, e) {
        const struct requirements *set = &(*e)->wants.set;
        for (uint32_t i = 0; i < set->count; i++) {
            if (!str_eq(set->items[i].key, STR(LABEL_HOSTNAME)))
                vec_push(&keys, set->items[i].key);
        }
        if (keys.count > 1000) /* wants repeat each other */
            keys.count = str_sort_unique(keys.items, keys.count);
    }
    uint32_t count = keys.count ? (uint32_t)str_sort_unique(keys.items, keys.count) : 0;
    struct str *kept = arena_array(m->arena, struct str, count);
    for (uint32_t i = 0; i < count; i++)
        kept[i] = keys.items[i];
    vec_done(&keys);
    return (struct str_list){ kept, count };
}

static void shape_encode(const struct model_memo *memo, const struct requirements *labels,
                         struct buf *out)
{
    for (uint32_t k = 0; k < memo->shape_keys.count; k++) {
        const struct requirement *label = requirements_find(labels, memo->shape_keys.items[k]);
        buf_addc(out, label ? '1' : '0');
        if (label)
            requirement_encode(label, out);
    }
}

void home_shapes_settle(struct model *m, struct home *homes, const struct requirements *labels)
{
    struct model_memo *memo = m->memo;
    uint32_t *shape_home = arena_array(m->arena, uint32_t, m->home_count);
    struct str_table shapes = { 0 };

    memo->home_labels = labels;
    memo->shape_keys = asked_keys(m);
    memo->shape_home = shape_home;
    for (uint32_t i = 0; i < m->home_count; i++) {
        buf_clear(&memo->text);
        shape_encode(memo, &labels[i], &memo->text);
        uintptr_t shape = (uintptr_t)str_table_get(&shapes, buf_str(&memo->text));
        if (!shape) {
            shape_home[m->shape_count] = i;
            shape = ++m->shape_count;
            str_table_put(&shapes, buf_str(&memo->text), (void *)shape);
        }
        homes[i].shape = (uint32_t)(shape - 1);
    }
    vec_each(&memo->wants, struct wants_entry *, e)
        (*e)->by_home = asked_by_home(memo, &(*e)->wants.set);
    str_table_done(&shapes);
}

/* --- life --- */

void wants_init(struct model *m)
{
    pair_init(&m->memo->pins);
}

void wants_done(struct model *m)
{
    vec_done(&m->memo->wants);
    str_table_done(&m->memo->wants_ids);
    free(m->memo->pins.slots);
}
