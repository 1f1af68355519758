/* What an edit changes on the node, and whether it replaces the nodes there are.
 *
 * The texts are compared line by line (longest common subsequence, between the lines that both
 * begin and end with). Drift is asked of the hashes that the controllers compare, not guessed from
 * the fields; the fields say why.
 */
#include "cmd/userdata.h"

#include "api/hash.h"
#include "api/nodepool.h"

#define CONTEXT ((size_t)3)                /* lines */
#define TABLE_CELLS_MAX ((size_t)16 << 20) /* beyond it, what differs is shown as one block */

/* --- lines --- */

struct lines {
    struct str *items;
    size_t count;
};

enum { KEPT = ' ', REMOVED = '-', ADDED = '+' };

struct edit {
    char what;
    struct str line;
};

struct edits {
    VEC(struct edit) items;
};

static struct lines split(struct arena *arena, struct str text)
{
    struct lines lines = { 0 };
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.p[i] == '\n';
    lines.items = arena_array(arena, struct str, count);
    while (text.len) {
        struct str line, rest;
        bool more = str_cut(text, '\n', &line, &rest);
        lines.items[lines.count++] = line;
        text = more ? rest : STR("");
    }
    return lines;
}

static void add_edit(struct edits *edits, char what, struct str line)
{
    vec_push(&edits->items, (struct edit){ what, line });
}

/* longest[i][j]: how many lines old[i..] and new[j..] have in common, in order. */
static void compare_middle(struct lines old, struct lines new, struct edits *edits)
{
    size_t width = new.count + 1, i = 0, j = 0;
    bool small = old.count && new.count &&old.count < TABLE_CELLS_MAX / width;
    uint16_t *longest = small ? kv_calloc((old.count + 1) * width, sizeof *longest) : NULL;

    for (size_t a = small ? old.count : 0; a-- > 0;) {
        for (size_t b = new.count; b-- > 0;) {
            uint16_t down = longest[(a + 1) * width + b], right = longest[a * width + b + 1];
            longest[a * width + b] = str_eq(old.items[a], new.items[b])
                                         ? (uint16_t)(longest[(a + 1) * width + b + 1] + 1)
                                         : (down > right ? down : right);
        }
    }
    while (small && i < old.count && j < new.count) {
        if (str_eq(old.items[i], new.items[j])) {
            add_edit(edits, KEPT, old.items[i]);
            i++, j++;
        } else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) {
            add_edit(edits, REMOVED, old.items[i++]);
        } else {
            add_edit(edits, ADDED, new.items[j++]);
        }
    }
    for (; i < old.count; i++)
        add_edit(edits, REMOVED, old.items[i]);
    for (; j < new.count; j++)
        add_edit(edits, ADDED, new.items[j]);
    free(longest);
}

static void compare(struct lines old, struct lines new, struct edits *edits)
{
    size_t head = 0, tail = 0;
    size_t shorter = old.count < new.count ? old.count : new.count;
    while (head < shorter && str_eq(old.items[head], new.items[head]))
        add_edit(edits, KEPT, old.items[head++]);
    while (tail < shorter - head &&
           str_eq(old.items[old.count - 1 - tail], new.items[new.count - 1 - tail]))
        tail++;
    compare_middle((struct lines){ old.items + head, old.count - head - tail },
                   (struct lines){ new.items + head, new.count - head - tail }, edits);
    for (size_t i = old.count - tail; i < old.count; i++)
        add_edit(edits, KEPT, old.items[i]);
}

/* --- unified output --- */

static void add_line(struct buf *out, const struct edit *e, bool colour)
{
    const char *tint = e->what == ADDED ? "\033[32m" : e->what == REMOVED ? "\033[31m" : "";
    buf_addf(out, "%s%c%.*s%s\n", colour ? tint : "", e->what, STR_ARG(e->line),
             colour && *tint ? "\033[0m" : "");
}

/* One hunk: the edits [from, to), which start at these lines. */
static void add_hunk(struct buf *out, const struct edits *edits, size_t from, size_t to,
                     size_t old_line, size_t new_line, bool colour)
{
    size_t old_count = 0, new_count = 0;
    for (size_t i = from; i < to; i++) {
        old_count += edits->items.items[i].what != ADDED;
        new_count += edits->items.items[i].what != REMOVED;
    }
    /* As in diff(1): a side without lines names the line before. */
    buf_addf(out, "@@ -%zu,%zu +%zu,%zu @@\n", old_count ? old_line : old_line - 1, old_count,
             new_count ? new_line : new_line - 1, new_count);
    for (size_t i = from; i < to; i++)
        add_line(out, &edits->items.items[i], colour);
}

static void add_hunks(struct buf *out, const struct edits *edits, bool colour)
{
    size_t count = edits->items.count, old_line = 1, new_line = 1, i = 0;
    while (i < count) {
        size_t from = i;
        while (i < count && edits->items.items[i].what == KEPT)
            i++;
        if (i == count)
            break;
        size_t skipped = i - from > CONTEXT ? i - from - CONTEXT : 0;
        from += skipped;
        old_line += skipped;
        new_line += skipped;
        /* On to the last change that is near the one before. */
        size_t last = i;
        for (; i < count && i - last <= 2 * CONTEXT; i++)
            last = edits->items.items[i].what != KEPT ? i : last;
        size_t to = last + 1 + CONTEXT < count ? last + 1 + CONTEXT : count;
        add_hunk(out, edits, from, to, old_line, new_line, colour);
        for (i = from; i < to; i++) {
            old_line += edits->items.items[i].what != ADDED;
            new_line += edits->items.items[i].what != REMOVED;
        }
    }
}

/* --- fields --- */

enum field_drift { DRIFTS_BY_HASH, DRIFTS_BY_SELECTION, DRIFTS_NEVER };
static const char *const drift_words[] = { "hash", "selection", "never" };

static enum field_drift drift_of(struct str field)
{
    static const char *const selecting[] = { "amiSelectorTerms", "capacityReservationSelectorTerms",
                                             "securityGroupSelectorTerms", "subnetSelectorTerms" };
    for (size_t i = 0; i < KV_COUNT_OF(selecting); i++) {
        if (str_eqz(field, selecting[i]))
            return DRIFTS_BY_SELECTION;
    }
    return str_eqz(field, "ipPrefixCount") ? DRIFTS_NEVER : DRIFTS_BY_HASH;
}

struct changed_field {
    struct str path;
    enum field_drift drift;
};

struct changes {
    VEC(struct changed_field) fields;
    struct edits edits;
    bool text, node_resources, class_hash, pool_hash;
    bool selects_anew; /* a field changed whose result is known only to the cloud */
    uint64_t old_hash, new_hash;
};

static void compare_members(struct arena *arena, const char *prefix, const json_val *old,
                            const json_val *new, struct changes *c)
{
    const json_val *sides[] = { old, new };
    for (int side = 0; side < 2; side++) {
        json_each_member(sides[side], key, value) {
            const json_val *other = json_get(sides[!side], json_key(key));
            bool counted_before = side == 1 && other;
            if (counted_before || json_equal(value, other))
                continue;
            struct str name = json_key(key);
            bool annotation = *prefix == 'm';
            if (annotation && !str_starts(name, STR("karve.io/")))
                continue;
            vec_push(&c->fields, (struct changed_field){
                                     arena_strf(arena, annotation ? "%s[\"%.*s\"]" : "%s.%.*s",
                                                prefix, STR_ARG(name)),
                                     annotation ? DRIFTS_NEVER : drift_of(name) });
        }
    }
}

static bool resources_equal(const struct resources *a, const struct resources *b)
{
    bool equal = a->count == b->count;
    for (uint32_t i = 0; equal && i < a->count; i++)
        equal = str_eq(a->items[i].name, b->items[i].name) &&
                quantity_cmp(a->items[i].amount, b->items[i].amount) == 0;
    return equal;
}

static void find_changes(struct arena *arena, const struct userdata *old,
                         const struct userdata *new, struct str ca, struct changes *c)
{
    compare(split(arena, old->text.text), split(arena, new->text.text), &c->edits);
    c->text = !str_eq(old->text.text, new->text.text);
    compare_members(arena, "metadata.annotations",
                    json_path(old->class_json, "metadata.annotations"),
                    json_path(new->class_json, "metadata.annotations"), c);
    compare_members(arena, "spec", json_get(old->class_json, STR("spec")),
                    json_get(new->class_json, STR("spec")), c);
    vec_each(&c->fields, struct changed_field, field)
        c->selects_anew |= field->drift == DRIFTS_BY_SELECTION;
    c->old_hash = ec2nodeclass_hash(old->class_, ca);
    c->new_hash = ec2nodeclass_hash(new->class_, ca);
    c->class_hash = c->old_hash != c->new_hash;
    c->pool_hash = old->maybe_pool && new->maybe_pool &&nodepool_hash(old->maybe_pool) !=
                                          nodepool_hash(new->maybe_pool);
    c->node_resources =
        old->has_resources && new->has_resources &&
        (!resources_equal(&old->resources.capacity, &new->resources.capacity) ||
         !resources_equal(&old->resources.allocatable, &new->resources.allocatable));
}

static bool any_change(const struct changes *c)
{
    return c->text || c->fields.count || c->class_hash || c->pool_hash || c->node_resources;
}

/* --- reports --- */

static void add_names(struct buf *out, const struct userdata *u, const char *mark)
{
    buf_addf(out, "%s %s (EC2NodeClass/%.*s)\n", mark, u->class_item->file->path,
             STR_ARG(u->class_item->name));
}

static void add_amount(struct buf *out, struct str name, struct quantity old, struct quantity new)
{
    char before[QUANTITY_TEXT_MAX], after[QUANTITY_TEXT_MAX];
    quantity_format(old, before);
    quantity_format(new, after);
    if (quantity_cmp(old, new) != 0)
        buf_addf(out, "allocatable %.*s: %s -> %s\n", STR_ARG(name), before, after);
}

static void add_amounts(struct buf *out, const struct userdata *old, const struct userdata *new)
{
    const struct resources *was = &old->resources.allocatable, *is = &new->resources.allocatable;
    for (uint32_t i = 0; i < is->count; i++)
        add_amount(out, is->items[i].name, resources_get(was, is->items[i].name),
                   is->items[i].amount);
    for (uint32_t i = 0; i < was->count; i++) {
        struct quantity now = resources_get(is, was->items[i].name);
        if (quantity_is_zero(now)) /* gone; the others were counted */
            add_amount(out, was->items[i].name, was->items[i].amount, now);
    }
}

static void report_text(const struct userdata *old, const struct userdata *new,
                        const struct changes *c, bool colour, struct buf *out)
{
    if (!any_change(c)) {
        buf_addz(out, "nothing changes\n");
        return;
    }
    if (c->text) {
        add_names(out, old, "---");
        add_names(out, new, "+++");
        add_hunks(out, &c->edits, colour);
        buf_addc(out, '\n');
    }
    vec_each(&c->fields, struct changed_field, field)
        buf_addf(out, "changed: %.*s\n", STR_ARG(field->path));
    if (c->node_resources)
        add_amounts(out, old, new);
    buf_addf(out, "user data: %s\n", c->text ? "changes" : "stays the same");
    if (c->class_hash)
        buf_addf(
            out,
            "drift: yes, nodes of the class are replaced (NodeClassDrift, hash %llu -> %llu)\n",
            (unsigned long long)c->old_hash, (unsigned long long)c->new_hash);
    if (c->pool_hash)
        buf_addz(out, "drift: yes, nodes of the pool are replaced (NodePoolDrift)\n");
    if (c->class_hash || c->pool_hash)
        return;
    if (c->selects_anew)
        buf_addz(out, "drift: only if the selector terms now select something else\n");
    else
        buf_addf(out, "drift: no, nodes stay%s\n",
                 c->text ? "; only new ones get the new user data" : "");
}

static void report_json(const struct userdata *old, const struct userdata *new,
                        const struct changes *c, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF hunks = { 0 };
    char hash[HASH_TEXT_MAX];
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *fields = json_new_array(&b);

    add_hunks(&hunks, &c->edits, false);
    vec_each(&c->fields, struct changed_field, field) {
        json_mut *o = json_new_object(&b);
        json_set_str(&b, o, "path", field->path);
        json_set_str(&b, o, "drift", str_of(drift_words[field->drift]));
        json_push(&b, fields, o);
    }
    json_set_bool(&b, root, "changed", any_change(c));
    json_set_bool(&b, root, "userDataChanged", c->text);
    json_set_bool(&b, root, "drifts", c->class_hash || c->pool_hash);
    json_set_bool(&b, root, "nodeClassDrift", c->class_hash);
    json_set_bool(&b, root, "nodePoolDrift", c->pool_hash);
    json_set_bool(&b, root, "selectsAnew", c->selects_anew);
    json_set_str(&b, root, "oldHash", (struct str){ hash, hash_format(c->old_hash, hash) });
    json_set_str(&b, root, "newHash", (struct str){ hash, hash_format(c->new_hash, hash) });
    json_set(&b, root, STR("fields"), fields);
    json_set_str(&b, root, "diff", c->text ? buf_str(&hunks) : STR(""));
    json_set_i64(&b, root, "oldBytes", (int64_t)old->text.text.len);
    json_set_i64(&b, root, "newBytes", (int64_t) new->text.text.len);
    if (old->has_resources && new->has_resources) {
        json_set(&b, root, STR("oldAllocatable"), resources_json(&b, &old->resources.allocatable));
        json_set(&b, root, STR("newAllocatable"), resources_json(&b, &new->resources.allocatable));
    }
    json_write_pretty(root, out);
    buf_addc(out, '\n');
}

void userdata_diff(const struct userdata *old, const struct userdata *new, struct str ca, bool json,
                   bool colour, struct buf *out, bool *changed)
{
    AUTO_ARENA arena = { 0 };
    struct changes c = { 0 };
    find_changes(&arena, old, new, ca, &c);
    *changed = any_change(&c);
    if (json)
        report_json(old, new, &c, out);
    else
        report_text(old, new, &c, colour, out);
    vec_done(&c.fields);
    vec_done(&c.edits.items);
}
