/* Which files are read, and what is done when there are none. */
#include "net/kubeconfig_inner.h"

#include "base/file.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define POD_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

/* --- one file --- */

static int folder_of(const char *path, struct buf *out, struct err *err)
{
    const char *slash = strrchr(path, '/');
    if (path[0] != '/') {
        AUTO_FREE char *here = getcwd(NULL, 0);
        if (!here)
            return err_set(err, ERR_UNAVAILABLE, "%s: the current folder is gone", path);
        buf_addz(out, here);
    }
    if (slash && path[0] != '/')
        buf_addc(out, '/');
    if (slash)
        buf_add(out, (struct str){ path, (size_t)(slash - path) });
    return 0;
}

static void warn_if_others_read(const struct kubeconfig *k, const char *path)
{
    struct stat st;
    bool secrets = false;
    for (size_t i = 0; i < k->entries.users.count; i++) {
        const struct kube_entry *entry = k->entries.users.items[i];
        secrets |= strcmp(entry->file, path) == 0 &&
                   kube_user_has_secrets((const struct kube_user *)entry);
    }
    if (secrets && stat(path, &st) == 0 && S_ISREG(st.st_mode) &&
        (st.st_mode & (S_IRGRP | S_IROTH)))
        log_warn(k->log, "a kubeconfig with credentials in it can be read by others: chmod go-r",
                 LOG_Z("file", path),
                 LOG_Z("readers", st.st_mode & S_IROTH ? "everybody" : "its group"));
}

static int read_one(struct kubeconfig *k, const char *path, struct err *err)
{
    AUTO_BUF text = { 0 };
    AUTO_BUF folder = { 0 };
    if (file_read(path, KUBECONFIG_BYTES_MAX, &text, err) < 0 || folder_of(path, &folder, err) < 0)
        return err_wrap(err, "kubeconfig");
    if (kubeconfig_decode(buf_str(&text), path, buf_str(&folder), &k->entries, err) < 0)
        return err_wrap(err, "kubeconfig");
    warn_if_others_read(k, path);
    return 0;
}

/* --- a list of them --- */

static bool is_missing(const char *path)
{
    struct stat st;
    return stat(path, &st) < 0 && (errno == ENOENT || errno == ENOTDIR);
}

static bool was_read(const struct kubeconfig *k, const char *path)
{
    for (size_t i = 0; i < k->entries.files.count; i++) {
        if (strcmp(k->entries.files.items[i], path) == 0)
            return true;
    }
    return false;
}

static int read_paths(struct kubeconfig *k, const char *paths, struct err *err)
{
    struct str rest = str_of(paths), head;
    for (bool more = true; more;) {
        more = str_cut(rest, ':', &head, &rest);
        AUTO_FREE char *path = str_dup(head);
        if (head.len == 0 || was_read(k, path) || is_missing(path))
            continue;
        if (k->entries.files.count == KUBECONFIG_FILES_MAX)
            return err_set(err, ERR_INVALID, "KUBECONFIG: more than %d files",
                           KUBECONFIG_FILES_MAX);
        if (read_one(k, path, err) < 0)
            return -1;
    }
    if (k->entries.files.count == 0)
        return err_set(err, ERR_NOT_FOUND, "KUBECONFIG: none of its files exists: %s", paths);
    return 0;
}

/* Read what there is: perhaps nothing. */
static int read_usual(struct kubeconfig *k, struct buf *home_path, struct err *err)
{
    const char *paths = getenv("KUBECONFIG"), *home = getenv("HOME");
    if (paths && *paths)
        return read_paths(k, paths, err);
    buf_addf(home_path, "%s/.kube/config", home ? home : "");
    return !home || is_missing(home_path->p) ? 0 : read_one(k, home_path->p, err);
}

/* --- all together --- */

static int load(struct kubeconfig *k, const struct kubeconfig_options *options, struct err *err)
{
    const char *pod_folder =
        options->service_account_dir ? options->service_account_dir : POD_FOLDER;
    if (options->path && *options->path)
        return read_one(k, options->path, err) < 0 ? -1 : kubeconfig_choose(k, options, err);

    AUTO_BUF home_path = { 0 };
    if (read_usual(k, &home_path, err) < 0)
        return -1;
    bool asked = options->context && *options->context;
    if (!asked && k->entries.current_context.len == 0 && kubeconfig_in_pod())
        return kubeconfig_choose_pod(k, options, pod_folder, err);
    if (k->entries.files.count > 0)
        return kubeconfig_choose(k, options, err);
    return err_set(err, ERR_NOT_FOUND,
                   "no kubeconfig%s%s: KUBECONFIG is not set, %s does not exist%s",
                   asked ? " for context " : "", asked ? STR_SHOWN(str_of(options->context)) : "",
                   home_path.p, asked ? "" : ", and this is no pod (no KUBERNETES_SERVICE_HOST)");
}

int kubeconfig_load(struct kubeconfig_options options, struct kubeconfig **out, struct err *err)
{
    AUTO(kubeconfig) k = kv_calloc(1, sizeof *k);
    k->clock = options.clock;
    k->log = options.log;
    k->tls_generation = 1;
    pthread_mutex_init(&k->mutex, NULL);
    pthread_cond_init(&k->exec_ended, NULL);
    if (load(k, &options, err) < 0)
        return -1;
    *out = take(&k);
    return 0;
}

void kubeconfig_free(struct kubeconfig *k)
{
    if (!k)
        return;
    buf_done(&k->token.text);
    buf_done(&k->authority.text);
    buf_done(&k->cert.text);
    buf_done(&k->key.text);
    pthread_cond_destroy(&k->exec_ended);
    pthread_mutex_destroy(&k->mutex);
    kube_entries_done(&k->entries);
    arena_done(&k->arena);
    free(k);
}

const char *kubeconfig_server(const struct kubeconfig *k)
{
    return k->server;
}

const char *kubeconfig_context(const struct kubeconfig *k)
{
    return k->context;
}

bool kubeconfig_in_cluster(const struct kubeconfig *k)
{
    return k->in_cluster;
}

const char *kubeconfig_namespace(const struct kubeconfig *k)
{
    return k->namespace_;
}

const char *kubeconfig_proxy(const struct kubeconfig *k)
{
    return k->proxy;
}

bool kubeconfig_compression(const struct kubeconfig *k)
{
    return !k->compression_off;
}
