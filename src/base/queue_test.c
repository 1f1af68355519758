#include "base/queue.h"

#include "base/rng.h"
#include "support/test.h"

#include <stdio.h>

#define SECOND_NS ((int64_t)1000000000)

struct fixture {
    struct virtual_clock *clock;
    struct queue *q;
};

static void fixture_done(struct fixture *f)
{
    queue_free(f->q);
    virtual_clock_free(f->clock);
}
#define AUTO_FIXTURE __attribute__((cleanup(fixture_done))) struct fixture

static struct fixture fixture_new(struct queue_options opts)
{
    struct fixture f = { .clock = virtual_clock_new(0) };
    opts.clock = virtual_clock_port(f.clock);
    f.q = queue_new(opts);
    return f;
}

/* The next key, taken and finished at once; "-" if there is none. */
static struct str next(struct fixture *f)
{
    static char text[64];
    struct str key;
    if (!queue_try_take(f->q, &key))
        return STR("-");
    snprintf(text, sizeof text, "%.*s", STR_ARG(key));
    queue_finish(f->q, key, outcome_done());
    return str_of(text);
}

static struct str take_key(struct fixture *f)
{
    struct str key = STR_NONE;
    EXPECT_TRUE(queue_try_take(f->q, &key));
    return key;
}

/* --- semantics, in virtual time --- */

TEST(queue_hands_out_keys_first_come_first_served_and_each_once)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    EXPECT_TRUE(queue_add(f.q, STR("b")));
    EXPECT_TRUE(queue_add(f.q, STR("a")));
    EXPECT_TRUE(queue_add(f.q, STR("b")));
    EXPECT_TRUE(queue_add(f.q, STR("")));
    EXPECT_STR(next(&f), "b");
    EXPECT_STR(next(&f), "a");
    EXPECT_STR(next(&f), "");
    EXPECT_STR(next(&f), "-");
}

TEST(queue_runs_a_key_added_while_running_once_more_and_never_at_the_same_time)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    queue_add(f.q, STR("a"));
    struct str key = take_key(&f);
    queue_add(f.q, STR("a"));
    queue_add(f.q, STR("a"));
    EXPECT_STR(next(&f), "-");
    queue_finish(f.q, key, outcome_done());
    EXPECT_STR(next(&f), "a");
    EXPECT_STR(next(&f), "-");
}

TEST(queue_keeps_a_delay_asked_for_while_the_key_runs)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    queue_add(f.q, STR("a"));
    struct str key = take_key(&f);
    queue_add_after(f.q, STR("a"), 5 * SECOND_NS);
    queue_add_after(f.q, STR("a"), 9 * SECOND_NS);
    virtual_clock_advance(f.clock, 2 * SECOND_NS);
    queue_finish(f.q, key, outcome_done());
    EXPECT_EQ(queue_next_due(f.q), 5 * SECOND_NS);
    virtual_clock_advance(f.clock, 3 * SECOND_NS);
    EXPECT_STR(next(&f), "a");
    EXPECT_EQ(queue_next_due(f.q), INT64_MAX);
}

TEST(queue_delayed_keys_come_due_by_time_then_by_order_of_adding)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    queue_add_after(f.q, STR("d"), 3 * SECOND_NS);
    queue_add_after(f.q, STR("b"), 2 * SECOND_NS);
    queue_add_after(f.q, STR("a"), 2 * SECOND_NS);
    queue_add_after(f.q, STR("c"), 2 * SECOND_NS);
    EXPECT_STR(next(&f), "-");
    EXPECT_EQ(queue_next_due(f.q), 2 * SECOND_NS);
    virtual_clock_advance(f.clock, 2 * SECOND_NS - 1);
    EXPECT_STR(next(&f), "-");
    virtual_clock_advance(f.clock, 10 * SECOND_NS);
    EXPECT_STR(next(&f), "b");
    EXPECT_STR(next(&f), "a");
    EXPECT_STR(next(&f), "c");
    EXPECT_STR(next(&f), "d");
}

TEST(queue_hands_out_what_came_due_before_what_was_added_later_even_if_nobody_looked)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    queue_add_after(f.q, STR("due"), 1 * SECOND_NS);
    virtual_clock_advance(f.clock, 2 * SECOND_NS);
    queue_add(f.q, STR("added"));
    EXPECT_STR(next(&f), "due");
    EXPECT_STR(next(&f), "added");
}

TEST(queue_the_earliest_of_several_delays_wins)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    queue_add_after(f.q, STR("a"), 5 * SECOND_NS);
    queue_add_after(f.q, STR("a"), 2 * SECOND_NS);
    queue_add_after(f.q, STR("a"), 8 * SECOND_NS);
    EXPECT_EQ(queue_next_due(f.q), 2 * SECOND_NS);
    queue_add(f.q, STR("a"));
    EXPECT_STR(next(&f), "a");
    virtual_clock_advance(f.clock, 10 * SECOND_NS);
    EXPECT_STR(next(&f), "-");
}

TEST(queue_absurd_delays_mean_now_or_the_end_of_time)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    virtual_clock_advance(f.clock, SECOND_NS);
    queue_add_after(f.q, STR("a"), -5);
    queue_add_after(f.q, STR("z"), INT64_MAX);
    EXPECT_STR(next(&f), "a");
    EXPECT_EQ(queue_next_due(f.q), INT64_MAX - 1);
}

TEST(queue_requeues_after_the_time_that_the_outcome_says)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    queue_add(f.q, STR("a"));
    queue_finish(f.q, take_key(&f), outcome_requeue(30 * SECOND_NS));
    EXPECT_EQ(queue_next_due(f.q), 30 * SECOND_NS);
    virtual_clock_advance(f.clock, 30 * SECOND_NS);
    queue_finish(f.q, take_key(&f), outcome_requeue(0));
    EXPECT_STR(next(&f), "a");
}

/* --- back-off --- */

/* Fail the only key `count` times, as soon as it is due each time; the delays. */
static void fail_repeatedly(struct fixture *f, int count, int64_t *delays_ns)
{
    for (int i = 0; i < count; i++) {
        int64_t before_ns = clock_mono_ns(virtual_clock_port(f->clock));
        queue_finish(f->q, take_key(f), outcome_retry());
        delays_ns[i] = queue_next_due(f->q) - before_ns;
        virtual_clock_advance(f->clock, delays_ns[i]);
    }
}

TEST(queue_backs_off_exponentially_with_up_to_half_taken_off_and_a_limit)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){
        .seed = 1, .backoff_min_ns = SECOND_NS, .backoff_max_ns = 60 * SECOND_NS });
    int64_t delays_ns[80];
    queue_add(f.q, STR("a"));
    fail_repeatedly(&f, 80, delays_ns); /* more failures than a shift has bits */
    for (int i = 0; i < 80; i++) {
        int64_t full_ns = i < 6 ? SECOND_NS << i : 60 * SECOND_NS;
        EXPECT_TRUE(delays_ns[i] > full_ns / 2 - 2);
        EXPECT_TRUE(delays_ns[i] <= full_ns);
    }
    EXPECT_EQ(queue_stats(f.q).retry_count, 80);
}

TEST(queue_starts_the_back_off_anew_after_success_requeue_or_forget)
{
    for (int how = 0; how < 3; how++) {
        AUTO_FIXTURE f = fixture_new((struct queue_options){ .backoff_min_ns = SECOND_NS });
        int64_t delays_ns[5];
        queue_add(f.q, STR("a"));
        fail_repeatedly(&f, 5, delays_ns);
        struct str key = take_key(&f);
        if (how == 0) {
            queue_finish(f.q, key, outcome_done());
            queue_add(f.q, STR("a"));
        } else if (how == 1) {
            queue_finish(f.q, key, outcome_requeue(0));
        } else { /* fails once more, but from the beginning */
            queue_forget(f.q, key);
            int64_t before_ns = clock_mono_ns(virtual_clock_port(f.clock));
            queue_finish(f.q, key, outcome_retry());
            EXPECT_EQ(queue_next_due(f.q) - before_ns, delays_ns[0]);
            continue;
        }
        int64_t again_ns;
        fail_repeatedly(&f, 1, &again_ns);
        EXPECT_EQ(again_ns, delays_ns[0]);
    }
}

TEST(queue_back_off_depends_on_seed_and_key_but_not_on_other_keys)
{
    int64_t alone_ns[4], crowded_ns[4], other_ns[4], seeded_ns[4];
    AUTO_FIXTURE f = fixture_new((struct queue_options){ .seed = 1 });
    queue_add(f.q, STR("a"));
    fail_repeatedly(&f, 4, alone_ns);

    AUTO_FIXTURE g = fixture_new((struct queue_options){ .seed = 1 });
    queue_add(g.q, STR("b"));
    fail_repeatedly(&g, 4, other_ns);
    queue_finish(g.q, take_key(&g), outcome_done());
    queue_add(g.q, STR("a"));
    fail_repeatedly(&g, 4, crowded_ns);

    AUTO_FIXTURE h = fixture_new((struct queue_options){ .seed = 2 });
    queue_add(h.q, STR("a"));
    fail_repeatedly(&h, 4, seeded_ns);

    for (int i = 0; i < 4; i++) {
        EXPECT_EQ(alone_ns[i], crowded_ns[i]);
        EXPECT_TRUE(alone_ns[i] != other_ns[i]);
        EXPECT_TRUE(alone_ns[i] != seeded_ns[i]);
    }
}

TEST(queue_an_event_overtakes_the_back_off)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    queue_add(f.q, STR("a"));
    queue_finish(f.q, take_key(&f), outcome_retry());
    EXPECT_STR(next(&f), "-");
    queue_add(f.q, STR("a"));
    queue_finish(f.q, take_key(&f), outcome_done());
    EXPECT_EQ(queue_next_due(f.q), INT64_MAX); /* the retry is not left behind */
}

/* --- bounds --- */

TEST(queue_refuses_new_keys_when_full_but_never_those_inside)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ .keys_max = 2 });
    EXPECT_TRUE(queue_add(f.q, STR("a")));
    EXPECT_TRUE(queue_add_after(f.q, STR("b"), SECOND_NS));
    EXPECT_FALSE(queue_add(f.q, STR("c")));
    EXPECT_TRUE(queue_add(f.q, STR("b")));
    struct str a = take_key(&f);
    EXPECT_FALSE(queue_add(f.q, STR("c"))); /* a running key keeps its place, for it may retry */
    EXPECT_TRUE(queue_add(f.q, STR("a")));
    queue_finish(f.q, a, outcome_retry());
    EXPECT_EQ(queue_stats(f.q).refuse_count, 2);
    EXPECT_STR(next(&f), "b");
    EXPECT_TRUE(queue_add(f.q, STR("c")));
    EXPECT_STR(next(&f), "a");
    EXPECT_STR(next(&f), "c");
}

TEST(queue_statistics_tell_depth_ages_and_counts)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    queue_add(f.q, STR("a"));
    queue_add(f.q, STR("a"));
    virtual_clock_advance(f.clock, SECOND_NS);
    queue_add(f.q, STR("b"));
    queue_add_after(f.q, STR("c"), 5 * SECOND_NS);
    queue_add_after(f.q, STR("d"), 2 * SECOND_NS);
    virtual_clock_advance(f.clock, 3 * SECOND_NS);

    struct queue_stats s = queue_stats(f.q);
    EXPECT_EQ(s.add_count, 4);
    EXPECT_EQ(s.merge_count, 1);
    EXPECT_EQ(s.ready_count, 3); /* d came due */
    EXPECT_EQ(s.delayed_count, 1);
    EXPECT_EQ(s.oldest_ready_ns, 4 * SECOND_NS);

    struct str a = take_key(&f);
    virtual_clock_advance(f.clock, SECOND_NS);
    s = queue_stats(f.q);
    EXPECT_EQ(s.take_count, 1);
    EXPECT_EQ(s.running_count, 1);
    EXPECT_EQ(s.longest_running_ns, SECOND_NS);
    EXPECT_EQ(s.oldest_ready_ns, 4 * SECOND_NS); /* b */
    queue_finish(f.q, a, outcome_done());
}

/* --- shutting down --- */

TEST(queue_drain_hands_out_what_is_ready_and_drops_what_is_not)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    static const char *const keys[] = { "again", "retry", "requeue", "later", "ready" };
    for (size_t i = 0; i < KV_COUNT_OF(keys); i++)
        queue_add(f.q, str_of(keys[i]));
    struct str again = take_key(&f), retry = take_key(&f), requeue = take_key(&f);
    struct str later = take_key(&f);
    queue_add(f.q, again);
    queue_add_after(f.q, later, SECOND_NS);
    queue_add_after(f.q, STR("delayed"), SECOND_NS);

    queue_shutdown(f.q, QUEUE_DRAIN);
    EXPECT_FALSE(queue_add(f.q, STR("new")));
    EXPECT_FALSE(queue_add(f.q, retry));
    queue_finish(f.q, again, outcome_retry());
    queue_finish(f.q, retry, outcome_retry());
    queue_finish(f.q, requeue, outcome_requeue(0));
    queue_finish(f.q, later, outcome_done());
    EXPECT_STR(next(&f), "ready");
    EXPECT_STR(next(&f), "again");
    EXPECT_STR(next(&f), "-");
    EXPECT_EQ(queue_next_due(f.q), INT64_MAX);
    struct str key;
    EXPECT_FALSE(queue_take(f.q, &key)); /* does not wait */
}

TEST(queue_drop_hands_out_nothing_more)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    queue_add(f.q, STR("a"));
    queue_add(f.q, STR("b"));
    queue_add_after(f.q, STR("c"), SECOND_NS);
    struct str a = take_key(&f);
    queue_add(f.q, a);
    queue_shutdown(f.q, QUEUE_DRAIN);
    queue_shutdown(f.q, QUEUE_DROP);
    queue_shutdown(f.q, QUEUE_DRAIN); /* does not go back */
    EXPECT_STR(next(&f), "-");
    queue_finish(f.q, a, outcome_done());
    EXPECT_STR(next(&f), "-");
}

/* --- against a slow obvious queue --- */

enum { MODEL_KEYS = 24 };

struct model {
    struct {
        enum { ABSENT, READY, DELAYED, RUNNING } state;
        int64_t due_ns, again_ns;
        uint64_t sequence; /* of becoming delayed, or ready */
    } keys[MODEL_KEYS];
    uint64_t sequence;
    int64_t now_ns;
};

static void model_catch_up(struct model *m)
{
    for (;;) {
        int first = -1;
        for (int i = 0; i < MODEL_KEYS; i++) {
            if (m->keys[i].state != DELAYED || m->keys[i].due_ns > m->now_ns)
                continue;
            if (first < 0 || m->keys[i].due_ns < m->keys[first].due_ns ||
                (m->keys[i].due_ns == m->keys[first].due_ns &&
                 m->keys[i].sequence < m->keys[first].sequence))
                first = i;
        }
        if (first < 0)
            return;
        m->keys[first].state = READY;
        m->keys[first].sequence = m->sequence++;
    }
}

static void model_schedule(struct model *m, int key, int64_t due_ns)
{
    m->keys[key].state = due_ns <= m->now_ns ? READY : DELAYED;
    m->keys[key].due_ns = due_ns;
    m->keys[key].sequence = m->sequence++;
}

static void model_add(struct model *m, int key, int64_t delay_ns)
{
    int64_t due_ns = m->now_ns + delay_ns;
    model_catch_up(m);
    if (m->keys[key].state == ABSENT ||
        (m->keys[key].state == DELAYED && due_ns < m->keys[key].due_ns))
        model_schedule(m, key, due_ns);
    else if (m->keys[key].state == RUNNING && due_ns < m->keys[key].again_ns)
        m->keys[key].again_ns = due_ns;
}

static int model_take(struct model *m)
{
    int first = -1;
    model_catch_up(m);
    for (int i = 0; i < MODEL_KEYS; i++) {
        if (m->keys[i].state == READY &&
            (first < 0 || m->keys[i].sequence < m->keys[first].sequence))
            first = i;
    }
    if (first >= 0) {
        m->keys[first].state = RUNNING;
        m->keys[first].again_ns = INT64_MAX;
    }
    return first;
}

static void model_finish(struct model *m, int key, struct outcome outcome)
{
    int64_t due_ns = m->keys[key].again_ns;
    model_catch_up(m);
    if (outcome.kind == OUTCOME_REQUEUE && m->now_ns + outcome.after_ns < due_ns)
        due_ns = m->now_ns + outcome.after_ns;
    if (due_ns == INT64_MAX)
        m->keys[key].state = ABSENT;
    else
        model_schedule(m, key, due_ns);
}

static void run_against_model(uint64_t seed)
{
    struct rng rng;
    rng_init(&rng, seed);
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    struct model m = { 0 };
    struct str running[MODEL_KEYS] = { 0 };

    for (int step = 0; step < 400; step++) {
        int key = (int)rng_below(&rng, MODEL_KEYS);
        char name[2] = { (char)('a' + key), '\0' };
        int64_t amount = (int64_t)rng_below(&rng, rng_below(&rng, 2) ? 5 : 100);
        switch (rng_below(&rng, 8)) {
        case 0:
        case 4:
        case 5:
        case 6:
            queue_add_after(f.q, str_of(name), amount);
            model_add(&m, key, amount);
            break;
        case 1:
        case 2: {
            struct str got;
            int want = model_take(&m);
            EXPECT_EQ(queue_try_take(f.q, &got), want >= 0);
            if (want >= 0) {
                EXPECT_EQ(got.p[0], 'a' + want);
                running[want] = got;
            }
            break;
        }
        case 3: {
            struct outcome outcome = amount < 2 ? outcome_done() : outcome_requeue(amount - 2);
            if (running[key].p) {
                queue_finish(f.q, running[key], outcome);
                model_finish(&m, key, outcome);
                running[key] = STR_NONE;
            }
            break;
        }
        default:
            virtual_clock_advance(f.clock, amount / 4);
            m.now_ns += amount / 4;
        }
    }
    for (int i = 0; i < MODEL_KEYS; i++) {
        if (running[i].p)
            queue_finish(f.q, running[i], outcome_done());
    }
}

TEST(queue_behaves_as_a_slow_obvious_queue_does)
{
    const uint64_t seed_count = 500;
    for (uint64_t seed = 1; seed <= seed_count; seed++)
        run_against_model(seed);
    print_message("# seeds 1 to %llu\n", (unsigned long long)seed_count);
}

/* --- the simulator's loop --- */

struct trace {
    struct buf text;
    int runs;
};

static struct outcome trace_reconcile(void *ctx, struct str key)
{
    struct trace *t = ctx;
    buf_addf(&t->text, "%.*s ", STR_ARG(key));
    t->runs++;
    return t->runs < 4 ? outcome_requeue(SECOND_NS) : outcome_done();
}

TEST(queue_runs_to_the_end_in_virtual_time_on_one_thread)
{
    AUTO_FIXTURE f = fixture_new((struct queue_options){ 0 });
    struct trace t = { 0 };
    queue_add(f.q, STR("a"));
    queue_add_after(f.q, STR("b"), SECOND_NS / 2);
    int64_t due_ns;
    while ((due_ns = queue_next_due(f.q)) != INT64_MAX) {
        int64_t now_ns = clock_mono_ns(virtual_clock_port(f.clock));
        virtual_clock_advance(f.clock, due_ns > now_ns ? due_ns - now_ns : 0);
        EXPECT_TRUE(queue_run_one(f.q, trace_reconcile, &t));
    }
    EXPECT_FALSE(queue_run_one(f.q, trace_reconcile, &t));
    EXPECT_STR(buf_str(&t.text), "a b a b a ");
    EXPECT_EQ(clock_mono_ns(virtual_clock_port(f.clock)), 2 * SECOND_NS);
    buf_done(&t.text);
}
