/* Which nodes a spread counts, and the values that a label has on nodes and can have.
 *
 * kube-scheduler counts the nodes that the pod's node selector and node affinity allow (nodeAffinity-
 * Policy), whose taints it bears if it is asked to look at them (nodeTaintsPolicy), and which have the
 * labels of all the pod's spreads. Where a node could be launched that would count, its domain counts
 * already.
 *
 * Expressions are asked of a node's labels one by one, as they are written: a set of requirements
 * cannot say everything that a list of them can.
 */
#include "sched/model_groups.h"
#include "sched/model_memo.h"

/* --- building --- */

static bool honors_affinity(const struct spread_constraint *term)
{
    return term->node_affinity_policy != INCLUSION_IGNORE;
}

/* Labels of the other spreads that must hold. */
static struct str_list labels_needed(struct compile *c, const struct pod *pod,
                                     const struct spread_constraint *term)
{
    struct str *keys = arena_array(c->arena, struct str, pod->spec->spread.count);
    uint32_t count = 0;
    if (term->when_unsatisfiable == UNSATISFIABLE_ANYWAY)
        return (struct str_list){ 0 };
    for (uint32_t i = 0; i < pod->spec->spread.count; i++) {
        const struct spread_constraint *other = &pod->spec->spread.items[i];
        struct str key = label_normalise(other->topology_key);
        if (other->when_unsatisfiable != UNSATISFIABLE_ANYWAY &&
            !str_eq(key, STR(LABEL_HOSTNAME)) && !str_eq(key, label_normalise(term->topology_key)))
            keys[count++] = key;
    }
    return (struct str_list){ keys, (uint32_t)str_sort_unique(keys, count) };
}

struct node_filter *filter_of(struct compile *c, const struct pod *pod,
                              const struct spread_constraint *term)
{
    struct node_filter *f = arena_new(c->arena, struct node_filter);
    struct str_map selector = { 0 };
    const struct node_selector *required = NULL;
    if (honors_affinity(term)) {
        selector = pod->spec->node_selector;
        required = pod->maybe_affinity ? pod->maybe_affinity->node.maybe_required : NULL;
    }
    struct demands by_labels = demands_of_labels(c->arena, &selector), by_term;
    uint32_t term_count = required ? required->terms.count : 1;
    struct demands *terms = arena_array(c->arena, struct demands, term_count);
    f->labels = labels_needed(c, pod, term);
    f->terms = terms;
    if (!required)
        terms[f->term_count++] = by_labels;
    for (uint32_t i = 0; required && i < term_count; i++) {
        const struct node_selector_term *of_node = &required->terms.items[i];
        if (of_node->expressions.count && !of_node->fields.count &&
            demands_of_term(c->arena, of_node, &by_term, NULL) == 0)
            terms[f->term_count++] = demands_both(c->arena, by_labels, by_term);
    }
    if (term->node_taints_policy == INCLUSION_HONOR) {
        f->honor_taints = true;
        f->tolerations = pod->spec->tolerations.items;
        f->toleration_count = pod->spec->tolerations.count;
    }
    return f;
}

void filter_encode(const struct node_filter *f, struct buf *out)
{
    u32_encode(f->term_count, out);
    for (uint32_t i = 0; i < f->term_count; i++) {
        struct requirements as_written = { f->terms[i].items, f->terms[i].count };
        requirements_encode(&as_written, out);
    }
    u32_encode(f->labels.count, out);
    for (uint32_t i = 0; i < f->labels.count; i++)
        str_encode(f->labels.items[i], out);
    u32_encode(f->honor_taints, out);
    u32_encode(f->toleration_count, out);
    for (uint32_t i = 0; i < f->toleration_count; i++) {
        const struct toleration *t = &f->tolerations[i];
        str_encode(t->key, out);
        str_encode(t->value, out);
        u32_encode((uint32_t)t->op << 8 | t->effect, out);
    }
}

/* --- asking --- */

static bool bears_taints(const struct node_filter *f, const struct taint *taints, uint32_t count)
{
    for (uint32_t i = 0; i < count && f->honor_taints; i++) {
        bool keeps_off =
            taints[i].effect == EFFECT_NO_SCHEDULE || taints[i].effect == EFFECT_NO_EXECUTE;
        if (keeps_off && !taint_tolerated(f->tolerations, f->toleration_count, &taints[i]))
            return false;
    }
    return true;
}

static bool term_holds(const struct demands *term, const struct str_map *labels)
{
    for (uint32_t i = 0; i < term->count; i++) {
        const struct requirement *r = &term->items[i];
        struct str value = str_map_get(labels, r->key);
        if (value.p ? !requirement_has(r, value) : demands_label(r))
            return false;
    }
    return true;
}

bool filter_passes(const struct node_filter *f, const struct str_map *labels,
                   const struct taint *taints, uint32_t taint_count)
{
    bool passes = false;
    for (uint32_t i = 0; i < f->term_count && !passes; i++)
        passes = term_holds(&f->terms[i], labels);
    for (uint32_t i = 0; i < f->labels.count && passes; i++)
        passes = str_map_get(labels, f->labels.items[i]).p != NULL;
    return passes && bears_taints(f, taints, taint_count);
}

/* --- values of labels --- */

typedef VEC(struct str) str_vec;

static void add_of_nodes(const struct snapshot *snap, struct str key,
                         const struct node_filter *maybe_filter, str_vec *out)
{
    for (uint32_t i = 0; i < snap->node_count; i++) {
        const struct node *node = snap->nodes[i];
        const struct str_map *labels = &node->object.meta.labels;
        struct str value = str_map_get(labels, key);
        bool leaves =
            node->object.meta.deleted_us || node_taint(node, STR(TAINT_DISRUPTED), EFFECT_ANY);
        bool counts = !maybe_filter ||
                      (!leaves && filter_passes(maybe_filter, labels, node->spec.taints.items,
                                                node->spec.taints.count));
        if (value.p && counts)
            vec_push(out, value);
    }
}

static void add_of_claims(const struct snapshot *snap, struct str key,
                          const struct node_filter *maybe_filter, str_vec *out)
{
    for (uint32_t i = 0; i < snap->claim_count; i++) {
        const struct nodeclaim *claim = snap->claims[i];
        const struct claim_node_spec *spec = &claim->spec.node;
        const struct str_map *labels = &claim->object.meta.labels;
        bool counts = !maybe_filter ||
                      (!claim->object.meta.deleted_us &&
                       filter_passes(maybe_filter, labels, spec->taints.items, spec->taints.count));
        struct str value = str_map_get(labels, key);
        if (value.p && counts)
            vec_push(out, value);
        for (uint32_t r = 0; r < spec->requirements.count && counts; r++) {
            const struct expression *e = &spec->requirements.items[r];
            if (e->op == OP_IN && e->values.count == 1 && str_eq(label_normalise(e->key), key))
                vec_push(out, e->values.items[0]);
        }
    }
}

static bool posting_meets(const struct posting *p, const struct bitset *set)
{
    for (uint32_t i = 0; i < p->count; i++) {
        if (p->words[i] & set->words[p->first + i])
            return true;
    }
    return false;
}

/* Of a label that offerings differ in: the zone, above all. False: it is not one. */
static bool add_of_shapes(const struct terms *t, const struct instance_types *s,
                          const struct bitset *types, const struct requirement *r, str_vec *out)
{
    bool found = false;
    bitset_each(&t->shapes, i) {
        const struct requirement *own = requirements_find(&s->shapes[i].requirements, r->key);
        found |= own != NULL;
        if (!own || own->complement || !posting_meets(&s->shapes[i].types, types))
            continue;
        for (uint32_t v = 0; v < own->values.count; v++) {
            if (requirement_has(r, own->values.items[v]))
                vec_push(out, own->values.items[v]);
        }
    }
    return found;
}

static void add_of_types(const struct instance_types *s, struct bitset *types,
                         const struct requirement *r, str_vec *out)
{
    const struct label_column *column = instance_types_label(s, r->key);
    for (uint32_t v = 0; column && v < column->value_count; v++) {
        if (requirement_has(r, column->values[v].text) &&
            posting_meets(&column->values[v].types, types))
            vec_push(out, column->values[v].text);
    }
    if (column)
        bitset_andnot(types, &column->defined);
    /* Where the types leave it open it is the pool's own label. */
    for (uint32_t v = 0; !r->complement && bitset_any(types) && v < r->values.count; v++)
        vec_push(out, r->values.items[v]);
}

static void add_of_terms(struct compile *c, uint32_t terms, struct str key, str_vec *out)
{
    const struct terms *t = terms_at(c->m, terms);
    const struct instance_types *s = c->m->pools[t->pool].types;
    struct requirement r = requirements_get(&t->set, key);
    struct bitset types = bitset_new(&c->scratch, s->type_count);
    bitset_each(&t->machines, row)
        bitset_set(&types, s->row_type[row]);
    if (!add_of_shapes(t, s, &types, &r, out))
        add_of_types(s, &types, &r, out);
}

/* NONE: nothing can be launched that passes. */
static uint32_t launch_wants(struct compile *c, const struct node_filter *f, uint32_t term)
{
    struct requirements set;
    if (demands_settle(c, f->terms[term], &set, NULL) < 0)
        return NONE;
    for (uint32_t i = 0; i < f->labels.count; i++) {
        struct requirement exists = requirement_exists(&c->scratch, f->labels.items[i]);
        if (!requirements_find(&set, exists.key))
            set = requirements_add(&c->scratch, &set, &exists);
    }
    return wants_intern(c->m, &set);
}

void filter_for_launches(struct compile *c, const struct node_filter *f, struct group *g)
{
    const struct model *m = c->m;
    uint32_t *wants = arena_array(c->arena, uint32_t, f->term_count);
    for (uint32_t i = 0; i < f->term_count; i++) {
        uint32_t w = launch_wants(c, f, i);
        if (w != NONE)
            wants[g->filter_count++] = w;
    }
    g->filter = wants;
    g->pools = bitset_new(c->arena, m->pool_count);
    for (uint32_t p = 0; p < m->pool_count; p++) {
        const struct taint_list *taints = &c->taints.items[m->pools[p].taints];
        if (bears_taints(f, taints->items, taints->count))
            bitset_set(&g->pools, p);
    }
}

static void add_of_pools(struct compile *c, struct str key, str_vec *out)
{
    for (uint32_t p = 0; p < c->m->pool_count; p++)
        add_of_terms(c, c->m->pools[p].terms, key, out);
}

static void add_of_filtered_pools(struct compile *c, struct str key, const struct node_filter *f,
                                  str_vec *out)
{
    struct model *m = c->m;
    for (uint32_t i = 0; i < f->term_count; i++) {
        uint32_t wants = launch_wants(c, f, i);
        for (uint32_t p = 0; p < m->pool_count && wants != NONE; p++) {
            const struct taint_list *taints = &c->taints.items[m->pools[p].taints];
            uint32_t terms = terms_join(m, m->pools[p].terms, wants);
            if (terms != NONE && bears_taints(f, taints->items, taints->count))
                add_of_terms(c, terms, key, out);
        }
    }
}

struct str_list label_values(struct compile *c, struct str key,
                             const struct node_filter *maybe_filter)
{
    str_vec found = { 0 };
    add_of_nodes(c->m->snap, key, maybe_filter, &found);
    add_of_claims(c->m->snap, key, maybe_filter, &found);
    if (maybe_filter)
        add_of_filtered_pools(c, key, maybe_filter, &found);
    else
        add_of_pools(c, key, &found);
    uint32_t count = found.count ? (uint32_t)str_sort_unique(found.items, found.count) : 0;
    struct str *values = arena_array(&c->scratch, struct str, count);
    for (uint32_t i = 0; i < count; i++)
        values[i] = found.items[i];
    vec_done(&found);
    return (struct str_list){ values, count };
}
