/* Removing a tree that a container has written: it may be as deep as the disk is large, so neither
 * the stack nor the number of open files may follow it. Below TREE_DEPTH_MAX a folder is moved up,
 * next to the root of the tree, and its turn comes there. Each folder is opened from its parent and
 * without following links, and must be on the parent's filesystem: what is still mounted is left
 * alone.
 */
#include "node/host_files.h"

#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define TREE_DEPTH_MAX 16
#define MOUNTS_MAX 100000

/* --- names --- */

bool host_name_ok(struct str name)
{
    return name.len > 0 && name.len <= HOST_NAME_BYTES_MAX && !str_eq(name, STR(".")) &&
           !str_eq(name, STR("..")) && !memchr(name.p, '/', name.len) &&
           !memchr(name.p, '\0', name.len);
}

int host_name_check(struct str name, const char *what, struct err *err)
{
    if (host_name_ok(name))
        return 0;
    return err_set(err, ERR_INVALID, "%s %s: this cannot be the name of a file", what,
                   STR_SHOWN(name));
}

bool host_path_inside(struct str path)
{
    if (path.len > HOST_PATH_BYTES_MAX)
        return false;
    struct str name, rest = path;
    bool more;
    do {
        more = str_cut(rest, '/', &name, &rest);
        if (!host_name_ok(name))
            return false;
    } while (more);
    return true;
}

bool host_path_absolute(struct str path)
{
    if (path.len == 0 || path.p[0] != '/' || path.len > HOST_PATH_BYTES_MAX ||
        memchr(path.p, '\0', path.len))
        return false;
    struct str name, rest = path;
    bool more;
    do {
        more = str_cut(rest, '/', &name, &rest);
        if (str_eq(name, STR("..")) || name.len > HOST_NAME_BYTES_MAX)
            return false;
    } while (more);
    return true;
}

int host_fail(struct err *err, int number, const char *doing, const char *path)
{
    enum err_kind kind = ERR_UNAVAILABLE;
    if (number == ENOENT)
        kind = ERR_NOT_FOUND;
    else if (number == EPERM || number == EACCES)
        kind = ERR_DENIED;
    else if (number == ENAMETOOLONG)
        kind = ERR_INVALID;
    return err_set(err, kind, "%s %s: %s", doing, path, strerror(number));
}

/* --- folders and files --- */

int host_folder_make(const char *path, mode_t mode, struct err *err)
{
    if (path[0] != '/')
        return err_set(err, ERR_INVALID, "making %s: not an absolute path", path);
    AUTO_FREE char *copy = kv_strdup(path);
    for (char *slash = copy; slash;) {
        slash = strchr(slash + 1, '/');
        if (slash)
            *slash = '\0';
        if (mkdir(copy, slash ? 0755 : mode) < 0 && errno != EEXIST)
            return host_fail(err, errno, "making", copy);
        if (slash)
            *slash = '/';
    }
    struct stat st;
    if (stat(path, &st) < 0)
        return host_fail(err, errno, "making", path);
    return S_ISDIR(st.st_mode) ? 0 : host_fail(err, ENOTDIR, "making", path);
}

static int write_all(int fd, struct str bytes)
{
    while (bytes.len > 0) {
        ssize_t n = write(fd, bytes.p, bytes.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes = str_sub(bytes, (size_t)n, bytes.len);
    }
    return 0;
}

int host_file_replace(const char *path, struct str content, mode_t mode, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    bool whole;
    struct stat st;
    if (lstat(path, &st) == 0 && S_ISREG(st.st_mode) && (size_t)st.st_size == content.len &&
        (st.st_mode & 07777) == mode &&
        str_eq(host_file_tail(&arena, path, content.len + 1, &whole), content))
        return 0;

    const char *made = arena_strf(&arena, "%s.new", path).p;
    unlink(made);
    int fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return host_fail(err, errno, "writing", made);
    int rc = write_all(fd, content) < 0 || fchmod(fd, mode) < 0 ? -1 : 0;
    int number = errno;
    close(fd);
    if (rc == 0 && rename(made, path) == 0)
        return 0;
    if (rc == 0)
        number = errno;
    unlink(made);
    return host_fail(err, number, "writing", path);
}

struct str host_file_tail(struct arena *arena, const char *path, size_t bytes_max, bool *whole)
{
    *whole = true;
    /* Not blocking: it could be a pipe that nobody writes to. */
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return STR("");
    struct stat st;
    size_t len = 0;
    char *bytes = NULL;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
        size_t want = (size_t)st.st_size < bytes_max ? (size_t)st.st_size : bytes_max;
        off_t from = st.st_size - (off_t)want;
        *whole = from == 0;
        bytes = arena_alloc(arena, want + 1);
        while (len < want) {
            ssize_t n = pread(fd, bytes + len, want - len, from + (off_t)len);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                break;
            len += (size_t)n;
        }
    }
    close(fd);
    return bytes ? (struct str){ bytes, len } : STR("");
}

/* --- removing --- */

struct removal {
    int top_fd;     /* the folder that deep ones are moved up to */
    uint64_t moved; /* so many were */
    struct err *err;
};

static int remove_contents(struct removal *r, int fd, const char *shown, int depth);

static int move_up(struct removal *r, int fd, const char *name)
{
    for (;;) {
        char up[48];
        snprintf(up, sizeof up, ".removed-%llu", (unsigned long long)r->moved++);
        if (renameat(fd, name, r->top_fd, up) == 0)
            return 0;
        if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
            return host_fail(r->err, errno, "removing", name);
    }
}

static int remove_folder(struct removal *r, int fd, const char *name, int depth)
{
    if (depth >= TREE_DEPTH_MAX)
        return move_up(r, fd, name);

    int child = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    struct stat here, st;
    if (child < 0)
        return errno == ENOENT ? 0 : host_fail(r->err, errno, "removing", name);
    int rc = 0;
    if (fstat(fd, &here) < 0 || fstat(child, &st) < 0)
        rc = host_fail(r->err, errno, "removing", name);
    else if (here.st_dev != st.st_dev)
        rc = err_set(r->err, ERR_UNAVAILABLE, "removing %s: something is mounted there", name);
    else
        rc = remove_contents(r, child, name, depth + 1);
    close(child);
    if (rc == 0 && unlinkat(fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        rc = host_fail(r->err, errno, "removing", name);
    return rc;
}

static int remove_entry(struct removal *r, int fd, const char *name, int depth)
{
    if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return host_fail(r->err, errno, "removing", name);
    return remove_folder(r, fd, name, depth);
}

static int remove_contents(struct removal *r, int fd, const char *shown, int depth)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    if (!d) {
        int number = errno;
        if (again >= 0)
            close(again);
        return host_fail(r->err, number, "reading", shown);
    }
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            rc = remove_entry(r, fd, e->d_name, depth);
    }
    closedir(d);
    return rc;
}

int host_tree_remove(int folder_fd, const char *name, struct err *err)
{
    if (unlinkat(folder_fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    int top = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (top < 0)
        return errno == ENOENT ? 0 : host_fail(err, errno, "removing", name);

    struct removal r = { .top_fd = top, .err = err };
    int rc = 0;
    for (;;) { /* until nothing was moved up any more: every pass takes TREE_DEPTH_MAX levels off */
        uint64_t before = r.moved;
        rc = remove_contents(&r, top, name, 0);
        if (rc < 0 || r.moved == before)
            break;
    }
    close(top);
    if (rc == 0 && unlinkat(folder_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        rc = host_fail(err, errno, "removing", name);
    return rc;
}

/* --- mounts --- */

/* In mountinfo a blank, a tab, a newline and a backslash are written as three octal digits. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] >= '0' &&
            from[2] <= '7' && from[3] >= '0' && from[3] <= '7') {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* "36 35 98:0 /root /mount/point ...": the fifth word. NULL: there is none. */
static char *mount_point(char *line)
{
    char *rest = NULL, *word = strtok_r(line, " ", &rest);
    for (int i = 0; word && i < 4; i++)
        word = strtok_r(NULL, " ", &rest);
    if (word)
        unescape(word);
    return word;
}

int host_unmount_below(const char *path, struct err *err)
{
    struct file_paths found = { 0 };
    FILE *mounts = fopen("/proc/self/mountinfo", "re");
    if (!mounts)
        return host_fail(err, errno, "reading", "/proc/self/mountinfo");
    char *line = NULL;
    size_t cap = 0, len = strlen(path);
    while (found.items.count < MOUNTS_MAX && getline(&line, &cap, mounts) > 0) {
        const char *at = mount_point(line);
        if (at && strncmp(at, path, len) == 0 && (at[len] == '\0' || at[len] == '/'))
            vec_push(&found.items, kv_strdup(at));
    }
    free(line);
    fclose(mounts);

    /* The newest first: one may be mounted inside, or over, an older one. */
    int rc = 0;
    for (size_t i = found.items.count; rc == 0 && i > 0; i--) {
        const char *at = found.items.items[i - 1];
        if (umount2(at, MNT_DETACH | UMOUNT_NOFOLLOW) < 0 && errno != EINVAL && errno != ENOENT)
            rc = host_fail(err, errno, "unmounting", at);
    }
    file_paths_done(&found);
    return rc;
}

bool host_is_mounted(const char *path)
{
    AUTO_BUF parent = { 0 };
    buf_addf(&parent, "%s/..", path);
    struct stat here, above;
    return lstat(path, &here) == 0 && stat(parent.p, &above) == 0 && here.st_dev != above.st_dev;
}
