#include "node/events.h"

#include "support/test.h"

#include <stdio.h>

static void send_one(struct event_hub *hub, const char *uid)
{
    struct pod_event event = { .type = POD_EVENT_DIED, .exit_code = 3, .has_exit_code = true };
    snprintf(event.uid, sizeof event.uid, "%s", uid);
    event_hub_send(hub, &event);
}

static void send_many(struct event_hub *hub, int count)
{
    for (int i = 0; i < count; i++)
        send_one(hub, "a");
}

/* The numbers of all that is there are these, one after the other. */
static void expect_numbers(struct event_sub *sub, uint64_t first, uint64_t last, uint64_t want_lost)
{
    struct pod_event event;
    uint64_t lost = 0;
    for (uint64_t number = first; number <= last; number++) {
        EXPECT_EQ(event_sub_next(sub, 0, &event, &lost), 1);
        EXPECT_EQ(event.number, number);
        EXPECT_EQ(lost, want_lost); /* told with the first */
    }
    EXPECT_EQ(event_sub_next(sub, 0, &event, &lost), 0);
    EXPECT_EQ(lost, want_lost);
}

TEST(each_type_has_the_name_that_kubelets_give_it)
{
    EXPECT_Z(pod_event_name(POD_EVENT_STARTED), "ContainerStarted");
    EXPECT_Z(pod_event_name(POD_EVENT_DIED), "ContainerDied");
    EXPECT_Z(pod_event_name(POD_EVENT_REMOVED), "ContainerRemoved");
    EXPECT_Z(pod_event_name(POD_EVENT_SYNC), "PodSync");
}

TEST(an_event_arrives_whole_numbered_and_dated)
{
    AUTO(virtual_clock) vc = virtual_clock_new(1234);
    AUTO(event_hub) hub = event_hub_new(virtual_clock_port(vc));
    AUTO(event_sub) sub = event_sub_new(hub, NULL, NULL);
    struct pod_event event;
    uint64_t lost = 0;

    send_one(hub, "uid-1");
    event_hub_send(hub, &(struct pod_event){ .number = 99, .wall_us = 5, .sandbox = true });
    EXPECT_EQ(event_sub_next(sub, 0, &event, &lost), 1);
    EXPECT_EQ(event.number, 1);
    EXPECT_EQ(event.wall_us, 1234);
    EXPECT_EQ(event.type, POD_EVENT_DIED);
    EXPECT_EQ(event.exit_code, 3);
    EXPECT_TRUE(event.has_exit_code);
    EXPECT_Z(event.uid, "uid-1");
    EXPECT_EQ(event_sub_next(sub, 0, &event, &lost), 1);
    EXPECT_EQ(event.number, 2);
    EXPECT_EQ(event.wall_us, 5);
    EXPECT_TRUE(event.sandbox);
    EXPECT_EQ(lost, 0);
}

TEST(a_subscriber_reads_in_order_what_was_sent_since_it_came)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    send_many(hub, 3); /* to nobody, but numbered */
    AUTO(event_sub) early = event_sub_new(hub, NULL, NULL);
    send_many(hub, 2);
    AUTO(event_sub) late = event_sub_new(hub, NULL, NULL);
    send_many(hub, 2);
    expect_numbers(late, 6, 7, 0);
    expect_numbers(early, 4, 7, 0);
    send_many(hub, 1);
    expect_numbers(early, 8, 8, 0);
    expect_numbers(late, 8, 8, 0);
}

TEST(one_who_falls_behind_loses_the_oldest_and_is_told_how_many)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    AUTO(event_sub) quick = event_sub_new(hub, NULL, NULL);
    AUTO(event_sub) slow = event_sub_new(hub, NULL, NULL);
    send_many(hub, EVENTS_RING);
    expect_numbers(quick, 1, EVENTS_RING, 0);
    send_many(hub, 7);
    expect_numbers(quick, EVENTS_RING + 1, EVENTS_RING + 7, 0);
    EXPECT_EQ(event_hub_dropped(hub), 7);
    expect_numbers(slow, 8, EVENTS_RING + 7, 7);
    EXPECT_EQ(event_hub_dropped(hub), 7);
    /* It has caught up: from here on it loses nothing. */
    send_many(hub, EVENTS_RING);
    expect_numbers(slow, EVENTS_RING + 8, 2 * EVENTS_RING + 7, 0);
}

TEST(exactly_a_full_ring_loses_nothing)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    AUTO(event_sub) sub = event_sub_new(hub, NULL, NULL);
    send_many(hub, EVENTS_RING);
    expect_numbers(sub, 1, EVENTS_RING, 0);
    EXPECT_EQ(event_hub_dropped(hub), 0);
}

TEST(who_comes_late_may_begin_with_the_last_that_were_sent)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    AUTO(event_sub) of_nothing = event_sub_new_since(hub, 0, NULL, NULL);
    send_many(hub, 3);
    AUTO(event_sub) of_all = event_sub_new_since(hub, 0, NULL, NULL);
    AUTO(event_sub) of_one = event_sub_new_since(hub, 2, NULL, NULL);
    AUTO(event_sub) of_none = event_sub_new_since(hub, 3, NULL, NULL);
    send_many(hub, 1);
    expect_numbers(of_nothing, 1, 4, 0);
    expect_numbers(of_all, 1, 4, 0);
    expect_numbers(of_one, 3, 4, 0);
    expect_numbers(of_none, 4, 4, 0);
}

TEST(the_last_are_kept_after_all_have_read_them_and_no_more_than_that)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    AUTO(event_sub) early = event_sub_new(hub, NULL, NULL);
    send_many(hub, EVENTS_KEPT + 50);
    expect_numbers(early, 1, EVENTS_KEPT + 50, 0);
    AUTO(event_sub) of_all = event_sub_new_since(hub, 0, NULL, NULL);
    AUTO(event_sub) of_some = event_sub_new_since(hub, 40, NULL, NULL);
    expect_numbers(of_all, 51, EVENTS_KEPT + 50, 0);
    expect_numbers(of_some, 51, EVENTS_KEPT + 50, 10); /* 41 to 50 are gone */
}

TEST(a_late_one_that_falls_behind_loses_the_oldest_as_others_do)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    send_many(hub, EVENTS_KEPT);
    AUTO(event_sub) late = event_sub_new_since(hub, 0, NULL, NULL);
    send_many(hub, EVENTS_RING);
    expect_numbers(late, EVENTS_KEPT + 1, EVENTS_KEPT + EVENTS_RING, EVENTS_KEPT);
}

TEST(a_subscriber_may_leave_with_events_unread)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    AUTO(event_sub) stays = event_sub_new(hub, NULL, NULL);
    struct event_sub *leaves = event_sub_new(hub, NULL, NULL);
    send_many(hub, 5);
    event_sub_free(leaves);
    expect_numbers(stays, 1, 5, 0);
    event_sub_free(NULL);
}

/* --- waiting --- */

struct listener {
    struct event_sub *sub;
    int64_t until_ns;
    pthread_t thread;
    int rc;
    struct pod_event event;
};

static void *listen_once(void *arg)
{
    struct listener *l = arg;
    uint64_t lost = 0;
    l->rc = event_sub_next(l->sub, l->until_ns, &l->event, &lost);
    return NULL;
}

static void listen_start(struct listener *l)
{
    EXPECT_EQ(pthread_create(&l->thread, NULL, listen_once, l), 0);
}

TEST(a_wait_ends_with_the_next_event)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    AUTO(event_sub) one = event_sub_new(hub, NULL, NULL);
    AUTO(event_sub) two = event_sub_new(hub, NULL, NULL);
    struct listener a = { .sub = one, .until_ns = INT64_MAX },
                    b = { .sub = two, .until_ns = INT64_MAX };
    listen_start(&a);
    listen_start(&b);
    send_one(hub, "x");
    pthread_join(a.thread, NULL);
    pthread_join(b.thread, NULL);
    EXPECT_EQ(a.rc, 1);
    EXPECT_EQ(b.rc, 1);
    EXPECT_Z(a.event.uid, "x");
    EXPECT_EQ(b.event.number, 1);
}

TEST(a_wait_ends_when_the_clock_reaches_its_limit)
{
    AUTO(virtual_clock) vc = virtual_clock_new(0);
    AUTO(event_hub) hub = event_hub_new(virtual_clock_port(vc));
    AUTO(event_sub) sub = event_sub_new(hub, NULL, NULL);
    struct listener l = { .sub = sub, .until_ns = 100 };
    listen_start(&l);
    virtual_clock_advance(vc, 100);
    pthread_join(l.thread, NULL);
    EXPECT_EQ(l.rc, 0);
}

TEST(a_close_ends_every_wait_but_what_was_sent_before_can_still_be_read)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    AUTO(event_sub) idle = event_sub_new(hub, NULL, NULL);
    struct listener l = { .sub = idle, .until_ns = INT64_MAX };
    EXPECT_FALSE(event_hub_closed(hub));
    listen_start(&l);
    send_one(hub, "a");
    pthread_join(l.thread, NULL);
    AUTO(event_sub) behind = event_sub_new(hub, NULL, NULL);
    send_many(hub, 2);
    expect_numbers(idle, 2, 3, 0);
    listen_start(&l);
    event_hub_close(hub);
    event_hub_close(hub);
    pthread_join(l.thread, NULL);
    EXPECT_EQ(l.rc, 0);
    EXPECT_TRUE(event_hub_closed(hub));
    send_one(hub, "too late");
    expect_numbers(behind, 2, 3, 0);
    listen_once(&l); /* without waiting */
    EXPECT_EQ(l.rc, 0);
}

static void count_call(void *ctx)
{
    (*(int *)ctx)++;
}

TEST(a_subscriber_may_be_called_instead_after_each_send_and_at_the_close)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    int calls = 0;
    struct event_sub *sub = event_sub_new(hub, count_call, &calls);
    send_many(hub, 3);
    EXPECT_EQ(calls, 3);
    event_hub_close(hub);
    EXPECT_EQ(calls, 4);
    event_sub_free(sub);
    EXPECT_EQ(calls, 4);
}

/* --- many threads --- */

#define SENDERS 3
#define SENT_EACH 2000

struct reader {
    struct event_hub *hub;
    struct event_sub *sub;
    uint64_t read, lost;
    bool in_order;
    pthread_t thread;
};

static void *sender_main(void *hub)
{
    send_many(hub, SENT_EACH);
    return NULL;
}

static void *reader_main(void *arg)
{
    struct reader *r = arg;
    struct pod_event event;
    uint64_t last = 0;
    r->in_order = true;
    while (event_sub_next(r->sub, INT64_MAX, &event, &r->lost)) {
        r->read++;
        r->in_order = r->in_order && event.number > last;
        r->in_order = r->in_order && event.number == r->read + r->lost;
        last = event.number;
    }
    return NULL;
}

/* Comes and goes all the time. */
static void *visitor_main(void *arg)
{
    struct event_hub *hub = arg;
    while (!event_hub_closed(hub)) {
        AUTO(event_sub) sub = event_sub_new(hub, NULL, NULL);
        struct pod_event event;
        uint64_t lost = 0;
        event_sub_next(sub, 0, &event, &lost);
    }
    return NULL;
}

TEST(with_many_threads_every_event_is_either_read_once_in_order_or_counted_as_lost)
{
    AUTO(event_hub) hub = event_hub_new(clock_real());
    struct reader readers[3];
    pthread_t senders[SENDERS], visitor;
    for (size_t i = 0; i < KV_COUNT_OF(readers); i++) {
        readers[i] = (struct reader){ .hub = hub, .sub = event_sub_new(hub, NULL, NULL) };
        EXPECT_EQ(pthread_create(&readers[i].thread, NULL, reader_main, &readers[i]), 0);
    }
    EXPECT_EQ(pthread_create(&visitor, NULL, visitor_main, hub), 0);
    for (size_t i = 0; i < SENDERS; i++)
        EXPECT_EQ(pthread_create(&senders[i], NULL, sender_main, hub), 0);
    for (size_t i = 0; i < SENDERS; i++)
        pthread_join(senders[i], NULL);
    event_hub_close(hub);
    pthread_join(visitor, NULL);
    for (size_t i = 0; i < KV_COUNT_OF(readers); i++) {
        pthread_join(readers[i].thread, NULL);
        EXPECT_TRUE(readers[i].in_order);
        EXPECT_EQ(readers[i].read + readers[i].lost, SENDERS * SENT_EACH);
        event_sub_free(readers[i].sub);
    }
}
