/* compat/pull_secrets.h - keyrings from the pull secrets that pods name.
 *
 * Those of the pod itself; if it names none, those of its service account (the API server copies them into
 * pods, unless that is turned off). A secret that is not there or cannot be read is passed over, as the kubelet
 * does. What was read is kept for a minute.
 */
#pragma once

#include "api/pod.h"
#include "base/clock.h"
#include "base/log.h"
#include "compat/credentials.h"
#include "store/store.h"

#define PULL_SECRETS_FRESH_NS ((int64_t)60 * 1000000000)

struct pull_secrets;
struct pull_secrets *pull_secrets_new(const struct store *store, const struct clock *clock,
                                      struct log *maybe_log);
void pull_secrets_free(struct pull_secrets *secrets); /* NULL is fine */

/* Whose secrets: pods with the same text have the same. In the arena; "": none at all. */
struct str pull_secrets_key(const struct pod *pod, struct arena *arena);
/* The keyring of a key; NULL for none. A reference. Blocks on the store; thread safe. ERR_UNAVAILABLE and the
 * like: the store did not answer, and nothing is known from before. */
int pull_secrets_read(struct pull_secrets *secrets, struct str key, const struct keyring **out,
                      struct err *err);
