/* store/log_testing.h - a log whose lines a test can count. */
#pragma once

#include "base/log.h"
#include "support/test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

struct heard {
    struct log *log;
    int fd;
};

/* Every line is written: repeats, too. */
static inline struct heard *heard_new(const struct clock *clock)
{
    struct heard *h = kv_calloc(1, sizeof *h);
    h->fd = memfd_create("log", MFD_CLOEXEC);
    EXPECT_TRUE(h->fd >= 0);
    h->log = log_new((struct log_options){
        .clock = clock, .fd = h->fd, .format = LOG_TEXT, .repeat_window_ns = -1 });
    return h;
}

static inline void heard_free(struct heard *h)
{
    log_free(h->log);
    close(h->fd);
    free(h);
}
KV_AUTO_TYPE(heard, heard_free)

static inline void heard_text(const struct heard *h, struct buf *out)
{
    char part[4096];
    off_t at = 0;
    ssize_t len;
    while ((len = pread(h->fd, part, sizeof part, at)) > 0) {
        buf_add(out, (struct str){ part, (size_t)len });
        at += len;
    }
}

/* How many lines contain the words. */
static inline uint32_t heard_count(const struct heard *h, const char *words)
{
    AUTO_BUF all = { 0 };
    uint32_t count = 0;
    heard_text(h, &all);
    struct str rest = buf_str(&all), line;
    while (str_cut(rest, '\n', &line, &rest))
        count += memmem(line.p, line.len, words, strlen(words)) != NULL;
    return count;
}
