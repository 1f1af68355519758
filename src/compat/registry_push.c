/* compat/registry_push.c - blobs and manifests go up.
 *
 * A blob that is there already is not sent. Else an upload is begun, and finished by a second request with
 * all the bytes, at the place that the first reply names. When that fails on the way nobody knows how far
 * the registry got, so it begins anew: by then the blob may be there. */
#include "compat/registry_inner.h"

#include "net/digest.h"

/* Where the bytes go: the upload's place, which may already have a query. */
static int begin_upload(const struct registry_session *s, struct str digest, struct buf *out,
                        struct err *err)
{
    AUTO_BUF url = { 0 };
    AUTO_ANSWER answer = { 0 };
    registry_session_url(s, &url, "/blobs/uploads/");
    struct registry_request request = {
        .method = "POST",
        .url = buf_str(&url),
        .body = STR(""),
        .bytes_max = REGISTRY_ERROR_BYTES_MAX,
    };
    if (registry_session_send(s, &request, &answer, err) < 0)
        return -1;
    if (answer.status != 202)
        return registry_refusal(s->registry, &answer, err);
    struct str location = http_reply_header(answer.call, STR("Location"));
    if (!location.p)
        return err_set(err, ERR_INVALID, "the registry does not say where to send it");
    if (url_join(buf_str(&answer.url), location, out, err) < 0)
        return -1;
    if (!url_same_origin(buf_str(out), buf_str(&url)))
        return err_set(err, ERR_DENIED, "the registry wants it sent to another host");
    buf_addz(out, str_find(buf_str(out), '?') < 0 ? "?digest=" : "&digest=");
    url_escape(digest, out);
    return 0;
}

static int upload(const struct registry_session *s, struct str digest, struct str bytes,
                  struct err *err)
{
    AUTO_BUF url = { 0 };
    AUTO_ANSWER answer = { 0 };
    if (begin_upload(s, digest, &url, err) < 0)
        return -1;
    struct registry_request request = {
        .method = "PUT",
        .url = buf_str(&url),
        .content_type = STR("application/octet-stream"),
        .body = bytes,
        .bytes_max = REGISTRY_ERROR_BYTES_MAX,
        .once = true,
    };
    if (registry_session_send(s, &request, &answer, err) < 0)
        return -1;
    return answer.status == 201 ? 0 : registry_refusal(s->registry, &answer, err);
}

/* 1: it is there. */
static int has_blob(const struct registry_session *s, struct str digest, struct err *err)
{
    AUTO_BUF url = { 0 };
    AUTO_ANSWER answer = { 0 };
    registry_session_url(s, &url, "/blobs/%.*s", STR_ARG(digest));
    struct registry_request request = { .method = "HEAD",
                                        .url = buf_str(&url),
                                        .bytes_max = REGISTRY_ERROR_BYTES_MAX };
    if (registry_session_send(s, &request, &answer, err) < 0)
        return -1;
    if (answer.status == 200)
        return 1;
    return answer.status == 404 ? 0 : registry_refusal(s->registry, &answer, err);
}

static int push_blob(const struct registry_session *s, struct str digest, struct str bytes,
                     struct err *err)
{
    if (digest_verify(digest, bytes, err) < 0)
        return -1;
    for (uint32_t tried = 0;; tried++) {
        struct err why = { 0 };
        int has = has_blob(s, digest, &why);
        if (has == 1 || (has == 0 && upload(s, digest, bytes, &why) == 0))
            return 0;
        if (has < 0 || why.kind != ERR_UNAVAILABLE || tried == REGISTRY_RETRIES_MAX) {
            if (err)
                *err = why;
            return -1;
        }
    }
}

int registry_push_blob(struct registry *r, const struct reference *ref,
                       const struct keyring *maybe_keys, struct str digest, struct str bytes,
                       struct err *err)
{
    struct registry_session s = registry_session(r, ref, maybe_keys, "pull,push");
    if (push_blob(&s, digest, bytes, err) < 0)
        return err_wrap(err, "%.*s/%.*s: push blob %s", STR_ARG(s.name), STR_ARG(ref->repository),
                        STR_SHOWN(digest));
    return 0;
}

static int push_manifest(const struct registry_session *s, struct str which, struct str media_type,
                         struct str bytes, bool *maybe_has_referrers, struct err *err)
{
    AUTO_BUF url = { 0 };
    AUTO_ANSWER answer = { 0 };
    if (digest_is_valid(which, NULL) && digest_verify(which, bytes, err) < 0)
        return -1;
    registry_session_url(s, &url, "/manifests/%.*s", STR_ARG(which));
    struct registry_request request = { /* twice is as once: it may be tried again */
                                        .method = "PUT",
                                        .url = buf_str(&url),
                                        .content_type = media_type,
                                        .body = bytes,
                                        .bytes_max = REGISTRY_ERROR_BYTES_MAX
    };
    if (registry_session_send(s, &request, &answer, err) < 0)
        return -1;
    if (answer.status != 201)
        return registry_refusal(s->registry, &answer, err);
    if (maybe_has_referrers)
        *maybe_has_referrers = http_reply_header(answer.call, STR("OCI-Subject")).p != NULL;
    return 0;
}

int registry_push_manifest(struct registry *r, const struct reference *ref,
                           const struct keyring *maybe_keys, struct str which,
                           struct str media_type, struct str bytes, bool *maybe_has_referrers,
                           struct err *err)
{
    struct registry_session s = registry_session(r, ref, maybe_keys, "pull,push");
    if (push_manifest(&s, which, media_type, bytes, maybe_has_referrers, err) < 0)
        return err_wrap(err, "%.*s/%.*s: push manifest %s", STR_ARG(s.name),
                        STR_ARG(ref->repository), STR_SHOWN(which));
    return 0;
}
