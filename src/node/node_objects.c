/* ConfigMaps, Secrets, Services and service account tokens, for volumes and variables of pods.
 *
 * Workers ask for them at every sync, so what was fetched is kept for a minute: a change reaches a
 * running pod at its next sync after that. A new pod gets what is true when it comes. While the
 * server is away, what was fetched before is still good: a pod that runs is not held up by it.
 *
 * A token is asked for anew when a fifth of its life is left, or after a day, and its pod goes on with
 * the old one meanwhile, as long as that is valid.
 */
#include "node/node_api_inner.h"

#include "api/node_kinds.h"
#include "api/policy.h"

#define FRESH_NS (60 * DURATION_SECOND)
/* What nobody asked for goes after a day, or sooner when it is much: a container that runs is asked about
 * when it is restarted, perhaps while the server is away. */
#define KEPT_NS (24 * DURATION_HOUR)
#define KEPT_MANY 4096
#define KEPT_MANY_NS (10 * DURATION_MINUTE)
#define TOKEN_DAY_US ((int64_t)24 * 3600 * 1000000)
#define TOKEN_BYTES_MAX ((size_t)64 << 10)

struct kept_object {
    char *text; /* JSON, or the token */
    size_t bytes;
    int64_t fetched_ns; /* 0: fetch it again */
    int64_t asked_ns;
    int64_t renew_us, expires_us; /* of a token, wall */
};

struct node_objects {
    const struct store *store;
    const struct clock *clock;
    pthread_mutex_t lock; /* guards the table; not held while the store is asked */
    struct str_table
        kept; /* "c/namespace/name", "s/namespace/name", "t/..." -> struct kept_object */
    int64_t sweep_ns;
};

struct node_objects *node_objects_new(const struct store *store, const struct clock *clock)
{
    struct node_objects *objects = kv_calloc(1, sizeof *objects);
    objects->store = store;
    objects->clock = clock;
    pthread_mutex_init(&objects->lock, NULL);
    return objects;
}

/* They hold secrets. */
static void kept_free(struct kept_object *kept)
{
    if (kept->text)
        explicit_bzero(kept->text, kept->bytes);
    free(kept->text);
    free(kept);
}

void node_objects_free(struct node_objects *objects)
{
    if (!objects)
        return;
    str_table_each(&objects->kept, slot)
        kept_free(slot->value);
    str_table_done(&objects->kept);
    pthread_mutex_destroy(&objects->lock);
    free(objects);
}

/* --- the table; with the lock held --- */

static void sweep(struct node_objects *objects, int64_t now_ns)
{
    if (now_ns < objects->sweep_ns)
        return;
    objects->sweep_ns = now_ns + FRESH_NS;
    int64_t kept_ns = objects->kept.live_count > KEPT_MANY ? KEPT_MANY_NS : KEPT_NS;
    str_table_each(&objects->kept, slot) {
        struct kept_object *kept = slot->value;
        if (now_ns - kept->asked_ns > kept_ns) {
            str_table_remove(&objects->kept, slot->key);
            kept_free(kept);
        }
    }
}

static void keep(struct node_objects *objects, struct str key, struct str text, int64_t renew_us,
                 int64_t expires_us)
{
    int64_t now_ns = clock_mono_ns(objects->clock);
    struct kept_object *old = str_table_remove(&objects->kept, key);
    if (old)
        kept_free(old);
    struct kept_object *kept = kv_calloc(1, sizeof *kept);
    *kept = (struct kept_object){ .text = str_dup(text),
                                  .bytes = text.len,
                                  .fetched_ns = now_ns,
                                  .asked_ns = now_ns,
                                  .renew_us = renew_us,
                                  .expires_us = expires_us };
    str_table_put(&objects->kept, key, kept);
    sweep(objects, now_ns);
}

void node_objects_refresh(struct node_objects *objects, struct str namespace_)
{
    AUTO_BUF part = { 0 };
    buf_addf(&part, "/%.*s/", STR_ARG(namespace_));
    pthread_mutex_lock(&objects->lock);
    str_table_each(&objects->kept, slot) {
        struct kept_object *kept = slot->value;
        if (slot->key.p[0] != 't' &&
            str_starts(str_sub(slot->key, 1, slot->key.len), buf_str(&part)))
            kept->fetched_ns = 0;
    }
    pthread_mutex_unlock(&objects->lock);
}

/* --- ConfigMaps and Secrets --- */

/* What is kept: true, and copied to `out`. `fresh`: it need not be fetched. */
static bool recall(struct node_objects *objects, struct str key, struct buf *out, bool *fresh)
{
    int64_t now_ns = clock_mono_ns(objects->clock);
    pthread_mutex_lock(&objects->lock);
    struct kept_object *kept = str_table_get(&objects->kept, key);
    if (kept) {
        buf_add(out, (struct str){ kept->text, kept->bytes });
        kept->asked_ns = now_ns;
        *fresh = kept->fetched_ns && now_ns - kept->fetched_ns < FRESH_NS;
    }
    pthread_mutex_unlock(&objects->lock);
    return kept != NULL;
}

static void forget(struct node_objects *objects, struct str key)
{
    pthread_mutex_lock(&objects->lock);
    struct kept_object *kept = str_table_remove(&objects->kept, key);
    if (kept)
        kept_free(kept);
    pthread_mutex_unlock(&objects->lock);
}

static int fetch_object(struct node_objects *objects, const struct kind *kind, char letter,
                        struct str namespace_, struct str name, struct doc *out, struct err *err)
{
    AUTO_BUF key = { 0 };
    AUTO_SECRET_BUF kept = { 0 };
    AUTO_SECRET_BUF text = { 0 };
    bool fresh = false;
    buf_addf(&key, "%c/%.*s/%.*s", letter, STR_ARG(namespace_), STR_ARG(name));
    bool have = recall(objects, buf_str(&key), &kept, &fresh);
    if (have && fresh)
        return json_read_trusted(buf_str(&kept), out, err);
    struct object_ref ref = { kind, namespace_, name };
    if (store_get_json(objects->store, ref, &text, err) == 0) {
        if (json_read_trusted(buf_str(&text), out, err) < 0)
            return -1;
        pthread_mutex_lock(&objects->lock);
        keep(objects, buf_str(&key), buf_str(&text), 0, 0);
        pthread_mutex_unlock(&objects->lock);
        return 0;
    }
    if (have && (err->kind == ERR_UNAVAILABLE || err->kind == ERR_THROTTLED))
        return json_read_trusted(buf_str(&kept), out, err);
    forget(objects, buf_str(&key));
    return -1;
}

static int config_map(void *ctx, struct str namespace_, struct str name, struct doc *out,
                      struct err *err)
{
    return fetch_object(ctx, &config_map_kind, 'c', namespace_, name, out, err);
}

static int secret(void *ctx, struct str namespace_, struct str name, struct doc *out,
                  struct err *err)
{
    return fetch_object(ctx, &secret_kind, 's', namespace_, name, out, err);
}

static int service(void *ctx, struct str namespace_, struct str name, struct doc *out,
                   struct err *err)
{
    return fetch_object(ctx, &service_kind, 'v', namespace_, name, out, err);
}

/* --- tokens --- */

/* A token is this pod's: bound to it, it ends with it. */
static void token_request(struct str pod_name, struct str pod_uid, struct str audience,
                          int64_t expiration_s, struct buf *out)
{
    AUTO_JSON_BUILD b = { 0 };
    json_build_init(&b);
    json_mut *root = json_new_object(&b);
    json_set_str(&b, root, "apiVersion", STR("authentication.k8s.io/v1"));
    json_set_str(&b, root, "kind", STR("TokenRequest"));
    json_mut *spec = json_mut_object(&b, root, STR("spec"));
    if (audience.len) {
        json_mut *audiences = json_new_array(&b);
        json_push(&b, audiences, json_new_str(&b, audience));
        json_set(&b, spec, STR("audiences"), audiences);
    }
    json_set_i64(&b, spec, "expirationSeconds", expiration_s);
    json_mut *bound = json_mut_object(&b, spec, STR("boundObjectRef"));
    json_set_str(&b, bound, "apiVersion", STR("v1"));
    json_set_str(&b, bound, "kind", STR("Pod"));
    json_set_str(&b, bound, "name", pod_name);
    json_set_str(&b, bound, "uid", pod_uid);
    json_write_mut(root, out);
}

static int read_token(struct str answer, struct buf *token, int64_t *expires_us, struct err *err)
{
    struct doc doc = { 0 };
    if (json_read_trusted(answer, &doc, err) < 0)
        return -1;
    const json_val *status = json_get(doc.root, STR("status"));
    struct str text = json_str(json_get(status, STR("token")));
    int rc = 0;
    if (text.len == 0 || text.len > TOKEN_BYTES_MAX)
        rc = err_set(err, ERR_INTERNAL, "the answer has no token");
    else if (time_parse(json_str(json_get(status, STR("expirationTimestamp"))), expires_us, err) <
             0)
        rc = err_wrap(err, "expirationTimestamp");
    else
        buf_add(token, text);
    doc_done(&doc);
    return rc;
}

/* What is kept: true if it is still valid; `fresh`: and not yet old. */
static bool recall_token(struct node_objects *objects, struct str key, struct buf *out, bool *fresh)
{
    int64_t now_us = clock_wall_us(objects->clock);
    pthread_mutex_lock(&objects->lock);
    struct kept_object *kept = str_table_get(&objects->kept, key);
    bool valid = kept && now_us < kept->expires_us;
    if (valid) {
        buf_add(out, (struct str){ kept->text, kept->bytes });
        kept->asked_ns = clock_mono_ns(objects->clock);
        *fresh = now_us < kept->renew_us;
    }
    pthread_mutex_unlock(&objects->lock);
    return valid;
}

static int token(void *ctx, struct str namespace_, struct str service_account, struct str pod_name,
                 struct str pod_uid, struct str audience, int64_t expiration_s, struct buf *out,
                 struct err *err)
{
    struct node_objects *objects = ctx;
    AUTO_BUF key = { 0 };
    AUTO_BUF request = { 0 };
    AUTO_SECRET_BUF kept = { 0 };
    AUTO_SECRET_BUF answer = { 0 };
    AUTO_SECRET_BUF text = { 0 };
    bool fresh = false;
    int64_t expires_us = 0, now_us = clock_wall_us(objects->clock);
    buf_addf(&key, "t/%.*s/%.*s/%.*s/%lld/%.*s", STR_ARG(namespace_), STR_ARG(service_account),
             STR_ARG(pod_uid), (long long)expiration_s, STR_ARG(audience));
    bool valid = recall_token(objects, buf_str(&key), &kept, &fresh);
    if (valid && fresh) {
        buf_add(out, buf_str(&kept));
        return 0;
    }
    struct object_ref ref = { &service_account_kind, namespace_, service_account };
    token_request(pod_name, pod_uid, audience, expiration_s, &request);
    if (store_post(objects->store, ref, "token", buf_str(&request), &answer, err) < 0 ||
        read_token(buf_str(&answer), &text, &expires_us, err) < 0) {
        if (!valid)
            return err_wrap(err, "service account %s", STR_SHOWN(service_account));
        buf_add(out, buf_str(&kept));
        return 0;
    }
    int64_t life_us = expires_us > now_us ? expires_us - now_us : 0;
    int64_t renew_after_us = life_us / 5 * 4 < TOKEN_DAY_US ? life_us / 5 * 4 : TOKEN_DAY_US;
    pthread_mutex_lock(&objects->lock);
    keep(objects, buf_str(&key), buf_str(&text), now_us + renew_after_us, expires_us);
    pthread_mutex_unlock(&objects->lock);
    buf_add(out, buf_str(&text));
    return 0;
}

struct object_source node_objects_source(struct node_objects *objects)
{
    return (struct object_source){ .config_map = config_map,
                                   .secret = secret,
                                   .service = service,
                                   .token = token,
                                   .ctx = objects };
}
