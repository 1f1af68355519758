/* compat/registry.h - a client of OCI registries: manifests, blobs, referrers, and as much pushing as it takes
 * to attach a spec to an image.
 *
 * Whatever has a digest is verified against it before anybody sees it, and has a size limit before it is
 * read. Calls block the caller, for no longer than `budget_ns`, and may come from any thread.
 *
 * Against request forgery: with `allowed_hosts` nobody else is talked to, token servers and redirects
 * included. An address that is link-local, or where a cloud keeps its metadata, is not connected to,
 * whatever name led there, unless `allowed_hosts` has that name in full; behind a proxy that is the proxy's
 * to see to. Credentials go only to the host that they are for, or to the token server that it names over
 * TLS (without TLS only if the registry itself is spoken to so).
 */
#pragma once

#include "api/schema.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "compat/credentials.h"
#include "compat/manifest.h"
#include "compat/reference.h"

struct registry_options {
    const struct clock *clock;
    struct log *maybe_log;
    struct metrics *maybe_metrics;
    const char *user_agent;     /* NULL: "karve" */
    struct str ca_pem;          /* beside the system's authorities; empty: none. All are copied */
    struct str_list plain_http; /* hosts (with port) spoken to without TLS; "*": all */
    /* "registry.example:5000", "*.example.com"; `*` stands for anything, dots included; without a port any
     * will do. Empty: any public or private host but link-local ones. */
    struct str_list allowed_hosts;
    struct str_list
        mirrors;        /* "docker.io=mirror.example:5000": asked instead, with its credentials */
    int64_t timeout_ns; /* of one request; 0: 10 s */
    int64_t budget_ns;  /* of one call with retries; 0: 30 s */
    uint64_t seed;      /* of the jitter in its back-off */
};

struct registry;
int registry_new(struct registry_options options, struct registry **out, struct err *err);
void registry_free(struct registry *registry); /* nobody is in a call; NULL is fine */
KV_AUTO_TYPE(registry, registry_free)
void registry_cancel(
    struct registry *registry); /* calls, also later ones, end with ERR_CANCELLED */

/* Which failure, since what follows differs:
 *   ERR_NOT_FOUND    there is no such image, manifest or blob
 *   ERR_DENIED       401 or 403 with all the credentials there are; a certificate that is not believed;
 *                    a host that is not allowed
 *   ERR_THROTTLED    429; `retry_after_ns` of the error's text is honoured within the budget
 *   ERR_INVALID      an answer that is none: wrong digest, no JSON, no manifest
 *   ERR_CAPACITY     an answer beyond its limit
 *   ERR_UNAVAILABLE  no answer, 5xx
 */

/* HEAD, or GET where that is refused: the digest that a tag means now, and what it is of. The size is what
 * the registry claims. */
int registry_digest(struct registry *r, const struct reference *ref,
                    const struct keyring *maybe_keys, struct arena *arena, struct descriptor *out,
                    struct err *err);
/* By tag or digest; verified. `*maybe_text`: its bytes, in the arena. `maybe_self` gets media type, digest
 * and size. */
int registry_manifest(struct registry *r, const struct reference *ref,
                      const struct keyring *maybe_keys, struct arena *arena,
                      struct oci_manifest *out, struct str *maybe_text,
                      struct descriptor *maybe_self, struct err *err);
/* Verified; no longer than its descriptor says, nor than `bytes_max`. In the arena. */
int registry_blob(struct registry *r, const struct reference *ref, const struct keyring *maybe_keys,
                  const struct descriptor *blob, size_t bytes_max, struct arena *arena,
                  struct str *out, struct err *err);

enum referrers_way { REFERRERS_API, REFERRERS_TAG };
struct referrers {
    const struct descriptor *items; /* of the type; none is an answer too */
    uint32_t count;
    enum referrers_way way;
};
/* What refers to the manifest `digest`, by the referrers API or, where the registry does not have it, by the
 * tag `sha256-...`. */
int registry_referrers(struct registry *r, const struct reference *ref,
                       const struct keyring *maybe_keys, struct str digest,
                       struct str artifact_type, struct arena *arena, struct referrers *out,
                       struct err *err);
/* The tag that stands for the referrers of a digest where there is no API for them. */
void referrers_tag(struct str digest, struct buf *out);

/* --- pushing --- */

int registry_push_blob(struct registry *r, const struct reference *ref,
                       const struct keyring *maybe_keys, struct str digest, struct str bytes,
                       struct err *err);
/* By its digest, or by a tag. `*maybe_has_referrers`: the registry keeps track of subjects itself. */
int registry_push_manifest(struct registry *r, const struct reference *ref,
                           const struct keyring *maybe_keys, struct str which,
                           struct str media_type, struct str bytes, bool *maybe_has_referrers,
                           struct err *err);
