/* store/strategic.h - strategic merge patches, for the kinds of Kubernetes itself. */
#pragma once

#include "codec/json.h"

/* `patch` is applied to `target`; the result lives in b. ERR_INVALID: it is no such patch. */
int strategic_merge(struct json_build *b, const json_val *target, const json_val *patch,
                    json_mut **out, struct err *err);
