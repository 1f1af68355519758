/* From nodes to a JSON text and the position of each of its values. An alias is written as what it
 * stands for, at the positions of what it stands for: that is where an error in it is mended.
 *
 * The expansion of a small text can be astronomic (ten lines of ten aliases each), so everything
 * that is written, and every member that a merge key looks at, is paid for out of one limit. */
#include "codec/yaml_inner.h"

void yaml_expander_done(struct yaml_expander *e)
{
    buf_done(&e->json);
    vec_done(&e->positions);
    vec_done(&e->members);
    vec_done(&e->sorted);
}

static const struct node *node_of(const struct yaml_expander *e, uint32_t ix)
{
    return &e->tree->nodes.items[ix];
}

/* Anchors name values, never aliases: one step is enough. */
static const struct node *target_of(const struct yaml_expander *e, const struct node *n)
{
    return n->kind == NODE_ALIAS ? node_of(e, n->first) : n;
}

static int fail_at(struct yaml_expander *e, const struct node *n, struct err *err, const char *what)
{
    e->at = n->pos;
    return err_set(err, ERR_INVALID, "%s", what);
}

static int check_limit(struct yaml_expander *e, const struct node *n, struct err *err)
{
    if (e->spent + e->json.len <= e->limit)
        return 0;
    return fail_at(e, e->source ? e->source : n, err,
                   "the text becomes too large when its aliases are expanded");
}

/* --- mappings --- */

static int collect_members(struct yaml_expander *e, uint32_t mapping, size_t depth,
                           struct err *err);

/* The value of a merge key: a mapping, or a sequence of them, the first of which wins. */
static int collect_merged(struct yaml_expander *e, const struct node *value, size_t depth,
                          struct err *err)
{
    const struct node *n = target_of(e, value);
    if (!e->source)
        e->source = value;
    if (depth > YAML_DEPTH_MAX)
        return fail_at(e, e->source, err, "merge keys are nested too deep");
    if (n->kind == NODE_MAPPING)
        return collect_members(e, (uint32_t)(n - e->tree->nodes.items), depth, err);
    if (n->kind != NODE_SEQUENCE)
        return fail_at(e, value, err, "the value of << is a mapping or a list of mappings");
    for (uint32_t ix = n->first; ix; ix = node_of(e, ix)->next) {
        const struct node *item = target_of(e, node_of(e, ix));
        if (item->kind != NODE_MAPPING)
            return fail_at(e, node_of(e, ix), err, "the list of << holds mappings only");
        if (collect_members(e, (uint32_t)(item - e->tree->nodes.items), depth, err) < 0)
            return -1;
    }
    return 0;
}

static int collect_member(struct yaml_expander *e, uint32_t mapping, uint32_t key_node,
                          struct err *err)
{
    const struct node *key = target_of(e, node_of(e, key_node));
    if (key->kind == NODE_NULL)
        return fail_at(e, node_of(e, key_node), err, "a key is a string, not null");
    if (key->kind == NODE_MAPPING || key->kind == NODE_SEQUENCE)
        return fail_at(e, node_of(e, key_node), err,
                       "a key is a string, not a mapping or sequence");
    vec_push(&e->members, (struct yaml_member){ .key = node_text(e->tree, key),
                                                .key_node = key_node,
                                                .value_node = node_of(e, key_node)->next,
                                                .owner = mapping });
    return 0;
}

/* Push the members of a mapping: its own first, then those it merges, nearest first. */
static int collect_members(struct yaml_expander *e, uint32_t mapping, size_t depth, struct err *err)
{
    const struct node *merge = NULL;
    for (uint32_t ix = node_of(e, mapping)->first; ix;
         ix = node_of(e, node_of(e, ix)->next)->next) {
        const struct node *key = node_of(e, ix);
        if (key->merge) {
            if (merge)
                return fail_at(e, key, err, "duplicate key \"<<\": give one << a list");
            merge = node_of(e, key->next);
        } else if (collect_member(e, mapping, ix, err) < 0) {
            return -1;
        }
        if (depth > 0) {
            e->spent += 1 + key->text_len;
            if (check_limit(e, key, err) < 0)
                return -1;
        }
    }
    if (depth > 0)
        e->spent++;
    if (!merge)
        return check_limit(e, node_of(e, mapping), err);
    return collect_merged(e, merge, depth + 1, err);
}

static int member_cmp(const void *a, const void *b)
{
    const struct yaml_member *x = *(struct yaml_member *const *)a;
    const struct yaml_member *y = *(struct yaml_member *const *)b;
    int c = str_cmp(x->key, y->key);
    return c ? c : (x > y) - (x < y); /* one array: nearest first */
}

/* Of several members with one key the nearest stays; two in one mapping are an error. */
static int settle_duplicates(struct yaml_expander *e, size_t base, struct err *err)
{
    vec_clear(&e->sorted);
    for (size_t i = base; i < e->members.count; i++)
        vec_push(&e->sorted, &e->members.items[i]);
    if (e->sorted.count < 2)
        return 0;
    qsort(e->sorted.items, e->sorted.count, sizeof *e->sorted.items, member_cmp);
    for (size_t i = 1; i < e->sorted.count; i++) {
        struct yaml_member *a = e->sorted.items[i - 1], *b = e->sorted.items[i];
        if (!str_eq(a->key, b->key))
            continue;
        if (a->owner == b->owner && a->key_node != b->key_node) {
            e->at = node_of(e, b->key_node)->pos;
            return err_set(err, ERR_INVALID, "duplicate key %s, first on line %u",
                           STR_SHOWN(b->key), node_of(e, a->key_node)->pos.line);
        }
        b->hidden = true;
    }
    return 0;
}

/* --- values --- */

static int expand_node(struct yaml_expander *e, uint32_t ix, size_t depth, struct err *err);

static int expand_mapping(struct yaml_expander *e, uint32_t mapping, size_t depth, struct err *err)
{
    size_t base = e->members.count;
    const struct node *outer = e->source;
    bool first = true;
    if (collect_members(e, mapping, 0, err) < 0 || settle_duplicates(e, base, err) < 0)
        return -1;
    e->source = outer;
    buf_addc(&e->json, '{');
    size_t end = e->members.count;
    for (size_t i = base; i < end; i++) {
        struct yaml_member m = e->members.items[i];
        if (m.hidden)
            continue;
        if (!first)
            buf_addc(&e->json, ',');
        first = false;
        vec_push(&e->positions, target_of(e, node_of(e, m.key_node))->pos);
        json_write_string(m.key, &e->json);
        buf_addc(&e->json, ':');
        if (expand_node(e, m.value_node, depth, err) < 0)
            return -1;
    }
    buf_addc(&e->json, '}');
    e->members.count = base;
    return 0;
}

static int expand_sequence(struct yaml_expander *e, const struct node *sequence, size_t depth,
                           struct err *err)
{
    buf_addc(&e->json, '[');
    for (uint32_t ix = sequence->first; ix; ix = node_of(e, ix)->next) {
        if (ix != sequence->first)
            buf_addc(&e->json, ',');
        if (expand_node(e, ix, depth, err) < 0)
            return -1;
    }
    buf_addc(&e->json, ']');
    return 0;
}

static int expand_value(struct yaml_expander *e, const struct node *n, size_t depth,
                        struct err *err)
{
    vec_push(&e->positions, n->pos);
    switch ((enum node_kind)n->kind) {
    case NODE_STRING:
        json_write_string(node_text(e->tree, n), &e->json);
        return 0;
    case NODE_LITERAL:
        buf_add(&e->json, node_text(e->tree, n));
        return 0;
    case NODE_NULL:
        buf_addz(&e->json, "null");
        return 0;
    case NODE_SEQUENCE:
        return expand_sequence(e, n, depth + 1, err);
    case NODE_MAPPING:
        return expand_mapping(e, (uint32_t)(n - e->tree->nodes.items), depth + 1, err);
    case NODE_ALIAS:
        break;
    }
    KV_UNREACHABLE();
}

/* `depth` counts the containers around the node; aliases can nest deeper than the text does. */
static int expand_node(struct yaml_expander *e, uint32_t ix, size_t depth, struct err *err)
{
    const struct node *n = node_of(e, ix), *outer = e->source;
    if (check_limit(e, n, err) < 0)
        return -1;
    if (n->kind == NODE_ALIAS && !e->source)
        e->source = n;
    const struct node *target = target_of(e, n);
    bool container = target->kind == NODE_SEQUENCE || target->kind == NODE_MAPPING;
    if (container && depth == YAML_DEPTH_MAX)
        return fail_at(e, e->source ? e->source : n, err,
                       "aliases are nested too deep when they are expanded");
    int rc = expand_value(e, target, depth, err);
    e->source = outer;
    return rc;
}

int yaml_expand(struct yaml_expander *e, const struct yaml_tree *tree, struct err *err)
{
    e->tree = tree;
    e->spent += e->json.len;
    buf_clear(&e->json);
    vec_clear(&e->positions);
    vec_clear(&e->members);
    e->source = NULL;
    return expand_node(e, 0, 0, err);
}
