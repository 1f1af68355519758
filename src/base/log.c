/* A line is made in two parts under one lock: its fields, rendered in the log's format, and around
 * them the time, level and message. The split is what makes repeats cheap: a window keeps only the
 * rendered fields of the last line that it held back, and they become a line when it closes.
 *
 * Windows stand in a ring in the order in which they were opened. All last equally long, so the
 * oldest is also the first to close, and closing is a look at one end of the ring. Finding a
 * window is a scan over at most LOG_WINDOWS_MAX hashes.
 */
#include "base/log.h"

#include "base/log_redact.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define REPEAT_WINDOW_NS ((int64_t)10 * 1000000000)
#define MESSAGE_COLUMNS 31 /* in text, fields start here if the message is not longer */
#define TIME_BYTES_MAX 40

struct window {
    uint64_t identity;
    int64_t closes_ns;
    const char *msg;
    enum log_level level;
    uint64_t held_count;
    struct buf held; /* rendered fields of the last line held back */
};

struct log {
    const struct clock *clock;
    int fd;
    bool json, colour;
    int64_t repeat_window_ns; /* 0: off */
    atomic_int level;
    _Atomic uint64_t lost_count;

    /* Guards all below. Held while writing, so that lines stand in the order of their times. */
    pthread_mutex_t lock;
    bool line_broken; /* the last write stopped inside a line */
    struct buf line, fields, text;
    uint32_t window_first, window_count;
    struct window windows[LOG_WINDOWS_MAX]; /* a ring */
};

static const struct {
    const char *name, *label, *colour;
} levels[] = {
    [LOG_LEVEL_DEBUG] = { "debug", "DEBUG", "\033[90m" },
    [LOG_LEVEL_INFO] = { "info", "INFO ", "\033[32m" },
    [LOG_LEVEL_WARN] = { "warn", "WARN ", "\033[33m" },
    [LOG_LEVEL_ERROR] = { "error", "ERROR", "\033[31m" },
};
static const char colour_dim[] = "\033[2m", colour_key[] = "\033[36m", colour_off[] = "\033[0m";

struct log *log_new(struct log_options opts)
{
    struct log *log = kv_calloc(1, sizeof *log);
    const char *no_colour = getenv("NO_COLOR");
    bool terminal = opts.format == LOG_AUTO && isatty(opts.fd);

    log->clock = opts.clock;
    log->fd = opts.fd;
    log->json = opts.format == LOG_JSON || (opts.format == LOG_AUTO && !terminal);
    log->colour = opts.format == LOG_TEXT_COLOUR || (terminal && !(no_colour && *no_colour));
    log->repeat_window_ns = opts.repeat_window_ns == 0  ? REPEAT_WINDOW_NS
                            : opts.repeat_window_ns < 0 ? 0
                                                        : opts.repeat_window_ns;
    atomic_init(&log->level, (int)opts.level);
    pthread_mutex_init(&log->lock, NULL);
    return log;
}

void log_free(struct log *log)
{
    if (!log)
        return;
    log_flush(log);
    for (uint32_t i = 0; i < LOG_WINDOWS_MAX; i++)
        buf_done(&log->windows[i].held);
    buf_done(&log->line);
    buf_done(&log->fields);
    buf_done(&log->text);
    pthread_mutex_destroy(&log->lock);
    free(log);
}

void log_set_level(struct log *log, enum log_level level)
{
    atomic_store_explicit(&log->level, (int)level, memory_order_relaxed);
}

bool log_enabled(const struct log *log, enum log_level level)
{
    return log && (int)level >= atomic_load_explicit(&log->level, memory_order_relaxed);
}

bool log_level_parse(struct str name, enum log_level *out)
{
    for (size_t i = 0; i < KV_COUNT_OF(levels); i++) {
        if (str_eqz(name, levels[i].name)) {
            *out = (enum log_level)i;
            return true;
        }
    }
    return false;
}

uint64_t log_lost_count(const struct log *log)
{
    return log ? atomic_load_explicit(&log->lost_count, memory_order_relaxed) : 0;
}

/* --- values --- */

static bool reads_well_bare(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.p[i];
        if (!char_is_alnum(c) && !(c && strchr("-_./:@%+,*#~[]()<>", c)))
            return false;
    }
    return s.len > 0;
}

static void add_text(struct log *log, struct buf *out, struct str s)
{
    if (!s.p) {
        buf_addz(out, "null");
        return;
    }
    struct buf *text = &log->text;
    buf_clear(text);
    redact_text(s, LOG_VALUE_BYTES_MAX, text);
    if (text->len > LOG_VALUE_BYTES_MAX) {
        buf_cut(text, str_utf8_cut(buf_str(text), LOG_VALUE_BYTES_MAX));
        buf_addz(text, "...[cut]");
    }
    if (!log->json && reads_well_bare(buf_str(text)))
        buf_add(out, buf_str(text));
    else
        buf_add_quoted(out, buf_str(text));
}

static void add_number(struct log *log, struct buf *out, double v)
{
    bool finite = v - v == 0; /* JSON has no others: they become strings */
    if (log->json && !finite)
        buf_addc(out, '"');
    buf_add_double(out, v);
    if (log->json && !finite)
        buf_addc(out, '"');
}

static void add_key(struct log *log, struct buf *out, const char *key)
{
    if (log->json)
        buf_addf(out, ",\"%s\":", key);
    else if (log->colour)
        buf_addf(out, " %s%s%s=", colour_key, key, colour_off);
    else
        buf_addf(out, " %s=", key);
}

static bool is_reserved(const char *key)
{
    return strcmp(key, "time") == 0 || strcmp(key, "level") == 0 || strcmp(key, "msg") == 0 ||
           strcmp(key, "repeated") == 0;
}

static void add_field(struct log *log, struct buf *out, const struct log_field *f)
{
    KV_ASSERT(!is_reserved(f->key));
    add_key(log, out, f->key);
    if (f->type == LOG_FIELD_SECRET || redact_name(str_of(f->key))) {
        buf_addz(out, log->json ? "\"" REDACTED "\"" : REDACTED);
        return;
    }
    switch (f->type) {
    case LOG_FIELD_STR:
        add_text(log, out, f->str);
        return;
    case LOG_FIELD_INT:
        buf_addf(out, "%lld", (long long)f->integer);
        return;
    case LOG_FIELD_FLOAT:
        add_number(log, out, f->number);
        return;
    case LOG_FIELD_BOOL:
        buf_addz(out, f->truth ? "true" : "false");
        return;
    case LOG_FIELD_DURATION:
        add_number(log, out, (double)f->integer / 1e9);
        if (!log->json)
            buf_addc(out, 's');
        return;
    case LOG_FIELD_ERR:
        add_text(log, out, str_of(f->err->text));
        add_key(log, out, "errorKind");
        add_text(log, out, str_of(err_kind_name(f->err->kind)));
        return;
    case LOG_FIELD_SECRET:
        break; /* handled above */
    }
    KV_UNREACHABLE();
}

static void render_fields(struct log *log, struct buf *out, const struct log_field *fields,
                          size_t field_count)
{
    buf_clear(out);
    for (size_t i = 0; i < field_count; i++)
        add_field(log, out, &fields[i]);
}

/* --- lines --- */

static void format_time(int64_t wall_us, bool json, char out[TIME_BYTES_MAX])
{
    int64_t us = wall_us % 1000000;
    time_t s = wall_us / 1000000;
    if (us < 0) { /* before 1970: round down, not to zero */
        us += 1000000;
        s--;
    }
    struct tm tm;
    gmtime_r(&s, &tm);
    size_t n = strftime(out, TIME_BYTES_MAX, json ? "%Y-%m-%dT%H:%M:%S" : "%H:%M:%S", &tm);
    if (json)
        snprintf(out + n, TIME_BYTES_MAX - n, ".%06dZ", (int)us);
    else
        snprintf(out + n, TIME_BYTES_MAX - n, ".%03d", (int)(us / 1000));
}

/* One write. A pipe that is full or gone costs the line, not the program; if that happens inside a
 * line, the next one starts by ending it. */
static void put_line(struct log *log)
{
    struct str left = buf_str(&log->line);
    while (left.len > 0) {
        ssize_t n = write(log->fd, left.p, left.len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            log->line_broken |= left.len < log->line.len;
            atomic_fetch_add_explicit(&log->lost_count, 1, memory_order_relaxed);
            return;
        }
        left = str_sub(left, (size_t)n, left.len);
    }
    log->line_broken = false;
}

static void write_line(struct log *log, enum log_level level, const char *msg, struct str fields,
                       uint64_t repeated)
{
    struct buf *line = &log->line;
    char when[TIME_BYTES_MAX];
    format_time(clock_wall_us(log->clock), log->json, when);

    buf_clear(line);
    if (log->line_broken)
        buf_addc(line, '\n');
    if (log->json) {
        buf_addf(line, "{\"time\":\"%s\",\"level\":\"%s\",\"msg\":", when, levels[level].name);
        buf_add_quoted(line, str_of(msg));
        buf_add(line, fields);
        if (repeated)
            buf_addf(line, ",\"repeated\":%llu", (unsigned long long)repeated);
        buf_addz(line, "}\n");
    } else {
        const char *dim = log->colour ? colour_dim : "", *off = log->colour ? colour_off : "";
        const char *colour = log->colour ? levels[level].colour : "";
        bool bare = fields.len == 0 && repeated == 0;
        buf_addf(line, "%s%s%s %s%s%s %-*s", dim, when, off, colour, levels[level].label, off,
                 bare ? 0 : MESSAGE_COLUMNS, msg);
        buf_add(line, fields);
        if (repeated)
            buf_addf(line, " %s(repeated %llu times)%s", dim, (unsigned long long)repeated, off);
        buf_addc(line, '\n');
    }
    put_line(log);
}

/* --- repeats --- */

static uint64_t mix(uint64_t h, struct str s)
{
    return kv_mix64(h ^ kv_hash(s.p ? s.p : "", s.len));
}

static uint64_t identity_of(enum log_level level, const char *msg, const struct log_field *fields,
                            size_t field_count)
{
    uint64_t h = mix((uint64_t)level, str_of(msg));
    for (size_t i = 0; i < field_count; i++) {
        const struct log_field *f = &fields[i];
        h = mix(h, str_of(f->key));
        if (f->type == LOG_FIELD_STR)
            h = mix(h, f->str);
        else if (f->type == LOG_FIELD_BOOL)
            h = kv_mix64(h ^ f->truth);
        else if (f->type == LOG_FIELD_ERR)
            h = kv_mix64(h ^ (uint64_t)f->err->kind);
    }
    return h;
}

static struct window *window_at(struct log *log, uint32_t i)
{
    return &log->windows[(log->window_first + i) % LOG_WINDOWS_MAX];
}

static void close_oldest_window(struct log *log)
{
    struct window *w = window_at(log, 0);
    if (w->held_count)
        write_line(log, w->level, w->msg, buf_str(&w->held), w->held_count);
    buf_done(&w->held);
    log->window_first = (log->window_first + 1) % LOG_WINDOWS_MAX;
    log->window_count--;
}

/* True if the line repeats one whose window is open: then it is held back there. */
static bool hold_back(struct log *log, enum log_level level, const char *msg,
                      const struct log_field *fields, size_t field_count)
{
    int64_t now_ns = clock_mono_ns(log->clock), closes_ns;
    if (__builtin_add_overflow(now_ns, log->repeat_window_ns, &closes_ns))
        closes_ns = INT64_MAX;
    while (log->window_count && window_at(log, 0)->closes_ns <= now_ns)
        close_oldest_window(log);

    uint64_t identity = identity_of(level, msg, fields, field_count);
    for (uint32_t i = 0; i < log->window_count; i++) {
        struct window *w = window_at(log, i);
        if (w->identity != identity)
            continue;
        w->held_count++;
        render_fields(log, &w->held, fields, field_count);
        return true;
    }
    if (log->window_count == LOG_WINDOWS_MAX)
        close_oldest_window(log);
    *window_at(log, log->window_count++) = (struct window){
        .identity = identity,
        .closes_ns = closes_ns,
        .msg = msg,
        .level = level,
    };
    return false;
}

void log_write(struct log *log, enum log_level level, const char *msg,
               const struct log_field *fields, size_t field_count)
{
    if (!log_enabled(log, level))
        return;
    pthread_mutex_lock(&log->lock);
    if (log->repeat_window_ns == 0 || !hold_back(log, level, msg, fields, field_count)) {
        render_fields(log, &log->fields, fields, field_count);
        write_line(log, level, msg, buf_str(&log->fields), 0);
    }
    pthread_mutex_unlock(&log->lock);
}

void log_flush(struct log *log)
{
    if (!log)
        return;
    pthread_mutex_lock(&log->lock);
    while (log->window_count)
        close_oldest_window(log);
    pthread_mutex_unlock(&log->lock);
}
