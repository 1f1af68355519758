/* The words of explanations: amounts, names, requirements, topology terms.
 *
 * Of two amounts that are compared the need is rounded up and what there is is rounded down, so that a
 * shortage is never hidden by rounding.
 */
#include "sched/explain_inner.h"

#include <inttypes.h>

struct str buf_keep(struct arena *arena, const struct buf *b)
{
    return arena_str(arena, buf_str(b));
}

/* --- names --- */

struct str pool_name(const struct ask *ask)
{
    const struct snapshot *snap = ask->state->model->snap;
    return snap->pools[ask->pool->source].pool->object.meta.name;
}

void add_pool(struct buf *out, const struct ask *ask)
{
    struct str name = pool_name(ask);
    if (name_is_plain(name))
        buf_addf(out, "pool `%.*s`", STR_ARG(name));
    else
        buf_addf(out, "pool %s", STR_SHOWN(name));
}

void add_images(struct buf *out, const struct ask *ask)
{
    const struct model *m = ask->state->model;
    add_text(out, m->snap->fits.items[m->fits[ask->fit].source].images);
}

void add_taint(struct buf *out, const struct taint *taint)
{
    static const char *const effects[] = {
        [EFFECT_ANY] = "",
        [EFFECT_NO_SCHEDULE] = ":NoSchedule",
        [EFFECT_PREFER_NO_SCHEDULE] = ":PreferNoSchedule",
        [EFFECT_NO_EXECUTE] = ":NoExecute",
    };
    add_name(out, taint->key);
    if (taint->value.len) {
        buf_addc(out, '=');
        add_name(out, taint->value);
    }
    buf_addz(out, effects[taint->effect]);
}

void add_port(struct buf *out, const struct host_port *port)
{
    static const char *const protocols[] = {
        [PROTOCOL_UNSET] = "TCP",
        [PROTOCOL_TCP] = "TCP",
        [PROTOCOL_UDP] = "UDP",
        [PROTOCOL_SCTP] = "SCTP",
    };
    if (port->ip.len && !str_eq(port->ip, STR("0.0.0.0"))) {
        add_name(out, port->ip);
        buf_addc(out, ':');
    }
    buf_addf(out, "%" PRId64 "/%s", port->port, protocols[port->protocol]);
}

/* --- amounts --- */

bool resource_is_bytes(struct str resource)
{
    return str_eq(resource, STR("memory")) || str_eq(resource, STR("ephemeral-storage")) ||
           str_eq(resource, STR("storage")) || str_starts(resource, STR("hugepages-"));
}

/* `value` / 10^digits without trailing zeros. */
static void add_decimal(struct buf *out, int64_t value, uint32_t digits)
{
    int64_t one = digits == 3 ? 1000 : 100;
    int64_t part = value % one;
    buf_addf(out, "%" PRId64, value / one);
    if (!part)
        return;
    buf_addf(out, ".%0*" PRId64, (int)digits, part);
    while (out->p[out->len - 1] == '0')
        buf_cut(out, out->len - 1);
}

/* In the largest unit of which there is at least one, to the hundredth. */
static void add_bytes(struct buf *out, int64_t milli, bool up)
{
    static const char *const units[] = { "", "Ki", "Mi", "Gi", "Ti", "Pi" };
    int64_t bytes = milli / 1000 + (up && milli % 1000);
    uint32_t unit = 0;
    int64_t size = 1;
    while (unit + 1 < KV_COUNT_OF(units) && bytes / size >= 1024) {
        size *= 1024;
        unit++;
    }
    __extension__ __int128 hundredths = (__extension__(__int128) bytes * 100 + (up ? size - 1 : 0));
    add_decimal(out, (int64_t)(hundredths / size), 2);
    buf_addz(out, units[unit]);
}

static void add_rounded(struct buf *out, struct str resource, int64_t milli, bool up)
{
    if (milli < 0) {
        buf_addc(out, '-');
        add_rounded(out, resource, milli == INT64_MIN ? INT64_MAX : -milli, !up);
    } else if (resource_is_bytes(resource)) {
        add_bytes(out, milli, up);
    } else {
        add_decimal(out, milli, 3);
    }
}

void add_need(struct buf *out, struct str resource, int64_t milli)
{
    add_rounded(out, resource, milli, true);
}

void add_have(struct buf *out, struct str resource, int64_t milli)
{
    add_rounded(out, resource, milli, false);
}

/* --- requirements --- */

static bool has_bounds(const struct requirement *r)
{
    return r->gte.set || r->lte.set;
}

static void add_bounds(struct buf *out, const struct requirement *r)
{
    if (r->gte.set && r->lte.set)
        buf_addf(out, "%" PRId64 " to %" PRId64, r->gte.value, r->lte.value);
    else if (r->gte.set)
        buf_addf(out, "at least %" PRId64, r->gte.value);
    else
        buf_addf(out, "at most %" PRId64, r->lte.value);
}

void add_key(struct buf *out, struct str key)
{
    static const struct {
        const char *key, *words;
    } known[] = {
        { LABEL_ZONE, "zone" },
        { LABEL_CAPACITY_TYPE, "capacity type" },
        { LABEL_INSTANCE_TYPE, "instance type" },
        { LABEL_NODEPOOL, "NodePool" },
    };
    for (size_t i = 0; i < KV_COUNT_OF(known); i++) {
        if (str_eqz(key, known[i].key)) {
            buf_addz(out, known[i].words);
            return;
        }
    }
    add_name(out, key);
}

void add_want(struct buf *out, const struct requirement *r)
{
    switch (requirement_operator(r)) {
    case OP_DOES_NOT_EXIST:
        buf_addz(out, "no label ");
        add_name(out, r->key);
        return;
    case OP_IN:
        add_key(out, r->key);
        buf_addc(out, ' ');
        add_names(out, r->values);
        return;
    case OP_EXISTS:
        if (!has_bounds(r)) {
            buf_addz(out, "a label ");
            add_name(out, r->key);
            return;
        }
        add_key(out, r->key);
        buf_addz(out, " of ");
        add_bounds(out, r);
        return;
    case OP_NOT_IN:
        add_key(out, r->key);
        if (has_bounds(r)) {
            buf_addz(out, " of ");
            add_bounds(out, r);
        }
        buf_addz(out, " other than ");
        add_names(out, r->values);
        return;
    case OP_UNSET:
    case OP_GT:
    case OP_LT:
    case OP_GTE:
    case OP_LTE:
        break; /* never what a set looks like */
    }
    KV_UNREACHABLE();
}

void add_values(struct buf *out, const struct requirement *r)
{
    if (!r->complement && !r->values.count) {
        buf_addz(out, "no such label");
    } else if (!r->complement) {
        add_names(out, r->values);
    } else {
        if (has_bounds(r))
            add_bounds(out, r);
        if (r->values.count) {
            buf_addz(out, has_bounds(r) ? " but not " : "all but ");
            add_names(out, r->values);
        } else if (!has_bounds(r)) {
            buf_addz(out, "any value");
        }
    }
}

/* --- topology --- */

/* "app=web", "tier in (a, b)", "!canary" */
static void add_expression(struct buf *out, const struct expression *e)
{
    buf_addz(out, e->op == OP_DOES_NOT_EXIST ? "!" : "");
    add_name(out, e->key);
    if (e->op == OP_IN && e->values.count == 1) {
        buf_addc(out, '=');
        if (e->values.items[0].len)
            add_name(out, e->values.items[0]);
    } else if (e->op == OP_IN || e->op == OP_NOT_IN) {
        buf_addz(out, e->op == OP_IN ? " in (" : " notin (");
        add_names(out, e->values);
        buf_addc(out, ')');
    }
}

static void add_selectors(struct buf *out, const struct group *g)
{
    if (!g->selector_count) {
        buf_addz(out, "no selector");
        return;
    }
    for (uint32_t i = 0; i < g->selector_count; i++) {
        const struct label_selector *selector = &g->selectors[i];
        buf_addz(out, i ? " and " : "");
        if (!selector->expressions.count)
            buf_addz(out, "any labels");
        for (uint32_t k = 0; k < selector->expressions.count; k++) {
            buf_addz(out, k ? "," : "");
            add_expression(out, &selector->expressions.items[k]);
        }
    }
}

void add_group(struct buf *out, const struct model *m, const struct group *g)
{
    switch (g->kind) {
    case GROUP_SPREAD:
        buf_addz(out, "spread over ");
        add_name(out, m->keys[g->key].name);
        buf_addf(out, " with max skew %" PRId64, g->max_skew);
        if (g->min_domains > 1)
            buf_addf(out, " and at least %" PRId64 " domains", g->min_domains);
        return;
    case GROUP_AFFINITY:
    case GROUP_ANTI:
        buf_addz(out, g->kind == GROUP_ANTI ? "anti-affinity on " : "affinity on ");
        add_name(out, m->keys[g->key].name);
        buf_addz(out, " with ");
        add_selectors(out, g);
        return;
    }
    KV_UNREACHABLE();
}
