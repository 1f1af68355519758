/* Bottlerocket: one TOML document of settings, the user's with ours put in.
 *
 * karve owns some keys of settings.kubernetes, the labels and taints it gives the node, and what
 * spec.kubelet sets. They are put first in their tables, sorted, in place of the user's; everything
 * else of the user's, keys that we have never heard of included, stays as and where it is. The
 * order of a table is the same after a second merge, so the result merged again is itself. */
#include "bootstrap/boot.h"
#include "bootstrap/families.h"
#include "codec/toml.h"

#define SETTINGS "settings"
#define KUBERNETES "settings.kubernetes"
#define COMMANDS "settings.bootstrap-commands"
#define MOUNT_COMMAND "000-mount-instance-storage"
#define LABEL_PREFIX "karpenter.sh/"

/* --- what the user's text must be like --- */

struct source {
    struct arena *arena;
    const struct boot *maybe_boot; /* tells the place in the manifest */
    struct err *err;
};

static int refuse(const struct source *s, struct text_pos at)
{
    if (!s->maybe_boot)
        return err_wrap(s->err, "line %u, column %u", at.line, at.col);
    struct str place = boot_user_place(s->arena, s->maybe_boot, at);
    return err_wrap(s->err, "%.*s", STR_ARG(place));
}

static int read_settings(const struct source *s, struct str user_data, struct toml **out)
{
    struct text_pos at;
    if (toml_read_at(s->arena, user_data, out, &at, s->err) < 0)
        return refuse(s, at);
    return 0;
}

/* The value at `key` of `table`, whose path is `path`: absent, or of that type. */
static int expect(const struct source *s, const struct toml *table, const char *path,
                  struct str key, enum toml_type type, const struct toml **out)
{
    AUTO_BUF name = { 0 };
    *out = toml_get(table, key);
    if (!*out || toml_is(*out, type))
        return 0;
    toml_write_key(key, &name);
    err_set(s->err, ERR_INVALID, "%s%s%.*s is %s, expected %s", path, *path ? "." : "",
            STR_ARG(buf_str(&name)), toml_type_name(toml_type(*out)), toml_type_name(type));
    return refuse(s, toml_pos(*out));
}

static int expect_strings(const struct source *s, const struct toml *kubernetes, const char *key,
                          const struct toml **out)
{
    const struct toml *value;
    if (expect(s, kubernetes, KUBERNETES, str_of(key), TOML_TABLE, out) < 0)
        return -1;
    struct str path = arena_strf(s->arena, KUBERNETES ".%s", key);
    toml_each(*out, e)
    {
        if (expect(s, *out, path.p, toml_key(e), TOML_STRING, &value) < 0)
            return -1;
    }
    return 0;
}

/* settings.kubernetes; NULL if it is absent. */
static int find_kubernetes(const struct source *s, const struct toml *root, const struct toml **out)
{
    const struct toml *settings;
    if (expect(s, root, "", STR(SETTINGS), TOML_TABLE, &settings) < 0)
        return -1;
    return expect(s, settings, SETTINGS, STR("kubernetes"), TOML_TABLE, out);
}

/* Keys that karve may have to replace. A user's value of another type is a mistake worth telling
 * even where it would be replaced. */
static int check_types(const struct source *s, const struct toml *root)
{
    static const struct {
        const char *key;
        enum toml_type type;
    } keys[] = {
        { "api-server", TOML_STRING },
        { "cluster-certificate", TOML_STRING },
        { "cluster-name", TOML_STRING },
        { "cpu-cfs-quota-enforced", TOML_BOOL },
        { "eviction-max-pod-grace-period", TOML_INTEGER },
        { "max-pods", TOML_INTEGER },
        { "node-taints", TOML_TABLE },
    };
    static const char *const tables[] = {
        "eviction-hard", "eviction-soft", "eviction-soft-grace-period",
        "kube-reserved", "node-labels",   "system-reserved",
    };
    const struct toml *kubernetes, *value;
    if (find_kubernetes(s, root, &kubernetes) < 0)
        return -1;
    for (size_t i = 0; i < KV_COUNT_OF(keys); i++) {
        if (expect(s, kubernetes, KUBERNETES, str_of(keys[i].key), keys[i].type, &value) < 0)
            return -1;
    }
    for (size_t i = 0; i < KV_COUNT_OF(tables); i++) {
        if (expect_strings(s, kubernetes, tables[i], &value) < 0)
            return -1;
    }
    return 0;
}

/* --- putting ours in --- */

struct setter { /* the mark of a value that is not the user's */
    enum boot_owner owner;
    struct str note;
};

struct merge {
    struct source source; /* its arena has the tree, for the time of the merge */
    struct arena *arena;  /* that of the result */
    const struct boot *boot;
    struct boot_text *out;
};

struct setting {
    struct str key;
    struct toml *value;
    enum boot_owner owner;
};

#define SETTINGS_MAX 16

struct settings { /* of one table, sorted by key */
    struct setting items[SETTINGS_MAX];
    uint32_t count;
};

static void add(struct settings *list, const char *key, struct toml *value, enum boot_owner owner)
{
    KV_ASSERT(list->count < SETTINGS_MAX);
    list->items[list->count++] = (struct setting){ str_of(key), value, owner };
}

/* As the user wrote it, unless that is long or has lines. */
static void add_spelling(struct buf *out, const struct toml *v)
{
    struct str text = toml_spelling(v);
    bool plain = text.p && text.len <= STR_SHOWN_BYTES;
    for (size_t i = 0; plain && i < text.len; i++)
        plain = text.p[i] >= ' ' && text.p[i] < 0x7f;
    if (plain)
        buf_add(out, text);
    else
        buf_addz(out, text.p ? STR_SHOWN(text) : toml_type_name(toml_type(v)));
}

static struct str override_note(struct merge *m, struct str key, const struct toml *old)
{
    AUTO_BUF note = { 0 };
    struct text_pos line = { toml_pos(old).line, 0 };
    buf_addz(&note, "overrides ");
    toml_write_key(key, &note);
    buf_addz(&note, " = ");
    add_spelling(&note, old);
    buf_addf(&note, " of %.*s", STR_ARG(boot_user_place(m->source.arena, m->boot, line)));
    return arena_str(m->arena, buf_str(&note));
}

/* Before all other keys of the table. */
static void put_first(struct merge *m, struct toml *table, const struct setting *setting)
{
    const struct toml *old = toml_get(table, setting->key);
    struct setter *setter = arena_new(m->source.arena, struct setter);
    setter->owner = setting->owner;
    if (old && !toml_equal(old, setting->value))
        setter->note = override_note(m, setting->key, old);
    toml_mark(setting->value, setter);
    toml_set_first(m->source.arena, table, setting->key, setting->value);
}

static void put_all(struct merge *m, struct toml *table, const struct setting *items,
                    uint32_t count)
{
    for (uint32_t i = count; i > 0; i--)
        put_first(m, table, &items[i - 1]);
}

/* Remove the user's keys with that prefix, each with a warning that says why. */
static void drop(struct merge *m, struct toml *table, const char *path, struct str prefix,
                 const char *why)
{
    toml_each(table, e)
    {
        struct text_pos line = { toml_pos(toml_value(e)).line, 0 };
        AUTO_BUF name = { 0 };
        if (toml_marked(toml_value(e)) || !str_starts(toml_key(e), prefix))
            continue;
        toml_write_key(toml_key(e), &name);
        boot_warn(m->arena, m->out, "%.*s: %s.%.*s is dropped: %s",
                  STR_ARG(boot_user_place(m->source.arena, m->boot, line)), path,
                  STR_ARG(buf_str(&name)), why);
        toml_remove(m->source.arena, table, toml_key(e));
    }
}

/* Replace a table as a whole. One that is not there is not made for nothing. */
static void replace_table(struct merge *m, struct toml *parent, const char *path, struct str key,
                          const struct setting *items, uint32_t count, const char *why)
{
    if (!count && !toml_get(parent, key))
        return;
    struct toml *table = toml_sub(m->source.arena, parent, key);
    put_all(m, table, items, count);
    drop(m, table, path, STR(""), why);
}

static void replace_strings(struct merge *m, struct toml *kubernetes, const char *key, bool given,
                            const struct str_map *map)
{
    if (!given)
        return;
    struct setting *items = arena_array(m->source.arena, struct setting, map->count);
    for (uint32_t i = 0; i < map->count; i++)
        items[i] =
            (struct setting){ map->items[i].key, toml_new_str(m->source.arena, map->items[i].value),
                              OWNER_KUBELET };
    replace_table(m, kubernetes, arena_strf(m->source.arena, KUBERNETES ".%s", key).p, str_of(key),
                  items, map->count, "spec.kubelet replaces the table");
}

/* --- settings.kubernetes --- */

static void add_str(struct merge *m, struct settings *list, const char *key, struct str value,
                    enum boot_owner owner)
{
    if (value.len)
        add(list, key, toml_new_str(m->source.arena, value), owner);
}

static void add_int(struct merge *m, struct settings *list, const char *key, struct maybe_int value,
                    enum boot_owner owner)
{
    if (value.set)
        add(list, key, toml_new_int(m->source.arena, value.value), owner);
}

/* The schema of these two is a string. */
static void add_percent(struct merge *m, struct settings *list, const char *key,
                        struct maybe_int value)
{
    if (value.set)
        add_str(m, list, key, arena_strf(m->source.arena, "%lld", (long long)value.value),
                OWNER_KUBELET);
}

static void put_settings(struct merge *m, struct toml *kubernetes, const struct kubelet_config *k)
{
    const struct boot_cluster *cluster = m->boot->cluster;
    struct settings list = { .count = 0 };
    add_str(m, &list, "api-server", cluster->endpoint, OWNER_KARVE);
    add_str(m, &list, "cluster-certificate", cluster->ca, OWNER_KARVE);
    add_str(m, &list, "cluster-dns-ip", boot_cluster_dns(m->boot),
            k->cluster_dns.count ? OWNER_KUBELET : OWNER_KARVE);
    add_str(m, &list, "cluster-name", cluster->name, OWNER_KARVE);
    if (k->cpu_cfs_quota != TRI_UNSET)
        add(&list, "cpu-cfs-quota-enforced",
            toml_new_bool(m->source.arena, k->cpu_cfs_quota == TRI_TRUE), OWNER_KUBELET);
    add_int(m, &list, "eviction-max-pod-grace-period", k->eviction_max_pod_grace_s, OWNER_KUBELET);
    add_percent(m, &list, "image-gc-high-threshold-percent", k->image_gc_high);
    add_percent(m, &list, "image-gc-low-threshold-percent", k->image_gc_low);
    add_int(m, &list, "max-pods", boot_max_pods(m->boot),
            k->max_pods.set ? OWNER_KUBELET : OWNER_KARVE);
    put_all(m, kubernetes, list.items, list.count);
    if (!toml_get(kubernetes, STR("cluster-certificate")))
        boot_warn(m->arena, m->out,
                  "the cluster's certificate authority is not known: the node cannot join "
                  "without it");
}

static void put_labels(struct merge *m, struct toml *kubernetes)
{
    struct str_map labels = boot_node_labels(m->source.arena, m->boot);
    if (!labels.count && !toml_get(kubernetes, STR("node-labels")))
        return;
    struct toml *table = toml_sub(m->source.arena, kubernetes, STR("node-labels"));
    for (uint32_t i = labels.count; i > 0; i--) {
        const struct str_pair *label = &labels.items[i - 1];
        put_first(m, table,
                  &(struct setting){ label->key, toml_new_str(m->source.arena, label->value),
                                     OWNER_KARVE });
    }
    drop(m, table, KUBERNETES ".node-labels", STR(LABEL_PREFIX),
         "labels of " LABEL_PREFIX " are karve's to set");
}

static int by_key(const void *a, const void *b)
{
    return str_cmp(((const struct setting *)a)->key, ((const struct setting *)b)->key);
}

/* "value:Effect", several of one key in one list, in the order of the taints. */
static void put_taints(struct merge *m, struct toml *kubernetes)
{
    taint_list taints = boot_node_taints(m->source.arena, m->boot);
    struct setting *items = arena_array(m->source.arena, struct setting, taints.count);
    uint32_t count = 0;
    for (uint32_t i = 0; i < taints.count; i++) {
        const struct taint *t = &taints.items[i];
        uint32_t at = 0;
        while (at < count && !str_eq(items[at].key, t->key))
            at++;
        if (at == count)
            items[count++] =
                (struct setting){ t->key, toml_new_array(m->source.arena), OWNER_KARVE };
        struct str text =
            arena_strf(m->source.arena, "%.*s:%s", STR_ARG(t->value), boot_taint_effect(t));
        toml_push(m->source.arena, items[at].value, toml_new_str(m->source.arena, text));
    }
    qsort(items, count, sizeof *items, by_key);
    replace_table(m, kubernetes, KUBERNETES ".node-taints", STR("node-taints"), items, count,
                  "the taints of a node are karve's to set");
}

static void put_kubernetes(struct merge *m, struct toml *kubernetes)
{
    static const struct kubelet_config none;
    const struct kubelet_config *k = m->boot->kubelet ? m->boot->kubelet : &none;
    put_settings(m, kubernetes, k);
    replace_strings(m, kubernetes, "eviction-hard", k->has_eviction_hard, &k->eviction_hard);
    replace_strings(m, kubernetes, "eviction-soft", k->has_eviction_soft, &k->eviction_soft);
    replace_strings(m, kubernetes, "eviction-soft-grace-period", k->has_eviction_soft_grace,
                    &k->eviction_soft_grace);
    replace_strings(m, kubernetes, "kube-reserved", k->has_kube_reserved, &k->kube_reserved);
    put_labels(m, kubernetes);
    put_taints(m, kubernetes);
    replace_strings(m, kubernetes, "system-reserved", k->has_system_reserved, &k->system_reserved);
}

/* --- instance storage as one array --- */

/* From 1.46.0 on the folders to bind are Bottlerocket's to know. An unknown version is an old
 * one. */
static bool binds_by_itself(struct str version)
{
    int64_t major, minor;
    if (str_eqz(version, "latest"))
        return true;
    if (str_starts(version, STR("v")))
        version = str_sub(version, 1, version.len);
    struct str first = str_take_digits(&version);
    if (!str_starts(version, STR(".")) || !str_to_i64(first, &major))
        return false;
    version = str_sub(version, 1, version.len);
    if (!str_to_i64(str_take_digits(&version), &minor))
        return false;
    return major > 1 || (major == 1 && minor >= 46);
}

static struct toml *command(struct arena *arena, const char *const *words)
{
    struct toml *list = toml_new_array(arena);
    for (; *words; words++)
        toml_push(arena, list, toml_new_str(arena, str_of(*words)));
    return list;
}

static int put_raid0(struct merge *m, struct toml *settings)
{
    static const char *const init[] = { "apiclient", "ephemeral-storage", "init", NULL };
    static const char *const bind[] = { "apiclient", "ephemeral-storage", "bind", NULL };
    static const char *const bind_dirs[] = {
        "apiclient",           "ephemeral-storage", "bind",          "--dirs",
        "/var/lib/containerd", "/var/lib/kubelet",  "/var/log/pods", NULL,
    };
    struct arena *arena = m->source.arena;
    const struct toml *commands, *entry;
    if (!m->boot->raid0)
        return 0;
    if (expect(&m->source, settings, SETTINGS, STR("bootstrap-commands"), TOML_TABLE, &commands) <
            0 ||
        expect(&m->source, commands, COMMANDS, STR(MOUNT_COMMAND), TOML_TABLE, &entry) < 0)
        return -1;
    struct toml *list = toml_new_array(arena);
    toml_push(arena, list, command(arena, init));
    toml_push(arena, list,
              command(arena, binds_by_itself(m->boot->image_version) ? bind : bind_dirs));
    struct settings own = { .count = 0 };
    add(&own, "commands", list, OWNER_KARVE);
    add(&own, "essential", toml_new_bool(arena, true), OWNER_KARVE);
    add(&own, "mode", toml_new_str(arena, STR("always")), OWNER_KARVE);
    replace_table(m, toml_sub(arena, settings, STR("bootstrap-commands")),
                  COMMANDS "." MOUNT_COMMAND, STR(MOUNT_COMMAND), own.items, own.count,
                  "the command that mounts the instance storage is karve's");
    return 0;
}

/* --- the result --- */

struct spans {
    VEC(struct toml_span) items;
};

static void add_span(void *ctx, const struct toml_span *span)
{
    struct spans *spans = ctx;
    vec_push(&spans->items, *span);
}

static void add_pieces(struct arena *arena, const struct toml *root, struct boot_text *out)
{
    AUTO_BUF written = { 0 };
    struct spans spans = { 0 };
    toml_write_spans(root, &written, add_span, &spans);
    struct str text = arena_str(arena, buf_str(&written));
    vec_each(&spans.items, struct toml_span, span) {
        const struct setter *setter = toml_marked(span->maybe_value);
        enum boot_owner owner = setter ? setter->owner : span->made ? OWNER_KARVE : OWNER_USER;
        boot_add_piece(arena, out, str_sub(text, span->start, span->end - span->start), owner,
                       setter ? setter->note : STR(""));
    }
    vec_done(&spans.items);
    boot_add_part(arena, out, STR("application/toml"), OWNER_KARVE, text.len);
}

static int render(struct arena *arena, const struct boot *boot, struct boot_text *out,
                  struct err *err)
{
    AUTO_ARENA tree = { 0 };
    struct merge m = { { &tree, boot, err }, arena, boot, out };
    struct toml *root;
    if (read_settings(&m.source, boot->user_data, &root) < 0 || check_types(&m.source, root) < 0)
        return err_wrap(err, "spec.userData");

    struct toml *settings = toml_sub(&tree, root, STR(SETTINGS));
    put_kubernetes(&m, toml_sub(&tree, settings, STR("kubernetes")));
    if (put_raid0(&m, settings) < 0)
        return err_wrap(err, "spec.userData");
    add_pieces(arena, root, out);
    return 0;
}

static const struct family_device devices[] = { { "/dev/xvda", 4 }, { "/dev/xvdb", 20 } };

const struct family family_bottlerocket = {
    .id = AMI_FAMILY_BOTTLEROCKET,
    .name = "Bottlerocket",
    .alias = "bottlerocket",
    .devices = devices,
    .device_count = KV_COUNT_OF(devices),
    .ephemeral_device = "/dev/xvdb",
    .ephemeral_default_gib = 20,
    .eni_limited_pods = true,
    .checks_kubelet_fields = true,
    .do_not_sync_taints = true,
    .needs_cluster = true,
    .render = render,
};

/* --- reservations --- */

static int by_pair_key(const void *a, const void *b)
{
    return str_cmp(((const struct str_pair *)a)->key, ((const struct str_pair *)b)->key);
}

static int read_strings(const struct source *s, struct arena *arena, const struct toml *kubernetes,
                        const char *key, struct str_map *out)
{
    const struct toml *table;
    uint32_t count = 0;
    if (expect_strings(s, kubernetes, key, &table) < 0)
        return -1;
    struct str_pair *items = arena_array(arena, struct str_pair, toml_count(table));
    toml_each(table, e) items[count++] =
        (struct str_pair){ arena_str(arena, toml_key(e)),
                           arena_str(arena, toml_str(toml_value(e))) };
    qsort(items, count, sizeof *items, by_pair_key);
    *out = (struct str_map){ items, count };
    return 0;
}

int bottlerocket_reservations(struct arena *arena, struct str user_data, struct str_map *kube,
                              struct str_map *system, struct str_map *eviction, struct err *err)
{
    AUTO_ARENA tree = { 0 };
    struct err own = { 0 };
    struct source s = { &tree, NULL, err ? err : &own };
    struct toml *root;
    const struct toml *kubernetes;
    struct str_map maps[3];
    if (read_settings(&s, user_data, &root) < 0 || find_kubernetes(&s, root, &kubernetes) < 0 ||
        read_strings(&s, arena, kubernetes, "kube-reserved", &maps[0]) < 0 ||
        read_strings(&s, arena, kubernetes, "system-reserved", &maps[1]) < 0 ||
        read_strings(&s, arena, kubernetes, "eviction-hard", &maps[2]) < 0)
        return -1;
    *kube = maps[0];
    *system = maps[1];
    *eviction = maps[2];
    return 0;
}
