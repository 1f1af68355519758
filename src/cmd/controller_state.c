/* The embedded store in a file, so that a restart goes on where the last one ended. */
#include "cmd/controller_inner.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

static int write_all(int fd, const struct buf *text)
{
    for (size_t at = 0; at < text->len;) {
        ssize_t n = write(fd, text->p + at, text->len - at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return -1;
        at += (size_t)n;
    }
    return fsync(fd);
}

int state_save(struct embedded *e, const char *path, struct err *err)
{
    AUTO_BUF text = { 0 }, fresh = { 0 };
    embedded_dump(e, &text);
    buf_addf(&fresh, "%s.new", path);
    int fd = open(fresh.p, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, ERR_UNAVAILABLE, "%s: %m", fresh.p);
    int rc = write_all(fd, &text);
    if (close(fd) < 0 || rc < 0 || rename(fresh.p, path) < 0) {
        err_set(err, ERR_UNAVAILABLE, "%s: %m", path);
        unlink(fresh.p);
        return -1;
    }
    return 0;
}

int state_load(struct embedded *e, const char *path, bool *found, struct err *err)
{
    AUTO_BUF text = { 0 };
    struct embedded_loaded loaded;
    *found = false;
    if (file_read(path, STATE_BYTES_MAX, &text, err) < 0)
        return err->kind == ERR_NOT_FOUND ? 0 : -1;
    if (embedded_load(e, buf_str(&text), &loaded, err) < 0)
        return err_wrap(err, "%s", path);
    *found = loaded.object_count > 0;
    return 0;
}
