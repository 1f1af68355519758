/* net/kubeconfig_inner.h - the parts of a kubeconfig, for the files that read and use it.
 *
 *     kubeconfig_decode.c      the text of a file -> entries
 *     kubeconfig_choose.c      entries and a context, or a pod's files -> access
 *     kubeconfig_credential.c  access -> what a request carries now
 *     kubeconfig.c             which files, in which order; the public face
 */
#pragma once

#include "base/vec.h"
#include "net/exec_credential.h"
#include "net/kubeconfig.h"

#define KUBECONFIG_BYTES_MAX ((size_t)16 << 20) /* a file: thousands of clusters */
#define KUBECONFIG_FILES_MAX 64                 /* of a list */
#define KUBECONFIG_ENTRIES_MAX 10000            /* clusters, users or contexts; also list items */
#define KUBECONFIG_SECRET_BYTES_MAX ((size_t)1 << 20) /* a token, a certificate, a bundle of them */

/* --- what the files say --- */

/* What every cluster, user and context starts with. All of it is in the arena of its kube_entries. */
struct kube_entry {
    struct str name;
    const char *file;
    uint32_t line;
};
typedef VEC(struct kube_entry *) kube_list;

struct kube_cluster {
    struct kube_entry entry;
    struct str server, tls_server_name, proxy;
    struct str ca_path, ca_data; /* paths are absolute, data is decoded */
    bool insecure, compression_off;
    struct str exec_config; /* JSON for the plugin; absent: none */
};

struct kube_user {
    struct kube_entry entry;
    struct str token, token_path, username, password;
    struct str cert_path, cert_data, key_path, key_data;
    struct str as;                         /* who to be instead */
    const struct http_header *impersonate; /* as, and with which groups and so on */
    uint32_t impersonate_count;
    const struct exec_plugin *maybe_exec;
    struct str auth_provider; /* its name; absent: there is none */
};

struct kube_context {
    struct kube_entry entry;
    struct str cluster, user, namespace_;
};

/* Of one file or of several: an entry that an earlier file has is not taken from a later one. Within
 * a file, names are unique. Zero-initialised is empty. */
struct kube_entries {
    struct arena arena;
    kube_list clusters, users, contexts;
    struct str current_context;
    VEC(const char *) files; /* that were read */
};
void kube_entries_done(struct kube_entries *entries);
struct kube_entry *kube_find(const kube_list *list, struct str name); /* NULL: there is none */

/* Add what `text` says. `file` is for messages and is kept by name; paths in it are relative to
 * `folder`, which is absolute. On failure some may have been added. */
int kubeconfig_decode(struct str text, const char *file, struct str folder,
                      struct kube_entries *entries, struct err *err);
bool kube_user_has_secrets(const struct kube_user *user); /* written into the file itself */
bool kube_header_can_hold(struct str value);

/* --- what was chosen --- */

/* A text that is kept in a file and may change there, or is given once and for all. */
struct kube_text {
    const char *path; /* NULL: it is not in a file */
    struct buf text;
};

struct kubeconfig {
    struct arena arena; /* owns what does not change after loading */
    struct kube_entries entries;
    struct log *log;
    const struct clock *clock;
    const char *server, *context, *namespace_, *proxy;
    struct str proxy_url; /* as the file has it */
    bool in_cluster, compression_off;
    struct str basic; /* "Basic ..."; absent: none */
    const struct http_header *impersonate;
    uint32_t impersonate_count;
    struct http_tls tls; /* server_name and insecure */
    const struct exec_plugin *maybe_exec;
    struct str exec_config;

    /* Guards what is below; not held while a plugin runs. */
    pthread_mutex_t mutex;
    struct kube_text token, authority, cert, key;
    int64_t files_read_ns;
    bool files_refused; /* read them again before the minute is over */
    bool half_renewed;  /* certificate or key was new, the other not: the next look decides */
    uint64_t tls_generation;

    pthread_cond_t exec_ended;
    bool exec_running;
    uint64_t exec_run_count; /* that have ended */
    struct err exec_err;     /* of the last one; ERR_NONE: it succeeded */
    bool exec_valid;         /* token, cert and key are what it said */
    int64_t exec_expires_us; /* by the wall; INT64_MAX: never */
    bool exec_refused;       /* what it said last was */
    bool exec_stubborn;      /* asked again after a refusal, it said the same */
    int64_t exec_ran_ns;
};

/* "https://host:port/path" of what a cluster's `server` may be; without a scheme it is `tls` that
 * decides. */
int kube_server_url(struct str server, bool tls, struct arena *arena, const char **out,
                    struct err *err);

/* Fill in `k`, whose entries have been read, for its context or the current one. */
int kubeconfig_choose(struct kubeconfig *k, const struct kubeconfig_options *options,
                      struct err *err);
/* The same from what a pod is given in its environment and in `folder`. */
int kubeconfig_choose_pod(struct kubeconfig *k, const struct kubeconfig_options *options,
                          const char *folder, struct err *err);
bool kubeconfig_in_pod(void);

/* Read what is in files for the first time: all of it must be there. */
int kubeconfig_read_files(struct kubeconfig *k, struct err *err);
