/* A text that opens with a brace or bracket is read as JSON: it is the faster and stricter reader,
 * and has the better messages. Flow-style YAML opens the same way, so what is not JSON is given to
 * YAML; if it is neither, the message is of the language that the text looks like. */
#include "codec/yaml_inner.h"

#include "codec/json_scan.h"

#define BOM "\xef\xbb\xbf"
#define EXPANSION_FREE_BYTES ((size_t)1 << 20)

typedef VEC(struct doc) doc_vec;

static void docs_free(doc_vec *docs)
{
    for (size_t i = 0; i < docs->count; i++)
        doc_done(&docs->items[i]);
    vec_done(docs);
}

static int count_document(const doc_vec *docs, struct err *err)
{
    if (docs->count < YAML_DOCUMENTS_MAX)
        return 0;
    return err_set(err, ERR_INVALID, "more than %d documents", YAML_DOCUMENTS_MAX);
}

/* --- JSON: one text, or several one after another --- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_space(struct str text, size_t at)
{
    while (at < text.len && is_space(text.p[at]))
        at++;
    return at;
}

static int read_json(struct str text, doc_vec *docs, struct text_pos *at, struct err *err)
{
    struct text_pos pos = { 1, 1 };
    for (size_t from = 0, next = skip_space(text, 0); next < text.len;) {
        pos = text_pos_at(str_sub(text, from, text.len), next - from, pos);
        *at = pos;
        from = next;
        struct str rest = str_sub(text, from, text.len);
        struct doc doc;
        if (count_document(docs, err) < 0)
            return JSON_REFUSED;
        if (rest.p[0] != '{' && rest.p[0] != '[')
            return err_set(err, ERR_INVALID, "unexpected text after the JSON value");
        rest.len = json_scan_extent(rest).end;
        int rc = json_read_at(rest, pos, &doc, at, err);
        if (rc < 0)
            return rc;
        vec_push(docs, doc);
        next = skip_space(text, from + rest.len);
    }
    return 0;
}

/* After its opening brackets JSON goes on with a quote, a number or a closing bracket. */
static bool looks_like_json(struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (!is_space(c) && c != '{' && c != '[')
            return c == '"' || c == '}' || c == ']' || c == '-' || (c >= '0' && c <= '9');
    }
    return true;
}

/* --- YAML --- */

static int fail_at_offset(struct str text, size_t offset, struct text_pos *at, struct err *err,
                          const char *what)
{
    *at = text_pos_at(text, offset, (struct text_pos){ 1, 1 });
    return err_set(err, ERR_INVALID, "%s", what);
}

static int check_encoding(struct str text, struct text_pos *at, struct err *err)
{
    if (str_starts(text, STR("\xfe\xff")) || str_starts(text, STR("\xff\xfe")))
        return fail_at_offset(text, 0, at, err, "the text is encoded as UTF-16, expected UTF-8");
    const char *nul = text.len ? memchr(text.p, 0, text.len) : NULL;
    if (nul)
        return fail_at_offset(text, (size_t)(nul - text.p), at, err,
                              "NUL byte in the text: it is binary, or encoded as UTF-16");
    size_t bad = str_utf8_prefix(text);
    if (bad < text.len)
        return fail_at_offset(text, bad, at, err, "invalid UTF-8");
    const char *mark = text.len ? memmem(text.p, text.len, "\n" BOM, 4) : NULL;
    if (mark)
        return fail_at_offset(text, (size_t)(mark + 1 - text.p), at, err,
                              "byte order mark inside the text: were two files joined?");
    return 0;
}

/* The composed document as a `struct doc`; null documents are left out. */
static int add_document(struct yaml_composer *c, struct yaml_expander *e, struct arena *arena,
                        doc_vec *docs, struct err *err)
{
    const struct node *root = &c->tree.nodes.items[0];
    struct doc doc;
    e->at = root->pos;
    if (root->kind == NODE_NULL)
        return 0;
    if (count_document(docs, err) < 0 || yaml_expand(e, &c->tree, err) < 0)
        return -1;
    if (json_read_trusted(buf_str(&e->json), &doc, err) < 0) {
        err->kind = ERR_INTERNAL;
        return err_wrap(err, "the JSON made of YAML");
    }
    size_t count = e->positions.count;
    KV_ASSERT(yyjson_doc_get_val_count(doc.yy) == count);
    struct text_pos *positions = arena_array(arena, struct text_pos, count);
    memcpy(positions, e->positions.items, count * sizeof *positions);
    doc.text = c->text;
    doc.positions = positions;
    vec_push(docs, doc);
    return 0;
}

static size_t expansion_limit(size_t text_bytes)
{
    size_t limit = text_bytes * YAML_EXPANSION_FACTOR_MAX;
    if (limit < EXPANSION_FREE_BYTES)
        limit = EXPANSION_FREE_BYTES;
    return limit < YAML_EXPANDED_BYTES_MAX ? limit : YAML_EXPANDED_BYTES_MAX;
}

static int read_yaml(struct str text, struct arena *arena, doc_vec *docs, struct text_pos *alias,
                     struct text_pos *at, struct err *err)
{
    if (check_encoding(text, at, err) < 0)
        return -1;
    struct yaml_composer composer;
    struct yaml_expander expander = { .limit = expansion_limit(text.len) };
    yaml_composer_init(&composer, text);
    int rc;
    while ((rc = yaml_compose(&composer, err)) > 0) {
        rc = add_document(&composer, &expander, arena, docs, err);
        if (rc < 0) {
            composer.at = expander.at;
            break;
        }
    }
    *at = composer.at;
    *alias = composer.first_alias;
    yaml_expander_done(&expander);
    yaml_composer_done(&composer);
    return rc;
}

/* --- either --- */

static int read_text(struct str text, struct arena *arena, doc_vec *docs, struct text_pos *alias,
                     struct text_pos *at, struct err *err)
{
    size_t first = skip_space(text, 0);
    bool maybe_json = first < text.len && (text.p[first] == '{' || text.p[first] == '[');
    if (!maybe_json)
        return read_yaml(text, arena, docs, alias, at, err);

    struct err json_err = { 0 };
    struct text_pos json_at;
    int rc = read_json(text, docs, &json_at, &json_err);
    if (rc == 0)
        return 0;
    docs_free(docs);
    if (rc != JSON_REFUSED && read_yaml(text, arena, docs, alias, at, err) == 0)
        return 0;
    if (rc == JSON_REFUSED || looks_like_json(text)) {
        *at = json_at;
        *err = json_err;
    }
    return -1;
}

int yaml_read(struct str text, struct docs *out, struct text_pos *at, struct err *err)
{
    struct err trouble = { 0 };
    struct text_pos where = { 1, 1 }, alias = { 0, 0 };
    struct arena arena = { 0 };
    doc_vec docs = { 0 };
    int rc;

    if (str_starts(text, STR(BOM)))
        text = str_sub(text, strlen(BOM), text.len);
    if (text.len > YAML_BYTES_MAX)
        rc = err_set(&trouble, ERR_INVALID, "the text has %zu bytes, at most %zu are read",
                     text.len, YAML_BYTES_MAX);
    else
        rc = read_text(text, &arena, &docs, &alias, &where, &trouble);

    if (rc < 0) {
        docs_free(&docs);
        arena_done(&arena);
        if (at)
            *at = where;
        else
            err_wrap(&trouble, "line %u, column %u", where.line, where.col);
        if (err)
            *err = trouble;
        return -1;
    }
    *out = (struct docs){
        .items = docs.items, .count = docs.count, .arena = arena, .first_alias = alias
    };
    return 0;
}

void docs_done(struct docs *docs)
{
    for (size_t i = 0; i < docs->count; i++)
        doc_done(&docs->items[i]);
    free(docs->items);
    arena_done(&docs->arena);
    *docs = (struct docs){ 0 };
}
