/* codec/yaml_inner.h - the two halves of reading YAML: composing a tree, expanding it to JSON.
 *
 * A document is first composed into an array of nodes as it was written, aliases and merge keys
 * still in it, and then expanded into a JSON text. Two steps, because a merge key can only be
 * resolved when its mapping is complete, and an alias only within what the limits leave.
 */
#pragma once

#include "base/map.h"
#include "base/vec.h"
#include "codec/json_inner.h"
#include "codec/yaml.h"

#include <yaml.h>

enum node_kind {
    NODE_STRING,  /* text is the string */
    NODE_LITERAL, /* text is a JSON number, true or false */
    NODE_NULL,
    NODE_SEQUENCE,
    NODE_MAPPING, /* children are key, value, key, value, ... */
    NODE_ALIAS,   /* of the node `first` */
};

struct node {
    struct text_pos pos;
    size_t text_at; /* in yaml_tree.texts */
    uint32_t text_len;
    uint32_t first, next; /* child and sibling by index; 0: none (0 is the root, nobody's child) */
    uint8_t kind;
    bool open;  /* its end has not been seen: an alias to it would be a loop */
    bool merge; /* the key << */
};

struct yaml_tree {
    VEC(struct node) nodes;
    struct buf texts;
};

static inline struct str node_text(const struct yaml_tree *t, const struct node *n)
{
    return (struct str){ t->texts.p + n->text_at, n->text_len };
}

/* --- composing --- */

struct yaml_composer {
    yaml_parser_t parser;
    struct yaml_tree tree;    /* of the current document */
    struct str_table anchors; /* name -> 1 + node index */
    struct {
        uint32_t node, last; /* the container, its last child so far (0: none) */
        uint32_t count;
    } open[YAML_DEPTH_MAX];
    size_t depth;
    struct str text;
    struct { /* walks over the text behind libyaml, which counts characters */
        size_t index, offset;
        struct text_pos pos;
    } cursor;
    struct text_pos at;          /* of the error */
    struct text_pos first_alias; /* line 0: none so far */
};

void yaml_composer_init(struct yaml_composer *c, struct str text);
void yaml_composer_done(struct yaml_composer *c);
/* Compose the next document into c->tree: 1 done, 0 no more, -1 failed at c->at. */
int yaml_compose(struct yaml_composer *c, struct err *err);

/* --- expanding --- */

struct yaml_member {
    struct str key;
    uint32_t key_node, value_node, owner; /* owner: the mapping it was written in */
    bool hidden;                          /* merged, but a nearer one has the same key */
};

struct yaml_expander {
    const struct yaml_tree *tree;
    struct buf json;                 /* of the current document */
    VEC(struct text_pos) positions;  /* of its values */
    VEC(struct yaml_member) members; /* of the mappings being written, innermost last */
    VEC(struct yaml_member *) sorted;
    size_t spent, limit;       /* work and bytes, over all documents */
    const struct node *source; /* the outermost alias or merge being expanded, or NULL */
    struct text_pos at;        /* of the error */
};

void yaml_expander_done(struct yaml_expander *e);
int yaml_expand(struct yaml_expander *e, const struct yaml_tree *tree, struct err *err);
