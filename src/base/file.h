/* base/file.h - whole files and folders, with limits. */
#pragma once

#include "base/err.h"
#include "base/vec.h"

/* Append the whole file (path "-": standard input) to `out`. A file longer than bytes_max is
 * ERR_INVALID and nothing is kept; one that is missing or cannot be read is ERR_NOT_FOUND or
 * ERR_UNAVAILABLE. */
int file_read(const char *path, size_t bytes_max, struct buf *out, struct err *err);

struct file_paths {
    VEC(char *) items;
};
void file_paths_done(struct file_paths *paths);

#define FOLDER_DEPTH_MAX 32
#define FOLDER_NAMES_MAX 200000 /* looked at, in all folders together */

/* `path` itself if it is a file (or "-"); if it is a folder, the regular files below it whose names
 * end in one of `suffixes` (NULL-terminated), folder by folder in the byte order of their names.
 * Names that start with a dot are passed over, symbolic links followed. The paths are added to
 * `out`; on failure some may have been. */
int file_expand(const char *path, const char *const *suffixes, struct file_paths *out,
                struct err *err);
