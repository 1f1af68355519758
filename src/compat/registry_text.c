/* compat/registry_text.c - the little texts that registries and token servers speak in: challenges, links,
 * locations. All of it is from outside, and none of it is trusted to be well formed. */
#include "compat/registry_inner.h"

static struct str skip_space(struct str s)
{
    while (s.len > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = str_sub(s, 1, s.len);
    return s;
}

static bool same_word(struct str a, const char *b)
{
    return a.len == strlen(b) && strncasecmp(a.p, b, a.len) == 0;
}

/* --- challenges --- */

static bool is_token_char(char c)
{
    return char_is_alnum(c) || (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

static struct str take_token(struct str *s)
{
    size_t len = 0;
    while (len < s->len && is_token_char(s->p[len]))
        len++;
    struct str token = str_sub(*s, 0, len);
    *s = str_sub(*s, len, s->len);
    return token;
}

/* Up to a comma or space: more than a token may have, since some forget the quotes around a URL. */
static struct str take_bare(struct str *s)
{
    size_t len = 0;
    while (len < s->len && s->p[len] != ',' && !char_is_space(s->p[len]))
        len++;
    struct str value = str_sub(*s, 0, len);
    *s = str_sub(*s, len, s->len);
    return value;
}

/* A quoted value, with its escapes undone, or a bare one. */
static struct str take_value(struct arena *arena, struct str *s)
{
    if (s->len == 0 || s->p[0] != '"')
        return take_bare(s);
    char *text = arena_alloc(arena, s->len);
    size_t len = 0, at = 1;
    for (; at < s->len && s->p[at] != '"'; at++) {
        if (s->p[at] == '\\' && at + 1 < s->len)
            at++;
        text[len++] = s->p[at];
    }
    *s = str_sub(*s, at + 1, s->len);
    return (struct str){ text, len };
}

static void add_parameter(struct challenge *to, struct str name, struct str value)
{
    if (same_word(name, "realm") && to->realm.len == 0)
        to->realm = value;
    else if (same_word(name, "service") && to->service.len == 0)
        to->service = value;
    else if (same_word(name, "scope") && to->scope.len == 0)
        to->scope = value;
}

/* `Basic realm="a", Bearer realm="b",service="c"`: a word that no `=` follows begins a challenge. */
void challenge_read(struct arena *arena, struct str header, struct challenge *io)
{
    struct challenge ignored = { 0 }, *current = &ignored;
    struct str rest = arena_str(arena, header);
    while ((rest = skip_space(rest)).len > 0) {
        if (rest.p[0] == ',') {
            rest = str_sub(rest, 1, rest.len);
            continue;
        }
        struct str word = take_token(&rest);
        struct str after = skip_space(rest);
        if (word.len == 0) { /* no character of this grammar */
            rest = str_sub(rest, 1, rest.len);
        } else if (after.len > 0 && after.p[0] == '=') {
            rest = skip_space(str_sub(after, 1, after.len));
            add_parameter(current, word, take_value(arena, &rest));
        } else if (same_word(word, "Bearer") && !io->bearer) {
            io->bearer = true;
            current = io;
        } else {
            io->basic |= same_word(word, "Basic");
            ignored = (struct challenge){ 0 };
            current = &ignored;
        }
    }
}

/* --- links --- */

static bool is_next(struct str parameters)
{
    for (struct str part, rest = parameters; rest.len > 0;) {
        struct str name, value;
        if (!str_cut(rest, ';', &part, &rest))
            rest = STR("");
        if (!str_cut(part, '=', &name, &value) || !same_word(str_trim(name), "rel"))
            continue;
        value = str_trim(value);
        if (value.len >= 2 && value.p[0] == '"' && value.p[value.len - 1] == '"')
            value = str_sub(value, 1, value.len - 2);
        return same_word(value, "next");
    }
    return false;
}

/* `<url>; rel="next", <other>; rel="prev"`: a comma within the brackets is part of the URL. */
bool link_next(struct str header, struct str *out)
{
    for (;;) {
        struct str url, parameters, before;
        if (!str_cut(header, '<', &before, &header) || !str_cut(header, '>', &url, &header))
            return false;
        if (!str_cut(header, ',', &parameters, &before))
            parameters = header;
        if (is_next(parameters)) {
            *out = str_trim(url);
            return true;
        }
    }
}

/* --- URLs --- */

static bool has_scheme(struct str location)
{
    struct str scheme, rest;
    return str_cut(location, ':', &scheme, &rest) && str_starts(rest, STR("//")) &&
           str_find(scheme, '/') < 0 && str_find(scheme, '?') < 0;
}

int url_join(struct str base, struct str location, struct buf *out, struct err *err)
{
    struct http_url from, to;
    size_t start = out->len;
    str_cut(location, '#', &location, &(struct str){ 0 });
    if (http_url_parse(base, &from, err) < 0)
        return -1;
    if (location.len == 0)
        return err_set(err, ERR_INVALID, "an empty address to go on to");

    if (str_starts(location, STR("//"))) {
        buf_addz(out, from.tls ? "https:" : "http:");
    } else if (!has_scheme(location)) {
        struct str path = from.rest;
        str_cut(path, '?', &path, &(struct str){ 0 });
        if (location.p[0] == '/')
            path = STR("");
        else if (location.p[0] != '?')
            while (path.len > 0 && path.p[path.len - 1] != '/')
                path.len--;
        buf_addf(out, "%s://%.*s%.*s", from.tls ? "https" : "http", STR_ARG(from.authority),
                 STR_ARG(path));
        if (path.len == 0 && location.p[0] != '/')
            buf_addc(out, '/');
    }
    buf_add(out, location);
    return http_url_parse(str_sub(buf_str(out), start, out->len), &to, err);
}

bool url_same_origin(struct str a, struct str b)
{
    struct http_url x, y;
    return http_url_parse(a, &x, NULL) == 0 && http_url_parse(b, &y, NULL) == 0 && x.tls == y.tls &&
           x.port == y.port && x.host.len == y.host.len &&
           strncasecmp(x.host.p, y.host.p, x.host.len) == 0;
}

void url_escape(struct str text, struct buf *out)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.p[i];
        if (char_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~')
            buf_addc(out, c);
        else
            buf_addf(out, "%%%02X", (unsigned)(unsigned char)c);
    }
}

/* --- names --- */

void referrers_tag(struct str digest, struct buf *out)
{
    struct str algorithm, hex;
    size_t start = out->len;
    str_cut(digest, ':', &algorithm, &hex);
    buf_addf(out, "%.*s-%.*s", STR_ARG(str_sub(algorithm, 0, 32)), STR_ARG(str_sub(hex, 0, 64)));
    for (size_t i = start; i < out->len; i++)
        if (!char_is_alnum(out->p[i]) && out->p[i] != '_' && out->p[i] != '.')
            out->p[i] = '-';
}

struct str media_type_only(struct str content_type)
{
    struct str type;
    str_cut(content_type, ';', &type, &(struct str){ 0 });
    return str_trim(type);
}

bool host_glob(struct str pattern, struct str host)
{
    size_t p = 0, h = 0, star = SIZE_MAX, resume = 0;
    while (h < host.len) {
        if (p < pattern.len && pattern.p[p] == '*') {
            star = p++;
            resume = h;
        } else if (p < pattern.len && char_lower(pattern.p[p]) == char_lower(host.p[h])) {
            p++;
            h++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            h = ++resume;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.p[p] == '*')
        p++;
    return p == pattern.len;
}
