/* `karve instance-types` for people: a section per pool, a row per type. Columns that would be empty
 * in every row are left out, and what all zones begin with is said once, in the heading.
 */
#include "cmd/instance_types_inner.h"

#include "api/describe.h"
#include "cmd/table.h"

#include <inttypes.h>
#include <string.h>

#define AWS_LABEL(name) STR("karpenter.k8s.aws/" name)

/* --- cells --- */

/* The value of a label that a type has one value of; "" if not so. */
static struct str label_of(const struct pool_view *view, uint32_t type, struct str key)
{
    const struct requirement *r = instance_type_requirement(view->types, type, key);
    return r && !r->complement && r->values.count == 1 ? r->values.items[0] : STR("");
}

static struct str values_of(const struct pool_view *view, uint32_t type, struct str key,
                            struct arena *arena)
{
    const struct requirement *r = instance_type_requirement(view->types, type, key);
    AUTO_BUF text = { 0 };
    for (uint32_t i = 0; r && !r->complement && i < r->values.count; i++)
        buf_addf(&text, "%s%.*s", i ? "," : "", STR_ARG(r->values.items[i]));
    return arena_str(arena, buf_str(&text));
}

static struct str amount_of(const struct resource_column *column, int64_t milli,
                            struct arena *arena)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_of_milli(milli);
    q.format = column->format;
    quantity_format(q, text);
    return arena_str(arena, str_of(text));
}

/* Thousandths as a number without trailing zeros: "3.92", "4". */
static struct str decimal_text(int64_t milli, struct arena *arena)
{
    struct str text = arena_strf(arena, "%" PRId64 ".%03" PRId64, milli / 1000, milli % 1000);
    while (text.p[text.len - 1] == '0')
        text.len--;
    if (text.p[text.len - 1] == '.')
        text.len--;
    return arena_str(arena, text);
}

static struct str capacity_of(const struct pool_view *view, uint32_t type, struct str resource,
                              struct arena *arena)
{
    const struct resource_column *column = instance_types_resource(view->types, resource);
    return column ? amount_of(column, column->capacity[type], arena) : STR("-");
}

/* Rarely a round number, as the system keeps a part: one decimal, rounded down. */
static struct str memory_text(int64_t milli, struct arena *arena)
{
    int64_t mib = milli / 1000 >> 20, tenths = mib * 10 / 1024;
    if (mib < 1024)
        return arena_strf(arena, "%" PRId64 "Mi", mib);
    return tenths % 10 ? arena_strf(arena, "%" PRId64 ".%" PRId64 "Gi", tenths / 10, tenths % 10)
                       : arena_strf(arena, "%" PRId64 "Gi", tenths / 10);
}

static struct str memory_of(const struct pool_view *view, uint32_t type, bool allocatable,
                            struct arena *arena)
{
    const struct resource_column *column = instance_types_resource(view->types, STR("memory"));
    if (!column)
        return STR("-");
    return memory_text(allocatable ? column->allocatable[type] : column->capacity[type], arena);
}

/* "1 a10g", "2 inferentia2"; from the resources when no label says it. */
static struct str gpu_of(const struct pool_view *view, uint32_t type, struct arena *arena)
{
    static const struct {
        struct str count, name;
    } kinds_[] = {
        { { "karpenter.k8s.aws/instance-gpu-count", 36 },
          { "karpenter.k8s.aws/instance-gpu-name", 35 } },
        { { "karpenter.k8s.aws/instance-accelerator-count", 44 },
          { "karpenter.k8s.aws/instance-accelerator-name", 43 } },
    };
    for (size_t i = 0; i < KV_COUNT_OF(kinds_); i++) {
        struct str count = label_of(view, type, kinds_[i].count);
        struct str name = label_of(view, type, kinds_[i].name);
        if (count.len)
            return arena_strf(arena, "%.*s %.*s", STR_ARG(count), STR_ARG(name));
    }
    for (uint32_t c = 0; c < view->types->resource_count; c++) {
        const struct resource_column *column = &view->types->resources[c];
        if (str_ends(column->name, STR("/gpu")) && column->capacity[type])
            return amount_of(column, column->capacity[type], arena);
    }
    return STR("");
}

/* What overlays have given the type: "example.com/slots=4". */
static struct str overlaid_of(const struct pool_view *view, uint32_t type, struct arena *arena)
{
    const struct instance_types *types = view->types;
    AUTO_BUF text = { 0 };
    if (!types->recapacitied.words || !bitset_test(&types->recapacitied, type))
        return STR("");
    for (uint32_t c = 0; c < types->resource_count; c++) {
        const struct resource_column *column = &types->resources[c];
        const struct resource_column *before = instance_types_resource(view->raw, column->name);
        if (column->capacity[type] == (before ? before->capacity[type] : 0))
            continue;
        struct str amount = amount_of(column, column->capacity[type], arena);
        buf_addf(&text, "%s%.*s=%.*s", text.len ? "," : "", STR_ARG(column->name), STR_ARG(amount));
    }
    return arena_str(arena, buf_str(&text));
}

static struct str price_of(const struct pool_view *view, uint32_t type, const char *capacity_type,
                           bool wide, struct arena *arena)
{
    uint32_t o = cheapest_offering(view, type, str_of(capacity_type));
    if (o == INSTANCE_TYPE_NONE)
        return STR("-");
    struct str price = price_text(arena, instance_types_price(view->types, o));
    if (!offering_is_priced(view->types, o))
        return price;
    if (!wide)
        return arena_strf(arena, "%.*s*", STR_ARG(price));
    struct str before = price_text(arena, instance_types_price(view->raw, o));
    return arena_strf(arena, "%.*s* was %.*s", STR_ARG(price), STR_ARG(before));
}

/* --- zones: what they begin with is in the heading --- */

static size_t zone_prefix(const struct instance_types *types)
{
    if (types->zone_count < 2)
        return 0;
    size_t n = types->zones[0].len;
    for (uint32_t i = 1; i < types->zone_count; i++) {
        size_t same = 0;
        while (same < n && same < types->zones[i].len &&
               types->zones[i].p[same] == types->zones[0].p[same])
            same++;
        n = same;
    }
    for (uint32_t i = 0; i < types->zone_count; i++)
        if (types->zones[i].len == n)
            return 0; /* nothing would be left of it */
    return n;
}

/* The same for all of them, or none. */
const char *zones_heading(const struct pool_view *views, size_t count, struct arena *arena,
                          size_t *prefix)
{
    struct str common = STR_NONE;
    for (size_t i = 0; i < count; i++) {
        const struct instance_types *types = views[i].types;
        size_t len = zone_prefix(types);
        struct str begin = len ? str_sub(types->zones[0], 0, len) : STR("");
        if (common.p && !str_eq(common, begin))
            begin = STR("");
        common = begin;
    }
    *prefix = common.len;
    return common.len ? arena_strf(arena, "ZONES %.*s*", STR_ARG(common)).p : "ZONES";
}

static bool has_offering_in(const struct pool_view *view, uint32_t type, uint32_t zone_ix)
{
    const struct instance_types *types = view->types;
    for (uint32_t o = types->offering_start[type]; o < types->offering_start[type + 1]; o++)
        if (types->shapes[types->offering_shape[o]].zone_ix == zone_ix &&
            bitset_test(&types->available, o) &&
            bitset_test(&view->shapes, types->offering_shape[o]))
            return true;
    return false;
}

static struct str zones_of(const struct pool_view *view, uint32_t type, size_t prefix,
                           struct arena *arena)
{
    AUTO_BUF text = { 0 };
    for (uint32_t z = 0; z < view->types->zone_count; z++) {
        struct str zone = view->types->zones[z];
        if (has_offering_in(view, type, z))
            buf_addf(&text, "%s%.*s", text.len ? "," : "",
                     STR_ARG(str_sub(zone, prefix, zone.len)));
    }
    return arena_str(arena, buf_str(&text));
}

static struct str offerings_of(const struct pool_view *view, uint32_t type, struct arena *arena)
{
    const struct instance_types *types = view->types;
    uint32_t wanted = 0, available = 0;
    for (uint32_t o = types->offering_start[type]; o < types->offering_start[type + 1]; o++) {
        if (!bitset_test(&view->shapes, types->offering_shape[o]))
            continue;
        wanted++;
        available += bitset_test(&types->available, o);
    }
    return wanted == available ? arena_strf(arena, "%u", wanted)
                               : arena_strf(arena, "%u of %u", available, wanted);
}

static struct str network_of(const struct pool_view *view, uint32_t type, struct arena *arena)
{
    int64_t mbps;
    if (!str_to_i64(label_of(view, type, AWS_LABEL("instance-network-bandwidth")), &mbps))
        return STR("-");
    if (mbps < 1000)
        return arena_strf(arena, "%" PRId64 "M", mbps);
    return arena_strf(arena, "%sG", decimal_text(mbps, arena).p);
}

/* --- the table of a pool: a matrix of cells, from which empty columns are dropped --- */

enum column {
    NAME,
    CPU,
    MEMORY,
    GPU,
    ARCH,
    PODS,
    ALLOCATABLE_CPU,
    ALLOCATABLE_MEMORY,
    NETWORK,
    GEN,
    ZONES,
    OFFERINGS,
    RESERVED,
    SPOT,
    ON_DEMAND,
    OVERLAID,
    COLUMNS,
};

static struct str cell(const struct pool_view *view, uint32_t type, enum column column,
                       size_t prefix, bool wide, struct arena *arena)
{
    const struct resource_column *cpu = instance_types_resource(view->types, STR("cpu"));
    switch (column) {
    case NAME:
        return view->types->names[type];
    case CPU:
        return capacity_of(view, type, STR("cpu"), arena);
    case MEMORY:
        return memory_of(view, type, false, arena);
    case GPU:
        return gpu_of(view, type, arena);
    case ARCH:
        return values_of(view, type, STR(LABEL_ARCH), arena);
    case PODS:
        return capacity_of(view, type, STR("pods"), arena);
    case ALLOCATABLE_CPU:
        return wide && cpu ? decimal_text(cpu->allocatable[type], arena) : STR("");
    case ALLOCATABLE_MEMORY:
        return wide ? memory_of(view, type, true, arena) : STR("");
    case NETWORK:
        return wide ? network_of(view, type, arena) : STR("");
    case GEN:
        return wide ? label_of(view, type, AWS_LABEL("instance-generation")) : STR("");
    case ZONES:
        return zones_of(view, type, prefix, arena);
    case OFFERINGS:
        return wide ? offerings_of(view, type, arena) : STR("");
    case RESERVED:
        return price_of(view, type, CAPACITY_RESERVED, wide, arena);
    case SPOT:
        return price_of(view, type, CAPACITY_SPOT, wide, arena);
    case ON_DEMAND:
        return price_of(view, type, CAPACITY_ON_DEMAND, wide, arena);
    case OVERLAID:
        return overlaid_of(view, type, arena);
    case COLUMNS:
        break;
    }
    KV_UNREACHABLE();
}

static const char *const headings[COLUMNS] = {
    [NAME] = "NAME",
    [CPU] = "CPU",
    [MEMORY] = "MEMORY",
    [GPU] = "GPU",
    [ARCH] = "ARCH",
    [PODS] = "PODS",
    [ALLOCATABLE_CPU] = "ALLOC CPU",
    [ALLOCATABLE_MEMORY] = "ALLOC MEMORY",
    [NETWORK] = "NETWORK",
    [GEN] = "GEN",
    [OFFERINGS] = "OFFERINGS",
    [RESERVED] = "RESERVED",
    [SPOT] = "SPOT",
    [ON_DEMAND] = "ON-DEMAND",
    [OVERLAID] = "OVERLAID",
};

static bool is_blank(struct str text)
{
    return text.len == 0 || str_eq(text, STR("-"));
}

static void print_types(const struct pool_view *view, struct table_options options, struct buf *out)
{
    AUTO_ARENA arena = { 0 };
    size_t prefix, column_count = 0;
    const char *zones = zones_heading(view, 1, &arena, &prefix);
    uint32_t count;
    const uint32_t *types = types_sorted(view, &view->launchable, options.sort, &arena, &count);
    struct str *cells = arena_array(&arena, struct str, (size_t)count * COLUMNS);
    const char *used[COLUMNS];
    bool filled[COLUMNS] = { [NAME] = true };

    for (uint32_t i = 0; i < count; i++)
        for (int c = 0; c < COLUMNS; c++) {
            struct str text = cell(view, types[i], (enum column)c, prefix, options.wide, &arena);
            cells[i * COLUMNS + (uint32_t)c] = text;
            filled[c] |= !is_blank(text);
        }
    for (int c = 0; c < COLUMNS; c++) {
        if (filled[c])
            used[column_count++] = c == ZONES ? zones : headings[c];
    }
    struct table table;
    table_init(&table, used, column_count);
    for (uint32_t i = 0; i < count; i++)
        for (int c = 0; c < COLUMNS; c++)
            if (filled[c])
                table_add(&table, cells[i * COLUMNS + (uint32_t)c]);
    table_print(&table, out, options.colour);
    table_done(&table);
}

static void print_excluded(const struct pool_view *view, struct table_options options,
                           struct buf *out)
{
    static const char *const out_headings[] = { "NOT LAUNCHED", "REASON", "DETAIL" };
    AUTO_ARENA arena = { 0 };
    struct table table;
    table_init(&table, out_headings, KV_COUNT_OF(out_headings));
    for (uint32_t t = 0; t < view->types->type_count; t++) {
        if (bitset_test(&view->launchable, t))
            continue;
        struct exclusion why = exclusion_of(view, t, &arena);
        table_add(&table, view->types->names[t]);
        table_add(&table, str_of(why.reason));
        table_add(&table, why.detail);
    }
    table_print(&table, out, options.colour);
    table_done(&table);
}

/* --- a pool --- */

static const char *plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

static void print_heading(const struct pool_view *view, struct table_options options,
                          struct buf *out)
{
    const struct node_class_ref *ref = &view->pool->spec.template.spec.node_class_ref;
    uint32_t n = bitset_popcount(&view->launchable);
    buf_addz(out, options.colour ? "\033[1m" : "");
    if (view->name.len)
        buf_addf(out, "NodePool %.*s (%.*s/%.*s): ", STR_ARG(view->name), STR_ARG(ref->kind),
                 STR_ARG(ref->name));
    buf_addf(out, "%u of %u instance type%s%s\n", n, view->types->type_count,
             plural(view->types->type_count), options.colour ? "\033[0m" : "");
}

static void print_min_values(const struct pool_view *view, struct buf *out)
{
    for (uint32_t i = 0; i < view->min_values.count; i++) {
        const struct min_values *m = &view->min_values.items[i];
        buf_addz(out, m->have >= m->want ? "minValues met: " : "minValues NOT met: ");
        min_values_format(m, out);
        buf_addc(out, '\n');
    }
    uint32_t otherwise = bitset_popcount(&view->fitting);
    if (!view->min_values_met)
        buf_addf(out, "so the pool launches nothing: %u type%s would do otherwise\n", otherwise,
                 plural(otherwise));
}

static void print_pool(const struct pool_view *view, struct table_options options, struct buf *out)
{
    uint32_t n = bitset_popcount(&view->launchable);
    print_heading(view, options, out);
    if (view->impossible.len)
        buf_addf(out, "none can be had: %.*s\n", STR_ARG(view->impossible));
    else
        print_min_values(view, out);
    if (n)
        print_types(view, options, out);
    else if (!options.all && !view->impossible.len)
        buf_addz(out, "(--all says why each type is out)\n");
    if (options.all && n < view->types->type_count) {
        buf_addz(out, n ? "\n" : "");
        print_excluded(view, options, out);
    }
}

/* --- overlays --- */

static void print_overlays(const struct listing *l, struct table_options options, struct buf *out)
{
    static const char *const overlay_headings[] = { "OVERLAY", "WEIGHT",    "WHAT",
                                                    "TYPES",   "OFFERINGS", "STATE" };
    struct table table;
    table_init(&table, overlay_headings, KV_COUNT_OF(overlay_headings));
    for (uint32_t i = 0; i < l->loaded.evaluation.verdicts.count; i++) {
        const struct overlay_verdict *v = &l->loaded.evaluation.verdicts.items[i];
        AUTO_BUF what = { 0 };
        object_describe(&v->overlay->object, &what);
        table_add(&table, v->overlay->object.meta.name);
        table_addf(&table, "%" PRId64, v->overlay->spec.weight.value);
        table_add(&table, buf_str(&what));
        table_addf(&table, "%u", v->type_count);
        table_addf(&table, "%u", v->offering_count);
        table_addf(&table, "%s", overlay_state_word(v->state));
    }
    table_print(&table, out, options.colour);
    table_done(&table);
}

static bool shows_overlaid_price(const struct listing *l)
{
    vec_each(&l->pools, struct pool_view, view) {
        if (!view->shown || !view->types->priced.words)
            continue;
        bitset_each(&view->types->priced, o) {
            if (bitset_test(&view->launchable, view->types->offering_type[o]) &&
                bitset_test(&view->shapes, view->types->offering_shape[o]))
                return true;
        }
    }
    return false;
}

void listing_table(const struct listing *l, struct table_options options, struct buf *out)
{
    const char *separator = "";
    vec_each(&l->pools, struct pool_view, view) {
        if (!view->shown)
            continue;
        buf_addz(out, separator);
        print_pool(view, options, out);
        separator = "\n";
    }
    if (shows_overlaid_price(l))
        buf_addf(out, "\n* set by a NodeOverlay%s\n",
                 options.wide ? "" : "; -o wide shows the price before");
    if (l->loaded.evaluation.verdicts.count) {
        buf_addc(out, '\n');
        print_overlays(l, options, out);
    }
}
