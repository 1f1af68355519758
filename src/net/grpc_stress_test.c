/* Many threads, one client: whatever happens to the others, each call ends in one of the ways that
 * its own fate allows. Meant for the sanitizers. */
#include "net/grpc_testing.h"

#include "base/rng.h"

#include <stdatomic.h>

#define THREADS 16

struct crew {
    struct rig *rig;
    atomic_uint next_seed, ok_count, failed_count;
    atomic_bool over;
    bool faults; /* the server breaks now and then: ERR_UNAVAILABLE is fine */
    int rounds;
};

static void run_crew(struct crew *crew, void *(*main)(void *crew))
{
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS; i++)
        EXPECT_EQ(pthread_create(&threads[i], NULL, main, crew), 0);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static void *echo_main(void *arg)
{
    struct crew *crew = arg;
    struct rng rng;
    uint32_t seed = atomic_fetch_add(&crew->next_seed, 1);
    rng_init(&rng, seed);
    for (int i = 0; i < crew->rounds; i++) {
        char text[64];
        struct err err = { 0 };
        struct str reply;
        snprintf(text, sizeof text, "%u.%d", seed, i);
        bool corked = rng_below(&rng, 2);
        if (corked)
            grpc_cork(crew->rig->grpc);
        AUTO(grpc_call) call = rig_call(crew->rig, "/t/Echo", text);
        bool ok = (corked ? grpc_uncork_finish : grpc_finish)(call, &reply, &err) == 0;
        KV_ASSERT(!ok || str_eqz(reply, text)); /* mine, not another's */
        KV_ASSERT(ok || (crew->faults && err.kind == ERR_UNAVAILABLE));
        atomic_fetch_add(ok ? &crew->ok_count : &crew->failed_count, 1);
    }
    return NULL;
}

TEST(each_of_many_callers_gets_the_answer_to_its_own_call)
{
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ 0 }, (struct grpc_server_options){ .streams_max = 10 });
    struct crew crew = { .rig = rig, .rounds = 200 };
    run_crew(&crew, echo_main);
    EXPECT_EQ(crew.ok_count, THREADS * 200);
    EXPECT_EQ(grpc_server_connections(rig->server), 1);
}

TEST(handlers_in_threads_of_their_own_answer_as_well)
{
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ 0 }, (struct grpc_server_options){ .threaded = true });
    struct crew crew = { .rig = rig, .rounds = 20 };
    run_crew(&crew, echo_main);
    EXPECT_EQ(crew.ok_count, THREADS * 20);
}

static void *break_main(void *arg)
{
    struct crew *crew = arg;
    for (int i = 0; !atomic_load(&crew->over); i++) {
        poll(NULL, 0, 2);
        if (i % 8 == 7) {
            grpc_server_stop(crew->rig->server);
            grpc_server_start(crew->rig->server);
        } else if (i % 2) {
            grpc_server_drop_connections(crew->rig->server);
        } else {
            grpc_server_goaway(crew->rig->server);
        }
    }
    return NULL;
}

TEST(callers_of_a_server_that_breaks_fail_or_succeed_and_never_hang)
{
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ .backoff_min_ns = 1000000, .backoff_max_ns = 1000000 },
                     (struct grpc_server_options){ .streams_max = 10 });
    struct crew crew = { .rig = rig, .rounds = 300, .faults = true };
    pthread_t breaker;
    EXPECT_EQ(pthread_create(&breaker, NULL, break_main, &crew), 0);
    run_crew(&crew, echo_main);
    atomic_store(&crew.over, true);
    pthread_join(breaker, NULL);
    printf("# %u answered, %u failed\n", crew.ok_count, crew.failed_count);
    EXPECT_EQ(crew.ok_count + crew.failed_count, THREADS * 300);
    RIG_WAIT(rig_echo(rig, STR("x")).kind == ERR_NONE);
}

static void count_wake(void *ctx)
{
    atomic_fetch_add((atomic_uint *)ctx, 1);
}

static void *cancel_later(void *call)
{
    grpc_cancel(call);
    return NULL;
}

/* Every way to leave a call, at a random moment of its life. */
static void *leave_main(void *arg)
{
    struct crew *crew = arg;
    struct rng rng;
    rng_init(&rng, atomic_fetch_add(&crew->next_seed, 1));
    for (int i = 0; i < crew->rounds; i++) {
        struct err err = { 0 };
        struct str reply;
        atomic_uint wakes = 0;
        bool stream = rng_below(&rng, 2);
        struct grpc_call_options options = { .stream = stream };
        uint64_t way = rng_below(&rng, 4);
        if (way == 1)
            options.timeout_ns = 1 + (int64_t)rng_below(&rng, 2000000);
        if (rng_below(&rng, 2)) {
            options.wake = count_wake;
            options.ctx = &wakes;
        }
        AUTO(grpc_call) call =
            grpc_start(crew->rig->grpc, stream ? "/t/Many" : "/t/Echo", STR("30"), options);
        pthread_t thread;
        if (way == 0)
            continue; /* freed at once */
        if (way == 2)
            KV_ASSERT(pthread_create(&thread, NULL, cancel_later, call) == 0);
        int rc = 0, count = 0;
        if (stream)
            while ((rc = grpc_next(call, &reply, &err)) > 0)
                count++;
        else
            rc = grpc_finish(call, &reply, &err);
        KV_ASSERT(rc == 0 || err.kind == ERR_UNAVAILABLE || err.kind == ERR_CANCELLED);
        KV_ASSERT(rc < 0 || !stream || count == 30);
        KV_ASSERT(err.kind != ERR_CANCELLED || way == 2);
        KV_ASSERT(rc == 0 || crew->faults || way == 1 || way == 2);
        if (way == 2)
            pthread_join(thread, NULL);
    }
    return NULL;
}

TEST(calls_are_left_in_every_way_at_any_moment)
{
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ 0 }, (struct grpc_server_options){ .streams_max = 12 });
    EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_NONE);
    struct crew crew = { .rig = rig, .rounds = 150 };
    run_crew(&crew, leave_main);
    EXPECT_EQ(rig_echo(rig, STR("x")).kind, ERR_NONE);
    RIG_WAIT(grpc_server_streams(rig->server) == 0); /* nothing is left over */
    EXPECT_EQ(grpc_server_connections(rig->server), 1);
}

TEST(calls_are_left_in_every_way_while_the_server_breaks)
{
    AUTO(rig) rig =
        rig_new_with((struct grpc_options){ .backoff_min_ns = 1000000, .backoff_max_ns = 1000000 },
                     (struct grpc_server_options){ .streams_max = 12 });
    struct crew crew = { .rig = rig, .rounds = 150, .faults = true };
    pthread_t breaker;
    EXPECT_EQ(pthread_create(&breaker, NULL, break_main, &crew), 0);
    run_crew(&crew, leave_main);
    atomic_store(&crew.over, true);
    pthread_join(breaker, NULL);
    RIG_WAIT(rig_echo(rig, STR("x")).kind == ERR_NONE);
}
