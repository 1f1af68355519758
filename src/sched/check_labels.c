/* Labels. Of a node that is there they are known. Of a launch they follow from the claim, the type and
 * the offering together: a key may be anything that all of these allow which speak of it. Questions
 * are answered in three-valued logic, first for all combinations at once, key by key; only if that
 * leaves doubt (an arm64 type here, an amd64 type there) are the combinations asked one by one.
 */
#include "sched/check_inner.h"

/* --- three-valued logic --- */

static enum verdict both(enum verdict a, enum verdict b)
{
    return a < b ? a : b;
}

static enum verdict either(enum verdict a, enum verdict b)
{
    return a > b ? a : b;
}

/* One of several possibilities, and it is not known which. */
struct doubt {
    bool some_hold, some_fail;
};

static void doubt_add(struct doubt *d, enum verdict v)
{
    d->some_hold |= v != NEVER;
    d->some_fail |= v != ALWAYS;
}

static enum verdict doubt_verdict(const struct doubt *d)
{
    return !d->some_hold ? NEVER : d->some_fail ? SOMETIMES : ALWAYS;
}

/* --- one expression --- */

static bool list_has(struct str_list list, struct str s)
{
    for (uint32_t i = 0; i < list.count; i++) {
        if (str_eq(list.items[i], s))
            return true;
    }
    return false;
}

static bool number_of(const struct expression *e, int64_t *n)
{
    return e->values.count == 1 && str_to_i64(e->values.items[0], n);
}

/* As kube-scheduler does it. An absent value is a label that is not there. */
static bool expression_holds(const struct expression *e, struct str value)
{
    int64_t have, want;
    switch ((enum requirement_op)e->op) {
    case OP_IN:
        return value.p && list_has(e->values, value);
    case OP_NOT_IN:
        return !value.p || !list_has(e->values, value);
    case OP_EXISTS:
        return value.p != NULL;
    case OP_DOES_NOT_EXIST:
        return value.p == NULL;
    case OP_GT:
        return value.p && str_to_i64(value, &have) && number_of(e, &want) && have > want;
    case OP_LT:
        return value.p && str_to_i64(value, &have) && number_of(e, &want) && have < want;
    case OP_GTE: /* node affinity has no such operators */
    case OP_LTE:
    case OP_UNSET:
        return false;
    }
    KV_UNREACHABLE();
}

/* The label is any value but some: NotIn, which a missing label satisfies too, or Exists, perhaps
 * with bounds. */
static enum verdict expression_on_complement(const struct expression *e,
                                             const struct requirement *r)
{
    bool may_be_missing = requirement_operator(r) == OP_NOT_IN;
    bool allowed = false; /* one of the expression's values */
    int64_t n;
    for (uint32_t i = 0; i < e->values.count; i++)
        allowed |= requirement_has(r, e->values.items[i]);

    switch ((enum requirement_op)e->op) {
    case OP_IN:
        return allowed ? SOMETIMES : NEVER;
    case OP_NOT_IN:
        return allowed ? SOMETIMES : ALWAYS;
    case OP_EXISTS:
        return may_be_missing ? SOMETIMES : ALWAYS;
    case OP_DOES_NOT_EXIST:
        return may_be_missing ? SOMETIMES : NEVER;
    case OP_GT:
        return !number_of(e, &n)                 ? NEVER
               : r->gte.set && r->gte.value > n  ? ALWAYS
               : r->lte.set && r->lte.value <= n ? NEVER
                                                 : SOMETIMES;
    case OP_LT:
        return !number_of(e, &n)                 ? NEVER
               : r->lte.set && r->lte.value < n  ? ALWAYS
               : r->gte.set && r->gte.value >= n ? NEVER
                                                 : SOMETIMES;
    case OP_GTE:
    case OP_LTE:
    case OP_UNSET:
        return NEVER;
    }
    KV_UNREACHABLE();
}

static enum verdict verdict_of(bool holds)
{
    return holds ? ALWAYS : NEVER;
}

/* The label is one of a set of values; the empty set is "not there". */
static enum verdict expression_on_set(const struct expression *e, const struct requirement *r)
{
    if (r->complement)
        return expression_on_complement(e, r);
    if (!r->values.count)
        return verdict_of(expression_holds(e, STR_NONE));
    struct doubt d = { 0 };
    for (uint32_t i = 0; i < r->values.count; i++)
        doubt_add(&d, verdict_of(expression_holds(e, r->values.items[i])));
    return doubt_verdict(&d);
}

/* --- labels of nodes and claims --- */

static const struct str new_host = STR("(a new host)"); /* no label value looks like this */

/* Labels that every node of a pool has, whatever the claim says. */
static struct str pool_label(const struct nodepool *pool, struct str key)
{
    const struct node_class_ref *class = &pool->spec.template.spec.node_class_ref;
    if (str_eqz(key, LABEL_NODEPOOL))
        return pool->object.meta.name;
    if (str_eqz(key, LABEL_REGISTERED) || str_eqz(key, LABEL_INITIALIZED))
        return STR("true");
    ptrdiff_t slash = str_find(key, '/');
    if (slash > 0 && str_eq(str_sub(key, 0, (size_t)slash), class->group)) {
        AUTO_BUF kind = { 0 };
        for (size_t i = 0; i < class->kind.len; i++)
            buf_addc(&kind, char_lower(class->kind.p[i]));
        if (str_eq(str_sub(key, (size_t)slash + 1, key.len), buf_str(&kind)))
            return class->name;
    }
    return STR_NONE;
}

/* Old names of labels are found under the new ones: the kubelet writes both. */
static struct str node_label(const struct node *node, struct str key)
{
    if (str_eqz(key, LABEL_HOSTNAME))
        return node_hostname(node);
    struct str value = str_map_get(&node->object.meta.labels, key);
    return value.p ? value : str_map_get(&node->object.meta.labels, label_normalise(key));
}

/* STR_NONE: the site itself does not say. */
static struct str own_label(const struct site *p, struct str key)
{
    if (p->maybe_node)
        return node_label(p->maybe_node, key);
    return str_eqz(key, LABEL_HOSTNAME) ? new_host : STR_NONE;
}

/* What a node says itself, or what its claim promises. */
static enum verdict expression_on_site(const struct site *p, const struct expression *e,
                                       struct str value)
{
    struct str key = label_normalise(e->key);
    const struct requirement *promised = value.p ? NULL : requirements_find(&p->promised, key);
    return promised ? expression_on_set(e, promised) : verdict_of(expression_holds(e, value));
}

/* --- labels of launches --- */

/* What a label may be on the nodes of a blueprint, for each pair of what types and shapes say. */
struct label_view {
    struct map cases; /* type's requirement and shape to the index in `sets` */
    VEC(struct requirement) sets;
};

void views_done(struct checker *c)
{
    vec_each(&c->view_list, struct label_view *, view) {
        map_done(&(*view)->cases);
        vec_done(&(*view)->sets);
    }
    vec_done(&c->view_list);
    str_table_done(&c->views);
}

bool combination_next(const struct blueprint *b, struct combination *at)
{
    const struct instance_types *s = b->pool->types;
    for (; at->type_at < b->launch->type_count; at->type_at++, at->offering_at = 0) {
        uint32_t type = b->launch->types[at->type_at];
        uint32_t first = s->offering_start[type], end = s->offering_start[type + 1];
        while (first + at->offering_at < end) {
            uint32_t offering = first + at->offering_at++;
            if (b->claimed ||
                (bitset_test(&s->available, offering) && b->shapes[s->offering_shape[offering]])) {
                at->type = type;
                at->offering = offering;
                return true;
            }
        }
    }
    return false;
}

/* A reservation's id is the offering's alone: a spot instance of the type is not in one. */
static bool is_of_offering(struct str key)
{
    return str_ends(key, STR("reservation-id"));
}

static void narrow(struct checker *c, struct requirement *set, bool *spoken,
                   const struct requirement *maybe_by)
{
    if (!maybe_by)
        return;
    *set = *spoken ? requirement_intersection(&c->scratch, set, maybe_by) : *maybe_by;
    *spoken = true;
}

static struct requirement label_set(struct checker *c, const struct blueprint *b, struct str key,
                                    const struct requirement *maybe_type,
                                    const struct requirement *maybe_shape)
{
    struct requirement set = { .key = key };
    bool spoken = false;
    narrow(c, &set, &spoken, maybe_shape);
    if (is_of_offering(key) && !b->claimed)
        return set;
    struct str chosen = str_map_get(&b->launch->labels, key);
    if (!chosen.p)
        chosen = pool_label(b->pool->pool, key);
    if (chosen.p) {
        struct requirement one = requirement_in(&c->scratch, key, (struct str_list){ &chosen, 1 });
        narrow(c, &set, &spoken, &one);
    }
    narrow(c, &set, &spoken, maybe_type);
    narrow(c, &set, &spoken, requirements_find(&b->launch->requirements, key));
    return set;
}

static const struct requirement *view_at(struct checker *c, const struct blueprint *b,
                                         struct label_view *view, struct str key,
                                         const struct combination *of)
{
    const struct instance_types *s = b->pool->types;
    const struct requirement *type = instance_type_requirement(s, of->type, key);
    uint32_t shape_ix = s->offering_shape[of->offering];
    const struct requirement *shape =
        b->claimed ? NULL : requirements_find(&s->shapes[shape_ix].requirements, key);
    uint64_t type_id = type ? (uint64_t)(type - s->requirement_pool) + 1 : 0;
    uint64_t id = type_id << 32 | (shape ? shape_ix + 1 : 0);
    uintptr_t at;
    if (!map_get(&view->cases, id, &at)) {
        at = view->sets.count;
        vec_push(&view->sets, label_set(c, b, key, type, shape));
        map_put(&view->cases, id, at);
    }
    return &view->sets.items[at];
}

static struct label_view *view_of(struct checker *c, const struct blueprint *b, struct str key)
{
    AUTO_BUF id = { 0 };
    buf_addf(&id, "%u %.*s", b->id, STR_ARG(key));
    struct label_view *view = str_table_get(&c->views, buf_str(&id));
    if (view)
        return view;
    view = arena_new(&c->scratch, struct label_view);
    combination_each(b, of) view_at(c, b, view, key, &of);
    str_table_put(&c->views, buf_str(&id), view);
    vec_push(&c->view_list, view);
    return view;
}

/* --- asking --- */

struct question {
    struct checker *c;
    const struct site *site;
    const struct combination *maybe_of; /* NULL: all of them at once */
    struct str maybe_key, value;        /* that label has that value */
};

static enum verdict expression_verdict(const struct question *q, const struct expression *e)
{
    const struct blueprint *b = q->site->maybe_blueprint;
    struct str key = label_normalise(e->key);
    if (q->maybe_key.p && str_eq(key, q->maybe_key))
        return verdict_of(expression_holds(e, q->value));
    struct str value = own_label(q->site, e->key);
    if (value.p || !b)
        return expression_on_site(q->site, e, value);

    struct label_view *view = view_of(q->c, b, key);
    if (q->maybe_of)
        return expression_on_set(e, view_at(q->c, b, view, key, q->maybe_of));
    struct doubt d = { 0 };
    vec_each(&view->sets, struct requirement, set)
        doubt_add(&d, expression_on_set(e, set));
    return doubt_verdict(&d);
}

/* Of a node's fields only the name can be asked for, and nodes yet to come have none. */
static enum verdict field_verdict(const struct question *q, const struct expression *e)
{
    if (!str_eqz(e->key, "metadata.name"))
        return NEVER;
    const struct node *node = q->site->maybe_node;
    return verdict_of(expression_holds(e, node ? node->object.meta.name : new_host));
}

static enum verdict term_verdict(const struct question *q, const struct node_selector_term *term)
{
    enum verdict v = term->expressions.count || term->fields.count ? ALWAYS : NEVER;
    for (uint32_t i = 0; v && i < term->expressions.count; i++)
        v = both(v, expression_verdict(q, &term->expressions.items[i]));
    for (uint32_t i = 0; v && i < term->fields.count; i++)
        v = both(v, field_verdict(q, &term->fields.items[i]));
    return v;
}

static enum verdict answer(const struct question *q, const struct ask *ask)
{
    enum verdict v = ALWAYS;
    for (uint32_t i = 0; v && i < ask->selector.count; i++) {
        const struct str_pair *pair = &ask->selector.items[i];
        struct expression e = { .key = pair->key, .op = OP_IN, .values = { &pair->value, 1 } };
        v = both(v, expression_verdict(q, &e));
    }
    if (!v || !ask->has_terms)
        return v;
    enum verdict any = NEVER;
    for (uint32_t i = 0; any != ALWAYS && i < ask->term_count; i++)
        any = either(any, term_verdict(q, &ask->terms[i]));
    return both(v, any);
}

static bool combination_has(struct question *q, const struct combination *of)
{
    const struct blueprint *b = q->site->maybe_blueprint;
    struct label_view *view = view_of(q->c, b, q->maybe_key);
    return requirement_has(view_at(q->c, b, view, q->maybe_key, of), q->value);
}

static enum verdict answer_each(struct question *q, const struct ask *ask)
{
    struct doubt d = { 0 };
    combination_each(q->site->maybe_blueprint, of)
    {
        if (q->maybe_key.p && !combination_has(q, &of))
            continue;
        q->maybe_of = &of;
        doubt_add(&d, answer(q, ask));
        if (d.some_hold && d.some_fail)
            break;
    }
    q->maybe_of = NULL;
    return doubt_verdict(&d);
}

enum verdict ask_verdict_of(struct checker *c, uint32_t ask, const struct site *p,
                            const struct combination *of)
{
    struct question q = { .c = c, .site = p, .maybe_of = of };
    return answer(&q, &c->asks.items[ask]);
}

enum verdict ask_verdict_where(struct checker *c, uint32_t ask, const struct site *p,
                               struct str key, struct str value)
{
    struct question q = { .c = c, .site = p, .maybe_key = label_normalise(key), .value = value };
    enum verdict v = answer(&q, &c->asks.items[ask]);
    return v == SOMETIMES && p->maybe_blueprint ? answer_each(&q, &c->asks.items[ask]) : v;
}

enum verdict ask_verdict(struct checker *c, uint32_t ask, const struct site *p)
{
    struct question q = { .c = c, .site = p };
    const struct ask *a = &c->asks.items[ask];
    if (!p->maybe_blueprint)
        return answer(&q, a);
    if (p->maybe_node) { /* has labels of its own too: do not remember */
        enum verdict all = answer(&q, a);
        return all == SOMETIMES ? answer_each(&q, a) : all;
    }
    uint64_t id = (uint64_t)ask << 32 | p->maybe_blueprint->id;
    uintptr_t known;
    if (map_get(&c->verdicts, id, &known))
        return (enum verdict)known;
    enum verdict v = answer(&q, a);
    if (v == SOMETIMES)
        v = answer_each(&q, a);
    map_put(&c->verdicts, id, (uintptr_t)v);
    return v;
}

static void value_add(struct str *items, uint32_t *count, struct str value)
{
    if (!list_has((struct str_list){ items, *count }, value))
        items[(*count)++] = value;
}

static void values_add(struct label_values *out, struct str *items, const struct requirement *set)
{
    out->open |= set->complement;
    out->missing |= set->complement ? requirement_operator(set) == OP_NOT_IN : !set->values.count;
    for (uint32_t i = 0; !set->complement && i < set->values.count; i++)
        value_add(items, &out->count, set->values.items[i]);
}

struct label_values site_label(struct checker *c, const struct site *p, struct str key)
{
    struct label_values out = { 0 };
    struct str known = own_label(p, key);
    if (!p->maybe_node && known.p)
        known = str_of(p->name); /* each its own, and no label value has blanks */
    if (known.p) {
        struct str *one = arena_new(&c->scratch, struct str);
        *one = known;
        return (struct label_values){ .items = one, .count = 1 };
    }

    struct requirement nothing = { 0 };
    const struct requirement *promised = requirements_find(&p->promised, label_normalise(key));
    const struct requirement *sets = promised ? promised : &nothing;
    size_t set_count = 1, value_count = 0;
    if (p->maybe_blueprint) {
        struct label_view *view = view_of(c, p->maybe_blueprint, label_normalise(key));
        sets = view->sets.items;
        set_count = view->sets.count;
    }
    for (size_t i = 0; i < set_count; i++)
        value_count += sets[i].complement ? 0 : sets[i].values.count;
    struct str *items = arena_array(&c->scratch, struct str, value_count);
    for (size_t i = 0; i < set_count; i++)
        values_add(&out, items, &sets[i]);
    out.items = items;
    return out;
}

/* --- asks and blueprints: what is equal is one --- */

void id_add_text(struct buf *b, struct str s)
{
    buf_addf(b, "%zu:", s.len);
    buf_add(b, s);
}

void id_add_expressions(struct buf *b, const struct expression *items, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        buf_addf(b, "(%d", items[i].op);
        id_add_text(b, items[i].key);
        for (uint32_t v = 0; v < items[i].values.count; v++)
            id_add_text(b, items[i].values.items[v]);
        buf_addc(b, ')');
    }
}

void id_add_map(struct buf *b, const struct str_map *map)
{
    for (uint32_t i = 0; i < map->count; i++) {
        id_add_text(b, map->items[i].key);
        id_add_text(b, map->items[i].value);
    }
}

uint32_t ask_add(struct checker *c, const struct ask *ask)
{
    AUTO_BUF id = { 0 };
    id_add_map(&id, &ask->selector);
    buf_addz(&id, ask->has_terms ? "any of" : "");
    for (uint32_t i = 0; i < ask->term_count; i++) {
        const struct node_selector_term *term = &ask->terms[i];
        buf_addc(&id, '[');
        id_add_expressions(&id, term->expressions.items, term->expressions.count);
        buf_addc(&id, '/');
        id_add_expressions(&id, term->fields.items, term->fields.count);
        buf_addc(&id, ']');
    }
    uintptr_t known = (uintptr_t)str_table_get(&c->ask_ids, buf_str(&id));
    if (known)
        return (uint32_t)(known - 1);
    vec_push(&c->asks, *ask);
    str_table_put(&c->ask_ids, buf_str(&id), (void *)(uintptr_t)c->asks.count);
    return (uint32_t)c->asks.count - 1;
}

struct ask ask_of_spec(const struct pod_spec *spec, const struct affinity *maybe_affinity)
{
    const struct node_selector *required =
        maybe_affinity ? maybe_affinity->node.maybe_required : NULL;
    struct ask ask = { .selector = spec->node_selector };
    if (required) {
        ask.terms = required->terms.items;
        ask.term_count = required->terms.count;
        ask.has_terms = true;
    }
    return ask;
}

/* The list of types stands for the requirement on the instance type: check_claims.c compares them. */
static void add_requirements(struct buf *b, const struct requirements *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct requirement *r = &set->items[i];
        if (str_eqz(r->key, LABEL_INSTANCE_TYPE))
            continue;
        id_add_text(b, r->key);
        buf_addf(b, "%d %d %ld %d %ld", r->complement, r->gte.set, (long)r->gte.value, r->lte.set,
                 (long)r->lte.value);
        for (uint32_t v = 0; v < r->values.count; v++)
            id_add_text(b, r->values.items[v]);
        buf_addc(b, ';');
    }
}

bool type_is_allowed(const struct instance_types *s, uint32_t type, const struct requirements *set)
{
    for (uint32_t i = 0; i < set->count; i++) {
        const struct requirement *r = &set->items[i];
        const struct requirement *says = instance_type_requirement(s, type, r->key);
        struct requirements asked = { r, 1 }, has = { says, says ? 1 : 0 };
        if (!requirements_intersects(&has, &asked, NULL))
            return false;
    }
    return true;
}

struct blueprint *blueprint_add(struct checker *c, const struct plan_launch *launch, bool claimed)
{
    AUTO_BUF id = { 0 };
    buf_addf(&id, "%d %u ", claimed, launch->pool);
    buf_add(&id,
            (struct str){ (const char *)launch->types, launch->type_count * sizeof(uint32_t) });
    buf_addc(&id, ' ');
    add_requirements(&id, &launch->requirements);
    id_add_map(&id, &launch->labels);
    struct blueprint *b = str_table_get(&c->print_ids, buf_str(&id));
    if (b)
        return b;

    b = arena_new(&c->scratch, struct blueprint);
    b->id = c->print_ids.live_count;
    b->launch = launch;
    b->claimed = claimed;
    b->pool = &c->snap->pools[launch->pool];
    const struct instance_types *s = b->pool->types;
    bool *shapes = arena_array(&c->scratch, bool, s->shape_count);
    for (uint32_t i = 0; i < s->shape_count; i++)
        shapes[i] =
            requirements_intersects(&launch->requirements, &s->shapes[i].requirements, NULL);
    b->shapes = shapes;
    str_table_put(&c->print_ids, buf_str(&id), b);
    return b;
}
