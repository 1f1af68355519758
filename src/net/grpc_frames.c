/* net/grpc_frames.c - pieces are appended, messages leave at the front.
 *
 * One buffer: a message is never copied to be put together. The bytes given out stay in front until
 * they are the larger half, then the rest moves down; so every byte moves at most about once.
 */
#include "net/grpc_frames.h"

#include <stdio.h>

#define BYTES_KEPT ((size_t)64 << 10) /* of an empty buffer; one that held more is given back */

/* Room for a message is made at once when its prefix says how much; but not very much on a word. */
#define RESERVED_MAX ((size_t)1 << 20)

/* --- messages --- */

size_t grpc_frames_bytes(const struct grpc_frames *frames)
{
    return frames->bytes.len - frames->taken;
}

/* Bytes of the first message with its prefix; 0: the prefix is not whole. */
static size_t first_bytes(const struct grpc_frames *frames)
{
    if (grpc_frames_bytes(frames) < GRPC_PREFIX_BYTES)
        return 0;
    const uint8_t *at = (const uint8_t *)frames->bytes.p + frames->taken;
    return GRPC_PREFIX_BYTES +
           ((size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4]);
}

void grpc_frames_add(struct grpc_frames *frames, struct str piece)
{
    if (frames->taken > frames->bytes.len / 2) {
        size_t rest = frames->bytes.len - frames->taken;
        memmove(frames->bytes.p, frames->bytes.p + frames->taken, rest);
        buf_cut(&frames->bytes, rest);
        frames->taken = 0;
    }
    buf_add(&frames->bytes, piece);

    size_t bytes = grpc_frames_bytes(frames), first = first_bytes(frames);
    if (first > bytes && first <= RESERVED_MAX &&
        first - GRPC_PREFIX_BYTES <= frames->message_bytes_max)
        buf_reserve(&frames->bytes, first - bytes);
}

int grpc_frames_peek(const struct grpc_frames *frames, struct str *message, struct err *err)
{
    size_t bytes = first_bytes(frames);
    if (bytes == 0)
        return 0;
    const char *at = frames->bytes.p + frames->taken;
    if (at[0] != 0)
        return err_set(err, ERR_INTERNAL, "the server sent a compressed message (flag %d)",
                       (uint8_t)at[0]);
    size_t len = bytes - GRPC_PREFIX_BYTES;
    if (len > frames->message_bytes_max)
        return err_set(err, ERR_CAPACITY, "the server sent a message of %zu bytes, more than %zu",
                       len, frames->message_bytes_max);
    if (grpc_frames_bytes(frames) < bytes)
        return 0;
    *message = (struct str){ at + GRPC_PREFIX_BYTES, len };
    return 1;
}

void grpc_frames_drop(struct grpc_frames *frames)
{
    size_t bytes = first_bytes(frames);
    KV_ASSERT(bytes > 0);
    KV_ASSERT(bytes <= grpc_frames_bytes(frames));
    frames->taken += bytes;
    if (frames->taken < frames->bytes.len)
        return;
    frames->taken = 0;
    if (frames->bytes.cap > BYTES_KEPT)
        buf_done(&frames->bytes);
    else
        buf_clear(&frames->bytes);
}

size_t grpc_frames_behind(const struct grpc_frames *frames)
{
    size_t bytes = grpc_frames_bytes(frames), first = first_bytes(frames);
    return first > 0 && bytes > first ? bytes - first : 0;
}

void grpc_frames_done(struct grpc_frames *frames)
{
    buf_done(&frames->bytes);
    frames->taken = 0;
}

void grpc_frames_write(struct buf *out, struct str message)
{
    KV_ASSERT(message.len <= UINT32_MAX);
    char prefix[GRPC_PREFIX_BYTES] = { 0, (char)(message.len >> 24), (char)(message.len >> 16),
                                       (char)(message.len >> 8), (char)message.len };
    buf_reserve(out, sizeof prefix + message.len);
    buf_add(out, (struct str){ prefix, sizeof prefix });
    buf_add(out, message);
}

/* --- texts --- */

static int hex_value(char c)
{
    if (char_is_digit(c))
        return c - '0';
    c = char_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Of "%41"; -1: that is not what s is, and so it stands for itself. */
static int percent_value(struct str s)
{
    if (s.len < 3 || s.p[0] != '%')
        return -1;
    int high = hex_value(s.p[1]), low = hex_value(s.p[2]);
    return high < 0 || low < 0 ? -1 : high * 16 + low;
}

/* What a terminal obeys becomes blank: C0, DEL, and U+0080 to U+009F. */
static void blank_controls(struct buf *text)
{
    for (size_t i = 0; i < text->len; i++) {
        uint8_t byte = (uint8_t)text->p[i];
        bool c1 = byte == 0xc2 && i + 1 < text->len && (uint8_t)text->p[i + 1] < 0xa0;
        if (byte < 0x20 || byte == 0x7f || c1)
            text->p[i] = ' ';
        if (c1)
            text->p[++i] = ' ';
    }
}

void grpc_message_decode(struct str value, size_t bytes_max, struct buf *out)
{
    AUTO_BUF raw = { 0 };
    for (size_t i = 0; i < value.len && raw.len < bytes_max; i++) {
        int byte = percent_value(str_sub(value, i, 3));
        if (byte >= 0)
            i += 2;
        buf_addc(&raw, byte >= 0 ? (char)byte : value.p[i]);
    }
    buf_clear(out);
    buf_add_utf8(out, buf_str(&raw));
    buf_cut(out, str_utf8_cut(buf_str(out), bytes_max));
    blank_controls(out);
}

size_t grpc_timeout_format(int64_t ns, char out[GRPC_TIMEOUT_TEXT_MAX])
{
    static const struct {
        int64_t ns;
        char name;
    } units[] = {
        { 1, 'n' },
        { 1000, 'u' },
        { 1000000, 'm' },
        { 1000000000, 'S' },
        { 60 * (int64_t)1000000000, 'M' },
        { 3600 * (int64_t)1000000000, 'H' },
    };
    int64_t count = ns > 0 ? ns : 1;
    size_t unit = 0;
    while (count > 99999999) /* INT64_MAX is 2.6 million hours: it ends */
        count = ns / units[++unit].ns;
    return (size_t)snprintf(out, GRPC_TIMEOUT_TEXT_MAX, "%u%c", (unsigned)count, units[unit].name);
}
