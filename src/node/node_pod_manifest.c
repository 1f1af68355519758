/* A manifest made a static pod of this node: read, checked as the API server would, freed of what
 * only an API server can resolve, given its names, and decoded as any pod.
 *
 * The uid is of what is written, not of its formatting: comments and the order of members may
 * change under a running pod. It is of what is written, not of what was completed: a new version of
 * this program, with one default more, leaves running pods alone. */
#include "codec/duration.h"
#include "codec/yaml.h"
#include "node/node_pod_inner.h"

#include <stdio.h>

#define UID_TEXT_MAX 33 /* two hashes of 64 bits in hexadecimal, and NUL */

#define ANNOTATION_CONFIG_HASH "kubernetes.io/config.hash"
#define ANNOTATION_CONFIG_SOURCE "kubernetes.io/config.source"
#define ANNOTATION_CONFIG_MIRROR "kubernetes.io/config.mirror"

/* --- what refers to objects of the API --- */

static struct path field_at(const struct path *up, const char *name)
{
    return (struct path){ .up = up, .name = str_of(name) };
}

static struct path item_at(const struct path *up, uint32_t ix)
{
    return (struct path){ .up = up, .index = ix };
}

static bool says_nothing(const json_val *v)
{
    return !v || json_is_null(v) || (json_is_array(v) && json_count(v) == 0) ||
           (json_is_string(v) && json_str(v).len == 0);
}

/* None of the members (NULL-terminated) may be there. */
static void refuse_members(struct report *report, const json_val *object, const struct path *path,
                           const char *const *names)
{
    for (; *names; names++) {
        const json_val *v = json_get(object, str_of(*names));
        struct path here = field_at(path, *names);
        if (!says_nothing(v))
            report_add(report, PROBLEM_ERROR, &here, v,
                       "refers to an object of the API server, which a static pod may not");
    }
}

static void check_env_refs(struct report *report, const json_val *container,
                           const struct path *path)
{
    static const char *const of_value[] = { "configMapKeyRef", "secretKeyRef", NULL };
    static const char *const of_all[] = { "configMapRef", "secretRef", NULL };
    struct path env = field_at(path, "env"), env_from = field_at(path, "envFrom");
    uint32_t ix = 0;
    json_each_item(json_get(container, STR("env")), var) {
        struct path at = item_at(&env, ix++), from = field_at(&at, "valueFrom");
        refuse_members(report, json_get(var, STR("valueFrom")), &from, of_value);
    }
    ix = 0;
    json_each_item(json_get(container, STR("envFrom")), from) {
        struct path at = item_at(&env_from, ix++);
        refuse_members(report, from, &at, of_all);
    }
}

static void check_volume_refs(struct report *report, const json_val *volume,
                              const struct path *path)
{
    static const char *const of_volume[] = { "configMap", "secret",    "persistentVolumeClaim",
                                             "ephemeral", "glusterfs", "azureFile",
                                             NULL };
    static const char *const of_driver[] = { "secretRef", "nodePublishSecretRef", NULL };
    static const char *const of_projection[] = { "configMap",           "secret",
                                                 "serviceAccountToken", "clusterTrustBundle",
                                                 "podCertificate",      NULL };
    refuse_members(report, volume, path, of_volume);
    json_each_member(volume, key, source) {
        struct path at = { .up = path, .name = json_key(key) };
        struct path sources = field_at(&at, "sources");
        uint32_t ix = 0;
        refuse_members(report, source, &at, of_driver);
        json_each_item(json_get(source, STR("sources")), projection) {
            struct path here = item_at(&sources, ix++);
            refuse_members(report, projection, &here, of_projection);
        }
    }
}

static void check_refs(struct report *report, const json_val *spec)
{
    static const char *const of_spec[] = { "serviceAccountName", "serviceAccount",
                                           "imagePullSecrets", "resourceClaims", NULL };
    static const char *const lists[] = { "initContainers", "containers", "ephemeralContainers" };
    struct path path = { .name = STR("spec") }, volumes = field_at(&path, "volumes");
    uint32_t ix = 0;
    refuse_members(report, spec, &path, of_spec);
    for (size_t i = 0; i < KV_COUNT_OF(lists); i++) {
        struct path list = field_at(&path, lists[i]);
        ix = 0;
        json_each_item(json_get(spec, str_of(lists[i])), container) {
            struct path at = item_at(&list, ix++);
            check_env_refs(report, container, &at);
        }
    }
    ix = 0;
    json_each_item(json_get(spec, STR("volumes")), volume) {
        struct path at = item_at(&volumes, ix++);
        check_volume_refs(report, volume, &at);
    }
}

/* --- what is wrong with it --- */

struct manifest_text {
    const char *path;
    const struct doc *doc;
};

static int refuse_at(const struct manifest_text *m, const json_val *at, struct err *err,
                     const char *what)
{
    struct text_pos pos = doc_position(m->doc, at ? at : m->doc->root);
    return err_set(err, ERR_INVALID, "%s:%u:%u: %s", m->path, pos.line, pos.col, what);
}

/* The first error in the text speaks for all. */
static int refuse_report(const struct manifest_text *m, const struct report *report,
                         struct err *err)
{
    const struct problem *first = NULL;
    struct text_pos first_pos = { 0 };
    vec_each(&report->problems, struct problem, p) {
        struct text_pos pos = doc_position(m->doc, p->at ? p->at : m->doc->root);
        bool earlier =
            pos.line < first_pos.line || (pos.line == first_pos.line && pos.col < first_pos.col);
        if (p->severity == PROBLEM_ERROR && (!first || earlier)) {
            first = p;
            first_pos = pos;
        }
    }
    if (!first) /* a thousand warnings came before it */
        return refuse_at(m, NULL, err, "has more problems than are kept");
    AUTO_BUF what = { 0 };
    if (first->path.len)
        buf_addf(&what, "%.*s: ", STR_ARG(first->path));
    buf_add(&what, first->what);
    if (report->error_count > 1)
        buf_addf(&what, " (and %u more)", report->error_count - 1);
    return err_set(err, ERR_INVALID, "%s:%u:%u: %s", m->path, first_pos.line, first_pos.col,
                   what.p);
}

static int check_kind(const struct manifest_text *m, struct err *err)
{
    const json_val *root = m->doc->root;
    const json_val *kind = json_get(root, STR("kind"));
    const json_val *version = json_get(root, STR("apiVersion"));
    const json_val *name = json_path(root, "metadata.name");
    if (!json_is_object(root) || !json_str(kind).len)
        return refuse_at(m, kind, err, "kind: missing or no text, expected a Pod");
    if (!str_eq(json_str(kind), STR("Pod"))) {
        AUTO_BUF what = { 0 };
        buf_addf(&what, "kind: %s is not Pod; a manifest of this folder holds exactly one Pod",
                 STR_SHOWN(json_str(kind)));
        return refuse_at(m, kind, err, what.p);
    }
    if (!str_eq(json_str(version), STR("v1")))
        return refuse_at(m, version ? version : root, err, "apiVersion: expected v1");
    if (!json_str(name).len) /* generateName has nobody to fill it in */
        return refuse_at(m, name ? name : root, err, "metadata.name: missing or no text");
    return 0;
}

/* --- a static pod --- */

/* The same for the same content, node and file, in every run. */
static void uid_of(struct str content, const struct static_pod_options *options,
                   char out[UID_TEXT_MAX])
{
    AUTO_BUF text = { 0 };
    buf_add(&text, content);
    buf_addc(&text, '\0');
    buf_add(&text, options->node_name);
    buf_addc(&text, '\0');
    buf_addz(&text, options->path);
    snprintf(out, UID_TEXT_MAX, "%016llx%016llx",
             (unsigned long long)kv_hash_salted(text.p, text.len, 1),
             (unsigned long long)kv_hash_salted(text.p, text.len, 2));
}

static void name_static(struct json_build *b, json_mut *meta,
                        const struct static_pod_options *options)
{
    AUTO_BUF name = { 0 };
    buf_add(&name, json_mut_str(json_mut_get(meta, STR("name"))));
    buf_addc(&name, '-');
    for (size_t i = 0; i < options->node_name.len; i++)
        buf_addc(&name, char_lower(options->node_name.p[i]));
    json_set_str(b, meta, "name", buf_str(&name));
    if (!json_mut_str(json_mut_get(meta, STR("namespace"))).len)
        json_set_str(b, meta, "namespace", STR("default"));
}

/* What a copy from an API server brings along is not the file's to say: such a pod ends when its
 * file goes, it mirrors nothing, and its status is ours to find out. */
static void make_static(struct json_build *b, json_mut *root, struct str content,
                        const struct static_pod_options *options)
{
    json_mut *meta = json_mut_object(b, root, STR("metadata"));
    json_mut *annotations = json_mut_object(b, meta, STR("annotations"));
    json_mut *spec = json_mut_object(b, root, STR("spec"));
    json_mut *tolerations = json_mut_get(spec, STR("tolerations"));
    json_mut *all = json_new_object(b), *status = json_new_object(b);
    struct str given = json_mut_str(json_mut_get(meta, STR("uid")));
    char uid[UID_TEXT_MAX], seen[TIME_TEXT_MAX];

    name_static(b, meta, options);
    uid_of(content, options, uid);
    time_format_micro(options->seen_us, seen);
    if (!given.len)
        json_set_str(b, meta, "uid", str_of(uid));
    json_set_str(b, annotations, ANNOTATION_CONFIG_HASH, given.len ? given : str_of(uid));
    json_set_str(b, annotations, ANNOTATION_CONFIG_SEEN, str_of(seen));
    json_set_str(b, annotations, ANNOTATION_CONFIG_SOURCE, STR("file"));
    json_mut_remove(annotations, STR(ANNOTATION_CONFIG_MIRROR));
    json_mut_remove(meta, STR("deletionTimestamp"));
    json_mut_remove(meta, STR("deletionGracePeriodSeconds"));

    json_set_str(b, spec, "nodeName", options->node_name);
    json_set_str(b, all, "operator", STR("Exists"));
    json_set_str(b, all, "effect", STR("NoExecute"));
    if (!tolerations || json_mut_is_null(tolerations)) {
        tolerations = json_new_array(b);
        json_set(b, spec, STR("tolerations"), tolerations);
    }
    json_push(b, tolerations, all);
    json_set_str(b, status, "phase", STR("Pending"));
    json_set(b, root, STR("status"), status);
}

static int admit(const struct manifest_text *m, struct static_pod_options options,
                 const struct node_pod **out, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    AUTO_JSON_BUILD b = { 0 };
    AUTO_BUF content = { 0 };
    AUTO_BUF text = { 0 };
    struct report report = { .arena = &arena };
    struct doc doc;

    json_build_init(&b);
    json_write_canonical(m->doc->root, &content);
    if (content.len > NODE_POD_BYTES_MAX) /* grown by aliases */
        return refuse_at(m, NULL, err, "is too large, expected at most 3 MiB as JSON");
    json_mut *root = object_admit(&pod_kind, &b, m->doc->root, NULL, &report);
    check_refs(&report, json_get(m->doc->root, STR("spec")));
    if (report.error_count > 0) {
        refuse_report(m, &report, err);
        report_done(&report);
        return -1;
    }
    report_done(&report);
    make_static(&b, root, buf_str(&content), &options);
    json_write_mut(root, &text);

    struct err why;
    if (json_read_trusted(buf_str(&text), &doc, &why) < 0 ||
        node_pod_decode(&doc, POD_FROM_FILE, out, &why) < 0)
        return refuse_at(m, NULL, err, why.text);
    return 0;
}

int node_pod_from_manifest(struct str text, struct static_pod_options options,
                           const struct node_pod **out, struct err *err)
{
    struct docs docs;
    struct text_pos at = { 1, 1 };
    struct err why;
    if (text.len > NODE_POD_BYTES_MAX)
        return err_set(err, ERR_INVALID, "%s: has %zu bytes, expected at most %zu", options.path,
                       text.len, NODE_POD_BYTES_MAX);
    if (yaml_read(text, &docs, &at, &why) < 0)
        return err_set(err, ERR_INVALID, "%s:%u:%u: %s", options.path, at.line, at.col, why.text);

    struct manifest_text m = { options.path, docs.items };
    int rc;
    if (docs.count == 0) {
        rc = err_set(err, ERR_INVALID, "%s: is empty, expected a Pod", options.path);
    } else if (docs.count > 1) {
        m.doc = &docs.items[1];
        rc = refuse_at(&m, NULL, err,
                       "has a second document; a manifest of this folder holds "
                       "exactly one Pod");
    } else {
        rc = check_kind(&m, err) < 0 ? -1 : admit(&m, options, out, err);
    }
    docs_done(&docs);
    return rc;
}
