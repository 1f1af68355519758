/* The logs of pods: where they are, how many there were, and their removal with what wrote them.
 *
 * Removal comes before the runtime forgets the container or sandbox, so that after a crash in
 * between the next pass finds it again. Only logs of containers that the runtime still shows as
 * ours are ever removed: a folder that is merely unknown may be another agent's.
 */
#include "node/pod_logs.h"

#include "node/host_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#define RESTART_COUNT_MAX 1000000000 /* of a log file's name: a larger number is not one of ours */

struct str pod_log_folder(struct arena *arena, const struct node_pod *pod,
                          const struct node_facts *facts)
{
    return arena_strf(arena, "%.*s/%.*s_%.*s_%.*s", STR_ARG(facts->log_root),
                      STR_ARG(pod->namespace_), STR_ARG(pod->name), STR_ARG(pod->uid));
}

static struct str container_log_folder(struct arena *arena, const struct node_pod *pod,
                                       struct str container, const struct node_facts *facts)
{
    return arena_strf(arena, "%s/%.*s", pod_log_folder(arena, pod, facts).p, STR_ARG(container));
}

int log_folder_make(struct arena *arena, const struct node_pod *pod, const struct node_facts *facts,
                    struct str maybe_container, struct err *err)
{
    if (host_name_check(pod->namespace_, "namespace", err) < 0 ||
        host_name_check(pod->name, "pod", err) < 0 || host_name_check(pod->uid, "pod uid", err) < 0)
        return -1;
    if (!maybe_container.p)
        return host_folder_make(pod_log_folder(arena, pod, facts).p, 0755, err);
    if (host_name_check(maybe_container, "container", err) < 0)
        return -1;
    return host_folder_make(container_log_folder(arena, pod, maybe_container, facts).p, 0755, err);
}

/* "<n>.log", and what rotation makes of it: "<n>.log.20260102-150405.gz". */
static bool log_name_count(struct str name, uint32_t *out)
{
    struct str digits = str_take_digits(&name);
    int64_t n;
    if (!str_to_i64(digits, &n) || n >= RESTART_COUNT_MAX || !str_starts(name, STR(".log")))
        return false;
    *out = (uint32_t)n;
    return true;
}

static uint32_t restart_count_from_logs(const char *folder)
{
    DIR *d = opendir(folder);
    if (!d)
        return 0;
    uint32_t next = 0, n;
    for (struct dirent *e; (e = readdir(d)) != NULL;) {
        if (log_name_count(str_of(e->d_name), &n) && n + 1 > next)
            next = n + 1;
    }
    closedir(d);
    return next;
}

uint32_t next_restart_count(const struct node_pod *pod, const struct node_container *container,
                            const struct runtime_status *status, const struct node_facts *facts)
{
    const struct runtime_container *last = runtime_container_find(status, container->name);
    if (last)
        return last->restart_count + 1;
    AUTO_ARENA arena = { 0 };
    if (!host_name_ok(container->name))
        return 0;
    return restart_count_from_logs(container_log_folder(&arena, pod, container->name, facts).p);
}

/* NULL: no links are wanted, or the names make none. */
static const char *link_path(struct arena *arena, struct str pod, struct str namespace_,
                             struct str container, struct str id, const struct node_facts *facts)
{
    struct str name = arena_strf(arena, "%.*s_%.*s_%.*s-%.*s", STR_ARG(pod), STR_ARG(namespace_),
                                 STR_ARG(container), STR_ARG(id));
    name = str_sub(name, 0, HOST_NAME_BYTES_MAX - (sizeof ".log" - 1));
    if (facts->container_log_root.len == 0 || !host_name_ok(name))
        return NULL;
    return arena_strf(arena, "%.*s/%.*s.log", STR_ARG(facts->container_log_root), STR_ARG(name)).p;
}

void container_log_link(const struct node_pod *pod, const struct node_container *container,
                        struct str id, uint32_t restart_count, const struct node_facts *facts)
{
    AUTO_ARENA arena = { 0 };
    const char *link = link_path(&arena, pod->name, pod->namespace_, container->name, id, facts);
    if (!link || host_folder_make(arena_str(&arena, facts->container_log_root).p, 0755, NULL) < 0)
        return;
    const char *log =
        arena_strf(&arena, "%s/%u.log", container_log_folder(&arena, pod, container->name, facts).p,
                   restart_count)
            .p;
    unlink(link);
    if (symlink(log, link) < 0)
        return; /* see the header */
}

/* --- removal --- */

static struct str status_log_folder(struct arena *arena, const struct runtime_status *status,
                                    const struct node_facts *facts)
{
    return arena_strf(arena, "%.*s/%.*s_%.*s_%.*s", STR_ARG(facts->log_root),
                      STR_ARG(status->namespace_), STR_ARG(status->name), STR_ARG(status->uid));
}

/* The runtime's word for a path is believed only inside the pod's own folder. */
static bool is_inside(struct str path, struct str folder)
{
    return str_starts(path, folder) && path.len > folder.len && path.p[folder.len] == '/' &&
           host_path_absolute(path);
}

void container_log_remove(const struct runtime_status *status,
                          const struct runtime_container *container, const struct node_facts *facts)
{
    AUTO_ARENA arena = { 0 };
    const char *link =
        link_path(&arena, status->name, status->namespace_, container->name, container->id, facts);
    if (link)
        unlink(link);
    if (is_inside(container->log_path, status_log_folder(&arena, status, facts)))
        unlink(arena_str(&arena, container->log_path).p);
}

int pod_log_remove(const struct runtime_status *status, const struct node_facts *facts,
                   struct err *err)
{
    AUTO_ARENA arena = { 0 };
    if (!host_name_ok(status->namespace_) || !host_name_ok(status->name) ||
        !host_name_ok(status->uid))
        return 0; /* then we made no folder of that name */
    struct str folder = status_log_folder(&arena, status, facts);
    int root = open(arena_str(&arena, facts->log_root).p, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (root < 0)
        return 0;
    int result = host_tree_remove(root, folder.p + facts->log_root.len + 1, err);
    close(root);
    return result;
}
