/* Any text is a keyring, in both forms, or refused with words. The same text gives the same identity,
 * and what a ring has for a repository a join has too, no more of it. */
#include "compat/credentials.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct {
    struct str registry, repository;
} asked[] = {
    { STR("docker.io"), STR("library/nginx") },
    { STR("r.example"), STR("team/app") },
    { STR("a.r.example:5000"), STR("team/app") },
    { STR("[::1]:5000"), STR("a") },
    { STR("localhost"), STR("a") },
};

static void match_all(const struct keyring *ring, const struct keyring *joined)
{
    for (size_t i = 0; i < KV_COUNT_OF(asked); i++) {
        AUTO_ARENA arena = { 0 };
        const struct credential *one, *both;
        uint32_t count = keyring_match(ring, &arena, asked[i].registry, asked[i].repository, &one);
        uint32_t joined_count =
            keyring_match(joined, &arena, asked[i].registry, asked[i].repository, &both);
        KV_ASSERT(count == joined_count);
        for (uint32_t k = 0; k < count; k++) {
            KV_ASSERT(one[k].password.len || one[k].identity_token.len ||
                      one[k].registry_token.len);
            KV_ASSERT(str_eq(one[k].password, both[k].password));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str text = { (const char *)data, size };
    for (int form = KEYRING_CONFIG; form <= KEYRING_DOCKERCFG; form++) {
        const struct keyring *ring = NULL, *again = NULL;
        uint32_t skipped;
        struct err err = { 0 };
        if (keyring_read("k", text, (enum keyring_form)form, &ring, &skipped, &err) < 0) {
            KV_ASSERT(err.kind == ERR_INVALID);
            KV_ASSERT(err.text[0] != 0);
            continue;
        }
        int rc = keyring_read("k", text, (enum keyring_form)form, &again, NULL, &err);
        KV_ASSERT(rc == 0);
        KV_ASSERT(keyring_identity(ring) == keyring_identity(again));
        const struct keyring *joined = keyring_join((const struct keyring *[]){ ring, again }, 2);
        keyring_unref(again);
        match_all(ring, joined);
        keyring_unref(ring);
        keyring_unref(joined);
    }
    return 0;
}
