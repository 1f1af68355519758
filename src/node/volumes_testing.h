/* node/volumes_testing.h - a root folder of its own for a test, and objects without an API server.
 */
#pragma once

#include "node/node_pod_testing.h"
#include "node/volumes_inner.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEST_OBJECTS_MAX 4

struct place { /* AUTO_PLACE p = place_new(); */
    struct arena arena;
    struct str path; /* the folder; <path>/root, <path>/logs and <path>/links are in it */
    struct node_facts facts;
    struct object_source objects;
    struct {
        const char *kind, *name, *json;
    } have[TEST_OBJECTS_MAX];
    const char *token;
};

static inline int place_fetch(struct place *p, const char *kind, struct str name, struct doc *out,
                              struct err *err)
{
    for (size_t i = 0; i < TEST_OBJECTS_MAX && p->have[i].kind; i++) {
        if (strcmp(p->have[i].kind, kind) == 0 && str_eqz(name, p->have[i].name))
            return json_read(str_of(p->have[i].json), out, err);
    }
    return err_set(err, ERR_NOT_FOUND, "not found");
}

static inline int place_config_map(void *ctx, struct str namespace_ KV_UNUSED, struct str name,
                                   struct doc *out, struct err *err)
{
    return place_fetch(ctx, "ConfigMap", name, out, err);
}

static inline int place_secret(void *ctx, struct str namespace_ KV_UNUSED, struct str name,
                               struct doc *out, struct err *err)
{
    return place_fetch(ctx, "Secret", name, out, err);
}

static inline int place_token(void *ctx, struct str namespace_ KV_UNUSED,
                              struct str service_account, struct str pod_name KV_UNUSED,
                              struct str pod_uid, struct str audience, int64_t expiration_s,
                              struct buf *out, struct err *err KV_UNUSED)
{
    struct place *p = ctx;
    buf_addf(out, "%s:%.*s:%.*s:%.*s:%lld", p->token, STR_ARG(service_account), STR_ARG(pod_uid),
             STR_ARG(audience), (long long)expiration_s);
    return 0;
}

static inline struct place *place_new(void)
{
    struct place *p = kv_calloc(1, sizeof *p);
    char path[] = "/tmp/karve-node-XXXXXX";
    EXPECT_TRUE(mkdtemp(path) != NULL);
    AUTO_FREE char *real = realpath(path, NULL);
    p->path = arena_str(&p->arena, str_of(real));
    p->facts.root = arena_strf(&p->arena, "%s/root", p->path.p);
    p->facts.log_root = arena_strf(&p->arena, "%s/logs", p->path.p);
    p->facts.container_log_root = arena_strf(&p->arena, "%s/links", p->path.p);
    p->facts.node_name = STR("n1");
    p->facts.dns_domain = STR("cluster.local");
    p->objects = (struct object_source){
        .config_map = place_config_map, .secret = place_secret, .token = place_token, .ctx = p
    };
    p->token = "token";
    return p;
}

static inline void place_free(struct place *p)
{
    struct err err;
    EXPECT_OK(host_unmount_below(p->path.p, &err), err);
    EXPECT_OK(host_tree_remove(AT_FDCWD, p->path.p, &err), err);
    arena_done(&p->arena);
    free(p);
}
KV_AUTO_TYPE(place, place_free)

static inline void place_have(struct place *p, const char *kind, const char *name, const char *json)
{
    size_t i = 0;
    while (p->have[i].kind &&
           (strcmp(p->have[i].kind, kind) != 0 || strcmp(p->have[i].name, name) != 0))
        i++;
    KV_ASSERT(i < TEST_OBJECTS_MAX);
    p->have[i].kind = kind;
    p->have[i].name = name;
    p->have[i].json = json;
}

static inline struct str_list place_strs(struct place *p, const char *a, const char *maybe_b)
{
    struct str *items = arena_array(&p->arena, struct str, 2);
    items[0] = str_of(a);
    items[1] = str_of(maybe_b);
    return (struct str_list){ items, maybe_b ? 2 : 1 };
}

/* "<path>/<sub>" */
static inline const char *place_path(struct place *p, const char *sub)
{
    return arena_strf(&p->arena, "%s/%s", p->path.p, sub).p;
}

/* The folder of one of the pod's volumes, or something in it. */
static inline const char *place_volume(struct place *p, const struct node_pod *pod,
                                       const char *name, const char *maybe_sub)
{
    for (uint32_t i = 0; i < pod->volumes.count; i++) {
        const struct node_volume *v = &pod->volumes.items[i];
        if (str_eqz(v->name, name)) {
            const char *folder = volume_host_path(&p->arena, pod, v, &p->facts).p;
            return maybe_sub ? arena_strf(&p->arena, "%s/%s", folder, maybe_sub).p : folder;
        }
    }
    return NULL;
}

static inline void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    EXPECT_TRUE(fd >= 0);
    EXPECT_EQ(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* What the file says, through links as a container would read it; "(none)" if it is not there. */
static inline struct str text_at(struct place *p, const char *path)
{
    char bytes[4096];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return STR("(none)");
    ssize_t n = read(fd, bytes, sizeof bytes);
    close(fd);
    EXPECT_TRUE(n >= 0);
    return arena_str(&p->arena, (struct str){ bytes, (size_t)n });
}

static inline int64_t mode_at(const char *path) /* -1: nothing there */
{
    struct stat st;
    return stat(path, &st) < 0 ? -1 : (int64_t)(st.st_mode & 07777);
}

static inline bool is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}
