/* What the fake runtime answers to each call, as containerd does. */
#include "node/fake_cri_inner_testing.h"

#include <stdio.h>

/* --- answers --- */

static void answer_with(struct fake_answer *answer, const void *message)
{
    size_t bytes = protobuf_c_message_get_packed_size(message);
    buf_reserve(&answer->bytes, bytes + 1);
    answer->bytes.len = protobuf_c_message_pack(message, (uint8_t *)answer->bytes.p);
    answer->bytes.p[answer->bytes.len] = 0;
}

KV_PRINTF(3, 4)
static void fail(struct fake_answer *answer, uint32_t status, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    answer->status = status;
    vsnprintf(answer->message, sizeof answer->message, fmt, args);
    va_end(args);
}

#define UNKNOWN 2 /* most of what fails in a runtime */

static const char *state_word(uint8_t state)
{
    static const char *const words[] = { "CONTAINER_CREATED", "CONTAINER_RUNNING",
                                         "CONTAINER_EXITED", "CONTAINER_UNKNOWN" };
    return words[state];
}

/* --- statuses --- */

static bool on_host_network(const struct fake_thing *sandbox)
{
    const Cri__LinuxPodSandboxConfig *config = sandbox->sandbox_config->linux_;
    return config && config->security_context && config->security_context->namespace_options &&
           config->security_context->namespace_options->network == CRI__NAMESPACE_MODE__NODE;
}

static Cri__PodSandboxState sandbox_state(const struct fake_thing *sandbox)
{
    return sandbox->state == RUNTIME_RUNNING ? CRI__POD_SANDBOX_STATE__READY
                                             : CRI__POD_SANDBOX_STATE__NOT_READY;
}

static Cri__PodSandboxNetworkStatus *network_of(struct arena *arena,
                                                const struct fake_thing *sandbox)
{
    Cri__PodSandboxNetworkStatus *network = arena_new(arena, Cri__PodSandboxNetworkStatus);
    cri__pod_sandbox_network_status__init(network);
    network->ip = (char *)sandbox->ip;
    if (sandbox->second_ip[0]) {
        Cri__PodIP *second = arena_new(arena, Cri__PodIP);
        cri__pod_ip__init(second);
        second->ip = (char *)sandbox->second_ip;
        network->additional_ips = arena_array(arena, Cri__PodIP *, 1);
        network->additional_ips[network->n_additional_ips++] = second;
    }
    return network;
}

Cri__PodSandboxStatus *fake_sandbox_status(struct arena *arena, const struct fake_thing *sandbox)
{
    const Cri__PodSandboxConfig *config = sandbox->sandbox_config;
    Cri__PodSandboxStatus *status = arena_new(arena, Cri__PodSandboxStatus);
    cri__pod_sandbox_status__init(status);
    status->id = (char *)sandbox->id;
    status->metadata = config->metadata;
    status->state = sandbox_state(sandbox);
    status->created_at = sandbox->created_ns;
    status->network = network_of(arena, sandbox);
    status->labels = config->labels;
    status->n_labels = config->n_labels;
    status->annotations = config->annotations;
    status->n_annotations = config->n_annotations;
    status->linux_ = arena_new(arena, Cri__LinuxPodSandboxStatus);
    cri__linux_pod_sandbox_status__init(status->linux_);
    status->linux_->namespaces = arena_new(arena, Cri__Namespace);
    cri__namespace__init(status->linux_->namespaces);
    Cri__NamespaceOption *options = arena_new(arena, Cri__NamespaceOption);
    cri__namespace_option__init(options);
    options->network =
        on_host_network(sandbox) ? CRI__NAMESPACE_MODE__NODE : CRI__NAMESPACE_MODE__POD;
    status->linux_->namespaces->options = options;
    return status;
}

#define IMAGE_ID "sha256:9a4f2b1c6d8e7f0a1b2c3d4e5f60718293a4b5c6d7e8f9012a3b4c5d6e7f8091"
#define IMAGE_REF "registry.example/app@" IMAGE_ID

Cri__ContainerStatus *fake_container_status(struct arena *arena, const struct fake_thing *c)
{
    const Cri__ContainerConfig *config = c->container_config;
    Cri__ContainerStatus *status = arena_new(arena, Cri__ContainerStatus);
    cri__container_status__init(status);
    status->id = (char *)c->id;
    status->metadata = config->metadata;
    status->state = (Cri__ContainerState)c->state;
    status->created_at = c->created_ns;
    status->started_at = c->started_ns;
    status->finished_at = c->finished_ns;
    status->exit_code = c->exit_code;
    status->image = config->image;
    status->image_ref = (char *)IMAGE_REF;
    status->image_id = (char *)IMAGE_ID;
    status->reason = (char *)c->reason;
    status->labels = config->labels;
    status->n_labels = config->n_labels;
    status->annotations = config->annotations;
    status->n_annotations = config->n_annotations;
    status->mounts = config->mounts;
    status->n_mounts = config->n_mounts;
    status->log_path = (char *)arena_strf(arena, "%s/%s", c->parent->sandbox_config->log_directory,
                                          config->log_path)
                           .p;
    return status;
}

/* --- sandboxes --- */

static bool same_sandbox(const Cri__PodSandboxMetadata *a, const Cri__PodSandboxMetadata *b)
{
    return a->attempt == b->attempt && strcmp(a->uid, b->uid) == 0 &&
           strcmp(a->name, b->name) == 0 && strcmp(a->namespace_, b->namespace_) == 0;
}

static void run_pod_sandbox(struct fake_cri *fake, Cri__RunPodSandboxRequest *request,
                            struct fake_answer *answer)
{
    if (!request->config || !request->config->metadata) {
        fail(answer, UNKNOWN, "sandbox config must include metadata");
        return;
    }
    const Cri__PodSandboxMetadata *metadata = request->config->metadata;
    for (uint32_t i = 0; i < fake->thing_count; i++) {
        const struct fake_thing *other = fake->things[i];
        if (other->sandbox && !other->removed &&
            same_sandbox(other->sandbox_config->metadata, metadata)) {
            fail(answer, UNKNOWN,
                 "failed to reserve sandbox name \"%s_%s_%s_%u\": name is reserved for \"%s\"",
                 metadata->name, metadata->namespace_, metadata->uid, metadata->attempt, other->id);
            return;
        }
    }
    struct fake_thing *sandbox = fake_add(fake, true);
    sandbox->state = RUNTIME_RUNNING;
    sandbox->sandbox_config = request->config;
    if (!on_host_network(sandbox))
        sandbox->ip = arena_strf(&fake->arena, "10.%u.%u.%u", fake->thing_count >> 16 & 255,
                                 fake->thing_count >> 8 & 255, fake->thing_count & 255)
                          .p;
    Cri__RunPodSandboxResponse reply = CRI__RUN_POD_SANDBOX_RESPONSE__INIT;
    reply.pod_sandbox_id = (char *)sandbox->id;
    answer_with(answer, &reply);
    fake_event(fake, sandbox, CRI__CONTAINER_EVENT_TYPE__EVENT_CREATED);
    fake_event(fake, sandbox, CRI__CONTAINER_EVENT_TYPE__EVENT_STARTED);
}

static void stop_pod_sandbox(struct fake_cri *fake, const Cri__StopPodSandboxRequest *request,
                             struct fake_answer *answer KV_UNUSED)
{
    struct fake_thing *sandbox = fake_lookup(fake, request->pod_sandbox_id);
    if (sandbox && sandbox->sandbox)
        fake_stop_sandbox(fake, sandbox);
}

static void remove_pod_sandbox(struct fake_cri *fake, const Cri__RemovePodSandboxRequest *request,
                               struct fake_answer *answer KV_UNUSED)
{
    struct fake_thing *sandbox = fake_lookup(fake, request->pod_sandbox_id);
    if (sandbox && sandbox->sandbox)
        fake_remove(fake, sandbox);
}

static void pod_sandbox_status(struct fake_cri *fake, const Cri__PodSandboxStatusRequest *request,
                               struct arena *arena, struct fake_answer *answer)
{
    struct fake_thing *sandbox = fake_lookup(fake, request->pod_sandbox_id);
    if (!sandbox || !sandbox->sandbox) {
        fail(answer, GRPC_NOT_FOUND, "an error occurred when try to find sandbox \"%s\": not found",
             request->pod_sandbox_id);
        return;
    }
    Cri__PodSandboxStatusResponse reply = CRI__POD_SANDBOX_STATUS_RESPONSE__INIT;
    reply.status = fake_sandbox_status(arena, sandbox);
    answer_with(answer, &reply);
}

static bool labels_match(Cri__Entry *const *labels, size_t label_count, Cri__Entry *const *wanted,
                         size_t wanted_count)
{
    size_t found = 0;
    for (size_t i = 0; i < wanted_count; i++) {
        for (size_t k = 0; k < label_count; k++)
            found += strcmp(labels[k]->key, wanted[i]->key) == 0 &&
                     strcmp(labels[k]->value, wanted[i]->value) == 0;
    }
    return found == wanted_count;
}

static bool sandbox_wanted(const struct fake_thing *sandbox, const Cri__PodSandboxFilter *filter)
{
    if (!filter)
        return true;
    const Cri__PodSandboxConfig *config = sandbox->sandbox_config;
    return (!filter->id[0] || strcmp(filter->id, sandbox->id) == 0) &&
           (!filter->state || filter->state->state == sandbox_state(sandbox)) &&
           labels_match(config->labels, config->n_labels, filter->label_selector,
                        filter->n_label_selector);
}

static void list_pod_sandbox(struct fake_cri *fake, const Cri__ListPodSandboxRequest *request,
                             struct arena *arena, struct fake_answer *answer)
{
    Cri__ListPodSandboxResponse reply = CRI__LIST_POD_SANDBOX_RESPONSE__INIT;
    reply.items = arena_array(arena, Cri__PodSandbox *, fake->thing_count);
    for (uint32_t i = 0; i < fake->thing_count; i++) {
        const struct fake_thing *sandbox = fake->things[i];
        if (!sandbox->sandbox || sandbox->removed || !sandbox_wanted(sandbox, request->filter))
            continue;
        const Cri__PodSandboxConfig *config = sandbox->sandbox_config;
        Cri__PodSandbox *item = arena_new(arena, Cri__PodSandbox);
        cri__pod_sandbox__init(item);
        item->id = (char *)sandbox->id;
        item->metadata = config->metadata;
        item->state = sandbox_state(sandbox);
        item->created_at = sandbox->created_ns;
        item->labels = config->labels;
        item->n_labels = config->n_labels;
        item->annotations = config->annotations;
        item->n_annotations = config->n_annotations;
        reply.items[reply.n_items++] = item;
    }
    answer_with(answer, &reply);
}

/* --- containers --- */

static void create_container(struct fake_cri *fake, Cri__CreateContainerRequest *request,
                             struct fake_answer *answer)
{
    struct fake_thing *sandbox = fake_lookup(fake, request->pod_sandbox_id);
    Cri__ContainerConfig *config = request->config;
    if (!sandbox || !sandbox->sandbox) {
        fail(answer, GRPC_NOT_FOUND, "failed to find sandbox id \"%s\": not found",
             request->pod_sandbox_id);
        return;
    }
    if (sandbox->state != RUNTIME_RUNNING) {
        fail(answer, GRPC_NOT_FOUND, "failed to get sandbox container task: no running task found");
        return;
    }
    if (!config || !config->metadata || !config->image) {
        fail(answer, UNKNOWN, "container config must include metadata and image");
        return;
    }
    for (uint32_t i = 0; i < fake->thing_count; i++) {
        const struct fake_thing *other = fake->things[i];
        if (other->sandbox || other->removed || other->parent != sandbox ||
            other->container_config->metadata->attempt != config->metadata->attempt ||
            strcmp(other->container_config->metadata->name, config->metadata->name) != 0)
            continue;
        fail(answer, UNKNOWN,
             "failed to reserve container name \"%s_%s_%u\": name is reserved for \"%s\"",
             config->metadata->name, sandbox->sandbox_config->metadata->name,
             config->metadata->attempt, other->id);
        return;
    }
    if (!str_table_has(&fake->images, str_of(config->image->image))) {
        fail(answer, GRPC_NOT_FOUND, "failed to resolve image \"%s\": not found",
             config->image->image);
        return;
    }
    struct fake_thing *container = fake_add(fake, false);
    container->parent = sandbox;
    container->container_config = config;
    Cri__CreateContainerResponse reply = CRI__CREATE_CONTAINER_RESPONSE__INIT;
    reply.container_id = (char *)container->id;
    answer_with(answer, &reply);
    fake_event(fake, container, CRI__CONTAINER_EVENT_TYPE__EVENT_CREATED);
}

/* NULL: the answer says that there is none. */
static struct fake_thing *container_or_fail(struct fake_cri *fake, const char *id,
                                            struct fake_answer *answer)
{
    struct fake_thing *container = fake_lookup(fake, id);
    if (container && !container->sandbox)
        return container;
    fail(answer, GRPC_NOT_FOUND, "an error occurred when try to find container \"%s\": not found",
         id);
    return NULL;
}

static void start_container(struct fake_cri *fake, const Cri__StartContainerRequest *request,
                            struct fake_answer *answer)
{
    struct fake_thing *container = container_or_fail(fake, request->container_id, answer);
    if (!container)
        return;
    if (container->state != RUNTIME_CREATED)
        fail(answer, UNKNOWN, "failed to set starting state for container \"%s\": is in %s state",
             container->id, state_word(container->state));
    else if (container->parent->removed || container->parent->state != RUNTIME_RUNNING)
        fail(answer, UNKNOWN, "sandbox container \"%s\" is not running", container->parent->id);
    else
        fake_start(fake, container);
}

static void stop_container(struct fake_cri *fake, const Cri__StopContainerRequest *request,
                           struct fake_answer *answer KV_UNUSED)
{
    struct fake_thing *container = fake_lookup(fake, request->container_id);
    if (container && !container->sandbox && container->state == RUNTIME_RUNNING)
        fake_exit(fake, container, request->timeout > 0 ? 143 : 137, NULL);
}

static void remove_container(struct fake_cri *fake, const Cri__RemoveContainerRequest *request,
                             struct fake_answer *answer KV_UNUSED)
{
    struct fake_thing *container = fake_lookup(fake, request->container_id);
    if (container && !container->sandbox)
        fake_remove(fake, container);
}

static bool container_wanted(const struct fake_thing *container, const Cri__ContainerFilter *filter)
{
    if (!filter)
        return true;
    const Cri__ContainerConfig *config = container->container_config;
    return (!filter->id[0] || strcmp(filter->id, container->id) == 0) &&
           (!filter->pod_sandbox_id[0] ||
            strcmp(filter->pod_sandbox_id, container->parent->id) == 0) &&
           (!filter->state || (uint8_t)filter->state->state == container->state) &&
           labels_match(config->labels, config->n_labels, filter->label_selector,
                        filter->n_label_selector);
}

static void list_containers(struct fake_cri *fake, const Cri__ListContainersRequest *request,
                            struct arena *arena, struct fake_answer *answer)
{
    Cri__ListContainersResponse reply = CRI__LIST_CONTAINERS_RESPONSE__INIT;
    reply.containers = arena_array(arena, Cri__Container *, fake->thing_count);
    for (uint32_t i = 0; i < fake->thing_count; i++) {
        const struct fake_thing *c = fake->things[i];
        if (c->sandbox || c->removed || !container_wanted(c, request->filter))
            continue;
        const Cri__ContainerConfig *config = c->container_config;
        Cri__Container *item = arena_new(arena, Cri__Container);
        cri__container__init(item);
        item->id = (char *)c->id;
        item->pod_sandbox_id = (char *)c->parent->id;
        item->metadata = config->metadata;
        item->image = config->image;
        item->image_ref = (char *)IMAGE_REF;
        item->image_id = (char *)IMAGE_ID;
        item->state = (Cri__ContainerState)c->state;
        item->created_at = c->created_ns;
        item->labels = config->labels;
        item->n_labels = config->n_labels;
        item->annotations = config->annotations;
        item->n_annotations = config->n_annotations;
        reply.containers[reply.n_containers++] = item;
    }
    answer_with(answer, &reply);
}

static void container_status(struct fake_cri *fake, const Cri__ContainerStatusRequest *request,
                             struct arena *arena, struct fake_answer *answer)
{
    struct fake_thing *container = container_or_fail(fake, request->container_id, answer);
    if (!container)
        return;
    Cri__ContainerStatusResponse reply = CRI__CONTAINER_STATUS_RESPONSE__INIT;
    reply.status = fake_container_status(arena, container);
    answer_with(answer, &reply);
}

static void exec_sync(struct fake_cri *fake, const Cri__ExecSyncRequest *request,
                      struct fake_answer *answer)
{
    struct fake_thing *container = container_or_fail(fake, request->container_id, answer);
    if (!container)
        return;
    if (container->state != RUNTIME_RUNNING) {
        fail(answer, UNKNOWN, "failed to exec in container: container is in %s state",
             state_word(container->state));
        return;
    }
    AUTO_BUF out = { 0 };
    Cri__ExecSyncResponse reply = CRI__EXEC_SYNC_RESPONSE__INIT;
    if (fake->exec)
        reply.exit_code = fake->exec(fake->exec_ctx, container->id, request, &out);
    reply.stdout.data = (uint8_t *)out.p;
    reply.stdout.len = out.len;
    answer_with(answer, &reply);
}

/* --- the runtime and its images --- */

static void version(struct fake_answer *answer)
{
    Cri__VersionResponse reply = CRI__VERSION_RESPONSE__INIT;
    reply.version = (char *)"0.1.0";
    reply.runtime_name = (char *)"containerd";
    reply.runtime_version = (char *)"2.0.0+fake";
    reply.runtime_api_version = (char *)"v1";
    answer_with(answer, &reply);
}

static void runtime_status(struct fake_answer *answer)
{
    Cri__RuntimeCondition runtime = CRI__RUNTIME_CONDITION__INIT;
    runtime.type = (char *)"RuntimeReady";
    runtime.status = true;
    Cri__RuntimeCondition network = runtime;
    network.type = (char *)"NetworkReady";
    Cri__RuntimeCondition *conditions[] = { &runtime, &network };
    Cri__RuntimeStatus status = CRI__RUNTIME_STATUS__INIT;
    status.conditions = conditions;
    status.n_conditions = KV_COUNT_OF(conditions);
    Cri__StatusResponse reply = CRI__STATUS_RESPONSE__INIT;
    reply.status = &status;
    answer_with(answer, &reply);
}

static void runtime_config(struct fake_answer *answer)
{
    Cri__LinuxRuntimeConfiguration configuration = CRI__LINUX_RUNTIME_CONFIGURATION__INIT;
    configuration.cgroup_driver = CRI__CGROUP_DRIVER__CGROUPFS;
    Cri__RuntimeConfigResponse reply = CRI__RUNTIME_CONFIG_RESPONSE__INIT;
    reply.linux_ = &configuration;
    answer_with(answer, &reply);
}

/* The image of that id: its names are all that point at it. */
static Cri__Image *image_of(struct fake_cri *fake, struct arena *arena, const char *id)
{
    Cri__Image *image = arena_new(arena, Cri__Image);
    cri__image__init(image);
    image->id = (char *)id;
    image->size = 1 << 20;
    image->repo_tags = arena_array(arena, char *, fake->images.live_count);
    str_table_each(&fake->images, it) {
        if (it->value == id && it->key.p && strcmp(it->key.p, id) != 0)
            image->repo_tags[image->n_repo_tags++] = (char *)it->key.p;
    }
    return image;
}

static void list_images(struct fake_cri *fake, struct arena *arena, struct fake_answer *answer)
{
    Cri__ListImagesResponse reply = CRI__LIST_IMAGES_RESPONSE__INIT;
    reply.images = arena_array(arena, Cri__Image *, fake->images.live_count);
    str_table_each(&fake->images, it) {
        if (str_eqz(it->key, it->value))
            reply.images[reply.n_images++] = image_of(fake, arena, it->value);
    }
    answer_with(answer, &reply);
}

static void image_status(struct fake_cri *fake, const Cri__ImageStatusRequest *request,
                         struct arena *arena, struct fake_answer *answer)
{
    Cri__ImageStatusResponse reply = CRI__IMAGE_STATUS_RESPONSE__INIT;
    const char *id =
        request->image ? str_table_get(&fake->images, str_of(request->image->image)) : NULL;
    if (id)
        reply.image = image_of(fake, arena, id);
    answer_with(answer, &reply);
}

static void pull_image(struct fake_cri *fake, const Cri__PullImageRequest *request,
                       struct fake_answer *answer)
{
    if (!request->image || !request->image->image[0]) {
        fail(answer, UNKNOWN, "failed to parse image reference \"\"");
        return;
    }
    Cri__PullImageResponse reply = CRI__PULL_IMAGE_RESPONSE__INIT;
    reply.image_ref = (char *)fake_image(fake, request->image->image);
    answer_with(answer, &reply);
}

static void remove_image(struct fake_cri *fake, const Cri__RemoveImageRequest *request)
{
    const char *id =
        request->image ? str_table_get(&fake->images, str_of(request->image->image)) : NULL;
    if (!id)
        return;
    str_table_each(&fake->images, it) {
        if (it->value == id)
            str_table_remove(&fake->images, it->key);
    }
}

static void image_fs_info(struct fake_answer *answer)
{
    Cri__FilesystemIdentifier id = CRI__FILESYSTEM_IDENTIFIER__INIT;
    id.mountpoint = (char *)"/var/lib/containerd";
    Cri__FilesystemUsage usage = CRI__FILESYSTEM_USAGE__INIT;
    usage.fs_id = &id;
    Cri__FilesystemUsage *usages[] = { &usage };
    Cri__ImageFsInfoResponse reply = CRI__IMAGE_FS_INFO_RESPONSE__INIT;
    reply.image_filesystems = usages;
    reply.n_image_filesystems = 1;
    answer_with(answer, &reply);
}

/* --- requests --- */

static void *request_alloc(void *ctx, size_t bytes)
{
    return arena_alloc(ctx, bytes);
}

static void request_free(void *ctx KV_UNUSED, void *p KV_UNUSED)
{
}

void *fake_request(enum cri_method method, struct str bytes, struct arena *arena)
{
    ProtobufCAllocator allocator = { .alloc = request_alloc,
                                     .free = request_free,
                                     .allocator_data = arena };
    return protobuf_c_message_unpack(cri_request_type(method), &allocator, bytes.len,
                                     (const uint8_t *)bytes.p);
}

static bool same_image(const Cri__ImageSpec *spec, const char *name)
{
    return spec && strcmp(spec->image, name) == 0;
}

bool fake_request_names(enum cri_method method, const void *message, const char *id)
{
    switch (method) {
    case CRI_RUN_POD_SANDBOX: {
        const Cri__RunPodSandboxRequest *request = message;
        return request->config && request->config->metadata &&
               strcmp(request->config->metadata->uid, id) == 0;
    }
    case CRI_CREATE_CONTAINER: {
        const Cri__CreateContainerRequest *request = message;
        return strcmp(request->pod_sandbox_id, id) == 0 ||
               (request->config && request->config->metadata &&
                strcmp(request->config->metadata->name, id) == 0);
    }
    case CRI_IMAGE_STATUS:
        return same_image(((const Cri__ImageStatusRequest *)message)->image, id);
    case CRI_PULL_IMAGE:
        return same_image(((const Cri__PullImageRequest *)message)->image, id);
    case CRI_REMOVE_IMAGE:
        return same_image(((const Cri__RemoveImageRequest *)message)->image, id);
    case CRI_STOP_POD_SANDBOX:
    case CRI_REMOVE_POD_SANDBOX:
    case CRI_POD_SANDBOX_STATUS: /* the id is field 1 of all these, and laid out alike */
        return strcmp(((const Cri__StopPodSandboxRequest *)message)->pod_sandbox_id, id) == 0;
    case CRI_START_CONTAINER:
    case CRI_STOP_CONTAINER:
    case CRI_REMOVE_CONTAINER:
    case CRI_CONTAINER_STATUS:
    case CRI_EXEC_SYNC:
    case CRI_REOPEN_CONTAINER_LOG:
        return strcmp(((const Cri__StartContainerRequest *)message)->container_id, id) == 0;
    case CRI_VERSION:
    case CRI_STATUS:
    case CRI_LIST_POD_SANDBOX:
    case CRI_LIST_CONTAINERS:
    case CRI_GET_CONTAINER_EVENTS:
    case CRI_UPDATE_RUNTIME_CONFIG:
    case CRI_RUNTIME_CONFIG:
    case CRI_LIST_IMAGES:
    case CRI_IMAGE_FS_INFO:
    case CRI_METHOD_COUNT:
        return false;
    }
    KV_UNREACHABLE();
}

void fake_carry_out(struct fake_cri *fake, enum cri_method method, struct str bytes,
                    struct fake_answer *answer)
{
    AUTO_ARENA scratch = { 0 };
    /* Configurations are kept. */
    bool kept = method == CRI_RUN_POD_SANDBOX || method == CRI_CREATE_CONTAINER;
    void *request = fake_request(method, bytes, kept ? &fake->arena : &scratch);
    if (!request) {
        fail(answer, 13, "grpc: error unmarshalling request");
        return;
    }
    switch (method) {
    case CRI_VERSION:
        version(answer);
        return;
    case CRI_STATUS:
        runtime_status(answer);
        return;
    case CRI_RUN_POD_SANDBOX:
        run_pod_sandbox(fake, request, answer);
        return;
    case CRI_STOP_POD_SANDBOX:
        stop_pod_sandbox(fake, request, answer);
        return;
    case CRI_REMOVE_POD_SANDBOX:
        remove_pod_sandbox(fake, request, answer);
        return;
    case CRI_POD_SANDBOX_STATUS:
        pod_sandbox_status(fake, request, &scratch, answer);
        return;
    case CRI_LIST_POD_SANDBOX:
        list_pod_sandbox(fake, request, &scratch, answer);
        return;
    case CRI_CREATE_CONTAINER:
        create_container(fake, request, answer);
        return;
    case CRI_START_CONTAINER:
        start_container(fake, request, answer);
        return;
    case CRI_STOP_CONTAINER:
        stop_container(fake, request, answer);
        return;
    case CRI_REMOVE_CONTAINER:
        remove_container(fake, request, answer);
        return;
    case CRI_LIST_CONTAINERS:
        list_containers(fake, request, &scratch, answer);
        return;
    case CRI_CONTAINER_STATUS:
        container_status(fake, request, &scratch, answer);
        return;
    case CRI_EXEC_SYNC:
        exec_sync(fake, request, answer);
        return;
    case CRI_REOPEN_CONTAINER_LOG:
        container_or_fail(fake, ((Cri__ReopenContainerLogRequest *)request)->container_id, answer);
        return;
    case CRI_RUNTIME_CONFIG:
        runtime_config(answer);
        return;
    case CRI_LIST_IMAGES:
        list_images(fake, &scratch, answer);
        return;
    case CRI_IMAGE_STATUS:
        image_status(fake, request, &scratch, answer);
        return;
    case CRI_PULL_IMAGE:
        pull_image(fake, request, answer);
        return;
    case CRI_REMOVE_IMAGE:
        remove_image(fake, request);
        return;
    case CRI_IMAGE_FS_INFO:
        image_fs_info(answer);
        return;
    case CRI_UPDATE_RUNTIME_CONFIG:
        return;
    case CRI_GET_CONTAINER_EVENTS: /* a stream: the server's */
    case CRI_METHOD_COUNT:
        break;
    }
    KV_UNREACHABLE();
}
