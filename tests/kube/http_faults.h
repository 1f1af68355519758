/* tests/kube/http_faults.h - an API server that answers wrongly at random: a reverse proxy before a real one.
 *
 * HTTP without TLS on loopback; behind it the server is asked with a certificate. So whoever is to meet these
 * faults gets a kubeconfig that names the proxy and nobody's credential. What TCP does to a connection is the other
 * proxy's (kube/proxy.h).
 *
 * Every function may be called from any thread.
 */
#pragma once

#include "base/kv.h"

#include <stdint.h>

enum http_fault {
    /* The server never sees the request. */
    FAULT_429, /* with Retry-After, as 503 */
    FAULT_503,
    FAULT_503_BARE, /* without: it may have been carried out */
    FAULT_500,
    FAULT_504,
    /* It carries the request out, and the answer is another or none. */
    FAULT_500_DONE,
    FAULT_504_DONE,
    FAULT_TRUNCATED, /* the body, or a watch in the middle of a line */
    FAULT_SILENT,
    HTTP_FAULTS
};
extern const char *const http_fault_names[HTTP_FAULTS];

struct http_faults_options {
    const char *server; /* "https://127.0.0.1:PORT"; borrowed, as the paths, for the call */
    const char *ca_path, *cert_path, *key_path;
    uint64_t seed;
};

struct http_faults_rules {
    uint32_t one_in; /* of so many requests one meets a fault, reads and writes alike; 0: none */
    uint32_t watch_seconds; /* the server is asked to end watches after so long; 0: as they say */
};

struct http_faults;
struct http_faults *http_faults_start(
    struct http_faults_options options);      /* ends the test if it cannot */
void http_faults_free(struct http_faults *f); /* NULL is fine */
KV_AUTO_TYPE(http_faults, http_faults_free)

uint16_t http_faults_port(const struct http_faults *f);
void http_faults_set(struct http_faults *f,
                     struct http_faults_rules rules); /* for requests from now on */

struct http_faults_counts {
    uint64_t requests, watches;
    uint64_t watches_ended; /* by the server, well */
    uint64_t faults[HTTP_FAULTS];
};
struct http_faults_counts http_faults_counts(struct http_faults *f);
