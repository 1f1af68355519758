/* See proxy.h. A connection is a pair of sockets and a portion of bytes for each direction: a side is
 * read when its portion is empty, and the other side written when the portion is due. A delay
 * therefore also limits how much passes, as a far server would. */
#include "kube/proxy.h"

#include "base/clock.h"
#include "base/rng.h"
#include "base/thread.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTION_BYTES 65536
#define CONNECTIONS_MAX 256 /* further ones wait in the backlog */

struct portion {
    char bytes[PORTION_BYTES];
    size_t from, to; /* what is still to be written; equal: none */
    int64_t due_ns;
    bool ended;   /* the reader's side said its last */
    bool told_it; /* and so was the writer's */
};

struct connection {
    int fds[2];             /* the client's, the server's */
    struct portion ways[2]; /* from fds[0] to fds[1], and back */
};

struct proxy {
    int listener, wake;
    uint16_t port, to_port;
    pthread_t thread;
    struct rng rng; /* the thread's */

    pthread_mutex_t
        lock; /* guards the rest; held while connections are served, never while waiting */
    struct proxy_faults faults;
    bool ending;
    struct connection *connections[CONNECTIONS_MAX];
    uint32_t count;
    uint64_t accepted_count, passed_bytes;
};

static void reset(int fd) /* close with an RST, as a crash or a firewall does */
{
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){ .l_onoff = 1 }, sizeof(struct linger));
    close(fd);
}

static void drop(struct proxy *p, uint32_t i)
{
    reset(p->connections[i]->fds[0]);
    reset(p->connections[i]->fds[1]);
    free(p->connections[i]);
    p->connections[i] = p->connections[--p->count];
}

static void finish(struct proxy *p, uint32_t i) /* both sides have ended well */
{
    close(p->connections[i]->fds[0]);
    close(p->connections[i]->fds[1]);
    free(p->connections[i]);
    p->connections[i] = p->connections[--p->count];
}

static int dial(uint16_t port) /* loopback answers at once, or not at all */
{
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_port = htons(port),
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    if (fd < 0)
        return -1;
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        close(fd);
        return -1;
    }
    fcntl(fd, F_SETFL, O_NONBLOCK);
    return fd;
}

static void take_connection(struct proxy *p)
{
    int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    p->accepted_count++;
    int server = p->faults.refuse ? -1 : dial(p->to_port);
    if (server < 0) {
        reset(client);
        return;
    }
    int yes = 1;
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
    struct connection *c = kv_calloc(1, sizeof *c);
    c->fds[0] = client;
    c->fds[1] = server;
    p->connections[p->count++] = c;
}

static bool lost(ssize_t n)
{
    return n < 0 && errno != EAGAIN && errno != EINTR;
}

/* Read and write what can be now. False: the connection broke, or is to break. */
static bool serve_way(struct proxy *p, struct portion *way, int in, int out, int64_t now)
{
    if (way->from == way->to && !way->ended) {
        ssize_t n = recv(in, way->bytes, sizeof way->bytes, 0);
        if (lost(n))
            return false;
        if (n > 0) {
            way->from = 0;
            way->to = (size_t)n;
            way->due_ns = now + p->faults.delay_ns;
            if (p->faults.cut_one_in && rng_below(&p->rng, p->faults.cut_one_in) == 0)
                return false;
        }
        way->ended = n == 0;
    }
    if (way->from < way->to && now >= way->due_ns) {
        ssize_t n = send(out, way->bytes + way->from, way->to - way->from, MSG_NOSIGNAL);
        if (lost(n))
            return false;
        way->from += n > 0 ? (size_t)n : 0;
        p->passed_bytes += n > 0 ? (uint64_t)n : 0;
    }
    if (way->ended && way->from == way->to && !way->told_it) {
        way->told_it = true;
        shutdown(out, SHUT_WR);
    }
    return true;
}

/* What each socket waits for, and how long at most. Returns the poll timeout in milliseconds. */
static int plan_waiting(struct proxy *p, struct pollfd *polls, int64_t now)
{
    int timeout = -1;
    polls[0] = (struct pollfd){ .fd = p->wake, .events = POLLIN };
    polls[1] =
        (struct pollfd){ .fd = p->count < CONNECTIONS_MAX ? p->listener : -1, .events = POLLIN };
    for (uint32_t i = 0; i < p->count; i++) {
        struct connection *c = p->connections[i];
        for (int side = 0; side < 2; side++) {
            const struct portion *from = &c->ways[side], *to = &c->ways[1 - side];
            short events = 0;
            if (from->from == from->to && !from->ended)
                events |= POLLIN;
            if (to->from < to->to && now >= to->due_ns)
                events |= POLLOUT;
            if (to->from < to->to && now < to->due_ns) {
                int ms = (int)((to->due_ns - now) / 1000000 + 1);
                timeout = timeout < 0 || ms < timeout ? ms : timeout;
            }
            /* Without events a broken socket would still be reported, again and again. */
            bool idle = p->faults.stall || events == 0;
            polls[2 + 2 * i + (uint32_t)side] =
                (struct pollfd){ .fd = idle ? -1 : c->fds[side], .events = events };
        }
    }
    return timeout;
}

static void serve(struct proxy *p)
{
    int64_t now = clock_mono_ns(clock_real());
    for (uint32_t i = p->count; i-- > 0 && !p->faults.stall;) {
        struct connection *c = p->connections[i];
        if (!serve_way(p, &c->ways[0], c->fds[0], c->fds[1], now) ||
            !serve_way(p, &c->ways[1], c->fds[1], c->fds[0], now))
            drop(p, i);
        else if (c->ways[0].told_it && c->ways[1].told_it)
            finish(p, i);
    }
}

static void *proxy_main(void *arg)
{
    struct proxy *p = arg;
    struct pollfd *polls = kv_calloc(2 + 2 * CONNECTIONS_MAX, sizeof *polls);
    for (;;) {
        pthread_mutex_lock(&p->lock);
        bool ending = p->ending;
        int timeout = plan_waiting(p, polls, clock_mono_ns(clock_real()));
        nfds_t count = 2 + 2 * p->count;
        pthread_mutex_unlock(&p->lock);
        if (ending)
            break;

        poll(polls, count, timeout);

        pthread_mutex_lock(&p->lock);
        uint64_t ignored;
        if (polls[0].revents)
            (void)!read(p->wake, &ignored, sizeof ignored);
        serve(p);
        if (polls[1].revents)
            take_connection(p);
        pthread_mutex_unlock(&p->lock);
    }
    free(polls);
    return NULL;
}

/* --- for the tests --- */

static void wake(struct proxy *p)
{
    (void)!write(p->wake, &(uint64_t){ 1 }, sizeof(uint64_t));
}

struct proxy *proxy_start(uint16_t to_port, uint64_t seed)
{
    struct proxy *p = kv_calloc(1, sizeof *p);
    struct sockaddr_in address = { .sin_family = AF_INET,
                                   .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    socklen_t len = sizeof address;
    struct err err;
    p->to_port = to_port;
    rng_init(&p->rng, seed);
    pthread_mutex_init(&p->lock, NULL);
    p->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT_TRUE(p->wake >= 0 && p->listener >= 0);
    if (bind(p->listener, (struct sockaddr *)&address, len) < 0 || listen(p->listener, 128) < 0 ||
        getsockname(p->listener, (struct sockaddr *)&address, &len) < 0)
        fail_msg("proxy: %s", strerror(errno));
    p->port = ntohs(address.sin_port);
    EXPECT_OK(thread_start(&p->thread, "proxy", proxy_main, p, &err), err);
    return p;
}

void proxy_free(struct proxy *p)
{
    if (!p)
        return;
    pthread_mutex_lock(&p->lock);
    p->ending = true;
    pthread_mutex_unlock(&p->lock);
    wake(p);
    pthread_join(p->thread, NULL);
    while (p->count > 0)
        drop(p, p->count - 1);
    close(p->listener);
    close(p->wake);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

uint16_t proxy_port(const struct proxy *p)
{
    return p->port;
}

void proxy_set(struct proxy *p, struct proxy_faults faults)
{
    pthread_mutex_lock(&p->lock);
    p->faults = faults;
    pthread_mutex_unlock(&p->lock);
    wake(p);
}

void proxy_cut(struct proxy *p)
{
    pthread_mutex_lock(&p->lock);
    while (p->count > 0)
        drop(p, p->count - 1);
    pthread_mutex_unlock(&p->lock);
    wake(p); /* it may be waiting for sockets that are closed now */
}

uint32_t proxy_open_count(struct proxy *p)
{
    pthread_mutex_lock(&p->lock);
    uint32_t count = p->count;
    pthread_mutex_unlock(&p->lock);
    return count;
}

uint64_t proxy_accepted_count(struct proxy *p)
{
    pthread_mutex_lock(&p->lock);
    uint64_t count = p->accepted_count;
    pthread_mutex_unlock(&p->lock);
    return count;
}

uint64_t proxy_passed_bytes(struct proxy *p)
{
    pthread_mutex_lock(&p->lock);
    uint64_t bytes = p->passed_bytes;
    pthread_mutex_unlock(&p->lock);
    return bytes;
}
