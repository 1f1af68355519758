/* Three bytes are four letters; a last group of one or two bytes is two or three letters and
 * padding. The decoder checks that the unused bits of such a group are zero, so that no two texts
 * decode to the same bytes. */
#include "codec/base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct str bytes, struct buf *out)
{
    const unsigned char *in = (const unsigned char *)bytes.p;
    buf_reserve(out, (bytes.len + 2) / 3 * 4);
    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t group = (uint32_t)in[i] << 16;
        if (left > 1)
            group |= (uint32_t)in[i + 1] << 8;
        if (left > 2)
            group |= in[i + 2];
        buf_addc(out, alphabet[group >> 18]);
        buf_addc(out, alphabet[group >> 12 & 63]);
        buf_addc(out, left > 1 ? alphabet[group >> 6 & 63] : '=');
        buf_addc(out, left > 2 ? alphabet[group & 63] : '=');
    }
}

static int value_of(char c)
{
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* `letters` (2 to 4) of the group at `p`, as 24 bits. False: some are not of the alphabet. */
static bool read_group(const char *p, size_t letters, uint32_t *out)
{
    *out = 0;
    for (size_t i = 0; i < letters; i++) {
        int v = value_of(p[i]);
        if (v < 0)
            return false;
        *out |= (uint32_t)v << (18 - 6 * i);
    }
    return true;
}

static int invalid(const char *what, size_t at, struct buf *out, size_t out_len, struct err *err)
{
    if (out->p) { /* nothing is written on failure */
        out->len = out_len;
        out->p[out_len] = '\0';
    }
    return err_set(err, ERR_INVALID, "not base64, near offset %zu: %s", at, what);
}

int base64_decode(struct str text, struct buf *out, struct err *err)
{
    size_t before = out->len;
    if (text.len % 4 != 0)
        return invalid("the length is not a multiple of four", text.len, out, before, err);
    buf_reserve(out, text.len / 4 * 3);
    for (size_t i = 0; i < text.len; i += 4) {
        const char *p = text.p + i;
        size_t letters = 4;
        if (i + 4 == text.len)
            letters = p[3] != '=' ? 4 : p[2] != '=' ? 3 : 2;
        uint32_t group;
        if (!read_group(p, letters, &group))
            return invalid("a character outside the alphabet", i, out, before, err);
        /* Two letters are one byte and four bits, three are two bytes and two bits. */
        if (group & (0xffffffU >> (8 * (letters - 1))))
            return invalid("unused bits that are not zero", i, out, before, err);
        char bytes[3] = { (char)(group >> 16), (char)(group >> 8), (char)group };
        buf_add(out, (struct str){ bytes, letters - 1 });
    }
    return 0;
}
