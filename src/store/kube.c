/* store/kube.c - the port: each call is a path, a body and what the answer means. Reading many is in
 * kube_list.c and kube_watch.c.
 */
#include "store/kube_inner.h"

#include "api/kinds.h"

#define IDLE_TIMEOUT_NS ((int64_t)150 * 1000 * 1000 * 1000) /* two bookmarks missed, and some */

/* --- bodies --- */

static void set_version(struct json_build *b, json_mut *object, uint64_t version)
{
    char text[24];
    snprintf(text, sizeof text, "%llu", (unsigned long long)version);
    json_set_str(b, object, "resourceVersion", str_of(text));
}

static void set_type(struct json_build *b, json_mut *object, const char *api_version,
                     const char *kind)
{
    json_set_str(b, object, "apiVersion", str_of(api_version));
    json_set_str(b, object, "kind", str_of(kind));
}

/* A new object as the server wants it: with apiVersion and kind, which the caller may leave out
 * since the path says them. `home` is the call's namespace, else the object's, else "default". */
static int new_body(const struct kind *kind, struct str json, struct buf *body, struct buf *home,
                    struct err *err)
{
    AUTO_DOC doc = { 0 };
    AUTO_JSON_BUILD b;
    AUTO_BUF api_version = { 0 };

    json_build_init(&b);
    if (json_read(json, &doc, err) < 0)
        return err_wrap(err, "new %s", kind->name);
    if (!json_is_object(doc.root))
        return err_set(err, ERR_INVALID, "new %s: expected an object, found %s", kind->name,
                       json_type_name(doc.root));
    json_mut *root = json_copy(&b, doc.root);
    kind_api_version(kind, &api_version);
    if (!json_get(doc.root, STR("apiVersion")))
        json_set_str(&b, root, "apiVersion", buf_str(&api_version));
    if (!json_get(doc.root, STR("kind")))
        json_set_str(&b, root, "kind", str_of(kind->name));
    json_write_mut(root, body);
    if (home->len == 0)
        buf_add(home, json_str(json_path(doc.root, "metadata.namespace")));
    if (home->len == 0)
        buf_addz(home, "default");
    return 0;
}

/* A merge patch (or a strategic one) that applies to this version only: it says so itself. */
static int locked_merge(const json_val *patch, uint64_t version, struct buf *out, struct err *err)
{
    AUTO_JSON_BUILD b;
    const json_val *meta = json_get(patch, STR("metadata"));
    const json_val *said_at = json_get(meta, STR("resourceVersion"));
    uint64_t said = version;

    json_build_init(&b);
    if (!json_is_object(patch) || (meta && !json_is_object(meta)))
        return err_set(err, ERR_INVALID, "a merge patch and its metadata are objects, found %s",
                       json_type_name(json_is_object(patch) ? meta : patch));
    if (said_at && (!kube_version_parse(said_at, &said) || said != version))
        return err_set(err, ERR_CONFLICT, "the patch is for another version than its caller");
    json_mut *root = json_copy(&b, patch);
    set_version(&b, json_mut_object(&b, root, STR("metadata")), version);
    json_write_mut(root, out);
    return 0;
}

/* A JSON patch likewise: writing the version is what the server answers with a conflict. (It answers
 * to a "test" that fails as to a patch that makes no sense.) */
static int locked_json_patch(const json_val *patch, uint64_t version, struct buf *out,
                             struct err *err)
{
    AUTO_JSON_BUILD b;
    char text[24];

    json_build_init(&b);
    if (!json_is_array(patch))
        return err_set(err, ERR_INVALID, "a JSON patch is an array, found %s",
                       json_type_name(patch));
    json_mut *root = json_new_array(&b), *lock = json_new_object(&b);
    snprintf(text, sizeof text, "%llu", (unsigned long long)version);
    json_set_str(&b, lock, "op", STR("add"));
    json_set_str(&b, lock, "path", STR("/metadata/resourceVersion"));
    json_set_str(&b, lock, "value", str_of(text));
    json_push(&b, root, lock);
    json_each_item(patch, operation)
        json_push(&b, root, json_copy(&b, operation));
    json_write_mut(root, out);
    return 0;
}

static int lock_patch(struct patch_options opts, struct str patch, struct buf *out, struct err *err)
{
    AUTO_DOC doc = { 0 };

    if (json_read(patch, &doc, err) < 0)
        return err_wrap(err, "patch");
    return opts.type == PATCH_JSON ? locked_json_patch(doc.root, opts.resource_version, out, err)
                                   : locked_merge(doc.root, opts.resource_version, out, err);
}

/* Members of DeleteOptions that deletions and evictions share. */
static void set_preconditions(struct json_build *b, json_mut *to, const struct delete_options *opts)
{
    if (opts->grace_s.set)
        json_set_i64(b, to, "gracePeriodSeconds", opts->grace_s.value);
    if (opts->uid.len == 0 && opts->resource_version == 0)
        return;
    json_mut *only = json_mut_object(b, to, STR("preconditions"));
    if (opts->uid.len > 0)
        json_set_str(b, only, "uid", opts->uid);
    if (opts->resource_version > 0)
        set_version(b, only, opts->resource_version);
}

/* --- calls --- */

/* Ask about one object, or for its collection if the name is empty. */
static int ask(struct kube *kube, const char *method, struct object_ref ref, const char *maybe_sub,
               const char *content_type, struct str body, struct kube_answer *out, struct err *err)
{
    AUTO_BUF path = { 0 };

    if (kube_path(ref.kind, ref.namespace_, ref.name, maybe_sub, &path, err) < 0)
        return -1;
    struct kube_request request = {
        .method = method,
        .path = buf_str(&path),
        .content_type = content_type,
        .body = body,
    };
    return kube_client_do(kube->client, &request, out, err);
}

static int check_name(struct object_ref ref, struct err *err)
{
    if (ref.name.len == 0) /* its path would be that of the whole collection */
        return err_set(err, ERR_INVALID, "%s: no name", ref.kind->plural);
    return 0;
}

static int op_get(void *ctx, struct object_ref ref, const struct object **out, struct err *err)
{
    struct kube *kube = ctx;
    AUTO_KUBE_ANSWER answer = { 0 };

    if (check_name(ref, err) < 0 || ask(kube, "GET", ref, NULL, NULL, STR_NONE, &answer, err) < 0)
        return -1;
    return kube_decode_text(&kube->decoder, ref.kind, answer.body, out, err);
}

static int op_get_json(void *ctx, struct object_ref ref, struct buf *out, struct err *err)
{
    AUTO_KUBE_ANSWER answer = { 0 };

    if (check_name(ref, err) < 0 || ask(ctx, "GET", ref, NULL, NULL, STR_NONE, &answer, err) < 0)
        return -1;
    buf_add(out, str_trim(answer.body));
    return 0;
}

static int op_list(void *ctx, const struct kind *kind, const struct list_options *opts,
                   struct object_list *out, struct err *err)
{
    return kube_list(ctx, kind, opts, out, err);
}

static int op_watch(void *ctx, const struct kind *kind, const struct watch_options *opts,
                    struct watch **out, struct err *err)
{
    return kube_watch(ctx, kind, opts, out, err);
}

static int op_create(void *ctx, const struct kind *kind, struct str namespace_, struct str json,
                     const struct object **maybe_out, struct err *err)
{
    struct kube *kube = ctx;
    AUTO_BUF body = { 0 }, home = { 0 };
    AUTO_KUBE_ANSWER answer = { 0 };

    buf_add(&home, namespace_);
    if (new_body(kind, json, &body, &home, err) < 0)
        return -1;
    struct object_ref ref = { kind, kind->namespaced ? buf_str(&home) : STR(""), STR("") };
    if (ask(kube, "POST", ref, NULL, NULL, buf_str(&body), &answer, err) < 0)
        return -1;
    return maybe_out ? kube_decode_text(&kube->decoder, kind, answer.body, maybe_out, err) : 0;
}

static const char *content_type_of(enum patch_type type)
{
    switch (type) {
    case PATCH_MERGE:
        return "application/merge-patch+json";
    case PATCH_JSON:
        return "application/json-patch+json";
    case PATCH_STRATEGIC:
        return "application/strategic-merge-patch+json";
    }
    KV_UNREACHABLE();
}

/* A JSON patch of another version may not even fit what is there now, and is refused as invalid:
 * the version is why. */
static void find_conflict(struct kube *kube, struct object_ref ref, uint64_t version,
                          struct err *err)
{
    AUTO_OBJECT now = NULL;
    struct err ignored;

    if (op_get(kube, ref, &now, &ignored) == 0 && now->meta.resource_version != version)
        err_set(err, ERR_CONFLICT, "%s %s: the object has been modified", ref.kind->plural,
                STR_SHOWN(ref.name));
}

static int op_patch(void *ctx, struct object_ref ref, struct patch_options opts, struct str patch,
                    const struct object **maybe_out, struct err *err)
{
    struct kube *kube = ctx;
    AUTO_BUF locked = { 0 };
    AUTO_KUBE_ANSWER answer = { 0 };

    if (check_name(ref, err) < 0)
        return -1;
    if (opts.resource_version > 0) {
        if (lock_patch(opts, patch, &locked, err) < 0)
            return -1;
        patch = buf_str(&locked);
    }
    if (ask(kube, "PATCH", ref, opts.status ? "status" : NULL, content_type_of(opts.type), patch,
            &answer, err) < 0) {
        if (opts.type == PATCH_JSON && opts.resource_version > 0 && err->kind == ERR_INVALID)
            find_conflict(kube, ref, opts.resource_version, err);
        return -1;
    }
    return maybe_out ? kube_decode_text(&kube->decoder, ref.kind, answer.body, maybe_out, err) : 0;
}

static int op_remove(void *ctx, struct object_ref ref, const struct delete_options *opts,
                     struct err *err)
{
    static const char *const policies[] = {
        [PROPAGATE_BACKGROUND] = "Background",
        [PROPAGATE_ORPHAN] = "Orphan",
        [PROPAGATE_FOREGROUND] = "Foreground",
    };
    AUTO_JSON_BUILD b;
    AUTO_BUF body = { 0 };
    AUTO_KUBE_ANSWER answer = { 0 };

    json_build_init(&b);
    if (check_name(ref, err) < 0)
        return -1;
    json_mut *root = json_new_object(&b);
    set_type(&b, root, "v1", "DeleteOptions");
    json_set_str(&b, root, "propagationPolicy", str_of(policies[opts->propagation]));
    set_preconditions(&b, root, opts);
    json_write_mut(root, &body);
    return ask(ctx, "DELETE", ref, NULL, NULL, buf_str(&body), &answer, err);
}

/* Post `root`, which is about this pod, to a subresource of it. */
static int post_about_pod(struct kube *kube, struct str namespace_, struct str pod, const char *sub,
                          struct json_build *b, json_mut *root, struct err *err)
{
    struct object_ref ref = { &pod_kind, namespace_, pod };
    AUTO_BUF body = { 0 };
    AUTO_KUBE_ANSWER answer = { 0 };

    if (check_name(ref, err) < 0)
        return -1;
    json_mut *meta = json_mut_object(b, root, STR("metadata"));
    json_set_str(b, meta, "name", pod);
    json_set_str(b, meta, "namespace", namespace_);
    json_write_mut(root, &body);
    return ask(kube, "POST", ref, sub, NULL, buf_str(&body), &answer, err);
}

static int op_evict(void *ctx, struct str namespace_, struct str pod,
                    const struct delete_options *opts, struct err *err)
{
    AUTO_JSON_BUILD b;

    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    set_type(&b, root, "policy/v1", "Eviction");
    set_preconditions(&b, json_mut_object(&b, root, STR("deleteOptions")), opts);
    return post_about_pod(ctx, namespace_, pod, "eviction", &b, root, err);
}

static int op_post(void *ctx, struct object_ref ref, const char *subresource, struct str json,
                   struct buf *out, struct err *err)
{
    AUTO_KUBE_ANSWER answer = { 0 };

    if (check_name(ref, err) < 0 ||
        ask(ctx, "POST", ref, subresource, NULL, json, &answer, err) < 0)
        return -1;
    buf_add(out, str_trim(answer.body));
    return 0;
}

static int op_bind(void *ctx, struct str namespace_, struct str pod, struct str node,
                   struct err *err)
{
    AUTO_JSON_BUILD b;

    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    set_type(&b, root, "v1", "Binding");
    json_mut *target = json_mut_object(&b, root, STR("target"));
    set_type(&b, target, "v1", "Node");
    json_set_str(&b, target, "name", node);
    return post_about_pod(ctx, namespace_, pod, "binding", &b, root, err);
}

static const struct store_ops ops = {
    .get = op_get,
    .list = op_list,
    .watch = op_watch,
    .create = op_create,
    .patch = op_patch,
    .remove = op_remove,
    .evict = op_evict,
    .bind = op_bind,
    .get_json = op_get_json,
    .post = op_post,
};

/* --- the store --- */

int kube_new(struct kube_options options, struct kube **out, struct err *err)
{
    struct kube_client_options client = {
        .access = options.access,
        .clock = options.clock,
        .maybe_metrics = options.maybe_metrics,
        .maybe_log = options.maybe_log,
        .user_agent = options.user_agent,
        .qps = options.qps,
        .burst = options.burst,
        .timeout_ns = options.timeout_ns,
        .write_timeout_ns = options.write_timeout_ns,
        .patience_ns = options.patience_ns,
        .seed = options.seed,
        .may_write = options.may_write,
        .may_write_ctx = options.may_write_ctx,
    };
    struct kube *kube = kv_calloc(1, sizeof *kube);

    if (kube_client_new(client, &kube->client, err) < 0) {
        free(kube);
        return -1;
    }
    kube->store = (struct store){ &ops, kube };
    kube->clock = options.clock;
    kube->decoder.pool = options.pool;
    kube->decoder.maybe_log = options.maybe_log;
    told_init(&kube->decoder.skipped);
    kube->idle_timeout_ns =
        options.watch_idle_timeout_ns > 0 ? options.watch_idle_timeout_ns : IDLE_TIMEOUT_NS;
    *out = kube;
    return 0;
}

void kube_free(struct kube *kube)
{
    if (!kube)
        return;
    kube_client_free(kube->client);
    told_done(&kube->decoder.skipped);
    free(kube);
}

const struct store *kube_store(struct kube *kube)
{
    return &kube->store;
}

void kube_cancel(struct kube *kube)
{
    kube_client_cancel(kube->client);
}

/* --- questions about the server --- */

static int ask_json(struct kube *kube, struct str path, bool once, struct kube_answer *answer,
                    struct doc *doc, struct err *err)
{
    struct kube_request request = { .method = "GET", .path = path, .once = once };

    if (kube_client_do(kube->client, &request, answer, err) < 0)
        return -1;
    if (json_read_trusted(answer->body, doc, err) == 0)
        return 0;
    err_wrap(err, "%.*s: the answer is not an API server's (%s)", STR_ARG(path),
             STR_SHOWN(answer->body));
    err->kind = ERR_UNAVAILABLE;
    return -1;
}

int kube_server_version(struct kube *kube, struct buf *out, struct err *err)
{
    AUTO_KUBE_ANSWER answer = { 0 };
    AUTO_DOC doc = { 0 };

    if (ask_json(kube, STR("/version"), true, &answer, &doc, err) < 0)
        return -1;
    struct str version = json_str(json_get(doc.root, STR("gitVersion")));
    if (version.len == 0)
        return err_set(err, ERR_UNAVAILABLE, "/version: no gitVersion in the server's answer");
    buf_add(out, version);
    return 0;
}

int kube_serves(struct kube *kube, const struct kind *kind, struct err *err)
{
    AUTO_BUF path = { 0 }, api_version = { 0 };
    AUTO_KUBE_ANSWER answer = { 0 };
    AUTO_DOC doc = { 0 };

    kube_path_group(kind, &path);
    kind_api_version(kind, &api_version);
    int rc = ask_json(kube, buf_str(&path), false, &answer, &doc, err);
    if (rc < 0 && err->kind != ERR_NOT_FOUND)
        return -1;
    json_each_item(rc < 0 ? NULL : json_get(doc.root, STR("resources")), resource) {
        if (str_eqz(json_str(json_get(resource, STR("name"))), kind->plural))
            return 0;
    }
    return err_set(err, ERR_NOT_FOUND, "the server has no %s of %s%s", kind->plural,
                   buf_str(&api_version).p, kind_is_builtin(kind) ? "" : ": is its CRD installed?");
}
