/* What a request carries now.
 *
 * Texts in files are read again once a minute, and at once after a refusal: a minute is half of what
 * the kubelet leaves between renewing a pod's token and its end. What cannot be read stays as it
 * was, with a warning.
 *
 * A plugin runs when there is no valid credential. One thread runs it; those who come meanwhile wait
 * and share the outcome, success or not, so that a plugin which hangs for a minute costs each of
 * them a minute and not one after another.
 */
#include "net/kubeconfig_inner.h"

#include "base/file.h"

#define FILES_PERIOD_NS ((int64_t)60 * 1000000000)
#define HALF_RENEWED_NS ((int64_t)1000000000) /* how long the other file may take */
/* A plugin that answers a refusal with what was refused is left alone for a while. */
#define STUBBORN_NS ((int64_t)10 * 1000000000)

/* --- files --- */

static int check_token(struct str token, struct err *err)
{
    if (token.len == 0)
        return err_set(err, ERR_INVALID, "is empty");
    if (!kube_header_can_hold(token))
        return err_set(err, ERR_INVALID, "a line break or control character in it");
    return 0;
}

/* Whether it is a good one is for TLS to say; that it is none at all is seen here, where its name is
 * known. */
static int check_pem(struct str pem, struct err *err)
{
    return memmem(pem.p, pem.len, "-----BEGIN ", 11)
               ? 0
               : err_set(err, ERR_INVALID, "is not PEM: there is no -----BEGIN in it");
}

typedef int check_fn(struct str text, struct err *err);

/* The text of its file. */
static int read_text(const struct kube_text *t, check_fn *check, struct buf *out, struct err *err)
{
    if (file_read(t->path, KUBECONFIG_SECRET_BYTES_MAX, out, err) < 0)
        return -1;
    struct str text = buf_str(out);
    if (check == check_token) {
        AUTO_BUF all = *out;
        *out = (struct buf){ 0 };
        buf_add(out, str_trim(buf_str(&all)));
        text = buf_str(out);
    }
    return check(text, err) < 0 ? err_wrap(err, "%s", t->path) : 0;
}

static void set_text(struct kube_text *t, struct buf *text)
{
    buf_done(&t->text);
    t->text = *text;
    *text = (struct buf){ 0 };
}

static int read_first(struct kube_text *t, check_fn *check, const char *field, struct err *err)
{
    AUTO_BUF text = { 0 };
    if (!t->path && t->text.len == 0)
        return 0;
    if (!t->path)
        return check(buf_str(&t->text), err) < 0 ? err_wrap(err, "%s-data", field) : 0;
    if (read_text(t, check, &text, err) < 0)
        return err_wrap(err, "%s", field);
    set_text(t, &text);
    return 0;
}

int kubeconfig_read_files(struct kubeconfig *k, struct err *err)
{
    struct err why = { 0 };
    bool spare_token = k->token.path && k->token.text.len > 0;
    if (k->token.path && read_first(&k->token, check_token, "tokenFile", &why) < 0) {
        if (!spare_token)
            return err_set(err, why.kind == ERR_NOT_FOUND ? ERR_INVALID : why.kind, "%s", why.text);
        log_warn(k->log, "the token's file cannot be read: the token beside it is used",
                 LOG_ERR(&why));
    }
    if (read_first(&k->authority, check_pem, "certificate-authority", err) < 0 ||
        read_first(&k->cert, check_pem, "client-certificate", err) < 0 ||
        read_first(&k->key, check_pem, "client-key", err) < 0) {
        if (err && err->kind == ERR_NOT_FOUND)
            err->kind = ERR_INVALID; /* the kubeconfig was found; what it names was not */
        return -1;
    }
    k->files_read_ns = clock_mono_ns(k->clock);
    return 0;
}

/* Read again into `text`. True: it is there, and another one. */
static bool read_again(struct kubeconfig *k, const struct kube_text *t, check_fn *check,
                       struct buf *text)
{
    struct err why = { 0 };
    if (read_text(t, check, text, &why) < 0) {
        log_warn(k->log, "a credential's file cannot be read: what it was stays in use",
                 LOG_ERR(&why));
        return false;
    }
    return !str_eq(buf_str(text), buf_str(&t->text));
}

static bool refresh_text(struct kubeconfig *k, struct kube_text *t, check_fn *check)
{
    AUTO_BUF text = { 0 };
    if (!t->path || !read_again(k, t, check, &text))
        return false;
    set_text(t, &text);
    return true;
}

/* Who renews a certificate writes two files, one after the other, and half of them fit nothing: until
 * both are new, the old ones are used, unless those were refused. If at the next look, too, only one of
 * them is new, the key was kept. */
static bool refresh_pair(struct kubeconfig *k, bool refused)
{
    AUTO_BUF cert = { 0 };
    AUTO_BUF key = { 0 };
    if (!k->cert.path || !k->key.path) {
        bool changed = refresh_text(k, &k->cert, check_pem);
        changed |= refresh_text(k, &k->key, check_pem);
        return changed;
    }
    bool new_cert = read_again(k, &k->cert, check_pem, &cert);
    bool new_key = read_again(k, &k->key, check_pem, &key);
    k->half_renewed = new_cert != new_key && !k->half_renewed && !refused;
    if (k->half_renewed) {
        k->files_read_ns += HALF_RENEWED_NS - FILES_PERIOD_NS;
        return false;
    }
    if (new_cert)
        set_text(&k->cert, &cert);
    if (new_key)
        set_text(&k->key, &key);
    return new_cert || new_key;
}

static void refresh_files(struct kubeconfig *k)
{
    int64_t now_ns = clock_mono_ns(k->clock);
    bool refused = k->files_refused;
    if (!refused && now_ns - k->files_read_ns < FILES_PERIOD_NS)
        return;
    k->files_refused = false;
    k->files_read_ns = now_ns;
    refresh_text(k, &k->token, check_token);
    bool changed = refresh_text(k, &k->authority, check_pem);
    changed |= refresh_pair(k, refused);
    if (changed) {
        k->tls_generation++;
        log_info(k->log, "certificate files have changed and were read again",
                 LOG_Z("context", k->context));
    }
}

/* --- the plugin --- */

/* Replace the text, and say whether it is another one. */
static bool replace(struct kube_text *t, struct str text)
{
    if (str_eq(buf_str(&t->text), text))
        return false;
    buf_clear(&t->text);
    buf_add(&t->text, text);
    return true;
}

static void exec_keep(struct kubeconfig *k, const struct exec_credential *c)
{
    bool token = replace(&k->token, c->token);
    bool cert = replace(&k->cert, c->cert_pem);
    bool key = replace(&k->key, c->key_pem);
    if (cert || key)
        k->tls_generation++;
    k->exec_stubborn = k->exec_refused && !token && !cert && !key;
    k->exec_refused = false;
    k->exec_expires_us = c->expires_us;
    k->exec_valid = true;
}

static int check_answer(const struct exec_credential *c, struct err *err)
{
    if (c->cert_pem.len == 0)
        return 0;
    if (check_pem(c->cert_pem, err) < 0)
        return err_wrap(err, "exec plugin: clientCertificateData");
    return check_pem(c->key_pem, err) < 0 ? err_wrap(err, "exec plugin: clientKeyData") : 0;
}

/* The mutex is given up meanwhile. */
static void exec_once(struct kubeconfig *k)
{
    AUTO_ARENA arena = { 0 };
    struct exec_credential credential;
    struct err why = { 0 };
    const struct exec_cluster cluster = {
        .server = str_of(k->server),
        .tls_server_name = k->tls.server_name,
        .ca_pem = arena_str(&arena, buf_str(&k->authority.text)),
        .proxy = k->proxy_url,
        .insecure = k->tls.insecure,
        .compression_off = k->compression_off,
        .config = k->exec_config,
    };
    k->exec_running = true;
    pthread_mutex_unlock(&k->mutex);
    int rc = exec_credential_get(k->maybe_exec, &cluster, k->clock, &arena, &credential, &why);
    if (rc == 0)
        rc = check_answer(&credential, &why);
    pthread_mutex_lock(&k->mutex);

    k->exec_running = false;
    k->exec_run_count++;
    k->exec_ran_ns = clock_mono_ns(k->clock);
    k->exec_err = why;
    if (rc == 0)
        exec_keep(k, &credential);
    pthread_cond_broadcast(&k->exec_ended);
}

static int exec_ensure(struct kubeconfig *k, struct err *err)
{
    if (k->exec_valid && clock_wall_us(k->clock) <= k->exec_expires_us)
        return 0;
    uint64_t ended = k->exec_run_count;
    if (!k->exec_running)
        exec_once(k);
    while (k->exec_run_count == ended)
        pthread_cond_wait(&k->exec_ended, &k->mutex);
    return k->exec_err.kind == ERR_NONE
               ? 0
               : err_set(err, k->exec_err.kind, "context %s: %s", k->context, k->exec_err.text);
}

/* --- for requests --- */

static struct str authorization_now(const struct kubeconfig *k, struct arena *arena)
{
    if (k->token.text.len > 0)
        return arena_strf(arena, "Bearer %.*s", STR_ARG(buf_str(&k->token.text)));
    return k->basic.p ? arena_str(arena, k->basic) : STR("");
}

int kubeconfig_credential(struct kubeconfig *k, struct arena *arena, struct kube_credential *out,
                          struct err *err)
{
    pthread_mutex_lock(&k->mutex);
    refresh_files(k);
    int rc = k->maybe_exec ? exec_ensure(k, err) : 0;
    if (rc == 0)
        *out = (struct kube_credential){
            .authorization = authorization_now(k, arena),
            .impersonate = k->impersonate,
            .impersonate_count = k->impersonate_count,
            .tls_generation = k->tls_generation,
        };
    pthread_mutex_unlock(&k->mutex);
    return rc;
}

void kubeconfig_refused(struct kubeconfig *k, struct str authorization)
{
    AUTO_ARENA arena = { 0 };
    pthread_mutex_lock(&k->mutex);
    if (str_eq(authorization, authorization_now(k, &arena))) { /* else there is another already */
        k->files_refused = true;
        bool pause = k->exec_stubborn && clock_mono_ns(k->clock) - k->exec_ran_ns < STUBBORN_NS;
        if (k->exec_valid && !pause) {
            k->exec_valid = false;
            k->exec_refused = true;
        }
    }
    pthread_mutex_unlock(&k->mutex);
}

uint64_t kubeconfig_tls(struct kubeconfig *k, struct arena *arena, struct http_tls *out)
{
    pthread_mutex_lock(&k->mutex);
    *out = (struct http_tls){
        .ca_pem = arena_str(arena, buf_str(&k->authority.text)),
        .cert_pem = arena_str(arena, buf_str(&k->cert.text)),
        .key_pem = arena_str(arena, buf_str(&k->key.text)),
        .server_name = arena_str(arena, k->tls.server_name),
        .insecure = k->tls.insecure,
    };
    uint64_t generation = k->tls_generation;
    pthread_mutex_unlock(&k->mutex);
    return generation;
}
