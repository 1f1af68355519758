#include "node/pleg_testing.h"

/* --- what hangs: in virtual time --- */

static struct rig *rig_hanging(int64_t period_ns)
{
    return rig_new((struct rig_options){ .period_ns = period_ns });
}

/* The loop runs and has seen all there was. */
static void rig_started(struct rig *r)
{
    rig_start(r);
    UNTIL(pleg_stats(r->pleg).relist_count >= 1);
    events(r);
}

TEST(a_pod_that_hangs_costs_the_others_nothing)
{
    AUTO(rig) r = rig_hanging(HOUR);
    struct web stuck = make_pod(r, "uid-stuck", "stuck"), quick = make_pod(r, "uid-quick", "quick");
    rig_started(r);
    int64_t time_ns = pod_cache_time(r->cache);
    pass(r, SECOND);
    hang_inspections(r, stuck.main);
    fake_cri_exit(r->fake, stuck.main, 1);
    fake_cri_exit(r->fake, quick.main, 2);
    pleg_request_all(r->pleg);

    UNTIL(same_z(cached(r, "uid-quick"), "ready main=exited(2)")); /* while the other hangs */
    EXPECT_EQ(pod_cache_time(r->cache), time_ns); /* it is not known to be as new */
    EXPECT_Z(cached(r, "uid-stuck"), "ready main=running");
    expect_events(r, "Died quick/main 2 Error");
    EXPECT_EQ(pleg_stats(r->pleg).relist_running_ns, 0); /* virtual time stands still */
    pass(r, SECOND / 2);
    EXPECT_EQ(pleg_stats(r->pleg).relist_running_ns, SECOND / 2);

    /* Requests for others are served meanwhile. */
    fake_cri_start(r->fake, fake_cri_container(r->fake, quick.sandbox, "main", 1));
    pleg_request(r->pleg, STR("uid-quick"));
    expect_events(r, "Started quick/main");

    pass(r, PLEG_PATIENCE_NS);
    UNTIL(pod_cache_time(r->cache) > time_ns);
    EXPECT_Z(cached(r, "uid-stuck"), "failed: ready main=running");
    AUTO_STATUS failed = pod_cache_get(r->cache, STR("uid-stuck"));
    EXPECT_STR(failed->error, "inspection has not answered for 1s");
    EXPECT_EQ(failed->error_kind, ERR_UNAVAILABLE);
    UNTIL(pleg_stats(r->pleg).relist_running_ns == 0); /* its end comes after the time's */
    EXPECT_EQ(pleg_stats(r->pleg).inspecting, 1);
    EXPECT_Z(events(r), "");
    fake_cri_heal(r->fake);
}

TEST(a_late_answer_is_taken_when_it_comes)
{
    AUTO(rig) r = rig_hanging(HOUR);
    struct web w = make_pod(r, "uid-web", "web");
    rig_started(r);
    hang_inspections(r, w.main);
    fake_cri_exit(r->fake, w.main, 1);
    pass(r, SECOND);
    pleg_request_all(r->pleg);
    UNTIL(fake_cri_waiting(r->fake) == 1);
    pass(r, PLEG_PATIENCE_NS);
    UNTIL(same_z(cached(r, "uid-web"), "failed: ready main=running"));
    UNTIL(pleg_stats(r->pleg).relist_running_ns == 0);

    uint64_t lists = fake_cri_calls(r->fake, CRI_LIST_CONTAINERS);
    fake_cri_heal(r->fake);
    UNTIL(same_z(cached(r, "uid-web"), "ready main=exited(1)"));
    expect_events(r, "Died web/main 1 Error");
    EXPECT_EQ(fake_cri_calls(r->fake, CRI_LIST_CONTAINERS), lists); /* no relist brought it */
    AUTO_STATUS status = pod_cache_get(r->cache, STR("uid-web"));
    EXPECT_TRUE(status->timestamp_ns >= pod_cache_time(r->cache));
}

TEST(a_pod_whose_inspection_is_late_is_not_inspected_a_second_time)
{
    AUTO(rig) r = rig_hanging(SECOND);
    struct web w = make_pod(r, "uid-web", "web");
    hang_inspections(r, w.main);
    rig_start(r);
    UNTIL(fake_cri_waiting(r->fake) == 1);
    pass(r, PLEG_PATIENCE_NS);
    UNTIL(pleg_stats(r->pleg).relist_count == 1);
    for (uint64_t i = 2; i < 6; i++) { /* and the relists do not wait for it either */
        pass(r, SECOND);
        UNTIL(pleg_stats(r->pleg).relist_count == i);
    }
    EXPECT_EQ(fake_cri_calls(r->fake, CRI_CONTAINER_STATUS), 1);
    EXPECT_EQ(fake_cri_waiting(r->fake), 1);
    int64_t time_ns = pod_cache_time(r->cache);

    /* Every listing since has shown the same, so the answer is as new as the last. */
    fake_cri_heal(r->fake);
    UNTIL(same_z(cached(r, "uid-web"), "ready main=running"));
    AUTO_STATUS status = pod_cache_get(r->cache, STR("uid-web"));
    EXPECT_EQ(status->timestamp_ns, time_ns);
    EXPECT_EQ(fake_cri_calls(r->fake, CRI_CONTAINER_STATUS), 1);
    expect_events(r, "Started web, Started web/main");
}

TEST(a_late_answer_from_before_a_change_is_not_believed)
{
    AUTO(rig) r = rig_hanging(SECOND);
    struct web w = make_pod(r, "uid-web", "web");
    /* It looks, and then hangs: what it will answer is "running". */
    fake_cri_fault(r->fake, (struct fake_fault){ .method = CRI_CONTAINER_STATUS,
                                                 .maybe_id = w.main,
                                                 .times = 1,
                                                 .hang = true,
                                                 .after = true });
    rig_start(r);
    UNTIL(fake_cri_waiting(r->fake) == 1);
    pass(r, PLEG_PATIENCE_NS);
    UNTIL(pleg_stats(r->pleg).relist_count == 1);
    fake_cri_exit(r->fake, w.main, 7);
    pass(r, SECOND);
    UNTIL(pleg_stats(r->pleg).relist_count == 2);
    EXPECT_Z(cached(r, "uid-web"), "failed:");

    fake_cri_heal(r->fake);
    UNTIL(!same_z(cached(r, "uid-web"), "failed:"));
    EXPECT_Z(cached(r, "uid-web"), "ready main=exited(7)");
    EXPECT_EQ(fake_cri_calls(r->fake, CRI_CONTAINER_STATUS), 2);
    expect_events(r, "Died web/main 7 Error, Started web");
}

TEST(a_late_inspection_that_fails_is_tried_again_at_the_next_relist)
{
    AUTO(rig) r = rig_hanging(SECOND);
    struct web w = make_pod(r, "uid-web", "web");
    fake_cri_fault(r->fake, (struct fake_fault){ .method = CRI_CONTAINER_STATUS,
                                                 .maybe_id = w.main,
                                                 .times = 1,
                                                 .hang = true,
                                                 .status = GRPC_UNKNOWN,
                                                 .message = "broken" });
    rig_start(r);
    UNTIL(fake_cri_waiting(r->fake) == 1);
    pass(r, PLEG_PATIENCE_NS);
    UNTIL(pleg_stats(r->pleg).relist_count == 1);
    fake_cri_heal(r->fake);
    UNTIL(pleg_stats(r->pleg).inspecting == 0);
    AUTO_STATUS failed = pod_cache_get(r->cache, STR("uid-web"));
    EXPECT_HAS(failed->error, "broken");
    pass(r, SECOND);
    UNTIL(same_z(cached(r, "uid-web"), "ready main=running"));
}

TEST(a_pod_that_vanishes_while_it_hangs_is_gone)
{
    AUTO(rig) r = rig_hanging(SECOND);
    struct web w = make_pod(r, "uid-web", "web");
    rig_started(r);
    hang_inspections(r, w.main);
    fake_cri_exit(r->fake, w.main, 1);
    pass(r, SECOND);
    UNTIL(fake_cri_waiting(r->fake) == 1);
    pass(r, PLEG_PATIENCE_NS);
    UNTIL(pleg_stats(r->pleg).relist_count == 2);
    fake_cri_remove(r->fake, w.sandbox);
    pass(r, SECOND);
    UNTIL(pod_cache_stats(r->cache).entry_count == 0);
    UNTIL(pleg_stats(r->pleg).inspecting == 0);
    expect_events(r, "Died web/main, Removed web/main, Died web, Removed web");
    fake_cri_heal(r->fake);
}

TEST(many_pods_that_hang_do_not_keep_others_from_being_inspected)
{
    AUTO(rig) r = rig_hanging(HOUR);
    hang_inspections(r, NULL);
    for (int i = 0; i < PLEG_INSPECTIONS_MAX + 4; i++) {
        char uid[16], name[16];
        snprintf(uid, sizeof uid, "a-uid-%02d", i); /* sorts, and so starts, first */
        snprintf(name, sizeof name, "a-%02d", i);
        make_pod(r, uid, name);
    }
    fake_cri_sandbox(r->fake, "b-uid", "b", 0); /* without a container nothing hangs */
    rig_start(r);
    UNTIL(fake_cri_waiting(r->fake) == PLEG_INSPECTIONS_MAX);
    EXPECT_Z(cached(r, "b-uid"), "");
    pass(r, PLEG_PATIENCE_NS);
    UNTIL(same_z(cached(r, "b-uid"), "ready"));
    UNTIL(fake_cri_waiting(r->fake) == PLEG_INSPECTIONS_MAX + 4);
    UNTIL(pod_cache_time(r->cache) > 0);
    AUTO_STATUS last = pod_cache_get(r->cache, STR("a-uid-19"));
    EXPECT_EQ(last->error_kind, ERR_UNAVAILABLE);
    fake_cri_heal(r->fake);
    UNTIL(same_z(cached(r, "a-uid-00"), "ready main=running"));
    UNTIL(same_z(cached(r, "a-uid-19"), "ready main=running"));
}

TEST(a_stop_does_not_wait_for_a_runtime_that_is_frozen)
{
    AUTO(rig) r = rig_hanging(HOUR);
    make_pod(r, "uid-web", "web");
    rig_started(r);
    fake_cri_fault(r->fake, (struct fake_fault){ .method = CRI_LIST_CONTAINERS, .hang = true });
    pleg_request_all(r->pleg);
    UNTIL(fake_cri_waiting(r->fake) == 1);
    pleg_stop(r->pleg);
    fake_cri_heal(r->fake);
}

/* --- the loop and its requests --- */

TEST(the_first_relist_comes_at_once_and_the_next_a_period_after_its_end)
{
    AUTO(rig) r = rig_hanging(SECOND);
    rig_start(r);
    UNTIL(pleg_stats(r->pleg).relist_count == 1);
    fake_cri_fault(r->fake, (struct fake_fault){ .method = CRI_LIST_CONTAINERS, .hang = true });
    pass(r, SECOND);
    UNTIL(fake_cri_waiting(r->fake) == 1);
    pass(r, SECOND / 2); /* so long it lists */
    fake_cri_heal(r->fake);
    UNTIL(pleg_stats(r->pleg).relist_count == 2);
    UNTIL(virtual_clock_next(r->maybe_time) == SECOND + SECOND + SECOND / 2 + SECOND);
}

TEST(a_request_brings_what_happened_before_it)
{
    AUTO(rig) r = rig_hanging(HOUR);
    struct web w = make_pod(r, "uid-web", "web");
    rig_started(r);
    fake_cri_exit(r->fake, w.main, 1);
    pleg_request(r->pleg, STR("uid-web"));
    expect_events(r, "Died web/main 1 Error");
    UNTIL(pleg_stats(r->pleg).pod_relist_count == 1); /* counted when it has ended */
    EXPECT_EQ(pleg_stats(r->pleg).relist_count, 1);
}

TEST(requests_beyond_the_queue_are_dropped_and_counted_but_not_repeated_ones)
{
    AUTO(rig) r = rig_new((struct rig_options){ 0 });
    char uid[16];
    for (int i = 0; i < PLEG_REQUESTS_MAX + 5; i++) {
        snprintf(uid, sizeof uid, "uid-%d", i);
        pleg_request(r->pleg, str_of(uid));
        pleg_request(r->pleg, STR("uid-0"));
    }
    EXPECT_EQ(pleg_stats(r->pleg).request_dropped_count, 5);
}

/* The loop is in a listing, and what is asked for meanwhile waits. */
static void hold_loop(struct rig *r)
{
    fake_cri_fault(r->fake,
                   (struct fake_fault){
                       .method = CRI_LIST_CONTAINERS, .times = 1, .hang = true, .after = true });
    pleg_request_all(r->pleg);
    UNTIL(fake_cri_waiting(r->fake) == 1);
}

TEST(requests_made_while_a_full_relist_lists_are_served_after_it)
{
    AUTO(rig) r = rig_hanging(HOUR);
    struct web w = make_pod(r, "uid-web", "web");
    rig_started(r);
    hold_loop(r);
    fake_cri_exit(r->fake, w.main, 1); /* the listing under way may not show it */
    pleg_request(r->pleg, STR("uid-web"));
    fake_cri_heal(r->fake);
    expect_events(r, "Died web/main 1 Error");
    UNTIL(pleg_stats(r->pleg).pod_relist_count == 1); /* counted when it has ended */
}

TEST(a_full_relist_that_begins_later_answers_the_requests_before_it)
{
    AUTO(rig) r = rig_hanging(HOUR);
    struct web w = make_pod(r, "uid-web", "web");
    rig_started(r);
    hold_loop(r);
    fake_cri_exit(r->fake, w.main, 1);
    pleg_request(r->pleg, STR("uid-web"));
    pleg_request_all(r->pleg);
    fake_cri_heal(r->fake);
    expect_events(r, "Died web/main 1 Error");
    UNTIL(pleg_stats(r->pleg).relist_count == 3);
    EXPECT_EQ(pleg_stats(r->pleg).pod_relist_count, 0);
}

TEST(a_burst_of_requests_is_one_full_relist)
{
    AUTO(rig) r = rig_hanging(HOUR);
    fake_cri_flood(r->fake, 20, 1);
    rig_started(r);
    hold_loop(r);
    pass(r, SECOND);
    char uid[32];
    for (int i = 0; i < 20; i++) {
        snprintf(uid, sizeof uid, "flood-%06d", i);
        pleg_request(r->pleg, str_of(uid));
    }
    fake_cri_heal(r->fake);
    UNTIL(pleg_stats(r->pleg).relist_count == 3);
    EXPECT_EQ(pleg_stats(r->pleg).pod_relist_count, 0);
}

TEST(a_request_for_a_pod_that_vanished_brings_a_full_relist)
{
    AUTO(rig) r = rig_hanging(HOUR);
    struct web w = make_pod(r, "uid-web", "web");
    rig_started(r);
    fake_cri_remove(r->fake, w.sandbox);
    pleg_request(r->pleg, STR("uid-web"));
    UNTIL(pod_cache_stats(r->cache).entry_count == 0);
    UNTIL(pleg_stats(r->pleg).relist_count == 2); /* counted when it has ended */
}

TEST(a_uid_too_long_to_remember_brings_a_full_relist)
{
    AUTO(rig) r = rig_hanging(HOUR);
    rig_started(r);
    char uid[1000];
    memset(uid, 'u', sizeof uid);
    pleg_request(r->pleg, (struct str){ uid, sizeof uid });
    UNTIL(pleg_stats(r->pleg).relist_count == 2);
}

/* --- hints --- */

/* No relist comes by itself. */
static struct rig *rig_hinted(struct fake_cri_options fake)
{
    struct rig *r = rig_new(
        (struct rig_options){ .fake = fake, .real_time = true, .hints = true, .period_ns = HOUR });
    rig_start(r);
    if (!fake.no_events)
        UNTIL(fake_cri_listeners(r->fake) == 1);
    UNTIL(pleg_stats(r->pleg).relist_count >= 1);
    return r;
}

TEST(hints_bring_each_change_without_a_relist_of_all)
{
    AUTO(rig) r = rig_hinted((struct fake_cri_options){ 0 });
    const char *sandbox = fake_cri_sandbox(r->fake, "uid-web", "web", 0);
    UNTIL(same_z(cached(r, "uid-web"), "ready"));
    const char *main = fake_cri_container(r->fake, sandbox, "main", 0);
    UNTIL(same_z(cached(r, "uid-web"), "ready main=created"));
    fake_cri_start(r->fake, main);
    UNTIL(same_z(cached(r, "uid-web"), "ready main=running"));
    fake_cri_exit(r->fake, main, 5);
    UNTIL(same_z(cached(r, "uid-web"), "ready main=exited(5)"));
    fake_cri_remove(r->fake, main);
    UNTIL(same_z(cached(r, "uid-web"), "ready"));
    fake_cri_remove(r->fake, sandbox);
    UNTIL(pod_cache_stats(r->cache).entry_count == 0);
    UNTIL(pleg_stats(r->pleg).pods == 0);
    EXPECT_Z(events(r), "Started web, Started web/main, Died web/main 5 Error, Removed web/main, "
                        "Died web, Removed web");
    EXPECT_TRUE(pleg_stats(r->pleg).hint_count >= 6);
}

TEST(a_stream_that_ended_is_opened_again_and_what_was_missed_is_listed)
{
    AUTO(rig) r = rig_hinted((struct fake_cri_options){ 0 });
    const char *sandbox = fake_cri_sandbox(r->fake, "uid-web", "web", 0);
    UNTIL(same_z(cached(r, "uid-web"), "ready"));
    fake_cri_drop_connections(r->fake);
    fake_cri_set_state(r->fake, sandbox, RUNTIME_EXITED); /* without an event */
    UNTIL(same_z(cached(r, "uid-web"), "ended"));
    UNTIL(pleg_stats(r->pleg).stream_open_count >= 2);
    fake_cri_events_end(r->fake, GRPC_OK);
    fake_cri_set_state(r->fake, sandbox, RUNTIME_RUNNING);
    UNTIL(same_z(cached(r, "uid-web"), "ready"));
    UNTIL(fake_cri_listeners(r->fake) == 1);
    fake_cri_exit(r->fake, sandbox, 0);
    UNTIL(same_z(cached(r, "uid-web"), "ended"));
}

TEST(a_runtime_without_events_is_not_asked_again_until_it_was_away)
{
    AUTO(rig) r = rig_new((struct rig_options){
        .fake = { .no_events = true }, .real_time = true, .hints = true, .period_ns = 5 * MS });
    rig_start(r);
    UNTIL(pleg_stats(r->pleg).relist_count >= 40);
    EXPECT_EQ(pleg_stats(r->pleg).stream_open_count, 1);
    struct err err = { 0 };
    EXPECT_TRUE(pleg_healthy(r->pleg, &err));
    fake_cri_down(r->fake);
    UNTIL(pleg_stats(r->pleg).relist_failed_count > 0);
    fake_cri_up(r->fake);
    UNTIL(pleg_stats(r->pleg).stream_open_count > 1);
}

TEST(old_and_repeated_events_cost_a_look_and_change_nothing)
{
    AUTO(rig) r = rig_hinted((struct fake_cri_options){ 0 });
    const char *sandbox = fake_cri_sandbox(r->fake, "uid-web", "web", 0);
    const char *main = fake_cri_container(r->fake, sandbox, "main", 0);
    fake_cri_start(r->fake, main);
    UNTIL(same_z(cached(r, "uid-web"), "ready main=running"));
    expect_events(r, "Started web, Started web/main");
    uint64_t hints = pleg_stats(r->pleg).hint_count;
    fake_cri_event_send(r->fake, main, CRI__CONTAINER_EVENT_TYPE__EVENT_STOPPED);
    fake_cri_event_send(r->fake, main, CRI__CONTAINER_EVENT_TYPE__EVENT_DELETED);
    fake_cri_events_replay(r->fake);
    UNTIL(pleg_stats(r->pleg).hint_count >= hints + 6);
    pleg_stop(r->pleg);
    EXPECT_Z(cached(r, "uid-web"), "ready main=running");
    EXPECT_Z(events(r), "");
}

TEST(a_flood_of_events_is_one_listing)
{
    AUTO(rig) r = rig_hinted((struct fake_cri_options){ 0 });
    for (int i = 0; i < 50; i++) {
        char uid[16];
        snprintf(uid, sizeof uid, "uid-%d", i);
        make_pod(r, uid, uid);
    }
    UNTIL(pleg_stats(r->pleg).hint_count >= 50 * 4);
    UNTIL(same_z(cached(r, "uid-49"), "ready main=running"));
    /* No relist of one pod is left to be held: the second full one ends after one that answered them. */
    for (int i = 0; i < 2; i++) {
        uint64_t relists = pleg_stats(r->pleg).relist_count;
        pleg_request_all(r->pleg);
        UNTIL(pleg_stats(r->pleg).relist_count > relists);
    }
    hold_loop(r);
    struct pleg_stats before = pleg_stats(r->pleg);
    fake_cri_events_replay(r->fake);
    UNTIL(pleg_stats(r->pleg).hint_count >= before.hint_count + 200);
    fake_cri_heal(r->fake);
    UNTIL(pleg_stats(r->pleg).relist_count >= before.relist_count + 2);
    EXPECT_EQ(pleg_stats(r->pleg).pod_relist_count, before.pod_relist_count);
    EXPECT_EQ(pleg_stats(r->pleg).request_dropped_count, 0);
}
