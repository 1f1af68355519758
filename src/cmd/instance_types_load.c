/* What is to be shown: manifests, catalogue and cache put together as the controller does it, and
 * each pool's requirements applied to its types.
 */
#include "cmd/inputs.h"
#include "cmd/instance_types_inner.h"

#include "api/kinds.h"
#include "cmd/requirement_arg.h"

#include <string.h>

#define REQUIREMENT_ARGS_MAX 100

/* --- manifests --- */

static int read_manifests(struct manifests *m, const char *const *paths, size_t count)
{
    struct err err;
    if (manifests_load(m, paths, count, &err) < 0)
        return print_complaint("instance-types", EXIT_ENVIRONMENT, "%s", err.text);
    print_problems(m, false, false); /* karve validate tells the rest */
    return m->error_count ? EXIT_NO : EXIT_DONE;
}

static void collect(struct listing *l)
{
    vec_each(&l->manifests.items, struct manifest, item) {
        if (item->object)
            loaded_types_collect(&l->loaded, item->object);
    }
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
    loaded_types_collect(&l->loaded, &pool->object);
}

/* Is there the pool that --nodepool asks for? */
static int check_pick(struct listing *l, const struct invocation *inv)
{
    const char *wanted = flag_value(inv, "nodepool");
    struct str near = STR_NONE;
    size_t near_distance = SIZE_MAX;
    bool found = !wanted;
    vec_each(&l->loaded.pools, struct loaded_pool, p) {
        struct str name = p->pool->object.meta.name;
        found |= wanted && str_eqz(name, wanted);
        size_t distance = wanted ? str_distance(str_of(wanted), name, 3) : 0;
        if (distance <= 3 && distance < near_distance) {
            near = name;
            near_distance = distance;
        }
    }
    if (found)
        return EXIT_DONE;
    if (!flag_given(inv, "filename"))
        return print_complaint("instance-types", EXIT_USAGE,
                               "--nodepool %s: name its manifests with -f",
                               STR_SHOWN(str_of(wanted)));
    if (near.len)
        return print_complaint("instance-types", EXIT_USAGE,
                               "there is no NodePool %s; did you mean %s?",
                               STR_SHOWN(str_of(wanted)), STR_SHOWN(near));
    AUTO_BUF names = { 0 };
    vec_each(&l->loaded.pools, struct loaded_pool, p)
        buf_addf(&names, "%s%.*s", names.len ? ", " : "", STR_ARG(p->pool->object.meta.name));
    return print_complaint("instance-types", EXIT_USAGE, "there is no NodePool %s; there %s %s",
                           STR_SHOWN(str_of(wanted)), l->loaded.pools.count > 1 ? "are" : "is",
                           names.len ? names.p : "none");
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
        return print_complaint("instance-types", EXIT_NO, "there is no NodeOverlay in %s", path);
    return EXIT_DONE;
}

/* --- overlays --- */

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

static void report_overlays(const struct listing *l)
{
    for (uint32_t i = 0; i < l->loaded.evaluation.verdicts.count; i++) {
        const struct overlay_verdict *v = &l->loaded.evaluation.verdicts.items[i];
        AUTO_BUF place = { 0 }, text = { 0 };
        listing_place_format(l, v->overlay, &place);
        if (overlay_verdict_format(v, &text))
            fprintf(stderr, "%s%s\n", place.p, text.p);
    }
}

uint32_t listing_rejected(const struct listing *l)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < l->loaded.evaluation.verdicts.count; i++)
        count += l->loaded.evaluation.verdicts.items[i].state != OVERLAY_ACCEPTED;
    return count;
}

/* --- types --- */

static int load_types(struct listing *l, const struct invocation *inv)
{
    const char *picked = flag_value(inv, "nodepool");
    int code = loaded_types_load(&l->loaded, inv);
    if (code != EXIT_DONE)
        return code;
    vec_each(&l->loaded.pools, struct loaded_pool, p) {
        AUTO_BUF note = { 0 };
        struct str name = p->pool->object.meta.name;
        if (p->trouble.len)
            return print_complaint("instance-types", EXIT_NO, "NodePool/%.*s: %.*s", STR_ARG(name),
                                   STR_ARG(p->trouble));
        struct pool_view view = {
            .pool = p->pool,
            .raw = p->raw,
            .types = p->types,
            .well_known = p->well_known,
            .of_ec2 = p->of_ec2,
            .name = name,
            .has_class = p->maybe_class != NULL,
            .shown = !picked || str_eqz(name, picked),
        };
        if (p->maybe_class && p->maybe_class->kind == &ec2nodeclass_kind)
            view.maybe_class = ec2nodeclass_of(p->maybe_class);
        if (name.len && view.shown && pool_class_note(p, &note))
            fprintf(stderr, "%s\n", note.p);
        vec_push(&l->pools, view);
    }
    report_overlays(l);
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
            return print_complaint("instance-types", EXIT_USAGE, "--requirement %s", err.text);
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
    const char *preview = flag_value(inv, "preview");
    if (preview && strcmp(flag_value(inv, "node-overlay"), "true") != 0)
        return print_complaint("instance-types", EXIT_USAGE,
                               "--preview needs the feature gate: --node-overlay true");
    if ((code = read_requirements(l, inv, args, &arg_count)) != EXIT_DONE)
        return code;
    size_t path_count = flag_values(inv, "filename", paths, PATHS_MAX);
    if (stdin_uses(inv, paths, path_count) > 1)
        return print_complaint("instance-types", EXIT_USAGE,
                               "standard input (-) can be read once only");
    if ((code = read_manifests(&l->manifests, paths, path_count)) != EXIT_DONE)
        return code;
    collect(l);
    if (!l->loaded.pools.count)
        add_nameless_pool(l, path_count);
    if ((code = check_pick(l, inv)) != EXIT_DONE)
        return code;
    if (preview && (code = read_preview(l, preview)) != EXIT_DONE)
        return code;
    if ((code = load_types(l, inv)) != EXIT_DONE)
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
    vec_each(&l->pools, struct pool_view, view)
        vec_done(&view->asks);
    vec_done(&l->pools);
    vec_done(&l->candidates);
    loaded_types_done(&l->loaded);
    manifests_done(&l->manifests);
    manifests_done(&l->preview);
    arena_done(&l->arena);
}
