/* compat/registry.c - a client begins and ends; manifests and blobs are read.
 *
 * Nothing that has a digest is believed without it: a manifest asked for by digest has that digest, one
 * asked for by tag has the digest that the reply claims, if it claims one; a blob has its descriptor's,
 * and its size. The digest of a tag is the registry's claim in reply to a HEAD; whoever then asks by that
 * digest gets what has it, or nothing. */
#include "compat/registry_inner.h"

#include "base/file.h"
#include "compat/spec.h"
#include "net/digest.h"

#include <stdio.h>

#define TIMEOUT_DEFAULT_NS ((int64_t)10 * 1000000000)
#define BUDGET_DEFAULT_NS ((int64_t)30 * 1000000000)
#define AUTHORITIES_BYTES_MAX ((size_t)3 << 20)
#define ACCEPT_MANIFESTS                                                                           \
    MEDIA_OCI_INDEX ", " MEDIA_OCI_MANIFEST ", " MEDIA_DOCKER_LIST ", " MEDIA_DOCKER_MANIFEST

/* --- begin and end --- */

static struct str_list copy_list(struct arena *arena, struct str_list list)
{
    struct str *items = arena_array(arena, struct str, list.count);
    for (uint32_t i = 0; i < list.count; i++)
        items[i] = arena_str(arena, list.items[i]);
    return (struct str_list){ items, list.count };
}

static int check_mirrors(struct str_list mirrors, struct err *err)
{
    for (uint32_t i = 0; i < mirrors.count; i++) {
        struct str of, mirror;
        AUTO_BUF url = { 0 };
        struct http_url parts = { 0 };
        if (!str_cut(mirrors.items[i], '=', &of, &mirror) || of.len == 0)
            return err_set(err, ERR_INVALID, "mirror %s is not registry=host[:port]",
                           STR_SHOWN(mirrors.items[i]));
        buf_addf(&url, "https://%.*s", STR_ARG(mirror));
        if (http_url_parse(buf_str(&url), &parts, NULL) < 0 || parts.rest.len > 0)
            return err_set(err, ERR_INVALID, "mirror %s: %s is no host or host:port",
                           STR_SHOWN(mirrors.items[i]), STR_SHOWN(mirror));
    }
    return 0;
}

/* The system's authorities and ours: the HTTP client takes one list, and it instead of the system's. */
static void add_system_authorities(struct buf *out)
{
    static const char *const places[] = {
        "/etc/ssl/certs/ca-certificates.crt", /* Debian, Alpine */
        "/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora */
        "/etc/ssl/ca-bundle.pem",             /* SUSE */
        "/etc/ssl/cert.pem",
    };
    const char *named = getenv("SSL_CERT_FILE");
    if (named && file_read(named, AUTHORITIES_BYTES_MAX, out, NULL) == 0)
        return;
    for (size_t i = 0; i < KV_COUNT_OF(places); i++)
        if (file_read(places[i], AUTHORITIES_BYTES_MAX, out, NULL) == 0)
            return;
}

static int open_http(struct registry *r, const struct registry_options *options, struct err *err)
{
    AUTO_BUF authorities = { 0 };
    if (options->ca_pem.len > 0) {
        add_system_authorities(&authorities);
        buf_addc(&authorities, '\n');
        buf_add(&authorities, options->ca_pem);
    }
    return http_new((struct http_options){ .user_agent = options->user_agent,
                                           .tls.ca_pem = buf_str(&authorities),
                                           .may_connect = registry_may_connect,
                                           .may_connect_ctx = r,
                                           .log = options->maybe_log },
                    &r->http, err);
}

int registry_new(struct registry_options options, struct registry **out, struct err *err)
{
    static const char *const labels[] = { "code", NULL };
    if (check_mirrors(options.mirrors, err) < 0)
        return -1;
    AUTO(registry) r = kv_calloc(1, sizeof *r);
    pthread_mutex_init(&r->lock, NULL);
    clock_cond_init(&r->moved);
    rng_init(&r->rng, options.seed);
    r->specs = compat_specs_new();
    r->clock = options.clock;
    r->maybe_log = options.maybe_log;
    r->timeout_ns = options.timeout_ns > 0 ? options.timeout_ns : TIMEOUT_DEFAULT_NS;
    r->budget_ns = options.budget_ns > 0 ? options.budget_ns : BUDGET_DEFAULT_NS;
    r->plain_http = copy_list(&r->arena, options.plain_http);
    r->allowed_hosts = copy_list(&r->arena, options.allowed_hosts);
    r->mirrors = copy_list(&r->arena, options.mirrors);
    if (options.maybe_metrics)
        r->maybe_requests = metrics_family(
            options.maybe_metrics,
            &(struct metric_desc){ .name = "karve_registry_requests_total",
                                   .help = "Requests to registries and their token servers, by the "
                                           "status of the reply.",
                                   .type = METRIC_COUNTER,
                                   .labels = labels });
    if (open_http(r, &options, err) < 0)
        return err_wrap(err, "registry client");
    *out = take(&r);
    return 0;
}

void registry_free(struct registry *registry)
{
    if (!registry)
        return;
    KV_ASSERT(!registry->flights);
    http_free(registry->http);
    registry_forget_grants(registry);
    registry_forget_referrers(registry);
    compat_specs_unref(registry->specs);
    pthread_mutex_destroy(&registry->lock);
    pthread_cond_destroy(&registry->moved);
    arena_done(&registry->arena);
    free(registry);
}

void registry_cancel(struct registry *registry)
{
    pthread_mutex_lock(&registry->lock);
    registry->cancelled = true;
    for (struct registry_flight *flight = registry->flights; flight; flight = flight->next)
        http_cancel(flight->call);
    pthread_cond_broadcast(&registry->moved);
    pthread_mutex_unlock(&registry->lock);
}

/* --- sessions --- */

struct registry_session registry_session(struct registry *r, const struct reference *ref,
                                         const struct keyring *maybe_keys, const char *actions)
{
    struct str mirror = registry_mirror(r, ref->registry);
    return (struct registry_session){
        .registry = r,
        .ref = ref,
        .maybe_keys = maybe_keys,
        .name = mirror.p ? mirror : ref->registry,
        .host = mirror.p ? mirror : ref->host,
        .actions = actions,
        .deadline_ns = clock_mono_ns(r->clock) + r->budget_ns,
    };
}

void registry_session_url(const struct registry_session *s, struct buf *out, const char *fmt, ...)
{
    va_list args;
    buf_addf(out, "%s://%.*s/v2/%.*s", registry_is_plain(s->registry, s->host) ? "http" : "https",
             STR_ARG(s->host), STR_ARG(s->ref->repository));
    va_start(args, fmt);
    buf_vaddf(out, fmt, args);
    va_end(args);
}

static int wrap(const struct registry_session *s, struct err *err, const char *what,
                struct str which)
{
    return err_wrap(err, "%.*s/%.*s: %s %s", STR_ARG(s->name), STR_ARG(s->ref->repository), what,
                    STR_SHOWN(which));
}

/* --- manifests --- */

static int ask_manifest(const struct registry_session *s, const char *method, struct str which,
                        struct registry_answer *answer, struct err *err)
{
    AUTO_BUF url = { 0 };
    registry_session_url(s, &url, "/manifests/%.*s", STR_ARG(which));
    struct registry_request request = {
        .method = method,
        .url = buf_str(&url),
        .accept = STR(ACCEPT_MANIFESTS),
        .bytes_max = MANIFEST_BYTES_MAX,
    };
    return registry_session_send(s, &request, answer, err);
}

static struct str claimed_digest(const struct registry_answer *answer)
{
    struct str claimed = http_reply_header(answer->call, STR("Docker-Content-Digest"));
    return digest_is_valid(claimed, NULL) ? claimed : STR_NONE;
}

/* The digest that the body has: what was asked for, else what the reply claims, else its SHA-256. */
static int body_digest(struct str which, const struct registry_answer *answer, struct arena *arena,
                       struct str *out, struct err *err)
{
    char text[DIGEST_TEXT_MAX];
    struct str claimed = digest_is_valid(which, NULL) ? which : claimed_digest(answer);
    if (claimed.p) {
        *out = arena_str(arena, claimed);
        return digest_verify(claimed, answer->body, err);
    }
    if (digest_text(DIGEST_SHA256, answer->body, text, err) < 0)
        return -1;
    *out = arena_str(arena, str_of(text));
    return 0;
}

static int get_manifest(const struct registry_session *s, struct str which, struct arena *arena,
                        struct oci_manifest *out, struct str *maybe_text,
                        struct descriptor *maybe_self, struct err *err)
{
    AUTO_ANSWER answer = { 0 };
    struct str digest;
    char name[DIGEST_TEXT_MAX + REFERENCE_TAG_MAX];
    if (ask_manifest(s, "GET", which, &answer, err) < 0)
        return -1;
    if (answer.status != 200)
        return registry_refusal(s->registry, &answer, err);
    if (body_digest(which, &answer, arena, &digest, err) < 0)
        return -1;
    struct str type = media_type_only(http_reply_header(answer.call, STR("Content-Type")));
    snprintf(name, sizeof name, "%.*s", STR_ARG(digest));
    if (manifest_read(arena, name, type, answer.body, out, err) < 0)
        return -1;
    if (maybe_text)
        *maybe_text = arena_str(arena, answer.body);
    if (maybe_self)
        *maybe_self = (struct descriptor){ .media_type = out->media_type,
                                           .digest = digest,
                                           .size = (int64_t)answer.body.len,
                                           .artifact_type = out->artifact_type };
    return 0;
}

int session_manifest(const struct registry_session *s, struct str which, struct arena *arena,
                     struct oci_manifest *out, struct str *maybe_text,
                     struct descriptor *maybe_self, struct err *err)
{
    if (get_manifest(s, which, arena, out, maybe_text, maybe_self, err) < 0)
        return wrap(s, err, "manifest", which);
    return 0;
}

/* 1: the answer does not tell. */
static int head_manifest(const struct registry_session *s, struct str which, struct arena *arena,
                         struct descriptor *out, struct err *err)
{
    AUTO_ANSWER answer = { 0 };
    if (ask_manifest(s, "HEAD", which, &answer, err) < 0)
        return -1;
    if (answer.status == 400 || answer.status == 405 || answer.status == 501)
        return 1;
    if (answer.status != 200)
        return registry_refusal(s->registry, &answer, err);
    int64_t size = 0;
    struct str digest = claimed_digest(&answer);
    struct str type = media_type_only(http_reply_header(answer.call, STR("Content-Type")));
    if (!digest.p || type.len == 0)
        return 1;
    if (digest_is_valid(which, NULL) && !str_eq(which, digest))
        return err_set(err, ERR_INVALID, "the registry answers with %s", STR_SHOWN(digest));
    if (!str_to_i64(http_reply_header(answer.call, STR("Content-Length")), &size) || size < 0)
        size = 0;
    *out = (struct descriptor){ .media_type = arena_str(arena, type),
                                .digest = arena_str(arena, digest),
                                .size = size };
    return 0;
}

int session_digest(const struct registry_session *s, struct arena *arena, struct descriptor *out,
                   struct err *err)
{
    struct str which = reference_which(s->ref);
    struct oci_manifest manifest;
    int rc = head_manifest(s, which, arena, out, err);
    if (rc == 1)
        return session_manifest(s, which, arena, &manifest, NULL, out, err);
    return rc < 0 ? wrap(s, err, "digest of", which) : 0;
}

/* --- blobs --- */

static int get_blob(const struct registry_session *s, const struct descriptor *blob,
                    size_t bytes_max, struct arena *arena, struct str *out, struct err *err)
{
    AUTO_BUF url = { 0 };
    AUTO_ANSWER answer = { 0 };
    if (!digest_is_valid(blob->digest, NULL) || blob->size < 0)
        return err_set(err, ERR_INVALID, "not a digest, or a size below zero");
    if ((uint64_t)blob->size > bytes_max)
        return err_set(err, ERR_CAPACITY, "it has %lld bytes: at most %zu are taken",
                       (long long)blob->size, bytes_max);
    registry_session_url(s, &url, "/blobs/%.*s", STR_ARG(blob->digest));
    size_t size = (size_t)blob->size;
    struct registry_request request = {
        .method = "GET",
        .url = buf_str(&url),
        .accept = STR("*/*"),
        .bytes_max = size > REGISTRY_ERROR_BYTES_MAX ? size : REGISTRY_ERROR_BYTES_MAX,
    };
    if (registry_session_send(s, &request, &answer, err) < 0)
        return -1;
    if (answer.status != 200)
        return registry_refusal(s->registry, &answer, err);
    if (answer.body.len != size)
        return err_set(err, ERR_INVALID, "it has %zu bytes, and should have %zu", answer.body.len,
                       size);
    if (digest_verify(blob->digest, answer.body, err) < 0)
        return -1;
    *out = arena_str(arena, answer.body);
    return 0;
}

int session_blob(const struct registry_session *s, const struct descriptor *blob, size_t bytes_max,
                 struct arena *arena, struct str *out, struct err *err)
{
    if (get_blob(s, blob, bytes_max, arena, out, err) < 0)
        return wrap(s, err, "blob", blob->digest);
    return 0;
}

/* --- for callers --- */

int registry_digest(struct registry *r, const struct reference *ref,
                    const struct keyring *maybe_keys, struct arena *arena, struct descriptor *out,
                    struct err *err)
{
    struct registry_session s = registry_session(r, ref, maybe_keys, "pull");
    return session_digest(&s, arena, out, err);
}

int registry_manifest(struct registry *r, const struct reference *ref,
                      const struct keyring *maybe_keys, struct arena *arena,
                      struct oci_manifest *out, struct str *maybe_text,
                      struct descriptor *maybe_self, struct err *err)
{
    struct registry_session s = registry_session(r, ref, maybe_keys, "pull");
    return session_manifest(&s, reference_which(ref), arena, out, maybe_text, maybe_self, err);
}

int registry_blob(struct registry *r, const struct reference *ref, const struct keyring *maybe_keys,
                  const struct descriptor *blob, size_t bytes_max, struct arena *arena,
                  struct str *out, struct err *err)
{
    struct registry_session s = registry_session(r, ref, maybe_keys, "pull");
    return session_blob(&s, blob, bytes_max, arena, out, err);
}

int registry_referrers(struct registry *r, const struct reference *ref,
                       const struct keyring *maybe_keys, struct str digest,
                       struct str artifact_type, struct arena *arena, struct referrers *out,
                       struct err *err)
{
    struct registry_session s = registry_session(r, ref, maybe_keys, "pull");
    return session_referrers(&s, digest, artifact_type, arena, out, err);
}
