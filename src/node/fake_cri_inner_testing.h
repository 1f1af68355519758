/* node/fake_cri_inner_testing.h - what the parts of the fake runtime share: fake_cri_testing.c has the
 * state, fake_cri_calls_testing.c answers the calls, fake_cri_server_testing.c is the server with
 * its faults and the events.
 */
#pragma once

#include "base/map.h"
#include "base/rng.h"
#include "net/grpc_server_testing.h"
#include "node/cri_inner.h"
#include "node/fake_cri_testing.h"

#include <pthread.h>

#define FAKE_EVENTS_KEPT 1000

struct fake_thing { /* a sandbox or a container; stays, with `removed`, when it is gone */
    const char *id;
    bool sandbox, removed, from_side;
    uint8_t state;             /* enum runtime_state; READY is running */
    struct fake_thing *parent; /* a container's sandbox */
    int64_t created_ns, started_ns, finished_ns;
    int32_t exit_code;
    const char *reason;
    uint32_t start_count;
    const char *ip, *second_ip;             /* of a sandbox; "": none */
    Cri__PodSandboxConfig *sandbox_config;  /* of a sandbox */
    Cri__ContainerConfig *container_config; /* of a container */
};

struct fake_answer {
    uint32_t status; /* 0: `bytes` */
    struct buf bytes;
    char message[256];
};

struct fake_waiting { /* a call whose answer is due later */
    struct fake_waiting *next;
    struct fake_fault fault;
    enum cri_method method;
    struct grpc_reply *reply;
    struct buf request;
    struct fake_answer answer;
    int64_t due_ns; /* real time; INT64_MAX: it hangs */
};

struct fake_texts { /* of encoded events */
    struct buf *items;
    uint32_t count;
};

struct fake_cri {
    struct fake_cri_options options;
    struct grpc_server *server; /* called without the mutex where it waits for its thread */
    char *path, *endpoint;
    pthread_mutex_t mutex; /* guards all below; held while answers and events are sent */
    pthread_cond_t wake;   /* of the thread that answers late */
    pthread_t thread;
    bool closing;
    struct arena arena; /* ids, configurations and other texts: until the end */
    struct fake_thing **things;
    uint32_t thing_count;
    struct str_table by_id;
    int64_t now_ns;
    struct str_table images;     /* name or id -> id */
    struct str_table exit_codes; /* container name -> 1 + code, as a pointer */
    intptr_t exit_code_of_all;   /* likewise; 0: they run */
    fake_exec_fn *exec;
    void *exec_ctx;
    uint64_t calls[CRI_METHOD_COUNT];
    struct fake_fault *faults;
    uint32_t fault_count;
    struct fake_waiting *waiting;
    struct grpc_reply **listeners;
    uint32_t listener_count;
    bool holding;
    struct fake_event_faults event_faults;
    struct rng rng;
    struct fake_texts sent, held, unheard;
};

/* All with the mutex held. */
int64_t fake_tick(struct fake_cri *fake);
char *fake_text(struct fake_cri *fake, const char *text); /* a copy that stays */
struct fake_thing *fake_lookup(struct fake_cri *fake,
                               const char *id); /* NULL: gone, or never was */
struct fake_thing *fake_add(struct fake_cri *fake, bool sandbox);
void fake_event(struct fake_cri *fake, const struct fake_thing *thing,
                Cri__ContainerEventType type);
void fake_start(struct fake_cri *fake, struct fake_thing *container);
void fake_exit(struct fake_cri *fake, struct fake_thing *container, int32_t code,
               const char *reason);
void fake_stop_sandbox(struct fake_cri *fake, struct fake_thing *sandbox);
void fake_remove(struct fake_cri *fake, struct fake_thing *thing);
const char *fake_image(struct fake_cri *fake, const char *name); /* adds it; its id */

/* Decode a request of the method, which lives in `arena`; NULL: it is none. */
void *fake_request(enum cri_method method, struct str bytes, struct arena *arena);
/* Does it name this container, sandbox, image, pod uid or container name? */
bool fake_request_names(enum cri_method method, const void *request, const char *id);
void fake_carry_out(struct fake_cri *fake, enum cri_method method, struct str request,
                    struct fake_answer *answer);
/* The statuses as the calls and the events tell them. */
Cri__PodSandboxStatus *fake_sandbox_status(struct arena *arena, const struct fake_thing *sandbox);
Cri__ContainerStatus *fake_container_status(struct arena *arena, const struct fake_thing *c);
