/* net/http_tls.c - certificates and keys as texts.
 *
 * libcurl reads them anew for every connection, and what is wrong with them would be the failure of
 * some call later on. So what can be seen from outside is checked at once: that the blocks are there,
 * whole, and decode, and that a key asks for no passphrase. */
#include "codec/base64.h"
#include "net/http_inner.h"

#include <arpa/inet.h>
#include <stdio.h>

#define PEM_BYTES_MAX ((size_t)4 << 20) /* the authorities of the whole web are 0.2 MB */

static struct str own(struct str s)
{
    return s.len > 0 ? (struct str){ str_dup(s), s.len } : STR_NONE;
}

/* The next block of `pem`: "-----BEGIN LABEL-----" to "-----END LABEL-----". 0: there is none. */
static int next_block(struct str *pem, struct str *label, struct str *body, struct err *err)
{
    static const char begin[] = "-----BEGIN ", dashes[] = "-----";
    const char *start = memmem(pem->p, pem->len, begin, sizeof begin - 1);
    if (!start)
        return 0;
    struct str rest = { start + sizeof begin - 1, 0 };
    rest.len = (size_t)(pem->p + pem->len - rest.p);
    const char *label_end = memmem(rest.p, rest.len, dashes, sizeof dashes - 1);
    if (!label_end || label_end - rest.p > 40)
        return err_set(err, ERR_INVALID, "a line that begins a PEM block does not end");
    *label = str_sub(rest, 0, (size_t)(label_end - rest.p));

    rest = str_sub(rest, label->len + sizeof dashes - 1, rest.len);
    char end[80];
    size_t end_len = (size_t)snprintf(end, sizeof end, "-----END %.*s-----", STR_ARG(*label));
    const char *body_end = memmem(rest.p, rest.len, end, end_len);
    if (!body_end)
        return err_set(err, ERR_INVALID, "the PEM block %s does not end", STR_SHOWN(*label));
    *body = str_sub(rest, 0, (size_t)(body_end - rest.p));
    *pem = str_sub(rest, body->len + end_len, rest.len);
    return 1;
}

static int check_base64(struct str label, struct str body, struct err *err)
{
    AUTO_BUF text = { 0 };
    AUTO_BUF bytes = { 0 };
    for (size_t i = 0; i < body.len; i++)
        if (!char_is_space(body.p[i]))
            buf_addc(&text, body.p[i]);
    int rc = base64_decode(buf_str(&text), &bytes, err);
    if (rc < 0)
        err_wrap(err, "the PEM block %s", STR_SHOWN(label));
    else if (bytes.len == 0)
        rc = err_set(err, ERR_INVALID, "the PEM block %s is empty", STR_SHOWN(label));
    if (text.cap > 0) /* it may be a key */
        explicit_bzero(text.p, text.cap);
    if (bytes.cap > 0)
        explicit_bzero(bytes.p, bytes.cap);
    return rc;
}

static int check_pem(struct str pem, struct str wanted, struct err *err)
{
    struct str label, body;
    int rc;
    uint32_t found = 0;
    if (pem.len > PEM_BYTES_MAX)
        return err_set(err, ERR_INVALID, "%zu bytes are too many", pem.len);
    while ((rc = next_block(&pem, &label, &body, err)) > 0) {
        if (!str_ends(label, wanted))
            continue; /* "EC PARAMETERS" and the like */
        if (str_starts(label, STR("ENCRYPTED")) ||
            memmem(body.p, body.len, "ENCRYPTED", strlen("ENCRYPTED")))
            return err_set(err, ERR_INVALID, "it is encrypted with a passphrase");
        if (check_base64(label, body, err) < 0)
            return -1;
        found++;
    }
    if (rc == 0 && found == 0)
        return err_set(err, ERR_INVALID, "there is no PEM block of a %.*s", STR_ARG(wanted));
    return rc;
}

static int check_server_name(struct str name, struct err *err)
{
    AUTO_BUF url = { 0 };
    AUTO_FREE char *text = str_dup(name);
    struct http_url parsed;
    struct in6_addr address;
    if (inet_pton(AF_INET6, text, &address) == 1)
        return 0;
    buf_addf(&url, "https://%s", text);
    if (http_url_parse(buf_str(&url), &parsed, err) < 0 || !str_eq(parsed.host, name))
        return err_set(err, ERR_INVALID, "%s is no server's name", STR_SHOWN(name));
    return 0;
}

static int check(struct http_tls tls, struct err *err)
{
    if (tls.ca_pem.len > 0 && check_pem(tls.ca_pem, STR("CERTIFICATE"), err) < 0)
        return err_wrap(err, "the server's authorities");
    if (tls.cert_pem.len > 0 && check_pem(tls.cert_pem, STR("CERTIFICATE"), err) < 0)
        return err_wrap(err, "the client certificate");
    if (tls.key_pem.len > 0 && check_pem(tls.key_pem, STR("PRIVATE KEY"), err) < 0)
        return err_wrap(err, "the client key");
    if ((tls.cert_pem.len > 0) != (tls.key_pem.len > 0))
        return err_set(err, ERR_INVALID, "a client %s without its %s",
                       tls.key_pem.len > 0 ? "key" : "certificate",
                       tls.key_pem.len > 0 ? "certificate" : "key");
    if (tls.server_name.len > 0 && check_server_name(tls.server_name, err) < 0)
        return -1;
    return 0;
}

int http_trust_new(struct http_tls tls, struct http_trust **out, struct err *err)
{
    if (check(tls, err) < 0)
        return -1;
    struct http_trust *trust = kv_calloc(1, sizeof *trust);
    rc_init(&trust->rc);
    trust->ca_pem = own(tls.ca_pem);
    trust->cert_pem = own(tls.cert_pem);
    trust->key_pem = own(tls.key_pem);
    trust->server_name = own(tls.server_name);
    trust->insecure = tls.insecure;
    *out = trust;
    return 0;
}

struct http_trust *http_trust_ref(struct http_trust *trust)
{
    rc_ref(&trust->rc);
    return trust;
}

void http_trust_unref(struct http_trust *trust)
{
    if (!trust || !rc_unref(&trust->rc))
        return;
    if (trust->key_pem.p)
        explicit_bzero((char *)trust->key_pem.p, trust->key_pem.len);
    free((char *)trust->ca_pem.p);
    free((char *)trust->cert_pem.p);
    free((char *)trust->key_pem.p);
    free((char *)trust->server_name.p);
    free(trust);
}
