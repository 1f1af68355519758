/* net/unix_socket.h - listening on a socket in the file system, and connecting to one. */
#pragma once

#include "base/err.h"

#include <sys/types.h>

/* The file of a socket that this process listens on. Zero-initialised is none. */
struct unix_socket {
    char *path;
    dev_t device;
    ino_t inode;
};

/* A socket that only its own user may connect to: mode 0600 from the moment that it can be seen. A file
 * left by a process that has died is replaced. ERR_INVALID: the path is no place for a socket, or
 * something else is there. ERR_DENIED: the folder is not ours to write. ERR_UNAVAILABLE: in use. */
int unix_listen(const char *path, struct unix_socket *out, int *fd, struct err *err);
/* Removes the file, unless somebody has put another in its place. */
void unix_socket_remove(struct unix_socket *socket);

/* ERR_NOT_FOUND: no such socket. ERR_DENIED: not allowed to. ERR_UNAVAILABLE: nobody listens, or it did
 * not answer within timeout_ns (0: no limit). ERR_INVALID: no path of a socket. */
int unix_connect(const char *path, int64_t timeout_ns, int *fd, struct err *err);
