/* From what the files say to one way in: the context's cluster and user, checked as client-go checks
 * them. Only what is chosen is checked; a broken neighbour hurts nobody.
 */
#include "net/kubeconfig_inner.h"

#include "base/file.h"
#include "codec/base64.h"

#include <strings.h>
#include <unistd.h>

#define NAMES_SHOWN 12
#define NAMESPACE_BYTES_MAX 63 /* a DNS label */

/* FILE:LINE: cluster "x" before the message in err */
static int wrap_entry(struct err *err, const char *what, const struct kube_entry *entry)
{
    return err_wrap(err, "%s:%u: %s %s", entry->file, entry->line, what, STR_SHOWN(entry->name));
}

static int refuse(struct err *err, const char *what, const struct kube_entry *entry,
                  const char *message)
{
    err_set(err, ERR_INVALID, "%s", message);
    return wrap_entry(err, what, entry);
}

/* --- the server --- */

static bool is_url_text(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.p[i] <= ' ' || (unsigned char)s.p[i] >= 0x7f ||
            strchr("\"<>\\^`{|}", s.p[i]))
            return false;
    }
    return true;
}

/* Whether `s` starts with the scheme and "://", which are then cut off. */
static bool cut_scheme(struct str *s, const char *scheme)
{
    size_t len = strlen(scheme);
    if (s->len < len + 3 || strncasecmp(s->p, scheme, len) != 0 ||
        memcmp(s->p + len, "://", 3) != 0)
        return false;
    *s = str_sub(*s, len + 3, s->len);
    return true;
}

static size_t host_bytes(struct str rest)
{
    ptrdiff_t slash = str_find(rest, '/');
    return slash < 0 ? rest.len : (size_t)slash;
}

int kube_server_url(struct str server, bool tls, struct arena *arena, const char **out,
                    struct err *err)
{
    struct str rest = server, unused;
    if (!is_url_text(server))
        return err_set(err, ERR_INVALID, "server: a character that no URL has");
    str_cut(rest, '?', &rest, &unused);
    str_cut(rest, '#', &rest, &unused);
    const char *scheme = tls ? "https" : "http";
    if (cut_scheme(&rest, "https"))
        scheme = "https";
    else if (cut_scheme(&rest, "http"))
        scheme = "http";
    else if (memmem(rest.p, rest.len, "://", 3))
        return err_set(err, ERR_INVALID, "server: is neither https:// nor http://");
    else if (host_bytes(rest) + 1 < rest.len)
        return err_set(err, ERR_INVALID, "server: neither a URL nor a host and port");
    struct str host = str_sub(rest, 0, host_bytes(rest));
    if (host.len == 0)
        return err_set(err, ERR_INVALID, "server: has no host");
    if (str_find(host, '@') >= 0) /* it would be in every message that names the server */
        return err_set(err, ERR_INVALID, "server: name and password belong to the user");
    while (str_ends(rest, STR("/")))
        rest.len--;
    *out = arena_strf(arena, "%s://%.*s", scheme, STR_ARG(rest)).p;
    return 0;
}

static int check_proxy(struct str proxy, struct err *err)
{
    struct str rest = proxy;
    if (proxy.len == 0)
        return 0;
    if (!is_url_text(proxy))
        return err_set(err, ERR_INVALID, "proxy-url: a character that no URL has");
    if (!cut_scheme(&rest, "http") && !cut_scheme(&rest, "https") && !cut_scheme(&rest, "socks5"))
        return err_set(err, ERR_INVALID, "proxy-url: is not http://, https:// or socks5://");
    if (host_bytes(rest) == 0)
        return err_set(err, ERR_INVALID, "proxy-url: has no host");
    return 0;
}

/* client-go lets the proxy look up the server's name; that is what libcurl calls socks5h. */
static const char *choose_proxy(struct kubeconfig *k, struct str proxy)
{
    struct str rest = proxy;
    if (proxy.len == 0)
        return NULL;
    return cut_scheme(&rest, "socks5") ? arena_strf(&k->arena, "socks5h://%.*s", STR_ARG(rest)).p
                                       : arena_str(&k->arena, proxy).p;
}

/* What is written in the file itself wins over a file that it names. */
static void set_text(struct kubeconfig *k, struct kube_text *out, struct str path, struct str data,
                     const char *field, const struct kube_entry *entry)
{
    if (data.len > 0) {
        buf_add(&out->text, data);
        if (path.len > 0)
            log_warn(k->log, "both a file and its data are given: the file is ignored",
                     LOG_Z("field", field), LOG_STR("of", entry->name), LOG_Z("file", entry->file));
    } else if (path.len > 0) {
        out->path = arena_str(&k->arena, path).p;
    }
}

static int choose_cluster(struct kubeconfig *k, const struct kubeconfig_options *options,
                          const struct kube_cluster *c, bool client_cert, struct err *err)
{
    const struct kube_entry *entry = &c->entry;
    bool has_authority = c->ca_path.len > 0 || c->ca_data.len > 0;
    struct str server = options->server ? str_of(options->server) : c->server;
    if (server.len == 0)
        return refuse(err, "cluster", entry, "has no server");
    if (c->insecure && has_authority)
        return refuse(err, "cluster", entry,
                      "has insecure-skip-tls-verify and a certificate authority: one of them goes");
    if (kube_server_url(server, has_authority || client_cert || c->insecure, &k->arena, &k->server,
                        err) < 0 ||
        check_proxy(c->proxy, err) < 0)
        return wrap_entry(err, "cluster", entry);

    set_text(k, &k->authority, c->ca_path, c->ca_data, "certificate-authority", entry);
    k->proxy = choose_proxy(k, c->proxy);
    k->proxy_url = c->proxy;
    k->compression_off = c->compression_off;
    k->exec_config = c->exec_config;
    k->tls.insecure = c->insecure;
    if (!options->server) /* the name was of the other one */
        k->tls.server_name = c->tls_server_name;
    if (c->insecure)
        log_warn(
            k->log,
            "INSECURE: the API server's certificate is not verified, so anybody on the way can "
            "read and change everything (insecure-skip-tls-verify)",
            LOG_STR("cluster", entry->name), LOG_Z("file", entry->file),
            LOG_INT("line", entry->line));
    return 0;
}

/* --- the user --- */

bool kube_header_can_hold(struct str value)
{
    for (size_t i = 0; i < value.len; i++) {
        if (((unsigned char)value.p[i] < ' ' && value.p[i] != '\t') || value.p[i] == 0x7f)
            return false;
    }
    return true;
}

static bool headers_can_hold(const struct kube_user *u)
{
    bool right = kube_header_can_hold(u->token);
    for (uint32_t i = 0; i < u->impersonate_count; i++)
        right &= kube_header_can_hold(u->impersonate[i].value);
    return right;
}

static const char *user_mistake(const struct kube_user *u)
{
    bool cert = u->cert_path.len > 0 || u->cert_data.len > 0;
    bool basic = u->username.len > 0 || u->password.len > 0;
    if (u->auth_provider.p)
        return "auth-provider is gone from Kubernetes (1.26): use an exec plugin instead";
    if (u->token.len > 0 && basic)
        return "has a token and a password: one of them goes";
    if (cert && u->key_path.len == 0 && u->key_data.len == 0)
        return "has a client-certificate, but no client-key or client-key-data";
    if (u->impersonate_count > 0 && u->as.len == 0)
        return "has as-uid, as-groups or as-user-extra without as: nobody to impersonate";
    if (!headers_can_hold(u))
        return "has a line break or control character in its token, or in who it impersonates";
    return NULL;
}

static void choose_basic(struct kubeconfig *k, const struct kube_user *u)
{
    AUTO_BUF pair = { 0 };
    AUTO_BUF value = { 0 };
    buf_addf(&pair, "%.*s:%.*s", STR_ARG(u->username), STR_ARG(u->password));
    buf_addz(&value, "Basic ");
    base64_encode(buf_str(&pair), &value);
    k->basic = arena_str(&k->arena, buf_str(&value));
}

static int choose_user(struct kubeconfig *k, const struct kube_user *u, struct err *err)
{
    const char *mistake = user_mistake(u);
    if (mistake)
        return refuse(err, "user", &u->entry, mistake);
    if (u->maybe_exec && exec_plugin_check(u->maybe_exec, err) < 0) {
        err_wrap(err, "exec");
        return wrap_entry(err, "user", &u->entry);
    }

    bool cert = u->cert_path.len > 0 || u->cert_data.len > 0;
    bool token = u->token.len > 0 || u->token_path.len > 0;
    bool basic = !token && (u->username.len > 0 || u->password.len > 0);
    if (cert) {
        set_text(k, &k->cert, u->cert_path, u->cert_data, "client-certificate", &u->entry);
        set_text(k, &k->key, u->key_path, u->key_data, "client-key", &u->entry);
    }
    if (u->token_path.len > 0)
        k->token.path = arena_str(&k->arena, u->token_path).p;
    buf_add(&k->token.text, u->token); /* until the file is read */
    if (basic)
        choose_basic(k, u);
    if (!token && !basic && !cert) /* a plugin is asked only if there is nothing else */
        k->maybe_exec = u->maybe_exec;
    return 0;
}

/* Nothing that proves who we are goes over a wire that anybody can read. */
static void forget_credentials(struct kubeconfig *k)
{
    if (k->token.path || k->token.text.len > 0 || k->basic.p || k->cert.path ||
        k->cert.text.len > 0 || k->maybe_exec)
        log_warn(k->log, "credentials are not sent over plain http", LOG_Z("server", k->server),
                 LOG_Z("context", k->context));
    buf_done(&k->token.text);
    buf_done(&k->cert.text);
    buf_done(&k->key.text);
    k->token = k->cert = k->key = (struct kube_text){ 0 };
    k->basic = STR_NONE;
    k->maybe_exec = NULL;
}

/* --- the context --- */

static void add_names(struct buf *out, const kube_list *list, size_t shown_max)
{
    AUTO_FREE struct str *names = kv_calloc(list->count + 1, sizeof *names);
    for (size_t i = 0; i < list->count; i++)
        names[i] = list->items[i]->name;
    size_t count = str_sort_unique(names, list->count);
    for (size_t i = 0; i < count && i < shown_max; i++)
        buf_addf(out, "%s%.*s", i ? ", " : "", STR_ARG(names[i]));
    if (count > shown_max)
        buf_addf(out, " and %zu more", count - shown_max);
}

void kubeconfig_contexts(const struct kubeconfig *k, struct buf *out)
{
    add_names(out, &k->entries.contexts, SIZE_MAX);
}

/* "...is not in FILE, FILE (has: a, b)" */
static int no_such(const struct kubeconfig *k, const char *what, struct str name,
                   const kube_list *list, struct err *err)
{
    AUTO_BUF files = { 0 };
    AUTO_BUF names = { 0 };
    for (size_t i = 0; i < k->entries.files.count; i++)
        buf_addf(&files, "%s%s", i ? ", " : "", k->entries.files.items[i]);
    add_names(&names, list, NAMES_SHOWN);
    const char *has = names.p && names.len > 0 ? names.p : "none";
    if (name.len == 0)
        return err_set(err, ERR_INVALID, "no %s is chosen, and %s has no current-context (has: %s)",
                       what, files.p, has);
    return err_set(err, ERR_INVALID, "%s %s is not in %s (has: %s)", what, STR_SHOWN(name), files.p,
                   has);
}

static int check_namespace(struct str name, struct err *err)
{
    bool right = name.len <= NAMESPACE_BYTES_MAX;
    for (size_t i = 0; i < name.len && right; i++) {
        char c = name.p[i];
        bool inside = i > 0 && i + 1 < name.len;
        right = char_is_digit(c) || (c >= 'a' && c <= 'z') || (c == '-' && inside);
    }
    return right ? 0 : err_set(err, ERR_INVALID, "namespace: %s is no name", STR_SHOWN(name));
}

int kubeconfig_choose(struct kubeconfig *k, const struct kubeconfig_options *options,
                      struct err *err)
{
    const struct kube_entries *e = &k->entries;
    struct str name =
        options->context && *options->context ? str_of(options->context) : e->current_context;
    const struct kube_context *context = (const struct kube_context *)kube_find(&e->contexts, name);
    if (!context)
        return no_such(k, "context", name, &e->contexts, err);
    const struct kube_cluster *cluster =
        (const struct kube_cluster *)kube_find(&e->clusters, context->cluster);
    const struct kube_user *user = (const struct kube_user *)kube_find(&e->users, context->user);
    const struct kube_entry *at = &context->entry;
    if (context->cluster.len == 0)
        return refuse(err, "context", at, "names no cluster");
    if (!cluster)
        return err_set(err, ERR_INVALID, "%s:%u: cluster %s of context %s is not defined", at->file,
                       at->line, STR_SHOWN(context->cluster), STR_SHOWN(name));
    if (!user && context->user.len > 0)
        return err_set(err, ERR_INVALID, "%s:%u: user %s of context %s is not defined", at->file,
                       at->line, STR_SHOWN(context->user), STR_SHOWN(name));
    if (check_namespace(context->namespace_, err) < 0)
        return wrap_entry(err, "context", at);

    bool client_cert = user && (user->cert_path.len > 0 || user->cert_data.len > 0);
    if (choose_cluster(k, options, cluster, client_cert, err) < 0 ||
        (user && choose_user(k, user, err) < 0))
        return -1;
    k->context = arena_str(&k->arena, name).p;
    k->namespace_ = context->namespace_.len > 0 ? context->namespace_.p : "default";
    k->impersonate = user ? user->impersonate : NULL;
    k->impersonate_count = user ? user->impersonate_count : 0;
    if (strncmp(k->server, "http:", 5) == 0 && !options->credentials_over_http)
        forget_credentials(k);
    if (kubeconfig_read_files(k, err) < 0)
        return err_wrap(err, "%s:%u: context %s", at->file, at->line, STR_SHOWN(name));
    return 0;
}

/* --- in a pod --- */

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

bool kubeconfig_in_pod(void)
{
    return environment("KUBERNETES_SERVICE_HOST") && environment("KUBERNETES_SERVICE_PORT");
}

static int pod_namespace(struct kubeconfig *k, const char *folder, struct err *err)
{
    AUTO_BUF path = { 0 };
    AUTO_BUF text = { 0 };
    buf_addf(&path, "%s/namespace", folder);
    const char *given = environment("POD_NAMESPACE");
    if (given)
        buf_addz(&text, given);
    else
        (void)file_read(path.p, NAMESPACE_BYTES_MAX + 2, &text, NULL); /* none: the default */
    struct str name = str_trim(buf_str(&text));
    if (check_namespace(name, err) < 0)
        return err_wrap(err, "%s", given ? "POD_NAMESPACE" : path.p);
    k->namespace_ = name.len > 0 ? arena_str(&k->arena, name).p : "default";
    return 0;
}

int kubeconfig_choose_pod(struct kubeconfig *k, const struct kubeconfig_options *options,
                          const char *folder, struct err *err)
{
    const char *host = environment("KUBERNETES_SERVICE_HOST");
    const char *port = environment("KUBERNETES_SERVICE_PORT");
    bool bare_v6 = strchr(host, ':') && host[0] != '[';
    struct str server =
        arena_strf(&k->arena, bare_v6 ? "https://[%s]:%s" : "https://%s:%s", host, port);
    if (options->server)
        server = str_of(options->server);
    if (kube_server_url(server, true, &k->arena, &k->server, err) < 0)
        return err_wrap(err, "KUBERNETES_SERVICE_HOST");
    k->context = "in-cluster";
    k->in_cluster = true;
    k->token.path = arena_strf(&k->arena, "%s/token", folder).p;
    k->authority.path = arena_strf(&k->arena, "%s/ca.crt", folder).p;
    if (access(k->authority.path, R_OK) < 0) {
        log_warn(k->log, "no certificate authority of the cluster: the system's are believed",
                 LOG_Z("file", k->authority.path));
        k->authority.path = NULL;
    }
    if (strncmp(k->server, "http:", 5) == 0 && !options->credentials_over_http)
        forget_credentials(k);
    if (pod_namespace(k, folder, err) < 0)
        return -1;
    return kubeconfig_read_files(k, err) < 0 ? err_wrap(err, "in-cluster") : 0;
}
