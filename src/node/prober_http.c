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

/* A path as it stands in a request: what may not be there is written as %XX. */
static struct str request_path(struct arena *arena, struct str path)
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

/* The handler's headers, and ours where it has none. An empty Accept or User-Agent means: do not send. */
int probe_request_make(struct arena *arena, const struct handler *handler,
                       struct probe_request *out, struct err *err)
{
    AUTO_BUF lines = { 0 };
    bool accept = false, agent = false, host = false;
    for (uint32_t i = 0; i < handler->headers.count; i++) {
        struct str name = handler->headers.items[i].name, value = handler->headers.items[i].value;
        if (!is_token(name) || !is_line(value))
            return err_set(err, ERR_INVALID, "the header %s cannot be sent", STR_SHOWN(name));
        bool is_accept = header_is(name, "Accept"), is_agent = header_is(name, "User-Agent");
        accept |= is_accept;
        agent |= is_agent;
        host |= header_is(name, "Host");
        if ((is_accept || is_agent) && value.len == 0)
            continue;
        buf_addf(&lines, "%.*s: %.*s\r\n", STR_ARG(name), STR_ARG(value));
    }
    if (!accept)
        buf_addz(&lines, "Accept: */*\r\n");
    if (!agent)
        buf_addz(&lines, "User-Agent: kube-probe/karve\r\n");
    *out = (struct probe_request){ .path = request_path(arena, handler->path),
                                   .headers = arena_str(arena, buf_str(&lines)),
                                   .names_host = host };
    return 0;
}

void probe_request_write(const struct probe_request *request, struct str host, uint16_t port,
                         struct buf *out)
{
    buf_addf(out, "GET %.*s HTTP/1.1\r\n", STR_ARG(request->path));
    if (!request->names_host) {
        bool v6 = memchr(host.p, ':', host.len) != NULL;
        buf_addf(out, "Host: %s%.*s%s:%u\r\n", v6 ? "[" : "", STR_ARG(host), v6 ? "]" : "", port);
    }
    buf_add(out, request->headers);
    buf_addz(out, "Connection: close\r\n\r\n");
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
        bool redirect = code == 301 || code == 302 || code == 303 || code == 307 || code == 308;
        *out = (struct probe_answer){ .code = code,
                                      .location =
                                          redirect ? find_header(head, "Location") : STR_NONE };
        return true;
    }
}

/* "host", "host:port", "[::1]:port" */
static bool split_authority(struct str authority, struct str *host, int64_t *port)
{
    struct str port_text = STR("");
    *host = authority;
    *port = 80;
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

enum redirect probe_redirect(struct arena *arena, struct str host, struct str location,
                             uint16_t *port, struct str *path)
{
    if (str_starts(location, STR("https://")))
        return REDIRECT_TLS;
    bool here = str_starts(location, STR("//"));
    if (here || str_starts(location, STR("http://"))) {
        struct str rest = str_sub(location, here ? 2 : 7, location.len);
        size_t len = 0;
        while (len < rest.len && rest.p[len] != '/' && rest.p[len] != '?' && rest.p[len] != '#')
            len++;
        struct str to;
        int64_t to_port;
        if (!split_authority(str_sub(rest, 0, len), &to, &to_port) || !str_eq(to, host))
            return REDIRECT_ELSEWHERE;
        *port = (uint16_t)to_port;
        *path = request_path(arena, str_sub(rest, len, rest.len));
        return REDIRECT_FOLLOW;
    }
    /* Relative to the path, or of another scheme: too rare to be worth following. */
    if (location.len == 0 || location.p[0] != '/')
        return REDIRECT_ELSEWHERE;
    *path = request_path(arena, location);
    return REDIRECT_FOLLOW;
}
