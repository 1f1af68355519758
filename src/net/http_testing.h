/* net/http_testing.h - asking and waiting, for tests of the HTTP client. */
#pragma once

#include "base/clock.h"
#include "net/http.h"
#include "support/test.h"

#include <stdio.h>
#include <unistd.h>

#define WAIT_NS ((int64_t)30 * 1000000000)

/* Until the condition holds, or the test fails. */
#define WAIT_UNTIL(cond)                                                                           \
    do {                                                                                           \
        int64_t wait_end_ns_ = clock_mono_ns(clock_real()) + WAIT_NS;                              \
        while (!(cond) && clock_mono_ns(clock_real()) < wait_end_ns_)                              \
            usleep(1000);                                                                          \
        EXPECT_TRUE(cond);                                                                         \
    } while (0)

static inline struct http *client_new(struct http_options options)
{
    struct http *http = NULL;
    struct err err = { 0 };
    if (!options.proxy)
        options.proxy = ""; /* whatever this machine's environment says */
    EXPECT_OK(http_new(options, &http, &err), err);
    return http;
}

/* "http://127.0.0.1:PORT/path" in a buffer of the block's own. */
#define URL(scheme, port, path) url_of((char[256]){ 0 }, scheme, port, path)
static inline struct str url_of(char out[256], const char *scheme, uint16_t port, const char *path)
{
    return (struct str){ out,
                         (size_t)snprintf(out, 256, "%s://127.0.0.1:%u%s", scheme, port, path) };
}

/* Take until it ends, fails or `want` bytes are there. */
static inline enum http_took take_all(struct http_call *call, struct buf *out, size_t want,
                                      struct err *err)
{
    int64_t end_ns = clock_mono_ns(clock_real()) + WAIT_NS;
    enum http_took took = HTTP_NOTHING;
    while (out->len < want && clock_mono_ns(clock_real()) < end_ns) {
        took = http_take(call, out, err);
        if (took == HTTP_ENDED || took == HTTP_FAILED)
            break;
        if (took == HTTP_NOTHING)
            usleep(500);
    }
    return took;
}
