/* cloud/provider_forward.h - a provider that passes every call on: where a decorator begins.
 *
 *     struct polite {
 *         struct provider_forward forward; // first
 *         ...
 *     };
 *     provider_forward_init(&p->forward, inner);
 *     p->forward.port.create = polite_create; // its ctx is p
 */
#pragma once

#include "cloud/provider.h"

struct provider_forward {
    struct cloud_provider port; /* its ctx is this struct */
    const struct cloud_provider *inner;
};

void provider_forward_init(struct provider_forward *f, const struct cloud_provider *inner);
