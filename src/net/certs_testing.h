/* net/certs_testing.h - certificates for tests, made on the spot: none is kept, so none runs out. */
#pragma once

#include "base/str.h"

#include <gnutls/x509.h>

struct cert {
    struct str cert_pem, key_pem; /* owned */
    gnutls_x509_crt_t crt;
    gnutls_x509_privkey_t key;
};

struct cert_options {
    const char *name;          /* of the subject */
    const char *dns;           /* a host it is for; NULL: none */
    bool loopback;             /* it is for 127.0.0.1 too */
    const struct cert *issuer; /* NULL: itself */
    bool authority;
    bool expired;
};

struct cert *cert_new(struct cert_options options);
void cert_free(struct cert *cert); /* NULL is fine */
KV_AUTO_TYPE(cert, cert_free)
