/* store/kube_path.c - where an API server keeps what. */
#include "store/kube_client.h"

#include "api/object.h"

static bool is_unreserved(char c)
{
    return char_is_alnum(c) || c == '-' || c == '.' || c == '_' || c == '~';
}

static void add_encoded(struct buf *out, struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if (is_unreserved(s.p[i]))
            buf_addc(out, s.p[i]);
        else
            buf_addf(out, "%%%02X", (unsigned)(unsigned char)s.p[i]);
    }
}

/* The server refuses these, too, but "." and ".." would not even get there as they are. */
static int add_segment(struct buf *out, const char *what, struct str s, struct err *err)
{
    bool bad =
        str_eqz(s, ".") || str_eqz(s, "..") || str_find(s, '/') >= 0 || str_find(s, '%') >= 0;
    if (bad)
        return err_set(err, ERR_INVALID, "%s is not a %s", STR_SHOWN(s), what);
    buf_addc(out, '/');
    add_encoded(out, s);
    return 0;
}

void kube_path_group(const struct kind *kind, struct buf *out)
{
    if (kind->group[0] == '\0')
        buf_addf(out, "/api/%s", kind->version);
    else
        buf_addf(out, "/apis/%s/%s", kind->group, kind->version);
}

int kube_path(const struct kind *kind, struct str namespace_, struct str name,
              const char *maybe_sub, struct buf *out, struct err *err)
{
    kube_path_group(kind, out);
    if (kind->namespaced && namespace_.len > 0) {
        buf_addz(out, "/namespaces");
        if (add_segment(out, "namespace", namespace_, err) < 0)
            return -1;
    }
    if (kind->namespaced && namespace_.len == 0 && name.len > 0)
        return err_set(err, ERR_INVALID, "%s %s: no namespace", kind->plural, STR_SHOWN(name));
    buf_addf(out, "/%s", kind->plural);
    if (name.len > 0 && add_segment(out, "name", name, err) < 0)
        return -1;
    if (maybe_sub)
        buf_addf(out, "/%s", maybe_sub);
    return 0;
}

void kube_path_query(struct buf *path, const char *key, struct str value)
{
    if (value.len == 0)
        return;
    buf_addf(path, "%c%s=", str_find(buf_str(path), '?') < 0 ? '?' : '&', key);
    add_encoded(path, value);
}
