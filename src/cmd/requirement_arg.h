/* cmd/requirement_arg.h - a requirement on labels, as it is typed on a command line and printed.
 *
 *     'key In a,b'   'key in (a, b)'   'key NotIn a'   'key Exists'   'key DoesNotExist'
 *     'key Gt 4'     'key>4'  'key>=4'  'key<4'  'key<=4'
 *     'key=a'        'key==a'  'key!=a'   'key'   '!key'
 */
#pragma once

#include "api/requirements.h"

/* The texts of the result point into `text`. ERR_INVALID says what was expected. */
int requirement_arg_parse(struct arena *arena, struct str text, struct expression *out,
                          struct err *err);
/* "key In [a b]", "key Gt 4", "key Exists". */
void expression_format(const struct expression *e, struct buf *out);
