/* The life of a record:
 *
 *     nothing --condition read--> as the condition says --result, age--> True, False, Unknown
 *                                        ^                                    |
 *                                        +------- pool or class changed ------+
 *
 * "Changed" is read from the objects: the generation that the condition was written for, and the class
 * generation in the pool's status. So it is noticed also if it happened while nobody was running. Only
 * a class that is deleted and made again with the same generation needs the record, and is missed
 * while nobody is running.
 *
 * Times of objects are whole seconds; so are ours before the two are compared.
 */
#include "control/health_record.h"

#include "api/conditions.h"
#include "api/hash.h"
#include "codec/duration.h"

#define US_PER_SECOND 1000000

static int64_t whole_seconds(int64_t us)
{
    return us - us % US_PER_SECOND;
}

const struct condition *health_condition(const struct nodepool *pool)
{
    return condition_find(pool->status.conditions.items, pool->status.conditions.count,
                          CONDITION_NODE_REGISTRATION_HEALTHY);
}

/* --- catching up --- */

/* From the last failure, or what is known of it, as a person would count: the first wait, then twice
 * that, and so on. */
static int64_t wait_us(const struct health_view *v, uint32_t attempts)
{
    int64_t most_ns = v->cooldown_ns > COOLDOWN_MAX_NS ? v->cooldown_ns : COOLDOWN_MAX_NS;
    int64_t ns = v->cooldown_ns;
    for (uint32_t i = 1; i < attempts && ns < most_ns; i++)
        ns *= 2;
    return (ns < most_ns ? ns : most_ns) / 1000;
}

/* Nobody knows any more how often a pool that is False was tried. It became so at the time of its last
 * transition; assume that it was tried whenever it could have been, and wait for the next time. */
static void resume_cooldown(struct health_record *r, const struct health_view *v,
                            int64_t false_since_us)
{
    r->attempts = 1;
    r->waiting_since_us = false_since_us;
    while (v->cooldown_ns > 0 && r->waiting_since_us + wait_us(v, r->attempts) <= v->now_us) {
        int64_t wait = wait_us(v, r->attempts);
        r->waiting_since_us += wait;
        if (wait_us(v, r->attempts + 1) > wait)
            r->attempts++;
        else /* at most once an hour: skip what is left in one step */
            r->waiting_since_us += (v->now_us - r->waiting_since_us) / wait * wait;
    }
}

static void end_cooldown(struct health_record *r)
{
    r->attempts = 0;
    r->waiting_since_us = 0;
}

static void take_up(struct health_record *r, const struct health_view *v,
                    const struct condition *maybe_condition)
{
    enum condition_status status = condition_status_of(maybe_condition);
    *r = (struct health_record){
        .known = true,
        .policy = v->settings.policy,
        .state = health_rehydrate(&v->settings, status),
        .counts_from_us = r->counts_from_us,
        .idle_since_ns = v->now_ns,
        .class_hash = r->class_hash,
    };
    /* After a restart: an Unknown that was something else dates from the change. True and False are
     * younger than theirs by an unknown time, so there every result counts. */
    if (maybe_condition && status == CONDITION_UNKNOWN &&
        r->counts_from_us < maybe_condition->transition_us)
        r->counts_from_us = maybe_condition->transition_us;
    if (status == CONDITION_FALSE)
        resume_cooldown(r, v, maybe_condition->transition_us);
}

static uint64_t class_hash(const struct object *maybe_class)
{
    return maybe_class ? kv_hash(maybe_class->meta.uid.p, maybe_class->meta.uid.len) | 1 : 0;
}

static bool has_changed(const struct health_record *r, const struct health_view *v,
                        const struct condition *maybe_condition)
{
    const struct nodepool *pool = v->pool;
    if (!maybe_condition || maybe_condition->observed_generation != pool->object.meta.generation)
        return true;
    if (!v->maybe_class) /* nothing can be launched meanwhile */
        return false;
    return pool->status.node_class_observed_generation != v->maybe_class->meta.generation ||
           (r->class_hash && r->class_hash != class_hash(v->maybe_class));
}

static void start_anew(struct health_record *r, const struct health_view *v, bool is_new_pool)
{
    *r = (struct health_record){
        .known = true,
        .policy = v->settings.policy,
        .state.status = CONDITION_UNKNOWN,
        /* Before a pool was looked at for the first time there was no other spec. */
        .counts_from_us = is_new_pool ? 0 : whole_seconds(v->now_us),
        .idle_since_ns = v->now_ns,
    };
}

static void forget_old(struct health_record *r, const struct health_view *v)
{
    while (r->state.window.count && v->now_ns - r->idle_since_ns >= v->idle_max_ns) {
        health_age(&v->settings, &r->state);
        r->idle_since_ns += v->idle_max_ns;
    }
    if (r->state.status != CONDITION_FALSE)
        end_cooldown(r);
}

bool health_record_catch_up(struct health_record *r, const struct health_view *v)
{
    const struct condition *condition = health_condition(v->pool);
    bool changed = has_changed(r, v, condition);

    if (changed)
        start_anew(r, v, !condition);
    else if (!r->known || r->policy != v->settings.policy ||
             r->state.status != condition_status_of(condition))
        take_up(r, v, condition);
    else
        forget_old(r, v);
    if (v->maybe_class)
        r->class_hash = class_hash(v->maybe_class);
    return changed;
}

int64_t health_record_age_due_ns(const struct health_record *r, const struct health_view *v)
{
    if (r->state.status != CONDITION_FALSE || !r->state.window.count)
        return INT64_MAX;
    int64_t left = r->idle_since_ns + v->idle_max_ns - v->now_ns;
    return left > 0 ? left : 0;
}

/* --- results --- */

bool health_record_counts(const struct health_record *r, const struct health_view *v,
                          const struct nodeclaim *claim)
{
    const struct str_map *notes = &claim->object.meta.annotations;
    struct str hash = str_map_get(notes, STR(ANNOTATION_NODEPOOL_HASH));
    char of_pool[HASH_TEXT_MAX];

    if (claim->object.meta.created_us < r->counts_from_us)
        return false;
    if (!hash.len ||
        !str_eqz(str_map_get(notes, STR(ANNOTATION_NODEPOOL_HASH_VERSION)), NODEPOOL_HASH_VERSION))
        return true;
    hash_format(nodepool_hash(v->pool), of_pool);
    return str_eqz(hash, of_pool);
}

void health_record_result(struct health_record *r, const struct health_view *v,
                          const struct nodeclaim *claim, bool success)
{
    health_result(&v->settings, &r->state, success);
    r->idle_since_ns = v->now_ns;
    if (r->state.status != CONDITION_FALSE) {
        end_cooldown(r);
    } else if (!success && claim->object.meta.created_us > r->waiting_since_us) {
        /* Claims that were launched together fail together: one round, not many. */
        r->attempts++;
        r->waiting_since_us = whole_seconds(v->now_us);
    }
}

int64_t health_record_retry_us(const struct health_record *r, const struct health_view *v)
{
    int64_t wait = wait_us(v, r->attempts);
    int64_t due = r->waiting_since_us + wait;
    /* A wall clock that was set back must not make it longer. */
    return due - v->now_us > wait ? v->now_us + wait : due;
}

/* --- words --- */

static struct str text_or(struct str s, struct str otherwise)
{
    return s.len ? s : otherwise;
}

void health_failure_words(const struct nodeclaim *claim, int64_t now_us, struct arena *arena,
                          struct str *reason, struct str *message)
{
    const struct nodeclaim_status *status = &claim->status;
    const struct condition *launched =
        condition_find(status->conditions.items, status->conditions.count, CONDITION_LAUNCHED);
    const struct condition *registered =
        condition_find(status->conditions.items, status->conditions.count, CONDITION_REGISTERED);
    struct str name = claim->object.meta.name;
    bool is_launched = condition_status_of(launched) == CONDITION_TRUE;
    int64_t since_us = is_launched ? launched->transition_us : claim->object.meta.created_us;
    char waited[DURATION_TEXT_MAX];
    duration_format_short((now_us - since_us) * 1000, waited);

    if (!is_launched) {
        *reason = text_or(launched ? launched->reason : STR(""), REASON_LAUNCH_FAILED);
        *message =
            text_or(launched ? launched->message : STR(""),
                    arena_strf(arena, "claim %.*s: not launched after %s", STR_ARG(name), waited));
        return;
    }
    struct str why = text_or(registered ? registered->reason : STR(""), REASON_NODE_NOT_FOUND);
    struct str words = text_or(registered ? registered->message : STR(""), STR("not registered"));
    struct str instance = text_or(status->provider_id, STR("unknown"));
    *reason = REASON_REGISTRATION_FAILED;
    *message = arena_strf(arena, "claim %.*s: %.*s: %.*s after %s (instance %.*s)", STR_ARG(name),
                          STR_ARG(why), STR_ARG(words), waited, STR_ARG(instance));
}
