/* Where volumes lie, and making and removing them.
 *
 * An empty folder is made under a name of its own, given its owner and mode, and then renamed: one
 * that is there is finished, and belongs to the containers from then on. One in memory is a tmpfs
 * mounted on it, which a reboot takes away and the next set-up brings back. Secrets and tokens are
 * in memory too: they are not to be found on a disk later.
 *
 * Removal knows no spec: whatever is mounted below the pod's folder is unmounted, and then the
 * folder is removed without following a link or crossing into another filesystem. What a hostPath
 * names is never below it.
 */
#include "node/volumes_inner.h"

#include "api/resources.h"
#include "node/pod_sum.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define PODS_LISTED_MAX 100000

/* --- where --- */

struct str pod_folder(struct arena *arena, struct str uid, const struct node_facts *facts)
{
    return arena_strf(arena, "%.*s/pods/%.*s", STR_ARG(facts->root), STR_ARG(uid));
}

int pod_folder_make(struct arena *arena, struct str uid, const struct node_facts *facts,
                    const char *maybe_sub, struct err *err)
{
    if (host_name_check(uid, "pod uid", err) < 0)
        return -1;
    struct str folder = pod_folder(arena, uid, facts);
    if (host_folder_make(folder.p, 0750, err) < 0 || !maybe_sub)
        return maybe_sub ? -1 : 0;
    return host_folder_make(arena_strf(arena, "%s/%s", folder.p, maybe_sub).p, 0750, err);
}

static const char *kind_folder(const struct node_volume *volume)
{
    switch ((enum node_volume_kind)volume->kind) {
    case NODE_VOLUME_EMPTY_DIR:
        return "kubernetes.io~empty-dir";
    case NODE_VOLUME_CONFIG_MAP:
        return "kubernetes.io~configmap";
    case NODE_VOLUME_SECRET:
        return "kubernetes.io~secret";
    case NODE_VOLUME_DOWNWARD:
        return "kubernetes.io~downward-api";
    case NODE_VOLUME_PROJECTED:
        return "kubernetes.io~projected";
    case NODE_VOLUME_HOST_PATH:
    case NODE_VOLUME_OTHER:
        break;
    }
    return NULL;
}

bool volume_is_content(const struct node_volume *volume)
{
    return volume->kind != NODE_VOLUME_EMPTY_DIR && kind_folder(volume) != NULL;
}

struct str volume_host_path(struct arena *arena, const struct node_pod *pod,
                            const struct node_volume *volume, const struct node_facts *facts)
{
    if (volume->kind == NODE_VOLUME_HOST_PATH)
        return arena_str(arena, volume->host_path);
    const char *kind = kind_folder(volume);
    if (!kind)
        return STR("");
    return arena_strf(arena, "%s/volumes/%s/%.*s", pod_folder(arena, pod->uid, facts).p, kind,
                      STR_ARG(volume->name));
}

/* --- empty folders, on disk and in memory --- */

static int mount_memory(const char *path, unsigned long flags, const char *options, struct err *err)
{
    if (host_is_mounted(path) || mount("tmpfs", path, "tmpfs", flags, options) == 0)
        return 0;
    return host_fail(err, errno, "mounting tmpfs on", path);
}

static int64_t smaller_limit(int64_t a, int64_t b) /* 0 is none */
{
    return a == 0 || (b > 0 && b < a) ? b : a;
}

static int empty_dir_in_memory(const char *path, const struct node_pod *pod,
                               const struct node_volume *volume, const struct node_facts *facts,
                               struct err *err)
{
    int64_t size =
        smaller_limit(volume->size_limit_bytes, quantity_units(pod_sum(pod, STR("memory"), true)));
    size = smaller_limit(size, quantity_units(resources_get(&facts->allocatable, STR("memory"))));
    AUTO_BUF options = { 0 };
    buf_addz(&options, pod->fs_group.set ? "mode=2777" : "mode=0777");
    if (pod->fs_group.set)
        buf_addf(&options, ",gid=%lld", (long long)pod->fs_group.value);
    if (size > 0)
        buf_addf(&options, ",size=%lld", (long long)size);
    return mount_memory(path, 0, options.p, err);
}

static int empty_dir_set_up(struct arena *arena, struct str path, const struct node_pod *pod,
                            const struct node_volume *volume, const struct node_facts *facts,
                            struct err *err)
{
    struct stat st;
    if (lstat(path.p, &st) == 0) {
        if (!S_ISDIR(st.st_mode))
            return host_fail(err, ENOTDIR, "making", path.p);
        return volume->memory ? empty_dir_in_memory(path.p, pod, volume, facts, err) : 0;
    }

    size_t folder_len = path.len - volume->name.len; /* with its slash */
    const char *made =
        arena_strf(arena, "%.*s.%.*s", (int)folder_len, path.p, STR_ARG(volume->name)).p;
    if (mkdir(made, 0700) < 0 && errno != EEXIST)
        return host_fail(err, errno, "making", made);
    if (pod->fs_group.set && lchown(made, (uid_t)-1, (gid_t)pod->fs_group.value) < 0)
        return host_fail(err, errno, "giving to the fsGroup", made);
    /* After the change of owner, which takes the setgid bit away. */
    if (chmod(made, pod->fs_group.set ? 02777 : 0777) < 0 || rename(made, path.p) < 0)
        return host_fail(err, errno, "making", path.p);
    return volume->memory ? empty_dir_in_memory(path.p, pod, volume, facts, err) : 0;
}

/* --- paths of the host --- */

static const struct host_path_rule {
    const char *type, *expected;
    mode_t format; /* S_IFDIR ... */
    bool make;
} host_path_rules[] = {
    { "DirectoryOrCreate", "a folder", S_IFDIR, true },
    { "Directory", "a folder", S_IFDIR, false },
    { "FileOrCreate", "a file", S_IFREG, true },
    { "File", "a file", S_IFREG, false },
    { "Socket", "a socket", S_IFSOCK, false },
    { "CharDevice", "a character device", S_IFCHR, false },
    { "BlockDevice", "a block device", S_IFBLK, false },
};

static int host_path_make(const char *path, mode_t format, struct err *err)
{
    if (format == S_IFDIR)
        return host_folder_make(path, 0755, err);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (fd < 0)
        return host_fail(err, errno, "making", path);
    close(fd);
    return 0;
}

static int host_path_set_up(struct str path, struct str type, struct err *err)
{
    if (!host_path_absolute(path))
        return err_set(err, ERR_INVALID, "hostPath %s: expected an absolute path without ..",
                       STR_SHOWN(path));
    if (type.len == 0)
        return 0;
    for (size_t i = 0; i < KV_COUNT_OF(host_path_rules); i++) {
        const struct host_path_rule *rule = &host_path_rules[i];
        if (!str_eqz(type, rule->type))
            continue;
        struct stat st;
        if (stat(path.p, &st) < 0) { /* through links: it is the administrator's path */
            if (errno == ENOENT && rule->make)
                return host_path_make(path.p, rule->format, err);
            return host_fail(err, errno, "looking at hostPath", path.p);
        }
        if ((st.st_mode & S_IFMT) == rule->format)
            return 0;
        return err_set(err, ERR_UNAVAILABLE, "hostPath %s is not %s", path.p, rule->expected);
    }
    return err_set(err, ERR_INVALID, "hostPath type %s: unknown", STR_SHOWN(type));
}

/* --- set-up --- */

static int content_set_up(struct arena *arena, struct str path, const struct node_pod *pod,
                          const struct node_volume *volume, const struct node_facts *facts,
                          const struct object_source *objects, struct err *err)
{
    struct volume_files files = { 0 };
    bool secret = volume->kind == NODE_VOLUME_SECRET || volume->kind == NODE_VOLUME_PROJECTED;
    int rc = volume_content(arena, pod, volume, facts, objects, &files, err);
    if (rc == 0)
        rc = host_folder_make(path.p, 0755, err);
    /* Only root may mount; and only root runs pods. */
    if (rc == 0 && secret && geteuid() == 0)
        rc = mount_memory(path.p, MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0755", err);
    if (rc == 0)
        rc = volume_files_write(path.p, &files, pod->fs_group, err);
    vec_done(&files.items);
    return rc;
}

static int volume_set_up(struct arena *arena, const struct node_pod *pod,
                         const struct node_volume *volume, const struct node_facts *facts,
                         const struct object_source *objects, struct err *err)
{
    if (host_name_check(volume->name, "volume", err) < 0)
        return -1;
    struct str path = volume_host_path(arena, pod, volume, facts);
    if (volume->kind == NODE_VOLUME_HOST_PATH)
        return host_path_set_up(path, volume->host_path_type, err);
    const char *kind = kind_folder(volume);
    if (!kind)
        return err_set(err, ERR_INVALID, "this agent does not mount volumes of the kind %s",
                       STR_SHOWN(volume->other));
    if (pod_folder_make(arena, pod->uid, facts, "volumes", err) < 0 ||
        pod_folder_make(arena, pod->uid, facts, arena_strf(arena, "volumes/%s", kind).p, err) < 0)
        return -1;
    if (volume->kind == NODE_VOLUME_EMPTY_DIR)
        return empty_dir_set_up(arena, path, pod, volume, facts, err);
    return content_set_up(arena, path, pod, volume, facts, objects, err);
}

int volumes_set_up(const struct node_pod *pod, const struct node_facts *facts,
                   const struct object_source *objects, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    if (pod_folder_make(&arena, pod->uid, facts, NULL, err) < 0)
        return -1;
    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        const struct node_volume *volume = &pod->volumes.items[i];
        if (volume_set_up(&arena, pod, volume, facts, objects, err) < 0)
            return err_wrap(err, "volume %.*s", STR_ARG(volume->name));
    }
    return 0;
}

/* --- what is there --- */

int volumes_remove(struct str uid, const struct node_facts *facts, struct err *err)
{
    AUTO_ARENA arena = { 0 };
    if (host_name_check(uid, "pod uid", err) < 0)
        return -1;
    /* Mount points are told without links, so the way to them must have none. */
    AUTO_FREE char *pods = realpath(pod_folder(&arena, STR("."), facts).p, NULL);
    if (!pods)
        return errno == ENOENT
                   ? 0
                   : host_fail(err, errno, "removing volumes in", arena_str(&arena, facts->root).p);
    const char *name = arena_str(&arena, uid).p;
    int fd = open(pods, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return host_fail(err, errno, "opening", pods);
    int rc = host_unmount_below(arena_strf(&arena, "%s/%s", pods, name).p, err);
    if (rc == 0)
        rc = host_tree_remove(fd, name, err);
    close(fd);
    return rc < 0 ? err_wrap(err, "volumes of pod %s", name) : 0;
}

int volumes_list(const struct node_facts *facts, struct arena *arena, struct str_list *out,
                 struct err *err)
{
    const char *path = pod_folder(arena, STR("."), facts).p;
    DIR *d = opendir(path);
    if (!d && errno == ENOENT) {
        *out = (struct str_list){ 0 };
        return 0;
    }
    if (!d)
        return host_fail(err, errno, "reading", path);

    VEC(struct str) uids = { 0 };
    for (struct dirent *e; uids.count < PODS_LISTED_MAX && (e = readdir(d)) != NULL;) {
        struct stat st;
        if (e->d_name[0] != '.' && fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISDIR(st.st_mode))
            vec_push(&uids, arena_str(arena, str_of(e->d_name)));
    }
    closedir(d);
    struct str *items = arena_array(arena, struct str, uids.count);
    if (uids.count > 0) {
        memcpy(items, uids.items, uids.count * sizeof *items);
        str_sort_unique(items, uids.count);
    }
    *out = (struct str_list){ items, (uint32_t)uids.count };
    vec_done(&uids);
    return 0;
}
