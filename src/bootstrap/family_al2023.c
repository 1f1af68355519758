/* AL2023: MIME archives, in which nodeadm finds its NodeConfigs and cloud-init the rest.
 *
 * nodeadm writes the kubelet's configuration before cloud-init runs the scripts and starts the
 * kubelet after them, so the user's scripts need no special order. It merges NodeConfigs from top
 * to bottom; ours is the last part and wins. What the user's say is read all the same: to refuse
 * what nodeadm would choke on, to note what ours override, and to warn of what ours cannot: a
 * setting that changes what the node offers to pods and that spec.kubelet does not know of. */
#include "bootstrap/boot_mime.h"
#include "bootstrap/families.h"
#include "bootstrap/nodeconfig.h"

/* --- the user's --- */

struct user_config {
    struct docs docs;
    struct str text; /* what docs borrow */
    uint32_t line;   /* of the part's body */
    bool encoded;    /* lines of the text are not lines of the user data */
};

struct user_configs {
    VEC(struct user_config) items;
    struct buf merged; /* canonical JSON; empty: there are none */
    size_t bytes;      /* of the texts */
};

static void user_configs_done(struct user_configs *c)
{
    vec_each(&c->items, struct user_config, it)
        docs_done(&it->docs);
    vec_done(&c->items);
    buf_done(&c->merged);
}

static struct text_pos user_pos(const struct user_config *config, struct text_pos in_part)
{
    if (config->encoded)
        return (struct text_pos){ config->line, 0 };
    return (struct text_pos){ config->line + in_part.line - 1, in_part.col };
}

static int read_config(struct arena *arena, const struct boot *boot, const struct mime_part *part,
                       struct user_configs *out, struct err *err)
{
    struct user_config config = { .line = part->line };
    struct text_pos at = { 1, 0 };
    int rc = mime_body(arena, part, &config.text, err);
    config.encoded = rc < 0 || config.text.p != part->body.p;
    if (rc == 0)
        rc = nodeconfig_read(config.text, &config.docs, &at, err);
    if (rc < 0) {
        struct str place = boot_user_place(arena, boot, user_pos(&config, at));
        return err_wrap(err, "spec.userData: %.*s: NodeConfig", STR_ARG(place));
    }
    vec_push(&out->items, config);
    AUTO_BUF json = { 0 }, base = out->merged;
    out->merged = (struct buf){ 0 };
    json_write_canonical(config.docs.items[0].root, &json);
    nodeconfig_merge(buf_str(&base), buf_str(&json), &out->merged);
    return 0;
}

static int read_configs(struct arena *arena, const struct boot *boot, const struct boot_mime *user,
                        struct user_configs *out, struct err *err)
{
    for (uint32_t i = 0; i < user->count; i++) {
        const struct mime_part *part = &user->parts[i].mime;
        if (!str_eqz(mime_content_type(arena, part), NODECONFIG_MEDIA_TYPE))
            continue;
        out->bytes += part->body.len;
        if (out->bytes > NODECONFIG_BYTES_MAX)
            return err_set(err, ERR_INVALID,
                           "spec.userData: NodeConfigs of more than %d bytes, EC2 takes %d",
                           NODECONFIG_BYTES_MAX, USERDATA_BYTES_MAX);
        if (read_config(arena, boot, part, out, err) < 0)
            return -1;
    }
    return 0;
}

/* --- ours --- */

static json_mut *cluster_of(struct json_build *b, const struct boot_cluster *cluster)
{
    json_mut *o = json_new_object(b);
    json_set_str(b, o, "apiServerEndpoint", cluster->endpoint);
    if (cluster->ca.len)
        json_set_str(b, o, "certificateAuthority", cluster->ca);
    json_set_str(b, o, "cidr", cluster->service_cidr);
    json_set_str(b, o, "name", cluster->name);
    return o;
}

static json_mut *taints_of(struct json_build *b, taint_list taints)
{
    json_mut *list = json_new_array(b);
    for (uint32_t i = 0; i < taints.count; i++) {
        json_mut *o = json_new_object(b);
        json_set_str(b, o, "effect", str_of(boot_taint_effect(&taints.items[i])));
        json_set_str(b, o, "key", taints.items[i].key);
        if (taints.items[i].value.len)
            json_set_str(b, o, "value", taints.items[i].value);
        json_push(b, list, o);
    }
    return list;
}

/* The whole of spec.kubelet, and what karve fills in. */
static json_mut *kubelet_config_of(struct arena *arena, struct json_build *b,
                                   const struct boot *boot, const json_val *maybe_spec)
{
    json_mut *config = maybe_spec ? json_copy(b, maybe_spec) : json_new_object(b);
    struct str dns = boot_cluster_dns(boot);
    if (dns.len && !json_count(json_get(maybe_spec, STR("clusterDNS")))) {
        json_mut *list = json_new_array(b);
        json_push(b, list, json_new_str(b, dns));
        json_set(b, config, STR("clusterDNS"), list);
    }
    struct maybe_int max_pods = boot_max_pods(boot);
    if (max_pods.set)
        json_set_i64(b, config, "maxPods", max_pods.value);
    json_set(b, config, STR("registerWithTaints"), taints_of(b, boot_node_taints(arena, boot)));
    return config;
}

static json_mut *flags_of(struct arena *arena, struct json_build *b, const struct boot *boot)
{
    struct str_map labels = boot_node_labels(arena, boot);
    AUTO_BUF flag = { 0 };
    buf_addz(&flag, "--node-labels=\"");
    for (uint32_t i = 0; i < labels.count; i++)
        buf_addf(&flag, "%s%.*s=%.*s", i ? "," : "", STR_ARG(labels.items[i].key),
                 STR_ARG(labels.items[i].value));
    buf_addc(&flag, '"');
    json_mut *flags = json_new_array(b);
    if (labels.count)
        json_push(b, flags, json_new_str(b, buf_str(&flag)));
    return flags;
}

/* Canonical JSON. */
static struct str managed_config(struct arena *arena, const struct boot *boot,
                                 const json_val *maybe_spec)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *spec = json_new_object(&b);
    json_set_str(&b, root, "apiVersion", STR(NODECONFIG_API_VERSION));
    json_set_str(&b, root, "kind", STR("NodeConfig"));
    json_set(&b, root, STR("spec"), spec);
    json_set(&b, spec, STR("cluster"), cluster_of(&b, boot->cluster));
    if (boot->raid0) {
        json_mut *storage =
            json_mut_object(&b, json_mut_object(&b, spec, STR("instance")), STR("localStorage"));
        json_set_str(&b, storage, "strategy", STR("RAID0"));
    }
    json_mut *kubelet = json_mut_object(&b, spec, STR("kubelet"));
    json_set(&b, kubelet, STR("config"), kubelet_config_of(arena, &b, boot, maybe_spec));
    json_mut *flags = flags_of(arena, &b, boot);
    if (json_mut_count(flags))
        json_set(&b, kubelet, STR("flags"), flags);

    AUTO_BUF text = { 0 }, canonical = { 0 };
    struct doc doc;
    struct err err = { 0 };
    json_write_mut(root, &text);
    int rc = json_read(buf_str(&text), &doc, &err);
    KV_ASSERT(rc == 0);
    json_write_canonical(doc.root, &canonical);
    doc_done(&doc);
    return arena_str(arena, buf_str(&canonical));
}

/* --- who set which line --- */

#define KEYS_MAX 8 /* nothing deeper is noted */

struct keys { /* of nested objects, outermost first */
    struct str items[KEYS_MAX];
    uint32_t count;
};

static bool path_is(const struct keys *path, const char *const *keys, uint32_t count)
{
    if (path->count < count)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (!str_eqz(path->items[i], keys[i]))
            return false;
    return true;
}

static const json_val *walk(const json_val *v, const struct keys *path)
{
    for (uint32_t i = 0; v && i < path->count; i++)
        v = json_get(v, path->items[i]);
    return v;
}

struct annotate {
    struct arena *arena;
    const struct boot *boot;
    const struct user_configs *user;
    const json_val *maybe_spec; /* spec.kubelet */
    const struct doc *doc;      /* our text, read back */
    struct str text;
    size_t at;                /* bytes of it that are pieces */
    uint32_t line;            /* that starts there */
    enum boot_owner owner;    /* of the lines from there on */
    struct str note;          /* likewise */
    struct boot_text *script; /* gets the pieces */
};

/* The lines up to `line` (not included) belong to who was noted last; it is his turn from there
 * on. */
static void turn(struct annotate *a, uint32_t line, enum boot_owner owner, struct str note)
{
    if (owner == a->owner && !note.len && !a->note.len)
        return;
    size_t end = a->at;
    for (; a->line < line && end < a->text.len; a->line++)
        end += (size_t)str_find(str_sub(a->text, end, a->text.len), '\n') + 1;
    if (end > a->at)
        boot_add_piece(a->arena, a->script, str_sub(a->text, a->at, end - a->at), a->owner,
                       a->note);
    a->at = end;
    a->owner = owner;
    a->note = note;
}

static enum boot_owner owner_of_path(const struct annotate *a, const struct keys *path)
{
    static const char *const config[] = { "spec", "kubelet", "config" };
    if (path->count < 4 || !path_is(path, config, 3))
        return OWNER_KARVE;
    return json_get(a->maybe_spec, path->items[3]) ? OWNER_KUBELET : OWNER_KARVE;
}

static const char *shown(struct arena *arena, const json_val *v)
{
    AUTO_BUF text = { 0 };
    if (json_is_string(v))
        buf_addz(&text, STR_SHOWN(json_str(v)));
    else if (json_count(v))
        buf_addz(&text, json_is_array(v) ? "the list" : "the map");
    else
        json_write(v, &text);
    return arena_str(arena, buf_str(&text)).p;
}

/* What the user's last word on this was, if it differs from ours. Objects are merged. */
static struct str note_of_path(const struct annotate *a, const struct keys *path,
                               const json_val *ours)
{
    static const char *const flags[] = { "spec", "kubelet", "flags" };
    if (json_is_object(ours) || path->count < 2)
        return STR("");
    for (size_t i = a->user->items.count; i-- > 0;) {
        const struct user_config *config = &a->user->items.items[i];
        const json_val *theirs = walk(config->docs.items[0].root, path);
        if (!theirs || json_is_null(theirs))
            continue;
        if (json_equal(theirs, ours))
            return STR("");
        struct text_pos at = user_pos(config, doc_position(&config->docs.items[0], theirs));
        struct str place = boot_user_place(a->arena, a->boot, (struct text_pos){ at.line, 0 });
        if (path_is(path, flags, 3))
            return arena_strf(a->arena,
                              "after those of %.*s: of equal flags and labels the last "
                              "one counts",
                              STR_ARG(place));
        return arena_strf(a->arena, "overrides %s of %.*s", shown(a->arena, theirs),
                          STR_ARG(place));
    }
    return STR("");
}

static void annotate_members(struct annotate *a, const json_val *object, struct keys *path)
{
    if (path->count == KEYS_MAX)
        return;
    json_each_member(object, key, val) {
        path->items[path->count++] = json_key(key);
        turn(a, doc_position(a->doc, key).line, owner_of_path(a, path), note_of_path(a, path, val));
        annotate_members(a, val, path);
        path->count--;
    }
}

static struct boot_mime_part managed_part(struct arena *arena, const struct boot *boot,
                                          const struct user_configs *user,
                                          const json_val *maybe_spec, struct str managed)
{
    struct doc doc;
    struct docs lines;
    struct err err = { 0 };
    struct boot_text script = { 0 };
    AUTO_BUF yaml = { 0 };
    int rc = json_read(managed, &doc, &err);
    KV_ASSERT(rc == 0);
    yaml_write(doc.root, &yaml);
    doc_done(&doc);
    struct str text = arena_str(arena, buf_str(&yaml));
    rc = yaml_read(text, &lines, NULL, &err);
    KV_ASSERT(rc == 0);

    struct annotate a = { .arena = arena,
                          .boot = boot,
                          .user = user,
                          .maybe_spec = maybe_spec,
                          .doc = &lines.items[0],
                          .text = text,
                          .line = 1,
                          .owner = OWNER_KARVE,
                          .note = STR(""),
                          .script = &script };
    struct keys path = { .count = 0 };
    annotate_members(&a, lines.items[0].root, &path);
    boot_add_piece(arena, &script, str_sub(text, a.at, text.len), a.owner, a.note);
    docs_done(&lines);
    return boot_managed_part(arena, STR(NODECONFIG_MEDIA_TYPE), &script);
}

/* --- what ours cannot override --- */

/* Flags win over the configuration file, and these say what karve must know. */
static const char *const owned_flags[] = {
    "max-pods",        "pods-per-core", "register-with-taints", "kube-reserved",
    "system-reserved", "eviction-hard", "eviction-soft",
};
static const char *const counted_fields[] = {
    "podsPerCore", "kubeReserved", "systemReserved", "evictionHard", "evictionSoft",
};

static void warn_of_flags(struct arena *arena, const struct boot *boot,
                          const struct user_config *config, struct boot_text *out)
{
    const struct doc *doc = &config->docs.items[0];
    json_each_item(json_path(doc->root, "spec.kubelet.flags"), item) {
        struct str flag = json_str(item), name, value;
        while (flag.len && flag.p[0] == '-')
            flag = str_sub(flag, 1, flag.len);
        str_cut(flag, '=', &name, &value);
        for (size_t i = 0; i < KV_COUNT_OF(owned_flags); i++) {
            if (!str_eqz(str_trim(name), owned_flags[i]))
                continue;
            struct str place =
                boot_user_place(arena, boot, user_pos(config, doc_position(doc, item)));
            boot_warn(arena, out,
                      "%.*s: the kubelet's flag --%s wins over what karve sets, and karve does "
                      "not count on it: use spec.kubelet",
                      STR_ARG(place), owned_flags[i]);
        }
    }
}

/* The effective configuration against ours. */
static void warn_of_fields(struct arena *arena, struct str effective, struct str managed,
                           struct boot_text *out)
{
    struct doc x, y;
    struct err err = { 0 };
    int effective_rc = json_read(effective, &x, &err);
    KV_ASSERT(effective_rc == 0);
    int managed_rc = json_read(managed, &y, &err);
    KV_ASSERT(managed_rc == 0);
    const json_val *theirs = json_path(x.root, "spec.kubelet.config");
    const json_val *ours = json_path(y.root, "spec.kubelet.config");
    for (size_t i = 0; i < KV_COUNT_OF(counted_fields); i++) {
        struct str field = str_of(counted_fields[i]);
        const json_val *v = json_get(theirs, field);
        if (v && !json_equal(v, json_get(ours, field)))
            boot_warn(arena, out,
                      "kubelet.config.%s in the user data changes what the node offers to pods, "
                      "and karve does not count on it: use spec.kubelet",
                      counted_fields[i]);
    }
    doc_done(&x);
    doc_done(&y);
}

static void warn(struct arena *arena, const struct boot *boot, const struct user_configs *user,
                 struct str managed, struct boot_text *out)
{
    if (!boot->cluster->ca.len)
        boot_warn(arena, out,
                  "the cluster's certificate authority is not known: nodeadm does not "
                  "start a kubelet without it");
    if (!user->items.count)
        return;
    vec_each(&user->items, struct user_config, config)
        warn_of_flags(arena, boot, config, out);
    AUTO_BUF effective = { 0 };
    nodeconfig_merge(buf_str(&user->merged), managed, &effective);
    warn_of_fields(arena, buf_str(&effective), managed, out);
}

/* --- the family --- */

static int render_with(struct arena *arena, const struct boot *boot, const struct boot_mime *user,
                       struct user_configs *configs, struct boot_text *out, struct err *err)
{
    if (read_configs(arena, boot, user, configs, err) < 0)
        return -1;
    struct doc spec = { 0 };
    if (boot->kubelet && boot->kubelet->json.len && json_read(boot->kubelet->json, &spec, err) < 0)
        return err_wrap(err, "spec.kubelet");
    struct str managed = managed_config(arena, boot, spec.root);

    struct boot_mime all = { 0 };
    all.parts = arena_array(arena, struct boot_mime_part, (size_t)user->count + 1);
    for (uint32_t i = 0; i < user->count; i++)
        all.parts[all.count++] = user->parts[i];
    all.parts[all.count++] = managed_part(arena, boot, configs, spec.root, managed);
    warn(arena, boot, configs, managed, out);
    boot_mime_write(arena, &all, out);
    if (spec.root)
        doc_done(&spec);
    return 0;
}

static int render(struct arena *arena, const struct boot *boot, struct boot_text *out,
                  struct err *err)
{
    struct boot_mime user;
    struct user_configs configs = { 0 };
    if (boot_user_parts(arena, boot, true, &user, out, err) < 0)
        return -1;
    int rc = render_with(arena, boot, &user, &configs, out, err);
    user_configs_done(&configs);
    return rc;
}

static const struct family_device devices[] = { { "/dev/xvda", 20 } };

const struct family family_al2023 = {
    .id = AMI_FAMILY_AL2023,
    .name = "AL2023",
    .alias = "al2023",
    .devices = devices,
    .device_count = KV_COUNT_OF(devices),
    .ephemeral_device = "/dev/xvda",
    .ephemeral_default_gib = 20,
    .reserved_by_eni_pods = true,
    .eni_limited_pods = true,
    .pods_per_core = true,
    .any_kubelet_field = true,
    .do_not_sync_taints = true,
    .needs_cluster = true,
    .needs_service_cidr = true,
    .render = render,
};
