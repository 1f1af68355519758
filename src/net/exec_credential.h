/* net/exec_credential.h - a credential from a plugin: a program that a kubeconfig names.
 *
 * The plugin is told in KUBERNETES_EXEC_INFO what is wanted, and prints an ExecCredential of
 * client.authentication.k8s.io/v1 or v1beta1. It runs without a shell, in a process group of its
 * own, with our environment and what the kubeconfig adds to it. It has a minute; then its group is
 * killed. What it prints to standard error becomes part of an error message, and is otherwise
 * dropped; a plugin that talks with a person at a terminal has the terminal for that.
 *
 * What it prints to standard output is secret and never part of a message.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"

#define EXEC_TIMEOUT_NS ((int64_t)60 * 1000000000)
#define EXEC_OUTPUT_BYTES_MAX ((size_t)1 << 20)

enum exec_interactive {
    EXEC_NEVER,        /* its standard input is empty */
    EXEC_IF_AVAILABLE, /* it is ours, if that is a terminal */
    EXEC_ALWAYS,       /* likewise, and it is an error if not */
};

struct exec_env {
    struct str name, value;
};

struct exec_plugin {
    struct str command; /* looked for in PATH unless it has a slash */
    const struct str *args;
    uint32_t arg_count;
    const struct exec_env *env; /* added to ours */
    uint32_t env_count;
    struct str api_version;
    struct str interactive_mode; /* as written; empty: the default of the version */
    bool provide_cluster_info;
    struct str install_hint; /* for who does not have it */
};

/* What a plugin may know of the cluster. */
struct exec_cluster {
    struct str server, tls_server_name, ca_pem, proxy;
    bool insecure, compression_off;
    struct str config; /* JSON; absent: null */
};

struct exec_credential {
    struct str token;             /* empty: none */
    struct str cert_pem, key_pem; /* together; empty: none */
    int64_t expires_us;           /* wall clock; INT64_MAX: never */
};

/* Can it be run at all? Its version, mode, command and environment. */
int exec_plugin_check(const struct exec_plugin *plugin, struct err *err);

/* Run the plugin and wait for it. The texts are added to `arena`. ERR_INVALID: it is not there, or
 * says something else. ERR_UNAVAILABLE: it failed, or took too long. */
int exec_credential_get(const struct exec_plugin *plugin, const struct exec_cluster *cluster,
                        const struct clock *clock, struct arena *arena, struct exec_credential *out,
                        struct err *err);

/* --- its parts --- */

/* The value of KUBERNETES_EXEC_INFO. */
void exec_credential_info(const struct exec_plugin *plugin, const struct exec_cluster *cluster,
                          bool interactive, struct buf *out);
int exec_credential_decode(struct str output, struct str api_version, struct arena *arena,
                           struct exec_credential *out, struct err *err);

struct exec_run {
    const char *path;
    char *const *argv, *const *envp;
    bool interactive;
    int64_t timeout_ns;
    size_t output_bytes_max;
    const struct clock *clock;
};
/* Run a program to its end. Its standard output is added to `out`, the end of what it said on
 * standard error to `said`, whether it succeeds or not. ERR_NOT_FOUND: there is no such program.
 * ERR_INVALID: it cannot be run, or prints too much. ERR_UNAVAILABLE: it failed or took too long. */
int exec_run(const struct exec_run *run, struct buf *out, struct buf *said, struct err *err);
