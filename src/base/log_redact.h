/* base/log_redact.h - what a log must never show.
 *
 * Two nets. A field whose name says that it holds a secret loses its whole value. In the text of
 * every other field, what looks like a credential is masked: the value after a secret name
 * ("password=...", "X-Amz-Security-Token: ..."), Bearer and Basic credentials, JSON web tokens,
 * AWS key ids and secret keys, private keys in PEM, the password of a URL. They err on the side of
 * hiding too much.
 */
#pragma once

#include "base/str.h"

#define REDACTED "[redacted]"

/* "password", "clientSecret", "X-Auth-Token", "userData"; case and punctuation do not count. */
bool redact_name(struct str name);

/* Append `text` to `out` with credentials masked. Stops soon after `bytes_max` bytes of result, and
 * never in the middle of a credential. */
void redact_text(struct str text, size_t bytes_max, struct buf *out);
