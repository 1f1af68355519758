/* Rules in words, for who reads what an image asks for. They are read from the rules as they were written:
 * compiled ones no longer tell. Texts are the image author's, and are quoted where they could do harm.
 *
 *     rule "gpu"
 *       pci.device: vendor is "10de" and class matches "^03"
 *       and one of
 *       - kernel.version: full is at least version 5.15
 *       - kernel.loadedmodule: nvidia exists
 */
#include "cmd/image_inner.h"

#define VALUES_SHOWN_MAX 12

static void add_indent(uint32_t indent, struct buf *out)
{
    buf_addf(out, "%*s", (int)indent, "");
}

static void add_values(const json_val *values, const char *one, const char *several,
                       struct buf *out)
{
    size_t count = json_count(values), shown = 0;
    buf_addz(out, count == 1 ? one : several);
    json_each_item(values, v) {
        if (shown == VALUES_SHOWN_MAX)
            break;
        buf_addf(out, "%s%s", shown++ ? ", " : " ", STR_SHOWN(json_str(v)));
    }
    if (count > VALUES_SHOWN_MAX)
        buf_addf(out, " and %zu more", count - VALUES_SHOWN_MAX);
}

/* "is at least 5", "is above version 1.2 and below version 2". */
static void add_bounds(const json_val *expression, const char *first, const char *second,
                       struct buf *out)
{
    const json_val *values = json_get(expression, STR("value"));
    bool versions = str_eqz(json_str(json_get(expression, STR("type"))), "version");
    const char *words[] = { first, second };
    for (size_t i = 0; i < 2 && words[i]; i++) {
        buf_addf(out, "%s%s ", words[i], versions ? " version" : "");
        struct str value = json_str(json_at(values, i));
        name_format(value.p ? value : STR("?"), out);
    }
}

/* What follows the element's name. */
static void add_expression(const json_val *e, struct buf *out)
{
    static const struct {
        const char *op, *first, *second;
    } bounds[] = {
        { "Gt", "is above", NULL },           { "Ge", "is at least", NULL },
        { "Lt", "is below", NULL },           { "Le", "is at most", NULL },
        { "GtLt", "is above", " and below" }, { "GeLe", "is from", " to" },
    };
    const json_val *values = json_get(e, STR("value"));
    struct str op = json_str(json_get(e, STR("op")));
    for (size_t i = 0; i < KV_COUNT_OF(bounds); i++) {
        if (str_eqz(op, bounds[i].op)) {
            add_bounds(e, bounds[i].first, bounds[i].second, out);
            return;
        }
    }
    if (!op.len)
        buf_addz(out, "is anything, or absent");
    else if (str_eqz(op, "Exists"))
        buf_addz(out, "exists");
    else if (str_eqz(op, "DoesNotExist"))
        buf_addz(out, "does not exist");
    else if (str_eqz(op, "IsTrue"))
        buf_addz(out, "is \"true\"");
    else if (str_eqz(op, "IsFalse"))
        buf_addz(out, "is \"false\"");
    else if (str_eqz(op, "In"))
        add_values(values, "is", "is one of", out);
    else if (str_eqz(op, "NotIn"))
        add_values(values, "is not", "is none of", out);
    else if (str_eqz(op, "InRegexp"))
        add_values(values, "matches", "matches one of", out);
    else
        buf_addf(out, "%s, which is no operator", STR_SHOWN(op));
}

static void add_term(const json_val *term, struct buf *out)
{
    const json_val *name = json_get(term, STR("matchName"));
    const json_val *expressions = json_get(term, STR("matchExpressions"));
    struct str feature = json_str(json_get(term, STR("feature")));
    size_t count = 0;
    name_format(feature.p ? feature : STR(""), out);
    if (json_is_object(name)) {
        buf_addz(out, ": a name ");
        add_expression(name, out);
        count++;
    }
    json_each_member(expressions, key, e) {
        buf_addz(out, count++ ? " and " : ": ");
        name_format(json_key(key), out);
        buf_addc(out, ' ');
        add_expression(e, out);
    }
    if (!count)
        buf_addz(out, ": is there");
}

static void add_terms(const json_val *terms, uint32_t indent, struct buf *out)
{
    json_each_item(terms, term) {
        add_indent(indent, out);
        add_term(term, out);
        buf_addc(out, '\n');
    }
}

/* An alternative: its terms behind a dash. */
static void add_alternative(const json_val *alternative, uint32_t indent, struct buf *out)
{
    const json_val *terms = json_get(alternative, STR("matchFeatures"));
    size_t before = out->len;
    add_terms(terms, indent + 2, out);
    if (out->len > before)
        out->p[before + indent] = '-';
}

static void add_rule(const json_val *rule, uint32_t indent, struct buf *out)
{
    struct str name = json_str(json_get(rule, STR("name")));
    const json_val *terms = json_get(rule, STR("matchFeatures"));
    const json_val *any = json_get(rule, STR("matchAny"));
    add_indent(indent, out);
    buf_addf(out, "rule %s%s\n", STR_SHOWN(name),
             json_str(json_get(rule, STR("varsTemplate"))).len
                 ? ", which only NFD can evaluate: it has a varsTemplate"
                 : "");
    add_terms(terms, indent + 2, out);
    if (json_count(any)) {
        add_indent(indent + 2, out);
        buf_addz(out, json_count(terms) ? "and one of\n" : "one of\n");
        json_each_item(any, alternative)
            add_alternative(alternative, indent + 2, out);
    }
    if (!json_count(terms) && !json_count(any)) {
        add_indent(indent + 2, out);
        buf_addz(out, "asks for nothing\n");
    }
}

void image_rules_format(const json_val *rules, uint32_t indent, struct buf *out)
{
    json_each_item(rules, rule)
        add_rule(rule, indent, out);
}
