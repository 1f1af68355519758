/* store/kube_refusal.c - from a reply that says no to an error.
 *
 * An API server explains itself with a Status object: a code, a reason (which tells codes apart
 * that mean several things), a message for people and causes that the message may leave out. What
 * stands between us and it (a proxy, a load balancer) answers with a page of its own, of which the
 * beginning is shown.
 */
#include "store/kube_client.h"

#define BODY_BYTES_MAX ((size_t)1 << 20) /* of a Status that is read; more than that is none */
#define SHOWN_BYTES_MAX 300              /* of a body that is no Status */
#define CAUSES_MAX 8                     /* shown */

static enum err_kind kind_of(int code, struct str reason)
{
    switch (code) {
    case 401:
    case 403:
        return ERR_DENIED;
    case 404:
        return ERR_NOT_FOUND;
    case 408:
    case 502:
    case 503:
    case 504:
        return ERR_UNAVAILABLE;
    case 409:
        return str_eqz(reason, "AlreadyExists") ? ERR_EXISTS : ERR_CONFLICT;
    case 410:
        return ERR_GONE;
    case 429:
        return ERR_THROTTLED;
    case 500:
        return str_eqz(reason, "ServerTimeout") ? ERR_UNAVAILABLE : ERR_INTERNAL;
    default:
        return code >= 400 && code < 500 ? ERR_INVALID : ERR_INTERNAL;
    }
}

/* White space and what a terminal obeys become one space each, malformed bytes U+FFFD. */
static void add_plain(struct buf *out, struct str s)
{
    size_t start = out->len;
    buf_add_utf8(out, s);
    for (size_t i = start; i < out->len; i++) {
        unsigned char c = (unsigned char)out->p[i];
        if (c < ' ' || c == 0x7f)
            out->p[i] = ' ';
        else if (c == 0xc2 && (unsigned char)out->p[i + 1] < 0xa0) /* U+0080 to U+009F */
            out->p[i] = out->p[i + 1] = ' ';
    }
}

static bool has_text(const struct buf *in, struct str text)
{
    struct str all = buf_str(in);
    return memmem(all.p, all.len, text.p, text.len) != NULL;
}

/* Those that the message does not say already. */
static void add_causes(struct buf *out, const json_val *causes)
{
    size_t shown = 0;

    json_each_item(causes, cause) {
        struct str text = json_str(json_get(cause, STR("message")));
        if (text.len == 0 || has_text(out, text))
            continue;
        if (shown++ == CAUSES_MAX)
            return;
        buf_addz(out, out->len > 0 ? ": " : "");
        add_plain(out, text);
    }
}

static bool has_cause(const json_val *causes, const char *reason)
{
    json_each_item(causes, cause) {
        if (str_eqz(json_str(json_get(cause, STR("reason"))), reason))
            return true;
    }
    return false;
}

int kube_refusal_status(const json_val *status, int http_status, bool *maybe_budget,
                        struct err *err)
{
    struct str reason = json_str(json_get(status, STR("reason")));
    const json_val *causes = json_path(status, "details.causes");
    int64_t said = 0;
    AUTO_BUF text = { 0 };

    /* The code of a reply is the one it came with; an event of a watch has no other than its own. */
    if (http_status / 100 == 2 && json_i64(json_get(status, STR("code")), &said) && said > 0 &&
        said < 1000)
        http_status = (int)said;
    enum err_kind kind = kind_of(http_status, reason);
    /* A version from the future is of another life of the server (it was restored from a backup):
     * as with one from too long ago, only a list can tell what is true. */
    if (has_cause(causes, "ResourceVersionTooLarge"))
        kind = ERR_GONE;
    if (maybe_budget)
        *maybe_budget = http_status == 429 && has_cause(causes, "DisruptionBudget");

    add_plain(&text, json_str(json_get(status, STR("message"))));
    add_causes(&text, causes);
    if (text.len == 0)
        buf_addf(&text, "the server answered with %d %s", http_status,
                 reason.len > 0 ? STR_SHOWN(reason) : "and no message");
    return err_set(err, kind, "%s", text.p);
}

int kube_refusal(int http_status, struct str body, bool *maybe_budget, struct err *err)
{
    struct doc doc = { 0 };
    struct err ignored;
    AUTO_BUF text = { 0 };

    if (maybe_budget)
        *maybe_budget = false;
    if (body.len > 0 && body.len <= BODY_BYTES_MAX &&
        json_read_trusted(body, &doc, &ignored) == 0) {
        bool is_status = str_eqz(json_str(json_get(doc.root, STR("kind"))), "Status");
        if (is_status)
            kube_refusal_status(doc.root, http_status, maybe_budget, err);
        doc_done(&doc);
        if (is_status)
            return -1;
    }
    add_plain(&text, str_sub(body, 0, str_utf8_cut(body, SHOWN_BYTES_MAX)));
    struct str shown = str_trim(buf_str(&text));
    return err_set(err, kind_of(http_status, STR("")), "the server answered with %d%s%.*s%s",
                   http_status, shown.len > 0 ? ": " : "", STR_ARG(shown),
                   body.len > SHOWN_BYTES_MAX ? "..." : "");
}
