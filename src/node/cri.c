/* One table has all there is to know of a method; calls are bytes out, bytes in, and the generated
 * descriptors turn messages into them. A reply is decoded by an allocator that is the caller's
 * arena: a listing of 300 items costs a few blocks instead of thousands of small pieces, and a
 * decode that fails leaves nothing to clean up. */
#include "node/cri_inner.h"

#include <pthread.h>
#include <stdatomic.h>

#define SECONDS ((int64_t)1000000000)

/* --- methods --- */

struct method {
    const char *name, *path, *operation; /* the last: as kubelets call it in their metrics */
    const ProtobufCMessageDescriptor *request, *reply;
    int64_t timeout_ns; /* 0: none */
};

#define METHOD(service_, name_, request_, reply_, operation_, timeout_ns_)                         \
    {                                                                                              \
        .name = name_, .path = "/runtime.v1." service_ "Service/" name_, .operation = operation_,  \
        .request = &cri__##request_##__descriptor, .reply = &cri__##reply_##__descriptor,          \
        .timeout_ns = timeout_ns_                                                                  \
    }
#define RUNTIME(name_, type_, operation_, timeout_ns_)                                             \
    METHOD("Runtime", name_, type_##_request, type_##_response, operation_, timeout_ns_)
#define IMAGE(name_, type_, operation_, timeout_ns_)                                               \
    METHOD("Image", name_, type_##_request, type_##_response, operation_, timeout_ns_)

static const struct method methods[CRI_METHOD_COUNT] = {
    [CRI_VERSION] = RUNTIME("Version", version, "version", 10 * SECONDS),
    [CRI_STATUS] = RUNTIME("Status", status, "status", 10 * SECONDS),
    [CRI_RUN_POD_SANDBOX] =
        RUNTIME("RunPodSandbox", run_pod_sandbox, "run_podsandbox", 240 * SECONDS),
    [CRI_STOP_POD_SANDBOX] =
        RUNTIME("StopPodSandbox", stop_pod_sandbox, "stop_podsandbox", CRI_TIMEOUT_NS),
    [CRI_REMOVE_POD_SANDBOX] =
        RUNTIME("RemovePodSandbox", remove_pod_sandbox, "remove_podsandbox", CRI_TIMEOUT_NS),
    [CRI_POD_SANDBOX_STATUS] = RUNTIME("PodSandboxStatus", pod_sandbox_status, "podsandbox_status",
                                       CRI_INSPECT_TIMEOUT_NS),
    [CRI_LIST_POD_SANDBOX] =
        RUNTIME("ListPodSandbox", list_pod_sandbox, "list_podsandbox", CRI_TIMEOUT_NS),
    [CRI_CREATE_CONTAINER] =
        RUNTIME("CreateContainer", create_container, "create_container", CRI_TIMEOUT_NS),
    [CRI_START_CONTAINER] =
        RUNTIME("StartContainer", start_container, "start_container", CRI_TIMEOUT_NS),
    [CRI_STOP_CONTAINER] =
        RUNTIME("StopContainer", stop_container, "stop_container", CRI_TIMEOUT_NS),
    [CRI_REMOVE_CONTAINER] =
        RUNTIME("RemoveContainer", remove_container, "remove_container", CRI_TIMEOUT_NS),
    [CRI_LIST_CONTAINERS] =
        RUNTIME("ListContainers", list_containers, "list_containers", CRI_TIMEOUT_NS),
    [CRI_CONTAINER_STATUS] =
        RUNTIME("ContainerStatus", container_status, "container_status", CRI_INSPECT_TIMEOUT_NS),
    [CRI_GET_CONTAINER_EVENTS] = METHOD("Runtime", "GetContainerEvents", get_events_request,
                                        container_event_response, "get_container_events", 0),
    [CRI_UPDATE_RUNTIME_CONFIG] = RUNTIME("UpdateRuntimeConfig", update_runtime_config,
                                          "update_runtime_config", CRI_TIMEOUT_NS),
    [CRI_EXEC_SYNC] = RUNTIME("ExecSync", exec_sync, "exec_sync", CRI_TIMEOUT_NS),
    [CRI_REOPEN_CONTAINER_LOG] =
        RUNTIME("ReopenContainerLog", reopen_container_log, "reopen_container_log", CRI_TIMEOUT_NS),
    [CRI_RUNTIME_CONFIG] = RUNTIME("RuntimeConfig", runtime_config, "runtime_config", 10 * SECONDS),
    [CRI_LIST_IMAGES] = IMAGE("ListImages", list_images, "list_images", CRI_TIMEOUT_NS),
    [CRI_IMAGE_STATUS] = IMAGE("ImageStatus", image_status, "image_status", CRI_TIMEOUT_NS),
    [CRI_PULL_IMAGE] = IMAGE("PullImage", pull_image, "pull_image", 0),
    [CRI_REMOVE_IMAGE] = IMAGE("RemoveImage", remove_image, "remove_image", CRI_TIMEOUT_NS),
    [CRI_IMAGE_FS_INFO] = IMAGE("ImageFsInfo", image_fs_info, "image_fs_info", CRI_TIMEOUT_NS),
};

const char *cri_method_name(enum cri_method method)
{
    KV_ASSERT(method < CRI_METHOD_COUNT);
    return methods[method].name;
}

const ProtobufCMessageDescriptor *cri_request_type(enum cri_method method)
{
    return methods[method].request;
}

const ProtobufCMessageDescriptor *cri_reply_type(enum cri_method method)
{
    return methods[method].reply;
}

/* What a request says of its own length comes on top of the limit; an ExecSync that sets no limit
 * has none. */
static int64_t default_timeout(enum cri_method method, const void *maybe_request)
{
    int64_t own_s;
    if (method == CRI_STOP_CONTAINER && maybe_request)
        own_s = ((const Cri__StopContainerRequest *)maybe_request)->timeout;
    else if (method == CRI_EXEC_SYNC && maybe_request)
        own_s = ((const Cri__ExecSyncRequest *)maybe_request)->timeout;
    else
        return methods[method].timeout_ns;
    if (method == CRI_EXEC_SYNC && own_s <= 0)
        return 0;
    int64_t limit_s = INT64_MAX / SECONDS - CRI_TIMEOUT_NS / SECONDS;
    own_s = own_s < 0 ? 0 : own_s > limit_s ? limit_s : own_s;
    return own_s * SECONDS + CRI_TIMEOUT_NS;
}

/* --- the client --- */

struct method_metrics {
    struct metric *total, *errors, *duration; /* NULL: not counted */
};

struct cri {
    struct grpc *grpc;
    const struct clock *clock;
    atomic_uint_fast64_t counts[CRI_METHOD_COUNT];
    struct method_metrics metrics[CRI_METHOD_COUNT];
};

/* Those of a kubelet, in seconds: 5 ms and 13 times 2.5 of it. */
static const double duration_bounds[] = {
    .005,          .0125,         .03125,        .078125,       .1953125,
    .48828125,     1.220703125,   3.0517578125,  7.62939453125, 19.073486328125,
    47.6837158203, 119.209289551, 298.023223877, 745.058059692,
};

static void register_metrics(struct cri *cri, struct metrics *m)
{
    static const char *const labels[] = { "operation_type", NULL };
    struct metric_family *total =
        metrics_family(m, &(struct metric_desc){ .name = "kubelet_runtime_operations_total",
                                                 .help = "Calls to the container runtime.",
                                                 .type = METRIC_COUNTER,
                                                 .labels = labels });
    struct metric_family *errors = metrics_family(
        m, &(struct metric_desc){ .name = "kubelet_runtime_operations_errors_total",
                                  .help = "Calls to the container runtime that failed.",
                                  .type = METRIC_COUNTER,
                                  .labels = labels });
    struct metric_family *duration = metrics_family(
        m, &(struct metric_desc){ .name = "kubelet_runtime_operations_duration_seconds",
                                  .help = "How long calls to the container runtime took.",
                                  .type = METRIC_HISTOGRAM,
                                  .labels = labels,
                                  .buckets = duration_bounds,
                                  .bucket_count = KV_COUNT_OF(duration_bounds) });
    for (size_t i = 0; i < CRI_METHOD_COUNT; i++) {
        struct str operation = str_of(methods[i].operation);
        cri->metrics[i] = (struct method_metrics){ .total = metric_get(total, &operation),
                                                   .errors = metric_get(errors, &operation),
                                                   .duration = metric_get(duration, &operation) };
    }
}

/* "unix:///run/x.sock", "unix:/run/x.sock" or "/run/x.sock". */
static int socket_path(const char *endpoint, const char **out, struct err *err)
{
    struct str rest = str_of(endpoint);
    if (str_starts(rest, STR("unix://")))
        rest = str_sub(rest, 7, SIZE_MAX);
    else if (str_starts(rest, STR("unix:")))
        rest = str_sub(rest, 5, SIZE_MAX);
    if (!str_starts(rest, STR("/")))
        return err_set(
            err, ERR_INVALID,
            "runtime endpoint %s: want the path of a socket, as in " CRI_ENDPOINT_DEFAULT,
            STR_SHOWN(str_of(endpoint)));
    *out = rest.p;
    return 0;
}

int cri_new(struct cri_options options, struct cri **out, struct err *err)
{
    const char *path = NULL;
    AUTO(cri) cri = kv_calloc(1, sizeof *cri);
    cri->clock = options.clock;
    if (socket_path(options.endpoint, &path, err) < 0)
        return -1;
    if (grpc_new((struct grpc_options){ .path = path, .log = options.log }, &cri->grpc, err) < 0)
        return err_wrap(err, "runtime endpoint %s", STR_SHOWN(str_of(options.endpoint)));
    if (options.metrics)
        register_metrics(cri, options.metrics);
    *out = take(&cri);
    return 0;
}

void cri_free(struct cri *cri)
{
    if (!cri)
        return;
    grpc_free(cri->grpc);
    for (size_t i = 0; i < CRI_METHOD_COUNT; i++) {
        metric_unref(cri->metrics[i].total);
        metric_unref(cri->metrics[i].errors);
        metric_unref(cri->metrics[i].duration);
    }
    free(cri);
}

int64_t cri_now_ns(const struct cri *cri)
{
    return clock_mono_ns(cri->clock);
}

uint64_t cri_call_count(const struct cri *cri, enum cri_method method)
{
    KV_ASSERT(method < CRI_METHOD_COUNT);
    return atomic_load_explicit(&cri->counts[method], memory_order_relaxed);
}

/* --- decoding --- */

struct decode_memory {
    struct arena *arena;
    size_t bytes_left;
};

static void *decode_alloc(void *ctx, size_t bytes)
{
    struct decode_memory *memory = ctx;
    if (bytes > memory->bytes_left)
        return NULL; /* and the decode fails */
    memory->bytes_left -= bytes;
    return arena_alloc(memory->arena, bytes);
}

static void decode_free(void *ctx KV_UNUSED, void *p KV_UNUSED)
{
}

void *cri_decode(enum cri_method method, struct str bytes, struct arena *arena)
{
    struct decode_memory memory = { .arena = arena, .bytes_left = CRI_DECODED_BYTES_MAX };
    ProtobufCAllocator allocator = { .alloc = decode_alloc,
                                     .free = decode_free,
                                     .allocator_data = &memory };
    return protobuf_c_message_unpack(methods[method].reply, &allocator, bytes.len,
                                     (const uint8_t *)bytes.p);
}

static int decode_into(enum cri_method method, struct str bytes, struct arena *arena, void *out,
                       struct err *err)
{
    void *message = cri_decode(method, bytes, arena);
    if (!message)
        return err_set(err, ERR_INTERNAL, "%s: the reply of %zu bytes is not a %s",
                       methods[method].name, bytes.len, methods[method].reply->short_name);
    memcpy(out, &message, sizeof message); /* out is a pointer to a pointer to the reply's type */
    return 0;
}

/* --- a call in two halves --- */

struct cri_pending {
    struct cri *cri;
    struct grpc_call *call;
    enum cri_method method;
    int64_t began_ns;
    bool told;                       /* its end was counted */
    struct cri_cancel *maybe_cancel; /* it is among the calls of this */
    struct cri_pending *next_to_cancel, *previous_to_cancel;
};

struct cri_pending *cri_start(struct cri *cri, enum cri_method method, const void *request,
                              int64_t timeout_ns, void (*wake)(void *ctx), void *ctx)
{
    KV_ASSERT(method < CRI_METHOD_COUNT);
    const ProtobufCMessage *message = request;
    KV_ASSERT(!message || message->descriptor == methods[method].request);

    size_t bytes = message ? protobuf_c_message_get_packed_size(message) : 0;
    AUTO_FREE uint8_t *packed = kv_malloc(bytes + 1);
    if (message)
        protobuf_c_message_pack(message, packed);

    struct cri_pending *pending = kv_calloc(1, sizeof *pending);
    pending->cri = cri;
    pending->method = method;
    pending->began_ns = clock_mono_ns(cri->clock);
    atomic_fetch_add_explicit(&cri->counts[method], 1, memory_order_relaxed);
    if (cri->metrics[method].total)
        metric_inc(cri->metrics[method].total);
    struct grpc_call_options options = { .timeout_ns = timeout_ns,
                                         .stream = method == CRI_GET_CONTAINER_EVENTS,
                                         .wake = wake,
                                         .ctx = ctx };
    pending->call = grpc_start(cri->grpc, methods[method].path,
                               (struct str){ (const char *)packed, bytes }, options);
    return pending;
}

void cri_cork(struct cri *cri)
{
    grpc_cork(cri->grpc);
}

void cri_uncork(struct cri *cri)
{
    grpc_uncork(cri->grpc);
}

bool cri_ready(struct cri_pending *pending)
{
    return grpc_ready(pending->call);
}

static void tell(struct cri_pending *pending, bool failed)
{
    const struct method_metrics *metrics = &pending->cri->metrics[pending->method];
    if (pending->told || !metrics->total)
        return;
    pending->told = true;
    int64_t took_ns = clock_mono_ns(pending->cri->clock) - pending->began_ns;
    if (pending->method != CRI_GET_CONTAINER_EVENTS) /* a stream lasts; that says nothing */
        metric_observe(metrics->duration, (double)took_ns / 1e9);
    if (failed)
        metric_inc(metrics->errors);
}

static int told(struct cri_pending *pending, int rc, struct err *err)
{
    tell(pending, rc < 0);
    return rc < 0 ? err_wrap(err, "%s", methods[pending->method].name) : 0;
}

int cri_take_bytes(struct cri_pending *pending, struct str *reply, struct err *err)
{
    return told(pending, grpc_finish(pending->call, reply, err), err);
}

int cri_uncork_take_bytes(struct cri_pending *pending, struct str *reply, struct err *err)
{
    return told(pending, grpc_uncork_finish(pending->call, reply, err), err);
}

int cri_take(struct cri_pending *pending, struct arena *arena, void *out, struct err *err)
{
    struct str reply;
    if (cri_take_bytes(pending, &reply, err) < 0)
        return -1;
    return out ? decode_into(pending->method, reply, arena, out, err) : 0;
}

int cri_take_next(struct cri_pending *stream, struct arena *arena, void *out, struct err *err)
{
    struct str message;
    int rc = grpc_next(stream->call, &message, err);
    if (rc <= 0)
        tell(stream, rc < 0);
    if (rc < 0)
        return err_wrap(err, "%s", methods[stream->method].name);
    if (rc == 1 && decode_into(stream->method, message, arena, out, err) < 0)
        return -1;
    return rc;
}

uint32_t cri_pending_status(struct cri_pending *pending)
{
    return grpc_call_status(pending->call);
}

void cri_pending_cancel(struct cri_pending *pending)
{
    grpc_cancel(pending->call);
}

/* --- a way out of a call --- */

struct cri_cancel {
    pthread_mutex_t mutex; /* guards all below; grpc_cancel is called with it held */
    bool cancelled;
    struct cri_pending *calls; /* that run with it now */
};

struct cri_cancel *cri_cancel_new(void)
{
    struct cri_cancel *cancel = kv_calloc(1, sizeof *cancel);
    pthread_mutex_init(&cancel->mutex, NULL);
    return cancel;
}

void cri_cancel_free(struct cri_cancel *cancel)
{
    if (!cancel)
        return;
    KV_ASSERT(!cancel->calls);
    pthread_mutex_destroy(&cancel->mutex);
    free(cancel);
}

void cri_cancel(struct cri_cancel *cancel)
{
    pthread_mutex_lock(&cancel->mutex);
    cancel->cancelled = true;
    for (struct cri_pending *p = cancel->calls; p; p = p->next_to_cancel)
        grpc_cancel(p->call);
    pthread_mutex_unlock(&cancel->mutex);
}

bool cri_cancelled(struct cri_cancel *cancel)
{
    pthread_mutex_lock(&cancel->mutex);
    bool cancelled = cancel->cancelled;
    pthread_mutex_unlock(&cancel->mutex);
    return cancelled;
}

void cri_cancel_enter(struct cri_cancel *cancel, struct cri_pending *pending)
{
    pending->maybe_cancel = cancel;
    pthread_mutex_lock(&cancel->mutex);
    if (cancel->cancelled)
        grpc_cancel(pending->call);
    pending->next_to_cancel = cancel->calls;
    if (cancel->calls)
        cancel->calls->previous_to_cancel = pending;
    cancel->calls = pending;
    pthread_mutex_unlock(&cancel->mutex);
}

static void cancel_leave(struct cri_cancel *cancel, struct cri_pending *pending)
{
    pthread_mutex_lock(&cancel->mutex);
    if (pending->next_to_cancel)
        pending->next_to_cancel->previous_to_cancel = pending->previous_to_cancel;
    if (pending->previous_to_cancel)
        pending->previous_to_cancel->next_to_cancel = pending->next_to_cancel;
    else
        cancel->calls = pending->next_to_cancel;
    pthread_mutex_unlock(&cancel->mutex);
}

void cri_pending_free(struct cri_pending *pending)
{
    if (!pending)
        return;
    if (pending->maybe_cancel)
        cancel_leave(pending->maybe_cancel, pending);
    grpc_call_free(pending->call);
    free(pending);
}

/* --- a whole call --- */

int cri_call_within(struct cri *cri, enum cri_method method, const void *request,
                    int64_t timeout_ns, struct cri_cancel *maybe_cancel, struct arena *arena,
                    void *out, struct err *err)
{
    KV_ASSERT(method != CRI_GET_CONTAINER_EVENTS);
    if (maybe_cancel && cri_cancelled(maybe_cancel))
        return err_set(err, ERR_CANCELLED, "%s: cancelled", cri_method_name(method));
    struct cri_pending *pending = cri_start(cri, method, request, timeout_ns, NULL, NULL);
    if (maybe_cancel)
        cri_cancel_enter(maybe_cancel, pending);
    int rc = cri_take(pending, arena, out, err);
    cri_pending_free(pending);
    return rc;
}

int cri_call(struct cri *cri, enum cri_method method, const void *request, struct arena *arena,
             void *out, struct err *err)
{
    return cri_call_within(cri, method, request, default_timeout(method, request), NULL, arena, out,
                           err);
}
