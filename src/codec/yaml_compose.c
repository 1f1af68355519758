/* From libyaml's events to nodes. Scalars are resolved here; anchors are names for node indexes. */
#include "codec/yaml_inner.h"

#include "codec/base64.h"
#include "codec/json_scan.h"
#include "codec/yaml_scalar.h"

#define TAG_PREFIX "tag:yaml.org,2002:"

void yaml_composer_init(struct yaml_composer *c, struct str text)
{
    *c = (struct yaml_composer){ .text = text, .cursor.pos = { 1, 1 } };
    int initialized = yaml_parser_initialize(&c->parser);
    KV_ASSERT(initialized);
    yaml_parser_set_encoding(&c->parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&c->parser, (const unsigned char *)text.p, text.len);
}

void yaml_composer_done(struct yaml_composer *c)
{
    yaml_parser_delete(&c->parser);
    vec_done(&c->tree.nodes);
    buf_done(&c->tree.texts);
    str_table_done(&c->anchors);
}

/* --- places --- */

/* libyaml gives the index of a character; we want line and byte. Events come in the order of the
 * text, so the cursor goes over it once; only an error may look back. */
static struct text_pos position_of(struct yaml_composer *c, yaml_mark_t mark)
{
    if (mark.index < c->cursor.index) {
        c->cursor.index = c->cursor.offset = 0;
        c->cursor.pos = (struct text_pos){ 1, 1 };
    }
    size_t from = c->cursor.offset, to = from;
    while (c->cursor.index < mark.index && to < c->text.len) {
        to++;
        while (to < c->text.len && ((unsigned char)c->text.p[to] & 0xc0) == 0x80)
            to++;
        c->cursor.index++;
    }
    c->cursor.pos = text_pos_at(str_sub(c->text, from, c->text.len), to - from, c->cursor.pos);
    c->cursor.offset = to;
    return c->cursor.pos;
}

/* libyaml's messages with the character that was found and where the structure began. */
static int parser_trouble(struct yaml_composer *c, struct err *err)
{
    const yaml_parser_t *p = &c->parser;
    if (p->error == YAML_MEMORY_ERROR)
        return err_set(err, ERR_INTERNAL, "out of memory");
    if (p->error == YAML_READER_ERROR) {
        c->at = text_pos_at(c->text, p->problem_offset, (struct text_pos){ 1, 1 });
        return err_set(err, ERR_INVALID, "%s", p->problem);
    }
    uint32_t context_line = p->context ? position_of(c, p->context_mark).line : 0;
    c->at = position_of(c, p->problem_mark);
    bool at_end = c->cursor.offset == c->text.len;
    char found = at_end ? 0 : c->text.p[c->cursor.offset];
    if (!at_end && strstr(p->problem, "cannot start any token")) {
        if (found == '\t')
            return err_set(err, ERR_INVALID, "a tab character: YAML is indented with spaces");
        return err_set(err, ERR_INVALID, "a value cannot start with '%c': quote it", found);
    }
    if (strstr(p->problem, "<document start>"))
        return err_set(
            err, ERR_INVALID,
            "the document has ended before this: expected its indentation, or --- before "
            "another document");
    const char *end = at_end ? "the text ends too early: " : "";
    if (!p->context)
        return err_set(err, ERR_INVALID, "%s%s", end, p->problem);
    return err_set(err, ERR_INVALID, "%s%s (%s that starts on line %u)", end, p->problem,
                   p->context, context_line);
}

/* --- nodes --- */

static int fail_at(struct yaml_composer *c, struct text_pos at, struct err *err, const char *what)
{
    c->at = at;
    return err_set(err, ERR_INVALID, "%s", what);
}

static struct node *node_at(struct yaml_composer *c, uint32_t ix)
{
    return &c->tree.nodes.items[ix];
}

/* Append a node and hang it into the container that is open. */
static uint32_t add_node(struct yaml_composer *c, struct node node)
{
    uint32_t ix = (uint32_t)c->tree.nodes.count;
    vec_push(&c->tree.nodes, node);
    if (c->depth > 0) {
        uint32_t last = c->open[c->depth - 1].last;
        if (last)
            node_at(c, last)->next = ix;
        else
            node_at(c, c->open[c->depth - 1].node)->first = ix;
        c->open[c->depth - 1].last = ix;
        c->open[c->depth - 1].count++;
    }
    return ix;
}

static void name_node(struct yaml_composer *c, const yaml_char_t *anchor, uint32_t ix)
{
    if (anchor)
        str_table_put(&c->anchors, str_of((const char *)anchor), (void *)((uintptr_t)ix + 1));
}

static bool at_key(const struct yaml_composer *c)
{
    return c->depth > 0 && c->open[c->depth - 1].count % 2 == 0 &&
           c->tree.nodes.items[c->open[c->depth - 1].node].kind == NODE_MAPPING;
}

/* The short name of a standard tag ("int"), "" for none, "!" for "not resolved"; NULL: unknown. */
static const char *standard_tag(const yaml_char_t *tag)
{
    const char *z = (const char *)tag;
    if (!z)
        return "";
    if (strcmp(z, "!") == 0)
        return z;
    return strncmp(z, TAG_PREFIX, strlen(TAG_PREFIX)) == 0 ? z + strlen(TAG_PREFIX) : NULL;
}

static bool is_tag(const char *maybe_tag, const char *name)
{
    return maybe_tag && strcmp(maybe_tag, name) == 0;
}

static int unknown_tag(struct yaml_composer *c, const yaml_char_t *tag, struct text_pos at,
                       struct err *err)
{
    AUTO_BUF name = { 0 };
    const char *standard = standard_tag(tag);
    if (standard)
        buf_addz(&name, "!!");
    buf_addz(&name, standard ? standard : (const char *)tag);
    c->at = at;
    return err_set(err, ERR_INVALID, "the tag %s is not supported here", STR_SHOWN(buf_str(&name)));
}

static bool type_allowed(const char *tag, enum scalar_type type)
{
    switch (type) {
    case SCALAR_NULL:
        return is_tag(tag, "null");
    case SCALAR_BOOL:
        return is_tag(tag, "bool");
    case SCALAR_INT:
    case SCALAR_HUGE:
        return is_tag(tag, "int") || is_tag(tag, "float");
    case SCALAR_FLOAT:
    case SCALAR_NOT_FINITE:
        return is_tag(tag, "float");
    case SCALAR_STRING:
        return false;
    }
    KV_UNREACHABLE();
}

/* Resolve a scalar and keep its text. `tag` is "" for a plain scalar, or one of the types. */
static int resolve_scalar(struct yaml_composer *c, struct str s, const char *tag, struct node *node,
                          struct err *err)
{
    enum scalar_type type = scalar_resolve(s, &c->tree.texts);
    if (tag[0] && !type_allowed(tag, type)) {
        c->at = node->pos;
        return err_set(err, ERR_INVALID, "%s is not a value of the tag !!%s", STR_SHOWN(s), tag);
    }
    switch (type) {
    case SCALAR_STRING:
        buf_add(&c->tree.texts, s);
        node->kind = NODE_STRING;
        break;
    case SCALAR_NULL:
        node->kind = NODE_NULL;
        break;
    case SCALAR_BOOL:
    case SCALAR_INT:
    case SCALAR_FLOAT:
        node->kind = NODE_LITERAL;
        break;
    case SCALAR_NOT_FINITE:
        return fail_at(c, node->pos, err, "infinity and NaN are not numbers in JSON: quote it");
    case SCALAR_HUGE:
        return fail_at(c, node->pos, err,
                       "the number is too large for 64 bits: quote it if it is text");
    }
    return 0;
}

/* The text that the base64 of a !!binary scalar stands for; it may be broken into lines. */
static int decode_binary(struct yaml_composer *c, struct str s, const struct node *node,
                         struct err *err)
{
    AUTO_BUF letters = { 0 }, bytes = { 0 };
    for (size_t i = 0; i < s.len; i++) {
        if (s.p[i] != '\n')
            buf_addc(&letters, s.p[i]);
    }
    c->at = node->pos;
    if (base64_decode(buf_str(&letters), &bytes, err) < 0)
        return err_wrap(err, "the tag !!binary");
    if (memchr(buf_str(&bytes).p, 0, bytes.len))
        return fail_at(c, node->pos, err, "NUL character in a string");
    buf_add_utf8(&c->tree.texts, buf_str(&bytes));
    return 0;
}

static int compose_scalar(struct yaml_composer *c, const yaml_event_t *event, struct err *err)
{
    struct str s = { (const char *)event->data.scalar.value, event->data.scalar.length };
    struct node node = { .pos = position_of(c, event->start_mark), .kind = NODE_STRING };
    const char *tag = standard_tag(event->data.scalar.tag);
    bool plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

    if (memchr(s.p, 0, s.len))
        return fail_at(c, node.pos, err, "NUL character in a string");
    node.merge = plain && !event->data.scalar.tag && at_key(c) && str_eqz(s, "<<");
    node.text_at = c->tree.texts.len;
    int rc = 0;
    if (is_tag(tag, "!") || is_tag(tag, "str") || (is_tag(tag, "") && !plain))
        buf_add(&c->tree.texts, s);
    else if (is_tag(tag, "binary"))
        rc = decode_binary(c, s, &node, err);
    else if (is_tag(tag, "") || is_tag(tag, "int") || is_tag(tag, "float") || is_tag(tag, "bool") ||
             is_tag(tag, "null"))
        rc = resolve_scalar(c, s, tag, &node, err);
    else
        rc = unknown_tag(c, event->data.scalar.tag, node.pos, err);
    if (rc < 0)
        return -1;
    node.text_len = (uint32_t)(c->tree.texts.len - node.text_at);
    name_node(c, event->data.scalar.anchor, add_node(c, node));
    return 0;
}

static int compose_container(struct yaml_composer *c, const yaml_event_t *event, struct err *err)
{
    bool mapping = event->type == YAML_MAPPING_START_EVENT;
    const yaml_char_t *tag =
        mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    const yaml_char_t *anchor =
        mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    struct text_pos pos = position_of(c, event->start_mark);
    const char *name = standard_tag(tag);

    if (!is_tag(name, "") && !is_tag(name, "!") && !is_tag(name, mapping ? "map" : "seq"))
        return unknown_tag(c, tag, pos, err);
    if (at_key(c))
        return fail_at(c, pos, err, "a key is a string, not a mapping or sequence");
    if (c->depth == YAML_DEPTH_MAX) {
        c->at = pos;
        return err_set(err, ERR_INVALID, "nested more than %d levels deep", YAML_DEPTH_MAX);
    }
    uint32_t ix = add_node(
        c,
        (struct node){ .pos = pos, .kind = mapping ? NODE_MAPPING : NODE_SEQUENCE, .open = true });
    name_node(c, anchor, ix);
    c->open[c->depth].node = ix;
    c->open[c->depth].last = 0;
    c->open[c->depth].count = 0;
    c->depth++;
    return 0;
}

static int compose_alias(struct yaml_composer *c, const yaml_event_t *event, struct err *err)
{
    struct str name = str_of((const char *)event->data.alias.anchor);
    struct node node = { .pos = position_of(c, event->start_mark), .kind = NODE_ALIAS };
    uintptr_t target = (uintptr_t)str_table_get(&c->anchors, name);
    c->at = node.pos;
    if (!c->first_alias.line)
        c->first_alias = node.pos;
    if (!target)
        return err_set(err, ERR_INVALID, "the alias %s has no anchor before it", STR_SHOWN(name));
    node.first = (uint32_t)(target - 1);
    if (node_at(c, node.first)->open)
        return err_set(err, ERR_INVALID, "the alias %s is inside the value it stands for",
                       STR_SHOWN(name));
    add_node(c, node);
    return 0;
}

static int compose_event(struct yaml_composer *c, const yaml_event_t *event, struct err *err)
{
    switch (event->type) {
    case YAML_SCALAR_EVENT:
        return compose_scalar(c, event, err);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        return compose_container(c, event, err);
    case YAML_ALIAS_EVENT:
        return compose_alias(c, event, err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        node_at(c, c->open[--c->depth].node)->open = false;
        return 0;
    case YAML_DOCUMENT_START_EVENT:
        vec_clear(&c->tree.nodes);
        buf_clear(&c->tree.texts);
        str_table_clear(&c->anchors);
        c->depth = 0;
        return 0;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        return 0;
    }
    KV_UNREACHABLE();
}

int yaml_compose(struct yaml_composer *c, struct err *err)
{
    for (;;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&c->parser, &event))
            return parser_trouble(c, err);
        yaml_event_type_t type = event.type;
        int rc = compose_event(c, &event, err);
        yaml_event_delete(&event);
        if (rc < 0)
            return -1;
        if (type == YAML_DOCUMENT_END_EVENT)
            return 1;
        if (type == YAML_STREAM_END_EVENT)
            return 0;
    }
}
