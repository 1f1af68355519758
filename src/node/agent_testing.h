/* node/agent_testing.h - an agent on a fake runtime, with a folder of manifests, for tests. */
#pragma once

#include "node/agent.h"
#include "node/fake_cri_testing.h"
#include "tests/support/test.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct rig {
    char dir[64];
    struct fake_cri *fake;
    struct agent *agent;
    struct metrics *metrics;
    int64_t backoff_ns; /* of restarts and pulls; 0: a millisecond */
    bool observer, api;
    status_told_fn *status;
    void *ctx;
    void (*wire)(void *ctx, struct agent_options *options); /* NULL: they stay as they are */
    void *wire_ctx;
};

static inline void rig_agent_start(struct rig *rig)
{
    static char manifests[96], root[96], logs[96], links[96];
    struct err err;
    snprintf(manifests, sizeof manifests, "%s/manifests", rig->dir);
    snprintf(root, sizeof root, "%s/root", rig->dir);
    snprintf(logs, sizeof logs, "%s/logs", rig->dir);
    snprintf(links, sizeof links, "%s/links", rig->dir);
    rig->metrics = metrics_new(clock_real());
    int64_t backoff_ns = rig->backoff_ns ? rig->backoff_ns : 1000000;
    struct agent_options options = { .endpoint = fake_cri_endpoint(rig->fake),
                                     .manifests = manifests,
                                     .node_name = "Node-1",
                                     .root = root,
                                     .log_root = logs,
                                     .container_log_root = links,
                                     .run_pods = !rig->observer,
                                     .relist_period_ns = 100 * 1000000,
                                     .backoff_initial_ns = backoff_ns,
                                     .backoff_max_ns = backoff_ns * 4,
                                     .retry_ns = 50 * 1000000,
                                     .seed = 1,
                                     .api = rig->api,
                                     .status = rig->status,
                                     .ctx = rig->ctx,
                                     .clock = clock_real(),
                                     .metrics = rig->metrics };
    if (rig->wire)
        rig->wire(rig->wire_ctx, &options);
    EXPECT_OK(agent_start(options, &rig->agent, &err), err);
}

static inline void rig_agent_stop(struct rig *rig)
{
    agent_stop(rig->agent);
    metrics_free(rig->metrics);
    rig->agent = NULL;
    rig->metrics = NULL;
}

static inline void rig_open(struct rig *rig)
{
    char path[96];
    snprintf(rig->dir, sizeof rig->dir, "/tmp/karve-agent-XXXXXX");
    EXPECT_TRUE(mkdtemp(rig->dir) != NULL);
    snprintf(path, sizeof path, "%s/manifests", rig->dir);
    EXPECT_EQ(mkdir(path, 0755), 0);
    rig->fake = fake_cri_new((struct fake_cri_options){ 0 });
    fake_cri_add_image(rig->fake, "web:1");
}

static inline int rig_remove_one(const char *path, const struct stat *st KV_UNUSED,
                                 int flag KV_UNUSED, struct FTW *ftw KV_UNUSED)
{
    return remove(path);
}

static inline void rig_close(struct rig *rig)
{
    rig_agent_stop(rig);
    fake_cri_free(rig->fake);
    nftw(rig->dir, rig_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Written whole and put in place at once, as a careful editor does. */
static inline void rig_write(struct rig *rig, const char *name, const char *text)
{
    char path[128], draft[128];
    snprintf(path, sizeof path, "%s/manifests/%s", rig->dir, name);
    snprintf(draft, sizeof draft, "%s/draft", rig->dir);
    FILE *file = fopen(draft, "w");
    EXPECT_TRUE(file != NULL);
    fputs(text, file);
    EXPECT_EQ(fclose(file), 0);
    EXPECT_EQ(rename(draft, path), 0);
}

static inline void rig_unlink(struct rig *rig, const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "%s/manifests/%s", rig->dir, name);
    EXPECT_EQ(unlink(path), 0);
}

static inline void rig_pods(struct rig *rig, struct buf *out)
{
    buf_clear(out);
    agent_pods_json(rig->agent, out);
}

static inline bool rig_says(struct rig *rig, const char *words)
{
    AUTO_BUF text = { 0 };
    rig_pods(rig, &text);
    return strstr(text.p, words) != NULL;
}

/* Wait for a condition: a minute is for a machine under sanitizers and load. */
#define WAIT_FOR(rig, cond)                                                                        \
    do {                                                                                           \
        int wait_left_ = 6000;                                                                     \
        while (!(cond) && --wait_left_ > 0)                                                        \
            nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);                            \
        if (wait_left_ == 0) {                                                                     \
            AUTO_BUF wait_text_ = { 0 };                                                           \
            rig_pods((rig), &wait_text_);                                                          \
            printf("# waited in vain for %s; seen: %s\n", #cond, wait_text_.p);                    \
            EXPECT_TRUE(cond);                                                                     \
        }                                                                                          \
    } while (0)

/* Time for something that must not happen: some relists and housekeepings. */
static inline void rig_linger(void)
{
    nanosleep(&(struct timespec){ .tv_nsec = 400000000 }, NULL);
}
