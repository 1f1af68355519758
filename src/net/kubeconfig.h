/* net/kubeconfig.h - where an API server is, and how it knows us.
 *
 * From kubeconfig files, or from what a pod is given, in kubectl's order:
 *   1. the file that is named;
 *   2. else those of KUBECONFIG, a list with colons between: the first file to have an entry or the
 *      current-context wins, missing ones are passed over, but not all of them;
 *   3. else ~/.kube/config;
 *   4. in a pod, if no context was asked for and the files name no current one: its service account.
 * Paths in a file are relative to its folder. Fields that we do not know are ignored.
 *
 * Tokens and certificates in files are read again every minute; exec credential plugins are run
 * when there is no valid credential, once at a time, and what they said is kept until it expires.
 *
 * Errors name the file, the line where there is one, and the field; neither they nor the log hold
 * a secret.
 */
#pragma once

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "net/http.h"

struct kubeconfig_options {
    const char *path;    /* NULL: $KUBECONFIG (a list), else ~/.kube/config, else in-cluster */
    const char *context; /* NULL: current-context */
    const char *server;  /* instead of the cluster's; NULL: the cluster's */
    const struct clock *clock;
    struct log *log; /* warnings: insecure-skip-tls-verify, files that others may read */
    /* Send credentials over http:// too. As in client-go they are for https:// alone: a server in
     * a test, or behind `kubectl proxy`, asks for nothing. */
    bool credentials_over_http;
    /* Where a pod finds its token, namespace and authority; NULL: as every pod does. */
    const char *service_account_dir;
};

struct kubeconfig;
/* ERR_NOT_FOUND: no file, and not in a cluster. ERR_INVALID: a file, or what the context names.
 * ERR_UNAVAILABLE: a file cannot be read. */
int kubeconfig_load(struct kubeconfig_options options, struct kubeconfig **out, struct err *err);
void kubeconfig_free(struct kubeconfig *k); /* NULL is fine */
KV_AUTO_TYPE(kubeconfig, kubeconfig_free)

const char *kubeconfig_server(const struct kubeconfig *k);    /* URL, no slash at the end */
const char *kubeconfig_context(const struct kubeconfig *k);   /* "in-cluster" if there is no file */
bool kubeconfig_in_cluster(const struct kubeconfig *k);       /* what a pod is given */
const char *kubeconfig_namespace(const struct kubeconfig *k); /* never empty: "default" */
const char *kubeconfig_proxy(const struct kubeconfig *k); /* for http_new; NULL: none is named */
bool kubeconfig_compression(const struct kubeconfig *k);  /* false: disable-compression */

/* What a request must carry now. Thread safe. May wait for a plugin (at most a minute): never called
 * from an I/O thread. */
struct kube_credential {
    struct str authorization;              /* value of the header; empty: none */
    const struct http_header *impersonate; /* headers to add */
    uint32_t impersonate_count;
    uint64_t tls_generation; /* grows when what kubeconfig_tls says changes */
};
/* `authorization` is added to `arena`; the headers live as long as `k`. */
int kubeconfig_credential(struct kubeconfig *k, struct arena *arena, struct kube_credential *out,
                          struct err *err);
/* The server refused it (401): get another one the next time. Does nothing if there is one already. */
void kubeconfig_refused(struct kubeconfig *k, struct str authorization);
/* For http_new and http_set_tls; lives in `arena`. Returns its generation. A plugin's certificate is
 * there once kubeconfig_credential has returned. A certificate and a key in files are taken up together,
 * when both are new; one that stays alone for a second counts too. */
uint64_t kubeconfig_tls(struct kubeconfig *k, struct arena *arena, struct http_tls *out);

/* The contexts of the files, for messages and completion: "a, b, c". Added to `out`. */
void kubeconfig_contexts(const struct kubeconfig *k, struct buf *out);
