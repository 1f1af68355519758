#include "cmd/requirement_arg.h"

#include "api/karpenter.h"

static const struct {
    const char *sign;
    enum requirement_op op;
} signs[] = {
    /* The longer before its own beginning. */
    { "==", OP_IN },  { "=", OP_IN }, { "!=", OP_NOT_IN }, { ">=", OP_GTE },
    { "<=", OP_LTE }, { ">", OP_GT }, { "<", OP_LT },
};

static bool is_key_char(char c)
{
    return char_is_alnum(c) || c == '-' || c == '_' || c == '.' || c == '/';
}

static struct str take_key(struct str *rest)
{
    size_t n = 0;
    while (n < rest->len && is_key_char(rest->p[n]))
        n++;
    struct str key = str_sub(*rest, 0, n);
    *rest = str_trim(str_sub(*rest, n, rest->len));
    return key;
}

static bool take_sign(struct str *rest, enum requirement_op *op)
{
    for (size_t i = 0; i < KV_COUNT_OF(signs); i++) {
        struct str sign = str_of(signs[i].sign);
        if (str_starts(*rest, sign)) {
            *rest = str_sub(*rest, sign.len, rest->len);
            *op = signs[i].op;
            return true;
        }
    }
    return false;
}

static bool same_word(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (char_lower(a.p[i]) != char_lower(b.p[i]))
            return false;
    return true;
}

static int take_word(struct str *rest, enum requirement_op *op, struct err *err)
{
    size_t n = 0;
    while (n < rest->len && !char_is_space(rest->p[n]) && rest->p[n] != '(')
        n++;
    struct str word = str_sub(*rest, 0, n);
    *rest = str_sub(*rest, n, rest->len);
    const char *near = NULL;
    for (int i = 0; requirement_op_names[i]; i++) {
        struct str name = str_of(requirement_op_names[i]);
        if (same_word(word, name)) {
            *op = (enum requirement_op)(OP_IN + i);
            return 0;
        }
        if (!near && str_distance(word, name, 2) <= 2 && name.len > 3)
            near = requirement_op_names[i];
    }
    if (near)
        return err_set(err, ERR_INVALID, "unknown operator %s; did you mean %s?", STR_SHOWN(word),
                       near);
    return err_set(err, ERR_INVALID,
                   "unknown operator %s; expected In, NotIn, Exists, DoesNotExist, Gt, Gte, Lt or "
                   "Lte, or one of = != > >= < <=",
                   STR_SHOWN(word));
}

static struct str_list split_values(struct arena *arena, struct str rest)
{
    rest = str_trim(rest);
    if (str_starts(rest, STR("(")) && str_ends(rest, STR(")")))
        rest = str_trim(str_sub(rest, 1, rest.len - 2));
    struct str *values = arena_array(arena, struct str, rest.len + 1);
    uint32_t count = 0;
    for (bool more = rest.len > 0; more;) {
        struct str value;
        more = str_cut(rest, ',', &value, &rest);
        value = str_trim(value);
        if (value.len)
            values[count++] = value;
    }
    return (struct str_list){ values, count };
}

static int check_values(const struct expression *e, struct err *err)
{
    const char *op = requirement_op_names[e->op - OP_IN];
    bool bare = e->op == OP_EXISTS || e->op == OP_DOES_NOT_EXIST;
    if (bare && e->values.count)
        return err_set(err, ERR_INVALID, "%s takes no value", op);
    if (!bare && !e->values.count)
        return err_set(err, ERR_INVALID, "%s needs a value", op);
    bool listed = e->op == OP_IN || e->op == OP_NOT_IN;
    int64_t n;
    if (!bare && !listed && (e->values.count != 1 || !str_to_i64(e->values.items[0], &n)))
        return err_set(err, ERR_INVALID, "%s needs one integer", op);
    for (uint32_t i = 0; listed && i < e->values.count; i++) {
        const char *problem = label_text_words(e->values.items[i]);
        if (problem)
            return err_set(err, ERR_INVALID, "%s %s", STR_SHOWN(e->values.items[i]), problem);
    }
    return 0;
}

static int parse(struct arena *arena, struct str text, struct expression *out, struct err *err)
{
    struct str rest = str_trim(text);
    enum requirement_op op = OP_EXISTS;
    bool negated = str_starts(rest, STR("!"));
    if (negated)
        rest = str_trim(str_sub(rest, 1, rest.len));
    struct str key = take_key(&rest);
    const char *problem = key.len ? label_key_words(key) : "no label key, expected KEY=VALUE";
    if (problem)
        return err_set(err, ERR_INVALID, "%.*s%s%s", STR_ARG(key), key.len ? " " : "", problem);
    if (negated && rest.len)
        return err_set(err, ERR_INVALID, "nothing may follow !%.*s", STR_ARG(key));
    if (negated)
        op = OP_DOES_NOT_EXIST;
    else if (rest.len && !take_sign(&rest, &op) && take_word(&rest, &op, err) < 0)
        return -1;
    *out =
        (struct expression){ .key = key, .op = (uint8_t)op, .values = split_values(arena, rest) };
    return check_values(out, err);
}

int requirement_arg_parse(struct arena *arena, struct str text, struct expression *out,
                          struct err *err)
{
    if (parse(arena, text, out, err) < 0)
        return err_wrap(err, "%s", STR_SHOWN(text));
    return 0;
}

void expression_format(const struct expression *e, struct buf *out)
{
    buf_addf(out, "%.*s %s", STR_ARG(e->key), requirement_op_names[e->op - OP_IN]);
    bool listed = e->op == OP_IN || e->op == OP_NOT_IN;
    for (uint32_t i = 0; i < e->values.count; i++)
        buf_addf(out, "%s%.*s", i == 0 && listed ? " [" : " ", STR_ARG(e->values.items[i]));
    if (listed && e->values.count)
        buf_addc(out, ']');
}
