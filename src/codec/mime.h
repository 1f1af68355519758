/* codec/mime.h - multipart archives as cloud-init reads them.
 *
 * Parts keep every header and the bytes of their bodies, transfer encodings included; nested
 * multiparts are flattened in order and leave nothing of their own. LF and CRLF are read and LF is
 * written: every CR is dropped, wherever it stands.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "codec/json.h" /* struct text_pos */

#define MIME_BYTES_MAX ((size_t)1 << 20)
#define MIME_PARTS_MAX 1000
#define MIME_HEADERS_MAX 100 /* of one part */
#define MIME_DEPTH_MAX 8

struct mime_header {
    struct str name, value; /* unfolded: what was on several lines is joined by single blanks */
};

struct mime_part {
    const struct mime_header *headers; /* in the order of the text */
    uint32_t header_count;
    struct str body;
    uint32_t line; /* of the body's first line in the text that was read, from 1 */
};

struct mime {
    const struct mime_part *parts;
    uint32_t count;
};

/* Does the text say so, with MIME-Version: or Content-Type: (any case) after leading blanks? */
bool mime_is_multipart(struct str text);

/* ERR_INVALID: no Content-Type, not multipart, no boundary, a boundary that never occurs, a broken
 * header, beyond the limits. Leading blank lines, a preamble and an epilogue are passed over, and
 * the end may be missing. Lives in the arena, and borrows from `text`. On failure `at` is the line
 * (column 0); if it is NULL the message says it. */
int mime_read(struct arena *arena, struct str text, struct mime *out, struct text_pos *at,
              struct err *err);

/* The value of the first header of that name, in any case; STR_NONE if absent. */
struct str mime_header(const struct mime_part *part, const char *name);
/* A parameter of a header's value: "us-ascii" of "text/plain; charset="us-ascii"" and "charset".
 * Unquoted, in the arena; STR_NONE if absent. */
struct str mime_param(struct arena *arena, struct str value, const char *name);
/* "text/x-shellscript" of "text/x-shellscript; charset=us-ascii", lower case; "text/plain" if the
 * part does not say. */
struct str mime_content_type(struct arena *arena, const struct mime_part *part);
/* The body with its transfer encoding (base64, quoted-printable) undone. */
int mime_body(struct arena *arena, const struct mime_part *part, struct str *out, struct err *err);

/* Write an archive. The boundary is "//", with as many = behind it as it takes for no line of a
 * body to start with it; headers are sorted by name. A newline stands before every delimiter,
 * whether or not the body ends with one. Calls `part` (may be NULL) with the places of each part:
 * of its headers, its body, and the body's end. */
typedef void mime_part_fn(void *ctx, uint32_t i, size_t headers, size_t body, size_t end);
void mime_write(const struct mime_part *parts, uint32_t count, struct buf *out, mime_part_fn *part,
                void *ctx);
