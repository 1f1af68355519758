/* control/health.h - the condition NodeRegistrationHealthy of a NodePool, and what follows from it.
 *
 * Results are told by the reconciler that sees them; each is counted once per claim. The condition is
 * written under the version that was read, and a result counts only once it is written: a conflict
 * is an error and the caller comes again. So a caller tells a result before it makes it final (before
 * Registered is True in the store, before the claim is deleted) and may tell it again.
 *
 * A result does not count if its claim was made from another spec: it is older than the last change of
 * the pool or its node class, or the hash of its template is not the pool's (decision 0017).
 */
#pragma once

#include "control/control_impl.h"

struct health *health_new(void);
void health_free(struct health *h); /* NULL is fine */

/* The claim's node has registered. */
int health_succeeded(struct control *c, const struct nodeclaim *claim, struct err *err);
/* It was not launched, or did not register, in time; the claim's own conditions say why. Call it
 * before the claim is deleted. Not for what is known not to be the pool's fault: insufficient capacity,
 * a node class that is not ready. */
int health_failed(struct control *c, const struct nodeclaim *claim, struct err *err);

/* With a cooldown, a pool whose nodes do not join is tried last, and rarely. */
enum cooldown {
    COOLDOWN_NONE,  /* launch as you like */
    COOLDOWN_WAIT,  /* nothing before *until_ns (mono_ns), or before the probe has told */
    COOLDOWN_PROBE, /* one node may be tried, if no other pool will do */
};
enum cooldown health_cooldown(struct control *c, const struct nodepool *pool, int64_t *until_ns);
/* The words for it: "its nodes do not join the cluster (RegistrationFailed: ...); next try in 4m" */
struct str health_cooldown_words(struct control *c, const struct nodepool *pool,
                                 struct arena *arena);
/* Does pod latency count for pods that go to this pool? Its condition is True, of its present spec. */
bool health_is_true(const struct nodepool *pool);

/* --- for the controller (health_controller.c) --- */

/* Bring the condition up to date: there at all, new after a change, aged. `*due_ns`: after how long to
 * come again; INT64_MAX: when something changes. */
int health_refresh(struct control *c, struct str pool, int64_t *due_ns, struct err *err);
/* Forget what pools of that name were, but for the one with this uid; "": the name is gone. */
void health_forget(struct control *c, struct str pool, struct str keep_uid);
