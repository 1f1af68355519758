/* api/flat.h - a decoded value as one run of bytes that can be copied, compared and hashed.
 *
 * A value that a schema describes is a tree of structs, lists and strings. Flattened it is one
 * block: the struct first, everything it points at behind it, pointers written as offsets from the
 * start. Equal values are equal bytes, wherever they came from; this needs padding to be zero, as
 * it is in views (arenas zero what they hand out) and in what is made from them. Copying the bytes and
 * adding the new address to each pointer gives the value again.
 */
#pragma once

#include "api/schema.h"

/* Called for each FIELD_SHARED value: returns where its one shared copy is. `items` and `count`
 * are what a list or map has; an option has one item. */
typedef const void *(*flat_share_fn)(void *ctx, const struct field *field, const void *items,
                                     uint32_t count);

struct flat { /* zero-initialised is empty */
    unsigned char *bytes;
    size_t len, cap;
    VEC(uint32_t) pointers; /* places in bytes that hold an offset */
    flat_share_fn share;    /* NULL: shared values are written like any other */
    void *share_ctx;
    struct str last; /* the string written last, and where: a prefix of it is not written again */
    size_t last_at;
};

void flat_done(struct flat *flat);
void flat_clear(struct flat *flat); /* keeps the memory */

/* Each appends to an empty flat. What a struct has before its first described member (the count of
 * an object) does not belong to the value and is written as zero. */
void flat_struct(struct flat *flat, const struct schema *schema, const void *value);
/* What a FIELD_OPTION, LIST, MAP, STR_MAP or RESOURCES points at. */
void flat_items(struct flat *flat, const struct field *field, const void *items, uint32_t count);

uint64_t flat_hash(struct flat *flat);

/* Turn offsets into the pointers that they are once the bytes lie at `base`, and back. */
void flat_bind(struct flat *flat, const void *base);
void flat_unbind(struct flat *flat, const void *base);
