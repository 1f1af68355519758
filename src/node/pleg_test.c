#include "node/pleg_testing.h"

static uint64_t inspect_calls(struct rig *r)
{
    return fake_cri_calls(r->fake, CRI_POD_SANDBOX_STATUS) +
           fake_cri_calls(r->fake, CRI_CONTAINER_STATUS);
}

/* --- what a relist does --- */

TEST(a_relist_of_an_empty_runtime_promises_that_there_is_nothing)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    int64_t before_ns = clock_mono_ns(r->clock);
    EXPECT_EQ(pod_cache_time(r->cache), 0);
    relist(r);
    EXPECT_TRUE(pod_cache_time(r->cache) >= before_ns);
    EXPECT_Z(events(r), "");
    EXPECT_EQ(pleg_stats(r->pleg).pods, 0);
}

TEST(the_first_relist_finds_everything)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    make_pod(r, "uid-a", "a");
    struct web b = make_pod(r, "uid-b", "b");
    fake_cri_exit(r->fake, b.main, 3);
    relist(r);
    EXPECT_Z(cached(r, "uid-a"), "ready main=running");
    EXPECT_Z(cached(r, "uid-b"), "ready main=exited(3)");
    const char *told = events(r);
    EXPECT_HAS(str_of(told), "Started a, Started a/main");
    EXPECT_HAS(str_of(told), "Died b/main 3 Error, Started b");
    EXPECT_EQ(pleg_stats(r->pleg).pods, 2);
}

TEST(the_timestamp_is_from_before_the_first_call)
{
    AUTO(rig) r = rig_new((struct rig_options){ .real_time = true });
    make_pod(r, "uid-a", "a");
    fake_cri_fault(r->fake,
                   (struct fake_fault){ .method = CRI_LIST_CONTAINERS, .delay_ns = 20 * MS });
    int64_t before_ns = clock_mono_ns(r->clock);
    relist(r);
    int64_t after_ns = clock_mono_ns(r->clock);
    AUTO_STATUS status = pod_cache_get(r->cache, STR("uid-a"));
    EXPECT_TRUE(status->timestamp_ns >= before_ns);
    EXPECT_TRUE(status->timestamp_ns <= after_ns - 20 * MS);
    EXPECT_EQ(pod_cache_time(r->cache), status->timestamp_ns);
}

TEST(a_relist_without_changes_is_two_calls_and_no_event)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    fake_cri_flood(r->fake, 20, 2);
    relist(r);
    events(r);
    uint64_t calls = fake_cri_calls_all(r->fake);
    int64_t time_ns = pod_cache_time(r->cache);
    for (int i = 0; i < 5; i++)
        relist(r);
    EXPECT_EQ(fake_cri_calls_all(r->fake) - calls, 10);
    EXPECT_Z(events(r), "");
    EXPECT_TRUE(pod_cache_time(r->cache) > time_ns);
}

TEST(only_pods_that_changed_are_inspected)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    fake_cri_flood(r->fake, 20, 2);
    struct web w = make_pod(r, "uid-web", "web");
    relist(r);
    uint64_t before = fake_cri_calls_all(r->fake);
    fake_cri_exit(r->fake, w.main, 0);
    relist(r);
    EXPECT_EQ(fake_cri_calls_all(r->fake) - before, 2 + 2); /* its sandbox, its container */
}

TEST(a_container_that_is_only_created_is_in_the_cache_and_no_event)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    fake_cri_container(r->fake, w.sandbox, "side", 0);
    relist(r);
    EXPECT_Z(cached(r, "uid-web"), "ready main=running side=created");
    EXPECT_Z(events(r), "");
}

TEST(an_end_tells_exit_code_and_reason)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    fake_cri_oom(r->fake, w.main);
    relist(r);
    EXPECT_Z(events(r), "Died web/main 137 OOMKilled");
    EXPECT_Z(cached(r, "uid-web"), "ready main=exited(137)");
}

TEST(a_restart_between_two_relists_is_an_end_and_a_start)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    fake_cri_exit(r->fake, w.main, 1);
    fake_cri_start(r->fake, fake_cri_container(r->fake, w.sandbox, "main", 1));
    relist(r);
    EXPECT_Z(events(r), "Died web/main 1 Error, Started web/main");
    EXPECT_Z(cached(r, "uid-web"), "ready main=exited(1) main=running");
}

TEST(a_pod_that_vanished_leaves_the_cache)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    known_pod(r, "uid-other", "other");
    fake_cri_remove(r->fake, w.sandbox);
    relist(r);
    EXPECT_Z(events(r), "Died web/main, Removed web/main, Died web, Removed web");
    EXPECT_Z(cached(r, "uid-web"), "");
    EXPECT_Z(cached(r, "uid-other"), "ready main=running");
    EXPECT_EQ(pod_cache_stats(r->cache).entry_count, 1);
    EXPECT_EQ(pleg_stats(r->pleg).pods, 1);
}

TEST(a_pod_stays_in_the_cache_while_anything_of_it_is_left)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    fake_cri_exit(r->fake, w.main, 0);
    fake_cri_exit(r->fake, w.sandbox, 0);
    fake_cri_forget(r->fake, w.sandbox); /* the container is all that is left */
    relist(r);
    EXPECT_Z(events(r), "Died web/main 0 Completed, Died web, Removed web");
    EXPECT_Z(cached(r, "uid-web"), "main=exited(0)");
}

TEST(two_ready_sandboxes_are_both_shown)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    known_pod(r, "uid-web", "web");
    fake_cri_sandbox(r->fake, "uid-web", "web", 1);
    relist(r);
    EXPECT_Z(events(r), "Started web");
    EXPECT_Z(cached(r, "uid-web"), "ready ready main=running");
    AUTO_STATUS status = pod_cache_get(r->cache, STR("uid-web"));
    EXPECT_EQ(status->sandboxes.items[0].attempt, 1); /* the newest first */
}

TEST(what_vanishes_between_listing_and_inspecting_is_left_out)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = make_pod(r, "uid-web", "web");
    fake_cri_fault(r->fake, (struct fake_fault){ .method = CRI_CONTAINER_STATUS,
                                                 .maybe_id = w.main,
                                                 .times = 1,
                                                 .status = GRPC_NOT_FOUND });
    relist(r);
    EXPECT_Z(cached(r, "uid-web"), "ready");
    EXPECT_Z(events(r),
             "Started web, Started web/main"); /* so it was listed; its end will be too */
    fake_cri_remove(r->fake, w.main);
    relist(r);
    EXPECT_Z(events(r), "Died web/main, Removed web/main");
}

/* The wake-up comes from the sender, in the middle of sending. */
struct witness {
    struct rig *rig;
    uint32_t count, too_early;
};

static void look_into_the_cache(void *ctx)
{
    struct witness *witness = ctx;
    AUTO_STATUS status = pod_cache_get(witness->rig->cache, STR("uid-web"));
    witness->count++;
    witness->too_early +=
        status->containers.count != 1 || status->containers.items[0].state != RUNTIME_EXITED;
}

TEST(an_event_is_sent_after_the_cache_has_its_reason)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    struct witness witness = { .rig = r };
    struct event_sub *sub = event_sub_new(r->hub, look_into_the_cache, &witness);
    fake_cri_exit(r->fake, w.main, 0);
    relist(r);
    event_sub_free(sub);
    EXPECT_EQ(witness.count, 1);
    EXPECT_EQ(witness.too_early, 0);
}

/* --- addresses --- */

static const char *first_ip(struct rig *r, const char *uid)
{
    AUTO_STATUS status = pod_cache_get(r->cache, str_of(uid));
    buf_clear(&r->text);
    if (status->ips.count)
        buf_add(&r->text, status->ips.items[0]);
    return buf_str(&r->text).p;
}

TEST(a_pod_that_has_ended_keeps_its_address)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = make_pod(r, "uid-web", "web");
    fake_cri_set_ips(r->fake, w.sandbox, "10.1.2.3", "fd00::3");
    relist(r);
    EXPECT_Z(first_ip(r, "uid-web"), "10.1.2.3");
    fake_cri_exit(r->fake, w.main, 0);
    fake_cri_exit(r->fake, w.sandbox, 0);
    fake_cri_set_ips(r->fake, w.sandbox, "", NULL);
    relist(r);
    EXPECT_Z(first_ip(r, "uid-web"), "10.1.2.3");
    AUTO_STATUS status = pod_cache_get(r->cache, STR("uid-web"));
    EXPECT_EQ(status->ips.count, 2);
}

TEST(a_pod_with_a_ready_sandbox_has_the_address_of_that_alone)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = make_pod(r, "uid-web", "web");
    fake_cri_set_ips(r->fake, w.sandbox, "10.1.2.3", NULL);
    relist(r);
    fake_cri_set_ips(r->fake, w.sandbox, "", NULL);
    fake_cri_exit(r->fake, w.main, 0);
    relist(r);
    EXPECT_Z(first_ip(r, "uid-web"), "");
}

/* --- trouble --- */

TEST(a_listing_that_fails_changes_nothing)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    int64_t time_ns = pod_cache_time(r->cache);
    fake_cri_exit(r->fake, w.main, 0);
    fake_cri_fault(
        r->fake,
        (struct fake_fault){ .method = CRI_LIST_POD_SANDBOX, .times = 1, .status = GRPC_UNKNOWN });
    struct err err = { 0 };
    EXPECT_TRUE(pleg_relist(r->pleg, &err) < 0);
    EXPECT_HAS(str_of(err.text), "relist: ListPodSandbox");
    EXPECT_EQ(pod_cache_time(r->cache), time_ns);
    EXPECT_Z(cached(r, "uid-web"), "ready main=running");
    EXPECT_Z(events(r), "");
    EXPECT_EQ(pleg_stats(r->pleg).relist_failed_count, 1);
    relist(r);
    EXPECT_Z(events(r), "Died web/main 0 Completed");
}

TEST(a_pod_that_cannot_be_inspected_says_so_and_its_events_wait)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    struct web other = known_pod(r, "uid-other", "other");
    fake_cri_exit(r->fake, w.main, 2);
    fake_cri_exit(r->fake, other.main, 0);
    fail_inspections(r, w.main, 2);
    int64_t time_ns = pod_cache_time(r->cache);
    relist(r);
    EXPECT_TRUE(pod_cache_time(r->cache) > time_ns);
    EXPECT_Z(cached(r, "uid-web"), "failed: ready main=running"); /* what was known before */
    AUTO_STATUS failed = pod_cache_get(r->cache, STR("uid-web"));
    EXPECT_HAS(failed->error, "broken");
    EXPECT_STR(failed->name, "web");
    EXPECT_EQ(failed->timestamp_ns, pod_cache_time(r->cache));
    EXPECT_Z(events(r), "Died other/main 0 Completed");
    relist(r);
    EXPECT_Z(events(r), "");
    relist(r);
    EXPECT_Z(events(r), "Died web/main 2 Error");
    EXPECT_Z(cached(r, "uid-web"), "ready main=exited(2)");
    EXPECT_EQ(pleg_stats(r->pleg).inspect_failed_count, 2);
}

TEST(a_new_pod_that_cannot_be_inspected_is_known_by_name)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = make_pod(r, "uid-web", "web");
    fail_inspections(r, w.main, 1);
    relist(r);
    EXPECT_Z(cached(r, "uid-web"), "failed:");
    fake_cri_remove(r->fake, w.sandbox); /* nobody heard of it, and nobody hears of its end */
    relist(r);
    EXPECT_Z(events(r), "");
    EXPECT_EQ(pod_cache_stats(r->cache).entry_count, 0);
}

TEST(a_pod_that_can_be_inspected_again_without_other_news_is_told_once)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    pleg_request_inspection(r->pleg, STR("uid-web"));
    fail_inspections(r, w.main, 1);
    relist(r);
    EXPECT_Z(cached(r, "uid-web"), "failed: ready main=running");
    EXPECT_Z(events(r), "");
    relist(r);
    EXPECT_Z(cached(r, "uid-web"), "ready main=running");
    EXPECT_Z(events(r), "Sync web");
    relist(r);
    EXPECT_Z(events(r), "");
}

TEST(a_failure_on_a_container_that_was_only_created_ends_with_a_sync)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    const char *side = fake_cri_container(r->fake, w.sandbox, "side", 0);
    fail_inspections(r, side, 1);
    relist(r);
    EXPECT_Z(events(r), "");
    relist(r);
    EXPECT_Z(events(r), "Sync web");
}

TEST(answers_that_do_not_decode_fail_the_pod_and_not_the_node)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = make_pod(r, "uid-web", "web");
    fake_cri_fault(r->fake, (struct fake_fault){ .method = CRI_CONTAINER_STATUS,
                                                 .maybe_id = w.main,
                                                 .times = 1,
                                                 .garbage = true });
    make_pod(r, "uid-other", "other");
    relist(r);
    EXPECT_Z(cached(r, "uid-web"), "failed:");
    EXPECT_Z(cached(r, "uid-other"), "ready main=running");
    fake_cri_fault(
        r->fake, (struct fake_fault){ .method = CRI_LIST_CONTAINERS, .times = 1, .garbage = true });
    struct err err = { 0 };
    EXPECT_TRUE(pleg_relist(r->pleg, &err) < 0);
    relist(r);
    EXPECT_Z(cached(r, "uid-web"), "ready main=running");
}

TEST(a_runtime_that_was_restarted_is_simply_listed_again)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    struct err err = { 0 };
    fake_cri_down(r->fake);
    EXPECT_ERR(pleg_relist(r->pleg, &err), err, ERR_UNAVAILABLE);
    EXPECT_Z(cached(r, "uid-web"), "ready main=running");
    fake_cri_exit(r->fake, w.main, 9);
    fake_cri_up(r->fake);
    UNTIL(pleg_relist(r->pleg, &err) == 0); /* the client has a back-off of its own */
    EXPECT_Z(events(r), "Died web/main 9 Error");
}

TEST(connections_that_drop_in_the_middle_of_inspections_lose_no_event)
{
    AUTO(rig) r = rig_new((struct rig_options){ .real_time = true });
    struct web w = known_pod(r, "uid-web", "web");
    rig_start(r);
    fake_cri_fault(r->fake, (struct fake_fault){ .method = CRI_CONTAINER_STATUS, .hang = true });
    fake_cri_exit(r->fake, w.main, 4);
    pleg_request_all(r->pleg);
    UNTIL(fake_cri_waiting(r->fake) == 1);
    fake_cri_drop_connections(r->fake);
    fake_cri_heal(r->fake);
    UNTIL(same_z(cached(r, "uid-web"), "ready main=exited(4)"));
    pleg_stop(r->pleg);
    EXPECT_Z(events(r), "Died web/main 4 Error");
}

TEST(health_ages_from_the_last_listing_that_worked)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct err err = { 0 };
    EXPECT_FALSE(pleg_healthy(r->pleg, &err));
    EXPECT_HAS(str_of(err.text), "no listing has worked yet");
    relist(r);
    EXPECT_TRUE(pleg_healthy(r->pleg, &err));
    fake_cri_fault(r->fake,
                   (struct fake_fault){ .method = CRI_LIST_CONTAINERS, .status = GRPC_UNKNOWN });
    pass(r, PLEG_HEALTHY_NS);
    EXPECT_TRUE(pleg_relist(r->pleg, &err) < 0);
    EXPECT_TRUE(pleg_healthy(r->pleg, &err));
    pass(r, SECOND);
    EXPECT_TRUE(pleg_relist(r->pleg, &err) < 0);
    EXPECT_FALSE(pleg_healthy(r->pleg, &err));
    EXPECT_HAS(str_of(err.text), "no listing has worked for 181 s; after 180 s");
    fake_cri_heal(r->fake);
    relist(r);
    EXPECT_TRUE(pleg_healthy(r->pleg, &err));
}

TEST(a_pod_that_cannot_be_inspected_does_not_make_the_node_unhealthy)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = make_pod(r, "uid-web", "web");
    fail_inspections(r, w.main, 0);
    struct err err = { 0 };
    for (int i = 0; i < 5; i++) {
        pass(r, PLEG_HEALTHY_NS);
        relist(r);
        EXPECT_TRUE(pleg_healthy(r->pleg, &err));
    }
}

/* --- inspections that were asked for --- */

TEST(an_inspection_that_finds_nothing_new_sends_nothing)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    known_pod(r, "uid-web", "web");
    AUTO_STATUS before = pod_cache_get(r->cache, STR("uid-web"));
    uint64_t calls = inspect_calls(r);
    pleg_request_inspection(r->pleg, STR("uid-web"));
    pleg_request_inspection(r->pleg, STR("uid-web"));
    pleg_request_inspection(r->pleg, STR("uid-of-nobody"));
    relist(r);
    EXPECT_EQ(inspect_calls(r) - calls, 2);
    relist(r);
    EXPECT_EQ(inspect_calls(r) - calls, 2); /* once */
    EXPECT_Z(events(r), "");
    AUTO_STATUS after = pod_cache_get(r->cache, STR("uid-web"));
    EXPECT_TRUE(before == after);
}

TEST(an_inspection_that_finds_something_new_sends_a_sync)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    fake_cri_set_ips(r->fake, w.sandbox, "10.9.9.9", NULL);
    relist(r);
    EXPECT_Z(events(r), ""); /* a listing does not show it */
    pleg_request_inspection(r->pleg, STR("uid-web"));
    relist(r);
    EXPECT_Z(events(r), "Sync web");
    EXPECT_Z(first_ip(r, "uid-web"), "10.9.9.9");
}

TEST(a_relist_of_the_pod_alone_also_makes_the_inspection_that_was_asked_for)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    fake_cri_set_ips(r->fake, w.sandbox, "10.9.9.9", NULL);
    pleg_request_inspection(r->pleg, STR("uid-web"));
    relist_pod(r, "uid-web");
    EXPECT_Z(events(r), "Sync web");
}

/* --- a second look at what was killed --- */

static const char *reason_of_main(struct rig *r, const char *uid)
{
    AUTO_STATUS status = pod_cache_get(r->cache, str_of(uid));
    buf_clear(&r->text);
    buf_add(&r->text, runtime_container_find(status, STR("main"))->reason);
    return buf_str(&r->text).p;
}

TEST(a_reason_that_the_runtime_learns_after_the_end_is_learnt_too)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    fake_cri_exit(r->fake, w.main, 137);
    relist(r);
    EXPECT_Z(events(r), "Died web/main 137 Error");
    fake_cri_set_reason(r->fake, w.main, "OOMKilled");
    relist(r); /* too soon */
    relist_pod(r, "uid-web");
    EXPECT_Z(events(r), "");
    pass(r, SECOND);
    relist(r);
    EXPECT_Z(events(r), "Sync web");
    EXPECT_Z(reason_of_main(r, "uid-web"), "OOMKilled");
}

TEST(a_second_look_is_one_and_only_at_what_a_signal_ended)
{
    static const int32_t codes[] = { 0, 1, 128, 129, 137, 143 };
    for (size_t i = 0; i < KV_COUNT_OF(codes); i++) {
        AUTO(rig) r = rig_new((struct rig_options){ 0 });
        struct web w = known_pod(r, "uid-web", "web");
        known_pod(r, "uid-other", "other");
        fake_cri_exit(r->fake, w.main, codes[i]);
        relist(r);
        uint64_t calls = inspect_calls(r);
        for (int k = 0; k < 5; k++) {
            pass(r, SECOND);
            relist(r);
        }
        EXPECT_EQ(inspect_calls(r) - calls, codes[i] > 128 ? 2 : 0);
    }
}

TEST(a_second_look_is_not_lost_when_the_pod_changes_before_or_the_look_fails)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    fake_cri_exit(r->fake, w.main, 137);
    relist(r);
    fake_cri_start(r->fake, fake_cri_container(r->fake, w.sandbox, "side", 0));
    relist(r);
    EXPECT_Z(events(r), "Died web/main 137 Error, Started web/side");
    fake_cri_set_reason(r->fake, w.main, "OOMKilled");
    fail_inspections(r, w.main, 1);
    pass(r, SECOND);
    relist(r);
    relist(r);
    EXPECT_Z(events(r), "Sync web");
    EXPECT_Z(reason_of_main(r, "uid-web"), "OOMKilled");
}

/* --- one pod alone --- */

TEST(a_relist_of_one_pod_sees_that_pod_alone)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web a = known_pod(r, "uid-a", "a");
    struct web b = known_pod(r, "uid-b", "b");
    int64_t time_ns = pod_cache_time(r->cache);
    fake_cri_exit(r->fake, a.main, 1);
    fake_cri_exit(r->fake, b.main, 2);
    relist_pod(r, "uid-b");
    EXPECT_Z(events(r), "Died b/main 2 Error");
    EXPECT_Z(cached(r, "uid-a"), "ready main=running");
    EXPECT_Z(cached(r, "uid-b"), "ready main=exited(2)");
    EXPECT_EQ(pod_cache_time(r->cache), time_ns); /* nothing is promised about the others */
    relist(r);
    EXPECT_Z(events(r), "Died a/main 1 Error");
}

TEST(a_relist_of_one_pod_releases_who_waits_for_it_even_if_nothing_changed)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    known_pod(r, "uid-web", "web");
    int64_t acted_ns = clock_mono_ns(r->clock);
    relist_pod(r, "uid-web");
    AUTO_STATUS status = NULL;
    struct err err = { 0 };
    EXPECT_OK(pod_cache_get_newer_than(r->cache, STR("uid-web"), acted_ns, 0, NULL, &status, &err),
              err);
    EXPECT_Z(events(r), "");
}

TEST(a_relist_of_one_pod_finds_a_new_one)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    relist(r);
    make_pod(r, "uid-web", "web");
    relist_pod(r, "uid-web");
    EXPECT_Z(cached(r, "uid-web"), "ready main=running");
    EXPECT_Z(events(r), "Started web, Started web/main");
    relist(r);
    EXPECT_Z(events(r), "");
}

TEST(only_a_full_relist_takes_a_pod_out_of_the_cache)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    fake_cri_remove(r->fake, w.sandbox);
    relist_pod(r, "uid-web");
    EXPECT_Z(cached(r, "uid-web"), "ready main=running");
    relist_pod(r, "uid-of-nobody");
    EXPECT_Z(events(r), "");
    relist(r);
    EXPECT_Z(cached(r, "uid-web"), "");
}

/* --- what is seen --- */

TEST(operators_find_the_metrics_that_they_know)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    struct web w = known_pod(r, "uid-web", "web");
    fail_inspections(r, w.main, 1);
    fake_cri_exit(r->fake, w.main, 0);
    relist(r);
    relist_pod(r, "uid-web");
    AUTO_BUF text = { 0 };
    metrics_write(r->metrics, &text);
    static const char *const want[] = {
        "kubelet_pleg_relist_duration_seconds_count 2",
        "kubelet_pleg_relist_interval_seconds_count 1",
        "kubelet_pleg_pod_relist_duration_seconds_count 1",
        "kubelet_pleg_last_seen_seconds 1",
        "kubelet_pleg_discard_events 0",
        "karve_pleg_relist_running_seconds 0",
        "karve_pleg_late_inspections 0",
        "karve_pleg_inspections_total{result=\"ok\"} 2",
        "karve_pleg_inspections_total{result=\"failed\"} 1",
        "karve_pleg_hints_total{result=\"asked\"} 0",
    };
    for (size_t i = 0; i < KV_COUNT_OF(want); i++)
        EXPECT_HAS(buf_str(&text), want[i]);
}
