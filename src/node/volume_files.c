/* The files of a content volume, turned over at once.
 *
 *     <volume>/..AbCdEf/app.conf        the files
 *     <volume>/..data -> ..AbCdEf       the one link that is turned over
 *     <volume>/app.conf -> ..data/app.conf
 *
 * A crash at any point leaves either the old or the new behind the link, and perhaps a folder that
 * nobody points at, which the next pass removes. Containers may only read here, so all of it is
 * ours.
 */
#include "node/volumes_inner.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define DATA_LINK "..data"
#define DATA_LINK_NEW "..data_new"

/* Folders may be passed by the group too, and what is made in them is the group's. */
static mode_t folder_mode(struct maybe_int group)
{
    return group.set ? 02755 : 0755;
}

static mode_t file_mode(const struct volume_file *file, struct maybe_int group)
{
    return group.set ? file->mode | 0440 : file->mode;
}

/* --- is it there already? --- */

static bool same_bytes(int fd, struct str want)
{
    char chunk[4096];
    for (;;) {
        ssize_t n = read(fd, chunk, sizeof chunk);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 && want.len == 0;
        if ((size_t)n > want.len || memcmp(chunk, want.p, (size_t)n) != 0)
            return false;
        want = str_sub(want, (size_t)n, want.len);
    }
}

static bool file_is(int data_fd, const struct volume_file *file, struct maybe_int group)
{
    struct stat st;
    int fd = openat(data_fd, file->path.p, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    bool is = fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
              (st.st_mode & 07777) == file_mode(file, group) &&
              (!group.set || st.st_gid == (gid_t)group.value) &&
              (size_t)st.st_size == file->content.len && same_bytes(fd, file->content);
    close(fd);
    return is;
}

static size_t count_files(int folder_fd)
{
    size_t count = 0;
    int again = openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    if (!d) {
        if (again >= 0)
            close(again);
        return SIZE_MAX; /* not as it should be: it is written anew */
    }
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
            continue;
        int fd = openat(folder_fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        count += fd < 0 ? 1 : count_files(fd);
        if (fd >= 0)
            close(fd);
    }
    closedir(d);
    return count;
}

static bool data_is(int data_fd, const struct volume_files *files, struct maybe_int group)
{
    vec_each(&files->items, struct volume_file, file) {
        if (!file_is(data_fd, file, group))
            return false;
    }
    return count_files(data_fd) == files->items.count;
}

/* The folder that the link points at now, in `name`; false: none that we could have made. */
static bool data_target(int fd, char name[HOST_NAME_BYTES_MAX + 1])
{
    ssize_t n = readlinkat(fd, DATA_LINK, name, HOST_NAME_BYTES_MAX);
    if (n <= 0)
        return false;
    name[n] = '\0';
    return host_name_ok(str_of(name)) && str_starts(str_of(name), STR(".."));
}

/* --- writing --- */

static int fail(struct err *err, const struct volume_file *file)
{
    if (errno == EEXIST || errno == ENOTDIR)
        return err_set(err, ERR_INVALID, "%s: this would be a file and a folder", file->path.p);
    return host_fail(err, errno, "writing", file->path.p);
}

static int own(int fd, struct maybe_int group, mode_t mode)
{
    if (group.set && fchown(fd, (uid_t)-1, (gid_t)group.value) < 0)
        return -1;
    return fchmod(fd, mode); /* whatever the umask is; after the owner, which takes bits away */
}

/* The folder that the file is in, made where it is missing. -1: errno says why not. */
static int file_folder(int data_fd, const char *path, struct maybe_int group, const char **name)
{
    int at = dup(data_fd);
    *name = path;
    for (const char *slash; at >= 0 && (slash = strchr(*name, '/')) != NULL; *name = slash + 1) {
        AUTO_FREE char *folder = str_dup((struct str){ *name, (size_t)(slash - *name) });
        bool made = mkdirat(at, folder, 0700) == 0;
        int next = openat(at, folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next >= 0 && made && own(next, group, folder_mode(group)) < 0) {
            close(next);
            next = -1;
        }
        int number = errno;
        close(at);
        errno = number;
        at = next;
    }
    return at;
}

static int write_file(int data_fd, const struct volume_file *file, struct maybe_int group,
                      struct err *err)
{
    const char *name;
    int folder = file_folder(data_fd, file->path.p, group, &name);
    if (folder < 0)
        return fail(err, file);
    int fd = openat(folder, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int number = errno;
    close(folder);
    errno = number;
    if (fd < 0)
        return fail(err, file);

    int rc = 0;
    struct str rest = file->content;
    while (rc == 0 && rest.len > 0) {
        ssize_t n = write(fd, rest.p, rest.len);
        if (n < 0 && errno != EINTR)
            rc = host_fail(err, errno, "writing", file->path.p);
        else if (n > 0)
            rest = str_sub(rest, (size_t)n, rest.len);
    }
    if (rc == 0 && own(fd, group, file_mode(file, group)) < 0)
        rc = host_fail(err, errno, "giving to the fsGroup", file->path.p);
    close(fd);
    return rc;
}

/* A new folder with the files; its name in `name`. Nothing stays of one that failed. */
static int write_data(int folder_fd, const char *folder, const struct volume_files *files,
                      struct maybe_int group, char name[HOST_NAME_BYTES_MAX + 1], struct err *err)
{
    AUTO_BUF path = { 0 };
    buf_addf(&path, "%s/..XXXXXX", folder);
    if (!mkdtemp(path.p))
        return host_fail(err, errno, "making", path.p);
    memcpy(name, path.p + strlen(folder) + 1, sizeof "..XXXXXX");

    int fd = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = 0;
    if (fd < 0 || own(fd, group, folder_mode(group)) < 0)
        rc = host_fail(err, errno, "making", path.p);
    for (size_t i = 0; rc == 0 && i < files->items.count; i++)
        rc = write_file(fd, &files->items.items[i], group, err);
    if (fd >= 0)
        close(fd);
    if (rc < 0)
        host_tree_remove(folder_fd, name, NULL);
    return rc;
}

static int turn_over(int fd, const char *name, struct err *err)
{
    unlinkat(fd, DATA_LINK_NEW, 0);
    if (symlinkat(name, fd, DATA_LINK_NEW) < 0 || renameat(fd, DATA_LINK_NEW, fd, DATA_LINK) < 0)
        return host_fail(err, errno, "turning over", DATA_LINK);
    return 0;
}

/* --- what is seen --- */

static struct str first_name(struct str path)
{
    struct str first, rest;
    str_cut(path, '/', &first, &rest);
    return first;
}

static bool is_wanted(const struct volume_files *files, struct str name)
{
    vec_each(&files->items, struct volume_file, file) {
        if (str_eq(first_name(file->path), name))
            return true;
    }
    return false;
}

static int link_files(int fd, const struct volume_files *files, struct err *err)
{
    vec_each(&files->items, struct volume_file, file) {
        AUTO_FREE char *name = str_dup(first_name(file->path));
        AUTO_BUF target = { 0 };
        buf_addf(&target, DATA_LINK "/%s", name);
        if (symlinkat(target.p, fd, name) < 0 && errno != EEXIST)
            return host_fail(err, errno, "linking", name);
    }
    return 0;
}

/* Everything that is neither the link, the folder behind it, nor a name that is wanted. */
static int clear_rest(int fd, const char *data_name, const struct volume_files *files,
                      struct err *err)
{
    int again = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = again < 0 ? NULL : fdopendir(again);
    if (!d) {
        int number = errno;
        if (again >= 0)
            close(again);
        return host_fail(err, number, "reading", "the volume");
    }
    int rc = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        const char *name = e->d_name;
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 && strcmp(name, DATA_LINK) != 0 &&
            strcmp(name, data_name) != 0 && !is_wanted(files, str_of(name)))
            rc = host_tree_remove(fd, name, err);
    }
    closedir(d);
    return rc;
}

int volume_files_write(const char *folder, const struct volume_files *files, struct maybe_int group,
                       struct err *err)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return host_fail(err, errno, "opening", folder);

    char name[HOST_NAME_BYTES_MAX + 1];
    bool is = false;
    if (data_target(fd, name)) {
        int data = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        is = data >= 0 && data_is(data, files, group);
        if (data >= 0)
            close(data);
    }
    int rc = 0;
    if (!is) {
        rc = write_data(fd, folder, files, group, name, err);
        if (rc == 0)
            rc = turn_over(fd, name, err);
    }
    if (rc == 0)
        rc = link_files(fd, files, err);
    if (rc == 0)
        rc = clear_rest(fd, name, files, err);
    close(fd);
    return rc;
}
