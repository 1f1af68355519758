/* libcrypto comes with libcurl on most machines, so loading it again costs nothing there. One function
 * of it does all: its prototype is written out, since its headers are needed for nothing else. */
#include "net/digest.h"

#include <dlfcn.h>
#include <pthread.h>

#define CRYPTO_LIBRARY "libcrypto.so.3"

/* int EVP_Q_digest(library, name, properties, bytes, length, digest, length of the digest): 1 is success */
typedef int digest_fn(void *, const char *, const char *, const void *, size_t, unsigned char *,
                      size_t *);

static digest_fn *evp_q_digest;
static struct err trouble;

static const struct {
    struct str prefix;
    const char *name; /* in libcrypto */
    size_t bytes;
} kinds[] = {
    [DIGEST_SHA256] = { STR("sha256:"), "SHA256", 32 },
    [DIGEST_SHA512] = { STR("sha512:"), "SHA512", 64 },
};

static void load(void)
{
    void *library = dlopen(CRYPTO_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        err_set(&trouble, ERR_UNAVAILABLE, "digests need libcrypto: %s", dlerror());
        return;
    }
    void *function = dlsym(library, "EVP_Q_digest");
    if (!function) {
        err_set(&trouble, ERR_UNAVAILABLE, "digests need a newer libcrypto: %s", dlerror());
        return;
    }
    memcpy(&evp_q_digest, &function, sizeof function);
}

int digest_text(enum digest_kind kind, struct str bytes, char out[DIGEST_TEXT_MAX], struct err *err)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    static const char hex[] = "0123456789abcdef";
    unsigned char digest[DIGEST_BYTES_MAX];
    size_t len = 0;
    pthread_once(&once, load);
    if (trouble.kind != ERR_NONE)
        return err_set(err, trouble.kind, "%s", trouble.text);
    const char *p = bytes.p ? bytes.p : "";
    if (evp_q_digest(NULL, kinds[kind].name, NULL, p, bytes.len, digest, &len) != 1)
        return err_set(err, ERR_UNAVAILABLE, "libcrypto does not do %s", kinds[kind].name);
    KV_ASSERT(len == kinds[kind].bytes);

    struct str prefix = kinds[kind].prefix;
    memcpy(out, prefix.p, prefix.len);
    char *at = out + prefix.len;
    for (size_t i = 0; i < len; i++) {
        *at++ = hex[digest[i] >> 4];
        *at++ = hex[digest[i] & 15];
    }
    *at = '\0';
    return 0;
}

bool digest_is_valid(struct str text, enum digest_kind *maybe_kind)
{
    for (size_t kind = 0; kind < KV_COUNT_OF(kinds); kind++) {
        struct str prefix = kinds[kind].prefix;
        if (!str_starts(text, prefix))
            continue;
        if (text.len != prefix.len + 2 * kinds[kind].bytes)
            return false;
        for (size_t i = prefix.len; i < text.len; i++) {
            if (!char_is_digit(text.p[i]) && !(text.p[i] >= 'a' && text.p[i] <= 'f'))
                return false;
        }
        if (maybe_kind)
            *maybe_kind = (enum digest_kind)kind;
        return true;
    }
    return false;
}

int digest_verify(struct str digest, struct str bytes, struct err *err)
{
    enum digest_kind kind;
    char found[DIGEST_TEXT_MAX];
    if (!digest_is_valid(digest, &kind))
        return err_set(err, ERR_INVALID, "%s is not a digest, expected sha256: or sha512: and hex",
                       STR_SHOWN(digest));
    if (digest_text(kind, bytes, found, err) < 0)
        return -1;
    if (!str_eqz(digest, found))
        return err_set(err, ERR_INVALID, "the digest of the bytes is %s, expected %.*s", found,
                       STR_ARG(digest));
    return 0;
}
