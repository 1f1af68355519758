#include "sim/binder_match.h"

#include "api/labels.h"

struct str node_label(const struct node *node, struct str key)
{
    if (str_eqz(key, LABEL_HOSTNAME))
        return node_hostname(node);
    struct str value = str_map_get(&node->object.meta.labels, key);
    return value.p ? value : str_map_get(&node->object.meta.labels, label_normalise(key));
}

static bool list_has(struct str_list list, struct str s)
{
    for (uint32_t i = 0; i < list.count; i++) {
        if (str_eq(list.items[i], s))
            return true;
    }
    return false;
}

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
    case OP_LT:
        if (!value.p || !str_to_i64(value, &have) || e->values.count != 1 ||
            !str_to_i64(e->values.items[0], &want))
            return false;
        return e->op == OP_GT ? have > want : have < want;
    case OP_GTE: /* node affinity has no such operators */
    case OP_LTE:
    case OP_UNSET:
        return false;
    }
    KV_UNREACHABLE();
}

static bool term_matches(const struct node *node, const struct node_selector_term *term)
{
    if (!term->expressions.count && !term->fields.count)
        return false; /* an empty term finds nothing */
    for (uint32_t i = 0; i < term->expressions.count; i++) {
        const struct expression *e = &term->expressions.items[i];
        if (!expression_holds(e, node_label(node, e->key)))
            return false;
    }
    for (uint32_t i = 0; i < term->fields.count; i++) {
        const struct expression *e = &term->fields.items[i];
        if (!str_eqz(e->key, "metadata.name") || !expression_holds(e, node->object.meta.name))
            return false;
    }
    return true;
}

bool node_matches_terms(const struct node *node, const struct node_selector_term *terms,
                        uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (term_matches(node, &terms[i]))
            return true;
    }
    return false;
}

bool node_matches_pod(const struct node *node, const struct pod_spec *spec,
                      const struct affinity *maybe_affinity)
{
    for (uint32_t i = 0; i < spec->node_selector.count; i++) {
        const struct str_pair *pair = &spec->node_selector.items[i];
        struct str value = node_label(node, pair->key);
        if (!value.p || !str_eq(value, pair->value))
            return false;
    }
    const struct node_selector *required =
        maybe_affinity ? maybe_affinity->node.maybe_required : NULL;
    return !required || node_matches_terms(node, required->terms.items, required->terms.count);
}

static bool is_tolerated(const struct taint *taint, const struct toleration *tolerations,
                         uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (toleration_tolerates(&tolerations[i], taint))
            return true;
    }
    return false;
}

const struct taint *node_taint_in_the_way(const struct node *node, unsigned effects,
                                          const struct toleration *tolerations, uint32_t count)
{
    static const struct taint cordoned = { .key = STR("node.kubernetes.io/unschedulable"),
                                           .value = STR(""),
                                           .effect = EFFECT_NO_SCHEDULE };
    for (uint32_t i = 0; i < node->spec.taints.count; i++) {
        const struct taint *taint = &node->spec.taints.items[i];
        if ((effects >> taint->effect & 1) && !is_tolerated(taint, tolerations, count))
            return taint;
    }
    if (node->spec.unschedulable && (effects >> EFFECT_NO_SCHEDULE & 1) &&
        !is_tolerated(&cordoned, tolerations, count))
        return &cordoned;
    return NULL;
}

struct str pod_only_node(const struct affinity *maybe_affinity)
{
    const struct node_selector *required =
        maybe_affinity ? maybe_affinity->node.maybe_required : NULL;
    struct str only = STR_NONE;
    for (uint32_t i = 0; required && i < required->terms.count; i++) {
        const struct node_selector_term *term = &required->terms.items[i];
        struct str here = STR_NONE;
        for (uint32_t k = 0; k < term->fields.count; k++) {
            const struct expression *e = &term->fields.items[k];
            if (str_eqz(e->key, "metadata.name") && e->op == OP_IN && e->values.count == 1)
                here = e->values.items[0];
        }
        if (!here.p || (only.p && !str_eq(only, here)))
            return STR_NONE;
        only = here;
    }
    return only;
}
