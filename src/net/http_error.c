/* net/http_error.c - why a transfer failed, for people and for who decides what to do next. */
#include "codec/duration.h"
#include "net/http_inner.h"

#include <ctype.h>
#include <stdio.h>

/* What libcurl and the TLS library say may quote the server. */
static const char *curl_text(const struct http_call *call, CURLcode code, char out[CURL_ERROR_SIZE])
{
    const char *text = call->slot->error[0] ? call->slot->error : libcurl.easy_strerror(code);
    size_t len = 0;
    for (; text[len] && len < CURL_ERROR_SIZE - 1; len++)
        out[len] = isprint((unsigned char)text[len]) ? text[len] : '?';
    out[len] = '\0';
    return out;
}

/* Meaningful only after a failure to connect: libcurl keeps the number from one call to the next. */
static const char *os_text(const struct http_call *call, char out[128])
{
    long number = 0;
    libcurl.easy_getinfo(call->slot->easy, CURLINFO_OS_ERRNO, &number);
    if (number == 0)
        return NULL;
    snprintf(out, 128, "%s", strerror((int)number));
    out[0] = char_lower(out[0]);
    return out;
}

static struct str authority(const struct http_call *call)
{
    struct http_url url = { 0 };
    http_url_parse(str_of(call->url), &url, NULL);
    return url.authority;
}

/* Alerts of a server that does not take our certificate, or misses one. Since TLS 1.3 they come after
 * the handshake, as a failure to read. */
static bool refuses_us(const char *text)
{
    return strstr(text, "alert") && (strstr(text, "certificate") || strstr(text, "unknown ca") ||
                                     strstr(text, "access denied"));
}

static void explain_connect(struct http_call *call, const char *text)
{
    char os[128];
    const char *why = os_text(call, os);
    struct str at = authority(call);
    if (call->address_refused)
        http_call_fail(call, ERR_DENIED, "connect to %.*s: its address is not one to connect to",
                       STR_ARG(at));
    else if (why)
        http_call_fail(call, ERR_UNAVAILABLE, "connect to %.*s: %s", STR_ARG(at), why);
    else
        http_call_fail(call, ERR_UNAVAILABLE, "connect to %.*s: %s", STR_ARG(at), text);
}

/* A certificate that bears the authority's name and not its signature, as after the authority was made
 * anew: libcurl hands on what the arithmetic said. */
static bool is_forged(const char *text)
{
    return strstr(text, "asn1 encoding routines") || strstr(text, "rsa routines") ||
           strstr(text, "elliptic curve routines");
}

static void explain_tls(struct http_call *call, const char *text)
{
    struct str at = authority(call);
    if (refuses_us(text))
        http_call_fail(call, ERR_DENIED, "%.*s refuses our certificate: %s", STR_ARG(at), text);
    else if (is_forged(text))
        http_call_fail(
            call, ERR_DENIED,
            "certificate of %.*s: certificate signature failure (another authority of the "
            "same name?): %s",
            STR_ARG(at), text);
    else if (strstr(text, "wrong version number") || strstr(text, "packet length too long"))
        http_call_fail(call, ERR_INVALID, "%.*s does not speak TLS: %s", STR_ARG(at), text);
    else if (strstr(text, "SSL_ERROR_SYSCALL") || strstr(text, "unexpected eof while reading"))
        http_call_fail(call, ERR_UNAVAILABLE,
                       "%.*s ended the connection when TLS was to begin (does it speak TLS?)",
                       STR_ARG(at));
    else
        http_call_fail(call, ERR_UNAVAILABLE, "TLS with %.*s: %s", STR_ARG(at), text);
}

/* "SSL certificate problem: certificate has expired"; "SSL: no alternative certificate subject name
 * matches target host name 'api'". */
static void explain_certificate(struct http_call *call, const char *text)
{
    static const char *const prefixes[] = { "SSL certificate problem: ", "SSL: " };
    for (size_t i = 0; i < KV_COUNT_OF(prefixes); i++)
        if (strncmp(text, prefixes[i], strlen(prefixes[i])) == 0)
            text += strlen(prefixes[i]);
    http_call_fail(call, ERR_DENIED, "certificate of %.*s: %s", STR_ARG(authority(call)), text);
}

static void explain_cut(struct http_call *call, const char *text)
{
    struct str at = authority(call);
    curl_off_t got = 0;
    libcurl.easy_getinfo(call->slot->easy, CURLINFO_SIZE_DOWNLOAD_T, &got);
    if (refuses_us(text))
        http_call_fail(call, ERR_DENIED, "%.*s refuses our certificate: %s", STR_ARG(at), text);
    else if (call->head_done)
        http_call_fail(call, ERR_UNAVAILABLE, "the reply of %.*s was cut off after %lld bytes: %s",
                       STR_ARG(at), (long long)got, text);
    else
        http_call_fail(call, ERR_UNAVAILABLE, "no answer from %.*s: %s", STR_ARG(at), text);
}

void http_call_explain(struct http_call *call, CURLcode code)
{
    char buffer[CURL_ERROR_SIZE];
    const char *text = curl_text(call, code, buffer);
    struct str at = authority(call);

    if (code == CURLE_OK) { /* as libcurl sees it */
        http_call_fail(call, ERR_UNAVAILABLE, "the reply of %.*s was cut off within its head",
                       STR_ARG(at));
        return;
    }
    switch ((int)code) { /* some names are newer than the oldest libcurl */
    case CURLE_COULDNT_CONNECT:
        explain_connect(call, text);
        return;
    case CURLE_OPERATION_TIMEDOUT: /* only connecting is timed by libcurl */
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_PROXY:
        http_call_fail(call, ERR_UNAVAILABLE, "connect to %.*s: %s", STR_ARG(at), text);
        return;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
        explain_certificate(call, text);
        return;
    case CURLE_SSL_CONNECT_ERROR:
        explain_tls(call, text);
        return;
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CACERT_BADFILE:
        http_call_fail(call, ERR_INVALID, "our certificates: %s", text);
        return;
    case CURLE_UNSUPPORTED_PROTOCOL: /* the URL's was checked: an answer without a status line */
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_BAD_CONTENT_ENCODING:
        http_call_fail(call, ERR_INVALID, "%.*s answers with what is no HTTP: %s", STR_ARG(at),
                       text);
        return;
    case CURLE_URL_MALFORMAT:
        http_call_fail(call, ERR_INVALID, "URL %s: %s", STR_SHOWN(str_of(call->url)), text);
        return;
    case CURLE_FILESIZE_EXCEEDED:
    case CURLE_OUT_OF_MEMORY: /* libcurl's limit for one line of a head; memory itself never ends */
    case 100:                 /* CURLE_TOO_LARGE, the same since 8.6 */
        http_call_fail(call, ERR_CAPACITY, "the reply of %.*s is too long", STR_ARG(at));
        return;
    default:
        explain_cut(call, text);
    }
}

void http_call_explain_late(struct http_call *call)
{
    char within[DURATION_TEXT_MAX];
    struct str at = authority(call);
    bool idle = call->stream && call->head_done;
    curl_off_t connected_us = 0, got = 0;
    libcurl.easy_getinfo(call->slot->easy, CURLINFO_PRETRANSFER_TIME_T, &connected_us);
    libcurl.easy_getinfo(call->slot->easy, CURLINFO_SIZE_DOWNLOAD_T, &got);
    duration_format_short(idle ? call->idle_timeout_ns : call->timeout_ns, within);
    if (idle)
        http_call_fail(call, ERR_UNAVAILABLE, "%.*s has sent nothing for %s", STR_ARG(at), within);
    else if (call->head_done)
        http_call_fail(call, ERR_UNAVAILABLE,
                       "the reply of %.*s did not end within %s: %lld bytes came", STR_ARG(at),
                       within, (long long)got);
    else if (connected_us > 0)
        http_call_fail(call, ERR_UNAVAILABLE, "no answer from %.*s within %s", STR_ARG(at), within);
    else
        http_call_fail(call, ERR_UNAVAILABLE, "no connection to %.*s within %s", STR_ARG(at),
                       within);
}
