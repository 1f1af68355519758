/* Which pods a topology term finds.
 *
 * Label keys to match (and not to match) are filled in from the pod that has the term, and what is
 * left is a list of expressions and a list of namespaces. A namespace selector is asked only about
 * namespaces that pods are in.
 */
#include "sched/model_groups.h"
#include "sched/model_memo.h"

/* --- namespaces --- */

static uint32_t namespace_find(const struct namespaces *ns, struct str name)
{
    uint32_t low = 0, high = ns->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(ns->names[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < ns->count && str_eq(ns->names[low], name) ? low : NONE;
}

void namespaces_collect(struct compile *c, struct namespaces *ns)
{
    uint32_t sort_count = (uint32_t)c->sorts.count;
    uint32_t *of_sort = arena_array(&c->scratch, uint32_t, sort_count);
    *ns = (struct namespaces){ .names = arena_array(&c->scratch, struct str, sort_count),
                               .of_sort = of_sort };
    struct str_table seen = { 0 };
    for (uint32_t i = 0; i < sort_count; i++) {
        struct str name = c->sorts.items[i].pod->object.meta.namespace_;
        if (str_table_has(&seen, name))
            continue;
        str_table_put(&seen, name, ns);
        ns->names[ns->count++] = name;
    }
    str_table_done(&seen);
    str_sort_unique(ns->names, ns->count);
    for (uint32_t i = 0; i < sort_count; i++)
        of_sort[i] = namespace_find(ns, c->sorts.items[i].pod->object.meta.namespace_);
}

/* The API server labels every namespace with its name; a manifest need not say so, and the namespace
 * itself need not be among the manifests. */
static struct str_map named_labels(struct compile *c, const struct str_map *labels, struct str name)
{
    struct str_pair *items = arena_array(&c->scratch, struct str_pair, labels->count + 1);
    struct str key = STR("kubernetes.io/metadata.name");
    uint32_t count = 0;
    for (uint32_t i = 0; i < labels->count; i++) {
        if (!str_eq(labels->items[i].key, key))
            items[count++] = labels->items[i];
    }
    items[count++] = (struct str_pair){ key, name };
    qsort(items, count, sizeof *items, str_pair_order);
    return (struct str_map){ items, count };
}

static void namespaces_label(struct compile *c, struct namespaces *ns)
{
    const struct snapshot *snap = c->m->snap;
    struct str_map *all = arena_array(&c->scratch, struct str_map, ns->count);
    for (uint32_t i = 0; i < snap->namespace_count; i++) {
        const struct meta *meta = &snap->namespaces[i]->object.meta;
        uint32_t at = namespace_find(ns, meta->name);
        if (at != NONE)
            all[at] = meta->labels;
    }
    for (uint32_t i = 0; i < ns->count; i++)
        all[i] = named_labels(c, &all[i], ns->names[i]);
    ns->maybe_labels = all;
}

static void find_in_selected(struct compile *c, struct namespaces *ns,
                             const struct pod_affinity_term *term, struct pod_finder *f)
{
    const struct label_selector *selector = term->maybe_namespace_selector;
    size_t room = (size_t)term->namespaces.count + (selector ? ns->count : 0);
    uint32_t *found = arena_array(&c->scratch, uint32_t, room), count = 0;
    for (uint32_t i = 0; i < term->namespaces.count; i++) {
        uint32_t at = namespace_find(ns, term->namespaces.items[i]);
        if (at != NONE)
            found[count++] = at;
    }
    if (selector && !ns->maybe_labels)
        namespaces_label(c, ns);
    for (uint32_t i = 0; i < ns->count && selector; i++) {
        if (label_selector_matches(selector, &ns->maybe_labels[i]))
            found[count++] = i;
    }
    f->namespaces = found;
    f->namespace_count = numbers_sort_unique(found, count);
}

/* --- selectors --- */

static void add_expression(struct expression *items, uint32_t *count, struct str key,
                           enum requirement_op op, const struct str *value)
{
    items[(*count)++] =
        (struct expression){ .key = key, .op = (uint8_t)op, .values = { value, 1 } };
}

/* The labels of the owner that are to match, and those that are not. A key that the owner does not
 * have says nothing. */
static void add_own_labels(const struct str_map *labels, const struct str_list *keys,
                           enum requirement_op op, struct expression *items, uint32_t *count)
{
    for (uint32_t k = 0; k < keys->count; k++) {
        for (uint32_t i = 0; i < labels->count; i++) {
            if (str_eq(labels->items[i].key, keys->items[k]))
                add_expression(items, count, keys->items[k], op, &labels->items[i].value);
        }
    }
}

static void finder_select(struct compile *c, struct pod_finder *f,
                          const struct label_selector *maybe_selector,
                          const struct str_map *own_labels, const struct str_list *match,
                          const struct str_list *mismatch)
{
    f->nothing = !maybe_selector;
    if (f->nothing)
        return;
    const struct str_map *labels = &maybe_selector->match_labels;
    size_t room =
        (size_t)labels->count + maybe_selector->expressions.count + match->count + mismatch->count;
    struct expression *items = arena_array(&c->scratch, struct expression, room);
    uint32_t count = 0;
    for (uint32_t i = 0; i < labels->count; i++)
        add_expression(items, &count, labels->items[i].key, OP_IN, &labels->items[i].value);
    for (uint32_t i = 0; i < maybe_selector->expressions.count; i++)
        items[count++] = maybe_selector->expressions.items[i];
    add_own_labels(own_labels, match, OP_IN, items, &count);
    add_own_labels(own_labels, mismatch, OP_NOT_IN, items, &count);
    f->selector.expressions.items = items;
    f->selector.expressions.count = count;
}

static const struct str_map *labels_of(const struct compile *c, uint32_t sort)
{
    return &c->sorts.items[sort].pod->object.meta.labels;
}

struct pod_finder spread_finder(struct compile *c, const struct namespaces *ns, uint32_t sort,
                                const struct spread_constraint *term)
{
    struct pod_finder f = { .namespaces = &ns->of_sort[sort], .namespace_count = 1 };
    finder_select(c, &f, term->maybe_selector, labels_of(c, sort), &term->match_label_keys,
                  &(struct str_list){ 0 });
    return f;
}

struct pod_finder affinity_finder(struct compile *c, struct namespaces *ns, uint32_t sort,
                                  const struct pod_affinity_term *term)
{
    const struct label_selector *of_namespaces = term->maybe_namespace_selector;
    struct pod_finder f = { 0 };
    if (of_namespaces && !of_namespaces->match_labels.count && !of_namespaces->expressions.count) {
        f.everywhere = true;
    } else if (of_namespaces || term->namespaces.count) {
        find_in_selected(c, ns, term, &f);
    } else {
        f.namespaces = &ns->of_sort[sort];
        f.namespace_count = 1;
    }
    finder_select(c, &f, term->maybe_selector, labels_of(c, sort), &term->match_label_keys,
                  &term->mismatch_label_keys);
    return f;
}

void finder_encode(const struct pod_finder *f, struct buf *out)
{
    u32_encode(f->nothing, out);
    u32_encode(f->everywhere, out);
    u32_encode(f->namespace_count, out);
    for (uint32_t i = 0; i < f->namespace_count; i++)
        u32_encode(f->namespaces[i], out);
    u32_encode(f->selector.expressions.count, out);
    for (uint32_t i = 0; i < f->selector.expressions.count; i++) {
        const struct expression *e = &f->selector.expressions.items[i];
        str_encode(e->key, out);
        u32_encode(e->op, out);
        u32_encode(e->values.count, out);
        for (uint32_t v = 0; v < e->values.count; v++)
            str_encode(e->values.items[v], out);
    }
}

/* --- matching --- */

bool finders_find(const struct pod_finder *finders, uint32_t count, uint32_t namespace_,
                  const struct str_map *labels)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct pod_finder *f = &finders[i];
        bool there = f->everywhere;
        for (uint32_t n = 0; n < f->namespace_count && !there; n++)
            there = f->namespaces[n] == namespace_;
        if (!there || f->nothing || !label_selector_matches(&f->selector, labels))
            return false;
    }
    return true;
}

static uint64_t label_hash(struct str key, struct str value)
{
    return kv_hash_salted(value.p, value.len, kv_hash(key.p, key.len));
}

static uint32_t cell_count(const struct match_index *ix, const struct expression *e)
{
    uint32_t count = 0;
    for (uint32_t v = 0; v < e->values.count; v++) {
        uintptr_t cell = 0;
        map_get(&ix->filed, label_hash(e->key, e->values.items[v]), &cell);
        for (; cell; cell = ix->cells.items[cell - 1].next)
            count++;
    }
    return count + e->values.count;
}

/* Under the label that the fewest others are filed under: one that every pod has (env=prod) would
 * tell nothing apart. */
void match_file(struct match_index *ix, uint32_t group, const struct pod_finder *finders,
                uint32_t finder_count)
{
    const struct expression *best = NULL;
    uint32_t best_count = UINT32_MAX;
    for (uint32_t f = 0; f < finder_count; f++) {
        if (finders[f].nothing)
            return; /* never found */
        for (uint32_t i = 0; i < finders[f].selector.expressions.count; i++) {
            const struct expression *e = &finders[f].selector.expressions.items[i];
            uint32_t count = e->op == OP_IN ? cell_count(ix, e) : UINT32_MAX;
            if (count < best_count) {
                best = e;
                best_count = count;
            }
        }
    }
    if (!best)
        vec_push(&ix->unfiled, group);
    for (uint32_t v = 0; best && v < best->values.count; v++) {
        uint64_t hash = label_hash(best->key, best->values.items[v]);
        uintptr_t first = 0;
        map_get(&ix->filed, hash, &first);
        vec_push(&ix->cells, (struct match_cell){ group, (uint32_t)first });
        map_put(&ix->filed, hash, ix->cells.count);
    }
}

void match_candidates(const struct match_index *ix, const struct str_map *labels,
                      void (*found)(void *ctx, uint32_t group), void *ctx)
{
    for (uint32_t i = 0; i < labels->count; i++) {
        uintptr_t cell = 0;
        map_get(&ix->filed, label_hash(labels->items[i].key, labels->items[i].value), &cell);
        for (; cell; cell = ix->cells.items[cell - 1].next)
            found(ctx, ix->cells.items[cell - 1].group);
    }
    for (size_t i = 0; i < ix->unfiled.count; i++)
        found(ctx, ix->unfiled.items[i]);
}

void match_done(struct match_index *ix)
{
    map_done(&ix->filed);
    vec_done(&ix->cells);
    vec_done(&ix->unfiled);
}
