/* sched/words.h - names and label values in messages.
 *
 * They come from manifests and may hold anything, escapes of a terminal included. One that looks like
 * a name is shown as it is, any other is quoted (STR_SHOWN).
 */
#pragma once

#include "api/requirement.h"

#define NAMES_SHOWN 5 /* of a list */

/* For "%s"; good until the end of the block. */
#define NAME_SHOWN(s) name_shown((s), (char[STR_SHOWN_MAX]){ 0 })
const char *name_shown(struct str s, char out[STR_SHOWN_MAX]); /* returns `out` */
bool name_is_plain(struct str s);                              /* shown as it is */

void add_name(struct buf *out, struct str name);
void add_names(struct buf *out, struct str_list names); /* "a, b and 3 others" */
/* A few words of somebody else's: as they are, cut where they are very long, or quoted if a terminal
 * might obey them. */
#define TEXT_BYTES_SHOWN 300
void add_text(struct buf *out, struct str text);
/* As requirement_format shows it: "zone In [a b]". */
void add_requirement(struct buf *out, const struct requirement *r);
