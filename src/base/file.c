#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(struct err *err, const char *path, int number)
{
    enum err_kind kind = number == ENOENT || number == ENOTDIR ? ERR_NOT_FOUND : ERR_UNAVAILABLE;
    return err_set(err, kind, "%s: %s", path, strerror(number));
}

static int read_all(int fd, const char *path, size_t bytes_max, struct buf *out, struct err *err)
{
    size_t before = out->len;
    for (;;) {
        buf_reserve(out, 1 << 16);
        ssize_t n = read(fd, out->p + out->len, out->cap - out->len - 1);
        if (n == 0)
            break;
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            out->len = before;
            return fail(err, path, errno);
        }
        out->len += (size_t)n;
        if (out->len - before > bytes_max) {
            out->len = before;
            return err_set(err, ERR_INVALID, "%s: longer than the limit of %zu bytes", path,
                           bytes_max);
        }
    }
    out->p[out->len] = '\0';
    return 0;
}

int file_read(const char *path, size_t bytes_max, struct buf *out, struct err *err)
{
    if (strcmp(path, "-") == 0)
        return read_all(STDIN_FILENO, "standard input", bytes_max, out, err);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return fail(err, path, errno);
    int rc = read_all(fd, path, bytes_max, out, err);
    close(fd);
    return rc;
}

void file_paths_done(struct file_paths *paths)
{
    vec_each(&paths->items, char *, path)
        free(*path);
    vec_done(&paths->items);
}

static bool has_suffix(const char *name, const char *const *suffixes)
{
    for (size_t i = 0; suffixes[i]; i++) {
        if (str_ends(str_of(name), str_of(suffixes[i])))
            return true;
    }
    return false;
}

static int by_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int folder_names(const char *folder, struct file_paths *out, struct err *err)
{
    DIR *d = opendir(folder);
    if (!d)
        return fail(err, folder, errno);
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (e->d_name[0] != '.')
            vec_push(&out->items, kv_strdup(e->d_name));
    }
    closedir(d);
    if (out->items.count)
        qsort(out->items.items, out->items.count, sizeof *out->items.items, by_text);
    return 0;
}

static int expand(const char *path, const char *const *suffixes, int depth, struct file_paths *out,
                  struct err *err)
{
    struct stat st;
    if (stat(path, &st) < 0)
        return fail(err, path, errno);
    if (!S_ISDIR(st.st_mode)) {
        if (depth > 0 && !has_suffix(path, suffixes))
            return 0;
        if (out->items.count >= FOLDER_FILES_MAX)
            return err_set(err, ERR_INVALID, "%s: more than %d files", path, FOLDER_FILES_MAX);
        vec_push(&out->items, kv_strdup(path));
        return 0;
    }
    if (depth >= FOLDER_DEPTH_MAX)
        return err_set(err, ERR_INVALID, "%s: folders nested deeper than %d (a link to itself?)",
                       path, FOLDER_DEPTH_MAX);

    struct file_paths names = { 0 };
    int rc = folder_names(path, &names, err);
    size_t path_len = strlen(path);
    const char *slash = path_len && path[path_len - 1] == '/' ? "" : "/";
    for (size_t i = 0; rc == 0 && i < names.items.count; i++) {
        AUTO_BUF child = { 0 };
        buf_addf(&child, "%s%s%s", path, slash, names.items.items[i]);
        rc = expand(child.p, suffixes, depth + 1, out, err);
    }
    file_paths_done(&names);
    return rc;
}

int file_expand(const char *path, const char *const *suffixes, struct file_paths *out,
                struct err *err)
{
    if (strcmp(path, "-") == 0) {
        vec_push(&out->items, kv_strdup(path));
        return 0;
    }
    return expand(path, suffixes, 0, out, err);
}
