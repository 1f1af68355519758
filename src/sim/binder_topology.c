/* Topology: what pods ask of other pods, counted as they come and go.
 *
 * A term counts the pods that it finds, per domain (a zone, a host); an anti-affinity also those that
 * have it. Terms that say the same are one. Each count changes with three things only: a pod comes to a
 * node or leaves it (terms_count), a node gets other labels or taints (it leaves and joins with all its
 * pods), a term or a tag is new. Judging a pod is then a look at its own terms and at those that find it:
 *
 *  1. Spread (DoNotSchedule): the pods found in the domain, itself included, less those in the domain
 *     with the fewest, are at most maxSkew; the fewest is 0 with fewer domains than minDomains. Only
 *     nodes that count have domains and pods. Pods that are being deleted do not count.
 *  2. Affinity: a pod that all terms find is in the domain of every term; or there is none anywhere and
 *     the pod itself is such a pod.
 *  3. Anti-affinity: no pod that a term finds is in the domain; and no pod is there that has a term
 *     which finds this one.
 */
#include "sim/binder_impl.h"

/* --- domains --- */

static struct topology_key *key_of(struct binder *b, struct str name)
{
    vec_each(&b->keys, struct topology_key *, it) {
        if (str_eq((*it)->name, name))
            return *it;
    }
    struct topology_key *key = kv_calloc(1, sizeof *key);
    key->name = (struct str){ str_dup(name), name.len };
    vec_push(&b->keys, key);
    return key;
}

static uint32_t domain_of_value(struct topology_key *key, struct str value)
{
    uintptr_t known = (uintptr_t)str_table_get(&key->ids, value);
    if (!known) {
        known = key->values.count + 1;
        str_table_put(&key->ids, value, (void *)known);
        vec_push(&key->values, str_table_slot(&key->ids, value)->key);
    }
    return (uint32_t)known;
}

static void key_set_node(struct topology_key *key, uint32_t at, const struct node *maybe_node)
{
    struct str value = maybe_node ? node_label(maybe_node, key->name) : STR_NONE;
    while (key->node_domain.count <= at)
        vec_push(&key->node_domain, 0);
    key->node_domain.items[at] = value.p ? domain_of_value(key, value) : 0;
}

/* 1 + the domain, or 0. */
static uint32_t domain_at(const struct topology_key *key, uint32_t at)
{
    return at < key->node_domain.count ? key->node_domain.items[at] : 0;
}

static struct topology_key *key_with_nodes(struct binder *b, struct str name)
{
    size_t before = b->keys.count;
    struct topology_key *key = key_of(b, name);
    for (uint32_t i = 0; b->keys.count > before && i < b->sites.count; i++) {
        if (b->sites.items[i])
            key_set_node(key, i, b->sites.items[i]->maybe_node);
    }
    return key;
}

static uint32_t *count_at(counts *c, uint32_t domain) /* 1 + the id */
{
    while (c->count < domain)
        vec_push(c, 0);
    return &c->items[domain - 1];
}

static uint32_t count_in(const counts *c, uint32_t domain)
{
    return domain && domain <= c->count ? c->items[domain - 1] : 0;
}

/* --- who is found --- */

static bool namespace_matches(struct binder *b, const struct label_selector *selector,
                              struct str name)
{
    AUTO_OBJECT object = informer_get(b->informers[BINDER_NAMESPACES], STR(""), name);
    const struct str_map none = { 0 }, *given = object ? &object->meta.labels : &none;
    struct str key = STR("kubernetes.io/metadata.name");
    struct str_pair *items = kv_calloc((size_t)given->count + 1, sizeof *items);
    struct str_map labels = { items, 0 };
    for (uint32_t i = 0; i < given->count; i++) {
        if (!str_eq(given->items[i].key, key))
            items[labels.count++] = given->items[i];
    }
    items[labels.count++] = (struct str_pair){ .key = key, .value = name };
    qsort(items, labels.count, sizeof *items, str_pair_order);
    bool matches = label_selector_matches(selector, &labels);
    free(items);
    return matches;
}

static bool term_finds(struct binder *b, const struct term *term, const struct pod *pod)
{
    struct str name = pod->object.meta.namespace_;
    for (uint32_t i = 0; i < term->finder_count; i++) {
        const struct finder *f = &term->finders[i];
        if (!label_selector_matches(f->maybe_selector, &pod->object.meta.labels))
            return false;
        bool in = false;
        for (uint32_t k = 0; k < f->namespaces.count && !in; k++)
            in = str_eq(f->namespaces.items[k], name);
        if (!in && !(f->maybe_namespaces && namespace_matches(b, f->maybe_namespaces, name)))
            return false;
    }
    return true;
}

static bool tag_has(const struct tag *tag, const struct term *term)
{
    vec_each(&tag->matched, struct term *, it) {
        if (*it == term)
            return true;
    }
    return false;
}

void tag_match(struct binder *b, struct tag *tag)
{
    vec_clear(&tag->matched);
    str_table_each(&b->terms, slot) {
        if (term_finds(b, slot->value, tag->pod))
            vec_push(&tag->matched, slot->value);
    }
}

/* --- counting --- */

static void term_count(struct term *term, uint32_t at, int64_t live, int64_t ending)
{
    bool spread = term->kind == TERM_SPREAD, labelled = false;
    if (spread && (term->counts_none || at >= term->counted.count || !term->counted.items[at]))
        return;
    int64_t by = spread ? live : live + ending;
    for (uint32_t i = 0; by && i < term->key_count; i++) {
        uint32_t domain = domain_at(term->keys[i], at);
        if (!domain)
            continue;
        uint32_t *count = count_at(&term->found[i], domain);
        *count = (uint32_t)((int64_t)*count + by);
        labelled = true;
    }
    if (labelled)
        term->total = (uint64_t)((int64_t)term->total + by);
}

static void term_hold(struct term *term, uint32_t at, int64_t by)
{
    uint32_t domain = term->kind == TERM_ANTI ? domain_at(term->keys[0], at) : 0;
    if (!domain)
        return;
    uint32_t *count = count_at(&term->held, domain);
    *count = (uint32_t)((int64_t)*count + by);
    term->held_total = (uint64_t)((int64_t)term->held_total + by);
}

void terms_count(struct binder *b, uint32_t at, const struct class *class, bool ending, int by)
{
    if (!b->sites.items[at]->maybe_node)
        return;
    vec_each(&class->tag->matched, struct term *, term)
        term_count(*term, at, ending ? 0 : by, ending ? by : 0);
    vec_each(&class->terms, struct term *, term)
        term_hold(*term, at, by);
}

static void count_residents(const struct site *site, uint32_t at, int64_t sign)
{
    vec_each(&site->residents, struct resident, r) {
        vec_each(&r->class->tag->matched, struct term *, term)
            term_count(*term, at, sign * r->live, sign * r->ending);
        vec_each(&r->class->terms, struct term *, term)
            term_hold(*term, at, sign * ((int64_t)r->live + r->ending));
    }
}

/* --- nodes --- */

static bool node_counts(const struct term *term, const struct node *node, uint32_t at)
{
    const struct pod *pod = term->pod;
    for (uint32_t i = 0; i < term->hard_key_count; i++) {
        if (!domain_at(term->hard_keys[i], at))
            return false;
    }
    if (term->by_affinity && !node_matches_pod(node, pod->spec, pod->maybe_affinity))
        return false;
    return !term->by_taints ||
           !node_taint_in_the_way(node, EFFECTS_THAT_REPEL, pod->spec->tolerations.items,
                                  pod->spec->tolerations.count);
}

static void term_set_counted(struct term *term, uint32_t at, bool counted)
{
    while (term->counted.count <= at)
        vec_push(&term->counted, false);
    if (term->counted.items[at] == counted)
        return;
    term->counted.items[at] = counted;
    uint32_t *nodes = count_at(&term->counted_nodes, domain_at(term->keys[0], at));
    *nodes = counted ? *nodes + 1 : *nodes - 1;
}

void terms_node_leaves(struct binder *b, uint32_t at)
{
    count_residents(b->sites.items[at], at, -1);
    str_table_each(&b->terms, slot) {
        struct term *term = slot->value;
        if (term->kind == TERM_SPREAD)
            term_set_counted(term, at, false);
    }
    vec_each(&b->keys, struct topology_key *, key)
        key_set_node(*key, at, NULL);
}

void terms_node_joins(struct binder *b, uint32_t at)
{
    const struct node *node = b->sites.items[at]->maybe_node;
    vec_each(&b->keys, struct topology_key *, key)
        key_set_node(*key, at, node);
    str_table_each(&b->terms, slot) {
        struct term *term = slot->value;
        if (term->kind == TERM_SPREAD)
            term_set_counted(term, at, node_counts(term, node, at));
    }
    count_residents(b->sites.items[at], at, 1);
}

/* A term that is new counts what is there. `owner` had no term yet that anybody counted. */
static void term_count_all(struct binder *b, struct term *term)
{
    for (uint32_t at = 0; at < b->sites.count; at++) {
        const struct site *site = b->sites.items[at];
        if (!site || !site->maybe_node)
            continue;
        if (term->kind == TERM_SPREAD)
            term_set_counted(term, at, node_counts(term, site->maybe_node, at));
        vec_each(&site->residents, struct resident, r) {
            if (tag_has(r->class->tag, term))
                term_count(term, at, r->live, r->ending);
        }
    }
}

void terms_rematch(struct binder *b)
{
    for (uint32_t at = 0; at < b->sites.count; at++) {
        if (b->sites.items[at] && b->sites.items[at]->maybe_node)
            count_residents(b->sites.items[at], at, -1);
    }
    str_table_each(&b->tags, slot)
        tag_match(b, slot->value);
    for (uint32_t at = 0; at < b->sites.count; at++) {
        if (b->sites.items[at] && b->sites.items[at]->maybe_node)
            count_residents(b->sites.items[at], at, 1);
    }
}

/* --- what a term says --- */

static void id_text(struct buf *id, struct str s)
{
    buf_addf(id, "%zu:", s.len);
    buf_add(id, s);
}

static void id_selector(struct buf *id, const struct label_selector *maybe)
{
    buf_addc(id, maybe ? '{' : '-');
    for (uint32_t i = 0; maybe && i < maybe->match_labels.count; i++) {
        id_text(id, maybe->match_labels.items[i].key);
        id_text(id, maybe->match_labels.items[i].value);
    }
    for (uint32_t i = 0; maybe && i < maybe->expressions.count; i++) {
        const struct expression *e = &maybe->expressions.items[i];
        buf_addf(id, "(%d", e->op);
        id_text(id, e->key);
        for (uint32_t k = 0; k < e->values.count; k++)
            id_text(id, e->values.items[k]);
    }
}

static void term_id(const struct term *term, struct buf *id)
{
    buf_addf(id, "%d %lld %lld %d%d ", (int)term->kind, (long long)term->max_skew,
             (long long)term->min_domains, term->by_affinity, term->by_taints);
    if (term->by_affinity || term->by_taints) {
        const void *of[] = { term->pod->spec, term->pod->maybe_affinity };
        buf_add(id, (struct str){ (const char *)of, sizeof of });
    }
    for (uint32_t i = 0; i < term->key_count; i++)
        id_text(id, term->keys[i]->name);
    for (uint32_t i = 0; i < term->hard_key_count; i++)
        id_text(id, term->hard_keys[i]->name);
    for (uint32_t i = 0; i < term->finder_count; i++) {
        const struct finder *f = &term->finders[i];
        buf_addc(id, '/');
        for (uint32_t k = 0; k < f->namespaces.count; k++)
            id_text(id, f->namespaces.items[k]);
        id_selector(id, f->maybe_namespaces);
        id_selector(id, f->maybe_selector);
    }
}

/* The selector, and for each of the keys that the pod has as a label: the same value, or another. */
static const struct label_selector *selector_with(struct arena *arena,
                                                  const struct label_selector *maybe_selector,
                                                  struct str_list same, struct str_list other,
                                                  const struct pod *pod)
{
    if (!maybe_selector || same.count + other.count == 0)
        return maybe_selector;
    uint32_t own = maybe_selector->expressions.count, count = 0;
    struct label_selector *merged = arena_new(arena, struct label_selector);
    struct expression *items =
        arena_array(arena, struct expression, (size_t)own + same.count + other.count);
    for (; count < own; count++)
        items[count] = maybe_selector->expressions.items[count];
    for (uint32_t i = 0; i < same.count + other.count; i++) {
        bool is_same = i < same.count;
        struct str key = is_same ? same.items[i] : other.items[i - same.count];
        struct str *value = arena_new(arena, struct str);
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

static void term_free(struct term *term)
{
    object_unref(&term->pod->object);
    for (uint32_t i = 0; i < term->key_count; i++)
        vec_done(&term->found[i]);
    vec_done(&term->held);
    vec_done(&term->counted);
    vec_done(&term->counted_nodes);
    vec_done(&term->owners);
    arena_done(&term->arena);
    free(term);
}

static struct term *draft_term(enum term_kind kind, const struct pod *pod, uint32_t count)
{
    struct term *term = kv_calloc(1, sizeof *term);
    term->kind = kind;
    term->pod = pod_of(object_ref(&pod->object));
    term->keys = arena_array(&term->arena, struct topology_key *, count);
    term->found = arena_array(&term->arena, counts, count);
    term->key_count = term->finder_count = count;
    return term;
}

/* The draft, or the term that says the same: then the draft is gone. */
static void term_own(struct binder *b, struct class *class, struct term *draft)
{
    AUTO_BUF id = { 0 };
    term_id(draft, &id);
    struct term *term = str_table_get(&b->terms, buf_str(&id));
    if (term) {
        term_free(draft);
    } else {
        term = draft;
        str_table_put(&b->terms, buf_str(&id), term);
        term->id = str_table_slot(&b->terms, buf_str(&id))->key;
        str_table_each(&b->tags, slot) {
            struct tag *tag = slot->value;
            if (term_finds(b, term, tag->pod))
                vec_push(&tag->matched, term);
        }
        term_count_all(b, term);
    }
    vec_push(&term->owners, class);
    vec_push(&class->terms, term);
}

static void own_spread(struct binder *b, struct class *class, const struct spread_constraint *s)
{
    const struct pod_spec *spec = class->pod->spec;
    struct term *t = draft_term(TERM_SPREAD, class->pod, 1);
    struct finder *f = arena_new(&t->arena, struct finder);
    t->keys[0] = key_with_nodes(b, s->topology_key);
    f->namespaces = (struct str_list){ &t->pod->object.meta.namespace_, 1 };
    f->maybe_selector = selector_with(&t->arena, s->maybe_selector, s->match_label_keys,
                                      (struct str_list){ 0 }, t->pod);
    t->finders = f;
    t->counts_none = f->maybe_selector && !f->maybe_selector->match_labels.count &&
                     !f->maybe_selector->expressions.count;
    t->max_skew = s->max_skew;
    t->min_domains = s->min_domains.set ? s->min_domains.value : 0;
    t->by_affinity = s->node_affinity_policy != INCLUSION_IGNORE;
    t->by_taints = s->node_taints_policy == INCLUSION_HONOR;
    t->hard_keys = arena_array(&t->arena, struct topology_key *, spec->spread.count);
    for (uint32_t i = 0; i < spec->spread.count; i++) {
        const struct spread_constraint *other = &spec->spread.items[i];
        if (other->when_unsatisfiable != UNSATISFIABLE_ANYWAY)
            t->hard_keys[t->hard_key_count++] = key_with_nodes(b, other->topology_key);
    }
    term_own(b, class, t);
}

static void own_affinity(struct binder *b, struct class *class, enum term_kind kind,
                         const struct pod_affinity_term *from, uint32_t count)
{
    struct term *t = draft_term(kind, class->pod, count);
    struct finder *finders = arena_array(&t->arena, struct finder, count);
    for (uint32_t i = 0; i < count; i++) {
        t->keys[i] = key_with_nodes(b, from[i].topology_key);
        finders[i] = (struct finder){ .namespaces = from[i].namespaces,
                                      .maybe_namespaces = from[i].maybe_namespace_selector };
        if (!from[i].namespaces.count && !from[i].maybe_namespace_selector)
            finders[i].namespaces = (struct str_list){ &t->pod->object.meta.namespace_, 1 };
        finders[i].maybe_selector =
            selector_with(&t->arena, from[i].maybe_selector, from[i].match_label_keys,
                          from[i].mismatch_label_keys, t->pod);
    }
    t->finders = finders;
    term_own(b, class, t);
}

void terms_own(struct binder *b, struct class *class)
{
    const struct pod_spec *spec = class->pod->spec;
    const struct affinity *affinity = class->pod->maybe_affinity;
    for (uint32_t i = 0; i < spec->spread.count; i++) {
        if (spec->spread.items[i].when_unsatisfiable != UNSATISFIABLE_ANYWAY)
            own_spread(b, class, &spec->spread.items[i]);
    }
    if (!affinity)
        return;
    /* kube-scheduler takes all required affinity terms together: a pod counts if all find it. */
    if (affinity->pod.required.count)
        own_affinity(b, class, TERM_AFFINITY, affinity->pod.required.items,
                     affinity->pod.required.count);
    for (uint32_t i = 0; i < affinity->anti.required.count; i++)
        own_affinity(b, class, TERM_ANTI, &affinity->anti.required.items[i], 1);
}

static void term_forget(struct binder *b, struct term *term)
{
    str_table_each(&b->tags, slot) {
        struct tag *tag = slot->value;
        size_t kept = 0;
        for (size_t i = 0; i < tag->matched.count; i++) {
            if (tag->matched.items[i] != term)
                tag->matched.items[kept++] = tag->matched.items[i];
        }
        tag->matched.count = kept;
    }
    str_table_remove(&b->terms, term->id);
    term_free(term);
}

void terms_disown(struct binder *b, struct class *class)
{
    vec_each(&class->terms, struct term *, it) {
        struct term *term = *it;
        size_t kept = 0;
        bool left = false; /* a class may have the same term twice */
        for (size_t i = 0; i < term->owners.count; i++) {
            bool here = !left && term->owners.items[i] == class;
            left |= here;
            if (!here)
                term->owners.items[kept++] = term->owners.items[i];
        }
        term->owners.count = kept;
        if (!kept)
            term_forget(b, term);
    }
    vec_clear(&class->terms);
}

void binder_terms_done(struct binder *b)
{
    vec_each(&b->keys, struct topology_key *, key) {
        str_table_done(&(*key)->ids);
        vec_done(&(*key)->values);
        vec_done(&(*key)->node_domain);
        free((char *)(*key)->name.p);
        free(*key);
    }
    vec_done(&b->keys);
    str_table_done(&b->terms);
}

/* --- judging --- */

void class_weigh_terms(struct class *class)
{
    vec_each(&class->terms, struct term *, it) {
        struct term *term = *it;
        int64_t domains = 0;
        if (term->kind != TERM_SPREAD)
            continue;
        term->fewest = UINT32_MAX;
        for (uint32_t d = 1; d <= term->counted_nodes.count; d++) {
            if (!count_in(&term->counted_nodes, d))
                continue;
            uint32_t here = count_in(&term->found[0], d);
            domains++;
            term->fewest = here < term->fewest ? here : term->fewest;
        }
        if (domains < term->min_domains || !domains)
            term->fewest = 0;
    }
}

static const char *spread_refuses(const struct class *class, const struct term *term, uint32_t at)
{
    uint32_t domain = domain_at(term->keys[0], at);
    if (!domain)
        return "node(s) didn't match pod topology spread constraints (missing required label)";
    int64_t here = count_in(&term->found[0], domain);
    int64_t itself = tag_has(class->tag, term);
    return here + itself - term->fewest > term->max_skew
               ? "node(s) didn't match pod topology spread constraints"
               : NULL;
}

static const char *affinity_refuses(const struct class *class, const struct term *term, uint32_t at)
{
    bool first = !term->total && tag_has(class->tag, term);
    for (uint32_t i = 0; i < term->key_count; i++) {
        uint32_t domain = domain_at(term->keys[i], at);
        if (!domain || (!first && !count_in(&term->found[i], domain)))
            return "node(s) didn't match pod affinity rules";
    }
    return NULL;
}

const char *class_terms_refuse(const struct class *class, uint32_t at)
{
    const char *why = NULL;
    for (size_t i = 0; i < class->terms.count && !why; i++) {
        const struct term *term = class->terms.items[i];
        switch (term->kind) {
        case TERM_SPREAD:
            why = spread_refuses(class, term, at);
            break;
        case TERM_AFFINITY:
            why = affinity_refuses(class, term, at);
            break;
        case TERM_ANTI:
            if (count_in(&term->found[0], domain_at(term->keys[0], at)))
                why = "node(s) didn't match pod anti-affinity rules";
            break;
        }
    }
    for (size_t i = 0; i < class->tag->matched.count && !why; i++) {
        const struct term *term = class->tag->matched.items[i];
        if (term->held_total && count_in(&term->held, domain_at(term->keys[0], at)))
            why = "node(s) didn't satisfy existing pods anti-affinity rules";
    }
    return why;
}
