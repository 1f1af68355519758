/* A key is "namespace\nsecret\nsecret...", or "namespace\n\naccount" for the secrets of a service account: all
 * that is needed to read them, and what tells one keyring from another.
 */
#include "compat/pull_secrets.h"

#include "api/node_kinds.h"
#include "base/map.h"
#include "base/vec.h"
#include "codec/base64.h"
#include "codec/json.h"

#include <pthread.h>
#include <string.h>

#define KEPT_MAX 4096 /* keyrings; beyond, those that are not fresh go */

struct kept_ring {
    const struct keyring *maybe_ring;
    int64_t read_ns;
};

struct pull_secrets {
    const struct store *store;
    const struct clock *clock;
    struct log *log;
    pthread_mutex_t lock; /* of the table; not held while the store is asked */
    struct str_table kept;
};

struct pull_secrets *pull_secrets_new(const struct store *store, const struct clock *clock,
                                      struct log *maybe_log)
{
    struct pull_secrets *secrets = kv_calloc(1, sizeof *secrets);
    *secrets = (struct pull_secrets){ .store = store, .clock = clock, .log = maybe_log };
    pthread_mutex_init(&secrets->lock, NULL);
    return secrets;
}

static void kept_free(struct kept_ring *kept)
{
    keyring_unref(kept->maybe_ring);
    free(kept);
}

void pull_secrets_free(struct pull_secrets *secrets)
{
    if (!secrets)
        return;
    str_table_each(&secrets->kept, slot)
        kept_free(slot->value);
    str_table_done(&secrets->kept);
    pthread_mutex_destroy(&secrets->lock);
    free(secrets);
}

struct str pull_secrets_key(const struct pod *pod, struct arena *arena)
{
    AUTO_BUF key = { 0 };
    const struct pod_spec *spec = pod->spec;
    struct str account = spec->service_account_name;
    buf_add(&key, pod->object.meta.namespace_);
    for (uint32_t i = 0; i < spec->image_pull_secrets.count; i++) {
        buf_addc(&key, '\n');
        buf_add(&key, spec->image_pull_secrets.items[i].name);
    }
    if (!spec->image_pull_secrets.count && account.len)
        buf_addf(&key, "\n\n%.*s", STR_ARG(account));
    bool none = !spec->image_pull_secrets.count && !account.len;
    return none ? STR("") : arena_str(arena, buf_str(&key));
}

/* --- reading --- */

typedef VEC(const struct keyring *) keyrings;

static bool is_passing(const struct err *err) /* an answer will come, perhaps another one */
{
    return err->kind == ERR_UNAVAILABLE || err->kind == ERR_THROTTLED || err->kind == ERR_CANCELLED;
}

/* Adds the secret's keyring, if it has one. */
static int secret_decode(const char *name, struct str json, keyrings *rings, struct err *err)
{
    static const struct {
        const char *type, *key;
        enum keyring_form form;
    } forms[] = {
        { "kubernetes.io/dockerconfigjson", ".dockerconfigjson", KEYRING_CONFIG },
        { "kubernetes.io/dockercfg", ".dockercfg", KEYRING_DOCKERCFG },
    };
    struct doc doc;
    if (json_read_trusted(json, &doc, err) < 0)
        return -1;
    int result = err_set(err, ERR_INVALID, "it is no pull secret");
    struct str type = json_str(json_get(doc.root, STR("type")));
    for (size_t i = 0; i < KV_COUNT_OF(forms); i++) {
        AUTO_SECRET_BUF text = { 0 };
        const struct keyring *ring = NULL;
        struct str data = json_str(json_get(json_get(doc.root, STR("data")), str_of(forms[i].key)));
        if (!str_eqz(type, forms[i].type))
            continue;
        if (!data.p)
            result = err_set(err, ERR_INVALID, "data.%s is missing", forms[i].key);
        else if (base64_decode(data, &text, err) == 0 &&
                 keyring_read(name, buf_str(&text), forms[i].form, &ring, NULL, err) == 0)
            result = 0;
        if (ring)
            vec_push(rings, ring);
    }
    doc_done(&doc);
    return result;
}

/* A secret that is not there, or is none, is said and passed over. */
static int secret_read(struct pull_secrets *secrets, struct str namespace_, struct str name,
                       keyrings *rings, struct err *err)
{
    AUTO_SECRET_BUF json = { 0 };
    AUTO_BUF shown = { 0 };
    struct err trouble = { 0 };
    struct object_ref ref = { &secret_kind, namespace_, name };
    buf_addf(&shown, "Secret %.*s/%.*s", STR_ARG(namespace_), STR_ARG(name));
    int rc = store_get_json(secrets->store, ref, &json, &trouble);
    if (rc < 0 && is_passing(&trouble)) {
        *err = trouble;
        return -1;
    }
    if (rc < 0 || secret_decode(shown.p, buf_str(&json), rings, &trouble) < 0)
        log_warn(secrets->log, "a pull secret is passed over", LOG_STR("of", buf_str(&shown)),
                 LOG_ERR(&trouble));
    return 0;
}

static int account_read(struct pull_secrets *secrets, struct str namespace_, struct str account,
                        keyrings *rings, struct err *err)
{
    AUTO_BUF json = { 0 };
    struct doc doc;
    struct object_ref ref = { &service_account_kind, namespace_, account };
    if (store_get_json(secrets->store, ref, &json, err) < 0 ||
        json_read_trusted(buf_str(&json), &doc, err) < 0) {
        if (is_passing(err))
            return -1;
        *err = (struct err){ 0 }; /* without its account a pod does not start anyway */
        return 0;
    }
    int result = 0;
    json_each_item(json_get(doc.root, STR("imagePullSecrets")), item) {
        struct str name = json_str(json_get(item, STR("name")));
        if (name.len && result == 0)
            result = secret_read(secrets, namespace_, name, rings, err);
    }
    doc_done(&doc);
    return result;
}

static int key_read(struct pull_secrets *secrets, struct str key, keyrings *rings, struct err *err)
{
    struct str namespace_, rest = STR_NONE, name;
    bool more = str_cut(key, '\n', &namespace_, &rest);
    if (more && str_starts(rest, STR("\n")))
        return account_read(secrets, namespace_, str_sub(rest, 1, rest.len), rings, err);
    while (more) {
        struct str tail = STR_NONE;
        more = str_cut(rest, '\n', &name, &tail);
        if (secret_read(secrets, namespace_, name, rings, err) < 0)
            return -1;
        rest = tail;
    }
    return 0;
}

/* --- keeping; with the lock held --- */

static void keep(struct pull_secrets *secrets, struct str key, const struct keyring *maybe_ring)
{
    int64_t now_ns = clock_mono_ns(secrets->clock);
    struct kept_ring *kept = str_table_get(&secrets->kept, key);
    if (kept) {
        keyring_unref(kept->maybe_ring);
    } else {
        kept = kv_calloc(1, sizeof *kept);
        str_table_put(&secrets->kept, key, kept);
    }
    *kept = (struct kept_ring){ maybe_ring ? keyring_ref(maybe_ring) : NULL, now_ns };
    if (secrets->kept.live_count <= KEPT_MAX)
        return;
    str_table_each(&secrets->kept, slot) {
        struct kept_ring *old = slot->value;
        if (now_ns - old->read_ns >= PULL_SECRETS_FRESH_NS) {
            str_table_remove(&secrets->kept, slot->key);
            kept_free(old);
        }
    }
}

/* 1: fresh; 0: there is an old one in `*out`; -1: nothing. */
static int recall(struct pull_secrets *secrets, struct str key, const struct keyring **out)
{
    struct kept_ring *kept = str_table_get(&secrets->kept, key);
    if (!kept)
        return -1;
    *out = kept->maybe_ring ? keyring_ref(kept->maybe_ring) : NULL;
    return clock_mono_ns(secrets->clock) - kept->read_ns < PULL_SECRETS_FRESH_NS;
}

int pull_secrets_read(struct pull_secrets *secrets, struct str key, const struct keyring **out,
                      struct err *err)
{
    *out = NULL;
    pthread_mutex_lock(&secrets->lock);
    int known = recall(secrets, key, out);
    pthread_mutex_unlock(&secrets->lock);
    if (known == 1)
        return 0;
    keyrings rings = { 0 };
    struct err trouble = { 0 };
    int result = key_read(secrets, key, &rings, &trouble);
    if (result == 0) {
        keyring_unref(*out);
        *out = rings.count ? keyring_join(rings.items, (uint32_t)rings.count) : NULL;
        pthread_mutex_lock(&secrets->lock);
        keep(secrets, key, *out);
        pthread_mutex_unlock(&secrets->lock);
    } else if (known == 0) {
        result = 0; /* what was true a while ago is better than nothing */
    } else {
        *err = trouble;
    }
    vec_each(&rings, const struct keyring *, ring)
        keyring_unref(*ring);
    vec_done(&rings);
    return result;
}
