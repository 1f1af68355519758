/* codec/yaml.h - YAML and JSON texts into documents.
 *
 * libyaml's events are turned into a JSON text and its value positions, and codec/json.h parses
 * that: one tree, one parser of truth. Scalars resolve as Kubernetes tools resolve them (YAML 1.1
 * core: yes/no/on/off are booleans, 0o17 and 0x1f integers, timestamps strings), except that an
 * integer beyond 64 bits, .inf and .nan are errors. Keys become strings (1 is "1"). Anchors and
 * aliases are expanded under a limit; merge keys (<<) work, explicit keys win; duplicate keys and
 * tags other than !!str, !!int, !!float, !!bool, !!null, !!binary (base64 of a text), !!map and
 * !!seq are errors.
 */
#pragma once

#include "codec/json.h"

#define YAML_BYTES_MAX ((size_t)64 << 20)
#define YAML_EXPANDED_BYTES_MAX ((size_t)128 << 20) /* of all documents, after aliases */
#define YAML_EXPANSION_FACTOR_MAX 64 /* and this many times the text once above 1 MiB: a bomb */
#define YAML_DEPTH_MAX 100
#define YAML_DOCUMENTS_MAX 100000

struct docs {
    struct doc *items; /* empty documents (comments only, or null) are left out */
    size_t count;
    struct arena arena;          /* owns the positions */
    struct text_pos first_alias; /* line 0: there is none */
};

/* Parse a file's text. If its first character is `{` or `[` it is one JSON text or several, one
 * after another; otherwise, or if it is not JSON after all, a stream of YAML documents. A byte
 * order mark at the start is skipped and takes no column. `text` is borrowed and must outlive
 * `out`. On failure `at` is where; if it is NULL the message says it.
 *
 * A position is that of a value's first character, its anchor or tag included; within the
 * expansion of an alias it is where the value stands, at the anchor. */
int yaml_read(struct str text, struct docs *out, struct text_pos *at, struct err *err);
void docs_done(struct docs *docs);

/* Write a tree as YAML: block style, two spaces, members in order, strings quoted when they need it. */
void yaml_write(const json_val *v, struct buf *out);
