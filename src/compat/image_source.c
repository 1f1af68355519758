/* The registry as a source of facts: a tag is resolved with one question (HEAD), and only for a digest that is
 * not known, or was not looked at for a while, does image_ask go for manifests, artifacts and specs.
 */
#include "compat/image_cache.h"

static int source_resolve(void *ctx, const struct reference *ref, const struct keyring *maybe_keys,
                          struct arena *arena, struct str *digest, struct err *err)
{
    const struct image_source_registry *from = ctx;
    struct descriptor found;
    if (registry_digest(from->registry, ref, maybe_keys, arena, &found, err) < 0)
        return -1;
    *digest = found.digest;
    return 0;
}

static int source_ask(void *ctx, const struct reference *ref, const struct keyring *maybe_keys,
                      const struct image_facts *maybe_known, const struct image_facts **out,
                      struct err *err)
{
    const struct image_source_registry *from = ctx;
    struct image_ask ask = { .registry = from->registry,
                             .ref = ref,
                             .maybe_keys = maybe_keys,
                             .sets_max = from->sets_max,
                             .platform_only = from->platform_only,
                             .maybe_known = maybe_known };
    return image_ask(&ask, out, err);
}

struct image_source image_source_registry(const struct image_source_registry *from)
{
    return (struct image_source){ .ask = source_ask,
                                  .ctx = (void *)from,
                                  .maybe_resolve = source_resolve };
}
