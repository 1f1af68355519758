/* compat/image.h - what is known of one image: for which platforms it is built, and what it says it needs.
 *
 * The facts of a digest do not change but for the artifacts that refer to it. Immutable and counted;
 * equal facts of one image are replaced by nobody, so a pointer tells whether something changed.
 */
#pragma once

#include "base/rc.h"
#include "compat/registry.h"
#include "compat/spec.h"

#define IMAGE_PLATFORMS_MAX 64

/* A spec, and where it is from. */
struct image_spec {
    const struct compat_spec *maybe_spec; /* NULL: there is none */
    struct str artifact;                  /* digest of its artifact; "": none */
    struct str trouble; /* "": none. An artifact is there and cannot be used: why */
};

struct image_platform {
    struct platform platform;
    struct str digest;      /* of the manifest for it */
    struct image_spec spec; /* of its own: it overrides the image's on nodes of this architecture */
};

struct image_facts {
    struct rc rc;
    uint32_t platform_count;
    enum referrers_way way;
    uint32_t bytes;    /* of memory, with all that it points at but the specs, which are shared */
    struct str digest; /* of the manifest or index that the name means */
    struct str media_type;
    struct image_spec spec;                 /* of the image as a whole */
    const struct image_platform *platforms; /* in the order of the index; none: not told */
};

/* A copy that is counted, with one reference, in one block: there are many. `facts` may be a plain struct that
 * somebody filled in. It takes references of the specs. */
const struct image_facts *image_facts_copy(const struct image_facts *facts);
const struct image_facts *image_facts_ref(const struct image_facts *facts);
void image_facts_unref(const struct image_facts *facts); /* NULL is fine */

static inline void image_facts_unref_cleanup(const struct image_facts **facts)
{
    image_facts_unref(*facts);
}
#define AUTO_IMAGE_FACTS                                                                           \
    __attribute__((cleanup(image_facts_unref_cleanup))) const struct image_facts *

/* Do both say the same? How it was found out does not matter. */
bool image_facts_equal(const struct image_facts *a, const struct image_facts *b);
/* Facts of a platform list and a spec alone, for tests and for who knows without a registry. Copies; takes a
 * reference of the spec. */
const struct image_facts *image_facts_make(struct str digest, const struct platform *platforms,
                                           uint32_t platform_count,
                                           const struct compat_spec *maybe_spec);
void image_facts_mention(const struct image_facts *facts, struct feature_mask *mask);

/* --- asking the registry --- */

/* Everything about the manifest `ref` means now: HEAD, manifest, configs or platforms, artifacts, specs.
 * `maybe_known` of the same digest saves what cannot have changed; if its artifacts are the same too, the
 * result is `maybe_known` itself. A spec that cannot be read or has more than `sets_max` sets is `trouble`,
 * not an error: the caller's policy decides. Errors as registry.h has them. */
struct image_ask {
    struct registry *registry;
    const struct reference *ref;
    const struct keyring *maybe_keys;
    uint32_t sets_max;  /* 0: COMPAT_SETS_MAX */
    bool platform_only; /* artifacts are not asked for: there are no specs */
    const struct image_facts *maybe_known;
};
int image_ask(const struct image_ask *ask, const struct image_facts **out, struct err *err);

/* --- judging --- */

struct image_verdict {
    enum match match;
    bool platform;                 /* it is the platform that does not let it be a yes */
    const struct image_spec *spec; /* that was asked; NULL: none */
    struct compat_outcome outcome; /* of it */
};

/* The node is known by its architecture and operating system as Go calls them ("" is unknown: any may do) and by
 * its features. Which variant of an architecture it is nobody tells: each will do. Trouble with a spec is
 * MATCH_ERROR. */
struct image_node {
    struct str os, architecture;
    /* NULL: none have been published, and a spec that asks for any says no. */
    const struct feature_set *features;
};
struct image_verdict image_judge(const struct image_facts *facts, const struct image_node *node,
                                 const struct compat_options *options);
/* Why not, in a line without a newline that goes on from the image's name: `is built for linux/arm64 only, the node
 * is linux/amd64`, `set "fast": rule "amx": cpu.cpuid AMX: expected to exist, is absent`. Nothing, if it does. */
void image_explain(const struct image_facts *facts, const struct image_node *node,
                   const struct compat_options *options, struct buf *out);
