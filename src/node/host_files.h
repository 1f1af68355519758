/* node/host_files.h - folders and files that the agent keeps on the host, made and removed safely.
 *
 * Names come from manifests and trees are written by containers: a name is one file's or refused,
 * links are not followed when something is removed, and nothing here leaves its filesystem.
 */
#pragma once

#include "base/arena.h"
#include "base/err.h"

#include <sys/types.h>

#define HOST_NAME_BYTES_MAX 255
#define HOST_PATH_BYTES_MAX 4095

/* One file name: not empty, "." or "..", at most 255 bytes, no '/' and no NUL. */
bool host_name_ok(struct str name);
/* The same as an error that names it: `what` is "volume", "container". */
int host_name_check(struct str name, const char *what, struct err *err);
/* A relative path of such names. */
bool host_path_inside(struct str path);
/* An absolute path without "..". */
bool host_path_absolute(struct str path);

/* What errno says, as an error: "making PATH: File exists". */
int host_fail(struct err *err, int number, const char *doing, const char *path);

/* The folder and what is missing above it. One that is there keeps its mode. */
int host_folder_make(const char *path, mode_t mode, struct err *err);

/* Turn the file over to this content at once. One that says the same already is left alone. */
int host_file_replace(const char *path, struct str content, mode_t mode, struct err *err);

/* The last `bytes_max` bytes of a plain file at most; nothing if there is none, or a link or
 * a device in its place. `*whole` says whether that was all. */
struct str host_file_tail(struct arena *arena, const char *path, size_t bytes_max, bool *whole);

/* Remove `name` in the folder, with all below it. It is fine if there is none. */
int host_tree_remove(int folder_fd, const char *name, struct err *err);

/* Unmount what is mounted on or below the path, which has no links in it. */
int host_unmount_below(const char *path, struct err *err);

bool host_is_mounted(
    const char *path); /* is something mounted right there, in its parent's place? */
