/* compat/registry_testing.h - a registry in memory, on loopback, with a token server; it can be told to
 * misbehave.
 *
 * It has what registries differ in: a referrers API (or none), with or without filters and pages; no
 * authentication, names and passwords, or tokens. Any request can be given another answer (`fake_fault`).
 */
#pragma once

#include "net/certs_testing.h"
#include "net/digest.h"

enum fake_auth { FAKE_OPEN, FAKE_BASIC, FAKE_TOKEN };

struct fake_registry_options {
    bool without_referrers; /* the path is unknown, as in docker-registry */
    bool filters;           /* by artifactType, and it says so */
    uint32_t page;          /* referrers in one answer; 0: all */
    enum fake_auth auth;
    bool anonymous;             /* tokens are given to anybody */
    const char *user;           /* who may; with `password` */
    const char *password;       /* NULL: nobody may */
    const char *identity_token; /* instead, of the token server; NULL: none */
    const char *expires_in;     /* of tokens, as the JSON has it; NULL: it is not said */
    const char *issued_at;      /* likewise */
    const char *realm;          /* NULL: its own /token */
    const struct cert *cert;    /* NULL: no TLS */
};

struct fake_registry;
struct fake_registry *fake_registry_new(struct fake_registry_options options);
void fake_registry_free(struct fake_registry *f); /* NULL is fine */
KV_AUTO_TYPE(fake_registry, fake_registry_free)
const char *fake_registry_host(const struct fake_registry *f); /* "127.0.0.1:PORT" */

/* What it holds. `out` (may be NULL) gets the digest. */
void fake_registry_blob(struct fake_registry *f, struct str bytes, char out[DIGEST_TEXT_MAX]);
void fake_registry_manifest(struct fake_registry *f, const char *repository, const char *maybe_tag,
                            const char *media_type, struct str text, char out[DIGEST_TEXT_MAX]);

/* Another answer to requests whose "METHOD target" contains `on`. The latest fault that applies counts. */
struct fake_fault {
    const char *on;
    uint32_t times; /* 0: for ever */
    int status;     /* 0: 200 */
    const char *headers[4];
    const char *body;
    uint64_t claims;     /* bytes that the head promises, of which none ever comes */
    bool endless;        /* bytes without end, and without a promised length */
    bool hangs_up;       /* the connection is closed without an answer */
    bool holds;          /* no answer, until the server ends */
    const char *without; /* the proper answer, but for this header */
};
void fake_registry_fault(struct fake_registry *f, struct fake_fault fault); /* texts are borrowed */
void fake_registry_revoke_tokens(struct fake_registry *f); /* all that it has given so far */

/* Requests so far whose line, "METHOD target [Authorization] body", contains the words. */
uint32_t fake_registry_seen(struct fake_registry *f, const char *words);
void fake_registry_forget_seen(struct fake_registry *f);

/* --- who asks it --- */

/* The client's options, completed: the real clock, and no TLS unless the server has a certificate. It must
 * succeed. */
struct registry;
struct registry_options;
struct registry *fake_registry_client(const struct fake_registry *f,
                                      struct registry_options options);
