/* compat/registry_hosts.c - who may be talked to, and how.
 *
 * Names of images come from whoever may create a pod, and registries answer with further addresses: of
 * token servers, of blobs. Two things keep us from being sent where only we can go. With an allow-list
 * the name of every host we are to connect to must be on it. And in any case each address, as the
 * connection is made, must not be one that means this machine's own metadata service: to look a name up
 * first and connect afterwards would let it mean something else by then. */
#include "compat/registry_inner.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

/* What images of docker.io are asked for at. */
#define DOCKER_HOST "registry-1.docker.io"

static bool same_name(struct str a, struct str b)
{
    return a.len == b.len && strncasecmp(a.p, b.p, a.len) == 0;
}

bool registry_is_plain(const struct registry *r, struct str authority)
{
    for (uint32_t i = 0; i < r->plain_http.count; i++)
        if (str_eqz(r->plain_http.items[i], "*") || same_name(r->plain_http.items[i], authority))
            return true;
    return false;
}

/* "host", "host:port", "[::1]:port"; the port stays empty if there is none. */
static void split_pattern(struct str pattern, struct str *host, struct str *port)
{
    size_t end = pattern.len;
    while (end > 0 && char_is_digit(pattern.p[end - 1]))
        end--;
    bool has_port = end > 0 && end < pattern.len && pattern.p[end - 1] == ':';
    *host = has_port ? str_sub(pattern, 0, end - 1) : pattern;
    *port = has_port ? str_sub(pattern, end, pattern.len) : STR("");
}

bool registry_is_allowed(const struct registry *r, const struct http_url *url)
{
    if (r->allowed_hosts.count == 0)
        return true;
    for (uint32_t i = 0; i < r->allowed_hosts.count; i++) {
        struct str host, port;
        int64_t number = 0;
        split_pattern(r->allowed_hosts.items[i], &host, &port);
        if (port.len > 0 && (!str_to_i64(port, &number) || number != url->port))
            continue;
        if (host_glob(host, url->host))
            return true;
        if (same_name(host, STR("docker.io")) && same_name(url->host, STR(DOCKER_HOST)))
            return true;
    }
    return false;
}

struct str registry_mirror(const struct registry *r, struct str registry)
{
    for (uint32_t i = 0; i < r->mirrors.count; i++) {
        struct str of, mirror;
        if (str_cut(r->mirrors.items[i], '=', &of, &mirror) && same_name(of, registry))
            return mirror;
    }
    return STR_NONE;
}

/* --- addresses --- */

static bool is_forbidden4(uint32_t address)
{
    static const uint32_t metadata[] = {
        0x646464c8, /* 100.100.100.200: Alibaba */
        0xa83f8110, /* 168.63.129.16: Azure, beside the link-local one */
        0xc00000c0, /* 192.0.0.192: Oracle */
    };
    for (size_t i = 0; i < KV_COUNT_OF(metadata); i++)
        if (address == metadata[i])
            return true;
    return address >> 16 == 0xa9fe || address >> 24 == 0; /* 169.254.0.0/16, 0.0.0.0/8 */
}

static bool is_forbidden6(const uint8_t a[16])
{
    static const uint8_t metadata[][16] = {
        { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 }, /* fd00:ec2::254: AWS */
        { 0xfd, 0x20, 0x00, 0xce, [14] = 0x02, [15] = 0x54 }, /* fd20:ce::254: Google */
    };
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };   /* ::ffff:0.0.0.0/96 */
    static const uint8_t translated[12] = { 0x00, 0x64, 0xff, 0x9b }; /* 64:ff9b::/96 */
    static const uint8_t compatible[12] = { 0 };                      /* ::/96 */
    uint32_t inner = (uint32_t)a[12] << 24 | (uint32_t)a[13] << 16 | (uint32_t)a[14] << 8 | a[15];
    for (size_t i = 0; i < KV_COUNT_OF(metadata); i++)
        if (memcmp(a, metadata[i], 16) == 0)
            return true;
    if (a[0] == 0xfe && (a[1] & 0xc0) == 0x80) /* fe80::/10 */
        return true;
    if (memcmp(a, mapped, 12) == 0 || memcmp(a, translated, 12) == 0)
        return is_forbidden4(inner);
    return memcmp(a, compatible, 12) == 0 && inner != 1; /* of these only ::1 means anything */
}

static bool is_forbidden(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        return is_forbidden4(ntohl(in.sin_addr.s_addr));
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, address, sizeof in);
        return is_forbidden6(in.sin6_addr.s6_addr);
    }
    return true;
}

bool registry_may_connect(void *ctx, struct str host, const struct sockaddr *address)
{
    const struct registry *r = ctx;
    if (!is_forbidden(address))
        return true;
    for (uint32_t i = 0; i < r->allowed_hosts.count; i++) {
        struct str named, port;
        split_pattern(r->allowed_hosts.items[i], &named, &port);
        if (same_name(named, host)) /* in full: no glob equals a host's name */
            return true;
    }
    return false;
}
