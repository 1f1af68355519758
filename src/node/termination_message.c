/* What a container said at its end: a file that was mounted into it, so anything may be in it, or
 * the end of its log. Only the end of either is read. */
#include "node/configs_inner.h"

#define FILE_BYTES_MAX 4096
#define LOG_BYTES_MAX 2048
#define LOG_LINES_MAX 80
#define POD_BYTES_MAX 12288 /* of all containers of a pod together */
/* A line is at most 16 KiB and 50 bytes in front of it, so this holds the last 2048 bytes, or the
 * last 80 lines if they are shorter than that together: 80 * 50 + 2048 + 16384. */
#define LOG_WINDOW_BYTES ((size_t)32 << 10)

/* The last `max` bytes of it, as UTF-8, from the start of a character on. */
static struct str tail(struct arena *arena, struct str text, size_t max)
{
    AUTO_BUF utf8 = { 0 };
    buf_add_utf8(&utf8, text);
    struct str all = buf_str(&utf8);
    size_t from = all.len > max ? all.len - max : 0;
    while (from < all.len && ((unsigned char)all.p[from] & 0xc0) == 0x80)
        from++;
    return arena_str(arena, str_sub(all, from, all.len));
}

/* "2026-01-02T15:04:05.123456789Z stdout F text": the text, with a newline unless it goes on (P).
 */
static void add_line(struct buf *out, struct str line)
{
    struct str time, stream, tags, text;
    if (!str_cut(line, ' ', &time, &text) || !str_cut(text, ' ', &stream, &text) ||
        !str_cut(text, ' ', &tags, &text))
        return; /* not a line of such a log */
    if (!str_eq(stream, STR("stdout")) && !str_eq(stream, STR("stderr")))
        return;
    buf_add(out, text);
    if (!str_starts(tags, STR("P")))
        buf_addc(out, '\n');
}

/* Where the last LOG_LINES_MAX lines start. */
static size_t last_lines(struct str log)
{
    size_t lines = 0, at = log.len;
    if (at > 0 && log.p[at - 1] == '\n')
        at--;
    for (; at > 0; at--) {
        if (log.p[at - 1] == '\n' && ++lines == LOG_LINES_MAX)
            return at;
    }
    return 0;
}

static struct str log_end(struct arena *arena, struct str path, size_t max)
{
    bool whole;
    struct str log = host_file_tail(arena, arena_str(arena, path).p, LOG_WINDOW_BYTES, &whole);
    struct str line, rest;
    if (!whole && str_cut(log, '\n', &line, &rest))
        log = rest; /* the window starts inside a line */
    rest = str_sub(log, last_lines(log), log.len);
    AUTO_BUF text = { 0 };
    bool more;
    do {
        more = str_cut(rest, '\n', &line, &rest);
        add_line(&text, line);
    } while (more);
    return tail(arena, buf_str(&text), max < LOG_BYTES_MAX ? max : LOG_BYTES_MAX);
}

struct str termination_message(struct arena *arena, const struct runtime_container *container,
                               uint32_t containers_in_pod)
{
    size_t max = POD_BYTES_MAX / (containers_in_pod > 0 ? containers_in_pod : 1);
    if (max > FILE_BYTES_MAX)
        max = FILE_BYTES_MAX;
    struct str said = STR("");
    bool whole;
    if (container->termination_message_file.len > 0) {
        const char *path = arena_str(arena, container->termination_message_file).p;
        /* A little more than is kept, so that no character is cut through. */
        said = tail(arena, host_file_tail(arena, path, max + 3, &whole), max);
    }
    if (said.len == 0 && container->exit_code != 0 && container->log_path.len > 0 &&
        str_eq(container->termination_message_policy, STR("FallbackToLogsOnError")))
        said = log_end(arena, container->log_path, max);
    return said;
}
