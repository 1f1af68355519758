/* The ways to read what a pod asks for, from all of it to the least that will do.
 *
 * Preferences are given up one after the other, always in the same order: preferred affinity to pods,
 * heaviest first; preferred distance from pods; preferred nodes, of which only the heaviest that is
 * left is heeded at all; ScheduleAnyway spreads; taints that only ask to be avoided; at last, that
 * the images are known to run there. The others are about where a pod runs best, this one is about
 * whether it runs. Each such level is read in as many ways as the required node affinity and the
 * volumes have alternatives.
 *
 * The last way has given up everything, so what it owns is what is required.
 */
#include "sched/model_inner.h"
#include "sched/words.h"

#define VARIANTS_MAX 256

enum step_kind { STEP_AFFINITY, STEP_ANTI, STEP_NODE, STEP_SPREAD, STEP_TAINTS, STEP_IMAGES };

struct preference { /* one step of giving up */
    enum step_kind kind;
    uint32_t ix; /* of the term, in the spec */
    int64_t weight;
    uint32_t group;      /* of topology terms; may be NONE */
    struct demands node; /* of node terms */
};

struct reader {
    struct compile *c;
    const struct pod_sort *sort;
    const struct pod_volumes *volumes;
    struct fit_readings fits;
    struct demands selector;
    struct demands *terms; /* required ones that can be used; one empty if there is no affinity */
    uint32_t term_count;
    struct preference *steps; /* in the order in which they are given up */
    uint32_t step_count;
    uint32_t ways; /* of a level, at most */
    struct variant *variants;
    uint32_t count;
    struct plan_blame why; /* of the way that failed last; reason and detail */
};

static void blame(struct reader *r, enum plan_reason reason, const char *text)
{
    r->why = (struct plan_blame){ PLAN_NONE, reason, arena_strf(r->c->arena, "%s", text) };
}

/* --- labels that pods may not ask for --- */

static bool well_known(const struct snapshot *snap, struct str key)
{
    for (uint32_t i = 0; i < snap->pool_count; i++) {
        const struct str_list *keys = &snap->pools[i].well_known;
        if (str_sorted_has(keys->items, keys->count, key))
            return true;
    }
    return false;
}

/* The host name is restricted for pools, whose nodes have names of their own. A pod may ask for it: a
 * node that is there can have it, and no launch will (model_terms.c). */
static bool restricted(const struct snapshot *snap, struct str key)
{
    if (str_eq(key, STR(LABEL_HOSTNAME)))
        return false;
    const struct label_rules *rules = label_rules_for(STR(""));
    bool found = label_is_restricted(rules, key);
    for (uint32_t i = 0; i < snap->pool_count && !found; i++) {
        const struct label_rules *own =
            label_rules_for(snap->pools[i].pool->spec.template.spec.node_class_ref.group);
        if (own != rules)
            found = label_is_restricted(own, key);
        rules = own;
    }
    return found && !well_known(snap, key);
}

static int demands_check(struct reader *r, struct demands d, struct err *err)
{
    for (uint32_t i = 0; i < d.count; i++) {
        if (restricted(r->c->m->snap, d.items[i].key))
            return err_set(err, ERR_DENIED, "label %s is restricted", NAME_SHOWN(d.items[i].key));
    }
    return 0;
}

static bool node_term(struct reader *r, const struct node_selector_term *term, struct demands *out)
{
    struct err err = { 0 };
    if (term->fields.count)
        blame(r, REASON_UNSUPPORTED, "node affinity by matchFields is not handled");
    else if (demands_of_term(&r->c->scratch, term, out, &err) < 0 ||
             demands_check(r, *out, &err) < 0)
        blame(r, REASON_REQUIREMENTS, err.text);
    else
        return true;
    return false;
}

/* --- required --- */

static bool spreads_by_affinity(const struct pod_spec *spec)
{
    for (uint32_t i = 0; i < spec->spread.count; i++) {
        if (spec->spread.items[i].node_affinity_policy != INCLUSION_IGNORE)
            return true;
    }
    return false;
}

/* False: nothing is left, and r->why says why. */
static bool read_required(struct reader *r)
{
    const struct pod *pod = r->sort->pod;
    const struct node_selector *required =
        pod->maybe_affinity ? pod->maybe_affinity->node.maybe_required : NULL;
    struct err err = { 0 };
    r->selector = demands_of_labels(&r->c->scratch, &pod->spec->node_selector);
    if (demands_check(r, r->selector, &err) < 0) {
        blame(r, REASON_REQUIREMENTS, err.text);
        return false;
    }
    r->terms =
        arena_array(&r->c->scratch, struct demands, required ? required->terms.count + 1 : 1);
    if (!required) {
        r->term_count = 1;
        return true;
    }
    blame(r, REASON_REQUIREMENTS, "its node affinity has no terms that a node could satisfy");
    for (uint32_t i = 0; i < required->terms.count; i++) {
        const struct node_selector_term *term = &required->terms.items[i];
        /* An empty term holds nowhere. */
        bool empty = !term->expressions.count && !term->fields.count;
        if (term->fields.count && spreads_by_affinity(pod->spec)) {
            blame(r, REASON_UNSUPPORTED,
                  "node affinity by matchFields is not handled beside topology spread");
            return false;
        }
        if (!empty && node_term(r, term, &r->terms[r->term_count]))
            r->term_count++;
    }
    return r->term_count > 0;
}

/* --- preferred --- */

/* The heaviest first; of equal weight the first. */
static void steps_sort(struct preference *steps, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        struct preference moved = steps[i];
        uint32_t at = i;
        for (; at > 0 && steps[at - 1].weight < moved.weight; at--)
            steps[at] = steps[at - 1];
        steps[at] = moved;
    }
}

static void read_pod_terms(struct reader *r, enum step_kind kind,
                           const struct pod_affinity *affinity, const uint32_t *groups)
{
    uint32_t first = r->step_count;
    for (uint32_t i = 0; i < affinity->preferred.count; i++)
        r->steps[r->step_count++] = (struct preference){
            .kind = kind, .ix = i, .weight = affinity->preferred.items[i].weight, .group = groups[i]
        };
    steps_sort(r->steps + first, r->step_count - first);
}

static void read_node_terms(struct reader *r, const struct node_affinity *affinity)
{
    uint32_t first = r->step_count;
    for (uint32_t i = 0; i < affinity->preferred.count; i++) {
        const struct preferred_node_term *term = &affinity->preferred.items[i];
        struct preference step = {
            .kind = STEP_NODE, .ix = i, .weight = term->weight, .group = NONE
        };
        /* One that cannot be heeded is none. */
        if (term->term.expressions.count && node_term(r, &term->term, &step.node))
            r->steps[r->step_count++] = step;
    }
    steps_sort(r->steps + first, r->step_count - first);
}

/* The first is given up, and the last takes its place. */
static void read_spreads(struct reader *r)
{
    const struct pod_spec *spec = r->sort->pod->spec;
    uint32_t *left = arena_array(&r->c->scratch, uint32_t, spec->spread.count);
    uint32_t count = spec->spread.count;
    for (uint32_t i = 0; i < count; i++)
        left[i] = i;
    for (uint32_t i = 0; i < count;) {
        uint32_t ix = left[i];
        if (spec->spread.items[ix].when_unsatisfiable != UNSATISFIABLE_ANYWAY) {
            i++;
            continue;
        }
        r->steps[r->step_count++] = (struct preference){ .kind = STEP_SPREAD,
                                                         .ix = ix,
                                                         .group = r->sort->terms.spread[ix] };
        left[i] = left[--count];
    }
}

static bool anybody_prefers(const struct compile *c)
{
    vec_each(&c->taints, struct taint_list, list) {
        for (uint32_t i = 0; i < list->count; i++) {
            if (list->items[i].effect == EFFECT_PREFER_NO_SCHEDULE)
                return true;
        }
    }
    return false;
}

static void read_preferred(struct reader *r)
{
    const struct affinity *affinity = r->sort->pod->maybe_affinity;
    size_t room = (size_t)r->sort->pod->spec->spread.count + 2; /* taints, and images */
    if (affinity)
        room += (size_t)affinity->pod.preferred.count + affinity->anti.preferred.count +
                affinity->node.preferred.count;
    r->steps = arena_array(&r->c->scratch, struct preference, room);
    if (r->c->m->options.preferences == PREFERENCES_RESPECT) {
        if (affinity) {
            read_pod_terms(r, STEP_AFFINITY, &affinity->pod, r->sort->terms.affinity_preferred);
            read_pod_terms(r, STEP_ANTI, &affinity->anti, r->sort->terms.anti_preferred);
            read_node_terms(r, &affinity->node);
        }
        read_spreads(r);
    }
    if (anybody_prefers(r->c))
        r->steps[r->step_count++] = (struct preference){ .kind = STEP_TAINTS, .group = NONE };
    if (r->fits.first != r->fits.last)
        r->steps[r->step_count++] = (struct preference){ .kind = STEP_IMAGES, .group = NONE };
}

/* --- words --- */

static struct str short_key(struct str key)
{
    struct str head, tail;
    return str_cut(key, '/', &head, &tail) ? tail : key;
}

static void add_node_words(const struct demands *d, struct buf *out)
{
    for (uint32_t i = 0; i < d->count; i++) {
        struct requirement r = d->items[i];
        buf_addz(out, i ? " and " : "");
        r.key = short_key(r.key);
        if (requirement_operator(&r) != OP_IN) {
            add_requirement(out, &r);
            continue;
        }
        add_name(out, r.key);
        for (uint32_t v = 0; v < r.values.count; v++)
            buf_addf(out, "%s%s", v ? " or " : " ", NAME_SHOWN(r.values.items[v]));
    }
}

static void add_selector_words(const struct label_selector *maybe_selector, struct buf *out)
{
    const char *comma = "";
    for (uint32_t i = 0; maybe_selector && i < maybe_selector->match_labels.count; i++) {
        const struct str_pair *label = &maybe_selector->match_labels.items[i];
        buf_addf(out, "%s%s=%s", comma, NAME_SHOWN(label->key),
                 label->value.len ? NAME_SHOWN(label->value) : "");
        comma = ",";
    }
    if (!*comma)
        buf_addz(out, "some pods");
}

static void add_step_words(const struct reader *r, const struct preference *step, struct buf *out)
{
    const struct pod *pod = r->sort->pod;
    const struct pod_affinity_term *term;
    switch (step->kind) {
    case STEP_AFFINITY:
    case STEP_ANTI:
        term = step->kind == STEP_AFFINITY
                   ? &pod->maybe_affinity->pod.preferred.items[step->ix].term
                   : &pod->maybe_affinity->anti.preferred.items[step->ix].term;
        buf_addf(out, "preferred %s ",
                 step->kind == STEP_AFFINITY ? "affinity to" : "anti-affinity to");
        add_selector_words(term->maybe_selector, out);
        buf_addf(out, " by %s", NAME_SHOWN(short_key(term->topology_key)));
        return;
    case STEP_NODE:
        buf_addz(out, "preferred ");
        add_node_words(&step->node, out);
        return;
    case STEP_SPREAD:
        buf_addf(out, "spread by %s",
                 NAME_SHOWN(short_key(pod->spec->spread.items[step->ix].topology_key)));
        return;
    case STEP_TAINTS:
        buf_addz(out, "keeping off PreferNoSchedule taints");
        return;
    case STEP_IMAGES:
        buf_addz(out, "it is not known whether the images run there");
        return;
    }
    KV_UNREACHABLE();
}

static struct str given_up(const struct reader *r, uint32_t gone)
{
    AUTO_BUF text = { 0 };
    if (!gone)
        return STR("");
    for (uint32_t i = 0; i < gone; i++) {
        buf_addz(&text, i ? ", " : "");
        add_step_words(r, &r->steps[i], &text);
    }
    return arena_str(r->c->arena, buf_str(&text));
}

/* --- levels --- */

static uint32_t add_groups(uint32_t *out, uint32_t count, const uint32_t *maybe_groups, uint32_t n)
{
    for (uint32_t i = 0; maybe_groups && i < n; i++) {
        if (maybe_groups[i] != NONE)
            out[count++] = maybe_groups[i];
    }
    return count;
}

/* Groups that the pod holds to when the first `gone` preferences are given up. */
static const uint32_t *groups_owned(const struct reader *r, uint32_t gone, uint32_t *count)
{
    const struct pod_sort *s = r->sort;
    const struct pod_spec *spec = s->pod->spec;
    const struct affinity *affinity = s->pod->maybe_affinity;
    size_t room = (size_t)spec->spread.count + r->step_count;
    if (affinity)
        room += (size_t)affinity->pod.required.count + affinity->anti.required.count;
    uint32_t *owned = arena_array(r->c->arena, uint32_t, room), n = 0;
    for (uint32_t i = 0; i < spec->spread.count; i++) {
        if (spec->spread.items[i].when_unsatisfiable != UNSATISFIABLE_ANYWAY)
            n = add_groups(owned, n, &s->terms.spread[i], 1);
    }
    if (affinity) {
        n = add_groups(owned, n, s->terms.affinity, affinity->pod.required.count);
        n = add_groups(owned, n, s->terms.anti, affinity->anti.required.count);
    }
    for (uint32_t i = gone; i < r->step_count; i++)
        n = add_groups(owned, n, &r->steps[i].group, 1);
    *count = numbers_sort_unique(owned, n);
    return owned;
}

static struct demands node_preferred(const struct reader *r, uint32_t gone)
{
    for (uint32_t i = gone; i < r->step_count; i++) {
        if (r->steps[i].kind == STEP_NODE)
            return r->steps[i].node;
    }
    return (struct demands){ 0 };
}

static bool is_gone(const struct reader *r, enum step_kind kind, uint32_t gone)
{
    for (uint32_t i = 0; i < gone; i++) {
        if (r->steps[i].kind == kind)
            return true;
    }
    return false;
}

static bool known_already(const struct reader *r, const struct variant *v)
{
    for (uint32_t i = 0; i < r->count; i++) {
        const struct variant *old = &r->variants[i];
        if (old->wants == v->wants && old->tolerance == v->tolerance &&
            old->owned_count == v->owned_count &&
            (!v->owned_count ||
             memcmp(old->owned, v->owned, v->owned_count * sizeof *v->owned) == 0))
            return true;
    }
    return false;
}

/* What labels the pod asks for by one term, with a preference and where its volumes are; in `set`. */
static bool read_set(struct reader *r, const struct demands *term, struct demands preferred,
                     const struct requirements *maybe_place, struct requirements *set)
{
    struct compile *c = r->c;
    struct err err = { 0 };
    struct demands all = demands_both(&c->scratch, r->selector, *term);
    if (demands_settle(c, demands_both(&c->scratch, all, preferred), set, &err) < 0) {
        blame(r, REASON_REQUIREMENTS, err.text);
        return false;
    }
    if (maybe_place) {
        struct mismatch why;
        if (!requirements_intersects(maybe_place, set, &why)) {
            AUTO_BUF text = { 0 };
            buf_addz(&text, "its volumes are elsewhere: ");
            add_requirement(&text, why.node);
            buf_addz(&text, " and ");
            add_requirement(&text, why.incoming);
            buf_addz(&text, " have nothing in common");
            blame(r, REASON_VOLUME, text.p);
            return false;
        }
        *set = requirements_merge(&c->scratch, set, maybe_place);
    }
    return true;
}

/* How many ways there are, old ones among them. */
static uint32_t read_level(struct reader *r, uint32_t gone)
{
    const struct pod_spec *spec = r->sort->pod->spec;
    uint32_t places = r->volumes->alternative_count ? r->volumes->alternative_count : 1, found = 0;
    struct demands preferred = node_preferred(r, gone);
    bool all_prefer = is_gone(r, STEP_TAINTS, gone);
    uint32_t fit = is_gone(r, STEP_IMAGES, gone) ? r->fits.last : r->fits.first;
    struct variant v = { .given_up = given_up(r, gone) };
    v.tolerance =
        tolerance_intern(r->c, spec->tolerations.items, spec->tolerations.count, all_prefer);
    v.owned = groups_owned(r, gone, &v.owned_count);
    for (uint32_t t = 0; t < r->term_count; t++) {
        for (uint32_t p = 0; p < places && found < r->ways; p++) {
            const struct requirements *maybe_place =
                r->volumes->alternative_count ? &r->volumes->alternatives[p] : NULL;
            struct requirements set;
            if (!read_set(r, &r->terms[t], preferred, maybe_place, &set))
                continue;
            v.wants = wants_with_fit(r->c->m, &set, fit);
            found++;
            if (r->count < VARIANTS_MAX && !known_already(r, &v))
                r->variants[r->count++] = v;
        }
    }
    return found;
}

struct variants variants_of(struct compile *c, const struct pod_sort *sort,
                            const struct pod_volumes *volumes)
{
    struct reader r = {
        .c = c, .sort = sort, .volumes = volumes, .fits = fit_readings_of(c, sort->fit)
    };
    if (!read_required(&r))
        return (struct variants){ .maybe_refused = blame_new(c, r.why.reason, r.why.detail) };
    read_preferred(&r);

    /* The last level is all that counts in the end, and the one before it if that is still sure of the
     * images: what there is room for beside them is kept of the ones before. */
    uint32_t kept = r.fits.first != r.fits.last ? 2 : 1;
    size_t ways =
        (size_t)r.term_count * (volumes->alternative_count ? volumes->alternative_count : 1);
    r.ways = (uint32_t)(ways < VARIANTS_MAX / kept ? ways : VARIANTS_MAX / kept);
    uint32_t levels = VARIANTS_MAX / r.ways;
    if (levels > r.step_count + 1)
        levels = r.step_count + 1;
    r.variants = arena_array(c->arena, struct variant, (size_t)levels * r.ways);
    for (uint32_t gone = 0; gone + kept < levels; gone++)
        read_level(&r, gone);
    if (kept == 2)
        read_level(&r, r.step_count - 1);
    if (!read_level(&r, r.step_count))
        return (struct variants){ .maybe_refused = blame_new(c, r.why.reason, r.why.detail) };
    return (struct variants){ .items = r.variants, .count = r.count };
}
