/* codec/json_scan.h - reading JSON text without building anything: where things are in it.
 *
 * For the rare moments when an error must name a place, and for cutting a stream of JSON texts
 * into single ones. Texts need not be valid; nothing here recurses or allocates.
 */
#pragma once

#include "codec/json.h"

/* The position of text.p[offset] when that of text.p[0] is `start`. A line ends with \n, \r\n or a
 * lone \r. */
struct text_pos text_pos_at(struct str text, size_t offset, struct text_pos start);

/* The positions of the first `count` values of a valid text, in pre-order, keys included. */
void json_scan_positions(struct str text, struct text_pos start, struct text_pos *out,
                         size_t count);

/* Measure the first value of a text. `end` is the offset behind it: where its brackets are
 * balanced, or the end of the text. `too_deep` is the offset of the bracket that opens more than
 * JSON_DEPTH_MAX levels, where the scan stops, or SIZE_MAX. */
struct json_extent {
    size_t end, too_deep;
};
struct json_extent json_scan_extent(struct str text);
