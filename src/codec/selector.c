/* Label selectors are read by a hand-written descent over these tokens: the operators
 * = == != ! > < ( ) and the comma, and words: anything else up to white space or an operator.
 *
 *     selector = [ term { "," term } ]
 *     term     = [ "!" ] key
 *              | key ( "=" | "==" | "!=" | ">" | "<" ) [ value ]
 *              | key ( "in" | "notin" ) "(" [ value ] { "," [ value ] } ")"
 *
 * "in" and "notin" are words like any other except where an operator is expected, so a key or
 * value may be called that. Kubernetes' own parser trips over an even number of commas before a
 * closing parenthesis, "(a,,)"; here that is just one more empty value.
 *
 * Field selectors have no tokens: terms end at a comma, keys at the first operator, and values are
 * taken as they are except for backslashes.
 */
#include "codec/selector.h"

#include "base/vec.h"

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_COMMA,
    TOKEN_OPEN,
    TOKEN_CLOSE,
    TOKEN_NOT,
    TOKEN_EQUALS,
    TOKEN_NOT_EQUALS,
    TOKEN_GREATER,
    TOKEN_LESS,
};

struct token {
    enum token_kind kind;
    struct str text;
};

struct parser {
    struct arena *arena;
    struct str rest;    /* after `token` */
    struct token token; /* the one being looked at */
    VEC(struct selector_term) terms;
    VEC(struct str) values; /* of the term being read */
    struct err *err;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static enum token_kind operator_of(char c)
{
    switch (c) {
    case ',':
        return TOKEN_COMMA;
    case '(':
        return TOKEN_OPEN;
    case ')':
        return TOKEN_CLOSE;
    case '!':
        return TOKEN_NOT;
    case '=':
        return TOKEN_EQUALS;
    case '>':
        return TOKEN_GREATER;
    case '<':
        return TOKEN_LESS;
    default:
        return TOKEN_WORD;
    }
}

static void advance(struct parser *p)
{
    while (p->rest.len && is_blank(p->rest.p[0]))
        p->rest = str_sub(p->rest, 1, p->rest.len);
    struct str s = p->rest;
    size_t len = 0;
    enum token_kind kind = TOKEN_END;
    if (s.len > 0) {
        kind = operator_of(s.p[0]);
        len = 1;
    }
    if (kind == TOKEN_WORD) {
        while (len < s.len && !is_blank(s.p[len]) && operator_of(s.p[len]) == TOKEN_WORD)
            len++;
    } else if (s.len > 1 && s.p[1] == '=' && (kind == TOKEN_EQUALS || kind == TOKEN_NOT)) {
        kind = kind == TOKEN_NOT ? TOKEN_NOT_EQUALS : TOKEN_EQUALS;
        len = 2;
    }
    p->token = (struct token){ kind, str_sub(s, 0, len) };
    p->rest = str_sub(s, len, s.len);
}

static int unexpected(struct parser *p, const char *expected)
{
    if (p->token.kind == TOKEN_END)
        return err_set(p->err, ERR_INVALID, "selector ends where %s was expected", expected);
    return err_set(p->err, ERR_INVALID, "selector: expected %s, found %s", expected,
                   STR_SHOWN(p->token.text));
}

static int check_value(struct parser *p, struct str key, enum selector_op op, struct str value)
{
    const char *problem = label_value_problem(value);
    int64_t number;
    if ((op == SELECTOR_GT || op == SELECTOR_LT) && !str_to_i64(value, &number))
        problem = "must be an integer";
    if (problem)
        return err_set(p->err, ERR_INVALID, "selector: value %s of %.*s %s", STR_SHOWN(value),
                       STR_ARG(key), problem);
    return 0;
}

/* A word, or the empty value if there is none. */
static int take_value(struct parser *p, struct str key, enum selector_op op)
{
    struct str value = STR("");
    if (p->token.kind == TOKEN_WORD) {
        value = p->token.text;
        advance(p);
    }
    if (check_value(p, key, op, value) < 0)
        return -1;
    vec_push(&p->values, value);
    return 0;
}

static int take_value_list(struct parser *p, struct str key, enum selector_op op)
{
    if (p->token.kind != TOKEN_OPEN)
        return unexpected(p, "\"(\"");
    do {
        advance(p);
        if (take_value(p, key, op) < 0)
            return -1;
    } while (p->token.kind == TOKEN_COMMA);
    if (p->token.kind != TOKEN_CLOSE)
        return unexpected(p, "\",\" or \")\"");
    advance(p);
    return 0;
}

/* True, with `op` set, if the token is an operator between a key and its values. */
static bool is_binary(const struct token *t, enum selector_op *op, bool *list)
{
    *list = t->kind == TOKEN_WORD;
    *op = SELECTOR_IN;
    switch (t->kind) {
    case TOKEN_EQUALS:
        return true;
    case TOKEN_NOT_EQUALS:
        *op = SELECTOR_NOT_IN;
        return true;
    case TOKEN_GREATER:
        *op = SELECTOR_GT;
        return true;
    case TOKEN_LESS:
        *op = SELECTOR_LT;
        return true;
    case TOKEN_WORD:
        if (str_eqz(t->text, "notin"))
            *op = SELECTOR_NOT_IN;
        return *op == SELECTOR_NOT_IN || str_eqz(t->text, "in");
    case TOKEN_END:
    case TOKEN_COMMA:
    case TOKEN_OPEN:
    case TOKEN_CLOSE:
    case TOKEN_NOT:
        return false;
    }
    KV_UNREACHABLE();
}

/* Moves the collected values, sorted and each once, into the arena. */
static void push_term(struct parser *p, struct str key, enum selector_op op)
{
    size_t count = str_sort_unique(p->values.items, p->values.count);
    struct str *values = NULL;
    if (count) {
        values = arena_array(p->arena, struct str, count);
        memcpy(values, p->values.items, count * sizeof *values);
    }
    vec_clear(&p->values);
    vec_push(&p->terms, (struct selector_term){ key, op, values, (uint32_t)count });
}

static int parse_term(struct parser *p)
{
    bool negated = p->token.kind == TOKEN_NOT;
    if (negated)
        advance(p);
    if (p->token.kind != TOKEN_WORD)
        return unexpected(p, negated ? "a key" : "a key or \"!\"");
    struct str key = p->token.text;
    const char *problem = label_key_problem(key);
    if (problem)
        return err_set(p->err, ERR_INVALID, "selector: key %s %s", STR_SHOWN(key), problem);
    advance(p);

    enum selector_op op = negated ? SELECTOR_NOT_EXISTS : SELECTOR_EXISTS;
    bool list;
    if (!negated && p->token.kind != TOKEN_END && p->token.kind != TOKEN_COMMA) {
        if (!is_binary(&p->token, &op, &list))
            return unexpected(p, "one of = == != > < in notin");
        advance(p);
        if ((list ? take_value_list(p, key, op) : take_value(p, key, op)) < 0)
            return -1;
    }
    push_term(p, key, op);
    return 0;
}

static int parse_labels(struct parser *p)
{
    advance(p);
    if (p->token.kind == TOKEN_END)
        return 0;
    for (;;) {
        if (parse_term(p) < 0)
            return -1;
        if (p->token.kind == TOKEN_END)
            return 0;
        if (p->token.kind != TOKEN_COMMA)
            return unexpected(p, "\",\" or the end");
        advance(p);
    }
}

/* The value with its escapes undone; STR_NONE with the error set if they are wrong. */
static struct str unescape(struct parser *p, struct str text)
{
    char *out = arena_alloc(p->arena, text.len + 1);
    size_t len = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (c == '=') {
            err_set(p->err, ERR_INVALID, "field selector: write \\= for = in value %s",
                    STR_SHOWN(text));
            return STR_NONE;
        }
        if (c == '\\') {
            c = i + 1 < text.len ? text.p[++i] : '\0';
            if (c != '\\' && c != ',' && c != '=') {
                err_set(p->err, ERR_INVALID,
                        "field selector: a backslash goes only before , = and \\ in value %s",
                        STR_SHOWN(text));
                return STR_NONE;
            }
        }
        out[len++] = c;
    }
    return (struct str){ out, len };
}

static int parse_field(struct parser *p, struct str text)
{
    ptrdiff_t equals = str_find(text, '=');
    if (equals < 0)
        return err_set(p->err, ERR_INVALID, "field selector: expected KEY=VALUE, found %s",
                       STR_SHOWN(text));
    size_t at = (size_t)equals, key_len = at, value_at = at + 1;
    enum selector_op op = SELECTOR_IN;
    if (at > 0 && text.p[at - 1] == '!') {
        op = SELECTOR_NOT_IN;
        key_len--;
    } else if (value_at < text.len && text.p[value_at] == '=') {
        value_at++;
    }
    if (key_len == 0)
        return err_set(p->err, ERR_INVALID, "field selector: there is no key in %s",
                       STR_SHOWN(text));
    struct str value = unescape(p, str_sub(text, value_at, text.len));
    if (!value.p)
        return -1;
    vec_push(&p->values, value);
    push_term(p, str_sub(text, 0, key_len), op);
    return 0;
}

/* The text up to the next comma that no backslash precedes. */
static struct str take_field(struct str *rest)
{
    size_t n = 0;
    while (n < rest->len && rest->p[n] != ',')
        n += rest->p[n] == '\\' ? 2 : 1;
    struct str text = str_sub(*rest, 0, n);
    *rest = str_sub(*rest, n + 1, rest->len);
    return text;
}

static int parse_fields(struct parser *p)
{
    while (p->rest.len) {
        struct str text = take_field(&p->rest);
        if (text.len && parse_field(p, text) < 0)
            return -1;
    }
    return 0;
}

/* By key, and terms on one key in the order they were written: keys point into one text. */
static int compare_terms(const void *a, const void *b)
{
    const struct selector_term *x = a, *y = b;
    int c = str_cmp(x->key, y->key);
    return c ? c : (x->key.p > y->key.p) - (x->key.p < y->key.p);
}

static int parse(struct arena *arena, struct str text, bool fields, struct selector *out,
                 struct err *err)
{
    if (text.len > SELECTOR_BYTES_MAX)
        return err_set(err, ERR_INVALID, "a selector is at most %d bytes long", SELECTOR_BYTES_MAX);
    if (text.len && memchr(text.p, '\0', text.len))
        return err_set(err, ERR_INVALID, "a selector has no zero bytes");
    struct parser p = { .arena = arena, .rest = arena_str(arena, text), .err = err };
    int rc = fields ? parse_fields(&p) : parse_labels(&p);
    if (rc == 0) {
        size_t count = p.terms.count;
        struct selector_term *terms = NULL;
        if (count) {
            qsort(p.terms.items, count, sizeof *p.terms.items, compare_terms);
            terms = arena_array(arena, struct selector_term, count);
            memcpy(terms, p.terms.items, count * sizeof *terms);
        }
        *out = (struct selector){ terms, (uint32_t)count, fields };
    }
    vec_done(&p.terms);
    vec_done(&p.values);
    return rc;
}

int selector_parse(struct arena *arena, struct str text, struct selector *out, struct err *err)
{
    return parse(arena, text, false, out, err);
}

int selector_parse_fields(struct arena *arena, struct str text, struct selector *out,
                          struct err *err)
{
    return parse(arena, text, true, out, err);
}

static bool has_value(const struct selector_term *t, struct str value)
{
    return str_sorted_has(t->values, t->value_count, value);
}

static bool term_matches(const struct selector_term *t, struct str value)
{
    bool present = value.p != NULL;
    int64_t have, bound;
    switch (t->op) {
    case SELECTOR_IN:
        return present && has_value(t, value);
    case SELECTOR_NOT_IN:
        return !present || !has_value(t, value);
    case SELECTOR_EXISTS:
        return present;
    case SELECTOR_NOT_EXISTS:
        return !present;
    case SELECTOR_GT:
    case SELECTOR_LT:
        if (!present || t->value_count != 1 || !str_to_i64(value, &have) ||
            !str_to_i64(t->values[0], &bound))
            return false;
        return t->op == SELECTOR_GT ? have > bound : have < bound;
    }
    KV_UNREACHABLE();
}

bool selector_matches(const struct selector *sel, selector_lookup_fn lookup, const void *ctx)
{
    for (uint32_t i = 0; i < sel->term_count; i++) {
        struct str value = lookup(ctx, sel->terms[i].key);
        if (!value.p && sel->fields)
            value = STR("");
        if (!term_matches(&sel->terms[i], value))
            return false;
    }
    return true;
}

/* Labels have nothing to escape. */
static void put_value(struct buf *out, struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        char c = value.p[i];
        if (c == '\\' || c == ',' || c == '=')
            buf_addc(out, '\\');
        buf_addc(out, c);
    }
}

static void put_list(struct buf *out, const char *op, const struct selector_term *t)
{
    buf_addz(out, op);
    for (uint32_t i = 0; i < t->value_count; i++) {
        if (i)
            buf_addc(out, ',');
        put_value(out, t->values[i]);
    }
    buf_addc(out, ')');
}

static void put_term(struct buf *out, const struct selector_term *t)
{
    static const char *const one[] = { "=", "!=", "", "", ">", "<" };
    if (t->op == SELECTOR_NOT_EXISTS)
        buf_addc(out, '!');
    buf_add(out, t->key);
    if (t->value_count == 1) {
        buf_addz(out, one[t->op]);
        put_value(out, t->values[0]);
    } else if (t->op == SELECTOR_IN) {
        put_list(out, " in (", t);
    } else if (t->op == SELECTOR_NOT_IN) {
        put_list(out, " notin (", t);
    }
}

void selector_format(const struct selector *sel, struct buf *out)
{
    for (uint32_t i = 0; i < sel->term_count; i++) {
        if (i)
            buf_addc(out, ',');
        put_term(out, &sel->terms[i]);
    }
}
