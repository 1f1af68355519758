/* Any bytes as a URL, a head, a Retry-After, and certificates. The first byte says which. */
#include "net/http_inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_within(struct str part, struct str whole)
{
    return part.len == 0 || (part.p >= whole.p && part.p + part.len <= whole.p + whole.len);
}

/* Addresses libcurl writes in its own way. */
static bool is_name(struct str host)
{
    for (size_t i = 0; i < host.len; i++)
        if (host.p[i] == '[' || char_is_digit(host.p[i]))
            return false;
    return true;
}

static void try_url(struct str text)
{
    struct http_url url;
    if (http_url_parse(text, &url, NULL) < 0)
        return;
    KV_ASSERT(url.host.len > 0);
    KV_ASSERT(url.port > 0);
    KV_ASSERT(is_within(url.authority, text));
    KV_ASSERT(is_within(url.host, url.authority));
    KV_ASSERT(is_within(url.rest, text));
    /* libcurl takes the same host for it, or refuses it. */
    AUTO_FREE char *z = str_dup(text);
    AUTO_FREE char *ours = str_dup(url.host);
    KV_ASSERT(curl_load(NULL) == 0);
    CURLU *handle = libcurl.url();
    char *host = NULL;
    if (libcurl.url_set(handle, CURLUPART_URL, z, CURLU_PATH_AS_IS) == CURLUE_OK &&
        libcurl.url_get(handle, CURLUPART_HOST, &host, 0) == CURLUE_OK && is_name(url.host))
        KV_ASSERT(strcasecmp(host, ours) == 0);
    libcurl.free(host);
    libcurl.url_cleanup(handle);
}

static void try_head(struct str text)
{
    static const struct str names[] = { { "Retry-After", 11 }, { "", 0 }, { "a", 1 } };
    for (size_t i = 0; i < KV_COUNT_OF(names); i++) {
        struct str value = http_head_find(text, names[i]);
        KV_ASSERT(is_within(value, text));
        KV_ASSERT(str_find(value, '\n') < 0);
    }
}

static void try_tls(struct str text)
{
    struct http_tls all[] = { { .ca_pem = text },
                              { .server_name = text },
                              { .cert_pem = text, .key_pem = text } };
    for (size_t i = 0; i < KV_COUNT_OF(all); i++) {
        struct http_trust *trust = NULL;
        struct err err = { 0 };
        if (http_trust_new(all[i], &trust, &err) < 0)
            KV_ASSERT(err.kind == ERR_INVALID);
        http_trust_unref(trust);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str text = { (const char *)data + 1, size - 1 };
    switch (data[0]) {
    case 'u':
        try_url(text);
        break;
    case 'h':
        try_head(text);
        break;
    case 'r':
        KV_ASSERT(http_retry_after_parse(text, 1700000000000000) >= -1);
        break;
    default:
        try_tls(text);
    }
    return 0;
}
