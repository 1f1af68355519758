/* node/runtime_testing.h - what a runtime shows of a pod, for tests, in a line each.
 *
 *     AUTO_STATUS seen = runtime_made("uid-web", a_sandbox("s1"),
 *                                     a_container("app", RUNTIME_EXITED, .exit_code = 1, .restarts = 2),
 *                                     a_container("app", RUNTIME_EXITED, .restarts = 1));
 *     AUTO_STATUS none = runtime_empty("uid-web");
 *
 * Sandboxes and containers are given newest first, as a status has them; times follow from that: the
 * first thing was made at RUNTIME_MADE_S, the one after it 10 s earlier, and so on; what ran was started 1 s
 * after it was made and finished after 4 s more. What is not said is the usual: see the fields.
 */
#pragma once

#include "node/runtime.h"

#define RUNTIME_MADE_S ((int64_t)1800000000) /* 2027-01-15T08:00:00Z */
#define RUNTIME_MADE_IP "10.88.0.7"

struct made {
    const char *sandbox;   /* its id; NULL: this is a container */
    const char *container; /* its name */
    const char *id;        /* of a container; NULL: "NAME-RESTARTS" */

    /* of a sandbox */
    bool not_ready, host_network;
    const char *ips; /* separated by blanks; NULL: RUNTIME_MADE_IP, or none with host_network */
    uint32_t attempt;

    /* of a container */
    enum runtime_state state;
    const char *in; /* the id of its sandbox; NULL: the first one given */
    int exit_code;
    uint32_t restarts;
    const char *hash;            /* NULL: none, as of a container that is not ours */
    const char *reason;          /* NULL: by the exit code, as containerd has it */
    const char *message, *image; /* NULL: "", "registry.example/NAME:1" */
};

#define a_sandbox(id_, ...) ((struct made){ .sandbox = (id_), ##__VA_ARGS__ })
#define a_container(name_, state_, ...)                                                            \
    ((struct made){ .container = (name_), .state = (state_), ##__VA_ARGS__ })

static inline struct str made_text(struct arena *arena, const char *maybe_text,
                                   const char *otherwise)
{
    return arena_str(arena, str_of(maybe_text ? maybe_text : otherwise));
}

static inline struct str_list made_ips(struct arena *arena, const struct made *m)
{
    struct str rest = str_of(m->ips ? m->ips : m->host_network ? "" : RUNTIME_MADE_IP);
    struct str *ips = arena_array(arena, struct str, rest.len + 1);
    uint32_t count = 0;
    while (rest.len) {
        struct str ip, tail = STR("");
        str_cut(rest, ' ', &ip, &tail);
        ips[count++] = arena_str(arena, ip);
        rest = tail;
    }
    return (struct str_list){ ips, count };
}

static inline struct runtime_container made_container(struct arena *arena, const struct made *m,
                                                      struct str sandbox_id, int64_t created_ns)
{
    bool ran = m->state == RUNTIME_RUNNING || m->state == RUNTIME_EXITED;
    bool ended = m->state == RUNTIME_EXITED;
    const char *reason = !ended ? "" : m->exit_code ? "Error" : "Completed";
    return (struct runtime_container){
        .id = m->id ? made_text(arena, m->id, "")
                    : arena_strf(arena, "%s-%u", m->container, m->restarts),
        .name = made_text(arena, m->container, ""),
        .sandbox_id = m->in ? made_text(arena, m->in, "") : sandbox_id,
        .state = (uint8_t)m->state,
        .created_ns = created_ns,
        .started_ns = ran ? created_ns + 1000000000 : 0,
        .finished_ns = ended ? created_ns + (int64_t)5 * 1000000000 : 0,
        .exit_code = m->exit_code,
        .restart_count = m->restarts,
        .image = m->image ? made_text(arena, m->image, "")
                          : arena_strf(arena, "registry.example/%s:1", m->container),
        .image_ref = arena_strf(arena, "registry.example/%s@sha256:0123", m->container),
        .hash = made_text(arena, m->hash, ""),
        .reason = made_text(arena, m->reason, reason),
        .message = made_text(arena, m->message, ""),
        .termination_grace_s = -1,
        .deletion_grace_s = -1,
    };
}

/* One reference, the caller's. Its own IPs are the newest sandbox's. */
static inline const struct runtime_status *runtime_make(const char *uid, const struct made *items,
                                                        size_t count)
{
    struct runtime_status *status = runtime_status_new(str_of(uid));
    struct arena *arena = &status->arena;
    struct runtime_sandbox *sandboxes = arena_array(arena, struct runtime_sandbox, count + 1);
    struct runtime_container *containers = arena_array(arena, struct runtime_container, count + 1);
    uint32_t sandbox_count = 0, container_count = 0;
    status->name = STR("pod");
    status->namespace_ = STR("default");
    status->timestamp_ns = 1;
    for (size_t i = 0; i < count; i++) {
        int64_t created_ns = (RUNTIME_MADE_S - 10 * (int64_t)i) * 1000000000;
        if (items[i].sandbox)
            sandboxes[sandbox_count++] = (struct runtime_sandbox){
                .id = made_text(arena, items[i].sandbox, ""),
                .attempt = items[i].attempt,
                .ready = !items[i].not_ready,
                .host_network = items[i].host_network,
                .created_ns = created_ns,
                .ips = made_ips(arena, &items[i]),
            };
    }
    struct str newest = sandbox_count ? sandboxes[0].id : STR("");
    for (size_t i = 0; i < count; i++) {
        int64_t created_ns = (RUNTIME_MADE_S - 10 * (int64_t)i) * 1000000000;
        if (!items[i].sandbox)
            containers[container_count++] = made_container(arena, &items[i], newest, created_ns);
    }
    status->sandboxes.items = sandboxes;
    status->sandboxes.count = sandbox_count;
    status->containers.items = containers;
    status->containers.count = container_count;
    if (sandbox_count)
        status->ips = sandboxes[0].ips;
    return status;
}

#define runtime_made(uid_, ...)                                                                    \
    runtime_make((uid_), (const struct made[]){ __VA_ARGS__ },                                     \
                 sizeof((const struct made[]){ __VA_ARGS__ }) / sizeof(struct made))
#define runtime_empty(uid_) runtime_make((uid_), NULL, 0)
