/* net/digest.h - SHA-2 of bytes, by libcrypto, which is loaded when first needed: who never talks to a
 * registry does not pay for it.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"

enum digest_kind { DIGEST_SHA256, DIGEST_SHA512 };
#define DIGEST_BYTES_MAX 64
#define DIGEST_TEXT_MAX (7 + 128 + 1) /* "sha512:", hex and a NUL */

/* "sha256:44136f..." of the bytes, NUL-terminated. ERR_UNAVAILABLE: no libcrypto on this machine. */
int digest_text(enum digest_kind kind, struct str bytes, char out[DIGEST_TEXT_MAX],
                struct err *err);
/* "sha256:" + 64, or "sha512:" + 128, lower-case hex digits. */
bool digest_is_valid(struct str text, enum digest_kind *maybe_kind);
/* Do the bytes have this digest? 0: yes. ERR_INVALID: no, or the text is no digest. */
int digest_verify(struct str digest, struct str bytes, struct err *err);
