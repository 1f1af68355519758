/* What is to be shown: manifests, catalogue and cache put together as the controller does it, and
 * each pool's requirements applied to its types.
 */
#include "cmd/inputs.h"
#include "cmd/instance_types_inner.h"

#include "api/kinds.h"
#include "cmd/requirement_arg.h"

#include <string.h>

#define REQUIREMENT_ARGS_MAX 100

static int complain(int code, const char *fmt, ...) KV_PRINTF(2, 3);
static int complain(int code, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("karve instance-types: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    return code;
}

/* --- manifests --- */

static int read_manifests(struct manifests *m, const char *const *paths, size_t count)
{
    struct err err;
    if (manifests_load(m, paths, count, &err) < 0)
        return complain(EXIT_ENVIRONMENT, "%s", err.text);
    print_problems(m, false, false); /* karve validate tells the rest */
    return m->error_count ? EXIT_NO : EXIT_DONE;
}

static int by_pool_order(const void *a, const void *b)
{
    return nodepool_order(((const struct pool_view *)a)->pool, ((const struct pool_view *)b)->pool);
}

static void collect(struct listing *l)
{
    vec_each(&l->manifests.items, struct manifest, item) {
        if (item->kind == &nodepool_kind)
            vec_push(&l->pools,
                     (struct pool_view){ .pool = nodepool_of(item->object), .name = item->name });
        else if (item->kind == &nodeoverlay_kind)
            vec_push(&l->overlays, nodeoverlay_of(item->object));
    }
    if (l->pools.count)
        qsort(l->pools.items, l->pools.count, sizeof *l->pools.items, by_pool_order);
}

/* Without a NodePool: one that asks for nothing. */
static void add_nameless_pool(struct listing *l, size_t path_count)
{
    if (path_count)
        fputs("there is no NodePool among the manifests: this is the whole catalogue\n", stderr);
    struct nodepool *pool = arena_new(&l->arena, struct nodepool);
    pool->object.kind = &nodepool_kind;
    pool->object.meta.name = STR("");
    pool->spec.template.spec.node_class_ref =
        (struct node_class_ref){ STR(AWS_GROUP), STR("EC2NodeClass"), STR("") };
    vec_push(&l->pools, (struct pool_view){ .pool = pool, .name = STR("") });
}

static int pick_pools(struct listing *l, const struct invocation *inv)
{
    const char *wanted = flag_value(inv, "nodepool");
    struct str near = STR_NONE;
    size_t near_distance = SIZE_MAX;
    bool found = false;
    vec_each(&l->pools, struct pool_view, view) {
        view->shown = !wanted || str_eqz(view->name, wanted);
        found |= view->shown;
        size_t distance = wanted ? str_distance(str_of(wanted), view->name, 3) : 0;
        if (distance <= 3 && distance < near_distance) {
            near = view->name;
            near_distance = distance;
        }
    }
    if (found)
        return EXIT_DONE;
    if (!flag_given(inv, "filename"))
        return complain(EXIT_USAGE, "--nodepool %s: name its manifests with -f",
                        STR_SHOWN(str_of(wanted)));
    if (near.len)
        return complain(EXIT_USAGE, "there is no NodePool %s; did you mean %s?",
                        STR_SHOWN(str_of(wanted)), STR_SHOWN(near));
    AUTO_BUF names = { 0 };
    vec_each(&l->pools, struct pool_view, view)
        buf_addf(&names, "%s%.*s", names.len ? ", " : "", STR_ARG(view->name));
    return complain(EXIT_USAGE, "there is no NodePool %s; there %s %s", STR_SHOWN(str_of(wanted)),
                    l->pools.count > 1 ? "are" : "is", names.len ? names.p : "none");
}

static int read_preview(struct listing *l, const char *path)
{
    int code = read_manifests(&l->preview, &path, 1);
    if (code != EXIT_DONE)
        return code;
    vec_each(&l->preview.items, struct manifest, item) {
        if (item->kind == &nodeoverlay_kind)
            vec_push(&l->candidates, nodeoverlay_of(item->object));
    }
    if (!l->candidates.count)
        return complain(EXIT_NO, "there is no NodeOverlay in %s", path);
    return EXIT_DONE;
}

/* --- the catalogue --- */

static const struct object *find_class(void *ctx, const struct node_class_ref *ref)
{
    const struct listing *l = ctx;
    vec_each(&l->manifests.items, struct manifest, item) {
        if (item->object && str_eqz(ref->kind, item->kind->name) &&
            str_eqz(ref->group, item->kind->group) && str_eq(ref->name, item->name))
            return item->object;
    }
    return NULL;
}

static int open_catalogue(struct listing *l, const struct invocation *inv)
{
    const char *region = flag_value(inv, "region");
    struct err err;
    l->catalogue_path = flag_value(inv, "catalogue");
    struct catalogue_options options = { .region = str_of(region),
                                         .maybe_path = l->catalogue_path,
                                         .maybe_class = find_class,
                                         .class_ctx = l };
    if (catalogue_new(options, &l->catalogue, &err) == 0)
        return EXIT_DONE;
    if (err.kind != ERR_INVALID)
        return complain(EXIT_ENVIRONMENT, "%s", err.text);
    return complain(catalogue_region_find(str_of(region)) ? EXIT_NO : EXIT_USAGE, "%s", err.text);
}

static void find_classes(struct listing *l)
{
    vec_each(&l->pools, struct pool_view, view) {
        const struct node_class_ref *ref = &view->pool->spec.template.spec.node_class_ref;
        const struct object *class_ = find_class(l, ref);
        view->has_class = class_ != NULL;
        view->of_ec2 = !l->catalogue_path && !str_eqz(ref->group, KWOK_GROUP);
        if (class_ && class_->kind == &ec2nodeclass_kind)
            view->maybe_class = ec2nodeclass_of(class_);
        if (view->name.len && view->shown && !view->has_class && view->of_ec2)
            fprintf(stderr,
                    "NodePool/%.*s: %.*s/%.*s is not among the manifests: its defaults are "
                    "assumed\n",
                    STR_ARG(view->name), STR_ARG(ref->kind), STR_ARG(ref->name));
    }
}

/* --- overlays --- */

struct overlay_pool listing_overlay_pool(const struct pool_view *view)
{
    return (struct overlay_pool){
        .name = view->name,
        .labels = view->pool->spec.template.meta.labels,
        .types = view->raw,
        .well_known = view->well_known,
    };
}

static const struct manifest *manifest_of(const struct manifests *m, const struct object *object)
{
    vec_each(&m->items, struct manifest, item) {
        if (item->object == object)
            return item;
    }
    return NULL;
}

void listing_place_format(const struct listing *l, const struct nodeoverlay *overlay,
                          struct buf *out)
{
    const struct manifest *m = manifest_of(&l->manifests, &overlay->object);
    if (!m)
        m = manifest_of(&l->preview, &overlay->object);
    buf_addf(out, "%s:%u: ", m->file->path, m->pos.line);
}

/* What the owner of an overlay should know of it; accepted and of use is nothing. */
static void report_verdict(const struct listing *l, const struct overlay_verdict *v)
{
    AUTO_BUF place = { 0 };
    struct str name = v->overlay->object.meta.name;
    listing_place_format(l, v->overlay, &place);
    if (v->state != OVERLAY_ACCEPTED)
        fprintf(stderr, "%sNodeOverlay/%.*s: rejected (%s): %.*s\n", place.p, STR_ARG(name),
                overlay_state_word(v->state), STR_ARG(v->message));
    else if (v->type_count == 0)
        fprintf(stderr, "%sNodeOverlay/%.*s: matches no instance type\n", place.p, STR_ARG(name));
}

/* Over all pools, also those that are not shown: a conflict anywhere rejects an overlay. */
static void evaluate_overlays(struct listing *l)
{
    AUTO_OVERLAY_SET set = overlay_set_new(l->overlays.items, (uint32_t)l->overlays.count, 1);
    struct overlay_pool *pools = arena_array(&l->arena, struct overlay_pool, l->pools.count);
    for (size_t i = 0; i < l->pools.count; i++)
        pools[i] = listing_overlay_pool(&l->pools.items[i]);
    overlay_set_evaluate(set, pools, (uint32_t)l->pools.count, &l->arena, &l->evaluation);
    instance_cache_set_overlays(l->cache, l->evaluation.accepted);
    for (uint32_t i = 0; i < l->evaluation.verdicts.count; i++)
        report_verdict(l, &l->evaluation.verdicts.items[i]);
}

uint32_t listing_rejected(const struct listing *l)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->evaluation.verdicts.count; i++)
        count += l->evaluation.verdicts.items[i].state != OVERLAY_ACCEPTED;
    return count;
}

/* --- types, through the cache that the controller has --- */

/* What everybody knows of the node class's cloud, and what its types say of themselves. */
static struct str_list well_known_of(struct listing *l, const struct pool_view *view)
{
    struct str group = view->pool->spec.template.spec.node_class_ref.group;
    struct str *keys = arena_array(&l->arena, struct str, view->raw->key_count);
    for (uint32_t i = 0; i < view->raw->key_count; i++)
        keys[i] = view->raw->labels[i].key;
    struct str_list of_types = { keys, view->raw->key_count };
    return label_rules_extend(&l->arena, label_rules_for(group), of_types).well_known;
}

static int load_types(struct listing *l)
{
    struct err err;
    l->cache = instance_cache_new(
        (struct instance_cache_options){ .provider = catalogue_provider(l->catalogue),
                                         .clock = clock_real(),
                                         .node_overlays = l->node_overlays,
                                         .stripes = 1 });
    vec_each(&l->pools, struct pool_view, view) {
        if (instance_cache_get_raw(l->cache, view->pool, &view->raw, &err) < 0)
            return complain(EXIT_NO, "NodePool/%.*s: %s", STR_ARG(view->name), err.text);
        view->well_known = well_known_of(l, view);
    }
    if (l->node_overlays)
        evaluate_overlays(l);
    vec_each(&l->pools, struct pool_view, view) {
        if (instance_cache_get(l->cache, view->pool, &view->types, &err) < 0)
            return complain(EXIT_NO, "NodePool/%.*s: %s", STR_ARG(view->name), err.text);
    }
    return EXIT_DONE;
}

/* --- requirements --- */

static void add_ask(struct listing *l, struct pool_view *view, const struct expression *e)
{
    AUTO_BUF text = { 0 };
    struct ask ask;
    struct err err;
    if (requirement_from_expression(&l->arena, e, &ask.requirement, &err) < 0)
        return; /* not in a manifest that was checked, nor in an argument that was */
    expression_format(e, &text);
    ask.text = arena_str(&l->arena, buf_str(&text));
    vec_push(&view->asks, ask);
    /* By key; of equal keys the first that was given stays first. */
    for (size_t i = view->asks.count - 1; i > 0; i--) {
        struct ask *earlier = &view->asks.items[i - 1];
        if (str_cmp(earlier->requirement.key, ask.requirement.key) <= 0)
            break;
        earlier[1] = *earlier;
        *earlier = ask;
    }
}

static void add_label_ask(struct listing *l, struct pool_view *view, struct str key,
                          struct str value)
{
    struct str *values = arena_array(&l->arena, struct str, 1);
    values[0] = value;
    add_ask(l, view, &(struct expression){ .key = key, .op = OP_IN, .values = { values, 1 } });
}

static struct requirements together(struct listing *l, const struct pool_view *view)
{
    struct requirements set = { 0 };
    vec_each(&view->asks, struct ask, ask)
        set = requirements_add(&l->arena, &set, &ask->requirement);
    return set;
}

static void ask_for_pool(struct listing *l, struct pool_view *view)
{
    const struct node_template *template = &view->pool->spec.template;
    for (uint32_t i = 0; i < template->spec.requirements.count; i++)
        add_ask(l, view, &template->spec.requirements.items[i]);
    for (uint32_t i = 0; i < template->meta.labels.count; i++)
        add_label_ask(l, view, template->meta.labels.items[i].key,
                      template->meta.labels.items[i].value);
    if (view->name.len)
        add_label_ask(l, view, STR(LABEL_NODEPOOL), view->name);
    view->wanted = together(l, view);
}

/* What --requirement says is as a pod would say it: the pool, or a label that everybody knows, must
 * be able to answer. */
static void ask_for_args(struct listing *l, struct pool_view *view, const struct expression *args,
                         uint32_t count)
{
    struct requirements of_args;
    struct mismatch why;
    struct err err;

    view->impossible = STR("");
    if (requirements_from_expressions(&l->arena, args, count, &of_args, &err) == 0 &&
        !requirements_compatible(&view->wanted, &of_args, view->well_known, &why)) {
        AUTO_BUF text = { 0 };
        requirements_format_mismatch(&why, &view->wanted, view->well_known, &text);
        view->impossible = arena_str(&l->arena, buf_str(&text));
    }
    for (uint32_t i = 0; i < count; i++)
        add_ask(l, view, &args[i]);
    view->wanted = together(l, view);
}

/* --- which types remain --- */

/* Different values that the types have for a key. */
static uint32_t count_values(const struct pool_view *view, struct str key)
{
    const struct label_column *column = instance_types_label(view->types, key);
    uint32_t count = 0;
    for (uint32_t v = 0; column && v < column->value_count; v++) {
        bool found = false;
        bitset_each(&view->fitting, t)
            found |= posting_has(&column->values[v].types, t);
        count += found;
    }
    return count;
}

static void count_min_values(struct listing *l, struct pool_view *view)
{
    struct min_values *items = arena_array(&l->arena, struct min_values, view->wanted.count);
    uint32_t count = 0;
    view->min_values_met = true;
    for (uint32_t i = 0; i < view->wanted.count; i++) {
        const struct requirement *r = &view->wanted.items[i];
        if (!r->min_values.set)
            continue;
        struct min_values m = { r->key, r->min_values.value, count_values(view, r->key) };
        view->min_values_met &= m.have >= m.want;
        items[count++] = m;
    }
    view->min_values.items = items;
    view->min_values.count = count;
}

static void narrow(struct listing *l, struct pool_view *view)
{
    const struct instance_types *types = view->types;
    struct bitset offered = bitset_new(&l->arena, types->type_count);

    view->fitting = bitset_new(&l->arena, types->type_count);
    view->launchable = bitset_new(&l->arena, types->type_count);
    view->shapes = bitset_new(&l->arena, types->shape_count);
    if (!view->impossible.len)
        bitset_fill(&view->fitting);
    /* A label that types say nothing of is one that the pool gives its nodes. */
    for (uint32_t i = 0; i < view->wanted.count; i++)
        instance_types_narrow(types, &view->wanted.items[i], true, &view->fitting);
    instance_types_shapes(types, &view->wanted, &view->shapes);
    instance_types_offered(types, &view->shapes, &offered);
    bitset_and(&view->fitting, &offered);
    count_min_values(l, view);
    if (view->min_values_met)
        bitset_copy(&view->launchable, &view->fitting);
}

static bool is_known_key(const struct listing *l, struct str key)
{
    vec_each(&l->pools, struct pool_view, view) {
        if (str_sorted_has(view->well_known.items, view->well_known.count, key) ||
            requirements_find(&view->wanted, key))
            return true;
    }
    return false;
}

static int read_requirements(struct listing *l, const struct invocation *inv,
                             struct expression *args, uint32_t *count)
{
    const char *texts[REQUIREMENT_ARGS_MAX];
    struct err err;
    *count = (uint32_t)flag_values(inv, "requirement", texts, REQUIREMENT_ARGS_MAX);
    for (uint32_t i = 0; i < *count; i++) {
        if (requirement_arg_parse(&l->arena, str_of(texts[i]), &args[i], &err) < 0)
            return complain(EXIT_USAGE, "--requirement %s", err.text);
        args[i].key = label_normalise(args[i].key);
    }
    return EXIT_DONE;
}

static struct str nearest_key(const struct listing *l, struct str key)
{
    struct str near = STR_NONE;
    vec_each(&l->pools, struct pool_view, view) {
        if (!near.p)
            near = requirements_nearest_key(&view->wanted, view->well_known, key);
    }
    return near;
}

static void warn_unknown_keys(const struct listing *l, const struct expression *args,
                              uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (is_known_key(l, args[i].key))
            continue;
        struct str near = nearest_key(l, args[i].key);
        if (near.p)
            fprintf(stderr, "warning: no instance type has the label %s; did you mean %.*s?\n",
                    STR_SHOWN(args[i].key), STR_ARG(near));
        else
            fprintf(stderr, "warning: no instance type has the label %s\n", STR_SHOWN(args[i].key));
    }
}

/* --- all of it --- */

static uint32_t stdin_uses(const struct invocation *inv, const char *const *paths, size_t count)
{
    const char *others[] = { flag_value(inv, "preview"), flag_value(inv, "catalogue") };
    uint32_t uses = 0;
    for (size_t i = 0; i < KV_COUNT_OF(others); i++)
        uses += others[i] && strcmp(others[i], "-") == 0;
    for (size_t i = 0; i < count; i++)
        uses += strcmp(paths[i], "-") == 0;
    return uses;
}

int listing_load(struct listing *l, const struct invocation *inv)
{
    const char *paths[PATHS_MAX];
    struct expression args[REQUIREMENT_ARGS_MAX];
    uint32_t arg_count;
    int code;

    manifests_init(&l->manifests);
    manifests_init(&l->preview);
    l->node_overlays = strcmp(flag_value(inv, "node-overlay"), "true") == 0;
    const char *preview = flag_value(inv, "preview");
    if (preview && !l->node_overlays)
        return complain(EXIT_USAGE, "--preview needs the feature gate: --node-overlay true");
    if ((code = read_requirements(l, inv, args, &arg_count)) != EXIT_DONE)
        return code;
    size_t path_count = flag_values(inv, "filename", paths, PATHS_MAX);
    if (stdin_uses(inv, paths, path_count) > 1)
        return complain(EXIT_USAGE, "standard input (-) can be read once only");
    if ((code = read_manifests(&l->manifests, paths, path_count)) != EXIT_DONE)
        return code;
    collect(l);
    if (!l->pools.count)
        add_nameless_pool(l, path_count);
    if ((code = pick_pools(l, inv)) != EXIT_DONE || (code = open_catalogue(l, inv)) != EXIT_DONE)
        return code;
    if (preview && (code = read_preview(l, preview)) != EXIT_DONE)
        return code;
    find_classes(l);
    if ((code = load_types(l)) != EXIT_DONE)
        return code;
    vec_each(&l->pools, struct pool_view, view)
        ask_for_pool(l, view);
    warn_unknown_keys(l, args, arg_count);
    vec_each(&l->pools, struct pool_view, view) {
        ask_for_args(l, view, args, arg_count);
        narrow(l, view);
    }
    return EXIT_DONE;
}

void listing_done(struct listing *l)
{
    vec_each(&l->pools, struct pool_view, view) {
        instance_types_unref(view->raw);
        instance_types_unref(view->types);
        vec_done(&view->asks);
    }
    vec_done(&l->pools);
    vec_done(&l->overlays);
    vec_done(&l->candidates);
    overlay_set_unref(l->evaluation.accepted);
    instance_cache_free(l->cache);
    catalogue_free(l->catalogue);
    manifests_done(&l->manifests);
    manifests_done(&l->preview);
    arena_done(&l->arena);
}
