/* node/cri_inner.h - what the parts of the runtime client share with each other, and the fuzz target with
 * them. Others use cri.h.
 */
#pragma once

#include "node/cri.h"

/* A reply's bytes as messages in memory are larger than on the wire; a runtime that sends millions of
 * empty ones shall not take the node with it. */
#define CRI_DECODED_BYTES_MAX ((size_t)128 << 20)
#define CRI_TIMEOUT_NS ((int64_t)120 * 1000000000) /* of calls that have no other */
#define CRI_LISTED_MAX 100000                      /* sandboxes or containers in one listing */

/* The label that says which pod a container is of; names and the rest are in cri_list.c. */
#define CRI_LABEL_UID "io.kubernetes.pod.uid"

const ProtobufCMessageDescriptor *cri_request_type(enum cri_method method);
const ProtobufCMessageDescriptor *cri_reply_type(enum cri_method method);
int64_t cri_now_ns(const struct cri *cri); /* by its clock */

/* Calls that are started between these go out together. */
void cri_cork(struct cri *cri);
void cri_uncork(struct cri *cri);

/* From now on until it is freed the call ends when `cancel` does. */
void cri_cancel_enter(struct cri_cancel *cancel, struct cri_pending *pending);

/* Wait for the reply and hand out its bytes, which live as long as `pending`. */
int cri_take_bytes(struct cri_pending *pending, struct str *reply, struct err *err);
int cri_uncork_take_bytes(struct cri_pending *pending, struct str *reply, struct err *err);

/* A message of the method's reply type in `arena`, or NULL: the bytes are none. */
void *cri_decode(enum cri_method method, struct str bytes, struct arena *arena);

uint8_t cri_container_state(uint64_t state); /* enum runtime_state; what is not known is UNKNOWN */

/* Group and sort what two listings hold. With a uid, of that pod alone. Strings are copied. */
int cri_listing_build(struct str sandboxes, struct str containers, struct str maybe_uid,
                      struct arena *arena, struct runtime_listing *out, struct err *err);

/* See cri_list_until. 0: one of them is malformed. */
uint64_t cri_listing_digest(struct str sandboxes, struct str containers);

/* The answers of an inspection, as decoded; NULL where the runtime said that it is gone. */
struct cri_answers {
    const struct runtime_pod *pod;
    Cri__PodSandboxStatus *const *sandboxes; /* in the order of pod->sandboxes */
    Cri__ContainerStatus *const *containers; /* in the order of pod->containers */
    int64_t timestamp_ns;
};
struct runtime_status *cri_status_build(const struct cri_answers *answers);
