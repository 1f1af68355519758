/* Topology terms become groups, and every sort learns which groups find it.
 *
 * A term is a group by the bytes of all that it says, so terms that say the same are one and counted
 * once, whoever has them. Bound pods matter in two ways: they are found by the terms of pending pods,
 * and their own required anti-affinity keeps pending pods away. Such a term is a group only if it
 * finds a pending pod at all; in a large cluster most do not.
 *
 * kube-scheduler reads several required affinity terms of one pod as a whole: a pod counts if all of
 * the terms find it. So each of them is a group of its own key, with the selectors of all.
 */
#include "sched/model_groups.h"
#include "sched/model_memo.h"

struct draft { /* of a group */
    enum group_kind kind;
    struct str key;
    int64_t max_skew, min_domains;
    const struct node_filter *maybe_filter;
    const struct pod_finder *finders;
    uint32_t finder_count;
    bool wanted;    /* a pending pod has it or is found by it */
    uint32_t final; /* its number as a group */
};

struct builder {
    struct compile *c;
    struct namespaces ns;
    struct str_table ids; /* what a term says to 1 + draft */
    VEC(struct draft) drafts;
    struct match_index index;
    struct str_table eligible; /* key and filter to the bitset */

    /* The sort that is asked about. */
    uint32_t namespace_;
    const struct str_map *labels;
    bool wanted_only;
    VEC(uint32_t) found;
};

/* --- drafts --- */

static uint32_t draft_intern(struct builder *b, const struct draft *d)
{
    struct buf *text = &b->c->text;
    buf_clear(text);
    buf_add(text, d->key); /* first, so that groups are in the order of keys */
    buf_addc(text, '\0');
    u32_encode(d->kind, text);
    u32_encode((uint32_t)d->max_skew, text);
    u32_encode((uint32_t)d->min_domains, text);
    u32_encode(d->finder_count, text);
    for (uint32_t i = 0; i < d->finder_count; i++)
        finder_encode(&d->finders[i], text);
    if (d->maybe_filter)
        filter_encode(d->maybe_filter, text);
    uintptr_t found = (uintptr_t)str_table_get(&b->ids, buf_str(text));
    if (!found) {
        vec_push(&b->drafts, *d);
        found = b->drafts.count;
        str_table_put(&b->ids, buf_str(text), (void *)found);
    }
    b->drafts.items[found - 1].wanted |= d->wanted;
    return (uint32_t)(found - 1);
}

static bool selector_is_sound(const struct pod_finder *f)
{
    for (uint32_t i = 0; i < f->selector.expressions.count; i++) {
        uint8_t op = f->selector.expressions.items[i].op;
        if (op < OP_IN || op > OP_DOES_NOT_EXIST)
            return false;
    }
    return true;
}

/* What cannot be read keeps a pending pod from being placed. */
static void judge_term(struct builder *b, uint32_t sort, struct str key, const struct pod_finder *f)
{
    struct pod_sort *s = &b->c->sorts.items[sort];
    if (s->maybe_refused)
        return;
    if (!key.len)
        s->maybe_refused =
            blame_new(b->c, REASON_REQUIREMENTS, STR("a topology term has no topologyKey"));
    else if (!selector_is_sound(f))
        s->maybe_refused = blame_new(b->c, REASON_REQUIREMENTS,
                                     STR("a label selector has an operator that is not known"));
}

static uint32_t draft_spread(struct builder *b, uint32_t sort, const struct spread_constraint *term)
{
    struct compile *c = b->c;
    struct pod_finder *finder = arena_new(&c->scratch, struct pod_finder);
    *finder = spread_finder(c, &b->ns, sort, term);
    judge_term(b, sort, term->topology_key, finder);
    struct draft d = { .kind = GROUP_SPREAD,
                       .key = label_normalise(term->topology_key),
                       .max_skew = term->max_skew,
                       .maybe_filter = filter_of(c, c->sorts.items[sort].pod, term),
                       .finders = finder,
                       .finder_count = 1,
                       .wanted = true };
    if (term->min_domains.set && term->min_domains.value > 1)
        d.min_domains = term->min_domains.value;
    return draft_intern(b, &d);
}

static uint32_t draft_affinity(struct builder *b, uint32_t sort, enum group_kind kind,
                               const struct pod_affinity_term *term,
                               const struct pod_finder *finders, uint32_t finder_count)
{
    bool pending = b->c->sorts.items[sort].pending_count > 0;
    if (kind == GROUP_ANTI && finders->nothing)
        return NONE; /* it keeps nobody away */
    judge_term(b, sort, term->topology_key, finders);
    return draft_intern(b, &(struct draft){ .kind = kind,
                                            .key = label_normalise(term->topology_key),
                                            .finders = finders,
                                            .finder_count = finder_count,
                                            .wanted = pending });
}

static const uint32_t *draft_required(struct builder *b, uint32_t sort, enum group_kind kind,
                                      const struct pod_affinity *affinity)
{
    struct compile *c = b->c;
    uint32_t count = affinity->required.count;
    uint32_t *ids = arena_array(c->arena, uint32_t, count);
    struct pod_finder *finders = arena_array(&c->scratch, struct pod_finder, count);
    for (uint32_t i = 0; i < count; i++)
        finders[i] = affinity_finder(c, &b->ns, sort, &affinity->required.items[i]);
    for (uint32_t i = 0; i < count; i++) {
        bool all = kind == GROUP_AFFINITY;
        ids[i] = draft_affinity(b, sort, kind, &affinity->required.items[i],
                                all ? finders : &finders[i], all ? count : 1);
    }
    return ids;
}

static const uint32_t *draft_preferred(struct builder *b, uint32_t sort, enum group_kind kind,
                                       const struct pod_affinity *affinity)
{
    struct compile *c = b->c;
    uint32_t count = affinity->preferred.count;
    uint32_t *ids = arena_array(c->arena, uint32_t, count);
    struct pod_finder *finders = arena_array(&c->scratch, struct pod_finder, count);
    for (uint32_t i = 0; i < count; i++) {
        const struct pod_affinity_term *term = &affinity->preferred.items[i].term;
        finders[i] = affinity_finder(c, &b->ns, sort, term);
        ids[i] = draft_affinity(b, sort, kind, term, &finders[i], 1);
    }
    return ids;
}

static void draft_pending(struct builder *b, uint32_t sort)
{
    struct pod_sort *s = &b->c->sorts.items[sort];
    const struct pod *pod = s->pod;
    const struct affinity *affinity = pod->maybe_affinity;
    bool preferences = b->c->m->options.preferences == PREFERENCES_RESPECT;
    if (pod->spec->spread.count) {
        uint32_t *ids = arena_array(b->c->arena, uint32_t, pod->spec->spread.count);
        for (uint32_t i = 0; i < pod->spec->spread.count; i++) {
            const struct spread_constraint *term = &pod->spec->spread.items[i];
            bool counts = preferences || term->when_unsatisfiable != UNSATISFIABLE_ANYWAY;
            ids[i] = counts ? draft_spread(b, sort, term) : NONE;
        }
        s->terms.spread = ids;
    }
    if (!affinity)
        return;
    s->terms.affinity = draft_required(b, sort, GROUP_AFFINITY, &affinity->pod);
    s->terms.anti = draft_required(b, sort, GROUP_ANTI, &affinity->anti);
    if (preferences) {
        s->terms.affinity_preferred = draft_preferred(b, sort, GROUP_AFFINITY, &affinity->pod);
        s->terms.anti_preferred = draft_preferred(b, sort, GROUP_ANTI, &affinity->anti);
    }
}

static void draft_all(struct builder *b)
{
    for (uint32_t i = 0; i < b->c->sorts.count; i++) {
        struct pod_sort *s = &b->c->sorts.items[i];
        const struct affinity *affinity = s->pod->maybe_affinity;
        if (s->pending_count)
            draft_pending(b, i);
        else if (affinity && affinity->anti.required.count)
            s->terms.anti = draft_required(b, i, GROUP_ANTI, &affinity->anti);
    }
}

/* --- who is found --- */

static void note_found(void *ctx, uint32_t draft)
{
    struct builder *b = ctx;
    const struct draft *d = &b->drafts.items[draft];
    if ((d->wanted || !b->wanted_only) &&
        finders_find(d->finders, d->finder_count, b->namespace_, b->labels))
        vec_push(&b->found, draft);
}

static void find_drafts(struct builder *b, uint32_t sort, bool wanted_only)
{
    b->namespace_ = b->ns.of_sort[sort];
    b->labels = &b->c->sorts.items[sort].pod->object.meta.labels;
    b->wanted_only = wanted_only;
    vec_clear(&b->found);
    match_candidates(&b->index, b->labels, note_found, b);
}

/* Terms of bound pods that find a pending one are wanted too. */
static void find_wanted(struct builder *b)
{
    for (uint32_t i = 0; i < b->drafts.count; i++)
        match_file(&b->index, i, b->drafts.items[i].finders, b->drafts.items[i].finder_count);
    for (uint32_t i = 0; i < b->c->sorts.count; i++) {
        if (!b->c->sorts.items[i].pending_count)
            continue;
        find_drafts(b, i, false);
        vec_each(&b->found, uint32_t, draft)
            b->drafts.items[*draft].wanted = true;
    }
}

static const uint32_t *finals_of(struct builder *b, const uint32_t *drafts, size_t count,
                                 uint32_t *out_count)
{
    uint32_t *finals = arena_array(b->c->arena, uint32_t, count), kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (drafts[i] != NONE && b->drafts.items[drafts[i]].wanted)
            finals[kept++] = b->drafts.items[drafts[i]].final;
    }
    *out_count = numbers_sort_unique(finals, kept);
    return finals;
}

static void renumber(struct builder *b, const uint32_t *drafts, uint32_t count)
{
    uint32_t *ids = (uint32_t *)drafts; /* ours: draft_required and its kin made them */
    for (uint32_t i = 0; ids && i < count; i++)
        ids[i] = ids[i] == NONE ? NONE : b->drafts.items[ids[i]].final;
}

static void settle_sort(struct builder *b, uint32_t sort)
{
    struct pod_sort *s = &b->c->sorts.items[sort];
    const struct affinity *affinity = s->pod->maybe_affinity;
    find_drafts(b, sort, true);
    if (b->found.count)
        s->matched = finals_of(b, b->found.items, b->found.count, &s->matched_count);
    if (s->terms.anti)
        s->anti = finals_of(b, s->terms.anti, affinity->anti.required.count, &s->anti_count);
    if (!s->pending_count)
        return;
    renumber(b, s->terms.spread, s->pod->spec->spread.count);
    if (affinity) {
        renumber(b, s->terms.affinity, affinity->pod.required.count);
        renumber(b, s->terms.affinity_preferred, affinity->pod.preferred.count);
        renumber(b, s->terms.anti, affinity->anti.required.count);
        renumber(b, s->terms.anti_preferred, affinity->anti.preferred.count);
    }
}

/* --- keys and domains --- */

static int key_order(const void *a, const void *b)
{
    const struct topology_key *x = a, *y = b;
    return str_cmp(x->name, y->name);
}

static void keys_collect(struct builder *b)
{
    struct compile *c = b->c;
    struct str_table seen = { 0 };
    vec_push(&c->keys, (struct topology_key){ .name = STR(LABEL_HOSTNAME) });
    str_table_put(&seen, STR(LABEL_HOSTNAME), b);
    vec_each(&b->drafts, struct draft, d) {
        if (!d->wanted || str_table_has(&seen, d->key))
            continue;
        struct str_list values = label_values(c, d->key, NULL);
        struct str *domains = arena_array(c->arena, struct str, values.count);
        for (uint32_t i = 0; i < values.count; i++)
            domains[i] = values.items[i];
        vec_push(&c->keys, (struct topology_key){ d->key, domains, values.count });
        str_table_put(&seen, d->key, b);
    }
    str_table_done(&seen);
    qsort(c->keys.items + 1, c->keys.count - 1, sizeof *c->keys.items, key_order);
}

static uint32_t key_find(const struct compile *c, struct str name)
{
    uint32_t k = 0;
    while (!str_eq(c->keys.items[k].name, name))
        k++;
    return k;
}

uint32_t domain_find(const struct topology_key *key, struct str value)
{
    uint32_t low = 0, high = key->domain_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(key->domains[middle], value) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < key->domain_count && str_eq(key->domains[low], value) ? low : NONE;
}

/* Spreads mostly share their filter: that of pods which may go anywhere. */
static struct bitset eligible_domains(struct builder *b, uint32_t key, const struct node_filter *f)
{
    struct compile *c = b->c;
    const struct topology_key *k = &c->keys.items[key];
    buf_clear(&c->text);
    u32_encode(key, &c->text);
    filter_encode(f, &c->text);
    const struct bitset *known = str_table_get(&b->eligible, buf_str(&c->text));
    if (known)
        return *known;

    struct bitset *found = arena_new(c->arena, struct bitset);
    *found = bitset_new(c->arena, k->domain_count);
    str_table_put(&b->eligible, buf_str(&c->text), found);
    if (key == KEY_HOSTNAME)
        return *found;
    struct str_list values = label_values(c, k->name, f);
    for (uint32_t i = 0; i < values.count; i++) {
        uint32_t domain = domain_find(k, values.items[i]);
        if (domain != NONE)
            bitset_set(found, domain);
    }
    return *found;
}

/* --- groups --- */

/* Out of scratch memory; values and texts are the pods'. */
static void selectors_keep(struct compile *c, const struct draft *d, struct group *g)
{
    struct label_selector *kept = arena_array(c->arena, struct label_selector, d->finder_count);
    for (uint32_t i = 0; i < d->finder_count; i++) {
        const struct pod_finder *f = &d->finders[i];
        uint32_t count = f->selector.expressions.count;
        struct expression *items = arena_array(c->arena, struct expression, count);
        if (f->nothing)
            continue;
        if (count)
            memcpy(items, f->selector.expressions.items, count * sizeof *items);
        kept[g->selector_count].expressions.items = items;
        kept[g->selector_count++].expressions.count = count;
    }
    g->selectors = kept;
}

/* Its counts are for homes_compile to fill in. */
static void group_add(struct builder *b, struct draft *d)
{
    struct compile *c = b->c;
    uint32_t key = key_find(c, d->key);
    struct group g = { .kind = d->kind,
                       .key = key,
                       .max_skew = d->max_skew,
                       .min_domains = d->min_domains,
                       .source = d->maybe_filter };
    selectors_keep(c, d, &g);
    if (d->maybe_filter) {
        g.eligible = eligible_domains(b, key, d->maybe_filter);
        filter_for_launches(b->c, d->maybe_filter, &g);
    }
    d->final = (uint32_t)c->groups.count;
    vec_push(&c->groups, g);
}

bool group_counts(const struct compile *c KV_UNUSED, const struct group *g,
                  const struct str_map *labels, const struct taint *taints, uint32_t taint_count)
{
    const struct node_filter *maybe_filter = g->source;
    return !maybe_filter || filter_passes(maybe_filter, labels, taints, taint_count);
}

void groups_compile(struct compile *c)
{
    struct builder b = { .c = c };
    arena_reset(&c->scratch);
    namespaces_collect(c, &b.ns);
    draft_all(&b);
    find_wanted(&b);
    keys_collect(&b);

    uint32_t *order = arena_array(&c->scratch, uint32_t, b.ids.live_count);
    str_table_sorted(&b.ids, order);
    for (uint32_t i = 0; i < b.ids.live_count; i++) {
        struct draft *d = &b.drafts.items[(uintptr_t)b.ids.slots[order[i]].value - 1];
        if (d->wanted)
            group_add(&b, d);
    }
    for (uint32_t i = 0; i < c->sorts.count && b.drafts.count; i++)
        settle_sort(&b, i);

    str_table_done(&b.ids);
    str_table_done(&b.eligible);
    vec_done(&b.drafts);
    match_done(&b.index);
    vec_done(&b.found);
}
