#include "node/cri_inner.h"
#include "node/fake_cri_testing.h"
#include "tests/support/test.h"

#include <pthread.h>
#include <sched.h>

static struct cri *client_of(struct fake_cri *fake)
{
    struct err err;
    struct cri *cri = NULL;
    EXPECT_OK(
        cri_new((struct cri_options){ .endpoint = fake_cri_endpoint(fake), .clock = clock_real() },
                &cri, &err),
        err);
    return cri;
}

static void wait_for_waiting(struct fake_cri *fake, uint32_t count)
{
    while (fake_cri_waiting(fake) != count)
        sched_yield();
}

TEST(a_call_gives_a_message_of_the_replys_type)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    struct err err;
    Cri__VersionRequest request = CRI__VERSION_REQUEST__INIT;
    Cri__VersionResponse *reply;
    EXPECT_OK(cri_call(cri, CRI_VERSION, &request, &arena, &reply, &err), err);
    EXPECT_Z(reply->runtime_name, "containerd");
    EXPECT_Z(reply->runtime_api_version, "v1");
    EXPECT_EQ(cri_call_count(cri, CRI_VERSION), 1);
    EXPECT_EQ(cri_call_count(cri, CRI_STATUS), 0);
}

TEST(a_request_without_fields_may_be_left_out_and_so_may_the_reply)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    struct err err;
    EXPECT_OK(cri_call(cri, CRI_RUNTIME_CONFIG, NULL, NULL, NULL, &err), err);
    EXPECT_EQ(fake_cri_calls(fake, CRI_RUNTIME_CONFIG), 1);
}

TEST(every_method_reaches_its_service_under_its_name)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    for (enum cri_method m = 0; m < CRI_METHOD_COUNT; m++) {
        if (m == CRI_GET_CONTAINER_EVENTS)
            continue;
        cri_call(cri, m, NULL, NULL, NULL, NULL);
        EXPECT_EQ(fake_cri_calls(fake, m), 1);
        EXPECT_EQ(cri_call_count(cri, m), 1);
    }
}

TEST(a_failure_has_the_servers_kind_and_starts_with_the_method)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    struct err err;
    char id[] = "nothing";
    Cri__ContainerStatusRequest request = CRI__CONTAINER_STATUS_REQUEST__INIT;
    request.container_id = id;
    Cri__ContainerStatusResponse *reply = NULL;
    EXPECT_ERR(cri_call(cri, CRI_CONTAINER_STATUS, &request, &arena, &reply, &err), err,
               ERR_NOT_FOUND);
    EXPECT_TRUE(str_starts(str_of(err.text), STR("ContainerStatus: ")));
    EXPECT_HAS(str_of(err.text), "nothing");
    EXPECT_TRUE(reply == NULL);
}

TEST(a_reply_that_does_not_decode_is_an_internal_error_that_names_the_method)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    struct err err;
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_STATUS, .garbage = true });
    Cri__StatusResponse *reply = NULL;
    EXPECT_ERR(cri_call(cri, CRI_STATUS, NULL, &arena, &reply, &err), err, ERR_INTERNAL);
    EXPECT_HAS(str_of(err.text), "Status: ");
    EXPECT_TRUE(reply == NULL);
}

TEST(a_reply_whose_messages_would_fill_the_memory_is_refused)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF bytes = { 0 };
    for (int i = 0; i < 4000000; i++)
        buf_add(&bytes, STR("\x12\x00")); /* an empty entry of `info`: 2 bytes here, 50 decoded */
    EXPECT_TRUE(cri_decode(CRI_STATUS, buf_str(&bytes), &arena) == NULL);
    EXPECT_TRUE(arena.used_bytes <= CRI_DECODED_BYTES_MAX + 4096);
}

TEST(endpoints_are_paths_with_or_without_their_scheme)
{
    struct err err;
    static const char *const good[] = { "unix:///run/x.sock", "unix:/run/x.sock", "/run/x.sock" };
    for (size_t i = 0; i < KV_COUNT_OF(good); i++) {
        AUTO(cri) cri = NULL;
        EXPECT_OK(
            cri_new((struct cri_options){ .endpoint = good[i], .clock = clock_real() }, &cri, &err),
            err);
    }
    static const char *const bad[] = { "", "run/x.sock", "tcp://127.0.0.1:80", "unix://",
                                       "unix:x" };
    for (size_t i = 0; i < KV_COUNT_OF(bad); i++) {
        AUTO(cri) cri = NULL;
        EXPECT_ERR(
            cri_new((struct cri_options){ .endpoint = bad[i], .clock = clock_real() }, &cri, &err),
            err, ERR_INVALID);
        EXPECT_HAS(str_of(err.text), "runtime endpoint");
    }
}

TEST(a_call_ends_when_its_time_is_over)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    struct err err;
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_VERSION, .hang = true });
    EXPECT_ERR(cri_call_within(cri, CRI_VERSION, NULL, 20000000, NULL, NULL, NULL, &err), err,
               ERR_UNAVAILABLE);
    EXPECT_HAS(str_of(err.text), "Version: ");
}

/* --- cancelling --- */

struct caller {
    struct cri *cri;
    struct cri_cancel *cancel;
    int rc;
    struct err err;
};

static void *call_and_wait(void *arg)
{
    struct caller *c = arg;
    c->rc = cri_call_within(c->cri, CRI_VERSION, NULL, 0, c->cancel, NULL, NULL, &c->err);
    return NULL;
}

TEST(cancelling_ends_every_call_that_runs_with_it_and_no_other)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO(cri_cancel) cancel = cri_cancel_new();
    AUTO(cri_cancel) other = cri_cancel_new();
    struct caller callers[5];
    pthread_t threads[5];
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_VERSION, .hang = true });
    for (int i = 0; i < 5; i++) {
        callers[i] = (struct caller){ .cri = cri, .cancel = i < 4 ? cancel : other };
        EXPECT_EQ(pthread_create(&threads[i], NULL, call_and_wait, &callers[i]), 0);
    }
    wait_for_waiting(fake, 5);
    cri_cancel(cancel);
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        EXPECT_ERR(callers[i].rc, callers[i].err, ERR_CANCELLED);
        EXPECT_HAS(str_of(callers[i].err.text), "Version: ");
    }
    fake_cri_heal(fake);
    pthread_join(threads[4], NULL);
    EXPECT_OK(callers[4].rc, callers[4].err);
}

TEST(a_call_after_cancelling_is_not_made)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO(cri_cancel) cancel = cri_cancel_new();
    struct err err;
    cri_cancel(cancel);
    EXPECT_ERR(cri_call_within(cri, CRI_VERSION, NULL, 0, cancel, NULL, NULL, &err), err,
               ERR_CANCELLED);
    EXPECT_EQ(fake_cri_calls(fake, CRI_VERSION), 0);
}

/* --- in two halves --- */

static void count_wake(void *ctx)
{
    atomic_fetch_add((atomic_uint *)ctx, 1);
}

TEST(a_call_in_two_halves_wakes_its_owner_when_it_is_ready)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    struct err err;
    atomic_uint wakes = 0;
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_VERSION, .hang = true });
    struct cri_pending *pending = cri_start(cri, CRI_VERSION, NULL, 0, count_wake, &wakes);
    wait_for_waiting(fake, 1);
    EXPECT_FALSE(cri_ready(pending));
    EXPECT_EQ(atomic_load(&wakes), 0);
    fake_cri_heal(fake);
    while (atomic_load(&wakes) == 0)
        sched_yield();
    EXPECT_TRUE(cri_ready(pending));
    Cri__VersionResponse *reply;
    EXPECT_OK(cri_take(pending, &arena, &reply, &err), err);
    EXPECT_EQ(cri_pending_status(pending), GRPC_OK);
    EXPECT_Z(reply->version, "0.1.0");
    cri_pending_free(pending);
}

TEST(an_old_runtime_has_no_events_and_says_so)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ .no_events = true });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    struct err err;
    Cri__ContainerEventResponse *event;
    struct cri_pending *stream = cri_start(cri, CRI_GET_CONTAINER_EVENTS, NULL, 0, NULL, NULL);
    EXPECT_EQ(cri_take_next(stream, &arena, &event, &err), -1);
    EXPECT_EQ(cri_pending_status(stream), GRPC_UNIMPLEMENTED);
    EXPECT_HAS(str_of(err.text), "GetContainerEvents: ");
    cri_pending_free(stream);
}

TEST(events_come_in_order_with_the_statuses_of_their_pod)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    struct err err;
    struct cri_pending *stream = cri_start(cri, CRI_GET_CONTAINER_EVENTS, NULL, 0, NULL, NULL);
    while (fake_cri_listeners(fake) == 0)
        sched_yield();
    const char *sandbox = fake_cri_sandbox(fake, "uid-1", "web", 0);
    const char *id = fake_cri_container(fake, sandbox, "main", 0);
    fake_cri_start(fake, id);
    fake_cri_exit(fake, id, 3);
    fake_cri_remove(fake, sandbox);
    const struct {
        const char *id;
        Cri__ContainerEventType type;
        size_t containers;
        bool sandbox_gone;
    } want[] = {
        { sandbox, CRI__CONTAINER_EVENT_TYPE__EVENT_CREATED, 0, false },
        { sandbox, CRI__CONTAINER_EVENT_TYPE__EVENT_STARTED, 0, false },
        { id, CRI__CONTAINER_EVENT_TYPE__EVENT_CREATED, 1, false },
        { id, CRI__CONTAINER_EVENT_TYPE__EVENT_STARTED, 1, false },
        { id, CRI__CONTAINER_EVENT_TYPE__EVENT_STOPPED, 1, false },
        { sandbox, CRI__CONTAINER_EVENT_TYPE__EVENT_STOPPED, 1, false },
        { id, CRI__CONTAINER_EVENT_TYPE__EVENT_DELETED, 0, false },
        { sandbox, CRI__CONTAINER_EVENT_TYPE__EVENT_DELETED, 0, true },
    };
    for (size_t i = 0; i < KV_COUNT_OF(want); i++) {
        Cri__ContainerEventResponse *event;
        EXPECT_EQ(cri_take_next(stream, &arena, &event, &err), 1);
        EXPECT_Z(event->container_id, want[i].id);
        EXPECT_EQ(event->container_event_type, want[i].type);
        EXPECT_EQ(event->n_containers_statuses, want[i].containers);
        EXPECT_EQ(event->pod_sandbox_status == NULL, want[i].sandbox_gone);
        if (event->pod_sandbox_status)
            EXPECT_Z(event->pod_sandbox_status->metadata->uid, "uid-1");
    }
    fake_cri_events_end(fake, 0);
    Cri__ContainerEventResponse *event;
    EXPECT_EQ(cri_take_next(stream, &arena, &event, &err), 0);
    cri_pending_free(stream);
}

TEST(a_stream_that_is_cancelled_ends)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    struct err err;
    Cri__ContainerEventResponse *event;
    struct cri_pending *stream = cri_start(cri, CRI_GET_CONTAINER_EVENTS, NULL, 0, NULL, NULL);
    cri_pending_cancel(stream);
    EXPECT_ERR(cri_take_next(stream, &arena, &event, &err), err, ERR_CANCELLED);
    cri_pending_free(stream);
    while (fake_cri_listeners(fake) > 0)
        sched_yield();
}

/* --- the fake's own faults, which other tests build on --- */

static struct cri_pending *listen_to(struct fake_cri *fake, struct cri *cri)
{
    uint32_t before = fake_cri_listeners(fake);
    struct cri_pending *stream = cri_start(cri, CRI_GET_CONTAINER_EVENTS, NULL, 0, NULL, NULL);
    while (fake_cri_listeners(fake) == before)
        sched_yield();
    return stream;
}

/* Ends the streams and tells in letters what this one had received: "CSPD" of sandboxes, small of containers. */
static void expect_events(struct fake_cri *fake, struct cri_pending *stream, const char *want)
{
    AUTO_ARENA arena = { 0 };
    AUTO_BUF got = { 0 };
    struct err err;
    Cri__ContainerEventResponse *event;
    int rc;
    fake_cri_events_end(fake, 0);
    while ((rc = cri_take_next(stream, &arena, &event, &err)) == 1)
        buf_addc(&got, (fake_cri_get(fake, event->container_id).sandbox
                            ? "CSPD"
                            : "cspd")[event->container_event_type]);
    EXPECT_EQ(rc, 0);
    EXPECT_STR(buf_str(&got), want);
    cri_pending_free(stream);
}

TEST(the_fake_sends_every_event_to_everybody)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    fake_cri_sandbox(fake, "unheard", "unheard", 0);
    struct cri_pending *a = listen_to(fake, cri), *b = listen_to(fake, cri);
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0);
    fake_cri_exit(fake, sandbox, 0);
    expect_events(fake, a, "CSP");
    expect_events(fake, b, "CSP");
}

TEST(the_fake_holds_replays_and_keeps_events)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ .keep_events = true });
    AUTO(cri) cri = client_of(fake);
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0); /* kept for who comes first */
    struct cri_pending *stream = listen_to(fake, cri);
    fake_cri_events_hold(fake);
    const char *id = fake_cri_container(fake, sandbox, "main", 0);
    fake_cri_start(fake, id);
    fake_cri_event_send(fake, id, CRI__CONTAINER_EVENT_TYPE__EVENT_DELETED);
    fake_cri_events_release(fake);
    fake_cri_exit(fake, id, 0);
    fake_cri_events_replay(fake);
    expect_events(fake, stream, "CScsdpCScsdp");
}

TEST(the_fake_loses_repeats_and_delays_events_by_chance)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0);
    struct cri_pending *stream = listen_to(fake, cri);
    fake_cri_event_faults(fake, (struct fake_event_faults){ .lost_percent = 100 });
    const char *id = fake_cri_container(fake, sandbox, "main", 0);
    fake_cri_event_faults(fake, (struct fake_event_faults){ .twice_percent = 100 });
    fake_cri_start(fake, id);
    fake_cri_event_faults(fake, (struct fake_event_faults){ .late_percent = 100 });
    fake_cri_exit(fake, id, 0);
    fake_cri_event_faults(fake, (struct fake_event_faults){ .seed = 3 });
    fake_cri_exit(fake, sandbox, 0);
    fake_cri_events_release(fake);
    expect_events(fake, stream, "ssPp");
}

TEST(the_fake_fails_as_often_as_asked_and_only_for_that_id)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    struct err err;
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0);
    const char *ids[] = { fake_cri_container(fake, sandbox, "a", 0),
                          fake_cri_container(fake, sandbox, "b", 0) };
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_START_CONTAINER,
                                              .maybe_id = ids[0],
                                              .times = 2,
                                              .after = true,
                                              .status = GRPC_UNAVAILABLE });
    Cri__StartContainerRequest request = CRI__START_CONTAINER_REQUEST__INIT;
    request.container_id = (char *)ids[1];
    EXPECT_OK(cri_call(cri, CRI_START_CONTAINER, &request, NULL, NULL, &err), err);
    request.container_id = (char *)ids[0];
    for (int i = 0; i < 2; i++)
        EXPECT_ERR(cri_call(cri, CRI_START_CONTAINER, &request, NULL, NULL, &err), err,
                   ERR_UNAVAILABLE);
    EXPECT_EQ(fake_cri_get(fake, ids[0]).start_count, 1); /* it was, and only the answer got lost */
    EXPECT_EQ(cri_call(cri, CRI_START_CONTAINER, &request, NULL, NULL, &err), -1);
    EXPECT_HAS(str_of(err.text), "CONTAINER_RUNNING");
}

/* --- making things --- */

TEST(a_pod_is_made_and_unmade_through_calls)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_ARENA arena = { 0 };
    struct err err;
    char uid[] = "uid-1", web[] = "web", space[] = "default", main_name[] = "main",
         image[] = "app:1";

    Cri__PodSandboxMetadata pod = CRI__POD_SANDBOX_METADATA__INIT;
    pod.uid = uid;
    pod.name = web;
    pod.namespace_ = space;
    Cri__PodSandboxConfig sandbox_config = CRI__POD_SANDBOX_CONFIG__INIT;
    sandbox_config.metadata = &pod;
    Cri__RunPodSandboxRequest run = CRI__RUN_POD_SANDBOX_REQUEST__INIT;
    run.config = &sandbox_config;
    Cri__RunPodSandboxResponse *sandbox;
    EXPECT_OK(cri_call(cri, CRI_RUN_POD_SANDBOX, &run, &arena, &sandbox, &err), err);

    EXPECT_EQ(cri_call(cri, CRI_RUN_POD_SANDBOX, &run, &arena, &sandbox, &err), -1);
    EXPECT_HAS(str_of(err.text), "failed to reserve sandbox name");

    Cri__ImageSpec spec = CRI__IMAGE_SPEC__INIT;
    spec.image = image;
    Cri__ContainerMetadata metadata = CRI__CONTAINER_METADATA__INIT;
    metadata.name = main_name;
    Cri__ContainerConfig config = CRI__CONTAINER_CONFIG__INIT;
    config.metadata = &metadata;
    config.image = &spec;
    Cri__CreateContainerRequest create = CRI__CREATE_CONTAINER_REQUEST__INIT;
    create.pod_sandbox_id = sandbox->pod_sandbox_id;
    create.config = &config;
    create.sandbox_config = &sandbox_config;
    Cri__CreateContainerResponse *container;
    EXPECT_ERR(cri_call(cri, CRI_CREATE_CONTAINER, &create, &arena, &container, &err), err,
               ERR_NOT_FOUND); /* the image */
    Cri__PullImageRequest pull = CRI__PULL_IMAGE_REQUEST__INIT;
    pull.image = &spec;
    EXPECT_OK(cri_call(cri, CRI_PULL_IMAGE, &pull, NULL, NULL, &err), err);
    EXPECT_OK(cri_call(cri, CRI_CREATE_CONTAINER, &create, &arena, &container, &err), err);
    EXPECT_EQ(cri_call(cri, CRI_CREATE_CONTAINER, &create, &arena, &container, &err), -1);
    EXPECT_HAS(str_of(err.text), "failed to reserve container name");

    Cri__StartContainerRequest start = CRI__START_CONTAINER_REQUEST__INIT;
    start.container_id = container->container_id;
    EXPECT_OK(cri_call(cri, CRI_START_CONTAINER, &start, NULL, NULL, &err), err);
    EXPECT_EQ(cri_call(cri, CRI_START_CONTAINER, &start, NULL, NULL, &err), -1);
    EXPECT_EQ(fake_cri_containers(fake, "uid-1", "main", RUNTIME_RUNNING), 1);

    Cri__StopContainerRequest stop = CRI__STOP_CONTAINER_REQUEST__INIT;
    stop.container_id = container->container_id;
    stop.timeout = 5;
    EXPECT_OK(cri_call(cri, CRI_STOP_CONTAINER, &stop, NULL, NULL, &err), err);
    EXPECT_OK(cri_call(cri, CRI_STOP_CONTAINER, &stop, NULL, NULL, &err), err);
    EXPECT_EQ(fake_cri_get(fake, container->container_id).exit_code, 143);

    Cri__RemovePodSandboxRequest remove = CRI__REMOVE_POD_SANDBOX_REQUEST__INIT;
    remove.pod_sandbox_id = sandbox->pod_sandbox_id;
    EXPECT_OK(cri_call(cri, CRI_REMOVE_POD_SANDBOX, &remove, NULL, NULL, &err), err);
    EXPECT_OK(cri_call(cri, CRI_REMOVE_POD_SANDBOX, &remove, NULL, NULL, &err), err);
    EXPECT_OK(cri_call(cri, CRI_STOP_CONTAINER, &stop, NULL, NULL, &err), err);
    EXPECT_FALSE(fake_cri_get(fake, container->container_id).exists);
}

/* --- counting --- */

TEST(operations_are_counted_as_kubelets_count_them)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(metrics) metrics = metrics_new(clock_real());
    struct err err;
    AUTO(cri) cri = NULL;
    EXPECT_OK(cri_new((struct cri_options){ .endpoint = fake_cri_endpoint(fake),
                                            .clock = clock_real(),
                                            .metrics = metrics },
                      &cri, &err),
              err);
    EXPECT_OK(cri_call(cri, CRI_VERSION, NULL, NULL, NULL, &err), err);
    EXPECT_OK(cri_call(cri, CRI_VERSION, NULL, NULL, NULL, &err), err);
    EXPECT_ERR(cri_call(cri, CRI_POD_SANDBOX_STATUS, NULL, NULL, NULL, &err), err, ERR_NOT_FOUND);
    AUTO_BUF text = { 0 };
    metrics_write(metrics, &text);
    EXPECT_HAS(buf_str(&text), "kubelet_runtime_operations_total{operation_type=\"version\"} 2\n");
    EXPECT_HAS(buf_str(&text),
               "kubelet_runtime_operations_errors_total{operation_type=\"version\"} 0\n");
    EXPECT_HAS(buf_str(&text),
               "kubelet_runtime_operations_errors_total{operation_type=\"podsandbox_status\"} 1\n");
    EXPECT_HAS(buf_str(&text), "kubelet_runtime_operations_duration_seconds_count"
                               "{operation_type=\"version\"} 2\n");
}

TEST(calls_fail_while_the_runtime_is_down_and_work_when_it_is_back)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    struct err err;
    EXPECT_OK(cri_call(cri, CRI_VERSION, NULL, NULL, NULL, &err), err);
    fake_cri_down(fake);
    EXPECT_ERR(cri_call(cri, CRI_VERSION, NULL, NULL, NULL, &err), err, ERR_UNAVAILABLE);
    fake_cri_up(fake);
    while (cri_call(cri, CRI_VERSION, NULL, NULL, NULL, &err) < 0)
        EXPECT_EQ(err.kind, ERR_UNAVAILABLE);
}
