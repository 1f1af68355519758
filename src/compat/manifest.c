/* Reading what registries say of images.
 *
 * The Content-Type decides what a text is, and the text may not say otherwise: the same bytes must not
 * be an index to one client and an image to another, which would let a digest that somebody approved
 * mean something else. So a text that has the fields of both is refused too.
 *
 * Fields that are not read here may hold anything; those that are have their type or are an error. */
#include "compat/manifest.h"

#include "codec/duration.h"
#include "codec/json.h"
#include "net/digest.h"

#define DOCKER_SCHEMA_1 "application/vnd.docker.distribution.manifest.v1+"
#define CREATED "org.opencontainers.image.created"
#define CREATED_MISSPELT                                                                           \
    "oci.opencontainers.image.created" /* in documentation that people follow */

/* --- fields, and messages that name them --- */

#define WHERE_MAX 48 /* "manifests[1000]" and a field */

struct reader {
    struct arena *arena;
    const char *name;
    struct err *err;
};

static int refuse(const struct reader *r, const char *where, const char *field, const char *why)
{
    return err_set(r->err, ERR_INVALID, "%s: %s%s%s: %s", r->name, where,
                   where[0] && field[0] ? "." : "", field, why);
}

static bool is_absent(const json_val *v)
{
    return !v || json_is_null(v);
}

/* "" if it is absent. */
static int read_text(const struct reader *r, const char *where, const json_val *object,
                     const char *field, struct str *out)
{
    const json_val *v = json_get(object, str_of(field));
    if (!is_absent(v) && !json_is_string(v))
        return refuse(r, where, field, "is not a string");
    *out = is_absent(v) ? STR("") : arena_str(r->arena, json_str(v));
    return 0;
}

static int64_t time_of(const json_val *annotations, const char *key)
{
    int64_t us;
    struct str text = json_str(json_get(annotations, str_of(key)));
    return text.p && time_parse(text, &us, NULL) == 0 && us > 0 ? us : 0;
}

static int64_t created_of(const json_val *object)
{
    const json_val *annotations = json_get(object, STR("annotations"));
    int64_t us = time_of(annotations, CREATED);
    return us ? us : time_of(annotations, CREATED_MISSPELT);
}

/* --- descriptors --- */

/* The kernel's names, which some builders write, as Go's. */
static struct str architecture_of(struct str text)
{
    static const struct {
        const char *kernel;
        struct str go;
    } others[] = {
        { "x86_64", STR("amd64") },
        { "x86-64", STR("amd64") },
        { "aarch64", STR("arm64") },
        { "i386", STR("386") },
    };
    for (size_t i = 0; i < KV_COUNT_OF(others); i++) {
        if (str_eqz(text, others[i].kernel))
            return others[i].go;
    }
    return text;
}

static int read_platform(const struct reader *r, const char *where, const json_val *v,
                         struct platform *out)
{
    if (read_text(r, where, v, "os", &out->os) < 0 ||
        read_text(r, where, v, "architecture", &out->architecture) < 0 ||
        read_text(r, where, v, "variant", &out->variant) < 0)
        return -1;
    out->architecture = architecture_of(out->architecture);
    return 0;
}

static int read_descriptor(const struct reader *r, const char *where, const json_val *v,
                           struct descriptor *out)
{
    const json_val *platform = json_get(v, STR("platform"));
    char platform_where[WHERE_MAX];
    snprintf(platform_where, sizeof platform_where, "%s.platform", where);
    if (!json_is_object(v))
        return refuse(r, where, "", is_absent(v) ? "is missing" : "is not an object");
    if (!is_absent(platform) && !json_is_object(platform))
        return refuse(r, platform_where, "", "is not an object");
    if (read_text(r, where, v, "mediaType", &out->media_type) < 0 ||
        read_text(r, where, v, "digest", &out->digest) < 0 ||
        read_text(r, where, v, "artifactType", &out->artifact_type) < 0 ||
        read_platform(r, platform_where, platform, &out->platform) < 0)
        return -1;
    if (out->media_type.len == 0)
        return refuse(r, where, "mediaType", "is missing");
    if (!digest_is_valid(out->digest, NULL))
        return err_set(r->err, ERR_INVALID, "%s: %s.digest: %s is no sha256 or sha512 digest",
                       r->name, where, STR_SHOWN(out->digest));
    if (!json_i64(json_get(v, STR("size")), &out->size) || out->size < 0)
        return refuse(r, where, "size", "is not a number of bytes");
    out->created_us = created_of(v);
    return 0;
}

static int read_descriptors(const struct reader *r, const json_val *root, const char *field,
                            struct oci_manifest *out)
{
    const json_val *list = json_get(root, str_of(field));
    size_t count = json_count(list);
    if (!list)
        return refuse(r, field, "", "is missing");
    if (!json_is_array(list) && !json_is_null(list)) /* Go writes an empty list as null */
        return refuse(r, field, "", "is not a list");
    if (count > MANIFEST_ENTRIES_MAX)
        return err_set(r->err, ERR_INVALID, "%s: %s: has %zu entries, at most %d are read", r->name,
                       field, count, MANIFEST_ENTRIES_MAX);
    struct descriptor *items = arena_array(r->arena, struct descriptor, count);
    out->items = items;
    json_each_item(list, item) {
        char where[WHERE_MAX];
        snprintf(where, sizeof where, "%s[%u]", field, out->count);
        if (read_descriptor(r, where, item, &items[out->count]) < 0)
            return -1;
        out->count++;
    }
    return 0;
}

/* --- what a text is --- */

/* Without parameters, in lower case. */
static struct str bare_type(struct arena *arena, struct str content_type)
{
    struct str head, parameters;
    str_cut(content_type, ';', &head, &parameters);
    head = str_trim(head);
    char *lower = arena_alloc(arena, head.len + 1);
    for (size_t i = 0; i < head.len; i++)
        lower[i] = char_lower(head.p[i]);
    return (struct str){ lower, head.len };
}

static bool form_of(struct str media_type, enum manifest_form *out)
{
    bool is_index = str_eqz(media_type, MEDIA_OCI_INDEX) || str_eqz(media_type, MEDIA_DOCKER_LIST);
    *out = is_index ? MANIFEST_INDEX : MANIFEST_IMAGE;
    return is_index || str_eqz(media_type, MEDIA_OCI_MANIFEST) ||
           str_eqz(media_type, MEDIA_DOCKER_MANIFEST);
}

/* Of a text that does not tell its own type, sent as some JSON. */
static struct str guess_type(const json_val *root)
{
    return json_get(root, STR("manifests")) ? STR(MEDIA_OCI_INDEX) : STR(MEDIA_OCI_MANIFEST);
}

static int find_form(const struct reader *r, const json_val *root, struct str sent,
                     struct oci_manifest *out)
{
    struct str told;
    int64_t version;
    const json_val *schema = json_get(root, STR("schemaVersion"));
    if (read_text(r, "", root, "mediaType", &told) < 0)
        return -1;
    bool is_any_json = sent.len == 0 || str_eqz(sent, "application/json");
    if (!is_any_json && told.len && !str_eq(sent, told))
        return err_set(r->err, ERR_INVALID, "%s: was sent as %s, but says that it is %s", r->name,
                       STR_SHOWN(sent), STR_SHOWN(told));
    bool is_1 = json_i64(schema, &version) && version == 1;
    out->media_type = !is_any_json ? sent : told.len ? told : guess_type(root);
    if (is_1 || str_starts(out->media_type, STR(DOCKER_SCHEMA_1)))
        return err_set(r->err, ERR_INVALID,
                       "%s: is a docker manifest of schema 1, which runtimes no longer take: push "
                       "the image again",
                       r->name);
    if (!form_of(out->media_type, &out->form))
        return err_set(r->err, ERR_INVALID,
                       "%s: is of type %s, expected an image index or manifest", r->name,
                       STR_SHOWN(out->media_type));
    if (!is_absent(schema) && !(json_i64(schema, &version) && version == 2))
        return refuse(r, "schemaVersion", "", "is not 2");
    return 0;
}

/* --- manifests --- */

static bool is_image_config(struct str media_type)
{
    return str_eqz(media_type, "application/vnd.oci.image.config.v1+json") ||
           str_eqz(media_type, "application/vnd.docker.container.image.v1+json") ||
           str_eqz(media_type, MEDIA_OCI_EMPTY);
}

static int read_image(const struct reader *r, const json_val *root, struct oci_manifest *out)
{
    if (json_get(root, STR("manifests")))
        return refuse(r, "manifests", "", "is of an index, but this is an image");
    if (read_descriptor(r, "config", json_get(root, STR("config")), &out->config) < 0)
        return -1;
    if (out->artifact_type.len == 0 && !is_image_config(out->config.media_type))
        out->artifact_type = out->config.media_type;
    return read_descriptors(r, root, "layers", out);
}

static int read_index(const struct reader *r, const json_val *root, struct oci_manifest *out)
{
    if (json_get(root, STR("config")) || json_get(root, STR("layers")))
        return refuse(r, json_get(root, STR("config")) ? "config" : "layers", "",
                      "is of an image, but this is an index");
    return read_descriptors(r, root, "manifests", out);
}

static int read_manifest(const struct reader *r, const json_val *root, struct str content_type,
                         struct oci_manifest *out)
{
    const json_val *subject = json_get(root, STR("subject"));
    if (!json_is_object(root))
        return err_set(r->err, ERR_INVALID, "%s: is not an object", r->name);
    if (find_form(r, root, bare_type(r->arena, content_type), out) < 0 ||
        read_text(r, "", root, "artifactType", &out->artifact_type) < 0)
        return -1;
    out->subject.digest = STR("");
    if (!is_absent(subject) && read_descriptor(r, "subject", subject, &out->subject) < 0)
        return -1;
    out->created_us = created_of(root);
    return out->form == MANIFEST_IMAGE ? read_image(r, root, out) : read_index(r, root, out);
}

static int read_json(const char *name, struct str text, struct doc *out, struct err *err)
{
    if (text.len > MANIFEST_BYTES_MAX)
        return err_set(err, ERR_INVALID, "%s: has %zu bytes, at most %zu are read", name, text.len,
                       MANIFEST_BYTES_MAX);
    return json_read(text, out, err) < 0 ? err_wrap(err, "%s", name) : 0;
}

int manifest_read(struct arena *arena, const char *name, struct str media_type, struct str text,
                  struct oci_manifest *out, struct err *err)
{
    struct reader r = { arena, name, err };
    struct oci_manifest found = { 0 };
    struct doc doc;
    if (read_json(name, text, &doc, err) < 0)
        return -1;
    int rc = read_manifest(&r, doc.root, media_type, &found);
    doc_done(&doc);
    if (rc == 0)
        *out = found;
    return rc;
}

int image_config_read(struct arena *arena, const char *name, struct str text, struct platform *out,
                      struct err *err)
{
    struct reader r = { arena, name, err };
    struct platform found;
    struct doc doc;
    if (read_json(name, text, &doc, err) < 0)
        return -1;
    int rc = json_is_object(doc.root) ? read_platform(&r, "", doc.root, &found)
                                      : err_set(err, ERR_INVALID, "%s: is not an object", name);
    doc_done(&doc);
    if (rc == 0)
        *out = found;
    return rc;
}

const struct descriptor *manifest_newest(const struct descriptor *items, uint32_t count,
                                         struct str artifact_type)
{
    const struct descriptor *best = NULL;
    for (uint32_t i = 0; i < count; i++) {
        const struct descriptor *it = &items[i];
        if (!str_eq(it->artifact_type, artifact_type))
            continue;
        if (!best || it->created_us > best->created_us ||
            (it->created_us == best->created_us && str_cmp(it->digest, best->digest) > 0))
            best = it;
    }
    return best;
}

bool descriptor_is_image(const struct descriptor *entry)
{
    enum manifest_form form;
    return form_of(entry->media_type, &form) && form == MANIFEST_IMAGE &&
           entry->artifact_type.len == 0 && !str_eqz(entry->platform.os, "unknown");
}

/* --- writing --- */

/* The members in a fixed order, so that equal manifests have equal digests. */
static json_mut *new_descriptor(struct json_build *b, struct str media_type, int64_t size,
                                struct str digest)
{
    json_mut *v = json_new_object(b);
    json_set_str(b, v, "mediaType", media_type);
    json_set_i64(b, v, "size", size);
    json_set_str(b, v, "digest", digest);
    return v;
}

static void set_created(struct json_build *b, json_mut *object, int64_t created_us)
{
    char text[TIME_TEXT_MAX];
    if (created_us == 0)
        return;
    size_t len = time_format(created_us, text);
    json_mut *annotations = json_mut_object(b, object, STR("annotations"));
    json_set_str(b, annotations, CREATED, (struct str){ text, len });
}

void artifact_manifest_write(const struct descriptor *subject, struct str spec_digest,
                             size_t spec_size, int64_t created_us, struct buf *out)
{
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = json_new_object(&b), *layers = json_new_array(&b);
    json_set_i64(&b, root, "schemaVersion", 2);
    json_set_str(&b, root, "mediaType", STR(MEDIA_OCI_MANIFEST));
    json_set_str(&b, root, "artifactType", STR(COMPAT_ARTIFACT_TYPE));
    json_set(&b, root, STR("config"),
             new_descriptor(&b, STR(MEDIA_OCI_EMPTY), 2, STR(EMPTY_DIGEST)));
    json_push(&b, layers,
              new_descriptor(&b, STR(COMPAT_SPEC_MEDIA), (int64_t)spec_size, spec_digest));
    json_set(&b, root, STR("layers"), layers);
    json_set(&b, root, STR("subject"),
             new_descriptor(&b, subject->media_type, subject->size, subject->digest));
    set_created(&b, root, created_us);
    json_write_mut(root, out);
}

static json_mut *new_index(struct json_build *b)
{
    json_mut *root = json_new_object(b);
    json_set_i64(b, root, "schemaVersion", 2);
    json_set_str(b, root, "mediaType", STR(MEDIA_OCI_INDEX));
    json_set(b, root, STR("manifests"), json_new_array(b));
    return root;
}

/* May one more be added to it? `*has`: the digest is there already. */
static int check_before(const char *name, struct str before, struct str digest, bool *has,
                        struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct oci_manifest index;
    if (manifest_read(&arena, name, STR(MEDIA_OCI_INDEX), before, &index, err) < 0)
        return -1;
    for (uint32_t i = 0; i < index.count; i++)
        *has = *has || str_eq(index.items[i].digest, digest);
    if (!*has && index.count == MANIFEST_ENTRIES_MAX)
        return err_set(err, ERR_INVALID, "%s: has %d entries already, nobody reads more", name,
                       MANIFEST_ENTRIES_MAX);
    return 0;
}

static json_mut *copy_before(struct json_build *b, struct str before)
{
    struct doc doc;
    int rc = json_read(before, &doc, NULL);
    KV_ASSERT(rc == 0); /* check_before has read it */
    json_mut *root = json_copy(b, doc.root);
    doc_done(&doc);
    if (json_mut_is_null(json_mut_get(root, STR("manifests"))))
        json_set(b, root, STR("manifests"), json_new_array(b));
    return root;
}

int referrers_index_write(const char *name, struct str maybe_before,
                          const struct descriptor *artifact, struct buf *out, struct err *err)
{
    bool has = false;
    if (maybe_before.len && check_before(name, maybe_before, artifact->digest, &has, err) < 0)
        return -1;
    AUTO_JSON_BUILD b;
    json_build_init(&b);
    json_mut *root = maybe_before.len ? copy_before(&b, maybe_before) : new_index(&b);
    if (!has) {
        json_mut *entry =
            new_descriptor(&b, artifact->media_type, artifact->size, artifact->digest);
        if (artifact->artifact_type.len)
            json_set_str(&b, entry, "artifactType", artifact->artifact_type);
        set_created(&b, entry, artifact->created_us);
        json_push(&b, json_mut_get(root, STR("manifests")), entry);
    }
    json_write_mut(root, out);
    return 0;
}
