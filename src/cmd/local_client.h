/* cmd/local_client.h - asking the agent of this node, once or for as long as somebody looks. */
#pragma once

#include "cmd/command.h"
#include "cmd/local_api.h"

#define LOCAL_CLIENT_FLAGS                                                                         \
    {                                                                                              \
        .name = "socket", .value = "unix://PATH", .help = "the local API's socket",                \
        .dflt = LOCAL_API_DEFAULT                                                                  \
    }

struct local_client {
    const char *command; /* for messages */
    struct buf path;     /* of the socket */
};

/* Gives an exit code; what is wrong has been said. */
int local_client_init(struct local_client *client, const struct invocation *inv);
void local_client_done(struct local_client *client);

/* The whole answer. An answer that is no success is an error as well. */
int local_client_get(const struct local_client *client, const char *target, struct buf *out,
                     struct err *err);
/* Says what the error means for the user; gives EXIT_ENVIRONMENT. */
int local_client_complain(const struct local_client *client, const struct err *err);

struct local_follower {
    const char *target; /* a stream of lines */
    /* Whole lines, one or more. Nothing: it has been silent for a second. False: that is enough. */
    bool (*lines)(void *ctx, struct str lines);
    /* The agent has gone away, or is back. */
    void (*away)(void *ctx, bool gone);
    void *ctx;
};

/* Until it is enough or the user ends it (SIGINT, SIGTERM), over restarts of the agent. Gives an exit code:
 * EXIT_ENVIRONMENT, which has been explained, if there is no agent to begin with. */
int local_client_follow(const struct local_client *client, struct local_follower follower);
