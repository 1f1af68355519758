#include "node/runtime.h"

#include "tests/support/test.h"

#include <stddef.h>

/* A status with one sandbox and two containers, the same each time. */
static struct runtime_status *example(void)
{
    struct runtime_status *status = runtime_status_new(STR("uid"));
    struct arena *arena = &status->arena;
    status->name = STR("web");
    status->namespace_ = STR("default");
    struct runtime_sandbox *sandbox = arena_array(arena, struct runtime_sandbox, 1);
    struct str *ips = arena_array(arena, struct str, 1);
    ips[0] = STR("10.0.0.1");
    sandbox[0] = (struct runtime_sandbox){ .id = STR("s"), .ready = true, .ips = { ips, 1 } };
    struct runtime_container *containers = arena_array(arena, struct runtime_container, 2);
    containers[0] =
        (struct runtime_container){ .id = STR("c2"), .name = STR("main"), .state = RUNTIME_EXITED };
    containers[1] =
        (struct runtime_container){ .id = STR("c1"), .name = STR("main"), .state = RUNTIME_EXITED };
    status->ips = sandbox[0].ips;
    status->sandboxes.items = sandbox;
    status->sandboxes.count = 1;
    status->containers.items = containers;
    status->containers.count = 2;
    return status;
}

TEST(statuses_are_the_same_whenever_they_were_taken)
{
    AUTO_STATUS a = example();
    struct runtime_status *b = example();
    b->timestamp_ns = 99;
    EXPECT_TRUE(runtime_status_same(a, b));
    EXPECT_TRUE(runtime_status_same(a, a));
    runtime_status_unref(b);
}

enum kind { TEXT, I64, I32, U32, U8, BOOL };

struct part {
    size_t offset;
    enum kind kind;
};

static void change(void *object, struct part part)
{
    char *at = (char *)object + part.offset;
    switch (part.kind) {
    case TEXT:
        *(struct str *)(void *)at = STR("other");
        break;
    case I64:
        ++*(int64_t *)(void *)at;
        break;
    case I32:
        ++*(int32_t *)(void *)at;
        break;
    case U32:
        ++*(uint32_t *)(void *)at;
        break;
    case U8:
        ++*(uint8_t *)at;
        break;
    case BOOL:
        *(bool *)at = !*(bool *)at;
        break;
    }
}

#define OF_STATUS(field_) offsetof(struct runtime_status, field_)
#define OF_SANDBOX(field_) offsetof(struct runtime_sandbox, field_)
#define OF_CONTAINER(field_) offsetof(struct runtime_container, field_)

TEST(a_change_of_any_field_makes_another_status)
{
    static const struct part of_status[] = {
        { OF_STATUS(uid), TEXT },        { OF_STATUS(name), TEXT },
        { OF_STATUS(namespace_), TEXT }, { OF_STATUS(ips.count), U32 },
        { OF_STATUS(error_kind), U32 },  { OF_STATUS(error), TEXT },
    };
    static const struct part of_sandbox[] = {
        { OF_SANDBOX(id), TEXT },        { OF_SANDBOX(attempt), U32 },
        { OF_SANDBOX(ready), BOOL },     { OF_SANDBOX(host_network), BOOL },
        { OF_SANDBOX(created_ns), I64 },
    };
    static const struct part of_container[] = {
        { OF_CONTAINER(id), TEXT },
        { OF_CONTAINER(name), TEXT },
        { OF_CONTAINER(sandbox_id), TEXT },
        { OF_CONTAINER(state), U8 },
        { OF_CONTAINER(created_ns), I64 },
        { OF_CONTAINER(started_ns), I64 },
        { OF_CONTAINER(finished_ns), I64 },
        { OF_CONTAINER(exit_code), I32 },
        { OF_CONTAINER(restart_count), U32 },
        { OF_CONTAINER(image), TEXT },
        { OF_CONTAINER(image_id), TEXT },
        { OF_CONTAINER(image_ref), TEXT },
        { OF_CONTAINER(hash), TEXT },
        { OF_CONTAINER(reason), TEXT },
        { OF_CONTAINER(message), TEXT },
        { OF_CONTAINER(log_path), TEXT },
        { OF_CONTAINER(termination_message_path), TEXT },
        { OF_CONTAINER(termination_message_policy), TEXT },
        { OF_CONTAINER(termination_message_file), TEXT },
        { OF_CONTAINER(termination_grace_s), I64 },
        { OF_CONTAINER(deletion_grace_s), I64 },
        { OF_CONTAINER(pre_stop), TEXT },
    };
    const struct {
        const struct part *parts;
        size_t count;
    } groups[] = { { of_status, KV_COUNT_OF(of_status) },
                   { of_sandbox, KV_COUNT_OF(of_sandbox) },
                   { of_container, KV_COUNT_OF(of_container) } };
    for (size_t g = 0; g < KV_COUNT_OF(groups); g++) {
        for (size_t i = 0; i < groups[g].count; i++) {
            AUTO_STATUS a = example();
            struct runtime_status *b = example();
            void *objects[] = { b, (void *)b->sandboxes.items, (void *)&b->containers.items[1] };
            change(objects[g], groups[g].parts[i]);
            EXPECT_FALSE(runtime_status_same(a, b));
            EXPECT_FALSE(runtime_status_same(b, a));
            runtime_status_unref(b);
        }
    }
}

TEST(an_item_more_or_another_address_makes_another_status)
{
    AUTO_STATUS a = example();
    struct runtime_status *b = example();
    b->containers.count = 1;
    EXPECT_FALSE(runtime_status_same(a, b));
    b->containers.count = 2;
    b->sandboxes.count = 0;
    EXPECT_FALSE(runtime_status_same(a, b));
    b->sandboxes.count = 1;
    EXPECT_TRUE(runtime_status_same(a, b));
    *(struct str *)(void *)b->sandboxes.items[0].ips.items = STR("10.0.0.2");
    EXPECT_FALSE(runtime_status_same(a, b));
    runtime_status_unref(b);
}

TEST(a_failed_status_shows_what_was_known_before_and_why_it_failed)
{
    const struct runtime_status *good = example();
    struct runtime_pod listed = { .uid = STR("uid"), .name = STR("web"), .namespace_ = STR("ns") };
    struct err err;
    err_set(&err, ERR_UNAVAILABLE, "shim is gone");
    const struct runtime_status *failed = runtime_status_failed(good, &listed, 5, &err);
    runtime_status_unref(good); /* the failed one keeps it */
    EXPECT_EQ(failed->error_kind, ERR_UNAVAILABLE);
    EXPECT_STR(failed->error, "shim is gone");
    EXPECT_EQ(failed->timestamp_ns, 5);
    EXPECT_EQ(failed->containers.count, 2);
    EXPECT_STR(failed->containers.items[0].id, "c2");
    EXPECT_EQ(failed->sandboxes.count, 1);
    EXPECT_STR(failed->ips.items[0], "10.0.0.1");
    EXPECT_STR(failed->namespace_, "ns");

    for (int i = 0; i < 3; i++) { /* it keeps failing: no chain of failures grows */
        const struct runtime_status *next = runtime_status_failed(failed, &listed, 6, &err);
        EXPECT_TRUE(next->maybe_last == good);
        EXPECT_EQ(next->containers.count, 2);
        runtime_status_unref(failed);
        failed = next;
    }
    runtime_status_unref(failed);
}

TEST(a_first_inspection_that_failed_shows_the_listed_pod_and_no_items)
{
    struct runtime_pod listed = { .uid = STR("uid"), .name = STR("web"), .namespace_ = STR("ns") };
    struct err err;
    err_set(&err, ERR_INTERNAL, "no");
    AUTO_STATUS failed = runtime_status_failed(NULL, &listed, 5, &err);
    AUTO_STATUS again = runtime_status_failed(failed, &listed, 6, &err);
    EXPECT_STR(again->name, "web");
    EXPECT_EQ(again->containers.count, 0);
    EXPECT_TRUE(again->maybe_last == NULL);
    EXPECT_TRUE(runtime_status_same(failed, again));
}

TEST(the_newest_instance_of_a_name_is_found)
{
    AUTO_STATUS status = example();
    EXPECT_STR(runtime_container_find(status, STR("main"))->id, "c2");
    EXPECT_TRUE(runtime_container_find(status, STR("mai")) == NULL);
    EXPECT_STR(runtime_container_by_id(status, STR("c1"))->id, "c1");
    EXPECT_TRUE(runtime_container_by_id(status, STR("c3")) == NULL);
}

TEST(a_pod_runs_while_a_container_or_a_sandbox_does)
{
    for (int ready = 0; ready < 2; ready++) {
        for (uint8_t c = RUNTIME_CREATED; c <= RUNTIME_UNKNOWN; c++) {
            struct runtime_status *status = example();
            ((struct runtime_sandbox *)status->sandboxes.items)[0].ready = ready;
            ((struct runtime_container *)status->containers.items)[1].state = c;
            EXPECT_EQ(runtime_status_running(status), ready || c == RUNTIME_RUNNING);
            EXPECT_EQ(runtime_ready_sandbox(status) != NULL, ready);
            runtime_status_unref(status);
        }
    }
}

TEST(states_have_names)
{
    EXPECT_Z(runtime_state_name(RUNTIME_CREATED), "created");
    EXPECT_Z(runtime_state_name(RUNTIME_RUNNING), "running");
    EXPECT_Z(runtime_state_name(RUNTIME_EXITED), "exited");
    EXPECT_Z(runtime_state_name(RUNTIME_UNKNOWN), "unknown");
}
