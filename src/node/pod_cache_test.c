#include "node/pod_cache.h"

#include "support/test.h"

#include <sched.h>
#include <stdio.h>

#define LONG_NS ((int64_t)60 * 1000000000) /* of real time: then the test has failed */

/* --- statuses, and threads that wait for them --- */

static const struct runtime_status *status_new(const char *uid, int64_t ts_ns)
{
    struct runtime_status *status = runtime_status_new(str_of(uid));
    status->name = arena_str(&status->arena, STR("web"));
    status->timestamp_ns = ts_ns;
    return status;
}

static bool set(struct pod_cache *cache, const char *uid, int64_t ts_ns)
{
    AUTO_STATUS status = status_new(uid, ts_ns);
    return pod_cache_set(cache, status);
}

struct wait {
    struct pod_cache *cache;
    const char *uid;
    int64_t min_ns, until_ns;
    struct pod_cache_cancel *maybe_cancel;
    pthread_t thread;
    int rc;
    const struct runtime_status *status; /* of a wait that succeeded: the test's to unref */
    struct err err;
};

static void *wait_main(void *arg)
{
    struct wait *w = arg;
    w->rc = pod_cache_get_newer_than(w->cache, str_of(w->uid), w->min_ns, w->until_ns,
                                     w->maybe_cancel, &w->status, &w->err);
    return NULL;
}

static uint32_t waiting(struct pod_cache *cache)
{
    return pod_cache_stats(cache).waiter_count;
}

/* Returns when the thread is in its wait: nothing else begins or ends one meanwhile. */
static void wait_start(struct wait *w)
{
    uint32_t before = waiting(w->cache);
    int64_t limit_ns = clock_mono_ns(clock_real()) + LONG_NS;
    EXPECT_EQ(pthread_create(&w->thread, NULL, wait_main, w), 0);
    while (waiting(w->cache) == before) {
        EXPECT_TRUE(clock_mono_ns(clock_real()) < limit_ns);
        sched_yield();
    }
}

/* --- reading --- */

TEST(a_pod_that_was_never_set_has_a_status_with_only_its_uid)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    AUTO_STATUS status = pod_cache_get(cache, STR("a"));

    EXPECT_STR(status->uid, "a");
    EXPECT_EQ(status->name.len, 0);
    EXPECT_EQ(status->sandboxes.count + status->containers.count, 0);
    EXPECT_EQ(status->error_kind, ERR_NONE);
    EXPECT_EQ(status->timestamp_ns, 0);
    EXPECT_EQ(pod_cache_stats(cache).entry_count, 0);
}

TEST(what_was_set_is_shared_and_not_copied)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    AUTO_STATUS status = status_new("a", 5);
    EXPECT_TRUE(pod_cache_set(cache, status));

    AUTO_STATUS one = pod_cache_get(cache, STR("a"));
    AUTO_STATUS two = pod_cache_get(cache, STR("a"));
    EXPECT_TRUE(one == status);
    EXPECT_TRUE(two == status);
}

TEST(a_reader_keeps_what_it_read_when_it_is_replaced_or_deleted)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    set(cache, "a", 5);
    AUTO_STATUS first = pod_cache_get(cache, STR("a"));
    set(cache, "a", 6);
    AUTO_STATUS second = pod_cache_get(cache, STR("a"));
    pod_cache_delete(cache, STR("a"));
    AUTO_STATUS third = pod_cache_get(cache, STR("a"));

    EXPECT_EQ(first->timestamp_ns, 5);
    EXPECT_EQ(second->timestamp_ns, 6);
    EXPECT_EQ(third->timestamp_ns, 0);
    EXPECT_STR(second->name, "web");
}

TEST(all_entries_come_sorted_by_uid_with_the_time_of_the_promise)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    struct pod_cache_all all = pod_cache_all(cache);
    EXPECT_EQ(all.count, 0);
    EXPECT_EQ(all.time_ns, 0);
    pod_cache_all_done(&all);

    char uid[16];
    for (int i = 99; i >= 0; i--) {
        snprintf(uid, sizeof uid, "pod-%02d", i);
        set(cache, uid, 7);
    }
    pod_cache_delete(cache, STR("pod-50"));
    pod_cache_update_time(cache, 7);
    all = pod_cache_all(cache);
    pod_cache_delete(cache, STR("pod-00")); /* what was read stays */
    EXPECT_EQ(all.count, 99);
    EXPECT_EQ(all.time_ns, 7);
    EXPECT_STR(all.items[0]->uid, "pod-00");
    for (uint32_t i = 1; i < all.count; i++)
        EXPECT_TRUE(str_cmp(all.items[i - 1]->uid, all.items[i]->uid) < 0);
    pod_cache_all_done(&all);
}

TEST(statistics_follow_what_is_inside)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    EXPECT_EQ(pod_cache_stats(cache).bytes, 0);
    set(cache, "a", 1);
    uint64_t one = pod_cache_stats(cache).bytes;
    EXPECT_TRUE(one >= sizeof(struct runtime_status));
    set(cache, "a", 2);
    EXPECT_EQ(pod_cache_stats(cache).bytes, one);
    set(cache, "b", 2);
    EXPECT_EQ(pod_cache_stats(cache).bytes, 2 * one);
    EXPECT_EQ(pod_cache_stats(cache).entry_count, 2);
    pod_cache_delete(cache, STR("a"));
    pod_cache_delete(cache, STR("b"));
    pod_cache_delete(cache, STR("b"));
    EXPECT_EQ(pod_cache_stats(cache).bytes, 0);
    EXPECT_EQ(pod_cache_stats(cache).entry_count, 0);
}

/* --- writing --- */

TEST(an_older_status_is_refused_and_an_equally_old_one_is_not)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    EXPECT_TRUE(set(cache, "a", 5));
    EXPECT_FALSE(set(cache, "a", 4));
    AUTO_STATUS kept = pod_cache_get(cache, STR("a"));
    EXPECT_EQ(kept->timestamp_ns, 5);
    AUTO_STATUS same_age = status_new("a", 5);
    EXPECT_TRUE(pod_cache_set(cache, same_age));
    AUTO_STATUS now = pod_cache_get(cache, STR("a"));
    EXPECT_TRUE(now == same_age);
}

TEST(a_deleted_pod_may_come_back_with_any_time)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    set(cache, "a", 5);
    pod_cache_delete(cache, STR("a"));
    EXPECT_TRUE(set(cache, "a", 4));
}

TEST(the_global_time_never_goes_back)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    EXPECT_EQ(pod_cache_time(cache), 0);
    pod_cache_update_time(cache, 8);
    pod_cache_update_time(cache, 6);
    EXPECT_EQ(pod_cache_time(cache), 8);
}

/* --- newer than: at once, or not --- */

/* A limit that has passed already: an answer, or none, without waiting. */
static bool answered_at_once(struct pod_cache *cache, const char *uid, int64_t min_ns,
                             int64_t *ts_ns)
{
    AUTO_STATUS status = NULL;
    struct err err = { 0 };
    if (pod_cache_get_newer_than(cache, str_of(uid), min_ns, 0, NULL, &status, &err) < 0) {
        EXPECT_EQ(err.kind, ERR_UNAVAILABLE);
        EXPECT_HAS(str_of(err.text), uid);
        return false;
    }
    *ts_ns = status->timestamp_ns;
    EXPECT_STR(status->uid, uid);
    return true;
}

/* Every way in which the three times can lie around the one that is asked for. 0: not there at all. */
TEST(the_answer_is_at_once_only_if_something_known_is_strictly_newer)
{
    const int64_t min_ns = 50, times[] = { 0, 49, 50, 51 };
    for (size_t g = 0; g < 4; g++) {
        for (size_t m = 0; m < 4; m++) {
            for (size_t o = 0; o < 4; o++) {
                AUTO(pod_cache) cache = pod_cache_new(clock_real());
                if (times[m])
                    set(cache, "a", times[m]);
                if (times[o])
                    pod_cache_set_observed(cache, STR("a"), times[o]);
                if (times[g])
                    pod_cache_update_time(cache, times[g]);
                bool want = times[g] > min_ns;
                if (times[m])
                    want = want || times[m] > min_ns || times[o] > min_ns;
                int64_t ts_ns = -1;
                EXPECT_EQ(answered_at_once(cache, "a", min_ns, &ts_ns), want);
                EXPECT_EQ(ts_ns, want ? times[m] : -1);
            }
        }
    }
}

TEST(before_the_first_relist_the_absence_of_a_pod_is_newer_than_nothing)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    int64_t ts_ns = 0;
    EXPECT_FALSE(answered_at_once(cache, "a", 0, &ts_ns));
    EXPECT_FALSE(answered_at_once(cache, "a", INT64_MIN, &ts_ns));
    pod_cache_set_observed(cache, STR("a"), 9); /* of an absent pod nothing is kept */
    EXPECT_FALSE(answered_at_once(cache, "a", 0, &ts_ns));
    pod_cache_update_time(cache, 1);
    EXPECT_TRUE(answered_at_once(cache, "a", 0, &ts_ns));
    EXPECT_EQ(ts_ns, 0);
}

/* --- newer than: released by what the writer does --- */

enum writer_call { SET, SET_OBSERVED, DELETE, UPDATE_TIME, SET_OTHER, WRITER_CALLS };

static void writer_does(struct pod_cache *cache, enum writer_call call, int64_t ts_ns)
{
    switch (call) {
    case SET:
        set(cache, "a", ts_ns);
        return;
    case SET_OBSERVED:
        pod_cache_set_observed(cache, STR("a"), ts_ns);
        return;
    case DELETE:
        pod_cache_delete(cache, STR("a"));
        return;
    case UPDATE_TIME:
        pod_cache_update_time(cache, ts_ns);
        return;
    case SET_OTHER:
        set(cache, "b", ts_ns);
        return;
    case WRITER_CALLS:
        break;
    }
    KV_UNREACHABLE();
}

/* Each call, on an entry or none, with each relation of its time to the one waited for. */
TEST(a_wait_ends_with_the_first_call_about_its_pod_that_is_as_new_or_newer)
{
    const int64_t min_ns = 50, old_ns = 40;
    for (int present = 0; present < 2; present++) {
        for (int call = 0; call < WRITER_CALLS; call++) {
            for (int64_t ts_ns = min_ns - 1; ts_ns <= min_ns + 1; ts_ns++) {
                AUTO(pod_cache) cache = pod_cache_new(clock_real());
                AUTO(pod_cache_cancel) cancel = pod_cache_cancel_new(cache);
                if (present)
                    set(cache, "a", old_ns);
                struct wait w = { .cache = cache,
                                  .uid = "a",
                                  .min_ns = min_ns,
                                  .until_ns = INT64_MAX,
                                  .maybe_cancel = cancel };
                wait_start(&w);
                writer_does(cache, (enum writer_call)call, ts_ns);
                bool about_it = call == SET || call == SET_OBSERVED || call == UPDATE_TIME;
                bool released = about_it && ts_ns >= min_ns;
                EXPECT_EQ(waiting(cache), released ? 0 : 1);
                pod_cache_cancel(cancel);
                pthread_join(w.thread, NULL);
                EXPECT_EQ(w.rc, released ? 0 : -1);
                if (released) {
                    EXPECT_STR(w.status->uid, "a");
                    EXPECT_EQ(w.status->timestamp_ns, call == SET ? ts_ns : present ? old_ns : 0);
                }
                runtime_status_unref(w.status);
            }
        }
    }
}

TEST(a_wait_gets_what_was_there_at_its_release_whatever_comes_after)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    struct wait w = { .cache = cache, .uid = "a", .min_ns = 1, .until_ns = INT64_MAX };
    wait_start(&w);
    AUTO_STATUS first = status_new("a", 2);
    pod_cache_set(cache, first);
    set(cache, "a", 3);
    pod_cache_delete(cache, STR("a"));
    pod_cache_update_time(cache, 3);
    pthread_join(w.thread, NULL);
    EXPECT_EQ(w.rc, 0);
    EXPECT_TRUE(w.status == first);
    runtime_status_unref(w.status);
}

TEST(a_failed_inspection_ends_the_wait_and_is_seen)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    struct wait w = { .cache = cache, .uid = "a", .min_ns = 1, .until_ns = INT64_MAX };
    wait_start(&w);
    struct runtime_status *failed = runtime_status_new(STR("a"));
    failed->timestamp_ns = 2;
    failed->error_kind = ERR_UNAVAILABLE;
    failed->error = arena_str(&failed->arena, STR("no answer"));
    pod_cache_set(cache, failed);
    runtime_status_unref(failed);
    pthread_join(w.thread, NULL);
    EXPECT_EQ(w.rc, 0);
    EXPECT_EQ(w.status->error_kind, ERR_UNAVAILABLE);
    EXPECT_STR(w.status->error, "no answer");
    runtime_status_unref(w.status);
}

TEST(waits_for_one_pod_are_released_each_by_its_own_time)
{
    enum { N = 40 };
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    struct wait waits[N];
    for (int i = 0; i < N; i++) {
        waits[i] =
            (struct wait){ .cache = cache, .uid = "a", .min_ns = 100 + i, .until_ns = INT64_MAX };
        wait_start(&waits[i]);
    }
    set(cache, "a", 109);
    EXPECT_EQ(waiting(cache), N - 10);
    pod_cache_set_observed(cache, STR("a"), 119);
    EXPECT_EQ(waiting(cache), N - 20);
    pod_cache_update_time(cache, 100 + N - 1);
    EXPECT_EQ(waiting(cache), 0);
    for (int i = 0; i < N; i++) {
        pthread_join(waits[i].thread, NULL);
        EXPECT_EQ(waits[i].rc, 0);
        EXPECT_EQ(waits[i].status->timestamp_ns, 109);
        runtime_status_unref(waits[i].status);
    }
}

/* --- giving up --- */

TEST(a_cancelled_wait_ends_and_so_do_later_ones_until_the_reset)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    AUTO(pod_cache_cancel) mine = pod_cache_cancel_new(cache);
    AUTO(pod_cache_cancel) other = pod_cache_cancel_new(cache);
    struct wait a = {
        .cache = cache, .uid = "a", .min_ns = 5, .until_ns = INT64_MAX, .maybe_cancel = mine
    };
    struct wait b = a, c = a;
    b.uid = "b";
    c.maybe_cancel = other;
    wait_start(&a);
    wait_start(&b);
    wait_start(&c);
    pod_cache_cancel(mine);
    EXPECT_EQ(waiting(cache), 1);
    pthread_join(a.thread, NULL);
    pthread_join(b.thread, NULL);
    EXPECT_ERR(a.rc, a.err, ERR_CANCELLED);
    EXPECT_ERR(b.rc, b.err, ERR_CANCELLED);

    wait_main(&a); /* at once */
    EXPECT_ERR(a.rc, a.err, ERR_CANCELLED);
    pod_cache_cancel_reset(mine);
    wait_start(&a);
    pod_cache_update_time(cache, 5);
    pthread_join(a.thread, NULL);
    pthread_join(c.thread, NULL);
    EXPECT_EQ(a.rc, 0);
    EXPECT_EQ(c.rc, 0);
    runtime_status_unref(a.status);
    runtime_status_unref(c.status);
}

TEST(a_wait_that_was_cancelled_ends_even_if_the_reset_comes_before_it_runs)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    AUTO(pod_cache_cancel) cancel = pod_cache_cancel_new(cache);
    for (int i = 0; i < 50; i++) {
        struct wait w = {
            .cache = cache, .uid = "a", .until_ns = INT64_MAX, .maybe_cancel = cancel
        };
        wait_start(&w);
        pod_cache_cancel(cancel);
        pod_cache_cancel_reset(cancel);
        pthread_join(w.thread, NULL);
        EXPECT_ERR(w.rc, w.err, ERR_CANCELLED);
    }
}

TEST(what_is_newer_already_is_given_even_to_who_was_cancelled)
{
    AUTO(pod_cache) cache = pod_cache_new(clock_real());
    AUTO(pod_cache_cancel) cancel = pod_cache_cancel_new(cache);
    AUTO_STATUS status = NULL;
    struct err err = { 0 };
    pod_cache_cancel(cancel);
    set(cache, "a", 5);
    EXPECT_OK(pod_cache_get_newer_than(cache, STR("a"), 4, INT64_MAX, cancel, &status, &err), err);
    EXPECT_EQ(status->timestamp_ns, 5);
}

TEST(a_wait_ends_when_the_clock_reaches_its_limit_and_not_before)
{
    AUTO(virtual_clock) vc = virtual_clock_new(0);
    AUTO(pod_cache) cache = pod_cache_new(virtual_clock_port(vc));
    struct wait w = { .cache = cache, .uid = "a", .min_ns = 5, .until_ns = 100 };
    wait_start(&w);
    virtual_clock_advance(vc, 99);
    EXPECT_EQ(waiting(cache), 1);
    virtual_clock_advance(vc, 1);
    pthread_join(w.thread, NULL);
    EXPECT_ERR(w.rc, w.err, ERR_UNAVAILABLE);
    EXPECT_EQ(waiting(cache), 0);
    EXPECT_EQ(pod_cache_stats(cache).entry_count, 0);
}
