/* `karve instance-types --preview`: what overlays would change, before they are applied. Several in
 * one file are taken in the order they are written, each on top of those before it.
 */
#include "cmd/instance_types_inner.h"

#include "cloud/overlay_preview.h"
#include "cmd/table.h"

#include <inttypes.h>

/* --- making --- */

/* The overlays that are there, with the candidates before `at` in their places. */
static uint32_t current_overlays(const struct listing *l, size_t at, const struct nodeoverlay **out)
{
    uint32_t count = 0;
    vec_each(&l->loaded.overlays, const struct nodeoverlay *, overlay)
        out[count++] = *overlay;
    for (size_t c = 0; c < at; c++) {
        const struct nodeoverlay *candidate = l->candidates.items[c];
        uint32_t i = 0;
        while (i < count && !str_eq(out[i]->object.meta.name, candidate->object.meta.name))
            i++;
        out[i] = candidate;
        count += i == count;
    }
    return count;
}

static struct overlay_preview preview_of(struct listing *l, size_t at)
{
    size_t overlays_max = l->loaded.overlays.count + l->candidates.count;
    const struct nodeoverlay **current =
        arena_array(&l->arena, const struct nodeoverlay *, overlays_max);
    struct overlay_pool *pools = arena_array(&l->arena, struct overlay_pool, l->pools.count);
    struct overlay_preview preview;
    for (size_t i = 0; i < l->pools.count; i++)
        pools[i] = loaded_overlay_pool(&l->loaded.pools.items[i]);
    uint32_t count = current_overlays(l, at, current);
    overlay_preview_make(l->candidates.items[at], current, count, pools, (uint32_t)l->pools.count,
                         &l->arena, &preview);
    return preview;
}

static const struct pool_view *view_of(const struct listing *l, struct str pool)
{
    vec_each(&l->pools, struct pool_view, view) {
        if (str_eq(view->name, pool))
            return view;
    }
    KV_UNREACHABLE();
}

/* Could the pool launch it? */
static bool is_wanted(const struct pool_view *view, uint32_t offering)
{
    return bitset_test(&view->launchable, view->types->offering_type[offering]) &&
           bitset_test(&view->shapes, view->types->offering_shape[offering]) &&
           bitset_test(&view->types->available, offering);
}

/* --- for people --- */

static struct str by_whom(struct arena *arena, struct str amount, struct str overlay)
{
    return overlay.len ? arena_strf(arena, "%.*s (%.*s)", STR_ARG(amount), STR_ARG(overlay))
                       : amount;
}

static struct str change_text(struct arena *arena, usd_hour before, usd_hour after)
{
    if (before == 0)
        return STR("-");
    double percent = ((double)after - (double)before) / (double)before * 100;
    return arena_strf(arena, "%+.1f%%", percent);
}

/* Without NodePools there is one that has no name, and no column for it. */
static size_t unused_columns(const struct listing *l)
{
    return l->pools.items[0].name.len ? 0 : 1;
}

static void add_pool_name(struct table *table, const struct pool_view *view)
{
    if (view->name.len)
        table_add(table, view->name);
}

static bool same_change(const struct preview_price *a, const struct preview_price *b)
{
    return str_eq(a->capacity_type, b->capacity_type) && a->before == b->before &&
           a->after == b->after && str_eq(a->by_before, b->by_before) &&
           str_eq(a->by_after, b->by_after);
}

/* One row for the zones in which the same happens. */
static void add_price_rows(struct table *table, const struct pool_view *view,
                           const struct preview_type *type, struct str candidate, size_t prefix,
                           bool all, struct arena *arena)
{
    struct bitset done = bitset_new(arena, type->prices.count);
    for (uint32_t i = 0; i < type->prices.count; i++) {
        const struct preview_price *p = &type->prices.items[i];
        if (bitset_test(&done, i) || !(all || is_wanted(view, p->offering)))
            continue;
        AUTO_BUF zones = { 0 };
        for (uint32_t k = i; k < type->prices.count; k++) {
            const struct preview_price *other = &type->prices.items[k];
            if (!same_change(p, other) || !(all || is_wanted(view, other->offering)))
                continue;
            bitset_set(&done, k);
            buf_addf(&zones, "%s%.*s", zones.len ? "," : "",
                     STR_ARG(str_sub(other->zone, prefix, other->zone.len)));
        }
        struct str by_after = str_eq(p->by_after, candidate) ? STR("") : p->by_after;
        add_pool_name(table, view);
        table_add(table, type->type);
        table_add(table, p->capacity_type);
        table_add(table, buf_str(&zones));
        table_add(table, by_whom(arena, price_text(arena, p->before), p->by_before));
        table_add(table, by_whom(arena, price_text(arena, p->after), by_after));
        table_add(table, change_text(arena, p->before, p->after));
    }
}

static struct str milli_text(struct arena *arena, const struct pool_view *view, struct str resource,
                             int64_t milli)
{
    const struct resource_column *column = instance_types_resource(view->raw, resource);
    struct quantity q = quantity_of_milli(milli);
    char text[QUANTITY_TEXT_MAX];
    if (column)
        q.format = column->format;
    quantity_format(q, text);
    return arena_str(arena, str_of(text));
}

/* Types of a pool to which the same happens. */
struct capacity_group {
    const struct pool_view *view;
    const struct preview_capacity *change;
    uint32_t count;
    struct buf names;
};
typedef VEC(struct capacity_group) capacity_groups;

#define NAMES_SHOWN 3

static void group_capacity(capacity_groups *groups, const struct pool_view *view,
                           const struct preview_type *type, const struct preview_capacity *change,
                           bool wide)
{
    struct capacity_group *group = NULL;
    vec_each(groups, struct capacity_group, g) {
        const struct preview_capacity *c = g->change;
        if (g->view == view && str_eq(c->resource, change->resource) &&
            c->before == change->before && c->after == change->after &&
            str_eq(c->by_before, change->by_before) && str_eq(c->by_after, change->by_after))
            group = g;
    }
    if (!group) {
        vec_push(groups, (struct capacity_group){ .view = view, .change = change });
        group = &vec_last(groups);
    }
    if (wide || group->count < NAMES_SHOWN)
        buf_addf(&group->names, "%s%.*s", group->count ? ", " : "", STR_ARG(type->type));
    group->count++;
}

static void add_capacity_row(struct table *table, const struct capacity_group *group,
                             struct str candidate, bool wide, struct arena *arena)
{
    const struct preview_capacity *c = group->change;
    struct str by_after = str_eq(c->by_after, candidate) ? STR("") : c->by_after;
    struct str before = milli_text(arena, group->view, c->resource, c->before);
    struct str after = milli_text(arena, group->view, c->resource, c->after);
    add_pool_name(table, group->view);
    table_add(table, c->resource);
    table_add(table, by_whom(arena, before, c->by_before));
    table_add(table, by_whom(arena, after, by_after));
    if (wide || group->count <= NAMES_SHOWN)
        table_addf(table, "%s", group->names.p);
    else
        table_addf(table, "%s and %u others", group->names.p, group->count - NAMES_SHOWN);
}

struct hidden { /* changes that no pool would notice */
    uint32_t prices, capacities;
};

static struct hidden count_hidden(const struct listing *l, const struct overlay_preview *preview)
{
    struct hidden hidden = { 0 };
    for (uint32_t t = 0; t < preview->types.count; t++) {
        const struct preview_type *type = &preview->types.items[t];
        const struct pool_view *view = view_of(l, type->pool);
        if (!view->shown)
            continue;
        for (uint32_t i = 0; i < type->prices.count; i++)
            hidden.prices += !is_wanted(view, type->prices.items[i].offering);
        if (!bitset_test(&view->launchable, type->type_ix))
            hidden.capacities += type->capacities.count;
    }
    return hidden;
}

static void print_prices(const struct listing *l, const struct overlay_preview *preview,
                         struct table_options options, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    size_t prefix;
    const char *zones = zones_heading(l->pools.items, l->pools.count, &arena, &prefix);
    const char *headings[] = { "NODEPOOL", "NAME",  "CAPACITY TYPE", zones,
                               "BEFORE",   "AFTER", "CHANGE" };
    struct table table;
    size_t unused = unused_columns(l);
    table_init(&table, headings + unused, KV_COUNT_OF(headings) - unused);
    for (uint32_t t = 0; t < preview->types.count; t++) {
        const struct preview_type *type = &preview->types.items[t];
        const struct pool_view *view = view_of(l, type->pool);
        if (view->shown)
            add_price_rows(&table, view, type, preview->candidate.overlay->object.meta.name, prefix,
                           options.all, &arena);
    }
    if (table.cells.count > table.columns) {
        buf_addc(out, '\n');
        table_print(&table, out, options.colour);
    }
    table_done(&table);
}

static void print_capacities(const struct listing *l, const struct overlay_preview *preview,
                             struct table_options options, struct buf *out)
{
    static const char *const headings[] = { "NODEPOOL", "RESOURCE", "BEFORE", "AFTER", "TYPES" };
    AUTO_ARENA arena = { 0 };
    capacity_groups groups = { 0 };
    struct table table;
    size_t unused = unused_columns(l);
    table_init(&table, headings + unused, KV_COUNT_OF(headings) - unused);
    for (uint32_t t = 0; t < preview->types.count; t++) {
        const struct preview_type *type = &preview->types.items[t];
        const struct pool_view *view = view_of(l, type->pool);
        if (!view->shown || !(options.all || bitset_test(&view->launchable, type->type_ix)))
            continue;
        for (uint32_t i = 0; i < type->capacities.count; i++)
            group_capacity(&groups, view, type, &type->capacities.items[i], options.wide);
    }
    vec_each(&groups, struct capacity_group, group) {
        add_capacity_row(&table, group, preview->candidate.overlay->object.meta.name, options.wide,
                         &arena);
        buf_done(&group->names);
    }
    if (groups.count) {
        buf_addc(out, '\n');
        table_print(&table, out, options.colour);
    }
    vec_done(&groups);
    table_done(&table);
}

static void print_verdict(const struct listing *l, const struct overlay_preview *preview,
                          struct buf *out)
{
    const struct overlay_verdict *v = &preview->candidate;
    if (v->state != OVERLAY_ACCEPTED)
        listing_place_format(l, v->overlay, out);
    buf_addf(out, "NodeOverlay %.*s %s, and would be ", STR_ARG(v->overlay->object.meta.name),
             preview->replaces ? "replaces the one of that name" : "is new");
    if (v->state == OVERLAY_ACCEPTED)
        buf_addf(out, "accepted: it matches %u type%s and %u offering%s\n", v->type_count,
                 v->type_count == 1 ? "" : "s", v->offering_count,
                 v->offering_count == 1 ? "" : "s");
    else
        buf_addf(out, "rejected (%s): %.*s\n", overlay_state_word(v->state), STR_ARG(v->message));
    for (uint32_t i = 0; i < preview->verdicts.count; i++) {
        const struct preview_verdict *other = &preview->verdicts.items[i];
        buf_addf(out, "NodeOverlay %.*s would be %s instead of %s%s%.*s\n", STR_ARG(other->name),
                 overlay_state_word(other->after), overlay_state_word(other->before),
                 other->message.len ? ": " : "", STR_ARG(other->message));
    }
}

static bool is_clean(const struct overlay_preview *preview)
{
    return preview->candidate.state == OVERLAY_ACCEPTED;
}

/* "2 prices and 1 amount of what cannot be launched here would change too" */
static void print_hidden(struct hidden hidden, bool only, struct buf *out)
{
    if (hidden.prices)
        buf_addf(out, "%u price%s", hidden.prices, hidden.prices == 1 ? "" : "s");
    buf_addz(out, hidden.prices && hidden.capacities ? " and " : "");
    if (hidden.capacities)
        buf_addf(out, "%u amount%s", hidden.capacities, hidden.capacities == 1 ? "" : "s");
    buf_addf(out, " of what cannot be launched here would change%s: --all shows them\n",
             only ? "" : " too");
}

bool preview_table(struct listing *l, struct table_options options, struct buf *out)
{
    bool clean = true;
    for (size_t i = 0; i < l->candidates.count; i++) {
        struct overlay_preview preview = preview_of(l, i);
        struct hidden hidden = { 0 };
        buf_addz(out, i ? "\n" : "");
        print_verdict(l, &preview, out);
        size_t start = out->len;
        print_prices(l, &preview, options, out);
        print_capacities(l, &preview, options, out);
        if (!options.all)
            hidden = count_hidden(l, &preview);
        bool nothing = out->len == start;
        if (hidden.prices || hidden.capacities) {
            buf_addz(out, nothing ? "" : "\n");
            print_hidden(hidden, nothing, out);
        } else if (nothing) {
            buf_addz(out, "nothing would change\n");
        }
        clean &= is_clean(&preview);
    }
    return clean;
}

/* --- for scripts --- */

static void set_by(struct json_build *b, json_mut *o, struct str before, struct str after)
{
    if (before.len)
        json_set_str(b, o, "overlayBefore", before);
    if (after.len)
        json_set_str(b, o, "overlayAfter", after);
}

static json_mut *json_price(struct json_build *b, const struct pool_view *view,
                            const struct preview_price *p)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "zone", p->zone);
    json_set_str(b, o, "capacityType", p->capacity_type);
    if (p->reservation_id.len)
        json_set_str(b, o, "reservationId", p->reservation_id);
    json_set_bool(b, o, "available", p->available);
    json_set_bool(b, o, "allowed",
                  bitset_test(&view->shapes, view->types->offering_shape[p->offering]));
    json_set(b, o, STR("before"), json_new_double(b, usd_hour_double(p->before)));
    json_set(b, o, STR("after"), json_new_double(b, usd_hour_double(p->after)));
    set_by(b, o, p->by_before, p->by_after);
    return o;
}

static json_mut *json_change(struct json_build *b, const struct pool_view *view,
                             const struct preview_type *type)
{
    AUTO_ARENA arena = { 0 };
    json_mut *o = json_new_object(b);
    json_mut *prices = json_new_array(b), *capacities = json_new_array(b);
    for (uint32_t i = 0; i < type->prices.count; i++)
        json_push(b, prices, json_price(b, view, &type->prices.items[i]));
    for (uint32_t i = 0; i < type->capacities.count; i++) {
        const struct preview_capacity *c = &type->capacities.items[i];
        json_mut *capacity = json_new_object(b);
        json_set_str(b, capacity, "resource", c->resource);
        json_set_str(b, capacity, "before", milli_text(&arena, view, c->resource, c->before));
        json_set_str(b, capacity, "after", milli_text(&arena, view, c->resource, c->after));
        set_by(b, capacity, c->by_before, c->by_after);
        json_push(b, capacities, capacity);
    }
    json_set_str(b, o, "nodePool", type->pool);
    json_set_str(b, o, "instanceType", type->type);
    json_set_bool(b, o, "launchable", bitset_test(&view->launchable, type->type_ix));
    json_set(b, o, STR("prices"), prices);
    json_set(b, o, STR("capacity"), capacities);
    return o;
}

static json_mut *json_preview(struct json_build *b, const struct listing *l,
                              const struct overlay_preview *preview)
{
    const struct overlay_verdict *v = &preview->candidate;
    json_mut *o = json_new_object(b);
    json_mut *others = json_new_array(b), *changes = json_new_array(b);
    for (uint32_t i = 0; i < preview->verdicts.count; i++) {
        const struct preview_verdict *other = &preview->verdicts.items[i];
        json_mut *verdict = json_new_object(b);
        json_set_str(b, verdict, "name", other->name);
        json_set_str(b, verdict, "before", str_of(overlay_state_word(other->before)));
        json_set_str(b, verdict, "after", str_of(overlay_state_word(other->after)));
        json_set_str(b, verdict, "message", other->message);
        json_push(b, others, verdict);
    }
    for (uint32_t i = 0; i < preview->types.count; i++) {
        const struct pool_view *view = view_of(l, preview->types.items[i].pool);
        if (view->shown)
            json_push(b, changes, json_change(b, view, &preview->types.items[i]));
    }
    json_set_str(b, o, "overlay", v->overlay->object.meta.name);
    json_set_bool(b, o, "replaces", preview->replaces);
    json_set_str(b, o, "state", str_of(overlay_state_word(v->state)));
    json_set_str(b, o, "message", v->message);
    json_set_i64(b, o, "instanceTypes", v->type_count);
    json_set_i64(b, o, "offerings", v->offering_count);
    json_set(b, o, STR("overlays"), others);
    json_set(b, o, STR("changes"), changes);
    return o;
}

bool preview_json(struct listing *l, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *previews = json_new_array(&b);
    bool clean = true;
    for (size_t i = 0; i < l->candidates.count; i++) {
        struct overlay_preview preview = preview_of(l, i);
        json_push(&b, previews, json_preview(&b, l, &preview));
        clean &= is_clean(&preview);
    }
    json_set(&b, root, STR("previews"), previews);
    json_write_pretty(root, out);
    buf_addc(out, '\n');
    return clean;
}
