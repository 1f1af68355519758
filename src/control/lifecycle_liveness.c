/* Liveness: a claim that does not get anywhere is deleted, so that its pods are planned anew.
 *
 *     launched      within 5 min of its creation      else "launch_timeout"
 *     registered    within 15 min of its launch       else "registration_timeout"
 *     initialized   only if the pool says so, counted from its registration
 *
 * The first two are failures of the NodePool to bring up a node, and are told to it before the
 * claim is deleted; the third is not, for that node did join.
 */
#include "codec/duration.h"
#include "control/health.h"
#include "control/lifecycle.h"

static int64_t timeout_ns(const struct life *life, const char *annotation, int64_t dflt_ns)
{
    return life->maybe_pool ? pool_duration_ns(nodepool_of(life->maybe_pool), annotation, dflt_ns)
                            : dflt_ns;
}

/* Since when the condition is what it is; one that is missing dates from the claim's creation. */
static int64_t transition_us(const struct life *life, struct str type)
{
    const struct condition *condition = conditions_get(life->conditions, type);
    return condition ? condition->transition_us : life->object->meta.created_us;
}

/* True: the time is over. Else the claim is looked at again when it is. */
static bool is_over(struct life *life, int64_t since_us, int64_t limit_ns)
{
    int64_t left_us = since_us + limit_ns / 1000 - control_now_us(life->c);
    if (left_us <= 0)
        return true;
    life_again_after(life, left_us * 1000);
    return false;
}

/* The NodePool is told in the claim's own words, so those are written first. */
static int fail(struct life *life, const char *reason, struct err *err)
{
    const struct object *said = NULL;
    if (control_patch_conditions(life->c, life->object, life->conditions, &said, err) < 0)
        return -1;
    life_see(life, said);
    if (health_failed(life->c, life->claim, err) < 0)
        return -1;
    return life_remove(life, reason, err);
}

/* A claim that waited for us to come back is launched late, and still has its time to register. */
static int64_t launched_us(const struct life *life)
{
    int64_t launched = transition_us(life, CONDITION_LAUNCHED);
    int64_t registered = transition_us(life, CONDITION_REGISTERED);
    return launched > registered ? launched : registered;
}

int lifecycle_liveness(struct life *life, struct err *err)
{
    if (!conditions_is_true(life->conditions, CONDITION_REGISTERED)) {
        int64_t launch_ns = timeout_ns(life, ANNOTATION_LAUNCH_TIMEOUT, LAUNCH_TIMEOUT_NS);
        int64_t register_ns =
            timeout_ns(life, ANNOTATION_REGISTRATION_TIMEOUT, REGISTRATION_TIMEOUT_NS);
        if (!conditions_is_true(life->conditions, CONDITION_LAUNCHED) &&
            is_over(life, transition_us(life, CONDITION_LAUNCHED), launch_ns))
            return fail(life, "launch_timeout", err);
        if (is_over(life, launched_us(life), register_ns))
            return fail(life, "registration_timeout", err);
        return 0;
    }
    int64_t initialize_ns = timeout_ns(life, ANNOTATION_INITIALIZATION_TIMEOUT, 0);
    if (initialize_ns && !conditions_is_true(life->conditions, CONDITION_INITIALIZED) &&
        is_over(life, transition_us(life, CONDITION_REGISTERED), initialize_ns))
        return life_remove(life, "initialization_timeout", err);
    return 0;
}
