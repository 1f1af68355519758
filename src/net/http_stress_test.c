/* Many threads, calls of every kind, servers that fail: what is freed is never woken again, every call
 * ends in one of the ways it may, and nothing stays behind. */
#include "net/http.h"

#include "base/rng.h"
#include "base/thread.h"
#include "net/http_peer_testing.h"
#include "net/http_testing.h"

#include <stdatomic.h>
#include <time.h>

#define THREADS 4
#define CALLS 150

struct ground {
    struct http *http;
    struct http_peer *peers[2]; /* HTTP/1.1 and HTTP/2 */
    struct http_tls tls;
    atomic_bool done;
    atomic_uint finished, failed;
};

struct owner { /* of one call */
    atomic_bool freed;
    atomic_uint wakes;
};

struct worker {
    struct ground *ground;
    pthread_t thread;
    uint64_t seed;
    struct owner owners[CALLS];
};

static void on_wake(void *ctx)
{
    struct owner *owner = ctx;
    KV_ASSERT(!atomic_load(&owner->freed));
    atomic_fetch_add(&owner->wakes, 1);
}

static void check_kind(const struct err *err)
{
    KV_ASSERT(err->kind == ERR_UNAVAILABLE || err->kind == ERR_CANCELLED ||
              err->kind == ERR_CAPACITY);
}

static void *cancel(void *call)
{
    http_cancel(call);
    return NULL;
}

static void use(struct ground *ground, struct http_call *call, bool stream, struct rng *rng)
{
    struct http_reply reply;
    struct err err = { 0 };
    AUTO_BUF out = { 0 };
    pthread_t canceller;
    bool cancels = rng_below(rng, 4) == 0;
    if (cancels)
        KV_ASSERT(thread_start(&canceller, "cancel", cancel, call, NULL) == 0);
    if (!stream && rng_below(rng, 2) == 0) {
        int rc = http_finish(call, &reply, &err);
        atomic_fetch_add(rc == 0 ? &ground->finished : &ground->failed, 1);
        if (rc < 0)
            check_kind(&err);
        else
            KV_ASSERT(reply.status == 200);
    }
    for (uint32_t i = 0, n = (uint32_t)rng_below(rng, 20); stream && i < n; i++) {
        enum http_took took = http_take(call, &out, &err);
        if (took == HTTP_FAILED)
            check_kind(&err);
        if (rng_below(rng, 2))
            buf_clear(&out);
    }
    if (cancels)
        pthread_join(canceller, NULL);
}

static void *work(void *arg)
{
    static const char *const paths[] = { "/echo", "/stream", "/hold", "/big/70000" };
    struct worker *worker = arg;
    struct ground *ground = worker->ground;
    struct rng rng;
    rng_init(&rng, worker->seed);
    for (size_t i = 0; i < CALLS; i++) {
        struct owner *owner = &worker->owners[i];
        size_t server = rng_below(&rng, 2);
        const char *path = paths[rng_below(&rng, KV_COUNT_OF(paths))];
        bool stream = rng_below(&rng, 2) == 0 || strcmp(path, "/stream") == 0;
        struct http_call *call = http_start(
            ground->http,
            &(struct http_request){
                .method = rng_below(&rng, 2) ? "GET" : "POST",
                .url = URL(server ? "https" : "http", http_peer_port(ground->peers[server]), path),
                .body = rng_below(&rng, 2) ? STR("some body") : STR_NONE,
                .timeout_ns = rng_below(&rng, 3) ? 300000000 : 2000000,
                .idle_timeout_ns = rng_below(&rng, 2) ? 1000000 : 0,
                .stream_bytes_max = rng_below(&rng, 2) ? 100 : 0,
                .stream = stream,
                .wake = on_wake,
                .ctx = owner,
            });
        use(ground, call, stream, &rng);
        http_call_free(call);
        atomic_store(&owner->freed, true);
    }
    return NULL;
}

static void *disturb(void *arg)
{
    struct ground *ground = arg;
    struct rng rng;
    rng_init(&rng, 7);
    while (!atomic_load(&ground->done)) {
        struct http_peer *peer = ground->peers[rng_below(&rng, 2)];
        switch (rng_below(&rng, 6)) {
        case 0:
            http_peer_finish(peer);
            break;
        case 1:
            http_peer_reset(peer);
            break;
        case 2:
            http_peer_goaway(peer);
            break;
        case 3:
            http_peer_cut(peer);
            break;
        case 4:
            KV_ASSERT(http_set_tls(ground->http, ground->tls, NULL) == 0);
            break;
        default:
            http_peer_push(peer, STR("something to read\n"));
        }
        usleep(2000);
    }
    http_peer_finish(ground->peers[0]);
    http_peer_finish(ground->peers[1]);
    return NULL;
}

TEST(calls_end_and_nothing_is_woken_after_it_was_freed)
{
    AUTO(cert) ca = cert_new((struct cert_options){ .name = "ca", .authority = true });
    AUTO(cert) server =
        cert_new((struct cert_options){ .name = "server", .loopback = true, .issuer = ca });
    AUTO(http_peer) plain = http_peer_new((struct http_peer_options){ 0 });
    AUTO(http_peer)
    secure = http_peer_new((struct http_peer_options){ .http2 = true, .cert = server });
    struct ground ground = { .peers = { plain, secure }, .tls.ca_pem = ca->cert_pem };
    const char *given = getenv("KARVE_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    pthread_t disturber;
    struct worker *workers = kv_calloc(THREADS, sizeof *workers);

    print_message("# KARVE_SEED=%llu\n", (unsigned long long)seed);
    ground.http = client_new((struct http_options){ .tls = ground.tls, .connections_max = 8 });
    EXPECT_EQ(thread_start(&disturber, "disturb", disturb, &ground, NULL), 0);
    for (size_t i = 0; i < THREADS; i++) {
        workers[i].ground = &ground;
        workers[i].seed = seed * 1000 + i;
        EXPECT_EQ(thread_start(&workers[i].thread, "work", work, &workers[i], NULL), 0);
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    atomic_store(&ground.done, true);
    pthread_join(disturber, NULL);
    print_message("# %u replies, %u failures\n", atomic_load(&ground.finished),
                  atomic_load(&ground.failed));
    EXPECT_TRUE(atomic_load(&ground.finished) > 0);
    http_free(ground.http);
    WAIT_UNTIL(http_peer_waiting(secure) == 0);
    free(workers);
}
