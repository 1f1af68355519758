/* See words.h. */
#include "sched/words.h"

#include <inttypes.h>

#define NAME_BYTES_MAX 100 /* a label key may be longer: 253 + 1 + 63 */

bool name_is_plain(struct str s)
{
    if (s.len == 0 || s.len > NAME_BYTES_MAX)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (!char_is_alnum(s.p[i]) && (!s.p[i] || !strchr("-_./:@+", s.p[i])))
            return false;
    }
    return true;
}

const char *name_shown(struct str s, char out[STR_SHOWN_MAX])
{
    _Static_assert(NAME_BYTES_MAX < STR_SHOWN_MAX, "a plain name has room");
    if (!name_is_plain(s))
        return str_shown(s, out);
    memcpy(out, s.p, s.len);
    out[s.len] = '\0';
    return out;
}

void add_name(struct buf *out, struct str name)
{
    buf_addz(out, NAME_SHOWN(name));
}

void add_names(struct buf *out, struct str_list names)
{
    uint32_t shown = names.count <= NAMES_SHOWN ? names.count : NAMES_SHOWN;
    for (uint32_t i = 0; i < shown; i++) {
        buf_addz(out, i ? ", " : "");
        add_name(out, names.items[i]);
    }
    if (shown < names.count)
        buf_addf(out, " and %u others", names.count - shown);
}

void add_text(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if (text.p[i] < ' ' || text.p[i] > '~') {
            buf_addz(out, STR_SHOWN(text));
            return;
        }
    }
    buf_add(out, str_sub(text, 0, text.len < TEXT_BYTES_SHOWN ? text.len : TEXT_BYTES_SHOWN));
    buf_addz(out, text.len > TEXT_BYTES_SHOWN ? "..." : "");
}

void add_requirement(struct buf *out, const struct requirement *r)
{
    add_name(out, r->key);
    buf_addf(out, " %s", requirement_op_names[requirement_operator(r) - 1]);
    for (uint32_t i = 0; i < r->values.count && i < NAMES_SHOWN; i++) {
        buf_addz(out, i ? " " : " [");
        add_name(out, r->values.items[i]);
    }
    if (r->values.count > NAMES_SHOWN)
        buf_addf(out, " and %u others", r->values.count - NAMES_SHOWN);
    buf_addz(out, r->values.count ? "]" : "");
    if (r->gte.set)
        buf_addf(out, " >=%" PRId64, r->gte.value);
    if (r->lte.set)
        buf_addf(out, " <=%" PRId64, r->lte.value);
    if (r->min_values.set)
        buf_addf(out, " minValues %" PRId64, r->min_values.value);
}
