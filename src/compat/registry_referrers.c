/* compat/registry_referrers.c - what refers to a manifest.
 *
 * A registry with the referrers API lists it, perhaps in pages. Without, whoever attaches something also
 * keeps an index under a tag made of the digest. That a repository has no API is remembered for a day, so
 * that it costs a request a day and not one per question; that it has one is seen by its answer, and
 * needs no memory. */
#include "compat/registry_inner.h"

#include "base/vec.h"
#include "net/digest.h"

#include <stdio.h>

#define PROBE_AGAIN_NS ((int64_t)24 * 3600 * 1000000000)
#define LINKS_MAX 16 /* headers of one reply that are looked at */

typedef VEC(struct descriptor) descriptors;

/* --- who has no API --- */

static void repository_key(const struct registry_session *s, struct buf *out)
{
    buf_addf(out, "%.*s/%.*s", STR_ARG(s->host), STR_ARG(s->ref->repository));
}

static bool is_without_api(const struct registry_session *s)
{
    struct registry *r = s->registry;
    AUTO_BUF key = { 0 };
    repository_key(s, &key);
    pthread_mutex_lock(&r->lock);
    const int64_t *until_ns = str_table_get(&r->without_referrers, buf_str(&key));
    bool without = until_ns && clock_mono_ns(r->clock) < *until_ns;
    pthread_mutex_unlock(&r->lock);
    return without;
}

static void remember_without_api(const struct registry_session *s)
{
    struct registry *r = s->registry;
    AUTO_BUF key = { 0 };
    repository_key(s, &key);
    pthread_mutex_lock(&r->lock);
    struct str_table *table = &r->without_referrers;
    int64_t *until_ns = str_table_get(table, buf_str(&key));
    if (!until_ns && table->live_count >= REGISTRY_REMEMBERED_MAX)
        str_table_each(table, it) {
            free(str_table_remove(table, it->key)); /* the oldest */
            break;
        }
    if (!until_ns) {
        until_ns = kv_malloc(sizeof *until_ns);
        str_table_put(table, buf_str(&key), until_ns);
    }
    *until_ns = clock_mono_ns(r->clock) + PROBE_AGAIN_NS;
    pthread_mutex_unlock(&r->lock);
}

void registry_forget_referrers(struct registry *r)
{
    str_table_each(&r->without_referrers, it)
        free(it->value);
    str_table_done(&r->without_referrers);
}

/* --- items --- */

static void add_items(descriptors *to, const struct oci_manifest *index, struct str artifact_type,
                      bool filtered)
{
    for (uint32_t i = 0; i < index->count; i++) {
        struct str type = index->items[i].artifact_type;
        if (str_eq(type, artifact_type) || (filtered && type.len == 0))
            vec_push(to, index->items[i]);
    }
    /* A registry that has filtered need not repeat the type. Whoever looks for it finds it. */
    for (size_t i = 0; i < to->count; i++)
        to->items[i].artifact_type = artifact_type;
}

static bool is_index(const struct registry_answer *answer)
{
    struct str type = media_type_only(http_reply_header(answer->call, STR("Content-Type")));
    return str_eqz(type, MEDIA_OCI_INDEX);
}

/* --- the API --- */

static bool filtered_by_type(const struct registry_answer *answer)
{
    struct str applied = http_reply_header(answer->call, STR("OCI-Filters-Applied"));
    for (struct str one; applied.len > 0;) {
        if (!str_cut(applied, ',', &one, &applied))
            applied = STR("");
        if (str_eqz(str_trim(one), "artifactType"))
            return true;
    }
    return false;
}

/* The URL of the next page. 1: this was the last. */
static int next_page(const struct registry_answer *answer, struct buf *url, struct err *err)
{
    struct str target = STR_NONE;
    AUTO_BUF next = { 0 };
    for (uint32_t i = 0; i < LINKS_MAX && !target.p; i++) {
        struct str header = http_reply_header_at(answer->call, STR("Link"), i);
        if (!header.p)
            return 1;
        if (!link_next(header, &target))
            target = STR_NONE;
    }
    if (!target.p)
        return 1;
    if (url_join(buf_str(&answer->url), target, &next, err) < 0)
        return err_wrap(err, "the next page");
    if (!url_same_origin(buf_str(&next), buf_str(url)))
        return err_set(err, ERR_INVALID, "the next page is at another host");
    buf_clear(url);
    buf_add(url, buf_str(&next));
    return 0;
}

enum probe { PROBE_FAILED = -1, PROBE_LAST_PAGE, PROBE_MORE, PROBE_NO_API };

static enum probe ask_page(const struct registry_session *s, struct buf *url, bool first,
                           struct str artifact_type, struct arena *arena, descriptors *items,
                           struct err *err)
{
    AUTO_ANSWER answer = { 0 };
    struct oci_manifest page;
    struct registry_request request = {
        .method = "GET",
        .url = buf_str(url),
        .accept = STR(MEDIA_OCI_INDEX),
        .bytes_max = MANIFEST_BYTES_MAX,
    };
    if (registry_session_send(s, &request, &answer, err) < 0)
        return PROBE_FAILED;
    int status = answer.status;
    if (status == 404 && registry_answer_has_code(&answer, "NAME_UNKNOWN"))
        return registry_refusal(s->registry, &answer, err), PROBE_FAILED;
    if (first &&
        (status == 404 || status == 405 || status == 501 || (status == 200 && !is_index(&answer))))
        return PROBE_NO_API;
    if (status != 200)
        return registry_refusal(s->registry, &answer, err), PROBE_FAILED;
    if (manifest_read(arena, "referrers", STR(MEDIA_OCI_INDEX), answer.body, &page, err) < 0)
        return PROBE_FAILED;
    add_items(items, &page, artifact_type, filtered_by_type(&answer));
    int next = next_page(&answer, url, err);
    return next < 0 ? PROBE_FAILED : next == 0 ? PROBE_MORE : PROBE_LAST_PAGE;
}

static enum probe ask_api(const struct registry_session *s, struct str digest,
                          struct str artifact_type, struct arena *arena, descriptors *items,
                          struct err *err)
{
    AUTO_BUF url = { 0 };
    registry_session_url(s, &url, "/referrers/%.*s?artifactType=", STR_ARG(digest));
    url_escape(artifact_type, &url);
    for (uint32_t page = 0; page < REGISTRY_PAGES_MAX; page++) {
        enum probe probe = ask_page(s, &url, page == 0, artifact_type, arena, items, err);
        if (probe != PROBE_MORE)
            return probe;
    }
    /* The newest may be on a page that was not read: an answer without it would be a wrong one. */
    err_set(err, ERR_CAPACITY, "more than %d pages of referrers", REGISTRY_PAGES_MAX);
    return PROBE_FAILED;
}

/* --- the tag --- */

static int ask_tag(const struct registry_session *s, struct str digest, struct str artifact_type,
                   struct arena *arena, descriptors *items, struct err *err)
{
    AUTO_BUF url = { 0 };
    AUTO_BUF tag = { 0 };
    AUTO_ANSWER answer = { 0 };
    struct oci_manifest index;
    referrers_tag(digest, &tag);
    registry_session_url(s, &url, "/manifests/%s", tag.p);
    struct registry_request request = {
        .method = "GET",
        .url = buf_str(&url),
        .accept = STR(MEDIA_OCI_INDEX),
        .bytes_max = MANIFEST_BYTES_MAX,
    };
    if (registry_session_send(s, &request, &answer, err) < 0)
        return -1;
    if (answer.status == 404 || (answer.status == 200 && !is_index(&answer)))
        return 0;
    if (answer.status != 200)
        return registry_refusal(s->registry, &answer, err);
    struct str claimed = http_reply_header(answer.call, STR("Docker-Content-Digest"));
    if (digest_is_valid(claimed, NULL) && digest_verify(claimed, answer.body, err) < 0)
        return -1;
    if (manifest_read(arena, tag.p, STR(MEDIA_OCI_INDEX), answer.body, &index, err) < 0)
        return -1;
    add_items(items, &index, artifact_type, false);
    return 0;
}

static int ask(const struct registry_session *s, struct str digest, struct str artifact_type,
               struct arena *arena, descriptors *items, enum referrers_way *way, struct err *err)
{
    if (!digest_is_valid(digest, NULL))
        return err_set(err, ERR_INVALID, "it is no digest");
    *way = REFERRERS_API;
    if (!is_without_api(s)) {
        enum probe probe = ask_api(s, digest, artifact_type, arena, items, err);
        if (probe != PROBE_NO_API)
            return probe == PROBE_FAILED ? -1 : 0;
        remember_without_api(s);
    }
    *way = REFERRERS_TAG;
    return ask_tag(s, digest, artifact_type, arena, items, err);
}

int session_referrers(const struct registry_session *s, struct str digest, struct str artifact_type,
                      struct arena *arena, struct referrers *out, struct err *err)
{
    descriptors items = { 0 };
    enum referrers_way way;
    int rc = ask(s, digest, artifact_type, arena, &items, &way, err);
    if (rc < 0) {
        err_wrap(err, "%.*s/%.*s: referrers of %s", STR_ARG(s->name), STR_ARG(s->ref->repository),
                 STR_SHOWN(digest));
    } else {
        struct descriptor *kept = arena_array(arena, struct descriptor, items.count);
        if (items.count > 0)
            memcpy(kept, items.items, items.count * sizeof *kept);
        *out = (struct referrers){ .items = kept, .count = (uint32_t)items.count, .way = way };
    }
    vec_done(&items);
    return rc;
}
