/* net/http_text.c - the little text of HTTP that we read and check ourselves. libcurl reads replies;
 * what it is given to send must not contain what would end a line early. */
#include "net/http_inner.h"

#define URL_BYTES_MAX ((size_t)64 << 10)
#define METHOD_BYTES_MAX 16

/* --- URLs --- */

static bool is_host_char(char c, bool bracketed)
{
    if (bracketed)
        return char_is_alnum(c) || c == ':' || c == '.' || c == '%' || c == '-' || c == '_';
    return char_is_alnum(c) || c == '.' || c == '-' || c == '_';
}

static bool is_host(struct str host)
{
    bool bracketed = host.len > 2 && host.p[0] == '[' && host.p[host.len - 1] == ']';
    struct str inner = bracketed ? str_sub(host, 1, host.len - 2) : host;
    for (size_t i = 0; i < inner.len; i++)
        if (!is_host_char(inner.p[i], bracketed))
            return false;
    return inner.len > 0;
}

static bool split_authority(struct http_url *url)
{
    struct str text = url->authority;
    size_t host_len = 0;
    if (text.len > 0 && text.p[0] == '[')
        host_len = (size_t)(str_find(text, ']') + 1); /* 0: it does not close */
    else
        while (host_len < text.len && text.p[host_len] != ':')
            host_len++;
    url->host = str_sub(text, 0, host_len);
    url->port = url->tls ? 443 : 80;
    if (!is_host(url->host))
        return false;
    if (host_len == text.len)
        return true;

    int64_t port;
    struct str digits = str_sub(text, host_len + 1, text.len);
    if (text.p[host_len] != ':' || digits.len == 0 || !char_is_digit(digits.p[0]) ||
        !str_to_i64(digits, &port) || port < 1 || port > UINT16_MAX)
        return false;
    url->port = (uint16_t)port;
    return true;
}

int http_url_parse(struct str url, struct http_url *out, struct err *err)
{
    struct http_url parsed = { .tls = str_starts(url, STR("https://")) };
    size_t authority = parsed.tls ? 8 : 7;

    if (!parsed.tls && !str_starts(url, STR("http://")))
        return err_set(err, ERR_INVALID, "%s is no http:// or https:// URL", STR_SHOWN(url));
    if (url.len > URL_BYTES_MAX)
        return err_set(err, ERR_INVALID, "a URL of %zu bytes is too long", url.len);
    for (size_t i = 0; i < url.len; i++)
        if ((unsigned char)url.p[i] <= ' ' || url.p[i] == 0x7f)
            return err_set(err, ERR_INVALID, "URL %s: it contains a space or control character",
                           STR_SHOWN(url));

    size_t end = authority;
    while (end < url.len && url.p[end] != '/' && url.p[end] != '?' && url.p[end] != '#')
        end++;
    parsed.authority = str_sub(url, authority, end - authority);
    parsed.rest = str_sub(url, end, url.len);
    if (str_find(parsed.authority, '@') >= 0)
        return err_set(err, ERR_INVALID, "a URL with a user name in it is not taken");
    if (!split_authority(&parsed))
        return err_set(err, ERR_INVALID, "URL %s: %s is no host or host:port", STR_SHOWN(url),
                       STR_SHOWN(parsed.authority));
    *out = parsed;
    return 0;
}

/* --- requests --- */

static bool is_token_char(char c)
{
    return char_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.len; i++)
        if (!is_token_char(s.p[i]))
            return false;
    return s.len > 0;
}

static bool same_name(struct str a, struct str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (char_lower(a.p[i]) != char_lower(b.p[i]))
            return false;
    return true;
}

static int check_header(struct http_header header, struct err *err)
{
    if (!is_token(header.name))
        return err_set(err, ERR_INVALID, "%s is no name of a header", STR_SHOWN(header.name));
    if (same_name(header.name, STR("Content-Length")) ||
        same_name(header.name, STR("Transfer-Encoding")))
        return err_set(err, ERR_INVALID, "header %.*s is the client's own", STR_ARG(header.name));
    /* The value may be a secret: it is not shown. */
    for (size_t i = 0; i < header.value.len; i++) {
        unsigned char c = (unsigned char)header.value.p[i];
        if ((c < ' ' && c != '\t') || c == 0x7f)
            return err_set(err, ERR_INVALID, "header %.*s: its value has a control character",
                           STR_ARG(header.name));
    }
    return 0;
}

int http_request_check(const struct http_request *request, struct err *err)
{
    struct str method = str_of(request->method);
    if (!is_token(method) || method.len > METHOD_BYTES_MAX)
        return err_set(err, ERR_INVALID, "%s is no method", STR_SHOWN(method));
    for (uint32_t i = 0; i < request->header_count; i++)
        if (check_header(request->headers[i], err) < 0)
            return -1;
    return 0;
}

/* --- replies --- */

struct str http_head_find_at(struct str head, struct str name, uint32_t ix)
{
    while (head.len > 0) {
        struct str line, key, value;
        if (!str_cut(head, '\n', &line, &head))
            head.len = 0;
        if (str_cut(line, ':', &key, &value) && same_name(key, name) && ix-- == 0)
            return str_trim(value);
    }
    return STR_NONE;
}

#define RETRY_AFTER_S_MAX ((int64_t)365 * 86400) /* beyond it nobody means what they say */

int64_t http_retry_after_parse(struct str value, int64_t wall_us)
{
    struct str rest = value;
    struct str digits = str_take_digits(&rest);
    int64_t seconds;
    if (digits.len > 0 && rest.len == 0) {
        if (!str_to_i64(digits, &seconds) || seconds > RETRY_AFTER_S_MAX)
            seconds = RETRY_AFTER_S_MAX;
        return seconds * 1000000000;
    }

    char date[64]; /* twice the longest form */
    if (value.len == 0 || value.len >= sizeof date || memchr(value.p, '\0', value.len) ||
        !char_is_alpha(value.p[0])) /* a day's name; or curl_getdate takes "1994" for a date */
        return -1;
    if (curl_load(NULL) < 0)
        return -1;
    memcpy(date, value.p, value.len);
    date[value.len] = '\0';
    int64_t at_s = (int64_t)libcurl.getdate(date, NULL);
    if (at_s < 0)
        return -1;
    int64_t wait_us = at_s * 1000000 - wall_us;
    if (wait_us <= 0)
        return 0;
    return wait_us < RETRY_AFTER_S_MAX * 1000000 ? wait_us * 1000 : RETRY_AFTER_S_MAX * 1000000000;
}
