/* Whom `karve image check` asks about: nodes, of a live cluster or of manifests, or the instance types that a
 * NodePool or the whole catalogue has. Nothing is watched, nothing is written.
 */
#include "cmd/image_inner.h"

#include "api/kinds.h"
#include "cmd/inputs.h"
#include "cmd/kube_access.h"
#include "cmd/version.h"

#include <string.h>

#define NAMES_MAX 1000
#define LIVE_PAGE 100 /* a NodeFeature has 130 KB */

/* --- objects --- */

static int read_files(struct image_subjects *s, struct image_work *w)
{
    const char *paths[PATHS_MAX];
    size_t count = flag_values(w->inv, "filename", paths, PATHS_MAX);
    struct err err;
    if (manifests_load(&s->manifests, paths, count, &err) < 0)
        return print_complaint(w->name, EXIT_ENVIRONMENT, "%s", err.text);
    print_problems(&s->manifests, false, false); /* karve validate tells the rest */
    return s->manifests.error_count ? EXIT_NO : EXIT_DONE;
}

/* A cluster without the kind has none of it. */
static int read_kind(struct image_subjects *s, const struct store *store, const struct kind *kind,
                     struct err *err)
{
    AUTO_FREE char *next = NULL;
    struct list_options options = { .limit = LIVE_PAGE, .skip_unreadable = true };
    do {
        struct object_list page = { 0 };
        options.continue_ = str_of(next);
        if (store_list(store, kind, &options, &page, err) < 0)
            return err->kind == ERR_NOT_FOUND && !next ? 0 : -1;
        for (size_t i = 0; i < page.count; i++) {
            const struct object *object = take(&page.items[i]);
            vec_push(&s->manifests.items, (struct manifest){ .kind = kind,
                                                             .kind_name = str_of(kind->name),
                                                             .namespace_ = object->meta.namespace_,
                                                             .name = object->meta.name,
                                                             .object = object });
        }
        free(next);
        next = take(&page.continue_);
        object_list_done(&page);
    } while (next);
    return 0;
}

static int read_kinds(struct image_subjects *s, struct kube *kube, struct err *err)
{
    static const struct kind *const live_kinds[] = {
        &node_kind,        &node_feature_kind, &nodeclaim_kind,     &nodepool_kind,
        &nodeoverlay_kind, &ec2nodeclass_kind, &kwoknodeclass_kind,
    };
    AUTO_BUF version = { 0 };
    if (kube_server_version(kube, &version, err) < 0)
        return -1; /* that there is none to talk to is told at once */
    for (size_t i = 0; i < KV_COUNT_OF(live_kinds); i++) {
        if (read_kind(s, kube_store(kube), live_kinds[i], err) < 0)
            return -1;
    }
    return 0;
}

static int read_live(struct image_subjects *s, struct image_work *w)
{
    AUTO(kubeconfig) access = NULL;
    AUTO(kube) kube = NULL;
    struct err err;
    if (kube_access_open(w->inv, clock_real(), w->log, &access, &err) != EXIT_DONE)
        return print_complaint(w->name, EXIT_ENVIRONMENT, "%s", err.text);
    struct kube_options options = { .access = access,
                                    .pool = s->manifests.pool,
                                    .clock = clock_real(),
                                    .maybe_log = w->log,
                                    .user_agent = "karve/" KARVE_VERSION };
    s->live = true;
    if (kube_new(options, &kube, &err) < 0)
        return print_complaint(w->name, EXIT_ENVIRONMENT, "%s", err.text);
    if (read_kinds(s, kube, &err) < 0)
        return print_complaint(w->name, EXIT_ENVIRONMENT, "context %s: %s",
                               kubeconfig_context(access), err.text);
    return EXIT_DONE;
}

/* --- nodes --- */

static void add_nodes(struct image_subjects *s, const char *maybe_name)
{
    vec_each(&s->manifests.items, struct manifest, item) {
        struct image_subject subject = { .why = STR("") };
        if (!item->object || item->kind != &node_kind ||
            (maybe_name && !str_eqz(item->name, maybe_name)))
            continue;
        subject.name = item->name;
        machine_of_node(node_of(item->object), &subject.machine);
        vec_push(&s->items, subject);
        if (maybe_name)
            return; /* a node is one, however often its name is given */
    }
}

static bool has_nodes(const struct image_subjects *s)
{
    vec_each(&s->manifests.items, struct manifest, item) {
        if (item->object && item->kind == &node_kind)
            return true;
    }
    return false;
}

static int load_nodes(struct image_subjects *s, struct image_work *w)
{
    const char *names[NAMES_MAX];
    size_t count = flag_values(w->inv, "node", names, NAMES_MAX);
    s->are_nodes = true;
    if (!count)
        add_nodes(s, NULL);
    for (size_t i = 0; i < count; i++) {
        size_t before = s->items.count;
        add_nodes(s, names[i]);
        if (s->items.count == before)
            return print_complaint(w->name, EXIT_USAGE, "there is no Node %s %s",
                                   STR_SHOWN(str_of(names[i])),
                                   s->live ? "in the cluster" : "among the manifests");
    }
    if (!s->items.count)
        return print_complaint(w->name, EXIT_NO, "the cluster has no nodes");
    return EXIT_DONE;
}

/* --- instance types --- */

static void add_type(struct image_subjects *s, const struct instance_types *types, uint32_t t)
{
    struct image_subject subject = { .name = types->names[t], .why = STR("") };
    machine_of_type(types, t, &subject.machine);
    vec_push(&s->items, subject);
}

/* One that asks for nothing: its types are the whole catalogue. */
static void add_catalogue_pool(struct image_subjects *s)
{
    struct nodepool *pool = arena_new(&s->arena, struct nodepool);
    pool->object.kind = &nodepool_kind;
    pool->object.meta.name = STR("");
    pool->spec.template.spec.node_class_ref =
        (struct node_class_ref){ STR(AWS_GROUP), STR("EC2NodeClass"), STR("") };
    loaded_types_collect(&s->loaded, &pool->object);
}

static struct str nearest_type(const struct instance_types *types, struct str wanted)
{
    struct str near = STR_NONE;
    size_t near_distance = 3;
    for (uint32_t t = 0; t < types->type_count; t++) {
        size_t distance = str_distance(wanted, types->names[t], 2);
        if (distance < near_distance) {
            near = types->names[t];
            near_distance = distance;
        }
    }
    return near;
}

static int add_named_types(struct image_subjects *s, struct image_work *w,
                           const struct instance_types *types)
{
    const char *names[NAMES_MAX];
    size_t count = flag_values(w->inv, "instance-type", names, NAMES_MAX);
    for (size_t i = 0; i < count; i++) {
        struct str name = str_of(names[i]);
        uint32_t t = 0;
        while (t < types->type_count && !str_eq(types->names[t], name))
            t++;
        if (t < types->type_count) {
            add_type(s, types, t);
            continue;
        }
        struct str near = nearest_type(types, name);
        if (near.p)
            return print_complaint(w->name, EXIT_USAGE,
                                   "there is no instance type %s; did you mean %s?",
                                   STR_SHOWN(name), STR_SHOWN(near));
        return print_complaint(w->name, EXIT_USAGE,
                               "there is no instance type %s: karve instance-types lists them",
                               STR_SHOWN(name));
    }
    return EXIT_DONE;
}

/* The types that the pool's requirements and labels allow, and that are offered so. */
static int add_pool_types(struct image_subjects *s, struct image_work *w,
                          const struct loaded_pool *p)
{
    const struct node_template *template = &p->pool->spec.template;
    struct requirements wanted, labels;
    struct err err;
    if (requirements_from_expressions(&s->arena, template->spec.requirements.items,
                                      template->spec.requirements.count, &wanted, &err) < 0)
        return print_complaint(w->name, EXIT_NO, "NodePool/%.*s: %s",
                               STR_ARG(p->pool->object.meta.name), err.text);
    labels = requirements_from_labels(&s->arena, &template->meta.labels);
    wanted = requirements_merge(&s->arena, &wanted, &labels);

    struct bitset fitting = bitset_new(&s->arena, p->types->type_count);
    struct bitset offered = bitset_new(&s->arena, p->types->type_count);
    struct bitset shapes = bitset_new(&s->arena, p->types->shape_count);
    bitset_fill(&fitting);
    for (uint32_t i = 0; i < wanted.count; i++) /* what types do not speak of is the pool's own */
        instance_types_narrow(p->types, &wanted.items[i], true, &fitting);
    instance_types_shapes(p->types, &wanted, &shapes);
    instance_types_offered(p->types, &shapes, &offered);
    bitset_and(&fitting, &offered);
    bitset_each(&fitting, t)
        add_type(s, p->types, t);
    if (!s->items.count)
        return print_complaint(w->name, EXIT_NO, "NodePool/%.*s: its requirements allow no type",
                               STR_ARG(p->pool->object.meta.name));
    return EXIT_DONE;
}

static const struct loaded_pool *find_pool(const struct image_subjects *s, struct str name)
{
    vec_each(&s->loaded.pools, struct loaded_pool, p) {
        if (str_eq(p->pool->object.meta.name, name))
            return p;
    }
    return NULL;
}

static int complain_pool(const struct image_subjects *s, const struct image_work *w,
                         struct str name)
{
    AUTO_BUF names = { 0 };
    vec_each(&s->loaded.pools, struct loaded_pool, p)
        buf_addf(&names, "%s%.*s", names.len ? ", " : "", STR_ARG(p->pool->object.meta.name));
    return print_complaint(w->name, EXIT_USAGE, "there is no NodePool %s; there %s %s",
                           STR_SHOWN(name), s->loaded.pools.count > 1 ? "are" : "is",
                           names.len ? names.p : "none");
}

static int load_types(struct image_subjects *s, struct image_work *w)
{
    const char *pool_name = flag_value(w->inv, "nodepool");
    int code;
    if (pool_name) {
        vec_each(&s->manifests.items, struct manifest, item) {
            if (item->object)
                loaded_types_collect(&s->loaded, item->object);
        }
        if (!find_pool(s, str_of(pool_name)))
            return complain_pool(s, w, str_of(pool_name));
    } else {
        add_catalogue_pool(s);
    }
    if ((code = loaded_types_load(&s->loaded, w->inv)) != EXIT_DONE)
        return code;
    const struct loaded_pool *pool = find_pool(s, str_of(pool_name ? pool_name : ""));
    if (pool->trouble.len)
        return print_complaint(w->name, EXIT_NO, "NodePool/%.*s: %.*s",
                               STR_ARG(pool->pool->object.meta.name), STR_ARG(pool->trouble));
    if (pool_name) {
        AUTO_BUF note = { 0 };
        if (pool_class_note(pool, &note))
            fprintf(stderr, "%s\n", note.p);
        s->of = arena_strf(&s->arena, " of NodePool %s", pool_name).p;
        return add_pool_types(s, w, pool);
    }
    if (flag_given(w->inv, "instance-type"))
        return add_named_types(s, w, pool->types);
    s->of = " of the catalogue";
    for (uint32_t t = 0; t < pool->types->type_count; t++)
        add_type(s, pool->types, t);
    return EXIT_DONE;
}

/* --- which of these --- */

static int check_flags(const struct image_work *w)
{
    static const char *const targets[] = { "node", "instance-type", "nodepool" };
    const char *first = NULL;
    for (size_t i = 0; i < KV_COUNT_OF(targets); i++) {
        if (!flag_given(w->inv, targets[i]))
            continue;
        if (first)
            return print_complaint(w->name, EXIT_USAGE, "--%s and --%s: one of these at a time",
                                   first, targets[i]);
        first = targets[i];
    }
    return EXIT_DONE;
}

int image_subjects_load(struct image_subjects *s, struct image_work *w)
{
    const struct invocation *inv = w->inv;
    bool files = flag_given(inv, "filename");
    bool cluster = flag_given(inv, "context") || flag_given(inv, "kubeconfig");
    bool of_objects = flag_given(inv, "node") || flag_given(inv, "nodepool");
    int code = check_flags(w);
    manifests_init(&s->manifests);
    s->of = "";
    if (code != EXIT_DONE)
        return code;
    if (files && cluster)
        return print_complaint(w->name, EXIT_USAGE,
                               "nodes come from manifests (-f) or from a cluster: one of these");
    if (files)
        code = read_files(s, w);
    else if (cluster || of_objects)
        code = read_live(s, w);
    if (code != EXIT_DONE)
        return code;
    if (flag_given(inv, "instance-type") || flag_given(inv, "nodepool"))
        return load_types(s, w);
    if (flag_given(inv, "node") || cluster || has_nodes(s))
        return load_nodes(s, w);
    if (files)
        fputs("there is no Node among the manifests: this is the whole catalogue\n", stderr);
    return load_types(s, w);
}

void image_subjects_done(struct image_subjects *s)
{
    vec_done(&s->items);
    loaded_types_done(&s->loaded);
    manifests_done(&s->manifests);
    arena_done(&s->arena);
}
