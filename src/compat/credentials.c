/* Keyrings.
 *
 * All texts of a ring lie in one block that never moves and is wiped when the ring goes; what the
 * reading needs besides (the JSON tree, decoded base64) is wiped as well. A joined ring borrows from its
 * parts and keeps them alive, so no secret is in memory twice.
 *
 * Entries are kept best first, whatever they are asked for: which of two entries is more specific does
 * not depend on the repository that both match. */
#include "compat/credentials.h"

#include "codec/base64.h"
#include "codec/json.h"
#include "compat/reference.h"

#include <pthread.h>
#include <sys/random.h>

struct entry {
    struct str host; /* in lower case, perhaps with stars */
    struct str port; /* "": none */
    struct str path; /* without slashes around it; "": all of the host */
    struct credential credential;
    uint32_t stars; /* in the host */
    uint32_t order; /* of equally specific ones */
};

struct keyring {
    struct rc rc;
    struct entry *entries; /* best first */
    uint32_t count;
    uint64_t identity;
    char *texts; /* of its own entries; NULL if it is a joined one */
    size_t texts_cap, texts_len;
    const struct keyring **parts; /* of a joined one */
    uint32_t part_count;
};

static void keyring_free(struct keyring *ring)
{
    if (ring->texts)
        explicit_bzero(ring->texts, ring->texts_cap);
    for (uint32_t i = 0; i < ring->part_count; i++)
        keyring_unref(ring->parts[i]);
    free(ring->parts);
    free(ring->texts);
    free(ring->entries);
    free(ring);
}

const struct keyring *keyring_ref(const struct keyring *ring)
{
    rc_ref(&ring->rc);
    return ring;
}

void keyring_unref(const struct keyring *ring)
{
    if (ring && rc_unref(&ring->rc))
        keyring_free((struct keyring *)ring);
}

/* --- order and identity --- */

static int entry_cmp(const void *left, const void *right)
{
    const struct entry *a = left, *b = right;
    if (a->stars != b->stars)
        return a->stars < b->stars ? -1 : 1;
    if (a->path.len != b->path.len)
        return a->path.len > b->path.len ? -1 : 1;
    if (a->host.len != b->host.len) /* the more letters, the less the stars stand for */
        return a->host.len > b->host.len ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

static uint64_t salt;

static void draw_salt(void)
{
    if (getrandom(&salt, sizeof salt, 0) != (ssize_t)sizeof salt)
        salt = (uint64_t)(uintptr_t)&salt; /* where the system put us is a little random too */
}

static void mix(uint64_t *hash, struct str s)
{
    *hash = kv_mix64(*hash ^ kv_hash_salted(s.p, s.len, salt));
}

static void settle(struct keyring *ring)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, draw_salt);
    for (uint32_t i = 0; i < ring->count; i++)
        ring->entries[i].order = i;
    if (ring->count)
        qsort(ring->entries, ring->count, sizeof *ring->entries, entry_cmp);
    uint64_t hash = salt;
    for (uint32_t i = 0; i < ring->count; i++) {
        const struct entry *e = &ring->entries[i];
        const struct credential *c = &e->credential;
        struct str texts[] = { e->host,     e->port,           e->path,          c->username,
                               c->password, c->identity_token, c->registry_token };
        for (size_t k = 0; k < KV_COUNT_OF(texts); k++)
            mix(&hash, texts[k]);
    }
    ring->identity = ring->count == 0 ? 0 : hash ? hash : 1;
}

uint64_t keyring_identity(const struct keyring *maybe_ring)
{
    return maybe_ring ? maybe_ring->identity : 0;
}

/* --- keys: "https://registry.example:5000/v2/team" --- */

/* No text of the ring is longer than where it stood in what is read, so the block is large enough. */
static struct str keep(struct keyring *ring, struct str s)
{
    char *at = ring->texts + ring->texts_len;
    KV_ASSERT(s.len <= ring->texts_cap - ring->texts_len);
    if (s.len)
        memcpy(at, s.p, s.len);
    ring->texts_len += s.len;
    return (struct str){ at, s.len };
}

static struct str trim_slashes(struct str s)
{
    while (s.len && s.p[0] == '/')
        s = str_sub(s, 1, s.len);
    while (s.len && s.p[s.len - 1] == '/')
        s.len--;
    return s;
}

/* The version of the API that docker writes into keys is no part of a repository's name. */
static struct str path_of(struct str path)
{
    struct str first, rest;
    path = trim_slashes(path);
    str_cut(path, '/', &first, &rest);
    if (str_eqz(first, "v1") || str_eqz(first, "v2"))
        path = rest.p ? trim_slashes(rest) : STR("");
    return path;
}

/* "host:5000", "[::1]:5000" */
static void split_port(struct str address, struct str *host, struct str *port)
{
    size_t at = address.len;
    *host = address;
    *port = STR("");
    while (at > 0 && address.p[at - 1] != ':' && address.p[at - 1] != ']')
        at--;
    if (at == 0 || address.p[at - 1] == ']')
        return;
    *host = str_sub(address, 0, at - 1);
    *port = str_sub(address, at, address.len);
}

static struct str hub_or(struct str host)
{
    bool is_hub = str_eqz(host, "index.docker.io") || str_eqz(host, "registry-1.docker.io");
    return is_hub ? STR("docker.io") : host;
}

static int read_key(struct keyring *ring, struct str key, struct entry *out)
{
    struct str address, path;
    for (size_t i = 0; i < 2; i++) {
        struct str scheme = i == 0 ? STR("https://") : STR("http://");
        if (str_starts(key, scheme))
            key = str_sub(key, scheme.len, key.len);
    }
    key = keep(ring, key);
    if (!str_cut(key, '/', &address, &path))
        path = STR("");
    for (size_t i = 0; i < address.len; i++) {
        char *c = (char *)address.p + i;
        *c = char_lower(*c);
        out->stars += *c == '*' || *c == '?';
    }
    split_port(address, &out->host, &out->port);
    out->host = hub_or(out->host);
    out->path = path_of(path);
    return out->host.len ? 0 : -1;
}

/* --- entries --- */

struct reader {
    const char *name;
    struct keyring *ring;
    uint32_t skipped;
    struct err *err;
};

/* A key may be a URL with a password in it: then it is not quoted. */
static int refuse(const struct reader *r, struct str key, const char *why)
{
    if (str_find(key, '@') >= 0)
        return err_set(r->err, ERR_INVALID, "%s: an entry with a user in its key: %s", r->name,
                       why);
    return err_set(r->err, ERR_INVALID, "%s: entry %s: %s", r->name, STR_SHOWN(key), why);
}

static int read_secret(const struct reader *r, struct str key, const json_val *entry,
                       const char *field, struct str *out)
{
    const json_val *v = json_get(entry, str_of(field));
    *out = STR("");
    if (!v || json_is_null(v))
        return 0;
    if (!json_is_string(v)) {
        AUTO_BUF why = { 0 };
        buf_addf(&why, "%s is not a string", field);
        return refuse(r, key, why.p);
    }
    *out = keep(r->ring, json_str(v));
    return 0;
}

static void wiped_done(struct buf *b)
{
    if (b->p)
        explicit_bzero(b->p, b->cap);
    buf_done(b);
}
#define WIPED_BUF __attribute__((cleanup(wiped_done))) struct buf

/* Tools wrap long lines and leave the padding out: both are fine. */
static int decode(struct str text, struct buf *out)
{
    WIPED_BUF whole = { 0 };
    buf_reserve(&whole, text.len + 4);
    for (size_t i = 0; i < text.len; i++) {
        if (!char_is_space(text.p[i]))
            buf_addc(&whole, text.p[i]);
    }
    while (whole.len % 4)
        buf_addc(&whole, '=');
    return base64_decode(buf_str(&whole), out, NULL);
}

/* base64 of "user:password"; the password may have colons, and NULs at its end are no part of it. */
static int read_auth(const struct reader *r, struct str key, struct str text,
                     struct credential *out)
{
    WIPED_BUF bytes = { 0 };
    struct str user, password;
    if (decode(text, &bytes) < 0)
        return refuse(r, key, "auth is not base64");
    if (!str_cut(buf_str(&bytes), ':', &user, &password))
        return refuse(r, key, "auth is not the base64 of a user, a colon and a password");
    while (password.len && password.p[password.len - 1] == '\0')
        password.len--;
    out->username = keep(r->ring, user);
    out->password = keep(r->ring, password);
    return 0;
}

/* It becomes a line of a request as it is. */
static bool is_header_text(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    }
    return true;
}

static int read_credential(const struct reader *r, struct str key, const json_val *entry,
                           struct credential *out)
{
    const json_val *auth = json_get(entry, STR("auth"));
    struct str text = json_str(auth);
    if (auth && !json_is_null(auth) && !text.p)
        return refuse(r, key, "auth is not a string");
    if (read_secret(r, key, entry, "identitytoken", &out->identity_token) < 0 ||
        read_secret(r, key, entry, "registrytoken", &out->registry_token) < 0)
        return -1;
    if (!is_header_text(out->registry_token))
        return refuse(r, key, "registrytoken has a control character");
    if (text.len)
        return read_auth(r, key, text, out);
    return read_secret(r, key, entry, "username", &out->username) < 0 ||
                   read_secret(r, key, entry, "password", &out->password) < 0
               ? -1
               : 0;
}

static int read_entry(struct reader *r, struct str key, const json_val *value)
{
    struct entry entry = { 0 };
    struct credential *c = &entry.credential;
    if (!json_is_object(value))
        return refuse(r, key, "is not an object");
    if (str_find(key, '@') >= 0)
        return refuse(r, key, "expected a host and perhaps a path");
    if (read_credential(r, key, value, c) < 0)
        return -1;
    if (read_key(r->ring, key, &entry) < 0)
        return refuse(r, key, "has no host");
    if (c->password.len || c->identity_token.len || c->registry_token.len)
        r->ring->entries[r->ring->count++] = entry;
    else
        r->skipped++;
    return 0;
}

/* A helper would know them. */
static void count_helpers(struct reader *r, const json_val *root, const json_val *entries)
{
    json_each_member(json_get(root, STR("credHelpers")), key, helper) {
        if (!json_get(entries, json_key(key)))
            r->skipped++;
    }
}

static int read_entries(struct reader *r, const json_val *root, enum keyring_form form)
{
    const json_val *entries = form == KEYRING_CONFIG ? json_get(root, STR("auths")) : root;
    size_t count = json_count(entries);
    if (!json_is_object(root))
        return err_set(r->err, ERR_INVALID, "%s: is not an object", r->name);
    if (entries && !json_is_null(entries) && !json_is_object(entries))
        return err_set(r->err, ERR_INVALID, "%s: auths is not an object", r->name);
    if (count > KEYRING_ENTRIES_MAX)
        return err_set(r->err, ERR_INVALID, "%s: has %zu entries, at most %d are read", r->name,
                       count, KEYRING_ENTRIES_MAX);
    r->ring->entries = kv_calloc(count, sizeof *r->ring->entries);
    json_each_member(entries, key, value) {
        if (read_entry(r, json_key(key), value) < 0)
            return -1;
    }
    if (form == KEYRING_CONFIG)
        count_helpers(r, root, entries);
    return 0;
}

int keyring_read(const char *name, struct str text, enum keyring_form form,
                 const struct keyring **out, uint32_t *maybe_skipped, struct err *err)
{
    struct doc doc;
    struct text_pos at = { 1, 1 };
    if (text.len > KEYRING_BYTES_MAX)
        return err_set(err, ERR_INVALID, "%s: has %zu bytes, at most %zu are read", name, text.len,
                       KEYRING_BYTES_MAX);
    /* What the reader says may quote the text. */
    if (json_read_at(text, at, &doc, &at, NULL) < 0)
        return err_set(err, ERR_INVALID, "%s:%u:%u: is not JSON, or has a key twice", name, at.line,
                       at.col);

    struct keyring *ring = kv_calloc(1, sizeof *ring);
    struct reader r = { .name = name, .ring = ring, .err = err };
    rc_init(&ring->rc);
    ring->texts_cap = text.len;
    ring->texts = kv_malloc(text.len);
    int rc = read_entries(&r, doc.root, form);
    doc_wipe(&doc);
    doc_done(&doc);
    if (rc < 0) {
        keyring_free(ring);
        return -1;
    }
    settle(ring);
    *out = ring;
    if (maybe_skipped)
        *maybe_skipped = r.skipped;
    return 0;
}

const struct keyring *keyring_join(const struct keyring *const *rings, uint32_t count)
{
    uint32_t entries = 0, parts = 0;
    const struct keyring *only = NULL;
    for (uint32_t i = 0; i < count; i++) {
        if (!rings[i])
            continue;
        only = rings[i];
        entries += only->count;
        parts++;
    }
    if (parts <= 1)
        return only ? keyring_ref(only) : NULL;

    struct keyring *ring = kv_calloc(1, sizeof *ring);
    rc_init(&ring->rc);
    ring->entries = kv_calloc(entries, sizeof *ring->entries);
    ring->parts = kv_calloc(parts, sizeof *ring->parts);
    for (uint32_t i = 0; i < count; i++) {
        if (!rings[i])
            continue;
        ring->parts[ring->part_count++] = keyring_ref(rings[i]);
        if (rings[i]->count)
            memcpy(ring->entries + ring->count, rings[i]->entries,
                   rings[i]->count * sizeof *ring->entries);
        ring->count += rings[i]->count;
    }
    settle(ring);
    return ring;
}

/* --- matching --- */

static bool host_matches(struct str pattern, struct str host)
{
    struct str glob, label;
    for (;;) {
        bool more = str_cut(pattern, '.', &glob, &pattern);
        if (str_cut(host, '.', &label, &host) != more || !reference_glob(glob, label))
            return false;
        if (!more)
            return true;
    }
}

static bool entry_matches(const struct entry *entry, struct str host, struct str port,
                          struct str repository)
{
    struct str path = entry->path;
    return str_eq(entry->port, port) && host_matches(entry->host, host) &&
           (path.len == 0 || str_eq(path, repository) ||
            (str_starts(repository, path) && repository.p[path.len] == '/'));
}

static bool credential_equal(const struct credential *a, const struct credential *b)
{
    return str_eq(a->username, b->username) && str_eq(a->password, b->password) &&
           str_eq(a->identity_token, b->identity_token) &&
           str_eq(a->registry_token, b->registry_token);
}

static bool has(const struct credential *items, uint32_t count, const struct credential *c)
{
    for (uint32_t i = 0; i < count; i++) {
        if (credential_equal(&items[i], c))
            return true;
    }
    return false;
}

uint32_t keyring_match(const struct keyring *maybe_ring, struct arena *arena, struct str registry,
                       struct str repository, const struct credential **out)
{
    struct str host, port;
    uint32_t matching = 0, count = 0, all = maybe_ring ? maybe_ring->count : 0;
    split_port(registry, &host, &port);
    host = hub_or(host);
    *out = NULL;
    for (uint32_t i = 0; i < all; i++)
        matching += entry_matches(&maybe_ring->entries[i], host, port, repository);
    if (matching == 0)
        return 0;
    struct credential *items = arena_array(arena, struct credential, matching);
    for (uint32_t i = 0; i < all; i++) {
        const struct entry *entry = &maybe_ring->entries[i];
        if (entry_matches(entry, host, port, repository) && !has(items, count, &entry->credential))
            items[count++] = entry->credential;
    }
    *out = items;
    return count;
}
