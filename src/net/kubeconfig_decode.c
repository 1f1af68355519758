/* The text of a kubeconfig into entries. What is not asked for here is ignored, as client-go does;
 * what is asked for must be of the right type, in every entry, also in those that nobody chooses.
 * Whether it makes sense is looked at when it is chosen.
 *
 * A value of the file never becomes part of a message: half of them are secrets, and a mistake (a
 * password with an asterisk in front, say) makes the other half one.
 */
#include "net/kubeconfig_inner.h"

#include "codec/base64.h"
#include "codec/yaml.h"

#define EXEC_EXTENSION "client.authentication.k8s.io/exec"

struct reader {
    const struct doc *doc;
    struct kube_entries *entries;
    struct arena *arena; /* of the entries */
    const char *file;
    struct str folder;
    const char *what; /* "cluster", "user", "context"; NULL: outside of them */
    struct str name;
    struct err *err;
};

/* FILE:LINE: user "x": field: message */
static KV_PRINTF(4, 5) int refuse(struct reader *r, const json_val *v, const char *field,
                                  const char *fmt, ...)
{
    AUTO_BUF text = { 0 };
    buf_addf(&text, "%s:%u: ", r->file, doc_position(r->doc, v).line);
    if (r->what)
        buf_addf(&text, "%s %s: ", r->what, STR_SHOWN(r->name));
    if (field)
        buf_addf(&text, "%s: ", field);
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&text, fmt, args);
    va_end(args);
    return err_set(r->err, ERR_INVALID, "%s", text.p);
}

/* --- fields --- */

/* The member of that name; NULL if it is absent or null, which are the same. */
static const json_val *member(const json_val *object, const char *name)
{
    const json_val *v = json_get(object, str_of(name));
    return json_is_null(v) ? NULL : v;
}

static int want(struct reader *r, const json_val *v, const char *field, bool right,
                const char *type)
{
    if (right)
        return 0;
    const char *hint = strcmp(type, "string") == 0 && (json_is_number(v) || json_is_bool(v))
                           ? ": put it in quotes"
                           : "";
    return refuse(r, v, field, "expected %s %s, found %s %s%s",
                  strchr("aeio", type[0]) ? "an" : "a", type,
                  strchr("aeio", json_type_name(v)[0]) ? "an" : "a", json_type_name(v), hint);
}

enum field_type {
    TEXT,
    FLAG,
    PATH,  /* relative to the file's folder */
    BYTES, /* in base64, perhaps on several lines */
};

struct field {
    const char *name;
    enum field_type type;
    size_t offset; /* of a struct str, or of the bool of a FLAG */
};

static struct str read_path(const struct reader *r, struct str path)
{
    if (path.len == 0 || path.p[0] == '/')
        return arena_str(r->arena, path);
    return arena_strf(r->arena, "%.*s/%.*s", STR_ARG(r->folder), STR_ARG(path));
}

static int read_bytes(struct reader *r, const json_val *v, const char *field, struct str *out)
{
    AUTO_BUF text = { 0 };
    AUTO_BUF bytes = { 0 };
    struct str lines = json_str(v);
    for (size_t i = 0; i < lines.len; i++) {
        if (lines.p[i] != '\n' && lines.p[i] != '\r')
            buf_addc(&text, lines.p[i]);
    }
    struct err why = { 0 };
    if (base64_decode(buf_str(&text), &bytes, &why) < 0)
        return refuse(r, v, field, "%s", why.text);
    *out = arena_str(r->arena, buf_str(&bytes));
    return 0;
}

static int read_field(struct reader *r, const json_val *v, const struct field *f, void *out)
{
    if (f->type == FLAG) {
        if (want(r, v, f->name, json_is_bool(v), "boolean") < 0)
            return -1;
        *(bool *)out = json_bool(v);
        return 0;
    }
    if (want(r, v, f->name, json_is_string(v), "string") < 0)
        return -1;
    if (f->type == BYTES)
        return read_bytes(r, v, f->name, out);
    *(struct str *)out =
        f->type == PATH ? read_path(r, json_str(v)) : arena_str(r->arena, json_str(v));
    return 0;
}

static int read_fields(struct reader *r, const json_val *object, const struct field *fields,
                       size_t count, void *out)
{
    for (size_t i = 0; i < count; i++) {
        const json_val *v = member(object, fields[i].name);
        if (v && read_field(r, v, &fields[i], (char *)out + fields[i].offset) < 0)
            return -1;
    }
    return 0;
}

/* A list, or nothing. */
static int count_items(struct reader *r, const json_val *list, const char *field, uint32_t *count)
{
    *count = (uint32_t)json_count(list);
    if (!list)
        return 0;
    if (want(r, list, field, json_is_array(list), "array") < 0)
        return -1;
    if (json_count(list) > KUBECONFIG_ENTRIES_MAX)
        return refuse(r, list, field, "has %zu entries, at most %d are read", json_count(list),
                      KUBECONFIG_ENTRIES_MAX);
    return 0;
}

/* --- a cluster --- */

static int read_extensions(struct reader *r, const json_val *cluster, struct kube_cluster *out)
{
    const json_val *list = member(cluster, "extensions");
    uint32_t count;
    if (count_items(r, list, "extensions", &count) < 0)
        return -1;
    json_each_item(list, item) {
        const json_val *extension = member(item, "extension");
        if (!extension || !str_eqz(json_str(member(item, "name")), EXEC_EXTENSION))
            continue;
        AUTO_BUF text = { 0 };
        json_write(extension, &text);
        out->exec_config = arena_str(r->arena, buf_str(&text));
    }
    return 0;
}

static int read_cluster(struct reader *r, const json_val *v, struct kube_entry *entry)
{
    struct kube_cluster *out = (struct kube_cluster *)entry;
    static const struct field fields[] = {
        { "server", TEXT, offsetof(struct kube_cluster, server) },
        { "tls-server-name", TEXT, offsetof(struct kube_cluster, tls_server_name) },
        { "insecure-skip-tls-verify", FLAG, offsetof(struct kube_cluster, insecure) },
        { "certificate-authority", PATH, offsetof(struct kube_cluster, ca_path) },
        { "certificate-authority-data", BYTES, offsetof(struct kube_cluster, ca_data) },
        { "proxy-url", TEXT, offsetof(struct kube_cluster, proxy) },
        { "disable-compression", FLAG, offsetof(struct kube_cluster, compression_off) },
    };
    if (read_fields(r, v, fields, KV_COUNT_OF(fields), out) < 0)
        return -1;
    return read_extensions(r, v, out);
}

/* --- a user --- */

static int read_texts(struct reader *r, const json_val *list, const char *field,
                      const struct str **out, uint32_t *count)
{
    if (count_items(r, list, field, count) < 0)
        return -1;
    struct str *texts = arena_array(r->arena, struct str, *count), *at = texts;
    json_each_item(list, item) {
        if (read_field(r, item, &(struct field){ field, TEXT, 0 }, at++) < 0)
            return -1;
    }
    *out = texts;
    return 0;
}

static int read_variables(struct reader *r, const json_val *exec, struct exec_plugin *out)
{
    static const struct field fields[] = {
        { "name", TEXT, offsetof(struct exec_env, name) },
        { "value", TEXT, offsetof(struct exec_env, value) },
    };
    const json_val *list = member(exec, "env");
    if (count_items(r, list, "env", &out->env_count) < 0)
        return -1;
    struct exec_env *env = arena_array(r->arena, struct exec_env, out->env_count), *at = env;
    json_each_item(list, item) {
        if (want(r, item, "env", json_is_object(item), "object") < 0 ||
            read_fields(r, item, fields, KV_COUNT_OF(fields), at++) < 0)
            return -1;
    }
    out->env = env;
    return 0;
}

static int read_exec(struct reader *r, const json_val *user, struct kube_user *out)
{
    static const struct field fields[] = {
        { "command", TEXT, offsetof(struct exec_plugin, command) },
        { "apiVersion", TEXT, offsetof(struct exec_plugin, api_version) },
        { "installHint", TEXT, offsetof(struct exec_plugin, install_hint) },
        { "interactiveMode", TEXT, offsetof(struct exec_plugin, interactive_mode) },
        { "provideClusterInfo", FLAG, offsetof(struct exec_plugin, provide_cluster_info) },
    };
    const json_val *v = member(user, "exec");
    if (!v)
        return 0;
    struct exec_plugin *plugin = arena_new(r->arena, struct exec_plugin);
    if (want(r, v, "exec", json_is_object(v), "object") < 0 ||
        read_fields(r, v, fields, KV_COUNT_OF(fields), plugin) < 0 ||
        read_texts(r, member(v, "args"), "args", &plugin->args, &plugin->arg_count) < 0 ||
        read_variables(r, v, plugin) < 0)
        return -1;
    if (str_find(plugin->command, '/') >= 0)
        plugin->command = read_path(r, plugin->command);
    out->maybe_exec = plugin;
    return 0;
}

typedef VEC(struct http_header) header_vec;

/* What a header's name cannot hold is written as in a URL; the API server reads it back. */
static struct str extra_name(struct arena *arena, struct str key)
{
    AUTO_BUF name = { 0 };
    buf_addz(&name, "Impersonate-Extra-");
    for (size_t i = 0; i < key.len; i++) {
        char c = key.p[i];
        if (char_is_alnum(c) || (c != '\0' && strchr("!#$&'*+-.^_`|~", c)))
            buf_addc(&name, c);
        else
            buf_addf(&name, "%%%02X", (unsigned)(unsigned char)c);
    }
    return arena_str(arena, buf_str(&name));
}

static int read_extras(struct reader *r, const json_val *user, header_vec *headers)
{
    const json_val *extra = member(user, "as-user-extra");
    if (extra && want(r, extra, "as-user-extra", json_is_object(extra), "object") < 0)
        return -1;
    json_each_member(extra, key, list) {
        const struct str *values;
        uint32_t count;
        if (read_texts(r, json_is_null(list) ? NULL : list, "as-user-extra", &values, &count) < 0)
            return -1;
        for (uint32_t i = 0; i < count; i++)
            vec_push(headers,
                     (struct http_header){ extra_name(r->arena, json_key(key)), values[i] });
    }
    return 0;
}

static int collect_impersonation(struct reader *r, const json_val *user, struct kube_user *out,
                                 header_vec *headers)
{
    struct str uid = STR_NONE;
    const struct str *groups;
    uint32_t group_count;
    const struct field uid_field = { "as-uid", TEXT, 0 };
    if (read_fields(r, user, &uid_field, 1, &uid) < 0 ||
        read_texts(r, member(user, "as-groups"), "as-groups", &groups, &group_count) < 0)
        return -1;
    if (out->as.len > 0)
        vec_push(headers, (struct http_header){ STR("Impersonate-User"), out->as });
    if (uid.len > 0)
        vec_push(headers, (struct http_header){ STR("Impersonate-Uid"), uid });
    for (uint32_t i = 0; i < group_count; i++)
        vec_push(headers, (struct http_header){ STR("Impersonate-Group"), groups[i] });
    return read_extras(r, user, headers);
}

static int read_impersonation(struct reader *r, const json_val *user, struct kube_user *out)
{
    header_vec headers = { 0 };
    int rc = collect_impersonation(r, user, out, &headers);
    if (rc == 0 && headers.count > 0) {
        struct http_header *kept = arena_array(r->arena, struct http_header, headers.count);
        memcpy(kept, headers.items, headers.count * sizeof *kept);
        out->impersonate = kept;
        out->impersonate_count = (uint32_t)headers.count;
    }
    vec_done(&headers);
    return rc;
}

static int read_user(struct reader *r, const json_val *v, struct kube_entry *entry)
{
    struct kube_user *out = (struct kube_user *)entry;
    static const struct field fields[] = {
        { "token", TEXT, offsetof(struct kube_user, token) },
        { "tokenFile", PATH, offsetof(struct kube_user, token_path) },
        { "username", TEXT, offsetof(struct kube_user, username) },
        { "password", TEXT, offsetof(struct kube_user, password) },
        { "client-certificate", PATH, offsetof(struct kube_user, cert_path) },
        { "client-certificate-data", BYTES, offsetof(struct kube_user, cert_data) },
        { "client-key", PATH, offsetof(struct kube_user, key_path) },
        { "client-key-data", BYTES, offsetof(struct kube_user, key_data) },
        { "as", TEXT, offsetof(struct kube_user, as) },
    };
    const json_val *provider = member(v, "auth-provider");
    if (provider) {
        struct str name = json_str(member(provider, "name"));
        out->auth_provider = name.p ? arena_str(r->arena, name) : STR("");
    }
    if (read_fields(r, v, fields, KV_COUNT_OF(fields), out) < 0 ||
        read_impersonation(r, v, out) < 0)
        return -1;
    return read_exec(r, v, out);
}

bool kube_user_has_secrets(const struct kube_user *user)
{
    return user->token.len > 0 || user->password.len > 0 || user->key_data.len > 0;
}

/* --- a context --- */

static int read_context(struct reader *r, const json_val *v, struct kube_entry *entry)
{
    struct kube_context *out = (struct kube_context *)entry;
    static const struct field fields[] = {
        { "cluster", TEXT, offsetof(struct kube_context, cluster) },
        { "user", TEXT, offsetof(struct kube_context, user) },
        { "namespace", TEXT, offsetof(struct kube_context, namespace_) },
    };
    return read_fields(r, v, fields, KV_COUNT_OF(fields), out);
}

/* --- the lists --- */

struct list_type {
    const char *plural, *what; /* "clusters" of "cluster" */
    size_t size;
    int (*read)(struct reader *r, const json_val *v, struct kube_entry *out);
};

struct kube_entry *kube_find(const kube_list *list, struct str name)
{
    for (size_t i = 0; i < list->count; i++) {
        if (str_eq(list->items[i]->name, name))
            return list->items[i];
    }
    return NULL;
}

static int read_entry(struct reader *r, const json_val *item, const struct list_type *type,
                      struct kube_entry *out)
{
    static const struct field name = { "name", TEXT, offsetof(struct kube_entry, name) };
    out->file = r->file;
    out->line = doc_position(r->doc, item).line;
    if (want(r, item, type->plural, json_is_object(item), "object") < 0 ||
        read_fields(r, item, &name, 1, out) < 0)
        return -1;
    r->what = type->what;
    r->name = out->name;
    const json_val *body = member(item, type->what);
    if (body && want(r, body, NULL, json_is_object(body), "object") < 0)
        return -1;
    return type->read(r, body, out);
}

/* Nobody can ask for one without a name. Twice in this file is a mistake; an earlier file wins. */
static int keep_entry(struct reader *r, const json_val *item, struct kube_entry *entry,
                      kube_list *into)
{
    const struct kube_entry *found = kube_find(into, entry->name);
    if (found && found->file == r->file)
        return refuse(r, item, NULL, "is there twice, first on line %u", found->line);
    if (found || entry->name.len == 0)
        return 0;
    if (into->count == KUBECONFIG_ENTRIES_MAX)
        return refuse(r, item, NULL, "is one too many: all files together have at most %d",
                      KUBECONFIG_ENTRIES_MAX);
    vec_push(into, entry);
    return 0;
}

static int read_list(struct reader *r, const json_val *root, struct list_type type, kube_list *into)
{
    const json_val *list = member(root, type.plural);
    uint32_t count;
    if (count_items(r, list, type.plural, &count) < 0)
        return -1;
    json_each_item(list, item) {
        struct kube_entry *entry = arena_alloc(r->arena, type.size);
        if (read_entry(r, item, &type, entry) < 0 || keep_entry(r, item, entry, into) < 0)
            return -1;
        r->what = NULL;
    }
    return 0;
}

static int read_root(struct reader *r, const json_val *root)
{
    static const struct list_type clusters = { "clusters", "cluster", sizeof(struct kube_cluster),
                                               read_cluster };
    static const struct list_type users = { "users", "user", sizeof(struct kube_user), read_user };
    static const struct list_type contexts = { "contexts", "context", sizeof(struct kube_context),
                                               read_context };
    if (want(r, root, NULL, json_is_object(root), "object") < 0)
        return -1;
    const json_val *kind = member(root, "kind"), *version = member(root, "apiVersion");
    if (kind && !str_eqz(json_str(kind), "Config"))
        return refuse(r, kind, "kind", "is not Config: this is no kubeconfig");
    if (version && !str_eqz(json_str(version), "v1"))
        return refuse(r, version, "apiVersion", "is not v1");

    struct str current = STR_NONE;
    const struct field field = { "current-context", TEXT, 0 };
    if (read_fields(r, root, &field, 1, &current) < 0 ||
        read_list(r, root, clusters, &r->entries->clusters) < 0 ||
        read_list(r, root, users, &r->entries->users) < 0 ||
        read_list(r, root, contexts, &r->entries->contexts) < 0)
        return -1;
    if (r->entries->current_context.len == 0)
        r->entries->current_context = current;
    return 0;
}

/* A parser may quote a tag, an alias or a number: each can be an unquoted secret. A key is none. */
static const char *parser_words(const char *text)
{
    bool quotes = strchr(text, '"') || strncmp(text, "the number ", 11) == 0;
    return quotes && strncmp(text, "duplicate key ", 14) != 0
               ? "a value here is not what it looks like to YAML: put it in quotes"
               : text;
}

int kubeconfig_decode(struct str text, const char *file, struct str folder,
                      struct kube_entries *entries, struct err *err)
{
    struct docs docs;
    struct text_pos at = { 0 };
    struct err why = { 0 };
    if (yaml_read(text, &docs, &at, &why) < 0)
        return err_set(err, ERR_INVALID, "%s:%u: %s", file, at.line, parser_words(why.text));
    struct reader r = {
        .entries = entries,
        .arena = &entries->arena,
        .file = arena_str(&entries->arena, str_of(file)).p,
        .folder = folder,
        .err = err,
    };
    vec_push(&entries->files, r.file);
    int rc = 0;
    if (docs.count > 1) {
        rc = err_set(err, ERR_INVALID, "%s: has %zu documents, a kubeconfig is one", file,
                     docs.count);
    } else if (docs.count == 1) {
        r.doc = &docs.items[0];
        rc = read_root(&r, r.doc->root);
    }
    docs_done(&docs);
    return rc;
}

void kube_entries_done(struct kube_entries *entries)
{
    vec_done(&entries->clusters);
    vec_done(&entries->users);
    vec_done(&entries->contexts);
    vec_done(&entries->files);
    arena_done(&entries->arena);
}
