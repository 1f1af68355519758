/* Two passes over the pods of a node: the first finds out who waits and in which tier, the second
 * picks those whose turn it is.
 */
#include "control/drain.h"

#include "api/labels.h"
#include "control/do_not_disrupt.h"

#define GRACE_S_MAX ((int64_t)UINT32_MAX) /* as in a server; keeps sums of microseconds small */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static bool has_owner_of_kind(const struct pod *pod, const char *kind)
{
    for (uint32_t i = 0; i < pod->object.meta.owners.count; i++) {
        if (str_eqz(pod->object.meta.owners.items[i].kind, kind))
            return true;
    }
    return false;
}

static bool tolerates_disruption(const struct pod *pod)
{
    const struct taint disrupted = { .key = STR(TAINT_DISRUPTED), .effect = EFFECT_NO_SCHEDULE };
    for (uint32_t i = 0; i < pod->spec->tolerations.count; i++) {
        if (toleration_tolerates(&pod->spec->tolerations.items[i], &disrupted))
            return true;
    }
    return false;
}

/* A static pod: no API call ends it, its kubelet does. */
static bool belongs_to_node(const struct pod *pod)
{
    return pod_is_mirror(pod) || has_owner_of_kind(pod, "Node");
}

static bool is_stuck(const struct pod *pod, int64_t now_us)
{
    return pod_is_terminating(pod) && now_us >= pod->object.meta.deleted_us + DRAIN_STUCK_US;
}

bool pod_is_drainable(const struct pod *pod, int64_t now_us)
{
    return !tolerates_disruption(pod) && !is_stuck(pod, now_us) && !belongs_to_node(pod);
}

enum drain_tier pod_drain_tier(const struct pod *pod)
{
    bool daemon = has_owner_of_kind(pod, "DaemonSet");
    if (pod_is_critical(pod))
        return daemon ? DRAIN_CRITICAL_DAEMON : DRAIN_CRITICAL;
    return daemon ? DRAIN_DAEMON : DRAIN_PLAIN;
}

int64_t drain_forced_grace_s(int64_t now_us, int64_t deadline_us)
{
    int64_t left_s = (deadline_us - now_us) / 1000000;
    return left_s > 1 ? left_s : 1;
}

/* A pod that ends after the deadline must end sooner. One whose grace is as short already as it would
 * be made is not deleted again and again. */
static bool outlives(const struct pod *pod, int64_t now_us, int64_t deadline_us)
{
    const struct meta *meta = &pod->object.meta;
    return deadline_us != DRAIN_NO_DEADLINE && meta->deleted_us > deadline_us &&
           meta->deletion_grace_s.value > drain_forced_grace_s(now_us, deadline_us);
}

/* From when on a pod must be deleted to have its whole grace before the deadline. */
static int64_t force_from_us(const struct pod *pod, int64_t deadline_us)
{
    struct maybe_int grace = pod->spec->termination_grace_s;
    if (deadline_us == DRAIN_NO_DEADLINE || !grace.set)
        return INT64_MAX;
    return deadline_us - earlier(grace.value, GRACE_S_MAX) * 1000000;
}

struct drain_verdict drain_judge(const struct pod *pod, int64_t now_us, int64_t deadline_us)
{
    if (pod_is_terminal(pod) || !pod_is_drainable(pod, now_us))
        return (struct drain_verdict){ DRAIN_IGNORE, INT64_MAX };
    if (pod_is_terminating(pod)) {
        int64_t stuck_us = pod->object.meta.deleted_us + DRAIN_STUCK_US;
        bool late = outlives(pod, now_us, deadline_us);
        return (struct drain_verdict){ late ? DRAIN_FORCE : DRAIN_WAIT, stuck_us };
    }
    int64_t force_us = force_from_us(pod, deadline_us);
    if (now_us >= force_us)
        return (struct drain_verdict){ DRAIN_FORCE, INT64_MAX };
    struct do_not_disrupt mark = do_not_disrupt_of(pod, now_us);
    if (do_not_disrupt_is_active(mark))
        return (struct drain_verdict){ DRAIN_PROTECTED, earlier(force_us, mark.until_us) };
    return (struct drain_verdict){ DRAIN_EVICT, force_us };
}

static void take_turn(struct drain *out, const struct pod *pod, enum drain_action action)
{
    if (action == DRAIN_EVICT) {
        out->evict[out->evict_count++] = pod;
    } else if (action == DRAIN_PROTECTED) {
        if (!out->protected_count++)
            out->maybe_protected = pod;
    }
}

void drain_plan(struct arena *arena, const struct object *const *pods, size_t count, int64_t now_us,
                int64_t deadline_us, struct drain *out)
{
    struct drain_verdict *verdicts = arena_array(arena, struct drain_verdict, count);
    enum drain_tier turn = DRAIN_TIER_COUNT;

    *out = (struct drain){ .evict = arena_array(arena, const struct pod *, count),
                           .force = arena_array(arena, const struct pod *, count),
                           .next_us = INT64_MAX };
    for (size_t i = 0; i < count; i++) {
        const struct pod *pod = pod_of(pods[i]);
        verdicts[i] = drain_judge(pod, now_us, deadline_us);
        if (verdicts[i].action == DRAIN_IGNORE)
            continue;
        enum drain_tier tier = pod_drain_tier(pod);
        turn = tier < turn ? tier : turn;
        out->waiting_count++;
        out->next_us = earlier(out->next_us, verdicts[i].next_us);
        if (verdicts[i].action == DRAIN_FORCE)
            out->force[out->force_count++] = pod;
    }
    for (size_t i = 0; i < count; i++) {
        if (verdicts[i].action != DRAIN_IGNORE && pod_drain_tier(pod_of(pods[i])) == turn)
            take_turn(out, pod_of(pods[i]), verdicts[i].action);
    }
}
