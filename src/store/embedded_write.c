/* store/embedded_write.c - creations and patches.
 *
 * A patch goes through these trees, each read from the text of the one before:
 *
 *     stored --patch--> patched --rules put back--> asked --admission--> admitted --> stored
 *
 * When what was asked is the stored text, or what was admitted is equal to it, nothing is written
 * and the version stays. Generation is decided last, between stored and admitted, because only
 * defaults make the two comparable.
 */
#include "store/embedded_impl.h"

#include "api/pod.h"
#include "api/node.h"
#include "api/policy.h"
#include "api/storage.h"

#define GENERATED_SUFFIX 5
#define GENERATED_NAME_MAX 63
#define GENERATED_TRIES 8

/* --- from a tree to an object --- */

static int refuse_problems(const struct kind *kind, struct str name, const struct report *report,
                           struct err *err)
{
    AUTO_BUF list = { 0 };

    vec_each(&report->problems, struct problem, p) {
        if (p->severity != PROBLEM_ERROR)
            continue;
        if (list.len > 0)
            buf_addz(&list, "; ");
        if (p->path.len > 0) {
            buf_add(&list, p->path);
            buf_addz(&list, ": ");
        }
        buf_add(&list, p->what);
    }
    return err_set(err, ERR_INVALID, "%s \"%.*s\" is invalid: %s", kind->name, STR_ARG(name),
                   buf_str(&list).p);
}

/* Defaults and validation: `read` in, the text of the admitted tree out, and the tree itself in b.
 * */
static int admit(const struct kind *kind, struct str name, struct json_build *b,
                 const json_val *read, json_mut **root, struct buf *text, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    struct report report = { .arena = &arena, .crd_only = kind->crd != NULL };

    *root = object_admit(kind, b, read, NULL, &report);
    int rc = report.error_count > 0 ? refuse_problems(kind, name, &report, err) : 0;
    report_done(&report);
    if (rc < 0)
        return -1;
    json_write_mut(*root, text);
    return 0;
}

/* --- creating --- */

static int namespace_check(struct embedded *e, struct str name, bool as_is, struct err *err)
{
    struct object_ref ref = { &namespace_kind, STR(""), name };
    struct entry *entry = entry_find(e, ref);

    if (!entry && e->auto_namespaces) {
        AUTO_JSON_BUILD b;
        AUTO_BUF text = { 0 };
        AUTO_DOC doc = { 0 };
        AUTO_OBJECT made = NULL;
        json_build_init(&b);
        json_mut *root = json_new_object(&b);
        json_set_str(&b, json_mut_object(&b, root, STR("metadata")), "name", name);
        json_write_mut(root, &text);
        if (json_read_trusted(buf_str(&text), &doc, err) < 0)
            return -1;
        return embedded_create(e, kind_state(e, &namespace_kind), STR(""), doc.root, false, &made,
                               err);
    }
    if (!entry)
        return err_set(err, ERR_NOT_FOUND, "namespaces \"%.*s\" not found", STR_ARG(name));
    if (entry->object->meta.deleted_us != 0 && !as_is)
        return err_set(err, ERR_DENIED,
                       "unable to create new content in namespace %.*s because it is being "
                       "terminated",
                       STR_ARG(name));
    return 0;
}

/* The call's namespace, else the object's, else "default"; both must agree. */
static int choose_namespace(const struct kind *kind, struct str said_in_call, const json_val *meta,
                            struct str *out, struct err *err)
{
    struct str said = json_str(json_get(meta, STR("namespace")));

    *out = STR("");
    if (!kind->namespaced)
        return 0;
    if (said.len > 0 && said_in_call.len > 0 && !str_eq(said, said_in_call))
        return err_set(err, ERR_INVALID,
                       "the namespace of the provided object (%.*s) does not match the namespace "
                       "sent on the request (%.*s)",
                       STR_ARG(said), STR_ARG(said_in_call));
    *out = said_in_call.len > 0 ? said_in_call : said.len > 0 ? said : STR("default");
    return 0;
}

/* metadata.name, or one made from generateName; `text` holds it then. */
static int choose_name(struct embedded *e, const struct kind *kind, struct str namespace_,
                       const json_val *meta, struct buf *text, struct str *out, struct err *err)
{
    struct str name = json_str(json_get(meta, STR("name")));
    struct str base = json_str(json_get(meta, STR("generateName")));

    for (int tries = 0; name.len == 0; tries++) {
        if (base.len == 0)
            return err_set(err, ERR_INVALID,
                           "%s \"\" is invalid: metadata.name: name or generateName is required",
                           kind->name);
        char suffix[GENERATED_SUFFIX + 1];
        rng_name(&e->rng, suffix, GENERATED_SUFFIX);
        buf_clear(text);
        buf_add(text, str_sub(base, 0, GENERATED_NAME_MAX - GENERATED_SUFFIX));
        buf_addz(text, suffix);
        bool is_new = !entry_find(e, (struct object_ref){ kind, namespace_, buf_str(text) });
        if (is_new || tries + 1 == GENERATED_TRIES)
            name = buf_str(text);
    }
    *out = name;
    return rule_name(kind, name, err);
}

static void add_gated_condition(struct embedded *e, struct json_build *b, json_mut *status)
{
    json_mut *condition = json_new_object(b), *list = json_new_array(b);

    json_set_str(b, condition, "type", STR("PodScheduled"));
    json_set_str(b, condition, "status", STR("False"));
    json_set_time(b, condition, "lastTransitionTime", clock_wall_us(e->clock));
    json_set_str(b, condition, "reason", STR("SchedulingGated"));
    json_set_str(b, condition, "message",
                 STR("Scheduling is blocked due to non-empty scheduling gates"));
    json_push(b, list, condition);
    json_set(b, status, STR("conditions"), list);
}

/* What a new object's status is: nothing, the first phase, or (Nodes) what the writer says. */
static void start_status(struct embedded *e, const struct kind *kind, const json_val *said,
                         struct json_build *b, json_mut *root)
{
    const char *phase = kind == &namespace_kind                                      ? "Active"
                        : kind == &pod_kind || kind == &pvc_kind || kind == &pv_kind ? "Pending"
                                                                                     : NULL;
    if (!kind->has_status || kind == &node_kind)
        return;
    json_mut_remove(root, STR("status"));
    if (!phase)
        return;
    json_mut *status = json_mut_object(b, root, STR("status"));
    json_set_str(b, status, "phase", str_of(phase));
    if (kind == &pod_kind && json_count(json_path(said, "spec.schedulingGates")) > 0)
        add_gated_condition(e, b, status);
}

/* What the server alone says about a new object. Taken as it is, an object keeps what it has. */
static void start_meta(struct embedded *e, struct json_build *b, json_mut *meta,
                       const json_val *said, bool as_is)
{
    static const char *const dropped[] = { "resourceVersion", "managedFields", "selfLink" };
    static const char *const not_yet[] = { "deletionTimestamp", "deletionGracePeriodSeconds" };
    char uid[37];

    rule_drop_empty(said, meta);
    for (size_t i = 0; i < KV_COUNT_OF(dropped); i++)
        json_mut_remove(meta, str_of(dropped[i]));
    for (size_t i = 0; !as_is && i < KV_COUNT_OF(not_yet); i++)
        json_mut_remove(meta, str_of(not_yet[i]));
    rng_uuid(&e->rng, uid);
    if (!as_is || json_str(json_get(said, STR("uid"))).len == 0)
        json_set_str(b, meta, "uid", str_of(uid));
    if (!as_is || json_str(json_get(said, STR("creationTimestamp"))).len == 0)
        json_set_time(b, meta, "creationTimestamp", clock_wall_us(e->clock));
    if (!as_is || !json_is_int(json_get(said, STR("generation"))))
        json_set_i64(b, meta, "generation", 1);
}

static void start_type(const struct kind *kind, struct json_build *b, json_mut *root)
{
    AUTO_BUF version = { 0 };
    kind_api_version(kind, &version);
    json_set_str(b, root, "apiVersion", buf_str(&version));
    json_set_str(b, root, "kind", str_of(kind->name));
}

/* Taken as it is, a namespace replaces one of its name; else what is there is in the way. */
static int check_place(struct embedded *e, struct object_ref ref, bool as_is,
                       struct entry **maybe_replaced, struct err *err)
{
    struct entry *there = entry_find(e, ref);
    if (there && !(as_is && ref.kind == &namespace_kind))
        return err_set(err, ERR_EXISTS, "%s \"%.*s\" already exists", ref.kind->plural,
                       STR_ARG(ref.name));
    *maybe_replaced = there;
    return 0;
}

static int check_new(const struct kind *kind, const json_val *root, bool as_is, struct err *err)
{
    if (rule_type(kind, root, err) < 0)
        return -1;
    struct str version = json_str(json_path(root, "metadata.resourceVersion"));
    if (!as_is && version.len > 0 && !str_eqz(version, "0"))
        return err_set(err, ERR_INVALID,
                       "resourceVersion should not be set on objects to be created");
    return 0;
}

/* status.qosClass follows from the requests and limits with their defaults. */
static int add_qos(struct embedded *e, struct json_build *b, json_mut *root, struct buf *text,
                   struct err *err)
{
    AUTO_DOC doc = { 0 };
    AUTO_OBJECT object = NULL;

    if (json_read_trusted(buf_str(text), &doc, err) < 0 ||
        object_decode(e->pool, &pod_kind, doc.root, &object, err) < 0)
        return -1;
    json_set_str(b, json_mut_object(b, root, STR("status")), "qosClass",
                 str_of(pod_qos_class(pod_of(object)->spec)));
    buf_clear(text);
    json_write_mut(root, text);
    return 0;
}

int embedded_create(struct embedded *e, struct kind_state *ks, struct str namespace_,
                    const json_val *root, bool as_is, const struct object **out, struct err *err)
{
    const struct kind *kind = ks->kind;
    AUTO_JSON_BUILD b;
    AUTO_BUF name_text = { 0 }, asked = { 0 };
    struct str home, name;
    struct entry *replaced = NULL;

    json_build_init(&b);
    if (check_new(kind, root, as_is, err) < 0)
        return -1;
    const json_val *said = json_get(root, STR("metadata"));
    if (choose_namespace(kind, namespace_, said, &home, err) < 0 ||
        (kind->namespaced && namespace_check(e, home, as_is, err) < 0) ||
        choose_name(e, kind, home, said, &name_text, &name, err) < 0 ||
        check_place(e, (struct object_ref){ kind, home, name }, as_is, &replaced, err) < 0)
        return -1;

    json_mut *new_root = json_copy(&b, root);
    json_mut *meta = json_mut_object(&b, new_root, STR("metadata"));
    start_type(kind, &b, new_root);
    json_set_str(&b, meta, "name", name);
    if (kind->namespaced)
        json_set_str(&b, meta, "namespace", home);
    else
        json_mut_remove(meta, STR("namespace"));
    start_meta(e, &b, meta, said, as_is);
    if (!as_is)
        start_status(e, kind, root, &b, new_root);
    json_write_mut(new_root, &asked);

    AUTO_DOC asked_doc = { 0 }, doc = { 0 };
    AUTO_BUF text = { 0 };
    AUTO_OBJECT object = NULL;
    if (json_read_trusted(buf_str(&asked), &asked_doc, err) < 0 ||
        admit(kind, name, &b, asked_doc.root, &new_root, &text, err) < 0 ||
        (kind == &pod_kind && !as_is && add_qos(e, &b, new_root, &text, err) < 0) ||
        json_read_trusted(buf_str(&text), &doc, err) < 0 ||
        object_decode(e->pool, kind, doc.root, &object, err) < 0)
        return -1;
    if (replaced)
        commit_remove(e, replaced);
    struct entry *entry = commit_add(e, ks, home, name, buf_take_str(&text), take(&object));
    *out = object_ref(entry->object);
    return 0;
}

/* --- patching --- */

/* The stored tree with its version in it, for patches that test or copy it. */
static int with_version(const struct entry *entry, const json_val *root, struct buf *text,
                        struct doc *out, struct err *err)
{
    AUTO_JSON_BUILD b;
    AUTO_BUF version = { 0 };

    json_build_init(&b);
    json_mut *copy = json_copy(&b, root);
    buf_addf(&version, "%llu", (unsigned long long)entry->object->meta.resource_version);
    json_set_str(&b, json_mut_object(&b, copy, STR("metadata")), "resourceVersion",
                 buf_str(&version));
    json_write_mut(copy, text);
    return json_read_trusted(buf_str(text), out, err);
}

static int apply(const struct entry *entry, enum patch_type type, const json_val *old,
                 const json_val *patch, struct json_build *b, json_mut **out, struct err *err)
{
    AUTO_BUF text = { 0 };
    AUTO_DOC versioned = { 0 };

    if (type == PATCH_JSON) {
        if (with_version(entry, old, &text, &versioned, err) < 0)
            return -1;
        return json_patch(b, versioned.root, patch, out, err);
    }
    if (!json_is_object(patch))
        return err_set(err, ERR_INVALID, "a merge patch is an object, found %s",
                       json_type_name(patch));
    if (type == PATCH_STRATEGIC) {
        if (kind_is_custom(entry->ks->kind))
            return err_set(err, ERR_INVALID,
                           "strategic merge patches are not supported for custom resources");
        return strategic_merge(b, old, patch, out, err);
    }
    *out = json_merge_patch(b, old, patch);
    return 0;
}

/* One update under way: texts and trees from patched to admitted. */
struct update {
    struct json_build b;
    struct buf text;
    struct doc doc; /* of text */
};

static void update_done(struct update *u)
{
    doc_done(&u->doc);
    buf_done(&u->text);
    json_build_done(&u->b);
}

static int update_reread(struct update *u, const json_mut *root, struct err *err)
{
    doc_done(&u->doc);
    buf_clear(&u->text);
    json_write_mut(root, &u->text);
    return json_read_trusted(buf_str(&u->text), &u->doc, err);
}

/* From patched to asked. */
static int update_ask(struct update *u, const struct entry *entry, struct patch_options opts,
                      const json_val *old, struct str patch, struct err *err)
{
    AUTO_DOC patch_doc = { 0 };
    json_mut *root;

    if (json_read(patch, &patch_doc, err) < 0)
        return err_wrap(err, "patch");
    if (apply(entry, opts.type, old, patch_doc.root, &u->b, &root, err) < 0)
        return -1;
    if (update_reread(u, root, err) < 0 || rule_update(entry, old, u->doc.root, err) < 0)
        return -1;
    if (rule_restore(entry->ks->kind, opts.status, old, u->doc.root, &u->b, root))
        return update_reread(u, root, err);
    return 0;
}

/* Defaults and validation of an update. Rules about changes compare trees with their defaults: nearly
 * always what was asked has them already, and is not read again. */
static int update_check(struct update *u, const struct entry *entry, const json_val *old,
                        json_mut **root, struct err *err)
{
    const struct kind *kind = entry->ks->kind;
    AUTO_ARENA arena = { 0 };
    AUTO_BUF text = { 0 };
    struct report report = { .arena = &arena, .crd_only = kind->crd != NULL };
    int rc = 0;

    *root = object_admit(kind, &u->b, u->doc.root, NULL, &report);
    if (*root) {
        json_write_mut(*root, &text);
        if (!str_eq(buf_str(&text), buf_str(&u->text)))
            rc = update_reread(u, *root, err);
        if (rc == 0)
            schema_validate_update(kind->schema, u->doc.root, old, NULL, &report);
    }
    if (rc == 0 && report.error_count > 0)
        rc = refuse_problems(kind, entry->name, &report, err);
    report_done(&report);
    return rc;
}

/* From asked to admitted. */
static int update_admit(struct update *u, const struct entry *entry, const json_val *old,
                        struct err *err)
{
    json_mut *root;

    if (update_check(u, entry, old, &root, err) < 0)
        return -1;
    if (rule_spec_changed(old, u->doc.root)) {
        if (entry->ks->kind == &pod_kind && rule_pod_spec(entry->object, old, u->doc.root, err) < 0)
            return -1;
        json_set_i64(&u->b, json_mut_object(&u->b, root, STR("metadata")), "generation",
                     entry->object->meta.generation + 1);
        return update_reread(u, root, err);
    }
    return 0;
}

/* Write what was admitted, or remove the entry if that is what the update comes to. */
static int update_commit(struct embedded *e, struct update *u, struct entry *entry,
                         const struct object **out, struct err *err)
{
    AUTO_OBJECT object = NULL;

    if (object_decode(e->pool, entry->ks->kind, u->doc.root, &object, err) < 0 ||
        rule_finalizers(entry->object, object, err) < 0)
        return -1;
    if (entry_is_finished(entry, object)) {
        commit_remove(e, entry); /* the update itself is never seen, except by its writer */
        ((struct object *)object)->meta.resource_version = e->version;
        *out = take(&object);
        return 0;
    }
    *out = object_ref(object);
    commit_replace(e, entry, buf_take_str(&u->text), take(&object));
    return 0;
}

static int patch_entry(struct embedded *e, struct entry *entry, struct patch_options opts,
                       struct str patch, const struct object **out, struct err *err)
{
    AUTO_DOC old = { 0 };
    __attribute__((cleanup(update_done))) struct update u = { 0 };

    json_build_init(&u.b);
    if (json_read_trusted(entry->text, &old, err) < 0 ||
        update_ask(&u, entry, opts, old.root, patch, err) < 0)
        return -1;
    if (!str_eq(buf_str(&u.text), entry->text)) {
        if (update_admit(&u, entry, old.root, err) < 0)
            return -1;
        if (!json_same(u.doc.root, old.root))
            return update_commit(e, &u, entry, out, err);
    }
    *out = object_ref(entry->object);
    return 0;
}

int embedded_patch(struct embedded *e, struct object_ref ref, struct patch_options opts,
                   struct str patch, const struct object **out, struct err *err)
{
    struct entry *entry = entry_need(e, ref, err);
    if (!entry)
        return -1;
    if (opts.status && !ref.kind->has_status)
        return err_set(err, ERR_NOT_FOUND, "%s have no status subresource", ref.kind->plural);
    if (opts.resource_version != 0 && opts.resource_version != entry->object->meta.resource_version)
        return err_set(err, ERR_CONFLICT,
                       "%s \"%.*s\": the object has been modified; please apply your changes to "
                       "the latest version and try again",
                       ref.kind->plural, STR_ARG(ref.name));
    return patch_entry(e, entry, opts, patch, out, err);
}
