/* The state of the fake runtime: what tests do to it from the side, and what they see. */
#include "node/fake_cri_inner_testing.h"

#include <stdio.h>

/* --- things --- */

int64_t fake_tick(struct fake_cri *fake)
{
    if (!fake->options.equal_times)
        fake->now_ns += 1000000;
    return fake->now_ns;
}

char *fake_text(struct fake_cri *fake, const char *text)
{
    return (char *)arena_str(&fake->arena, str_of(text)).p;
}

/* Also of what is gone; a test that asks for what never was is wrong. */
static struct fake_thing *thing_of(struct fake_cri *fake, const char *id)
{
    struct fake_thing *thing = str_table_get(&fake->by_id, str_of(id));
    KV_ASSERT(thing);
    return thing;
}

struct fake_thing *fake_lookup(struct fake_cri *fake, const char *id)
{
    struct fake_thing *thing = str_table_get(&fake->by_id, str_of(id));
    return thing && !thing->removed ? thing : NULL;
}

struct fake_thing *fake_add(struct fake_cri *fake, bool sandbox)
{
    struct fake_thing *thing = arena_new(&fake->arena, struct fake_thing);
    struct rng rng; /* ids look as containerd's do, and are the same in every run */
    rng_init(&rng, fake->thing_count + 1);
    thing->id =
        arena_strf(&fake->arena, "%016jx%016jx%016jx%016jx", (uintmax_t)rng_next(&rng),
                   (uintmax_t)rng_next(&rng), (uintmax_t)rng_next(&rng), (uintmax_t)rng_next(&rng))
            .p;
    thing->sandbox = sandbox;
    thing->created_ns = fake_tick(fake);
    thing->reason = thing->ip = thing->second_ip = "";
    fake->things = kv_realloc(fake->things, fake->thing_count + 1, sizeof *fake->things);
    fake->things[fake->thing_count++] = thing;
    str_table_put(&fake->by_id, str_of(thing->id), thing);
    return thing;
}

const char *fake_image(struct fake_cri *fake, const char *name)
{
    const char *known = str_table_get(&fake->images, str_of(name));
    if (known)
        return known;
    struct rng rng;
    rng_init(&rng, fake->images.live_count + 1000000007);
    char *id = (char *)arena_strf(&fake->arena, "sha256:%016jx%016jx%016jx%016jx",
                                  (uintmax_t)rng_next(&rng), (uintmax_t)rng_next(&rng),
                                  (uintmax_t)rng_next(&rng), (uintmax_t)rng_next(&rng))
                   .p;
    str_table_put(&fake->images, str_of(name), id);
    str_table_put(&fake->images, str_of(id), id);
    return id;
}

/* --- changes, each with its event --- */

void fake_exit(struct fake_cri *fake, struct fake_thing *container, int32_t code,
               const char *reason)
{
    container->state = RUNTIME_EXITED;
    container->finished_ns = fake_tick(fake);
    container->exit_code = code;
    container->reason = reason ? reason : code == 0 ? "Completed" : "Error";
    fake_event(fake, container, CRI__CONTAINER_EVENT_TYPE__EVENT_STOPPED);
}

void fake_start(struct fake_cri *fake, struct fake_thing *container)
{
    container->state = RUNTIME_RUNNING;
    container->started_ns = fake_tick(fake);
    container->start_count++;
    fake_event(fake, container, CRI__CONTAINER_EVENT_TYPE__EVENT_STARTED);
    struct str name = str_of(container->container_config->metadata->name);
    intptr_t own = (intptr_t)str_table_get(&fake->exit_codes, name);
    intptr_t code = own ? own : fake->exit_code_of_all;
    if (code > 0)
        fake_exit(fake, container, (int32_t)(code - 1), NULL);
}

void fake_stop_sandbox(struct fake_cri *fake, struct fake_thing *sandbox)
{
    for (uint32_t i = 0; i < fake->thing_count; i++) {
        struct fake_thing *c = fake->things[i];
        if (!c->sandbox && c->parent == sandbox && !c->removed && c->state == RUNTIME_RUNNING)
            fake_exit(fake, c, 137, NULL);
    }
    sandbox->ip = sandbox->second_ip = "";
    if (sandbox->state == RUNTIME_EXITED)
        return;
    sandbox->state = RUNTIME_EXITED;
    fake_event(fake, sandbox, CRI__CONTAINER_EVENT_TYPE__EVENT_STOPPED);
}

void fake_remove(struct fake_cri *fake, struct fake_thing *thing)
{
    if (thing->sandbox) {
        fake_stop_sandbox(fake, thing);
        for (uint32_t i = 0; i < fake->thing_count; i++) {
            struct fake_thing *c = fake->things[i];
            if (!c->sandbox && c->parent == thing && !c->removed)
                fake_remove(fake, c);
        }
    } else if (thing->state == RUNTIME_RUNNING) {
        fake_exit(fake, thing, 137, NULL);
    }
    thing->removed = true;
    fake_event(fake, thing, CRI__CONTAINER_EVENT_TYPE__EVENT_DELETED);
}

/* --- made from the side --- */

static Cri__Entry *entry_new(struct fake_cri *fake, const char *key, const char *value)
{
    Cri__Entry *entry = arena_new(&fake->arena, Cri__Entry);
    cri__entry__init(entry);
    entry->key = fake_text(fake, key);
    entry->value = fake_text(fake, value);
    return entry;
}

struct key_value {
    const char *key, *value;
};

static Cri__Entry **entries_new(struct fake_cri *fake, const struct key_value *from, size_t count)
{
    Cri__Entry **entries = arena_array(&fake->arena, Cri__Entry *, count);
    for (size_t i = 0; i < count; i++)
        entries[i] = entry_new(fake, from[i].key, from[i].value);
    return entries;
}

static struct fake_thing *side_sandbox(struct fake_cri *fake, const char *uid, const char *pod_name,
                                       uint32_t attempt)
{
    struct fake_thing *sandbox = fake_add(fake, true);
    sandbox->state = RUNTIME_RUNNING;
    sandbox->from_side = true;
    sandbox->ip = arena_strf(&fake->arena, "10.%u.%u.%u", fake->thing_count >> 16 & 255,
                             fake->thing_count >> 8 & 255, fake->thing_count & 255)
                      .p;
    Cri__PodSandboxConfig *config = arena_new(&fake->arena, Cri__PodSandboxConfig);
    cri__pod_sandbox_config__init(config);
    config->metadata = arena_new(&fake->arena, Cri__PodSandboxMetadata);
    cri__pod_sandbox_metadata__init(config->metadata);
    config->metadata->uid = fake_text(fake, uid);
    config->metadata->name = fake_text(fake, pod_name);
    config->metadata->namespace_ = fake_text(fake, "default");
    config->metadata->attempt = attempt;
    config->log_directory =
        (char *)arena_strf(&fake->arena, "/var/log/pods/default_%s_%s", pod_name, uid).p;
    config->hostname = config->metadata->name;
    const struct key_value labels[] = {
        { "io.kubernetes.pod.name", pod_name },
        { "io.kubernetes.pod.namespace", "default" },
        { CRI_LABEL_UID, uid },
    };
    config->labels = entries_new(fake, labels, KV_COUNT_OF(labels));
    config->n_labels = KV_COUNT_OF(labels);
    sandbox->sandbox_config = config;
    return sandbox;
}

static struct fake_thing *side_container(struct fake_cri *fake, struct fake_thing *sandbox,
                                         const char *name, uint32_t attempt)
{
    const Cri__PodSandboxMetadata *pod = sandbox->sandbox_config->metadata;
    struct fake_thing *container = fake_add(fake, false);
    container->parent = sandbox;
    container->from_side = true;
    Cri__ContainerConfig *config = arena_new(&fake->arena, Cri__ContainerConfig);
    cri__container_config__init(config);
    config->metadata = arena_new(&fake->arena, Cri__ContainerMetadata);
    cri__container_metadata__init(config->metadata);
    config->metadata->name = fake_text(fake, name);
    config->metadata->attempt = attempt;
    config->image = arena_new(&fake->arena, Cri__ImageSpec);
    cri__image_spec__init(config->image);
    config->image->image = fake_text(fake, "registry.example/app:1");
    config->log_path = (char *)arena_strf(&fake->arena, "%s/%u.log", name, attempt).p;
    char restarts[16];
    snprintf(restarts, sizeof restarts, "%u", attempt);
    const struct key_value labels[] = {
        { "io.kubernetes.container.name", name },
        { "io.kubernetes.pod.name", pod->name },
        { "io.kubernetes.pod.namespace", pod->namespace_ },
        { CRI_LABEL_UID, pod->uid },
    };
    config->labels = entries_new(fake, labels, KV_COUNT_OF(labels));
    config->n_labels = KV_COUNT_OF(labels);
    const struct key_value annotations[] = {
        { "io.kubernetes.container.hash", "5ca1ab1e" },
        { "io.kubernetes.container.restartCount", restarts },
        { "io.kubernetes.container.terminationMessagePath", "/dev/termination-log" },
        { "io.kubernetes.container.terminationMessagePolicy", "File" },
        { "io.kubernetes.pod.terminationGracePeriod", "30" },
    };
    config->annotations = entries_new(fake, annotations, KV_COUNT_OF(annotations));
    config->n_annotations = KV_COUNT_OF(annotations);
    Cri__Mount *mount = arena_new(&fake->arena, Cri__Mount);
    cri__mount__init(mount);
    mount->container_path = fake_text(fake, "/dev/termination-log");
    mount->host_path =
        (char *)arena_strf(&fake->arena, "/var/lib/agent/pods/%s/%s", pod->uid, name).p;
    config->mounts = arena_array(&fake->arena, Cri__Mount *, 1);
    config->mounts[config->n_mounts++] = mount;
    container->container_config = config;
    return container;
}

const char *fake_cri_sandbox(struct fake_cri *fake, const char *uid, const char *pod_name,
                             uint32_t attempt)
{
    pthread_mutex_lock(&fake->mutex);
    struct fake_thing *sandbox = side_sandbox(fake, uid, pod_name, attempt);
    fake_event(fake, sandbox, CRI__CONTAINER_EVENT_TYPE__EVENT_CREATED);
    fake_event(fake, sandbox, CRI__CONTAINER_EVENT_TYPE__EVENT_STARTED);
    pthread_mutex_unlock(&fake->mutex);
    return sandbox->id;
}

const char *fake_cri_container(struct fake_cri *fake, const char *sandbox_id, const char *name,
                               uint32_t attempt)
{
    pthread_mutex_lock(&fake->mutex);
    struct fake_thing *container = side_container(fake, thing_of(fake, sandbox_id), name, attempt);
    fake_event(fake, container, CRI__CONTAINER_EVENT_TYPE__EVENT_CREATED);
    pthread_mutex_unlock(&fake->mutex);
    return container->id;
}

void fake_cri_start(struct fake_cri *fake, const char *id)
{
    pthread_mutex_lock(&fake->mutex);
    struct fake_thing *container = thing_of(fake, id);
    KV_ASSERT(!container->sandbox);
    fake_start(fake, container);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_exit(struct fake_cri *fake, const char *id, int32_t code)
{
    pthread_mutex_lock(&fake->mutex);
    struct fake_thing *thing = thing_of(fake, id);
    if (thing->sandbox)
        fake_stop_sandbox(fake, thing);
    else
        fake_exit(fake, thing, code, NULL);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_oom(struct fake_cri *fake, const char *id)
{
    pthread_mutex_lock(&fake->mutex);
    fake_exit(fake, thing_of(fake, id), 137, "OOMKilled");
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_remove(struct fake_cri *fake, const char *id)
{
    pthread_mutex_lock(&fake->mutex);
    fake_remove(fake, thing_of(fake, id));
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_set_state(struct fake_cri *fake, const char *id, enum runtime_state state)
{
    pthread_mutex_lock(&fake->mutex);
    thing_of(fake, id)->state = (uint8_t)state;
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_set_reason(struct fake_cri *fake, const char *id, const char *reason)
{
    pthread_mutex_lock(&fake->mutex);
    thing_of(fake, id)->reason = reason;
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_set_created(struct fake_cri *fake, const char *id, int64_t created_ns)
{
    pthread_mutex_lock(&fake->mutex);
    thing_of(fake, id)->created_ns = created_ns;
    pthread_mutex_unlock(&fake->mutex);
}

static void entries_set(struct fake_cri *fake, Cri__Entry ***entries, size_t *count,
                        const char *key, const char *maybe_value)
{
    Cri__Entry **fresh = arena_array(&fake->arena, Cri__Entry *, *count + 1);
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (strcmp((*entries)[i]->key, key) != 0)
            fresh[kept++] = (*entries)[i];
    }
    if (maybe_value)
        fresh[kept++] = entry_new(fake, key, maybe_value);
    *entries = fresh;
    *count = kept;
}

void fake_cri_set_label(struct fake_cri *fake, const char *id, const char *key, const char *value)
{
    pthread_mutex_lock(&fake->mutex);
    struct fake_thing *thing = thing_of(fake, id);
    if (thing->sandbox)
        entries_set(fake, &thing->sandbox_config->labels, &thing->sandbox_config->n_labels, key,
                    value);
    else
        entries_set(fake, &thing->container_config->labels, &thing->container_config->n_labels, key,
                    value);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_set_annotation(struct fake_cri *fake, const char *id, const char *key,
                             const char *value)
{
    pthread_mutex_lock(&fake->mutex);
    struct fake_thing *thing = thing_of(fake, id);
    if (thing->sandbox)
        entries_set(fake, &thing->sandbox_config->annotations,
                    &thing->sandbox_config->n_annotations, key, value);
    else
        entries_set(fake, &thing->container_config->annotations,
                    &thing->container_config->n_annotations, key, value);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_set_host_network(struct fake_cri *fake, const char *sandbox_id)
{
    pthread_mutex_lock(&fake->mutex);
    struct fake_thing *sandbox = thing_of(fake, sandbox_id);
    Cri__PodSandboxConfig *config = sandbox->sandbox_config;
    config->linux_ = arena_new(&fake->arena, Cri__LinuxPodSandboxConfig);
    cri__linux_pod_sandbox_config__init(config->linux_);
    config->linux_->security_context = arena_new(&fake->arena, Cri__LinuxSandboxSecurityContext);
    cri__linux_sandbox_security_context__init(config->linux_->security_context);
    Cri__NamespaceOption *options = arena_new(&fake->arena, Cri__NamespaceOption);
    cri__namespace_option__init(options);
    options->network = CRI__NAMESPACE_MODE__NODE;
    config->linux_->security_context->namespace_options = options;
    sandbox->ip = sandbox->second_ip = "";
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_set_ips(struct fake_cri *fake, const char *sandbox_id, const char *ip,
                      const char *maybe_second_ip)
{
    pthread_mutex_lock(&fake->mutex);
    struct fake_thing *sandbox = thing_of(fake, sandbox_id);
    sandbox->ip = fake_text(fake, ip);
    sandbox->second_ip = fake_text(fake, maybe_second_ip ? maybe_second_ip : "");
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_forget(struct fake_cri *fake, const char *id)
{
    pthread_mutex_lock(&fake->mutex);
    thing_of(fake, id)->removed = true;
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_flood(struct fake_cri *fake, uint32_t pods, uint32_t containers_per_pod)
{
    pthread_mutex_lock(&fake->mutex);
    for (uint32_t i = 0; i < pods; i++) {
        char uid[32], name[32];
        snprintf(uid, sizeof uid, "flood-%06u", i);
        struct fake_thing *sandbox = side_sandbox(fake, uid, uid, 0);
        for (uint32_t k = 0; k < containers_per_pod; k++) {
            snprintf(name, sizeof name, "container-%u", k);
            struct fake_thing *container = side_container(fake, sandbox, name, 0);
            container->state = RUNTIME_RUNNING;
            container->started_ns = fake_tick(fake);
            container->start_count = 1;
        }
    }
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_exits_at_once(struct fake_cri *fake, const char *container_name, int32_t code)
{
    pthread_mutex_lock(&fake->mutex);
    intptr_t kept = code < 0 ? -1 : (intptr_t)code + 1;
    if (container_name)
        str_table_put(&fake->exit_codes, str_of(container_name), (void *)kept);
    else
        fake->exit_code_of_all = kept;
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_add_image(struct fake_cri *fake, const char *image)
{
    pthread_mutex_lock(&fake->mutex);
    fake_image(fake, image);
    pthread_mutex_unlock(&fake->mutex);
}

void fake_cri_on_exec(struct fake_cri *fake, fake_exec_fn *fn, void *ctx)
{
    pthread_mutex_lock(&fake->mutex);
    fake->exec = fn;
    fake->exec_ctx = ctx;
    pthread_mutex_unlock(&fake->mutex);
}

/* --- looking at it --- */

static const char *uid_of(const struct fake_thing *thing)
{
    return (thing->sandbox ? thing : thing->parent)->sandbox_config->metadata->uid;
}

static struct fake_item item_of(const struct fake_thing *thing)
{
    struct fake_item item = { .exists = !thing->removed,
                              .sandbox = thing->sandbox,
                              .state = thing->state,
                              .exit_code = thing->exit_code,
                              .start_count = thing->start_count,
                              .id = thing->id,
                              .uid = uid_of(thing),
                              .sandbox_id = thing->sandbox ? "" : thing->parent->id };
    if (thing->sandbox) {
        item.name = thing->sandbox_config->metadata->name;
        item.attempt = thing->sandbox_config->metadata->attempt;
        item.sandbox_config = thing->from_side ? NULL : thing->sandbox_config;
    } else {
        item.name = thing->container_config->metadata->name;
        item.attempt = thing->container_config->metadata->attempt;
        item.config = thing->from_side ? NULL : thing->container_config;
    }
    return item;
}

struct fake_item fake_cri_get(struct fake_cri *fake, const char *id)
{
    pthread_mutex_lock(&fake->mutex);
    struct fake_item item = item_of(thing_of(fake, id));
    pthread_mutex_unlock(&fake->mutex);
    return item;
}

static bool thing_is(const struct fake_thing *thing, bool sandbox, const char *maybe_uid,
                     const char *maybe_name)
{
    return !thing->removed && thing->sandbox == sandbox &&
           (!maybe_uid || strcmp(uid_of(thing), maybe_uid) == 0) &&
           (!maybe_name || strcmp(thing->container_config->metadata->name, maybe_name) == 0);
}

struct fake_item fake_cri_find(struct fake_cri *fake, const char *uid, const char *maybe_name)
{
    struct fake_item item = { 0 };
    pthread_mutex_lock(&fake->mutex);
    for (uint32_t i = fake->thing_count; i-- > 0 && !item.exists;) {
        if (thing_is(fake->things[i], !maybe_name, uid, maybe_name))
            item = item_of(fake->things[i]);
    }
    pthread_mutex_unlock(&fake->mutex);
    return item;
}

static uint32_t count_things(struct fake_cri *fake, bool sandbox, const char *maybe_uid,
                             const char *maybe_name, enum runtime_state state)
{
    uint32_t count = 0;
    pthread_mutex_lock(&fake->mutex);
    for (uint32_t i = 0; i < fake->thing_count; i++)
        count += thing_is(fake->things[i], sandbox, maybe_uid, maybe_name) &&
                 fake->things[i]->state == state;
    pthread_mutex_unlock(&fake->mutex);
    return count;
}

uint32_t fake_cri_containers(struct fake_cri *fake, const char *maybe_uid, const char *maybe_name,
                             enum runtime_state state)
{
    return count_things(fake, false, maybe_uid, maybe_name, state);
}

uint32_t fake_cri_sandboxes(struct fake_cri *fake, const char *maybe_uid, enum runtime_state state)
{
    return count_things(fake, true, maybe_uid, NULL, state);
}

uint64_t fake_cri_calls(struct fake_cri *fake, enum cri_method method)
{
    pthread_mutex_lock(&fake->mutex);
    uint64_t calls = fake->calls[method];
    pthread_mutex_unlock(&fake->mutex);
    return calls;
}

uint64_t fake_cri_calls_all(struct fake_cri *fake)
{
    uint64_t calls = 0;
    for (enum cri_method m = 0; m < CRI_METHOD_COUNT; m++)
        calls += fake_cri_calls(fake, m);
    return calls;
}
