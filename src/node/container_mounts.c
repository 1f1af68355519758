/* What of the host a container sees: its volumes, /etc/hosts and the file for its last words.
 *
 * A subPath is a way through a tree that containers write: one of them may turn any step of it into
 * a link to somewhere else, also between our look and the runtime's mount. So the kernel resolves
 * it (openat2, beneath the volume or not at all), and what it found is bind-mounted, by its
 * descriptor, to a place that containers do not see; the runtime is given that place. It is
 * unmounted with the pod's volumes.
 */
#include "node/configs_inner.h"

#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOSTS_BYTES_MAX ((size_t)1 << 20)

static Cri__Mount *add_mount(struct arena *arena, Cri__ContainerConfig *config,
                             struct str container_path, struct str host_path)
{
    Cri__Mount *mount = MESSAGE(arena, mount, Mount);
    if (container_path.len > 0 && container_path.p[0] != '/')
        container_path = arena_strf(arena, "/%.*s", STR_ARG(container_path));
    mount->container_path = message_str(arena, container_path);
    mount->host_path = message_str(arena, host_path);
    config->mounts[config->n_mounts++] = mount;
    return mount;
}

/* --- sub-paths --- */

static int open_beneath(int fd, const char *path, uint64_t flags)
{
    struct open_how how = { .flags = flags | O_CLOEXEC,
                            .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
    return (int)syscall(SYS_openat2, fd, path, &how, sizeof how);
}

static int sub_path_fail(struct err *err, struct str path)
{
    if (errno == EXDEV || errno == ELOOP)
        return err_set(err, ERR_DENIED, "subPath %s leads out of the volume", STR_SHOWN(path));
    return host_fail(err, errno, "opening subPath", STR_SHOWN(path));
}

static int make_folder(int parent_fd, const char *name, mode_t mode)
{
    if (mkdirat(parent_fd, name, 0700) < 0)
        return -1;
    /* Opened first: by its name it may be a link by now. */
    int fd = openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int rc = fd < 0 ? -1 : fchmod(fd, mode); /* whatever the umask is */
    int number = errno;
    if (fd >= 0)
        close(fd);
    errno = number;
    return rc;
}

/* One step of the way, from the volume on. */
static int make_step(int volume_fd, struct str way, mode_t mode)
{
    AUTO_FREE char *path = str_dup(way);
    int fd = open_beneath(volume_fd, path, O_PATH);
    if (fd >= 0) {
        close(fd);
        return 0;
    }
    char *slash = strrchr(path, '/');
    if (errno != ENOENT)
        return -1;
    if (!slash)
        return make_folder(volume_fd, path, mode);
    *slash = '\0';
    int parent = open_beneath(volume_fd, path, O_RDONLY | O_DIRECTORY);
    int rc = parent < 0 ? -1 : make_folder(parent, slash + 1, mode);
    int number = errno;
    if (parent >= 0)
        close(parent);
    errno = number;
    return rc;
}

/* Folders on the way that are missing, with the mode of the volume's own. */
static int make_missing(int volume_fd, struct str path, struct err *err)
{
    struct stat st;
    if (fstat(volume_fd, &st) < 0)
        return sub_path_fail(err, path);
    for (size_t len = 1; len <= path.len; len++) {
        if ((len == path.len || path.p[len] == '/') &&
            make_step(volume_fd, str_sub(path, 0, len), st.st_mode & 07777) < 0)
            return sub_path_fail(err, path);
    }
    return 0;
}

static int bind_sub_path(int fd, bool folder, const char *at, struct err *err)
{
    umount2(at, MNT_DETACH | UMOUNT_NOFOLLOW); /* of an earlier instance, if there was one */
    struct stat st;
    if (lstat(at, &st) == 0 && S_ISDIR(st.st_mode) != folder &&
        (folder ? unlink(at) : rmdir(at)) < 0)
        return host_fail(err, errno, "replacing", at);
    int made =
        folder ? mkdir(at, 0750) : open(at, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
    if (made < 0 && errno != EEXIST)
        return host_fail(err, errno, "making", at);
    if (!folder)
        close(made);
    char from[40];
    snprintf(from, sizeof from, "/proc/self/fd/%d", fd);
    if (mount(from, at, NULL, MS_BIND | MS_REC, NULL) < 0)
        return host_fail(err, errno, "mounting on", at);
    return 0;
}

static int sub_path_opened(struct arena *arena, const struct container_config_input *input,
                           const struct node_volume *volume, uint32_t ix, int volume_fd,
                           struct str path, struct str *out, struct err *err)
{
    /* In a content volume the files are ours: what is not there will not come from a container. */
    if (!volume_is_content(volume) && make_missing(volume_fd, path, err) < 0)
        return -1;
    int fd = open_beneath(volume_fd, message_str(arena, path), O_PATH);
    if (fd < 0)
        return sub_path_fail(err, path);
    struct stat st;
    int rc = fstat(fd, &st) < 0 ? sub_path_fail(err, path) : 0;
    if (rc == 0 && geteuid() == 0) {
        const char *places = arena_strf(arena, "volume-subpaths/%.*s/%.*s", STR_ARG(volume->name),
                                        STR_ARG(input->container->name))
                                 .p;
        *out = arena_strf(arena, "%s/%s/%u", pod_folder(arena, input->pod->uid, input->facts).p,
                          places, ix);
        rc = pod_folder_make(arena, input->pod->uid, input->facts, places, err);
        if (rc == 0)
            rc = bind_sub_path(fd, S_ISDIR(st.st_mode), out->p, err);
    }
    close(fd);
    return rc;
}

/* The place to mount from; `*host_path` is the volume's before. */
static int sub_path(struct arena *arena, const struct container_config_input *input,
                    const struct node_volume *volume, uint32_t ix, struct str path,
                    struct str *host_path, struct err *err)
{
    if (!host_path_inside(path))
        return err_set(err, ERR_INVALID, "subPath %s: expected a relative path without ..",
                       STR_SHOWN(path));
    int volume_fd = open(host_path->p, O_PATH | O_CLOEXEC);
    if (volume_fd < 0)
        return host_fail(err, errno, "opening", host_path->p);
    struct str place = arena_strf(arena, "%s/%.*s", host_path->p, STR_ARG(path));
    int rc = sub_path_opened(arena, input, volume, ix, volume_fd, path, &place, err);
    close(volume_fd);
    if (rc == 0)
        *host_path = place;
    return rc;
}

/* --- volumes --- */

static const struct node_volume *find_volume(const struct node_pod *pod, struct str name)
{
    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        if (str_eq(pod->volumes.items[i].name, name))
            return &pod->volumes.items[i];
    }
    return NULL;
}

static int mount_volume(struct arena *arena, const struct container_config_input *input,
                        const struct entries *env, uint32_t ix, Cri__ContainerConfig *config,
                        struct err *err)
{
    const struct volume_mount *want = &input->container->mounts.items[ix];
    const struct node_volume *volume = find_volume(input->pod, want->name);
    if (!volume)
        return err_set(err, ERR_INVALID, "the pod has no such volume");
    struct str host_path = volume_host_path(arena, input->pod, volume, input->facts);
    struct str path = want->sub_path;
    if (want->sub_path_expr.len > 0 &&
        env_expand(arena, env, want->sub_path_expr, true, &path, err) < 0)
        return err_wrap(err, "subPathExpr");
    if (path.len > 0 && sub_path(arena, input, volume, ix, path, &host_path, err) < 0)
        return -1;

    Cri__Mount *mount = add_mount(arena, config, want->path, host_path);
    mount->readonly = want->read_only || volume_is_content(volume);
    mount->recursive_read_only = mount->readonly && want->recursive_read_only;
    mount->propagation = want->propagation == 1   ? CRI__MOUNT_PROPAGATION__HOST_TO_CONTAINER
                         : want->propagation == 2 ? CRI__MOUNT_PROPAGATION__BIDIRECTIONAL
                                                  : CRI__MOUNT_PROPAGATION__PRIVATE;
    /* What lies on the host keeps its label; what is the pod's gets the pod's, where there is
     * SELinux. */
    mount->selinux_relabel = volume->kind != NODE_VOLUME_HOST_PATH;
    return 0;
}

/* --- /etc/hosts --- */

static void add_aliases(const struct node_pod *pod, struct buf *out)
{
    for (uint32_t i = 0; i < pod->host_aliases.count; i++) {
        const struct host_alias *alias = &pod->host_aliases.items[i];
        buf_add(out, alias->ip);
        for (uint32_t k = 0; k < alias->hostnames.count; k++)
            buf_addf(out, "\t%.*s", STR_ARG(alias->hostnames.items[k]));
        buf_addc(out, '\n');
    }
}

static void hosts_text(const struct node_pod *pod, const struct node_facts *facts, struct buf *out)
{
    buf_addz(out, "# Written by karve for this pod. Further names: spec.hostAliases.\n"
                  "127.0.0.1\tlocalhost\n"
                  "::1\tlocalhost ip6-localhost ip6-loopback\n"
                  "fe00::0\tip6-localnet\n"
                  "fe00::0\tip6-mcastprefix\n"
                  "fe00::1\tip6-allnodes\n"
                  "fe00::2\tip6-allrouters\n");
    for (uint32_t i = 0; i < facts->pod_ips.count; i++) {
        buf_addf(out, "%.*s\t", STR_ARG(facts->pod_ips.items[i]));
        if (pod->subdomain.len > 0)
            buf_addf(out, "%.*s.%.*s.%.*s.svc.%.*s\t", STR_ARG(pod->hostname),
                     STR_ARG(pod->subdomain), STR_ARG(pod->namespace_), STR_ARG(facts->dns_domain));
        buf_addf(out, "%.*s\n", STR_ARG(pod->hostname));
    }
    add_aliases(pod, out);
}

/* On the host's network the host's names count; a file of our own is needed only to add to them.
 * Without an address yet there is nothing to say that the runtime's own file does not. */
static int mount_hosts(struct arena *arena, const struct container_config_input *input,
                       Cri__ContainerConfig *config, struct err *err)
{
    const struct node_pod *pod = input->pod;
    if (pod->host_network ? pod->host_aliases.count == 0 : input->facts->pod_ips.count == 0)
        return 0;
    for (size_t i = 0; i < config->n_mounts; i++) {
        if (strcmp(config->mounts[i]->container_path, "/etc/hosts") == 0)
            return 0; /* it brings its own */
    }
    AUTO_BUF text = { 0 };
    if (pod->host_network) {
        struct err why = { 0 }; /* a host without the file has no names to keep */
        if (file_read("/etc/hosts", HOSTS_BYTES_MAX, &text, &why) < 0 && why.kind != ERR_NOT_FOUND)
            return err_set(err, why.kind, "%s", why.text);
        buf_addc(&text, '\n');
        add_aliases(pod, &text);
    } else {
        hosts_text(pod, input->facts, &text);
    }
    struct str path =
        arena_strf(arena, "%s/etc-hosts", pod_folder(arena, pod->uid, input->facts).p);
    if (pod_folder_make(arena, pod->uid, input->facts, NULL, err) < 0 ||
        host_file_replace(path.p, buf_str(&text), 0644, err) < 0)
        return -1;
    Cri__Mount *mount = add_mount(arena, config, STR("/etc/hosts"), path);
    mount->readonly = input->container->security.read_only_root == TRI_TRUE;
    mount->selinux_relabel = true;
    return 0;
}

/* --- last words --- */

/* Each instance has a file of its own. The runtime's last two are looked at; older ones go. */
static int mount_termination_message(struct arena *arena,
                                     const struct container_config_input *input,
                                     Cri__ContainerConfig *config, struct err *err)
{
    const struct node_container *container = input->container;
    if (container->termination_message_path.len == 0)
        return 0;
    const char *sub = arena_strf(arena, "containers/%.*s", STR_ARG(container->name)).p;
    if (pod_folder_make(arena, input->pod->uid, input->facts, sub, err) < 0)
        return -1;
    const char *folder =
        arena_strf(arena, "%s/%s", pod_folder(arena, input->pod->uid, input->facts).p, sub).p;
    struct str path = arena_strf(arena, "%s/%u", folder, input->restart_count);
    if (input->restart_count >= 3)
        unlink(arena_strf(arena, "%s/%u", folder, input->restart_count - 3).p);
    unlink(path.p); /* what an instance that was never made has left */
    if (host_file_replace(path.p, STR(""), 0666, err) < 0) /* whoever the container runs as */
        return -1;
    add_mount(arena, config, container->termination_message_path, path)->selinux_relabel = true;
    return 0;
}

int container_mounts(struct arena *arena, const struct container_config_input *input,
                     const struct entries *env, Cri__ContainerConfig *config, struct err *err)
{
    const struct node_container *container = input->container;
    config->mounts = arena_array(arena, Cri__Mount *, (size_t)container->mounts.count + 2);
    for (uint32_t i = 0; i < container->mounts.count; i++) {
        if (mount_volume(arena, input, env, i, config, err) < 0)
            return err_wrap(err, "volume %s", STR_SHOWN(container->mounts.items[i].name));
    }
    if (mount_hosts(arena, input, config, err) < 0)
        return err_wrap(err, "/etc/hosts");
    if (mount_termination_message(arena, input, config, err) < 0)
        return err_wrap(err, "termination message");
    return 0;
}
