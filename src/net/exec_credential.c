/* What a plugin is told, how it is found, and what its answer means. */
#include "net/exec_credential.h"

#include "base/log_redact.h"
#include "codec/base64.h"
#include "codec/duration.h"
#include "codec/yaml.h"

#include <unistd.h>

#define INFO_NAME "KUBERNETES_EXEC_INFO"
#define GROUP "client.authentication.k8s.io"
#define SAID_SHOWN_BYTES 200 /* an error's text is not long */

/* --- is it well described? --- */

static int interactive_mode(const struct exec_plugin *plugin, enum exec_interactive *out,
                            struct err *err)
{
    static const struct {
        const char *name;
        enum exec_interactive mode;
    } modes[] = {
        { "Never", EXEC_NEVER },
        { "IfAvailable", EXEC_IF_AVAILABLE },
        { "Always", EXEC_ALWAYS },
    };
    for (size_t i = 0; i < KV_COUNT_OF(modes); i++) {
        if (str_eqz(plugin->interactive_mode, modes[i].name)) {
            *out = modes[i].mode;
            return 0;
        }
    }
    /* The default is older than the field; v1 came after it. */
    *out = EXEC_IF_AVAILABLE;
    if (plugin->interactive_mode.len == 0 && str_eqz(plugin->api_version, GROUP "/v1beta1"))
        return 0;
    if (plugin->interactive_mode.len == 0)
        return err_set(err, ERR_INVALID,
                       "interactiveMode is missing: Never, IfAvailable or Always");
    return err_set(err, ERR_INVALID, "interactiveMode: %s is not Never, IfAvailable or Always",
                   STR_SHOWN(plugin->interactive_mode));
}

int exec_plugin_check(const struct exec_plugin *plugin, struct err *err)
{
    enum exec_interactive mode;
    if (plugin->command.len == 0)
        return err_set(err, ERR_INVALID, "command is missing");
    if (plugin->api_version.len == 0)
        return err_set(err, ERR_INVALID, "apiVersion is missing: " GROUP "/v1");
    if (!str_eqz(plugin->api_version, GROUP "/v1") &&
        !str_eqz(plugin->api_version, GROUP "/v1beta1"))
        return err_set(err, ERR_INVALID, "apiVersion: %s is neither " GROUP "/v1 nor v1beta1%s",
                       STR_SHOWN(plugin->api_version),
                       str_eqz(plugin->api_version, GROUP "/v1alpha1") ? ": update the plugin"
                                                                       : "");
    for (uint32_t i = 0; i < plugin->env_count; i++) {
        struct str name = plugin->env[i].name;
        if (name.len == 0 || str_find(name, '=') >= 0)
            return err_set(err, ERR_INVALID, "env[%u]: %s is no name of a variable", i,
                           STR_SHOWN(name));
    }
    return interactive_mode(plugin, &mode, err);
}

/* --- what it is told --- */

static void set_unless_empty(struct json_build *b, json_mut *object, const char *key, struct str s)
{
    if (s.len > 0)
        json_set_str(b, object, key, s);
}

static json_mut *cluster_info(struct json_build *b, const struct exec_cluster *cluster)
{
    json_mut *info = json_new_object(b);
    json_set_str(b, info, "server", cluster->server);
    set_unless_empty(b, info, "tls-server-name", cluster->tls_server_name);
    if (cluster->insecure)
        json_set_bool(b, info, "insecure-skip-tls-verify", true);
    AUTO_BUF authority = { 0 };
    base64_encode(cluster->ca_pem, &authority);
    set_unless_empty(b, info, "certificate-authority-data", buf_str(&authority));
    set_unless_empty(b, info, "proxy-url", cluster->proxy);
    if (cluster->compression_off)
        json_set_bool(b, info, "disable-compression", true);

    struct doc config;
    if (cluster->config.len > 0 && json_read(cluster->config, &config, NULL) == 0) {
        json_set(b, info, STR("config"), json_copy(b, config.root));
        doc_done(&config);
    } else {
        json_set(b, info, STR("config"), json_new_null(b));
    }
    return info;
}

void exec_credential_info(const struct exec_plugin *plugin, const struct exec_cluster *cluster,
                          bool interactive, struct buf *out)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *info = json_new_object(&b), *spec = json_new_object(&b);
    json_set_str(&b, info, "kind", STR("ExecCredential"));
    json_set_str(&b, info, "apiVersion", plugin->api_version);
    if (plugin->provide_cluster_info)
        json_set(&b, spec, STR("cluster"), cluster_info(&b, cluster));
    json_set_bool(&b, spec, "interactive", interactive);
    json_set(&b, info, STR("spec"), spec);
    json_write_mut(info, out);
}

/* --- what it answers --- */

static int answer_text(const json_val *status, const char *name, struct arena *arena,
                       struct str *out, struct err *err)
{
    const json_val *v = json_get(status, str_of(name));
    if (!v || json_is_null(v)) {
        *out = STR_NONE;
        return 0;
    }
    if (!json_is_string(v))
        return err_set(err, ERR_INVALID, "its status.%s is not a string", name);
    *out = arena_str(arena, json_str(v));
    return 0;
}

static int answer_expiry(const json_val *status, int64_t *out, struct err *err)
{
    const json_val *v = json_get(status, STR("expirationTimestamp"));
    *out = INT64_MAX;
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_string(v) || time_parse(json_str(v), out, NULL) < 0)
        return err_set(err, ERR_INVALID,
                       "its status.expirationTimestamp is no time as in 2026-01-02T15:04:05Z");
    return 0;
}

static bool is_header_text(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f)
            return false;
    }
    return true;
}

static int check_answer(const struct exec_credential *c, struct err *err)
{
    if (c->token.len == 0 && c->cert_pem.len == 0 && c->key_pem.len == 0)
        return err_set(err, ERR_INVALID, "gave neither a token nor a certificate and key");
    if ((c->cert_pem.len == 0) != (c->key_pem.len == 0))
        return err_set(err, ERR_INVALID, "gave a certificate or a key, but not both");
    if (!is_header_text(c->token))
        return err_set(err, ERR_INVALID, "gave a token with characters that no token has");
    return 0;
}

static int decode_answer(const json_val *answer, struct str api_version, struct arena *arena,
                         struct exec_credential *out, struct err *err)
{
    struct str kind = json_str(json_get(answer, STR("kind")));
    struct str version = json_str(json_get(answer, STR("apiVersion")));
    if (!str_eqz(kind, "ExecCredential"))
        return err_set(err, ERR_INVALID, "did not print an ExecCredential (no such kind)");
    if (!str_eq(version, api_version))
        return err_set(err, ERR_INVALID, "answered in apiVersion %s, the kubeconfig asks for %s",
                       STR_SHOWN(version), STR_SHOWN(api_version));
    const json_val *status = json_get(answer, STR("status"));
    if (!json_is_object(status))
        return err_set(err, ERR_INVALID, "printed an ExecCredential without a status");

    struct exec_credential c;
    if (answer_text(status, "token", arena, &c.token, err) < 0 ||
        answer_text(status, "clientCertificateData", arena, &c.cert_pem, err) < 0 ||
        answer_text(status, "clientKeyData", arena, &c.key_pem, err) < 0 ||
        answer_expiry(status, &c.expires_us, err) < 0 || check_answer(&c, err) < 0)
        return -1;
    *out = c;
    return 0;
}

/* What a parser finds wrong may quote what it read, so its words stay here. */
int exec_credential_decode(struct str output, struct str api_version, struct arena *arena,
                           struct exec_credential *out, struct err *err)
{
    if (str_trim(output).len == 0)
        return err_set(err, ERR_INVALID, "printed nothing");
    struct docs docs;
    struct text_pos at = { 0 };
    if (yaml_read(output, &docs, &at, NULL) < 0)
        return err_set(err, ERR_INVALID,
                       "did not print an ExecCredential: %zu bytes that are not JSON at line %u, "
                       "column %u",
                       output.len, at.line, at.col);
    int rc = docs.count == 1
                 ? decode_answer(docs.items[0].root, api_version, arena, out, err)
                 : err_set(err, ERR_INVALID, "printed %zu documents, not one", docs.count);
    docs_done(&docs);
    return rc;
}

/* --- finding and running it --- */

/* As Go does it, folders that are relative to where we happen to be are passed over: what lies there
 * is not what was meant. */
static int find_command(struct str command, struct buf *path, struct err *err)
{
    if (str_find(command, '/') >= 0) {
        buf_add(path, command);
        return 0;
    }
    const char *folders = getenv("PATH");
    struct str rest = str_of(folders ? folders : "/usr/local/bin:/usr/bin:/bin"), folder;
    for (bool more = true; more;) {
        more = str_cut(rest, ':', &folder, &rest);
        if (folder.len == 0 || folder.p[0] != '/')
            continue;
        buf_clear(path);
        buf_addf(path, "%.*s/%.*s", STR_ARG(folder), STR_ARG(command));
        if (access(path->p, X_OK) == 0)
            return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "not found in PATH");
}

static bool names_variable(const char *variable, struct str name)
{
    return strncmp(variable, name.p, name.len) == 0 && variable[name.len] == '=';
}

/* Of equal names most programs take the first: only the last is passed on. */
static void put_variable(char **envp, size_t *count, char *variable)
{
    const char *equals = strchr(variable, '=');
    struct str name = { variable, equals ? (size_t)(equals - variable) : strlen(variable) };
    for (size_t i = 0; i < *count; i++) {
        if (names_variable(envp[i], name)) {
            envp[i] = variable;
            return;
        }
    }
    envp[(*count)++] = variable;
}

static char **make_environment(const struct exec_plugin *plugin, struct str info,
                               struct arena *arena)
{
    size_t ours = 0, count = 0;
    while (environ && environ[ours])
        ours++;
    char **envp = arena_array(arena, char *, ours + plugin->env_count + 2);
    for (size_t i = 0; i < ours; i++)
        envp[count++] = environ[i];
    for (uint32_t i = 0; i < plugin->env_count; i++) {
        const struct exec_env *e = &plugin->env[i];
        struct str line = arena_strf(arena, "%.*s=%.*s", STR_ARG(e->name), STR_ARG(e->value));
        put_variable(envp, &count, (char *)line.p);
    }
    struct str line = arena_strf(arena, INFO_NAME "=%.*s", STR_ARG(info));
    put_variable(envp, &count, (char *)line.p);
    return envp;
}

static char **make_arguments(const struct exec_plugin *plugin, struct arena *arena)
{
    char **argv = arena_array(arena, char *, (size_t)plugin->arg_count + 2);
    argv[0] = (char *)arena_str(arena, plugin->command).p;
    for (uint32_t i = 0; i < plugin->arg_count; i++)
        argv[i + 1] = (char *)arena_str(arena, plugin->args[i]).p;
    return argv;
}

/* The end of what it said, masked before it is cut. */
static void explain(struct str said, struct err *err)
{
    AUTO_BUF masked = { 0 };
    AUTO_BUF quoted = { 0 };
    redact_text(str_trim(said), said.len, &masked);
    struct str end = buf_str(&masked);
    if (end.len == 0)
        return;
    if (end.len > SAID_SHOWN_BYTES)
        end = str_sub(end, end.len - SAID_SHOWN_BYTES, SAID_SHOWN_BYTES);
    while (end.len > 0 && ((unsigned char)end.p[0] & 0xc0) == 0x80)
        end = str_sub(end, 1, end.len); /* the cut went through a character */
    buf_add_quoted(&quoted, end);
    struct err before = *err;
    err_set(err, before.kind, "%s; it said %s", before.text, quoted.p);
}

static int is_interactive(const struct exec_plugin *plugin, bool *out, struct err *err)
{
    enum exec_interactive mode;
    if (interactive_mode(plugin, &mode, err) < 0)
        return -1;
    *out = mode != EXEC_NEVER && isatty(STDIN_FILENO);
    if (mode == EXEC_ALWAYS && !*out)
        return err_set(err, ERR_INVALID,
                       "wants to ask a person (interactiveMode: Always), but standard input is "
                       "not a terminal");
    return 0;
}

static int run_plugin(const struct exec_plugin *plugin, const struct exec_cluster *cluster,
                      const struct clock *clock, struct buf *output, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF path = { 0 };
    AUTO_BUF info = { 0 };
    AUTO_BUF said = { 0 };
    bool interactive;
    if (is_interactive(plugin, &interactive, err) < 0 ||
        find_command(plugin->command, &path, err) < 0)
        return -1;
    exec_credential_info(plugin, cluster, interactive, &info);
    struct exec_run run = {
        .path = path.p,
        .argv = make_arguments(plugin, &arena),
        .envp = make_environment(plugin, buf_str(&info), &arena),
        .interactive = interactive,
        .timeout_ns = EXEC_TIMEOUT_NS,
        .output_bytes_max = EXEC_OUTPUT_BYTES_MAX,
        .clock = clock,
    };
    if (exec_run(&run, output, &said, err) == 0)
        return 0;
    explain(buf_str(&said), err);
    return -1;
}

int exec_credential_get(const struct exec_plugin *plugin, const struct exec_cluster *cluster,
                        const struct clock *clock, struct arena *arena, struct exec_credential *out,
                        struct err *err)
{
    struct err trouble = { 0 };
    AUTO_BUF output = { 0 };
    int rc = run_plugin(plugin, cluster, clock, &output, &trouble);
    if (rc == 0)
        rc = exec_credential_decode(buf_str(&output), plugin->api_version, arena, out, &trouble);
    if (rc == 0)
        return 0;
    AUTO_BUF hint = { 0 };
    if (trouble.kind == ERR_NOT_FOUND) {
        trouble.kind = ERR_INVALID;
        if (plugin->install_hint.len > 0) {
            buf_addz(&hint, ". ");
            size_t len = str_utf8_cut(plugin->install_hint, SAID_SHOWN_BYTES);
            buf_add_quoted(&hint, str_sub(plugin->install_hint, 0, len));
        }
    }
    return err_set(err, trouble.kind, "exec plugin %s %s%s", STR_SHOWN(plugin->command),
                   trouble.text, hint.p ? hint.p : "");
}
