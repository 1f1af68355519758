/* compat/registry_auth.c - who we are to a registry.
 *
 * A request goes out with what worked last time for the same repository, actions and keyring, or with
 * nothing. A 401 says what is wanted: a name and password, or a token of a token server, which in turn is
 * asked with a name and password, with an identity token, or by nobody in particular. Each credential that
 * matches the repository is tried once, the most specific first; what works is remembered as a grant.
 *
 * A grant is found by host, repository, actions and the keyring's content, so two pull secrets never
 * share one: which of them may pull is for the registry to say. The service and scope that a token is for
 * follow from these, as the registry that asked for them is the only one to see it.
 *
 * A challenge is believed only from the host that was asked: one that a redirect led to could name any
 * token server and collect passwords. */
#include "compat/registry_inner.h"

#include "codec/base64.h"
#include "codec/duration.h"
#include "codec/json.h"

#include <stdio.h>

#define TOKEN_REPLY_BYTES_MAX ((size_t)256 << 10)
#define TOKEN_LIFE_DEFAULT_S 60
#define TOKEN_LIFE_S_MAX 86400
#define CHALLENGES_MAX 16 /* headers of one reply that are looked at */

struct grant {
    char *authorization; /* owned; a secret */
    int64_t until_ns;
};

static void wipe(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* --- grants --- */

static void grant_free(struct grant *grant)
{
    if (!grant)
        return;
    wipe(grant->authorization);
    free(grant);
}

static void grant_key(const struct registry_session *s, struct buf *key)
{
    buf_addf(key, "%.*s/%.*s %s %016llx", STR_ARG(s->host), STR_ARG(s->ref->repository), s->actions,
             (unsigned long long)keyring_identity(s->maybe_keys));
}

static bool grant_get(const struct registry_session *s, struct buf *out)
{
    struct registry *r = s->registry;
    AUTO_BUF key = { 0 };
    grant_key(s, &key);
    pthread_mutex_lock(&r->lock);
    struct grant *grant = str_table_get(&r->grants, buf_str(&key));
    bool valid = grant && clock_mono_ns(r->clock) < grant->until_ns;
    if (valid)
        buf_addz(out, grant->authorization);
    pthread_mutex_unlock(&r->lock);
    return valid;
}

static void grant_drop(const struct registry_session *s)
{
    struct registry *r = s->registry;
    AUTO_BUF key = { 0 };
    grant_key(s, &key);
    pthread_mutex_lock(&r->lock);
    grant_free(str_table_remove(&r->grants, buf_str(&key)));
    pthread_mutex_unlock(&r->lock);
}

/* Room for one more: those that have run out go, and if there are none the oldest. */
static void make_room_locked(struct registry *r)
{
    int64_t now_ns = clock_mono_ns(r->clock);
    if (r->grants.live_count < REGISTRY_REMEMBERED_MAX)
        return;
    str_table_each(&r->grants, it) {
        struct grant *grant = it->value;
        if (grant->until_ns <= now_ns)
            grant_free(str_table_remove(&r->grants, it->key));
    }
    str_table_each(&r->grants, it) {
        if (r->grants.live_count < REGISTRY_REMEMBERED_MAX)
            break;
        grant_free(str_table_remove(&r->grants, it->key));
    }
}

static void grant_put(const struct registry_session *s, struct str authorization, int64_t until_ns)
{
    struct registry *r = s->registry;
    AUTO_BUF key = { 0 };
    struct grant *grant = kv_calloc(1, sizeof *grant);
    grant->authorization = str_dup(authorization);
    grant->until_ns = until_ns;
    grant_key(s, &key);
    pthread_mutex_lock(&r->lock);
    grant_free(str_table_remove(&r->grants, buf_str(&key)));
    make_room_locked(r);
    str_table_put(&r->grants, buf_str(&key), grant);
    pthread_mutex_unlock(&r->lock);
}

void registry_forget_grants(struct registry *r)
{
    str_table_each(&r->grants, it)
        grant_free(it->value);
    str_table_done(&r->grants);
}

/* --- token servers --- */

static void add_basic(const struct credential *credential, struct buf *out)
{
    AUTO_SECRET_BUF pair = { 0 };
    buf_add(&pair, credential->username);
    buf_addc(&pair, ':');
    buf_add(&pair, credential->password);
    buf_addz(out, "Basic ");
    base64_encode(buf_str(&pair), out);
}

static int check_realm(const struct registry_session *s, struct str realm, struct err *err)
{
    struct http_url url;
    if (http_url_parse(realm, &url, err) < 0)
        return err_wrap(err, "token server");
    if (!url.tls && !registry_is_plain(s->registry, s->host) &&
        !registry_is_plain(s->registry, url.authority))
        return err_set(err, ERR_DENIED, "token server %s is without TLS", STR_SHOWN(url.authority));
    return 0;
}

static void add_field(struct buf *out, const char *name, struct str value)
{
    if (value.len == 0)
        return;
    buf_addf(out, "%s%s=", out->len > 0 && out->p[out->len - 1] != '?' ? "&" : "", name);
    url_escape(value, out);
}

/* How long the token is good for, from now: as it says, less what has passed since it was issued, less a
 * tenth. */
static int64_t token_life_ns(const struct registry *r, const json_val *reply)
{
    int64_t life_s = 0, issued_us = 0;
    if (!json_i64(json_get(reply, STR("expires_in")), &life_s) || life_s <= 0)
        life_s = TOKEN_LIFE_DEFAULT_S;
    if (life_s > TOKEN_LIFE_S_MAX)
        life_s = TOKEN_LIFE_S_MAX;
    int64_t life_us = life_s * 1000000;
    struct str issued = json_str(json_get(reply, STR("issued_at")));
    if (issued.p && time_parse(issued, &issued_us, NULL) == 0) {
        int64_t age_us = clock_wall_us(r->clock) - issued_us;
        if (age_us > 0) /* a clock that is behind ours would make the token live longer */
            life_us = age_us < life_us ? life_us - age_us : 0;
    }
    return life_us * 900;
}

static int read_token(const struct registry *r, struct str text, struct buf *authorization,
                      int64_t *life_ns, struct err *err)
{
    struct doc doc = { 0 };
    if (json_read(text, &doc, NULL) < 0) /* why would quote it */
        return err_set(err, ERR_INVALID, "the token server answers with what is no JSON");
    struct str token = json_str(json_get(doc.root, STR("token")));
    if (token.len == 0)
        token = json_str(json_get(doc.root, STR("access_token")));
    *life_ns = token_life_ns(r, doc.root);
    if (token.len > 0)
        buf_addf(authorization, "Bearer %.*s", STR_ARG(token));
    doc_done(&doc);
    return token.len > 0 ? 0
                         : err_set(err, ERR_INVALID, "the token server answers without a token");
}

static int get_token(const struct registry_session *s, const struct challenge *asked,
                     const struct credential *maybe_credential, struct buf *authorization,
                     int64_t *life_ns, struct err *err)
{
    AUTO_BUF url = { 0 };
    AUTO_BUF scope = { 0 };
    AUTO_SECRET_BUF form = { 0 };
    AUTO_SECRET_BUF basic = { 0 };
    AUTO_ANSWER answer = { 0 };
    bool exchanges = maybe_credential && maybe_credential->identity_token.len > 0;
    if (check_realm(s, asked->realm, err) < 0)
        return -1;
    if (asked->scope.len > 0)
        buf_add(&scope, asked->scope);
    else
        buf_addf(&scope, "repository:%.*s:%s", STR_ARG(s->ref->repository), s->actions);

    buf_add(&url, asked->realm);
    if (exchanges) {
        buf_addz(&form, "grant_type=refresh_token");
        add_field(&form, "service", asked->service);
        add_field(&form, "scope", buf_str(&scope));
        add_field(&form, "client_id", STR("karve"));
        add_field(&form, "refresh_token", maybe_credential->identity_token);
    } else {
        if (str_find(asked->realm, '?') < 0)
            buf_addc(&url, '?');
        add_field(&url, "service", asked->service);
        add_field(&url, "scope", buf_str(&scope));
        if (maybe_credential)
            add_basic(maybe_credential, &basic);
    }
    struct registry_request request = {
        .method = exchanges ? "POST" : "GET",
        .url = buf_str(&url),
        .accept = STR("application/json"),
        .content_type = exchanges ? STR("application/x-www-form-urlencoded") : STR_NONE,
        .authorization = basic.len > 0 ? buf_str(&basic) : STR_NONE,
        .body = exchanges ? buf_str(&form) : STR_NONE,
        .bytes_max = TOKEN_REPLY_BYTES_MAX,
    };
    if (registry_send(s->registry, &request, s->deadline_ns, &answer, err) < 0)
        return err_wrap(err, "token server");
    if (answer.status == 200)
        return read_token(s->registry, answer.body, authorization, life_ns, err);
    registry_refusal(s->registry, &answer, err);
    if (err && (err->kind == ERR_INVALID || err->kind == ERR_NOT_FOUND))
        err->kind = ERR_DENIED; /* it gives us none, whatever it calls that */
    return err_wrap(err, "token server");
}

/* --- challenges --- */

static int authorize(const struct registry_session *s, const struct challenge *asked,
                     const struct credential *maybe_credential, struct buf *authorization,
                     int64_t *life_ns, struct err *err)
{
    *life_ns = INT64_MAX / 2; /* what is no token does not run out */
    if (maybe_credential && maybe_credential->registry_token.len > 0) {
        buf_addf(authorization, "Bearer %.*s", STR_ARG(maybe_credential->registry_token));
        return 0;
    }
    if (asked->bearer && asked->realm.len > 0)
        return get_token(s, asked, maybe_credential, authorization, life_ns, err);
    if (!asked->basic)
        return err_set(err, ERR_DENIED,
                       "the registry wants to know who asks, in a way that is not known here");
    if (!maybe_credential || maybe_credential->username.len == 0)
        return err_set(err, ERR_DENIED,
                       "the registry wants a name and password, and there are none");
    add_basic(maybe_credential, authorization);
    return 0;
}

static struct challenge read_challenges(struct arena *arena, const struct registry_answer *answer)
{
    struct challenge asked = { 0 };
    for (uint32_t i = 0; i < CHALLENGES_MAX; i++) {
        struct str header = http_reply_header_at(answer->call, STR("WWW-Authenticate"), i);
        if (!header.p)
            break;
        challenge_read(arena, header, &asked);
    }
    return asked;
}

/* One credential, or none in particular. 1: the registry does not take it; `err` says why. */
static int try_as(const struct registry_session *s, const struct registry_request *request,
                  const struct challenge *asked, const struct credential *maybe_credential,
                  struct registry_answer *out, struct err *err)
{
    AUTO_SECRET_BUF authorization = { 0 };
    int64_t life_ns = 0, start_ns = clock_mono_ns(s->registry->clock);
    if (authorize(s, asked, maybe_credential, &authorization, &life_ns, err) < 0)
        return err->kind == ERR_DENIED ? 1 : -1;
    struct registry_request again = *request;
    again.authorization = buf_str(&authorization);
    if (registry_send(s->registry, &again, s->deadline_ns, out, err) < 0)
        return -1;
    if (out->status == 401 || out->status == 403) {
        registry_refusal(s->registry, out, err);
        return 1;
    }
    grant_put(s, buf_str(&authorization), start_ns + life_ns);
    return 0;
}

static int answer_challenge(const struct registry_session *s,
                            const struct registry_request *request, struct registry_answer *out,
                            struct err *err)
{
    AUTO_ARENA arena = { 0 };
    const struct credential *credentials = NULL;
    struct err why = { 0 };
    struct challenge asked = read_challenges(&arena, out);
    uint32_t count =
        keyring_match(s->maybe_keys, &arena, s->name, s->ref->repository, &credentials);
    int tried = 1;
    for (uint32_t i = 0; tried == 1 && i < (count > 0 ? count : 1); i++)
        tried = try_as(s, request, &asked, count > 0 ? &credentials[i] : NULL, out, &why);
    if (tried == 0)
        return 0;
    if (err)
        *err = why;
    return tried < 0 || count > 0 ? -1 : err_wrap(err, "no credentials for it");
}

int registry_session_send(const struct registry_session *s, const struct registry_request *request,
                          struct registry_answer *out, struct err *err)
{
    AUTO_SECRET_BUF before = { 0 };
    struct registry_request first = *request;
    bool granted = grant_get(s, &before);
    if (granted)
        first.authorization = buf_str(&before);
    if (registry_send(s->registry, &first, s->deadline_ns, out, err) < 0)
        return -1;
    if (granted && (out->status == 401 || out->status == 403))
        grant_drop(s);
    if (out->status != 401 || !url_same_origin(buf_str(&out->url), request->url))
        return 0;
    return answer_challenge(s, request, out, err);
}
