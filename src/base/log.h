/* base/log.h - a structured log: lines for people on a terminal, JSON objects otherwise.
 *
 *     log_info(log, "launched", LOG_STR("claim", claim->name), LOG_INT("pods", 3));
 *     log_warn(log, "launch failed", LOG_STR("claim", claim->name), LOG_ERR(&err));
 *
 *     15:04:05.000 INFO  launched                        claim=web-7 pods=3
 *     {"time":"2026-01-02T15:04:05.000000Z","level":"info","msg":"launched","claim":"web-7",...}
 *
 * The message is a literal and says what happened; what differs from line to line goes into the
 * fields. There are no format strings. Times are UTC. A line is one write(2), so lines of several
 * threads and processes do not mix. Values are cut at LOG_VALUE_BYTES_MAX. A line that cannot be
 * written is counted and forgotten; whoever must outlive the reader of a pipe ignores SIGPIPE.
 *
 * Secrets (base/log_redact.h): a field whose key looks secret prints as "[redacted]", whatever its
 * type; credentials inside other texts are masked; LOG_SECRET says that there is a value and
 * nothing more.
 *
 * Repeats: a line opens a window. Until it closes, lines of the same level, message and identity
 * are counted instead of written; then, if there were any, the last of them is written once with
 * its fields and "repeated": how many were held back, itself included. The identity is the strings
 * and booleans of a line, and the kind of its error: two claims are never taken for one another,
 * while a changing count, duration or error text does not make a line new. Windows are closed by
 * the next line of any kind, log_flush and log_free. At most LOG_WINDOWS_MAX are open; one more
 * closes the oldest early. What is held back is late, and never lost.
 *
 * Thread safe. A NULL log is silent.
 */
#pragma once

#include "base/clock.h"
#include "base/err.h"

#include <stdatomic.h>

#define LOG_VALUE_BYTES_MAX 4096
#define LOG_WINDOWS_MAX 256

enum log_level { LOG_LEVEL_DEBUG, LOG_LEVEL_INFO, LOG_LEVEL_WARN, LOG_LEVEL_ERROR };

enum log_format {
    LOG_AUTO, /* text with colour on a terminal (NO_COLOR takes the colour away), else JSON */
    LOG_TEXT,
    LOG_TEXT_COLOUR,
    LOG_JSON,
};

struct log_options {
    const struct clock *clock; /* borrowed */
    int fd;                    /* borrowed; of a FILE: fileno(file) */
    enum log_format format;
    enum log_level level;     /* lines below it are not written */
    int64_t repeat_window_ns; /* 0: ten seconds; negative: every line is written */
};

struct log;
struct log *log_new(struct log_options opts);
void log_free(struct log *log); /* says the open repeats first; NULL is fine */
KV_AUTO_TYPE(log, log_free)

void log_set_level(struct log *log, enum log_level level);  /* at any time, from any thread */
bool log_level_parse(struct str name, enum log_level *out); /* "debug", "info", "warn", "error" */
void log_flush(struct log *log);                            /* close all windows now */
uint64_t log_lost_count(const struct log *log);             /* lines that could not be written */

/* --- fields; keys are literals other than time, level, msg and repeated --- */

struct log_field {
    const char *key;
    enum {
        LOG_FIELD_STR,
        LOG_FIELD_INT,
        LOG_FIELD_FLOAT,
        LOG_FIELD_BOOL,
        LOG_FIELD_DURATION,
        LOG_FIELD_ERR,
        LOG_FIELD_SECRET,
    } type;
    union {
        struct str str;
        int64_t integer; /* also nanoseconds */
        double number;
        bool truth;
        const struct err *err;
    };
};

#define LOG_FIELD_(key_, type_, ...)                                                               \
    ((struct log_field){ .key = "" key_, .type = LOG_FIELD_##type_, __VA_ARGS__ })
#define LOG_STR(key_, v) LOG_FIELD_(key_, STR, .str = (v)) /* absent prints as null */
#define LOG_Z(key_, v) LOG_FIELD_(key_, STR, .str = str_of(v))
#define LOG_INT(key_, v) LOG_FIELD_(key_, INT, .integer = (int64_t)(v))
#define LOG_FLOAT(key_, v) LOG_FIELD_(key_, FLOAT, .number = (v))
#define LOG_BOOL(key_, v) LOG_FIELD_(key_, BOOL, .truth = (v))
#define LOG_DURATION(key_, ns) LOG_FIELD_(key_, DURATION, .integer = (ns)) /* printed as seconds */
#define LOG_ERR(err_) LOG_FIELD_("error", ERR, .err = (err_)) /* also prints "errorKind" */
#define LOG_SECRET(key_, v) LOG_FIELD_(key_, SECRET, .str = (v))

/* --- lines; the fields are not evaluated when the level is off --- */

#define log_debug(to, msg, ...) LOG_LINE_(to, LOG_LEVEL_DEBUG, msg, ##__VA_ARGS__)
#define log_info(to, msg, ...) LOG_LINE_(to, LOG_LEVEL_INFO, msg, ##__VA_ARGS__)
#define log_warn(to, msg, ...) LOG_LINE_(to, LOG_LEVEL_WARN, msg, ##__VA_ARGS__)
#define log_error(to, msg, ...) LOG_LINE_(to, LOG_LEVEL_ERROR, msg, ##__VA_ARGS__)

/* The array starts with a field that is not one, so that it is never empty. */
#define LOG_LINE_(to, level, msg, ...)                                                             \
    do {                                                                                           \
        struct log *log_line_to_ = (to);                                                           \
        if (log_enabled(log_line_to_, level)) {                                                    \
            const struct log_field log_line_fields_[] = { { .key = NULL }, ##__VA_ARGS__ };        \
            log_write(log_line_to_, level, "" msg, log_line_fields_ + 1,                           \
                      KV_COUNT_OF(log_line_fields_) - 1);                                          \
        }                                                                                          \
    } while (0)

bool log_enabled(const struct log *log, enum log_level level);
/* `msg` is kept while its window is open: a literal. */
void log_write(struct log *log, enum log_level level, const char *msg,
               const struct log_field *fields, size_t field_count);
