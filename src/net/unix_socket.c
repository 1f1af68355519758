#include "net/unix_socket.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

static int address_of(const char *path, struct sockaddr_un *out, struct err *err)
{
    *out = (struct sockaddr_un){ .sun_family = AF_UNIX };
    size_t len = strlen(path);
    if (len == 0)
        return err_set(err, ERR_INVALID, "the path of a socket is empty");
    if (len >= sizeof out->sun_path)
        return err_set(err, ERR_INVALID, "the path %s is longer than the %zu bytes of a socket's",
                       STR_SHOWN(str_of(path)), sizeof out->sun_path - 1);
    memcpy(out->sun_path, path, len);
    return 0;
}

static int open_stream(int *fd, struct err *err)
{
    *fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (*fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "open a socket: %s", strerror(errno));
    return 0;
}

static enum err_kind kind_of(int problem)
{
    switch (problem) {
    case EACCES:
    case EPERM:
    case EROFS:
        return ERR_DENIED;
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case ENAMETOOLONG:
    case ENOTSOCK:
    case EPROTOTYPE: /* a socket, but of datagrams */
        return ERR_INVALID;
    default:
        return ERR_UNAVAILABLE;
    }
}

/* --- listening --- */

/* Does the path lead to a socket that nobody listens on? */
static int expect_stale(const char *path, const struct sockaddr_un *address, struct err *err)
{
    struct stat file;
    if (lstat(path, &file) == 0 && !S_ISSOCK(file.st_mode))
        return err_set(err, ERR_INVALID, "%s is there and is no socket", STR_SHOWN(str_of(path)));
    int fd;
    if (open_stream(&fd, err) < 0)
        return -1;
    /* A listener that has no time for us is one: no waiting in its queue. */
    struct timeval soon = { .tv_usec = 1 };
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &soon, sizeof soon);
    int problem = connect(fd, (const struct sockaddr *)address, sizeof *address) == 0 ? 0 : errno;
    close(fd);
    if (problem == ECONNREFUSED || problem == ENOENT)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "%s is in use", STR_SHOWN(str_of(path)));
}

static int bind_and_listen(const char *path, const struct sockaddr_un *address, int fd,
                           struct err *err)
{
    /* The file gets the mode of the socket itself, less the umask: so it is never another one. */
    bool ok = fchmod(fd, 0600) == 0;
    ok = ok && bind(fd, (const struct sockaddr *)address, sizeof *address) == 0;
    if (!ok && errno == EADDRINUSE) {
        if (expect_stale(path, address, err) < 0)
            return -1;
        unlink(path);
        ok = bind(fd, (const struct sockaddr *)address, sizeof *address) == 0;
    }
    ok = ok && listen(fd, SOMAXCONN) == 0;
    if (ok)
        return 0;
    int problem = errno;
    return err_set(err, kind_of(problem), "listen on %s: %s", STR_SHOWN(str_of(path)),
                   strerror(problem));
}

int unix_listen(const char *path, struct unix_socket *out, int *fd, struct err *err)
{
    struct sockaddr_un address;
    struct stat file = { 0 };
    if (address_of(path, &address, err) < 0 || open_stream(fd, err) < 0)
        return -1;
    if (bind_and_listen(path, &address, *fd, err) < 0) {
        close(*fd);
        return -1;
    }
    lstat(path, &file);
    *out = (struct unix_socket){ kv_strdup(path), file.st_dev, file.st_ino };
    return 0;
}

void unix_socket_remove(struct unix_socket *socket)
{
    struct stat file;
    if (!socket->path)
        return;
    if (lstat(socket->path, &file) == 0 && file.st_dev == socket->device &&
        file.st_ino == socket->inode)
        unlink(socket->path);
    free(socket->path);
    *socket = (struct unix_socket){ 0 };
}

/* --- connecting --- */

int unix_connect(const char *path, int64_t timeout_ns, int *fd, struct err *err)
{
    struct sockaddr_un address;
    if (address_of(path, &address, err) < 0 || open_stream(fd, err) < 0)
        return -1;
    struct timeval limit = { .tv_sec = timeout_ns / 1000000000,
                             .tv_usec = timeout_ns % 1000000000 / 1000 };
    setsockopt(*fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit); /* also of a connect */
    if (connect(*fd, (const struct sockaddr *)&address, sizeof address) == 0)
        return 0;
    int problem = errno;
    close(*fd);
    enum err_kind kind = problem == ENOENT || problem == ENOTDIR ? ERR_NOT_FOUND : kind_of(problem);
    return err_set(err, kind, "connect to %s: %s", STR_SHOWN(str_of(path)),
                   problem == EAGAIN ? "no answer in time" : strerror(problem));
}
