/* With cgroup v2 there is one hierarchy, right at the mount; with v1 and hybrids one per folder
 * below it. A group with processes cannot be removed, so nothing that runs is ever touched.
 */
#include "node/pod_cgroup.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#define CGROUP_DEPTH_MAX 16

/* Folders inside first; files are the kernel's and go with their folder. */
static int remove_group(int parent, const char *name, int depth, struct err *err)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT
                   ? 0
                   : err_set(err, ERR_UNAVAILABLE, "cgroup %s: %s", name, strerror(errno));
    DIR *dir = fdopendir(fd);
    int result = 0;
    for (const struct dirent *entry; result == 0 && depth > 0 && (entry = readdir(dir)) != NULL;) {
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            result = remove_group(dirfd(dir), entry->d_name, depth - 1, err);
    }
    closedir(dir);
    if (result < 0)
        return -1;
    if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        return err_set(err, ERR_UNAVAILABLE, "cgroup %s: %s", name, strerror(errno));
    return 0;
}

static int remove_from(int hierarchy, struct str group, struct err *err)
{
    AUTO_FREE char *path = str_dup(group);
    return remove_group(hierarchy, path + (path[0] == '/'), CGROUP_DEPTH_MAX, err);
}

int pod_cgroup_remove(const char *mount, struct str group, struct err *err)
{
    int root = open(mount, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return 0; /* a machine without control groups */
    struct stat st;
    int result = 0;
    if (fstatat(root, "cgroup.procs", &st, 0) == 0) {
        result = remove_from(root, group, err);
        close(root);
        return result;
    }
    DIR *dir = fdopendir(root);
    for (const struct dirent *entry; result == 0 && (entry = readdir(dir)) != NULL;) {
        if (entry->d_name[0] == '.' || entry->d_type != DT_DIR)
            continue; /* links are other names of the same hierarchies */
        int hierarchy = openat(dirfd(dir), entry->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (hierarchy < 0)
            continue;
        result = remove_from(hierarchy, group, err);
        close(hierarchy);
    }
    closedir(dir);
    return result;
}
