/* compat/manifest.h - what registries answer with: image indexes, image manifests, image configs and
 * lists of referrers, OCI's and docker's.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#define MEDIA_OCI_INDEX "application/vnd.oci.image.index.v1+json"
#define MEDIA_OCI_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define MEDIA_DOCKER_LIST "application/vnd.docker.distribution.manifest.list.v2+json"
#define MEDIA_DOCKER_MANIFEST "application/vnd.docker.distribution.manifest.v2+json"
#define MEDIA_OCI_EMPTY "application/vnd.oci.empty.v1+json"
#define COMPAT_ARTIFACT_TYPE "application/vnd.nfd.image-compatibility.v1alpha1"
#define COMPAT_SPEC_MEDIA "application/vnd.nfd.image-compatibility.spec.v1alpha1+yaml"
#define EMPTY_DIGEST                                                                               \
    "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" /* of "{}" */

#define MANIFEST_BYTES_MAX ((size_t)4 << 20)
#define MANIFEST_ENTRIES_MAX 1000 /* manifests of an index, layers of a manifest */

struct platform {
    struct str os, architecture; /* "linux", "arm64" as Go spells them; "" if not told */
    struct str variant;          /* "v8"; "" if there is none */
};

struct descriptor {
    struct str media_type, digest; /* the digest is valid */
    int64_t size;
    struct str artifact_type; /* "" if there is none */
    struct platform platform; /* of an entry of an index */
    int64_t created_us;       /* by its annotation; 0: not told, or not a time */
};

enum manifest_form { MANIFEST_IMAGE, MANIFEST_INDEX };

struct oci_manifest {
    enum manifest_form form;
    struct str media_type;
    struct str
        artifact_type; /* an image without one that has a config of its own kind: the config's */
    struct descriptor config;       /* of an image */
    const struct descriptor *items; /* layers of an image, manifests of an index */
    uint32_t count;
    struct descriptor subject; /* digest "": none */
    int64_t created_us;
};

/* `media_type` is the reply's Content-Type (parameters are ignored), which the text may not contradict;
 * if it says no more than JSON, or nothing, the text decides. `name` stands for it in messages. Texts
 * are the arena's. ERR_INVALID names the field. */
int manifest_read(struct arena *arena, const char *name, struct str media_type, struct str text,
                  struct oci_manifest *out, struct err *err);
/* `architecture`, `os` and `variant` of an image's config. */
int image_config_read(struct arena *arena, const char *name, struct str text, struct platform *out,
                      struct err *err);
/* The entry of the type that is newest; without a time is oldest; of equals the greater digest, so that
 * everybody chooses the same. NULL: none is of the type. */
const struct descriptor *manifest_newest(const struct descriptor *items, uint32_t count,
                                         struct str artifact_type);
/* An entry of an index that is an image for a machine: not an attestation, not an artifact. */
bool descriptor_is_image(const struct descriptor *entry);

/* The manifest of an artifact that attaches a spec to `subject`: equal arguments, equal bytes. Without a
 * time (0) it has none. */
void artifact_manifest_write(const struct descriptor *subject, struct str spec_digest,
                             size_t spec_size, int64_t created_us, struct buf *out);
/* An index for a registry without a referrers API: the OCI index `maybe_before` with all that it has
 * (empty or absent: a new one), and `artifact` at its end unless that digest is there already. */
int referrers_index_write(const char *name, struct str maybe_before,
                          const struct descriptor *artifact, struct buf *out, struct err *err);
