/* compat/registry_testing.c - libmicrohttpd with a thread for each connection. What stops the server itself
 * from working is a failed KV_ASSERT. */
#include "compat/registry_testing.h"

#include "base/thread.h"
#include "base/vec.h"
#include "codec/base64.h"
#include "codec/json.h"
#include "compat/registry.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <unistd.h>

struct stored {
    char *repository; /* NULL: a blob, the same for all */
    char *maybe_tag;
    char *media_type;
    char digest[DIGEST_TEXT_MAX];
    struct buf bytes;
};

struct fault_state {
    struct fake_fault fault;
    uint32_t used;
};

struct fake_registry {
    struct fake_registry_options options;
    struct MHD_Daemon *daemon;
    char host[64];
    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t moved;
    bool stopping;
    VEC(struct stored *) stored;
    VEC(struct fault_state) faults;
    VEC(char *) seen;
    VEC(char *) tokens; /* "token-1 repository:a:pull" */
    uint32_t token_count, token_first;
};

struct exchange {
    char *target; /* with its query, as sent */
    struct buf body;
};

struct answer {
    int status;
    struct buf body;
    VEC(char *) headers; /* "Name: value" */
};

static void add_header(struct answer *a, const char *fmt, ...) KV_PRINTF(2, 3);
static void add_header(struct answer *a, const char *fmt, ...)
{
    struct buf line = { 0 };
    va_list args;
    va_start(args, fmt);
    buf_vaddf(&line, fmt, args);
    va_end(args);
    vec_push(&a->headers, buf_take(&line));
}

static void answer_done(struct answer *a)
{
    vec_each(&a->headers, char *, it)
        free(*it);
    vec_done(&a->headers);
    buf_done(&a->body);
}

static void refuse(struct answer *a, int status, const char *code)
{
    a->status = status;
    add_header(a, "Content-Type: application/json");
    buf_addf(&a->body, "{\"errors\":[{\"code\":\"%s\",\"message\":\"because\"}]}", code);
}

/* --- what it holds --- */

static void stored_free(struct stored *it)
{
    free(it->repository);
    free(it->maybe_tag);
    free(it->media_type);
    buf_done(&it->bytes);
    free(it);
}

static void store_locked(struct fake_registry *f, const char *repository, const char *maybe_tag,
                         const char *media_type, struct str bytes, char out[DIGEST_TEXT_MAX])
{
    struct stored *it = kv_calloc(1, sizeof *it);
    it->repository = repository ? kv_strdup(repository) : NULL;
    it->maybe_tag = maybe_tag ? kv_strdup(maybe_tag) : NULL;
    it->media_type = kv_strdup(media_type);
    buf_add(&it->bytes, bytes);
    KV_ASSERT(digest_text(DIGEST_SHA256, bytes, it->digest, NULL) == 0);
    if (out)
        memcpy(out, it->digest, DIGEST_TEXT_MAX);
    vec_push(&f->stored, it);
}

void fake_registry_blob(struct fake_registry *f, struct str bytes, char out[DIGEST_TEXT_MAX])
{
    pthread_mutex_lock(&f->lock);
    store_locked(f, NULL, NULL, "application/octet-stream", bytes, out);
    pthread_mutex_unlock(&f->lock);
}

void fake_registry_manifest(struct fake_registry *f, const char *repository, const char *maybe_tag,
                            const char *media_type, struct str text, char out[DIGEST_TEXT_MAX])
{
    pthread_mutex_lock(&f->lock);
    store_locked(f, repository, maybe_tag, media_type, text, out);
    pthread_mutex_unlock(&f->lock);
}

/* The latest of that tag or digest. */
static struct stored *find_locked(struct fake_registry *f, const char *repository,
                                  const char *which)
{
    for (size_t i = f->stored.count; i-- > 0;) {
        struct stored *it = f->stored.items[i];
        bool here = repository ? it->repository && strcmp(it->repository, repository) == 0
                               : !it->repository;
        if (here && (strcmp(it->digest, which) == 0 ||
                     (it->maybe_tag && strcmp(it->maybe_tag, which) == 0)))
            return it;
    }
    return NULL;
}

/* --- authentication --- */

static bool knows_locked(struct fake_registry *f, const char *maybe_authorization)
{
    AUTO_BUF want = { 0 };
    AUTO_BUF pair = { 0 };
    if (!maybe_authorization || !f->options.password)
        return false;
    buf_addf(&pair, "%s:%s", f->options.user, f->options.password);
    buf_addz(&want, "Basic ");
    base64_encode(buf_str(&pair), &want);
    return strcmp(want.p, maybe_authorization) == 0;
}

static bool token_allows_locked(struct fake_registry *f, const char *maybe_authorization,
                                const char *repository, const char *action)
{
    AUTO_BUF want = { 0 };
    if (!maybe_authorization || strncmp(maybe_authorization, "Bearer ", 7) != 0)
        return false;
    buf_addf(&want, "%s repository:%s:", maybe_authorization + 7, repository);
    for (size_t i = f->token_first; i < f->tokens.count; i++) {
        const char *token = f->tokens.items[i];
        if (strncmp(token, want.p, want.len) == 0 && strstr(token + want.len, action))
            return true;
    }
    return false;
}

static void challenge(struct fake_registry *f, const char *repository, const char *actions,
                      struct answer *a)
{
    refuse(a, 401, "UNAUTHORIZED");
    if (f->options.auth == FAKE_BASIC) {
        add_header(a, "WWW-Authenticate: Basic realm=\"here, there\"");
        return;
    }
    add_header(a, "WWW-Authenticate: Negotiate");
    if (f->options.realm)
        add_header(
            a, "WWW-Authenticate: Bearer scope=\"repository:%s:%s\",service=\"a, b\",realm=\"%s\"",
            repository, actions, f->options.realm);
    else
        add_header(
            a,
            "WWW-Authenticate: Bearer scope=\"repository:%s:%s\",service=\"a, b\",realm=\"%s://%s/token\"",
            repository, actions, f->options.cert ? "https" : "http", f->host);
}

static bool may_locked(struct fake_registry *f, const char *maybe_authorization,
                       const char *repository, bool writes, struct answer *a)
{
    bool may = f->options.auth == FAKE_OPEN ||
               (f->options.auth == FAKE_BASIC && knows_locked(f, maybe_authorization)) ||
               (f->options.auth == FAKE_TOKEN &&
                token_allows_locked(f, maybe_authorization, repository, writes ? "push" : "pull"));
    if (!may)
        challenge(f, repository, writes ? "pull,push" : "pull", a);
    return may;
}

static void unescape(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        unsigned byte = 0;
        if (*at == '%' && sscanf(at + 1, "%2x", &byte) == 1) {
            *to++ = (char)byte;
            at += 2;
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* The value of a field of a query or form; "" if it is not there. */
static void field(const char *form, const char *name, char out[512])
{
    char key[64];
    snprintf(key, sizeof key, "%s=", name);
    out[0] = '\0';
    for (const char *at = form; at; at = strchr(at, '&')) {
        at += *at == '&';
        if (strncmp(at, key, strlen(key)) != 0)
            continue;
        snprintf(out, 512, "%.*s", (int)strcspn(at + strlen(key), "&"), at + strlen(key));
        unescape(out);
        return;
    }
}

static void give_token_locked(struct fake_registry *f, const char *method, const char *query,
                              const char *body, const char *maybe_authorization, struct answer *a)
{
    char scope[512], secret[512], token[600];
    bool posts = strcmp(method, "POST") == 0;
    field(posts ? body : query, "scope", scope);
    field(body, "refresh_token", secret);
    bool known = posts ? f->options.identity_token && strcmp(secret, f->options.identity_token) == 0
                       : knows_locked(f, maybe_authorization) ||
                             (f->options.anonymous && !maybe_authorization);
    if (!known) {
        refuse(a, 401, "DENIED");
        return;
    }
    snprintf(token, sizeof token, "token-%u %s", ++f->token_count, scope);
    vec_push(&f->tokens, kv_strdup(token));
    add_header(a, "Content-Type: application/json");
    buf_addf(&a->body, "{\"%s\":\"token-%u\"", posts ? "access_token" : "token", f->token_count);
    if (f->options.expires_in)
        buf_addf(&a->body, ",\"expires_in\":%s", f->options.expires_in);
    if (f->options.issued_at)
        buf_addf(&a->body, ",\"issued_at\":\"%s\"", f->options.issued_at);
    buf_addc(&a->body, '}');
}

void fake_registry_revoke_tokens(struct fake_registry *f)
{
    pthread_mutex_lock(&f->lock);
    f->token_first = (uint32_t)f->tokens.count;
    pthread_mutex_unlock(&f->lock);
}

/* --- reading and writing --- */

static void give(const struct stored *maybe, const char *code, struct answer *a)
{
    if (!maybe) {
        refuse(a, 404, code);
        return;
    }
    add_header(a, "Content-Type: %s", maybe->media_type);
    add_header(a, "Docker-Content-Digest: %s", maybe->digest);
    buf_add(&a->body, buf_str(&maybe->bytes));
}

static bool refers(const struct stored *it, const char *repository, const char *subject,
                   const char *type, struct arena *arena, struct oci_manifest *out)
{
    return it->repository && strcmp(it->repository, repository) == 0 &&
           manifest_read(arena, "stored", str_of(it->media_type), buf_str(&it->bytes), out, NULL) ==
               0 &&
           str_eqz(out->subject.digest, subject) &&
           (type[0] == '\0' || str_eqz(out->artifact_type, type));
}

static void list_referrers_locked(struct fake_registry *f, const char *repository,
                                  const char *subject, const char *query, struct answer *a)
{
    AUTO_ARENA arena = { 0 };
    char type[512], from[512];
    uint32_t count = 0, shown = 0;
    field(query, "artifactType", type);
    field(query, "from", from);
    uint32_t first = (uint32_t)atoi(from);
    if (f->options.filters)
        add_header(a, "OCI-Filters-Applied: artifactType");
    else
        type[0] = '\0';
    add_header(a, "Content-Type: " MEDIA_OCI_INDEX "; charset=utf-8");
    buf_addz(&a->body,
             "{\"schemaVersion\":2,\"mediaType\":\"" MEDIA_OCI_INDEX "\",\"manifests\":[");
    vec_each(&f->stored, struct stored *, it) {
        struct oci_manifest manifest;
        struct doc doc;
        if (!refers(*it, repository, subject, type, &arena, &manifest) || count++ < first ||
            (f->options.page > 0 && shown == f->options.page))
            continue;
        KV_ASSERT(json_read(buf_str(&(*it)->bytes), &doc, NULL) == 0);
        buf_addf(&a->body,
                 "%s{\"mediaType\":\"%s\",\"digest\":\"%s\",\"size\":%zu,\"artifactType\":\"%.*s\"",
                 shown++ ? "," : "", (*it)->media_type, (*it)->digest, (*it)->bytes.len,
                 STR_ARG(manifest.artifact_type));
        if (json_get(doc.root, STR("annotations"))) {
            buf_addz(&a->body, ",\"annotations\":");
            json_write(json_get(doc.root, STR("annotations")), &a->body);
        }
        buf_addc(&a->body, '}');
        doc_done(&doc);
    }
    buf_addz(&a->body, "]}");
    if (first + shown < count)
        add_header(a, "Link: </v2/%s/referrers/%s?from=%u&artifactType=%s>; rel=\"next\"",
                   repository, subject, first + shown, type);
}

static void put_manifest_locked(struct fake_registry *f, const char *repository, const char *which,
                                const char *maybe_type, struct str body, struct answer *a)
{
    AUTO_ARENA arena = { 0 };
    struct oci_manifest manifest;
    struct str type = str_of(maybe_type ? maybe_type : "");
    if (manifest_read(&arena, "pushed", type, body, &manifest, NULL) < 0) {
        refuse(a, 400, "MANIFEST_INVALID");
        return;
    }
    store_locked(f, repository, strchr(which, ':') ? NULL : which, maybe_type, body, NULL);
    a->status = 201;
    if (!f->options.without_referrers && manifest.subject.digest.len > 0)
        add_header(a, "OCI-Subject: %.*s", STR_ARG(manifest.subject.digest));
}

static void put_blob_locked(struct fake_registry *f, const char *query, struct str body,
                            struct answer *a)
{
    char digest[512];
    field(query, "digest", digest);
    if (digest_verify(str_of(digest), body, NULL) < 0) {
        refuse(a, 400, "DIGEST_INVALID");
        return;
    }
    store_locked(f, NULL, NULL, "application/octet-stream", body, NULL);
    a->status = 201;
}

struct asked {
    const char *method;
    char *path;
    const char *query; /* "" if there is none */
    struct str body;
    const char *maybe_authorization, *maybe_type;
};

/* "/v2/REPOSITORY/KIND/WHICH" */
static void serve_locked(struct fake_registry *f, struct asked *q, struct answer *a)
{
    static const char *const paths[] = { "/manifests/", "/blobs/", "/referrers/" };
    bool writes = strcmp(q->method, "PUT") == 0 || strcmp(q->method, "POST") == 0;
    char *at = NULL;
    if (strcmp(q->path, "/token") == 0) {
        give_token_locked(f, q->method, q->query, q->body.p, q->maybe_authorization, a);
        return;
    }
    size_t kind = 0;
    for (; kind < KV_COUNT_OF(paths) && !at; kind++)
        at = strstr(q->path, paths[kind]);
    if (strncmp(q->path, "/v2/", 4) != 0 || !at ||
        (strcmp(paths[kind - 1], "/referrers/") == 0 && f->options.without_referrers)) {
        a->status = 404;
        add_header(a, "Content-Type: text/plain");
        buf_addz(&a->body, "404 page not found\n");
        return;
    }
    *at = '\0';
    const char *repository = q->path + 4, *which = at + strlen(paths[kind - 1]);
    if (!may_locked(f, q->maybe_authorization, repository, writes, a))
        return;
    if (strcmp(paths[kind - 1], "/referrers/") == 0) {
        list_referrers_locked(f, repository, which, q->query, a);
    } else if (strcmp(paths[kind - 1], "/manifests/") == 0) {
        if (writes)
            put_manifest_locked(f, repository, which, q->maybe_type, q->body, a);
        else
            give(find_locked(f, repository, which), "MANIFEST_UNKNOWN", a);
    } else if (strcmp(q->method, "POST") == 0) {
        a->status = 202;
        add_header(a, "Location: /v2/%s/blobs/uploads/1?_state=x", repository);
    } else if (writes) {
        put_blob_locked(f, q->query, q->body, a);
    } else {
        give(find_locked(f, NULL, which), "BLOB_UNKNOWN", a);
    }
}

/* --- faults --- */

static bool fault_for_locked(struct fake_registry *f, const char *line, struct fake_fault *out)
{
    for (size_t i = f->faults.count; i-- > 0;) {
        struct fault_state *it = &f->faults.items[i];
        if (!strstr(line, it->fault.on) || (it->fault.times > 0 && it->used == it->fault.times))
            continue;
        it->used++;
        *out = it->fault;
        return true;
    }
    return false;
}

void fake_registry_fault(struct fake_registry *f, struct fake_fault fault)
{
    pthread_mutex_lock(&f->lock);
    vec_push(&f->faults, (struct fault_state){ .fault = fault });
    pthread_mutex_unlock(&f->lock);
}

static void apply_fault(const struct fake_fault *fault, struct answer *a)
{
    if (fault->without) {
        for (size_t i = 0; i < a->headers.count; i++)
            if (strncasecmp(a->headers.items[i], fault->without, strlen(fault->without)) == 0)
                a->headers.items[i][0] = '\0';
        return;
    }
    answer_done(a);
    *a = (struct answer){ .status = fault->status ? fault->status : 200 };
    for (size_t i = 0; i < KV_COUNT_OF(fault->headers) && fault->headers[i]; i++)
        add_header(a, "%s", fault->headers[i]);
    if (fault->body)
        buf_addz(&a->body, fault->body);
}

static ssize_t read_endless(void *ctx KV_UNUSED, uint64_t at KV_UNUSED, char *out, size_t max)
{
    memset(out, ' ', max);
    return (ssize_t)max;
}

/* Nothing, slowly: the other side is to give up by the head alone. */
static ssize_t read_nothing(void *ctx, uint64_t at KV_UNUSED, char *out KV_UNUSED,
                            size_t max KV_UNUSED)
{
    struct fake_registry *f = ctx;
    pthread_mutex_lock(&f->lock);
    while (!f->stopping)
        pthread_cond_wait(&f->moved, &f->lock);
    pthread_mutex_unlock(&f->lock);
    return MHD_CONTENT_READER_END_WITH_ERROR;
}

/* --- the server --- */

static struct MHD_Response *response_of(struct fake_registry *f, const struct fake_fault *fault,
                                        const struct answer *a)
{
    if (fault->endless)
        return MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 65536, read_endless, NULL, NULL);
    if (fault->claims > 0)
        return MHD_create_response_from_callback(fault->claims, 4096, read_nothing, f, NULL);
    return MHD_create_response_from_buffer(a->body.len, (void *)buf_str(&a->body).p,
                                           MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result send_answer(struct fake_registry *f, struct MHD_Connection *connection,
                                   const struct fake_fault *fault, const struct answer *a)
{
    struct MHD_Response *response = response_of(f, fault, a);
    vec_each(&a->headers, char *, it) {
        char *colon = strchr(*it, ':');
        if (!colon)
            continue;
        *colon = '\0';
        KV_ASSERT(MHD_add_response_header(response, *it, colon + 2) == MHD_YES);
    }
    enum MHD_Result queued = MHD_queue_response(connection, (unsigned)a->status, response);
    MHD_destroy_response(response);
    return queued;
}

static enum MHD_Result answer(struct fake_registry *f, struct MHD_Connection *connection,
                              struct exchange *x, const char *method)
{
    struct fake_fault fault = { 0 };
    struct answer a = { .status = 200 };
    AUTO_BUF line = { 0 };
    AUTO_FREE char *path = kv_strdup(x->target);
    char *query = strchr(path, '?');
    if (query)
        *query++ = '\0';
    struct asked q = {
        .method = method,
        .path = path,
        .query = query ? query : "",
        .body = buf_str(&x->body),
        .maybe_authorization =
            MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization"),
        .maybe_type = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Type"),
    };
    buf_addf(&line, "%s %s [%s] %.*s", method, x->target,
             q.maybe_authorization ? q.maybe_authorization : "", STR_ARG(q.body));
    pthread_mutex_lock(&f->lock);
    vec_push(&f->seen, kv_strdup(line.p));
    bool faulty = fault_for_locked(f, line.p, &fault);
    serve_locked(f, &q, &a);
    while (fault.holds && !f->stopping)
        pthread_cond_wait(&f->moved, &f->lock);
    pthread_mutex_unlock(&f->lock);
    if (faulty)
        apply_fault(&fault, &a);
    enum MHD_Result result = fault.hangs_up ? MHD_NO : send_answer(f, connection, &fault, &a);
    answer_done(&a);
    return result;
}

static void *on_target(void *ctx KV_UNUSED, const char *target,
                       struct MHD_Connection *connection KV_UNUSED)
{
    struct exchange *x = kv_calloc(1, sizeof *x);
    x->target = kv_strdup(target);
    return x;
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *connection,
                                  const char *url KV_UNUSED, const char *method,
                                  const char *version KV_UNUSED, const char *piece,
                                  size_t *piece_len, void **state)
{
    struct exchange *x = *state;
    if (!x->body.p) { /* the head: a body may follow */
        buf_reserve(&x->body, 1);
        x->body.p[0] = '\0';
        return MHD_YES;
    }
    if (*piece_len > 0) {
        buf_add(&x->body, (struct str){ piece, *piece_len });
        *piece_len = 0;
        return MHD_YES;
    }
    return answer(ctx, connection, x, method);
}

static void on_request_end(void *ctx KV_UNUSED, struct MHD_Connection *connection KV_UNUSED,
                           void **state, enum MHD_RequestTerminationCode code KV_UNUSED)
{
    struct exchange *x = *state;
    if (!x)
        return;
    buf_done(&x->body);
    free(x->target);
    free(x);
}

struct fake_registry *fake_registry_new(struct fake_registry_options options)
{
    struct fake_registry *f = kv_calloc(1, sizeof *f);
    struct sockaddr_in loopback = { .sin_family = AF_INET,
                                    .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
    struct MHD_OptionItem tls[3] = { { MHD_OPTION_END, 0, NULL } };
    f->options = options;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->moved, NULL);
    if (options.cert) {
        tls[0] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0,
                                          (void *)options.cert->cert_pem.p };
        tls[1] =
            (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)options.cert->key_pem.p };
        tls[2] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };
    }
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     (options.cert ? MHD_USE_TLS : 0);
    f->daemon =
        MHD_start_daemon(flags, 0, NULL, NULL, on_request, f, MHD_OPTION_SOCK_ADDR, &loopback,
                         MHD_OPTION_URI_LOG_CALLBACK, on_target, NULL, MHD_OPTION_NOTIFY_COMPLETED,
                         on_request_end, NULL, MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    KV_ASSERT(f->daemon);
    snprintf(f->host, sizeof f->host, "127.0.0.1:%u",
             MHD_get_daemon_info(f->daemon, MHD_DAEMON_INFO_BIND_PORT)->port);
    return f;
}

void fake_registry_free(struct fake_registry *f)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->stopping = true;
    pthread_cond_broadcast(&f->moved);
    pthread_mutex_unlock(&f->lock);
    MHD_stop_daemon(f->daemon);
    vec_each(&f->stored, struct stored *, it)
        stored_free(*it);
    vec_done(&f->stored);
    vec_done(&f->faults);
    vec_each(&f->seen, char *, it)
        free(*it);
    vec_done(&f->seen);
    vec_each(&f->tokens, char *, it)
        free(*it);
    vec_done(&f->tokens);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->moved);
    free(f);
}

const char *fake_registry_host(const struct fake_registry *f)
{
    return f->host;
}

uint32_t fake_registry_seen(struct fake_registry *f, const char *words)
{
    uint32_t count = 0;
    pthread_mutex_lock(&f->lock);
    vec_each(&f->seen, char *, it)
        count += strstr(*it, words) != NULL;
    pthread_mutex_unlock(&f->lock);
    return count;
}

void fake_registry_forget_seen(struct fake_registry *f)
{
    pthread_mutex_lock(&f->lock);
    vec_each(&f->seen, char *, it)
        free(*it);
    vec_clear(&f->seen);
    pthread_mutex_unlock(&f->lock);
}

struct registry *fake_registry_client(const struct fake_registry *f,
                                      struct registry_options options)
{
    struct registry *client = NULL;
    struct err err = { 0 };
    struct str host = str_of(f->host);
    setenv("no_proxy", "*", 1); /* whatever this machine's environment says */
    if (!options.clock)
        options.clock = clock_real();
    if (!f->options.cert && options.plain_http.count == 0)
        options.plain_http = (struct str_list){ &host, 1 };
    KV_ASSERT(registry_new(options, &client, &err) == 0);
    return client;
}
