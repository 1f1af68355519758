/* Requests are written as kubelets write them; of answers only the head counts. Everything that came
 * from outside is taken as it may be: cut off, binary, or meant to mislead. */
#include "node/prober_http.h"

#include "base/err.h"

static bool is_token(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (!char_is_alnum(s.p[i]) && !memchr("!#$%&'*+-.^_`|~", s.p[i], 15))
            return false;
    }
    return s.len > 0;
}

/* Nothing that ends the line, or the text. */
static bool is_line(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.p[i] < ' ' && s.p[i] != '\t')
            return false;
    }
    return true;
}

static bool header_is(struct str a, const char *name)
{
    size_t len = strlen(name);
    if (a.len != len)
        return false;
    for (size_t i = 0; i < len; i++) {
        if (char_lower(a.p[i]) != char_lower(name[i]))
            return false;
    }
    return true;
}

struct str probe_path(struct arena *arena, struct str path)
{
    AUTO_BUF out = { 0 };
    if (path.len == 0 || path.p[0] != '/')
        buf_addc(&out, '/');
    for (size_t i = 0; i < path.len && path.p[i] != '#'; i++) {
        unsigned char c = (unsigned char)path.p[i];
        if (c <= ' ' || c >= 0x7f || strchr("\"<>\\^`{|}", c))
            buf_addf(&out, "%%%02X", c);
        else
            buf_addc(&out, (char)c);
    }
    return arena_str(arena, buf_str(&out));
}

/* The handler's headers, and ours where it has none. An empty Accept or User-Agent means: do not send.
 * Each attempt has a connection of its own: it shows that connections are still accepted. */
int probe_request_make(struct arena *arena, const struct handler *handler,
                       struct probe_request *out, struct err *err)
{
    struct http_header *headers =
        arena_array(arena, struct http_header, (size_t)handler->headers.count + 3);
    uint32_t count = 0;
    bool accept = false, agent = false, host = false;
    for (uint32_t i = 0; i < handler->headers.count; i++) {
        struct str name = handler->headers.items[i].name, value = handler->headers.items[i].value;
        if (!is_token(name) || !is_line(value))
            return err_set(err, ERR_INVALID, "the header %s cannot be sent", STR_SHOWN(name));
        bool is_accept = header_is(name, "Accept"), is_agent = header_is(name, "User-Agent");
        accept |= is_accept;
        agent |= is_agent;
        host |= header_is(name, "Host");
        bool unwanted = (is_accept || is_agent) && value.len == 0;
        headers[count++] =
            (struct http_header){ .name = arena_str(arena, name),
                                  .value = unwanted ? STR_NONE : arena_str(arena, value) };
    }
    if (!accept)
        headers[count++] = (struct http_header){ STR("Accept"), STR("*/*") };
    if (!agent)
        headers[count++] = (struct http_header){ STR("User-Agent"), STR("kube-probe/karve") };
    headers[count++] = (struct http_header){ STR("Connection"), STR("close") };
    *out = (struct probe_request){ .headers = { headers, count }, .names_host = host };
    return 0;
}

static void add_authority(struct buf *out, const struct probe_target *to)
{
    bool v6 = memchr(to->host.p, ':', to->host.len) != NULL;
    buf_addf(out, "%s%.*s%s:%u", v6 ? "[" : "", STR_ARG(to->host), v6 ? "]" : "", to->port);
}

struct str probe_url(struct arena *arena, const struct probe_target *to)
{
    for (size_t i = 0; i < to->host.len; i++) {
        if (!char_is_alnum(to->host.p[i]) && !memchr(".-_:", to->host.p[i], 4))
            return STR_NONE;
    }
    AUTO_BUF url = { 0 };
    buf_addz(&url, "https://");
    add_authority(&url, to);
    buf_add(&url, to->path);
    return arena_str(arena, buf_str(&url));
}

void probe_request_write(const struct probe_request *request, const struct probe_target *to,
                         struct buf *out)
{
    buf_addf(out, "GET %.*s HTTP/1.1\r\n", STR_ARG(to->path));
    if (!request->names_host) {
        buf_addz(out, "Host: ");
        add_authority(out, to);
        buf_addz(out, "\r\n");
    }
    for (uint32_t i = 0; i < request->headers.count; i++) {
        const struct http_header *header = &request->headers.items[i];
        if (header->value.p)
            buf_addf(out, "%.*s: %.*s\r\n", STR_ARG(header->name), STR_ARG(header->value));
    }
    buf_addz(out, "\r\n");
}

/* --- answers --- */

/* The value of a header in the lines after the first; absent: there is none. */
static struct str find_header(struct str head, const char *name)
{
    struct str line, rest = head;
    while (str_cut(rest, '\n', &line, &rest)) {
        struct str key, value;
        if (str_cut(line, ':', &key, &value) && header_is(key, name))
            return str_trim(value);
    }
    return STR_NONE;
}

/* "HTTP/1.1 200 OK". 0: it is not HTTP. */
static int status_code(struct str head)
{
    struct str version, rest;
    if (!str_starts(head, STR("HTTP/")) || !str_cut(head, ' ', &version, &rest))
        return 0;
    struct str digits = str_take_digits(&rest);
    int64_t code = 0;
    if (digits.len != 3 || !str_to_i64(digits, &code))
        return 0;
    return (int)code;
}

bool probe_is_redirect(int code)
{
    return code == 301 || code == 302 || code == 303 || code == 307 || code == 308;
}

bool probe_answer_read(struct str bytes, struct probe_answer *out)
{
    for (;;) {
        const char *stop = bytes.len ? memmem(bytes.p, bytes.len, "\r\n\r\n", 4) : NULL;
        if (!stop)
            return false;
        struct str head = { bytes.p, (size_t)(stop - bytes.p) + 2 };
        int code = status_code(head);
        if (code >= 100 && code <= 199 && code != 101) {
            bytes = str_sub(bytes, head.len + 2, bytes.len);
            continue;
        }
        struct str location = probe_is_redirect(code) ? find_header(head, "Location") : STR_NONE;
        *out = (struct probe_answer){ .code = code, .location = location };
        return true;
    }
}

/* "host", "host:port", "[::1]:port"; *port stays where none is named. */
static bool split_authority(struct str authority, struct str *host, int64_t *port)
{
    struct str port_text = STR("");
    *host = authority;
    if (authority.len > 0 && authority.p[0] == '[') {
        ptrdiff_t close = str_find(authority, ']');
        if (close < 0)
            return false;
        *host = str_sub(authority, 1, (size_t)close - 1);
        struct str rest = str_sub(authority, (size_t)close + 1, authority.len);
        if (rest.len > 0 && rest.p[0] != ':')
            return false;
        port_text = rest.len > 0 ? str_sub(rest, 1, rest.len) : rest;
    } else {
        str_cut(authority, ':', host, &port_text);
    }
    return port_text.len == 0 || (str_to_i64(port_text, port) && *port >= 1 && *port <= 65535);
}

/* "http://", "https://" or "//" is cut off the location, and says whether it is TLS. False: it has none. */
static bool cut_scheme(struct str *location, bool *https)
{
    static const struct {
        struct str text;
        bool https, says; /* "//" is as before */
    } schemes[] = { { STR("http://"), false, true },
                    { STR("https://"), true, true },
                    { STR("//"), false, false } };
    for (size_t i = 0; i < KV_COUNT_OF(schemes); i++) {
        if (!str_starts(*location, schemes[i].text))
            continue;
        *location = str_sub(*location, schemes[i].text.len, location->len);
        *https = schemes[i].says ? schemes[i].https : *https;
        return true;
    }
    return false;
}

bool probe_redirect(struct arena *arena, struct str location, struct probe_target *target)
{
    bool https = target->https;
    struct str rest = location, host;
    if (cut_scheme(&rest, &https)) {
        size_t len = 0;
        while (len < rest.len && rest.p[len] != '/' && rest.p[len] != '?' && rest.p[len] != '#')
            len++;
        int64_t port = https ? 443 : 80;
        if (!split_authority(str_sub(rest, 0, len), &host, &port) || !str_eq(host, target->host))
            return false;
        target->https = https;
        target->port = (uint16_t)port;
        target->path = probe_path(arena, str_sub(rest, len, rest.len));
        return true;
    }
    /* Relative to the path, or of another scheme: too rare to be worth following. */
    if (location.len == 0 || location.p[0] != '/')
        return false;
    target->path = probe_path(arena, location);
    return true;
}
