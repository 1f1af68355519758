/* What topology terms say: over which label, which pods they find, which nodes they count. Everything
 * is laid out here before the first pod is placed: all nodes of the plan are there from the start,
 * so domains do not change.
 */
#include "sched/check_terms.h"

/* --- namespaces and selectors --- */

static const struct str_map *namespace_labels(struct topology *t, struct str name)
{
    const struct str_map *known = str_table_get(&t->namespaces, name);
    if (known)
        return known;
    /* Every namespace has its name as a label; of one that is not among the objects nothing else
     * is known. */
    const struct str_map none = { 0 }, *given = &none;
    for (uint32_t i = 0; i < t->c->snap->namespace_count; i++) {
        if (str_eq(t->c->snap->namespaces[i]->object.meta.name, name))
            given = &t->c->snap->namespaces[i]->object.meta.labels;
    }
    struct str key = STR("kubernetes.io/metadata.name");
    struct str_map *labels = arena_new(&t->c->scratch, struct str_map);
    struct str_pair *items = arena_array(&t->c->scratch, struct str_pair, (size_t)given->count + 1);
    for (uint32_t i = 0; i < given->count; i++) {
        if (!str_eq(given->items[i].key, key))
            items[labels->count++] = given->items[i];
    }
    items[labels->count++] = (struct str_pair){ .key = key, .value = name };
    qsort(items, labels->count, sizeof *items, str_pair_order);
    labels->items = items;
    str_table_put(&t->namespaces, name, labels);
    return labels;
}

static bool finder_finds(struct topology *t, const struct finder *f, const struct pod *pod)
{
    struct str name = pod->object.meta.namespace_;
    bool in = f->maybe_namespaces &&
              label_selector_matches(f->maybe_namespaces, namespace_labels(t, name));
    for (uint32_t i = 0; i < f->namespaces.count && !in; i++)
        in = str_eq(f->namespaces.items[i], name);
    return in && label_selector_matches(f->maybe_selector, &pod->object.meta.labels);
}

static bool term_finds(struct topology *t, const struct term *term, const struct pod *pod)
{
    for (uint32_t i = 0; i < term->finder_count; i++) {
        if (!finder_finds(t, &term->finders[i], pod))
            return false;
    }
    return true;
}

/* The selector, and for each of the keys that the pod has as a label: the same value, or another
 * than it. */
static const struct label_selector *selector_with(struct topology *t,
                                                  const struct label_selector *maybe_selector,
                                                  struct str_list same, struct str_list other,
                                                  const struct pod *pod)
{
    if (!maybe_selector || same.count + other.count == 0)
        return maybe_selector;
    uint32_t own = maybe_selector->expressions.count, count = 0;
    struct label_selector *merged = arena_new(&t->c->scratch, struct label_selector);
    struct expression *items =
        arena_array(&t->c->scratch, struct expression, (size_t)own + same.count + other.count);
    for (uint32_t i = 0; i < own; i++)
        items[count++] = maybe_selector->expressions.items[i];
    for (uint32_t i = 0; i < same.count + other.count; i++) {
        bool is_same = i < same.count;
        struct str key = is_same ? same.items[i] : other.items[i - same.count];
        struct str *value = arena_new(&t->c->scratch, struct str);
        *value = str_map_get(&pod->object.meta.labels, key);
        if (value->p)
            items[count++] = (struct expression){ .key = key,
                                                  .op = is_same ? OP_IN : OP_NOT_IN,
                                                  .values = { value, 1 } };
    }
    merged->match_labels = maybe_selector->match_labels;
    merged->expressions.items = items;
    merged->expressions.count = count;
    return merged;
}

static struct finder finder_of(struct topology *t, const struct pod_affinity_term *from,
                               const struct pod *pod)
{
    struct finder f = { .namespaces = from->namespaces,
                        .maybe_namespaces = from->maybe_namespace_selector };
    if (!f.namespaces.count && !f.maybe_namespaces)
        f.namespaces = (struct str_list){ &pod->object.meta.namespace_, 1 };
    f.maybe_selector = selector_with(t, from->maybe_selector, from->match_label_keys,
                                     from->mismatch_label_keys, pod);
    return f;
}

/* --- equal terms are one --- */

static void id_add_selector(struct buf *id, const struct label_selector *maybe)
{
    if (!maybe) {
        buf_addc(id, '-');
        return;
    }
    buf_addc(id, '{');
    id_add_map(id, &maybe->match_labels);
    buf_addc(id, '|');
    id_add_expressions(id, maybe->expressions.items, maybe->expressions.count);
    buf_addc(id, '}');
}

static uint32_t term_add(struct topology *t, const struct term *term)
{
    AUTO_BUF id = { 0 };
    buf_addf(&id, "%d %ld %ld %u %p", term->kind, (long)term->max_skew, (long)term->min_domains,
             term->maybe_ask, (const void *)term->maybe_tolerant);
    for (uint32_t i = 0; i < term->key_count; i++)
        buf_addf(&id, " %u", term->keys[i]);
    for (uint32_t i = 0; i < term->hard_key_count; i++)
        buf_addf(&id, " +%u", term->hard_keys[i]);
    for (uint32_t i = 0; i < term->finder_count; i++) {
        const struct finder *f = &term->finders[i];
        buf_addc(&id, '/');
        for (uint32_t k = 0; k < f->namespaces.count; k++)
            id_add_text(&id, f->namespaces.items[k]);
        id_add_selector(&id, f->maybe_namespaces);
        id_add_selector(&id, f->maybe_selector);
    }
    uintptr_t known = (uintptr_t)str_table_get(&t->term_ids, buf_str(&id));
    if (!known) {
        vec_push(&t->terms, *term);
        known = t->terms.count;
        str_table_put(&t->term_ids, buf_str(&id), (void *)known);
    }
    return (uint32_t)(known - 1);
}

static uint32_t key_add(struct topology *t, struct str name)
{
    for (uint32_t i = 0; i < t->keys.count; i++) {
        if (str_eq(t->keys.items[i].name, name))
            return i;
    }
    vec_push(&t->keys, (struct topology_key){ .name = name });
    return (uint32_t)t->keys.count - 1;
}

/* --- the terms of a stamp --- */

static bool is_hard(const struct spread_constraint *s)
{
    return s->when_unsatisfiable != UNSATISFIABLE_ANYWAY;
}

static uint32_t spread_add(struct topology *t, const struct stamp *stamp,
                           const struct spread_constraint *s, const uint32_t *hard_keys,
                           uint32_t hard_key_count)
{
    uint32_t *key = arena_new(&t->c->scratch, uint32_t);
    struct finder *f = arena_new(&t->c->scratch, struct finder);
    *key = key_add(t, s->topology_key);
    f->namespaces = (struct str_list){ &stamp->pod->object.meta.namespace_, 1 };
    f->maybe_selector = selector_with(t, s->maybe_selector, s->match_label_keys,
                                      (struct str_list){ 0 }, stamp->pod);
    const struct label_selector *sel = f->maybe_selector;
    struct term term = {
        .kind = TERM_SPREAD,
        .keys = key,
        .key_count = 1,
        .finders = f,
        .finder_count = 1,
        .max_skew = s->max_skew,
        .min_domains = s->min_domains.set ? s->min_domains.value : 0,
        .counts_none = sel && !sel->match_labels.count && !sel->expressions.count,
        .maybe_ask = s->node_affinity_policy == INCLUSION_IGNORE ? PLAN_NONE : stamp->ask,
        .maybe_tolerant = s->node_taints_policy == INCLUSION_HONOR ? stamp->pod->spec : NULL,
        .hard_keys = hard_keys,
        .hard_key_count = hard_key_count,
    };
    return term_add(t, &term);
}

static uint32_t spreads_add(struct topology *t, const struct stamp *stamp, uint32_t *owned)
{
    const struct pod_spec *spec = stamp->pod->spec;
    uint32_t *hard_keys = arena_array(&t->c->scratch, uint32_t, spec->spread.count);
    uint32_t count = 0, n = 0;
    for (uint32_t i = 0; i < spec->spread.count; i++) {
        if (is_hard(&spec->spread.items[i]))
            hard_keys[count++] = key_add(t, spec->spread.items[i].topology_key);
    }
    for (uint32_t i = 0; i < spec->spread.count; i++) {
        if (is_hard(&spec->spread.items[i]))
            owned[n++] = spread_add(t, stamp, &spec->spread.items[i], hard_keys, count);
    }
    return n;
}

/* kube-scheduler takes all required affinity terms together: a pod counts if all of them find it. */
static uint32_t affinity_add(struct topology *t, const struct pod_affinity_term *from,
                             uint32_t count, enum term_kind kind, const struct pod *pod)
{
    uint32_t *keys = arena_array(&t->c->scratch, uint32_t, count);
    struct finder *finders = arena_array(&t->c->scratch, struct finder, count);
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = key_add(t, from[i].topology_key);
        finders[i] = finder_of(t, &from[i], pod);
    }
    struct term term = { .kind = kind,
                         .keys = keys,
                         .key_count = count,
                         .finders = finders,
                         .finder_count = count,
                         .maybe_ask = PLAN_NONE };
    return term_add(t, &term);
}

/* Of pods that are on their nodes only the anti-affinity matters any more. */
static void stamp_own(struct topology *t, uint32_t i, bool placed)
{
    const struct stamp *stamp = &t->c->stamps.items[i];
    const struct affinity *affinity = stamp->pod->maybe_affinity;
    const struct pod_affinity *anti = affinity ? &affinity->anti : NULL;
    size_t most = (size_t)stamp->pod->spec->spread.count + 1 + (anti ? anti->required.count : 0);
    uint32_t *owned = arena_array(&t->c->scratch, uint32_t, most);
    uint32_t n = 0;
    if (placed)
        n = spreads_add(t, stamp, owned);
    if (placed && affinity && affinity->pod.required.count)
        owned[n++] = affinity_add(t, affinity->pod.required.items, affinity->pod.required.count,
                                  TERM_AFFINITY, stamp->pod);
    for (uint32_t k = 0; anti && k < anti->required.count; k++)
        owned[n++] = affinity_add(t, &anti->required.items[k], 1, TERM_ANTI, stamp->pod);
    t->of_stamp[i].owned = owned;
    t->of_stamp[i].owned_count = n;
}

static void stamp_match(struct topology *t, uint32_t i)
{
    uint32_t *matched = arena_array(&t->c->scratch, uint32_t, t->terms.count);
    uint32_t n = 0;
    for (uint32_t k = 0; k < t->terms.count; k++) {
        if (term_finds(t, &t->terms.items[k], t->c->stamps.items[i].pod))
            matched[n++] = k;
    }
    t->of_stamp[i].matched = matched;
    t->of_stamp[i].matched_count = n;
}

/* --- domains --- */

static uint32_t domain_add(struct topology_key *key, struct str value)
{
    uintptr_t known = (uintptr_t)str_table_get(&key->ids, value);
    if (!known) {
        vec_push(&key->values, value);
        known = key->values.count;
        str_table_put(&key->ids, value, (void *)known);
    }
    return (uint32_t)(known - 1);
}

static void key_sites(struct topology *t, struct topology_key *key)
{
    struct checker *c = t->c;
    struct domains *at = arena_array(&c->scratch, struct domains, c->site_count);
    for (uint32_t i = 0; i < c->site_count; i++) {
        struct label_values label = site_label(c, &c->sites[i], key->name);
        uint32_t *ids = arena_array(&c->scratch, uint32_t, label.count);
        for (uint32_t v = 0; v < label.count; v++)
            ids[v] = domain_add(key, label.items[v]);
        at[i] = (struct domains){ ids, label.count, label.missing, label.open };
    }
    key->at = at;
}

static enum verdict site_counts(struct topology *t, const struct term *term, uint32_t site)
{
    const struct site *p = &t->c->sites[site];
    enum verdict v = term->maybe_ask == PLAN_NONE ? ALWAYS : ask_verdict(t->c, term->maybe_ask, p);
    for (uint32_t i = 0; i < term->hard_key_count; i++) {
        const struct domains *d = &t->keys.items[term->hard_keys[i]].at[site];
        if (!d->count && !d->open)
            return NEVER;
        if (d->missing && v == ALWAYS)
            v = SOMETIMES;
    }
    const struct pod_spec *spec = term->maybe_tolerant;
    if (spec && taint_in_the_way(p->taints, p->taint_count, spec->tolerations.items,
                                 spec->tolerations.count))
        return NEVER;
    return v;
}

/* May the site count for the spread in that domain? A node that may be in several zones is a node of
 * the one that it is in, and the pod may not want that one. */
bool spread_counts_in(struct topology *t, const struct term *term, enum verdict counted,
                      uint32_t site, uint32_t domain)
{
    const struct topology_key *key = &t->keys.items[term->keys[0]];
    if (counted != SOMETIMES || term->maybe_ask == PLAN_NONE || domains_known(&key->at[site]))
        return counted != NEVER;
    return ask_verdict_where(t->c, term->maybe_ask, &t->c->sites[site], key->name,
                             key->values.items[domain]) != NEVER;
}

/* --- laying out --- */

static void spread_layout(struct topology *t, struct term *term)
{
    struct checker *c = t->c;
    const struct topology_key *key = &t->keys.items[term->keys[0]];
    uint8_t *counted = arena_array(&c->scratch, uint8_t, c->site_count);
    bool *must = arena_array(&c->scratch, bool, key->values.count);
    for (uint32_t i = 0; i < c->site_count; i++) {
        const struct domains *d = &key->at[i];
        enum verdict v = site_counts(t, term, i);
        counted[i] = (uint8_t)v;
        if (v == ALWAYS && domains_known(d))
            must[d->ids[0]] = true;
    }
    term->counted = counted;
    term->must = must;
    term->on_site = arena_array(&c->scratch, uint32_t, c->site_count);
}

static void term_layout(struct topology *t, struct term *term)
{
    struct arena *a = &t->c->scratch;
    term->high = arena_array(a, uint32_t *, term->key_count);
    term->low = arena_array(a, uint32_t *, term->key_count);
    for (uint32_t i = 0; i < term->key_count; i++) {
        size_t domains = t->keys.items[term->keys[i]].values.count;
        term->high[i] = arena_array(a, uint32_t, domains);
        term->low[i] = arena_array(a, uint32_t, domains);
    }
    if (term->kind == TERM_ANTI)
        term->owners = arena_array(a, uint32_t, t->keys.items[term->keys[0]].values.count);
    if (term->kind == TERM_SPREAD)
        spread_layout(t, term);
}

void topology_init(struct topology *t, struct checker *c)
{
    *t = (struct topology){ .c = c };
    uint32_t stamp_count = (uint32_t)c->stamps.count;
    t->of_stamp = arena_array(&c->scratch, struct stamp_terms, stamp_count);
    t->present = arena_array(&c->scratch, uint8_t, c->snap->pod_count);
    bool *placed = arena_array(&c->scratch, bool, stamp_count);
    for (uint32_t i = 0; i < c->snap->pod_count; i++) {
        if (c->site_of[i] != PLAN_NONE)
            placed[c->stamp_of[i]] = true;
    }
    for (uint32_t i = 0; i < stamp_count; i++)
        stamp_own(t, i, placed[i]);
    for (uint32_t i = 0; i < stamp_count; i++)
        stamp_match(t, i);
    vec_each(&t->keys, struct topology_key, key)
        key_sites(t, key);
    vec_each(&t->terms, struct term, term)
        term_layout(t, term);
}

void topology_done(struct topology *t)
{
    vec_each(&t->keys, struct topology_key, key) {
        str_table_done(&key->ids);
        vec_done(&key->values);
    }
    vec_done(&t->keys);
    vec_done(&t->terms);
    str_table_done(&t->term_ids);
    str_table_done(&t->namespaces);
}
