/* Our CRI client, the PLEG and the pod cache against a real containerd. */
#include "node/fixture.h"

#include "base/file.h"
#include "node/pleg.h"

#include <signal.h>
#include <stdio.h>

#define COMMAND(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define MB ((int64_t)1 << 20)

static const Cri__ContainerStatus *ended(struct node_fixture *f, struct str id)
{
    const Cri__ContainerStatus *status = fixture_inspect(f, id);
    return status && status->state == CRI__CONTAINER_STATE__EXITED ? status : NULL;
}

static const struct runtime_pod *listed_pod(struct node_fixture *f, const char *uid)
{
    const struct runtime_listing *listing = fixture_list(f);
    for (uint32_t i = 0; i < listing->pod_count; i++) {
        if (str_eqz(listing->pods[i].uid, uid))
            return &listing->pods[i];
    }
    return NULL;
}

TEST(the_runtime_tells_its_name_and_version)
{
    struct node_fixture *f = node_fixture();
    Cri__VersionRequest request = CRI__VERSION_REQUEST__INIT;
    Cri__VersionResponse *reply = NULL;
    struct err err;

    EXPECT_OK(cri_call(f->cri, CRI_VERSION, &request, &f->arena, &reply, &err), err);

    EXPECT_Z(reply->runtime_name, "containerd");
    EXPECT_Z(reply->runtime_api_version, "v1");
}

TEST(runtime_and_network_are_ready)
{
    struct node_fixture *f = node_fixture();
    Cri__StatusRequest request = CRI__STATUS_REQUEST__INIT;
    Cri__StatusResponse *reply = NULL;
    struct err err;

    EXPECT_OK(cri_call(f->cri, CRI_STATUS, &request, &f->arena, &reply, &err), err);

    int ready = 0;
    EXPECT_TRUE(reply->status != NULL);
    for (size_t i = 0; i < reply->status->n_conditions; i++) {
        if (strcmp(reply->status->conditions[i]->type, "RuntimeReady") == 0 ||
            strcmp(reply->status->conditions[i]->type, "NetworkReady") == 0)
            ready += reply->status->conditions[i]->status;
    }
    EXPECT_EQ(ready, 2);
}

/* Has the container's program come so far? Before, SIGTERM is lost on the first process of a namespace. */
static bool tools_catch_sigterm(struct node_fixture *f, struct str id)
{
    char path[32], name[32] = "";
    unsigned long long caught = 0;
    snprintf(path, sizeof path, "/proc/%d/status", (int)fixture_pid(f, id));
    AUTO_BUF text = { 0 };
    struct err err;
    EXPECT_OK(file_read(path, 65536, &text, &err), err);
    const char *line = strstr(text.p, "\nSigCgt:");
    EXPECT_TRUE(line && sscanf(line, "\nSigCgt: %llx", &caught) == 1);
    EXPECT_EQ(sscanf(text.p, "Name: %31s", name), 1);
    return strcmp(name, "tools") == 0 && (caught & 1ULL << (SIGTERM - 1));
}

TEST(a_pod_is_listed_and_inspected_from_its_start_to_its_removal)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "life-1" });
    struct str id = fixture_create(f, sandbox, (struct fixture_container){ .attempt = 3 });

    const struct runtime_pod *pod = listed_pod(f, "life-1");
    EXPECT_TRUE(pod != NULL);
    EXPECT_STR(pod->name, "life-1");
    EXPECT_STR(pod->namespace_, "default");
    EXPECT_EQ(pod->sandboxes.count, 1);
    EXPECT_EQ(pod->sandboxes.items[0].state, RUNTIME_RUNNING);
    EXPECT_EQ(pod->containers.count, 1);
    EXPECT_STR(pod->containers.items[0].name, "main");
    EXPECT_TRUE(str_eq(pod->containers.items[0].sandbox_id, sandbox));
    EXPECT_EQ(pod->containers.items[0].state, RUNTIME_CREATED);

    fixture_start(f, id);
    AUTO_STATUS running = NULL;
    struct err err;
    EXPECT_OK(cri_inspect_now(f->cri, STR("life-1"), &running, &err), err);
    EXPECT_EQ(running->ips.count, 1);
    EXPECT_HAS(running->ips.items[0], "10.211.");
    EXPECT_EQ(running->sandboxes.count, 1);
    EXPECT_TRUE(running->sandboxes.items[0].ready);
    EXPECT_FALSE(running->sandboxes.items[0].host_network);
    EXPECT_EQ(running->containers.count, 1);
    const struct runtime_container *main = &running->containers.items[0];
    EXPECT_TRUE(str_eq(main->id, id));
    EXPECT_EQ(main->state, RUNTIME_RUNNING);
    EXPECT_EQ(main->restart_count, 3);
    EXPECT_TRUE(main->started_ns >= main->created_ns);
    EXPECT_TRUE(main->created_ns > 0);
    EXPECT_EQ(main->finished_ns, 0);
    EXPECT_HAS(main->log_path, "/logs/life-1/main_3.log");

    WITHIN_LIMIT(f, tools_catch_sigterm(f, id));
    fixture_stop(f, id, 30);
    AUTO_STATUS stopped = NULL;
    EXPECT_OK(cri_inspect_now(f->cri, STR("life-1"), &stopped, &err), err);
    EXPECT_EQ(stopped->containers.items[0].state, RUNTIME_EXITED);
    EXPECT_EQ(stopped->containers.items[0].exit_code, 0); /* it was polite */
    EXPECT_STR(stopped->containers.items[0].reason, "Completed");
    EXPECT_TRUE(stopped->containers.items[0].finished_ns > main->started_ns);

    fixture_stop_sandbox(f, sandbox);
    EXPECT_EQ(listed_pod(f, "life-1")->sandboxes.items[0].state, RUNTIME_EXITED);
    fixture_remove(f, id);
    fixture_remove_sandbox(f, sandbox);
    EXPECT_TRUE(listed_pod(f, "life-1") == NULL);
    EXPECT_TRUE(fixture_inspect(f, id) == NULL);
}

TEST(a_pod_on_the_hosts_network_has_no_address_of_its_own)
{
    struct node_fixture *f = node_fixture();
    fixture_run_sandbox(f, (struct fixture_pod){ .uid = "host-1", .host_network = true });

    AUTO_STATUS status = NULL;
    struct err err;
    EXPECT_OK(cri_inspect_now(f->cri, STR("host-1"), &status, &err), err);

    EXPECT_TRUE(status->sandboxes.items[0].host_network);
    EXPECT_EQ(status->sandboxes.items[0].ips.count, 0);
}

TEST(exit_codes_and_their_reasons_are_told)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "codes" });
    static const struct {
        const char *script;
        int code;
        const char *reason;
    } cases[] = {
        { "exit 0", 0, "Completed" },
        { "exit 1", 1, "Error" },
        { "exit 42", 42, "Error" },
        { "exit 255", 255, "Error" },
    };
    for (uint32_t i = 0; i < KV_COUNT_OF(cases); i++) {
        struct str id =
            fixture_run(f, sandbox,
                        (struct fixture_container){
                            .attempt = i, .command = COMMAND("sh", "-c", cases[i].script) });
        WITHIN_LIMIT(f, ended(f, id));
        EXPECT_EQ(ended(f, id)->exit_code, cases[i].code);
        EXPECT_Z(ended(f, id)->reason, cases[i].reason);
    }
}

TEST(a_container_over_its_memory_limit_is_oom_killed)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "oom" });
    /* The kernel's word about memory may come too late for containerd: then once more. */
    bool told = false;
    for (uint32_t i = 0; i < 5 && !told; i++) {
        struct str id = fixture_run(
            f, sandbox,
            (struct fixture_container){
                .attempt = i, .command = COMMAND("tools", "hog", "256"), .memory_bytes = 32 * MB });
        WITHIN_LIMIT(f, ended(f, id));
        EXPECT_EQ(ended(f, id)->exit_code, 137);
        told = strcmp(ended(f, id)->reason, "OOMKilled") == 0;
    }
    EXPECT_TRUE(told);
}

TEST(a_process_killed_from_outside_is_an_exited_container)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "killed" });
    struct str id = fixture_run(f, sandbox, (struct fixture_container){ 0 });

    fixture_kill(f, id, SIGKILL);
    WITHIN_LIMIT(f, ended(f, id));
    EXPECT_EQ(ended(f, id)->exit_code, 137);

    fixture_kill(f, sandbox, SIGKILL);
    WITHIN_LIMIT(f, listed_pod(f, "killed")->sandboxes.items[0].state == RUNTIME_EXITED);
}

TEST(a_stubborn_container_is_killed_when_its_grace_is_over)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "stubborn" });
    struct str id = fixture_run(
        f, sandbox, (struct fixture_container){ .command = COMMAND("tools", "stubborn") });

    fixture_stop(f, id, 1);

    EXPECT_EQ(ended(f, id)->exit_code, 137);
}

TEST(a_command_that_is_not_there_fails_to_start)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "nostart" });
    struct str id = fixture_create(
        f, sandbox, (struct fixture_container){ .command = COMMAND("/no/such/program") });
    Cri__StartContainerRequest request = CRI__START_CONTAINER_REQUEST__INIT;
    request.container_id = (char *)(uintptr_t)id.p;
    struct err err;

    EXPECT_TRUE(cri_call(f->cri, CRI_START_CONTAINER, &request, &f->arena, NULL, &err) < 0);

    EXPECT_HAS(str_of(err.text), "StartContainer");
    EXPECT_HAS(str_of(err.text), "/no/such/program");
    EXPECT_EQ(ended(f, id)->exit_code, 128);
    EXPECT_Z(ended(f, id)->reason, "StartError");
}

TEST(a_missing_image_is_an_answer_without_an_image)
{
    struct node_fixture *f = node_fixture();
    Cri__ImageSpec spec = CRI__IMAGE_SPEC__INIT;
    Cri__ImageStatusRequest request = CRI__IMAGE_STATUS_REQUEST__INIT;
    request.image = &spec;
    Cri__ImageStatusResponse *reply = NULL;
    struct err err;

    spec.image = (char *)(uintptr_t) "karve.test/none:1";
    EXPECT_OK(cri_call(f->cri, CRI_IMAGE_STATUS, &request, &f->arena, &reply, &err), err);
    EXPECT_TRUE(reply->image == NULL);

    spec.image = (char *)(uintptr_t) "karve.test/tools:1";
    EXPECT_OK(cri_call(f->cri, CRI_IMAGE_STATUS, &request, &f->arena, &reply, &err), err);
    EXPECT_TRUE(reply->image != NULL);
    EXPECT_HAS(str_of(reply->image->id), "sha256:");
}

TEST(commands_run_in_a_container_and_their_output_comes_back)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "exec" });
    struct str id = fixture_run(f, sandbox, (struct fixture_container){ 0 });
    Cri__ExecSyncRequest request = CRI__EXEC_SYNC_REQUEST__INIT;
    char sh[] = "sh", c[] = "-c", script[] = "echo out; echo err >&2; exit 7";
    char *words[] = { sh, c, script };
    request.container_id = (char *)(uintptr_t)id.p;
    request.cmd = words;
    request.n_cmd = 3;
    Cri__ExecSyncResponse *reply = NULL;
    struct err err;

    EXPECT_OK(cri_call(f->cri, CRI_EXEC_SYNC, &request, &f->arena, &reply, &err), err);

    EXPECT_EQ(reply->exit_code, 7);
    EXPECT_STR(((struct str){ (char *)reply->stdout.data, reply->stdout.len }), "out\n");
    EXPECT_STR(((struct str){ (char *)reply->stderr.data, reply->stderr.len }), "err\n");
}

TEST(unknown_ids_are_not_found_when_asked_about_and_fine_when_removed)
{
    struct node_fixture *f = node_fixture();
    EXPECT_TRUE(fixture_inspect(f, STR("0123456789abcdef")) == NULL);
    fixture_stop(f, STR("0123456789abcdef"), 1);
    fixture_remove(f, STR("0123456789abcdef"));
    fixture_stop_sandbox(f, STR("0123456789abcdef"));
    fixture_remove_sandbox(f, STR("0123456789abcdef"));
}

/* --- many at once, and breaks --- */

TEST(inspections_of_sixteen_pods_run_side_by_side)
{
    struct node_fixture *f = node_fixture();
    enum { PODS = 16 };
    for (int i = 0; i < PODS; i++) {
        char uid[32];
        snprintf(uid, sizeof uid, "many-%02d", i);
        fixture_run_sandbox(f, (struct fixture_pod){ .uid = uid });
    }
    const struct runtime_listing *listing = fixture_list(f);
    EXPECT_EQ(listing->pod_count, PODS);

    struct cri_inspection *running[PODS];
    for (uint32_t i = 0; i < PODS; i++)
        running[i] = cri_inspect_start(f->cri, &listing->pods[i], 1, NULL, NULL);
    for (uint32_t i = 0; i < PODS; i++) {
        WITHIN_LIMIT(f, cri_inspection_step(running[i]));
        AUTO_STATUS status = NULL;
        struct err err;
        EXPECT_OK(cri_inspection_take(running[i], &status, &err), err);
        EXPECT_TRUE(str_eq(status->uid, listing->pods[i].uid));
        EXPECT_TRUE(status->sandboxes.items[0].ready);
        cri_inspection_free(running[i]);
    }
}

TEST(containers_outlive_containerd_and_the_client_finds_it_again)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "outlive" });
    struct str id = fixture_run(f, sandbox, (struct fixture_container){ 0 });
    pid_t pid = fixture_pid(f, id);

    fixture_containerd_kill9(f);
    struct runtime_listing listing;
    struct err err;
    EXPECT_ERR(cri_list(f->cri, STR_NONE, &f->arena, &listing, &err), err, ERR_UNAVAILABLE);
    fixture_containerd_restart(f);

    EXPECT_EQ(listed_pod(f, "outlive")->containers.items[0].state, RUNTIME_RUNNING);
    EXPECT_EQ(fixture_pid(f, id), pid);
    EXPECT_EQ(kill(pid, 0), 0);

    fixture_containerd_restart(f); /* in good order too */
    EXPECT_EQ(listed_pod(f, "outlive")->containers.items[0].state, RUNTIME_RUNNING);
}

TEST(a_frozen_shim_holds_up_a_stop_and_nothing_else)
{
    struct node_fixture *f = node_fixture();
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "frozen" });
    struct str id = fixture_run(f, sandbox, (struct fixture_container){ 0 });
    fixture_freeze_shim(f, id);

    Cri__StopContainerRequest request = CRI__STOP_CONTAINER_REQUEST__INIT;
    request.container_id = (char *)(uintptr_t)id.p;
    request.timeout = 1;
    struct cri_pending *stop =
        cri_start(f->cri, CRI_STOP_CONTAINER, &request, (int64_t)120 * 1000000000, NULL, NULL);

    EXPECT_EQ(listed_pod(f, "frozen")->containers.items[0].state, RUNTIME_RUNNING);
    EXPECT_EQ(fixture_inspect(f, id)->state, CRI__CONTAINER_STATE__RUNNING);
    EXPECT_FALSE(cri_ready(stop));

    fixture_thaw_shims(f);
    struct err err;
    EXPECT_OK(cri_take(stop, &f->arena, NULL, &err), err);
    cri_pending_free(stop);
    WITHIN_LIMIT(f, ended(f, id));
}

/* --- the stream of events --- */

struct seen_events {
    bool created, started, stopped, deleted;
};

static void note_event(struct seen_events *seen, const Cri__ContainerEventResponse *event,
                       struct str id)
{
    if (!str_eq(str_of(event->container_id), id))
        return;
    seen->created |= event->container_event_type == CRI__CONTAINER_EVENT_TYPE__EVENT_CREATED;
    seen->started |= event->container_event_type == CRI__CONTAINER_EVENT_TYPE__EVENT_STARTED;
    seen->stopped |= event->container_event_type == CRI__CONTAINER_EVENT_TYPE__EVENT_STOPPED;
    seen->deleted |= event->container_event_type == CRI__CONTAINER_EVENT_TYPE__EVENT_DELETED;
}

TEST(the_event_stream_tells_what_happens_to_a_container)
{
    struct node_fixture *f = node_fixture();
    Cri__GetEventsRequest request = CRI__GET_EVENTS_REQUEST__INIT;
    struct cri_pending *stream =
        cri_start(f->cri, CRI_GET_CONTAINER_EVENTS, &request, 0, NULL, NULL);
    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "events" });
    struct str id =
        fixture_run(f, sandbox, (struct fixture_container){ .command = COMMAND("true") });
    WITHIN_LIMIT(f, ended(f, id));
    fixture_remove(f, id);

    struct seen_events seen = { 0 };
    while (!seen.deleted) {
        WITHIN_LIMIT(f, cri_ready(stream));
        Cri__ContainerEventResponse *event = NULL;
        struct err err;
        EXPECT_EQ(cri_take_next(stream, &f->arena, &event, &err), 1);
        note_event(&seen, event, id);
    }
    EXPECT_TRUE(seen.created);
    EXPECT_TRUE(seen.started);
    EXPECT_TRUE(seen.stopped);
    cri_pending_free(stream);
}

/* --- the PLEG and its cache, on the real thing --- */

struct listening {
    struct pod_cache *cache;
    struct event_hub *events;
    struct event_sub *sub;
    struct pleg *pleg;
};

static void listening_begin(struct listening *l, struct node_fixture *f)
{
    l->cache = pod_cache_new(clock_real());
    l->events = event_hub_new(clock_real());
    l->sub = event_sub_new(l->events, NULL, NULL);
    l->pleg = pleg_new((struct pleg_options){
        .cri = f->cri, .cache = l->cache, .events = l->events, .clock = clock_real() });
}

static void listening_done(struct listening *l)
{
    pleg_stop(l->pleg);
    pleg_free(l->pleg);
    event_sub_free(l->sub);
    event_hub_free(l->events);
    pod_cache_free(l->cache);
}
#define AUTO_LISTENING __attribute__((cleanup(listening_done))) struct listening

static void relist(struct listening *l)
{
    struct err err;
    EXPECT_OK(pleg_relist(l->pleg, &err), err);
}

/* The events that are there, as "started main, died main(3), removed sandbox"; "" if there are none. */
static struct str events_told(struct node_fixture *f, struct listening *l)
{
    AUTO_BUF out = { 0 };
    struct pod_event event;
    uint64_t lost = 0;
    while (event_sub_next(l->sub, 0, &event, &lost) == 1) {
        buf_addf(&out, "%s%s %s", out.len ? ", " : "", pod_event_name(event.type),
                 event.sandbox ? "sandbox" : event.container);
        if (event.has_exit_code)
            buf_addf(&out, "(%d)", event.exit_code);
    }
    EXPECT_EQ(lost, 0);
    return arena_str(&f->arena, buf_str(&out));
}

static bool died_in_listing(struct node_fixture *f, const char *uid)
{
    return listed_pod(f, uid)->containers.items[0].state == RUNTIME_EXITED;
}

TEST(relists_tell_of_a_start_a_crash_and_a_removal_and_the_cache_knows_before)
{
    struct node_fixture *f = node_fixture();
    AUTO_LISTENING l = { 0 };
    listening_begin(&l, f);
    relist(&l);
    EXPECT_STR(events_told(f, &l), "");

    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "told" });
    struct str id = fixture_run(f, sandbox, (struct fixture_container){ 0 });
    relist(&l);
    struct str told = events_told(f, &l);
    EXPECT_HAS(told, "ContainerStarted main");
    EXPECT_HAS(told, "ContainerStarted sandbox");
    AUTO_STATUS running = pod_cache_get(l.cache, STR("told"));
    EXPECT_EQ(running->containers.items[0].state, RUNTIME_RUNNING);

    fixture_kill(f, id, SIGKILL);
    WITHIN_LIMIT(f, died_in_listing(f, "told"));
    relist(&l);
    EXPECT_STR(events_told(f, &l), "ContainerDied main(137)");
    AUTO_STATUS dead = pod_cache_get(l.cache, STR("told"));
    EXPECT_EQ(dead->containers.items[0].exit_code, 137);

    relist(&l);
    EXPECT_STR(events_told(f, &l), "");

    fixture_stop_sandbox(f, sandbox);
    fixture_remove_sandbox(f, sandbox);
    relist(&l);
    EXPECT_HAS(events_told(f, &l), "ContainerRemoved main");
    AUTO_STATUS gone = pod_cache_get(l.cache, STR("told"));
    EXPECT_EQ(gone->containers.count + gone->sandboxes.count, 0);
}

static uint64_t calls_of(struct cri *cri)
{
    uint64_t sum = 0;
    for (int method = 0; method < CRI_METHOD_COUNT; method++)
        sum += cri_call_count(cri, (enum cri_method)method);
    return sum;
}

TEST(a_relist_costs_two_calls_and_those_for_the_pods_that_changed)
{
    struct node_fixture *f = node_fixture();
    AUTO_LISTENING l = { 0 };
    struct str sandboxes[4];
    for (int i = 0; i < 4; i++) {
        char uid[16];
        snprintf(uid, sizeof uid, "cost-%d", i);
        sandboxes[i] = fixture_run_sandbox(f, (struct fixture_pod){ .uid = uid });
        fixture_run(f, sandboxes[i], (struct fixture_container){ 0 });
    }
    listening_begin(&l, f);
    relist(&l);
    (void)events_told(f, &l);

    for (int i = 0; i < 3; i++) {
        uint64_t before = calls_of(f->cri);
        relist(&l);
        EXPECT_EQ(calls_of(f->cri) - before, 2);
    }
    fixture_run(f, sandboxes[1], (struct fixture_container){ .maybe_name = "side" });
    uint64_t before = calls_of(f->cri);
    relist(&l);
    EXPECT_EQ(calls_of(f->cri) - before, 2 + 3); /* a sandbox and two containers of one pod */
    EXPECT_STR(events_told(f, &l), "ContainerStarted side");
}

static bool cache_shows(struct listening *l, const char *uid, enum runtime_state state)
{
    AUTO_STATUS status = pod_cache_get(l->cache, str_of(uid));
    return status->containers.count > 0 && status->containers.items[0].state == state;
}

TEST(with_its_threads_the_cache_follows_through_a_crash_of_containerd)
{
    struct node_fixture *f = node_fixture();
    AUTO_LISTENING l = { 0 };
    struct err err;
    listening_begin(&l, f);
    EXPECT_OK(pleg_start(l.pleg, &err), err);

    struct str sandbox = fixture_run_sandbox(f, (struct fixture_pod){ .uid = "follow" });
    struct str id = fixture_run(f, sandbox, (struct fixture_container){ 0 });
    WITHIN_LIMIT(f, cache_shows(&l, "follow", RUNTIME_RUNNING));

    fixture_containerd_kill9(f);
    fixture_kill(f, id, SIGKILL); /* nobody is there to see it */
    fixture_containerd_restart(f);
    WITHIN_LIMIT(f, cache_shows(&l, "follow", RUNTIME_EXITED));

    int64_t min_ns = clock_mono_ns(clock_real());
    AUTO_STATUS status = NULL;
    EXPECT_OK(pod_cache_get_newer_than(l.cache, STR("follow"), min_ns, fixture_deadline(), NULL,
                                       &status, &err),
              err);
    EXPECT_TRUE(status->timestamp_ns > 0);
}
