/* api/kwoknodeclass.h - KWOKNodeClass (karpenter.kwok.sh/v1alpha1): nodes of the simulated
 * cloud. */
#pragma once

#include "api/karpenter.h"

struct kwoknodeclass {
    struct object object;
    struct kwoknodeclass_spec {
        struct duration node_registration_delay; /* unset: at once */
    } spec;
    struct kwoknodeclass_status {
        LIST(struct condition) conditions;
    } status;
};

extern const struct kind kwoknodeclass_kind;

static inline const struct kwoknodeclass *kwoknodeclass_of(const struct object *object)
{
    KV_ASSERT(object->kind == &kwoknodeclass_kind);
    return (const struct kwoknodeclass *)object;
}
