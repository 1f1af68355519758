/* karve image push: attach a compatibility spec to an image.
 *
 * The spec is read strictly and all of it is checked before anything is sent. Then its bytes, and an artifact
 * manifest by its digest, go into the image's repository. Nothing that is there is changed: the newest artifact
 * counts, so ours is dated after all others, whatever the clocks say.
 *
 * A registry without a referrers API finds artifacts by a tag whose index lists them, which whoever pushes keeps
 * up: read, add, write. Two who do that at once can lose an entry, and registries implement nothing against it. So
 * the list is read right before it is written, and read back until our entry is in it: what remains is somebody
 * who read before us and writes after we looked.
 */
#include "cmd/image_inner.h"

#include "base/file.h"
#include "codec/duration.h"
#include "net/digest.h"

#include <string.h>

#define LIST_TRIES_MAX 8

struct pushing {
    struct image_work *w;
    const char *path;
    struct buf text;
    const struct compat_spec *spec;
    char spec_digest[DIGEST_TEXT_MAX];

    struct descriptor subject;               /* what it is attached to */
    const struct image_platform *maybe_only; /* of --platform; the facts' */

    enum referrers_way way;
    bool is_there; /* an equal spec is what counts already */
    struct buf manifest;
    char artifact[DIGEST_TEXT_MAX];
    int64_t created_us;
    struct buf tag; /* of the list; "": the registry keeps it */
};

/* --- the spec --- */

static int read_spec(struct pushing *p)
{
    const char *paths[2];
    struct err err;
    size_t count = flag_values(p->w->inv, "filename", paths, KV_COUNT_OF(paths));
    if (count != 1)
        return print_complaint(p->w->name, EXIT_USAGE,
                               count ? "one spec at a time: -f was given more than once"
                                     : "name the spec with -f (- is standard input)");
    p->path = paths[0];
    if (file_read(p->path, COMPAT_SPEC_BYTES_MAX, &p->text, &err) < 0)
        return print_complaint(p->w->name, err.kind == ERR_INVALID ? EXIT_NO : EXIT_ENVIRONMENT,
                               "%s", err.text);
    const char *name = strcmp(p->path, "-") == 0 ? "stdin" : p->path;
    if (compat_spec_read(name, buf_str(&p->text), (struct compat_spec_options){ .strict = true },
                         &p->spec, &err) < 0)
        return print_complaint(p->w->name, EXIT_NO, "%s", err.text);
    if (digest_text(DIGEST_SHA256, buf_str(&p->text), p->spec_digest, &err) < 0)
        return print_complaint(p->w->name, EXIT_ENVIRONMENT, "%s", err.text);
    return EXIT_DONE;
}

/* --- what it is for --- */

static bool platform_is(const struct platform *p, struct str os, struct str architecture,
                        struct str variant)
{
    return str_eq(p->os, os) && str_eq(p->architecture, architecture) &&
           (!variant.len || str_eq(p->variant, variant));
}

static int complain_platform(struct pushing *p, const struct image_facts *facts, struct str wanted)
{
    AUTO_BUF has = { 0 };
    for (uint32_t i = 0; i < facts->platform_count; i++) {
        buf_addz(&has, i ? ", " : "");
        image_platform_format(&facts->platforms[i].platform, &has);
    }
    return print_complaint(p->w->name, EXIT_NO, "the image is not built for %s; it is for %s",
                           STR_SHOWN(wanted), has.len ? has.p : "no platform that it tells");
}

static int find_platform(struct pushing *p, const struct image_facts *facts, struct str wanted)
{
    struct str os, rest, architecture, variant = STR("");
    if (!str_cut(wanted, '/', &os, &rest) || !os.len || !rest.len)
        return print_complaint(p->w->name, EXIT_USAGE, "--platform %s: expected OS/ARCH[/VARIANT]",
                               STR_SHOWN(wanted));
    str_cut(rest, '/', &architecture, &variant);
    for (uint32_t i = 0; i < facts->platform_count; i++) {
        if (!platform_is(&facts->platforms[i].platform, os, architecture, variant))
            continue;
        p->maybe_only = &facts->platforms[i];
        return EXIT_DONE;
    }
    return complain_platform(p, facts, wanted);
}

/* The descriptor of the manifest that the spec is attached to; its bytes are read, so that it is true. */
static int find_subject(struct pushing *p, const struct image_facts *facts)
{
    const struct image_work *w = p->w;
    const char *platform = flag_value(w->inv, "platform");
    struct reference ref = w->ref;
    struct oci_manifest manifest;
    struct err err;
    int code = platform ? find_platform(p, facts, str_of(platform)) : EXIT_DONE;
    if (code != EXIT_DONE)
        return code;
    ref.digest = p->maybe_only ? p->maybe_only->digest : facts->digest;
    if (registry_manifest(w->setup.maybe_registry, &ref, w->setup.maybe_keys, &p->w->arena,
                          &manifest, NULL, &p->subject, &err) < 0)
        return image_complain(w, &err);
    if (str_eqz(manifest.artifact_type, COMPAT_ARTIFACT_TYPE))
        return print_complaint(w->name, EXIT_NO,
                               "that is a compatibility artifact itself, not an image");
    return EXIT_DONE;
}

/* --- what is attached already --- */

static int look_at_newest(struct pushing *p, const struct descriptor *newest)
{
    const struct image_work *w = p->w;
    struct reference ref = w->ref;
    struct oci_manifest manifest;
    struct err err;
    ref.digest = newest->digest;
    if (registry_manifest(w->setup.maybe_registry, &ref, w->setup.maybe_keys, &p->w->arena,
                          &manifest, NULL, NULL, &err) < 0)
        return err.kind == ERR_NOT_FOUND || err.kind == ERR_INVALID
                   ? EXIT_DONE /* ours replaces it */
                   : image_complain(w, &err);
    p->is_there = manifest.form == MANIFEST_IMAGE && manifest.count > 0 &&
                  str_eqz(manifest.items[0].digest, p->spec_digest);
    if (p->is_there && !flag_given(w->inv, "force")) {
        memcpy(p->artifact, newest->digest.p, newest->digest.len);
        p->created_us = manifest.created_us;
    }
    return EXIT_DONE;
}

static int look_at_others(struct pushing *p)
{
    const struct image_work *w = p->w;
    struct referrers referrers;
    struct err err;
    if (registry_referrers(w->setup.maybe_registry, &w->ref, w->setup.maybe_keys, p->subject.digest,
                           STR(COMPAT_ARTIFACT_TYPE), &p->w->arena, &referrers, &err) < 0)
        return image_complain(w, &err);
    p->way = referrers.way;
    if (p->way == REFERRERS_TAG)
        referrers_tag(p->subject.digest, &p->tag);
    p->created_us = clock_wall_us(clock_real()) / 1000000 * 1000000; /* as it is written */
    const struct descriptor *newest =
        manifest_newest(referrers.items, referrers.count, STR(COMPAT_ARTIFACT_TYPE));
    if (!newest)
        return EXIT_DONE;
    if (p->created_us <= newest->created_us)
        p->created_us = (newest->created_us / 1000000 + 1) * 1000000;
    return look_at_newest(p, newest);
}

/* --- pushing --- */

/* The list under the tag, as it is now; "" if there is none. */
static int read_list(struct pushing *p, struct reference *ref, struct str *text, bool *has_ours,
                     struct err *err)
{
    struct oci_manifest list;
    *has_ours = false;
    *text = STR("");
    if (registry_manifest(p->w->setup.maybe_registry, ref, p->w->setup.maybe_keys, &p->w->arena,
                          &list, text, NULL, err) < 0)
        return err->kind == ERR_NOT_FOUND ? 0 : -1;
    for (uint32_t i = 0; list.form == MANIFEST_INDEX && i < list.count; i++)
        *has_ours |= str_eqz(list.items[i].digest, p->artifact);
    return 0;
}

static int list_artifact(struct pushing *p, struct err *err)
{
    const struct image_work *w = p->w;
    const struct descriptor artifact = { .media_type = STR(MEDIA_OCI_MANIFEST),
                                         .digest = str_of(p->artifact),
                                         .size = (int64_t)p->manifest.len,
                                         .artifact_type = STR(COMPAT_ARTIFACT_TYPE),
                                         .created_us = p->created_us };
    struct reference ref = w->ref;
    ref.digest = STR("");
    ref.tag = buf_str(&p->tag);
    for (uint32_t tries = 0; tries <= LIST_TRIES_MAX; tries++) {
        AUTO_BUF index = { 0 };
        struct str before;
        bool has_ours;
        if (read_list(p, &ref, &before, &has_ours, err) < 0)
            return -1;
        if (has_ours)
            return 0;
        if (referrers_index_write(p->tag.p, before, &artifact, &index, err) < 0 ||
            registry_push_manifest(w->setup.maybe_registry, &ref, w->setup.maybe_keys, ref.tag,
                                   STR(MEDIA_OCI_INDEX), buf_str(&index), NULL, err) < 0)
            return -1;
    }
    return err_set(err, ERR_CONFLICT,
                   "the artifact is pushed, but others keep changing the tag %s that lists it: "
                   "try again",
                   p->tag.p);
}

static int push_all(struct pushing *p, struct err *err)
{
    const struct image_work *w = p->w;
    struct registry *r = w->setup.maybe_registry;
    const struct keyring *keys = w->setup.maybe_keys;
    bool lists_itself = false;
    if (registry_push_blob(r, &w->ref, keys, STR(EMPTY_DIGEST), STR("{}"), err) < 0 ||
        registry_push_blob(r, &w->ref, keys, str_of(p->spec_digest), buf_str(&p->text), err) < 0 ||
        registry_push_manifest(r, &w->ref, keys, str_of(p->artifact), STR(MEDIA_OCI_MANIFEST),
                               buf_str(&p->manifest), &lists_itself, err) < 0)
        return -1;
    if (lists_itself) {
        p->way = REFERRERS_API;
        buf_clear(&p->tag);
        return 0;
    }
    p->way = REFERRERS_TAG;
    buf_clear(&p->tag);
    referrers_tag(p->subject.digest, &p->tag);
    return list_artifact(p, err);
}

/* --- what was done --- */

enum push_state { PUSHED, PUSH_NOT_NEEDED, PUSH_WOULD };

static void print_text(const struct pushing *p, enum push_state state, struct buf *out)
{
    static const char *const words[] = { "is now attached", "is attached already",
                                         "would be attached" };
    char created[TIME_TEXT_MAX];
    buf_addf(out, "%s %s to %.*s/%.*s", strcmp(p->path, "-") == 0 ? "the spec" : p->path,
             words[state], STR_ARG(p->w->ref.registry), STR_ARG(p->w->ref.repository));
    if (p->maybe_only) {
        buf_addz(out, ", for ");
        image_platform_format(&p->maybe_only->platform, out);
    }
    buf_addf(out, "\n  image     %.*s\n  spec      %s, %zu bytes, %u set%s\n",
             STR_ARG(p->subject.digest), p->spec_digest, p->text.len, p->spec->set_count,
             p->spec->set_count == 1 ? "" : "s");
    if (state != PUSH_WOULD)
        buf_addf(out, "  artifact  %s\n", p->artifact);
    if (state != PUSH_WOULD && p->created_us) {
        size_t len = time_format(p->created_us, created);
        buf_addf(out, "  created   %.*s\n", (int)len, created);
    }
    if (p->way == REFERRERS_TAG)
        buf_addf(out, "  listed by the tag %s\n", p->tag.p);
    else
        buf_addz(out, "  listed by the registry's referrers API\n");
}

static void print_json(const struct pushing *p, enum push_state state, struct buf *out)
{
    static const char *const words[] = { "attached", "already-attached", "dry-run" };
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_set_str(&b, root, "reference", p->w->full);
    json_set_str(&b, root, "state", str_of(words[state]));
    json_set_str(&b, root, "subject", p->subject.digest);
    if (p->maybe_only) {
        AUTO_BUF platform = { 0 };
        image_platform_format(&p->maybe_only->platform, &platform);
        json_set_str(&b, root, "platform", buf_str(&platform));
    } else {
        json_set(&b, root, STR("platform"), json_new_null(&b));
    }
    json_set_str(&b, root, "spec", str_of(p->spec_digest));
    json_set_i64(&b, root, "size", (int64_t)p->text.len);
    json_set_i64(&b, root, "sets", p->spec->set_count);
    bool made = state != PUSH_WOULD;
    char created[TIME_TEXT_MAX];
    size_t len = time_format(p->created_us, created);
    json_set(&b, root, STR("artifact"),
             made ? json_new_str(&b, str_of(p->artifact)) : json_new_null(&b));
    json_set(&b, root, STR("created"),
             made && p->created_us ? json_new_str(&b, (struct str){ created, len })
                                   : json_new_null(&b));
    json_set_str(&b, root, "referrers", p->way == REFERRERS_API ? STR("api") : STR("tag"));
    json_set(&b, root, STR("tag"),
             p->way == REFERRERS_TAG ? json_new_str(&b, buf_str(&p->tag)) : json_new_null(&b));
    json_write_pretty(root, out);
    buf_addc(out, '\n');
}

static int finish(const struct pushing *p, enum push_state state)
{
    AUTO_BUF out = { 0 };
    if (p->w->json)
        print_json(p, state, &out);
    else
        print_text(p, state, &out);
    return print_out(&out, "karve image push", EXIT_DONE);
}

static int run(struct pushing *p, const struct image_facts *facts)
{
    struct err err;
    int code;
    if ((code = find_subject(p, facts)) != EXIT_DONE || (code = look_at_others(p)) != EXIT_DONE)
        return code;
    if (p->is_there && !flag_given(p->w->inv, "force"))
        return finish(p, PUSH_NOT_NEEDED);
    if (flag_given(p->w->inv, "dry-run"))
        return finish(p, PUSH_WOULD);
    artifact_manifest_write(&p->subject, str_of(p->spec_digest), p->text.len, p->created_us,
                            &p->manifest);
    if (digest_text(DIGEST_SHA256, buf_str(&p->manifest), p->artifact, &err) < 0 ||
        push_all(p, &err) < 0)
        return print_complaint(p->w->name, EXIT_ENVIRONMENT, "%s", err.text);
    return finish(p, PUSHED);
}

int image_push(struct image_work *w)
{
    AUTO_IMAGE_FACTS facts = NULL;
    struct pushing p = { .w = w };
    int code = read_spec(&p);
    if (code == EXIT_DONE)
        code = image_look_up(w, true, &facts);
    if (code == EXIT_DONE)
        code = run(&p, facts);
    compat_spec_unref(p.spec);
    buf_done(&p.text);
    buf_done(&p.manifest);
    buf_done(&p.tag);
    return code;
}
