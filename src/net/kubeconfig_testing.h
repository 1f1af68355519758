/* net/kubeconfig_testing.h - a folder with kubeconfigs, plugins and whatever else they name. */
#pragma once

#include "base/file.h"
#include "codec/base64.h"
#include "net/kubeconfig.h"
#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NS_PER_S ((int64_t)1000000000)
#define START_US ((int64_t)1767366245 * 1000000) /* 2026-01-02T15:04:05Z */

struct home {
    char path[64];
    struct virtual_clock *time;
    int log_fd;
    struct log *log;
    struct kubeconfig_options options; /* that home_load uses */
};

static inline struct home *home_new(void)
{
    struct home *h = kv_calloc(1, sizeof *h);
    snprintf(h->path, sizeof h->path, "/tmp/karve-kubeconfig-XXXXXX");
    EXPECT_TRUE(mkdtemp(h->path) != NULL);
    h->time = virtual_clock_new(START_US);
    h->log_fd = memfd_create("log", MFD_CLOEXEC);
    EXPECT_TRUE(h->log_fd >= 0);
    h->log = log_new((struct log_options){ .clock = virtual_clock_port(h->time),
                                           .fd = h->log_fd,
                                           .format = LOG_TEXT,
                                           .repeat_window_ns = -1 });
    h->options = (struct kubeconfig_options){ .clock = virtual_clock_port(h->time), .log = h->log };
    setenv("HOME", h->path, 1);
    unsetenv("KUBECONFIG");
    unsetenv("KUBERNETES_SERVICE_HOST");
    unsetenv("KUBERNETES_SERVICE_PORT");
    unsetenv("POD_NAMESPACE");
    return h;
}

static inline void home_free(struct home *h)
{
    AUTO_BUF command = { 0 };
    buf_addf(&command, "rm -rf %s", h->path);
    EXPECT_EQ(system(command.p), 0);
    log_free(h->log);
    close(h->log_fd);
    virtual_clock_free(h->time);
    free(h);
}
KV_AUTO_TYPE(home, home_free)

/* The path of a file in it; "$" in `text` becomes the path of the folder. */
static inline const char *home_write(struct home *h, struct arena *arena, const char *name,
                                     const char *text)
{
    struct str path = arena_strf(arena, "%s/%s", h->path, name);
    char *slash = strrchr(path.p, '/');
    *slash = '\0';
    mkdir(path.p, 0700);
    *slash = '/';
    FILE *f = fopen(path.p, "we");
    EXPECT_TRUE(f != NULL);
    for (const char *c = text; *c; c++) {
        if (*c == '$' && c[1] == '/')
            fputs(h->path, f);
        else
            fputc(*c, f);
    }
    EXPECT_EQ(fclose(f), 0);
    EXPECT_EQ(chmod(path.p, 0600), 0);
    return path.p;
}

static inline void home_write_plugin(struct home *h, struct arena *arena, const char *name,
                                     const char *script)
{
    EXPECT_EQ(chmod(home_write(h, arena, name, script), 0700), 0);
}

static inline struct str home_read(struct home *h, struct arena *arena, const char *name)
{
    AUTO_BUF text = { 0 };
    struct str path = arena_strf(arena, "%s/%s", h->path, name);
    if (file_read(path.p, 1 << 20, &text, NULL) < 0)
        return STR("");
    return arena_str(arena, buf_str(&text));
}

static inline struct str home_log(struct home *h, struct arena *arena)
{
    char *text = arena_alloc(arena, 1 << 16);
    ssize_t n = pread(h->log_fd, text, (1 << 16) - 1, 0);
    return (struct str){ text, n > 0 ? (size_t)n : 0 };
}

/* Load that text as the one file. */
static inline int home_load(struct home *h, const char *text, struct kubeconfig **out,
                            struct err *err)
{
    AUTO_ARENA arena = { 0 };
    h->options.path = home_write(h, &arena, "config", text);
    int rc = kubeconfig_load(h->options, out, err);
    h->options.path = NULL;
    return rc;
}

/* The same, of a text that is right. */
static inline struct kubeconfig *home_loaded(struct home *h, const char *text)
{
    struct kubeconfig *k = NULL;
    struct err err = { 0 };
    EXPECT_OK(home_load(h, text, &k, &err), err);
    return k;
}

/* All that a request gets. */
static inline struct kube_credential credential_full(struct kubeconfig *k, struct arena *arena)
{
    struct kube_credential credential = { 0 };
    struct err err = { 0 };
    EXPECT_OK(kubeconfig_credential(k, arena, &credential, &err), err);
    return credential;
}

static inline struct str credential_now(struct kubeconfig *k, struct arena *arena)
{
    return credential_full(k, arena).authorization;
}

static inline bool str_has(struct str s, const char *words)
{
    return memmem(s.p, s.len, words, strlen(words)) != NULL;
}
