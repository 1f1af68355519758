/* From manifests and settings to what the node boots with: which class and pool are meant, what the
 * node's labels and taints are, how many pods it takes. */
#include "cmd/userdata.h"

#include "api/nodepool.h"
#include "codec/toml.h"

/* --- which class, which pool --- */

static bool is_named(const struct manifest *item, const char *maybe_name)
{
    return !maybe_name || str_eqz(item->name, maybe_name);
}

static const struct node_class_ref *class_ref(const struct manifest *pool)
{
    return &nodepool_of(pool->object)->spec.template.spec.node_class_ref;
}

static bool has_user_data(const struct node_class_ref *ref)
{
    return str_eqz(ref->group, ec2nodeclass_kind.group) &&
           str_eqz(ref->kind, ec2nodeclass_kind.name);
}

/* The objects of a kind that a name (NULL: any) and a class ("" : any) leave, as "a, b, c". */
static size_t candidates(const struct userdata *u, const struct kind *kind, const char *maybe_name,
                         struct str class_name, const struct manifest **first, struct buf *names)
{
    size_t count = 0;
    buf_clear(names);
    vec_each(&u->manifests.items, struct manifest, item) {
        if (item->kind != kind || !item->object || !is_named(item, maybe_name))
            continue;
        if (kind == &nodepool_kind && !maybe_name && !has_user_data(class_ref(item)))
            continue;
        if (class_name.len && !str_eq(class_ref(item)->name, class_name))
            continue;
        if (!count++)
            *first = item;
        buf_addf(names, "%s%.*s", count > 1 ? ", " : "", STR_ARG(item->name));
    }
    return count;
}

static int choose_pool(struct userdata *u, const struct userdata_settings *s, struct err *err)
{
    AUTO_BUF names = { 0 };
    struct str class_name = s->nodeclass ? str_of(s->nodeclass) : STR("");
    size_t count =
        candidates(u, &nodepool_kind, s->nodepool, class_name, &u->maybe_pool_item, &names);
    if (!count && s->nodepool && s->nodeclass)
        return userdata_fail(err, EXIT_USAGE, "no NodePool %s with nodes of EC2NodeClass %s",
                             STR_SHOWN(str_of(s->nodepool)), STR_SHOWN(str_of(s->nodeclass)));
    if (!count && s->nodepool)
        return userdata_fail(err, EXIT_USAGE, "no NodePool %s in the manifests",
                             STR_SHOWN(str_of(s->nodepool)));
    if (count > 1)
        return userdata_fail(err, EXIT_USAGE,
                             "there are %zu NodePools: %s; say which with --nodepool", count,
                             names.p);
    u->maybe_pool = count ? nodepool_of(u->maybe_pool_item->object) : NULL;
    return EXIT_DONE;
}

static int choose_class(struct userdata *u, const struct userdata_settings *s, struct err *err)
{
    AUTO_BUF names = { 0 };
    const char *name = s->nodeclass;
    if (!name && u->maybe_pool) {
        const struct node_class_ref *ref = class_ref(u->maybe_pool_item);
        if (!has_user_data(ref))
            return userdata_fail(err, EXIT_NO,
                                 "NodePool/%.*s has nodes of the class %.*s/%.*s, which have no "
                                 "user data; expected EC2NodeClass",
                                 STR_ARG(u->maybe_pool_item->name), STR_ARG(ref->kind),
                                 STR_ARG(ref->name));
        name = arena_str(&u->arena, ref->name).p;
    }
    size_t count = candidates(u, &ec2nodeclass_kind, name, STR(""), &u->class_item, &names);
    if (!count && name)
        return userdata_fail(err, s->nodeclass ? EXIT_USAGE : EXIT_NO,
                             "no EC2NodeClass %s in the manifests%s", STR_SHOWN(str_of(name)),
                             s->nodeclass ? "" : ", which the NodePool asks for");
    if (!count)
        return userdata_fail(err, EXIT_NO, "no EC2NodeClass in the manifests");
    if (count > 1)
        return userdata_fail(err, EXIT_USAGE,
                             "there are %zu EC2NodeClasses: %s; say which with --nodeclass", count,
                             names.p);
    u->class_ = ec2nodeclass_of(u->class_item->object);
    return EXIT_DONE;
}

/* --- where the user data is in the manifest --- */

static bool same_place(struct text_pos a, struct text_pos b)
{
    return a.line == b.line && a.col == b.col;
}

static struct str line_at(struct str text, struct text_pos pos)
{
    for (uint32_t line = 1; line < pos.line; line++) {
        struct str head;
        if (!str_cut(text, '\n', &head, &text))
            return STR("");
    }
    struct str line, rest;
    str_cut(text, '\n', &line, &rest);
    return pos.col ? str_sub(line, pos.col - 1, line.len) : line;
}

/* A block scalar (|) begins on the line after its mark, and each of its lines is one of the
 * manifest's. Folded and quoted texts begin where they stand, and then lines are not lines. */
static bool is_literal(struct str value)
{
    while (value.len && (value.p[0] == '&' || value.p[0] == '!')) {
        struct str word;
        if (!str_cut(value, ' ', &word, &value))
            return false;
        value = str_trim(value);
    }
    return str_starts(value, STR("|"));
}

static void find_user_data(struct userdata *u, const struct doc *doc, const json_val *object)
{
    const json_val *value = json_path(object, "spec.userData");
    u->class_json = object;
    if (!json_is_string(value))
        return;
    struct text_pos pos = doc_position(doc, value);
    struct str text = buf_str(&u->class_item->file->text);
    u->user_data_literal = is_literal(line_at(text, pos));
    u->user_data_pos = pos;
    u->user_data_pos.line += u->user_data_literal;
}

static void find_class_text(struct userdata *u)
{
    const struct manifest_file *file = u->class_item->file;
    for (size_t i = 0; i < file->docs.count && !u->class_json; i++) {
        const struct doc *doc = &file->docs.items[i];
        if (same_place(doc_position(doc, doc->root), u->class_item->pos) &&
            !json_get(doc->root, STR("items")))
            find_user_data(u, doc, doc->root);
        json_each_item(json_get(doc->root, STR("items")), item) {
            if (same_place(doc_position(doc, item), u->class_item->pos))
                find_user_data(u, doc, item);
        }
    }
}

/* --- labels and taints --- */

struct labels {
    struct arena *arena;
    VEC(struct str_pair) items;
};

static void label_set(struct labels *labels, struct str key, struct str value)
{
    vec_each(&labels->items, struct str_pair, label) {
        if (str_eq(label->key, key)) {
            label->value = value;
            return;
        }
    }
    vec_push(&labels->items, (struct str_pair){ key, value });
}

/* The only value that a requirement of the pool leaves; STR_NONE if there are others. */
static struct str only_value(const struct nodepool *pool, struct str key)
{
    struct str only = STR_NONE;
    for (uint32_t i = 0; i < pool->spec.template.spec.requirements.count; i++) {
        const struct expression *e = &pool->spec.template.spec.requirements.items[i];
        if (str_eq(label_normalise(e->key), key) && e->op == OP_IN && e->values.count == 1)
            only = e->values.items[0];
    }
    return only;
}

/* What a claim of the pool has: the template's labels, the names of pool and class, and labels of
 * the user's own that requirements settle. Well-known ones are settled by the launch. */
static void add_pool_labels(struct labels *labels, const struct userdata *u)
{
    const struct nodepool *pool = u->maybe_pool;
    const struct str_map *template = &pool->spec.template.meta.labels;
    const struct label_rules *rules = label_rules_for(STR(AWS_GROUP));

    for (uint32_t i = 0; i < pool->spec.template.spec.requirements.count; i++) {
        struct str key = label_normalise(pool->spec.template.spec.requirements.items[i].key);
        struct str only = only_value(pool, key);
        if (only.p && !label_is_well_known(rules, key))
            label_set(labels, key, only);
    }
    for (uint32_t i = 0; i < template->count; i++)
        label_set(labels, template->items[i].key, template->items[i].value);
    label_set(labels, STR(LABEL_NODEPOOL), pool->object.meta.name);
    label_set(labels, STR("karpenter.k8s.aws/ec2nodeclass"), u->class_->object.meta.name);
}

static struct str_map node_labels(struct userdata *u, const struct userdata_settings *s)
{
    struct labels labels = { .arena = &u->arena };
    struct str capacity_type = s->capacity_type;

    if (!capacity_type.p && u->maybe_pool)
        capacity_type = only_value(u->maybe_pool, STR(LABEL_CAPACITY_TYPE));
    if (u->maybe_pool)
        add_pool_labels(&labels, u);
    label_set(&labels, STR(LABEL_CAPACITY_TYPE),
              capacity_type.p ? capacity_type : STR(CAPACITY_ON_DEMAND));
    for (uint32_t i = 0; i < s->labels.count; i++)
        label_set(&labels, s->labels.items[i].key, s->labels.items[i].value);

    qsort(labels.items.items, labels.items.count, sizeof *labels.items.items, str_pair_order);
    struct str_pair *items = arena_array(&u->arena, struct str_pair, labels.items.count);
    memcpy(items, labels.items.items, labels.items.count * sizeof *items);
    struct str_map map = { items, (uint32_t)labels.items.count };
    vec_done(&labels.items);
    return map;
}

static taint_list node_taints(struct userdata *u, const struct userdata_settings *s)
{
    const struct claim_node_spec none = { 0 };
    const struct claim_node_spec *spec = u->maybe_pool ? &u->maybe_pool->spec.template.spec : &none;
    size_t most = (size_t)spec->taints.count + spec->startup_taints.count + s->taints.count;
    struct taint *items = arena_array(&u->arena, struct taint, most);
    uint32_t count = 0;

    for (uint32_t i = 0; i < spec->taints.count; i++)
        items[count++] = spec->taints.items[i];
    for (uint32_t i = 0; i < s->taints.count; i++)
        items[count++] = s->taints.items[i];
    for (uint32_t i = 0; i < spec->startup_taints.count; i++)
        items[count++] = spec->startup_taints.items[i];
    return (taint_list){ items, count };
}

/* --- the cluster --- */

static int check_cluster(const struct family *family, bool stand_ins, struct boot_cluster *cluster,
                         struct err *err)
{
    const struct {
        struct str *value;
        bool needed;
        const char *flag;
        struct str stand_in;
    } rows[] = {
        { &cluster->name, family->needs_cluster, "--cluster-name", STR("CLUSTER_NAME") },
        { &cluster->endpoint, family->needs_cluster, "--cluster-endpoint",
          STR("https://CLUSTER_ENDPOINT") },
        { &cluster->ca, family->needs_cluster && stand_ins, "--cluster-ca", STR("CLUSTER_CA") },
        { &cluster->service_cidr, family->needs_service_cidr, "--service-cidr",
          STR("SERVICE_CIDR") },
    };
    AUTO_BUF missing = { 0 };
    for (size_t i = 0; i < KV_COUNT_OF(rows); i++) {
        if (!rows[i].needed || rows[i].value->len)
            continue;
        if (stand_ins)
            *rows[i].value = rows[i].stand_in;
        else
            buf_addf(&missing, "%s%s", missing.len ? ", " : "", rows[i].flag);
    }
    if (missing.len)
        return userdata_fail(err, EXIT_USAGE, "nodes of the family %s need %s", family->name,
                             missing.p);
    return EXIT_DONE;
}

/* --- pods, resources, images --- */

static bool is_reservation(size_t table, struct str key, struct str value)
{
    struct str_pair pair = { key, value };
    struct str_map one = { &pair, 1 }, none = { 0 };
    struct allocatable_class class_ = { .family = AMI_FAMILY_BOTTLEROCKET,
                                        .toml_kube_reserved = table == 0 ? one : none,
                                        .toml_system_reserved = table == 1 ? one : none,
                                        .toml_eviction_hard = table == 2 ? one : none };
    struct allocatable_options options = ALLOCATABLE_DEFAULTS;
    struct allocatable_rules rules;
    return allocatable_prepare(&class_, &options, &rules, NULL) == 0;
}

/* A reservation in the user's TOML that is no quantity: where it stands. */
static void place_reservation(struct userdata *u, struct err *err)
{
    static const char *const tables[] = { "kube-reserved", "system-reserved", "eviction-hard" };
    struct toml *root = NULL;
    if (toml_read(&u->arena, u->boot.user_data, &root, NULL) < 0)
        return;
    for (size_t t = 0; t < KV_COUNT_OF(tables); t++) {
        const char *const keys[] = { "settings", "kubernetes", tables[t] };
        toml_each(toml_path(root, keys, KV_COUNT_OF(keys)), entry)
        {
            const struct toml *value = toml_value(entry);
            if (is_reservation(t, toml_key(entry), toml_str(value)))
                continue;
            err_wrap(err, "spec.userData: %s",
                     boot_user_place(&u->arena, &u->boot, toml_pos(value)).p);
            return;
        }
    }
}

/* What is wrong with the user data is told best by the rendering, which knows where it stands. */
static int explain_reservation(struct userdata *u, struct err *err)
{
    struct err told = { 0 };
    if (boot_render(&u->arena, &u->boot, &u->text, &told) < 0)
        *err = told;
    else if (u->boot.family == AMI_FAMILY_BOTTLEROCKET)
        place_reservation(u, err);
    return EXIT_NO;
}

/* A file says what there is and what is kept back of it, not who keeps it. */
static void take_draft(struct userdata *u, const struct instance_type_draft *draft)
{
    const struct resources *capacity = &draft->capacity;
    struct resource *has = arena_array(&u->arena, struct resource, capacity->count);
    struct resource *left = arena_array(&u->arena, struct resource, capacity->count);
    const struct quantity zero = { 0 };

    for (uint32_t i = 0; i < capacity->count; i++) {
        has[i] = capacity->items[i];
        if (str_eqz(has[i].name, "pods") && u->max_pods.set)
            has[i].amount = quantity_of(u->max_pods.value);
        left[i] = has[i];
        struct quantity kept = resources_get(&draft->overhead, has[i].name);
        if (quantity_sub(has[i].amount, kept, &left[i].amount, NULL) < 0 ||
            quantity_cmp(left[i].amount, zero) < 0)
            left[i].amount = zero;
    }
    u->resources = (struct node_resources){ .capacity = { has, capacity->count },
                                            .overhead = draft->overhead,
                                            .allocatable = { left, capacity->count } };
    u->resources.pods = quantity_units(resources_get(&u->resources.capacity, STR("pods")));
    u->has_resources = true;
    u->max_pods = (struct maybe_int){ u->resources.pods, true };
}

static int count_pods(struct userdata *u, const struct userdata_settings *s, struct err *err)
{
    struct allocatable_class class_;
    struct allocatable_options options = ALLOCATABLE_DEFAULTS;

    u->max_pods = u->kubelet.max_pods.set ? u->kubelet.max_pods : s->max_pods;
    if (s->maybe_machine) {
        struct kubelet_config kubelet = u->kubelet;
        kubelet.max_pods = u->max_pods;
        if (allocatable_class_of(&u->arena, u->class_, &class_, err) < 0)
            return explain_reservation(u, err);
        class_.maybe_kubelet = &kubelet;
        if (allocatable_compute(&u->arena, s->maybe_machine, &class_, &options, &u->resources,
                                err) < 0)
            return explain_reservation(u, err);
        u->has_resources = true;
        u->max_pods = (struct maybe_int){ u->resources.pods, true };
    } else if (s->maybe_draft) {
        take_draft(u, s->maybe_draft);
    }
    if (!u->max_pods.set && u->boot.family != AMI_FAMILY_CUSTOM && !s->stand_ins)
        vec_push(&u->warnings, STR("how many pods the node takes is not known and left out; "
                                   "--instance-type or --max-pods says it"));
    return EXIT_DONE;
}

static int find_images(struct userdata *u, const struct userdata_settings *s, struct err *err)
{
    const struct ec2nodeclass_spec *spec = &u->class_->spec;
    struct ami_alias alias;
    if (!s->cluster.version.p)
        return EXIT_DONE;
    for (uint32_t i = 0; i < spec->ami_terms.count; i++) {
        if (!spec->ami_terms.items[i].alias.len)
            continue;
        if (ami_alias_parse(spec->ami_terms.items[i].alias, &alias, err) < 0 ||
            ami_alias_parameters(&u->arena, &alias, s->cluster.version, &u->parameters, err) < 0)
            return EXIT_NO;
    }
    return EXIT_DONE;
}

/* --- the whole --- */

static int load(struct userdata *u, const struct userdata_settings *s, const char *const *paths,
                size_t path_count, struct err *err)
{
    if (manifests_load(&u->manifests, paths, path_count, err) < 0)
        return EXIT_ENVIRONMENT;
    print_problems(&u->manifests, true, false);
    if (u->manifests.error_count)
        return userdata_fail(err, EXIT_NO, "the manifests are not valid");
    int code = choose_pool(u, s, err);
    if (code == EXIT_DONE)
        code = choose_class(u, s, err);
    if (code == EXIT_DONE)
        find_class_text(u);
    return code;
}

static struct boot boot_of(struct userdata *u, const struct userdata_settings *s,
                           const struct boot_cluster *cluster)
{
    const struct ec2nodeclass_spec *spec = &u->class_->spec;
    struct str image =
        u->class_->status.amis.count ? u->class_->status.amis.items[0].name : STR_NONE;
    taint_list taints = node_taints(u, s);
    return (struct boot){
        .cluster = cluster,
        .family = ec2nodeclass_ami_family(spec),
        .order = boot_order_of(u->class_),
        .user_data = spec->user_data,
        .user_data_pos = u->user_data_literal ? u->user_data_pos : (struct text_pos){ 0 },
        .kubelet = &u->kubelet,
        .labels = node_labels(u, s),
        .taints = { taints.items, taints.count },
        .raid0 = spec->instance_store_policy == INSTANCE_STORE_RAID0,
        .image_version = ami_bottlerocket_version(spec, image),
    };
}

/* "nodeclass.yaml:14: EC2NodeClass/default: ...". The line is that of user data whose lines are not
 * lines of the manifest; of others the message itself has both. */
static int locate(const struct userdata *u, struct err *err)
{
    AUTO_BUF place = { 0 };
    bool of_user_data = str_starts(str_of(err->text), STR("spec.userData"));
    buf_addz(&place, u->class_item->file->path);
    if (of_user_data && u->user_data_pos.line && !u->user_data_literal)
        buf_addf(&place, ":%u", u->user_data_pos.line);
    buf_addf(&place, ": EC2NodeClass/%.*s", STR_ARG(u->class_item->name));
    err_wrap(err, "%s", place.p);
    return EXIT_NO;
}

int userdata_render(struct userdata *u, const struct userdata_settings *settings,
                    const char *const *paths, size_t path_count, struct err *err)
{
    struct boot_cluster *cluster;
    *u = (struct userdata){ 0 };
    manifests_init(&u->manifests);
    int code = load(u, settings, paths, path_count, err);
    if (code != EXIT_DONE)
        return code;

    cluster = arena_new(&u->arena, struct boot_cluster);
    *cluster = settings->cluster;
    u->boot = boot_of(u, settings, cluster);
    code = check_cluster(family_of(u->boot.family), settings->stand_ins, cluster, err);
    if (code != EXIT_DONE)
        return code;
    if (kubelet_config_read(&u->arena, u->class_->spec.kubelet, u->boot.family, &u->kubelet, err) <
            0 ||
        count_pods(u, settings, err) != EXIT_DONE || find_images(u, settings, err) != EXIT_DONE)
        return locate(u, err);
    u->boot.max_pods = u->max_pods;
    if (boot_render(&u->arena, &u->boot, &u->text, err) < 0)
        return locate(u, err);
    for (uint32_t i = 0; i < u->text.warnings.count; i++)
        vec_push(&u->warnings, u->text.warnings.items[i]);
    return EXIT_DONE;
}

void userdata_done(struct userdata *u)
{
    vec_done(&u->warnings);
    if (u->manifests.pool)
        manifests_done(&u->manifests);
    arena_done(&u->arena);
}
