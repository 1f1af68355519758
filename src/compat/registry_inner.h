/* compat/registry_inner.h - what the files of the registry client share.
 *
 * From the outside in: a session is one call of ours with its budget; it sends requests as somebody
 * (registry_auth.c); a request is sent again while that may help (registry_transport.c); each time it
 * follows redirects, and every hop is one HTTP exchange with a host that may be talked to
 * (registry_hosts.c).
 */
#pragma once

#include "base/map.h"
#include "base/rng.h"
#include "compat/registry.h"
#include "net/http.h"

#define REGISTRY_REDIRECTS_MAX 5
#define REGISTRY_RETRIES_MAX 2
#define REGISTRY_PAGES_MAX 20
#define REGISTRY_ERROR_BYTES_MAX                                                                   \
    ((size_t)64 << 10) /* of a reply that is only looked at for its errors */
#define REGISTRY_CONFIG_BYTES_MAX ((size_t)4 << 20)
#define REGISTRY_REMEMBERED_MAX 4096 /* grants; repositories without the referrers API */

/* An exchange that runs, so that it can be cancelled. On the stack of who waits for it. */
struct registry_flight {
    struct http_call *call;
    struct registry_flight *previous, *next;
};

struct registry {
    const struct clock *clock;
    struct log *maybe_log;
    struct metric_family *maybe_requests; /* by status */
    struct http *http;
    int64_t timeout_ns, budget_ns;
    struct arena arena; /* owns the texts of the lists */
    struct str_list plain_http, allowed_hosts, mirrors;
    struct compat_specs *specs; /* that were read through it */

    pthread_mutex_t lock; /* guards what follows; a call's own lock may be taken with it held */
    pthread_cond_t moved;
    bool cancelled;
    struct registry_flight *flights;
    struct rng rng;
    struct str_table grants;            /* of struct grant: registry_auth.c */
    struct str_table without_referrers; /* of int64_t, until when: registry_referrers.c */
};

/* --- texts (registry_text.c); pure --- */

/* What a 401 asks for: the union of all its WWW-Authenticate headers. The first challenge of a kind
 * counts. */
struct challenge {
    bool basic, bearer;
    struct str realm, service, scope; /* of the bearer; empty if not told. The arena's */
};
void challenge_read(struct arena *arena, struct str header, struct challenge *io);
/* The target of rel="next" in a Link header; borrows from it. */
bool link_next(struct str header, struct str *out);
/* `location` as seen from `base`, a whole URL. ERR_INVALID: it is none that we speak. */
int url_join(struct str base, struct str location, struct buf *out, struct err *err);
bool url_same_origin(struct str a, struct str b);
void url_escape(struct str text, struct buf *out);   /* for a query or a form */
struct str media_type_only(struct str content_type); /* without its parameters */
/* `*` stands for any run of characters; case does not matter. */
bool host_glob(struct str pattern, struct str host);

/* --- who is talked to, and how (registry_hosts.c) --- */

bool registry_is_plain(const struct registry *r, struct str authority);
bool registry_is_allowed(const struct registry *r, const struct http_url *url);
struct str registry_mirror(const struct registry *r, struct str registry); /* absent: none */
/* For net/http.h; `ctx` is the registry. */
bool registry_may_connect(void *ctx, struct str host, const struct sockaddr *address);

/* --- one request (registry_transport.c) --- */

struct registry_request {
    const char *method;
    struct str url;
    struct str accept, content_type; /* absent: none */
    struct str authorization;        /* absent: none. Goes to the URL's own origin only */
    struct str body;                 /* absent: none */
    size_t bytes_max;                /* of the reply */
    bool once;                       /* is not sent again: the caller begins anew, if anybody */
};

struct registry_answer {
    int status;
    struct str body;        /* lives as long as the answer */
    struct buf url;         /* that it came from, after redirects */
    struct http_call *call; /* for its headers */
};
void registry_answer_done(struct registry_answer *answer);
#define AUTO_ANSWER __attribute__((cleanup(registry_answer_done))) struct registry_answer

/* Any status is a success. What is in `out` before is done with. */
int registry_send(struct registry *r, const struct registry_request *request, int64_t deadline_ns,
                  struct registry_answer *out, struct err *err);
/* The failure that an unwanted status is: its kind, and what the registry says. */
int registry_refusal(const struct registry *r, const struct registry_answer *answer,
                     struct err *err);
bool registry_answer_has_code(const struct registry_answer *answer, const char *code);

/* --- a call of ours, and who it is by (registry_auth.c) --- */

struct registry_session {
    struct registry *registry;
    const struct reference *ref;
    const struct keyring *maybe_keys;
    struct str name;     /* of the registry, by which credentials are found */
    struct str host;     /* that is asked */
    const char *actions; /* "pull", "pull,push" */
    int64_t deadline_ns;
};
struct registry_session registry_session(struct registry *r, const struct reference *ref,
                                         const struct keyring *maybe_keys, const char *actions);
/* "https://host/v2/repository" and the rest. */
void registry_session_url(const struct registry_session *s, struct buf *out, const char *fmt, ...)
    KV_PRINTF(3, 4);
/* registry_send as somebody who may: anonymously, with what worked before, or as the credentials and the
 * registry agree. */
int registry_session_send(const struct registry_session *s, const struct registry_request *request,
                          struct registry_answer *out, struct err *err);
void registry_forget_grants(struct registry *r);

/* --- the calls of registry.h, as parts of a longer one --- */

int session_digest(const struct registry_session *s, struct arena *arena, struct descriptor *out,
                   struct err *err);
/* `which`: a tag or a digest. */
int session_manifest(const struct registry_session *s, struct str which, struct arena *arena,
                     struct oci_manifest *out, struct str *maybe_text,
                     struct descriptor *maybe_self, struct err *err);
int session_blob(const struct registry_session *s, const struct descriptor *blob, size_t bytes_max,
                 struct arena *arena, struct str *out, struct err *err);
int session_referrers(const struct registry_session *s, struct str digest, struct str artifact_type,
                      struct arena *arena, struct referrers *out, struct err *err);
void registry_forget_referrers(struct registry *r);
