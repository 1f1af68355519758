/* A record per pod that is about to be placed: its images, the keyring for them, and the demands made of them.
 * The record is made when the pod is first seen and goes when the pod is bound or gone. Secrets are read and
 * groups are published by two workers; everything else is answered from the caches below.
 */
#include "compat/service_inner.h"

#include <string.h>

#define RECORDS_MAX 200000 /* beyond, what a pod asks for is worked out each time */

/* --- records; with the lock held --- */

/* Its UID; of a manifest, which has none, its name. */
static struct str pod_key(const struct pod *pod, struct buf *out)
{
    const struct meta *meta = &pod->object.meta;
    if (meta->uid.len)
        buf_add(out, meta->uid);
    else
        buf_addf(out, "%.*s/%.*s", STR_ARG(meta->namespace_), STR_ARG(meta->name));
    return buf_str(out);
}

static void record_free(struct pod_record *record)
{
    keyring_unref(record->maybe_keys);
    demand_unref(record->demands[DEMAND_PLACE]);
    demand_unref(record->demands[DEMAND_LAUNCH]);
    object_unref(record->pod);
    arena_done(&record->arena);
    free(record);
}

static struct pod_record *record_new(struct compat_service *s, const struct pod *pod)
{
    struct pod_record *record = kv_calloc(1, sizeof *record);
    record->pod = object_ref(&pod->object);
    record->image_count = pod_images(pod, &record->arena, &record->images);
    if (s->maybe_secrets)
        record->secrets = pull_secrets_key(pod, &record->arena);
    record->keys_ready = !record->secrets.len;
    const struct keyring *keys = s->options.maybe_keys;
    record->maybe_keys = keys ? keyring_ref(keys) : NULL;
    return record;
}

static void ask_keys(struct compat_service *s, struct str key)
{
    AUTO_BUF text = { 0 };
    buf_addc(&text, 'k');
    buf_add(&text, key);
    queue_add(s->queue, buf_str(&text));
}

/* Made if need be. Images of a pod may be changed: then it is as a new one. */
static struct pod_record *record_of(struct compat_service *s, const struct pod *pod)
{
    AUTO_BUF text = { 0 };
    struct str key = pod_key(pod, &text);
    struct pod_record *record = str_table_get(&s->records, key);
    if (record && pod_of(record->pod)->spec == pod->spec)
        return record;
    if (record) {
        str_table_remove(&s->records, key);
        record_free(record);
    } else if (s->records.live_count >= RECORDS_MAX) {
        return NULL;
    }
    record = record_new(s, pod);
    str_table_put(&s->records, key, record);
    if (!record->keys_ready)
        ask_keys(s, key);
    return record;
}

void service_forget_pod(struct compat_service *s, const struct pod *pod)
{
    AUTO_BUF text = { 0 };
    pthread_mutex_lock(&s->lock);
    struct pod_record *record = str_table_remove(&s->records, pod_key(pod, &text));
    pthread_mutex_unlock(&s->lock);
    if (record)
        record_free(record);
}

/* --- workers --- */

/* The keyring of a pod: its secrets, then those of everybody. */
static struct outcome keys_reconcile(struct compat_service *s, struct str key)
{
    struct err err = { 0 };
    AUTO_BUF secrets = { 0 };
    const struct keyring *of_pod = NULL;
    pthread_mutex_lock(&s->lock);
    struct pod_record *record = str_table_get(&s->records, key);
    if (record)
        buf_add(&secrets, record->secrets);
    pthread_mutex_unlock(&s->lock);
    if (!record)
        return outcome_done();
    if (pull_secrets_read(s->maybe_secrets, buf_str(&secrets), &of_pod, &err) < 0) {
        log_warn(s->options.maybe_log, "pull secrets cannot be read", LOG_ERR(&err));
        return outcome_retry();
    }
    const struct keyring *both[] = { of_pod, s->options.maybe_keys };
    const struct keyring *keys = keyring_join(both, 2);
    keyring_unref(of_pod);

    pthread_mutex_lock(&s->lock);
    record = str_table_get(&s->records, key);
    if (record) {
        keyring_unref(record->maybe_keys);
        record->maybe_keys = keys ? keyring_ref(keys) : NULL;
        record->keys_ready = true;
        record->keys_ns = clock_mono_ns(s->options.clock);
        for (uint32_t i = 0; i < record->image_count; i++) {
            struct image_answer answer;
            image_cache_get(s->images, record->images[i], keys, &answer); /* starts to ask */
            image_answer_done(&answer);
        }
    }
    pthread_cond_broadcast(&s->keys_read);
    pthread_mutex_unlock(&s->lock);
    keyring_unref(keys);
    if (s->options.on_change)
        s->options.on_change(s->options.ctx);
    return outcome_done();
}

static struct outcome publish_reconcile(struct compat_service *s, struct str image)
{
    AUTO_ARENA arena = { 0 };
    struct err err = { 0 };
    struct nfg_names names;
    pthread_mutex_lock(&s->lock);
    const struct image_facts *facts = str_table_remove(&s->to_publish, image);
    pthread_mutex_unlock(&s->lock);
    if (!facts)
        return outcome_done();
    int result = nfg_cache_publish(s->groups, image, facts, &arena, &names, &err);
    if (result < 0) {
        log_warn(s->options.maybe_log, "groups of an image cannot be published",
                 LOG_STR("image", image), LOG_ERR(&err));
        pthread_mutex_lock(&s->lock);
        if (!str_table_has(&s->to_publish, image))
            str_table_put(&s->to_publish, image, (void *)image_facts_ref(facts));
        pthread_mutex_unlock(&s->lock);
    }
    image_facts_unref(facts);
    return result < 0 ? outcome_retry() : outcome_done();
}

/* Pods wait for it: what one of them asks for is made now, and with it the groups. */
static struct outcome known_reconcile(struct compat_service *s, struct str image)
{
    AUTO_BUF uid = { 0 };
    struct pod_demand demand;
    pthread_mutex_lock(&s->lock);
    str_table_each(&s->records, slot) {
        const struct pod_record *record = slot->value;
        for (uint32_t i = 0; i < record->image_count && !uid.len; i++) {
            if (str_eq(record->images[i], image))
                buf_add(&uid, slot->key);
        }
    }
    pthread_mutex_unlock(&s->lock);
    if (compat_service_demand_of(s, buf_str(&uid), DEMAND_PLACE, &demand))
        pod_demand_done(&demand);
    return outcome_done();
}

struct outcome service_reconcile(void *service, struct str key)
{
    struct compat_service *s = service;
    struct str rest = str_sub(key, 1, key.len);
    if (key.p[0] == 'k')
        return keys_reconcile(s, rest);
    if (key.p[0] == 'i')
        return publish_reconcile(s, rest);
    if (key.p[0] == 'n')
        return known_reconcile(s, rest);
    int64_t next_ns = nfg_cache_tend(s->groups), now_ns = clock_mono_ns(s->options.clock);
    return outcome_requeue(next_ns > now_ns ? next_ns - now_ns : 0);
}

/* --- what a pod asks for --- */

/* Some artifact says what the image needs, or is there and cannot be read. */
static bool has_artifact(const struct image_facts *facts)
{
    bool has = facts->spec.maybe_spec || facts->spec.trouble.len;
    for (uint32_t i = 0; i < facts->platform_count && !has; i++) {
        const struct image_spec *spec = &facts->platforms[i].spec;
        has = spec->maybe_spec || spec->trouble.len;
    }
    return has;
}

/* Whoever can push to a repository can attach rules to its images: what they decide is bought only if the
 * repository is trusted with that. Such a pod waits, rather than getting a node that it is kept off. */
static bool may_decide(struct compat_service *s, struct str image)
{
    AUTO_ARENA arena = { 0 };
    struct reference ref;
    return reference_parse(&arena, image, &ref, NULL) == 0 &&
           reference_is_under(&ref, &s->settings.launch_repositories);
}

static struct str trouble_of(struct compat_service *s, struct str image, enum demand_for what,
                             const struct image_answer *answer, struct arena *arena)
{
    if (answer->state == IMAGE_FAILED && s->settings.on_resolve_error == RESOLVE_FAIL)
        return arena_strf(arena, "it could not be looked up: %s", answer->err.text);
    if (what == DEMAND_LAUNCH && answer->state == IMAGE_KNOWN &&
        has_artifact(answer->maybe_facts) && !may_decide(s, image))
        return STR("its artifact may not decide what is launched: its repository is not in "
                   "--launch-repositories");
    return STR("");
}

/* Publishes the groups of an image that are not there, in the background. */
static void see_to_groups(struct compat_service *s, struct str image,
                          const struct image_facts *facts)
{
    AUTO_ARENA arena = { 0 };
    struct nfg_names names;
    if (s->settings.nfg_mode == NFG_OFF || !has_artifact(facts))
        return;
    nfg_cache_use(s->groups, image);
    if (nfg_cache_get_valid(s->groups, image, &arena, &names) && !names.missing)
        return;
    AUTO_BUF key = { 0 };
    buf_addc(&key, 'i');
    buf_add(&key, image);
    pthread_mutex_lock(&s->lock);
    const struct image_facts *old = str_table_remove(&s->to_publish, image);
    str_table_put(&s->to_publish, image, (void *)image_facts_ref(facts));
    pthread_mutex_unlock(&s->lock);
    image_facts_unref(old);
    queue_add(s->queue, buf_str(&key));
}

/* A copy of what the record says, so that no lock is held while the caches are asked. */
struct pod_ask {
    struct arena *arena;
    struct str *images;
    uint32_t count;
    const struct keyring *maybe_keys; /* a reference */
    bool keys_ready;
};

static void ask_of_record(const struct pod_record *record, struct pod_ask *ask)
{
    ask->images = arena_array(ask->arena, struct str, record->image_count);
    ask->count = record->image_count;
    for (uint32_t i = 0; i < ask->count; i++)
        ask->images[i] = arena_str(ask->arena, record->images[i]);
    ask->keys_ready = record->keys_ready;
    ask->maybe_keys = record->maybe_keys ? keyring_ref(record->maybe_keys) : NULL;
}

static void ask_of_pod(struct compat_service *s, const struct pod *pod, struct pod_ask *ask)
{
    pthread_mutex_lock(&s->lock);
    struct pod_record *record = record_of(s, pod);
    if (record)
        ask_of_record(record, ask);
    pthread_mutex_unlock(&s->lock);
    if (record)
        return;
    record = record_new(s, pod);
    record->keys_ready = true; /* nobody would remember them */
    ask_of_record(record, ask);
    record_free(record);
}

/* The registry refused what the secrets say, and they are not new: perhaps they have changed since. */
static void ask_keys_again(struct compat_service *s, struct str key)
{
    pthread_mutex_lock(&s->lock);
    struct pod_record *record = str_table_get(&s->records, key);
    if (record && record->secrets.len &&
        clock_mono_ns(s->options.clock) - record->keys_ns >= PULL_SECRETS_FRESH_NS) {
        record->keys_ns = clock_mono_ns(s->options.clock);
        ask_keys(s, key);
    }
    pthread_mutex_unlock(&s->lock);
}

static void remember(struct compat_service *s, struct str key, enum demand_for what,
                     const struct demand *demand)
{
    pthread_mutex_lock(&s->lock);
    struct pod_record *record = str_table_get(&s->records, key);
    const struct demand *old = demand;
    if (record) {
        old = record->demands[what];
        record->demands[what] = demand_ref(demand);
    }
    pthread_mutex_unlock(&s->lock);
    if (record)
        demand_unref(old);
}

/* Takes over the reference to the keyring. */
static void demand_of_ask(struct compat_service *s, struct str key, struct pod_ask ask,
                          enum demand_for what, struct pod_demand *out)
{
    if (!ask.keys_ready) {
        out->pending = (struct str_list){ ask.images, ask.count };
        keyring_unref(ask.maybe_keys);
        return;
    }
    struct image_answer *answers = arena_array(&out->arena, struct image_answer, ask.count);
    struct fleet_image *images = arena_array(&out->arena, struct fleet_image, ask.count);
    struct str *pending = arena_array(&out->arena, struct str, ask.count);
    bool denied = false;
    for (uint32_t i = 0; i < ask.count; i++) {
        image_cache_get(s->images, ask.images[i], ask.maybe_keys, &answers[i]);
        denied |= answers[i].state == IMAGE_FAILED && answers[i].err.kind == ERR_DENIED;
        if (answers[i].state == IMAGE_PENDING)
            pending[out->pending.count++] = ask.images[i];
        else if (answers[i].state == IMAGE_KNOWN)
            see_to_groups(s, ask.images[i], answers[i].maybe_facts);
        images[i] = (struct fleet_image){
            .name = ask.images[i],
            .maybe_facts = answers[i].maybe_facts,
            .trouble = trouble_of(s, ask.images[i], what, &answers[i], &out->arena),
        };
    }
    out->pending.items = pending;
    if (!out->pending.count) {
        out->maybe_demand = fleet_demand(s->fleet, images, ask.count);
        remember(s, key, what, out->maybe_demand);
    }
    for (uint32_t i = 0; i < ask.count; i++)
        image_answer_done(&answers[i]);
    keyring_unref(ask.maybe_keys);
    if (denied)
        ask_keys_again(s, key);
}

void compat_service_demand(struct compat_service *s, const struct pod *pod, enum demand_for what,
                           struct pod_demand *out)
{
    AUTO_BUF key = { 0 };
    *out = (struct pod_demand){ 0 };
    struct pod_ask ask = { .arena = &out->arena };
    ask_of_pod(s, pod, &ask);
    demand_of_ask(s, pod_key(pod, &key), ask, what, out);
}

bool compat_service_demand_of(struct compat_service *s, struct str uid, enum demand_for what,
                              struct pod_demand *out)
{
    *out = (struct pod_demand){ 0 };
    struct pod_ask ask = { .arena = &out->arena };
    pthread_mutex_lock(&s->lock);
    struct pod_record *record = uid.len ? str_table_get(&s->records, uid) : NULL;
    if (record)
        ask_of_record(record, &ask);
    pthread_mutex_unlock(&s->lock);
    if (record)
        demand_of_ask(s, uid, ask, what, out);
    return record != NULL;
}

void pod_demand_done(struct pod_demand *demand)
{
    demand_unref(demand->maybe_demand);
    arena_done(&demand->arena);
    *demand = (struct pod_demand){ 0 };
}

static void wait_for_keys(struct compat_service *s, const struct pod *pod, int64_t until_ns)
{
    pthread_mutex_lock(&s->lock);
    while (clock_mono_ns(s->options.clock) < until_ns) {
        struct pod_record *record = record_of(s, pod);
        if (!record || record->keys_ready)
            break;
        clock_wait(s->options.clock, &s->keys_read, &s->lock, until_ns);
    }
    pthread_mutex_unlock(&s->lock);
}

void compat_service_settle(struct compat_service *s, const struct pod *const *pods, uint32_t count,
                           int64_t until_ns)
{
    for (uint32_t round = 0; round < 2; round++) { /* all are asked for before any is waited for */
        for (uint32_t i = 0; i < count; i++) {
            struct pod_demand demand;
            if (round == 1)
                wait_for_keys(s, pods[i], until_ns);
            compat_service_demand(s, pods[i], DEMAND_PLACE, &demand);
            if (round == 1 && demand.pending.count) {
                AUTO_ARENA arena = { 0 };
                struct pod_ask ask = { .arena = &arena };
                ask_of_pod(s, pods[i], &ask);
                for (uint32_t k = 0; k < ask.count; k++) {
                    struct image_answer answer;
                    image_cache_wait(s->images, ask.images[k], ask.maybe_keys, until_ns, &answer);
                    image_answer_done(&answer);
                }
                keyring_unref(ask.maybe_keys);
            }
            pod_demand_done(&demand);
        }
    }
}

void service_forget_all(struct compat_service *s)
{
    str_table_each(&s->records, slot)
        record_free(slot->value);
    str_table_done(&s->records);
    str_table_each(&s->to_publish, slot)
        image_facts_unref(slot->value);
    str_table_done(&s->to_publish);
}
