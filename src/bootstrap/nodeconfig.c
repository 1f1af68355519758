/* Both sides of a merge are canonical, so the members of their objects are sorted: merging walks
 * the two side by side, and its cost is their size. What a place's rule is follows from its path;
 * the few paths that matter are a small table of states. */
#include "bootstrap/nodeconfig.h"

/* --- is it one? --- */

/* `key:`, `"key":` or `key :` */
static bool has_key(struct str line, const char *key)
{
    struct str name, value;
    if (!str_cut(line, ':', &name, &value))
        return false;
    name = str_trim(name);
    if (name.len > 1 && (name.p[0] == '"' || name.p[0] == '\'') &&
        name.p[name.len - 1] == name.p[0])
        name = str_sub(name, 1, name.len - 2);
    return str_eqz(name, key);
}

/* The first line that is not blank, a comment or a document's start. */
static struct str first_line(struct str text)
{
    struct str line = STR("");
    while (text.len) {
        str_cut(text, '\n', &line, &text);
        line = str_trim(line);
        if (line.len && line.p[0] != '#' && !str_starts(line, STR("---")))
            return line;
    }
    return STR("");
}

bool nodeconfig_is(struct str text, bool any_mapping)
{
    struct str line = first_line(text);
    if (has_key(line, "apiVersion") || has_key(line, "kind"))
        return true;
    struct docs docs;
    struct err err;
    struct text_pos at;
    if (text.len > NODECONFIG_BYTES_MAX || yaml_read(text, &docs, &at, &err) < 0)
        return false;
    const json_val *root = docs.count ? docs.items[0].root : NULL;
    bool is = json_is_object(root) &&
              (any_mapping || json_get(root, STR("apiVersion")) || json_get(root, STR("kind")));
    docs_done(&docs);
    return is;
}

/* --- reading --- */

static const char *const maps[] = {
    "spec",
    "spec.cluster",
    "spec.kubelet",
    "spec.kubelet.config",
    "spec.containerd",
    "spec.containerd.baseRuntimeSpec",
    "spec.instance",
    "spec.instance.localStorage",
    "spec.instance.environment",
    "spec.featureGates",
};

static int expect_text(const struct doc *doc, const char *key, const char *want,
                       struct text_pos *at, struct err *err)
{
    const json_val *v = json_get(doc->root, str_of(key));
    *at = doc_position(doc, v ? v : doc->root);
    if (!v)
        return err_set(err, ERR_INVALID, "%s is missing, expected %s", key, want);
    if (!str_eqz(json_str(v), want)) {
        AUTO_BUF got = { 0 };
        json_write(v, &got);
        return err_set(err, ERR_INVALID, "%s %s, expected %s", key,
                       json_is_string(v) ? STR_SHOWN(json_str(v)) : got.p, want);
    }
    return 0;
}

static int expect_type(const struct doc *doc, const char *path, bool list, struct text_pos *at,
                       struct err *err)
{
    const json_val *v = json_path(doc->root, path);
    if (!v || json_is_null(v) || (list ? json_is_array(v) : json_is_object(v)))
        return 0;
    *at = doc_position(doc, v);
    return err_set(err, ERR_INVALID, "%s is %s, expected %s", path, json_type_name(v),
                   list ? "a list" : "a map");
}

static int check(const struct docs *docs, struct text_pos *at, struct err *err)
{
    *at = (struct text_pos){ 1, 1 };
    if (!docs->count)
        return err_set(err, ERR_INVALID, "the NodeConfig is empty");
    const struct doc *doc = &docs->items[0];
    if (docs->count > 1) {
        *at = doc_position(&docs->items[1], docs->items[1].root);
        return err_set(err, ERR_INVALID,
                       "a second document, which nodeadm would not read: give it a MIME part");
    }
    if (!json_is_object(doc->root)) {
        *at = doc_position(doc, doc->root);
        return err_set(err, ERR_INVALID, "%s, expected a NodeConfig", json_type_name(doc->root));
    }
    if (expect_text(doc, "apiVersion", NODECONFIG_API_VERSION, at, err) < 0 ||
        expect_text(doc, "kind", "NodeConfig", at, err) < 0)
        return -1;
    for (size_t i = 0; i < KV_COUNT_OF(maps); i++)
        if (expect_type(doc, maps[i], false, at, err) < 0)
            return -1;
    if (expect_type(doc, "spec.kubelet.flags", true, at, err) < 0)
        return -1;
    json_each_item(json_path(doc->root, "spec.kubelet.flags"), flag) {
        if (json_is_string(flag))
            continue;
        *at = doc_position(doc, flag);
        return err_set(err, ERR_INVALID, "spec.kubelet.flags: %s, expected a string",
                       json_type_name(flag));
    }
    return 0;
}

int nodeconfig_read(struct str text, struct docs *out, struct text_pos *at, struct err *err)
{
    struct docs docs;
    *at = (struct text_pos){ 1, 1 };
    if (text.len > NODECONFIG_BYTES_MAX)
        return err_set(err, ERR_INVALID, "a NodeConfig longer than %d bytes", NODECONFIG_BYTES_MAX);
    if (yaml_read(text, &docs, at, err) < 0)
        return -1;
    if (check(&docs, at, err) < 0) {
        docs_done(&docs);
        return -1;
    }
    *out = docs;
    return 0;
}

/* --- merging --- */

enum rule {
    RULE_FIELDS, /* of a struct of nodeadm's: what is empty does not count */
    RULE_MAP,    /* what is there counts */
    RULE_APPEND, /* a list */
    RULE_JOIN,   /* a text */
    RULE_TOP,    /* fields, and the way to those with other rules: */
    RULE_SPEC,
    RULE_KUBELET,
    RULE_CONTAINERD,
    RULE_INSTANCE,
};

static const struct step {
    const char *key;
    enum rule at, next;
} steps[] = {
    { "spec", RULE_TOP, RULE_SPEC },
    { "kubelet", RULE_SPEC, RULE_KUBELET },
    { "containerd", RULE_SPEC, RULE_CONTAINERD },
    { "instance", RULE_SPEC, RULE_INSTANCE },
    { "featureGates", RULE_SPEC, RULE_MAP },
    { "config", RULE_KUBELET, RULE_MAP },
    { "flags", RULE_KUBELET, RULE_APPEND },
    { "config", RULE_CONTAINERD, RULE_JOIN },
    { "baseRuntimeSpec", RULE_CONTAINERD, RULE_MAP },
    { "environment", RULE_INSTANCE, RULE_MAP },
};

static enum rule rule_of(enum rule at, struct str key)
{
    for (size_t i = 0; i < KV_COUNT_OF(steps); i++)
        if (steps[i].at == at && str_eqz(key, steps[i].key))
            return steps[i].next;
    return at == RULE_MAP ? RULE_MAP : RULE_FIELDS;
}

static bool is_empty(const json_val *v, enum rule rule)
{
    if (json_is_null(v) || (json_is_array(v) && !json_count(v)))
        return true;
    if (rule == RULE_MAP)
        return false;
    if (json_is_string(v))
        return json_str(v).len == 0;
    if (json_is_number(v))
        return !(json_double(v) < 0 || json_double(v) > 0);
    return json_is_bool(v) ? !json_bool(v) : !json_count(v);
}

static json_mut *merge(struct json_build *b, const json_val *base, const json_val *over,
                       enum rule rule);

/* Both sorted by key. */
static json_mut *merge_members(struct json_build *b, const json_val *base, const json_val *over,
                               enum rule rule)
{
    json_mut *merged = json_new_object(b);
    struct json_span x = json_members(base), y = json_members(over);
    while (x.begin != x.end || y.begin != y.end) {
        int order = x.begin == x.end   ? 1
                    : y.begin == y.end ? -1
                                       : str_cmp(json_key(x.begin), json_key(y.begin));
        struct str key = json_key(order <= 0 ? x.begin : y.begin);
        const json_val *old = NULL, *new = NULL;
        if (order <= 0) {
            old = x.begin + 1;
            x.begin = json_end(old);
        }
        if (order >= 0) {
            new = y.begin + 1;
            y.begin = json_end(new);
        }
        json_add(merged, json_new_str(b, key), merge(b, old, new, rule_of(rule, key)));
    }
    return merged;
}

static json_mut *append(struct json_build *b, const json_val *base, const json_val *over)
{
    json_mut *list = json_new_array(b);
    json_each_item(base, item)
        json_push(b, list, json_copy(b, item));
    json_each_item(over, item)
        json_push(b, list, json_copy(b, item));
    return list;
}

static json_mut *join(struct json_build *b, struct str base, struct str over)
{
    AUTO_BUF text = { 0 };
    buf_add(&text, base);
    if (base.len && !str_ends(base, STR("\n")))
        buf_addc(&text, '\n');
    buf_add(&text, over);
    return json_new_str(b, buf_str(&text));
}

/* Either may be NULL, not both. */
static json_mut *merge(struct json_build *b, const json_val *base, const json_val *over,
                       enum rule rule)
{
    if (!base || !over)
        return json_copy(b, base ? base : over);
    if (rule == RULE_APPEND && json_is_array(base) && json_is_array(over))
        return append(b, base, over);
    if (rule == RULE_JOIN && json_str(base).len && json_str(over).len)
        return join(b, json_str(base), json_str(over));
    if (json_is_object(base) && json_is_object(over))
        return merge_members(b, base, over, rule);
    return json_copy(b, is_empty(over, rule) && !is_empty(base, rule) ? base : over);
}

void nodeconfig_merge(struct str base, struct str over, struct buf *out)
{
    if (!base.len) {
        buf_add(out, over);
        return;
    }
    struct doc x, y;
    struct err err = { 0 };
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    int base_rc = json_read(base, &x, &err);
    KV_ASSERT(base_rc == 0);
    int over_rc = json_read(over, &y, &err);
    KV_ASSERT(over_rc == 0);
    json_write_mut(merge(&b, x.root, y.root, RULE_TOP), out);
    doc_done(&x);
    doc_done(&y);
}
