/* compat/image_ask.c - the registry is asked about an image.
 *
 * What a digest names never changes, so of facts that are known only two questions are left: which digest
 * the name means now, and which artifacts refer to it. All of an ask shares the budget of one call.
 *
 * An artifact that is there and cannot be used must not read as "no artifact": it is trouble, noted beside
 * the digest, and the artifact is read again at the next ask, since what is broken may get mended under
 * the same digest (a blob that was not there yet, a cache in between that served other bytes). That the
 * registry cannot be asked is an error instead, and says nothing of the image. */
#include "compat/image.h"
#include "compat/registry_inner.h"

#define MEDIA_OCI_CONFIG "application/vnd.oci.image.config.v1+json"
#define MEDIA_DOCKER_CONFIG "application/vnd.docker.container.image.v1+json"

struct asking {
    const struct image_ask *ask;
    struct registry_session session;
    struct arena *arena;       /* of the facts, too, until they are copied */
    struct image_facts *facts; /* as far as they are known; the specs are references of ours */
    const struct image_facts *maybe_known; /* of the same digest */
};

/* --- platforms --- */

static struct platform copy_platform(struct arena *arena, const struct platform *p)
{
    return (struct platform){ .os = arena_str(arena, p->os),
                              .architecture = arena_str(arena, p->architecture),
                              .variant = arena_str(arena, p->variant) };
}

static int platforms_of_index(struct asking *a, const struct oci_manifest *index, struct err *err)
{
    struct image_facts *facts = a->facts;
    uint32_t count = 0;
    for (uint32_t i = 0; i < index->count; i++)
        count += descriptor_is_image(&index->items[i]);
    if (count > IMAGE_PLATFORMS_MAX)
        return err_set(err, ERR_CAPACITY, "%s: an index of %u platforms; at most %d are taken",
                       STR_SHOWN(facts->digest), count, IMAGE_PLATFORMS_MAX);
    struct image_platform *platforms = arena_array(a->arena, struct image_platform, count);
    for (uint32_t i = 0; i < index->count; i++) {
        const struct descriptor *entry = &index->items[i];
        if (descriptor_is_image(entry))
            platforms[facts->platform_count++] = (struct image_platform){
                .platform = copy_platform(a->arena, &entry->platform),
                .digest = arena_str(a->arena, entry->digest),
            };
    }
    facts->platforms = platforms;
    return 0;
}

/* Of what is no image of a container nobody says a platform. */
static int platform_of_image(struct asking *a, const struct oci_manifest *manifest, struct err *err)
{
    struct image_facts *facts = a->facts;
    struct str text;
    struct platform platform = { 0 };
    if (!str_eqz(manifest->config.media_type, MEDIA_OCI_CONFIG) &&
        !str_eqz(manifest->config.media_type, MEDIA_DOCKER_CONFIG))
        return 0;
    if (session_blob(&a->session, &manifest->config, REGISTRY_CONFIG_BYTES_MAX, a->arena, &text,
                     err) < 0)
        return -1;
    if (image_config_read(a->arena, "image config", text, &platform, err) < 0)
        return -1;
    if (platform.os.len == 0 && platform.architecture.len == 0)
        return 0;
    struct image_platform *one = arena_new(a->arena, struct image_platform);
    one->platform = copy_platform(a->arena, &platform);
    one->digest = facts->digest;
    facts->platforms = one;
    facts->platform_count = 1;
    return 0;
}

/* All but the specs; what is known outlives the ask. */
static void borrow_platforms(struct asking *a, const struct image_facts *known)
{
    struct image_platform *platforms =
        arena_array(a->arena, struct image_platform, known->platform_count);
    for (uint32_t i = 0; i < known->platform_count; i++)
        platforms[i] = (struct image_platform){ .platform = known->platforms[i].platform,
                                                .digest = known->platforms[i].digest };
    a->facts->platforms = platforms;
    a->facts->platform_count = known->platform_count;
}

/* --- what the name means --- */

static void set_known(struct asking *a, struct str digest)
{
    const struct image_facts *known = a->ask->maybe_known;
    if (!known || !str_eq(known->digest, digest))
        return;
    a->maybe_known = known;
    a->facts->digest = known->digest;
    a->facts->media_type = known->media_type;
    borrow_platforms(a, known);
}

/* Is it the digest that is known? A digest in the name is what it means. */
static int look_whether_known(struct asking *a, struct str *which, struct err *err)
{
    struct descriptor now;
    if (!a->ask->maybe_known)
        return 0;
    if (a->ask->ref->digest.len == 0) {
        if (session_digest(&a->session, a->arena, &now, err) < 0)
            return -1;
        *which = now.digest;
    }
    set_known(a, *which);
    return 0;
}

static int find_image(struct asking *a, struct err *err)
{
    struct oci_manifest manifest;
    struct descriptor self;
    struct image_facts *facts = a->facts;
    struct str which = reference_which(a->ask->ref);
    if (look_whether_known(a, &which, err) < 0)
        return -1;
    if (a->maybe_known)
        return 0;
    if (session_manifest(&a->session, which, a->arena, &manifest, NULL, &self, err) < 0)
        return -1;
    facts->digest = arena_str(a->arena, self.digest);
    facts->media_type = arena_str(a->arena, self.media_type);
    return manifest.form == MANIFEST_INDEX ? platforms_of_index(a, &manifest, err)
                                           : platform_of_image(a, &manifest, err);
}

/* --- specs --- */

static int check_artifact(const struct oci_manifest *manifest, struct str subject, struct err *err)
{
    if (manifest->form != MANIFEST_IMAGE)
        return err_set(err, ERR_INVALID, "it is an index");
    if (!str_eqz(manifest->artifact_type, COMPAT_ARTIFACT_TYPE))
        return err_set(err, ERR_INVALID, "it is of type %s", STR_SHOWN(manifest->artifact_type));
    if (!str_eq(manifest->subject.digest, subject))
        return err_set(err, ERR_INVALID, "it belongs to %s", STR_SHOWN(manifest->subject.digest));
    if (manifest->count == 0)
        return err_set(err, ERR_INVALID, "it has no layer");
    return 0;
}

static int read_spec(struct asking *a, const struct descriptor *artifact, struct str subject,
                     const struct compat_spec **out, struct err *err)
{
    struct registry *r = a->session.registry;
    struct oci_manifest manifest;
    struct str text;
    AUTO_COMPAT_SPEC spec = NULL;
    uint32_t sets_max = a->ask->sets_max > 0 ? a->ask->sets_max : COMPAT_SETS_MAX;
    if (session_manifest(&a->session, artifact->digest, a->arena, &manifest, NULL, NULL, err) < 0)
        return -1;
    if (check_artifact(&manifest, subject, err) < 0)
        return -1;
    if (!str_eqz(manifest.items[0].media_type, COMPAT_SPEC_MEDIA))
        log_warn(r->maybe_log, "a compatibility spec has an unusual media type",
                 LOG_STR("repository", a->ask->ref->repository),
                 LOG_STR("artifact", artifact->digest),
                 LOG_STR("mediaType", manifest.items[0].media_type));
    if (session_blob(&a->session, &manifest.items[0], COMPAT_SPEC_BYTES_MAX, a->arena, &text, err) <
        0)
        return -1;
    const char *name = arena_str(a->arena, manifest.items[0].digest).p;
    struct compat_spec_options options = { .maybe_pool = r->specs,
                                           .identity = manifest.items[0].digest };
    if (compat_spec_read(name, text, options, &spec, err) < 0)
        return -1;
    if (spec->set_count > sets_max)
        return err_set(err, ERR_CAPACITY, "the spec has %u sets, more than %u", spec->set_count,
                       sets_max);
    *out = take(&spec);
    return 0;
}

/* Is this the image's fault, or does it say nothing of the image? */
static bool is_trouble(enum err_kind kind)
{
    switch (kind) {
    case ERR_NOT_FOUND: /* listed, and not there */
    case ERR_INVALID:
    case ERR_CAPACITY:
        return true;
    case ERR_NONE:
    case ERR_CONFLICT:
    case ERR_GONE:
    case ERR_EXISTS:
    case ERR_UNAVAILABLE:
    case ERR_THROTTLED:
    case ERR_DENIED:
    case ERR_CANCELLED:
    case ERR_INTERNAL:
        return false;
    }
    KV_UNREACHABLE();
}

static int find_spec(struct asking *a, struct str subject, const struct image_spec *maybe_known,
                     struct image_spec *out, struct err *err)
{
    struct referrers referrers;
    struct err why = { 0 };
    if (session_referrers(&a->session, subject, STR(COMPAT_ARTIFACT_TYPE), a->arena, &referrers,
                          err) < 0)
        return -1;
    a->facts->way = referrers.way;
    const struct descriptor *artifact =
        manifest_newest(referrers.items, referrers.count, STR(COMPAT_ARTIFACT_TYPE));
    *out = (struct image_spec){ .artifact = STR(""), .trouble = STR("") };
    if (!artifact)
        return 0;
    out->artifact = arena_str(a->arena, artifact->digest);
    if (maybe_known && maybe_known->maybe_spec && maybe_known->trouble.len == 0 &&
        str_eq(maybe_known->artifact, artifact->digest)) {
        out->maybe_spec = compat_spec_ref(maybe_known->maybe_spec);
        return 0;
    }
    if (read_spec(a, artifact, subject, &out->maybe_spec, &why) == 0)
        return 0;
    if (!is_trouble(why.kind)) {
        if (err)
            *err = why;
        return err_wrap(err, "artifact %s", STR_SHOWN(artifact->digest));
    }
    out->trouble = arena_strf(a->arena, "artifact %.*s: %s", STR_ARG(out->artifact), why.text);
    return 0;
}

static int find_specs(struct asking *a, struct err *err)
{
    struct image_facts *facts = a->facts;
    const struct image_facts *known = a->maybe_known;
    struct image_platform *platforms = (struct image_platform *)facts->platforms; /* still ours */
    if (find_spec(a, facts->digest, known ? &known->spec : NULL, &facts->spec, err) < 0)
        return -1;
    for (uint32_t i = 0; i < facts->platform_count; i++) {
        if (str_eq(platforms[i].digest, facts->digest)) /* the image is its only platform */
            continue;
        if (find_spec(a, platforms[i].digest, known ? &known->platforms[i].spec : NULL,
                      &platforms[i].spec, err) < 0)
            return -1;
    }
    return 0;
}

static void drop_specs(const struct image_facts *facts)
{
    compat_spec_unref(facts->spec.maybe_spec);
    for (uint32_t i = 0; i < facts->platform_count; i++)
        compat_spec_unref(facts->platforms[i].spec.maybe_spec);
}

int image_ask(const struct image_ask *ask, const struct image_facts **out, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct image_facts facts = { 0 };
    struct asking a = {
        .ask = ask,
        .session = registry_session(ask->registry, ask->ref, ask->maybe_keys, "pull"),
        .arena = &arena,
        .facts = &facts,
    };
    int rc = find_image(&a, err);
    if (rc == 0 && !ask->platform_only)
        rc = find_specs(&a, err);
    if (rc == 0 && a.maybe_known && image_facts_equal(&facts, a.maybe_known))
        *out = image_facts_ref(a.maybe_known);
    else if (rc == 0)
        *out = image_facts_copy(&facts);
    drop_specs(&facts);
    return rc;
}
