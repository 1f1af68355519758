/* codec/toml_inner.h - what the files behind codec/toml.h share, and nobody else needs.
 *
 * Two structures over one text. The tree is what the text means: values, and tables of
 * entries. The items are how it is written: the lines of the document from top to bottom (and
 * likewise the keys of an inline table), each a key with its value or a table's header, with the
 * blank lines and comments before it. An entry knows the item that holds its value, a table the
 * items where it is written; an edit changes the tree and puts in or strikes out items.
 */
#pragma once

#include "codec/toml.h"

enum item_kind {
    ITEM_KEY,     /* a.b = value */
    ITEM_HEADER,  /* [a.b] */
    ITEM_ELEMENT, /* [[a.b]] */
    ITEM_TABLE,   /* a table that was made: header, keys and all below it */
    ITEM_REST,    /* the end of the text */
};

struct toml_item {
    struct toml_item *prev, *next;
    uint8_t kind;
    bool gone;          /* removed; only the comments before it are left */
    struct str lead;    /* blank lines, comments and indentation before it */
    struct str head;    /* "a.b = " or "[a.b]"; STR_NONE: made, and written from the tree */
    struct str trail;   /* the rest of its last line, line end included; STR_NONE: a line end */
    struct toml *value; /* of a key; of a header its table */
    struct toml *table; /* of a key: the one it is in */
    struct str key;
};

struct item_list {
    struct toml_item *first, *last;
};

/* How a table or array came to be. It decides what the text, or an edit, may add to it and how. */
enum origin {
    ORIGIN_MADE,    /* by toml_new_* */
    ORIGIN_ROOT,    /* the document */
    ORIGIN_HEADER,  /* [a], an element of [[a]]; of an array: all of the [[a]] */
    ORIGIN_IMPLIED, /* a, by [a.b] */
    ORIGIN_DOTTED,  /* a, by a.b = 1 */
    ORIGIN_INLINE,  /* { } and [ ] */
};

/* The entries of a table are a list in order, and a PATRICIA tree to find them: every entry but
 * the first also is a node that tests one bit of the key, bits ascend on the way down, and a
 * link to an entry whose bit is not larger ends the search there. A look-up tests no bit twice,
 * so it costs no more than the key is long, whatever the other keys are: unlike a hash there is
 * nothing to attack. */
struct toml_entry {
    struct str key;
    struct toml *value;     /* NULL: removed, and no longer in the list */
    struct toml_item *item; /* which holds the value; NULL: sections or dotted keys do */
    struct toml_entry *prev, *next;
    struct toml_entry *branch[2];
    int32_t bit; /* -1: tests none */
};

struct toml_table {
    struct toml *parent; /* the table it is in; of an element, the one that holds the array */
    struct str key;      /* in the parent */
    struct toml_entry *first, *last, *tree;
    uint32_t count;
    bool element;           /* of an array of tables */
    struct item_list items; /* of the root: the document; of an inline table: its keys */
    /* Where it is written. `start`: its header, or the one that implied it, or its first dotted
     * key. `end_key`: the last item of its section, or its last dotted key. `end_section`: the
     * last header in it or below it. NULL where there is none. Items that are gone remain
     * places. */
    struct toml_item *start, *end_key, *end_section;
    struct str line_end; /* of the root: "\n" or "\r\n" */
    struct str bom;      /* of the root */
};

struct toml {
    uint8_t type;   /* enum toml_type */
    uint8_t origin; /* enum origin, of tables and arrays */
    bool edited;    /* an inline table that no longer is what `text` says */
    struct text_pos pos;
    struct str text; /* its spelling; STR_NONE: made, or written as lines */
    union {
        struct str str; /* strings, dates and times */
        int64_t integer;
        double real;
        bool boolean;
        struct {
            struct toml **items;
            uint32_t count, cap;
        } array;
        struct toml_table *table;
    };
    const void *mark;
};

/* --- toml_table.c --- */

struct toml *toml_new(struct arena *arena, enum toml_type type, enum origin origin);
/* The entry of that key, added as the last if it is not there: its value is NULL then, and the
 * caller must give it one. */
struct toml_entry *toml_entry_add(struct arena *arena, struct toml *table, struct str key);
struct toml_entry *toml_entry_find(const struct toml *table, struct str key); /* NULL: none */
void toml_entry_unlink(struct toml *table, struct toml_entry *entry);
void toml_entry_link_first(struct toml *table, struct toml_entry *entry); /* of an unlinked one */
void toml_array_push(struct arena *arena, struct toml *array, struct toml *item);

/* --- toml_scalar.c --- */

/* A number, boolean, date or time. A date and a time with a blank between are one word. On failure
 * ERR_INVALID without a place. */
int toml_read_word(struct arena *arena, struct str word, struct toml **out, struct err *err);

/* --- toml_lex.c --- */

struct toml_reader {
    struct arena *arena;
    struct str text;
    size_t at;
    uint32_t line;
    size_t line_start;
    struct text_pos failed; /* where, once something has */
    struct err *err;
};

static inline char toml_peek(const struct toml_reader *r) /* NUL at the end: no text has one */
{
    return r->at < r->text.len ? r->text.p[r->at] : 0;
}
struct text_pos toml_here(const struct toml_reader *r);
int toml_fail(struct toml_reader *r, struct text_pos at, const char *fmt, ...) KV_PRINTF(3, 4);
#ifdef __clang_analyzer__ /* as with err_set */
#define toml_fail(...) (toml_fail(__VA_ARGS__), err_minus_one())
#endif
/* "found ..." for messages. */
#define TOML_FOUND_MAX 32
const char *toml_found(const struct toml_reader *r, char out[TOML_FOUND_MAX]);
#define TOML_FOUND(r) toml_found((r), (char[TOML_FOUND_MAX]){ 0 })

int toml_check_text(struct toml_reader *r); /* what no place of a text may hold; skips a BOM */
void toml_skip_blanks(struct toml_reader *r);
void toml_skip_lines(struct toml_reader *r); /* blanks, line ends and comments */
int toml_end_line(struct toml_reader *r); /* blanks, a comment, and the line's end or the text's */
int toml_read_key(struct toml_reader *r, struct str *out); /* one part: bare or quoted */
int toml_read_string(struct toml_reader *r, struct str *out);
struct str toml_take_word(struct toml_reader *r);

/* --- toml_write.c --- */

/* The path of a table's key from the root, or from `top`. */
void toml_add_path(struct buf *out, const struct toml *table, struct str key,
                   const struct toml *maybe_top);
