/* Who set what. Each row is a line of the user data or, where a line has several owners, a part of
 * one: `|` starts a line, `+` goes on with it. A note stands under what it is about. */
#include "cmd/userdata.h"

struct listing {
    struct buf *out;
    bool colour;
    int width; /* of the owners */
    struct buf row;
    enum boot_owner owner;
    bool line_start;       /* the row that is being filled starts a line */
    VEC(struct str) notes; /* about what is in it */
};

static const char *const tints[] = {
    [OWNER_USER] = "\033[32m",
    [OWNER_KARVE] = "\033[36m",
    [OWNER_KUBELET] = "\033[33m",
};

/* What a terminal would obey is shown instead. */
static void add_shown(struct buf *out, struct str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '\r')
            buf_addz(out, "\\r");
        else if ((c < ' ' && c != '\t') || c == 0x7f)
            buf_addf(out, "\\x%02x", c);
        else
            buf_addc(out, text.p[i]);
    }
}

static void end_row(struct listing *l)
{
    if (l->row.len || l->line_start)
        buf_addf(l->out, "%s%-*s%s %c%s%s\n", l->colour ? tints[l->owner] : "", l->width,
                 boot_owner_name(l->owner), l->colour ? "\033[0m" : "", l->line_start ? '|' : '+',
                 l->row.len ? " " : "", l->row.len ? l->row.p : "");
    vec_each(&l->notes, struct str, note)
        buf_addf(l->out, "%-*s ^ %.*s\n", l->width, "", STR_ARG(*note));
    buf_clear(&l->row);
    l->notes.count = 0;
    l->line_start = false;
}

static void add_note(struct listing *l, struct str note)
{
    vec_each(&l->notes, struct str, known) {
        if (str_eq(*known, note))
            return;
    }
    vec_push(&l->notes, note);
}

static void add_piece(struct listing *l, const struct boot_piece *piece)
{
    struct str line, rest = piece->text;
    if (l->row.len && piece->owner != l->owner)
        end_row(l);
    l->owner = piece->owner;
    if (piece->note.len)
        add_note(l, piece->note);
    while (str_cut(rest, '\n', &line, &rest)) {
        add_shown(&l->row, line);
        end_row(l);
        l->line_start = true;
    }
    add_shown(&l->row, line);
}

static void add_resources(const struct userdata *u, struct buf *out)
{
    const struct node_resources *r = &u->resources;
    bool known = r->eviction.count; /* who keeps what back: a catalogue file says only how much */
    const char *const titles[] = { "capacity", "kube-reserved", "system-reserved",
                                   "eviction", "overhead",      "allocatable" };
    const struct resources none = { 0 };
    const struct resources *lists[] = { &r->capacity,
                                        &r->kube_reserved,
                                        &r->system_reserved,
                                        &r->eviction,
                                        known ? &none : &r->overhead,
                                        &r->allocatable };
    buf_addc(out, '\n');
    for (size_t i = 0; i < KV_COUNT_OF(titles); i++) {
        if (!lists[i]->count)
            continue;
        buf_addf(out, "%-16s", titles[i]);
        for (uint32_t k = 0; k < lists[i]->count; k++) {
            char text[QUANTITY_TEXT_MAX];
            quantity_format(lists[i]->items[k].amount, text);
            buf_addf(out, "%s%.*s %s", k ? ", " : "", STR_ARG(lists[i]->items[k].name), text);
        }
        buf_addc(out, '\n');
    }
}

void userdata_explain(const struct userdata *u, struct buf *out, bool colour)
{
    struct listing l = { .out = out, .colour = colour, .line_start = true };
    for (uint32_t i = 0; i < u->text.pieces.count; i++) {
        int width = (int)strlen(boot_owner_name(u->text.pieces.items[i].owner));
        l.width = width > l.width ? width : l.width;
    }
    for (uint32_t i = 0; i < u->text.pieces.count; i++)
        add_piece(&l, &u->text.pieces.items[i]);
    if (l.row.len || l.notes.count)
        end_row(&l);
    buf_done(&l.row);
    vec_done(&l.notes);
    if (u->has_resources)
        add_resources(u, out);
}
