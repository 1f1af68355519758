/* Reading from both ends: what follows `@` is the digest, what precedes the first `/` may be a host,
 * and a colon after the last `/` starts the tag. What is left is the path. Each piece has its own
 * grammar, and is checked by itself so that a message can name it.
 *
 * Two spellings of one image must give one reference, since caches and allow-lists compare them: the
 * host is in lower case, and docker.io has one name. */
#include "compat/reference.h"

#include "net/digest.h"

#include <arpa/inet.h>

#define HUB "docker.io"
#define HUB_OLD "index.docker.io" /* of the first protocol; still written now and then */
#define HUB_HOST "registry-1.docker.io"

struct parser {
    struct str text; /* all of it, for messages */
    struct err *err;
};

static int refuse(const struct parser *p, const char *what, struct str piece, const char *why)
{
    return err_set(p->err, ERR_INVALID, "image %s: %s %s %s", STR_SHOWN(p->text), what,
                   STR_SHOWN(piece), why);
}

static bool is_lower_alnum(char c)
{
    return char_is_digit(c) || (c >= 'a' && c <= 'z');
}

/* --- the host --- */

static const char *label_problem(struct str label)
{
    if (label.len == 0)
        return "has an empty label";
    for (size_t i = 0; i < label.len; i++) {
        if (!char_is_alnum(label.p[i]) && label.p[i] != '-')
            return "may have only letters, digits, dashes and dots";
    }
    if (label.p[0] == '-' || label.p[label.len - 1] == '-')
        return "has a label that starts or ends with a dash";
    return NULL;
}

static bool is_ipv6(struct str text)
{
    char address[INET6_ADDRSTRLEN];
    struct in6_addr ignored;
    if (text.len >= sizeof address || memchr(text.p, '\0', text.len))
        return false;
    memcpy(address, text.p, text.len);
    address[text.len] = '\0';
    return inet_pton(AF_INET6, address, &ignored) == 1;
}

static const char *host_name_problem(struct str name)
{
    if (name.len > 2 && name.p[0] == '[' && name.p[name.len - 1] == ']')
        return is_ipv6(str_sub(name, 1, name.len - 2)) ? NULL : "is not an IPv6 address";
    struct str label, rest = name;
    for (bool more = true; more;) {
        more = str_cut(rest, '.', &label, &rest);
        const char *problem = label_problem(label);
        if (problem)
            return problem;
    }
    return NULL;
}

static const char *port_problem(struct str port)
{
    int64_t number;
    struct str rest = port;
    bool digits = str_take_digits(&rest).len == port.len;
    if (!digits || !str_to_i64(port, &number) || number < 1 || number > 65535)
        return "has a port that is not a number from 1 to 65535";
    return NULL;
}

static const char *host_problem(struct str host)
{
    size_t name_len = host.len;
    for (size_t i = host.len; i > 0 && host.p[i - 1] != ']'; i--) {
        if (host.p[i - 1] == ':')
            name_len = i - 1; /* the first after a bracket: there is only one */
    }
    if (name_len < host.len) {
        const char *problem = port_problem(str_sub(host, name_len + 1, host.len));
        if (problem)
            return problem;
    }
    return host_name_problem(str_sub(host, 0, name_len));
}

static bool is_host(struct str part)
{
    return str_find(part, '.') >= 0 || str_find(part, ':') >= 0 ||
           reference_glob(STR("localhost"), part);
}

static int take_host(const struct parser *p, struct arena *arena, struct str *rest,
                     struct reference *out)
{
    struct str first, path;
    out->registry = STR(HUB);
    if (str_cut(*rest, '/', &first, &path) && is_host(first)) {
        const char *problem = host_problem(first);
        if (problem)
            return refuse(p, "registry", first, problem);
        char *lower = arena_alloc(arena, first.len + 1);
        for (size_t i = 0; i < first.len; i++)
            lower[i] = char_lower(first.p[i]);
        out->registry = (struct str){ lower, first.len };
        *rest = path;
    }
    if (str_eqz(out->registry, HUB_OLD))
        out->registry = STR(HUB);
    out->host = str_eqz(out->registry, HUB) ? STR(HUB_HOST) : out->registry;
    return 0;
}

/* --- the path --- */

/* A separator is one dot, one or two underscores, or any number of dashes, between letters or digits. */
static const char *separator_problem(struct str run)
{
    static const char mixed[] = "has separators that may not follow each other";
    for (size_t i = 0; i < run.len; i++) {
        if (run.p[i] != run.p[0])
            return mixed;
    }
    if ((run.p[0] == '.' && run.len > 1) || (run.p[0] == '_' && run.len > 2))
        return mixed;
    return NULL;
}

static const char *part_problem(struct str part)
{
    if (part.len == 0)
        return "has an empty part";
    for (size_t i = 0; i < part.len; i++) {
        char c = part.p[i];
        if (c >= 'A' && c <= 'Z')
            return "has an upper-case letter, expected lower case";
        if (!is_lower_alnum(c) && c != '.' && c != '_' && c != '-')
            return "may have only lower-case letters, digits, '.', '_', '-' and '/'";
    }
    if (!is_lower_alnum(part.p[0]) || !is_lower_alnum(part.p[part.len - 1]))
        return "has a part that does not start and end with a letter or digit";
    for (size_t i = 0; i < part.len; i++) {
        size_t end = i;
        while (!is_lower_alnum(part.p[end]))
            end++;
        const char *problem = end > i ? separator_problem(str_sub(part, i, end - i)) : NULL;
        if (problem)
            return problem;
        i = end;
    }
    return NULL;
}

static int take_path(const struct parser *p, struct arena *arena, struct str path,
                     struct reference *out)
{
    struct str part, rest = path;
    for (bool more = true; more;) {
        more = str_cut(rest, '/', &part, &rest);
        const char *problem = part_problem(part);
        if (problem)
            return refuse(p, "name", path, problem);
    }
    bool in_library = str_eqz(out->registry, HUB) && str_find(path, '/') < 0;
    out->repository =
        in_library ? arena_strf(arena, "library/%.*s", STR_ARG(path)) : arena_str(arena, path);
    if (out->registry.len + 1 + out->repository.len > REFERENCE_NAME_MAX)
        return err_set(p->err, ERR_INVALID,
                       "image %s: registry and name have %zu bytes, at most %d are allowed",
                       STR_SHOWN(p->text), out->registry.len + 1 + out->repository.len,
                       REFERENCE_NAME_MAX);
    return 0;
}

/* --- tag and digest --- */

static const char *tag_problem(struct str tag)
{
    if (tag.len == 0)
        return "is empty";
    if (tag.len > REFERENCE_TAG_MAX)
        return "is longer than 128 characters";
    for (size_t i = 0; i < tag.len; i++) {
        char c = tag.p[i];
        if (!char_is_alnum(c) && c != '_' && !(i > 0 && (c == '.' || c == '-')))
            return "may have only letters, digits, '_', and after the first '.' and '-'";
    }
    return NULL;
}

static int take_tag(const struct parser *p, struct arena *arena, struct str *rest,
                    struct reference *out)
{
    size_t at = rest->len;
    while (at > 0 && rest->p[at - 1] != ':' && rest->p[at - 1] != '/')
        at--;
    if (at == 0 || rest->p[at - 1] != ':') {
        out->tag = out->digest.len ? STR("") : STR("latest");
        return 0;
    }
    struct str tag = str_sub(*rest, at, rest->len);
    const char *problem = tag_problem(tag);
    if (problem)
        return refuse(p, "tag", tag, problem);
    out->tag = arena_str(arena, tag);
    *rest = str_sub(*rest, 0, at - 1);
    return 0;
}

static int take_digest(const struct parser *p, struct arena *arena, struct str *rest,
                       struct reference *out)
{
    struct str digest;
    out->digest = STR("");
    if (!str_cut(p->text, '@', rest, &digest))
        return 0;
    if (!digest_is_valid(digest, NULL))
        return refuse(p, "digest", digest,
                      "is none, expected sha256: and 64 or sha512: and 128 lower-case hex digits");
    out->digest = arena_str(arena, digest);
    return 0;
}

/* The name of an image on one machine, which runtimes refuse as a name since it could be either. */
static bool is_image_id(struct str text)
{
    char digest[7 + 64] = "sha256:";
    if (text.len != 64)
        return false;
    memcpy(digest + 7, text.p, text.len);
    return digest_is_valid((struct str){ digest, sizeof digest }, NULL);
}

int reference_parse(struct arena *arena, struct str text, struct reference *out, struct err *err)
{
    struct parser p = { text, err };
    struct reference ref;
    struct str rest;
    if (text.len == 0)
        return err_set(err, ERR_INVALID, "an image's name is empty");
    if (text.len > REFERENCE_BYTES_MAX)
        return err_set(err, ERR_INVALID, "image %s: has %zu bytes, at most %d are allowed",
                       STR_SHOWN(text), text.len, REFERENCE_BYTES_MAX);
    if (is_image_id(text))
        return err_set(err, ERR_INVALID, "image %s: is the id of an image, not a name",
                       STR_SHOWN(text));
    if (take_digest(&p, arena, &rest, &ref) < 0 || take_tag(&p, arena, &rest, &ref) < 0 ||
        take_host(&p, arena, &rest, &ref) < 0 || take_path(&p, arena, rest, &ref) < 0)
        return -1;
    *out = ref;
    return 0;
}

void reference_format(const struct reference *ref, struct buf *out)
{
    struct str which = reference_which(ref);
    buf_addf(out, "%.*s/%.*s%c%.*s", STR_ARG(ref->registry), STR_ARG(ref->repository),
             ref->digest.len ? '@' : ':', STR_ARG(which));
}

struct str reference_which(const struct reference *ref)
{
    return ref->digest.len ? ref->digest : ref->tag;
}

/* --- patterns --- */

/* What a star took is lengthened by one when the rest does not fit; only the last star needs that,
 * so the work is bounded by the product of the lengths. */
bool reference_glob(struct str pattern, struct str text)
{
    size_t p = 0, t = 0, star = SIZE_MAX, star_end = 0;
    while (t < text.len) {
        if (p < pattern.len && pattern.p[p] == '*') {
            star = p++;
            star_end = t;
        } else if (p < pattern.len &&
                   (pattern.p[p] == '?' || char_lower(pattern.p[p]) == char_lower(text.p[t]))) {
            p++;
            t++;
        } else if (star != SIZE_MAX) {
            p = star + 1;
            t = ++star_end;
        } else {
            return false;
        }
    }
    while (p < pattern.len && pattern.p[p] == '*')
        p++;
    return p == pattern.len;
}

static bool is_under(const struct reference *ref, struct str pattern)
{
    struct str glob, part = ref->registry, globs, parts = ref->repository;
    bool more_globs = str_cut(pattern, '/', &glob, &globs);
    for (bool more_parts = true;;) {
        if (glob.len == 0 || !reference_glob(glob, part))
            return false;
        if (!more_globs || globs.len == 0)
            return true;
        if (!more_parts)
            return false;
        more_globs = str_cut(globs, '/', &glob, &globs);
        more_parts = str_cut(parts, '/', &part, &parts);
    }
}

bool reference_is_under(const struct reference *ref, const struct str_list *patterns)
{
    for (uint32_t i = 0; i < patterns->count; i++) {
        if (is_under(ref, patterns->items[i]))
            return true;
    }
    return false;
}
