/* Reads pass. A write looks at what is there, so that it is refused where the API server would refuse
 * it, is told unless it was told before (dry_run_told.c), and is answered (dry_run_apply.c).
 *
 * Answers keep the version of the object as it is, and a created object has none: so whoever remembers
 * its own writes until a watch has shown them (control/cluster.h) has nothing to remember.
 */
#include "store/dry_run_inner.h"

#include "api/kinds.h"
#include "api/labels.h"
#include "api/nodeclaim.h"
#include "base/rng.h"

#define AUTO_DOC __attribute__((cleanup(doc_done))) struct doc
#define SHOWN_MAX 600 /* bytes of a patch or a spec in a line */
#define GENERATED_SUFFIX 5

struct dry_run {
    struct dry_run_options options;
    struct store port;
    struct dry_told told;
};

/* --- telling --- */

/* "namespace/name", or the name. */
static struct str full_name(struct arena *arena, struct str namespace_, struct str name)
{
    return namespace_.len ? arena_strf(arena, "%.*s/%.*s", STR_ARG(namespace_), STR_ARG(name))
                          : name;
}

static struct str shown(struct arena *arena, struct str text)
{
    if (text.len <= SHOWN_MAX)
        return text;
    return arena_strf(arena, "%.*s...", (int)str_utf8_cut(text, SHOWN_MAX), text.p);
}

static uint64_t hash_of(const char *verb, const struct object_ref *ref)
{
    uint64_t hash = dry_told_hash_str(str_of(verb), 0);
    hash = dry_told_hash_str(str_of(ref->kind->plural), hash);
    return dry_told_hash_str(ref->namespace_, hash);
}

static uint64_t hash_named(const char *verb, const struct object_ref *ref)
{
    return dry_told_hash_str(ref->name, hash_of(verb, ref));
}

static uint32_t type_count(const struct nodeclaim *claim)
{
    const struct claim_node_spec *node = &claim->spec.node;
    for (uint32_t i = 0; i < node->requirements.count; i++) {
        if (str_eqz(node->requirements.items[i].key, LABEL_INSTANCE_TYPE))
            return node->requirements.items[i].values.count;
    }
    return 0;
}

static void tell_created(const struct dry_run *d, const struct object *object, const json_val *said)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF spec = { 0 };
    const json_val *content = json_get(said, STR("spec"));
    struct str name = full_name(&arena, object->meta.namespace_, object->meta.name);
    if (content)
        json_write(content, &spec);
    if (object->kind == &nodeclaim_kind)
        log_info(d->options.log, "would create", LOG_Z("kind", object->kind->name),
                 LOG_STR("name", name),
                 LOG_STR("nodepool", str_map_get(&object->meta.labels, STR(LABEL_NODEPOOL))),
                 LOG_INT("instance-types", type_count(nodeclaim_of(object))),
                 LOG_STR("spec", shown(&arena, buf_str(&spec))));
    else
        log_info(d->options.log, "would create", LOG_Z("kind", object->kind->name),
                 LOG_STR("name", name), LOG_STR("spec", shown(&arena, buf_str(&spec))));
}

static void tell_event(const struct dry_run *d, const json_val *said)
{
    AUTO_ARENA arena = { 0 };
    const json_val *about = json_get(said, STR("involvedObject"));
    struct str home = json_str(json_get(about, STR("namespace")));
    struct str name = full_name(&arena, home, json_str(json_get(about, STR("name"))));
    const struct log_field fields[] = {
        LOG_STR("reason", json_str(json_get(said, STR("reason")))),
        LOG_STR("kind", json_str(json_get(about, STR("kind")))),
        LOG_STR("name", name),
        LOG_STR("message", json_str(json_get(said, STR("message")))),
    };
    bool warning = str_eqz(json_str(json_get(said, STR("type"))), "Warning");
    log_write(d->options.log, warning ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "event", fields,
              KV_COUNT_OF(fields));
}

/* --- creations --- */

static uint64_t event_hash(const struct object_ref *ref, const json_val *said)
{
    const json_val *about = json_get(said, STR("involvedObject"));
    uint64_t hash = hash_of("event", ref);
    hash = dry_told_hash(json_get(about, STR("kind")), NULL, hash);
    hash = dry_told_hash(json_get(about, STR("name")), NULL, hash);
    hash = dry_told_hash(json_get(said, STR("reason")), NULL, hash);
    return dry_told_hash(json_get(said, STR("message")), NULL, hash);
}

static int choose_place(struct dry_run *d, const struct kind *kind, struct str namespace_,
                        const json_val *said, struct arena *arena, struct object_ref *out,
                        struct err *err)
{
    struct str name = json_str(json_path(said, "metadata.name"));
    struct str base = json_str(json_path(said, "metadata.generateName"));
    struct str home = json_str(json_path(said, "metadata.namespace"));
    if (!name.len && !base.len)
        return err_set(err, ERR_INVALID,
                       "%s \"\" is invalid: metadata.name: name or generateName is required",
                       kind->name);
    if (!name.len) {
        struct rng rng;
        char suffix[GENERATED_SUFFIX + 1];
        rng_init(&rng, dry_told_hash(said, NULL, dry_run_writes(d)));
        rng_name(&rng, suffix, GENERATED_SUFFIX);
        name = arena_strf(arena, "%.*s%s", STR_ARG(base), suffix);
    }
    home = namespace_.len ? namespace_ : home.len ? home : STR("default");
    *out = (struct object_ref){ kind, kind->namespaced ? home : STR(""), name };
    return 0;
}

/* A name that was made up for this one creation says nothing. */
static bool has_made_up_name(const struct kind *kind, const json_val *said)
{
    return kind == &nodeclaim_kind || !json_str(json_path(said, "metadata.name")).len;
}

static bool is_new_creation(struct dry_run *d, struct object_ref *ref, const json_val *said,
                            struct arena *arena)
{
    if (ref->kind == &event_kind)
        return dry_told_add(&d->told, event_hash(ref, said));
    const json_val *name = json_path(said, "metadata.name");
    if (!has_made_up_name(ref->kind, said))
        return dry_told_add(&d->told, dry_told_hash(said, NULL, hash_named("create", ref)));
    return dry_told_add_named(&d->told, dry_told_hash(said, name, hash_of("create", ref)),
                              clock_mono_ns(d->options.clock), arena, &ref->name);
}

/* Events have names of their own, and there are many: nobody is asked for them. */
static int check_free(const struct dry_run *d, struct object_ref ref, struct err *err)
{
    if (ref.kind == &event_kind)
        return 0;
    if (store_get(d->options.inner, ref, NULL, err) == 0)
        return err_set(err, ERR_EXISTS, "%s \"%.*s\" already exists", ref.kind->plural,
                       STR_ARG(ref.name));
    return err->kind == ERR_NOT_FOUND ? 0 : -1;
}

static int dry_run_create(void *ctx, const struct kind *kind, struct str namespace_,
                          struct str json, const struct object **maybe_out, struct err *err)
{
    struct dry_run *d = ctx;
    AUTO_ARENA arena = { 0 };
    AUTO_DOC doc = { 0 };
    AUTO_OBJECT object = NULL;
    struct object_ref ref;
    int64_t now_us = clock_wall_us(d->options.clock);

    if (json_read(json, &doc, err) < 0 ||
        choose_place(d, kind, namespace_, doc.root, &arena, &ref, err) < 0 ||
        check_free(d, ref, err) < 0 ||
        dry_create(d->options.pool, &ref, doc.root, now_us, &object, err) < 0)
        return -1;
    struct str asked = ref.name;
    if (is_new_creation(d, &ref, doc.root, &arena)) {
        if (kind == &event_kind)
            tell_event(d, doc.root);
        else
            tell_created(d, object, doc.root);
    }
    if (!str_eq(ref.name, asked)) {
        object_unref(take(&object));
        if (dry_create(d->options.pool, &ref, doc.root, now_us, &object, err) < 0)
            return -1;
    }
    if (maybe_out)
        *maybe_out = take(&object);
    return 0;
}

/* --- other writes --- */

static int look(const struct dry_run *d, struct object_ref ref, struct str uid, uint64_t version,
                const struct object **out, struct err *err)
{
    AUTO_OBJECT object = NULL;
    if (store_get(d->options.inner, ref, &object, err) < 0)
        return -1;
    if (uid.len && !str_eq(uid, object->meta.uid))
        return err_set(err, ERR_CONFLICT, "%s \"%.*s\": the UID is another", ref.kind->plural,
                       STR_ARG(ref.name));
    if (version && version != object->meta.resource_version)
        return err_set(err, ERR_CONFLICT, "%s \"%.*s\": the object has been modified",
                       ref.kind->plural, STR_ARG(ref.name));
    *out = take(&object);
    return 0;
}

static void tell_patched(struct dry_run *d, const struct object_ref *ref, struct patch_options opts,
                         const json_val *patch, struct str text)
{
    AUTO_ARENA arena = { 0 };
    uint64_t hash = hash_named(opts.status ? "patch status" : "patch", ref);
    if (!dry_told_add(&d->told, dry_told_hash(patch, NULL, hash)))
        return;
    log_info(d->options.log, "would patch", LOG_Z("kind", ref->kind->name),
             LOG_STR("name", full_name(&arena, ref->namespace_, ref->name)),
             LOG_STR("patch", shown(&arena, text)));
}

/* A store that shows no texts can still be told of; the answer is the object as it is then. */
static int dry_run_patch(void *ctx, struct object_ref ref, struct patch_options opts,
                         struct str patch, const struct object **maybe_out, struct err *err)
{
    struct dry_run *d = ctx;
    AUTO_BUF text = { 0 };
    AUTO_DOC doc = { 0 };
    AUTO_OBJECT now = NULL;
    AUTO_OBJECT patched = NULL;
    bool changed = true;

    if (json_read(patch, &doc, err) < 0)
        return err_wrap(err, "patch");
    if (look(d, ref, STR_NONE, opts.resource_version, &now, err) < 0)
        return -1;
    if (d->options.inner->ops->get_json) {
        if (store_get_json(d->options.inner, ref, &text, err) < 0 ||
            dry_patch(d->options.pool, now, buf_str(&text), opts, doc.root, &patched, &changed,
                      err) < 0)
            return -1;
    }
    if (changed)
        tell_patched(d, &ref, opts, doc.root, patch);
    if (maybe_out)
        *maybe_out = patched ? take(&patched) : take(&now);
    return 0;
}

static int dry_run_remove(void *ctx, struct object_ref ref, const struct delete_options *opts,
                          struct err *err)
{
    struct dry_run *d = ctx;
    AUTO_ARENA arena = { 0 };
    AUTO_OBJECT object = NULL;
    if (look(d, ref, opts->uid, opts->resource_version, &object, err) < 0)
        return -1;
    if (!object->meta.deleted_us &&
        dry_told_add(&d->told, dry_told_hash_str(object->meta.uid, hash_named("delete", &ref))))
        log_info(d->options.log, "would delete", LOG_Z("kind", ref.kind->name),
                 LOG_STR("name", full_name(&arena, ref.namespace_, ref.name)));
    return 0;
}

static int dry_run_evict(void *ctx, struct str namespace_, struct str pod,
                         const struct delete_options *opts, struct err *err)
{
    struct dry_run *d = ctx;
    AUTO_ARENA arena = { 0 };
    AUTO_OBJECT object = NULL;
    struct object_ref ref = { &pod_kind, namespace_, pod };
    if (look(d, ref, opts->uid, opts->resource_version, &object, err) < 0)
        return -1;
    if (!object->meta.deleted_us &&
        dry_told_add(&d->told, dry_told_hash_str(object->meta.uid, hash_named("evict", &ref))))
        log_info(d->options.log, "would evict", LOG_STR("pod", full_name(&arena, namespace_, pod)));
    return 0;
}

static int dry_run_bind(void *ctx, struct str namespace_, struct str pod, struct str node,
                        struct err *err)
{
    struct dry_run *d = ctx;
    AUTO_ARENA arena = { 0 };
    AUTO_OBJECT object = NULL;
    struct object_ref ref = { &pod_kind, namespace_, pod };
    if (look(d, ref, STR_NONE, 0, &object, err) < 0)
        return -1;
    if (dry_told_add(&d->told, dry_told_hash_str(node, hash_named("bind", &ref))))
        log_info(d->options.log, "would bind", LOG_STR("pod", full_name(&arena, namespace_, pod)),
                 LOG_STR("node", node));
    return 0;
}

/* --- reads --- */

static int dry_run_get(void *ctx, struct object_ref ref, const struct object **out, struct err *err)
{
    return store_get(((struct dry_run *)ctx)->options.inner, ref, out, err);
}

static int dry_run_list(void *ctx, const struct kind *kind, const struct list_options *opts,
                        struct object_list *out, struct err *err)
{
    return store_list(((struct dry_run *)ctx)->options.inner, kind, opts, out, err);
}

static int dry_run_watch(void *ctx, const struct kind *kind, const struct watch_options *opts,
                         struct watch **out, struct err *err)
{
    return store_watch(((struct dry_run *)ctx)->options.inner, kind, opts, out, err);
}

static int dry_run_get_json(void *ctx, struct object_ref ref, struct buf *out, struct err *err)
{
    return store_get_json(((struct dry_run *)ctx)->options.inner, ref, out, err);
}

static uint64_t dry_run_version(void *ctx)
{
    return store_version(((struct dry_run *)ctx)->options.inner);
}

/* No subresources that answer with something else: what they would say cannot be made up. */
static const struct store_ops dry_run_ops = {
    .get = dry_run_get,
    .list = dry_run_list,
    .watch = dry_run_watch,
    .create = dry_run_create,
    .patch = dry_run_patch,
    .remove = dry_run_remove,
    .evict = dry_run_evict,
    .bind = dry_run_bind,
    .get_json = dry_run_get_json,
    .version = dry_run_version,
};

/* --- life --- */

struct dry_run *dry_run_new(struct dry_run_options options)
{
    struct dry_run *d = kv_calloc(1, sizeof *d);
    d->options = options;
    d->port = (struct store){ &dry_run_ops, d };
    dry_told_init(&d->told);
    return d;
}

void dry_run_free(struct dry_run *d)
{
    if (!d)
        return;
    dry_told_done(&d->told);
    free(d);
}

const struct store *dry_run_store(struct dry_run *d)
{
    return &d->port;
}

uint64_t dry_run_writes(struct dry_run *d)
{
    pthread_mutex_lock(&d->told.lock);
    uint64_t count = d->told.count;
    pthread_mutex_unlock(&d->told.lock);
    return count;
}

bool dry_run_is_new(struct dry_run *d, uint64_t what)
{
    return dry_told_add(&d->told, what);
}
