#include "node/cri_inner.h"
#include "node/fake_cri_testing.h"
#include "tests/support/test.h"

#include <sched.h>
#include <stdio.h>

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

static const struct runtime_status *inspect(struct cri *cri, const char *uid)
{
    struct err err;
    const struct runtime_status *status = NULL;
    EXPECT_OK(cri_inspect_now(cri, str_of(uid), &status, &err), err);
    return status;
}

static void set_flag(void *ctx)
{
    atomic_store((atomic_bool *)ctx, true);
}

/* Step it whenever it asks for that, until it is finished. */
static void run(struct cri_inspection *inspection, atomic_bool *woken)
{
    while (!cri_inspection_step(inspection)) {
        while (!atomic_exchange(woken, false))
            sched_yield();
    }
}

TEST(an_inspection_knows_everything_of_a_pod)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    const char *old = fake_cri_sandbox(fake, "uid-1", "web", 0);
    fake_cri_exit(fake, old, 0);
    const char *sandbox = fake_cri_sandbox(fake, "uid-1", "web", 1);
    const char *first = fake_cri_container(fake, sandbox, "main", 4);
    fake_cri_start(fake, first);
    fake_cri_exit(fake, first, 3);
    const char *second = fake_cri_container(fake, sandbox, "main", 5);
    fake_cri_start(fake, second);
    fake_cri_set_ips(fake, sandbox, "10.1.2.3", "fd00::3");
    fake_cri_set_annotation(fake, second, "io.kubernetes.container.preStopHandler", "{\"a\":1}");
    fake_cri_set_annotation(fake, second, "io.kubernetes.pod.deletionGracePeriod", "7");

    AUTO_STATUS status = inspect(cri, "uid-1");

    EXPECT_STR(status->uid, "uid-1");
    EXPECT_STR(status->name, "web");
    EXPECT_STR(status->namespace_, "default");
    EXPECT_EQ(status->error_kind, ERR_NONE);
    EXPECT_EQ(status->sandboxes.count, 2);
    const struct runtime_sandbox *s = &status->sandboxes.items[0];
    EXPECT_STR(s->id, sandbox);
    EXPECT_EQ(s->attempt, 1);
    EXPECT_TRUE(s->ready);
    EXPECT_FALSE(s->host_network);
    EXPECT_EQ(s->ips.count, 2);
    EXPECT_STR(status->sandboxes.items[1].id, old);
    EXPECT_FALSE(status->sandboxes.items[1].ready);
    EXPECT_EQ(status->ips.count, 2);
    EXPECT_STR(status->ips.items[0], "10.1.2.3");
    EXPECT_STR(status->ips.items[1], "fd00::3");

    EXPECT_EQ(status->containers.count, 2);
    const struct runtime_container *c = &status->containers.items[0];
    EXPECT_STR(c->id, second);
    EXPECT_STR(c->name, "main");
    EXPECT_STR(c->sandbox_id, sandbox);
    EXPECT_EQ(c->state, RUNTIME_RUNNING);
    EXPECT_EQ(c->restart_count, 5);
    EXPECT_TRUE(c->created_ns > 0);
    EXPECT_TRUE(c->started_ns > c->created_ns);
    EXPECT_EQ(c->finished_ns, 0);
    EXPECT_STR(c->image, "registry.example/app:1");
    EXPECT_HAS(c->image_id, "sha256:");
    EXPECT_HAS(c->image_ref, "registry.example/app@sha256:");
    EXPECT_STR(c->hash, "5ca1ab1e");
    EXPECT_STR(c->log_path, "/var/log/pods/default_web_uid-1/main/5.log");
    EXPECT_STR(c->termination_message_path, "/dev/termination-log");
    EXPECT_STR(c->termination_message_policy, "File");
    EXPECT_STR(c->termination_message_file, "/var/lib/agent/pods/uid-1/main");
    EXPECT_EQ(c->termination_grace_s, 30);
    EXPECT_EQ(c->deletion_grace_s, 7);
    EXPECT_STR(c->pre_stop, "{\"a\":1}");

    c = &status->containers.items[1];
    EXPECT_STR(c->id, first);
    EXPECT_EQ(c->state, RUNTIME_EXITED);
    EXPECT_EQ(c->exit_code, 3);
    EXPECT_EQ(c->restart_count, 4);
    EXPECT_STR(c->reason, "Error");
    EXPECT_TRUE(c->finished_ns > c->started_ns);
    EXPECT_EQ(c->deletion_grace_s, -1);
    EXPECT_TRUE(c->pre_stop.p == NULL);
}

TEST(annotations_that_are_missing_or_wrong_have_their_defaults)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0);
    const char *id = fake_cri_container(fake, sandbox, "main", 9);
    fake_cri_set_annotation(fake, id, "io.kubernetes.container.hash", NULL);
    fake_cri_set_annotation(fake, id, "io.kubernetes.container.restartCount", "many");
    fake_cri_set_annotation(fake, id, "io.kubernetes.container.terminationMessagePath", NULL);
    fake_cri_set_annotation(fake, id, "io.kubernetes.pod.terminationGracePeriod", "-5");
    AUTO_STATUS status = inspect(cri, "uid");
    const struct runtime_container *c = &status->containers.items[0];
    EXPECT_STR(c->hash, "");
    EXPECT_EQ(c->restart_count, 9);
    EXPECT_STR(c->termination_message_path, "");
    EXPECT_STR(c->termination_message_file, "");
    EXPECT_EQ(c->termination_grace_s, -1);
}

TEST(a_pod_in_the_hosts_network_has_no_address_of_its_own)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0);
    fake_cri_set_host_network(fake, sandbox);
    fake_cri_set_ips(fake, sandbox, "192.168.0.1", NULL); /* some runtimes tell the host's */
    AUTO_STATUS status = inspect(cri, "uid");
    EXPECT_TRUE(status->sandboxes.items[0].host_network);
    EXPECT_EQ(status->sandboxes.items[0].ips.count, 0);
    EXPECT_EQ(status->ips.count, 0);
}

TEST(the_addresses_are_those_of_the_newest_sandbox)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    fake_cri_sandbox(fake, "uid", "web", 0);
    const char *newest = fake_cri_sandbox(fake, "uid", "web", 1);
    fake_cri_set_ips(fake, newest, "", NULL);
    AUTO_STATUS status = inspect(cri, "uid");
    EXPECT_EQ(status->sandboxes.items[1].ips.count, 1);
    EXPECT_EQ(status->ips.count, 0);
}

TEST(a_pod_that_the_runtime_does_not_know_has_an_empty_status)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    AUTO_STATUS status = inspect(cri, "nobody");
    EXPECT_STR(status->uid, "nobody");
    EXPECT_EQ(status->sandboxes.count, 0);
    EXPECT_EQ(status->containers.count, 0);
    EXPECT_TRUE(status->timestamp_ns > 0);
}

/* A listing, and an inspection of its first pod. */
struct stage {
    struct arena arena;
    struct runtime_listing listing;
    atomic_bool woken;
    struct cri_inspection *inspection;
};

static void stage_start(struct stage *st, struct cri *cri)
{
    struct err err;
    *st = (struct stage){ 0 };
    EXPECT_OK(cri_list(cri, STR_NONE, &st->arena, &st->listing, &err), err);
    st->inspection = cri_inspect_start(cri, &st->listing.pods[0], 77, set_flag, &st->woken);
}

static void stage_done(struct stage *st)
{
    cri_inspection_free(st->inspection);
    arena_done(&st->arena);
}

TEST(what_vanished_after_the_listing_is_left_out)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    const char *old = fake_cri_sandbox(fake, "uid", "web", 0);
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 1);
    const char *gone = fake_cri_container(fake, sandbox, "gone", 0);
    const char *kept = fake_cri_container(fake, sandbox, "kept", 0);
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_CONTAINER_STATUS,
                                              .maybe_id = gone,
                                              .status = GRPC_NOT_FOUND });
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_POD_SANDBOX_STATUS,
                                              .maybe_id = old,
                                              .status = GRPC_NOT_FOUND });
    struct stage st;
    struct err err;
    stage_start(&st, cri);
    run(st.inspection, &st.woken);
    const struct runtime_status *status = NULL;
    EXPECT_OK(cri_inspection_take(st.inspection, &status, &err), err);
    EXPECT_EQ(status->timestamp_ns, 77);
    EXPECT_EQ(status->sandboxes.count, 1);
    EXPECT_STR(status->sandboxes.items[0].id, sandbox);
    EXPECT_EQ(status->containers.count, 1);
    EXPECT_STR(status->containers.items[0].id, kept);
    runtime_status_unref(status);
    stage_done(&st);
}

TEST(any_other_error_fails_the_inspection_and_names_the_item)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0);
    const char *bad = fake_cri_container(fake, sandbox, "bad", 0);
    const char *hung = fake_cri_container(fake, sandbox, "hung", 0);
    fake_cri_fault(fake, (struct fake_fault){
                             .method = CRI_CONTAINER_STATUS, .maybe_id = hung, .hang = true });
    static const struct {
        struct fake_fault fault;
        enum err_kind kind;
    } faults[] = {
        { { .status = GRPC_UNAVAILABLE, .message = "shim is gone" }, ERR_UNAVAILABLE },
        { { .garbage = true }, ERR_INTERNAL },
        { { .empty = true }, ERR_INTERNAL },
    };
    for (size_t i = 0; i < KV_COUNT_OF(faults); i++) {
        struct fake_fault fault = faults[i].fault;
        fault.method = CRI_CONTAINER_STATUS;
        fault.maybe_id = bad;
        fake_cri_fault(fake, fault);
        struct stage st;
        struct err err;
        stage_start(&st, cri);
        run(st.inspection, &st.woken); /* does not wait for the one that hangs */
        const struct runtime_status *status = NULL;
        EXPECT_ERR(cri_inspection_take(st.inspection, &status, &err), err, faults[i].kind);
        EXPECT_HAS(str_of(err.text), "container \"");
        EXPECT_HAS(str_of(err.text), "ContainerStatus: ");
        EXPECT_TRUE(str_starts(str_of(err.text + 11), str_sub(str_of(bad), 0, 13)));
        EXPECT_TRUE(status == NULL);
        stage_done(&st);
    }
}

TEST(at_most_sixteen_calls_of_an_inspection_are_in_flight)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    const char *sandbox = fake_cri_sandbox(fake, "uid", "web", 0);
    for (uint32_t i = 0; i < 60; i++)
        fake_cri_container(fake, sandbox, "main", i);
    struct stage st;
    struct err err;
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_CONTAINER_STATUS, .hang = true });
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_POD_SANDBOX_STATUS, .hang = true });
    stage_start(&st, cri);
    while (fake_cri_waiting(fake) < CRI_INSPECT_CALLS_MAX)
        sched_yield();
    EXPECT_FALSE(cri_inspection_step(st.inspection));
    EXPECT_EQ(cri_call_count(cri, CRI_CONTAINER_STATUS) +
                  cri_call_count(cri, CRI_POD_SANDBOX_STATUS),
              CRI_INSPECT_CALLS_MAX);
    fake_cri_heal(fake);
    run(st.inspection, &st.woken);
    const struct runtime_status *status = NULL;
    EXPECT_OK(cri_inspection_take(st.inspection, &status, &err), err);
    EXPECT_EQ(status->containers.count, 60);
    for (uint32_t i = 0; i < 60; i++)
        EXPECT_EQ(status->containers.items[i].restart_count, 59 - i);
    runtime_status_unref(status);
    stage_done(&st);
}

TEST(an_inspection_is_dropped_while_its_calls_hang)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    fake_cri_flood(fake, 1, 30);
    struct stage st;
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_CONTAINER_STATUS, .hang = true });
    stage_start(&st, cri);
    while (fake_cri_waiting(fake) == 0)
        sched_yield();
    stage_done(&st);
    fake_cri_heal(fake);
    AUTO_STATUS status = inspect(cri, "flood-000000");
    EXPECT_EQ(status->containers.count, 30);
}

TEST(an_inspection_fails_when_the_connection_breaks)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    fake_cri_flood(fake, 1, 3);
    struct stage st;
    struct err err;
    fake_cri_fault(fake, (struct fake_fault){ .method = CRI_CONTAINER_STATUS, .hang = true });
    stage_start(&st, cri);
    while (fake_cri_waiting(fake) < 3)
        sched_yield();
    fake_cri_drop_connections(fake);
    run(st.inspection, &st.woken);
    const struct runtime_status *status = NULL;
    EXPECT_ERR(cri_inspection_take(st.inspection, &status, &err), err, ERR_UNAVAILABLE);
    stage_done(&st);
}

/* The cache holds one for every pod. */
TEST(a_status_takes_little_more_memory_than_it_says)
{
    AUTO(fake_cri) fake = fake_cri_new((struct fake_cri_options){ 0 });
    AUTO(cri) cri = client_of(fake);
    fake_cri_flood(fake, 1, 2);
    AUTO_STATUS status = inspect(cri, "flood-000000");
    printf("# a status of two containers holds %zu bytes\n", status->arena.held_bytes);
    EXPECT_TRUE(status->arena.held_bytes < 3072);
}

TEST(a_message_without_end_is_cut_where_a_character_ends)
{
    AUTO_BUF text = { 0 };
    while (text.len < 10000)
        buf_addz(&text, "\xe2\x82\xac"); /* three bytes each, and 4096 is no multiple of three */
    Cri__ContainerStatus said = CRI__CONTAINER_STATUS__INIT;
    said.message = text.p;
    Cri__ContainerStatus *answers[] = { &said };
    struct listed listed = { .id = STR("id"), .name = STR("main"), .sandbox_id = STR("s") };
    struct runtime_pod pod = { .uid = STR("uid"),
                               .name = STR("web"),
                               .namespace_ = STR("default") };
    pod.containers.items = &listed;
    pod.containers.count = 1;
    AUTO_STATUS status =
        cri_status_build(&(struct cri_answers){ .pod = &pod, .containers = answers });
    EXPECT_EQ(status->containers.items[0].message.len, 4095);
    EXPECT_TRUE(str_is_utf8(status->containers.items[0].message));
    EXPECT_STR(status->containers.items[0].name, "main"); /* the listing's: it has no metadata */
}
