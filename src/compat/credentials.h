/* compat/credentials.h - who we are to registries: docker's config.json and Kubernetes pull secrets.
 *
 * A keyring is immutable and counted. Its entries are matched against a repository as the kubelet
 * does: host label by label (`*` within a label), port exactly, then the path as a prefix of whole
 * parts; the most specific first (hosts without `*`, then longer paths), and all that match are tried.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"
#include "base/rc.h"

#define KEYRING_BYTES_MAX ((size_t)1 << 20)
#define KEYRING_ENTRIES_MAX 1000

struct credential {
    struct str username, password;
    struct str identity_token; /* for a token server, instead of a password */
    struct str registry_token; /* a bearer token as it is */
};

enum keyring_form {
    KEYRING_CONFIG,   /* {"auths": {...}}: config.json, kubernetes.io/dockerconfigjson */
    KEYRING_DOCKERCFG /* the entries alone: kubernetes.io/dockercfg */
};

struct keyring;
/* `name` stands for the text in messages, which never have a secret in them. Credential helpers
 * (credHelpers, credsStore) are not run: entries without a secret are passed over, and
 * `*maybe_skipped` counts them. */
int keyring_read(const char *name, struct str text, enum keyring_form form,
                 const struct keyring **out, uint32_t *maybe_skipped, struct err *err);
/* One after the other: those of the first come first where both are as specific. NULLs are fine, and of
 * nothing else it is NULL. A reference. */
const struct keyring *keyring_join(const struct keyring *const *rings, uint32_t count);
const struct keyring *keyring_ref(const struct keyring *ring);
void keyring_unref(const struct keyring *ring); /* NULL is fine; secrets are wiped */
/* Equal content, equal number: who may share an answer or a token. Without entries, or of no keyring, 0.
 * Another one in every run, so that it tells nothing of the secrets. */
uint64_t keyring_identity(const struct keyring *maybe_ring);

/* The credentials for a repository ("docker.io", "library/nginx"), best first and each once, in the
 * arena; they borrow from the ring. */
uint32_t keyring_match(const struct keyring *maybe_ring, struct arena *arena, struct str registry,
                       struct str repository, const struct credential **out);
