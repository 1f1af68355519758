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
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            int number = errno;
            buf_cut(out, before);
            return fail(err, path, number);
        }
        out->len += (size_t)n;
        out->p[out->len] = '\0';
        if (n == 0)
            return 0;
        if (out->len - before > bytes_max) {
            buf_cut(out, before);
            return err_set(err, ERR_INVALID, "%s: longer than the limit of %zu bytes", path,
                           bytes_max);
        }
    }
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

struct walk {
    const char *const *suffixes;
    struct file_paths *out;
    size_t name_count; /* looked at so far: links can make a small tree a large walk */
    struct err *err;
};

static int folder_names(struct walk *w, const char *folder, struct file_paths *names)
{
    DIR *d = opendir(folder);
    if (!d)
        return fail(w->err, folder, errno);
    int rc = 0;
    errno = 0;
    for (struct dirent *e; rc == 0 && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.')
            continue;
        vec_push(&names->items, kv_strdup(e->d_name));
        if (++w->name_count > FOLDER_NAMES_MAX)
            rc = err_set(w->err, ERR_INVALID, "%s: more than %d files and folders to look at",
                         folder, FOLDER_NAMES_MAX);
        errno = 0;
    }
    if (rc == 0 && errno != 0)
        rc = fail(w->err, folder, errno);
    closedir(d);
    if (names->items.count)
        qsort(names->items.items, names->items.count, sizeof *names->items.items, by_text);
    return rc;
}

static int expand(struct walk *w, const char *path, int depth);

static int expand_folder(struct walk *w, const char *folder, int depth)
{
    if (depth >= FOLDER_DEPTH_MAX)
        return err_set(w->err, ERR_INVALID, "%s: folders nested deeper than %d (a link to itself?)",
                       folder, FOLDER_DEPTH_MAX);
    struct file_paths names = { 0 };
    int rc = folder_names(w, folder, &names);
    const char *slash = str_ends(str_of(folder), STR("/")) ? "" : "/";
    for (size_t i = 0; rc == 0 && i < names.items.count; i++) {
        AUTO_BUF child = { 0 };
        buf_addf(&child, "%s%s%s", folder, slash, names.items.items[i]);
        rc = expand(w, child.p, depth + 1);
    }
    file_paths_done(&names);
    return rc;
}

static int expand(struct walk *w, const char *path, int depth)
{
    struct stat st;
    bool wanted = depth == 0 || has_suffix(path, w->suffixes);
    if (stat(path, &st) < 0)
        return wanted ? fail(w->err, path, errno) : 0; /* a dangling link that is not for us */
    if (S_ISDIR(st.st_mode))
        return expand_folder(w, path, depth);
    if (wanted && (depth == 0 || S_ISREG(st.st_mode)))
        vec_push(&w->out->items, kv_strdup(path));
    return 0;
}

int file_expand(const char *path, const char *const *suffixes, struct file_paths *out,
                struct err *err)
{
    if (strcmp(path, "-") == 0) {
        vec_push(&out->items, kv_strdup(path));
        return 0;
    }
    return expand(&(struct walk){ .suffixes = suffixes, .out = out, .err = err }, path, 0);
}
