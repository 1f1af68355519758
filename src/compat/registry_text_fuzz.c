/* Any bytes as a challenge, a Link header, a location and a pattern of hosts. */
#include "compat/registry_inner.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_challenge(struct str text)
{
    AUTO_ARENA arena = { 0 };
    struct challenge got = { 0 };
    challenge_read(&arena, text, &got);
    KV_ASSERT(got.bearer || got.realm.len == 0);
    KV_ASSERT(got.realm.len <= text.len);
    KV_ASSERT(got.service.len <= text.len);
    KV_ASSERT(got.scope.len <= text.len);
}

static void try_link(struct str text)
{
    struct str next;
    if (link_next(text, &next) && next.len > 0)
        KV_ASSERT(next.p >= text.p && next.p + next.len <= text.p + text.len);
}

/* Where it leads is a URL, and without a host in it the host stays. */
static void try_location(struct str text)
{
    AUTO_BUF out = { 0 };
    struct http_url url;
    struct str base = STR("https://registry.example:5000/v2/a/b?n=1");
    if (url_join(base, text, &out, NULL) < 0)
        return;
    KV_ASSERT(http_url_parse(buf_str(&out), &url, NULL) == 0);
    if (str_find(text, ':') < 0 && !str_starts(text, STR("//")))
        KV_ASSERT(url_same_origin(base, buf_str(&out)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size }, pattern, host;
    try_challenge(text);
    try_link(text);
    try_location(text);
    str_cut(text, '\n', &pattern, &host);
    if (pattern.len < 256 && host.len < 256) { /* as long as names get */
        host_glob(pattern, host);
        KV_ASSERT(host_glob(STR("*"), host));
    }
    return 0;
}
