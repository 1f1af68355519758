/* The thread and whoever asked share the lookup, and the last of the two frees it: a resolver that
 * hangs keeps only its own thread. */
#include "node/prober_lookup.h"

#include "base/thread.h"

#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct lookup {
    char *host;
    int ended; /* an eventfd */
    atomic_uint holders;
    atomic_int state; /* enum lookup_state; the address was written before */
    struct sockaddr_storage address;
};

static atomic_uint running;

static void release(struct lookup *lookup)
{
    if (atomic_fetch_sub(&lookup->holders, 1) != 1)
        return;
    close(lookup->ended);
    free(lookup->host);
    free(lookup);
}

static void *lookup_main(void *arg)
{
    struct lookup *lookup = arg;
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
    enum lookup_state state = LOOKUP_FAILED;
    if (getaddrinfo(lookup->host, NULL, &hints, &found) == 0 && found &&
        found->ai_addrlen <= sizeof lookup->address) {
        memcpy(&lookup->address, found->ai_addr, found->ai_addrlen);
        state = LOOKUP_FOUND;
    }
    if (found)
        freeaddrinfo(found);
    atomic_store(&lookup->state, state);
    eventfd_write(lookup->ended, 1);
    release(lookup);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

struct lookup *lookup_start(const char *host, struct err *err)
{
    if (atomic_fetch_add(&running, 1) >= LOOKUPS_MAX) {
        atomic_fetch_sub(&running, 1);
        err_set(err, ERR_UNAVAILABLE, "%s: %d other names are being looked up",
                STR_SHOWN(str_of(host)), LOOKUPS_MAX);
        return NULL;
    }
    struct lookup *lookup = kv_calloc(1, sizeof *lookup);
    lookup->host = str_dup(str_of(host));
    lookup->ended = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    atomic_init(&lookup->holders, 2);
    atomic_init(&lookup->state, LOOKUP_RUNS);
    pthread_t thread;
    if (lookup->ended < 0) {
        err_set(err, ERR_UNAVAILABLE, "no eventfd: %s", strerror(errno));
    } else if (thread_start(&thread, "lookup", lookup_main, lookup, err) == 0) {
        pthread_detach(thread);
        return lookup;
    }
    atomic_fetch_sub(&running, 1);
    atomic_store(&lookup->holders, 1);
    release(lookup);
    return NULL;
}

void lookup_free(struct lookup *lookup)
{
    if (lookup)
        release(lookup);
}

int lookup_fd(const struct lookup *lookup)
{
    return lookup->ended;
}

enum lookup_state lookup_take(struct lookup *lookup, struct sockaddr_storage *out)
{
    enum lookup_state state = (enum lookup_state)atomic_load(&lookup->state);
    if (state == LOOKUP_FOUND)
        *out = lookup->address;
    return state;
}
